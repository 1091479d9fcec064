/* minimize_gpu.c - partition refinement on a GPU in rounds over all states, from the host's side: it looks at the number of classes after each. */
#if defined(WARPFST_CUDA) || defined(FAKE_CUDA)
#include "cuda/minimize_gpu.h"

#include "cuda/minimize_kernels.h"
#include "cuda/ops_batch.h"

struct refinement {
  wf__gpu_context *c;
  wf__gpu_partition p;
  char *room[2]; /* of sorts and of sums */
  size_t bytes[2];
};

static wf_status reserve(struct refinement *r, wf__gpu_blocks *scratch, wf_error *err) {
  wf__gpu_context *c = r->c;
  uint64_t n = r->p.f.num_states, m = r->p.f.num_arcs;
  TAKE(c, scratch, r->p.source, m, "arcs");
  TAKE(c, scratch, r->p.arc_hash, m, "arcs");
  TAKE(c, scratch, r->p.sums, n, "classes of states");
  TAKE(c, scratch, r->p.sorted, n, "classes of states");
  TAKE(c, scratch, r->p.states, n, "classes of states");
  TAKE(c, scratch, r->p.order, n, "classes of states");
  TAKE(c, scratch, r->p.flags, n + 1, "classes of states");
  TAKE(c, scratch, r->p.rank, n + 1, "classes of states");
  TAKE(c, scratch, r->p.class_of, n, "classes of states");
  WF__CUDA_TRY(wf__minimize_sort(r->p.sums, r->p.sorted, r->p.states, r->p.order, n, NULL, &r->bytes[0], c->stream), "sorting");
  WF__CUDA_TRY(wf__ops_scan(r->p.flags, r->p.rank, n + 1, NULL, &r->bytes[1], c->stream), "prefix sums");
  for (int i = 0; i < 2; i++) TAKE(c, scratch, r->room[i], r->bytes[i], "classes of states");
  return WF_OK;
}

/* Classes of the states whose sums are equal. */
static wf_status part(struct refinement *r, uint32_t *out_num_classes, wf_error *err) {
  const wf__gpu_partition *p = &r->p;
  cudaStream_t stream = r->c->stream;
  WF__CUDA_TRY(wf__minimize_sort(p->sums, p->sorted, p->states, p->order, p->f.num_states, r->room[0], &r->bytes[0], stream), "sorting");
  WF__CUDA_TRY(wf__minimize_flags(p, stream), "classes of states");
  WF__CUDA_TRY(wf__ops_scan(p->flags, p->rank, p->f.num_states + 1, r->room[1], &r->bytes[1], stream), "prefix sums");
  WF__CUDA_TRY(wf__minimize_assign(p, stream), "classes of states");
  WF__TRY(wf__ops_to_host(r->c, out_num_classes, p->rank + p->f.num_states, sizeof *out_num_classes, err));
  return wf__ops_finish(r->c, "classes of states", err);
}

static wf_status refine(struct refinement *r, uint32_t max_rounds, uint32_t *class_of, uint32_t *out_num_classes, uint32_t *out_num_rounds, wf_error *err) {
  const wf__gpu_partition *p = &r->p;
  cudaStream_t stream = r->c->stream;
  uint32_t before = 0;
  WF__CUDA_TRY(wf__ops_source(&p->f, p->source, stream), "arcs");
  WF__CUDA_TRY(wf__minimize_begin(p, stream), "classes of states");
  WF__TRY(part(r, out_num_classes, err));
  for (*out_num_rounds = 0; *out_num_classes != before; ++*out_num_rounds) {
    if (*out_num_rounds == max_rounds) return wf__fail(err, WF_ERR_LIMIT, "states still part after %u rounds", max_rounds);
    before = *out_num_classes;
    WF__CUDA_TRY(wf__minimize_sums(p, stream), "classes of states");
    WF__TRY(part(r, out_num_classes, err));
  }
  WF__CUDA_TRY(wf__minimize_firsts(p, stream), "classes of states");
  WF__CUDA_TRY(wf__ops_scan(p->flags, p->rank, p->f.num_states + 1, r->room[1], &r->bytes[1], stream), "prefix sums");
  WF__CUDA_TRY(wf__minimize_renumber(p, stream), "classes of states");
  WF__TRY(wf__ops_to_host(r->c, class_of, p->class_of, p->f.num_states * sizeof *class_of, err));
  return wf__ops_finish(r->c, "classes of states", err);
}

wf_status wf__gpu_batch_classes(const wf__gpu_batch *batch, double delta, uint32_t max_rounds, uint32_t *class_of, uint32_t *out_num_classes, uint32_t *out_num_rounds, wf_error *err) {
  wf__gpu_blocks scratch = {.count = 0};
  struct refinement r = {.c = batch->context, .p = {.f = batch->f, .inverse_delta = delta > 0 ? 1 / delta : 0}};
  *out_num_classes = *out_num_rounds = 0;
  if (batch->f.num_states == 0) return WF_OK;
  WF__CUDA_TRY(cudaSetDevice(r.c->device), "choosing the GPU");
  wf_status status = reserve(&r, &scratch, err);
  if (status == WF_OK) status = refine(&r, max_rounds, class_of, out_num_classes, out_num_rounds, err);
  wf__ops_give_back(r.c, &scratch);
  return status;
}
#endif
