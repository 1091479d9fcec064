/* test_lattice_results.c - what wf_decode makes of determinized lattices equals what separate calls
 * make of them, and raw lattices are kept or not. */
#include "decode_tasks.h"
#include "lattice/lattice_determinize.h"
#include "lattice_paths.h"

enum { COUNT = 4 };

struct totals {
  uint64_t words, confident, sausages, paths, dropped, shared;
};

static bool same_mbr(const wf_mbr_result *a, const wf_mbr_result *b) {
  if (a->num_words != b->num_words || a->num_bins != b->num_bins || a->risk != b->risk ||
      a->num_rounds != b->num_rounds ||
      memcmp(a->confidences, b->confidences, a->num_words * sizeof *a->confidences) != 0 ||
      memcmp(a->words, b->words, a->num_words * sizeof *a->words) != 0 ||
      memcmp(a->bin_off, b->bin_off, (a->num_bins + 1) * sizeof *a->bin_off) != 0)
    return false;
  for (uint64_t k = 0; k < a->bin_off[a->num_bins]; k++) {
    const wf_sausage_word *x = &a->bin_words[k], *y = &b->bin_words[k];
    if (x->label != y->label || x->posterior != y->posterior || x->start_frame != y->start_frame ||
        x->end_frame != y->end_frame)
      return false;
  }
  return true;
}

static bool same_nbest(const wf_nbest *a, const wf_nbest *b) {
  if (wf_nbest_count(a) != wf_nbest_count(b)) return false;
  for (size_t i = 0; i < wf_nbest_count(a); i++) {
    const wf_lattice_path x = wf_nbest_at(a, i), y = wf_nbest_at(b, i);
    if (x.num_words != y.num_words || x.num_labels != y.num_labels ||
        x.graph_cost != y.graph_cost || x.acoustic_cost != y.acoustic_cost ||
        memcmp(x.words, y.words, x.num_words * sizeof *x.words) != 0 ||
        memcmp(x.alignment, y.alignment, x.num_labels * sizeof *x.alignment) != 0)
      return false;
  }
  return true;
}

/* Checks one result against separate calls with its determinized lattice. */
static void check_result(const wf_result *result, const wf_lattice_results_options *o, float scale,
                         struct totals *t) {
  wf_error err = {0};
  const wf_lattice_results *made = result->lattice_results;
  const wf_compact_lattice *lattice = result->determinized->lattice;
  assert_true(result->determinized->beam == 2);
  wf_mbr_options options;
  wf_mbr_result *mbr, *confidences;
  wf_nbest *nbest;
  int32_t *labels = malloc((result->num_words + 1) * sizeof *labels);
  if (!o->confidences && !o->mbr && o->nbest == 0) {
    assert_null(made);
    free(labels);
    return;
  }
  assert_non_null(made);
  for (size_t i = 0; i < result->num_words; i++) labels[i] = result->words[i].label;
  wf_mbr_options_init(&options);
  options.scale = scale;
  options.complete_beam = result->determinized->beam;
  const wf_status status =
      wf_compact_lattice_mbr(lattice, NULL, 0, &options, &mbr, &err); /* no path: an error */
  options.decode = false;
  assert_int_equal(
      wf_compact_lattice_mbr(lattice, labels, result->num_words, &options, &confidences, &err),
      status);
  assert_ok(wf_compact_lattice_nbest(lattice, (size_t)o->nbest + 1, &nbest, &err));
  wf_nbest_free(nbest);
  assert_int_equal(made->status, o->confidences || o->mbr ? status : WF_OK);
  assert_int_equal(made->confidences != NULL, status == WF_OK && o->confidences);
  assert_int_equal(made->mbr != NULL, status == WF_OK && o->mbr);
  assert_int_equal(made->nbest != NULL, o->nbest > 0);
  if (made->confidences != NULL) {
    assert_memory_equal(made->confidences, confidences->confidences,
                        result->num_words * sizeof(float));
    t->words += result->num_words;
    for (size_t i = 0; i < result->num_words; i++) t->confident += made->confidences[i] > 0.8f;
  }
  if (made->mbr != NULL) {
    assert_true(same_mbr(made->mbr, mbr));
    t->sausages += mbr->bin_off[mbr->num_bins];
  }
  t->shared += made->mbr != NULL && made->confidences != NULL;
  if (made->nbest != NULL) {
    assert_ok(wf_compact_lattice_nbest(lattice, (size_t)o->nbest, &nbest, &err));
    assert_true(same_nbest(made->nbest, nbest));
    t->paths += wf_nbest_count(nbest);
    wf_nbest_free(nbest);
  }
  if (status == WF_OK) {
    wf_mbr_result_free(mbr);
    wf_mbr_result_free(confidences);
  }
  free(labels);
}

