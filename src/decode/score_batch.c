/* score_batch.c - turns padded tensors into lists of utterances. */
#include "decode/backend.h"

wf_status wf_scores_from_padded(const wf_padded_scores *padded, wf_scores *scores, wf_error *err) {
  int64_t frame_stride = padded->frame_stride != 0 ? padded->frame_stride : padded->num_columns,
          utterance_stride = padded->utterance_stride;
  if (padded->num_columns < 0 || padded->max_frames < 0 || padded->max_frames > INT32_MAX ||
      padded->dtype < WF_FLOAT32 || padded->dtype > WF_BFLOAT16)
    return wf__fail(err, WF_ERR_ARGUMENT, "invalid padded tensor: %lld frames, %d columns",
                    (long long)padded->max_frames, padded->num_columns);
  if (frame_stride < padded->num_columns ||
      (padded->max_frames > 0 && frame_stride > INT64_MAX / 4 / padded->max_frames))
    return wf__fail(err, WF_ERR_ARGUMENT, "invalid padded tensor: %d columns, frame stride %lld",
                    padded->num_columns, (long long)frame_stride);
  if (utterance_stride == 0) utterance_stride = padded->max_frames * frame_stride;
  if (utterance_stride < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "invalid padded tensor: utterance stride %lld",
                    (long long)utterance_stride);
  for (size_t i = 0; i < padded->num_utterances; i++) {
    int64_t length = padded->lengths != NULL ? padded->lengths[i] : padded->max_frames;
    if (length < 0 || length > padded->max_frames)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "utterance %zu of a padded tensor has %lld frames, the tensor %lld", i,
                      (long long)length, (long long)padded->max_frames);
    scores[i] = (wf_scores){.data = (const char *)padded->data +
                                    i * (uint64_t)utterance_stride * wf__dtype_bytes(padded->dtype),
                            .num_frames = length,
                            .num_columns = padded->num_columns,
                            .stride = frame_stride,
                            .dtype = padded->dtype,
                            .on_device = padded->on_device};
  }
  return WF_OK;
}
