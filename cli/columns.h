/* columns.h - the column of the scores that each input label of a graph means. */
#ifndef WARPFST_CLI_COLUMNS_H
#define WARPFST_CLI_COLUMNS_H

#include "cli.h"

typedef struct column_table {
  int32_t *data; /* column by label; -1: none */
  size_t size, cap;
} column_table;

/* The table of --columns or --am, or else the one that `warpfst mkgraph` put beside the graph, or
 * none. Free data with free(), on errors too. */
wf_status columns_find(const char *columns_path, const char *am_path, const char *graph,
                       column_table *out, wf_error *err);

#endif
