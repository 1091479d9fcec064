/* test_torture.c - library calls with failing allocations. In each job, every allocation fails once
 * alone, and once with all after it. The library must then return WF_ERR_MEMORY with a message, and
 * leak nothing; the same work with the same objects must be right when there is memory again.
 * Functions that make one object from others are tested as commands (commands.py).
 *
 * The library of preload.c counts, so without LD_PRELOAD all tests are skipped. */
#include <unistd.h>

#include "math/hash.h"
#include "preload.h"
#include "random_transducers.h"
#include "random_words.h"
/* After the library's headers, because it defines `model`. */
#include "rnn_chains.h"

enum { BATCH = 3, FRAMES = 9, SECONDS = 60 }; /* a run that takes longer is taken to hang */

/* A job: `open` creates objects, `work` may be called repeatedly with them and sets g_digest.
 * Neither allocates itself. After an error they return no object. */
struct job {
  const char *name;
  wf_status (*open)(const struct job *job, wf_error *err);
  wf_status (*work)(const struct job *job, wf_error *err);
  int which;
};

/* The objects of the open job. */
static struct {
  wf_decoder *decoder;
  wf_stream *streams[2];
  wf_graph *graph;
  wf_composer *composer;
  wf_beam_searcher *beam;
  wf_fst_batch *fsts;
  wf_lm *lms[2]; /* opened in memory; mapped */
} now;

static wf_error setup_err;

/* --- digests of results ------------------------------------------------------------------ */

static uint64_t g_digest;

static void mix(uint64_t value) { g_digest = wf__hash_combine(g_digest, value); }
static void mix_cost(double cost) {
  uint64_t bits;
  memcpy(&bits, &cost, sizeof bits);
  mix(bits);
}

static void mix_fst(wf_fst_view view) {
  mix(view.num_states);
  for (uint64_t s = 0; s < view.num_states; s++) mix_cost((double)view.final_cost[s]);
  for (uint64_t a = 0; a < view.num_arcs; a++) {
    mix((uint64_t)(uint32_t)view.arcs[a].ilabel << 32 | (uint32_t)view.arcs[a].olabel);
    mix(view.arcs[a].nextstate);
    mix_cost((double)view.arcs[a].weight);
  }
}

static void mix_words(const wf_word *words, size_t count) {
  for (size_t w = 0; w < count; w++) {
    mix((uint64_t)words[w].label);
    mix((uint64_t)words[w].start_frame << 32 ^ (uint64_t)words[w].end_frame);
  }
}

static void mix_lattice(const wf_lattice *lattice) {
  if (lattice == NULL) return;
  const wf_lattice_view view = wf_lattice_get_view(lattice);
  mix(view.num_states);
  for (uint64_t a = 0; a < view.num_arcs; a++) mix_cost((double)view.arcs[a].graph_cost);
}

/* Returns the status of the utterance, with its message in err, or of a part of the result. */
static wf_status mix_result(const wf_result *result, wf_error *err) {
  wf_status status = result->status;
  const char *message = result->message;
  if (status == WF_OK && result->determinized != NULL)
    status = result->determinized->status, message = result->determinized->message;
  if (status == WF_OK && result->lattice_results != NULL)
    status = result->lattice_results->status, message = result->lattice_results->message;
  if (status != WF_OK) {
    snprintf(err->message, sizeof err->message, "%s", message);
    return status;
  }
  mix_words(result->words, result->num_words);
  mix_cost(result->cost);
  mix(result->flags);
  mix_lattice(result->lattice);
  return WF_OK;
}

/* The same for all results, which it frees. */
static wf_status take_results(wf_result **results, size_t count, wf_error *err) {
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) status = mix_result(results[i], err);
  test_free_results(results, count);
  return status;
}

/* --- decoding ---------------------------------------------------------------------------- */

enum { PLAIN, SCORED, LATTICES, DETERMINIZED, WORDS };

static struct {
  struct added_task task;
  wf_symbols *words;
  wf_scorer *scorers[2];
  wf_scores batch[BATCH];
  float *data[BATCH];
} d;

