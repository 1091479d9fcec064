/* upload_scorers.c - see upload_scorers.h. */
#include "cuda/decoder/upload_scorers.h"

#include "cuda/decoder/batch_rnn_scoring.h"
#include "cuda/decoder/rnn_scoring.h"
#include "cuda/decoder/stream_rnn_scoring.h"
#include "scorer/rnn_scorer.h"

enum { MOST_TABLE_BITS = 12 }; /* of a list whose words the filter can tell apart */

static wf__model_room room_of(const wf__gpu_worker *worker) {
  return (wf__model_room){worker->device, (uint64_t)worker->options.gpu_memory,
                          worker->uploaded.bytes, worker->copy_stream};
}

/* Can the kernels for boosts of few contexts (search/boost_pairs.cuh) search with this scorer? The
 * numbers of pairs must have 31 bits. Of a long list most words pass the filter; then the kernels
 * for any scorer, which look words up by whole warps, are faster (docs/engineering/gpu.md). */
static bool has_few_contexts(const wf__gpu_worker *worker, const wf__flat_scorer *scorer) {
  const wf__lane_graph *graph = &worker->launches.params.graph;
  const wf_decoder_options *options = &worker->options;
  const uint64_t contexts = scorer->bits < 31 ? wf__flat_contexts(scorer) : UINT32_MAX;
  for (int i = 0; i < scorer->num_parts; i++) {
    const wf__flat_part *part = &scorer->parts[i];
    if ((part->kind != WF__FLAT_WORDS && part->kind != WF__FLAT_PHRASES) ||
        part->table_bits > MOST_TABLE_BITS)
      return false;
  }
  return options->lattice_beam == 0 && options->recombine != WF_RECOMBINE_STATE &&
         contexts * graph->num_states <= 0x7fffffff &&
         contexts * graph->num_arcs <= WF__LANE_MAX_ARCS;
}

wf_status wf__gpu_take_scorers(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  const wf__model_room room = room_of(worker);
  wf__gpu_begin_scorers(scorers);
  WF__TRY(wf__batch_rnn_take(worker, batch, &worker->limits.deferred, err));
  for (size_t i = 0; i < batch->count && batch->scorers != NULL; i++)
    if (!batch->skip[i] && batch->scorers[i] != NULL &&
        wf__rnn_scorer_of(batch->scorers[i]) == NULL)
      WF__TRY(wf__scorer_store_add(&scorers->batch, batch->scorers[i], err));
  const uint64_t num_flats = scorers->batch.flats.size;
  worker->limits.boosted = num_flats > 0 && !worker->limits.deferred;
  for (uint64_t i = 0; i < num_flats && worker->limits.boosted; i++)
    worker->limits.boosted = has_few_contexts(worker, &scorers->batch.flats.data[i]);
  worker->limits.scored = worker->limits.deferred || (num_flats > 0 && !worker->limits.boosted);
  WF__TRY(wf__gpu_send_scorers(scorers, &room, worker->threads.pool, err));
  if (worker->limits.deferred) WF__TRY(wf__batch_rnn_take_chains(worker, batch, err));
  worker->limits.scorer_bytes = scorers->batch.bytes + wf__gpu_model_bytes(&scorers->models);
  for (uint64_t i = 0; i < scorers->lists.size; i++)
    worker->limits.scorer_bytes += scorers->lists.data[i].bytes;
  return WF_OK;
}

/* --- scorers of streams ------------------------------------------------------------------ */

/* With a recurrent part: makes its root, after the other parts are sent. */
static wf_status acquire_rnn_scoring(wf__gpu_worker *worker, wf__shared_scorer *shared,
                                     const wf_scorer *recurrent, wf_error *err) {
  uint32_t root;
  struct wf__rnn_scoring *rnn_scoring;
  WF__TRY(wf__rnn_scoring_acquire(worker, recurrent, &rnn_scoring, err));
  const wf_status status =
      wf__rnn_scoring_add_root(rnn_scoring, wf__shared_scorer_there(shared), &root, err);
  if (status != WF_OK) {
    wf__rnn_scoring_release(rnn_scoring);
    return status;
  }
  shared->rnn_scoring = rnn_scoring;
  shared->root = root;
  wf_scorer_free(shared->on_cpu);
  return wf__scorer_exchange(shared->scorer, recurrent, wf__rnn_scoring_cpu_scorer(rnn_scoring),
                             &shared->on_cpu, err);
}

wf_status wf__gpu_acquire_scorer(wf__gpu_worker *worker, const wf_scorer *scorer,
                                 wf__shared_scorer **out, wf_error *err) {
  const wf_scorer *recurrent = wf__rnn_part_of(scorer);
  *out = worker->shared_scorers;
  while (*out != NULL && (*out)->scorer != scorer) *out = (*out)->next;
  if (*out != NULL) {
    (*out)->users++;
    return WF_OK;
  }
  wf__shared_scorer *shared = wf__calloc(1, sizeof *shared);
  if (shared == NULL) return wf__fail_memory(err, sizeof *shared, "a scorer");
  shared->scorer = wf_scorer_ref(scorer);
  shared->on_cpu = wf_scorer_ref(scorer);
  shared->users = 1;
  const wf__model_room room = room_of(worker);
  wf_status status =
      recurrent != scorer ? wf__scorer_store_add(&shared->store, scorer, err) : WF_OK;
  if (status == WF_OK)
    status = wf__scorer_store_send(&worker->scorers, &room, &shared->store, NULL, err);
  shared->boosts = status == WF_OK && recurrent == NULL &&
                   has_few_contexts(worker, &shared->store.flats.data[0]);
  shared->holds_lists = status == WF_OK;
  if (shared->holds_lists) wf__scorer_store_hold(&worker->scorers, &shared->store, 1);
  if (status == WF_OK && recurrent != NULL)
    status = acquire_rnn_scoring(worker, shared, recurrent, err);
  shared->next = worker->shared_scorers;
  worker->shared_scorers = shared;
  *out = shared;
  if (status != WF_OK) wf__gpu_release_scorer(worker, out);
  return status;
}

void wf__gpu_release_scorer(wf__gpu_worker *worker, wf__shared_scorer **place) {
  wf__shared_scorer *shared = *place, **at = &worker->shared_scorers;
  *place = NULL;
  if (shared == NULL || --shared->users > 0) return;
  while (*at != shared) at = &(*at)->next;
  *at = shared->next;
  if (shared->rnn_scoring != NULL) {
    wf__rnn_scoring_drop_root(shared->rnn_scoring, shared->root);
    wf__rnn_scoring_release(shared->rnn_scoring);
  }
  if (shared->holds_lists) wf__scorer_store_hold(&worker->scorers, &shared->store, -1);
  wf__gpu_drop_lists(&worker->scorers, worker->options.gpu_memory > 0);
  wf__scorer_store_free(&shared->store);
  wf_scorer_free(shared->on_cpu);
  wf_scorer_free(shared->scorer);
  free(shared);
}

const wf__flat_scorer *wf__shared_scorer_there(const wf__shared_scorer *shared) {
  return shared != NULL ? (const wf__flat_scorer *)(const void *)shared->store.memory : NULL;
}
