/* lm_write_arpa.c - a model as ARPA text. */
#include "lm/arpa_text.h"
#include "lm/lm.h"

typedef struct writer {
  const wf__automaton *lm;
  wf__output *output;
} writer;

/* Writes `log10p words [log10 back-off]`. */
static wf_status write_ngram(void *user, const wf__walked_ngram *ngram, wf_error *err) {
  (void)err;
  const writer *w = user;
  wf__arpa_write_log10(w->output, ngram->cost);
  for (int i = 0; i < ngram->k; i++) {
    wf__write(w->output, i == 0 ? "\t" : " ", 1);
    wf__write_text(w->output, wf__automaton_text(w->lm, ngram->words[i]));
  }
  if (ngram->is_state) {
    wf__write(w->output, "\t", 1);
    wf__arpa_write_log10(w->output, ngram->backoff);
  }
  wf__write(w->output, "\n", 1);
  return WF_OK;
}

static wf_status write_all(writer *w, const wf__ngram_walk *walk, wf_error *err) {
  wf__arpa_write_header(w->output, w->lm->order, w->lm->num_ngrams);
  for (int k = 1; k <= w->lm->order; k++) {
    wf__arpa_write_section(w->output, k);
    WF__TRY(wf__ngram_walk_order(walk, k, write_ngram, w, err));
  }
  wf__arpa_write_end(w->output);
  return WF_OK;
}

wf_status wf_lm_write_arpa(const wf_lm *lm, const char *path, wf_error *err) {
  writer w = {0};
  wf__ngram_walk walk;
  WF__TRY(wf__lm_automaton(lm, &w.lm, err));
  WF__TRY(wf__ngram_walk_begin(w.lm, &walk, err));
  wf_status status = wf__output_open(path, &w.output, err);
  if (status == WF_OK) {
    status = write_all(&w, &walk, err);
    if (status == WF_OK)
      status = wf__output_close(w.output, err);
    else
      wf__output_abort(w.output);
  }
  wf__ngram_walk_end(&walk);
  return status;
}
