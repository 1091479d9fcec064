/* upload_models.h - language models on a GPU. */
#ifndef WF_CUDA_SCORER_UPLOAD_MODELS_H
#define WF_CUDA_SCORER_UPLOAD_MODELS_H

#include <cuda_runtime_api.h>

#include "base/memory.h"
#include "lm/wlm_read.h"
#include "scorer/flat_scorer.h"

/* A language model on the GPU. It stays as long as an owner besides the workers has it. */
typedef struct wf__gpu_model {
  wf__wlm *lm;
  int32_t placement;
  int64_t wanted;      /* lm_gpu_bytes */
  char *memory, *host; /* host: page-locked, read by all GPUs (host_model.h) */
  uint64_t bytes, host_bytes;
  wf__wlm_view view; /* points into these */
} wf__gpu_model;

/* Counts for n-grams in host memory: cache hits, reads, bytes that the reads moved, cycles that
 * warps waited for them. */
typedef struct wf__gpu_lm_counts {
  uint64_t hits, reads, bus_bytes, cycles;
} wf__gpu_lm_counts;

typedef struct wf__gpu_models {
  WF__VEC(wf__gpu_model) list;
  wf__gpu_lm_counts gone; /* counts of models that were freed */
} wf__gpu_models;

/* Where a model goes, and how much of it. */
typedef struct wf__model_room {
  int device;          /* the current one */
  uint64_t limit;      /* gpu_memory; 0: none */
  uint64_t others;     /* bytes of the limit that are not models' */
  cudaStream_t stream; /* for copies */
} wf__model_room;

/* The view of the part's model on the GPU, to which it is sent unless it is there. */
wf_status wf__gpu_find_model(wf__gpu_models *models, const wf__flat_part *part,
                             const wf__model_room *room, const wf__wlm_view **out, wf_error *err);
/* Frees models that only workers (of any decoder) still own. */
void wf__gpu_drop_models(wf__gpu_models *models);
uint64_t wf__gpu_model_bytes(const wf__gpu_models *models);
/* Adds the counts of the models on GPU `device`, where num_warps warps search at the same time. */
void wf__gpu_add_lm_stats(const wf__gpu_models *models, int device, int num_warps,
                          wf_lm_stats *stats);
void wf__gpu_models_free(wf__gpu_models *models);

#endif
