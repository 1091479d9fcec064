/* ngram_levels.c - sorting the n-grams of one order: two passes of counting sort, so time and
 * memory are linear. */
#include "lm/ngram_levels.h"

#include <string.h>

#include "math/cost.h"

void wf__ngram_level_free(wf__ngram_level *level) {
  wf__vec_free(&level->ngrams);
  free(level->first);
  *level = (wf__ngram_level){0};
}

void wf__ngram_levels_free(wf__ngram_levels *levels) {
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) wf__ngram_level_free(&levels->level[k]);
  free(levels->node_of_label);
  *levels = (wf__ngram_levels){0};
}

uint32_t wf__ngram_find(const wf__ngram_levels *levels, int k, uint32_t context, uint32_t word) {
  if (k == 1) return word < levels->num_labels ? levels->node_of_label[word] : WF__LM_NONE;
  const wf__ngram_level *level = &levels->level[k];
  const wf__ngram *ngrams = level->ngrams.data;
  uint64_t first = level->first[context], last = level->first[context + 1];
  while (first < last) {
    uint64_t middle = first + (last - first) / 2;
    if (ngrams[middle].word < word)
      first = middle + 1;
    else
      last = middle;
  }
  return first < level->first[context + 1] && ngrams[first].word == word ? (uint32_t)first
                                                                         : WF__LM_NONE;
}

static bool is_below(const wf__ngram *a, const wf__ngram *b) {
  return a->context != b->context ? a->context < b->context : a->word < b->word;
}

static bool is_sorted(const wf__ngram_level *level) {
  for (uint64_t i = 1; i < level->ngrams.size; i++)
    if (is_below(&level->ngrams.data[i], &level->ngrams.data[i - 1])) return false;
  return true;
}

/* Stable counting sort by context or by word; keys are below num_keys. */
static wf_status scatter(const wf__ngram *in, wf__ngram *out, uint64_t num, bool by_context,
                         uint64_t num_keys, wf_error *err) {
  uint64_t *slot = wf__calloc(num_keys + 1, sizeof *slot);
  if (slot == NULL) return wf__fail_memory(err, (num_keys + 1) * sizeof *slot, "sorting n-grams");
  for (uint64_t i = 0; i < num; i++) slot[(by_context ? in[i].context : in[i].word) + 1]++;
  for (uint64_t key = 1; key <= num_keys; key++) slot[key] += slot[key - 1];
  for (uint64_t i = 0; i < num; i++) out[slot[by_context ? in[i].context : in[i].word]++] = in[i];
  free(slot);
  return WF_OK;
}

static wf_status sort(wf__ngram_level *level, uint64_t num_labels, wf_error *err) {
  if (is_sorted(level)) return WF_OK;
  uint64_t num = level->ngrams.size;
  wf__ngram *spare = wf__alloc(num, sizeof *spare);
  if (spare == NULL) return wf__fail_memory(err, num * sizeof *spare, "sorting n-grams");
  wf_status status = scatter(level->ngrams.data, spare, num, false, num_labels, err);
  if (status == WF_OK)
    status = scatter(spare, level->ngrams.data, num, true, level->num_contexts, err);
  free(spare);
  return status;
}

/* Merges `b` into `a`, an entry of the same n-gram that is earlier in the file. An n-gram of the
 * file replaces a created one. Probabilities of words outside the vocabulary are added to each
 * other and to <unk>. False if neither is a special case: the file has a duplicate. */
static bool merge(wf__ngram *a, const wf__ngram *b) {
  if (isnan(b->cost)) return true;
  if (isnan(a->cost)) {
    *a = *b;
    return true;
  }
  if (!isnan(a->backoff) && !isnan(b->backoff)) return false;
  a->cost = (float)wf__log_add(a->cost, b->cost);
  if (a->cost < 0) a->cost = 0; /* rounded probabilities may add up to a little more than 1 */
  if (isnan(a->backoff)) a->backoff = b->backoff;
  return true;
}

static wf_status index_level(wf__ngram_levels *levels, int k, wf_error *err) {
  wf__ngram_level *level = &levels->level[k];
  level->first = wf__calloc(level->num_contexts + 1, sizeof *level->first);
  if (level->first == NULL)
    return wf__fail_memory(err, (level->num_contexts + 1) * sizeof *level->first,
                           "an index of n-grams");
  for (uint64_t i = 0; i < level->ngrams.size; i++)
    level->first[level->ngrams.data[i].context + 1]++;
  for (uint64_t c = 1; c <= level->num_contexts; c++) level->first[c] += level->first[c - 1];
  if (k > 1) return WF_OK;
  levels->node_of_label = wf__alloc(levels->num_labels, sizeof *levels->node_of_label);
  if (levels->node_of_label == NULL)
    return wf__fail_memory(err, levels->num_labels * sizeof *levels->node_of_label,
                           "an index of words");
  memset(levels->node_of_label, 0xff, levels->num_labels * sizeof *levels->node_of_label);
  for (uint64_t i = 0; i < level->ngrams.size; i++)
    levels->node_of_label[level->ngrams.data[i].word] = (uint32_t)i;
  return WF_OK;
}

wf_status wf__ngram_level_sort(wf__ngram_levels *levels, int k, uint64_t *duplicate,
                               wf_error *err) {
  wf__ngram_level *level = &levels->level[k];
  level->num_contexts = k == 1 ? 1 : levels->level[k - 1].ngrams.size;
  WF__TRY(sort(level, levels->num_labels, err));
  wf__ngram *ngrams = level->ngrams.data;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < level->ngrams.size; i++) {
    bool same = kept > 0 && ngrams[kept - 1].context == ngrams[i].context &&
                ngrams[kept - 1].word == ngrams[i].word;
    if (same && !merge(&ngrams[kept - 1], &ngrams[i])) {
      *duplicate = i;
      return WF_ERR_FORMAT;
    }
    if (!same) ngrams[kept++] = ngrams[i];
  }
  for (uint64_t i = 0; i < kept; i++)
    if (isnan(ngrams[i].backoff)) ngrams[i].backoff = 0;
  level->ngrams.size = kept;
  return index_level(levels, k, err);
}
