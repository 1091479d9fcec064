/* test_normal_forms.c - encode, epsnormalize, synchronize, disambiguate, determinize and push,
 * compared with path enumeration and with the definitions of their results. */
#include "more_ops.h"

/* --- encode ------------------------------------------------------------------------------ */

static void test_encode(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {6};
  for (int round = 0; round < 300; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.2f), *encoded, *decoded, *again;
    bool labels = round % 3 != 1, weights = round % 3 != 0, same;
    wf_encoder *encoder, *read;
    assert_ok(wf_encoder_create(wf_fst_get_view(fst).semiring, labels, weights, &encoder, &err));
    assert_ok(wf_encoder_encode(encoder, fst, &encoded, &err));
    wf_fst_view view = wf_fst_get_view(encoded);
    for (uint64_t i = 0; i < view.num_arcs; i++) {
      assert_in_range(view.arcs[i].ilabel, 1, wf_encoder_num_labels(encoder));
      assert_true(!labels || view.arcs[i].ilabel == view.arcs[i].olabel);
      assert_true(!weights || view.arcs[i].weight == 0);
    }
    const char *path = test_temp_path("table");
    assert_ok(wf_encoder_write(encoder, path, &err));
    assert_ok(wf_encoder_read(path, &read, &err));
    assert_int_equal(wf_encoder_num_labels(read), wf_encoder_num_labels(encoder));
    assert_ok(wf_encoder_encode(read, fst, &again, &err)); /* no new labels */
    assert_ok(wf_equal(again, encoded, 0, &same, &err));
    assert_true(same);
    assert_ok(wf_encoder_decode(read, encoded, &decoded, &err));
    if (!weights) {
      assert_ok(wf_equal(decoded, fst, 0, &same, &err));
      assert_true(same);
    }
    expect_same_paths(fst, decoded);
    wf_encoder_free(encoder);
    wf_encoder_free(read);
    wf_fst *each[] = {fst, encoded, again};
    for (size_t i = 0; i < 3; i++) wf_fst_free(each[i]);
  }
}

static void test_encode_errors(void **state) {
  (void)state;
  wf_error err = {0};
  wf_encoder *encoder;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 2 3;1"),
         *unknown = test_fst_of(WF_TROPICAL, "0 1 9 9;1"),
         *uneven = test_fst_of(WF_TROPICAL, "0 1 1 2;1"),
         *costly = test_fst_of(WF_TROPICAL, "0 1 1 1 4;1"),
         *log_fst = test_fst_of(WF_LOG, "0 1 1 1;1"), *out, *encoded;
  assert_int_equal(wf_encoder_create(WF_TROPICAL, false, false, &encoder, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_encoder_create(WF_TROPICAL, true, true, &encoder, &err));
  assert_ok(wf_encoder_encode(encoder, fst, &encoded, &err));
  const wf_fst *bad[] = {unknown, uneven, costly, log_fst};
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(wf_encoder_decode(encoder, bad[i], &out, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_encoder_encode(encoder, log_fst, &out, &err), WF_ERR_ARGUMENT);
  const char *path = test_temp_path("table");
  assert_ok(wf_encoder_write(encoder, path, &err));
  wf_encoder_free(encoder);
  size_t size;
  char *data = test_read_file(path, &size);
  for (size_t cut = 0; cut < size; cut++) { /* a table cut anywhere is refused */
    const char *short_path = test_write_file("short", data, cut);
    assert_int_equal(wf_encoder_read(short_path, &encoder, &err), WF_ERR_FORMAT);
    assert_null(encoder);
  }
  for (size_t at = 0; at < size; at++) { /* a changed byte gives a table or an error */
    char old = data[at];
    data[at] = (char)(old ^ 0x81);
    if (wf_encoder_read(test_write_file("changed", data, size), &encoder, &err) == WF_OK)
      wf_encoder_free(encoder);
    data[at] = old;
  }
  free(data);
  wf_fst *each[] = {fst, unknown, uneven, costly, log_fst, encoded};
  for (size_t i = 0; i < 6; i++) wf_fst_free(each[i]);
}

/* --- normal forms ------------------------------------------------------------------------ */

/* States that the start reaches, in modes: mode m turns to next_mode(m, arc), or fails if that is
 * negative. */
static void check_form(const wf_fst *fst, int (*next_mode)(int mode, const wf_arc *arc)) {
  wf_fst_view view = wf_fst_get_view(fst);
  bool *seen = calloc(view.num_states * 3 + 1, 1);
  assert_non_null(seen);
  if (view.start >= 0) seen[view.start * 3] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t at = 0; at < view.num_states * 3; at++) {
      for (uint64_t i = view.arc_off[at / 3]; seen[at] && i < view.arc_off[at / 3 + 1]; i++) {
        int mode = next_mode((int)(at % 3), &view.arcs[i]);
        if (mode < 0)
          fail_msg("arc %d:%d after mode %d", view.arcs[i].ilabel, view.arcs[i].olabel,
                   (int)(at % 3));
        uint64_t to = view.arcs[i].nextstate * 3 + (uint64_t)mode;
        changed = changed || !seen[to];
        seen[to] = true;
      }
    }
  }
  free(seen);
}

