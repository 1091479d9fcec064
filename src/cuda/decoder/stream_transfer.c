/* stream_transfer.c - a stream's tokens from the GPU to the CPU and back. */
#include "cuda/decoder/stream_transfer.h"

#include "cuda/decoder/cuda_backend.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "math/cost.h"

/* Copies the tokens of the newest frame to the channel. Of a stream that has died, only the tokens
 * that were expanded. */
static void keep_tokens(wf__gpu_channel *channel, const wf__lane_token *tokens) {
  wf__channel *base = &channel->base;
  const bool scored = channel->scorer != NULL;
  base->tokens.size = 0;
  for (uint32_t i = 0; i < channel->num_tokens; i++) {
    const uint64_t key = (uint64_t)wf__ordered_cost(tokens[i].cost) << 32 | tokens[i].state,
                   context = scored ? base->past_contexts.data[i] : 0;
    if (base->died && (key > channel->select_key ||
                       (key == channel->select_key && context > channel->select_context)))
      continue;
    if (scored) base->contexts.data[base->tokens.size] = context;
    base->tokens.data[base->tokens.size++] =
        (wf__saved_token){tokens[i].cost, tokens[i].state, base->died ? i : 0};
  }
  base->contexts.size = scored ? base->tokens.size : 0;
  base->past_contexts.size = scored && base->died ? channel->num_tokens : 0;
}

wf_status wf__streams_open_cpu(struct wf__cuda_backend *self, wf_error *err) {
  return self->cpu == NULL
             ? wf__host_backend.open(self->graph, NULL, &self->options, &self->cpu, err)
             : WF_OK;
}

/* Contexts of the tokens on the CPU. */
static wf_status find_contexts(wf__host *host, wf__stream_state *state, wf_error *err) {
  wf__searcher *threads, *searcher;
  WF__TRY(wf__host_searcher(host, 0, false, &threads, err));
  wf_status status = wf__channel_enter(&host->setup, state, threads, &searcher, err);
  if (status == WF_OK) status = wf__channel_find_contexts(searcher, err);
  return wf__channel_leave(state, searcher, status, err);
}

wf_status wf__streams_to_cpu(struct wf__cuda_backend *self, wf__gpu_channel *channel,
                             wf_error *err) {
  wf__channel *base = &channel->base;
  const uint64_t count = base->stream.begun ? channel->num_tokens : 0;
  WF__TRY(wf__streams_open_cpu(self, err));
  channel->on_cpu = true;
  if (count == 0) return WF_OK;
  base->tokens.size = base->contexts.size = base->past_contexts.size = 0;
  WF__TRY(wf__vec_grow(&base->tokens, count, "tokens", err));
  WF__TRY(wf__vec_grow(&base->contexts, count, "tokens", err));
  WF__TRY(wf__vec_grow(&base->past_contexts, count, "tokens", err));
  wf__lane_token *tokens = wf__alloc(count, sizeof *tokens);
  if (tokens == NULL) return wf__fail_memory(err, count * sizeof *tokens, "tokens");
  static const char what[] = "tokens from the GPU";
  const cudaStream_t stream = channel->worker->copy_stream;
  wf_status status =
      wf__gpu_read_back(stream, tokens, channel->tokens, count * sizeof *tokens, what, err);
  if (status == WF_OK && channel->scorer != NULL)
    status = wf__gpu_read_back(stream, base->past_contexts.data, channel->contexts,
                               count * sizeof *channel->contexts, what, err);
  if (status == WF_OK) keep_tokens(channel, tokens);
  free(tokens);
  if (status != WF_OK) return status;
  const bool deferred = channel->scorer != NULL && channel->scorer->rnn_scoring !=
                                                       NULL; /* contexts on the CPU are different */
  return deferred ? find_contexts(self->cpu, &base->stream, err) : WF_OK;
}

wf_status wf__streams_to_gpu(wf__gpu_channel *channel, wf_error *err) {
  wf__channel *base = &channel->base;
  const uint64_t count = base->tokens.size;
  wf__lane_token *tokens = wf__alloc(count, sizeof *tokens);
  if (tokens == NULL) return wf__fail_memory(err, count * sizeof *tokens, "tokens");
  for (uint64_t i = 0; i < count; i++)
    tokens[i] = (wf__lane_token){base->tokens.data[i].cost, base->tokens.data[i].state};
  const cudaStream_t stream = channel->worker->streams->stream;
  wf_status status = wf__device_send(channel->tokens, tokens, count * sizeof *tokens, stream,
                                     "tokens to the GPU", err);
  if (status == WF_OK && base->scoring.scorer != NULL)
    status = wf__device_send(channel->contexts, base->contexts.data,
                             count * sizeof *channel->contexts, stream, "contexts to the GPU", err);
  free(tokens);
  if (status != WF_OK) return status;
  wf__vec_free(&base->tokens);
  wf__vec_free(&base->contexts);
  wf__vec_free(&base->past_contexts);
  channel->num_tokens = (uint32_t)count;
  channel->on_cpu = false;
  channel->stale = true;
  return WF_OK;
}
