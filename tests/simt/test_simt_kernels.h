/* test_simt_kernels.h - what test_simt.c and its kernels share: numbers of the kernels and of the
 * errors to make. */
#ifndef TEST_SIMT_KERNELS_H
#define TEST_SIMT_KERNELS_H
#include <stdint.h>

enum { TRY_WORDS = 4096, TRY_EXCHANGES = 13 };
enum try_what { TRY_EXCHANGE, TRY_BARRIER, TRY_CLUSTER, TRY_GRID, TRY_COPY, TRY_COUNT, TRY_WRONG };
enum {
  WRONG_BARRIER,
  WRONG_CLUSTER,
  WRONG_MASK,
  WRONG_MASK_OF_OTHERS,
  WRONG_KIND,
  WRONG_LANE,
  WRONG_ADDRESS,
  WRONG_RANK,
  WRONG_BEYOND,
  WRONG_MINIMUM,
  WRONG_GONE,
  WRONG_COPY,
  WRONG_GLOBAL,
  NUM_WRONG
};

#ifdef __cplusplus
extern "C"
#endif
    int
    try_kernel(enum try_what what, uint32_t *out, int which);
#endif
