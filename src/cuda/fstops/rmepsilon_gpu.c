/* rmepsilon_gpu.c - the host side of epsilon removal on a GPU: trimming, marks, levels of epsilon
 * arcs, the results of each level, output. The host reads back two numbers a level: the items, and
 * the arcs that remain after merging. */
#include "cuda/fstops/rmepsilon_kernels.h"

#include "cuda/fstops/minimize_kernels.h"
#include "cuda/fstops/ops_batch.h"

struct removal {
  wf__gpu_context *c;
  wf__gpu_blocks *scratch;
  bool log_semiring;
  wf__gpu_removal r;
  wf__gpu_incoming in; /* incoming epsilon arcs */
  wf__gpu_levels levels;
  uint32_t num_levels;
  uint32_t *level_state, *level_arc; /* [num_levels + 1] in host memory: where levels begin in the
                                        order, and in arc_at */
  wf__gpu_blocks pools;              /* memory of results; only the last block has free space */
  wf_arc *pool;
  uint64_t pool_size, pool_cap;
};

/* --- the graph of epsilons, its levels --------------------------------------------------- */

/* Marks the states that are reachable from the starts: all of them if all fsts are trimmed. */
static wf_status find_reached(struct removal *self, bool trimmed, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t n = self->r.f.num_states;
  uint32_t *list, *counts;
  TAKE(c, self->scratch, self->r.reached, n, "marks");
  WF__CUDA_TRY(cudaMemsetAsync(self->r.reached, trimmed, n * sizeof *self->r.reached, c->stream),
               "marks");
  if (trimmed) return WF_OK;
  TAKE(c, self->scratch, list, 2 * n, "a search");
  TAKE(c, self->scratch, counts, 3, "a search");
  WF__CUDA_TRY(
      wf__ops_reach(&self->r.f, &self->in, false, self->r.reached, list, counts, c->stream),
      "a search");
  return WF_OK;
}

static wf_status find_epsilons(struct removal *self, bool trimmed, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_removal *r = &self->r;
  uint64_t n = r->f.num_states, m = r->f.num_arcs, *off;
  uint32_t *source, num_epsilons;
  wf_arc *arcs;
  TAKE(c, self->scratch, source, m, "arcs");
  TAKE(c, self->scratch, r->kept, n, "marks");
  TAKE(c, self->scratch, r->is_epsilon, m + 1, "marks");
  TAKE(c, self->scratch, r->rank, m + 1, "marks");
  r->source = source;
  WF__CUDA_TRY(wf__ops_source(&r->f, source, c->stream), "arcs");
  WF__CUDA_TRY(cudaMemsetAsync(r->kept, 0, n * sizeof *r->kept, c->stream), "marks");
  WF__TRY(find_reached(self, trimmed, err));
  WF__CUDA_TRY(wf__rmepsilon_marks(r, c->stream), "marks");
  WF__TRY(wf__gpu_scan(self->c, self->scratch, r->is_epsilon, r->rank, m + 1, err));
  WF__TRY(wf__ops_to_host(c, &num_epsilons, r->rank + m, sizeof num_epsilons, err));
  WF__TRY(wf__ops_finish(c, "epsilon arcs", err));
  TAKE(c, self->scratch, off, n + 1, "epsilon arcs");
  TAKE(c, self->scratch, arcs, num_epsilons, "epsilon arcs");
  WF__CUDA_TRY(wf__rmepsilon_epsilons(r, off, arcs, c->stream), "epsilon arcs");
  r->epsilons = r->f;
  r->epsilons.num_arcs = num_epsilons;
  r->epsilons.off = off;
  r->epsilons.arcs = arcs;
  return WF_OK;
}

