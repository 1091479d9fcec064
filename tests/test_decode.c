/* test_decode.c - the decoder against the oracle, bit for bit, and against unpruned dynamic programming.
 *
 * The oracle keeps one entry per state of the graph and frame, and looks at all of them at every step. */
#include "decode_oracle.h"

#include <float.h>

/* --- the oracle ----------------------------------------------------------------------------------------------------- */

struct cell {
  float cost;        /* INFINITY: no token */
  uint64_t arc;      /* UINT64_MAX: start */
  int64_t prev;      /* state */
  bool same_frame;   /* prev is a token of this frame, else of the one before */
};

static int by_cost_then_state(const void *a, const void *b, void *context) {
  const struct cell *cells = context;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  if (cells[x].cost != cells[y].cost) return cells[x].cost < cells[y].cost ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* States with tokens, best first. */
static uint32_t ranked(struct cell *cells, uint64_t n, uint32_t *order) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < n; s++)
    if (cells[s].cost != INFINITY) order[count++] = s;
  qsort_r(order, count, sizeof *order, by_cost_then_state, cells);
  return count;
}

/* 1/1024 if epsilon arcs form a cycle and one of them is negative (or could be made so by word_score). By transitive closure. */
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
      for (uint64_t j = 0; j < n && reach[i * n + k]; j++) reach[i * n + j] = reach[i * n + j] || reach[k * n + j];
  for (uint64_t s = 0; s < n; s++) cycle = cycle || reach[s * n + s];
  free(reach);
  return cycle && negative ? 1.0f / 1024 : 0;
}

/* False when more than `most` states have tokens in the end. */
static bool close_over_epsilons(const wf_fst_view *view, struct cell *cells, float cutoff, float word_score, float slack, uint32_t most) {
  uint64_t n = view->num_states;
  struct cell *before = malloc(n * sizeof *before);
  bool *improved = malloc(n), *next = malloc(n);
  for (uint64_t s = 0; s < n; s++) improved[s] = cells[s].cost != INFINITY;
  for (bool any = true; any;) {
    any = false;
    memcpy(before, cells, n * sizeof *before);
    memset(next, 0, n);
    for (uint64_t s = 0; s < n; s++) {
      if (!improved[s]) continue;
      for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
        const wf_arc *arc = &view->arcs[a];
        if (arc->ilabel != 0) continue;
        float cost = before[s].cost + arc->weight;
        if (arc->olabel != 0) cost -= word_score;
        uint32_t to = arc->nextstate;
        if (cost > cutoff || cost >= before[to].cost - slack) continue;
        if (next[to] && (cost > cells[to].cost || (cost == cells[to].cost && a > cells[to].arc))) continue;
        cells[to] = (struct cell){cost, a, (int64_t)s, true};
        next[to] = any = true;
      }
    }
    memcpy(improved, next, n);
  }
  free(before);
  free(improved);
  free(next);
  uint32_t count = 0;
  for (uint64_t s = 0; s < n; s++) count += cells[s].cost != INFINITY;
  return count <= most;
}

static void normalise(struct cell *cells, uint64_t n) {
  float best = INFINITY;
  for (uint64_t s = 0; s < n; s++)
    if (cells[s].cost < best) best = cells[s].cost;
  for (uint64_t s = 0; s < n; s++)
    if (cells[s].cost != INFINITY) cells[s].cost -= best;
}

struct candidate {
  float cost;
  uint64_t arc;
  int64_t from;
};

static int by_cost_then_arc(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return x->arc < y->arc ? -1 : x->arc > y->arc;
}

/* The first `admitted` candidates, the best of each state. Returns how many states. */
static uint32_t recombine(const wf_fst_view *view, const struct candidate *candidates, size_t admitted, struct cell *to) {
  uint32_t count = 0;
  for (uint64_t s = 0; s < view->num_states; s++) to[s] = (struct cell){.cost = INFINITY};
  for (size_t i = 0; i < admitted; i++) {
    struct cell *cell = &to[view->arcs[candidates[i].arc].nextstate];
    if (cell->cost != INFINITY) continue; /* they come best first */
    *cell = (struct cell){candidates[i].cost, candidates[i].arc, candidates[i].from, false};
    count++;
  }
  return count;
}

