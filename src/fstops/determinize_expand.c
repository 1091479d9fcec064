/* determinize_expand.c - expands a subset into arcs.
 *
 * The arcs of all elements of the subset are sorted by (input label, next state) and split into
 * runs with the same input label. A run becomes one arc. The arc emits the longest common prefix of
 * the run's outputs and has the sum of their costs as weight. The rest of the outputs and costs
 * become the residuals of the target subset. A run of one arc, the usual case in practice, leads to
 * the subset {(state, empty, 0)}. */
#include <string.h>

#include "fstops/determinize.h"

/* --- arcs of a subset, sorted ------------------------------------------------------------ */

static wf_status gather(wf__det_worker *worker, wf_error *err) {
  const wf__determinizer *det = worker->det;
  const wf_fst_view *view = &det->view;
  worker->found.size = 0;
  for (uint64_t k = 0; k < worker->current.size; k++) {
    wf__det_element element = worker->current.data[k];
    uint64_t first = view->arc_off[element.state], end = view->arc_off[element.state + 1];
    WF__TRY(wf__vec_grow(&worker->found, end - first, "arcs of a subset", err));
    wf__det_candidate *at = worker->found.data + worker->found.size;
    for (uint64_t i = first; i < end; i++) {
      const wf_arc *arc = &view->arcs[i];
      if (arc->ilabel == 0 && det->closure != NULL) continue;
      if (arc->weight == INFINITY || element.cost == INFINITY) {
        worker->dropped = true;
        continue;
      }
      uint32_t string = wf__string_of(arc->olabel);
      if (element.string != 0)
        WF__TRY(wf__residual_append(worker, element.string, arc->olabel, &string, err));
      *at++ = (wf__det_candidate){(uint64_t)(uint32_t)arc->ilabel << 32 | arc->nextstate,
                                  (double)element.cost + (double)arc->weight, string};
    }
    worker->found.size = (uint64_t)(at - worker->found.data);
  }
  return WF_OK;
}

static void merge(const wf__det_candidate *a, const wf__det_candidate *a_end,
                  const wf__det_candidate *b, const wf__det_candidate *b_end,
                  wf__det_candidate *out) {
  while (a < a_end && b < b_end) *out++ = b->key < a->key ? *b++ : *a++;
  while (a < a_end) *out++ = *a++;
  while (b < b_end) *out++ = *b++;
}

/* Stable natural merge sort: the arcs of each element are usually sorted already. */
static wf_status sort_found(wf__det_worker *worker, wf_error *err) {
  uint64_t n = worker->found.size;
  wf__det_candidate *data = worker->found.data;
  if (n <= 12) {
    for (uint64_t i = 1; i < n; i++) {
      wf__det_candidate moved = data[i];
      uint64_t j = i;
      for (; j > 0 && moved.key < data[j - 1].key; j--) data[j] = data[j - 1];
      data[j] = moved;
    }
    return WF_OK;
  }
  worker->runs.size = 0;
  for (uint64_t i = 0; i < n; i++)
    if (i == 0 || data[i].key < data[i - 1].key)
      WF__TRY(wf__vec_push(&worker->runs, i, "arcs of a subset", err));
  if (worker->runs.size > 1 && worker->spare.cap < worker->found.cap) {
    worker->spare.size = 0;
    WF__TRY(wf__vec_grow(&worker->spare, worker->found.cap, "arcs of a subset", err));
  }
  while (worker->runs.size > 1) {
    uint64_t *runs = worker->runs.data, count = worker->runs.size, kept = 0;
    wf__det_candidate *from = worker->found.data, *to = worker->spare.data;
    for (uint64_t r = 0; r < count; r += 2) {
      uint64_t first = runs[r], middle = r + 1 < count ? runs[r + 1] : n,
               end = r + 2 < count ? runs[r + 2] : n;
      merge(from + first, from + middle, from + middle, from + end, to + first);
      runs[kept++] = first;
    }
    worker->runs.size = kept;
    uint64_t cap = worker->found.cap;
    worker->found.data = to;
    worker->found.cap = worker->spare.cap;
    worker->spare.data = from;
    worker->spare.cap = cap;
  }
  return WF_OK;
}

/* --- one run of arcs with one label ------------------------------------------------------ */

/* Combines two paths to the same state: sums their costs, or keeps the better one if their outputs
 * differ and allow_nonfunctional is set. */
