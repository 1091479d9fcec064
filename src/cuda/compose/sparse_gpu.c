/* sparse_gpu.c - the host side of composition by pairs of states on a GPU: upload, search level by
 * level until nothing new is found, numbering by a sort, arcs, trimming.
 *
 * The host synchronizes once a level, to read the number of pairs and whether the table was too
 * small. */
#ifdef WARPFST_CUDA
#include "cuda/compose/sparse_gpu.h"

#include <string.h>

#include "cuda/compose/sparse_kernels.h"
#include "cuda/fstops/ops_batch.h"
#include "fstops/arcsort.h"
#include "fstops/compose_filter.h"
#include "fstops/compose_rows.h"

_Static_assert((int)WF__SPARSE_STAY == (int)WF__STEP_STAY &&
                   (int)WF__SPARSE_STAY_IF == (int)WF__STEP_STAY_IF &&
                   (int)WF__SPARSE_LABEL == (int)WF__STEP_LABEL,
               "kinds of steps");
_Static_assert(sizeof(wf__sparse_link) == sizeof(wf__row_link), "links");

/* Slots of the first table. When the table becomes full, every thread resident on the GPU may still
 * insert one key after its last check of `full`; the table has room for these. */
#ifndef WF__SPARSE_SLOTS
#define WF__SPARSE_SLOTS ((uint64_t)1 << 20)
#endif
enum { GROWTH = 4 };

struct wf__sparse {
  wf__gpu_context *context;
  wf__gpu_blocks owned;
  wf__sparse_inputs in;
  uint64_t start_key, input_arcs[2];
  bool log_semiring;
};

/* --- inputs ------------------------------------------------------------------------------ */

static wf_status put(wf__sparse *self, const void *from, uint64_t bytes, const void **to,
                     wf_error *err) {
  void *room;
  WF__TRY(
      wf__ops_take(self->context, &self->owned, bytes, "the inputs of a composition", &room, err));
  *to = room;
  return wf__ops_to_device(self->context, room, from, bytes, err);
}
#define PUT(self, field, from, count)                                   \
  WF__TRY(put(self, from, (uint64_t)(count) * sizeof *(self)->in.field, \
              (const void **)&(self)->in.field, err))

/* Finds where each row's links with a label other than epsilon begin. */
static void find_tails(const wf__row_plan *plan, uint64_t *tail) {
  for (uint64_t row = 0; row < plan->num_rows; row++) {
    tail[row] = plan->link_off[row];
    while (tail[row] < plan->link_off[row + 1] && plan->links[tail[row]].kind <= WF__STEP_LABEL)
      tail[row]++;
  }
}

static wf_status put_links(wf__sparse *self, const wf__row_plan *plan, wf_error *err) {
  uint64_t *tail = wf__alloc(plan->num_rows, sizeof *tail);
  if (tail == NULL) return wf__fail_memory(err, plan->num_rows * sizeof *tail, "links of rows");
  find_tails(plan, tail);
  wf_status status =
      put(self, tail, plan->num_rows * sizeof *tail, (const void **)&self->in.link_tail, err);
  if (status == WF_OK) status = wf__ops_finish(self->context, "the inputs of a composition", err);
  free(tail);
  WF__TRY(status);
  PUT(self, link_off, plan->link_off, plan->num_rows + 1);
  PUT(self, links, plan->links, plan->link_off[plan->num_rows]);
  return wf__ops_finish(self->context, "the inputs of a composition", err);
}

static wf_status put_a(wf__sparse *self, const wf__compose_job *job, wf_error *err) {
  const wf_fst_view *a = &job->a->view;
  wf__row_plan plan;
  WF__TRY(wf__compose_plan_links(job, &plan, err));
  self->in.num_rows = plan.num_rows;
  self->in.num_filters = plan.num_filters;
  self->start_key = plan.start_row * job->b->view.num_states + (uint64_t)job->b->view.start;
  wf_status status = put_links(self, &plan, err);
  wf__compose_plan_free(&plan);
  WF__TRY(status);
  PUT(self, a_arcs, a->arcs, a->num_arcs);
  PUT(self, a_final, a->final_cost, a->num_states);
  return WF_OK;
}

/* Uploads two properties of B's states: where their arcs with labels begin, and their kind (enum
 * wf__epsilons). */
