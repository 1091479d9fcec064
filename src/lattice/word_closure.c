/* word_closure.c - what a subset of determinization reaches without a word, and by which arcs it then leaves.
 *
 * In two rounds: first on from what is on paths worth an arc; they say by which words arcs will leave. Then on from what is not, as far as it leads to these words.
 * States are passed on in the order of their numbers, which is topological: a set of bits, of which the lowest comes next. Of equally good ways to a state the first in
 * the lattice stands: an element before a hop, then the lowest hop. Alignments are spelled out only where the closure is left, from the hops that led there. */
#include <string.h>

#include "lattice/word_determinizer.h"

wf_status wf__word_closure_begin(wf__word_closure *closure, const wf__word_graph *graph, wf_error *err) {
  const uint64_t num_states = graph->num_states, num_words = graph->numbers.size;
  closure->waiting.size = closure->reached.size = closure->words.size = closure->found.size = closure->ways.size = closure->spare.size = 0;
  WF__TRY(wf__vec_grow(&closure->waiting, num_states / 64 + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->reached, num_states, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->found, graph->exits.size + 2, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->ways, graph->exits.size + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->spare, graph->exits.size, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->words, num_words, "determinization", err));
  memset(closure->waiting.data, 0, (num_states / 64 + 1) * sizeof *closure->waiting.data);
  for (uint64_t k = 0; k < num_words; k++) closure->words.data[k] = (wf__word_found){0};
  closure->count = 0;
  return WF_OK;
}

void wf__word_closure_free(wf__word_closure *closure) {
  wf__vec_free(&closure->waiting);
  wf__vec_free(&closure->reached);
  wf__vec_free(&closure->found);
  wf__vec_free(&closure->ways);
  wf__vec_free(&closure->spare);
  wf__vec_free(&closure->words);
  wf__vec_free(&closure->stack);
}

/* Forgets the closure before. */
static void clear(wf__word_closure *closure, const wf__word_graph *graph) {
  for (uint64_t i = 0; i < closure->reached.size; i++) graph->states[closure->reached.data[i]].cost = WF__NEVER;
  closure->reached.size = closure->found.size = 0;
  closure->end.graph = WF__NEVER;
  closure->count++;
}

static void try_end(wf__word_determinizer *det, uint32_t state, int64_t limit) {
  wf__word_closure *closure = &det->closure;
  const wf__word_end *end = &det->graph.ends.data[state - det->graph.first_final];
  if (end->cost.graph == WF__NEVER) return;
  const wf__word_state *here = &det->graph.states[state];
  wf__exact_cost way = {here->graph, here->cost - det->graph.places.data[state].backward - here->graph};
  wf__exact_cost cost = wf__exact_sum(way, end->cost);
  if (wf__exact_total(cost) > limit) return;
  if (closure->end.graph != WF__NEVER && !wf__exact_before(cost, closure->end) && (state > closure->end_state || wf__exact_before(closure->end, cost))) return;
  closure->end = cost;
  closure->end_state = state;
}

/* What run() goes on with: read once, so that no store makes the compiler read it again. */
struct passing {
  wf__word_state *states;
  const wf__word_hop *hops;
  const wf__word_exit *exits;
  wf__word_waiting *waiting;
  const uint64_t *words; /* of states */
  int64_t limit;
  int64_t worth;  /* cost of what is passed on in the first round */
  uint64_t alive; /* bits of words that are looked for: in the first round of all */
  uint32_t last;  /* state that waits */
};

static inline int64_t chosen(bool other, int64_t value, int64_t other_value) { return value ^ ((value ^ other_value) & -(int64_t)other); }

/* Along a hop. Whether a way is the better one is anybody's guess, so there is no branch on it, and what is written does not decide where: else what comes next would have to
 * wait. The bit of the state that it leads to, if that is in word `at` of those that wait in this round. */
