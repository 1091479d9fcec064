/* gpu_plan.c - the plan of gpu_plan.h: chooses lanes and chunks, the largest that fit. */
#include "plan/gpu_plan.h"

#include <stdio.h>

#include "cuda/device/gpu_profile.h"
#include "scorer/rnn_scorer.h"

enum {
  FEW_TOKENS = 512, /* tokens of a frame for each block: with fewer, the lane's barriers cost more
                       than another block gains (docs/engineering/gpu.md) */
  LEAST_TRACE = 8,  /* the trace has room for at least 1/8 of the tokens that a frame can have */
  LEAST_NUMBER_BITS = 20, /* bits for a recurrent scorer's contexts, of which there are many */
  MOST_KEPT = 64,         /* words of merged histories */
  LINKS = 1024,           /* arcs of the lattice that a frame gets room for, at least LEAST_LINKS */
  LEAST_LINKS = 32,
  FEW_CHUNKS = 6, /* chunks in flight: with scores in host memory, four fill the GPU and two are
                     being copied; with lattices, as many again are being read back */
  GIGA = 1000000000
};

/* Time that a lane of 2^bits blocks takes for a frame, compared with others
 * (docs/engineering/gpu.md). */
static const int64_t frame_time[WF__MAX_RANK_BITS + 1] = {100, 94, 70, 52};

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
/* Entries of a trace, rounded to blocks of 256 bytes, so that the growth of a plan is known to
 * the byte. */
static uint64_t whole_blocks(uint64_t entries) {
  return min_u64((entries + 31) & ~(uint64_t)31, 0xf0000000u);
}
static uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

wf_status wf__gpu_check_graph(const wf_graph *graph, wf_error *err) {
  if (graph->num_arcs <= WF__LANE_MAX_ARCS) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "the graph has %llu arcs%s, the GPU search holds %u",
                  (unsigned long long)graph->num_arcs,
                  graph->added != NULL ? " with the words added to it" : "", WF__LANE_MAX_ARCS);
}

int wf__gpu_context_bits(const wf_graph *graph) {
  int bits = 63;
  for (uint64_t states = graph->num_states; states > 0; states >>= 1)
    bits--; /* num_states itself fits: no key is all ones */
  return bits;
}

wf_status wf__gpu_check_scorer(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_scorer *scorer, wf_error *err) {
  wf__flat_scorer flat;
  const wf__rnn_scorer *rnn = wf__rnn_scorer_of(wf__rnn_part_of(scorer));
  const char *why_not = wf__scorer_flatten(scorer, &flat);
  if (rnn != NULL) {
    const uint32_t kept = wf__rnn_words_kept(rnn);
    flat.bits = LEAST_NUMBER_BITS;
    why_not = options->recombine == WF_RECOMBINE_STATE ? "recurrent, with recombine=state"
              : options->lattice_beam > 0              ? "recurrent, with lattices"
                                                       : NULL;
    if (kept != UINT32_MAX && kept > MOST_KEPT)
      why_not = "recurrent, with a high history_merge_order";
  }
  if (why_not != NULL)
    return wf__fail(
        err, WF_ERR_UNSUPPORTED,
        "device %s: this scorer (%s) works on the CPU only; leave it out, or take device cpu",
        options->device, why_not);
  if (options->recombine == WF_RECOMBINE_PAIR && flat.bits > wf__gpu_context_bits(graph))
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "device %s: the scorer's contexts take %d bits, beside the states of this "
                    "graph the GPU search has %d; take recombine=state or device cpu",
                    options->device, flat.bits, wf__gpu_context_bits(graph));
  return WF_OK;
}

uint64_t wf__gpu_place_bytes(const wf_graph *graph) {
  const wf__classes *classes = graph->classes;
  return classes != NULL
             ? wf__round_up_256(classes->sites.size * sizeof(wf__lane_place) +
                                classes->num_arcs * (sizeof(wf__lane_place) + sizeof(uint32_t)))
             : 0;
}

