/* word_closure.c - the closure of a subset of determinization over arcs without words, and the
 * arcs with words that leave it.
 *
 * There are two rounds. The first follows states on paths that are worth an arc; it decides the
 * words of the arcs. The second follows the other states, as far as they lead to these words.
 * States are expanded in the order of their numbers, which is topological: a set of bits, lowest
 * first. The first round leaves in the set what is for the second. Among equally good paths to a
 * state the first in the lattice wins: an element before a hop, then the lowest rank. Alignments
 * are built only where the closure is left, from the hops that led there. */
#include <string.h>

#include "lattice/word_determinizer.h"

wf_status wf__word_closure_begin(wf__word_closure *closure, const wf__word_graph *graph,
                                 wf_error *err) {
  const uint64_t num_states = graph->num_states, num_words = graph->numbers.size;
  closure->waiting.size = closure->reached.size = closure->words.size = closure->alive.size =
      closure->found.size = closure->ways.size = closure->spare.size = closure->kept.size =
          closure->stack.size = 0;
  WF__TRY(wf__vec_grow(&closure->waiting, num_states / 64 + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->reached, num_states, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->found, graph->exits.size + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->kept, graph->exits.size + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&closure->stack, num_states + graph->labels.size, "determinization", err));
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
  wf__vec_free(&closure->kept);
}

/* Clears the previous closure. */
static void clear(wf__word_closure *closure, const wf__word_graph *graph) {
  for (uint64_t i = 0; i < closure->reached.size; i++)
    graph->states[closure->reached.data[i]].cost = WF__NEVER;
  closure->reached.size = closure->found.size = closure->alive.size = 0;
  closure->end.graph = WF__NEVER;
  closure->count++;
}

static inline int64_t graph_cost(uint64_t biased) { return (int64_t)(biased ^ (uint64_t)1 << 63); }

static void try_end(wf__word_determinizer *det, uint32_t state, int64_t limit) {
  wf__word_closure *closure = &det->closure;
  const wf__word_end *end = &det->graph.ends.data[state - det->graph.first_final];
  if (end->cost.graph == WF__NEVER) return;
  const wf__word_state *here = &det->graph.states[state];
  const int64_t graph = graph_cost(here->graph);
  wf__exact_cost way = {graph, here->cost - det->graph.backward.data[state] - graph};
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
  uint64_t *waiting;
  const uint64_t *words; /* of the graph: bits of next words, by state */
  int64_t limit;
  int64_t worth;  /* cost limit of the first round */
  uint64_t alive; /* second round: bits of its words */
  uint32_t last;  /* last waiting state */
};

__extension__ typedef unsigned __int128 unsigned_costs;
__extension__ typedef __int128 both_costs; /* cost and, among equal ones, graph cost plus 2^63 */

static inline both_costs both(int64_t cost, uint64_t graph) {
  return (both_costs)((unsigned_costs)(uint64_t)cost << 64 | graph);
}
static inline uint64_t other_if(uint64_t mask, uint64_t value, uint64_t other) {
  return value ^ ((value ^ other) & mask);
}

/* Follows a hop. Whether it is the better path is unpredictable, so there is no branch on it,
 * and no address depends on what is written, so later hops need not wait. Returns the bit of the
 * target state, if it waits and is in word `at` of the set. */
static inline uint64_t take_hop(struct passing *p, uint32_t state, int64_t cost_here,
                                uint64_t graph_here, const wf__word_hop *hop, uint32_t at,
                                bool second) {
  const uint64_t key = hop->key, came = key >> 32 << 32 | state;
  const uint32_t next = (uint32_t)key;
  const int64_t cost = cost_here + hop->cost;
  const uint64_t graph = graph_here + (uint64_t)hop->graph;
  wf__word_state *there = &p->states[next];
  const int64_t old_cost = there->cost;
  const uint64_t old_graph = there->graph, old_came = there->came;
  const bool within = cost <= p->limit,
             better = both(cost, graph) < both(old_cost, old_graph) + (came < old_came);
  const uint64_t mask = -(uint64_t)(better & within);
  __builtin_prefetch(&p->hops[there->hops]);
  there->cost = (int64_t)other_if(mask, (uint64_t)old_cost, (uint64_t)cost);
  there->graph = other_if(mask, old_graph, graph);
  there->came = other_if(mask, old_came, came);
  p->last = within & (next > p->last) ? next : p->last;
  const bool waits = second ? within & (old_cost > p->worth) : within;
  const uint64_t bit = (uint64_t)waits << next % 64;
  p->waiting[next / 64] |= bit;
  return bit & -(uint64_t)(next / 64 == at);
}

/* Collects the exits of a state. */
static inline wf__way_out *leave(const struct passing *p, uint32_t state, int64_t cost,
                                 uint64_t graph, wf__way_out *ways, bool second) {
  for (uint32_t k = p->states[state].exits, end = p->states[state + 1].exits; k < end; k++) {
    const wf__word_exit *exit = &p->exits[k];
    *ways = (wf__way_out){cost + exit->cost,
                          graph_cost(graph) + exit->graph,
                          exit->nextstate,
                          exit->word_number,
                          state,
                          k};
    ways += (ways->cost <= p->limit) & (!second || (p->alive & wf__word_bit(exit->word)) != 0);
  }
  return ways;
}

