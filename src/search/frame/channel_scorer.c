/* channel_scorer.c - another scorer in mid-utterance: the tokens' contexts and costs with it. */
#include <stdlib.h>
#include <string.h>

#include "search/frame/channel.h"

/* Computes the contexts after the records of the newest frame and those that they lead back to:
 * that of the predecessor, advanced by the word of the arc. */
static wf_status follow_words(wf__search *search, uint64_t *contexts, uint32_t *way,
                              wf_error *err) {
  const wf__trace *trace = &search->trace;
  uint8_t *known = wf__calloc(trace->records.size, 1);
  wf_status status =
      known != NULL ? WF_OK : wf__fail_memory(err, trace->records.size, "a scorer's contexts");
  for (uint64_t i = search->trace_base; i < trace->records.size && status == WF_OK; i++) {
    uint64_t length = 0, context = search->base.committed_sum.context;
    uint32_t at = (uint32_t)i;
    for (; at != WF__TRACE_ROOT && !known[at] && length < trace->records.size;
         at = trace->records.data[at].prev)
      way[length++] = at;
    if (at != WF__TRACE_ROOT && known[at]) context = contexts[at];
    while (length > 0 && status == WF_OK) {
      at = way[--length];
      uint32_t arc = trace->records.data[at].arc;
      int32_t word = arc == WF__NO_ARC ? 0 : wf__graph_arc(search->base.graph, arc).olabel;
      float cost;
      if (word != 0)
        status = wf__scoring_step(&search->base.scoring, context, word, &cost, &context, err);
      contexts[at] = context;
      known[at] = 1;
    }
  }
  free(known);
  return status;
}

/* Computes the contexts of the newest frame's tokens. */
static wf_status find_contexts(wf__search *search, wf_error *err) {
  uint64_t size = search->trace.records.size, count = size - search->trace_base;
  uint64_t *contexts = wf__calloc(size, sizeof *contexts);
  uint32_t *way = wf__alloc(size, sizeof *way);
  wf_status status = contexts != NULL && way != NULL
                         ? WF_OK
                         : wf__fail_memory(err, size * 12, "a scorer's contexts");
  const bool has_contexts = search->base.scoring.scorer->context_bits > 0; /* else all are 0 */
  if (status == WF_OK && has_contexts) status = follow_words(search, contexts, way, err);
  search->contexts.size = search->past_contexts.size = 0;
  if (status == WF_OK) status = wf__vec_grow(&search->contexts, count, "a scorer's contexts", err);
  if (status == WF_OK)
    status = wf__vec_grow(&search->past_contexts, count, "a scorer's contexts", err);
  if (status == WF_OK) {
    memcpy(search->contexts.data, contexts + search->trace_base, count * sizeof *contexts);
    memcpy(search->past_contexts.data, contexts + search->trace_base, count * sizeof *contexts);
    search->contexts.size = search->past_contexts.size = count;
  }
  free(contexts);
  free(way);
  return status;
}

static wf_status restart_scorer(wf__search *search, const wf_word *words, size_t num_words,
                                wf_error *err) {
  if (search->base.scoring.scorer == NULL) return WF_OK;
  float cost;
  WF__TRY(wf__scoring_begin(&search->base.scoring, err));
  search->base.committed_sum.context = search->base.scoring.start;
  const size_t needed = search->base.scoring.scorer->context_words;
  for (size_t i = num_words > needed ? num_words - needed : 0; i < num_words; i++)
    WF__TRY(wf__scoring_step(&search->base.scoring, search->base.committed_sum.context,
                             words[i].label, &cost, &search->base.committed_sum.context, err));
  return find_contexts(search, err);
}

wf_status wf__channel_find_contexts(wf__searcher *searcher, wf_error *err) {
  return find_contexts((wf__search *)searcher, err);
}

/* Refunds the pending boosts of the old scorer (sign 1), and adds those of the new one (-1). */
static void add_pending(wf__search *search, float sign) {
  const wf__scoring *scoring = &search->base.scoring;
  for (uint64_t i = 0; i < search->tokens.size && scoring->scorer != NULL; i++)
    search->tokens.data[i].cost +=
        sign * wf__scorer_pending(scoring->scorer, scoring->memory, wf__search_context(search, i));
}

/* After dying, tokens keep the numbers of their records and contexts. */
static void keep_dead_tokens(wf__search *search, const bool *stays) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < search->tokens.size; i++)
    if (stays[i]) search->tokens.data[kept++] = search->tokens.data[i];
  search->tokens.size = kept;
}

