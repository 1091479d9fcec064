/* searcher.cuh - the state of one block in the search of an utterance, and what all steps use:
 * scores, ranks.
 *
 * In a frame a block reads the previous frame's tokens (states from the trace, costs beside it),
 * puts candidates into the table (expand.cuh), relaxes epsilon arcs in rounds within the table
 * (epsilon_closure.cuh), and writes the tokens to the trace (search.cuh). Costs are compared,
 * never summed across threads, so the result does not depend on the order of threads. */
#ifndef WF_CUDA_SEARCH_SEARCHER_CUH
#define WF_CUDA_SEARCH_SEARCHER_CUH

#include <cuda_pipeline_primitives.h>

#include "cuda/search/token_table.cuh"

namespace wf_search {

struct frame_state {
  u32 num_sources;    /* of this rank */
  u64 total_sources;  /* of the lane */
  u64 select_key;     /* sources above this (ordered cost, state) are not expanded */
  u64 select_context; /* with scorers: of the sources with this key, the largest context that is
                         expanded */
  u64 last_context;   /* with scorers: of the candidates with the last accepted key, the largest
                         context that is accepted */
  u32 num_words;      /* with a scorer: emitting arcs with words, on this rank */
  u32 usual_size; /* of the lane's table: decaying maximum of the slots used in the last frames */
  u32 crowded; /* with scorers: the least number of sources whose candidates did not fit in a list;
                  0: all fitted */
  u32 sparse;  /* with scorers: the last frame had fewer than min_active tokens within the beam, so
                  all candidates of the next one are listed */
};

struct candidate_rule {
  u64 last;   /* FIXED, COUNT, STEPS, HIST: largest key accepted; TIES: the only one */
  u64 prefix; /* HIST: required bits of the key above `shift` + 8; TIES: those of the context;
                 STEPS: the step to list, or NO_STEP to count all */
  int shift;
  float origin = 0, scale = 0; /* STEPS: (cost - origin) * scale is the step */
  bool all_words = false;      /* RUNNING: scores words that cannot be within the beam, too */
};
constexpr u32 NO_STEP = 256;

enum expand_mode {
  EXPAND_RUNNING,
  EXPAND_LIST,
  EXPAND_FIXED,
  EXPAND_COUNT,
  EXPAND_STEPS,
  EXPAND_HIST,
  EXPAND_TIES
};

/* Outcome of a closure that is not WF__LANE_*. */
enum {
  CLOSURE_OVERFLOW = -1,
  CLOSURE_GROW = -2,
  CLOSURE_WAITS = -3 /* scores are missing, so the lane waits for them */
};

template <class POLICY>
struct backward_table; /* backward_table.cuh */
template <class POLICY>
struct backward_layout;
struct backward_marks;
struct back_token; /* backward.cuh */
/* A token at one end of a link: its block, and its place in that block's trace. */
struct link_end {
  u32 rank, place;
};

template <bool DEFERRED>
struct deferred_state {};
template <>
struct deferred_state<true> {
  u32 frame_words; /* this thread's count of words on arcs of this frame */
};

/* The state of a thread during a launch. */
template <class POLICY, int RANKS>
struct searcher : deferred_state<POLICY::DEFERRED> {
  static constexpr bool SCORED = POLICY::SCORED, PAIRS = POLICY::PAIRS, DEFERRED = POLICY::DEFERRED,
                        STREAMS = POLICY::STREAMS, LATTICES = POLICY::LATTICES;
  static constexpr bool GATHERS =
      SCORED && !DEFERRED; /* candidates over arcs with words, to score them together */
  typedef token_table<POLICY, RANKS> table;
  static constexpr u32 THREADS = table::THREADS, WARPS = table::WARPS;
  typedef typename POLICY::table::token_key token_key;
  typedef wf_search::lane_shared<POLICY> lane_shared;
  typedef wf_search::backward_table<POLICY> backward_table;
  typedef backward_layout<POLICY> memory; /* of the backward pass */
  static constexpr u32 SLOT_BITS = table::SLOT_BITS, SLOTS = table::SLOTS,
                       AHEAD = POLICY::table::AHEAD, SPARE = POLICY::table::SPARE;
  static constexpr u32 MOST_FRONTIER = sizeof(lane_shared::frontier[0]) / sizeof(uint16_t),
                       FRONTIER = THREADS < MOST_FRONTIER
                                      ? THREADS
                                      : MOST_FRONTIER; /* entries in shared memory */
  static constexpr token_key NO_STATE = table::NO_STATE, HAS_EPSILONS = table::HAS_EPSILONS;

