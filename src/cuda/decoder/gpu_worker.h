/* gpu_worker.h - one GPU's worker: its graph, its memory, its chunks in flight (gpu_plan.h) and
 * the work queue that it takes them from. The files of a batch, in order:
 *
 *   cuda_backend.c         checks; the decoder's workers, one host thread each; the work queue
 *   gpu_plan.c             the memory plan
 *   lane_memory.c          the layout of the lanes' arrays and the transfer block
 *   gpu_memory.c           the workspace on the GPU
 *   upload_graph.c         the graph on the GPU
 *   upload_scorers.c       scorers on the GPU
 *   upload_added_words.c   words added to the graph, on the GPU
 *   gpu_worker.c           chunk after chunk: scores to the GPU, search, results back
 *   upload_scores.c        scores from host memory: checked, packed and sent by several threads
 *   gpu_launch.c           the launches of a chunk: searches, passes that make lattices
 *   gpu_submit.c           the transfer block to the GPU, the launch of the search
 *   batch_rnn_scoring.c    the recurrent scorer of the batch and its chains
 *   rnn_scoring.c          the rounds of a search with a recurrent scorer (rnn_scoring.h)
 *   gpu_pipeline.c         waits, reads back, reports errors (gpu_pipeline.h)
 *   read_lattice.c         the lattice of an utterance from the arcs that a lane wrote
 *
 * Streams have gpu_streams.h. */
#ifndef WF_CUDA_DECODER_GPU_WORKER_H
#define WF_CUDA_DECODER_GPU_WORKER_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/map64.h"
#include "base/threads.h"
#include "search/frame/search.h"
#include "plan/gpu_plan.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/gpu_submit.h"
#include "lm/wlm_read.h"

/* A batch that workers share. They take chunks of it, longest utterances first. */
typedef struct wf__work_queue {
  const wf__batch *batch;
  uint32_t *utterances; /* their numbers, queue by queue, longest first */
  struct {
    int device; /* GPU of the scores: only its workers take from here; -1: host memory, any worker
                 */
    uint32_t next, end; /* of `utterances` */
  } queues[WF__MAX_WORKERS + 1];
  int num_queues;
  uint32_t num_utterances; /* of this round */
  uint32_t *retry;         /* utterances whose frames need a larger lane */
  uint32_t num_retry;
  pthread_mutex_t mutex; /* over queues[].next and retry */
  uint32_t num_all;      /* utterances of the batch; num_done of them are done */
  atomic_uint num_done;
  atomic_int failed; /* 0, or the status that ends the batch; all workers then stop */
} wf__work_queue;

/* Arcs of lattices as lanes wrote them. */
typedef struct wf__gpu_pages {
  wf__lane_link *links; /* [pages][WF__LANE_PAGE] */
  uint64_t *contexts;   /* beside them; NULL without scorers */
} wf__gpu_pages;

/* Results of a chunk in host memory, from which the pool's threads make the utterances' results. */
typedef struct wf__readback {
  struct wf__gpu_worker *worker;
  struct wf__batch_chunk *chunk;
  wf__work_queue *work;
  int window; /* readback window of the worker for the arrays that fit it; -1: none */
  wf__lane_step *steps;
  wf__gpu_pages pages;
  wf_error error; /* of the thread that set work->failed */
} wf__readback;

/* State of a chunk: searched, results being copied, results being filled in. */
typedef enum wf__chunk_stage {
  WF__CHUNK_SEARCHED,
  WF__CHUNK_COPIED,
  WF__CHUNK_FILLED
} wf__chunk_stage;

/* A chunk of utterances in flight. */
typedef struct wf__batch_chunk {
  cudaStream_t stream;
  cudaStream_t backward_stream; /* for passes that make lattices, which have priority, and for the
                                   copies of their results. Work is put into it when the search has
                                   ended, because work that waits in a stream can delay other
                                   streams */
  char *memory;                 /* its share of the workspace */
  void *global_tables; /* WF__BACKWARD_GLOBAL's, of global_bytes, until the batch ends; owned */
  uint64_t global_bytes;
  wf__backward_tables tables; /* of the next pass that may be needed */
  wf__search_room room;       /* over `memory` and page-locked memory of the worker */
  uint32_t count;             /* utterances; 0: the chunk is free */
  uint64_t number;            /* of those launched so far */
  bool on_device;             /* the scores were already on the GPU */
  wf__chunk_stage stage;
  wf__readback readback;
  wf__job job; /* makes the readback's results */
} wf__batch_chunk;

