/* rnn_memory.c - see rnn_memory.h. */
#include "scorer/rnn_memory.h"

#include <math.h>

enum { NONE = UINT32_MAX, MIN_SLOTS = 16, MIN_RESULT_BITS = 10, MAX_RESULT_BITS = 24 };
static const uint64_t root_hash = 1;

static uint64_t never_empty(uint64_t hash) { return hash - (hash == WF__MAP64_EMPTY); }

static wf_status alloc_slots(wf__rnn_memory *m, uint64_t bytes, wf_error *err) {
  uint64_t each = m->state_floats * sizeof(float) + sizeof *m->norms + sizeof *m->owner + sizeof *m->touched;
  m->num_slots = bytes / each > MIN_SLOTS ? bytes / each : MIN_SLOTS;
  if (m->num_slots > NONE - 1) m->num_slots = NONE - 1;
  m->states = wf__alloc(m->num_slots * m->state_floats, sizeof *m->states);
  m->norms = wf__alloc(m->num_slots, sizeof *m->norms);
  m->owner = wf__alloc(m->num_slots, sizeof *m->owner);
  m->touched = wf__alloc(m->num_slots, sizeof *m->touched);
  m->scratch = wf__alloc(m->state_floats, sizeof *m->scratch);
  if (m->states == NULL || m->norms == NULL || m->owner == NULL || m->touched == NULL || m->scratch == NULL)
    return wf__fail_memory(err, m->num_slots * each, "hidden states");
  return WF_OK;
}

static wf_status alloc_results(wf__rnn_memory *m, uint64_t bytes, wf_error *err) {
  m->result_bits = MIN_RESULT_BITS;
  while (m->result_bits < MAX_RESULT_BITS && (sizeof *m->results << (m->result_bits + 1)) <= bytes) m->result_bits++;
  m->results = wf__calloc((uint64_t)1 << m->result_bits, sizeof *m->results);
  return m->results != NULL ? WF_OK : wf__fail_memory(err, sizeof *m->results << m->result_bits, "cached results");
}

wf_status wf__rnn_memory_init(const wf_rnnlm *lm, uint64_t bytes, bool keep_results, wf__rnn_memory *m, wf_error *err) {
  *m = (wf__rnn_memory){.lm = lm, .state_floats = wf__rnn_state_floats(lm), .root_norm = NAN};
  WF__TRY(alloc_slots(m, keep_results ? bytes / 2 : bytes, err));
  if (keep_results) WF__TRY(alloc_results(m, bytes / 2, err));
  return wf__rnn_work_init(lm, 1, &m->work, err);
}

void wf__rnn_memory_free(wf__rnn_memory *m) {
  wf__vec_free(&m->histories);
  wf__vec_free(&m->contexts);
  wf__map64_free(&m->history_of);
  wf__map64_free(&m->context_of);
  wf__vec_free(&m->path);
  free(m->states);
  free(m->norms);
  free(m->owner);
  free(m->touched);
  free(m->scratch);
  free(m->results);
  wf__rnn_work_free(&m->work);
}

wf_status wf__rnn_memory_clear(wf__rnn_memory *m, wf_error *err) {
  m->histories.size = m->contexts.size = 0;
  wf__map64_clear(&m->history_of);
  wf__map64_clear(&m->context_of);
  m->hand = 0;
  m->epoch++;
  wf__rnn_history_node root = {.hash = root_hash, .parent = NONE, .slot = NONE, .word = m->lm->bos};
  return wf__vec_push(&m->histories, root, "histories", err);
}

/* --- histories and contexts --------------------------------------------------------------------------------------- */

wf_status wf__rnn_extend(wf__rnn_memory *m, uint32_t from, int32_t word, uint32_t *out, wf_error *err) {
  uint64_t hash = never_empty(wf__hash_combine(m->histories.data[from].hash, (uint64_t)(uint32_t)word + 1));
  bool fresh;
  if (m->histories.size >= NONE - 1) return wf__fail(err, WF_ERR_LIMIT, "2^32 histories in an utterance");
  WF__TRY(wf__map64_insert(&m->history_of, hash, (uint32_t)m->histories.size, out, &fresh, "histories", err));
  if (fresh) {
    wf__rnn_history_node node = {.hash = hash, .parent = from, .slot = NONE, .word = word, .depth = m->histories.data[from].depth + 1};
    m->counts.histories++;
    return wf__vec_push(&m->histories, node, "histories", err);
  }
  const wf__rnn_history_node *there = &m->histories.data[*out];
  if (there->parent != from || there->word != word) return wf__fail(err, WF_ERR_LIMIT, "two histories of the recurrent language model have the same 64-bit hash");
  return WF_OK;
}

