/* gpu_profile.h - the limits of a GPU that kernels depend on, and the profile they were compiled
 * for. Plain C and CUDA C++.
 *
 * Kernels are compiled for each architecture with a layout that fits its shared memory. The host
 * reads the layout from the code that the driver has chosen for the GPU. Without clusters, a lane
 * of the search is one block.
 *
 *   architectures    GPUs                    shared memory a block   clusters
 *   7.5              T4, RTX 20              64 KB                   no
 *   8.0              A100, A30               163 KB                  no
 *   8.6, 8.9         A10, L4, RTX 30 and 40  99 KB                   no
 *   9.0, 10.0        H100, H200, B200        227 KB                  yes
 *   12.0             RTX 50                  99 KB                   yes
 *
 * (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".) Tests compile a
 * smaller profile for a larger GPU: -DWF__SHARED_KB=99 -DWF__HAS_CLUSTERS=0. Only files of search/
 * and device/ may depend on WF__SHARED_KB: CI compiles only these for every size (CMakeLists.txt).
 */
#ifndef WF_CUDA_DEVICE_GPU_PROFILE_H
#define WF_CUDA_DEVICE_GPU_PROFILE_H

#include <stdint.h>

#include "base/error.h"

#ifndef WF__SHARED_KB
#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200)
#define WF__SHARED_KB 227
#elif __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 870
#define WF__SHARED_KB 163
#elif __CUDA_ARCH__ < 800
#define WF__SHARED_KB 64
#else
#define WF__SHARED_KB 99
#endif
#endif
#ifndef WF__HAS_CLUSTERS
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define WF__HAS_CLUSTERS 1
#else
#define WF__HAS_CLUSTERS 0
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WF__MAX_RANK_BITS = 3
}; /* a cluster has at most 2^3 blocks, which every GPU with clusters runs */

typedef struct wf__gpu_profile {
  int32_t shared_kb;     /* shared memory of a block: 64, 99, 163 or 227 KB */
  int32_t max_rank_bits; /* a cluster has at most 2^max_rank_bits blocks; 0 without clusters */
  int32_t num_processors;
} wf__gpu_profile;

/* The number of GPUs, at least one. WF_ERR_DEVICE if there is none or the driver is too old. */
wf_status wf__gpu_count(int *out, wf_error *err);
/* Reads the profile of GPU `device` and makes it the thread's current device. WF_ERR_DEVICE if
 * there is no such GPU, it is too old for this build, or the driver is too old. */
wf_status wf__gpu_profile_read(int device, wf__gpu_profile *out, wf_error *err);

/* Returns {shared_kb, max_rank_bits} of the code that runs on the current GPU. The result is a
 * cudaError_t. */
int wf__gpu_compiled_for(int32_t out[2]);

#ifdef __cplusplus
}
#endif
#endif
