/* gpu_plan.c - the plan of gpu_plan.h: choose lanes and flights, take the largest that fits. */
#include "cuda/decoder/gpu_plan.h"

#include <stdio.h>

#include "scorer/rnn_scorer.h"

enum {
  FEW_TOKENS = 512, /* of a frame: for fewer a block, the lane's barriers cost more than the block brings (docs/gpu.md) */
  LEAST_TRACE = 8,  /* the trace gets room for at least one in so many of the tokens a frame can have */
  LEAST_NUMBER_BITS = 20, /* of a recurrent scorer's contexts, of which there are many */
  MOST_KEPT = 64,   /* words of merged histories */
  LINKS = 1024,     /* arcs of the lattice that a frame gets room for, at least LEAST_LINKS */
  LEAST_LINKS = 32,
  FEW_FLIGHTS = 6, /* at a time: of host scores four fill the GPU, two are on their way; with lattices as many again are on their way back */
  GIGA = 1000000000
};

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t round_up(uint64_t bytes) { return (bytes + 255) & ~(uint64_t)255; }
/* Entries of a trace, so that they fill blocks of 256 bytes: what a plan grows by is then known to the byte. */
static uint64_t whole_blocks(uint64_t entries) { return min_u64((entries + 31) & ~(uint64_t)31, 0xf0000000u); }
static uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

wf_status wf__gpu_check_graph(const wf_graph *graph, wf_error *err) {
  if (graph->num_arcs <= WF__LANE_MAX_ARCS) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "the graph has %llu arcs%s, the GPU search holds %u", (unsigned long long)graph->num_arcs,
                  graph->added != NULL ? " with the words added to it" : "", WF__LANE_MAX_ARCS);
}

int wf__gpu_context_bits(const wf_graph *graph) {
  int bits = 63;
  for (uint64_t states = graph->num_states; states > 0; states >>= 1) bits--; /* num_states itself fits: no key is all ones */
  return bits;
}

wf_status wf__gpu_check_scorer(const wf_graph *graph, const wf_decoder_options *options, const wf_scorer *scorer, wf_error *err) {
  wf__flat_scorer flat;
  const wf__rnn_scorer *rnn = wf__rnn_scorer_of(wf__rnn_part_of(scorer));
  const char *why_not = wf__scorer_flatten(scorer, &flat);
  if (rnn != NULL) {
    const uint32_t kept = wf__rnn_words_kept(rnn);
    flat.bits = LEAST_NUMBER_BITS;
    why_not = options->recombine != 0 ? "recurrent, with recombine=state" : options->lattice_beam > 0 ? "recurrent, with lattices" : NULL;
    if (kept != UINT32_MAX && kept > MOST_KEPT) why_not = "recurrent, with a high history_merge_order";
  }
  if (why_not != NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "device %s: this scorer (%s) works on the CPU only; leave it out, or take device cpu", options->device, why_not);
  if (options->recombine == 0 && flat.bits > wf__gpu_context_bits(graph))
    return wf__fail(err, WF_ERR_UNSUPPORTED, "device %s: the scorer's contexts take %d bits, beside the states of this graph the GPU search has %d; take recombine=state or device cpu",
                    options->device, flat.bits, wf__gpu_context_bits(graph));
  return WF_OK;
}

uint64_t wf__gpu_place_bytes(const wf_graph *graph) { return graph->classes != NULL ? round_up(graph->classes->sites.size * sizeof(wf__lane_place)) : 0; }

uint64_t wf__gpu_graph_bytes(const wf_graph *graph, const wf_decoder_options *options) {
  const uint64_t num_states = graph->view.num_states, num_arcs = graph->view.num_arcs;
  const uint64_t bytes = round_up(num_states * 16) + round_up(num_arcs * 16) + wf__gpu_place_bytes(graph);
  if (options->lattice_beam == 0) return bytes;
  return bytes + (graph->epsilon_components != NULL ? round_up(num_states * 4) : 0) + 2 * round_up((num_states + 1) * 4) + round_up(num_arcs * 4) + 256;
}

/* Tokens that a block may have in one frame beyond what the trace has room for: of a lattice the trace is pruned when they are in it. */
static uint64_t tokens_beyond(const wf_decoder_options *options, uint64_t slots) {
  return options->lattice_beam > 0 ? min_u64((uint64_t)options->max_tokens, slots) : 0;
}
/* Bytes of a token's entry in the trace and beside it. */
static uint64_t token_bytes(const wf_decoder_options *options, bool scored) {
  return 8 + (options->lattice_beam > 0 ? 8 : 0) + (scored ? 16 : 0);
}

