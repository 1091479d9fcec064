/* compose_fill.c - turns rows of bits into the arrays of the result. The number of a state is the
 * rank of its bit, so threads can write the rows independently of each other.
 *
 *   count   numbers the first state of each word; counts the arcs of each state and their sum for
 *           each chunk of rows
 *   fill    a prefix sum turns the counts into offsets, then each chunk writes its arcs */
#include <string.h>

#include "base/interrupt.h"
#include "fstops/compose_rows.h"

enum {
  MAX_CHUNKS = 2048,
  MAX_LIST_LINKS = 4096 /* for a row with more links, scattered writes cost too much */
};
#define INLINE static inline __attribute__((always_inline))

struct fill {
  const wf__row_plan *plan;
  const uint64_t *kept;
  uint32_t *first; /* [num_rows * num_words] number of the first state of each word */
  uint64_t num_states, num_arcs, num_chunks;
  uint64_t *chunk_arcs; /* [num_chunks + 1] */
  wf__compose_output *out;
  /* [threads * num_b] for each state of b in the current row: its number of arcs while counting,
   * the index of its next arc while filling */
  uint64_t *places;
};

INLINE uint32_t number_of(const struct fill *f, uint64_t row, uint64_t state) {
  uint64_t word = row * f->plan->num_words + (state >> 6);
  return f->first[word] +
         (uint32_t)__builtin_popcountll(f->kept[word] & (((uint64_t)1 << (state & 63)) - 1));
}

INLINE void put(struct fill *f, uint64_t at, const wf__row_link *link, uint32_t b_arc,
                uint32_t next) {
  const wf_arc *x = link->arc != WF_NO_ARC ? &f->plan->a.arcs[link->arc] : NULL,
               *y = b_arc != WF_NO_ARC ? &f->plan->b.arcs[b_arc] : NULL;
  wf_arc *arc = &f->out->csr.arcs.data[at];
  arc->nextstate = next;
  arc->ilabel = x != NULL ? x->ilabel : 0;
  arc->olabel = y != NULL ? y->olabel : 0;
  arc->weight = x == NULL ? y->weight : y == NULL ? x->weight : x->weight + y->weight;
  if (f->out->with_origins) f->out->origins.data[at] = (wf_arc_origin){link->arc, b_arc};
}

/* Goes through the arcs of a state. Counts them, or writes them from index `at` on. */
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

/* --- a row ------------------------------------------------------------------------------- */

/* Counts or writes one arc of a state, if `kept`. */
INLINE void count_or_put(struct fill *f, uint64_t *place, bool kept, const wf__row_link *link,
                         uint32_t b_arc, uint64_t to, bool write) {
  if (!write)
    *place += kept;
  else if (kept)
    put(f, (*place)++, link, b_arc, number_of(f, link->row, to));
}

/* Goes through the arcs of a row link by link, with the lists of arcs by label. */
INLINE void row_by_lists(struct fill *f, uint64_t row, uint64_t *places, bool write) {
  const wf__row_plan *plan = f->plan;
  const wf__label_moves *moves = &plan->moves;
  const uint64_t *from_bits = f->kept + row * plan->num_words;
  for (const wf__row_link *link = plan->links + plan->link_off[row];
       link < plan->links + plan->link_off[row + 1]; link++) {
    const uint64_t *to_bits = f->kept + link->row * plan->num_words;
    if (link->kind < WF__STEP_LABEL) {
      for (uint64_t word = 0; word < plan->num_words; word++)
        for (uint64_t bits = from_bits[word] & to_bits[word] & plan->stay[link->kind][word];
             bits != 0; bits &= bits - 1) {
          uint64_t state = word * 64 + (uint64_t)__builtin_ctzll(bits);
          count_or_put(f, &places[state], true, link, WF_NO_ARC, state, write);
        }
      continue;
    }
    const uint32_t *off = moves->off + (link->kind - WF__STEP_LABEL) * plan->b.num_states;
    for (uint32_t i = off[0]; i < off[plan->b.num_states]; i++)
      count_or_put(f, &places[moves->from[i]],
                   wf__bit(from_bits, moves->from[i]) & wf__bit(to_bits, moves->to[i]), link,
                   moves->arc[i], moves->to[i], write);
  }
}

