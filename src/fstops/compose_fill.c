/* compose_fill.c - from bits to arrays: a state's number is the rank of its bit, so that any thread can write any row's part of the result.
 *
 *   count   number of each row's first state, by word; arcs of each state; their sum by chunk of rows
 *   fill    sums become places, and each chunk's arcs are written */
#include <string.h>

#include "fstops/compose_rows.h"

enum { MAX_CHUNKS = 2048 };
#define INLINE static inline __attribute__((always_inline))

struct fill {
  const wf__row_plan *plan;
  const uint64_t *kept;
  uint32_t *first; /* [num_rows * num_words] number of the first state of each word */
  uint64_t num_states, num_arcs, num_chunks;
  uint64_t *chunk_arcs; /* [num_chunks + 1] */
  wf__compose_output *out;
};

INLINE uint32_t number_of(const struct fill *f, uint64_t row, uint64_t state) {
  uint64_t word = row * f->plan->num_words + (state >> 6);
  return f->first[word] + (uint32_t)__builtin_popcountll(f->kept[word] & (((uint64_t)1 << (state & 63)) - 1));
}

INLINE void put(struct fill *f, uint64_t at, const wf__row_link *link, uint32_t b_arc, uint32_t next) {
  const wf_arc *x = link->arc != WF_NO_ARC ? &f->plan->a.arcs[link->arc] : NULL, *y = b_arc != WF_NO_ARC ? &f->plan->b.arcs[b_arc] : NULL;
  wf_arc *arc = &f->out->csr.arcs.data[at];
  arc->nextstate = next;
  arc->ilabel = x != NULL ? x->ilabel : 0;
  arc->olabel = y != NULL ? y->olabel : 0;
  arc->weight = x == NULL ? y->weight : y == NULL ? x->weight : x->weight + y->weight;
  if (f->out->with_origins) f->out->origins.data[at] = (wf_arc_origin){link->arc, b_arc};
}

/* The arcs of a state: counts them, or writes them from `at` on. */
INLINE uint64_t arcs_of(struct fill *f, uint64_t row, uint64_t state, uint64_t at, bool write) {
  const wf__row_plan *plan = f->plan;
  const uint32_t *off = plan->moves.off + state;
  uint64_t num_b = plan->b.num_states, num_words = plan->num_words, begin = at;
  const wf__row_link *end = plan->links + plan->link_off[row + 1];
  for (const wf__row_link *link = plan->links + plan->link_off[row]; link < end; link++) {
    const uint64_t *bits = f->kept + link->row * num_words;
    if (link->kind < WF__STEP_LABEL) {
      if (!wf__bit(plan->stay[link->kind], state) || !wf__bit(bits, state)) continue;
      if (write) put(f, at, link, WF_NO_ARC, number_of(f, link->row, state));
      at++;
      continue;
    }
    const uint32_t *range = off + (link->kind - WF__STEP_LABEL) * num_b;
    for (uint32_t i = range[0]; i < range[1]; i++) {
      uint32_t to = plan->moves.to[i];
      if (!write) {
        at += wf__bit(bits, to);
      } else if (wf__bit(bits, to)) {
        put(f, at++, link, plan->moves.arc[i], number_of(f, link->row, to));
      }
    }
  }
  return at - begin;
}

static uint64_t chunk_begin(const struct fill *f, uint64_t chunk) { return f->plan->num_rows * chunk / f->num_chunks; }

static void count_chunk(void *user, uint64_t chunk, int worker) {
  struct fill *f = user;
  uint64_t num_words = f->plan->num_words, sum = 0;
  (void)worker;
  for (uint64_t row = chunk_begin(f, chunk); row < chunk_begin(f, chunk + 1); row++) {
    for (uint64_t word = row * num_words; word < (row + 1) * num_words; word++) {
      uint64_t *counts = f->out->csr.arc_off.data + f->first[word], first = (word - row * num_words) * 64;
      for (uint64_t bits = f->kept[word]; bits != 0; bits &= bits - 1) sum += *counts++ = arcs_of(f, row, first + (uint64_t)__builtin_ctzll(bits), 0, false);
    }
  }
  f->chunk_arcs[chunk + 1] = sum;
}

