/* bias_kernels.cu - a step of a batch of hypotheses (bias_kernels.h), one cooperative launch.
 *
 *   rows     a block for each hypothesis: reorders, follows its token, writes its state. If only
 *            listed tokens cost something, it changes these in the logits, and the row is done
 *   barrier  of the whole grid
 *   passes   the other rows, in chunks of columns that all blocks share: reads each logit once, adds
 *            the costs of all parts in the CPU's order, and writes the logit
 *
 * In a chunk, the lists of a state are read from the deepest on; a column belongs to the first list
 * that claims it. Columns that none claims have the cost that the part has for all others. */
#include "cuda/device/ngram_cache.cuh"
#include "cuda/generation/bias_kernels.h"

#include <cooperative_groups.h>

#include "cuda/device/ptx.cuh"

typedef uint32_t u32;
typedef uint64_t u64;

enum {
  THREADS = WF__BIAS_THREADS,
  COLUMNS = WF__BIAS_COLUMNS,
  QUADS = COLUMNS / THREADS / 4, /* of columns, of a thread */
  AHEAD = 4,                     /* listed tokens that a thread has in work at once */
  BYTES = 256
};
enum { DONE, FEW, ALL }; /* columns of a row that change */

struct shared_row {
  wf__gpu_hypothesis of;
  wf__bias_ends ends;
  u32 columns;               /* that change */
  u32 claimed[COLUMNS / 32]; /* of a chunk */
  float costs[COLUMNS];      /* of claimed columns */
  u32 first[BYTES];          /* child of the word's node; num_nodes: none */
};

/* --- rows -------------------------------------------------------------------------------- */

__device__ static u32 index_at(const wf__bias_work &w, const void *array, u32 i) {
  if (w.index_bytes == 4) return ((const u32 *)array)[i];
  const u64 index = ((const u64 *)array)[i];
  return index < UINT32_MAX ? (u32)index : UINT32_MAX;
}

__device__ static u32 columns_of(const wf__bias_view &bias, const wf_bias_state &state) {
  if (state.ended) return DONE;
  if (wf__bias_has_words(&bias) || wf__bias_has_grammar(&bias)) return ALL;
  for (int i = 0; i < bias.flat.num_parts; i++) {
    const wf__flat_part *part = &bias.flat.parts[i];
    const u32 at = wf__flat_context(part, state.context);
    if (part->kind != WF__FLAT_PHRASES || wf__phrase_pending(&bias, i, at) != 0 ||
        wf__phrase_refund(&bias, i, at) != 0)
      return ALL;
  }
  return FEW;
}

/* Makes the state of hypothesis i. One thread. */
__device__ static __noinline__ void follow(const wf__bias_work &w, u32 i, shared_row &s) {
  const u32 place = w.places != nullptr ? index_at(w, w.places, i) : i;
  const bool is_there = place < w.num_before;
  wf__gpu_hypothesis of = is_there ? w.from[place] : w.first[i < w.num_first ? i : 0];
  if (!is_there && i >= w.num_first) {
    of.state = wf_bias_state{};
    of.state.ended = 1;
  }
  if (w.tokens != nullptr) {
    const float cost = wf__bias_step(&of.bias->view, &of.state, index_at(w, w.tokens, i));
    if (w.costs != nullptr) w.costs[i] = cost;
  }
  if (w.to != w.from) w.to[i] = of;
  s.of = of;
  s.columns = w.logits != nullptr ? columns_of(of.bias->view, of.state) : DONE;
  if (s.columns != ALL) return;
  wf_bias_state after = of.state;
  w.ends[i].text = wf__bias_final(&of.bias->view, &of.state);
  w.ends[i].word =
      wf__bias_has_words(&of.bias->view) ? wf__word_end(&of.bias->view.words, &after) : 0;
  w.passes[atomicAdd(w.num_passes, 1u)] = i;
}

/* --- rows of which few columns change ------------------------------------------------------ */

struct few_columns {
  const wf__gpu_bias *bias;
  u64 context;
  float *row;

