/* gpu_composer.h - a composition on a GPU: what making it and running it (compose_gpu.c) leave for
 * the reading of its results (compose_results.c). */
#ifndef WF_CUDA_COMPOSE_GPU_COMPOSER_H
#define WF_CUDA_COMPOSE_GPU_COMPOSER_H

#include "cuda/compose/compose_kernels.h"
#include "cuda/compose/sparse_gpu.h"
#include "cuda/device/cuda_call.h"
#include "cuda/fstops/ops_batch.h"

/* Device arrays, in the order in which the problem's come first. */
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
  wf_fst **a, **b;                        /* [count] references: symbols, pairs for the CPU */
  wf__sparse **sparse;                    /* [count]; NULL: a pair of the table */
  wf__gpu_batch **made;                   /* [count] their results */
  struct wf__composer_readback *readback; /* what comes back from a run, in pinned memory */
  uint64_t *reached_count;                /* [count], if it is limited */
};

/* As totals, stats, and places of wf__gpu_compose lie one behind the other. */
struct wf__composer_readback {
  uint64_t num_states, num_slots, num_arcs;
  uint32_t levels[2];     /* of the searches; 0 for the second where both ran together */
  wf__gpu_place places[]; /* [count + 1] */
};

#endif
