/* word_determinizer.c - subsets of an exact lattice, best first, and the lattice that they make. */
#include "lattice/word_determinizer.h"

#include <string.h>

/* --- subsets --------------------------------------------------------------------------------------------------------- */

static inline int64_t binned(const wf__word_determinizer *det, int64_t cost) { return det->bin == 0 ? cost : (cost + ((int64_t)1 << (det->bin - 1))) >> det->bin; }

static uint32_t hash_of(const wf__word_determinizer *det, const wf__word_element *elements, uint32_t count) {
  uint64_t hash = count;
  for (uint32_t k = 0; k < count; k++) {
    hash = wf__mix64(hash ^ ((uint64_t)elements[k].state << 32 | elements[k].string));
    hash ^= (uint64_t)binned(det, elements[k].cost.graph) * 0x9e3779b97f4a7c15ULL + (uint64_t)binned(det, elements[k].cost.acoustic);
  }
  return (uint32_t)(wf__mix64(hash) >> 32);
}

static bool same(const wf__word_determinizer *det, const wf__word_subset *subset, const wf__word_element *elements, uint32_t count) {
  if (subset->num_elements != count) return false;
  const wf__word_element *have = det->elements.data + subset->first_element;
  for (uint32_t k = 0; k < count; k++) {
    if (have[k].state != elements[k].state || have[k].string != elements[k].string || binned(det, have[k].cost.graph) != binned(det, elements[k].cost.graph) ||
        binned(det, have[k].cost.acoustic) != binned(det, elements[k].cost.acoustic))
      return false;
  }
  return true;
}

static wf_status grow_slots(wf__word_determinizer *det, wf_error *err) {
  int bits = det->slot_bits == 0 ? 8 : det->slot_bits + 1;
  uint64_t count = (uint64_t)1 << bits, mask = count - 1, *slots = wf__alloc(count, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, count * sizeof *slots, "determinization");
  memset(slots, 0xff, count * sizeof *slots);
  for (uint64_t i = 0; det->slot_bits != 0 && i < count / 2; i++) {
    if (det->slots[i] == UINT64_MAX) continue;
    uint64_t at = (det->slots[i] >> 32) & mask;
    while (slots[at] != UINT64_MAX) at = (at + 1) & mask;
    slots[at] = det->slots[i];
  }
  free(det->slots);
  det->slots = slots;
  det->slot_bits = bits;
  return WF_OK;
}

/* Of two subsets with equally good paths, the one farther along: so that a path is complete soon. */
static bool goes_first(const void *user, wf__queued a, wf__queued b) {
  const wf__word_determinizer *det = user;
  if (a.cost != b.cost) return a.cost < b.cost;
  uint32_t x = det->elements.data[det->subsets.data[a.id].first_element].state, y = det->elements.data[det->subsets.data[b.id].first_element].state;
  return x != y ? x > y : a.id < b.id;
}

/* The subset of the last `count` elements, which stay only if it is a new one; reached at cost `forward` from the start. */
static wf_status intern(wf__word_determinizer *det, uint32_t count, int64_t onward, int64_t forward, uint32_t *out, wf_error *err) {
  if (det->slot_bits == 0 || det->subsets.size * 2 >= (uint64_t)1 << det->slot_bits) WF__TRY(grow_slots(det, err));
  uint64_t first = det->elements.size - count, mask = ((uint64_t)1 << det->slot_bits) - 1;
  const wf__word_element *elements = det->elements.data + first;
  uint32_t hash = hash_of(det, elements, count);
  uint64_t slot = hash & mask;
  for (; det->slots[slot] != UINT64_MAX; slot = (slot + 1) & mask) {
    uint32_t id = (uint32_t)det->slots[slot];
    wf__word_subset *subset = &det->subsets.data[id];
    if (det->slots[slot] >> 32 != hash || !same(det, subset, elements, count)) continue;
    det->elements.size = first;
    *out = id;
    if (subset->expanded || forward >= subset->forward) return WF_OK;
    subset->forward = forward;
    return wf__queue_put(&det->queue, (wf__queued){forward + subset->onward, id}, goes_first, det, err);
  }
  if (det->subsets.size >= INT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "determinization: 2^31 states or more");
  *out = (uint32_t)det->subsets.size;
  wf__word_subset subset = {.first_element = first, .num_elements = count, .forward = forward, .onward = onward, .end = {WF__NEVER, 0}};
  WF__TRY(wf__vec_push(&det->subsets, subset, "determinization", err));
  det->slots[slot] = (uint64_t)hash << 32 | *out;
  return wf__queue_put(&det->queue, (wf__queued){forward + onward, *out}, goes_first, det, err);
}

