/* cluster_ptx.cuh - more instructions on shared memory by address, like those of ptx.cuh: atomic
 * OR, also in other blocks of the cluster. */
#ifndef WF_CUDA_DEVICE_CLUSTER_PTX_CUH
#define WF_CUDA_DEVICE_CLUSTER_PTX_CUH

#include "cuda/device/ptx.cuh"

/* CLUSTER: the address may be in any block of the cluster; all blocks see the bits after a
 * barrier. */
template <bool CLUSTER>
__device__ __forceinline__ void set_shared_bits(uint32_t address, uint32_t bits) {
  if (CLUSTER)
    asm volatile("red.relaxed.cluster.shared::cluster.or.b32 [%0], %1;" ::"r"(address), "r"(bits)
                 : "memory");
  else
    asm volatile("red.relaxed.cta.shared.or.b32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}

__device__ __forceinline__ void store_of_rank(uint32_t address, uint32_t value) {
  asm volatile("st.volatile.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

#endif
