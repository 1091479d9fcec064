/* compose_arcs.cuh - the arcs of a dense composition: counted, then written. Included by compose_kernels.cu.
 *
 * A warp takes a word of states. B's arcs with a label lie by state, so what a link may give for the states of the word is one run of them, the link's candidates: lanes take
 * them side by side, however many or few each state has. A candidate counts if its state and the one it leads to are kept. In the result the arcs of a state lie by link: where
 * the arcs of each state of the word begin follows from their numbers, and within a state a cursor moves on from link to link.
 *
 * Rows of more links than SEGMENT are cut into segments, a warp each; there a lane takes a state. */
#ifndef WF_CUDA_COMPOSE_ARCS_CUH
#define WF_CUDA_COMPOSE_ARCS_CUH

/* A word of states of a row with one segment of its links. */
struct piece {
  u64 word, links, links_end;
  u32 row, segment, num_segments;
};

/* Piece `i`: words with the first segment, then the parts of long rows. */
__device__ static bool find_piece(const wf__gpu_compose &c, u64 i, piece &p) {
  if (i < c.num_words) {
    p.word = i;
    p.row = c.word_row[i];
    p.segment = 0;
  } else {
    u64 low = 0, high = c.num_parts; /* the last part whose words begin at or before i */
    i -= c.num_words;
    while (high - low > 1) {
      u64 middle = (low + high) / 2;
      if (c.part_word[middle] <= i) low = middle;
      else high = middle;
    }
    p.row = c.parts[low].row;
    p.segment = c.parts[low].segment;
    p.word = c.rows[p.row].word_off + (i - c.part_word[low]);
  }
  if (c.kept[p.word] == 0) return false;
  u64 end = c.link_off[p.row + 1];
  p.num_segments = num_segments(c, p.row);
  p.links = c.link_off[p.row] + (u64)p.segment * WF__GPU_SEGMENT;
  p.links_end = p.links + WF__GPU_SEGMENT < end ? p.links + WF__GPU_SEGMENT : end;
  return true;
}

struct arc_writer {
  const wf__gpu_compose &c;
  const wf__gpu_pair &pair;
  u32 first_state; /* of the pair */
  float4 *arcs;    /* arc i of the result goes to arcs[i - begin] */
  u64 begin;

  __device__ u32 number_of(u64 word_off, u32 state) const {
    u64 at = word_off + state / 64;
    return c.first[at] - first_state + (u32)__popcll(c.kept[at] & (((u64)1 << (state & 63)) - 1));
  }
  __device__ void put(u64 at, u32 a_arc, const wf_arc &x, const wf__gpu_move &y, u32 next) const {
    float4 made; /* as wf_arc, so that it is written at once */
    made.x = __uint_as_float(next);
    made.y = a_arc == NO_ARC ? y.weight : y.b_arc == NO_ARC ? x.weight : x.weight + y.weight;
    made.z = __int_as_float(x.ilabel);
    made.w = __int_as_float(y.olabel);
    arcs[at - begin] = made;
    if (c.origins != nullptr) {
      c.origins[at].a = a_arc;
      c.origins[at].b = y.b_arc;
    }
  }
};

/* The arcs of a state along the links of a piece: counted, or written from `at` on. Returns their number. */
template <bool WRITE>
__device__ static u64 arcs_of(const arc_writer &w, const piece &p, u32 state, u64 at) {
  const wf__gpu_compose &c = w.c;
  u64 begin = at;
  for (u64 i = p.links; i < p.links_end; i++) {
    wf__gpu_link link = c.links[i];
    const u64 *bits = c.kept + link.word_off;
    wf_arc x = {0, 0, 0, 0};
    if (WRITE && link.arc != NO_ARC) x = c.a_arcs[w.pair.a_base + link.arc];
    if (link.kind < STEP_LABEL) {
      const u64 *mask = mask_of(c, w.pair, link.kind);
      wf__gpu_move stays = {state, NO_ARC, 0, 0};
      if (!(mask[state / 64] & bits[state / 64] & (u64)1 << (state & 63))) continue;
      if (WRITE) w.put(at, link.arc, x, stays, w.number_of(link.word_off, state));
      at++;
      continue;
    }
    const u32 *off = c.off + w.pair.off_base[0] + (u64)(link.kind - STEP_LABEL) * w.pair.num_b + state;
    for (u32 k = off[0], end = off[1]; k < end; k++) {
      wf__gpu_move move = {0, 0, 0, 0}; /* counting reads no more than it must */
      if (WRITE) move = c.moves[w.pair.move_base + k];
      else move.to = c.to[w.pair.to_base[0] + k];
      if (!(bits[move.to / 64] >> (move.to & 63) & 1)) continue;
      if (WRITE) w.put(at, link.arc, x, move, w.number_of(link.word_off, move.to));
      at++;
    }
  }
  return at - begin;
}

