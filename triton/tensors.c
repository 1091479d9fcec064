/* tensors.c - reads the tensors of requests and writes those of responses. */
#include "tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wf_status fail(wf_error *err, wf_status code, const char *message) {
  err->code = code;
  snprintf(err->message, sizeof err->message, "%s", message);
  return code;
}

/* Whether a call of the server failed. Frees the error; its message is not reported. */
static bool failed(TRITONSERVER_Error *error) {
  if (error == NULL) return false;
  TRITONSERVER_ErrorDelete(error);
  return true;
}

/* --- requests ----------------------------------------------------------------------------------
 */

/* Finds the data of an input, in the server's memory. If the server holds it in several buffers,
 * copies them into one, *copy. */
static wf_status gather(TRITONBACKEND_Input *input, uint32_t num_buffers, uint64_t num_bytes,
                        const void **out, void **copy, wf_error *err) {
  uint64_t at = 0;
  *out = NULL;
  if (num_buffers > 1 && (*copy = malloc(num_bytes + 1)) == NULL)
    return fail(err, WF_ERR_MEMORY, "out of memory for a tensor");
  for (uint32_t i = 0; i < num_buffers; i++) {
    const void *buffer;
    uint64_t size;
    TRITONSERVER_MemoryType memory = TRITON_CPU;
    int64_t memory_id = 0;
    if (failed(TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &memory, &memory_id)))
      return fail(err, WF_ERR_ARGUMENT, "a tensor cannot be read");
    if (memory == TRITON_GPU)
      return fail(err, WF_ERR_UNSUPPORTED,
                  "a tensor is in GPU memory; tensors must be in host memory");
    if (size > num_bytes - at)
      return fail(err, WF_ERR_ARGUMENT, "a tensor has more data than its size in bytes");
    if (num_buffers == 1)
      *out = buffer;
    else
      memcpy((char *)*copy + at, buffer, size);
    at += size;
  }
  if (at != num_bytes)
    return fail(err, WF_ERR_ARGUMENT, "a tensor has less data than its size in bytes");
  if (num_buffers > 1) *out = *copy;
  return WF_OK;
}

static wf_status describe_scores(TRITONSERVER_DataType type, const int64_t *shape,
                                 uint32_t num_dims, uint64_t num_bytes, wf_scores *out,
                                 wf_error *err) {
  if (num_dims < 2 || num_dims > 3 || (num_dims == 3 && shape[0] != 1))
    return fail(err, WF_ERR_ARGUMENT, "SCORES must be [frames, columns] or [1, frames, columns]");
  int64_t frames = shape[num_dims - 2], columns = shape[num_dims - 1];
  if (type == TRITON_FP32)
    out->dtype = WF_FLOAT32;
  else if (type == TRITON_FP16)
    out->dtype = WF_FLOAT16;
  else if (type == TRITON_BF16)
    out->dtype = WF_BFLOAT16;
  else
    return fail(err, WF_ERR_ARGUMENT, "SCORES must be FP32, FP16, or BF16");
  if (frames < 0 || columns < 0 || columns > INT32_MAX || frames > INT32_MAX)
    return fail(err, WF_ERR_ARGUMENT,
                "SCORES: the number of frames or columns is negative or above 2^31 - 1");
  if (num_bytes != (uint64_t)frames * (uint64_t)columns * (type == TRITON_FP32 ? 4 : 2))
    return fail(err, WF_ERR_ARGUMENT,
                "SCORES: the size in bytes does not match shape and data type");
  out->num_frames = frames;
  out->num_columns = (int32_t)columns;
  out->stride = columns;
  return WF_OK;
}

