/* compose.c - composition of one pair of fsts: prepares the inputs, chooses the method, and adds
 * symbols and origins to the result.
 *
 *   OpenFst's order, failure arcs   compose_search
 *   a result far smaller than       compose_search without preparing the inputs, in both orders
 *   the inputs
 *   canonical order                 compose_rows if there are few pairs of states. Otherwise
 *                                   compose_search; if it reaches too large a part of all pairs, it
 *                                   gives up and compose_rows starts instead. */
#include <string.h>

#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/arcsort.h"
#include "fstops/compose_chain.h"
#include "fstops/compose_filter.h"
#include "fstops/compose_job.h"
#include "fstops/composer.h"
#include "fstops/parallel.h"

/* Up to SMALL_CELLS pairs, rows are used without trying the search. A table of more than
 * MAX_ROW_BYTES is never used. In between, rows are used if more than one pair in CELLS_PER_STATE
 * is reached. */
#define SMALL_CELLS ((uint64_t)1 << 20)
#define MAX_ROW_BYTES ((uint64_t)1 << 36)
enum { CELLS_PER_STATE = 512, ORDER_CANONICAL = 1 };
/* A search that expects a small result is tried if the inputs have at least LAZY_MIN_SIZE states
 * and arcs together. It gives up after one part in LAZY_SHARE of them. */
enum { LAZY_MIN_SIZE = 4096, LAZY_SHARE = 32 };

/* --- one pair ---------------------------------------------------------------------------- */

int32_t wf__compose_auto_threads(void) {
  return wf__num_cpus() < WF__AUTO_THREADS ? wf__num_cpus() : WF__AUTO_THREADS;
}

/* Composes by rows. If num_threads is 0, more than one thread is used only for a large table. */
static wf_status compose_rows(wf__compose_job *job, uint64_t cells, wf__compose_output *out,
                              bool *out_fits, wf_error *err) {
  int32_t num_threads = job->num_threads != 0 ? job->num_threads
                        : cells > SMALL_CELLS ? wf__compose_auto_threads()
                                              : 1;
  if (num_threads > 1) WF__TRY(wf__pool_create(num_threads, &job->pool, err));
  wf_status status = wf__compose_rows(job, out, out_fits, err);
  wf__pool_free(job->pool);
  job->pool = NULL;
  return status;
}

static wf_status compose_sides(wf__compose_job *job, wf__compose_output *out, wf_error *err) {
  uint64_t row_bytes = UINT64_MAX, cells = job->canonical && job->b->fail_next == NULL
                                               ? wf__compose_rows_cells(job, &row_bytes)
                                               : 0;
  bool fits = row_bytes <= job->max_bytes && row_bytes <= MAX_ROW_BYTES, gave_up = fits;
  job->give_up = UINT64_MAX;
  if (fits && cells > SMALL_CELLS) {
    job->give_up = cells / CELLS_PER_STATE;
    WF__TRY(wf__compose_search(job, out, &gave_up, err));
    if (!gave_up) return WF_OK;
    job->give_up = UINT64_MAX;
  }
  if (fits) WF__TRY(compose_rows(job, cells, out, &fits, err));
  return fits ? WF_OK : wf__compose_search(job, out, &gave_up, err);
}

static wf_status refuse_label(const wf__compose_side *side, int32_t phi_label, wf_error *err) {
  for (uint64_t i = 0; i < side->view.num_arcs; i++)
    if (side->labels[i] == phi_label) return wf__compose_phi_output(phi_label, err);
  return WF_OK;
}

/* Prepares the inputs of a composition. All but the first are on the right side of one. */
static wf_status make_sides(const wf_fst *const *fsts, size_t count, const wf_compose_options *o,
                            wf__compose_side *sides, wf_error *err) {
  for (size_t i = 0; i < count; i++)
    WF__TRY(wf__compose_side_init(&sides[i], fsts[i], i == 0, err));
  if (o->phi_label == 0) return WF_OK;
  WF__TRY(refuse_label(&sides[0], o->phi_label, err));
  for (size_t i = 1; i < count; i++)
    WF__TRY(wf__compose_side_take_failures(&sides[i], o->phi_label, o->phi_final, err));
  return WF_OK;
}

