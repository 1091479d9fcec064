/* test_word_times.c - word times. Random utterances have known words, phones or tokens, and frames.
 * They are tested as single paths and as lattices in which words and labels are not aligned. */
#include "graph/hmm.h"
#include "lattice/compact_lattice.h"
#include "lattice_paths.h"

enum { BLANK = 1, SILENCE = 1 };

/* One utterance: words with their frames, silence or blanks between them, labels. */
struct utterance {
  int32_t words[16], labels[64];
  int start[16], end[16], num_words, num_labels;
  int32_t units[64];
  int unit_start[64], unit_end[64], num_units;
};

static void say(struct utterance *u, int32_t label, int times) {
  while (times-- > 0) u->labels[u->num_labels++] = label;
}

/* --- tokens with a mark: 1 blank; 2, 3, 6 begin words; 4, 5 do not ------------------------ */

static wf_symbols *marked_tokens(int way) {
  static const char *const texts[][6] = {
      {"<blk>", "\u2581a", "\u2581b", "c", "d", "\u2581"},
      {"<blk>", "\u0120a", "\u0120b", "c", "\u00C3\u00A9",
       "\u0120"}, /* byte-level BPE; d is U+00E9 */
      {"<blk>", "\u2581a", "\u2581b", "c", "\u0169\u014F", "\u2581"}, /* the same in bbpe */
      {"[PAD]", "a", "b", "##c", "##d", "e"},
  };
  wf_error err = {0};
  wf_symbols *table;
  assert_ok(wf_symbols_create("tokens", &table, &err));
  for (int64_t i = 0; i < 6; i++) assert_ok(wf_symbols_add(table, texts[way][i], i, NULL, &err));
  return table;
}

/* A token after another, with blanks between them if they are equal. */
static void say_token(test_rng *rng, struct utterance *u, int32_t token) {
  if (u->num_labels > 0 && u->labels[u->num_labels - 1] == token)
    say(u, BLANK, 1);
  else if (test_below(rng, 3) == 0)
    say(u, BLANK, 1);
  u->units[u->num_units] = token;
  u->unit_start[u->num_units] = u->num_labels;
  say(u, token, 1 + (int)test_below(rng, 2));
  u->unit_end[u->num_units++] = u->num_labels;
}

static struct utterance marked_utterance(test_rng *rng) {
  static const int32_t starts[] = {2, 3, 6};
  struct utterance u = {.num_words = (int)test_below(rng, 5)};
  for (int w = 0; w < u.num_words; w++) {
    u.words[w] = 1 + (int32_t)test_below(rng, 9);
    if (test_below(rng, 2) == 0) say(&u, BLANK, 1 + (int)test_below(rng, 2));
    int rest = (int)test_below(rng, 3);
    say_token(rng, &u, starts[test_below(rng, 3)]);
    u.start[w] = u.unit_start[u.num_units - 1];
    while (rest-- > 0) say_token(rng, &u, 4 + (int32_t)test_below(rng, 2));
    u.end[w] = u.num_labels;
  }
  if (test_below(rng, 2) == 0) say(&u, BLANK, 2);
  return u;
}

static wf_word_aligner *marked_aligner_of(int way) {
  wf_error err = {0};
  wf_symbols *tokens = marked_tokens(way);
  wf_word_aligner *aligner;
  assert_ok(wf_word_aligner_from_tokens(tokens, NULL, &aligner, &err));
  wf_symbols_free(tokens);
  return aligner;
}
static wf_word_aligner *marked_aligner(void) { return marked_aligner_of(0); }

/* --- phones with word positions ---------------------------------------------------------- */

/* Phone 1 is SIL, phone 2 + 4 p + position is phone p in that position of the word. An HMM has two
 * states and four labels: enter the first state, its loop, enter the second state, its loop. */

enum { NUM_BASES = 2, NUM_PHONES = 1 + 4 * NUM_BASES };
static int32_t first_label(int32_t phone) { return phone * 4 - 3; }

static void free_nothing(void *model) { (void)model; }
static wf_status no_type(wf_hmm *hmm, const int32_t *window, int32_t *out, wf_error *err) {
  (void)hmm, (void)window, (void)err;
  *out = 0;
  return WF_OK;
}

