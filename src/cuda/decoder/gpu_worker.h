/* gpu_worker.h - one GPU's worker: its graph, its memory, its flights (gpu_plan.h), and the batch it takes chunks from. A batch's way through this folder:
 *
 *   cuda_backend.c         checks; the decoder's workers, one host thread each; who decodes what
 *   gpu_plan.c             how much memory, before any is allocated
 *   gpu_memory.c           graph and workspace on the GPU
 *   upload_scorers.c       scorers on the GPU
 *   upload_added_words.c   words added to the graph, on the GPU
 *   gpu_worker.c           chunk after chunk: scores to the GPU, search, results back
 *   upload_scores.c        scores from host memory: checked, packed and sent by several threads
 *   rnn_scoring.c          the search with a recurrent scorer (rnn_scoring.h)
 *   gpu_pipeline.c         what batches, streams and recurrent scoring do alike (gpu_pipeline.h)
 *   read_lattice.c         the lattice of an utterance from what a lane wrote of it
 *
 * Streams have gpu_streams.h. */
#ifndef WF_CUDA_DECODER_GPU_WORKER_H
#define WF_CUDA_DECODER_GPU_WORKER_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/map64.h"
#include "base/threads.h"
#include "cpu/search.h"
#include "cuda/decoder/gpu_plan.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "lm/wlm_read.h"

/* A batch that workers share: they take chunks, longest utterances first. */
typedef struct wf__deal {
  const wf__batch *batch;
  uint32_t *which; /* utterances by queue, longest first */
  struct {
    int device; /* where the scores lie: only its workers take from here; -1: host memory, anybody */
    uint32_t next, end;
  } queues[WF__MAX_WORKERS + 1];
  int num_queues;
  uint32_t num_utterances; /* of this round */
  uint32_t *again;       /* utterances whose frames need a wider lane */
  uint32_t num_again;
  pthread_mutex_t mutex; /* over queues[].next and again */
  uint32_t num_all;      /* of the batch, num_done of them done */
  atomic_uint num_done;
  atomic_int failed; /* 0, or the status that ends the batch; the others then stop */
} wf__deal;

/* Arcs of lattices as lanes wrote them. */
typedef struct wf__gpu_pages {
  wf__lane_link *links; /* [pages][WF__LANE_PAGE] */
  uint64_t *contexts;   /* beside them; NULL without scorers */
} wf__gpu_pages;

/* A flight that has come back; the pool's threads fill its utterances in. */
typedef struct wf__landing {
  struct wf__gpu_worker *worker;
  struct wf__flight *flight;
  wf__deal *deal;
  int window; /* of the worker's landing windows; -1: none */
  wf__lane_step *steps;
  wf__gpu_pages pages;
  wf_error error; /* of the thread that set deal->failed */
} wf__landing;

/* A flight is in the air, its results are copied, then filled in. */
typedef enum wf__flight_stage { WF__IN_THE_AIR, WF__COPIED, WF__FILLED } wf__flight_stage;

/* A chunk of utterances on its way. */
typedef struct wf__flight {
  cudaStream_t stream;
  cudaStream_t back_stream; /* for lattices, behind `searched`; with priority, as it holds little of the GPU but the memory of all that were searched */
  cudaEvent_t searched;
  char *memory; /* its share of the workspace */
  void *global_tables; /* WF__BACKWARD_GLOBAL's, while that is under way */
  char *box;    /* page-locked */
  uint32_t count;
  uint64_t number; /* of those launched so far */
  bool on_device; /* the scores were there already */
  wf__flight_stage stage;
  wf__landing landing;
  wf__job job; /* fills the landing's utterances in */
} wf__flight;

/* A language model on the GPU; it stays while anybody else has it. */
typedef struct wf__gpu_model {
  wf_wlm *lm;
  int32_t placement;
  int64_t wanted;       /* lm_gpu_bytes */
  char *memory, *host;  /* host: page-locked, read by the GPU */
  uint64_t bytes, host_bytes;
  wf__wlm_view view;    /* over these */
} wf__gpu_model;

/* An array of a scorer, and where it lies on the GPU. */
typedef struct wf__gpu_piece {
  const void *data;
  uint64_t bytes, at;
} wf__gpu_piece;

/* Of n-grams in host memory: found in caches, read, the bytes of these, cycles that warps waited for them. */
typedef struct wf__gpu_lm_counts {
  uint64_t hits, reads, bus_bytes, cycles;
} wf__gpu_lm_counts;

typedef struct wf__gpu_scorers {
  WF__VEC(wf__gpu_model) models;
  WF__VEC(wf__flat_scorer) flats; /* of the batch, pointers as on the host until they are sent */
  WF__VEC(wf__gpu_piece) pieces;
  wf__map64 flat_of, piece_of;    /* address of a scorer, of an array -> number */
  char *memory;                   /* flats, then pieces */
  uint64_t bytes;
  wf__gpu_lm_counts gone;         /* of models that are */
} wf__gpu_scorers;

