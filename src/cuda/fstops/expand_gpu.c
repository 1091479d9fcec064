/* expand_gpu.c - the host side of C o LG on a GPU (expand_kernels.h): levels, with three readbacks
 * each (numbers of items, of new windows, of new states), the types of new windows, the result. */
#include <string.h>

#include "cuda/fstops/expand_kernels.h"
#include "cuda/fstops/ops_batch.h"

struct expanding {
  wf__gpu_context *c;
  wf__gpu_blocks *scratch;
  const wf__window_rule *rule;
  wf__gpu_expansion e;
  wf__gpu_blocks windows, states; /* memory of the tables */
  int32_t *types;                 /* device memory [windows.num_slots / 2] */
  WF__VEC(int32_t) known_types;
  WF__VEC(uint64_t) new_windows;
};

static int bits_for(uint64_t largest) {
  int bits = 1;
  while (bits < 64 && largest >> bits != 0) bits++;
  return bits;
}

/* --- tables ------------------------------------------------------------------------------ */

/* Makes room for `more` keys. The table of windows has an array of types beside it. */
static wf_status reserve(struct expanding *self, wf__gpu_key_table *table, wf__gpu_blocks *blocks,
                         uint64_t more, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_key_table made = {.num_slots = 1024, .count = table->count};
  wf__gpu_blocks room = {.count = 0}, old = *blocks;
  if (table->num_slots / 2 >= table->count + more) return WF_OK;
  while (made.num_slots / 2 < made.count + more) made.num_slots *= 2;
  if (made.num_slots > (uint64_t)1 << 32)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 states or phones in context");
  wf_status status = wf__ops_take(c, &room, made.num_slots * sizeof *made.keys, "phones in context",
                                  (void **)&made.keys, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &room, made.num_slots * 2 * sizeof *made.first, "phones in context",
                          (void **)&made.first, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &room, made.num_slots / 2 * sizeof *made.list, "phones in context",
                          (void **)&made.list, err);
  if (status == WF_OK && table == &self->e.windows)
    status = wf__ops_take(c, &room, made.num_slots / 2 * sizeof *self->types, "phones in context",
                          (void **)&self->types, err);
  made.number = made.first + made.num_slots;
  cudaError_t code = cudaSuccess;
  if (status == WF_OK)
    code = cudaMemsetAsync(made.keys, 0xff, made.num_slots * sizeof *made.keys, c->stream);
  if (status == WF_OK && code == cudaSuccess)
    code = cudaMemsetAsync(made.first, 0xff, made.num_slots * 2 * sizeof *made.first, c->stream);
  if (status == WF_OK && code == cudaSuccess && made.count != 0)
    code = cudaMemcpyAsync(made.list, table->list, made.count * sizeof *made.list,
                           cudaMemcpyDeviceToDevice, c->stream);
  if (status == WF_OK && code == cudaSuccess && made.count != 0)
    code = (cudaError_t)wf__expand_refill(&made, c->stream);
  if (status == WF_OK && code != cudaSuccess)
    status = wf__cuda_fail(err, code, "phones in context");
  if (status == WF_OK && table == &self->e.windows)
    status = wf__ops_to_device(c, self->types, self->known_types.data,
                               made.count * sizeof *self->types, err);
  *blocks = room; /* the caller releases it, also on failure */
  wf__ops_release(c, &old);
  *table = made;
  self->e.types = self->types;
  return status;
}

/* Numbers the new keys among those of the items. *out_found: how many there are. */
static wf_status number_keys(struct expanding *self, wf__gpu_blocks *room, wf__gpu_key_table *table,
                             uint64_t *out_found, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_expansion *e = &self->e;
  uint32_t found;
  WF__CUDA_TRY(wf__expand_insert(e, table, c->stream), "phones in context");
  WF__CUDA_TRY(wf__expand_mark(e, table, c->stream), "phones in context");
  WF__TRY(wf__gpu_scan(c, room, e->flags, e->ranks, e->num_items + 1, err));
  WF__CUDA_TRY(wf__expand_number(e, table, c->stream), "phones in context");
  READ(c, "phones in context", VALUE(found, e->ranks + e->num_items));
  table->count += found;
  *out_found = found;
  return WF_OK;
}

/* --- levels ------------------------------------------------------------------------------ */

