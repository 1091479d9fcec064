/* test_triton_backend.c - the backend for Triton Inference Server, called in this process by the
 * stand-in of triton_host.c: results against wf_decode, partial results against single streams,
 * errors, sequences that clients abandon, metrics, and a server whose functions fail. Compiled as
 * test_gpu_triton, the backend works on a GPU and must give what the CPU gives; with a transducer,
 * what a decoder on the same GPU gives. */
#include <time.h>

#include "decode_tasks.h"
#include "random_transducers.h"
#include "triton_host.h"

#ifndef TRITON_DEVICE
#define TRITON_DEVICE "cpu"
#endif

enum { NUM_COLUMNS = 5, NUM_WORDS = 6, NUM_UTTERANCES = 12, MAX_FRAMES = 30 };

/* A model with a random graph, and the same graph for the library's own decoder. */
struct model {
  wf_graph *graph;
  wf_decoder *decoder;
  char *json;
};

/* Boosts would make the cost of a cycle of epsilons negative. */
static bool no_epsilon(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->ilabel == 0) arc->ilabel = 1;
  return true;
}

/* Makes the graph of the fst, which it frees, and files of it and of its words. */
static wf_graph *save_graph(wf_fst *fst, const char **graph, const char **words) {
  static const char table[] = "<eps> 0\nONE 1\nTWO 2\nTHREE 3\nFOUR 4\nFIVE 5\nSIX 6\n";
  wf_error err = {0};
  wf_graph *out;
  *graph = test_save_fst(fst, "graph.fst");
  *words = test_write_file("words.txt", table, sizeof table - 1);
  assert_ok(wf_graph_create(fst, NULL, 0, &out, &err));
  wf_fst_free(fst);
  return out;
}

static struct model make_model(uint64_t seed, const char *more) {
  struct model model;
  wf_error err = {0};
  test_rng rng = {seed};
  const test_fst_shape shape = {.num_states = 20,
                                .num_arcs = 80,
                                .num_ilabels = NUM_COLUMNS,
                                .num_olabels = NUM_WORDS,
                                .epsilon_share = 0.2f,
                                .final_share = 0.5f,
                                .max_weight = 2};
  wf_fst *fst = test_changed_fst(test_random_fst(&rng, &shape), &rng, no_epsilon);
  const char *graph, *words;
  model.graph = save_graph(fst, &graph, &words);
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.beam = 6;
  options.num_threads = 2;
  options.check_scores = 2; /* off: the scores are made up */
  assert_ok(wf_decoder_create(model.graph, &options, &model.decoder, &err));
  size_t size = 1024 + strlen(graph) + strlen(words);
  model.json = malloc(size);
  snprintf(model.json, size,
           "{\"name\": \"test\", \"max_batch_size\": 64, \"sequence_batching\": {\"oldest\": "
           "{\"max_candidate_sequences\": 9}, \"max_sequence_idle_microseconds\": \"100000\"}, "
           "\"parameters\": {\"graph\": {\"string_value\": \"%s\"}, \"words\": {\"string_value\": "
           "\"%s\"}, \"beam\": {\"string_value\": \"6\"}, \"num_threads\": {\"string_value\": "
           "\"2\"}, \"device\": {\"string_value\": \"" TRITON_DEVICE
           "\"}, \"check_scores\": {\"string_value\": \"off\"}, \"frame_shift\": "
           "{\"string_value\": \"0.5\"}%s}}",
           graph, words, more);
  return model;
}

