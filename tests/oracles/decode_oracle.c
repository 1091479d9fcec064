/* decode_oracle.c - docs/reference/semantics.md in dense arrays and full sorts. There is one entry
 * for each place (a state, or a pair of state and context) and frame, and every step visits all of
 * them. */
#include "decode_oracle.h"

#include <float.h>

/* --- the oracle -------------------------------------------------------------------------- */

struct cell {
  float cost;      /* INFINITY: no token */
  uint64_t arc;    /* UINT64_MAX: the start */
  int64_t prev;    /* place */
  int context;     /* the scorer's */
  bool same_frame; /* prev is a token of this frame, not of the frame before */
};

/* qsort_r differs between systems. */
static _Thread_local const struct cell *t_cells;

static int by_cost_then_place(const void *a, const void *b) {
  const struct cell *cells = t_cells;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  if (cells[x].cost != cells[y].cost) return cells[x].cost < cells[y].cost ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* Sorts the places that have tokens, best first. */
static uint32_t ranked(struct cell *cells, uint64_t n, uint32_t *order) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < n; s++)
    if (cells[s].cost != INFINITY) order[count++] = s;
  t_cells = cells;
  qsort(order, count, sizeof *order, by_cost_then_place);
  return count;
}

/* 1/1024 if epsilon arcs form a cycle and one of them is negative (or could become negative by
 * word_score), else 0. Uses the transitive closure. */
static float epsilon_slack(const wf_fst_view *view, float word_score) {
  uint64_t n = view->num_states;
  bool *reach = calloc(n * n, 1), negative = false, cycle = false;
  for (uint64_t s = 0; s < n; s++)
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
      const wf_arc *arc = &view->arcs[a];
      if (arc->ilabel != 0) continue;
      reach[s * n + arc->nextstate] = true;
      negative = negative || arc->weight < 0 || (word_score > 0 && arc->olabel != 0);
    }
  for (uint64_t k = 0; k < n; k++)
    for (uint64_t i = 0; i < n; i++)
      for (uint64_t j = 0; j < n && reach[i * n + k]; j++)
        reach[i * n + j] = reach[i * n + j] || reach[k * n + j];
  for (uint64_t s = 0; s < n; s++) cycle = cycle || reach[s * n + s];
  free(reach);
  return cycle && negative ? 1.0f / 1024 : 0;
}

oracle_space oracle_space_of(const wf_fst *fst, const oracle_scorer *scorer,
                             const wf_decoder_options *options) {
  oracle_space space = {.view = wf_fst_get_view(fst),
                        .scorer = scorer,
                        .pairs = scorer != NULL && options->recombine == 0};
  space.size = space.view.num_states * (space.pairs ? (uint64_t)scorer->num_contexts : 1);
  return space;
}

/* Returns false if more than `most` places have tokens at the end. */
static bool close_over_epsilons(const oracle_space *space, struct cell *cells, float cutoff,
                                float word_score, float slack, uint32_t most) {
  const wf_fst_view *view = &space->view;
  uint64_t n = space->size;
  struct cell *before = malloc(n * sizeof *before);
  bool *improved = malloc(n), *next = malloc(n);
  for (uint64_t i = 0; i < n; i++) improved[i] = cells[i].cost != INFINITY;
  for (bool any = true; any;) {
    any = false;
    memcpy(before, cells, n * sizeof *before);
    memset(next, 0, n);
    for (uint64_t i = 0; i < n; i++) {
      if (!improved[i]) continue;
      uint64_t s = oracle_state(space, i);
      for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
        const wf_arc *arc = &view->arcs[a];
        if (arc->ilabel != 0) continue;
        int context;
        float extra = oracle_scorer_step(space, before[i].context, arc->olabel, &context),
              cost = before[i].cost + arc->weight;
        if (arc->olabel != 0) cost -= word_score;
        if (arc->olabel != 0 && space->scorer != NULL) cost += extra;
        uint64_t to = oracle_place(space, arc->nextstate, context);
        if (cost > cutoff || cost >= before[to].cost - slack) continue;
        if (next[to] &&
            (cost > cells[to].cost ||
             (cost == cells[to].cost &&
              (a > cells[to].arc || (a == cells[to].arc && (int64_t)i > cells[to].prev)))))
          continue;
        cells[to] = (struct cell){
            .cost = cost, .arc = a, .prev = (int64_t)i, .context = context, .same_frame = true};
        next[to] = any = true;
      }
    }
    memcpy(improved, next, n);
  }
  free(before);
  free(improved);
  free(next);
  uint32_t count = 0;
  for (uint64_t i = 0; i < n; i++) count += cells[i].cost != INFINITY;
  return count <= most;
}

