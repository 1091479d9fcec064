/* rnnlm_score.c - the public queries: whole sentences, and single words with states owned by the
 * caller. Each thread scores SLOTS sentences at a time, one word of each per step. When a sentence
 * ends, its slot takes the next sentence of the chunk. A chunk is CHUNK sentences, the work item of
 * a thread. */
#include <stdlib.h>

#include "base/interrupt.h"
#include "base/threads.h"
#include "lm/rnnlm_sentences.h"

enum { SLOTS = 32, CHUNK = 512 };

/* Computes the costs of up to work->max_batch queries. Sets their log_norm if the output is a
 * softmax. */
static void costs_of(const wf_rnnlm *lm, size_t count, wf__rnn_query *queries, float *costs,
                     wf__rnn_work *work) {
  if (lm->output_kind == WF_RNNLM_SOFTMAX) {
    const float *states[SLOTS];
    float norms[SLOTS];
    for (size_t i = 0; i < count; i++) states[i] = queries[i].state;
    wf__rnn_log_norms(lm, count, states, norms, work);
    for (size_t i = 0; i < count; i++) queries[i].log_norm = norms[i];
  }
  wf__rnn_costs(lm, count, queries, costs);
}

wf_status wf__rnn_check_words(const wf_rnnlm *lm, const int32_t *words, uint64_t count,
                              wf_error *err) {
  for (uint64_t i = 0; i < count; i++)
    if (words[i] < 0 || (uint64_t)words[i] >= lm->num_words)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "word %d (at %llu) is outside the vocabulary of %zu words", words[i],
                      (unsigned long long)i, lm->num_words);
  return WF_OK;
}

/* --- sentences --------------------------------------------------------------------------- */

struct scoring {
  wf__sentences text;
  float *costs;
  struct thread {
    wf__sentence slots[SLOTS];
    float *states; /* [SLOTS][state] */
    wf__rnn_work work;
  } * threads;
};

static void begin_sentence(const struct scoring *s, struct thread *thread, size_t i,
                           uint64_t sentence) {
  const wf_rnnlm *lm = s->text.lm;
  wf__sentence_begin(&s->text, sentence, &thread->slots[i]);
  memcpy(thread->states + i * wf__rnn_state_floats(lm), lm->start,
         wf__rnn_state_floats(lm) * sizeof(float));
}

/* Scores one word of each of the slots [0, active). */
static void score_words(const struct scoring *s, struct thread *thread, size_t active) {
  const wf_rnnlm *lm = s->text.lm;
  wf__rnn_query queries[SLOTS];
  const float *from[SLOTS];
  float *to[SLOTS], costs[SLOTS];
  int32_t words[SLOTS];
  for (size_t i = 0; i < active; i++) {
    const wf__sentence *slot = &thread->slots[i];
    to[i] = thread->states + i * wf__rnn_state_floats(lm);
    from[i] = to[i];
    words[i] = wf__sentence_word(&s->text, slot);
    queries[i] = (wf__rnn_query){from[i], slot->previous, slot->num_previous, words[i], 0};
  }
  costs_of(lm, active, queries, costs, &thread->work);
  for (size_t i = 0; i < active; i++) {
    s->costs[wf__sentence_place(&s->text, &thread->slots[i])] = costs[i];
    wf__sentence_go_on(lm, &thread->slots[i], words[i]);
  }
  wf__rnn_advance(lm, active, from, words, to, &thread->work);
}

static void score_chunk(void *user, uint64_t item, int worker) {
  const struct scoring *s = user;
  struct thread *thread = &s->threads[worker];
  uint64_t next = item * CHUNK, end = next + CHUNK < s->text.count ? next + CHUNK : s->text.count;
  size_t active = 0, floats = wf__rnn_state_floats(s->text.lm);
  while (active < SLOTS && next < end) begin_sentence(s, thread, active++, next++);
  while (active > 0) {
    score_words(s, thread, active);
    for (size_t i = active; i-- > 0;) {
      if (thread->slots[i].at <= thread->slots[i].length) continue;
      if (next < end) {
        begin_sentence(s, thread, i, next++);
      } else if (i != --active) {
        thread->slots[i] = thread->slots[active];
        memcpy(thread->states + i * floats, thread->states + active * floats,
               floats * sizeof(float));
      }
    }
  }
}

