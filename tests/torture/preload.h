/* preload.h - counting allocations, and failing one, within a program. The functions are in the
 * library of preload.c, which is there only under LD_PRELOAD; so they are weak. */
#ifndef TORTURE_PRELOAD_H
#define TORTURE_PRELOAD_H

#include <stdbool.h>

#define TORTURE_API __attribute__((weak, visibility("default")))
/* Counts from 0 again; allocation `fails_at` (1 is the next; 0: none) fails, with `forever` also
 * all after it. */
TORTURE_API void torture_begin(unsigned long fails_at, bool forever);
/* From here on nothing fails. Returns the number of allocations since torture_begin(). */
TORTURE_API unsigned long torture_end(void);
/* Blocks that are allocated now. */
TORTURE_API long torture_live(void);

#endif
