/* bench_decode.c - measures decoding of one task with one or more settings. Prints a JSON object
 * per line; bench/decode/decode.py makes tables of them.
 *
 *     bench_decode GRAPH SCORES [FLAG...] RUN...
 *
 * decode_command.h describes flags and runs.
 * "seconds" in the output is the median round, "processor_s" the processor time of all threads for
 * a round, on average. "digest" covers all that wf_decode returns for the
 * first --check utterances: runs with the same beams, max_active, dtype and frames must have the
 * same digest on every device. "on_cpu" counts utterances that did not fit on the GPU, over all
 * rounds. A run that fails prints an object with "error"; the other runs continue, and the exit
 * code is 1. Any other error ends the program with exit code 2. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WARPFST_BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "boost_lists.h"
#include "decode_command.h"
#include "peak_memory.h"
#include "score_types.h"
#include "warpfst_all.h"

enum { MAX_MATRICES = 100000, MAX_ROUNDS = 64, MAX_SECONDS = 20 };

/* The score matrices in the type and memory that a run needs. */
struct copies {
  void *data;
  bool on_device, pinned, owned;
};

struct bench {
  struct decode_command command;
  wf_fst *fst;
  wf_graph *graph;
  wf_symbols *words;
  wf_transcripts *references;
  wf_matrix *matrices;
  size_t num_matrices;
  struct copies *copies; /* [num_matrices], in the form described below */
  char copies_form[16];
  struct copies tiled;      /* for a run with `frames` */
  atomic_size_t num_on_cpu; /* in this run, counted from log messages */
  wf_lm *lm;                /* NULL: none */
  wf_lm_info lm_info;
  wf_scorer *lm_scorer; /* of the decoder; NULL: none */
  wf_scorer **boosts;   /* [utterances of the run], of wf_decode; NULL: none */
  wf_decoder *decoder;  /* of the last run; reused if its options are the same */
  wf_decoder_options decoder_options;
  char decoder_device[16], decoder_lm[8];
  double decoder_cache;
};

struct totals {
  double tokens, expanded, arcs, narrowed, cost, lattice_arcs, host_mib, processor_s;
  size_t num_not_final, num_narrowed, num_died, num_overflow, num_failed;
  uint64_t digest;
  wf_wer_counts wer;
};

/* --- scores in the form that a run needs ------------------------------------------------- */

#ifdef WARPFST_BENCH_CUDA
static void cuda_check(cudaError_t code) {
  if (code != cudaSuccess) fail(cudaGetErrorString(code));
}
static void *gpu_memory(size_t bytes, bool on_device) {
  void *memory = NULL;
  cuda_check(on_device ? cudaMalloc(&memory, bytes) : cudaMallocHost(&memory, bytes));
  return memory;
}
static void gpu_send(void *to, const void *from, size_t bytes) {
  cuda_check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}
static void gpu_free(void *memory, bool on_device) {
  cuda_check(on_device ? cudaFree(memory) : cudaFreeHost(memory));
}
static void gpu_name(char *out, size_t size, int *num_processors) {
  struct cudaDeviceProp properties;
  cuda_check(cudaGetDeviceProperties(&properties, 0));
  snprintf(out, size, "%s", properties.name);
  *num_processors = properties.multiProcessorCount;
}
#else
static void *gpu_memory(size_t bytes, bool on_device) {
  fail("built without CUDA: scores=host and device=cpu only");
  return NULL;
}
static void gpu_send(void *to, const void *from, size_t bytes) {}
static void gpu_free(void *memory, bool on_device) {}
static void gpu_name(char *out, size_t size, int *num_processors) { fail("built without CUDA"); }
#endif

static void release_copies(struct bench *bench) {
  for (size_t i = 0; i < bench->num_matrices; i++) {
    if (bench->copies[i].on_device || bench->copies[i].pinned)
      gpu_free(bench->copies[i].data, bench->copies[i].on_device);
    else if (bench->copies[i].owned)
      free(bench->copies[i].data);
    bench->copies[i] = (struct copies){0};
  }
}

