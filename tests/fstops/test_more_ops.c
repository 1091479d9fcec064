/* test_more_ops.c - operations of warpfst_ops.h on single arcs and whole fsts, compared with path
 * enumeration and with their definitions: map, reweight, factor_weight, condense, isomorphic; fsts'
 * information and archives. tests/cli/test_more_ops.sh compares them with OpenFst's tools. */
#include "more_ops.h"

/* --- map, reweight, condense ------------------------------------------------------------- */

static double mapped_cost(const char *type, double cost, double value, wf_semiring semiring) {
  if (cost == INFINITY) return cost;
  if (strcmp(type, "invert") == 0) return -cost;
  if (strcmp(type, "plus") == 0) return test_plus(semiring, cost, value);
  if (strcmp(type, "times") == 0) return cost + value;
  if (strcmp(type, "power") == 0) return cost * value;
  if (strcmp(type, "quantize") == 0) return floor(cost / 0.5 + 0.5) * 0.5;
  return strcmp(type, "rmweight") == 0 ? 0 : cost;
}

static void test_map_of_each_arc(void **state) {
  (void)state;
  static const char *const types[] = {
      "identity", "arc_sum",  "arc_unique", "input_epsilon", "invert", "output_epsilon", "plus",
      "power",    "quantize", "rmweight",   "superfinal",    "times",  "to_log",         "to_std"};
  test_rng rng = {1};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, round % 2, 0.2f);
    int32_t type = (int32_t)test_below(&rng, 14);
    const char *name = types[type];
    float value = (float)test_below(&rng, 9) / 4;
    wf_fst *got = map(fst, type, value);
    wf_fst_view a = wf_fst_get_view(fst), b = wf_fst_get_view(got);
    bool merges = strcmp(name, "arc_sum") == 0 || strcmp(name, "arc_unique") == 0,
         superfinal = strcmp(name, "superfinal") == 0;
    assert_int_equal(b.semiring, strcmp(name, "to_log") == 0   ? WF_LOG
                                 : strcmp(name, "to_std") == 0 ? WF_TROPICAL
                                                               : a.semiring);
    for (uint64_t i = 0; i < a.num_arcs && !merges && !superfinal; i++) {
      assert_int_equal(b.arcs[i].ilabel, strcmp(name, "input_epsilon") == 0 ? 0 : a.arcs[i].ilabel);
      assert_int_equal(b.arcs[i].olabel,
                       strcmp(name, "output_epsilon") == 0 ? 0 : a.arcs[i].olabel);
      test_assert_close((double)b.arcs[i].weight,
                        mapped_cost(name, (double)a.arcs[i].weight, (double)value, a.semiring),
                        1e-5);
    }
    for (uint64_t s = 0; s < a.num_states && !superfinal; s++) {
      double want = mapped_cost(name, (double)a.final_cost[s], (double)value, a.semiring);
      if (want == INFINITY)
        assert_true(b.final_cost[s] == INFINITY);
      else
        test_assert_close((double)b.final_cost[s], want, 1e-5);
    }
    if (superfinal) {
      assert_int_equal(b.num_states, a.num_states + 1);
      for (uint64_t s = 0; s < a.num_states; s++) assert_true(b.final_cost[s] == INFINITY);
    }
    if (merges) /* no two arcs that are equal in labels and target (and cost) */
      for (uint64_t s = 0; s < b.num_states; s++)
        for (uint64_t i = b.arc_off[s]; i + 1 < b.arc_off[s + 1]; i++)
          assert_false(b.arcs[i].ilabel == b.arcs[i + 1].ilabel &&
                       b.arcs[i].olabel == b.arcs[i + 1].olabel &&
                       b.arcs[i].nextstate == b.arcs[i + 1].nextstate &&
                       (strcmp(name, "arc_sum") == 0 || b.arcs[i].weight == b.arcs[i + 1].weight));
    if (round % 2 &&
        (superfinal || (merges && (strcmp(name, "arc_sum") == 0 || a.semiring == WF_TROPICAL))))
      expect_same_paths(fst, got);
    else
      wf_fst_free(got);
    wf_fst_free(fst);
  }
}

