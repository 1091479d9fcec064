/* wlm_ngrams.c - the words and n-grams of a .wlm file, for the collector. An arc of a history of k -
 * 1 words is an n-gram of k words. It is a state if it leads to a history of k words, whose last
 * word is then the arc's. */
#include "lm/wlm_ngrams.h"

#include <stdlib.h>
#include <string.h>

#include "base/callbacks.h"

typedef struct reader {
  const wf__wlm *lm;
  wf__ngram_collector *collector;
  uint64_t begin[WF_LM_MAX_ORDER + 1]; /* [k] first state with a history of k words; [order]: end */
  uint32_t *label_of;                  /* [num_words]; WF__LM_NONE: not a word of the model */
  uint32_t *parent, *last; /* [num_states] history without its last word; label of that word */
  uint32_t label[WF_LM_MAX_ORDER];
  int k;
} reader;

static wf_status malformed(const reader *r, uint64_t state, wf_error *err) {
  return wf__fail(err, WF_ERR_FORMAT, "%s: state %llu is malformed; see 'warpfst lm verify'",
                  r->lm->input.path, (unsigned long long)state);
}

/* The message of the collector lacks the path. */
static wf_status in_file(const reader *r, wf_status status, wf_error *err) {
  return status == WF_ERR_FORMAT || status == WF_ERR_LIMIT
             ? wf__fail_prefix(err, status, "%s", r->lm->input.path)
             : status;
}

/* Adds the n-gram of the current history and an arc. */
static wf_status add(reader *r, uint64_t state, wf__wlm_arc arc, wf_error *err) {
  const wf__wlm_view *v = &r->lm->view;
  if (arc.word >= v->num_words || arc.next >= v->num_states || isnan(arc.cost) ||
      !wf__collector_is_cost(arc.cost) || r->label_of[arc.word] == WF__LM_NONE)
    return malformed(r, state, err);
  float backoff = 0;
  if (r->k < r->collector->levels.order && arc.next >= r->begin[r->k] &&
      arc.next < r->begin[r->k + 1]) {
    backoff = v->states[arc.next].backoff_cost;
    if (isnan(backoff) || !wf__collector_is_cost(backoff)) return malformed(r, arc.next, err);
    r->parent[arc.next] = (uint32_t)state;
    r->last[arc.next] = r->label_of[arc.word];
  }
  r->label[r->k - 1] = r->label_of[arc.word];
  return in_file(r, wf__collector_add_ngram(r->collector, r->k, r->label, arc.cost, backoff, err),
                 err);
}

static wf_status add_arcs(reader *r, uint64_t state, const uint8_t *arcs, uint64_t first,
                          uint64_t count, uint64_t size, wf_error *err) {
  if (first + count > size) return malformed(r, state, err);
  for (uint64_t i = first; i < first + count; i++)
    WF__TRY(add(r, state, wf__wlm_arc_at(&r->lm->view, arcs, i), err));
  return WF_OK;
}

static wf_status add_state(reader *r, uint64_t state, wf_error *err) {
  const wf__wlm_view *v = &r->lm->view;
  const uint64_t where = v->states[state].where, first = where & (WF__WLM_LARGE - 1),
                 count = where >> (WF__WLM_FIRST_BITS + 1);
  uint32_t history = (uint32_t)state;
  for (int i = r->k - 1; i-- > 0; history = r->parent[history]) r->label[i] = r->last[history];
  if (!(where & WF__WLM_LARGE))
    return add_arcs(r, state, v->small, first, count, v->num_small, err);
  if (first + count > v->num_buckets) return malformed(r, state, err);
  for (uint64_t b = first; b < first + count; b++) {
    const uint64_t head = wf__wlm_head(&v->buckets[b]);
    WF__TRY(add_arcs(r, state, v->large, head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
                     head >> WF__WLM_BASE_BITS & 15, v->num_large, err));
  }
  return WF_OK;
}

static wf_status add_unigrams(reader *r, wf_error *err) {
  const wf__wlm_view *v = &r->lm->view;
  const char *text;
  int64_t word;
  r->k = 1;
  for (size_t i = 0; (text = wf_symbols_at(r->lm->words, i, &word)) != NULL; i++) {
    if (word < 0 || word >= v->num_words || !wf__wlm_knows(v, (uint32_t)word)) continue;
    const wf__wlm_arc arc = {(uint32_t)word, v->unigrams[word].cost, v->unigrams[word].next};
    WF__TRY(in_file(r,
                    wf__collector_add_word(r->collector, (wf__span){text, strlen(text)},
                                           &r->label_of[word], err),
                    err));
    WF__TRY(add(r, 0, arc, err));
  }
  return WF_OK;
}

