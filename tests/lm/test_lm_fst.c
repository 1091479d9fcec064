/* test_lm_fst.c - grammar acceptors of language models. Back-off by epsilon is compared with the
 * minimum over all choices. Back-off by failure arcs is compared with the exact model, by a walk
 * over the arcs and by composition. */
#include "lm_model.h"

/* The least cost of the sentence end words[at ..] after a history, where every back-off is
 * optional. log10, negated. */
static double best(const model *m, const int *history, int size, const int *words, int left) {
  double bow = 0, least = INFINITY;
  for (int first = size > m->order - 1 ? size - (m->order - 1) : 0; first <= size; first++) {
    int next[MAX_N + 1];
    memcpy(next, history + first, (size_t)(size - first) * sizeof *history);
    next[size - first] = left > 0 ? words[0] : EOS;
    const struct gram *gram = find(m, next, size - first + 1);
    if (gram != NULL) {
      double rest = left > 0 ? best(m, next, size - first + 1, words + 1, left - 1) : 0;
      if (bow - gram->p + rest < least) least = bow - gram->p + rest;
    }
    const struct gram *context = first < size ? find(m, history + first, size - first) : NULL;
    if (context != NULL) bow -= context->bow;
  }
  return least;
}

static bool relax(double *cost, double value) {
  if (!(value < *cost - 1e-12)) return false;
  *cost = value;
  return true;
}

/* Cost of the acceptor's best path for the words, where back-off arcs (label `backoff`) are
 * optional. */
static double best_path(const wf_fst *fst, const int32_t *labels, int size, int32_t backoff) {
  wf_fst_view view = wf_fst_get_view(fst);
  double *now = malloc(view.num_states * sizeof *now),
         *then = malloc(view.num_states * sizeof *then), least = INFINITY;
  for (uint64_t s = 0; s < view.num_states; s++) now[s] = (int64_t)s == view.start ? 0 : INFINITY;
  for (int at = 0;; at++) {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint64_t s = 0; s < view.num_states; s++)
        for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++)
          if (view.arcs[a].ilabel == backoff)
            changed |= relax(&now[view.arcs[a].nextstate], now[s] + view.arcs[a].weight);
    }
    if (at == size) break;
    for (uint64_t s = 0; s < view.num_states; s++) then[s] = INFINITY;
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++)
        if (view.arcs[a].ilabel == labels[at])
          relax(&then[view.arcs[a].nextstate], now[s] + view.arcs[a].weight);
    memcpy(now, then, view.num_states * sizeof *now);
  }
  for (uint64_t s = 0; s < view.num_states; s++) relax(&least, now[s] + view.final_cost[s]);
  free(now);
  free(then);
  return least;
}

/* Cost of the path that takes a back-off arc only if the state has no arc with the word. */
static double failure_path(const wf_fst *fst, const int32_t *labels, int size, int32_t backoff) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t state = (uint64_t)view.start;
  double cost = 0;
  for (int at = 0; at < size;) {
    const wf_arc *found = NULL;
    for (int pass = 0; pass < 2 && found == NULL; pass++)
      for (uint64_t a = view.arc_off[state]; a < view.arc_off[state + 1] && found == NULL; a++)
        if (view.arcs[a].ilabel == (pass == 0 ? labels[at] : backoff)) found = &view.arcs[a];
    if (found == NULL) return INFINITY;
    at += found->ilabel == labels[at];
    cost += found->weight;
    state = found->nextstate;
  }
  return cost + view.final_cost[state];
}

static double composed_cost(const int32_t *labels, int size, const wf_fst *grammar, int32_t phi) {
  wf_error err = {0};
  wf_builder *builder;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, (uint64_t)size + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, (uint32_t)size, 0, &err));
  for (int i = 0; i < size; i++)
    assert_ok(wf_builder_add_arc(
        builder, (uint32_t)i,
        (wf_arc){.nextstate = (uint32_t)i + 1, .ilabel = labels[i], .olabel = labels[i]}, &err));
  wf_fst *chain, *composed;
  assert_ok(wf_builder_finish(builder, NULL, NULL, &chain, &err));
  wf_builder_free(builder);
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.phi_label = phi;
  assert_ok(wf_compose(chain, grammar, &options, &composed, &err));
  test_relation relation = test_enumerate(composed, 64, 1000);
  assert_true(relation.size <= 1);
  double cost = relation.size == 1 ? relation.pairs[0].cost : INFINITY;
  test_relation_free(&relation);
  wf_fst_free(composed);
  wf_fst_free(chain);
  return cost;
}