/* Finds where levels begin (in host memory) and the arcs in the order of levels (on the device). */
static wf_status find_levels(struct removal *self, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_removal *r = &self->r;
  wf__gpu_sums unused = {0};
  uint64_t n = r->f.num_states, count;
  uint32_t num_done, *level_arc;
  WF__TRY(wf__gpu_levels_find(c, self->scratch, &r->epsilons, false, false, &self->in,
                              &self->levels, &unused, &self->num_levels, &num_done, err));
  if (num_done != n)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "a cycle of epsilons: only the CPU removes those");
  r->order = self->levels.order;
  count = self->num_levels + 1;
  self->level_state = wf__alloc(count, sizeof *self->level_state);
  self->level_arc = wf__alloc(count, sizeof *self->level_arc);
  if (self->level_state == NULL || self->level_arc == NULL)
    return wf__fail_memory(err, count * 8, "levels");
  WF__TRY(wf__ops_to_host(c, self->level_state, self->levels.level_off,
                          count * sizeof *self->level_state, err));
  WF__TRY(wf__ops_finish(c, "levels", err));
  TAKE(c, self->scratch, r->position, n, "levels");
  TAKE(c, self->scratch, r->degree, n + 1, "levels");
  TAKE(c, self->scratch, r->first_arc, n + 1, "levels");
  TAKE(c, self->scratch, r->arc_at, r->f.num_arcs, "levels");
  TAKE(c, self->scratch, r->results, n, "results of states");
  TAKE(c, self->scratch, level_arc, count, "levels");
  WF__CUDA_TRY(wf__rmepsilon_begin(r, self->level_state[1], c->stream), "levels");
  WF__TRY(wf__gpu_scan(self->c, self->scratch, r->degree, r->first_arc, n + 1, err));
  WF__CUDA_TRY(wf__rmepsilon_arcs(r, c->stream), "levels");
  WF__CUDA_TRY(
      wf__rmepsilon_level_arcs(r, self->levels.level_off, (uint32_t)count, level_arc, c->stream),
      "levels");
  WF__TRY(wf__ops_to_host(c, self->level_arc, level_arc, count * sizeof *level_arc, err));
  return wf__ops_finish(c, "levels", err);
}

/* --- levels ------------------------------------------------------------------------------ */

/* Allocates `count` arcs, which later levels will read. */
static wf_status take_pool(struct removal *self, uint64_t count, wf_arc **out, wf_error *err) {
  if (self->pool_cap - self->pool_size < count) {
    self->pool_cap = 2 * self->pool_cap > count ? 2 * self->pool_cap : count;
    self->pool_size = 0;
    TAKE(self->c, &self->pools, self->pool, self->pool_cap, "arcs");
  }
  *out = self->pool + self->pool_size;
  self->pool_size += count;
  return WF_OK;
}

static wf_status make_items(struct removal *self, wf__gpu_blocks *room,
                            wf__gpu_removal_level *level, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t count = level->num_items;
  if (count >= UINT32_MAX)
    return wf__fail(
        err, WF_ERR_LIMIT,
        "%llu arcs before equal ones are merged, at most 2^32 - 2: the CPU may have room",
        (unsigned long long)count);
  TAKE(c, room, level->arcs, count, "arcs");
  TAKE(c, room, level->costs, count, "arcs");
  TAKE(c, room, level->owner, count, "arcs");
  TAKE(c, room, level->hash, count, "arcs");
  TAKE(c, room, level->sorted, count, "arcs");
  TAKE(c, room, level->index, count, "arcs");
  TAKE(c, room, level->by_hash, count, "arcs");
  TAKE(c, room, level->stays, count + 1, "arcs");
  TAKE(c, room, level->place, count + 1, "arcs");
  WF__CUDA_TRY(wf__rmepsilon_items(&self->r, level, c->stream), "arcs");
  return WF_OK;
}

/* Merges equal items. */
static wf_status merge_items(struct removal *self, wf__gpu_blocks *room,
                             wf__gpu_removal_level *level, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t count = level->num_items;
  size_t bytes[2] = {0, 0};
  char *scratch[2];
  uint32_t num_arcs;
  WF__CUDA_TRY(wf__ops_sort64(level->hash, level->sorted, level->index, level->by_hash, count, 64,
                              NULL, &bytes[0], c->stream),
               "sorting");
  WF__CUDA_TRY(wf__ops_scan(level->stays, level->place, count + 1, NULL, &bytes[1], c->stream),
               "prefix sums");
  for (int i = 0; i < 2; i++) TAKE(c, room, scratch[i], bytes[i], "sorting");
  if (count != 0)
    WF__CUDA_TRY(wf__ops_sort64(level->hash, level->sorted, level->index, level->by_hash, count, 64,
                                scratch[0], &bytes[0], c->stream),
                 "sorting");
  WF__CUDA_TRY(wf__rmepsilon_merge(&self->r, level, self->log_semiring, c->stream), "arcs");
  WF__CUDA_TRY(
      wf__ops_scan(level->stays, level->place, count + 1, scratch[1], &bytes[1], c->stream),
      "prefix sums");
  WF__TRY(wf__ops_to_host(c, &num_arcs, level->place + count, sizeof num_arcs, err));
  WF__TRY(wf__ops_finish(c, "arcs", err));
  WF__TRY(take_pool(self, num_arcs, &level->pool, err));
  WF__CUDA_TRY(wf__rmepsilon_store(&self->r, level, c->stream), "arcs");
  return WF_OK;
}

