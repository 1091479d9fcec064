/* lane_asking.cu - the search with a recurrent scorer: lane_scored.cu once more, with lane_asking.cuh in place of scorers that are tables. */
#define WF_LANE_ASKING

#include "lane_scored.cu"
