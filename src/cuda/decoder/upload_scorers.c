/* upload_scorers.c - uploads scorers to a GPU, in the form of flat_scorer.h.
 *
 *   models  each in its own memory, sent once; the decoder keeps it while another owner does. What
 *           stays in host memory is one copy for all GPUs (host_model.c)
 *   lists   long lists of boosts, and the words of models, likewise: kept while the last batch or a
 *           stream uses them, and some of the others in case they are used again
 *   memory  [flats] wf__flat_scorer, then their short lists, at multiples of 256 bytes, sent for
 *           each batch; what several scorers share is there once */
#ifdef WARPFST_CUDA
#include <string.h>

#include "cuda/decoder/gpu_streams.h"
#include "cuda/decoder/host_model.h"
#include "cuda/device/device_memory.h"
#include "scorer/rnn_scorer.h"

/* --- models ------------------------------------------------------------------------------ */

static const char model_text[] = "the language model (see placement, lm_gpu_bytes and gpu_memory)";

/* Bytes that reads of a model's n-grams move over the bus: the 32-byte sectors that a record lies
 * in, on average over its places. A record of b bits reaches into the sector behind at (b - gcd(b,
 * 256)) of 256 places. */
static uint64_t bus_bytes(const wf__wlm_view *view, uint64_t reads) {
  const uint64_t bits = view->cost_bits == 0
                            ? 8 * sizeof(wf__wlm_arc)
                            : (uint64_t)view->word_bits + view->next_bits + view->cost_bits;
  uint64_t divisor = 256;
  while (bits % divisor != 0) divisor /= 2;
  return reads * (256 + bits - divisor) / 8;
}

/* The counts of a model so far. */
static void add_counts(const wf__gpu_model *model, wf__gpu_lm_counts *counts) {
  uint64_t counters[WF__WLM_COUNTERS] = {0};
  if (model->view.counters == NULL) return;
  if (cudaMemcpy(counters, model->view.counters, sizeof counters, cudaMemcpyDeviceToHost) !=
      cudaSuccess)
    return;
  counts->hits += counters[WF__WLM_HITS];
  counts->reads += counters[WF__WLM_READS];
  counts->bus_bytes += bus_bytes(&model->view, counters[WF__WLM_READS]);
  counts->cycles += counters[WF__WLM_WAITED];
}

static void free_model(wf__gpu_model *model) {
  cudaFree(model->memory);
  wf__host_model_release(model->host);
  atomic_fetch_sub(&model->lm->num_copies, 1);
  wf_wlm_free(model->lm);
}

/* Frees models that only workers (of any decoder) still own. */
static void drop_unused(wf__gpu_scorers *scorers) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < scorers->models.size; i++) {
    wf__gpu_model *model = &scorers->models.data[i];
    if (atomic_load(&model->lm->refs) > atomic_load(&model->lm->num_copies)) {
      scorers->models.data[kept++] = *model;
      continue;
    }
    add_counts(model, &scorers->gone);
    free_model(model);
  }
  scorers->models.size = kept;
}

/* Arrays of a model in the order of the file, with the bytes behind each that a look-up may touch:
 * every file has them. Then counters and cache. */
enum {
  SECTION_ROOM = 8,
  FIRST_SECTION = WF__WLM_UNIGRAMS,
  COUNTER_ROOM = 256,
  LEAST_CACHE_BITS = 7,
  MOST_CACHE_BITS = 32
};

static bool is_on_host(int32_t placement, int section) {
  return placement == WF__LM_HOST ||
         (placement == WF__LM_HYBRID &&
          (section == WF__WLM_SMALL_ARCS || section == WF__WLM_LARGE_ARCS));
}

static uint64_t cache_bytes(int bits) { return sizeof(uint64_t) * 4 * 3 << bits; }

/* Plans the bytes on both sides, and the size of the cache: the rest of lm_gpu_bytes after the
 * index. Tags of 32 bits require at least 2^7 sets. */
