/* cuda_backend.c - the host side of the GPU decoder: graph and scores to the device, plan of the lanes' memory, launch, results back.
 *
 * An utterance that does not fit the plan (a trace or a path longer than its room) is decoded again by the CPU search, whose answer is the
 * same. */
#ifdef WARPFST_CUDA
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "cpu/search.h"
#include "cuda/lane_search.h"
#include "math/score.h"

/* A device buffer that only grows. */
struct buffer {
  void *data;
  uint64_t bytes;
};

struct cuda_backend {
  const wf_graph *graph;
  wf_decoder_options options;
  int device;
  cudaStream_t stream;
  int num_parts; /* blocks that run at once */
  wf__lane_params params;
  struct buffer arcs, states, utterances, order, counters, outcomes, bad, steps, scores;
  struct buffer costs, agenda, trace, path_scratch, frame_off, index;
  wf__search *cpu; /* for what does not fit, made on first use */
  bool broken;     /* a sticky CUDA error */
};

static wf_status cuda_fail(wf_error *err, cudaError_t code, const char *what) {
  wf_status status = code == cudaErrorMemoryAllocation ? WF_ERR_MEMORY : WF_ERR_DEVICE;
  return wf__fail(err, status, "CUDA: %s: %s", what, cudaGetErrorString(code));
}

#define CUDA_TRY(call, what)                                              \
  do {                                                                    \
    cudaError_t cuda_code = (cudaError_t)(call);                          \
    if (cuda_code != cudaSuccess) return cuda_fail(err, cuda_code, what); \
  } while (0)

static wf_status reserve(struct buffer *buffer, uint64_t bytes, const char *what, wf_error *err) {
  if (bytes <= buffer->bytes) return WF_OK;
  cudaFree(buffer->data);
  *buffer = (struct buffer){0};
  cudaError_t code = cudaMalloc(&buffer->data, bytes);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return wf__fail(err, WF_ERR_MEMORY, "CUDA: no room for %s (%.3f GB); lower max_tokens or decode fewer utterances at once", what, (double)bytes * 1e-9);
  }
  if (code != cudaSuccess) return cuda_fail(err, code, what);
  buffer->bytes = bytes;
  return WF_OK;
}

/* --- the graph -------------------------------------------------------------------------------------------------------- */

static wf_status upload(struct cuda_backend *self, struct buffer *to, const void *from, uint64_t bytes, const char *what, wf_error *err) {
  WF__TRY(reserve(to, bytes, what, err));
  CUDA_TRY(cudaMemcpyAsync(to->data, from, bytes, cudaMemcpyHostToDevice, self->stream), what);
  CUDA_TRY(cudaStreamSynchronize(self->stream), what);
  return WF_OK;
}

struct device_state {
  uint32_t first_arc, first_epsilon, end;
  float final_cost;
};

static wf_status upload_states(struct cuda_backend *self, wf_error *err) {
  const wf_graph *graph = self->graph;
  uint64_t n = graph->view.num_states;
  struct device_state *states = wf__alloc(n, sizeof *states);
  if (states == NULL) return wf__fail_memory(err, n * sizeof *states, "the graph's copy for the GPU");
  for (uint64_t s = 0; s < n; s++)
    states[s] = (struct device_state){graph->index[s].first_arc, graph->index[s].first_epsilon, graph->index[s + 1].first_arc, graph->view.final_cost[s]};
  wf_status status = upload(self, &self->states, states, n * sizeof *states, "the graph's states", err);
  free(states);
  return status;
}

/* Arcs as the kernel reads them: the input label replaced by the column of the scores, -1 for epsilon, and the next state marked if it has epsilon arcs. */
static wf_status upload_arcs(struct cuda_backend *self, wf_error *err) {
  const wf_graph *graph = self->graph;
  uint64_t m = graph->view.num_arcs;
  wf_arc *arcs = wf__alloc(m, sizeof *arcs);
  if (arcs == NULL) return wf__fail_memory(err, m * sizeof *arcs, "the graph's copy for the GPU");
  for (uint64_t i = 0; i < m; i++) {
    arcs[i] = graph->view.arcs[i];
    const wf__state_index *next = &graph->index[arcs[i].nextstate];
    arcs[i].ilabel = graph->columns[arcs[i].ilabel];
    if (next[0].first_epsilon < next[1].first_arc) arcs[i].nextstate |= 0x80000000u;
  }
  wf_status status = upload(self, &self->arcs, arcs, (m + 1) * sizeof *arcs - sizeof *arcs, "the graph's arcs", err);
  free(arcs);
  return status;
}