static void test_reweight(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {2};
  for (int round = 0; round < 200; round++) {
    wf_fst *fst = random_fst(&rng, false, true, 0.2f), *got;
    float potentials[8];
    INIT(reweight, o);
    o.to_final = round % 4 > 1;
    for (int s = 0; s < 8; s++) potentials[s] = (float)test_below(&rng, 33) / 8 - 2;
    uint64_t n = wf_fst_get_view(fst).num_states;
    assert_ok(wf_reweight(fst, potentials, n, &o, &got, &err));
    expect_same_paths(fst, got);
    assert_int_equal(wf_reweight(fst, potentials, n + 1, &o, &got, &err), WF_ERR_ARGUMENT);
    potentials[0] = NAN;
    assert_int_equal(wf_reweight(fst, potentials, n, &o, &got, &err), WF_ERR_ARGUMENT);
    wf_fst_free(fst);
  }
}

/* --- factor_weight ----------------------------------------------------------------------- */

struct strings_walk {
  wf_fst_view view;
  wf_label_strings arcs, finals;
  test_relation out;
};

/* Lists the pairs of the paths from a state. `ins` and `outs`: what was read and written so far. */
static void walk_strings(struct strings_walk *w, uint32_t s, const char *ins, const char *outs,
                         double cost) {
  char key[1024], next_ins[256], next_outs[512];
  if (w->view.final_cost[s] < INFINITY) {
    size_t used = (size_t)snprintf(key, sizeof key, "%s: %s", ins, outs);
    for (uint64_t i = w->finals.offsets[s]; i < w->finals.offsets[s + 1]; i++)
      used += (size_t)snprintf(key + used, sizeof key - used, "%d ", w->finals.labels[i]);
    add_pair(&w->out, key, cost + (double)w->view.final_cost[s], w->view.semiring);
  }
  for (uint64_t i = w->view.arc_off[s]; i < w->view.arc_off[s + 1]; i++) {
    const wf_arc *arc = &w->view.arcs[i];
    size_t used = (size_t)snprintf(next_outs, sizeof next_outs, "%s", outs);
    snprintf(next_ins, sizeof next_ins, arc->ilabel != 0 ? "%s%d " : "%s", ins, arc->ilabel);
    if (arc->olabel != 0)
      used += (size_t)snprintf(next_outs + used, sizeof next_outs - used, "%d ", arc->olabel);
    for (uint64_t k = w->arcs.offsets[i]; k < w->arcs.offsets[i + 1]; k++)
      used += (size_t)snprintf(next_outs + used, sizeof next_outs - used, "%d ", w->arcs.labels[k]);
    walk_strings(w, arc->nextstate, next_ins, next_outs, cost + (double)arc->weight);
  }
}

/* Random strings, half of them empty. */
static wf_label_strings random_strings(test_rng *rng, uint64_t *offsets, int32_t *labels,
                                       uint64_t count) {
  offsets[0] = 0;
  for (uint64_t k = 0; k < count; k++) {
    offsets[k + 1] = offsets[k] + (test_below(rng, 2) ? 1 + test_below(rng, 3) : 0);
    for (uint64_t i = offsets[k]; i < offsets[k + 1]; i++)
      labels[i] = 1 + (int32_t)test_below(rng, 3);
  }
  return (wf_label_strings){offsets, labels};
}

static void test_factor_weight(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, round % 4 == 0, true, 0.3f), *got;
    uint64_t offsets[2][20];
    int32_t labels[2][60];
    struct strings_walk w = {.view = wf_fst_get_view(fst)};
    const bool has_arcs = round % 3 != 0, has_finals = round % 5 != 0;
    w.arcs = random_strings(&rng, offsets[0], labels[0], has_arcs ? w.view.num_arcs : 0);
    w.finals = random_strings(&rng, offsets[1], labels[1], has_finals ? w.view.num_states : 0);
    for (int k = 0; k < 20 && !has_arcs; k++) offsets[0][k] = 0;
    for (int k = 0; k < 20 && !has_finals; k++) offsets[1][k] = 0;
    if (w.view.start >= 0) walk_strings(&w, (uint32_t)w.view.start, "", "", 0);
    assert_ok(wf_factor_weight(fst, has_arcs ? &w.arcs : NULL, has_finals ? &w.finals : NULL, NULL,
                               &got, &err));
    const wf_fst_view view = wf_fst_get_view(got);
    for (uint64_t i = 0; i < w.view.num_arcs && w.view.start >= 0; i++) /* costs stay in place */
      assert_true(has_finals || view.arcs[i].weight == w.view.arcs[i].weight);
    expect_relation(&w.out, got);
    wf_fst_free(fst);
  }
}

