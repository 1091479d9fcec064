/* determinize.c - weighted determinization of functional transducers on the input side (Mohri 1997, "Finite-state transducers in language and
 * speech processing", sections 3.3 and 4).
 *
 * For each subset in order of discovery: all arcs of its elements, sorted by (input label, next state), are cut into runs of one label.
 * A run becomes one arc: it puts out the longest common prefix of the run's outputs and charges their summed cost, and the rest are the
 * residuals of the subset it leads to. Runs of one arc, most of them in practice, lead to {(state, empty, 0)} without any hashing. */
#include "fstops/determinize.h"

#include <string.h>

#include "base/option_tables.h"
#include "fst/properties.h"

/* Residual outputs this long do not come from anything that can be determinized in practice. */
enum { MAX_RESIDUAL = 10000 };
#define FINAL_SINK (UINT32_MAX - 1) /* stands for the state that final output strings lead to, numbered last */

struct candidate {
  uint64_t key; /* ilabel << 32 | next state */
  double cost;
  uint32_t string;
};

struct scratch {
  WF__VEC(struct candidate) found;
  WF__VEC(struct candidate) spare;
  WF__VEC(uint64_t) runs;
  WF__VEC(wf__det_element) subset;
  WF__VEC(uint32_t) labels;
  bool uses_sink;
};

/* --- residual strings --------------------------------------------------------------------------------------------- */

wf_status wf__residual_append(wf__determinizer *det, uint32_t string, int32_t olabel, uint32_t *out, wf_error *err) {
  *out = string;
  if (olabel == 0) return WF_OK;
  if (wf__string_size(&det->strings, string) >= MAX_RESIDUAL) return wf__fail_growth(det, 0, "outputs fall ever further behind inputs (10000 labels)", err);
  return wf__string_put(&det->strings, (uint32_t)olabel, string, out, err);
}

/* Strings are lists from their last label, so a common prefix is a common rest. */
static uint32_t common_prefix(const wf__strings *strings, uint32_t a, uint32_t b) {
  uint32_t size_a = wf__string_size(strings, a), size_b = wf__string_size(strings, b);
  if (size_a > size_b) a = wf__string_drop(strings, a, size_a - size_b);
  else b = wf__string_drop(strings, b, size_b - size_a);
  while (a != b) {
    a = wf__string_rest(strings, a);
    b = wf__string_rest(strings, b);
  }
  return a;
}

static wf_status without_prefix(wf__determinizer *det, struct scratch *scratch, uint32_t string, uint32_t prefix_size, uint32_t *out, wf_error *err) {
  *out = string;
  if (prefix_size == 0) return WF_OK;
  uint32_t keep = wf__string_size(&det->strings, string) - prefix_size;
  scratch->labels.size = 0;
  WF__TRY(wf__vec_grow(&scratch->labels, keep + 1, "output strings", err));
  for (; keep > 0; keep--, string = wf__string_rest(&det->strings, string))
    scratch->labels.data[scratch->labels.size++] = wf__string_label(&det->strings, string);
  *out = 0;
  while (scratch->labels.size > 0) WF__TRY(wf__string_put(&det->strings, scratch->labels.data[--scratch->labels.size], *out, out, err));
  return WF_OK;
}

/* --- arcs of a subset, sorted ------------------------------------------------------------------------------------- */

static wf_status gather(wf__determinizer *det, struct scratch *scratch, wf_error *err) {
  const wf_fst_view *view = &det->view;
  scratch->found.size = 0;
  for (uint64_t k = 0; k < det->current.size; k++) {
    wf__det_element element = det->current.data[k];
    uint64_t first = view->arc_off[element.state], end = view->arc_off[element.state + 1];
    WF__TRY(wf__vec_grow(&scratch->found, end - first, "arcs of a subset", err));
    struct candidate *at = scratch->found.data + scratch->found.size;
    for (uint64_t i = first; i < end; i++) {
      const wf_arc *arc = &view->arcs[i];
      if ((arc->ilabel == 0 && det->closure != NULL) || arc->weight == INFINITY || element.cost == INFINITY) continue;
      uint32_t string = wf__string_of(arc->olabel);
      if (element.string != 0) WF__TRY(wf__residual_append(det, element.string, arc->olabel, &string, err));
      *at++ = (struct candidate){(uint64_t)(uint32_t)arc->ilabel << 32 | arc->nextstate, (double)element.cost + (double)arc->weight, string};
    }
    scratch->found.size = (uint64_t)(at - scratch->found.data);
  }
  return WF_OK;
}