/* One frame from the first `sources` states of `order`, epsilons included. Returns flags; false through *fits if nothing can fit. */
static uint32_t advance(const wf_fst_view *view, const wf_decoder_options *o, const struct cell *from, const uint32_t *order, uint32_t sources,
                        const float *row, float slack, struct cell *to, bool *fits) {
  struct candidate *candidates = malloc((view->num_arcs + 1) * sizeof *candidates);
  size_t count = 0, admitted = 0;
  uint32_t most = (uint32_t)(o->max_tokens > o->max_active ? o->max_tokens : o->max_active), flags = 0;
  size_t least = (size_t)(o->min_active < o->max_active ? o->min_active : o->max_active);
  for (uint32_t i = 0; i < sources; i++)
    for (uint64_t a = view->arc_off[order[i]]; a < view->arc_off[order[i] + 1]; a++) {
      const wf_arc *arc = &view->arcs[a];
      if (arc->ilabel == 0) continue;
      float loglike = row[arc->ilabel - 1];
      float acoustic = loglike == -INFINITY ? INFINITY : -(o->acoustic_scale * loglike);
      float cost = from[order[i]].cost + arc->weight;
      if (arc->olabel != 0) cost -= o->word_score;
      cost += acoustic;
      if (cost != INFINITY) candidates[count++] = (struct candidate){cost, a, order[i]};
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
  if (recombine(view, candidates, admitted, to) > most) {
    flags |= WF_RESULT_OVERFLOW;
    admitted = most;
    cutoff = candidates[admitted - 1].cost;
    recombine(view, candidates, admitted, to);
  }
  *fits = true;
  while (!close_over_epsilons(view, to, cutoff, o->word_score, slack, most)) {
    flags |= WF_RESULT_OVERFLOW;
    admitted /= 2;
    if (admitted == 0) {
      *fits = false;
      break;
    }
    cutoff = candidates[admitted - 1].cost;
    recombine(view, candidates, admitted, to);
  }
  free(candidates);
  return flags;
}

static void trace_back(const wf_fst_view *view, const wf_decoder_options *o, const wf_scores *scores, struct cell **frames, int64_t frame,
                       int64_t state, oracle_result *out) {
  uint64_t reversed[2048];
  int count = 0;
  while (frames[frame][state].arc != UINT64_MAX) {
    struct cell cell = frames[frame][state];
    assert_true(count < 2048);
    reversed[count++] = cell.arc;
    if (!cell.same_frame) frame--;
    state = cell.prev;
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
      if (out->num_words > 0) out->words[out->num_words - 1].end_frame = (int32_t)t;
      out->words[out->num_words++] = (wf_word){arc->olabel, (int32_t)t, (int32_t)t};
    }
    if (arc->ilabel == 0) continue;
    loglike += (double)scores->data[t * scores->stride + arc->ilabel - 1];
    last[t++] = arc->ilabel - 1;
  }
  if (out->num_words > 0) out->words[out->num_words - 1].end_frame = (int32_t)t;
  for (int w = 0; w < out->num_words && o->blank >= 0; w++)
    while (out->words[w].end_frame > out->words[w].start_frame + 1 && last[out->words[w].end_frame - 1] == o->blank) out->words[w].end_frame--;
  out->acoustic_cost = o->acoustic_scale == 0 ? 0 : 0 - (double)o->acoustic_scale * loglike;
}

