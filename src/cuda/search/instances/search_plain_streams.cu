/* search_plain_streams.cu - the search of chunks of streams, with what stream_ends.cuh has for the two ends of a chunk. */
#define WF_LANE_STREAMS

#include "cuda/search/instances/kernels.cuh"
