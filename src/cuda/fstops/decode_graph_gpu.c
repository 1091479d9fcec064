/* decode_graph_gpu.c - see search/graph_device.h. */
#include "cuda/fstops/decode_graph_kernels.h"
#include "cuda/fstops/ops_batch.h"
#include "search/graph_device.h"

static const char what[] = "a decoding graph";

/* Takes away the states that no epsilon cycle leads into, round by round. */
static wf_status peel(wf__gpu_context *c, const wf__gpu_look *look, wf__graph_facts *facts,
                      wf_error *err) {
  for (uint64_t begin = 0; begin < facts->num_acyclic;) {
    const uint64_t end = facts->num_acyclic;
    WF__CUDA_TRY(wf__peel_states(look, begin, end, c->stream), what);
    READ(c, what, VALUE(*facts, look->facts));
    begin = end;
  }
  return WF_OK;
}

static wf_status look_at(wf__gpu_context *c, wf__gpu_blocks *room, wf__gpu_look *look,
                         wf__graph_facts *out, wf_error *err) {
  *out = (wf__graph_facts){.bad_arc = WF__NO_BAD_ARC};
  TAKE(c, room, look->degree, look->num_states, what);
  TAKE(c, room, look->queue, look->num_states, what);
  TAKE(c, room, look->facts, 1, what);
  WF__CUDA_TRY(cudaMemsetAsync(look->degree, 0, look->num_states * sizeof *look->degree, c->stream),
               what);
  WF__TRY(wf__ops_to_device(c, look->facts, out, sizeof *out, err));
  WF__CUDA_TRY(wf__look_at_arcs(look, c->stream), what);
  WF__CUDA_TRY(wf__peel_begin(look, c->stream), what);
  READ(c, what, VALUE(*out, look->facts));
  return out->is_unordered == 0 && out->has_epsilons != 0 ? peel(c, look, out, err) : WF_OK;
}

static wf_status look_on(int device, const wf_fst_view *view, wf__graph_facts *out,
                         wf__state_index **out_index, wf_error *err) {
  wf__gpu_context *c;
  wf__gpu_operation looking;
  WF__TRY(wf__gpu_context_create(device, &c, err));
  wf_status status = wf__gpu_begin(c, &looking, err);
  if (status != WF_OK) {
    wf__gpu_context_release(c);
    return status;
  }
  status =
      wf__unified_alloc((void **)out_index, (view->num_states + 1) * sizeof **out_index, what, err);
  wf__gpu_look look = {.off = view->arc_off,
                       .arcs = view->arcs,
                       .num_states = view->num_states,
                       .index = (uint32_t *)*out_index};
  if (status == WF_OK) status = look_at(c, &looking.scratch, &look, out, err);
  wf__gpu_end(&looking);
  wf__gpu_context_release(c);
  return status;
}

wf_status wf__gpu_look_at_graph(const wf_fst_view *view, int device, wf__graph_facts *out,
                                wf__state_index **out_index, wf_error *err) {
  *out_index = NULL;
  wf_status status = look_on(device, view, out, out_index, err);
  if (status == WF_OK) return WF_OK;
  wf__gpu_index_free(*out_index);
  *out_index = NULL;
  return status;
}

void wf__gpu_index_free(wf__state_index *index) {
  if (index != NULL) wf__unified_free(index);
}