static void normalise(struct cell *cells, uint64_t n) {
  float best = INFINITY;
  for (uint64_t s = 0; s < n; s++)
    if (cells[s].cost < best) best = cells[s].cost;
  for (uint64_t s = 0; s < n; s++)
    if (cells[s].cost != INFINITY) cells[s].cost -= best;
}

static int by_cost_then_arc(const void *a, const void *b) {
  const oracle_candidate *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->arc != y->arc) return x->arc < y->arc ? -1 : 1;
  return x->from < y->from
             ? -1
             : x->from > y->from; /* one arc starts in one state, so this orders by context */
}

/* Recombines the first `admitted` candidates: keeps the best one of each place. Returns the number
 * of places. */
static uint32_t recombine(const oracle_space *space, const oracle_candidate *candidates,
                          size_t admitted, struct cell *to) {
  uint32_t count = 0;
  for (uint64_t i = 0; i < space->size; i++) to[i] = (struct cell){.cost = INFINITY};
  for (size_t i = 0; i < admitted; i++) {
    const oracle_candidate *c = &candidates[i];
    if (to[c->to].cost != INFINITY) continue; /* candidates are sorted, best first */
    to[c->to] =
        (struct cell){.cost = c->cost, .arc = c->arc, .prev = c->from, .context = c->context};
    count++;
  }
  return count;
}

/* Advances one frame from the first `sources` places of `order`, epsilons included. Returns flags.
 * Sets *fits to false if max_tokens cannot hold the frame. Records the cutoff and the admitted
 * candidates in `seen`. */
static uint32_t advance(const oracle_space *space, const wf_decoder_options *o,
                        const struct cell *from, const uint32_t *order, uint32_t sources,
                        const float *row, float slack, struct cell *to, bool *fits,
                        oracle_frame *seen) {
  const wf_fst_view *view = &space->view;
  oracle_candidate *candidates =
      malloc((view->num_arcs * (space->size / view->num_states) + 1) * sizeof *candidates);
  size_t count = 0, admitted = 0;
  uint32_t most = (uint32_t)(o->max_tokens > o->max_active ? o->max_tokens : o->max_active),
           flags = 0;
  size_t least = (size_t)(o->min_active < o->max_active ? o->min_active : o->max_active);
  for (uint32_t i = 0; i < sources; i++) {
    uint64_t state = oracle_state(space, order[i]);
    for (uint64_t a = view->arc_off[state]; a < view->arc_off[state + 1]; a++) {
      const wf_arc *arc = &view->arcs[a];
      if (arc->ilabel == 0) continue;
      float loglike = row[arc->ilabel - 1];
      float acoustic = loglike == -INFINITY ? INFINITY : -(o->acoustic_scale * loglike);
      int context;
      float extra = oracle_scorer_step(space, from[order[i]].context, arc->olabel, &context),
            cost = from[order[i]].cost + arc->weight;
      if (arc->olabel != 0) cost -= o->word_score;
      if (arc->olabel != 0 && space->scorer != NULL) cost += extra;
      cost += acoustic;
      int64_t place = (int64_t)oracle_place(space, arc->nextstate, context);
      if (cost != INFINITY)
        candidates[count++] = (oracle_candidate){cost, a, order[i], place, context};
    }
  }
  qsort(candidates, count, sizeof *candidates, by_cost_then_arc);
  float cutoff = FLT_MAX;
  if (count > 0) {
    cutoff = candidates[0].cost + o->beam;
    if (cutoff > FLT_MAX) cutoff = FLT_MAX;
    while (admitted < count && candidates[admitted].cost <= cutoff) admitted++;
    if (admitted < least) {
      cutoff = count <= least ? FLT_MAX : candidates[least - 1].cost;
      while (admitted < count && candidates[admitted].cost <= cutoff) admitted++;
    }
  }
  if (recombine(space, candidates, admitted, to) > most) {
    flags |= WF_RESULT_OVERFLOW;
    admitted = most;
    cutoff = candidates[admitted - 1].cost;
    recombine(space, candidates, admitted, to);
  }
  *fits = true;
  while (!close_over_epsilons(space, to, cutoff, o->word_score, slack, most)) {
    flags |= WF_RESULT_OVERFLOW;
    admitted /= 2;
    if (admitted == 0) {
      *fits = false;
      break;
    }
    cutoff = candidates[admitted - 1].cost;
    recombine(space, candidates, admitted, to);
  }
  *seen = (oracle_frame){.cutoff = cutoff, .let_in = candidates, .num_let_in = admitted};
  return flags;
}

