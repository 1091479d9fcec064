/* bench_lm_traffic.c - counts the requests of a search to a language model on the fly, frame by
 * frame over a batch, and how many of them are repeated.
 *
 *     bench_lm_traffic GRAPH SCORES LM [--words=FILE] [--acoustic-scale=1] [--lm-scale=1]
 *     [--beam=17] [--max-active=10000] [--batch=400] [--cache=0.1,0.3]
 *         [--steady=FRAMES] [--trace=FILE] [--trace-frames=4]
 *
 * The first `batch` utterances of SCORES are decoded on the CPU in lockstep, frame by frame,
 * without a cache of costs, as lanes of a GPU that all start at once. Prints one JSON object, with
 * numbers per frame:
 *     requests      pairs of context and word
 *     arcs          n-grams read for them, which is the traffic of host memory (other requests end
 *                   at a unigram, which is in the index)
 *     ..._lane      distinct ones within a frame of an utterance
 *     ..._batch     distinct ones within a frame of all utterances
 *     unanswered    requests that a direct-mapped cache of 2^11, 2^12, ... costs per utterance
 *                   would not have
 *     caches        for each --cache (a share of the n-grams' bytes), with 4-way sets of 24 bytes
 *                   per entry as on the GPU, filled after each frame: `misses` are n-grams that the
 *                   cache did not have when the frame began, `misses_batch` the distinct ones. So
 *                   misses / misses_batch is the most that deduplication over a batch can save
 *
 * --steady: decodes this many frames with an utterance in every lane. Each lane starts somewhere
 * within an utterance and takes another when it ends; SCORES may then have fewer than `batch`.
 * --trace: writes the requests of the last of these frames for bench_lm_fetch (lm_trace.h), and
 * which of them the first --cache did not have. */
#include <stdio.h>
#include <string.h>

#include "base/map64.h"
#include "common.h"
#include "lm/lm.h"
#include "lm_trace.h"
#include "math/hash.h"
#include "scorer/scorer.h"

enum {
  LEAST_BITS = 11,
  MOST_BITS = 16,
  MAX_CACHES = 4,
  WAYS = 4,
  ENTRY_BYTES = 24,
  MAX_BATCH = 4096,
  TRACE_ROOM = 1 << 23
};

struct arguments {
  const char *graph, *scores, *lm, *words, *caches, *trace;
  float acoustic_scale, lm_scale, beam;
  int max_active, batch, steady, trace_frames;
};

/* The keys of one frame and the number of times each occurred. Incrementing `now` empties it. */
struct key_set {
  uint64_t *keys;
  uint32_t *frames, *counts, *places; /* places: [size] slots of the keys */
  uint64_t bits, size;
  uint32_t now;
};

struct cache {
  double share;
  uint64_t num_sets, *keys; /* [num_sets][WAYS], 0: empty */
  uint8_t *turns;
  uint64_t misses, misses_batch;
};

/* The n-grams requested in a frame, in order, and the file that they are written to. */
struct trace {
  FILE *file;
  wf__map64 numbers; /* of n-grams, by key */
  uint64_t *keys;    /* [size] */
  uint64_t size;
  uint32_t *counts, *entries; /* counts: [batch] requests of each lane */
};

struct traffic {
  uint64_t frames, requests, requests_lane, requests_batch, arcs, arcs_lane, arcs_batch, most_arcs;
  struct key_set lane_requests, lane_arcs, batch_requests, batch_arcs;
  struct cache caches[MAX_CACHES];
  int num_caches;
  uint64_t missed[MOST_BITS + 1], *tables; /* tables: [batch][2^(MOST_BITS + 1)], for each utterance
                                              the caches of all sizes in sequence */
  int lane;
  uint32_t lanes;
  int64_t lane_frames; /* summed over lanes */
  bool traces;         /* whether this frame is written to the trace */
  struct trace trace;
};

/* A scorer that calls the n-gram scorer and records the requests. */
struct recorder {
  wf_scorer scorer;
  wf_scorer *inner;
  const wf_lm *lm;
  const uint32_t *word_of;
  uint32_t num_labels;
  struct traffic *traffic;
};

/* --- sets of keys ------------------------------------------------------------------------ */

