/* transducer_lanes.c - utterances of a batch that are searched together, because requests of all of
 * them are answered at once: those to the model, by a GPU or the caller's functions; those to a
 * scorer that scores in batches, if all utterances have the same one. What is not answered for all
 * together, a lane answers itself: a built-in model on the CPU, and other scorers. */
#include <stdlib.h>

#include "decode/cpu_backend.h"
#include "decode/cpu_rounds.h"

/* On the CPU, where searches keep rows and states of their own. */
enum { CPU_LANES = 64, LANE_FLOATS = 1 << 19 };
#define MOST_ANSWER_BYTES ((uint64_t)512 << 20) /* of all groups, in page-locked memory */

struct lane {
  int where;        /* the GPU that has the scores */
  bool sent;        /* they were put into a request */
  bool waits_model; /* for an answer to all */
};

struct together {
  struct wf__cpu_backend *self;
  const wf__batch *batch;
  size_t num_lanes, num_groups;
  bool own_model;    /* lanes answer the requests to the model themselves */
  bool joint_scorer; /* those to the scorer are answered together */
  struct lane *lanes;
  wf__predictions *waiting[CPU_LANES];
  wf__prediction_work work;
};

void wf__cpu_free_transducers(struct wf__cpu_backend *self) {
  for (size_t i = 0; i < self->num_transducer_searches && self->transducer_searches != NULL; i++) {
    wf__transducer_search_free(self->transducer_searches[i]);
    self->transducer_searches[i] = NULL;
  }
  for (int g = 0; g < WF__TRANSDUCER_GROUPS * WF__TRANSDUCER_GPUS; g++) {
    wf__transducer_group_close(self->transducer_groups[g]);
    self->transducer_groups[g] = NULL;
  }
}

/* Group g is on GPU g % num_gpus. */
static const wf__transducer_weights *gpu_of(const struct together *t, size_t lane) {
  return t->self->transducer_weights[lane % t->num_groups % t->self->num_gpus];
}

/* Answers what the lane answers itself. *waits: there are other requests. */
static wf_status answer_own(const struct together *t, wf__transducer_search *search, bool *waits,
                            wf_error *err) {
  const bool model = search->stage == WF__TRANSDUCER_STEP, scorer = search->scorer_waits;
  if (model && t->own_model) WF__TRY(wf__transducer_answer_model(search, err));
  if (scorer && !t->joint_scorer) WF__TRY(wf__transducer_score_requests(&search, 1, NULL, err));
  *waits = (model && !t->own_model) || (scorer && t->joint_scorer);
  return WF_OK;
}

/* Goes on until requests have to be answered for all lanes together, or to the end. */
static wf_status go_on(const struct together *t, wf__transducer_search *search, bool *waits,
                       wf_error *err) {
  bool asks = true;
  *waits = false;
  while (asks && !*waits) {
    asks = false;
    if (!search->ended) WF__TRY(wf__transducer_search_go_on(search, &asks, err));
    if (!asks) WF__TRY(wf__transducer_search_go_to_end(search, &asks, err));
    if (asks) WF__TRY(answer_own(t, search, waits, err));
  }
  return WF_OK;
}

static wf_status begin(struct together *t, size_t i, uint32_t utterance, bool *good,
                       wf_error *err) {
  wf__transducer_search *search = t->self->transducer_searches[i];
  const wf_scores *scores = &t->batch->scores[utterance];
  t->lanes[i] = (struct lane){.where = -1};
  if (t->self->num_gpus > 0)
    WF__TRY(wf__transducer_scores_where(gpu_of(t, i), scores, t->self->stream, &t->lanes[i].where,
                                        err));
  WF__TRY(wf__cpu_transducer_begin(t->self, search, t->batch, utterance, good, err));
  return *good ? wf__transducer_search_feed(search, scores, err) : WF_OK;
}

static wf_status run_lane(void *user, size_t i, uint32_t utterance, bool begins, bool *waits,
                          wf_error *err) {
  struct together *t = user;
  struct lane *lane = &t->lanes[i];
  wf__transducer_search *search = t->self->transducer_searches[i];
  bool good = true;
  if (begins) WF__TRY(begin(t, i, utterance, &good, err));
  if (!good) return WF_OK;
  WF__TRY(go_on(t, search, waits, err));
  lane->waits_model = *waits && search->stage == WF__TRANSDUCER_STEP && !t->own_model;
  if (!*waits) return wf__cpu_transducer_end(t->self, search, t->batch, utterance, err);
  if (!lane->waits_model || t->self->num_gpus == 0) return WF_OK;
  wf__transducer_group_put(t->self->transducer_groups[i % t->num_groups], i / t->num_groups,
                           lane->sent ? NULL : &t->batch->scores[utterance], lane->where,
                           &search->predictions);
  lane->sent = true;
  return WF_OK;
}

