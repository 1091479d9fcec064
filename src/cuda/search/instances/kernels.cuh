/* kernels.cuh - the kernels of a policy, and their launch: what an instance file compiles. */
#include "cuda/search/search.cuh"

#include "cuda/lattice/backward.cuh"
#include "cuda/lattice/stream_links.cuh"

namespace wf_search {

template <class POLICY, int RANKS>
__global__ void __launch_bounds__(threads_of(RANKS), 1)
    search_kernel(const __grid_constant__ wf__lane_params p) {
  if constexpr (RANKS == 1 || WF__HAS_CLUSTERS) {
    searcher<POLICY, RANKS> s(&p);
    if constexpr (POLICY::DEFERRED)
      s.run_deferred();
    else
      s.run();
    if (RANKS > 1) sync_cluster(); /* no block ends while others may read its shared memory */
  }
}

/* Calls f(n), where decltype(n)::value is `ranks`, the number of blocks of a lane, as a constant.
 */
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

/* --- the search -------------------------------------------------------------------------- */

template <class POLICY>
static size_t shared_bytes(int shared_kb, int32_t num_columns) {
  const size_t row =
      num_columns <= (int32_t)most_columns<POLICY>(shared_kb) ? (size_t)num_columns : 1;
  return (bytes_before_row<POLICY>(shared_kb) + sizeof(float) + 15) / 16 * 16 + row * sizeof(float);
}

/* The most attributes of a launch: the cluster's size and `begun`. */
constexpr int MOST_ATTRIBUTES = 2;

template <class POLICY, int RANKS>
static cudaError_t configure(cudaLaunchConfig_t *config, cudaLaunchAttribute *attributes,
                             unsigned lanes, int shared_kb, int32_t num_columns,
                             cudaStream_t stream) {
  /* The limit belongs to the kernel and applies to all threads of the process. Another decoder may
   * be about to launch, so the limit must always be the same. */
  const size_t most = shared_bytes<POLICY>(shared_kb, (int32_t)most_columns<POLICY>(shared_kb));
  cudaError_t code = cudaFuncSetAttribute(search_kernel<POLICY, RANKS>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
  if (code != cudaSuccess) return code;
  attributes->id = cudaLaunchAttributeClusterDimension;
  attributes->val.clusterDim.x = RANKS;
  attributes->val.clusterDim.y = attributes->val.clusterDim.z = 1;
  *config = cudaLaunchConfig_t{};
  config->gridDim = dim3(lanes * RANKS);
  config->blockDim = dim3(threads_of(RANKS));
  config->dynamicSmemBytes = shared_bytes<POLICY>(shared_kb, num_columns);
  config->stream = stream;
  config->attrs = attributes;
  config->numAttrs = RANKS > 1 ? 1 : 0;
  return cudaSuccess;
}

/* Adds the attribute that makes `begun` be done when all blocks run; false if there is none. */
static bool signals_begin(cudaLaunchConfig_t *config, cudaLaunchAttribute *attributes,
                          cudaEvent_t begun) {
#if CUDART_VERSION >= 12030
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver < 12030) return false;
  cudaLaunchAttribute *attribute = &attributes[config->numAttrs++];
  attribute->id = cudaLaunchAttributeLaunchCompletionEvent;
  attribute->val.launchCompletionEvent.event = begun;
  attribute->val.launchCompletionEvent.flags = 0;
  return true;
#else
  return false;
#endif
}

template <class POLICY>
static int launch_search(const wf__lane_params *params, void *stream, void *begun) {
  return with_ranks(params->memory.ranks, [&](auto n) -> int {
    constexpr int RANKS = decltype(n)::value;
    cudaLaunchConfig_t config;
    cudaLaunchAttribute attributes[MOST_ATTRIBUTES];
    cudaError_t code =
        configure<POLICY, RANKS>(&config, attributes, params->memory.num_lanes, params->shared_kb,
                                 params->graph.num_columns, (cudaStream_t)stream);
    if (code != cudaSuccess) return code;
    if (begun != NULL && !signals_begin(&config, attributes, (cudaEvent_t)begun))
      code = cudaEventRecord((cudaEvent_t)begun, (cudaStream_t)stream);
    if (code != cudaSuccess) return code;
    return cudaLaunchKernelEx(&config, search_kernel<POLICY, RANKS>,
                              *params); /* not cudaGetLastError, which may return an error of an
                                           earlier call by the caller */
  });
}

template <class POLICY>
static int search_capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                           int *out_lanes) {
  *out_lanes = 0;
  if (ranks > 1 << profile->max_rank_bits) return cudaSuccess;
  return with_ranks((uint32_t)ranks, [&](auto n) -> int {
    constexpr int RANKS = decltype(n)::value;
    cudaLaunchConfig_t config;
    cudaLaunchAttribute attributes[MOST_ATTRIBUTES];
    cudaError_t code =
        configure<POLICY, RANKS>(&config, attributes, 1, profile->shared_kb, num_columns, 0);
    if (code != cudaSuccess) return code;
    if (RANKS > 1)
      return cudaOccupancyMaxActiveClusters(out_lanes, search_kernel<POLICY, RANKS>, &config);
    int blocks = 0;
    code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, search_kernel<POLICY, RANKS>, threads_of(RANKS), config.dynamicSmemBytes);
    *out_lanes = blocks * profile->num_processors;
    return code;
  });
}