void oracle_decode(const wf_fst *fst, const wf_decoder_options *o, const wf_scores *scores, oracle_result *out) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t n = view.num_states;
  struct cell **frames = calloc((size_t)scores->num_frames + 1, sizeof *frames);
  uint32_t *order = malloc(n * sizeof *order);
  memset(out, 0, sizeof *out);
  frames[0] = malloc(n * sizeof **frames);
  for (uint64_t s = 0; s < n; s++) frames[0][s] = (struct cell){.cost = INFINITY};
  frames[0][view.start] = (struct cell){.cost = 0, .arc = UINT64_MAX};
  float slack = epsilon_slack(&view, o->word_score);
  uint32_t most = (uint32_t)(o->max_tokens > o->max_active ? o->max_tokens : o->max_active);
  out->fits = close_over_epsilons(&view, frames[0], o->beam, o->word_score, slack, most);
  normalise(frames[0], n);
  int64_t t = 0;
  uint32_t sources = 0;
  for (; t < scores->num_frames && out->fits; t++) {
    sources = ranked(frames[t], n, order);
    if (sources > (uint32_t)o->max_active) {
      sources = (uint32_t)o->max_active;
      out->flags |= WF_RESULT_NARROWED;
    }
    frames[t + 1] = malloc(n * sizeof **frames);
    out->flags |= advance(&view, o, frames[t], order, sources, scores->data + t * scores->stride, slack, frames[t + 1], &out->fits);
    bool any = false;
    for (uint64_t s = 0; s < n; s++) any = any || frames[t + 1][s].cost != INFINITY;
    if (!any) {
      out->flags |= WF_RESULT_DIED | WF_RESULT_NOT_FINAL;
      break;
    }
    normalise(frames[t + 1], n);
  }
  out->num_decoded = t;
  int64_t best = -1;
  float best_cost = INFINITY;
  for (int pass = 0; pass < 2 && best < 0; pass++) { /* final states first, then any; after dying only the sources count */
    if (pass == 0 && (out->flags & WF_RESULT_DIED)) continue;
    if (pass == 1) out->flags |= WF_RESULT_NOT_FINAL;
    for (uint64_t s = 0; s < n; s++) {
      float cost = frames[t][s].cost + (pass == 0 ? view.final_cost[s] : 0);
      if (cost < best_cost) best_cost = cost, best = (int64_t)s;
    }
  }
  if (out->fits) trace_back(&view, o, scores, frames, t, best, out);
  if (out->fits && !(out->flags & WF_RESULT_NOT_FINAL)) out->graph_cost += (double)view.final_cost[best];
  for (int64_t i = 0; i <= scores->num_frames; i++) free(frames[i]);
  free(frames);
  free(order);
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
          double cost = now[s] + (double)arc->weight - (arc->olabel != 0 ? (double)o->word_score : 0);
          if (arc->ilabel == 0 && cost < now[arc->nextstate] - 1e-9) now[arc->nextstate] = cost, any = true;
        }
    }
    if (t == scores->num_frames) break;
    for (uint64_t s = 0; s < n; s++) next[s] = INFINITY;
    for (uint64_t s = 0; s < n; s++)
      for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
        const wf_arc *arc = &view.arcs[a];
        if (arc->ilabel == 0) continue;
        double loglike = (double)scores->data[t * scores->stride + arc->ilabel - 1];
        double cost = now[s] + (double)arc->weight - (arc->olabel != 0 ? (double)o->word_score : 0) +
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

/* --- random tasks --------------------------------------------------------------------------------------------------- */

/* Adds potentials to the weights, so that arcs (epsilons too) may be negative while every cycle keeps its cost. */
static wf_fst *with_potentials(test_rng *rng, const wf_fst *fst) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  float *potential = malloc(view.num_states * sizeof *potential);
  for (uint64_t s = 0; s < view.num_states; s++) potential[s] = (float)test_below(rng, 17) / 8 - 1;
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
      wf_arc arc = view.arcs[a];
      arc.weight += potential[arc.nextstate] - potential[s];
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  free(potential);
  return out;
}

