/* lattice_oracle.c - the lattice by brute force. Until the canonical order is made, states are
 * numbered as nodes: frame * (number of places) + place. */
#include "lattice_oracle.h"

/* --- the arcs that stay, and the canonical order ----------------------------------------- */

struct edge {
  uint64_t from, to; /* nodes */
  uint64_t arc;
  float excess;
  bool kept;
};

struct draft {
  const oracle_space *space;
  const wf_fst_view *graph; /* the graph of the space */
  const wf_decoder_options *options;
  const wf_scores *scores;
  int64_t num_frames;
  struct edge *edges;
  size_t num_edges, cap;
  bool *ends; /* [places] of the last frame: a path may end there */
  bool final;
  bool may_cycle; /* then the order of states is undefined, and only the arcs are compared */
};

static void add_edge(struct draft *draft, struct edge edge) {
  if (draft->num_edges == draft->cap) {
    draft->cap = draft->cap * 2 + 64;
    draft->edges = realloc(draft->edges, draft->cap * sizeof *draft->edges);
    assert_non_null(draft->edges);
  }
  draft->edges[draft->num_edges++] = edge;
}

struct node {
  uint64_t frame, level, place, node;
};

static int compare_nodes(const void *a, const void *b) {
  const struct node *x = a, *y = b;
  if (x->frame != y->frame) return x->frame < y->frame ? -1 : 1;
  if (x->level != y->level) return x->level < y->level ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

/* Lists the nodes that are used, in order. Returns their number. */
static size_t sort_nodes(const struct draft *draft, struct node *nodes) {
  uint64_t n = draft->space->size, count = 0, size = ((uint64_t)draft->num_frames + 1) * n;
  uint64_t *level = calloc(size, sizeof *level);
  bool *used = calloc(size, sizeof *used);
  used[oracle_place(draft->space, (uint64_t)draft->graph->start, 0)] = true;
  for (uint64_t s = 0; s < n; s++)
    if (draft->ends[s]) used[(uint64_t)draft->num_frames * n + s] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < draft->num_edges; i++) {
      const struct edge *edge = &draft->edges[i];
      if (!edge->kept) continue;
      used[edge->from] = used[edge->to] = true;
      if (edge->from / n != edge->to / n || level[edge->to] > level[edge->from] ||
          level[edge->from] == n)
        continue;
      level[edge->to] = level[edge->from] + 1;
      assert_true(draft->may_cycle || level[edge->to] < n);
      changed = true;
    }
  }
  for (uint64_t i = 0; i < size; i++)
    if (used[i]) nodes[count++] = (struct node){i / n, level[i], i % n, i};
  qsort(nodes, count, sizeof *nodes, compare_nodes);
  free(level);
  free(used);
  return count;
}

static int compare_edges(const void *a, const void *b) {
  const struct edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->arc < y->arc ? -1 : x->arc > y->arc;
}

static wf_lattice_arc arc_of(const struct draft *draft, const struct edge *edge,
                             const int32_t *number) {
  const wf_arc *arc = &draft->graph->arcs[edge->arc];
  uint64_t n = draft->space->size;
  int64_t frame = (int64_t)(edge->from / n);
  int context = draft->space->pairs
                    ? (int)(edge->from % n % (uint64_t)draft->space->scorer->num_contexts)
                    : 0;
  wf_lattice_arc out = {.ilabel = arc->ilabel,
                        .olabel = arc->olabel,
                        .graph_cost = arc->weight,
                        .nextstate = number[edge->to]};
  if (arc->olabel != 0) out.graph_cost -= draft->options->word_score;
  out.scorer_cost = oracle_scorer_step(draft->space, context, arc->olabel, &context);
  if (arc->ilabel != 0)
    out.acoustic_cost =
        -(draft->options->acoustic_scale *
          ((const float *)draft->scores->data)[frame * draft->scores->stride + arc->ilabel - 1]);
  return out;
}