bool wf__gpu_shares_arcs(const wf_graph *graph) {
  return graph->num_wide_arcs > 0 && graph->columns_follow;
}
uint64_t wf__gpu_listed_columns(const wf_graph *graph) {
  return wf__gpu_shares_arcs(graph) ? (uint64_t)graph->min_columns : 0;
}
uint64_t wf__gpu_explicit_arcs(const wf_graph *graph) {
  return wf__gpu_shares_arcs(graph) ? graph->ctc->first_wide_arc : graph->first_added_arc;
}

uint64_t wf__gpu_graph_bytes(const wf_graph *graph, const wf_decoder_options *options) {
  const bool shares = wf__gpu_shares_arcs(graph);
  const uint64_t num_states = graph->first_added_state, num_explicit = wf__gpu_explicit_arcs(graph),
                 num_arcs =
                     num_explicit + (shares ? graph->num_wide_arcs + graph->num_wide_others : 0),
                 num_wide = shares ? num_states - graph->ctc->first_wide : 0;
  const uint64_t bytes = wf__round_up_256(num_states * 16) + wf__round_up_256(num_arcs * 16) +
                         wf__round_up_256(num_wide * sizeof(wf__lane_wide)) +
                         wf__round_up_256((uint64_t)graph->num_labels * sizeof(int32_t)) +
                         wf__gpu_place_bytes(graph);
  if (options->lattice_beam == 0) return bytes;
  return bytes + (graph->epsilon_components != NULL ? wf__round_up_256(num_states * 4) : 0) +
         (shares ? wf__round_up_256(num_states * 4) : 0) +
         2 * wf__round_up_256((num_states + 1) * 4) + wf__round_up_256(num_explicit * 4) + 256;
}

/* Tokens of one frame that a block may have beyond the trace's limit: with lattices the trace is
 * pruned after they are added. */
static uint64_t tokens_beyond(const wf_decoder_options *options, uint64_t slots) {
  return options->lattice_beam > 0 ? min_u64((uint64_t)options->max_tokens, slots) : 0;
}
uint64_t wf__gpu_available(const wf__device_limits *limits, const wf_decoder_options *options) {
  return options->gpu_memory > 0 ? min_u64(limits->available, (uint64_t)options->gpu_memory)
                                 : limits->available;
}

/* A candidate plan; the largest that fits is taken. */
struct attempt {
  uint32_t num_chunks, lanes, chunk_size;
};

int wf__gpu_larger_size(const wf__device_limits *limits, int size) {
  for (int next = size + 1; next < WF__LANE_SIZES; next++)
    if (limits->lanes[next] >= 1 &&
        wf__gpu_lane_tokens(limits, next) > wf__gpu_lane_tokens(limits, size))
      return next;
  return 0;
}

int wf__gpu_next_size(const wf__gpu_plan *plan, const wf__device_limits *limits) {
  const int least = plan->size - (plan->least_ranks < plan->ranks);
  return plan->smallest ? 0 : wf__gpu_larger_size(limits, least);
}

wf_status wf__gpu_check_max_tokens(const wf_decoder_options *options, wf_error *err) {
  const int most = (int)wf__lane_tokens(WF__SHARED_KB, true) << WF__MAX_RANK_BITS;
  if (options->max_tokens <= most) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "%s of %d is more than the GPU search holds: %d",
                  options->max_tokens > options->max_active ? "max_tokens" : "max_active",
                  options->max_tokens, most);
}

uint64_t wf__gpu_expected_tokens(const wf_decoder_options *options, uint32_t usual_tokens) {
  return usual_tokens > 0 ? 2 * (uint64_t)usual_tokens : (uint64_t)options->max_active;
}

int wf__gpu_spread_lanes(int least, uint64_t blocks, uint64_t num_utterances,
                         uint64_t usual_tokens) {
  int bits = least;
  while (bits < WF__MAX_RANK_BITS && blocks >> (bits + 1) >= num_utterances &&
         (usual_tokens == 0 || usual_tokens >> (bits + 1) >= FEW_TOKENS))
    bits++;
  return bits;
}