static void hold(struct bench *bench, const struct run *run, size_t i) {
  struct copies *copies = &bench->copies[i];
  const wf_matrix *matrix = &bench->matrices[i];
  size_t size = (size_t)matrix->num_frames * (size_t)matrix->num_columns,
         bytes = size * element_bytes(run->dtype);
  if (copies->data != NULL || size == 0) return;
  bool device = strcmp(run->scores, "device") == 0, pinned = strcmp(run->scores, "pinned") == 0;
  if (!device && !pinned && strcmp(run->dtype, "f32") == 0) {
    *copies = (struct copies){.data = matrix->data};
    return;
  }
  void *host = pinned ? gpu_memory(bytes, false) : allocate(bytes, 1);
  convert(matrix->data, host, size, run->dtype);
  *copies = (struct copies){.data = host, .pinned = pinned, .owned = true};
  if (!device) return;
  *copies = (struct copies){.data = gpu_memory(bytes, true), .on_device = true};
  gpu_send(copies->data, host, bytes);
  free(host);
}

static void hold_all(struct bench *bench, const struct run *run, wf_scores *scores) {
  char form[32];
  snprintf(form, sizeof form, "%s %s", run->scores, run->dtype);
  if (strcmp(form, bench->copies_form) != 0) release_copies(bench);
  snprintf(bench->copies_form, sizeof bench->copies_form, "%.15s", form);
  for (size_t i = 0; i < run->utterances; i++) {
    const wf_matrix *matrix = &bench->matrices[i % bench->num_matrices];
    hold(bench, run, i % bench->num_matrices);
    const struct copies *copies = &bench->copies[i % bench->num_matrices];
    scores[i] = (wf_scores){.data = copies->data,
                            .num_frames = matrix->num_frames,
                            .num_columns = matrix->num_columns,
                            .stride = matrix->num_columns,
                            .on_device = copies->on_device};
    scores[i].dtype = dtype_of(run->dtype);
  }
}

/* Makes one utterance of run->frames frames. */
static void hold_tiled(struct bench *bench, const struct run *run, wf_scores *out) {
  const size_t columns = (size_t)bench->matrices[0].num_columns,
               row = columns * element_bytes(run->dtype), bytes = (size_t)run->frames * row;
  char *data = allocate((size_t)run->frames, row);
  size_t i = 0;
  for (int64_t t = 0, from = 0; t < run->frames; t++, from++) {
    for (; from == bench->matrices[i].num_frames; from = 0) i = (i + 1) % bench->num_matrices;
    convert(bench->matrices[i].data + (size_t)from * columns, data + (size_t)t * row, columns,
            run->dtype);
  }
  bench->tiled = (struct copies){.data = data, .owned = true};
  if (strcmp(run->scores, "host") != 0) {
    bool device = strcmp(run->scores, "device") == 0;
    bench->tiled =
        (struct copies){.data = gpu_memory(bytes, device), .on_device = device, .pinned = !device};
    if (device)
      gpu_send(bench->tiled.data, data, bytes);
    else
      memcpy(bench->tiled.data, data, bytes);
    free(data);
  }
  *out = (wf_scores){.data = bench->tiled.data,
                     .num_frames = run->frames,
                     .num_columns = (int32_t)columns,
                     .stride = (int64_t)columns,
                     .on_device = bench->tiled.on_device};
  out->dtype = dtype_of(run->dtype);
}

static void release_tiled(struct bench *bench) {
  if (bench->tiled.on_device || bench->tiled.pinned)
    gpu_free(bench->tiled.data, bench->tiled.on_device);
  else
    free(bench->tiled.data);
  bench->tiled = (struct copies){0};
}

static void hear(void *user, wf_log_level level, const char *text) {
  struct bench *bench = user;
  if (strstr(text, "did not fit the GPU's plan") != NULL) atomic_fetch_add(&bench->num_on_cpu, 1);
}

/* --- results ----------------------------------------------------------------------------- */

static void digest_bytes(uint64_t *digest, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    *digest = (*digest ^ ((const unsigned char *)data)[i]) * 0x100000001B3u;
}

