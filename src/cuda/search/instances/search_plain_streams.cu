/* search_plain_streams.cu - the search of chunks of streams without scorers. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(plain_streams)
