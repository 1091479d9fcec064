/* word_closure.c - the closure of a subset of determinization over arcs without words, and the
 * arcs with words that leave it.
 *
 * There are two rounds. The first follows states on paths that are worth an arc; it decides the
 * words of the arcs. The second follows the other states, as far as they lead to these words.
 * States are expanded in the order of their numbers, which is topological: a set of bits, lowest
 * first. Among equally good paths to a state the first in the lattice wins: an element before a
 * hop, then the lowest hop. Alignments are built only where the closure is left, from the hops
 * that led there. */
#include <string.h>

#include "lattice/word_determinizer.h"

wf_status wf__word_closure_begin(wf__word_closure *closure, const wf__word_graph *graph,
                                 wf_error *err) {
  const uint64_t num_states = graph->num_states, num_words = graph->numbers.size;
  closure->waiting.size = closure->reached.size = closure->words.size = closure->alive.size =
      closure->found.size = closure->ways.size = closure->spare.size = 0;
  WF__TRY(wf__vec_grow(&closure->waiting, num_states / 64 + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->reached, num_states, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->found, graph->exits.size + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->ways, graph->exits.size, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->spare, graph->exits.size, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->alive, num_words, "determinization", err));
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
  wf__vec_free(&closure->alive);
  wf__vec_free(&closure->stack);
}

/* Clears the previous closure. */
static void clear(wf__word_closure *closure, const wf__word_graph *graph) {
  for (uint64_t i = 0; i < closure->reached.size; i++)
    graph->states[closure->reached.data[i]].cost = WF__NEVER;
  closure->reached.size = closure->found.size = closure->alive.size = 0;
  closure->end.graph = WF__NEVER;
  closure->count++;
}

static void try_end(wf__word_determinizer *det, uint32_t state, int64_t limit) {
  wf__word_closure *closure = &det->closure;
  const wf__word_end *end = &det->graph.ends.data[state - det->graph.first_final];
  if (end->cost.graph == WF__NEVER) return;
  const wf__word_state *here = &det->graph.states[state];
  wf__exact_cost way = {here->graph, here->cost - det->graph.backward.data[state] - here->graph};
  wf__exact_cost cost = wf__exact_sum(way, end->cost);
  if (wf__exact_total(cost) > limit ||
      (closure->end.graph != WF__NEVER && !wf__exact_before(cost, closure->end)))
    return;
  closure->end = cost;
  closure->end_state = state;
}

/* Local copies for run(). Without them the compiler would reload these values after each store. */
struct passing {
  wf__word_state *states;
  const wf__word_hop *hops;
  const wf__word_exit *exits;
  wf__word_waiting *waiting;
  const uint64_t *words; /* of the graph: bits of next words, by state */
  int64_t limit;
  int64_t worth;  /* cost limit of the first round */
  uint64_t alive; /* bits of the words of this round; all bits in the first round */
  uint32_t last;  /* last waiting state */
};

/* Cost and, among equal ones, graph cost. */
__extension__ typedef unsigned __int128 both_costs;

static inline both_costs both(int64_t cost, int64_t graph) {
  return (both_costs)((uint64_t)cost ^ (uint64_t)1 << 63) << 64 |
         ((uint64_t)graph ^ (uint64_t)1 << 63);
}
static inline uint64_t other_if(uint64_t mask, uint64_t value, uint64_t other) {
  return value ^ ((value ^ other) & mask);
}

/* Follows a hop. Whether it is the better path is unpredictable, so there is no branch on it,
 * and no address depends on what is written, so later hops need not wait. Returns the bit of the
 * target state, if that is in word `at` of this round's set. */