static wf_status join(wf__det_worker *worker, wf__det_candidate *into,
                      const wf__det_candidate *from, wf_error *err) {
  const wf__determinizer *det = worker->det;
  if (into->string == from->string) {
    into->cost = wf__cost_plus(det->view.semiring, into->cost, from->cost);
    return WF_OK;
  }
  if (worker->shared && !det->o.allow_nonfunctional) return WF_ERR_STATE;
  wf__det_conflict conflict = {.state = (uint32_t)into->key,
                               .ilabel = (int32_t)(into->key >> 32),
                               .strings = {into->string, from->string}};
  if (!det->o.allow_nonfunctional) return wf__fail_nonfunctional(det, &conflict, err);
  if (from->cost < into->cost) *into = *from;
  return WF_OK;
}

static int compare_strings(const void *a, const void *b) {
  const wf__det_element *x = a, *y = b;
  return (x->string > y->string) - (x->string < y->string);
}

/* Puts elements of one state in the order of their strings, which differ: a subset of several
 * outputs for one state, as det_type=nonfunctional has them, must not depend on the order of paths.
 */
static void order_strings(wf__det_element *elements, uint64_t size) {
  for (uint64_t first = 0, end; first < size; first = end) {
    for (end = first + 1; end < size && elements[end].state == elements[first].state;) end++;
    if (end - first > 1) qsort(elements + first, end - first, sizeof *elements, compare_strings);
  }
}

/* Makes the target subset of a run with several target states. The common output prefix and the
 * total cost go to `arc`. */
static wf_status split_off(wf__det_worker *worker, const wf__det_candidate *run, uint64_t size,
                           wf_arc *arc, wf_error *err) {
  const wf__determinizer *det = worker->det;
  wf__det_chunk *out = worker->out;
  double total = run[0].cost;
  uint32_t prefix = run[0].string;
  for (uint64_t i = 1; i < size; i++) {
    total = wf__cost_plus(det->view.semiring, total, run[i].cost);
    if (prefix != run[i].string)
      prefix = wf__residual_common_prefix(&det->strings, prefix, run[i].string);
  }
  uint32_t prefix_size = wf__string_size(&det->strings, prefix);
  WF__TRY(wf__vec_grow(&out->elements, size, "a subset", err));
  wf__det_element *elements = out->elements.data + out->elements.size;
  for (uint64_t i = 0; i < size; i++) {
    elements[i] = (wf__det_element){.state = (uint32_t)run[i].key,
                                    .cost = wf__cost_to_float(run[i].cost - total)};
    WF__TRY(
        wf__residual_without_prefix(worker, run[i].string, prefix_size, &elements[i].string, err));
  }
  if (det->o.det_type == WF__DET_ALL_OUTPUTS) order_strings(elements, size);
  arc->olabel = (int32_t)prefix;
  arc->weight = wf__cost_to_float(total);
  arc->nextstate = WF__DET_SEVERAL | (uint32_t)out->targets.size;
  wf__det_target target = {
      .off = out->elements.size,
      .size = (uint32_t)size,
      .hash = wf__det_hash(det->subsets.inverse_delta, elements, (uint32_t)size)};
  out->elements.size += size;
  return wf__vec_push(&out->targets, target, "a subset", err);
}

/* --- several outputs for one state ------------------------------------------------------- */

/* Ways, each to a state or with an output of its own. Those of the last state begin at `first`; if
 * there are more than FEW, worker->outputs finds them by their strings. */
struct joined {
  wf__det_candidate *ways;
  uint64_t size, first;
};

enum { FEW = 16 };

/* The way of the last state with this output, or NULL. */
static wf__det_candidate *find_output(const wf__det_worker *worker, const struct joined *joined,
                                      uint32_t string) {
  wf__det_candidate *ways = joined->ways + joined->first;
  const uint64_t count = joined->size - joined->first;
  if (count > FEW) {
    const uint32_t at = wf__map64_find(&worker->outputs, string);
    return at != WF__MAP64_NONE ? &ways[at] : NULL;
  }
  for (uint64_t i = 0; i < count; i++)
    if (ways[i].string == string) return &ways[i];
  return NULL;
}