/* --- the scorer -------------------------------------------------------------------------- */

/* Gives all searches the scorer, with memories that are joined. */
static wf_status join_scorer(const struct together *t, const wf_scorer *scorer, wf_error *err) {
  wf__transducer_search *const *lanes = t->self->transducer_searches;
  /* Memories of the last batch stay, if it had this scorer, too. */
  const bool same = lanes[0]->scoring.scorer == scorer && lanes[0]->joined;
  for (size_t i = 0; i < t->self->num_transducer_searches && !same; i++)
    if (lanes[i] != NULL) WF__TRY(wf__transducer_search_set_scorer(lanes[i], NULL, err));
  WF__TRY(wf__transducer_search_set_scorer(lanes[0], scorer, err));
  lanes[0]->joined = true;
  for (size_t i = 1; i < t->num_lanes; i++)
    WF__TRY(wf__transducer_search_join_scorer(lanes[i], lanes[0], err));
  return WF_OK;
}

/* Other groups have no requests now. */
static wf_status score_words(const struct together *t, const bool *lanes_wait, wf_error *err) {
  bool any = false;
  for (size_t i = 0; i < t->num_lanes && t->joint_scorer; i++)
    any = any || (lanes_wait[i] && t->self->transducer_searches[i]->scorer_waits);
  return any ? wf__transducer_score_requests(t->self->transducer_searches, t->num_lanes,
                                             t->self->pool, err)
             : WF_OK;
}

/* --- models behind functions ------------------------------------------------------------- */

static void count_request(wf_transducer_stats *stats, const wf__predictions *predictions) {
  stats->num_rows += predictions->count;
  stats->num_contexts += predictions->pending.size;
}

static wf_status call_functions(struct together *t, const bool *lanes_wait, wf_error *err) {
  size_t count = 0;
  for (size_t i = 0; i < t->num_lanes; i++) {
    if (!lanes_wait[i] || !t->lanes[i].waits_model) continue;
    t->waiting[count] = &t->self->transducer_searches[i]->predictions;
    count_request(&t->self->transducer_stats, t->waiting[count++]);
  }
  return wf__predictions_answer(t->waiting, count, &t->work, err);
}

/* --- a GPU ------------------------------------------------------------------------------- */

wf_status wf__cpu_submit(struct wf__cpu_backend *self, wf__transducer_group *group, wf_error *err) {
  wf__transducer_counts counts;
  WF__TRY(wf__transducer_group_submit(group, &counts, err));
  self->transducer_stats.num_rows += counts.num_rows;
  self->transducer_stats.num_contexts += counts.num_contexts;
  return WF_OK;
}

static wf_status wait_for_gpu(void *user, size_t group, wf_error *err) {
  const struct together *t = user;
  return wf__transducer_group_wait(t->self->transducer_groups[group], err);
}

static uint32_t most_hypotheses(const struct wf__cpu_backend *self) {
  return self->options.greedy ? 1 : (uint32_t)self->options.max_hypotheses;
}

/* If every token has an arc in every state, of a row only the best matter, as many as there are
 * hypotheses: each makes another context. With a lattice, all do. */
wf__score_cut wf__cpu_score_cut(const struct wf__cpu_backend *self) {
  const wf_decoder_options *o = &self->options;
  const bool best_alone = self->transducer_arcs.all_alike && o->lattice_beam <= 0;
  return (wf__score_cut){o->acoustic_scale, o->blank_penalty, o->beam, o->greedy,
                         best_alone ? most_hypotheses(self) : 0};
}

static wf_status begin_groups(struct together *t, const uint32_t *order, wf_error *err) {
  struct wf__cpu_backend *self = t->self;
  const wf__score_cut cut = wf__cpu_score_cut(self);
  int64_t num_frames[WF__TRANSDUCER_LANES];
  for (size_t g = 0; g < t->num_groups; g++) {
    const size_t d = g % self->num_gpus;
    size_t count = 0;
    for (size_t i = g; i < t->num_lanes; i += t->num_groups)
      num_frames[count++] = t->batch->scores[order[i]].num_frames; /* later ones are shorter */
    if (self->transducer_groups[g] == NULL)
      WF__TRY(
          wf__transducer_group_open(self->transducer_weights[d], &self->transducer_groups[g], err));
    WF__TRY(wf__transducer_group_begin(self->transducer_groups[g], &cut, num_frames, count,
                                       self->stream, err));
  }
  return WF_OK;
}

/* --- a batch ----------------------------------------------------------------------------- */

