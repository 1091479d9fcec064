/* cuda_scorers.c - scorers on a GPU, as flat_scorer.h has them.
 *
 *   models  each in memory of its own, sent once: the decoder keeps it while anybody else does
 *   memory  [flats] wf__flat_scorer, then their other arrays, at multiples of 256 bytes: boosts and the words of models, sent for each batch; what several
 *           scorers share is there once */
#ifdef WARPFST_CUDA
#include <string.h>

#include "cuda/cuda_worker.h"

static uint64_t round_up(uint64_t bytes) { return (bytes + 255) & ~(uint64_t)255; }

/* --- models -------------------------------------------------------------------------------------------------------------- */

static void free_model(wf__gpu_model *model) {
  cudaFree(model->memory);
  wf_wlm_free(model->lm);
}

/* Models that only this worker still holds. */
static void drop_unused(wf__gpu_scorers *scorers) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < scorers->models.size; i++) {
    wf__gpu_model *model = &scorers->models.data[i];
    if (atomic_load(&model->lm->refs) > 1) scorers->models.data[kept++] = *model;
    else free_model(model);
  }
  scorers->models.size = kept;
}

/* Arrays of a model in the order of the file, with the bytes behind each that a look-up may touch: every file has them. */
enum { SECTION_ROOM = 8, FIRST_SECTION = WF__WLM_UNIGRAMS };

static wf_status send_sections(wf__gpu_worker *worker, wf__gpu_model *model, wf_error *err) {
  const wf__wlm_header *header = model->lm->header;
  const char *from[WF__WLM_SECTIONS];
  char *to[WF__WLM_SECTIONS], *at = model->memory;
  const wf__wlm_view *v = &model->lm->view;
  from[WF__WLM_UNIGRAMS] = (const char *)v->unigrams;
  from[WF__WLM_STATES] = (const char *)v->states;
  from[WF__WLM_TAGS] = (const char *)v->tags;
  from[WF__WLM_BUCKETS] = (const char *)v->buckets;
  from[WF__WLM_SMALL_ARCS] = (const char *)v->small;
  from[WF__WLM_LARGE_ARCS] = (const char *)v->large;
  from[WF__WLM_CODEBOOK] = (const char *)v->codebook;
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++) {
    const uint64_t size = header->sections[i].size + SECTION_ROOM;
    to[i] = at;
    at += round_up(size);
    if (from[i] == NULL) continue;
    WF__CUDA_TRY(cudaMemcpyAsync(to[i], from[i], size, cudaMemcpyHostToDevice, worker->copy_stream), "the language model to the GPU");
  }
  WF__CUDA_TRY(cudaStreamSynchronize(worker->copy_stream), "the language model to the GPU");
  model->view = *v;
  model->view.unigrams = (const wf__wlm_unigram *)to[WF__WLM_UNIGRAMS];
  model->view.states = (const wf__wlm_state *)to[WF__WLM_STATES];
  model->view.tags = (const uint16_t *)to[WF__WLM_TAGS];
  model->view.buckets = (const wf__wlm_bucket *)to[WF__WLM_BUCKETS];
  model->view.small = (const uint8_t *)to[WF__WLM_SMALL_ARCS];
  model->view.large = (const uint8_t *)to[WF__WLM_LARGE_ARCS];
  model->view.codebook = v->codebook != NULL ? (const float *)to[WF__WLM_CODEBOOK] : NULL;
  return WF_OK;
}

static wf_status find_model(wf__gpu_worker *worker, const wf_wlm *lm, const wf__wlm_view **out, wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  for (uint64_t i = 0; i < scorers->models.size; i++) {
    *out = &scorers->models.data[i].view;
    if (scorers->models.data[i].lm == lm) return WF_OK;
  }
  wf__gpu_model model = {.bytes = 0};
  for (int i = FIRST_SECTION; i < WF__WLM_SECTIONS; i++) model.bytes += round_up(lm->header->sections[i].size + SECTION_ROOM);
  WF__CUDA_TRY(cudaMalloc((void **)&model.memory, model.bytes), "room for the language model");
  model.lm = wf_wlm_ref(lm);
  wf_status status = send_sections(worker, &model, err);
  if (status == WF_OK) status = wf__vec_push(&scorers->models, model, "language models", err);
  if (status != WF_OK) {
    free_model(&model);
    return status;
  }
  *out = &scorers->models.data[scorers->models.size - 1].view;
  return WF_OK;
}

/* --- the batch ----------------------------------------------------------------------------------------------------------- */

static wf_status add_piece(wf__gpu_scorers *scorers, const void *data, uint64_t bytes, wf_error *err) {
  uint32_t number;
  bool fresh;
  if (data == NULL || bytes == 0) return WF_OK;
  WF__TRY(wf__map64_insert(&scorers->piece_of, (uint64_t)(uintptr_t)data, (uint32_t)scorers->pieces.size, &number, &fresh, "scorers", err));
  wf__gpu_piece piece = {data, bytes, 0};
  return fresh ? wf__vec_push(&scorers->pieces, piece, "scorers", err) : WF_OK;
}

static uint64_t key_bytes(const wf__flat_part *part) { return part->table_bits > 0 ? sizeof *part->keys << part->table_bits : 0; }

