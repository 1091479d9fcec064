/* align_gaps.h - words that are left out, and garbage between words, for align_ctc.c.
 *
 * Boundary w is the place before word w; the last one is after all words. Each has a third state
 * beside the blank and the token: garbage. In a frame, garbage follows itself, or the blank or the
 * token before the boundary; the blank and the token after it also follow garbage. A word that is
 * left out leads from the states at its start (the token before it, its blank, its garbage) to the
 * blank or the garbage at its end. */
#ifndef WF_DECODE_ALIGN_GAPS_H
#define WF_DECODE_ALIGN_GAPS_H

#include "decode/align_kernel.h"
#include "warpfst_all.h"

typedef struct wf__align_gaps {
  size_t count;      /* boundaries; 0: no gaps are allowed */
  uint32_t *place;   /* [count] */
  int32_t *boundary; /* [places] the boundary at a place, or -1 */
  float skip_cost;   /* of a word; infinity: words cannot be left out */
  float *now, *next; /* [count] sums of the garbage states */
} wf__align_gaps;

typedef enum wf__align_kind { WF__AT_BLANK, WF__AT_TOKEN, WF__AT_GARBAGE } wf__align_kind;

/* A state of the path. */
typedef struct wf__align_state {
  size_t place;
  wf__align_kind kind;
} wf__align_state;

/* Adds the ways through gaps to a frame, after the kernel. `back` [count], NULL: not wanted. */
void wf__align_gaps_advance(const wf__align_gaps *gaps, const wf__align_frame *frame,
                            float garbage_score, uint8_t *back);
/* If the state was reached through a gap, sets it to the state in the frame before and returns
 * true. Words that were left out get the times [frame, frame). */
bool wf__align_gaps_trace(const wf__align_gaps *gaps, const uint8_t *back, int64_t frame,
                          wf__align_state *at, wf_aligned_token *tokens);

#endif