static wf_status do_level(struct removal *self, uint32_t k, wf__gpu_blocks *room, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_removal_level level = {.first_state = self->level_state[k],
                                 .num_states = self->level_state[k + 1] - self->level_state[k],
                                 .first_arc = self->level_arc[k],
                                 .num_arcs = self->level_arc[k + 1] - self->level_arc[k]};
  TAKE(c, room, level.item_off, (uint64_t)level.num_arcs + 1, "arcs");
  WF__CUDA_TRY(wf__rmepsilon_count(&self->r, &level, self->log_semiring, c->stream), "arcs");
  WF__TRY(wf__gpu_scan64(self->c, room, level.item_off, (uint64_t)level.num_arcs + 1, err));
  WF__TRY(wf__ops_to_host(c, &level.num_items, level.item_off + level.num_arcs,
                          sizeof level.num_items, err));
  WF__TRY(wf__ops_finish(c, "arcs", err));
  WF__TRY(make_items(self, room, &level, err));
  return merge_items(self, room, &level, err);
}

/* --- output ------------------------------------------------------------------------------ */

static wf_status write_result(struct removal *self, const uint32_t *drop, wf__gpu_batch *batch,
                              wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_fsts *f = &self->r.f;
  wf__gpu_arrays a;
  uint64_t n = f->num_states, *off, num_arcs;
  uint32_t *written, *number, *from, num_states;
  float *final_cost;
  TAKE(c, self->scratch, written, n + 1, "states");
  TAKE(c, self->scratch, number, n + 1, "states");
  TAKE(c, self->scratch, from, n, "states");
  TAKE(c, self->scratch, off, n + 1, "states");
  TAKE(c, self->scratch, final_cost, n, "states");
  WF__CUDA_TRY(wf__rmepsilon_written(&self->r, drop, written, c->stream), "states");
  WF__TRY(wf__gpu_scan(self->c, self->scratch, written, number, n + 1, err));
  WF__CUDA_TRY(wf__rmepsilon_sizes(&self->r, written, number, off, final_cost, from, c->stream),
               "states");
  WF__TRY(wf__ops_to_host(c, &num_states, number + n, sizeof num_states, err));
  WF__TRY(wf__ops_finish(c, "states", err));
  WF__TRY(wf__gpu_scan64(self->c, self->scratch, off, (uint64_t)num_states + 1, err));
  WF__TRY(wf__ops_to_host(c, &num_arcs, off + num_states, sizeof num_arcs, err));
  WF__TRY(wf__ops_finish(c, "arcs", err));
  WF__TRY(wf__gpu_batch_reserve(batch, num_states, num_arcs, &a, err));
  WF__CUDA_TRY(cudaMemcpyAsync(a.off, off, ((uint64_t)num_states + 1) * sizeof *off,
                               cudaMemcpyDeviceToDevice, c->stream),
               "states");
  WF__CUDA_TRY(cudaMemcpyAsync(a.final_cost, final_cost, num_states * sizeof *final_cost,
                               cudaMemcpyDeviceToDevice, c->stream),
               "states");
  WF__CUDA_TRY(
      wf__rmepsilon_fill(&self->r, number, from, off, num_states, num_arcs, a.arcs, c->stream),
      "arcs");
  WF__CUDA_TRY(wf__ops_compact_bases(f, written, number, a.state_base, a.start, c->stream),
               "a batch");
  return WF_OK;
}

/* trimmed: whether each fst was trimmed. In a trimmed fst, states that only epsilons enter are
 * dropped. */
struct request {
  const wf__gpu_batch *from;
  const uint32_t *trimmed; /* [num_fsts] in host memory */
};

