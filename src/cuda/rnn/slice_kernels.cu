/* slice_kernels.cu - products of rows of integers (slice_kernels.h), by tensor cores.
 *
 * A row's integer has three digits of 8 bits, q = d0 2^16 + d1 2^8 + d2. The nine products of
 * digits are added in 32 bits, those of the same weight together, and the five sums in 64 bits. */
#include <cuda_pipeline_primitives.h>

#include "cuda/rnn/row_count.cuh"
#include "cuda/rnn/slice_rows.cuh"

/* --- integers of rows -------------------------------------------------------------------- */

/* QUADS: four columns can be read at a time. */
template <bool QUADS>
__device__ static float4 four_of(const float *row, u32 columns, u32 k) {
  if (QUADS && k + 4 <= columns) return *(const float4 *)(row + k);
  return make_float4(k < columns ? row[k] : 0, k + 1 < columns ? row[k + 1] : 0,
                     k + 2 < columns ? row[k + 2] : 0, k + 3 < columns ? row[k + 3] : 0);
}

template <bool QUADS>
__global__ static void __launch_bounds__(SLICE_THREADS)
    slice_rows_kernel(const float *x, u32 columns, u32 x_stride, const wf__row_count count,
                      const wf__sliced to) {
  const u32 num = rows_of(count);
  for (u32 row = blockIdx.x; row < num; row += gridDim.x) {
    const float *own = x + (u64)row * x_stride;
    slice_row([&](u32 k) { return four_of<QUADS>(own, columns, k); }, to, row);
  }
}
int wf__slice_rows(const float *x, u32 columns, u32 x_stride, wf__row_count count, wf__sliced to,
                   void *stream) {
  const u32 blocks = count.most < MAX_BLOCKS ? count.most : MAX_BLOCKS;
  if (blocks == 0) return (int)cudaSuccess;
  const bool quads = (uintptr_t)x % sizeof(float4) == 0 && x_stride % 4 == 0;
  return quads ? (int)WF__LAUNCH(slice_rows_kernel<true>, blocks, SLICE_THREADS, 0, stream, x,
                                 columns, x_stride, count, to)
               : (int)WF__LAUNCH(slice_rows_kernel<false>, blocks, SLICE_THREADS, 0, stream, x,
                                 columns, x_stride, count, to);
}

/* --- products ---------------------------------------------------------------------------- */

enum {
  PART = 32,        /* rows and columns that a warp computes */
  STEP = 32,        /* columns of w and x that it multiplies at a time */
  TALL = PART / 16, /* its tiles of 16 rows ... */
  WIDE = PART / 8,  /* ... and 8 columns */
  CHUNK = 16,       /* bytes that are copied at a time */
  WEIGHTS = 2 * WF__SLICE_DIGITS - 1
};

/* A block computes ACROSS x DOWN parts: ACROSS * 32 vectors x by DOWN * 32 rows of w. DEEP warps
 * share a part's columns. `depth` columns at a time are in shared memory, in STAGES buffers; BLOCKS
 * blocks fit a multiprocessor. */