/* Records the tokens of one frame, before and after step 6. */
static void record_tokens(struct cell *cells, uint64_t n, oracle_frame *seen) {
  seen->cost = malloc(n * sizeof *seen->cost);
  seen->relative = malloc(n * sizeof *seen->relative);
  seen->depth = calloc(n, sizeof *seen->depth);
  seen->selected = calloc(n, sizeof *seen->selected);
  for (uint64_t s = 0; s < n; s++) seen->cost[s] = cells[s].cost;
  normalise(cells, n);
  for (uint64_t s = 0; s < n; s++) {
    seen->relative[s] = cells[s].cost;
    for (uint64_t at = s;
         cells[at].cost != INFINITY && cells[at].same_frame && cells[at].arc != UINT64_MAX;
         at = (uint64_t)cells[at].prev)
      seen->depth[s]++;
  }
}

void oracle_free_trellis(oracle_trellis *trellis) {
  for (int64_t t = 0; t <= trellis->num_frames; t++) {
    oracle_frame *frame = &trellis->frames[t];
    free(frame->cost);
    free(frame->relative);
    free(frame->depth);
    free(frame->selected);
    free(frame->let_in);
  }
  free(trellis->frames);
}

static void trace_back(const oracle_space *space, const wf_decoder_options *o,
                       const wf_scores *scores, struct cell **frames, int64_t frame, int64_t place,
                       oracle_result *out) {
  const wf_fst_view *view = &space->view;
  uint64_t reversed[2048];
  int count = 0, context = 0;
  while (frames[frame][place].arc != UINT64_MAX) {
    struct cell cell = frames[frame][place];
    assert_true(count < 2048);
    reversed[count++] = cell.arc;
    if (!cell.same_frame) frame--;
    place = cell.prev;
  }
  double loglike = 0;
  int64_t t = 0;
  int last[4096];
  out->num_arcs = count;
  for (int i = 0; i < count; i++) {
    uint64_t a = reversed[count - 1 - i];
    const wf_arc *arc = &view->arcs[a];
    out->arcs[i] = a;
    out->graph_cost += (double)arc->weight;
    if (arc->olabel != 0) {
      out->graph_cost -= (double)o->word_score;
      out->scorer_cost += (double)oracle_scorer_step(space, context, arc->olabel, &context);
      if (out->num_words > 0) out->words[out->num_words - 1].end_frame = (int32_t)t;
      out->words[out->num_words++] = (wf_word){arc->olabel, (int32_t)t, (int32_t)t};
    }
    if (arc->ilabel == 0) continue;
    loglike += (double)((const float *)scores->data)[t * scores->stride + arc->ilabel - 1];
    last[t++] = arc->ilabel - 1;
  }
  if (out->num_words > 0) out->words[out->num_words - 1].end_frame = (int32_t)t;
  for (int w = 0; w < out->num_words && o->blank >= 0; w++)
    while (out->words[w].end_frame > out->words[w].start_frame + 1 &&
           last[out->words[w].end_frame - 1] == o->blank)
      out->words[w].end_frame--;
  out->acoustic_cost = o->acoustic_scale == 0 ? 0 : 0 - (double)o->acoustic_scale * loglike;
  if (space->scorer != NULL && !(out->flags & WF_RESULT_NOT_FINAL))
    out->scorer_cost += (double)space->scorer->final[context];
}

/* Cost of a token at the end. If `final`, includes the final costs of its state and context. */
static float ending(const oracle_space *space, const struct cell *cells, uint64_t place,
                    bool final) {
  float cost = cells[place].cost;
  if (!final || cost == INFINITY) return cost;
  cost += space->view.final_cost[oracle_state(space, place)];
  return space->scorer != NULL ? cost + space->scorer->final[cells[place].context] : cost;
}

void oracle_decode(const wf_fst *fst, const wf_decoder_options *o, const wf_scores *scores,
                   oracle_result *out, oracle_trellis *trellis) {
  oracle_space space = oracle_space_of(fst, NULL, o);
  oracle_decode_in(&space, o, scores, out, trellis);
}

