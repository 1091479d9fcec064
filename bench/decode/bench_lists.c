/* bench_lists.c - the cost of lists of boosts: making them, and changing the list of a stream
 * between chunks. Prints a JSON object per line; bench/decode/stream.py makes tables of them.
 *
 *     bench_lists GRAPH SCORES [--FLAG=VALUE...]      --help lists the flags
 *
 * Lists have random phrases of two to four words, or different single words. Times are processor
 * time. One stream decodes the utterances of SCORES without a reset. After each chunk its list is
 * replaced by the next of: the same list, a list of 100 phrases, the list of --phrases, none. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "boost_lists.h"
#include "peak_memory.h"

enum { ROUNDS = 5, FEW_PHRASES = 100 };

struct settings {
  double phrases, words, acoustic_scale, frame_shift, beam, max_active, chunk, minutes;
  const char *device, *lm;
};

/* --- making lists ------------------------------------------------------------------------ */

/* Prints the least processor time to make the list, and its memory. */
static void measure_making(size_t count, bool phrases, int32_t num_words) {
  struct list list = random_list(count, phrases, num_words, 1);
  double best_s = INFINITY, before, after;
  for (int i = 0; i < ROUNDS; i++) {
    forget_peak();
    before = memory_mib("VmRSS:");
    const double start = cpu_s();
    wf_scorer *scorer = list_scorer(&list);
    const double took = cpu_s() - start;
    after = memory_mib("VmRSS:");
    if (took < best_s) best_s = took;
    wf_scorer_free(scorer);
  }
  printf("{\"list\": \"%s\", \"count\": %zu, \"make_ms\": %.3f, \"mib\": %.2f}\n",
         phrases ? "phrases" : "words", count, best_s * 1e3, after - before);
  free_list(&list);
}

/* --- changing them ----------------------------------------------------------------------- */

struct times {
  double *ms;
  size_t count, cap;
};

enum { SAME, FEW, MANY, NONE, CHANGES };
static const char *const change_names[] = {"same", "few", "many", "none"};

