/* plan.c - the public plans of memory: on a GPU of this machine, which its device makes, or on one
 * elsewhere. */
#include "base/device.h"
#include "base/option_tables.h"
#include "plan/gpu_stream_plan.h"

static const wf__device *find(const char *name, wf_error *err) {
  const wf__device *device = wf__device_find(name, err);
  if (device == NULL && err != NULL) {
    const wf_error why = *err;
    wf__fail(err, WF_ERR_DEVICE, "%s; give num_processors to plan for a GPU elsewhere",
             why.message);
  }
  return device;
}

wf_status wf_plan_batch(const wf_graph *graph, const wf_decoder_options *options,
                        const wf_batch_shape *shape, wf_plan *out, wf_error *err) {
  wf_decoder_options checked;
  wf__devices devices;
  *out = (wf_plan){0};
  WF__TRY(wf__options_take(wf__decoder_table(), options, &checked, err));
  WF__TRY(wf__devices_parse(checked.device, &devices, err));
  if (shape->max_frames < 0 || shape->max_frames > INT32_MAX || shape->sum_frames < 0 ||
      shape->num_processors < 0 || shape->dtype < WF_FLOAT32 || shape->dtype > WF_BFLOAT16 ||
      shape->num_utterances >= UINT32_MAX)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "invalid batch shape: %zu utterances, max_frames %lld, sum_frames %lld",
                    shape->num_utterances, (long long)shape->max_frames,
                    (long long)shape->sum_frames);
  wf__decoder_limits(&checked, graph);
  if (!devices.cuda) return WF_OK;
  if (shape->num_processors > 0) return wf__gpu_plan_assumed(graph, &checked, shape, out, err);
  const wf__device *device = find(checked.device, err);
  return device != NULL ? device->search->plan(graph, &checked, shape, out, err) : WF_ERR_DEVICE;
}

wf_status wf_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                          const wf_stream_shape *shape, wf_stream_plan *out, wf_error *err) {
  wf_decoder_options checked;
  wf__devices devices;
  *out = (wf_stream_plan){0};
  WF__TRY(wf__options_take(wf__decoder_table(), options, &checked, err));
  WF__TRY(wf__devices_parse(checked.device, &devices, err));
  if (shape->num_processors < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "num_processors is %d; it must be at least 0",
                    shape->num_processors);
  wf__decoder_limits(&checked, graph);
  if (!devices.cuda) return WF_OK;
  if (shape->num_processors > 0)
    return wf__gpu_plan_streams_assumed(graph, &checked, shape, out, err);
  const wf__device *device = find(checked.device, err);
  return device != NULL ? device->search->plan_streams(graph, &checked, shape, out, err)
                        : WF_ERR_DEVICE;
}
