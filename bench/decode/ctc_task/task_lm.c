/* task_lm.c - counts a 3-gram model on a text and writes it as an ARPA file.
 *
 * n-grams are packed into 64-bit keys, with the first word in the highest bits, then sorted and
 * counted as runs. So the n-grams of a history are contiguous, and histories are in the same order
 * as the n-grams of the next lower order.
 * Interpolated absolute discounting (Ney, Essen, Kneser 1994), with discount D and the counts c of
 * all n-grams, also of those left out:
 *     p(w | h) = (c(h w) - D) / c(h) + bow(h) p(w | shorter h)     if h w is kept;  bow(h) = 1 -
 *     sum over kept w of (c(h w) - D) / c(h)
 * which sums to one regardless of which n-grams are left out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctc_task.h"

static const double discount = 0.6;

struct ngrams {
  uint64_t *keys;   /* [size] ascending */
  uint32_t *counts; /* [size] */
  float *backoff;   /* [size], of the n-gram as a history; NULL for trigrams */
  size_t size;
};

struct model {
  uint32_t num_ids, bits; /* number of ids of words and sentence marks; bits of an id in a key */
  struct ngrams bigrams, trigrams;
  double *unigram;        /* [num_ids] probabilities */
  float *unigram_backoff; /* [num_ids] */
  size_t *first_bigram;   /* [num_ids + 1] into bigrams */
};

/* Radix sort by 16 bits at a time. `spare` has the same size as `keys`. */
static void sort_keys(uint64_t *keys, uint64_t *spare, size_t size, uint32_t bits) {
  static size_t bins[65537];
  uint64_t *from = keys, *to = spare;
  for (uint32_t shift = 0; shift < bits; shift += 16) {
    memset(bins, 0, sizeof bins);
    for (size_t i = 0; i < size; i++) bins[((from[i] >> shift) & 65535) + 1]++;
    for (int b = 0; b < 65536; b++) bins[b + 1] += bins[b];
    for (size_t i = 0; i < size; i++) to[bins[(from[i] >> shift) & 65535]++] = from[i];
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != keys) memcpy(keys, from, size * sizeof *keys);
}

/* Makes and counts the keys of all n-grams of the text, with <s> before each sentence. */
static bool count(const struct text *text, uint32_t order, uint32_t bits, struct ngrams *out) {
  uint64_t *keys = malloc(text->size * sizeof *keys), *spare = malloc(text->size * sizeof *spare);
  uint64_t mask = ((uint64_t)1 << (bits * order)) - 1, key = SENTENCE_BEGIN;
  size_t size = 0, position = 0;
  if (keys == NULL || spare == NULL) {
    free(keys);
    free(spare);
    return false;
  }
  for (size_t i = 0; i < text->size; i++) {
    key = ((key << bits) | text->ids[i]) & mask;
    position++;
    if (position + 1 >= order) keys[size++] = key;
    if (text->ids[i] == SENTENCE_END) {
      key = SENTENCE_BEGIN;
      position = 0;
    }
  }
  sort_keys(keys, spare, size, bits * order);
  free(spare);
  uint32_t *counts = malloc(size * sizeof *counts);
  size_t distinct = 0;
  for (size_t i = 0; i < size && counts != NULL; i++) {
    if (distinct == 0 || keys[distinct - 1] != keys[i]) {
      keys[distinct] = keys[i];
      counts[distinct++] = 0;
    }
    counts[distinct - 1]++;
  }
  *out = (struct ngrams){.keys = keys, .counts = counts, .size = distinct};
  return counts != NULL;
}

/* Computes unigram probabilities with add-one smoothing over the vocabulary. */
static bool make_unigrams(const struct text *text, struct model *model) {
  model->unigram = calloc(model->num_ids, sizeof *model->unigram);
  if (model->unigram == NULL) return false;
  for (uint32_t id = SENTENCE_END; id < model->num_ids; id++) model->unigram[id] = 1;
  for (size_t i = 0; i < text->size; i++) model->unigram[text->ids[i]] += 1;
  double total = (double)text->size + model->num_ids - 1;
  for (uint32_t id = 0; id < model->num_ids; id++) model->unigram[id] /= total;
  return true;
}

