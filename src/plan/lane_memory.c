/* lane_memory.c - the layouts of lane_memory.h. */
#include "plan/lane_memory.h"

uint64_t wf__lay_out_arrays(const uint64_t *sizes, int count, uint64_t *off) {
  uint64_t bytes = 0;
  for (int i = 0; i < count; i++) {
    off[i] = bytes;
    bytes += wf__round_up_256(sizes[i]);
  }
  return bytes;
}

/* --- lane arrays ------------------------------------------------------------------------- */

uint64_t wf__lane_token_bytes(bool scored, bool lattices) {
  return 8 + (lattices ? 8 : 0) + (scored ? 16 : 0);
}

void wf__lane_memory_plan(const wf__lane_shape *shape, wf__lane_memory *out) {
  const uint64_t parts = shape->parts, slots = parts * shape->slots,
                 tokens = parts * shape->trace_cap, frames = shape->frames_cap,
                 scored = shape->scored, lattices = shape->lattices, streams = shape->streams;
  const uint64_t sizes[WF__NUM_LANE_ARRAYS] = {
      [WF__ARRAY_COSTS] = slots * 4,
      [WF__ARRAY_FRONTIER] = slots * 16,
      [WF__ARRAY_WORD_LOG] = scored * parts * WF__LANE_WORD_LOG * sizeof(wf__lane_logged),
      [WF__ARRAY_LISTED] = scored * parts * WF__LANE_LISTED_BYTES,
      [WF__ARRAY_ENTRIES] = scored * slots * 16,
      [WF__ARRAY_SOURCES] = scored * slots * 8,
      [WF__ARRAY_WORD_CANDIDATES] =
          scored * parts * WF__LANE_WORD_CANDIDATES * sizeof(wf__word_candidate),
      [WF__ARRAY_MEMO] = scored * parts * sizeof(uint64_t) * 2 << WF__LANE_MEMO_BITS,
      [WF__ARRAY_COLUMNS] =
          shape->columns > 0 ? parts * (WF__LANE_COLUMNS(shape->columns) + shape->slots) * 4 : 0,
      [WF__ARRAY_TRACE] = tokens * 8,
      [WF__ARRAY_CONTEXTS] = scored * tokens * 16,
      [WF__ARRAY_FRAME_OFF] = parts * (frames + 2) * 4,
      [WF__ARRAY_INDEX] = parts * (frames + 1) * WF__LANE_INDEX * 2,
      [WF__ARRAY_PAST] = lattices * tokens * 8,
      [WF__ARRAY_RECORDS] = lattices * shape->lanes * (frames + 1) * sizeof(wf__lane_frame),
      [WF__ARRAY_LINKS] = streams * tokens * 8,
      [WF__ARRAY_ROWS] = streams * shape->lanes * (frames + 2) * 4,
      [WF__ARRAY_EMITTED] = streams * parts * (frames + 2) * 4,
  };
  *out = (wf__lane_memory){.trace_cap = (uint32_t)shape->trace_cap,
                           .trace_room = (uint32_t)shape->trace_room,
                           .frames_cap = (uint32_t)shape->frames_cap};
  for (int i = 0; i < WF__NUM_LANE_ARRAYS; i++)
    if (i != WF__ARRAY_RECORDS && i != WF__ARRAY_ROWS) out->part_bytes[i] = sizes[i] / parts;
  out->bytes = wf__lay_out_arrays(sizes, WF__NUM_LANE_ARRAYS, out->off);
  out->frame_bytes = out->off[WF__ARRAY_TRACE];
}

