/* test_disambiguate.c - disambiguation against definitions by brute force: states with a common
 * future, one path for each string; and strings with common beginnings, of which no pair meets. */
#include "fstops/disambiguate.h"
#include "more_ops.h"

static wf_error err;

/* --- common futures ----------------------------------------------------------------------- */

/* Marks pairs[a * n + b] from which one arc each, with one label, leads to a marked pair; or, if
 * not `backward`, those that are reached from a marked pair. */
static void spread(const wf_fst_view *view, uint8_t *pairs, bool backward) {
  uint64_t n = view->num_states;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t a = 0; a < n; a++)
      for (uint64_t b = 0; b < n; b++)
        for (uint64_t i = view->arc_off[a]; i < view->arc_off[a + 1]; i++)
          for (uint64_t j = view->arc_off[b]; j < view->arc_off[b + 1]; j++) {
            if (view->arcs[i].ilabel != view->arcs[j].ilabel) continue;
            uint8_t *here = &pairs[a * n + b];
            uint8_t *there = &pairs[view->arcs[i].nextstate * n + view->arcs[j].nextstate];
            uint8_t *from = backward ? there : here, *to = backward ? here : there;
            if (!*from || *to) continue;
            *to = 1;
            changed = true;
          }
  }
}

/* Trimmed and sorted, as disambiguation prepares it; NULL if nothing is left. */
static wf_fst *prepared(wf_fst *fst) {
  wf_fst *trimmed, *out;
  assert_ok(wf_connect(fst, &trimmed, &err));
  wf_fst_free(fst);
  out = map(trimmed, 1, 0);
  wf_fst_free(trimmed);
  if (wf_fst_get_view(out).start >= 0) return out;
  wf_fst_free(out);
  return NULL;
}

static wf_fst *random_machine(test_rng *rng, bool acyclic) {
  test_fst_shape shape = {.num_states = 2 + test_below(rng, 12),
                          .num_arcs = 4 + test_below(rng, 30),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 4),
                          .num_olabels = 2,
                          .epsilon_share = 0.05f,
                          .final_share = 0.2f,
                          .max_weight = 4,
                          .acceptor = test_below(rng, 2) == 0,
                          .acyclic = acyclic,
                          .semiring = WF_TROPICAL};
  return test_random_fst(rng, &shape);
}

static void test_futures(void **unused) {
  (void)unused;
  test_rng rng = {21};
  uint64_t num_pairs = 0, num_alone = 0, num_reached = 0;
  for (int round = 0; round < 1500; round++) {
    wf_fst *fst = prepared(random_machine(&rng, round % 2));
    if (fst == NULL) continue;
    wf_fst_view view = wf_fst_get_view(fst);
    uint64_t n = view.num_states;
    uint8_t *reached = calloc(n * n, 1), *future = calloc(n * n, 1);
    reached[(uint64_t)view.start * n + (uint64_t)view.start] = 1;
    for (uint64_t a = 0; a < n; a++)
      for (uint64_t b = 0; b < n; b++)
        future[a * n + b] = view.final_cost[a] != INFINITY && view.final_cost[b] != INFINITY;
    spread(&view, reached, false);
    spread(&view, future, true);
    wf__futures futures;
    assert_ok(wf__futures_find(&view, &futures, &err));
    uint32_t *class_of = calloc(n, sizeof *class_of);
    uint8_t *has_others = calloc(n, 1);
    assert_ok(wf__disambiguate_classes(&view, class_of, has_others, &err));
    for (uint64_t a = 0; a < n; a++) {
      uint64_t k = futures.off[a];
      num_alone += !has_others[a];
      for (uint64_t b = 0; b < n; b++) {
        if (a != b) num_reached += reached[a * n + b];
        if (!reached[a * n + b] || !future[a * n + b]) continue;
        assert_true(k < futures.off[a + 1]);
        assert_int_equal(futures.states[k++], b);
        assert_int_equal(class_of[a], class_of[b]);
        if (a != b) num_pairs++;
        if (a != b) assert_true(has_others[a]);
      }
      assert_int_equal(k, futures.off[a + 1]);
    }
    wf__futures_free(&futures);
    free(class_of);
    free(has_others);
    free(reached);
    free(future);
    wf_fst_free(fst);
  }
  assert_true(num_pairs > 1000 && num_reached > num_pairs + 1000 && num_alone > 1000);
}

/* --- results ------------------------------------------------------------------------------ */

/* No string has two paths: the only pairs of states that a string reaches and that have a common
 * future are of equal states, and of the arcs of one label from a state, each leads to a future of
 * its own. */
