/* fuzz_triton.c - sequences of batches of requests to the Triton backend, with the stand-in for the
 * server of tests/. Every response must be that of a stream which gets the same calls alone, and
 * the last one of a sequence whose boosts came before its first frame that of decoding at once. */
#include <unistd.h>

#include "call_sequences.h"
#include "triton_host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NUM_IDS = 4, MAX_FRAMES = 32, NUM_GRAPHS = 4, MAX_BATCH = 5, NUM_BOOSTS = 5 };

/* --- the models, made once ------------------------------------------------------------------ */

struct model {
  wf_graph *graph;
  wf_scorer *scorers[NUM_BOOSTS];
  char json[2048];
};

/* Lines of boosts, the same as phrases, and whether the backend must refuse them. */
static const struct {
  const char *lines, *phrases[2];
  float boosts[2];
  size_t count;
  bool bad;
} g_boosts[NUM_BOOSTS] = {
    {NULL, {NULL}, {0}, 0, false},
    {"ONE TWO 1.5\nTHREE 0.75", {"ONE TWO", "THREE"}, {1.5f, 0.75f}, 2, false},
    {"TWO 2\nTHREE NEVER 9", {"TWO", "THREE NEVER"}, {2, 9}, 2, false},
    {"NEVER 1", {"NEVER"}, {1}, 1, false},
    {"ONE 1\n  \nTWO", {NULL}, {0}, 0, true}};
static struct model g_models[NUM_GRAPHS];
static char g_folder[] = "/tmp/fuzz_triton_XXXXXX";

static void remove_files(void) {
  char path[sizeof g_folder + 16];
  for (int i = 0; i <= NUM_GRAPHS; i++) {
    snprintf(path, sizeof path, i < NUM_GRAPHS ? "%s/%d.fst" : "%s/words", g_folder, i);
    unlink(path);
  }
  rmdir(g_folder);
  for (int i = 0; i < NUM_GRAPHS; i++) {
    wf_graph_free(g_models[i].graph);
    for (int b = 0; b < NUM_BOOSTS; b++) wf_scorer_free(g_models[i].scorers[b]);
  }
}

/* Made as the backend makes them: contexts with other numbers would decide ties otherwise. */
static wf_scorer *make_boosts(const wf_graph *graph, const wf_symbols *table, int b) {
  wf_error err;
  wf_scorer *scorer;
  wf_phrase_list list;
  wf_phrase_list_init(&list);
  list.phrases = g_boosts[b].phrases;
  list.boosts = g_boosts[b].boosts;
  list.count = g_boosts[b].count;
  list.words = table;
  list.tokens = wf_fst_isymbols(wf_graph_fst(graph));
  CHECK_OK(wf_scorer_boost_texts(&list, &scorer, &err));
  return scorer;
}

static void make_models(void) {
  wf_error err;
  wf_symbols *table;
  char path[sizeof g_folder + 16];
  CHECK(mkdtemp(g_folder) != NULL && atexit(remove_files) == 0);
  snprintf(path, sizeof path, "%s/words", g_folder);
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs("<eps> 0\nONE 1\nTWO 2\nTHREE 3\n", file) >= 0 && fclose(file) == 0);
  CHECK_OK(wf_symbols_read(path, &table, &err));
  for (int i = 0; i < NUM_GRAPHS; i++) {
    struct model *m = &g_models[i];
    m->graph = random_graph((uint64_t)i * 77 + 5, false);
    snprintf(path, sizeof path, "%s/%d.fst", g_folder, i);
    CHECK_OK(wf_fst_write(wf_graph_fst(m->graph), path, WF_FORMAT_NATIVE, &err));
    for (int b = 0; b < NUM_BOOSTS; b++)
      if (g_boosts[b].lines != NULL && !g_boosts[b].bad)
        m->scorers[b] = make_boosts(m->graph, table, b);
    snprintf(m->json, sizeof m->json,
             "{\"name\": \"test\", \"max_batch_size\": 64, \"sequence_batching\": {\"oldest\": {}, "
             "\"max_sequence_idle_microseconds\": \"100000000\"}, \"parameters\": {"
             "\"graph\": {\"string_value\": \"%s\"}, \"words\": {\"string_value\": \"%s/words\"}, "
             "\"beam\": {\"string_value\": \"%d\"}, \"num_threads\": {\"string_value\": \"1\"}, "
             "\"lattice_beam\": {\"string_value\": \"%d\"}, "
             "\"check_scores\": {\"string_value\": \"off\"}, "
             "\"frame_shift\": {\"string_value\": \"0.5\"}}}",
             path, g_folder, 4 + i, i % 2 * 3);
  }
  wf_symbols_free(table);
}