wf_status wf_rnnlm_score(const wf_rnnlm *rnnlm, const int32_t *words, const uint64_t *first,
                         size_t num_sentences, int num_threads, float *costs, wf_error *err) {
  if (num_sentences == 0) return WF_OK;
  WF__TRY(wf__rnn_check_words(rnnlm, words + first[0], first[num_sentences] - first[0], err));
  struct scoring s = {{rnnlm, words, first, num_sentences}, costs, NULL};
  if (rnnlm->on_device != NULL) return wf__rnn_score_on_device(&s.text, costs, err);
  uint64_t num_chunks = (num_sentences + CHUNK - 1) / CHUNK;
  int threads = num_threads > 0 ? num_threads : wf__num_cpus();
  if ((uint64_t)threads > num_chunks) threads = (int)num_chunks;
  wf__pool *pool = NULL;
  WF__TRY(wf__pool_create(threads, &pool, err));
  s.threads = wf__calloc((uint64_t)threads, sizeof *s.threads);
  wf_status status = s.threads != NULL
                         ? WF_OK
                         : wf__fail_memory(err, (uint64_t)threads * sizeof *s.threads, "scoring");
  for (int t = 0; t < threads && status == WF_OK; t++) {
    s.threads[t].states = wf__alloc(SLOTS * wf__rnn_state_floats(rnnlm), sizeof(float));
    status = s.threads[t].states != NULL
                 ? wf__rnn_work_init(rnnlm, SLOTS, &s.threads[t].work, err)
                 : wf__fail_memory(err, SLOTS * wf__rnn_state_floats(rnnlm) * 4, "hidden states");
  }
  if (status == WF_OK) status = wf__pool_try(pool, num_chunks, score_chunk, &s, err);
  for (int t = 0; t < threads && s.threads != NULL; t++) {
    free(s.threads[t].states);
    wf__rnn_work_free(&s.threads[t].work);
  }
  free(s.threads);
  wf__pool_free(pool);
  return status;
}

/* --- single words ------------------------------------------------------------------------ */

/* Layout of a public state: hidden floats, number of previous words, these words, latest first. */
static size_t state_bytes(const wf_rnnlm *lm) {
  return wf__rnn_state_floats(lm) * sizeof(float) +
         (1 + (size_t)wf__rnn_history(lm)) * sizeof(int32_t);
}

void wf_rnnlm_start(const wf_rnnlm *rnnlm, void *state) {
  memset(state, 0, state_bytes(rnnlm));
  memcpy(state, rnnlm->start, wf__rnn_state_floats(rnnlm) * sizeof(float));
  int32_t *words = (int32_t *)state + wf__rnn_state_floats(rnnlm);
  wf__rnn_push_word(rnnlm, words + 1, words, rnnlm->bos);
}

/* Steps up to SLOTS states. */
static void step_some(const wf_rnnlm *lm, size_t count, const uint8_t *states, const int32_t *words,
                      float *costs, uint8_t *next, wf__rnn_work *work) {
  wf__rnn_query queries[SLOTS];
  const float *from[SLOTS];
  float *to[SLOTS];
  size_t floats = wf__rnn_state_floats(lm), bytes = state_bytes(lm);
  for (size_t i = 0; i < count; i++) {
    from[i] = (const float *)(const void *)(states + i * bytes);
    const int32_t *previous = (const int32_t *)(const void *)(from[i] + floats);
    queries[i] = (wf__rnn_query){from[i], previous + 1, previous[0], words[i], 0};
  }
  if (costs != NULL) costs_of(lm, count, queries, costs, work);
  if (next == NULL) return;
  for (size_t i = 0; i < count; i++) {
    memcpy(next + i * bytes, from[i], bytes);
    to[i] = (float *)(void *)(next + i * bytes);
    int32_t *previous = (int32_t *)(void *)(to[i] + floats);
    wf__rnn_push_word(lm, previous + 1, previous, words[i]);
  }
  wf__rnn_advance(lm, count, from, words, to, work);
}

wf_status wf_rnnlm_step(const wf_rnnlm *rnnlm, size_t count, const void *states,
                        const int32_t *words, float *costs, void *next, wf_error *err) {
  if (rnnlm->reverse)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the recurrent language model reads sentences from their end: it can only "
                    "score whole sentences");
  WF__TRY(wf__rnn_check_words(rnnlm, words, count, err));
  wf__rnn_work work;
  WF__TRY(wf__rnn_work_init(rnnlm, count < SLOTS ? count : SLOTS, &work, err));
  size_t bytes = state_bytes(rnnlm);
  for (size_t i = 0; i < count; i += SLOTS) {
    size_t some = count - i < SLOTS ? count - i : SLOTS;
    step_some(rnnlm, some, (const uint8_t *)states + i * bytes, words + i,
              costs != NULL ? costs + i : NULL, next != NULL ? (uint8_t *)next + i * bytes : NULL,
              &work);
  }
  wf__rnn_work_free(&work);
  return WF_OK;
}
