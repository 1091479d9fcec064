/* word_paths.h - small random lattices, and lists of all their paths for operations on lattices to
 * be compared with. */
#ifndef TESTS_WORD_PATHS_H
#define TESTS_WORD_PATHS_H

#include "lattice/compact_lattice.h"
#include "lattice/lattice.h"
#include "testing.h"

enum { MAX_PATH = 40, MAX_PATHS = 60000 };

typedef struct one_path {
  int32_t words[MAX_PATH], labels[MAX_PATH];
  size_t num_words, num_labels;
  double graph, acoustic;
  uint64_t arcs[MAX_PATH], num_arcs; /* indices of arcs in the lattice */
} one_path;

typedef struct path_list {
  one_path *paths;
  size_t size, room;
  bool full; /* there are more or longer paths */
} path_list;

/* A multiple of 1/8 (exact in sums), or any value. */
static inline float random_cost(test_rng *rng, bool exact) {
  return exact ? (float)((int)test_below(rng, 33) - 4) / 8 : test_unit(rng) * 5 - 0.6f;
}

/* Arcs lead up to four states ahead. The `frames` of states are meaningless here. */
static inline wf_lattice *random_lattice(test_rng *rng, uint32_t num_states, uint32_t num_words,
                                         uint32_t num_labels, bool exact) {
  wf_error err = {0};
  wf__lattice_arrays arrays = {0};
  wf_lattice *lattice;
  for (uint32_t s = 0; s < num_states; s++) {
    bool final = s + 1 == num_states ? test_below(rng, 30) > 0 : test_below(rng, 6) == 0;
    assert_ok(wf__lattice_add_state(&arrays, final ? random_cost(rng, exact) : INFINITY,
                                    final ? random_cost(rng, exact) : 0, (int32_t)s, &err));
    uint32_t count = s + 1 < num_states ? 1 + test_below(rng, 4) : 0;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t most = num_states - 1 - s < 4 ? num_states - 1 - s : 4;
      wf_lattice_arc arc = {
          .ilabel = (int32_t)test_below(rng, num_labels + 1),
          .olabel = test_below(rng, 2) == 0 ? 0 : (int32_t)(1 + test_below(rng, num_words)),
          .graph_cost = test_below(rng, 60) == 0 ? INFINITY : random_cost(rng, exact),
          .acoustic_cost = random_cost(rng, exact),
          .nextstate = (int32_t)(s + 1 + test_below(rng, most))};
      assert_ok(wf__lattice_push(&arrays, arc, &err));
    }
  }
  assert_ok(wf__lattice_from_arrays(&arrays, &lattice, &err));
  return lattice;
}

static inline void put_labels(one_path *path, const int32_t *labels, size_t count) {
  assert_true(path->num_labels + count <= MAX_PATH);
  for (size_t i = 0; i < count; i++) path->labels[path->num_labels++] = labels[i];
}

static inline path_list no_paths(void) {
  return (path_list){.paths = malloc(16 * sizeof(one_path)), .room = 16};
}

static inline void keep_path(path_list *list, const one_path *path) {
  list->full = list->full || list->size == MAX_PATHS;
  if (list->full) return;
  if (list->size == list->room)
    list->paths = realloc(list->paths, (list->room *= 2) * sizeof *list->paths);
  list->paths[list->size++] = *path;
}

static inline void list_from(const wf_lattice_view *view, int32_t state, one_path path,
                             path_list *list) {
  if (list->full) return;
  if (view->final_graph_cost[state] != INFINITY) {
    one_path whole = path;
    whole.graph += (double)view->final_graph_cost[state];
    whole.acoustic += (double)view->final_acoustic_cost[state];
    keep_path(list, &whole);
  }
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_lattice_arc *arc = &view->arcs[i];
    if (arc->graph_cost == INFINITY) continue;
    list->full = list->full || path.num_arcs == MAX_PATH;
    if (list->full) return;
    one_path longer = path;
    longer.graph += (double)arc->graph_cost;
    longer.acoustic += (double)arc->acoustic_cost;
    longer.arcs[longer.num_arcs++] = i;
    if (arc->olabel != 0) longer.words[longer.num_words++] = arc->olabel;
    if (arc->ilabel != 0) put_labels(&longer, &arc->ilabel, 1);
    list_from(view, arc->nextstate, longer, list);
  }
}