/* --- sequences, and what is expected of them ------------------------------------------------- */

struct sequence {
  wf_stream *stream; /* gets the same calls; NULL: it is not open */
  float scores[MAX_FRAMES * NUM_COLUMNS];
  int64_t fed;
  int boosts;
  bool changed; /* boosts, in mid-utterance */
  bool in_batch;
};

struct world {
  const struct model *model;
  wf_decoder *decoder;
  triton_host *host;
  uint64_t seed;
  bool has_lattices;
  struct sequence sequences[NUM_IDS + 1]; /* 0: requests without an id, one at a time */
};

struct job {
  struct sequence *of; /* NULL: an error is expected at once */
  int boosts;
  wf_scores chunk;
  float bad[NUM_COLUMNS];
};

static void drop(struct sequence *s) {
  wf_stream_free(s->stream);
  s->stream = NULL;
}

static void begin(struct world *w, struct sequence *s) {
  wf_error err;
  wf_stream_options options;
  wf_stream_options_init(&options);
  options.frame_shift = 0.5f;
  drop(s);
  CHECK_OK(wf_stream_create(w->decoder, &options, &s->stream, &err));
  s->fed = 0;
  s->boosts = 0;
  s->changed = false;
  for (int i = 0; i < MAX_FRAMES * NUM_COLUMNS; i++)
    s->scores[i] = -(float)below(&w->seed, 64) / 16;
}

static wf_scores choose_chunk(struct sequence *s, struct job *job, bytes *in) {
  const int64_t left = MAX_FRAMES - s->fed, count = take(in, 5);
  wf_scores chunk = rows_of(s->scores, s->fed, count < left ? count : left, NUM_COLUMNS);
  const uint32_t kind = take(in, 24);
  if (kind == 0 && chunk.num_frames > 0) {
    for (int c = 0; c < NUM_COLUMNS; c++) job->bad[c] = NAN;
    chunk.data = job->bad;
    chunk.num_frames = 1;
  }
  if (kind == 1) chunk.num_columns = 1;
  return chunk;
}

static host_request make_request(struct world *w, struct job *job, bool *alone, bytes *in) {
  const uint32_t id = take(in, NUM_IDS + 1), kind = take(in, 8);
  struct sequence *s = &w->sequences[id];
  host_request request = {.id = id, .starts = kind < 3, .ends = kind == 2 || kind == 3};
  if (id == 0 && *alone) request.id = NUM_IDS; /* another without an id would need another array */
  if (id == 0) *alone = true;
  s = &w->sequences[request.id];
  *job = (struct job){.of = s, .boosts = (int)take(in, NUM_BOOSTS)};
  if (take(in, 2) == 0) job->boosts = 0;
  const bool starts = request.starts || request.id == 0;
  if (s->in_batch || (s->stream == NULL && !starts)) {
    job->of = NULL;
    request.scores = rows_of(s->scores, 0, 1, NUM_COLUMNS);
    return request;
  }
  if (starts) begin(w, s);
  s->in_batch = true;
  request.ends = request.ends || request.id == 0;
  job->chunk = request.scores = choose_chunk(s, job, in);
  request.boosts = g_boosts[job->boosts].lines;
  request.boosts_in_tensor = take(in, 2);
  request.in_pieces = take(in, 4) == 0;
  return request;
}

/* Does the stream what the request asks for. False: it has failed. */
static bool follow(struct world *w, struct job *job) {
  wf_error err;
  wf_stream_event event;
  struct sequence *s = job->of;
  if (g_boosts[job->boosts].bad) return false;
  if (job->boosts > 0) { /* the backend makes a scorer of its own each time */
    if (w->has_lattices && s->fed > 0) return false;
    if (wf_stream_set_scorer(s->stream, w->model->scorers[job->boosts], &err) != WF_OK)
      return false;
    s->changed = s->changed || s->fed > 0;
    s->boosts = job->boosts;
  }
  CHECK_OK(wf_stream_advance(s->stream, &job->chunk, &event, &err));
  s->fed += job->chunk.num_frames;
  return true;
}