static void set_make(struct key_set *set, int bits) {
  *set = (struct key_set){.bits = (uint64_t)bits, .now = 1};
  set->keys = allocate((size_t)1 << bits, sizeof *set->keys);
  set->frames = allocate((size_t)1 << bits, sizeof *set->frames);
  set->counts = allocate((size_t)1 << bits, sizeof *set->counts);
  set->places = allocate((size_t)1 << bits, sizeof *set->places);
}

static void set_clear(struct key_set *set) {
  set->now++;
  set->size = 0;
}

/* Returns true if the key is new. */
static bool set_add(struct key_set *set, uint64_t key) {
  const uint64_t mask = ((uint64_t)1 << set->bits) - 1;
  uint64_t at = wf__mix64(key) & mask;
  while (set->frames[at] == set->now && set->keys[at] != key) at = (at + 1) & mask;
  if (set->frames[at] == set->now) {
    set->counts[at]++;
    return false;
  }
  if (set->size > mask / 2) fail("more requests in a frame than the driver holds");
  set->places[set->size++] = (uint32_t)at;
  set->keys[at] = key;
  set->frames[at] = set->now;
  set->counts[at] = 1;
  return true;
}

/* --- caches ------------------------------------------------------------------------------ */

static void cache_make(struct cache *cache, double share, uint64_t payload_bytes) {
  *cache = (struct cache){.share = share, .num_sets = 1};
  while ((double)(2 * cache->num_sets * WAYS * ENTRY_BYTES) <= share * (double)payload_bytes)
    cache->num_sets *= 2;
  cache->keys = allocate(cache->num_sets * WAYS, sizeof *cache->keys);
  cache->turns = allocate(cache->num_sets, 1);
}

static bool cache_has(const struct cache *cache, uint64_t key) {
  const uint64_t *ways = cache->keys + wf__mix64(key) % cache->num_sets * WAYS;
  for (int way = 0; way < WAYS; way++)
    if (ways[way] == key) return true;
  return false;
}

/* Counts which n-grams of a frame the cache has, then inserts the others. */
static void cache_frame(struct cache *cache, const struct key_set *asked) {
  for (uint64_t i = 0; i < asked->size; i++) {
    const uint32_t at = asked->places[i];
    if (cache_has(cache, asked->keys[at])) continue;
    cache->misses += asked->counts[at];
    cache->misses_batch++;
    const uint64_t set = wf__mix64(asked->keys[at]) % cache->num_sets;
    cache->keys[set * WAYS + cache->turns[set]++ % WAYS] = asked->keys[at];
  }
}

/* --- the trace --------------------------------------------------------------------------- */

static void trace_open(struct trace *trace, const char *path, uint32_t lanes, uint32_t frames) {
  const struct lm_trace_header header = {LM_TRACE_MAGIC, lanes, frames};
  trace->file = fopen(path, "wb");
  if (trace->file == NULL) fail("--trace: cannot open the file for writing");
  trace->keys = allocate(TRACE_ROOM, sizeof *trace->keys);
  trace->entries = allocate(TRACE_ROOM, sizeof *trace->entries);
  trace->counts = allocate(lanes, sizeof *trace->counts);
  if (fwrite(&header, sizeof header, 1, trace->file) != 1) fail("--trace: cannot write");
}

static void trace_add(struct traffic *t, uint64_t key) {
  if (t->trace.size >= TRACE_ROOM) fail("more n-grams in a frame than a trace holds");
  t->trace.counts[t->lane]++;
  t->trace.keys[t->trace.size++] = key;
}

/* Writes a frame to the trace. Called before the cache is updated with the frame. */
static void trace_frame(struct trace *trace, const struct cache *cache, uint32_t lanes) {
  wf_error err = {0};
  for (uint64_t i = 0; i < trace->size; i++) {
    uint32_t number;
    check(wf__map64_insert(&trace->numbers, trace->keys[i], (uint32_t)trace->numbers.size, &number,
                           NULL, "numbers of n-grams", &err),
          &err);
    trace->entries[i] = number << 1 | !cache_has(cache, trace->keys[i]);
  }
  if (fwrite(trace->counts, sizeof *trace->counts, lanes, trace->file) != lanes ||
      fwrite(trace->entries, sizeof *trace->entries, trace->size, trace->file) != trace->size)
    fail("--trace: cannot write");
  memset(trace->counts, 0, lanes * sizeof *trace->counts);
  trace->size = 0;
}

