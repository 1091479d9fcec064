/* replace.c - replaces arcs by copies of other fsts, recursively, as calls of subroutines.
 *
 * A state of the result is a pair of a stack of calls and a state of one of the fsts. States of all
 * fsts are numbered through: fst k has the states base[k] .. base[k + 1). A stack is a number in a
 * table of pairs (stack below, state to return to), plus 1; 0 is the empty stack. */
#include "base/option_tables.h"
#include "fstops/pair_table.h"

enum { INPUT_SIDE = 1, OUTPUT_SIDE = 2 };

struct replacer {
  wf_replace_options o;
  size_t count, root;
  wf_fst_view *views; /* [count] */
  uint64_t *base;     /* [count + 1] */
  wf__map64 callee;   /* label -> fst */
  int call_sides, return_sides;
  uint64_t max_states;
  wf__pairs stacks, states;
  wf__csr csr;
};

/* The fst of a state. */
static size_t owner(const struct replacer *r, uint32_t state) {
  size_t low = 0, high = r->count;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (r->base[middle] <= state)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static wf_status find_state(struct replacer *r, uint32_t stack, uint64_t state, uint32_t *out,
                            wf_error *err) {
  WF__TRY(wf__pairs_find(&r->states, stack, (uint32_t)state, out, err));
  if (r->states.list.size <= r->max_states) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "more than %llu states (max_states)",
                  (unsigned long long)r->max_states);
}

/* Is the fst called by itself, that is, is the stack returning into it or is it the caller? */
static bool is_active(const struct replacer *r, uint32_t stack, size_t fst) {
  for (; stack != 0; stack = r->stacks.list.data[stack - 1].first)
    if (owner(r, r->stacks.list.data[stack - 1].second) == fst) return true;
  return false;
}

static wf_status call(struct replacer *r, uint32_t stack, size_t from, size_t to, wf_arc arc,
                      wf_error *err) {
  uint32_t inner;
  if (r->views[to].start < 0) return WF_OK; /* no path goes through the call */
  if (!(r->call_sides & INPUT_SIDE)) arc.ilabel = 0;
  int32_t label = arc.olabel;
  if (!(r->call_sides & OUTPUT_SIDE)) arc.olabel = 0;
  if (r->stacks.list.size >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 calls");
  WF__TRY(
      wf__pairs_find(&r->stacks, stack, (uint32_t)(r->base[from] + arc.nextstate), &inner, err));
  if (is_active(r, inner + 1, to))
    return wf__fail(err, WF_ERR_ARGUMENT, "the fst of label %d calls itself: the result is endless",
                    label);
  WF__TRY(
      find_state(r, inner + 1, r->base[to] + (uint64_t)r->views[to].start, &arc.nextstate, err));
  return wf__csr_push(&r->csr, arc, err);
}

static wf_status put_arcs(struct replacer *r, wf__pair at, size_t k, wf_error *err) {
  const wf_fst_view *view = &r->views[k];
  uint64_t s = at.second - r->base[k];
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
    wf_arc arc = view->arcs[i];
    uint32_t to =
        arc.olabel == 0 ? WF__MAP64_NONE : wf__map64_find(&r->callee, (uint64_t)arc.olabel);
    if (to != WF__MAP64_NONE) {
      WF__TRY(call(r, at.first, k, to, arc, err));
      continue;
    }
    WF__TRY(find_state(r, at.first, r->base[k] + arc.nextstate, &arc.nextstate, err));
    WF__TRY(wf__csr_push(&r->csr, arc, err));
  }
  return WF_OK;
}

static wf_status expand(struct replacer *r, wf__pair at, wf_error *err) {
  size_t k = owner(r, at.second);
  float final_cost = r->views[k].final_cost[at.second - r->base[k]];
  WF__TRY(wf__csr_add_state(&r->csr, at.first == 0 ? final_cost : INFINITY, err));
  if (at.first != 0 && final_cost != INFINITY) {
    wf__pair back = r->stacks.list.data[at.first - 1];
    wf_arc arc = {.weight = final_cost,
                  .ilabel = r->return_sides & INPUT_SIDE ? r->o.return_label : 0,
                  .olabel = r->return_sides & OUTPUT_SIDE ? r->o.return_label : 0};
    WF__TRY(find_state(r, back.first, back.second, &arc.nextstate, err));
    WF__TRY(wf__csr_push(&r->csr, arc, err));
  }
  return put_arcs(r, at, k, err);
}

