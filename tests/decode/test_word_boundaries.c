/* test_word_boundaries.c - word times that a graph with a word aligner gives. For random lexicons,
 * grammars and scores, every alignment of the words to the labels of the best path is tried.
 * Streams, batches and partials agree. Graphs are written, read again, and damaged. */
#include <unistd.h>

#include "fst/fst.h"
#include "graph/word_aligner.h"
#include "testing.h"

enum {
  NUM_TOKENS = 5,
  BLANK = 0,
  BLANK_LABEL = 1,
  SILENCE = 4,
  MAX_WORDS = 8,
  MAX_PRONUNCIATIONS = 3,
  MAX_LENGTH = 4,
  MAX_FRAMES = 40,
  ADDED = 100,
  LOOK_AHEAD = 8 /* words after a word that decide its length */
};
static wf_error err;

/* --- random tasks ------------------------------------------------------------------------ */

struct spelled {
  int32_t word, labels[MAX_LENGTH + 1];
  int count;
};

/* Words "w0", "w1" ... over tokens t1 .. t3; t4 is silence; the added word w100. */
struct task {
  struct spelled all[MAX_WORDS * MAX_PRONUNCIATIONS + 1];
  int num_spelled, num_words;
  bool silence, spoken_silence, classes;
  wf_graph *graph,
      *base; /* with and without the added word; base is NULL if there are no classes */
  wf_fst *fst;
  float scores[MAX_FRAMES * NUM_TOKENS];
  int64_t num_frames;
  wf_decoder_options options;
};

static const char *const token_names[NUM_TOKENS] = {"<blk>", "a", "b", "c", "sil"};

static wf_symbols *make_tokens(void) {
  wf_symbols *tokens;
  assert_ok(wf_symbols_create("tokens", &tokens, &err));
  for (int64_t i = 0; i < NUM_TOKENS; i++)
    assert_ok(wf_symbols_add(tokens, token_names[i], i, NULL, &err));
  return tokens;
}

/* Writes the lexicon to `path`. No two words sound the same, so the best path's words are the only
 * ones that fit its labels. */
static void make_lexicon(struct task *task, test_rng *rng, const char *path) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  task->num_words = 1 + (int)test_below(rng, MAX_WORDS);
  for (int w = 0; w < task->num_words; w++) {
    int count = 1 + (int)test_below(rng, MAX_PRONUNCIATIONS);
    for (int p = 0; p < count; p++) {
      struct spelled *spelled = &task->all[task->num_spelled++];
      *spelled = (struct spelled){.count = 1 + (int)test_below(rng, MAX_LENGTH)};
      fprintf(file, "w%d", w);
      for (int i = 0; i < spelled->count; i++) {
        spelled->labels[i] = 2 + (int32_t)test_below(rng, task->spoken_silence ? 4 : 3);
        fprintf(file, " %s", token_names[spelled->labels[i] - 1]);
      }
      fprintf(file, "\n");
      spelled->word = -1 - w; /* until the table exists */
    }
  }
  fclose(file);
}

/* Any sequence of words, at random costs. */
static wf_fst *make_grammar(const struct task *task, test_rng *rng, const wf_symbols *words) {
  wf_builder *builder;
  wf_fst *grammar;
  char text[16];
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, 0, 0, &err));
  for (int w = 0; w < task->num_words + task->classes; w++) {
    if (w < task->num_words)
      snprintf(text, sizeof text, "w%d", w);
    else
      snprintf(text, sizeof text, "<c>");
    int32_t label = (int32_t)wf_symbols_find(words, text);
    assert_true(label > 0);
    assert_ok(wf_builder_add_arc(builder, 0,
                                 (wf_arc){0, (float)test_below(rng, 8) / 4, label, label}, &err));
  }
  assert_ok(wf_builder_finish(builder, words, words, &grammar, &err));
  wf_builder_free(builder);
  return grammar;
}

static void add_word(struct task *task, test_rng *rng) {
  struct spelled *spelled = &task->all[task->num_spelled++];
  *spelled = (struct spelled){.word = ADDED, .count = 1 + (int)test_below(rng, MAX_LENGTH)};
  for (int i = 0; i < spelled->count; i++) spelled->labels[i] = 2 + (int32_t)test_below(rng, 3);
  wf_spoken_word word = {ADDED, spelled->labels, (size_t)spelled->count};
  wf_added_phrase phrase = {&word, 1, 0};
  task->base = task->graph;
  assert_ok(wf_graph_add_phrases(task->base, "<c>", &phrase, 1, &task->graph, &err));
}