INLINE void row_by_states(struct fill *f, uint64_t row, uint64_t *places, bool write) {
  const uint64_t *words = f->kept + row * f->plan->num_words;
  for (uint64_t word = 0; word < f->plan->num_words; word++)
    for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
      uint64_t state = word * 64 + (uint64_t)__builtin_ctzll(bits),
               count = arcs_of(f, row, state, places[state], write);
      if (!write) places[state] = count;
    }
}

INLINE void fill_row(struct fill *f, uint64_t row, uint64_t num_states, uint64_t *places,
                     bool write) {
  uint64_t num_links = f->plan->link_off[row + 1] - f->plan->link_off[row];
  if (num_links < MAX_LIST_LINKS &&
      wf__by_lists(&f->plan->moves, f->plan->num_labels, f->plan->b.num_states, num_states))
    row_by_lists(f, row, places, write);
  else
    row_by_states(f, row, places, write);
}

/* --- chunks of rows ---------------------------------------------------------------------- */

static uint64_t chunk_begin(const struct fill *f, uint64_t chunk) {
  return f->plan->num_rows * chunk / f->num_chunks;
}

/* Number of kept states of a row. `*first` is the number of its first state in the result. */
static uint64_t states_of(const struct fill *f, uint64_t row, uint64_t *first) {
  uint64_t word = row * f->plan->num_words, end = word + f->plan->num_words,
           after = end < f->plan->num_rows * f->plan->num_words ? f->first[end] : f->num_states;
  *first = f->first[word];
  return after - *first;
}

static void count_chunk(void *user, uint64_t chunk, int worker) {
  struct fill *f = user;
  uint64_t num_words = f->plan->num_words, num_b = f->plan->b.num_states,
           *places = f->places + (uint64_t)worker * num_b, sum = 0, first;
  for (uint64_t row = chunk_begin(f, chunk); row < chunk_begin(f, chunk + 1); row++) {
    uint64_t num_states = states_of(f, row, &first);
    if (num_states == 0) continue;
    memset(places, 0, num_b * sizeof *places);
    fill_row(f, row, num_states, places, false);
    for (uint64_t word = 0; word < num_words; word++)
      for (uint64_t bits = f->kept[row * num_words + word]; bits != 0; bits &= bits - 1)
        sum += f->out->csr.arc_off.data[first++] =
            places[word * 64 + (uint64_t)__builtin_ctzll(bits)];
  }
  f->chunk_arcs[chunk + 1] = sum;
}

static void fill_chunk(void *user, uint64_t chunk, int worker) {
  struct fill *f = user;
  const wf__row_plan *plan = f->plan;
  uint64_t at = f->chunk_arcs[chunk], *places = f->places + (uint64_t)worker * plan->b.num_states,
           first;
  for (uint64_t row = chunk_begin(f, chunk); row < chunk_begin(f, chunk + 1); row++) {
    uint64_t num_states = states_of(f, row, &first);
    float a_final = plan->a.final_cost[row / plan->num_filters];
    if (num_states == 0) continue;
    for (uint64_t word = 0; word < plan->num_words; word++) {
      for (uint64_t bits = f->kept[row * plan->num_words + word]; bits != 0;
           bits &= bits - 1, first++) {
        uint64_t state = word * 64 + (uint64_t)__builtin_ctzll(bits),
                 count = f->out->csr.arc_off.data[first];
        places[state] = f->out->csr.arc_off.data[first] = at;
        f->out->csr.final_cost.data[first] = a_final + plan->b.final_cost[state];
        at += count;
      }
    }
    fill_row(f, row, num_states, places, true);
  }
}

