/* word_determinizer.c - subsets of an exact lattice, best first, and the lattice that they make. */
#include "lattice/word_determinizer.h"

#include <string.h>

#include "base/interrupt.h"

/* --- subsets ----------------------------------------------------------------------------- */

static inline int64_t binned(const wf__word_determinizer *det, int64_t cost) {
  return det->bin == 0 ? cost : (cost + ((int64_t)1 << (det->bin - 1))) >> det->bin;
}

/* A sum, so that the elements' hashes are computed independently. */
static uint32_t hash_of(const wf__word_determinizer *det, const wf__word_element *elements,
                        uint32_t count) {
  uint64_t hash = count;
  for (uint32_t k = 0; k < count; k++) {
    const uint64_t costs = (uint64_t)binned(det, elements[k].cost.graph) * 0x9e3779b97f4a7c15ULL +
                           (uint64_t)binned(det, elements[k].cost.acoustic);
    hash += wf__mix64(((uint64_t)elements[k].state << 32 | elements[k].string) +
                      costs * 0xff51afd7ed558ccdULL);
  }
  return (uint32_t)(wf__mix64(hash) >> 32);
}

static bool same(const wf__word_determinizer *det, const wf__word_subset *subset,
                 const wf__word_element *elements, uint32_t count) {
  if (subset->num_elements != count) return false;
  const wf__word_element *have = det->elements.data + subset->first_element;
  for (uint32_t k = 0; k < count; k++) {
    if (have[k].state != elements[k].state || have[k].string != elements[k].string ||
        binned(det, have[k].cost.graph) != binned(det, elements[k].cost.graph) ||
        binned(det, have[k].cost.acoustic) != binned(det, elements[k].cost.acoustic))
      return false;
  }
  return true;
}

/* Makes `count` empty slots, a power of 2. */
static wf_status make_slots(wf__word_slots *slots, uint64_t count, wf_error *err) {
  slots->size = 0;
  WF__TRY(wf__vec_grow(slots, count, "determinization", err));
  slots->size = count;
  memset(slots->data, 0xff, count * sizeof *slots->data);
  return WF_OK;
}

static wf_status grow_slots(wf__word_determinizer *det, wf_error *err) {
  const wf__word_slots *from = &det->slots;
  wf__word_slots *to = &det->spare_slots;
  WF__TRY(make_slots(to, 2 * from->size, err));
  for (uint64_t i = 0; i < from->size; i++) {
    if (from->data[i] == UINT64_MAX) continue;
    uint64_t at = (from->data[i] >> 32) & (to->size - 1);
    while (to->data[at] != UINT64_MAX) at = (at + 1) & (to->size - 1);
    to->data[at] = from->data[i];
  }
  wf__vec_swap(&det->slots, &det->spare_slots);
  return WF_OK;
}

/* Of two subsets with equally good paths, the later one is expanded first, so that paths are
 * completed soon. */
static bool goes_first(const void *user, wf__queued a, wf__queued b) {
  const wf__word_determinizer *det = user;
  if (a.cost != b.cost) return a.cost < b.cost;
  uint32_t x = det->elements.data[det->subsets.data[a.id].first_element].state,
           y = det->elements.data[det->subsets.data[b.id].first_element].state;
  return x != y ? x > y : a.id < b.id;
}

/* Finds or makes the subset of the last `count` elements, which is reached at cost `forward` from
 * the start. The elements are kept only if the subset is new. */
static wf_status intern(wf__word_determinizer *det, uint32_t count, int64_t onward, int64_t forward,
                        uint32_t *out, wf_error *err) {
  if (det->subsets.size * 2 >= det->slots.size) WF__TRY(grow_slots(det, err));
  uint64_t first = det->elements.size - count, mask = det->slots.size - 1, *slots = det->slots.data;
  const wf__word_element *elements = det->elements.data + first;
  uint32_t hash = hash_of(det, elements, count);
  uint64_t slot = hash & mask;
  for (; slots[slot] != UINT64_MAX; slot = (slot + 1) & mask) {
    uint32_t id = (uint32_t)slots[slot];
    wf__word_subset *subset = &det->subsets.data[id];
    if (slots[slot] >> 32 != hash || !same(det, subset, elements, count)) continue;
    det->elements.size = first;
    *out = id;
    if (subset->expanded || forward >= subset->forward) return WF_OK;
    subset->forward = forward;
    return wf__queue_put(&det->queue, (wf__queued){forward + subset->onward, id}, goes_first, det,
                         err);
  }
  if (det->subsets.size >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "determinization: 2^31 states or more");
  *out = (uint32_t)det->subsets.size;
  wf__word_subset subset = {.first_element = first,
                            .num_elements = count,
                            .forward = forward,
                            .onward = onward,
                            .end = {WF__NEVER, 0}};
  WF__TRY(wf__vec_push(&det->subsets, subset, "determinization", err));
  slots[slot] = (uint64_t)hash << 32 | *out;
  return wf__queue_put(&det->queue, (wf__queued){forward + onward, *out}, goes_first, det, err);
}

