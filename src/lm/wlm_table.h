/* wlm_table.h - a copy of a large language model's arcs in memory, as a hash table with (state,
 * word) as key. Look-ups on the CPU are faster, but need more memory.
 *
 *   slots  [num_lines][4]  {state, word, cost, next}; four slots are one cache line. Arcs that do
 *                          not fit into a full line are in the next one. State 0: empty slot
 *   hops   [num_states]    {back-off state, back-off cost}
 *
 * A look-up in the file is a chain of dependent reads: state, tags, arc. Here the back-off of a
 * state and its arc are independent reads of one cache line each. Numbers are checked when the
 * table is built. The results are those of wf__wlm_step, bit for bit. */
#ifndef WF_LM_WLM_TABLE_H
#define WF_LM_WLM_TABLE_H

#include <stddef.h>

#include "lm/wlm.h"

enum { WF__WLM_LINE = 4 };

typedef struct wf__wlm_slot {
  uint32_t state, word;
  float cost;
  uint32_t next;
} wf__wlm_slot;

typedef struct wf__wlm_hop {
  uint32_t backoff;
  float cost;
} wf__wlm_hop;

typedef struct wf__wlm_arc_table {
  void *memory;
  wf__wlm_slot *slots; /* in `memory`, aligned to 64 bytes */
  wf__wlm_hop *hops;
  uint64_t num_lines; /* fewer than 2^32 */
} wf__wlm_arc_table;

static inline uint64_t wf__wlm_line(const wf__wlm_arc_table *table, uint32_t state, uint32_t word) {
  uint64_t hash = ((uint64_t)state << 32 | word) * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ULL;
  return (hash >> 32) * table->num_lines >> 32;
}

static inline const wf__wlm_slot *wf__wlm_table_find(const wf__wlm_arc_table *table, uint32_t state,
                                                     uint32_t word) {
  for (uint64_t line = wf__wlm_line(table, state, word);;
       line = line + 1 < table->num_lines ? line + 1 : 0) {
    const wf__wlm_slot *slot = &table->slots[line * WF__WLM_LINE];
    for (int i = 0; i < WF__WLM_LINE; i++, slot++) {
      if (slot->state == state && slot->word == word) return slot;
      if (slot->state == 0) return NULL;
    }
  }
}

/* As wf__wlm_step. */
static inline float wf__wlm_table_step(const wf__wlm_view *view, const wf__wlm_arc_table *table,
                                       uint32_t state, uint32_t word, uint32_t *next,
                                       uint32_t *at) {
  float cost = 0;
  for (; state != 0; state = table->hops[state].backoff) {
    const wf__wlm_slot *slot = wf__wlm_table_find(table, state, word);
    if (slot != NULL) {
      *at = state;
      *next = wf__wlm_next_state(view, word, slot->next);
      wf__wlm_fetch(&table->hops[*next]);
      return cost + slot->cost;
    }
    cost += table->hops[state].cost;
  }
  *at = 0;
  *next = view->unigrams[word].next < view->num_states ? view->unigrams[word].next : 0;
  return cost + view->unigrams[word].cost;
}

/* NULL is ignored. */
void wf__wlm_table_free(wf__wlm_arc_table *table);

#endif