static wf_status put_b_states(wf__sparse *self, const wf__compose_side *side, wf_error *err) {
  const wf_fst_view *b = &side->view;
  uint64_t *tail = wf__alloc(b->num_states, sizeof *tail);
  uint8_t *kind = wf__alloc(b->num_states, sizeof *kind);
  wf_status status =
      tail == NULL || kind == NULL ? wf__fail_memory(err, b->num_states * 9, "states") : WF_OK;
  for (uint64_t s = 0; status == WF_OK && s < b->num_states; s++) {
    uint64_t begin = b->arc_off[s], end = b->arc_off[s + 1];
    for (tail[s] = begin; tail[s] < end && side->labels[tail[s]] == 0;) tail[s]++;
    kind[s] = (uint8_t)wf__epsilons_of(end - begin, tail[s] - begin, b->final_cost[s] != INFINITY);
  }
  if (status == WF_OK)
    status = put(self, tail, b->num_states * sizeof *tail, (const void **)&self->in.b_tail, err);
  if (status == WF_OK)
    status = put(self, kind, b->num_states * sizeof *kind, (const void **)&self->in.b_kind, err);
  if (status == WF_OK) status = wf__ops_finish(self->context, "the inputs of a composition", err);
  free(tail);
  free(kind);
  return status;
}

static wf_status put_b(wf__sparse *self, const wf__compose_side *side, wf_error *err) {
  const wf_fst_view *b = &side->view;
  self->in.num_b = b->num_states;
  WF__TRY(put_b_states(self, side, err));
  PUT(self, b_off, b->arc_off, b->num_states + 1);
  PUT(self, b_labels, side->labels, b->num_arcs);
  PUT(self, b_arcs, b->arcs, b->num_arcs);
  PUT(self, b_final, b->final_cost, b->num_states);
  return WF_OK;
}

static wf_status put_places(wf__sparse *self, const wf_fst *given, const wf__compose_side *side,
                            bool by_olabel, const uint32_t **out, wf_error *err) {
  uint32_t *places;
  if (side->fst == given) return WF_OK;
  WF__TRY(wf__arcsort_places(given, by_olabel, &places, err));
  wf_status status =
      put(self, places, side->view.num_arcs * sizeof *places, (const void **)out, err);
  if (status == WF_OK) status = wf__ops_finish(self->context, "the inputs of a composition", err);
  free(places);
  return status;
}

static wf_status put_inputs(wf__sparse *self, const wf__compose_job *job, const wf_fst *a,
                            const wf_fst *b, wf_error *err) {
  uint64_t num_a = job->a->view.num_arcs, num_b = job->b->view.num_arcs;
  if (num_a >= WF_NO_ARC || num_b >= WF_NO_ARC || job->a->view.num_states >= UINT32_MAX / 3)
    return wf__fail(err, WF_ERR_LIMIT, "%llu and %llu arcs: a GPU composes 2^32 - 2 at most",
                    (unsigned long long)num_a, (unsigned long long)num_b);
  self->log_semiring = job->a->view.semiring == WF_LOG;
  self->input_arcs[0] = num_a;
  self->input_arcs[1] = num_b;
  WF__TRY(put_a(self, job, err));
  WF__TRY(put_b(self, job->b, err));
  WF__TRY(put_places(self, a, job->a, true, &self->in.a_place, err));
  WF__TRY(put_places(self, b, job->b, false, &self->in.b_place, err));
  return wf__ops_finish(self->context, "the inputs of a composition", err);
}

wf_status wf__sparse_create(const wf__compose_job *job, const wf_fst *a, const wf_fst *b,
                            int device, wf__sparse **out, wf_error *err) {
  wf__sparse *self = wf__calloc(1, sizeof *self);
  *out = NULL;
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a composition");
  wf_status status = wf__gpu_context_create(device, &self->context, err);
  if (status == WF_OK) status = put_inputs(self, job, a, b, err);
  if (status == WF_OK)
    *out = self;
  else
    wf__sparse_free(self);
  return status;
}

void wf__sparse_free(wf__sparse *sparse) {
  if (sparse == NULL) return;
  if (sparse->context != NULL) {
    cudaSetDevice(sparse->context->device);
    wf__ops_release(sparse->context, &sparse->owned);
    wf__gpu_context_release(sparse->context);
  }
  free(sparse);
}

/* --- the search -------------------------------------------------------------------------- */

