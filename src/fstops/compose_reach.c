/* compose_reach.c - finds the pairs that are reached from the start, and those of them that reach a
 * final pair. Bits are added to rows until a fixpoint is reached.
 *
 *   bits    [num_rows * num_words]    pairs found
 *   fresh   [num_rows * num_words]    pairs found whose steps have not been taken yet
 *   full    [num_rows * num_summary]  one bit for each word of `fresh`: is it not 0?
 *   dirty   [num_rows] bits           by rank: does the row have any bit in `fresh`?
 *
 * A visit takes the fresh bits of a row, applies each kind of step to them once, and adds the
 * result to every row that a step of that kind leads to. Rows are visited in sweeps by rank, which
 * is a topological order if there is one. So a row has collected many bits when it is visited.
 * The fixpoint does not depend on the order of visits, so threads can share a sweep with nothing
 * but atomic operations on words. */
#include <string.h>

#include "base/interrupt.h"
#include "fstops/compose_rows.h"

enum { ITEM_WORDS = 4 }; /* words of `dirty` in one work item */
#define INLINE static inline __attribute__((always_inline))

/* Scratch of one thread: the fresh words of the visited row, the words after a step, and the
 * indices of those that are not 0. */
struct scratch {
  uint64_t *in, *out;
  uint32_t *in_at, *out_at;
};

struct reach {
  const wf__row_plan *plan;
  const wf__row_steps *steps;
  const wf__label_moves *moves;
  const uint64_t *mask; /* only these pairs may be found; NULL: all pairs */
  uint64_t *bits, *fresh, *full, *dirty;
  uint32_t *order; /* rows by rank */
  uint32_t *rank;
  uint64_t num_ranks, num_words, num_summary;
  struct scratch *scratch; /* one per worker */
  wf__pool *pool;
};

/* --- words that threads share ------------------------------------------------------------ */

INLINE uint64_t take_word(uint64_t *word, bool shared) {
  if (shared) return __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
  uint64_t value = *word;
  *word = 0;
  return value;
}

INLINE uint64_t read_word(const uint64_t *word, bool shared) {
  return shared ? __atomic_load_n(word, __ATOMIC_RELAXED) : *word;
}

/* Returns the old value. */
INLINE uint64_t or_word(uint64_t *word, uint64_t value, bool shared) {
  if (shared) return __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);
  uint64_t old = *word;
  *word |= value;
  return old;
}

/* --- a visit ----------------------------------------------------------------------------- */

INLINE void mark_dirty(struct reach *r, uint32_t row, bool shared) {
  uint32_t rank = r->rank[row];
  or_word(&r->dirty[rank >> 6], (uint64_t)1 << (rank & 63), shared);
}

/* Adds words to a row. Bits that were not set yet become fresh. */
INLINE void add_words(struct reach *r, uint32_t row, const uint64_t *words, const uint32_t *at,
                      uint32_t count, bool shared) {
  uint64_t base = row * r->num_words, any = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t place = base + at[i], add = words[at[i]] & ~read_word(&r->bits[place], shared);
    if (r->mask != NULL) add &= r->mask[place];
    if (add == 0) continue;
    add &= ~or_word(&r->bits[place], add, shared);
    if (shared && add == 0) continue;
    or_word(&r->fresh[place], add, shared);
    or_word(&r->full[row * r->num_summary + (at[i] >> 6)], (uint64_t)1 << (at[i] & 63), shared);
    any = 1;
  }
  if (any != 0) mark_dirty(r, row, shared);
}

INLINE uint32_t take_fresh(struct reach *r, uint32_t row, struct scratch *s, bool shared) {
  uint32_t count = 0;
  for (uint64_t i = 0; i < r->num_summary; i++) {
    for (uint64_t full = take_word(&r->full[row * r->num_summary + i], shared); full != 0;
         full &= full - 1) {
      uint32_t at = (uint32_t)(i * 64 + (uint64_t)__builtin_ctzll(full));
      s->in[at] = take_word(&r->fresh[row * r->num_words + at], shared);
      s->in_at[count++] = at;
    }
  }
  return count;
}

/* Step that stays: out = in & mask. */
INLINE uint32_t stay(const uint64_t *mask, struct scratch *s, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    s->out[s->in_at[i]] = s->in[s->in_at[i]] & mask[s->in_at[i]];
    s->out_at[i] = s->in_at[i];
  }
  return count;
}

/* Step along a label: moves each bit of `in` along the arcs of its state. */
INLINE uint32_t move_states(const struct reach *r, uint32_t label, struct scratch *s,
                            uint32_t count) {
  const uint32_t *off = r->moves->off + label * r->plan->b.num_states, *to = r->moves->to;
  uint32_t num_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t first = (uint64_t)s->in_at[i] * 64;
    for (uint64_t word = s->in [s->in_at[i]]; word != 0; word &= word - 1) {
      uint64_t state = first + (uint64_t)__builtin_ctzll(word);
      for (uint32_t k = off[state]; k < off[state + 1]; k++) {
        uint32_t at = to[k] >> 6;
        if (s->out[at] == 0) s->out_at[num_out++] = at;
        s->out[at] |= (uint64_t)1 << (to[k] & 63);
      }
    }
  }
  return num_out;
}

