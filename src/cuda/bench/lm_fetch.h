/* lm_fetch.h - ways in which the lanes of a batch get records of a table in page-locked host
 * memory: kernels of bench/bench_lm_fetch.c, in no library. All return a cudaError_t. */
#ifndef WF_CUDA_BENCH_LM_FETCH_H
#define WF_CUDA_BENCH_LM_FETCH_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The table, as the GPU reads it. */
typedef struct lm_fetch_table {
  const uint32_t *records; /* [2^place_bits][record_words] */
  int record_words; /* 3: read word by word, as n-grams are that are not packed; 4 or 8: 16 bytes at
                       a time */
  int place_bits;
} lm_fetch_table;

/* What all lanes ask for in a frame. In device memory. */
typedef struct lm_fetch_frame {
  const uint32_t *places; /* [num] of records, lane after lane */
  const uint32_t *first;  /* [lanes + 1] of each lane */
  uint32_t num, lanes, blocks_per_lane;
} lm_fetch_frame;

/* What the ways work with. In device memory, but for what is said to be page-locked. */
typedef struct lm_fetch_room {
  uint32_t *sorted, *distinct, *num_distinct; /* places */
  uint32_t *staged;                           /* records of the distinct places */
  uint64_t *keys;    /* [2^slot_bits] turn << 32 | place: whoever comes first fetches */
  uint32_t *records; /* [2^slot_bits] what was fetched */
  uint32_t *slots;   /* [num] of each request */
  int slot_bits;
  void *scratch;
  size_t scratch_bytes;
  uint32_t *ticket;              /* of lm_fetch_publish, 0 before and behind */
  uint32_t *list;                /* page-locked: distinct places for the host */
  volatile uint64_t *list_ready; /* page-locked: turn << 32 | how many, when they are there */
  unsigned long long *sums; /* [lanes * blocks_per_lane] of all words of the records asked for */
} lm_fetch_room;

/* Each lane's blocks read what the lane asks for. */
int lm_fetch_direct(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, cudaStream_t stream);
/* Scratch bytes that lm_fetch_distinct asks for. */
int lm_fetch_scratch(uint32_t num, int place_bits, size_t *out);
/* Sorts the batch's places and leaves each once. */
int lm_fetch_distinct(const lm_fetch_table *table, const lm_fetch_frame *frame,
                      const lm_fetch_room *room, cudaStream_t stream);
/* Reads the records of distinct places into `staged`. */
int lm_fetch_gather(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, cudaStream_t stream);
/* Writes the distinct places to `list`. */
int lm_fetch_publish(const lm_fetch_frame *frame, const lm_fetch_room *room, uint32_t turn,
                     cudaStream_t stream);
/* Lanes look up in `distinct` where `staged` has what they ask for. */
int lm_fetch_staged(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, cudaStream_t stream);
/* By a hash table instead of sorting: the first to ask for a place fetches it, in one kernel; lanes
 * read the table in the next. No turn comes twice. */
int lm_fetch_hashed(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, uint32_t turn, cudaStream_t stream);
/* Cycles of a read, one warp's first thread alone, one read behind the other. */
int lm_fetch_latency(const lm_fetch_table *table, uint32_t seed, unsigned long long *cycles,
                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