/* Notes the way that was added last. */
static wf_status note_output(wf__det_worker *worker, const struct joined *joined, wf_error *err) {
  const wf__det_candidate *ways = joined->ways + joined->first;
  const uint64_t count = joined->size - joined->first;
  if (count == 1) wf__map64_clear(&worker->outputs);
  if (count <= FEW) return WF_OK;
  for (uint64_t i = count == FEW + 1 ? 0 : count - 1; i < count; i++) {
    uint32_t same;
    WF__TRY(wf__map64_insert(&worker->outputs, ways[i].string, (uint32_t)i, &same, NULL,
                             "outputs of a subset", err));
  }
  return WF_OK;
}

/* Adds a way (a path to the state of its key), or joins it with the one to the same state; if all
 * outputs are kept, with the one of the same output. Ways to one state follow each other. */
static wf_status add_way(wf__det_worker *worker, struct joined *joined,
                         const wf__det_candidate *way, wf_error *err) {
  const bool all = worker->det->o.det_type == WF__DET_ALL_OUTPUTS;
  wf__det_candidate *same = NULL;
  if (joined->size == 0 || joined->ways[joined->size - 1].key != way->key)
    joined->first = joined->size;
  else
    same = all ? find_output(worker, joined, way->string) : &joined->ways[joined->size - 1];
  if (same != NULL) return join(worker, same, way, err);
  joined->ways[joined->size++] = *way;
  return all ? note_output(worker, joined, err) : WF_OK;
}

/* --- arcs --------------------------------------------------------------------------------- */

static wf_status emit_run(wf__det_worker *worker, wf__det_candidate *run, uint64_t size,
                          wf_error *err) {
  struct joined joined = {.ways = run};
  for (uint64_t i = 0; i < size; i++) WF__TRY(add_way(worker, &joined, &run[i], err));
  const uint64_t kept = joined.size;
  wf_arc arc = {.ilabel = (int32_t)(run[0].key >> 32)};
  if (kept == 1) {
    arc.olabel = (int32_t)run[0].string;
    arc.weight = wf__cost_to_float(run[0].cost);
    arc.nextstate = (uint32_t)run[0].key;
  } else {
    if (kept >= UINT32_MAX)
      return wf__fail(err, WF_ERR_LIMIT, "a subset has more than 2^32-1 elements");
    WF__TRY(split_off(worker, run, kept, &arc, err));
  }
  return wf__vec_push(&worker->out->arcs, arc, "arcs", err);
}

/* --- states ------------------------------------------------------------------------------ */

/* Adds arcs that emit the output strings left at the end, which are those of worker->found. They
 * are inserted among the sorted arcs of the state, which begin at `first`. */
static wf_status emit_last_strings(wf__det_worker *worker, uint64_t first, wf_error *err) {
  const int32_t ilabel = worker->det->o.subsequential_label;
  uint64_t count = 0, at = worker->out->arcs.size;
  for (uint64_t k = 0; k < worker->found.size; k++) count += worker->found.data[k].string != 0;
  if (count == 0) return WF_OK;
  WF__TRY(wf__vec_grow(&worker->out->arcs, count, "arcs", err));
  wf_arc *arcs = worker->out->arcs.data;
  while (at > first && arcs[at - 1].ilabel > ilabel) at--;
  memmove(arcs + at + count, arcs + at, (worker->out->arcs.size - at) * sizeof *arcs);
  worker->out->arcs.size += count;
  for (uint64_t k = 0; k < worker->found.size; k++) {
    const wf__det_candidate *way = &worker->found.data[k];
    if (way->string == 0) continue;
    arcs[at++] = (wf_arc){.ilabel = ilabel,
                          .olabel = (int32_t)way->string,
                          .weight = wf__cost_to_float(way->cost),
                          .nextstate = WF__DET_SINK};
  }
  return WF_OK;
}

/* Sets the final cost of worker->current, or adds arcs that emit the outputs left at the end. */
static wf_status emit_final(wf__det_worker *worker, uint64_t first, float *final_cost,
                            wf_error *err) {
  const wf__determinizer *det = worker->det;
  *final_cost = INFINITY;
  worker->found.size = 0;
  WF__TRY(wf__vec_grow(&worker->found, worker->current.size, "final outputs", err));
  struct joined joined = {.ways = worker->found.data};
  for (uint64_t k = 0; k < worker->current.size; k++) {
    wf__det_element element = worker->current.data[k];
    if (!wf__is_final(&det->view, element.state)) continue;
    if (element.cost == INFINITY) {
      worker->dropped = true;
      continue;
    }
    wf__det_candidate way = {
        .key = WF__MAP64_NONE,
        .cost = (double)element.cost + (double)det->view.final_cost[element.state],
        .string = element.string};
    WF__TRY(add_way(worker, &joined, &way, err));
  }
  worker->found.size = joined.size;
  for (uint64_t k = 0; k < worker->found.size; k++) {
    const wf__det_candidate *way = &worker->found.data[k];
    if (way->string != 0) continue;
    *final_cost = wf__cost_to_float(way->cost);
    worker->dropped = worker->dropped || *final_cost == INFINITY;
  }
  return emit_last_strings(worker, first, err);
}

