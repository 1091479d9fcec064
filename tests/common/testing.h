/* testing.h - shared by every test program: cmocka with the headers it needs, a seeded random
 * generator, random fsts, path enumeration.
 *
 * Nothing here uses the algorithms under test, only the builder and the views. */
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
  float epsilon_share;              /* chance that a label is 0, for each side independently */
  float final_share;
  float max_weight;
  bool acyclic, acceptor;
  wf_semiring semiring;
} test_fst_shape;
wf_fst *test_random_fst(test_rng *rng, const test_fst_shape *shape);
/* Makes an fst of "src dst il ol weight" and "state weight" lines. Numbers only; the weight is
 * optional. The start is the source of the first line. */
wf_fst *test_fst_of(wf_semiring semiring, const char *text);

/* Returns the fst with every arc passed through `change`, which drops the arc by returning false.
 * Frees `fst`. */
typedef bool test_change_fn(test_rng *rng, uint32_t state, wf_arc *arc);
wf_fst *test_changed_fst(wf_fst *fst, test_rng *rng, test_change_fn *change);

/* Returns the same fst with `floor` added to every arc (so that cycles have positive cost). If
 * `shift`, also adds potentials. *moved receives the change that potentials make to every path's
 * cost. */
wf_fst *test_reweighted_fst(test_rng *rng, const wf_fst *fst, float floor, bool shift,
                            double *moved);

/* Makes the graph of tokens (WF_GRAPH_TOKENS). `blank` NULL: a usual name. */
wf_status test_tokens_graph(const wf_symbols *tokens, const char *blank, int32_t topology,
                            wf_fst **out, wf_error *err);

/* Is every state on a path from the start to a final state? Computed from the arrays, not from
 * properties. */
bool test_is_trimmed(const wf_fst *fst);

/* All (input string, output string) pairs of the successful paths with at most max_arcs arcs,
 * sorted. Epsilons are dropped. Costs of equal pairs are summed in the semiring (in double). Fails
 * the test if there are more than `limit` paths. */
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
/* Fails the test with the first difference unless both have the same pairs with costs within delta.
 */
void test_assert_same_relation(const test_relation *a, const test_relation *b, double delta);
/* The same for the pairs of an fst. */
void test_assert_relation(const wf_fst *fst, const test_relation *want, int max_arcs, double delta);

double test_plus(wf_semiring semiring, double a, double b);
void test_assert_close(double a, double b, double delta);
/* [num_states], to be freed by the caller. The sum over paths of 0, 1, 2 ... `rounds` arcs from the
 * start to each state, or, if `reverse`, from each state to the end. */
double *test_sum_by_length(const wf_fst_view *view, bool reverse, int rounds);
/* Fails unless all strings of up to three label pairs 0:1, 1:0, 1:1, 2:0, 2:1 (or, if input_only,
 * of labels 1 and 2) have the same costs, summed over paths with up to `rounds` epsilon arcs in a
 * row. */
void test_assert_same_strings(const wf_fst *a, const wf_fst *b, bool input_only, int rounds,
                              double delta);

/* Cost of the best path for the input x, with epsilons anywhere; +infinity if there is none. An arc
 * reads frame t if the column of its label (the label itself if columns is NULL) is x[t]. Relaxes
 * until nothing changes; no epsilon cycle may have negative cost. */
double test_best_cost(const wf_fst *fst, const int32_t *columns, const int *x, int frames);

/* Returns the path of a new temporary file, in a folder that is made for this process and removed
 * at exit. Each thread has its own files and its own 8 buffers, used in turn. */
const char *test_temp_path(const char *name);
/* Writes bytes to a new temporary file and returns its path. */
const char *test_write_file(const char *name, const void *data, size_t size);
/* Reads a whole file and adds a NUL; free() the result. */
char *test_read_file(const char *path, size_t *size);
/* Writes an OpenFst file under a temporary name and returns its path. */
const char *test_save_fst(const wf_fst *fst, const char *name);
uint64_t test_states_of(const char *path);
/* Checks equivalence with random paths. Uses our randequivalent, because Debian's OpenFst lacks
 * fstrandequivalent. */
void test_assert_equivalent_to_file(const wf_fst *fst, const char *path);
/* Number of seeds: WARPFST_TEST_SEEDS if set (for compute-sanitizer, which is a hundred times
 * slower), otherwise `usual`, and an eighth of it under the address sanitizer. */
uint64_t test_seeds(uint64_t usual);
/* Whether `count` is above `least`, which is for the usual number of seeds: in proportion to those
 * that ran. True if WARPFST_TEST_SEEDS is set, which may be a single seed. */
bool test_many(uint64_t count, uint64_t least, uint64_t usual);
/* Selects tests by the first argument of a GPU test program. test_small and test_kernels select the
 * tests whose names begin with test_small and test_kernels; another name selects that test; no
 * argument selects all. */
void test_filter(int argc, char **argv);
/* True if there is no GPU for batches of fsts; then prints so. The tests end with exit code 77
 * (skipped). It is defined in no_gpu_batch.c because tests with simulated GPUs link another
 * implementation of batches. */
bool test_no_gpu_for_batches(void);
/* Runs a shell command. Fails the test unless it exits with 0. On Windows, which has no such shell,
 * skips what is left of the test. */
void test_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