static void plan_model(wf__gpu_model *model) {
  const wf__wlm_header *header = model->lm->header;
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++) {
    const uint64_t room = wf__round_up_256(header->sections[i].size + SECTION_ROOM);
    if (is_on_host(model->placement, i))
      model->host_bytes += room;
    else
      model->bytes += room;
  }
  if (model->placement == WF__LM_DEVICE) return;
  model->bytes += COUNTER_ROOM;
  if (model->placement != WF__LM_HYBRID) return;
  const uint64_t wanted =
      model->wanted > 0 ? (uint64_t)model->wanted : model->bytes + model->host_bytes / 8;
  int bits = LEAST_CACHE_BITS;
  if (wanted < model->bytes || wanted - model->bytes < cache_bytes(bits)) return;
  while (bits < MOST_CACHE_BITS && cache_bytes(bits + 1) <= wanted - model->bytes) bits++;
  model->view.cache_bits = bits;
  model->bytes += cache_bytes(bits);
}

/* The arrays of the file in its order; NULL: it has none. */
struct sections {
  const void *data[WF__WLM_SECTIONS];
};

static struct sections sections_of(const wf_wlm *lm) {
  const wf__wlm_view *v = &lm->view;
  return (struct sections){
      {NULL, v->unigrams, v->states, v->tags, v->buckets, v->small, v->large, v->codebook}};
}

/* Bytes of a section with those behind it that a look-up may touch. */
static uint64_t section_bytes(const wf__gpu_model *model, int section) {
  return model->lm->header->sections[section].size + SECTION_ROOM;
}

/* Finds where the sections of one side are, from `at` on. */
static void place_sections(const wf__gpu_model *model, bool on_host, char *at, char **to) {
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++) {
    if (is_on_host(model->placement, i) != on_host) continue;
    to[i] = at;
    at += wf__round_up_256(section_bytes(model, i));
  }
}

static void fill_host(void *user, char *host) {
  const wf__gpu_model *model = user;
  const struct sections from = sections_of(model->lm);
  char *to[WF__WLM_SECTIONS];
  place_sections(model, true, host, to);
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++)
    if (is_on_host(model->placement, i) && from.data[i] != NULL)
      memcpy(to[i], from.data[i], section_bytes(model, i));
}

static wf_status send_sections(wf__gpu_worker *worker, wf__gpu_model *model, wf_error *err) {
  const wf__wlm_view *v = &model->lm->view;
  const struct sections from = sections_of(model->lm);
  char *to[WF__WLM_SECTIONS];
  const int cache_bits = model->view.cache_bits;
  if (model->bytes > 0)
    WF__CUDA_TRY(
        cudaMemsetAsync(model->memory, 0, model->bytes, worker->copy_stream),
        "the language model to the GPU"); /* counters, cache, and the gaps between arrays */
  place_sections(model, false, model->memory, to);
  place_sections(model, true, model->host, to);
  char *at = model->memory;
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++) {
    if (is_on_host(model->placement, i)) continue;
    at += wf__round_up_256(section_bytes(model, i));
    if (from.data[i] != NULL)
      WF__CUDA_TRY(cudaMemcpyAsync(to[i], from.data[i], section_bytes(model, i),
                                   cudaMemcpyHostToDevice, worker->copy_stream),
                   "the language model to the GPU");
  }
  model->view = *v;
  model->view.unigrams = (const void *)to[WF__WLM_UNIGRAMS];
  model->view.states = (const void *)to[WF__WLM_STATES];
  model->view.tags = (const void *)to[WF__WLM_TAGS];
  model->view.buckets = (const void *)to[WF__WLM_BUCKETS];
  model->view.small = (const void *)to[WF__WLM_SMALL_ARCS];
  model->view.large = (const void *)to[WF__WLM_LARGE_ARCS];
  model->view.codebook = v->codebook != NULL ? (const void *)to[WF__WLM_CODEBOOK] : NULL;
  if (model->placement != WF__LM_DEVICE) {
    model->view.counters = (void *)at;
    model->view.cache = cache_bits > 0 ? (void *)(at + COUNTER_ROOM) : NULL;
    model->view.cache_bits = cache_bits;
  }
  WF__CUDA_TRY(cudaStreamSynchronize(worker->copy_stream), "the language model to the GPU");
  return WF_OK;
}

