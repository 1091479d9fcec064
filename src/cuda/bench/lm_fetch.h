/* lm_fetch.h - ways for the lanes of a batch to read records of a table in page-locked host memory:
 * kernels of bench/lm/bench_lm_fetch.c, which are not part of any library. All functions return a
 * cudaError_t. */
#ifndef WF_CUDA_BENCH_LM_FETCH_H
#define WF_CUDA_BENCH_LM_FETCH_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The table as the GPU sees it. */
typedef struct lm_fetch_table {
  const uint32_t *records; /* [2^place_bits][record_words] */
  int record_words; /* 3: read word by word, like n-grams that are not packed; 4 or 8: read 16 bytes
                       at a time */
  int place_bits;
} lm_fetch_table;

/* The requests of all lanes in a frame, in device memory. */
typedef struct lm_fetch_frame {
  const uint32_t *places; /* [num] the requested records, lane after lane */
  const uint32_t *first;  /* [lanes + 1] each lane's first request */
  uint32_t num, lanes, blocks_per_lane;
} lm_fetch_frame;

/* Working memory, in device memory unless marked page-locked. */
typedef struct lm_fetch_room {
  uint32_t *sorted, *distinct, *num_distinct; /* indices of records */
  uint32_t *staged;                           /* copies of the distinct records */
  uint64_t *keys;    /* [2^slot_bits] turn << 32 | place; the thread that inserts a key fetches its
                        record */
  uint32_t *records; /* [2^slot_bits] the fetched records */
  uint32_t *slots;   /* [num] the slot of each request */
  int slot_bits;
  void *scratch;
  size_t scratch_bytes;
  uint32_t *ticket;              /* for lm_fetch_publish; 0 before and after it */
  uint32_t *list;                /* page-locked: distinct places for the host */
  volatile uint64_t *list_ready; /* page-locked: turn << 32 | length of the list, written when the
                                    list is complete */
  unsigned long long *sums;      /* [lanes * blocks_per_lane] sums of all words of the requested
                                    records */
} lm_fetch_room;

/* Each lane's blocks read the lane's records directly. */
int lm_fetch_direct(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, cudaStream_t stream);
/* The scratch bytes that lm_fetch_distinct needs. */
int lm_fetch_scratch(uint32_t num, int place_bits, size_t *out);
/* Sorts the requests of the batch and removes duplicates. */
int lm_fetch_distinct(const lm_fetch_table *table, const lm_fetch_frame *frame,
                      const lm_fetch_room *room, cudaStream_t stream);
/* Copies the distinct records to `staged`. */
int lm_fetch_gather(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, cudaStream_t stream);
/* Writes the indices of the distinct records to `list`. */
int lm_fetch_publish(const lm_fetch_frame *frame, const lm_fetch_room *room, uint32_t turn,
                     cudaStream_t stream);
/* Each lane finds its records in `staged` by binary search in `distinct`. */
int lm_fetch_staged(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, cudaStream_t stream);
/* Uses a hash table instead of sorting. In the first kernel, the first thread to request a record
 * fetches it; in the second, lanes read the table. Each call needs a new value of `turn`. */
int lm_fetch_hashed(const lm_fetch_table *table, const lm_fetch_frame *frame,
                    const lm_fetch_room *room, uint32_t turn, cudaStream_t stream);
/* Measures the latency of a read in cycles: one thread, each read dependent on the previous one. */
int lm_fetch_latency(const lm_fetch_table *table, uint32_t seed, unsigned long long *cycles,
                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