static void make_decoding(uint64_t seed) {
  test_rng rng = {seed};
  seed *= 100;
  while (!is_fitting(seed, &d.task)) free_added(&d.task), seed++;
  d.words = random_scorer_words();
  d.scorers[0] = random_ngram(&rng, d.words, true);
  d.scorers[1] = random_phrase_boost(&rng);
  test_random_batch(&d.task.task, d.batch, d.data, BATCH, 3, FRAMES + 1);
  for (int i = 0; i < BATCH; i++) {
    free(d.data[i]);
    d.data[i] = malloc(FRAMES * (size_t)d.batch[i].stride * sizeof *d.data[i]);
    for (int64_t k = 0; k < FRAMES * d.batch[i].stride; k++) d.data[i][k] = -4 * test_unit(&rng);
    d.batch[i].data = d.data[i];
    d.batch[i].num_frames = FRAMES;
    d.batch[i].dtype = WF_FLOAT32;
  }
}

static void free_decoding(void) {
  for (int i = 0; i < BATCH; i++) free(d.data[i]);
  for (int i = 0; i < 2; i++) wf_scorer_free(d.scorers[i]);
  wf_symbols_free(d.words);
  free_added(&d.task);
}

static wf_status open_decoder(const struct job *job, wf_error *err) {
  wf_decoder_options o = d.task.task.options;
  wf_lattice_results_options results;
  wf_lattice_determinize_options determinizing;
  wf_lattice_determinize_options_init(&determinizing);
  wf_lattice_results_options_init(&results);
  results.confidences = true;
  results.nbest = 3;
  o.device = "cpu";
  o.num_threads = 1;
  o.beam = 6;
  o.max_active = o.max_tokens = 200;
  o.blank = -1;
  o.blank_skip_threshold = 1;
  o.lattice_beam = job->which == LATTICES || job->which == DETERMINIZED ? 3 : 0;
  wf_status status = wf_decoder_create(d.task.task.graph, &o, &now.decoder, err);
  if (status == WF_OK && job->which == DETERMINIZED)
    status = wf_decoder_set_determinization(now.decoder, &determinizing, err);
  if (status == WF_OK && job->which == DETERMINIZED)
    status = wf_decoder_set_lattice_results(now.decoder, &results, err);
  if (status == WF_OK && job->which == WORDS)
    status = wf_graph_add_phrases(d.task.task.graph, "<c>", d.task.phrases[0].list,
                                  d.task.phrases[0].count, &now.graph, err);
  return status;
}

static wf_status work_batch(const struct job *job, wf_error *err) {
  wf_utterance utterances[BATCH] = {{{0}}};
  wf_result *results[BATCH];
  for (size_t i = 0; i < BATCH; i++) {
    utterances[i].scores = d.batch[i];
    if (job->which == SCORED && i > 0) utterances[i].scorer = d.scorers[i - 1];
    if (i > 0) utterances[i].graph = now.graph;
  }
  const wf_status status = wf_decode(now.decoder, utterances, BATCH, NULL, results, err);
  for (size_t i = 0; i < BATCH && status != WF_OK; i++) assert_null(results[i]);
  return status == WF_OK ? take_results(results, BATCH, err) : status;
}

static wf_status open_streams(const struct job *job, wf_error *err) {
  wf_status status = open_decoder(job, err);
  for (int i = 0; i < 2 && status == WF_OK; i++)
    status = wf_stream_create(now.decoder, NULL, &now.streams[i], err);
  return status;
}

static wf_status get_partials(const struct job *job, int64_t fed, wf_error *err) {
  wf_partial partials[2];
  wf_lattice *lattice = NULL;
  wf_status status = wf_streams_partial(now.decoder, now.streams, 2, partials, err);
  for (int i = 0; i < 2 && status == WF_OK; i++)
    mix_words(partials[i].words, partials[i].num_words);
  if (status != WF_OK || job->which != LATTICES) return status;
  status = fed == 2 ? wf_stream_partial_lattice(now.streams[0], &lattice, err)
                    : wf_stream_commit_lattice(now.streams[0], &lattice, err);
  assert_true(status == WF_OK || lattice == NULL);
  mix_lattice(lattice);
  wf_lattice_free(lattice);
  return status;
}

/* An utterance in each stream: chunks of 0 to 2 frames, in mid-utterance partial results and
 * another scorer. */
