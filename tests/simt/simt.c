/* simt.c - the imitated multiprocessor: fibers, the random scheduler, exchanges, barriers, error
 * reports, launches. */
#include "simt.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIMT_ASAN 1
#else
#define SIMT_ASAN 0
#endif

#if !defined(__x86_64__) || defined(SIMT_UCONTEXT)
#include <ucontext.h>
#define SIMT_ASSEMBLY 0
#else
#define SIMT_ASSEMBLY 1
#endif

enum {
  /* ASan: the odd size spreads the shadows of the stacks over the sets of the caches. */
  STACK_BYTES = SIMT_ASAN ? (68 << 10) + 576 : 16 << 10,
  STACKS_AT_ONCE = 512,
  PAGE = 4096,
  WINDOW_BYTES = SIMT_WINDOW_BYTES,
  STATIC_BYTES = SIMT_STATIC_BYTES,
  DYNAMIC_END = SIMT_DYNAMIC_END,
  MOST_HERE = SIMT_MOST_HERE,
  MOST_WARPS = MOST_HERE * 32,
};

struct warp {
  uint32_t ready, waiting,
      in_active_mask; /* lanes that can run; that wait for others of a mask; in __activemask */
};

struct simt_state simt = {.seed = 1};
struct simt_uint3 threadIdx, blockIdx, blockDim, gridDim;

static struct simt_thread
    *g_threads; /* [resident blocks][threads of a block, rounded up to whole warps] */
static struct warp g_warps[MOST_WARPS];
static uint64_t g_ready_warps[MOST_WARPS / 64];
static struct simt_block g_blocks[MOST_HERE];
static uint32_t g_num_here, g_block_warps,
    g_block_threads; /* resident blocks; warps and threads of each */
static uint32_t g_next_cluster, g_num_clusters, g_first_cluster;
static uint64_t g_num_left,
    g_num_at_grid;              /* threads that have not ended; threads at the grid's barrier */
static uint32_t g_switch_share; /* of 256 exchanges, how many let another warp run next */
static uint32_t g_last_lane;
static uint64_t g_random;

static uint64_t next_random(void) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return g_random;
}

bool simt_dice(uint32_t share) { return (next_random() >> 20 & 255) < share; }

/* --- fibers ------------------------------------------------------------------------------ */

struct simt_stack {
  unsigned char *memory; /* STACK_BYTES; the lowest word must stay 0 */
  struct simt_stack *next;
#if !SIMT_ASSEMBLY
  ucontext_t context;
#endif
};

static struct simt_stack *g_free_stacks;
static void *g_main_sp;
static struct simt_stack g_main_stack;
static bool g_reporting; /* waiting threads are resumed to print their call stacks */

/* The stacks use huge pages: the speed of a switch depends on how fast their memory is reached. */
static void make_stacks(void) {
  const size_t bytes = (size_t)STACKS_AT_ONCE * STACK_BYTES, align = 2 << 20;
  struct simt_stack *stacks = calloc(STACKS_AT_ONCE, sizeof *stacks);
  unsigned char *memory = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == NULL || memory == MAP_FAILED) abort();
  memory += -(uintptr_t)memory & (align - 1);
  madvise(memory, bytes, MADV_HUGEPAGE);
  for (int i = 0; i < STACKS_AT_ONCE; i++) {
    stacks[i].memory = memory + (size_t)i * STACK_BYTES;
    stacks[i].next = g_free_stacks;
    g_free_stacks = &stacks[i];
  }
}

static struct simt_stack *take_stack(void) {
  if (g_free_stacks == NULL) make_stacks();
  struct simt_stack *stack = g_free_stacks;
  g_free_stacks = stack->next;
#if SIMT_ASAN
  __asan_unpoison_memory_region(stack->memory,
                                STACK_BYTES); /* frames of fibers that ended without returning */
#endif
  return stack;
}

static void fiber(void);

#if SIMT_ASSEMBLY
/* Saves the stack pointer at `save_sp` and continues on stack `to_sp`, where another switch or
 * first_sp left the address to go on at. Inlined, tests of the search take a fifth less time: the
 * compiler saves only the registers that are in use. */