static void digest_result(uint64_t *digest, const wf_result *result) {
  double costs[] = {result->cost, result->graph_cost, result->acoustic_cost};
  uint64_t counts[] = {(uint64_t)result->status, result->flags,       (uint64_t)result->num_decoded,
                       result->num_words,        result->num_tokens,  result->num_expanded,
                       result->num_arcs,         result->num_narrowed};
  digest_bytes(digest, costs, sizeof costs);
  digest_bytes(digest, counts, sizeof counts);
  digest_bytes(digest, result->words, result->num_words * sizeof *result->words);
  digest_bytes(digest, result->alignment, (size_t)result->num_decoded * sizeof *result->alignment);
  if (result->lattice == NULL) return;
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  digest_bytes(digest, lattice.arc_off, (lattice.num_states + 1) * sizeof *lattice.arc_off);
  digest_bytes(digest, lattice.arcs, lattice.num_arcs * sizeof *lattice.arcs);
  digest_bytes(digest, lattice.final_graph_cost,
               lattice.num_states * sizeof *lattice.final_graph_cost);
}

static void count_errors(const struct bench *bench, size_t i, const wf_result *result,
                         wf_wer *wer) {
  int64_t at = bench->references != NULL && bench->tiled.data == NULL
                   ? wf_transcripts_find(bench->references, bench->matrices[i].key)
                   : -1;
  if (at < 0 || bench->words == NULL) return;
  wf_error err = {0};
  wf_transcript reference = wf_transcripts_at(bench->references, (size_t)at);
  const char **words = allocate(result->num_words, sizeof *words);
  for (size_t k = 0; k < result->num_words; k++) {
    const char *text = wf_symbols_text(bench->words, result->words[k].label);
    words[k] = text != NULL ? text : "?";
  }
  wf_transcript hypothesis = {.key = reference.key, .words = words, .num_words = result->num_words};
  check(wf_wer_add(wer, &reference, &hypothesis, NULL, &err), &err);
  free(words);
}

/* Adds the results to the totals and frees them. */
static void take_results(const struct bench *bench, wf_result **results, size_t count,
                         struct totals *out) {
  wf_error err = {0};
  wf_wer *wer;
  check(wf_wer_create(NULL, &wer, &err), &err);
  *out = (struct totals){.digest = 0xCBF29CE484222325u, .host_mib = out->host_mib};
  for (size_t i = 0; i < count; i++) {
    const wf_result *r = results[i];
    out->tokens += (double)r->num_tokens;
    out->expanded += (double)r->num_expanded;
    out->arcs += (double)r->num_arcs;
    out->narrowed += (double)r->num_narrowed;
    out->cost += r->cost;
    out->num_not_final += (r->flags & WF_RESULT_NOT_FINAL) != 0;
    out->num_narrowed += (r->flags & WF_RESULT_NARROWED) != 0;
    out->num_died += (r->flags & WF_RESULT_DIED) != 0;
    out->num_overflow += (r->flags & WF_RESULT_OVERFLOW) != 0;
    out->num_failed += r->status != WF_OK;
    if (r->lattice != NULL) out->lattice_arcs += (double)wf_lattice_get_view(r->lattice).num_arcs;
    if (r->status != WF_OK && out->num_failed == 1)
      fprintf(stderr, "bench_decode: utterance %zu: %s\n", i, r->message);
    if (i < bench->command.check) digest_result(&out->digest, r);
    if (i < bench->num_matrices && r->status == WF_OK) count_errors(bench, i, r, wer);
    wf_result_free(results[i]);
    results[i] = NULL;
  }
  out->wer = wf_wer_totals(wer);
  wf_wer_free(wer);
}

/* Returns the seconds to determinize all lattices; *out_arcs: number of arcs of the results. */
static double determinize(wf_result **results, size_t count, const wf_decoder_options *decoding,
                          double *out_arcs) {
  wf_error err = {0};
  wf_lattice_determinize_options options;
  const wf_lattice **lattices = allocate(count, sizeof *lattices);
  wf_determinized *made = allocate(count, sizeof *made);
  wf_lattice_determinize_options_init(&options);
  options.beam = decoding->lattice_beam;
  options.num_threads = decoding->num_threads;
  for (size_t i = 0; i < count; i++) lattices[i] = results[i]->lattice;
  double start = now_s();
  check(wf_lattices_determinize(lattices, count, NULL, &options, made, &err), &err);
  double took = now_s() - start;
  *out_arcs = 0;
  for (size_t i = 0; i < count; i++) {
    if (made[i].lattice != NULL)
      *out_arcs += (double)wf_compact_lattice_get_view(made[i].lattice).num_arcs;
    wf_compact_lattice_free(made[i].lattice);
  }
  free(lattices);
  free(made);
  return took;
}

