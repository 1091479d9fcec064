/* compose_gpu.c - the host side of composition on a GPU: upload, search, allocate the result, fill.
 * Pairs that reach few of very many possible states are composed one by one (sparse_gpu.c), all
 * others together.
 *
 * The first run synchronizes twice to read sizes (states, then arcs) and allocates buffers. Later
 * runs reuse the buffers and synchronize once, at the end. */
#include <string.h>

#include "base/option_tables.h"
#include "cuda/compose/compose_upload.h"
#include "cuda/compose/gpu_composer.h"
#include "cuda/compose/sparse_gpu.h"
#include "cuda/device/gpu_profile.h"
#include "cuda/fstops/ops_batch.h"
#include "decode/backend.h"
#include "fst/properties.h"
#include "fstops/composer.h"
#include "fstops/device_batch.h"

#define TABLE_CELLS \
  ((uint64_t)1 << 30) /* up to this many possible states, the bit table is cheap */
enum {
  CELLS_PER_STATE = 512
}; /* above TABLE_CELLS, the table is used if at least one cell in 512
      is reached */
#define COUNTED_WORDS \
  ((uint64_t)1 << 25) /* 2^25 words are 2^31 states: with fewer, the limit \
                         cannot be exceeded */

static uint64_t readback_bytes(uint64_t num_pairs) {
  return sizeof(struct wf__composer_readback) + (num_pairs + 1) * sizeof(wf__gpu_place);
}

/* --- making ------------------------------------------------------------------------------ */

wf_status wf__gpu_compose_device(const wf_compose_options *options, int *out, wf_error *err) {
  wf__devices devices;
  WF__TRY(wf__devices_parse(options->device, &devices, err));
  if (!devices.cuda || devices.count != 1)
    return wf__fail(err, WF_ERR_ARGUMENT, "device %s: composition takes one GPU, cuda or cuda:N",
                    options->device != NULL ? options->device : "cpu");
  *out = devices.numbers[0];
  return WF_OK;
}

static wf_status open_device(wf__gpu_composer *self, wf_error *err) {
  wf__gpu_profile profile;
  WF__TRY(wf__gpu_compose_device(&self->options, &self->device, err));
  WF__TRY(wf__gpu_profile_read(self->device, &profile, err));
  self->c.shared_bytes = (uint32_t)profile.shared_kb * 1024;
  self->c.has_clusters = profile.max_rank_bits > 0;
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking), "a stream");
  return wf__pinned_alloc((void **)&self->readback, readback_bytes(self->count), "a composition",
                          err);
}

static wf_status upload(wf__gpu_composer *self, enum wf__composer_buffer which, const void *from,
                        uint64_t count, size_t element, wf_error *err) {
  WF__TRY(wf__device_reserve(&self->buffers[which], count * element, "the inputs of a composition",
                             err));
  if (count != 0)
    WF__CUDA_TRY(cudaMemcpyAsync(self->buffers[which].data, from, count * element,
                                 cudaMemcpyHostToDevice, self->stream),
                 "inputs to the GPU");
  return WF_OK;
}
#define UPLOAD(self, which, vec) \
  WF__TRY(upload(self, which, (vec).data, (vec).size, sizeof *(vec).data, err))