static void test_factor_weight_in_detail(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 0 0.5;0 1 2 4 0.25;1 0 3 0 1;1 2"), *got;
  const uint64_t arcs[] = {0, 3, 5, 8}, finals[] = {0, 1, 4}, wrong[] = {0, 3, 2, 8};
  int32_t labels[] = {7, 8, 9, 8, 9, 5, 6, 7};
  INIT(factor_weight, o);
  o.final_ilabel = 11;
  const wf_label_strings of_arcs = {arcs, labels}, of_finals = {finals, labels};
  assert_ok(wf_factor_weight(fst, &of_arcs, &of_finals, &o, &got, &err));
  wf_fst *want = test_fst_of(WF_TROPICAL,
                             "0 4 1 7 0.5;0 4 2 4 0.25;1 6 3 5 1;1 8 11 8 2;3 1 0 9;4 3 0 8;5 0 0 "
                             "7;6 5 0 6;7 2 11 8;8 7 11 9;2");
  bool same;
  assert_ok(wf_equal(want, got, 0, &same, &err)); /* equal ends share states */
  assert_true(same);
  wf_fst_free(want);
  wf_fst_free(got);
  const wf_label_strings descending = {wrong, labels};
  assert_int_equal(wf_factor_weight(fst, &descending, NULL, NULL, &got, &err), WF_ERR_ARGUMENT);
  labels[4] = 0;
  assert_int_equal(wf_factor_weight(fst, &of_arcs, NULL, NULL, &got, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "label 0 in a string of arc"));
  assert_null(got);
  wf_fst_free(fst);
}

/* reach[a * n + b]: does a path lead from a to b? */
static bool *reachable(const wf_fst_view *view) {
  uint64_t n = view->num_states;
  bool *reach = calloc(n * n + 1, 1);
  assert_non_null(reach);
  for (uint64_t s = 0; s < n; s++) reach[s * n + s] = true;
  for (uint64_t s = 0; s < n; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      reach[s * n + view->arcs[i].nextstate] = true;
  for (uint64_t via = 0; via < n; via++)
    for (uint64_t a = 0; a < n; a++)
      for (uint64_t b = 0; b < n; b++)
        if (reach[a * n + via] && reach[via * n + b]) reach[a * n + b] = true;
  return reach;
}

static void test_condense_and_info(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  for (int round = 0; round < 300; round++) {
    wf_fst *fst = random_fst(&rng, false, round % 3 == 0, 0.2f), *got;
    wf_fst_view view = wf_fst_get_view(fst);
    uint64_t n = view.num_states, components = 0, kept = 0;
    bool *reach = reachable(&view), cyclic_at_start = false, weighted = false;
    for (uint64_t s = 0; s < n; s++) {
      bool first = true;
      for (uint64_t t = 0; t < s; t++)
        if (reach[s * n + t] && reach[t * n + s]) first = false;
      components += first;
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
        uint32_t to = view.arcs[i].nextstate;
        bool on_cycle = reach[to * n + s];
        kept += !on_cycle;
        weighted = weighted || (on_cycle && view.arcs[i].weight != 0);
        cyclic_at_start = cyclic_at_start || (on_cycle && reach[s * n + (uint64_t)view.start] &&
                                              reach[(uint64_t)view.start * n + s]);
      }
    }
    assert_ok(wf_condense(fst, &got, &err));
    assert_int_equal(wf_fst_get_view(got).num_states, components);
    assert_int_equal(wf_fst_get_view(got).num_arcs, kept);
    assert_true(wf_fst_properties(got) & WF_PROP_TOP_SORTED);
    wf_fst_info info;
    wf_fst_info_init(&info);
    assert_ok(wf_fst_get_info(fst, &info, &err));
    assert_int_equal(info.num_sccs, components);
    assert_int_equal(info.cyclic_at_start, cyclic_at_start);
    assert_int_equal(info.weighted_cycles, weighted);
    if (round % 3 == 0)
      expect_same_paths(fst, got);
    else
      wf_fst_free(got);
    wf_fst_free(fst);
    free(reach);
  }
}

