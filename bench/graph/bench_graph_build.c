/* bench_graph_build.c - measures wf_graph_build, from a model, a lexicon and a language model
 * to the finished graph, on the CPU and on a GPU.
 *
 *     bench_graph_build FOLDER [--device=cuda] [--swap] [--repeat=N]
 *
 * FOLDER has mdef, transition_matrices and noisedict of a Sphinx model, lexicon.dict, and lm. The
 * graphs of both devices must be equal, byte for byte. Prints a JSON line per step, and one for the
 * whole: sizes, and median wall seconds on each device after one build that is not counted. What
 * the CPU does in place of the GPU goes to standard error.
 *
 * --swap: how soon a graph that did not exist before decodes on the GPU, as when a running program
 * takes a user's language model. The GPU's graph stays in its memory. Further steps: the decoding
 * graph, the decoder, the words of the first utterance (one second of random scores in host
 * memory), and "swap", all from the language model to these words. */
#include "common.h"

enum { MAX_REPEAT = 100, MAX_STEPS = 24, NUM_FRAMES = 100 };

struct step {
  char name[32];
  uint64_t num_states, num_arcs;
  double times[2][MAX_REPEAT]; /* [CPU, GPU] */
};

struct bench {
  const char *device;
  int64_t repeat;
  bool swap;
  wf_hmm *hmm;
  wf_lexicon *lexicon;
  wf_lm *lm;
  wf_scores scores;
  struct step steps[MAX_STEPS];
  int num_steps, at, device_index, round;
};

static wf_error g_err;

static void take_time(struct bench *b, const char *name, uint64_t num_states, uint64_t num_arcs,
                      double seconds) {
  if (b->at == MAX_STEPS) fail("too many steps");
  struct step *step = &b->steps[b->at++];
  snprintf(step->name, sizeof step->name, "%s", name);
  step->num_states = num_states;
  step->num_arcs = num_arcs;
  if (b->round >= 0) step->times[b->device_index][b->round] = seconds;
}

static bool take_step(void *user, const wf_graph_step *from, const wf_fst *fst) {
  (void)fst;
  take_time(user, from->file, from->num_states, from->num_arcs, from->seconds);
  return true;
}

static void make_scores(struct bench *b, int32_t num_columns) {
  const uint64_t count = (uint64_t)NUM_FRAMES * (uint64_t)num_columns;
  float *data = allocate(count, sizeof *data);
  uint64_t x = 28;
  for (uint64_t i = 0; i < count; i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    data[i] = -(float)(x >> 40) * 0x1p-21f;
  }
  b->scores = (wf_scores){
      .data = data, .num_frames = NUM_FRAMES, .num_columns = num_columns, .stride = num_columns};
}

/* Decodes with the graph on the GPU. */
static void decode(struct bench *b, const wf_fst *fst, double begin) {
  const wf_fst_view view = wf_fst_get_view(fst);
  double at[4];
  wf_graph *graph;
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_result *result;
  wf_decoder_options_init(&options);
  options.device = b->device;
  at[0] = now_s();
  check(wf_graph_create(fst, NULL, 0, &graph, &g_err), &g_err);
  at[1] = now_s();
  check(wf_decoder_create(graph, &options, &decoder, &g_err), &g_err);
  at[2] = now_s();
  if (b->scores.data == NULL) make_scores(b, wf_graph_min_columns(graph)); /* not counted */
  check(decode_scores(decoder, &b->scores, 1, &result, &g_err), &g_err);
  at[3] = now_s();
  if (result->status != WF_OK) fail(result->message);
  static const char *const names[] = {"decoding graph", "decoder", "words"};
  for (int i = 0; i < 3; i++)
    take_time(b, names[i], view.num_states, view.num_arcs, at[i + 1] - at[i]);
  take_time(b, "swap", view.num_states, view.num_arcs, at[3] - begin);
  wf_result_free(result);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
}

static wf_fst *build(struct bench *b, const char *device) {
  wf_graph_inputs parts;
  wf_graph_options options;
  wf_graph_result result;
  wf_graph_inputs_init(&parts);
  wf_graph_options_init(&options);
  options.kind = WF_GRAPH_HMM;
  parts.hmm = b->hmm;
  parts.lexicon = b->lexicon;
  parts.lm = b->lm;
  parts.step_fn = take_step;
  parts.step_user = b;
  parts.keep_on_device = b->swap && b->device_index == 1;
  options.device = device;
  b->at = 0;
  const double begin = now_s();
  check(wf_graph_build(&parts, &options, &result, &g_err), &g_err);
  const double end = now_s();
  wf_fst *graph = wf_fst_ref(result.graph);
  wf_graph_result_clear(&result);
  const wf_fst_view view = wf_fst_get_view(graph);
  take_time(b, "whole", view.num_states, view.num_arcs, end - begin);
  if (b->swap) decode(b, graph, begin);
  b->num_steps = b->at;
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
  check(wf_lm_open(path, NULL, NULL, &b->lm, NULL, NULL, &g_err), &g_err);
}

static void print_log(void *user, wf_log_level level, const char *message) {
  const struct bench *b = user;
  if (b->round < 0 || level == WF_LOG_WARNING) fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv) {
  static struct bench b = {.device = "cpu", .repeat = 5};
  const struct flag flags[] = {
      {"device", "cuda, or cpu to measure only the CPU", .text = &b.device},
      {"swap", "decode with each graph; the GPU's stays in its memory", .yes = &b.swap},
      {"repeat", "builds on each device, after the first", .integer = &b.repeat}};
  const struct command command = {
      "FOLDER", "Measures the building of a hybrid graph on the CPU and on a GPU.", flags,
      sizeof flags / sizeof *flags};
  const char *folder;
  read_flags(&command, argc, argv, 1, 1, &folder);
  if (b.repeat < 1 || b.repeat > MAX_REPEAT) usage_error("--repeat: 1 to %d", MAX_REPEAT);
  const bool with_gpu = strcmp(b.device, "cpu") != 0;
  if (b.swap && !with_gpu) usage_error("--swap needs a GPU");
  wf_set_log(print_log, &b);
  read_inputs(&b, folder);
  wf_fst *cpu = measure(&b, "cpu", 0), *gpu = with_gpu ? measure(&b, b.device, 1) : NULL;
  if (with_gpu) need_equal(gpu, cpu);
  print(&b, with_gpu);
  wf_fst_free(cpu);
  wf_fst_free(gpu);
  free((void *)(uintptr_t)b.scores.data);
  wf_lm_free(b.lm);
  wf_lexicon_free(b.lexicon);
  wf_hmm_free(b.hmm);
  return 0;
}