/* --- short rows: lanes take candidates -------------------------------------------------------------------------------- */

/* A link, as the lanes of a warp know it all. */
struct warp_link {
  u64 word_off, first; /* first: of the moves; for a link without a label, states of the word are its candidates */
  u32 kind, arc;
};

/* Calls visit(link, move, from, to, counts) for the candidates of a word, 32 at a time, by all lanes together; `from` counts from the begin of the word. */
template <class Visit>
__device__ static void for_candidates(const wf__gpu_compose &c, const wf__gpu_pair &pair, const piece &p, u32 word, u64 kept, const Visit &visit) {
  const u32 lane = threadIdx.x & 31, first_state = word * 64, last_state = first_state + 64 < pair.num_b ? first_state + 64 : pair.num_b;
  for (u64 base = p.links; base < p.links_end; base += 32) {
    warp_link mine = {0, 0, 0, NO_ARC};
    u32 length = 0, num_links = (u32)(p.links_end - base < 32 ? p.links_end - base : 32);
    if (lane < num_links) {
      const wf__gpu_link link = c.links[base + lane];
      mine.word_off = link.word_off;
      mine.kind = link.kind;
      mine.arc = link.arc;
      if (link.kind < STEP_LABEL) {
        length = 64;
      } else {
        const u32 *off = c.off + pair.off_base[0] + (u64)(link.kind - STEP_LABEL) * pair.num_b;
        mine.first = off[first_state];
        length = off[last_state] - (u32)mine.first;
      }
    }
    for (u32 some = __ballot_sync(~0u, length != 0); some != 0; some &= some - 1) {
      const int l = __ffs((int)some) - 1;
      const warp_link link = {__shfl_sync(~0u, mine.word_off, l), __shfl_sync(~0u, mine.first, l), __shfl_sync(~0u, mine.kind, l), __shfl_sync(~0u, mine.arc, l)};
      const u32 count = __shfl_sync(~0u, length, l);
      const u64 *bits = c.kept + link.word_off;
      const u64 waiting = link.kind < STEP_LABEL ? kept & mask_of(c, pair, link.kind)[word] & bits[word] : 0;
      for (u32 k = lane; k - lane < count; k += 32) {
        wf__gpu_ends ends = {first_state + k, first_state + k};
        bool counts;
        if (link.kind < STEP_LABEL) {
          counts = (waiting >> k & 1) != 0;
        } else {
          counts = k < count;
          if (counts) ends = c.ends[pair.move_base + link.first + k];
          counts = counts && (kept >> (ends.from & 63) & 1) != 0 && (bits[ends.to / 64] >> (ends.to & 63) & 1) != 0;
        }
        visit(link, link.first + k, ends.from - first_state, ends.to, counts);
      }
    }
  }
}

/* --- count ------------------------------------------------------------------------------------------------------------ */

/* A warp a piece; of a long row, a lane a state of half a word. */
__global__ static void __launch_bounds__(THREADS) count_kernel(const wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots) return; /* the host will see it, and come back with more room */
  const u64 warp = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, num_warps = (u64)gridDim.x * THREADS / 32;
  const u32 lane = threadIdx.x & 31;
  for (u64 i = warp; i < c.num_words + c.num_part_words; i += num_warps) {
    piece p;
    if (!find_piece(c, i, p)) continue;
    const wf__gpu_row info = c.rows[p.row];
    const wf__gpu_pair &pair = c.pairs[info.pair];
    const u32 word = (u32)(p.word - info.word_off);
    const u64 kept = c.kept[p.word];
    if (p.num_segments == 1) {
      u32 count = 0;
      for_candidates(c, pair, p, word, kept, [&](const warp_link &, u64, u32, u32, bool counts) { count += counts; });
      count = __reduce_add_sync(~0u, count);
      if (lane == 0) c.slots[c.first_slot[p.word]] = count;
      continue;
    }
    arc_writer w = {c, pair, 0, nullptr, 0};
    for (u32 bit = lane; bit < 64; bit += 32) {
      if (!(kept >> bit & 1)) continue;
      u64 rank = (u64)__popcll(kept & (((u64)1 << bit) - 1));
      c.slots[c.first_slot[p.word] + rank * p.num_segments + p.segment] = arcs_of<false>(w, p, word * 64 + bit, 0);
    }
  }
}

/* --- fill ------------------------------------------------------------------------------------------------------------- */

/* What a state has besides its arcs. */
__device__ static void put_state(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, u64 number, u32 state, u64 at) {
  c.arc_off[number + (u64)info.pair] = at - c.slots[c.first_slot[pair.word_base]];
  c.final_cost[number] = info.a_final + c.b_final[pair.b_final_base + state];
}

