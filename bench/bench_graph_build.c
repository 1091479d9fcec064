/* bench_graph_build.c - measures wf_hmm_graph_build, from a model, a lexicon and a language model
 * to the finished graph, on the CPU and on a GPU.
 *
 *     bench_graph_build FOLDER [--device=cuda] [--repeat=N]
 *
 * FOLDER has mdef, transition_matrices and noisedict of a Sphinx model, lexicon.dict, and lm. The
 * graphs of both devices must be equal, byte for byte. Prints a JSON line per step, and one for the
 * whole: sizes, and median wall seconds on each device after one build that is not counted. What
 * the CPU does in place of the GPU goes to standard error. */
#include "common.h"

enum { MAX_REPEAT = 100, MAX_STEPS = 20 };

struct step {
  char name[32];
  uint64_t num_states, num_arcs;
  double times[2][MAX_REPEAT]; /* [CPU, GPU] */
};

struct bench {
  const char *device;
  int64_t repeat;
  wf_hmm *hmm;
  wf_lexicon *lexicon;
  wf_lm *lm;
  struct step steps[MAX_STEPS + 1]; /* the last that is used is the whole */
  int num_steps, at, device_index, round;
};

static wf_error g_err;

static bool take_step(void *user, const wf_graph_step *from, const wf_fst *fst) {
  struct bench *b = user;
  struct step *step = &b->steps[b->at++];
  (void)fst;
  if (b->at > MAX_STEPS) fail("too many steps");
  snprintf(step->name, sizeof step->name, "%s", from->file);
  step->num_states = from->num_states;
  step->num_arcs = from->num_arcs;
  if (b->round >= 0) step->times[b->device_index][b->round] = from->seconds;
  return true;
}

static wf_fst *build(struct bench *b, const char *device) {
  wf_hmm_graph_parts parts;
  wf_hmm_graph_options options;
  wf_hmm_graph_result result;
  wf_hmm_graph_parts_init(&parts);
  wf_hmm_graph_options_init(&options);
  parts.hmm = b->hmm;
  parts.lexicon = b->lexicon;
  parts.lm = b->lm;
  parts.step_fn = take_step;
  parts.step_user = b;
  options.device = device;
  b->at = 0;
  double begin = now_s();
  check(wf_hmm_graph_build(&parts, &options, &result, &g_err), &g_err);
  struct step *whole = &b->steps[b->at];
  b->num_steps = b->at + 1;
  snprintf(whole->name, sizeof whole->name, "whole");
  if (b->round >= 0) whole->times[b->device_index][b->round] = now_s() - begin;
  wf_fst *graph = wf_fst_ref(result.graph);
  whole->num_states = wf_fst_get_view(graph).num_states;
  whole->num_arcs = wf_fst_get_view(graph).num_arcs;
  wf_hmm_graph_result_free(&result);
  return graph;
}

static wf_fst *measure(struct bench *b, const char *device, int device_index) {
  wf_fst *graph = NULL;
  b->device_index = device_index;
  for (b->round = -1; b->round < b->repeat; b->round++) {
    wf_fst_free(graph);
    graph = build(b, device);
  }
  return graph;
}

static void need_equal(const wf_fst *x, const wf_fst *y) {
  wf_fst_view a = wf_fst_get_view(x), b = wf_fst_get_view(y);
  if (a.start != b.start || a.num_states != b.num_states || a.num_arcs != b.num_arcs ||
      memcmp(a.arc_off, b.arc_off, (a.num_states + 1) * sizeof *a.arc_off) != 0 ||
      memcmp(a.final_cost, b.final_cost, a.num_states * sizeof *a.final_cost) != 0 ||
      memcmp(a.arcs, b.arcs, a.num_arcs * sizeof *a.arcs) != 0)
    fail("the graphs of CPU and GPU differ");
}

static int compare_times(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static void print(struct bench *b, bool with_gpu) {
  for (int i = 0; i < b->num_steps; i++) {
    struct step *step = &b->steps[i];
    for (int k = 0; k < 2; k++)
      qsort(step->times[k], (size_t)b->repeat, sizeof(double), compare_times);
    printf(
        "{\"step\": \"%s\", \"level\": \"mkgraph\", \"states\": %llu, \"arcs\": %llu, \"cpu_s\": "
        "%.6f",
        step->name, (unsigned long long)step->num_states, (unsigned long long)step->num_arcs,
        step->times[0][b->repeat / 2]);
    if (with_gpu) printf(", \"gpu_s\": %.6f", step->times[1][b->repeat / 2]);
    printf("}\n");
  }
}

static void read_inputs(struct bench *b, const char *folder) {
  char path[4096];
  wf_lexicon_options options;
  check(wf_hmm_read_sphinx(folder, &b->hmm, &g_err), &g_err);
  wf_lexicon_options_init(&options);
  options.blank = "";
  options.variants = true;
  snprintf(path, sizeof path, "%s/lexicon.dict", folder);
  check(wf_lexicon_read(path, wf_hmm_phones(b->hmm), &options, &b->lexicon, &g_err), &g_err);
  snprintf(path, sizeof path, "%s/lm", folder);
  check(wf_lm_read(path, NULL, NULL, &b->lm, NULL, NULL, &g_err), &g_err);
}

static void print_log(void *user, wf_log_level level, const char *message) {
  const struct bench *b = user;
  if (b->round < 0 || level == WF_LOG_WARNING) fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv) {
  static struct bench b = {.device = "cpu", .repeat = 5};
  const struct flag flags[] = {
      {"device", "cuda, or cpu to measure only the CPU", .text = &b.device},
      {"repeat", "builds on each device, after the first", .integer = &b.repeat}};
  const struct command command = {
      "FOLDER", "Measures the building of a hybrid graph on the CPU and on a GPU.", flags,
      sizeof flags / sizeof *flags};
  const char *folder;
  read_flags(&command, argc, argv, 1, 1, &folder);
  if (b.repeat < 1 || b.repeat > MAX_REPEAT) usage_error("--repeat: 1 to %d", MAX_REPEAT);
  const bool with_gpu = strcmp(b.device, "cpu") != 0;
  wf_set_log(print_log, &b);
  read_inputs(&b, folder);
  wf_fst *cpu = measure(&b, "cpu", 0), *gpu = with_gpu ? measure(&b, b.device, 1) : NULL;
  if (with_gpu) need_equal(gpu, cpu);
  print(&b, with_gpu);
  wf_fst_free(cpu);
  wf_fst_free(gpu);
  wf_lm_free(b.lm);
  wf_lexicon_free(b.lexicon);
  wf_hmm_free(b.hmm);
  return 0;
}
