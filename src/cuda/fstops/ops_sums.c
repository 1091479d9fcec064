/* ops_sums.c - sums over paths on a GPU: distances, forward scores and their gradients, best paths.
 *
 * States that reach no cycle are computed level by level, in two launches. The others are iterated
 * in rounds until nothing changes (tropical) or nothing changes by more than delta / 1000 (log). */
#include <string.h>

#include "cuda/device/host_copies.h"
#include "cuda/fstops/ops_batch.h"

enum { PAIRS_OF_ROUNDS = 4, MAX_ROUNDS = 1 << 20 };
#define LEAST_TOLERANCE 1e-12

struct sums {
  wf__gpu_incoming in;
  wf__gpu_levels levels;
  uint32_t num_levels;
  bool cyclic;
  wf__gpu_sums to_end, from_start;
};

/* The sums to compute. */
enum { TO_END = 1, FROM_START = 2, HOPS = 4 };

/* A best path has fewer arcs than there are states. So after that many rounds nothing may change,
 * unless there is a cycle of negative cost. */
static wf_status too_many_rounds(const wf__gpu_batch *batch, uint64_t rounds, wf_error *err) {
  if (!batch->log_semiring && batch->f.num_states < rounds)
    return wf__fail(err, WF_ERR_NEGATIVE_CYCLE, "a cycle of negative cost");
  return wf__fail(err, WF_ERR_NEGATIVE_CYCLE,
                  "sums over the paths of a cycle do not converge in %llu rounds",
                  (unsigned long long)rounds);
}

static wf_status iterate(const wf__gpu_batch *batch, const struct sums *s, bool backward,
                         double delta, wf__gpu_blocks *scratch, const wf__gpu_sums *sums,
                         wf_error *err) {
  wf__gpu_context *c = batch->context;
  wf__gpu_sums other = {0};
  double tolerance = delta * 1e-3 > LEAST_TOLERANCE ? delta * 1e-3 : LEAST_TOLERANCE;
  uint64_t n = batch->f.num_states,
           most = batch->log_semiring || n > MAX_ROUNDS ? MAX_ROUNDS : n + 2 * PAIRS_OF_ROUNDS + 1;
  uint32_t *changed, seen = 1;
  TAKE(c, scratch, other.cost, n, "distances");
  TAKE(c, scratch, changed, 1, "distances");
  if (sums->hops != NULL) TAKE(c, scratch, other.hops, n, "distances");
  WF__CUDA_TRY(cudaMemcpyAsync(other.cost, sums->cost, n * sizeof *other.cost,
                               cudaMemcpyDeviceToDevice, c->stream),
               "distances");
  if (sums->hops != NULL)
    WF__CUDA_TRY(cudaMemcpyAsync(other.hops, sums->hops, n * sizeof *other.hops,
                                 cudaMemcpyDeviceToDevice, c->stream),
                 "distances");
  for (uint64_t rounds = 0; seen != 0; rounds += 2 * PAIRS_OF_ROUNDS) {
    if (rounds >= most) return too_many_rounds(batch, rounds, err);
    WF__CUDA_TRY(cudaMemsetAsync(changed, 0, sizeof *changed, c->stream), "distances");
    for (int k = 0; k < PAIRS_OF_ROUNDS; k++) {
      WF__CUDA_TRY(wf__ops_iterate(&batch->f, &s->in, &s->levels, backward, sums, &other,
                                   batch->log_semiring, tolerance, changed, c->stream),
                   "distances");
      WF__CUDA_TRY(wf__ops_iterate(&batch->f, &s->in, &s->levels, backward, &other, sums,
                                   batch->log_semiring, tolerance, changed, c->stream),
                   "distances");
    }
    READ(c, "distances", VALUE(seen, changed));
  }
  return WF_OK;
}

wf_status wf__gpu_levels_find(wf__gpu_context *c, wf__gpu_blocks *scratch, const wf__gpu_fsts *f,
                              bool log_semiring, bool from_start, wf__gpu_incoming *in,
                              wf__gpu_levels *levels, wf__gpu_sums *sums, uint32_t *out_num_levels,
                              uint32_t *out_num_states, wf_error *err) {
  uint64_t n = f->num_states;
  uint32_t counts[2];
  WF__TRY(wf__gpu_incoming_find(c, scratch, f, in, err));
  TAKE(c, scratch, levels->order, n, "levels");
  TAKE(c, scratch, levels->level_off, n + 2, "levels");
  TAKE(c, scratch, levels->remaining, n, "levels");
  TAKE(c, scratch, levels->counts, 5, "levels");
  TAKE(c, scratch, sums->cost, n, "distances");
  WF__CUDA_TRY(cudaMemsetAsync(levels->counts, 0, 5 * sizeof *levels->counts, c->stream), "levels");
  WF__CUDA_TRY(wf__ops_levels(f, in, from_start, levels, sums, log_semiring, c->stream), "levels");
  READ(c, "levels", VALUE(counts, levels->counts + 3));
  *out_num_levels = counts[0];
  *out_num_states = counts[1];
  return WF_OK;
}