static inline void wait_for(struct passing *p, uint32_t state) {
  p->waiting[state / 64] |= (uint64_t)1 << state % 64;
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
    state->graph = (uint64_t)element->cost.graph ^ (uint64_t)1 << 63;
    state->came = element->string;
    wait_for(p, element->state);
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
    uint64_t bits = p->waiting[at], left = 0; /* left for the second round */
    while (bits != 0) {
      const uint32_t state = at * 64 + (uint32_t)__builtin_ctzll(bits);
      const int64_t cost = p->states[state].cost;
      const uint64_t graph = p->states[state].graph;
      bits &= bits - 1;
      if (!second && cost > p->worth) {
        left |= (uint64_t)1 << state % 64;
        continue;
      }
      *reached++ = state;
      if (second && (p->words[state] & p->alive) == 0) continue;
      for (uint32_t k = p->states[state].hops, end = p->states[state + 1].hops; k < end; k++)
        bits |= take_hop(p, state, cost, graph, &p->hops[k], at, second);
      ways = leave(p, state, cost, graph, ways, second);
      if (wf__unlikely(state >= first_final)) try_end(det, state, p->limit);
    }
    p->waiting[at] = second ? 0 : left;
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

static inline void insert(uint64_t *sorted, uint64_t count, uint64_t item) {
  for (; count > 0 && sorted[count - 1] > item; count--) sorted[count] = sorted[count - 1];
  sorted[count] = item;
}

static int compare_items(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void sort_words(uint64_t *words, uint64_t count) {
  if (count > FEW) qsort(words, count, sizeof *words, compare_items);
  for (uint64_t i = 1; i < count; i++) insert(words, i, words[i]);
}

/* Merges sorted runs of FEW. */
static void merge_runs(uint64_t *ways, uint64_t *spare, uint64_t count) {
  uint64_t *from = ways, *to = spare;
  for (uint64_t width = FEW; width < count; width *= 2) {
    for (uint64_t first = 0; first < count; first += 2 * width) {
      uint64_t middle = first + width < count ? first + width : count,
               end = middle + width < count ? middle + width : count;
      uint64_t a = first, b = middle;
      for (uint64_t at = first; at < end; at++)
        to[at] = a < middle && (b == end || from[a] < from[b]) ? from[a++] : from[b++];
    }
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != ways) memcpy(ways, from, count * sizeof *ways);
}

/* Gathers the paths by words that are worth an arc, except those beyond the beam of the word's
 * best, sorted by state: by insertion, because they come nearly sorted, in runs that are merged. */
static void choose_ways(wf__word_determinizer *det) {
  wf__word_closure *closure = &det->closure;
  wf__word_found *const words = closure->words.data;
  const wf__way_out *const found = closure->found.data;
  uint32_t *const kept = closure->kept.data;
  uint64_t *const ways = closure->ways.data;
  const int64_t width = det->graph.width;
  const uint64_t count = closure->count, num_found = closure->found.size;
  uint64_t num_kept = 0, first = 0;
  for (uint64_t i = 0; i < num_found; i++) {
    wf__word_found *word = &words[found[i].word_number];
    const bool keep = (word->closure == count) & (found[i].cost <= word->through + width);
    word->num_ways += keep;
    kept[num_kept] = (uint32_t)i;
    num_kept += keep;
  }
  sort_words(closure->alive.data, closure->alive.size);
  for (uint64_t i = 0; i < closure->alive.size; i++) {
    wf__word_found *word = &words[(uint32_t)closure->alive.data[i]];
    word->first = first;
    first += word->num_ways;
    word->num_ways = 0;
  }
  for (uint64_t i = 0; i < num_kept; i++) {
    const wf__way_out *way = &found[kept[i]];
    wf__word_found *word = &words[way->word_number];
    const uint64_t run = word->num_ways % FEW;
    insert(ways + word->first + word->num_ways - run, run,
           (uint64_t)way->nextstate << 32 | kept[i]);
    word->num_ways++;
  }
  for (uint64_t i = 0; i < closure->alive.size; i++) {
    const wf__word_found *word = &words[(uint32_t)closure->alive.data[i]];
    if (word->num_ways > FEW) merge_runs(ways + word->first, closure->spare.data, word->num_ways);
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
                      .worth = worth < limit ? worth : limit};
  const uint32_t first = place_elements(det, subset, &p);
  run(det, &p, first, false);
  p.alive = find_alive(det, worth);
  run(det, &p, first, true);
  choose_ways(det);
}

/* Collects labels from the last to the first, and the states between them, negative, up to a place
 * whose string is known. */
wf_status wf__word_closure_string(wf__word_determinizer *det, uint32_t state, uint32_t alignment,
                                  uint32_t *out, wf_error *err) {
  wf__word_closure *closure = &det->closure;
  wf__word_label *const labels = det->graph.labels.data;
  wf__word_state *const states = det->graph.states;
  const uint32_t count = (uint32_t)closure->count;
  int64_t *const stack = closure->stack.data, *top = stack;
  uint32_t string;
  for (;;) {
    for (; alignment != 0 && labels[alignment].closure != count;
         alignment = labels[alignment].before)
      *top++ = alignment;
    const uint64_t came = states[state].came;
    string = alignment != 0 ? labels[alignment].string : (uint32_t)came;
    if (alignment != 0 || came >> 32 == 0) break;
    *top++ = ~(int64_t)state;
    alignment = det->graph.alignments.data[(came >> 32) - 1];
    state = (uint32_t)came;
  }
  while (top != stack) {
    const int64_t item = *--top;
    if (item < 0) {
      states[~item].came = string;
      continue;
    }
    wf__word_label *label = &labels[item];
    WF__TRY(wf__labels_append(&det->strings, string, label->label, &string, err));
    label->closure = count;
    label->string = string;
  }
  *out = string;
  return WF_OK;
}
