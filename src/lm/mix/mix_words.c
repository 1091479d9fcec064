/* mix_words.c - the words of several models, in the order of the models. */
#include <string.h>

#include "lm/mix/lm_mix.h"

void wf__mix_free(wf__mix *mix) {
  for (size_t i = 0; i < mix->num_lms; i++) {
    if (mix->word_of != NULL) free(mix->word_of[i]);
    if (mix->label_of != NULL) free(mix->label_of[i]);
  }
  free(mix->word_of);
  free(mix->label_of);
  wf_symbols_free(mix->words);
  *mix = (wf__mix){0};
}

static wf_status allocate(wf__mix *mix, wf_error *err) {
  const uint64_t num = mix->num_lms;
  mix->word_of = wf__calloc(num, sizeof *mix->word_of);
  mix->label_of = wf__calloc(num, sizeof *mix->label_of);
  return mix->word_of != NULL && mix->label_of != NULL
             ? WF_OK
             : wf__fail_memory(err, 2 * num * sizeof *mix->word_of, "words of language models");
}

static wf_status array_of(uint64_t size, uint32_t **out, wf_error *err) {
  *out = wf__alloc(size, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, size * sizeof **out, "words of language models");
  memset(*out, 0xff, size * sizeof **out);
  return WF_OK;
}

static wf_status add_word(wf__mix *mix, size_t i, uint32_t label, uint32_t *word, wf_error *err) {
  const wf__automaton *lm = mix->lms[i];
  if (label == lm->bos || label == lm->eos || label == lm->unk) {
    *word = label == lm->bos ? WF__LM_BOS : label == lm->eos ? WF__LM_EOS : WF__LM_UNK;
    return WF_OK;
  }
  if (!wf__lm_knows(lm, label)) return WF_OK;
  int64_t key;
  const char *text = wf_symbols_text(lm->words, label);
  WF__TRY(wf_symbols_add(mix->words, text, -1, &key, err));
  *word = (uint32_t)key;
  if (key > WF__LM_UNK) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "model %zu has '%s' as an ordinary word, which cannot be mixed with others",
                  i + 1, text);
}

static wf_status add_words(wf__mix *mix, size_t i, wf_error *err) {
  const wf__automaton *lm = mix->lms[i];
  WF__TRY(array_of(lm->num_labels, &mix->word_of[i], err));
  for (uint32_t label = 0; label < lm->num_labels; label++)
    WF__TRY(add_word(mix, i, label, &mix->word_of[i][label], err));
  return WF_OK;
}

wf_status wf__mix_words(const wf__automaton *const *lms, size_t num_lms, wf__mix *out,
                        wf_error *err) {
  *out = (wf__mix){.lms = lms, .num_lms = num_lms};
  WF__TRY(allocate(out, err));
  WF__TRY(wf__lm_words_create(&out->words, err));
  for (size_t i = 0; i < num_lms; i++) WF__TRY(add_words(out, i, err));
  out->num_labels = (uint32_t)wf_symbols_next_key(out->words);
  for (size_t i = 0; i < num_lms; i++) {
    WF__TRY(array_of(out->num_labels, &out->label_of[i], err));
    for (uint32_t label = 0; label < lms[i]->num_labels; label++)
      if (out->word_of[i][label] != WF__LM_NONE) out->label_of[i][out->word_of[i][label]] = label;
  }
  return WF_OK;
}
