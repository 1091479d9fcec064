/* search_kernels.c - lists the kernels of each kind of search. Each row belongs to one instance
 * file.
 */
#include <stddef.h>

#include "cuda/search/search_params.h"

int wf__search_plain_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__backward_plain_launch(const wf__lane_params *params, wf__backward_tables tables,
                              void *stream);
int wf__search_plain_capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                              int *out_lanes);
int wf__search_plain_streams_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__search_plain_streams_capacity(const wf__gpu_profile *profile, int ranks,
                                      int32_t num_columns, int *out_lanes);
int wf__search_boosted_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__search_boosted_capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                                int *out_lanes);
int wf__search_boosted_streams_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__search_boosted_streams_capacity(const wf__gpu_profile *profile, int ranks,
                                        int32_t num_columns, int *out_lanes);
int wf__search_scored_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__backward_scored_launch(const wf__lane_params *params, wf__backward_tables tables,
                               void *stream);
int wf__search_scored_capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                               int *out_lanes);
int wf__search_scored_streams_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__search_scored_streams_capacity(const wf__gpu_profile *profile, int ranks,
                                       int32_t num_columns, int *out_lanes);
int wf__search_deferred_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__search_deferred_capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                                 int *out_lanes);
int wf__search_deferred_streams_launch(const wf__lane_params *params, void *stream, void *begun);
int wf__search_deferred_streams_capacity(const wf__gpu_profile *profile, int ranks,
                                         int32_t num_columns, int *out_lanes);
int wf__backward_plain_global_launch(const wf__lane_params *params, wf__backward_tables tables,
                                     void *stream);
uint64_t wf__backward_plain_global_bytes(uint32_t num_lattices);
int wf__backward_scored_global_launch(const wf__lane_params *params, wf__backward_tables tables,
                                      void *stream);
uint64_t wf__backward_scored_global_bytes(uint32_t num_lattices);

static int plain_backward(const wf__lane_params *params, wf__backward_tables tables, void *stream) {
  return (tables == WF__BACKWARD_GLOBAL ? wf__backward_plain_global_launch
                                        : wf__backward_plain_launch)(params, tables, stream);
}

static int scored_backward(const wf__lane_params *params, wf__backward_tables tables,
                           void *stream) {
  return (tables == WF__BACKWARD_GLOBAL ? wf__backward_scored_global_launch
                                        : wf__backward_scored_launch)(params, tables, stream);
}

const wf__search_kernels wf__search_kernels_of[WF__SEARCH_KINDS] = {
    [WF__SEARCH_PLAIN] = {wf__search_plain_launch, plain_backward, wf__backward_plain_global_bytes,
                          wf__search_plain_capacity},
    [WF__SEARCH_BOOSTED] = {wf__search_boosted_launch, NULL, NULL, wf__search_boosted_capacity},
    [WF__SEARCH_SCORED] = {wf__search_scored_launch, scored_backward,
                           wf__backward_scored_global_bytes, wf__search_scored_capacity},
    [WF__SEARCH_DEFERRED] = {wf__search_deferred_launch, NULL, NULL, wf__search_deferred_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_PLAIN] = {wf__search_plain_streams_launch, NULL, NULL,
                                               wf__search_plain_streams_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_BOOSTED] = {wf__search_boosted_streams_launch, NULL, NULL,
                                                 wf__search_boosted_streams_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_SCORED] = {wf__search_scored_streams_launch, NULL, NULL,
                                                wf__search_scored_streams_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_DEFERRED] = {wf__search_deferred_streams_launch, NULL, NULL,
                                                  wf__search_deferred_streams_capacity},
};