static void merge(const struct candidate *a, const struct candidate *a_end, const struct candidate *b, const struct candidate *b_end, struct candidate *out) {
  while (a < a_end && b < b_end) *out++ = b->key < a->key ? *b++ : *a++;
  while (a < a_end) *out++ = *a++;
  while (b < b_end) *out++ = *b++;
}

/* Natural merge sort, stable: the arcs of each element usually are a sorted run already. */
static wf_status sort_found(struct scratch *scratch, wf_error *err) {
  uint64_t n = scratch->found.size;
  struct candidate *data = scratch->found.data;
  if (n <= 12) {
    for (uint64_t i = 1; i < n; i++) {
      struct candidate moved = data[i];
      uint64_t j = i;
      for (; j > 0 && moved.key < data[j - 1].key; j--) data[j] = data[j - 1];
      data[j] = moved;
    }
    return WF_OK;
  }
  scratch->runs.size = 0;
  for (uint64_t i = 0; i < n; i++)
    if (i == 0 || data[i].key < data[i - 1].key) WF__TRY(wf__vec_push(&scratch->runs, i, "arcs of a subset", err));
  if (scratch->runs.size > 1 && scratch->spare.cap < scratch->found.cap) {
    scratch->spare.size = 0;
    WF__TRY(wf__vec_grow(&scratch->spare, scratch->found.cap, "arcs of a subset", err));
  }
  while (scratch->runs.size > 1) {
    uint64_t *runs = scratch->runs.data, count = scratch->runs.size, kept = 0;
    struct candidate *from = scratch->found.data, *to = scratch->spare.data;
    for (uint64_t r = 0; r < count; r += 2) {
      uint64_t first = runs[r], middle = r + 1 < count ? runs[r + 1] : n, end = r + 2 < count ? runs[r + 2] : n;
      merge(from + first, from + middle, from + middle, from + end, to + first);
      runs[kept++] = first;
    }
    scratch->runs.size = kept;
    uint64_t cap = scratch->found.cap;
    scratch->found.data = to;
    scratch->found.cap = scratch->spare.cap;
    scratch->spare.data = from;
    scratch->spare.cap = cap;
  }
  return WF_OK;
}

/* --- one run of arcs with one label ------------------------------------------------------------------------------- */

/* Makes one of two ways to the same state: their costs are summed, or the better is kept if their outputs differ and that is allowed. */
static wf_status join(wf__determinizer *det, struct candidate *into, const struct candidate *from, wf_error *err) {
  if (into->string == from->string) {
    into->cost = wf__cost_plus(det->view.semiring, into->cost, from->cost);
    return WF_OK;
  }
  wf__det_conflict conflict = {.state = (uint32_t)into->key, .ilabel = (int32_t)(into->key >> 32), .strings = {into->string, from->string}};
  if (!det->o.allow_nonfunctional) return wf__fail_nonfunctional(det, &conflict, err);
  if (from->cost < into->cost) *into = *from;
  return WF_OK;
}

