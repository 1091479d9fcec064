/* cooperative_groups.h - CUDA's cluster and grid groups for the imitated GPU. */
#ifndef SIMT_COOPERATIVE_GROUPS_H
#define SIMT_COOPERATIVE_GROUPS_H
#include "cuda_runtime.h"

namespace cooperative_groups {
struct cluster_group {
  unsigned block_rank() const { return simt.current->block->rank; }
  unsigned num_blocks() const { return simt.launch->cluster; }
  void sync(SIMT_HERE) const { (void)simt_barrier(SIMT_CLUSTER, 0, {file, line}); }
  template <class T>
  T *map_shared_rank(T *own, int rank) const {
    return (T *)simt_shared_of(own, (unsigned)rank);
  }
};
struct grid_group {
  void sync(SIMT_HERE) const { (void)simt_barrier(SIMT_GRID, 0, {file, line}); }
};
static inline cluster_group this_cluster() { return {}; }
static inline grid_group this_grid() { return {}; }
}  // namespace cooperative_groups
#endif