/* Makes the view of the kept edges. Frees the draft's arrays. */
static void finish(struct draft *draft, wf_lattice_view *out) {
  uint64_t n = draft->space->size, size = ((uint64_t)draft->num_frames + 1) * n;
  struct node *nodes = malloc(size * sizeof *nodes);
  int32_t *number = malloc(size * sizeof *number);
  size_t count = sort_nodes(draft, nodes), at;
  uint64_t *off = malloc((count + 1) * sizeof *off);
  wf_lattice_arc *arcs = malloc((draft->num_edges + 1) * sizeof *arcs);
  float *final_graph = malloc(count * sizeof *final_graph),
        *final_scorer = calloc(count, sizeof *final_scorer);
  int32_t *frames = malloc(count * sizeof *frames);
  uint64_t num_arcs = 0;
  for (size_t i = 0; i < count; i++) number[nodes[i].node] = (int32_t)i;
  if (draft->num_edges > 0)
    qsort(draft->edges, draft->num_edges, sizeof *draft->edges, compare_edges);
  for (size_t i = 0; i < count; i++) {
    off[i] = num_arcs;
    frames[i] = (int32_t)nodes[i].frame;
    bool ends = nodes[i].frame == (uint64_t)draft->num_frames && draft->ends[nodes[i].place];
    final_graph[i] = !ends ? INFINITY
                     : draft->final
                         ? draft->graph->final_cost[oracle_state(draft->space, nodes[i].place)]
                         : 0;
    if (ends && draft->final && draft->space->pairs)
      final_scorer[i] = draft->space->scorer
                            ->final[nodes[i].place % (uint64_t)draft->space->scorer->num_contexts];
    for (at = 0; at < draft->num_edges; at++)
      if (draft->edges[at].from == nodes[i].node && draft->edges[at].kept)
        arcs[num_arcs++] = arc_of(draft, &draft->edges[at], number);
  }
  off[count] = num_arcs;
  *out = (wf_lattice_view){.num_states = count,
                           .num_arcs = num_arcs,
                           .arc_off = off,
                           .arcs = arcs,
                           .final_graph_cost = final_graph,
                           .final_acoustic_cost = calloc(count, sizeof(float)),
                           .frames = frames,
                           .final_scorer_cost = final_scorer};
  free(nodes);
  free(number);
  free(draft->edges);
  free(draft->ends);
}

void oracle_free_view(wf_lattice_view *view) {
  free((void *)(uintptr_t)view->arc_off);
  free((void *)(uintptr_t)view->arcs);
  free((void *)(uintptr_t)view->final_graph_cost);
  free((void *)(uintptr_t)view->final_acoustic_cost);
  free((void *)(uintptr_t)view->final_scorer_cost);
  free((void *)(uintptr_t)view->frames);
}

/* --- from the slow decoder's trellis ----------------------------------------------------- */

/* reach[i * n + j]: j can be reached from i by one or more epsilon arcs. */
static bool *epsilon_reach(const wf_fst_view *view) {
  uint64_t n = view->num_states;
  bool *reach = calloc(n * n, 1);
  for (uint64_t s = 0; s < n; s++)
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++)
      if (view->arcs[a].ilabel == 0) reach[s * n + view->arcs[a].nextstate] = true;
  for (uint64_t k = 0; k < n; k++)
    for (uint64_t i = 0; i < n; i++)
      for (uint64_t j = 0; j < n && reach[i * n + k]; j++)
        reach[i * n + j] = reach[i * n + j] || reach[k * n + j];
  return reach;
}

static float excess(float cost, float token) { return cost - token > 0 ? cost - token : 0; }