static wf_word_aligner *position_aligner(void) {
  static const wf__hmm_class methods = {no_type, free_nothing};
  wf_error err = {0};
  wf_hmm *hmm;
  wf_symbols *phones;
  wf_word_aligner *aligner;
  assert_ok(wf__hmm_create("test", &methods, NULL, &hmm, &err));
  assert_int_equal(wf_word_aligner_from_hmm(hmm, &aligner, &err), WF_ERR_UNSUPPORTED);
  assert_ok(wf_symbols_create("phones", &phones, &err));
  assert_ok(wf_symbols_add(phones, "<eps>", 0, NULL, &err));
  for (int32_t p = 1; p <= NUM_PHONES; p++) {
    char name[16];
    snprintf(name, sizeof name, p == SILENCE ? "SIL" : "P%d", p);
    assert_ok(wf_symbols_add(phones, name, p, NULL, &err));
  }
  assert_ok(wf__hmm_set_phones(hmm, phones, NUM_PHONES, &err));
  wf_symbols_free(phones);
  hmm->word_position = malloc(NUM_PHONES + 1);
  for (int32_t p = 0; p <= NUM_PHONES; p++)
    hmm->word_position[p] = p <= SILENCE ? -1 : (int8_t)((p - 2) % 4);
  assert_ok(wf__vec_push(&hmm->places, ((wf__hmm_place){0}), "test", &err));
  for (int32_t p = 1; p <= NUM_PHONES; p++)
    for (int i = 0; i < 4; i++)
      assert_ok(wf__vec_push(
          &hmm->places,
          ((wf__hmm_place){.phone = p, .loop = i % 2 == 1, .first = i == 0, .last = i == 2}),
          "test", &err));
  assert_ok(wf_word_aligner_from_hmm(hmm, &aligner, &err));
  wf_hmm_free(hmm);
  return aligner;
}

static void say_phone(test_rng *rng, struct utterance *u, int32_t phone) {
  u->units[u->num_units] = phone;
  u->unit_start[u->num_units] = u->num_labels;
  say(u, first_label(phone), 1);
  say(u, first_label(phone) + 1, (int)test_below(rng, 2));
  say(u, first_label(phone) + 2, 1);
  say(u, first_label(phone) + 3, (int)test_below(rng, 2));
  u->unit_end[u->num_units++] = u->num_labels;
}

static struct utterance spoken_utterance(test_rng *rng) {
  struct utterance u = {.num_words = (int)test_below(rng, 4)};
  for (int w = 0; w < u.num_words; w++) {
    u.words[w] = 1 + (int32_t)test_below(rng, 9);
    if (test_below(rng, 2) == 0) say_phone(rng, &u, SILENCE);
    int count = 1 + (int)test_below(rng, 3);
    u.start[w] = u.num_labels;
    for (int i = 0; i < count; i++) {
      int position = count == 1       ? WF__SINGLE
                     : i == 0         ? WF__BEGIN
                     : i + 1 == count ? WF__END
                                      : WF__INTERNAL;
      say_phone(rng, &u, 2 + 4 * (int32_t)test_below(rng, NUM_BASES) + position);
    }
    u.end[w] = u.num_labels;
  }
  if (test_below(rng, 2) == 0) say_phone(rng, &u, SILENCE);
  return u;
}

/* --- one path ---------------------------------------------------------------------------- */

typedef struct utterance utterance_fn(test_rng *rng);

static void check_paths(const wf_word_aligner *aligner, utterance_fn *make, uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  for (int i = 0; i < 2000; i++) {
    struct utterance u = make(&rng);
    wf_word words[16], *units;
    uint64_t forced;
    size_t count;
    assert_ok(wf_word_aligner_words(aligner, u.words, (size_t)u.num_words, u.labels,
                                    (size_t)u.num_labels, words, &forced, &err));
    assert_int_equal(forced, 0);
    for (int w = 0; w < u.num_words; w++)
      assert_true(words[w].label == u.words[w] && words[w].start_frame == u.start[w] &&
                  words[w].end_frame == u.end[w]);
    assert_ok(wf_word_aligner_units(aligner, u.labels, (size_t)u.num_labels, &units, &count, &err));
    assert_int_equal(count, u.num_units);
    for (size_t k = 0; k < count; k++)
      assert_true(units[k].label == u.units[k] && units[k].start_frame == u.unit_start[k] &&
                  units[k].end_frame == u.unit_end[k]);
    wf_free(units);
  }
}

