/* rnn_scores.cu - kernels that compute a recurrent scorer's scores for lanes of the search
 * (rnn_score_tables.h), one thread a request. */
#include "cuda/device/ngram_cache.cuh"

#include "cuda/device/grid.cuh"
#include "cuda/rnn/rnn_score_tables.h"
#include "cuda/search/search_params.h"
#include "math/hash.h"

enum { ROOT_HASH = 1 };

/* --- numbers of contexts, as src/scorer/rnn_memory.c makes them -------------------------- */

__device__ static u64 never_empty(u64 hash) { return hash - (hash == ~(u64)0); }
__device__ static u64 extended(u64 history, int32_t word) {
  return never_empty(wf__hash_combine(history, (u64)(u32)word + 1));
}
__device__ static u64 context_hash(u64 history, u32 ngram, u32 small) {
  return never_empty(wf__hash_combine(history, (u64)ngram << 32 | small));
}

/* The context's number for the whole chain. */
__device__ static u64 number_of(const wf__rnn_state_tables &m, const wf__lane_context &context) {
  const u64 own = context_hash(context.history, context.ngram, context.small);
  const wf__flat_scorer *chain = m.roots[context.root];
  return chain == nullptr ? own : wf__flat_number(chain, context.flat, own);
}

/* Key of a context among the places; each root has its own keys. Not 0. */
__device__ static u64 place_key(u64 number, u32 root) {
  const u64 key = root > 0 ? wf__hash_combine(number, root) : number;
  return key + (key == 0);
}

/* Finds the place of a key, or takes a free one. *taken: this thread took it. */
__device__ static u32 take_place(const wf__rnn_state_tables &m, u64 key, bool *taken) {
  const u32 mask = (1u << m.place_bits) - 1;
  for (u32 at = (u32)wf__mix64(key) & mask;; at = (at + 1) & mask) {
    const u64 seen = atomicCAS((ull *)&m.places[at].hash, 0ull, (ull)key);
    *taken = seen == 0;
    if (seen == 0 || seen == key) return at;
  }
}

/* --- features ---------------------------------------------------------------------------- */

/* Like wf__rnn_hashes: hashes the words, then <s>. */
__device__ static void make_features(const wf__rnn_state_tables &m, const int32_t *words, u32 depth,
                                     u64 *hashes) {
  const u32 count = depth + 2 < m.order ? depth + 2 : m.order;
  for (u32 o = 0; o < count; o++) {
    u64 sum = m.first_factor;
    for (u32 i = 0; i < o; i++)
      sum += m.factors[o * m.order + i] * ((u64)(i < depth ? words[i] : m.bos) + 1);
    hashes[o] = sum % m.modulus;
  }
}

/* --- eviction ---------------------------------------------------------------------------- */

__device__ static void keep_context(const wf__rnn_state_tables &m, u32 number) {
  const wf__lane_context &context = m.word_scores.contexts[number];
  m.context_lives[number] = 1;
  m.slot_lives[context.state < WF__LANE_CLAIMED ? context.state : context.before] = 1;
}

__global__ static void keep_kernel(const wf__rnn_state_tables m, const u64 *contexts,
                                   u32 trace_cap) {
  const wf__lane_saved saved = m.word_scores.saved[blockIdx.x];
  if (saved.stage == WF__LANE_IDLE || saved.stage == WF__LANE_BEGINS) return;
  const u64 *newest =
      contexts + 2 * ((u64)blockIdx.x * trace_cap + saved.trace_used - saved.num_sources);
  for (u32 i = threadIdx.x; i < saved.num_sources; i += THREADS)
    keep_context(m, (u32)newest[2 * i]);
}

__global__ static void keep_streams_kernel(const wf__rnn_state_tables m,
                                           const wf__stream_contexts *stream_contexts) {
  const wf__stream_contexts stream = stream_contexts[blockIdx.x];
  for (u32 i = threadIdx.x; i < stream.count; i += THREADS)
    keep_context(m, (u32)stream.contexts[i]);
}