static void assert_unambiguous(const wf_fst *fst) {
  wf_fst *ready = map(fst, 1, 0);
  wf_fst_view view = wf_fst_get_view(ready);
  wf__futures futures;
  assert_int_equal(view.num_arcs, wf_fst_get_view(fst).num_arcs);
  assert_ok(wf__futures_find(&view, &futures, &err));
  assert_int_equal(futures.off[view.num_states], view.num_states);
  wf__futures_free(&futures);
  wf_fst_free(ready);
}

static bool output_of_input(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  arc->olabel = arc->ilabel == 2 ? 0 : arc->ilabel + 4;
  return true;
}

static void test_cycles(void **unused) {
  (void)unused;
  test_rng rng = {22};
  wf_disambiguate_options o;
  wf_disambiguate_options_init(&o);
  o.max_states = 500;
  int num_done = 0;
  for (int round = 0; round < 600; round++) {
    wf_fst *fst = random_machine(&rng, round % 3 == 0), *got;
    fst = test_changed_fst(fst, &rng, output_of_input);
    wf_status status = wf_disambiguate(fst, &o, &got, &err);
    assert_true(status == WF_OK || status == WF_ERR_LIMIT);
    if (status == WF_OK && wf_fst_get_view(got).start >= 0) {
      num_done++;
      assert_unambiguous(got);
      test_assert_same_strings(fst, got, true, 1, 1e-3);
    }
    if (status == WF_OK) wf_fst_free(got);
    wf_fst_free(fst);
  }
  assert_true(num_done > 200);
}

/* --- strings that begin alike ------------------------------------------------------------- */

enum { SHARED = 3, DIGITS = 5, BASE = 10 };

/* `count` paths from the start: SHARED labels that all have, then the digits of a number. With
 * `words`, the first arc writes one; numbers are n / repeat. */
static wf_fst *paths_of_numbers(uint32_t count, uint32_t repeat, bool words) {
  wf_builder *builder;
  wf_fst *fst;
  uint32_t at;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, &at, &err));
  assert_ok(wf_builder_set_start(builder, at, &err));
  for (uint32_t n = 0; n < count; n++) {
    uint32_t from = 0, rest = n / repeat;
    for (int k = 0; k < SHARED + DIGITS; k++) {
      int32_t label = 100 + k, output;
      if (k >= SHARED) {
        label = 1 + (int32_t)(rest % BASE);
        rest /= BASE;
      }
      output = !words ? label : k == 0 ? 1000 + (int32_t)((n / repeat) * 7919 % count) : 0;
      assert_ok(wf_builder_add_states(builder, 1, &at, &err));
      wf_arc arc = {at, k == 0 ? (float)(n % repeat) : 0, label, output};
      assert_ok(wf_builder_add_arc(builder, from, arc, &err));
      from = at;
    }
    assert_ok(wf_builder_set_final(builder, from, 0, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* Fails unless two acceptors have the same strings with the same costs. Frees `got`. */
static void expect_equivalent(const wf_fst *want, wf_fst *got) {
  wf_fst *a, *b;
  bool same;
  assert_ok(wf_determinize(want, NULL, &a, &err));
  assert_ok(wf_determinize(got, NULL, &b, &err));
  assert_ok(wf_equivalent(a, b, 1e-4f, &same, &err));
  assert_true(same);
  wf_fst_free(a);
  wf_fst_free(b);
  wf_fst_free(got);
}

/* With work for each pair of arcs from the start, this would take hours: 5 * 10^9 pairs. */
static void test_many_arcs_of_a_label(void **unused) {
  (void)unused;
  for (int words = 0; words < 2; words++) {
    wf_fst *fst = paths_of_numbers(100000, 1, words), *got;
    assert_ok(wf_disambiguate(fst, NULL, &got, &err));
    assert_int_equal(wf_fst_get_view(got).num_states, wf_fst_get_view(fst).num_states);
    assert_int_equal(wf_fst_get_view(got).num_arcs, wf_fst_get_view(fst).num_arcs);
    assert_unambiguous(got);
    if (words)
      wf_fst_free(got);
    else
      expect_equivalent(fst, got);
    wf_fst_free(fst);
  }
}

/* Three paths for each number, with three costs: one stays, with the lowest. */
static void test_repeated_strings(void **unused) {
  (void)unused;
  for (int words = 0; words < 2; words++) {
    wf_fst *fst = paths_of_numbers(30000, 3, words), *once = paths_of_numbers(10000, 1, false);
    wf_fst *got;
    assert_ok(wf_disambiguate(fst, NULL, &got, &err));
    assert_unambiguous(got);
    assert_int_equal(wf_fst_get_view(got).num_arcs, wf_fst_get_view(once).num_arcs);
    if (words)
      wf_fst_free(got);
    else
      expect_equivalent(once, got);
    wf_fst_free(once);
    wf_fst_free(fst);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_futures), cmocka_unit_test(test_cycles),
                                     cmocka_unit_test(test_many_arcs_of_a_label),
                                     cmocka_unit_test(test_repeated_strings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
