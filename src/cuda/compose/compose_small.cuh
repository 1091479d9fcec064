/* compose_small.cuh - the prefix sums of a small composition in one block, instead of several
 * launches each. Included by compose_kernels.cu. */
#ifndef WF_CUDA_COMPOSE_COMPOSE_SMALL_CUH
#define WF_CUDA_COMPOSE_COMPOSE_SMALL_CUH

enum { SMALL_THREADS = 1024 };

struct small_sums {
  u64 of[SMALL_THREADS / 32];
};

/* Exclusive prefix sum over the threads of the block, plus *sum. Adds the total to *sum. All
 * threads of the block must call it. */
__device__ static u64 sum_before(u64 value, small_sums &sums, u64 *sum) {
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  u64 own = value;
  for (u32 distance = 1; distance < 32; distance *= 2) {
    u64 other = __shfl_up_sync(~0u, own, distance);
    if (lane >= distance) own += other;
  }
  if (lane == 31) sums.of[warp] = own;
  __syncthreads();
  u64 warps = sums.of[lane];
  for (u32 distance = 1; distance < 32; distance *= 2) {
    u64 other = __shfl_up_sync(~0u, warps, distance);
    if (lane >= distance) warps += other;
  }
  const u64 before =
      *sum + own - value + __shfl_sync(~0u, warps, warp > 0 ? (int)warp - 1 : 0) * (warp > 0);
  *sum += __shfl_sync(~0u, warps, 31);
  __syncthreads();
  return before;
}

/* If the two searches ran separately, keeps the states that both have found. Then computes the
 * numbers of states and slots, the halves and the totals. */
__global__ static void __launch_bounds__(SMALL_THREADS)
    place_small_kernel(const __grid_constant__ wf__gpu_compose c) {
  WF__SHARED(small_sums, sums);
  if (c.group == 0 && c.connect) {
    for (u64 at = threadIdx.x; at < c.num_words; at += SMALL_THREADS) c.kept[at] &= c.reached[at];
    __syncthreads();
  }
  u64 states = 0, slots = 0;
  for (u64 base = 0; base <= c.num_words; base += SMALL_THREADS) {
    const u64 at = base + threadIdx.x,
              state = sum_before(at < c.num_words ? (u64)__popcll(c.kept[at]) : 0, sums, &states),
              slot = sum_before(slots_of(c, at), sums, &slots);
    if (at > c.num_words) continue;
    c.first[at] = (u32)state;
    c.first_slot[at] = slot;
  }
  __syncthreads();
  place_halves(c, threadIdx.x, SMALL_THREADS);
}

/* Turns the arc counts in the slots into positions. */
__global__ static void __launch_bounds__(SMALL_THREADS)
    sum_small_kernel(const __grid_constant__ wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots) return;
  WF__SHARED(small_sums, sums);
  const u64 num_slots = c.totals[1];
  u64 arcs = 0;
  for (u64 base = 0; base <= num_slots; base += SMALL_THREADS) {
    const u64 at = base + threadIdx.x,
              place = sum_before(at < num_slots ? c.slots[at] : 0, sums, &arcs);
    if (at <= num_slots) c.slots[at] = place;
  }
  __syncthreads();
  place_pairs(c, threadIdx.x, SMALL_THREADS);
}

#endif
