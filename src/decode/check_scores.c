/* check_scores.c - detects probabilities, base-10 logarithms, and negated, transposed or shifted
 * scores from the values of a few frames. */
#include "decode/check_scores.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/callbacks.h"
#include "decode/decoder.h"

enum { WARN, ERROR, OFF };
enum cause {
  PROBABILITIES,
  BASE_10,
  NEGATED,
  TRANSPOSED,
  COLUMNS,
  UNNORMALISED,
  BLANK,
  NARROWED,
  UNFINISHED
};
enum {
  MOST_FRAMES = 32, /* examined in an utterance, fewer if they have more scores than this: */
  MOST_SCORES = 1 << 17,
  FEWEST_FRAMES = 4, /* at least so many, if it has them */
  FIRST = 64,
  EVERY = 16, /* the first utterances of a decoder, and after probabilities or costs, and then
                 every 16th are examined */
  FIRST_ON_GPU =
      4, /* utterances examined if scores are in GPU memory, since the check waits for the copy */
  BLOCK_BYTES = 1 << 20, /* at most this many bytes are copied */
};

/* With scores rounded to few bits, as in bfloat16, frames still sum to 1 within this tolerance. */
static const double TOLERANCE = 0.05;
/* Division by priors increases the sum of a typical frame. A blank penalty decreases the sum of
 * blank frames, but not of all frames. */
static const double MOST_TYPICAL_SUM = 100, LEAST_LARGEST_SUM = 0.01;

/* Scores of which none is below 0 are no log-probabilities. They fail, because all tokens are then
 * about equally good: the words would be wrong, and with thousands of tokens a search of all of
 * them takes minutes. */
static const uint32_t ALWAYS_FAIL = 1u << PROBABILITIES | 1u << NEGATED;

static void warn(wf_decoder *decoder, enum cause cause, wf_result *result, const char *format, ...)
    WF__PRINTF(4, 5);
static void warn(wf_decoder *decoder, enum cause cause, wf_result *result, const char *format,
                 ...) {
  bool always = (ALWAYS_FAIL & 1u << cause) != 0, error = decoder->options.check_scores == ERROR;
  char message[sizeof result->message];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (!error && (decoder->check.warned & 1u << cause) == 0)
    wf__log(WF_LOG_WARNING, "%s (check_scores=off: no such warnings)", message);
  decoder->check.warned |= 1u << cause;
  if (always) decoder->check.num_seen = 0;
  if (!error && !always) return;
  result->status = WF_ERR_ARGUMENT;
  snprintf(result->message, sizeof result->message, "%s", message);
}

/* --- sums of frames ---------------------------------------------------------------------- */

/* Possible scales of a score. */
enum scale { NATURAL, PLAIN, TEN, MINUS, NUM_SCALES };

static double probability(enum scale scale, double score) {
  if (scale == NATURAL) return (double)expf((float)score);
  return scale == PLAIN ? score : exp(scale == TEN ? score * M_LN10 : -score);
}

static bool is_one(double sum) { return fabs(sum - 1) <= TOLERANCE; }

/* The i-th of `count` frames spread over the utterance. */
static int64_t frame_at(const wf_scores *scores, int i, int count) {
  return (2 * i + 1) * scores->num_frames / (2 * count);
}

static int frames_to_check(const wf_scores *scores) {
  int64_t most = MOST_SCORES / (scores->num_columns > 0 ? scores->num_columns : 1);
  most = most > MOST_FRAMES ? MOST_FRAMES : most < FEWEST_FRAMES ? FEWEST_FRAMES : most;
  return (int)(scores->num_frames < most ? scores->num_frames : most);
}

/* Sum of exp(score), without scores that are too low to matter; NaN if one of them is. *best: the
 * first of the highest. */
static double sum_of_exp(const wf_scores *scores, int64_t frame, int32_t *best) {
  static const float NEGLIGIBLE = 20; /* below the highest so far */
  double sum = 0;
  float highest = -INFINITY;
  *best = 0;
  for (int32_t c = 0; c < scores->num_columns; c++) {
    float score = wf__score_at(scores, frame, c);
    if (score < highest - NEGLIGIBLE) continue;
    sum += probability(NATURAL, (double)score);
    if (score > highest) {
      highest = score;
      *best = c;
    }
  }
  return sum;
}

static double sum_of_frame(const wf_scores *scores, int64_t frame, enum scale scale) {
  double sum = 0;
  for (int32_t c = 0; c < scores->num_columns; c++)
    sum += probability(scale, (double)wf__score_at(scores, frame, c));
  return sum;
}

