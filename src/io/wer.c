/* wer.c - alignment of reference and hypothesis, and the counts of the word error rate.
 *
 * The dynamic programming keeps one row of costs and, for every cell, its best step in two bits:
 *
 *             hypothesis ->             step: 0 pair, 1 insertion, 2 deletion
 *     reference  [.][.][.][.]           four cells per byte, row by row
 *         |      [.][.][.][.]
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_tables.h"
#include "base/utf8.h"

enum { COST_INSERTION = 3, COST_DELETION = 3, COST_SUBSTITUTION = 4 };
enum { STEP_PAIR, STEP_INSERTION, STEP_DELETION };
#define MAX_CELLS ((uint64_t)1 << 33)
#define MAX_LENGTH ((uint64_t)1 << 29) /* so that costs fit 32 bits */

typedef struct token {
  const char *text; /* as in the transcript */
  uint32_t id;      /* of the folded text: equal words have equal ids */
} token;
typedef WF__VEC(token) tokens;

struct wf_wer {
  wf_wer_options options;
  wf_symbols *words;   /* folded text -> id */
  wf_symbols *ignored; /* folded words to drop */
  wf_wer_counts totals;
  wf__arena arena; /* texts of the last utterance */
  WF__VEC(wf_wer_pair) pairs;
  WF__VEC(char) folded; /* scratch */
  tokens reference, hypothesis;
};

wf_status wf_wer_create(const wf_wer_options *options, wf_wer **out, wf_error *err) {
  if (out == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "out is NULL");
  *out = NULL;
  wf_wer *wer = wf__calloc(1, sizeof *wer);
  if (wer == NULL) return wf__fail_memory(err, sizeof *wer, "a score");
  wf_status status = wf__options_take(wf__wer_table(), options, &wer->options, err);
  if (status == WF_OK) status = wf_symbols_create("words", &wer->words, err);
  if (status == WF_OK) status = wf_symbols_create("ignored", &wer->ignored, err);
  if (status != WF_OK) {
    wf_wer_free(wer);
    return status;
  }
  *out = wer;
  return WF_OK;
}

void wf_wer_free(wf_wer *wer) {
  if (wer == NULL) return;
  wf_symbols_free(wer->words);
  wf_symbols_free(wer->ignored);
  wf__arena_free(&wer->arena);
  wf__vec_free(&wer->pairs);
  wf__vec_free(&wer->folded);
  wf__vec_free(&wer->reference);
  wf__vec_free(&wer->hypothesis);
  free(wer);
}

/* --- words to tokens --------------------------------------------------------------------- */

/* Sets wer->folded to the form of a word that is compared: in lower case if ignore_case is set. */
static wf_status fold(wf_wer *wer, const char *text, size_t size, wf_error *err) {
  wer->folded.size = 0;
  WF__TRY(wf__vec_grow(&wer->folded, size + 1, "a word", err));
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    wer->folded.data[i] =
        wer->options.ignore_case && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
  }
  wer->folded.data[size] = '\0';
  return WF_OK;
}

wf_status wf_wer_ignore(wf_wer *wer, const char *word, wf_error *err) {
  WF__TRY(fold(wer, word, strlen(word), err));
  return wf_symbols_add(wer->ignored, wer->folded.data, -1, NULL, err);
}

static wf_status add_token(wf_wer *wer, tokens *list, const char *text, size_t size,
                           wf_error *err) {
  int64_t id = 0;
  char *copy = wf__arena_alloc(&wer->arena, size + 1);
  if (copy == NULL) return wf__fail_memory(err, size + 1, "a word");
  memcpy(copy, text, size);
  copy[size] = '\0';
  WF__TRY(fold(wer, text, size, err));
  WF__TRY(wf_symbols_add(wer->words, wer->folded.data, -1, &id, err));
  WF__TRY(wf__vec_grow(list, 1, "words", err));
  list->data[list->size++] = (token){copy, (uint32_t)id};
  return WF_OK;
}

static wf_status make_tokens(wf_wer *wer, const wf_transcript *transcript, tokens *list,
                             wf_error *err) {
  list->size = 0;
  for (size_t i = 0; transcript != NULL && i < transcript->num_words; i++) {
    const char *word = transcript->words[i];
    size_t size = strlen(word);
    if (size == 0) continue;
    if (wf_symbols_count(wer->ignored) > 0) {
      WF__TRY(fold(wer, word, size, err));
      if (wf_symbols_find(wer->ignored, wer->folded.data) >= 0) continue;
    }
    if (!wer->options.cer) {
      WF__TRY(add_token(wer, list, word, size, err));
      continue;
    }
    const uint8_t *at = (const uint8_t *)word, *end = at + size;
    while (at < end) {
      size_t length = wf__utf8_length(at, end);
      if (length == 0) length = 1;
      WF__TRY(add_token(wer, list, (const char *)at, length, err));
      at += length;
    }
  }
  return WF_OK;
}

/* --- alignment --------------------------------------------------------------------------- */

static inline void set_step(uint8_t *steps, uint64_t cell, int step) {
  steps[cell >> 2] |= (uint8_t)(step << ((cell & 3) * 2));
}
static inline int get_step(const uint8_t *steps, uint64_t cell) {
  return steps[cell >> 2] >> ((cell & 3) * 2) & 3;
}

/* Fills the steps, which the caller has zeroed. At equal cost, a pair is preferred to an insertion,
 * and an insertion to a deletion. */
