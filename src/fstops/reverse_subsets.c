/* reverse_subsets.c - weighted subset construction (Mohri 1997) on a reversed acceptor, on demand,
 * with epsilon closure. */
#include "fstops/reverse_subsets.h"

/* Rounds a residual to multiples of 2^-20 nats. Subsets are compared by rounded residuals. */
static int64_t quantised(double residual) {
  return residual < 1e12 ? (int64_t)(residual * 1048576 + 0.5) : INT64_MAX;
}

/* The relative cost of an arc (see reverse_subsets.h). */
static double relative(const wf__subsets *subsets, const wf_arc *arc, uint32_t target) {
  double cost = (double)arc->weight + subsets->best[arc->nextstate] - subsets->best[target];
  return cost > 0 ? cost : 0;
}

/* --- interning --------------------------------------------------------------------------- */

static bool same(const wf__subsets *subsets, uint32_t subset) {
  const wf__subset_element *have = subsets->elements.data + subsets->first.data[subset];
  if (subsets->first.data[subset + 1] - subsets->first.data[subset] != subsets->group.size)
    return false;
  for (uint64_t i = 0; i < subsets->group.size; i++)
    if (have[i].state != subsets->group.data[i].state ||
        quantised(have[i].residual) != quantised(subsets->group.data[i].residual))
      return false;
  return true;
}

static wf_status append(wf__subsets *subsets, wf_error *err) {
  uint64_t count = subsets->group.size;
  WF__TRY(wf__vec_grow(&subsets->elements, count, "subsets", err));
  for (uint64_t i = 0; i < count; i++)
    subsets->elements.data[subsets->elements.size++] = subsets->group.data[i];
  WF__TRY(wf__vec_push(&subsets->first, subsets->elements.size, "subsets", err));
  WF__TRY(wf__vec_push(&subsets->step_begin, UINT64_MAX, "subsets", err));
  WF__TRY(wf__vec_push(&subsets->step_end, UINT64_MAX, "subsets", err));
  return wf__vec_push(&subsets->same_hash, WF__NO_STATE, "subsets", err);
}

/* Sets `*out` to the number of the subset in `group` (sorted, normalised), and adds it if it is
 * new. */
static wf_status intern(wf__subsets *subsets, uint32_t *out, wf_error *err) {
  uint64_t hash = 0;
  for (uint64_t i = 0; i < subsets->group.size; i++) {
    hash = wf__hash_combine(hash, subsets->group.data[i].state);
    hash = wf__hash_combine(hash, (uint64_t)quantised(subsets->group.data[i].residual));
  }
  uint64_t count = subsets->first.size - 1;
  if (count >= WF__NO_STATE - 1)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the search for distinct strings needs more than 2^32-2 subsets of states");
  uint32_t head;
  bool fresh;
  WF__TRY(wf__map64_insert(&subsets->by_hash, hash >> 1, (uint32_t)count, &head, &fresh, "subsets",
                           err));
  if (!fresh) {
    for (uint32_t k = head;; k = subsets->same_hash.data[k]) {
      if (same(subsets, k)) {
        *out = k;
        return WF_OK;
      }
      if (subsets->same_hash.data[k] == WF__NO_STATE) {
        subsets->same_hash.data[k] = (uint32_t)count;
        break;
      }
    }
  }
  *out = (uint32_t)count;
  return append(subsets, err);
}

/* --- making one subset ------------------------------------------------------------------- */

/* Adds a state to the group, or lowers its cost. */
static wf_status put(wf__subsets *subsets, uint32_t state, double cost, wf_error *err) {
  if (subsets->stamp[state] == subsets->turn) {
    wf__subset_element *element = &subsets->group.data[subsets->slot[state]];
    if (cost >= element->residual) return WF_OK;
    element->residual = cost;
  } else {
    subsets->stamp[state] = subsets->turn;
    subsets->slot[state] = (uint32_t)subsets->group.size;
    WF__TRY(wf__vec_grow(&subsets->group, 1, "a subset", err));
    subsets->group.data[subsets->group.size++] = (wf__subset_element){cost, state};
  }
  return wf__heap_push(&subsets->heap, (wf__heap_entry){cost, 0, state}, err);
}

/* Adds the epsilon closure: follows epsilon arcs backwards (Dijkstra). */
static wf_status close_epsilons(wf__subsets *subsets, wf_error *err) {
  while (subsets->heap.size > 0) {
    wf__heap_entry top = wf__heap_pop(&subsets->heap);
    if (top.cost != subsets->group.data[subsets->slot[top.item]].residual) continue;
    for (uint64_t i = subsets->incoming->off[top.item]; i < subsets->incoming->off[top.item + 1];
         i++) {
      const wf_arc *arc = &subsets->incoming->arcs[i];
      if (arc->ilabel != 0 || arc->weight == INFINITY || subsets->best[arc->nextstate] == INFINITY)
        continue;
      WF__TRY(put(subsets, arc->nextstate, top.cost + relative(subsets, arc, top.item), err));
    }
  }
  return WF_OK;
}

static int compare_elements(const void *a, const void *b) {
  uint32_t x = ((const wf__subset_element *)a)->state, y = ((const wf__subset_element *)b)->state;
  return (x > y) - (x < y);
}

/* Closes, normalises and interns the group. `*out_cost` is the cost subtracted from every element.
 */
