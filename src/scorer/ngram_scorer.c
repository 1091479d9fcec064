/* ngram_scorer.c - the scorer over a mapped language model: a context is a state of the model. */
#include <math.h>
#include <stdlib.h>

#include "base/callbacks.h"
#include "base/config.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "fst/symbols.h"
#include "lm/lm.h"
#include "scorer/lm_cover.h"
#include "scorer/scorer.h"

enum { MOST_NGRAMS = 8000000 }; /* whose least costs are found, which takes 3.5 ns for each */

struct ngram_scorer {
  wf_scorer scorer;
  wf__wlm *lm;
  wf_ngram_scorer_options options;
  uint32_t num_labels;
  uint32_t *word_of; /* [num_labels] of the graph: word of the model, or WF__WLM_NONE: impossible */
  float *least;      /* [num_labels] least cost of each word; NULL: unknown */
  float least_of_all;
};

static void ngram_free(wf_scorer *self) {
  struct ngram_scorer *ngram = (struct ngram_scorer *)self;
  wf__wlm_free(ngram->lm);
  free(ngram->word_of);
  free(ngram->least);
  free(ngram);
}

static wf_status ngram_begin(const wf_scorer *self, void *memory, uint64_t *start, wf_error *err) {
  *start = ((const struct ngram_scorer *)self)->lm->view.start;
  return WF_OK;
}

/* A damaged file may hold any value. */
static float sound(float cost) { return fabsf(cost) <= 1e20f ? cost : INFINITY; }

static wf_status ngram_step(const wf_scorer *self, void *memory, uint64_t context, int32_t label,
                            float *cost, uint64_t *next, wf_error *err) {
  const struct ngram_scorer *ngram = (const struct ngram_scorer *)self;
  uint32_t word = (uint32_t)label < ngram->num_labels ? ngram->word_of[label] : WF__WLM_NONE,
           state = 0, at;
  *cost = INFINITY;
  if (word != WF__WLM_NONE)
    *cost = sound(ngram->options.lm_scale *
                  wf__wlm_cost(ngram->lm, (uint32_t)context, word, &state, &at));
  *next = state;
  return WF_OK;
}

static wf_status ngram_final(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                             wf_error *err) {
  const struct ngram_scorer *ngram = (const struct ngram_scorer *)self;
  *cost = sound(ngram->options.lm_scale * wf__wlm_final(ngram->lm, (uint32_t)context, NULL));
  return WF_OK;
}

static wf__cost_bounds ngram_bounds(const wf_scorer *self, const void *memory, uint64_t context) {
  return (wf__cost_bounds){((const struct ngram_scorer *)self)->least_of_all, INFINITY};
}

static const char *ngram_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  const struct ngram_scorer *ngram = (const struct ngram_scorer *)self;
  const wf__wlm_view *view = &ngram->lm->view;
  wf__flat_part *part = wf__flat_push(out, WF__FLAT_NGRAM, view->num_states, self);
  if (part == NULL) return WF__FLAT_TOO_LONG;
  part->lm = *view;
  part->model = ngram->lm;
  part->word_of = ngram->word_of;
  part->num_labels = ngram->num_labels;
  part->lm_scale = ngram->options.lm_scale;
  part->placement = ngram->options.placement;
  part->gpu_bytes = ngram->options.lm_gpu_bytes;
  part->ends = wf__wlm_knows(view, view->eos);
  part->start = view->start;
  return NULL;
}

static const wf__scorer_ops ngram_ops = {.name = "n-gram",
                                         .free = ngram_free,
                                         .begin = ngram_begin,
                                         .step = ngram_step,
                                         .final = ngram_final,
                                         .bounds = ngram_bounds,
                                         .flatten = ngram_flatten};

/* --- words of the graph and of the model --------------------------------------------------- */

/* NeMo's scripts write the token with id t of a subword model as the character t + this. */
enum { NEMO_FIRST = 100 };

static int64_t nemo_word(const wf_symbols *own, int64_t label) {
  char text[5] = "";
  uint32_t code = (uint32_t)(label - 1 + NEMO_FIRST);
  if (code < 0x80) {
    text[0] = (char)code;
  } else if (code < 0x800) {
    text[0] = (char)(0xc0 | code >> 6);
    text[1] = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text[0] = (char)(0xe0 | code >> 12);
    text[1] = (char)(0x80 | (code >> 6 & 0x3f));
    text[2] = (char)(0x80 | (code & 0x3f));
  }
  return text[0] != '\0' ? wf_symbols_find(own, text) : -1;
}

/* The number of words that the model has in NeMo's writing, if all of its words are such; else 0.
 */
static uint64_t count_nemo(const struct ngram_scorer *ngram) {
  uint64_t found = 0, num_known = 0;
  const wf_symbols *own = ngram->lm->words;
  for (int64_t label = 1; label < ngram->num_labels; label++) {
    int64_t word = nemo_word(own, label);
    found += word >= 0 && wf__wlm_has_word(ngram->lm, (int32_t)word);
  }
  for (int64_t word = 0; word < wf_symbols_next_key(own); word++) {
    const char *text = wf_symbols_text(own, word);
    num_known += text != NULL && text[0] != '<' && wf__wlm_has_word(ngram->lm, (int32_t)word);
  }
  return found == num_known ? found : 0;
}