/* The same with the label's list of arcs, without branches. The words of `in` that are not fresh
 * must be 0. */
INLINE uint32_t move_list(const struct reach *r, uint32_t label, struct scratch *s) {
  const uint32_t *off = r->moves->off + label * r->plan->b.num_states, *from = r->moves->from,
                 *to = r->moves->to;
  uint32_t num_out = 0;
  for (uint32_t k = off[0]; k < off[r->plan->b.num_states]; k++)
    s->out[to[k] >> 6] |= (s->in[from[k] >> 6] >> (from[k] & 63) & 1) << (to[k] & 63);
  for (uint32_t at = 0; at < r->num_words; at++)
    if (s->out[at] != 0) s->out_at[num_out++] = at;
  return num_out;
}

INLINE void visit(struct reach *r, uint32_t row, struct scratch *s, bool shared) {
  const wf__row_step *step = r->steps->data + r->steps->off[row],
                     *end = r->steps->data + r->steps->off[row + 1];
  uint32_t count = take_fresh(r, row, s, shared);
  uint64_t num_states = 0;
  for (uint32_t i = 0; i < count; i++)
    num_states += (uint64_t)__builtin_popcountll(s->in[s->in_at[i]]);
  bool lists = wf__by_lists(r->moves, r->plan->num_labels, r->plan->b.num_states, num_states);
  while (step < end) {
    uint32_t kind = step->kind, num_out;
    if (kind < WF__STEP_LABEL)
      num_out = stay(r->plan->stay[kind], s, count);
    else
      num_out = lists ? move_list(r, kind - WF__STEP_LABEL, s)
                      : move_states(r, kind - WF__STEP_LABEL, s, count);
    for (; step < end && step->kind == kind; step++)
      if (num_out != 0) add_words(r, step->row, s->out, s->out_at, num_out, shared);
    for (uint32_t i = 0; i < num_out; i++) s->out[s->out_at[i]] = 0;
  }
  for (uint32_t i = 0; i < count; i++) s->in[s->in_at[i]] = 0;
}

/* --- sweeps ------------------------------------------------------------------------------ */

INLINE void visit_ranks(struct reach *r, uint64_t word, uint64_t end, struct scratch *s,
                        bool shared) {
  for (; word < end && !(word % 64 == 0 && wf__stopped()); word++) {
    for (;;) {
      uint64_t dirty = read_word(&r->dirty[word], shared);
      if (dirty == 0) break;
      uint64_t lowest = dirty & -dirty;
      if (shared)
        __atomic_fetch_and(&r->dirty[word], ~lowest, __ATOMIC_ACQ_REL);
      else
        r->dirty[word] = dirty & ~lowest;
      visit(r, r->order[word * 64 + (uint64_t)__builtin_ctzll(lowest)], s, shared);
    }
  }
}

static void visit_item(void *user, uint64_t item, int worker) {
  struct reach *r = user;
  uint64_t num_words = (r->num_ranks + 63) / 64, begin = item * ITEM_WORDS,
           end = begin + ITEM_WORDS;
  visit_ranks(r, begin, end < num_words ? end : num_words, &r->scratch[worker], true);
}

static bool any_dirty(const struct reach *r) {
  for (uint64_t i = 0; i < (r->num_ranks + 63) / 64; i++)
    if (r->dirty[i] != 0) return true;
  return false;
}

static void sweep(struct reach *r) {
  uint64_t num_words = (r->num_ranks + 63) / 64;
  bool alone = r->pool == NULL || wf__pool_size(r->pool) == 1 || num_words <= ITEM_WORDS;
  while (any_dirty(r) && !wf__stopped()) {
    if (alone)
      visit_ranks(r, 0, num_words, &r->scratch[0], false);
    else
      wf__pool_run(r->pool, (num_words + ITEM_WORDS - 1) / ITEM_WORDS, visit_item, r);
  }
}

/* --- setting up -------------------------------------------------------------------------- */

/* Writes the rows in reverse postorder of a depth-first search along the forward steps. Rows that
 * it does not reach get no rank. `next` is the next step of each row. */
static uint64_t order_rows(const wf__row_plan *plan, uint32_t *order, uint32_t *rank,
                           uint64_t *next, uint32_t *stack) {
  uint64_t depth = 0, num_done = 0, n = plan->num_rows;
  memset(rank, 0xff, n * sizeof *rank);
  stack[depth++] = (uint32_t)plan->start_row;
  rank[plan->start_row] = 0;
  next[plan->start_row] = plan->forward.off[plan->start_row];
  while (depth > 0) {
    uint32_t row = stack[depth - 1];
    if (next[row] == plan->forward.off[row + 1]) {
      order[n - 1 - num_done++] = row;
      depth--;
      continue;
    }
    uint32_t to = plan->forward.data[next[row]++].row;
    if (rank[to] == UINT32_MAX) {
      rank[to] = 0;
      next[to] = plan->forward.off[to];
      stack[depth++] = to;
    }
  }
  memmove(order, order + (n - num_done), num_done * sizeof *order);
  return num_done;
}