  __device__ const wf__flat_part &part(int i) const { return bias->view.flat.parts[i]; }
  __device__ u32 node(int i) const { return wf__flat_context(&part(i), context); }

  /* Does a node of part q list the token, from its own to `last`, without this? */
  __device__ bool is_listed(int q, u32 last, u32 token) const {
    const wf__flat_part &of = part(q);
    for (u32 at = node(q); at != last; at = of.nodes[at].failure) {
      if (wf__flat_find(&of, (u64)at << 32 | (token + 1)) != UINT32_MAX) return true;
      if (at == 0) break;
    }
    return false;
  }
  /* Is an entry of a node of part i the first with its token? */
  __device__ bool is_first(int i, u32 at, u32 token) const {
    for (int q = 0; q < i; q++)
      if (is_listed(q, UINT32_MAX, token)) return false;
    return !is_listed(i, at, token);
  }
  /* Of an entry of part i. */
  __device__ float cost_of(int i, wf__bias_entry entry) const {
    const wf__bias_view *view = &bias->view;
    float sum = view->flat.num_parts > 1 ? 0.0f : -0.0f;
    for (int q = 0; q < view->flat.num_parts; q++) {
      u32 next;
      sum += q == i ? wf__phrase_cost(view, q, node(q), entry.value, 0)
                    : wf__phrase_step(view, q, node(q), entry.token, &next);
    }
    return sum;
  }
  __device__ void change(int i, u32 at, bool alone) const {
    const wf__bias_list list = bias->parts[i].lists[at];
    const wf__bias_entry *entries = bias->parts[i].entries + list.first;
    for (u32 base = threadIdx.x; base < list.count; base += AHEAD * THREADS) {
      wf__bias_entry entry[AHEAD];
      float value[AHEAD];
      bool is_own[AHEAD];
#pragma unroll
      for (u32 k = 0; k < AHEAD; k++) {
        is_own[k] = base + k * THREADS < list.count;
        if (is_own[k]) entry[k] = entries[base + k * THREADS];
      }
#pragma unroll
      for (u32 k = 0; k < AHEAD; k++) {
        is_own[k] = is_own[k] && (alone || is_first(i, at, entry[k].token));
        if (is_own[k]) value[k] = row[entry[k].token] - cost_of(i, entry[k]);
      }
#pragma unroll
      for (u32 k = 0; k < AHEAD; k++)
        if (is_own[k]) row[entry[k].token] = value[k];
    }
  }
  __device__ void change_all() const {
    for (int i = 0; i < bias->view.flat.num_parts; i++) {
      const bool alone = bias->view.flat.num_parts == 1 && node(i) == 0;
      for (u32 at = node(i);; at = part(i).nodes[at].failure) {
        change(i, at, alone);
        if (at == 0) break;
      }
    }
  }
};

__device__ static __noinline__ void change_few(const wf__gpu_bias *bias, u64 context, float *row) {
  few_columns{bias, context, row}.change_all();
}

/* --- passes through a row ------------------------------------------------------------------ */

__device__ static float word_cost(const shared_row &s, const wf__gpu_bias *bias, u32 token) {
  const wf__words_view *words = &bias->view.words;
  if (token >= bias->view.num_tokens || wf__bias_is_special(&bias->view, token)) return 0;
  const u32 from = s.of.state.word, token_class = bias->classes[token];
  if (token_class == WF__TOKEN_DEPENDS) {
    wf_bias_state at = s.of.state;
    return wf__words_step(words, &at, token);
  }
  if (from == 0) return bias->begins[token];
  if (token_class == WF__TOKEN_BEGINS) return s.ends.word + bias->begins[token];
  u32 node = from < words->num_nodes ? s.first[bias->heads[token]] : words->num_nodes;
  if (node < words->num_nodes) {
    const u64 end = words->offsets[token + 1];
    for (u64 b = words->offsets[token] + 1; b < end && node < words->num_nodes; b++)
      node = wf__word_child(words, node, words->bytes[b]);
  }
  return wf__word_ahead(words, node) - wf__word_paid(words, from);
}

