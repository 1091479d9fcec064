/* test_determinize.c - determinization: at most one arc for each input label at each state.
 *
 * First examples by hand. Then hundreds of small fsts against the definition, and larger ones
 * against OpenFst's tool. */
#include "example.h"
#include "testing.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* Two arcs for label 1. The result has one, at the lower cost. The residual of the other, 2 - 1, is
 * paid on the next arc. */
static void test_example_residual_cost(void **state) {
  (void)state;
  wf_error failure = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 1\n0 2 1 1 2\n1 3 2 2 3\n2 3 3 3 1\n3\n"),
         *expected = test_fst_of(WF_TROPICAL, "0 1 1 1 1\n1 2 2 2 3\n1 2 3 3 2\n2\n"), *out;
  bool equal;
  if (wf_determinize(fst, NULL, &out, &failure) != WF_OK) fail_msg("%s", failure.message);
  assert_int_equal(wf_equal(out, expected, 0, &equal, &failure), WF_OK);
  if (!equal) fail_msg("%s", failure.message);
  wf_fst_free(fst);
  wf_fst_free(expected);
  wf_fst_free(out);
}

/* One input with two outputs: no deterministic fst is equivalent. */
static void test_example_not_functional(void **state) {
  (void)state;
  wf_error failure = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 2\n0 1 1 3\n1\n"), *out;
  assert_int_equal(wf_determinize(fst, NULL, &out, &failure), WF_ERR_NOT_DETERMINIZABLE);
  wf_fst_free(fst);
}

/* --- random tasks ------------------------------------------------------------------------- */

static wf_error err;
static const wf_semiring semirings[2] = {WF_TROPICAL, WF_LOG};

/* Pairs are sorted by key "input : output". So the outputs of one input are neighbours, unless one
 * input is a prefix of another. Therefore we search. */
static size_t input_size(const char *key) { return (size_t)(strchr(key, ':') - key); }
static bool same_input(const char *a, const char *b) {
  return input_size(a) == input_size(b) && memcmp(a, b, input_size(a)) == 0;
}

static bool functional(const test_relation *relation) {
  for (size_t i = 0; i < relation->size; i++)
    for (size_t j = 0; j < i; j++)
      if (same_input(relation->pairs[i].key, relation->pairs[j].key)) return false;
  return true;
}

/* Keeps only the best output of each input. Sets *tied if it is not unique. */
static void keep_best(test_relation *relation, bool *tied) {
  *tied = false;
  for (size_t i = 0; i < relation->size; i++) {
    for (size_t j = 0; j < relation->size; j++) {
      test_pair *a = &relation->pairs[i], *b = &relation->pairs[j];
      if (i == j || a->key[0] == '!' || b->key[0] == '!' || !same_input(a->key, b->key)) continue;
      if (fabs(a->cost - b->cost) < 1e-6) *tied = true;
      if (a->cost > b->cost) {
        a->key[0] = '!';
        break;
      }
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < relation->size; i++) {
    if (relation->pairs[i].key[0] == '!')
      free(relation->pairs[i].key);
    else
      relation->pairs[kept++] = relation->pairs[i];
  }
  relation->size = kept;
}

static bool epsilon_to_nine(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->ilabel == 0) arc->ilabel = 9;
  return true;
}

static bool copy_input(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->olabel = arc->ilabel == 1 ? 1 : 0; /* functional: the output is a function of the input */
  return true;
}

/* The two outputs that the message names must be pairs of the relation with the same input. */
static void check_witness(const test_relation *relation) {
  char input[400], output[2][400], keys[2][900];
  if (sscanf(err.message, "not functional: input \"%399[^\"]", input) != 1) input[0] = '\0';
  const char *at = strstr(err.message, "has outputs \"");
  if (at == NULL) fail_msg("no witness: %s", err.message);
  at += strlen("has outputs \"");
  for (int k = 0; k < 2; k++) {
    size_t size = strcspn(at, "\"");
    snprintf(output[k], sizeof output[k], "%.*s", (int)size, at);
    at += size + strlen("\" and \"");
    snprintf(keys[k], sizeof keys[k], "%s%s: %s%s", input, input[0] != '\0' ? " " : "", output[k],
             output[k][0] != '\0' ? " " : "");
  }
  assert_string_not_equal(keys[0], keys[1]);
  for (int k = 0; k < 2; k++) {
    bool found = false;
    for (size_t i = 0; i < relation->size; i++)
      found = found || strcmp(relation->pairs[i].key, keys[k]) == 0;
    if (!found) fail_msg("'%s' is not a pair of the relation: %s", keys[k], err.message);
  }
}