/* Drops n-grams with counts below `minimum` and turns counts into probabilities. Computes
 * backoff(h) for each run of n-grams with the history h, in order. */
static void drop_rare(struct ngrams *ngrams, uint32_t bits, uint32_t minimum, float *share,
                      void (*put)(void *user, uint64_t history, double backoff), void *user) {
  size_t kept = 0;
  for (size_t begin = 0, end; begin < ngrams->size; begin = end) {
    uint64_t history = ngrams->keys[begin] >> bits;
    double sum = 0, mass = 0;
    for (end = begin; end < ngrams->size && ngrams->keys[end] >> bits == history; end++)
      sum += ngrams->counts[end];
    for (size_t i = begin; i < end; i++) {
      if (ngrams->counts[i] < minimum) continue;
      mass += ngrams->counts[i] - discount;
      ngrams->keys[kept] = ngrams->keys[i];
      ngrams->counts[kept] = ngrams->counts[i];
      share[kept++] = (float)((ngrams->counts[i] - discount) / sum);
    }
    put(user, history, 1 - mass / sum);
  }
  ngrams->size = kept;
}

static void put_unigram_backoff(void *user, uint64_t history, double backoff) {
  ((struct model *)user)->unigram_backoff[history] = (float)backoff;
}

static size_t find_bigram(const struct model *model, uint64_t key) {
  uint64_t word = key >> model->bits;
  size_t low = model->first_bigram[word], high = model->first_bigram[word + 1], end = high;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (model->bigrams.keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && model->bigrams.keys[low] == key ? low : SIZE_MAX;
}

static void put_bigram_backoff(void *user, uint64_t history, double backoff) {
  struct model *model = user;
  size_t at = find_bigram(model, history);
  if (at != SIZE_MAX) model->bigrams.backoff[at] = (float)backoff;
}

static double bigram_prob(const struct model *model, const float *share, uint64_t key) {
  uint64_t history = key >> model->bits, word = key & (((uint64_t)1 << model->bits) - 1);
  size_t at = find_bigram(model, key);
  return (at != SIZE_MAX ? share[at] : 0) + model->unigram_backoff[history] * model->unigram[word];
}

/* --- writing ----------------------------------------------------------------------------- */

static void write_word(FILE *file, uint64_t id) {
  if (id == SENTENCE_BEGIN)
    fputs("<s>", file);
  else if (id == SENTENCE_END)
    fputs("</s>", file);
  else
    fprintf(file, "w%u", (uint32_t)id - FIRST_WORD);
}

static void write_unigrams(FILE *file, const struct model *model) {
  fputs("\n\\1-grams:\n", file);
  for (uint32_t id = 0; id < model->num_ids; id++) {
    fprintf(file, "%.6f\t", id == SENTENCE_BEGIN ? -99 : log10(model->unigram[id]));
    write_word(file, id);
    if (id != SENTENCE_END) fprintf(file, "\t%.6f", log10(model->unigram_backoff[id]));
    fputc('\n', file);
  }
}

static void write_bigrams(FILE *file, const struct model *model, const float *share) {
  uint64_t mask = ((uint64_t)1 << model->bits) - 1;
  fputs("\n\\2-grams:\n", file);
  for (size_t i = 0; i < model->bigrams.size; i++) {
    uint64_t key = model->bigrams.keys[i];
    fprintf(
        file, "%.6f\t",
        log10(share[i] + model->unigram_backoff[key >> model->bits] * model->unigram[key & mask]));
    write_word(file, key >> model->bits);
    fputc(' ', file);
    write_word(file, key & mask);
    if (model->bigrams.backoff[i] < 1) fprintf(file, "\t%.6f", log10(model->bigrams.backoff[i]));
    fputc('\n', file);
  }
}

static void write_trigrams(FILE *file, const struct model *model, const float *bigram_share,
                           const float *share) {
  uint64_t mask = ((uint64_t)1 << model->bits) - 1;
  fputs("\n\\3-grams:\n", file);
  for (size_t i = 0; i < model->trigrams.size; i++) {
    uint64_t key = model->trigrams.keys[i];
    double lower = bigram_prob(model, bigram_share, key & ((mask << model->bits) | mask));
    size_t history = find_bigram(model, key >> model->bits);
    fprintf(file, "%.6f\t", log10(share[i] + model->bigrams.backoff[history] * lower));
    for (int k = 2; k >= 0; k--) {
      write_word(file, (key >> (k * (int)model->bits)) & mask);
      fputc(k > 0 ? ' ' : '\n', file);
    }
  }
}

static bool write_model(const char *path, const struct model *model, const float *bigram_share,
                        const float *trigram_share) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return false;
  setvbuf(file, NULL, _IOFBF, 1 << 20);
  fprintf(file, "\\data\\\nngram 1=%u\nngram 2=%zu\nngram 3=%zu\n", model->num_ids,
          model->bigrams.size, model->trigrams.size);
  write_unigrams(file, model);
  write_bigrams(file, model, bigram_share);
  write_trigrams(file, model, bigram_share, trigram_share);
  fputs("\n\\end\\\n", file);
  bool good = ferror(file) == 0;
  return fclose(file) == 0 && good;
}

