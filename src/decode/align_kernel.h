/* align_kernel.h - one frame of the recursion of align_ctc.c, for several places at once. */
#ifndef WF_DECODE_ALIGN_KERNEL_H
#define WF_DECODE_ALIGN_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* Sums of the two states of each place. */
typedef struct wf__align_sums {
  float *token, *blank;
} wf__align_sums;

typedef struct wf__align_frame {
  const float *scores; /* [num_columns] */
  int32_t num_columns, blank;
  const int32_t *column; /* [places] column of token i */
  const float *skip;     /* [places] 0: token i may follow token i - 1; -infinity: they are equal */
  wf__align_sums now, next;
  float before;  /* the sum of the token before the first place that is computed */
  uint8_t *back; /* WF__TOKEN_* | WF__BLANK_* of place `begin` and on; NULL: none are wanted */
} wf__align_frame;

enum {
  WF__TOKEN_STAYS = 0,
  WF__TOKEN_FROM_BLANK = 1,
  WF__TOKEN_FROM_TOKEN = 2,
  WF__BLANK_FROM_TOKEN = 4
};

/* Computes places [begin, end) of `next` from `now`. Both are multiples of WF__ALIGN_BLOCK, and the
 * sums are aligned like this, in floats: then a vector that is read was written by one store of the
 * frame before, and needs not wait for it. */
typedef void (*wf__align_fn)(const wf__align_frame *frame, size_t begin, size_t end);
enum { WF__ALIGN_BLOCK = 16 };

/* The kernel of this level, with the same results at each: 0 scalar, 1 AVX2, 2 AVX-512. NULL: the
 * processor cannot run it. */
wf__align_fn wf__align_kernel(int level);
/* The fastest kernel. */
wf__align_fn wf__align_best_kernel(void);

#endif
