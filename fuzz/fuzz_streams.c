/* fuzz_streams.c - sequences of calls of streams, with CTC scores or a transducer. The first bytes
 * choose a model and options; the others are calls of up to three streams of one decoder. At its
 * end, an utterance must have the result of the whole matrix decoded at once; if its boosts changed
 * in mid-utterance, that of a stream which takes nothing but the frames and the boosts. */
#include "call_sequences.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NUM_STREAMS = 3, MAX_FRAMES = 24, NUM_SCORERS = 3, NUM_GRAPHS = 3, MAX_CHANGES = 32 };

/* --- a model behind functions, which can be made to fail ------------------------------------ */

struct functions {
  uint64_t seed;
  int context_size, num_logits;
  int fails_in; /* calls; 0: never */
};

static bool fails(struct functions *f) { return f->fails_in > 0 && --f->fails_in == 0; }

static bool predict(void *user, const wf_predictor_rows *rows) {
  struct functions *f = user;
  for (size_t i = 0; i < rows->count; i++) {
    float sum = 0;
    for (int k = 0; k < f->context_size; k++)
      sum = sum * 16 + (float)rows->tokens[i * (size_t)f->context_size + (size_t)k];
    if (f->context_size == 0)
      rows->next_states[i] = sum = (float)(((int)rows->states[i] * 31 + rows->tokens[i] + 1) % 997);
    rows->outputs[i] = sum;
  }
  return !fails(f);
}

static bool join(void *user, const wf_joiner_rows *rows) {
  struct functions *f = user;
  for (size_t i = 0; i < rows->count; i++)
    for (int c = 0; c < f->num_logits; c++) {
      const uint64_t random =
          wf__mix64(f->seed ^ wf__mix64((uint64_t)(int64_t)(rows->encoder[i * NUM_COLUMNS] * 64)) ^
                    wf__mix64((uint64_t)(int64_t)rows->predictor[i] * 64 + (uint64_t)c));
      rows->logits[i * (size_t)f->num_logits + (size_t)c] =
          c > 0 && random % 17 == 0 ? -INFINITY : (float)(random >> 40) * 0x1p-24f * 6;
    }
  return !fails(f);
}

static wf_transducer *make_transducer(struct functions *f, uint64_t seed) {
  wf_transducer_parts parts;
  wf_transducer *model;
  wf_error err;
  const int32_t durations[] = {0, 2, 4};
  wf_transducer_parts_init(&parts);
  parts.num_tokens = NUM_TOKENS;
  parts.num_durations = durations[below(&seed, 3)];
  parts.encoder_size = NUM_COLUMNS;
  parts.predictor_size = 1;
  parts.context_size = (int32_t)below(&seed, 3);
  parts.state_size = parts.context_size == 0;
  parts.predict = predict;
  parts.join = join;
  parts.user = f;
  *f = (struct functions){seed, parts.context_size, parts.num_tokens + parts.num_durations, 0};
  CHECK_OK(wf_transducer_create(&parts, &model, &err));
  return model;
}

/* --- the streams ---------------------------------------------------------------------------- */

struct change {
  int64_t frame;
  int scorer;
};

struct utterance {
  wf_stream *stream;
  float scores[MAX_FRAMES * NUM_COLUMNS];
  int64_t fed;
  int scorer, graph;                  /* that are set; resets keep them */
  struct change changes[MAX_CHANGES]; /* of the scorer, from frame 0 on */
  int num_changes;
  wf_lattice *parts[2 * MAX_FRAMES];
  int num_parts;
  int32_t stable[MAX_FRAMES * 4];
  size_t num_stable;
  bool finished;
  bool failed; /* a chunk was bad, or a function failed */
};

struct world {
  struct functions functions;
  wf_transducer *transducer;       /* or NULL */
  wf_graph *graphs[NUM_GRAPHS];    /* the decoder's, and two with added words, or NULL */
  wf_scorer *scorers[NUM_SCORERS]; /* none, and two lists of boosts */
  wf_decoder *decoder, *whole;     /* of the streams, and of the oracle */
  bool has_lattices;
  struct utterance utterances[NUM_STREAMS];
};