/* --- opening and closing ---------------------------------------------------------------------------------------------- */

static void cuda_close(void *opaque) {
  struct cuda_backend *self = opaque;
  struct buffer *buffers[] = {&self->arcs,  &self->states, &self->utterances, &self->order, &self->counters,     &self->outcomes,  &self->bad,      &self->steps,
                              &self->scores, &self->costs,   &self->agenda, &self->trace, &self->path_scratch, &self->frame_off, &self->index};
  cudaSetDevice(self->device);
  if (self->stream != NULL) cudaStreamDestroy(self->stream);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  wf__search_free(self->cpu);
  free(self);
}

static wf_status open_device(struct cuda_backend *self, wf_error *err) {
  int count = 0, lanes = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) return wf__fail(err, WF_ERR_DEVICE, "device %s: no GPU: %s", self->options.device, cudaGetErrorString(code));
  if (self->device >= count) return wf__fail(err, WF_ERR_DEVICE, "device %s: there are %d GPUs, numbered from 0", self->options.device, count);
  CUDA_TRY(cudaSetDevice(self->device), "choosing the GPU");
  CUDA_TRY(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking), "a stream");
  CUDA_TRY(wf__lane_search_capacity(1, self->graph->min_columns, &lanes), "the search kernel");
  if (self->graph->view.num_arcs > WF__LANE_MAX_ARCS) return wf__fail(err, WF_ERR_LIMIT, "the GPU search holds graphs of at most %u arcs", WF__LANE_MAX_ARCS);
  if (lanes < 1) return wf__fail(err, WF_ERR_DEVICE, "device %s: the search kernel does not fit this GPU", self->options.device);
  self->num_parts = lanes;
  WF__TRY(upload_states(self, err));
  return upload_arcs(self, err);
}

static wf_status cuda_open(const wf_graph *graph, const wf_decoder_options *options, void **out, wf_error *err) {
  int device;
  *out = NULL;
  WF__TRY(wf__device_parse(options->device, &device, err));
  struct cuda_backend *self = wf__calloc(1, sizeof *self);
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a decoder");
  self->graph = graph;
  self->options = *options;
  wf__decoder_limits(&self->options);
  self->device = device;
  wf_status status = open_device(self, err);
  if (status != WF_OK) {
    cuda_close(self);
    return status;
  }
  *out = self;
  return WF_OK;
}

/* --- the plan ---------------------------------------------------------------------------------------------------------- */

/* Blocks a lane needs for max_tokens, or more when there are few utterances to share the GPU. */
static wf_status choose_ranks(struct cuda_backend *self, uint32_t num_utterances, int *ranks, int *lanes, wf_error *err) {
  int least = 1;
  while (least < 8 && least * WF__LANE_TOKENS < self->options.max_tokens) least *= 2;
  if (least * WF__LANE_TOKENS < self->options.max_tokens)
    return wf__fail(err, WF_ERR_LIMIT, "max_tokens (or max_active) of %d is more than the GPU search holds: %d", self->options.max_tokens, 8 * WF__LANE_TOKENS);
  for (*ranks = least; *ranks < 8 && (uint32_t)self->num_parts / (uint32_t)(*ranks * 2) >= num_utterances;) *ranks *= 2;
  for (;; *ranks /= 2) {
    CUDA_TRY(wf__lane_search_capacity(*ranks, self->graph->min_columns, lanes), "the search kernel");
    if (*lanes > 0 || *ranks == least) break;
  }
  if (*lanes < 1) return wf__fail(err, WF_ERR_DEVICE, "the search kernel in clusters of %d does not fit this GPU; lower max_tokens", *ranks);
  if (*lanes * *ranks > self->num_parts) *lanes = self->num_parts / *ranks;
  if ((uint32_t)*lanes > num_utterances) *lanes = (int)num_utterances;
  return WF_OK;
}

