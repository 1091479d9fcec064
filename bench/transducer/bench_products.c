/* bench_products - matrix products on a GPU: multiply-adds in one order (wf__rnn_product), exact
 * sums of integers (wf__gpu_slice_product), and cuBLAS with TF32 if LD_LIBRARY_PATH has it.
 *
 *   bench_products [rounds [first shape of tiles]]
 *
 * One line a shape [vectors x][rows w][columns]: microseconds and TFLOP/s (2 a multiply-add) of
 * each, of integers by every shape of tiles, and of making the integers of the vectors; then the
 * largest and the mean error against float64, and how many of the products checked are not what
 * 64-bit integers on the CPU give. */
#include <stdio.h>
#include <stdlib.h>

#if defined(WARPFST_BENCH_CUDA)
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdint.h>

#include "cuda/rnn/rnn_kernels.h"
#include "cuda/rnn/slice_kernels.h"
#include "math/slices.h"

enum { LAUNCHES = 20, CHECKED_VECTORS = 8 };

static void check(int code, const char *what) {
  if (code == 0) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString((cudaError_t)code));
  exit(1);
}

static uint64_t state = 1;
static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(state >> 11) + 0.5) * 0x1p-53;
}
static float normal(void) {
  return (float)(sqrt(-2 * log(uniform())) * cos(6.283185307 * uniform()));
}

/* --- cuBLAS ------------------------------------------------------------------------------ */

typedef int (*gemm_function)(void *, int, int, int, int, int, const void *, const void *, int, int,
                             const void *, int, int, const void *, void *, int, int, int, int);
static gemm_function gemm;
static void *blas;

static void open_blas(cudaStream_t stream) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  void *library = NULL;
  for (size_t i = 0; i < 3 && library == NULL; i++) library = dlopen(names[i], RTLD_NOW);
  if (library == NULL) return;
  int (*create)(void **), (*set_stream)(void *, cudaStream_t);
  *(void **)&create = dlsym(library, "cublasCreate_v2");
  *(void **)&set_stream = dlsym(library, "cublasSetStream_v2");
  *(void **)&gemm = dlsym(library, "cublasGemmEx");
  if (create == NULL || set_stream == NULL || create(&blas) != 0 || set_stream(blas, stream) != 0)
    gemm = NULL;
}

/* --- one shape --------------------------------------------------------------------------- */

struct task {
  uint32_t vectors, rows, columns;
  float *x, *w, *y; /* in GPU memory */
  wf__sliced sliced_x, sliced_w;
  cudaStream_t stream;
  int rounds;
};

static int run_plain(const struct task *t, uint32_t unused) {
  (void)unused;
  return wf__rnn_product(t->w, t->rows, t->columns, t->x, t->columns, wf__rows(t->vectors), t->y,
                         t->rows, t->stream);
}
static int run_slices(const struct task *t, uint32_t shape) {
  const wf__slice_product product = {.w = t->sliced_w,
                                     .num_rows = t->rows,
                                     .x = t->sliced_x,
                                     .count = wf__rows(t->vectors),
                                     .y = t->y,
                                     .y_stride = t->rows};
  return shape == WF__SLICE_SHAPES ? wf__gpu_slice_product(&product, t->stream)
                                   : wf__gpu_slice_product_by(shape, &product, t->stream);
}
static int run_slicing(const struct task *t, uint32_t unused) {
  (void)unused;
  return wf__slice_rows(t->x, t->columns, t->columns, wf__rows(t->vectors), t->sliced_x, t->stream);
}
static int run_tf32(const struct task *t, uint32_t unused) {
  (void)unused;
  const float one = 1, zero = 0;
  return gemm(blas, 1, 0, (int)t->rows, (int)t->vectors, (int)t->columns, &one, t->w, 0,
              (int)t->columns, t->x, 0, (int)t->columns, &zero, t->y, 0, (int)t->rows, 77, -1);
}