static void fill_steps(const tokens *r, const tokens *h, uint32_t *row, uint8_t *steps) {
  uint64_t width = h->size + 1;
  for (uint64_t j = 0; j < width; j++) {
    row[j] = (uint32_t)(j * COST_INSERTION);
    if (j > 0) set_step(steps, j, STEP_INSERTION);
  }
  for (uint64_t i = 1; i <= r->size; i++) {
    uint32_t diagonal = row[0], id = r->data[i - 1].id;
    row[0] = (uint32_t)(i * COST_DELETION);
    set_step(steps, i * width, STEP_DELETION);
    for (uint64_t j = 1; j < width; j++) {
      uint32_t pair = diagonal + (h->data[j - 1].id == id ? 0 : COST_SUBSTITUTION),
               insertion = row[j - 1] + COST_INSERTION, deletion = row[j] + COST_DELETION;
      int step = pair <= insertion && pair <= deletion ? STEP_PAIR
                 : insertion <= deletion               ? STEP_INSERTION
                                                       : STEP_DELETION;
      diagonal = row[j];
      row[j] = step == STEP_PAIR ? pair : step == STEP_INSERTION ? insertion : deletion;
      set_step(steps, i * width + j, step);
    }
  }
}

/* Follows the steps from the last cell back to the first, then reverses the pairs. */
static wf_status trace_back(wf_wer *wer, const uint8_t *steps, wf_error *err) {
  const tokens *r = &wer->reference, *h = &wer->hypothesis;
  uint64_t i = r->size, j = h->size, width = h->size + 1;
  WF__TRY(wf__vec_grow(&wer->pairs, r->size + h->size, "an alignment", err));
  while (i > 0 || j > 0) {
    int step = get_step(steps, i * width + j);
    wf_wer_pair pair = {.step = step == STEP_INSERTION ? 'I' : 'D'};
    if (step != STEP_INSERTION) pair.reference = r->data[--i].text;
    if (step != STEP_DELETION) pair.hypothesis = h->data[--j].text;
    if (step == STEP_PAIR) pair.step = r->data[i].id == h->data[j].id ? '=' : 'S';
    wer->pairs.data[wer->pairs.size++] = pair;
  }
  for (uint64_t a = 0, b = wer->pairs.size; a + 1 < b; a++) {
    wf_wer_pair swap = wer->pairs.data[a];
    wer->pairs.data[a] = wer->pairs.data[--b];
    wer->pairs.data[b] = swap;
  }
  return WF_OK;
}

static wf_status align(wf_wer *wer, const char *key, wf_error *err) {
  uint64_t rows = wer->reference.size + 1, columns = wer->hypothesis.size + 1;
  if (rows > MAX_LENGTH || columns > MAX_LENGTH || rows > MAX_CELLS / columns)
    return wf__fail(err, WF_ERR_LIMIT, "%s: %llu and %llu words are too many to align", key,
                    (unsigned long long)rows - 1, (unsigned long long)columns - 1);
  uint32_t *row = wf__alloc(columns, sizeof *row);
  uint8_t *steps = wf__calloc(rows * columns / 4 + 1, 1);
  wf_status status = WF_OK;
  if (row == NULL || steps == NULL) {
    status = wf__fail_memory(err, rows * columns / 4, "an alignment");
  } else {
    fill_steps(&wer->reference, &wer->hypothesis, row, steps);
    status = trace_back(wer, steps, err);
  }
  free(row);
  free(steps);
  return status;
}

static wf_wer_counts count_pairs(const wf_wer *wer) {
  wf_wer_counts counts = {.num_words = wer->reference.size, .num_utterances = 1};
  for (uint64_t i = 0; i < wer->pairs.size; i++) {
    switch (wer->pairs.data[i].step) {
      case '=': counts.num_correct++; break;
      case 'S': counts.num_substitutions++; break;
      case 'D': counts.num_deletions++; break;
      default: counts.num_insertions++; break;
    }
  }
  counts.num_wrong_utterances =
      counts.num_substitutions + counts.num_deletions + counts.num_insertions > 0;
  return counts;
}

wf_status wf_wer_add(wf_wer *wer, const wf_transcript *reference, const wf_transcript *hypothesis,
                     wf_wer_counts *out_counts, wf_error *err) {
  if (out_counts != NULL) *out_counts = (wf_wer_counts){0};
  wer->pairs.size = 0;
  wf__arena_free(&wer->arena);
  WF__TRY(make_tokens(wer, reference, &wer->reference, err));
  WF__TRY(make_tokens(wer, hypothesis, &wer->hypothesis, err));
  WF__TRY(align(wer, reference->key, err));
  wf_wer_counts counts = count_pairs(wer), *totals = &wer->totals;
  totals->num_words += counts.num_words;
  totals->num_correct += counts.num_correct;
  totals->num_substitutions += counts.num_substitutions;
  totals->num_deletions += counts.num_deletions;
  totals->num_insertions += counts.num_insertions;
  totals->num_utterances += counts.num_utterances;
  totals->num_wrong_utterances += counts.num_wrong_utterances;
  if (out_counts != NULL) *out_counts = counts;
  return WF_OK;
}

const wf_wer_pair *wf_wer_alignment(const wf_wer *wer, size_t *num_pairs) {
  *num_pairs = (size_t)wer->pairs.size;
  return wer->pairs.data;
}

wf_wer_counts wf_wer_totals(const wf_wer *wer) { return wer->totals; }

double wf_wer_percent(const wf_wer_counts *counts) {
  uint64_t errors = counts->num_substitutions + counts->num_deletions + counts->num_insertions;
  if (counts->num_words == 0) return errors != 0 ? INFINITY : 0;
  return 100.0 * (double)errors / (double)counts->num_words;
}