static int g_functional, g_not_functional, g_best;

static void determinize_one(test_rng *rng, int i) {
  test_fst_shape shape = {.num_states = 3 + test_below(rng, 5),
                          .num_arcs = 3 + test_below(rng, 11),
                          .num_ilabels = 2,
                          .num_olabels = 2,
                          .epsilon_share = 0.3f,
                          .final_share = 0.2f,
                          .max_weight = 3,
                          .acyclic = true,
                          .semiring = semirings[i % 2]};
  wf_fst *fst = test_random_fst(rng, &shape), *result;
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.rmepsilon = i / 2 % 2 == 0;
  if (!o.rmepsilon) fst = test_changed_fst(fst, rng, epsilon_to_nine);
  if (i / 4 % 2 == 0) fst = test_changed_fst(fst, rng, copy_input);
  test_relation want = test_enumerate(fst, 20, 200000);
  wf_status status = wf_determinize(fst, &o, &result, &err);
  if (functional(&want)) {
    if (status != WF_OK) fail_msg("functional, yet: %s", err.message);
    test_assert_relation(result, &want, 60, 1e-4);
    assert_true(wf_fst_properties(result) & WF_PROP_IDETERMINISTIC);
    assert_true(want.size == 0 || test_is_trimmed(result));
    assert_true(wf_fst_properties(result) & WF_PROP_ILABEL_SORTED);
    wf_fst_free(result);
    g_functional++;
  } else {
    assert_int_equal(status, WF_ERR_NOT_DETERMINIZABLE);
    check_witness(&want);
    g_not_functional++;
  }
  bool tied;
  keep_best(&want, &tied);
  if (shape.semiring == WF_TROPICAL && !tied) {
    o.allow_nonfunctional = true;
    assert_ok(wf_determinize(fst, &o, &result, &err));
    test_assert_relation(result, &want, 60, 1e-4);
    wf_fst_free(result);
    g_best++;
  }
  test_relation_free(&want);
  wf_fst_free(fst);
}

static void test_determinize_small(void **unused) {
  test_rng rng = {2};
  for (int i = 0; i < 1600; i++) determinize_one(&rng, i);
  assert_true(g_functional > 1000 && g_not_functional > 250 && g_best > 500);
}

static bool label_cost(test_rng *rng, uint32_t state, wf_arc *arc) {
  arc->olabel = arc->ilabel;
  /* the cost depends on the label alone, so all paths of a string cost the same and the cyclic fst
   * can be determinized */
  if (arc->ilabel != 0)
    arc->weight = (float)arc->ilabel * 0.5f;
  else if (arc->nextstate <= state && arc->weight < 2)
    arc->weight += 2; /* so that sums over epsilon cycles converge */
  return true;
}

static bool epsilons_free(test_rng *rng, uint32_t state, wf_arc *arc) {
  label_cost(rng, state, arc);
  if (arc->ilabel == 0) arc->weight = 0;
  return true;
}