static wf_status plan(struct cuda_backend *self, uint32_t num_utterances, int32_t max_frames, uint64_t sum_frames, wf_error *err) {
  wf__lane_params *p = &self->params;
  int ranks, lanes;
  size_t free_bytes = 0, all_bytes = 0;
  WF__TRY(choose_ranks(self, num_utterances, &ranks, &lanes, err));
  uint64_t parts = (uint64_t)ranks * (uint64_t)lanes;
  CUDA_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "memory");
  /* Room for every frame to be full, as far as half of the free memory goes; utterances beyond it are for the CPU. */
  uint64_t trace = ((uint64_t)max_frames + 1) * ((uint64_t)self->options.max_tokens * 9 / 8 / (uint64_t)ranks + 64);
  uint64_t most = ((uint64_t)free_bytes + self->trace.bytes) / 2 / parts / 8;
  if (trace > most) trace = most;
  if (trace > 0xf0000000u) trace = 0xf0000000u;
  p->ranks = (uint32_t)ranks;
  p->num_lanes = (uint32_t)lanes;
  p->trace_cap = (uint32_t)trace;
  p->frames_cap = (uint32_t)max_frames;
  p->path_cap = (uint32_t)max_frames * 4 + 4096;
  p->steps_cap = sum_frames * 2 + (uint64_t)num_utterances * 256;
  WF__TRY(reserve(&self->costs, parts * WF__LANE_SLOTS * 4, "tokens", err));
  WF__TRY(reserve(&self->agenda, parts * WF__LANE_SLOTS * 16, "tokens", err));
  WF__TRY(reserve(&self->trace, parts * trace * 8, "the token history", err));
  WF__TRY(reserve(&self->path_scratch, (uint64_t)lanes * p->path_cap * sizeof(wf__lane_step), "paths", err));
  WF__TRY(reserve(&self->frame_off, parts * (p->frames_cap + 2) * 4, "the token history", err));
  WF__TRY(reserve(&self->index, parts * (p->frames_cap + 1) * WF__LANE_INDEX * 2, "the token history", err));
  WF__TRY(reserve(&self->utterances, num_utterances * sizeof(wf__lane_utterance), "utterances", err));
  WF__TRY(reserve(&self->order, num_utterances * 4, "utterances", err));
  WF__TRY(reserve(&self->outcomes, num_utterances * sizeof(wf__lane_outcome), "results", err));
  WF__TRY(reserve(&self->bad, num_utterances * 8, "results", err));
  WF__TRY(reserve(&self->counters, 16, "results", err));
  return reserve(&self->steps, p->steps_cap * sizeof(wf__lane_step), "paths", err);
}

static void fill_params(struct cuda_backend *self, uint32_t num_utterances) {
  wf__lane_params *p = &self->params;
  const wf_decoder_options *o = &self->options;
  p->arcs = self->arcs.data;
  p->states = self->states.data;
  p->num_states = (uint32_t)self->graph->view.num_states;
  p->num_arcs = (uint32_t)self->graph->view.num_arcs;
  p->start = (uint32_t)self->graph->view.start;
  p->num_columns = self->graph->min_columns;
  p->beam = o->beam;
  p->acoustic_scale = o->acoustic_scale;
  p->word_score = o->word_score;
  p->epsilon_slack = wf__epsilon_slack(self->graph, o);
  p->max_active = (uint32_t)o->max_active;
  p->min_active = (uint32_t)o->min_active;
  p->max_tokens = (uint32_t)o->max_tokens;
  p->utterances = self->utterances.data;
  p->order = self->order.data;
  p->num_utterances = num_utterances;
  p->steps_used = self->counters.data;
  p->queue = (uint32_t *)self->counters.data + 2;
  p->outcomes = self->outcomes.data;
  p->steps = self->steps.data;
  p->costs = self->costs.data;
  p->agenda = self->agenda.data;
  p->trace = self->trace.data;
  p->path_scratch = self->path_scratch.data;
  p->frame_off = self->frame_off.data;
  p->index = self->index.data;
}

/* --- a batch ----------------------------------------------------------------------------------------------------------- */

