/* minimize_gpu.c - the host side of minimization on a GPU: the order of launches, and two
 * readbacks: whether arcs must be compared for determinism, and the size of the result. What only
 * the CPU can minimize is refused. */
#include "cuda/fstops/minimize_kernels.h"
#include "cuda/fstops/ops_batch.h"

struct minimization {
  wf__gpu_context *c;
  wf__gpu_blocks *scratch;
  wf__gpu_minimization m;
};

static uint64_t power_of_two(uint64_t least) {
  uint64_t power = 16;
  while (power < least) power *= 2;
  return power;
}

static wf_status reserve(struct minimization *self, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_minimization *m = &self->m;
  uint64_t n = m->f.num_states;
  m->num_slots = power_of_two(2 * n);
  if (m->push) TAKE(c, self->scratch, m->distance, n, "distances");
  TAKE(c, self->scratch, m->arcs, m->f.num_arcs, "arcs");
  TAKE(c, self->scratch, m->final_cost, n, "states");
  TAKE(c, self->scratch, m->unsorted, n, "states");
  TAKE(c, self->scratch, m->counts, WF__MIN_COUNTS, "states");
  TAKE(c, self->scratch, m->first_of, n, "classes of states");
  TAKE(c, self->scratch, m->place, n + 1, "classes of states");
  TAKE(c, self->scratch, m->entered, m->f.num_fsts, "a batch");
  for (int i = 0; i < 2; i++) {
    TAKE(c, self->scratch, m->name[i], n, "classes of states");
    TAKE(c, self->scratch, m->slot[i], n, "classes of states");
    TAKE(c, self->scratch, m->list[i], n, "classes of states");
    TAKE(c, self->scratch, m->names[i], m->num_slots, "classes of states");
    TAKE(c, self->scratch, m->shared[i], m->num_slots, "classes of states");
    WF__CUDA_TRY(cudaMemsetAsync(m->names[i], 0, m->num_slots * sizeof *m->names[i], c->stream),
                 "classes of states");
    WF__CUDA_TRY(cudaMemsetAsync(m->shared[i], 0, m->num_slots * sizeof *m->shared[i], c->stream),
                 "classes of states");
  }
  WF__CUDA_TRY(cudaMemsetAsync(m->unsorted, 0, n * sizeof *m->unsorted, c->stream), "states");
  WF__CUDA_TRY(cudaMemsetAsync(m->counts, 0, WF__MIN_COUNTS * sizeof *m->counts, c->stream),
               "states");
  WF__CUDA_TRY(cudaMemsetAsync(m->entered, 0, m->f.num_fsts * sizeof *m->entered, c->stream),
               "a batch");
  return WF_OK;
}

static wf_status refuse(uint32_t trouble, wf_error *err) {
  const char *what = trouble == WF__MIN_DIVERGED      ? "distances to the end that do not converge"
                     : trouble == WF__MIN_REPEATED    ? "two arcs of a state with the same labels"
                     : trouble == WF__MIN_MANY_ROUNDS ? "states that differ far away"
                                                      : "hashes of states that collide";
  return trouble == 0 ? WF_OK
                      : wf__fail(err, WF_ERR_UNSUPPORTED, "%s: only the CPU minimizes that", what);
}

/* Pushes the costs, and checks that the arcs of each state differ. */
static wf_status prepare(struct minimization *self, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_minimization *m = &self->m;
  uint32_t counts[WF__MIN_COUNTS], *slots;
  if (m->push) WF__CUDA_TRY(wf__minimize_distances(m, c->stream), "distances");
  WF__CUDA_TRY(wf__minimize_push(m, c->stream), "pushing costs");
  READ(c, "pushing costs", VALUE(counts, m->counts));
  WF__TRY(refuse(counts[WF__MIN_TROUBLE], err));
  if (counts[WF__MIN_UNSORTED] == 0) return WF_OK;
  uint64_t num_slots = power_of_two(2 * m->f.num_arcs);
  TAKE(c, self->scratch, slots, num_slots, "arcs");
  WF__CUDA_TRY(cudaMemsetAsync(slots, 0, num_slots * sizeof *slots, c->stream), "arcs");
  WF__CUDA_TRY(wf__minimize_determinism(m, slots, num_slots, c->stream), "arcs");
  return WF_OK;
}

static wf_status find_classes(struct minimization *self, uint64_t *out_sizes, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_minimization *m = &self->m;
  uint64_t count = m->f.num_states + 1;
  uint32_t trouble;
  size_t bytes = 0;
  char *room;
  WF__CUDA_TRY(wf__minimize_classes(m, c->stream), "classes of states");
  WF__CUDA_TRY(wf__minimize_sizes(m, c->stream), "classes of states");
  WF__CUDA_TRY(wf__ops_scan64(m->place, m->place, count, NULL, &bytes, c->stream), "prefix sums");
  TAKE(c, self->scratch, room, bytes, "prefix sums");
  WF__CUDA_TRY(wf__ops_scan64(m->place, m->place, count, room, &bytes, c->stream), "prefix sums");
  READ(c, "classes of states", VALUE(*out_sizes, m->place + count - 1),
       VALUE(trouble, m->counts + WF__MIN_TROUBLE));
  return refuse(trouble, err);
}

struct request {
  const wf__gpu_batch *from;
  const wf_minimize_options *o;
};

static wf_status make_minimized(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                                int how, wf_error *err) {
  const struct request *request = user;
  const wf_minimize_options *o = request->o;
  struct minimization self = {.c = batch->context,
                              .scratch = scratch,
                              .m = {.f = request->from->f,
                                    .inverse_delta = o->delta > 0 ? 1 / (double)o->delta : 0,
                                    .push = o->push_weights}};
  wf__gpu_arrays a;
  uint64_t sizes;
  (void)how;
  batch->trimmed = true;
  if (self.m.f.num_states == 0) return wf__gpu_batch_begin_alike(batch, request->from, &a, err);
  WF__TRY(reserve(&self, err));
  WF__TRY(prepare(&self, err));
  WF__TRY(find_classes(&self, &sizes, err));
  WF__TRY(wf__gpu_batch_reserve(batch, sizes >> 32, (uint32_t)sizes, &a, err));
  WF__CUDA_TRY(wf__minimize_write(&self.m, a.state_base, a.start, a.off, a.final_cost, a.arcs,
                                  self.c->stream),
               "minimization");
  return WF_OK;
}

/* An fst that has states but no start also needs trimming, which removes its states. */
static bool needs_trimming(const wf__gpu_batch *batch) {
  bool needs = !batch->trimmed;
  for (uint64_t i = 0; i < batch->f.num_fsts; i++)
    needs = needs || (batch->start[i] < 0 && batch->state_base[i] != batch->state_base[i + 1]);
  return needs;
}

wf_status wf__gpu_batch_minimize(const wf__gpu_batch *batch, const wf_minimize_options *o,
                                 wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *trimmed = NULL;
  *out = NULL;
  if (batch->log_semiring && o->push_weights)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "costs pushed in the log semiring: only the CPU minimizes that");
  if (!o->encode_labels)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "output labels pushed: only the CPU minimizes that");
  if (needs_trimming(batch)) WF__TRY(wf__gpu_batch_connect(batch, &trimmed, err));
  struct request request = {trimmed != NULL ? trimmed : batch, o};
  wf_status status = wf__gpu_batch_make_on(batch->context, batch->f.num_fsts, batch->log_semiring,
                                           make_minimized, &request, 0, "minimization", out, err);
  wf__gpu_batch_free(trimmed);
  return status;
}
