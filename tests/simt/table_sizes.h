/* table_sizes.h - the first sizes of tables that operations on fsts enlarge when they are full.
 * The sizes of a real GPU are so large that a test would never fill them. tests/CMakeLists.txt
 * defines WF__SPARSE_SLOTS, WF__DET_ROOM and WF__DET_ITEMS as these variables, so that a test can
 * change them between two calls. */
#ifndef SIMT_TABLE_SIZES_H
#define SIMT_TABLE_SIZES_H

#include <stdint.h>

struct simt_table_sizes {
  uint64_t sparse_slots; /* slots of the hash table of sparse composition: 8192. A power of two;
                            see the comment on WF__SPARSE_SLOTS for how small it may be */
  uint64_t det_room;  /* subsets, elements, arcs and long output strings of determinization: 40 */
  uint64_t det_items; /* items that one step of determinization takes: 1000 */
};
extern struct simt_table_sizes simt_table_sizes;

#endif
