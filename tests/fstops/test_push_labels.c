/* test_push_labels.c - output labels pushed by push, and by minimize without encode_labels. The
 * pairs of strings stay the same, and there are no more states than OpenFst's. */
#include "testing.h"

static wf_error err;

static void assert_equivalent(const wf_fst *a, const wf_fst *b, const char *what) {
  bool equal;
  wf_randequivalent_options r;
  wf_randequivalent_options_init(&r);
  r.delta = 0.02f;
  assert_ok(wf_randequivalent(a, b, &r, &equal, &err));
  if (!equal) fail_msg("%s: %s", what, err.message);
}

static wf_fst *pushed(const wf_fst *fst, bool weights, bool labels, bool to_final) {
  wf_fst *out;
  wf_push_options o;
  wf_push_options_init(&o);
  o.push_weights = weights;
  o.push_labels = labels;
  o.to_final = to_final;
  assert_ok(wf_push(fst, &o, &out, &err));
  return out;
}

static wf_fst *minimized(const wf_fst *fst) {
  wf_fst *out;
  wf_minimize_options o;
  wf_minimize_options_init(&o);
  o.encode_labels = false;
  o.allow_nondet = true;
  assert_ok(wf_minimize(fst, &o, &out, &err));
  return out;
}

static void test_largest_label(void **unused) {
  static const char *const texts[] = {"0 1 1 2147483647;0 1 2147483647 1;1",
                                      "0 1 1 2147483647;0 1 2 2147483647;1",
                                      "0 1 1 2147483647;1 2 2147483647 2147483647;2 1 3 4;2"};
  for (size_t i = 0; i < 3; i++) {
    wf_fst *fst = test_fst_of(WF_TROPICAL, texts[i]),
           *made[3] = {pushed(fst, false, true, false), pushed(fst, false, true, true),
                       minimized(fst)};
    for (int k = 0; k < 3; k++) {
      assert_equivalent(made[k], fst, texts[i]);
      wf_fst_free(made[k]);
    }
    wf_fst_free(fst);
  }
}

/* The start is on a cycle, so in the log semiring its distance from itself is not 0. A new start
 * state compensates for that. */
static void test_start_on_a_cycle(void **unused) {
  test_rng rng = {3};
  wf_fst *fst = test_fst_of(WF_LOG, "0 0 1 1 1;0 2"), *out = pushed(fst, true, false, true);
  wf_fst_view view = wf_fst_get_view(out);
  assert_int_equal(view.num_states, 2);
  assert_int_equal(view.start, 1);
  assert_true(fabsf(view.arcs[view.arc_off[1]].weight - 0.458675f) < 1e-5f);
  assert_equivalent(out, fst, "loop");
  wf_fst_free(out);
  wf_fst_free(fst);
  size_t entered = 0;
  for (int i = 0; i < 200; i++) {
    test_fst_shape shape = {.num_states = 1 + test_below(&rng, 5),
                            .num_arcs = 1 + test_below(&rng, 8),
                            .num_ilabels = 2,
                            .num_olabels = 2,
                            .final_share = 0.3f,
                            .max_weight = 4,
                            .semiring = WF_LOG};
    wf_fst *raw = test_random_fst(&rng, &shape);
    double moved;
    fst = test_reweighted_fst(&rng, raw, 2, false, &moved); /* so that sums over cycles converge */
    wf_fst_free(raw);
    for (int labels = 0; labels < 2; labels++) {
      out = pushed(fst, true, labels == 1, true);
      assert_equivalent(out, fst, "log, to the final states");
      entered += wf_fst_get_view(out).start != 0;
      wf_fst_free(out);
    }
    wf_fst_free(fst);
  }
  assert_true(entered > 50);
}