static int compare(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* Prints the times since the last call. */
static void print_changes(struct times *times, double heard_s) {
  printf("{\"heard_s\": %.1f", heard_s);
  for (int i = 0; i < CHANGES; i++) {
    const size_t count = times[i].count;
    double sum = 0;
    if (count == 0) continue;
    for (size_t k = 0; k < count; k++) sum += times[i].ms[k];
    qsort(times[i].ms, count, sizeof *times[i].ms, compare);
    printf(", \"%s\": {\"mean_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f}", change_names[i],
           sum / (double)count, times[i].ms[count * 99 / 100], times[i].ms[count - 1]);
    times[i].count = 0;
  }
  printf("}\n");
}

/* Replaces the stream's list, and adds the time to that kind of change. */
static void change(wf_stream *stream, wf_scorer *const *scorers, int kind, const wf_scorer **now,
                   struct times *times) {
  wf_error err = {0};
  if (kind != SAME) *now = scorers[kind];
  const double start = cpu_s();
  check(wf_stream_set_scorer(stream, *now, &err), &err);
  const double took = cpu_s() - start;
  struct times *to = &times[kind];
  if (to->count == to->cap) {
    to->cap = to->cap * 2 + 1024;
    to->ms = realloc(to->ms, to->cap * sizeof *to->ms);
    if (to->ms == NULL) fail("out of memory");
  }
  to->ms[to->count++] = took * 1e3;
}

static void measure_changes(const struct settings *set, wf_decoder *decoder,
                            wf_scorer *const *scorers, const char *path) {
  const int64_t size = (int64_t)(set->chunk / set->frame_shift + 0.5);
  const double wanted_s = set->minutes * 60;
  double heard_s = 0, report_s = wanted_s / 4;
  const wf_scorer *now = scorers[NONE];
  struct times times[CHANGES] = {{NULL}};
  uint64_t num_chunks = 0;
  wf_error err = {0};
  wf_stream *stream;
  check(wf_stream_create(decoder, NULL, &stream, &err), &err);
  while (heard_s < wanted_s) {
    wf_score_reader *reader;
    wf_matrix matrix;
    check(wf_score_reader_open(&path, 1, NULL, &reader, &err), &err);
    for (bool done = false; heard_s < wanted_s;) {
      check(wf_score_reader_next(reader, &matrix, &done, &err), &err);
      if (done) break;
      for (int64_t first = 0; first < matrix.num_frames; first += size) {
        const int64_t left = matrix.num_frames - first;
        const wf_scores chunk = {matrix.data + first * matrix.num_columns,
                                 left < size ? left : size, matrix.num_columns, matrix.num_columns};
        check(wf_stream_advance(stream, &chunk, NULL, &err), &err);
        change(stream, scorers, (int)(num_chunks++ % CHANGES), &now, times);
        heard_s += (double)chunk.num_frames * set->frame_shift;
      }
      if (heard_s >= report_s) print_changes(times, heard_s), report_s += wanted_s / 4;
    }
    wf_score_reader_free(reader);
  }
  wf_result *result;
  check(wf_stream_finish(stream, &result, &err), &err);
  printf("{\"words\": %zu, \"cost\": %.9g, \"scorer_cost\": %.17g}\n", result->num_words,
         result->cost, result->scorer_cost);
  wf_result_free(result);
  wf_stream_free(stream);
  for (int i = 0; i < CHANGES; i++) free(times[i].ms);
}

/* --- command line ------------------------------------------------------------------------ */

static wf_scorer *open_lm(const char *path, const wf_fst *fst) {
  wf_lm *lm;
  wf_scorer *scorer;
  wf_error err = {0};
  check(wf_lm_open_mapped(path, &lm, &err), &err);
  check(wf_scorer_from_lm(lm, wf_fst_osymbols(fst), NULL, &scorer, &err), &err);
  wf_lm_free(lm);
  return scorer;
}

/* Makes the lists that the stream changes between, each chained to the model. */
static void make_scorers(const struct settings *set, const wf_fst *fst, int32_t num_words,
                         wf_scorer **scorers) {
  wf_error err = {0};
  if (set->lm != NULL) scorers[NONE] = open_lm(set->lm, fst);
  for (int i = FEW; i <= MANY; i++) {
    struct list list =
        random_list(i == FEW ? FEW_PHRASES : (size_t)set->phrases, true, num_words, 1);
    scorers[i] = list_scorer(&list);
    free_list(&list);
    if (set->lm == NULL) continue;
    wf_scorer *own = scorers[i];
    check(wf_scorer_chain(scorers[NONE], own, &scorers[i], &err), &err);
    wf_scorer_free(own);
  }
}

int main(int argc, char **argv) {
  struct settings set = {.phrases = 20000,
                         .words = 125000,
                         .acoustic_scale = 1,
                         .frame_shift = 0.04,
                         .beam = 15,
                         .max_active = 7000,
                         .chunk = 0.4,
                         .minutes = 4,
                         .device = "cpu"};
  const struct flag flags[] = {
      {"device", "where to search: cpu or cuda", .text = &set.device},
      {"lm", "model in the format of `warpfst lm convert`, chained before the lists",
       .text = &set.lm},
      {"phrases", "phrases of the long list", .real = &set.phrases},
      {"words", "words of the list of single words", .real = &set.words},
      {"acoustic-scale", "factor on the scores", .real = &set.acoustic_scale},
      {"frame-shift", "seconds", .real = &set.frame_shift},
      {"beam", "beam of the search, nats", .real = &set.beam},
      {"max-active", "largest number of tokens per frame", .real = &set.max_active},
      {"chunk", "seconds of audio per chunk", .real = &set.chunk},
      {"minutes", "minutes of audio", .real = &set.minutes}};
  const struct command command = {.arguments = "GRAPH SCORES [FLAGS]",
                                  .purpose = "Measures lists of boosts.",
                                  .flags = flags,
                                  .num_flags = sizeof flags / sizeof *flags};
  const char *paths[2];
  read_flags(&command, argc, argv, 2, 2, paths);
  wf_error err = {0};
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.device = set.device;
  options.beam = (float)set.beam;
  options.max_active = (int32_t)set.max_active;
  options.acoustic_scale = (float)set.acoustic_scale;
  options.num_threads = 1;
  check(wf_fst_read(paths[0], &fst, &err), &err);
  const int32_t num_words = most_olabel(fst);
  measure_making((size_t)set.phrases, true, num_words);
  measure_making((size_t)set.words, false, num_words);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  check(wf_decoder_create(graph, &options, &decoder, &err), &err);
  wf_scorer *scorers[CHANGES] = {NULL};
  make_scorers(&set, fst, num_words, scorers);
  measure_changes(&set, decoder, scorers, paths[1]);
  for (int i = 0; i < CHANGES; i++) wf_scorer_free(scorers[i]);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return 0;
}
