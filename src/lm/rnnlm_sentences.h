/* rnnlm_sentences.h - iterates over the words of sentences, for rnnlm_score.c (CPU) and
 * rnnlm_score_device.c (GPU). */
#ifndef WF_LM_RNNLM_SENTENCES_H
#define WF_LM_RNNLM_SENTENCES_H

#include "lm/rnnlm.h"

/* The arguments of wf_rnnlm_score. */
typedef struct wf__sentences {
  const wf_rnnlm *lm;
  const int32_t *words;
  const uint64_t *first;
  uint64_t count;
} wf__sentences;

/* Position in a sentence. */
typedef struct wf__sentence {
  uint64_t number, length;
  uint64_t at; /* index of the word to predict next; length: </s>; length + 1: done */
  int32_t previous[WF_RNNLM_MAX_ORDER]; /* latest first */
  int32_t num_previous;
} wf__sentence;

/* Adds a word to the words that a cost depends on besides the hidden state (wf__rnn_history). */
static inline void wf__rnn_push_word(const wf_rnnlm *lm, int32_t *previous, int32_t *num_previous,
                                     int32_t word) {
  int32_t room = wf__rnn_history(lm);
  if (room == 0) return;
  if (*num_previous < room) ++*num_previous;
  memmove(previous + 1, previous, (size_t)(*num_previous - 1) * sizeof *previous);
  previous[0] = word;
}

static inline void wf__sentence_begin(const wf__sentences *text, uint64_t number,
                                      wf__sentence *out) {
  out->number = number;
  out->length = text->first[number + 1] - text->first[number];
  out->at = 0;
  out->num_previous = 0;
  wf__rnn_push_word(text->lm, out->previous, &out->num_previous, text->lm->bos);
}

static inline int32_t wf__sentence_word(const wf__sentences *text, const wf__sentence *sentence) {
  if (sentence->at == sentence->length) return text->lm->eos;
  uint64_t at = text->lm->reverse ? sentence->length - 1 - sentence->at : sentence->at;
  return text->words[text->first[sentence->number] + at];
}

/* Index of the current word's cost in the result of wf_rnnlm_score. */
static inline uint64_t wf__sentence_place(const wf__sentences *text, const wf__sentence *sentence) {
  return text->first[sentence->number] + sentence->number + sentence->at;
}

static inline void wf__sentence_go_on(const wf_rnnlm *lm, wf__sentence *sentence, int32_t word) {
  wf__rnn_push_word(lm, sentence->previous, &sentence->num_previous, word);
  sentence->at++;
}

/* WF_ERR_ARGUMENT if a word is not in the vocabulary. */
wf_status wf__rnn_check_words(const wf_rnnlm *lm, const int32_t *words, uint64_t count,
                              wf_error *err);
/* As wf_rnnlm_score, for a model on a GPU (rnnlm_score_device.c). */
wf_status wf__rnn_score_on_device(const wf__sentences *text, float *costs, wf_error *err);

#endif
