/* dominance.c - sorts the sources on wide states into groups, and finds those that others make
 * useless. */
#include "search/frame/dominance.h"

#include <string.h>

#include "math/hash.h"

/* With fewer sources the order costs more than it saves. */
enum { MANY_SOURCES = 128 };
enum { BYTES_OF_STATE = 4, BYTES = 8, VALUES = 256 };

static inline bool is_wide(const wf_graph *graph, uint32_t state) {
  return state >= graph->ctc->first_wide && state < graph->ctc->num_states;
}

/* --- groups ------------------------------------------------------------------------------ */

/* Byte of a source's place in the order: by contexts, those of one hash mixed, then by states. */
static inline uint32_t byte_of(const wf__ranked_source *source, int byte) {
  const uint32_t key =
      byte < BYTES_OF_STATE ? source->state : (uint32_t)(wf__mix64(source->context) >> 32);
  return key >> 8 * (byte % BYTES_OF_STATE) & (VALUES - 1);
}

static void sort_by_byte(const wf__ranked_source *from, uint64_t size, int byte,
                         wf__ranked_source *to) {
  uint32_t next[VALUES] = {0}, first = 0;
  for (uint64_t i = 0; i < size; i++) next[byte_of(&from[i], byte)]++;
  for (uint32_t v = 0; v < VALUES; v++) {
    const uint32_t count = next[v];
    next[v] = first;
    first += count;
  }
  for (uint64_t i = 0; i < size; i++) to[next[byte_of(&from[i], byte)]++] = from[i];
}

/* Lists the sources on wide states in the order of groups, then states. */
static wf_status sort_sources(wf__search *search, wf_error *err) {
  wf__dominance *dominance = &search->step.dominance;
  const wf_graph *graph = search->base.graph;
  const bool scored = search->base.scoring.scorer != NULL;
  const uint64_t size = search->sources.size, range = graph->ctc->num_states - 1;
  WF__TRY(wf__vec_grow(&dominance->sorted, size, "a search", err));
  WF__TRY(wf__vec_grow(&dominance->other, size, "a search", err));
  for (uint32_t i = 0; i < size; i++) {
    const wf__token *source = &search->sources.data[i];
    if (!is_wide(graph, source->state)) continue;
    dominance->sorted.data[dominance->sorted.size++] = (wf__ranked_source){
        .context =
            scored ? search->past_contexts.data[wf__search_source_number(search, source)] : 0,
        .state = source->state,
        .number = i,
        .cost = source->cost};
  }
  for (int byte = 0; byte < (scored ? BYTES : BYTES_OF_STATE); byte++) {
    if (byte < BYTES_OF_STATE && range >> 8 * byte == 0) continue;
    dominance->other.size = dominance->sorted.size;
    sort_by_byte(dominance->sorted.data, dominance->sorted.size, byte, dominance->other.data);
    wf__vec_swap(&dominance->sorted, &dominance->other);
  }
  return WF_OK;
}

/* The end of the group that begins at `first`. */
static uint64_t end_of_group(const wf__search *search, uint64_t first) {
  const wf__dominance *dominance = &search->step.dominance;
  const wf__ranked_source *sorted = dominance->sorted.data;
  const wf__ctc_state *states = search->base.graph->ctc->states;
  uint64_t end = first + 1;
  while (end < dominance->sorted.size && sorted[end].context == sorted[first].context &&
         states[sorted[end].state].owner == states[sorted[first].state].owner)
    end++;
  return end;
}

/* --- within a group ---------------------------------------------------------------------- */

/* Those that two of smaller states do not exceed. Every pair of g holds another token. */
static void mark_tokens(const wf__ranked_source *group, uint64_t size, uint8_t *flags) {
  float least = INFINITY, second = INFINITY;
  for (uint64_t i = 0; i < size; i++) {
    const float cost = group[i].cost;
    if (cost >= second)
      flags[group[i].number] |= WF__ADDS_NO_TOKEN;
    else if (cost >= least)
      second = cost;
    else
      second = least, least = cost;
  }
}

/* All but the most + 1 that cost least. */
static wf_status mark_costs(wf__search *search, const wf__ranked_source *group, uint64_t size,
                            uint64_t most, wf_error *err) {
  uint8_t *flags = search->step.dominance.flags.data;
  if (size <= most + 1) return WF_OK;
  search->step.keys.size = 0;
  WF__TRY(wf__vec_grow(&search->step.keys, size, "a search", err));
  uint64_t *keys = search->step.keys.data;
  for (uint64_t i = 0; i < size; i++) keys[i] = candidate_key(group[i].cost, group[i].number);
  const uint64_t last = wf__select_smallest(keys, size, most + 1);
  for (uint64_t i = 0; i < size; i++)
    if (candidate_key(group[i].cost, group[i].number) > last)
      flags[group[i].number] |= WF__ADDS_NO_COST;
  return WF_OK;
}

wf_status wf__dominance_find(wf__search *search, wf_error *err) {
  wf__dominance *dominance = &search->step.dominance;
  const wf_graph *graph = search->base.graph;
  const uint64_t size = search->sources.size;
  uint64_t num_wide = 0;
  dominance->sorted.size = 0;
  if (graph->num_wide == 0 || size < MANY_SOURCES) return WF_OK;
  for (uint64_t i = 0; i < size; i++) num_wide += is_wide(graph, search->sources.data[i].state);
  if (num_wide < MANY_SOURCES) return WF_OK;
  dominance->flags.size = 0;
  WF__TRY(wf__vec_grow(&dominance->flags, size, "a search", err));
  memset(dominance->flags.data, 0, size);
  WF__TRY(sort_sources(search, err));
  for (uint64_t first = 0, end; first < num_wide; first = end) {
    end = end_of_group(search, first);
    mark_tokens(dominance->sorted.data + first, end - first, dominance->flags.data);
  }
  return WF_OK;
}

wf_status wf__dominance_rank(wf__search *search, uint64_t most, wf_error *err) {
  const wf__dominance *dominance = &search->step.dominance;
  for (uint64_t first = 0, end; first < dominance->sorted.size; first = end) {
    end = end_of_group(search, first);
    WF__TRY(mark_costs(search, dominance->sorted.data + first, end - first, most, err));
  }
  return WF_OK;
}

void wf__dominance_free(wf__search *search) {
  wf__dominance *dominance = &search->step.dominance;
  wf__vec_free(&dominance->sorted);
  wf__vec_free(&dominance->other);
  wf__vec_free(&dominance->flags);
}