uint64_t wf__gpu_available(const wf__gpu_facts *facts, const wf_decoder_options *options) {
  return options->gpu_memory > 0 ? min_u64(facts->available, (uint64_t)options->gpu_memory) : facts->available;
}

/* One way to do the batch; the largest that fits is taken. */
struct attempt {
  uint32_t num_flights, lanes, chunk;
};

int wf__gpu_larger_size(const wf__gpu_facts *facts, int size) {
  for (int next = size + 1; next < WF__LANE_SIZES; next++)
    if (facts->lanes[next] >= 1 && wf__gpu_lane_tokens(facts, next) > wf__gpu_lane_tokens(facts, size)) return next;
  return 0;
}

wf_status wf__gpu_check_max_tokens(const wf_decoder_options *options, wf_error *err) {
  const int most = (int)wf__lane_tokens(WF__SHARED_KB, true) << WF__MAX_RANK_BITS;
  if (options->max_tokens <= most) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "%s of %d is more than the GPU search holds: %d", options->max_tokens > options->max_active ? "max_tokens" : "max_active", options->max_tokens, most);
}

/* The least size for max_active tokens, or twice what frames of earlier batches had; an utterance with larger frames is done again in a larger lane, or, where there is none, on the CPU. */
static wf_status choose_least(const wf_graph *graph, const wf_decoder_options *options, const wf__gpu_facts *facts, bool smallest, int *out, wf_error *err) {
  uint64_t expected = facts->usual_tokens > 0 ? 2 * (uint64_t)facts->usual_tokens : (uint64_t)options->max_active;
  int size = smallest ? 0 : facts->least_size;
  if (facts->scored && size < WF__LARGE_LANE) size = WF__LARGE_LANE;
  else if (!facts->scored) expected = min_u64(expected, graph->num_states);
  while (size < WF__LANE_SIZES && facts->lanes[size] < 1) size++;
  if (size == WF__LANE_SIZES) return wf__fail(err, WF_ERR_DEVICE, "the search kernel does not fit this GPU");
  for (int next; !smallest && (uint64_t)wf__gpu_lane_tokens(facts, size) < expected && (next = wf__gpu_larger_size(facts, size)) > 0;) size = next;
  *out = size;
  return WF_OK;
}

/* More blocks a lane than it needs when there are few utterances to share the GPU and their frames are large enough. */
static wf_status choose_size(const wf_graph *graph, const wf_decoder_options *options, const wf__gpu_facts *facts, uint64_t num_utterances, wf__gpu_plan *out, uint32_t *lanes, wf_error *err) {
  int least;
  WF__TRY(choose_least(graph, options, facts, out->smallest, &least, err));
  const int one = least / WF__LARGE_LANE * WF__LARGE_LANE, most = one + WF__MAX_RANK_BITS;
  const uint64_t blocks = (uint64_t)facts->lanes[one];
  int size = least;
  while (size < most && blocks >> (size - one + 1) >= num_utterances) size++;
  while (size > least && facts->usual_tokens > 0 && facts->usual_tokens >> (size - one) < FEW_TOKENS) size--;
  while (size > least && facts->lanes[size] < 1) size--;
  out->size = size;
  out->scored = one > 0;
  out->ranks = (uint32_t)1 << (size - one);
  *lanes = (uint32_t)min_u64((uint64_t)facts->lanes[size], blocks >> (size - one));
  if (*lanes > num_utterances) *lanes = (uint32_t)num_utterances;
  if (*lanes < 1) *lanes = 1;
  return WF_OK;
}

static void add_array(wf__gpu_plan *plan, wf__array array, uint64_t bytes) {
  plan->off[array] = plan->flight_bytes;
  plan->flight_bytes += round_up(bytes);
}

static void lay_out_box(wf__gpu_plan *plan, uint64_t chunk) {
  const uint64_t sizes[WF__NUM_BOX] = {
      chunk * sizeof(wf__lane_utterance), chunk * 4, 16, chunk * 8, chunk * sizeof(wf__lane_outcome), chunk * 4, (chunk + 1) * 8};
  plan->box_bytes = 0;
  for (int i = 0; i < WF__NUM_BOX; i++) {
    plan->box_off[i] = plan->box_bytes;
    plan->box_bytes += round_up(sizes[i]);
  }
}

/* Pages for the lattices of a flight, `links` arcs a frame on average; the last page of each warp is seldom full. */
static uint64_t count_pages(uint64_t frames, uint64_t chunk, uint64_t links) {
  return ceil_div(frames * links, WF__LANE_PAGE - 32) + chunk * (WF__BACK_THREADS / 32);
}