static wf_status work_streams(const struct job *job, wf_error *err) {
  wf_result *results[2] = {NULL, NULL};
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && status == WF_OK; i++) status = wf_stream_reset(now.streams[i], err);
  for (int i = 0; i < 2 && status == WF_OK; i++)
    status = wf_stream_set_scorer(now.streams[i], job->which == SCORED ? d.scorers[i] : NULL, err);
  if (status == WF_OK && now.graph != NULL)
    status = wf_stream_set_graph(now.streams[1], now.graph, err);
  for (int64_t fed = 0; fed < FRAMES && status == WF_OK; fed += fed == 2 ? 1 : 2) {
    const wf_scores chunks[2] = {test_rows(&d.batch[0], fed, fed == 2 ? 1 : 2),
                                 test_rows(&d.batch[1], fed, fed == 2 ? 1 : 2)};
    wf_stream_event events[2];
    status = wf_streams_advance(now.decoder, now.streams, chunks, 2, events, err);
    if (status == WF_OK) status = get_partials(job, fed, err);
    if (status == WF_OK && job->which == SCORED && fed == 2)
      status = wf_stream_set_scorer(now.streams[0], d.scorers[1], err);
  }
  for (int i = 0; i < 2 && status == WF_OK; i++) {
    status = wf_stream_finish(now.streams[i], &results[i], err);
    assert_true(status == WF_OK || results[i] == NULL);
    if (status == WF_OK) status = mix_result(results[i], err);
  }
  for (int i = 0; i < 2; i++) wf_result_free(results[i]);
  return status;
}

/* --- recurrent models and transducers ---------------------------------------------------- */

static chain_task chains;
static struct {
  wf_transducer *model;
  wf_graph *graph;
  wf_decoder_options options;
  wf_scores scores[2];
} transducing;

static void make_transducer(uint64_t seed, test_rng *rng) {
  transducer_shape s = random_transducer_shape(rng, seed);
  s.num_tokens = 5;
  transducing.model = random_transducer(rng, &s);
  wf_fst *fst = test_transducer_graph(rng, s.num_tokens, 4, 4);
  assert_int_equal(wf_graph_create(fst, NULL, 0, &transducing.graph, &setup_err), WF_OK);
  wf_fst_free(fst);
  wf_decoder_options_init(&transducing.options);
  transducing.options.beam = 6;
  for (int u = 0; u < 2; u++)
    transducing.scores[u] = random_encoder_outputs(rng, transducing.model, 7);
}

static void free_transducer(void) {
  for (int u = 0; u < 2; u++) free((void *)(uintptr_t)transducing.scores[u].data);
  wf_graph_free(transducing.graph);
  wf_transducer_free(transducing.model);
}

static wf_status open_chains(const struct job *job, wf_error *err) {
  (void)job;
  chains.options.num_threads = 1;
  return wf_decoder_create(chains.graph, &chains.options, &now.decoder, err);
}

static wf_status work_chains(const struct job *job, wf_error *err) {
  wf_utterance utterances[BATCH] = {{{0}}};
  wf_result *results[BATCH];
  (void)job;
  for (int u = 0; u < BATCH; u++)
    utterances[u] = (wf_utterance){.scores = chains.scores[u], .scorer = chains.scorers[u]};
  const wf_status status = wf_decode(now.decoder, utterances, BATCH, NULL, results, err);
  return status == WF_OK ? take_results(results, BATCH, err) : status;
}

static wf_status open_transducer(const struct job *job, wf_error *err) {
  wf_decoder_options o = transducing.options;
  o.num_threads = 1;
  o.lattice_beam = job->which == LATTICES ? 4 : 0;
  return wf_decoder_create_transducer(transducing.graph, transducing.model, &o, &now.decoder, err);
}

static wf_status work_transducer(const struct job *job, wf_error *err) {
  wf_utterance utterances[2] = {{{0}}};
  wf_result *results[2];
  (void)job;
  for (int u = 0; u < 2; u++) utterances[u].scores = transducing.scores[u];
  const wf_status status = wf_decode(now.decoder, utterances, 2, NULL, results, err);
  return status == WF_OK ? take_results(results, 2, err) : status;
}

static wf_status open_transducer_stream(const struct job *job, wf_error *err) {
  const wf_status status = open_transducer(job, err);
  return status == WF_OK ? wf_stream_create(now.decoder, NULL, &now.streams[0], err) : status;
}

