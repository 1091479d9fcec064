/* graph_gpu.c - the host side of the last steps of graph building (graph_kernels.h): order of
 * launches, sizes read back. */
#include "cuda/fstops/determinize_kernels.h"
#include "cuda/fstops/epsilons_gpu.h"
#include "cuda/fstops/graph_kernels.h"

/* Prefix sums, and the last of them. */
static wf_status add_up(wf__gpu_context *c, wf__gpu_blocks *room, const uint32_t *in, uint32_t *out,
                        uint64_t count, uint32_t *out_sum, wf_error *err) {
  WF__TRY(wf__gpu_scan(c, room, in, out, count, err));
  READ(c, "prefix sums", VALUE(*out_sum, out + count - 1));
  return WF_OK;
}

static wf_status fill(wf__gpu_context *c, uint32_t *values, int byte, uint64_t count,
                      const char *what, wf_error *err) {
  WF__CUDA_TRY(cudaMemsetAsync(values, byte, count * sizeof *values, c->stream), what);
  return WF_OK;
}

/* Sets the base and the start of the only fst. */
static wf_status put_bases(wf__gpu_batch *batch, const wf__gpu_arrays *a, uint64_t num_states,
                           int64_t start, wf_error *err) {
  batch->state_base[1] = num_states;
  batch->start[0] = start;
  WF__TRY(wf__ops_to_device(batch->context, a->state_base, batch->state_base,
                            2 * sizeof *a->state_base, err));
  return wf__ops_to_device(batch->context, a->start, batch->start, sizeof *a->start, err);
}

/* --- labels, epsilons last --------------------------------------------------------------- */

enum { EPSILONS_LAST = 0 }; /* otherwise the first label that becomes an epsilon */

static wf_status make_changed_arcs(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                                   int first, wf_error *err) {
  const wf__gpu_batch *from = user;
  wf__gpu_arrays a;
  (void)scratch;
  WF__TRY(wf__gpu_batch_begin_alike(batch, from, &a, err));
  if (first == EPSILONS_LAST)
    return wf__gpu_epsilons_last(batch->context, &from->f, a.arcs, NULL, err);
  WF__CUDA_TRY(
      wf__graph_clear_labels(from->f.arcs, from->f.num_arcs, first, a.arcs, batch->context->stream),
      "labels");
  return WF_OK;
}

wf_status wf__gpu_batch_epsilons_last(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err) {
  return wf__gpu_batch_make(batch, make_changed_arcs, EPSILONS_LAST, "epsilons last", out, err);
}

wf_status wf__gpu_batch_clear_labels(const wf__gpu_batch *batch, int32_t first, wf__gpu_batch **out,
                                     wf_error *err) {
  return wf__gpu_batch_make(batch, make_changed_arcs, first, "labels", out, err);
}

/* --- order of discovery ------------------------------------------------------------------ */

static wf_status reserve_discovery(wf__gpu_context *c, wf__gpu_blocks *scratch,
                                   wf__gpu_discovery *d, wf_error *err) {
  uint64_t n = d->f.num_states, m = d->f.num_arcs;
  TAKE(c, scratch, d->number, n, "order of states");
  TAKE(c, scratch, d->order, n, "order of states");
  TAKE(c, scratch, d->found_at, n, "order of states");
  TAKE(c, scratch, d->item_off, n + 1, "order of states");
  TAKE(c, scratch, d->flags, m + 1, "order of states");
  TAKE(c, scratch, d->ranks, m + 1, "order of states");
  WF__TRY(fill(c, d->number, 0xff, n, "order of states", err));
  WF__TRY(fill(c, d->found_at, 0xff, n, "order of states", err));
  WF__CUDA_TRY(wf__discovery_begin(d, c->stream), "order of states");
  return WF_OK;
}

/* Numbers the states that the level leads to, and makes them the next level. */
static wf_status next_level(wf__gpu_context *c, wf__gpu_blocks *room, wf__gpu_discovery *d,
                            wf_error *err) {
  uint64_t count = d->end - d->begin;
  uint32_t found;
  WF__CUDA_TRY(wf__discovery_count(d, c->stream), "order of states");
  WF__TRY(wf__gpu_scan64(c, room, d->item_off, count + 1, err));
  READ(c, "order of states", VALUE(d->num_items, d->item_off + count));
  WF__CUDA_TRY(wf__discovery_find(d, c->stream), "order of states");
  WF__CUDA_TRY(wf__discovery_mark(d, c->stream), "order of states");
  WF__TRY(add_up(c, room, d->flags, d->ranks, d->num_items + 1, &found, err));
  WF__CUDA_TRY(wf__discovery_number(d, c->stream), "order of states");
  d->begin = d->end;
  d->end += found;
  return WF_OK;
}

