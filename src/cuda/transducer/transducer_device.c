/* transducer_device.c - what a GPU does for transducers (search/transducer/transducer_device.h). */
#include "cuda/device/gpu_profile.h"
#include "cuda/transducer/transducer_group.h"
#include "cuda/transducer/transducer_lane_rounds.h"

const struct wf__device_transducer wf__cuda_transducer = {
    .count_gpus = wf__gpu_count,
    .weights_send = wf__gpu_transducer_weights_send,
    .weights_free = wf__gpu_transducer_weights_free,
    .scores_where = wf__gpu_transducer_scores_where,
    .group_open = wf__transducer_group_open,
    .group_close = wf__transducer_group_close,
    .group_begin = wf__transducer_group_begin,
    .group_put = wf__transducer_group_put,
    .group_release = wf__transducer_group_release,
    .group_submit = wf__transducer_group_submit,
    .group_wait = wf__transducer_group_wait,
    .search_fits = wf__lane_rounds_fits,
    .search_open = wf__lane_rounds_open,
    .search_close = wf__lane_rounds_close,
    .search_room = wf__lane_rounds_room,
    .search_begin = wf__lane_rounds_begin,
    .search_load = wf__lane_rounds_load,
    .search_go_on = wf__lane_rounds_go_on,
    .search_end = wf__lane_rounds_end};