/* The state of a run. */
struct run {
  const wf__sparse *self;
  uint64_t max_states, max_bytes, give_up;
  bool with_origins;
  wf__gpu_blocks *scratch; /* temporary arrays from which the result is made */
  wf__gpu_blocks room;     /* memory of the table, which grows */
  wf__sparse_table table;
  uint64_t count;                    /* pairs */
  uint64_t *keys, *item_off, *place; /* sorted keys; prefix sums of their items; prefix sums of the
                                        items' arcs */
  uint64_t num_items, num_arcs;
  uint32_t *ranks;
  wf__sparse_counts counts;
};

static wf_status check_bytes(const struct run *run, uint64_t bytes, wf_error *err) {
  return bytes <= run->max_bytes ? WF_OK : wf__compose_too_large(bytes, run->max_bytes, err);
}

/* Allocates a table of `num_slots` and copies the list of pairs to it. */
static wf_status grow(struct run *run, uint64_t num_slots, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  wf__gpu_blocks old = run->room;
  wf__sparse_table table = {.num_slots = num_slots, .room = num_slots / 2};
  run->room = (wf__gpu_blocks){.count = 0};
  wf_status status = check_bytes(run, num_slots * 12, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &run->room, num_slots * sizeof *table.keys, "pairs of states",
                          (void **)&table.keys, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &run->room, table.room * sizeof *table.list, "pairs of states",
                          (void **)&table.list, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &run->room, sizeof *table.progress, "pairs of states",
                          (void **)&table.progress, err);
  cudaError_t code = cudaSuccess;
  if (status == WF_OK)
    code = cudaMemsetAsync(table.keys, 0xff, num_slots * sizeof *table.keys, c->stream);
  if (status == WF_OK && code == cudaSuccess && run->count != 0 && run->table.list != NULL)
    code = cudaMemcpyAsync(table.list, run->table.list, run->count * sizeof *table.list,
                           cudaMemcpyDeviceToDevice, c->stream);
  if (status == WF_OK && code != cudaSuccess) status = wf__cuda_fail(err, code, "pairs of states");
  wf__ops_release(c, &old);
  run->table = table;
  return status;
}

/* Inserts the run->count pairs of the list into the empty table. */
static wf_status refill(struct run *run, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  wf__sparse_progress progress = {.count = run->count};
  WF__TRY(wf__ops_to_device(c, run->table.progress, &progress, sizeof progress, err));
  WF__CUDA_TRY(wf__sparse_refill(&run->table, run->count, c->stream), "pairs of states");
  return wf__ops_finish(c, "pairs of states", err);
}

static wf_status begin(struct run *run, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  WF__TRY(grow(run, WF__SPARSE_SLOTS, err));
  WF__TRY(wf__ops_to_device(c, run->table.list, &run->self->start_key, sizeof run->self->start_key,
                            err));
  run->count = 1;
  return refill(run, err);
}

/* Computes the exclusive prefix sums of `values` [count] in place. */
static wf_status add_up(const struct run *run, wf__gpu_blocks *room, uint64_t *values,
                        uint64_t count, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  size_t bytes = 0;
  char *scratch;
  WF__CUDA_TRY(wf__ops_scan64(values, values, count, NULL, &bytes, c->stream), "prefix sums");
  TAKE(c, room, scratch, bytes, "prefix sums");
  WF__CUDA_TRY(wf__ops_scan64(values, values, count, scratch, &bytes, c->stream), "prefix sums");
  return WF_OK;
}

static wf_status find_items(const struct run *run, wf__gpu_blocks *room, const uint64_t *keys,
                            uint64_t count, uint64_t **out, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  TAKE(c, room, *out, count + 1, "pairs of states");
  WF__CUDA_TRY(wf__sparse_items(&run->self->in, keys, count, *out, c->stream), "pairs of states");
  return add_up(run, room, *out, count + 1, err);
}

/* Finds the pairs that are reached from `count` pairs of the list, from `first` on. *out_full: the
 * table became full, so some are missing. */