static wf_status remove_epsilons(struct removal *self, const struct request *request,
                                 wf__gpu_batch *batch, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint32_t *drop;
  uint64_t count = request->from->f.num_fsts;
  bool trimmed = true;
  for (uint64_t i = 0; i < count; i++) trimmed = trimmed && request->trimmed[i] != 0;
  TAKE(c, self->scratch, drop, count, "a batch");
  WF__TRY(wf__ops_to_device(c, drop, request->trimmed, count * sizeof *drop, err));
  WF__TRY(find_epsilons(self, trimmed, err));
  WF__TRY(find_levels(self, err));
  for (uint32_t k = 1; k < self->num_levels; k++) {
    wf__gpu_blocks room = {.count = 0};
    wf_status status = do_level(self, k, &room, err);
    wf__ops_release(c, &room);
    WF__TRY(status);
  }
  return write_result(self, drop, batch, err);
}

/* A batch without states has no levels and is only copied. */
static wf_status make_removal(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                              int how, wf_error *err) {
  const struct request *request = user;
  struct removal self = {.c = batch->context,
                         .scratch = scratch,
                         .log_semiring = batch->log_semiring,
                         .r = {.f = request->from->f}};
  wf__gpu_arrays a;
  (void)how;
  if (self.r.f.num_states == 0) return wf__gpu_batch_begin_alike(batch, request->from, &a, err);
  wf_status status = remove_epsilons(&self, request, batch, err);
  wf__ops_release(self.c, &self.pools);
  free(self.level_state);
  free(self.level_arc);
  return status;
}

/* --- entry point ------------------------------------------------------------------------- */

/* Sets moderate[i] to 1 if all sums of costs of fst i are finite, by the CPU's rule. */
static wf_status find_moderate(const wf__gpu_batch *batch, wf__gpu_blocks *scratch,
                               uint32_t *moderate, wf_error *err) {
  wf__gpu_context *c = batch->context;
  uint64_t count = batch->f.num_fsts;
  uint32_t *source, *flags;
  for (uint64_t i = 0; i < count; i++) moderate[i] = 1;
  TAKE(c, scratch, source, batch->f.num_arcs, "arcs");
  TAKE(c, scratch, flags, count, "a batch");
  WF__TRY(wf__ops_to_device(c, flags, moderate, count * sizeof *flags, err));
  if (batch->f.num_states != 0) {
    WF__CUDA_TRY(wf__ops_source(&batch->f, source, c->stream), "arcs");
    WF__CUDA_TRY(wf__rmepsilon_moderate(&batch->f, source, flags, c->stream), "costs");
  }
  WF__TRY(wf__ops_to_host(c, moderate, flags, count * sizeof *flags, err));
  return wf__ops_finish(c, "costs", err);
}

/* Same order as on the CPU: fsts whose sums of costs may become infinite are trimmed after epsilon
 * removal, the others before. Fsts without a start become empty in either case. */
static wf_status trim_and_remove(const wf__gpu_batch *batch, bool connect, uint32_t *before,
                                 uint32_t *behind, wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *trimmed = NULL, *removed = NULL;
  wf__gpu_operation looking;
  bool any_behind = false;
  WF__TRY(wf__gpu_begin(batch->context, &looking, err));
  wf_status status = find_moderate(batch, &looking.scratch, before, err);
  wf__gpu_end(&looking);
  WF__TRY(status);
  for (uint64_t i = 0; i < batch->f.num_fsts; i++) {
    behind[i] = connect && !before[i];
    before[i] = (connect && before[i]) || batch->start[i] < 0;
    any_behind = any_behind || behind[i] != 0;
  }
  status = wf__gpu_batch_connect_some(batch, before, &trimmed, err);
  struct request request = {.from = trimmed, .trimmed = before};
  if (status == WF_OK)
    status = wf__gpu_batch_make_on(batch->context, batch->f.num_fsts, batch->log_semiring,
                                   make_removal, &request, 0, "epsilon removal", &removed, err);
  wf__gpu_batch_free(trimmed);
  if (status == WF_OK && !any_behind) {
    *out = removed;
    return WF_OK;
  }
  if (status == WF_OK) status = wf__gpu_batch_connect_some(removed, behind, out, err);
  wf__gpu_batch_free(removed);
  return status;
}

wf_status wf__gpu_batch_rmepsilon(const wf__gpu_batch *batch, bool connect, wf__gpu_batch **out,
                                  wf_error *err) {
  uint64_t count = batch->f.num_fsts;
  uint32_t *before = wf__alloc(2 * count, sizeof *before);
  *out = NULL;
  if (before == NULL) return wf__fail_memory(err, count * 8, "a batch");
  wf_status status = trim_and_remove(batch, connect, before, before + count, out, err);
  free(before);
  return status;
}
