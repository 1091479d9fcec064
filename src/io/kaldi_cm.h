/* kaldi_cm.h - Kaldi's compressed matrix (CM), the writing side; the layout is drawn in
 * kaldi_archive.h. */
#ifndef WF_IO_KALDI_CM_H
#define WF_IO_KALDI_CM_H

#include "base/error.h"

/* "\0BCM " and what follows it, malloc'ed. Errors: a score that is not finite. */
wf_status wf__kaldi_compress(const wf_matrix *matrix, uint8_t **out, size_t *out_bytes,
                             wf_error *err);

#endif
