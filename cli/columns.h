/* columns.h - maps the input labels of a graph to columns of the scores. */
#ifndef WARPFST_CLI_COLUMNS_H
#define WARPFST_CLI_COLUMNS_H

#include "cli.h"

typedef struct column_table {
  int32_t *data; /* column by label; -1: none */
  size_t size, cap;
} column_table;

/* Reads the table of --columns, else of --am, else GRAPH.columns as written by `warpfst mkgraph`,
 * else none. Free data with free(), on errors too. */
wf_status columns_find(const char *columns_path, const char *am_path, const char *graph,
                       column_table *out, wf_error *err);

#endif
