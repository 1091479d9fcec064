/* test_ctc_added_words.c - words that are added to CTC graphs that keep their token graph. The graph
 * with all states and arcs, under the same numbers, gives the same bits. It has the paths that CTC
 * defines over a token graph with a chain of arcs for each phrase. And the token graph that
 * wf_graph_to_fst makes gives the same words and costs. */
#include "ctc_words.h"
#include "lattice_paths.h"
#include "table_scorer.h"
/* After the library's headers, because it defines `model`. */
#include "random_scorers.h"

static wf_error err;

struct seen {
  uint64_t decoded, said, lattices, scored, spelled, changed, dead, wide;
};

/* --- the same bits ------------------------------------------------------------------------ */

static void assert_same(const wf_result *a, const wf_result *b) {
  test_assert_same_result(a, b);
  assert_string_equal(a->message, b->message);
  assert_int_equal(a->num_arcs, b->num_arcs);
  if (a->status != WF_OK) return;
  assert_int_equal(a->lattice != NULL, b->lattice != NULL);
  if (a->lattice != NULL) assert_true(test_same_raw(a->lattice, b->lattice));
}

/* Partial results do not fail if the stream has, and their lattices are the same. */
static void assert_same_parts(wf_stream *const *streams, bool lattices) {
  wf_lattice *parts[2];
  wf_status status[2];
  test_assert_same_partials(streams);
  if (!lattices) return;
  for (int i = 0; i < 2; i++) status[i] = wf_stream_partial_lattice(streams[i], &parts[i], &err);
  assert_int_equal(status[0], status[1]);
  if (status[0] == WF_OK) assert_true(test_same_raw(parts[0], parts[1]));
  for (int i = 0; i < 2; i++) wf_lattice_free(parts[i]);
}

static void check_streams(wf_decoder *const *decoders, const struct ctc_words *words,
                          const wf_scorer *scorer, const wf_result *expected, test_rng *rng) {
  const wf_scores *scores = &words->task.shared.scores;
  wf_stream *streams[2];
  wf_result *results[2];
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_stream_create(decoders[i], NULL, &streams[i], &err));
    assert_ok(wf_stream_set_scorer(streams[i], scorer, &err));
  }
  assert_ok(wf_stream_set_graph(streams[0], words->with, &err));
  for (int64_t fed = 0, size; fed < scores->num_frames; fed += size) {
    wf_stream_event events[2];
    size = test_below(rng, 4);
    if (size > scores->num_frames - fed) size = scores->num_frames - fed;
    const wf_scores chunk = test_rows(scores, fed, size);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_advance(streams[i], &chunk, &events[i], &err));
    test_assert_same_event(&events[0], &events[1]);
    if (test_below(rng, 3) == 0)
      assert_same_parts(streams, words->task.shared.options.lattice_beam > 0);
  }
  for (int i = 0; i < 2; i++) assert_ok(wf_stream_finish(streams[i], &results[i], &err));
  assert_same(results[0], results[1]);
  if (expected->status == WF_OK) test_assert_same_result(results[0], expected);
  test_free_results(results, 2);
  for (int i = 0; i < 2; i++) wf_stream_free(streams[i]);
}

