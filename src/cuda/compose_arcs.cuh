/* compose_arcs.cuh - the arcs of a dense composition: counted, then written. Included by compose_kernels.cu.
 *
 * A warp takes a word of states. B's arcs with a label lie by state, so what a link may give for the states of the word is one run of them, the link's candidates: lanes take
 * the candidates of all links side by side, however many or few each state or link has. A candidate counts if its state and the one it leads to are kept. In the result the arcs of a state lie by link: where
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
    ((float4 *)c.arcs)[at] = made;
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

/* A link that may give arcs for a word of states. `first`: what to add to the number of a candidate to have its move, or for a link without a label its state in the word. */
struct word_link {
  u64 word_off;
  u32 first, kind, arc, begin; /* begin: number of its first candidate among those of up to 32 links */
};

/* Of a warp. */
struct word_links {
  word_link links[WF__GPU_SEGMENT];
};

/* The links from `base` on, up to 32 of them, those without candidates left out, to table[0 ...]. Returns the number of candidates, and of each lane's link, in the table, the begin. */
__device__ static u32 list_links(const wf__gpu_compose &c, const wf__gpu_pair &pair, const piece &p, u64 base, u32 word, word_link *table, u32 *out_begin) {
  const u32 lane = threadIdx.x & 31, first_state = word * 64, last_state = first_state + 64 < pair.num_b ? first_state + 64 : pair.num_b;
  word_link mine = {0, 0, 0, NO_ARC, 0};
  u32 length = 0;
  if (lane < p.links_end - base) {
    const wf__gpu_link link = c.links[base + lane];
    mine.word_off = link.word_off;
    mine.kind = link.kind;
    mine.arc = link.arc;
    if (link.kind < STEP_LABEL) {
      length = last_state - first_state;
    } else {
      const u32 *off = c.off + pair.off_base[0] + (u64)(link.kind - STEP_LABEL) * pair.num_b;
      mine.first = off[first_state];
      length = off[last_state] - mine.first;
    }
  }
  u32 sum = length;
  for (u32 distance = 1; distance < 32; distance *= 2) {
    u32 other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  const u32 some = __ballot_sync(~0u, length != 0);
  mine.begin = sum - length;
  mine.first -= mine.begin;
  if (length != 0) table[__popc(some & ((1u << lane) - 1))] = mine;
  __syncwarp();
  *out_begin = lane < (u32)__popc(some) ? table[lane].begin : ~0u;
  return __shfl_sync(~0u, sum, 31);
}

/* Calls visit(link, move, from, to, counts) for the candidates of a word, 32 at a time, by all lanes together: link by its place in the table, `from` from the begin of the word. */
template <class Visit>
__device__ static void for_candidates(const wf__gpu_compose &c, const wf__gpu_pair &pair, const piece &p, u32 word, u64 kept, word_link *table, const Visit &visit) {
  const u32 lane = threadIdx.x & 31, to_here = (2u << lane) - 1, kept_low = (u32)kept, kept_high = (u32)(kept >> 32);
  for (u64 base = p.links; base < p.links_end; base += 32) {
    const u32 before = (u32)(base - p.links);
    u32 begin, count = list_links(c, pair, p, base, word, table + before, &begin), past = before - 1;
    for (u32 first = 0; first < count; first += 32) {
      /* the link of a candidate: how many have begun up to it */
      const u32 marks = __reduce_or_sync(~0u, begin - first < 32 ? 1u << (begin - first) : 0u), l = past + (u32)__popc(marks & to_here), i = first + lane;
      u32 from = 0, to = 0, move = 0;
      bool counts = i < count;
      past += (u32)__popc(marks);
      if (counts) {
        const word_link &link = table[l];
        move = link.first + i;
        if (link.kind < STEP_LABEL) {
          from = move;
          to = word * 64 + from;
          counts = (mask_of(c, pair, link.kind)[word] >> from & 1) != 0;
        } else {
          const wf__gpu_ends ends = c.ends[pair.move_base + move];
          from = ends.from & 63;
          to = ends.to;
        }
        const u32 *bits = (const u32 *)(c.kept + link.word_off);
        counts = counts && ((from < 32 ? kept_low : kept_high) >> (from & 31) & 1) != 0 && (bits[to / 32] >> (to & 31) & 1) != 0;
      }
      visit(l, move, from, to, counts);
    }
  }
}

/* --- count ------------------------------------------------------------------------------------------------------------ */

struct count_memory {
  word_links of[THREADS / 32];
};

/* A warp a piece; of a long row, a lane a state of half a word. */
__global__ static void __launch_bounds__(THREADS) count_kernel(const wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots) return; /* the host will see it, and come back with more room */
  const u64 warp = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, num_warps = (u64)gridDim.x * THREADS / 32;
  const u32 lane = threadIdx.x & 31;
  WF__SHARED(count_memory, memory);
  for (u64 i = warp; i < c.num_words + c.num_part_words; i += num_warps) {
    piece p;
    if (!find_piece(c, i, p)) continue;
    const wf__gpu_row info = c.rows[p.row];
    const wf__gpu_pair &pair = c.pairs[info.pair];
    const u32 word = (u32)(p.word - info.word_off);
    const u64 kept = c.kept[p.word];
    if (p.num_segments == 1) {
      u32 count = 0;
      for_candidates(c, pair, p, word, kept, memory.of[threadIdx.x / 32].links, [&](u32, u32, u32, u32, bool counts) { count += counts; });
      count = __reduce_add_sync(~0u, count);
      if (lane == 0) c.slots[c.first_slot[p.word]] = count;
      __syncwarp();
      continue;
    }
    arc_writer w = {c, pair, 0};
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

/* Of a warp. An arc of a word on its way: where it leads to, its link and state in the word, 20 + 6 + 6 bits; its move; its place among the arcs of its state. */
struct word_memory {
  word_links table;
  u32 cursor[64]; /* for each state of the word how many arcs it has, then where its first one goes, counted from that of the word */
  uint2 arcs[STAGE];
  uint16_t place[STAGE];
  uint8_t order[STAGE]; /* by place in the word */
};
struct fill_memory {
  word_memory of[THREADS / 32];
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

/* The place of an arc among those of its state, and the state's cursor moved on: `counts` where there is an arc. Candidates come by link, so arcs of a state in their order. */
__device__ static u32 next_place(u32 *cursor, u32 from, bool counts) {
  const u32 lane = threadIdx.x & 31, same = __match_any_sync(~0u, counts ? from : 64 + lane);
  u32 place = 0;
  if (counts) place = cursor[from] + (u32)__popc(same & ((1u << lane) - 1));
  __syncwarp();
  if (counts && same >> lane == 1) cursor[from] = place + 1; /* the last of them */
  __syncwarp();
  return place;
}

/* The arc of link `l` and a move. */
__device__ static void put_arc(const arc_writer &w, const word_link &link, u32 move, u32 to, u64 at) {
  const wf__gpu_compose &c = w.c;
  wf_arc x = {0, 0, 0, 0};
  wf__gpu_move y = {to, NO_ARC, 0, 0};
  if (link.arc != NO_ARC) x = c.a_arcs[w.pair.a_base + link.arc];
  if (link.kind >= STEP_LABEL) y = c.moves[w.pair.move_base + move];
  w.put(at, link.arc, x, y, w.number_of(link.word_off, to));
}

__device__ static void put_states(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, const piece &p, u64 kept, u64 begin, const u32 *cursor) {
  for (u32 bit = threadIdx.x & 31; bit < 64; bit += 32)
    if (kept >> bit & 1) put_state(c, pair, info, c.first[p.word] + (u32)__popcll(kept & (((u64)1 << bit) - 1)), (u32)(p.word - info.word_off) * 64 + bit, begin + cursor[bit]);
}

/* A word of a short row. Few arcs: they are listed as they are found, link by link, and written in order, 32 neighbours at a time. Many: two passes over the candidates. */
__device__ static void fill_word(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, const piece &p, word_memory &m) {
  const u32 lane = threadIdx.x & 31, word = (u32)(p.word - info.word_off);
  const u64 kept = c.kept[p.word], slot = c.first_slot[p.word], begin = c.slots[slot], num_arcs = c.slots[slot + 1] - begin;
  const arc_writer w = {c, pair, c.first[pair.word_base]};
  const bool few = num_arcs <= STAGE;
  u32 count = 0;
  m.cursor[lane] = m.cursor[lane + 32] = 0;
  __syncwarp();
  if (few) {
    for_candidates(c, pair, p, word, kept, m.table.links, [&](u32 l, u32 move, u32 from, u32 to, bool counts) {
      const u32 valid = __ballot_sync(~0u, counts), place = next_place(m.cursor, from, counts);
      if (counts) {
        const u32 at = count + (u32)__popc(valid & ((1u << lane) - 1));
        m.arcs[at] = make_uint2(to | l << 20 | from << 26, move);
        m.place[at] = (uint16_t)place;
      }
      count += (u32)__popc(valid);
    });
  } else {
    for_candidates(c, pair, p, word, kept, m.table.links, [&](u32, u32, u32 from, u32, bool counts) {
      if (counts) atomicAdd(&m.cursor[from], 1u);
    });
  }
  __syncwarp();
  sum_cursors(m.cursor, lane);
  put_states(c, pair, info, p, kept, begin, m.cursor);
  if (few) {
    for (u32 k = lane; k < count; k += 32) m.order[m.cursor[m.arcs[k].x >> 26] + m.place[k]] = (uint8_t)k;
    __syncwarp();
    for (u32 k = lane; k < count; k += 32) {
      const uint2 arc = m.arcs[m.order[k]];
      put_arc(w, m.table.links[arc.x >> 20 & 63], arc.y, arc.x & 0xfffff, begin + k);
    }
  } else {
    __syncwarp();
    for_candidates(c, pair, p, word, kept, m.table.links, [&](u32 l, u32 move, u32 from, u32 to, bool counts) {
      const u32 place = next_place(m.cursor, from, counts);
      if (counts) put_arc(w, m.table.links[l], move, to, begin + place);
    });
  }
  __syncwarp();
}

/* A word of states with a segment of a long row. */
__device__ static void fill_segment(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, const piece &p) {
  const u64 kept = c.kept[p.word], slot = c.first_slot[p.word];
  const arc_writer w = {c, pair, c.first[pair.word_base]};
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
  WF__SHARED(fill_memory, memory);
  const u64 warp = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, num_warps = (u64)gridDim.x * THREADS / 32;
  for (u64 i = warp; i < c.num_words + c.num_part_words; i += num_warps) {
    piece p;
    if (!find_piece(c, i, p)) continue;
    const wf__gpu_row info = c.rows[p.row];
    const wf__gpu_pair &pair = c.pairs[info.pair];
    if (p.num_segments == 1) fill_word(c, pair, info, p, memory.of[threadIdx.x / 32]);
    else fill_segment(c, pair, info, p);
  }
}

#endif