static uint64_t all_model_bytes(const wf__gpu_scorers *scorers) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < scorers->models.size; i++) bytes += scorers->models.data[i].bytes;
  return bytes;
}

/* Before memory is taken: a model can be larger than all of it. */
static wf_status check_limit(const wf__gpu_worker *worker, const wf__gpu_model *model,
                             wf_error *err) {
  const uint64_t limit = (uint64_t)worker->options.gpu_memory,
                 others = worker->graph_bytes + all_model_bytes(&worker->scorers);
  if (limit == 0 || (others < limit && model->bytes <= limit - others)) return WF_OK;
  return wf__fail_room(err, worker->device, model_text, model->bytes,
                       others < limit ? limit - others : 0);
}

static wf_status find_model(wf__gpu_worker *worker, const wf__flat_part *part,
                            const wf__wlm_view **out, wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  for (uint64_t i = 0; i < scorers->models.size; i++) {
    const wf__gpu_model *model = &scorers->models.data[i];
    *out = &model->view;
    if (model->lm == part->model && model->placement == part->placement &&
        model->wanted == part->gpu_bytes)
      return WF_OK;
  }
  wf__gpu_model model = {
      .lm = wf_wlm_ref(part->model), .placement = part->placement, .wanted = part->gpu_bytes};
  atomic_fetch_add(&model.lm->num_copies, 1);
  plan_model(&model);
  wf_status status = check_limit(worker, &model, err);
  if (status == WF_OK && model.bytes > 0)
    status = wf__device_alloc((void **)&model.memory, model.bytes, model_text, err);
  if (status == WF_OK && model.host_bytes > 0)
    status = wf__host_model_acquire(model.lm, model.placement, model.host_bytes, fill_host, &model,
                                    &model.host, err);
  if (status == WF_OK) status = send_sections(worker, &model, err);
  if (status == WF_OK) status = wf__vec_push(&scorers->models, model, "language models", err);
  if (status != WF_OK) {
    free_model(&model);
    return status;
  }
  *out = &scorers->models.data[scorers->models.size - 1].view;
  return WF_OK;
}

void wf__gpu_add_lm_stats(const wf__gpu_worker *worker, wf_lm_stats *stats) {
  const wf__gpu_scorers *scorers = &worker->scorers;
  wf__gpu_lm_counts counts = scorers->gone;
  const int num_warps =
      32 * worker->limits.lanes[WF__LARGE_LANE]; /* that search at the same time */
  int khz = 0;
  uint64_t host_bytes = 0; /* of copies that all workers share */
  for (uint64_t i = 0; i < scorers->models.size; i++) {
    const wf__gpu_model *model = &scorers->models.data[i];
    add_counts(model, &counts);
    stats->gpu_bytes += model->bytes;
    host_bytes += model->host_bytes;
  }
  if (host_bytes > (uint64_t)stats->host_bytes) stats->host_bytes = host_bytes;
  stats->cache_hits += counts.hits;
  stats->host_reads += counts.reads;
  stats->bus_bytes += counts.bus_bytes;
  stats->stall_cycles += counts.cycles;
  if (counts.cycles == 0 ||
      cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, worker->device) != cudaSuccess || khz <= 0)
    return;
  stats->stall_s += (double)counts.cycles / (1e3 * khz * num_warps);
}

/* --- long lists -------------------------------------------------------------------------- */

#ifndef WF__LONG_LIST_BYTES /* tests set less */
#define WF__LONG_LIST_BYTES \
  (1 << 16) /* a shorter list is copied faster than memory is allocated \
             */
#endif
enum { KEPT_LIST_BYTES = 1 << 26 }; /* of lists that nobody uses; 0 where gpu_memory is limited */

/* The arrays of a part other than the model, with their sizes. */
enum { PART_ARRAYS = 4 };
struct part_arrays {
  const void *data[PART_ARRAYS];
  uint64_t bytes[PART_ARRAYS];
};