/* The least size for max_active tokens, or twice what frames of earlier batches had; an
 * utterance with larger frames is decoded again in a larger lane or, if there is none, on the
 * CPU. */
static wf_status choose_least(const wf_graph *graph, const wf_decoder_options *options,
                              const wf__device_limits *limits, bool smallest, int *out,
                              wf_error *err) {
  uint64_t expected = wf__gpu_expected_tokens(options, limits->usual_tokens);
  int size = smallest ? 0 : limits->least_size;
  if (limits->scored && size < WF__LARGE_LANE)
    size = WF__LARGE_LANE;
  else if (!limits->scored && !limits->boosted)
    expected = min_u64(expected, graph->num_states);
  while (size < WF__LANE_SIZES && limits->lanes[size] < 1) size++;
  if (size == WF__LANE_SIZES)
    return wf__fail(err, WF_ERR_DEVICE, "the search kernel does not fit this GPU");
  for (int next; !smallest && (uint64_t)wf__gpu_lane_tokens(limits, size) < expected &&
                 (next = wf__gpu_larger_size(limits, size)) > 0;)
    size = next;
  *out = size;
  return WF_OK;
}

/* More blocks a lane than it needs when there are few utterances to share the GPU and their frames
 * are large enough. */
static wf_status choose_size(const wf_graph *graph, const wf_decoder_options *options,
                             const wf__device_limits *limits, uint64_t num_utterances,
                             wf__gpu_plan *out, int *out_least, uint32_t *lanes, wf_error *err) {
  WF__TRY(choose_least(graph, options, limits, out->smallest, out_least, err));
  const int least = *out_least, one = least / WF__LARGE_LANE * WF__LARGE_LANE;
  const uint64_t blocks = (uint64_t)limits->lanes[one];
  int size = one + wf__gpu_spread_lanes(least - one, blocks, num_utterances, limits->usual_tokens);
  while (size > least && limits->lanes[size] < 1) size--;
  out->size = size;
  out->scored = one > 0;
  out->ranks = (uint32_t)1 << (size - one);
  *lanes = (uint32_t)min_u64((uint64_t)limits->lanes[size], blocks >> (size - one));
  if (*lanes > num_utterances) *lanes = (uint32_t)num_utterances;
  if (*lanes < 1) *lanes = 1;
  out->least_ranks = out->most_ranks = out->ranks;
  out->parts = *lanes * out->ranks;
  return WF_OK;
}

/* If every utterance has a lane of the size that was chosen, the search of the longest ends last,
 * while blocks of other lanes have nothing to do. Then lanes of several sizes share the blocks. */
static void choose_sizes(const wf__device_limits *limits, uint64_t num_utterances, int least,
                         uint32_t lanes, wf__gpu_plan *out) {
  const int one = least / WF__LARGE_LANE * WF__LARGE_LANE;
  const int most = wf__gpu_spread_lanes(out->size - one, UINT64_MAX, 1, limits->usual_tokens);
  if (num_utterances == 1 || lanes < num_utterances || most == out->size - one) return;
  if (out->size > least) out->least_ranks = out->ranks / 2;
  out->most_ranks = 1u << most;
  out->parts = (uint32_t)min_u64((uint64_t)limits->lanes[one], num_utterances << most);
}

/* Do these lanes, counted by bits of their size, run at once? Clusters need blocks that are near
 * each other, in parts of the GPU that no lane shares. So lanes count together with larger ones,
 * each of which takes the room of several. */
static bool run_at_once(const wf__gpu_plan *plan, const wf__device_limits *limits,
                        const uint32_t *lanes) {
  const int one = plan->scored ? WF__LARGE_LANE : 0;
  uint64_t blocks = 0;
  for (int bits = WF__MAX_RANK_BITS; bits >= 0; bits--) {
    blocks += (uint64_t)lanes[bits] << bits;
    if (lanes[bits] > 0 && blocks >> bits > (uint64_t)limits->lanes[one + bits]) return false;
  }
  return blocks <= plan->parts;
}