/* Of a warp: arcs on their way, and for each state of its word how many arcs it has, then where its next one goes, counted from the first of the word. */
struct stage_memory {
  float4 arcs[THREADS / 32][STAGE];
  u32 cursor[THREADS / 32][64];
};

/* Numbers of arcs in `cursor` become the places of the first. */
__device__ static void sum_cursors(u32 *cursor, u32 lane) {
  u32 low = cursor[2 * lane], both = low + cursor[2 * lane + 1], sum = both;
  for (u32 distance = 1; distance < 32; distance *= 2) {
    u32 other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  cursor[2 * lane] = sum - both;
  cursor[2 * lane + 1] = sum - both + low;
  __syncwarp();
}

/* A word of a short row. If its arcs are few enough they are put together in shared memory and go out in order. */
__device__ static void fill_word(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, const piece &p, float4 *stage, u32 *cursor) {
  const u32 lane = threadIdx.x & 31, word = (u32)(p.word - info.word_off);
  const u64 kept = c.kept[p.word], slot = c.first_slot[p.word], begin = c.slots[slot], num_arcs = c.slots[slot + 1] - begin;
  cursor[lane] = cursor[lane + 32] = 0;
  __syncwarp();
  for_candidates(c, pair, p, word, kept, [&](const warp_link &, u64, u32 from, u32, bool counts) {
    if (counts) atomicAdd(&cursor[from], 1u);
  });
  __syncwarp();
  sum_cursors(cursor, lane);
  for (u32 bit = lane; bit < 64; bit += 32)
    if (kept >> bit & 1) put_state(c, pair, info, c.first[p.word] + (u32)__popcll(kept & (((u64)1 << bit) - 1)), word * 64 + bit, begin + cursor[bit]);
  if (num_arcs == 0) return;
  __syncwarp();
  const bool staged = num_arcs <= STAGE;
  const arc_writer w = {c, pair, c.first[pair.word_base], staged ? stage : (float4 *)c.arcs, staged ? begin : 0};
  for_candidates(c, pair, p, word, kept, [&](const warp_link &link, u64 move, u32 from, u32 to, bool counts) {
    /* arcs of a state are neighbours among a link's candidates: those of the same state before this one */
    const u32 before = (1u << lane) - 1, valid = __ballot_sync(~0u, counts), other = __shfl_up_sync(~0u, from, 1), heads = __ballot_sync(~0u, lane == 0 || other != from);
    const u32 head = 31u - (u32)__clz((int)(heads & (before << 1 | 1)));
    u64 at = 0;
    if (counts) at = begin + cursor[from] + (u32)__popc(valid & before & ~((1u << head) - 1));
    __syncwarp();
    if (counts) {
      wf_arc x = {0, 0, 0, 0};
      wf__gpu_move y = {to, NO_ARC, 0, 0};
      atomicAdd(&cursor[from], 1u);
      if (link.arc != NO_ARC) x = c.a_arcs[pair.a_base + link.arc];
      if (link.kind >= STEP_LABEL) y = c.moves[pair.move_base + move];
      w.put(at, link.arc, x, y, w.number_of(link.word_off, to));
    }
    __syncwarp();
  });
  if (!staged) return;
  for (u32 k = lane; k < num_arcs; k += 32) ((float4 *)c.arcs)[begin + k] = stage[k];
  __syncwarp();
}

/* A word of states with a segment of a long row. */
__device__ static void fill_segment(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, const piece &p) {
  const u64 kept = c.kept[p.word], slot = c.first_slot[p.word];
  const arc_writer w = {c, pair, c.first[pair.word_base], (float4 *)c.arcs, 0};
  for (u32 bit = threadIdx.x & 31; bit < 64; bit += 32) {
    if (!(kept >> bit & 1)) continue;
    u32 rank = (u32)__popcll(kept & (((u64)1 << bit) - 1)), state = (u32)(p.word - info.word_off) * 64 + bit;
    u64 at = c.slots[slot + (u64)rank * p.num_segments + p.segment];
    if (p.segment == 0) put_state(c, pair, info, c.first[p.word] + rank, state, at);
    arcs_of<true>(w, p, state, at);
  }
}

__global__ static void __launch_bounds__(THREADS, 5) fill_kernel(const wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots || c.totals[2] > c.room_arcs) return;
  WF__SHARED(stage_memory, stages);
  const u64 warp = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, num_warps = (u64)gridDim.x * THREADS / 32;
  for (u64 i = warp; i < c.num_words + c.num_part_words; i += num_warps) {
    piece p;
    if (!find_piece(c, i, p)) continue;
    const wf__gpu_row info = c.rows[p.row];
    const wf__gpu_pair &pair = c.pairs[info.pair];
    if (p.num_segments == 1) fill_word(c, pair, info, p, stages.arcs[threadIdx.x / 32], stages.cursor[threadIdx.x / 32]);
    else fill_segment(c, pair, info, p);
  }
}

#endif