static uint64_t bytes_of(const wf__word_determinizer *det) {
  return det->elements.size * sizeof(wf__word_element) +
         det->subsets.size * (sizeof(wf__word_subset) + 4 * sizeof *det->slots.data) +
         det->arcs.size * sizeof(wf__word_arc) + det->queue.heap.size * sizeof(wf__queued) +
         wf__labels_bytes(&det->strings);
}

/* --- expansion --------------------------------------------------------------------------- */

/* Among equally good paths the first in the lattice is better. */
static inline bool is_better(const wf__word_exit *exits, const wf__way_out *a,
                             const wf__way_out *b) {
  if (a->cost != b->cost) return a->cost < b->cost;
  return a->graph != b->graph ? a->graph < b->graph : exits[a->exit].rank < exits[b->exit].rank;
}

/* Removes the least cost and the longest common prefix from the last `count` elements. */
static wf_status normalize(wf__word_determinizer *det, uint64_t count, wf__exact_cost *least,
                           uint32_t *common, wf_error *err) {
  wf__word_element *elements = det->elements.data + det->elements.size - count;
  *least = elements[0].cost;
  *common = elements[0].string;
  wf__labels_begin_round(&det->strings);
  for (uint64_t k = 1; k < count; k++) {
    if (wf__exact_before(elements[k].cost, *least)) *least = elements[k].cost;
    *common = wf__labels_meet(&det->strings, *common, elements[k].string);
  }
  uint32_t length = det->strings.nodes.data[*common].size;
  for (uint64_t k = 0; k < count; k++) {
    elements[k].cost = wf__exact_less(elements[k].cost, *least);
    WF__TRY(wf__labels_strip(&det->strings, elements[k].string, length, &elements[k].string, err));
  }
  return WF_OK;
}

/* The best of the paths [*first, count) to the state of the first one; *first becomes the number of
 * the next path. */
static const wf__way_out *best_way(const wf__word_determinizer *det, const uint64_t *ways,
                                   uint64_t count, uint64_t *first) {
  const wf__way_out *found = det->closure.found.data, *best = &found[(uint32_t)ways[*first]];
  for (uint64_t state = ways[(*first)++] >> 32; *first < count && ways[*first] >> 32 == state;
       (*first)++) {
    const wf__way_out *way = &found[(uint32_t)ways[*first]];
    if (is_better(det->graph.exits.data, way, best)) best = way;
  }
  return best;
}

/* Makes the arc for one word. */
static wf_status add_arc(wf__word_determinizer *det, int64_t forward, const wf__word_found *word,
                         wf_error *err) {
  const uint64_t *ways = det->closure.ways.data + word->first, old_size = det->elements.size;
  WF__TRY(wf__vec_grow(&det->elements, word->num_ways, "determinization", err));
  for (uint64_t i = 0; i < word->num_ways;) {
    const wf__way_out *way = best_way(det, ways, word->num_ways, &i);
    wf__word_element *element = &det->elements.data[det->elements.size++];
    element->cost = (wf__exact_cost){
        way->graph, way->cost - det->graph.backward.data[way->nextstate] - way->graph};
    element->state = way->nextstate;
    WF__TRY(wf__word_closure_string(det, way->from, det->graph.exits.data[way->exit].alignment,
                                    &element->string, err));
  }
  const uint64_t count = det->elements.size - old_size;
  wf__word_arc arc = {.word = word->word};
  WF__TRY(normalize(det, count, &arc.cost, &arc.string, err));
  int64_t cost = wf__exact_total(arc.cost);
  WF__TRY(intern(det, (uint32_t)count, word->through - cost, forward + cost, &arc.nextstate, err));
  return wf__vec_push(&det->arcs, arc, "determinization", err);
}

