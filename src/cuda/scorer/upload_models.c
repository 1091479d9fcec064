/* upload_models.c - language models on a GPU: each in its own memory, sent once. The decoder keeps it
 * while another owner does. What stays in host memory is one copy for all GPUs (host_model.c). */
#include "cuda/scorer/upload_models.h"

#include <string.h>

#include "cuda/device/device_memory.h"
#include "cuda/scorer/host_model.h"
#include "plan/lane_memory.h"

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
  wf__wlm_free(model->lm);
}

void wf__gpu_drop_models(wf__gpu_models *models) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < models->list.size; i++) {
    wf__gpu_model *model = &models->list.data[i];
    if (atomic_load(&model->lm->refs) > atomic_load(&model->lm->num_copies)) {
      models->list.data[kept++] = *model;
      continue;
    }
    add_counts(model, &models->gone);
    free_model(model);
  }
  models->list.size = kept;
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

static struct sections sections_of(const wf__wlm *lm) {
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

static wf_status send_sections(wf__gpu_model *model, cudaStream_t stream, wf_error *err) {
  const wf__wlm_view *v = &model->lm->view;
  const struct sections from = sections_of(model->lm);
  char *to[WF__WLM_SECTIONS];
  const int cache_bits = model->view.cache_bits;
  if (model->bytes > 0)
    WF__CUDA_TRY(
        cudaMemsetAsync(model->memory, 0, model->bytes, stream),
        "the language model to the GPU"); /* counters, cache, and the gaps between arrays */
  place_sections(model, false, model->memory, to);
  place_sections(model, true, model->host, to);
  char *at = model->memory;
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++) {
    if (is_on_host(model->placement, i)) continue;
    at += wf__round_up_256(section_bytes(model, i));
    if (from.data[i] != NULL)
      WF__CUDA_TRY(cudaMemcpyAsync(to[i], from.data[i], section_bytes(model, i),
                                   cudaMemcpyHostToDevice, stream),
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
  WF__CUDA_TRY(cudaStreamSynchronize(stream), "the language model to the GPU");
  return WF_OK;
}

uint64_t wf__gpu_model_bytes(const wf__gpu_models *models) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < models->list.size; i++) bytes += models->list.data[i].bytes;
  return bytes;
}

/* Before memory is taken: a model can be larger than all of it. */
static wf_status check_limit(const wf__gpu_models *models, const wf__gpu_model *model,
                             const wf__model_room *room, wf_error *err) {
  const uint64_t others = room->others + wf__gpu_model_bytes(models),
                 left = others < room->limit ? room->limit - others : 0;
  return room->limit == 0 || (left > 0 && model->bytes <= left)
             ? WF_OK
             : wf__fail_room(err, room->device, model_text, model->bytes, left);
}

wf_status wf__gpu_find_model(wf__gpu_models *models, const wf__flat_part *part,
                             const wf__model_room *room, const wf__wlm_view **out, wf_error *err) {
  for (uint64_t i = 0; i < models->list.size; i++) {
    const wf__gpu_model *model = &models->list.data[i];
    *out = &model->view;
    if (model->lm == part->model && model->placement == part->placement &&
        model->wanted == part->gpu_bytes)
      return WF_OK;
  }
  wf__gpu_model model = {
      .lm = wf__wlm_ref(part->model), .placement = part->placement, .wanted = part->gpu_bytes};
  atomic_fetch_add(&model.lm->num_copies, 1);
  plan_model(&model);
  wf_status status = check_limit(models, &model, room, err);
  if (status == WF_OK && model.bytes > 0)
    status = wf__device_alloc((void **)&model.memory, model.bytes, model_text, err);
  if (status == WF_OK && model.host_bytes > 0)
    status = wf__host_model_acquire(model.lm, model.placement, model.host_bytes, fill_host, &model,
                                    &model.host, err);
  if (status == WF_OK) status = send_sections(&model, room->stream, err);
  if (status == WF_OK) status = wf__vec_push(&models->list, model, "language models", err);
  if (status != WF_OK) {
    free_model(&model);
    return status;
  }
  *out = &models->list.data[models->list.size - 1].view;
  return WF_OK;
}

void wf__gpu_add_lm_stats(const wf__gpu_models *models, int device, int num_warps,
                          wf_lm_stats *stats) {
  wf__gpu_lm_counts counts = models->gone;
  int khz = 0;
  uint64_t host_bytes = 0; /* of copies that all workers share */
  for (uint64_t i = 0; i < models->list.size; i++) {
    const wf__gpu_model *model = &models->list.data[i];
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
      cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device) != cudaSuccess || khz <= 0)
    return;
  stats->stall_s += (double)counts.cycles / (1e3 * khz * num_warps);
}

void wf__gpu_models_free(wf__gpu_models *models) {
  for (uint64_t i = 0; i < models->list.size; i++) free_model(&models->list.data[i]);
  wf__vec_free(&models->list);
}
