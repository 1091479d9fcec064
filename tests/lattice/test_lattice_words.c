/* test_lattice_words.c - determinization, n-best lists, pruning and scaling of lattices, compared
 * with lists of all paths and with OpenFst. */
#include "decode_tasks.h"
#include "lattice/word_determinizer.h"
#include "lattice_paths.h"
#include "word_paths.h"

static wf_lattice *lattice_of(uint64_t seed, bool exact) {
  test_rng rng = {seed * 131 + 7};
  return random_lattice(&rng, 2 + test_below(&rng, 9), 1 + test_below(&rng, 3),
                        1 + test_below(&rng, 3), exact);
}

/* Checks the guarantees of determinization, given all paths and a beam. `delta` is the allowed
 * difference of a path's costs. */
static void check_determinized(path_list *all, const wf_compact_lattice *lattice, double beam,
                               double delta) {
  path_list best = best_of_each(all), found = list_compact_paths(lattice);
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  double least = least_cost(&best);
  uint8_t *used = calloc(view.num_arcs + 1, 1);
  assert_false(found.full);
  for (size_t i = 0; i < found.size; i++)
    for (uint64_t k = 0;
         k < found.paths[i].num_arcs && cost_of_path(&found.paths[i]) <= least + beam + delta; k++)
      used[found.paths[i].arcs[k]] = 1;
  for (uint64_t i = 0; i < view.num_arcs; i++)
    assert_true(used[i] && view.arcs[i].word != 0); /* every arc is on a path within the beam */
  qsort(found.paths, found.size, sizeof *found.paths, by_words_then_cost);
  for (size_t i = 0; i < found.size; i++) {
    if (i > 0)
      assert_true(compare_words(&found.paths[i - 1], &found.paths[i]) <
                  0); /* one path for each word sequence */
    assert_true(has_path(all, &found.paths[i], delta));
  }
  size_t at = 0;
  for (size_t i = 0; i < best.size; i++) {
    while (at < found.size && compare_words(&found.paths[at], &best.paths[i]) < 0) at++;
    bool there = at < found.size && compare_words(&found.paths[at], &best.paths[i]) == 0;
    double cost = cost_of_path(&best.paths[i]);
    if (cost <= least + beam - delta)
      assert_true(there && fabs(cost_of_path(&found.paths[at]) - cost) <= delta);
    if (there) assert_true(cost_of_path(&found.paths[at]) >= cost - delta);
  }
  assert_true(best.size > 0 || view.num_states == 0);
  free(used);
  free(best.paths);
  free(found.paths);
}

static void test_against_all_paths(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t compared = 0, sequences = 0, empty = 0, several = 0;
  static const float beams[] = {0, 0.5f, 2, 6, 1e30f};
  for (uint64_t seed = 1; seed <= 2500; seed++) {
    bool exact = seed % 3 != 0;
    wf_lattice *lattice = lattice_of(seed, exact);
    path_list all = list_paths(lattice);
    wf_lattice_determinize_options o;
    wf_lattice_determinize_options_init(&o);
    o.beam = beams[seed % 5];
    o.delta = seed % 2 == 0 ? 0 : 0.0009765625f;
    o.minimize = seed % 7 != 0;
    int32_t phones[] = {0, (int32_t)(seed % 5), (int32_t)(seed % 3), 1};
    wf_lattice_phones map = {phones, 1 + seed % 4};
    wf_determinized out;
    if (!all.full) {
      assert_ok(wf_lattice_determinize(lattice, seed % 11 < 5 ? &map : NULL, &o, &out, &err));
      assert_false(out.narrowed);
      assert_true(out.beam == o.beam);
      check_determinized(&all, out.lattice, (double)o.beam,
                         exact && (o.delta == 0 || exact) ? 0
                         : o.delta == 0                   ? 1e-5
                                                          : 0.02);
      wf_compact_lattice_view view = wf_compact_lattice_get_view(out.lattice);
      compared++;
      empty += view.num_states == 0;
      several += all.size > 20;
      sequences += view.num_arcs;
      wf_compact_lattice_free(out.lattice);
    }
    free(all.paths);
    wf_lattice_free(lattice);
  }
  assert_true(compared > 2000 && empty > 20 && several > 500 && sequences > 4000);
}

/* Lattices of the decoder: alignments are the labels that the frames consumed, one label for each
 * frame. */
