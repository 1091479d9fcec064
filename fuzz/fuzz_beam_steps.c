/* fuzz_beam_steps.c - sequences of calls of step-wise beam searches, with a trie of words, any tokens
 * or tokens that spell words, and with language models that fail. A search whose frames were not freed must have the
 * hypotheses of the utterance in one piece; after an error within a frame it must refuse to go on,
 * and keep its complete frames. */
#include "call_sequences.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COLUMNS = 4, MAX_FRAMES = 40, NUM_SEARCHES = 2 };

/* Words 0 to 3 are spelled 1, 12, 21 and 12. */
static const wf_beam_node nodes[] = {{-1, 0, 1, 2, 0, 0},
                                     {1, -0.5f, 3, 1, 0, 1},
                                     {2, -0.25f, 4, 1, 0, 0},
                                     {2, -1.5f, 0, 0, 1, 2},
                                     {1, 0.75f, 0, 0, 3, 1}};
static const int32_t words[] = {0, 1, 3, 2};
static const wf_beam_text texts[COLUMNS] = {
    {"", false, false}, {"a", false, false}, {"ab", true, false}, {"b", false, true}};

struct model {
  uint64_t calls, fails_at;
};

/* The history is the last two words. */
static bool score(void *user, int64_t history, int32_t word, int64_t *next, double *out) {
  struct model *m = user;
  *next = (history * 8 + word + 2) % 64;
  *out = -(double)((history * 7 + word * 5 + 47) % 11) / 4;
  return ++m->calls != m->fails_at;
}

struct one {
  wf_beam_search *search;
  float scores[MAX_FRAMES * COLUMNS];
  int64_t fed;
  int32_t freed; /* frames */
  bool failed, ended;
};

struct world {
  struct model model;
  wf_beam_searcher *searcher;
  wf_beam_options options;
  bool has_texts;
  float transitions[COLUMNS * COLUMNS];
  struct one searches[NUM_SEARCHES];
};

static void make_searcher(struct world *w, bytes *in) {
  static const float beams[] = {0.5f, 3, 50};
  wf_error err;
  wf_beam_options *o = &w->options;
  wf_beam_parts parts = {.silence = 3};
  const uint32_t kind = take(in, 8);
  wf_beam_options_init(o);
  w->has_texts = take(in, 3) == 0;
  if (w->has_texts) {
    parts.texts = texts;
    parts.num_texts = COLUMNS;
  }
  if ((kind & 1) != 0 && !w->has_texts) {
    parts.nodes = nodes;
    parts.num_nodes = sizeof nodes / sizeof *nodes;
    parts.words = words;
    parts.num_words = sizeof words / sizeof *words;
  }
  if ((kind & 2) != 0 && !w->has_texts) {
    parts.lm_fn = score;
    parts.user = &w->model;
  }
  if ((kind & 4) != 0 && !w->has_texts && take(in, 2) == 0) {
    o->asg = true;
    for (int i = 0; i < COLUMNS * COLUMNS; i++) w->transitions[i] = (float)(i * 7 % 5) / -4;
    parts.transitions = w->transitions;
    parts.num_transitions = COLUMNS * COLUMNS;
  }
  o->beam = beams[take(in, 3)];
  o->beam_size = 1 + (int32_t)take(in, 20);
  o->beam_size_token = (int32_t)take(in, 4);
  o->sum_alignments = take(in, 2);
  o->unknown_words = take(in, 4) == 0;
  o->hold_word_ends = take(in, 2);
  o->token_lm = take(in, 4) == 0;
  o->blank_skip = take(in, 3) == 0 ? 0.7f : 0;
  o->word_score = (float)take(in, 4) / 4;
  o->nbest = (int32_t)take(in, 4);
  o->merge_histories = take(in, 2);
  CHECK_OK(wf_beam_searcher_create(&parts, &w->searcher, &err));
}

static void begin(struct world *w, struct one *s, uint64_t seed) {
  wf_error err;
  wf_beam_search_free(s->search);
  *s = (struct one){0};
  for (int i = 0; i < MAX_FRAMES * COLUMNS; i++)
    s->scores[i] = below(&seed, 60) == 0 ? -INFINITY : -(float)below(&seed, 64) / 16;
  CHECK_OK(wf_beam_search_create(w->searcher, NULL, &w->options, &s->search, &err));
}

/* A long way back there is no path. */
static int32_t num_frames(const struct one *s) {
  wf_error err;
  wf_beam_result *none;
  CHECK_OK(wf_beam_search_result(s->search, MAX_FRAMES + 1, &none, &err));
  CHECK(none->num_paths == 0);
  const int32_t num = none->num_frames;
  wf_beam_result_free(none);
  return num;
}