/* Sizes of everything if the trace has `trace` entries a block, and lattices `links` arcs a frame. */
static void lay_out(wf__gpu_plan *plan, const wf_graph *graph, const wf_decoder_options *options, const wf_batch_shape *shape,
                    const wf__gpu_facts *facts, const struct attempt *attempt, uint64_t trace, uint64_t links) {
  const uint64_t parts = (uint64_t)attempt->lanes * plan->ranks, frames = (uint64_t)shape->max_frames, chunk = attempt->chunk,
                 num_flights = attempt->num_flights, block_slots = wf__lane_slots(facts->profile.shared_kb, plan->scored);
  const uint64_t chunk_frames = min_u64(chunk * frames, (uint64_t)shape->sum_frames);
  plan->num_flights = attempt->num_flights;
  plan->lanes = attempt->lanes;
  plan->chunk = attempt->chunk;
  plan->trace_cap = (uint32_t)trace;
  plan->trace_room = (uint32_t)(trace - tokens_beyond(options, block_slots));
  plan->frames_cap = (uint32_t)frames;
  plan->path_cap = (uint32_t)min_u64(frames * 4 + 4096, UINT32_MAX);
  plan->steps_cap = chunk_frames * 2 + chunk * 256;
  plan->flight_bytes = 0;
  lay_out_box(plan, chunk);
  const uint64_t slots = parts * block_slots;
  add_array(plan, WF__ARRAY_COSTS, slots * 4);
  add_array(plan, WF__ARRAY_AGENDA, slots * 16);
  add_array(plan, WF__ARRAY_WORD_LOG, plan->scored ? parts * WF__LANE_WORD_LOG * sizeof(wf__lane_logged) : 0);
  add_array(plan, WF__ARRAY_LISTED, plan->scored ? parts * WF__LANE_LISTED_BYTES : 0);
  add_array(plan, WF__ARRAY_ENTRIES, plan->scored ? slots * 16 : 0);
  add_array(plan, WF__ARRAY_SOURCES, plan->scored ? slots * 8 : 0);
  add_array(plan, WF__ARRAY_ASKED, plan->scored ? parts * WF__LANE_ASKED * sizeof(wf__lane_asked) : 0);
  add_array(plan, WF__ARRAY_MEMO, plan->scored ? parts * sizeof(uint64_t) * 2 << WF__LANE_MEMO_BITS : 0);
  const uint64_t lanes = plan->flight_bytes;
  add_array(plan, WF__ARRAY_TRACE, parts * trace * 8);
  add_array(plan, WF__ARRAY_CONTEXTS, plan->scored ? parts * trace * 16 : 0);
  add_array(plan, WF__ARRAY_FRAME_OFF, parts * (frames + 2) * 4);
  add_array(plan, WF__ARRAY_INDEX, parts * (frames + 1) * WF__LANE_INDEX * 2);
  const bool lattices = options->lattice_beam > 0;
  add_array(plan, WF__ARRAY_PAST, lattices ? parts * trace * 8 : 0);
  add_array(plan, WF__ARRAY_RECORDS, lattices ? attempt->lanes * (frames + 1) * sizeof(wf__lane_frame) : 0);
  const uint64_t traced = plan->flight_bytes;
  add_array(plan, WF__ARRAY_PATH_SCRATCH, (uint64_t)attempt->lanes * plan->path_cap * sizeof(wf__lane_step));
  add_array(plan, WF__ARRAY_STEPS, plan->steps_cap * sizeof(wf__lane_step));
  plan->pages_cap = lattices ? (uint32_t)min_u64(count_pages(chunk_frames, chunk, links), UINT32_MAX - 1) : 0;
  add_array(plan, WF__ARRAY_PAGES, (uint64_t)plan->pages_cap * WF__LANE_PAGE * sizeof(wf__lane_link));
  add_array(plan, WF__ARRAY_PAGE_CONTEXTS, plan->scored ? (uint64_t)plan->pages_cap * WF__LANE_PAGE * sizeof(uint64_t) : 0);
  add_array(plan, WF__ARRAY_BOX, plan->box_bytes);
  const uint64_t results = plan->flight_bytes;
  const uint64_t row = (uint64_t)graph->min_columns * wf__dtype_bytes(shape->dtype), most = (uint64_t)1 << 56; /* more than any GPU has */
  if (!shape->on_device) add_array(plan, WF__ARRAY_SCORES, (row > 0 && chunk_frames > most / row ? most : chunk_frames * row) + chunk * 256);
  plan->window_bytes = min_u64(plan->flight_bytes - results, WF__WINDOW_BYTES);
  wf_plan *bytes = &plan->bytes;
  bytes->graph_bytes = wf__gpu_graph_bytes(graph, options) + facts->scorer_bytes;
  bytes->lane_bytes = lanes * num_flights;
  bytes->trace_bytes = (traced - lanes) * num_flights;
  bytes->result_bytes = (results - traced) * num_flights;
  bytes->score_bytes = (plan->flight_bytes - results) * num_flights;
  bytes->total_bytes = bytes->graph_bytes + plan->flight_bytes * num_flights;
  const uint64_t landing = round_up(plan->steps_cap * sizeof(wf__lane_step)) + (uint64_t)plan->pages_cap * WF__LANE_PAGE * sizeof(wf__lane_link);
  plan->landing_bytes = lattices ? min_u64(round_up(landing), WF__LANDING_BYTES) : 0;
  bytes->pinned_bytes = plan->window_bytes * 2 + plan->box_bytes * num_flights + plan->landing_bytes * WF__LANDINGS;
  bytes->lane_blocks = (int32_t)plan->ranks;
  bytes->num_lanes = (int32_t)(attempt->lanes * num_flights);
}

