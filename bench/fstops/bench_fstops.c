/* bench_fstops.c - measures one operation in process, without reading and writing files.
 * bench/peers/openfst_ops.cc does the same with OpenFst's library.
 *
 *     bench_fstops OP IN... [--FLAG=VALUE...]      --help lists the flags
 *     bench_fstops compose --generate=V
 *
 * OP: compose determinize minimize rmepsilon push arcsort connect map epsnormalize disambiguate
 * difference replace (of the arcs with output 1000001 of IN1 by IN2) encode (labels) condense
 * synchronize reweight (by --potentials). Each repetition reads its inputs again, so that no cached
 * properties can be reused. Prints a line per repetition: processor seconds, wall seconds, states,
 * arcs. */
#include <math.h>
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
UNARY(map)
UNARY(epsnormalize)
UNARY(disambiguate)
static wf_status run_difference(const wf_fst *const *in, const void *options, wf_fst **out,
                                wf_error *err) {
  return wf_difference(in[0], in[1], options, out, err);
}
static wf_status run_replace(const wf_fst *const *in, const void *options, wf_fst **out,
                             wf_error *err) {
  static const int32_t labels[MAX_INPUTS] = {1000000, 1000001};
  return wf_replace(in, labels, MAX_INPUTS, options, out, err);
}
static wf_status run_encode(const wf_fst *const *in, const void *options, wf_fst **out,
                            wf_error *err) {
  wf_encoder *encoder;
  (void)options;
  wf_status status = wf_encoder_create(wf_fst_get_view(in[0]).semiring, true, false, &encoder, err);
  if (status == WF_OK) status = wf_encoder_encode(encoder, in[0], out, err);
  wf_encoder_free(encoder);
  return status;
}
static struct {
  float *values;
  uint64_t count;
} g_potentials;
static wf_status run_reweight(const wf_fst *const *in, const void *options, wf_fst **out,
                              wf_error *err) {
  return wf_reweight(in[0], g_potentials.values, g_potentials.count, options, out, err);
}
static wf_status run_condense(const wf_fst *const *in, const void *options, wf_fst **out,
                              wf_error *err) {
  (void)options;
  return wf_condense(in[0], out, err);
}
static wf_status run_synchronize(const wf_fst *const *in, const void *options, wf_fst **out,
                                 wf_error *err) {
  (void)options;
  return wf_synchronize(in[0], out, err);
}
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
    {"compose", 2, true, run_compose},
    {"arcsort", 1, true, run_arcsort},
    {"connect", 1, false, run_connect},
    {"determinize", 1, true, run_determinize},
    {"minimize", 1, true, run_minimize},
    {"rmepsilon", 1, true, run_rmepsilon},
    {"push", 1, true, run_push},
    {"map", 1, true, run_map},
    {"epsnormalize", 1, true, run_epsnormalize},
    {"disambiguate", 1, true, run_disambiguate},
    {"difference", 2, true, run_difference},
    {"replace", 2, true, run_replace},
    {"encode", 1, false, run_encode},
    {"reweight", 1, true, run_reweight},
    {"condense", 1, false, run_condense},
    {"synchronize", 1, false, run_synchronize},
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
  by.sort_type = side == 0; /* the other programs of the comparison need sorted inputs */
  status = wf_arcsort(fst, &by, out, &g_err);
  wf_fst_free(fst);
  return status;
}

/* --- the run ----------------------------------------------------------------------------- */

struct request {
  const struct operation *operation;
  const wf_option_table *table;
  void *options;
  const char *paths[MAX_INPUTS], *output, *save, *potentials;
  int num_paths;
  int64_t repeat, generate;
};