static void step(struct one *s, int64_t count, bool is_bad) {
  wf_error err;
  float bad[COLUMNS] = {0, 0, NAN, 0};
  if (count > MAX_FRAMES - s->fed) count = MAX_FRAMES - s->fed;
  wf_scores chunk = rows_of(s->scores, s->fed, count, COLUMNS);
  if (is_bad) chunk = rows_of(bad, 0, 1, COLUMNS);
  const int32_t before = num_frames(s);
  const wf_status status = wf_beam_search_advance(s->search, &chunk, &err);
  CHECK((status == WF_ERR_STATE) == (s->failed || s->ended));
  const int32_t made = num_frames(s) - before;
  CHECK(status == WF_OK ? made == chunk.num_frames : made >= 0 && made <= chunk.num_frames);
  if (status == WF_OK)
    s->fed += count;
  else if (status != WF_ERR_STATE)
    s->failed = true;
}

static void prune(const struct world *w, struct one *s, int32_t look_back) {
  wf_error err;
  const int32_t before = num_frames(s);
  const wf_status status = wf_beam_search_prune(s->search, look_back, &err);
  CHECK((status == WF_ERR_UNSUPPORTED) == w->has_texts);
  if (w->has_texts) return;
  CHECK((status == WF_ERR_STATE) == s->failed);
  CHECK(status == WF_OK || s->failed);
  s->freed += before - num_frames(s);
}

static void read_best(const struct one *s, int32_t look_back) {
  wf_error err;
  wf_beam_result *best;
  CHECK_OK(wf_beam_search_result(s->search, look_back, &best, &err));
  CHECK(best->num_paths <= 1 && best->length <= num_frames(s) + 1);
  for (int32_t t = 0; best->num_paths > 0 && t < best->length; t++)
    CHECK(best->paths->tokens[t] >= -1 && best->paths->tokens[t] < COLUMNS &&
          best->paths->words[t] >= -1 && best->paths->words[t] < COLUMNS);
  wf_beam_result_free(best);
}

/* expected: the hypotheses of another search of the same frames; or NULL. */
static void check_paths(const struct one *s, const wf_beam_result *expected) {
  wf_error err;
  wf_beam_result *paths;
  CHECK_OK(wf_beam_search_result(s->search, -1, &paths, &err));
  CHECK(paths->length == num_frames(s) + 1);
  for (size_t i = 1; i < paths->num_paths; i++)
    CHECK(paths->paths[i].score <= paths->paths[i - 1].score);
  if (expected != NULL) {
    CHECK(paths->num_paths == expected->num_paths && paths->length == expected->length);
    for (size_t i = 0; i < paths->num_paths; i++) {
      const wf_beam_path *x = &paths->paths[i], *y = &expected->paths[i];
      const size_t length = (size_t)paths->length * sizeof *x->words;
      CHECK(x->score == y->score && x->token_score == y->token_score &&
            x->lm_score == y->lm_score && memcmp(x->words, y->words, length) == 0 &&
            memcmp(x->tokens, y->tokens, length) == 0);
    }
  }
  wf_beam_result_free(paths);
}

static void end(struct world *w, struct one *s) {
  wf_error err;
  wf_beam_result *expected;
  const wf_status status = wf_beam_search_finish(s->search, &err);
  CHECK((status == WF_ERR_STATE) == (s->failed || s->ended));
  if (status == WF_ERR_STATE) return;
  CHECK(status == WF_OK || w->model.fails_at > 0);
  if (status != WF_OK) return (void)(s->failed = true);
  s->ended = true;
  if (s->freed > 0) return;
  const wf_beam_input whole = {.scores = rows_of(s->scores, 0, s->fed, COLUMNS), .lm_state = -1};
  w->model.fails_at = 0;
  CHECK_OK(wf_beam_decode(w->searcher, &whole, 1, &w->options, &expected, &err));
  CHECK(expected->status == WF_OK);
  check_paths(s, expected);
  wf_beam_result_free(expected);
}

static void one_call(struct world *w, bytes *in) {
  const uint32_t call = take(in, 12);
  struct one *s = &w->searches[take(in, NUM_SEARCHES)];
  switch (call) {
    case 4: step(s, 0, false); return;
    case 5: step(s, 1, true); return;
    case 6: prune(w, s, (int32_t)take(in, 5)); return;
    case 7: read_best(s, (int32_t)take(in, 5)); return;
    case 8: check_paths(s, NULL); return;
    case 9: end(w, s); return;
    case 10: begin(w, s, take(in, 256)); return;
    case 11: w->model.fails_at = w->model.calls + take(in, 20); return;
    default: step(s, take(in, 5), false); return;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct world w;
  bytes in = {data, data + size};
  memset(&w, 0, sizeof w);
  make_searcher(&w, &in);
  for (int i = 0; i < NUM_SEARCHES; i++) begin(&w, &w.searches[i], take(&in, 256));
  for (int i = 0; i < 200 && in.at < in.end; i++) one_call(&w, &in);
  for (int i = 0; i < NUM_SEARCHES; i++) {
    end(&w, &w.searches[i]);
    wf_beam_search_free(w.searches[i].search);
  }
  wf_beam_searcher_free(w.searcher);
  return 0;
}
