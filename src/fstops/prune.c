/* prune.c - wf_prune: removes states and arcs that are on no path within a width of the best path.
 *
 *     start ---- fwd[s] ----> s --- weight ---> t ---- bwd[t] ----> a final state
 *
 * An arc is kept if the sum of the three is at most best + width. Every state and arc kept is on a
 * path that is kept, so the result is trimmed. If the number of states is limited, states are added
 * in the order of the cost of the best path through them, each with all states of that path, while
 * they fit. */
#include "fstops/prune.h"

#include "base/option_tables.h"
#include "fstops/best_paths.h"

typedef struct pruner {
  wf_fst_view view;
  wf__incoming incoming;
  uint8_t *useful;
  wf__best_paths fwd, bwd;
  double limit;
  uint32_t *number; /* new number of a state; WF__NO_STATE: removed */
} pruner;

static double through(const pruner *p, uint64_t s) { return p->fwd.cost[s] + p->bwd.cost[s]; }

static wf_status measure(pruner *p, float width, wf_error *err) {
  const wf_fst_view *view = &p->view;
  WF__TRY(wf__incoming_find(view, &p->incoming, err));
  WF__TRY(wf__useful_states(view, &p->incoming, &p->useful, err));
  wf__search_graph graph = {.num_states = view->num_states,
                            .arc_off = view->arc_off,
                            .arcs = view->arcs,
                            .start = view->start,
                            .only = p->useful,
                            .final_cost = view->final_cost,
                            .width = (double)width + 1};
  WF__TRY(wf__best_paths_find(&graph, &p->fwd, err));
  double best = INFINITY;
  for (uint64_t s = 0; s < view->num_states; s++)
    if (p->fwd.cost[s] + (double)view->final_cost[s] < best)
      best = p->fwd.cost[s] + (double)view->final_cost[s];
  /* The cost of a path may differ in the last bits when it is summed from the other end. */
  p->limit = best + (double)width + 1e-9 * (1 + fabs(best));
  graph = (wf__search_graph){.num_states = view->num_states,
                             .arc_off = p->incoming.off,
                             .arcs = p->incoming.arcs,
                             .initial = view->final_cost,
                             .only = p->useful,
                             .limited = true,
                             .limit = p->limit + 1};
  WF__TRY(wf__best_paths_find(&graph, &p->bwd, err));
  return WF_OK;
}

/* --- limiting the number of states ------------------------------------------------------- */

typedef struct ranked {
  double cost;
  uint32_t state;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return (x->state > y->state) - (x->state < y->state);
}

/* Collects in `path` the states of the best path through s that are not kept yet, and marks them 2;
 * kept states have mark 1. The walk stops at a kept state: the best path from there on is kept
 * already, because cheaper states were added first. */
static uint64_t gather_path(const pruner *p, uint32_t s, uint8_t *mark, uint32_t *path) {
  uint64_t count = 0;
  for (int side = 0; side < 2; side++) {
    const uint32_t *from = side == 0 ? p->fwd.from : p->bwd.from;
    for (uint32_t at = s; at != WF__NO_STATE && mark[at] != 1; at = from[at]) {
      if (mark[at] == 0) path[count++] = at;
      mark[at] = 2;
    }
  }
  return count;
}

static void keep_paths(const pruner *p, const ranked *order, uint64_t count, uint64_t nstate,
                       uint8_t *mark, uint32_t *path) {
  uint64_t kept = 0;
  for (uint64_t k = 0; k < count; k++) {
    if (mark[order[k].state] == 1) continue;
    uint64_t more = gather_path(p, order[k].state, mark, path);
    if (kept + more > nstate) break;
    kept += more;
    for (uint64_t i = 0; i < more; i++) mark[path[i]] = 1;
  }
}