static wf_status load(const struct request *request, wf_fst **in) {
  for (int i = 0; i < request->operation->num_inputs; i++) {
    wf_status status = request->generate != 0
                           ? generate((uint32_t)request->generate, 1001 + (uint64_t)i, i, &in[i])
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

/* A state that is not listed has the potential Infinity. */
static void read_potentials(const char *path, uint64_t num_states) {
  char number[32], value[64];
  FILE *file = fopen(path, "r");
  if (file == NULL) usage_error("cannot open %s", path);
  free(g_potentials.values);
  g_potentials.values = allocate(num_states, sizeof(float));
  g_potentials.count = num_states;
  for (uint64_t s = 0; s < num_states; s++) g_potentials.values[s] = INFINITY;
  while (fscanf(file, "%31s %63s", number, value) == 2) {
    uint64_t state = strtoull(number, NULL, 10);
    if (state < num_states) g_potentials.values[state] = strtof(value, NULL);
  }
  fclose(file);
}

/* Reads the inputs, runs the operation and prints the times. Writes the result of the last
 * repetition to the output file. */
static wf_status run_once(const struct request *request, bool last) {
  wf_fst *in[MAX_INPUTS] = {NULL}, *out = NULL;
  wf_status status = load(request, in);
  if (status == WF_OK && request->potentials != NULL)
    read_potentials(request->potentials, wf_fst_get_view(in[0]).num_states);
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

static void run(const struct request *request) {
  wf_status status = WF_OK;
  for (int64_t i = 0; i < request->repeat && status == WF_OK; i++)
    status = run_once(request, i + 1 == request->repeat);
  check(status, &g_err);
}

/* Sets an option of the operation from --NAME=VALUE, or to true from --NAME. */
static bool take_option(void *user, const char *text) {
  const struct request *request = user;
  char name[64];
  const char *value = strchr(text, '=');
  snprintf(name, sizeof name, "%.*s", value != NULL ? (int)(value - text) : (int)strlen(text),
           text);
  if (request->table == NULL || wf_options_set(request->table, request->options, name,
                                               value != NULL ? value + 1 : "true", &g_err) != WF_OK)
    usage_error("--%s: %s", text, g_err.message);
  return true;
}

/* Finds the operation. Called before flags are parsed, because they depend on it. */
static void set_operation(struct request *request, const char *name) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    if (strcmp(name, operations[i].name) == 0) request->operation = &operations[i];
  if (request->operation == NULL || !request->operation->has_options) return;
  request->table = wf_option_table_find(name);
  request->options = allocate(1, request->table->struct_size);
  wf_options_init(request->table, request->options, request->table->struct_size);
}

static void read_arguments(int argc, char **argv, struct request *request) {
  const struct flag flags[] = {
      {"repeat", "times", .integer = &request->repeat},
      {"generate",
       "composes two random graphs of N states with 5 arcs each and 10 labels; 0: reads IN",
       .integer = &request->generate},
      {"save", "writes the inputs to TEXT.1 and TEXT.2", .text = &request->save},
      {"potentials", "file with lines 'state potential', for reweight",
       .text = &request->potentials},
      {"output", "file for the result", .text = &request->output}};
  const struct command command = {.arguments = "OP IN... [FLAGS]",
                                  .purpose = "Measures one operation in process.",
                                  .flags = flags,
                                  .num_flags = sizeof flags / sizeof *flags,
                                  .take_other = take_option,
                                  .user = request,
                                  .others = "--NAME=VALUE               an option of `warpfst OP`"};
  const char *arguments[1 + MAX_INPUTS] = {NULL};
  if (argc > 1) set_operation(request, argv[1]);
  request->num_paths = read_flags(&command, argc, argv, 1, 1 + MAX_INPUTS, arguments) - 1;
  for (int i = 0; i < request->num_paths; i++) request->paths[i] = arguments[1 + i];
  if (request->operation == NULL) usage_error("%s: unknown operation", argv[1]);
  if (request->repeat < 1 || request->generate < 0)
    usage_error("--repeat or --generate is out of range");
  int wanted = request->generate != 0 ? 0 : request->operation->num_inputs;
  if (request->num_paths != wanted)
    usage_error("%s needs %d inputs", request->operation->name, wanted);
}

int main(int argc, char **argv) {
  struct request request = {.repeat = 1};
  read_arguments(argc, argv, &request);
  run(&request);
  free(request.options);
  return 0;
}