/* The subset that several ways lead to; takes the common output and the total cost out into `arc`. */
static wf_status split_off(wf__determinizer *det, struct scratch *scratch, const struct candidate *run, uint64_t size, wf_arc *arc, wf_error *err) {
  double total = run[0].cost;
  uint32_t prefix = run[0].string;
  for (uint64_t i = 1; i < size; i++) {
    total = wf__cost_plus(det->view.semiring, total, run[i].cost);
    if (prefix != run[i].string) prefix = common_prefix(&det->strings, prefix, run[i].string);
  }
  uint32_t prefix_size = wf__string_size(&det->strings, prefix);
  scratch->subset.size = 0;
  WF__TRY(wf__vec_grow(&scratch->subset, size, "a subset", err));
  for (uint64_t i = 0; i < size; i++) {
    wf__det_element element = {.state = (uint32_t)run[i].key, .cost = wf__cost_to_float(run[i].cost - total)};
    WF__TRY(without_prefix(det, scratch, run[i].string, prefix_size, &element.string, err));
    scratch->subset.data[scratch->subset.size++] = element;
  }
  arc->olabel = (int32_t)prefix;
  arc->weight = wf__cost_to_float(total);
  return wf__det_subsets_add(&det->subsets, scratch->subset.data, (uint32_t)size, &arc->nextstate, err);
}

static wf_status emit_run(wf__determinizer *det, struct scratch *scratch, struct candidate *run, uint64_t size, wf_error *err) {
  uint64_t kept = 1;
  for (uint64_t i = 1; i < size; i++) {
    if (run[i].key == run[kept - 1].key) WF__TRY(join(det, &run[kept - 1], &run[i], err));
    else run[kept++] = run[i];
  }
  wf_arc arc = {.ilabel = (int32_t)(run[0].key >> 32)};
  wf_status status;
  if (kept == 1) {
    arc.olabel = (int32_t)run[0].string;
    arc.weight = wf__cost_to_float(run[0].cost);
    status = wf__det_subsets_add_single(&det->subsets, (uint32_t)run[0].key, &arc.nextstate, err);
  } else {
    if (kept >= UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "a subset of more than 2^32 elements");
    status = split_off(det, scratch, run, kept, &arc, err);
  }
  if (status == WF_ERR_NOT_DETERMINIZABLE && det->subsets.where.size >= det->subsets.max_states) return wf__fail_growth(det, arc.ilabel, "gave up", err);
  WF__TRY(status);
  return wf__csr_push(&det->csr, arc, err);
}

/* --- states ------------------------------------------------------------------------------------------------------- */

/* Final cost of det->current; an output string owed at the end becomes an arc (put in place among the sorted arcs). */
static wf_status emit_final(wf__determinizer *det, struct scratch *scratch, wf_error *err) {
  struct candidate sum = {.key = WF__MAP64_NONE, .cost = INFINITY};
  bool any = false;
  for (uint64_t k = 0; k < det->current.size; k++) {
    wf__det_element element = det->current.data[k];
    if (!wf__is_final(&det->view, element.state) || element.cost == INFINITY) continue;
    struct candidate way = {.key = WF__MAP64_NONE, .cost = (double)element.cost + (double)det->view.final_cost[element.state], .string = element.string};
    if (any) WF__TRY(join(det, &sum, &way, err));
    else sum = way;
    any = true;
  }
  if (!any) return WF_OK;
  if (sum.string == 0) {
    det->csr.final_cost.data[det->csr.final_cost.size - 1] = wf__cost_to_float(sum.cost);
    return WF_OK;
  }
  scratch->uses_sink = true;
  wf_arc arc = {.ilabel = det->o.subsequential_label, .olabel = (int32_t)sum.string, .weight = wf__cost_to_float(sum.cost), .nextstate = FINAL_SINK};
  WF__TRY(wf__csr_push(&det->csr, arc, err));
  wf_arc *arcs = det->csr.arcs.data;
  uint64_t first = det->csr.arc_off.data[det->csr.arc_off.size - 1], at = det->csr.arcs.size - 1;
  for (; at > first && arcs[at - 1].ilabel > arc.ilabel; at--) arcs[at] = arcs[at - 1];
  arcs[at] = arc;
  return WF_OK;
}