template <u32 ACROSS, u32 DOWN, u32 DEEP, u32 STAGES, u32 BLOCKS>
struct slice_shape {
  static constexpr u32 across = ACROSS, deep = DEEP, stages = STAGES, blocks = BLOCKS,
                       parts = ACROSS * DOWN, vectors = ACROSS * PART, rows = DOWN * PART,
                       all = vectors + rows, depth = DEEP > 1 ? STEP *DEEP : 2 * STEP,
                       threads = parts * DEEP * LANES, chunks = depth / CHUNK,
                       at_once = threads / chunks, /* rows that all threads copy a chunk of */
      vector_copies = vectors / at_once, row_copies = rows / at_once,
                       stage_bytes = all * WF__SLICE_DIGITS * depth,
                       part_sums = parts * PART * PART,
                       sum_bytes = DEEP > 1 ? WEIGHTS *part_sums * 4 : 0,
                       scales_at =
                           STAGES * stage_bytes > sum_bytes ? STAGES *stage_bytes : sum_bytes,
                       scale_bytes = (2 * all) * sizeof(float), bytes = scales_at + scale_bytes;
  static_assert(vectors % at_once == 0 && rows % at_once == 0 && at_once % 8 == 0, "whole copies");
  /* Where a chunk is in a stage. Eight rows' chunks of the same columns are in different banks. */
  static __device__ u32 place(u32 digit, u32 row, u32 chunk) {
    const u32 turn = depth == 64 ? row >> 1 & 3 : row & 7;
    return (digit * all + row) * depth + (chunk ^ turn) * CHUNK;
  }
};
typedef slice_shape<2, 4, 1, 6, 1> two_groups; /* of GPUs that multiply by groups of warps */
typedef slice_shape<2, 2, 1, 3, 2> middle_shape;
typedef slice_shape<1, 1, 4, 3, 2> small_shape;
typedef slice_shape<1, 1, 4, 2, 2> least_shape; /* 48 KB, which every GPU has */

__device__ static u64 chosen(const wf__row_choice &choice, u32 b) {
  return choice.of != nullptr ? (u64)choice.of[(u64)b * choice.step] * choice.times + choice.plus
                              : b;
}

/* The chunks that a thread copies, of the same columns of several rows. */
template <class S>
struct chunk_copies {
  const uint8_t *from[S::vector_copies + S::row_copies];
  u32 stride, to;

  /* Rows beyond the last are copies of it, and nobody stores their products. */
  __device__ chunk_copies(const wf__slice_product &p, u32 first_vector, u32 num_vectors,
                          u32 first_row)
      : stride(p.x.stride) {
    const u32 chunk = threadIdx.x % S::chunks, own = threadIdx.x / S::chunks;
    to = S::place(0, own, chunk);
#pragma unroll
    for (u32 i = 0; i < S::vector_copies; i++)
      from[i] = p.x.digits + chunk * CHUNK +
                chosen(p.from, min(first_vector + own + i * S::at_once, num_vectors - 1)) *
                    (WF__SLICE_DIGITS * stride);
#pragma unroll
    for (u32 i = 0; i < S::row_copies; i++)
      from[S::vector_copies + i] =
          p.w.digits + chunk * CHUNK +
          (u64)min(first_row + own + i * S::at_once, p.num_rows - 1) * (WF__SLICE_DIGITS * stride);
  }
  __device__ void start(u32 column, unsigned char *stage) const {
    if (column < stride) {
#pragma unroll
      for (u32 digit = 0; digit < WF__SLICE_DIGITS; digit++)
#pragma unroll
        for (u32 i = 0; i < S::vector_copies + S::row_copies; i++)
          __pipeline_memcpy_async(stage + to + (digit * S::all + i * S::at_once) * S::depth,
                                  from[i] + digit * stride + column, CHUNK);
    }
    __pipeline_commit();
  }
};

/* Where a lane reads a part's vectors and rows in a stage, of the first STEP columns. Other tiles
 * and digits are whole groups of eight rows further. */
template <class S>
struct part_places {
  u32 x, w;
  __device__ part_places(u32 first_vector, u32 first_row, u32 chunk)
      : x(first_vector * S::depth + S::place(0, this_lane() % 16, chunk + this_lane() / 16)),
        w((S::vectors + first_row) * S::depth +
          S::place(0, this_lane() / 16 * 8 + this_lane() % 8, chunk + this_lane() / 8 % 2)) {}
};

