/* connect.c - keeps the states that are on a path from the start to a final state.
 *
 * Accessible states are found by a breadth-first search. Coaccessible ("good") states are found by
 * sweeps over the states, from the last to the first: a state is good if a successor is. If the
 * states are numbered in the order of a search, a few sweeps find nearly all of them. A search over
 * reversed arcs finds the rest. Threads share the sweeps; the states found in the end do not depend
 * on them. */
#include "fstops/connect.h"

#include <string.h>

#include "fst/properties.h"
#include "fstops/parallel.h"

/* After MIN_SWEEPS, sweeps go on as long as they find one open state in SWEEP_SHARE. */
enum { MIN_SWEEPS = 4, SWEEP_SHARE = 8 };

/* --- marks ------------------------------------------------------------------------------- */

/* Sets of states are bitmaps; a bitmap of three million states fits in an L2 cache. */
static inline bool has(const uint64_t *set, uint64_t s) {
  return __atomic_load_n(&set[s / 64], __ATOMIC_RELAXED) >> (s % 64) & 1;
}
/* Only one thread at a time may write to a word. */
static inline void put(uint64_t *set, uint64_t s) {
  uint64_t *word = &set[s / 64];
  __atomic_store_n(word, *word | (uint64_t)1 << (s % 64), __ATOMIC_RELAXED);
}

/* The search is breadth-first, as most fsts are numbered in that order: memory is then read nearly
 * sequentially. */
static wf_status mark_accessible(const wf_fst_view *view, uint64_t *seen, wf_error *err) {
  uint32_t *queue = wf__alloc(view->num_states, sizeof *queue);
  if (queue == NULL) return wf__fail_memory(err, view->num_states * sizeof *queue, "a search");
  uint64_t head = 0, tail = 0;
  queue[tail++] = (uint32_t)view->start;
  put(seen, (uint64_t)view->start);
  while (head < tail) {
    uint32_t s = queue[head++];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t next = view->arcs[i].nextstate;
      if (has(seen, next)) continue;
      put(seen, next);
      queue[tail++] = next;
    }
  }
  free(queue);
  return WF_OK;
}

static bool leads_to_good(const wf_fst_view *view, uint64_t s, const uint64_t *good) {
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    if (has(good, view->arcs[i].nextstate)) return true;
  return false;
}

/* Sorts the arcs out of open states (those not known to be good) by target, with a counting sort.
 * The sources of the arcs into t are from[off[t]] .. from[off[t + 1] - 1]. */
static wf_status reverse_open(const wf_fst_view *view, const uint64_t *good, uint32_t *off,
                              uint32_t **out_from, wf_error *err) {
  uint64_t n = view->num_states, num_arcs = 0;
  for (uint64_t s = 0; s < n; s++) {
    if (has(good, s)) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      off[view->arcs[i].nextstate + 2]++;
    num_arcs += view->arc_off[s + 1] - view->arc_off[s];
  }
  if (num_arcs > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT,
                    "trimming needs to reverse %llu arcs, at most 2^32-1 are supported",
                    (unsigned long long)num_arcs);
  uint32_t *from = *out_from = wf__alloc(num_arcs, sizeof *from);
  if (from == NULL) return wf__fail_memory(err, num_arcs * sizeof *from, "reversed arcs");
  for (uint64_t s = 0; s < n; s++) off[s + 2] += off[s + 1];
  for (uint64_t s = 0; s < n; s++) {
    if (has(good, s)) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      from[off[view->arcs[i].nextstate + 1]++] = (uint32_t)s;
  }
  return WF_OK;
}

/* Prefetches what the search will read: the offsets of a state 16 places ahead in the queue, the
 * sources of a state 8 places ahead. */
static inline void fetch_ahead(const uint32_t *queue, uint64_t head, uint64_t tail,
                               const uint32_t *off, const uint32_t *from) {
  if (head + 16 >= tail) return;
  __builtin_prefetch(&off[queue[head + 16]]);
  __builtin_prefetch(&from[off[queue[head + 8]]]);
}

/* Searches backwards from the good states in queue[0 .. tail). The queue has room for all open
 * states. */
static wf_status spread_good(const wf_fst_view *view, uint64_t *good, uint32_t *queue,
                             uint64_t tail, wf_error *err) {
  uint32_t *off = wf__calloc(view->num_states + 2, sizeof *off), *from = NULL;
  wf_status status = off != NULL
                         ? reverse_open(view, good, off, &from, err)
                         : wf__fail_memory(err, view->num_states * sizeof *off, "reversed arcs");
  for (uint64_t head = 0; status == WF_OK && head < tail; head++) {
    uint32_t s = queue[head];
    fetch_ahead(queue, head, tail, off, from);
    for (uint32_t i = off[s]; i < off[s + 1]; i++) {
      if (has(good, from[i])) continue;
      put(good, from[i]);
      queue[tail++] = from[i];
    }
  }
  free(off);
  free(from);
  return status;
}

