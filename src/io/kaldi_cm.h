/* kaldi_cm.h - writes Kaldi's compressed matrices (CM). kaldi_archive.h describes the layout. */
#ifndef WF_IO_KALDI_CM_H
#define WF_IO_KALDI_CM_H

#include "base/error.h"

/* Makes the bytes of the value, from "\0BCM " on, malloc'ed. Errors: a score that is not finite, or
 * a range of scores beyond float32. */
wf_status wf__kaldi_compress(const wf_matrix *matrix, uint8_t **out, size_t *out_bytes,
                             wf_error *err);

#endif