static void make_scores(struct task *task, test_rng *rng) {
  task->num_frames = 1 + (int64_t)test_below(rng, MAX_FRAMES);
  for (int64_t i = 0; i < task->num_frames * NUM_TOKENS; i++)
    task->scores[i] = -(float)test_below(rng, 64) / 8 - 0.125f;
  wf_decoder_options_init(&task->options);
  task->options.beam = 30;
  task->options.num_threads = 1;
  task->options.blank = BLANK;
  if (test_below(rng, 3) == 0) task->options.blank_skip_threshold = 0.5f;
}

static void make_task(struct task *task, test_rng *rng, const char *folder) {
  char path[512];
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_result made;
  wf_symbols *tokens = make_tokens(), *words;
  wf_lexicon *lexicon;
  *task = (struct task){.silence = test_below(rng, 3) == 0};
  task->classes = !task->silence && test_below(rng, 2) == 0;
  task->spoken_silence = task->silence && test_below(rng, 3) == 0;
  snprintf(path, sizeof path, "%s/lexicon.txt", folder);
  make_lexicon(task, rng, path);
  assert_ok(wf_lexicon_read(path, tokens, NULL, &lexicon, &err));
  assert_ok(wf_lexicon_words(lexicon, &words, &err));
  if (task->classes) assert_ok(wf_symbols_add(words, "<c>", -1, NULL, &err));
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  options.topology = task->classes ? 1 : (int32_t)test_below(rng, 4);
  if (task->silence) options.silence = "sil";
  if (task->classes) options.classes = "<c>";
  parts.lexicon = lexicon;
  wf_fst *grammar = make_grammar(task, rng, words);
  parts.grammar = grammar;
  assert_ok(wf_graph_build(&parts, &options, &made, &err));
  for (int i = 0; i < task->num_spelled; i++) {
    char text[16];
    snprintf(text, sizeof text, "w%d", -1 - task->all[i].word);
    task->all[i].word = (int32_t)wf_symbols_find(made.words, text);
  }
  task->fst = wf_fst_ref(made.graph);
  assert_ok(wf_graph_create(made.graph, NULL, 0, &task->graph, &err));
  if (task->classes) add_word(task, rng);
  make_scores(task, rng);
  wf_graph_result_clear(&made);
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
  wf_symbols_free(tokens);
}

static void free_task(struct task *task) {
  wf_graph_free(task->graph);
  wf_graph_free(task->base);
  wf_fst_free(task->fst);
}

/* --- every alignment of words to labels -------------------------------------------------- */

/* A run of frames with one label is one token. If the token occurs several times in a row, the run
 * may be several tokens, of which all but the last have one frame. */
struct search {
  const struct task *task;
  const wf_result *result;
  const int32_t *labels;
  int num_frames;
  signed char fits[MAX_FRAMES + 1][64];
};

static bool is_silent(const struct search *s, int frame) {
  return s->labels[frame] == 0 || s->labels[frame] == BLANK_LABEL;
}

static int skip_blanks(const struct search *s, int frame) {
  while (frame < s->num_frames && is_silent(s, frame)) frame++;
  return frame;
}

/* Skipped frames (label 0) do not end a run. */
static int run_end(const struct search *s, int frame) {
  int end = frame + 1;
  for (int t = end; t < s->num_frames && (s->labels[t] == 0 || s->labels[t] == s->labels[frame]);
       t++)
    if (s->labels[t] != 0) end = t + 1;
  return end;
}

/* Does a run continue across the start of the frame? */
static bool is_within_run(const struct search *s, int frame) {
  int before = frame - 1, behind = frame;
  while (before >= 0 && s->labels[before] == 0) before--;
  while (behind < s->num_frames && s->labels[behind] == 0) behind++;
  return before >= 0 && behind < s->num_frames && s->labels[before] == s->labels[behind] &&
         s->labels[behind] != BLANK_LABEL;
}

static bool rest_fits(struct search *s, int frame, size_t word);

/* Matches a pronunciation from its token `at` on, starting at `frame`. Returns the furthest end of
 * the word after which the remaining words fit, or -1. *first receives the first frame. */