/* Looks up the types of the last `count` windows. */
static wf_status find_types(struct expanding *self, uint64_t count, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__window_rule *rule = self->rule;
  const uint64_t first = self->e.windows.count - count;
  if (count == 0) return WF_OK;
  self->new_windows.size = 0;
  WF__TRY(wf__vec_grow(&self->new_windows, count, "phones in context", err));
  WF__TRY(wf__vec_grow(&self->known_types, count, "phones in context", err));
  int32_t *types = self->known_types.data + first;
  WF__TRY(wf__ops_to_host(c, self->new_windows.data, self->e.windows.list + first,
                          count * sizeof *self->new_windows.data, err));
  WF__TRY(wf__ops_finish(c, "phones in context", err));
  WF__TRY(rule->find_types(rule->user, self->new_windows.data, count, types, err));
  self->known_types.size += count;
  return wf__ops_to_device(c, self->types + first, types, count * sizeof *types, err);
}

/* Counts the items of the level's states, and allocates their arrays. */
static wf_status begin_items(struct expanding *self, wf__gpu_blocks *room, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_expansion *e = &self->e;
  TAKE(c, room, e->item_off, e->num_level + 1, "phones in context");
  WF__CUDA_TRY(wf__expand_count(e, c->stream), "phones in context");
  WF__TRY(wf__gpu_scan64(c, room, e->item_off, e->num_level + 1, err));
  READ(c, "phones in context", VALUE(e->num_items, e->item_off + e->num_level));
  if (e->num_items >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%llu arcs in C o LG", (unsigned long long)e->num_items);
  TAKE(c, room, e->item_key, e->num_items, "phones in context");
  TAKE(c, room, e->item_slot, e->num_items, "phones in context");
  TAKE(c, room, e->flags, e->num_items + 1, "phones in context");
  TAKE(c, room, e->ranks, e->num_items + 1, "phones in context");
  return WF_OK;
}

static wf_status do_level(struct expanding *self, wf__gpu_blocks *room, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_expansion *e = &self->e;
  uint64_t found;
  WF__TRY(begin_items(self, room, err));
  if (e->num_items == 0) return WF_OK;
  WF__TRY(reserve(self, &e->windows, &self->windows, e->num_items, err));
  WF__TRY(reserve(self, &e->states, &self->states, e->num_items, err));
  WF__CUDA_TRY(wf__expand_windows(e, c->stream), "phones in context");
  WF__TRY(number_keys(self, room, &e->windows, &found, err));
  WF__TRY(find_types(self, found, err));
  WF__CUDA_TRY(wf__expand_states(e, c->stream), "phones in context");
  WF__TRY(number_keys(self, room, &e->states, &found, err));
  if (e->states.count > self->rule->max_states)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states",
                    (unsigned long long)self->rule->max_states);
  return WF_OK;
}

static wf_status find_states(struct expanding *self, uint64_t start, wf_error *err) {
  wf__gpu_expansion *e = &self->e;
  WF__TRY(reserve(self, &e->states, &self->states, 1, err));
  const uint64_t key = start << e->history_bits;
  WF__TRY(wf__ops_to_device(self->c, e->states.list, &key, sizeof key, err));
  e->states.count = 1;
  WF__CUDA_TRY(wf__expand_refill(&e->states, self->c->stream), "phones in context");
  WF__TRY(wf__ops_finish(self->c, "phones in context", err));
  for (e->begin = 0; e->begin < e->states.count; e->begin += e->num_level) {
    wf__gpu_blocks room = {.count = 0};
    e->num_level = e->states.count - e->begin;
    wf_status status = do_level(self, &room, err);
    wf__ops_release(self->c, &room);
    WF__TRY(status);
  }
  return WF_OK;
}

/* --- the result -------------------------------------------------------------------------- */

