/* epsilons_gpu.c - the host side of epsilon_kernels.h: order of launches, one readback a round. */
#include "cuda/fstops/epsilons_gpu.h"

/* A path of more epsilons than this is a cycle, or left to the CPU. Output strings of up to 255
 * labels are such paths. */
enum { MAX_ROUNDS = 300 };

static wf_status order_arcs(wf__gpu_context *c, wf__gpu_blocks *room, const wf__gpu_fsts *f,
                            wf_arc *arcs, uint32_t *labelled, wf_error *err) {
  uint32_t *source, *marks, *rank;
  TAKE(c, room, source, f->num_arcs, "epsilons last");
  TAKE(c, room, marks, f->num_arcs + 1, "epsilons last");
  TAKE(c, room, rank, f->num_arcs + 1, "epsilons last");
  WF__CUDA_TRY(wf__ops_source(f, source, c->stream), "epsilons last");
  WF__CUDA_TRY(wf__epsilon_marks(f, marks, c->stream), "epsilons last");
  WF__TRY(wf__gpu_scan(c, room, marks, rank, f->num_arcs + 1, err));
  WF__CUDA_TRY(wf__epsilons_last(f, source, rank, arcs, labelled, c->stream), "epsilons last");
  return wf__ops_finish(c, "epsilons last", err);
}

wf_status wf__gpu_epsilons_last(wf__gpu_context *c, const wf__gpu_fsts *f, wf_arc *arcs,
                                uint32_t *labelled, wf_error *err) {
  wf__gpu_blocks room = {.count = 0};
  wf_status status = order_arcs(c, &room, f, arcs, labelled, err);
  wf__ops_release(c, &room);
  return status;
}

/* One round of counting. flags [WF__WAYS_FLAGS] is host memory. */
static wf_status count_ways(wf__gpu_context *c, const wf__gpu_fsts *f, const wf__gpu_ways *ways,
                            uint64_t *count, uint64_t *before, char *scratch, size_t bytes,
                            uint32_t *on_device, uint32_t *flags, wf_error *err) {
  WF__CUDA_TRY(cudaMemsetAsync(on_device, 0, WF__WAYS_FLAGS * sizeof *on_device, c->stream),
               "ways along epsilons");
  WF__CUDA_TRY(wf__epsilon_offers(f, ways->arcs, count, before, c->stream), "ways along epsilons");
  WF__CUDA_TRY(wf__ops_scan64(before, before, f->num_arcs + 1, scratch, &bytes, c->stream),
               "prefix sums");
  WF__CUDA_TRY(wf__epsilon_sums(f, ways->labelled, before, count, on_device, c->stream),
               "ways along epsilons");
  READ(c, "ways along epsilons", {flags, on_device, WF__WAYS_FLAGS * sizeof *flags});
  return WF_OK;
}

wf_status wf__gpu_ways_find(wf__gpu_context *c, wf__gpu_blocks *blocks, const wf__gpu_fsts *f,
                            wf__gpu_ways *out, wf_error *err) {
  uint32_t *labelled, *on_device, flags[WF__WAYS_FLAGS] = {1, 0};
  uint64_t *count, *before;
  size_t bytes = 0;
  wf_arc *arcs;
  char *scratch;
  TAKE(c, blocks, arcs, f->num_arcs, "ways along epsilons");
  TAKE(c, blocks, labelled, f->num_states, "ways along epsilons");
  TAKE(c, blocks, count, f->num_states, "ways along epsilons");
  TAKE(c, blocks, before, f->num_arcs + 1, "ways along epsilons");
  TAKE(c, blocks, on_device, WF__WAYS_FLAGS, "ways along epsilons");
  WF__TRY(wf__gpu_epsilons_last(c, f, arcs, labelled, err));
  *out = (wf__gpu_ways){arcs, labelled, count, before};
  WF__CUDA_TRY(wf__epsilon_begin(f, labelled, count, c->stream), "ways along epsilons");
  WF__CUDA_TRY(wf__ops_scan64(before, before, f->num_arcs + 1, NULL, &bytes, c->stream),
               "prefix sums");
  TAKE(c, blocks, scratch, bytes, "prefix sums");
  for (int round = 0; flags[WF__WAYS_CHANGED] != 0; round++) {
    if (round == MAX_ROUNDS || flags[WF__WAYS_MANY] != 0)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "a cycle of epsilons, or too many paths of them: only the CPU determinizes "
                      "that");
    WF__TRY(count_ways(c, f, out, count, before, scratch, bytes, on_device, flags, err));
  }
  return WF_OK;
}
