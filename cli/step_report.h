/* step_report.h - reports the steps of building a graph when they end: a table on standard error,
 * JSON, and a file for each result. */
#ifndef WARPFST_CLI_STEP_REPORT_H
#define WARPFST_CLI_STEP_REPORT_H

#include "cli.h"

enum { CLI_MAX_STEPS = 24 };

typedef struct cli_steps {
  bool quiet; /* no table */
  const char
      *keep_steps; /* folder for the result of each step, created by cli_steps_begin; or NULL */
  struct {
    char name[16];
    wf_graph_step step;
  } rows[CLI_MAX_STEPS];
  size_t num_rows;
  double begin_s;
  int code; /* exit code if the file of a step could not be written, else CLI_OK */
} cli_steps;

void cli_steps_begin(cli_steps *steps);
/* A wf_graph_step_fn; `user` is a cli_steps. */
bool cli_on_step(void *user, const wf_graph_step *step, const wf_fst *fst);
/* Prints `"steps": [{...}, ...]` on standard output. */
void cli_steps_json(const cli_steps *steps);
/* Prints the last line of the table: the size of the graph and the total time. */
void cli_steps_end(const cli_steps *steps, const char *output, const wf_fst *graph);
/* The path keep_steps/name, in a static buffer. */
const char *cli_step_path(const cli_steps *steps, const char *name);

#endif
