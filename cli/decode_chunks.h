/* decode_chunks.h - a batch of utterances as streams. */
#ifndef WARPFST_CLI_DECODE_CHUNKS_H
#define WARPFST_CLI_DECODE_CHUNKS_H

#include "cli.h"

/* As wf_decode, but every utterance is a stream that gets its next `num_frames` frames in each
 * turn. */
wf_status decode_in_chunks(wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                           int64_t num_frames, wf_result **results, wf_error *err);

#endif