static int furthest_end(struct search *s, const struct spelled *spelled, int at, int frame,
                        size_t word, int *first) {
  frame = skip_blanks(s, frame);
  if (frame == s->num_frames || s->labels[frame] != spelled->labels[at]) return -1;
  int end = run_end(s, frame), best = -1, unused;
  if (at == 0) *first = frame;
  bool last = at + 1 == spelled->count;
  for (int whole = 0; whole < 2;
       whole++) { /* try one frame of the run (if the same token may follow), then the whole run */
    int to = whole ? end : frame + 1, reached;
    if (!whole && (end - frame < 2 || (!last && spelled->labels[at + 1] != spelled->labels[at])))
      continue;
    reached = last ? (rest_fits(s, to, word + 1) ? to : -1)
                   : furthest_end(s, spelled, at + 1, to, word, &unused);
    if (reached > best) best = reached;
  }
  return best;
}

/* The furthest end of a word from here. Silence before the word is not part of it. */
static int lay_word(struct search *s, int frame, size_t word, int *first) {
  for (;;) {
    int best = -1;
    for (int i = 0; i < s->task->num_spelled; i++) {
      int from, end;
      if (s->task->all[i].word != s->result->words[word].label) continue;
      end = furthest_end(s, &s->task->all[i], 0, frame, word, &from);
      if (end > best) best = end, *first = from;
    }
    if (best >= 0) return best;
    frame = skip_blanks(s, frame);
    if (frame == s->num_frames || s->labels[frame] != SILENCE + 1 || is_within_run(s, frame))
      return -1;
    frame = run_end(s, frame);
  }
}

static bool rest_fits(struct search *s, int frame, size_t word) {
  signed char *known = &s->fits[frame][word];
  if (*known == 0) {
    int first, from = frame;
    if (word < s->result->num_words) {
      *known = lay_word(s, frame, word, &first) >= 0 ? 1 : -1;
      return *known > 0;
    }
    if (is_within_run(s, frame)) from = -1; /* part of a run is left */
    while (from >= 0 && (from = skip_blanks(s, from)) < s->num_frames)
      from = s->labels[from] == SILENCE + 1 ? run_end(s, from) : -1;
    *known = from >= 0 ? 1 : -1;
  }
  return *known > 0;
}

/* Compares the times of the result with those found by trying all alignments. Returns false if no
 * alignment fits. */
static bool has_right_times(const struct task *task, const wf_result *result) {
  struct search s = {.task = task,
                     .result = result,
                     .labels = result->alignment,
                     .num_frames = (int)result->num_decoded};
  assert_true(result->num_words < 64);
  if (!rest_fits(&s, 0, 0)) return false;
  int frame = 0;
  for (size_t w = 0; w < result->num_words; w++) {
    int first = 0;
    frame = lay_word(&s, frame, w, &first);
    assert_int_equal(result->words[w].start_frame, first);
    assert_int_equal(result->words[w].end_frame, frame);
  }
  return true;
}

/* --- streams ----------------------------------------------------------------------------- */

struct shown {
  wf_word words[64];
  size_t count; /* number of stable words that a partial has returned, without the last one */
};

static void check_partial(struct shown *shown, const wf_partial *partial) {
  assert_true(partial->num_stable <= partial->num_words && partial->num_words < 64);
  size_t now = partial->num_stable > 0 ? partial->num_stable - 1 : 0;
  assert_true(now >= shown->count);
  for (size_t w = 0; w < shown->count; w++)
    assert_memory_equal(&partial->words[w], &shown->words[w], sizeof(wf_word));
  if (now > 0) memcpy(shown->words, partial->words, now * sizeof(wf_word));
  shown->count = now;
}

static void check_stream(const struct task *task, wf_decoder *decoder, const wf_result *whole,
                         test_rng *rng, bool forget) {
  wf_stream_options options;
  wf_stream *stream;
  wf_result *result;
  struct shown shown = {.count = 0};
  wf_stream_options_init(&options);
  options.forget = forget;
  assert_ok(wf_stream_create(decoder, &options, &stream, &err));
  if (task->classes) assert_ok(wf_stream_set_graph(stream, task->graph, &err));
  size_t forgotten = 0;
  for (int64_t fed = 0; fed < task->num_frames;) {
    int64_t size = test_below(rng, 6), left = task->num_frames - fed;
    wf_scores chunk = {task->scores + fed * NUM_TOKENS, size < left ? size : left, NUM_TOKENS,
                       NUM_TOKENS};
    wf_partial partial;
    assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
    fed += chunk.num_frames;
    if (test_below(rng, 2) == 0) continue;
    assert_ok(wf_stream_partial(stream, &partial, &err));
    if (!forget) {
      check_partial(&shown, &partial);
      continue;
    }
    for (size_t w = 0; w + 1 < partial.num_stable; w++)
      assert_memory_equal(&partial.words[w], &whole->words[forgotten + w], sizeof(wf_word));
    forgotten += partial.num_stable > 0 ? partial.num_stable - 1 : 0;
  }
  assert_ok(wf_stream_finish(stream, &result, &err));
  assert_int_equal(result->num_words, whole->num_words - forgotten);
  for (size_t w = 0; w < result->num_words; w++)
    assert_memory_equal(&result->words[w], &whole->words[forgotten + w], sizeof(wf_word));
  for (size_t w = 0; w < shown.count; w++)
    assert_memory_equal(&shown.words[w], &whole->words[w], sizeof(wf_word));
  if (!forget) assert_int_equal(result->num_estimated, whole->num_estimated);
  wf_result_free(result);
  wf_stream_free(stream);
}