/* A random transducer, whose encoder outputs have NUM_COLUMNS columns. */
static struct model make_transducer_model(uint64_t seed) {
  struct model model;
  wf_error err = {0};
  test_rng rng = {seed};
  char file[512];
  wf_transducer_options defaults;
  transducer_shape s = random_transducer_shape(&rng, seed);
  s.encoder = NUM_COLUMNS;
  s.num_tokens = 6;
  s.padded = false;
  wf_transducer_free(random_transducer(&rng, &s)); /* with an activation that the file has not */
  snprintf(file, sizeof file, "%s.safetensors", test_temp_path("transducer"));
  wf_transducer *transducer;
  wf_transducer_options_init(&defaults);
  assert_ok(wf_transducer_open(file, &defaults, &transducer, &err));
  wf_fst *fst = test_transducer_graph(&rng, s.num_tokens, NUM_WORDS, 4);
  const char *graph, *words;
  model.graph = save_graph(fst, &graph, &words);
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.beam = 6;
  options.num_threads = 2;
  options.device = TRITON_DEVICE; /* a GPU's log-probabilities are not the CPU's, bit for bit */
  assert_ok(wf_decoder_create_transducer(model.graph, transducer, &options, &model.decoder, &err));
  wf_transducer_free(transducer);
  const size_t size = 1024 + strlen(graph) + strlen(words) + strlen(file);
  model.json = malloc(size);
  snprintf(model.json, size,
           "{\"name\": \"test\", \"max_batch_size\": 64, \"sequence_batching\": {\"oldest\": {}, "
           "\"max_sequence_idle_microseconds\": \"100000000\"}, \"parameters\": {\"graph\": "
           "{\"string_value\": \"%s\"}, \"words\": {\"string_value\": \"%s\"}, \"transducer\": "
           "{\"string_value\": \"%s\"}, \"beam\": {\"string_value\": \"6\"}, \"num_threads\": "
           "{\"string_value\": \"2\"}, \"device\": {\"string_value\": \"" TRITON_DEVICE
           "\"}, \"frame_shift\": {\"string_value\": \"0.5\"}}}",
           graph, words, file);
  return model;
}

static void free_model(struct model *model) {
  wf_decoder_free(model->decoder);
  wf_graph_free(model->graph);
  free(model->json);
}

static triton_host *open_host(const struct model *model) {
  char reason[512];
  triton_host *host = host_open(model->json, "/nowhere", reason);
  if (host == NULL) fail_msg("%s", reason);
  return host;
}

static void random_scores(test_rng *rng, float *data, wf_scores *scores) {
  *scores = (wf_scores){data, 1 + test_below(rng, MAX_FRAMES), NUM_COLUMNS, NUM_COLUMNS};
  for (int64_t i = 0; i < scores->num_frames * NUM_COLUMNS; i++) data[i] = -test_unit(rng) * 4;
}

/* The phrases "ONE TWO" with 1.5 and "THREE" with 0.75. */
static const char boost_lines[] = "ONE TWO 1.5\nTHREE NEVERHEARD 9\nTHREE 0.75";
static wf_scorer *boost_scorer(void) {
  wf_error err = {0};
  wf_scorer *scorer;
  assert_ok(wf_scorer_boost_phrases((const int32_t[]){1, 2, 3}, (const uint64_t[]){0, 2, 3},
                                    (const float[]){1.5f, 0.75f}, 2, &scorer, &err));
  return scorer;
}

/* --- what the outputs must be ------------------------------------------------------------ */

static int32_t number(const host_response *response, const char *name) {
  const host_output *output = host_output_of(response, name);
  assert_non_null(output);
  assert_int_equal(output->type, TRITON_INT32);
  assert_int_equal(output->num_bytes, 4);
  int32_t value;
  memcpy(&value, output->data, 4);
  return value;
}

/* Asserts that an output holds these strings, each after its length. */
static void expect_strings(const host_output *output, const char *const *strings, size_t count) {
  const char *at = output->data, *end = at + output->num_bytes;
  assert_int_equal(output->type, TRITON_BYTES);
  for (size_t i = 0; i < count; i++) {
    uint32_t size;
    assert_true(end - at >= 4);
    memcpy(&size, at, 4);
    assert_int_equal(size, strlen(strings[i]));
    assert_true(end - at - 4 >= (ptrdiff_t)size);
    assert_memory_equal(at + 4, strings[i], size);
    at += 4 + size;
  }
  assert_ptr_equal(at, end);
}

static void expect_words(const host_response *response, const wf_word *words, size_t count) {
  static const char *const names[] = {"", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX"};
  const char *strings[200];
  char text[1400] = "";
  assert_true(count <= 200);
  for (size_t i = 0; i < count; i++) {
    strings[i] = names[words[i].label];
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "", strings[i]);
  }
  expect_strings(host_output_of(response, "WORDS"), strings, count);
  expect_strings(host_output_of(response, "TEXT"), (const char *const[]){text}, 1);
  const host_output *frames = host_output_of(response, "FRAMES");
  assert_int_equal(frames->num_dims, 3);
  assert_int_equal(frames->shape[1], count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(((int32_t *)frames->data)[2 * i], words[i].start_frame);
    assert_int_equal(((int32_t *)frames->data)[2 * i + 1], words[i].end_frame);
  }
}

