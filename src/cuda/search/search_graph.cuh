/* search_graph.cuh - states and arcs of the graph by number, those of words added at run time
 * (decode_graph.h) included.
 *
 * Words are added to single utterances or streams. These are searched by the kernels with
 * scorers; the other kernels do not support added words. After the graph's S states and A arcs
 * come the numbers of copies of each class's phrase tree, one copy for each place of the class.
 * The numbers are the same as on the CPU, since they decide ties.
 *
 *   state >= S   class -> copy, state of the tree    {first arc, first epsilon, end} of the tree +
 *                first arc of the copy
 *   arc >= A     class -> copy, arc of the tree      next state of the tree + first state of the
 *                copy; of an arc that leaves the tree, the place's target
 *   arc < A, weight +infinity                        a place: next state is its number; with words
 *   it leads to a root of its copy: in a CTC graph (fst/ctc_states.h) to that of the held token */
#ifndef WF_CUDA_SEARCH_SEARCH_GRAPH_CUH
#define WF_CUDA_SEARCH_SEARCH_GRAPH_CUH

#include "cuda/search/wide_states.cuh"

namespace wf_search {

/* Copies the utterance's added words to shared memory; without any, the description of the
 * decoder's own graph. A barrier follows. */
template <class POLICY>
static __device__ __forceinline__ void load_words(const wf__lane_params *p) {
  lane_shared<POLICY> &own = own_shared<POLICY>();
  if (tid() != 0) return;
  if (own.scores.words != NULL)
    own.with_scorer.words = *own.scores.words;
  else
    own.with_scorer.words = wf__lane_words{NULL,
                                           0,
                                           p->graph.context_bits,
                                           p->graph.epsilon_slack,
                                           p->graph.scored_slack,
                                           p->graph.num_states,
                                           0};
}

template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::has_words() const {
  if constexpr (SCORED)
    return own().with_scorer.words.num_classes > 0;
  else
    return false;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::context_bits() const {
  if constexpr (SCORED)
    return own().with_scorer.words.context_bits;
  else
    return 0;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::all_states() const {
  if constexpr (SCORED)
    return own().with_scorer.words.num_states;
  else
    return p->graph.num_states;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::is_added(u32 state) const {
  return SCORED && state >= p->graph.num_states;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::is_added_arc(u32 arc) const {
  return SCORED && arc >= p->graph.num_arcs;
}

/* The class that a copied state belongs to: the last class with words whose first state is at or
 * before it. The next function does the same for an arc. */
template <class POLICY>
static __device__ __forceinline__ const wf__lane_class &class_of_state(u32 state) {
  const wf__lane_words &words = own_shared<POLICY>().with_scorer.words;
  u32 c = words.num_classes - 1;
  while (words.classes[c].num_states == 0 || words.classes[c].first_state > state) c--;
  return words.classes[c];
}
template <class POLICY>
static __device__ __forceinline__ const wf__lane_class &class_of_arc(u32 arc) {
  const wf__lane_words &words = own_shared<POLICY>().with_scorer.words;
  u32 c = words.num_classes - 1;
  while (words.classes[c].num_states == 0 || words.classes[c].first_arc > arc) c--;
  return words.classes[c];
}

/* Not inlined: they are called from many places, but rarely. */
template <class POLICY>
static __device__ __noinline__ uint4 added_state(u32 state) {
  const wf__lane_class &c = class_of_state<POLICY>(state);
  const u32 copy = (state - c.first_state) / c.num_states,
            first_arc = c.first_arc + copy * c.num_arcs;
  uint4 info = __ldg((const uint4 *)c.states + (state - c.first_state - copy * c.num_states));
  info.x += first_arc;
  info.y += first_arc;
  info.z += first_arc;
  return info;
}

/* An arc of a wide state of a tree; a void one with the weight +infinity. */
static __device__ uint4 wide_tree_arc(const wf__lane_class &c, u32 number) {
  const uint4 *states = (const uint4 *)c.states;
  u32 low = c.first_wide, high = c.num_states;
  while (high - low > 1) {
    const u32 middle = low + (high - low) / 2;
    if (__ldg(states + middle).x <= number)
      low = middle;
    else
      high = middle;
  }
  const u32 place = number - __ldg(states + low).x;
  const uint4 wide = __ldg((const uint4 *)c.wide_states + (low - c.first_wide));
  uint4 arc =
      __ldg((const uint4 *)c.arcs + (place < wide.y ? wide.x + place : wide.w + (place - wide.y)));
  if (place < wide.y && arc.z == wide.z) arc.y = 0x7f800000u;
  return arc;
}

template <class POLICY>
static __device__ __noinline__ uint4 added_arc(const uint4 *places, u32 number) {
  const wf__lane_class &c = class_of_arc<POLICY>(number);
  const u32 copy = (number - c.first_arc) / c.num_arcs;
  const u32 own = number - c.first_arc - copy * c.num_arcs;
  uint4 arc = own < c.num_explicit ? __ldg((const uint4 *)c.arcs + own) : wide_tree_arc(c, own);
  if ((arc.x & WF__LANE_LEAVES) != 0)
    arc.x = __ldg(places + c.first_place + copy).x + (arc.x - WF__LANE_LEAVES);
  else
    arc.x += c.first_state + copy * c.num_states; /* keeps the bit for epsilon arcs */
  return arc;
}

/* The arc of a place, which leads to a root of a copy of the tree if its class has words. */
template <class POLICY>
static __device__ __noinline__ uint4 opened(const uint4 *places, uint4 arc) {
  if (arc.x == WF__LANE_NO_PLACE) return arc;
  const uint4 place = __ldg(places + arc.x);
  const wf__lane_class &c = own_shared<POLICY>().with_scorer.words.classes[place.z];
  if (c.num_states == 0) return arc;
  arc.x = c.root + c.first_state + place.w * c.num_states + place.x;
  arc.y = place.y;
  return arc;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ uint4 searcher<POLICY, RANKS>::state_at(const uint4 *states,
                                                                   u32 state) const {
  if constexpr (SCORED)
    if (is_added(state)) return added_state<POLICY>(state);
  return __ldg(states + state);
}

template <class POLICY, int RANKS>
__device__ __forceinline__ uint4 searcher<POLICY, RANKS>::arc_at(const uint4 *arcs,
                                                                 u32 number) const {
  if constexpr (SCORED)
    if (is_added_arc(number)) return added_arc<POLICY>((const uint4 *)p->graph.places, number);
  const uint4 arc = __ldg(arcs + number);
  if constexpr (SCORED)
    if (arc.y == 0x7f800000u && has_words())
      return opened<POLICY>((const uint4 *)p->graph.places, arc);
  return arc;
}

/* The same for an arc of any state, as in the trace. Wide ones have no epsilon arcs, and are
 * expanded by themselves. */
template <class POLICY, int RANKS>
__device__ __forceinline__ uint4 searcher<POLICY, RANKS>::any_arc_at(u32 traced) const {
  const u32 number = first_of_pair(traced);
  if (number >= p->graph.num_explicit && number < p->graph.num_arcs)
    return wide_arc(p->graph, number);
  return arc_at(arcs(), number);
}

/* State that an added arc leaves | WF__LANE_EPSILON if it is one: the last state of the tree whose
 * first arc is at or before it. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::added_source(u32 number) const {
  const wf__lane_class &c = class_of_arc<POLICY>(number);
  const uint4 *states = (const uint4 *)c.states;
  const u32 copy = (number - c.first_arc) / c.num_arcs,
            arc = number - c.first_arc - copy * c.num_arcs;
  u32 low = 0, high = c.num_states;
  while (high - low > 1) {
    const u32 middle = low + (high - low) / 2;
    if (__ldg(states + middle).x <= arc)
      low = middle;
    else
      high = middle;
  }
  return (c.first_state + copy * c.num_states + low) |
         (arc >= __ldg(states + low).y ? WF__LANE_EPSILON : 0);
}

/* Final cost of a state. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::final_of(u32 state) const {
  return is_added(state) ? INFINITY : __uint_as_float(__ldg(states() + state).w);
}

}  // namespace wf_search

#endif