/* Sets the best end, if it is within the beam. */
static wf_status set_end(wf__word_determinizer *det, wf__word_subset *subset, wf_error *err) {
  const wf__word_closure *closure = &det->closure;
  if (closure->end.graph == WF__NEVER ||
      subset->forward + wf__exact_total(closure->end) > det->cutoff)
    return WF_OK;
  const wf__word_end *last = &det->graph.ends.data[closure->end_state - det->graph.first_final];
  subset->end = closure->end;
  WF__TRY(
      wf__word_closure_string(det, closure->end_state, last->alignment, &subset->end_string, err));
  det->complete = det->complete || wf__exact_total(closure->end) ==
                                       subset->onward; /* the best continuation was to end here */
  return WF_OK;
}

static wf_status expand(wf__word_determinizer *det, uint32_t id, wf_error *err) {
  wf__word_subset subset = det->subsets.data[id];
  const wf__word_closure *closure = &det->closure;
  subset.expanded = true;
  subset.first_arc = det->arcs.size;
  wf__word_closure_find(det, &subset, subset.onward + det->graph.width,
                        det->cutoff - subset.forward);
  WF__TRY(set_end(det, &subset, err));
  for (uint64_t i = 0; i < closure->alive.size; i++)
    WF__TRY(
        add_arc(det, subset.forward, &closure->words.data[(uint32_t)closure->alive.data[i]], err));
  subset.num_arcs = (uint32_t)(det->arcs.size - subset.first_arc);
  det->subsets.data[id] = subset;
  return WF_OK;
}

static wf_status expand_all(wf__word_determinizer *det, wf_error *err) {
  det->elements.data[det->elements.size++] = (wf__word_element){.state = 0};
  uint32_t start;
  WF__TRY(intern(det, 1, det->graph.backward.data[0], 0, &start, err));
  while (det->queue.heap.size > 0) {
    wf__queued next = wf__queue_take(&det->queue, goes_first, det);
    if (det->subsets.data[next.id].expanded) continue;
    WF__TRY(wf__interrupted(err));
    if (det->complete && bytes_of(det) > det->max_bytes) {
      det->reached_cutoff = next.cost - 1;
      if (det->reached_cutoff < det->graph.backward.data[0])
        det->reached_cutoff = det->graph.backward.data[0];
      return WF_OK;
    }
    WF__TRY(expand(det, next.id, err));
  }
  return WF_OK;
}

/* --- the result -------------------------------------------------------------------------- */

/* Arcs lead from a subset to one whose first state is later. So the order of first states is
 * topological. */
