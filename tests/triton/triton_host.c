/* triton_host.c - a stand-in for Triton Inference Server. */
#include "triton_host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The backend's entry points. */
TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);
TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);
TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       uint32_t count);

enum { MAX_BATCH = 64, MAX_METRICS = 16 };

struct TRITONSERVER_Error {
  char message[512];
};
struct TRITONSERVER_Message {
  const char *json;
};
struct TRITONSERVER_Parameter {
  char text[64];
};
struct TRITONSERVER_MetricFamily {
  const char *name;
  TRITONSERVER_MetricKind kind;
};
struct TRITONSERVER_Metric {
  TRITONSERVER_MetricFamily *family;
  double value;
};
struct TRITONBACKEND_Backend {
  void *state;
};
struct TRITONBACKEND_Model {
  TRITONBACKEND_Backend *backend;
  void *state;
  const char *folder;
  TRITONSERVER_Message config;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model *model;
  void *state;
};
struct TRITONBACKEND_Input {
  const char *name;
  TRITONSERVER_DataType type;
  int64_t shape[3];
  uint32_t num_dims, num_buffers;
  uint64_t num_bytes;
  char *data;
};
struct TRITONBACKEND_Output {
  host_output *written;
};
struct TRITONBACKEND_Response {
  host_response *out;
  TRITONBACKEND_Output outputs[8];
};
struct TRITONBACKEND_Request {
  const host_request *sent;
  TRITONBACKEND_Input inputs[2];
  uint32_t num_inputs;
  host_response *response;
};

struct triton_host {
  TRITONBACKEND_Backend backend;
  TRITONBACKEND_Model model;
  TRITONBACKEND_ModelInstance instance;
};

static struct {
  int fail_at, num_calls, num_alive, num_warnings;
  char warning[512];
  TRITONSERVER_Metric *metrics[MAX_METRICS];
} state;

int host_fail_at(int n) {
  int before = state.num_calls;
  state.fail_at = n;
  state.num_calls = 0;
  return before;
}

int host_warnings(char last[512]) {
  int count = state.num_warnings;
  snprintf(last, 512, "%s", state.warning);
  state.num_warnings = 0;
  state.warning[0] = '\0';
  return count;
}

int host_num_alive(void) { return state.num_alive; }

/* Every call of the backend begins here. */
static TRITONSERVER_Error *called(void) {
  return ++state.num_calls == state.fail_at ? TRITONSERVER_ErrorNew(TRITON_INTERNAL, "made to fail")
                                            : NULL;
}

/* Allocates an object that the backend must release. */
static void *new_object(size_t size) {
  state.num_alive++;
  return calloc(1, size);
}

static void free_object(void *object) {
  state.num_alive--;
  free(object);
}

/* --- errors, messages, metrics ----------------------------------------------------------- */

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *message) {
  TRITONSERVER_Error *error = new_object(sizeof *error);
  snprintf(error->message, sizeof error->message, "%s", message);
  return error;
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error) { free_object(error); }

TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *file, int line,
                                            const char *message) {
  (void)level, (void)file, (void)line;
  state.num_warnings++;
  snprintf(state.warning, sizeof state.warning, "%s", message);
  return called();
}

TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message,
                                                        const char **base, uint64_t *size) {
  *base = message->json;
  *size = strlen(message->json);
  return called();
}
TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message) { return NULL; }

TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name, TRITONSERVER_ParameterType type,
                                                  const void *value) {
  TRITONSERVER_Parameter *parameter = new_object(sizeof *parameter);
  snprintf(parameter->text, sizeof parameter->text, "%s=%s", name, (const char *)value);
  return parameter;
}
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter) { free_object(parameter); }

TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family,
                                                 TRITONSERVER_MetricKind kind, const char *name,
                                                 const char *description) {
  TRITONSERVER_Error *error = called();
  if (error != NULL) return error;
  *family = new_object(sizeof **family);
  **family = (TRITONSERVER_MetricFamily){name, kind};
  return NULL;
}
TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family) {
  for (int i = 0; i < MAX_METRICS; i++)
    if (state.metrics[i] != NULL && state.metrics[i]->family == family) abort();
  free_object(family);
  return NULL;
}
TRITONSERVER_Error *TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric,
                                           TRITONSERVER_MetricFamily *family,
                                           const TRITONSERVER_Parameter **labels,
                                           uint64_t num_labels) {
  TRITONSERVER_Error *error = called();
  if (error != NULL) return error;
  if (num_labels != 2 || strcmp(labels[0]->text, "model=test") != 0 ||
      strcmp(labels[1]->text, "version=1") != 0)
    return TRITONSERVER_ErrorNew(TRITON_INVALID_ARG, "wrong labels");
  int i = 0;
  while (i < MAX_METRICS - 1 && state.metrics[i] != NULL) i++;
  *metric = state.metrics[i] = new_object(sizeof **metric);
  (*metric)->family = family;
  return NULL;
}
TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric) {
  for (int i = 0; i < MAX_METRICS; i++)
    if (state.metrics[i] == metric) state.metrics[i] = NULL;
  free_object(metric);
  return NULL;
}
TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric, double value) {
  if (metric->family->kind == TRITON_COUNTER && value < 0)
    return TRITONSERVER_ErrorNew(TRITON_INVALID_ARG, "a counter cannot fall");
  metric->value += value;
  return called();
}
TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric, double value) {
  if (metric->family->kind != TRITON_GAUGE)
    return TRITONSERVER_ErrorNew(TRITON_UNSUPPORTED, "only gauges can be set");
  metric->value = value;
  return called();
}
double host_metric(const char *name) {
  for (int i = 0; i < MAX_METRICS; i++)
    if (state.metrics[i] != NULL && strcmp(state.metrics[i]->family->name, name) == 0)
      return state.metrics[i]->value;
  return NAN;
}

/* --- backend, model, instance ------------------------------------------------------------ */

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor) {
  *major = TRITON_API_MAJOR;
  *minor = TRITON_API_MINOR;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **out) {
  *out = backend->state;
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *given) {
  TRITONSERVER_Error *error = called();
  if (error == NULL) backend->state = given;
  return error;
}
TRITONSERVER_Error *TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model,
                                               TRITONBACKEND_Backend **backend) {
  *backend = model->backend;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **name) {
  *name = "test";
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, uint32_t version,
                                              TRITONSERVER_Message **config) {
  *config = &model->config;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model,
                                                  TRITONBACKEND_ArtifactType *type,
                                                  const char **location) {
  *location = model->folder;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *version) {
  *version = 1;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **out) {
  *out = model->state;
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *given) {
  TRITONSERVER_Error *error = called();
  if (error == NULL) model->state = given;
  return error;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                                     TRITONBACKEND_Model **model) {
  *model = instance->model;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance,
                                                     void **out) {
  *out = instance->state;
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance,
                                                        void *given) {
  TRITONSERVER_Error *error = called();
  if (error == NULL) instance->state = given;
  return error;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, bool success,
    uint64_t exec_start_ns, uint64_t compute_start_ns, uint64_t compute_end_ns,
    uint64_t exec_end_ns) {
  if (success != (request->response->error[0] == '\0')) abort();
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, uint64_t batch_size, uint64_t exec_start_ns,
    uint64_t compute_start_ns, uint64_t compute_end_ns, uint64_t exec_end_ns) {
  return called();
}

/* --- requests ---------------------------------------------------------------------------- */

TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request,
                                                       uint64_t *id) {
  if (request->sent->text_id != NULL)
    return TRITONSERVER_ErrorNew(TRITON_INVALID_ARG, "the correlation id is a string");
  *id = request->sent->id;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request,
                                                             const char **id) {
  *id = request->sent->text_id;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags) {
  *flags = (request->sent->starts ? TRITON_SEQUENCE_START : 0u) |
           (request->sent->ends ? TRITON_SEQUENCE_END : 0u);
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request,
                                                    uint32_t *count) {
  *count = request->num_inputs;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
                                                      uint32_t index, TRITONBACKEND_Input **input) {
  *input = &request->inputs[index];
  return called();
}
static const char *output_name(const host_request *request, uint32_t index) {
  static const char *const all[] = {"TEXT",     "WORDS", "FRAMES", "STABLE",
                                    "ENDPOINT", "FLAGS", "COST",   NULL};
  return request->outputs[0] != NULL ? request->outputs[index] : all[index];
}
TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
                                                     uint32_t *count) {
  *count = 0;
  while (output_name(request->sent, *count) != NULL) ++*count;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, uint32_t index,
                                                    const char **name) {
  *name = output_name(request->sent, index);
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request,
                                                        uint32_t *count) {
  *count = request->sent->boosts != NULL && !request->sent->boosts_in_tensor ? 2 : 0;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request, uint32_t index,
                                                   const char **name,
                                                   TRITONSERVER_ParameterType *type,
                                                   const void **value) {
  static const int64_t priority = 1;
  *name = index == 0 ? "priority" : "boosts";
  *type = index == 0 ? 1 : TRITON_PARAMETER_STRING;
  *value = index == 0 ? (const void *)&priority : request->sent->boosts;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t flags) {
  for (uint32_t i = 0; i < request->num_inputs; i++) free(request->inputs[i].data);
  free_object(request);
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                                                  TRITONSERVER_DataType *type,
                                                  const int64_t **shape, uint32_t *num_dims,
                                                  uint64_t *num_bytes, uint32_t *num_buffers) {
  *name = input->name;
  *type = input->type;
  *shape = input->shape;
  *num_dims = input->num_dims;
  *num_bytes = input->num_bytes;
  *num_buffers = input->num_buffers;
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, uint32_t index,
                                              const void **buffer, uint64_t *num_bytes,
                                              TRITONSERVER_MemoryType *memory, int64_t *memory_id) {
  uint64_t cut = input->num_buffers == 1 ? input->num_bytes : input->num_bytes / 3;
  *buffer = input->data + (index == 0 ? 0 : cut);
  *num_bytes = index == 0 ? cut : input->num_bytes - cut;
  *memory = TRITON_CPU;
  return called();
}

static void add_input(TRITONBACKEND_Request *request, TRITONBACKEND_Input input, const void *data) {
  input.data = malloc(input.num_bytes + 1);
  if (input.num_bytes > 0) memcpy(input.data, data, input.num_bytes);
  input.num_buffers = request->sent->in_pieces ? 2 : 1;
  request->inputs[request->num_inputs++] = input;
}

/* Writes the lines as a tensor of strings. */
static void add_boosts(TRITONBACKEND_Request *request, const char *lines) {
  char *data = malloc(5 * strlen(lines) + 1), *at = data;
  TRITONBACKEND_Input input = {"BOOSTS", TRITON_BYTES, {1, 0}, 2, 0, 0, NULL};
  while (*lines != '\0') {
    uint32_t length = (uint32_t)strcspn(lines, "\n");
    memcpy(at, &length, sizeof length);
    memcpy(at + sizeof length, lines, length);
    at += sizeof length + length;
    lines += length + (lines[length] == '\n');
    input.shape[1]++;
  }
  input.num_bytes = (uint64_t)(at - data);
  add_input(request, input, data);
  free(data);
}

static TRITONBACKEND_Request *new_request(const host_request *sent, host_response *response) {
  TRITONBACKEND_Request *request = new_object(sizeof *request);
  request->sent = sent;
  request->response = response;
  const wf_scores *scores = &sent->scores;
  add_input(request,
            (TRITONBACKEND_Input){"SCORES",
                                  TRITON_FP32,
                                  {1, scores->num_frames, scores->num_columns},
                                  3,
                                  0,
                                  4 * (uint64_t)(scores->num_frames * scores->num_columns),
                                  NULL},
            scores->data);
  if (sent->boosts != NULL && sent->boosts_in_tensor) add_boosts(request, sent->boosts);
  return request;
}