struct good_sweep {
  const wf_fst_view *view;
  uint64_t *good, num_pieces;
  uint64_t *num_open; /* [num_pieces] states not known to be good */
};

/* Threads take pieces, last pieces first. */
static void sweep_piece(void *user, uint64_t item, int worker) {
  struct good_sweep *sweep = user;
  const wf_fst_view *view = sweep->view;
  uint64_t piece = sweep->num_pieces - 1 - item, open = 0;
  (void)worker;
  for (uint64_t s = wf__piece_end(piece, view->num_states); s-- > piece * WF__PIECE_STATES;) {
    if (has(sweep->good, s)) continue;
    if (wf__is_final(view, s) || leads_to_good(view, s, sweep->good))
      put(sweep->good, s);
    else
      open++;
  }
  sweep->num_open[piece] = open;
}

/* Returns the number of open states. */
static uint64_t sweep_back(struct good_sweep *sweep, wf__pool *pool) {
  uint64_t open = 0;
  wf__pool_run(pool, sweep->num_pieces, sweep_piece, sweep);
  for (uint64_t p = 0; p < sweep->num_pieces; p++) open += sweep->num_open[p];
  return open;
}

/* Sets `*all` if every state is good. */
static wf_status mark_coaccessible(const wf_fst_view *view, wf__pool *pool, uint64_t *good,
                                   bool *all, wf_error *err) {
  uint64_t n = view->num_states, tail = 0;
  struct good_sweep sweep = {.view = view, .good = good, .num_pieces = wf__num_pieces(n)};
  sweep.num_open = wf__alloc(sweep.num_pieces, sizeof *sweep.num_open);
  if (sweep.num_open == NULL) return wf__fail_memory(err, sweep.num_pieces * 8, "marks of states");
  uint64_t open = n, before = n;
  for (int k = 0; open != 0 && (k < MIN_SWEEPS || before - open > open / SWEEP_SHARE); k++) {
    before = open;
    open = sweep_back(&sweep, pool);
  }
  free(sweep.num_open);
  *all = open == 0;
  if (*all) return WF_OK;
  uint32_t *queue = wf__alloc(open, sizeof *queue);
  if (queue == NULL) return wf__fail_memory(err, open * sizeof *queue, "a reversed search");
  for (uint64_t s = 0; s < n; s++) {
    if (has(good, s) || !leads_to_good(view, s, good)) continue;
    put(good, s);
    queue[tail++] = (uint32_t)s;
  }
  wf_status status = tail != 0 && tail != open ? spread_good(view, good, queue, tail, err) : WF_OK;
  *all = tail == open;
  free(queue);
  return status;
}

/* --- removing states --------------------------------------------------------------------- */

/* Sets number[s] to the new number of state s, or to WF__DROPPED. If all states are kept, `*number`
 * may stay NULL. */
#define WF__DROPPED UINT32_MAX

static wf_status number_marked(const wf_fst_view *view, const uint64_t *good, const uint64_t *seen,
                               uint32_t **number, uint64_t *num_kept, wf_error *err) {
  uint64_t n = view->num_states;
  uint32_t kept = 0;
  *number = wf__alloc(n, sizeof **number);
  if (*number == NULL) return wf__fail_memory(err, n * sizeof **number, "state numbers");
  for (uint64_t s = 0; s < n; s++)
    (*number)[s] = has(good, s) && (seen == NULL || has(seen, s)) ? kept++ : WF__DROPPED;
  *num_kept = (*number)[view->start] == WF__DROPPED ? 0 : kept;
  return WF_OK;
}

static wf_status number_kept(const wf_fst_view *view, int32_t num_threads, bool all_accessible,
                             uint32_t **number, uint64_t *num_kept, wf_error *err) {
  uint64_t n = view->num_states, words = wf__num_pieces(n) * WF__PIECE_STATES / 64;
  bool all_good = false;
  wf__pool *pool = NULL;
  *number = NULL;
  *num_kept = n;
  uint64_t *good = wf__calloc(words, sizeof *good),
           *seen = all_accessible ? NULL : wf__calloc(words, sizeof *seen);
  wf_status status = WF_OK;
  if (good == NULL || (!all_accessible && seen == NULL))
    status = wf__fail_memory(err, n / 4, "marks of states");
  if (status == WF_OK) status = wf__pool_for_fst(num_threads, view, &pool, err);
  if (status == WF_OK) status = mark_coaccessible(view, pool, good, &all_good, err);
  wf__pool_free(pool);
  if (status == WF_OK && !all_accessible) status = mark_accessible(view, seen, err);
  if (status == WF_OK && !(all_good && all_accessible))
    status = number_marked(view, good, seen, number, num_kept, err);
  free(good);
  free(seen);
  return status;
}