static void add_epsilon_edges(struct draft *draft, const oracle_frame *frame, uint64_t t,
                              const bool *reach) {
  const oracle_space *space = draft->space;
  const wf_fst_view *view = draft->graph;
  uint64_t n = space->size, num_states = view->num_states;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t s = oracle_state(space, i);
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1] && frame->cost[i] != INFINITY;
         a++) {
      const wf_arc *arc = &view->arcs[a];
      int context = space->pairs ? (int)(i % (uint64_t)space->scorer->num_contexts) : 0;
      float extra = oracle_scorer_step(space, context, arc->olabel, &context);
      uint64_t next = arc->nextstate, to = oracle_place(space, next, context);
      if (arc->ilabel != 0 || frame->cost[to] == INFINITY) continue;
      float cost = frame->cost[i] + arc->weight;
      if (arc->olabel != 0) cost -= draft->options->word_score;
      if (arc->olabel != 0 && space->scorer != NULL) cost += extra;
      if (cost > frame->cutoff) continue;
      bool cyclic = next == s || (reach[s * num_states + next] && reach[next * num_states + s]);
      if (cyclic && frame->depth[i] >= frame->depth[to]) continue;
      add_edge(draft,
               (struct edge){t * n + i, t * n + to, a, excess(cost, frame->cost[to]), false});
    }
  }
}

bool oracle_lattice(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores,
                    wf_lattice_view *out) {
  oracle_space space = oracle_space_of(fst, NULL, options);
  return oracle_lattice_in(&space, options, scores, out);
}

bool oracle_lattice_in(const oracle_space *space, const wf_decoder_options *options,
                       const wf_scores *scores, wf_lattice_view *out) {
  uint64_t n = space->size;
  oracle_result *result = malloc(sizeof *result);
  oracle_trellis trellis;
  oracle_decode_in(space, options, scores, result, &trellis);
  struct draft draft = {.space = space,
                        .graph = &space->view,
                        .options = options,
                        .scores = scores,
                        .num_frames = result->num_decoded,
                        .ends = calloc(n, sizeof(bool)),
                        .final = !(result->flags & WF_RESULT_NOT_FINAL)};
  bool fits = result->fits, died = (result->flags & WF_RESULT_DIED) != 0,
       *reach = epsilon_reach(&space->view);
  free(result);
  if (fits) {
    uint64_t num_nodes = ((uint64_t)draft.num_frames + 1) * n;
    for (int64_t t = 0; t <= draft.num_frames; t++) {
      const oracle_frame *frame = &trellis.frames[t];
      for (size_t i = 0; i < frame->num_let_in; i++) {
        const oracle_candidate *c = &frame->let_in[i];
        uint64_t to = (uint64_t)c->to;
        add_edge(&draft,
                 (struct edge){((uint64_t)t - 1) * n + (uint64_t)c->from, (uint64_t)t * n + to,
                               c->arc, excess(c->cost, frame->cost[to]), false});
      }
      add_epsilon_edges(&draft, frame, (uint64_t)t, reach);
    }
    const oracle_frame *last = &trellis.frames[draft.num_frames];
    float *extra = malloc(num_nodes * sizeof *extra), least = INFINITY;
    for (uint64_t i = 0; i < num_nodes; i++) extra[i] = INFINITY;
    float *ending = extra + (uint64_t)draft.num_frames * n;
    for (uint64_t s = 0; s < n; s++) {
      if (!died || last->selected[s])
        ending[s] =
            last->relative[s] + (draft.final ? space->view.final_cost[oracle_state(space, s)] : 0);
      if (draft.final && space->pairs && ending[s] != INFINITY)
        ending[s] += space->scorer->final[s % (uint64_t)space->scorer->num_contexts];
      if (ending[s] < least) least = ending[s];
    }
    for (uint64_t s = 0; s < n; s++) {
      if (ending[s] != INFINITY) ending[s] -= least;
      draft.ends[s] = ending[s] <= options->lattice_beam;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < draft.num_edges; i++) {
        struct edge *edge = &draft.edges[i];
        float through = edge->excess + extra[edge->to];
        if (through < extra[edge->from]) extra[edge->from] = through, changed = true;
      }
    }
    for (size_t i = 0; i < draft.num_edges; i++)
      draft.edges[i].kept =
          draft.edges[i].excess + extra[draft.edges[i].to] <= options->lattice_beam;
    free(extra);
    finish(&draft, out);
  } else {
    free(draft.ends);
  }
  free(reach);
  oracle_free_trellis(&trellis);
  return fits;
}