/* Expands the subset {(state, empty, 0)} of a state whose arcs are sorted and have distinct labels
 * other than epsilon: its arcs stay as they are. `*done` is false, and nothing has changed, if they
 * are not. */
static wf_status copy_arcs(wf__det_worker *worker, uint32_t state, bool *done, wf_error *err) {
  const wf_fst_view *view = &worker->det->view;
  const wf_arc *arcs = view->arcs + view->arc_off[state];
  const uint64_t count = view->arc_off[state + 1] - view->arc_off[state];
  wf__det_chunk *out = worker->out;
  int32_t before = 0;
  *done = false;
  WF__TRY(wf__vec_grow(&out->arcs, count, "arcs", err));
  wf_arc *to = out->arcs.data + out->arcs.size;
  for (uint64_t i = 0; i < count; i++) {
    if (arcs[i].ilabel <= before || arcs[i].weight == INFINITY) return WF_OK;
    before = arcs[i].ilabel;
    to[i] = (wf_arc){.nextstate = arcs[i].nextstate,
                     .weight = wf__cost_to_float(0.0 + (double)arcs[i].weight),
                     .ilabel = arcs[i].ilabel,
                     .olabel = (int32_t)wf__string_of(arcs[i].olabel)};
  }
  out->arcs.size += count;
  *done = true;
  return WF_OK;
}

static wf_status make_arcs(wf__det_worker *worker, wf_error *err) {
  if (worker->det->closure != NULL) WF__TRY(wf__det_closure_apply(worker, err));
  WF__TRY(gather(worker, err));
  WF__TRY(sort_found(worker, err));
  wf__det_candidate *found = worker->found.data;
  for (uint64_t first = 0, end; first < worker->found.size; first = end) {
    for (end = first + 1;
         end < worker->found.size && found[end].key >> 32 == found[first].key >> 32; end++)
      continue;
    WF__TRY(emit_run(worker, found + first, end - first, err));
  }
  return WF_OK;
}

wf_status wf__det_expand(wf__det_worker *worker, const wf__det_element *elements, uint32_t size,
                         wf__det_expanded *state, wf_error *err) {
  uint64_t begin = worker->out->arcs.size;
  worker->current.size = 0;
  WF__TRY(wf__vec_grow(&worker->current, size, "a subset", err));
  memcpy(worker->current.data, elements, size * sizeof *elements);
  worker->current.size = size;
  bool done = false;
  if (size == 1 && elements->string == 0 && elements->cost == 0)
    WF__TRY(copy_arcs(worker, elements->state, &done, err));
  if (!done) WF__TRY(make_arcs(worker, err));
  WF__TRY(emit_final(worker, begin, &state->final_cost, err));
  if (worker->out->arcs.size - begin >= UINT32_MAX ||
      worker->out->targets.size >= WF__DET_SEVERAL - 2)
    return wf__fail(err, WF_ERR_LIMIT, "a state has more than 2^31 arcs");
  state->arc_off = begin;
  state->num_arcs = (uint32_t)(worker->out->arcs.size - begin);
  return WF_OK;
}

void wf__det_chunk_free(wf__det_chunk *chunk) {
  wf__vec_free(&chunk->input);
  wf__vec_free(&chunk->input_size);
  wf__vec_free(&chunk->states);
  wf__vec_free(&chunk->postponed);
  wf__vec_free(&chunk->arcs);
  wf__vec_free(&chunk->targets);
  wf__vec_free(&chunk->elements);
}

void wf__det_worker_free(wf__det_worker *worker) {
  wf__vec_free(&worker->current);
  wf__vec_free(&worker->found);
  wf__vec_free(&worker->spare);
  wf__vec_free(&worker->runs);
  wf__vec_free(&worker->labels);
  wf__map64_free(&worker->outputs);
  wf__det_scratch_free(worker->scratch);
}
