/* bench_fstops.c - one operation, timed in process, without reading and writing;
 * bench/openfst_ops.cc is the counterpart over OpenFst's library.
 *
 *     bench_fstops OP IN... [--repeat=N] [--NAME=VALUE]... [-o OUT]
 *     bench_fstops compose --generate=V
 *
 * OP: compose determinize minimize rmepsilon push arcsort connect. Options are those of the
 * operation's table. Each repetition reads its inputs afresh, so that nothing worked out before is
 * at hand. Prints a line per repetition: seconds of processor time, seconds of wall time, states,
 * arcs. --generate composes two random graphs of V states, 5 arcs each, 10 labels; --save=PREFIX
 * writes them to PREFIX.1 and PREFIX.2 for the other program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "warpfst_all.h"

enum { MAX_INPUTS = 2, DEGREE = 5, NUM_LABELS = 10 };

static wf_error g_err;

/* --- the operations: name, option table, call -------------------------------------------- */

#define UNARY(op)                                                                       \
  static wf_status run_##op(const wf_fst *const *in, const void *options, wf_fst **out, \
                            wf_error *err) {                                            \
    return wf_##op(in[0], options, out, err);                                           \
  }
UNARY(arcsort)
UNARY(determinize)
UNARY(minimize)
UNARY(rmepsilon)
UNARY(push)
static wf_status run_connect(const wf_fst *const *in, const void *options, wf_fst **out,
                             wf_error *err) {
  (void)options;
  return wf_connect(in[0], out, err);
}
static wf_status run_compose(const wf_fst *const *in, const void *options, wf_fst **out,
                             wf_error *err) {
  return wf_compose(in[0], in[1], options, out, err);
}

static const struct operation {
  const char *name;
  int num_inputs;
  bool has_options;
  wf_status (*run)(const wf_fst *const *in, const void *options, wf_fst **out, wf_error *err);
} operations[] = {
    {"compose", 2, true, run_compose},   {"arcsort", 1, true, run_arcsort},
    {"connect", 1, false, run_connect},  {"determinize", 1, true, run_determinize},
    {"minimize", 1, true, run_minimize}, {"rmepsilon", 1, true, run_rmepsilon},
    {"push", 1, true, run_push},
};

/* --- generated input: splitmix64, the same graphs as in the published comparison of composition
 * --- */

static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}
static uint32_t below(uint64_t *state, uint32_t n) {
  return (uint32_t)(((next_random(state) >> 32) * (uint64_t)n) >> 32);
}

static wf_status generate(uint32_t num_states, uint64_t seed, int side, wf_fst **out) {
  wf_builder *builder;
  wf_fst *fst;
  wf_status status = wf_builder_create(WF_TROPICAL, &builder, &g_err);
  if (status != WF_OK) return status;
  status = wf_builder_add_states(builder, num_states, NULL, &g_err);
  for (uint32_t s = 0; s < num_states && status == WF_OK; s++) {
    for (int k = 0; k < DEGREE && status == WF_OK; k++) {
      wf_arc arc = {.nextstate = below(&seed, num_states)};
      arc.ilabel = arc.olabel = 1 + (int32_t)below(&seed, NUM_LABELS);
      arc.weight = (float)(next_random(&seed) >> 40) * 0x1p-24f;
      status = wf_builder_add_arc(builder, s, arc, &g_err);
    }
  }
  if (status == WF_OK) status = wf_builder_set_start(builder, 0, &g_err);
  if (status == WF_OK) status = wf_builder_set_final(builder, num_states - 1, 0, &g_err);
  if (status == WF_OK) status = wf_builder_finish(builder, NULL, NULL, &fst, &g_err);
  wf_builder_free(builder);
  if (status != WF_OK) return status;
  wf_arcsort_options by;
  wf_arcsort_options_init(&by);
  by.sort_type = side == 0; /* inputs come sorted, as the others of the comparison need them */
  status = wf_arcsort(fst, &by, out, &g_err);
  wf_fst_free(fst);
  return status;
}

/* --- the run ----------------------------------------------------------------------------- */

struct request {
  const struct operation *operation;
  const wf_option_table *table;
  void *options;
  const char *paths[MAX_INPUTS], *output, *save;
  int num_paths, repeat;
  uint32_t generate;
};

