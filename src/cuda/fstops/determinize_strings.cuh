/* determinize_strings.cuh - device functions shared by the kernels of determinization: costs as
 * ordered integers, and strings (determinize_kernels.h). */
#ifndef WF_CUDA_FSTOPS_DETERMINIZE_STRINGS_CUH
#define WF_CUDA_FSTOPS_DETERMINIZE_STRINGS_CUH

#include "cuda/fstops/batch_states.cuh"
#include "cuda/fstops/determinize_kernels.h"
#include "math/cost.h"

/* Maps costs to integers of the same order, and back. */
__device__ static inline u64 ordered(double cost) {
  u64 bits = (u64)__double_as_longlong(cost);
  return bits >> 63 ? ~bits : bits | (u64)1 << 63;
}
__device__ static inline double cost_of(u64 key) {
  return __longlong_as_double((long long)(key >> 63 ? key & ~((u64)1 << 63) : ~key));
}

/* Other threads of the same launch write cells with atomics, so reads bypass the L1 cache. */
__device__ static inline u64 cell_of(const wf__gpu_subsets &s, u32 string) {
  return __ldcg(&s.cells[string - 1]);
}
__device__ static inline u32 string_size(const wf__gpu_subsets &s, u32 string) {
  return string == 0 ? 0 : string & WF__DET_ONE ? 1 : s.cell_size[string - 1];
}
/* The last label of a nonempty string, and the string before it. */
__device__ static inline u32 string_label(const wf__gpu_subsets &s, u32 string) {
  return string & WF__DET_ONE ? string & ~WF__DET_ONE : (u32)cell_of(s, string);
}
__device__ static inline u32 string_rest(const wf__gpu_subsets &s, u32 string) {
  return string & WF__DET_ONE ? 0 : (u32)(cell_of(s, string) >> 32);
}
/* The string without its last `count` labels. */
__device__ static inline u32 string_drop(const wf__gpu_subsets &s, u32 string, u32 count) {
  while (count-- > 0) string = string_rest(s, string);
  return string;
}

/* The string `rest` + label. Every thread that finds the cell writes its size, always the same
 * value. So a thread that has a string can read its size: the thread has written it, or an earlier
 * launch has. */
__device__ static inline u32 string_put(const wf__gpu_subsets &s, u32 rest, u32 label) {
  enum { MOST_TRIES = 256 };
  const u64 key = (u64)rest << 32 | label, mask = s.num_cells - 1;
  if (rest == 0) return WF__DET_ONE | label;
  u64 slot = wf__mix64(key) & mask;
  for (int tries = 0; tries < MOST_TRIES && (u64)tries <= mask; tries++, slot = (slot + 1) & mask) {
    u64 have = __ldcg(&s.cells[slot]);
    if (have == 0) have = atomicCAS((ull *)&s.cells[slot], (ull)0, (ull)key);
    if (have != 0 && have != key) continue;
    s.cell_size[slot] = string_size(s, rest) + 1;
    return (u32)slot + 1;
  }
  atomicOr(s.trouble, (u32)WF__DET_FULL_STRINGS);
  return rest;
}

__device__ static inline u32 string_append(const wf__gpu_subsets &s, u32 string, int32_t label) {
  if (label == 0) return string;
  if (string_size(s, string) < WF__DET_MOST_LABELS) return string_put(s, string, (u32)label);
  atomicOr(s.trouble, (u32)WF__DET_LONG_STRING);
  return string;
}

/* The length of the common prefix of two strings. */
__device__ static inline u32 num_common(const wf__gpu_subsets &s, u32 a, u32 b) {
  u32 size_a = string_size(s, a), size_b = string_size(s, b);
  if (size_a > size_b)
    a = string_drop(s, a, size_a - size_b);
  else
    b = string_drop(s, b, size_b - size_a);
  for (size_a = size_a < size_b ? size_a : size_b; a != b; size_a--) {
    a = string_rest(s, a);
    b = string_rest(s, b);
  }
  return size_a;
}

/* The string without its first `count` labels. */
__device__ static inline u32 string_behind(const wf__gpu_subsets &s, u32 string, u32 count) {
  u32 behind = 0;
  if (count == 0) return string;
  for (u32 keep = string_size(s, string) - count; keep-- > 0;)
    behind = string_put(s, behind, string_label(s, string_drop(s, string, keep)));
  return behind;
}

#endif