static void check_same_bits(uint64_t seed, bool wide, const wf_symbols *texts, struct seen *seen) {
  struct ctc_words words;
  test_rng rng = {seed * 7 + 3};
  ctc_random_words(seed, wide, &words);
  wf_decoder_options *o = &words.task.shared.options;
  if (words.with == NULL) {
    ctc_free_words(&words);
    return;
  }
  wf_scorer *scorer = test_below(&rng, 2) == 0 ? random_scorer(&rng, texts) : NULL;
  if (scorer != NULL && test_below(&rng, 6) == 0) {
    o->recombine = 1;
    o->lattice_beam = 0;
  }
  wf_graph *whole = ctc_explicit_words(words.with);
  wf_decoder *decoders[2];
  wf_result *expected, *results[2];
  wf_scores twice[2] = {words.task.shared.scores, words.task.shared.scores};
  const wf_graph *graphs[2] = {words.with, NULL};
  const wf_scorer *scorers[2] = {scorer, scorer};
  assert_ok(wf_decoder_create(words.task.shared.graph, o, &decoders[0], &err));
  assert_ok(wf_decoder_create(whole, o, &decoders[1], &err));
  assert_ok(test_decode_scored(decoders[1], twice, scorers, 1, NULL, &expected, &err));
  assert_ok(test_decode_each(decoders[0], twice, scorers, graphs, 2, NULL, results, &err));
  assert_same(results[0], expected);
  check_streams(decoders, &words, scorer, expected, &rng);
  seen->decoded += expected->status == WF_OK;
  seen->dead += (expected->flags & WF_RESULT_DIED) != 0;
  seen->said += expected->num_words > 0;
  seen->lattices +=
      expected->lattice != NULL && wf_lattice_get_view(expected->lattice).num_arcs > 10;
  seen->scored += expected->scorer_cost != 0;
  seen->spelled += words.spelled && expected->num_words > 1;
  seen->wide += words.with->num_wide > 0;
  seen->changed += results[1]->status != expected->status || results[1]->cost != expected->cost;
  wf_result_free(expected);
  test_free_results(results, 2);
  for (int i = 0; i < 2; i++) wf_decoder_free(decoders[i]);
  wf_graph_free(whole);
  wf_scorer_free(scorer);
  ctc_free_words(&words);
}

static void test_same_bits_as_all_arcs(void **state) {
  (void)state;
  const uint64_t seeds = 4000;
  struct seen seen = {0};
  wf_symbols *texts = random_scorer_words();
  for (uint64_t seed = 1; seed <= test_seeds(seeds); seed++)
    check_same_bits(seed, false, texts, &seen);
  for (uint64_t seed = 1; seed <= test_seeds(seeds) / 20; seed++)
    check_same_bits(seed, true, texts, &seen);
  wf_symbols_free(texts);
  print_message(
      "%llu decoded, %llu with words, %llu lattices, %llu scored, %llu spelled, %llu "
      "changed by words, %llu died, %llu wide\n",
      (unsigned long long)seen.decoded, (unsigned long long)seen.said,
      (unsigned long long)seen.lattices, (unsigned long long)seen.scored,
      (unsigned long long)seen.spelled, (unsigned long long)seen.changed,
      (unsigned long long)seen.dead, (unsigned long long)seen.wide);
  assert_true(test_many(seen.decoded, 2000, seeds) && test_many(seen.said, 600, seeds) &&
              test_many(seen.lattices, 150, seeds) && test_many(seen.scored, 300, seeds) &&
              test_many(seen.spelled, 60, seeds) && test_many(seen.changed, 400, seeds) &&
              test_many(seen.dead, 50, seeds) && test_many(seen.wide, 50, seeds));
}

/* --- the paths that CTC defines ----------------------------------------------------------- */

static bool same_speech(const wf_added_phrase *a, const wf_added_phrase *b) {
  int32_t labels[2][MAX_WORDS * MAX_LABELS];
  size_t sizes[2] = {0, 0};
  const wf_added_phrase *both[2] = {a, b};
  if (a->num_words != b->num_words) return false;
  for (int i = 0; i < 2; i++)
    for (size_t k = 0; k < both[i]->num_words; k++)
      for (size_t l = 0; l < both[i]->words[k].num_labels; l++)
        labels[i][sizes[i]++] = both[i]->words[k].labels[l];
  for (size_t k = 0; k < a->num_words; k++)
    if (a->words[k].word != b->words[k].word) return false;
  return sizes[0] == sizes[1] && memcmp(labels[0], labels[1], sizes[0] * sizeof(int32_t)) == 0;
}