static void expect_flags(const host_response *response, uint32_t flags) {
  char text[64] = "";
  static const char *const names[] = {"not_final", "narrowed", "died", "overflow"};
  for (size_t i = 0; i < 4; i++)
    if ((flags >> i & 1) != 0)
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text != '\0' ? "," : "",
               names[i]);
  assert_string_equal(response->flags, text);
  assert_int_equal(number(response, "FLAGS"), flags);
}

/* --- tests ------------------------------------------------------------------------------- */

struct utterance {
  float data[MAX_FRAMES * NUM_COLUMNS];
  wf_scores scores;
  int64_t num_sent;
  bool boosted, begun;
  char id[16];
  wf_stream *alone; /* gets the same chunks, one call each */
};

/* Checks the response to the chunk of `size` frames that was sent last. */
static void check_chunk(const struct model *model, struct utterance *utterance, int64_t size,
                        const wf_scorer *boosts, const host_response *response) {
  wf_error err = {0};
  wf_partial partial;
  wf_result *result;
  wf_scores chunk = test_rows(&utterance->scores, utterance->num_sent, size);
  assert_true(response->sent);
  assert_string_equal(response->error, "");
  utterance->num_sent += size;
  if (utterance->num_sent < utterance->scores.num_frames) {
    wf_stream_event event;
    assert_ok(wf_stream_advance(utterance->alone, &chunk, &event, &err));
    assert_ok(wf_stream_partial(utterance->alone, &partial, &err));
    expect_words(response, partial.words, partial.num_words);
    expect_flags(response, partial.flags);
    assert_int_equal(number(response, "STABLE"), partial.num_stable);
    assert_int_equal(number(response, "ENDPOINT"), event.endpoint);
    return;
  }
  const wf_utterance whole = {.scores = utterance->scores,
                              .scorer = utterance->boosted ? boosts : NULL};
  assert_ok(wf_decode(model->decoder, &whole, 1, NULL, &result, &err));
  expect_words(response, result->words, result->num_words);
  expect_flags(response, result->flags);
  float cost;
  memcpy(&cost, host_output_of(response, "COST")->data, 4);
  test_assert_close(cost, result->cost, 1e-4);
  wf_result_free(result);
}

/* Sends utterances chunk by chunk. Every batch has those that are not at their end. */
static void check_streams(uint64_t seed, bool transducer) {
  wf_error err = {0};
  test_rng rng = {seed};
  struct model model = transducer ? make_transducer_model(seed) : make_model(seed, "");
  triton_host *host = open_host(&model);
  wf_scorer *boosts = boost_scorer();
  struct utterance utterances[NUM_UTTERANCES] = {0};
  double num_frames = 0;
  wf_stream_options options;
  wf_stream_options_init(&options);
  options.frame_shift = 0.5f; /* as in the configuration; transducers have endpoints */
  for (int i = 0; i < NUM_UTTERANCES; i++) {
    struct utterance *utterance = &utterances[i];
    random_scores(&rng, utterance->data, &utterance->scores);
    num_frames += (double)utterance->scores.num_frames;
    utterance->boosted = test_below(&rng, 2) == 0;
    snprintf(utterance->id, sizeof utterance->id, "call %d", i);
    assert_ok(wf_stream_create(model.decoder, &options, &utterance->alone, &err));
    if (utterance->boosted) assert_ok(wf_stream_set_scorer(utterance->alone, boosts, &err));
  }
  for (uint32_t count = 1; count > 0;) {
    host_request requests[NUM_UTTERANCES];
    host_response responses[NUM_UTTERANCES];
    int who[NUM_UTTERANCES];
    count = 0;
    for (int i = 0; i < NUM_UTTERANCES; i++) {
      struct utterance *of = &utterances[i];
      int64_t left = of->scores.num_frames - of->num_sent, size = test_below(&rng, 8);
      if (left == 0) continue;
      if (size > left) size = left;
      who[count] = i;
      requests[count++] = (host_request){.id = (uint64_t)i + 1,
                                         .text_id = i % 2 == 0 ? of->id : NULL,
                                         .starts = !of->begun,
                                         .ends = size == left,
                                         .scores = test_rows(&of->scores, of->num_sent, size),
                                         .boosts = !of->begun && of->boosted ? boost_lines : NULL,
                                         .boosts_in_tensor = i % 2 == 0,
                                         .in_pieces = i % 3 == 0};
      of->begun = true;
    }
    if (count == 0) break;
    host_execute(host, requests, count, responses);
    assert_true(host_metric("warpfst_batch_size") == count);
    for (uint32_t k = 0; k < count; k++)
      check_chunk(&model, &utterances[who[k]], requests[k].scores.num_frames, boosts,
                  &responses[k]);
    host_free_responses(responses, count);
  }
  assert_true(host_metric("warpfst_sequences") == 0);
  test_assert_close(host_metric("warpfst_audio_seconds_total"), 0.5 * num_frames, 1e-6);
  assert_true(host_metric("warpfst_busy_seconds_total") > 0 && host_metric("warpfst_rtfx") > 0);
  for (int i = 0; i < NUM_UTTERANCES; i++) wf_stream_free(utterances[i].alone);
  wf_scorer_free(boosts);
  host_close(host);
  free_model(&model);
  assert_int_equal(host_num_alive(), 0);
}

