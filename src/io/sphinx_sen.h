/* sphinx_sen.h - senone scores as PocketSphinx logs them (-senlogdir).
 *
 *     s3 header with n_sen and logbase, then for each frame: int16 active, and
 *       if active == n_sen:  int16 score[n_sen]
 *       if active <  n_sen:  uint8 step[active], int16 score[active]; the prefix sums of the steps
 *                            are the senones
 *
 * A score is a cost relative to the best of the frame, in units of 2^10 ln(logbase). Senones
 * without a score get the largest cost, 32767, as in PocketSphinx. */
#ifndef WF_IO_SPHINX_SEN_H
#define WF_IO_SPHINX_SEN_H

#include "base/input.h"

/* Reads the scores as a matrix of log-likelihoods and multiplies it by `scale`. Sets all fields but
 * the key. */
wf_status wf__sen_read(const wf__input *input, float scale, wf_matrix *out, wf_error *err);

#endif