static void test_word_times(void **state) {
  uint64_t num_words = 0, several = 0, not_final = 0, added = 0, with_silence = 0;
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    struct task task;
    test_rng rng = {seed};
    wf_decoder *decoder;
    wf_result *result;
    make_task(&task, &rng, *state);
    const wf_graph *own = task.graph;
    wf_scores scores = {task.scores, task.num_frames, NUM_TOKENS, NUM_TOKENS};
    assert_ok(
        wf_decoder_create(task.classes ? task.base : task.graph, &task.options, &decoder, &err));
    assert_ok(test_decode_each(decoder, &scores, NULL, task.classes ? &own : NULL, 1, NULL, &result,
                               &err));
    assert_int_equal(result->status, WF_OK);
    if (!(result->flags & WF_RESULT_NOT_FINAL) && result->num_words <= LOOK_AHEAD + 1) {
      assert_true(has_right_times(&task, result));
      assert_int_equal(result->num_estimated, 0);
      num_words += result->num_words;
      several += result->num_words > 1;
    }
    not_final += (result->flags & WF_RESULT_NOT_FINAL) != 0;
    for (size_t w = 0; w < result->num_words; w++) added += result->words[w].label == ADDED;
    for (int64_t t = 0; t < result->num_decoded; t++)
      with_silence += result->alignment[t] == SILENCE + 1;
    for (size_t w = 0; w < result->num_words; w++)
      assert_true(result->words[w].start_frame <= result->words[w].end_frame &&
                  (w == 0 || result->words[w - 1].end_frame <= result->words[w].start_frame));
    for (int k = 0; k < 3; k++) check_stream(&task, decoder, result, &rng, k == 2);
    wf_result_free(result);
    wf_decoder_free(decoder);
    free_task(&task);
  }
  assert_true(num_words > 3000 && several > 700 && not_final > 0 && added > 100 &&
              with_silence > 100);
}

/* --- files ------------------------------------------------------------------------------- */

static wf_fst *a_graph(const char *folder) {
  struct task task;
  test_rng rng = {4};
  make_task(&task, &rng, folder);
  wf_fst *fst = wf_fst_ref(task.fst);
  free_task(&task);
  return fst;
}

static void test_graph_files(void **state) {
  char path[512], again[512];
  wf_fst *fst = a_graph(*state), *read, *bare, *sorted;
  wf_word_aligner *aligner;
  snprintf(path, sizeof path, "%s/graph.wfst", (const char *)*state);
  snprintf(again, sizeof again, "%s/again.wfst", (const char *)*state);
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_NATIVE, &err));
  assert_ok(wf_fst_read(path, &read, &err));
  assert_ok(wf_word_aligner_from_fst(read, &aligner, &err));
  assert_string_equal(wf_word_aligner_unit_text(aligner, 2), "a");
  uint64_t size[2];
  const void *bytes[2] = {wf__fst_boundaries(fst, &size[0]), wf__fst_boundaries(read, &size[1])};
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  assert_ok(wf_arcsort(read, NULL, &sorted,
                       &err)); /* arcsort keeps the aligner; other operations may drop it */
  assert_non_null(wf__fst_boundaries(sorted, &size[1]));
  /* without an aligner: files of version 1, and estimated times */
  assert_ok(wf_fst_with_word_aligner(read, NULL, &bare, &err));
  assert_ok(wf_fst_write(bare, again, WF_FORMAT_NATIVE, &err));
  wf_fst_free(bare);
  assert_ok(wf_fst_read(again, &bare, &err));
  wf_word_aligner *none = aligner;
  assert_int_equal(wf_word_aligner_from_fst(bare, &none, &err), WF_ERR_UNSUPPORTED);
  assert_null(none);
  /* with the aligner again */
  wf_fst *with;
  assert_ok(wf_fst_with_word_aligner(bare, aligner, &with, &err));
  bytes[1] = wf__fst_boundaries(with, &size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  wf_fst *all[] = {fst, read, bare, sorted, with};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wf_fst_free(all[i]);
  wf_word_aligner_free(aligner);
}

