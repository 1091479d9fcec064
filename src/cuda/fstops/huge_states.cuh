/* huge_states.cuh - visits the states of a level, of which a few have very many arcs. */
#ifndef WF_CUDA_FSTOPS_HUGE_STATES_CUH
#define WF_CUDA_FSTOPS_HUGE_STATES_CUH

#include "cuda/device/grid.cuh"

#ifndef WF__HUGE_ARCS /* tests set less */
#define WF__HUGE_ARCS 512
#endif

struct huge_states {
  u32 count, of[THREADS];
};

/* Same as for_states, for a kernel whose threads all call it. The states of a short list are spread
 * over all blocks, and a whole block visits a state of more than WF__HUGE_ARCS arcs, which would
 * hold up a level. */
template <class Work>
__device__ void for_states_together(const u32 *list, u64 begin, u64 end, const Work &work) {
  WF__SHARED(huge_states, huge);
  const u64 wanted = (end - begin + gridDim.x - 1) / gridDim.x,
            share = wanted < THREADS ? wanted : THREADS;
  for (u64 base = begin + blockIdx.x * share; base < end; base += gridDim.x * share) {
    if (threadIdx.x == 0) huge.count = 0;
    __syncthreads();
    const u64 k = base + threadIdx.x;
    const bool has = threadIdx.x < share && k < end;
    const u32 state = has ? __ldcg(&list[k]) : 0;
    const u64 size = has ? work.size(state) : 0;
    const bool many = size > MANY_ARCS && size <= WF__HUGE_ARCS;
    if (size > WF__HUGE_ARCS) huge.of[atomicAdd(&huge.count, 1u)] = state;
    if (has && size <= MANY_ARCS) work.visit(state, 0, 1);
    for (u32 mask = __ballot_sync(ALL_LANES, many); mask != 0; mask &= mask - 1)
      work.visit(__shfl_sync(ALL_LANES, state, __ffs((int)mask) - 1), this_lane(), LANES);
    __syncthreads();
    for (u32 i = 0; i < huge.count; i++) work.visit(huge.of[i], threadIdx.x, THREADS);
    __syncthreads();
  }
}

/* A place on a list that grows, other for each thread that asks. Threads of a warp that ask
 * together take one atomic. */
__device__ inline u32 next_place(u32 *count) {
  const u32 mask = __activemask(), leader = (u32)__ffs((int)mask) - 1;
  u32 place = 0;
  if (this_lane() == leader) place = atomicAdd(count, (u32)__popc(mask));
  return __shfl_sync(mask, place, (int)leader) + (u32)__popc(mask & ((1u << this_lane()) - 1));
}

#endif