static void test_results_equal_separate_calls(void **state) {
  (void)state;
  wf_error err = {0};
  struct totals totals = {0};
  wf_lattice_determinize_options determinizing;
  wf_lattice_results_options o;
  wf_lattice_determinize_options_init(&determinizing);
  const uint64_t seeds = test_seeds(60);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    struct decode_task task = test_random_task(seed + 530);
    wf_scores batch[COUNT];
    float *data[COUNT];
    wf_result *with[COUNT], *without[COUNT];
    wf_decoder *decoder;
    test_random_batch(&task, batch, data, COUNT, seed, 15);
    task.options.num_threads = 1 + (int)(seed % 3);
    task.options.lattice_beam = 2;
    determinizing.beam = seed % 2 == 0 ? 2 : 5; /* the raw lattice's beam is the narrower */
    wf_lattice_results_options_init(&o);
    o.keep_raw = seed % 2;
    o.confidences = seed / 2 % 2;
    o.mbr = seed / 4 % 2;
    o.nbest = seed % 5 == 0 ? 0 : (int32_t)(seed % 7);
    o.confidence_scale = seed % 3 == 0 ? 0 : (float)(seed % 4 + 1) / 4;
    const float scale = o.confidence_scale > 0 ? o.confidence_scale
                                               : wf_confidence_scale(task.options.acoustic_scale);
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(test_decode(decoder, batch, COUNT, NULL, without, &err));
    assert_int_equal(wf_decoder_set_lattice_results(decoder, &o, &err), WF_ERR_ARGUMENT);
    assert_ok(wf_decoder_set_determinization(decoder, &determinizing, &err));
    assert_ok(wf_decoder_set_lattice_results(decoder, &o, &err));
    for (int turn = 0; turn < 2; turn++) { /* again, with the memory of the first turn */
      assert_ok(test_decode(decoder, batch, COUNT, NULL, with, &err));
      for (int i = 0; i < COUNT; i++) {
        const bool has = without[i]->lattice != NULL;
        assert_int_equal(with[i]->lattice != NULL, has && o.keep_raw);
        assert_int_equal(with[i]->determinized != NULL, has);
        if (!has) continue;
        wf_determinized alone;
        assert_ok(wf_lattice_determinize(without[i]->lattice, NULL, &determinizing, &alone, &err));
        assert_true(test_same_compact(alone.lattice, with[i]->determinized->lattice));
        wf_compact_lattice_free(alone.lattice);
        check_result(with[i], &o, scale, &totals);
        totals.dropped += !o.keep_raw;
      }
      test_free_results(with, COUNT);
    }
    assert_ok(wf_decoder_set_determinization(decoder, NULL, &err));
    assert_ok(test_decode(decoder, batch, COUNT, NULL, with, &err));
    for (int i = 0; i < COUNT; i++)
      assert_true(with[i]->determinized == NULL && with[i]->lattice_results == NULL &&
                  (with[i]->lattice != NULL) == (without[i]->lattice != NULL));
    test_free_results(with, COUNT);
    test_free_results(without, COUNT);
    wf_decoder_free(decoder);
    for (int i = 0; i < COUNT; i++) free(data[i]);
    test_free_task(&task);
  }
  assert_true((totals.confident < totals.words || seeds < 8) && test_many(totals.words, 120, 60) &&
              test_many(totals.confident, 8, 60) && test_many(totals.sausages, 300, 60));
  assert_true(test_many(totals.paths, 120, 60) && test_many(totals.dropped, 60, 60) &&
              test_many(totals.shared, 30, 60));
}

/* The default falls with the root of the acoustic scale, and never makes posteriors sharper. */
static void test_default_scale(void **state) {
  (void)state;
  assert_true(wf_confidence_scale(1) == 0.24f && wf_confidence_scale(4) == 0.12f);
  assert_true(wf_confidence_scale(0) == 1 && wf_confidence_scale(0.01f) == 1);
  test_assert_close((double)wf_confidence_scale(0.25f), 0.48, 1e-6);
}

