/* nshortest.c - the n best paths or distinct strings (Mohri & Riley 2002, "An efficient algorithm
 * for the n-best-strings problem").
 *
 * An A* search grows paths backwards, from final states towards the start. The exact cost of the
 * best path from the start guides it:
 *
 *     start --- best[s] ---> s --- arcs of the node and its parents ---> a final state
 *
 * A node is a tail of a path. The queue is ordered by best[s] + cost of the tail, which is the cost
 * of the best path with that tail. Ties are broken by the number of arcs of that path, then by the
 * arcs of the tail, from the end. This is the order of best_paths.h, so the first path is the
 * result of wf_shortest_path. Each state is expanded at most n times. A tail that reaches the start
 * is a complete ("whole") path. It is queued again as a node without an arc; the order in which
 * such nodes leave the queue is the order of the results. For distinct strings, the same search
 * runs on the determinized acceptor (reverse_subsets.h).
 *
 * In the result, paths share tails. State 0 has an epsilon arc for each path, best first. The other
 * states are nodes. */
#include "fstops/nshortest.h"

#include "base/interrupt.h"
#include "fstops/cost_heap.h"
#include "fstops/reverse_subsets.h"

/* The `state` of a node that stands for its parent as a complete path. */
static const uint32_t whole = WF__NO_STATE;

typedef struct node {
  double cost;     /* cost of the tail; with subsets, the relative cost (reverse_subsets.h) */
  uint32_t parent; /* the tail that it extends; WF__NO_STATE: none */
  uint32_t state;  /* a state, a subset, or `whole` */
  uint32_t hops;   /* number of arcs of the tail */
  uint32_t jump;   /* for tail_less: an ancestor, whose distance depends only on hops (see jump_of);
                      the node itself if hops is 0 */
  float weight;    /* of the arc to the parent; final cost if there is no parent; weight of the
                      epsilon arc if `whole` */
  int32_t ilabel, olabel;
} node;

typedef struct search {
  wf_fst_view view;
  wf__incoming incoming;
  uint8_t *useful;
  wf__best_paths best;
  wf__subsets subsets; /* only used if `unique` */
  bool unique;
  uint32_t nshortest;
  WF__VEC(node) nodes;
  WF__VEC(uint32_t) taken; /* number of times that a state or subset was expanded */
  WF__VEC(uint32_t) found; /* the `whole` nodes, best first */
  wf__heap heap;
} search;

/* --- order of tails ---------------------------------------------------------------------- */

/* Jump pointers skip 1, 3, 7, 15, ... arcs, one pointer per node. Any ancestor is then reached in a
 * logarithmic number of steps (Myers 1983, "An applicative random-access stack"). */
static uint32_t jump_of(const search *s, uint32_t parent) {
  const node *nodes = s->nodes.data;
  uint32_t once = nodes[parent].jump, twice = nodes[once].jump;
  return nodes[parent].hops - nodes[once].hops == nodes[once].hops - nodes[twice].hops ? twice
                                                                                       : parent;
}

/* The ancestor of `id` with at most `hops` arcs. */
static uint32_t shorten(const node *nodes, uint32_t id, uint32_t hops) {
  while (nodes[id].hops > hops)
    id = nodes[nodes[id].jump].hops >= hops ? nodes[id].jump : nodes[id].parent;
  return id;
}

/* Compares two tails from the end: is the arc index (or final state, or label) of `a` lower where
 * they first differ? Nodes with the same parent are created in that order, so their numbers are
 * compared. */
static bool tail_less(const void *user, uint32_t a, uint32_t b) {
  const node *nodes = ((const search *)user)->nodes.data;
  uint32_t x = nodes[a].state == whole ? nodes[a].parent : a,
           y = nodes[b].state == whole ? nodes[b].parent : b;
  x = shorten(nodes, x, nodes[y].hops);
  y = shorten(nodes, y, nodes[x].hops);
  if (x == y) return a < b;
  while (nodes[x].parent != nodes[y].parent) {
    bool far = nodes[x].jump != nodes[y].jump;
    x = far ? nodes[x].jump : nodes[x].parent;
    y = far ? nodes[y].jump : nodes[y].parent;
  }
  return x < y;
}

/* Adds a node to the queue. `total` is the cost of the best path with this tail, `hops` the number
 * of its arcs as far as it is known. */
static wf_status add_node(search *s, node fresh, double total, uint32_t hops, wf_error *err) {
  uint32_t id = (uint32_t)s->nodes.size;
  if (s->nodes.size >= WF__NO_STATE)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the search for %u paths needs more than 2^32-1 partial paths", s->nshortest);
  fresh.jump = fresh.parent == WF__NO_STATE ? id : jump_of(s, fresh.parent);
  WF__TRY(wf__vec_push(&s->nodes, fresh, "partial paths", err));
  return wf__heap_push(&s->heap, (wf__heap_entry){total, hops, id}, err);
}

