/* score_batch.c - parses the list of devices, and turns padded tensors into lists of utterances. */
#include <string.h>

#include "base/input.h"
#include "decode/backend.h"

static bool parse_numbers(const char *at, wf__devices *out) {
  for (out->count = 0; out->count < WF__MAX_WORKERS;) {
    int64_t number;
    size_t size = strcspn(at, ",");
    if (!wf__parse_i64((wf__span){at, size}, &number) || number < 0 || number >= 1024) return false;
    out->numbers[out->count++] = (int)number;
    if (at[size] == '\0') return true;
    at += size + 1;
  }
  return false;
}

wf_status wf__devices_parse(const char *text, wf__devices *out, wf_error *err) {
  *out = (wf__devices){0};
  if (text == NULL || text[0] == '\0' || strcmp(text, "cpu") == 0) return WF_OK;
  *out = (wf__devices){.cuda = true, .count = 1};
  if (strcmp(text, "cuda") == 0) return WF_OK;
  out->count = 0;
  if (strcmp(text, "cuda:all") == 0) return WF_OK;
  if (strncmp(text, "cuda:", 5) == 0 && parse_numbers(text + 5, out)) return WF_OK;
  return wf__fail(
      err, WF_ERR_ARGUMENT,
      "unknown device '%.80s': expected cpu, cuda, cuda:N, cuda:N,M (at most %d) or cuda:all", text,
      WF__MAX_WORKERS);
}

int wf__devices_sharing(const wf__devices *devices, int number) {
  int count = 0;
  for (int i = 0; i < devices->count; i++) count += devices->numbers[i] == number;
  return count;
}

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
