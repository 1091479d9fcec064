/* lattice_paths.h - small random lattices, and lists of all paths of a lattice for tests of
 * lattices to compare with. */
#ifndef TESTS_LATTICE_PATHS_H
#define TESTS_LATTICE_PATHS_H

#include "testing.h"

typedef struct test_lattice_shape {
  int num_frames;
  int32_t num_words, num_labels; /* 1 .. n */
  float epsilon_share;           /* chance that a compact arc has no word, or a raw arc no label */
  float eighths;                 /* costs are multiples of 1/8 up to this, exact in sums */
} test_lattice_shape;
/* States have frames 0 .. num_frames. Arcs span up to three frames. Final states are at the end.
 * With `unaligned`, arcs have any number of labels, so paths to one state differ in frames. */
wf_compact_lattice *test_random_compact(test_rng *rng, const test_lattice_shape *shape,
                                        bool unaligned);
wf_lattice *test_random_raw(test_rng *rng, const test_lattice_shape *shape);

/* One successful path. */
typedef struct test_lattice_path {
  int32_t words[64], labels[64];
  int num_words, num_labels;
  int word_frames[64]; /* frames consumed before the word's arc */
  double graph, acoustic;
} test_lattice_path;
typedef struct test_lattice_paths {
  test_lattice_path *paths;
  size_t size;
} test_lattice_paths;
/* Fails the test beyond `limit` paths. */
test_lattice_paths test_paths_of_compact(const wf_compact_lattice *lattice, size_t limit);
test_lattice_paths test_paths_of_raw(const wf_lattice *lattice, size_t limit);
void test_paths_free(test_lattice_paths *paths);
/* Same words, labels and costs (exactly), in any order? Sorts both lists. */
bool test_same_paths(test_lattice_paths *a, test_lattice_paths *b);

/* Equal in every array? */
bool test_same_raw(const wf_lattice *a, const wf_lattice *b);
/* Equal in every array, except that alignments may be at other positions of the labels? */
bool test_same_compact(const wf_compact_lattice *a, const wf_compact_lattice *b);

#endif
