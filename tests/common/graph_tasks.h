/* graph_tasks.h - random tasks of building CTC and hybrid graphs, on the CPU or on a GPU, and what
 * graphs in the GPU's memory have in common with those in host memory. */
#ifndef TESTS_GRAPH_TASKS_H
#define TESTS_GRAPH_TASKS_H

#include "compose_oracle.h"
#include "fst/fst.h"
#include "graph/kaldi_files.h"
#include "graph/kaldi_hmm.h"
#include "search/decode_graph.h"
#include "sphinx_world.h"

/* --- graphs that stay in the GPU's memory ------------------------------------------------ */

static inline wf_result *decode(const wf_graph *graph, const char *device, float lattice_beam,
                                const wf_scores *scores) {
  wf_error err = {0};
  wf_decoder_options o;
  wf_decoder *decoder;
  wf_result *result;
  wf_utterance utterance = {.scores = *scores};
  wf_decoder_options_init(&o);
  o.device = device;
  o.lattice_beam = lattice_beam;
  assert_ok(wf_decoder_create(graph, &o, &decoder, &err));
  assert_ok(wf_decode(decoder, &utterance, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_OK);
  wf_decoder_free(decoder);
  return result;
}

/* Both graphs give the same words on the GPU, with the same costs. */
static inline void check_decoding(test_rng *rng, wf_graph *const graphs[2], const char *what) {
  enum { FRAMES = 12 };
  const int32_t columns = wf_graph_min_columns(graphs[0]);
  float *data = calloc((size_t)(FRAMES * columns + 1), sizeof *data);
  for (int32_t i = 0; i < FRAMES * columns; i++) data[i] = -(float)test_below(rng, 64) / 8;
  const wf_scores scores = {
      .data = data, .num_frames = FRAMES, .num_columns = columns, .stride = columns};
  const float lattice_beam = test_below(rng, 2) != 0 ? 4 : 0;
  wf_result *results[2];
  for (int k = 0; k < 2; k++) results[k] = decode(graphs[k], "cuda", lattice_beam, &scores);
  if (results[0]->num_words != results[1]->num_words || results[0]->cost != results[1]->cost)
    fail_msg("%s: %zu words of cost %g, %zu of cost %g from unified memory", what,
             results[0]->num_words, results[0]->cost, results[1]->num_words, results[1]->cost);
  for (size_t i = 0; i < results[0]->num_words; i++)
    assert_memory_equal(&results[0]->words[i], &results[1]->words[i], sizeof(wf_word));
  for (int k = 0; k < 2; k++) wf_result_free(results[k]);
  free(data);
}

static inline void assert_same_array(const void *got, const void *want, uint64_t bytes,
                                     const char *what) {
  if ((got == NULL) != (want == NULL) || (got != NULL && memcmp(got, want, bytes) != 0))
    fail_msg("%s: arrays of the decoding graphs differ", what);
}

/* Makes decoding graphs of both, in host memory and, if `kept`, in unified memory. They must be
 * equal. The host looks at token graphs, wherever they are. */
static inline void check_kept(test_rng *rng, wf_fst *const fsts[2], bool kept, const char *what) {
  wf_error err[2] = {{0}, {0}};
  wf_graph *g[2];
  assert_int_equal(wf__fst_device(fsts[1]), kept ? 0 : -1);
  const wf_status want = wf_graph_create(fsts[0], NULL, 0, &g[0], &err[0]),
                  got = wf_graph_create(fsts[1], NULL, 0, &g[1], &err[1]);
  if (want != got || strcmp(err[0].message, err[1].message) != 0)
    fail_msg("%s: '%s'; in host memory: '%s'", what, err[1].message, err[0].message);
  if (want != WF_OK) return;
  assert_int_equal(g[1]->device, kept && g[1]->ctc == NULL ? 0 : -1);
  assert_true(g[0]->num_labels == g[1]->num_labels && g[0]->min_columns == g[1]->min_columns &&
              g[0]->blank_column == g[1]->blank_column &&
              g[0]->has_epsilons == g[1]->has_epsilons &&
              g[0]->has_epsilon_cycles == g[1]->has_epsilon_cycles &&
              g[0]->has_negative_epsilons == g[1]->has_negative_epsilons &&
              g[0]->has_epsilon_words == g[1]->has_epsilon_words);
  assert_same_array(g[1]->index, g[0]->index, (g[0]->num_states + 1) * sizeof *g[0]->index, what);
  assert_same_array(g[1]->columns, g[0]->columns, (uint64_t)g[0]->num_labels * 4, what);
  assert_same_array(g[1]->epsilon_components, g[0]->epsilon_components, g[0]->view.num_states * 4,
                    what);
  if (test_below(rng, 8) == 0) check_decoding(rng, g, what);
  for (int k = 0; k < 2; k++) wf_graph_free(g[k]);
}

/* --- CTC --------------------------------------------------------------------------------- */

static const char g_arpa[] =
    "\\data\\\nngram 1=5\nngram 2=5\n\n\\1-grams:\n-99 <s> -0.25\n-0.75 </s>\n-0.5 X -0.125\n"
    "-0.625 Y 0.25\n-0.875 Z -0.5\n\n\\2-grams:\n-0.25 <s> X\n-0.375 X Y\n-0.5 X </s>\n"
    "-0.125 Y Z\n-0.25 Z Z\n\n\\end\\\n";

static inline wf_lm *bigram(void) {
  wf_error err = {0};
  wf_lm *lm;
  assert_ok(wf_lm_open(test_write_file("lm.arpa", g_arpa, sizeof g_arpa - 1), words(), NULL, &lm,
                       NULL, NULL, &err));
  return lm;
}

static inline wf_lexicon *random_ctc_lexicon(test_rng *rng) {
  static const char names[] = "XYZ", token_text[] = "<blk> 0\na 1\nb 2\nSIL 3\n";
  wf_error err = {0};
  wf_symbols *tokens;
  wf_lexicon *lexicon;
  struct bytes text;
  text.size = 0;
  for (int i = 0; i < 3 + (int)test_below(rng, 3); i++) {
    put_text(&text, "%c %g", names[i < 3 ? i : (int)test_below(rng, 3)],
             (double)(1 + test_below(rng, 4)) / 4);
    for (uint32_t k = 1 + test_below(rng, 3); k > 0; k--)
      put_text(&text, " %c", "ab"[test_below(rng, 2)]);
    put_text(&text, "\n");
  }
  wf_lexicon_options o;
  wf_lexicon_options_init(&o);
  o.lexicon_format = 2;
  assert_ok(wf_symbols_read(test_write_file("tokens.txt", token_text, sizeof token_text - 1),
                            &tokens, &err));
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", text.data, text.size), tokens, &o,
                            &lexicon, &err));
  wf_symbols_free(tokens);
  return lexicon;
}

