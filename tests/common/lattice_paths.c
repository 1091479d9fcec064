/* lattice_paths.c - random lattices and their paths. */
#include "lattice_paths.h"

#include "lattice/compact_lattice.h"
#include "lattice/lattice.h"

/* --- random lattices --------------------------------------------------------------------- */

static float cost(test_rng *rng, const test_lattice_shape *shape) {
  return (float)(int)(test_unit(rng) * shape->eighths * 8) / 8 - 1;
}

/* Draws the states in order of frames: one to three for each frame, but only state 0 at frame 0 and
 * only one state at the end. */
static int draw_states(test_rng *rng, int num_frames, int *frame_of, int cap) {
  int count = 0;
  for (int f = 0; f <= num_frames; f++) {
    int here = f == 0 || f == num_frames ? 1 : 1 + (int)test_below(rng, 3);
    for (int i = 0; i < here && count < cap; i++) frame_of[count++] = f;
  }
  return count;
}

static int32_t maybe_word(test_rng *rng, const test_lattice_shape *shape) {
  return test_unit(rng) < shape->epsilon_share
             ? 0
             : 1 + (int32_t)test_below(rng, (uint32_t)shape->num_words);
}

wf_compact_lattice *test_random_compact(test_rng *rng, const test_lattice_shape *shape,
                                        bool unaligned) {
  wf_error err = {0};
  wf__compact_arrays arrays = {0};
  wf_compact_lattice *lattice;
  int frame_of[256], count = draw_states(rng, shape->num_frames, frame_of, 256);
  for (int s = 0; s < count; s++) {
    wf_compact_weight final = {.graph_cost = INFINITY};
    if (s == count - 1 || (unaligned && test_below(rng, 8) == 0)) {
      final = (wf_compact_weight){cost(rng, shape), cost(rng, shape),
                                  unaligned ? test_below(rng, 3) : 0, arrays.labels.size};
      for (uint32_t i = 0; i < final.num_labels; i++)
        assert_ok(wf__vec_push(&arrays.labels,
                               1 + (int32_t)test_below(rng, (uint32_t)shape->num_labels), "test",
                               &err));
    }
    assert_ok(wf__compact_add_state(&arrays, final, &err));
    for (int k = 0; k < 3 && s < count - 1; k++) {
      int target =
          k == 0
              ? s + 1
              : s + 1 +
                    (int)test_below(
                        rng, 4); /* includes the next state, so that the start reaches all states */
      if (target >= count) target = count - 1;
      int frames = frame_of[target] - frame_of[s];
      if (k > 0 && (frames > 3 || test_below(rng, 3) == 0)) continue;
      wf_compact_weight weight = {cost(rng, shape), cost(rng, shape),
                                  unaligned ? test_below(rng, 4) : (uint32_t)frames,
                                  arrays.labels.size};
      for (uint32_t i = 0; i < weight.num_labels; i++)
        assert_ok(wf__vec_push(&arrays.labels,
                               1 + (int32_t)test_below(rng, (uint32_t)shape->num_labels), "test",
                               &err));
      assert_ok(wf__compact_push(&arrays, (wf_compact_arc){maybe_word(rng, shape), target, weight},
                                 &err));
    }
  }
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  return lattice;
}

wf_lattice *test_random_raw(test_rng *rng, const test_lattice_shape *shape) {
  wf_error err = {0};
  wf__lattice_arrays arrays = {0};
  wf_lattice *lattice;
  int frame_of[256], count = draw_states(rng, shape->num_frames, frame_of, 256);
  for (int s = 0; s < count; s++) {
    bool final = s == count - 1;
    assert_ok(wf__lattice_add_state(&arrays, final ? cost(rng, shape) : INFINITY,
                                    final ? cost(rng, shape) : 0, frame_of[s], &err));
    for (int target = s + 1; target < count; target++) {
      int frames = frame_of[target] - frame_of[s];
      if (frames > 1 || (target > s + 1 && test_below(rng, 4) == 0)) continue;
      wf_lattice_arc arc = {
          frames == 0 ? 0 : 1 + (int32_t)test_below(rng, (uint32_t)shape->num_labels),
          maybe_word(rng, shape), cost(rng, shape), frames == 0 ? 0 : cost(rng, shape), target};
      assert_ok(wf__lattice_push(&arrays, arc, &err));
    }
  }
  assert_ok(wf__lattice_from_arrays(&arrays, &lattice, &err));
  return lattice;
}

/* --- paths ------------------------------------------------------------------------------- */

struct walk {
  test_lattice_paths out;
  size_t cap, limit;
};

static void keep(struct walk *walk, const test_lattice_path *path) {
  if (walk->out.size == walk->limit) fail_msg("more than %zu paths", walk->limit);
  if (walk->out.size == walk->cap) {
    walk->cap = walk->cap * 2 + 64;
    walk->out.paths = realloc(walk->out.paths, walk->cap * sizeof *walk->out.paths);
    assert_non_null(walk->out.paths);
  }
  walk->out.paths[walk->out.size++] = *path;
}

static void add(test_lattice_path *path, int32_t word, const int32_t *labels, uint32_t num_labels,
                float graph, float acoustic) {
  path->graph += (double)graph;
  path->acoustic += (double)acoustic;
  if (word != 0) {
    path->word_frames[path->num_words] = path->num_labels;
    path->words[path->num_words++] = word;
  }
  for (uint32_t i = 0; i < num_labels; i++) path->labels[path->num_labels++] = labels[i];
  assert_true(path->num_words < 64 && path->num_labels < 60);
}

