/* rnn_memory.c - histories and contexts of the recurrent scorer: creation, look-up, eviction. */
#include "scorer/rnn_memory.h"

enum {
  NONE = UINT32_MAX,
  NODE_BYTES = 64 /* of a history or a context, including its share of a map */
};
static const uint64_t root_hash = 1;

static uint64_t never_empty(uint64_t hash) { return hash - (hash == WF__MAP64_EMPTY); }

wf_status wf__rnn_memory_init(const wf_rnnlm *lm, uint64_t bytes, bool keep_results,
                              wf__rnn_memory *m, wf_error *err) {
  *m = (wf__rnn_memory){
      .lm = lm, .state_floats = wf__rnn_state_floats(lm), .context_bytes = bytes / 8, .epoch = 1};
  m->collect_at = m->context_bytes / NODE_BYTES;
  WF__TRY(wf__rnn_states_init(m, bytes / 2, err));
  return keep_results ? wf__rnn_results_init(bytes / 8 * 3, &m->results, err) : WF_OK;
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

/* --- creation ---------------------------------------------------------------------------- */

static uint64_t extended(uint64_t hash, int32_t word) {
  return never_empty(wf__hash_combine(hash, (uint64_t)(uint32_t)word + 1));
}

uint64_t wf__rnn_context_hash(uint64_t history_hash, uint32_t ngram_state, uint32_t small_state) {
  return never_empty(wf__hash_combine(history_hash, (uint64_t)ngram_state << 32 | small_state));
}

uint64_t wf__rnn_history_hash(const wf__rnn_memory *m, uint32_t from, int32_t word, uint32_t num) {
  enum { FEW = 16 };
  uint32_t extra = word >= 0; /* the last `num` words: `word`, then those from `from` upwards */
  if (m->histories.data[from].depth + extra <= num)
    return extra != 0 ? extended(m->histories.data[from].hash, word) : m->histories.data[from].hash;
  uint64_t hash = root_hash;
  for (uint32_t left = num; left > 0;) { /* oldest word first, a few at a time */
    int32_t words[FEW];
    uint32_t count = left < FEW ? left : FEW, at = from, place = extra;
    for (; place + count < left; place++) at = m->histories.data[at].parent;
    if (left == count && extra != 0) words[0] = word;
    for (uint32_t i = left == count ? extra : 0; i < count; i++, at = m->histories.data[at].parent)
      words[i] = m->histories.data[at].word;
    for (left -= count; count > 0;) hash = extended(hash, words[--count]);
  }
  return hash;
}

wf_status wf__rnn_extend(wf__rnn_memory *m, uint32_t from, int32_t word, uint32_t *out,
                         wf_error *err) {
  uint64_t hash = extended(m->histories.data[from].hash, word);
  bool fresh;
  if (m->histories.size >= NONE - 1)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^32 histories in an utterance");
  WF__TRY(wf__vec_grow(&m->histories, 1, "histories", err));
  WF__TRY(wf__map64_insert(&m->history_of, hash, (uint32_t)m->histories.size, out, &fresh,
                           "histories", err));
  if (fresh) {
    wf__rnn_history_node node = {.hash = hash,
                                 .parent = from,
                                 .slot = NONE,
                                 .word = word,
                                 .depth = m->histories.data[from].depth + 1};
    m->counts.histories++;
    return wf__vec_push(&m->histories, node, "histories", err);
  }
  const wf__rnn_history_node *there = &m->histories.data[*out];
  if (there->parent != from || there->word != word)
    return wf__fail(err, WF_ERR_LIMIT,
                    "two histories of the recurrent language model have the same 64-bit hash");
  return WF_OK;
}

wf_status wf__rnn_shorten(wf__rnn_memory *m, uint32_t history, uint32_t num, uint32_t *out,
                          wf_error *err) {
  *out = history;
  if (m->histories.data[history].depth <= num) return WF_OK;
  m->path.size = 0;
  for (uint32_t i = history; m->path.size < num; i = m->histories.data[i].parent)
    WF__TRY(wf__vec_push(&m->path, m->histories.data[i].word, "a history", err));
  *out = WF__RNN_ROOT;
  while (m->path.size > 0) WF__TRY(wf__rnn_extend(m, *out, m->path.data[--m->path.size], out, err));
  return WF_OK;
}

wf_status wf__rnn_intern(wf__rnn_memory *m, wf__rnn_context context, uint64_t *hash,
                         wf_error *err) {
  context.hash = *hash = wf__rnn_context_hash(m->histories.data[context.history].hash,
                                              context.ngram_state, context.small_state);
  context.epoch = m->epoch;
  uint32_t place;
  bool fresh;
  if (m->contexts.size >= NONE - 1)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^32 contexts in an utterance");
  WF__TRY(wf__vec_grow(&m->contexts, 1, "contexts", err));
  WF__TRY(wf__map64_insert(&m->context_of, *hash, (uint32_t)m->contexts.size, &place, &fresh,
                           "contexts", err));
  if (fresh) return wf__vec_push(&m->contexts, context, "contexts", err);
  wf__rnn_context *there = &m->contexts.data[place];
  if (there->history != context.history || there->ngram_state != context.ngram_state ||
      there->small_state != context.small_state)
    return wf__fail(err, WF_ERR_LIMIT,
                    "two contexts of the recurrent language model have the same 64-bit hash");
  there->epoch = m->epoch;
  return WF_OK;
}

/* --- eviction ---------------------------------------------------------------------------- */

/* Chooses the contexts that stay: the live ones, and if there are many, those used since an epoch
 * that leaves them at most a quarter of the room. */
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

/* Drops histories that lead to no remaining context. The others are compacted; parents still come
 * before children. */
static wf_status drop_histories(wf__rnn_memory *m, const uint8_t *context_stays, wf_error *err) {
  uint32_t *moved = wf__calloc(m->histories.size, sizeof *moved),
           kept = 0; /* 1: stays; later its new index */
  if (moved == NULL) return wf__fail_memory(err, m->histories.size * sizeof *moved, "histories");
  moved[WF__RNN_ROOT] = 1;
  for (uint64_t i = 0; i < m->contexts.size; i++)
    for (uint32_t h = m->contexts.data[i].history; context_stays[i] && moved[h] == 0;
         h = m->histories.data[h].parent)
      moved[h] = 1;
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
    if (i != WF__RNN_ROOT)
      status = wf__map64_insert(&m->history_of, node.hash, kept, &place, NULL, "histories", err);
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
    WF__TRY(wf__map64_insert(&m->context_of, m->contexts.data[kept].hash, kept, &place, NULL,
                             "contexts", err));
    kept++;
  }
  m->counts.evicted_contexts += m->contexts.size - kept;
  m->contexts.size = kept;
  return WF_OK;
}

