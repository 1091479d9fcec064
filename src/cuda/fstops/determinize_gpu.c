/* determinize_gpu.c - the host side of determinization on a GPU: levels of subsets, with three
 * readbacks a level (numbers of items, of arcs, of new subsets), then the result.
 *
 * The sizes of tables are guessed. If one is too small, everything is repeated with a larger
 * one. */
#include <string.h>

#include "cuda/fstops/determinize_kernels.h"
#include "cuda/fstops/epsilons_gpu.h"

/* Initial capacity for subsets, elements and arcs: WF__DET_TIMES times the input's size +
 * WF__DET_ROOM. For strings of more than one label: WF__DET_ROOM. Tests use smaller values. */
#ifndef WF__DET_ROOM
#define WF__DET_ROOM 4096
#define WF__DET_TIMES 2
#endif
#ifndef WF__DET_ITEMS
#define WF__DET_ITEMS \
  ((uint64_t)1 << 26) /* most items of a level, unless a single subset has \
                         more */
#endif

/* Capacities of the tables, or what was needed when they were too small. slots: subsets in the hash
 * table. */
struct rooms {
  uint64_t subsets, slots, elements, arcs, cells;
};

struct determinization {
  wf__gpu_context *c;
  wf__gpu_blocks *scratch;
  const wf_determinize_options *o;
  wf__gpu_subsets s;
  struct rooms room, needed;
  uint64_t num_subsets, num_elements, num_arcs;
  int label_bits, state_bits;
  uint32_t trouble;
};

static int bits_for(uint64_t largest) {
  int bits = 1;
  while (bits < 64 && largest >> bits != 0) bits++;
  return bits;
}