static uint64_t bytes_of(const wf__word_determinizer *det) {
  return det->elements.size * sizeof(wf__word_element) + det->subsets.size * (sizeof(wf__word_subset) + 4 * sizeof *det->slots) + det->arcs.size * sizeof(wf__word_arc) +
         det->queue.heap.size * sizeof(wf__queued) + wf__labels_bytes(&det->strings);
}

/* --- expansion ------------------------------------------------------------------------------------------------------- */

static wf__exact_cost cost_of(const wf__word_determinizer *det, const wf__way_out *way) {
  return wf__exact_sum(det->closure.reached.data[way->from].cost, det->in->arcs.data[way->arc].cost);
}

/* The ways with one word, sorted by state: keeps the best to each state in place, and how many there are. `*onward`: cost of the best path through them. */
static uint64_t keep_best(const wf__word_determinizer *det, wf__way_out *ways, uint64_t count, int64_t *onward) {
  uint64_t kept = 0;
  *onward = WF__NEVER;
  for (uint64_t i = 0; i < count; i++) {
    wf__exact_cost cost = cost_of(det, &ways[i]);
    if (kept == 0 || ways[kept - 1].key != ways[i].key) ways[kept++] = ways[i];
    else if (wf__exact_before(cost, cost_of(det, &ways[kept - 1]))) ways[kept - 1] = ways[i];
    int64_t through = wf__exact_total(cost) + det->backward[(uint32_t)ways[i].key];
    if (through < *onward) *onward = through;
  }
  return kept;
}

/* Takes the least cost and what is common to all strings from the last `count` elements. */
static wf_status normalize(wf__word_determinizer *det, uint64_t count, wf__exact_cost *least, uint32_t *common, wf_error *err) {
  wf__word_element *elements = det->elements.data + det->elements.size - count;
  *least = elements[0].cost;
  *common = elements[0].string;
  for (uint64_t k = 1; k < count; k++) {
    if (wf__exact_before(elements[k].cost, *least)) *least = elements[k].cost;
    *common = wf__labels_common(&det->strings, *common, elements[k].string);
  }
  uint32_t length = det->strings.nodes.data[*common].size;
  wf__labels_begin_strip(&det->strings);
  for (uint64_t k = 0; k < count; k++) {
    elements[k].cost = wf__exact_less(elements[k].cost, *least);
    WF__TRY(wf__labels_strip(&det->strings, elements[k].string, length, &elements[k].string, err));
  }
  return WF_OK;
}

/* The arc for one word. */
static wf_status add_arc(wf__word_determinizer *det, int64_t forward, wf__way_out *ways, uint64_t count, wf_error *err) {
  int64_t through;
  uint64_t kept = keep_best(det, ways, count, &through);
  if (forward + through > det->cutoff) return WF_OK;
  WF__TRY(wf__vec_grow(&det->elements, kept, "determinization", err));
  uint64_t num_elements = 0;
  for (uint64_t i = 0; i < kept; i++) {
    const wf__exact_arc *arc = &det->in->arcs.data[ways[i].arc];
    wf__word_element element = {.cost = cost_of(det, &ways[i]), .state = arc->nextstate};
    if (wf__exact_total(element.cost) + det->backward[arc->nextstate] > through + det->width) continue;
    WF__TRY(wf__word_closure_string(det, ways[i].from, &element.string, err));
    WF__TRY(wf__word_append(det, element.string, arc->first_label, arc->num_labels, &element.string, err));
    det->elements.data[det->elements.size++] = element;
    num_elements++;
  }
  wf__word_arc arc = {.word = (int32_t)(ways[0].key >> 32)};
  WF__TRY(normalize(det, num_elements, &arc.cost, &arc.string, err));
  int64_t cost = wf__exact_total(arc.cost);
  WF__TRY(intern(det, (uint32_t)num_elements, through - cost, forward + cost, &arc.nextstate, err));
  return wf__vec_push(&det->arcs, arc, "determinization", err);
}

