/* gpu_stream_plan.c - the plan of gpu_stream_plan.h: as many blocks as run at once, halved until
 * they fit; the rest is for streams. */
#include "plan/gpu_stream_plan.h"

#include "cuda/device/gpu_profile.h"

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void lay_out_out(wf__stream_plan *plan, bool scored, bool lattices) {
  const uint64_t sizes[WF__NUM_STREAM_OUT] = {
      plan->chunk_size * sizeof(wf__lane_advance),
      plan->back_pointers_cap * sizeof(wf__back_pointer),
      scored && lattices ? plan->back_pointers_cap * sizeof(uint64_t) : 0,
      plan->links_cap * sizeof(wf__lane_chunk_link)};
  plan->out_bytes = wf__lay_out_arrays(sizes, WF__NUM_STREAM_OUT, plan->out_off);
}

static void lay_out(wf__stream_plan *plan, const wf_graph *graph, const wf_decoder_options *options,
                    uint32_t parts, uint64_t slots, bool scored) {
  const uint64_t tokens = (uint64_t)options->max_tokens, frames = WF__STREAM_FRAMES;
  /* A block has all tokens of a frame at most, or as many as its table. */
  const uint64_t cap = ((frames + 1) * min_u64(tokens, slots) + 31) & ~(uint64_t)31;
  const uint64_t chunk_bytes =
      wf__round_up_256(frames * (uint64_t)graph->min_columns * sizeof(float));
  plan->parts = parts;
  plan->chunk_size = parts * WF__STREAM_CHUNKS;
  plan->window_bytes =
      max_u64(chunk_bytes, min_u64(plan->chunk_size * chunk_bytes, WF__STREAM_WINDOW_BYTES));
  const bool lattices = options->lattice_beam > 0;
  plan->back_pointers_cap =
      max_u64((frames + 1) * tokens, (uint64_t)plan->chunk_size * WF__STREAM_BACK_POINTERS_EACH);
  plan->links_cap = lattices ? (uint64_t)plan->chunk_size * WF__STREAM_ARCS : 0;
  lay_out_out(plan, scored, lattices);
  const wf__lane_shape shape = {.parts = parts,
                                .lanes = parts,
                                .slots = slots,
                                .columns = wf__gpu_listed_columns(graph),
                                .trace_cap = cap,
                                .trace_room = cap,
                                .frames_cap = frames,
                                .scored = scored,
                                .lattices = lattices,
                                .streams = true};
  wf__lane_memory_plan(&shape, &plan->lane_memory);
  wf__transfer_plan_streams(plan->chunk_size, plan->window_bytes, &plan->transfer);
  plan->bytes = plan->lane_memory.bytes + plan->transfer.bytes;
  plan->slot_bytes = wf__round_up_256(tokens * sizeof(wf__lane_token));
}

wf_status wf__stream_plan_make(const wf_graph *graph, const wf_decoder_options *options,
                               const wf__device_limits *limits, int num_sharing, bool scored,
                               wf__stream_plan *out, wf_error *err) {
  const uint64_t all = wf__gpu_available(limits, options),
                 available = all == UINT64_MAX ? all : all / (uint64_t)num_sharing;
  *out = (wf__stream_plan){0};
  const uint64_t graph_bytes = out->graph_bytes =
      wf__gpu_graph_bytes(graph, options) +
      wf__round_up_256(wf__gpu_explicit_arcs(graph) * sizeof(uint32_t));
  out->available = available;
  WF__TRY(wf__gpu_check_graph(graph, err));
  const uint64_t slots = wf__lane_slots(limits->profile.shared_kb, scored);
  WF__TRY(wf__gpu_check_max_tokens(options, err));
  for (uint32_t parts = (uint32_t)limits->lanes[0];; parts = (parts + 1) / 2) {
    lay_out(out, graph, options, parts, slots, scored);
    const uint64_t bytes = graph_bytes + out->bytes;
    if (bytes + out->slot_bytes <= available) {
      out->max_slots = (available - bytes) / out->slot_bytes;
      return WF_OK;
    }
    if (parts <= 1u << WF__MAX_RANK_BITS)
      return wf__fail(err, WF_ERR_MEMORY,
                      "the GPU has %llu bytes for streams (gpu_memory or what is free), at least "
                      "%llu are needed: %s (%d)",
                      (unsigned long long)available, (unsigned long long)(bytes + out->slot_bytes),
                      graph_bytes >= available ? "the graph takes most of it; or lower max_tokens"
                                               : "lower max_tokens",
                      options->max_tokens);
  }
}

/* --- wf_plan_streams --------------------------------------------------------------------- */

wf_status wf__gpu_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_stream_shape *shape, const wf__device_limits *limits,
                               int num_workers, int num_sharing, wf_stream_plan *out,
                               wf_error *err) {
  wf__stream_plan plan;
  WF__TRY(wf__stream_plan_make(graph, options, limits, num_sharing, shape->scored, &plan, err));
  const uint64_t slots = shape->scored ? 2 : 1, workers = (uint64_t)num_workers,
                 share = (shape->num_streams + workers - 1) / workers;
  const uint64_t fit = plan.max_slots / slots;
  if (share > fit)
    return wf__fail(
        err, WF_ERR_MEMORY,
        "%zu streams of %llu bytes do not fit: the GPU has %llu bytes (gpu_memory or what is "
        "free), graph and lanes take %llu, %llu streams fit: lower max_tokens (%d)",
        shape->num_streams, (unsigned long long)(plan.slot_bytes * slots),
        (unsigned long long)plan.available, (unsigned long long)(plan.graph_bytes + plan.bytes),
        (unsigned long long)(fit * workers), options->max_tokens);
  *out = (wf_stream_plan){
      .graph_bytes = plan.graph_bytes,
      .lane_bytes = plan.bytes,
      .stream_bytes = plan.slot_bytes * slots,
      .total_bytes = plan.graph_bytes + plan.bytes + plan.slot_bytes * slots * share,
      .available_bytes = plan.available,
      .pinned_bytes = plan.transfer.bytes + plan.out_bytes,
      .max_streams = fit > UINT64_MAX / workers ? UINT64_MAX : fit * workers,
      .num_gpus = num_workers,
      .num_lanes = (int32_t)plan.parts,
      .max_chunks = (int32_t)plan.chunk_size};
  return WF_OK;
}

wf_status wf__gpu_plan_streams_assumed(const wf_graph *graph, const wf_decoder_options *options,
                                       const wf_stream_shape *shape, wf_stream_plan *out,
                                       wf_error *err) {
  wf__device_limits limits = {
      .profile = {WF__SHARED_KB, WF__MAX_RANK_BITS, (int32_t)shape->num_processors},
      .available = UINT64_MAX};
  int count, sharing;
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++) limits.lanes[b] = shape->num_processors >> b;
  WF__TRY(wf__gpu_count_assumed(options, &count, &sharing, err));
  return wf__gpu_plan_streams(graph, options, shape, &limits, count, sharing, out, err);
}
