/* rnn_states.c - hidden states of many histories at once, and the costs after them. */
#include <math.h>

#include "scorer/rnn_memory.h"

enum { NONE = UINT32_MAX, MIN_SLOTS = 16 };

static wf_status need_works(wf__rnn_memory *m, uint64_t num, wf_error *err) {
  while (m->works.size < num) {
    wf__rnn_work work;
    WF__TRY(wf__vec_grow(&m->works, 1, "hidden states", err));
    WF__TRY(wf__rnn_work_init(m->lm, WF__RNN_BLOCK, &work, err));
    m->works.data[m->works.size++] = work;
  }
  return WF_OK;
}

wf_status wf__rnn_states_init(wf__rnn_memory *m, uint64_t bytes, wf_error *err) {
  uint64_t each =
      m->state_floats * sizeof(float) + sizeof *m->norms + sizeof *m->owner + sizeof *m->slot_epoch;
  m->num_slots = bytes / each > MIN_SLOTS ? bytes / each : MIN_SLOTS;
  if (m->num_slots > NONE - 2) m->num_slots = NONE - 2;
  m->owner = wf__alloc(m->num_slots, sizeof *m->owner);
  m->slot_epoch = wf__alloc(m->num_slots, sizeof *m->slot_epoch);
  if (m->owner == NULL || m->slot_epoch == NULL)
    return wf__fail_memory(err, m->num_slots * each, "hidden states");
  if (m->lm->on_device != NULL) return wf__gpu_rnn()->open(m->lm, m->num_slots, &m->device, err);
  m->states = wf__alloc(m->num_slots * m->state_floats, sizeof *m->states);
  m->norms = wf__alloc(m->num_slots, sizeof *m->norms);
  if (m->states == NULL || m->norms == NULL)
    return wf__fail_memory(err, m->num_slots * each, "hidden states");
  WF__TRY(need_works(m, 1, err));
  const float *start = m->lm->start;
  if (m->lm->output_kind == WF_RNNLM_SOFTMAX)
    wf__rnn_log_norms(m->lm, 1, &start, &m->root_norm, &m->works.data[0]);
  return WF_OK;
}

void wf__rnn_states_free(wf__rnn_memory *m) {
  if (m->device != NULL) wf__gpu_rnn()->close(m->device);
  wf__vec_free(&m->moves);
  wf__vec_free(&m->computed_slots);
  wf__vec_free(&m->requests);
  wf__vec_free(&m->hashes);
  free(m->states);
  free(m->norms);
  free(m->owner);
  free(m->slot_epoch);
  for (uint64_t i = 0; i < m->works.size; i++) wf__rnn_work_free(&m->works.data[i]);
  wf__vec_free(&m->works);
  wf__vec_free(&m->items);
  wf__vec_free(&m->path);
}

/* Returns a slot for a new state: a free one, or one that has not been used for long (clock
 * algorithm). If the clock hand finds none in a full turn, younger ones may be evicted, but none of
 * this epoch. */
static uint32_t free_slot(wf__rnn_memory *m) {
  if (m->num_used < m->num_slots) return (uint32_t)m->num_used++;
  for (;;) {
    for (size_t tried = 0; tried < m->num_slots; tried++) {
      uint32_t slot = (uint32_t)m->hand;
      m->hand = m->hand + 1 < m->num_slots ? m->hand + 1 : 0;
      if (m->slot_epoch[slot] >= m->evict_before) continue;
      if (m->owner[slot] != NONE) {
        m->histories.data[m->owner[slot]].slot = NONE;
        m->counts.evicted++;
      }
      return slot;
    }
    m->evict_before = m->epoch - (m->epoch - m->evict_before) / 2;
  }
}

/* Adds an item: the path to a history from its nearest ancestor that has a state. Adds nothing if
 * the history has a state. */
static wf_status add_item(wf__rnn_memory *m, uint32_t history, wf_error *err) {
  wf__rnn_advance_item item = {.from = NONE, .path_off = m->path.size, .history = history};
  uint32_t at = history;
  for (; at != WF__RNN_ROOT && m->histories.data[at].slot == NONE;
       at = m->histories.data[at].parent)
    WF__TRY(wf__vec_push(&m->path, m->histories.data[at].word, "a history", err));
  if (at != WF__RNN_ROOT) {
    item.from = m->histories.data[at].slot;
    m->slot_epoch[item.from] = m->epoch;
  }
  item.path_size = (uint32_t)(m->path.size - item.path_off);
  return item.path_size > 0 ? wf__vec_push(&m->items, item, "hidden states", err) : WF_OK;
}