struct task {
  wf_graph *graph;
  wf_decoder_options options;
  float *data;
  wf_scores scores;
};

static struct task random_task(uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  struct task task = {0};
  static const float epsilon_shares[] = {0, 0.2f, 0.6f};
  test_fst_shape shape = {.num_states = 1 + test_below(&rng, 30), .num_olabels = 4, .final_share = test_unit(&rng), .max_weight = seed % 3 == 0 ? 0 : 2,
                          .epsilon_share = epsilon_shares[test_below(&rng, 3)]};
  int32_t num_columns = 1 + (int32_t)test_below(&rng, 5);
  shape.num_ilabels = num_columns;
  shape.num_arcs = shape.num_states * (1 + test_below(&rng, 4));
  wf_fst *plain = test_random_fst(&rng, &shape), *fst = seed % 2 == 0 ? with_potentials(&rng, plain) : wf_fst_ref(plain);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(plain);
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  static const float beams[] = {0, 0.5f, 2, 100};
  static const int32_t actives[] = {1, 2, 5, 10000}, minima[] = {0, 1, 3, 200};
  task.options.beam = beams[test_below(&rng, 4)];
  task.options.max_active = actives[test_below(&rng, 4)];
  task.options.min_active = minima[test_below(&rng, 4)];
  static const int32_t rooms[] = {1, 3, 8, 28000};
  task.options.max_tokens = rooms[test_below(&rng, 4)];
  task.options.acoustic_scale = test_below(&rng, 4) == 0 ? 0.1f : 1;
  task.options.word_score = test_below(&rng, 3) == 0 ? -0.3f : 0; /* a penalty makes no cycle negative */
  task.options.blank = test_below(&rng, 2) == 0 ? 0 : -1;
  task.options.num_threads = 1;
  int64_t num_frames = test_below(&rng, 12);
  task.scores = (wf_scores){.num_frames = num_frames, .num_columns = num_columns, .stride = num_columns + 2};
  task.data = malloc((size_t)(num_frames * task.scores.stride + 1) * sizeof *task.data);
  for (int64_t i = 0; i < num_frames * task.scores.stride; i++) {
    uint32_t kind = test_below(&rng, 20); /* coarse values make ties common; some are impossible */
    task.data[i] = kind == 0 ? -INFINITY : kind < 12 ? -(float)test_below(&rng, 9) / 4 : -test_unit(&rng) * 5;
  }
  task.scores.data = task.data;
  return task;
}

static void free_task(struct task *task) {
  wf_graph_free(task->graph);
  free(task->data);
}

