/* testing.h - what every test program shares: cmocka in the right order, a seeded generator, random
 * fsts, path enumeration.
 *
 * Nothing here uses the algorithms under test; only the builder and the views. */
#ifndef TESTS_TESTING_H
#define TESTS_TESTING_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calls.h"
#include "warpfst_all.h"

/* Asserts that a call returned WF_OK and prints its message when not. `err` must be in scope. */
#define assert_ok(call)                                                  \
  do {                                                                   \
    wf_status status_of_call = (call);                                   \
    if (status_of_call != WF_OK) fail_msg("%s: %s", #call, err.message); \
  } while (0)

/* splitmix64. */
typedef struct test_rng {
  uint64_t state;
} test_rng;
uint64_t test_next(test_rng *rng);
uint32_t test_below(test_rng *rng, uint32_t n); /* [0, n) */
float test_unit(test_rng *rng);                 /* [0, 1), multiples of 2^-24 */

/* A random fst. Weights are multiples of 1/8 up to max_weight (exact in float sums). */
typedef struct test_fst_shape {
  uint32_t num_states, num_arcs;
  int32_t num_ilabels, num_olabels; /* labels 1..n */
  float epsilon_share;              /* chance that a label is 0, on each side alone */
  float final_share;
  float max_weight;
  bool acyclic, acceptor;
  wf_semiring semiring;
} test_fst_shape;
wf_fst *test_random_fst(test_rng *rng, const test_fst_shape *shape);
/* From "src dst il ol weight" and "state weight" lines, numbers only, weight optional; start is the
 * first line's source. */
wf_fst *test_fst_of(wf_semiring semiring, const char *text);

/* The fst with every arc passed through `change`, which drops the arc by returning false. Frees
 * `fst`. */
typedef bool test_change_fn(test_rng *rng, uint32_t state, wf_arc *arc);
wf_fst *test_changed_fst(wf_fst *fst, test_rng *rng, test_change_fn *change);

/* The same fst with `floor` added to every arc (so that cycles cost something) and, if `shift`,
 * potentials. `*moved` is what every path's cost changes by through the potentials. */
wf_fst *test_reweighted_fst(test_rng *rng, const wf_fst *fst, float floor, bool shift,
                            double *moved);

/* Is every state on a path from the start to a final one? Found out from the arrays, whatever the
 * library says. */
bool test_is_trimmed(const wf_fst *fst);

/* All (input string, output string) pairs of the successful paths with at most max_arcs arcs,
 * epsilons dropped, costs of equal pairs summed in the semiring (in double), sorted. Fails the test
 * beyond `limit` paths. */
typedef struct test_pair {
  char *key; /* "1 2 : 3" */
  double cost;
} test_pair;
typedef struct test_relation {
  test_pair *pairs;
  size_t size;
} test_relation;
test_relation test_enumerate(const wf_fst *fst, int max_arcs, size_t limit);
void test_relation_free(test_relation *relation);
/* Same pairs with costs within delta? Fails the test with the first difference. */
void test_assert_same_relation(const test_relation *a, const test_relation *b, double delta);
/* As that, of the fst's own pairs. */
void test_assert_relation(const wf_fst *fst, const test_relation *want, int max_arcs, double delta);

double test_plus(wf_semiring semiring, double a, double b);
void test_assert_close(double a, double b, double delta);
/* [num_states], to be freed: the sum over paths of 0, 1, 2 ... `rounds` arcs from the start to each
 * state, or from each state to the end. */
double *test_sum_by_length(const wf_fst_view *view, bool reverse, int rounds);
/* Same costs of all strings of up to three label pairs 0:1, 1:0, 1:1, 2:0, 2:1 (or, input_only,
 * labels 1 and 2), summed over paths with up to `rounds` epsilon arcs in a row. */
void test_assert_same_strings(const wf_fst *a, const wf_fst *b, bool input_only, int rounds,
                              double delta);

/* Cost of the best path for the input x, epsilons anywhere; +infinity if there is none. Frame t is
 * read by arcs whose label's column (label itself if columns is NULL) is x[t]. Found by relaxing
 * until nothing changes; no cycle of epsilons may have negative cost. */
double test_best_cost(const wf_fst *fst, const int32_t *columns, const int *x, int frames);

/* Path of a fresh temporary file name (in a folder made for this process and removed at exit). Each
 * thread has files, and a buffer, of its own; cycled over 8 calls. */
const char *test_temp_path(const char *name);
/* Writes bytes to a fresh temporary file and returns its path. */
const char *test_write_file(const char *name, const void *data, size_t size);
/* Whole file, NUL-ended; free() it. */
char *test_read_file(const char *path, size_t *size);
/* Writes an OpenFst file under a temporary name and returns its path. */
const char *test_save_fst(const wf_fst *fst, const char *name);
uint64_t test_states_of(const char *path);
/* By random paths: Debian's packages leave fstrandequivalent out, so this takes ours. */
void test_assert_equivalent_to_file(const wf_fst *fst, const char *path);
/* As many as WARPFST_TEST_SEEDS says, as compute-sanitizer is a hundred times slower; else `usual`,
 * with the address sanitizer a quarter of it. */
uint64_t test_seeds(uint64_t usual);
/* The first argument of a GPU test's program: test_small and test_kernels are the tests whose names
 * begin with test_small; another name is that test; none is all. */
void test_filter(int argc, char **argv);
/* Says so, too: tests of fsts on a GPU then end with 77, skipped. (In a file of its own,
 * no_gpu_batch.c: the imitated GPUs are linked with batches of their own.) */
bool test_no_gpu_for_batches(void);
/* Runs a shell command, fails the test unless it exits with 0. */
void test_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