/* --- the backward pass ------------------------------------------------------------------- */

template <class POLICY>
static int launch_backward(const wf__lane_params *params, wf__backward_tables tables,
                           void *stream) {
  typedef backward_layout<POLICY> memory;
  wf__lane_params p = *params;
  uint32_t bytes = memory::offset();
  const int wanted = tables == WF__BACKWARD_SMALL   ? WF__LANE_OK
                     : tables == WF__BACKWARD_LARGE ? WF__LANE_LARGE_LATTICE
                                                    : WF__LANE_GLOBAL_LATTICE;
  if (POLICY::BACKWARD_GLOBAL) {
    p.lattices.backward_bits = GLOBAL_BITS;
    const cudaError_t code =
        cudaMemsetAsync(p.lattices.global_tables, 0, GLOBAL_HEAD, (cudaStream_t)stream);
    if (code != cudaSuccess) return code;
  } else {
    p.lattices.backward_bits = memory::fitting_bits(
        params->shared_kb, tables == WF__BACKWARD_LARGE ? memory::LARGE_BITS : memory::SMALL_BITS);
    bytes = memory::shared_bytes(p.lattices.backward_bits);
  }
  return with_ranks(params->memory.ranks, [&](auto n) -> int {
    constexpr int RANKS = decltype(n)::value;
    if (!POLICY::BACKWARD_GLOBAL) {
      const uint32_t most =
          memory::shared_bytes(memory::fitting_bits(params->shared_kb, memory::LARGE_BITS));
      const cudaError_t code = cudaFuncSetAttribute(
          backward_kernel<POLICY, RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
      if (code != cudaSuccess) return code;
    }
    return WF__LAUNCH((backward_kernel<POLICY, RANKS>), dim3(p.memory.num_lanes * RANKS),
                      BACK_THREADS, bytes, stream, p, wanted);
  });
}

template <class POLICY>
static uint64_t backward_global_bytes(uint32_t num_lattices) {
  return GLOBAL_HEAD + (uint64_t)num_lattices * backward_layout<POLICY>::global_bytes();
}

}  // namespace wf_search

/* Defines the functions that search_kernels.c lists for the policy of that name. */
#define WF__SEARCH_INSTANCE(policy)                                                               \
  extern "C" int wf__search_##policy##_launch(const wf__lane_params *params, void *stream,        \
                                              void *begun) {                                      \
    return wf_search::launch_search<wf_search::policy>(params, stream, begun);                    \
  }                                                                                               \
  extern "C" int wf__search_##policy##_capacity(const wf__gpu_profile *profile, int ranks,        \
                                                int32_t num_columns, int *out_lanes) {            \
    return wf_search::search_capacity<wf_search::policy>(profile, ranks, num_columns, out_lanes); \
  }
#define WF__BACKWARD_INSTANCE(policy)                                                       \
  extern "C" int wf__backward_##policy##_launch(const wf__lane_params *params,              \
                                                wf__backward_tables tables, void *stream) { \
    return wf_search::launch_backward<wf_search::policy>(params, tables, stream);           \
  }
#define WF__BACKWARD_GLOBAL_INSTANCE(policy)                                  \
  WF__BACKWARD_INSTANCE(policy)                                               \
  extern "C" uint64_t wf__backward_##policy##_bytes(uint32_t num_lattices) {  \
    return wf_search::backward_global_bytes<wf_search::policy>(num_lattices); \
  }
