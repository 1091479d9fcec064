/* wlm_join.c - joins states and arcs, level by level, subtracts the small model, and writes the
 * file. */
#include <math.h>

#include "base/callbacks.h"
#include "lm/wlm_build.h"

struct join {
  wf__wlm_build *build;
  wf__wlm_writer *writer;
  uint64_t level_begin[WF_LM_MAX_ORDER + 1];
  bool plain;
  WF__VEC(wf__wlm_arc) arcs; /* of one state */
};

/* scale * large - small. A probability of 0 in either model is 0 in the difference. */
static float fold(const struct join *join, float large, double small) {
  if (join->plain) return large;
  if (large == INFINITY || small == INFINITY) return INFINITY;
  return (float)((double)join->build->options.lm_scale * (double)large - small);
}

static uint32_t state_of(const struct join *join, uint32_t level, uint32_t number) {
  return (uint32_t)(join->level_begin[level] + number);
}

static bool subtracts(const struct join *join) {
  return !join->plain && join->build->small.lm != NULL;
}

static wf_status write_state(struct join *join, int k, const uint32_t *state, wf_error *err) {
  const wf__wlm_small *small = &join->build->small;
  double small_backoff = 0;
  if (subtracts(join)) {
    uint32_t at = wf__wlm_small_state(small, k, state);
    if (wf__lm_level(small->lm, at) == k)
      small_backoff = (double)small->lm->states[at].backoff_cost;
    for (uint64_t i = 0; i < join->arcs.size; i++)
      join->arcs.data[i].cost = fold(join, join->arcs.data[i].cost,
                                     wf__wlm_small_cost(small, at, join->arcs.data[i].word));
  } else {
    for (uint64_t i = 0; i < join->arcs.size; i++)
      join->arcs.data[i].cost = fold(join, join->arcs.data[i].cost, 0);
  }
  float backoff_cost = fold(join, wf__float_of_bits(state[k + 2]), small_backoff);
  return wf__wlm_writer_state(join->writer, state_of(join, state[k], state[k + 1]), backoff_cost,
                              join->arcs.data, join->arcs.size, err);
}

static int compare(const uint32_t *a, const uint32_t *b, int size) {
  for (int i = 0; i < size; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

/* Merges the states of level k with the arcs of order k + 1. Arcs whose context is not a state are
 * left out: the context is missing and will be created for the next round. */
static wf_status join_level(struct join *join, int k, wf_error *err) {
  wf__wlm_build *build = join->build;
  const uint32_t *state, *arc;
  WF__TRY(wf__sort_next(build->arcs[k + 1], &arc, err));
  for (uint64_t done = 0;; done++) {
    WF__TRY(wf__sort_next(build->states[k], &state, err));
    if (state == NULL) return WF_OK;
    join->arcs.size = 0;
    for (int order; arc != NULL && (order = compare(arc, state, k)) <= 0;) {
      wf__wlm_arc out = {arc[k], wf__float_of_bits(arc[k + 1]),
                         state_of(join, arc[k + 2], arc[k + 3])};
      if (order == 0) WF__TRY(wf__vec_push(&join->arcs, out, "n-grams of a history", err));
      WF__TRY(wf__sort_next(build->arcs[k + 1], &arc, err));
    }
    WF__TRY(write_state(join, k, state, err));
    if (done % 1048576 == 0)
      WF__TRY(wf__progress(build->progress, "joining",
                           (double)done / (double)(build->num_states[k] + 1), err));
  }
}

static wf_status write_unigrams(struct join *join, wf_error *err) {
  wf__wlm_build *build = join->build;
  for (uint32_t w = 0; w < build->num_words; w++) {
    const wf__wlm_arc *unigram = &build->unigrams.data[w];
    if (unigram->word == WF__LM_NONE) continue;
    double small =
        subtracts(join) && w != build->info.bos ? wf__wlm_small_cost(&build->small, 0, w) : 0;
    wf__wlm_writer_unigram(join->writer, w, fold(join, unigram->cost, small),
                           unigram->next == WF__LM_NONE ? 0 : state_of(join, 1, unigram->next));
  }
  return wf__wlm_writer_state(join->writer, 0, 0, NULL, 0, err);
}

static wf_status write_all(struct join *join, const char *path, wf_error *err) {
  wf__wlm_build *build = join->build;
  wf__wlm_loss loss;
  WF__TRY(write_unigrams(join, err));
  for (int k = 1; k < build->info.order; k++) WF__TRY(join_level(join, k, err));
  WF__TRY(wf__wlm_writer_close(join->writer, build->num_ngrams, path, &loss, build->progress, err));
  if (join->plain) return WF_OK;
  build->stats->loss_mean = loss.mean;
  build->stats->loss_worst = loss.worst;
  return WF_OK;
}

wf_status wf__wlm_join(wf__wlm_build *build, const char *path, bool plain, wf_error *err) {
  const wf_lm_convert_options *o = &build->options;
  const wf__ngram_stream_info *info = &build->info;
  struct join join = {.build = build, .plain = plain};
  uint64_t num_states = 1;
  for (int k = 1; k < info->order; num_states += build->num_states[k++])
    join.level_begin[k] = num_states;
  if (num_states >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%llu histories, at most 2^32 - 2 are supported",
                    (unsigned long long)num_states);
  uint32_t bos = build->unigrams.data[info->bos].next;
  wf__wlm_plan plan = {.order = info->order,
                       .words = info->words,
                       .num_words = build->num_words,
                       .bos = info->bos,
                       .eos = info->eos != WF__LM_NONE ? info->eos : 0,
                       .unk = info->unk,
                       .start = bos == WF__LM_NONE ? 0 : state_of(&join, 1, bos),
                       .num_states = num_states,
                       .scale = plain ? 1 : o->lm_scale,
                       .difference = !plain && build->small.lm != NULL,
                       .pack = plain || o->pack == WF_PACK_NONE ? 0
                               : o->pack == WF_PACK_EXACT       ? 32
                                                                : o->cost_bits,
                       .memory = (uint64_t)o->memory / 4,
                       .folder = build->folder};
  memcpy(plan.level_begin, join.level_begin, sizeof plan.level_begin);
  wf_status status = wf__wlm_writer_create(&plan, &join.writer, err);
  for (int k = 1; k < info->order && status == WF_OK; k++) {
    status = wf__sort_rewind(build->states[k], err);
    if (status == WF_OK) status = wf__sort_rewind(build->arcs[k + 1], err);
  }
  if (status == WF_OK) status = write_all(&join, path, err);
  wf__wlm_writer_free(join.writer);
  wf__vec_free(&join.arcs);
  return status;
}