static wf_status make_by_discovery(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                                   int how, wf_error *err) {
  const wf__gpu_batch *from = user;
  wf__gpu_context *c = batch->context;
  wf__gpu_discovery d = {.f = from->f, .end = 1};
  wf__gpu_arrays a;
  uint32_t *source;
  (void)how;
  batch->trimmed = true;
  WF__TRY(reserve_discovery(c, scratch, &d, err));
  while (d.begin < d.end) {
    wf__gpu_blocks room = {.count = 0};
    wf_status status = next_level(c, &room, &d, err);
    wf__ops_release(c, &room);
    WF__TRY(status);
  }
  if (d.end != d.f.num_states)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "states that the start does not reach");
  TAKE(c, scratch, source, d.f.num_arcs, "order of states");
  WF__TRY(wf__gpu_batch_reserve(batch, d.f.num_states, d.f.num_arcs, &a, err));
  WF__TRY(put_bases(batch, &a, d.f.num_states, 0, err));
  WF__CUDA_TRY(wf__ops_source(&d.f, source, c->stream), "order of states");
  WF__CUDA_TRY(wf__discovery_degrees(&d, a.off, c->stream), "order of states");
  WF__TRY(wf__gpu_scan64(c, scratch, a.off, d.f.num_states + 1, err));
  WF__CUDA_TRY(wf__discovery_write(&d, source, a.off, a.arcs, a.final_cost, c->stream),
               "order of states");
  return WF_OK;
}

wf_status wf__gpu_batch_by_discovery(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                     wf_error *err) {
  *out = NULL;
  if (batch->start[0] < 0) return wf__fail(err, WF_ERR_UNSUPPORTED, "an fst without a start");
  return wf__gpu_batch_make(batch, make_by_discovery, 0, "order of states", out, err);
}

/* --- self-loops -------------------------------------------------------------------------- */

static wf_status put_table(wf__gpu_context *c, wf__gpu_blocks *scratch, const wf__loop_table *table,
                           wf__gpu_loops *l, wf_error *err) {
  uint64_t count = table->num_labels + 1;
  int32_t *loop;
  float *loop_cost, *forward_cost;
  TAKE(c, scratch, loop, count, "self-loops");
  TAKE(c, scratch, loop_cost, count, "self-loops");
  TAKE(c, scratch, forward_cost, count, "self-loops");
  WF__TRY(wf__ops_to_device(c, loop, table->loop, count * sizeof *loop, err));
  WF__TRY(wf__ops_to_device(c, loop_cost, table->loop_cost, count * sizeof *loop_cost, err));
  WF__TRY(
      wf__ops_to_device(c, forward_cost, table->forward_cost, count * sizeof *forward_cost, err));
  l->num_labels = table->num_labels;
  l->loop = loop;
  l->loop_cost = loop_cost;
  l->forward_cost = forward_cost;
  return WF_OK;
}

/* Finds the states with loops, and the arcs that go to copies. */
static wf_status find_classes(wf__gpu_context *c, wf__gpu_blocks *scratch, wf__gpu_loops *l,
                              uint32_t *out_loops, wf_error *err) {
  uint64_t n = l->f.num_states, m = l->f.num_arcs;
  uint32_t trouble, num_goers;
  TAKE(c, scratch, l->low, n, "self-loops");
  TAKE(c, scratch, l->high, n, "self-loops");
  TAKE(c, scratch, l->has_loop, n + 1, "self-loops");
  TAKE(c, scratch, l->loops_before, n + 1, "self-loops");
  TAKE(c, scratch, l->goes, m + 1, "self-loops");
  TAKE(c, scratch, l->place, m + 1, "self-loops");
  TAKE(c, scratch, l->trouble, 1, "self-loops");
  WF__TRY(fill(c, l->low, 0xff, n, "self-loops", err));
  WF__TRY(fill(c, l->high, 0, n, "self-loops", err));
  WF__TRY(fill(c, l->trouble, 0, 1, "self-loops", err));
  WF__CUDA_TRY(wf__loops_classes(l, c->stream), "self-loops");
  WF__CUDA_TRY(wf__loops_marks(l, c->stream), "self-loops");
  WF__TRY(add_up(c, scratch, l->has_loop, l->loops_before, n + 1, out_loops, err));
  WF__TRY(add_up(c, scratch, l->goes, l->place, m + 1, &num_goers, err));
  READ(c, "self-loops", VALUE(trouble, l->trouble));
  l->num_goers = num_goers;
  if (trouble != 0) return wf__fail(err, WF_ERR_UNSUPPORTED, "an input label is out of range");
  return WF_OK;
}