static wf_status read_input(TRITONBACKEND_Input *input, tw_tensors *out, bool *has_scores,
                            wf_error *err) {
  const char *name;
  const int64_t *shape;
  TRITONSERVER_DataType type;
  uint32_t num_dims, num_buffers;
  uint64_t num_bytes;
  if (failed(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &num_dims, &num_bytes,
                                           &num_buffers)))
    return fail(err, WF_ERR_ARGUMENT, "a tensor cannot be read");
  if (strcmp(name, "SCORES") == 0) {
    *has_scores = true;
    wf_status status = describe_scores(type, shape, num_dims, num_bytes, &out->scores, err);
    return status == WF_OK
               ? gather(input, num_buffers, num_bytes, &out->scores.data, &out->copy, err)
               : status;
  }
  if (strcmp(name, "BOOSTS") != 0) return WF_OK; /* for example, control tensors */
  if (type != TRITON_BYTES)
    return fail(err, WF_ERR_ARGUMENT, "BOOSTS must have data type BYTES (strings)");
  const void *data;
  wf_status status = gather(input, num_buffers, num_bytes, &data, &out->boosts_copy, err);
  out->boosts = data != NULL ? data : "";
  out->boosts_bytes = num_bytes;
  return status;
}

/* Reads the parameter `boosts`. It replaces the tensor. */
static wf_status read_parameters(TRITONBACKEND_Request *request, tw_tensors *out, wf_error *err) {
  uint32_t count = 0;
  if (TRITONBACKEND_RequestParameterCount == NULL || TRITONBACKEND_RequestParameter == NULL)
    return WF_OK;
  if (failed(TRITONBACKEND_RequestParameterCount(request, &count)))
    return fail(err, WF_ERR_ARGUMENT, "a request that cannot be read");
  for (uint32_t i = 0; i < count; i++) {
    const char *name;
    const void *value;
    TRITONSERVER_ParameterType type;
    if (failed(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value)))
      return fail(err, WF_ERR_ARGUMENT, "a request that cannot be read");
    if (strcmp(name, "boosts") != 0) continue;
    if (type != TRITON_PARAMETER_STRING)
      return fail(err, WF_ERR_ARGUMENT, "the parameter boosts must be a string");
    out->boosts = value;
    out->boosts_bytes = strlen(out->boosts);
    out->boosts_are_lines = true;
  }
  return WF_OK;
}

wf_status tensors_read(TRITONBACKEND_Request *request, tw_tensors *out, wf_error *err) {
  uint32_t count = 0;
  bool has_scores = false;
  *out = (tw_tensors){0};
  if (failed(TRITONBACKEND_RequestInputCount(request, &count)))
    return fail(err, WF_ERR_ARGUMENT, "a request that cannot be read");
  for (uint32_t i = 0; i < count; i++) {
    TRITONBACKEND_Input *input;
    if (failed(TRITONBACKEND_RequestInputByIndex(request, i, &input)))
      return fail(err, WF_ERR_ARGUMENT, "a request that cannot be read");
    wf_status status = read_input(input, out, &has_scores, err);
    if (status != WF_OK) return status;
  }
  if (!has_scores) return fail(err, WF_ERR_ARGUMENT, "the request has no input SCORES");
  return read_parameters(request, out, err);
}

void tensors_free(tw_tensors *tensors) {
  free(tensors->copy);
  free(tensors->boosts_copy);
  *tensors = (tw_tensors){0};
}

/* --- responses ---------------------------------------------------------------------------------
 */

static TRITONSERVER_Error *put(TRITONBACKEND_Response *response, const char *name,
                               TRITONSERVER_DataType type, const int64_t *shape, uint32_t num_dims,
                               bool batched, uint64_t num_bytes, void **buffer) {
  int64_t batch_shape[4] = {1};
  TRITONBACKEND_Output *output;
  TRITONSERVER_MemoryType memory = TRITON_CPU;
  int64_t memory_id = 0;
  for (uint32_t i = 0; i < num_dims; i++) batch_shape[batched + i] = shape[i];
  TRITONSERVER_Error *error =
      TRITONBACKEND_ResponseOutput(response, &output, name, type, batch_shape, num_dims + batched);
  if (error == NULL)
    error = TRITONBACKEND_OutputBuffer(output, buffer, num_bytes, &memory, &memory_id);
  if (error == NULL && memory == TRITON_GPU)
    error = TRITONSERVER_ErrorNew(TRITON_UNSUPPORTED, "outputs are written to host memory only");
  return error;
}

static const char *text_of(const wf_symbols *words, int32_t label, char scratch[12]) {
  const char *text = words != NULL ? wf_symbols_text(words, label) : NULL;
  if (text != NULL) return text;
  snprintf(scratch, 12, "%d", label);
  return scratch;
}

