/* mbr.h - minimum Bayes risk decoding together with confidences of the best path. */
#ifndef WF_LATTICE_MBR_H
#define WF_LATTICE_MBR_H

#include "base/error.h"

/* Tables of minimum Bayes risk, reused from lattice to lattice by one thread. */
typedef struct wf__mbr wf__mbr;
wf_status wf__mbr_create(wf__mbr **out, wf_error *err);
void wf__mbr_free(wf__mbr *m);
/* Approximate memory in use. */
uint64_t wf__mbr_bytes(const wf__mbr *m);

/* Computes, with the options `scale` and `complete_beam`, confidences [num_words] of the words (NULL:
 * none) as wf_compact_lattice_mbr does without `decode`, and the minimum Bayes risk words `*out`
 * (NULL: none) as it does from the best path. If the words are those of the lattice's best path,
 * confidences come out of the first round. */
wf_status wf__lattice_mbr(wf__mbr *m, const wf_compact_lattice_view *lattice, float scale,
                          float complete_beam, const int32_t *words, size_t num_words,
                          float *confidences, wf_mbr_result **out, wf_error *err);

#endif