/* 0: input is read; 1: it ended. */
static int input_first(int mode, const wf_arc *arc) {
  return arc->ilabel == 0 ? 1 : mode == 0 ? 0 : -1;
}
/* 0: both sides or none; 1: only input, 2: only output from now on. */
static int in_step(int mode, const wf_arc *arc) {
  int now = arc->ilabel != 0 && arc->olabel == 0 ? 1 : arc->ilabel == 0 && arc->olabel != 0 ? 2 : 0;
  bool none = arc->ilabel == 0 && arc->olabel == 0;
  return mode == 0 || now == mode ? now : none ? mode : -1;
}

static void test_epsnormalize(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {7};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.35f), *got, *inverse;
    INIT(epsnormalize, o);
    o.eps_norm_type = round % 2;
    assert_ok(wf_epsnormalize(fst, &o, &got, &err));
    assert_true(test_is_trimmed(got));
    assert_ok(wf_invert(got, &inverse, &err));
    check_form(round % 2 ? inverse : got, input_first);
    wf_fst_free(inverse);
    expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  wf_fst *waiting =
             test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 0 2 1;1"), /* writes twice what it reads */
      *shrinking = test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 2 0 1;1"), *out;
  assert_int_equal(wf_epsnormalize(waiting, NULL, &out, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_epsnormalize(shrinking, NULL, &out, &err));
  test_assert_same_strings(shrinking, out, false, 3, 1e-4);
  wf_fst_free(out);
  wf_fst_free(waiting);
  wf_fst_free(shrinking);
}

static void test_synchronize(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {8};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.35f), *got;
    assert_ok(wf_synchronize(fst, &got, &err));
    check_form(got, in_step);
    assert_true(test_is_trimmed(got));
    expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  wf_fst *uneven = test_fst_of(WF_TROPICAL, "0 1 1 1 1;1 0 0 2 1;1"),
         *even = test_fst_of(WF_TROPICAL, "0 1 1 0 1;1 0 0 2 1;1 2 3 0;2 1"), *out;
  assert_int_equal(wf_synchronize(uneven, &out, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_synchronize(even, &out, &err));
  test_assert_same_strings(even, out, false, 6, 1e-4);
  wf_fst_free(out);
  wf_fst_free(uneven);
  wf_fst_free(even);
}

/* --- disambiguate, determinize, push ----------------------------------------------------- */

/* Number of successful paths of an acyclic fst. */
static uint64_t num_paths_from(const wf_fst_view *view, uint64_t s) {
  uint64_t sum = view->final_cost[s] != INFINITY;
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    sum += num_paths_from(view, view->arcs[i].nextstate);
  return sum;
}

/* The output is a function of the input. */
static bool function_of_input(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  arc->olabel = arc->ilabel == 2 ? 0 : arc->ilabel + 4;
  return true;
}

static void test_disambiguate(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {9};
  uint64_t num_ambiguous = 0;
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, true, true, 0), *got;
    if (round % 2) fst = test_changed_fst(fst, &rng, function_of_input);
    wf_fst_view view = wf_fst_get_view(fst);
    test_relation strings = test_enumerate(fst, 40, 1000000);
    num_ambiguous += num_paths_from(&view, (uint64_t)view.start) > strings.size;
    assert_ok(wf_disambiguate(fst, NULL, &got, &err));
    view = wf_fst_get_view(got);
    assert_int_equal(view.start < 0 ? 0 : num_paths_from(&view, (uint64_t)view.start),
                     strings.size);
    test_relation_free(&strings);
    expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  assert_true(num_ambiguous > 50);
  /* Cannot be determinized (the two loops have different costs), but is ambiguous only at first. */
  wf_fst *twins =
             test_fst_of(WF_TROPICAL,
                         "0 1 1 1;0 2 1 1;1 1 2 2 1;2 2 2 2 2;1 3 3 3;2 3 4 4;0 3 5 5;0 3 5 5 1;3"),
         *out;
  assert_ok(wf_disambiguate(twins, NULL, &out, &err));
  test_assert_same_strings(twins, out, true, 1, 1e-4);
  assert_int_equal(wf_fst_get_view(out).num_arcs, 7);
  wf_fst_free(out);
  wf_fst_free(twins);
  /* 1 2* 3 has two costs that grow apart: no unambiguous acceptor has a finite number of states. */
  twins = test_fst_of(WF_TROPICAL, "0 1 1 1;0 2 1 1 1;1 1 2 2 2;2 2 2 2 1;1 3 3 3;2 3 3 3;3");
  INIT(disambiguate, o);
  o.max_states = 1000;
  assert_int_equal(wf_disambiguate(twins, &o, &out, &err), WF_ERR_LIMIT);
  wf_fst_free(twins);
}

