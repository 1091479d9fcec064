/* step_report.h - the steps of a graph's building, reported as they end: a table on standard error,
 * JSON, files. */
#ifndef WARPFST_CLI_STEP_REPORT_H
#define WARPFST_CLI_STEP_REPORT_H

#include "cli.h"

enum { CLI_MAX_STEPS = 24 };

typedef struct cli_steps {
  bool quiet;             /* no table */
  const char *keep_steps; /* folder for what each step made, or NULL; made by cli_steps_begin */
  struct {
    char name[16];
    wf_graph_step step;
  } rows[CLI_MAX_STEPS];
  size_t num_rows;
  double begin_s;
  int code; /* of a step's file that could not be written, else CLI_OK */
} cli_steps;

void cli_steps_begin(cli_steps *steps);
/* A wf_graph_step_fn; `user` is a cli_steps. */
bool cli_on_step(void *user, const wf_graph_step *step, const wf_fst *fst);
/* `"steps": [{...}, ...]` on standard output. */
void cli_steps_json(const cli_steps *steps);
/* The line that ends the table. */
void cli_steps_end(const cli_steps *steps, const char *output, const wf_fst *graph);
/* FOLDER/NAME among the kept steps; static buffer. */
const char *cli_step_path(const cli_steps *steps, const char *name);

#endif
