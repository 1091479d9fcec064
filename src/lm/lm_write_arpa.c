/* lm_write_arpa.c - a model as ARPA text.
 *
 * Orders are written in sequence. The words of a history are found from its state:
 *     parent[state]   state of the history without its last word
 *     last[state]     that word */
#include <math.h>

#include "base/memory.h"
#include "lm/arpa_text.h"
#include "lm/lm.h"

typedef struct writer {
  const wf_lm *lm;
  wf__output *output;
  uint32_t *parent, *last;
} writer;

static const char *text_of(const wf_lm *lm, uint32_t word) {
  if (word < lm->num_public) return wf_symbols_text(lm->words, word);
  return word == lm->bos   ? "<s>"
         : word == lm->eos ? "</s>"
                           : "<unk>"; /* the word table lacks them */
}

/* Writes `log10p <words of the history> word [log10 back-off]`. `state` is the state of the n-gram,
 * or 0. */
static void write_ngram(writer *w, float cost, uint32_t history, uint32_t word, uint32_t state) {
  wf__arpa_write_log10(w->output, cost);
  uint32_t words[WF_LM_MAX_ORDER];
  int num = 0;
  for (; history != 0; history = w->parent[history]) words[num++] = w->last[history];
  wf__write(w->output, "\t", 1);
  while (num-- > 0) {
    wf__write_text(w->output, text_of(w->lm, words[num]));
    wf__write(w->output, " ", 1);
  }
  wf__write_text(w->output, text_of(w->lm, word));
  if (state != 0) {
    wf__write(w->output, "\t", 1);
    wf__arpa_write_log10(w->output, w->lm->states[state].backoff_cost);
  }
  wf__write(w->output, "\n", 1);
}

static void write_unigrams(writer *w) {
  const wf_lm *lm = w->lm;
  for (uint32_t word = 0; word < lm->num_labels; word++) {
    if (word == lm->bos)
      write_ngram(w, INFINITY, 0, word, lm->start);
    else if (word == lm->eos && lm->final_order[0] == 1)
      write_ngram(w, lm->final_cost[0], 0, word, 0);
    else if (wf__lm_knows(lm, word))
      write_ngram(w, lm->unigrams[word].cost, 0, word, lm->unigrams[word].next);
  }
}

static void write_order(writer *w, int k) {
  const wf_lm *lm = w->lm;
  for (uint64_t s = lm->level_begin[k - 1]; s < lm->level_begin[k]; s++) {
    uint32_t state = (uint32_t)s;
    if (wf__lm_has_own_final(lm, state)) write_ngram(w, lm->final_cost[state], state, lm->eos, 0);
    for (uint64_t a = lm->states[s].first_arc; a < lm->states[s + 1].first_arc; a++) {
      const wf__lm_arc *arc = &lm->arcs[a];
      write_ngram(w, arc->cost, state, arc->word,
                  wf__lm_is_own_state(lm, k, arc->next) ? arc->next : 0);
    }
  }
}

static void find_histories(writer *w) {
  const wf_lm *lm = w->lm;
  for (uint32_t word = 0; word < lm->num_labels; word++)
    if (wf__lm_knows(lm, word)) w->last[lm->unigrams[word].next] = word;
  w->last[lm->start] = lm->bos;
  for (int k = 2; k < lm->order; k++) {
    for (uint64_t s = lm->level_begin[k - 1]; s < lm->level_begin[k]; s++) {
      for (uint64_t a = lm->states[s].first_arc; a < lm->states[s + 1].first_arc; a++) {
        if (!wf__lm_is_own_state(lm, k, lm->arcs[a].next)) continue;
        w->parent[lm->arcs[a].next] = (uint32_t)s;
        w->last[lm->arcs[a].next] = lm->arcs[a].word;
      }
    }
  }
}

static void write_all(writer *w) {
  const wf_lm *lm = w->lm;
  wf__arpa_write_header(w->output, lm->order, lm->num_ngrams);
  for (int k = 1; k <= lm->order; k++) {
    wf__arpa_write_section(w->output, k);
    if (k == 1)
      write_unigrams(w);
    else
      write_order(w, k);
  }
  wf__arpa_write_end(w->output);
}

wf_status wf_lm_write_arpa(const wf_lm *lm, const char *path, wf_error *err) {
  writer w = {lm, NULL, wf__calloc(lm->num_states, sizeof *w.parent),
              wf__calloc(lm->num_states, sizeof *w.last)};
  wf_status status =
      w.parent != NULL && w.last != NULL
          ? wf__output_open(path, &w.output, err)
          : wf__fail_memory(err, lm->num_states * 2 * sizeof *w.parent, "histories of n-grams");
  if (status == WF_OK) {
    find_histories(&w);
    write_all(&w);
    status = wf__output_close(w.output, err);
  }
  free(w.parent);
  free(w.last);
  return status;
}
