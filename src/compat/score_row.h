/* score_row.h - the scores of a frame, and those columns of it that are high enough.
 *
 * A search without a graph may take each of thousands of tokens, of which a frame lets a few
 * survive. A row is read once; then only blocks whose highest score reaches a bound are looked at.
 *
 *   scores of any dtype --wf__score_row_read--> values, most[block] --> columns of at least x */
#ifndef WF_COMPAT_SCORE_ROW_H
#define WF_COMPAT_SCORE_ROW_H

#include "base/memory.h"

enum { WF__ROW_BLOCK = 64 };

typedef struct wf__score_row {
  float *values;  /* [num_blocks * WF__ROW_BLOCK] by column; -infinity beyond num_columns */
  float *most;    /* [num_blocks] the highest of each block */
  uint64_t *keys; /* [num_blocks * WF__ROW_BLOCK] for selection */
  int32_t num_columns, num_blocks;
  int32_t best; /* the first column with the highest score */
} wf__score_row;

/* For rows of `num_columns`, at least 1; the memory of a row that is as wide stays. Free with
 * wf__score_row_free, also after an error. `row` is initially zero. */
wf_status wf__score_row_resize(wf__score_row *row, int32_t num_columns, wf_error *err);
void wf__score_row_free(wf__score_row *row);

/* Reads a frame. Error: a score that cannot be used; the message names frame and column. */
wf_status wf__score_row_read(wf__score_row *row, const wf_scores *scores, int64_t frame,
                             wf_error *err);
/* Sets `most` from `values`, which the caller has written. */
void wf__score_row_find_most(wf__score_row *row);
/* The count-th highest score, 0 < count <= num_columns. */
float wf__score_row_highest(wf__score_row *row, int32_t count);
/* Writes the columns with scores of at least `least`, in their order; returns their number. The
 * first column with the highest score is one of them, whatever it has. out: [num_columns] */
int32_t wf__score_row_list(const wf__score_row *row, double least, int32_t *out);

#endif
