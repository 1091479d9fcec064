/* wlm_to_fst.c - converts a large model, or a difference of two models, to an acceptor with failure
 * arcs. Decoding with a scorer composes the model with the graph on the fly; this acceptor allows
 * composition in advance. States keep the numbers of the model. */
#include <math.h>

#include "base/memory.h"
#include "fst/fst.h"
#include "lm/wlm_read.h"

struct acceptor {
  const wf_wlm *lm;
  int32_t *label_of; /* [num_words] label in the word table; 0: none, the word gets no arcs */
  int32_t backoff_label;
  wf__csr csr;
};

/* Replaces invalid costs, which a damaged file may have, by +infinity. */
static float sound(float cost) { return fabsf(cost) <= 1e20f ? cost : INFINITY; }

static wf_status push(struct acceptor *a, const wf__wlm_arc *arc, wf_error *err) {
  const wf__wlm_view *v = &a->lm->view;
  int32_t label = arc->word < v->num_words ? a->label_of[arc->word] : 0;
  if (label == 0 || arc->next >= v->num_states) return WF_OK;
  return wf__csr_push(
      &a->csr,
      (wf_arc){
          .nextstate = arc->next, .weight = sound(arc->cost), .ilabel = label, .olabel = label},
      err);
}

static wf_status push_bucket(struct acceptor *a, const wf__wlm_bucket *bucket, wf_error *err) {
  const wf__wlm_view *v = &a->lm->view;
  uint64_t head = wf__wlm_head(bucket), base = head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
           size = head >> WF__WLM_BASE_BITS & 15;
  for (uint64_t i = base; i < base + size && i < v->num_large; i++) {
    wf__wlm_arc arc = wf__wlm_arc_at(v, v->large, i);
    WF__TRY(push(a, &arc, err));
  }
  return WF_OK;
}

static wf_status push_arcs(struct acceptor *a, uint64_t where, wf_error *err) {
  const wf__wlm_view *v = &a->lm->view;
  uint64_t first = where & (WF__WLM_LARGE - 1), count = where >> (WF__WLM_FIRST_BITS + 1);
  bool large = (where & WF__WLM_LARGE) != 0;
  if (first + count > (large ? v->num_buckets : v->num_small)) return WF_OK;
  for (uint64_t i = first; i < first + count && large; i++)
    WF__TRY(push_bucket(a, &v->buckets[i], err));
  for (uint64_t i = first; i < first + count && !large; i++) {
    wf__wlm_arc arc = wf__wlm_arc_at(v, v->small, i);
    WF__TRY(push(a, &arc, err));
  }
  return WF_OK;
}

static wf_status push_unigrams(struct acceptor *a, wf_error *err) {
  const wf__wlm_view *v = &a->lm->view;
  for (uint32_t w = 0; w < v->num_words; w++) {
    wf__wlm_arc arc = {w, v->unigrams[w].cost, v->unigrams[w].next};
    if (wf__wlm_knows(v, w)) WF__TRY(push(a, &arc, err));
  }
  return WF_OK;
}

static wf_status push_states(struct acceptor *a, wf_error *err) {
  const wf__wlm_view *v = &a->lm->view;
  for (uint64_t s = 0; s < v->num_states; s++) {
    const wf__wlm_state *state = &v->states[s];
    WF__TRY(wf__csr_add_state(&a->csr, sound(wf_wlm_final(a->lm, (uint32_t)s, NULL)), err));
    WF__TRY(s == 0 ? push_unigrams(a, err) : push_arcs(a, state->where, err));
    if (s == 0) continue;
    wf_arc arc = {.nextstate = state->backoff < s ? state->backoff : 0,
                  .weight = sound(state->backoff_cost),
                  .ilabel = a->backoff_label,
                  .olabel = 0};
    WF__TRY(wf__csr_push(&a->csr, arc, err));
  }
  return WF_OK;
}

/* Maps words to labels of the word table by their texts. <unk> is treated like any other word. */
static wf_status map_words(struct acceptor *a, const wf_symbols *words, wf_error *err) {
  const wf__wlm_view *v = &a->lm->view;
  a->label_of = wf__calloc(v->num_words, sizeof *a->label_of);
  if (a->label_of == NULL) return wf__fail_memory(err, (uint64_t)v->num_words * 4, "a grammar");
  for (size_t i = 0; i < wf_symbols_count(words); i++) {
    int64_t label, word = wf_symbols_find(a->lm->words, wf_symbols_at(words, i, &label));
    if (label == a->backoff_label)
      return wf__fail(err, WF_ERR_ARGUMENT, "backoff_label %lld is the word '%s'", (long long)label,
                      wf_symbols_text(words, label));
    if (word >= 0 && word < v->num_words && (uint32_t)word != v->bos && (uint32_t)word != v->eos &&
        label > 0 && label <= INT32_MAX)
      a->label_of[word] = (int32_t)label;
  }
  return WF_OK;
}

wf_status wf_wlm_to_fst(const wf_wlm *lm, const wf_symbols *words, int32_t backoff_label,
                        wf_fst **out, wf_error *err) {
  *out = NULL;
  if (words == NULL) words = lm->words;
  if (backoff_label <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "backoff_label is %d, expected a label above 0 that is not a word",
                    backoff_label);
  struct acceptor a = {.lm = lm, .backoff_label = backoff_label};
  wf_status status = map_words(&a, words, err);
  if (status == WF_OK) status = push_states(&a, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&a.csr, lm->view.start, WF_TROPICAL, words, words, out, err);
  free(a.label_of);
  wf__csr_free(&a.csr);
  return status;
}
