/* backend.c - the entry points that Triton Inference Server calls, and the execution of a batch of
 * requests.
 *
 *   requests of many sequences --tensors--> streams, chunks --wf_streams_advance,
 *   wf_streams_partial--> partials, or results at the end of a sequence --tensors--> responses
 *
 * The server's sequence batcher collects the requests, at most one of each sequence. The server
 * calls an instance from one thread at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"
#include "tensors.h"

#define EXPORT __attribute__((visibility("default"))) TRITONSERVER_Error *

/* A request of the batch that is executed. */
struct job {
  TRITONBACKEND_Request *request;
  tw_tensors tensors;
  tw_sequence *sequence; /* NULL: the request has failed */
  bool ends;
  wf_stream_event event;
  wf_result *result;
  wf_partial partial;
  int64_t num_frames;
  wf_error err; /* code WF_OK: none */
  bool good;    /* the response is not an error */
};

struct batch {
  struct job *jobs; /* [count] */
  uint32_t count;
  /* the requests whose chunks are searched */
  wf_stream **streams;
  wf_scores *chunks;
  wf_stream_event *events;
  wf_partial *partials;
  uint32_t *which; /* index into jobs */
  uint32_t size;
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static TRITONSERVER_Error *to_triton(const wf_error *err) {
  if (err->code == WF_OK) return NULL;
  TRITONSERVER_Error_Code code = err->code == WF_ERR_MEMORY        ? TRITON_UNAVAILABLE
                                 : err->code == WF_ERR_UNSUPPORTED ? TRITON_UNSUPPORTED
                                                                   : TRITON_INVALID_ARG;
  return TRITONSERVER_ErrorNew(code, err->message);
}

static void ignore(TRITONSERVER_Error *error) {
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

/* --- one execution ----------------------------------------------------------------------- */

/* Writes the correlation id as text: "n7" for the number 7, "sabc" for the text abc, "" for none.
 */
static void read_id(TRITONBACKEND_Request *request, char *out, size_t size) {
  uint64_t number = 0;
  const char *text = NULL;
  TRITONSERVER_Error *error = TRITONBACKEND_RequestCorrelationId(request, &number);
  out[0] = '\0';
  if (error == NULL && number != 0) snprintf(out, size, "n%" PRIu64, number);
  if (error != NULL) {
    TRITONSERVER_ErrorDelete(error);
    error = TRITONBACKEND_RequestCorrelationIdString(request, &text);
    if (error == NULL && text != NULL && text[0] != '\0') snprintf(out, size, "s%s", text);
    ignore(error);
  }
}

static wf_status set_boosts(const tw_instance *instance, struct job *job) {
  wf_scorer *scorer;
  wf_status status =
      model_read_boosts(instance->model, job->tensors.boosts, job->tensors.boosts_bytes,
                        job->tensors.boosts_are_lines, &scorer, &job->err);
  if (status != WF_OK) return status;
  status = wf_stream_set_scorer(job->sequence->stream, scorer, &job->err);
  wf_scorer_free(scorer);
  return status;
}

/* Finds the stream and reads the tensors of a request. A request without a correlation id is a
 * complete sequence. */
static void prepare(tw_instance *instance, struct job *job, uint32_t number, uint64_t now) {
  char id[256];
  uint32_t flags = 0;
  ignore(TRITONBACKEND_RequestFlags(job->request, &flags));
  read_id(job->request, id, sizeof id);
  if (id[0] == '\0') {
    snprintf(id, sizeof id, "-%u", number);
    flags = TRITON_SEQUENCE_START | TRITON_SEQUENCE_END;
  }
  job->ends = (flags & TRITON_SEQUENCE_END) != 0;
  if (instance_find(instance, id, (flags & TRITON_SEQUENCE_START) != 0, now, &job->sequence,
                    &job->err) != WF_OK) {
    job->sequence = NULL;
    return;
  }
  job->sequence->in_batch = true;
  if (tensors_read(job->request, &job->tensors, &job->err) == WF_OK && job->tensors.boosts != NULL)
    set_boosts(instance, job);
}

/* Reads the partial results of the sequences that go on, all in one call. */
static void read_partials(tw_instance *instance, struct batch *batch) {
  batch->size = 0;
  for (uint32_t i = 0; i < batch->count; i++) {
    const struct job *job = &batch->jobs[i];
    if (job->sequence == NULL || job->err.code != WF_OK || job->ends) continue;
    batch->which[batch->size] = i;
    batch->streams[batch->size++] = job->sequence->stream;
  }
  wf_error err = {0};
  wf_status status =
      wf_streams_partial(instance->decoder, batch->streams, batch->size, batch->partials, &err);
  for (uint32_t k = 0; k < batch->size; k++) {
    struct job *job = &batch->jobs[batch->which[k]];
    job->partial = batch->partials[k];
    if (status != WF_OK || job->partial.num_frames == 0) /* asks a failed stream for its error */
      wf_stream_partial(job->sequence->stream, &job->partial, &job->err);
  }
}

static void finish(struct job *job) {
  if (wf_stream_finish(job->sequence->stream, &job->result, &job->err) != WF_OK ||
      job->result->status == WF_OK)
    return;
  job->err.code = job->result->status;
  snprintf(job->err.message, sizeof job->err.message, "%s", job->result->message);
}

static void search(tw_instance *instance, struct batch *batch) {
  batch->size = 0;
  for (uint32_t i = 0; i < batch->count; i++) {
    struct job *job = &batch->jobs[i];
    if (job->sequence == NULL || job->err.code != WF_OK) continue;
    batch->which[batch->size] = i;
    batch->streams[batch->size] = job->sequence->stream;
    batch->chunks[batch->size++] = job->tensors.scores;
  }
  wf_error err = {0};
  wf_status status = wf_streams_advance(instance->decoder, batch->streams, batch->chunks,
                                        batch->size, batch->events, &err);
  for (uint32_t k = 0; k < batch->size; k++) {
    struct job *job = &batch->jobs[batch->which[k]];
    job->event = batch->events[k];
    if (status != WF_OK && status != WF_ERR_MEMORY)
      job->err = err; /* after WF_ERR_MEMORY, each stream reports its own error */
    else if (job->ends)
      finish(job);
  }
  read_partials(instance, batch);
}

/* Names the flags in a parameter of the response, which clients get whatever outputs they ask for.
 */
static TRITONSERVER_Error *name_flags(TRITONBACKEND_Response *response, uint32_t flags) {
  static const struct {
    uint32_t flag;
    const char *name;
  } names[] = {{WF_RESULT_NOT_FINAL, "not_final"},
               {WF_RESULT_NARROWED, "narrowed"},
               {WF_RESULT_DIED, "died"},
               {WF_RESULT_OVERFLOW, "overflow"}};
  char text[64] = "";
  size_t size = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if ((flags & names[i].flag) != 0)
      size += (size_t)snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? "," : "",
                               names[i].name);
  return size > 0 ? TRITONBACKEND_ResponseSetStringParameter(response, "flags", text) : NULL;
}

/* Sends the response. Drops the sequence if it has ended or failed. */
static void respond(tw_instance *instance, struct job *job) {
  TRITONBACKEND_Response *response;
  TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, job->request);
  if (error == NULL) {
    tw_output output = {job->partial.words,  job->partial.num_words, job->partial.num_stable,
                        job->event.endpoint, job->partial.flags,     0};
    const wf_result *result = job->result;
    if (result != NULL)
      output = (tw_output){result->words,       result->num_words, result->num_words,
                           job->event.endpoint, result->flags,     (float)result->cost};
    TRITONSERVER_Error *why = to_triton(&job->err);
    if (why == NULL) why = name_flags(response, output.flags);
    if (why == NULL)
      why = tensors_write(job->request, response, &output, instance->model->words,
                          instance->model->settings.max_batch_size > 0);
    job->good = why == NULL;
    error = TRITONBACKEND_ResponseSend(response, TRITON_RESPONSE_FINAL, why);
    ignore(why);
  }
  ignore(error);
  if (job->sequence != NULL && (job->ends || job->err.code != WF_OK))
    instance_drop(instance, job->sequence);
  else if (job->sequence != NULL)
    job->sequence->in_batch = false;
  if (job->result != NULL && (job->result->flags & WF_RESULT_DIED) != 0)
    metrics_add(instance->model->metrics, METRIC_DIED, 1);
  job->num_frames = job->tensors.scores.num_frames;
  wf_result_free(job->result);
  tensors_free(&job->tensors);
}

