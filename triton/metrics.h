/* metrics.h - metrics that the server shows on its metrics page, for Prometheus. The server has
 * metrics of its own for queues (nv_inference_queue_duration_us). A server without metrics has
 * NULL in place of the objects here; every function accepts it. */
#ifndef WARPFST_TRITON_METRICS_H
#define WARPFST_TRITON_METRICS_H

#include "triton_api.h"

typedef enum tw_metric {
  METRIC_AUDIO,     /* seconds of audio decoded */
  METRIC_BUSY,      /* seconds spent in executions */
  METRIC_RTFX,      /* of the last execution */
  METRIC_BATCH,     /* requests of the last execution */
  METRIC_SEQUENCES, /* open */
  METRIC_ABANDONED, /* sequences that were dropped because they were idle */
  METRIC_DIED,      /* utterances with WF_RESULT_DIED */
  NUM_METRICS
} tw_metric;

/* One family for each metric, shared by all models: the server allows each name only once. */
typedef struct tw_metric_families tw_metric_families;
tw_metric_families *metric_families_new(void);
void metric_families_free(tw_metric_families *families);

/* The metrics of a model, labelled with its name and version. Threads may share them. */
typedef struct tw_metrics tw_metrics;
tw_metrics *metrics_new(const tw_metric_families *families, const char *model, uint64_t version);
void metrics_free(tw_metrics *metrics);
void metrics_add(const tw_metrics *metrics, tw_metric which, double value);
void metrics_set(const tw_metrics *metrics, tw_metric which, double value);

#endif