/* Dead ends and unreachable states: no string is delayed there. */
static void test_dead_ends_and_unreachable_states(void **unused) {
  wf_fst *fst = test_fst_of(WF_TROPICAL,
                            "0 2 2 2 1;0 2 1 1 .5;0 3 4 1 1;0 3 4 1 0;2 2 1 2 .5;2 2 2 1 0;3 0"),
         *out = pushed(fst, false, true, false);
  assert_int_equal(wf_fst_get_view(out).num_states, 3);
  assert_equivalent(out, fst, "a dead end");
  wf_fst_free(out);
  wf_fst_free(fst);
}

/* When labels are pushed towards the final states, 8 labels come at once, before branches. Delaying
 * them all would take thousands of states. */
static void test_many_labels_before_branches(void **unused) {
  char text[1024] = "";
  for (int s = 0; s < 8; s++) sprintf(text + strlen(text), "%d %d 1 9;", s, s + 1);
  for (int s = 8; s < 24; s++)
    sprintf(text + strlen(text), "%d %d 1 1;%d %d 2 2;", s, s + 1, s, s + 1);
  strcat(text, "24");
  wf_fst *fst = test_fst_of(WF_TROPICAL, text), *out = pushed(fst, false, true, true);
  assert_true(wf_fst_get_view(out).num_states < 50);
  assert_equivalent(out, fst, "8 labels before branches");
  wf_fst_free(out);
  wf_fst_free(fst);
}

static uint64_t input_epsilons(const wf_fst *fst) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t count = 0;
  for (uint64_t i = 0; i < view.num_arcs; i++) count += view.arcs[i].ilabel == 0;
  return count;
}

static bool has_paths(const wf_fst *fst) {
  wf_fst *trimmed;
  assert_ok(wf_connect(fst, &trimmed, &err));
  bool some = wf_fst_get_view(trimmed).num_states > 0;
  wf_fst_free(trimmed);
  return some;
}

static void test_openfst_sizes(void **unused) {
  test_rng rng = {21};
  size_t grown = 0;
  for (int i = 0; i < 60; i++) {
    test_fst_shape shape = {.num_states = 2 + test_below(&rng, 8),
                            .num_arcs = 1 + test_below(&rng, 16),
                            .num_ilabels = 4,
                            .num_olabels = 2,
                            .final_share = 0.3f,
                            .max_weight = 1,
                            .acyclic = i % 2 == 0};
    wf_fst *fst = test_random_fst(&rng, &shape), *other;
    const char *in = test_temp_path("in.fst"), *theirs = test_temp_path("theirs.fst");
    assert_ok(wf_fst_write(fst, in, WF_FORMAT_OPENFST_VECTOR, &err));
    for (int what = 0; what < 4 && has_paths(fst); what++) {
      static const char *const commands[] = {"fstminimize --allow_nondet", "fstpush --push_labels",
                                             "fstpush --push_labels --push_weights",
                                             "fstpush --push_labels --to_final"};
      wf_fst *ours = what == 0 ? minimized(fst) : pushed(fst, what == 2, true, what == 3);
      test_shell("%s %s %s", commands[what], in, theirs);
      assert_ok(wf_fst_read(theirs, &other, &err));
      wf_fst_view x = wf_fst_get_view(ours), y = wf_fst_get_view(other);
      if (x.num_states > y.num_states)
        fail_msg("case %d, %s: %d states, OpenFst has %d", i, commands[what], (int)x.num_states,
                 (int)y.num_states);
      if (what != 3 && input_epsilons(ours) > input_epsilons(other))
        fail_msg("case %d, %s: %d arcs with input epsilon, OpenFst has %d", i, commands[what],
                 (int)input_epsilons(ours), (int)input_epsilons(other));
      assert_equivalent(ours, fst, commands[what]);
      grown += x.num_states > wf_fst_get_view(fst).num_states;
      wf_fst_free(ours);
      wf_fst_free(other);
    }
    wf_fst_free(fst);
  }
  assert_true(grown > 5); /* some labels were delayed */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_largest_label), cmocka_unit_test(test_start_on_a_cycle),
      cmocka_unit_test(test_dead_ends_and_unreachable_states),
      cmocka_unit_test(test_many_labels_before_branches), cmocka_unit_test(test_openfst_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