static wf_status upload_problem(wf__gpu_composer *self, const wf__gpu_problem *from,
                                wf_error *err) {
  UPLOAD(self, PAIRS, from->pairs);
  UPLOAD(self, ROWS, from->rows);
  UPLOAD(self, LINK_OFF, from->link_off);
  UPLOAD(self, LINKS, from->links);
  UPLOAD(self, FORWARD_OFF, from->step_off[0]);
  UPLOAD(self, FORWARD, from->steps[0]);
  UPLOAD(self, BACKWARD_OFF, from->step_off[1]);
  UPLOAD(self, BACKWARD, from->steps[1]);
  UPLOAD(self, OFF, from->off);
  UPLOAD(self, TO, from->to);
  UPLOAD(self, MOVES, from->moves);
  UPLOAD(self, ENDS, from->ends);
  if (!from->no_cells) UPLOAD(self, CELLS, from->cells);
  UPLOAD(self, SHIFTS, from->shifts);
  UPLOAD(self, MASKS, from->masks);
  UPLOAD(self, A_ARCS, from->a_arcs);
  UPLOAD(self, B_FINAL, from->b_final);
  UPLOAD(self, PARTS, from->parts);
  UPLOAD(self, PART_WORD, from->part_word);
  wf__gpu_compose *c = &self->c;
  for (int back = 0; back < 2; back++) {
    UPLOAD(self, RUN_OFF + back, from->run_off[back]);
    UPLOAD(self, RUNS + back, from->runs[back]);
    UPLOAD(self, HEAVY + back, from->heavy[back]);
    UPLOAD(self, CHUNKS + back, from->chunks[back]);
    c->num_heavy[back] = from->heavy[back].size;
    c->num_chunks[back] = from->chunks[back].size;
  }
  c->num_pairs = from->pairs.size;
  c->num_rows = from->rows.size;
  c->num_words = from->num_words;
  c->num_parts = from->parts.size;
  c->num_part_words = from->part_word.data[from->part_word.size - 1];
  c->max_words = from->max_words;
  c->max_row_runs = from->max_row_runs;
  c->max_pair_words = from->max_pair_words;
  c->max_pair_work = from->max_pair_work;
  c->max_pair_effort = from->max_pair_effort;
  c->max_pair_rows = from->max_pair_rows;
  c->num_steps = from->steps[0].size;
  c->connect = self->options.connect;
  wf__gpu_compose_shape(c);
  return WF_OK;
}

static uint64_t all_heavy(const wf__gpu_compose *c) { return c->num_heavy[0] + c->num_heavy[1]; }

/* Zeroed memory, in this order: what the host reads back, so that one copy suffices; bits: reached,
 * kept, fresh (for each direction if both run together), those of heavy rows; marks of rows and
 * heavy rows. */
static uint64_t zeroed_bytes(const wf__gpu_compose *c) {
  return readback_bytes(c->num_pairs) + (c->num_words + 1) * 8 * (c->both ? 4 : 3) +
         all_heavy(c) * 2 * WF__GPU_NARROW_WORDS * 8 + c->num_rows * (c->both ? 16 : 8) +
         all_heavy(c) * 8;
}