/* Adds the products of STEP columns: the first of the places, or with `turn` of STEP the next. */
template <class S>
__device__ static void multiply_step(const unsigned char *stage, const part_places<S> &from,
                                     u32 turn, int (&sum)[TALL][WIDE][WEIGHTS][4]) {
  u32 x[TALL][WF__SLICE_DIGITS][4];
#pragma unroll
  for (u32 t = 0; t < TALL; t++)
#pragma unroll
    for (u32 digit = 0; digit < WF__SLICE_DIGITS; digit++)
      load_matrices(x[t][digit], stage + (from.x ^ turn) + (digit * S::all + t * 16) * S::depth);
#pragma unroll
  for (u32 pair = 0; pair < WIDE / 2; pair++) {
    u32 w[WF__SLICE_DIGITS][4]; /* of two tiles */
#pragma unroll
    for (u32 digit = 0; digit < WF__SLICE_DIGITS; digit++)
      load_matrices(w[digit], stage + (from.w ^ turn) + (digit * S::all + pair * 16) * S::depth);
#pragma unroll
    for (u32 i = 0; i < 2; i++)
#pragma unroll
      for (u32 t = 0; t < TALL; t++) multiply_digits(sum[t][pair * 2 + i], x[t], w, i * 2);
  }
}

/* The sum of all products of an element. */
__device__ static int64_t all_weights(const int (&sum)[WEIGHTS][4], u32 i) {
  int64_t value = sum[0][i];
#pragma unroll
  for (u32 weight = 1; weight < WEIGHTS; weight++) value = value * 256 + sum[weight][i];
  return value;
}

/* Where a block's products go. */
template <class S>
struct product_output {
  float *scales, *bias; /* in shared memory: scales of its vectors, then of its rows; and ... */
  u32 *to;              /* ... rows of y for its vectors; NOWHERE: beyond the last */
  float *y;             /* the column of its first row */
  u32 y_stride, rows, width; /* from there on; columns from `rows` on are zeros */
  enum : u32 { NOWHERE = 0xffffffffu };

  /* Fills the shared memory, which the next barrier shows to all threads. */
  __device__ product_output(const wf__slice_product &p, u32 vector, u32 vector_end, u32 row,
                            unsigned char *memory)
      : scales((float *)(memory + S::scales_at)),
        bias(scales + S::all),
        to((u32 *)(bias + S::rows)),
        y(p.y + row),
        y_stride(p.y_stride),
        rows(p.num_rows - row),
        width(max(p.num_rows, p.width) - row) {
    for (u32 i = threadIdx.x; i < S::vectors; i += S::threads) {
      const bool is = vector + i < vector_end;
      scales[i] = p.x.scales[chosen(p.from, is ? vector + i : vector_end - 1)];
      to[i] = is ? (u32)chosen(p.to, vector + i) : NOWHERE;
    }
    for (u32 i = threadIdx.x; i < S::rows; i += S::threads) {
      const u32 own = min(row + i, p.num_rows - 1);
      scales[S::vectors + i] = p.w.scales[own];
      bias[i] = p.bias != nullptr ? p.bias[own] : -0.0f; /* which changes nothing */
    }
  }
  /* Of a vector, whose scale and row are these, and a row of this block. */
  __device__ void put(float scale, u32 y_row, u32 row, int64_t sum) const {
    const float value = wf__slice_value(sum, scale, scales[S::vectors + row]) + bias[row];
    if (y_row != NOWHERE && row < width) y[(u64)y_row * y_stride + row] = row < rows ? value : 0;
  }
};

/* Element i of a lane's four in tile (t, n) of a part. */
__device__ static u32 vector_of(u32 t, u32 i) { return t * 16 + i / 2 * 8 + this_lane() / 4; }
__device__ static u32 row_of(u32 n, u32 i) { return n * 8 + this_lane() % 4 * 2 + i % 2; }

