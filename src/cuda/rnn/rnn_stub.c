/* rnn_stub.c - the errors of a build without CUDA for recurrent models on a GPU. None can be
 * opened, so the other calls are never made. */
#ifndef WARPFST_CUDA
#include "lm/rnn_device.h"

static wf_status no_device(const char *name, wf_error *err) {
  return wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA", name);
}

wf_status wf__rnn_weights_send(const wf_rnnlm *lm, const char *name, wf__rnn_weights **out,
                               wf_error *err) {
  return no_device(name, err);
}
void wf__rnn_weights_free(wf__rnn_weights *weights) {}
int wf__rnn_weights_where(const wf__rnn_weights *weights) { return -1; }
wf_status wf__rnn_device_open(const wf_rnnlm *lm, uint64_t num_slots, wf__rnn_device **out,
                              wf_error *err) {
  return no_device("cuda", err);
}
void wf__rnn_device_close(wf__rnn_device *device) {}
wf_status wf__rnn_device_advance(wf__rnn_device *device, const wf__rnn_move *moves, uint64_t count,
                                 wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__rnn_device_norms(wf__rnn_device *device, const uint32_t *slots, uint64_t count,
                               wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__rnn_device_costs(wf__rnn_device *device, const wf__rnn_request *requests,
                               uint64_t count, const uint64_t *hashes, uint64_t num_hashes,
                               float *costs, wf_error *err) {
  return no_device("cuda", err);
}
void *wf__rnn_device_stream(const wf__rnn_device *device) { return NULL; }
wf_status wf__rnn_device_advance_there(wf__rnn_device *device, const wf__rnn_move *moves,
                                       wf__row_count count, wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__rnn_device_norms_there(wf__rnn_device *device, const uint32_t *slots, uint64_t count,
                                     wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__rnn_device_costs_there(wf__rnn_device *device, const wf__rnn_request *requests,
                                     uint64_t count, const uint64_t *hashes, float *costs,
                                     wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__rnn_device_tops_there(wf__rnn_device *device, const uint32_t *slots,
                                    wf__row_count count, float *to, wf_error *err) {
  return no_device("cuda", err);
}
wf_status wf__rnn_device_grow(wf__rnn_device *device, uint64_t num_slots, wf_error *err) {
  return no_device("cuda", err);
}
#endif