/* Appends copies of the records of the tokens that stay, in their order. The old records stay,
 * because they may be predecessors of others. */
static wf_status keep_tokens(wf__search *search, const bool *stays, wf_error *err) {
  const uint64_t count = search->tokens.size, base = search->trace_base,
                 size = search->trace.records.size;
  const bool scored = search->base.scoring.scorer != NULL;
  uint64_t kept = 0;
  WF__TRY(wf__vec_grow(&search->trace.records, count, "the token history", err));
  WF__TRY(wf__vec_grow(&search->trace.loglikes, count, "the token history", err));
  for (uint64_t i = 0; i < count; i++) {
    if (!stays[i]) continue;
    search->trace.records.data[size + kept] = search->trace.records.data[base + i];
    search->trace.loglikes.data[size + kept] = search->trace.loglikes.data[base + i];
    search->tokens.data[kept] = search->tokens.data[i];
    if (scored) search->contexts.data[kept] = search->contexts.data[i];
    kept++;
  }
  search->trace.records.size = search->trace.loglikes.size = size + kept;
  search->tokens.size = kept;
  if (scored) search->contexts.size = kept;
  search->trace_base = size;
  return WF_OK;
}

/* The new scorer's context of a token; 0 without a scorer. */
static uint64_t new_context(const wf__search *search, uint64_t i) {
  return search->base.scoring.scorer != NULL ? wf__search_context(search, i) : 0;
}

/* Sets stays[i] for the best of the tokens that have the same state and, with the new scorer, the
 * same context: among equal ones, for the one whose old context is the smallest. `slots`: 2^bits
 * zeros, for token numbers plus one. Returns the number of tokens that stay. */
static uint64_t choose_tokens(const wf__search *search, const uint64_t *old_contexts,
                              uint32_t *slots, int bits, bool *stays) {
  const wf__token *tokens = search->tokens.data;
  const uint32_t mask = ((uint32_t)1 << bits) - 1;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    const uint64_t context = new_context(search, i);
    uint32_t at = wf__spread64(tokens[i].state + wf__mix64(context), bits);
    while (slots[at] != 0 && (tokens[slots[at] - 1].state != tokens[i].state ||
                              new_context(search, slots[at] - 1) != context))
      at = (at + 1) & mask;
    if (slots[at] == 0) {
      kept++;
    } else {
      const uint32_t other = slots[at] - 1;
      if (tokens[other].cost < tokens[i].cost ||
          (tokens[other].cost == tokens[i].cost && old_contexts[other] < old_contexts[i]))
        continue;
      stays[other] = false;
    }
    slots[at] = (uint32_t)i + 1;
    stays[i] = true;
  }
  return kept;
}

/* Keeps one of the tokens that have become equal. */
static wf_status recombine(wf__search *search, const uint64_t *old_contexts, wf_error *err) {
  const uint64_t count = search->tokens.size;
  int bits = 1;
  while (count * 2 > (uint64_t)1 << bits) bits++;
  uint32_t *slots = wf__calloc((uint64_t)1 << bits, sizeof *slots);
  bool *stays = wf__calloc(count, sizeof *stays);
  wf_status status = slots != NULL && stays != NULL
                         ? WF_OK
                         : wf__fail_memory(err, sizeof *slots << bits, "tokens");
  const uint64_t kept =
      status == WF_OK ? choose_tokens(search, old_contexts, slots, bits, stays) : count;
  if (kept < count && search->died)
    keep_dead_tokens(search, stays);
  else if (kept < count)
    status = keep_tokens(search, stays, err);
  free(slots);
  free(stays);
  return status;
}

wf_status wf__channel_replace_scorer(wf__searcher *searcher, const wf_scorer *scorer,
                                     const wf_word *words, size_t num_words, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  const uint64_t count = search->tokens.size;
  if (scorer == searcher->scoring.scorer) return WF_OK;
  uint64_t *old_contexts = wf__calloc(count, sizeof *old_contexts);
  if (old_contexts == NULL)
    return wf__fail_memory(err, count * sizeof *old_contexts, "a scorer's contexts");
  for (uint64_t i = 0; i < count && searcher->scoring.scorer != NULL; i++)
    old_contexts[i] = wf__search_context(search, i);
  add_pending(search, 1);
  wf_status status = wf__searcher_set_scorer(searcher, scorer, err);
  if (status == WF_OK) status = restart_scorer(search, words, num_words, err);
  if (status == WF_OK) add_pending(search, -1);
  if (status == WF_OK) status = recombine(search, old_contexts, err);
  free(old_contexts);
  return status;
}