static wf_status expand(struct run *run, uint64_t first, uint64_t count, bool *out_full,
                        wf_error *err) {
  wf__gpu_context *c = run->self->context;
  wf__gpu_blocks room = {.count = 0};
  wf__sparse_progress progress;
  uint64_t *item_off;
  wf_status status = find_items(run, &room, run->table.list + first, count, &item_off, err);
  if (status == WF_OK) {
    cudaError_t code = (cudaError_t)wf__sparse_expand(
        &run->self->in, &run->table, run->table.list + first, count, item_off, c->stream);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, "pairs of states");
  }
  if (status == WF_OK)
    status = wf__ops_to_host(c, &progress, run->table.progress, sizeof progress, err);
  if (status == WF_OK) status = wf__ops_finish(c, "pairs of states", err);
  wf__ops_release(c, &room);
  WF__TRY(status);
  *out_full = progress.full != 0;
  run->count = progress.count < run->table.room ? progress.count : run->table.room;
  return WF_OK;
}

/* Runs consecutive slim levels (few pairs and items) in one launch, and advances *first. *out_full:
 * the table became full, so the level at *first is not complete. */
static wf_status walk(struct run *run, uint64_t *first, bool *out_full, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  wf__sparse_progress progress;
  WF__CUDA_TRY(wf__sparse_walk(&run->self->in, &run->table, *first, c->stream), "pairs of states");
  WF__TRY(wf__ops_to_host(c, &progress, run->table.progress, sizeof progress, err));
  WF__TRY(wf__ops_finish(c, "pairs of states", err));
  *first = progress.first;
  *out_full = progress.full != 0;
  run->counts.num_levels += progress.num_levels;
  run->count = progress.count < run->table.room ? progress.count : run->table.room;
  return WF_OK;
}

/* Searches level by level. */
static wf_status search(struct run *run, wf_error *err) {
  WF__TRY(begin(run, err));
  for (uint64_t first = 0; first < run->count;) {
    const uint64_t from = first, end = run->count;
    bool full = false;
    if (end - from <= WF__SPARSE_SLIM_PAIRS) WF__TRY(walk(run, &first, &full, err));
    if (first == from && !full) { /* the level is not slim */
      WF__TRY(expand(run, from, end - from, &full, err));
      if (!full) first = end, run->counts.num_levels++;
    }
    if (run->count > run->give_up) return WF_OK;
    if (run->count > run->max_states)
      return wf__fail(err, WF_ERR_LIMIT, "the composition has more than %llu states (max_states)",
                      (unsigned long long)run->max_states);
    if (full) {
      WF__TRY(grow(run, run->table.num_slots * GROWTH, err));
      WF__TRY(refill(run, err));
    }
  }
  run->counts.num_pairs = run->count;
  return WF_OK;
}

/* --- the result -------------------------------------------------------------------------- */

static int bits_for(uint64_t largest) {
  int bits = 1;
  while (bits < 64 && largest >> bits != 0) bits++;
  return bits;
}

/* Sorts the keys and writes the rank of each key at its slot of the table. */
static wf_status number(struct run *run, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  size_t bytes = 0;
  char *room;
  int bits = bits_for(run->self->in.num_rows * run->self->in.num_b - 1);
  TAKE(c, run->scratch, run->keys, run->count, "pairs of states");
  TAKE(c, run->scratch, run->ranks, run->table.num_slots, "pairs of states");
  WF__CUDA_TRY(
      wf__sparse_sort(run->table.list, run->keys, run->count, bits, NULL, &bytes, c->stream),
      "sorting");
  TAKE(c, run->scratch, room, bytes, "sorting");
  WF__CUDA_TRY(
      wf__sparse_sort(run->table.list, run->keys, run->count, bits, room, &bytes, c->stream),
      "sorting");
  WF__CUDA_TRY(wf__sparse_rank(&run->table, run->keys, run->count, run->ranks, c->stream),
               "pairs of states");
  return WF_OK;
}

static wf_status count_arcs(struct run *run, wf_error *err) {
  wf__gpu_context *c = run->self->context;
  WF__TRY(find_items(run, run->scratch, run->keys, run->count, &run->item_off, err));
  WF__TRY(
      wf__ops_to_host(c, &run->num_items, run->item_off + run->count, sizeof run->num_items, err));
  WF__TRY(wf__ops_finish(c, "pairs of states", err));
  WF__TRY(check_bytes(run, run->table.num_slots * 16 + run->count * 16 + run->num_items * 8, err));
  TAKE(c, run->scratch, run->place, run->num_items + 1, "counts of arcs");
  WF__CUDA_TRY(wf__sparse_count(&run->self->in, run->keys, run->count, run->item_off,
                                run->num_items, run->place, c->stream),
               "counting arcs");
  WF__TRY(add_up(run, run->scratch, run->place, run->num_items + 1, err));
  WF__TRY(
      wf__ops_to_host(c, &run->num_arcs, run->place + run->num_items, sizeof run->num_arcs, err));
  WF__TRY(wf__ops_finish(c, "counting arcs", err));
  run->counts.num_items = run->num_items;
  uint64_t per_arc = sizeof(wf_arc) + (run->with_origins ? sizeof(wf_arc_origin) : 0);
  return check_bytes(
      run,
      run->table.num_slots * 16 + run->count * 28 + run->num_items * 8 + run->num_arcs * per_arc,
      err);
}

