/* beam_result.c - follows back-pointers: results, and frames that can be freed. */
#include <string.h>

#include "compat/beam.h"

enum { MOST_FURTHER = 100 }; /* frames to look for the end of a word */

/* The place of the best hypothesis in the newest frame. The frame is not empty. */
static uint32_t best_place(const wf_beam_search *s) {
  uint64_t frame = wf__beam_newest(s), size = wf__beam_frame_size(s, frame);
  const wf__hypothesis *all = wf__beam_frame(s, frame);
  uint32_t best = 0;
  for (uint32_t k = 1; k < size; k++)
    if (all[k].score > all[best].score) best = k;
  return best;
}

/* Goes back from the best hypothesis: by `look_back` frames, and on to the end of a word. False:
 * that is before frame 1, or there is no hypothesis. */
static bool go_back(const wf_beam_search *s, int32_t look_back, uint64_t *frame, uint32_t *place) {
  uint64_t newest = wf__beam_newest(s);
  if (look_back < 0 || (uint64_t)look_back >= newest || wf__beam_frame_size(s, newest) == 0)
    return false;
  *frame = newest;
  *place = best_place(s);
  for (int32_t n = 0; *frame > 0 && n < look_back + MOST_FURTHER; n++) {
    const wf__hypothesis *at = wf__beam_frame(s, *frame) + *place;
    bool word_ended =
        s->searcher->num_nodes == 0 || wf__beam_frame(s, *frame - 1)[at->parent].word >= 0;
    if (n >= look_back && word_ended) break;
    *place = at->parent;
    --*frame;
  }
  return true;
}

/* --- results --------------------------------------------------------------------------------- */

/* The newest hypothesis of a path, for which arrays are ready. */
static void write_path(const wf_beam_search *s, uint64_t frame, uint32_t place,
                       wf_beam_path *path) {
  const bool spelled = s->searcher->num_texts > 0;
  const wf__hypothesis *at = wf__beam_frame(s, frame) + place;
  path->score = at->score;
  path->token_score = at->token_score;
  path->lm_score = at->lm_score;
  path->lm_state = wf__history_state(
      &s->histories, spelled ? s->prefixes.all.data[at->history].history : at->history);
  for (;; frame--) {
    path->words[frame] = at->word;
    path->tokens[frame] = at->token;
    if (frame == 0) break;
    at = wf__beam_frame(s, frame - 1) + at->parent;
  }
}

/* The words that the tokens of a path spell: reads them from left to right. With `out` NULL, sizes
 * alone. */
struct speller {
  wf_beam_word *out;
  char *letters;
  size_t num_words, num_letters;
  bool in_word;
};

static void end_word(struct speller *w) {
  if (!w->in_word) return;
  if (w->out != NULL) w->letters[w->num_letters] = 0;
  w->num_letters++;
  w->num_words++;
  w->in_word = false;
}

static void read_token(struct speller *w, const wf_beam_text *token, int32_t frame) {
  const size_t size = strlen(token->text);
  if (token->starts_word) end_word(w);
  if (size > 0) {
    if (w->out != NULL) {
      wf_beam_word *word = &w->out[w->num_words];
      if (!w->in_word) *word = (wf_beam_word){w->letters + w->num_letters, frame, 0};
      memcpy(w->letters + w->num_letters, token->text, size);
      word->end_frame = frame + 1;
    }
    w->num_letters += size;
    w->in_word = true;
  }
  if (token->ends_word) end_word(w);
}

/* The frame of the end has token -1. */
static void read_tokens(const wf_beam_search *s, const wf_beam_path *path, int32_t length,
                        struct speller *w) {
  for (int32_t i = 1; i < length; i++) {
    const int32_t token = path->tokens[i];
    if (token < 0)
      end_word(w);
    else if (token != path->tokens[i - 1] && token != s->blank)
      read_token(w, &s->searcher->texts[token], i - 1);
    else if (token != s->blank && w->in_word && w->out != NULL)
      w->out[w->num_words].end_frame = i;
  }
}

static wf_status spell(const wf_beam_search *s, int32_t length, wf__arena *memory,
                       wf_beam_path *path, wf_error *err) {
  struct speller sizes = {0}, w = {0};
  read_tokens(s, path, length, &sizes);
  const size_t bytes = (sizes.num_words + 1) * sizeof *w.out + sizes.num_letters + 1;
  w.out = wf__arena_alloc(memory, bytes);
  if (w.out == NULL) return wf__fail_memory(err, bytes, "words");
  w.letters = (char *)&w.out[sizes.num_words + 1];
  read_tokens(s, path, length, &w);
  path->spelled = w.out;
  path->num_spelled = w.num_words;
  return WF_OK;
}