/* Translates origins from arc indices of the sorted inputs to arc indices of the given inputs. */
static wf_status unsort_origins(const wf_fst *a, const wf_fst *b, const wf__compose_side *a_side,
                                const wf__compose_side *b_side, wf__compose_output *out,
                                wf_error *err) {
  uint32_t *a_place = NULL, *b_place = NULL;
  wf_status status = a_side->fst != a ? wf__arcsort_places(a, true, &a_place, err) : WF_OK;
  if (status == WF_OK && b_side->fst != b) status = wf__arcsort_places(b, false, &b_place, err);
  for (uint64_t i = 0; status == WF_OK && i < out->origins.size; i++) {
    wf_arc_origin *origin = &out->origins.data[i];
    if (a_place != NULL && origin->a != WF_NO_ARC) origin->a = a_place[origin->a];
    if (b_place != NULL && origin->b != WF_NO_ARC) origin->b = b_place[origin->b];
  }
  free(a_place);
  free(b_place);
  return status;
}

/* Tries a composition without preparing the inputs, which takes time linear in their size. That is
 * faster if the result uses few of their states; otherwise the search gives up. */
static wf_status compose_small(const wf_fst *a, const wf_fst *b, wf__compose_job job,
                               wf__compose_output *out, bool *gave_up, wf_error *err) {
  wf__compose_side a_side, b_side;
  wf_fst_view a_view = wf_fst_get_view(a), b_view = wf_fst_get_view(b);
  uint64_t size = a_view.num_states + a_view.num_arcs + b_view.num_states + b_view.num_arcs;
  *gave_up = true;
  if (size < LAZY_MIN_SIZE) return WF_OK;
  job.a = &a_side;
  job.b = &b_side;
  job.give_up = job.max_visited_arcs = size / LAZY_SHARE;
  wf__compose_side_init_lazy(&a_side, a, true);
  wf__compose_side_init_lazy(&b_side, b, false);
  wf_status status = wf__compose_search(&job, out, gave_up, err);
  wf__compose_side_free(&a_side);
  wf__compose_side_free(&b_side);
  return status;
}

static wf__compose_job job_of(const wf_compose_options *o) {
  return (wf__compose_job){
      .filter = o->filter,
      .connect = o->connect,
      .canonical = o->order == ORDER_CANONICAL,
      .max_states = o->max_states > 0 ? (uint64_t)o->max_states : WF__MAX_STATES,
      .max_bytes = o->max_bytes > 0 ? (uint64_t)o->max_bytes : UINT64_MAX,
      .give_up = UINT64_MAX,
      .num_threads = o->num_threads};
}

static wf_status compose_pair(const wf_fst *a, const wf_fst *b, const wf_compose_options *o,
                              wf__compose_output *out, wf_error *err) {
  wf__compose_side sides[2] = {0};
  bool gave_up = true;
  wf__compose_job job = job_of(o);
  job.a = &sides[0];
  job.b = &sides[1];
  const bool pushes =
      o->lookahead_push && o->phi_label == 0 && !job.canonical && !out->with_origins;
  wf__pushed pushed = {.fst = NULL};
  if (o->phi_label == 0 && !pushes) WF__TRY(compose_small(a, b, job, out, &gave_up, err));
  if (!gave_up) return WF_OK;
  if (pushes) WF__TRY(wf__pushed_init(&pushed, b, err));
  wf_status status =
      make_sides((const wf_fst *const[]){a, pushes ? pushed.fst : b}, 2, o, sides, err);
  if (status == WF_OK && (o->lookahead || pushes) && sides[1].fail_next == NULL)
    status =
        wf__lookahead_create(&sides[0], &sides[1], pushes ? &pushed : NULL, &job.lookahead, err);
  if (status == WF_OK) status = compose_sides(&job, out, err);
  if (status == WF_OK && out->with_origins)
    status = unsort_origins(a, b, &sides[0], &sides[1], out, err);
  if (status != WF_OK) wf__compose_output_free(out);
  wf__lookahead_free(job.lookahead);
  wf__compose_side_free(&sides[0]);
  wf__compose_side_free(&sides[1]);
  wf__pushed_free(&pushed);
  return status;
}

/* Costs are sums, and a sum of two floats may be -infinity, or NaN together with +infinity, which
 * no reader of the result would take. */
static wf_status check_costs(const wf__csr *csr, wf_error *err) {
  bool fine = true;
  for (uint64_t i = 0; i < csr->arcs.size; i++) fine &= csr->arcs.data[i].weight > -INFINITY;
  for (uint64_t s = 0; s < csr->final_cost.size; s++) fine &= csr->final_cost.data[s] > -INFINITY;
  if (fine) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the sum of two costs is below -3.4e38, the lowest cost: scale the costs of the "
                  "inputs");
}