static wf_status add_scorer(wf__gpu_scorers *scorers, const wf_scorer *scorer, wf_error *err) {
  uint32_t number;
  bool fresh;
  WF__TRY(wf__map64_insert(&scorers->flat_of, (uint64_t)(uintptr_t)scorer, (uint32_t)scorers->flats.size, &number, &fresh, "scorers", err));
  if (!fresh) return WF_OK;
  wf__flat_scorer flat;
  const char *why_not = wf__scorer_flatten(scorer, &flat);
  if (why_not != NULL) return wf__fail(err, WF_ERR_UNSUPPORTED, "this scorer (%s) works on the CPU only", why_not);
  for (int i = 0; i < flat.num_parts; i++) {
    const wf__flat_part *part = &flat.parts[i];
    WF__TRY(add_piece(scorers, part->keys, key_bytes(part), err));
    WF__TRY(add_piece(scorers, part->values, key_bytes(part) / 2, err));
    WF__TRY(add_piece(scorers, part->nodes, part->num_nodes * sizeof *part->nodes, err));
    WF__TRY(add_piece(scorers, part->word_of, part->num_labels * sizeof *part->word_of, err));
  }
  return wf__vec_push(&scorers->flats, flat, "scorers", err);
}

static const void *on_device(const wf__gpu_scorers *scorers, const void *data) {
  const uint32_t number = data != NULL ? wf__map64_find(&scorers->piece_of, (uint64_t)(uintptr_t)data) : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? scorers->memory + scorers->pieces.data[number].at : NULL;
}

/* Everything but the models, pointers as they are on the GPU, in one copy. */
static wf_status send_all(wf__gpu_worker *worker, uint64_t bytes, wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  char *all = wf__calloc(bytes, 1);
  if (all == NULL) return wf__fail_memory(err, bytes, "scorers for the GPU");
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < scorers->pieces.size; i++) memcpy(all + scorers->pieces.data[i].at, scorers->pieces.data[i].data, scorers->pieces.data[i].bytes);
  for (uint64_t i = 0; i < scorers->flats.size && status == WF_OK; i++) {
    wf__flat_scorer flat = scorers->flats.data[i];
    for (int k = 0; k < flat.num_parts && status == WF_OK; k++) {
      wf__flat_part *part = &flat.parts[k];
      const wf__wlm_view *view;
      part->keys = on_device(scorers, part->keys);
      part->values = on_device(scorers, part->values);
      part->nodes = on_device(scorers, part->nodes);
      part->word_of = on_device(scorers, part->word_of);
      if (part->model == NULL) continue;
      status = find_model(worker, part->model, &view, err);
      if (status == WF_OK) part->lm = *view;
    }
    memcpy(all + i * sizeof flat, &flat, sizeof flat);
  }
  if (status == WF_OK) {
    cudaError_t code = cudaMemcpyAsync(scorers->memory, all, bytes, cudaMemcpyHostToDevice, worker->copy_stream);
    if (code == cudaSuccess) code = cudaStreamSynchronize(worker->copy_stream);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, "scorers to the GPU");
  }
  free(all);
  return status;
}

static wf_status make_room(wf__gpu_scorers *scorers, uint64_t bytes, wf_error *err) {
  if (bytes <= scorers->bytes) return WF_OK;
  cudaFree(scorers->memory);
  scorers->memory = NULL;
  scorers->bytes = 0;
  WF__CUDA_TRY(cudaMalloc((void **)&scorers->memory, bytes), "room for scorers");
  scorers->bytes = bytes;
  return WF_OK;
}

wf_status wf__gpu_take_scorers(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err) {
  wf__gpu_scorers *scorers = &worker->scorers;
  wf__map64_clear(&scorers->flat_of);
  wf__map64_clear(&scorers->piece_of);
  scorers->flats.size = scorers->pieces.size = 0;
  drop_unused(scorers);
  for (size_t i = 0; i < batch->count && batch->scorers != NULL; i++)
    if (!batch->skip[i] && batch->scorers[i] != NULL) WF__TRY(add_scorer(scorers, batch->scorers[i], err));
  uint64_t bytes = round_up(scorers->flats.size * sizeof *scorers->flats.data);
  for (uint64_t i = 0; i < scorers->pieces.size; i++) {
    scorers->pieces.data[i].at = bytes;
    bytes += round_up(scorers->pieces.data[i].bytes);
  }
  worker->facts.scored = scorers->flats.size > 0;
  WF__TRY(make_room(scorers, bytes, err));
  if (worker->facts.scored) WF__TRY(send_all(worker, bytes, err));
  worker->facts.scorer_bytes = scorers->bytes;
  for (uint64_t i = 0; i < scorers->models.size; i++) worker->facts.scorer_bytes += scorers->models.data[i].bytes;
  return WF_OK;
}

const wf__flat_scorer *wf__gpu_scorer_of(const wf__gpu_worker *worker, const wf__batch *batch, uint32_t utterance) {
  const wf_scorer *scorer = batch->scorers != NULL ? batch->scorers[utterance] : NULL;
  const uint32_t number = scorer != NULL ? wf__map64_find(&worker->scorers.flat_of, (uint64_t)(uintptr_t)scorer) : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? (const wf__flat_scorer *)(const void *)worker->scorers.memory + number : NULL;
}

void wf__gpu_release_scorers(wf__gpu_worker *worker) {
  wf__gpu_scorers *scorers = &worker->scorers;
  for (uint64_t i = 0; i < scorers->models.size; i++) free_model(&scorers->models.data[i]);
  wf__vec_free(&scorers->models);
  wf__vec_free(&scorers->flats);
  wf__vec_free(&scorers->pieces);
  wf__map64_free(&scorers->flat_of);
  wf__map64_free(&scorers->piece_of);
  cudaFree(scorers->memory);
}

#endif