static void trace_close(struct trace *trace) {
  if (trace->file == NULL) return;
  if (fclose(trace->file) != 0) fail("--trace: cannot write");
  wf__map64_free(&trace->numbers);
  free(trace->keys);
  free(trace->entries);
  free(trace->counts);
}

/* --- recording requests ------------------------------------------------------------------ */

static wf_status record_begin(const wf_scorer *self, void *memory, uint64_t *start, wf_error *err) {
  const struct recorder *recorder = (const struct recorder *)self;
  return recorder->inner->ops->begin(recorder->inner, memory, start, err);
}

static wf_status record_step(const wf_scorer *self, void *memory, uint64_t context, int32_t label,
                             float *cost, uint64_t *next, wf_error *err) {
  const struct recorder *recorder = (const struct recorder *)self;
  struct traffic *t = recorder->traffic;
  const uint32_t word =
      (uint32_t)label < recorder->num_labels ? recorder->word_of[label] : WF__WLM_NONE;
  const uint64_t request = context << 32 | (uint32_t)label;
  t->requests++;
  for (int bits = LEAST_BITS; bits <= MOST_BITS; bits++) {
    uint64_t *place = t->tables + ((uint64_t)t->lane << (MOST_BITS + 1)) + ((uint64_t)1 << bits) +
                      wf__spread64(wf__mix64(context) + (uint64_t)label, bits);
    t->missed[bits] += *place != request;
    *place = request;
  }
  t->requests_lane += set_add(&t->lane_requests, request);
  t->requests_batch += set_add(&t->batch_requests, request);
  if (word != WF__WLM_NONE) {
    uint32_t to, at;
    wf__wlm_step(&recorder->lm->mapped->view, (uint32_t)context, word, &to, &at);
    const uint64_t arc = (uint64_t)at << 32 | word;
    if (at != 0) {
      t->arcs++;
      if (t->traces) trace_add(t, arc);
      t->arcs_lane += set_add(&t->lane_arcs, arc);
      t->arcs_batch += set_add(&t->batch_arcs, arc);
    }
  }
  return recorder->inner->ops->step(recorder->inner, memory, context, label, cost, next, err);
}

static wf_status record_final(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                              wf_error *err) {
  const struct recorder *recorder = (const struct recorder *)self;
  return recorder->inner->ops->final(recorder->inner, memory, context, cost, err);
}

static void record_free(wf_scorer *self) { (void)self; } /* main owns it */

static const wf__scorer_ops record_ops = {.name = "recorder",
                                          .free = record_free,
                                          .begin = record_begin,
                                          .step = record_step,
                                          .final = record_final};

/* --- the batch --------------------------------------------------------------------------- */

static void end_lane(struct traffic *t) {
  set_clear(&t->lane_requests);
  set_clear(&t->lane_arcs);
}

static void end_frame(struct traffic *t) {
  t->frames++;
  if (t->traces) trace_frame(&t->trace, &t->caches[0], t->lanes);
  for (int i = 0; i < t->num_caches; i++) cache_frame(&t->caches[i], &t->batch_arcs);
  if (t->batch_arcs.size > t->most_arcs) t->most_arcs = t->batch_arcs.size;
  set_clear(&t->batch_requests);
  set_clear(&t->batch_arcs);
}

static void feed(struct traffic *t, int lane, wf_stream *stream, const wf_matrix *m,
                 int64_t frame) {
  wf_error err = {0};
  const wf_scores chunk = {.data = m->data + frame * m->num_columns,
                           .num_frames = 1,
                           .num_columns = m->num_columns,
                           .stride = m->num_columns};
  t->lane = lane;
  check(wf_stream_advance(stream, &chunk, NULL, &err), &err);
  t->lane_frames++;
  end_lane(t);
}

/* Keeps an utterance in every lane. The i-th lane starts somewhere within one of the `count`
 * utterances. */