/* Makes the fst of a composition's arrays. */
static wf_status finish(wf__compose_output *made, const wf_fst *first, const wf_fst *last,
                        const wf_compose_options *o, wf_fst **out, wf_error *err) {
  WF__TRY(check_costs(&made->csr, err));
  WF__TRY(wf__fst_from_csr(&made->csr, made->start, wf_fst_get_view(first).semiring,
                           wf_fst_isymbols(first), wf_fst_osymbols(last), out, err));
  wf__fst_keep_ctc_blank(*out, first);
  if (o->connect) wf__fst_set_trimmed(*out);
  return WF_OK;
}

/* `out_origins` may be NULL. */
wf_status wf__compose_pair(const wf_fst *a, const wf_fst *b, const wf_compose_options *o,
                           wf_fst **out, wf_arc_origin **out_origins, wf_error *err) {
  wf__compose_output made = {.start = -1, .with_origins = out_origins != NULL};
  uint64_t num_a = wf_fst_get_view(a).num_arcs, num_b = wf_fst_get_view(b).num_arcs;
  WF__TRY(wf__same_semiring(a, b, err));
  if (made.with_origins && (num_a >= WF_NO_ARC || num_b >= WF_NO_ARC))
    return wf__fail(err, WF_ERR_LIMIT,
                    "%llu and %llu arcs; origins allow at most 2^32 - 2 in each fst",
                    (unsigned long long)num_a, (unsigned long long)num_b);
  if (wf_fst_get_view(a).start >= 0 && wf_fst_get_view(b).start >= 0)
    WF__TRY(compose_pair(a, b, o, &made, err));
  wf_status status = out_origins != NULL ? wf__vec_grow(&made.origins, 1, "origins of arcs", err)
                                         : WF_OK; /* so that the array is not NULL */
  if (status == WF_OK) status = finish(&made, a, b, o, out, err);
  if (status == WF_OK && out_origins != NULL) {
    *out_origins = made.origins.data;
    made.origins.data = NULL;
  }
  wf__compose_output_free(&made);
  return status;
}

/* --- more than two fsts ------------------------------------------------------------------ */

/* Composes prepared fsts from left to right. Only the last composition is written. */
static wf_status compose_sides_of_chain(const wf__compose_side *sides, size_t count,
                                        const wf_compose_options *o, wf__compose_output *out,
                                        wf_error *err) {
  wf__compose_job job = job_of(o);
  wf_status status = WF_OK;
  bool gave_up;
  job.a = &sides[0];
  for (size_t i = 1; i + 1 < count && status == WF_OK; i++) {
    wf__compose_chain *made;
    job.b = &sides[i];
    status = wf__compose_chain_create(&job, o->phi_label, &made, err);
    if (status != WF_OK) break;
    job.left = made;
    job.a = &made->side;
  }
  job.b = &sides[count - 1];
  if (status == WF_OK) status = wf__compose_search(&job, out, &gave_up, err);
  wf__compose_chain_free(job.left);
  return status;
}

wf_status wf__compose_fsts(const wf_fst *const *fsts, size_t count, const wf_compose_options *o,
                           wf_fst **out, wf_error *err) {
  wf__compose_output made = {.start = -1};
  bool empty = false;
  const wf__device *gpu = NULL;
  if (wf__compose_on_gpu(o) && (gpu = wf__device_find(o->device, err)) == NULL)
    return WF_ERR_DEVICE;
  for (size_t i = 0; i < count; i++) {
    WF__TRY(wf__same_semiring(fsts[0], fsts[i], err));
    empty = empty || wf_fst_get_view(fsts[i]).start < 0;
  }
  wf__compose_side *sides = wf__calloc(count, sizeof *sides);
  if (sides == NULL) return wf__fail_memory(err, count * sizeof *sides, "the inputs");
  wf_status status = empty ? WF_OK : make_sides(fsts, count, o, sides, err);
  if (status == WF_OK && !empty)
    status = gpu != NULL ? gpu->compose->sides(sides, count, o, &made, err)
                         : compose_sides_of_chain(sides, count, o, &made, err);
  if (status == WF_OK) status = finish(&made, fsts[0], fsts[count - 1], o, out, err);
  for (size_t i = 0; i < count; i++) wf__compose_side_free(&sides[i]);
  free(sides);
  wf__compose_output_free(&made);
  return status;
}