  table l;
  const wf__lane_params *p;
  u32 frontier_now;
  u32 row_frame; /* whose scores are in shared memory */
  u32 frame;     /* trace frames written */
  u32 trace_used;
  frame_state f;
  u32 frame_arcs, emission_arcs; /* this thread's count of arcs examined in this frame, and before
                                    the closure */
  u32 num_emitted;               /* tokens of the frame before epsilons */
  __device__ __forceinline__ void count_word() {
    if constexpr (DEFERRED) this->frame_words++;
  }
  static __device__ __forceinline__ lane_shared &own() { return own_shared<POLICY>(); }

#ifdef WF_LANE_PROFILE
  __device__ void mark(int which) {
    if (tid() != 0) return;
    long long now = clock64();
    own().phase[which] += now - own().since;
    own().since = now;
  }
  __device__ void begin_marks() {
    if (tid() != 0) return;
    for (int i = 0; i < NUM_PHASES; i++) own().phase[i] = 0;
    own().rounds = own().frontier_entries = own().closure_words = 0;
    own().since = clock64();
  }
#else
  __device__ void mark(int) {}
  __device__ void begin_marks() {}
#endif
  __device__ searcher(const wf__lane_params *params) : l(params), p(params) {}
  __device__ __forceinline__ void run();
  __device__ void make_lattice(int wanted);
  __device__ __forceinline__ void run_deferred();