static void report(const tw_instance *instance, const struct batch *batch, double busy_s) {
  const tw_model *model = instance->model;
  int64_t num_frames = 0;
  for (uint32_t i = 0; i < batch->count; i++)
    if (batch->jobs[i].err.code == WF_OK) num_frames += batch->jobs[i].num_frames;
  double audio_s = (double)num_frames * model->stream.frame_shift;
  metrics_add(model->metrics, METRIC_AUDIO, audio_s);
  metrics_add(model->metrics, METRIC_BUSY, busy_s);
  metrics_set(model->metrics, METRIC_RTFX, audio_s / busy_s);
  metrics_set(model->metrics, METRIC_BATCH, batch->count);
}

static void execute(tw_instance *instance, struct batch *batch,
                    TRITONBACKEND_ModelInstance *triton) {
  uint64_t begin = now_ns();
  for (uint32_t i = 0; i < batch->count; i++) prepare(instance, &batch->jobs[i], i, begin);
  instance_drop_idle(instance, begin);
  uint64_t compute = now_ns();
  search(instance, batch);
  uint64_t computed = now_ns();
  for (uint32_t i = 0; i < batch->count; i++) respond(instance, &batch->jobs[i]);
  uint64_t end = now_ns();
  for (uint32_t i = 0; i < batch->count; i++) {
    ignore(TRITONBACKEND_ModelInstanceReportStatistics(
        triton, batch->jobs[i].request, batch->jobs[i].good, begin, compute, computed, end));
    ignore(TRITONBACKEND_RequestRelease(batch->jobs[i].request, TRITON_RELEASE_ALL));
  }
  ignore(TRITONBACKEND_ModelInstanceReportBatchStatistics(triton, batch->count, begin, compute,
                                                          computed, end));
  report(instance, batch, (double)(end - begin) * 1e-9);
}

