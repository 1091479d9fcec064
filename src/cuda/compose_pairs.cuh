/* compose_pairs.cuh - the search of small pairs: a block each, with all of the pair's bits in its shared memory, so that a level costs two barriers of a
 * block instead of one of the grid. Included by compose_kernels.cu.
 *
 * Bits are taken in half words (32 states). PAIR_LANES threads share a half word: each takes every PAIR_LANES-th step of its row. Fresh bits of a level and
 * of the next are apart, as are those found before the level, so between two barriers what is read is not written. */
#ifndef WF_CUDA_COMPOSE_PAIRS_CUH
#define WF_CUDA_COMPOSE_PAIRS_CUH

#ifndef PAIR_THREADS
enum { PAIR_THREADS = 512, PAIR_LANES = 8 };
#endif

/* Half words [size] each. */
struct pair_bits {
  u32 *now, *next;  /* fresh in this level, and found in it */
  u32 *done;        /* found before, fresh ones included */
  const u32 *limit; /* bits that may be found; NULL: all */
  u32 size;
};

__device__ static bool add_half(const pair_bits &b, u32 at, u32 add) {
  add &= ~b.done[at];
  if (b.limit != nullptr) add &= b.limit[at];
  if (add != 0) atomicOr(&b.next[at], add);
  return add != 0;
}

/* One half word's fresh bits along every PAIR_LANES-th step of its row. Were any found? */
__device__ static bool visit_half(const wf__gpu_compose &c, const wf__gpu_pair &pair, int back, const pair_bits &b, u32 first_row, u32 at, u32 lane) {
  u32 fresh = b.now[at], row_halves = pair.num_words * 2, in_row = at % row_halves;
  u64 row = first_row + at / row_halves;
  bool found = false;
  for (u64 i = c.step_off[back][row] + lane; i < c.step_off[back][row + 1]; i += PAIR_LANES) {
    wf__gpu_step step = c.steps[back][i];
    u32 to_row = (u32)(step.word_off - pair.word_base) * 2;
    if (step.kind < STEP_LABEL) {
      found |= add_half(b, to_row + in_row, fresh & ((const u32 *)mask_of(c, pair, step.kind))[in_row]);
      continue;
    }
    const u32 *off = c.off + pair.off_base[back] + (u64)(step.kind - STEP_LABEL) * pair.num_b, *to = c.to + pair.to_base[back];
    for (u32 left = fresh; left != 0; left &= left - 1) {
      u32 state = in_row * 32 + (u32)__ffs((int)left) - 1, end = off[state + 1];
      for (u32 k = off[state]; k < end; k++) found |= add_half(b, to_row + (to[k] >> 5), 1u << (to[k] & 31));
    }
  }
  return found;
}

/* Level by level from the bits in `next`, until one finds nothing. */
__device__ static void search_pair(const wf__gpu_compose &c, const wf__gpu_pair &pair, int back, pair_bits b, u32 first_row) {
  for (int found = 1; found;) {
    u32 *fresh = b.next;
    b.next = b.now;
    b.now = fresh;
    for (u32 at = threadIdx.x; at < b.size; at += PAIR_THREADS) {
      b.next[at] = 0;
      b.done[at] |= b.now[at];
    }
    __syncthreads();
    found = 0;
    for (u32 i = threadIdx.x; i < b.size * PAIR_LANES; i += PAIR_THREADS)
      if (b.now[i / PAIR_LANES] != 0) found |= visit_half(c, pair, back, b, first_row, i / PAIR_LANES, i % PAIR_LANES);
    found = __syncthreads_or(found);
  }
}

__global__ static void __launch_bounds__(PAIR_THREADS) search_pairs_kernel(const wf__gpu_compose c) {
  extern __shared__ u64 pair_words[];
  const wf__gpu_pair &pair = c.pairs[blockIdx.x];
  if (pair.num_b == 0) return;
  u64 end = blockIdx.x + 1 < c.num_pairs ? c.pairs[blockIdx.x + 1].word_base : c.num_words;
  u32 size = (u32)(end - pair.word_base) * 2, first_row = c.word_row[pair.word_base];
  u32 *halves = (u32 *)pair_words, *reached = halves + 2 * size, *kept = halves + 3 * size;
  for (u32 at = threadIdx.x; at < 4 * size; at += PAIR_THREADS) halves[at] = 0;
  __syncthreads();
  if (threadIdx.x == 0) halves[size + (u32)(c.rows[pair.start_row].word_off - pair.word_base) * 2 + pair.start_b / 32] = 1u << (pair.start_b & 31);
  __syncthreads();
  pair_bits b = {halves, halves + size, reached, nullptr, size};
  search_pair(c, pair, 0, b, first_row);
  for (u32 at = threadIdx.x; at < size; at += PAIR_THREADS) ((u32 *)(c.reached + pair.word_base))[at] = reached[at];
  if (!c.connect) return;
  const u32 *final_bits = (const u32 *)mask_of(c, pair, WF__GPU_NUM_MASKS - 1);
  for (u32 at = threadIdx.x; at < size; at += PAIR_THREADS) {
    u32 row_halves = pair.num_words * 2;
    halves[at] = 0;
    halves[size + at] = c.rows[first_row + at / row_halves].a_final != INFINITY ? reached[at] & final_bits[at % row_halves] : 0;
  }
  __syncthreads();
  b.done = kept;
  b.limit = reached;
  search_pair(c, pair, 1, b, first_row);
  for (u32 at = threadIdx.x; at < size; at += PAIR_THREADS) ((u32 *)(c.kept + pair.word_base))[at] = kept[at];
}

/* Bytes of shared memory for the largest pair. */
static size_t pair_shared_bytes(const wf__gpu_compose *c) { return (size_t)c->max_pair_words * 4 * sizeof(u64); }

#endif