 private:
  __device__ __forceinline__ bool row_in_shared() const {
    return p->graph.num_columns <= (int32_t)most_columns<POLICY>(WF__SHARED_KB);
  }
  static __device__ __forceinline__ u32 block() {
    return SCORED ? read_block_index() : blockIdx.x; /* with scorers registers are scarce */
  }
  /* The lane's graph and memory. */
  __device__ __forceinline__ const uint4 *arcs() const { return (const uint4 *)p->graph.arcs; }
  __device__ __forceinline__ const uint4 *states() const { return (const uint4 *)p->graph.states; }
  /* The graph with added words: search_graph.cuh. */
  __device__ __forceinline__ bool has_words() const;
  __device__ __forceinline__ bool is_added(u32 state) const;
  __device__ __forceinline__ bool is_added_arc(u32 arc) const;
  __device__ __forceinline__ uint4 state_at(const uint4 *states, u32 state) const;
  __device__ __forceinline__ uint4 arc_at(const uint4 *arcs, u32 arc) const;
  __device__ __forceinline__ uint4 any_arc_at(u32 arc) const;
  __device__ __forceinline__ float final_of(u32 state) const;
  __device__ u32 added_source(u32 arc) const;
  __device__ __forceinline__ int context_bits() const;
  __device__ __forceinline__ u32 all_states() const; /* including those of added words */
  __device__ __forceinline__ float *costs() const { return p->memory.costs + (u64)block() * SLOTS; }
  __device__ __forceinline__ uint2 *frontier() const {
    return (uint2 *)p->memory.frontier + (u64)block() * 2 * SLOTS;
  }
  __device__ __forceinline__ uint2 *trace() const {
    return (uint2 *)p->memory.trace + (u64)block() * p->memory.trace_cap;
  }
  __device__ __forceinline__ u32 *frame_off() const {
    return p->memory.frame_off + (u64)block() * (p->memory.frames_cap + 2);
  }
  __device__ __forceinline__ uint16_t *index() const {
    return p->memory.index + (u64)block() * (p->memory.frames_cap + 1) * WF__LANE_INDEX;
  }
  __device__ __forceinline__ ulonglong2 *contexts() const {
    return (ulonglong2 *)p->memory.contexts + (u64)block() * p->memory.trace_cap;
  } /* beside the trace */
  __device__ __forceinline__ wf__lane_logged *word_log() const {
    return p->memory.word_log + (u64)block() * WF__LANE_WORD_LOG;
  }
  __device__ __forceinline__ wf__word_candidate *word_candidates() const {
    return p->memory.word_candidates + (u64)block() * WF__LANE_WORD_CANDIDATES;
  }
  __device__ __forceinline__ ulonglong2 *memo() const {
    return (ulonglong2 *)p->memory.memo + ((u64)block() << WF__LANE_MEMO_BITS);
  }
  __device__ __forceinline__ u64 *sources() const {
    return (u64 *)p->memory.sources + (u64)block() * SLOTS;
  }
  __device__ __forceinline__ u64 *sources_of(u32 rank) const {
    return sources() + ((int64_t)rank - l.rank()) * SLOTS;
  }
  __device__ __forceinline__ u64 source_context(u32 i) const {
    return SCORED ? contexts()[trace_used - f.num_sources + i].x : 0;
  }
  __device__ __forceinline__ u64 traced_context(u32 at) const {
    return SCORED ? __ldcg((const u64 *)(contexts() + at)) : 0;
  }
  /* Numbers of pairs (boost_pairs.cuh): of a number and a context; the number in a pair, and its
   * context. Without pairs they are the numbers themselves, and contexts are left as they are. */
  static __device__ __forceinline__ u32 pair_of(u32 number, u32 context);
  static __device__ __forceinline__ u32 split_pair(u32 pair, u64 *context);
  static __device__ __forceinline__ u32 first_of_pair(u32 pair);
  __device__ void load_pairs();
  __device__ __forceinline__ bool may_have(u32 node, u32 word) const;
  __device__ __forceinline__ float boosted_cost(u32 word, float cost, u64 *context) const;
  /* The key of a token of the trace and its context; what the trace has for a key. */
  __device__ __forceinline__ token_key key_of_traced(u32 traced, u64 context) const {
    return PAIRS ? (token_key)traced : key_of(traced, context);
  }
  __device__ __forceinline__ u32 traced_of(token_key key) const {
    return PAIRS ? (u32)(key & ~HAS_EPSILONS) : state_of(key);
  }
  /* The table's key of an arc's `nextstate` (with its bit for epsilon arcs) and a context. */
  __device__ __forceinline__ token_key key_of(u32 next, u64 context) const {
    if constexpr (PAIRS)
      return (next & (u32)HAS_EPSILONS) | pair_of(next & ~(u32)HAS_EPSILONS, (u32)context);
    if (!SCORED) return (token_key)next;
    if (DEFERRED) context = (u32)context; /* deferred_scores.cuh */
    return (token_key)((u64)(next >> 31) << 63 | (u64)(next & 0x7fffffffu) << context_bits() |
                       (by_state() ? 0 : context));
  }
  __device__ __forceinline__ u32 state_of(token_key key) const {
    key &= ~HAS_EPSILONS;
    return SCORED ? (u32)((u64)key >> context_bits()) : first_of_pair((u32)key);
  }
  __device__ __forceinline__ u64 context_of(token_key key) const {
    if (DEFERRED) return ranked((u32)((u64)key & ((1ull << context_bits()) - 1)));
    u64 context = SCORED ? (u64)key & ((1ull << context_bits()) - 1) : 0;
    split_pair((u32)(key & ~HAS_EPSILONS), &context);
    return context;
  }
  /* With a scorer and recombine=state: a state has one token, regardless of its context. */
  __device__ __forceinline__ bool by_state() const {
    return SCORED && !DEFERRED && p->rules.by_state != 0;
  }
  __device__ __forceinline__ bool is_same(u64 context, u64 other) const {
    return by_state() || context == other;
  }
  /* The context of the token in a slot of this block's table. */
  __device__ __forceinline__ u64 context_at(u32 slot, token_key key) const {
    return by_state() ? __ldcg(sources() + slot) : context_of(key);
  }
  /* With scorers: every taken slot of the table has a token, and the cheapest token is known
   * (scorer_shared). */
  __device__ __forceinline__ bool all_stand() const {
    if constexpr (SCORED)
      return own().with_scorer.all_stand != 0;
    else
      return false;
  }
  __device__ __forceinline__ void note_standing() {
    if constexpr (SCORED)
      if (tid() == 0) own().with_scorer.all_stand = 1;
  }
  __device__ __forceinline__ u32 lowest() const {
    if constexpr (SCORED)
      return min(own().best, own().with_scorer.lowest);
    else
      return ALL;
  }
  __device__ __forceinline__ void note_lowered(u32 order) {
    if constexpr (SCORED)
      if (order < own_words::load(l.base + OFFSET(with_scorer) +
                                  (u32)offsetof(scorer_shared<true>, lowest)))
        atomicMin(&own().with_scorer.lowest, order);
  }
  static __device__ __forceinline__ bool is_up_to(u64 key, u64 context, u64 last,
                                                  u64 last_context) {
    return SCORED ? key < last || (key == last && context <= last_context) : key <= last;
  }
  __device__ __forceinline__ bool is_selected(float cost, u32 state, u64 context) const {
    return is_up_to((u64)ordered(cost) << 32 | state, context, f.select_key, f.select_context);
  }
  __device__ __forceinline__ bool is_within(u64 key, u64 last, u64 context) const {
    return is_up_to(key, context, last, f.last_context);
  }
  /* A context's number in the low half, below the half of the CPU's number that decides ties. */
  __device__ __forceinline__ u64 ranked(u32 context) const {
    return (u64)(__ldg(&p->word_scores.contexts[context].hash) >> 32) << 32 | context;
  }
  __device__ __forceinline__ float slack() const;
  __device__ __forceinline__ u64 start_context() const;
  __device__ __forceinline__ bool has_scorer() const;
  __device__ float word_cost(u32 word, float cost, u64 *context) const;
  __device__ __forceinline__ void log_candidate(u32 word, u32 rank, u32 slot, u64 value, u64 from,
                                                u64 to);
  __device__ bool place_contexts();
  __device__ bool find_sources(bool *any);
  __device__ __forceinline__ void keep_selected(u64 key, u64 below, u64 same, u64 want);
  __device__ __forceinline__ u32 selected_left() const;
  __device__ u64 tied_source(u64 key, u64 want);
  __device__ u64 tied_candidate(u64 key, u64 want);
  __device__ void load_scorer();
  __device__ float final_cost_of(u64 context) const;
  __device__ float deferred_cost(u32 word, float cost, u64 *context) const;
  __device__ float deferred_final_cost(u64 context) const;
  __device__ __forceinline__ float ending_cost(u32 i) const;
  __device__ __forceinline__ bool keeps_lattice() const {
    return !DEFERRED && !PAIRS && p->rules.lattice_beam > 0;
  }
  __device__ __forceinline__ float2 *past() const {
    return (float2 *)p->lattices.past + (u64)block() * p->memory.trace_cap;
  }
  __device__ __forceinline__ wf__lane_frame *records() const {
    return p->lattices.records + (u64)(block() / RANKS) * (p->memory.frames_cap + 1);
  }
  __device__ __forceinline__ const uint2 *tokens() const {
    return trace() + (trace_used - f.num_sources);
  } /* of the frame before */
  __device__ __forceinline__ void count_arcs() {
    if (in_warp() == 0) atomicAdd(&own().num_arcs, (u64)frame_arcs);
  }
  __device__ __forceinline__ const char *row_of(u32 t) const {
    return (const char *)own().scores.scores +
           (int64_t)t * own().scores.stride * (own().scores.dtype == 0 ? 4 : 2);
  }
  /* Runs a step that most frames do not take. It works on a copy, so that the searcher itself
   * can stay in registers. */
  template <typename F>
  __device__ __forceinline__ auto cold_path(F step) {
    const wf__lane_params *const params = p;
    const table before = l;
    searcher copy = *this;
    auto result = step(copy);
    *this = copy;
    p = params; /* unchanged; but only if the compiler knows it, `p` is read as a constant */
    l.set_constants(before);
    return result;
  }
  __device__ __forceinline__ float loglike(const void *from, u32 column) const;
  /* The score of a column, with the penalty if it is blank. */
  __device__ __forceinline__ float penalised(float loglike, u32 column) const {
    return column == (u32)p->rules.blank ? __fsub_rn(loglike, p->rules.blank_penalty) : loglike;
  }
  __device__ __forceinline__ float cost_of_score(float loglike) const {
    return loglike == -INFINITY ? INFINITY : -__fmul_rn(p->rules.acoustic_scale, loglike);
  }
  __device__ __forceinline__ float label_cost(u32 column) const;
  __device__ __forceinline__ bool is_skipped(u32 t) const;
  __device__ __forceinline__ u32 row_after(u32 t) const;
  __device__ __forceinline__ u32 row_before(u32 t) const;
  __device__ __forceinline__ void finish_row();
  __device__ __forceinline__ void load_row(u32 t);
  __device__ u32 pick_bin(u64 want, u32 *bin);
  __device__ bool select_by_cost(u64 want);
  __device__ __noinline__ u64 select_rank(u64 want);
  __device__ __forceinline__ void select_sources();
  template <int MODE>
  __device__ __forceinline__ u32 next_batch(u32 before, u32 grain);
  template <int MODE>
  __device__ __forceinline__ u64 expand(const candidate_rule &rule);
  template <int MODE>
  __device__ __forceinline__ void expand_arc(const candidate_rule &rule, bool live, u32 a,
                                             uint4 arc, float candidate, u64 from, u64 *my_count);
  /* Wide states: wide_states.cuh. */
  __device__ __forceinline__ bool is_wide(u32 state) const;
  __device__ __forceinline__ bool has_wide() const;
  __device__ __forceinline__ u32 *columns() const;
  __device__ __forceinline__ u32 *columns_seen() const;
  __device__ __forceinline__ float least_beside_column() const;
  __device__ __forceinline__ u32 *wide_sources() const;
  __device__ void find_wide_sources();
  __device__ bool begin_columns();
  __device__ void list_columns(float least, float reach);
  __device__ __forceinline__ u32 num_columns_for(float cost) const;
  __device__ __forceinline__ float least_of_columns() const;
  __device__ __forceinline__ float least_of_block(float mine);
  __device__ __forceinline__ float reach_of(float cutoff) const;
  __device__ void list_columns_again(u64 last, float least);
  __device__ bool lists_more(u64 last);
  template <typename F>
  __device__ __forceinline__ void for_wide_arcs(u32 state, u32 size, F take);
  template <typename F>
  __device__ __forceinline__ void for_wide_of_warp(bool wide, u32 state, float cost, F take);
  template <int MODE>
  __device__ void expand_wide_state(const candidate_rule &rule, u32 state, float cost, u64 context,
                                    u64 *my_count);
  template <int MODE>
  __device__ u64 expand_wide(const candidate_rule rule);
  template <int MODE>
  __device__ __forceinline__ void consider(const candidate_rule &rule, bool live, u32 a, uint4 arc,
                                           float candidate, u64 from, u64 to, u64 *my_count);
  __device__ __forceinline__ float least_word_cost(u32 word, float cost) const;
  __device__ __forceinline__ void gather_word(bool waits, u32 a, uint4 arc, float cost, u64 from);
  __device__ __forceinline__ wf__word_candidate word_candidate(bool live, u32 i) const;
  __device__ __forceinline__ bool is_logged(u32 word) const;
  __device__ void clear_memo();
  __device__ __forceinline__ float memoized_cost(u32 word, float cost, u64 *context,
                                                 float most = INFINITY) const;
  template <int MODE>
  __device__ __forceinline__ void consider_words(const candidate_rule &rule, u64 *my_count);
  __device__ __forceinline__ bool has_all_words();
  __device__ __forceinline__ bool left_words_out();
  template <int MODE>
  __device__ __forceinline__ bool is_beyond(const candidate_rule &rule, float least) const;
  __device__ __forceinline__ u64 *near_keys() const { return (u64 *)frontier(); }
  /* The block's list of candidates: with scorers in device memory, else in slots of the table that
   * the frame does not use. */
  __device__ __forceinline__ ulonglong2 *listed() const {
    return (ulonglong2 *)((char *)p->memory.listed + (u64)block() * WF__LANE_LISTED_BYTES);
  }
  __device__ __forceinline__ u64 *listed_contexts() const {
    return (u64 *)(listed() + WF__LANE_LISTED);
  }
  __device__ __forceinline__ u32 room_of_list() const {
    return SCORED ? WF__LANE_LISTED : SLOTS - (1u << l.bits);
  }
  __device__ __forceinline__ u32 listed_order(u32 i) const {
    if constexpr (SCORED)
      return (u32)(__ldcg((const u64 *)(listed() + i)) >> 32);
    else
      return (u32)(own().values[(1u << l.bits) + i] >> 32);
  }
  __device__ __forceinline__ void list_candidate(bool live, token_key key, u64 rank, u64 context);
  __device__ __forceinline__ void keep_near(bool live, u64 key);
  __device__ bool list_near(u64 last, float origin, float span, u64 *k);
  __device__ u64 candidate_rank(u64 k, u64 last, float origin, bool cost_only);
  __device__ __forceinline__ u64 listed_rank(u32 k, u32 size);
  __device__ __noinline__ u64 listed_radix_rank(u32 k, u32 size);
  __device__ __forceinline__ u32 insert_listed(u32 size, u64 above, u64 last);
  __device__ __forceinline__ bool emit_from_list(bool all_of_them, u64 *last, u64 *num_tokens);
  __device__ __forceinline__ void empty_table(u32 bits);
  template <bool DROPS>
  __device__ __forceinline__ u64 finish_emission(float cutoff);
  __device__ bool admit(u64 last, u64 *num_tokens);
  __device__ __noinline__ int emit_rest(bool full, u64 *last, u64 *num_tokens);
  __device__ __forceinline__ int emit_listed(u64 *last, u64 *num_tokens);
  __device__ __forceinline__ int emit(u64 *last, u64 *num_tokens);
  __device__ __forceinline__ void put_frontier(u32 rank, u32 which, u32 place, u32 slot);
  __device__ __forceinline__ u32 get_frontier(u32 which, u32 place);
  __device__ __forceinline__ bool gains(u32 rank, u32 at, token_key key, float candidate) const;
  __device__ __forceinline__ void relax(bool live, u32 a, float cost, u64 context, float cutoff,
                                        u32 next);
  __device__ __forceinline__ void relax_to(bool live, u32 a, uint4 arc, float candidate, u64 from,
                                           u64 to, float cutoff, u32 next);
  __device__ __forceinline__ bool relax_words(u32 first, float cutoff, u32 next);
  __device__ __forceinline__ u32 num_word_candidates() const;
  __device__ __forceinline__ void forget_words();
  __device__ __forceinline__ int relax_rounds(float cutoff);
  __device__ __forceinline__ void take_exchanged(bool live, u32 place, u32 next);
  __device__ __forceinline__ int relax_rounds_by_exchange(float cutoff);
  __device__ __forceinline__ int close(float cutoff);
  __device__ __noinline__ int close_again(int status, u64 last, u32 t);
  template <bool REMEMBERS>
  __device__ __forceinline__ void write_tokens(u32 to, float best, bool words);
  __device__ __noinline__ bool record_frame(u32 to, float best, bool words);
  template <bool RENORMALISES>
  __device__ __forceinline__ bool finish_frame();
  __device__ __forceinline__ void look_at_host();
  __device__ __noinline__ int begin();
  __device__ u32 source_of(u32 arc) const;
  __device__ u32 find_token(u32 state, u64 context, u32 number, u32 *owner);
  __device__ bool follow_arcs(u32 number);
  __device__ u32 place_in_block(bool live, u32 *count);
  __device__ u32 move_tokens(u32 number, bool all, u32 first, u32 size, u32 to);
  __device__ bool slide(u32 from);
  __device__ __noinline__ bool collect(u32 total);
  __device__ void fill_table(u32 number);
  /* No acyclic path of epsilon arcs has this many arcs. */
  __device__ __forceinline__ u32 most_rounds() const {
    return PAIRS || (SCORED && !by_state()) ? RANKS * SLOTS : all_states();
  }
  __device__ __forceinline__ void note_state(u32 state);
  __device__ __forceinline__ bool may_hold(u32 state) const;
  __device__ u32 look_up(token_key key, u32 *owner);
  __device__ float extra_cost_over(float candidate, token_key key, u32 number);
  __device__ bool improve(u32 i, u32 first, float extra);
  __device__ float furthest();
  __device__ float least_candidate(float cost, int epsilon) const;
  __device__ u32 depth_of(u32 state, u64 context, u32 number);
  __device__ bool leads_on(bool live, u32 from, u64 from_context, u32 to, u64 to_context,
                           u32 number);
  __device__ void relax_emitting(u32 number, u32 row);
  __device__ void relax_epsilons(u32 number, u32 round);
  __device__ bool close_back(u32 number);
  __device__ bool as_before(u32 number);
  __device__ __noinline__ bool prune();
  __device__ void set_endings(bool died, bool final, float least);
  /* The backward pass, after the search. */
  static constexpr u32 MOST_GATHERED =
      RANKS * SLOTS /
      2; /* room for tokens with epsilon arcs; those of the newest frame are not gathered */
  static constexpr u32 MOST_STAGED =
      RANKS * SLOTS < 0xffff ? RANKS * SLOTS
                             : 0xffff; /* most arcs of a frame: the size of the frontier, and 16
                                          bits to count the arcs of a token */
  __device__ __forceinline__ uint4 *staged() const { return (uint4 *)frontier(); }
  __device__ __forceinline__ uint2 *gathered_tokens() const {
    return (uint2 *)costs();
  } /* {state, number in the frame} */
  __device__ __forceinline__ bool has_gathered() const;
  __device__ void stage_links(bool live, u32 slot, u32 to, u32 arc, u32 value);
  __device__ void find_levels(u32 count);
  __device__ __forceinline__ u32 bin_of(const backward_table &table, const u32 *levels,
                                        u32 slot) const;
  __device__ void rank_few(const backward_table &table, const u32 *levels);
  __device__ void rank_many(const backward_table &table, const u32 *levels);
  __device__ void rank_tokens(const backward_table &table, u32 num_staged);
  __device__ void reserve_links(u32 count);
  __device__ void write_links(u32 number, const backward_table &table, u32 count);
  template <typename F>
  __device__ bool put_frame(u32 number, const backward_table &table, F next);
  __device__ void close_page();
  template <bool EPSILONS>
  __device__ __forceinline__ u32 arcs_into(u32 state, backward_marks &marks, u32 *first);
  template <bool EPSILONS>
  __device__ void mark_sources(const backward_table &table, const u32 *news, u32 turn);
  __device__ void open_frame(u32 number);
  __device__ __forceinline__ u64 place_of_token(u32 i) const;
  template <bool EPSILONS>
  __device__ u32 list_tokens(u32 window, u32 end, u32 turn);
  template <bool EPSILONS, typename F>
  __device__ __forceinline__ void for_listed(u32 turn, F take);
  __device__ void take_emitting(const back_token &token, u32 number, const backward_table &table,
                                const backward_table &before);
  template <bool OUT>
  __device__ void take_epsilons(const back_token &token, u32 number, const backward_table &table);
  __device__ __forceinline__ u64 context_at(const ulonglong2 *contexts) const;
  __device__ void list_held(const backward_table &table);
  template <typename F>
  __device__ __forceinline__ void for_arcs_of_held(u32 state, F take);
  __device__ void step_back(u32 number, const backward_table &table, const backward_table &before);
  __device__ void relax_back(u32 number, const backward_table &table, u32 turn);
  __device__ void stage_epsilons(u32 number, const backward_table &table);
  __device__ bool close_table(u32 number, backward_table table);
  __device__ void take_endings(u32 number, const backward_table &table);
  __device__ void create_tables();
  __device__ void clear_for(u32 number, const backward_table &table, const backward_table &behind);
  __device__ void save_frame(u32 number, u32 row, const backward_table &table);
  __device__ bool restore_frame(u32 *number, const backward_table &table);
  __device__ bool run_backward(bool resumes);
  __device__ u64 best_end(bool final, bool died, u64 *context);
  __device__ __noinline__ int finish(bool died, u32 end, wf__lane_outcome *outcome);
  __device__ __forceinline__ void decode();
  /* deferred_scores.cuh */
  __device__ bool waits();
  __device__ void save(u32 stage, u32 row, bool died) const;
  __device__ int restore(const wf__lane_saved &saved);
  __device__ __forceinline__ int search_frame(u32 t, bool *died);
  __device__ __noinline__ int begin_deferred();
  __device__ __forceinline__ int end_deferred(bool died, u32 t, int status);
  __device__ __forceinline__ bool decode_deferred(bool resumes);
  /* For streams. */
  __device__ __forceinline__ uint2 *links() const {
    return (uint2 *)p->streams.links + (u64)block() * p->memory.trace_cap;
  } /* beside the trace */
  __device__ __forceinline__ u32 *rows() const {
    return p->streams.rows + (u64)(block() / RANKS) * (p->memory.frames_cap + 2);
  }
  __device__ __forceinline__ u32 *emitted() const {
    return p->streams.emitted + (u64)block() * (p->memory.frames_cap + 2);
  }
  __device__ __forceinline__ bool resumes() const {
    return STREAMS && __ldg(&p->streams.chunks[own().utterance].num_tokens) > 0;
  }
  __device__ __noinline__ bool check_values();
  __device__ __forceinline__ u32 first_row() const;
  __device__ __noinline__ int resume();
  __device__ u32 locate(u32 state, u64 context, u32 number, u32 *owner) const;
  __device__ bool link_tokens(u32 number);
  __device__ void number_tokens(u32 first);
  __device__ u32 number_of(u32 rank, u32 place, u32 number) const;
  __device__ u32 newest_before() const;
  __device__ u32 number_of_end(u64 key, u64 context, bool final);
  __device__ bool emit_back_pointers(u32 first, u64 *off, u32 *size);
  __device__ void save_tokens(const wf__lane_chunk &chunk);
  __device__ int emit_chunk(u32 first, wf__lane_advance *out);
  __device__ u32 source_by_thread(u32 arc) const;
  __device__ float extra_cost_of(float candidate, u32 state, u64 context, u32 number, link_end *to,
                                 float *excess) const;
  __device__ u32 epsilons_behind(u32 state, u64 context, u32 number) const;
  __device__ bool may_link(u32 from, u64 from_context, u32 to, u64 to_context, u32 number) const;
  __device__ u32 emitted_number(link_end token, u32 number) const;
  __device__ void put_chunk_links(bool live, u64 off, u32 from, u32 from_frame, link_end to,
                                  u32 to_frame, u32 arc, float score, float excess);
  template <bool EPSILONS, bool OUT>
  __device__ bool pass_links(u32 number, u64 off, u32 *count);
  __device__ __noinline__ u32 find_chunk_links(u32 first);
  __device__ __noinline__ void emit_links(u32 first, u64 off);
  __device__ __noinline__ int suspend(bool died, u32 end, int status);
};

/* --- scores ------------------------------------------------------------------------------ */

template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::loglike(const void *from,
                                                                  u32 column) const {
  if (own().scores.dtype == 0) return __ldg((const float *)from + column);
  u32 bits = __ldg((const unsigned short *)from + column);
  return own().scores.dtype == 2 ? __uint_as_float(bits << 16) /* bfloat16 */
                                 : half_to_float((unsigned short)bits);
}

template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::label_cost(u32 column) const {
  if (row_in_shared()) return __uint_as_float(own_words::load(l.base + OFFSET(row) + 4 * column));
  return cost_of_score(penalised(loglike(row_of(row_frame), column), column));
}

/* Do both this frame and the one before it score blank above skip_above? */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::is_skipped(u32 t) const {
  return loglike(row_of(t), (u32)p->rules.blank) > p->rules.skip_above &&
         loglike(row_of(t - 1), (u32)p->rules.blank) > p->rules.skip_above;
}

/* The frame to search after frame t, or the number of frames if there is none; the same for all
 * threads of a warp. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::row_after(u32 t) const {
  if (p->rules.skip_above == INFINITY) return t + 1;
  for (t++;; t += 32) {
    const u32 row = t + in_warp(),
              vote = __ballot_sync(ALL, row >= (u32)own().scores.num_frames || !is_skipped(row));
    if (vote != 0) return t + __ffs(vote) - 1;
  }
}

/* The frame that was searched before frame t, which is not the first. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::row_before(u32 t) const {
  if (p->rules.skip_above == INFINITY) return t - 1;
  for (;; t -= 32) {
    const int row = (int)(t - 1 - in_warp());
    const u32 vote = __ballot_sync(ALL, row <= 0 || !is_skipped((u32)row));
    if (vote != 0) return t - __ffs(vote);
  }
}

/* Begins to fetch the scores of a frame. After finish_row and a barrier, all threads can read
 * their costs. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::load_row(u32 t) {
  if (t >= (u32)own().scores.num_frames) return;
  row_frame = t;
  if (!row_in_shared()) return;
  const char *row = row_of(t);
  for (u32 c = tid(); c < (u32)p->graph.num_columns; c += THREADS) {
    if (own().scores.dtype == 0)
      __pipeline_memcpy_async(&own().row[c], (const float *)row + c, 4);
    else
      own().row[c] = loglike(row, c);
  }
  __pipeline_commit();
}

/* Converts scores to costs. Each thread converts the scores that it fetched. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::finish_row() {
  __pipeline_wait_prior(0);
  for (u32 c = tid(); row_in_shared() && c < (u32)p->graph.num_columns; c += THREADS)
    own().row[c] = cost_of_score(penalised(own().row[c], c));
}

/* --- ranks ------------------------------------------------------------------------------- */

/* From the ranks' histograms: the bin that contains the want-th entry, and the number of entries
 * below it. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::pick_bin(u64 want, u32 *bin) {
  l.sync();
  if (tid() < 256) {
    u32 all = 0;
#pragma unroll
    for (int r = 0; r < RANKS; r++) all += l.of(r).hist[tid()];
    own().hist_all[tid()] = all;
  }
  l.sync(); /* the histograms may be cleared again */
  u32 mine[8], sum = 0, found = 0, below = 0;
#pragma unroll
  for (int b = 0; b < 8; b++) sum += mine[b] = own().hist_all[in_warp() * 8 + b];
  u32 upto = sum;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    u32 x = __shfl_up_sync(ALL, upto, d);
    if (in_warp() >= d) upto += x;
  }
  bool here = upto - sum < want && want <= upto;
  if (here) {
    below = upto - sum;
#pragma unroll
    for (int b = 0; b < 7; b++) {
      if (found == b && below + mine[b] < want) {
        below += mine[b];
        found++;
      }
    }
  }
  u32 owner = __ffs(__ballot_sync(ALL, here)) - 1;
  *bin = __shfl_sync(ALL, found + in_warp() * 8, owner);
  return __shfl_sync(ALL, below, owner);
}

}  // namespace wf_search

#endif