static void walk_compact(struct walk *walk, const wf_compact_lattice_view *view, uint64_t s,
                         test_lattice_path path) {
  const wf_compact_weight *final = &view->finals[s];
  if (final->graph_cost < INFINITY) {
    test_lattice_path ended = path;
    add(&ended, 0, view->labels + final->first_label, final->num_labels, final->graph_cost,
        final->acoustic_cost);
    keep(walk, &ended);
  }
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    const wf_compact_arc *arc = &view->arcs[a];
    test_lattice_path next = path;
    add(&next, arc->word, view->labels + arc->weight.first_label, arc->weight.num_labels,
        arc->weight.graph_cost, arc->weight.acoustic_cost);
    walk_compact(walk, view, (uint64_t)arc->nextstate, next);
  }
}

static void walk_raw(struct walk *walk, const wf_lattice_view *view, uint64_t s,
                     test_lattice_path path) {
  if (view->final_graph_cost[s] < INFINITY) {
    test_lattice_path ended = path;
    add(&ended, 0, NULL, 0, view->final_graph_cost[s], view->final_acoustic_cost[s]);
    keep(walk, &ended);
  }
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    const wf_lattice_arc *arc = &view->arcs[a];
    test_lattice_path next = path;
    add(&next, arc->olabel, &arc->ilabel, arc->ilabel != 0, arc->graph_cost, arc->acoustic_cost);
    walk_raw(walk, view, (uint64_t)arc->nextstate, next);
  }
}

test_lattice_paths test_paths_of_compact(const wf_compact_lattice *lattice, size_t limit) {
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  struct walk walk = {.limit = limit};
  if (view.num_states > 0) walk_compact(&walk, &view, 0, (test_lattice_path){.num_words = 0});
  return walk.out;
}

test_lattice_paths test_paths_of_raw(const wf_lattice *lattice, size_t limit) {
  wf_lattice_view view = wf_lattice_get_view(lattice);
  struct walk walk = {.limit = limit};
  if (view.num_states > 0) walk_raw(&walk, &view, 0, (test_lattice_path){.num_words = 0});
  return walk.out;
}

void test_paths_free(test_lattice_paths *paths) {
  free(paths->paths);
  *paths = (test_lattice_paths){0};
}

static int compare_arrays(const int32_t *a, int num_a, const int32_t *b, int num_b) {
  for (int i = 0; i < num_a && i < num_b; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return num_a - num_b;
}

static int compare_paths(const void *left, const void *right) {
  const test_lattice_path *a = left, *b = right;
  int order = compare_arrays(a->words, a->num_words, b->words, b->num_words);
  if (order == 0) order = compare_arrays(a->labels, a->num_labels, b->labels, b->num_labels);
  if (order == 0) order = (a->graph > b->graph) - (a->graph < b->graph);
  return order != 0 ? order : (a->acoustic > b->acoustic) - (a->acoustic < b->acoustic);
}

bool test_same_paths(test_lattice_paths *a, test_lattice_paths *b) {
  if (a->size != b->size) return false;
  if (a->size == 0) return true;
  qsort(a->paths, a->size, sizeof *a->paths, compare_paths);
  qsort(b->paths, b->size, sizeof *b->paths, compare_paths);
  for (size_t i = 0; i < a->size; i++)
    if (compare_paths(&a->paths[i], &b->paths[i]) != 0) return false;
  return true;
}

/* --- equality ---------------------------------------------------------------------------- */

bool test_same_raw(const wf_lattice *a, const wf_lattice *b) {
  wf_lattice_view x = wf_lattice_get_view(a), y = wf_lattice_get_view(b);
  if (x.num_states != y.num_states || x.num_arcs != y.num_arcs) return false;
  if (x.num_states == 0) return true;
  return memcmp(x.arc_off, y.arc_off, (x.num_states + 1) * sizeof *x.arc_off) == 0 &&
         (x.num_arcs == 0 || memcmp(x.arcs, y.arcs, x.num_arcs * sizeof *x.arcs) == 0) &&
         memcmp(x.final_graph_cost, y.final_graph_cost, x.num_states * sizeof(float)) == 0 &&
         memcmp(x.final_acoustic_cost, y.final_acoustic_cost, x.num_states * sizeof(float)) == 0 &&
         memcmp(x.frames, y.frames, x.num_states * sizeof(int32_t)) == 0;
}

static bool same_weight(const wf_compact_lattice_view *x, const wf_compact_weight *a,
                        const wf_compact_lattice_view *y, const wf_compact_weight *b) {
  return memcmp(&a->graph_cost, &b->graph_cost, 4) == 0 &&
         memcmp(&a->acoustic_cost, &b->acoustic_cost, 4) == 0 && a->num_labels == b->num_labels &&
         (a->num_labels == 0 || memcmp(x->labels + a->first_label, y->labels + b->first_label,
                                       a->num_labels * sizeof(int32_t)) == 0);
}

bool test_same_compact(const wf_compact_lattice *a, const wf_compact_lattice *b) {
  wf_compact_lattice_view x = wf_compact_lattice_get_view(a), y = wf_compact_lattice_get_view(b);
  if (x.num_states != y.num_states || x.num_arcs != y.num_arcs) return false;
  for (uint64_t s = 0; s < x.num_states; s++)
    if (x.arc_off[s + 1] != y.arc_off[s + 1] || x.frames[s] != y.frames[s] ||
        !same_weight(&x, &x.finals[s], &y, &y.finals[s]))
      return false;
  for (uint64_t i = 0; i < x.num_arcs; i++)
    if (x.arcs[i].word != y.arcs[i].word || x.arcs[i].nextstate != y.arcs[i].nextstate ||
        !same_weight(&x, &x.arcs[i].weight, &y, &y.arcs[i].weight))
      return false;
  return true;
}