static wf_status list_fsts(struct replacer *r, const wf_fst *const *fsts, const int32_t *labels,
                           wf_error *err) {
  r->root = r->o.root == 0 ? 0 : r->count;
  for (size_t k = 0; k < r->count; k++) {
    uint32_t stands;
    bool fresh;
    WF__TRY(wf__same_semiring(fsts[0], fsts[k], err));
    if (labels[k] <= 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "label %d for an fst, expected 1 or more", labels[k]);
    WF__TRY(wf__map64_insert(&r->callee, (uint64_t)labels[k], (uint32_t)k, &stands, &fresh,
                             "labels", err));
    if (!fresh) return wf__fail(err, WF_ERR_ARGUMENT, "label %d is listed twice", labels[k]);
    r->views[k] = wf_fst_get_view(fsts[k]);
    r->base[k + 1] = r->base[k] + r->views[k].num_states;
    if (labels[k] == r->o.root) r->root = k;
  }
  if (r->root == r->count)
    return wf__fail(err, WF_ERR_ARGUMENT, "no fst for the root label %d", r->o.root);
  if (r->base[r->count] > WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "the fsts have more than 2^31 states together");
  return WF_OK;
}

static wf_status replace(struct replacer *r, const wf_fst *const *fsts, const int32_t *labels,
                         wf_error *err) {
  static const int call_sides[] = {INPUT_SIDE, OUTPUT_SIDE, INPUT_SIDE | OUTPUT_SIDE, 0};
  static const int return_sides[] = {0, INPUT_SIDE, OUTPUT_SIDE, INPUT_SIDE | OUTPUT_SIDE};
  r->call_sides = r->o.epsilon_on_replace ? 0 : call_sides[r->o.call_arc_labeling];
  r->return_sides = r->o.epsilon_on_replace ? 0 : return_sides[r->o.return_arc_labeling];
  r->max_states = r->o.max_states != 0 ? (uint64_t)r->o.max_states : WF__MAX_STATES;
  r->views = wf__calloc(r->count, sizeof *r->views);
  r->base = wf__calloc(r->count + 1, sizeof *r->base);
  if (r->views == NULL || r->base == NULL)
    return wf__fail_memory(err, r->count * sizeof *r->views, "fsts");
  WF__TRY(list_fsts(r, fsts, labels, err));
  uint32_t first;
  const wf_fst_view *root = &r->views[r->root];
  if (root->start < 0) return WF_OK;
  WF__TRY(find_state(r, 0, r->base[r->root] + (uint64_t)root->start, &first, err));
  for (uint64_t k = 0; k < r->states.list.size; k++)
    WF__TRY(expand(r, r->states.list.data[k], err));
  return WF_OK;
}

wf_status wf_replace(const wf_fst *const *fsts, const int32_t *labels, size_t count,
                     const wf_replace_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  struct replacer r = {.count = count};
  WF__TRY(wf__options_take(wf__replace_table(), options, &r.o, err));
  if (count == 0) return wf__fail(err, WF_ERR_ARGUMENT, "no fsts to replace by");
  if (r.o.check_symbols) WF__TRY(wf__same_symbols(fsts, count, err));
  int32_t blank;
  WF__TRY(wf__fst_common_blank(fsts, count, &blank, err));
  wf_status status = replace(&r, fsts, labels, err);
  if (status == WF_OK)
    status = wf__fst_like(&r.csr, r.views[r.root].start < 0 ? -1 : 0, fsts[r.root], out, err);
  if (status == WF_OK) wf__fst_set_ctc_blank(*out, blank);
  free(r.views);
  free(r.base);
  wf__map64_free(&r.callee);
  wf__pairs_free(&r.stacks);
  wf__pairs_free(&r.states);
  wf__csr_free(&r.csr);
  return status;
}
