/* disambiguate_split.c - splits the states of an acceptor by the subsets of states that are reached
 * together with them: step 1 of disambiguation. An arc has the output of its head's arc: the paths
 * of heads are paths of the input, and in a functional transducer all paths of one input string
 * write the same. */
#include <string.h>

#include "base/interrupt.h"
#include "fstops/determinize.h"
#include "fstops/disambiguate.h"
#include "fstops/pair_table.h"

struct splitter {
  const wf_fst_view *view;
  wf__pairs pairs;         /* pairs of states that one string reaches and that go on together */
  uint8_t *future;         /* [pairs] do they have a common future? */
  wf__det_subsets subsets; /* the first element of a subset is the head, with cost 0 */
  WF__VEC(wf__det_element) current, made;
  WF__VEC(double) cost;
  wf__split *out;
};

/* --- common futures ---------------------------------------------------------------------- */

/* Finds the pairs, and the arcs between them in `product`. */
static wf_status find_pairs(struct splitter *sp, wf__csr *product, wf_error *err) {
  const wf_fst_view *view = sp->view;
  uint32_t start = (uint32_t)view->start, at;
  WF__TRY(wf__pairs_find(&sp->pairs, start, start, &at, err));
  for (uint64_t k = 0; k < sp->pairs.list.size; k++) {
    wf__pair pair = sp->pairs.list.data[k];
    bool final = wf__is_final(view, pair.first) && wf__is_final(view, pair.second);
    WF__TRY(wf__interrupted_at(k, err));
    WF__TRY(wf__csr_add_state(product, final ? 0 : INFINITY, err));
    for (uint64_t i = view->arc_off[pair.first]; i < view->arc_off[pair.first + 1]; i++) {
      uint64_t j, end;
      wf__arcs_of_label(view->arc_off, view->arcs, pair.second, view->arcs[i].ilabel, &j, &end);
      for (; j < end; j++) {
        wf_arc arc = {0};
        uint32_t a = view->arcs[i].nextstate, b = view->arcs[j].nextstate;
        if (!wf__go_on_together(view->arc_off, view->arcs, view->final_cost, a, b)) continue;
        WF__TRY(wf__pairs_find(&sp->pairs, a, b, &arc.nextstate, err));
        WF__TRY(wf__csr_push(product, arc, err));
      }
    }
  }
  return wf__csr_close(product, err);
}

/* Marks the pairs from which a pair of final states can be reached. */
static wf_status mark_futures(struct splitter *sp, const wf_fst_view *product, uint32_t *stack,
                              wf_error *err) {
  wf__incoming incoming = {0};
  uint64_t depth = 0;
  WF__TRY(wf__incoming_find(product, &incoming, err));
  for (uint64_t k = 0; k < product->num_states; k++) {
    if (!wf__is_final(product, k)) continue;
    sp->future[k] = 1;
    stack[depth++] = (uint32_t)k;
  }
  while (depth > 0) {
    uint32_t k = stack[--depth];
    for (uint64_t i = incoming.off[k]; i < incoming.off[k + 1]; i++) {
      uint32_t from = incoming.arcs[i].nextstate;
      if (sp->future[from]) continue;
      sp->future[from] = 1;
      stack[depth++] = from;
    }
  }
  wf__incoming_free(&incoming);
  return WF_OK;
}

static wf_status find_futures(struct splitter *sp, wf_error *err) {
  wf__csr product = {0};
  wf_status status = find_pairs(sp, &product, err);
  if (status == WF_OK) {
    uint64_t n = sp->pairs.list.size;
    uint32_t *stack = wf__alloc(n, sizeof *stack);
    sp->future = wf__calloc(n, 1);
    wf_fst_view view = {.start = 0,
                        .num_states = n,
                        .num_arcs = product.arcs.size,
                        .arc_off = product.arc_off.data,
                        .arcs = product.arcs.data,
                        .final_cost = product.final_cost.data};
    status = stack == NULL || sp->future == NULL ? wf__fail_memory(err, n * 5, "pairs of states")
                                                 : mark_futures(sp, &view, stack, err);
    free(stack);
  }
  wf__csr_free(&product);
  return status;
}

static bool have_future(const struct splitter *sp, uint32_t a, uint32_t b) {
  uint32_t k = wf__map64_find(&sp->pairs.map, (uint64_t)a << 32 | b);
  return k != WF__MAP64_NONE && sp->future[k];
}

/* --- subsets ----------------------------------------------------------------------------- */

/* Adds a path to the subset under construction, which is sorted by state after the head. */
static wf_status add_path(struct splitter *sp, uint32_t state, double cost, wf_error *err) {
  uint64_t at = sp->made.size;
  while (at > 1 && sp->made.data[at - 1].state > state) at--;
  if (at > 1 && sp->made.data[at - 1].state == state) {
    double *have = &sp->cost.data[at - 1];
    *have = wf__cost_plus(sp->view->semiring, *have, cost);
    return WF_OK;
  }
  WF__TRY(wf__vec_grow(&sp->made, 1, "a subset", err));
  WF__TRY(wf__vec_grow(&sp->cost, 1, "a subset", err));
  uint64_t moved = sp->made.size - at;
  memmove(sp->made.data + at + 1, sp->made.data + at, moved * sizeof *sp->made.data);
  memmove(sp->cost.data + at + 1, sp->cost.data + at, moved * sizeof *sp->cost.data);
  sp->made.data[at] = (wf__det_element){.state = state};
  sp->cost.data[at] = cost;
  sp->made.size++;
  sp->cost.size++;
  return WF_OK;
}