static wf_status rank_rows(struct reach *r, bool backward, wf_error *err) {
  uint64_t n = r->plan->num_rows;
  uint64_t *next = wf__alloc(n, sizeof *next);
  uint32_t *stack = wf__alloc(n, sizeof *stack);
  r->order = wf__alloc(n, sizeof *r->order);
  r->rank = wf__alloc(n, sizeof *r->rank);
  bool ok = next != NULL && stack != NULL && r->order != NULL && r->rank != NULL;
  if (ok) {
    r->num_ranks = order_rows(r->plan, r->order, r->rank, next, stack);
    for (uint64_t i = 0; backward && i < r->num_ranks / 2; i++) {
      uint32_t row = r->order[i];
      r->order[i] = r->order[r->num_ranks - 1 - i];
      r->order[r->num_ranks - 1 - i] = row;
    }
    for (uint64_t i = 0; i < r->num_ranks; i++) r->rank[r->order[i]] = (uint32_t)i;
  }
  free(next);
  free(stack);
  return ok ? WF_OK : wf__fail_memory(err, n * 20, "an order of rows");
}

static wf_status alloc_reach(struct reach *r, bool backward, wf_error *err) {
  uint64_t num_rows = r->plan->num_rows, num_words = r->num_words;
  uint64_t num_workers = r->pool == NULL ? 1 : (uint64_t)wf__pool_size(r->pool);
  r->fresh = wf__calloc(num_rows * num_words, sizeof *r->fresh);
  r->full = wf__calloc(num_rows * r->num_summary, sizeof *r->full);
  r->dirty = wf__calloc(num_rows / 64 + 1, sizeof *r->dirty);
  r->scratch = wf__calloc(num_workers, sizeof *r->scratch);
  if (r->fresh == NULL || r->full == NULL || r->dirty == NULL || r->scratch == NULL)
    return wf__fail_memory(err, num_rows * num_words * 8, "rows of bits");
  for (uint64_t i = 0; i < num_workers; i++) {
    struct scratch *s = &r->scratch[i];
    /* out, in_at and out_at follow in the same allocation */
    s->in = wf__calloc(num_words * 3, sizeof *s->in);
    if (s->in == NULL) return wf__fail_memory(err, num_words * 24, "rows of bits");
    s->out = s->in + num_words;
    s->in_at = (uint32_t *)(s->in + 2 * num_words);
    s->out_at = s->in_at + num_words;
  }
  return rank_rows(r, backward, err);
}

static void free_reach(struct reach *r) {
  uint64_t num_workers = r->pool == NULL ? 1 : (uint64_t)wf__pool_size(r->pool);
  for (uint64_t i = 0; r->scratch != NULL && i < num_workers; i++) free(r->scratch[i].in);
  free(r->scratch);
  free(r->fresh);
  free(r->full);
  free(r->dirty);
  free(r->order);
  free(r->rank);
}

/* Adds the bits of `words` (num_words of them) to a row. */
static void seed(struct reach *r, uint64_t row, const uint64_t *words) {
  struct scratch *s = &r->scratch[0];
  uint32_t count = 0;
  for (uint64_t i = 0; i < r->num_words; i++)
    if (words[i] != 0) s->out_at[count++] = (uint32_t)i;
  add_words(r, (uint32_t)row, words, s->out_at, count, false);
}

wf_status wf__compose_reach(const wf__row_plan *plan, wf__pool *pool, uint64_t *reached,
                            wf_error *err) {
  struct reach r = {.plan = plan,
                    .steps = &plan->forward,
                    .moves = &plan->moves,
                    .bits = reached,
                    .pool = pool,
                    .num_words = plan->num_words};
  r.num_summary = (plan->num_words + 63) / 64;
  wf_status status = alloc_reach(&r, false, err);
  if (status == WF_OK) {
    uint64_t *words = r.scratch[0].in, start = (uint64_t)plan->b.start;
    wf__bit_set(words, start);
    seed(&r, plan->start_row, words);
    words[start >> 6] = 0;
    sweep(&r);
  }
  free_reach(&r);
  return status;
}

wf_status wf__compose_coreach(const wf__row_plan *plan, wf__pool *pool, const uint64_t *reached,
                              uint64_t *kept, wf_error *err) {
  struct reach r = {.plan = plan,
                    .steps = &plan->backward,
                    .moves = &plan->back_moves,
                    .bits = kept,
                    .mask = reached,
                    .pool = pool,
                    .num_words = plan->num_words};
  r.num_summary = (plan->num_words + 63) / 64;
  wf_status status = alloc_reach(&r, true, err);
  for (uint64_t i = 0; status == WF_OK && i < r.num_ranks; i++)
    if (wf__is_final(&plan->a, r.order[i] / plan->num_filters))
      seed(&r, r.order[i], plan->final_bits);
  if (status == WF_OK) sweep(&r);
  free_reach(&r);
  return status;
}
