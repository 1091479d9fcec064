/* transducer_loading.h - the encoder's part of many utterances, in windows: threads pack frames
 * that are in host memory into page-locked memory; meanwhile the GPU copies and computes the window
 * before. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_LOADING_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_LOADING_H

#include "cuda/transducer/transducer_group.h"

/* Frames of one utterance. */
typedef struct wf__frame_piece {
  uint32_t item;
  int64_t first, count;
  uint64_t at, bytes; /* in the window; 0 bytes: they are in the GPU's memory */
} wf__frame_piece;

typedef struct wf__frame_loader {
  wf__transducer_group *group;
  WF__VEC(wf_scores) scores; /* of the utterances; and the GPU that has them */
  WF__VEC(int) where;
  size_t item; /* the next frame */
  int64_t frame;
  wf__pinned_buffer windows[2];
  cudaEvent_t sent[2]; /* the window may be filled again */
  uint64_t num_windows;
  /* The window that is filled: */
  WF__VEC(wf__frame_piece) pieces;
  const wf__packing_crew *crew;
} wf__frame_loader;

/* The GPU must be the current device for all. */
wf_status wf__frame_loader_open(wf__frame_loader *loader, wf__transducer_group *group,
                                wf_error *err);
/* After the group's stream is idle. */
void wf__frame_loader_close(wf__frame_loader *loader);
/* Begins with the utterances that the group's batch was begun with. */
wf_status wf__frame_loader_begin(wf__frame_loader *loader, const wf_scores *const *scores,
                                 const int *where, size_t count, wf_error *err);
/* Loads the next window. *is_loaded: it was the last. */
wf_status wf__frame_loader_next(wf__frame_loader *loader, const wf__packing_crew *crew,
                                bool *is_loaded, wf_error *err);

#endif