static struct part_arrays arrays_of(const wf__flat_part *part) {
  const uint64_t slots = part->table_bits > 0 ? (uint64_t)1 << part->table_bits : 0;
  return (struct part_arrays){
      {part->keys, part->values, part->nodes, part->word_of},
      {slots * sizeof *part->keys, slots * sizeof *part->values,
       part->num_nodes * sizeof *part->nodes, part->num_labels * sizeof *part->word_of}};
}

static bool is_long(const wf__flat_part *part) {
  const struct part_arrays arrays = arrays_of(part);
  uint64_t bytes = 0;
  for (int i = 0; i < PART_ARRAYS; i++) bytes += arrays.bytes[i];
  return bytes >= WF__LONG_LIST_BYTES;
}

static void set_arrays(wf__flat_part *part, const void *const *there) {
  part->keys = there[0];
  part->values = there[1];
  part->nodes = there[2];
  part->word_of = there[3];
}

/* The list of a part; NULL: it is not on the GPU. */
static wf__gpu_list *find_list(wf__gpu_scorers *scorers, const wf__flat_part *part) {
  for (uint64_t i = 0; i < scorers->lists.size; i++)
    if (scorers->lists.data[i].owner == part->owner) return &scorers->lists.data[i];
  return NULL;
}

static void free_list(wf__gpu_list *list) {
  cudaFree(list->memory);
  wf_scorer_free(list->owner);
}

/* Frees lists that neither the last batch nor a stream uses, but for the newest that fit. */
static void drop_lists(wf__gpu_worker *worker) {
  wf__gpu_scorers *scorers = &worker->scorers;
  const uint64_t most = worker->options.gpu_memory > 0 ? 0 : KEPT_LIST_BYTES;
  uint64_t unused = 0, kept = 0;
  for (uint64_t i = scorers->lists.size; i-- > 0;) {
    wf__gpu_list *list = &scorers->lists.data[i];
    if (list->users > 0 || list->in_batch) continue;
    unused += list->bytes;
    if (unused > most) {
      free_list(list);
      list->owner = NULL;
    }
  }
  for (uint64_t i = 0; i < scorers->lists.size; i++)
    if (scorers->lists.data[i].owner != NULL) scorers->lists.data[kept++] = scorers->lists.data[i];
  scorers->lists.size = kept;
}

static wf_status send_arrays(wf__gpu_worker *worker, const wf__gpu_list *list,
                             const struct part_arrays *arrays, wf_error *err) {
  char *at = list->memory;
  for (int i = 0; i < PART_ARRAYS; i++) {
    if (arrays->bytes[i] > 0)
      WF__TRY(wf__device_send(at, arrays->data[i], arrays->bytes[i], worker->copy_stream,
                              "scorers to the GPU", err));
    at += wf__round_up_256(arrays->bytes[i]);
  }
  return WF_OK;
}

/* The list of a part, which is sent unless it is there. */
static wf_status take_list(wf__gpu_worker *worker, const wf__flat_part *part, wf__gpu_list **out,
                           wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  *out = find_list(scorers, part);
  if (*out != NULL) return WF_OK;
  const struct part_arrays arrays = arrays_of(part);
  wf__gpu_list list = {.owner = wf_scorer_ref(part->owner)};
  for (int i = 0; i < PART_ARRAYS; i++) list.bytes += wf__round_up_256(arrays.bytes[i]);
  wf_status status = wf__device_alloc((void **)&list.memory, list.bytes, "scorers", err);
  if (status == WF_OK) status = send_arrays(worker, &list, &arrays, err);
  if (status == WF_OK) status = wf__vec_push(&scorers->lists, list, "scorers", err);
  if (status != WF_OK) {
    free_list(&list);
    return status;
  }
  *out = &scorers->lists.data[scorers->lists.size - 1];
  return WF_OK;
}