static wf_status load(const struct request *request, wf_fst **in) {
  for (int i = 0; i < request->operation->num_inputs; i++) {
    wf_status status = request->generate != 0
                           ? generate(request->generate, 1001 + (uint64_t)i, i, &in[i])
                           : wf_fst_read(request->paths[i], &in[i], &g_err);
    if (status == WF_OK && request->save != NULL) {
      char path[4096];
      snprintf(path, sizeof path, "%s.%d", request->save, i + 1);
      status = wf_fst_write(in[i], path, WF_FORMAT_OPENFST_VECTOR, &g_err);
    }
    if (status != WF_OK) return status;
  }
  return WF_OK;
}

/* Reads, runs, prints, frees. The result of the last repetition goes to the output. */
static wf_status run_once(const struct request *request, bool last) {
  wf_fst *in[MAX_INPUTS] = {NULL}, *out = NULL;
  wf_status status = load(request, in);
  double cpu = cpu_s(), wall = now_s();
  if (status == WF_OK)
    status = request->operation->run((const wf_fst *const *)in, request->options, &out, &g_err);
  cpu = cpu_s() - cpu;
  wall = now_s() - wall;
  if (status == WF_OK) {
    wf_fst_view view = wf_fst_get_view(out);
    printf("%.6f %.6f %llu %llu\n", cpu, wall, (unsigned long long)view.num_states,
           (unsigned long long)view.num_arcs);
  }
  if (status == WF_OK && last && request->output != NULL)
    status = wf_fst_write(out, request->output, WF_FORMAT_OPENFST_VECTOR, &g_err);
  wf_fst_free(out);
  for (int i = 0; i < MAX_INPUTS; i++) wf_fst_free(in[i]);
  return status;
}

static int run(const struct request *request) {
  wf_status status = WF_OK;
  for (int i = 0; i < request->repeat && status == WF_OK; i++)
    status = run_once(request, i + 1 == request->repeat);
  check(status, &g_err);
  return 0;
}

static bool take_flag(struct request *request, const char *text) {
  char name[64];
  const char *equals = strchr(text, '=');
  size_t size = equals != NULL ? (size_t)(equals - text) : strlen(text);
  if (size >= sizeof name) return false;
  memcpy(name, text, size);
  name[size] = '\0';
  const char *value = equals != NULL ? equals + 1 : "true";
  if (strcmp(name, "repeat") == 0) return (request->repeat = atoi(value)) > 0;
  if (strcmp(name, "generate") == 0) return (request->generate = (uint32_t)atoi(value)) > 0;
  if (strcmp(name, "save") == 0)
    return (request->save = equals != NULL ? equals + 1 : NULL) != NULL;
  return request->table != NULL &&
         wf_config_set(request->table, request->options, name, value, &g_err) == WF_OK;
}

static bool take_arguments(struct request *request, int argc, char **argv) {
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
      request->output = argv[++i];
    else if (strncmp(argv[i], "--", 2) == 0 && take_flag(request, argv[i] + 2))
      continue;
    else if (argv[i][0] != '-' && request->num_paths < MAX_INPUTS)
      request->paths[request->num_paths++] = argv[i];
    else
      return false;
  }
  return request->generate != 0 || request->num_paths == request->operation->num_inputs;
}

int main(int argc, char **argv) {
  struct request request = {.repeat = 1};
  for (size_t i = 0; i < sizeof operations / sizeof *operations && argc > 1; i++)
    if (strcmp(argv[1], operations[i].name) == 0) request.operation = &operations[i];
  if (request.operation != NULL && request.operation->has_options) {
    request.table = wf_option_table_find(argv[1]);
    request.options = malloc(request.table->struct_size);
    if (request.options == NULL) return 1;
    wf_config_init(request.table, request.options, request.table->struct_size);
  }
  int code = 2;
  if (request.operation != NULL && take_arguments(&request, argc, argv))
    code = run(&request);
  else
    fprintf(stderr, "usage: bench_fstops OP IN... [--repeat=N] [--NAME=VALUE]... [-o OUT]   %s\n",
            g_err.message);
  free(request.options);
  return code;
}
