/* transducer_slots.h - who has the group's slots of predictor contexts, when the search is on the GPU.
 *
 * Each lane has some. A predictor with states (an LSTM) needs those of a stream's waiting tokens again in
 * the next chunk: at the end of a chunk a lane gives the stream their slots, and takes spare ones
 * instead. So nothing is copied, and threads of the CPU can go on with the stream.
 *
 *   lanes    [lanes][slots of a lane]
 *   spares   slots for what lanes will give away; those that are left go back to the group */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_SLOTS_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_SLOTS_H

#include "cuda/transducer/transducer_group.h"
#include "search/transducer/device_search_types.h"

typedef WF__VEC(uint32_t) wf__slot_list;

typedef struct wf__slot_store {
  wf__slot_list lanes, spares;
  uint64_t num_sent; /* of the lanes' */
  wf__device_buffer lanes_there, spares_there, kept_there;
  wf__pinned_buffer host_lanes, host_spares, host_kept;
} wf__slot_store;

/* Takes slots of the group, until the lanes have so many. */
wf_status wf__slot_store_grow(wf__slot_store *slots, wf__transducer_group *group, uint64_t count,
                              wf_error *err);
/* Takes spare slots: those that the streams do not need any more, then others of the group. */
wf_status wf__slot_store_spare(wf__slot_store *slots, wf__transducer_group *group,
                               wf__predictions *const *streams, size_t num_streams, uint64_t count,
                               wf_error *err);
/* Enqueues what is new. The group must have room for all slots. */
wf_status wf__slot_store_send(wf__slot_store *slots, wf__transducer_group *group, wf_error *err);
/* With spares: enqueues reading what the lanes have, and `num_kept` slots that they gave away. Then, when
 * the stream is idle, takes that over. */
wf_status wf__slot_store_fetch(wf__slot_store *slots, wf__transducer_group *group,
                               uint64_t num_kept, wf_error *err);
void wf__slot_store_take(wf__slot_store *slots, wf__transducer_group *group,
                         const wf__device_result *results, size_t count);
/* When the stream is idle. */
void wf__slot_store_close(wf__slot_store *slots, wf__transducer_group *group);

#endif
