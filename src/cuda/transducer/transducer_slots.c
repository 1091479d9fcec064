/* transducer_slots.c - see transducer_slots.h. */
#include "cuda/transducer/transducer_slots.h"

#include <string.h>

static const char what[] = "predictor contexts";

wf_status wf__slot_store_grow(wf__slot_store *slots, wf__transducer_group *group, uint64_t count,
                              wf_error *err) {
  if (count <= slots->lanes.size) return WF_OK;
  WF__TRY(wf__vec_grow(&slots->lanes, count - slots->lanes.size, what, err));
  while (slots->lanes.size < count)
    slots->lanes.data[slots->lanes.size++] = wf__transducer_take_slot(group);
  return WF_OK;
}

wf_status wf__slot_store_spare(wf__slot_store *slots, wf__transducer_group *group,
                               wf__predictions *const *streams, size_t num_streams, uint64_t count,
                               wf_error *err) {
  for (size_t i = 0; i < num_streams; i++) {
    wf__predictions *p = streams[i];
    WF__TRY(wf__vec_grow(&slots->spares, p->free_slots.size, what, err));
    while (p->free_slots.size > 0)
      slots->spares.data[slots->spares.size++] = p->free_slots.data[--p->free_slots.size];
  }
  if (slots->spares.size >= count) return WF_OK;
  WF__TRY(wf__vec_grow(&slots->spares, count - slots->spares.size, what, err));
  while (slots->spares.size < count)
    slots->spares.data[slots->spares.size++] = wf__transducer_take_slot(group);
  return WF_OK;
}

static wf_status reserve(wf__device_buffer *there, wf__pinned_buffer *host, uint64_t bytes,
                         wf_error *err) {
  WF__TRY(wf__transducer_pin(host, bytes, err));
  return bytes <= there->bytes ? WF_OK : wf__device_reserve(there, bytes + bytes / 4, what, err);
}

static wf_status send(const wf__slot_list *list, wf__device_buffer *there, wf__pinned_buffer *host,
                      cudaStream_t stream, wf_error *err) {
  const uint64_t bytes = list->size * sizeof *list->data;
  if (bytes == 0) return WF_OK;
  WF__TRY(reserve(there, host, bytes, err));
  memcpy(host->data, list->data, bytes);
  WF__CUDA_TRY(cudaMemcpyAsync(there->data, host->data, bytes, cudaMemcpyHostToDevice, stream),
               what);
  return WF_OK;
}

wf_status wf__slot_store_send(wf__slot_store *slots, wf__transducer_group *group, wf_error *err) {
  if (slots->num_sent < slots->lanes.size)
    WF__TRY(send(&slots->lanes, &slots->lanes_there, &slots->host_lanes, group->stream, err));
  slots->num_sent = slots->lanes.size;
  WF__TRY(reserve(&slots->kept_there, &slots->host_kept,
                  slots->spares.size * sizeof(wf__device_kept), err));
  return send(&slots->spares, &slots->spares_there, &slots->host_spares, group->stream, err);
}

static wf_status fetch(const wf__device_buffer *from, wf__pinned_buffer *to, uint64_t bytes,
                       cudaStream_t stream, wf_error *err) {
  if (bytes > 0)
    WF__CUDA_TRY(cudaMemcpyAsync(to->data, from->data, bytes, cudaMemcpyDeviceToHost, stream),
                 what);
  return WF_OK;
}

wf_status wf__slot_store_fetch(wf__slot_store *slots, wf__transducer_group *group,
                               uint64_t num_kept, wf_error *err) {
  const uint64_t count = num_kept < slots->spares.size ? num_kept : slots->spares.size;
  if (slots->spares.size == 0) return WF_OK;
  WF__TRY(fetch(&slots->lanes_there, &slots->host_lanes,
                slots->lanes.size * sizeof *slots->lanes.data, group->stream, err));
  return fetch(&slots->kept_there, &slots->host_kept, count * sizeof(wf__device_kept),
               group->stream, err);
}

static void release(wf__slot_list *list, wf__transducer_group *group) {
  wf__transducer_release_slots(group, list->data, list->size);
  list->size = 0;
}

void wf__slot_store_take(wf__slot_store *slots, wf__transducer_group *group,
                         const wf__device_result *results, size_t count) {
  if (slots->spares.size == 0) return;
  memcpy(slots->lanes.data, slots->host_lanes.data, slots->lanes.size * sizeof *slots->lanes.data);
  for (size_t i = 0; i < count; i++) /* those are the lanes' now */
    for (uint32_t k = 0; k < results[i].num_kept; k++)
      slots->spares.data[results[i].first_kept + k] = WF__NO_SLOT;
  release(&slots->spares, group);
}

void wf__slot_store_close(wf__slot_store *slots, wf__transducer_group *group) {
  wf__device_buffer *buffers[] = {&slots->lanes_there, &slots->spares_there, &slots->kept_there};
  wf__pinned_buffer *pinned[] = {&slots->host_lanes, &slots->host_spares, &slots->host_kept};
  if (group != NULL) release(&slots->lanes, group);
  if (group != NULL) release(&slots->spares, group);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) cudaFreeHost(pinned[i]->data);
  wf__vec_free(&slots->lanes);
  wf__vec_free(&slots->spares);
}
