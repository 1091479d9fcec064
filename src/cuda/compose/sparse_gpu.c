/* sparse_gpu.c - the host side of composition by pairs of states on a GPU: upload, search
 * (sparse_search.c), numbering by a sort, arcs, trimming. */
#include "cuda/compose/sparse_gpu.h"

#include <string.h>

#include "cuda/compose/sparse_search.h"
#include "fstops/arcsort.h"
#include "fstops/compose_filter.h"
#include "fstops/compose_rows.h"

_Static_assert((int)WF__SPARSE_STAY == (int)WF__STEP_STAY &&
                   (int)WF__SPARSE_STAY_IF == (int)WF__STEP_STAY_IF &&
                   (int)WF__SPARSE_LABEL == (int)WF__STEP_LABEL,
               "kinds of steps");
_Static_assert(sizeof(wf__sparse_link) == sizeof(wf__row_link), "links");

struct wf__sparse {
  wf__gpu_context *context;
  wf__gpu_blocks owned;
  wf__sparse_inputs in;
  wf__sparse_left *left; /* makes the rows of A; NULL: they are all in `in` */
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
  PUT(self, link_begin, plan->link_off, plan->num_rows + 1);
  self->in.link_end = self->in.link_begin + 1;
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

/* Makes the tables of B, which is in device memory, and finds out whether it is sorted by input
 * label, and whether it has epsilons. */
static wf_status look_at_b(wf__sparse *self, const wf__gpu_fsts *b, bool *out_sorted,
                           bool *out_epsilons, wf_error *err) {
  wf__gpu_context *c = self->context;
  uint32_t flags[2], *on_device;
  int32_t *labels;
  uint64_t *tail;
  uint8_t *kind;
  TAKE(c, &self->owned, labels, b->num_arcs, "the inputs of a composition");
  TAKE(c, &self->owned, tail, b->num_states, "the inputs of a composition");
  TAKE(c, &self->owned, kind, b->num_states, "the inputs of a composition");
  TAKE(c, &self->owned, on_device, 2, "the inputs of a composition");
  WF__CUDA_TRY(cudaMemsetAsync(on_device, 0, sizeof flags, c->stream),
               "the inputs of a composition");
  WF__CUDA_TRY(wf__sparse_look_at_b(b->num_states, b->num_arcs, b->off, b->arcs, b->final_cost,
                                    labels, tail, kind, on_device, c->stream),
               "the inputs of a composition");
  READ(c, "the inputs of a composition", VALUE(flags, on_device));
  *out_sorted = flags[0] == 0;
  *out_epsilons = flags[1] != 0;
  self->in.num_b = b->num_states;
  self->in.b_tail = tail;
  self->in.b_kind = kind;
  self->in.b_off = b->off;
  self->in.b_labels = labels;
  self->in.b_arcs = b->arcs;
  self->in.b_final = b->final_cost;
  return WF_OK;
}

static wf_status check_size(const wf_fst_view *view, wf_error *err) {
  if (view->num_arcs < WF_NO_ARC && view->num_states < UINT32_MAX / 3) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT,
                  "%llu states and %llu arcs: a GPU composes at most 2^32 / 3 and 2^32 - 2",
                  (unsigned long long)view->num_states, (unsigned long long)view->num_arcs);
}

static wf_status put_inputs(wf__sparse *self, const wf__compose_job *job, const wf_fst *a,
                            const wf_fst *b, wf_error *err) {
  WF__TRY(check_size(&job->b->view, err));
  self->log_semiring = job->b->view.semiring == WF_LOG;
  self->input_arcs[1] = job->b->view.num_arcs;
  if (job->a == NULL) {
    self->start_key = (uint64_t)job->b->view.start; /* the chain's state 0 is its start */
  } else {
    WF__TRY(check_size(&job->a->view, err));
    self->input_arcs[0] = job->a->view.num_arcs;
    WF__TRY(put_a(self, job, err));
    WF__TRY(put_places(self, a, job->a, true, &self->in.a_place, err));
  }
  WF__TRY(put_b(self, job->b, err));
  WF__TRY(put_places(self, b, job->b, false, &self->in.b_place, err));
  return wf__ops_finish(self->context, "the inputs of a composition", err);
}

wf_status wf__sparse_create_on(wf__gpu_context *context, const wf__compose_job *job,
                               const wf_fst *a, const wf_fst *b, wf__sparse_left *left,
                               wf__sparse **out, wf_error *err) {
  wf__sparse *self = wf__calloc(1, sizeof *self);
  *out = NULL;
  if (self == NULL) {
    if (left != NULL) left->free(left);
    return wf__fail_memory(err, sizeof *self, "a composition");
  }
  self->context = context;
  context->users++;
  self->left = left;
  wf_status status = put_inputs(self, job, a, b, err);
  if (status == WF_OK)
    *out = self;
  else
    wf__sparse_free(self);
  return status;
}