int wf__gpu_group_lanes(const wf__gpu_plan *plan, const wf__device_limits *limits,
                        const wf__lane_utterance *utterances, uint32_t count,
                        wf__lane_group out[WF__MAX_RANK_BITS + 1]) {
  uint32_t lanes[WF__MAX_RANK_BITS + 1] = {0};
  int least = 0, num_groups = 0;
  while (1u << least < plan->least_ranks) least++;
  lanes[least] = count;
  for (;;) { /* the utterance that ends last gets a larger lane, as long as there is room */
    int64_t last = 0;
    int of_last = WF__MAX_RANK_BITS;
    uint32_t first = 0; /* the longest utterance of the lanes of a size */
    for (int bits = WF__MAX_RANK_BITS; bits >= least; first += lanes[bits--]) {
      if (lanes[bits] == 0) continue;
      const int64_t time = (int64_t)utterances[first].num_frames * frame_time[bits];
      if (time > last) {
        last = time;
        of_last = bits;
      }
    }
    if (1u << of_last >= plan->most_ranks) break;
    lanes[of_last]--;
    lanes[of_last + 1]++;
    if (run_at_once(plan, limits, lanes)) continue;
    lanes[of_last]++;
    lanes[of_last + 1]--;
    break;
  }
  for (int bits = WF__MAX_RANK_BITS; bits >= 0; bits--)
    if (lanes[bits] > 0) out[num_groups++] = (wf__lane_group){lanes[bits], 1u << bits};
  return num_groups;
}

static void add_array(wf__gpu_plan *plan, wf__batch_array array, uint64_t bytes) {
  plan->off[array] = plan->chunk_bytes;
  plan->chunk_bytes += wf__round_up_256(bytes);
}

/* Pages for the lattices of a chunk, `links` arcs a frame on average; the last page of each warp is
 * seldom full. */
static uint64_t count_pages(uint64_t frames, uint64_t chunk_size, uint64_t links) {
  return ceil_div(frames * links, WF__LANE_PAGE - 32) + chunk_size * (WF__BACKWARD_THREADS / 32);
}

