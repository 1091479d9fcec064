/* rnn_slots.c - hidden states in a GPU's memory, and costs after them; the counterpart of
 * rnn_states.c. Slot s of the memory is slot s + 1 there. */
#include "scorer/rnn_memory.h"

enum { NONE = UINT32_MAX };

static uint32_t device_slot(uint32_t slot) { return slot == NONE ? WF__RNN_START_SLOT : slot + 1; }

/* Advances all items by one word at a time. */
wf_status wf__rnn_device_compute_states(wf__rnn_memory *m, wf_error *err) {
  WF__TRY(wf__vec_grow(&m->moves, m->items.size, "hidden states", err));
  WF__TRY(wf__vec_grow(&m->computed_slots, m->items.size, "hidden states", err));
  uint32_t step = 0;
  do {
    m->moves.size = 0;
    for (uint64_t i = 0; i < m->items.size; i++) {
      const wf__rnn_advance_item *item = &m->items.data[i];
      if (step >= item->path_size) continue;
      const int32_t word = m->path.data[item->path_off + item->path_size - 1 - step];
      m->moves.data[m->moves.size++] = (wf__rnn_move){
          device_slot(step == 0 ? item->from : item->to), device_slot(item->to), word, 0};
    }
    WF__TRY(wf__gpu_rnn()->advance(m->device, m->moves.data, m->moves.size, err));
    step++;
  } while (m->moves.size > 0);
  for (uint64_t i = 0; i < m->items.size; i++)
    m->computed_slots.data[i] = device_slot(m->items.data[i].to);
  return wf__gpu_rnn()->norms(m->device, m->computed_slots.data, m->items.size, err);
}

wf_status wf__rnn_device_costs_behind(wf__rnn_memory *m, const uint32_t *histories,
                                      const int32_t *words, size_t count, float *costs,
                                      wf_error *err) {
  const int num_previous = wf__rnn_history(m->lm);
  const uint64_t order = m->lm->maxent_order > 0 ? (uint64_t)m->lm->maxent_order : 0;
  wf__rnn_request request = {0};
  m->requests.size = m->hashes.size = 0;
  WF__TRY(wf__vec_grow(&m->requests, count, "requests to a scorer", err));
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || histories[i] != histories[i - 1]) {
      int32_t previous[WF_RNNLM_MAX_ORDER];
      int num = 0;
      WF__TRY(wf__vec_grow(&m->hashes, order, "requests to a scorer", err));
      for (uint32_t h = histories[i]; h != NONE && num < num_previous;
           h = m->histories.data[h].parent)
        previous[num++] = m->histories.data[h].word;
      request.slot =
          device_slot(histories[i] == WF__RNN_ROOT ? NONE : m->histories.data[histories[i]].slot);
      request.first_hash = (uint32_t)m->hashes.size;
      request.orders =
          (uint32_t)wf__rnn_hashes(m->lm, previous, num, m->hashes.data + m->hashes.size);
      m->hashes.size += request.orders;
    }
    request.word = words[i];
    m->requests.data[m->requests.size++] = request;
  }
  return wf__gpu_rnn()->costs(m->device, m->requests.data, count, m->hashes.data, m->hashes.size,
                              costs, err);
}