/* Sets the costs of the thread's columns to those of the model of words. */
__device__ static __noinline__ void price_words(shared_row &s, const wf__gpu_bias *bias,
                                                u64 first) {
  for (u32 at = threadIdx.x * 4; at < COLUMNS; at += 4 * THREADS)
    for (u32 k = 0; k < 4; k++) s.costs[at + k] = word_cost(s, bias, (u32)first + at + k);
}

/* A chunk of a row. Thread t has the columns first + 4 t .. first + 4 t + 3, and the same
 * 4 * THREADS further on. */
struct chunk {
  shared_row &s;
  const wf__gpu_bias *bias;
  float *row;
  u64 first, width;

  __device__ u64 column(int q) const { return first + (u64)(q * THREADS + threadIdx.x) * 4; }
  /* Bits of the thread's columns that are claimed. */
  __device__ u32 claims(int q) const {
    const u32 at = (q * THREADS + threadIdx.x) * 4;
    return s.claimed[at / 32] >> at % 32 & 15;
  }
  __device__ const float *claimed_costs(int q) const {
    return s.costs + (q * THREADS + threadIdx.x) * 4;
  }
  /* Kinds of the thread's columns, 8 bits each. */
  __device__ u32 kinds(int q) const {
    return column(q) < bias->view.num_tokens ? *(const u32 *)(bias->view.kinds + column(q))
                                             : WF_TOKEN_SILENT * 0x01010101u;
  }
  __device__ void clear() const {
    __syncthreads();
    for (u32 i = threadIdx.x; i < COLUMNS / 32; i += THREADS) s.claimed[i] = 0;
    __syncthreads();
  }
  __device__ bool claim(u64 token) const {
    const u32 at = (u32)(token - first), bit = 1u << at % 32;
    return !(atomicOr(&s.claimed[at / 32], bit) & bit);
  }
  /* Claims the listed columns of a node or state. */
  template <class F>
  __device__ void claim_list(const wf__bias_part &part, u32 node, const F &cost) const {
    const wf__bias_list list = part.lists[node];
    u64 begin = 0, count = list.count;
    if (count > WF__BIAS_LISTED) {
      const u32 *places = part.index + list.index + first / COLUMNS;
      begin = places[0];
      count = places[1] - begin;
    }
    const wf__bias_entry *entries = part.entries + list.first + begin;
    for (u64 j = threadIdx.x; j < count; j += THREADS) {
      const wf__bias_entry entry = entries[j];
      if (entry.token >= first && entry.token < first + COLUMNS && claim(entry.token))
        s.costs[entry.token - first] = cost(entry);
    }
    if (count > 0) __syncthreads();
  }

  __device__ void add_phrases(int i, float (&sum)[QUADS][4]) const {
    const wf__bias_view *view = &bias->view;
    const u32 from = wf__flat_context(&view->flat.parts[i], s.of.state.context);
    const float refund = wf__phrase_refund(view, i, from),
                leave = wf__phrase_pending(view, i, from),
                paid_back = refund != 0 ? leave + refund : leave;
    for (u32 at = from;; at = view->flat.parts[i].nodes[at].failure) {
      claim_list(bias->parts[i], at, [&](wf__bias_entry entry) {
        const bool continues = view->kinds[entry.token] & WF_TOKEN_CONTINUES;
        return wf__phrase_cost(view, i, from, entry.value, continues ? refund : 0);
      });
      if (at == 0) break;
    }
    for (int q = 0; q < QUADS; q++) {
      const u32 mine = claims(q);
      const u32 kind = kinds(q);
      const float *costs = claimed_costs(q);
      for (int k = 0; k < 4; k++) {
        const bool continues = kind >> 8 * k & WF_TOKEN_CONTINUES;
        sum[q][k] += mine >> k & 1 ? costs[k] : continues ? paid_back : leave;
      }
    }
  }