static void test_info_of_known_fsts(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst_info info;
  wf_fst *string = test_fst_of(WF_TROPICAL, "0 1 1 1;1 2 2 2;2"),
         *fork = test_fst_of(WF_TROPICAL, "0 1 1 2;0 1 1 3;0 2 2 2;1;2;3 3 1 1");
  wf_fst_info_init(&info);
  assert_ok(wf_fst_get_info(string, &info, &err));
  assert_true(info.is_string && info.num_components == 1 && info.ilabel_multiplicity == 1);
  assert_ok(wf_fst_get_info(fork, &info, &err));
  assert_false(info.is_string);
  assert_int_equal(info.num_components, 2);
  test_assert_close(info.ilabel_multiplicity, (2 * 2 + 1 + 1) / 4.0, 1e-9);
  test_assert_close(info.olabel_multiplicity, (2 * 2 + 1 + 1) / 4.0, 1e-9);
  wf_fst_free(string);
  wf_fst_free(fork);
}

/* --- isomorphic -------------------------------------------------------------------------- */

/* The fst with states and arcs in another order; `change`: one arc differs. */
static wf_fst *shuffled(test_rng *rng, const wf_fst *fst, bool change) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  wf_fst_view view = wf_fst_get_view(fst);
  uint32_t number[16];
  for (uint32_t s = 0; s < view.num_states; s++) number[s] = s;
  for (uint32_t s = (uint32_t)view.num_states; s-- > 1;) {
    uint32_t other = test_below(rng, s + 1), swap = number[s];
    number[s] = number[other];
    number[other] = swap;
  }
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, number[view.start], &err));
  for (uint64_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, number[s], view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s + 1]; i-- > view.arc_off[s];) {
      wf_arc arc = view.arcs[i];
      arc.nextstate = number[arc.nextstate];
      if (change && i == 0) arc.weight += 1;
      assert_ok(wf_builder_add_arc(builder, number[s], arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static void test_isomorphic(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {12};
  uint64_t num_tested = 0;
  for (int round = 0; round < 400; round++) {
    wf_fst *fst = random_fst(&rng, false, false, 0.2f), *trimmed;
    assert_ok(wf_connect(fst, &trimmed, &err));
    if (wf_fst_get_view(trimmed).num_arcs != 0) {
      wf_fst *same = shuffled(&rng, trimmed, false), *other = shuffled(&rng, trimmed, true);
      bool equal, differs;
      wf_status status = wf_isomorphic(trimmed, same, 0, &equal, &err);
      if (status == WF_OK) {
        assert_true(equal);
        if (wf_isomorphic(trimmed, other, 0, &differs, &err) == WF_OK) {
          assert_false(differs);
          assert_true(err.message[0] != '\0');
        }
        num_tested++;
      } else {
        assert_int_equal(status, WF_ERR_UNSUPPORTED);
      }
      wf_fst_free(same);
      wf_fst_free(other);
    }
    wf_fst_free(trimmed);
    wf_fst_free(fst);
  }
  assert_true(num_tested > 150);
}

/* --- archives ---------------------------------------------------------------------------- */

static const char *write_archive(wf_far_type type, const wf_fst *a, const wf_fst *b) {
  wf_error err = {0};
  wf_far_writer *writer;
  const char *path = test_temp_path("archive.far");
  assert_ok(wf_far_writer_open(path, type, &writer, &err));
  assert_ok(wf_far_writer_put(writer, "a", a, &err));
  assert_ok(wf_far_writer_put(writer, "bcd", b, &err));
  assert_int_equal(wf_far_writer_put(writer, "b", a, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_far_writer_put(writer, "", a, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_far_writer_close(writer, &err));
  return path;
}

/* Reads all fsts; returns the first error, or WF_OK. */
static wf_status read_archive(const char *path, size_t *count) {
  wf_error err = {0};
  wf_far *far;
  const char *key;
  wf_fst *fst = NULL;
  *count = 0;
  wf_status status = wf_far_open(path, &far, &err);
  if (status != WF_OK) return status;
  while ((status = wf_far_next(far, &key, &fst, &err)) == WF_OK && fst != NULL) {
    ++*count;
    wf_fst_free(fst);
  }
  wf_far_free(far);
  return status;
}

static void test_archives(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *a = test_fst_of(WF_TROPICAL, "0 1 1 2 3;1"), *b = test_fst_of(WF_LOG, "0 0 1 2 3;0 1"),
         *got;
  for (int type = 0; type < 2; type++) {
    const char *path = write_archive((wf_far_type)type, a, b), *key;
    wf_far *far;
    bool same;
    size_t count, size;
    assert_ok(wf_far_open(path, &far, &err));
    assert_int_equal(wf_far_get_type(far), type);
    const wf_fst *want[] = {a, b};
    for (int k = 0; k < 2; k++) {
      assert_ok(wf_far_next(far, &key, &got, &err));
      assert_string_equal(key, k == 0 ? "a" : "bcd");
      assert_ok(wf_equal(got, want[k], 0, &same, &err));
      assert_true(same);
      wf_fst_free(got);
    }
    for (int k = 0; k < 2; k++) { /* the end stays the end */
      assert_ok(wf_far_next(far, &key, &got, &err));
      assert_true(key == NULL && got == NULL);
    }
    assert_ok(wf_far_find(far, "a", &got, &err));
    wf_fst_free(got);
    assert_ok(wf_far_find(far, "bcd", &got, &err));
    assert_ok(wf_equal(got, b, 0, &same, &err));
    assert_true(same);
    wf_fst_free(got);
    assert_int_equal(wf_far_find(far, "b", &got, &err), WF_ERR_ARGUMENT);
    assert_null(got);
    assert_int_equal(wf_far_find(far, "z", &got, &err), WF_ERR_ARGUMENT);
    wf_far_free(far);
    char *data = test_read_file(path, &size);
    for (size_t cut = 0; cut < size; cut++) /* cut anywhere: an error */
      assert_int_not_equal(read_archive(test_write_file("cut.far", data, cut), &count), WF_OK);
    for (size_t at = 0; at < size; at++) { /* a changed byte: fsts or an error */
      char old = data[at];
      data[at] = (char)(old ^ 0x81);
      read_archive(test_write_file("changed.far", data, size), &count);
      data[at] = old;
    }
    if (type == WF_FAR_STTABLE) { /* two entries of the index are one fst: it could be thousands */
      memcpy(data + size - 16, data + size - 24, 8);
      assert_int_equal(read_archive(test_write_file("shared.far", data, size), &count),
                       WF_ERR_FORMAT);
      assert_int_equal(count, 1);
    }
    free(data);
  }
  size_t count;
  assert_int_equal(read_archive(test_save_fst(a, "single.fst"), &count), WF_OK);
  assert_int_equal(count, 1);
  wf_far_writer *writer;
  assert_int_equal(wf_far_writer_open("-", WF_FAR_STTABLE, &writer, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_far_writer_open(test_temp_path("none.far"), WF_FAR_STLIST, &writer, &err));
  wf_far_writer_abort(writer);
  wf_far_writer_abort(NULL);
  wf_fst_free(a);
  wf_fst_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_map_of_each_arc),   cmocka_unit_test(test_reweight),
      cmocka_unit_test(test_factor_weight),     cmocka_unit_test(test_factor_weight_in_detail),
      cmocka_unit_test(test_condense_and_info), cmocka_unit_test(test_info_of_known_fsts),
      cmocka_unit_test(test_isomorphic),        cmocka_unit_test(test_archives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