static wf_status begin_subset(struct splitter *sp, uint32_t head, wf_error *err) {
  sp->made.size = sp->cost.size = 0;
  WF__TRY(wf__vec_push(&sp->made, ((wf__det_element){.state = head}), "a subset", err));
  return wf__vec_push(&sp->cost, 0, "a subset", err);
}

/* Numbers the subset under construction. `*total` is the cost that goes to the arc. */
static wf_status finish_subset(struct splitter *sp, double *total, uint32_t *out, wf_error *err) {
  *total = INFINITY;
  for (uint64_t k = 1; k < sp->made.size; k++)
    *total = wf__cost_plus(sp->view->semiring, *total, sp->cost.data[k]);
  for (uint64_t k = 1; k < sp->made.size; k++)
    sp->made.data[k].cost =
        *total == INFINITY ? INFINITY : wf__cost_to_float(sp->cost.data[k] - *total);
  uint32_t size = (uint32_t)sp->made.size;
  wf_status status =
      wf__det_subsets_add(&sp->subsets, sp->made.data, size,
                          wf__det_hash(sp->subsets.inverse_delta, sp->made.data, size), out, err);
  if (status != WF_ERR_NOT_DETERMINIZABLE) return status;
  return wf__fail(err, WF_ERR_LIMIT,
                  "gave up after %llu states (max_states): there may be no unambiguous acceptor",
                  (unsigned long long)sp->subsets.max_states);
}

static wf_status split_arc(struct splitter *sp, const wf_arc *of_head, wf_error *err) {
  const wf_fst_view *view = sp->view;
  WF__TRY(begin_subset(sp, of_head->nextstate, err));
  for (uint64_t k = 1; k < sp->current.size; k++) {
    wf__det_element element = sp->current.data[k];
    uint64_t i, end;
    wf__arcs_of_label(view->arc_off, view->arcs, element.state, of_head->ilabel, &i, &end);
    for (; i < end; i++)
      if (have_future(sp, view->arcs[i].nextstate, of_head->nextstate))
        WF__TRY(add_path(sp, view->arcs[i].nextstate,
                         (double)element.cost + (double)view->arcs[i].weight, err));
  }
  wf_arc arc = {.ilabel = of_head->ilabel, .olabel = of_head->olabel};
  double total;
  WF__TRY(finish_subset(sp, &total, &arc.nextstate, err));
  arc.weight = wf__cost_to_float(total);
  return wf__csr_push(&sp->out->csr, arc, err);
}

static wf_status expand(struct splitter *sp, uint32_t id, wf_error *err) {
  const wf_fst_view *view = sp->view;
  wf__det_element single;
  uint32_t size;
  const wf__det_element *elements = wf__det_subsets_get(&sp->subsets, id, &single, &size);
  sp->current.size = 0;
  WF__TRY(wf__vec_grow(&sp->current, size, "a subset", err));
  memcpy(sp->current.data, elements, size * sizeof *elements);
  sp->current.size = size;
  uint32_t head = sp->current.data[0].state;
  double final_cost = INFINITY;
  for (uint64_t k = 1; k < size && wf__is_final(view, head); k++) {
    wf__det_element element = sp->current.data[k];
    final_cost = wf__cost_plus(view->semiring, final_cost,
                               (double)element.cost + (double)view->final_cost[element.state]);
  }
  WF__TRY(wf__csr_add_state(&sp->out->csr, wf__cost_to_float(final_cost), err));
  WF__TRY(wf__vec_push(&sp->out->head, head, "states", err));
  for (uint64_t i = view->arc_off[head]; i < view->arc_off[head + 1]; i++) {
    const wf_arc *arc = &view->arcs[i], *before = i > view->arc_off[head] ? arc - 1 : NULL;
    if (before != NULL && before->ilabel == arc->ilabel && before->nextstate == arc->nextstate)
      continue; /* the same split again */
    WF__TRY(split_arc(sp, arc, err));
  }
  return WF_OK;
}

static wf_status split(struct splitter *sp, double delta, uint64_t max_states, wf_error *err) {
  uint32_t first, start = (uint32_t)sp->view->start;
  double total;
  WF__TRY(find_futures(sp, err));
  WF__TRY(wf__det_subsets_init(&sp->subsets, sp->view->num_states, delta, max_states, err));
  WF__TRY(begin_subset(sp, start, err));
  WF__TRY(add_path(sp, start, 0, err));
  WF__TRY(finish_subset(sp, &total, &first, err));
  for (uint32_t id = 0; id < sp->subsets.where.size; id++) {
    WF__TRY(wf__interrupted_at(id, err));
    WF__TRY(expand(sp, id, err));
  }
  return WF_OK;
}

wf_status wf__disambiguate_split(const wf_fst_view *view, double delta, uint64_t max_states,
                                 wf__split *out, wf_error *err) {
  struct splitter sp = {.view = view, .out = out};
  wf_status status = split(&sp, delta, max_states, err);
  wf__pairs_free(&sp.pairs);
  free(sp.future);
  wf__det_subsets_free(&sp.subsets);
  wf__vec_free(&sp.current);
  wf__vec_free(&sp.made);
  wf__vec_free(&sp.cost);
  return status;
}