  __device__ void add_ngrams(int i, float (&sum)[QUADS][4]) const {
    const wf__flat_part &part = bias->view.flat.parts[i];
    const float scale = part.lm_scale;
    float backed_off = 0;
    for (u32 state = wf__flat_context(&part, s.of.state.context); state != 0;) {
      const wf__wlm_state record = wf__wlm_state_at(&part.lm, state);
      const float before = backed_off;
      claim_list(bias->parts[i], state, [&](wf__bias_entry entry) {
        return wf__flat_sound(scale * (before + __uint_as_float(entry.value)));
      });
      backed_off = before + record.backoff_cost;
      state = record.backoff < state ? record.backoff : 0;
    }
    for (int q = 0; q < QUADS; q++) {
      if (column(q) >= bias->view.num_tokens) continue;
      const u32 mine = claims(q);
      const float *costs = claimed_costs(q);
      const float4 four = *(const float4 *)(bias->parts[i].unigrams + column(q));
      const float other[4] = {four.x, four.y, four.z, four.w};
      for (int k = 0; k < 4; k++)
        sum[q][k] += mine >> k & 1 ? costs[k] : wf__flat_sound(scale * (backed_off + other[k]));
    }
  }

  __device__ void add_words(float (&sum)[QUADS][4]) const {
    price_words(s, bias, first);
    for (int q = 0; q < QUADS; q++)
      for (int k = 0; k < 4; k++) sum[q][k] += claimed_costs(q)[k];
  }
  __device__ void add_parts(float (&sum)[QUADS][4]) const {
    for (int i = 0; i < bias->view.flat.num_parts; i++) {
      clear();
      if (bias->view.flat.parts[i].kind == WF__FLAT_PHRASES)
        add_phrases(i, sum);
      else
        add_ngrams(i, sum);
    }
    if (wf__bias_has_words(&bias->view)) add_words(sum);
  }

  __device__ bool is_aligned() const { return (uintptr_t)(row + first) % 16 == 0; }
  __device__ void load(float (&x)[QUADS][4]) const {
    for (int q = 0; q < QUADS; q++) {
      if (is_aligned() && column(q) + 4 <= width) {
        const float4 four = __ldcs((const float4 *)(row + column(q)));
        x[q][0] = four.x, x[q][1] = four.y, x[q][2] = four.z, x[q][3] = four.w;
        continue;
      }
      for (int k = 0; k < 4; k++) x[q][k] = column(q) + k < width ? row[column(q) + k] : 0;
    }
  }
  __device__ void store(const float (&x)[QUADS][4]) const {
    for (int q = 0; q < QUADS; q++) {
      if (is_aligned() && column(q) + 4 <= width) {
        __stcs((float4 *)(row + column(q)), float4{x[q][0], x[q][1], x[q][2], x[q][3]});
        continue;
      }
      for (int k = 0; k < 4; k++)
        if (column(q) + k < width) row[column(q) + k] = x[q][k];
    }
  }

  /* Claims the columns of the arcs [begin, end) of the grammar. */
  __device__ void claim_arcs(u64 begin, u64 end) const {
    const wf_arc *arcs = bias->view.grammar.arcs;
    clear();
    for (u64 a = begin + threadIdx.x; a < end; a += THREADS) {
      const u64 token = (u64)arcs[a].ilabel - 1;
      (void)claim(token);
      s.costs[token - first] = arcs[a].weight;
    }
    __syncthreads();
  }
  __device__ float special(float logit, u32 kind, float value) const {
    if (kind & WF_TOKEN_ENDS) return logit - s.ends.text;
    if (kind & WF_TOKEN_SILENT) return wf__bias_has_grammar(&bias->view) ? -INFINITY : logit;
    return value;
  }