static wf_status make_result(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                             int how, wf_error *err) {
  const struct run *run = user;
  wf__gpu_context *c = batch->context;
  wf__gpu_arrays a;
  (void)scratch, (void)how;
  WF__TRY(wf__gpu_batch_reserve(batch, run->count, run->num_arcs, &a, err));
  uint64_t state_base[2] = {0, run->count};
  if (run->with_origins) {
    const uint64_t input_base[2][2] = {{0, run->self->input_arcs[0]},
                                       {0, run->self->input_arcs[1]}};
    TAKE(c, &batch->owned, batch->origins, run->num_arcs, "origins of arcs");
    WF__TRY(wf__gpu_batch_input_bases(
        batch, (const uint64_t *const[2]){input_base[0], input_base[1]}, err));
  }
  WF__TRY(wf__ops_to_device(c, a.state_base, state_base, sizeof state_base, err));
  WF__CUDA_TRY(wf__sparse_start(&run->table, run->ranks, run->self->start_key, a.start, c->stream),
               "the start");
  WF__CUDA_TRY(wf__sparse_fill(&run->self->in, &run->table, run->keys, run->count, run->item_off,
                               run->num_items, run->place, run->ranks, a.off, a.arcs, a.final_cost,
                               batch->origins, c->stream),
               "filling the result");
  return wf__ops_finish(c, "filling the result", err);
}

static wf_status fill(struct run *run, bool connect, wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *whole;
  WF__TRY(number(run, err));
  WF__TRY(count_arcs(run, err));
  WF__TRY(wf__gpu_batch_make_on(run->self->context, 1, run->self->log_semiring, make_result, run, 0,
                                "filling the result", &whole, err));
  if (!connect) {
    *out = whole;
    return WF_OK;
  }
  wf__ops_release(run->self->context, run->scratch);
  wf__ops_release(run->self->context, &run->room);
  wf_status status = wf__gpu_batch_trim(whole, out, err);
  wf__gpu_batch_free(whole);
  return status;
}

static void end(struct run *run) {
  wf__ops_release(run->self->context, run->scratch);
  wf__ops_release(run->self->context, &run->room);
}

wf_status wf__sparse_search(const wf__sparse *sparse, uint64_t give_up, bool *out_gave_up,
                            wf_error *err) {
  wf__gpu_blocks scratch = {.count = 0};
  struct run run = {.self = sparse,
                    .max_states = UINT64_MAX,
                    .max_bytes = UINT64_MAX,
                    .give_up = give_up,
                    .scratch = &scratch};
  WF__CUDA_TRY(cudaSetDevice(sparse->context->device), "choosing the GPU");
  wf_status status = search(&run, err);
  *out_gave_up = run.count > give_up;
  end(&run);
  return status;
}

wf_status wf__sparse_run(const wf__sparse *sparse, const wf_compose_options *options,
                         bool with_origins, wf__gpu_batch **out, wf__sparse_counts *counts,
                         wf_error *err) {
  wf__gpu_blocks scratch = {.count = 0};
  struct run run = {
      .self = sparse,
      .max_states = options->max_states > 0 ? (uint64_t)options->max_states : WF__MAX_STATES,
      .max_bytes = options->max_bytes > 0 ? (uint64_t)options->max_bytes : UINT64_MAX,
      .give_up = UINT64_MAX,
      .with_origins = with_origins,
      .scratch = &scratch};
  *out = NULL;
  WF__CUDA_TRY(cudaSetDevice(sparse->context->device), "choosing the GPU");
  wf_status status = search(&run, err);
  if (status == WF_OK) status = fill(&run, options->connect, out, err);
  end(&run);
  if (counts != NULL) *counts = run.counts;
  return status;
}
#endif