static void test_small_streams(void **state) {
  for (uint64_t seed = 1; seed <= test_seeds(20); seed++) check_streams(seed, false);
}

/* Encoder outputs in, words out. */
static void test_small_transducer_streams(void **state) {
  for (uint64_t seed = 1; seed <= test_seeds(20); seed++) check_streams(seed, true);
}

static void execute_one(triton_host *host, host_request request, host_response *response) {
  host_execute(host, &request, 1, response);
  assert_true(response->sent);
}

/* An utterance that dies has flags, also for a client that asks for its text alone. */
static void test_died(void **state) {
  struct model model = make_model(1, "");
  triton_host *host = open_host(&model);
  float data[2 * NUM_COLUMNS];
  for (size_t i = 0; i < 2 * NUM_COLUMNS; i++) data[i] = -INFINITY;
  host_response response;
  host_request request = {.id = 7, .starts = true, .scores = {data, 2, NUM_COLUMNS, NUM_COLUMNS}};
  execute_one(host, request, &response);
  expect_flags(&response, WF_RESULT_DIED);
  host_free_responses(&response, 1);
  assert_true(host_metric("warpfst_utterances_died_total") == 0);
  request.starts = false;
  request.ends = true;
  request.outputs[0] = "TEXT";
  execute_one(host, request, &response);
  assert_string_equal(response.error, "");
  assert_int_equal(response.num_outputs, 1);
  assert_non_null(strstr(response.flags, "died"));
  host_free_responses(&response, 1);
  assert_true(host_metric("warpfst_utterances_died_total") == 1);
  host_close(host);
  free_model(&model);
}

/* A request that fails ends its sequence with an error; others of the batch go on. */
static void test_errors(void **state) {
  struct model model = make_model(2, "");
  triton_host *host = open_host(&model);
  float good[3 * NUM_COLUMNS] = {0}, bad[3 * NUM_COLUMNS] = {0};
  bad[NUM_COLUMNS] = NAN;
  const wf_scores scores = {good, 3, NUM_COLUMNS, NUM_COLUMNS},
                  with_nan = {bad, 3, NUM_COLUMNS, NUM_COLUMNS}, narrow = {good, 3, 2, 2};
  const struct {
    host_request request;
    const char *error;
  } cases[] = {
      {{.id = 1, .starts = true, .scores = scores}, ""},
      {{.id = 2, .starts = true, .scores = with_nan}, "NaN"},
      {{.id = 3, .starts = true, .ends = true, .scores = with_nan}, "NaN"},
      {{.id = 4, .starts = true, .scores = narrow}, "columns"},
      {{.id = 5, .scores = scores}, "not started"},
      {{.id = 6, .starts = true, .scores = scores, .boosts = " "}, "expected `word word"},
      {{.id = 9,
        .starts = true,
        .scores = scores,
        .boosts = "ONE 2\n \nTWO",
        .boosts_in_tensor = true},
       "expected `word word"},
      {{.id = 7, .starts = true, .scores = scores, .outputs = {"NOTHING"}}, "unknown output"},
      {{.id = 8, .starts = true, .scores = scores}, ""},
      {{.id = 8, .scores = scores}, "two requests of one sequence"},
      {{.scores = scores}, ""}, /* no id: a whole utterance */
  };
  enum { COUNT = sizeof cases / sizeof *cases };
  host_request requests[COUNT];
  host_response responses[COUNT];
  for (int i = 0; i < COUNT; i++) requests[i] = cases[i].request;
  host_execute(host, requests, COUNT, responses);
  for (int i = 0; i < COUNT; i++) {
    assert_true(responses[i].sent);
    if (strstr(responses[i].error, cases[i].error) == NULL ||
        (*cases[i].error == '\0') != (responses[i].error[0] == '\0'))
      fail_msg("case %d: '%s', expected '%s'", i, responses[i].error, cases[i].error);
  }
  host_free_responses(responses, COUNT);
  /* 1 and 8 are open, and 7, whose outputs alone were wrong. */
  assert_true(host_metric("warpfst_sequences") == 3);
  host_response response;
  execute_one(host, (host_request){.id = 2, .scores = scores}, &response);
  assert_non_null(strstr(response.error, "not started"));
  host_close(host);
  free_model(&model);
  assert_int_equal(host_num_alive(), 0);
}

