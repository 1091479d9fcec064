/* lm_read.c - reads a model of any format but .wlm into memory. */
#include "lm/arpa.h"
#include "lm/binary_lm.h"
#include "lm/kenlm.h"
#include "lm/sphinx_lm.h"

wf__ngram_read_fn wf__binary_lm_reader(const wf__input *start) {
  return wf__lm_is_sphinx(start)  ? wf__lm_read_sphinx
         : wf__lm_is_kenlm(start) ? wf__lm_read_kenlm
                                  : NULL;
}

wf_status wf__automaton_read(wf__input *input, const wf_symbols *words,
                             const wf_arpa_options *options, wf__automaton **out,
                             wf_arpa_stats *stats, const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf__ngram_read_fn read = wf__binary_lm_reader(input);
  return read != NULL ? wf__collect_ngrams(input->path, words, options, read, input, out, stats,
                                           progress, err)
                      : wf__lm_read_arpa_input(input, words, options, out, stats, progress, err);
}