static wf_status work_transducer_stream(const struct job *job, wf_error *err) {
  const wf_scores *all = &transducing.scores[0];
  wf_result *result = NULL;
  (void)job;
  wf_status status = wf_stream_reset(now.streams[0], err);
  for (int64_t fed = 0; fed < all->num_frames && status == WF_OK; fed += 3) {
    const int64_t left = all->num_frames - fed;
    wf_scores chunk = *all;
    chunk.data =
        (const char *)all->data + (size_t)(fed * all->stride) * test_score_size(all->dtype);
    chunk.num_frames = left < 3 ? left : 3;
    status = wf_stream_advance(now.streams[0], &chunk, NULL, err);
  }
  if (status == WF_OK) status = wf_stream_finish(now.streams[0], &result, err);
  if (status == WF_OK) status = mix_result(result, err);
  wf_result_free(result);
  return status;
}

/* --- other objects that are used more than once ------------------------------------------- */

static wf_fst *f[2];

static wf_status open_composer(const struct job *job, wf_error *err) {
  (void)job;
  const wf_fst *const a[] = {f[0]}, *const b[] = {f[1]};
  return wf_composer_create(a, 1, b, 1, 1, NULL, true, &now.composer, err);
}

static wf_status work_composer(const struct job *job, wf_error *err) {
  wf_fst *got = NULL;
  wf_arc_origin *origins = NULL;
  (void)job;
  wf_status status = wf_composer_run(now.composer, err);
  if (status == WF_OK) status = wf_composer_to_fst(now.composer, 0, &got, &origins, err);
  assert_true(status == WF_OK || (got == NULL && origins == NULL));
  if (status == WF_OK) mix_fst(wf_fst_get_view(got));
  wf_fst_free(got);
  wf_free(origins);
  return status;
}

/* 1 becomes 2 at the beginning of a string. */
static wf_fst *rule_parts[4];

static void make_rule_parts(void) {
  static const char *const texts[4] = {"0 1 1 2;1", "0 1 8 8;1", "0",
                                       "0 0 1 1;0 0 2 2;0 0 3 3;0 0 4 4;0"};
  for (int i = 0; i < 4; i++) rule_parts[i] = test_fst_of(WF_TROPICAL, texts[i]);
}

static wf_status work_rule(const struct job *job, wf_error *err) {
  wf_fst *rule = NULL;
  wf_cdrewrite_options options;
  (void)job;
  wf_cdrewrite_options_init(&options);
  options.begin_label = 8;
  options.direction = WF_CDREWRITE_RTL;
  wf_status status = wf_cdrewrite(rule_parts[0], rule_parts[1], rule_parts[2], rule_parts[3],
                                  &options, &rule, err);
  assert_true((status == WF_OK) == (rule != NULL));
  if (status == WF_OK) mix_fst(wf_fst_get_view(rule));
  wf_fst_free(rule);
  return status;
}

/* Up to eight frames of four columns. */
static wf_scores few_scores(int64_t num_frames) {
  static float scores[8 * 4];
  for (int i = 0; i < 8 * 4; i++) scores[i] = (float)-((i * 7) % 11);
  return (wf_scores){.data = scores, .num_frames = num_frames, .num_columns = 4, .stride = 4};
}

static wf_status open_lexicon(const struct job *job, wf_error *err) {
  static const wf_beam_node nodes[] = {
      {-1, 0, 1, 2, 0, 0}, {2, -1, 3, 1, 0, 1}, {3, -1, 4, 0, 1, 1}, {3, -2, 4, 0, 2, 1}};
  static const int32_t spelled[] = {0, 1, 2};
  const wf_beam_parts parts = {
      .nodes = nodes, .num_nodes = 4, .words = spelled, .num_words = 3, .silence = 1, .blank = 0};
  (void)job;
  return wf_beam_searcher_create(&parts, &now.beam, err);
}

