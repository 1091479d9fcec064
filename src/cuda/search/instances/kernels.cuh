/* kernels.cuh - the kernels of one kind of search, and their launch: what an instance file compiles. */
#include "cuda/search/search.cuh"

#ifdef WF_LANE_STREAMS
#include "cuda/lattice/stream_links.cuh"
#elif !defined(WF_LANE_ASKING)
#include "cuda/lattice/backward.cuh"
#endif

namespace WF_LANE_SPACE {

#ifndef WF_LANE_FAR
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

#ifdef WF_LANE_FAR
template <int RANKS>
static cudaError_t launch_far(const wf__lane_params *params, cudaStream_t stream) {
  wf__lane_params p = *params;
  p.back_bits = FAR_BITS;
  const cudaError_t code = cudaMemsetAsync(p.far_tables, 0, FAR_HEAD, stream);
  if (code != cudaSuccess) return code;
  return (cudaError_t)WF__LAUNCH(lattice_back<RANKS>, dim3(p.num_lanes * RANKS), BACK_THREADS, BACK_OFFSET, stream, p, (int)WF__LANE_FAR);
}

extern "C" int wf__lane_far_back(const wf__lane_params *params, void *stream) {
  switch (params->ranks) {
    case 1: return launch_far<1>(params, (cudaStream_t)stream);
    case 2: return launch_far<2>(params, (cudaStream_t)stream);
    case 4: return launch_far<4>(params, (cudaStream_t)stream);
    case 8: return launch_far<8>(params, (cudaStream_t)stream);
  }
  return cudaErrorInvalidValue;
}

extern "C" uint64_t wf__lane_far_bytes(uint32_t num_lattices) { return FAR_HEAD + (uint64_t)num_lattices * FAR_BYTES; }
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
static cudaError_t launch_back(const wf__lane_params *params, int wide, cudaStream_t stream) {
  wf__lane_params p = *params;
  p.back_bits = wide ? WIDE_BITS : BACK_BITS;
  const cudaError_t code = cudaFuncSetAttribute(lattice_back<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)back_bytes(WIDE_BITS));
  if (code != cudaSuccess) return code;
  return (cudaError_t)WF__LAUNCH(lattice_back<RANKS>, dim3(p.num_lanes * RANKS), BACK_THREADS, back_bytes(p.back_bits), stream, p, wide ? (int)WF__LANE_WIDE : (int)WF__LANE_OK);
}
#endif

#if defined(WF_LANE_ASKING) && defined(WF_LANE_STREAMS)
#define ENTRY(what) wf__lane_asking_streams_##what
#elif defined(WF_LANE_ASKING)
#define ENTRY(what) wf__lane_asking_##what
#elif defined(WF_LANE_SCORED) && defined(WF_LANE_STREAMS)
#define ENTRY(what) wf__lane_scored_streams_##what
#elif defined(WF_LANE_SCORED)
#define ENTRY(what) wf__lane_scored_##what
#elif defined(WF_LANE_STREAMS)
#define ENTRY(what) wf__lane_streams_##what
#else
#define ENTRY(what) wf__lane_search_##what
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
extern "C" int ENTRY(back)(const wf__lane_params *params, int wide, void *stream) {
  switch (params->ranks) {
    case 1: return launch_back<1>(params, wide, (cudaStream_t)stream);
    case 2: return launch_back<2>(params, wide, (cudaStream_t)stream);
    case 4: return launch_back<4>(params, wide, (cudaStream_t)stream);
    case 8: return launch_back<8>(params, wide, (cudaStream_t)stream);
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
