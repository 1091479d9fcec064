/* cmd_arcmap.c - the subcommands map, condense, epsnormalize, synchronize, disambiguate and
 * reweight. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fst_output.h"
#include "text_input.h"
#include "unary.h"

static wf_status map(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  return wf_map(in, options, out, err);
}
int cmd_map(int argc, char **argv) {
  wf_map_options options;
  cli_parser parser = {
      .about =
          "Changes each arc and final cost, as OpenFst's fstmap does: sums arcs that are "
          "equal, removes labels or costs, adds a single final state, and so on."};
  cli_table(&parser, "map", &options);
  return cli_run_unary(&parser, argc, argv, map, &options, NULL);
}

static wf_status condense(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  (void)options;
  return wf_condense(in, out, err);
}
int cmd_condense(int argc, char **argv) {
  cli_parser parser = {
      .about = "Makes one state of each strongly connected component. The result has no cycles."};
  return cli_run_unary(&parser, argc, argv, condense, NULL, NULL);
}

struct epsnormalize_request {
  wf_epsnormalize_options options;
  bool output;
};
static wf_status epsnormalize(const wf_fst *in, const void *request, wf_fst **out, wf_error *err) {
  return wf_epsnormalize(in, &((const struct epsnormalize_request *)request)->options, out, err);
}
static void adjust_epsnormalize(void *request) {
  struct epsnormalize_request *r = request;
  if (r->output) r->options.eps_norm_type = WF_EPS_NORM_OUTPUT;
}
int cmd_epsnormalize(int argc, char **argv) {
  struct epsnormalize_request request = {.output = false};
  cli_parser parser = {
      .about = "Makes all paths read their input labels before the first input epsilon."};
  cli_flag_bool(&parser, "eps_norm_output", 0, &request.output,
                "the same as --eps_norm_type=output");
  cli_table(&parser, "epsnormalize", &request.options);
  return cli_run_unary(&parser, argc, argv, epsnormalize, &request, adjust_epsnormalize);
}

static wf_status synchronize(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  (void)options;
  return wf_synchronize(in, out, err);
}
int cmd_synchronize(int argc, char **argv) {
  cli_parser parser = {
      .about =
          "Makes arcs read and write one label each until one side has no labels left. Fails "
          "if a cycle has different numbers of input and output labels."};
  return cli_run_unary(&parser, argc, argv, synchronize, NULL, NULL);
}

static wf_status disambiguate(const wf_fst *in, const void *options, wf_fst **out, wf_error *err) {
  return wf_disambiguate(in, options, out, err);
}
int cmd_disambiguate(int argc, char **argv) {
  wf_disambiguate_options options;
  cli_parser parser = {
      .about =
          "Makes an acceptor or a functional transducer with at most one successful path for "
          "each input string. Also works for many that cannot be determinized."};
  cli_table(&parser, "disambiguate", &options);
  return cli_run_unary(&parser, argc, argv, disambiguate, &options, NULL);
}

/* --- reweight ---------------------------------------------------------------------------- */

static bool only_blanks(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

struct potentials {
  float *values;
  uint64_t num_states;
};

/* Reads a line "state potential". */
static int read_potential(void *user, const char *path, size_t number, char *line) {
  const struct potentials *potentials = user;
  char *stop;
  if (only_blanks(line)) return CLI_OK;
  errno = 0;
  unsigned long long state = strtoull(line, &stop, 10);
  const char *weight = stop;
  bool fine = stop != line && errno == 0 && line[strspn(line, " \t")] != '-';
  float value = fine ? strtof(weight, &stop) : 0;
  fine = fine && stop != weight && only_blanks(stop) && !isnan(value);
  if (!fine || state >= potentials->num_states) {
    cli_note("%s:%zu: expected a state below %llu and its potential", path, number,
             (unsigned long long)potentials->num_states);
    return CLI_INPUT;
  }
  potentials->values[state] = value;
  return CLI_OK;
}

static int read_potentials(const char *path, uint64_t num_states, float **out) {
  struct potentials potentials = {malloc((num_states + 1) * sizeof(float)), num_states};
  *out = potentials.values;
  if (potentials.values == NULL) {
    return cli_out_of_memory();
  }
  for (uint64_t s = 0; s < num_states; s++) potentials.values[s] = INFINITY;
  return cli_read_lines(path, read_potential, &potentials);
}

int cmd_reweight(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_reweight_options options;
  wf_error err = {0};
  cli_parser parser = {
      .usage = "IN POTENTIALS [OUT]",
      .about =
          "Moves costs along paths by potentials; the costs of paths stay. POTENTIALS has "
          "lines 'state potential', as shortestdistance prints them; a state that is not "
          "listed has the potential Infinity.",
      .min_args = 2,
      .max_args = 3};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "reweight", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 3) output = parser.args[2];
  wf_fst *in = NULL, *out = NULL;
  float *potentials = NULL;
  code = cli_read_fst(parser.args[0], &in);
  uint64_t num_states = code == CLI_OK ? wf_fst_get_view(in).num_states : 0;
  if (code == CLI_OK) code = read_potentials(parser.args[1], num_states, &potentials);
  if (code == CLI_OK && wf_reweight(in, potentials, num_states, &options, &out, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  free(potentials);
  wf_fst_free(in);
  wf_fst_free(out);
  return code;
}
