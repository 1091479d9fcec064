/* token_table.cuh - a lane's table of the tokens of a frame, by key.
 *
 *   value of a slot  ordered cost << 32 | arc + 1            the token as the emission or an
 *                    earlier epsilon round left it ordered cost << 32 | FRESH | arc + 1    from
 *                    this epsilon round: loses ties against what stood before all ones
 *                    no token (yet, or no longer)
 *   key              HAS_EPSILONS (1 bit) | state            HAS_EPSILONS: it has epsilon arcs
 *   with scorers     HAS_EPSILONS (1 bit) | state | context (context_bits)
 *
 * The key's hash names the rank that owns it (top bits) and its home there, the slots that one load
 * of shared memory shows (the next bits); then come the next ones. They are taken in order, so a
 * key is never behind a free slot. A frame uses 2^bits slots.
 *
 * The policy says which table it is: shared_table.cuh, or fingerprint_table.cuh, whose keys are
 * wider and whose frames may be larger. */
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