/* Do all sampled frames sum to 1 on this scale, and do all scores have its sign? */
static bool fits(const wf_scores *scores, int count, enum scale scale) {
  for (int i = 0; i < count; i++) {
    int64_t frame = frame_at(scores, i, count);
    for (int32_t c = 0; c < scores->num_columns; c++) {
      double score = (double)wf__score_at(scores, frame, c);
      if (scale == TEN ? score > 0.01 : score < 0) return false;
    }
    if (!is_one(sum_of_frame(scores, frame, scale))) return false;
  }
  return true;
}

/* As many frames as the graph has tokens, and columns that sum to 1. */
static bool is_transposed(const wf_scores *scores, int32_t num_tokens) {
  if (scores->num_frames != num_tokens) return false;
  for (int32_t c = 0; c < scores->num_columns; c++) {
    double sum = 0;
    for (int64_t t = 0; t < scores->num_frames; t++)
      sum += probability(NATURAL, (double)wf__score_at(scores, t, c));
    if (!is_one(sum)) return false;
  }
  return true;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Reports the cause if not all frames sum to 1. Returns false if the cause is unknown. */
static bool check_sums(wf_decoder *decoder, const wf_scores *scores, int count, double *sums,
                       wf_result *result) {
  int32_t num_tokens = decoder->graph->num_tokens;
  qsort(sums, (size_t)count, sizeof *sums, compare);
  double typical = sums[count / 2], largest = sums[count - 1];
  if (fits(scores, count, PLAIN)) {
    warn(decoder, PROBABILITIES, result,
         "the scores look like probabilities: each frame's sum to 1. Log-probabilities are "
         "expected: take the natural logarithm");
  } else if (fits(scores, count, TEN)) {
    warn(decoder, BASE_10, result,
         "the scores look like logarithms to base 10. Natural logarithms are expected: multiply "
         "the scores by 2.302585");
  } else if (fits(scores, count, MINUS)) {
    warn(decoder, NEGATED, result,
         "the scores look like costs, -ln P: none is below 0. Log-probabilities are expected: "
         "negate the scores");
  } else if (is_transposed(scores, num_tokens)) {
    warn(decoder, TRANSPOSED, result,
         "the scores look transposed: %lld frames, as many as the graph has tokens, of %d columns. "
         "Give them as [frames, columns]",
         (long long)scores->num_frames, scores->num_columns);
  } else if (num_tokens == 0 || num_tokens == scores->num_columns) {
    if (typical <= MOST_TYPICAL_SUM && largest >= LEAST_LARGEST_SUM) return false;
    warn(decoder, UNNORMALISED, result,
         "exp of a frame's scores sums to %.3g (median), not to 1. Are they logits or likelihoods? "
         "Log-probabilities are expected: take log_softmax",
         typical);
  } else {
    return false;
  }
  return true;
}

/* --- columns ----------------------------------------------------------------------------- */

static bool check_columns(wf_decoder *decoder, const wf_scores *scores, wf_result *result) {
  int32_t num_tokens = decoder->graph->num_tokens, num_columns = scores->num_columns;
  if (num_tokens == 0 || num_tokens == num_columns) return false;
  warn(decoder, COLUMNS, result,
       "the scores have %d columns, the graph's table has %d tokens. Are scores and graph of the "
       "same model, with no column too many or too few?",
       num_columns, num_tokens);
  return true;
}

/* Counts the most probable columns of frames, `best`. If they are hardly ever the blank, but mostly
 * another column, that one is probably the blank. */
static bool check_blank(wf_decoder *decoder, const wf_scores *scores, int count,
                        const int32_t *best, wf_result *result) {
  wf__score_check *check = &decoder->check;
  uint64_t num_columns = (uint64_t)scores->num_columns, top = 0,
           blank = (uint64_t)decoder->graph->blank_column;
  if (check->best.size == 0) {
    if (wf__vec_grow(&check->best, num_columns, "a check of scores", NULL) != WF_OK) return false;
    for (uint64_t c = 0; c < num_columns; c++) check->best.data[check->best.size++] = 0;
  }
  if (check->best.size != num_columns) return false;
  for (int i = 0; i < count; i++) check->best.data[best[i]]++;
  check->num_frames += (uint64_t)count;
  for (uint64_t c = 0; c < num_columns; c++)
    if (check->best.data[c] > check->best.data[top]) top = c;
  uint64_t num_top = check->best.data[top], num_blank = check->best.data[blank];
  if (check->num_frames < MOST_FRAMES || num_top * 2 < check->num_frames ||
      num_blank * 4 + 8 > num_top)
    return false;
  warn(decoder, BLANK, result,
       "the blank, column %d, is the most probable token in %llu of the %llu frames examined, "
       "column %d in %llu. Is the blank column %d, or are columns shifted?",
       (int)blank, (unsigned long long)num_blank, (unsigned long long)check->num_frames, (int)top,
       (unsigned long long)num_top, (int)top);
  return true;
}

/* --- an utterance ------------------------------------------------------------------------ */

static void look(wf_decoder *decoder, const wf_scores *scores, wf_result *result) {
  int count = frames_to_check(scores);
  double sums[MOST_FRAMES];
  int32_t best[MOST_FRAMES];
  bool good = true;
  for (int i = 0; i < count; i++) {
    sums[i] = sum_of_exp(scores, frame_at(scores, i, count), &best[i]);
    if (isnan(sums[i])) return; /* the search reports NaN */
    good = good && is_one(sums[i]);
  }
  if (!good && check_sums(decoder, scores, count, sums, result)) return;
  if (check_columns(decoder, scores, result)) return;
  (void)check_blank(decoder, scores, count, best, result);
}

/* Copies frames from the middle of an utterance in GPU memory to host memory. */
static bool fetch(wf_decoder *decoder, const wf_scores *scores, wf_scores *out) {
  uint64_t frame_bytes = (uint64_t)scores->stride * wf__dtype_bytes(scores->dtype);
  if (decoder->backend->copy_scores == NULL || frame_bytes > BLOCK_BYTES) return false;
  int64_t most = (int64_t)(BLOCK_BYTES / frame_bytes),
          num_frames = scores->num_frames < most ? scores->num_frames : most;
  uint64_t bytes =
      ((uint64_t)(num_frames - 1) * (uint64_t)scores->stride + (uint64_t)scores->num_columns) *
      wf__dtype_bytes(scores->dtype);
  const char *from =
      (const char *)scores->data + (uint64_t)((scores->num_frames - num_frames) / 2) * frame_bytes;
  if (wf__vec_grow(&decoder->check.block, bytes, "a check of scores", NULL) != WF_OK) return false;
  *out = *scores;
  out->data = decoder->check.block.data;
  out->num_frames = num_frames;
  out->on_device = false;
  return decoder->backend->copy_scores(decoder->search, from, bytes, decoder->check.block.data);
}

/* Checks all utterances if errors are wanted, otherwise so few that the check costs nearly nothing.
 */
static bool has_turn(const wf_decoder *decoder, const wf_scores *scores, uint64_t number) {
  if (decoder->options.check_scores == OFF || decoder->graph->blank_column < 0 ||
      scores->num_frames == 0)
    return false;
  if (decoder->options.check_scores == ERROR) return true;
  return scores->on_device ? number < FIRST_ON_GPU : number < FIRST || number % EVERY == 0;
}

bool wf__scores_look_right(wf_decoder *decoder, const wf_scores *scores, wf_result *result) {
  wf_scores copy;
  if (!has_turn(decoder, scores, decoder->check.num_seen++)) return true;
  if (!scores->on_device)
    look(decoder, scores, result);
  else if (fetch(decoder, scores, &copy))
    look(decoder, &copy, result);
  return result->status == WF_OK;
}

/* With a transducer, the paths that end a word can be dropped for one within a word that is far
 * cheaper for a while. No reason to fail: the recording may end within a word. */
static void check_end(wf_decoder *decoder, const wf_result *result) {
  if (decoder->transducer == NULL || result->num_decoded == 0 ||
      (decoder->check.warned & 1u << UNFINISHED) != 0 ||
      (result->flags & (WF_RESULT_NOT_FINAL | WF_RESULT_DIED)) != WF_RESULT_NOT_FINAL)
    return;
  decoder->check.warned |= 1u << UNFINISHED;
  wf__log(WF_LOG_WARNING,
          "a result ends within a word (flag not_final): no complete path was left. If its "
          "recording does not, raise beam=%g or max_hypotheses=%d (check_scores=off: no such "
          "warnings)",
          (double)decoder->options.beam, (int)decoder->options.max_hypotheses);
}

void wf__check_search(wf_decoder *decoder, wf_result *result) {
  int32_t mode = decoder->options.check_scores;
  if (mode != OFF && result->status == WF_OK) check_end(decoder, result);
  if (mode == OFF || result->status != WF_OK ||
      result->num_narrowed * 2 <= (uint64_t)result->num_decoded)
    return;
  if (mode == WARN && decoder->check.warned != 0)
    return; /* wrong scores were reported before and are the likely cause */
  warn(decoder, NARROWED, result,
       "max_active=%d tokens were reached in %llu of %lld frames, so the search is narrower than "
       "beam=%g. Raise max_active, or lower beam or acoustic_scale",
       decoder->options.max_active, (unsigned long long)result->num_narrowed,
       (long long)result->num_decoded, (double)decoder->options.beam);
}

void wf__score_check_free(wf__score_check *check) {
  wf__vec_free(&check->best);
  wf__vec_free(&check->block);
}