static uint64_t power_of_two(uint64_t least) {
  uint64_t power = 16;
  while (power < least) power *= 2;
  return power;
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Allocates several arrays in one block. */
struct piece {
  void *to; /* a pointer's address */
  uint64_t bytes;
};
static wf_status take_together(struct determinization *self, wf__gpu_blocks *room,
                               const struct piece *pieces, int count, const char *what,
                               wf_error *err) {
  uint64_t bytes = 0;
  char *at;
  for (int i = 0; i < count; i++) bytes += (pieces[i].bytes + 255) / 256 * 256;
  TAKE(self->c, room, at, bytes, what);
  for (int i = 0; i < count; at += (pieces[i].bytes + 255) / 256 * 256, i++)
    memcpy(pieces[i].to, &at, sizeof at);
  return WF_OK;
}
#define PIECE(pointer, count) \
  { &(pointer), (uint64_t)(count) * sizeof *(pointer) }
#define TAKE_TOGETHER(self, room, pieces, what) \
  WF__TRY(take_together(self, room, pieces, (int)(sizeof(pieces) / sizeof *(pieces)), what, err))

/* --- tables ------------------------------------------------------------------------------ */

static wf_status reserve(struct determinization *self, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_subsets *s = &self->s;
  const struct rooms *room = &self->room;
  s->num_slots = power_of_two(2 * most(room->subsets, room->slots));
  s->num_cells = power_of_two(room->cells);
  const struct piece elements[] = {PIECE(s->owner, room->elements), PIECE(s->state, room->elements),
                                   PIECE(s->cost, room->elements),
                                   PIECE(s->string, room->elements)};
  TAKE_TOGETHER(self, self->scratch, elements, "subsets");
  TAKE(c, self->scratch, s->off, room->subsets + 1, "subsets");
  TAKE(c, self->scratch, s->hash, room->subsets, "subsets");
  TAKE(c, self->scratch, s->slots, s->num_slots, "subsets");
  TAKE(c, self->scratch, s->final_key, room->subsets, "subsets");
  TAKE(c, self->scratch, s->final_element, room->subsets, "subsets");
  if (s->ways.count != NULL) TAKE(c, self->scratch, s->final_string, room->subsets, "subsets");
  TAKE(c, self->scratch, s->arc_off, room->subsets + 1, "arcs");
  TAKE(c, self->scratch, s->arcs, room->arcs, "arcs");
  TAKE(c, self->scratch, s->arc_owner, room->arcs, "arcs");
  TAKE(c, self->scratch, s->cells, s->num_cells, "output strings");
  TAKE(c, self->scratch, s->cell_size, s->num_cells, "output strings");
  TAKE(c, self->scratch, s->trouble, 1, "subsets");
  s->num_of_fst = NULL;
  if (s->f.num_fsts > 1) {
    TAKE(c, self->scratch, s->num_of_fst, s->f.num_fsts, "a batch");
    WF__CUDA_TRY(
        cudaMemsetAsync(s->num_of_fst, 0, s->f.num_fsts * sizeof *s->num_of_fst, c->stream),
        "a batch");
  }
  WF__CUDA_TRY(cudaMemsetAsync(s->trouble, 0, sizeof *s->trouble, c->stream), "subsets");
  WF__CUDA_TRY(cudaMemsetAsync(s->slots, 0xff, s->num_slots * sizeof *s->slots, c->stream),
               "subsets");
  WF__CUDA_TRY(cudaMemsetAsync(s->cells, 0, s->num_cells * sizeof *s->cells, c->stream),
               "output strings");
  return WF_OK;
}

/* Makes the first subsets: the start of every fst that has one. */
static wf_status begin(struct determinization *self, const wf__gpu_batch *from, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t count = 0;
  uint32_t *on_device, *starts = wf__alloc(from->f.num_fsts, sizeof *starts);
  if (starts == NULL) return wf__fail_memory(err, from->f.num_fsts * sizeof *starts, "a batch");
  for (uint64_t i = 0; i < from->f.num_fsts; i++)
    if (from->start[i] >= 0) starts[count++] = (uint32_t)from->start[i];
  wf_status status =
      wf__ops_take(c, self->scratch, count * sizeof *starts, "a batch", (void **)&on_device, err);
  if (status == WF_OK)
    status = wf__ops_to_device(c, on_device, starts, count * sizeof *starts, err);
  if (status == WF_OK) {
    cudaError_t code = (cudaError_t)wf__determinize_begin(&self->s, self->room.subsets, on_device,
                                                          count, c->stream);
    status = code == cudaSuccess ? wf__ops_finish(c, "subsets", err)
                                 : wf__cuda_fail(err, code, "subsets");
  }
  free(starts);
  self->num_subsets = self->num_elements = count;
  self->num_arcs = 0;
  return status;
}

/* --- a level ----------------------------------------------------------------------------- */

/* Exclusive prefix sums of `values` in place. Reads back the last one and `trouble`. */
static wf_status add_up(struct determinization *self, wf__gpu_blocks *room, uint64_t *values,
                        uint64_t count, uint64_t *out_sum, wf_error *err) {
  wf__gpu_context *c = self->c;
  WF__TRY(wf__gpu_scan64(c, room, values, count, err));
  READ(c, "subsets", VALUE(*out_sum, values + count - 1), VALUE(self->trouble, self->s.trouble));
  return WF_OK;
}

/* Fails if the kernels have set an error bit in `trouble`. *out_full: the table of strings is too
 * small. */
static wf_status check_trouble(struct determinization *self, bool *out_full, wf_error *err) {
  *out_full = (self->trouble & WF__DET_FULL_STRINGS) != 0;
  if (*out_full) {
    self->needed = (struct rooms){.cells = self->s.num_cells + 1};
    return WF_OK;
  }
  if (self->trouble & (WF__DET_TIE | WF__DET_LOST_EPSILON))
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    self->trouble & WF__DET_TIE
                        ? "two outputs of the same cost along epsilons: only the CPU chooses"
                        : "an epsilon of infinite cost: only the CPU determinizes that");
  if (self->trouble & WF__DET_LONG_STRING)
    return wf__fail(
        err, WF_ERR_UNSUPPORTED,
        "an output more than %d labels behind the input: only the CPU determinizes that",
        WF__DET_MOST_LABELS);
  if (self->trouble & WF__DET_TWO_OUTPUTS)
    return wf__fail(err, WF_ERR_NOT_DETERMINIZABLE, "not functional: an input has two outputs");
  if (self->trouble & WF__DET_MANY_STATES)
    return wf__fail(err, WF_ERR_NOT_DETERMINIZABLE, "gave up after too many states (max_states)");
  return WF_OK;
}

/* Sets the level's number of elements: all that are left, or those before the next level's first
 * subset. */
static wf_status find_elements(struct determinization *self, wf__gpu_det_level *level,
                               wf_error *err) {
  uint64_t end = self->num_elements, subsets_end = level->first_subset + level->num_subsets;
  if (subsets_end < self->num_subsets)
    READ(self->c, "subsets", VALUE(end, self->s.off + subsets_end));
  level->num_elements = end - level->first_element;
  return WF_OK;
}