static wf_status run(wf__pool *pool, uint64_t num_items, wf__task_fn fn, void *user,
                     wf_error *err) {
  if (pool != NULL) return wf__pool_try(pool, num_items, fn, user, err);
  for (uint64_t i = 0; i < num_items; i++) {
    WF__TRY(wf__interrupted(err));
    fn(user, i, 0);
  }
  return WF_OK;
}

/* Numbers the states: sets the number of the first state of each word. */
static wf_status number_states(struct fill *f, wf_error *err) {
  uint64_t num_words = f->plan->num_rows * f->plan->num_words;
  f->first = wf__alloc(num_words, sizeof *f->first);
  if (f->first == NULL)
    return wf__fail_memory(err, num_words * sizeof *f->first, "numbers of states");
  for (uint64_t i = 0; i < num_words; i++) {
    f->first[i] = (uint32_t)f->num_states;
    f->num_states += (uint64_t)__builtin_popcountll(f->kept[i]);
    if (f->num_states > WF__MAX_STATES)
      return wf__fail(err, WF_ERR_LIMIT, "the composition has more than %llu states",
                      (unsigned long long)WF__MAX_STATES);
  }
  return WF_OK;
}

#define ALLOC_VEC(vec, count, what)                                       \
  do {                                                                    \
    WF__TRY(wf__vec_grow(vec, (count) + 1, what, err)); /* never empty */ \
    (vec)->size = (count);                                                \
  } while (0)

static wf_status count_and_fill(struct fill *f, const wf__compose_job *job, wf_error *err) {
  uint64_t num_words = f->plan->num_rows * f->plan->num_words;
  WF__TRY(number_states(f, err));
  uint64_t bytes = num_words * 20 + f->num_states * 12;
  if (bytes > job->max_bytes) return wf__compose_too_large(bytes, job->max_bytes, err);
  f->num_chunks = f->plan->num_rows < MAX_CHUNKS ? f->plan->num_rows : MAX_CHUNKS;
  f->chunk_arcs = wf__calloc(f->num_chunks + 1, sizeof *f->chunk_arcs);
  uint64_t num_workers = job->pool == NULL ? 1 : (uint64_t)wf__pool_size(job->pool);
  f->places = wf__alloc(num_workers * f->plan->b.num_states, sizeof *f->places);
  if (f->chunk_arcs == NULL || f->places == NULL)
    return wf__fail_memory(err, f->num_chunks * 8 + num_workers * f->plan->b.num_states * 8,
                           "counts of arcs");
  ALLOC_VEC(&f->out->csr.arc_off, f->num_states, "states");
  ALLOC_VEC(&f->out->csr.final_cost, f->num_states, "states");
  WF__TRY(run(job->pool, f->num_chunks, count_chunk, f, err));
  for (uint64_t i = 0; i < f->num_chunks; i++) f->chunk_arcs[i + 1] += f->chunk_arcs[i];
  f->num_arcs = f->chunk_arcs[f->num_chunks];
  bytes += f->num_arcs * (sizeof(wf_arc) + (f->out->with_origins ? sizeof(wf_arc_origin) : 0));
  if (bytes > job->max_bytes) return wf__compose_too_large(bytes, job->max_bytes, err);
  ALLOC_VEC(&f->out->csr.arcs, f->num_arcs, "arcs");
  if (f->out->with_origins) ALLOC_VEC(&f->out->origins, f->num_arcs, "origins of arcs");
  return run(job->pool, f->num_chunks, fill_chunk, f, err);
}

wf_status wf__compose_fill(const wf__row_plan *plan, const wf__compose_job *job,
                           const uint64_t *kept, wf__compose_output *out, wf_error *err) {
  struct fill fill = {.plan = plan, .kept = kept, .out = out};
  wf_status status = WF_OK;
  out->start = -1;
  if (wf__bit(kept + plan->start_row * plan->num_words, (uint64_t)plan->b.start)) {
    status = count_and_fill(&fill, job, err);
    if (status == WF_OK) out->start = number_of(&fill, plan->start_row, (uint64_t)plan->b.start);
  }
  free(fill.first);
  free(fill.chunk_arcs);
  free(fill.places);
  return status;
}
