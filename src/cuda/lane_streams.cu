/* lane_streams.cu - the search of chunks of streams: lane_search.cu once more, with what lane_stream.cuh has for the two ends of a chunk. */
#define WF_LANE_STREAMS

#include "lane_search.cu"