struct recent {
  const wf__rnn_memory *memory;
  uint32_t before;
};

static bool stays_with_context(const void *user, const wf__rnn_result *entry) {
  const struct recent *recent = user;
  return entry->epoch >= recent->before &&
         wf__rnn_context_at(recent->memory, entry->context) != NONE;
}

/* Sets the epoch of contexts to that of the newest remaining result after them. */
static void refresh_contexts(wf__rnn_memory *m, uint32_t before) {
  for (uint64_t i = 0; m->results.entries != NULL && i < (uint64_t)1 << m->results.bits; i++) {
    const wf__rnn_result *entry = &m->results.entries[i];
    if (entry->word == 0 || entry->epoch < before) continue;
    uint32_t place = wf__rnn_context_at(m, entry->context);
    if (m->contexts.data[place].epoch < entry->epoch) m->contexts.data[place].epoch = entry->epoch;
  }
}

wf_status wf__rnn_memory_keep(wf__rnn_memory *m, const wf__context_vec *live, size_t count,
                              wf_error *err) {
  struct recent recent = {m, wf__rnn_results_cutoff(&m->results, m->round_epoch)};
  uint64_t num_results = m->results.size;
  refresh_contexts(m, recent.before);
  uint8_t *stays = wf__alloc(m->contexts.size, sizeof *stays);
  if (stays == NULL) return wf__fail_memory(err, m->contexts.size, "contexts");
  choose(m, live, count, stays);
  wf_status status = drop_histories(m, stays, err);
  if (status == WF_OK) status = drop_contexts(m, stays, err);
  if (status == WF_OK)
    status = wf__rnn_results_filter(&m->results, stays_with_context, &recent, err);
  if (status != WF_OK) wf__rnn_results_clear(&m->results); /* their contexts may be gone */
  free(stays);
  m->counts.evicted_results += num_results - m->results.size;
  uint64_t left = m->histories.size + m->contexts.size, most = m->context_bytes / NODE_BYTES;
  m->collect_at =
      2 * left > most
          ? 2 * left
          : most; /* so that the effort is proportional to what was created in between */
  while (wf__rnn_results_are_many(&m->results))
    m->results.most_bits++; /* this frame alone needs more than the limit */
  return status;
}