static wf_status find_sums(const wf__gpu_batch *batch, int wanted, double delta,
                           wf__gpu_blocks *scratch, struct sums *s, wf_error *err) {
  wf__gpu_context *c = batch->context;
  uint64_t n = batch->f.num_states;
  *s = (struct sums){.cyclic = false};
  const bool to_end = (wanted & TO_END) != 0;
  wf__gpu_sums *first = to_end ? &s->to_end : &s->from_start;
  uint32_t num_done;
  if (wanted & HOPS) TAKE(c, scratch, s->from_start.hops, n, "distances");
  WF__TRY(wf__gpu_levels_find(c, scratch, &batch->f, batch->log_semiring, !to_end, &s->in,
                              &s->levels, first, &s->num_levels, &num_done, err));
  s->cyclic = num_done != n;
  if (s->cyclic) WF__TRY(iterate(batch, s, to_end, delta, scratch, first, err));
  if (!to_end || !(wanted & FROM_START)) return WF_OK;
  TAKE(c, scratch, s->from_start.cost, n, "distances");
  WF__CUDA_TRY(wf__ops_from_start_begin(&batch->f, &s->in, &s->from_start, c->stream), "distances");
  if (s->cyclic) WF__TRY(iterate(batch, s, false, delta, scratch, &s->from_start, err));
  WF__CUDA_TRY(wf__ops_from_start(&batch->f, &s->in, &s->levels, s->num_levels, &s->from_start,
                                  batch->log_semiring, c->stream),
               "distances");
  return WF_OK;
}

/* --- distances --------------------------------------------------------------------------- */

static wf_status get_distances(const wf__gpu_batch *batch, bool reverse, double delta,
                               wf__gpu_blocks *scratch, float *out, wf_error *err) {
  wf__gpu_context *c = batch->context;
  const uint64_t n = batch->f.num_states;
  struct sums s;
  float *costs;
  if (n == 0) return WF_OK;
  WF__TRY(find_sums(batch, reverse ? TO_END : FROM_START, delta, scratch, &s, err));
  TAKE(c, scratch, costs, n, "distances");
  WF__CUDA_TRY(wf__ops_to_float(reverse ? s.to_end.cost : s.from_start.cost, costs, n, c->stream),
               "distances");
  const wf__host_copy copy = {out, costs, n * sizeof *out};
  return wf__copy_to_host(&copy, 1, c->stream, "distances", err);
}

wf_status wf__gpu_batch_distances(const wf__gpu_batch *batch, bool reverse, double delta,
                                  float **out, wf_error *err) {
  wf__gpu_operation summing;
  *out = wf__alloc(batch->f.num_states, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, batch->f.num_states * sizeof **out, "distances");
  wf_status status = wf__gpu_begin(batch->context, &summing, err);
  if (status == WF_OK) {
    status = get_distances(batch, reverse, delta, &summing.scratch, *out, err);
    wf__gpu_end(&summing);
  }
  if (status == WF_OK) return WF_OK;
  free(*out);
  *out = NULL;
  return status;
}

/* --- forward score ----------------------------------------------------------------------- */

/* Computes the gradients of the arcs of the composition's inputs. */
static wf_status make_input_gradients(wf__gpu_batch *batch, const struct sums *s,
                                      wf__gpu_blocks *scratch, wf_error *err) {
  wf__gpu_context *c = batch->context;
  uint64_t count = batch->f.num_fsts, *base;
  TAKE(c, scratch, base, 2 * count, "a batch");
  for (int side = 0; side < 2; side++) {
    uint64_t num_arcs = batch->input_base[side][count];
    if (batch->input_gradients[side] == NULL)
      TAKE(c, &batch->owned, batch->input_gradients[side], num_arcs, "gradients");
    WF__CUDA_TRY(
        cudaMemsetAsync(batch->input_gradients[side], 0, num_arcs * sizeof(double), c->stream),
        "gradients");
    WF__TRY(wf__ops_to_device(c, base + (uint64_t)side * count, batch->input_base[side],
                              count * sizeof *base, err));
  }
  WF__CUDA_TRY(
      wf__ops_input_gradients(&batch->f, &s->in, batch->origins, batch->gradients, base,
                              batch->input_gradients[0], batch->input_gradients[1], c->stream),
      "gradients");
  return WF_OK;
}