static wf_status work_steps(const struct job *job, wf_error *err) {
  wf_beam_search *search = NULL;
  wf_beam_result *result = NULL;
  (void)job;
  const wf_scores half = few_scores(4);
  wf_status status = wf_beam_search_create(now.beam, NULL, NULL, &search, err);
  for (int i = 0; i < 2 && status == WF_OK; i++)
    status = wf_beam_search_advance(search, &half, err);
  if (status == WF_OK) status = wf_beam_search_finish(search, err);
  if (status == WF_OK) status = wf_beam_search_result(search, -1, &result, err);
  assert_true(status == WF_OK || result == NULL);
  for (size_t i = 0; status == WF_OK && i < result->num_paths; i++)
    mix_cost(result->paths[i].score);
  wf_beam_result_free(result);
  wf_beam_search_free(search);
  return status;
}

static wf_status open_texts(const struct job *job, wf_error *err) {
  static const wf_beam_text tokens[] = {
      {"", false, false}, {"a", false, false}, {"b", false, false}, {"", false, true}};
  static const char *const known[] = {"ab", "ba", "a"};
  const wf_beam_parts parts = {
      .texts = tokens, .num_texts = 4, .known_words = known, .num_known_words = 3};
  (void)job;
  return wf_beam_searcher_create(&parts, &now.beam, err);
}

static wf_status work_texts(const struct job *job, wf_error *err) {
  static const char *const hot[] = {"ab", "bb"};
  const wf_beam_input inputs[2] = {{.scores = few_scores(8), .lm_state = -1},
                                   {few_scores(5), hot, 2, .lm_state = -1}};
  wf_beam_options options;
  wf_beam_result *results[2];
  (void)job;
  wf_beam_options_init(&options);
  options.num_threads = 1;
  options.nbest = 5;
  wf_status status = wf_beam_decode(now.beam, inputs, 2, &options, results, err);
  if (status != WF_OK) return status;
  for (int i = 0; i < 2; i++) {
    if (results[i]->status != WF_OK)
      snprintf(err->message, sizeof err->message, "%s", results[i]->message);
    status = status == WF_OK ? results[i]->status : status;
    for (size_t k = 0; k < results[i]->num_paths; k++) mix_cost(results[i]->paths[k].score);
    wf_beam_result_free(results[i]);
  }
  return status;
}

static wf_status open_fsts(const struct job *job, wf_error *err) {
  (void)job;
  return wf_fst_batch_create((const wf_fst *const *)f, 2, "cpu", &now.fsts, err);
}

static wf_status work_fsts(const struct job *job, wf_error *err) {
  wf_fst_batch *without = NULL, *made = NULL;
  wf_fst *got = NULL;
  (void)job;
  wf_status status = wf_fst_batch_rmepsilon(now.fsts, NULL, &without, err);
  if (status == WF_OK) status = wf_fst_batch_determinize(without, NULL, &made, err);
  for (size_t i = 0; i < 2 && status == WF_OK; i++) {
    status = wf_fst_batch_to_fst(made, i, &got, err);
    if (status == WF_OK) mix_fst(wf_fst_get_view(got));
    wf_fst_free(got);
  }
  wf_fst_batch_free(made);
  wf_fst_batch_free(without);
  return status;
}

static wf_status open_nothing(const struct job *job, wf_error *err) {
  return (void)job, (void)err, WF_OK;
}

/* A call that failed has changed nothing: it is made again until there is memory. */
#define AGAIN(status, call)                  \
  do {                                       \
    wf_status first = (call);                \
    if (first == WF_OK) break;               \
    if ((status) == WF_OK) (status) = first; \
    torture_end();                           \
    assert_int_equal((call), WF_OK);         \
  } while (0)

static wf_status work_builder(const struct job *job, wf_error *err) {
  wf_builder *builder = NULL;
  wf_symbols *symbols = NULL;
  wf_fst *fst = NULL;
  wf_status status = WF_OK;
  char text[16];
  (void)job;
  AGAIN(status, wf_builder_create(WF_TROPICAL, &builder, err));
  AGAIN(status, wf_symbols_create("letters", &symbols, err));
  for (uint32_t s = 0; s < 40; s++) {
    AGAIN(status, wf_builder_add_states(builder, 1, NULL, err));
    AGAIN(status, wf_builder_add_arc(builder, s, (wf_arc){s, 1, (int32_t)s + 1, 0}, err));
    AGAIN(status, wf_builder_set_final(builder, s, (float)s, err));
    snprintf(text, sizeof text, "letter%u", (unsigned)s);
    AGAIN(status, wf_symbols_add(symbols, text, -1, NULL, err));
  }
  AGAIN(status, wf_builder_set_start(builder, 0, err));
  AGAIN(status, wf_builder_finish(builder, symbols, NULL, &fst, err));
  mix_fst(wf_fst_get_view(fst));
  for (uint32_t s = 0; s < 40; s++) {
    snprintf(text, sizeof text, "letter%u", (unsigned)s);
    mix((uint64_t)wf_symbols_find(symbols, text));
  }
  wf_fst_free(fst);
  wf_symbols_free(symbols);
  wf_builder_free(builder);
  return status;
}