/* Next smaller attempt; false if there is none. */
static bool shrink(struct attempt *attempt, bool lanes_wait) {
  if (attempt->num_flights > 2) {
    attempt->num_flights = attempt->num_flights > FEW_FLIGHTS ? FEW_FLIGHTS : 2;
  } else if (attempt->lanes > 1) {
    attempt->lanes = (attempt->lanes + 1) / 2;
    if (!lanes_wait) attempt->chunk = attempt->lanes;
  } else if (attempt->num_flights > 1) {
    attempt->num_flights = 1;
  } else {
    return false;
  }
  return true;
}

/* What to lower is what takes most of the smallest plan. */
static wf_status fail_for_lack(const wf_decoder_options *options, const wf_batch_shape *shape, const wf_plan *need, wf_error *err) {
  char advice[160];
  const bool active = options->max_tokens == options->max_active;
  const uint64_t tokens = need->lane_bytes + need->trace_bytes, scores = need->score_bytes + need->result_bytes;
  if (need->graph_bytes >= need->available_bytes || (need->graph_bytes > tokens && need->graph_bytes > scores))
    snprintf(advice, sizeof advice, "the graph takes most of it");
  else if (tokens >= scores)
    snprintf(advice, sizeof advice, "lower %s (%d) or decode shorter utterances (%lld frames)", active ? "max_active" : "max_tokens", options->max_tokens,
             (long long)shape->max_frames);
  else
    snprintf(advice, sizeof advice, "lower the batch (%zu utterances) or decode shorter utterances (%lld frames)", shape->num_utterances,
             (long long)shape->max_frames);
  return wf__fail(
      err, WF_ERR_MEMORY,
      "the GPU has %llu bytes for this batch (gpu_memory or what is free), at least %llu are needed (%.3f GB: graph %.3f, tokens and their history %.3f, "
      "scores and results %.3f): %s",
      (unsigned long long)need->available_bytes, (unsigned long long)need->total_bytes, (double)need->total_bytes / GIGA, (double)need->graph_bytes / GIGA,
      (double)tokens / GIGA, (double)scores / GIGA, advice);
}

