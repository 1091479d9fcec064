/* test_gpu_graph.c - graphs built on the GPU against those of the CPU: the same bytes, for random
 * lexicons, grammars, models and options. Exits with 77 (skipped) if there is no GPU. Also compiled
 * for the imitated GPU of tests/simt/, where CUDA calls can be made to fail. */
#include "compose_oracle.h"
#include "decode/decode_graph.h"
#include "fst/fst.h"
#include "graph/kaldi_files.h"
#include "graph/kaldi_hmm.h"
#include "sphinx_world.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

/* --- steps that the CPU has done --------------------------------------------------------- */

struct log {
  uint64_t lines;      /* steps done on the CPU */
  uint64_t unexpected; /* those that the GPU should have done */
  bool is_ambiguous;   /* determinization may have to choose between words */
};

static void listen(void *user, wf_log_level level, const char *message) {
  struct log *log = user;
  if (level < WF_LOG_INFO || strstr(message, "on the CPU") == NULL) return;
  log->lines++;
  bool expected =
      strstr(message, "no GPU does that") != NULL || strstr(message, "failure arcs") != NULL ||
      (log->is_ambiguous &&
       (strstr(message, "only the CPU") != NULL || strstr(message, "not functional") != NULL));
  log->unexpected += !expected;
  if (!expected) print_message("%s\n", message);
}

/* --- graphs that stay in the GPU's memory ------------------------------------------------ */