/* Allocates the tables whose size is known before a run. */
static wf_status reserve_tables(wf__gpu_composer *self, wf_error *err) {
  const wf__gpu_compose *c = &self->c;
  uint64_t words = c->num_words + 1;
  size_t scratch = 0;
  struct {
    enum wf__composer_buffer which;
    uint64_t bytes;
  } const wanted[] = {{WORD_ROW, words * 4},
                      {ZEROED, zeroed_bytes(c)},
                      {LIST, c->num_rows * (c->both ? 16 : 8)},
                      {COUNTS, 24},
                      {REACHED_COUNT, c->num_pairs * 8},
                      {FIRST, words * 4},
                      {HALVES, words * 2 * sizeof(wf__gpu_half)},
                      {FIRST_SLOT, words * 8}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    WF__TRY(wf__device_reserve(&self->buffers[wanted[i].which], wanted[i].bytes,
                               "tables of a composition", err));
  WF__CUDA_TRY(wf__gpu_compose_place(c, NULL, &scratch, self->stream), "prefix sums");
  return wf__device_reserve(&self->buffers[SCRATCH], scratch, "prefix sums", err);
}

static void point(wf__gpu_composer *self) {
  wf__gpu_compose *c = &self->c;
  const wf__device_buffer *at = self->buffers;
  c->pairs = at[PAIRS].data;
  c->rows = at[ROWS].data;
  c->link_off = at[LINK_OFF].data;
  c->links = at[LINKS].data;
  c->step_off[0] = at[FORWARD_OFF].data;
  c->steps[0] = at[FORWARD].data;
  c->step_off[1] = at[BACKWARD_OFF].data;
  c->steps[1] = at[BACKWARD].data;
  c->off = at[OFF].data;
  c->to = at[TO].data;
  c->moves = at[MOVES].data;
  c->ends = at[ENDS].data;
  c->cells = at[CELLS].data;
  c->shifts = at[SHIFTS].data;
  c->masks = at[MASKS].data;
  c->a_arcs = at[A_ARCS].data;
  c->b_final = at[B_FINAL].data;
  c->parts = at[PARTS].data;
  c->part_word = at[PART_WORD].data;
  c->word_row = at[WORD_ROW].data;
  struct wf__composer_readback *readback = c->zeroed = at[ZEROED].data;
  uint64_t *words = (uint64_t *)readback + readback_bytes(c->num_pairs) / 8,
           num_words = c->num_words + 1;
  c->totals = &readback->num_states;
  c->stats = readback->levels;
  c->places = readback->places;
  c->zeroed_bytes = zeroed_bytes(c);
  c->reached = words;
  c->kept = c->connect ? words + num_words : c->reached;
  c->heavy_bits = words + (c->both ? 4 : 3) * num_words;
  c->heavy_level = (uint32_t *)(c->heavy_bits + all_heavy(c) * 2 * WF__GPU_NARROW_WORDS);
  uint32_t *marks = c->heavy_level + all_heavy(c) * 2;
  for (int back = 0; back < 2; back++) {
    int own = c->both ? back : 0;
    c->fresh[back] = words + (2 + (uint64_t)own) * num_words;
    c->dirty[back] = marks + (uint64_t)own * c->num_rows * 2;
    c->list[back] = (uint32_t *)at[LIST].data + (uint64_t)own * c->num_rows * 2;
    c->run_off[back] = at[RUN_OFF + back].data;
    c->runs[back] = at[RUNS + back].data;
    c->heavy[back] = at[HEAVY + back].data;
    c->chunks[back] = at[CHUNKS + back].data;
  }
  c->counts = at[COUNTS].data;
  c->reached_count =
      self->options.max_states > 0 || c->num_words > COUNTED_WORDS ? at[REACHED_COUNT].data : NULL;
  c->first = at[FIRST].data;
  c->halves = at[HALVES].data;
  c->first_slot = at[FIRST_SLOT].data;
  c->slots = at[SLOTS].data;
  c->arc_off = at[ARC_OFF].data;
  c->final_cost = at[FINAL_COST].data;
  c->arcs = at[ARCS].data;
  c->origins = self->with_origins ? at[ORIGINS].data : NULL;
  c->room_states = at[FINAL_COST].bytes / sizeof *c->final_cost;
  c->room_slots = at[SLOTS].bytes >= sizeof *c->slots ? at[SLOTS].bytes / sizeof *c->slots - 1 : 0;
  c->room_arcs = at[ARCS].bytes / sizeof *c->arcs;
}

/* Adds a pair to the sparse compositions because the table would be too large. With `give_up`, the
 * table is possible, so a search finds out whether the pair reaches enough states to use it. */
static wf_status add_sparse(wf__gpu_composer *self, size_t i, const wf__compose_job *job,
                            uint64_t give_up, bool *out_gave_up, wf_error *err) {
  *out_gave_up = false;
  WF__TRY(wf__sparse_create(job, self->a[i], self->b[i], self->device, &self->sparse[i], err));
  if (give_up == UINT64_MAX) return WF_OK;
  WF__TRY(wf__sparse_reaches_more(self->sparse[i], give_up, out_gave_up, err));
  if (!*out_gave_up) return WF_OK;
  wf__sparse_free(self->sparse[i]);
  self->sparse[i] = NULL;
  return WF_OK;
}

static wf_status add_large(wf__gpu_composer *self, size_t i, uint64_t give_up, bool *out_gave_up,
                           wf_error *err) {
  wf__compose_side a = {0}, b = {0};
  wf__compose_job job = {.a = &a,
                         .b = &b,
                         .filter = self->options.filter,
                         .connect = self->options.connect,
                         .canonical = true};
  wf_status status = wf__compose_side_init(&a, self->a[i], true, err);
  if (status == WF_OK) status = wf__compose_side_init(&b, self->b[i], false, err);
  if (status == WF_OK) status = add_sparse(self, i, &job, give_up, out_gave_up, err);
  wf__compose_side_free(&a);
  wf__compose_side_free(&b);
  return status;
}

static wf_status add_pair(wf__gpu_composer *self, size_t i, wf__gpu_problem *problem,
                          wf_error *err) {
  uint64_t cells;
  bool fits, gave_up = false;
  WF__TRY(wf__gpu_problem_add(problem, self->a[i], self->b[i], &self->options, TABLE_CELLS, &cells,
                              &fits, err));
  if (fits) return WF_OK;
  if (cells > TABLE_CELLS && cells != UINT64_MAX)
    WF__TRY(add_large(self, i, cells / CELLS_PER_STATE, &gave_up, err));
  if (gave_up) {
    wf__gpu_problem_drop(problem);
    WF__TRY(wf__gpu_problem_add(problem, self->a[i], self->b[i], &self->options, UINT64_MAX, &cells,
                                &fits, err));
  }
  return fits || self->sparse[i] != NULL ? WF_OK : add_large(self, i, UINT64_MAX, &gave_up, err);
}

static wf_status make(wf__gpu_composer *self, wf_fst *const *a, wf_fst *const *b,
                      wf__gpu_problem *problem, wf_error *err) {
  WF__TRY(open_device(self, err));
  problem->most_words = wf__gpu_compose_most_words(self->c.shared_bytes);
  for (size_t i = 0; i < self->count; i++) {
    self->a[i] = wf_fst_ref(a[i]);
    self->b[i] = wf_fst_ref(b[i]);
    wf_status status = add_pair(self, i, problem, err);
    if (status != WF_OK)
      return self->count == 1 ? status : wf__fail_prefix(err, status, "pair %zu", i);
  }
  WF__TRY(wf__gpu_problem_close(problem, err));
  WF__TRY(upload_problem(self, problem, err));
  WF__TRY(reserve_tables(self, err));
  point(self);
  WF__CUDA_TRY(wf__gpu_compose_word_rows(&self->c, self->buffers[WORD_ROW].data, self->stream),
               "rows");
  WF__CUDA_TRY(cudaStreamSynchronize(self->stream), "inputs to the GPU");
  return WF_OK;
}

wf_status wf__gpu_composer_create(wf_fst *const *a, wf_fst *const *b, size_t count,
                                  const wf_compose_options *o, bool with_origins,
                                  wf__gpu_composer **out, wf_error *err) {
  wf__gpu_problem problem = {0};
  wf__gpu_composer *self = wf__calloc(1, sizeof *self);
  *out = NULL;
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a composer");
  self->options = *o;
  self->with_origins = with_origins;
  self->count = count;
  self->a = wf__calloc(count, sizeof *self->a);
  self->b = wf__calloc(count, sizeof *self->b);
  self->sparse = wf__calloc(count, sizeof *self->sparse);
  self->made = wf__calloc(count, sizeof *self->made);
  self->reached_count = wf__calloc(count, sizeof *self->reached_count);
  bool ok = self->a != NULL && self->b != NULL && self->sparse != NULL && self->made != NULL &&
            self->reached_count != NULL;
  const int caller = wf__callers_device();
  wf_status status =
      ok ? make(self, a, b, &problem, err) : wf__fail_memory(err, count * 64, "a composer");
  wf__restore_device(caller);
  wf__gpu_problem_free(&problem);
  if (status == WF_OK)
    *out = self;
  else
    wf__gpu_composer_free(self);
  return status;
}

void wf__gpu_composer_free(wf__gpu_composer *composer) {
  if (composer == NULL) return;
  for (size_t i = 0; i < composer->count; i++) {
    if (composer->a != NULL) wf_fst_free(composer->a[i]);
    if (composer->b != NULL) wf_fst_free(composer->b[i]);
    if (composer->made != NULL) wf__gpu_batch_free(composer->made[i]);
    if (composer->sparse != NULL) wf__sparse_free(composer->sparse[i]);
  }
  if (composer->stream != NULL) {
    const int caller = wf__callers_device();
    cudaSetDevice(composer->device);
    cudaStreamDestroy(composer->stream);
    cudaFreeHost(composer->readback);
    for (int i = 0; i < NUM_BUFFERS; i++) cudaFree(composer->buffers[i].data);
    wf__restore_device(caller);
  }
  free(composer->a);
  free(composer->b);
  free(composer->sparse);
  free(composer->made);
  free(composer->reached_count);
  free(composer);
}

/* --- a run ------------------------------------------------------------------------------- */

static wf_status check_bytes(const wf__gpu_composer *self, uint64_t num_states, uint64_t num_arcs,
                             wf_error *err) {
  uint64_t bytes = self->c.num_words * 36 + num_states * 12 +
                   num_arcs * (sizeof(wf_arc) + (self->with_origins ? sizeof(wf_arc_origin) : 0));
  if (self->options.max_bytes <= 0 || bytes <= (uint64_t)self->options.max_bytes) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "the composition needs %llu bytes, more than %lld (max_bytes)",
                  (unsigned long long)bytes, (long long)self->options.max_bytes);
}