static wf_status get_score(wf__gpu_batch *batch, double delta, bool with_gradients,
                           wf__gpu_blocks *scratch, double *out_costs, wf_error *err) {
  wf__gpu_context *c = batch->context;
  struct sums s;
  double *totals;
  WF__TRY(find_sums(batch, with_gradients ? TO_END | FROM_START : TO_END, delta, scratch, &s, err));
  TAKE(c, scratch, totals, batch->f.num_fsts, "costs");
  WF__CUDA_TRY(wf__ops_totals(&batch->f, s.to_end.cost, totals, c->stream), "costs");
  WF__TRY(wf__ops_to_host(c, out_costs, totals, batch->f.num_fsts * sizeof *out_costs, err));
  if (with_gradients) {
    if (batch->gradients == NULL)
      TAKE(c, &batch->owned, batch->gradients, batch->f.num_arcs, "gradients");
    WF__CUDA_TRY(wf__ops_gradients(&batch->f, &s.in, s.from_start.cost, s.to_end.cost, totals,
                                   batch->gradients, c->stream),
                 "gradients");
    if (batch->origins != NULL) WF__TRY(make_input_gradients(batch, &s, scratch, err));
  }
  return wf__ops_finish(c, "forward scores", err);
}

wf_status wf__gpu_batch_forward_score(wf__gpu_batch *batch, double delta, bool with_gradients,
                                      double *out_costs, wf_error *err) {
  wf__gpu_operation summing;
  WF__TRY(wf__gpu_begin(batch->context, &summing, err));
  const wf_status status =
      get_score(batch, delta, with_gradients, &summing.scratch, out_costs, err);
  wf__gpu_end(&summing);
  return status;
}

static wf_status copy_gradients(const wf__gpu_batch *batch, double *to, const double *from,
                                uint64_t count, wf_error *err) {
  wf__gpu_operation copying;
  WF__TRY(wf__gpu_begin(batch->context, &copying, err));
  const wf__host_copy copy = {to, from, count * sizeof *to};
  const wf_status status = wf__copy_to_host(&copy, 1, batch->context->stream, "gradients", err);
  wf__gpu_end(&copying);
  return status;
}

wf_status wf__gpu_batch_gradients(const wf__gpu_batch *batch, size_t i, wf_gradients_of of,
                                  double **out, uint64_t *out_count, wf_error *err) {
  const uint64_t *base = of == WF_GRADIENTS_OF_ARCS ? batch->arc_base : batch->input_base[of - 1];
  const double *from =
      of == WF_GRADIENTS_OF_ARCS ? batch->gradients : batch->input_gradients[of - 1];
  if (batch->gradients == NULL)
    return wf__fail(err, WF_ERR_STATE, "no gradients: wf_fst_batch_forward_score makes them");
  if (from == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "no origins of arcs: the batch is not a composition's, or an operation after "
                    "it has lost them");
  uint64_t count = base[i + 1] - base[i];
  double *copy = wf__alloc(count, sizeof *copy);
  if (copy == NULL) return wf__fail_memory(err, count * sizeof *copy, "gradients");
  const wf_status status = copy_gradients(batch, copy, from + base[i], count, err);
  if (status != WF_OK) {
    free(copy);
    return status;
  }
  *out = copy;
  *out_count = count;
  return WF_OK;
}

/* --- best paths -------------------------------------------------------------------------- */

/* Sets the bases, starts and offsets of the paths, in host memory. `keys` are the results of
 * wf__ops_ends. */
static wf_status lay_out(wf__gpu_batch *batch, const unsigned long long *keys, uint64_t *path_base,
                         uint64_t **out_off, wf_error *err) {
  uint64_t count = batch->f.num_fsts, num_states = 0, num_arcs = 0;
  for (size_t i = 0; i < count; i++) {
    bool found = keys[i] != ~0ULL;
    path_base[i] = num_arcs;
    batch->state_base[i] = num_states;
    batch->start[i] = found ? (int64_t)num_states : -1;
    num_states += found ? keys[count + i] + 1 : 0;
    num_arcs += found ? keys[count + i] : 0;
  }
  path_base[count] = num_arcs;
  batch->state_base[count] = num_states;
  uint64_t *off = *out_off = wf__alloc(num_states + 1, sizeof *off);
  if (off == NULL) return wf__fail_memory(err, (num_states + 1) * sizeof *off, "paths");
  for (size_t i = 0; i < count; i++)
    for (uint64_t s = batch->state_base[i]; s < batch->state_base[i + 1]; s++)
      off[s] = path_base[i] + (s - batch->state_base[i]);
  off[num_states] = num_arcs;
  return WF_OK;
}