/* Limits the level to as many subsets as fit into the keys and into memory, at least one, and
 * counts their items. */
static wf_status count_items(struct determinization *self, wf__gpu_blocks *room,
                             wf__gpu_det_level *level, wf_error *err) {
  int free_bits = 63 - level->label_bits - level->state_bits;
  if (free_bits < 63 && level->num_subsets > (uint64_t)1 << free_bits)
    level->num_subsets = (uint64_t)1 << free_bits;
  for (;;) {
    WF__TRY(find_elements(self, level, err));
    TAKE(self->c, room, level->item_off, level->num_elements + 1, "subsets");
    WF__CUDA_TRY(wf__determinize_count(&self->s, level, self->c->stream), "subsets");
    WF__TRY(add_up(self, room, level->item_off, level->num_elements + 1, &level->num_items, err));
    if (level->num_items <= WF__DET_ITEMS || level->num_subsets == 1) break;
    wf__ops_release(self->c, room);
    level->num_subsets = (level->num_subsets + 1) / 2;
  }
  if (level->num_items >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%llu arcs in a subset",
                    (unsigned long long)level->num_items);
  level->key_bits = level->label_bits + level->state_bits + 1 +
                    (level->num_subsets > 1 ? bits_for(level->num_subsets - 1) : 0);
  return WF_OK;
}

static wf_status find_items(struct determinization *self, wf__gpu_blocks *room,
                            wf__gpu_det_level *level, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_subsets *s = &self->s;
  uint64_t sums, n = level->num_items;
  size_t bytes = 0;
  char *scratch;
  const struct piece pieces[] = {PIECE(level->keys, n),      PIECE(level->sorted, n),
                                 PIECE(level->index, n),     PIECE(level->by_key, n),
                                 PIECE(level->item_cost, n), PIECE(level->item_string, n),
                                 PIECE(level->ranks, n + 1)};
  TAKE_TOGETHER(self, room, pieces, "arcs of subsets");
  WF__CUDA_TRY(wf__determinize_items(s, level, c->stream), "arcs of subsets");
  WF__CUDA_TRY(wf__ops_sort64(level->keys, level->sorted, level->index, level->by_key, n,
                              level->key_bits, NULL, &bytes, c->stream),
               "sorting");
  TAKE(c, room, scratch, bytes, "sorting");
  if (n != 0)
    WF__CUDA_TRY(wf__ops_sort64(level->keys, level->sorted, level->index, level->by_key, n,
                                level->key_bits, scratch, &bytes, c->stream),
                 "sorting");
  WF__CUDA_TRY(wf__determinize_flags(s, level, c->stream), "arcs of subsets");
  WF__TRY(add_up(self, room, level->ranks, n + 1, &sums, err));
  level->num_parts = sums >> 32;
  level->num_arcs = (uint32_t)sums;
  return WF_OK;
}

