/* simt.h - a GPU's processor imitated on one CPU thread: grids, clusters, blocks, warps, threads,
 * and how they wait for each other.
 *
 * Each thread of a block is a fiber with a stack of its own. It runs until it has to wait for
 * others (a barrier, an exchange within its warp), or until it ends; then another one that can go
 * on is chosen at random. Nothing holds the threads of a warp together: between two exchanges each
 * goes as far as it can alone, which the rules of the hardware allow. All that is chosen follows
 * from a seed.
 *
 * cuda_runtime.h puts CUDA's words on top of this. Kernels run as works of fake_cuda.c, under its
 * lock, so there is one processor and no lock here. */
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
  SIMT_DYNAMIC_END = SIMT_WINDOW_BYTES - 4096, /* behind it nobody may look */
};

struct simt_uint3 {
  unsigned x, y, z;
};

/* What a thread waits for. */
enum simt_wait {
  SIMT_RUNS,
  /* the others of a mask */
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
  /* that nobody of its warp can go on: __activemask, which then groups those at the same place */
  SIMT_ACTIVE,
  /* everybody */
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
  unsigned char *window;          /* its shared memory: static, a gap, dynamic up to the end */
  struct simt_block *cluster;     /* first of its cluster */
  uint32_t rank;                  /* in it */
  uint32_t num_left, num_waiting; /* threads that have not ended; that are at the block's barrier */
  uint32_t votes, sum;            /* brought to the barrier; of all, after it */
  uint32_t cluster_left, cluster_waiting; /* of the first block: threads of the cluster */
};

struct simt_thread {
  /* looked at whenever somebody waits: one line of the cache */
  void *sp; /* NULL: not begun, or ended */
  struct simt_block *block;
  uint64_t value; /* brought to the exchange, then taken from it */
  struct simt_place place;
  struct simt_uint3 index;
  uint32_t mask;
  uint16_t warp;        /* of all that are here */
  uint8_t lane, source; /* lane that a shuffle reads */
  uint8_t waits_for;    /* enum simt_wait */
  /* rarely */
  struct simt_stack *stack;
  const void *caller;         /* of __activemask */
  struct simt_copies *copies; /* asynchronous ones under way */
} __attribute__((aligned(64)));

/* A launch, with the kernel's arguments behind it. */
struct simt_launch {
  void (*call)(struct simt_launch *self);
  const char *name;
  struct simt_uint3 grid, block;
  uint32_t cluster, shared_bytes;
  bool cooperative;
};

struct simt_state {
  uint64_t seed; /* other seeds, other orders; may be set between launches */
  uint64_t num_launches, num_switches, num_exchanges, num_looks; /* looks at the clock */
  struct simt_thread *current;
  struct simt_launch *launch;
  unsigned char *windows; /* [SIMT_MOST_HERE][SIMT_WINDOW_BYTES] */
  uint32_t static_used;   /* of each, by all kernels so far */
  uint32_t yield_share;   /* of 256 accesses to memory that others may change, so many let others go
                             first */
};
extern struct simt_state simt;
extern struct simt_uint3 threadIdx, blockIdx, blockDim, gridDim; /* of the current thread */

/* Runs a kernel to its end; for fake_enqueue. */
void simt_run(void *launch);

uint64_t simt_exchange(enum simt_wait kind, uint32_t mask, uint64_t value, uint32_t source,
                       struct simt_place place);
uint32_t simt_active_mask(struct simt_place place);
/* Returns the sum of the block's values, if it is the block's barrier. */
uint32_t simt_barrier(enum simt_wait kind, uint32_t value, struct simt_place place);
/* Lets others go first. */
void simt_yield(void);
bool simt_dice(uint32_t share); /* of 256 */
static inline void simt_touch(void) {
  if (simt.yield_share != 0 && simt_dice(simt.yield_share)) simt_yield();
}

/* --- shared memory; addresses are those of the cluster: rank + 1 << 20 | offset ---------- */

void *simt_dynamic_shared(void);
/* *offset is 0 at first, then where the variable is in each block. */
void *simt_static_shared(uint32_t *offset, size_t bytes, size_t align);
void *simt_shared_of(const void *own, uint32_t rank);
uint32_t simt_shared_address(const void *own);
uint32_t simt_address_of_rank(uint32_t address, uint32_t rank);
void *simt_at_address(uint32_t address, uint32_t bytes, bool own);
bool simt_is_foreign_shared(const void *pointer);

/* A copy that may happen at any time before the wait: it happens then, and until then its target
 * holds rubbish. */
void simt_copy_later(void *to, const void *from, size_t bytes);
void simt_copies_commit(void);
/* All but the last `but` groups. */
void simt_copies_wait(unsigned but);
bool simt_keeps_limit(const void *kernel,
                      int bytes); /* a limit of shared memory that the kernel has had always */

/* Tells what is wrong in the current thread, and ends the program. */
void simt_fail(struct simt_place place, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