static void choose_options(bytes *in, bool transducer, wf_decoder_options *o) {
  static const float beams[] = {1, 3, 8, 100}, lattice_beams[] = {0, 0.5f, 2, 6};
  wf_decoder_options_init(o);
  o->beam = beams[take(in, 4)];
  o->lattice_beam = lattice_beams[take(in, 4)];
  o->lattice_prune_interval = 1 + (int32_t)take(in, 5);
  o->word_score = take(in, 4) == 0 ? 0.25f : 0;
  o->num_threads = 1;
  o->check_scores = 0;
  o->max_hypotheses = 1 + (int32_t)take(in, 6);
  o->max_symbols = 1 + (int32_t)take(in, 3);
  const uint32_t limits = take(in, 4);
  if (limits == 1) o->max_active = 2;
  if (limits == 2) o->max_tokens = 6;
  if (!transducer && take(in, 3) == 0) {
    o->blank = 0;
    o->blank_skip_threshold = 0.3f;
  }
}

static void set_scorer(struct world *w, struct utterance *u, int scorer);

/* New scores, with the scorer and the graph that were set. */
static void begin(struct utterance *u, uint64_t seed) {
  for (int i = 0; i < MAX_FRAMES * NUM_COLUMNS; i++)
    u->scores[i] = below(&seed, 40) == 0 ? -INFINITY : -(float)below(&seed, 64) / 16;
  for (int t = 0; t < MAX_FRAMES; t++) /* of a transducer, the frame's number */
    if (u->scores[t * NUM_COLUMNS] == -INFINITY) u->scores[t * NUM_COLUMNS] = -4;
  for (int i = 0; i < u->num_parts; i++) wf_lattice_free(u->parts[i]);
  u->fed = 0;
  u->num_parts = 0;
  u->num_stable = 0;
  u->finished = u->failed = false;
  u->changes[0] = (struct change){0, u->scorer};
  u->num_changes = 1;
}

static void open_stream(struct world *w, struct utterance *u, uint64_t seed) {
  wf_error err;
  wf_stream_options options;
  wf_stream_options_init(&options);
  options.frame_shift = 0.2f;
  u->scorer = u->graph = 0;
  CHECK_OK(wf_stream_create(w->decoder, &options, &u->stream, &err));
  begin(u, seed);
}

static wf_graph *graph_of(const struct world *w, const struct utterance *u) {
  return u->graph > 0 ? w->graphs[u->graph] : NULL;
}

static void make_world(struct world *w, bytes *in) {
  wf_error err;
  wf_decoder_options options;
  const uint64_t seed = take(in, 256) * 256 + take(in, 256);
  const bool transducer = take(in, 2) == 1;
  w->graphs[0] = random_graph(seed, transducer);
  for (int g = 1; g < NUM_GRAPHS; g++) w->graphs[g] = with_words(w->graphs[0], seed + (uint64_t)g);
  for (int s = 1; s < NUM_SCORERS; s++) w->scorers[s] = random_boosts(seed + (uint64_t)s);
  choose_options(in, transducer, &options);
  w->has_lattices = options.lattice_beam > 0;
  if (transducer) w->transducer = make_transducer(&w->functions, seed);
  for (int i = 0; i < 2; i++) {
    wf_decoder **decoder = i == 0 ? &w->decoder : &w->whole;
    CHECK_OK(transducer ? wf_decoder_create_transducer(w->graphs[0], w->transducer, &options,
                                                       decoder, &err)
                        : wf_decoder_create(w->graphs[0], &options, decoder, &err));
  }
  for (uint64_t i = 0; i < NUM_STREAMS; i++) open_stream(w, &w->utterances[i], seed * 8 + i);
}

static void free_world(struct world *w) {
  for (int i = 0; i < NUM_STREAMS; i++) {
    begin(&w->utterances[i], 0);
    wf_stream_free(w->utterances[i].stream);
  }
  for (int g = 0; g < NUM_GRAPHS; g++) wf_graph_free(w->graphs[g]);
  for (int s = 0; s < NUM_SCORERS; s++) wf_scorer_free(w->scorers[s]);
  wf_decoder_free(w->decoder);
  wf_decoder_free(w->whole);
  wf_transducer_free(w->transducer);
}

/* --- calls ---------------------------------------------------------------------------------- */

static bool has_begun(const struct utterance *u) { return u->fed > 0 || u->failed; }

static void set_scorer(struct world *w, struct utterance *u, int scorer) {
  wf_error err;
  const bool begun = !u->finished && has_begun(u) && !u->failed;
  const wf_status status = wf_stream_set_scorer(u->stream, w->scorers[scorer], &err);
  if (status == WF_ERR_STATE) {
    CHECK(!u->finished && u->fed > 0 && w->has_lattices && scorer != u->scorer);
    return;
  }
  if (status != WF_OK) { /* the start, or the utterance, has failed by itself */
    u->failed = true;
    return;
  }
  if (!begun) u->num_changes = 0;
  if (u->num_changes == MAX_CHANGES) return (void)(u->failed = true);
  if (!begun || scorer != u->scorer) u->changes[u->num_changes++] = (struct change){u->fed, scorer};
  u->scorer = scorer;
}