/* --- responses --------------------------------------------------------------------------- */

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response,
                                              TRITONBACKEND_Request *request) {
  TRITONSERVER_Error *error = called();
  if (error != NULL) {
    snprintf(request->response->error, sizeof request->response->error, "no response");
    return error;
  }
  *response = new_object(sizeof **response);
  (*response)->out = request->response;
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const char *value) {
  if (strcmp(name, "flags") != 0) abort();
  snprintf(response->out->flags, sizeof response->out->flags, "%s", value);
  return called();
}
TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
                                                 TRITONBACKEND_Output **output, const char *name,
                                                 TRITONSERVER_DataType type, const int64_t *shape,
                                                 uint32_t num_dims) {
  TRITONSERVER_Error *error = called();
  if (error != NULL) return error;
  uint32_t i = response->out->num_outputs++;
  host_output *written = &response->out->outputs[i];
  snprintf(written->name, sizeof written->name, "%s", name);
  written->type = type;
  written->num_dims = num_dims;
  memcpy(written->shape, shape, num_dims * sizeof *shape);
  response->outputs[i].written = written;
  *output = &response->outputs[i];
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                                               uint64_t num_bytes, TRITONSERVER_MemoryType *memory,
                                               int64_t *memory_id) {
  TRITONSERVER_Error *error = called();
  if (error != NULL) return error;
  output->written->num_bytes = num_bytes;
  *buffer = output->written->data = malloc(num_bytes > 0 ? num_bytes : 1);
  *memory = TRITON_CPU;
  return NULL;
}
TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, uint32_t flags,
                                               TRITONSERVER_Error *error) {
  response->out->sent = true;
  if (error != NULL)
    snprintf(response->out->error, sizeof response->out->error, "%s", error->message);
  free_object(response);
  return called();
}

/* --- the server -------------------------------------------------------------------------- */

/* Copies the message of an error and deletes it. Returns whether there was one. */
static bool failed(TRITONSERVER_Error *error, char reason[512]) {
  if (error == NULL) return false;
  snprintf(reason, 512, "%s", error->message);
  TRITONSERVER_ErrorDelete(error);
  return true;
}

static void must(TRITONSERVER_Error *error) {
  if (error != NULL) abort();
}

triton_host *host_open(const char *json, const char *folder, char reason[512]) {
  triton_host *made = calloc(1, sizeof *made);
  made->model = (TRITONBACKEND_Model){&made->backend, NULL, folder, {json}};
  made->instance.model = &made->model;
  if (failed(TRITONBACKEND_Initialize(&made->backend), reason)) return free(made), NULL;
  if (!failed(TRITONBACKEND_ModelInitialize(&made->model), reason)) {
    if (!failed(TRITONBACKEND_ModelInstanceInitialize(&made->instance), reason)) return made;
    must(TRITONBACKEND_ModelFinalize(&made->model));
  }
  must(TRITONBACKEND_Finalize(&made->backend));
  free(made);
  return NULL;
}

void host_close(triton_host *host) {
  must(TRITONBACKEND_ModelInstanceFinalize(&host->instance));
  must(TRITONBACKEND_ModelFinalize(&host->model));
  must(TRITONBACKEND_Finalize(&host->backend));
  free(host);
}

void host_execute(triton_host *host, const host_request *requests, uint32_t count,
                  host_response *responses) {
  TRITONBACKEND_Request *made[MAX_BATCH];
  for (uint32_t i = 0; i < count; i++) {
    responses[i] = (host_response){0};
    made[i] = new_request(&requests[i], &responses[i]);
  }
  must(TRITONBACKEND_ModelInstanceExecute(&host->instance, made, count));
}

void host_free_responses(host_response *responses, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < responses[i].num_outputs; k++) free(responses[i].outputs[k].data);
}

const host_output *host_output_of(const host_response *response, const char *name) {
  for (uint32_t i = 0; i < response->num_outputs; i++)
    if (strcmp(response->outputs[i].name, name) == 0) return &response->outputs[i];
  return NULL;
}
