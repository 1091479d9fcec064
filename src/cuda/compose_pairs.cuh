/* compose_pairs.cuh - the search of small pairs: two blocks each, one from the start and one from the final states, with all of the pair's bits in shared memory, so
 * that a level costs two barriers of a block instead of one of the grid. Included by compose_kernels.cu.
 *
 * Bits are taken in half words (32 states). A warp takes 32 half words at a time, lists their fresh states, and gives each thread one with its whole row of steps;
 * rows of many steps are taken by the warp together. Fresh bits of a level and of the next are apart, as are those found before the level, so between two
 * barriers what is read is not written. */
#ifndef WF_CUDA_COMPOSE_PAIRS_CUH
#define WF_CUDA_COMPOSE_PAIRS_CUH

enum { PAIR_THREADS = 1024, PAIR_WARPS = PAIR_THREADS / 32, PAIR_LIST = 32 * 32, PAIR_MANY_STEPS = 32 };

/* Half words [size] each. */
struct pair_bits {
  u32 *now, *next; /* fresh in this level, and found in it */
  u32 *done;       /* found before, fresh ones included */
  u32 size;
};

struct pair_search {
  const wf__gpu_compose &c;
  const wf__gpu_pair &pair;
  const u64 *step_off;
  const wf__gpu_step *steps;
  const u32 *off, *to;
  u32 back, row_halves;

  __device__ bool find(const pair_bits &b, u32 at, u32 add) const {
    add &= ~b.done[at];
    if (add != 0 && (b.next[at] & add) != add) atomicOr(&b.next[at], add);
    return add != 0;
  }

  /* A state of a row along one step. */
  __device__ bool take(const pair_bits &b, u32 state, const wf__gpu_step &step) const {
    u32 to_row = (step.row - pair.first_row) * row_halves;
    if (step.kind < STEP_LABEL) return (mask_of(c, pair, step.kind)[state / 64] >> (state & 63) & 1) != 0 && find(b, to_row + state / 32, 1u << (state & 31));
    const u32 *cell = off + (u64)(step.kind - STEP_LABEL) * pair.num_b + state;
    bool found = false;
    for (u32 k = cell[0], end = cell[1]; k < end; k++) found |= find(b, to_row + (to[k] >> 5), 1u << (to[k] & 31));
    return found;
  }

  /* The fresh bits of half words first .. first + 31. Was anything found? */
  __device__ bool visit(const pair_bits &b, u32 first, u32 lane, uint16_t *list) const {
    u32 at = first + lane, fresh = at < b.size ? b.now[at] : 0, in_row = at % row_halves, begin = 0, end = 0;
    if (!__any_sync(~0u, fresh != 0)) return false;
    if (fresh != 0) {
      u64 row = pair.first_row + at / row_halves, base = step_off[pair.first_row];
      begin = (u32)(step_off[row] - base);
      end = (u32)(step_off[row + 1] - base);
    }
    const wf__gpu_step *own = steps + step_off[pair.first_row];
    bool many = end - begin > PAIR_MANY_STEPS, found = false;
    u32 count = many ? 0 : (u32)__popc(fresh), sum = count;
    for (u32 distance = 1; distance < 32; distance *= 2) {
      u32 other = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum += other;
    }
    u32 total = __shfl_sync(~0u, sum, 31);
    sum -= count;
    for (u32 bits = many ? 0 : fresh; bits != 0; bits &= bits - 1) list[sum++] = (uint16_t)(lane << 5 | ((u32)__ffs((int)bits) - 1));
    __syncwarp();
    for (u32 i = 0; i < total; i += 32) {
      u32 item = i + lane < total ? list[i + lane] : 0, from = item >> 5;
      u32 state = __shfl_sync(~0u, in_row, from) * 32 + (item & 31), k = __shfl_sync(~0u, begin, from), last = __shfl_sync(~0u, end, from);
      if (i + lane >= total) last = k;
      for (; k < last; k++) found |= take(b, state, own[k]);
    }
    for (u32 rows = __ballot_sync(~0u, many); rows != 0; rows &= rows - 1) {
      u32 from = (u32)__ffs((int)rows) - 1, state = __shfl_sync(~0u, in_row, from) * 32, k = __shfl_sync(~0u, begin, from) + lane, last = __shfl_sync(~0u, end, from);
      u32 all = __shfl_sync(~0u, fresh, from);
      for (; k < last; k += 32)
        for (u32 bits = all; bits != 0; bits &= bits - 1) found |= take(b, state + (u32)__ffs((int)bits) - 1, own[k]);
    }
    __syncwarp();
    return found;
  }
};