static void test_utterances_as_single_paths(void **state) {
  (void)state;
  wf_word_aligner *aligners[] = {marked_aligner(), position_aligner()};
  check_paths(aligners[0], marked_utterance, 1);
  for (int way = 1; way < 4; way++) {
    wf_word_aligner *aligner = marked_aligner_of(way);
    check_paths(aligner, marked_utterance, 1);
    wf_word_aligner_free(aligner);
  }
  check_paths(aligners[1], spoken_utterance, 2);
  assert_string_equal(wf_word_aligner_unit_text(aligners[0], 4), "c");
  assert_string_equal(wf_word_aligner_unit_text(aligners[1], SILENCE), "SIL");
  wf_word_aligner_free(aligners[0]);
  wf_word_aligner_free(aligners[1]);
}

/* --- lattices ---------------------------------------------------------------------------- */

/* Utterances share prefixes of labels and of words only by chance, in a random tree. Arcs hold any
 * number of labels, and words may be on any arc. */
static wf_compact_lattice *lattice_of(test_rng *rng, const struct utterance *u, int count) {
  wf_error err = {0};
  wf__compact_arrays arrays = {0};
  wf_compact_lattice *lattice;
  const wf_compact_weight none = {.graph_cost = INFINITY};
  int num_arcs[8];
  int32_t next = 1;
  assert_ok(wf__compact_add_state(&arrays, none, &err));
  for (int i = 0; i < count;
       i++) { /* chains that branch at the start: the first arcs have no word and no label */
    assert_ok(wf__compact_push(&arrays, (wf_compact_arc){0, next, {(float)i / 8, 1, 0, 0}}, &err));
    next += num_arcs[i] = u[i].num_words + 1 + (int)test_below(rng, 5);
    next++;
  }
  next = 1;
  for (int i = 0; i < count; i++) {
    int words = 0, labels = 0;
    for (int k = 0; k <= num_arcs[i]; k++, next++) {
      bool last = k == num_arcs[i];
      wf_compact_weight weight = {1, 0.5f, 0, arrays.labels.size};
      int left = u[i].num_labels - labels, left_arcs = num_arcs[i] - k;
      weight.num_labels = last ? (uint32_t)left : test_below(rng, (uint32_t)left + 1);
      for (uint32_t l = 0; l < weight.num_labels; l++)
        assert_ok(wf__vec_push(&arrays.labels, u[i].labels[labels++], "test", &err));
      assert_ok(wf__compact_add_state(&arrays, last ? weight : none, &err));
      bool word = words < u[i].num_words &&
                  (left_arcs <= u[i].num_words - words || test_below(rng, 2) == 0);
      if (!last)
        assert_ok(wf__compact_push(
            &arrays, (wf_compact_arc){word ? u[i].words[words] : 0, next + 1, weight}, &err));
      words += word && !last;
    }
    assert_int_equal(words, u[i].num_words);
  }
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  return lattice;
}

/* Does the path equal the utterance, with its words in their frames? */
static bool is_utterance(const test_lattice_path *path, const struct utterance *u) {
  if (path->num_words != u->num_words || path->num_labels != u->num_labels) return false;
  if (memcmp(path->labels, u->labels, (size_t)u->num_labels * sizeof(int32_t)) != 0) return false;
  for (int w = 0; w < u->num_words; w++)
    if (path->words[w] != u->words[w] || path->word_frames[w] != u->start[w]) return false;
  return true;
}

static void check_lattices(const wf_word_aligner *aligner, utterance_fn *make, uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  for (int i = 0; i < 500; i++) {
    struct utterance u[4];
    int count = 1 + (int)test_below(&rng, 4);
    for (int k = 0; k < count; k++) u[k] = make(&rng);
    wf_compact_lattice *lattice = lattice_of(&rng, u, count), *aligned;
    uint64_t forced;
    assert_ok(wf_compact_lattice_align(lattice, aligner, NULL, &aligned, &forced, &err));
    assert_int_equal(forced, 0);
    test_lattice_paths before = test_paths_of_compact(lattice, 100),
                       after = test_paths_of_compact(aligned, 100);
    assert_true(test_same_paths(&before, &after));
    for (size_t p = 0; p < after.size; p++) {
      bool found = false;
      for (int k = 0; k < count; k++) found = found || is_utterance(&after.paths[p], &u[k]);
      assert_true(found);
    }
    wf_compact_lattice_view view = wf_compact_lattice_get_view(aligned);
    for (uint64_t a = 0; a < view.num_arcs;
         a++) { /* the last label of a word's arc is not a blank */
      const wf_compact_weight *weight = &view.arcs[a].weight;
      if (view.arcs[a].word != 0)
        assert_true(weight->num_labels > 0 &&
                    (make != marked_utterance ||
                     view.labels[weight->first_label + weight->num_labels - 1] != BLANK));
    }
    test_paths_free(&before);
    test_paths_free(&after);
    wf_compact_lattice_free(lattice);
    wf_compact_lattice_free(aligned);
  }
}

