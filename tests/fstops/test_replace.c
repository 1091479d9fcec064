/* test_replace.c - difference and replacement of labels by fsts, compared with path enumeration. */
#include "more_ops.h"

/* --- difference, replace ----------------------------------------------------------------- */

/* Does the acceptor accept the labels "1 2 "? Follows sets of states. */
static bool accepts(const wf_fst *fst, const char *labels) {
  wf_fst_view view = wf_fst_get_view(fst);
  bool now[16] = {false}, next[16];
  if (view.start < 0) return false;
  now[view.start] = true;
  for (const char *at = labels;;) {
    for (uint64_t repeat = 0; repeat < view.num_states; repeat++)
      for (uint64_t s = 0; s < view.num_states; s++)
        for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
          if (now[s] && view.arcs[i].ilabel == 0) now[view.arcs[i].nextstate] = true;
    char *stop;
    long label = strtol(at, &stop, 10);
    if (stop == at) break;
    memset(next, 0, sizeof next);
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
        if (now[s] && view.arcs[i].ilabel == label) next[view.arcs[i].nextstate] = true;
    memcpy(now, next, sizeof now);
    at = stop;
  }
  for (uint64_t s = 0; s < view.num_states; s++)
    if (now[s] && view.final_cost[s] != INFINITY) return true;
  return false;
}

static void test_difference(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {4};
  uint64_t num_kept = 0, num_removed = 0;
  for (int round = 0; round < 400; round++) {
    wf_fst *a = random_fst(&rng, false, true, 0.2f), *b0 = random_fst(&rng, true, round % 2, 0.2f),
           *b1 = map(b0, 9, 0), *b, *got;
    assert_ok(wf_fst_with_semiring(b1, wf_fst_get_view(a).semiring, &b, &err));
    test_relation all = test_enumerate(a, 40, 1000000), want = {0};
    for (size_t i = 0; i < all.size; i++) {
      bool removed = accepts(b, strchr(all.pairs[i].key, ':') + 1);
      num_removed += removed;
      num_kept += !removed;
      if (!removed) add_pair(&want, all.pairs[i].key, all.pairs[i].cost, WF_TROPICAL);
    }
    assert_ok(wf_difference(a, b, NULL, &got, &err));
    assert_true(test_is_trimmed(got));
    expect_relation(&want, got);
    test_relation_free(&all);
    wf_fst *each[] = {a, b0, b1, b};
    for (size_t i = 0; i < 4; i++) wf_fst_free(each[i]);
  }
  assert_true(num_kept > 200 && num_removed > 200);
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 1;1"),
         *weighted = test_fst_of(WF_TROPICAL, "0 1 1 1 2;1"),
         *other = test_fst_of(WF_TROPICAL, "0 1 1 2;1"),
         *log_fst = test_fst_of(WF_LOG, "0 1 1 1;1"), *out;
  assert_int_equal(wf_difference(a, weighted, NULL, &out, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_difference(a, other, NULL, &out, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_difference(a, log_fst, NULL, &out, &err), WF_ERR_ARGUMENT);
  wf_fst *each[] = {a, weighted, other, log_fst};
  for (size_t i = 0; i < 4; i++) wf_fst_free(each[i]);
}

struct caller {
  const wf_fst *fsts[3]; /* label 10 + k calls fst k */
  bool keep_input, keep_output;
  test_relation out;
};

/* Adds the paths from a state of fst `k` on; `rest` holds what follows after its end. */
struct rest {
  size_t fst;
  uint32_t state;
  const struct rest *below;
};
static void follow(struct caller *c, size_t k, uint32_t s, const struct rest *rest, const char *in,
                   const char *out, double cost) {
  wf_fst_view view = wf_fst_get_view(c->fsts[k]);
  if (view.final_cost[s] != INFINITY) {
    char key[1024];
    double end = cost + (double)view.final_cost[s];
    snprintf(key, sizeof key, "%s: %s", in, out);
    if (rest == NULL)
      add_pair(&c->out, key, end, view.semiring);
    else
      follow(c, rest->fst, rest->state, rest->below, in, out, end);
  }
  for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
    const wf_arc *arc = &view.arcs[i];
    bool calls = arc->olabel >= 10;
    char more_in[512], more_out[512], label[2][24] = {"", ""};
    if (arc->ilabel != 0 && (!calls || c->keep_input))
      snprintf(label[0], sizeof label[0], "%d ", arc->ilabel);
    if (arc->olabel != 0 && (!calls || c->keep_output))
      snprintf(label[1], sizeof label[1], "%d ", arc->olabel);
    snprintf(more_in, sizeof more_in, "%s%s", in, label[0]);
    snprintf(more_out, sizeof more_out, "%s%s", out, label[1]);
    struct rest back = {k, arc->nextstate, rest};
    wf_fst_view callee = wf_fst_get_view(c->fsts[calls ? arc->olabel - 10 : 0]);
    if (!calls)
      follow(c, k, arc->nextstate, rest, more_in, more_out, cost + (double)arc->weight);
    else if (callee.start >= 0)
      follow(c, (size_t)(arc->olabel - 10), (uint32_t)callee.start, &back, more_in, more_out,
             cost + (double)arc->weight);
  }
}

/* Calls go to fsts of larger numbers: labels above are those of fst 1 or 2. */
static bool call_some(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)state;
  if (arc->olabel == 2) arc->olabel = 11 + (int32_t)test_below(rng, 2);
  return true;
}
static bool call_last(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  if (arc->olabel == 2) arc->olabel = 12;
  return true;
}