static wf_status back(wf__gpu_composer *self, void *to, const void *from, uint64_t bytes,
                      wf_error *err) {
  WF__CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, self->stream),
               "results of a composition");
  return WF_OK;
}

/* Copies sizes, places and, if states are limited, the counts of reached states to the host. */
static wf_status look(wf__gpu_composer *self, const char *what, wf_error *err) {
  wf__gpu_compose *c = &self->c;
  WF__TRY(back(self, self->readback, c->zeroed, readback_bytes(c->num_pairs), err));
  if (c->reached_count != NULL)
    WF__TRY(back(self, self->reached_count, c->reached_count, self->count * 8, err));
  WF__CUDA_TRY(cudaStreamSynchronize(self->stream), what);
  return WF_OK;
}

static wf_status check_states(const wf__gpu_composer *self, wf_error *err) {
  uint64_t max_states =
               self->options.max_states > 0 ? (uint64_t)self->options.max_states : WF__MAX_STATES,
           sum = 0;
  for (size_t i = 0; i < self->count; i++) sum += self->reached_count[i];
  if (sum > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT,
                    "%llu states in one batch, at most 2^32 - 1: compose fewer pairs at once",
                    (unsigned long long)sum);
  for (size_t i = 0; i < self->count; i++)
    if (self->reached_count[i] > max_states)
      return wf__fail(err, WF_ERR_LIMIT,
                      "pair %zu: the composition has more than %llu states (max_states)", i,
                      (unsigned long long)max_states);
  return WF_OK;
}