/* A phrase that is listed twice counts once, at its least cost. */
static bool counts(const struct phrases *phrases, size_t i) {
  for (size_t k = 0; k < phrases->count; k++) {
    const wf_added_phrase *one = &phrases->list[i], *other = &phrases->list[k];
    if (k != i && same_speech(one, other) &&
        (other->cost < one->cost || (other->cost == one->cost && k < i)))
      return false;
  }
  return true;
}

static void add_chain(wf_builder *builder, uint32_t from, const wf_arc *place,
                      const wf_added_phrase *phrase) {
  uint32_t at = from;
  for (size_t k = 0; k < phrase->num_words; k++)
    for (size_t l = 0; l < phrase->words[k].num_labels; l++) {
      const bool first = k == 0 && l == 0,
                 last = k + 1 == phrase->num_words && l + 1 == phrase->words[k].num_labels;
      uint32_t next = place->nextstate;
      if (!last) assert_ok(wf_builder_add_states(builder, 1, &next, &err));
      assert_ok(wf_builder_add_arc(
          builder, at,
          (wf_arc){next, first ? place->weight + phrase->cost : 0, phrase->words[k].labels[l],
                   l == 0 ? phrase->words[k].word : 0},
          &err));
      at = next;
    }
}

/* The token graph with a chain for each phrase at each place. */
static wf_fst *with_chains(const struct ctc_words *words) {
  const wf_fst_view view = wf_fst_get_view(words->task.token_graph);
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++) {
      const int32_t c = view.arcs[a].ilabel - words->task.num_tokens - 1;
      if (c < 0) assert_ok(wf_builder_add_arc(builder, s, view.arcs[a], &err));
      for (size_t i = 0; c >= 0 && i < words->phrases[c].count; i++)
        if (counts(&words->phrases[c], i))
          add_chain(builder, s, &view.arcs[a], &words->phrases[c].list[i]);
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* A sum over all paths that read x, of a number made of a path's words and cost. Weights are
 * multiples of 1/8, to small errors. */
static uint64_t sum_of_paths(const wf_fst_view *view, uint64_t s, const int32_t *x, int size,
                             uint64_t words, float cost) {
  uint64_t sum = 0;
  if (size == 0 && view->final_cost[s] != INFINITY) {
    test_rng mixer = {words * 4096 + (uint64_t)(int64_t)lrintf(8 * (cost + view->final_cost[s]))};
    sum += test_next(&mixer);
  }
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    const wf_arc *arc = &view->arcs[a];
    const int read = arc->ilabel != 0;
    if (arc->weight == INFINITY || (read && (size == 0 || arc->ilabel != *x))) continue;
    sum += sum_of_paths(view, arc->nextstate, x + read, size - read,
                        arc->olabel != 0 ? words * 7 + (uint64_t)arc->olabel : words,
                        cost + arc->weight);
  }
  return sum;
}

enum { FRAMES = 6 };

/* What the frames say: a token that goes on is one, a blank is none. */
static int collapse(const int32_t *x, int32_t blank, int32_t *out) {
  int size = 0;
  for (int t = 0; t < FRAMES; t++)
    if (x[t] != blank && (t == 0 || x[t] != x[t - 1])) out[size++] = x[t];
  return size;
}

