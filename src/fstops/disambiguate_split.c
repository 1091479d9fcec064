/* disambiguate_split.c - splits the states of an acceptor by the subsets of states that are reached
 * together with them: step 2 of disambiguation. An arc has the output of its head's arc: the paths
 * of heads are paths of the input, and in a functional transducer all paths of one input string
 * write the same. */
#include <string.h>

#include "base/interrupt.h"
#include "fstops/determinize.h"
#include "fstops/disambiguate.h"

struct splitter {
  const wf_fst_view *view;
  const wf__futures *futures;
  wf__arc_order order;
  wf__det_subsets subsets; /* the first element of a subset is the head, with cost 0 */
  WF__VEC(wf__det_element) current, made;
  /* The subset under construction, by place in the list of states that have a common future with
   * the head: does the subset have the state, and at which cost? */
  uint64_t *has;
  double *cost;
  wf__split *out;
};

static void add_path(struct splitter *sp, uint64_t place, double cost) {
  uint64_t bit = (uint64_t)1 << (place % 64);
  if (sp->has[place / 64] & bit) cost = wf__cost_plus(sp->view->semiring, sp->cost[place], cost);
  sp->has[place / 64] |= bit;
  sp->cost[place] = cost;
}

/* Numbers the subset of the paths, and forgets them. `*total` is the cost that goes to the arc. */
static wf_status finish_subset(struct splitter *sp, uint32_t head, double *total, uint32_t *out,
                               wf_error *err) {
  const uint32_t *states = sp->futures->states + sp->futures->off[head];
  uint64_t num_words = (sp->futures->off[head + 1] - sp->futures->off[head] + 63) / 64, count = 0;
  *total = INFINITY;
  for (uint64_t w = 0; w < num_words; w++)
    for (uint64_t word = sp->has[w]; word != 0; word &= word - 1, count++)
      *total = wf__cost_plus(sp->view->semiring, *total,
                             sp->cost[w * 64 + (uint64_t)__builtin_ctzll(word)]);
  sp->made.size = 0;
  WF__TRY(wf__vec_grow(&sp->made, count + 1, "a subset", err));
  sp->made.data[sp->made.size++] = (wf__det_element){.state = head};
  for (uint64_t w = 0; w < num_words; w++) {
    for (uint64_t word = sp->has[w]; word != 0; word &= word - 1) {
      uint64_t place = w * 64 + (uint64_t)__builtin_ctzll(word);
      float cost = *total == INFINITY ? INFINITY : wf__cost_to_float(sp->cost[place] - *total);
      sp->made.data[sp->made.size++] = (wf__det_element){.state = states[place], .cost = cost};
    }
    sp->has[w] = 0;
  }
  uint32_t size = (uint32_t)sp->made.size;
  wf_status status =
      wf__det_subsets_add(&sp->subsets, sp->made.data, size,
                          wf__det_hash(sp->subsets.inverse_delta, sp->made.data, size), out, err);
  if (status != WF_ERR_NOT_DETERMINIZABLE) return status;
  return wf__fail(err, WF_ERR_LIMIT,
                  "gave up after %llu states (max_states): there may be no unambiguous acceptor",
                  (unsigned long long)sp->subsets.max_states);
}

/* Splits an arc of the head, which has the arcs from `first` to `last` - 1 of its label. */
static wf_status split_arc(struct splitter *sp, const wf_arc *of_head, uint64_t first,
                           uint64_t last, wf_error *err) {
  const wf_fst_view *view = sp->view;
  const wf__futures *futures = sp->futures;
  for (uint64_t k = 1; k < sp->current.size; k++) {
    wf__det_element element = sp->current.data[k];
    uint64_t i = first, end = last;
    if (element.state != sp->current.data[0].state)
      wf__arcs_of_label(view->arc_off, view->arcs, element.state, of_head->ilabel, &i, &end);
    const uint32_t *states = futures->states + futures->off[of_head->nextstate], *state = states;
    const uint32_t *states_end = futures->states + futures->off[of_head->nextstate + 1];
    for (; wf__find_related(&sp->order, &i, end, &state, states_end); i++) {
      const wf_arc *arc = &view->arcs[wf__arc_at(&sp->order, i)];
      add_path(sp, (uint64_t)(state - states), (double)element.cost + (double)arc->weight);
    }
  }
  wf_arc arc = {.ilabel = of_head->ilabel, .olabel = of_head->olabel};
  double total;
  WF__TRY(finish_subset(sp, of_head->nextstate, &total, &arc.nextstate, err));
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
  uint64_t first = 0, last = 0;
  for (uint64_t i = view->arc_off[head]; i < view->arc_off[head + 1]; i++) {
    if (i >= last) last = wf__label_end(view->arcs, first = i, view->arc_off[head + 1]);
    const wf_arc *arc = &view->arcs[i], *before = i > view->arc_off[head] ? arc - 1 : NULL;
    if (before != NULL && before->ilabel == arc->ilabel && before->nextstate == arc->nextstate)
      continue; /* the same split again */
    WF__TRY(split_arc(sp, arc, first, last, err));
  }
  return WF_OK;
}

static wf_status split(struct splitter *sp, double delta, uint64_t max_states, wf_error *err) {
  uint32_t first, start = (uint32_t)sp->view->start;
  double total;
  sp->order = (wf__arc_order){.arc_off = sp->view->arc_off, .arcs = sp->view->arcs};
  WF__TRY(wf__arc_order_find(&sp->order, sp->view->num_states, err));
  WF__TRY(wf__det_subsets_init(&sp->subsets, sp->view->num_states, delta, max_states, err));
  uint64_t place = 0, most = 0;
  for (uint64_t s = 0; s < sp->view->num_states; s++)
    if (sp->futures->off[s + 1] - sp->futures->off[s] > most)
      most = sp->futures->off[s + 1] - sp->futures->off[s];
  sp->has = wf__calloc(most / 64 + 1, sizeof *sp->has);
  sp->cost = wf__alloc(most, sizeof *sp->cost);
  if (sp->has == NULL || sp->cost == NULL)
    return wf__fail_memory(err, most * (sizeof *sp->cost + 1), "a subset");
  while (sp->futures->states[sp->futures->off[start] + place] != start) place++;
  add_path(sp, place, 0);
  WF__TRY(finish_subset(sp, start, &total, &first, err));
  for (uint32_t id = 0; id < sp->subsets.where.size; id++) {
    WF__TRY(wf__interrupted_at(id, err));
    WF__TRY(expand(sp, id, err));
  }
  return WF_OK;
}

wf_status wf__disambiguate_split(const wf_fst_view *view, const wf__futures *futures, double delta,
                                 uint64_t max_states, wf__split *out, wf_error *err) {
  struct splitter sp = {.view = view, .futures = futures, .out = out};
  wf_status status = split(&sp, delta, max_states, err);
  free(sp.order.order);
  wf__det_subsets_free(&sp.subsets);
  wf__vec_free(&sp.current);
  wf__vec_free(&sp.made);
  free(sp.has);
  free(sp.cost);
  return status;
}
