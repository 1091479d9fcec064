/* batch_rnn_scoring.c - the recurrent scorer of a batch, its chains and their roots. */
#include "cuda/decoder/batch_rnn_scoring.h"

#include "cuda/decoder/rnn_scoring.h"

static const char what[] = "a recurrent scorer on the GPU";

/* Finds the batch's recurrent scorer, or NULL. Either all utterances must use the same one, or none
 * may have one. */
static wf_status find_scorer(const wf__batch *batch, const wf_scorer **out, wf_error *err) {
  bool is_first = true;
  *out = NULL;
  for (size_t i = 0; i < batch->count && batch->scorers != NULL; i++) {
    if (batch->skip[i]) continue;
    const wf_scorer *own = wf__rnn_part_of(batch->scorers[i]);
    if (is_first) *out = own;
    is_first = false;
    if (own != *out)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "a batch on a GPU takes one recurrent scorer for all of its utterances, or "
                      "for none; or take device cpu");
  }
  return WF_OK;
}

wf_status wf__batch_rnn_take(wf__gpu_worker *worker, const wf__batch *batch, bool *deferred,
                             wf_error *err) {
  const wf_scorer *scorer;
  WF__TRY(find_scorer(batch, &scorer, err));
  *deferred = scorer != NULL;
  if (scorer == NULL) return WF_OK;
  int bits = wf__gpu_context_bits(worker->graph);
  for (size_t i = 0; i < batch->count; i++) {
    const int own = wf__gpu_context_bits(wf__batch_graph(batch, i, worker->graph));
    if (own < bits) bits = own;
  }
  if (worker->rnn_scoring != NULL && worker->rnn_scoring->scorer == scorer &&
      worker->rnn_scoring->bits + 1 < bits) {
    worker->rnn_scoring->number_bits = bits;
    return WF_OK;
  }
  wf__rnn_scoring_close(worker->rnn_scoring);
  worker->rnn_scoring = NULL;
  return wf__rnn_scoring_open(worker->device, scorer, bits, &worker->rnn_scoring, err);
}

/* Lists the chains of the batch in the order of its utterances. *same: the last batch had the same
 * chains. */
static wf_status list_chains(struct wf__rnn_scoring *a, const wf__batch *batch, bool *same,
                             wf_error *err) {
  const uint64_t before = a->chains.size;
  uint64_t count = 0;
  wf__map64 seen = {0};
  wf_status status = WF_OK;
  *same = true;
  for (size_t i = 0; i < batch->count && status == WF_OK && *same; i++) {
    uint32_t number;
    bool fresh = false;
    if (!batch->skip[i])
      status = wf__map64_insert(&seen, (uint64_t)(uintptr_t)batch->scorers[i], (uint32_t)count,
                                &number, &fresh, "scorers", err);
    if (!fresh || status != WF_OK) continue;
    *same = count < before && a->chains.data[count].scorer == batch->scorers[i];
    count++;
  }
  wf__map64_free(&seen);
  *same = *same && count == before;
  if (*same || status != WF_OK) return status;
  wf__rnn_scoring_free_chains(a);
  for (size_t i = 0; i < batch->count; i++) {
    uint32_t number;
    bool fresh;
    if (batch->skip[i]) continue;
    WF__TRY(wf__map64_insert(&a->chain_of, (uint64_t)(uintptr_t)batch->scorers[i],
                             (uint32_t)a->chains.size, &number, &fresh, "scorers", err));
    if (!fresh) continue;
    struct wf__rnn_chain chain = {.scorer = NULL};
    WF__TRY(wf__vec_push(&a->chains, chain, "scorers", err));
    a->chains.data[number].scorer = wf_scorer_ref(batch->scorers[i]);
    WF__TRY(wf__scorer_exchange(batch->scorers[i], a->scorer, a->cpu_scorer,
                                &a->chains.data[number].cpu_scorer, err));
  }
  return WF_OK;
}

wf_status wf__batch_rnn_take_chains(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err) {
  struct wf__rnn_scoring *a = worker->rnn_scoring;
  bool same;
  wf_status status = list_chains(a, batch, &same, err);
  const wf__flat_scorer **roots =
      status == WF_OK ? wf__calloc(a->chains.size, sizeof *roots) : NULL;
  if (status == WF_OK && roots == NULL)
    status = wf__fail_memory(err, a->chains.size * sizeof *roots, what);
  for (size_t i = 0; i < batch->count && status == WF_OK; i++)
    if (!batch->skip[i])
      roots[wf__map64_find(&a->chain_of, (uint64_t)(uintptr_t)batch->scorers[i])] =
          wf__gpu_scorer_of(&worker->scorers, batch, (uint32_t)i);
  if (status == WF_OK && !a->own_roots)
    status = wf__rnn_scoring_set_roots(a, roots, (uint32_t)a->chains.size, !same, err);
  free(roots);
  if (status != WF_OK) wf__rnn_scoring_free_chains(a);
  return status;
}

uint32_t wf__batch_rnn_root(const wf__gpu_worker *worker, const wf__batch *batch,
                            uint32_t utterance, uint32_t place) {
  const struct wf__rnn_scoring *a = worker->rnn_scoring;
  if (!worker->limits.deferred) return 0;
  return a->own_roots
             ? place
             : wf__map64_find(&a->chain_of, (uint64_t)(uintptr_t)batch->scorers[utterance]);
}

const wf_scorer *wf__batch_rnn_cpu_scorer(const wf__gpu_worker *worker, const wf_scorer *scorer) {
  return worker->rnn_scoring->chains
      .data[wf__map64_find(&worker->rnn_scoring->chain_of, (uint64_t)(uintptr_t)scorer)]
      .cpu_scorer;
}