static wf_status finish_group(wf__subsets *subsets, uint32_t *out, double *out_cost,
                              wf_error *err) {
  WF__TRY(close_epsilons(subsets, err));
  qsort(subsets->group.data, subsets->group.size, sizeof *subsets->group.data, compare_elements);
  double least = INFINITY;
  for (uint64_t i = 0; i < subsets->group.size; i++)
    if (subsets->group.data[i].residual < least) least = subsets->group.data[i].residual;
  for (uint64_t i = 0; i < subsets->group.size; i++) subsets->group.data[i].residual -= least;
  *out_cost = least;
  WF__TRY(intern(subsets, out, err));
  subsets->group.size = 0;
  subsets->turn++;
  return WF_OK;
}

/* --- steps ------------------------------------------------------------------------------- */

static int compare_moves(const void *a, const void *b) {
  const wf__subset_move *x = a, *y = b;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  if (x->state != y->state) return x->state < y->state ? -1 : 1;
  return (x->cost > y->cost) - (x->cost < y->cost);
}

/* Collects the arcs into the subset's states that are not epsilon, sorted by label. */
static wf_status collect_moves(wf__subsets *subsets, uint32_t subset, wf_error *err) {
  subsets->moves.size = 0;
  for (uint64_t k = subsets->first.data[subset]; k < subsets->first.data[subset + 1]; k++) {
    wf__subset_element element = subsets->elements.data[k];
    for (uint64_t i = subsets->incoming->off[element.state];
         i < subsets->incoming->off[element.state + 1]; i++) {
      const wf_arc *arc = &subsets->incoming->arcs[i];
      if (arc->ilabel == 0 || arc->weight == INFINITY || subsets->best[arc->nextstate] == INFINITY)
        continue;
      WF__TRY(wf__vec_grow(&subsets->moves, 1, "a subset", err));
      subsets->moves.data[subsets->moves.size++] = (wf__subset_move){
          element.residual + relative(subsets, arc, element.state), arc->nextstate, arc->ilabel};
    }
  }
  if (subsets->moves.size > 1)
    qsort(subsets->moves.data, subsets->moves.size, sizeof *subsets->moves.data, compare_moves);
  return WF_OK;
}

static wf_status make_steps(wf__subsets *subsets, uint32_t subset, wf_error *err) {
  WF__TRY(collect_moves(subsets, subset, err));
  uint64_t begin = subsets->steps.size;
  for (uint64_t i = 0; i < subsets->moves.size;) {
    wf__subset_step step = {.label = subsets->moves.data[i].label};
    for (; i < subsets->moves.size && subsets->moves.data[i].label == step.label; i++)
      WF__TRY(put(subsets, subsets->moves.data[i].state, subsets->moves.data[i].cost, err));
    WF__TRY(finish_group(subsets, &step.next, &step.cost, err));
    WF__TRY(wf__vec_push(&subsets->steps, step, "steps", err));
  }
  subsets->step_begin.data[subset] = begin;
  subsets->step_end.data[subset] = subsets->steps.size;
  return WF_OK;
}

wf_status wf__subsets_expand(wf__subsets *subsets, uint32_t subset,
                             const wf__subset_step **out_steps, uint64_t *out_count,
                             wf_error *err) {
  if (subsets->step_begin.data[subset] == UINT64_MAX) WF__TRY(make_steps(subsets, subset, err));
  *out_steps = subsets->steps.data + subsets->step_begin.data[subset];
  *out_count = subsets->step_end.data[subset] - subsets->step_begin.data[subset];
  return WF_OK;
}

double wf__subsets_end_cost(const wf__subsets *subsets, uint32_t subset) {
  uint64_t low = subsets->first.data[subset], high = subsets->first.data[subset + 1];
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (subsets->elements.data[middle].state < subsets->start)
      low = middle + 1;
    else
      high = middle;
  }
  bool found =
      low < subsets->first.data[subset + 1] && subsets->elements.data[low].state == subsets->start;
  return found ? subsets->elements.data[low].residual : INFINITY;
}

wf_status wf__subsets_init(wf__subsets *subsets, const wf_fst_view *view,
                           const wf__incoming *incoming, const double *best, double *out_cost,
                           wf_error *err) {
  *subsets =
      (wf__subsets){.incoming = incoming, .best = best, .start = (uint32_t)view->start, .turn = 1};
  subsets->slot = wf__alloc(view->num_states, sizeof *subsets->slot);
  subsets->stamp = wf__calloc(view->num_states, sizeof *subsets->stamp);
  if (subsets->slot == NULL || subsets->stamp == NULL)
    return wf__fail_memory(err, view->num_states * 12, "subsets");
  WF__TRY(wf__vec_push(&subsets->first, 0, "subsets", err));
  for (uint64_t s = 0; s < view->num_states; s++)
    if (wf__is_final(view, s) && best[s] != INFINITY)
      WF__TRY(put(subsets, (uint32_t)s, best[s] + (double)view->final_cost[s], err));
  uint32_t first;
  if (subsets->group.size == 0) return WF_OK;
  return finish_group(subsets, &first, out_cost, err);
}

void wf__subsets_free(wf__subsets *subsets) {
  wf__vec_free(&subsets->elements);
  wf__vec_free(&subsets->first);
  wf__vec_free(&subsets->same_hash);
  wf__vec_free(&subsets->step_begin);
  wf__vec_free(&subsets->step_end);
  wf__vec_free(&subsets->steps);
  wf__vec_free(&subsets->moves);
  wf__vec_free(&subsets->group);
  wf__vec_free(&subsets->heap);
  wf__map64_free(&subsets->by_hash);
  free(subsets->slot);
  free(subsets->stamp);
  *subsets = (wf__subsets){0};
}