static inline uint64_t take_hop(struct passing *p, uint32_t state, int64_t cost_here,
                                int64_t graph_here, uint32_t k, uint32_t at, bool second) {
  const wf__word_hop *hop = &p->hops[k];
  const int64_t cost = cost_here + hop->cost, graph = graph_here + hop->graph;
  const uint64_t came = (uint64_t)(k + 1) << 32 | state;
  const uint32_t next = hop->nextstate;
  wf__word_state *there = &p->states[next];
  const int64_t old_cost = there->cost, old_graph = there->graph;
  const uint64_t old_came = there->came;
  const bool within = cost <= p->limit;
  bool better = both(cost, graph) < both(old_cost, old_graph);
  if (second)
    better |= (cost == old_cost) & (graph == old_graph) &
              (came < old_came); /* in the first round the first in the lattice wins */
  const uint64_t mask = -(uint64_t)(better & within);
  __builtin_prefetch(&p->hops[there->hops]);
  there->cost = (int64_t)other_if(mask, (uint64_t)old_cost, (uint64_t)cost);
  there->graph = (int64_t)other_if(mask, (uint64_t)old_graph, (uint64_t)graph);
  there->came = other_if(mask, old_came, came);
  p->last = within & (next > p->last) ? next : p->last;
  wf__word_waiting *waiting = &p->waiting[next / 64];
  const uint64_t in_first = (uint64_t)(cost <= p->worth) << next % 64,
                 in_second = (uint64_t)(within & (!second | (old_cost > p->worth))) << next % 64;
  if (!second) waiting->first |= in_first;
  waiting->second |= in_second;
  return (second ? in_second : in_first) & -(uint64_t)(next / 64 == at);
}

/* Relaxes the hops of a state whose cost is final. */
static inline uint64_t pass_on(struct passing *p, uint32_t state, uint32_t at, bool second) {
  const int64_t cost = p->states[state].cost, graph = p->states[state].graph;
  uint64_t bits = 0;
  for (uint32_t k = p->states[state].hops, end = p->states[state + 1].hops; k < end; k++)
    bits |= take_hop(p, state, cost, graph, k, at, second);
  return bits;
}

/* Collects the exits of a state; most states have one or none. */
static inline wf__way_out *leave(const struct passing *p, uint32_t state, wf__way_out *ways) {
  const int64_t cost = p->states[state].cost, graph = p->states[state].graph;
  uint32_t k = p->states[state].exits, end = p->states[state + 1].exits;
  do {
    const wf__word_exit *exit = &p->exits[k];
    *ways = (wf__way_out){cost + exit->cost, graph + exit->graph, exit->nextstate, state, k,
                          exit->word_number};
    ways += (k < end) & (ways->cost <= p->limit) & ((p->alive & wf__word_bit(exit->word)) != 0);
    k++;
  } while (wf__unlikely(k < end));
  return ways;
}

static inline void wait_for(struct passing *p, uint32_t state, int64_t cost) {
  *(cost <= p->worth ? &p->waiting[state / 64].first : &p->waiting[state / 64].second) |=
      (uint64_t)1 << state % 64;
  p->last = state > p->last ? state : p->last;
}