static void test_lattices_of_the_decoder(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t compared = 0, arcs = 0;
  for (uint64_t seed = 1; seed <= 700; seed++) {
    struct decode_task task = test_random_task(seed);
    task.options.lattice_beam = 3;
    wf_result *result = test_decode_alone(&task);
    path_list all = {0};
    if (result->status == WF_OK && wf_lattice_get_view(result->lattice).num_arcs < 200 &&
        result->num_decoded < MAX_PATH - 2)
      all = list_paths(result->lattice);
    if (all.paths != NULL && !all.full && all.size > 0 && all.size < 1000) {
      wf_lattice_determinize_options o;
      wf_lattice_determinize_options_init(&o);
      o.beam = 3;
      wf_determinized out;
      assert_ok(wf_lattice_determinize(result->lattice, NULL, &o, &out, &err));
      check_determinized(&all, out.lattice, 3, 0.02);
      wf_compact_lattice_view view = wf_compact_lattice_get_view(out.lattice);
      for (uint64_t s = 0; s < view.num_states; s++)
        if (view.finals[s].graph_cost != INFINITY)
          assert_int_equal(view.frames[s] + (int32_t)view.finals[s].num_labels,
                           result->num_decoded);
      wf_nbest *best;
      assert_ok(wf_compact_lattice_nbest(out.lattice, 1, &best, &err));
      wf_lattice_path path = wf_nbest_at(best, 0);
      if (fabs(path.graph_cost + path.acoustic_cost - result->cost) > 1e-2)
        fail_msg("seed %llu: %g, not %g", (unsigned long long)seed,
                 path.graph_cost + path.acoustic_cost, result->cost);
      wf_nbest_free(best);
      compared++;
      arcs += view.num_arcs;
      wf_compact_lattice_free(out.lattice);
    }
    free(all.paths);
    wf_result_free(result);
    test_free_task(&task);
  }
  assert_true(compared > 200 && arcs > 400);
}

/* With too little memory the guarantees hold for the narrower beam that is reported. The best path
 * is always kept. */
static void test_beam_narrowed_by_memory(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t narrowed = 0, partly = 0;
  for (uint64_t seed = 1; seed <= 1200; seed++) {
    wf_lattice *lattice = lattice_of(seed, true);
    path_list all = list_paths(lattice);
    wf__exact_lattice exact, out;
    wf__word_outcome outcome;
    assert_ok(wf__exact_from_lattice(lattice, &exact, &err));
    int64_t width = wf__exact_width(&exact, 5);
    assert_ok(wf__exact_reduce(&exact, width, &err));
    if (!all.full && all.size > 0) {
      assert_ok(wf__determinize_words(&exact, width, 0, 300 + seed % 1500, &out, &outcome, &err));
      double beam = wf__exact_nats(&exact, outcome.width), least = least_cost(&all);
      path_list best = best_of_each(&all);
      size_t expected = 0;
      for (size_t i = 0; i < best.size; i++)
        expected += outcome.width > 0 && cost_of_path(&best.paths[i]) <= least + beam;
      int64_t *backward;
      assert_ok(wf__exact_backward(&out, &backward, &err));
      assert_true(fabs(wf__exact_nats(&out, backward[0]) - least) < 1e-6);
      uint64_t *paths = calloc(out.ends.size, sizeof *paths),
               count = 0; /* paths to each state, to see that there are enough sequences */
      paths[0] = 1;
      for (uint64_t s = 0; s < out.ends.size; s++) {
        if (wf__exact_is_final(&out, s)) count += paths[s];
        for (uint64_t i = out.arc_off.data[s]; i < out.arc_off.data[s + 1]; i++)
          paths[out.arcs.data[i].nextstate] += paths[s];
      }
      assert_true(count >= expected && count > 0);
      assert_int_equal(outcome.narrowed, outcome.width < width);
      narrowed += outcome.narrowed;
      partly += outcome.narrowed && outcome.width > 0;
      free(paths);
      free(backward);
      free(best.paths);
      wf__exact_free(&out);
    }
    wf__exact_free(&exact);
    free(all.paths);
    wf_lattice_free(lattice);
  }
  if (narrowed <= 100 || partly <= 40)
    fail_msg("narrowed %llu, partly %llu", (unsigned long long)narrowed,
             (unsigned long long)partly);
}