/* --- over the fst itself ----------------------------------------------------------------- */

static wf_status begin_paths(search *s, wf_error *err) {
  uint64_t n = s->view.num_states;
  WF__TRY(wf__vec_grow(&s->taken, n, "counters", err));
  for (uint64_t q = 0; q < n; q++) s->taken.data[q] = 0;
  s->taken.size = n;
  for (uint64_t q = 0; q < n; q++) {
    if (!wf__is_final(&s->view, q) || s->best.cost[q] == INFINITY) continue;
    node end = {.cost = (double)s->view.final_cost[q],
                .parent = WF__NO_STATE,
                .state = (uint32_t)q,
                .weight = s->view.final_cost[q]};
    WF__TRY(add_node(s, end, end.cost + s->best.cost[q], s->best.hops[q], err));
  }
  return WF_OK;
}

static wf_status extend_path(search *s, uint32_t id, wf_error *err) {
  node tail = s->nodes.data[id];
  if ((int64_t)tail.state == s->view.start)
    WF__TRY(add_node(s, (node){.cost = tail.cost, .parent = id, .state = whole, .hops = tail.hops},
                     tail.cost, tail.hops, err));
  for (uint64_t i = s->incoming.off[tail.state]; i < s->incoming.off[tail.state + 1]; i++) {
    const wf_arc *arc = &s->incoming.arcs[i];
    double best = s->best.cost[arc->nextstate];
    if (arc->weight == INFINITY || best == INFINITY ||
        s->taken.data[arc->nextstate] >= s->nshortest)
      continue;
    node longer = {tail.cost + (double)arc->weight,
                   id,
                   arc->nextstate,
                   tail.hops + 1,
                   0,
                   arc->weight,
                   arc->ilabel,
                   arc->olabel};
    WF__TRY(
        add_node(s, longer, longer.cost + best, longer.hops + s->best.hops[arc->nextstate], err));
  }
  return WF_OK;
}

/* --- over subsets ------------------------------------------------------------------------ */

static wf_status begin_strings(search *s, wf_error *err) {
  double cost = INFINITY;
  WF__TRY(wf__subsets_init(&s->subsets, &s->view, &s->incoming, s->best.cost, &cost, err));
  if (cost == INFINITY) return WF_OK;
  WF__TRY(wf__vec_push(&s->taken, 0, "counters", err));
  return add_node(s, (node){.cost = cost, .parent = WF__NO_STATE, .weight = (float)cost}, cost, 0,
                  err);
}

static wf_status extend_string(search *s, uint32_t id, wf_error *err) {
  node tail = s->nodes.data[id];
  double end = wf__subsets_end_cost(&s->subsets, tail.state);
  if (end != INFINITY) {
    node done = {.cost = tail.cost + end,
                 .parent = id,
                 .state = whole,
                 .hops = tail.hops,
                 .weight = (float)end};
    WF__TRY(add_node(s, done, done.cost, done.hops, err));
  }
  const wf__subset_step *steps;
  uint64_t count;
  WF__TRY(wf__subsets_expand(&s->subsets, tail.state, &steps, &count, err));
  while (s->taken.size < s->subsets.first.size)
    WF__TRY(wf__vec_push(&s->taken, 0, "counters", err));
  for (uint64_t i = 0; i < count; i++) {
    if (s->taken.data[steps[i].next] >= s->nshortest) continue;
    node longer = {tail.cost + steps[i].cost,
                   id,
                   steps[i].next,
                   tail.hops + 1,
                   0,
                   (float)steps[i].cost,
                   steps[i].label,
                   steps[i].label};
    WF__TRY(add_node(s, longer, longer.cost, longer.hops, err));
  }
  return WF_OK;
}

/* --- search, result ---------------------------------------------------------------------- */

static wf_status prepare(search *s, wf_error *err) {
  WF__TRY(wf__incoming_find(&s->view, &s->incoming, err));
  return wf__useful_states(&s->view, &s->incoming, &s->useful, err);
}

static wf_status run(search *s, wf_error *err) {
  WF__TRY(s->unique ? begin_strings(s, err) : begin_paths(s, err));
  for (uint64_t step = 0; s->heap.size > 0 && s->found.size < s->nshortest; step++) {
    WF__TRY(wf__interrupted_at(step * 64, err)); /* a step may take long */
    uint32_t id = wf__heap_pop(&s->heap).item, state = s->nodes.data[id].state;
    if (state == whole) {
      WF__TRY(wf__vec_push(&s->found, id, "paths", err));
      continue;
    }
    if (s->taken.data[state] >= s->nshortest) continue;
    s->taken.data[state]++;
    WF__TRY(s->unique ? extend_string(s, id, err) : extend_path(s, id, err));
  }
  return WF_OK;
}