/* --- from all paths ---------------------------------------------------------------------- */

struct listing {
  struct draft *draft;
  double best;  /* of all paths; found by the first pass, used by the second */
  bool marking; /* set in the second pass */
  size_t num_paths, limit;
  size_t path[256]; /* edges from the start */
  int length;
};

/* Lists all paths onwards from `node`, which is reached at `cost`. Edges [off[node], off[node + 1])
 * leave the node. */
static void list_paths(struct listing *listing, const size_t *off, uint64_t node, double cost) {
  struct draft *draft = listing->draft;
  uint64_t n = draft->graph->num_states;
  if (listing->num_paths > listing->limit) return;
  if (node / n == (uint64_t)draft->num_frames) {
    double total = cost + (draft->final ? (double)draft->graph->final_cost[node % n] : 0);
    listing->num_paths += total != INFINITY;
    if (total < listing->best) listing->best = total;
    if (listing->marking && total - listing->best <= (double)draft->options->lattice_beam) {
      draft->ends[node % n] = true;
      for (int i = 0; i < listing->length; i++) draft->edges[listing->path[i]].kept = true;
    }
  }
  for (size_t i = off[node]; i < off[node + 1]; i++) {
    const struct edge *edge = &draft->edges[i];
    const wf_arc *arc = &draft->graph->arcs[edge->arc];
    bool again = edge->to == node;
    for (int k = listing->length - 1; k >= 0 && !again && arc->ilabel == 0; k--) {
      if (draft->edges[listing->path[k]].from / n != node / n) break;
      again = draft->edges[listing->path[k]].from == edge->to;
    }
    if (again) continue;
    double step = (double)arc->weight - (arc->olabel != 0 ? (double)draft->options->word_score : 0);
    if (arc->ilabel != 0)
      step -= (double)draft->options->acoustic_scale *
              (double)((const float *)draft->scores
                           ->data)[(int64_t)(node / n) * draft->scores->stride + arc->ilabel - 1];
    if (step == INFINITY) continue;
    assert_true(listing->length < 256);
    listing->path[listing->length++] = i;
    list_paths(listing, off, edge->to, cost + step);
    listing->length--;
  }
}

bool enumerated_lattice(const wf_fst *fst, const wf_decoder_options *options,
                        const wf_scores *scores, int64_t num_frames, bool final, size_t limit,
                        wf_lattice_view *out) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t n = view.num_states, num_nodes = ((uint64_t)num_frames + 1) * n;
  oracle_space space = oracle_space_of(fst, NULL, options);
  struct draft draft = {.space = &space,
                        .graph = &view,
                        .options = options,
                        .scores = scores,
                        .num_frames = num_frames,
                        .ends = calloc(n, sizeof(bool)),
                        .final = final,
                        .may_cycle = true};
  size_t *off = malloc((num_nodes + 1) * sizeof *off);
  for (uint64_t node = 0; node < num_nodes; node++) {
    off[node] = draft.num_edges;
    for (uint64_t a = view.arc_off[node % n]; a < view.arc_off[node % n + 1]; a++) {
      uint64_t frame = node / n + (view.arcs[a].ilabel != 0);
      if (frame <= (uint64_t)num_frames)
        add_edge(&draft,
                 (struct edge){.from = node, .to = frame * n + view.arcs[a].nextstate, .arc = a});
    }
  }
  off[num_nodes] = draft.num_edges;
  struct listing listing = {.draft = &draft, .best = INFINITY, .limit = limit};
  list_paths(&listing, off, (uint64_t)view.start, 0);
  bool within = listing.num_paths <= limit;
  listing.marking = true;
  listing.num_paths = 0;
  if (within) list_paths(&listing, off, (uint64_t)view.start, 0);
  free(off);
  if (within) {
    finish(&draft, out);
  } else {
    free(draft.edges);
    free(draft.ends);
  }
  return within;
}

