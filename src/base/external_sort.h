/* external_sort.h - external sorting of records. A record is a few 32-bit words. The first words
 * are the key, compared word by word as unsigned numbers. The sort is stable. Records beyond the
 * memory limit are written to an unlinked file as sorted runs (radix sort, 11 bits at a time).
 * Reading merges the runs. The read buffers take a 16th of the memory in all, but at least 4 KiB
 * per run.
 *
 *     add ... add, finish, next ... next [, rewind, next ...] [, add ..., finish, next ...] */
#ifndef WF_BASE_EXTERNAL_SORT_H
#define WF_BASE_EXTERNAL_SORT_H

#include "base/error.h"

typedef struct wf__sort wf__sort;
/* With 0 key words the records keep their order: a queue. `memory`: bytes to use while adding;
 * `folder`: folder of the temporary file, if one is needed (borrowed). */
wf_status wf__sort_create(uint32_t record_words, uint32_t key_words, uint64_t memory,
                          const char *folder, wf__sort **out, wf_error *err);
/* The last word of a record is a count: records with the same key may become one, with the sum of
 * their counts, unless that is above 2^32 - 1. Call it before the first record is added. */
void wf__sort_add_up(wf__sort *sort);
wf_status wf__sort_add(wf__sort *sort, const uint32_t *record, wf_error *err);
/* Ends adding and starts reading. Unless the records are few, they are written to the file, which
 * frees their memory for other uses. */
wf_status wf__sort_finish(wf__sort *sort, wf_error *err);
/* Gets the next record, NULL at the end. It is valid until the next call. */
wf_status wf__sort_next(wf__sort *sort, const uint32_t **record, wf_error *err);
/* Restarts reading from the first record. */
wf_status wf__sort_rewind(wf__sort *sort, wf_error *err);
/* Records that have been added, less those that became one with others. */
uint64_t wf__sort_count(const wf__sort *sort);
void wf__sort_free(wf__sort *sort);

#endif
