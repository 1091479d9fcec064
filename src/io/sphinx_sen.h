/* sphinx_sen.h - senone scores as PocketSphinx logs them (-senlogdir).
 *
 *     s3 header with n_sen and logbase, then a frame after the other:
 *       int16 active == n_sen:  int16 score [n_sen]
 *       int16 active <  n_sen:  uint8 step [active], int16 score [active]     senones are the
 *                       running sums of the steps
 *
 * A score is a cost, 0 the frame's best, in units of 2^10 ln(logbase). Senones not scored get the
 * largest score, 32767, as PocketSphinx does. */
#ifndef WF_IO_SPHINX_SEN_H
#define WF_IO_SPHINX_SEN_H

#include "base/input.h"

/* The matrix of log-likelihoods, times scale. Sets all but the key. */
wf_status wf__sen_read(const wf__input *input, float scale, wf_matrix *out, wf_error *err);

#endif
