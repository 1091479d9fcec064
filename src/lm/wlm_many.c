/* wlm_many.c - batched look-ups. The results are those of wf__wlm_step, bit for bit.
 *
 * A look-up in a model larger than the caches is a chain of three or more cache misses: state,
 * tags, arc, back-off state. So GROUP look-ups go through the stages together, and each stage reads
 * what the previous one has prefetched. A finished look-up is replaced by the next.
 *
 *   seek    state -> its tags or bucket
 *   match   tags -> an arc, or the back-off state if no tag matches
 *   take    arc -> cost and next state */
#include "lm/wlm_many.h"

#include <math.h>

enum { GROUP = 32 };

struct query {
  uint64_t hash, where, place; /* place: index of the arc with the word's tag */
  uint32_t state, word, backoff;
  size_t number;
  float cost, backoff_cost;
  bool found, done;
};

static void fetch_arc(const wf__wlm_view *view, const uint8_t *arcs, uint64_t i) {
  uint64_t bits = view->cost_bits == 0
                      ? 8 * sizeof(wf__wlm_arc)
                      : (uint64_t)view->word_bits + view->next_bits + view->cost_bits;
  wf__wlm_fetch(arcs + i * bits / 8);
  wf__wlm_fetch(arcs + (i * bits + bits - 1) / 8); /* it may straddle two cache lines */
}

static void seek(const wf__wlm_view *view, struct query *q) {
  const wf__wlm_state *record = &view->states[q->state];
  q->where = record->where;
  q->backoff = record->backoff < q->state ? record->backoff : 0;
  q->backoff_cost = record->backoff_cost;
  wf__wlm_fetch_state(view, q->where, q->hash);
}

/* True if the home bucket or the small state may have the word: a tag matches, or the search must
 * go on in the next bucket. Prefetches the arc of the first matching tag. */
static bool match(const wf__wlm_view *view, struct query *q) {
  uint64_t first = q->where & (WF__WLM_LARGE - 1), count = q->where >> (WF__WLM_FIRST_BITS + 1);
  uint16_t tag = wf__wlm_tag(q->hash);
  if (!(q->where & WF__WLM_LARGE)) {
    if (first + count > view->num_small) return false;
    for (q->place = first; q->place < first + count; q->place++) {
      if (view->tags[q->place] != tag) continue;
      fetch_arc(view, view->small, q->place);
      return true;
    }
    return false;
  }
  if (count == 0 || first + count > view->num_buckets) return false;
  const wf__wlm_bucket *bucket = &view->buckets[first + wf__wlm_home(q->hash, count)];
  uint64_t head = wf__wlm_head(bucket), base = head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
           size = head >> WF__WLM_BASE_BITS & 15;
  uint32_t hits = 0;
  for (uint32_t i = 0; i < WF__WLM_BUCKET; i++) hits |= (uint32_t)(bucket->tags[i] == tag) << i;
  hits &= (1u << size) - 1;
  q->place = hits != 0 ? base + (uint64_t)__builtin_ctz(hits) : UINT64_MAX;
  if (hits != 0 && q->place < view->num_large) fetch_arc(view, view->large, q->place);
  return hits != 0 || (head & WF__WLM_MORE);
}

/* Checks the arc at q->place. If it has another word, does the full search. */
static bool take(const wf__wlm_view *view, const struct query *q, float *cost, uint32_t *next) {
  wf__wlm_arc arc;
  bool large = (q->where & WF__WLM_LARGE) != 0,
       there = q->place < (large ? view->num_large : view->num_small);
  if (there) arc = wf__wlm_arc_at(view, large ? view->large : view->small, q->place);
  if ((!there || arc.word != q->word) && !wf__wlm_find(view, q->where, q->word, q->hash, &arc))
    return false;
  *cost = q->cost + arc.cost;
  *next = arc.next < view->num_states ? arc.next : 0;
  return true;
}

static void take_unigram(const wf__wlm_view *view, const struct query *q, float *cost,
                         uint32_t *next) {
  const wf__wlm_unigram *unigram = &view->unigrams[q->word];
  *cost = q->cost + unigram->cost;
  *next = unigram->next < view->num_states ? unigram->next : 0;
}

static void back_off(const wf__wlm_view *view, struct query *q) {
  q->cost += q->backoff_cost;
  q->state = q->backoff;
  if (q->state != 0)
    wf__wlm_fetch(&view->states[q->state]);
  else
    wf__wlm_fetch(&view->unigrams[q->word]);
}

/* Advances each look-up by one state. */
static void advance(const wf__wlm_view *view, struct query *queries, int size, float *costs,
                    uint32_t *next) {
  for (int i = 0; i < size; i++)
    if (queries[i].state != 0) seek(view, &queries[i]);
  for (int i = 0; i < size; i++) {
    struct query *q = &queries[i];
    q->found = q->state != 0 && match(view, q);
    if (q->found) continue;
    if (q->state != 0) {
      back_off(view, q);
      continue;
    }
    take_unigram(view, q, &costs[q->number], &next[q->number]);
    q->done = true;
  }
  for (int i = 0; i < size; i++) {
    struct query *q = &queries[i];
    if (!q->found) continue;
    q->done = take(view, q, &costs[q->number], &next[q->number]);
    if (!q->done) back_off(view, q);
  }
}

/* Starts the next look-up that needs one; false at the end. */
static bool begin_next(const wf__wlm_view *view, const uint32_t *states, const uint32_t *words,
                       size_t count, size_t *at, float *costs, uint32_t *next, struct query *out) {
  for (; *at < count; (*at)++) {
    uint32_t state = states[*at], word = words[*at];
    costs[*at] = INFINITY;
    next[*at] = 0;
    if (word == WF__WLM_NONE || state >= view->num_states) continue;
    wf__wlm_fetch(state != 0 ? (const void *)&view->states[state]
                             : (const void *)&view->unigrams[word]);
    *out =
        (struct query){.hash = wf__wlm_hash(word), .state = state, .word = word, .number = (*at)++};
    return true;
  }
  return false;
}

void wf__wlm_step_many(const wf__wlm_view *view, const uint32_t *states, const uint32_t *words,
                       size_t count, float *costs, uint32_t *next) {
  struct query queries[GROUP];
  size_t at = 0;
  int size = 0;
  while (size < GROUP && begin_next(view, states, words, count, &at, costs, next, &queries[size]))
    size++;
  while (size > 0) {
    advance(view, queries, size, costs, next);
    for (int i = size; i-- > 0;)
      if (queries[i].done && !begin_next(view, states, words, count, &at, costs, next, &queries[i]))
        queries[i] = queries[--size];
  }
}
