/* ops_batch.h - a batch of fsts in device memory, and functions shared by its operations: ops_gpu.c
 * (structure), ops_sums.c (sums over paths). */
#ifndef WF_CUDA_FSTOPS_OPS_BATCH_H
#define WF_CUDA_FSTOPS_OPS_BATCH_H

#include "cuda/device/device_memory.h"
#include "cuda/fstops/device_ops.h"
#include "cuda/fstops/ops_kernels.h"

/* Shared by batches that are derived from one another. */
typedef struct wf__gpu_context {
  int device, users;
  cudaStream_t stream;
  cudaMemPool_t pool;
  char *values; /* page-locked memory for wf__ops_read */
} wf__gpu_context;

/* Blocks of device memory that are freed together. */
enum { WF__GPU_MAX_BLOCKS = 40 };
typedef struct wf__gpu_blocks {
  void *at[WF__GPU_MAX_BLOCKS];
  int count;
} wf__gpu_blocks;

struct wf__gpu_batch {
  wf__gpu_context *context;
  bool log_semiring;
  bool trimmed; /* known to be trimmed: every state is on a path from its start to a final state */
  wf__gpu_fsts f;
  wf__gpu_blocks owned;
  uint64_t *state_base, *arc_base; /* [num_fsts + 1], in host memory, like start and input_base */
  int64_t *start;                  /* [num_fsts] a state of the batch; -1: none */
  uint64_t *input_base[2];         /* [num_fsts + 1], only with origins */
  wf_arc_origin *origins;          /* device memory; NULL: none */
  double *gradients, *input_gradients[2]; /* device memory; NULL: not computed */
};

/* The device arrays of a batch, writable. In wf__gpu_fsts, which the kernels read, they are
 * const. */
typedef struct wf__gpu_arrays {
  uint64_t *state_base, *off;
  int64_t *start;
  wf_arc *arcs;
  float *final_cost;
} wf__gpu_arrays;

/* Creates a context with users = 1, the caller. */
wf_status wf__gpu_context_create(int device, wf__gpu_context **out, wf_error *err);
void wf__gpu_context_release(wf__gpu_context *context);

/* What an operation has from its beginning to its end. */
typedef struct wf__gpu_operation {
  wf__gpu_context *context;
  wf__gpu_blocks scratch; /* temporary memory */
  int caller;             /* the current device before it */
} wf__gpu_operation;

/* Makes the context's device the current one. Every operation begins so; after a failure it must
 * not be ended. Operations may be nested. */
wf_status wf__gpu_begin(wf__gpu_context *context, wf__gpu_operation *out, wf_error *err);
/* Returns the temporary memory to the pool, and restores the caller's device. */
void wf__gpu_end(wf__gpu_operation *operation);

wf_status wf__ops_take(wf__gpu_context *context, wf__gpu_blocks *blocks, uint64_t bytes,
                       const char *what, void **out, wf_error *err);
#define TAKE(context, blocks, pointer, count, what)                                  \
  WF__TRY(wf__ops_take(context, blocks, (uint64_t)(count) * sizeof *(pointer), what, \
                       (void **)&(pointer), err))
void wf__ops_release(wf__gpu_context *context, wf__gpu_blocks *blocks);

/* These copy on the context's stream; wf__ops_finish waits for them. */
wf_status wf__ops_to_device(wf__gpu_context *context, void *to, const void *from, uint64_t bytes,
                            wf_error *err);
wf_status wf__ops_to_host(wf__gpu_context *context, void *to, const void *from, uint64_t bytes,
                          wf_error *err);
wf_status wf__ops_finish(wf__gpu_context *context, const char *what, wf_error *err);

/* Copies a few values (WF__OPS_VALUE_BYTES in all) to the host and waits for them. Faster than the
 * two functions above, since the copies go to page-locked memory. */
enum { WF__OPS_VALUE_BYTES = 256 };
typedef struct wf__gpu_value {
  void *to;
  const void *from; /* device memory */
  uint64_t bytes;
} wf__gpu_value;
wf_status wf__ops_read(wf__gpu_context *context, const wf__gpu_value *values, int count,
                       const char *what, wf_error *err);
#define VALUE(variable, device) \
  { &(variable), device, sizeof(variable) }
#define READ(context, what, ...)                     \
  WF__TRY(wf__ops_read(                              \
      context, (const wf__gpu_value[]){__VA_ARGS__}, \
      (int)(sizeof((const wf__gpu_value[]){__VA_ARGS__}) / sizeof(wf__gpu_value)), what, err))

/* Exclusive prefix sums, without waiting; scan64 in place. Temporary memory comes from `blocks`. */
wf_status wf__gpu_scan(wf__gpu_context *context, wf__gpu_blocks *blocks, const uint32_t *in,
                       uint32_t *out, uint64_t count, wf_error *err);
wf_status wf__gpu_scan64(wf__gpu_context *context, wf__gpu_blocks *blocks, uint64_t *values,
                         uint64_t count, wf_error *err);

/* Makes a batch of as many fsts as `from`. `make` reserves its arrays and fills all of them,
 * including bases and starts. */
typedef wf_status wf__gpu_make_fn(wf__gpu_batch *batch, const void *from, wf__gpu_blocks *scratch,
                                  int how, wf_error *err);
wf_status wf__gpu_batch_make(const wf__gpu_batch *from, wf__gpu_make_fn *make, int how,
                             const char *what, wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_make_on(wf__gpu_context *context, size_t count, bool log_semiring,
                                wf__gpu_make_fn *make, const void *from, int how, const char *what,
                                wf__gpu_batch **out, wf_error *err);
/* For a batch with origins: copies where the arcs of each fst's inputs begin. */
wf_status wf__gpu_batch_input_bases(wf__gpu_batch *to, const uint64_t *const from[2],
                                    wf_error *err);
wf_status wf__gpu_batch_reserve(wf__gpu_batch *batch, uint64_t num_states, uint64_t num_arcs,
                                wf__gpu_arrays *a, wf_error *err);
/* Begins a batch with the states of `from`: reserves its arrays, and copies offsets, final costs,
 * bases, starts and whether it is trimmed. Only the arcs are left to be written. */
wf_status wf__gpu_batch_begin_alike(wf__gpu_batch *batch, const wf__gpu_batch *from,
                                    wf__gpu_arrays *a, wf_error *err);

/* Same as wf__gpu_batch_connect, but keeps the origins of arcs. The last step of a composition. */
wf_status wf__gpu_batch_trim(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);

/* Trims only the fsts with some[i] != 0 (host memory), without origins. */
wf_status wf__gpu_batch_connect_some(const wf__gpu_batch *batch, const uint32_t *some,
                                     wf__gpu_batch **out, wf_error *err);

wf_status wf__gpu_incoming_find(wf__gpu_context *c, wf__gpu_blocks *scratch, const wf__gpu_fsts *f,
                                wf__gpu_incoming *in, wf_error *err);
/* Finds the levels and, in the same pass, the sums to the end or from the start, with hops if
 * sums->hops is set. Returns the number of levels and of states that have one. */
wf_status wf__gpu_levels_find(wf__gpu_context *c, wf__gpu_blocks *scratch, const wf__gpu_fsts *f,
                              bool log_semiring, bool from_start, wf__gpu_incoming *in,
                              wf__gpu_levels *levels, wf__gpu_sums *sums, uint32_t *out_num_levels,
                              uint32_t *out_num_states, wf_error *err);

#endif
