/* word_closure.c - what a subset of determinization reaches without a word, and by which arcs it then leaves.
 *
 * States are passed on in the order of their numbers, which is topological: a set of bits, of which the lowest comes next. Alignments are spelled out
 * only where the closure is left, from the arcs that led there. */
#include "lattice/word_determinizer.h"

#include <string.h>

wf_status wf__word_closure_init(wf__word_closure *closure, uint64_t num_states, wf_error *err) {
  closure->place = wf__calloc(num_states, sizeof *closure->place);
  closure->waiting = wf__calloc(num_states / 64 + 1, sizeof *closure->waiting);
  return closure->place != NULL && closure->waiting != NULL ? WF_OK : wf__fail_memory(err, num_states * 5, "determinization");
}

void wf__word_closure_free(wf__word_closure *closure) {
  wf__vec_free(&closure->reached);
  wf__vec_free(&closure->ways);
  wf__vec_free(&closure->spare);
  wf__vec_free(&closure->stack);
  free(closure->place);
  free(closure->waiting);
}

static inline wf_status reach(wf__word_closure *closure, wf__reached reached, wf_error *err) {
  uint32_t *place = &closure->place[reached.state];
  if (*place == 0) {
    WF__TRY(wf__vec_grow(&closure->reached, 1, "determinization", err));
    closure->reached.data[closure->reached.size++] = reached;
    *place = (uint32_t)closure->reached.size;
    closure->waiting[reached.state / 64] |= (uint64_t)1 << reached.state % 64;
  } else if (wf__exact_before(reached.cost, closure->reached.data[*place - 1].cost)) {
    closure->reached.data[*place - 1] = reached;
  }
  return WF_OK;
}

static void try_end(wf__word_determinizer *det, uint32_t place, int64_t limit) {
  wf__word_closure *closure = &det->closure;
  const wf__reached *here = &closure->reached.data[place];
  if (!wf__exact_is_final(det->in, here->state)) return;
  wf__exact_cost cost = wf__exact_sum(here->cost, det->in->ends.data[here->state].cost);
  if (wf__exact_total(cost) > limit) return;
  if (closure->end != UINT32_MAX) {
    const wf__reached *other = &closure->reached.data[closure->end];
    if (!wf__exact_before(cost, wf__exact_sum(other->cost, det->in->ends.data[other->state].cost))) return;
  }
  closure->end = place;
}

/* Along the arcs of a state whose cost is settled. */
static wf_status pass_on(wf__word_determinizer *det, uint32_t place, int64_t limit, wf_error *err) {
  wf__word_closure *closure = &det->closure;
  const wf__reached here = closure->reached.data[place];
  int64_t cost = wf__exact_total(here.cost);
  for (uint64_t i = det->in->arc_off.data[here.state]; i < det->in->arc_off.data[here.state + 1]; i++) {
    const wf__exact_arc *arc = &det->in->arcs.data[i];
    if (cost + wf__exact_total(arc->cost) + det->backward[arc->nextstate] > limit) continue;
    if (arc->word == 0) {
      WF__TRY(reach(closure, (wf__reached){wf__exact_sum(here.cost, arc->cost), arc->nextstate, WF__STRING_LATER, place, (uint32_t)i}, err));
    } else {
      WF__TRY(wf__vec_grow(&closure->ways, 1, "determinization", err));
      closure->ways.data[closure->ways.size++] = (wf__way_out){(uint64_t)(uint32_t)arc->word << 32 | arc->nextstate, place, (uint32_t)i};
    }
  }
  try_end(det, place, limit);
  return WF_OK;
}

/* Merge sort: stable, and no call for a comparison. */
static wf_status sort_ways(wf__word_closure *closure, wf_error *err) {
  uint64_t count = closure->ways.size;
  WF__TRY(wf__vec_grow(&closure->spare, count, "determinization", err));
  wf__way_out *from = closure->ways.data, *to = closure->spare.data;
  for (uint64_t width = 1; width < count; width *= 2) {
    for (uint64_t first = 0; first < count; first += 2 * width) {
      uint64_t middle = first + width < count ? first + width : count, end = middle + width < count ? middle + width : count;
      uint64_t a = first, b = middle;
      for (uint64_t at = first; at < end; at++) to[at] = a < middle && (b == end || from[a].key <= from[b].key) ? from[a++] : from[b++];
    }
    wf__way_out *swap = from;
    from = to;
    to = swap;
  }
  if (count > 0 && from != closure->ways.data) memcpy(closure->ways.data, from, count * sizeof *from);
  return WF_OK;
}

static wf_status run(wf__word_determinizer *det, const wf__word_subset *subset, int64_t limit, wf_error *err) {
  wf__word_closure *closure = &det->closure;
  uint64_t word = UINT64_MAX;
  for (uint32_t k = 0; k < subset->num_elements; k++) {
    const wf__word_element *element = &det->elements.data[subset->first_element + k];
    if (wf__exact_total(element->cost) + det->backward[element->state] > limit) continue;
    WF__TRY(reach(closure, (wf__reached){element->cost, element->state, element->string, 0, 0}, err));
    if (element->state / 64 < word) word = element->state / 64;
  }
  for (uint64_t passed = 0; passed < closure->reached.size; passed++) { /* as many as are reached, lowest state first */
    while (closure->waiting[word] == 0) word++;
    uint32_t state = (uint32_t)(word * 64 + (uint64_t)__builtin_ctzll(closure->waiting[word]));
    closure->waiting[word] &= closure->waiting[word] - 1;
    WF__TRY(pass_on(det, closure->place[state] - 1, limit, err));
  }
  return sort_ways(closure, err);
}

wf_status wf__word_closure_find(wf__word_determinizer *det, const wf__word_subset *subset, int64_t limit, wf_error *err) {
  wf__word_closure *closure = &det->closure;
  closure->reached.size = closure->ways.size = 0;
  closure->end = UINT32_MAX;
  wf_status status = run(det, subset, limit, err);
  for (uint64_t i = 0; i < closure->reached.size; i++) closure->place[closure->reached.data[i].state] = 0;
  return status;
}

wf_status wf__word_append(wf__word_determinizer *det, uint32_t string, uint32_t first, uint32_t count, uint32_t *out, wf_error *err) {
  *out = string;
  for (uint32_t k = 0; k < count; k++) WF__TRY(wf__labels_append(&det->strings, *out, det->in->labels.data[first + k], out, err));
  return WF_OK;
}

wf_status wf__word_closure_string(wf__word_determinizer *det, uint32_t place, uint32_t *out, wf_error *err) {
  wf__word_closure *closure = &det->closure;
  wf__reached *reached = closure->reached.data;
  closure->stack.size = 0;
  for (; reached[place].string == WF__STRING_LATER; place = reached[place].from) WF__TRY(wf__vec_push(&closure->stack, place, "determinization", err));
  uint32_t string = reached[place].string;
  for (uint64_t i = closure->stack.size; i-- > 0;) {
    const wf__exact_arc *arc = &det->in->arcs.data[reached[closure->stack.data[i]].arc];
    WF__TRY(wf__word_append(det, string, arc->first_label, arc->num_labels, &string, err));
    reached[closure->stack.data[i]].string = string;
  }
  *out = string;
  return WF_OK;
}