__device__ static void make_start(const wf__rnn_state_tables &m, u32 root, u32 number) {
  const wf__flat_scorer *chain = m.roots[root];
  wf__lane_context start = {0,
                            ROOT_HASH,
                            0,
                            0,
                            m.bos,
                            0,
                            m.start_ngram,
                            m.start_small,
                            chain != nullptr ? chain->start : 0,
                            root,
                            0};
  start.hash = number_of(m, start);
  m.word_scores.contexts[number] = start;
  m.starts[root] = number;
}

__global__ static void starts_kernel(const wf__rnn_state_tables m, int stay) {
  FOR_ALL(i, m.num_roots) {
    if (stay && m.starts[i] == 0) continue;
    if (!stay) make_start(m, (u32)i, (u32)i + 1);
    keep_context(m, m.starts[i]);
    if (i == 0) make_features(m, m.words, 0, m.hashes); /* the features of slot 0 */
  }
}

/* Puts the context on top of the stack into its place. */
__global__ static void start_kernel(const wf__rnn_state_tables m, u32 root) {
  const u32 number = m.free_contexts[m.num_free_contexts - 1];
  bool taken;
  make_start(m, root, number);
  m.places[take_place(m, place_key(m.word_scores.contexts[number].hash, root), &taken)].context =
      number;
}
int wf__word_scores_start(const wf__rnn_state_tables *m, uint32_t root, void *stream) {
  return (int)WF__LAUNCH(start_kernel, dim3(1), 1, 0, stream, *m, root);
}

/* Puts live contexts into their places and all other numbers on the stacks. */
__global__ static void sweep_kernel(const wf__rnn_state_tables m) {
  wf__lane_counters *counters = m.word_scores.counters;
  FOR_ALL(i, m.max_contexts) {
    const u32 number = (u32)i + 1;
    if (m.context_lives[number]) {
      wf__lane_context &context = m.word_scores.contexts[number];
      bool taken;
      m.places[take_place(m, place_key(context.hash, context.root), &taken)].context = number;
      if (context.state == WF__LANE_CLAIMED) context.state = WF__LANE_NO_SLOT;
    } else {
      m.free_contexts[atomicAdd(&counters->free_contexts, 1u)] = number;
    }
  }
  FOR_ALL(i, m.max_slots)
  if (!m.slot_lives[i + 1]) m.free_slots[atomicAdd(&counters->free_slots, 1u)] = (u32)i + 1;
}

int wf__word_scores_evict(const wf__rnn_state_tables *m, const wf__lane_holders *who,
                          void *stream) {
  int code = m->num_roots > 0 ? LAUNCH(starts_kernel, m->num_roots, stream, *m, who->starts_stay)
                              : (int)cudaSuccess;
  if (code == cudaSuccess && who->parts > 0)
    code = (int)WF__LAUNCH(keep_kernel, dim3(who->parts), THREADS, 0, stream, *m, who->contexts,
                           who->trace_cap);
  if (code == cudaSuccess && who->num_streams > 0)
    code = (int)WF__LAUNCH(keep_streams_kernel, dim3(who->num_streams), THREADS, 0, stream, *m,
                           who->stream_contexts);
  return code == cudaSuccess
             ? LAUNCH(sweep_kernel, m->max_contexts > m->max_slots ? m->max_contexts : m->max_slots,
                      stream, *m)
             : code;
}

__global__ static void copy_kernel(u32 *to, const u32 *from, u64 count) {
  FOR_ALL(i, count) to[i] = from[i];
}
int wf__word_scores_copy(void *to, const void *from, uint64_t bytes, void *stream) {
  return LAUNCH(copy_kernel, bytes / 4, stream, (u32 *)to, (const u32 *)from, bytes / 4);
}

/* --- hidden states ----------------------------------------------------------------------- */

__global__ static void claim_kernel(const wf__rnn_state_tables m, u32 count) {
  FOR_ALL(i, count) {
    const u32 number = m.word_scores.claims[i], slot = m.free_slots[m.num_free_slots - 1 - i];
    wf__lane_context &context = m.word_scores.contexts[number];
    context.state = m.slots[i] = slot;
    make_features(m, m.words + (u64)number * m.num_words, context.depth,
                  m.hashes + (u64)slot * m.order);
  }
}
int wf__word_scores_claim(const wf__rnn_state_tables *m, uint32_t count, void *stream) {
  return LAUNCH(claim_kernel, count, stream, *m, count);
}