static inline uint64_t take_hop(struct passing *p, uint32_t state, int64_t cost_here, int64_t graph_here, uint32_t k, bool is_one, uint32_t at, bool second) {
  const wf__word_hop *hop = &p->hops[k];
  const int64_t cost = cost_here + hop->cost, graph = graph_here + hop->graph;
  const uint64_t came = (uint64_t)(k + 1) << 32 | state;
  const uint32_t next = hop->nextstate;
  wf__word_state *there = &p->states[next];
  const int64_t old_cost = there->cost, old_graph = there->graph;
  const uint64_t old_came = there->came;
  const bool within = is_one & (cost <= p->limit);
  const bool better = within & ((cost < old_cost) | ((cost == old_cost) & ((graph < old_graph) | ((graph == old_graph) & (came < old_came)))));
  __builtin_prefetch(&p->hops[there->hops]);
  there->cost = chosen(better, old_cost, cost);
  there->graph = chosen(better, old_graph, graph);
  there->came = (uint64_t)chosen(better, (int64_t)old_came, (int64_t)came);
  p->last = within & (next > p->last) ? next : p->last;
  const uint64_t in_first = (uint64_t)(is_one & (cost <= p->worth)) << next % 64, in_second = (uint64_t)(within & (old_cost > p->worth)) << next % 64;
  if (!second) p->waiting[next / 64].first |= in_first;
  p->waiting[next / 64].second |= in_second;
  return (second ? in_second : in_first) & -(uint64_t)(next / 64 == at);
}

/* Along the hops of a state whose cost is settled: two at a time, as nearly all have no more. The one behind the last is there, but is not taken. */
static inline uint64_t pass_on(struct passing *p, uint32_t state, uint32_t at, bool second) {
  const int64_t cost = p->states[state].cost, graph = p->states[state].graph;
  uint32_t k = p->states[state].hops, end = p->states[state + 1].hops;
  uint64_t bits = 0;
  do {
    bits |= take_hop(p, state, cost, graph, k, k < end, at, second);
    bits |= take_hop(p, state, cost, graph, k + 1, k + 1 < end, at, second);
    k += 2;
  } while (wf__unlikely(k < end));
  return bits;
}

/* By its exits; most have one or none. */
static inline wf__way_out *leave(const struct passing *p, uint32_t state, wf__way_out *ways) {
  const int64_t cost = p->states[state].cost, graph = p->states[state].graph;
  uint32_t k = p->states[state].exits, end = p->states[state + 1].exits;
  do {
    const wf__word_exit *exit = &p->exits[k];
    *ways = (wf__way_out){(uint64_t)(uint32_t)exit->word << 32 | exit->nextstate, cost + exit->cost, graph + exit->graph, state, k};
    ways += (k < end) & (ways->cost <= p->limit) & ((p->alive & WF__WORD_BIT(exit->word_number)) != 0);
    k++;
  } while (wf__unlikely(k < end));
  return ways;
}

static inline void wait_for(struct passing *p, uint32_t state, int64_t cost) {
  *(cost <= p->worth ? &p->waiting[state / 64].first : &p->waiting[state / 64].second) |= (uint64_t)1 << state % 64;
  p->last = state > p->last ? state : p->last;
}

/* The elements; the first of them, which are sorted by state. */
static uint32_t place_elements(const wf__word_determinizer *det, const wf__word_subset *subset, struct passing *p) {
  uint32_t first = UINT32_MAX;
  for (uint32_t k = 0; k < subset->num_elements; k++) {
    const wf__word_element *element = &det->elements.data[subset->first_element + k];
    const int64_t cost = wf__exact_total(element->cost) + det->graph.places.data[element->state].backward;
    if (cost > p->limit) continue;
    wf__word_state *state = &p->states[element->state];
    state->cost = cost;
    state->graph = element->cost.graph;
    state->came = element->string;
    wait_for(p, element->state, cost);
    if (first == UINT32_MAX) first = element->state;
  }
  return first;
}

static inline void run(wf__word_determinizer *det, struct passing *p, uint32_t first, bool second) {
  wf__word_closure *closure = &det->closure;
  const uint64_t first_final = second ? UINT64_MAX : det->graph.first_final;
  wf__way_out *ways = closure->found.data + closure->found.size;
  uint32_t *reached = closure->reached.data + closure->reached.size;
  for (uint32_t at = first / 64; at <= p->last / 64; at++) {
    uint64_t bits = second ? p->waiting[at].second : p->waiting[at].first, passed = 0;
    while (bits != 0) {
      const uint32_t state = at * 64 + (uint32_t)__builtin_ctzll(bits);
      passed |= bits & -bits;
      bits &= bits - 1;
      *reached++ = state;
      if (second && (p->words[state] & p->alive) == 0) continue;
      bits |= pass_on(p, state, at, second);
      ways = leave(p, state, ways);
      if (wf__unlikely(state >= first_final)) try_end(det, state, p->limit);
    }
    if (!second) p->waiting[at].first = 0;
    p->waiting[at].second &= ~passed;
  }
  closure->found.size = (uint64_t)(ways - closure->found.data);
  closure->reached.size = (uint64_t)(reached - closure->reached.data);
}