static void test_nbest(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t listed = 0, ties = 0;
  for (uint64_t seed = 1; seed <= 1200; seed++) {
    wf_lattice *lattice = lattice_of(seed, true);
    path_list all = list_paths(lattice);
    if (!all.full) {
      path_list best = best_of_each(&all);
      qsort(best.paths, best.size, sizeof *best.paths, by_cost_then_words);
      wf_lattice_determinize_options o;
      wf_lattice_determinize_options_init(&o);
      o.beam = 1e30f;
      wf_determinized out;
      wf_nbest *nbest;
      size_t n = 1 + seed % 40;
      assert_ok(wf_lattice_determinize(lattice, NULL, &o, &out, &err));
      assert_ok(wf_compact_lattice_nbest(out.lattice, n, &nbest, &err));
      assert_int_equal(wf_nbest_count(nbest), best.size < n ? best.size : n);
      for (size_t i = 0; i < wf_nbest_count(nbest); i++) {
        wf_lattice_path path = wf_nbest_at(nbest, i);
        one_path copy = {.num_words = path.num_words,
                         .num_labels = path.num_labels,
                         .graph = path.graph_cost,
                         .acoustic = path.acoustic_cost};
        memcpy(copy.words, path.words, path.num_words * sizeof *path.words);
        memcpy(copy.labels, path.alignment, path.num_labels * sizeof *path.alignment);
        assert_int_equal(compare_words(&copy, &best.paths[i]), 0);
        assert_true(cost_of_path(&copy) == cost_of_path(&best.paths[i]));
        assert_true(has_path(&all, &copy, 0));
        for (size_t w = 0; w < path.num_words; w++)
          assert_true(path.frames[w] >= (w > 0 ? path.frames[w - 1] : 0) &&
                      (size_t)path.frames[w] <= path.num_labels);
        ties += i > 0 && cost_of_path(&best.paths[i]) == cost_of_path(&best.paths[i - 1]);
        listed++;
      }
      wf_nbest_free(nbest);
      wf_compact_lattice_free(out.lattice);
      free(best.paths);
    }
    free(all.paths);
    wf_lattice_free(lattice);
  }
  assert_true(listed > 4000 && ties > 200);
}

static void test_prune_and_best(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t dropped = 0, compared = 0;
  for (uint64_t seed = 1; seed <= 1200; seed++) {
    wf_lattice *lattice = lattice_of(seed, true), *pruned;
    path_list all = list_paths(lattice);
    float beam = (float)test_below(&(test_rng){seed}, 40) / 8;
    wf_lattice_view view = wf_lattice_get_view(lattice);
    assert_ok(wf_lattice_prune(lattice, beam, &pruned, &err));
    path_list left = list_paths(pruned);
    wf_lattice_view after = wf_lattice_get_view(pruned);
    if (!all.full) {
      double least = least_cost(&all);
      uint8_t *within = calloc(view.num_arcs + 1, 1);
      uint64_t expected = 0, ends = 0, ends_after = 0;
      for (size_t i = 0; i < all.size; i++)
        for (uint64_t k = 0;
             k < all.paths[i].num_arcs && cost_of_path(&all.paths[i]) <= least + (double)beam; k++)
          within[all.paths[i].arcs[k]] = 1;
      for (uint64_t i = 0; i < view.num_arcs; i++) expected += within[i];
      assert_int_equal(after.num_arcs, expected);
      for (uint64_t i = 0, k = 0; i < view.num_arcs; i++) { /* in the original order */
        if (!within[i]) continue;
        assert_true(view.arcs[i].ilabel == after.arcs[k].ilabel &&
                    view.arcs[i].olabel == after.arcs[k].olabel &&
                    view.arcs[i].graph_cost == after.arcs[k].graph_cost &&
                    view.arcs[i].acoustic_cost == after.arcs[k].acoustic_cost);
        k++;
      }
      for (size_t i = 0; i < all.size; i++)
        ends += cost_of_path(&all.paths[i]) <= least + (double)beam;
      for (size_t i = 0; i < left.size; i++)
        ends_after += cost_of_path(&left.paths[i]) <= least + (double)beam;
      assert_int_equal(ends, ends_after);
      wf_nbest *best;
      assert_ok(wf_lattice_best_path(lattice, &best, &err));
      assert_int_equal(wf_nbest_count(best), all.size > 0);
      if (all.size > 0) {
        wf_lattice_path path = wf_nbest_at(best, 0);
        assert_true(path.graph_cost + path.acoustic_cost == least);
        one_path copy = {.num_words = path.num_words,
                         .num_labels = path.num_labels,
                         .graph = path.graph_cost,
                         .acoustic = path.acoustic_cost};
        memcpy(copy.words, path.words, path.num_words * sizeof *path.words);
        memcpy(copy.labels, path.alignment, path.num_labels * sizeof *path.alignment);
        assert_true(has_path(&all, &copy, 0));
      }
      wf_nbest_free(best);
      compared++;
      dropped += view.num_arcs > after.num_arcs;
      free(within);
    }
    free(left.paths);
    free(all.paths);
    wf_lattice_free(pruned);
    wf_lattice_free(lattice);
  }
  assert_true(compared > 1000 && dropped > 600);
}