template <class S>
__global__ static void __launch_bounds__(S::threads, S::blocks)
    slice_product_kernel(const __grid_constant__ wf__slice_product p) {
  WF__DYNAMIC_SHARED(unsigned char, memory);
  const u32 first_vector = blockIdx.x * S::vectors, first_row = blockIdx.y * S::rows,
            count = rows_of(p.count);
  if (first_vector >= count) return;
  const chunk_copies<S> copies(p, first_vector, count, first_row);
  const product_output<S> output(p, first_vector, count, first_row, memory);
  const u32 warp = threadIdx.x / LANES, part = warp % S::parts, share = warp / S::parts,
            part_vector = part % S::across * PART, part_row = part / S::across * PART;
  const part_places<S> from(part_vector, part_row, share * 2);
  int sum[TALL][WIDE][WEIGHTS][4] = {};
#pragma unroll
  for (u32 s = 0; s + 1 < S::stages; s++) copies.start(s * S::depth, memory + s * S::stage_bytes);
  u32 own = 0, next = S::stages - 1;
  for (u32 column = 0; column < p.x.stride; column += S::depth) {
    __pipeline_wait_prior(S::stages - 2);
    __syncthreads(); /* all have this stage, and have done with the one before */
    copies.start(column + (S::stages - 1) * S::depth, memory + next * S::stage_bytes);
    const unsigned char *stage = memory + own * S::stage_bytes;
    multiply_step<S>(stage, from, 0, sum);
    if (S::deep == 1) multiply_step<S>(stage, from, STEP, sum);
    own = own + 1 == S::stages ? 0 : own + 1;
    next = next + 1 == S::stages ? 0 : next + 1;
  }
  if (S::deep == 1) {
#pragma unroll
    for (u32 t = 0; t < TALL; t++)
#pragma unroll
      for (u32 half = 0; half < 4; half += 2) {
        const u32 vector = part_vector + vector_of(t, half), to = output.to[vector];
        const float scale = output.scales[vector];
#pragma unroll
        for (u32 n = 0; n < WIDE; n++)
#pragma unroll
          for (u32 i = half; i < half + 2; i++)
            output.put(scale, to, part_row + row_of(n, i), all_weights(sum[t][n], i));
      }
    return;
  }
  /* Sums of each weight, [weight][part][vector][row], in the memory of the stages. */
  int *sums = (int *)memory;
  __syncthreads();
  for (u32 k = threadIdx.x; k < WEIGHTS * S::part_sums; k += S::threads) sums[k] = 0;
  __syncthreads();
  sums += part * PART * PART + vector_of(0, 0) * PART + row_of(0, 0);
#pragma unroll
  for (u32 t = 0; t < TALL; t++)
#pragma unroll
    for (u32 n = 0; n < WIDE; n++)
#pragma unroll
      for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 weight = 0; weight < WEIGHTS; weight++)
          atomicAdd(sums + weight * S::part_sums + (t * 16 + i / 2 * 8) * PART + n * 8 + i % 2,
                    sum[t][n][weight][i]);
  __syncthreads();
  for (u32 k = threadIdx.x; k < S::part_sums; k += S::threads) {
    const u32 of = k / (PART * PART), element = k % (PART * PART);
    int64_t total = 0;
#pragma unroll
    for (u32 weight = 0; weight < WEIGHTS; weight++)
      total = total * 256 + ((const int *)memory)[weight * S::part_sums + k];
    const u32 vector = of % S::across * PART + element / PART;
    output.put(output.scales[vector], output.to[vector], of / S::across * PART + element % PART,
               total);
  }
}

#if defined(WF__HAS_WARPGROUPS)
/* The same by groups of four warps, each of which multiplies 64 vectors by 64 rows. A block computes
 * several tiles, and copies the next one's first columns while it ends one. */

/* The stages that a block copies, one tile after the other. */
template <class S>
struct tile_copies {
  const wf__slice_product &p;
  const u32 num_vectors, across, num_tiles;
  u32 tile, column, stage;
  chunk_copies<S> copies;

