/* lane_asking_streams.cu - the search of chunks of streams that have a recurrent scorer: lane_asking.cu once more. */
#define WF_LANE_ASKING
#define WF_LANE_STREAMS

#include "lane_scored.cu"