/* A lattice with shared states. The words are on the arcs of their frames, but the last labels of a
 * word are on the following arcs and must be moved back. */
static void test_labels_on_later_arcs(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {31};
  wf_word_aligner *aligner = marked_aligner();
  for (int i = 0; i < 500; i++) {
    wf__compact_arrays arrays = {0};
    wf_compact_lattice *lattice, *aligned, *again;
    const wf_compact_weight none = {.graph_cost = INFINITY};
    int columns = 1 + (int)test_below(&rng, 4);
    uint32_t late = test_below(&rng, 3); /* number of labels of each column's last frames that are
                                            on the arcs of the next column: token 4 */
    for (int c = 0; c <= columns; c++) {
      wf_compact_weight final = {c == columns ? 0.25f : INFINITY, 0, c == columns ? late : 0,
                                 arrays.labels.size};
      for (uint32_t l = 0; l < final.num_labels; l++)
        assert_ok(wf__vec_push(&arrays.labels, 4, "test", &err));
      assert_ok(wf__compact_add_state(&arrays, final.graph_cost < INFINITY ? final : none, &err));
      for (int32_t w = 1; w <= 3 && c < columns; w++) {
        wf_compact_weight weight = {(float)w, 0, 0, arrays.labels.size};
        for (uint32_t l = 0; c > 0 && l < late; l++)
          assert_ok(wf__vec_push(&arrays.labels, 4, "test", &err));
        assert_ok(wf__vec_push(&arrays.labels, BLANK, "test", &err));
        assert_ok(wf__vec_push(&arrays.labels, 2 + w % 2, "test", &err));
        assert_ok(wf__vec_push(&arrays.labels, 5, "test", &err));
        weight.num_labels = (uint32_t)(arrays.labels.size - weight.first_label);
        assert_ok(wf__compact_push(&arrays, (wf_compact_arc){w, c + 1, weight}, &err));
      }
    }
    assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
    uint64_t forced;
    assert_ok(wf_compact_lattice_align(lattice, aligner, NULL, &aligned, &forced, &err));
    assert_int_equal(forced, 0);
    assert_ok(wf_compact_lattice_align(aligned, aligner, NULL, &again, NULL,
                                       &err)); /* already aligned: nothing moves */
    test_lattice_paths before = test_paths_of_compact(lattice, 100),
                       after = test_paths_of_compact(aligned, 100),
                       third = test_paths_of_compact(again, 100);
    assert_true(test_same_paths(&before, &after) && test_same_paths(&after, &third));
    for (size_t p = 0; p < after.size; p++)
      for (int w = 0; w < columns; w++) {
        assert_int_equal(after.paths[p].word_frames[w], w * (3 + (int)late) + 1);
        assert_int_equal(third.paths[p].word_frames[w], w * (3 + (int)late) + 1);
      }
    test_paths_free(&before);
    test_paths_free(&after);
    test_paths_free(&third);
    wf_compact_lattice_free(lattice);
    wf_compact_lattice_free(aligned);
    wf_compact_lattice_free(again);
  }
  wf_word_aligner_free(aligner);
}

static void test_utterances_as_lattices(void **state) {
  (void)state;
  wf_word_aligner *aligners[] = {marked_aligner(), position_aligner()};
  check_lattices(aligners[0], marked_utterance, 3);
  check_lattices(aligners[1], spoken_utterance, 4);
  wf_word_aligner_free(aligners[0]);
  wf_word_aligner_free(aligners[1]);
}

/* --- lexicon ----------------------------------------------------------------------------- */

