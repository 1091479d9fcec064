/* bench_stream.c - simulates live audio: many streams whose chunks arrive in real time, or one
 * stream of many hours. Prints a JSON object per line; bench/decode/stream.py makes tables of them.
 *
 *     bench_stream GRAPH SCORES [--FLAG=VALUE...]      --help lists the flags
 *
 * Each stream plays the utterances of SCORES one after the other, from a random start. A chunk
 * arrives every --chunk seconds. All chunks that have arrived are decoded in one call, and then the
 * next call begins. With --poisson the times between chunks are exponentially distributed with this
 * mean, like requests over a network. Phrases of --boost are two to four random words. Phrases of
 * --add-words are 10 random tokens. A recurrent model is interpolated (0.5) with the n-gram model
 * that the graph was built with. With --hours one stream decodes the utterances in a loop without a
 * reset, at full speed.
 *
 * The latency of a chunk is from its arrival (the moment its last frame was spoken) until its
 * partial result is available. The latency of the last word is until the result is available. The
 * latency of a chunk has two parts: `queue` until the call that decodes it begins, and `compute`.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boost_lists.h"
#include "warpfst_all.h"

enum { MAX_UTTERANCES = 100000 };

struct settings {
  double acoustic_scale, frame_shift, beam, max_active, min_active, lattice_beam, blank, threads,
      streams, chunk, seconds, partials, poisson, hours, forget, commit, add_words, boost,
      boost_words, warm, rnnlm_memory;
  const char *device, *rnnlm, *arpa, *transducer;
  double max_hypotheses, max_symbols;
};

struct speaker {
  wf_stream *stream;
  size_t utterance; /* being played */
  int64_t num_said; /* frames played */
  double next_s;    /* when the next chunk arrives */
};

struct samples {
  double *data;
  size_t size, cap;
};

struct bench {
  struct settings set;
  wf_decoder *decoder;
  wf_stream_plan plan; /* on GPUs, made before anything is allocated */
  wf_matrix *matrices;
  size_t num_matrices;
  struct speaker *speakers;
  /* the current batch */
  wf_stream **ready;
  wf_scores *chunks;
  wf_stream_event *events;
  wf_partial *partials;
  size_t *who, num_ready;
  struct samples chunk_ms, wait_ms, compute_ms, word_ms;
  uint64_t random;
  double busy_s, audio_s;
  uint64_t num_calls, num_batched;
};

static void add(struct samples *samples, double value) {
  if (samples->size == samples->cap) {
    samples->cap = samples->cap * 2 + 1024;
    samples->data = realloc(samples->data, samples->cap * sizeof *samples->data);
    if (samples->data == NULL) fail("out of memory");
  }
  samples->data[samples->size++] = value;
}