/* A language model on the GPU. It stays as long as an owner besides the workers has it. */
typedef struct wf__gpu_model {
  wf_wlm *lm;
  int32_t placement;
  int64_t wanted;      /* lm_gpu_bytes */
  char *memory, *host; /* host: page-locked, read by all GPUs (host_model.h) */
  uint64_t bytes, host_bytes;
  wf__wlm_view view; /* points into these */
} wf__gpu_model;

/* The arrays of a long list of boosts (or of a model's words), in memory of their own. */
typedef struct wf__gpu_list {
  wf_scorer *owner;
  char *memory;
  uint64_t bytes;
  uint64_t users; /* scorers of streams that contain it */
  bool in_batch;  /* the last batch uses it */
} wf__gpu_list;

/* An array of a scorer, and its address on the GPU. */
typedef struct wf__gpu_piece {
  const void *data;
  uint64_t bytes, at;
} wf__gpu_piece;

/* Counts for n-grams in host memory: cache hits, reads, bytes that the reads moved, cycles that
 * warps waited for them. */
typedef struct wf__gpu_lm_counts {
  uint64_t hits, reads, bus_bytes, cycles;
} wf__gpu_lm_counts;

typedef struct wf__gpu_scorers {
  WF__VEC(wf__gpu_model) models;
  WF__VEC(wf__gpu_list) lists;    /* the oldest first */
  WF__VEC(wf__flat_scorer) flats; /* of the batch, pointers as on the host until they are sent */
  WF__VEC(wf__gpu_piece) pieces;
  wf__map64 flat_of, piece_of; /* address of a scorer, of an array -> number */
  char *memory;                /* flats, then pieces */
  uint64_t bytes;
  wf__gpu_lm_counts gone; /* counts of models that were freed */
} wf__gpu_scorers;

/* A scorer shared by streams. It has its own memory and is sent once, not with every chunk. */
typedef struct wf__shared_scorer {
  wf_scorer *scorer;
  uint64_t users;
  wf__gpu_scorers store;               /* without models and lists, which belong to the worker */
  bool holds_lists;                    /* it is among the users of its long lists */
  struct wf__rnn_scoring *rnn_scoring; /* of a recurrent scorer or a chain with one, which starts in
                                          `root`; else NULL */
  uint32_t root;
  wf_scorer *on_cpu; /* for scores on the CPU: the scorer, with its recurrent part replaced by the
                        one on the CPU */
  struct wf__shared_scorer *next;
} wf__shared_scorer;

/* Words added to a graph. They stay as long as the last batch or a stream uses them. */
typedef struct wf__shared_words {
  wf_graph *graph;
  uint64_t users;
  char *memory; /* wf__lane_words, its classes, their trees */
  uint64_t bytes;
  struct wf__shared_words *next;
} wf__shared_words;

typedef struct wf__gpu_worker {
  const wf_graph *graph;
  wf_decoder_options options;
  int device;
  wf__device_limits limits; /* `available` is read for each batch */
  void *graph_memory;       /* states, then arcs */
  char *workspace, *pinned;
  char *readback_windows; /* in `pinned`: WF__READBACKS of plan.readback_bytes each, for paths and
                             arcs of lattices */
  bool window_taken[WF__READBACKS];
  uint64_t graph_bytes, workspace_bytes, pinned_bytes;
  cudaStream_t copy_stream;
  cudaStream_t
      group_streams[WF__MAX_RANK_BITS]; /* for searches beside that of the chunk's stream */
  uint32_t *stop;                       /* page-locked: kernels end when it is not 0 */
  cudaEvent_t window_sent[2], copied, entered, between_groups;
  int window;          /* the window to fill next */
  double frames_per_s; /* of batches that lay on GPUs and filled all lanes, with the time until
                          their scores had moved; 0: not known */
  double finished;     /* when its part of the last batch was done, seconds */
  int usual_size; /* least size of lanes that a batch begins with; smaller ones were too small too
                     often */
  wf__gpu_plan plan;
  wf_plan largest;        /* the largest plan so far */
  wf__lane_params params; /* the parameters that all chunks share */
  wf__batch_chunk chunks[WF__MAX_CHUNKS];
  wf__pool *pool;
  wf__gpu_scorers scorers;
  struct wf__rnn_scoring *rnn_scoring; /* of the last batch with a recurrent scorer; NULL: there was
                                          none. limits.deferred: this batch has it */
  struct wf__rnn_scoring *stream_scorings; /* those of streams */
  wf__shared_scorer *shared_scorers;       /* that streams have */
  wf__shared_words *shared_words;
  WF__VEC(wf__shared_words *) batch_words;
  wf__map64 words_of;    /* address of a graph of the batch -> number in batch_words */
  wf__scoring *scorings; /* [pool size] for costs of scorers along paths */
  wf__searcher *
      *searches;    /* [pool size] for utterances that do not fit the plan, made on first use */
  wf_error *errors; /* [pool size] scratch */
  struct wf__gpu_drafts *drafts;   /* [pool size] of lattices; NULL unless there are any */
  struct wf__gpu_streams *streams; /* made for the first stream */
} wf__gpu_worker;

