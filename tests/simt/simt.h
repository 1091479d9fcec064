/* simt.h - imitates a GPU's multiprocessor on one CPU thread: grids, clusters, blocks, warps and
 * threads, and how they wait for each other.
 *
 * Each thread of a block is a fiber with its own stack. It runs until it must wait for others (at a
 * barrier, or at a warp-level exchange) or until it ends. Then another fiber that is ready to run
 * is chosen at random. The threads of a warp do not run in lockstep: between two exchanges each
 * runs as far as it can alone, which CUDA's rules allow. All random choices follow from a seed.
 *
 * cuda_runtime.h defines CUDA's names on top of this. Kernels run as stream work of fake_cuda.c,
 * under its lock, so there is no lock here. */
#ifndef TESTS_SIMT_H
#define TESTS_SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SIMT_MOST_THREADS = 1024,
  SIMT_MOST_SHARED = 232448,
  SIMT_MOST_CLUSTER = 8,
  SIMT_MOST_HERE = 64,                         /* blocks at a time */
  SIMT_WINDOW_BYTES = 1 << 20,                 /* of a block's shared memory, in addresses */
  SIMT_STATIC_BYTES = 64 << 10,                /* at its beginning */
  SIMT_DYNAMIC_END = SIMT_WINDOW_BYTES - 4096, /* nothing may be accessed beyond it */
};

struct simt_uint3 {
  unsigned x, y, z;
};

/* What a thread waits for. */
enum simt_wait {
  SIMT_RUNS,
  /* the other lanes of a mask */
  SIMT_SYNC,
  SIMT_SHUFFLE,
  SIMT_BALLOT,
  SIMT_ANY,
  SIMT_ALL,
  SIMT_MATCH_ANY,
  SIMT_ADD,
  SIMT_MIN,
  SIMT_MAX,
  SIMT_AND,
  SIMT_OR,
  SIMT_XOR,
  /* __activemask: waits until no thread of its warp can run, then groups those at the same place */
  SIMT_ACTIVE,
  /* all threads of the block, cluster or grid */
  SIMT_BLOCK,
  SIMT_CLUSTER,
  SIMT_GRID
};

struct simt_place {
  const char *file;
  int line;
};

struct simt_block {
  struct simt_uint3 index;
  unsigned char *window;      /* its shared memory: static, a gap, then dynamic up to DYNAMIC_END */
  struct simt_block *cluster; /* first block of its cluster */
  uint32_t rank;              /* in its cluster */
  uint32_t num_left, num_waiting; /* threads that have not ended; threads at the block's barrier */
  uint32_t votes, sum;            /* sum of the values at the barrier so far; the total, after it */
  uint32_t cluster_left, cluster_waiting; /* in the first block: counts threads of the cluster */
};

struct simt_thread {
  /* read whenever a thread waits: one cache line */
  void *sp; /* saved stack pointer; NULL: not begun, or ended */
  struct simt_block *block;
  uint64_t value; /* the thread's value in an exchange, then the result for it */
  struct simt_place place;
  struct simt_uint3 index;
  uint32_t mask;
  uint16_t warp;        /* index among all resident warps */
  uint8_t lane, source; /* lane that a shuffle reads */
  uint8_t waits_for;    /* enum simt_wait */
  /* read rarely */
  struct simt_stack *stack;
  const void *caller;         /* of __activemask */
  struct simt_copies *copies; /* pending asynchronous copies */
} __attribute__((aligned(64)));

/* A launch. simt_call (cuda_runtime.h) derives from it and adds the kernel's arguments. */
struct simt_launch {
  void (*call)(struct simt_launch *self);
  const char *name;
  struct simt_uint3 grid, block;
  uint32_t cluster, shared_bytes;
  bool cooperative;
};

struct simt_state {
  uint64_t seed; /* chooses the order in which threads run; may be set between launches */
  uint64_t num_launches, num_switches, num_exchanges, num_looks; /* num_looks: reads of the clock */
  struct simt_thread *current;
  struct simt_launch *launch;
  unsigned char *windows; /* [SIMT_MOST_HERE][SIMT_WINDOW_BYTES] */
  uint32_t
      static_used; /* bytes of static shared memory that all kernels so far use, in each block */
  uint32_t yield_share; /* of 256 accesses to memory that other threads may change, how many let
                         * another thread run first
                         */
};
extern struct simt_state simt;
extern struct simt_uint3 threadIdx, blockIdx, blockDim, gridDim; /* of the current thread */

/* Runs a kernel to its end. Passed to fake_enqueue. */
void simt_run(void *launch);

uint64_t simt_exchange(enum simt_wait kind, uint32_t mask, uint64_t value, uint32_t source,
                       struct simt_place place);
uint32_t simt_active_mask(struct simt_place place);
/* Waits at a barrier. A block's barrier returns the sum of its threads' values. */
uint32_t simt_barrier(enum simt_wait kind, uint32_t value, struct simt_place place);
/* Lets another thread run first. */
void simt_yield(void);
bool simt_dice(uint32_t share); /* true with probability share / 256 */
static inline void simt_touch(void) {
  if (simt.yield_share != 0 && simt_dice(simt.yield_share)) simt_yield();
}

/* --- shared memory; an address in a cluster is (rank + 1) << 20 | offset ----------------- */

void *simt_dynamic_shared(void);
/* *offset is 0 at the first call, which sets it to the variable's offset in each block. */
void *simt_static_shared(uint32_t *offset, size_t bytes, size_t align);
void *simt_shared_of(const void *own, uint32_t rank);
uint32_t simt_shared_address(const void *own);
uint32_t simt_address_of_rank(uint32_t address, uint32_t rank);
void *simt_at_address(uint32_t address, uint32_t bytes, bool own);
bool simt_is_foreign_shared(const void *pointer);

/* An asynchronous copy. On a GPU it may happen at any time before the wait. Here it happens at the
 * wait, and until then its target holds garbage. */
void simt_copy_later(void *to, const void *from, size_t bytes);
void simt_copies_commit(void);
/* Waits for all but the last `but` groups. */
void simt_copies_wait(unsigned but);
bool simt_keeps_limit(
    const void *kernel,
    int bytes); /* false if the kernel had another limit of shared memory before */

/* Prints an error with the current thread and its call stack, and aborts. */
void simt_fail(struct simt_place place, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