static wf_status write_result(struct expanding *self, wf__gpu_batch *batch, wf__gpu_blocks *room,
                              wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_expansion *e = &self->e;
  wf__gpu_arrays a;
  uint32_t num_arcs;
  e->begin = 0;
  e->num_level = e->states.count;
  e->num_types = self->rule->num_types(self->rule->user);
  WF__TRY(begin_items(self, room, err));
  WF__CUDA_TRY(wf__expand_states(e, c->stream), "phones in context");
  WF__CUDA_TRY(wf__expand_kept(e, c->stream), "phones in context");
  WF__TRY(wf__gpu_scan(c, room, e->flags, e->ranks, e->num_items + 1, err));
  READ(c, "phones in context", VALUE(num_arcs, e->ranks + e->num_items));
  WF__TRY(wf__gpu_batch_reserve(batch, e->num_level, num_arcs, &a, err));
  const uint64_t state_base[2] = {0, e->num_level};
  const int64_t start = 0;
  WF__TRY(wf__ops_to_device(c, a.state_base, state_base, sizeof state_base, err));
  WF__TRY(wf__ops_to_device(c, a.start, &start, sizeof start, err));
  WF__CUDA_TRY(wf__expand_write(e, a.off, a.arcs, a.final_cost, c->stream), "phones in context");
  return wf__ops_finish(c, "phones in context", err);
}

struct request {
  const wf__gpu_batch *from;
  const wf__window_rule *rule;
};

static wf_status put_phones(struct expanding *self, wf_error *err) {
  const wf__window_rule *rule = self->rule;
  const uint64_t count = (uint64_t)rule->num_phones + 1;
  int32_t *context_of;
  bool *context_free;
  uint32_t *on_device, bad;
  TAKE(self->c, self->scratch, context_of, count, "phones in context");
  TAKE(self->c, self->scratch, context_free, count, "phones in context");
  TAKE(self->c, self->scratch, on_device, 1, "phones in context");
  WF__TRY(
      wf__ops_to_device(self->c, context_of, rule->context_of, count * sizeof *context_of, err));
  WF__TRY(wf__ops_to_device(self->c, context_free, rule->context_free, count * sizeof *context_free,
                            err));
  WF__CUDA_TRY(cudaMemsetAsync(on_device, 0, sizeof bad, self->c->stream), "phones in context");
  self->e.context_of = context_of;
  self->e.context_free = context_free;
  WF__CUDA_TRY(wf__expand_check(&self->e, on_device, self->c->stream), "phones in context");
  READ(self->c, "phones in context", VALUE(bad, on_device));
  return bad == 0 ? WF_OK : wf__fail(err, WF_ERR_UNSUPPORTED, "an input label is out of range");
}

static wf_status make_expanded(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                               int how, wf_error *err) {
  const struct request *request = user;
  const wf__window_rule *rule = request->rule;
  struct expanding self = {.c = batch->context,
                           .scratch = scratch,
                           .rule = rule,
                           .e = {.f = request->from->f,
                                 .width = rule->width,
                                 .central = rule->central,
                                 .bits = rule->bits,
                                 .num_phones = rule->num_phones,
                                 .num_labels = rule->num_phones + rule->num_disambig,
                                 .history_bits = rule->bits * (rule->width - 1)}};
  wf__gpu_blocks room = {.count = 0};
  (void)how;
  wf_status status = put_phones(&self, err);
  if (status == WF_OK) status = find_states(&self, (uint64_t)request->from->start[0], err);
  if (status == WF_OK) status = write_result(&self, batch, &room, err);
  wf__ops_release(self.c, &room);
  wf__ops_release(self.c, &self.windows);
  wf__ops_release(self.c, &self.states);
  wf__vec_free(&self.known_types);
  wf__vec_free(&self.new_windows);
  return status;
}

wf_status wf__gpu_batch_expand(const wf__gpu_batch *lg, const wf__window_rule *rule,
                               wf__gpu_batch **out, wf_error *err) {
  struct request request = {lg, rule};
  wf__gpu_batch *whole;
  *out = NULL;
  if (lg->start[0] < 0 || rule->width > WF__EXPAND_MAX_WIDTH || rule->bits * rule->width > 63 ||
      rule->bits * (rule->width - 1) + bits_for(lg->f.num_states) > 63)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "too many phones, or too wide a context");
  WF__TRY(wf__gpu_batch_make_on(lg->context, 1, lg->log_semiring, make_expanded, &request, 0,
                                "phones in context", &whole, err));
  if (!rule->connect) {
    *out = whole;
    return WF_OK;
  }
  wf_status status = wf__gpu_batch_connect(whole, out, err);
  wf__gpu_batch_free(whole);
  return status;
}
