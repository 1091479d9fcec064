/* lm_read.c - a language model from a file, whatever its format. */
#include "lm/arpa.h"
#include "lm/sphinx_lm.h"

wf_status wf_lm_read(const char *path, const wf_symbols *words, const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats, const wf_progress *progress,
                     wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__lm_is_sphinx(&input) ? wf__lm_read_sphinx_input(&input, words, options, out, stats, progress, err)
                                              : wf__lm_read_arpa_input(&input, words, options, out, stats, progress, err);
  wf__input_close(&input);
  return status;
}