/* --- one run ----------------------------------------------------------------------------- */

/* Of all threads of this process. */
static double processor_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static wf_status set_lm(struct bench *bench, const struct run *run, wf_error *err) {
  wf_ngram_scorer_options o;
  wf_scorer *scorer;
  wf_ngram_scorer_options_init(&o);
  o.lm_scale = bench->command.lm_scale;
  const bool hybrid = strcmp(run->lm, "hybrid") == 0;
  check(wf_options_set(wf_option_table_find("ngram_scorer"), &o, "placement",
                       hybrid || strcmp(run->lm, "host") == 0 ? run->lm : "device", err),
        err);
  const uint64_t index = bench->lm_info.index_bytes;
  if (hybrid)
    o.lm_gpu_bytes =
        (int64_t)(run->lm_cache > 0 ? (double)index + run->lm_cache / 100 *
                                                          (double)(bench->lm_info.num_bytes - index)
                                    : 1);
  if (strcmp(run->lm, "table") == 0) check(wf_lm_make_table(bench->lm, NULL, err), err);
  wf_status status = wf_scorer_from_lm(bench->lm, bench->words, &o, &scorer, err);
  if (status != WF_OK) return status;
  bench->lm_scorer = scorer;
  return wf_decoder_set_scorer(bench->decoder, scorer, err);
}

/* Makes the scorers of the run's utterances, if it has lists of boosts. */
static void make_boosts(struct bench *bench, const struct run *run) {
  wf_error err = {0};
  const size_t size = run->boost > 0 ? run->boost : run->boost_each,
               lists = run->boost > 0 ? 1 : run->utterances;
  if (size == 0) return;
  bench->boosts = allocate(run->utterances, sizeof *bench->boosts);
  for (size_t i = 0; i < run->utterances; i++) {
    if (i >= lists) {
      bench->boosts[i] = wf_scorer_ref(bench->boosts[0]);
      continue;
    }
    wf_scorer *boosts = random_boosts(size, true, most_olabel(bench->fst), i + 1);
    bench->boosts[i] = boosts;
    if (bench->lm_scorer == NULL) continue;
    check(wf_scorer_chain(bench->lm_scorer, boosts, &bench->boosts[i], &err), &err);
    wf_scorer_free(boosts);
  }
}

static void free_boosts(struct bench *bench, const struct run *run) {
  for (size_t i = 0; bench->boosts != NULL && i < run->utterances; i++)
    wf_scorer_free(bench->boosts[i]);
  free(bench->boosts);
  bench->boosts = NULL;
}

static wf_status need_decoder(struct bench *bench, const struct run *run, wf_error *err) {
  wf_decoder_options o = run->options;
  const wf_decoder_options *old = &bench->decoder_options;
  bool same = bench->decoder != NULL && old->beam == o.beam && old->max_active == o.max_active &&
              old->min_active == o.min_active && old->max_tokens == o.max_tokens &&
              old->lattice_beam == o.lattice_beam && old->recombine == o.recombine &&
              old->num_threads == o.num_threads &&
              run->frames == 0 && /* with `frames`, the memory measured must be this run's only */
              strcmp(old->device, o.device) == 0 && strcmp(bench->decoder_lm, run->lm) == 0 &&
              bench->decoder_cache == run->lm_cache;
  if (same) return WF_OK;
  wf_decoder_free(bench->decoder);
  wf_scorer_free(bench->lm_scorer);
  bench->decoder = NULL;
  bench->lm_scorer = NULL;
  snprintf(bench->decoder_device, sizeof bench->decoder_device, "%s", o.device);
  bench->decoder_options = o;
  bench->decoder_options.device = bench->decoder_device;
  bench->decoder_cache = run->lm_cache;
  memcpy(bench->decoder_lm, run->lm, sizeof run->lm);
  wf_status status = wf_decoder_create(bench->graph, &o, &bench->decoder, err);
  return status == WF_OK && has_lm(run) ? set_lm(bench, run, err) : status;
}