void wf__lane_memory_fill(const wf__lane_memory *memory, char *base, uint64_t first_part,
                          wf__lane_params *p) {
  void *at[WF__NUM_LANE_ARRAYS];
  for (int i = 0; i < WF__NUM_LANE_ARRAYS; i++)
    at[i] = base + memory->off[i] + first_part * memory->part_bytes[i];
  p->memory.costs = at[WF__ARRAY_COSTS];
  p->memory.frontier = at[WF__ARRAY_FRONTIER];
  p->memory.word_log = at[WF__ARRAY_WORD_LOG];
  p->memory.listed = at[WF__ARRAY_LISTED];
  p->memory.entries = at[WF__ARRAY_ENTRIES];
  p->memory.sources = at[WF__ARRAY_SOURCES];
  p->memory.word_candidates = at[WF__ARRAY_WORD_CANDIDATES];
  p->memory.memo = at[WF__ARRAY_MEMO];
  p->memory.columns = at[WF__ARRAY_COLUMNS];
  p->memory.trace = at[WF__ARRAY_TRACE];
  p->memory.contexts = at[WF__ARRAY_CONTEXTS];
  p->memory.frame_off = at[WF__ARRAY_FRAME_OFF];
  p->memory.index = at[WF__ARRAY_INDEX];
  p->lattices.past = at[WF__ARRAY_PAST];
  p->lattices.records = at[WF__ARRAY_RECORDS];
  p->streams.links = at[WF__ARRAY_LINKS];
  p->streams.rows = at[WF__ARRAY_ROWS];
  p->streams.emitted = at[WF__ARRAY_EMITTED];
  p->memory.trace_cap = memory->trace_cap;
  p->memory.trace_room = memory->trace_room;
  p->memory.frames_cap = memory->frames_cap;
}

/* --- the transfer block ------------------------------------------------------------------ */

void wf__transfer_plan_batch(uint32_t chunk_size, wf__transfer_plan *out) {
  const uint64_t count = chunk_size;
  const uint64_t sizes[WF__NUM_TRANSFER_PARTS] = {
      [WF__TRANSFER_UTTERANCES] = count * sizeof(wf__lane_utterance),
      [WF__TRANSFER_ORDER] = count * sizeof(uint32_t),
      [WF__TRANSFER_COUNTERS] = sizeof(wf__transfer_counters),
      [WF__TRANSFER_BAD] = count * sizeof(uint64_t),
      [WF__TRANSFER_OUTCOMES] = count * sizeof(wf__lane_outcome),
      [WF__TRANSFER_NUMBERS] = count * sizeof(uint32_t),
      [WF__TRANSFER_SCORE_OFF] = (count + 1) * sizeof(uint64_t),
  };
  out->bytes = wf__lay_out_arrays(sizes, WF__NUM_TRANSFER_PARTS, out->off);
}

void wf__transfer_plan_streams(uint32_t chunk_size, uint64_t score_bytes, wf__transfer_plan *out) {
  const uint64_t count = chunk_size;
  const uint64_t sizes[WF__NUM_TRANSFER_PARTS] = {
      [WF__TRANSFER_UTTERANCES] = count * sizeof(wf__lane_utterance),
      [WF__TRANSFER_CHUNKS] = count * sizeof(wf__lane_chunk),
      [WF__TRANSFER_ORDER] = count * sizeof(uint32_t),
      [WF__TRANSFER_COUNTERS] = sizeof(wf__transfer_counters),
      [WF__TRANSFER_SCORES] = score_bytes,
  };
  out->bytes = wf__lay_out_arrays(sizes, WF__NUM_TRANSFER_PARTS, out->off);
}

void wf__transfer_fill(const wf__transfer_plan *plan, const wf__transfer *block, int launch,
                       wf__lane_params *p) {
  void *at[WF__NUM_TRANSFER_PARTS];
  for (int i = 0; i < WF__NUM_TRANSFER_PARTS; i++) at[i] = block->device + plan->off[i];
  wf__transfer_counters *counters = at[WF__TRANSFER_COUNTERS];
  p->work.utterances = at[WF__TRANSFER_UTTERANCES];
  p->streams.chunks = at[WF__TRANSFER_CHUNKS];
  p->work.order = at[WF__TRANSFER_ORDER];
  p->work.outcomes = at[WF__TRANSFER_OUTCOMES];
  p->work.steps_used = &counters->steps_used;
  p->streams.chunk_links_used = &counters->links_used;
  p->work.queue = &counters->queues[launch];
  p->lattices.pages_used = &counters->pages_used;
}