static inline void list_compact_from(const wf_compact_lattice_view *view, int32_t state,
                                     one_path path, path_list *list) {
  if (list->full) return;
  const wf_compact_weight *final = &view->finals[state];
  if (final->graph_cost != INFINITY) {
    one_path whole = path;
    whole.graph += (double) final->graph_cost;
    whole.acoustic += (double) final->acoustic_cost;
    put_labels(&whole, view->labels + final->first_label, final->num_labels);
    keep_path(list, &whole);
  }
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_compact_arc *arc = &view->arcs[i];
    one_path longer = path;
    longer.graph += (double)arc->weight.graph_cost;
    longer.acoustic += (double)arc->weight.acoustic_cost;
    longer.arcs[longer.num_arcs++] = i;
    if (arc->word != 0) longer.words[longer.num_words++] = arc->word;
    put_labels(&longer, view->labels + arc->weight.first_label, arc->weight.num_labels);
    list_compact_from(view, arc->nextstate, longer, list);
  }
}

static inline path_list list_paths(const wf_lattice *lattice) {
  wf_lattice_view view = wf_lattice_get_view(lattice);
  path_list list = no_paths();
  if (view.num_states > 0) list_from(&view, 0, (one_path){0}, &list);
  return list;
}

static inline path_list list_compact_paths(const wf_compact_lattice *lattice) {
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  path_list list = no_paths();
  if (view.num_states > 0) list_compact_from(&view, 0, (one_path){0}, &list);
  return list;
}

static inline double cost_of_path(const one_path *path) { return path->graph + path->acoustic; }

static inline int compare_words(const one_path *a, const one_path *b) {
  for (size_t i = 0; i < a->num_words && i < b->num_words; i++)
    if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
  return (a->num_words > b->num_words) - (a->num_words < b->num_words);
}

static inline int by_words_then_cost(const void *a, const void *b) {
  int order = compare_words(a, b);
  double x = cost_of_path(a), y = cost_of_path(b);
  return order != 0 ? order : (x > y) - (x < y);
}

static inline int by_cost_then_words(const void *a, const void *b) {
  double x = cost_of_path(a), y = cost_of_path(b);
  return x != y ? (x > y) - (x < y) : compare_words(a, b);
}

/* The best path of each word sequence, sorted by words. Also sorts the list. */
static inline path_list best_of_each(path_list *all) {
  path_list best = no_paths();
  qsort(all->paths, all->size, sizeof *all->paths, by_words_then_cost);
  for (size_t i = 0; i < all->size; i++)
    if (i == 0 || compare_words(&all->paths[i], &all->paths[i - 1]) != 0)
      keep_path(&best, &all->paths[i]);
  return best;
}

static inline double least_cost(const path_list *list) {
  double least = INFINITY;
  for (size_t i = 0; i < list->size; i++) least = fmin(least, cost_of_path(&list->paths[i]));
  return least;
}

/* Is there a path with these words, this alignment, and these costs (each within delta)? */
static inline bool has_path(const path_list *list, const one_path *path, double delta) {
  for (size_t i = 0; i < list->size; i++) {
    const one_path *other = &list->paths[i];
    if (compare_words(other, path) == 0 && other->num_labels == path->num_labels &&
        memcmp(other->labels, path->labels, path->num_labels * sizeof *path->labels) == 0 &&
        fabs(other->graph - path->graph) <= delta &&
        fabs(other->acoustic - path->acoustic) <= delta)
      return true;
  }
  return false;
}

#endif