static void reset(search *s) {
  wf__best_paths_free(&s->best);
  wf__subsets_free(&s->subsets);
  s->nodes.size = s->taken.size = s->found.size = s->heap.size = 0;
}

/* Searches among the states of paths that cost at most `width` more than the best path, and widens
 * the limit until it suffices. On a large graph, distances to most states are then never computed.
 * The result is correct if its last path is within the width, because every cheaper path is within
 * it, too. */
static wf_status widen(search *s, wf_error *err) {
  wf__search_graph graph = {.num_states = s->view.num_states,
                            .arc_off = s->view.arc_off,
                            .arcs = s->view.arcs,
                            .start = s->view.start,
                            .only = s->useful,
                            .final_cost = s->view.final_cost};
  for (graph.width = 8;; graph.width *= 8) {
    WF__TRY(wf__best_paths_find(&graph, &s->best, err));
    WF__TRY(run(s, err));
    if (!s->best.cut) return WF_OK;
    if (s->found.size == s->nshortest) {
      double first = s->nodes.data[s->found.data[0]].cost,
             last = s->nodes.data[s->found.data[s->found.size - 1]].cost;
      if (last <= first + graph.width) return WF_OK;
    }
    reset(s);
  }
}

/* Numbers the nodes on the paths found, in the order in which the paths visit them. `number` has
 * one entry per node. */
static uint32_t number_nodes(const search *s, uint32_t *number) {
  for (uint64_t i = 0; i < s->nodes.size; i++) number[i] = WF__NO_STATE;
  uint32_t next = 1;
  for (uint64_t k = 0; k < s->found.size; k++) {
    for (uint32_t id = s->nodes.data[s->found.data[k]].parent;
         id != WF__NO_STATE && number[id] == WF__NO_STATE; id = s->nodes.data[id].parent)
      number[id] = next++;
  }
  return next;
}

static wf_status write_result(const search *s, uint32_t *number, wf__csr *csr, wf_error *err) {
  uint32_t num_states = number_nodes(s, number);
  uint32_t *node_of = wf__alloc(num_states, sizeof *node_of);
  if (node_of == NULL) return wf__fail_memory(err, (uint64_t)num_states * sizeof *node_of, "paths");
  for (uint64_t i = 0; i < s->nodes.size; i++)
    if (number[i] != WF__NO_STATE) node_of[number[i]] = (uint32_t)i;
  wf_status status = wf__csr_add_state(csr, INFINITY, err);
  for (uint64_t k = 0; status == WF_OK && k < s->found.size; k++) {
    const node *done = &s->nodes.data[s->found.data[k]];
    status =
        wf__csr_push(csr, (wf_arc){.nextstate = number[done->parent], .weight = done->weight}, err);
  }
  for (uint32_t q = 1; status == WF_OK && q < num_states; q++) {
    const node *tail = &s->nodes.data[node_of[q]];
    bool end = tail->parent == WF__NO_STATE;
    status = wf__csr_add_state(csr, end ? tail->weight : INFINITY, err);
    if (!end && status == WF_OK)
      status = wf__csr_push(
          csr, (wf_arc){number[tail->parent], tail->weight, tail->ilabel, tail->olabel}, err);
  }
  free(node_of);
  return status;
}

static void search_free(search *s) {
  wf__incoming_free(&s->incoming);
  free(s->useful);
  wf__best_paths_free(&s->best);
  wf__subsets_free(&s->subsets);
  wf__vec_free(&s->nodes);
  wf__vec_free(&s->taken);
  wf__vec_free(&s->found);
  wf__vec_free(&s->heap);
}

wf_status wf__nshortest(const wf_fst *fst, uint32_t nshortest, bool unique, wf_fst **out,
                        wf_error *err) {
  search s = {.view = wf_fst_get_view(fst), .unique = unique, .nshortest = nshortest};
  s.heap.item_less = tail_less;
  s.heap.user = &s;
  wf__csr csr = {0};
  uint32_t *number = NULL;
  wf_status status;
  WF__TRY_GOTO(status, prepare(&s, err), done);
  WF__TRY_GOTO(status, widen(&s, err), done);
  number = wf__alloc(s.nodes.size, sizeof *number);
  if (number == NULL)
    status = wf__fail_memory(err, s.nodes.size * sizeof *number, "paths");
  else if (s.found.size > 0)
    status = write_result(&s, number, &csr, err);
  if (status == WF_OK) status = wf__fst_like(&csr, s.found.size > 0 ? 0 : -1, fst, out, err);
done:
  wf__csr_free(&csr);
  free(number);
  search_free(&s);
  return status;
}