void oracle_decode_in(const oracle_space *space, const wf_decoder_options *o,
                      const wf_scores *scores, oracle_result *out, oracle_trellis *trellis) {
  const wf_fst_view *view = &space->view;
  uint64_t n = space->size;
  struct cell **frames = calloc((size_t)scores->num_frames + 1, sizeof *frames);
  uint32_t *order = malloc(n * sizeof *order);
  memset(out, 0, sizeof *out);
  frames[0] = malloc(n * sizeof **frames);
  for (uint64_t s = 0; s < n; s++) frames[0][s] = (struct cell){.cost = INFINITY};
  frames[0][oracle_place(space, (uint64_t)view->start, 0)] =
      (struct cell){.cost = 0, .arc = UINT64_MAX};
  float slack = epsilon_slack(view, space->scorer != NULL ? 1 : o->word_score);
  uint32_t most = (uint32_t)(o->max_tokens > o->max_active ? o->max_tokens : o->max_active);
  out->fits = close_over_epsilons(space, frames[0], o->beam, o->word_score, slack, most);
  oracle_frame *seen = calloc((size_t)scores->num_frames + 1, sizeof *seen);
  seen[0].cutoff = o->beam;
  record_tokens(frames[0], n, &seen[0]);
  int64_t t = 0;
  uint32_t sources = 0;
  for (; t < scores->num_frames && out->fits; t++) {
    sources = ranked(frames[t], n, order);
    if (sources > (uint32_t)o->max_active) {
      sources = (uint32_t)o->max_active;
      out->flags |= WF_RESULT_NARROWED;
    }
    frames[t + 1] = malloc(n * sizeof **frames);
    for (uint32_t i = 0; i < sources; i++) seen[t].selected[order[i]] = true;
    out->flags |= advance(space, o, frames[t], order, sources,
                          (const float *)scores->data + t * scores->stride, slack, frames[t + 1],
                          &out->fits, &seen[t + 1]);
    bool any = false;
    for (uint64_t s = 0; s < n; s++) any = any || frames[t + 1][s].cost != INFINITY;
    if (!any) {
      out->flags |= WF_RESULT_DIED | WF_RESULT_NOT_FINAL;
      break;
    }
    record_tokens(frames[t + 1], n, &seen[t + 1]);
  }
  out->num_decoded = t;
  int64_t best = -1;
  float best_cost = INFINITY;
  for (int pass = 0; pass < 2 && best < 0;
       pass++) { /* final states first, then any state; after dying only the sources count */
    if (pass == 0 && (out->flags & WF_RESULT_DIED)) continue;
    if (pass == 1) out->flags |= WF_RESULT_NOT_FINAL;
    for (uint64_t s = 0; s < n; s++) {
      float cost = ending(space, frames[t], s, pass == 0);
      if (cost < best_cost) best_cost = cost, best = (int64_t)s;
    }
  }
  if (out->fits) trace_back(space, o, scores, frames, t, best, out);
  if (out->fits && !(out->flags & WF_RESULT_NOT_FINAL))
    out->graph_cost += (double)view->final_cost[oracle_state(space, (uint64_t)best)];
  for (int64_t i = 0; i <= scores->num_frames; i++) free(frames[i]);
  free(frames);
  free(order);
  oracle_trellis all = {.num_frames = scores->num_frames, .frames = seen};
  if (trellis == NULL)
    oracle_free_trellis(&all);
  else
    *trellis = all;
}

double oracle_best_cost(const wf_fst *fst, const wf_decoder_options *o, const wf_scores *scores) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t n = view.num_states;
  double *now = malloc(n * sizeof *now), *next = malloc(n * sizeof *next), best = INFINITY;
  for (uint64_t s = 0; s < n; s++) now[s] = INFINITY;
  now[view.start] = 0;
  for (int64_t t = 0;; t++) {
    for (bool any = true; any;) { /* Bellman-Ford over epsilons */
      any = false;
      for (uint64_t s = 0; s < n; s++)
        for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
          const wf_arc *arc = &view.arcs[a];
          double cost =
              now[s] + (double)arc->weight - (arc->olabel != 0 ? (double)o->word_score : 0);
          if (arc->ilabel == 0 && cost < now[arc->nextstate] - 1e-9)
            now[arc->nextstate] = cost, any = true;
        }
    }
    if (t == scores->num_frames) break;
    for (uint64_t s = 0; s < n; s++) next[s] = INFINITY;
    for (uint64_t s = 0; s < n; s++)
      for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
        const wf_arc *arc = &view.arcs[a];
        if (arc->ilabel == 0) continue;
        double loglike =
            (double)((const float *)scores->data)[t * scores->stride + arc->ilabel - 1];
        double cost = now[s] + (double)arc->weight -
                      (arc->olabel != 0 ? (double)o->word_score : 0) +
                      (loglike == -INFINITY ? INFINITY : -(double)o->acoustic_scale * loglike);
        if (cost < next[arc->nextstate]) next[arc->nextstate] = cost;
      }
    double *swap = now;
    now = next;
    next = swap;
  }
  for (uint64_t s = 0; s < n; s++)
    if (now[s] + (double)view.final_cost[s] < best) best = now[s] + (double)view.final_cost[s];
  free(now);
  free(next);
  return best;
}