static wf_status make(const wf_graph *graph, const wf_decoder_options *options, const wf_batch_shape *given, const wf__gpu_facts *facts, int num_workers, int num_sharing, bool smallest,
                      wf__gpu_plan *out, wf_error *err) {
  *out = (wf__gpu_plan){.smallest = smallest};
  WF__TRY(wf__gpu_check_graph(graph, err));
  WF__TRY(wf__gpu_check_max_tokens(options, err));
  wf_batch_shape shape = *given;
  if (shape.num_utterances < 1) shape.num_utterances = 1;
  if (shape.sum_frames == 0 || (uint64_t)shape.sum_frames > shape.num_utterances * (uint64_t)shape.max_frames)
    shape.sum_frames = (int64_t)shape.num_utterances * shape.max_frames;
  if (shape.sum_frames >> 48 != 0) return wf__fail(err, WF_ERR_LIMIT, "a batch of %lld frames", (long long)shape.sum_frames);
  /* Scores in device memory may all lie on one GPU; others go to whoever is free. */
  const uint64_t share = ceil_div(shape.num_utterances, (uint64_t)(shape.on_device ? num_sharing : num_workers));
  uint32_t lanes;
  WF__TRY(choose_size(graph, options, facts, share, out, &lanes, err));
  struct attempt attempt = {.num_flights = 1, .lanes = lanes, .chunk = (uint32_t)share};
  const bool lattices = options->lattice_beam > 0;
  if ((!shape.on_device || lattices) && !facts->asks) { /* the host makes lattices of one flight while others are searched */
    attempt.chunk = attempt.lanes = (uint32_t)ceil_div(lanes, 4); /* four flights fill the GPU, others are on their way */
    attempt.num_flights = (uint32_t)min_u64(lattices ? WF__MAX_FLIGHTS : FEW_FLIGHTS, ceil_div(shape.num_utterances, attempt.chunk));
  }
  const uint64_t more = tokens_beyond(options, wf__lane_slots(facts->profile.shared_kb, out->scored)), entry = token_bytes(options, out->scored);
  const uint64_t every = ((uint64_t)shape.max_frames + 1) * ((uint64_t)options->max_tokens * 9 / 8 / out->ranks + 64), full = whole_blocks(every + more);
  const uint64_t least = whole_blocks(whole_blocks(every) / LEAST_TRACE + 64 + more), all = wf__gpu_available(facts, options);
  const uint64_t available = all == UINT64_MAX ? all : all / (uint64_t)num_sharing;
  out->bytes.available_bytes = available;
  out->bytes.num_gpus = num_workers;
  for (;;) {
    lay_out(out, graph, options, &shape, facts, &attempt, least, LEAST_LINKS);
    if (out->bytes.total_bytes <= available) break;
    if (!shrink(&attempt, shape.on_device && !lattices)) return fail_for_lack(options, &shape, &out->bytes, err);
  }
  /* The trace grows into what is left; not into all that happens to be free, though, which others may need. */
  uint64_t room = available - out->bytes.total_bytes, parts = (uint64_t)attempt.lanes * out->ranks * attempt.num_flights;
  if (options->gpu_memory == 0 && available != UINT64_MAX) room = min_u64(room, available / 2);
  const uint64_t least_bytes = out->bytes.total_bytes;
  uint64_t links = lattices ? LINKS : LEAST_LINKS, more_pages;
  for (;; links /= 2) { /* pages take half of it at most, unless there is room for all */
    lay_out(out, graph, options, &shape, facts, &attempt, least, links);
    more_pages = out->bytes.total_bytes - least_bytes;
    if (links == LEAST_LINKS || more_pages <= room / 2 || more_pages + (full - least) * entry * parts <= room) break;
  }
  room -= more_pages;
  lay_out(out, graph, options, &shape, facts, &attempt, least + min_u64(room / entry / parts & ~(uint64_t)31, full - least), links);
  return WF_OK;
}

wf_status wf__gpu_plan_make(const wf_graph *graph, const wf_decoder_options *options, const wf_batch_shape *shape, const wf__gpu_facts *facts, int num_workers, int num_sharing,
                            wf__gpu_plan *out, wf_error *err) {
  const wf_status status = make(graph, options, shape, facts, num_workers, num_sharing, false, out, err);
  return status == WF_ERR_MEMORY ? make(graph, options, shape, facts, num_workers, num_sharing, true, out, err) : status; /* what a small lane has no room for goes to the CPU */
}

wf_status wf__gpu_count_assumed(const wf_decoder_options *options, int *count, int *sharing, wf_error *err) {
  wf__devices devices;
  WF__TRY(wf__devices_parse(options->device, &devices, err));
  *sharing = 1;
  *count = devices.count > 0 ? devices.count : 1;
  for (int i = 0; i < devices.count; i++)
    if (wf__devices_sharing(&devices, devices.numbers[i]) > *sharing) *sharing = wf__devices_sharing(&devices, devices.numbers[i]);
  return WF_OK;
}

wf_status wf__gpu_plan_assumed(const wf_graph *graph, const wf_decoder_options *options, const wf_batch_shape *shape, wf_plan *out, wf_error *err) {
  wf__gpu_plan plan;
  wf__gpu_facts facts = {.profile = {WF__SHARED_KB, WF__MAX_RANK_BITS, (int32_t)shape->num_processors}, .available = UINT64_MAX};
  int count, sharing;
  for (int size = 0; size < WF__LANE_SIZES; size++) facts.lanes[size] = shape->num_processors >> size % WF__LARGE_LANE;
  WF__TRY(wf__gpu_count_assumed(options, &count, &sharing, err));
  WF__TRY(wf__gpu_plan_make(graph, options, shape, &facts, count, sharing, &plan, err));
  *out = plan.bytes;
  return WF_OK;
}