  __device__ void change() const {
    const wf__bias_view *view = &bias->view;
    const bool restricted = wf__bias_has_grammar(view);
    const int num_sums = view->flat.num_parts + wf__bias_has_words(view);
    u64 begin = 0, end = 0;
    if (restricted && s.of.state.grammar != WF__NO_TEXT) {
      const u64 *off = view->grammar.arc_off + s.of.state.grammar;
      begin = wf__grammar_find(&view->grammar, off[0], off[1], (u32)first + 1);
      end = wf__grammar_find(&view->grammar, begin, off[1], (u32)first + COLUMNS + 1);
    }
    const float zero = num_sums > 1 ? 0.0f : -0.0f; /* -0 changes no cost */
    const bool adds = num_sums > 0 && first < view->num_tokens && (!restricted || begin < end);
    float x[QUADS][4], sum[QUADS][4];
    load(x);
    for (int q = 0; q < QUADS; q++)
      for (int k = 0; k < 4; k++) sum[q][k] = zero;
    if (adds) add_parts(sum);
    if (restricted) claim_arcs(begin, end);
    for (int q = 0; q < QUADS; q++) {
      const u32 kind = kinds(q), mine = restricted ? claims(q) : 15;
      for (int k = 0; k < 4; k++) {
        float value = adds ? x[q][k] - sum[q][k] : x[q][k];
        if (restricted) value = mine >> k & 1 ? value - claimed_costs(q)[k] : -INFINITY;
        x[q][k] = special(x[q][k], kind >> 8 * k & 255, value);
      }
    }
    store(x);
  }
};

/* Reads what another block has written of row i. */
__device__ static void load_row(const wf__bias_work &w, u32 i, shared_row &s) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const u64 *from = (const u64 *)&w.to[i];
    u64 *to = (u64 *)&s.of;
    for (u32 k = 0; k < sizeof s.of / 8; k++) to[k] = __ldcg(&from[k]);
    s.ends.text = __ldcg(&w.ends[i].text);
    s.ends.word = __ldcg(&w.ends[i].word);
  }
  __syncthreads();
  const wf__words_view *words = &s.of.bias->view.words;
  if (words->num_nodes > 0 && s.of.state.word != 0)
    for (u32 byte = threadIdx.x; byte < BYTES; byte += THREADS)
      s.first[byte] = wf__word_child(words, s.of.state.word, byte);
  __syncthreads();
}

__global__ static void __launch_bounds__(THREADS, 4) step_kernel(const wf__bias_work w) {
  WF__SHARED(shared_row, s);
  for (u32 i = blockIdx.x; i < w.count; i += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) follow(w, i, s);
    __syncthreads();
    if (s.columns == FEW) change_few(s.of.bias, s.of.state.context, w.logits + i * w.stride);
  }
  if (w.logits == nullptr) return;
  cooperative_groups::this_grid().sync();
  const u64 chunks = (w.width + COLUMNS - 1) / COLUMNS, all = __ldcg(w.num_passes) * chunks,
            end = all * (blockIdx.x + 1) / gridDim.x;
  u32 pass = UINT32_MAX, row = 0;
  if (blockIdx.x == 0 && threadIdx.x == 0) *w.next_num_passes = 0;
  for (u64 item = all * blockIdx.x / gridDim.x; item < end; item++) {
    if (item / chunks != pass) {
      pass = (u32)(item / chunks);
      row = __ldcg(&w.passes[pass]);
      load_row(w, row, s);
    }
    chunk{s, s.of.bias, w.logits + row * w.stride, item % chunks * COLUMNS, w.width}.change();
  }
}

int wf__bias_most_blocks(u32 *out) {
  int device = 0, num_processors = 0, per_processor = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess)
    code = cudaDeviceGetAttribute(&num_processors, cudaDevAttrMultiProcessorCount, device);
  if (code == cudaSuccess)
    code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, step_kernel, THREADS, 0);
  *out = (u32)(num_processors * per_processor);
  return (int)code;
}

int wf__bias_step_launch(const wf__bias_work *work, u32 most_blocks, void *stream) {
  const u64 chunks = work->logits != nullptr ? (work->width + COLUMNS - 1) / COLUMNS : 1,
            wanted = work->count * (chunks > 0 ? chunks : 1);
  cudaLaunchAttribute together;
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(wanted < most_blocks ? wanted : most_blocks));
  config.blockDim = dim3(THREADS);
  config.stream = (cudaStream_t)stream;
  config.attrs = &together;
  config.numAttrs = 1;
  return (int)cudaLaunchKernelEx(&config, step_kernel, *work);
}
