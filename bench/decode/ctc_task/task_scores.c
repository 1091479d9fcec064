/* task_scores.c - generates CTC posteriors for sentences, 25 frames per second.
 *
 * The tokens of a sentence become peaks of 1 to 3 frames, with blank frames between them.
 * Log-probabilities before normalisation of the row are
 *
 *     at a peak       the peak's token: 0; its competitors: -gap, with exponential gaps; the other
 *                     tokens: rest_mean + bias + drift + lift
 *     beside a peak   (for every second peak) blank: 0; the peak's token: a few nats less; the
 *                     other tokens as at a peak
 *     elsewhere       blank: 0; the other tokens: quiet_mean + bias + drift + lift
 *
 * bias depends on the token, drift changes slowly (correlation 0.75 from frame to frame), lift
 * raises or lowers a whole frame. In one of 1 + e^gap peaks the competitor and the token are
 * swapped, as in a well calibrated model. Constants of `peaky` follow the real scores of
 * examples/ctc (docs/engineering/performance.md compares them). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctc_task.h"
#include "warpfst_all.h"

const struct score_model score_models[2] = {
    {.name = "peaky",
     .mean_gap = 8.0,
     .next_gap = 3.0,
     .num_competitors = 2,
     .blank_competes = 0.5,
     .rest_mean = -19.5,
     .rest_sd = 4.0,
     .quiet_mean = -24},
    {.name = "flat",
     .mean_gap = 2.0,
     .next_gap = 0.7,
     .num_competitors = 8,
     .blank_competes = 0.1,
     .rest_mean = -6.3,
     .rest_sd = 1.5,
     .quiet_mean = -6.8},
};

enum { MAX_COMPETITORS = 8 };

struct peak {
  uint16_t token; /* recognised by the model */
  uint16_t rivals[MAX_COMPETITORS];
  double gaps[MAX_COMPETITORS]; /* costs of the competitors relative to the token */
  uint32_t begin, end;          /* frames */
  int beside;                   /* the "beside a peak" frame of this peak, or -1 */
};

struct sentence {
  struct peak *peaks;
  size_t num_peaks, cap;
  uint32_t num_frames;
};

static double exponential(uint64_t *random, double mean) {
  return -mean * log(1 - random_unit(random));
}

/* Sum of six uniforms: a fast approximation of a normal distribution. */
static double normal(uint64_t *random) {
  double sum = -3;
  for (int i = 0; i < 3; i++) {
    uint64_t bits = next_random(random);
    sum += (double)(bits >> 32) * 0x1p-32 + (double)(uint32_t)bits * 0x1p-32;
  }
  return sum * 1.41421356;
}

/* Tokens are confused with some tokens more often than with others. Returns the k-th rival of a
 * token, with geometric k. */
static uint16_t rival(const struct lexicon *lexicon, uint32_t token, uint64_t seed,
                      uint64_t *random) {
  uint32_t k = (uint32_t)exponential(random, 3), other;
  do {
    uint64_t choice = random_seed(seed, ((uint64_t)token << 32) + k++);
    other = 1 + below(&choice, lexicon->num_tokens - 1);
  } while (other == token);
  return (uint16_t)other;
}

static void draw_rivals(const struct score_model *model, const struct lexicon *lexicon,
                        uint64_t seed, uint64_t *random, struct peak *peak) {
  uint16_t said = peak->token;
  double gap = 0;
  for (int i = 0; i < model->num_competitors; i++) {
    bool blank = i == 0 && random_unit(random) < model->blank_competes;
    peak->rivals[i] = blank ? 0 : rival(lexicon, said, seed, random);
    peak->gaps[i] = gap += exponential(random, i == 0 ? model->mean_gap : model->next_gap);
    if (i == 0 && !blank && random_unit(random) * (1 + exp(gap)) < 1) {
      peak->token = peak->rivals[0];
      peak->rivals[0] = said;
    }
  }
}