static wf_status start_search(wf__gpu_composer *self, wf_error *err) {
  size_t scratch = self->buffers[SCRATCH].bytes;
  WF__CUDA_TRY(wf__gpu_compose_search(&self->c, self->stream), "the search of a composition");
  WF__CUDA_TRY(wf__gpu_compose_place(&self->c, self->buffers[SCRATCH].data, &scratch, self->stream),
               "prefix sums");
  return WF_OK;
}

static wf_status start_count(wf__gpu_composer *self, uint64_t num_slots, wf_error *err) {
  size_t scratch = self->buffers[SCRATCH].bytes;
  WF__CUDA_TRY(wf__gpu_compose_count(&self->c, num_slots, self->buffers[SCRATCH].data, &scratch,
                                     self->stream),
               "counting arcs");
  return WF_OK;
}

static wf_status start_fill(wf__gpu_composer *self, wf_error *err) {
  WF__CUDA_TRY(wf__gpu_compose_fill(&self->c, self->stream), "filling the result");
  return WF_OK;
}

/* Search, count, fill. Reads the sizes before each step that needs memory. */
static wf_status run_with_looks(wf__gpu_composer *self, wf_error *err) {
  struct wf__composer_readback *readback = self->readback;
  wf__gpu_compose *c = &self->c;
  size_t scratch = 0;
  WF__TRY(start_search(self, err));
  WF__TRY(look(self, "the search of a composition", err));
  WF__TRY(check_states(self, err));
  WF__TRY(check_bytes(self, readback->num_states, 0, err));
  WF__TRY(wf__device_reserve(&self->buffers[SLOTS], (readback->num_slots + 1) * 8, "counts of arcs",
                             err));
  WF__TRY(wf__device_reserve(&self->buffers[ARC_OFF], (readback->num_states + self->count) * 8,
                             "states", err));
  WF__TRY(wf__device_reserve(&self->buffers[FINAL_COST], readback->num_states * 4, "states", err));
  point(self);
  WF__CUDA_TRY(wf__gpu_compose_count(c, readback->num_slots, NULL, &scratch, self->stream),
               "prefix sums");
  WF__TRY(wf__device_reserve(&self->buffers[SCRATCH], scratch, "prefix sums", err));
  WF__TRY(start_count(self, readback->num_slots, err));
  WF__TRY(back(self, &readback->num_arcs, c->slots + readback->num_slots, 8, err));
  WF__CUDA_TRY(cudaStreamSynchronize(self->stream), "counting arcs");
  WF__TRY(check_bytes(self, readback->num_states, readback->num_arcs, err));
  WF__TRY(
      wf__device_reserve(&self->buffers[ARCS], readback->num_arcs * sizeof(wf_arc), "arcs", err));
  if (self->with_origins)
    WF__TRY(wf__device_reserve(&self->buffers[ORIGINS], readback->num_arcs * sizeof(wf_arc_origin),
                               "origins of arcs", err));
  point(self);
  WF__TRY(start_fill(self, err));
  return look(self, "filling the result", err);
}