/* Compact lattices: the output of determinization is pruned and determinized again; its best path.
 */
static void test_compact_lattices(void **state) {
  (void)state;
  wf_error err = {0};
  for (uint64_t seed = 1; seed <= 700; seed++) {
    wf_lattice *lattice = lattice_of(seed, true);
    path_list all = list_paths(lattice);
    wf_lattice_determinize_options o;
    wf_lattice_determinize_options_init(&o);
    o.beam = 1e30f;
    wf_determinized out, again;
    wf_compact_lattice *pruned;
    wf_nbest *best;
    float beam = (float)(seed % 30) / 8;
    if (!all.full && all.size > 0) {
      assert_ok(wf_lattice_determinize(lattice, NULL, &o, &out, &err));
      assert_ok(wf_compact_lattice_prune(out.lattice, beam, &pruned, &err));
      check_determinized(&all, pruned, (double)beam, 0);
      o.beam = beam;
      assert_ok(wf_compact_lattice_determinize(out.lattice, &o, &again, &err));
      check_determinized(&all, again.lattice, (double)beam, 0);
      assert_ok(wf_compact_lattice_best_path(again.lattice, &best, &err));
      assert_true(wf_nbest_at(best, 0).graph_cost + wf_nbest_at(best, 0).acoustic_cost ==
                  least_cost(&all));
      wf_nbest_free(best);
      wf_compact_lattice_free(out.lattice);
      wf_compact_lattice_free(again.lattice);
      wf_compact_lattice_free(pruned);
    }
    free(all.paths);
    wf_lattice_free(lattice);
  }
}

static void test_scale(void **state) {
  (void)state;
  wf_error err = {0};
  for (uint64_t seed = 1; seed <= 300; seed++) {
    wf_lattice *lattice = lattice_of(seed, true), *scaled;
    wf_lattice_scale_options o;
    wf_lattice_scale_options_init(&o);
    o.lm_scale = 2;
    o.acoustic_scale = 0.5f;
    o.word_score = 0.25f;
    assert_ok(wf_lattice_scale(lattice, &o, &scaled, &err));
    path_list before = list_paths(lattice), after = list_paths(scaled);
    assert_int_equal(before.size, after.size);
    for (size_t i = 0; i < before.size; i++) {
      assert_true(after.paths[i].graph ==
                  2 * before.paths[i].graph - 0.25 * (double)before.paths[i].num_words);
      assert_true(after.paths[i].acoustic == 0.5 * before.paths[i].acoustic);
    }
    wf_determinized words;
    wf_compact_lattice *compact;
    assert_ok(wf_lattice_determinize(lattice, NULL, NULL, &words, &err));
    assert_ok(wf_compact_lattice_scale(words.lattice, &o, &compact, &err));
    path_list a = list_compact_paths(words.lattice), b = list_compact_paths(compact);
    assert_int_equal(a.size, b.size);
    for (size_t i = 0; i < a.size; i++) {
      assert_true(fabs(b.paths[i].graph - 2 * a.paths[i].graph +
                       0.25 * (double)a.paths[i].num_words) < 1e-9);
      assert_true(b.paths[i].acoustic == 0.5 * a.paths[i].acoustic &&
                  b.paths[i].num_labels == a.paths[i].num_labels);
    }
    free(a.paths);
    free(b.paths);
    free(before.paths);
    free(after.paths);
    wf_compact_lattice_free(words.lattice);
    wf_compact_lattice_free(compact);
    wf_lattice_free(scaled);
    wf_lattice_free(lattice);
  }
}

