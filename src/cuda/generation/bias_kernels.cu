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
#include <cuda_pipeline_primitives.h>

#include "cuda/device/ptx.cuh"

typedef uint32_t u32;
typedef uint64_t u64;

enum {
  THREADS = WF__BIAS_THREADS,
  COLUMNS = WF__BIAS_COLUMNS,
  QUADS = COLUMNS / THREADS / 4, /* of columns, of a thread */
  AHEAD = 4,                     /* listed tokens that a thread has in work at once */
  LEVELS = WF__BIAS_LEVELS,
  BYTES = 256
};
enum { DONE, FEW, ALL }; /* columns of a row that change */

/* The lists that hold for a node of phrases or a state of an n-gram model: its own, then those of
 * the nodes or states that it backs off to. */
struct list_walk {
  u32 node, ends;
  float before; /* n-grams: costs of backing off so far */
};
struct level {
  const wf__bias_entry *entries;
  const u32 *places; /* of a long list: entries before each chunk */
  u32 count;
  float before;
};
struct row_part {
  u32 from, num_levels;
  float leave,
      refund;     /* phrases: what tokens in no list cost, and pay back if they continue a word */
  list_walk rest; /* after the levels */
  level levels[LEVELS];
};
/* Of a chunk. */
struct logits {
  float *from;
  u64 first;
  u32 row, pass, count, is_aligned;
};
struct shared_row {
  wf__gpu_hypothesis of;
  wf__bias_ends ends;
  row_part parts[WF__FLAT_PARTS];
  u32 columns;                          /* that change */
  u32 claimed[COLUMNS / 32];            /* of a chunk */
  alignas(16) float costs[COLUMNS];     /* of claimed columns */
  alignas(16) float sums[COLUMNS];      /* of all parts' costs; a thread's own */
  logits chunks[2];                     /* one and the next */
  alignas(16) float values[2][COLUMNS]; /* their logits; a thread's own */
  u32 first[BYTES];                     /* child of the word's node; num_nodes: none */
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

/* Place of the thread's columns in a chunk: thread t has 4 t .. 4 t + 3, and the same 4 * THREADS
 * further on. */
__device__ static u32 place(int q) { return (q * THREADS + threadIdx.x) * 4; }
__device__ static bool is_whole(const logits &of, int q) {
  return of.is_aligned && place(q) + 4 <= of.count;
}
/* Adds the costs of the model of words to those of the thread's columns. */
__device__ static __noinline__ void add_words(shared_row &s, const wf__gpu_bias *bias, u64 first) {
  for (int q = 0; q < QUADS; q++)
    for (u32 k = 0; k < 4; k++)
      s.sums[place(q) + k] += word_cost(s, bias, (u32)first + place(q) + k);
}

/* Begins to read the thread's logits; __pipeline_wait_prior waits for them. */
__device__ static void read_logits(const logits &of, float *to) {
  for (int q = 0; q < QUADS; q++) {
    if (is_whole(of, q)) {
      __pipeline_memcpy_async(to + place(q), of.from + place(q), 16);
      continue;
    }
#pragma unroll 1
    for (u32 k = place(q); k < place(q) + 4 && k < of.count; k++) to[k] = of.from[k];
  }
  __pipeline_commit();
}
__device__ static void write_logits(const logits &of, int q, float4 x) {
  if (is_whole(of, q)) {
    __stcs((float4 *)(of.from + place(q)), x);
    return;
  }
  const float values[4] = {x.x, x.y, x.z, x.w};
  for (u32 k = 0; k < 4; k++)
    if (place(q) + k < of.count) of.from[place(q) + k] = values[k];
}

/* The next level of part i. */
__device__ static level next_level(const wf__gpu_bias *bias, int i, list_walk &at) {
  const wf__flat_part *part = &bias->view.flat.parts[i];
  const wf__bias_part *tables = &bias->parts[i];
  const wf__bias_list list = tables->lists[at.node];
  const bool is_long = list.count > WF__BIAS_LISTED;
  const level out = {tables->entries + list.first, is_long ? tables->index + list.index : nullptr,
                     list.count, at.before};
  if (part->kind == WF__FLAT_PHRASES) {
    at.ends = at.node == 0;
    at.node = at.ends ? 0 : part->nodes[at.node].failure;
  } else {
    const wf__wlm_state record = wf__wlm_state_at(&part->lm, at.node);
    at.before += record.backoff_cost;
    at.node = record.backoff < at.node ? record.backoff : 0;
    at.ends = at.node == 0;
  }
  return out;
}
/* A thread for each part. */
__device__ static __noinline__ void set_part(const wf__gpu_bias *bias, int i, row_part &out,
                                             u64 context) {
  const wf__flat_part *part = &bias->view.flat.parts[i];
  const bool is_phrases = part->kind == WF__FLAT_PHRASES;
  out.from = wf__flat_context(part, context);
  out.leave = is_phrases ? wf__phrase_pending(&bias->view, i, out.from) : 0;
  out.refund = is_phrases ? wf__phrase_refund(&bias->view, i, out.from) : 0;
  out.rest = list_walk{out.from, !is_phrases && out.from == 0, 0};
  for (out.num_levels = 0; out.num_levels < LEVELS && !out.rest.ends;) {
    out.levels[out.num_levels] = next_level(bias, i, out.rest);
    out.num_levels += out.levels[out.num_levels].count > 0;
  }
}

/* A chunk of a row. */
struct chunk {
  shared_row &s;
  const wf__gpu_bias *bias;
  u64 first;

