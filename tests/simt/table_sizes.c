/* table_sizes.c - the sizes that tests start with. */
#include "table_sizes.h"

struct simt_table_sizes simt_table_sizes = {
    .sparse_slots = 8192, .det_room = 40, .det_items = 1000};
