/* bench_swap_graph.c - measures how soon speech is decoded with a graph that does not exist yet: a
 * user's language model, whose graph is built while a program with the acoustic model and the
 * lexicon in memory serves others.
 *
 *     bench_swap_graph FOLDER [--device=cuda] [--keep] [--repeat=N] [--frames=N]
 *
 * FOLDER as for bench_graph_build. Scores are random, in host memory. Prints a JSON line per stage,
 * median wall seconds of the rounds after the first. */
#include "common.h"

enum { MAX_REPEAT = 100, NUM_STAGES = 5 };
static const char *const stage_names[NUM_STAGES] = {"build", "decoding graph", "decoder", "words",
                                                    "whole"};

struct bench {
  const char *device;
  int64_t repeat, num_frames;
  bool keep;
  wf_hmm *hmm;
  wf_lexicon *lexicon;
  wf_lm *lm;
  wf_scores scores;
  uint64_t num_states, num_arcs;
  double times[NUM_STAGES][MAX_REPEAT];
};

static wf_error g_err;

static wf_fst *build(const struct bench *b) {
  wf_hmm_graph_parts parts;
  wf_hmm_graph_options options;
  wf_hmm_graph_result result;
  wf_hmm_graph_parts_init(&parts);
  wf_hmm_graph_options_init(&options);
  parts.hmm = b->hmm;
  parts.lexicon = b->lexicon;
  parts.lm = b->lm;
  parts.keep_on_device = b->keep;
  options.device = b->device;
  check(wf_hmm_graph_build(&parts, &options, &result, &g_err), &g_err);
  wf_fst *graph = wf_fst_ref(result.graph);
  wf_hmm_graph_result_free(&result);
  return graph;
}

static void fill_scores(struct bench *b, int32_t num_columns) {
  const uint64_t count = (uint64_t)b->num_frames * (uint64_t)num_columns;
  float *data = allocate(count, sizeof *data);
  uint64_t x = 28;
  for (uint64_t i = 0; i < count; i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    data[i] = -(float)(x >> 40) * 0x1p-21f;
  }
  b->scores = (wf_scores){data, b->num_frames, num_columns, num_columns, WF_FLOAT32, false, {0}};
}

static void swap(struct bench *b, int64_t round) {
  double at[NUM_STAGES];
  wf_graph *graph;
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_result *result;
  wf_decoder_options_init(&options);
  options.device = b->device;
  at[0] = now_s();
  wf_fst *fst = build(b);
  at[1] = now_s();
  check(wf_graph_create(fst, NULL, 0, &graph, &g_err), &g_err);
  if (b->scores.data == NULL) fill_scores(b, wf_graph_min_columns(graph));
  at[2] = now_s();
  check(wf_decoder_create(graph, &options, &decoder, &g_err), &g_err);
  at[3] = now_s();
  check(decode_scores(decoder, &b->scores, 1, &result, &g_err), &g_err);
  at[4] = now_s();
  if (result->status != WF_OK) fail("decoding failed");
  b->num_states = wf_fst_get_view(fst).num_states;
  b->num_arcs = wf_fst_get_view(fst).num_arcs;
  for (int i = 0; i + 1 < NUM_STAGES && round >= 0; i++) b->times[i][round] = at[i + 1] - at[i];
  if (round >= 0) b->times[NUM_STAGES - 1][round] = at[4] - at[0];
  wf_result_free(result);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

static int compare_times(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
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

int main(int argc, char **argv) {
  static struct bench b = {.device = "cpu", .repeat = 9, .num_frames = 100};
  const struct flag flags[] = {{"device", "cuda, or cpu", .text = &b.device},
                               {"repeat", "rounds after the first", .integer = &b.repeat},
                               {"keep", "the graph stays in the GPU's memory", .yes = &b.keep},
                               {"frames", "frames of the utterance", .integer = &b.num_frames}};
  const struct command command = {"FOLDER", "Measures how soon a new graph decodes.", flags,
                                  sizeof flags / sizeof *flags};
  const char *folder;
  read_flags(&command, argc, argv, 1, 1, &folder);
  if (b.repeat < 1 || b.repeat > MAX_REPEAT) usage_error("--repeat: 1 to %d", MAX_REPEAT);
  read_inputs(&b, folder);
  for (int64_t round = -1; round < b.repeat; round++) swap(&b, round);
  printf("{\"states\": %llu, \"arcs\": %llu}\n", (unsigned long long)b.num_states,
         (unsigned long long)b.num_arcs);
  for (int i = 0; i < NUM_STAGES; i++) {
    qsort(b.times[i], (size_t)b.repeat, sizeof(double), compare_times);
    printf("{\"stage\": \"%s\", \"s\": %.6f}\n", stage_names[i], b.times[i][b.repeat / 2]);
  }
  free((void *)(uintptr_t)b.scores.data);
  wf_lm_free(b.lm);
  wf_lexicon_free(b.lexicon);
  wf_hmm_free(b.hmm);
  return 0;
}
