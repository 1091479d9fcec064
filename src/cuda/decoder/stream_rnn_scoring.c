/* stream_rnn_scoring.c - recurrent scorers of streams. */
#ifdef WARPFST_CUDA
#include <string.h>

#include "cuda/decoder/rnn_scoring.h"

static const char what[] = "a recurrent scorer of streams on the GPU";

wf_status wf__asking_hold(wf__gpu_worker *worker, const wf_scorer *scorer, struct wf__gpu_asking **out, wf_error *err) {
  struct wf__gpu_asking **at = &worker->stream_askings, *a;
  *out = NULL;
  while (*at != NULL && (*at)->scorer != scorer) at = &(*at)->next;
  if (*at == NULL) {
    for (at = &worker->stream_askings; (a = *at) != NULL;) { /* what nobody holds any more has stayed until now, lest it be made again and again */
      if (a->num_users > 0) at = &a->next;
      else {
        *at = a->next;
        wf__asking_close(a);
      }
    }
    WF__TRY(wf__asking_open(worker->device, scorer, wf__gpu_context_bits(worker->graph), at, err));
    (*at)->streams = true;
    (*at)->maker.num_roots = 0;
  }
  *out = *at;
  (*out)->num_users++;
  return WF_OK;
}

void wf__asking_let_go(struct wf__gpu_asking *a) { a->num_users--; }
const struct wf__gpu_asking *wf__asking_next(const struct wf__gpu_asking *a) { return a->next; }
const wf_scorer *wf__asking_twin(const struct wf__gpu_asking *a) { return a->twin; }

wf_status wf__asking_fit(struct wf__gpu_asking *a, const wf_graph *graph, wf_error *err) {
  const int bits = wf__gpu_context_bits(graph);
  if (a->bits + 1 >= bits) return wf__fail(err, WF_ERR_LIMIT, "2^%d contexts of a recurrent scorer do not fit beside the states of the graph; lower rnnlm_memory", a->bits);
  if (bits < a->number_bits) a->number_bits = bits;
  return WF_OK;
}

/* A root that nothing comes from; more room if there is none. */
static wf_status find_root(struct wf__gpu_asking *a, uint32_t *root, wf_error *err) {
  for (int tries = 0; tries < 2; tries++) {
    for (*root = 0; *root < a->root_states.size && a->root_states.data[*root] != WF__ROOT_FREE;) ++*root;
    if (*root + 1 < a->maker.max_contexts / 2 && a->maker.num_free_contexts > 0) return WF_OK;
    WF__TRY((tries == 0 ? wf__asking_forget : wf__asking_grow)(a, NULL, err));
  }
  return *root + 1 < a->maker.max_contexts / 2 && a->maker.num_free_contexts > 0 ? WF_OK : wf__fail(err, WF_ERR_LIMIT, "too many chains with one recurrent scorer");
}

wf_status wf__asking_add_root(struct wf__gpu_asking *a, const wf__flat_scorer *chain, uint32_t *root, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  WF__TRY(find_root(a, root, err));
  WF__CUDA_TRY(cudaMemcpy((char *)a->arrays[WF__ASKING_ROOTS].data + *root * sizeof chain, &chain, sizeof chain, cudaMemcpyHostToDevice), what);
  WF__CUDA_TRY(wf__answers_start(m, *root, a->stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(a->stream), what);
  if (*root == a->root_states.size) WF__TRY(wf__vec_push(&a->root_states, (uint8_t)WF__ROOT_FREE, what, err));
  a->root_states.data[*root] = WF__ROOT_LIVE;
  m->num_roots = (uint32_t)a->root_states.size;
  m->num_free_contexts--;
  return WF_OK;
}

void wf__asking_drop_root(struct wf__gpu_asking *a, uint32_t root) {
  a->root_states.data[root] = WF__ROOT_LEFT;
  (void)cudaMemsetAsync((char *)a->arrays[WF__ASKING_STARTS].data + root * sizeof(uint32_t), 0, sizeof(uint32_t), a->stream);
}

wf_status wf__asking_join(struct wf__gpu_asking *a, wf__gpu_channel *channel, wf_error *err) { return wf__vec_push(&a->channels, channel, what, err); }

void wf__asking_leave(struct wf__gpu_asking *a, const wf__gpu_channel *channel) {
  uint64_t i = 0;
  while (i < a->channels.size && a->channels.data[i] != channel) i++;
  if (i < a->channels.size) a->channels.data[i] = a->channels.data[--a->channels.size];
}

wf_status wf__asking_search_chunks(struct wf__gpu_asking *a, wf__lane_params *p, cudaStream_t entered, uint64_t num_begun, wf_error *err) {
  const uint64_t costs = a->counts.costs;
  WF__CUDA_TRY(cudaStreamSynchronize(entered), "chunks to the GPU"); /* and chunks of other streams, which have taken from the queue */
  WF__TRY(wf__asking_reserve(a, WF__ASKING_SAVED, (uint64_t)p->num_lanes * p->ranks * sizeof(wf__lane_saved), err));
  a->maker.answers.saved = a->arrays[WF__ASKING_SAVED].data;
  a->counters->num_requests = 0;
  WF__CUDA_TRY(cudaMemsetAsync(a->arrays[WF__ASKING_SAVED].data, 0, a->arrays[WF__ASKING_SAVED].bytes, a->stream), what);
  WF__CUDA_TRY(cudaMemsetAsync(p->queue, 0, sizeof *p->queue, a->stream), what);
  WF__CUDA_TRY(cudaMemsetAsync(a->arrays[WF__ASKING_COUNTERS].data, 0, sizeof *a->counters, a->stream), what);
  WF__TRY(wf__asking_run(a, p, wf__search_kernels_of[WF__SEARCH_STREAMS + WF__SEARCH_DEFERRED].launch, err));
  wf__asking_count(a, costs, num_begun);
  return WF_OK;
}

#endif