/* Same as run_with_looks, in the buffers of the last run, with one readback at the end. The kernels
 * write nothing if a buffer is too small. */
static wf_status run_in_room(wf__gpu_composer *self, bool *out_fits, wf_error *err) {
  const struct wf__composer_readback *readback = self->readback;
  const wf__gpu_compose *c = &self->c;
  WF__TRY(start_search(self, err));
  WF__TRY(start_count(self, c->room_slots, err));
  WF__TRY(start_fill(self, err));
  WF__TRY(look(self, "a composition", err));
  WF__TRY(check_states(self, err));
  WF__TRY(check_bytes(self, readback->num_states, readback->num_arcs, err));
  *out_fits = readback->num_states <= c->room_states && readback->num_slots <= c->room_slots &&
              readback->num_arcs <= c->room_arcs;
  return WF_OK;
}

static wf_status run_table(wf__gpu_composer *self, wf_error *err) {
  bool fits = false;
  if (self->buffers[ARCS].data != NULL) WF__TRY(run_in_room(self, &fits, err));
  return fits ? WF_OK : run_with_looks(self, err);
}

static wf_status run_sparse(wf__gpu_composer *self, wf_error *err) {
  for (size_t i = 0; i < self->count; i++) {
    if (self->sparse[i] == NULL) continue;
    wf__gpu_batch_free(self->made[i]);
    self->made[i] = NULL;
    wf_status status = wf__sparse_run(self->sparse[i], &self->options, self->with_origins,
                                      &self->made[i], NULL, err);
    if (status != WF_OK)
      return self->count == 1 ? status : wf__fail_prefix(err, status, "pair %zu", i);
  }
  return WF_OK;
}

static wf_status run(wf__gpu_composer *composer, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(composer->device), "choosing the GPU");
  if (composer->c.num_rows != 0) {
    WF__TRY(run_table(composer, err));
  } else {
    for (size_t i = 0; i < composer->count; i++)
      composer->readback->places[i] = (wf__gpu_place){.start = -1};
  }
  return run_sparse(composer, err);
}

wf_status wf__gpu_composer_run(wf__gpu_composer *composer, wf_error *err) {
  const int caller = wf__callers_device();
  const wf_status status = run(composer, err);
  wf__restore_device(caller);
  composer->has_run = status == WF_OK;
  return status;
}