static wf_status order_subsets(const wf__word_determinizer *det, uint32_t *order, uint32_t *number,
                               wf_error *err) {
  uint64_t n = det->graph.num_states, count = 0, *first = wf__calloc(n + 1, sizeof *first);
  if (first == NULL) return wf__fail_memory(err, (n + 1) * sizeof *first, "determinization");
  for (uint64_t id = 0; id < det->subsets.size; id++)
    if (det->subsets.data[id].expanded)
      first[det->elements.data[det->subsets.data[id].first_element].state + 1]++;
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

static wf_status put_labels(const wf__word_determinizer *det, uint32_t string,
                            wf__exact_lattice *out, uint32_t *first, uint32_t *count,
                            wf_error *err) {
  *count = det->strings.nodes.data[string].size;
  *first = (uint32_t)out->labels.size;
  if (out->labels.size + *count >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a lattice of alignments of 2^32 labels or more");
  WF__TRY(wf__vec_grow(&out->labels, *count, "alignments", err));
  wf__labels_write(&det->strings, string, out->labels.data + *first);
  out->labels.size += *count;
  return WF_OK;
}

static wf_status write_subset(const wf__word_determinizer *det, const wf__word_subset *subset,
                              const uint32_t *number, wf__exact_lattice *out, wf_error *err) {
  wf__exact_end end = {.cost = subset->end};
  if (end.cost.graph != WF__NEVER)
    WF__TRY(put_labels(det, subset->end_string, out, &end.first_label, &end.num_labels, err));
  WF__TRY(wf__exact_add_state(out, end, err));
  WF__TRY(wf__vec_grow(&out->arcs, subset->num_arcs, "lattice arcs", err));
  for (uint32_t k = 0; k < subset->num_arcs; k++) {
    const wf__word_arc *from = &det->arcs.data[subset->first_arc + k];
    if (number[from->nextstate] == UINT32_MAX) continue;
    wf__exact_arc arc = {
        .cost = from->cost, .word = from->word, .nextstate = number[from->nextstate]};
    WF__TRY(put_labels(det, from->string, out, &arc.first_label, &arc.num_labels, err));
    out->arcs.data[out->arcs.size++] = arc;
  }
  return WF_OK;
}

static wf_status write(const wf__word_determinizer *det, wf__exact_lattice *out, wf_error *err) {
  uint32_t *order = wf__alloc(det->subsets.size, 2 * sizeof *order),
           *number = order + det->subsets.size;
  if (order == NULL) return wf__fail_memory(err, det->subsets.size * 8, "determinization");
  out->unit = det->graph.unit;
  wf_status status = order_subsets(det, order, number, err);
  for (uint64_t i = 0; i < det->subsets.size && status == WF_OK && order[i] != UINT32_MAX; i++)
    status = write_subset(det, &det->subsets.data[order[i]], number, out, err);
  if (status == WF_OK) status = wf__exact_finish(out, err);
  free(order);
  return status;
}

static wf_status begin(wf__word_determinizer *det, wf_error *err) {
  det->elements.size = det->subsets.size = det->arcs.size = det->queue.heap.size = 0;
  det->complete = false;
  WF__TRY(wf__word_closure_begin(&det->closure, &det->graph, err));
  WF__TRY(wf__labels_begin(&det->strings, err));
  WF__TRY(wf__vec_grow(&det->elements, 1, "determinization", err));
  return make_slots(&det->slots, 256, err);
}

wf_status wf__word_determinizer_run(wf__word_determinizer *det, int64_t delta, uint64_t max_bytes,
                                    wf__exact_lattice *out, wf__word_outcome *outcome,
                                    wf_error *err) {
  *out = (wf__exact_lattice){.unit = det->graph.unit};
  *outcome = (wf__word_outcome){.width = det->graph.width};
  if (det->graph.num_states == 0) return WF_OK;
  det->max_bytes = max_bytes;
  for (det->bin = 0; det->bin < 61 && (int64_t)2 << det->bin <= delta;) det->bin++;
  WF__TRY(begin(det, err));
  const int64_t least = det->graph.backward.data[0];
  det->cutoff = det->reached_cutoff = least + det->graph.width;
  wf_status status = expand_all(det, err);
  if (status == WF_OK) status = write(det, out, err);
  if (status == WF_OK) {
    *outcome = (wf__word_outcome){det->reached_cutoff - least, det->reached_cutoff < det->cutoff,
                                  det->subsets.size, bytes_of(det)};
    if (outcome->narrowed) status = wf__exact_reduce(out, outcome->width, err);
  }
  if (status != WF_OK) wf__exact_free(out);
  return status;
}

void wf__word_determinizer_free(wf__word_determinizer *det) {
  wf__word_graph_free(&det->graph);
  wf__word_closure_free(&det->closure);
  wf__labels_free(&det->strings);
  wf__vec_free(&det->slots);
  wf__vec_free(&det->spare_slots);
  wf__vec_free(&det->elements);
  wf__vec_free(&det->subsets);
  wf__vec_free(&det->arcs);
  wf__vec_free(&det->queue.heap);
}

uint64_t wf__word_determinizer_bytes(const wf__word_determinizer *det) {
  const wf__word_graph *graph = &det->graph;
  return graph->places.cap * sizeof *graph->places.data +
         graph->memory.cap * sizeof *graph->memory.data +
         graph->arcs.cap * sizeof *graph->arcs.data + graph->hops.cap * sizeof *graph->hops.data +
         graph->exits.cap * (sizeof *graph->exits.data + 3 * sizeof *det->closure.ways.data) +
         det->strings.nodes.cap * sizeof *det->strings.nodes.data +
         det->elements.cap * sizeof *det->elements.data +
         det->subsets.cap * sizeof *det->subsets.data + det->arcs.cap * sizeof *det->arcs.data;
}

wf_status wf__determinize_words(const wf__exact_lattice *in, int64_t width, int64_t delta,
                                uint64_t max_bytes, wf__exact_lattice *out,
                                wf__word_outcome *outcome, wf_error *err) {
  wf__word_determinizer det = {0};
  wf_status status = wf__word_graph_from_exact(&det.graph, in, width, err);
  if (status == WF_OK)
    status = wf__word_determinizer_run(&det, delta, max_bytes, out, outcome, err);
  wf__word_determinizer_free(&det);
  return status;
}