static void run_steady(wf_decoder *decoder, const wf_scorer *scorer, const wf_matrix *matrices,
                       int count, const struct arguments *a, struct traffic *t) {
  struct place {
    wf_stream *stream;
    int utterance;
    int64_t frame;
  } *lanes = allocate((size_t)a->batch, sizeof *lanes);
  wf_error err = {0};
  for (int i = 0; i < a->batch; i++)
    lanes[i] = (struct place){
        NULL, i % count,
        (int64_t)(wf__mix64((uint64_t)i) % (uint64_t)matrices[i % count].num_frames)};
  for (int frame = 0; frame < a->steady; frame++) {
    t->traces = a->trace != NULL && frame >= a->steady - a->trace_frames;
    for (int i = 0; i < a->batch; i++) {
      struct place *lane = &lanes[i];
      if (lane->frame == matrices[lane->utterance].num_frames) {
        wf_stream_free(lane->stream);
        *lane = (struct place){NULL, (lane->utterance + 1) % count, 0};
      }
      if (lane->stream == NULL) {
        check(wf_stream_create(decoder, NULL, &lane->stream, &err), &err);
        check(wf_stream_set_scorer(lane->stream, scorer, &err), &err);
      }
      feed(t, i, lane->stream, &matrices[lane->utterance], lane->frame++);
    }
    end_frame(t);
  }
  for (int i = 0; i < a->batch; i++) wf_stream_free(lanes[i].stream);
  free(lanes);
}

static void run(wf_decoder *decoder, const wf_scorer *scorer, wf_matrix *matrices, int count,
                struct traffic *t) {
  wf_error err = {0};
  wf_stream **streams = allocate((size_t)count, sizeof *streams);
  int64_t longest = 0;
  for (int i = 0; i < count; i++) {
    check(wf_stream_create(decoder, NULL, &streams[i], &err), &err);
    check(wf_stream_set_scorer(streams[i], scorer, &err), &err);
    if (matrices[i].num_frames > longest) longest = matrices[i].num_frames;
  }
  for (int64_t frame = 0; frame < longest; frame++) {
    for (int i = 0; i < count; i++) {
      const wf_matrix *m = &matrices[i];
      if (frame >= m->num_frames) continue;
      feed(t, i, streams[i], m, frame);
    }
    end_frame(t);
  }
  for (int i = 0; i < count; i++) wf_stream_free(streams[i]);
  free(streams);
}

static void print(const struct traffic *t) {
  const double n = (double)t->lane_frames;
  printf(
      "{\"batch\": %u, \"frames\": %lld, \"requests\": %.1f, \"requests_lane\": %.1f, "
      "\"requests_batch\": %.1f, \"arcs\": %.1f, \"arcs_lane\": %.1f, \"arcs_batch\": %.1f",
      t->lanes, (long long)t->lane_frames, (double)t->requests / n, (double)t->requests_lane / n,
      (double)t->requests_batch / n, (double)t->arcs / n, (double)t->arcs_lane / n,
      (double)t->arcs_batch / n);
  printf(", \"unanswered\": [");
  for (int bits = LEAST_BITS; bits <= MOST_BITS; bits++)
    printf("%s%.1f", bits > LEAST_BITS ? ", " : "", (double)t->missed[bits] / n);
  printf("], \"caches\": [");
  for (int i = 0; i < t->num_caches; i++) {
    const struct cache *c = &t->caches[i];
    printf("%s{\"share\": %g, \"entries\": %llu, \"misses\": %.3f, \"misses_batch\": %.3f}",
           i > 0 ? ", " : "", c->share, (unsigned long long)c->num_sets * WAYS,
           (double)c->misses / n, (double)c->misses_batch / n);
  }
  printf("]}\n");
}

static void parse(int argc, char **argv, struct arguments *a) {
  *a = (struct arguments){.acoustic_scale = 1,
                          .lm_scale = 1,
                          .beam = 17,
                          .max_active = 10000,
                          .batch = 400,
                          .caches = "0.1,0.3",
                          .trace_frames = 4};
  const char **files[] = {&a->graph, &a->scores, &a->lm};
  size_t num_files = 0;
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (arg[0] != '-' && num_files < 3)
      *files[num_files++] = arg;
    else if (strncmp(arg, "--words=", 8) == 0)
      a->words = arg + 8;
    else if (strncmp(arg, "--cache=", 8) == 0)
      a->caches = arg + 8;
    else if (strncmp(arg, "--trace=", 8) == 0)
      a->trace = arg + 8;
    else if (sscanf(arg, "--acoustic-scale=%f", &a->acoustic_scale) != 1 &&
             sscanf(arg, "--lm-scale=%f", &a->lm_scale) != 1 &&
             sscanf(arg, "--beam=%f", &a->beam) != 1 &&
             sscanf(arg, "--max-active=%d", &a->max_active) != 1 &&
             sscanf(arg, "--batch=%d", &a->batch) != 1 &&
             sscanf(arg, "--steady=%d", &a->steady) != 1 &&
             sscanf(arg, "--trace-frames=%d", &a->trace_frames) != 1)
      fail("unknown argument; see the head of bench/lm/bench_lm_traffic.c");
  }
  if (num_files < 3 || a->batch < 1 || a->batch > MAX_BATCH)
    fail("usage: bench_lm_traffic GRAPH SCORES LM [--words=FILE] [--batch=1..4096] ...");
}

