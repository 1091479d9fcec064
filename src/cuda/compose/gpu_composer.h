/* gpu_composer.h - the state of a composer on a GPU. compose_gpu.c creates and runs it;
 * compose_results.c reads its results. */
#ifndef WF_CUDA_COMPOSE_GPU_COMPOSER_H
#define WF_CUDA_COMPOSE_GPU_COMPOSER_H

#include "cuda/compose/compose_kernels.h"
#include "cuda/compose/sparse_gpu.h"
#include "cuda/device/device_memory.h"
#include "cuda/fstops/ops_batch.h"

/* Device arrays; those of the problem come first. */
enum wf__composer_buffer {
  PAIRS,
  ROWS,
  LINK_OFF,
  LINKS,
  FORWARD_OFF,
  FORWARD,
  BACKWARD_OFF,
  BACKWARD,
  RUN_OFF,
  RUN_OFF_BACK,
  RUNS,
  RUNS_BACK,
  OFF,
  TO,
  CELLS,
  MOVES,
  ENDS,
  SHIFTS,
  MASKS,
  A_ARCS,
  B_FINAL,
  PARTS,
  PART_WORD,
  WORD_ROW,
  HEAVY,
  HEAVY_BACK,
  CHUNKS,
  CHUNKS_BACK,
  ZEROED,
  LIST,
  COUNTS,
  REACHED_COUNT,
  FIRST,
  HALVES,
  FIRST_SLOT,
  SLOTS,
  ARC_OFF,
  FINAL_COST,
  ARCS,
  ORIGINS,
  SCRATCH,
  NUM_BUFFERS
};

struct wf__gpu_composer {
  wf_compose_options options;
  int device;
  bool with_origins, has_run;
  cudaStream_t stream;
  wf__gpu_compose c;
  wf__device_buffer buffers[NUM_BUFFERS];
  size_t count;
  wf_fst **a, **b;                        /* [count] references to the inputs */
  wf__sparse **sparse;                    /* [count]; NULL: the pair is in the table */
  wf__gpu_batch **made;                   /* [count] results of the sparse pairs */
  struct wf__composer_readback *readback; /* results of a run, in pinned memory */
  uint64_t *reached_count;                /* [count] reached states, if they are limited */
};

/* The GPU that the options name. */
wf_status wf__gpu_compose_device(const wf_compose_options *options, int *out, wf_error *err);

/* Same layout as totals, stats and places of wf__gpu_compose, which are contiguous. */
struct wf__composer_readback {
  uint64_t num_states, num_slots, num_arcs;
  uint32_t levels[2];     /* levels of the two searches; if both ran together, the first has all and
                             the second is 0 */
  wf__gpu_place places[]; /* [count + 1] */
};

/* The functions of wf__device_compose, and wf__device_fstops.of_composer. */
wf_status wf__gpu_composer_create(wf_fst *const *a, wf_fst *const *b, size_t count,
                                  const wf_compose_options *options, bool with_origins,
                                  wf__gpu_composer **out, wf_error *err);
wf_status wf__gpu_composer_run(wf__gpu_composer *composer, wf_error *err);
wf_status wf__gpu_compose_sides(const wf__compose_side *sides, size_t count,
                                const wf_compose_options *options, wf__compose_output *out,
                                wf_error *err);
wf_status wf__gpu_composer_view(const wf__gpu_composer *composer, size_t i, wf_fst_view *view,
                                const wf_arc_origin **origins, wf_error *err);
wf_status wf__gpu_composer_get(const wf__gpu_composer *composer, size_t i, wf_fst **out,
                               wf_arc_origin **out_origins, wf_error *err);
void wf__gpu_composer_free(wf__gpu_composer *composer);
wf_status wf__gpu_batch_of_composer(const wf__gpu_composer *composer, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err);
void wf__gpu_composer_levels(const wf__gpu_composer *composer, uint32_t out[2]);

#endif