static char lm_paths[2][512]; /* ARPA, .wlm */

static void make_lm_files(void) {
  static const char text[] =
      "\\data\\\nngram 1=5\nngram 2=3\nngram 3=1\n\\1-grams:\n-99 <s> -0.5\n-1 </s>\n-2 <unk>\n"
      "-0.5 a -0.2\n-0.6 b -0.3\n\\2-grams:\n-0.3 <s> a -0.1\n-0.2 a b\n-0.4 b a\n\\3-grams:\n"
      "-0.1 <s> a b\n\\end\\\n";
  wf_error err = {0};
  snprintf(lm_paths[0], sizeof lm_paths[0], "%s",
           test_write_file("lm.arpa", text, sizeof text - 1));
  snprintf(lm_paths[1], sizeof lm_paths[1], "%s", test_temp_path("lm.wlm"));
  assert_ok(wf_lm_convert(lm_paths[0], lm_paths[1], NULL, NULL, NULL, NULL, NULL, &err));
}

static wf_status open_lms(const struct job *job, wf_error *err) {
  wf_status status = WF_OK;
  (void)job;
  for (int i = 0; i < 2 && status == WF_OK; i++)
    status = wf_lm_open(lm_paths[i], NULL, NULL, &now.lms[i], NULL, NULL, err);
  return status;
}

/* Each model needs its other form. */
static wf_status work_lms(const struct job *job, wf_error *err) {
  wf_scorer *scorer = NULL;
  wf_fst *fst = NULL;
  wf_lm_info info;
  (void)job;
  wf_lm_info_init(&info);
  wf_status status = wf_scorer_from_lm(now.lms[0], NULL, NULL, &scorer, err);
  if (status == WF_OK) status = wf_lm_make_table(now.lms[0], NULL, err);
  if (status == WF_OK) status = wf_lm_get_info(now.lms[0], &info, err);
  if (status == WF_OK) status = wf_lm_to_fst(now.lms[1], NULL, &fst, err);
  mix(info.table_bytes);
  if (status == WF_OK) mix_fst(wf_fst_get_view(fst));
  wf_fst_free(fst);
  wf_scorer_free(scorer);
  return status;
}

/* --- torture ----------------------------------------------------------------------------- */

static void close_all(void) {
  for (int i = 0; i < 2; i++) wf_lm_free(now.lms[i]);
  for (int i = 0; i < 2; i++) wf_stream_free(now.streams[i]);
  wf_decoder_free(now.decoder);
  wf_graph_free(now.graph);
  wf_composer_free(now.composer);
  wf_beam_searcher_free(now.beam);
  wf_fst_batch_free(now.fsts);
  memset(&now, 0, sizeof now);
}

/* Runs `open`, then `work`. Sets *opened if `open` succeeded. */
static wf_status attempt(const struct job *job, bool *opened, wf_error *err) {
  *err = (wf_error){0};
  g_digest = 0;
  const wf_status status = job->open(job, err);
  *opened = status == WF_OK;
  return status == WF_OK ? job->work(job, err) : status;
}

/* Allocation n fails, with `forever` all after it. Then the same work is done again. Returns false
 * if there are fewer than n. */
