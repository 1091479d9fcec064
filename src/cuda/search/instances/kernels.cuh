/* kernels.cuh - the kernels of one kind of search, and their launch: what an instance file compiles. */
#include <type_traits>

#include "cuda/search/search.cuh"

#ifdef WF_LANE_STREAMS
#include "cuda/lattice/stream_links.cuh"
#elif !defined(WF_LANE_ASKING)
#include "cuda/lattice/backward.cuh"
#endif

namespace WF_LANE_SPACE {

#ifndef WF_BACKWARD_GLOBAL
template <int RANKS>
__global__ void __launch_bounds__(WF__LANE_THREADS, 1) lane_search(const __grid_constant__ wf__lane_params p) {
  if constexpr (RANKS == 1 || WF__HAS_CLUSTERS) {
    searcher<RANKS> s(&p);
#ifdef WF_LANE_ASKING
    s.run_asking();
#else
    s.run();
#endif
    if (RANKS > 1) sync_cluster(); /* nobody leaves while others may read its shared memory */
  }
}

#endif

/* --- launching --------------------------------------------------------------------------------------------------------- */

/* Calls f(n), where decltype(n)::value is the number of blocks a lane, a constant. */
template <class F>
static int with_ranks(uint32_t ranks, F f) {
  switch (ranks) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 4: return f(std::integral_constant<int, 4>());
    case 8: return f(std::integral_constant<int, 8>());
  }
  return cudaErrorInvalidValue;
}

#ifdef WF_BACKWARD_GLOBAL
template <int RANKS>
static cudaError_t launch_global(const wf__lane_params *params, cudaStream_t stream) {
  wf__lane_params p = *params;
  p.back_bits = GLOBAL_BITS;
  const cudaError_t code = cudaMemsetAsync(p.global_tables, 0, GLOBAL_HEAD, stream);
  if (code != cudaSuccess) return code;
  return (cudaError_t)WF__LAUNCH(lattice_back<RANKS>, dim3(p.num_lanes * RANKS), BACK_THREADS, BACK_OFFSET, stream, p, (int)WF__LANE_GLOBAL_LATTICE);
}

#ifdef WF_LANE_SCORED
#define GLOBAL_ENTRY(what) wf__backward_global_scored_##what
#else
#define GLOBAL_ENTRY(what) wf__backward_global_##what
#endif

extern "C" int GLOBAL_ENTRY(launch)(const wf__lane_params *params, void *stream) {
  return with_ranks(params->ranks, [&](auto n) { return launch_global<decltype(n)::value>(params, (cudaStream_t)stream); });
}

extern "C" uint64_t GLOBAL_ENTRY(bytes)(uint32_t num_lattices) { return GLOBAL_HEAD + (uint64_t)num_lattices * GLOBAL_BYTES; }
#else
static size_t shared_bytes(int shared_kb, int32_t num_columns) {
  const size_t row = num_columns <= (int32_t)most_columns(shared_kb) ? (size_t)num_columns : 1;
  return (bytes_before_row(shared_kb) + sizeof(float) + 15) / 16 * 16 + row * sizeof(float);
}