__global__ static void move_kernel(const wf__rnn_state_tables m, u32 count, u32 step) {
  FOR_ALL(i, count) {
    const u32 number = m.word_scores.claims[i];
    const wf__lane_context &context = m.word_scores.contexts[number];
    wf__rnn_move move = {context.before, m.slots[i], context.word, 0};
    if (m.words_kept != WF__LANE_NO_SLOT) { /* shorter histories wait at their first word */
      const u32 left = m.words_kept - 1 - step, last = context.depth - 1,
                at = left < last ? left : last;
      move.from = at < last ? move.to : 0;
      move.word = m.words[(u64)number * m.num_words + at];
    }
    m.moves[i] = move;
  }
}
int wf__word_scores_move(const wf__rnn_state_tables *m, uint32_t count, uint32_t step,
                         void *stream) {
  return LAUNCH(move_kernel, count, stream, *m, count, step);
}

/* --- costs ------------------------------------------------------------------------------- */

/* Word of the recurrent model to score; -1: none. */
__device__ static int32_t word_of(const wf__rnn_state_tables &m, u32 label) {
  if (m.weight == 0) return -1;
  return label == WF__LANE_END_OF_WORDS ? m.eos : m.labels[label].rnn;
}

__global__ static void request_kernel(const wf__rnn_state_tables m, u32 count) {
  FOR_ALL(i, count) {
    const u64 key = m.word_scores.table[m.word_scores.missing[i]].key;
    const wf__lane_context &context = m.word_scores.contexts[key >> 32];
    const u32 orders = context.depth + 2 < m.order ? context.depth + 2 : m.order;
    m.requests[i] =
        wf__rnn_request{context.state, word_of(m, (u32)key), context.state * m.order, orders};
  }
}
int wf__word_scores_request(const wf__rnn_state_tables *m, uint32_t count, void *stream) {
  return LAUNCH(request_kernel, count, stream, *m, count);
}

/* Like wf_lm_step. */
__device__ static float lm_step(const wf__lane_lm &lm, u32 state, int32_t label, u32 *next) {
  u32 word = (u32)label;
  if (word >= lm.num_labels || lm.unigrams[word].next == WF__LM_NONE) word = lm.unk;
  *next = 0;
  if (word == WF__LM_NONE || state >= lm.num_states) return INFINITY;
  float cost = 0;
  for (; state != 0; state = lm.states[state].backoff) {
    u64 first = lm.states[state].first_arc, end = lm.states[state + 1].first_arc;
    const u64 last = end;
    while (first < end) {
      const u64 middle = first + (end - first) / 2;
      if (lm.arcs[middle].word < word)
        first = middle + 1;
      else
        end = middle;
    }
    if (first < last && lm.arcs[first].word == word) {
      *next = lm.arcs[first].next;
      return cost + lm.arcs[first].cost;
    }
    cost += lm.states[state].backoff_cost;
  }
  *next = lm.unigrams[word].next;
  return cost + lm.unigrams[word].cost;
}

/* The n-gram model's cost of a word or of the sentence end; 0 without a model. */
__device__ static float lm_cost(const wf__lane_lm &lm, u32 state, bool ends, int32_t label,
                                u32 *next) {
  *next = state;
  if (lm.unigrams == nullptr) return 0;
  if (!ends) return lm_step(lm, state, label, next);
  return state < lm.num_states ? lm.final_cost[state] : INFINITY;
}

/* -ln(e^-a + e^-b). */
__device__ static double log_add(double a, double b) {
  if (a == INFINITY || b == INFINITY) return a == INFINITY ? b : a;
  return (a < b ? a : b) - log1p(exp(a < b ? a - b : b - a));
}

__device__ static float mixed_cost(const wf__rnn_state_tables &m, float recurrent, float ngram,
                                   float small) {
  const double weight = m.weight, a = recurrent, b = ngram;
  double fresh = weight == 1 ? a : b;
  if (weight > 0 && weight < 1)
    fresh =
        m.linear ? log_add(a - log(weight), b - log(1 - weight)) : weight * a + (1 - weight) * b;
  const double cost = (double)m.rnnlm_scale * fresh - (double)m.small_scale * (double)small;
  return fabs(cost) <= 1e20 ? (float)cost : INFINITY;
}

