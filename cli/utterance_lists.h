/* utterance_lists.h - tables `utterance FILE`: which utterance has which list (of boosts, of
 * words). */
#ifndef WARPFST_CLI_UTTERANCE_LISTS_H
#define WARPFST_CLI_UTTERANCE_LISTS_H

#include "cli.h"

typedef struct utterance_list {
  char *key, *path;
  size_t list; /* number of the path among the table's, in their order */
} utterance_list;

typedef struct utterance_lists {
  utterance_list *items; /* [size] by key */
  size_t size, cap;
  char **paths; /* [num_lists] each once */
  size_t num_lists;
} utterance_lists;

/* Into `*out`, zero before. Errors: a line without a list, an utterance that is there twice. */
wf_status utterance_lists_read(const char *path, utterance_lists *out, wf_error *err);
/* Number of the utterance's list, or -1. */
int64_t utterance_lists_find(const utterance_lists *lists, const char *key);
void utterance_lists_free(utterance_lists *lists);

/* Fills err: "path:line: message", without the line if it is 0. */
wf_status list_error(wf_error *err, wf_status code, const char *path, int line,
                     const char *message);
/* Twice the room of an array, if there is none left; false: out of memory. */
bool list_room(void **data, size_t size, size_t *cap, size_t element);

#endif