static int compare(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void print_samples(const char *name, struct samples *samples) {
  static const int percents[] = {50, 95, 99};
  double sum = 0;
  for (size_t i = 0; i < samples->size; i++) sum += samples->data[i];
  printf(", \"%s_mean_ms\": %.3f", name, samples->size > 0 ? sum / (double)samples->size : 0);
  if (samples->size > 0) qsort(samples->data, samples->size, sizeof *samples->data, compare);
  for (int i = 0; i < 3; i++) {
    size_t at = samples->size * (size_t)percents[i] / 100;
    printf(", \"%s_p%d_ms\": %.3f", name, percents[i],
           samples->size > 0 ? samples->data[at < samples->size ? at : samples->size - 1] : 0);
  }
}

/* --- in real time ------------------------------------------------------------------------ */

static wf_scores rows(const wf_matrix *matrix, int64_t first, int64_t count) {
  return (wf_scores){matrix->data + first * matrix->num_columns, count, matrix->num_columns,
                     matrix->num_columns};
}

/* Collects the chunks that have arrived, at most one per speaker. */
static void gather(struct bench *bench, double now) {
  int64_t size = (int64_t)(bench->set.chunk / bench->set.frame_shift + 0.5);
  bench->num_ready = 0;
  for (size_t i = 0; i < (size_t)bench->set.streams; i++) {
    struct speaker *speaker = &bench->speakers[i];
    const wf_matrix *matrix = &bench->matrices[speaker->utterance];
    int64_t left = matrix->num_frames - speaker->num_said;
    if (speaker->next_s > now) continue;
    bench->chunks[bench->num_ready] = rows(matrix, speaker->num_said, left < size ? left : size);
    bench->ready[bench->num_ready] = speaker->stream;
    bench->who[bench->num_ready++] = i;
  }
}

/* A number with mean 1; splitmix64, so that every run has the same times. */
static double exponential(struct bench *bench) {
  uint64_t x = bench->random += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return -log(((double)((x ^ x >> 31) >> 11) + 0.5) * 0x1p-53);
}

/* Notes a chunk whose partial result is there, and prepares the stream's next chunk. */
static void note_chunk(struct bench *bench, size_t k, double start) {
  struct speaker *speaker = &bench->speakers[bench->who[k]];
  const wf_matrix *matrix = &bench->matrices[speaker->utterance];
  wf_error err = {0};
  wf_result *result;
  add(&bench->chunk_ms, (now_s() - speaker->next_s) * 1e3);
  add(&bench->wait_ms, (start - speaker->next_s) * 1e3);
  add(&bench->compute_ms, (now_s() - start) * 1e3);
  double seconds = (double)bench->chunks[k].num_frames * bench->set.frame_shift;
  bench->audio_s += seconds;
  speaker->num_said += bench->chunks[k].num_frames;
  if (speaker->num_said == matrix->num_frames) {
    check(wf_stream_finish(speaker->stream, &result, &err), &err);
    add(&bench->word_ms, (now_s() - speaker->next_s) * 1e3);
    wf_result_free(result);
    check(wf_stream_reset(speaker->stream, &err), &err);
    speaker->utterance = (speaker->utterance + 1) % bench->num_matrices;
    speaker->num_said = 0;
    matrix = &bench->matrices[speaker->utterance];
  }
  double next = bench->set.chunk,
         left = (double)(matrix->num_frames - speaker->num_said) * bench->set.frame_shift;
  if (left < next) next = left;
  speaker->next_s += bench->set.poisson != 0 ? next * exponential(bench) : next;
}

static void sleep_until(double s) {
  struct timespec t = {(time_t)s, (long)((s - floor(s)) * 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void run_live(struct bench *bench, double until) {
  wf_error err = {0};
  for (;;) {
    double start = now_s(), next = INFINITY;
    if (start > until) return;
    gather(bench, start);
    if (bench->num_ready > 0) {
      check(wf_streams_advance(bench->decoder, bench->ready, bench->chunks, bench->num_ready,
                               bench->set.partials != 0 ? bench->events : NULL, &err),
            &err);
      if (bench->set.partials != 0)
        check(wf_streams_partial(bench->decoder, bench->ready, bench->num_ready, bench->partials,
                                 &err),
              &err);
      for (size_t k = 0; k < bench->num_ready; k++) note_chunk(bench, k, start);
      bench->busy_s += now_s() - start;
      bench->num_calls++;
      bench->num_batched += bench->num_ready;
      continue;
    }
    for (size_t i = 0; i < (size_t)bench->set.streams; i++)
      if (bench->speakers[i].next_s < next) next = bench->speakers[i].next_s;
    sleep_until(next);
  }
}

static void live(struct bench *bench) {
  size_t count = (size_t)bench->set.streams;
  wf_error err = {0};
  bench->speakers = allocate(count, sizeof *bench->speakers);
  bench->ready = allocate(count, sizeof *bench->ready);
  bench->chunks = allocate(count, sizeof *bench->chunks);
  bench->events = allocate(count, sizeof *bench->events);
  bench->partials = allocate(count, sizeof *bench->partials);
  bench->who = allocate(count, sizeof *bench->who);
  double begin = now_s() + 0.05;
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    struct speaker *speaker = &bench->speakers[i];
    check(wf_stream_create(bench->decoder, NULL, &speaker->stream, &err), &err);
    speaker->utterance = i * 7919 % bench->num_matrices;
    speaker->next_s = begin + bench->set.chunk * (double)(i * 2654435761u % 1000) / 1000;
  }
  run_live(bench,
           begin + bench->set.warm); /* warm-up: memory is allocated, the first words are played */
  bench->chunk_ms.size = bench->wait_ms.size = bench->compute_ms.size = bench->word_ms.size = 0;
  bench->busy_s = bench->audio_s = 0;
  bench->num_calls = bench->num_batched = 0;
  double start = now_s();
  run_live(bench, start + bench->set.seconds);
  double seconds = now_s() - start, behind = 0;
  for (size_t i = 0; i < count; i++) {
    bytes += wf_stream_bytes(bench->speakers[i].stream);
    if (now_s() - bench->speakers[i].next_s > behind) behind = now_s() - bench->speakers[i].next_s;
    wf_stream_free(bench->speakers[i].stream);
  }
  printf(
      "{\"streams\": %zu, \"chunk_s\": %g, \"seconds\": %.2f, \"heard_s\": %.1f, \"busy\": %.3f, "
      "\"batch\": %.2f, \"behind_s\": %.3f, \"bytes_a_stream\": %.0f",
      count, bench->set.chunk, seconds, bench->audio_s, bench->busy_s / seconds,
      bench->num_calls > 0 ? (double)bench->num_batched / (double)bench->num_calls : 0, behind,
      (double)bytes / (double)count);
  print_samples("chunk", &bench->chunk_ms);
  print_samples("queue", &bench->wait_ms);
  print_samples("compute", &bench->compute_ms);
  print_samples("word", &bench->word_ms);
  printf(", \"gpu_bytes_a_stream\": %llu, \"gpu_max_streams\": %llu}\n",
         (unsigned long long)bench->plan.stream_bytes, (unsigned long long)bench->plan.max_streams);
  free(bench->speakers);
  free(bench->ready);
  free(bench->chunks);
  free(bench->events);
  free(bench->partials);
  free(bench->who);
}

/* Opens a recurrent model for all streams. */
static wf_scorer *recurrent(const struct settings *set, const wf_fst *fst) {
  wf_error err = {0};
  wf_rnnlm *rnnlm;
  wf_lm *lm;
  wf_scorer *scorer;
  wf_rnn_scorer_options options;
  wf_rnn_scorer_options_init(&options);
  options.rnnlm_weight = 0.5f;
  options.rnnlm_memory = (int64_t)set->rnnlm_memory;
  check(wf_rnnlm_open(set->rnnlm, NULL, &rnnlm, &err), &err);
  check(wf_lm_open(set->arpa, NULL, NULL, &lm, NULL, NULL, &err), &err);
  check(wf_scorer_from_rnnlm(rnnlm, lm, lm, wf_fst_osymbols(fst), &options, &scorer, &err), &err);
  wf_lm_free(lm);
  wf_rnnlm_free(rnnlm);
  return scorer;
}

static void set_scorers(struct bench *bench, const wf_fst *fst) {
  wf_error err = {0};
  const bool boosts = bench->set.boost > 0 || bench->set.boost_words > 0;
  wf_scorer *scorer = bench->set.rnnlm != NULL ? recurrent(&bench->set, fst) : NULL,
            *boosted = NULL, *both = NULL;
  if (boosts)
    boosted = random_boosts((size_t)(bench->set.boost + bench->set.boost_words),
                            bench->set.boost > 0, most_olabel(fst), 1);
  if (scorer != NULL && boosted != NULL) check(wf_scorer_chain(scorer, boosted, &both, &err), &err);
  if (scorer != NULL || boosted != NULL)
    check(wf_decoder_set_scorer(bench->decoder,
                                both != NULL     ? both
                                : scorer != NULL ? scorer
                                                 : boosted,
                                &err),
          &err);
  wf_scorer_free(scorer);
  wf_scorer_free(boosted);
  wf_scorer_free(both);
}

/* --- an hour in one stream --------------------------------------------------------------- */

static void hours(struct bench *bench) {
  wf_error err = {0};
  wf_stream_options options;
  wf_stream *stream;
  wf_stream_options_init(&options);
  options.forget = bench->set.forget != 0;
  check(wf_stream_create(bench->decoder, &options, &stream, &err), &err);
  int64_t size = (int64_t)(bench->set.chunk / bench->set.frame_shift + 0.5), heard = 0,
          wanted = (int64_t)(bench->set.hours * 3600 / bench->set.frame_shift);
  uint64_t most = 0;
  double next_report_s = 0, start = now_s();
  for (size_t u = 0; heard < wanted; u = (u + 1) % bench->num_matrices) {
    const wf_matrix *matrix = &bench->matrices[u];
    for (int64_t first = 0; first < matrix->num_frames && heard < wanted; first += size) {
      wf_scores chunk = rows(matrix, first,
                             matrix->num_frames - first < size ? matrix->num_frames - first : size);
      wf_partial partial;
      check(wf_stream_advance(stream, &chunk, NULL, &err), &err);
      heard += chunk.num_frames;
      if (bench->set.commit > 0 &&
          fmod((double)heard * bench->set.frame_shift, bench->set.commit) < bench->set.chunk) {
        wf_lattice *part;
        check(wf_stream_commit_lattice(stream, &part, &err), &err);
        wf_lattice_free(part);
      }
      uint64_t bytes = wf_stream_bytes(stream);
      if (bytes > most) most = bytes;
      if ((double)heard * bench->set.frame_shift < next_report_s) continue;
      check(wf_stream_partial(stream, &partial, &err), &err);
      printf(
          "{\"heard_s\": %.1f, \"bytes\": %llu, \"most_bytes\": %llu, \"open_frames\": %lld, "
          "\"words\": %zu, \"rtfx\": %.1f}\n",
          (double)heard * bench->set.frame_shift, (unsigned long long)wf_stream_bytes(stream),
          (unsigned long long)most, (long long)(partial.num_frames - partial.stable_frames),
          partial.num_words, (double)heard * bench->set.frame_shift / (now_s() - start));
      next_report_s += bench->set.hours * 360;
      most = 0;
    }
  }
  wf_stream_free(stream);
}

/* --- added words ------------------------------------------------------------------------- */

/* Prints the processor time to add words, the best of five. */
static void add_words(struct bench *bench, const wf_graph *graph) {
  enum { LENGTH = 10 };
  size_t count = (size_t)bench->set.add_words;
  int32_t *labels = allocate(count * LENGTH, sizeof *labels),
          num_tokens = wf_graph_min_columns(graph);
  wf_spoken_word *words = allocate(count, sizeof *words);
  wf_added_phrase *phrases = allocate(count, sizeof *phrases);
  wf_error err = {0};
  double best = INFINITY;
  for (size_t i = 0; i < count * LENGTH; i++)
    labels[i] = 2 + (int32_t)(exponential(bench) * 1e6) % (num_tokens - 1); /* the blank is 1 */
  for (size_t i = 0; i < count; i++)
    words[i] = (wf_spoken_word){1 + (int32_t)i, labels + i * LENGTH, LENGTH},
    phrases[i] = (wf_added_phrase){&words[i], 1, 0};
  for (int i = 0; i < 5; i++) {
    wf_graph *added;
    clock_t start = clock();
    check(wf_graph_add_phrases(graph, NULL, phrases, count, &added, &err), &err);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds < best) best = seconds;
    wf_graph_free(added);
  }
  printf("{\"add_words\": %zu, \"add_ms\": %.4f}\n", count, best * 1e3);
  free(labels);
  free(words);
  free(phrases);
}

/* --- command line ------------------------------------------------------------------------ */

static void read_arguments(int argc, char **argv, struct settings *set, const char **paths) {
  const struct flag flags[] = {
      {"device", "where to search: cpu (default) or cuda", .text = &set->device},
      {"rnnlm", "recurrent model for all streams, with --arpa", .text = &set->rnnlm},
      {"arpa", "n-gram model that the graph was built with", .text = &set->arpa},
      {"transducer", "model file of a transducer; SCORES are outputs of its encoder",
       .text = &set->transducer},
      {"max-hypotheses", "of a transducer, tokens that are expanded", .real = &set->max_hypotheses},
      {"max-symbols", "of a transducer, most tokens a frame", .real = &set->max_symbols},
      {"acoustic-scale", "factor on the scores", .real = &set->acoustic_scale},
      {"frame-shift", "seconds", .real = &set->frame_shift},
      {"beam", "beam of the search, nats", .real = &set->beam},
      {"max-active", "largest number of tokens per frame", .real = &set->max_active},
      {"min-active", "the beam widens until a frame has this many candidates",
       .real = &set->min_active},
      {"lattice-beam", "beam of lattices, nats; 0: no lattices", .real = &set->lattice_beam},
      {"blank", "column of the blank; -1: none", .real = &set->blank},
      {"threads", "0: all", .real = &set->threads},
      {"streams", "number of simultaneous streams", .real = &set->streams},
      {"chunk", "seconds of audio per chunk", .real = &set->chunk},
      {"seconds", "seconds to measure", .real = &set->seconds},
      {"warm", "seconds of warm-up, not measured", .real = &set->warm},
      {"partials", "1: computes partial results and endpoint rules after each chunk",
       .real = &set->partials},
      {"poisson", "1: chunks arrive in Poisson processes", .real = &set->poisson},
      {"hours", "instead: decodes hours of one stream and reports its memory", .real = &set->hours},
      {"forget", "with --hours, 1: stable words are dropped", .real = &set->forget},
      {"commit", "with --hours: seconds between commits of the lattice; 0: none",
       .real = &set->commit},
      {"add-words", "instead: measures adding N phrases to the graph", .real = &set->add_words},
      {"boost", "phrases boosted in all streams", .real = &set->boost},
      {"boost-words", "single words boosted in all streams", .real = &set->boost_words},
      {"rnnlm-memory", "bytes for states and scores of the recurrent model",
       .real = &set->rnnlm_memory}};
  const struct command command = {.arguments = "GRAPH SCORES [FLAGS]",
                                  .purpose = "Simulates streams in real time.",
                                  .flags = flags,
                                  .num_flags = sizeof flags / sizeof *flags};
  read_flags(&command, argc, argv, 2, 2, paths);
  if ((set->rnnlm != NULL) != (set->arpa != NULL))
    usage_error("--rnnlm and --arpa must be given together");
}

static void read_scores(struct bench *bench, const char *path) {
  wf_error err = {0};
  wf_score_reader *reader;
  bench->matrices = allocate(MAX_UTTERANCES, sizeof *bench->matrices);
  check(wf_score_reader_open(&path, 1, NULL, &reader, &err), &err);
  for (bool done = false; !done && bench->num_matrices < MAX_UTTERANCES;) {
    wf_matrix *matrix = &bench->matrices[bench->num_matrices];
    check(wf_score_reader_next(reader, matrix, &done, &err), &err);
    if (!done && matrix->num_frames > 0) bench->num_matrices++;
  }
  wf_score_reader_free(reader);
  if (bench->num_matrices == 0) fail("no scores");
}

static void open_decoder(struct bench *bench, const wf_graph *graph, wf_decoder_options *options) {
  wf_error err = {0};
  const wf_stream_shape shape = {.scored = bench->set.boost > 0 || bench->set.boost_words > 0 ||
                                           bench->set.rnnlm != NULL};
  if (bench->set.transducer == NULL) {
    check(wf_plan_streams(graph, options, &shape, &bench->plan, &err), &err);
    check(wf_decoder_create(graph, options, &bench->decoder, &err), &err);
    return;
  }
  wf_transducer *model;
  options->max_hypotheses = (int32_t)bench->set.max_hypotheses;
  options->max_symbols = (int32_t)bench->set.max_symbols;
  check(wf_transducer_open(bench->set.transducer, NULL, &model, &err), &err);
  check(wf_decoder_create_transducer(graph, model, options, &bench->decoder, &err), &err);
  wf_transducer_free(model);
}

int main(int argc, char **argv) {
  struct bench bench = {.set = {.acoustic_scale = 1,
                                .frame_shift = 0.04,
                                .beam = 15,
                                .max_active = 10000,
                                .min_active = 200,
                                .blank = -1,
                                .streams = 16,
                                .chunk = 0.32,
                                .seconds = 20,
                                .partials = 1,
                                .warm = 2,
                                .max_hypotheses = 8,
                                .max_symbols = 3,
                                .rnnlm_memory = 1e9}};
  const char *paths[2];
  read_arguments(argc, argv, &bench.set, paths);
  wf_error err = {0};
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.acoustic_scale = (float)bench.set.acoustic_scale;
  options.beam = (float)bench.set.beam;
  options.max_active = (int32_t)bench.set.max_active;
  options.min_active = (int32_t)bench.set.min_active;
  options.lattice_beam = (float)bench.set.lattice_beam;
  options.blank = (int32_t)bench.set.blank;
  options.num_threads = (int32_t)bench.set.threads;
  options.device = bench.set.device;
  check(wf_fst_read(paths[0], &fst, &err), &err);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  open_decoder(&bench, graph, &options);
  read_scores(&bench, paths[1]);
  set_scorers(&bench, fst);
  if (bench.set.add_words > 0)
    add_words(&bench, graph);
  else if (bench.set.hours > 0)
    hours(&bench);
  else
    live(&bench);
  for (size_t i = 0; i < bench.num_matrices; i++) wf_matrix_clear(&bench.matrices[i]);
  free(bench.matrices);
  free(bench.chunk_ms.data);
  free(bench.wait_ms.data);
  free(bench.compute_ms.data);
  free(bench.word_ms.data);
  wf_decoder_free(bench.decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return 0;
}