static wf_status set_determinization(struct bench *bench, const struct run *run, wf_error *err) {
  wf_lattice_determinize_options options;
  wf_lattice_determinize_options_init(&options);
  options.beam = run->options.lattice_beam;
  wf_status status =
      wf_decoder_set_determinization(bench->decoder, run->determinize ? &options : NULL, err);
  if (status != WF_OK || !run->determinize) return status;
  return wf_decoder_set_lattice_results(bench->decoder, &run->lattice_results, err);
}

/* Calls wf_decode until all utterances of the round are decoded. */
static wf_status decode_all(struct bench *bench, const struct run *run, const wf_scores *scores,
                            size_t count, wf_result **results, wf_error *err) {
  wf_status status = WF_OK;
  wf_utterance *utterances = allocate(count, sizeof *utterances);
  for (size_t i = 0; i < count; i++)
    utterances[i] = (wf_utterance){.scores = scores[i],
                                   .scorer = bench->boosts != NULL ? bench->boosts[i] : NULL};
  for (size_t from = 0; from < count && status == WF_OK; from += run->batch)
    status =
        wf_decode(bench->decoder, utterances + from,
                  count - from < run->batch ? count - from : run->batch, NULL, results + from, err);
  free(utterances);
  return status;
}

static void print_run(const struct bench *bench, const struct run *run, const double *times,
                      int rounds, int64_t frames, const struct totals *t, double determinize_s,
                      double compact_arcs) {
  bool gpu = strncmp(run->device, "cuda", 4) == 0;
  double seconds = times[rounds / 2], n = (double)frames > 0 ? (double)frames : 1;
  char name[256] = "cpu";
  int processors = 0;
  if (gpu) gpu_name(name, sizeof name, &processors);
  printf(
      "{\"device\": \"%s\", \"gpu\": \"%s\", \"processors\": %d, \"scores\": \"%s\", \"dtype\": "
      "\"%s\", \"threads\": %d",
      run->device, gpu ? name : "", processors, run->scores, run->dtype, run->options.num_threads);
  printf(
      ", \"batch\": %zu, \"utterances\": %zu, \"beam\": %g, \"max_active\": %d, \"max_tokens\": "
      "%d, \"acoustic_scale\": %g",
      run->batch, run->utterances, run->options.beam, run->options.max_active,
      run->options.max_tokens, bench->command.acoustic_scale);
  printf(
      ", \"frames\": %lld, \"columns\": %d, \"audio_s\": %.2f, \"rounds\": %d, \"seconds\": %.6f, "
      "\"best_s\": %.6f, \"worst_s\": %.6f",
      (long long)frames, bench->matrices[0].num_columns, n * bench->command.frame_shift_s, rounds,
      seconds, times[0], times[rounds - 1]);
  printf(", \"processor_s\": %.6f", t->processor_s);
  printf(
      ", \"rtfx\": %.2f, \"us_per_frame\": %.4f, \"tokens_per_frame\": %.2f, "
      "\"expanded_per_frame\": %.2f, \"arcs_per_frame\": %.2f, \"arcs_per_s\": %.6g",
      n * bench->command.frame_shift_s / seconds, seconds / n * 1e6, t->tokens / n, t->expanded / n,
      t->arcs / n, t->arcs / seconds);
  printf(
      ", \"narrowed_frames\": %.5f, \"narrowed\": %zu, \"overflow\": %zu, \"not_final\": %zu, "
      "\"died\": %zu, \"failed\": %zu",
      t->narrowed / n, t->num_narrowed, t->num_overflow, t->num_not_final, t->num_died,
      t->num_failed);
  if (t->wer.num_words > 0)
    printf(", \"wer\": %.3f, \"ref_words\": %llu", wf_wer_percent(&t->wer),
           (unsigned long long)t->wer.num_words);
  if (run->options.lattice_beam > 0)
    printf(
        ", \"lattice_beam\": %g, \"lattice_arcs_per_frame\": %.3f, \"determinize_s\": %.6f, "
        "\"compact_arcs\": %.0f",
        run->options.lattice_beam, t->lattice_arcs / n, determinize_s, compact_arcs);
  if (run->frames > 0) printf(", \"host_mib\": %.1f", t->host_mib);
  if (gpu) {
    wf_plan plan;
    wf_decoder_get_plan(bench->decoder, &plan);
    printf(", \"gpu_mib\": %.1f, \"on_cpu\": %zu", (double)plan.total_bytes / (1 << 20),
           atomic_load(&bench->num_on_cpu));
  }
  printf(
      ", \"determinize\": %s, \"keep_raw\": %s, \"confidences\": %s, \"mbr\": %s, \"nbest\": %d, "
      "\"tiled\": %s",
      run->determinize ? "true" : "false", run->lattice_results.keep_raw ? "true" : "false",
      run->lattice_results.confidences ? "true" : "false",
      run->lattice_results.mbr ? "true" : "false", run->lattice_results.nbest,
      run->frames > 0 ? "true" : "false");
  printf(", \"boost\": %zu, \"boost_each\": %zu", run->boost, run->boost_each);
  if (has_lm(run)) {
    wf_lm_stats lm; /* of all rounds, including the warm-up */
    wf_decoder_get_lm_stats(bench->decoder, &lm);
    printf(
        ", \"lm\": \"%s\", \"lm_cache\": %g, \"lm_bytes\": %llu, \"lm_gpu_bytes\": %llu, "
        "\"lm_host_bytes\": %llu, \"lm_cache_hits\": %llu, \"lm_host_reads\": %llu, "
        "\"lm_bus_bytes\": %llu, \"lm_stall_s\": %.6f",
        run->lm, run->lm_cache, (unsigned long long)bench->lm_info.num_bytes,
        (unsigned long long)lm.gpu_bytes, (unsigned long long)lm.host_bytes,
        (unsigned long long)lm.cache_hits, (unsigned long long)lm.host_reads,
        (unsigned long long)lm.bus_bytes, lm.stall_s);
  }
  printf(", \"mean_cost\": %.9g, \"checked\": %zu, \"digest\": \"%016llx\"}\n",
         t->cost / (double)run->utterances, bench->command.check, (unsigned long long)t->digest);
  fflush(stdout);
}