wf_status wf__sparse_create(const wf__compose_job *job, const wf_fst *a, const wf_fst *b,
                            int device, wf__sparse **out, wf_error *err) {
  wf__gpu_context *context;
  *out = NULL;
  wf__gpu_operation creating;
  WF__TRY(wf__gpu_context_create(device, &context, err));
  wf_status status = wf__gpu_begin(context, &creating, err);
  if (status == WF_OK) {
    status = wf__sparse_create_on(context, job, a, b, NULL, out, err);
    wf__gpu_end(&creating);
  }
  wf__gpu_context_release(context);
  return status;
}

/* Prepares both inputs. *out_sorted: B was sorted; if not, nothing else is done. */
static wf_status take_sides(wf__sparse *self, const wf_fst *a, const wf__gpu_batch *b,
                            const wf_compose_options *o, bool *out_sorted, wf_error *err) {
  wf__compose_side a_side, b_side = {0};
  wf__compose_job job = {
      .a = &a_side, .b = &b_side, .filter = o->filter, .connect = o->connect, .canonical = true};
  b_side.view = (wf_fst_view){.num_states = b->f.num_states,
                              .num_arcs = b->f.num_arcs,
                              .start = b->start[0],
                              .semiring = b->log_semiring ? WF_LOG : WF_TROPICAL};
  WF__TRY(check_size(&b_side.view, err));
  WF__TRY(look_at_b(self, &b->f, out_sorted, &b_side.has_epsilons, err));
  if (!*out_sorted) return WF_OK;
  WF__TRY(wf__compose_side_init(&a_side, a, true, err));
  wf_status status = check_size(&a_side.view, err);
  if (status == WF_OK) status = put_a(self, &job, err);
  if (status == WF_OK) status = wf__ops_finish(self->context, "the inputs of a composition", err);
  wf__compose_side_free(&a_side);
  return status;
}

/* Composes with a B whose arcs are sorted. *out NULL: they are not. */
static wf_status compose_sorted(const wf_fst *a, const wf__gpu_batch *b,
                                const wf_compose_options *o, wf__gpu_batch **out, wf_error *err) {
  wf__sparse *self = wf__calloc(1, sizeof *self);
  bool sorted = false;
  *out = NULL;
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a composition");
  self->context = b->context;
  self->context->users++;
  self->log_semiring = b->log_semiring;
  wf_status status = take_sides(self, a, b, o, &sorted, err);
  if (status == WF_OK && sorted) status = wf__sparse_run(self, o, false, out, NULL, err);
  wf__sparse_free(self);
  return status;
}

static wf_status compose(const wf_fst *a, const wf__gpu_batch *b, const wf_compose_options *o,
                         wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *by_label;
  WF__TRY(compose_sorted(a, b, o, out, err));
  if (*out != NULL) return WF_OK;
  WF__TRY(wf__gpu_batch_arcsort(b, false, &by_label, err));
  wf_status status = compose_sorted(a, by_label, o, out, err);
  wf__gpu_batch_free(by_label);
  return status;
}

wf_status wf__gpu_batch_compose(const wf_fst *a, const wf__gpu_batch *b,
                                const wf_compose_options *o, wf__gpu_batch **out, wf_error *err) {
  wf__gpu_operation composing;
  *out = NULL;
  if (wf_fst_get_view(a).start < 0 || b->start[0] < 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "an fst without a start: only the CPU composes that");
  WF__TRY(wf__gpu_begin(b->context, &composing, err));
  const wf_status status = compose(a, b, o, out, err);
  wf__gpu_end(&composing);
  return status;
}

void wf__sparse_free(wf__sparse *sparse) {
  if (sparse == NULL) return;
  if (sparse->left != NULL) sparse->left->free(sparse->left);
  const int caller = wf__callers_device();
  cudaSetDevice(sparse->context->device);
  wf__ops_release(sparse->context, &sparse->owned);
  wf__restore_device(caller);
  wf__gpu_context_release(sparse->context);
  free(sparse);
}

/* --- the result -------------------------------------------------------------------------- */

/* The state of a run. */
struct run {
  const wf__sparse *self;
  wf__sparse_search search;
  bool with_origins;
  wf__gpu_blocks *scratch;           /* temporary arrays from which the result is made */
  uint64_t *keys, *item_off, *place; /* sorted keys; prefix sums of their items; prefix sums of the
                                        items' arcs */
  uint64_t num_items, num_arcs;
  uint32_t *ranks;
};

wf__sparse_search wf__sparse_search_of(const wf__sparse *sparse,
                                       const wf_compose_options *options) {
  return (wf__sparse_search){
      .context = sparse->context,
      .in = sparse->in,
      .left = sparse->left,
      .start_key = sparse->start_key,
      .max_states = options->max_states > 0 ? (uint64_t)options->max_states : WF__MAX_STATES,
      .max_bytes = options->max_bytes > 0 ? (uint64_t)options->max_bytes : UINT64_MAX,
      .give_up = UINT64_MAX};
}

