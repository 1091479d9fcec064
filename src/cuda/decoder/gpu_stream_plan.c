/* gpu_stream_plan.c - the plan of gpu_stream_plan.h: as many blocks as run at once, half as many again and again if they do not fit; the rest is for streams. */
#include "cuda/decoder/gpu_stream_plan.h"

static uint64_t round_up(uint64_t bytes) { return (bytes + 255) & ~(uint64_t)255; }
static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void lay_out_box(wf__stream_plan *plan) {
  const uint64_t chunk = plan->chunk;
  const uint64_t sizes[WF__NUM_STREAM_BOX] = {chunk * sizeof(wf__lane_utterance), chunk * sizeof(wf__lane_chunk), chunk * sizeof(uint32_t), 24, plan->window_bytes};
  plan->box_bytes = 0;
  for (int i = 0; i < WF__NUM_STREAM_BOX; i++) {
    plan->box_off[i] = plan->box_bytes;
    plan->box_bytes += round_up(sizes[i]);
  }
}

static void lay_out_out(wf__stream_plan *plan, bool scored, bool lattices) {
  const uint64_t sizes[WF__NUM_STREAM_OUT] = {plan->chunk * sizeof(wf__lane_advance), plan->ancestors_cap * sizeof(wf__lane_ancestor),
                                              scored && lattices ? plan->ancestors_cap * sizeof(uint64_t) : 0, plan->links_cap * sizeof(wf__lane_chunk_link)};
  plan->out_bytes = 0;
  for (int i = 0; i < WF__NUM_STREAM_OUT; i++) {
    plan->out_off[i] = plan->out_bytes;
    plan->out_bytes += round_up(sizes[i]);
  }
}

static void lay_out(wf__stream_plan *plan, const wf_graph *graph, const wf_decoder_options *options, uint32_t parts, uint64_t slots, bool scored) {
  const uint64_t tokens = (uint64_t)options->max_tokens, cap = plan->trace_cap, frames = WF__STREAM_FRAMES;
  const uint64_t chunk_bytes = round_up(frames * (uint64_t)graph->min_columns * sizeof(float));
  plan->parts = parts;
  plan->chunk = parts * WF__STREAM_CHUNKS;
  plan->window_bytes = max_u64(chunk_bytes, min_u64(plan->chunk * chunk_bytes, WF__STREAM_WINDOW_BYTES));
  const bool lattices = options->lattice_beam > 0;
  plan->ancestors_cap = max_u64((frames + 1) * tokens, (uint64_t)plan->chunk * WF__STREAM_ANCESTORS);
  plan->links_cap = lattices ? (uint64_t)plan->chunk * WF__STREAM_ARCS : 0;
  lay_out_box(plan);
  lay_out_out(plan, scored, lattices);
  const uint64_t sizes[WF__NUM_STREAM_ARRAYS] = {
      slots * 4, slots * 16, cap * 8, cap * 8, (frames + 2) * 4, (frames + 1) * WF__LANE_INDEX * 2, (frames + 2) * 4, (frames + 2) * 4,
      scored ? cap * 16 : 0, scored ? WF__LANE_WORD_LOG * sizeof(wf__lane_logged) : 0, scored ? WF__LANE_LISTED_BYTES : 0, scored ? slots * 16 : 0, scored ? slots * 8 : 0,
      scored ? WF__LANE_ASKED * sizeof(wf__lane_asked) : 0, scored ? sizeof(uint64_t) * 2 << WF__LANE_MEMO_BITS : 0, lattices ? cap * 8 : 0, lattices ? (frames + 1) * sizeof(wf__lane_frame) : 0};
  plan->bytes = 0;
  for (int i = 0; i < WF__NUM_STREAM_ARRAYS; i++) {
    plan->off[i] = plan->bytes;
    plan->bytes += round_up(i == WF__STREAM_BOX ? plan->box_bytes : sizes[i] * parts);
  }
  plan->slot_bytes = round_up(tokens * sizeof(wf__lane_token));
}