static void set_graph(struct world *w, struct utterance *u, int graph) {
  wf_error err;
  if (graph > 0 && w->graphs[graph] == NULL) return;
  const wf_status status = wf_stream_set_graph(u->stream, w->graphs[graph], &err);
  if (status == WF_ERR_STATE) {
    CHECK(!u->finished && (has_begun(u) || u->failed));
    return;
  }
  CHECK(status == WF_OK);
  u->graph = graph;
}

static wf_scores next_chunk(struct utterance *u, int64_t count, float *bad) {
  const int64_t left = MAX_FRAMES - u->fed;
  wf_scores chunk = rows_of(u->scores, u->fed, count < left ? count : left, NUM_COLUMNS);
  if (bad != NULL && chunk.num_frames > 0) {
    memcpy(bad, chunk.data, NUM_COLUMNS * sizeof *bad);
    bad[NUM_COLUMNS - 1] = NAN;
    chunk.data = bad;
    chunk.num_frames = 1;
  }
  return chunk;
}

static void accept(struct world *w, struct utterance *u, int64_t count, bool wants_event,
                   bool is_bad) {
  wf_error err;
  wf_stream_event event;
  float bad[NUM_COLUMNS];
  const wf_scores chunk = next_chunk(u, count, is_bad ? bad : NULL);
  const wf_status status = wf_stream_advance(u->stream, &chunk, wants_event ? &event : NULL, &err);
  CHECK((status == WF_ERR_STATE) == u->finished);
  if (u->finished) return;
  CHECK(status == WF_OK || status == WF_ERR_CANCELLED);
  u->fed += chunk.num_frames;
  u->failed = u->failed || status != WF_OK || (is_bad && chunk.num_frames > 0);
}

/* A chunk for each stream that is not at its end. */
static void advance(struct world *w, bytes *in) {
  wf_error err;
  wf_stream *streams[NUM_STREAMS];
  wf_stream_event events[NUM_STREAMS];
  wf_scores chunks[NUM_STREAMS];
  struct utterance *who[NUM_STREAMS];
  size_t count = 0;
  for (int i = 0; i < NUM_STREAMS; i++) {
    if (w->utterances[i].finished) continue;
    who[count] = &w->utterances[i];
    streams[count] = who[count]->stream;
    chunks[count] = next_chunk(who[count], take(in, 4), NULL);
    count++;
  }
  const wf_status status = wf_streams_advance(w->decoder, streams, chunks, count, events, &err);
  CHECK(status == WF_OK || status == WF_ERR_CANCELLED);
  for (size_t i = 0; i < count; i++) {
    who[i]->fed += chunks[i].num_frames;
    if (status != WF_OK) who[i]->failed = true; /* one of them has */
  }
}

/* Words that were stable stay. */
static void partial(struct utterance *u) {
  wf_error err;
  wf_partial out;
  if (wf_stream_partial(u->stream, &out, &err) != WF_OK) return;
  CHECK(!u->finished && out.num_stable <= out.num_words && out.num_stable >= u->num_stable &&
        out.num_frames == u->fed && out.num_stable < MAX_FRAMES * 4);
  for (size_t i = 0; i < u->num_stable; i++) CHECK(out.words[i].label == u->stable[i]);
  for (size_t i = 0; i < out.num_stable; i++) u->stable[i] = out.words[i].label;
  u->num_stable = out.num_stable;
}

static void take_lattice(struct world *w, struct utterance *u, bool commits) {
  wf_error err;
  wf_lattice *lattice;
  const wf_status status = commits ? wf_stream_commit_lattice(u->stream, &lattice, &err)
                                   : wf_stream_partial_lattice(u->stream, &lattice, &err);
  CHECK(status != WF_OK || (w->has_lattices && !u->finished));
  CHECK(status == WF_OK || lattice == NULL);
  if (lattice == NULL) return;
  if (commits) {
    CHECK(u->num_parts < 2 * MAX_FRAMES);
    u->parts[u->num_parts++] = lattice;
    return;
  }
  CHECK(wf_lattice_get_view(lattice).num_states > 0);
  wf_lattice_free(lattice);
}

/* --- the end -------------------------------------------------------------------------------- */

