/* token_table.cuh - a lane's table of the tokens of a frame, by key.
 *
 *   value of a slot  ordered cost << 32 | arc + 1          token of the emission or of an earlier
 *                                                          epsilon round
 *                    ordered cost << 32 | FRESH | arc + 1  token of this epsilon round: loses ties
 *                                                          against the older value
 *                    all ones                              no token (yet, or no longer)
 *   key              HAS_EPSILONS (1 bit) | state          HAS_EPSILONS: it has epsilon arcs
 *   with scorers     HAS_EPSILONS (1 bit) | state | context (context_bits)
 *
 * The top bits of the key's hash give the rank that owns it; the next bits give its home there. A
 * home is the group of slots that one load of shared memory reads. Probing continues with the next
 * homes. Slots are taken in order, so a key is never behind a free slot. A frame uses 2^bits slots.
 *
 * The policy selects the table: shared_table.cuh, or fingerprint_table.cuh, with longer keys and
 * more tokens in a frame. */
#ifndef WF_CUDA_SEARCH_TOKEN_TABLE_CUH
#define WF_CUDA_SEARCH_TOKEN_TABLE_CUH

#include "cuda/search/fingerprint_table.cuh"
#include "cuda/search/shared_table.cuh"

namespace wf_search {

template <class POLICY, int RANKS>
using token_table =
    std::conditional_t<std::is_same<typename POLICY::table, keys_in_shared>::value,
                       shared_table<POLICY, RANKS>, fingerprint_table<POLICY, RANKS>>;

}  // namespace wf_search

#endif