/* Reduces `useful` to at most nstate states. */
static wf_status choose_states(pruner *p, uint64_t nstate, wf_error *err) {
  uint64_t n = p->view.num_states, count = 0;
  ranked *order = wf__alloc(n, sizeof *order);
  uint32_t *path = wf__alloc(n, sizeof *path);
  uint8_t *mark = wf__calloc(n, 1);
  wf_status status = WF_OK;
  if (order == NULL || path == NULL || mark == NULL) {
    status = wf__fail_memory(err, n * (5 + sizeof *order), "a ranking of states");
    goto done;
  }
  for (uint64_t s = 0; s < n; s++)
    if (p->useful[s] && through(p, s) <= p->limit)
      order[count++] = (ranked){through(p, s), (uint32_t)s};
  if (count > 1) qsort(order, count, sizeof *order, compare_ranked);
  keep_paths(p, order, count, nstate, mark, path);
  for (uint64_t s = 0; s < n; s++) p->useful[s] = mark[s] == 1;
done:
  free(order);
  free(path);
  free(mark);
  return status;
}

/* --- result ------------------------------------------------------------------------------ */

static wf_status write_result(pruner *p, wf__csr *csr, wf_error *err) {
  const wf_fst_view *view = &p->view;
  uint32_t next = 0;
  p->number = wf__alloc(view->num_states, sizeof *p->number);
  if (p->number == NULL)
    return wf__fail_memory(err, view->num_states * sizeof *p->number, "state numbers");
  for (uint64_t s = 0; s < view->num_states; s++)
    p->number[s] = p->useful[s] && through(p, s) <= p->limit ? next++ : WF__NO_STATE;
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (p->number[s] == WF__NO_STATE) continue;
    WF__TRY(wf__csr_add_state(
        csr,
        p->fwd.cost[s] + (double)view->final_cost[s] <= p->limit ? view->final_cost[s] : INFINITY,
        err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = view->arcs[i];
      if (p->number[arc.nextstate] == WF__NO_STATE || arc.weight == INFINITY) continue;
      if (p->fwd.cost[s] + (double)arc.weight + p->bwd.cost[arc.nextstate] > p->limit) continue;
      arc.nextstate = p->number[arc.nextstate];
      WF__TRY(wf__csr_push(csr, arc, err));
    }
  }
  return WF_OK;
}

wf_status wf_prune(const wf_fst *fst, const wf_prune_options *options, wf_fst **out,
                   wf_error *err) {
  *out = NULL;
  wf_prune_options o;
  WF__TRY(wf__options_take(wf__prune_table(), options, &o, err));
  pruner p = {.view = wf_fst_get_view(fst)};
  if (p.view.semiring != WF_TROPICAL)
    return wf__fail(
        err, WF_ERR_UNSUPPORTED,
        "pruning needs the tropical semiring and this fst is in the log semiring; convert it first "
        "(wf_fst_with_semiring, 'warpfst convert --arc-type=standard')");
  wf__csr csr = {0};
  wf_status status;
  int64_t start = p.view.start;
  WF__TRY_GOTO(status, measure(&p, o.weight, err), done);
  if (o.nstate > 0) WF__TRY_GOTO(status, choose_states(&p, (uint64_t)o.nstate, err), done);
  WF__TRY_GOTO(status, write_result(&p, &csr, err), done);
  if (start >= 0) start = p.number[start] != WF__NO_STATE ? (int64_t)p.number[start] : -1;
  status = wf__fst_like(&csr, start, fst, out, err);
done:
  wf__csr_free(&csr);
  free(p.number);
  free(p.useful);
  wf__incoming_free(&p.incoming);
  wf__best_paths_free(&p.fwd);
  wf__best_paths_free(&p.bwd);
  return status;
}

wf_status wf__prune_result(wf_fst **fst, float weight, int64_t nstate, wf_error *err) {
  wf_prune_options o;
  wf_prune_options_init(&o);
  if (weight >= o.weight && nstate == 0) return WF_OK;
  o.weight = weight;
  o.nstate = nstate;
  wf_fst *pruned = NULL;
  wf_status status = wf_prune(*fst, &o, &pruned, err);
  wf_fst_free(*fst);
  *fst = pruned;
  return status;
}
