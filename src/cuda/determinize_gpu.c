/* determinize_gpu.c - determinization on a GPU from the host's side: it looks three times a level, at the numbers of items, of arcs, and of new subsets. */
#if defined(WARPFST_CUDA) || defined(FAKE_CUDA)
#include "cuda/determinize_gpu.h"

#include "cuda/determinize_kernels.h"
#include "cuda/ops_batch.h"
#include "cuda/sparse_kernels.h"

struct determinization {
  wf__gpu_context *c;
  wf__gpu_blocks *scratch;
  wf__gpu_subsets s;
  uint64_t room_subsets, room_elements, room_arcs;
  uint64_t num_subsets, num_elements, num_arcs;
  wf__gpu_det_stats stats;
};

struct request {
  const wf__gpu_batch *from;
  double delta;
  uint32_t room;
  wf__gpu_det_stats *stats;
};

static int bits_for(uint64_t largest) {
  int bits = 1;
  while (bits < 64 && largest >> bits != 0) bits++;
  return bits;
}

static wf_status reserve(struct determinization *self, uint32_t start, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_subsets *s = &self->s;
  for (s->num_slots = 1024; s->num_slots < 2 * self->room_subsets;) s->num_slots *= 2;
  TAKE(c, self->scratch, s->off, self->room_subsets + 1, "subsets");
  TAKE(c, self->scratch, s->hash, self->room_subsets, "subsets");
  TAKE(c, self->scratch, s->owner, self->room_elements, "subsets");
  TAKE(c, self->scratch, s->state, self->room_elements, "subsets");
  TAKE(c, self->scratch, s->cost, self->room_elements, "subsets");
  TAKE(c, self->scratch, s->string, self->room_elements, "subsets");
  TAKE(c, self->scratch, s->slots, s->num_slots, "subsets");
  TAKE(c, self->scratch, s->final_key, self->room_subsets, "subsets");
  TAKE(c, self->scratch, s->arc_off, self->room_subsets + 1, "arcs");
  TAKE(c, self->scratch, s->arcs, self->room_arcs, "arcs");
  TAKE(c, self->scratch, s->trouble, 1, "subsets");
  WF__CUDA_TRY(cudaMemsetAsync(s->trouble, 0, sizeof *s->trouble, c->stream), "subsets");
  WF__CUDA_TRY(cudaMemsetAsync(s->slots, 0xff, s->num_slots * sizeof *s->slots, c->stream), "subsets");
  WF__CUDA_TRY(wf__determinize_begin(s, self->room_subsets, start, c->stream), "subsets");
  self->num_subsets = self->num_elements = 1;
  return WF_OK;
}

/* Sums of `values` in place, and the last of them. */
static wf_status add_up(struct determinization *self, wf__gpu_blocks *room, uint64_t *values, uint64_t count, uint64_t *out_sum, wf_error *err) {
  wf__gpu_context *c = self->c;
  size_t bytes = 0;
  char *scratch;
  WF__CUDA_TRY(wf__sparse_scan(values, values, count, NULL, &bytes, c->stream), "prefix sums");
  TAKE(c, room, scratch, bytes, "prefix sums");
  WF__CUDA_TRY(wf__sparse_scan(values, values, count, scratch, &bytes, c->stream), "prefix sums");
  WF__TRY(wf__ops_to_host(c, out_sum, values + count - 1, sizeof *out_sum, err));
  return wf__ops_finish(c, "subsets", err);
}

