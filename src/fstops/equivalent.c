/* equivalent.c - wf_equivalent: do two deterministic acceptors give the same strings the same
 * costs?
 *
 * Hopcroft and Karp's algorithm, extended to costs. The states of both acceptors (those of the
 * second numbered after those of the first) are joined in a union-find forest. Every state stores
 * its offset from its parent. Joining p and q at offset d claims
 *
 *     cost of y from p  =  d + cost of y from q      for every string y.
 *
 * The start states are joined at offset 0. A joined pair must either both be final, with costs that
 * differ by the offset, or both not; and the two must have the same labels. The targets of equal
 * labels are then joined at d + (arc cost at q) - (arc cost at p). If they are joined already, the
 * offset must be the same. If no claim fails, all of them hold. Weights need not be pushed first,
 * because costs are compared relative to offsets. The semiring does not matter, because each string
 * has only one path. States that reach no final state are ignored. */
#include <stdio.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "fstops/best_paths.h"

typedef struct pair {
  uint32_t p, q; /* state of the first and of the second fst */
  /* index of the pair from which this one was reached; WF__NO_STATE: the start states */
  uint32_t prev;
  int32_t label; /* label of the arcs from that pair */
} pair;

/* Arrays of num_both have the states of the first fst, then those of the second. */
typedef struct joiner {
  wf_fst_view view[2];
  uint8_t *live[2]; /* [num_states] 1 if on a successful path */
  uint32_t *parent; /* [num_both] union-find forest */
  uint32_t *size;   /* [num_both] size of the tree, valid at its root */
  double *offset;   /* [num_both] cost from this state = offset + cost from its parent; root: 0 */
  WF__VEC(pair) queue;
  WF__VEC(wf_arc) row[2]; /* scratch: the live arcs of one state, sorted by label */
  double delta;
  bool equal;
} joiner;

/* Describes the difference in err, with the string that leads to it. The code in err is WF_OK,
 * because the call itself succeeds. */
static void differ(joiner *j, const pair *at, const char *what, wf_error *err) {
  int32_t labels[24] = {0};
  uint32_t depth = 0, shown = sizeof labels / sizeof *labels;
  for (const pair *up = at; up->prev != WF__NO_STATE; up = &j->queue.data[up->prev]) depth++;
  uint32_t i = depth;
  for (const pair *up = at; up->prev != WF__NO_STATE; up = &j->queue.data[up->prev])
    if (--i < shown) labels[i] = up->label;
  char text[512];
  size_t used = 0;
  text[0] = '\0';
  for (i = 0; i < depth && i < shown; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, " %d", labels[i]);
  wf__fail(err, WF_OK, "after%s%s, in states %u of the first and %u of the second: %s",
           depth != 0 ? text : " the empty string", depth > shown ? " ..." : "", at->p, at->q,
           what);
  j->equal = false;
}

/* Returns the root of x and sets `*offset` to the offset of x from it. Shortens the path (path
 * halving). */
static uint32_t find_root(joiner *j, uint32_t x, double *offset) {
  *offset = 0;
  while (j->parent[x] != x) {
    uint32_t up = j->parent[x];
    if (j->parent[up] != up) {
      j->offset[x] += j->offset[up];
      j->parent[x] = j->parent[up];
    }
    *offset += j->offset[x];
    x = j->parent[x];
  }
  return x;
}

/* Claims that cost from at.p = d + cost from at.q. */
static wf_status join(joiner *j, pair at, double d, wf_error *err) {
  double offset_p, offset_q;
  uint32_t root_p = find_root(j, at.p, &offset_p),
           root_q = find_root(j, (uint32_t)j->view[0].num_states + at.q, &offset_q);
  if (root_p == root_q) {
    if (fabs(offset_p - offset_q - d) > j->delta)
      differ(j, &at, "the costs of some continuation differ", err);
    return WF_OK;
  }
  WF__TRY(wf__vec_push(&j->queue, at, "pairs of states", err));
  /* cost from root_p = root_offset + cost from root_q */
  double root_offset = d + offset_q - offset_p;
  if (j->size[root_p] <= j->size[root_q]) {
    j->parent[root_p] = root_q;
    j->offset[root_p] = root_offset;
    j->size[root_q] += j->size[root_p];
  } else {
    j->parent[root_q] = root_p;
    j->offset[root_q] = -root_offset;
    j->size[root_p] += j->size[root_q];
  }
  return WF_OK;
}

static int compare_labels(const void *a, const void *b) {
  int32_t x = ((const wf_arc *)a)->ilabel, y = ((const wf_arc *)b)->ilabel;
  return (x > y) - (x < y);
}

/* Loads the live arcs of a state, sorted by label. */
static wf_status load_row(joiner *j, int side, uint32_t s, wf_error *err) {
  const wf_fst_view *view = &j->view[side];
  j->row[side].size = 0;
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
    if (!j->live[side][view->arcs[i].nextstate] || view->arcs[i].weight == INFINITY) continue;
    WF__TRY(wf__vec_push(&j->row[side], view->arcs[i], "arcs", err));
  }
  if (j->row[side].size > 1)
    qsort(j->row[side].data, j->row[side].size, sizeof(wf_arc), compare_labels);
  return WF_OK;
}