static bool fail_once(const struct job *job, unsigned long n, bool forever, uint64_t want,
                      unsigned long *num_failed) {
  const long before = torture_live();
  wf_error err;
  bool opened;
  alarm(SECONDS);
  torture_begin(n, forever);
  const wf_status status = attempt(job, &opened, &err);
  const bool reached = torture_end() >= n;
  if (status != WF_OK && (status != WF_ERR_MEMORY || strstr(err.message, "memory") == NULL))
    fail_msg("%s, allocation %lu: status %d: %s", job->name, n, status, err.message);
  if (status == WF_OK && g_digest != want)
    fail_msg("%s, allocation %lu: another result", job->name, n);
  *num_failed += status != WF_OK;
  if (opened) {
    g_digest = 0;
    err = (wf_error){0};
    const wf_status again = job->work(job, &err);
    if (again != WF_OK || g_digest != want)
      fail_msg("%s, after allocation %lu: status %d, %s: %s", job->name, n, again,
               g_digest == want ? "right" : "another result", err.message);
  }
  close_all();
  if (torture_live() != before)
    fail_msg("%s, allocation %lu: %ld blocks are not freed", job->name, n, torture_live() - before);
  return reached;
}

struct tally {
  unsigned long runs, failed; /* runs with a failing allocation; those that returned an error */
};

static void torture(const struct job *job, struct tally *tally) {
  wf_error err;
  bool opened;
  unsigned long n = 1;
  assert_ok(attempt(job, &opened, &err));
  const uint64_t want = g_digest;
  close_all();
  for (bool reached = true; reached; n++) {
    reached = fail_once(job, n, false, want, &tally->failed);
    (void)fail_once(job, n, true, want, &tally->failed);
    tally->runs += reached ? 2 : 0;
  }
}

static const struct job jobs[] = {
    {"batch", open_decoder, work_batch, PLAIN},
    {"batch with scorers", open_decoder, work_batch, SCORED},
    {"batch with lattices", open_decoder, work_batch, LATTICES},
    {"batch with determinized lattices", open_decoder, work_batch, DETERMINIZED},
    {"batch with added words", open_decoder, work_batch, WORDS},
    {"streams", open_streams, work_streams, PLAIN},
    {"streams with scorers", open_streams, work_streams, SCORED},
    {"streams with lattices", open_streams, work_streams, LATTICES},
    {"streams with added words", open_streams, work_streams, WORDS},
    {"recurrent scorers", open_chains, work_chains, 0},
    {"transducer", open_transducer, work_transducer, PLAIN},
    {"transducer with lattices", open_transducer, work_transducer, LATTICES},
    {"transducer stream", open_transducer_stream, work_transducer_stream, PLAIN},
    {"composer", open_composer, work_composer, 0},
    {"beam search, lexicon", open_lexicon, work_steps, 0},
    {"beam search, texts", open_texts, work_texts, 0},
    {"batch of fsts", open_fsts, work_fsts, 0},
    {"forms of language models", open_lms, work_lms, 0},
    {"builder and symbols", open_nothing, work_builder, 0},
    {"rewrite rule", open_nothing, work_rule, 0},
};

static void run_jobs(uint64_t seed, struct tally *tallies) {
  const char *only = getenv("TORTURE_ONLY"); /* the name of a job */
  test_rng rng = {seed};
  make_decoding(seed);
  make_chain_task(seed, &rng, &chains);
  make_lm_files();
  make_transducer(seed, &rng);
  f[0] = test_fst_of(WF_TROPICAL, "0 1 1 2 1\n0 2 2 2 1\n1 1 1 1 3\n1 2 3 1 1\n2\n");
  f[1] = test_fst_of(WF_TROPICAL, "0 1 0 0 1\n0 2 2 2 1\n1 1 1 1 3\n1 2 0 0 1\n2 3 1 1 1\n3\n");
  make_rule_parts();
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
    if (only == NULL || strcmp(only, jobs[i].name) == 0) torture(&jobs[i], &tallies[i]);
  for (int i = 0; i < 2; i++) wf_fst_free(f[i]);
  for (int i = 0; i < 4; i++) wf_fst_free(rule_parts[i]);
  free_transducer();
  free_chain_task(&chains);
  free_decoding();
}

static void test_jobs(void **state) {
  struct tally tallies[sizeof jobs / sizeof *jobs] = {{0}};
  const uint64_t num_seeds = test_seeds(2);
  (void)state;
  if (torture_begin == NULL) skip();
  for (uint64_t seed = 1; seed <= num_seeds; seed++) run_jobs(seed, tallies);
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
    printf("%-34s %6lu runs, %6lu returned WF_ERR_MEMORY\n", jobs[i].name, tallies[i].runs,
           tallies[i].failed);
    assert_true(getenv("TORTURE_ONLY") != NULL || tallies[i].failed > tallies[i].runs / 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