wf_status wf__rnn_shorten(wf__rnn_memory *m, uint32_t history, uint32_t num, uint32_t *out, wf_error *err) {
  *out = history;
  if (m->histories.data[history].depth <= num) return WF_OK;
  m->path.size = 0;
  for (uint32_t i = history; m->path.size < num; i = m->histories.data[i].parent) WF__TRY(wf__vec_push(&m->path, m->histories.data[i].word, "a history", err));
  *out = WF__RNN_ROOT;
  while (m->path.size > 0) WF__TRY(wf__rnn_extend(m, *out, m->path.data[--m->path.size], out, err));
  return WF_OK;
}

wf_status wf__rnn_intern(wf__rnn_memory *m, wf__rnn_context context, uint64_t *hash, wf_error *err) {
  uint64_t both = (uint64_t)context.ngram_state << 32 | context.small_state;
  context.hash = *hash = never_empty(wf__hash_combine(m->histories.data[context.history].hash, both));
  uint32_t place;
  bool fresh;
  if (m->contexts.size >= NONE - 1) return wf__fail(err, WF_ERR_LIMIT, "2^32 contexts in an utterance");
  WF__TRY(wf__map64_insert(&m->context_of, *hash, (uint32_t)m->contexts.size, &place, &fresh, "contexts", err));
  if (fresh) return wf__vec_push(&m->contexts, context, "contexts", err);
  const wf__rnn_context *there = &m->contexts.data[place];
  if (there->history != context.history || there->ngram_state != context.ngram_state || there->small_state != context.small_state)
    return wf__fail(err, WF_ERR_LIMIT, "two contexts of the recurrent language model have the same 64-bit hash");
  return WF_OK;
}

const wf__rnn_context *wf__rnn_context_at(const wf__rnn_memory *m, uint64_t hash) {
  uint32_t place = wf__map64_find(&m->context_of, hash);
  return place != NONE ? &m->contexts.data[place] : NULL;
}

/* --- hidden states ------------------------------------------------------------------------------------------------ */

/* A slot for a new state: the next in the circle that was not used since the hand last passed. */
static uint32_t free_slot(wf__rnn_memory *m) {
  if (m->hand < m->num_slots) return (uint32_t)m->hand++; /* never used so far */
  for (;; m->hand++) {
    uint32_t slot = (uint32_t)(m->hand % m->num_slots);
    if (m->touched[slot]) {
      m->touched[slot] = false;
      continue;
    }
    m->hand = m->num_slots + (slot + 1) % m->num_slots;
    m->histories.data[m->owner[slot]].slot = NONE;
    m->counts.evicted++;
    return slot;
  }
}

/* The slot with the hidden state of a history other than the root. */
static wf_status settle(wf__rnn_memory *m, uint32_t history, uint32_t *slot, wf_error *err) {
  m->path.size = 0;
  uint32_t at = history;
  for (; at != WF__RNN_ROOT && m->histories.data[at].slot == NONE; at = m->histories.data[at].parent)
    WF__TRY(wf__vec_push(&m->path, m->histories.data[at].word, "a history", err));
  const float *from = m->lm->start;
  if (at != WF__RNN_ROOT) from = m->states + m->histories.data[at].slot * m->state_floats, m->touched[m->histories.data[at].slot] = true;
  *slot = m->histories.data[at].slot;
  if (at == history) return WF_OK;
  m->counts.hidden++;
  m->counts.recomputed += m->path.size - 1;
  float *to = m->scratch;
  while (m->path.size > 0) {
    wf__rnn_advance(m->lm, 1, &from, &m->path.data[--m->path.size], &to, &m->work);
    from = to;
  }
  *slot = free_slot(m);
  memcpy(m->states + *slot * m->state_floats, m->scratch, m->state_floats * sizeof *m->states);
  m->norms[*slot] = NAN;
  m->owner[*slot] = history;
  m->touched[*slot] = true;
  m->histories.data[history].slot = *slot;
  return WF_OK;
}

wf_status wf__rnn_cost_behind(wf__rnn_memory *m, uint32_t history, int32_t word, float *cost, wf_error *err) {
  int32_t previous[WF_RNNLM_MAX_ORDER];
  wf__rnn_query query = {.state = m->lm->start, .previous = previous, .word = word};
  uint32_t slot = NONE;
  if (history != WF__RNN_ROOT) {
    WF__TRY(settle(m, history, &slot, err));
    query.state = m->states + slot * m->state_floats;
  }
  for (uint32_t i = history; i != NONE && query.num_previous < wf__rnn_history(m->lm); i = m->histories.data[i].parent)
    previous[query.num_previous++] = m->histories.data[i].word;
  if (m->lm->output_kind == WF_RNNLM_SOFTMAX) {
    float norm = slot != NONE ? m->norms[slot] : m->root_norm;
    if (isnan(norm)) wf__rnn_log_norms(m->lm, 1, &query.state, &norm, &m->work);
    *(slot != NONE ? &m->norms[slot] : &m->root_norm) = query.log_norm = norm;
  }
  wf__rnn_costs(m->lm, 1, &query, cost);
  return WF_OK;
}