/* --- checks ------------------------------------------------------------------------------ */

bool oracle_same_lattice(const wf_lattice_view *lattice, const wf_lattice_view *expected,
                         uint64_t seed) {
  bool same =
      lattice->num_states == expected->num_states && lattice->num_arcs == expected->num_arcs;
  for (uint64_t s = 0; s < lattice->num_states && same; s++)
    same = lattice->arc_off[s + 1] == expected->arc_off[s + 1] &&
           lattice->frames[s] == expected->frames[s] &&
           lattice->final_graph_cost[s] == expected->final_graph_cost[s] &&
           lattice->final_acoustic_cost[s] == 0 &&
           lattice->final_scorer_cost[s] == expected->final_scorer_cost[s];
  for (uint64_t a = 0; a < lattice->num_arcs && same; a++) {
    const wf_lattice_arc *x = &lattice->arcs[a], *y = &expected->arcs[a];
    same = x->ilabel == y->ilabel && x->olabel == y->olabel && x->graph_cost == y->graph_cost &&
           x->acoustic_cost == y->acoustic_cost && x->scorer_cost == y->scorer_cost &&
           x->nextstate == y->nextstate;
  }
  if (!same)
    printf("seed %llu: %llu states, %llu arcs, expected %llu states, %llu arcs\n",
           (unsigned long long)seed, (unsigned long long)lattice->num_states,
           (unsigned long long)lattice->num_arcs, (unsigned long long)expected->num_states,
           (unsigned long long)expected->num_arcs);
  return same;
}

void oracle_check_shape(const wf_lattice_view *lattice, int64_t num_frames) {
  uint64_t n = lattice->num_states;
  bool *from_start = calloc(n, 1), *to_end = calloc(n, 1);
  assert_true(n > 0 && lattice->frames[0] == 0 && lattice->arc_off[n] == lattice->num_arcs);
  from_start[0] = true;
  for (uint64_t s = 0; s < n; s++) {
    assert_true(s == 0 || lattice->frames[s] >= lattice->frames[s - 1]);
    assert_true(from_start[s]);
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_lattice_arc *arc = &lattice->arcs[a];
      assert_true((uint64_t)arc->nextstate > s && (uint64_t)arc->nextstate < n);
      assert_int_equal(lattice->frames[arc->nextstate], lattice->frames[s] + (arc->ilabel != 0));
      from_start[arc->nextstate] = true;
    }
  }
  for (uint64_t s = n; s-- > 0;) {
    to_end[s] = lattice->final_graph_cost[s] != INFINITY;
    assert_true(!to_end[s] || lattice->frames[s] == num_frames);
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++)
      to_end[s] = to_end[s] || to_end[lattice->arcs[a].nextstate];
    assert_true(to_end[s]);
  }
  free(from_start);
  free(to_end);
}

double oracle_lattice_best(const wf_lattice_view *lattice) {
  double *cost = malloc((lattice->num_states + 1) * sizeof *cost);
  for (uint64_t s = lattice->num_states; s-- > 0;) {
    cost[s] = (double)lattice->final_graph_cost[s] + (double)lattice->final_acoustic_cost[s] +
              (double)lattice->final_scorer_cost[s];
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_lattice_arc *arc = &lattice->arcs[a];
      double through = (double)arc->graph_cost + (double)arc->acoustic_cost +
                       (double)arc->scorer_cost + cost[arc->nextstate];
      if (through < cost[s]) cost[s] = through;
    }
  }
  double best = lattice->num_states > 0 ? cost[0] : INFINITY;
  free(cost);
  return best;
}