static inline __attribute__((always_inline)) void simt_switch(void **save_sp, void *to_sp) {
  __asm__ volatile(
      "pushq %%rbp\n  pushq %%rbx\n  leaq 1f(%%rip), %%rax\n  pushq %%rax\n"
      "  movq %%rsp, (%%rdi)\n  movq %%rsi, %%rsp\n  popq %%rax\n  jmp *%%rax\n"
      "1:\n  popq %%rbx\n  popq %%rbp\n"
      : "+D"(save_sp), "+S"(to_sp)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "memory", "cc");
}

static void *first_sp(struct simt_stack *stack) {
  /* Stacks begin in different cache sets. */
  uintptr_t top = (uintptr_t)stack->memory + STACK_BYTES - (next_random() >> 30) % 31 * 64;
  void **sp = (void **)top - 8;
  memset(sp, 0, 64);
  sp[0] = (void *)(uintptr_t)fiber;
  return sp;
}
#endif

#if SIMT_ASAN
static const void *g_main_bottom;
static size_t g_main_bytes;
static bool g_from_main;
#endif

static void set_current(struct simt_thread *thread) {
  simt.current = thread;
  threadIdx = thread->index;
  blockIdx = thread->block->index;
}

/* Switches from stack `from` to thread `to`, or back to simt_run if `to` is NULL. If save_sp is
 * NULL, the code on `from` is never resumed. */