static wf_status expand(wf__word_determinizer *det, uint32_t id, wf_error *err) {
  wf__word_subset subset = det->subsets.data[id];
  const wf__word_closure *closure = &det->closure;
  subset.expanded = true;
  subset.first_arc = det->arcs.size;
  WF__TRY(wf__word_closure_find(det, &subset, subset.onward + det->width, err));
  if (closure->end != UINT32_MAX) {
    const wf__reached *end = &closure->reached.data[closure->end];
    const wf__exact_end *last = &det->in->ends.data[end->state];
    wf__exact_cost cost = wf__exact_sum(end->cost, last->cost);
    if (subset.forward + wf__exact_total(cost) <= det->cutoff) {
      subset.end = cost;
      WF__TRY(wf__word_closure_string(det, closure->end, &subset.end_string, err));
      WF__TRY(wf__word_append(det, subset.end_string, last->first_label, last->num_labels, &subset.end_string, err));
      det->complete = det->complete || wf__exact_total(cost) == subset.onward; /* the best way on was to end here */
    }
  }
  for (uint64_t first = 0, end; first < closure->ways.size; first = end) {
    uint64_t word = closure->ways.data[first].key >> 32;
    for (end = first + 1; end < closure->ways.size && closure->ways.data[end].key >> 32 == word; end++) continue;
    WF__TRY(add_arc(det, subset.forward, closure->ways.data + first, end - first, err));
  }
  subset.num_arcs = (uint32_t)(det->arcs.size - subset.first_arc);
  det->subsets.data[id] = subset;
  return WF_OK;
}

static wf_status expand_all(wf__word_determinizer *det, wf_error *err) {
  det->elements.data[det->elements.size++] = (wf__word_element){.state = 0};
  uint32_t start;
  WF__TRY(intern(det, 1, det->backward[0], 0, &start, err));
  while (det->queue.heap.size > 0) {
    wf__queued next = wf__queue_take(&det->queue, goes_first, det);
    if (det->subsets.data[next.id].expanded) continue;
    if (det->complete && bytes_of(det) > det->max_bytes) {
      det->reached_cutoff = next.cost - 1;
      if (det->reached_cutoff < det->backward[0]) det->reached_cutoff = det->backward[0];
      return WF_OK;
    }
    WF__TRY(expand(det, next.id, err));
  }
  return WF_OK;
}

/* --- the result ------------------------------------------------------------------------------------------------------ */

/* Arcs lead from a subset to one whose first state is later, so that is an order for the result. */
static wf_status order_subsets(const wf__word_determinizer *det, uint32_t *order, uint32_t *number, wf_error *err) {
  uint64_t n = wf__exact_num_states(det->in), count = 0, *first = wf__calloc(n + 1, sizeof *first);
  if (first == NULL) return wf__fail_memory(err, (n + 1) * sizeof *first, "determinization");
  for (uint64_t id = 0; id < det->subsets.size; id++)
    if (det->subsets.data[id].expanded) first[det->elements.data[det->subsets.data[id].first_element].state + 1]++;
  for (uint64_t s = 0; s < n; s++) first[s + 1] += first[s];
  for (uint64_t id = 0; id < det->subsets.size; id++) {
    number[id] = UINT32_MAX;
    if (!det->subsets.data[id].expanded) continue;
    number[id] = (uint32_t)first[det->elements.data[det->subsets.data[id].first_element].state]++;
    order[number[id]] = (uint32_t)id;
    count++;
  }
  free(first);
  for (uint64_t i = count; i < det->subsets.size; i++) order[i] = UINT32_MAX;
  return WF_OK;
}