  __device__ u64 column(int q) const { return first + place(q); }
  /* Bits of the thread's columns that are claimed. */
  __device__ u32 claims(int q) const {
    const u32 at = place(q);
    return s.claimed[at / 32] >> at % 32 & 15;
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
  /* Claims the columns of a list. */
  template <class F>
  __device__ void claim_list(const level &of, const F &cost) const {
    u32 begin = 0, end = of.count;
    if (of.places != nullptr) {
      begin = of.places[first / COLUMNS];
      end = of.places[first / COLUMNS + 1];
    }
#pragma unroll 1
    for (u32 j = begin + threadIdx.x; j < end; j += THREADS) {
      const wf__bias_entry entry = of.entries[j];
      const u64 at = entry.token - first; /* huge before the chunk */
      if (at < COLUMNS && claim(entry.token)) s.costs[at] = cost(entry, of.before);
    }
    if (begin < end) __syncthreads();
  }
  /* Claims the columns of all lists of part i; returns the costs of backing off. */
  template <class F>
  __device__ float claim_lists(int i, const F &cost) const {
    const row_part &of = s.parts[i];
    for (u32 l = 0; l < of.num_levels; l++) claim_list(of.levels[l], cost);
    list_walk rest = of.rest;
    while (!rest.ends) claim_list(next_level(bias, i, rest), cost);
    return rest.before;
  }

  __device__ void add_phrases(int i) const {
    const wf__bias_view *view = &bias->view;
    const row_part &of = s.parts[i];
    const float refund = of.refund, leave = of.leave,
                paid_back = refund != 0 ? leave + refund : leave;
    claim_lists(i, [&](wf__bias_entry entry, float) {
      const bool continues = view->kinds[entry.token] & WF_TOKEN_CONTINUES;
      return wf__phrase_cost(view, i, of.from, entry.value, continues ? refund : 0);
    });
    for (int q = 0; q < QUADS; q++) {
      const u32 kind = kinds(q);
      float costs[4];
      for (int k = 0; k < 4; k++) costs[k] = kind >> 8 * k & WF_TOKEN_CONTINUES ? paid_back : leave;
      add_claimed(q, costs);
    }
  }

  __device__ void add_ngrams(int i) const {
    const float scale = bias->view.flat.parts[i].lm_scale;
    const float backed_off = claim_lists(i, [&](wf__bias_entry entry, float before) {
      return wf__flat_sound(scale * (before + __uint_as_float(entry.value)));
    });
    for (int q = 0; q < QUADS; q++) {
      if (column(q) >= bias->view.num_tokens) continue;
      const float4 four = *(const float4 *)(bias->parts[i].unigrams + column(q));
      float costs[4] = {four.x, four.y, four.z, four.w};
      for (int k = 0; k < 4; k++) costs[k] = wf__flat_sound(scale * (backed_off + costs[k]));
      add_claimed(q, costs);
    }
  }

  /* Adds the claimed costs of four columns, and of the others those given. */
  __device__ void add_claimed(int q, float (&costs)[4]) const {
    const u32 mine = claims(q);
    if (mine != 0)
      for (int k = 0; k < 4; k++)
        if (mine >> k & 1) costs[k] = s.costs[place(q) + k];
    float4 *sums = (float4 *)(s.sums + place(q));
    *sums = {sums->x + costs[0], sums->y + costs[1], sums->z + costs[2], sums->w + costs[3]};
  }

  __device__ void set_sums(float to) const {
    for (int q = 0; q < QUADS; q++) *(float4 *)(s.sums + place(q)) = {to, to, to, to};
  }
  __device__ void add_parts() const {
    const int num_parts = bias->view.flat.num_parts;
    for (int i = 0; i < num_parts; i++) {
      clear();
      if (bias->view.flat.parts[i].kind == WF__FLAT_PHRASES)
        add_phrases(i);
      else
        add_ngrams(i);
    }
    if (wf__bias_has_words(&bias->view)) add_words(s, bias, first);
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
  __device__ float change_one(float logit, float sum, u32 kind, bool is_claimed, float cost) const {
    const bool restricted = wf__bias_has_grammar(&bias->view);
    if (kind & WF_TOKEN_ENDS) return logit - s.ends.text;
    if (!restricted) return kind & WF_TOKEN_SILENT ? logit : logit - sum;
    return !(kind & WF_TOKEN_SILENT) && is_claimed ? logit - sum - cost : -INFINITY;
  }

  /* Changes the thread's logits, which were read to `values`. */
  __device__ void change(const logits &of, const float *values) const {
    const wf__bias_view *view = &bias->view;
    const bool restricted = wf__bias_has_grammar(view);
    u64 begin = 0, end = 0;
    if (restricted && s.of.state.grammar != WF__NO_TEXT) {
      const u64 *off = view->grammar.arc_off + s.of.state.grammar;
      begin = wf__grammar_find(&view->grammar, off[0], off[1], (u32)first + 1);
      end = wf__grammar_find(&view->grammar, begin, off[1], (u32)first + COLUMNS + 1);
    }
    const int num_sums = view->flat.num_parts + wf__bias_has_words(view);
    const bool adds = num_sums > 0 && first < view->num_tokens && (!restricted || begin < end);
    set_sums(adds && num_sums == 1 ? -0.0f : 0.0f); /* -0 changes no cost, 0 no logit */
    if (adds) add_parts();
    if (restricted) claim_arcs(begin, end);
    for (int q = 0; q < QUADS; q++) {
      const float4 x = *(const float4 *)(values + place(q)),
                   sum = *(const float4 *)(s.sums + place(q)),
                   cost = *(const float4 *)(s.costs + place(q));
      const u32 kind = kinds(q), mine = restricted ? claims(q) : 0;
      float4 y = {x.x - sum.x, x.y - sum.y, x.z - sum.z, x.w - sum.w};
      if (restricted || kind & (WF_TOKEN_ENDS | WF_TOKEN_SILENT) * 0x01010101u) {
        y.x = change_one(x.x, sum.x, kind, mine & 1, cost.x);
        y.y = change_one(x.y, sum.y, kind >> 8, mine & 2, cost.y);
        y.z = change_one(x.z, sum.z, kind >> 16, mine & 4, cost.z);
        y.w = change_one(x.w, sum.w, kind >> 24, mine & 8, cost.w);
      }
      write_logits(of, q, y);
    }
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
  if (threadIdx.x % 32 == 0) /* a warp for each part */
    for (u32 i = threadIdx.x / 32; i < s.of.bias->view.flat.num_parts; i += THREADS / 32)
      set_part(s.of.bias, (int)i, s.parts[i], s.of.state.context);
  const wf__words_view *words = &s.of.bias->view.words;
  if (words->num_nodes > 0 && s.of.state.word != 0)
    for (u32 byte = threadIdx.x; byte < BYTES; byte += THREADS)
      s.first[byte] = wf__word_child(words, s.of.state.word, byte);
  __syncthreads();
}

/* The chunk that begins at a column of a pass. */
__device__ static logits chunk_at(const wf__bias_work &w, u64 pass, u64 first) {
  const u32 row = __ldcg(&w.passes[pass]);
  float *from = w.logits + row * w.stride + first;
  const u64 count = w.width - first < COLUMNS ? w.width - first : COLUMNS;
  return logits{from, first, row, (u32)pass, (u32)count, (uintptr_t)from % 16 == 0};
}
/* The logits of the next chunk are on their way while a chunk is worked on. */
__device__ static void change_all(const wf__bias_work &w, shared_row &s) {
  const u64 chunks = (w.width + COLUMNS - 1) / COLUMNS, all = __ldcg(w.num_passes) * chunks,
            begin = all * blockIdx.x / gridDim.x;
  u32 left = (u32)(all * (blockIdx.x + 1) / gridDim.x - begin);
  if (blockIdx.x == 0 && threadIdx.x == 0) *w.next_num_passes = 0;
  if (left == 0) return;
  if (threadIdx.x == 0) s.chunks[left % 2] = chunk_at(w, begin / chunks, begin % chunks * COLUMNS);
  __syncthreads();
  read_logits(s.chunks[left % 2], s.values[left % 2]);
  load_row(w, s.chunks[left % 2].row, s);
  for (; left > 0; left--) {
    const logits &now = s.chunks[left % 2];
    logits &next = s.chunks[(left + 1) % 2];
    if (threadIdx.x == 0 && left > 1) {
      const bool ends = now.first + COLUMNS >= w.width;
      next = chunk_at(w, now.pass + ends, ends ? 0 : now.first + COLUMNS);
    }
    __syncthreads();
    if (left > 1)
      read_logits(next, s.values[(left + 1) % 2]);
    else
      __pipeline_commit();
    __pipeline_wait_prior(1);
    chunk{s, s.of.bias, now.first}.change(now, s.values[left % 2]);
    if (left > 1 && next.row != now.row) load_row(w, next.row, s);
    __syncthreads();
  }
}

__global__ static void __launch_bounds__(THREADS, 4)
    step_kernel(const __grid_constant__ wf__bias_work w) {
  WF__SHARED(shared_row, s);
  for (u32 i = blockIdx.x; i < w.count; i += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) follow(w, i, s);
    __syncthreads();
    if (s.columns == FEW) change_few(s.of.bias, s.of.state.context, w.logits + i * w.stride);
  }
  if (w.logits == nullptr) return;
  cooperative_groups::this_grid().sync();
  change_all(w, s);
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