static void fill_chunk(void *user, uint64_t chunk, int worker) {
  struct fill *f = user;
  const wf__row_plan *plan = f->plan;
  uint64_t at = f->chunk_arcs[chunk];
  (void)worker;
  for (uint64_t row = chunk_begin(f, chunk); row < chunk_begin(f, chunk + 1); row++) {
    float a_final = plan->a.final_cost[row / plan->num_filters];
    for (uint64_t word = row * plan->num_words; word < (row + 1) * plan->num_words; word++) {
      uint64_t number = f->first[word], first = (word - row * plan->num_words) * 64;
      for (uint64_t bits = f->kept[word]; bits != 0; bits &= bits - 1, number++) {
        uint64_t state = first + (uint64_t)__builtin_ctzll(bits), count = f->out->csr.arc_off.data[number];
        f->out->csr.arc_off.data[number] = at;
        f->out->csr.final_cost.data[number] = a_final + plan->b.final_cost[state];
        if (count != 0) at += arcs_of(f, row, state, at, true);
      }
    }
  }
}

static void run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user) {
  if (pool != NULL) wf__pool_run(pool, num_items, fn, user);
  for (uint64_t i = 0; pool == NULL && i < num_items; i++) fn(user, i, 0);
}

/* Numbers the states word by word. */
static wf_status number_states(struct fill *f, wf_error *err) {
  uint64_t num_words = f->plan->num_rows * f->plan->num_words;
  f->first = wf__alloc(num_words, sizeof *f->first);
  if (f->first == NULL) return wf__fail_memory(err, num_words * sizeof *f->first, "numbers of states");
  for (uint64_t i = 0; i < num_words; i++) {
    f->first[i] = (uint32_t)f->num_states;
    f->num_states += (uint64_t)__builtin_popcountll(f->kept[i]);
    if (f->num_states > WF__MAX_STATES) return wf__fail(err, WF_ERR_LIMIT, "the composition has more than %llu states", (unsigned long long)WF__MAX_STATES);
  }
  return WF_OK;
}

#define ALLOC_VEC(vec, count, what)                                          \
  do {                                                                       \
    WF__TRY(wf__vec_grow(vec, (count) + 1, what, err)); /* never empty */    \
    (vec)->size = (count);                                                   \
  } while (0)

static wf_status count_and_fill(struct fill *f, const wf__compose_job *job, wf_error *err) {
  uint64_t num_words = f->plan->num_rows * f->plan->num_words;
  WF__TRY(number_states(f, err));
  uint64_t bytes = num_words * 20 + f->num_states * 12;
  if (bytes > job->max_bytes) return wf__compose_too_large(bytes, job->max_bytes, err);
  f->num_chunks = f->plan->num_rows < MAX_CHUNKS ? f->plan->num_rows : MAX_CHUNKS;
  f->chunk_arcs = wf__calloc(f->num_chunks + 1, sizeof *f->chunk_arcs);
  if (f->chunk_arcs == NULL) return wf__fail_memory(err, f->num_chunks * 8, "counts of arcs");
  ALLOC_VEC(&f->out->csr.arc_off, f->num_states, "states");
  ALLOC_VEC(&f->out->csr.final_cost, f->num_states, "states");
  run(job->pool, f->num_chunks, count_chunk, f);
  for (uint64_t i = 0; i < f->num_chunks; i++) f->chunk_arcs[i + 1] += f->chunk_arcs[i];
  f->num_arcs = f->chunk_arcs[f->num_chunks];
  bytes += f->num_arcs * (sizeof(wf_arc) + (f->out->with_origins ? sizeof(wf_arc_origin) : 0));
  if (bytes > job->max_bytes) return wf__compose_too_large(bytes, job->max_bytes, err);
  ALLOC_VEC(&f->out->csr.arcs, f->num_arcs, "arcs");
  if (f->out->with_origins) ALLOC_VEC(&f->out->origins, f->num_arcs, "origins of arcs");
  run(job->pool, f->num_chunks, fill_chunk, f);
  return WF_OK;
}

wf_status wf__compose_fill(const wf__row_plan *plan, const wf__compose_job *job, const uint64_t *kept, wf__compose_output *out, wf_error *err) {
  struct fill fill = {.plan = plan, .kept = kept, .out = out};
  wf_status status = WF_OK;
  out->start = -1;
  if (wf__bit(kept + plan->start_row * plan->num_words, (uint64_t)plan->b.start)) {
    status = count_and_fill(&fill, job, err);
    if (status == WF_OK) out->start = number_of(&fill, plan->start_row, (uint64_t)plan->b.start);
  }
  free(fill.first);
  free(fill.chunk_arcs);
  return status;
}