wf_status wf__stream_plan_make(const wf_graph *graph, const wf_decoder_options *options, const wf__gpu_facts *facts, int num_sharing, bool scored, wf__stream_plan *out,
                               wf_error *err) {
  const uint64_t all = wf__gpu_available(facts, options), available = all == UINT64_MAX ? all : all / (uint64_t)num_sharing;
  *out = (wf__stream_plan){0};
  const uint64_t graph_bytes = out->graph_bytes = wf__gpu_graph_bytes(graph, options) + round_up(graph->view.num_arcs * sizeof(uint32_t));
  out->available = available;
  WF__TRY(wf__gpu_check_graph(graph, err));
  const uint64_t slots = wf__lane_slots(facts->profile.shared_kb, scored);
  WF__TRY(wf__gpu_check_max_tokens(options, err));
  /* A block has all tokens of a frame at most, or as many as its table. */
  out->trace_cap = (uint32_t)((WF__STREAM_FRAMES + 1) * min_u64((uint64_t)options->max_tokens, slots) + 31) & ~31u;
  for (uint32_t parts = (uint32_t)facts->lanes[0];; parts = (parts + 1) / 2) {
    lay_out(out, graph, options, parts, slots, scored);
    const uint64_t bytes = graph_bytes + out->bytes;
    if (bytes + out->slot_bytes <= available) {
      out->max_slots = (available - bytes) / out->slot_bytes;
      return WF_OK;
    }
    if (parts <= 1u << WF__MAX_RANK_BITS)
      return wf__fail(err, WF_ERR_MEMORY, "the GPU has %llu bytes for streams (gpu_memory or what is free), at least %llu are needed: %s (%d)", (unsigned long long)available,
                      (unsigned long long)(bytes + out->slot_bytes), graph_bytes >= available ? "the graph takes most of it; or lower max_tokens" : "lower max_tokens", options->max_tokens);
  }
}

/* --- for those who ask ------------------------------------------------------------------------------------------------------ */

wf_status wf__gpu_plan_streams(const wf_graph *graph, const wf_decoder_options *options, const wf_stream_shape *shape, const wf__gpu_facts *facts, int num_workers, int num_sharing,
                               wf_stream_plan *out, wf_error *err) {
  wf__stream_plan plan;
  WF__TRY(wf__stream_plan_make(graph, options, facts, num_sharing, shape->scored, &plan, err));
  const uint64_t slots = shape->scored ? 2 : 1, workers = (uint64_t)num_workers, share = (shape->num_streams + workers - 1) / workers;
  const uint64_t fit = plan.max_slots / slots;
  if (share > fit)
    return wf__fail(err, WF_ERR_MEMORY, "%zu streams of %llu bytes do not fit: the GPU has %llu bytes (gpu_memory or what is free), graph and lanes take %llu, %llu streams fit: lower max_tokens (%d)",
                    shape->num_streams, (unsigned long long)(plan.slot_bytes * slots), (unsigned long long)plan.available, (unsigned long long)(plan.graph_bytes + plan.bytes),
                    (unsigned long long)(fit * workers), options->max_tokens);
  *out = (wf_stream_plan){.graph_bytes = plan.graph_bytes,
                          .lane_bytes = plan.bytes,
                          .stream_bytes = plan.slot_bytes * slots,
                          .total_bytes = plan.graph_bytes + plan.bytes + plan.slot_bytes * slots * share,
                          .available_bytes = plan.available,
                          .pinned_bytes = plan.box_bytes + plan.out_bytes,
                          .max_streams = fit > UINT64_MAX / workers ? UINT64_MAX : fit * workers,
                          .num_gpus = num_workers,
                          .num_lanes = (int32_t)plan.parts,
                          .max_chunks = (int32_t)plan.chunk};
  return WF_OK;
}

wf_status wf__gpu_plan_streams_assumed(const wf_graph *graph, const wf_decoder_options *options, const wf_stream_shape *shape, wf_stream_plan *out, wf_error *err) {
  wf__gpu_facts facts = {.profile = {WF__SHARED_KB, WF__MAX_RANK_BITS, (int32_t)shape->num_processors}, .available = UINT64_MAX};
  int count, sharing;
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++) facts.lanes[b] = shape->num_processors >> b;
  WF__TRY(wf__gpu_count_assumed(options, &count, &sharing, err));
  return wf__gpu_plan_streams(graph, options, shape, &facts, count, sharing, out, err);
}
