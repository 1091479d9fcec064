/* test_cdrewrite.c - rewrite rules of single strings, compared with a simulation that rewrites
 * strings step by step. Rules of sets of strings are compared with another simulation in
 * tests/python/test_strings.py, and with pynini in bench/fstops/differential.py. */
#include "more_ops.h"

/* Rules name the labels 1 and 2; strings have 1 to 4, of which a rule copies the others alike. */
enum { LETTERS = 2, ALL_LETTERS = 4, LONGEST = 5, MOST = 64 };

/* A string of labels 1 to LETTERS. */
typedef struct text {
  int size;
  int32_t labels[MOST];
} text;

/* A rule: phi becomes psi between left and right. */
typedef struct rule {
  text phi, psi, left, right;
  int direction;
} rule;

static text random_text(test_rng *rng, int least, int most) {
  text t = {.size = least + (int)test_below(rng, (uint32_t)(most - least + 1))};
  for (int i = 0; i < t.size; i++) t.labels[i] = 1 + (int32_t)test_below(rng, LETTERS);
  return t;
}

static text reversed(text t) {
  text r = {.size = t.size};
  for (int i = 0; i < t.size; i++) r.labels[i] = t.labels[t.size - 1 - i];
  return r;
}

/* Is `part` in `t` from `at` on? */
static bool found(const text *t, int at, const text *part) {
  return at >= 0 && at + part->size <= t->size &&
         memcmp(t->labels + at, part->labels, (size_t)part->size * sizeof(int32_t)) == 0;
}

static void append(text *t, const int32_t *labels, int count) {
  assert_true(t->size + count <= MOST);
  memcpy(t->labels + t->size, labels, (size_t)count * sizeof *labels);
  t->size += count;
}

/* From left to right: the left context is in the output, or with `input_only` in the input. */
static text rewrite_left_to_right(const rule *r, const text *in, bool input_only) {
  text out = {0};
  for (int at = 0; at < in->size;) {
    bool left = input_only ? found(in, at - r->left.size, &r->left)
                           : found(&out, out.size - r->left.size, &r->left);
    if (left && found(in, at, &r->phi) && found(in, at + r->phi.size, &r->right)) {
      append(&out, r->psi.labels, r->psi.size);
      at += r->phi.size;
    } else {
      append(&out, &in->labels[at++], 1);
    }
  }
  return out;
}

static text simulate(const rule *r, const text *in) {
  if (r->direction != WF_CDREWRITE_RTL)
    return rewrite_left_to_right(r, in, r->direction == WF_CDREWRITE_SIM);
  rule mirrored = {reversed(r->phi), reversed(r->psi), reversed(r->right), reversed(r->left), 0};
  text from = reversed(*in);
  return reversed(rewrite_left_to_right(&mirrored, &from, false));
}

