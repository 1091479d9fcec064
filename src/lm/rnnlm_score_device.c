/* rnnlm_score_device.c - scores whole sentences on a GPU, thousands at a time, one word of each per
 * step. Each row processes one sentence and has its own slot for the hidden state. When the
 * sentence ends, the row takes the next sentence of the text. If there is none, the last row is
 * moved here. */
#include <stdlib.h>

#include "lm/rnn_device.h"
#include "lm/rnnlm_sentences.h"

enum { MOST_ROWS = 8192 };

struct row {
  wf__sentence sentence;
  uint32_t own;  /* the row's slot */
  uint32_t slot; /* slot that holds its state: WF__RNN_START_SLOT at first, then `own` */
};

struct rows {
  wf__sentences text;
  wf__rnn_device *device;
  uint64_t count; /* active rows */
  struct row *all;
  uint32_t *slots; /* of the rows, for the norms */
  wf__rnn_request *requests;
  wf__rnn_move *moves;
  uint64_t *hashes; /* [rows][order] */
  float *costs;
};

static wf_status make_rows(struct rows *r, uint64_t most, wf_error *err) {
  const uint64_t order = r->text.lm->maxent_order > 0 ? (uint64_t)r->text.lm->maxent_order : 1;
  r->all = wf__alloc(most, sizeof *r->all);
  r->slots = wf__alloc(most, sizeof *r->slots);
  r->requests = wf__alloc(most, sizeof *r->requests);
  r->moves = wf__alloc(most, sizeof *r->moves);
  r->hashes = wf__alloc(most * order, sizeof *r->hashes);
  r->costs = wf__alloc(most, sizeof *r->costs);
  bool fine = r->all != NULL && r->slots != NULL && r->requests != NULL && r->moves != NULL &&
              r->hashes != NULL && r->costs != NULL;
  return fine
             ? WF_OK
             : wf__fail_memory(err, most * (sizeof *r->all + order * sizeof *r->hashes), "scoring");
}

static void free_rows(struct rows *r) {
  free(r->all);
  free(r->slots);
  free(r->requests);
  free(r->moves);
  free(r->hashes);
  free(r->costs);
}

/* Scores one word of each row, then advances the rows whose sentences continue. */
static wf_status score_words(struct rows *r, float *costs, wf_error *err) {
  const wf_rnnlm *lm = r->text.lm;
  uint64_t num_hashes = 0, num_moves = 0;
  for (uint64_t i = 0; i < r->count; i++) {
    const struct row *row = &r->all[i];
    const int orders = wf__rnn_hashes(lm, row->sentence.previous, row->sentence.num_previous,
                                      r->hashes + num_hashes);
    const int32_t word = wf__sentence_word(&r->text, &row->sentence);
    r->slots[i] = row->slot;
    r->requests[i] = (wf__rnn_request){.slot = row->slot,
                                       .word = word,
                                       .first_hash = (uint32_t)num_hashes,
                                       .orders = (uint32_t)orders};
    num_hashes += (uint64_t)orders;
  }
  WF__TRY(wf__gpu_rnn()->norms(r->device, r->slots, r->count, err));
  WF__TRY(
      wf__gpu_rnn()->costs(r->device, r->requests, r->count, r->hashes, num_hashes, r->costs, err));
  for (uint64_t i = 0; i < r->count; i++) {
    struct row *row = &r->all[i];
    costs[wf__sentence_place(&r->text, &row->sentence)] = r->costs[i];
    wf__sentence_go_on(lm, &row->sentence, r->requests[i].word);
    if (row->sentence.at > row->sentence.length) continue;
    r->moves[num_moves++] =
        (wf__rnn_move){.from = row->slot, .to = row->own, .word = r->requests[i].word};
    row->slot = row->own;
  }
  return wf__gpu_rnn()->advance(r->device, r->moves, num_moves, err);
}

static void begin(struct rows *r, struct row *row, uint64_t sentence) {
  wf__sentence_begin(&r->text, sentence, &row->sentence);
  row->slot = WF__RNN_START_SLOT;
}

static wf_status score_all(struct rows *r, uint64_t most, float *costs, wf_error *err) {
  uint64_t next = 0;
  for (; r->count < most; r->count++) {
    r->all[r->count].own = (uint32_t)r->count + 1;
    begin(r, &r->all[r->count], next++);
  }
  while (r->count > 0) {
    WF__TRY(score_words(r, costs, err));
    for (uint64_t i = r->count; i-- > 0;) {
      if (r->all[i].sentence.at <= r->all[i].sentence.length) continue;
      if (next < r->text.count)
        begin(r, &r->all[i], next++);
      else
        r->all[i] = r->all[--r->count];
    }
  }
  return WF_OK;
}

wf_status wf__rnn_score_on_device(const wf__sentences *text, float *costs, wf_error *err) {
  struct rows r = {.text = *text};
  const uint64_t most = text->count < MOST_ROWS ? text->count : MOST_ROWS;
  wf_status status = make_rows(&r, most, err);
  if (status == WF_OK) status = wf__gpu_rnn()->open(text->lm, most, &r.device, err);
  if (status == WF_OK) status = score_all(&r, most, costs, err);
  if (r.device != NULL) wf__gpu_rnn()->close(r.device);
  free_rows(&r);
  return status;
}