/* A scorer that streams have, in memory of its own: it is sent once, not with every chunk. */
typedef struct wf__held_scorer {
  wf_scorer *scorer;
  uint64_t users;
  wf__gpu_scorers store; /* without models, which are the worker's */
  struct wf__gpu_asking *asking; /* of a recurrent scorer, or a chain with it, which starts in `root`; else NULL */
  uint32_t root;
  wf_scorer *on_cpu;     /* what the CPU asks: the scorer, but for a recurrent part that is on a GPU */
  struct wf__held_scorer *next;
} wf__held_scorer;

/* Words added to the graph, for as long as the last batch or streams search it with them. */
typedef struct wf__held_words {
  wf_graph *graph;
  uint64_t users;
  char *memory; /* wf__lane_words, its classes, their trees */
  uint64_t bytes;
  struct wf__held_words *next;
} wf__held_words;

typedef struct wf__gpu_worker {
  const wf_graph *graph;
  wf_decoder_options options;
  int device;
  wf__gpu_facts facts; /* `available` anew for each batch */
  void *graph_memory;  /* states, then arcs */
  char *workspace, *pinned;
  char *landing_windows; /* in `pinned`: WF__LANDINGS of plan.landing_bytes each, for paths and arcs of lattices */
  bool landing_taken[WF__LANDINGS];
  uint64_t graph_bytes, workspace_bytes, pinned_bytes;
  cudaStream_t copy_stream;
  uint32_t *stop; /* page-locked, what kernels look at: not 0, they end */
  cudaEvent_t window_sent[2], copied, entered;
  int window; /* to fill next */
  int usual_size;  /* a batch begins with lanes of at least this size: smaller ones were too small too often */
  wf__gpu_plan plan;
  wf_plan largest;        /* plan so far */
  wf__lane_params params; /* what all flights share */
  wf__flight flights[WF__MAX_FLIGHTS];
  wf__pool *pool;
  wf__gpu_scorers scorers;
  struct wf__gpu_asking *asking; /* the last batch's recurrent scorer; NULL: there was none. facts.asks: it is this batch's */
  struct wf__gpu_asking *stream_askings; /* those of streams */
  wf__held_scorer *held; /* by streams */
  wf__held_words *words;
  WF__VEC(wf__held_words *) batch_words;
  wf__map64 words_of;    /* address of a graph of the batch -> number in batch_words */
  wf__scoring *scorings; /* [pool size] for what a scorer has said along a path */
  wf__search **searches; /* [pool size] for what does not fit the plan, made on first use */
  wf_error *errors;      /* [pool size] scratch */
  struct wf__gpu_drafts *drafts; /* [pool size] of lattices; NULL unless there are any */
  struct wf__gpu_streams *streams; /* made for the first stream */
} wf__gpu_worker;

/* An array of a flight on the GPU, and what it hands the GPU or gets from it. */
static inline void *wf__flight_array(const wf__gpu_worker *worker, const wf__flight *flight, wf__array array) {
  return flight->memory + worker->plan.off[array];
}
static inline void *wf__flight_box(const wf__gpu_worker *worker, const wf__flight *flight, wf__box part) { return flight->box + worker->plan.box_off[part]; }

/* gpu_memory.c */
wf_status wf__gpu_facts_read(int device, int32_t num_columns, wf__gpu_facts *out, wf_error *err);
/* Bytes free on the current device. */
wf_status wf__gpu_free_memory(uint64_t *out, wf_error *err);
wf_status wf__gpu_upload_graph(wf__gpu_worker *worker, wf_error *err);
/* Makes the worker's memory what worker->plan says; it only grows. */
wf_status wf__gpu_reserve(wf__gpu_worker *worker, wf_error *err);
void wf__gpu_release(wf__gpu_worker *worker);

