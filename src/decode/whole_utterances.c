/* whole_utterances.c - utterances of a batch whose search is wholly on a device (wf__answer_ops):
 * threads check their scores when they pack them, and fill their results after. */
#include <stdlib.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "decode/host_backend.h"
#include "decode/job_error.h"

struct whole {
  wf__host *host;
  const wf__batch *batch;
  const wf_scores **scores;  /* [count] */
  const wf_scorer **scorers; /* [count] */
  const wf_graph **graphs;   /* [count] */
  uint32_t *items;           /* [count] utterances of the batch */
  size_t count, told;
  bool has_scorers;
  atomic_bool *bad;           /* [count] a score cannot be used */
  bool *left;                 /* [count] by the device */
  const wf__whole_part *part; /* that is done */
  wf__path *paths;            /* [pool size] scratch */
  wf_error *errors;           /* [pool size] scratch */
  wf__job_error failed;
};

/* Frames of an utterance. */
static void look(void *user, uint32_t item, const wf_scores *frames) {
  struct whole *w = user;
  if (!wf__values_usable(frames, w->host->setup.num_columns)) atomic_store(&w->bad[item], true);
}

/* --- after ------------------------------------------------------------------------------- */

/* Repeats the device's search on the CPU, for the lattice. */
static wf_status follow(const struct whole *w, size_t k, int worker, bool *left, wf_error *err) {
  wf__host *host = w->host;
  const uint32_t i = w->items[w->part->items[k]];
  wf__searcher *searcher;
  WF__TRY(wf__host_searcher(host, host->first_follower + (size_t)worker, false, &searcher, err));
  WF__TRY(wf__utterance_restart(host, searcher, w->batch, i, err));
  WF__TRY(host->setup.answers->follow(w->part, k, searcher, left, err));
  return *left ? WF_OK : wf__utterance_end(host, searcher, w->batch, i, err);
}

static wf_status fill(const struct whole *w, size_t k, int worker, bool *left, wf_error *err) {
  const wf__host *host = w->host;
  wf__path *path = &w->paths[worker];
  const uint32_t item = w->part->items[k], i = w->items[item];
  bool good = true;
  *left = false;
  if (atomic_load(&w->bad[item]))
    WF__TRY(wf__host_check_scores(host, &w->batch->scores[i], 0, w->batch->results[i], &good, err));
  if (!good) return WF_OK;
  if (host->setup.options.lattice_beam > 0) return follow(w, k, worker, left, err);
  WF__TRY(host->setup.answers->path(w->part, k, path, left, err));
  return *left ? WF_OK
               : wf__result_fill(w->batch->results[i], w->graphs[item], &host->setup.options, path,
                                 err);
}

static void fill_item(void *user, uint64_t k, int worker) {
  struct whole *w = user;
  const uint32_t item = w->part->items[k];
  wf_error *err = &w->errors[worker];
  bool left;
  const wf_status status = fill(w, k, worker, &left, err);
  w->left[item] = left;
  wf__job_error_note(&w->failed, wf__record_error(w->host, w->batch, w->items[item], status, err),
                     err);
}

static wf_status done(void *user, const wf__whole_part *part, wf_error *err) {
  struct whole *w = user;
  w->part = part;
  wf__pool_run(w->host->pool, part->count, fill_item, w);
  return wf__job_error_end(&w->failed, err);
}

static wf_status progress(void *user, size_t num_done, wf_error *err) {
  struct whole *w = user;
  WF__TRY(wf__interrupted(err));
  if (num_done == w->told) return WF_OK;
  w->told = num_done;
  return wf__progress(w->batch->progress, "decoding", (double)num_done / (double)w->batch->count,
                      err);
}

/* --- a batch ----------------------------------------------------------------------------- */

static const wf_scorer *scorer_of(const wf__batch *batch, uint32_t i) {
  return batch->scorers != NULL ? batch->scorers[i] : NULL;
}

/* Moves the utterances that the device covers from `order` to the list. */
static void take(struct whole *w, uint32_t *order, uint32_t *count) {
  const wf__search_setup *setup = &w->host->setup;
  uint32_t left = 0;
  for (uint32_t k = 0; k < *count; k++) {
    const wf_graph *graph = wf__batch_graph(w->batch, order[k], setup->graph);
    if (setup->answers->covers(setup->shared, graph, scorer_of(w->batch, order[k]))) {
      w->scores[w->count] = &w->batch->scores[order[k]];
      w->graphs[w->count] = graph;
      w->scorers[w->count] = scorer_of(w->batch, order[k]);
      w->has_scorers = w->has_scorers || w->scorers[w->count] != NULL;
      w->items[w->count++] = order[k];
    } else {
      order[left++] = order[k];
    }
  }
  *count = left;
}

/* Moves those that the device has left back, to their places by length. */
static void give_back(const struct whole *w, uint32_t *order, uint32_t *count) {
  const wf_scores *scores = w->batch->scores;
  for (size_t k = 0; k < w->count; k++) {
    if (!w->left[k]) continue;
    uint32_t at = (*count)++;
    for (; at > 0 && scores[order[at - 1]].num_frames < scores[w->items[k]].num_frames; at--)
      order[at] = order[at - 1];
    order[at] = w->items[k];
  }
}

static wf_status decode(struct whole *w, uint32_t *order, uint32_t *count, wf_error *err) {
  take(w, order, count);
  if (w->count == 0) return WF_OK;
  const wf__whole_batch batch = {.scores = w->scores,
                                 .scorers = w->has_scorers ? w->scorers : NULL,
                                 .graphs = w->graphs,
                                 .count = w->count,
                                 .pool = w->host->pool,
                                 .look = look,
                                 .done = done,
                                 .progress = progress,
                                 .user = w};
  WF__TRY(w->host->setup.answers->decode(w->host->setup.shared, &batch, err));
  give_back(w, order, count);
  return WF_OK;
}

wf_status wf__whole_decode(wf__host *self, const wf__batch *batch, uint32_t *order, uint32_t *count,
                           wf_error *err) {
  const wf__answer_ops *answers = self->setup.answers;
  const uint64_t size = *count, threads = (uint64_t)wf__pool_size(self->pool);
  if (answers == NULL || answers->covers == NULL || size == 0) return WF_OK;
  struct whole w = {.host = self,
                    .batch = batch,
                    .scores = wf__alloc(size, sizeof *w.scores),
                    .scorers = wf__alloc(size, sizeof *w.scorers),
                    .graphs = wf__alloc(size, sizeof *w.graphs),
                    .items = wf__alloc(size, sizeof *w.items),
                    .bad = wf__calloc(size, sizeof *w.bad),
                    .left = wf__calloc(size, sizeof *w.left),
                    .paths = wf__calloc(threads, sizeof *w.paths),
                    .errors = wf__calloc(threads, sizeof *w.errors)};
  wf__job_error_init(&w.failed);
  wf_status status = w.scores != NULL && w.scorers != NULL && w.graphs != NULL && w.items != NULL &&
                             w.bad != NULL && w.left != NULL && w.paths != NULL && w.errors != NULL
                         ? decode(&w, order, count, err)
                         : wf__fail_memory(err, size * 16, "a batch");
  for (uint64_t t = 0; t < threads && w.paths != NULL; t++) wf__path_free(&w.paths[t]);
  free(w.scores);
  free(w.scorers);
  free(w.graphs);
  free(w.items);
  free(w.bad);
  free(w.left);
  free(w.paths);
  free(w.errors);
  return status;
}