static void test_determinize_cycles(void **unused) {
  test_rng rng = {3};
  int done = 0;
  for (int i = 0; i < 200; i++) {
    test_fst_shape shape = {.num_states = 3 + test_below(&rng, 4),
                            .num_arcs = 4 + test_below(&rng, 8),
                            .num_ilabels = 2,
                            .num_olabels = 2,
                            .epsilon_share = 0.3f,
                            .final_share = 0.4f,
                            .max_weight = 3,
                            .acceptor = true,
                            .semiring = semirings[i % 2]};
    wf_fst *fst = test_changed_fst(test_random_fst(&rng, &shape), &rng,
                                   shape.semiring == WF_TROPICAL ? epsilons_free : label_cost),
           *result;
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.rmepsilon = true;
    o.max_states = 3000;
    wf_status status = wf_determinize(fst, &o, &result, &err);
    if (shape.semiring == WF_TROPICAL && status != WF_OK) fail_msg("%s", err.message);
    if (status == WF_OK) {
      done++;
      test_assert_same_strings(fst, result, true, shape.semiring == WF_LOG ? 300 : 8, 2e-3);
      assert_true(wf_fst_properties(result) & WF_PROP_IDETERMINISTIC);
      assert_true(wf_fst_properties(result) & WF_PROP_NO_IEPSILONS);
      wf_fst_free(result);
    } else {
      assert_int_equal(status,
                       WF_ERR_NOT_DETERMINIZABLE); /* in the log semiring, the paths of a string may
                                                      sum so that states are not twins */
    }
    wf_fst_free(fst);
  }
  assert_true(done > 120);
}

static void expect_refusal(const char *text, wf_determinize_options *o, const char *part) {
  wf_fst *fst = test_fst_of(WF_TROPICAL, text), *result = NULL;
  wf_status status = wf_determinize(fst, o, &result, &err);
  assert_int_equal(status, WF_ERR_NOT_DETERMINIZABLE);
  assert_null(result);
  if (strstr(err.message, part) == NULL) fail_msg("no '%s' in: %s", part, err.message);
  wf_fst_free(fst);
}