struct chunk {
  const wf__batch *batch;
  uint32_t *which;                /* [count] utterances of the batch, longest first */
  wf__lane_utterance *utterances; /* [count] */
  wf__lane_outcome *outcomes;
  uint64_t *bad;
  uint32_t *order;
  wf__lane_step *steps;
  uint32_t count;
};

static uint64_t element_bytes(const wf_scores *scores) { return scores->dtype == WF_FLOAT32 ? 4 : 2; }

/* Copies scores that lie in host memory, one after the other, each at a multiple of 256 bytes. */
static wf_status send_scores(struct cuda_backend *self, struct chunk *chunk, wf_error *err) {
  uint64_t bytes = 0;
  for (int pass = 0; pass < 2; pass++) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < chunk->count; i++) {
      const wf_scores *scores = &chunk->batch->scores[chunk->which[i]];
      uint64_t element = element_bytes(scores), row = (uint64_t)scores->num_columns * element;
      const void *data = scores->data;
      if (!scores->on_device && pass == 1 && scores->num_frames > 0) {
        data = (char *)self->scores.data + at;
        CUDA_TRY(cudaMemcpy2DAsync((char *)self->scores.data + at, row, scores->data, (size_t)scores->stride * element, row, (size_t)scores->num_frames,
                                   cudaMemcpyHostToDevice, self->stream),
                 "scores to the GPU");
      }
      if (!scores->on_device) at += ((uint64_t)scores->num_frames * row + 255) & ~(uint64_t)255;
      chunk->utterances[i] = (wf__lane_utterance){.scores = data,
                                                  .stride = scores->on_device ? scores->stride : scores->num_columns,
                                                  .num_frames = (int32_t)scores->num_frames,
                                                  .num_columns = scores->num_columns,
                                                  .dtype = (int32_t)scores->dtype};
    }
    bytes = at;
    if (pass == 0) WF__TRY(reserve(&self->scores, bytes, "scores", err));
  }
  return WF_OK;
}

static wf_status launch(struct cuda_backend *self, struct chunk *chunk, wf_error *err) {
  CUDA_TRY(cudaMemcpyAsync(self->utterances.data, chunk->utterances, chunk->count * sizeof *chunk->utterances, cudaMemcpyHostToDevice, self->stream), "utterances");
  CUDA_TRY(cudaMemcpyAsync(self->order.data, chunk->order, chunk->count * 4, cudaMemcpyHostToDevice, self->stream), "utterances");
  CUDA_TRY(cudaMemsetAsync(self->counters.data, 0, 16, self->stream), "counters");
  CUDA_TRY(cudaMemsetAsync(self->bad.data, 0xff, chunk->count * 8, self->stream), "counters");
  CUDA_TRY(wf__check_scores_launch(self->utterances.data, chunk->count, self->bad.data, self->stream), "checking scores");
  CUDA_TRY(wf__lane_search_launch(&self->params, self->stream), "the search kernel");
  uint64_t used = 0;
  CUDA_TRY(cudaMemcpyAsync(chunk->outcomes, self->outcomes.data, chunk->count * sizeof *chunk->outcomes, cudaMemcpyDeviceToHost, self->stream), "results");
  CUDA_TRY(cudaMemcpyAsync(chunk->bad, self->bad.data, chunk->count * 8, cudaMemcpyDeviceToHost, self->stream), "results");
  CUDA_TRY(cudaMemcpyAsync(&used, self->counters.data, 8, cudaMemcpyDeviceToHost, self->stream), "results");
  CUDA_TRY(cudaStreamSynchronize(self->stream), "the search kernel");
  if (used > self->params.steps_cap) used = self->params.steps_cap;
  chunk->steps = wf__alloc(used, sizeof *chunk->steps);
  if (chunk->steps == NULL) return wf__fail_memory(err, used * sizeof *chunk->steps, "paths");
  CUDA_TRY(cudaMemcpyAsync(chunk->steps, self->steps.data, used * sizeof *chunk->steps, cudaMemcpyDeviceToHost, self->stream), "paths");
  CUDA_TRY(cudaStreamSynchronize(self->stream), "paths");
  return WF_OK;
}

