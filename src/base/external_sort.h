/* external_sort.h - sorting records that need not fit memory.
 *
 * A record is a few 32-bit words, of which the first ones are the key, compared word by word as
 * unsigned numbers. Records of equal keys stay in the order of adding. What exceeds the memory goes
 * to an unlinked file in runs, sorted each (by radix, 11 bits at a time), which reading merges,
 * through a buffer for each: a 16th of the memory for all, but no less than 4 KiB a run.
 *
 *     add ... add, finish, next ... next [, rewind, next ...] [, add ..., finish, next ...] */
#ifndef WF_BASE_EXTERNAL_SORT_H
#define WF_BASE_EXTERNAL_SORT_H

#include "base/error.h"

typedef struct wf__sort wf__sort;
/* `memory`: bytes to use while adding; `folder`: where the file goes if one is needed (borrowed).
 */
wf_status wf__sort_create(uint32_t record_words, uint32_t key_words, uint64_t memory,
                          const char *folder, wf__sort **out, wf_error *err);
wf_status wf__sort_add(wf__sort *sort, const uint32_t *record, wf_error *err);
/* Ends adding and starts reading. What is not small goes to the file, so that memory is free for
 * others. */
wf_status wf__sort_finish(wf__sort *sort, wf_error *err);
/* The next record, or NULL at the end; valid until the call after. */
wf_status wf__sort_next(wf__sort *sort, const uint32_t **record, wf_error *err);
/* Reading starts anew. */
wf_status wf__sort_rewind(wf__sort *sort, wf_error *err);
uint64_t wf__sort_count(const wf__sort *sort);
void wf__sort_free(wf__sort *sort);

#endif
