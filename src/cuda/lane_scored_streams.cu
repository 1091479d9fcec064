/* lane_scored_streams.cu - the search of chunks of streams that have scorers: lane_scored.cu once more. */
#define WF_LANE_STREAMS

#include "lane_scored.cu"