/* Sorts the keys and writes the rank of each key at its slot of the table. */
static wf_status number(struct run *run, wf_error *err) {
  wf__sparse_search *search = &run->search;
  wf__gpu_context *c = search->context;
  TAKE(c, run->scratch, run->keys, search->count, "pairs of states");
  TAKE(c, run->scratch, run->ranks, search->table.num_slots, "pairs of states");
  WF__TRY(wf__sparse_search_sort(search, run->scratch, run->keys, err));
  WF__CUDA_TRY(wf__sparse_rank(&search->table, run->keys, 0, search->count, run->ranks, c->stream),
               "pairs of states");
  return WF_OK;
}

static wf_status count_arcs(struct run *run, wf_error *err) {
  const wf__sparse_search *search = &run->search;
  wf__gpu_context *c = search->context;
  WF__TRY(
      wf__sparse_search_items(search, run->scratch, run->keys, search->count, &run->item_off, err));
  READ(c, "pairs of states", VALUE(run->num_items, run->item_off + search->count));
  WF__TRY(wf__sparse_search_check(
      search, search->table.num_slots * 16 + search->count * 16 + run->num_items * 8, err));
  TAKE(c, run->scratch, run->place, run->num_items + 1, "counts of arcs");
  WF__CUDA_TRY(wf__sparse_count(&search->in, run->keys, search->count, run->item_off,
                                run->num_items, run->place, c->stream),
               "counting arcs");
  WF__TRY(wf__sparse_search_add_up(search, run->scratch, run->place, run->num_items + 1, err));
  READ(c, "counting arcs", VALUE(run->num_arcs, run->place + run->num_items));
  uint64_t per_arc = sizeof(wf_arc) + (run->with_origins ? sizeof(wf_arc_origin) : 0);
  return wf__sparse_search_check(search,
                                 search->table.num_slots * 16 + search->count * 28 +
                                     run->num_items * 8 + run->num_arcs * per_arc,
                                 err);
}

static wf_status make_result(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                             int how, wf_error *err) {
  const struct run *run = user;
  const wf__sparse_search *search = &run->search;
  wf__gpu_context *c = batch->context;
  wf__gpu_arrays a;
  (void)scratch, (void)how;
  WF__TRY(wf__gpu_batch_reserve(batch, search->count, run->num_arcs, &a, err));
  uint64_t state_base[2] = {0, search->count};
  if (run->with_origins) {
    const uint64_t input_base[2][2] = {{0, run->self->input_arcs[0]},
                                       {0, run->self->input_arcs[1]}};
    TAKE(c, &batch->owned, batch->origins, run->num_arcs, "origins of arcs");
    WF__TRY(wf__gpu_batch_input_bases(
        batch, (const uint64_t *const[2]){input_base[0], input_base[1]}, err));
  }
  WF__TRY(wf__ops_to_device(c, a.state_base, state_base, sizeof state_base, err));
  WF__CUDA_TRY(
      wf__sparse_start(&search->table, run->ranks, run->self->start_key, a.start, c->stream),
      "the start");
  WF__CUDA_TRY(wf__sparse_fill(&search->in, &search->table, run->keys, search->count, run->item_off,
                               run->num_items, run->place, run->ranks, a.off, a.arcs, a.final_cost,
                               batch->origins, c->stream),
               "filling the result");
  return wf__ops_finish(c, "filling the result", err);
}

static void end(struct run *run) {
  wf__ops_release(run->self->context, run->scratch);
  wf__sparse_search_end(&run->search);
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
  end(run);
  wf_status status = wf__gpu_batch_trim(whole, out, err);
  wf__gpu_batch_free(whole);
  return status;
}

wf_status wf__sparse_reaches_more(const wf__sparse *sparse, uint64_t give_up, bool *out_gave_up,
                                  wf_error *err) {
  wf__sparse_search search = wf__sparse_search_of(sparse, &(wf_compose_options){.max_states = 0});
  search.max_states = UINT64_MAX;
  search.give_up = give_up;
  wf__gpu_operation searching;
  WF__TRY(wf__gpu_begin(sparse->context, &searching, err));
  wf_status status = wf__sparse_search_all(&search, err);
  *out_gave_up = search.count > give_up;
  wf__sparse_search_end(&search);
  wf__gpu_end(&searching);
  return status;
}

wf_status wf__sparse_run(const wf__sparse *sparse, const wf_compose_options *options,
                         bool with_origins, wf__gpu_batch **out, wf__sparse_counts *counts,
                         wf_error *err) {
  wf__gpu_operation running;
  struct run run = {.self = sparse,
                    .search = wf__sparse_search_of(sparse, options),
                    .with_origins = with_origins,
                    .scratch = &running.scratch};
  *out = NULL;
  WF__TRY(wf__gpu_begin(sparse->context, &running, err));
  wf_status status = wf__sparse_search_all(&run.search, err);
  if (status == WF_OK) status = fill(&run, options->connect, out, err);
  end(&run);
  wf__gpu_end(&running);
  if (counts != NULL)
    *counts = (wf__sparse_counts){.num_pairs = run.search.count,
                                  .num_levels = run.search.num_levels,
                                  .num_items = run.num_items};
  return status;
}