size_t wf__cpu_most_lanes(const struct wf__cpu_backend *self) {
  const uint64_t bytes =
      most_hypotheses(self) * wf__transducer_num_logits(self->transducer) * sizeof(float);
  const uint64_t most = MOST_ANSWER_BYTES / bytes;
  return most < WF__TRANSDUCER_GROUPS  ? WF__TRANSDUCER_GROUPS
         : most > WF__TRANSDUCER_LANES ? WF__TRANSDUCER_LANES
                                       : (size_t)most;
}

static size_t choose_lanes(const struct wf__cpu_backend *self, uint32_t count) {
  const size_t most = self->num_gpus > 0 ? self->num_gpus * wf__cpu_most_lanes(self) : CPU_LANES;
  return count < most ? count : most;
}

/* Lane i is of group i % groups, so that a lane has the same group in a batch of any size: its
 * contexts are in that group's memory. */
static size_t choose_groups(const struct wf__cpu_backend *self, size_t num_lanes) {
  const size_t most = self->num_gpus > 0 ? WF__TRANSDUCER_GROUPS * self->num_gpus : 1;
  return num_lanes < most ? num_lanes : most;
}

void wf__cpu_count_rounds(struct wf__cpu_backend *self, const wf__rounds *rounds) {
  wf_transducer_stats *stats = &self->transducer_stats;
  stats->num_rounds += rounds->num_rounds;
  stats->search_s += rounds->run_s;
  stats->submit_s += rounds->score_s;
  stats->wait_s += rounds->wait_s;
}

/* The GPU begins first: it works while the scorer does. */
static wf_status score(void *user, size_t group, const bool *lanes_wait, wf_error *err) {
  struct together *t = user;
  if (t->self->num_gpus > 0)
    WF__TRY(wf__cpu_submit(t->self, t->self->transducer_groups[group], err));
  else if (!t->own_model)
    WF__TRY(call_functions(t, lanes_wait, err));
  return score_words(t, lanes_wait, err);
}

static wf_status open_lanes(const struct together *t, const wf_scorer *scorer, wf_error *err) {
  wf__transducer_search *search;
  for (size_t i = 0; i < t->num_lanes; i++) {
    WF__TRY(wf__cpu_transducer_search(t->self, i, &search, err));
    if (t->self->num_gpus == 0) search->predictions.most_floats = LANE_FLOATS;
    search->defers = true;
    if (search->joined && !t->joint_scorer)
      WF__TRY(wf__transducer_search_set_scorer(search, NULL, err));
  }
  return t->joint_scorer ? join_scorer(t, scorer, err) : WF_OK;
}

static wf_status decode_together(struct together *t, const uint32_t *order, uint32_t count,
                                 wf_error *err) {
  struct wf__cpu_backend *self = t->self;
  const bool on_gpu = self->num_gpus > 0;
  t->num_lanes = choose_lanes(self, count);
  t->num_groups = choose_groups(self, t->num_lanes);
  t->own_model = !on_gpu && self->transducer->network != NULL;
  t->joint_scorer = wf__cpu_can_batch(t->batch, order, count);
  t->lanes = wf__calloc(t->num_lanes, sizeof *t->lanes);
  if (t->lanes == NULL) return wf__fail_memory(err, t->num_lanes * sizeof *t->lanes, "a batch");
  const wf_scorer *scorer = t->joint_scorer ? t->batch->scorers[order[0]] : NULL;
  WF__TRY(open_lanes(t, wf__scorer_for_transducer(scorer), err));
  if (on_gpu) WF__TRY(begin_groups(t, order, err));
  wf__rounds rounds = {.pool = self->pool,
                       .batch = t->batch,
                       .num_lanes = t->num_lanes,
                       .num_groups = t->num_groups,
                       .user = t,
                       .run = run_lane,
                       .score = score,
                       .score_uses_pool = t->joint_scorer,
                       .wait = on_gpu ? wait_for_gpu : NULL};
  wf_status status = wf__cpu_rounds(&rounds, order, count, err);
  if (!t->own_model) wf__cpu_count_rounds(self, &rounds);
  return status;
}

wf_status wf__cpu_decode_transducers(struct wf__cpu_backend *self, const wf__batch *batch,
                                     const uint32_t *order, uint32_t count, wf_error *err) {
  if (self->broken)
    return wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  if (count == 0) return WF_OK;
  struct together *t = wf__calloc(1, sizeof *t);
  if (t == NULL) return wf__fail_memory(err, sizeof *t, "a batch");
  t->self = self;
  t->batch = batch;
  wf_status status = decode_together(t, order, count, err);
  if (status != WF_OK) wf__cpu_free_transducers(self); /* answers are under way, or lost */
  self->broken = self->num_gpus > 0 && status == WF_ERR_DEVICE;
  wf__prediction_work_free(&t->work);
  free(t->lanes);
  free(t);
  return status;
}