static bool add_peak(struct sentence *sentence, struct peak peak) {
  if (sentence->num_peaks == sentence->cap) {
    size_t cap = sentence->cap * 2 + 64;
    struct peak *peaks = realloc(sentence->peaks, cap * sizeof *peaks);
    if (peaks == NULL) return false;
    sentence->peaks = peaks;
    sentence->cap = cap;
  }
  sentence->peaks[sentence->num_peaks++] = peak;
  return true;
}

/* Places the peaks: about 2.7 words per second, with a pause after one word in twelve. Peaks of the
 * same token are never adjacent. */
static bool place_peaks(const struct score_model *model, const struct lexicon *lexicon,
                        const uint32_t *words, size_t num_words, uint64_t seed, uint64_t *random,
                        struct sentence *out) {
  uint32_t frame = 4 + below(random, 8), last_token = 0;
  out->num_peaks = 0;
  for (size_t i = 0; i < num_words; i++) {
    for (uint32_t at = lexicon->off[words[i]]; at < lexicon->off[words[i] + 1]; at++) {
      double width = random_unit(random);
      struct peak peak = {.token = lexicon->pieces[at],
                          .begin = frame,
                          .end = frame + (width < 0.73   ? 1
                                          : width < 0.95 ? 2
                                                         : 3),
                          .beside = -1};
      draw_rivals(model, lexicon, seed, random, &peak);
      if (random_unit(random) < 0.5)
        peak.beside = random_unit(random) < 0.5 && frame > 0 ? (int)frame - 1 : (int)peak.end;
      frame = peak.end + (uint32_t)exponential(random, 2.3);
      if (last_token == peak.token && out->peaks[out->num_peaks - 1].end ==
                                          peak.begin) { /* CTC would merge the two into one token */
        peak.begin++;
        peak.end++;
        frame++;
      }
      last_token = peak.token;
      if (!add_peak(out, peak)) return false;
    }
    if (random_unit(random) < 1 / 12.0) frame += 5 + below(random, 15);
  }
  out->num_frames = frame + 4 + below(random, 8);
  return true;
}

static void normalise_row(float *row, uint32_t size) {
  double most = -INFINITY, sum = 0;
  for (uint32_t v = 0; v < size; v++) most = row[v] > most ? row[v] : most;
  for (uint32_t v = 0; v < size; v++) sum += exp(row[v] - most);
  double shift = most + log(sum);
  for (uint32_t v = 0; v < size; v++) row[v] = (float)(row[v] - shift);
}

/* Fills a row with the background of all tokens, and the blank at 0. */
static void fill_background(float *row, uint32_t size, double mean, const struct score_model *model,
                            const float *bias, float *drift, uint64_t *random) {
  double lift = 2.5 * model->rest_sd / 4 * normal(random);
  row[0] = 0;
  for (uint32_t v = 1; v < size; v++) {
    drift[v] = (float)(0.75 * drift[v] + 0.66 * model->rest_sd * 0.78 * normal(random));
    row[v] = (float)(mean + lift + bias[v] * model->rest_sd + drift[v]);
    if (row[v] > -1) row[v] = -1;
  }
}

static void fill_rows(const struct score_model *model, const struct lexicon *lexicon,
                      const struct sentence *sentence, const float *bias, float *drift,
                      uint64_t *random, float *rows) {
  uint32_t size = lexicon->num_tokens;
  uint8_t *near = calloc(sentence->num_frames + 2, 1); /* 1: beside a peak, 2: at a peak */
  if (near == NULL) return;
  for (size_t i = 0; i < sentence->num_peaks; i++) {
    const struct peak *peak = &sentence->peaks[i];
    if (peak->beside >= 0 && near[peak->beside] == 0) near[peak->beside] = 1;
    memset(near + peak->begin, 2, peak->end - peak->begin);
  }
  memset(drift, 0, size * sizeof *drift);
  for (uint32_t t = 0; t < sentence->num_frames; t++)
    fill_background(rows + (size_t)t * size, size, near[t] ? model->rest_mean : model->quiet_mean,
                    model, bias, drift, random);
  for (size_t i = 0; i < sentence->num_peaks; i++) {
    const struct peak *peak = &sentence->peaks[i];
    if (peak->beside >= 0 && near[peak->beside] == 1)
      rows[(size_t)peak->beside * size + peak->token] = (float)(-3.0 + 1.25 * normal(random));
    for (uint32_t t = peak->begin; t < peak->end; t++) {
      float *row = rows + (size_t)t * size;
      double wobble = 0.5 + random_unit(random);
      row[0] =
          (float)(0.4 * model->rest_mean + 3 * normal(random)); /* the blank, unless it competes */
      if (row[0] > -1) row[0] = -1;
      for (int k = model->num_competitors - 1; k >= 0; k--)
        row[peak->rivals[k]] = (float)(-peak->gaps[k] * wobble);
      row[peak->token] = 0;
    }
  }
  for (uint32_t t = 0; t < sentence->num_frames; t++) normalise_row(rows + (size_t)t * size, size);
  free(near);
}