/* Numbers the copies. */
static wf_status find_copies(wf__gpu_context *c, wf__gpu_blocks *scratch, wf__gpu_loops *l,
                             wf_error *err) {
  uint64_t m = l->f.num_arcs, count = l->num_goers;
  uint32_t num_copies;
  size_t bytes = 0;
  char *room;
  TAKE(c, scratch, l->keys, count, "self-loops");
  TAKE(c, scratch, l->sorted, count, "self-loops");
  TAKE(c, scratch, l->arc, count, "self-loops");
  TAKE(c, scratch, l->by_key, count, "self-loops");
  TAKE(c, scratch, l->is_first, m + 1, "self-loops");
  TAKE(c, scratch, l->copy, m + 1, "self-loops");
  TAKE(c, scratch, l->target, m, "self-loops");
  WF__TRY(fill(c, l->is_first, 0, m + 1, "self-loops", err));
  WF__CUDA_TRY(wf__loops_list(l, c->stream), "self-loops");
  WF__CUDA_TRY(
      wf__ops_sort64(l->keys, l->sorted, l->arc, l->by_key, count, 64, NULL, &bytes, c->stream),
      "sorting");
  TAKE(c, scratch, room, bytes, "sorting");
  WF__CUDA_TRY(
      wf__ops_sort64(l->keys, l->sorted, l->arc, l->by_key, count, 64, room, &bytes, c->stream),
      "sorting");
  WF__CUDA_TRY(wf__loops_firsts(l, c->stream), "self-loops");
  WF__TRY(add_up(c, scratch, l->is_first, l->copy, m + 1, &num_copies, err));
  l->num_copies = num_copies;
  TAKE(c, scratch, l->copy_key, num_copies, "self-loops");
  WF__CUDA_TRY(wf__loops_copies(l, c->stream), "self-loops");
  return WF_OK;
}

struct request {
  const wf__gpu_batch *from;
  const wf__loop_table *table;
};

static wf_status make_loops(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                            int how, wf_error *err) {
  const struct request *request = user;
  wf__gpu_context *c = batch->context;
  wf__gpu_loops l = {.f = request->from->f};
  wf__gpu_arrays a;
  uint32_t *source, num_loops;
  (void)how;
  WF__TRY(put_table(c, scratch, request->table, &l, err));
  WF__TRY(find_classes(c, scratch, &l, &num_loops, err));
  if (l.num_goers != 0) WF__TRY(find_copies(c, scratch, &l, err));
  uint64_t num_states = l.f.num_states + l.num_copies;
  if (num_states >= WF__MAX_STATES) return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 states");
  TAKE(c, scratch, source, l.f.num_arcs, "self-loops");
  WF__TRY(wf__gpu_batch_reserve(batch, num_states, l.f.num_arcs + num_loops + 2 * l.num_copies, &a,
                                err));
  WF__TRY(put_bases(batch, &a, num_states, request->from->start[0], err));
  WF__CUDA_TRY(wf__ops_source(&l.f, source, c->stream), "self-loops");
  WF__CUDA_TRY(wf__loops_write(&l, source, a.off, a.arcs, a.final_cost, c->stream), "self-loops");
  return WF_OK;
}

wf_status wf__gpu_batch_add_loops(const wf__gpu_batch *batch, const wf__loop_table *table,
                                  wf__gpu_batch **out, wf_error *err) {
  struct request request = {batch, table};
  wf__gpu_batch *looped;
  *out = NULL;
  WF__TRY(wf__gpu_batch_make_on(batch->context, 1, batch->log_semiring, make_loops, &request, 0,
                                "self-loops", &looped, err));
  wf_status status = wf__gpu_batch_connect(looped, out, err);
  wf__gpu_batch_free(looped);
  return status;
}