static void test_determinize_keeps_all_outputs(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {10};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.15f), *got;
    INIT(determinize, o);
    o.det_type = 1;
    o.num_threads = 1 + round % 2;
    assert_ok(wf_determinize(fst, &o, &got, &err));
    wf_fst_view view = wf_fst_get_view(got);
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
        for (uint64_t j = view.arc_off[s]; j < i; j++)
          assert_false(view.arcs[i].ilabel == view.arcs[j].ilabel && view.arcs[i].ilabel != 0);
    expect_same_paths(fst, got);
    o.rmepsilon = true;
    wf_status status = wf_determinize(fst, &o, &got, &err);
    assert_true(status == WF_OK || status == WF_ERR_UNSUPPORTED);
    if (status == WF_OK) expect_same_paths(fst, got);
    wf_fst_free(fst);
  }
  wf_fst *two = test_fst_of(WF_TROPICAL, "0 1 1 2;0 2 1 3 1;1;2"), *got;
  INIT(determinize, o);
  assert_int_equal(wf_determinize(two, &o, &got, &err), WF_ERR_NOT_DETERMINIZABLE);
  o.det_type = 2; /* the best one only */
  assert_ok(wf_determinize(two, &o, &got, &err));
  test_relation best = test_enumerate(got, 9, 100);
  assert_int_equal(best.size, 1);
  assert_string_equal(best.pairs[0].key, "1 : 2 ");
  test_relation_free(&best);
  wf_fst_free(got);
  wf_fst_free(two);
}

/* Number of labels at the beginning (or end) that two texts "1 2 3 " share, in characters. */
static size_t common(const char *a, const char *b, bool suffix) {
  size_t size_a = strlen(a), size_b = strlen(b), shared = 0, best = 0;
  while (shared < size_a && shared < size_b &&
         (suffix ? a[size_a - 1 - shared] == b[size_b - 1 - shared] : a[shared] == b[shared])) {
    shared++;
    char edge = suffix ? (shared < size_a ? a[size_a - 1 - shared] : ' ') : a[shared - 1];
    char other = suffix ? (shared < size_b ? b[size_b - 1 - shared] : ' ') : ' ';
    if (edge == ' ' && other == ' ') best = shared;
  }
  return best;
}

static void test_push_removes_affix(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {11};
  uint64_t num_removed = 0;
  for (int round = 0; round < 600; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.1f), *got;
    bool suffix = round % 2;
    test_relation all = test_enumerate(fst, 40, 1000000), want = {0};
    size_t shared = SIZE_MAX;
    const char *first = all.size != 0 ? strchr(all.pairs[0].key, ':') + 2 : "";
    for (size_t i = 0; i < all.size; i++) {
      size_t here = common(first, strchr(all.pairs[i].key, ':') + 2, suffix);
      shared = here < shared ? here : shared;
    }
    for (size_t i = 0; i < all.size; i++) {
      char key[1024];
      const char *colon = strchr(all.pairs[i].key, ':') + 2;
      size_t kept = strlen(colon) - shared;
      snprintf(key, sizeof key, "%.*s%.*s", (int)(colon - all.pairs[i].key), all.pairs[i].key,
               (int)kept, suffix ? colon : colon + shared);
      add_pair(&want, key, all.pairs[i].cost, WF_TROPICAL);
      num_removed += shared;
    }
    INIT(push, o);
    o.push_weights = false;
    o.push_labels = o.remove_common_affix = true;
    o.to_final = suffix;
    assert_ok(wf_push(fst, &o, &got, &err));
    expect_relation(&want, got);
    test_relation_free(&all);
    o.push_labels = false;
    assert_int_equal(wf_push(fst, &o, &got, &err), WF_ERR_ARGUMENT);
    wf_fst_free(fst);
  }
  assert_true(num_removed > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_encode),
                                     cmocka_unit_test(test_encode_errors),
                                     cmocka_unit_test(test_epsnormalize),
                                     cmocka_unit_test(test_synchronize),
                                     cmocka_unit_test(test_disambiguate),
                                     cmocka_unit_test(test_determinize_keeps_all_outputs),
                                     cmocka_unit_test(test_push_removes_affix)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