static wf_status find_items(struct determinization *self, wf__gpu_blocks *room, wf__gpu_det_level *level, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_subsets *s = &self->s;
  uint64_t sums;
  size_t bytes = 0;
  char *scratch;
  int key_bits = bits_for(level->num_subsets - 1) + level->label_bits + level->state_bits;
  if (key_bits > 64) return wf__fail(err, WF_ERR_LIMIT, "%llu subsets in a level", (unsigned long long)level->num_subsets);
  TAKE(c, room, level->item_off, level->num_elements + 1, "subsets");
  WF__CUDA_TRY(wf__determinize_count(s, level, c->stream), "subsets");
  WF__TRY(add_up(self, room, level->item_off, level->num_elements + 1, &level->num_items, err));
  if (level->num_items >= UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "%llu arcs in the subsets of a level", (unsigned long long)level->num_items);
  TAKE(c, room, level->keys, level->num_items, "arcs of subsets");
  TAKE(c, room, level->sorted, level->num_items, "arcs of subsets");
  TAKE(c, room, level->index, level->num_items, "arcs of subsets");
  TAKE(c, room, level->by_key, level->num_items, "arcs of subsets");
  TAKE(c, room, level->item_cost, level->num_items, "arcs of subsets");
  TAKE(c, room, level->item_string, level->num_items, "arcs of subsets");
  TAKE(c, room, level->ranks, level->num_items + 1, "arcs of subsets");
  WF__CUDA_TRY(wf__determinize_items(s, level, c->stream), "arcs of subsets");
  WF__CUDA_TRY(wf__determinize_sort(level->keys, level->sorted, level->index, level->by_key, level->num_items, key_bits, NULL, &bytes, c->stream), "sorting");
  TAKE(c, room, scratch, bytes, "sorting");
  if (level->num_items != 0) WF__CUDA_TRY(wf__determinize_sort(level->keys, level->sorted, level->index, level->by_key, level->num_items, key_bits, scratch, &bytes, c->stream), "sorting");
  WF__CUDA_TRY(wf__determinize_flags(s, level, c->stream), "arcs of subsets");
  WF__TRY(add_up(self, room, level->ranks, level->num_items + 1, &sums, err));
  level->num_parts = sums >> 32;
  level->num_arcs = (uint32_t)sums;
  return WF_OK;
}

static wf_status find_subsets(struct determinization *self, wf__gpu_blocks *room, wf__gpu_det_level *level, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_subsets *s = &self->s;
  uint64_t sums;
  if (level->num_arcs > self->room_arcs - self->num_arcs) return wf__fail(err, WF_ERR_LIMIT, "more than %llu arcs", (unsigned long long)self->room_arcs);
  TAKE(c, room, level->part_arc, level->num_parts, "subsets");
  TAKE(c, room, level->part_state, level->num_parts, "subsets");
  TAKE(c, room, level->part_cost, level->num_parts, "subsets");
  TAKE(c, room, level->part_string, level->num_parts, "subsets");
  TAKE(c, room, level->arc_part, level->num_arcs + 1, "subsets");
  TAKE(c, room, level->total, level->num_arcs, "subsets");
  TAKE(c, room, level->common, level->num_arcs, "subsets");
  TAKE(c, room, level->arc_hash, level->num_arcs, "subsets");
  TAKE(c, room, level->arc_slot, level->num_arcs, "subsets");
  TAKE(c, room, level->fresh, level->num_arcs + 1, "subsets");
  TAKE(c, room, level->is_new, level->num_arcs, "subsets");
  WF__CUDA_TRY(wf__determinize_parts(s, level, c->stream), "subsets");
  /* a level could fill the table only if all its arcs were new */
  if (self->num_subsets + level->num_arcs > s->num_slots / 4 * 3) return wf__fail(err, WF_ERR_LIMIT, "more than %llu subsets", (unsigned long long)self->room_subsets);
  WF__CUDA_TRY(wf__determinize_find(s, level, c->stream), "subsets");
  WF__TRY(add_up(self, room, level->fresh, level->num_arcs + 1, &sums, err));
  uint64_t more_subsets = (uint32_t)sums, more_elements = sums >> 32;
  if (more_subsets > self->room_subsets - self->num_subsets || more_elements > self->room_elements - self->num_elements)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu subsets, or %llu elements of them", (unsigned long long)self->room_subsets, (unsigned long long)self->room_elements);
  WF__CUDA_TRY(wf__determinize_store(s, level, self->num_subsets, self->num_elements, c->stream), "subsets");
  self->num_subsets += more_subsets;
  self->num_elements += more_elements;
  self->num_arcs += level->num_arcs;
  return WF_OK;
}

static wf_status check_trouble(struct determinization *self, wf_error *err) {
  uint32_t trouble;
  WF__TRY(wf__ops_to_host(self->c, &trouble, self->s.trouble, sizeof trouble, err));
  WF__TRY(wf__ops_finish(self->c, "subsets", err));
  if (trouble == 0) return WF_OK;
  return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: only the CPU does that", trouble & WF__DET_TWO_OUTPUTS    ? "two outputs of one input"
                                                                         : trouble & WF__DET_FINAL_STRING ? "an output owed at the end"
                                                                         : trouble & WF__DET_INFINITE     ? "an infinite cost"
                                                                         : trouble & WF__DET_LONG_LABEL   ? "a label above 2^21"
                                                                                                          : "an output of several labels");
}