/* Words that the model lacks become its unknown word, if it has one. */
static wf_status map_texts(struct ngram_scorer *ngram, const wf_symbols *words, bool has_unk,
                           uint64_t *out_known, wf_error *err) {
  const wf_symbols *own = ngram->lm->words;
  const char *text;
  int64_t key;
  wf__lm_cover cover = {0};
  wf_status status = WF_OK;
  for (size_t i = 0; status == WF_OK && (text = wf_symbols_at(words, i, &key)) != NULL; i++) {
    int64_t word = wf_symbols_find(own, wf__lm_name(text));
    bool known = word >= 0 && wf__wlm_has_word(ngram->lm, (int32_t)word);
    if (key <= 0) continue;
    if (known) ngram->word_of[key] = (uint32_t)word;
    *out_known += known;
    status = wf__lm_cover_add(&cover, text, known, err);
  }
  uint64_t num_nemo = status == WF_OK && cover.num_unknown > 0 ? count_nemo(ngram) : 0;
  if (num_nemo > *out_known) {
    *out_known = num_nemo;
    for (int64_t label = 1; label < ngram->num_labels; label++) {
      int64_t word = nemo_word(own, label);
      bool known = word >= 0 && wf__wlm_has_word(ngram->lm, (int32_t)word);
      ngram->word_of[label] = known ? (uint32_t)word : ngram->word_of[0];
    }
    wf__log(WF_LOG_INFO, "the language model has tokens in NeMo's writing: characters from %d on",
            NEMO_FIRST);
  } else if (status == WF_OK && *out_known > 0) {
    wf__lm_cover_warn(&cover, has_unk);
  }
  wf__lm_cover_free(&cover);
  return status;
}

/* Maps the words of the graph's table to the model's by their text. */
static wf_status map_words(struct ngram_scorer *ngram, const wf_symbols *words, wf_error *err) {
  const wf__wlm_view *view = &ngram->lm->view;
  const wf_symbols *own = ngram->lm->words;
  int64_t num = wf_symbols_next_key(words != NULL ? words : own);
  uint32_t unk =
      view->unk != WF__WLM_NONE && wf__wlm_knows(view, view->unk) ? view->unk : WF__WLM_NONE;
  if (num > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "word table %s: label %lld is too large",
                    wf__symbols_shown(words), (long long)num - 1);
  ngram->num_labels = (uint32_t)num;
  ngram->word_of = wf__alloc((uint64_t)num, sizeof *ngram->word_of);
  if (ngram->word_of == NULL) return wf__fail_memory(err, (uint64_t)num * 4, "a scorer");
  for (int64_t i = 0; i < num; i++) ngram->word_of[i] = unk;
  uint64_t known = 0;
  if (words != NULL) WF__TRY(map_texts(ngram, words, unk != WF__WLM_NONE, &known, err));
  for (int64_t i = 0; words == NULL && i < num; i++)
    if (wf__wlm_has_word(ngram->lm, (int32_t)i)) ngram->word_of[i] = (uint32_t)i, known++;
  if (known == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the language model knows none of the words of %s",
                    wf__symbols_shown(words != NULL ? words : own));
  return WF_OK;
}

/* Finds the least costs of the graph's words, unless the model is so large that it takes long. */
static wf_status find_least(struct ngram_scorer *ngram, wf_error *err) {
  const wf__wlm_view *view = &ngram->lm->view;
  ngram->least_of_all = -INFINITY;
  if (view->num_small + view->num_large > MOST_NGRAMS) return WF_OK;
  float *of_model = wf__alloc(view->num_words, sizeof *of_model);
  ngram->least = wf__alloc(ngram->num_labels, sizeof *ngram->least);
  wf_status status =
      of_model != NULL && ngram->least != NULL
          ? wf__wlm_least_costs(ngram->lm, ngram->options.lm_scale < 0, of_model, err)
          : wf__fail_memory(err, ngram->num_labels * sizeof *of_model, "a scorer");
  for (uint32_t i = 0; i < ngram->num_labels && status == WF_OK; i++)
    ngram->least[i] = ngram->word_of[i] != WF__WLM_NONE
                          ? fabsf(ngram->options.lm_scale) * of_model[ngram->word_of[i]]
                          : INFINITY;
  free(of_model);
  if (status != WF_OK) return status;
  ngram->least_of_all = INFINITY;
  for (uint32_t i = 1; i < ngram->num_labels; i++)
    ngram->least_of_all = fminf(ngram->least_of_all, ngram->least[i]);
  ngram->scorer.least = ngram->least;
  ngram->scorer.num_least = ngram->num_labels;
  ngram->scorer.least_of_table = ngram->least_of_all;
  return WF_OK;
}

wf_status wf_scorer_from_lm(const wf_lm *lm, const wf_symbols *words,
                            const wf_ngram_scorer_options *options, wf_scorer **out,
                            wf_error *err) {
  *out = NULL;
  wf_ngram_scorer_options o;
  wf__wlm *mapped;
  WF__TRY(wf__options_take(wf__ngram_scorer_table(), options, &o, err));
  WF__TRY(wf__lm_mapped(lm, &mapped, err));
  if (words == NULL && lm->words != mapped->words) words = lm->words;
  struct ngram_scorer *ngram = wf__calloc(1, sizeof *ngram);
  if (ngram == NULL) return wf__fail_memory(err, sizeof *ngram, "a scorer");
  wf__scorer_init(&ngram->scorer, &ngram_ops, 0);
  ngram->lm = wf__wlm_ref(mapped);
  ngram->scorer.context_words = mapped->header->order - 1;
  while ((uint64_t)1 << ngram->scorer.context_bits < mapped->view.num_states)
    ngram->scorer.context_bits++;
  ngram->options = o;
  wf_status status = map_words(ngram, words, err);
  if (status == WF_OK) status = find_least(ngram, err);
  if (status != WF_OK) {
    ngram_free(&ngram->scorer);
    return status;
  }
  *out = &ngram->scorer;
  return WF_OK;
}