/* *out_more: the tables are too small. */
static wf_status find_subsets(struct determinization *self, wf__gpu_blocks *room,
                              wf__gpu_det_level *level, bool *out_more, wf_error *err) {
  wf__gpu_context *c = self->c;
  const wf__gpu_subsets *s = &self->s;
  uint64_t sums, parts = level->num_parts, arcs = level->num_arcs;
  const struct piece pieces[] = {PIECE(level->part_arc, parts),    PIECE(level->part_state, parts),
                                 PIECE(level->part_cost, parts),   PIECE(level->part_string, parts),
                                 PIECE(level->arc_part, arcs + 1), PIECE(level->total, arcs),
                                 PIECE(level->common, arcs),       PIECE(level->output, arcs),
                                 PIECE(level->arc_hash, arcs),     PIECE(level->arc_slot, arcs),
                                 PIECE(level->fresh, arcs + 1),    PIECE(level->is_new, arcs)};
  *out_more = true;
  self->needed = (struct rooms){.slots = self->num_subsets + arcs, .arcs = self->num_arcs + arcs};
  if (self->needed.slots > s->num_slots / 4 * 3 || self->needed.arcs > self->room.arcs)
    return WF_OK; /* if all arcs led to new subsets, the table could become too full */
  TAKE_TOGETHER(self, room, pieces, "subsets");
  WF__CUDA_TRY(wf__determinize_parts(s, level, c->stream), "subsets");
  WF__CUDA_TRY(wf__determinize_find(s, level, c->stream), "subsets");
  WF__TRY(add_up(self, room, level->fresh, arcs + 1, &sums, err));
  WF__TRY(check_trouble(self, out_more, err));
  if (*out_more) return WF_OK;
  self->needed = (struct rooms){.subsets = self->num_subsets + (uint32_t)sums,
                                .elements = self->num_elements + (sums >> 32)};
  *out_more =
      self->needed.subsets > self->room.subsets || self->needed.elements > self->room.elements;
  if (*out_more) return WF_OK;
  WF__CUDA_TRY(wf__determinize_store(s, level, self->num_subsets, self->num_elements, c->stream),
               "subsets");
  self->num_subsets = self->needed.subsets;
  self->num_elements = self->needed.elements;
  self->num_arcs += arcs;
  if (s->f.num_fsts == 1 &&
      self->num_subsets > wf__determinize_limit(s->max_states, s->f.num_states))
    self->trouble |= WF__DET_MANY_STATES;
  if (self->num_subsets >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 - 2 states");
  bool full;
  return check_trouble(self, &full, err);
}

static wf_status do_level(struct determinization *self, wf__gpu_blocks *room,
                          wf__gpu_det_level *level, bool *out_more, wf_error *err) {
  WF__TRY(count_items(self, room, level, err));
  WF__TRY(find_items(self, room, level, err));
  WF__TRY(check_trouble(self, out_more, err));
  return *out_more ? WF_OK : find_subsets(self, room, level, out_more, err);
}

static wf_status do_levels(struct determinization *self, bool *out_more, wf_error *err) {
  uint64_t first = 0, first_element = 0;
  *out_more = false;
  while (first < self->num_subsets && !*out_more) {
    wf__gpu_blocks room = {.count = 0};
    wf__gpu_det_level level = {.first_subset = first,
                               .num_subsets = self->num_subsets - first,
                               .first_element = first_element,
                               .first_arc = self->num_arcs,
                               .label_bits = self->label_bits,
                               .state_bits = self->state_bits};
    wf_status status = do_level(self, &room, &level, out_more, err);
    wf__ops_release(self->c, &room);
    WF__TRY(status);
    first += level.num_subsets;
    first_element += level.num_elements;
  }
  return WF_OK;
}

/* Repeats the search until the tables are large enough. */
static wf_status find_all(struct determinization *self, const wf__gpu_batch *from, wf_error *err) {
  uint64_t size = most(WF__DET_TIMES * (self->s.f.num_states + self->s.f.num_arcs) + WF__DET_ROOM,
                       self->s.f.num_fsts);
  bool more = true;
  self->room =
      (struct rooms){.subsets = size, .elements = size, .arcs = size, .cells = WF__DET_ROOM};
  for (;;) {
    WF__TRY(reserve(self, err));
    WF__TRY(begin(self, from, err));
    WF__TRY(do_levels(self, &more, err));
    if (!more) return WF_OK;
    wf__ops_release(self->c, self->scratch);
    if (self->needed.subsets > self->room.subsets) self->room.subsets = 4 * self->needed.subsets;
    if (self->needed.slots > self->s.num_slots / 4 * 3) self->room.slots = 2 * self->needed.slots;
    if (self->needed.elements > self->room.elements)
      self->room.elements = 4 * self->needed.elements;
    if (self->needed.arcs > self->room.arcs) self->room.arcs = 4 * self->needed.arcs;
    if (self->needed.cells > self->s.num_cells) self->room.cells = 8 * self->s.num_cells;
  }
}

/* --- the result -------------------------------------------------------------------------- */

/* Counts for each fst of a batch and their prefix sums, in host memory. */
struct bases {
  uint32_t *count; /* [num_fsts] */
  uint64_t *base;  /* [3][num_fsts + 1] for subsets, sinks, chain states */
};

static void sum_up(const struct bases *bases, int which, uint64_t num_fsts) {
  uint64_t *base = bases->base + (uint64_t)which * (num_fsts + 1);
  base[0] = 0;
  for (uint64_t i = 0; i < num_fsts; i++) base[i + 1] = base[i] + bases->count[i];
}

/* Orders the subsets by fst. Within an fst they are already in the order of discovery, since levels
 * are. */
static wf_status order_subsets(struct determinization *self, wf__gpu_det_result *r,
                               const struct bases *bases, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t num_fsts = self->s.f.num_fsts;
  size_t bytes = 0;
  char *scratch;
  uint32_t *sorted;
  WF__CUDA_TRY(cudaMemsetAsync(r->sink, 0, num_fsts * sizeof *r->sink, c->stream), "states");
  WF__CUDA_TRY(wf__determinize_owed(&self->s, r, c->stream), "states");
  r->by_fst = r->fst;
  bases->count[0] = (uint32_t)r->num_subsets;
  if (num_fsts > 1) {
    TAKE(c, self->scratch, r->by_fst, r->num_subsets, "states");
    TAKE(c, self->scratch, sorted, r->num_subsets, "states");
    int bits = bits_for(num_fsts - 1);
    WF__CUDA_TRY(wf__ops_sort(r->fst, r->by_fst, r->order, sorted, r->num_subsets, bits, NULL,
                              &bytes, c->stream),
                 "sorting");
    TAKE(c, self->scratch, scratch, bytes, "sorting");
    WF__CUDA_TRY(wf__ops_sort(r->fst, r->by_fst, r->order, sorted, r->num_subsets, bits, scratch,
                              &bytes, c->stream),
                 "sorting");
    r->order = sorted;
    WF__TRY(
        wf__ops_to_host(c, bases->count, self->s.num_of_fst, num_fsts * sizeof *bases->count, err));
    WF__TRY(wf__ops_finish(c, "states", err));
  }
  sum_up(bases, 0, num_fsts);
  WF__TRY(wf__ops_to_host(c, bases->count, r->sink, num_fsts * sizeof *bases->count, err));
  WF__TRY(wf__ops_finish(c, "states", err));
  sum_up(bases, 1, num_fsts);
  if (r->num_subsets + bases->base[2 * num_fsts + 1] >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 - 2 states");
  return wf__ops_to_device(c, r->base, bases->base, 3 * (num_fsts + 1) * sizeof *r->base, err);
}

static wf_status place_arcs(struct determinization *self, wf__gpu_det_result *r,
                            const struct bases *bases, uint64_t *out_spelled, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t room =
      self->num_arcs + (bases->base[2 * self->s.f.num_fsts + 1] != 0 ? r->num_subsets : 0);
  WF__CUDA_TRY(wf__determinize_degrees(&self->s, r, c->stream), "arcs");
  WF__TRY(add_up(self, self->scratch, r->arc_off, r->num_subsets + 1, &r->num_arcs, err));
  TAKE(c, self->scratch, r->arcs, room, "arcs");
  TAKE(c, self->scratch, r->num_spelled, 1, "arcs");
  WF__CUDA_TRY(cudaMemsetAsync(r->num_spelled, 0, sizeof *r->num_spelled, c->stream), "arcs");
  WF__CUDA_TRY(wf__determinize_place(&self->s, r, c->stream), "arcs");
  READ(c, "arcs", VALUE(*out_spelled, r->num_spelled));
  return WF_OK;
}

static wf_status number_nodes(struct determinization *self, wf__gpu_det_result *r, wf_error *err) {
  wf__gpu_context *c = self->c;
  size_t bytes = 0;
  char *scratch;
  const struct piece pieces[] = {
      PIECE(r->node_tag, r->num_nodes),  PIECE(r->tag_sorted, r->num_nodes),
      PIECE(r->node_slot, r->num_nodes), PIECE(r->slot_sorted, r->num_nodes),
      PIECE(r->slot_node, r->num_slots), PIECE(r->num_of_fst, self->s.f.num_fsts)};
  TAKE_TOGETHER(self, self->scratch, pieces, "output strings");
  WF__CUDA_TRY(wf__determinize_nodes(r, c->stream), "output strings");
  WF__CUDA_TRY(wf__ops_sort64(r->node_tag, r->tag_sorted, r->node_slot, r->slot_sorted,
                              r->num_nodes, 64, NULL, &bytes, c->stream),
               "sorting");
  TAKE(c, self->scratch, scratch, bytes, "sorting");
  WF__CUDA_TRY(wf__ops_sort64(r->node_tag, r->tag_sorted, r->node_slot, r->slot_sorted,
                              r->num_nodes, 64, scratch, &bytes, c->stream),
               "sorting");
  WF__CUDA_TRY(
      cudaMemsetAsync(r->num_of_fst, 0, self->s.f.num_fsts * sizeof *r->num_of_fst, c->stream),
      "output strings");
  WF__CUDA_TRY(wf__determinize_number(&self->s, r, c->stream), "output strings");
  return WF_OK;
}

/* Makes the states that spell the labels after the first of each output; `num_spelled` labels in
 * all. */
static wf_status make_chains(struct determinization *self, wf__gpu_det_result *r,
                             const struct bases *bases, uint64_t num_spelled, wf_error *err) {
  wf__gpu_context *c = self->c;
  uint64_t num_fsts = self->s.f.num_fsts;
  uint32_t num_nodes;
  r->num_slots = power_of_two(2 * num_spelled);
  if (r->num_slots > (uint64_t)1 << 31)
    return wf__fail(err, WF_ERR_LIMIT, "%llu labels beside the first of outputs, at most 2^30",
                    (unsigned long long)num_spelled);
  const struct piece pieces[] = {PIECE(r->slots, r->num_slots), PIECE(r->tag, r->num_slots),
                                 PIECE(r->slot_ilabel, r->num_slots),
                                 PIECE(r->used, r->num_slots + 1),
                                 PIECE(r->used_rank, r->num_slots + 1)};
  TAKE_TOGETHER(self, self->scratch, pieces, "output strings");
  WF__CUDA_TRY(cudaMemsetAsync(r->slots, 0, r->num_slots * sizeof *r->slots, c->stream),
               "output strings");
  WF__CUDA_TRY(cudaMemsetAsync(r->tag, 0xff, r->num_slots * sizeof *r->tag, c->stream),
               "output strings");
  WF__CUDA_TRY(wf__determinize_chains(&self->s, r, c->stream), "output strings");
  WF__TRY(wf__gpu_scan(self->c, self->scratch, r->used, r->used_rank, r->num_slots + 1, err));
  READ(c, "output strings", VALUE(num_nodes, r->used_rank + r->num_slots));
  r->num_nodes = num_nodes;
  WF__TRY(number_nodes(self, r, err));
  WF__TRY(wf__ops_to_host(c, bases->count, r->num_of_fst, num_fsts * sizeof *bases->count, err));
  WF__TRY(wf__ops_finish(c, "output strings", err));
  sum_up(bases, 2, num_fsts);
  return wf__ops_to_device(c, r->node_base, bases->base + 2 * (num_fsts + 1),
                           (num_fsts + 1) * sizeof *r->node_base, err);
}

static wf_status write_arrays(struct determinization *self, const wf__gpu_det_result *r,
                              const struct bases *bases, wf__gpu_batch *batch, wf_error *err) {
  wf__gpu_context *c = self->c;
  wf__gpu_arrays a;
  uint64_t n = self->s.f.num_fsts;
  const uint64_t *base = bases->base, *sink_base = base + n + 1, *node_base = sink_base + n + 1;
  for (uint64_t i = 0; i <= n; i++) batch->state_base[i] = base[i] + sink_base[i] + node_base[i];
  for (uint64_t i = 0; i < n; i++)
    batch->start[i] = base[i + 1] > base[i] ? (int64_t)batch->state_base[i] : -1;
  WF__TRY(wf__gpu_batch_reserve(batch, batch->state_base[n], r->num_arcs + r->num_nodes, &a, err));
  WF__TRY(
      wf__ops_to_device(c, a.state_base, batch->state_base, (n + 1) * sizeof *a.state_base, err));
  WF__TRY(wf__ops_to_device(c, a.start, batch->start, n * sizeof *a.start, err));
  WF__CUDA_TRY(wf__determinize_write(&self->s, r, a.off, a.final_cost, a.arcs, c->stream),
               "determinization");
  return wf__ops_finish(c, "determinization", err);
}

static wf_status write_result(struct determinization *self, const struct bases *bases,
                              wf__gpu_batch *batch, wf_error *err) {
  wf__gpu_det_result r = {.num_subsets = self->num_subsets,
                          .subsequential_label = self->o->subsequential_label};
  uint64_t num_fsts = self->s.f.num_fsts, num_spelled;
  const struct piece pieces[] = {PIECE(r.fst, r.num_subsets),         PIECE(r.order, r.num_subsets),
                                 PIECE(r.rank, r.num_subsets),        PIECE(r.owed, r.num_subsets),
                                 PIECE(r.arc_off, r.num_subsets + 1), PIECE(r.sink, num_fsts),
                                 PIECE(r.base, 3 * (num_fsts + 1))};
  TAKE_TOGETHER(self, self->scratch, pieces, "states");
  r.sink_base = r.base + num_fsts + 1;
  r.node_base = r.sink_base + num_fsts + 1;
  WF__TRY(order_subsets(self, &r, bases, err));
  WF__TRY(place_arcs(self, &r, bases, &num_spelled, err));
  if (num_spelled != 0) WF__TRY(make_chains(self, &r, bases, num_spelled, err));
  batch->trimmed = !(self->trouble & WF__DET_DROPPED);
  return write_arrays(self, &r, bases, batch, err);
}

/* --- entry point ------------------------------------------------------------------------- */

/* Measures the labels, and counts the ways along epsilons if these are followed. */
static wf_status look_at_labels(struct determinization *self, wf__gpu_blocks *ways, wf_error *err) {
  wf__gpu_blocks room = {.count = 0};
  uint32_t *on_device, found[2];
  TAKE(self->c, &room, on_device, 2, "labels");
  cudaError_t code = cudaMemsetAsync(on_device, 0, sizeof found, self->c->stream);
  if (code == cudaSuccess)
    code = (cudaError_t)wf__determinize_labels(&self->s.f, on_device, self->c->stream);
  wf_status status = code == cudaSuccess
                         ? wf__ops_to_host(self->c, found, on_device, sizeof found, err)
                         : wf__cuda_fail(err, code, "labels");
  if (status == WF_OK) status = wf__ops_finish(self->c, "labels", err);
  wf__ops_release(self->c, &room);
  WF__TRY(status);
  self->label_bits = bits_for(found[0]);
  return self->o->rmepsilon && found[1] != 0
             ? wf__gpu_ways_find(self->c, ways, &self->s.f, &self->s.ways, err)
             : WF_OK;
}

struct request {
  const wf__gpu_batch *from;
  const wf_determinize_options *o;
};

static wf_status make_determinized(wf__gpu_batch *batch, const void *user, wf__gpu_blocks *scratch,
                                   int how, wf_error *err) {
  const struct request *request = user;
  const wf_determinize_options *o = request->o;
  const wf__gpu_fsts *f = &request->from->f;
  double delta = (double)o->delta;
  struct determinization self = {.c = batch->context,
                                 .scratch = scratch,
                                 .o = o,
                                 .s = {.f = *f,
                                       .inverse_delta = delta > 0 ? 1 / delta : 0,
                                       .allow_nonfunctional = o->allow_nonfunctional,
                                       .max_states = (uint64_t)o->max_states}};
  wf__gpu_blocks ways = {.count = 0};
  wf__gpu_arrays a;
  (void)how;
  if (f->num_states == 0) return wf__gpu_batch_begin_alike(batch, request->from, &a, err);
  self.state_bits = bits_for(f->num_states - 1);
  wf_status status = look_at_labels(&self, &ways, err);
  if (status == WF_OK) status = find_all(&self, request->from, err);
  wf__ops_release(self.c, &ways);
  WF__TRY(status);
  struct bases bases = {wf__calloc(f->num_fsts + 1, sizeof *bases.count),
                        wf__calloc(3 * (f->num_fsts + 1), sizeof *bases.base)};
  status = bases.count != NULL && bases.base != NULL
               ? write_result(&self, &bases, batch, err)
               : wf__fail_memory(err, f->num_fsts * 28, "a batch");
  free(bases.count);
  free(bases.base);
  return status;
}

wf_status wf__gpu_batch_determinize(const wf__gpu_batch *batch, const wf_determinize_options *o,
                                    wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *trimmed = NULL;
  *out = NULL;
  if (batch->log_semiring)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "determinization in the log semiring: only the CPU does that");
  if (!batch->trimmed) WF__TRY(wf__gpu_batch_connect(batch, &trimmed, err));
  struct request request = {trimmed != NULL ? trimmed : batch, o};
  wf_status status =
      wf__gpu_batch_make_on(batch->context, batch->f.num_fsts, false, make_determinized, &request,
                            0, "determinization", out, err);
  wf__gpu_batch_free(trimmed);
  return status;
}
