/* bench_graph_device.c - measures the steps of building a hybrid graph that a GPU supports, on the
 * GPU and on the CPU, with the same transducers.
 *
 *     bench_graph_device FOLDER [--device=cuda] [--repeat=N]
 *
 * FOLDER has L.fst, G.fst, C.fst, H.fst and info.txt, as bench/graph/hybrid_task.py makes them. The steps
 * for LG, CLG and HCLG are: composition (on the CPU in OpenFst's order, which is faster there; on
 * the GPU in the canonical order), sorting of arcs by output label, trimming of an untrimmed
 * composition, determinization, minimization, and in HCLG the removal of the epsilons that
 * replace disambiguation symbols. Results of both devices must be equal, byte for byte.
 *
 * Prints a JSON line per step: sizes of the result, and median wall seconds on the CPU with all
 * threads, on the GPU with inputs and results in its memory, and on the GPU with transfers. Without
 * CUDA, or with --device=cpu, only the CPU is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "warpfst_all.h"

enum { MAX_REPEAT = 100, CANONICAL = 1, BY_OLABEL = 1 };

struct bench {
  const char *folder, *device;
  int repeat;
  wf_fst *fst; /* result of the last level */
};

struct step {
  const char *name, *level;
  double cpu_s, gpu_s, transfers_s; /* 0: not measured */
  uint64_t num_states, num_arcs;
};

static wf_error g_err;

static void stop(const char *what, const char *level) {
  fprintf(stderr, "bench_graph_device: %s: %s\n", level, what);
  exit(1);
}

static bool with_gpu(const struct bench *b) { return strcmp(b->device, "cpu") != 0; }