/* All strings of six frames over two to four labels. */
static void check_paths(uint64_t seed, uint64_t *compared, uint64_t *doubled) {
  struct ctc_words words;
  ctc_random_words(seed, false, &words);
  if (words.with == NULL || words.spelled || words.task.num_tokens > 4 ||
      words.task.shared.graph->has_epsilon_cycles) {
    ctc_free_words(&words);
    return;
  }
  wf_graph *whole = ctc_explicit_words(words.with);
  wf_fst *chains = with_chains(&words), *tokens;
  assert_ok(wf_graph_to_fst(words.with, &tokens, &err));
  const wf_fst_view wanted = wf_fst_get_view(chains), written = wf_fst_get_view(tokens);
  int64_t num_strings = 1;
  for (int t = 0; t < FRAMES; t++) num_strings *= words.task.num_tokens;
  for (int64_t i = 0; i < num_strings; i++) {
    int32_t x[FRAMES], y[FRAMES];
    int64_t rest = i;
    for (int t = 0; t < FRAMES; t++, rest /= words.task.num_tokens)
      x[t] = 1 + (int32_t)(rest % words.task.num_tokens);
    const int size = collapse(x, words.task.blank, y);
    const uint64_t want = sum_of_paths(&wanted, (uint64_t)wanted.start, y, size, 0, 0);
    if (sum_of_paths(&whole->view, (uint64_t)whole->view.start, x, FRAMES, 0, 0) != want)
      fail_msg("seed %llu, string %lld: other paths", (unsigned long long)seed, (long long)i);
    if (sum_of_paths(&written, (uint64_t)written.start, y, size, 0, 0) != want)
      fail_msg("seed %llu, string %lld: other paths of tokens", (unsigned long long)seed,
               (long long)i);
    *compared += want != 0 && size > 1;
    for (int k = 1; k < size && want != 0; k++) *doubled += y[k] == y[k - 1];
  }
  wf_fst_free(tokens);
  wf_fst_free(chains);
  wf_graph_free(whole);
  ctc_free_words(&words);
}

static void test_each_path_once(void **state) {
  (void)state;
  uint64_t compared = 0, doubled = 0;
  for (uint64_t seed = 1; seed <= 500; seed++) check_paths(seed, &compared, &doubled);
  print_message("%llu strings of frames, %llu doubled tokens\n", (unsigned long long)compared,
                (unsigned long long)doubled);
  assert_true(compared > 20000 && doubled > 5000);
}

/* --- the same words as the written token graph --------------------------------------------- */

static wf_result *decode_wide(const wf_graph *graph, const wf_scores *scores) {
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_result *result;
  wf_decoder_options_init(&options);
  options.beam = 1000;
  options.num_threads = 1;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, scores, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

static void test_same_words_as_written_graph(void **state) {
  (void)state;
  uint64_t compared = 0, spelled = 0;
  for (uint64_t seed = 1; seed <= test_seeds(2000); seed++) {
    struct ctc_words words;
    test_rng rng = {seed};
    ctc_random_words(seed, seed % 50 == 0, &words);
    if (words.with == NULL) {
      ctc_free_words(&words);
      continue;
    }
    const wf_scores *scores = &words.task.shared.scores;
    for (int64_t i = 0; i < scores->num_frames * scores->stride; i++)
      words.task.shared.data[i] = -test_unit(&rng) * 5; /* distinct: ties would allow other words */
    wf_fst *fst;
    wf_graph *written;
    assert_ok(wf_graph_to_fst(words.with, &fst, &err));
    assert_int_equal(wf__fst_ctc_blank(fst), words.task.blank);
    assert_ok(wf_graph_create(fst, NULL, 0, &written, &err));
    wf_result *result = decode_wide(words.with, scores), *expected = decode_wide(written, scores);
    assert_int_equal(result->status, expected->status);
    const uint32_t cut = WF_RESULT_NARROWED | WF_RESULT_OVERFLOW;
    if (((result->flags | expected->flags) & cut) == 0)
      assert_int_equal(result->flags, expected->flags);
    if (expected->status == WF_OK && (result->flags | expected->flags) == 0) {
      assert_true(fabs(result->cost - expected->cost) < 1e-4);
      assert_int_equal(result->num_decoded, expected->num_decoded);
      compared += expected->num_words > 0;
      spelled += words.spelled && expected->num_words > 0;
    }
    wf_result_free(result);
    wf_result_free(expected);
    wf_graph_free(written);
    wf_fst_free(fst);
    ctc_free_words(&words);
  }
  print_message("%llu with words, %llu of them with spelled ones\n", (unsigned long long)compared,
                (unsigned long long)spelled);
  assert_true(test_many(compared, 200, 2000) && test_many(spelled, 30, 2000));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_bits_as_all_arcs),
      cmocka_unit_test(test_each_path_once),
      cmocka_unit_test(test_same_words_as_written_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