  __device__ tile_copies(const wf__slice_product &product, u32 vector_end)
      : p(product),
        num_vectors(vector_end),
        across((vector_end + S::vectors - 1) / S::vectors),
        num_tiles(across * ((product.num_rows + S::rows - 1) / S::rows)),
        tile(blockIdx.x),
        column(0),
        stage(0),
        copies(product, first_vector(tile), num_vectors, first_row(tile)) {}
  __device__ u32 first_vector(u32 of) const { return of % across * S::vectors; }
  __device__ u32 first_row(u32 of) const { return of / across * S::rows; }
  __device__ void start_next(unsigned char *memory) {
    if (tile < num_tiles)
      copies.start(column, memory + stage * S::stage_bytes);
    else
      __pipeline_commit();
    stage = stage + 1 == S::stages ? 0 : stage + 1;
    column += S::depth;
    if (column < p.x.stride) return;
    column = 0;
    tile += gridDim.x;
    if (tile < num_tiles)
      copies = chunk_copies<S>(p, first_vector(tile), num_vectors, first_row(tile));
  }
};

template <class S>
__global__ static void __launch_bounds__(S::threads, S::blocks)
    group_product_kernel(const __grid_constant__ wf__slice_product p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  enum { WIDTH = 64 };
  static_assert(S::vectors == 64 && S::rows * 2 == S::threads && S::depth == 64, "groups of warps");
  WF__DYNAMIC_SHARED(unsigned char, memory);
  const u32 count = rows_of(p.count), lane = this_lane(), warp = threadIdx.x / LANES % 4,
            group = threadIdx.x / LANES / 4, place = S::place(0, warp * 16 + lane % 16, lane / 16);
  if (count == 0) return;
  tile_copies<S> copies(p, count);
  unsigned char *scales = memory; /* there is room for those of two tiles, in turn */
#pragma unroll
  for (u32 s = 0; s + 1 < S::stages; s++) copies.start_next(memory);
  u32 own = 0;
  for (u32 tile = blockIdx.x; tile < copies.num_tiles; tile += gridDim.x) {
    const product_output<S> output(p, copies.first_vector(tile), count, copies.first_row(tile),
                                   scales);
    scales = scales == memory ? memory + S::scale_bytes : memory;
    int sum[WEIGHTS][WIDTH / 2] = {};
    for (u32 column = 0; column < p.x.stride; column += S::depth) {
      __pipeline_wait_prior(S::stages - 2);
      show_copies();
      __syncthreads();
      copies.start_next(memory);
      const unsigned char *stage = memory + own * S::stage_bytes;
      const u64 rows = describe_rows(stage + (S::vectors + group * WIDTH) * S::depth);
      const u32 digit_step = S::all * S::depth >> 4;
#pragma unroll
      for (u32 step = 0; step < S::depth / STEP; step++) {
        u32 a[WF__SLICE_DIGITS][4];
#pragma unroll
        for (u32 digit = 0; digit < WF__SLICE_DIGITS; digit++)
          load_matrices(a[digit], stage + (place ^ step * STEP) + digit * S::all * S::depth);
        const u64 b0 = rows + step * (STEP >> 4), b1 = b0 + digit_step, b2 = b1 + digit_step;
        begin_warpgroup();
        multiply_rows<true, true>(sum[0], a[0], b0);
        multiply_rows<true, false>(sum[1], a[0], b1);
        multiply_rows<true, false>(sum[2], a[0], b2);
        multiply_rows<false, false>(sum[3], a[1], b2);
        multiply_rows<false, false>(sum[4], a[2], b2);
        multiply_rows<false, true>(sum[1], a[1], b0);
        multiply_rows<false, false>(sum[2], a[1], b1);
        multiply_rows<false, false>(sum[3], a[2], b1);
        multiply_rows<false, true>(sum[2], a[2], b0);
        end_warpgroup();
      }
      own = own + 1 == S::stages ? 0 : own + 1;
    }
#pragma unroll
    for (u32 half = 0; half < 4; half += 2) {
      const u32 vector = warp * 16 + vector_of(0, half), to = output.to[vector];
      const float scale = output.scales[vector];
#pragma unroll
      for (u32 n = 0; n < WIDTH / 8; n++)
#pragma unroll
        for (u32 i = n * 4 + half; i < n * 4 + half + 2; i++) {
          int64_t value = sum[0][i];
#pragma unroll
          for (u32 weight = 1; weight < WEIGHTS; weight++) value = value * 256 + sum[weight][i];
          output.put(scale, to, group * WIDTH + row_of(n, i % 4), value);
        }
    }
  }
#endif
}

