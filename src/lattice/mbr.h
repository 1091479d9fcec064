/* mbr.h - minimum Bayes risk decoding together with confidences of the best path. */
#ifndef WF_LATTICE_MBR_H
#define WF_LATTICE_MBR_H

#include "base/error.h"

/* Computes confidences [num_words] of the words (NULL: none) as wf_compact_lattice_mbr does without
 * `decode`, and the minimum Bayes risk words `*out` (NULL: none) as it does from the best path. If
 * the words are those of the lattice's best path, confidences come out of the first round. */
wf_status wf__lattice_mbr(const wf_compact_lattice *lattice, const int32_t *words, size_t num_words,
                          float *confidences, wf_mbr_result **out, wf_error *err);

#endif
