/* whole_chunks.c - chunks of streams whose search is wholly on a device (wf__answer_ops). It begins with
 * the tokens that wait in a stream, and the stream's own search follows it. */
#include <stdlib.h>

#include "base/interrupt.h"
#include "decode/host_backend.h"
#include "decode/job_error.h"

struct chunks {
  const wf__host *host;
  const wf__batch *batch;
  void *const *channels;
  const uint32_t *order;    /* streams */
  const wf_scores **scores; /* [count] of those that the device covers, ... */
  const wf_scorer **scorers;
  const wf_graph **graphs;
  wf__searcher **searchers; /* of the same; before `take`, of all streams, NULL: not covered */
  size_t *places;
  uint32_t *items;
  size_t count;
  bool has_scorers;
  bool *left;                 /* [count] by the device */
  const wf__whole_part *part; /* that is done */
  wf_error *errors;           /* [pool size] scratch */
  wf__job_error failed;
};

static wf__stream_state *state_of(const struct chunks *c, uint32_t item) {
  return c->channels[item];
}

static void note(struct chunks *c, uint32_t item, wf_status status, const wf_error *err) {
  wf__job_error_note(&c->failed, wf__record_error(c->host, c->batch, item, status, err), err);
}

wf_status wf__chunk_begin(const wf__host *self, const wf__batch *batch, void *const *channels,
                          uint32_t item, wf__searcher **out, bool *good, wf_error *err) {
  wf__stream_state *state = channels[item];
  wf_result *result = batch->results[item];
  *good = false;
  if (result->status != WF_OK) return WF_OK; /* it failed before */
  bool right;
  WF__TRY(
      wf__host_check_scores(self, &batch->scores[item], result->num_frames, result, &right, err));
  *good = right;
  return right ? state->ops->enter(&self->setup, state, NULL, out, err) : WF_OK;
}

static wf_status leave(const struct chunks *c, uint32_t item, wf__searcher *searcher,
                       wf_status status, wf_error *err) {
  return state_of(c, item)->ops->leave(state_of(c, item), searcher, status, err);
}

/* --- before ------------------------------------------------------------------------------ */

/* Enters a stream; leaves it again if the device does not cover it. */
static void enter_item(void *user, uint64_t k, int worker) {
  struct chunks *c = user;
  const uint32_t item = c->order[k];
  wf_error *err = &c->errors[worker];
  wf__searcher *searcher = NULL;
  bool good;
  wf_status status = wf__chunk_begin(c->host, c->batch, c->channels, item, &searcher, &good, err);
  const bool covered = good && status == WF_OK &&
                       c->host->setup.answers->covers_chunk(c->host->setup.shared, searcher);
  if (good && !covered) status = leave(c, item, searcher, status, err);
  c->searchers[k] = covered ? searcher : NULL;
  note(c, item, status, err);
}

/* Moves the streams that are entered from `order` to the list. */
static void take(struct chunks *c, uint32_t *order, uint32_t *count) {
  uint32_t left = 0;
  for (uint32_t k = 0; k < *count; k++) {
    wf__searcher *searcher = c->searchers[k];
    if (searcher == NULL) {
      order[left++] = order[k];
      continue;
    }
    c->scores[c->count] = &c->batch->scores[order[k]];
    c->scorers[c->count] = searcher->scoring.scorer;
    c->graphs[c->count] = searcher->graph;
    c->has_scorers = c->has_scorers || searcher->scoring.scorer != NULL;
    c->searchers[c->count] = searcher;
    c->places[c->count] = state_of(c, order[k])->place;
    c->items[c->count++] = order[k];
  }
  *count = left;
}

/* --- after ------------------------------------------------------------------------------- */

static wf_status follow(const struct chunks *c, size_t k, wf_error *err) {
  const uint32_t i = c->part->items[k];
  wf__searcher *searcher = c->searchers[i];
  wf_status status = c->host->setup.answers->follow(c->part, k, searcher, &c->left[i], err);
  if (status == WF_OK && !c->left[i]) status = searcher->ops->collect(searcher, false, err);
  c->searchers[i] = NULL;
  return leave(c, c->items[i], searcher, status, err);
}