/* Computes all sizes. The trace has `trace` entries a block, lattices have `links` arcs a frame. */
static void lay_out(wf__gpu_plan *plan, const wf_graph *graph, const wf_decoder_options *options,
                    const wf_batch_shape *shape, const wf__device_limits *limits,
                    const struct attempt *attempt, uint64_t trace, uint64_t links) {
  if (plan->most_ranks == plan->ranks) plan->parts = attempt->lanes * plan->ranks;
  const uint64_t parts = plan->parts, frames = (uint64_t)shape->max_frames,
                 chunk_size = attempt->chunk_size, num_chunks = attempt->num_chunks,
                 block_slots = wf__lane_slots(limits->profile.shared_kb, plan->scored);
  const uint64_t chunk_frames = min_u64(chunk_size * frames, (uint64_t)shape->sum_frames);
  plan->num_chunks = attempt->num_chunks;
  plan->lanes = attempt->lanes;
  plan->chunk_size = attempt->chunk_size;
  plan->path_cap = (uint32_t)min_u64(frames * 4 + 4096, UINT32_MAX);
  plan->steps_cap = chunk_frames * 2 + chunk_size * 256;
  plan->chunk_bytes = 0;
  const bool lattices = options->lattice_beam > 0;
  const wf__lane_shape lane_shape = {.parts = parts,
                                     .lanes = attempt->lanes,
                                     .slots = block_slots,
                                     .columns = wf__gpu_listed_columns(graph),
                                     .trace_cap = trace,
                                     .trace_room = trace - tokens_beyond(options, block_slots),
                                     .frames_cap = frames,
                                     .scored = plan->scored,
                                     .lattices = lattices};
  wf__lane_memory_plan(&lane_shape, &plan->lane_memory);
  wf__transfer_plan_batch(plan->chunk_size, &plan->transfer);
  add_array(plan, WF__BATCH_LANES, plan->lane_memory.bytes);
  add_array(plan, WF__BATCH_PATH_SCRATCH,
            (uint64_t)attempt->lanes * plan->path_cap * sizeof(wf__lane_step));
  add_array(plan, WF__BATCH_STEPS, plan->steps_cap * sizeof(wf__lane_step));
  plan->pages_cap =
      lattices ? (uint32_t)min_u64(count_pages(chunk_frames, chunk_size, links), UINT32_MAX - 1)
               : 0;
  add_array(plan, WF__BATCH_PAGES,
            (uint64_t)plan->pages_cap * WF__LANE_PAGE * sizeof(wf__lane_link));
  add_array(plan, WF__BATCH_PAGE_CONTEXTS,
            plan->scored ? (uint64_t)plan->pages_cap * WF__LANE_PAGE * sizeof(uint64_t) : 0);
  add_array(plan, WF__BATCH_TRANSFER, plan->transfer.bytes);
  const uint64_t results = plan->chunk_bytes;
  const uint64_t row = (uint64_t)graph->min_columns * wf__dtype_bytes(shape->dtype),
                 most = (uint64_t)1 << 56; /* more than any GPU has */
  if (!shape->on_device)
    add_array(
        plan, WF__BATCH_SCORES,
        (row > 0 && chunk_frames > most / row ? most : chunk_frames * row) + chunk_size * 256);
  plan->window_bytes = min_u64(plan->chunk_bytes - results, WF__WINDOW_BYTES);
  wf_plan *bytes = &plan->bytes;
  bytes->graph_bytes = wf__gpu_graph_bytes(graph, options) + limits->scorer_bytes;
  bytes->lane_bytes = plan->lane_memory.frame_bytes * num_chunks;
  bytes->trace_bytes = (plan->lane_memory.bytes - plan->lane_memory.frame_bytes) * num_chunks;
  bytes->result_bytes = (results - plan->lane_memory.bytes) * num_chunks;
  bytes->score_bytes = (plan->chunk_bytes - results) * num_chunks;
  bytes->total_bytes = bytes->graph_bytes + plan->chunk_bytes * num_chunks;
  const uint64_t readback = wf__round_up_256(plan->steps_cap * sizeof(wf__lane_step)) +
                            (uint64_t)plan->pages_cap * WF__LANE_PAGE * sizeof(wf__lane_link);
  plan->readback_bytes = lattices ? min_u64(wf__round_up_256(readback), WF__READBACK_BYTES) : 0;
  bytes->pinned_bytes = plan->window_bytes * 2 + plan->transfer.bytes * num_chunks +
                        plan->readback_bytes * WF__READBACKS;
  bytes->lane_blocks = (int32_t)plan->ranks;
  bytes->num_lanes = (int32_t)(attempt->lanes * num_chunks);
}

/* Next smaller attempt; false if there is none. */
static bool shrink(struct attempt *attempt, bool lanes_wait) {
  if (attempt->num_chunks > 2) {
    attempt->num_chunks = attempt->num_chunks > FEW_CHUNKS ? FEW_CHUNKS : 2;
  } else if (attempt->lanes > 1) {
    attempt->lanes = (attempt->lanes + 1) / 2;
    if (!lanes_wait) attempt->chunk_size = attempt->lanes;
  } else if (attempt->num_chunks > 1) {
    attempt->num_chunks = 1;
  } else {
    return false;
  }
  return true;
}