static void take_slots(wf__rnn_memory *m) {
  for (uint64_t i = 0; i < m->items.size; i++) {
    wf__rnn_advance_item *item = &m->items.data[i];
    uint32_t slot = free_slot(m);
    item->to = slot;
    m->owner[slot] = item->history;
    m->slot_epoch[slot] = m->epoch;
    m->histories.data[item->history].slot = slot;
    m->counts.hidden++;
    m->counts.recomputed += item->path_size - 1;
  }
}

/* Computes the states of a block of items, one word of each at a time. */
static void compute_block(void *user, uint64_t block, int worker) {
  wf__rnn_memory *m = user;
  wf__rnn_advance_item *items = m->items.data + block * WF__RNN_BLOCK;
  size_t count = m->items.size - block * WF__RNN_BLOCK, active = 1;
  if (count > WF__RNN_BLOCK) count = WF__RNN_BLOCK;
  const float *from[WF__RNN_BLOCK];
  float *to[WF__RNN_BLOCK], norms[WF__RNN_BLOCK];
  int32_t words[WF__RNN_BLOCK];
  for (uint32_t step = 0; active > 0; step++) {
    active = 0;
    for (size_t i = 0; i < count; i++) {
      if (step >= items[i].path_size) continue;
      to[active] = m->states + items[i].to * m->state_floats;
      from[active] = step > 0                ? to[active]
                     : items[i].from == NONE ? m->lm->start
                                             : m->states + items[i].from * m->state_floats;
      words[active++] = m->path.data[items[i].path_off + items[i].path_size - 1 - step];
    }
    if (active > 0) wf__rnn_advance(m->lm, active, from, words, to, &m->works.data[worker]);
  }
  if (m->lm->output_kind != WF_RNNLM_SOFTMAX) return;
  for (size_t i = 0; i < count; i++) from[i] = m->states + items[i].to * m->state_floats;
  wf__rnn_log_norms(m->lm, count, from, norms, &m->works.data[worker]);
  for (size_t i = 0; i < count; i++) m->norms[m->histories.data[items[i].history].slot] = norms[i];
}

/* Releases the slots of items that were not computed. */
static void drop_items(wf__rnn_memory *m) {
  for (uint64_t i = 0; i < m->items.size; i++) {
    const wf__rnn_advance_item *item = &m->items.data[i];
    m->histories.data[item->history].slot = NONE;
    m->owner[item->to] = NONE;
    m->slot_epoch[item->to] = 0;
  }
}

wf_status wf__rnn_begin_epoch(wf__rnn_memory *m, const uint32_t *histories, size_t count,
                              wf__pool *pool, wf_error *err) {
  m->epoch++;
  m->items.size = m->path.size = 0;
  for (size_t i = 0; i < count; i++) WF__TRY(add_item(m, histories[i], err));
  if (m->items.size == 0) return WF_OK;
  uint64_t num_blocks = (m->items.size + WF__RNN_BLOCK - 1) / WF__RNN_BLOCK;
  bool alone = pool == NULL || num_blocks == 1;
  if (m->device == NULL) WF__TRY(need_works(m, alone ? 1 : (uint64_t)wf__pool_size(pool), err));
  take_slots(m);
  if (m->device != NULL) {
    wf_status status = wf__rnn_device_compute_states(m, err);
    if (status != WF_OK) drop_items(m);
    return status;
  }
  if (!alone) {
    wf__pool_run(pool, num_blocks, compute_block, m);
    return WF_OK;
  }
  for (uint64_t block = 0; block < num_blocks; block++) compute_block(m, block, 0);
  return WF_OK;
}

void wf__rnn_costs_behind(const wf__rnn_memory *m, const uint32_t *histories, const int32_t *words,
                          size_t count, float *costs) {
  int32_t previous[WF__RNN_BLOCK][WF_RNNLM_MAX_ORDER];
  wf__rnn_query queries[WF__RNN_BLOCK];
  int num_previous = wf__rnn_history(m->lm);
  for (size_t first = 0; first < count; first += WF__RNN_BLOCK) {
    size_t num = count - first < WF__RNN_BLOCK ? count - first : WF__RNN_BLOCK;
    for (size_t q = 0; q < num; q++) {
      uint32_t history = histories[first + q], slot = m->histories.data[history].slot;
      bool root = history == WF__RNN_ROOT;
      queries[q] =
          (wf__rnn_query){.state = root ? m->lm->start : m->states + slot * m->state_floats,
                          .previous = previous[q],
                          .word = words[first + q],
                          .log_norm = root ? m->root_norm : m->norms[slot]};
      for (uint32_t i = history; i != NONE && queries[q].num_previous < num_previous;
           i = m->histories.data[i].parent)
        previous[q][queries[q].num_previous++] = m->histories.data[i].word;
    }
    wf__rnn_costs(m->lm, num, queries, costs + first);
  }
}