/* cudaErrorInvalidValue if this GPU has no such operations. */
template <class S>
static int launch_groups(const wf__slice_product &p, void *stream) {
  const u32 bytes = S::bytes + S::scale_bytes, tiles = (p.count.most + S::vectors - 1) /
                                                       S::vectors *
                                                       ((p.num_rows + S::rows - 1) / S::rows);
  int device, num_processors;
  cudaFuncAttributes attributes;
  cudaError_t code = cudaFuncGetAttributes(&attributes, group_product_kernel<S>);
  if (code == cudaSuccess && attributes.numRegs < 128)
    return (int)cudaErrorInvalidValue; /* empty */
  if (code == cudaSuccess)
    code = cudaFuncSetAttribute(group_product_kernel<S>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  if (code == cudaSuccess) code = cudaGetDevice(&device);
  if (code == cudaSuccess)
    code = cudaDeviceGetAttribute(&num_processors, cudaDevAttrMultiProcessorCount, device);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();
    return (int)code;
  }
  return (int)WF__LAUNCH(group_product_kernel<S>, min(tiles, (u32)num_processors), S::threads,
                         bytes, stream, p);
}
#define WITH_GROUPS launch_groups<two_groups>
#else
static int no_groups(const wf__slice_product &, void *) { return (int)cudaErrorInvalidValue; }
#define WITH_GROUPS no_groups
#endif

template <class S>
static int launch_slices(const wf__slice_product &p, void *stream) {
  const dim3 grid((p.count.most + S::vectors - 1) / S::vectors,
                  (p.num_rows + S::rows - 1) / S::rows);
  const cudaError_t code = cudaFuncSetAttribute(
      slice_product_kernel<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)S::bytes);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();
    return (int)code;
  }
  return (int)WF__LAUNCH(slice_product_kernel<S>, grid, S::threads, S::bytes, stream, p);
}

typedef int launch_function(const wf__slice_product &, void *);
int wf__gpu_slice_product_by(u32 shape, const wf__slice_product *product, void *stream) {
  static launch_function *const by_shape[] = {WITH_GROUPS, launch_slices<middle_shape>,
                                              launch_slices<small_shape>,
                                              launch_slices<least_shape>};
  int code = (int)cudaErrorInvalidValue; /* this GPU has less shared memory than the shape takes */
  if (product->count.most == 0) return (int)cudaSuccess;
  for (; shape < WF__SLICE_SHAPES && code == (int)cudaErrorInvalidValue; shape++)
    code = by_shape[shape](*product, stream);
  return code;
}

template <class S>
static u64 blocks_of(const wf__slice_product &p) {
  return (u64)((p.num_rows + S::rows - 1) / S::rows) *
         ((p.count.most + S::vectors - 1) / S::vectors);
}
/* From which larger tiles are better, as measured on an H200 (docs/engineering/gpu.md). */
enum { MANY_BLOCKS = 80, MANY_COLUMNS = 1024 };
int wf__gpu_slice_product(const wf__slice_product *p, void *stream) {
  const bool groups = p->x.stride >= MANY_COLUMNS && blocks_of<two_groups>(*p) >= MANY_BLOCKS;
  return wf__gpu_slice_product_by(groups                                       ? 0
                                  : blocks_of<middle_shape>(*p) >= MANY_BLOCKS ? 1
                                                                               : 2,
                                  p, stream);
}