/* The frames and the boosts alone. */
static wf_result *decode_plainly(struct world *w, const struct utterance *u) {
  wf_error err;
  wf_stream *stream;
  wf_result *result;
  CHECK_OK(wf_stream_create(w->whole, NULL, &stream, &err));
  CHECK_OK(wf_stream_set_graph(stream, graph_of(w, u), &err));
  for (int c = 0; c < u->num_changes; c++) {
    const int64_t first = u->changes[c].frame,
                  end = c + 1 < u->num_changes ? u->changes[c + 1].frame : u->fed;
    const wf_scores chunk = rows_of(u->scores, first, end - first, NUM_COLUMNS);
    (void)wf_stream_set_scorer(stream, w->scorers[u->changes[c].scorer], &err);
    if (chunk.num_frames > 0) CHECK_OK(wf_stream_advance(stream, &chunk, NULL, &err));
  }
  CHECK_OK(wf_stream_finish(stream, &result, &err));
  wf_stream_free(stream);
  return result;
}

static wf_result *decode_whole(struct world *w, const struct utterance *u) {
  wf_error err;
  wf_result *result;
  const wf_utterance utterance = {.scores = rows_of(u->scores, 0, u->fed, NUM_COLUMNS),
                                  .scorer = w->scorers[u->scorer],
                                  .graph = graph_of(w, u)};
  CHECK_OK(wf_decode(w->whole, &utterance, 1, NULL, &result, &err));
  return result;
}

static void check_lattices(const struct utterance *u, const wf_result *result,
                           const wf_result *expected) {
  uint64_t at = 0;
  CHECK((result->lattice != NULL) == (expected->lattice != NULL));
  if (result->lattice == NULL) return;
  for (int i = 0; i < u->num_parts; i++) at = check_part(expected->lattice, u->parts[i], at, false);
  at = check_part(expected->lattice, result->lattice, at, true);
  CHECK(at == wf_lattice_get_view(expected->lattice).num_states);
}

static void finish(struct world *w, struct utterance *u) {
  wf_error err;
  wf_result *result;
  const wf_status status = wf_stream_finish(u->stream, &result, &err);
  CHECK((status == WF_ERR_STATE) == u->finished && (status == WF_OK) == (result != NULL));
  if (status == WF_ERR_CANCELLED) u->failed = true;
  if (status != WF_OK) return;
  u->finished = true;
  w->functions.fails_in = 0;
  if (!u->failed) {
    wf_result *expected = u->num_changes > 1 ? decode_plainly(w, u) : decode_whole(w, u);
    check_same(result, expected);
    for (size_t i = 0; i < u->num_stable && result->status == WF_OK; i++)
      CHECK(i < result->num_words && result->words[i].label == u->stable[i]);
    if (result->status == WF_OK) check_lattices(u, result, expected);
    wf_result_free(expected);
  }
  wf_result_free(result);
}

static void one_call(struct world *w, bytes *in) {
  const uint32_t call = take(in, 16);
  struct utterance *u = &w->utterances[take(in, NUM_STREAMS)];
  wf_error err;
  switch (call) {
    case 0:
    case 1:
    case 2: accept(w, u, take(in, 5), call > 0, false); return;
    case 3: accept(w, u, 0, take(in, 2) == 0, false); return;
    case 4: set_scorer(w, u, (int)take(in, NUM_SCORERS)); return;
    case 5: set_graph(w, u, (int)take(in, NUM_GRAPHS)); return;
    case 6: partial(u); return;
    case 7: take_lattice(w, u, false); return;
    case 8: take_lattice(w, u, true); return;
    case 9:
    case 10: finish(w, u); return;
    case 11:
      CHECK_OK(wf_stream_reset(u->stream, &err));
      begin(u, take(in, 256));
      return;
    case 12: advance(w, in); return;
    case 13: accept(w, u, 1, true, true); return;
    case 14:
      wf_stream_free(u->stream);
      open_stream(w, u, take(in, 256));
      return;
    default: w->functions.fails_in = (int)take(in, 6); return;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct world w;
  bytes in = {data, data + size};
  memset(&w, 0, sizeof w);
  make_world(&w, &in);
  for (int i = 0; i < 200 && in.at < in.end; i++) one_call(&w, &in);
  for (int i = 0; i < NUM_STREAMS; i++) {
    w.functions.fails_in = 0;
    if (!w.utterances[i].finished) finish(&w, &w.utterances[i]);
  }
  free_world(&w);
  return 0;
}