/* Any bytes give either an error that names the file, or an aligner that can be used. */
static void try_bytes(const uint8_t *bytes, uint64_t size, uint64_t *accepted) {
  static const int32_t words[] = {1, 2, 3, 100}, labels[] = {1, 2, 2, 0, 3, 5, 4, 4, 2, 1000000, 3};
  wf_word_aligner *aligner;
  wf_word placed[4];
  err = (wf_error){0};
  if (wf__word_aligner_decode(bytes, size, "graph.wfst", &aligner, &err) != WF_OK) {
    assert_null(aligner);
    assert_non_null(strstr(err.message, "graph.wfst"));
    return;
  }
  assert_ok(wf_word_aligner_words(aligner, words, 4, labels, sizeof labels / sizeof *labels, placed,
                                  NULL, &err));
  for (int32_t unit = -1; unit < 8; unit++) (void)wf_word_aligner_unit_text(aligner, unit);
  wf_word_aligner_free(aligner);
  ++*accepted;
}

static void test_damaged_files(void **state) {
  wf_fst *fst = a_graph(*state);
  uint64_t size, accepted = 0, whole = 0;
  const uint8_t *bytes = wf__fst_boundaries(fst, &size);
  uint8_t *changed = malloc(size + 1);
  assert_non_null(changed);
  try_bytes(bytes, size, &whole);
  assert_int_equal(whole, 1);
  for (uint64_t cut = 0; cut < size; cut++) {
    memcpy(changed, bytes, size);
    try_bytes(changed, cut, &accepted);
  }
  assert_int_equal(accepted, 0);
  for (uint64_t at = 0; at < size; at++)
    for (int bit = 0; bit < 8; bit++) {
      memcpy(changed, bytes, size);
      changed[at] ^= (uint8_t)(1 << bit);
      try_bytes(changed, size, &accepted);
    }
  assert_true(accepted < size * 8);
  free(changed);
  wf_fst_free(fst);
}

/* A lexicon by which every word can end in many places, and no alignment reaches the end. The
 * search must not take exponential time. */
static void test_lexicon_with_many_alignments(void **state) {
  enum { NUM_SAID = 60, NUM_LABELS = 1200, MOST_UNITS = 16 };
  char path[512];
  wf_symbols *tokens = make_tokens(), *words;
  wf_lexicon *lexicon;
  wf_word_aligner *aligner;
  int32_t said[NUM_SAID], labels[NUM_LABELS];
  wf_word placed[NUM_SAID];
  uint64_t forced;
  snprintf(path, sizeof path, "%s/lexicon.txt", (const char *)*state);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int count = 1; count <= MOST_UNITS; count++) {
    fprintf(file, "word");
    for (int i = 0; i < count; i++) fprintf(file, " a");
    fprintf(file, "\n");
  }
  fclose(file);
  assert_ok(wf_lexicon_read(path, tokens, NULL, &lexicon, &err));
  assert_ok(wf_lexicon_words(lexicon, &words, &err));
  assert_ok(wf_word_aligner_from_lexicon(lexicon, words, &aligner, &err));
  for (int i = 0; i < NUM_SAID; i++) said[i] = (int32_t)wf_symbols_find(words, "word");
  for (int t = 0; t < NUM_LABELS; t++) labels[t] = t % 3 == 2 ? BLANK_LABEL : 2;
  assert_ok(
      wf_word_aligner_words(aligner, said, NUM_SAID, labels, NUM_LABELS, placed, &forced, &err));
  for (int i = 0; i < NUM_SAID; i++)
    assert_true(placed[i].start_frame <= placed[i].end_frame &&
                (i == 0 || placed[i - 1].end_frame <= placed[i].start_frame));
  wf_word_aligner_free(aligner);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
  wf_symbols_free(tokens);
}

static int make_folder(void **state) {
  static char folder[] = "word_boundaries.XXXXXX";
  *state = mkdtemp(folder);
  return *state == NULL;
}

static int remove_folder(void **state) {
  static const char *const files[] = {"lexicon.txt", "graph.wfst", "again.wfst"};
  char path[512];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", (const char *)*state, files[i]);
    unlink(path);
  }
  return rmdir(*state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_word_times),
      cmocka_unit_test(test_graph_files),
      cmocka_unit_test(test_damaged_files),
      cmocka_unit_test(test_lexicon_with_many_alignments),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