/* Unknown words are named in the server's log, once for each list, and cost the request nothing
 * else. */
static void test_unknown_words(void **state) {
  struct model model = make_model(4, ", \"silence\": {\"string_value\": \"0\"}");
  char warning[512];
  triton_host *host = open_host(&model);
  float data[3 * NUM_COLUMNS] = {0};
  const wf_scores scores = {data, 3, NUM_COLUMNS, NUM_COLUMNS};
  host_warnings(warning);
  for (int tensor = 0; tensor < 2; tensor++) {
    host_response response;
    execute_one(host,
                (host_request){.id = 1,
                               .starts = true,
                               .scores = scores,
                               .boosts = "ONE TWO 1.5\nZORBLAX\nTHREE NEVERHEARD 9\nTHREE",
                               .boosts_in_tensor = tensor},
                &response);
    assert_string_equal(response.error, "");
    host_free_responses(&response, 1);
    assert_int_equal(host_warnings(warning), 1);
    assert_non_null(strstr(warning, "2 of 4 phrases ignored"));
    assert_non_null(strstr(warning, "'ZORBLAX', 'NEVERHEARD'"));
  }
  host_close(host);
  free_model(&model);
}

/* A second request of a sequence in one batch fails, and does not touch the first, although it
 * starts the sequence again. */
static void test_twice_in_a_batch(void **state) {
  struct model model = make_model(3, "");
  triton_host *host = open_host(&model);
  wf_scorer *boosts = boost_scorer();
  wf_error err = {0};
  wf_result *result;
  test_rng rng = {8};
  float data[MAX_FRAMES * NUM_COLUMNS];
  wf_scores scores;
  random_scores(&rng, data, &scores);
  const host_request requests[2] = {
      {.id = 5, .starts = true, .ends = true, .scores = scores, .boosts = boost_lines},
      {.id = 5, .starts = true, .scores = test_rows(&scores, 0, 1)}};
  host_response responses[2];
  host_execute(host, requests, 2, responses);
  assert_string_equal(responses[0].error, "");
  assert_non_null(strstr(responses[1].error, "two requests of one sequence"));
  const wf_utterance whole = {.scores = scores, .scorer = boosts};
  assert_ok(wf_decode(model.decoder, &whole, 1, NULL, &result, &err));
  assert_true(result->scorer_cost != 0);
  expect_words(&responses[0], result->words, result->num_words);
  float cost;
  memcpy(&cost, host_output_of(&responses[0], "COST")->data, 4);
  test_assert_close(cost, result->cost, 1e-4);
  wf_result_free(result);
  host_free_responses(responses, 2);
  wf_scorer_free(boosts);
  host_close(host);
  free_model(&model);
}

static void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

/* A sequence that is idle for twice the 0.1 s of the configuration is freed when the next request
 * comes. The sequence of that request is not, however long it was idle. */
static void test_idle(void **state) {
  struct model model = make_model(3, "");
  triton_host *host = open_host(&model);
  float data[NUM_COLUMNS] = {0};
  host_request request = {.starts = true, .scores = {data, 1, NUM_COLUMNS, NUM_COLUMNS}};
  host_response response;
  for (request.id = 1; request.id <= 3; request.id++) {
    execute_one(host, request, &response);
    host_free_responses(&response, 1);
  }
  double abandoned =
      host_metric("warpfst_sequences_abandoned_total"); /* 0, but on a slow machine */
  assert_true(host_metric("warpfst_sequences") + abandoned == 3);
  sleep_ms(400);
  request.id = 3;
  request.starts = false;
  execute_one(host, request, &response);
  assert_string_equal(response.error, "");
  host_free_responses(&response, 1);
  assert_true(host_metric("warpfst_sequences") == 1);
  assert_true(host_metric("warpfst_sequences_abandoned_total") == 2);
  request.id = 1;
  execute_one(host, request, &response);
  assert_non_null(strstr(response.error, "dropped because it was idle"));
  host_close(host);
  free_model(&model);
}

