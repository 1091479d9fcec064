/* aligner.h - the state of one forced alignment, shared by align.c and align_ctc.c. */
#ifndef WF_DECODE_ALIGNER_H
#define WF_DECODE_ALIGNER_H

#include "base/memory.h"
#include "decode/align_gaps.h"

enum {
  WF__ALIGN_SEGMENT = 1024,  /* frames */
  WF__ALIGN_FEW_PLACES = 32, /* so few are all computed */
  WF__ALIGN_USED_STEP = 4
};

/* The places [first, end), in blocks, that may be on the best path after some frames. The sums of
 * all others count as -infinity. */
typedef struct wf__align_window {
  uint32_t first, end;
} wf__align_window;

typedef struct wf__aligner {
  const wf_align_input *input;
  const wf_align_options *options;
  wf__align_fn advance;
  size_t num_places; /* L + 1 */
  size_t padded;     /* in blocks; the places after L + 1 lead nowhere */
  int32_t *used;     /* columns whose scores are read, padded with the blank */
  size_t num_used;
  float *row;                /* scores of a frame as float32, if they are of another type */
  int32_t *column;           /* [places] column of token i; the blank's for place L */
  float *skip;               /* [places] of wf__align_frame */
  double *bound;             /* [frames + 1] sum of the best scores of the frames from t on */
  float *best;               /* [frames] the best score of each frame */
  wf__align_window *windows; /* [frames + 1] before frame t */
  float *memory;             /* of the sums */
  wf__align_sums now, next;
  wf__align_window valid; /* places of `now`; the others count as -infinity */
  float *starts;          /* [segments][start_size] sums before the first frame of each segment */
  size_t start_size;
  uint8_t *back; /* [frames of a segment][back_size] WF__TOKEN_* | WF__BLANK_* */
  size_t back_size;
  wf__align_gaps gaps;
  bool is_short;                     /* one segment: the first pass stores the back-pointers */
  uint8_t *gap_back;                 /* [frames of a segment][boundaries] */
  WF__VEC(wf_aligned_token) garbage; /* from the end */
  wf_alignment *out;
} wf__aligner;

static inline bool wf__align_has_garbage(const wf__aligner *a) { return a->options->garbage >= 0; }
static inline bool wf__align_has_skips(const wf__aligner *a) { return a->options->skip_words >= 0; }

/* The places in whole blocks. */
static inline uint32_t wf__align_whole_blocks(uint64_t places) {
  return (uint32_t)(places / WF__ALIGN_BLOCK * WF__ALIGN_BLOCK);
}

/* Finds the path and writes it to `out`, whose tokens have no times yet. */
wf_status wf__align_path(wf__aligner *a, wf_error *err);

#endif