static void check_near(const char *what, int round, double got, double want) {
  if (isinf(want) ? !isinf(got) : !(fabs(got - want) < 5e-5))
    fail_msg("round %d, %s: cost %g, expected %g", round, what, got, want);
}

static void test_to_fst(void **unused) {
  (void)unused;
  test_rng rng = {5};
  static model m;
  int useless = 0;
  for (int round = 0; round < 200; round++) {
    wf_error err = {0};
    make_model(&m, &rng, false);
    wf_lm *lm = load_model(&m, &rng);
    int32_t backoff = 50;
    wf_lm_fst_options options;
    wf_lm_fst_options_init(&options);
    wf_fst *epsilon, *plain, *failure;
    assert_ok(wf_lm_to_fst(lm, &options, &epsilon, &err));
    options.backoff_label = backoff;
    options.remove_useless = false;
    assert_ok(wf_lm_to_fst(lm, &options, &plain, &err));
    options.backoff = 1;
    options.remove_useless = round % 4 < 2;
    assert_ok(wf_lm_to_fst(lm, &options, &failure, &err));
    assert_true(wf_fst_properties(epsilon) & WF_PROP_ILABEL_SORTED);
    assert_true(wf_fst_properties(epsilon) & WF_PROP_ACCESSIBLE);
    assert_true(wf_fst_properties(plain) & WF_PROP_IDETERMINISTIC);
    useless += wf_fst_get_view(epsilon).num_states < wf_fst_get_view(plain).num_states;
    for (int i = 0; i < 20; i++) {
      int words[8] = {BOS}, size = random_sentence(&m, &rng, words + 1, 6);
      int32_t labels[8];
      double exact = 0;
      uint32_t state = wf_lm_start(lm);
      for (int at = 0; at < size; at++) {
        labels[at] = label(lm, names[words[at + 1]]);
        exact += wf_lm_step(lm, state, labels[at], &state, NULL);
        if (labels[at] < 0) labels[at] = 40; /* without <unk> in the model, no arc */
      }
      exact += wf_lm_final(lm, state, NULL);
      double free_choice = best(&m, words, 1, words + 1, size) * M_LN10;
      check_near("back-off as epsilon", round, best_path(epsilon, labels, size, 0), free_choice);
      check_near("back-off with a label", round, best_path(plain, labels, size, backoff),
                 free_choice);
      check_near("failure by hand", round, failure_path(failure, labels, size, backoff), exact);
      check_near("failure by composition", round, composed_cost(labels, size, failure, backoff),
                 exact);
    }
    wf_fst_free(epsilon);
    wf_fst_free(plain);
    wf_fst_free(failure);
    wf_lm_free(lm);
  }
  assert_true(useless > 10);
}

static void test_to_fst_options(void **unused) {
  (void)unused;
  wf_error err = {0};
  wf_lm *lm = lm_of(trigram);
  wf_lm_fst_options options;
  wf_lm_fst_options_init(&options);
  wf_fst *fst;
  options.backoff = 1;
  assert_int_equal(wf_lm_to_fst(lm, &options, &fst, &err), WF_ERR_ARGUMENT);
  options.backoff_label = label(lm, "a");
  assert_int_equal(wf_lm_to_fst(lm, &options, &fst, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "'a'"));
  /* <unk> has an arc unless it is dropped; <s> and </s> never have one. */
  for (int drop = 0; drop < 2; drop++) {
    wf_lm_fst_options_init(&options);
    options.drop_unk = drop;
    assert_ok(wf_lm_to_fst(lm, &options, &fst, &err));
    wf_fst_view view = wf_fst_get_view(fst);
    int unks = 0;
    for (uint64_t i = 0; i < view.num_arcs; i++) {
      unks += view.arcs[i].ilabel == label(lm, "<unk>");
      assert_true(view.arcs[i].ilabel != label(lm, "<s>") &&
                  view.arcs[i].ilabel != label(lm, "</s>"));
      assert_int_equal(view.arcs[i].ilabel, view.arcs[i].olabel);
    }
    assert_int_equal(unks, 1 - drop);
    assert_int_equal(view.num_states, 7); /* `c a` can only back off, so it has no state */
    assert_true(wf_fst_isymbols(fst) == wf_lm_words(lm));
    wf_fst_free(fst);
  }
  wf_lm_free(lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_to_fst),
                                     cmocka_unit_test(test_to_fst_options)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