static wf_result *decode(const wf_graph *graph, const char *device, float lattice_beam,
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
static void check_decoding(test_rng *rng, wf_graph *const graphs[2], const char *what) {
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

static void assert_same_array(const void *got, const void *want, uint64_t bytes, const char *what) {
  if ((got == NULL) != (want == NULL) || (got != NULL && memcmp(got, want, bytes) != 0))
    fail_msg("%s: arrays of the decoding graphs differ", what);
}

/* Makes decoding graphs of both, in host memory and, if `kept`, in unified memory. They must be
 * equal. */
static void check_kept(test_rng *rng, wf_fst *const fsts[2], bool kept, const char *what) {
  wf_error err[2] = {{0}, {0}};
  wf_graph *g[2];
  assert_int_equal(wf__fst_device(fsts[1]), kept ? 0 : -1);
  const wf_status want = wf_graph_create(fsts[0], NULL, 0, &g[0], &err[0]),
                  got = wf_graph_create(fsts[1], NULL, 0, &g[1], &err[1]);
  if (want != got || strcmp(err[0].message, err[1].message) != 0)
    fail_msg("%s: '%s'; in host memory: '%s'", what, err[1].message, err[0].message);
  if (want != WF_OK) return;
  assert_int_equal(g[1]->device, kept ? 0 : -1);
  assert_true(g[0]->num_labels == g[1]->num_labels && g[0]->min_columns == g[1]->min_columns &&
              g[0]->blank_column == g[1]->blank_column &&
              g[0]->has_epsilons == g[1]->has_epsilons &&
              g[0]->has_epsilon_cycles == g[1]->has_epsilon_cycles &&
              g[0]->has_negative_epsilons == g[1]->has_negative_epsilons &&
              g[0]->has_epsilon_words == g[1]->has_epsilon_words);
  assert_same_array(g[1]->index, g[0]->index, (g[0]->num_states + 1) * sizeof *g[0]->index, what);
  assert_same_array(g[1]->columns, g[0]->columns, (uint64_t)g[0]->num_labels * 4, what);
  assert_same_array(g[1]->epsilon_components, g[0]->epsilon_components, g[0]->num_states * 4, what);
  if (test_below(rng, 8) == 0) check_decoding(rng, g, what);
  for (int k = 0; k < 2; k++) wf_graph_free(g[k]);
}

/* --- CTC --------------------------------------------------------------------------------- */

static const char g_arpa[] =
    "\\data\\\nngram 1=5\nngram 2=5\n\n\\1-grams:\n-99 <s> -0.25\n-0.75 </s>\n-0.5 X -0.125\n"
    "-0.625 Y 0.25\n-0.875 Z -0.5\n\n\\2-grams:\n-0.25 <s> X\n-0.375 X Y\n-0.5 X </s>\n"
    "-0.125 Y Z\n-0.25 Z Z\n\n\\end\\\n";

static wf_lm *bigram(void) {
  wf_error err = {0};
  wf_lm *lm;
  assert_ok(wf_lm_read_arpa(test_write_file("lm.arpa", g_arpa, sizeof g_arpa - 1), words(), NULL,
                            &lm, NULL, NULL, &err));
  return lm;
}

static wf_lexicon *random_ctc_lexicon(test_rng *rng) {
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
  wf_ctc_graph_options options;
};

static void random_ctc_task(test_rng *rng, uint64_t round, struct ctc_task *task) {
  task->lexicon = random_ctc_lexicon(rng);
  task->lm = round % 2 == 0 ? bigram() : NULL;
  task->grammar = round % 2 != 0 ? random_grammar(rng) : NULL;
  wf_ctc_graph_options_init(&task->options);
  task->options.topology = (int32_t)test_below(rng, 5);
  task->options.backoff = round % 8 == 2;
  task->options.push = (int32_t)test_below(rng, 3);
  task->options.silence = test_below(rng, 2) != 0 ? "SIL" : NULL;
  task->options.keep_disambig = test_below(rng, 4) == 0;
}

static void free_ctc_task(struct ctc_task *task) {
  wf_fst_free(task->grammar);
  wf_lm_free(task->lm);
  wf_lexicon_free(task->lexicon);
}

static wf_status build_ctc(const struct ctc_task *task, const char *device, bool keep, wf_fst **out,
                           wf_error *err) {
  wf_ctc_graph_parts parts;
  wf_ctc_graph_result result;
  wf_ctc_graph_options o = task->options;
  wf_ctc_graph_parts_init(&parts);
  parts.lexicon = task->lexicon;
  parts.grammar = task->grammar;
  parts.lm = task->lm;
  parts.words = words();
  parts.keep_on_device = keep;
  o.device = device;
  wf_status status = wf_ctc_graph_build(&parts, &o, &result, err);
  *out = status == WF_OK ? wf_fst_ref(result.graph) : NULL;
  wf_ctc_graph_result_free(&result);
  return status;
}

static void test_small_ctc(void **state) {
  (void)state;
  struct log log = {.lines = 0};
  uint64_t built = 0;
  wf_set_log(listen, &log);
  for (uint64_t seed = 1; seed <= test_seeds(60); seed++) {
    test_rng rng = {seed};
    char what[64];
    wf_error err[2] = {{0}, {0}};
    wf_fst *graph[2];
    struct ctc_task task;
    random_ctc_task(&rng, seed, &task);
    snprintf(what, sizeof what, "CTC, seed %llu", (unsigned long long)seed);
    const bool keep = seed % 3 == 0;
    wf_status want = build_ctc(&task, "cpu", keep, &graph[0], &err[0]),
              got = build_ctc(&task, "cuda", keep, &graph[1], &err[1]);
    if (want != got || strcmp(err[0].message, err[1].message) != 0)
      fail_msg("%s: '%s'; on the CPU: '%s'", what, err[1].message, err[0].message);
    if (want == WF_OK) assert_same_bytes(graph[1], graph[0], what);
    if (want == WF_OK) check_kept(&rng, graph, keep, what);
    built += want == WF_OK;
    for (int k = 0; k < 2; k++) wf_fst_free(graph[k]);
    free_ctc_task(&task);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(log.unexpected, 0);
  assert_true(built >= test_seeds(60) / 2);
}

/* --- hybrid models ----------------------------------------------------------------------- */

struct hmm_task {
  struct world world;
  wf_hmm *hmm;
  wf_lexicon *lexicon;
  wf_fst *grammar; /* NULL: the bigram */
  wf_lm *lm;
};

static void random_sphinx_task(test_rng *rng, uint64_t round, struct hmm_task *task) {
  random_world(rng, &task->world, (int)round);
  wf_hmm_graph_options *o = &task->world.options;
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
static wf_hmm *kaldi_model(void) {
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

static void random_kaldi_task(test_rng *rng, uint64_t round, struct hmm_task *task) {
  random_world(rng, &task->world, (int)round);
  wf_hmm_graph_options *o = &task->world.options;
  o->silence_style = test_below(rng, 2) != 0;
  o->fillers = false;
  o->ambiguous = test_below(rng, 2) != 0;
  task->hmm = kaldi_model();
  task->lexicon = lexicon_of(&task->world, task->hmm);
  task->lm = round % 2 == 0 ? bigram() : NULL;
  task->grammar = round % 2 != 0 ? random_grammar(rng) : NULL;
}

static void free_hmm_task(struct hmm_task *task) {
  wf_fst_free(task->grammar);
  wf_lm_free(task->lm);
  wf_lexicon_free(task->lexicon);
  wf_hmm_free(task->hmm);
}

static bool check_step(void *user, const wf_graph_step *step, const wf_fst *fst) {
  uint64_t *steps = user;
  steps[0]++;
  steps[1] += fst == NULL;
  return fst == NULL || (wf_fst_get_view(fst).num_states == step->num_states &&
                         wf_fst_get_view(fst).num_arcs == step->num_arcs);
}

static wf_status build_hmm(const struct hmm_task *task, const char *device, uint64_t *steps,
                           bool copy_steps, bool keep, wf_fst **out, wf_error *err) {
  wf_hmm_graph_parts parts;
  wf_hmm_graph_result result;
  wf_hmm_graph_options o = task->world.options;
  wf_hmm_graph_parts_init(&parts);
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
  wf_status status = wf_hmm_graph_build(&parts, &o, &result, err);
  *out = status == WF_OK ? wf_fst_ref(result.graph) : NULL;
  wf_hmm_graph_result_free(&result);
  return status;
}

/* Builds the task on both devices. Returns whether there is a graph. */
static bool check_hmm(test_rng *rng, const struct hmm_task *task, struct log *log, bool copy_steps,
                      const char *what) {
  wf_error err[2] = {{0}, {0}};
  wf_fst *graph[2];
  uint64_t steps[2][2] = {{0}};
  const bool keep = test_below(rng, 2) != 0;
  wf_status want = build_hmm(task, NULL, steps[0], false, keep, &graph[0], &err[0]);
  log->is_ambiguous = task->world.options.ambiguous != 0 || want == WF_ERR_NOT_DETERMINIZABLE;
  wf_status got = build_hmm(task, "cuda:0", steps[1], copy_steps, keep, &graph[1], &err[1]);
  if (want != got || strcmp(err[0].message, err[1].message) != 0)
    fail_msg("%s: '%s'; on the CPU: '%s'", what, err[1].message, err[0].message);
  if (want == WF_OK) assert_same_bytes(graph[1], graph[0], what);
  if (want == WF_OK) check_kept(rng, graph, keep, what);
  assert_int_equal(steps[0][0], steps[1][0]);
  assert_true(steps[0][1] == 0 && (steps[1][1] != 0) == (!copy_steps && steps[0][0] > 2));
  for (int k = 0; k < 2; k++) wf_fst_free(graph[k]);
  return want == WF_OK;
}

static void check_tasks(void (*random_task)(test_rng *, uint64_t, struct hmm_task *),
                        const char *name) {
  struct log log = {.lines = 0};
  uint64_t built = 0;
  wf_set_log(listen, &log);
  for (uint64_t seed = 1; seed <= test_seeds(60); seed++) {
    test_rng rng = {seed};
    char what[64];
    struct hmm_task task;
    random_task(&rng, seed, &task);
    snprintf(what, sizeof what, "%s, seed %llu", name, (unsigned long long)seed);
    built += check_hmm(&rng, &task, &log, seed % 2 == 0, what);
    free_hmm_task(&task);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(log.unexpected, 0);
  assert_true(built >= test_seeds(60) / 4);
}

static void test_small_sphinx(void **state) {
  (void)state;
  check_tasks(random_sphinx_task, "Sphinx");
}

static void test_small_kaldi(void **state) {
  (void)state;
  check_tasks(random_kaldi_task, "Kaldi");
}

#ifdef SIMT
/* Without unified memory the graph is in host memory. */
static void test_small_no_unified_memory(void **state) {
  (void)state;
  test_rng rng = {5};
  wf_error err = {0};
  struct ctc_task task;
  wf_fst *graphs[2] = {NULL, NULL};
  for (;;) {
    random_ctc_task(&rng, 2, &task);
    if (build_ctc(&task, "cpu", false, &graphs[0], &err) == WF_OK) break;
    free_ctc_task(&task);
  }
  fake_gpus.no_unified_memory = true;
  assert_ok(build_ctc(&task, "cuda", true, &graphs[1], &err));
  fake_gpus.no_unified_memory = false;
  assert_same_bytes(graphs[1], graphs[0], "no unified memory");
  check_kept(&rng, graphs, false, "no unified memory");
  for (int k = 0; k < 2; k++) wf_fst_free(graphs[k]);
  free_ctc_task(&task);
}
#endif

static void test_small_refusals(void **state) {
  (void)state;
  static const char *const devices[] = {"cuda:x", "cuda:0,0", "gpu", "cuda:99"};
  test_rng rng = {3};
  struct ctc_task task;
  wf_fst *graph;
  random_ctc_task(&rng, 1, &task);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    wf_error err = {0};
    wf_status status = build_ctc(&task, devices[i], false, &graph, &err);
    assert_true(status == WF_ERR_ARGUMENT || status == WF_ERR_DEVICE);
    assert_non_null(strstr(err.message, i == 3 ? "99" : devices[i]));
    assert_null(graph);
  }
  free_ctc_task(&task);
}

#ifdef SIMT
/* The inputs of test_small_failures and the results of the CPU. */
struct failing {
  struct ctc_task ctc;
  wf_hmm *hmm;
  wf__loop_table table;
  wf_fst *grammar; /* its labels are taken as phones, and as labels of HMM states */
  wf_fst *want, *expanded, *looped; /* the CTC graph; the grammar in context, and with self-loops */
};

static wf_status build_failing_ctc(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_fst *got;
  wf_status status = build_ctc(&f->ctc, "cuda", true, &got, err);
  wf_graph *graph = NULL;
  if (status == WF_OK) status = wf_graph_create(got, NULL, 0, &graph, err);
  if (status == WF_OK) assert_same_bytes(got, f->want, "CTC");
  wf_graph_free(graph);
  wf_fst_free(got);
  return status;
}

static wf_status compare(const wf__gpu_batch *batch, const wf_fst *want, wf_error *err) {
  wf__csr csr = {0};
  int64_t start;
  wf_fst *got = NULL;
  wf_status status = wf__gpu_batch_get(batch, 0, &csr, &start, err);
  if (status == WF_OK) status = wf__fst_from_csr(&csr, start, WF_TROPICAL, NULL, NULL, &got, err);
  if (status == WF_OK) assert_same_bytes(got, want, "a step");
  wf__csr_free(&csr);
  wf_fst_free(got);
  return status;
}

/* Replaces the batch by the result of a step. */
static void replace(wf__gpu_batch **batch, wf__gpu_batch *made) {
  wf__gpu_batch_free(*batch);
  *batch = made;
}

static wf_status do_failing_steps(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_tally dropped = {0};
  wf__gpu_batch *batch = NULL, *made;
  wf_status status =
      wf__gpu_batch_create((const wf_fst *const *)&f->grammar, 1, WF_TROPICAL, "cuda", &batch, err);
  if (status == WF_OK)
    status =
        wf__hmm_expand_on_gpu(f->hmm, batch, 0, WF__MISSING_SUBSTITUTE, 0, &dropped, &made, err);
  if (status == WF_OK) {
    status = compare(made, f->expanded, err);
    wf__gpu_batch_free(made);
  }
  if (status == WF_OK) status = wf__gpu_batch_by_discovery(batch, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = wf__gpu_batch_clear_labels(batch, 3, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = wf__gpu_batch_add_loops(batch, &f->table, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = wf__gpu_batch_epsilons_last(batch, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = compare(batch, f->looped, err);
  wf__gpu_batch_free(batch);
  wf__tally_free(&dropped);
  wf__tally_free(&f->hmm->substituted);
  return status;
}

/* The steps of do_failing_steps on the CPU, from a grammar whose states are in order of discovery.
 */
static void do_steps(struct failing *f) {
  static const int32_t last_word = 3;
  wf_error err = {0};
  wf_tally dropped = {0};
  wf_fst *cleared, *looped;
  assert_ok(wf__hmm_expand(f->hmm, f->grammar, 0, WF__MISSING_SUBSTITUTE, 0, &dropped, &f->expanded,
                           &err));
  assert_ok(wf__hmm_loop_table(f->hmm, 0.5f, &f->table, &err));
  assert_ok(wf_remove_disambig(f->grammar, &last_word, 1, &cleared, &err));
  assert_ok(wf__hmm_add_loops(f->hmm, cleared, 0.5f, &looped, &err));
  assert_ok(wf_epsilons_last(looped, &f->looped, &err));
  wf_fst_free(cleared);
  wf_fst_free(looped);
  wf__tally_free(&dropped);
}

/* In a pipeline, a call that fails for lack of memory leaves the step to the CPU; the graph is the
 * same. */
static void test_small_failures(void **state) {
  (void)state;
  wf_error err = {0};
  struct world world;
  struct failing f;
  test_rng rng = {7};
  random_world(&rng, &world, 0);
  f.hmm = model_of(&world, false, false);
  f.grammar = test_fst_of(
      WF_TROPICAL,
      "0 1 1 4 1;0 2 2 5 0.5;1 2 1 4 1;1 3 2 4 2;1 0 2 0 1;2 3 3 5 0.25;2 2 1 1 1;3 1 1 1 "
      "2;3 0.5");
  do_steps(&f);
  fail_each_call("steps", do_failing_steps, &f, 200);
  for (uint64_t seed = 1, done = 0; !done; seed += 2) {
    rng = (test_rng){seed};
    random_ctc_task(&rng, seed, &f.ctc);
    done = build_ctc(&f.ctc, "cpu", false, &f.want, &err) == WF_OK;
    if (!done) free_ctc_task(&f.ctc);
  }
  fail_each_call("CTC graph", build_failing_ctc, &f, 200);
  wf_fst_free(f.want);
  wf_fst_free(f.expanded);
  wf_fst_free(f.looped);
  wf_fst_free(f.grammar);
  wf__hmm_loop_table_free(&f.table);
  wf_hmm_free(f.hmm);
  free_ctc_task(&f.ctc);
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_ctc),      cmocka_unit_test(test_small_sphinx),
      cmocka_unit_test(test_small_kaldi),
#ifdef SIMT
      cmocka_unit_test(test_small_failures), cmocka_unit_test(test_small_no_unified_memory),
#endif
      cmocka_unit_test(test_small_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
