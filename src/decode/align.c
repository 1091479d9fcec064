/* align.c - forced alignment of a batch: checks the input and sets up the aligner of each
 * utterance.
 */
#include <stdio.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "decode/aligner.h"
#include "decode/host_scores.h"
#include "math/score.h"

static wf_status check_words(const wf_align_input *input, wf_error *err) {
  for (size_t w = 0; w < input->num_words; w++) {
    size_t start = w > 0 ? input->word_ends[w - 1] : 0;
    if (input->word_ends[w] <= start || input->word_ends[w] > input->num_tokens)
      return wf__fail(err, WF_ERR_ARGUMENT, "word %zu has the tokens %zu to %zu of %zu", w, start,
                      input->word_ends[w], input->num_tokens);
  }
  if (input->num_words > 0 && input->word_ends[input->num_words - 1] != input->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the words end at token %zu of %zu",
                    input->word_ends[input->num_words - 1], input->num_tokens);
  return WF_OK;
}

static wf_status check_input(const wf__aligner *a, wf_error *err) {
  const wf_align_input *input = a->input;
  int32_t blank = a->options->blank;
  const wf_scores *s = &input->scores;
  if (s->num_frames > 0 && blank >= s->num_columns)
    return wf__fail(err, WF_ERR_ARGUMENT, "the blank is column %d, the scores have %d columns",
                    blank, s->num_columns);
  if (input->num_tokens > INT32_MAX - 64)
    return wf__fail(err, WF_ERR_LIMIT, "%zu tokens", input->num_tokens);
  uint64_t needed = input->num_tokens;
  for (size_t i = 0; i < input->num_tokens; i++) {
    int32_t column = input->tokens[i];
    if (column == blank)
      return wf__fail(err, WF_ERR_ARGUMENT, "token %zu is column %d, the blank", i, column);
    if (column < 0 || (s->num_frames > 0 && column >= s->num_columns))
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "token %zu is column %d, which the scores do not have (%d columns)", i,
                      column, s->num_columns);
    if (i > 0 && column == input->tokens[i - 1]) needed++;
  }
  if (wf__align_has_skips(a)) needed = needed > 0;
  if (needed > (uint64_t)s->num_frames)
    return wf__fail(err, WF_ERR_ARGUMENT, "%lld frames, but %zu tokens%s need at least %llu",
                    (long long)s->num_frames, input->num_tokens,
                    needed > input->num_tokens ? " with blanks between equal ones" : "",
                    (unsigned long long)needed);
  return check_words(input, err);
}

static wf_status allocate(wf__aligner *a, wf_error *err) {
  bool gaps = wf__align_has_garbage(a) || wf__align_has_skips(a);
  uint64_t places = a->num_places, frames = (uint64_t)a->out->num_frames,
           columns = (uint64_t)a->input->scores.num_columns,
           segments = (frames + WF__ALIGN_SEGMENT - 1) / WF__ALIGN_SEGMENT,
           traced = frames < WF__ALIGN_SEGMENT ? frames : WF__ALIGN_SEGMENT,
           padded = wf__align_whole_blocks(places + WF__ALIGN_BLOCK - 1),
           reach = wf__align_whole_blocks(traced + 2) + 2 * WF__ALIGN_BLOCK,
           boundaries = gaps ? (a->input->num_words > 0 ? a->input->num_words : places - 1) + 1 : 0;
  a->padded = padded;
  a->start_size = 2 * padded + boundaries;
  a->back_size = gaps || padded < reach ? padded : reach;
  uint64_t floats =
      4 * (padded + WF__ALIGN_BLOCK) + 2 * boundaries + segments * a->start_size + WF__ALIGN_BLOCK;
  a->used = wf__alloc(columns + WF__ALIGN_USED_STEP, sizeof *a->used);
  a->row = wf__alloc(columns, sizeof *a->row);
  a->column = wf__alloc(padded, sizeof *a->column);
  a->skip = wf__alloc(padded, sizeof *a->skip);
  a->bound = wf__alloc(frames + 1, sizeof *a->bound);
  a->best = wf__alloc(frames, sizeof *a->best);
  a->windows = wf__alloc(frames + 1, sizeof *a->windows);
  a->memory = wf__alloc(floats, sizeof *a->memory);
  a->back = wf__alloc(traced * a->back_size, 1);
  a->gap_back = wf__alloc(traced * boundaries, 1);
  a->gaps.place = wf__alloc(boundaries, sizeof *a->gaps.place);
  a->gaps.boundary = wf__alloc(gaps ? places : 0, sizeof *a->gaps.boundary);
  if (a->used == NULL || a->row == NULL || a->column == NULL || a->skip == NULL ||
      a->bound == NULL || a->best == NULL || a->windows == NULL || a->memory == NULL ||
      a->back == NULL || a->gap_back == NULL || a->gaps.place == NULL || a->gaps.boundary == NULL)
    return wf__fail_memory(err, floats * sizeof *a->memory + traced * a->back_size, "an alignment");
  /* A block of -infinity before each of the sums, for place -1. */
  uintptr_t block_bytes = WF__ALIGN_BLOCK * sizeof(float);
  float *at = (float *)(((uintptr_t)a->memory + block_bytes - 1) / block_bytes * block_bytes);
  float **sums[4] = {&a->now.token, &a->now.blank, &a->next.token, &a->next.blank};
  for (int k = 0; k < 4; k++, at += padded) {
    for (int i = 0; i < WF__ALIGN_BLOCK; i++) *at++ = -INFINITY;
    *sums[k] = at;
  }
  a->gaps.now = at;
  a->gaps.next = a->gaps.now + boundaries;
  a->starts = a->gaps.next + boundaries;
  a->gaps.count = boundaries;
  return WF_OK;
}