static int compare_times(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* Returns the median seconds of `work`, which frees its previous result first. */
typedef void work_fn(void *user);
static double median_of(const struct bench *b, work_fn *work, void *user) {
  double times[MAX_REPEAT];
  work(user); /* allocates memory */
  for (int i = 0; i < b->repeat; i++) {
    double begin = now_s();
    work(user);
    times[i] = now_s() - begin;
  }
  qsort(times, (size_t)b->repeat, sizeof *times, compare_times);
  return times[b->repeat / 2];
}

static void print(const struct step *s) {
  printf("{\"step\": \"%s\", \"level\": \"%s\", \"states\": %llu, \"arcs\": %llu, \"cpu_s\": %.6f",
         s->name, s->level, (unsigned long long)s->num_states, (unsigned long long)s->num_arcs,
         s->cpu_s);
  if (s->gpu_s != 0) printf(", \"gpu_s\": %.6f, \"transfers_s\": %.6f", s->gpu_s, s->transfers_s);
  printf("}\n");
  fflush(stdout);
}

static void set_sizes(struct step *s, const wf_fst *fst) {
  s->num_states = wf_fst_get_view(fst).num_states;
  s->num_arcs = wf_fst_get_view(fst).num_arcs;
}

static void need_equal(const wf_fst *x, const wf_fst *y, const char *level) {
  wf_fst_view a = wf_fst_get_view(x), b = wf_fst_get_view(y);
  bool same = a.start == b.start && a.num_states == b.num_states && a.num_arcs == b.num_arcs;
  if (same && a.num_states != 0)
    same = memcmp(a.arc_off, b.arc_off, (a.num_states + 1) * sizeof *a.arc_off) == 0 &&
           memcmp(a.final_cost, b.final_cost, a.num_states * sizeof *a.final_cost) == 0 &&
           memcmp(a.arcs, b.arcs, a.num_arcs * sizeof *a.arcs) == 0;
  if (!same) stop("results of CPU and GPU differ", level);
}

/* --- composition ------------------------------------------------------------------------- */

struct composition {
  const wf_fst *a, *b;
  wf_compose_options options;
  wf_fst *out;
  wf_composer *composer;
};

static void compose_to_host(void *user) {
  struct composition *c = user;
  wf_fst_free(c->out);
  check(wf_compose(c->a, c->b, &c->options, &c->out, &g_err), &g_err);
}

static void compose_on_device(void *user) {
  check(wf_composer_run(((struct composition *)user)->composer, &g_err), &g_err);
}

/* Returns the trimmed composition of the CPU. */
static wf_fst *measure_compose(const struct bench *b, const wf_fst *left, const char *level) {
  struct composition c = {.a = left, .b = b->fst};
  struct step step = {.name = "compose", .level = level};
  wf_compose_options_init(&c.options);
  step.cpu_s = median_of(b, compose_to_host, &c);
  c.options.order = CANONICAL;
  compose_to_host(&c);
  wf_fst *result = c.out;
  set_sizes(&step, result);
  c.out = NULL;
  if (with_gpu(b)) {
    c.options.device = b->device;
    step.transfers_s = median_of(b, compose_to_host, &c);
    need_equal(c.out, result, level);
    wf_fst_free(c.out);
    check(wf_composer_create(&c.a, 1, &c.b, 1, 1, &c.options, false, &c.composer, &g_err), &g_err);
    step.gpu_s = median_of(b, compose_on_device, &c);
    wf_composer_free(c.composer);
  }
  print(&step);
  return result;
}

/* --- operations on the composition ------------------------------------------------------- */

enum { ARCSORT, CONNECT, DETERMINIZE, MINIMIZE, RMEPSILON };
static const char *const op_names[] = {"arcsort", "connect", "determinize", "minimize",
                                       "rmepsilon"};

struct operation {
  const wf_fst *in;
  const char *device;
  int op;
  wf_fst *out;
  wf_fst_batch *in_batch, *out_batch;
};

static void operate(struct operation *o) {
  wf_arcsort_options by;
  wf_arcsort_options_init(&by);
  by.sort_type = BY_OLABEL;
  wf_fst_batch_free(o->out_batch);
  if (o->op == CONNECT)
    check(wf_fst_batch_connect(o->in_batch, &o->out_batch, &g_err), &g_err);
  else if (o->op == DETERMINIZE)
    check(wf_fst_batch_determinize(o->in_batch, NULL, &o->out_batch, &g_err), &g_err);
  else if (o->op == MINIMIZE)
    check(wf_fst_batch_minimize(o->in_batch, NULL, &o->out_batch, &g_err), &g_err);
  else if (o->op == RMEPSILON)
    check(wf_fst_batch_rmepsilon(o->in_batch, NULL, &o->out_batch, &g_err), &g_err);
  else
    check(wf_fst_batch_arcsort(o->in_batch, &by, &o->out_batch, &g_err), &g_err);
}

static void operate_in_place(void *user) { operate(user); }

static void operate_to_host(void *user) {
  struct operation *o = user;
  wf_fst_free(o->out);
  wf_fst_batch_free(o->in_batch);
  check(wf_fst_batch_create(&o->in, 1, o->device, &o->in_batch, &g_err), &g_err);
  operate(o);
  check(wf_fst_batch_to_fst(o->out_batch, 0, &o->out, &g_err), &g_err);
}

static void free_operation(struct operation *o) {
  wf_fst_free(o->out);
  wf_fst_batch_free(o->in_batch);
  wf_fst_batch_free(o->out_batch);
}

/* Returns the CPU's result. */
static wf_fst *measure_operation(const struct bench *b, const wf_fst *in, int op,
                                 const char *level) {
  struct operation cpu = {.in = in, .device = "cpu", .op = op},
                   gpu = {.in = in, .device = b->device, .op = op};
  struct step step = {.name = op_names[op], .level = level};
  step.cpu_s = median_of(b, operate_to_host, &cpu);
  set_sizes(&step, cpu.out);
  if (with_gpu(b)) {
    step.transfers_s = median_of(b, operate_to_host, &gpu);
    need_equal(gpu.out, cpu.out, level);
    step.gpu_s = median_of(b, operate_in_place, &gpu);
  }
  print(&step);
  wf_fst *result = wf_fst_ref(cpu.out);
  free_operation(&cpu);
  free_operation(&gpu);
  return result;
}

/* --- levels ------------------------------------------------------------------------------ */

static wf_fst *load(const struct bench *b, const char *name) {
  char path[4096];
  wf_fst *fst;
  snprintf(path, sizeof path, "%s/%s.fst", b->folder, name);
  check(wf_fst_read(path, &fst, &g_err), &g_err);
  return fst;
}

static void measure_level(struct bench *b, const char *left_name, const char *level) {
  wf_fst *left = load(b, left_name), *whole;
  wf_compose_options untrimmed;
  wf_compose_options_init(&untrimmed);
  untrimmed.order = CANONICAL;
  untrimmed.connect = 0;
  wf_fst *composed = measure_compose(b, left, level);
  check(wf_compose(left, b->fst, &untrimmed, &whole, &g_err), &g_err);
  wf_fst_free(measure_operation(b, composed, ARCSORT, level));
  wf_fst_free(measure_operation(b, whole, CONNECT, level));
  wf_fst *determinized = measure_operation(b, composed, DETERMINIZE, level),
         *minimal = measure_operation(b, determinized, MINIMIZE, level);
  wf_fst_free(left);
  wf_fst_free(whole);
  wf_fst_free(composed);
  wf_fst_free(determinized);
  wf_fst_free(b->fst);
  b->fst = minimal;
}

/* Measures epsilon removal on the last level's graph, after its disambiguation symbols, which
 * follow the senones, became epsilons. */
static void measure_rmepsilon(const struct bench *b, const char *level) {
  char path[4096];
  int32_t num_senones, count, labels[1000];
  wf_fst *graph;
  snprintf(path, sizeof path, "%s/info.txt", b->folder);
  FILE *file = fopen(path, "r");
  bool good = file != NULL && fscanf(file, "%d %d", &num_senones, &count) == 2 && count <= 1000;
  if (file != NULL) fclose(file);
  if (!good) stop("info.txt cannot be read", level);
  for (int32_t i = 0; i < count; i++) labels[i] = num_senones + 1 + i;
  check(wf_remove_disambig(b->fst, labels, (size_t)count, &graph, &g_err), &g_err);
  wf_fst_free(measure_operation(b, graph, RMEPSILON, level));
  wf_fst_free(graph);
}

int main(int argc, char **argv) {
  struct bench b = {.device = "cpu", .repeat = 5};
  bool good = true;
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--device=", 9) == 0)
      b.device = argv[i] + 9;
    else if (strncmp(argv[i], "--repeat=", 9) == 0)
      b.repeat = atoi(argv[i] + 9);
    else if (argv[i][0] != '-' && b.folder == NULL)
      b.folder = argv[i];
    else
      good = false;
  }
  if (!good || b.folder == NULL || b.repeat < 1 || b.repeat > MAX_REPEAT) {
    fprintf(stderr, "usage: bench_graph_device FOLDER [--device=cuda] [--repeat=N]\n");
    return 2;
  }
  static const char *const levels[][2] = {{"L", "LG"}, {"C", "CLG"}, {"H", "HCLG"}};
  b.fst = load(&b, "G");
  for (int i = 0; i < 3; i++) measure_level(&b, levels[i][0], levels[i][1]);
  measure_rmepsilon(&b, levels[2][1]);
  wf_fst_free(b.fst);
  return 0;
}