static void test_determinize_refusals(void **unused) {
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.max_states = 50;
  expect_refusal("0 1 1 1 0;0 2 1 1 0;1 1 2 2 1;2 2 2 2 2;1 3 3 3;2 3 4 4;3", &o,
                 "1 2 2 2"); /* not twins: the costs diverge */
  o.max_states = 0;
  expect_refusal("0 1 1 0;0 2 1 0;1 1 2 0;2 2 2 5;1 3 3 0;2 3 4 0;3", &o,
                 "10000"); /* the outputs diverge */
  expect_refusal("0 1 1 7;0 2 1 7;1 3 2 5;2 3 2 6;3 4 3 3;4", &o,
                 "input \"1 2 3\" has outputs \"7 5 3\" and \"7 6 3\"");
  expect_refusal("0 1 1 7;0 2 1 8;1;2", &o, "input \"1\" has outputs \"7\" and \"8\"");
  o.rmepsilon = true;
  expect_refusal("0 1 1 7;1 1 0 8;1", &o, "input \"1\" has outputs");
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 0 0 -1;1 0 0 0 0.5;1"), *result = NULL;
  assert_int_equal(wf_determinize(fst, &o, &result, &err), WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(fst);
  fst = test_fst_of(WF_LOG, "0 1 0 0 0;1 0 0 0 0;1");
  assert_int_equal(wf_determinize(fst, &o, &result, &err), WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(fst);
}

/* Strings of 1 and 2 that have a 1 at a fixed place before the end. There is a subset for each
 * combination of the last labels, 2^20 of them. */
static void test_default_limit(void **unused) {
  char text[2048] = "0 0 1 1;0 0 2 2;0 1 1 1;";
  for (int s = 1; s < 20; s++)
    sprintf(text + strlen(text), "%d %d 1 1;%d %d 2 2;", s, s + 1, s, s + 1);
  strcat(text, "20");
  expect_refusal(text, NULL, "set max_states to allow more) after 1000000 states");
  wf_fst *fst = test_fst_of(WF_TROPICAL, text), *result;
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.max_states = 2000000;
  assert_ok(wf_determinize(fst, &o, &result, &err));
  assert_int_equal(wf_fst_get_view(result).num_states, 1 << 20);
  wf_fst_free(result);
  wf_fst_free(fst);
  expect_refusal(
      "0 1 1 1 0;0 2 1 1 0;1 1 2 2 1;2 2 2 2 2;1 3 3 3;2 3 4 4;3", NULL,
      "set max_states to allow more) after 1000000 states"); /* the costs diverge without end */
}

static void test_determinize_final_strings(void **unused) {
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.subsequential_label = 6;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 7 1;1 1 2 7 0;1 2 1 8 0;0 3 1 0 1;3 4 4 5 0;2;1;4"),
         *result;
  assert_ok(wf_determinize(fst, &o, &result, &err));
  wf_fst_free(result);
  wf_fst_free(fst);
  /* output "7 8" is known only at the end, so it is spelled on arcs that read the subsequential
   * label */
  fst = test_fst_of(WF_TROPICAL, "0 1 1 7;1 2 2 8;2;0 3 1 0;3 4 2 0;4 5 3 9;5"), result = NULL;
  assert_ok(wf_determinize(fst, &o, &result, &err));
  test_relation got = test_enumerate(result, 10, 100);
  assert_int_equal(got.size, 2);
  assert_string_equal(got.pairs[0].key, "1 2 3 : 9 ");
  assert_string_equal(got.pairs[1].key, "1 2 6 6 : 7 8 ");
  test_relation_free(&got);
  wf_fst_free(result);
  wf_fst_free(fst);
}

static void test_openfst_determinize(void **unused) {
  test_rng rng = {6};
  for (int i = 0; i < 24; i++) {
    test_fst_shape shape = {.num_states = 400,
                            .num_arcs = i % 2 != 0 ? 900 : 700,
                            .num_ilabels = 12,
                            .num_olabels = 12,
                            .epsilon_share = 0,
                            .final_share = 0.1f,
                            .max_weight = 5,
                            .acyclic = i % 2 != 0,
                            .acceptor = true,
                            .semiring = semirings[i / 2 % 2]};
    wf_fst *fst = test_random_fst(&rng, &shape), *result;
    if (!shape.acyclic) fst = test_changed_fst(fst, &rng, label_cost);
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    if (!shape.acyclic && shape.semiring == WF_LOG) {
      wf_fst_free(fst);
      continue;
    }
    o.max_states = 200000;
    assert_ok(wf_determinize(fst, &o, &result, &err));
    const char *in = test_save_fst(fst, "in.fst"), *ours = test_save_fst(result, "ours.fst"),
               *theirs = test_temp_path("theirs.fst");
    test_shell("fstconnect %s | fstdeterminize - %s", in, theirs);
    test_shell("fstequivalent --delta=0.01 %s %s", ours, theirs);
    assert_int_equal(test_states_of(ours), test_states_of(theirs));
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

static void test_openfst_determinize_transducers(void **unused) {
  test_rng rng = {7};
  for (int i = 0; i < 16; i++) {
    test_fst_shape shape = {.num_states = 200,
                            .num_arcs = 500,
                            .num_ilabels = 6,
                            .num_olabels = 6,
                            .epsilon_share = 0,
                            .final_share = 0.1f,
                            .max_weight = 5,
                            .acyclic = true,
                            .semiring = WF_TROPICAL};
    wf_fst *fst = test_changed_fst(test_random_fst(&rng, &shape), &rng, copy_input), *result;
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.subsequential_label = i % 2 * 9;
    assert_ok(wf_determinize(fst, &o, &result, &err));
    const char *in = test_save_fst(fst, "in.fst"), *theirs = test_temp_path("theirs.fst");
    test_shell("fstconnect %s | fstdeterminize --subsequential_label=%d - %s", in,
               o.subsequential_label, theirs);
    test_assert_equivalent_to_file(result, theirs);
    wf_fst_free(result);
    wf_fst_free(fst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_example_residual_cost),
      cmocka_unit_test(test_example_not_functional),
      cmocka_unit_test(test_determinize_small),
      cmocka_unit_test(test_determinize_cycles),
      cmocka_unit_test(test_determinize_refusals),
      cmocka_unit_test(test_default_limit),
      cmocka_unit_test(test_determinize_final_strings),
      cmocka_unit_test(test_openfst_determinize),
      cmocka_unit_test(test_openfst_determinize_transducers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