static wf_status write_paths(const wf_beam_search *s, uint64_t frame, const wf__rank *ranks,
                             size_t count, wf_beam_result *out, wf_error *err) {
  const uint64_t length = frame + 1;
  out->paths = wf__calloc(count, sizeof *out->paths);
  out->memory = wf__calloc(1, sizeof(wf__arena));
  if (out->paths == NULL || out->memory == NULL)
    return wf__fail_memory(err, count * sizeof *out->paths, "paths");
  out->num_frames = (int32_t)wf__beam_newest(s);
  out->length = (int32_t)length;
  for (; out->num_paths < count; out->num_paths++) {
    wf_beam_path *path = &out->paths[out->num_paths];
    path->words = wf__arena_alloc(out->memory, 2 * length * sizeof *path->words);
    if (path->words == NULL) return wf__fail_memory(err, 2 * length * sizeof *path->words, "paths");
    path->tokens = path->words + length;
    write_path(s, frame, (uint32_t)ranks[out->num_paths].place, path);
    if (s->searcher->num_texts > 0) WF__TRY(spell(s, out->length, out->memory, path, err));
  }
  return WF_OK;
}

static wf_status write_best(const wf_beam_search *s, wf_beam_result *out, wf_error *err) {
  const uint64_t frame = wf__beam_newest(s), size = wf__beam_frame_size(s, frame);
  const uint64_t most = s->options.nbest > 0 ? (uint64_t)s->options.nbest : size;
  wf__rank *ranks = wf__alloc(size, sizeof *ranks);
  if (ranks == NULL) return wf__fail_memory(err, size * sizeof *ranks, "paths");
  for (uint64_t k = 0; k < size; k++)
    ranks[k] = (wf__rank){wf__beam_frame(s, frame)[k].score, k, k};
  wf__beam_sort(ranks, size);
  const wf_status status = write_paths(s, frame, ranks, most < size ? most : size, out, err);
  free(ranks);
  return status;
}

wf_status wf__beam_write_result(const wf_beam_search *s, int32_t look_back, wf_beam_result *out,
                                wf_error *err) {
  uint64_t frame = 0;
  uint32_t place = 0;
  if (look_back == -1) return write_best(s, out, err);
  const bool found = go_back(s, look_back, &frame, &place);
  return write_paths(s, frame, &(wf__rank){.place = place}, found, out, err);
}

wf_status wf_beam_search_result(const wf_beam_search *search, int32_t look_back,
                                wf_beam_result **out, wf_error *err) {
  wf__error_clear(err);
  *out = wf__calloc(1, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, sizeof **out, "a result");
  const wf_status status = wf__beam_write_result(search, look_back, *out, err);
  if (status == WF_OK) return WF_OK;
  wf_beam_result_free(*out);
  *out = NULL;
  return status;
}

void wf__beam_free_paths(wf_beam_result *result) {
  free(result->paths);
  if (result->memory != NULL) wf__arena_free(result->memory);
  free(result->memory);
  result->paths = NULL;
  result->memory = NULL;
  result->num_paths = 0;
}

void wf_beam_result_free(wf_beam_result *result) {
  if (result != NULL) wf__beam_free_paths(result);
  free(result);
}

/* --- freeing frames ------------------------------------------------------------------------- */

/* Keeps only histories that hypotheses have. */
static wf_status keep_histories(wf_beam_search *s, wf_error *err) {
  uint64_t num = s->histories.all.size;
  uint32_t *new_of = wf__alloc(num, sizeof *new_of);
  if (new_of == NULL) return wf__fail_memory(err, num * sizeof *new_of, "histories");
  memset(new_of, 0xff, num * sizeof *new_of);
  for (uint64_t k = 0; k < s->kept.size; k++) new_of[s->kept.data[k].history] = 0;
  wf_status status = wf__histories_keep(&s->histories, new_of, err);
  for (uint64_t k = 0; k < s->kept.size; k++)
    s->kept.data[k].history = new_of[s->kept.data[k].history];
  free(new_of);
  return status;
}

wf_status wf_beam_search_prune(wf_beam_search *s, int32_t look_back, wf_error *err) {
  wf__error_clear(err);
  uint64_t first = 0;
  uint32_t place = 0;
  if (s->searcher->num_texts > 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "the frames of tokens with texts cannot be freed");
  WF__TRY(wf__beam_check_whole(s, err));
  if (!go_back(s, look_back, &first, &place) || first == 0) return WF_OK;
  uint64_t cut = s->begins.data[first], num_frames = s->begins.size - first;
  s->kept.size -= cut;
  memmove(s->kept.data, s->kept.data + cut, s->kept.size * sizeof *s->kept.data);
  for (uint64_t i = 0; i < num_frames; i++) s->begins.data[i] = s->begins.data[i + first] - cut;
  s->begins.size = num_frames;
  uint64_t newest = num_frames - 1, size = wf__beam_frame_size(s, newest);
  wf__hypothesis *last = s->kept.data + s->begins.data[newest];
  double best = last[best_place(s)].score;
  for (uint64_t k = 0; k < size; k++) last[k].score -= best;
  const wf_status status = keep_histories(s, err);
  s->failed = status != WF_OK;
  return status;
}