static wf_result *decode(struct task *task) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_result *result;
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoder, &err));
  assert_ok(wf_decode(decoder, &task->scores, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

static void test_against_oracle(void **state) {
  (void)state;
  int finals = 0, dead = 0, narrowed = 0, overflown = 0, tight = 0, worded = 0;
  oracle_result *expected = malloc(sizeof *expected);
  for (uint64_t seed = 1; seed <= 6000; seed++) {
    struct task task = random_task(seed);
    wf_result *result = decode(&task);
    oracle_decode(wf_graph_fst(task.graph), &task.options, &task.scores, expected);
    assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
    tight += !expected->fits;
    if (!expected->fits) {
      wf_result_free(result);
      free_task(&task);
      continue;
    }
    bool same = result->flags == expected->flags && result->num_decoded == expected->num_decoded && result->graph_cost == expected->graph_cost &&
                result->acoustic_cost == expected->acoustic_cost && (int)result->num_words == expected->num_words &&
                memcmp(result->words, expected->words, result->num_words * sizeof(wf_word)) == 0;
    int64_t t = 0;
    for (int i = 0; i < expected->num_arcs; i++) {
      int32_t ilabel = wf_fst_get_view(wf_graph_fst(task.graph)).arcs[expected->arcs[i]].ilabel;
      if (ilabel != 0 && result->alignment[t++] != ilabel) same = false;
    }
    if (!same)
      fail_msg("seed %llu: flags %u/%u decoded %lld/%lld cost %.9g+%.9g / %.9g+%.9g words %zu/%d", (unsigned long long)seed, result->flags, expected->flags,
               (long long)result->num_decoded, (long long)expected->num_decoded, result->graph_cost, result->acoustic_cost, expected->graph_cost,
               expected->acoustic_cost, result->num_words, expected->num_words);
    finals += !(result->flags & WF_RESULT_NOT_FINAL);
    dead += (result->flags & WF_RESULT_DIED) != 0;
    narrowed += (result->flags & WF_RESULT_NARROWED) != 0;
    overflown += (result->flags & WF_RESULT_OVERFLOW) != 0;
    worded += result->num_words > 0;
    wf_result_free(result);
    free_task(&task);
  }
  free(expected);
  assert_true(finals > 1000 && dead > 300 && narrowed > 300 && overflown > 300 && tight > 20 && worded > 1000); /* the tasks cover what they should */
}

static void test_against_all_paths(void **state) {
  (void)state;
  int compared = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    struct task task = random_task(seed);
    task.options.beam = 1e6f;
    task.options.max_active = task.options.max_tokens = 1000000;
    double best = oracle_best_cost(wf_graph_fst(task.graph), &task.options, &task.scores);
    wf_result *result = decode(&task);
    assert_int_equal((result->flags & WF_RESULT_NOT_FINAL) != 0, best == INFINITY);
    if (best != INFINITY) {
      if (fabs(result->cost - best) > 1e-4) fail_msg("seed %llu: cost %.9g, best path %.9g", (unsigned long long)seed, result->cost, best);
      compared++;
    }
    wf_result_free(result);
    free_task(&task);
  }
  assert_true(compared > 1000);
}

/* --- batches, threads, long audio ------------------------------------------------------------------------------------ */

static void make_batch(struct task *task, wf_scores *batch, float **data, size_t count, uint64_t seed, int64_t max_frames) {
  test_rng rng = {seed};
  for (size_t i = 0; i < count; i++) {
    int64_t num_frames = test_below(&rng, (uint32_t)max_frames);
    batch[i] = (wf_scores){.num_frames = num_frames, .num_columns = task->scores.num_columns, .stride = task->scores.num_columns};
    data[i] = malloc((size_t)(num_frames * batch[i].stride + 1) * sizeof **data);
    for (int64_t k = 0; k < num_frames * batch[i].stride; k++) data[i][k] = -test_unit(&rng) * 4;
    batch[i].data = data[i];
  }
}

static void assert_same_result(const wf_result *a, const wf_result *b) {
  assert_int_equal(a->status, b->status);
  assert_int_equal(a->flags, b->flags);
  assert_int_equal(a->num_words, b->num_words);
  assert_memory_equal(a->words, b->words, a->num_words * sizeof *a->words);
  assert_memory_equal(a->alignment, b->alignment, (size_t)a->num_decoded * sizeof *a->alignment);
  assert_true(a->graph_cost == b->graph_cost && a->acoustic_cost == b->acoustic_cost);
  assert_int_equal(a->num_tokens, b->num_tokens);
  assert_int_equal(a->num_arcs, b->num_arcs);
}

static void test_batches(void **state) {
  (void)state;
  enum { COUNT = 40 };
  wf_error err = {0};
  struct task task = random_task(77);
  wf_scores batch[COUNT], shuffled[COUNT];
  float *data[COUNT];
  wf_result *alone[COUNT], *together[COUNT];
  make_batch(&task, batch, data, COUNT, 5, 80);
  for (size_t i = 0; i < COUNT; i++) {
    task.scores = batch[i];
    alone[i] = decode(&task);
    shuffled[i] = batch[(i * 7 + 3) % COUNT];
  }
  for (int threads = 1; threads <= 5; threads += 2) {
    wf_decoder *decoder;
    task.options.num_threads = threads;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    for (int round = 0; round < 2; round++) { /* a used decoder answers as a fresh one */
      assert_ok(wf_decode(decoder, shuffled, COUNT, NULL, together, &err));
      for (size_t i = 0; i < COUNT; i++) {
        assert_same_result(together[i], alone[(i * 7 + 3) % COUNT]);
        wf_result_free(together[i]);
      }
    }
    wf_decoder_free(decoder);
  }
  for (size_t i = 0; i < COUNT; i++) {
    wf_result_free(alone[i]);
    free(data[i]);
  }
  free_task(&task);
}

/* Long enough that the token history is collected many times; words and cost must be those of unpruned dynamic programming. */
static void test_long_audio(void **state) {
  (void)state;
  test_rng rng = {3};
  struct task task = {0};
  wf_error err = {0};
  test_fst_shape shape = {.num_states = 300, .num_arcs = 1500, .num_ilabels = 8, .num_olabels = 50, .epsilon_share = 0.1f, .final_share = 0.5f, .max_weight = 2};
  wf_fst *fst = test_random_fst(&rng, &shape);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.beam = 1e4f;
  task.options.num_threads = 1;
  task.scores = (wf_scores){.num_frames = 20000, .num_columns = 8, .stride = 8};
  task.data = malloc(20000 * 8 * sizeof *task.data);
  for (int i = 0; i < 20000 * 8; i++) task.data[i] = -(float)test_below(&rng, 64) / 8;
  task.scores.data = task.data;
  wf_result *result = decode(&task);
  assert_int_equal(result->status, WF_OK);
  assert_true(result->num_tokens > 4000000);
  double best = oracle_best_cost(wf_graph_fst(task.graph), &task.options, &task.scores);
  assert_true(fabs(result->cost - best) < 1e-3);
  wf_result_free(result);
  free_task(&task);
}

/* --- what can be wrong ------------------------------------------------------------------------------------------------ */

static void test_bad_scores(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 1 2 0 0;1 0");
  wf_graph *graph;
  wf_decoder *decoder;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_int_equal(wf_graph_min_columns(graph), 2);
  assert_ok(wf_decoder_create(graph, NULL, &decoder, &err));
  float good[4] = {-1, -2, -3, -1}, nan[4] = {-1, -2, NAN, -1}, inf[4] = {INFINITY, 0, 0, 0}, none[4] = {-INFINITY, -INFINITY, -1, -1}, huge[4] = {0, 0, 0, -1e30f};
  wf_scores batch[] = {{good, 2, 2, 2}, {nan, 2, 2, 2}, {inf, 2, 2, 2}, {none, 2, 2, 2}, {good, 4, 1, 1}, {good, 0, 2, 2}, {NULL, 0, 0, 0}, {good, 1, 2, 2}, {huge, 2, 2, 2}, {good, 2, 2, 1}, {NULL, 3, 2, 2}};
  wf_result *results[11];
  assert_ok(wf_decode(decoder, batch, 11, NULL, results, &err));
  assert_int_equal(results[0]->status, WF_OK);
  assert_int_equal(results[0]->num_words, 1);
  assert_int_equal(results[0]->words[0].end_frame, 2);
  assert_int_equal(results[1]->status, WF_ERR_ARGUMENT);
  assert_non_null(strstr(results[1]->message, "frame 1, column 0"));
  assert_int_equal(results[2]->status, WF_ERR_ARGUMENT);
  assert_int_equal(results[3]->status, WF_OK); /* every token dies at the first frame */
  assert_int_equal(results[3]->flags, WF_RESULT_DIED | WF_RESULT_NOT_FINAL);
  assert_int_equal(results[3]->num_decoded, 0);
  assert_int_equal(results[4]->status, WF_ERR_ARGUMENT);
  assert_non_null(strstr(results[4]->message, "1 columns"));
  assert_int_equal(results[5]->status, WF_OK); /* nothing said, and the start is not final */
  assert_int_equal(results[5]->flags, WF_RESULT_NOT_FINAL);
  assert_int_equal(results[6]->status, WF_OK);
  assert_int_equal(results[7]->status, WF_OK);
  assert_int_equal(results[7]->flags, 0);
  for (int i = 8; i < 11; i++) assert_int_equal(results[i]->status, WF_ERR_ARGUMENT);
  for (int i = 0; i < 11; i++) wf_result_free(results[i]);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

static void test_bad_graphs(void **state) {
  (void)state;
  wf_error err = {0};
  wf_graph *graph = NULL;
  static const char *const bad[] = {"0 1 1 1 0;1 2 0 0 -1;2 1 0 0 0.5;2 0", "0 0 0 0 -0.5;0 0", "0 1 1 1 1e25;1 0"};
  static const wf_status expected[] = {WF_ERR_NEGATIVE_CYCLE, WF_ERR_NEGATIVE_CYCLE, WF_ERR_ARGUMENT};
  for (size_t i = 0; i < 3; i++) {
    wf_fst *fst = test_fst_of(WF_TROPICAL, bad[i]);
    assert_int_equal(wf_graph_create(fst, NULL, 0, &graph, &err), expected[i]);
    assert_null(graph);
    wf_fst_free(fst);
  }
  /* A cycle that comes out at zero is fine, and so is a negative chain. */
  wf_fst *fine = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 2 0 0 -1;2 1 0 0 1;2 3 0 0 -5;3 0");
  assert_ok(wf_graph_create(fine, NULL, 0, &graph, &err));
  wf_graph_free(graph);
  int32_t columns[] = {-1, 7}, short_columns[] = {-1}, negative[] = {-1, -1};
  assert_ok(wf_graph_create(fine, columns, 2, &graph, &err));
  assert_int_equal(wf_graph_min_columns(graph), 8);
  wf_graph_free(graph);
  assert_int_equal(wf_graph_create(fine, short_columns, 1, &graph, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_graph_create(fine, negative, 2, &graph, &err), WF_ERR_ARGUMENT);
  wf_fst_free(fine);
  /* word_score can make a cycle negative that the graph's own costs do not: an error of the utterance, not a hang. */
  wf_fst *loop = test_fst_of(WF_TROPICAL, "0 1 1 0 0;1 1 0 5 0;1 0");
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.word_score = 1;
  wf_decoder *decoder;
  wf_result *result;
  float score = 0;
  assert_ok(wf_graph_create(loop, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(wf_decode(decoder, &(wf_scores){&score, 1, 1, 1}, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_ERR_NEGATIVE_CYCLE);
  wf_result_free(result);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(loop);
  wf_fst *empty;
  wf_builder *builder;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &empty, &err));
  assert_int_equal(wf_graph_create(empty, NULL, 0, &graph, &err), WF_ERR_ARGUMENT);
  wf_builder_free(builder);
  wf_fst_free(empty);
}

static bool stop_at_once(void *user, const char *stage, double fraction) {
  (void)user, (void)stage, (void)fraction;
  return false;
}

static void test_cancel(void **state) {
  (void)state;
  wf_error err = {0};
  struct task task = random_task(12);
  wf_decoder *decoder;
  wf_result *results[3] = {0};
  wf_scores batch[3] = {task.scores, task.scores, task.scores};
  wf_progress progress = {stop_at_once, NULL};
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_int_equal(wf_decode(decoder, batch, 3, &progress, results, &err), WF_ERR_CANCELLED);
  for (int i = 0; i < 3; i++) assert_null(results[i]);
  wf_decoder_free(decoder);
  free_task(&task);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_against_all_paths), cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_long_audio),     cmocka_unit_test(test_bad_scores),        cmocka_unit_test(test_bad_graphs),
                                     cmocka_unit_test(test_cancel)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