/* --- responses ------------------------------------------------------------------------------- */

static void check_text(const host_response *response, const wf_word *words, size_t count) {
  static const char *const names[] = {"", "ONE", "TWO", "THREE"};
  char text[2048] = "";
  size_t size = 0;
  uint32_t length;
  for (size_t i = 0; i < count; i++)
    size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", i > 0 ? " " : "",
                             names[words[i].label]);
  const host_output *out = host_output_of(response, "TEXT");
  CHECK(out != NULL && out->num_bytes == 4 + size);
  memcpy(&length, out->data, 4);
  CHECK(length == size && memcmp((const char *)out->data + 4, text, size) == 0);
}

static void check_end(struct world *w, struct sequence *s, const host_response *response) {
  wf_error err;
  wf_result *result, *whole;
  float cost;
  CHECK_OK(wf_stream_finish(s->stream, &result, &err));
  CHECK((result->status == WF_OK) == (response->error[0] == '\0'));
  if (result->status == WF_OK) {
    check_text(response, result->words, result->num_words);
    memcpy(&cost, host_output_of(response, "COST")->data, sizeof cost);
    CHECK(cost == (float)result->cost);
    const wf_utterance utterance = {.scores = rows_of(s->scores, 0, s->fed, NUM_COLUMNS),
                                    .scorer = w->model->scorers[s->boosts]};
    if (!s->changed) {
      CHECK_OK(wf_decode(w->decoder, &utterance, 1, NULL, &whole, &err));
      check_same(result, whole);
      wf_result_free(whole);
    }
  }
  wf_result_free(result);
  drop(s);
}

static void check_response(struct world *w, struct job *job, const host_request *request,
                           const host_response *response) {
  wf_error err;
  wf_partial partial;
  struct sequence *s = job->of;
  CHECK(response->sent);
  if (s == NULL) {
    CHECK(response->error[0] != '\0');
    return;
  }
  s->in_batch = false;
  if (!follow(w, job)) {
    CHECK(response->error[0] != '\0');
    drop(s);
  } else if (request->ends) {
    check_end(w, s, response);
  } else if (wf_stream_partial(s->stream, &partial, &err) != WF_OK) {
    CHECK(response->error[0] != '\0');
    drop(s);
  } else {
    CHECK(response->error[0] == '\0' || (fprintf(stderr, "%s\n", response->error), false));
    check_text(response, partial.words, partial.num_words);
  }
}

static void one_batch(struct world *w, bytes *in) {
  host_request requests[MAX_BATCH];
  host_response responses[MAX_BATCH];
  struct job jobs[MAX_BATCH];
  const uint32_t count = 1 + take(in, MAX_BATCH);
  bool alone = false;
  for (uint32_t i = 0; i < count; i++) requests[i] = make_request(w, &jobs[i], &alone, in);
  host_execute(w->host, requests, count, responses);
  for (uint32_t i = 0; i < count; i++) check_response(w, &jobs[i], &requests[i], &responses[i]);
  host_free_responses(responses, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct world w;
  bytes in = {data, data + size};
  char reason[512];
  wf_error err;
  wf_decoder_options options;
  if (g_models[0].graph == NULL) make_models();
  memset(&w, 0, sizeof w);
  const uint32_t model = take(&in, NUM_GRAPHS);
  w.model = &g_models[model];
  w.seed = take(&in, 256);
  wf_decoder_options_init(&options);
  options.beam = (float)(4 + model);
  options.lattice_beam = (float)(model % 2 * 3);
  options.num_threads = 1;
  w.has_lattices = options.lattice_beam > 0;
  options.check_scores = 0;
  CHECK_OK(wf_decoder_create(w.model->graph, &options, &w.decoder, &err));
  w.host = host_open(w.model->json, "/nowhere", reason);
  CHECK(w.host != NULL || (fprintf(stderr, "%s\n", reason), false));
  for (int i = 0; i < 60 && in.at < in.end; i++) one_batch(&w, &in);
  for (int i = 0; i <= NUM_IDS; i++) drop(&w.sequences[i]);
  host_close(w.host);
  CHECK(host_num_alive() == 0);
  wf_decoder_free(w.decoder);
  return 0;
}
