/* utterance_lists.h - tables with lines `utterance FILE`, which assign lists (of boosts or words)
 * to utterances. */
#ifndef WARPFST_CLI_UTTERANCE_LISTS_H
#define WARPFST_CLI_UTTERANCE_LISTS_H

#include "cli.h"

typedef struct utterance_list {
  char *key, *path;
  size_t list; /* index into the sorted distinct paths */
} utterance_list;

typedef struct utterance_lists {
  utterance_list *items; /* [size] sorted by key */
  size_t size, cap;
  char **paths; /* [num_lists] distinct paths */
  size_t num_lists;
} utterance_lists;

/* Reads a table into the zero-initialised `*out`. Errors: a line without a file name, an utterance
 * that occurs twice. */
wf_status utterance_lists_read(const char *path, utterance_lists *out, wf_error *err);
/* Index of the utterance's list, or -1. */
int64_t utterance_lists_find(const utterance_lists *lists, const char *key);
void utterance_lists_free(utterance_lists *lists);

/* Sets err to "path:line: message", without the line if it is 0, and returns code. */
wf_status list_error(wf_error *err, wf_status code, const char *path, int line,
                     const char *message);
/* Is the line a comment, because it begins with #? The first one in a list that may be meant as a
 * word, because no blank follows, is noted; *noted is false before. */
bool list_is_comment(const char *text, const char *path, int line, bool *noted);
/* Makes space for one more element: doubles the capacity of a full array. False: out of memory. */
bool list_reserve(void **data, size_t size, size_t *cap, size_t element);

#endif
