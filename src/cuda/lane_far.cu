/* lane_far.cu - the way back for lattices (lane_back.cuh) once more, of utterances without scorers whose frames have more tokens in their lattice than shared memory has room for: its tables are
 * in device memory. */
#define WF_LANE_FAR

#include "lane_search.cu"