struct ctc_task {
  wf_lexicon *lexicon;
  wf_fst *grammar; /* NULL: the bigram */
  wf_lm *lm;
  wf_graph_options options;
};

static inline void random_ctc_task(test_rng *rng, uint64_t round, struct ctc_task *task) {
  task->lexicon = random_ctc_lexicon(rng);
  task->lm = round % 2 == 0 ? bigram() : NULL;
  task->grammar = round % 2 != 0 ? random_grammar(rng) : NULL;
  wf_graph_options_init(&task->options);
  task->options.topology = (int32_t)test_below(rng, 5);
  task->options.backoff = round % 8 == 2;
  task->options.push = WF_PUSH_NONE + (int32_t)test_below(rng, 3);
  task->options.silence = test_below(rng, 2) != 0 ? "SIL" : NULL;
  task->options.keep_disambig = test_below(rng, 4) == 0;
}

static inline void free_ctc_task(struct ctc_task *task) {
  wf_fst_free(task->grammar);
  wf_lm_free(task->lm);
  wf_lexicon_free(task->lexicon);
}

static inline wf_status build_ctc(const struct ctc_task *task, const char *device, bool keep,
                                  wf_fst **out, wf_error *err) {
  wf_graph_inputs parts;
  wf_graph_result result;
  wf_graph_options o = task->options;
  wf_graph_inputs_init(&parts);
  parts.lexicon = task->lexicon;
  parts.grammar = task->grammar;
  parts.lm = task->lm;
  parts.words = words();
  parts.keep_on_device = keep;
  o.device = device;
  wf_status status = wf_graph_build(&parts, &o, &result, err);
  *out = status == WF_OK ? wf_fst_ref(result.graph) : NULL;
  wf_graph_result_clear(&result);
  return status;
}

/* --- hybrid models ----------------------------------------------------------------------- */

struct hmm_task {
  struct world world;
  wf_hmm *hmm;
  wf_lexicon *lexicon;
  wf_fst *grammar; /* NULL: the bigram */
  wf_lm *lm;
};

