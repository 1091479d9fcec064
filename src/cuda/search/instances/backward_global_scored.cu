/* backward_global_scored.cu - the same for utterances that are searched as with a scorer. */
#define WF_LANE_SCORED
#define WF_BACKWARD_GLOBAL

#include "cuda/device/ngram_cache.cuh"

#include "cuda/search/instances/kernels.cuh"