/* Enters the elements, which are sorted by state. Returns the first state. */
static uint32_t place_elements(const wf__word_determinizer *det, const wf__word_subset *subset,
                               struct passing *p) {
  uint32_t first = UINT32_MAX;
  for (uint32_t k = 0; k < subset->num_elements; k++) {
    const wf__word_element *element = &det->elements.data[subset->first_element + k];
    const int64_t cost = wf__exact_total(element->cost) + det->graph.backward.data[element->state];
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

/* --- paths that leave -------------------------------------------------------------------- */

/* Finds the words with a path of cost `worth` at most; returns their bits. */
static uint64_t find_alive(wf__word_determinizer *det, int64_t worth) {
  wf__word_closure *closure = &det->closure;
  uint64_t alive = 0;
  for (uint64_t i = 0; i < closure->found.size; i++) {
    const wf__way_out *way = &closure->found.data[i];
    if (way->cost > worth) continue;
    wf__word_found *word = &closure->words.data[way->word_number];
    if (word->closure != closure->count) {
      *word = (wf__word_found){.closure = closure->count,
                               .through = way->cost,
                               .word = det->graph.exits.data[way->exit].word};
      closure->alive.data[closure->alive.size++] =
          (uint64_t)(uint32_t)word->word << 32 | way->word_number;
      alive |= wf__word_bit(word->word);
    }
    word->through = way->cost < word->through ? way->cost : word->through;
  }
  return alive;
}

enum { FEW = 16 }; /* limit of insertion sort */

static int compare_words(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void sort_words(uint64_t *words, uint64_t count) {
  if (count > FEW) qsort(words, count, sizeof *words, compare_words);
  for (uint64_t i = 1; i < count; i++) {
    const uint64_t word = words[i];
    uint64_t at = i;
    for (; at > 0 && words[at - 1] > word; at--) words[at] = words[at - 1];
    words[at] = word;
  }
}

static void insert_ways(wf__way_out *ways, uint64_t count) {
  for (uint64_t i = 1; i < count; i++) {
    const wf__way_out way = ways[i];
    uint64_t at = i;
    for (; at > 0 && ways[at - 1].nextstate > way.nextstate; at--) ways[at] = ways[at - 1];
    ways[at] = way;
  }
}

/* Sorts by state: short runs by insertion, because they come nearly sorted, then by merging. */
static void sort_ways(wf__way_out *ways, wf__way_out *spare, uint64_t count) {
  for (uint64_t first = 0; first < count; first += FEW)
    insert_ways(ways + first, first + FEW < count ? FEW : count - first);
  wf__way_out *from = ways, *to = spare;
  for (uint64_t width = FEW; width < count; width *= 2) {
    for (uint64_t first = 0; first < count; first += 2 * width) {
      uint64_t middle = first + width < count ? first + width : count,
               end = middle + width < count ? middle + width : count;
      uint64_t a = first, b = middle;
      for (uint64_t at = first; at < end; at++)
        to[at] = a < middle && (b == end || from[a].nextstate <= from[b].nextstate) ? from[a++]
                                                                                    : from[b++];
    }
    wf__way_out *swap = from;
    from = to;
    to = swap;
  }
  if (from != ways) memcpy(ways, from, count * sizeof *ways);
}

/* Gathers the paths by words that are worth an arc, except those beyond the beam of the word's
 * best. */
static void choose_ways(wf__word_determinizer *det) {
  wf__word_closure *closure = &det->closure;
  wf__word_found *words = closure->words.data;
  const int64_t width = det->graph.width;
  uint64_t count = 0;
  for (uint64_t i = 0; i < closure->found.size; i++) {
    wf__way_out *way = &closure->found.data[i];
    const wf__word_found *word = &words[way->word_number];
    closure->found.data[count] = *way;
    count += (word->closure == closure->count) & (way->cost <= word->through + width);
  }
  for (uint64_t i = 0; i < count; i++) words[closure->found.data[i].word_number].num_ways++;
  sort_words(closure->alive.data, closure->alive.size);
  for (uint64_t i = 0, first = 0; i < closure->alive.size; i++) {
    wf__word_found *word = &words[(uint32_t)closure->alive.data[i]];
    word->first = first;
    first += word->num_ways;
  }
  for (uint64_t i = 0; i < count; i++)
    closure->ways.data[words[closure->found.data[i].word_number].first++] = closure->found.data[i];
  for (uint64_t i = 0; i < closure->alive.size; i++) {
    wf__word_found *word = &words[(uint32_t)closure->alive.data[i]];
    word->first -= word->num_ways;
    sort_ways(closure->ways.data + word->first, closure->spare.data, word->num_ways);
  }
}

void wf__word_closure_find(wf__word_determinizer *det, const wf__word_subset *subset, int64_t limit,
                           int64_t worth) {
  wf__word_closure *closure = &det->closure;
  const wf__word_graph *graph = &det->graph;
  clear(closure, graph);
  struct passing p = {.states = graph->states,
                      .hops = graph->hops.data,
                      .exits = graph->exits.data,
                      .waiting = closure->waiting.data,
                      .words = graph->words.data,
                      .limit = limit,
                      .worth = worth < limit ? worth : limit,
                      .alive = UINT64_MAX};
  const uint32_t first = place_elements(det, subset, &p);
  run(det, &p, first, false);
  p.alive = find_alive(det, worth);
  run(det, &p, first, true);
  choose_ways(det);
}

wf_status wf__word_closure_string(wf__word_determinizer *det, uint32_t state, uint32_t *out,
                                  wf_error *err) {
  wf__word_closure *closure = &det->closure;
  wf__word_state *states = det->graph.states;
  closure->stack.size = 0;
  for (; states[state].came >> 32 != 0; state = (uint32_t)states[state].came)
    WF__TRY(wf__vec_push(&closure->stack, state, "determinization", err));
  uint32_t string = (uint32_t)states[state].came;
  for (uint64_t i = closure->stack.size; i-- > 0;) {
    wf__word_state *here = &states[closure->stack.data[i]];
    WF__TRY(
        wf__word_append(det, string, det->graph.parts.data[(here->came >> 32) - 1], &string, err));
    here->came = string;
  }
  *out = string;
  return WF_OK;
}
