/* metrics.c - metrics of models. Errors of the server are ignored: a missing metric is no reason
 * to refuse a model. */
#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
  const char *name;
  TRITONSERVER_MetricKind kind;
  const char *help;
} rows[NUM_METRICS] = {
    [METRIC_AUDIO] = {"warpfst_audio_seconds_total", TRITON_COUNTER, "Seconds of audio decoded"},
    [METRIC_BUSY] = {"warpfst_busy_seconds_total", TRITON_COUNTER,
                     "Seconds spent in executions, from first request to last response"},
    [METRIC_RTFX] = {"warpfst_rtfx", TRITON_GAUGE,
                     "Seconds of audio per second, in the last execution"},
    [METRIC_BATCH] = {"warpfst_batch_size", TRITON_GAUGE, "Requests of the last execution"},
    [METRIC_SEQUENCES] = {"warpfst_sequences", TRITON_GAUGE, "Open sequences"},
    [METRIC_ABANDONED] = {"warpfst_sequences_abandoned_total", TRITON_COUNTER,
                          "Sequences dropped because they were idle"},
    [METRIC_DIED] = {"warpfst_utterances_died_total", TRITON_COUNTER,
                     "Utterances in which no path was left at some frame"},
};

struct tw_metric_families {
  TRITONSERVER_MetricFamily *of[NUM_METRICS]; /* NULL: the server did not make it */
};

struct tw_metrics {
  TRITONSERVER_Metric *of[NUM_METRICS]; /* NULL: likewise */
};

/* Whether a call of the server failed. Frees the error. */
static bool failed(TRITONSERVER_Error *error) {
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
  return error != NULL;
}

tw_metric_families *metric_families_new(void) {
  tw_metric_families *families = calloc(1, sizeof *families);
  for (int i = 0; families != NULL && i < NUM_METRICS; i++)
    if (failed(TRITONSERVER_MetricFamilyNew(&families->of[i], rows[i].kind, rows[i].name,
                                            rows[i].help)))
      families->of[i] = NULL;
  return families;
}

void metric_families_free(tw_metric_families *families) {
  for (int i = 0; families != NULL && i < NUM_METRICS; i++)
    if (families->of[i] != NULL) failed(TRITONSERVER_MetricFamilyDelete(families->of[i]));
  free(families);
}

tw_metrics *metrics_new(const tw_metric_families *families, const char *model, uint64_t version) {
  char number[24];
  tw_metrics *metrics = families != NULL ? calloc(1, sizeof *metrics) : NULL;
  if (metrics == NULL) return NULL;
  snprintf(number, sizeof number, "%" PRIu64, version);
  TRITONSERVER_Parameter *labels[] = {
      TRITONSERVER_ParameterNew("model", TRITON_PARAMETER_STRING, model),
      TRITONSERVER_ParameterNew("version", TRITON_PARAMETER_STRING, number)};
  const TRITONSERVER_Parameter *given[] = {labels[0], labels[1]};
  for (int i = 0; i < NUM_METRICS; i++)
    if (families->of[i] != NULL &&
        failed(TRITONSERVER_MetricNew(&metrics->of[i], families->of[i], given, 2)))
      metrics->of[i] = NULL;
  for (int i = 0; i < 2; i++) TRITONSERVER_ParameterDelete(labels[i]);
  return metrics;
}

void metrics_free(tw_metrics *metrics) {
  for (int i = 0; metrics != NULL && i < NUM_METRICS; i++)
    if (metrics->of[i] != NULL) failed(TRITONSERVER_MetricDelete(metrics->of[i]));
  free(metrics);
}

void metrics_add(const tw_metrics *metrics, tw_metric which, double value) {
  if (metrics != NULL && metrics->of[which] != NULL && value != 0)
    failed(TRITONSERVER_MetricIncrement(metrics->of[which], value));
}

void metrics_set(const tw_metrics *metrics, tw_metric which, double value) {
  if (metrics != NULL && metrics->of[which] != NULL)
    failed(TRITONSERVER_MetricSet(metrics->of[which], value));
}
