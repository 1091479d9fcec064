/* kernels.cuh - the kernels of one kind of search, and their launch: what an instance file compiles. */
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
  searcher<RANKS> s(&p);
#ifdef WF_LANE_ASKING
  s.run_asking();
#else
  s.run();
#endif
  if (RANKS > 1) cg::this_cluster().sync(); /* nobody leaves while others may read its shared memory */
}

#endif

/* --- launching --------------------------------------------------------------------------------------------------------- */

#ifdef WF_BACKWARD_GLOBAL
template <int RANKS>
static cudaError_t launch_global(const wf__lane_params *params, cudaStream_t stream) {
  wf__lane_params p = *params;
  p.back_bits = GLOBAL_BITS;
  const cudaError_t code = cudaMemsetAsync(p.global_tables, 0, GLOBAL_HEAD, stream);
  if (code != cudaSuccess) return code;
  return (cudaError_t)WF__LAUNCH(lattice_back<RANKS>, dim3(p.num_lanes * RANKS), BACK_THREADS, BACK_OFFSET, stream, p, (int)WF__LANE_GLOBAL_LATTICE);
}

extern "C" int wf__backward_global_launch(const wf__lane_params *params, void *stream) {
  switch (params->ranks) {
    case 1: return launch_global<1>(params, (cudaStream_t)stream);
    case 2: return launch_global<2>(params, (cudaStream_t)stream);
    case 4: return launch_global<4>(params, (cudaStream_t)stream);
    case 8: return launch_global<8>(params, (cudaStream_t)stream);
  }
  return cudaErrorInvalidValue;
}

extern "C" uint64_t wf__backward_global_bytes(uint32_t num_lattices) { return GLOBAL_HEAD + (uint64_t)num_lattices * GLOBAL_BYTES; }
#else
static size_t shared_bytes(int32_t num_columns) {
  size_t row = num_columns <= WF__LANE_MAX_ROW ? (size_t)num_columns : 1;
  return sizeof(lane_shared) + row * sizeof(float);
}

template <int RANKS>
static cudaError_t configure(cudaLaunchConfig_t *config, cudaLaunchAttribute *attribute, unsigned lanes, int32_t num_columns, cudaStream_t stream) {
  size_t bytes = shared_bytes(num_columns);
  cudaError_t code = cudaFuncSetAttribute(lane_search<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
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
  cudaError_t code = configure<RANKS>(&config, &attribute, params->num_lanes, params->num_columns, stream);
  if (code != cudaSuccess) return code;
  code = cudaLaunchKernelEx(&config, lane_search<RANKS>, *params);
  return code != cudaSuccess ? code : cudaGetLastError();
}

template <int RANKS>
static cudaError_t capacity(int32_t num_columns, int *out_lanes) {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attribute;
  cudaError_t code = configure<RANKS>(&config, &attribute, 1, num_columns, 0);
  if (code != cudaSuccess) return code;
  if (RANKS > 1) return cudaOccupancyMaxActiveClusters(out_lanes, lane_search<RANKS>, &config);
  int device = 0, processors = 0, blocks = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, lane_search<RANKS>, WF__LANE_THREADS, config.dynamicSmemBytes);
  *out_lanes = blocks * processors;
  return code;
}

#if !defined(WF_LANE_STREAMS) && !defined(WF_LANE_ASKING)
template <int RANKS>
static cudaError_t launch_backward(const wf__lane_params *params, wf__backward_tables tables, cudaStream_t stream) {
  wf__lane_params p = *params;
  p.back_bits = tables == WF__BACKWARD_LARGE ? LARGE_BITS : BACK_BITS;
  const cudaError_t code = cudaFuncSetAttribute(lattice_back<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)back_bytes(LARGE_BITS));
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
  switch (params->ranks) {
    case 1: return launch<1>(params, (cudaStream_t)stream);
    case 2: return launch<2>(params, (cudaStream_t)stream);
    case 4: return launch<4>(params, (cudaStream_t)stream);
    case 8: return launch<8>(params, (cudaStream_t)stream);
  }
  return cudaErrorInvalidValue;
}

#if !defined(WF_LANE_STREAMS) && !defined(WF_LANE_ASKING)
extern "C" int ENTRY(backward)(const wf__lane_params *params, wf__backward_tables tables, void *stream) {
  switch (params->ranks) {
    case 1: return launch_backward<1>(params, tables, (cudaStream_t)stream);
    case 2: return launch_backward<2>(params, tables, (cudaStream_t)stream);
    case 4: return launch_backward<4>(params, tables, (cudaStream_t)stream);
    case 8: return launch_backward<8>(params, tables, (cudaStream_t)stream);
  }
  return cudaErrorInvalidValue;
}
#endif

extern "C" int ENTRY(capacity)(int ranks, int32_t num_columns, int *out_lanes) {
  *out_lanes = 0;
  switch (ranks) {
    case 1: return capacity<1>(num_columns, out_lanes);
    case 2: return capacity<2>(num_columns, out_lanes);
    case 4: return capacity<4>(num_columns, out_lanes);
    case 8: return capacity<8>(num_columns, out_lanes);
  }
  return cudaErrorInvalidValue;
}

#endif

}  // namespace WF_LANE_SPACE
