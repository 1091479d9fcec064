/* chain_gpu.h - composition of more than two fsts on a GPU: the composition on the left of another
 * is not written. Its states are made when the other composition first visits them, as on the CPU
 * (fstops/compose_chain.h). */
#ifndef WF_CUDA_COMPOSE_CHAIN_GPU_H
#define WF_CUDA_COMPOSE_CHAIN_GPU_H

#include "cuda/compose/sparse_gpu.h"

/* `sparse` has the inputs of the composition and becomes the chain's, also on failure. `next` is
 * the right side of the composition that visits the chain's states. */
wf_status wf__sparse_chain_create(wf__sparse *sparse, const wf__compose_side *next,
                                  const wf_compose_options *options, wf__sparse_chain **out,
                                  wf_error *err);
/* Frees the chain and those on its left. Accepts NULL. */
void wf__sparse_chain_free(wf__sparse_chain *chain);
/* Device memory of the chain and those on its left. Accepts NULL. */
uint64_t wf__sparse_chain_bytes(const wf__sparse_chain *chain);

/* Makes the states that are A's in these pairs of the other composition, if they were not made
 * before. `keys` [count] is device memory. Sets the fields of A in the other composition's `in`,
 * whose arrays may have moved. */
wf_status wf__sparse_chain_make(wf__sparse_chain *chain, const uint64_t *keys, uint64_t count,
                                wf__sparse_inputs *in, wf_error *err);
/* Writes the keys of the pairs that a search with a chain found to `keys` [search->count], in
 * canonical order. */
wf_status wf__sparse_chain_sort(const wf__sparse_search *search, wf__gpu_blocks *room,
                                uint64_t *keys, wf_error *err);

#endif
