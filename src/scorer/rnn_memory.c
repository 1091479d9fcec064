/* rnn_memory.c - histories and contexts of the recurrent scorer: making them, finding them, forgetting them. */
#include "scorer/rnn_memory.h"

enum { NONE = UINT32_MAX, NODE_BYTES = 64 /* of a history or a context, with its share of a map */ };
static const uint64_t root_hash = 1;

static uint64_t never_empty(uint64_t hash) { return hash - (hash == WF__MAP64_EMPTY); }

wf_status wf__rnn_memory_init(const wf_rnnlm *lm, uint64_t bytes, bool keep_results, wf__rnn_memory *m, wf_error *err) {
  *m = (wf__rnn_memory){.lm = lm, .state_floats = wf__rnn_state_floats(lm), .context_bytes = bytes / 4, .epoch = 1};
  m->collect_at = m->context_bytes / NODE_BYTES;
  WF__TRY(wf__rnn_states_init(m, bytes / 2, err));
  return keep_results ? wf__rnn_results_init(bytes / 4, &m->results, err) : WF_OK;
}

void wf__rnn_memory_free(wf__rnn_memory *m) {
  wf__vec_free(&m->histories);
  wf__vec_free(&m->contexts);
  wf__map64_free(&m->history_of);
  wf__map64_free(&m->context_of);
  wf__rnn_results_free(&m->results);
  wf__rnn_states_free(m);
}

wf_status wf__rnn_memory_clear(wf__rnn_memory *m, wf_error *err) {
  m->histories.size = m->contexts.size = 0;
  wf__map64_clear(&m->history_of);
  wf__map64_clear(&m->context_of);
  wf__rnn_results_clear(&m->results);
  m->num_used = m->hand = 0;
  m->collect_at = m->context_bytes / NODE_BYTES;
  wf__rnn_history_node root = {.hash = root_hash, .parent = NONE, .slot = NONE, .word = m->lm->bos};
  return wf__vec_push(&m->histories, root, "histories", err);
}

/* --- making ------------------------------------------------------------------------------------------------------- */

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
  context.epoch = m->epoch;
  uint32_t place;
  bool fresh;
  if (m->contexts.size >= NONE - 1) return wf__fail(err, WF_ERR_LIMIT, "2^32 contexts in an utterance");
  WF__TRY(wf__map64_insert(&m->context_of, *hash, (uint32_t)m->contexts.size, &place, &fresh, "contexts", err));
  if (fresh) return wf__vec_push(&m->contexts, context, "contexts", err);
  wf__rnn_context *there = &m->contexts.data[place];
  if (there->history != context.history || there->ngram_state != context.ngram_state || there->small_state != context.small_state)
    return wf__fail(err, WF_ERR_LIMIT, "two contexts of the recurrent language model have the same 64-bit hash");
  there->epoch = m->epoch;
  return WF_OK;
}

/* --- forgetting --------------------------------------------------------------------------------------------------- */

/* Contexts to stay: the live ones, and those used since an epoch that leaves at most half of what there may be, or the newest. */
static void choose(wf__rnn_memory *m, const wf__context_vec *live, size_t count, uint8_t *stays) {
  uint32_t before = m->epoch;
  for (uint64_t i = 0; i < m->contexts.size; i++)
    if (m->contexts.data[i].epoch < before) before = m->contexts.data[i].epoch;
  for (uint64_t kept = m->contexts.size; kept > m->collect_at / 4 && before < m->epoch;) {
    before += (m->epoch - before + 1) / 2;
    kept = 0;
    for (uint64_t i = 0; i < m->contexts.size; i++) kept += m->contexts.data[i].epoch >= before;
  }
  for (uint64_t i = 0; i < m->contexts.size; i++) stays[i] = m->contexts.data[i].epoch >= before;
  for (size_t l = 0; l < count; l++) {
    for (uint64_t i = 0; i < live[l].size; i++) {
      uint32_t place = wf__rnn_context_at(m, live[l].data[i]);
      if (place != NONE) stays[place] = 1;
    }
  }
}

/* Drops histories that lead to no context that stays; those that stay move down, parents first as they always are. */
static wf_status drop_histories(wf__rnn_memory *m, const uint8_t *context_stays, wf_error *err) {
  uint32_t *moved = wf__calloc(m->histories.size, sizeof *moved), kept = 0; /* 1: stays; then its new place */
  if (moved == NULL) return wf__fail_memory(err, m->histories.size * sizeof *moved, "histories");
  moved[WF__RNN_ROOT] = 1;
  for (uint64_t i = 0; i < m->contexts.size; i++)
    for (uint32_t h = m->contexts.data[i].history; context_stays[i] && moved[h] == 0; h = m->histories.data[h].parent) moved[h] = 1;
  wf__map64_clear(&m->history_of);
  wf_status status = WF_OK;
  for (uint32_t i = 0; i < m->histories.size && status == WF_OK; i++) {
    wf__rnn_history_node node = m->histories.data[i];
    if (moved[i] == 0) {
      if (node.slot != NONE) m->owner[node.slot] = NONE, m->slot_epoch[node.slot] = 0;
      continue;
    }
    moved[i] = kept;
    if (i != WF__RNN_ROOT) node.parent = moved[node.parent];
    if (node.slot != NONE) m->owner[node.slot] = kept;
    m->histories.data[kept] = node;
    uint32_t place;
    if (i != WF__RNN_ROOT) status = wf__map64_insert(&m->history_of, node.hash, kept, &place, NULL, "histories", err);
    kept++;
  }
  for (uint64_t i = 0; i < m->contexts.size; i++)
    if (context_stays[i]) m->contexts.data[i].history = moved[m->contexts.data[i].history];
  m->histories.size = kept;
  free(moved);
  return status;
}

static wf_status drop_contexts(wf__rnn_memory *m, const uint8_t *stays, wf_error *err) {
  uint32_t kept = 0, place;
  wf__map64_clear(&m->context_of);
  for (uint64_t i = 0; i < m->contexts.size; i++) {
    if (!stays[i]) continue;
    m->contexts.data[kept] = m->contexts.data[i];
    WF__TRY(wf__map64_insert(&m->context_of, m->contexts.data[kept].hash, kept, &place, NULL, "contexts", err));
    kept++;
  }
  m->counts.evicted_contexts += m->contexts.size - kept;
  m->contexts.size = kept;
  return WF_OK;
}

/* An answer without its contexts is none. */
static bool is_whole(const void *user, const wf__rnn_result *entry) {
  return wf__rnn_context_at(user, entry->context) != NONE && wf__rnn_context_at(user, entry->next) != NONE;
}

wf_status wf__rnn_memory_keep(wf__rnn_memory *m, const wf__context_vec *live, size_t count, wf_error *err) {
  uint8_t *stays = wf__alloc(m->contexts.size, sizeof *stays);
  if (stays == NULL) return wf__fail_memory(err, m->contexts.size, "contexts");
  choose(m, live, count, stays);
  wf_status status = drop_histories(m, stays, err);
  if (status == WF_OK) status = drop_contexts(m, stays, err);
  if (status == WF_OK) status = wf__rnn_results_filter(&m->results, is_whole, m, err);
  free(stays);
  uint64_t left = m->histories.size + m->contexts.size, most = m->context_bytes / NODE_BYTES;
  m->collect_at = 2 * left > most ? 2 * left : most; /* so that the effort is in proportion to what was made in between */
  return status;
}