/* An array of a chunk on the GPU; a part of its transfer block on the host's side. */
static inline void *wf__chunk_array(const wf__gpu_worker *worker, const wf__batch_chunk *chunk,
                                    wf__batch_array array) {
  return chunk->memory + worker->plan.off[array];
}
static inline void *wf__chunk_transfer(const wf__batch_chunk *chunk, wf__transfer_part part) {
  return wf__search_room_part(&chunk->room, part);
}

/* gpu_memory.c */
wf_status wf__device_limits_read(int device, int32_t num_columns, wf__device_limits *out,
                                 wf_error *err);
/* Bytes free on the current device. */
wf_status wf__gpu_free_memory(uint64_t *out, wf_error *err);
/* Allocates the worker's memory as worker->plan says; it only grows. */
wf_status wf__gpu_reserve(wf__gpu_worker *worker, wf_error *err);
void wf__gpu_release(wf__gpu_worker *worker);

/* upload_graph.c */
wf_status wf__gpu_upload_graph(wf__gpu_worker *worker, wf_error *err);

/* upload_scorers.c */
/* Sends the batch's scorers to the worker's GPU. Sets limits.scored and limits.scorer_bytes. */
wf_status wf__gpu_take_scorers(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err);
/* Address of an utterance's scorer on the GPU; NULL: it has none. */
static inline const wf__flat_scorer *wf__gpu_scorer_of(const wf__gpu_worker *worker,
                                                       const wf__batch *batch, uint32_t utterance) {
  const wf_scorer *scorer = batch->scorers != NULL ? batch->scorers[utterance] : NULL;
  const uint32_t number =
      scorer != NULL ? wf__map64_find(&worker->scorers.flat_of, (uint64_t)(uintptr_t)scorer)
                     : WF__MAP64_NONE;
  return number != WF__MAP64_NONE
             ? (const wf__flat_scorer *)(const void *)worker->scorers.memory + number
             : NULL;
}
void wf__gpu_close_scorers(wf__gpu_worker *worker);
/* Acquires the scorer. It is sent to the current device if no stream has it yet. */
wf_status wf__gpu_acquire_scorer(wf__gpu_worker *worker, const wf_scorer *scorer,
                                 wf__shared_scorer **out, wf_error *err);
/* Ends the sharing; *place may be NULL and becomes NULL. */
void wf__gpu_release_scorer(wf__gpu_worker *worker, wf__shared_scorer **place);
/* Where it is on the GPU; NULL for NULL. */
const wf__flat_scorer *wf__shared_scorer_there(const wf__shared_scorer *scorer);

/* upload_added_words.c */
/* Puts the words of the batch's graphs on the worker's GPU, after its scorers; adds to
 * limits.scored and scorer_bytes. */
wf_status wf__gpu_take_words(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err);
const wf__lane_words *wf__gpu_words_of(const wf__gpu_worker *worker, const wf_graph *graph);
void wf__gpu_close_words(wf__gpu_worker *worker);
/* Acquires the words added to a graph; *out = NULL if it has none. They are sent to the current
 * device if no other owner has them. */
wf_status wf__gpu_acquire_words(wf__gpu_worker *worker, const wf_graph *graph,
                                wf__shared_words **out, wf_error *err);
