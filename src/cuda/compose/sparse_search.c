/* sparse_search.c - the search of a composition by pairs of states on a GPU. The host synchronizes
 * once a level, to read the number of pairs and whether the table was too small. */
#include "cuda/compose/sparse_search.h"

#include "fstops/compose_job.h"

/* Slots of the first table. When the table becomes full, every thread resident on the GPU may still
 * insert one key after its last check of `full`; the table has room for these. */
#ifndef WF__SPARSE_SLOTS
#define WF__SPARSE_SLOTS ((uint64_t)1 << 20)
#endif
enum { GROWTH = 4 };

/* --- the table --------------------------------------------------------------------------- */

wf_status wf__sparse_search_check(const wf__sparse_search *search, uint64_t bytes, wf_error *err) {
  const uint64_t all = bytes + (search->left != NULL ? search->left->bytes(search->left) : 0);
  return all <= search->max_bytes ? WF_OK : wf__compose_too_large(all, search->max_bytes, err);
}

/* Allocates a table of `num_slots` and copies the list of pairs to it. */
static wf_status grow(wf__sparse_search *self, uint64_t num_slots, wf_error *err) {
  wf__gpu_context *c = self->context;
  wf__gpu_blocks old = self->room;
  wf__sparse_table table = {.num_slots = num_slots, .room = num_slots / 2};
  self->room = (wf__gpu_blocks){.count = 0};
  wf_status status = wf__sparse_search_check(self, num_slots * 12, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &self->room, num_slots * sizeof *table.keys, "pairs of states",
                          (void **)&table.keys, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &self->room, table.room * sizeof *table.list, "pairs of states",
                          (void **)&table.list, err);
  if (status == WF_OK)
    status = wf__ops_take(c, &self->room, sizeof *table.progress, "pairs of states",
                          (void **)&table.progress, err);
  cudaError_t code = cudaSuccess;
  if (status == WF_OK)
    code = cudaMemsetAsync(table.keys, 0xff, num_slots * sizeof *table.keys, c->stream);
  if (status == WF_OK && code == cudaSuccess && self->count != 0 && self->table.list != NULL)
    code = cudaMemcpyAsync(table.list, self->table.list, self->count * sizeof *table.list,
                           cudaMemcpyDeviceToDevice, c->stream);
  if (status == WF_OK && code != cudaSuccess) status = wf__cuda_fail(err, code, "pairs of states");
  wf__ops_release(c, &old);
  self->table = table;
  return status;
}

/* Inserts the self->count pairs of the list into the empty table. */
static wf_status refill(wf__sparse_search *self, wf_error *err) {
  wf__gpu_context *c = self->context;
  wf__sparse_progress progress = {.count = self->count};
  WF__TRY(wf__ops_to_device(c, self->table.progress, &progress, sizeof progress, err));
  WF__CUDA_TRY(wf__sparse_refill(&self->table, self->count, c->stream), "pairs of states");
  return wf__ops_finish(c, "pairs of states", err);
}

static wf_status enlarge(wf__sparse_search *self, wf_error *err) {
  WF__TRY(grow(self, self->table.num_slots * GROWTH, err));
  return refill(self, err);
}

wf_status wf__sparse_search_begin(wf__sparse_search *self, wf_error *err) {
  wf__gpu_context *c = self->context;
  WF__TRY(grow(self, WF__SPARSE_SLOTS, err));
  WF__TRY(wf__ops_to_device(c, self->table.list, &self->start_key, sizeof self->start_key, err));
  self->count = 1;
  return refill(self, err);
}

void wf__sparse_search_end(wf__sparse_search *self) {
  wf__ops_release(self->context, &self->room);
  self->table = (wf__sparse_table){.num_slots = 0};
}

/* --- levels ------------------------------------------------------------------------------ */

wf_status wf__sparse_search_add_up(const wf__sparse_search *self, wf__gpu_blocks *room,
                                   uint64_t *values, uint64_t count, wf_error *err) {
  return wf__gpu_scan64(self->context, room, values, count, err);
}

wf_status wf__sparse_search_items(const wf__sparse_search *self, wf__gpu_blocks *room,
                                  const uint64_t *keys, uint64_t count, uint64_t **out,
                                  wf_error *err) {
  wf__gpu_context *c = self->context;
  TAKE(c, room, *out, count + 1, "pairs of states");
  WF__CUDA_TRY(wf__sparse_items(&self->in, keys, count, *out, c->stream), "pairs of states");
  return wf__sparse_search_add_up(self, room, *out, count + 1, err);
}

static void take_progress(wf__sparse_search *self, const wf__sparse_progress *progress,
                          bool *out_full) {
  *out_full = progress->full != 0;
  self->count = progress->count < self->table.room ? progress->count : self->table.room;
}