template <int RANKS>
static cudaError_t configure(cudaLaunchConfig_t *config, cudaLaunchAttribute *attribute, unsigned lanes, int shared_kb, int32_t num_columns, cudaStream_t stream) {
  size_t bytes = shared_bytes(shared_kb, num_columns);
  /* The limit is the kernel's, for all threads of the process: so always the same, as another decoder may be about to launch. */
  const size_t most = shared_bytes(shared_kb, (int32_t)most_columns(shared_kb));
  cudaError_t code = cudaFuncSetAttribute(lane_search<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (code != cudaSuccess) return code;
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim.x = RANKS;
  attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
  *config = cudaLaunchConfig_t{};
  config->gridDim = dim3(lanes * RANKS);
  config->blockDim = dim3(WF__LANE_THREADS);
  config->dynamicSmemBytes = bytes;
  config->stream = stream;
  config->attrs = attribute;
  config->numAttrs = RANKS > 1 ? 1 : 0;
  return cudaSuccess;
}

template <int RANKS>
static cudaError_t launch(const wf__lane_params *params, cudaStream_t stream) {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attribute;
  cudaError_t code = configure<RANKS>(&config, &attribute, params->num_lanes, params->shared_kb, params->num_columns, stream);
  if (code != cudaSuccess) return code;
  return cudaLaunchKernelEx(&config, lane_search<RANKS>, *params); /* not cudaGetLastError: that may be of a call before, the caller's own */
}

template <int RANKS>
static cudaError_t capacity(const wf__gpu_profile *profile, int32_t num_columns, int *out_lanes) {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attribute;
  cudaError_t code = configure<RANKS>(&config, &attribute, 1, profile->shared_kb, num_columns, 0);
  if (code != cudaSuccess) return code;
  if (RANKS > 1) return cudaOccupancyMaxActiveClusters(out_lanes, lane_search<RANKS>, &config);
  int blocks = 0;
  code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, lane_search<RANKS>, WF__LANE_THREADS, config.dynamicSmemBytes);
  *out_lanes = blocks * profile->num_processors;
  return code;
}

#if !defined(WF_LANE_STREAMS) && !defined(WF_LANE_ASKING)
template <int RANKS>
static cudaError_t launch_backward(const wf__lane_params *params, wf__backward_tables tables, cudaStream_t stream) {
  wf__lane_params p = *params;
  p.back_bits = back_bits(params->shared_kb, tables == WF__BACKWARD_LARGE ? LARGE_BITS : BACK_BITS);
  const cudaError_t code = cudaFuncSetAttribute(lattice_back<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)back_bytes(back_bits(params->shared_kb, LARGE_BITS)));
  if (code != cudaSuccess) return code;
  return (cudaError_t)WF__LAUNCH(lattice_back<RANKS>, dim3(p.num_lanes * RANKS), BACK_THREADS, back_bytes(p.back_bits), stream, p, tables == WF__BACKWARD_LARGE ? (int)WF__LANE_LARGE_LATTICE : (int)WF__LANE_OK);
}
#endif

#if defined(WF_LANE_ASKING) && defined(WF_LANE_STREAMS)
#define ENTRY(what) wf__search_deferred_streams_##what
#elif defined(WF_LANE_ASKING)
#define ENTRY(what) wf__search_deferred_##what
#elif defined(WF_LANE_SCORED) && defined(WF_LANE_STREAMS)
#define ENTRY(what) wf__search_scored_streams_##what
#elif defined(WF_LANE_SCORED)
#define ENTRY(what) wf__search_scored_##what
#elif defined(WF_LANE_STREAMS)
#define ENTRY(what) wf__search_plain_streams_##what
#else
#define ENTRY(what) wf__search_plain_##what
#endif

extern "C" int ENTRY(launch)(const wf__lane_params *params, void *stream) {
  return with_ranks(params->ranks, [&](auto n) { return launch<decltype(n)::value>(params, (cudaStream_t)stream); });
}

#if !defined(WF_LANE_STREAMS) && !defined(WF_LANE_ASKING)
extern "C" int ENTRY(backward)(const wf__lane_params *params, wf__backward_tables tables, void *stream) {
  return with_ranks(params->ranks, [&](auto n) { return launch_backward<decltype(n)::value>(params, tables, (cudaStream_t)stream); });
}
#endif

extern "C" int ENTRY(capacity)(const wf__gpu_profile *profile, int ranks, int32_t num_columns, int *out_lanes) {
  *out_lanes = 0;
  if (ranks > 1 << profile->max_rank_bits) return cudaSuccess;
  return with_ranks((uint32_t)ranks, [&](auto n) { return capacity<decltype(n)::value>(profile, num_columns, out_lanes); });
}

#endif

}  // namespace WF_LANE_SPACE