/* --- what the server calls --------------------------------------------------------------- */

EXPORT TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
EXPORT TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);
EXPORT TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *triton);
EXPORT TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *triton);
EXPORT TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *triton);
EXPORT TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *triton);
EXPORT TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *triton,
                                          TRITONBACKEND_Request **requests, uint32_t count);

/* Warnings of the library, such as boosts with unknown words, go to the server's log. */
static void log_warning(void *user, wf_log_level level, const char *message) {
  (void)user;
  if (level != WF_LOG_WARNING) return;
  TRITONSERVER_Error *error = TRITONSERVER_LogMessage(TRITON_LOG_WARN, "warpfst", 0, message);
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

EXPORT TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
  uint32_t major, minor;
  TRITONSERVER_Error *error = TRITONBACKEND_ApiVersion(&major, &minor);
  if (error != NULL) return error;
  if (major != TRITON_API_MAJOR || minor < TRITON_API_MINOR)
    return TRITONSERVER_ErrorNew(
        TRITON_UNSUPPORTED,
        "warpfst: the server's backend interface is not version 1.10 or a later 1.x");
  tw_metric_families *families = metric_families_new();
  error = TRITONBACKEND_BackendSetState(backend, families);
  if (error != NULL)
    metric_families_free(families);
  else
    wf_set_log(log_warning, NULL);
  return error;
}

EXPORT TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend) {
  void *families;
  wf_set_log(NULL, NULL);
  TRITONSERVER_Error *error = TRITONBACKEND_BackendState(backend, &families);
  if (error == NULL) metric_families_free(families);
  return error;
}

/* Finds the folder of the model's version. Free *out with free(). */
static TRITONSERVER_Error *find_folder(TRITONBACKEND_Model *triton, char **out) {
  TRITONBACKEND_ArtifactType type;
  const char *location;
  uint64_t version;
  TRITONSERVER_Error *error = TRITONBACKEND_ModelRepository(triton, &type, &location);
  if (error == NULL) error = TRITONBACKEND_ModelVersion(triton, &version);
  if (error != NULL) return error;
  size_t size = strlen(location) + 32;
  *out = malloc(size);
  if (*out == NULL) return TRITONSERVER_ErrorNew(TRITON_UNAVAILABLE, "out of memory");
  snprintf(*out, size, "%s/%" PRIu64, location, version);
  return NULL;
}