/* The error if nothing fits: names the option to lower, by what takes most of the smallest plan. */
static wf_status fail_for_lack(const wf_decoder_options *options, const wf_batch_shape *shape,
                               const wf_plan *need, wf_error *err) {
  char advice[160];
  const bool active = options->max_tokens == options->max_active;
  const uint64_t tokens = need->lane_bytes + need->trace_bytes,
                 scores = need->score_bytes + need->result_bytes;
  if (need->graph_bytes >= need->available_bytes ||
      (need->graph_bytes > tokens && need->graph_bytes > scores))
    snprintf(advice, sizeof advice, "the graph takes most of it");
  else if (tokens >= scores)
    snprintf(advice, sizeof advice, "lower %s (%d) or decode shorter utterances (%lld frames)",
             active ? "max_active" : "max_tokens", options->max_tokens,
             (long long)shape->max_frames);
  else
    snprintf(advice, sizeof advice,
             "lower the batch (%zu utterances) or decode shorter utterances (%lld frames)",
             shape->num_utterances, (long long)shape->max_frames);
  return wf__fail(err, WF_ERR_MEMORY,
                  "the GPU has %llu bytes for this batch (gpu_memory or what is free), at least "
                  "%llu are needed (%.3f GB: graph %.3f, tokens and their history %.3f, "
                  "scores and results %.3f): %s",
                  (unsigned long long)need->available_bytes, (unsigned long long)need->total_bytes,
                  (double)need->total_bytes / GIGA, (double)need->graph_bytes / GIGA,
                  (double)tokens / GIGA, (double)scores / GIGA, advice);
}

/* Which lanes to plan. The next is tried if the memory does not suffice. */
enum lane_choice {
  LANES_OF_SEVERAL_SIZES, /* if the batch gains by them */
  LANES_OF_ONE_SIZE,
  SMALLEST_LANES /* utterances that do not fit a small lane go to the CPU */
};

static wf_status make(const wf_graph *graph, const wf_decoder_options *options,
                      const wf_batch_shape *given, const wf__device_limits *limits, int num_workers,
                      int num_sharing, enum lane_choice choice, wf__gpu_plan *out, wf_error *err) {
  *out = (wf__gpu_plan){.smallest = choice == SMALLEST_LANES};
  WF__TRY(wf__gpu_check_graph(graph, err));
  WF__TRY(wf__gpu_check_max_tokens(options, err));
  wf_batch_shape shape = *given;
  if (shape.num_utterances < 1) shape.num_utterances = 1;
  if (shape.sum_frames == 0 ||
      (uint64_t)shape.sum_frames > shape.num_utterances * (uint64_t)shape.max_frames)
    shape.sum_frames = (int64_t)shape.num_utterances * shape.max_frames;
  if (shape.sum_frames >> 48 != 0)
    return wf__fail(err, WF_ERR_LIMIT, "a batch of %lld frames", (long long)shape.sum_frames);
  /* Scores in device memory are on one GPU; others go to any free worker. */
  const uint64_t share =
      ceil_div(shape.num_utterances, (uint64_t)(shape.on_device ? num_sharing : num_workers));
  uint32_t lanes;
  int least_size;
  WF__TRY(choose_size(graph, options, limits, share, out, &least_size, &lanes, err));
  struct attempt attempt = {.num_chunks = 1, .lanes = lanes, .chunk_size = (uint32_t)share};
  const bool lattices = options->lattice_beam > 0;
  if ((!shape.on_device || lattices) &&
      !limits->deferred) { /* the host makes lattices of one chunk while others are searched */
    attempt.chunk_size = attempt.lanes =
        (uint32_t)ceil_div(lanes, 4); /* four chunks fill the GPU, others are being copied */
    attempt.num_chunks = (uint32_t)min_u64(lattices ? WF__MAX_CHUNKS : FEW_CHUNKS,
                                           ceil_div(shape.num_utterances, attempt.chunk_size));
  } else if (choice == LANES_OF_SEVERAL_SIZES && !limits->deferred) {
    choose_sizes(limits, share, least_size, lanes, out);
  }
  const bool several = out->most_ranks > out->ranks;
  const uint64_t more =
                     tokens_beyond(options, wf__lane_slots(limits->profile.shared_kb, out->scored)),
                 entry = wf__lane_token_bytes(out->scored, lattices);
  const uint64_t every = ((uint64_t)shape.max_frames + 1) *
                         ((uint64_t)options->max_tokens * 9 / 8 / out->least_ranks + 64),
                 full = whole_blocks(every + more);
  const uint64_t least = whole_blocks(whole_blocks(every) / LEAST_TRACE + 64 + more),
                 all = wf__gpu_available(limits, options);
  const uint64_t available = all == UINT64_MAX ? all : all / (uint64_t)num_sharing;
  out->bytes.available_bytes = available;
  out->bytes.num_gpus = num_workers;
  for (;;) {
    lay_out(out, graph, options, &shape, limits, &attempt, least, LEAST_LINKS);
    if (out->bytes.total_bytes <= available) break;
    if (several || !shrink(&attempt, shape.on_device && !lattices))
      return fail_for_lack(options, &shape, &out->bytes, err);
  }
  /* The trace gets a part of the remaining memory, but not all of it, since other programs may need
   * memory. */
  uint64_t room = available - out->bytes.total_bytes,
           parts = (uint64_t)out->parts * attempt.num_chunks;
  if (options->gpu_memory == 0 && available != UINT64_MAX) room = min_u64(room, available / 2);
  const uint64_t least_bytes = out->bytes.total_bytes;
  uint64_t links = lattices ? LINKS : LEAST_LINKS, more_pages;
  for (;; links /= 2) { /* pages take half of it at most, unless there is room for all */
    lay_out(out, graph, options, &shape, limits, &attempt, least, links);
    more_pages = out->bytes.total_bytes - least_bytes;
    if (links == LEAST_LINKS || more_pages <= room / 2 ||
        more_pages + (full - least) * entry * parts <= room)
      break;
  }
  room -= more_pages;
  const uint64_t trace = least + min_u64(room / entry / parts & ~(uint64_t)31, full - least);
  lay_out(out, graph, options, &shape, limits, &attempt, trace, links);
  if (several && trace < full) /* larger lanes have more room for an utterance's history */
    return fail_for_lack(options, &shape, &out->bytes, err);
  return WF_OK;
}

