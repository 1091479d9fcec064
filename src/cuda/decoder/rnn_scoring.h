/* rnn_scoring.h - searches with a recurrent scorer on a GPU, whose scores are made between
 * launches.
 *
 *   rnn_scoring.c          tables, rounds of a search
 *   batch_rnn_scoring.c    batches. A worker keeps the scoring of the last batch's recurrent
 *                          scorer. Roots are the batch's chains or, with rnnlm_cache=utterance,
 *                          the utterances of a chunk
 *   stream_rnn_scoring.c   streams. A worker has a scoring for each of their recurrent scorers.
 *                          Roots come and go with the chains. The streams' slots on the GPU
 *                          refer to contexts between chunks */
#ifndef WF_CUDA_DECODER_RNN_SCORING_H
#define WF_CUDA_DECODER_RNN_SCORING_H

#include "cuda/decoder/gpu_worker.h"
#include "cuda/rnn/rnn_score_tables.h"
#include "lm/rnn_device.h"
#include "scorer/rnn_scorer.h"

enum wf__rnn_array {
  /* by max_contexts */
  WF__RNN_ARRAY_TABLE,
  WF__RNN_ARRAY_PLACES,
  WF__RNN_ARRAY_CONTEXTS,
  WF__RNN_ARRAY_WORDS,
  WF__RNN_ARRAY_MISSING,
  WF__RNN_ARRAY_CLAIMS,
  WF__RNN_ARRAY_FREE_CONTEXTS,
  WF__RNN_ARRAY_CONTEXT_LIVES,
  WF__RNN_ARRAY_ROOTS,
  WF__RNN_ARRAY_STARTS,
  /* by max_slots */
  WF__RNN_ARRAY_HASHES,
  WF__RNN_ARRAY_FREE_SLOTS,
  WF__RNN_ARRAY_SLOT_LIVES,
  /* of a round */
  WF__RNN_ARRAY_REQUESTS,
  WF__RNN_ARRAY_COSTS,
  WF__RNN_ARRAY_MADE_AT,
  WF__RNN_ARRAY_MOVES,
  WF__RNN_ARRAY_SLOTS,
  /* of a search */
  WF__RNN_ARRAY_SAVED,
  WF__RNN_ARRAY_COUNTERS,
  WF__RNN_ARRAY_LABELS,
  WF__RNN_ARRAY_FACTORS,
  WF__RNN_ARRAY_NGRAM,
  WF__RNN_ARRAY_SMALL,
  WF__RNN_ARRAY_STREAM_CONTEXTS,
  WF__NUM_RNN_ARRAYS
};

/* A scorer of the batch: the recurrent one, or a chain with it. */
struct wf__rnn_chain {
  wf_scorer *scorer;
  wf_scorer *cpu_scorer; /* the same with its recurrent part on the CPU, for costs along paths */
};

struct wf__rnn_scoring {
  int number_bits;   /* bits for contexts in the keys of this batch */
  wf_scorer *scorer; /* the recurrent one; owned, as is the next */
  wf_scorer *cpu_scorer;
  WF__VEC(struct wf__rnn_chain) chains;
  wf__map64 chain_of; /* address of a scorer -> number in chains */
  bool own_roots;     /* each utterance has its own contexts; otherwise each chain has */
  /* of streams */
  bool streams;
  uint64_t num_users;                         /* streams that share this */
  WF__VEC(struct wf__gpu_channel *) channels; /* streams that are searched with it */
  WF__VEC(uint8_t) root_states;               /* WF__ROOT_* */
  struct wf__rnn_scoring *next;
  wf_rnnlm *lm; /* on this GPU */
  wf__rnn_device *device;
  cudaStream_t stream; /* the device's */
  wf__rnn_state_tables tables;
  struct {
    void *data;
    uint64_t bytes;
  } arrays[WF__NUM_RNN_ARRAYS];
  wf__lane_counters *counters; /* page-locked */
  bool incomplete;     /* the last search ended early: some requests in the table have no scores */
  int bits;            /* of max_contexts */
  uint32_t num_scores; /* in the table */
  uint64_t num_frames; /* searched since the tables were last emptied */
  wf__rnn_counts counts;
};

enum { WF__ROOT_FREE, WF__ROOT_LIVE, WF__ROOT_LEFT /* free after the next eviction */ };

/* Opens the scoring of a recurrent scorer on a GPU; wf__rnn_scoring_close frees it. number_bits: of
 * a key, for contexts. */
wf_status wf__rnn_scoring_open(int device, const wf_scorer *scorer, int number_bits,
                               struct wf__rnn_scoring **out, wf_error *err);
void wf__rnn_scoring_close(struct wf__rnn_scoring *a);
/* Makes an array at least so large; its contents are lost if it grows. */
wf_status wf__rnn_scoring_reserve(struct wf__rnn_scoring *a, enum wf__rnn_array which,
                                  uint64_t bytes, wf_error *err);
/* Evicts everything except the contexts that tokens of streams and of lanes (p; may be NULL) refer
 * to.
 */
wf_status wf__rnn_scoring_forget(struct wf__rnn_scoring *a, const wf__lane_params *p,
                                 wf_error *err);
/* Utterances start in `count` roots from now on. `forgets`: evicts everything. */
wf_status wf__rnn_scoring_set_roots(struct wf__rnn_scoring *a, const wf__flat_scorer *const *roots,
                                    uint32_t count, bool forgets, wf_error *err);
/* Frees the batch's chains. */
void wf__rnn_scoring_free_chains(struct wf__rnn_scoring *a);
/* Makes the tables twice as large; evicts, too. */
wf_status wf__rnn_scoring_grow(struct wf__rnn_scoring *a, const wf__lane_params *p, wf_error *err);

/* Frees the worker's, of batches and of streams. */
void wf__gpu_close_rnn_scorings(struct wf__gpu_worker *worker);
/* Waits for the work on the recurrent scorers' streams; for calls that end early. */
void wf__gpu_drain_rnn_scorings(const struct wf__gpu_worker *worker);

/* A search whose scores are made between its launches. */
typedef struct wf__rnn_search {
  wf__search_kind kind;
  wf__lane_params *params;
  const wf__lane_utterance *utterances; /* those of `params`, in host memory */
  uint64_t num_begun;                   /* of them begin, for the counts */
  cudaStream_t entered;                 /* the search waits for the work on this stream */
} wf__rnn_search;

/* Searches to the end: launches, makes scores and launches again until no lane waits. After
 * WF_ERR_CANCELLED work may be left on a->stream: wf__gpu_drain_rnn_scorings. */
wf_status wf__rnn_scoring_search(struct wf__rnn_scoring *a, const wf__rnn_search *search,
                                 wf_error *err);

#endif