static TRITONSERVER_Error *read_settings(TRITONBACKEND_Model *triton, tw_settings *out) {
  TRITONSERVER_Message *message;
  const char *json;
  uint64_t size;
  TRITONSERVER_Error *error = TRITONBACKEND_ModelConfig(triton, 1, &message);
  if (error != NULL) return error;
  error = TRITONSERVER_MessageSerializeToJson(message, &json, &size);
  if (error == NULL && !settings_read(json, size, out))
    error = TRITONSERVER_ErrorNew(
        TRITON_INTERNAL,
        "warpfst: cannot parse the model configuration that the server sent as JSON");
  ignore(TRITONSERVER_MessageDelete(message));
  return error;
}

static tw_metrics *make_metrics(TRITONBACKEND_Model *triton) {
  TRITONBACKEND_Backend *backend;
  void *families = NULL;
  const char *name;
  uint64_t version;
  TRITONSERVER_Error *error = TRITONBACKEND_ModelBackend(triton, &backend);
  if (error == NULL) error = TRITONBACKEND_BackendState(backend, &families);
  if (error == NULL) error = TRITONBACKEND_ModelName(triton, &name);
  if (error == NULL) error = TRITONBACKEND_ModelVersion(triton, &version);
  if (error == NULL) return metrics_new(families, name, version);
  ignore(error);
  return NULL;
}

EXPORT TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *triton) {
  tw_settings settings;
  tw_model *model;
  char *folder;
  wf_error err = {0};
  TRITONSERVER_Error *error = find_folder(triton, &folder);
  if (error != NULL) return error;
  error = read_settings(triton, &settings);
  if (error == NULL && model_open(&settings, folder, &model, &err) != WF_OK)
    error = to_triton(&err);
  free(folder);
  if (error != NULL) return error;
  model->metrics = make_metrics(triton);
  error = TRITONBACKEND_ModelSetState(triton, model);
  if (error != NULL) model_close(model);
  return error;
}

EXPORT TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *triton) {
  void *model;
  TRITONSERVER_Error *error = TRITONBACKEND_ModelState(triton, &model);
  if (error == NULL) model_close(model);
  return error;
}

EXPORT TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *triton) {
  TRITONBACKEND_Model *of;
  void *model;
  tw_instance *instance;
  wf_error err = {0};
  TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(triton, &of);
  if (error == NULL) error = TRITONBACKEND_ModelState(of, &model);
  if (error == NULL && instance_open(model, &instance, &err) != WF_OK) error = to_triton(&err);
  if (error != NULL) return error;
  error = TRITONBACKEND_ModelInstanceSetState(triton, instance);
  if (error != NULL) instance_close(instance);
  return error;
}

EXPORT TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *triton) {
  void *instance;
  TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(triton, &instance);
  if (error == NULL) instance_close(instance);
  return error;
}

/* If this returns an error, the server still owns the requests. All other failures are sent as
 * responses. */
EXPORT TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *triton,
                                          TRITONBACKEND_Request **requests, uint32_t count) {
  void *instance;
  TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(triton, &instance);
  if (error != NULL) return error;
  struct batch batch = {.jobs = calloc(count, sizeof *batch.jobs), .count = count};
  batch.streams = calloc(count, sizeof *batch.streams);
  batch.chunks = calloc(count, sizeof *batch.chunks);
  batch.events = calloc(count, sizeof *batch.events);
  batch.partials = calloc(count, sizeof *batch.partials);
  batch.which = calloc(count, sizeof *batch.which);
  if (batch.jobs == NULL || batch.streams == NULL || batch.chunks == NULL || batch.events == NULL ||
      batch.partials == NULL || batch.which == NULL) {
    error = TRITONSERVER_ErrorNew(TRITON_UNAVAILABLE, "out of memory for a batch");
  } else {
    for (uint32_t i = 0; i < count; i++) batch.jobs[i].request = requests[i];
    execute(instance, &batch, triton);
  }
  free(batch.jobs);
  free(batch.streams);
  free(batch.chunks);
  free(batch.events);
  free(batch.partials);
  free(batch.which);
  return error;
}