static void make_caches(struct traffic *t, const char *shares, uint64_t payload_bytes) {
  for (char *end; *shares != '\0' && t->num_caches < MAX_CACHES;
       shares = *end == ',' ? end + 1 : end) {
    const double share = strtod(shares, &end);
    if (end == shares) fail("--cache: expected comma-separated numbers");
    cache_make(&t->caches[t->num_caches++], share, payload_bytes);
  }
}

int main(int argc, char **argv) {
  wf_error err = {0};
  struct arguments a;
  static struct traffic traffic;
  static wf_matrix matrices[MAX_BATCH];
  wf_fst *fst;
  wf_graph *graph;
  wf_symbols *words = NULL;
  wf_lm *lm;
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_ngram_scorer_options scorer_options;
  wf__flat_scorer flat;
  struct recorder recorder = {.traffic = &traffic};
  parse(argc, argv, &a);
  check(wf_fst_read(a.graph, &fst, &err), &err);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  if (a.words != NULL)
    check(wf_symbols_read(a.words, &words, &err), &err);
  else if (wf_fst_osymbols(fst) != NULL)
    words = wf_symbols_ref(wf_fst_osymbols(fst));
  check(wf_lm_open_mapped(a.lm, &lm, &err), &err);
  wf_ngram_scorer_options_init(&scorer_options);
  scorer_options.lm_scale = a.lm_scale;
  check(wf_scorer_from_lm(lm, words, &scorer_options, &recorder.inner, &err), &err);
  if (wf__scorer_flatten(recorder.inner, &flat) != NULL) fail("the model is not an n-gram scorer");
  recorder.lm = lm;
  recorder.word_of = flat.parts[0].word_of;
  recorder.num_labels = flat.parts[0].num_labels;
  wf__scorer_init(&recorder.scorer, &record_ops, recorder.inner->context_bits);
  recorder.scorer.forgets = true;
  const int count = (int)read_matrices(a.scores, matrices, (size_t)a.batch);
  if (count == 0 || (a.trace != NULL && a.steady == 0))
    fail(count == 0 ? "no scores" : "--trace needs --steady");
  traffic.lanes = (uint32_t)(a.steady > 0 ? a.batch : count);
  wf_decoder_options_init(&options);
  options.acoustic_scale = a.acoustic_scale;
  options.beam = a.beam;
  options.max_active = a.max_active;
  if (options.max_tokens < a.max_active) options.max_tokens = a.max_active;
  options.num_threads = 1;
  check(wf_decoder_create(graph, &options, &decoder, &err), &err);
  traffic.tables = allocate((size_t)traffic.lanes << (MOST_BITS + 1), sizeof *traffic.tables);
  set_make(&traffic.lane_requests, 18);
  set_make(&traffic.lane_arcs, 18);
  set_make(&traffic.batch_requests, 22);
  set_make(&traffic.batch_arcs, 22);
  make_caches(&traffic, a.caches,
              lm->mapped->header->sections[WF__WLM_SMALL_ARCS].size +
                  lm->mapped->header->sections[WF__WLM_LARGE_ARCS].size);
  if (a.trace != NULL) trace_open(&traffic.trace, a.trace, traffic.lanes, (uint32_t)a.trace_frames);
  if (a.steady > 0)
    run_steady(decoder, &recorder.scorer, matrices, count, &a, &traffic);
  else
    run(decoder, &recorder.scorer, matrices, count, &traffic);
  print(&traffic);
  trace_close(&traffic.trace);
  wf_decoder_free(decoder);
  for (int i = 0; i < count; i++) wf_matrix_clear(&matrices[i]);
  wf_scorer_free(recorder.inner);
  wf_lm_free(lm);
  wf_symbols_free(words);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return 0;
}
