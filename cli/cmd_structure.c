/* cmd_structure.c - the subcommands arcsort, connect, topsort, closure, union, concat, project,
 * invert and reverse. */
#include <stdlib.h>
#include <string.h>

#include "fst_output.h"
#include "unary.h"

/* Options of arcsort and connect. */
struct device_request {
  wf_arcsort_options by;
  const char *device; /* NULL: the CPU, without a batch */
};

static wf_status arcsort_batch(const wf_fst_batch *batch, const void *by, wf_fst_batch **out,
                               wf_error *err) {
  return wf_fst_batch_arcsort(batch, by, out, err);
}
static wf_status connect_batch(const wf_fst_batch *batch, const void *options, wf_fst_batch **out,
                               wf_error *err) {
  (void)options;
  return wf_fst_batch_connect(batch, out, err);
}

static wf_status arcsort(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  const struct device_request *request = options;
  return request->device != NULL
             ? cli_on_device(in, request->device, arcsort_batch, &request->by, out, err)
             : wf_arcsort(in, &request->by, out, err);
}
static wf_status connect(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  const struct device_request *request = options;
  return request->device != NULL ? cli_on_device(in, request->device, connect_batch, NULL, out, err)
                                 : wf_connect(in, out, err);
}

static wf_status topsort(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  (void)options;
  return wf_topsort(in, out, err);
}
static wf_status invert(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  (void)options;
  return wf_invert(in, out, err);
}
static wf_status reverse(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  (void)options;
  return wf_reverse(in, out, err);
}

int cmd_arcsort(int argc, char **argv) {
  struct device_request request = {.device = NULL};
  cli_parser parser = {.about =
                           "Sorts the arcs of each state by input or output label. Arcs with equal "
                           "labels keep their order."};
  cli_table(&parser, "arcsort", &request.by);
  cli_flag_device(&parser, &request.device);
  return cli_run_unary(&parser, argc, argv, arcsort, &request, NULL);
}

int cmd_connect(int argc, char **argv) {
  struct device_request request = {.device = NULL};
  cli_parser parser = {
      .about = "Removes the states that are on no path from the start to a final state."};
  cli_flag_device(&parser, &request.device);
  return cli_run_unary(&parser, argc, argv, connect, &request, NULL);
}

int cmd_topsort(int argc, char **argv) {
  cli_parser parser = {
      .about =
          "Numbers the states in topological order: every arc leads to a larger state. Fails if "
          "the fst has a cycle."};
  return cli_run_unary(&parser, argc, argv, topsort, NULL, NULL);
}

int cmd_invert(int argc, char **argv) {
  cli_parser parser = {.about = "Exchanges input and output labels."};
  return cli_run_unary(&parser, argc, argv, invert, NULL, NULL);
}

int cmd_reverse(int argc, char **argv) {
  cli_parser parser = {.about =
                           "Makes an fst that accepts the reversed strings with the same costs."};
  return cli_run_unary(&parser, argc, argv, reverse, NULL, NULL);
}

/* --- with OpenFst's flags in addition to the option table
 * -------------------------------------------- */

struct closure_request {
  wf_closure_options options;
  bool plus;
};

static wf_status closure(const wf_fst *in, const void *request, wf_fst **out, wf_error *err) {
  return wf_closure(in, &((const struct closure_request *)request)->options, out, err);
}
static void adjust_closure(void *request) {
  struct closure_request *r = request;
  if (r->plus) r->options.closure_type = WF_CLOSURE_PLUS;
}
int cmd_closure(int argc, char **argv) {
  struct closure_request request = {.plus = false};
  cli_parser parser = {
      .about = "Makes an fst that accepts any number of repetitions of the strings of the input."};
  cli_flag_bool(&parser, "closure_plus", 0, &request.plus,
                "at least one repetition: the same as --closure_type=plus");
  cli_table(&parser, "closure", &request.options);
  return cli_run_unary(&parser, argc, argv, closure, &request, adjust_closure);
}

struct project_request {
  wf_project_options options;
  bool output;
};

static wf_status project(const wf_fst *in, const void *request, wf_fst **out, wf_error *err) {
  return wf_project(in, &((const struct project_request *)request)->options, out, err);
}
static void adjust_project(void *request) {
  struct project_request *r = request;
  if (r->output) r->options.project_type = WF_PROJECT_OUTPUT;
}
int cmd_project(int argc, char **argv) {
  struct project_request request = {.output = false};
  cli_parser parser = {.about = "Makes an acceptor from the labels of one side."};
  cli_flag_bool(&parser, "project_output", 0, &request.output, "the same as --project_type=output");
  cli_table(&parser, "project", &request.options);
  return cli_run_unary(&parser, argc, argv, project, &request, adjust_project);
}

/* --- several inputs ---------------------------------------------------------------------- */

typedef wf_status (*join_fn)(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err);

/* Runs `warpfst OP IN... -o OUT`. Without -o, the third of three names is the output, as with
 * OpenFst's tools. */
static int run_join(const char *about, int argc, char **argv, join_fn join) {
  const char *output = NULL, *format = NULL;
  bool check_symbols;
  cli_parser parser = {.usage = "IN1 IN2... -o OUT  |  IN1 IN2 [OUT]",
                       .about = about,
                       .min_args = 2,
                       .max_args = -1};
  cli_flag_output(&parser, &output, &format);
  cli_flag_check_symbols(&parser, &check_symbols);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  int count = parser.num_args;
  if (output == NULL && count == 3) output = parser.args[--count];
  if (output == NULL && count > 3) return cli_usage("more than two inputs need -o OUT");
  wf_error err = {0};
  wf_fst *out = NULL, **in = calloc((size_t)count, sizeof *in);
  if (in == NULL) {
    return cli_out_of_memory();
  }
  for (int i = 0; i < count && code <= CLI_OK; i++) code = cli_read_fst(parser.args[i], &in[i]);
  for (int i = 1; i < count && code <= CLI_OK && !check_symbols; i++)
    code = cli_drop_symbols(&in[i]);
  if (code == CLI_OK && join((const wf_fst *const *)in, (size_t)count, &out, &err) != WF_OK)
    code = cli_fail(&err);
  for (int i = 0; i < count; i++) wf_fst_free(in[i]);
  free(in);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(out);
  return code;
}

int cmd_union(int argc, char **argv) {
  return run_join("Makes an fst that accepts the paths of all inputs.", argc, argv, wf_union);
}
int cmd_concat(int argc, char **argv) {
  return run_join(
      "Makes an fst that accepts a path of the first input followed by one of the second, and so "
      "on.",
      argc, argv, wf_concat);
}
