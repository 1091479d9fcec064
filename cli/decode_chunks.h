/* decode_chunks.h - decodes a batch of utterances as streams. */
#ifndef WARPFST_CLI_DECODE_CHUNKS_H
#define WARPFST_CLI_DECODE_CHUNKS_H

#include "cli.h"

/* Like wf_decode, but each utterance is a stream that gets its next `num_frames` frames in each
 * round. */
wf_status decode_in_chunks(wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                           int64_t num_frames, wf_result **results, wf_error *err);

#endif
