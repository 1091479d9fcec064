/* gpu_worker.h - one GPU's worker: its graph, its memory, its chunks in flight (gpu_plan.h) and
 * the work queue that it takes them from. The files of a batch, in order:
 *
 *   cuda_backend.c         checks; the decoder's workers, one host thread each; the work queue
 *   gpu_plan.c             the memory plan
 *   lane_memory.c          the layout of the lanes' arrays and the transfer block
 *   gpu_memory.c           the workspace on the GPU
 *   upload_graph.c         the graph on the GPU
 *   upload_scorers.c       scorers on the GPU (cuda/scorer/)
 *   upload_added_words.c   words added to the graph, on the GPU
 *   gpu_worker.c           chunk after chunk: scores to the GPU, search
 *   chunk_results.c        results back, made by the worker's threads (gpu_threads.h)
 *   upload_scores.c        scores from host memory: checked, packed and sent by several threads
 *   gpu_launch.c           the launches of a chunk: searches, passes that make lattices
 *   gpu_submit.c           the transfer block to the GPU, the launch of the search
 *   batch_rnn_scoring.c    the recurrent scorer of the batch and its chains
 *   rnn_scoring.c          the rounds of a search with a recurrent scorer (rnn_scoring.h)
 *   gpu_pipeline.c         waits, reads back, reports errors (gpu_pipeline.h)
 *   read_lattice.c         the lattice of an utterance from the arcs that a lane wrote
 *
 * Each has a header with its part of the worker. Streams have gpu_streams.h. */
#ifndef WF_CUDA_DECODER_GPU_WORKER_H
#define WF_CUDA_DECODER_GPU_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/decoder/chunk_results.h"
#include "cuda/decoder/gpu_launch.h"
#include "cuda/decoder/gpu_memory.h"
#include "cuda/decoder/gpu_threads.h"
#include "cuda/decoder/upload_scorers.h"
#include "cuda/decoder/upload_scores.h"
#include "cuda/graph/upload_added_words.h"
#include "cuda/graph/upload_graph.h"

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

/* What earlier batches were like, for the next one. */
typedef struct wf__gpu_experience {
  double frames_per_s; /* of batches that lay on GPUs and filled all lanes, with the time until
                          their scores had moved; 0: not known */
  double finished;     /* when its part of the last batch was done, seconds */
  int usual_size; /* least size of lanes that a batch begins with; smaller ones were too small too
                     often */
} wf__gpu_experience;

typedef struct wf__gpu_worker {
  const wf_graph *graph;
  wf_decoder_options options;
  int device;
  wf__device_limits limits; /* `available` is read for each batch */
  wf__gpu_plan plan;
  cudaStream_t copy_stream;
  wf__gpu_threads threads;
  wf__gpu_memory memory;
  wf__gpu_graph uploaded;
  wf__score_windows windows;
  wf__gpu_launches launches;
  wf__batch_chunk chunks[WF__MAX_CHUNKS];
  wf__readback_windows readbacks;
  wf__gpu_experience experience;
  wf__gpu_scorers scorers;
  wf__shared_scorer *shared_scorers; /* those of streams */
  wf__gpu_words words;
  struct wf__rnn_scoring *rnn_scoring; /* of the last batch with a recurrent scorer; NULL: there was
                                          none. limits.deferred: this batch has it */
  struct wf__rnn_scoring *stream_scorings; /* those of streams */
  struct wf__gpu_streams *streams;         /* made for the first stream */
} wf__gpu_worker;

/* Takes up to plan.chunk_size utterances for the chunk; chunk->count 0: none were left. */
void wf__gpu_take(wf__gpu_worker *worker, wf__batch_chunk *chunk, wf__work_queue *work);
/* Decodes what chunks[0] has taken, then takes from the queue until it is empty or another worker
 * has failed. `progress` may be NULL. */
wf_status wf__gpu_work(wf__gpu_worker *worker, wf__work_queue *work, void *caller_stream,
                       const wf_progress *progress, wf_error *err);

#endif
