/* topsort.c - numbers the states so that every arc leads to a higher number: in the reverse of the
 * order in which a depth-first search finishes them. The search begins at the start, then at every
 * state not reached yet. OpenFst numbers states in the same way. */
#include "fst/fst.h"
#include "fstops/topsort.h"

struct frame {
  uint32_t state;
  uint64_t next_arc;
};

struct search {
  const wf_fst_view *view;
  uint8_t *colour; /* 0 new, 1 on the stack, 2 finished */
  struct frame *stack;
  uint32_t *finished; /* states in the order in which they are finished */
  uint64_t num_finished;
};

/* Depth-first search from `root`. Returns a state on a cycle, or -1. */
static int64_t visit(struct search *search, uint32_t root) {
  const wf_fst_view *view = search->view;
  uint64_t depth = 0;
  search->colour[root] = 1;
  search->stack[depth++] = (struct frame){root, view->arc_off[root]};
  while (depth > 0) {
    struct frame *top = &search->stack[depth - 1];
    if (top->next_arc == view->arc_off[top->state + 1]) {
      search->colour[top->state] = 2;
      search->finished[search->num_finished++] = top->state;
      depth--;
      continue;
    }
    uint32_t next = view->arcs[top->next_arc++].nextstate;
    if (search->colour[next] == 1) return next;
    if (search->colour[next] == 2) continue;
    search->colour[next] = 1;
    search->stack[depth++] = (struct frame){next, view->arc_off[next]};
  }
  return -1;
}

wf_status wf__topological_order(const wf_fst_view *view, uint32_t **out_order, wf_error *err) {
  *out_order = NULL;
  uint64_t n = view->num_states;
  struct search search = {.view = view,
                          .colour = wf__calloc(n, 1),
                          .stack = wf__alloc(n, sizeof *search.stack),
                          .finished = wf__alloc(n, sizeof *search.finished)};
  wf_status status = WF_OK;
  int64_t on_cycle = -1;
  if (search.colour == NULL || search.stack == NULL || search.finished == NULL) {
    status = wf__fail_memory(err, n * (1 + sizeof *search.stack + sizeof *search.finished),
                             "a depth-first search");
    goto done;
  }
  if (view->start >= 0) on_cycle = visit(&search, (uint32_t)view->start);
  for (uint64_t s = 0; s < n && on_cycle < 0; s++)
    if (search.colour[s] == 0) on_cycle = visit(&search, (uint32_t)s);
  if (on_cycle >= 0) {
    status =
        wf__fail(err, WF_ERR_ARGUMENT, "cannot be sorted topologically: state %lld is on a cycle",
                 (long long)on_cycle);
    goto done;
  }
  for (uint64_t i = 0; i < n / 2; i++) {
    uint32_t swap = search.finished[i];
    search.finished[i] = search.finished[n - 1 - i];
    search.finished[n - 1 - i] = swap;
  }
  *out_order = search.finished;
  search.finished = NULL;
done:
  free(search.colour);
  free(search.stack);
  free(search.finished);
  return status;
}

static wf_status copy_in_order(wf__csr *csr, const wf_fst_view *view, const uint32_t *order,
                               const uint32_t *number, wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arc_off, view->num_states + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, view->num_states, "states", err));
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs, "arcs", err));
  for (uint64_t i = 0; i < view->num_states; i++) {
    uint32_t s = order[i];
    WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
    for (uint64_t k = view->arc_off[s]; k < view->arc_off[s + 1]; k++) {
      wf_arc arc = view->arcs[k];
      arc.nextstate = number[arc.nextstate];
      csr->arcs.data[csr->arcs.size++] = arc;
    }
  }
  return WF_OK;
}

wf_status wf_topsort(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  if (view.start < 0) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  uint32_t *order = NULL, *number = NULL;
  wf_status status;
  WF__TRY_GOTO(status, wf__topological_order(&view, &order, err), done);
  number = wf__alloc(view.num_states, sizeof *number);
  if (number == NULL)
    WF__TRY_GOTO(status, wf__fail_memory(err, view.num_states * sizeof *number, "state numbers"),
                 done);
  for (uint64_t i = 0; i < view.num_states; i++) number[order[i]] = (uint32_t)i;
  WF__TRY_GOTO(status, copy_in_order(&csr, &view, order, number, err), done);
  status = wf__fst_like(&csr, number[view.start], fst, out, err);
done:
  wf__csr_free(&csr);
  free(order);
  free(number);
  return status;
}