/* Takes the list of a part, and makes the part's pointers those on the GPU. */
static wf_status place_list(wf__gpu_worker *worker, wf__flat_part *part, wf_error *err) {
  const struct part_arrays arrays = arrays_of(part);
  const void *there[PART_ARRAYS];
  wf__gpu_list *list;
  WF__TRY(take_list(worker, part, &list, err));
  const char *at = list->memory;
  for (int i = 0; i < PART_ARRAYS; i++) {
    there[i] = arrays.bytes[i] > 0 ? at : NULL;
    at += wf__round_up_256(arrays.bytes[i]);
  }
  set_arrays(part, there);
  return WF_OK;
}

/* Counts a stream's scorer among the users of its lists (sign 1), or no longer (-1). */
static void count_users(wf__gpu_worker *worker, const wf__gpu_scorers *store, int sign) {
  for (uint64_t i = 0; i < store->flats.size; i++)
    for (int k = 0; k < store->flats.data[i].num_parts; k++) {
      const wf__flat_part *part = &store->flats.data[i].parts[k];
      wf__gpu_list *list = is_long(part) ? find_list(&worker->scorers, part) : NULL;
      if (list != NULL) list->users += (uint64_t)sign;
    }
}

/* --- the batch --------------------------------------------------------------------------- */

static wf_status add_piece(wf__gpu_scorers *scorers, const void *data, uint64_t bytes,
                           wf_error *err) {
  uint32_t number;
  bool fresh;
  if (data == NULL || bytes == 0) return WF_OK;
  WF__TRY(wf__map64_insert(&scorers->piece_of, (uint64_t)(uintptr_t)data,
                           (uint32_t)scorers->pieces.size, &number, &fresh, "scorers", err));
  wf__gpu_piece piece = {data, bytes, 0};
  return fresh ? wf__vec_push(&scorers->pieces, piece, "scorers", err) : WF_OK;
}

static wf_status add_scorer(wf__gpu_scorers *scorers, const wf_scorer *scorer, wf_error *err) {
  uint32_t number;
  bool fresh;
  WF__TRY(wf__map64_insert(&scorers->flat_of, (uint64_t)(uintptr_t)scorer,
                           (uint32_t)scorers->flats.size, &number, &fresh, "scorers", err));
  if (!fresh) return WF_OK;
  wf__flat_scorer flat;
  const char *why_not = wf__scorer_flatten(scorer, &flat);
  if (why_not != NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "this scorer (%s) works on the CPU only", why_not);
  for (int i = 0; i < flat.num_parts; i++) {
    const struct part_arrays arrays = arrays_of(&flat.parts[i]);
    for (int k = 0; k < PART_ARRAYS && !is_long(&flat.parts[i]); k++)
      WF__TRY(add_piece(scorers, arrays.data[k], arrays.bytes[k], err));
  }
  return wf__vec_push(&scorers->flats, flat, "scorers", err);
}

static const void *on_device(const wf__gpu_scorers *scorers, const void *data) {
  const uint32_t number =
      data != NULL ? wf__map64_find(&scorers->piece_of, (uint64_t)(uintptr_t)data) : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? scorers->memory + scorers->pieces.data[number].at : NULL;
}

static wf_status place_part(wf__gpu_worker *worker, const wf__gpu_scorers *scorers,
                            wf__flat_part *part, wf_error *err) {
  if (part->model != NULL) {
    const wf__wlm_view *view;
    WF__TRY(find_model(worker, part, &view, err));
    part->lm = *view;
  }
  if (is_long(part)) return place_list(worker, part, err);
  set_arrays(part, (const void *[PART_ARRAYS]){
                       on_device(scorers, part->keys), on_device(scorers, part->values),
                       on_device(scorers, part->nodes), on_device(scorers, part->word_of)});
  return WF_OK;
}

/* Sends the models and long lists that are not there yet, then everything else in one copy, with
 * pointers as on the GPU. */