/* --- ways out ----------------------------------------------------------------------------------------------------------- */

/* Finds the words that have a way of cost `worth` at most; their bits. */
static uint64_t find_alive(wf__word_determinizer *det, int64_t worth) {
  wf__word_closure *closure = &det->closure;
  const wf__word_exit *exits = det->graph.exits.data;
  uint64_t alive = 0;
  for (uint64_t i = 0; i < closure->found.size; i++) {
    const wf__way_out *way = &closure->found.data[i];
    const uint32_t number = exits[way->exit].word_number;
    wf__word_found *word = &closure->words.data[number];
    if (way->cost > worth) continue;
    alive |= WF__WORD_BIT(number);
    if (word->closure != closure->count || way->cost < word->through) *word = (wf__word_found){closure->count, way->cost};
  }
  return alive;
}

/* Keeps the ways by those words that are within the beam of the word's best. */
static void choose_ways(wf__word_determinizer *det) {
  wf__word_closure *closure = &det->closure;
  const wf__word_exit *exits = det->graph.exits.data;
  uint64_t count = 0;
  for (uint64_t i = 0; i < closure->found.size; i++) {
    const wf__way_out *way = &closure->found.data[i];
    const wf__word_found *word = &closure->words.data[exits[way->exit].word_number];
    closure->ways.data[count] = *way;
    count += (word->closure == closure->count) & (way->cost <= word->through + det->graph.width);
  }
  closure->ways.size = count;
}

/* By insertion: stable. */
static void sort_few(wf__way_out *ways, uint64_t count) {
  for (uint64_t i = 1; i < count; i++) {
    wf__way_out way = ways[i];
    uint64_t at = i;
    for (; at > 0 && ways[at - 1].key > way.key; at--) ways[at] = ways[at - 1];
    ways[at] = way;
  }
}

/* By merging, of what is sorted by insertion: stable, and no call for a comparison. */
static void sort_ways(wf__word_closure *closure) {
  enum { FEW = 16 };
  uint64_t count = closure->ways.size;
  for (uint64_t first = 0; first < count; first += FEW) sort_few(closure->ways.data + first, first + FEW < count ? FEW : count - first);
  if (count <= FEW) return;
  wf__way_out *from = closure->ways.data, *to = closure->spare.data;
  for (uint64_t width = FEW; width < count; width *= 2) {
    for (uint64_t first = 0; first < count; first += 2 * width) {
      uint64_t middle = first + width < count ? first + width : count, end = middle + width < count ? middle + width : count;
      uint64_t a = first, b = middle;
      for (uint64_t at = first; at < end; at++) to[at] = a < middle && (b == end || from[a].key <= from[b].key) ? from[a++] : from[b++];
    }
    wf__way_out *swap = from;
    from = to;
    to = swap;
  }
  if (from != closure->ways.data) memcpy(closure->ways.data, from, count * sizeof *from);
}

void wf__word_closure_find(wf__word_determinizer *det, const wf__word_subset *subset, int64_t limit, int64_t worth) {
  wf__word_closure *closure = &det->closure;
  const wf__word_graph *graph = &det->graph;
  clear(closure, graph);
  struct passing p = {.states = graph->states, .hops = graph->hops.data, .exits = graph->exits.data, .waiting = closure->waiting.data, .words = graph->words.data,
                      .limit = limit, .worth = worth < limit ? worth : limit, .alive = UINT64_MAX};
  const uint32_t first = place_elements(det, subset, &p);
  run(det, &p, first, false);
  p.alive = find_alive(det, worth);
  run(det, &p, first, true);
  choose_ways(det);
  sort_ways(closure);
}

wf_status wf__word_closure_string(wf__word_determinizer *det, uint32_t state, uint32_t *out, wf_error *err) {
  wf__word_closure *closure = &det->closure;
  wf__word_state *states = det->graph.states;
  closure->stack.size = 0;
  for (; states[state].came >> 32 != 0; state = (uint32_t)states[state].came) WF__TRY(wf__vec_push(&closure->stack, state, "determinization", err));
  uint32_t string = (uint32_t)states[state].came;
  for (uint64_t i = closure->stack.size; i-- > 0;) {
    wf__word_state *here = &states[closure->stack.data[i]];
    WF__TRY(wf__word_append(det, string, det->graph.parts.data[(here->came >> 32) - 1], &string, err));
    here->came = string;
  }
  *out = string;
  return WF_OK;
}