static void test_replace(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {5};
  uint64_t num_paths = 0;
  for (int round = 0; round < 300; round++) {
    wf_fst *fsts[3], *got;
    static test_change_fn *const changes[] = {call_some, call_last, NULL};
    for (size_t k = 0; k < 3; k++) {
      test_fst_shape shape = {.num_states = 2 + test_below(&rng, 4),
                              .num_arcs = 2 + test_below(&rng, 7),
                              .num_ilabels = 3,
                              .num_olabels = 3,
                              .epsilon_share = 0.2f,
                              .final_share = 0.3f,
                              .max_weight = 2,
                              .acyclic = true,
                              .semiring = round % 2 ? WF_LOG : WF_TROPICAL};
      fsts[k] = test_random_fst(&rng, &shape);
      if (changes[k] != NULL) fsts[k] = test_changed_fst(fsts[k], &rng, changes[k]);
    }
    INIT(replace, o);
    o.call_arc_labeling = (int32_t)test_below(&rng, 4);
    struct caller caller = {.fsts = {fsts[0], fsts[1], fsts[2]},
                            .keep_input = o.call_arc_labeling == 0 || o.call_arc_labeling == 2,
                            .keep_output = o.call_arc_labeling == 1 || o.call_arc_labeling == 2};
    static const int32_t labels[] = {10, 11, 12};
    assert_ok(wf_replace((const wf_fst *const *)fsts, labels, 3, &o, &got, &err));
    if (wf_fst_get_view(fsts[0]).start >= 0)
      follow(&caller, 0, (uint32_t)wf_fst_get_view(fsts[0]).start, NULL, "", "", 0);
    num_paths += caller.out.size;
    expect_relation(&caller.out, got);
    for (size_t k = 0; k < 3; k++) wf_fst_free(fsts[k]);
  }
  assert_true(num_paths > 500);
}

static void test_replace_errors(void **state) {
  (void)state;
  wf_error err = {0};
  INIT(replace, o);
  wf_fst *root = test_fst_of(WF_TROPICAL, "0 1 5 10;1"),
         *inner = test_fst_of(WF_TROPICAL, "0 1 5 11;1"),
         *leaf = test_fst_of(WF_TROPICAL, "0 1 5 6;1"),
         *self = test_fst_of(WF_TROPICAL, "0 1 5 10;1"),
         *log_fst = test_fst_of(WF_LOG, "0 1 5 6;1"), *got;
  static const int32_t labels[] = {9, 10, 11}, twice[] = {9, 10, 10}, negative[] = {9, -1, 3};
  const wf_fst *good[] = {root, inner, leaf}, *endless[] = {root, inner, self},
               *mixed[] = {root, inner, log_fst};
  o.return_arc_labeling = 3;
  o.return_label = 8;
  o.root = 9;
  assert_ok(wf_replace(good, labels, 3, &o, &got, &err));
  wf_fst *want = test_fst_of(WF_TROPICAL, "0 1 5 0;1 2 5 0;2 3 5 6;3 4 8 8;4 5 8 8;5");
  bool same;
  assert_ok(wf_equal(got, want, 0, &same, &err));
  assert_true(same);
  wf_fst_free(got);
  o.max_states = 3;
  assert_int_equal(wf_replace(good, labels, 3, &o, &got, &err), WF_ERR_LIMIT);
  o.max_states = 0;
  assert_int_equal(wf_replace(endless, labels, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "calls itself"));
  assert_int_equal(wf_replace(mixed, labels, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_replace(good, twice, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_replace(good, negative, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  o.root = 77;
  assert_int_equal(wf_replace(good, labels, 3, &o, &got, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_replace(good, labels, 0, NULL, &got, &err), WF_ERR_ARGUMENT);
  wf_fst *each[] = {root, inner, leaf, self, log_fst, want};
  for (size_t i = 0; i < 6; i++) wf_fst_free(each[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_difference),
                                     cmocka_unit_test(test_replace),
                                     cmocka_unit_test(test_replace_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