/* With max_sequences, a new sequence replaces the one that was used least recently. */
static void test_max_sequences(void **state) {
  struct model model = make_model(4, ", \"max_sequences\": {\"string_value\": \"2\"}");
  triton_host *host = open_host(&model);
  float data[NUM_COLUMNS] = {0};
  const wf_scores scores = {data, 1, NUM_COLUMNS, NUM_COLUMNS};
  static const struct {
    uint64_t id;
    bool starts, fails;
  } steps[] = {{1, true}, {2, true}, {1, false}, {3, true}, {2, false, true}, {1, false}, {3}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    host_response response;
    execute_one(host,
                (host_request){.id = steps[i].id, .starts = steps[i].starts, .scores = scores},
                &response);
    assert_int_equal(response.error[0] != '\0', steps[i].fails);
    host_free_responses(&response, 1);
  }
  assert_true(host_metric("warpfst_sequences") == 2);
  /* All three of a batch are kept. */
  host_request requests[3];
  host_response responses[3];
  for (uint64_t i = 0; i < 3; i++)
    requests[i] = (host_request){.id = 10 + i, .starts = true, .scores = scores};
  host_execute(host, requests, 3, responses);
  for (int i = 0; i < 3; i++) assert_string_equal(responses[i].error, "");
  host_free_responses(responses, 3);
  host_close(host);
  free_model(&model);
}

static void test_refused(void **state) {
  static const struct {
    const char *more, *reason;
  } cases[] = {{", \"bean\": {\"string_value\": \"6\"}", "no such parameter: bean"},
               {", \"max_sequences\": {\"string_value\": \"0\"}", "max_sequences"},
               {", \"acoustic_scale\": {\"string_value\": \"loud\"}", "acoustic_scale"},
               {", \"am\": {\"string_value\": \"missing.mdl\"}", "missing.mdl"},
               {", \"transducer\": {\"string_value\": \"no.safetensors\"}", "no.safetensors"},
               {", \"am\" {", "cannot parse"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct model model = make_model(5, cases[i].more);
    char reason[512];
    assert_null(host_open(model.json, "/nowhere", reason));
    if (strstr(reason, cases[i].reason) == NULL) fail_msg("%s: %s", cases[i].more, reason);
    free_model(&model);
    assert_int_equal(host_num_alive(), 0);
  }
}

/* One batch with a sequence that starts and one that ends. Returns whether the model was loaded. */
static bool run_batch(const struct model *model) {
  float data[4 * NUM_COLUMNS] = {0};
  const wf_scores scores = {data, 4, NUM_COLUMNS, NUM_COLUMNS};
  const host_request requests[] = {
      {.id = 1, .starts = true, .scores = scores, .boosts = boost_lines},
      {.text_id = "two",
       .starts = true,
       .ends = true,
       .scores = scores,
       .boosts = boost_lines,
       .boosts_in_tensor = true,
       .in_pieces = true}};
  host_response responses[2];
  char reason[512];
  triton_host *host = host_open(model->json, "/nowhere", reason);
  if (host == NULL) return false;
  host_execute(host, requests, 2, responses);
  host_free_responses(responses, 2);
  host_close(host);
  return true;
}

/* Each call of the server's functions fails once. Whatever happens, the backend releases all
 * requests, errors and metrics. */
static void test_failing_server(void **state) {
  struct model model = make_model(6, "");
  host_fail_at(0);
  assert_true(run_batch(&model));
  int num_calls = host_fail_at(0), num_refused = 0;
  assert_true(num_calls > 80);
  for (int n = 1; n <= num_calls; n++) {
    host_fail_at(n);
    num_refused += !run_batch(&model);
    assert_int_equal(host_num_alive(), 0);
  }
  host_fail_at(0);
  assert_in_range(num_refused, 5, 15); /* without metrics a model is loaded all the same */
  free_model(&model);
}

int main(int argc, char **argv) {
  if (strcmp(TRITON_DEVICE, "cpu") != 0 && test_no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_streams),
                                     cmocka_unit_test(test_small_transducer_streams),
                                     cmocka_unit_test(test_died),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_twice_in_a_batch),
                                     cmocka_unit_test(test_idle),
                                     cmocka_unit_test(test_max_sequences),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_unknown_words),
                                     cmocka_unit_test(test_failing_server)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