static wf_word_aligner *lexicon_aligner(void) {
  static const char text[] = "one a\none a b\ntwo c\ntwo b c d\nthree a a\nfour d\n";
  static const char *const tokens[] = {"<blk>", "a", "b", "c", "d"}, *const texts[] = {
                                                                         "<eps>", "one", "two",
                                                                         "three", "four"};
  wf_error err = {0};
  wf_symbols *table, *words;
  wf_lexicon *lexicon;
  wf_word_aligner *aligner;
  assert_ok(wf_symbols_create("tokens", &table, &err));
  assert_ok(wf_symbols_create("words", &words, &err));
  for (int64_t i = 0; i < 5; i++) assert_ok(wf_symbols_add(table, tokens[i], i, NULL, &err));
  for (int64_t i = 0; i < 5; i++) assert_ok(wf_symbols_add(words, texts[i], i, NULL, &err));
  assert_int_equal(wf_word_aligner_from_tokens(table, NULL, &aligner, &err),
                   WF_ERR_ARGUMENT); /* the table has no marks */
  assert_ok(wf_lexicon_read(test_write_file("lexicon", text, sizeof text - 1), table, NULL,
                            &lexicon, &err));
  assert_ok(wf_word_aligner_from_lexicon(lexicon, words, &aligner, &err));
  wf_lexicon_free(lexicon);
  wf_symbols_free(table);
  wf_symbols_free(words);
  return aligner;
}

/* The words (b c d)(d)(a), whose labels come one a arc: a run that two words share is divided where
 * the next token, not yet complete, shows that the second word has begun before. */
static void test_lexicon_words_that_share_a_run(void **state) {
  (void)state;
  static const int32_t words[] = {2, 4, 1, 0, 0}, labels[] = {3, 4, 5, 5, 2}, start[] = {0, 3, 4};
  wf_error err = {0};
  wf_word_aligner *aligner = lexicon_aligner();
  wf__compact_arrays arrays = {0};
  wf_compact_lattice *lattice, *aligned;
  uint64_t forced;
  for (uint64_t i = 0; i < 5; i++) {
    const wf_compact_arc arc = {words[i], (int32_t)i + 1, {0, 0, 1, i}};
    assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){.graph_cost = INFINITY}, &err));
    assert_ok(wf__compact_push(&arrays, arc, &err));
    assert_ok(wf__vec_push(&arrays.labels, labels[i], "test", &err));
  }
  assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){0}, &err));
  assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
  assert_ok(wf_compact_lattice_align(lattice, aligner, NULL, &aligned, &forced, &err));
  assert_int_equal(forced, 0);
  test_lattice_paths paths = test_paths_of_compact(aligned, 10);
  assert_int_equal(paths.size, 1);
  for (int w = 0; w < 3; w++) assert_int_equal(paths.paths[0].word_frames[w], start[w]);
  test_paths_free(&paths);
  wf_compact_lattice_free(lattice);
  wf_compact_lattice_free(aligned);
  wf_word_aligner_free(aligner);
}