/* Microseconds of one launch: the least of some rounds of a graph of LAUNCHES. */
static double time_of(const struct task *t, int (*run)(const struct task *, uint32_t),
                      uint32_t shape) {
  cudaGraph_t graph;
  cudaGraphExec_t launches;
  cudaEvent_t begin, end;
  double best = 1e30;
  check(run(t, shape), "the first launch");
  check(cudaStreamSynchronize(t->stream), "the first launch");
  check(cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeThreadLocal), "recording");
  for (int i = 0; i < LAUNCHES; i++) check(run(t, shape), "recording");
  check(cudaStreamEndCapture(t->stream, &graph), "recording");
  check(cudaGraphInstantiate(&launches, graph, 0), "recording");
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  for (int round = 0; round < t->rounds; round++) {
    float ms;
    check(cudaEventRecord(begin, t->stream), "an event");
    check(cudaGraphLaunch(launches, t->stream), "launches");
    check(cudaEventRecord(end, t->stream), "an event");
    check(cudaEventSynchronize(end), "launches");
    check(cudaEventElapsedTime(&ms, begin, end), "an event");
    if (ms * 1000 / LAUNCHES < best) best = ms * 1000 / LAUNCHES;
  }
  cudaGraphExecDestroy(launches);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

/* What the products of some of the vectors are: in float64, and by integers on the CPU. */
struct reference {
  uint32_t vectors[CHECKED_VECTORS];
  double *sums; /* [CHECKED_VECTORS][rows] */
  float *exact, *got;
};
struct errors {
  double largest, mean;
  uint64_t wrong; /* not the bits of `exact` */
};

static float scale_of(const float *row, uint32_t columns) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < columns; k++) {
    const uint32_t bits = wf__slice_bits(row[k]) & INT32_MAX;
    most = bits > most ? bits : most;
  }
  return wf__slice_scale(most);
}

static struct reference refer(const struct task *t, const float *x, const float *w) {
  const uint64_t size = (uint64_t)CHECKED_VECTORS * t->rows;
  struct reference r = {.sums = malloc(size * sizeof *r.sums),
                        .exact = malloc(size * sizeof *r.exact),
                        .got = malloc(size * sizeof *r.got)};
  if (r.sums == NULL || r.exact == NULL || r.got == NULL) check(2, "memory");
  for (uint32_t c = 0; c < CHECKED_VECTORS; c++) {
    r.vectors[c] = (uint32_t)((uint64_t)c * (t->vectors - 1) / (CHECKED_VECTORS - 1));
    const float *p = x + (uint64_t)r.vectors[c] * t->columns, a = scale_of(p, t->columns);
    for (uint32_t i = 0; i < t->rows; i++) {
      const float *q = w + (uint64_t)i * t->columns, b = scale_of(q, t->columns);
      double sum = 0;
      int64_t exact = 0;
      for (uint32_t k = 0; k < t->columns; k++) {
        sum += (double)p[k] * (double)q[k];
        exact += (int64_t)wf__slice_integer(p[k], wf__slice_factor(a)) *
                 wf__slice_integer(q[k], wf__slice_factor(b));
      }
      r.sums[(uint64_t)c * t->rows + i] = sum;
      r.exact[(uint64_t)c * t->rows + i] = wf__slice_value(exact, a, b);
    }
  }
  return r;
}

static struct errors errors_of(const struct task *t, const struct reference *r) {
  const uint64_t size = (uint64_t)CHECKED_VECTORS * t->rows;
  struct errors e = {0, 0, 0};
  for (uint32_t c = 0; c < CHECKED_VECTORS; c++)
    check(cudaMemcpy(r->got + (uint64_t)c * t->rows, t->y + (uint64_t)r->vectors[c] * t->rows,
                     t->rows * sizeof *r->got, cudaMemcpyDeviceToHost),
          "results");
  for (uint64_t i = 0; i < size; i++) {
    const double error = fabs((double)r->got[i] - r->sums[i]);
    e.largest = error > e.largest || error != error ? error : e.largest;
    e.mean += error / (double)size;
    e.wrong += r->got[i] != r->exact[i];
  }
  return e;
}

static void *gpu_memory(uint64_t bytes) {
  void *at;
  check(cudaMalloc(&at, bytes), "GPU memory");
  return at;
}