static wf_status write_result(struct determinization *self, wf__gpu_batch *batch, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_arrays a;
  const uint64_t bases[2] = {0, self->num_subsets};
  const int64_t start = 0;
  WF__TRY(wf__gpu_batch_reserve(batch, self->num_subsets, self->num_arcs, &a, err));
  WF__TRY(wf__ops_to_device(c, a.state_base, bases, sizeof bases, err));
  WF__TRY(wf__ops_to_device(c, a.start, &start, sizeof start, err));
  WF__CUDA_TRY(cudaMemcpyAsync(a.off, self->s.arc_off, (self->num_subsets + 1) * sizeof *a.off, cudaMemcpyDeviceToDevice, c->stream), "states");
  WF__CUDA_TRY(cudaMemcpyAsync(a.arcs, self->s.arcs, self->num_arcs * sizeof *a.arcs, cudaMemcpyDeviceToDevice, c->stream), "arcs");
  WF__CUDA_TRY(wf__determinize_finals(&self->s, self->num_subsets, a.final_cost, c->stream), "states");
  return wf__ops_finish(c, "determinization", err); /* bases and start are copied from here */
}

static wf_status find_label_bits(struct determinization *self, int *out, wf_error *err) {
  uint32_t *on_device, bits;
  TAKE(self->c, self->scratch, on_device, 1, "labels");
  WF__CUDA_TRY(cudaMemsetAsync(on_device, 0, sizeof bits, self->c->stream), "labels");
  WF__CUDA_TRY(wf__determinize_label_bits(&self->s.f, on_device, self->c->stream), "labels");
  WF__TRY(wf__ops_to_host(self->c, &bits, on_device, sizeof bits, err));
  WF__TRY(wf__ops_finish(self->c, "labels", err));
  *out = bits_for(bits);
  return WF_OK;
}

static wf_status do_levels(struct determinization *self, wf_error *err) {
  int state_bits = bits_for(self->s.f.num_states - 1), label_bits;
  WF__TRY(find_label_bits(self, &label_bits, err));
  for (uint64_t first = 0, first_element = 0; first < self->num_subsets;) {
    wf__gpu_blocks room = {.count = 0};
    wf__gpu_det_level level = {.first_subset = first, .num_subsets = self->num_subsets - first, .first_element = first_element, .num_elements = self->num_elements - first_element,
                               .first_arc = self->num_arcs, .label_bits = label_bits, .state_bits = state_bits};
    first = self->num_subsets;
    first_element = self->num_elements;
    wf_status status = find_items(self, &room, &level, err);
    if (status == WF_OK) status = find_subsets(self, &room, &level, err);
    wf__ops_give_back(self->c, &room);
    WF__TRY(status);
    self->stats.num_levels++;
    self->stats.num_items += level.num_items;
  }
  return WF_OK;
}

static wf_status make_determinized(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch, int how, wf_error *err) {
  const struct request *request = user;
  const wf__gpu_fsts *f = &request->from->f;
  uint64_t room = request->room * (f->num_states + f->num_arcs + 16);
  struct determinization self = {.c = batch->context, .scratch = scratch, .s = {.f = *f, .inverse_delta = request->delta > 0 ? 1 / request->delta : 0},
                                 .room_subsets = room, .room_elements = room, .room_arcs = room};
  WF__TRY(reserve(&self, (uint32_t)request->from->start[0], err));
  (void)how;
  WF__TRY(do_levels(&self, err));
  WF__TRY(check_trouble(&self, err));
  self.stats.num_elements = self.num_elements;
  *request->stats = self.stats;
  return write_result(&self, batch, err);
}

wf_status wf__gpu_batch_determinize(const wf__gpu_batch *batch, double delta, uint32_t room, wf__gpu_batch **out, wf__gpu_det_stats *stats, wf_error *err) {
  struct request request = {batch, delta, room, stats};
  *out = NULL;
  if (batch->f.num_fsts != 1 || batch->log_semiring || batch->start[0] < 0) return wf__fail(err, WF_ERR_UNSUPPORTED, "one fst with a start, in the tropical semiring");
  return wf__gpu_batch_make_on(batch->context, 1, false, make_determinized, &request, 0, "determinization", out, err);
}
#endif