/* Writes the words as one string, separated by spaces; if `apart`, as one string for each word. */
static TRITONSERVER_Error *put_words(TRITONBACKEND_Response *response, const char *name,
                                     const tw_output *output, const wf_symbols *words, bool apart,
                                     bool batched) {
  char scratch[12], *at;
  void *buffer;
  uint64_t text_bytes = 0, num = output->num_words;
  for (size_t i = 0; i < num; i++)
    text_bytes += strlen(text_of(words, output->words[i].label, scratch));
  int64_t shape[] = {apart ? (int64_t)num : 1};
  uint64_t num_bytes = apart ? text_bytes + 4 * num : 4 + text_bytes + (num > 0 ? num - 1 : 0);
  TRITONSERVER_Error *error =
      put(response, name, TRITON_BYTES, shape, 1, batched, num_bytes, &buffer);
  if (error != NULL || num_bytes == 0) return error;
  at = buffer;
  uint32_t whole = (uint32_t)(num_bytes - 4);
  if (!apart) memcpy(at, &whole, 4), at += 4;
  for (size_t i = 0; i < num; i++) {
    const char *text = text_of(words, output->words[i].label, scratch);
    uint32_t size = (uint32_t)strlen(text);
    if (apart)
      memcpy(at, &size, 4), at += 4;
    else if (i > 0)
      *at++ = ' ';
    memcpy(at, text, size);
    at += size;
  }
  return NULL;
}

static TRITONSERVER_Error *put_number(TRITONBACKEND_Response *response, const char *name,
                                      TRITONSERVER_DataType type, const void *number,
                                      bool batched) {
  void *buffer;
  TRITONSERVER_Error *error =
      put(response, name, type, (const int64_t[]){1}, 1, batched, 4, &buffer);
  if (error == NULL) memcpy(buffer, number, 4);
  return error;
}

static TRITONSERVER_Error *put_frames(TRITONBACKEND_Response *response, const char *name,
                                      const tw_output *output, bool batched) {
  void *buffer;
  int64_t shape[] = {(int64_t)output->num_words, 2};
  TRITONSERVER_Error *error =
      put(response, name, TRITON_INT32, shape, 2, batched, output->num_words * 8, &buffer);
  for (size_t i = 0; i < output->num_words && error == NULL; i++)
    memcpy((char *)buffer + 8 * i,
           (const int32_t[]){output->words[i].start_frame, output->words[i].end_frame}, 8);
  return error;
}

TRITONSERVER_Error *tensors_write(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
                                  const tw_output *output, const wf_symbols *words, bool batched) {
  uint32_t count = 0;
  TRITONSERVER_Error *error = TRITONBACKEND_RequestOutputCount(request, &count);
  for (uint32_t i = 0; i < count && error == NULL; i++) {
    const char *name;
    int32_t num_stable = (int32_t)output->num_stable;
    error = TRITONBACKEND_RequestOutputName(request, i, &name);
    if (error != NULL) break;
    if (strcmp(name, "TEXT") == 0)
      error = put_words(response, name, output, words, false, batched);
    else if (strcmp(name, "WORDS") == 0)
      error = put_words(response, name, output, words, true, batched);
    else if (strcmp(name, "STABLE") == 0)
      error = put_number(response, name, TRITON_INT32, &num_stable, batched);
    else if (strcmp(name, "ENDPOINT") == 0)
      error = put_number(response, name, TRITON_INT32, &output->endpoint, batched);
    else if (strcmp(name, "FLAGS") == 0)
      error = put_number(response, name, TRITON_INT32, &output->flags, batched);
    else if (strcmp(name, "COST") == 0)
      error = put_number(response, name, TRITON_FP32, &output->cost, batched);
    else if (strcmp(name, "FRAMES") == 0)
      error = put_frames(response, name, output, batched);
    else
      error = TRITONSERVER_ErrorNew(
          TRITON_INVALID_ARG,
          "unknown output, expected TEXT, WORDS, FRAMES, STABLE, ENDPOINT, FLAGS or COST");
  }
  return error;
}