void reference_key(uint32_t index, char key[16]) { snprintf(key, 16, "utt%06u", index); }

struct writing {
  const struct score_model *model;
  const struct lexicon *lexicon;
  float *bias, *drift; /* [num_tokens] */
  struct sentence sentence;
  wf_matrix_writer *writer;
  uint64_t num_frames;
};

static bool write_sentence(struct writing *w, const uint32_t *words, size_t num_words,
                           uint64_t seed, uint32_t index, wf_error *err) {
  char key[16];
  uint64_t random = random_seed(seed, 100 + index);
  if (!place_peaks(w->model, w->lexicon, words, num_words, seed, &random, &w->sentence))
    return false;
  reference_key(index, key);
  wf_matrix matrix = {.key = key,
                      .num_frames = w->sentence.num_frames,
                      .num_columns = (int32_t)w->lexicon->num_tokens};
  matrix.data = malloc((size_t)matrix.num_frames * w->lexicon->num_tokens * sizeof *matrix.data);
  if (matrix.data == NULL) return false;
  fill_rows(w->model, w->lexicon, &w->sentence, w->bias, w->drift, &random, matrix.data);
  bool good = wf_matrix_writer_put(w->writer, &matrix, err) == WF_OK;
  w->num_frames += w->sentence.num_frames;
  free(matrix.data);
  return good;
}

bool scores_write(const struct score_model *model, const struct lexicon *lexicon,
                  const struct text *text, uint64_t seed, const char *folder) {
  char path[4096];
  wf_error err = {0};
  struct writing w = {.model = model,
                      .lexicon = lexicon,
                      .bias = malloc(lexicon->num_tokens * sizeof(float)),
                      .drift = malloc(lexicon->num_tokens * sizeof(float))};
  uint32_t *words = malloc(128 * sizeof *words), index = 0;
  snprintf(path, sizeof path, "%s/%s.ark", folder, model->name);
  bool good = w.bias != NULL && w.drift != NULL && words != NULL &&
              wf_matrix_writer_open(path, NULL, &w.writer, &err) == WF_OK;
  uint64_t random = random_seed(seed, 3);
  for (uint32_t v = 0; v < lexicon->num_tokens && good; v++)
    w.bias[v] = (float)(0.62 * normal(&random));
  size_t num_words = 0;
  for (size_t i = 0; i < text->size && good; i++) {
    if (text->ids[i] != SENTENCE_END) {
      words[num_words++] = text->ids[i] - FIRST_WORD;
      continue;
    }
    good = write_sentence(&w, words, num_words, seed, index++, &err);
    num_words = 0;
  }
  if (good)
    good = wf_matrix_writer_close(w.writer, &err) == WF_OK;
  else if (w.writer != NULL)
    wf_matrix_writer_abort(w.writer);
  if (good)
    printf("%s: %u utterances, %.2f hours, %.1f frames a word\n", path, index,
           (double)w.num_frames / 25 / 3600, (double)w.num_frames / (double)(text->size - index));
  else
    fprintf(stderr, "%s: %s\n", path, err.code != WF_OK ? err.message : "out of memory");
  free(w.bias);
  free(w.drift);
  free(w.sentence.peaks);
  free(words);
  return good;
}