static wf_status compare_pair(joiner *j, uint32_t index, wf_error *err) {
  pair at = j->queue.data[index];
  double offset_p, offset_q;
  find_root(j, at.p, &offset_p);
  find_root(j, (uint32_t)j->view[0].num_states + at.q, &offset_q);
  double d = offset_p - offset_q;
  float final_p = j->view[0].final_cost[at.p], final_q = j->view[1].final_cost[at.q];
  if ((final_p == INFINITY) != (final_q == INFINITY))
    differ(j, &at, "only one accepts this string", err);
  else if (final_p != INFINITY && fabs((double)final_p - (double)final_q - d) > j->delta)
    differ(j, &at, "the costs of this string differ", err);
  WF__TRY(load_row(j, 0, at.p, err));
  WF__TRY(load_row(j, 1, at.q, err));
  uint64_t num_p = j->row[0].size, num_q = j->row[1].size;
  for (uint64_t i = 0; j->equal && (i < num_p || i < num_q); i++) {
    const wf_arc *x = &j->row[0].data[i], *y = &j->row[1].data[i];
    if (i >= num_p || i >= num_q || x->ilabel != y->ilabel)
      differ(j, &at, "only one has a path that continues with some label", err);
    else
      WF__TRY(join(j, (pair){x->nextstate, y->nextstate, index, x->ilabel},
                   d + (double)y->weight - (double)x->weight, err));
  }
  return WF_OK;
}

/* --- setup ------------------------------------------------------------------------------- */

static wf_status check_input(const wf_fst *fst, const char *which, wf_error *err) {
  uint32_t have;
  WF__TRY(wf_fst_get_properties(fst, &have, err));
  const char *lack = NULL;
  if (!(have & WF_PROP_ACCEPTOR))
    lack = "an acceptor: some arc has different labels";
  else if (!(have & WF_PROP_NO_IEPSILONS))
    lack = "free of epsilons";
  else if (!(have & WF_PROP_IDETERMINISTIC))
    lack = "deterministic: some state has two arcs with one label";
  if (lack == NULL) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the %s fst is not %s; exact equivalence needs deterministic acceptors without "
                  "epsilons (or try randequivalent)",
                  which, lack);
}

static wf_status prepare(joiner *j, wf_error *err) {
  uint64_t total = j->view[0].num_states + j->view[1].num_states;
  for (int side = 0; side < 2; side++) {
    wf__incoming incoming;
    uint8_t *live;
    WF__TRY(wf__incoming_find(&j->view[side], &incoming, err));
    wf_status status = wf__useful_states(&j->view[side], &incoming, &live, err);
    wf__incoming_free(&incoming);
    j->live[side] = live;
    WF__TRY(status);
  }
  j->parent = wf__alloc(total, sizeof *j->parent);
  j->size = wf__alloc(total, sizeof *j->size);
  j->offset = wf__calloc(total, sizeof *j->offset);
  if (j->parent == NULL || j->size == NULL || j->offset == NULL)
    return wf__fail_memory(err, total * 16, "classes of states");
  for (uint64_t x = 0; x < total; x++) j->parent[x] = (uint32_t)x, j->size[x] = 1;
  return WF_OK;
}

static bool accepts_something(const joiner *j, int side) {
  return j->view[side].start >= 0 && j->live[side][j->view[side].start];
}

static wf_status run(joiner *j, wf_error *err) {
  WF__TRY(prepare(j, err));
  if (!accepts_something(j, 0) || !accepts_something(j, 1)) {
    j->equal = accepts_something(j, 0) == accepts_something(j, 1);
    if (!j->equal)
      wf__fail(err, WF_OK, "the %s fst accepts nothing",
               accepts_something(j, 0) ? "second" : "first");
    return WF_OK;
  }
  WF__TRY(join(j, (pair){(uint32_t)j->view[0].start, (uint32_t)j->view[1].start, WF__NO_STATE, 0},
               0, err));
  for (uint64_t head = 0; j->equal && head < j->queue.size; head++) {
    WF__TRY(wf__interrupted_at(head, err));
    WF__TRY(compare_pair(j, (uint32_t)head, err));
  }
  return WF_OK;
}

wf_status wf_equivalent(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                        wf_error *err) {
  *out_equal = false;
  if (!(delta >= 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "delta is %g, expected 0 or more", (double)delta);
  WF__TRY(wf__same_semiring(a, b, err));
  WF__TRY(wf__same_symbols((const wf_fst *[]){a, b}, 2, err));
  WF__TRY(check_input(a, "first", err));
  WF__TRY(check_input(b, "second", err));
  joiner j = {
      .view = {wf_fst_get_view(a), wf_fst_get_view(b)}, .delta = (double)delta, .equal = true};
  wf_status status = run(&j, err);
  if (status == WF_OK) *out_equal = j.equal;
  for (int side = 0; side < 2; side++) {
    free(j.live[side]);
    wf__vec_free(&j.row[side]);
  }
  free(j.parent);
  free(j.size);
  free(j.offset);
  wf__vec_free(&j.queue);
  return status;
}