static void free_aligner(wf__aligner *a) {
  free(a->used);
  free(a->row);
  free(a->column);
  free(a->skip);
  free(a->bound);
  free(a->best);
  free(a->windows);
  free(a->memory);
  free(a->back);
  free(a->gap_back);
  free(a->gaps.place);
  free(a->gaps.boundary);
  wf__vec_free(&a->garbage);
}

/* Sets what the kernel reads of each place. */
static void set_places(wf__aligner *a) {
  const wf_align_input *input = a->input;
  size_t num_tokens = input->num_tokens;
  for (size_t i = 0; i < num_tokens; i++) {
    a->column[i] = a->out->tokens[i].column = input->tokens[i];
    a->skip[i] = i == 0 || input->tokens[i] == input->tokens[i - 1] ? -INFINITY : 0;
  }
  for (size_t i = num_tokens; i < a->padded; i++) {
    a->column[i] = a->options->blank;
    a->skip[i] = -INFINITY;
  }
}

/* Garbage needs the best of all columns, otherwise only those of the tokens and the blank count. */
static void find_used_columns(wf__aligner *a) {
  int32_t num_columns = a->input->scores.num_columns;
  for (int32_t c = 0; c < num_columns; c++) a->row[c] = wf__align_has_garbage(a);
  a->row[a->options->blank] = 1;
  for (size_t i = 0; i < a->input->num_tokens; i++) a->row[a->column[i]] = 1;
  for (int32_t c = 0; c < num_columns; c++)
    if (a->row[c] != 0) a->used[a->num_used++] = c;
  while (a->num_used % WF__ALIGN_USED_STEP != 0) a->used[a->num_used++] = a->options->blank;
}

static void set_boundaries(wf__aligner *a) {
  const wf_align_input *input = a->input;
  wf__align_gaps *gaps = &a->gaps;
  if (gaps->count == 0) return;
  gaps->skip_cost = wf__align_has_skips(a) ? a->options->skip_words : INFINITY;
  memset(gaps->boundary, -1, a->num_places * sizeof *gaps->boundary);
  for (size_t w = 0; w < gaps->count; w++) {
    gaps->place[w] = (uint32_t)(w == 0 ? 0 : input->num_words > 0 ? input->word_ends[w - 1] : w);
    gaps->boundary[gaps->place[w]] = (int32_t)w;
  }
}

/* --- speech that the text lacks ---------------------------------------------------------- */

/* A path must put speech that the text lacks somewhere: it takes the blank in its frames, or
 * stretches a token. Texts that are right, even of hard speech, do so in less than half of the
 * frames of speech. */
static const float MUCH_WORSE = 3, TOO_MUCH = 0.5f; /* nats, share */
enum { MOST_EXAMINED = 2048, FEWEST_OF_SPEECH = 20 };

/* The column of frame t on the path; -1: garbage. *token and *garbage move on. */
static int32_t column_at(const wf__aligner *a, int64_t t, size_t *token, size_t *garbage) {
  const wf_alignment *out = a->out;
  while (*token < out->num_tokens && out->tokens[*token].end_frame <= t) (*token)++;
  while (*garbage < out->num_garbage && out->garbage[*garbage].end_frame <= t) (*garbage)++;
  if (*garbage < out->num_garbage && out->garbage[*garbage].start_frame <= t) return -1;
  return *token < out->num_tokens && out->tokens[*token].start_frame <= t
             ? out->tokens[*token].column
             : a->options->blank;
}

/* The share of the frames of speech, where a token is more probable than the blank, in which the
 * column of the path is much less probable than another; 0: too few frames to tell. */