static void measure(uint32_t vectors, uint32_t rows, uint32_t columns, cudaStream_t stream,
                    int rounds, uint32_t first_shape) {
  const uint32_t stride = wf__slice_stride(columns);
  const uint64_t num_x = (uint64_t)vectors * columns, num_w = (uint64_t)rows * columns,
                 num_y = (uint64_t)vectors * rows;
  float *x = malloc(num_x * sizeof *x), *w = malloc(num_w * sizeof *w),
        *y = malloc(num_y * sizeof *y);
  if (x == NULL || w == NULL) check(cudaErrorMemoryAllocation, "memory");
  struct task t = {
      .vectors = vectors, .rows = rows, .columns = columns, .stream = stream, .rounds = rounds};
  for (uint64_t i = 0; i < num_x; i++) x[i] = tanhf(normal());
  for (uint64_t i = 0; i < num_w; i++) w[i] = normal() / sqrtf((float)columns);
  t.x = gpu_memory(num_x * sizeof *x);
  t.w = gpu_memory(num_w * sizeof *w);
  t.y = gpu_memory(num_y * sizeof *y);
  t.sliced_x = wf__sliced_in(gpu_memory(wf__sliced_bytes(vectors, stride)), vectors, stride);
  t.sliced_w = wf__sliced_in(gpu_memory(wf__sliced_bytes(rows, stride)), rows, stride);
  check(cudaMemcpy(t.x, x, num_x * sizeof *x, cudaMemcpyHostToDevice), "vectors");
  check(cudaMemcpy(t.w, w, num_w * sizeof *w, cudaMemcpyHostToDevice), "weights");
  /* A copy from pageable memory may end later, and `stream` does not wait for it. */
  check(cudaDeviceSynchronize(), "copies");
  check(wf__slice_rows(t.w, columns, columns, wf__rows(rows), t.sliced_w, stream), "weights");
  const double teraflop = 2e-6 * (double)num_y * columns, slicing = time_of(&t, run_slicing, 0),
               plain = time_of(&t, run_plain, 0);
  const struct reference reference = refer(&t, x, w);
  const struct errors of_plain = errors_of(&t, &reference);
  double by_shape[WF__SLICE_SHAPES + 1];
  uint64_t wrong[WF__SLICE_SHAPES + 1] = {0};
  struct errors of_slices = {0, 0, 0};
  for (uint32_t s = 0; s < first_shape; s++) by_shape[s] = 0;
  for (uint32_t s = first_shape; s <= WF__SLICE_SHAPES; s++) {
    check(cudaMemset(t.y, 0xff, num_y * sizeof *y), "results");
    by_shape[s] = time_of(&t, run_slices, s);
    of_slices = errors_of(&t, &reference);
    wrong[s] = of_slices.wrong;
  }
  printf("%5u %5u %5u  plain %8.1f us %6.1f T  slices %8.1f us %6.1f T (+ %.1f us; by shape",
         vectors, rows, columns, plain, teraflop / plain, by_shape[WF__SLICE_SHAPES],
         teraflop / by_shape[WF__SLICE_SHAPES], slicing);
  for (uint32_t s = 0; s < WF__SLICE_SHAPES; s++) printf(" %.1f", by_shape[s]);
  printf(")");
  if (gemm != NULL) {
    const double tf32 = time_of(&t, run_tf32, 0);
    const struct errors of_tf32 = errors_of(&t, &reference);
    printf("  TF32 %8.1f us %6.1f T, error %.1e", tf32, teraflop / tf32, of_tf32.largest);
  }
  printf("  errors: plain %.1e mean %.1e, slices %.1e mean %.1e, wrong by shape", of_plain.largest,
         of_plain.mean, of_slices.largest, of_slices.mean);
  for (uint32_t s = 0; s <= WF__SLICE_SHAPES; s++) printf(" %llu", (unsigned long long)wrong[s]);
  printf("\n");
  fflush(stdout);
  cudaFree(t.x);
  cudaFree(t.w);
  cudaFree(t.y);
  cudaFree(t.sliced_x.digits);
  cudaFree(t.sliced_w.digits);
  free(x);
  free(w);
  free(reference.sums);
  free(reference.exact);
  free(reference.got);
}

int main(int argc, char **argv) {
  static const uint32_t matrices[][2] = {{500, 512},  {512, 512},  {1025, 640}, {640, 1024},
                                         {2560, 640}, {8197, 640}, {5120, 1280}},
                        vectors[] = {64, 133, 400, 1024, 3200, 4096};
  const int rounds = argc > 1 ? atoi(argv[1]) : 10;
  const uint32_t first_shape = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a GPU");
  open_blas(stream);
  printf("vectors, rows, columns; cuBLAS: %s\n", gemm != NULL ? "yes" : "no");
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
      measure(vectors[v], matrices[m][0], matrices[m][1], stream, rounds, first_shape);
  return 0;
}
#else
int main(void) {
  fprintf(stderr, "this build has no GPU backend\n");
  return 1;
}
#endif