/* Tokens of which every second begins a word. */
static wf_word_aligner *token_aligner(int num_tokens) {
  wf_error err = {0};
  wf_symbols *table;
  wf_word_aligner *aligner;
  assert_ok(wf_symbols_create("tokens", &table, &err));
  assert_ok(wf_symbols_add(table, "<blk>", 0, NULL, &err));
  for (int i = 1; i < num_tokens; i++) {
    char text[16];
    snprintf(text, sizeof text, "%s%d", i % 2 == 0 ? "\xE2\x96\x81" : "", i);
    assert_ok(wf_symbols_add(table, text, i, NULL, &err));
  }
  assert_ok(wf_word_aligner_from_tokens(table, NULL, &aligner, &err));
  wf_symbols_free(table);
  return aligner;
}

/* Results with the words of the graph's aligner, from lattices of any size in turn with the same
 * memory, equal what separate calls make of each. */
static void test_aligned_results_equal_separate_calls(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {91};
  wf_word_aligner *aligner = token_aligner(7);
  wf__result_tables *tables;
  wf_lattice_results_options o;
  uint64_t num_bins = 0, num_words = 0, num_paths = 0, num_larger = 0;
  wf_lattice_results_options_init(&o);
  o.confidences = o.mbr = true;
  o.nbest = 3;
  assert_ok(wf__result_tables_create(&tables, &err));
  for (int i = 0; i < 600; i++) {
    test_lattice_shape shape = {.num_frames = 1 + (int)test_below(&rng, i % 10 == 0 ? 12 : 5),
                                .num_words = 4,
                                .num_labels = 7,
                                .epsilon_share = 0.3f,
                                .eighths = 4};
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, i % 3 == 0), *aligned;
    wf_word words[2] = {{1, 0, 1}, {2, 1, 2}};
    const int32_t labels[2] = {1, 2};
    wf_lattice_results *made;
    wf_mbr_result *mbr, *confidences;
    wf_nbest *nbest;
    wf_mbr_options options;
    o.confidence_scale = i % 4 < 2 ? 1 : 0.25f;
    wf_determinized determinized = {.lattice = lattice, .beam = (float)(i % 5)};
    if (i % 2 == 0) {
      assert_ok(wf_compact_lattice_determinize(lattice, NULL, &determinized, &err));
      wf_compact_lattice_free(lattice);
      lattice = determinized.lattice;
    }
    assert_ok(wf__lattice_results_make(tables, &determinized, aligner, words, 2, &o, &made, &err));
    assert_ok(wf_compact_lattice_align(lattice, aligner, NULL, &aligned, NULL, &err));
    num_larger += wf_compact_lattice_get_view(aligned).num_arcs >
                  wf_compact_lattice_get_view(lattice).num_arcs;
    wf_mbr_options_init(&options);
    options.scale = o.confidence_scale;
    options.complete_beam = determinized.beam;
    if (wf_compact_lattice_mbr(aligned, NULL, 0, &options, &mbr, &err) == WF_OK) {
      assert_true(same_mbr(made->mbr, mbr));
      num_bins += mbr->num_bins;
      wf_mbr_result_free(mbr);
    } else {
      assert_null(made->mbr);
    }
    options.decode = false;
    if (wf_compact_lattice_mbr(lattice, labels, 2, &options, &confidences, &err) == WF_OK) {
      assert_memory_equal(made->confidences, confidences->confidences, 2 * sizeof(float));
      num_words += made->confidences[0] > 0;
      wf_mbr_result_free(confidences);
    } else {
      assert_null(made->confidences);
    }
    if (wf_compact_lattice_nbest(lattice, 3, &nbest, &err) == WF_OK) {
      assert_true(same_nbest(made->nbest, nbest));
      num_paths += wf_nbest_count(nbest);
      wf_nbest_free(nbest);
    } else {
      assert_null(made->nbest);
    }
    wf__lattice_results_free(made);
    wf_compact_lattice_free(aligned);
    wf_compact_lattice_free(lattice);
  }
  assert_true(num_bins > 1000 && num_words > 100 && num_paths > 100 && num_larger > 50);
  wf__result_tables_free(tables);
  wf_word_aligner_free(aligner);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default_scale),
      cmocka_unit_test(test_results_equal_separate_calls),
      cmocka_unit_test(test_aligned_results_equal_separate_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
