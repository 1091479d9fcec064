/* nbest_output.h - writes n-best paths as results with the keys `KEY-1`, `KEY-2`, ..., best first,
 * like Kaldi. */
#ifndef WARPFST_CLI_NBEST_OUTPUT_H
#define WARPFST_CLI_NBEST_OUTPUT_H

#include "cli.h"

/* Fills `words` with the words of a path. Times come from the aligner; if it is NULL, a word lasts
 * from its arc to the next word's arc. If `table` is NULL, texts are the labels as numbers, stored
 * in `numbers`. Both arrays have path->num_words entries. */
wf_status nbest_words(const wf_lattice_path *path, const wf_word_aligner *aligner,
                      const wf_symbols *table, wf_timed_word *words, char (*numbers)[12],
                      wf_error *err);
wf_status nbest_put(wf_result_writer *writer, const char *key, const wf_nbest *nbest,
                    const wf_word_aligner *aligner, const wf_symbols *words, wf_error *err);

#endif