/* Returns false if the run failed, after printing the error as its result. */
static bool measure(struct bench *bench, const struct run *run) {
  wf_error err = {0};
  wf_scores *scores = allocate(run->utterances, sizeof *scores);
  wf_result **results = allocate(run->utterances, sizeof *results);
  struct totals totals = {0};
  double times[MAX_ROUNDS], sum = 0, used_s = 0, determinize_s = 0, compact_arcs = 0;
  int64_t frames = 0;
  bool gpu = strncmp(run->device, "cuda", 4) == 0, tiled = run->frames > 0;
  int rounds = 0, least = gpu && !tiled ? 3 : 1;
  if (tiled)
    hold_tiled(bench, run, scores);
  else
    hold_all(bench, run, scores);
  for (size_t i = 0; i < run->utterances; i++) frames += scores[i].num_frames;
  wf_status status = need_decoder(bench, run, &err);
  if (status == WF_OK) status = set_determinization(bench, run, &err);
  make_boosts(bench, run);
  const double before_mib = tiled && forget_peak() ? memory_mib("VmRSS:") : 0;
  atomic_store(&bench->num_on_cpu, 0);
  wf_set_log(hear, bench);
  if (gpu && !tiled && status == WF_OK) { /* warm-up: allocates memory and loads kernels */
    status = decode_all(bench, run, scores,
                        run->batch < run->utterances ? run->batch : run->utterances, results, &err);
    if (status == WF_OK)
      take_results(bench, results, run->batch < run->utterances ? run->batch : run->utterances,
                   &totals);
  }
  while (status == WF_OK && rounds < MAX_ROUNDS &&
         ((rounds < least && sum < MAX_SECONDS) || (!tiled && sum < run->seconds))) {
    const double start = now_s(), processors = processor_s();
    status = decode_all(bench, run, scores, run->utterances, results, &err);
    sum += times[rounds++] = now_s() - start;
    used_s += processor_s() - processors;
    if (tiled && before_mib > 0) totals.host_mib = memory_mib("VmHWM:") - before_mib;
    if (status == WF_OK && run->options.lattice_beam > 0 && rounds == 1 &&
        run->lattice_results.keep_raw)
      determinize_s = determinize(results, run->utterances, &run->options, &compact_arcs);
    if (status == WF_OK) take_results(bench, results, run->utterances, &totals);
  }
  wf_set_log(NULL, NULL);
  if (status == WF_OK) {
    totals.processor_s = used_s / rounds;
    qsort(times, (size_t)rounds, sizeof *times, compare_doubles);
    print_run(bench, run, times, rounds, frames, &totals, determinize_s, compact_arcs);
  } else {
    for (char *at = err.message; *at != '\0'; at++)
      if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = '\'';
    printf("{\"error\": \"device=%s, batch %zu, beam %g, max_active %d: %s\"}\n", run->device,
           run->batch, run->options.beam, run->options.max_active, err.message);
    fflush(stdout);
    for (size_t i = 0; i < run->utterances; i++) wf_result_free(results[i]);
  }
  free(scores);
  free(results);
  free_boosts(bench, run);
  if (tiled) release_tiled(bench);
  return status == WF_OK;
}