/* Level by level from the bits in `next`, until one finds nothing. Returns the number of levels. */
__device__ static u32 search_pair(const pair_search &search, pair_bits b, uint16_t *lists) {
  u32 warp = threadIdx.x / 32, lane = threadIdx.x & 31, levels = 0;
  for (int found = 1; found; levels++) {
    u32 *fresh = b.next;
    b.next = b.now;
    b.now = fresh;
    for (u32 at = threadIdx.x; at < b.size; at += PAIR_THREADS) {
      b.next[at] = 0;
      b.done[at] |= b.now[at];
    }
    __syncthreads();
    bool any = false;
    for (u32 first = warp * 32; first < b.size; first += PAIR_THREADS) any |= search.visit(b, first, lane, lists + warp * PAIR_LIST);
    found = __syncthreads_or(any);
  }
  return levels;
}

__global__ static void __launch_bounds__(PAIR_THREADS) search_pairs_kernel(const wf__gpu_compose c) {
  WF__DYNAMIC_SHARED(u64, pair_words);
  const u32 back = blockIdx.x & (c.connect ? 1 : 0);
  const u64 p = c.connect ? blockIdx.x / 2 : blockIdx.x;
  const wf__gpu_pair &pair = c.pairs[p];
  if (pair.num_b == 0) return;
  u64 end = p + 1 < c.num_pairs ? c.pairs[p + 1].word_base : c.num_words;
  u32 size = (u32)(end - pair.word_base) * 2, row_halves = pair.num_words * 2;
  u32 *halves = (u32 *)pair_words;
  for (u32 at = threadIdx.x; at < 3 * size; at += PAIR_THREADS) halves[at] = 0;
  __syncthreads();
  if (!back) {
    if (threadIdx.x == 0) halves[size + (pair.start_row - pair.first_row) * row_halves + pair.start_b / 32] = 1u << (pair.start_b & 31);
  } else {
    const u32 *final_bits = (const u32 *)mask_of(c, pair, WF__GPU_NUM_MASKS - 1);
    for (u32 at = threadIdx.x; at < size; at += PAIR_THREADS) halves[size + at] = c.rows[pair.first_row + at / row_halves].a_final != INFINITY ? final_bits[at % row_halves] : 0;
  }
  __syncthreads();
  pair_search search = {c, pair, c.step_off[back], c.steps[back], c.off + pair.off_base[back], c.to + pair.to_base[back], back, row_halves};
  pair_bits b = {halves, halves + size, halves + 2 * size, size};
  u32 levels = search_pair(search, b, (uint16_t *)(halves + 3 * size));
  u32 *to = (u32 *)((back ? c.kept : c.reached) + pair.word_base);
  for (u32 at = threadIdx.x; at < size; at += PAIR_THREADS) to[at] = b.done[at];
  if (threadIdx.x == 0) atomicMax(&c.stats[back], levels);
}

/* Kept is what both searches have found. */
__global__ static void both_kernel(const wf__gpu_compose c) {
  for (u64 at = (u64)blockIdx.x * THREADS + threadIdx.x; at < c.num_words; at += (u64)gridDim.x * THREADS) c.kept[at] &= c.reached[at];
}

/* Bytes of shared memory for the largest pair, lists behind its bits. */
static size_t pair_shared_bytes(const wf__gpu_compose *c) { return (size_t)c->max_pair_words * 3 * sizeof(u64) + PAIR_WARPS * PAIR_LIST * sizeof(uint16_t); }

#endif