static wf_status send_all(wf__gpu_worker *worker, wf__gpu_scorers *scorers, uint64_t bytes,
                          wf_error *err) {
  char *all = wf__calloc(bytes, 1);
  if (all == NULL) return wf__fail_memory(err, bytes, "scorers for the GPU");
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < scorers->pieces.size; i++)
    memcpy(all + scorers->pieces.data[i].at, scorers->pieces.data[i].data,
           scorers->pieces.data[i].bytes);
  for (uint64_t i = 0; i < scorers->flats.size && status == WF_OK; i++) {
    wf__flat_scorer flat = scorers->flats.data[i];
    for (int k = 0; k < flat.num_parts && status == WF_OK; k++)
      status = place_part(worker, scorers, &flat.parts[k], err);
    memcpy(all + i * sizeof flat, &flat, sizeof flat);
  }
  if (status == WF_OK)
    status = wf__device_send(scorers->memory, all, bytes, worker->copy_stream, "scorers to the GPU",
                             err);
  free(all);
  return status;
}

static wf_status make_room(wf__gpu_scorers *scorers, uint64_t bytes, wf_error *err) {
  if (bytes <= scorers->bytes) return WF_OK;
  cudaFree(scorers->memory);
  scorers->memory = NULL;
  scorers->bytes = 0;
  WF__TRY(wf__device_alloc((void **)&scorers->memory, bytes, "scorers", err));
  scorers->bytes = bytes;
  return WF_OK;
}

/* Sets the place of each piece; returns the bytes of all. */
static uint64_t lay_out(wf__gpu_scorers *scorers) {
  uint64_t bytes = wf__round_up_256(scorers->flats.size * sizeof *scorers->flats.data);
  for (uint64_t i = 0; i < scorers->pieces.size; i++) {
    scorers->pieces.data[i].at = bytes;
    bytes += wf__round_up_256(scorers->pieces.data[i].bytes);
  }
  return bytes;
}

/* Notes which of the lists that are there the batch uses. */
static void mark_lists(wf__gpu_worker *worker) {
  wf__gpu_scorers *scorers = &worker->scorers;
  for (uint64_t i = 0; i < scorers->lists.size; i++) scorers->lists.data[i].in_batch = false;
  for (uint64_t i = 0; i < scorers->flats.size; i++)
    for (int k = 0; k < scorers->flats.data[i].num_parts; k++) {
      wf__gpu_list *list = find_list(scorers, &scorers->flats.data[i].parts[k]);
      if (list != NULL) list->in_batch = true;
    }
}

wf_status wf__gpu_take_scorers(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  wf__map64_clear(&scorers->flat_of);
  wf__map64_clear(&scorers->piece_of);
  scorers->flats.size = scorers->pieces.size = 0;
  drop_unused(scorers);
  WF__TRY(wf__batch_rnn_take(worker, batch, &worker->limits.deferred, err));
  for (size_t i = 0; i < batch->count && batch->scorers != NULL; i++)
    if (!batch->skip[i] && batch->scorers[i] != NULL &&
        wf__rnn_scorer_of(batch->scorers[i]) == NULL)
      WF__TRY(add_scorer(scorers, batch->scorers[i], err));
  mark_lists(worker);
  drop_lists(worker);
  const uint64_t bytes = lay_out(scorers);
  worker->limits.scored = scorers->flats.size > 0 || worker->limits.deferred;
  WF__TRY(make_room(scorers, bytes, err));
  if (scorers->flats.size > 0) WF__TRY(send_all(worker, scorers, bytes, err));
  mark_lists(worker);
  if (worker->limits.deferred) WF__TRY(wf__batch_rnn_take_chains(worker, batch, err));
  worker->limits.scorer_bytes = scorers->bytes + all_model_bytes(scorers);
  for (uint64_t i = 0; i < scorers->lists.size; i++)
    worker->limits.scorer_bytes += scorers->lists.data[i].bytes;
  return WF_OK;
}

static void free_store(wf__gpu_scorers *scorers) {
  wf__vec_free(&scorers->flats);
  wf__vec_free(&scorers->pieces);
  wf__map64_free(&scorers->flat_of);
  wf__map64_free(&scorers->piece_of);
  cudaFree(scorers->memory);
}