/* Finds the pairs that `keys` lead to. *out_full: the table became full, so some are missing. */
static wf_status expand(wf__sparse_search *self, const uint64_t *keys, uint64_t count,
                        bool *out_full, wf_error *err) {
  wf__gpu_context *c = self->context;
  wf__gpu_blocks room = {.count = 0};
  wf__sparse_progress progress;
  uint64_t *item_off;
  wf_status status = wf__sparse_search_items(self, &room, keys, count, &item_off, err);
  if (status == WF_OK) {
    cudaError_t code =
        (cudaError_t)wf__sparse_expand(&self->in, &self->table, keys, count, item_off, c->stream);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, "pairs of states");
  }
  const wf__gpu_value value = VALUE(progress, self->table.progress);
  if (status == WF_OK) status = wf__ops_read(c, &value, 1, "pairs of states", err);
  wf__ops_release(c, &room);
  WF__TRY(status);
  take_progress(self, &progress, out_full);
  return WF_OK;
}

/* Runs consecutive slim levels (few pairs and items) in one launch, and advances *first. *out_full:
 * the table became full, so the level at *first is not complete. */
static wf_status walk(wf__sparse_search *self, uint64_t *first, bool *out_full, wf_error *err) {
  wf__gpu_context *c = self->context;
  wf__sparse_progress progress;
  WF__CUDA_TRY(wf__sparse_walk(&self->in, &self->table, *first, c->stream), "pairs of states");
  READ(c, "pairs of states", VALUE(progress, self->table.progress));
  *first = progress.first;
  self->num_levels += progress.num_levels;
  take_progress(self, &progress, out_full);
  return WF_OK;
}

static wf_status check_states(const wf__sparse_search *self, wf_error *err) {
  if (self->count <= self->max_states) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "the composition has more than %llu states (max_states)",
                  (unsigned long long)self->max_states);
}

wf_status wf__sparse_search_step(wf__sparse_search *self, const uint64_t *keys, uint64_t count,
                                 wf_error *err) {
  for (bool full = true; full;) {
    WF__TRY(expand(self, keys, count, &full, err));
    WF__TRY(check_states(self, err));
    if (full) WF__TRY(enlarge(self, err));
  }
  return WF_OK;
}

/* Advances *first by one level, or by several slim ones. */
static wf_status advance(wf__sparse_search *self, uint64_t *first, bool *out_full, wf_error *err) {
  const uint64_t from = *first, end = self->count;
  *out_full = false;
  if (self->left != NULL)
    WF__TRY(self->left->make(self->left, self->table.list + from, end - from, &self->in, err));
  else if (end - from <= WF__SPARSE_SLIM_PAIRS)
    WF__TRY(walk(self, first, out_full, err));
  if (*first != from || *out_full) return WF_OK;
  WF__TRY(expand(self, self->table.list + from, end - from, out_full, err));
  if (!*out_full) *first = end, self->num_levels++;
  return WF_OK;
}

wf_status wf__sparse_search_all(wf__sparse_search *self, wf_error *err) {
  WF__TRY(wf__sparse_search_begin(self, err));
  for (uint64_t first = 0; first < self->count;) {
    bool full;
    WF__TRY(advance(self, &first, &full, err));
    if (self->count > self->give_up) return WF_OK;
    WF__TRY(check_states(self, err));
    if (full) WF__TRY(enlarge(self, err));
    WF__TRY(wf__sparse_search_check(self, self->table.num_slots * 12, err));
  }
  return WF_OK;
}

/* --- canonical order --------------------------------------------------------------------- */

int wf__sparse_search_key_bits(const wf__sparse_search *self) {
  const uint64_t largest = self->in.num_rows * self->in.num_b - 1;
  int bits = 1;
  while (bits < 64 && largest >> bits != 0) bits++;
  return bits;
}

wf_status wf__sparse_search_sort(const wf__sparse_search *self, wf__gpu_blocks *room,
                                 uint64_t *keys, wf_error *err) {
  wf__gpu_context *c = self->context;
  const int bits = wf__sparse_search_key_bits(self);
  const uint64_t *list = self->table.list;
  size_t bytes = 0;
  char *scratch;
  if (self->left != NULL) return self->left->sort(self, room, keys, err);
  WF__CUDA_TRY(wf__ops_sort64(list, keys, NULL, NULL, self->count, bits, NULL, &bytes, c->stream),
               "sorting");
  TAKE(c, room, scratch, bytes, "sorting");
  WF__CUDA_TRY(
      wf__ops_sort64(list, keys, NULL, NULL, self->count, bits, scratch, &bytes, c->stream),
      "sorting");
  return WF_OK;
}