static void test_lexicon_aligner(void **state) {
  (void)state;
  wf_error err = {0};
  wf_word_aligner *aligner = lexicon_aligner();
  static const struct {
    int32_t words[4], num_words, labels[16], num_labels, start[4], end[4];
    uint64_t forced;
  } cases[] = {
      {{1, 2}, 2, {1, 2, 2, 3, 4, 1}, 6, {1, 4}, {4, 5}, 0},    /* (a b)(c): the longest match */
      {{1, 2}, 2, {1, 2, 2, 3, 4, 5, 1}, 7, {1, 3}, {3, 6}, 0}, /* (a)(b c d): otherwise d would be
                                                                   left over */
      {{1, 1, 4}, 3, {2, 1, 2, 3, 5}, 5, {0, 2, 4}, {1, 4, 5}, 0}, /* (a)(a b)(d) */
      {{3, 1}, 2, {2, 1, 1, 2, 1, 2, 2}, 7, {0, 5}, {4, 7}, 0},    /* (a - a)(a) */
      {{4}, 1, {5, 5, 1, 1}, 4, {0}, {2}, 0},                      /* trailing blanks */
      {{2, 4}, 2, {3, 5}, 2, {0, 1}, {1, 2}, 1},                   /* b alone is not `two` */
      {{1, 3},
       2,
       {2, 2, 2, 2, 1, 2, 1},
       7,
       {0, 1},
       {1, 6},
       0}, /* (a)(a - a): one run is two tokens, as topologies without blanks allow */
      {{3, 4}, 2, {2, 2, 5}, 3, {0, 2}, {2, 3}, 0}, /* (a a)(d) */
      {{4, 4}, 2, {5}, 1, {0, 1}, {1, 1}, 1},       /* a word without a frame */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_word got[4];
    uint64_t forced;
    assert_ok(wf_word_aligner_words(aligner, cases[i].words, (size_t)cases[i].num_words,
                                    cases[i].labels, (size_t)cases[i].num_labels, got, &forced,
                                    &err));
    assert_int_equal(forced, cases[i].forced);
    for (int w = 0; w < cases[i].num_words; w++)
      if (got[w].label != cases[i].words[w] || got[w].start_frame != cases[i].start[w] ||
          got[w].end_frame != cases[i].end[w])
        fail_msg("case %zu, word %d: %d-%d", i, w, got[w].start_frame, got[w].end_frame);
  }
  /* through a lattice: all words on the first arcs, all labels in the final weight */
  for (size_t i = 0; i < 8; i++) {
    if (cases[i].forced > 0) continue;
    wf__compact_arrays arrays = {0};
    wf_compact_lattice *lattice, *aligned;
    for (int w = 0; w < cases[i].num_words; w++) {
      assert_ok(wf__compact_add_state(&arrays, (wf_compact_weight){.graph_cost = INFINITY}, &err));
      assert_ok(wf__compact_push(&arrays, (wf_compact_arc){cases[i].words[w], w + 1, {0}}, &err));
    }
    assert_ok(wf__compact_add_state(
        &arrays, (wf_compact_weight){0, 0, (uint32_t)cases[i].num_labels, 0}, &err));
    for (int l = 0; l < cases[i].num_labels; l++)
      assert_ok(wf__vec_push(&arrays.labels, cases[i].labels[l], "test", &err));
    assert_ok(wf__compact_finish(WF_OK, &arrays, &lattice, &err));
    assert_ok(wf_compact_lattice_align(lattice, aligner, NULL, &aligned, NULL, &err));
    test_lattice_paths paths = test_paths_of_compact(aligned, 10);
    assert_int_equal(paths.size, 1);
    for (int w = 0; w < cases[i].num_words; w++)
      assert_int_equal(paths.paths[0].word_frames[w], cases[i].start[w]);
    test_paths_free(&paths);
    wf_compact_lattice_free(lattice);
    wf_compact_lattice_free(aligned);
  }
  wf_word_aligner_free(aligner);
}

/* Labels of another model, words without labels, any lattice: the paths stay the same. */
static void test_unrelated_lattices_keep_their_paths(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {77};
  wf_word_aligner *aligners[] = {marked_aligner(), position_aligner()};
  uint64_t all_forced = 0;
  for (int i = 0; i < 600; i++) {
    test_lattice_shape shape = {.num_frames = 1 + (int)test_below(&rng, 5),
                                .num_words = 4,
                                .num_labels = i % 2 == 0 ? 8 : 40,
                                .epsilon_share = 0.4f,
                                .eighths = 4};
    wf_compact_lattice *lattice = test_random_compact(&rng, &shape, i % 3 == 0), *aligned;
    uint64_t forced;
    assert_ok(wf_compact_lattice_align(lattice, aligners[i % 2], NULL, &aligned, &forced, &err));
    test_lattice_paths before = test_paths_of_compact(lattice, 200000),
                       after = test_paths_of_compact(aligned, 200000);
    assert_true(test_same_paths(&before, &after));
    all_forced += forced;
    test_paths_free(&before);
    test_paths_free(&after);
    wf_compact_lattice_free(lattice);
    wf_compact_lattice_free(aligned);
  }
  assert_true(all_forced > 100);
  test_lattice_shape shape = {
      .num_frames = 12, .num_words = 4, .num_labels = 8, .epsilon_share = 0, .eighths = 4};
  wf_compact_lattice *lattice = test_random_compact(&rng, &shape, false), *aligned;
  wf_lattice_align_options options;
  wf_lattice_align_options_init(&options);
  options.max_arcs = 5;
  assert_int_equal(wf_compact_lattice_align(lattice, aligners[0], &options, &aligned, NULL, &err),
                   WF_ERR_LIMIT);
  wf_compact_lattice_free(lattice);
  wf_word_aligner_free(aligners[0]);
  wf_word_aligner_free(aligners[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_utterances_as_single_paths),
      cmocka_unit_test(test_utterances_as_lattices),
      cmocka_unit_test(test_labels_on_later_arcs),
      cmocka_unit_test(test_lexicon_aligner),
      cmocka_unit_test(test_lexicon_words_that_share_a_run),
      cmocka_unit_test(test_unrelated_lattices_keep_their_paths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