static bool index_bigrams(struct model *model) {
  struct ngrams *bigrams = &model->bigrams;
  bigrams->backoff = malloc(bigrams->size * sizeof *bigrams->backoff);
  model->first_bigram = calloc((size_t)model->num_ids + 1, sizeof *model->first_bigram);
  if (bigrams->backoff == NULL || model->first_bigram == NULL) return false;
  for (size_t i = 0; i < bigrams->size; i++) {
    bigrams->backoff[i] = 1;
    model->first_bigram[(bigrams->keys[i] >> model->bits) + 1]++;
  }
  for (uint32_t id = 0; id < model->num_ids; id++)
    model->first_bigram[id + 1] += model->first_bigram[id];
  return true;
}

bool lm_write(const struct text *text, uint32_t num_words, uint32_t min_bigram,
              uint32_t min_trigram, const char *path) {
  struct model model = {.num_ids = num_words + FIRST_WORD, .bits = 1};
  while ((uint64_t)1 << model.bits < model.num_ids) model.bits++;
  float *bigram_share = NULL, *trigram_share = NULL;
  if (min_trigram < min_bigram)
    min_trigram = min_bigram; /* so that the history of a kept trigram is kept */
  model.unigram_backoff = malloc(model.num_ids * sizeof *model.unigram_backoff);
  bool good = model.unigram_backoff != NULL && make_unigrams(text, &model) &&
              count(text, 2, model.bits, &model.bigrams) &&
              count(text, 3, model.bits, &model.trigrams);
  if (good)
    good = (bigram_share = malloc(model.bigrams.size * sizeof *bigram_share)) != NULL &&
           (trigram_share = malloc(model.trigrams.size * sizeof *trigram_share)) != NULL;
  if (good) {
    for (uint32_t id = 0; id < model.num_ids; id++) model.unigram_backoff[id] = 1;
    drop_rare(&model.bigrams, model.bits, min_bigram, bigram_share, put_unigram_backoff, &model);
    good = index_bigrams(&model);
  }
  if (good) {
    drop_rare(&model.trigrams, model.bits, min_trigram, trigram_share, put_bigram_backoff, &model);
    good = write_model(path, &model, bigram_share, trigram_share);
  }
  if (good)
    printf("language model: %u, %zu, %zu n-grams, counted on %zu words\n", model.num_ids,
           model.bigrams.size, model.trigrams.size, text->size);
  void *owned[] = {model.bigrams.keys,    model.bigrams.counts,  model.bigrams.backoff,
                   model.trigrams.keys,   model.trigrams.counts, model.unigram,
                   model.unigram_backoff, model.first_bigram,    bigram_share,
                   trigram_share};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
  return good;
}