/* upload_scorers.c */
/* Puts the batch's scorers on the worker's GPU; facts.scored and scorer_bytes say what came of it. */
wf_status wf__gpu_take_scorers(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err);
/* Where an utterance's scorer is there; NULL for none. */
static inline const wf__flat_scorer *wf__gpu_scorer_of(const wf__gpu_worker *worker, const wf__batch *batch, uint32_t utterance) {
  const wf_scorer *scorer = batch->scorers != NULL ? batch->scorers[utterance] : NULL;
  const uint32_t number = scorer != NULL ? wf__map64_find(&worker->scorers.flat_of, (uint64_t)(uintptr_t)scorer) : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? (const wf__flat_scorer *)(const void *)worker->scorers.memory + number : NULL;
}
void wf__gpu_release_scorers(wf__gpu_worker *worker);
/* The scorer for as long as a stream has it. On the current device. */
wf_status wf__gpu_hold_scorer(wf__gpu_worker *worker, const wf_scorer *scorer, wf__held_scorer **out, wf_error *err);
/* *place becomes NULL, as it may have been. */
void wf__gpu_let_scorer_go(wf__gpu_worker *worker, wf__held_scorer **place);
const wf__flat_scorer *wf__gpu_held_flat(const wf__held_scorer *held);
/* upload_added_words.c */
/* Puts the words of the batch's graphs on the worker's GPU, after its scorers; adds to facts.scored and scorer_bytes. */
wf_status wf__gpu_take_words(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err);
const wf__lane_words *wf__gpu_words_of(const wf__gpu_worker *worker, const wf_graph *graph);
void wf__gpu_release_words(wf__gpu_worker *worker);
/* The words of a graph for as long as a stream has it; NULL if it has none. On the current device. */
wf_status wf__gpu_hold_words(wf__gpu_worker *worker, const wf_graph *graph, wf__held_words **out, wf_error *err);
/* *place becomes NULL, as it may have been. */
void wf__gpu_let_words_go(wf__gpu_worker *worker, wf__held_words **place);
static inline const wf__lane_words *wf__gpu_held_words(const wf__held_words *held) { return held != NULL ? (const wf__lane_words *)(const void *)held->memory : NULL; }
/* upload_scorers.c: adds the figures of the worker's models. */
void wf__gpu_add_lm_stats(const wf__gpu_worker *worker, wf_lm_stats *stats);

/* rnn_scoring.c (rnn_scoring.h) */
/* Makes the batch's recurrent scorer, *asks: it has one, what worker->asking is of. */
wf_status wf__gpu_asking_take(wf__gpu_worker *worker, const wf__batch *batch, bool *asks, wf_error *err);
/* Then, when all chains' other scorers are on the GPU: where utterances start. */
wf_status wf__gpu_asking_take_chains(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err);
/* Of an utterance of the batch, at `place` in its flight. */
uint32_t wf__gpu_root_of(const wf__gpu_worker *worker, const wf__batch *batch, uint32_t utterance, uint32_t place);
/* The search of a flight with it, once what is on `entered` is done; waits until all is done. `utterances`: those of `params`, in host memory. */
wf_status wf__gpu_asking_search(wf__gpu_worker *worker, wf__lane_params *params, const wf__lane_utterance *utterances, cudaStream_t entered, wf_error *err);
/* The batch's scorer on the CPU. */
const wf_scorer *wf__gpu_asking_twin(const wf__gpu_worker *worker, const wf_scorer *scorer);
void wf__gpu_asking_free(wf__gpu_worker *worker);

/* upload_scores.c: the flight's scores to its memory; its stream waits for them. Sets the box's utterances and, for bad scores, BAD. */
wf_status wf__gpu_send_scores(wf__gpu_worker *worker, wf__flight *flight, const wf__batch *batch, wf_error *err);

/* Is there a score among these columns that is no number to search with? Of scores in host memory; fast. */
bool wf__gpu_any_bad(const wf_scores *scores, int32_t num_columns);

/* read_lattice.c */
wf_status wf__gpu_drafts_create(int count, struct wf__gpu_drafts **out, wf_error *err);
void wf__gpu_drafts_free(struct wf__gpu_drafts *drafts, int count);
/* The lattice of an utterance that a lane has finished, from its graph, its best path and its chain of pages; `thread` of the worker's pool, whose scoring has the
 * utterance's scorer if it is `scored`. */
wf_status wf__gpu_lattice(wf__gpu_worker *worker, const wf_graph *graph, const wf__lane_outcome *outcome, const wf__lane_step *path, const wf__gpu_pages *pages, bool scored,
                          int thread, wf_lattice **out, wf_error *err);

/* gpu_worker.c */
/* What the kernels must know of graph and options. */
void wf__gpu_fill_options(wf__lane_params *params, const wf_graph *graph, const wf_decoder_options *options);
/* Up to plan.chunk utterances for the flight; flight->count 0: none left. */
void wf__gpu_take(wf__gpu_worker *worker, wf__flight *flight, wf__deal *deal);
/* The size of lanes after the plan's; 0 if there are no such lanes. */
int wf__gpu_next_size(const wf__gpu_worker *worker);
/* Decodes what flights[0] has taken and then what is left, until nothing is or another worker has failed. `progress` may be NULL. */
wf_status wf__gpu_work(wf__gpu_worker *worker, wf__deal *deal, void *caller_stream, const wf_progress *progress, wf_error *err);

#endif