static wf_status fill_paths(wf__gpu_batch *batch, const wf__gpu_batch *from, const struct sums *s,
                            const unsigned long long *device_keys, const unsigned long long *keys,
                            const uint64_t *path_base, const uint64_t *off, wf__gpu_blocks *scratch,
                            wf_error *err) {
  wf__gpu_context *c = batch->context;
  wf__gpu_arrays a;
  uint64_t count = batch->f.num_fsts, num_states = batch->state_base[count], *bases;
  WF__TRY(wf__gpu_batch_reserve(batch, num_states, path_base[count], &a, err));
  TAKE(c, scratch, bases, count + 1, "paths");
  WF__TRY(wf__ops_to_device(c, bases, path_base, (count + 1) * 8, err));
  WF__TRY(wf__ops_to_device(c, a.state_base, batch->state_base, (count + 1) * 8, err));
  WF__TRY(wf__ops_to_device(c, a.start, batch->start, count * 8, err));
  WF__TRY(wf__ops_to_device(c, a.off, off, (num_states + 1) * 8, err));
  float *final_cost = wf__alloc(num_states, sizeof *final_cost);
  if (final_cost == NULL) return wf__fail_memory(err, num_states * sizeof *final_cost, "paths");
  for (uint64_t k = 0; k < num_states; k++) final_cost[k] = INFINITY;
  wf_status status = WF_OK;
  for (size_t i = 0; status == WF_OK && i < count; i++)
    if (keys[i] != ~0ULL)
      status = wf__ops_to_host(c, &final_cost[batch->state_base[i + 1] - 1],
                               from->f.final_cost + keys[2 * count + i], sizeof *final_cost, err);
  if (status == WF_OK) status = wf__ops_finish(c, "paths", err);
  if (status == WF_OK)
    status = wf__ops_to_device(c, a.final_cost, final_cost, num_states * sizeof *final_cost, err);
  if (status == WF_OK) status = wf__ops_finish(c, "paths", err);
  free(final_cost);
  WF__TRY(status);
  WF__CUDA_TRY(wf__ops_walk(&from->f, &s->in, &s->from_start, device_keys, bases, a.state_base,
                            a.arcs, c->stream),
               "paths");
  return wf__ops_finish(c, "paths", err);
}

static wf_status make_paths(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                            int how, wf_error *err) {
  const wf__gpu_batch *from = user;
  wf__gpu_context *c = batch->context;
  uint64_t count = batch->f.num_fsts, *off = NULL;
  unsigned long long *device_keys, *keys = wf__alloc(3 * count, sizeof *keys);
  uint64_t *path_base = wf__alloc(count + 1, sizeof *path_base);
  struct sums s = {.cyclic = false};
  (void)how;
  wf_status status =
      keys == NULL || path_base == NULL ? wf__fail_memory(err, count * 32, "paths") : WF_OK;
  if (status == WF_OK) status = find_sums(from, FROM_START | HOPS, 0, scratch, &s, err);
  if (status == WF_OK)
    status =
        wf__ops_take(c, scratch, 3 * count * sizeof *keys, "paths", (void **)&device_keys, err);
  if (status == WF_OK) {
    cudaError_t code = cudaMemsetAsync(device_keys, 0xff, 3 * count * sizeof *keys, c->stream);
    if (code == cudaSuccess)
      code = (cudaError_t)wf__ops_ends(&from->f, &s.from_start, device_keys, c->stream);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, "paths");
  }
  if (status == WF_OK)
    status = wf__ops_to_host(c, keys, device_keys, 3 * count * sizeof *keys, err);
  if (status == WF_OK) status = wf__ops_finish(c, "paths", err);
  if (status == WF_OK) status = lay_out(batch, keys, path_base, &off, err);
  if (status == WF_OK)
    status = fill_paths(batch, from, &s, device_keys, keys, path_base, off, scratch, err);
  free(keys);
  free(path_base);
  free(off);
  return status;
}

wf_status wf__gpu_batch_shortest_path(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err) {
  return wf__gpu_batch_make(batch, make_paths, 0, "paths", out, err);
}