wf_status wf__gpu_plan_make(const wf_graph *graph, const wf_decoder_options *options,
                            const wf_batch_shape *shape, const wf__device_limits *limits,
                            int num_workers, int num_sharing, wf__gpu_plan *out, wf_error *err) {
  wf_status status = WF_ERR_MEMORY;
  for (int choice = LANES_OF_SEVERAL_SIZES; choice <= SMALLEST_LANES && status == WF_ERR_MEMORY;
       choice++)
    status = make(graph, options, shape, limits, num_workers, num_sharing, (enum lane_choice)choice,
                  out, err);
  return status;
}

wf_status wf__gpu_count_assumed(const wf_decoder_options *options, int *count, int *sharing,
                                wf_error *err) {
  wf__devices devices;
  WF__TRY(wf__devices_parse(options->device, &devices, err));
  *sharing = 1;
  *count = devices.count > 0 ? devices.count : 1;
  for (int i = 0; i < devices.count; i++)
    if (wf__devices_sharing(&devices, devices.numbers[i]) > *sharing)
      *sharing = wf__devices_sharing(&devices, devices.numbers[i]);
  return WF_OK;
}

wf_status wf__gpu_plan_assumed(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_batch_shape *shape, wf_plan *out, wf_error *err) {
  wf__gpu_plan plan;
  wf__device_limits limits = {
      .profile = {WF__SHARED_KB, WF__MAX_RANK_BITS, (int32_t)shape->num_processors},
      .available = UINT64_MAX};
  int count, sharing;
  for (int size = 0; size < WF__LANE_SIZES; size++)
    limits.lanes[size] = shape->num_processors >> size % WF__LARGE_LANE;
  WF__TRY(wf__gpu_count_assumed(options, &count, &sharing, err));
  WF__TRY(wf__gpu_plan_make(graph, options, shape, &limits, count, sharing, &plan, err));
  *out = plan.bytes;
  return WF_OK;
}