static wf_status expand(wf__determinizer *det, struct scratch *scratch, uint32_t id, wf_error *err) {
  wf__det_element single;
  uint32_t size;
  const wf__det_element *elements = wf__det_subsets_get(&det->subsets, id, &single, &size);
  det->current_id = id;
  det->current.size = 0;
  WF__TRY(wf__vec_grow(&det->current, size, "a subset", err));
  memcpy(det->current.data, elements, size * sizeof *elements);
  det->current.size = size;
  if (det->closure != NULL) WF__TRY(wf__det_closure_apply(det, err));
  WF__TRY(wf__csr_add_state(&det->csr, INFINITY, err));
  WF__TRY(gather(det, scratch, err));
  WF__TRY(sort_found(scratch, err));
  struct candidate *found = scratch->found.data;
  for (uint64_t first = 0, end; first < scratch->found.size; first = end) {
    for (end = first + 1; end < scratch->found.size && found[end].key >> 32 == found[first].key >> 32; end++) continue;
    WF__TRY(emit_run(det, scratch, found + first, end - first, err));
  }
  return emit_final(det, scratch, err);
}

static wf_status determinize(wf__determinizer *det, struct scratch *scratch, wf_error *err) {
  uint64_t max_states = det->o.max_states > 0 ? (uint64_t)det->o.max_states : WF__MAX_STATES;
  uint32_t start;
  WF__TRY(wf__strings_init(&det->strings, err));
  WF__TRY(wf__det_subsets_init(&det->subsets, det->view.num_states, (double)det->o.delta, max_states, err));
  if (det->o.rmepsilon && !(wf__fst_local_properties(det->fst) & WF_PROP_NO_IEPSILONS)) WF__TRY(wf__det_closure_create(&det->view, &det->closure, err));
  WF__TRY(wf__det_subsets_add_single(&det->subsets, (uint32_t)det->view.start, &start, err));
  for (uint64_t id = 0; id < det->subsets.where.size; id++) WF__TRY(expand(det, scratch, (uint32_t)id, err));
  uint32_t sink = (uint32_t)det->csr.final_cost.size;
  if (scratch->uses_sink) {
    WF__TRY(wf__csr_add_state(&det->csr, 0, err));
    for (uint64_t i = 0; i < det->csr.arcs.size; i++)
      if (det->csr.arcs.data[i].nextstate == FINAL_SINK) det->csr.arcs.data[i].nextstate = sink;
  }
  return wf__strings_expand(&det->strings, true, scratch->uses_sink ? sink : UINT32_MAX, &det->csr, err);
}

/* Runs on a trimmed fst: a state from which nothing is accepted could seem to have two outputs, and would only cost time. */
static wf_status determinize_trimmed(const wf_fst *fst, const wf_determinize_options *o, wf_fst **out, wf_error *err) {
  wf__determinizer det = {.fst = fst, .view = wf_fst_get_view(fst), .o = *o};
  struct scratch scratch = {0};
  wf_status status = det.view.start < 0 ? WF_OK : determinize(&det, &scratch, err);
  wf__vec_free(&scratch.found);
  wf__vec_free(&scratch.spare);
  wf__vec_free(&scratch.runs);
  wf__vec_free(&scratch.subset);
  wf__vec_free(&scratch.labels);
  wf__vec_free(&det.current);
  wf__det_subsets_free(&det.subsets);
  wf__strings_free(&det.strings);
  wf__det_closure_free(det.closure);
  if (status == WF_OK) {
    int64_t start = det.view.start < 0 ? -1 : 0;
    return wf__fst_from_csr(&det.csr, start, det.view.semiring, wf_fst_isymbols(fst), wf_fst_osymbols(fst), out, err);
  }
  wf__csr_free(&det.csr);
  return status;
}

wf_status wf_determinize(const wf_fst *fst, const wf_determinize_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_determinize_options o;
  WF__TRY(wf__options_take(wf__determinize_table(), options, &o, err));
  wf_fst *trimmed;
  WF__TRY(wf_connect(fst, &trimmed, err));
  wf_status status = determinize_trimmed(trimmed, &o, out, err);
  wf_fst_free(trimmed);
  return status;
}