/* Ends the sharing; *place may be NULL and becomes NULL. */
void wf__gpu_release_words(wf__gpu_worker *worker, wf__shared_words **place);
/* Where they are on the GPU; NULL for NULL. */
static inline const wf__lane_words *wf__shared_words_there(const wf__shared_words *words) {
  return words != NULL ? (const wf__lane_words *)(const void *)words->memory : NULL;
}

/* upload_scorers.c: adds the counts of the worker's language models. */
void wf__gpu_add_lm_stats(const wf__gpu_worker *worker, wf_lm_stats *stats);

/* batch_rnn_scoring.c, the last two rnn_scoring.c */
/* Opens worker->rnn_scoring for the batch's recurrent scorer, unless it is open already. *deferred:
 * the batch has one. */
wf_status wf__batch_rnn_take(wf__gpu_worker *worker, const wf__batch *batch, bool *deferred,
                             wf_error *err);
/* Makes the roots of the batch's chains. Their other scorers must be on the GPU. */
wf_status wf__batch_rnn_take_chains(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err);
/* The root of an utterance of the batch, at `place` in its chunk. */
uint32_t wf__batch_rnn_root(const wf__gpu_worker *worker, const wf__batch *batch,
                            uint32_t utterance, uint32_t place);
/* The same scorer of the batch with its recurrent part on the CPU. */
const wf_scorer *wf__batch_rnn_cpu_scorer(const wf__gpu_worker *worker, const wf_scorer *scorer);
void wf__gpu_close_rnn_scorings(wf__gpu_worker *worker);
/* Waits for the work on the recurrent scorers' streams; for calls that end early. */
void wf__gpu_drain_rnn_scorings(const wf__gpu_worker *worker);

/* upload_scores.c */
/* Sends the chunk's scores; its stream waits for them. Writes the utterances of the transfer block
 * and the places of bad scores. */
wf_status wf__gpu_send_scores(wf__gpu_worker *worker, wf__batch_chunk *chunk,
                              const wf__batch *batch, wf_error *err);

/* Is any score of the first columns unusable? For scores in host memory. */
bool wf__gpu_any_bad(const wf_scores *scores, int32_t num_columns);

/* read_lattice.c */
wf_status wf__gpu_drafts_create(int count, struct wf__gpu_drafts **out, wf_error *err);
void wf__gpu_drafts_free(struct wf__gpu_drafts *drafts, int count);
/* Makes the lattice of an utterance that a lane has finished, from its graph, its best path and
 * its chain of pages. `thread`: of the worker's pool; its scoring has the utterance's scorer if
 * it is `scored`. `determinizers` (may be NULL) has memory for it. */
wf_status wf__gpu_lattice(wf__gpu_worker *worker, const wf_graph *graph,
                          const wf__lane_outcome *outcome, const wf__lane_step *path,
                          const wf__gpu_pages *pages, bool scored, wf__determinizers *determinizers,
                          int thread, wf_lattice **out, wf_error *err);

/* gpu_launch.c */
/* Writes the kernels' parameters of graph and options. */
void wf__gpu_fill_options(wf__lane_params *params, const wf_graph *graph,
                          const wf_decoder_options *options);
/* The kind of the batch's searches. */
wf__search_kind wf__gpu_kind_of(const wf__gpu_worker *worker);
/* Queues all work on the chunk's streams. Waits only for the scores of a recurrent scorer. */
wf_status wf__gpu_launch_chunk(const wf__gpu_worker *worker, wf__batch_chunk *chunk, wf_error *err);
/* Queues the pass with these tables, after the search or the pass before has ended. */
wf_status wf__gpu_make_lattices(const wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                wf__backward_tables tables, wf_error *err);

/* gpu_worker.c */
/* Takes up to plan.chunk_size utterances for the chunk; chunk->count 0: none were left. */
void wf__gpu_take(wf__gpu_worker *worker, wf__batch_chunk *chunk, wf__work_queue *work);
/* The next larger size of lanes than the plan's smallest; 0: there is none. */
int wf__gpu_next_size(const wf__gpu_worker *worker);
/* Decodes what chunks[0] has taken, then takes from the queue until it is empty or another worker
 * has failed. `progress` may be NULL. */
wf_status wf__gpu_work(wf__gpu_worker *worker, wf__work_queue *work, void *caller_stream,
                       const wf_progress *progress, wf_error *err);

#endif