/* Writes the kept states to the arrays of `out`, which must be large enough. They may be the arrays
 * of `view`: a write never passes the read position. `origins` (or NULL) are moved in place. */
static void keep_states(const wf_fst_view *view, const uint32_t *number, wf__csr *out,
                        wf_arc_origin *origins) {
  uint64_t num_arcs = 0, num_states = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t begin = view->arc_off[s], end = view->arc_off[s + 1];
    if (number[s] == WF__DROPPED) continue;
    out->final_cost.data[num_states] = view->final_cost[s];
    out->arc_off.data[num_states++] = num_arcs;
    for (uint64_t i = begin; i < end; i++) {
      wf_arc arc = view->arcs[i];
      if (number[arc.nextstate] == WF__DROPPED) continue;
      arc.nextstate = number[arc.nextstate];
      if (origins != NULL) origins[num_arcs] = origins[i];
      out->arcs.data[num_arcs++] = arc;
    }
  }
  out->final_cost.size = out->arc_off.size = num_states;
  out->arcs.size = num_arcs;
}

wf_status wf__csr_connect_with(wf__csr *csr, int64_t *start, bool all_accessible,
                               int32_t num_threads, wf_arc_origin *origins, wf_error *err) {
  if (*start < 0 || csr->final_cost.size == 0) return WF_OK;
  uint32_t *number;
  uint64_t num_kept;
  WF__TRY(wf__vec_grow(&csr->arc_off, 1, "states", err));
  csr->arc_off.data[csr->arc_off.size] = csr->arcs.size;
  wf_fst_view view = {.start = *start,
                      .num_states = csr->final_cost.size,
                      .num_arcs = csr->arcs.size,
                      .arc_off = csr->arc_off.data,
                      .arcs = csr->arcs.data,
                      .final_cost = csr->final_cost.data};
  WF__TRY(number_kept(&view, num_threads, all_accessible, &number, &num_kept, err));
  if (num_kept == 0) {
    csr->arc_off.size = csr->final_cost.size = csr->arcs.size = 0;
    *start = -1;
  } else if (num_kept != view.num_states) {
    *start = number[*start];
    keep_states(&view, number, csr, origins);
  }
  free(number);
  return WF_OK;
}

wf_status wf__csr_connect(wf__csr *csr, int64_t *start, bool all_accessible, wf_error *err) {
  return wf__csr_connect_with(csr, start, all_accessible, 1, NULL, err);
}

static uint64_t count_kept_arcs(const wf_fst_view *view, const uint32_t *number) {
  uint64_t count = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (number[s] == WF__DROPPED) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      count += number[view->arcs[i].nextstate] != WF__DROPPED;
  }
  return count;
}

wf_status wf_connect(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf__connect(fst, 1, out, err);
}

wf_status wf__connect(const wf_fst *fst, int32_t num_threads, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  uint32_t *number = NULL;
  uint64_t num_kept;
  wf__csr csr = {0};
  wf_status status = WF_OK;
  if (view.start < 0 || wf__fst_known_trimmed(fst)) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  WF__TRY(number_kept(&view, num_threads, false, &number, &num_kept, err));
  if (num_kept == view.num_states) {
    *out = wf_fst_ref(fst);
    goto done;
  }
  int64_t start = -1;
  if (num_kept != 0) {
    WF__TRY_GOTO(status, wf__vec_grow(&csr.arc_off, num_kept + 1, "states", err), done);
    WF__TRY_GOTO(status, wf__vec_grow(&csr.final_cost, num_kept, "states", err), done);
    WF__TRY_GOTO(status, wf__vec_grow(&csr.arcs, count_kept_arcs(&view, number) + 1, "arcs", err),
                 done);
    keep_states(&view, number, &csr, NULL);
    start = number[view.start];
  }
  status = wf__fst_like(&csr, start, fst, out, err);
  if (status == WF_OK) wf__fst_set_trimmed(*out);
done:
  wf__csr_free(&csr);
  free(number);
  return status;
}