/* An acceptor of the words with the total costs. */
static wf_fst *raw_acceptor(const wf_lattice *lattice) {
  wf_error err = {0};
  wf_lattice_view view = wf_lattice_get_view(lattice);
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s,
                                   view.final_graph_cost[s] + view.final_acoustic_cost[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      const wf_lattice_arc *arc = &view.arcs[i];
      if (arc->graph_cost == INFINITY) continue;
      assert_ok(wf_builder_add_arc(
          builder, s,
          (wf_arc){(uint32_t)arc->nextstate, arc->graph_cost + arc->acoustic_cost, arc->olabel,
                   arc->olabel},
          &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static wf_fst *word_acceptor(const wf_compact_lattice *lattice) {
  wf_error err = {0};
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s,
                                   view.finals[s].graph_cost + view.finals[s].acoustic_cost, &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      const wf_compact_arc *arc = &view.arcs[i];
      assert_ok(wf_builder_add_arc(
          builder, s,
          (wf_arc){(uint32_t)arc->nextstate, arc->weight.graph_cost + arc->weight.acoustic_cost,
                   arc->word, arc->word},
          &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* Larger lattices with more paths than can be listed. The word sequences and costs equal those of
 * OpenFst's determinization. Minimized lattices have no more states than OpenFst's. */
static void test_openfst(void **state) {
  (void)state;
  wf_error err = {0};
  uint64_t states = 0;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    test_rng rng = {seed};
    wf_lattice *lattice =
        random_lattice(&rng, 40 + (uint32_t)seed * 3, 2 + test_below(&rng, 6), 0, true);
    wf_fst *raw = raw_acceptor(lattice), *theirs, *ours;
    const char *path = test_save_fst(raw, "raw.fst"), *result = test_temp_path("det.fst");
    test_shell("fstrmepsilon %s | fstconnect | fstdeterminize --delta=1e-6 - %s", path, result);
    assert_ok(wf_fst_read(result, &theirs, &err));
    wf_lattice_determinize_options o;
    wf_lattice_determinize_options_init(&o);
    o.beam = 1e30f;
    o.delta = 0;
    wf_determinized out;
    assert_ok(wf_lattice_determinize(lattice, NULL, &o, &out, &err));
    assert_false(out.narrowed);
    ours = word_acceptor(out.lattice);
    bool equal;
    assert_ok(wf_equivalent(ours, theirs, 1e-3f, &equal, &err));
    if (!equal) fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
    states += wf_fst_get_view(ours).num_states;
    wf_compact_lattice_free(out.lattice);
    wf_fst_free(ours);
    wf_fst_free(theirs);
    wf_fst_free(raw);
    wf_lattice_free(lattice);
  }
  if (states <= 500) fail_msg("%llu states", (unsigned long long)states);
}

static void test_batch_equals_one_by_one(void **state) {
  (void)state;
  wf_error err = {0};
  enum { COUNT = 60 };
  wf_lattice *lattices[COUNT];
  wf_determinized one[COUNT], many[COUNT];
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  for (int i = 0; i < COUNT; i++) {
    test_rng rng = {(uint64_t)i};
    lattices[i] = i % 9 == 4 ? NULL : random_lattice(&rng, 200, 5, 5, false);
    one[i] = (wf_determinized){0};
    if (lattices[i] != NULL)
      assert_ok(wf_lattice_determinize(lattices[i], NULL, &o, &one[i], &err));
  }
  o.num_threads = 4;
  assert_ok(
      wf_lattices_determinize((const wf_lattice *const *)lattices, COUNT, NULL, &o, many, &err));
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(one[i].lattice == NULL, many[i].lattice == NULL);
    if (lattices[i] == NULL) continue;
    wf_compact_lattice_view a = wf_compact_lattice_get_view(one[i].lattice),
                            b = wf_compact_lattice_get_view(many[i].lattice);
    assert_true(a.num_states == b.num_states && a.num_arcs == b.num_arcs &&
                a.num_labels == b.num_labels);
    assert_memory_equal(a.labels, b.labels, a.num_labels * sizeof *a.labels);
    for (uint64_t k = 0; k < a.num_arcs; k++)
      assert_true(a.arcs[k].weight.graph_cost == b.arcs[k].weight.graph_cost &&
                  a.arcs[k].nextstate == b.arcs[k].nextstate);
    wf_compact_lattice_free(one[i].lattice);
    wf_compact_lattice_free(many[i].lattice);
    wf_lattice_free(lattices[i]);
  }
}

/* Lattices that a decoder determinizes while decoding equal wf_lattice_determinize of its raw
 * lattices. */
static void test_while_decoding(void **state) {
  (void)state;
  enum { COUNT = 20 };
  wf_error err = {0};
  uint64_t arcs = 0;
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  o.beam = 2;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct decode_task task = test_random_task(seed);
    wf_scores batch[COUNT];
    float *data[COUNT];
    wf_result *results[COUNT];
    wf_decoder *decoder;
    test_random_batch(&task, batch, data, COUNT, seed, 15);
    task.options.num_threads = 2;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_int_equal(wf_decoder_set_determinization(decoder, &o, &err), WF_ERR_ARGUMENT);
    wf_decoder_free(decoder);
    task.options.lattice_beam = 3;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    for (int turn = 0; turn < 3; turn++) {
      assert_ok(wf_decoder_set_determinization(decoder, turn == 1 ? &o : NULL, &err));
      assert_ok(test_decode(decoder, batch, COUNT, NULL, results, &err));
      for (int i = 0; i < COUNT; i++) {
        assert_int_equal(results[i]->determinized != NULL,
                         turn == 1 && results[i]->lattice != NULL);
        if (results[i]->determinized == NULL) continue;
        wf_determinized alone;
        assert_ok(wf_lattice_determinize(results[i]->lattice, NULL, &o, &alone, &err));
        assert_true(test_same_compact(alone.lattice, results[i]->determinized->lattice) &&
                    alone.beam == results[i]->determinized->beam);
        arcs += wf_compact_lattice_get_view(alone.lattice).num_arcs;
        wf_compact_lattice_free(alone.lattice);
      }
      test_free_results(results, COUNT);
    }
    wf_decoder_free(decoder);
    for (int i = 0; i < COUNT; i++) free(data[i]);
    test_free_task(&task);
  }
  assert_true(arcs > 1000);
}

/* A lattice of `length` steps. Each step has two arcs, with graph costs `graph_cost` and
 * `other_cost`. */
static wf_lattice *ladder(uint32_t length, float graph_cost, float other_cost, bool one_word) {
  wf_error err = {0};
  wf__lattice_arrays arrays = {0};
  wf_lattice *lattice;
  for (uint32_t s = 0; s <= length; s++) {
    assert_ok(wf__lattice_add_state(&arrays, s == length ? 0 : INFINITY, 0, (int32_t)s, &err));
    for (int k = 0; k < 2 && s < length; k++)
      assert_ok(wf__lattice_push(&arrays,
                                 (wf_lattice_arc){.ilabel = 1 + k,
                                                  .olabel = one_word ? 1 : 1 + k,
                                                  .graph_cost = k == 0 ? graph_cost : other_cost,
                                                  .nextstate = (int32_t)s + 1},
                                 &err));
  }
  assert_ok(wf__lattice_from_arrays(&arrays, &lattice, &err));
  return lattice;
}

static void test_nan_and_extreme_costs(void **state) {
  (void)state;
  wf_error err = {0};
  wf_determinized out;
  wf_nbest *nbest;
  wf_lattice *pruned, *lattice = ladder(3, NAN, 1, false);
  assert_int_equal(wf_lattice_determinize(lattice, NULL, NULL, &out, &err), WF_ERR_FORMAT);
  assert_true(out.status == WF_ERR_FORMAT && out.lattice == NULL &&
              strstr(out.message, "NaN") != NULL);
  assert_int_equal(wf_lattice_prune(lattice, 1, &pruned, &err), WF_ERR_FORMAT);
  wf_lattice_free(lattice);
  lattice = ladder(3, 1, 1, false);
  assert_int_equal(wf_lattice_prune(lattice, -1, &pruned, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_lattice_prune(lattice, NAN, &pruned, &err), WF_ERR_ARGUMENT);
  wf_lattice_free(lattice);
  lattice = ladder(40, 1e30f, 1e28f,
                   false); /* costs beyond the fixed-point range at the usual fraction */
  assert_ok(wf_lattice_determinize(lattice, NULL, NULL, &out, &err));
  assert_ok(wf_compact_lattice_nbest(out.lattice, 5, &nbest, &err));
  assert_int_equal(wf_nbest_count(nbest), 1);
  assert_true(fabs(wf_nbest_at(nbest, 0).graph_cost - 40e28) < 1e25);
  wf_nbest_free(nbest);
  wf_compact_lattice_free(out.lattice);
  wf_lattice_free(lattice);
  lattice =
      ladder(3000, 0, 0, true); /* one word sequence with 2^3000 alignments of the same cost */
  assert_ok(wf_lattice_determinize(lattice, NULL, NULL, &out, &err));
  assert_int_equal(wf_compact_lattice_get_view(out.lattice).num_states, 3001);
  wf_compact_lattice_free(out.lattice);
  wf_lattice_free(lattice);
}

/* More subsets than memory can hold. The memory limit is kept, and the best paths are in the
 * result. */
static void test_memory_limit(void **state) {
  (void)state;
  wf_error err = {0};
  wf__lattice_arrays arrays = {0};
  wf_lattice *lattice;
  enum { LENGTH = 60, ROWS = 6 };
  test_rng rng = {5};
  for (int s = 0; s <= LENGTH * ROWS;
       s++) { /* state 0, then rows of states; words 1 and 2 lead to any state of the next row */
    assert_ok(wf__lattice_add_state(&arrays, s > (LENGTH - 1) * ROWS ? 0 : INFINITY, 0,
                                    s == 0 ? 0 : (s - 1) / ROWS + 1, &err));
    for (int k = 0; k < 3 * ROWS && s <= (LENGTH - 1) * ROWS; k++) {
      int next = (s == 0 ? 1 : ((s - 1) / ROWS + 1) * ROWS + 1) + (int)test_below(&rng, ROWS);
      assert_ok(wf__lattice_push(&arrays,
                                 (wf_lattice_arc){.ilabel = 1 + k,
                                                  .olabel = 1 + k % 2,
                                                  .graph_cost = test_unit(&rng),
                                                  .acoustic_cost = test_unit(&rng),
                                                  .nextstate = next},
                                 &err));
    }
  }
  assert_ok(wf__lattice_from_arrays(&arrays, &lattice, &err));
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  o.beam = 1e30f;
  o.max_bytes = 1 << 20;
  wf_determinized out, wider;
  assert_ok(wf_lattice_determinize(lattice, NULL, &o, &out, &err));
  assert_true(out.narrowed && out.beam > 0 && out.beam < 1000 && out.num_bytes < 2 << 20);
  o.max_bytes = 4 << 20;
  assert_ok(wf_lattice_determinize(lattice, NULL, &o, &wider, &err));
  assert_true(wider.narrowed && wider.beam > out.beam);
  wf_compact_lattice_free(wider.lattice);
  o.beam = out.beam;
  assert_ok(wf_lattice_determinize(lattice, NULL, &o, &wider,
                                   &err)); /* the same beam without a tight limit */
  assert_false(wider.narrowed);
  wf_nbest *a, *b;
  assert_ok(wf_compact_lattice_nbest(out.lattice, 20000, &a, &err));
  assert_ok(wf_compact_lattice_nbest(wider.lattice, 20000, &b, &err));
  size_t same = 0;
  wf_lattice_path first = wf_nbest_at(a, 0);
  for (; same < wf_nbest_count(a) && same < wf_nbest_count(b); same++) {
    wf_lattice_path x = wf_nbest_at(a, same), y = wf_nbest_at(b, same);
    if (x.graph_cost + x.acoustic_cost >
        first.graph_cost + first.acoustic_cost + (double)out.beam - 0.01)
      break;
    assert_true(fabs(x.graph_cost + x.acoustic_cost - y.graph_cost - y.acoustic_cost) < 0.01);
  }
  assert_true(same > 1000);
  wf_nbest_free(a);
  wf_nbest_free(b);
  wf_compact_lattice_free(out.lattice);
  wf_compact_lattice_free(wider.lattice);
  wf_lattice_free(lattice);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all_paths),
                                     cmocka_unit_test(test_lattices_of_the_decoder),
                                     cmocka_unit_test(test_beam_narrowed_by_memory),
                                     cmocka_unit_test(test_nbest),
                                     cmocka_unit_test(test_prune_and_best),
                                     cmocka_unit_test(test_compact_lattices),
                                     cmocka_unit_test(test_scale),
                                     cmocka_unit_test(test_openfst),
                                     cmocka_unit_test(test_batch_equals_one_by_one),
                                     cmocka_unit_test(test_while_decoding),
                                     cmocka_unit_test(test_nan_and_extreme_costs),
                                     cmocka_unit_test(test_memory_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
