/* transducer_stub.c - the errors of a build without CUDA for transducers on a GPU. Weights cannot
 * be sent, so there are no groups. */
#ifndef WARPFST_CUDA
#include "search/transducer/transducer_device.h"

static wf_status no_device(const char *name, wf_error *err) {
  return wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA", name);
}

wf_status wf__transducer_count_gpus(int *count, wf_error *err) { return no_device("cuda", err); }
wf_status wf__transducer_weights_send(const wf_transducer *model, int number,
                                      wf__transducer_weights **out, wf_error *err) {
  *out = NULL;
  return no_device("cuda", err);
}
void wf__transducer_weights_free(wf__transducer_weights *weights) {}
wf_status wf__transducer_scores_where(const wf__transducer_weights *weights,
                                      const wf_scores *scores, void *stream, int *number,
                                      wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__transducer_group_open(wf__transducer_weights *weights, wf__transducer_group **out,
                                    wf_error *err) {
  *out = NULL;
  return no_device("cuda", err);
}
void wf__transducer_group_close(wf__transducer_group *group) {}
wf_status wf__transducer_group_begin(wf__transducer_group *group, const wf__score_cut *cut,
                                     const int64_t *num_frames, size_t num_lanes, void *stream,
                                     wf_error *err) {
  return no_device("cuda", err);
}
void wf__transducer_group_put(wf__transducer_group *group, size_t lane, const wf_scores *begins,
                              int where, wf__predictions *predictions) {}
void wf__transducer_group_release(wf__transducer_group *group, wf__predictions *predictions) {}
wf_status wf__transducer_group_submit(wf__transducer_group *group, wf__transducer_counts *counts,
                                      wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__transducer_group_wait(wf__transducer_group *group, wf_error *err) {
  return no_device("cuda", err);
}
#endif