/* --- the task ---------------------------------------------------------------------------- */

static void load(struct bench *bench) {
  wf_error err = {0};
  wf_score_reader *reader;
  check(wf_fst_read(bench->command.graph_path, &bench->fst, &err), &err);
  check(wf_graph_create(bench->fst, NULL, 0, &bench->graph, &err), &err);
  if (bench->command.words_path != NULL)
    check(wf_symbols_read(bench->command.words_path, &bench->words, &err), &err);
  else if (wf_fst_osymbols(bench->fst) != NULL)
    bench->words = wf_symbols_ref(wf_fst_osymbols(bench->fst));
  if (bench->command.lm_path != NULL) {
    check(wf_lm_open_mapped(bench->command.lm_path, &bench->lm, &err), &err);
    wf_lm_info_init(&bench->lm_info);
    check(wf_lm_get_info(bench->lm, &bench->lm_info, &err), &err);
  }
  if (bench->command.ref_path != NULL)
    check(
        wf_transcripts_read(bench->command.ref_path, WF_TRANSCRIPT_AUTO, &bench->references, &err),
        &err);
  check(wf_score_reader_open(&bench->command.scores_path, 1, NULL, &reader, &err), &err);
  bench->matrices = allocate(MAX_MATRICES, sizeof *bench->matrices);
  for (bool done = false; bench->num_matrices < MAX_MATRICES; bench->num_matrices++) {
    check(wf_score_reader_next(reader, &bench->matrices[bench->num_matrices], &done, &err), &err);
    if (done) break;
  }
  wf_score_reader_free(reader);
  if (bench->num_matrices == 0) fail("no scores");
  bench->copies = allocate(bench->num_matrices, sizeof *bench->copies);
}

static void unload(struct bench *bench) {
  release_copies(bench);
  for (size_t i = 0; i < bench->num_matrices; i++) wf_matrix_clear(&bench->matrices[i]);
  free(bench->matrices);
  free(bench->copies);
  wf_decoder_free(bench->decoder);
  wf_scorer_free(bench->lm_scorer);
  wf_lm_free(bench->lm);
  wf_transcripts_free(bench->references);
  wf_symbols_free(bench->words);
  wf_graph_free(bench->graph);
  wf_fst_free(bench->fst);
}

int main(int argc, char **argv) {
  struct bench bench = {0};
  const int first_run = parse_decode_command(argc, argv, &bench.command);
  if (first_run == 0) return 2;
  load(&bench);
  bool good = true;
  for (int i = first_run; i < argc; i++) {
    struct run run;
    parse_run(&bench.command, argv[i], &run);
    good = measure(&bench, &run) && good;
  }
  unload(&bench);
  return good ? 0 : 1;
}