static inline void random_sphinx_task(test_rng *rng, uint64_t round, struct hmm_task *task) {
  random_world(rng, &task->world, (int)round);
  wf_graph_options *o = &task->world.options;
  o->ambiguous = test_below(rng, 2) != 0;
  o->backoff = round % 8 == 2;
  o->missing_hmm = round % 6 == 3;
  task->hmm = model_of(&task->world, round % 2 != 0, false);
  task->lexicon = lexicon_of(&task->world, task->hmm);
  task->lm = round % 2 == 0 ? bigram() : NULL;
  task->grammar = round % 2 != 0 ? random_grammar(rng) : NULL;
}

/* A model of Kaldi: the senone of A depends on the phone before it; B has a state without frames.
 */
static inline wf_hmm *kaldi_model(void) {
  static const char *const texts[] = {
      "<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 2 </ForPhones> <State> 0 "
      "<PdfClass> 0 <Transition> 0 0.5 <Transition> 1 0.5 </State> <State> 1 </State> "
      "</TopologyEntry> <TopologyEntry> <ForPhones> 3 </ForPhones> <State> 0 <PdfClass> 0 "
      "<Transition> 0 0.5 <Transition> 1 0.5 </State> <State> 1 <Transition> 2 1 </State> <State> "
      "2 "
      "</State> </TopologyEntry> </Topology> <Triples> 4 1 0 0 2 0 1 2 0 2 3 0 3 </Triples> "
      "<LogProbs> [ 0 -1 -0.5 -0.75 -0.25 -2 -0.125 -1.5 -0.5 ] </LogProbs> </TransitionModel>",
      "ContextDependency 3 1 ToPdf TE 1 4 ( NULL CE 0 SE 0 [ 2 ] { CE 1 CE 2 } CE 3 ) "
      "EndContextDependency",
      "<eps> 0\nSIL 1\nA 2\nB 3\n", "SIL\n"};
  wf_error err = {0};
  wf__input inputs[4];
  wf_hmm *hmm;
  for (int i = 0; i < 4; i++)
    assert_ok(wf__input_from_memory(texts[i], strlen(texts[i]), "x", &inputs[i], &err));
  wf__lang_inputs lang = {&inputs[2], NULL, &inputs[3]};
  assert_ok(wf__hmm_read_kaldi_inputs("model", &inputs[0], &inputs[1], &lang, &hmm, &err));
  for (int i = 0; i < 4; i++) wf__input_close(&inputs[i]);
  return hmm;
}

static inline void random_kaldi_task(test_rng *rng, uint64_t round, struct hmm_task *task) {
  random_world(rng, &task->world, (int)round);
  wf_graph_options *o = &task->world.options;
  o->silence_style = test_below(rng, 2) != 0;
  o->fillers = false;
  o->ambiguous = test_below(rng, 2) != 0;
  task->hmm = kaldi_model();
  task->lexicon = lexicon_of(&task->world, task->hmm);
  task->lm = round % 2 == 0 ? bigram() : NULL;
  task->grammar = round % 2 != 0 ? random_grammar(rng) : NULL;
}

static inline void free_hmm_task(struct hmm_task *task) {
  wf_fst_free(task->grammar);
  wf_lm_free(task->lm);
  wf_lexicon_free(task->lexicon);
  wf_hmm_free(task->hmm);
}

static inline bool check_step(void *user, const wf_graph_step *step, const wf_fst *fst) {
  uint64_t *steps = user;
  steps[0]++;
  steps[1] += fst == NULL;
  return fst == NULL || (wf_fst_get_view(fst).num_states == step->num_states &&
                         wf_fst_get_view(fst).num_arcs == step->num_arcs);
}

static inline wf_status build_hmm(const struct hmm_task *task, const char *device, uint64_t *steps,
                                  bool copy_steps, bool keep, wf_fst **out, wf_error *err) {
  wf_graph_inputs parts;
  wf_graph_result result;
  wf_graph_options o = task->world.options;
  wf_graph_inputs_init(&parts);
  parts.hmm = task->hmm;
  parts.lexicon = task->lexicon;
  parts.grammar = task->grammar;
  parts.lm = task->lm;
  parts.words = words();
  parts.step_fn = steps != NULL ? check_step : NULL;
  parts.step_user = steps;
  parts.copy_steps = copy_steps;
  parts.keep_on_device = keep;
  o.device = device;
  wf_status status = wf_graph_build(&parts, &o, &result, err);
  *out = status == WF_OK ? wf_fst_ref(result.graph) : NULL;
  wf_graph_result_clear(&result);
  return status;
}

#endif