static wf_status read_all(reader *r, wf_error *err) {
  const wf__wlm_header *h = r->lm->header;
  const int order = r->collector->levels.order = (int)h->order;
  for (int k = 0; k < order; k++) r->begin[k] = h->level_begin[k];
  r->begin[order] = h->num_states;
  for (int k = 0; k < order; k++)
    if (r->begin[0] != 0 || r->begin[k] > r->begin[k + 1]) return malformed(r, r->begin[k], err);
  if (order > 1 && r->begin[1] != 1) return malformed(r, r->begin[1], err);
  for (uint32_t w = 0; w < h->num_words; w++) r->label_of[w] = WF__LM_NONE;
  WF__TRY(add_unigrams(r, err));
  for (r->k = 1; r->k <= order; r->k++) {
    if (r->k > 1 && r->collector->sink == NULL) {
      const uint64_t arcs = h->num_small + h->num_large, num = h->num_ngrams[r->k - 1];
      WF__TRY(wf__vec_grow(&r->collector->levels.level[r->k].ngrams, num < arcs ? num : arcs,
                           "n-grams", err));
    }
    for (uint64_t s = r->begin[r->k - 1]; r->k > 1 && s < r->begin[r->k]; s++) {
      if (s % 4096 == 0)
        WF__TRY(wf__progress(r->collector->progress, "reading n-grams",
                             (double)s / (double)h->num_states, err));
      WF__TRY(add_state(r, s, err));
    }
    WF__TRY(in_file(r, wf__collector_end_level(r->collector, r->k, err), err));
  }
  return WF_OK;
}

wf_status wf__lm_read_wlm(void *user, wf__ngram_collector *collector, wf_error *err) {
  const wf__wlm *lm = user;
  reader r = {.lm = lm,
              .collector = collector,
              .label_of = wf__alloc(lm->view.num_words, sizeof *r.label_of),
              .parent = wf__calloc(lm->view.num_states, sizeof *r.parent),
              .last = wf__calloc(lm->view.num_states, sizeof *r.last)};
  collector->is_checked = true;
  wf_status status =
      r.label_of != NULL && r.parent != NULL && r.last != NULL
          ? read_all(&r, err)
          : wf__fail_memory(err, lm->view.num_states * 8, "the histories of a language model");
  free(r.label_of);
  free(r.parent);
  free(r.last);
  return status;
}

wf_arpa_options wf__wlm_reader_options(const wf__wlm *lm, int oov) {
  wf_arpa_options o;
  wf_arpa_options_init(&o);
  const char *unk = lm->view.unk != WF__WLM_NONE ? wf_symbols_text(lm->words, lm->view.unk) : NULL;
  o.oov = oov;
  o.bos_symbol = wf_symbols_text(lm->words, lm->view.bos);
  if (wf__wlm_knows(&lm->view, lm->view.eos))
    o.eos_symbol = wf_symbols_text(lm->words, lm->view.eos);
  if (unk != NULL && strcmp(unk, "<unk>") != 0 && strcmp(unk, "<UNK>") != 0) o.unk_symbol = unk;
  return o;
}

wf_status wf__automaton_of_wlm(const wf__wlm *lm, const wf_symbols *words, int oov,
                               wf__automaton **out, wf_arpa_stats *stats,
                               const wf_progress *progress, wf_error *err) {
  *out = NULL;
  const wf_arpa_options o = wf__wlm_reader_options(lm, oov);
  if (lm->view.num_states > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT,
                    "%s: %llu histories are too many for a model in memory (at most 2^31 - 1): use "
                    "it while decoding or rescoring, or prune the model that it was made from",
                    lm->input.path, (unsigned long long)lm->view.num_states);
  wf_status status = wf__collect_ngrams(lm->input.path, words, &o, wf__lm_read_wlm,
                                        (void *)(uintptr_t)lm, out, stats, progress, err);
  return status == WF_ERR_MEMORY
             ? wf__fail_prefix(err, status, "%s does not fit into memory", lm->input.path)
             : status;
}
