/* stream_rnn_scoring.c - recurrent scorers of streams. */
#include "cuda/decoder/stream_rnn_scoring.h"

#include <string.h>

#include "cuda/decoder/rnn_scoring.h"
#include "cuda/device/cuda_call.h"

static const char what[] = "a recurrent scorer of streams on the GPU";

wf_status wf__rnn_scoring_acquire(wf__gpu_worker *worker, const wf_scorer *scorer,
                                  struct wf__rnn_scoring **out, wf_error *err) {
  struct wf__rnn_scoring **at = &worker->stream_scorings, *a;
  *out = NULL;
  while (*at != NULL && (*at)->scorer != scorer) at = &(*at)->next;
  if (*at == NULL) {
    for (at = &worker->stream_scorings;
         (a = *at) !=
         NULL;) { /* unused scorings are kept until now, so that they need not be made repeatedly */
      if (a->num_users > 0)
        at = &a->next;
      else {
        *at = a->next;
        wf__rnn_scoring_close(a);
      }
    }
    WF__TRY(
        wf__rnn_scoring_open(worker->device, scorer, wf__gpu_context_bits(worker->graph), at, err));
    (*at)->streams = true;
    (*at)->tables.num_roots = 0;
  }
  *out = *at;
  (*out)->num_users++;
  return WF_OK;
}

void wf__rnn_scoring_release(struct wf__rnn_scoring *a) { a->num_users--; }
const struct wf__rnn_scoring *wf__rnn_scoring_next(const struct wf__rnn_scoring *a) {
  return a->next;
}
const wf_scorer *wf__rnn_scoring_cpu_scorer(const struct wf__rnn_scoring *a) {
  return a->cpu_scorer;
}

wf_status wf__rnn_scoring_fit(struct wf__rnn_scoring *a, const wf_graph *graph, wf_error *err) {
  const int bits = wf__gpu_context_bits(graph);
  if (a->bits + 1 >= bits)
    return wf__fail(err, WF_ERR_LIMIT,
                    "2^%d contexts of a recurrent scorer do not fit beside the states of the "
                    "graph; lower rnnlm_memory",
                    a->bits);
  if (bits < a->number_bits) a->number_bits = bits;
  return WF_OK;
}

/* Finds an unused root; makes room if there is none. */
static wf_status find_root(struct wf__rnn_scoring *a, uint32_t *root, wf_error *err) {
  for (int tries = 0; tries < 2; tries++) {
    for (*root = 0; *root < a->root_states.size && a->root_states.data[*root] != WF__ROOT_FREE;)
      ++*root;
    if (*root + 1 < a->tables.max_contexts / 2 && a->tables.num_free_contexts > 0) return WF_OK;
    WF__TRY((tries == 0 ? wf__rnn_scoring_forget : wf__rnn_scoring_grow)(a, NULL, err));
  }
  return *root + 1 < a->tables.max_contexts / 2 && a->tables.num_free_contexts > 0
             ? WF_OK
             : wf__fail(err, WF_ERR_LIMIT, "too many chains with one recurrent scorer");
}

wf_status wf__rnn_scoring_add_root(struct wf__rnn_scoring *a, const wf__flat_scorer *chain,
                                   uint32_t *root, wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  WF__TRY(find_root(a, root, err));
  WF__TRY(wf__device_send((char *)a->arrays[WF__RNN_ARRAY_ROOTS].data + *root * sizeof chain,
                          &chain, sizeof chain, a->stream, what, err));
  WF__CUDA_TRY(wf__word_scores_start(m, *root, a->stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(a->stream), what);
  if (*root == a->root_states.size)
    WF__TRY(wf__vec_push(&a->root_states, (uint8_t)WF__ROOT_FREE, what, err));
  a->root_states.data[*root] = WF__ROOT_LIVE;
  m->num_roots = (uint32_t)a->root_states.size;
  m->num_free_contexts--;
  return WF_OK;
}

void wf__rnn_scoring_drop_root(struct wf__rnn_scoring *a, uint32_t root) {
  a->root_states.data[root] = WF__ROOT_LEFT;
  (void)cudaMemsetAsync((char *)a->arrays[WF__RNN_ARRAY_STARTS].data + root * sizeof(uint32_t), 0,
                        sizeof(uint32_t), a->stream);
}

wf_status wf__rnn_scoring_join(struct wf__rnn_scoring *a, wf__gpu_channel *channel, wf_error *err) {
  return wf__vec_push(&a->channels, channel, what, err);
}

void wf__rnn_scoring_leave(struct wf__rnn_scoring *a, const wf__gpu_channel *channel) {
  uint64_t i = 0;
  while (i < a->channels.size && a->channels.data[i] != channel) i++;
  if (i < a->channels.size) a->channels.data[i] = a->channels.data[--a->channels.size];
}