static wf_status put_labels(const wf__word_determinizer *det, uint32_t string, wf__exact_lattice *out, uint32_t *first, uint32_t *count, wf_error *err) {
  *count = det->strings.nodes.data[string].size;
  *first = (uint32_t)out->labels.size;
  if (out->labels.size + *count >= UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "a lattice of alignments of 2^32 labels or more");
  WF__TRY(wf__vec_grow(&out->labels, *count, "alignments", err));
  wf__labels_write(&det->strings, string, out->labels.data + *first);
  out->labels.size += *count;
  return WF_OK;
}

static wf_status write_subset(const wf__word_determinizer *det, const wf__word_subset *subset, const uint32_t *number, wf__exact_lattice *out, wf_error *err) {
  wf__exact_end end = {.cost = subset->end};
  if (end.cost.graph != WF__NEVER) WF__TRY(put_labels(det, subset->end_string, out, &end.first_label, &end.num_labels, err));
  WF__TRY(wf__exact_add_state(out, end, err));
  WF__TRY(wf__vec_grow(&out->arcs, subset->num_arcs, "lattice arcs", err));
  for (uint32_t k = 0; k < subset->num_arcs; k++) {
    const wf__word_arc *from = &det->arcs.data[subset->first_arc + k];
    if (number[from->nextstate] == UINT32_MAX) continue;
    wf__exact_arc arc = {.cost = from->cost, .word = from->word, .nextstate = number[from->nextstate]};
    WF__TRY(put_labels(det, from->string, out, &arc.first_label, &arc.num_labels, err));
    out->arcs.data[out->arcs.size++] = arc;
  }
  return WF_OK;
}

static wf_status write(const wf__word_determinizer *det, wf__exact_lattice *out, wf_error *err) {
  uint32_t *order = wf__alloc(det->subsets.size, 2 * sizeof *order), *number = order + det->subsets.size;
  if (order == NULL) return wf__fail_memory(err, det->subsets.size * 8, "determinization");
  out->unit = det->in->unit;
  wf_status status = order_subsets(det, order, number, err);
  for (uint64_t i = 0; i < det->subsets.size && status == WF_OK && order[i] != UINT32_MAX; i++) status = write_subset(det, &det->subsets.data[order[i]], number, out, err);
  if (status == WF_OK) status = wf__exact_finish(out, err);
  free(order);
  return status;
}

static void free_all(wf__word_determinizer *det) {
  free(det->backward);
  free(det->slots);
  wf__labels_free(&det->strings);
  wf__word_closure_free(&det->closure);
  wf__vec_free(&det->elements);
  wf__vec_free(&det->subsets);
  wf__vec_free(&det->arcs);
  wf__vec_free(&det->queue.heap);
}

wf_status wf__determinize_words(const wf__exact_lattice *in, int64_t width, int64_t delta, uint64_t max_bytes, wf__exact_lattice *out, wf__word_outcome *outcome, wf_error *err) {
  wf__word_determinizer det = {.in = in, .width = width, .max_bytes = max_bytes};
  *out = (wf__exact_lattice){0};
  while (det.bin < 61 && (int64_t)2 << det.bin <= delta) det.bin++;
  wf_status status = wf__exact_backward(in, &det.backward, err);
  if (status == WF_OK) {
    det.cutoff = det.reached_cutoff = det.backward[0] + width;
    status = wf__labels_init(&det.strings, err);
  }
  if (status == WF_OK) status = wf__word_closure_init(&det.closure, wf__exact_num_states(in), err);
  if (status == WF_OK) status = wf__vec_grow(&det.elements, 1, "determinization", err);
  if (status == WF_OK) status = expand_all(&det, err);
  if (status == WF_OK) status = write(&det, out, err);
  if (status == WF_OK) {
    *outcome = (wf__word_outcome){det.reached_cutoff - det.backward[0], det.reached_cutoff < det.cutoff, det.subsets.size, bytes_of(&det)};
    if (outcome->narrowed) status = wf__exact_reduce(out, outcome->width, err);
  }
  if (status != WF_OK) wf__exact_free(out);
  free_all(&det);
  return status;
}