/* The same utterance on the CPU, for what the plan has no room for. */
static wf_status decode_on_cpu(struct cuda_backend *self, const wf_scores *scores, wf_result *result, wf_error *err) {
  if (self->cpu == NULL) WF__TRY(wf__search_create(self->graph, &self->options, &self->cpu, err));
  wf_scores host = *scores;
  void *copy = NULL;
  if (scores->on_device) {
    uint64_t bytes = (uint64_t)scores->num_frames * (uint64_t)scores->stride * element_bytes(scores);
    copy = wf__alloc(bytes, 1);
    if (copy == NULL) return wf__fail_memory(err, bytes, "scores");
    host.data = copy;
    host.on_device = false;
    cudaError_t code = cudaMemcpy(copy, scores->data, bytes, cudaMemcpyDeviceToHost);
    if (code != cudaSuccess) {
      free(copy);
      return cuda_fail(err, code, "scores from the GPU");
    }
  }
  wf_status status = wf__search_begin(self->cpu, err);
  if (status == WF_OK) status = wf__search_advance(self->cpu, &host, err);
  if (status == WF_OK) status = wf__search_finish(self->cpu, &host, err);
  if (status == WF_OK) status = wf__result_fill(result, self->graph, &self->options, &self->cpu->path, err);
  free(copy);
  return status;
}

static wf_status fill_result(struct cuda_backend *self, const struct chunk *chunk, uint32_t i, wf_result *result, wf_error *err) {
  const wf__lane_outcome *outcome = &chunk->outcomes[i];
  if (chunk->bad[i] != UINT64_MAX) {
    int64_t frame = (int64_t)(chunk->bad[i] >> 32);
    int32_t column = (int32_t)(uint32_t)chunk->bad[i];
    const wf__lane_utterance *u = &chunk->utterances[i];
    uint64_t element = u->dtype == WF_FLOAT32 ? 4 : 2;
    uint32_t bits = 0;
    CUDA_TRY(cudaMemcpy(&bits, (const char *)u->scores + (uint64_t)(frame * u->stride + column) * element, element, cudaMemcpyDeviceToHost), "a score");
    wf_scores one = {.data = &bits, .num_frames = 1, .num_columns = 1, .stride = 1, .dtype = (wf_dtype)u->dtype};
    wf__result_bad_score(result, frame, column, wf__score_at(&one, 0, 0));
    return WF_OK;
  }
  if (outcome->status == WF__LANE_CLOSURE)
    return wf__fail(err, WF_ERR_LIMIT, "max_tokens (%d) is less than the epsilon closure of one state", self->options.max_tokens);
  if (outcome->status == WF__LANE_CYCLE) return wf__fail(err, WF_ERR_NEGATIVE_CYCLE, "epsilon arcs go round for ever: word_score makes a cycle's cost negative");
  if (outcome->status != WF__LANE_OK) {
    wf__log(WF_LOG_DEBUG, "an utterance of %d frames did not fit the GPU's plan and is decoded on the CPU", chunk->utterances[i].num_frames);
    return decode_on_cpu(self, &chunk->batch->scores[chunk->which[i]], result, err);
  }
  wf__path path = {.final_cost = outcome->final_cost,
                   .flags = outcome->flags,
                   .num_decoded = outcome->num_decoded,
                   .num_tokens = outcome->num_tokens,
                   .num_expanded = outcome->num_expanded,
                   .num_arcs = outcome->num_arcs,
                   .num_narrowed = outcome->num_narrowed};
  const wf__lane_step *steps = chunk->steps + outcome->path_off;
  wf_status status = wf__vec_grow(&path.arcs, outcome->path_size, "a path", err);
  if (status == WF_OK) status = wf__vec_grow(&path.loglikes, (uint64_t)outcome->num_decoded, "a path", err);
  for (uint32_t k = 0; k < outcome->path_size && status == WF_OK; k++) {
    path.arcs.data[path.arcs.size++] = steps[k].arc;
    if (self->graph->view.arcs[steps[k].arc].ilabel != 0) path.loglikes.data[path.loglikes.size++] = steps[k].loglike;
  }
  if (status == WF_OK) status = wf__result_fill(result, self->graph, &self->options, &path, err);
  wf__path_free(&path);
  return status;
}