void wf__gpu_close_scorers(wf__gpu_worker *worker) {
  wf__gpu_scorers *scorers = &worker->scorers;
  for (uint64_t i = 0; i < scorers->models.size; i++) free_model(&scorers->models.data[i]);
  wf__vec_free(&scorers->models);
  for (uint64_t i = 0; i < scorers->lists.size; i++) free_list(&scorers->lists.data[i]);
  wf__vec_free(&scorers->lists);
  free_store(scorers);
}

/* --- scorers of streams ------------------------------------------------------------------ */

/* With a recurrent part: makes its root, after the other parts are sent. */
static wf_status acquire_rnn_scoring(wf__gpu_worker *worker, wf__shared_scorer *shared,
                                     const wf_scorer *recurrent, wf_error *err) {
  uint32_t root;
  struct wf__rnn_scoring *rnn_scoring;
  WF__TRY(wf__rnn_scoring_acquire(worker, recurrent, &rnn_scoring, err));
  const wf_status status =
      wf__rnn_scoring_add_root(rnn_scoring, wf__shared_scorer_there(shared), &root, err);
  if (status != WF_OK) {
    wf__rnn_scoring_release(rnn_scoring);
    return status;
  }
  shared->rnn_scoring = rnn_scoring;
  shared->root = root;
  wf_scorer_free(shared->on_cpu);
  return wf__scorer_exchange(shared->scorer, recurrent, wf__rnn_scoring_cpu_scorer(rnn_scoring),
                             &shared->on_cpu, err);
}

wf_status wf__gpu_acquire_scorer(wf__gpu_worker *worker, const wf_scorer *scorer,
                                 wf__shared_scorer **out, wf_error *err) {
  const wf_scorer *recurrent = wf__rnn_part_of(scorer);
  *out = worker->shared_scorers;
  while (*out != NULL && (*out)->scorer != scorer) *out = (*out)->next;
  if (*out != NULL) {
    (*out)->users++;
    return WF_OK;
  }
  wf__shared_scorer *shared = wf__calloc(1, sizeof *shared);
  if (shared == NULL) return wf__fail_memory(err, sizeof *shared, "a scorer");
  shared->scorer = wf_scorer_ref(scorer);
  shared->on_cpu = wf_scorer_ref(scorer);
  shared->users = 1;
  wf_status status = recurrent != scorer ? add_scorer(&shared->store, scorer, err) : WF_OK;
  const uint64_t bytes = lay_out(&shared->store);
  if (status == WF_OK) status = make_room(&shared->store, bytes, err);
  if (status == WF_OK && bytes > 0) status = send_all(worker, &shared->store, bytes, err);
  shared->holds_lists = status == WF_OK;
  if (shared->holds_lists) count_users(worker, &shared->store, 1);
  if (status == WF_OK && recurrent != NULL)
    status = acquire_rnn_scoring(worker, shared, recurrent, err);
  shared->next = worker->shared_scorers;
  worker->shared_scorers = shared;
  *out = shared;
  if (status != WF_OK) wf__gpu_release_scorer(worker, out);
  return status;
}

void wf__gpu_release_scorer(wf__gpu_worker *worker, wf__shared_scorer **place) {
  wf__shared_scorer *shared = *place, **at = &worker->shared_scorers;
  *place = NULL;
  if (shared == NULL || --shared->users > 0) return;
  while (*at != shared) at = &(*at)->next;
  *at = shared->next;
  if (shared->rnn_scoring != NULL) {
    wf__rnn_scoring_drop_root(shared->rnn_scoring, shared->root);
    wf__rnn_scoring_release(shared->rnn_scoring);
  }
  if (shared->holds_lists) count_users(worker, &shared->store, -1);
  drop_lists(worker);
  free_store(&shared->store);
  wf_scorer_free(shared->on_cpu);
  wf_scorer_free(shared->scorer);
  free(shared);
}

const wf__flat_scorer *wf__shared_scorer_there(const wf__shared_scorer *shared) {
  return shared != NULL ? (const wf__flat_scorer *)(const void *)shared->store.memory : NULL;
}

#endif
