/* step_report.c - see step_report.h. */
#include "step_report.h"

#include "base/platform.h"
#include "fst_output.h"

void cli_steps_begin(cli_steps *steps) {
  steps->begin_s = cli_now_s();
  if (steps->keep_steps != NULL)
    (void)wf__path_make_folder(
        steps->keep_steps); /* if this fails, writing a file into it reports why */
}

const char *cli_step_path(const cli_steps *steps, const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", steps->keep_steps, name);
  return path;
}

bool cli_on_step(void *user, const wf_graph_step *step, const wf_fst *fst) {
  cli_steps *steps = user;
  if (steps->num_rows < CLI_MAX_STEPS) {
    snprintf(steps->rows[steps->num_rows].name, sizeof steps->rows[0].name, "%s", step->name);
    steps->rows[steps->num_rows++].step = *step;
  }
  if (!steps->quiet) {
    cli_progress_end();
    if (steps->num_rows == 1)
      fprintf(stderr, "%-8s %12s %12s %10s %10s\n", "step", "states", "arcs", "seconds",
              "peak MiB");
    fprintf(stderr, "%-8s %12llu %12llu %10.3f %10.1f\n", step->name,
            (unsigned long long)step->num_states, (unsigned long long)step->num_arcs, step->seconds,
            (double)step->peak_bytes / (1 << 20));
  }
  if (steps->keep_steps != NULL) {
    char name[64];
    snprintf(name, sizeof name, "%s.fst", step->file);
    steps->code = cli_write_fst(fst, cli_step_path(steps, name), "vector");
  }
  return steps->code == CLI_OK;
}

void cli_steps_json(const cli_steps *steps) {
  printf("\"steps\": [");
  for (size_t i = 0; i < steps->num_rows; i++) {
    const wf_graph_step *step = &steps->rows[i].step;
    printf(
        "%s{\"name\": \"%s\", \"states\": %llu, \"arcs\": %llu, \"seconds\": %.6f, \"peak_bytes\": "
        "%llu}",
        i != 0 ? ", " : "", steps->rows[i].name, (unsigned long long)step->num_states,
        (unsigned long long)step->num_arcs, step->seconds, (unsigned long long)step->peak_bytes);
  }
  printf("]");
}

void cli_steps_end(const cli_steps *steps, const char *output, const wf_fst *graph) {
  wf_fst_view view = wf_fst_get_view(graph);
  fprintf(stderr, "%s: %llu states, %llu arcs, %.2f s\n", output,
          (unsigned long long)view.num_states, (unsigned long long)view.num_arcs,
          cli_now_s() - steps->begin_s);
}