static void follow_item(void *user, uint64_t k, int worker) {
  struct chunks *c = user;
  wf_error *err = &c->errors[worker];
  note(c, c->items[c->part->items[k]], follow(c, k, err), err);
}

static wf_status done(void *user, const wf__whole_part *part, wf_error *err) {
  struct chunks *c = user;
  c->part = part;
  wf__pool_run(c->host->pool, part->count, follow_item, c);
  return wf__job_error_end(&c->failed, err);
}

/* They were looked at before. */
static void look(void *user, uint32_t item, const wf_scores *frames) {}

static wf_status progress(void *user, size_t num_done, wf_error *err) {
  return wf__interrupted(err);
}

/* --- a batch ----------------------------------------------------------------------------- */

static wf_status search(struct chunks *c, wf_error *err) {
  const wf__whole_batch batch = {.scores = c->scores,
                                 .scorers = c->has_scorers ? c->scorers : NULL,
                                 .graphs = c->graphs,
                                 .searchers = c->searchers,
                                 .places = c->places,
                                 .count = c->count,
                                 .pool = c->host->pool,
                                 .look = look,
                                 .done = done,
                                 .progress = progress,
                                 .user = c};
  wf_status status = c->host->setup.answers->decode(c->host->setup.shared, &batch, err);
  for (size_t i = 0; i < c->count && status != WF_OK; i++)
    if (c->searchers[i] != NULL) status = leave(c, c->items[i], c->searchers[i], status, err);
  return status;
}

static wf_status advance(struct chunks *c, uint32_t *order, uint32_t *count, wf_error *err) {
  wf__pool_run(c->host->pool, *count, enter_item, c);
  const uint32_t size = *count;
  take(c, order, count);
  for (size_t i = c->count; i < size; i++) c->searchers[i] = NULL;
  wf_status status = wf__job_error_end(&c->failed, err);
  if (c->count == 0) return status;
  if (status == WF_OK) return search(c, err);
  for (size_t i = 0; i < c->count; i++)
    status = leave(c, c->items[i], c->searchers[i], status, err);
  return status;
}

wf_status wf__whole_advance(wf__host *self, const wf__batch *batch, void *const *channels,
                            uint32_t *order, uint32_t *count, wf_error *err) {
  const wf__answer_ops *answers = self->setup.answers;
  const uint64_t size = *count;
  if (size == 0 || answers->covers_chunk == NULL ||
      !answers->covers_chunk(self->setup.shared, NULL))
    return WF_OK;
  struct chunks c = {.host = self,
                     .batch = batch,
                     .channels = channels,
                     .order = order,
                     .scores = wf__alloc(size, sizeof *c.scores),
                     .scorers = wf__alloc(size, sizeof *c.scorers),
                     .graphs = wf__alloc(size, sizeof *c.graphs),
                     .searchers = wf__calloc(size, sizeof *c.searchers),
                     .places = wf__alloc(size, sizeof *c.places),
                     .items = wf__alloc(size, sizeof *c.items),
                     .left = wf__calloc(size, sizeof *c.left),
                     .errors = wf__calloc((uint64_t)wf__pool_size(self->pool), sizeof *c.errors)};
  wf__job_error_init(&c.failed);
  wf_status status = c.scores != NULL && c.scorers != NULL && c.graphs != NULL &&
                             c.searchers != NULL && c.places != NULL && c.items != NULL &&
                             c.left != NULL && c.errors != NULL
                         ? advance(&c, order, count, err)
                         : wf__fail_memory(err, size * 32, "a batch");
  for (size_t i = 0; i < c.count && status == WF_OK; i++)
    if (c.left[i]) order[(*count)++] = c.items[i];
  free(c.scores);
  free(c.scorers);
  free(c.graphs);
  free(c.searchers);
  free(c.places);
  free(c.items);
  free(c.left);
  free(c.errors);
  return status;
}
