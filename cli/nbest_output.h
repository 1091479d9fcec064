/* nbest_output.h - lists of paths as results: hypotheses `KEY-1`, `KEY-2`, ... best first, as Kaldi
 * numbers them. */
#ifndef WARPFST_CLI_NBEST_OUTPUT_H
#define WARPFST_CLI_NBEST_OUTPUT_H

#include "cli.h"

/* Words of a path with times by the aligner; NULL: each lasts from its arc to that of the next.
 * `table` NULL: numbers, which `numbers` holds. Both arrays have num_words entries. */
wf_status nbest_words(const wf_lattice_path *path, const wf_word_aligner *aligner,
                      const wf_symbols *table, wf_timed_word *words, char (*numbers)[12],
                      wf_error *err);
wf_status nbest_put(wf_result_writer *writer, const char *key, const wf_nbest *nbest,
                    const wf_word_aligner *aligner, const wf_symbols *words, wf_error *err);

#endif