static float share_without_place(const wf__aligner *a) {
  const wf_scores *scores = &a->input->scores;
  const int64_t step = scores->num_frames / MOST_EXAMINED + 1;
  size_t token = 0, garbage = 0;
  uint64_t num_speech = 0, num_without = 0;
  for (int64_t t = 0; t < scores->num_frames; t += step) {
    const int32_t column = column_at(a, t, &token, &garbage);
    int32_t best = 0;
    float most = wf__score_at(scores, t, 0);
    for (int32_t c = 1; c < scores->num_columns; c++) {
      const float score = wf__score_at(scores, t, c);
      if (score > most) most = score, best = c;
    }
    if (best == a->options->blank) continue;
    num_speech++;
    num_without += column >= 0 && wf__score_at(scores, t, column) < most - MUCH_WORSE;
  }
  return num_speech < FEWEST_OF_SPEECH ? 0 : (float)num_without / (float)num_speech;
}

static void warn(const wf__aligner *a, const char *key, uint64_t item) {
  const float share = share_without_place(a);
  if (share <= TOO_MUCH) return;
  char text[200];
  snprintf(
      text, sizeof text,
      "the text has no place for %.0f%% of the speech, so its words may be far from where they "
      "were said. Is it the right text? %s",
      100 * (double)share,
      wf__align_has_garbage(a) ? "A lower cost of garbage allows more speech that it lacks"
                               : "The option garbage (3 nats) allows speech that it lacks");
  wf__utterance_message(a->out->message, sizeof a->out->message, key, item, text);
}

static wf_status align(wf__aligner *a, wf_error *err) {
  WF__TRY(check_input(a, err));
  a->out->num_tokens = a->input->num_tokens;
  a->out->num_frames = a->input->scores.num_frames;
  a->num_places = a->input->num_tokens + 1;
  a->out->tokens = wf__calloc(a->out->num_tokens, sizeof *a->out->tokens);
  if (a->out->tokens == NULL)
    return wf__fail_memory(err, a->out->num_tokens * sizeof *a->out->tokens, "an alignment");
  if (a->out->num_frames == 0) return WF_OK;
  WF__TRY(allocate(a, err));
  set_places(a);
  find_used_columns(a);
  set_boundaries(a);
  return wf__align_path(a, err);
}

/* --- a batch ----------------------------------------------------------------------------- */

struct batch {
  const wf_align_input *inputs;
  const wf_align_options *options;
  wf__align_fn advance;
  wf_alignment **results;
};

static void align_item(void *user, uint64_t item, int worker) {
  (void)worker;
  const struct batch *batch = user;
  wf_error err = {0};
  void *copy;
  wf_align_input input = batch->inputs[item];
  wf__aligner a = {.input = &input,
                   .options = batch->options,
                   .advance = batch->advance,
                   .out = batch->results[item]};
  a.out->status = wf__host_scores(&batch->inputs[item].scores, &input.scores, &copy, &err);
  if (a.out->status == WF_OK) a.out->status = align(&a, &err);
  if (a.out->status != WF_OK)
    wf__utterance_message(a.out->message, sizeof a.out->message, input.key, item, err.message);
  else
    warn(&a, input.key, item);
  free_aligner(&a);
  free(copy);
}

/* Starting a thread takes as long as about 10,000 cells: a frame and a place of the path each. */
enum { CELLS_A_THREAD = 50000 };

static int threads_for(const wf_align_input *inputs, size_t count, int num_threads) {
  uint64_t cells = 0;
  for (size_t i = 0; i < count; i++)
    if (inputs[i].scores.num_frames > 0)
      cells += (uint64_t)inputs[i].scores.num_frames * (2 * inputs[i].num_tokens + 1);
  const int cpus = wf__num_cpus();
  if (num_threads > 0 || cells / CELLS_A_THREAD >= (uint64_t)cpus) return num_threads;
  return 1 + (int)(cells / CELLS_A_THREAD);
}

wf_status wf_align(const wf_align_input *inputs, size_t count, const wf_align_options *options,
                   wf_alignment **results, wf_error *err) {
  wf__error_clear(err);
  if (count > 0) memset(results, 0, count * sizeof *results);
  wf_align_options o;
  WF__TRY(wf__options_take(wf__align_table(), options, &o, err));
  struct batch batch = {inputs, &o, wf__align_best_kernel(), results};
  const int threads = threads_for(inputs, count, o.num_threads);
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) status = wf__fail_memory(err, sizeof **results, "an alignment");
  }
  if (status == WF_OK) status = wf__pool_once(threads, count, align_item, &batch, err);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_alignment_free(results[i]);
    results[i] = NULL;
  }
  return status;
}

void wf_alignment_free(wf_alignment *alignment) {
  if (alignment != NULL) {
    free(alignment->tokens);
    free(alignment->garbage);
  }
  free(alignment);
}