/* The context after a word of the recurrent model (-1: none), without the states of the n-gram
 * models; words[0 .. num_words) are its last words. */
__device__ static wf__lane_context behind(const wf__rnn_state_tables &m,
                                          const wf__lane_context &from, int32_t word,
                                          const int32_t *last) {
  wf__lane_context to = from;
  if (word < 0) return to; /* the history stays the same */
  to.word = word;
  to.before = from.state;
  to.state = WF__LANE_NO_SLOT;
  if (from.depth < m.words_kept) {
    to.depth = from.depth + 1;
    to.history = extended(from.history, word);
    return to;
  }
  to.history = ROOT_HASH;
  for (u32 left = m.words_kept; left > 0; left--)
    to.history = extended(to.history, left > 1 ? last[left - 2] : word);
  if (m.words_kept == 0) to.state = 0;
  return to;
}

__global__ static void make_kernel(const wf__rnn_state_tables m, u32 count) {
  FOR_ALL(i, count) {
    wf__word_score &score = m.word_scores.table[m.word_scores.missing[i]];
    const u32 number = (u32)(score.key >> 32), label = (u32)score.key;
    const bool ends = label == WF__LANE_END_OF_WORDS;
    const wf__rnn_labels ids = ends ? wf__rnn_labels{-1, -1, -1} : m.labels[label];
    const wf__lane_context from = m.word_scores.contexts[number];
    const int32_t *last = m.words + (u64)number * m.num_words;
    u32 ngram, small;
    const float ngram_cost = lm_cost(m.ngram, from.ngram, ends, ids.ngram, &ngram),
                small_cost = lm_cost(m.small, from.small, ends, ids.small, &small);
    const wf__flat_scorer *chain = m.roots[from.root];
    u64 flat = 0;
    float cost =
        mixed_cost(m, m.requests[i].word < 0 ? m.unknown_cost : m.costs[i], ngram_cost, small_cost);
    if (chain != nullptr) cost = wf__flat_chained(chain, from.flat, ends, label, cost, &flat);
    score.cost = cost;
    m.made_at[i] = WF__LANE_NO_SLOT;
    if (ends || cost == INFINITY) continue; /* no token gets there */
    wf__lane_context to = behind(m, from, ids.rnn, last);
    to.ngram = ngram;
    to.small = small;
    to.flat = flat;
    to.hash = number_of(m, to);
    bool taken;
    const u32 at = take_place(m, place_key(to.hash, to.root), &taken);
    m.made_at[i] = at;
    if (!taken) continue;
    const u32 made =
        m.free_contexts[m.num_free_contexts - 1 - atomicAdd(&m.word_scores.counters->num_made, 1u)];
    int32_t *words = m.words + (u64)made * m.num_words;
    for (u32 k = 0; k < m.num_words; k++)
      words[k] = ids.rnn < 0 ? last[k] : k == 0 ? ids.rnn : last[k - 1];
    m.word_scores.contexts[made] = to;
    m.places[at].context = made;
  }
}

/* After make_kernel: sets the next context of each score, and checks that it is the right one. */
__global__ static void link_kernel(const wf__rnn_state_tables m, u32 count) {
  FOR_ALL(i, count) {
    wf__word_score &score = m.word_scores.table[m.word_scores.missing[i]];
    const u32 number = (u32)(score.key >> 32), at = m.made_at[i];
    if (at == WF__LANE_NO_SLOT) {
      score.next = number; /* never used, but marks the score as computed */
      continue;
    }
    const u32 next = m.places[at].context;
    const wf__lane_context &from = m.word_scores.contexts[number],
                           &to = m.word_scores.contexts[next];
    const int32_t word = m.labels[(u32)score.key].rnn;
    const u32 depth = word < 0                    ? from.depth
                      : from.depth < m.words_kept ? from.depth + 1
                                                  : m.words_kept;
    score.next = next;
    if (to.depth != depth || (depth > 0 && to.word != (word < 0 ? from.word : word)))
      m.word_scores.counters->clash = 1;
  }
}

int wf__word_scores_make(const wf__rnn_state_tables *m, uint32_t count, void *stream) {
  const int code = LAUNCH(make_kernel, count, stream, *m, count);
  return code == cudaSuccess ? LAUNCH(link_kernel, count, stream, *m, count) : code;
}