static wf_status decode_chunk(struct cuda_backend *self, struct chunk *chunk, wf_error *err) {
  int32_t max_frames = 0;
  uint64_t sum_frames = 0;
  for (uint32_t i = 0; i < chunk->count; i++) {
    int64_t frames = chunk->batch->scores[chunk->which[i]].num_frames;
    if (frames > max_frames) max_frames = (int32_t)frames;
    sum_frames += (uint64_t)frames;
    chunk->order[i] = i;
  }
  WF__TRY(send_scores(self, chunk, err));
  WF__TRY(plan(self, chunk->count, max_frames, sum_frames, err));
  fill_params(self, chunk->count);
  WF__TRY(launch(self, chunk, err));
  for (uint32_t i = 0; i < chunk->count; i++) {
    wf_result *result = chunk->batch->results[chunk->which[i]];
    wf_status status = fill_result(self, chunk, i, result, err);
    if (status == WF_ERR_MEMORY || status == WF_ERR_DEVICE) return status;
    if (status == WF_OK) continue;
    result->status = status; /* its own fault: the others stand */
    snprintf(result->message, sizeof result->message, "%s", err->message);
  }
  return WF_OK;
}

/* How many of which[from ..] go together: as many as their scores' bytes allow. */
static uint32_t chunk_size(const wf__batch *batch, const uint32_t *which, uint32_t from, uint32_t end, uint64_t budget) {
  uint64_t bytes = 0;
  uint32_t count = 0;
  for (; from + count < end; count++) {
    const wf_scores *scores = &batch->scores[which[from + count]];
    if (!scores->on_device) bytes += (uint64_t)scores->num_frames * (uint64_t)scores->num_columns * element_bytes(scores) + 256;
    if (bytes > budget && count > 0) break;
  }
  return count;
}

static wf_status cuda_decode(void *opaque, const wf__batch *batch, wf_error *err) {
  struct cuda_backend *self = opaque;
  wf_error own = {0};
  if (err == NULL) err = &own;
  if (self->broken) return wf__fail(err, WF_ERR_DEVICE, "an earlier CUDA error left this decoder unusable");
  CUDA_TRY(cudaSetDevice(self->device), "choosing the GPU");
  size_t n = batch->count;
  uint32_t *which = wf__alloc(n, sizeof *which), count = 0;
  struct chunk chunk = {.batch = batch,
                        .utterances = wf__alloc(n, sizeof *chunk.utterances),
                        .outcomes = wf__alloc(n, sizeof *chunk.outcomes),
                        .bad = wf__alloc(n, sizeof *chunk.bad),
                        .order = wf__alloc(n, sizeof *chunk.order)};
  wf_status status = WF_OK;
  size_t free_bytes = 0, all_bytes = 0;
  if (which == NULL || chunk.utterances == NULL || chunk.outcomes == NULL || chunk.bad == NULL || chunk.order == NULL)
    status = wf__fail_memory(err, n * 64, "a batch");
  if (status == WF_OK) status = wf__longest_first(batch, which, &count, err);
  if (status == WF_OK && cudaMemGetInfo(&free_bytes, &all_bytes) != cudaSuccess) status = wf__fail(err, WF_ERR_DEVICE, "CUDA: memory of the GPU");
  uint64_t budget = ((uint64_t)free_bytes + self->scores.bytes) / 4;
  for (uint32_t from = 0; from < count && status == WF_OK; from += chunk.count) {
    chunk.which = which + from;
    chunk.count = chunk_size(batch, which, from, count, budget);
    status = decode_chunk(self, &chunk, err);
    free(chunk.steps);
    chunk.steps = NULL;
    if (status == WF_OK) status = wf__progress(batch->progress, "decoding", (double)(from + chunk.count) / (double)count, err);
  }
  if (status == WF_ERR_DEVICE) self->broken = true;
  free(which);
  free(chunk.utterances);
  free(chunk.outcomes);
  free(chunk.bad);
  free(chunk.order);
  return status;
}

const wf__backend wf__cuda_backend = {.name = "cuda", .open = cuda_open, .decode = cuda_decode, .close = cuda_close};
#endif