static inline __attribute__((always_inline)) void go(struct simt_stack *from, void **save_sp,
                                                     struct simt_thread *to) {
  void *nowhere;
  (void)from;
  simt.num_switches++;
  if (to != NULL && to->sp == NULL) {
    to->stack = take_stack();
#if SIMT_ASSEMBLY
    to->sp = first_sp(to->stack);
#else
    to->sp = to->stack;
    getcontext(&to->stack->context);
    to->stack->context.uc_stack.ss_sp = to->stack->memory;
    to->stack->context.uc_stack.ss_size = STACK_BYTES;
    to->stack->context.uc_link = NULL;
    makecontext(&to->stack->context, fiber, 0);
#endif
  }
  if (to != NULL) set_current(to);
#if SIMT_ASAN
  void *fake = NULL;
  g_from_main = from == &g_main_stack;
  __sanitizer_start_switch_fiber(save_sp == NULL ? NULL : &fake,
                                 to == NULL ? g_main_bottom : to->stack->memory,
                                 to == NULL ? g_main_bytes : STACK_BYTES);
#endif
#if SIMT_ASSEMBLY
  simt_switch(save_sp != NULL ? save_sp : &nowhere, to == NULL ? g_main_sp : to->sp);
#else
  (void)nowhere;
  swapcontext(&from->context, to == NULL ? &g_main_stack.context : &to->stack->context);
#endif
#if SIMT_ASAN
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

/* --- who runs ---------------------------------------------------------------------------- */

static void make_ready(uint32_t warp, uint32_t lanes) {
  g_warps[warp].ready |= lanes;
  g_ready_warps[warp / 64] |= 1ull << (warp & 63);
}

/* Called if no thread of the warp can run: gives the threads in __activemask their result. Threads
 * at the same place form one group, or sometimes two. */
static void complete_active(uint32_t warp) {
  struct simt_thread *threads = g_threads + warp * 32;
  uint32_t left = g_warps[warp].in_active_mask;
  make_ready(warp, left);
  g_warps[warp].in_active_mask = 0;
  while (left != 0) {
    const void *caller = threads[__builtin_ctz(left)].caller;
    uint32_t group = 0;
    for (uint32_t some = left; some != 0; some &= some - 1)
      if (threads[__builtin_ctz(some)].caller == caller) group |= some & -some;
    uint32_t part = simt_dice(64) ? group & (uint32_t)(next_random() >> 16) : 0;
    for (uint32_t some = group; some != 0; some &= some - 1)
      threads[__builtin_ctz(some)].value = part & some & -some ? part : group & ~part;
    left &= ~group;
  }
}

/* Returns the first ready warp from a random one on, or UINT32_MAX if there is none. */
static uint32_t random_warp(void) {
  const uint32_t words = (g_num_here * g_block_warps + 63) / 64;
  const uint64_t random = next_random();
  const uint32_t first = (uint32_t)(random >> 32) % words, turn = random & 63;
  for (uint32_t i = 0; i < words; i++) {
    const uint32_t word = first + i < words ? first + i : first + i - words;
    const uint64_t set = g_ready_warps[word];
    if (set != 0)
      return word * 64 +
             (uint32_t)((__builtin_ctzll(turn == 0 ? set : set >> turn | set << (64 - turn)) +
                         turn) &
                        63);
  }
  return UINT32_MAX;
}

/* Returns the first lane of a set from `from` on, cyclically. */
static uint32_t next_lane(uint32_t set, uint32_t from) {
  return ((uint32_t)__builtin_ctz(set >> from | set << (-from & 31)) + from) & 31;
}

/* Prefetches the stacks and records of the threads that will probably run soon. */
static void prefetch(const struct simt_thread *threads, uint32_t lane) {
  const char *stack = threads[(lane + 2) & 31].sp;
  for (int i = 0; i < 4; i++) __builtin_prefetch(stack + i * 64);
  __builtin_prefetch(&threads[(lane + 4) & 31]);
}

static void report_deadlock(void);

/* Chooses the next thread to run when one of this warp waits, yields or ends. With `stay`, prefers
 * the same warp. Returns NULL if all threads have ended. */
static struct simt_thread *choose(uint32_t warp, bool stay) {
  if (g_warps[warp].ready == 0 && g_warps[warp].in_active_mask != 0) complete_active(warp);
  if (g_warps[warp].ready == 0 || !stay) {
    if (g_warps[warp].ready == 0) g_ready_warps[warp / 64] &= ~(1ull << (warp & 63));
    warp = random_warp();
    if (warp == UINT32_MAX) {
      if (g_num_left == 0) return NULL;
      report_deadlock();
    }
  }
  /* Mostly the next lane, whose stack is then in the cache; a random one in 1 of 8 cases. */
  const uint32_t ready = g_warps[warp].ready;
  const uint32_t lane =
      next_lane(ready, next_random() >> 61 == 0 ? (uint32_t)(next_random() >> 40) & 31
                                                : (g_last_lane + 1) & 31);
  g_last_lane = lane;
  prefetch(&g_threads[warp * 32], lane);
  g_warps[warp].ready = ready & ~(1u << lane);
  return &g_threads[warp * 32 + lane];
}

static void report_where(void);

/* Suspends the current thread. Returns when it is chosen again. */
static void park(bool stay) {
  struct simt_thread *self = simt.current, *next = choose(self->warp, stay);
  if (next != self) go(self->stack, &self->sp, next);
  while (g_reporting) report_where();
  self->waits_for = SIMT_RUNS;
}

void simt_yield(void) {
  make_ready(simt.current->warp, 1u << simt.current->lane);
  park(!simt_dice(64));
}

static void begin_cluster(uint32_t slot);

/* The current thread has reached the kernel's end. */
static void end_thread(void) {
  struct simt_thread *self = simt.current;
  struct simt_block *block = self->block, *first = block->cluster;
  if (self->copies != NULL) simt_copies_wait(UINT32_MAX);
  g_num_left--;
  if (--block->num_left == 0)
    memset(block->window + DYNAMIC_END - simt.launch->shared_bytes, 0xa5,
           simt.launch->shared_bytes); /* overwrites the block's shared memory, which other blocks
                                          must no longer read */
  if (--first->cluster_left == 0 && g_next_cluster < g_num_clusters)
    begin_cluster((uint32_t)(first - g_blocks) / simt.launch->cluster);
}

/* A fiber runs a thread to its end. If the next chosen thread has not begun, the same fiber runs
 * it.
 */
static void fiber(void) {
#if SIMT_ASAN
  const void *bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(NULL, &bottom, &bytes);
  if (g_from_main) g_main_bottom = bottom, g_main_bytes = bytes;
#endif
  struct simt_stack *stack = simt.current->stack;
  for (;;) {
    const uint32_t warp = simt.current->warp;
    simt.launch->call(simt.launch);
    end_thread();
    simt.current->sp = NULL;
    if (*(uint64_t *)(void *)stack->memory != 0)
      simt_fail((struct simt_place){0}, "a stack of %d bytes is too small", STACK_BYTES);
    struct simt_thread *next = choose(warp, true);
    if (next == NULL || next->sp != NULL) {
      stack->next = g_free_stacks;
      g_free_stacks = stack;
      go(stack, NULL, next);
    }
    next->stack = stack;
    next->sp = stack; /* any non-NULL value: it has begun */
    set_current(next);
  }
}

/* --- waiting ----------------------------------------------------------------------------- */

static const char *const wait_names[] = {
    "nothing",           "__syncwarp",        "__shfl_sync",       "__ballot_sync",
    "__any_sync",        "__all_sync",        "__match_any_sync",  "__reduce_add_sync",
    "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",
    "__reduce_xor_sync", "__activemask",      "__syncthreads",     "a cluster's sync",
    "a grid's sync"};

static uint64_t combine(enum simt_wait kind, uint64_t a, uint64_t b) {
  switch (kind) {
    case SIMT_ADD: return (uint32_t)(a + b);
    case SIMT_MIN: return a < b ? a : b;
    case SIMT_MAX: return a > b ? a : b;
    case SIMT_AND: return a & b;
    case SIMT_OR: return a | b;
    default: return a ^ b;
  }
}

/* All lanes of the mask have arrived: computes the result of each. */
static __attribute__((noinline)) void complete_wait(enum simt_wait kind, uint32_t mask,
                                                    struct simt_thread *threads) {
  uint64_t values[32], all = 0;
  uint32_t votes = 0;
  if (kind == SIMT_SYNC) return;
  for (uint32_t some = mask; some != 0; some &= some - 1) {
    const uint32_t lane = (uint32_t)__builtin_ctz(some);
    values[lane] = threads[lane].value;
    if (values[lane] != 0) votes |= 1u << lane;
    all = some == mask ? values[lane] : combine(kind, all, values[lane]);
  }
  if (kind == SIMT_BALLOT) all = votes;
  if (kind == SIMT_ANY) all = votes != 0;
  if (kind == SIMT_ALL) all = votes == mask;
  for (uint32_t some = mask; some != 0; some &= some - 1) {
    struct simt_thread *thread = &threads[__builtin_ctz(some)];
    thread->value = all;
    if (kind == SIMT_SHUFFLE) {
      if ((mask >> thread->source & 1) == 0)
        simt_fail(thread->place, "__shfl_sync of mask %08x reads lane %u, which is not in it", mask,
                  thread->source);
      thread->value = values[thread->source];
    } else if (kind == SIMT_MATCH_ANY) {
      thread->value = 0;
      for (uint32_t other = mask; other != 0; other &= other - 1)
        if (values[__builtin_ctz(other)] == values[thread->lane]) thread->value |= other & -other;
    }
  }
}

/* Have all lanes of the mask arrived with the same mask? Fails if one waits at another operation.
 */
static bool all_there(enum simt_wait kind, uint32_t mask, const struct simt_thread *threads) {
  for (uint32_t some = mask; some != 0; some &= some - 1) {
    const struct simt_thread *thread = &threads[__builtin_ctz(some)];
    if (thread->mask != mask) return false;
    if (thread->waits_for != kind)
      simt_fail(simt.current->place,
                "lane %u of mask %08x is at %s (%s:%d), the current thread at %s", thread->lane,
                mask, wait_names[thread->waits_for], thread->place.file, thread->place.line,
                wait_names[kind]);
  }
  return true;
}

uint64_t simt_exchange(enum simt_wait kind, uint32_t mask, uint64_t value, uint32_t source,
                       struct simt_place place) {
  struct simt_thread *self = simt.current, *threads = self - self->lane;
  struct warp *warp = &g_warps[self->warp];
  simt.num_exchanges++;
  self->waits_for = (uint8_t)kind;
  self->mask = mask;
  self->value = value;
  self->source = (uint8_t)source;
  self->place = place;
  if ((mask >> self->lane & 1) == 0)
    simt_fail(place, "%s of mask %08x by lane %u, which is not in it", wait_names[kind], mask,
              self->lane);
  warp->waiting |= 1u << self->lane;
  if ((warp->waiting & mask) == mask && all_there(kind, mask, threads)) {
    complete_wait(kind, mask, threads);
    warp->waiting &= ~mask;
    make_ready(self->warp, mask);
    if (!simt_dice(g_switch_share)) { /* this thread continues */
      warp->ready &= ~(1u << self->lane);
      self->waits_for = SIMT_RUNS;
      return self->value;
    }
    park(false);
  } else {
    park(true);
  }
  return self->value;
}

uint32_t simt_active_mask(struct simt_place place) {
  struct simt_thread *self = simt.current;
  self->waits_for = SIMT_ACTIVE;
  self->place = place;
  self->caller = __builtin_return_address(0);
  g_warps[self->warp].in_active_mask |= 1u << self->lane;
  park(true);
  return (uint32_t)self->value;
}

static void release(const struct simt_block *from, uint32_t num_blocks) {
  const uint32_t first = (uint32_t)(from - g_blocks) * g_block_warps;
  const uint32_t in_last =
      g_block_threads % 32 == 0 ? UINT32_MAX : (1u << g_block_threads % 32) - 1;
  for (uint32_t warp = first; warp < first + num_blocks * g_block_warps; warp++)
    make_ready(warp, (warp + 1) % g_block_warps == 0 ? in_last : UINT32_MAX);
}

uint32_t simt_barrier(enum simt_wait kind, uint32_t value, struct simt_place place) {
  struct simt_thread *self = simt.current;
  struct simt_block *block = self->block;
  self->waits_for = (uint8_t)kind;
  self->place = place;
  if (kind == SIMT_BLOCK) {
    block->votes += value;
    if (++block->num_waiting == g_block_threads) {
      block->sum = block->votes;
      block->votes = block->num_waiting = 0;
      release(block, 1);
    }
  } else if (kind == SIMT_CLUSTER) {
    if (++block->cluster->cluster_waiting == g_block_threads * simt.launch->cluster) {
      block->cluster->cluster_waiting = 0;
      release(block->cluster, simt.launch->cluster);
    }
  } else {
    if (!simt.launch->cooperative)
      simt_fail(place, "a grid's sync in a kernel that was not launched as a cooperative one");
    if (++g_num_at_grid == (uint64_t)g_block_threads * g_num_here) {
      g_num_at_grid = 0;
      release(g_blocks, g_num_here);
    }
  }
  park(false);
  return block->sum;
}

/* --- error reports ----------------------------------------------------------------------- */

static void print_calls(void) {
  void *calls[24];
  char command[800];
  int count = backtrace(calls, 24),
      size = snprintf(command, sizeof command, "addr2line -Cfpie /proc/%d/exe >&2", (int)getpid());
  for (int i = 1; i < count && size < 760; i++) {
    Dl_info info;
    if (dladdr(calls[i], &info) != 0)
      size += snprintf(command + size, sizeof command - (size_t)size, " %tx",
                       (char *)calls[i] - (char *)info.dli_fbase - 1);
  }
  fflush(stderr);
  if (system(command) != 0) backtrace_symbols_fd(calls, count, 2);
}

static void print_thread(const struct simt_thread *thread) {
  const struct simt_block *block = thread->block;
  fprintf(stderr, "kernel %s, block (%u, %u), thread (%u, %u)", simt.launch->name, block->index.x,
          block->index.y, thread->index.x, thread->index.y);
}

void simt_fail(struct simt_place place, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fflush(stdout);
  fprintf(stderr, "imitated GPU: ");
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\n  ");
  print_thread(simt.current);
  if (place.file != NULL) fprintf(stderr, ", %s:%d", place.file, place.line);
  fprintf(stderr, "\n");
  print_calls();
  abort();
}

/* Runs in a resumed, waiting thread: prints its call stack and switches back. */
static void report_where(void) {
  struct simt_thread *self = simt.current;
  fprintf(stderr, "  the calls of one of them:\n");
  print_calls();
  go(self->stack, &self->sp, NULL);
}

static struct simt_thread *g_stuck[8]; /* one waiting thread for each place */
static uint32_t g_num_stuck;

static bool is_new_place(const struct simt_thread *thread) {
  for (uint32_t i = 0; i < g_num_stuck; i++)
    if (g_stuck[i]->waits_for == thread->waits_for && g_stuck[i]->place.line == thread->place.line)
      return false;
  return true;
}

static void report_deadlock(void) {
  uint32_t lines = 0;
  fflush(stdout);
  fprintf(stderr, "imitated GPU: deadlock in kernel %s: %llu threads are left, none can run\n",
          simt.launch->name, (unsigned long long)g_num_left);
  for (uint32_t warp = 0; warp < g_num_here * g_block_warps; warp++) {
    struct simt_thread *threads = &g_threads[warp * 32];
    for (uint32_t left = UINT32_MAX; left != 0;) {
      struct simt_thread *one = &threads[__builtin_ctz(left)];
      uint32_t group = 0;
      for (uint32_t some = left; some != 0; some &= some - 1) {
        const struct simt_thread *other = &threads[__builtin_ctz(some)];
        if ((other->sp == NULL) == (one->sp == NULL) &&
            (one->sp == NULL ||
             (other->waits_for == one->waits_for && other->place.line == one->place.line)))
          group |= some & -some;
      }
      left &= ~group;
      const bool interesting = one->sp != NULL && is_new_place(one);
      if (interesting && g_num_stuck < 8) g_stuck[g_num_stuck++] = one;
      if ((one->sp != NULL || group != UINT32_MAX) && (interesting || lines++ < 20)) {
        fprintf(stderr, "  block (%u, %u), warp %u, lanes %08x: ", one->block->index.x,
                one->block->index.y, warp % g_block_warps, group);
        if (one->sp == NULL)
          fprintf(stderr, "have ended\n");
        else
          fprintf(stderr, "wait at %s, %s:%d, mask %08x\n", wait_names[one->waits_for],
                  one->place.file, one->place.line, one->waits_for < SIMT_ACTIVE ? one->mask : 0);
      }
    }
  }
  g_reporting = true;
  static struct simt_stack nobodys;
  go(simt.current->stack != NULL ? simt.current->stack : &nobodys, &simt.current->sp, NULL);
  for (;;) report_where();
}

/* --- launching --------------------------------------------------------------------------- */

static void begin_block(struct simt_block *block, uint32_t number, uint32_t rank) {
  const struct simt_launch *launch = simt.launch;
  const uint32_t at = (uint32_t)(block - g_blocks);
  *block = (struct simt_block){
      .index = {number % launch->grid.x, number / launch->grid.x % launch->grid.y,
                number / launch->grid.x / launch->grid.y},
      .window = simt.windows + (size_t)at * WINDOW_BYTES,
      .cluster = block - rank,
      .rank = rank,
      .num_left = g_block_threads,
      .cluster_left = g_block_threads * launch->cluster};
  memset(block->window, 0xa5,
         STATIC_BYTES < simt.static_used + 4096 ? STATIC_BYTES : simt.static_used + 4096);
  memset(block->window + DYNAMIC_END - launch->shared_bytes, 0xa5, launch->shared_bytes);
  for (uint32_t i = 0; i < g_block_threads; i++) {
    const uint32_t warp = at * g_block_warps + i / 32;
    g_threads[warp * 32 + i % 32] =
        (struct simt_thread){.block = block,
                             .index = {i % launch->block.x, i / launch->block.x % launch->block.y,
                                       i / launch->block.x / launch->block.y},
                             .warp = (uint16_t)warp,
                             .lane = (uint8_t)(i % 32)};
  }
  for (uint32_t i = 0; i < g_block_warps; i++) g_warps[at * g_block_warps + i] = (struct warp){0};
  release(block, 1);
}

/* Starts the next cluster of the grid in the given slot. */
static void begin_cluster(uint32_t slot) {
  const uint32_t cluster = (g_first_cluster + g_next_cluster++) % g_num_clusters;
  for (uint32_t rank = 0; rank < simt.launch->cluster; rank++)
    begin_block(&g_blocks[slot * simt.launch->cluster + rank],
                cluster * simt.launch->cluster + rank, rank);
}

/* Makes this launch's random choices: how many clusters are resident, how often threads yield,
 * which cluster comes first. */
static void choose_manner(const struct simt_launch *launch) {
  static const uint32_t yields[] = {0, 0, 0, 0, 1, 8, 64, 0}, switches[] = {0, 4, 32, 128};
  g_random = (simt.seed * 0x9e3779b97f4a7c15u) ^ (simt.num_launches * 0xbf58476d1ce4e5b9u) ^
             0x2545f4914f6cdd1du;
  if (g_random == 0) g_random = 1;
  for (int i = 0; i < 8; i++) next_random();
  simt.yield_share = yields[next_random() >> 20 & 7];
  g_switch_share = switches[next_random() >> 20 & 3];
  g_num_clusters = launch->grid.x * launch->grid.y * launch->grid.z / launch->cluster;
  uint32_t most = MOST_HERE / launch->cluster,
           here = launch->cooperative ? g_num_clusters : 1 + (uint32_t)(next_random() >> 20) % 3;
  if (here > g_num_clusters) here = g_num_clusters;
  if (here > most) here = most;
  g_num_here = here * launch->cluster;
  g_first_cluster = (uint32_t)(next_random() >> 20) % g_num_clusters;
}

static void check_launch(const struct simt_launch *launch) {
  const uint32_t threads = launch->block.x * launch->block.y * launch->block.z,
                 blocks = launch->grid.x * launch->grid.y * launch->grid.z;
  if (threads == 0 || threads > SIMT_MOST_THREADS || blocks == 0 || launch->cluster == 0 ||
      launch->cluster > SIMT_MOST_CLUSTER || launch->grid.x % launch->cluster != 0 ||
      launch->shared_bytes > SIMT_MOST_SHARED || (launch->cooperative && blocks > MOST_HERE)) {
    fprintf(stderr,
            "imitated GPU: kernel %s: %u blocks in clusters of %u, %u threads, %u bytes of shared "
            "memory\n",
            launch->name, blocks, launch->cluster, threads, launch->shared_bytes);
    abort();
  }
}

void simt_run(void *opaque) {
  struct simt_launch *launch = opaque;
  check_launch(launch);
  simt.launch = launch;
  simt.num_launches++;
  choose_manner(launch);
  g_block_threads = launch->block.x * launch->block.y * launch->block.z;
  g_block_warps = (g_block_threads + 31) / 32;
  gridDim = launch->grid;
  blockDim = launch->block;
  g_threads = aligned_alloc(64, (size_t)g_num_here * g_block_warps * 32 * sizeof *g_threads);
  if (simt.windows == NULL) {
    simt.windows = mmap(NULL, (size_t)MOST_HERE * WINDOW_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < MOST_HERE && simt.windows != MAP_FAILED; i++)
      if (mprotect(simt.windows + (size_t)i * WINDOW_BYTES + DYNAMIC_END, PAGE, PROT_NONE) != 0)
        abort();
  }
  if (g_threads == NULL || simt.windows == MAP_FAILED) abort();
  memset(g_threads, 0, (size_t)g_num_here * g_block_warps * 32 * sizeof *g_threads);
  memset(g_ready_warps, 0, sizeof g_ready_warps);
  g_next_cluster = 0;
  g_num_left = (uint64_t)g_block_threads * launch->grid.x * launch->grid.y * launch->grid.z;
  g_num_at_grid = 0;
  for (uint32_t slot = 0; slot * launch->cluster < g_num_here; slot++) begin_cluster(slot);
  go(&g_main_stack, &g_main_sp, choose(0, false));
  for (uint32_t i = 0; g_reporting && i < g_num_stuck; i++)
    go(&g_main_stack, &g_main_sp, g_stuck[i]);
  if (g_reporting) abort();
  free(g_threads);
  simt.current = NULL;
}