static wf_fst *fst_of(const text *in, const text *out) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  int longest = in->size > out->size ? in->size : out->size;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, (uint64_t)longest + 1, NULL, &err));
  for (int i = 0; i < longest; i++)
    assert_ok(wf_builder_add_arc(builder, (uint32_t)i,
                                 (wf_arc){.nextstate = (uint32_t)i + 1,
                                          .ilabel = i < in->size ? in->labels[i] : 0,
                                          .olabel = i < out->size ? out->labels[i] : 0},
                                 &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, (uint32_t)longest, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static wf_fst *all_strings(void) {
  return test_fst_of(WF_TROPICAL, "0 0 1 1;0 0 2 2;0 0 3 3;0 0 4 4;0");
}

/* Each string has one path, whose output is `want`. */
static void expect_output(const wf_fst *compiled, const text *in, const text *want) {
  wf_error err = {0};
  wf_fst *source = fst_of(in, in), *got, *output, *target = fst_of(want, want), *both;
  assert_ok(wf_compose(source, compiled, NULL, &got, &err));
  wf_project_options project;
  wf_project_options_init(&project);
  project.project_type = WF_PROJECT_OUTPUT;
  assert_ok(wf_project(got, &project, &output, &err));
  assert_ok(wf_compose(output, target, NULL, &both, &err));
  test_relation all = test_enumerate(got, 60, 100);
  assert_int_equal(all.size, 1);
  assert_true(wf_fst_get_view(both).start >= 0);
  test_relation_free(&all);
  wf_fst *each[] = {source, got, output, target, both};
  for (size_t i = 0; i < 5; i++) wf_fst_free(each[i]);
}

static void test_rules(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {11};
  wf_fst *sigma_star = all_strings();
  uint64_t num_rewritten = 0;
  for (int round = 0; round < 120; round++) {
    rule r = {random_text(&rng, 1, 2), random_text(&rng, 0, 2), random_text(&rng, 0, 2),
              random_text(&rng, 0, 2), round % 3};
    INIT(cdrewrite, options);
    options.direction = r.direction;
    wf_fst *tau = fst_of(&r.phi, &r.psi), *left = fst_of(&r.left, &r.left),
           *right = fst_of(&r.right, &r.right), *compiled;
    assert_ok(wf_cdrewrite(tau, left, right, sigma_star, &options, &compiled, &err));
    for (int size = 0; size <= LONGEST; size++) {
      int letters = size < LONGEST ? ALL_LETTERS : LETTERS, count = 1;
      for (int i = 0; i < size; i++) count *= letters;
      for (int number = 0; number < count; number++) {
        text in = {.size = size};
        for (int i = 0, rest = number; i < size; i++, rest /= letters)
          in.labels[i] = 1 + rest % letters;
        text want = simulate(&r, &in);
        num_rewritten += want.size != in.size || !found(&want, 0, &in);
        expect_output(compiled, &in, &want);
      }
    }
    wf_fst *each[] = {tau, left, right, compiled};
    for (size_t i = 0; i < 4; i++) wf_fst_free(each[i]);
  }
  assert_true(num_rewritten > 300);
  wf_fst_free(sigma_star);
}

/* At the ends of strings, with labels of the caller's choice; optional rules have both outputs. */
static void test_ends(void **state) {
  (void)state;
  wf_error err = {0};
  INIT(cdrewrite, options);
  options.begin_label = 8;
  options.end_label = 9;
  wf_fst *sigma_star = all_strings(), *tau = test_fst_of(WF_TROPICAL, "0 1 1 2;1"),
         *begin = test_fst_of(WF_TROPICAL, "0 1 8 8;1"),
         *end = test_fst_of(WF_TROPICAL, "0 1 9 9;1"), *any = test_fst_of(WF_TROPICAL, "0"),
         *compiled;
  assert_ok(wf_cdrewrite(tau, begin, any, sigma_star, &options, &compiled, &err));
  expect_output(compiled, &(text){3, {1, 1, 1}}, &(text){3, {2, 1, 1}});
  wf_fst_free(compiled);
  assert_ok(wf_cdrewrite(tau, any, end, sigma_star, &options, &compiled, &err));
  expect_output(compiled, &(text){3, {1, 1, 1}}, &(text){3, {1, 1, 2}});
  wf_fst_free(compiled);
  options.mandatory = false;
  assert_ok(wf_cdrewrite(tau, begin, any, sigma_star, &options, &compiled, &err));
  wf_fst *source = test_fst_of(WF_TROPICAL, "0 1 1 1;1"), *got;
  assert_ok(wf_compose(source, compiled, NULL, &got, &err));
  test_relation all = test_enumerate(got, 10, 100);
  assert_int_equal(all.size, 2);
  test_relation_free(&all);
  wf_fst *each[] = {sigma_star, tau, begin, end, any, compiled, source, got};
  for (size_t i = 0; i < 8; i++) wf_fst_free(each[i]);
}

static void expect_error(wf_status want, const char *message, const wf_fst *tau, const wf_fst *left,
                         const wf_fst *sigma_star, int32_t end_label) {
  wf_error err = {0};
  wf_fst *out;
  INIT(cdrewrite, options);
  options.end_label = end_label;
  assert_int_equal(wf_cdrewrite(tau, left, left, sigma_star, &options, &out, &err), want);
  assert_null(out);
  assert_non_null(strstr(err.message, message));
}

static void test_errors(void **state) {
  (void)state;
  wf_fst *sigma_star = all_strings(), *tau = test_fst_of(WF_TROPICAL, "0 1 1 2;1"),
         *any = test_fst_of(WF_TROPICAL, "0"), *weighted = test_fst_of(WF_TROPICAL, "0 0 1 1 1;0"),
         *log_fst = test_fst_of(WF_LOG, "0 1 1 2;1"),
         *large = test_fst_of(WF_TROPICAL, "0 1 2147483646 1;1");
  expect_error(WF_ERR_ARGUMENT, "left must be an acceptor", tau, tau, sigma_star, 9);
  expect_error(WF_ERR_ARGUMENT, "its arcs have costs", tau, any, weighted, 9);
  expect_error(WF_ERR_ARGUMENT, "are both 1114112", tau, any, sigma_star, 1114112);
  expect_error(WF_ERR_UNSUPPORTED, "tau: rules need the tropical", log_fst, any, sigma_star, 9);
  expect_error(WF_ERR_LIMIT, "label 2147483646", large, any, sigma_star, 9);
  wf_fst *each[] = {sigma_star, tau, any, weighted, log_fst, large};
  for (size_t i = 0; i < 6; i++) wf_fst_free(each[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rules),
      cmocka_unit_test(test_ends),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
