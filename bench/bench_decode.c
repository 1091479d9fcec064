/* bench_decode.c - decoding speed on one task, CPU and GPU side by side.
 *
 *     bench_decode GRAPH SCORES ACOUSTIC_SCALE BEAM MAX_ACTIVE FRAME_SHIFT_S DEVICE UTTERANCES [DEVICE UTTERANCES ...]
 *
 * The score files' utterances are repeated to the number asked for. DEVICE: cpu (all processors), cpu1 (one thread), cuda (scores sent from host
 * memory), or cudad (scores already in device memory). Prints one line a pair: best of several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WARPFST_BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "warpfst.h"

enum { MAX_MATRICES = 4096 };

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(wf_status status, const wf_error *err) {
  if (status == WF_OK) return;
  fprintf(stderr, "bench_decode: %s\n", err->message);
  exit(1);
}

static const void *to_device(const wf_matrix *matrix) {
#ifdef WARPFST_BENCH_CUDA
  void *copy = NULL;
  size_t bytes = (size_t)matrix->num_frames * (size_t)matrix->num_columns * sizeof(float);
  if (cudaMalloc(&copy, bytes) == cudaSuccess && cudaMemcpy(copy, matrix->data, bytes, cudaMemcpyHostToDevice) == cudaSuccess) return copy;
#endif
  fprintf(stderr, "bench_decode: no device memory\n");
  exit(1);
}

static void run(const wf_graph *graph, wf_decoder_options options, const wf_matrix *matrices, size_t num_matrices, const void **on_device, const char *device,
                size_t count, double frame_shift_s) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_scores *scores = calloc(count, sizeof *scores);
  wf_result **results = calloc(count, sizeof *results);
  bool resident = strcmp(device, "cudad") == 0;
  int64_t frames = 0;
  if (scores == NULL || results == NULL) exit(1);
  for (size_t i = 0; i < count; i++) {
    const wf_matrix *m = &matrices[i % num_matrices];
    if (resident && on_device[i % num_matrices] == NULL) on_device[i % num_matrices] = to_device(m);
    scores[i] = (wf_scores){.data = resident ? on_device[i % num_matrices] : m->data, .num_frames = m->num_frames, .num_columns = m->num_columns,
                            .stride = m->num_columns, .on_device = resident};
    frames += m->num_frames;
  }
  options.num_threads = strcmp(device, "cpu1") == 0 ? 1 : 0;
  options.device = strncmp(device, "cuda", 4) == 0 ? "cuda" : "cpu";
  check(wf_decoder_create(graph, &options, &decoder, &err), &err);
  double best = 1e30;
  int rounds = strncmp(device, "cuda", 4) == 0 ? 4 : 2;
  double tokens = 0, arcs = 0, cost = 0;
  size_t failed = 0;
  for (int round = 0; round < rounds; round++) {
    double start = now_s();
    check(wf_decode(decoder, scores, count, NULL, results, &err), &err);
    double took = now_s() - start;
    if (took < best) best = took;
    tokens = arcs = cost = 0;
    failed = 0;
    for (size_t i = 0; i < count; i++) {
      tokens += (double)results[i]->num_tokens;
      arcs += (double)results[i]->num_arcs;
      cost += results[i]->cost;
      failed += results[i]->status != WF_OK;
      wf_result_free(results[i]);
    }
  }
  printf("%-6s utterances %5zu  %9.2f ms  %10.0f frames/s  RTFx %9.1f  tokens/frame %6.0f  arcs/frame %6.0f  Garcs/s %6.3f  cost %.6f%s\n", device, count, best * 1e3,
         (double)frames / best, (double)frames * frame_shift_s / best, tokens / (double)frames, arcs / (double)frames, arcs / best * 1e-9,
         cost / (double)count, failed > 0 ? "  FAILED" : "");
  fflush(stdout);
  wf_decoder_free(decoder);
  free(scores);
  free(results);
}

int main(int argc, char **argv) {
  if (argc < 9) {
    fprintf(stderr, "usage: bench_decode GRAPH SCORES ACOUSTIC_SCALE BEAM MAX_ACTIVE FRAME_SHIFT_S DEVICE UTTERANCES [DEVICE UTTERANCES ...]\n");
    return 2;
  }
  wf_error err = {0};
  wf_fst *fst;
  wf_graph *graph;
  wf_score_reader *reader;
  static wf_matrix matrices[MAX_MATRICES];
  static const void *on_device[MAX_MATRICES];
  size_t count = 0;
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.acoustic_scale = strtof(argv[3], NULL);
  options.beam = strtof(argv[4], NULL);
  options.max_active = atoi(argv[5]);
  options.max_tokens = options.max_active <= 14336 ? 14336 : options.max_active;
  check(wf_fst_read(argv[1], &fst, &err), &err);
  check(wf_graph_create(fst, NULL, 0, &graph, &err), &err);
  const char *sources[] = {argv[2]};
  check(wf_score_reader_open(sources, 1, NULL, &reader, &err), &err);
  for (bool done = false; count < MAX_MATRICES; count++) {
    check(wf_score_reader_next(reader, &matrices[count], &done, &err), &err);
    if (done) break;
  }
  for (int i = 7; i + 1 < argc; i += 2) run(graph, options, matrices, count, on_device, argv[i], (size_t)atol(argv[i + 1]), strtod(argv[6], NULL));
  for (size_t i = 0; i < count; i++) wf_matrix_clear(&matrices[i]);
  wf_score_reader_free(reader);
  wf_graph_free(graph);
  wf_fst_free(fst);
  return 0;
}
