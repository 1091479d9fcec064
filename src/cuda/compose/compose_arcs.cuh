/* compose_arcs.cuh - counts and then writes the arcs of a dense composition. Included by
 * compose_kernels.cu.
 *
 * A warp processes a tile: up to four words of states of a row. B's arcs with a given label are
 * sorted by state, so the arcs that a link can give to the states of a tile are contiguous. They
 * are the link's candidates. Lanes take neighbouring candidates of one link or, if links have few,
 * of all links. A candidate becomes an arc if both its state and its target are kept.
 *
 * In the result the arcs of a state are ordered by link. A scan of the counts gives the first arc
 * of each state of the tile. Within a state, a cursor advances from link to link.
 *
 * Rows of more than SEGMENT links are cut into segments of PART links. Then a warp processes one
 * word of states with one segment, a lane per state. */
#ifndef WF_CUDA_COMPOSE_COMPOSE_ARCS_CUH
#define WF_CUDA_COMPOSE_COMPOSE_ARCS_CUH

enum {
  TILE_STATES = WF__GPU_TILE_WORDS * 64,
  FEW_CANDIDATES = 16 /* candidates a link */,
  FILL_THREADS = 128
};

/* Words of states of a row, with one segment of the row's links. */
struct tile {
  u64 word, links;
  u32 row, num_links, segment, num_segments;
  u32 num_words, first_state; /* first state, a state of B */
  u32 kept;                   /* kept bits: this lane's half word; 0 in lanes beyond the tile */
};

/* Fills in the fields that follow from the tile's row, segment and words. Returns whether any state
 * of the tile is kept. */
__device__ static bool open_tile(const wf__gpu_compose &c, tile &t) {
  const u64 end = c.link_off[t.row + 1];
  const u32 most = t.num_segments == 1 ? WF__GPU_SEGMENT : WF__GPU_PART;
  t.links = c.link_off[t.row] + (u64)t.segment * most;
  t.num_links = end - t.links < most ? (u32)(end - t.links) : most;
  const u32 lane = threadIdx.x & 31;
  t.kept = lane < 2 * t.num_words ? ((const u32 *)c.kept)[2 * t.word + lane] : 0;
  return __any_sync(~0u, t.kept != 0);
}

/* Long rows have one entry for each segment and word. Returns the word of entry i and its
 * segment. */
__device__ static u64 find_part(const wf__gpu_compose &c, u64 i, u32 *segment) {
  u64 low = 0, high = c.num_parts; /* finds the last part whose words begin at or before i */
  while (high - low > 1) {
    u64 middle = (low + high) / 2;
    if (c.part_word[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  *segment = c.parts[low].segment;
  return c.rows[c.parts[low].row].word_off + (i - c.part_word[low]);
}

/* Calls visit(info, pair, tile) for every tile with kept states, one warp a tile. First come the
 * words of long rows with their segments, which take longest, then all tiles of tile_words
 * words. */
template <class Visit>
__device__ static void for_tiles(const wf__gpu_compose &c, u64 warp, u64 num_warps,
                                 const Visit &visit) {
  for (u64 i = warp; i < c.num_part_words + (c.num_words + c.tile_words - 1) / c.tile_words;
       i += num_warps) {
    const bool part = i < c.num_part_words;
    u32 segment = 0, size;
    u64 word = part ? find_part(c, i, &segment) : (i - c.num_part_words) * c.tile_words;
    const u64 end = part                                ? word + 1
                    : word + c.tile_words < c.num_words ? word + c.tile_words
                                                        : c.num_words;
    for (; word < end; word += size) {
      const u32 row = c.word_row[word], segments = num_segments(c, row),
                most = part ? 1 : c.tile_words;
      const wf__gpu_row info = c.rows[row];
      const wf__gpu_pair &pair = c.pairs[info.pair];
      const u32 in_row = (u32)(word - info.word_off), left = pair.num_words - in_row,
                past = in_row % most;
      size = most - past < left ? most - past : left;
      tile t = {word, 0, row, 0, segment, segments, size, in_row * 64, 0};
      if (past == 0 && part == (segments > 1) && open_tile(c, t)) visit(info, pair, t);
    }
  }
}

/* Each of these is one load instruction. */
__device__ static wf__gpu_half load_half(const wf__gpu_half *at) {
  const uint2 words = __ldg((const uint2 *)at);
  return {words.x, words.y};
}
__device__ static wf__gpu_ends load_ends(const wf__gpu_ends *at) {
  const uint2 words = __ldg((const uint2 *)at);
  return {words.x, words.y};
}
__device__ static wf__gpu_move load_move(const wf__gpu_move *at) {
  const uint4 words = __ldg((const uint4 *)at);
  return {words.x, words.y, __uint_as_float(words.z), (int32_t)words.w};
}

/* The number of a state in its pair, given the state's half word. */
__device__ static u32 number_in(const wf__gpu_half &half, u32 state) {
  return half.first + (u32)__popc(half.bits & ((1u << (state & 31)) - 1));
}

__device__ static void put_arc(const wf__gpu_compose &c, u64 at, u32 a_arc, int32_t ilabel,
                               float weight, const wf__gpu_move &y, u32 next) {
  float4 made; /* same layout as wf_arc, written with one store */
  made.x = __uint_as_float(next);
  made.y = a_arc == NO_ARC ? y.weight : y.b_arc == NO_ARC ? weight : weight + y.weight;
  made.z = __int_as_float(ilabel);
  made.w = __int_as_float(y.olabel);
  ((float4 *)c.arcs)[at] = made;
  if (c.origins != nullptr) {
    c.origins[at].a = a_arc;
    c.origins[at].b = y.b_arc;
  }
}

/* --- long rows: a lane per state --------------------------------------------------------- */

/* Counts the arcs of a state along the links of a tile, or writes them from `at` on. Returns their
 * number. */
template <bool WRITE>
__device__ static u64 arcs_of(const wf__gpu_compose &c, const wf__gpu_pair &pair, const tile &t,
                              u32 state, u64 at) {
  u64 begin = at;
  for (u64 i = t.links; i < t.links + t.num_links; i++) {
    const wf__gpu_link link = c.links[i];
    const u64 *bits = c.kept + link.word_off;
    const wf__gpu_half *halves = c.halves + 2 * link.word_off;
    wf_arc x = {0, 0, 0, 0};
    if (WRITE && link.arc != NO_ARC) x = c.a_arcs[pair.a_base + link.arc];
    if (link.kind < STEP_LABEL) {
      const u64 *mask = mask_of(c, pair, link.kind);
      const wf__gpu_move stays = {state, NO_ARC, 0, 0};
      if (!(mask[state / 64] & bits[state / 64] & (u64)1 << (state & 63))) continue;
      if (WRITE)
        put_arc(c, at, link.arc, x.ilabel, x.weight, stays,
                number_in(load_half(halves + state / 32), state));
      at++;
      continue;
    }
    const u32 *off = c.off + pair.off_base[0] + (u64)(link.kind - STEP_LABEL) * pair.num_b + state;
    for (u32 k = off[0], end = off[1]; k < end; k++) {
      wf__gpu_move move = {0, 0, 0, 0}; /* counting reads only the target */
      if (WRITE)
        move = load_move(&c.moves[pair.move_base + k]);
      else
        move.to = c.to[pair.to_base[0] + k];
      if (!(bits[move.to / 64] >> (move.to & 63) & 1)) continue;
      if (WRITE)
        put_arc(c, at, link.arc, x.ilabel, x.weight, move,
                number_in(load_half(halves + move.to / 32), move.to));
      at++;
    }
  }
  return at - begin;
}

/* --- short rows: a lane per candidate ---------------------------------------------------- */

/* A link with candidates in a tile. Candidates are numbered over all links of the tile. */
struct tile_link {
  u32 begin; /* number of its first candidate */
  u32 move;  /* added to a candidate's number, gives its move */
  u32 words; /* first word of the row that the link leads to, counted from the pair's first word */
  u32 kind, arc;
  float weight;
  int32_t ilabel;
};

/* The links of a warp's tile. The entry after the last has the number of candidates in `begin`. */
struct tile_links {
  tile_link links[WF__GPU_SEGMENT + 1];
};

/* Lists the links with candidates in `num_words` words from `first_state` on. Returns their
 * number. */
__device__ static u32 list_links(const wf__gpu_compose &c, const wf__gpu_pair &pair, const tile &t,
                                 u32 first_state, u32 num_words, tile_link *table) {
  const u32 lane = threadIdx.x & 31, end_state = first_state + num_words * 64 < pair.num_b
                                                     ? first_state + num_words * 64
                                                     : pair.num_b;
  u32 count = 0, total = 0;
  __syncwarp();
  for (u32 base = 0; base < t.num_links; base += 32) {
    tile_link mine = {0, 0, 0, 0, NO_ARC, 0, 0};
    u32 length = 0;
    if (base + lane < t.num_links) {
      const wf__gpu_link link = c.links[t.links + base + lane];
      mine.words = (u32)(link.word_off - pair.word_base);
      mine.kind = link.kind;
      mine.arc = link.arc;
      if (link.kind < STEP_LABEL) {
        length = end_state - first_state;
      } else {
        const u32 *off = c.off + pair.off_base[0] + (u64)(link.kind - STEP_LABEL) * pair.num_b;
        mine.move = off[first_state];
        length = off[end_state] - mine.move;
      }
      if (link.arc != NO_ARC && length != 0) {
        const wf_arc x = c.a_arcs[pair.a_base + link.arc];
        mine.weight = x.weight;
        mine.ilabel = x.ilabel;
      }
    }
    u32 sum = length;
    for (u32 distance = 1; distance < 32 && base + distance < t.num_links; distance *= 2) {
      u32 other = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum += other;
    }
    const u32 some = __ballot_sync(~0u, length != 0);
    mine.begin = total + sum - length;
    mine.move -= mine.begin;
    if (length != 0) table[count + (u32)__popc(some & ((1u << lane) - 1))] = mine;
    count += (u32)__popc(some);
    total += __shfl_sync(~0u, sum, t.num_links - base < 32 ? (int)(t.num_links - base) - 1 : 31);
  }
  if (lane == 0) table[count].begin = total;
  __syncwarp();
  return count;
}

/* Arrays of a pair, kept in registers. */
struct pair_arrays {
  const wf__gpu_ends *ends;
  const wf__gpu_move *moves;
  const u32 *kept; /* half words */
  const wf__gpu_half *halves;
};

__device__ static pair_arrays arrays_of(const wf__gpu_compose &c, const wf__gpu_pair &pair) {
  return {c.ends + pair.move_base, c.moves + pair.move_base, (const u32 *)(c.kept + pair.word_base),
          c.halves + 2 * pair.word_base};
}

enum { ONLY_COUNTS, WITH_NEXT, WITH_MOVE };

/* A candidate. `counts`: it becomes an arc. */
struct candidate {
  u32 link, number; /* index in the link table; number over all links */
  u32 from;         /* state, counted from the tile's first */
  bool counts;
  u32 next;          /* WITH_NEXT, WITH_MOVE: the target's number in the pair */
  wf__gpu_move move; /* WITH_MOVE */
};

template <int WHAT>
__device__ static candidate look_at(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                    const pair_arrays &arrays, const tile &t, const tile_link &link,
                                    u32 l, u32 number, u32 shift, bool exists) {
  candidate made = {l, number, 0, exists, 0, {0, NO_ARC, 0, 0}};
  u32 to = 0;
  if (exists && link.kind < STEP_LABEL) {
    made.from = shift + number - link.begin;
    to = t.first_state + made.from;
    made.counts = (mask_of(c, pair, link.kind)[to >> 6] >> (to & 63) & 1) != 0;
  } else if (exists) {
    const wf__gpu_ends ends = load_ends(arrays.ends + (u32)(link.move + number));
    if (WHAT == WITH_MOVE) made.move = load_move(arrays.moves + (u32)(link.move + number));
    made.from = ends.from - t.first_state;
    to = ends.to;
  }
  made.counts =
      (__shfl_sync(~0u, t.kept, (int)(made.from >> 5)) >> (made.from & 31) & 1) != 0 && made.counts;
  wf__gpu_half half = {0, 0};
  if (made.counts) {
    const u64 at = 2 * (u64)link.words + (to >> 5);
    if (WHAT == ONLY_COUNTS)
      half.bits = arrays.kept[at];
    else
      half = load_half(arrays.halves + at);
  }
  made.counts = (half.bits >> (to & 31) & 1) != 0;
  made.next = number_in(half, to);
  return made;
}

/* Calls visit(candidate, same) for the candidates of the listed links, link by link, 32 at a time,
 * with all lanes of the warp. `shift`: offset of the listed words from the tile's first state.
 * same(state) returns the mask of lanes whose candidates have this state; those of one link are in
 * neighbouring lanes. */
template <int WHAT, class Visit>
__device__ static void for_candidates(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                      const pair_arrays &arrays, const tile &t,
                                      const tile_link *table, u32 num_links, u32 shift,
                                      const Visit &visit) {
  const u32 lane = threadIdx.x & 31, to_here = (2u << lane) - 1, total = table[num_links].begin;
  if (total >= FEW_CANDIDATES * num_links) {
    for (u32 l = 0; l < num_links; l++) {
      const tile_link link = table[l];
      const u32 end = table[l + 1].begin;
      for (u32 first = link.begin; first < end; first += 32)
        visit(look_at<WHAT>(c, pair, arrays, t, link, l, first + lane, shift, first + lane < end),
              [&](u32 from) {
                const u32 before = __shfl_up_sync(~0u, from, 1),
                          heads = __ballot_sync(~0u, lane == 0 || before != from);
                return ~0u << (31 - __clz((int)(heads & to_here)));
              });
    }
    return;
  }
  u32 begins[WF__GPU_SEGMENT / 32], past = ~0u;
  for (u32 k = 0; k < WF__GPU_SEGMENT / 32; k++)
    begins[k] = 32 * k + lane < num_links ? table[32 * k + lane].begin : ~0u;
  for (u32 first = 0; first < total; first += 32) {
    u32 mark = 0; /* candidate -> link: the number of links that begin up to it */
    for (u32 k = 0; k < WF__GPU_SEGMENT / 32; k++)
      if (begins[k] - first < 32) mark |= 1u << (begins[k] - first);
    const u32 marks = warp_or(mark), l = past + (u32)__popc(marks & to_here);
    past += (u32)__popc(marks);
    const bool exists = first + lane < total;
    visit(look_at<WHAT>(c, pair, arrays, t, table[exists ? l : 0], l, first + lane, shift, exists),
          [&](u32 from) { return __match_any_sync(~0u, from); });
  }
}

/* --- count ------------------------------------------------------------------------------- */

struct count_memory {
  tile_links of[THREADS / 32];
};

__global__ static void __launch_bounds__(THREADS, 5)
    count_kernel(const __grid_constant__ wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots)
    return; /* the host sees this and runs again with larger buffers */
  WF__SHARED(count_memory, memory);
  const u32 lane = threadIdx.x & 31;
  tile_link *table = memory.of[threadIdx.x / 32].links;
  for_tiles(c, ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, (u64)gridDim.x * THREADS / 32,
            [&](const wf__gpu_row &, const wf__gpu_pair &pair, const tile &t) {
              if (t.num_segments == 1) {
                const pair_arrays arrays = arrays_of(c, pair);
                const u32 num_links = list_links(c, pair, t, t.first_state, t.num_words, table);
                u32 count = 0;
                for_candidates<ONLY_COUNTS>(
                    c, pair, arrays, t, table, num_links, 0,
                    [&](const candidate &each, auto) { count += each.counts; });
                count = warp_sum(count);
                if (lane == 0) c.slots[c.first_slot[t.word]] = count;
                return;
              }
              const u64 kept = c.kept[t.word];
              for (u32 bit = lane; bit < 64; bit += 32) {
                if (!(kept >> bit & 1)) continue;
                u64 rank = (u64)__popcll(kept & (((u64)1 << bit) - 1));
                c.slots[c.first_slot[t.word] + rank * t.num_segments + t.segment] =
                    arcs_of<false>(c, pair, t, t.first_state + bit, 0);
              }
            });
}

/* --- fill -------------------------------------------------------------------------------- */

/* A warp's shared memory. An arc not yet written is its target and 32 bits: state in the tile,
 * link, index among the arcs of its state, and candidate number (8 + 6 + 9 + 9 bits). */
enum { NUMBER_BITS = 9, PLACE_BITS = 9, LINK_BITS = 6, MOST_CANDIDATES = 1 << NUMBER_BITS };
struct tile_memory {
  tile_links table;
  u32 cursor[TILE_STATES]; /* for each state of the tile, first the number of its arcs, then the
                              index of its first arc, counted from the tile's first */
  uint2 arcs[STAGE];
  uint16_t order[STAGE]; /* by index in the tile */
};
struct fill_memory {
  tile_memory of[FILL_THREADS / 32];
};

/* Returns the index of an arc among the arcs of its state, and advances the state's cursor.
 * Candidates come link by link, so the arcs of a state come in their final order. */
template <class Same>
__device__ static u32 next_place(u32 *cursor, const candidate &each, u32 valid, const Same &same,
                                 u32 lane) {
  const u32 alike = same(each.from);
  u32 place = 0;
  if (each.counts) place = cursor[each.from] + (u32)__popc(alike & valid & ((1u << lane) - 1));
  __syncwarp();
  if (each.counts) atomicAdd(&cursor[each.from], 1u);
  __syncwarp();
  return place;
}

/* Writes the arc of a candidate. */
__device__ static void put_candidate(const wf__gpu_compose &c, const pair_arrays &arrays,
                                     const tile_link &link, u32 number, u32 next, u64 at) {
  wf__gpu_move y = {0, NO_ARC, 0, 0};
  if (link.kind >= STEP_LABEL) y = load_move(arrays.moves + (u32)(link.move + number));
  put_arc(c, at, link.arc, link.ilabel, link.weight, y, next);
}

/* Position of a tile in the result: the current word's first arc and state; the first ones of the
 * pair. */
struct tile_place {
  u64 arc, pair_state, pair_arc;
  u32 state; /* number in the pair */
};

/* Writes a state's arc offset and final cost. */
__device__ static void put_state(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                 const wf__gpu_row &info, const tile_place &place, u32 number,
                                 u32 state, u64 arc) {
  c.arc_off[place.pair_state + number + info.pair] = arc - place.pair_arc;
  c.final_cost[place.pair_state + number] = info.a_final + c.b_final[pair.b_final_base + state];
}

/* Replaces the arc counts in `cursor` by their exclusive prefix sums, for `num_words` words from
 * word `first` of the tile on, and writes their states. Returns the number of arcs. */
__device__ static u32 put_states(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                 const wf__gpu_row &info, const tile &t, u32 first, u32 num_words,
                                 tile_place &place, u32 *cursor) {
  const u32 lane = threadIdx.x & 31, below = (1u << lane) - 1;
  u32 before = 0;
  for (u32 half = 2 * first; half < 2 * (first + num_words); half++) {
    const u32 kept = __shfl_sync(~0u, t.kept, (int)half), count = cursor[half * 32 + lane];
    u32 sum = count;
    for (u32 distance = 1; distance < 32; distance *= 2) {
      u32 other = __shfl_up_sync(~0u, sum, distance);
      if (lane >= distance) sum += other;
    }
    const u32 begin = before + sum - count;
    cursor[half * 32 + lane] = begin;
    if (kept >> lane & 1)
      put_state(c, pair, info, place, place.state + (u32)__popc(kept & below),
                t.first_state + half * 32 + lane, place.arc + begin);
    place.state += (u32)__popc(kept);
    before += __shfl_sync(~0u, sum, 31);
  }
  __syncwarp();
  return before;
}

/* Writes words [first, first + num_words) of a tile and advances `place`. One link: its candidates
 * are already in order and are written at once. Few candidates: they are staged in shared memory
 * link by link, then written in order, 32 neighbours at a time. Many: two passes over the
 * candidates. */
__device__ static void fill_words(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                  const wf__gpu_row &info, const tile &t, u32 first, u32 num_words,
                                  tile_place &place, tile_memory &m) {
  const u32 lane = threadIdx.x & 31, below = (1u << lane) - 1, shift = first * 64;
  const tile_link *table = m.table.links;
  const pair_arrays arrays = arrays_of(c, pair);
  const u32 num_links = list_links(c, pair, t, t.first_state + shift, num_words, m.table.links);
  const u64 at = place.arc;
  const bool listed = num_links > 1 && table[num_links].begin <= MOST_CANDIDATES;
  u32 count = 0;
  for (u32 k = lane; k < 64 * num_words; k += 32) m.cursor[shift + k] = 0;
  __syncwarp();
  if (num_links <= 1) {
    for_candidates<WITH_MOVE>(c, pair, arrays, t, table, num_links, shift,
                              [&](const candidate &each, auto) {
                                const u32 valid = __ballot_sync(~0u, each.counts);
                                if (each.counts) {
                                  put_arc(c, at + count + (u32)__popc(valid & below), table[0].arc,
                                          table[0].ilabel, table[0].weight, each.move, each.next);
                                  atomicAdd(&m.cursor[each.from], 1u);
                                }
                                count += (u32)__popc(valid);
                              });
  } else if (listed) {
    for_candidates<WITH_NEXT>(
        c, pair, arrays, t, table, num_links, shift, [&](const candidate &each, auto same) {
          const u32 valid = __ballot_sync(~0u, each.counts),
                    rank = next_place(m.cursor, each, valid, same, lane),
                    k = count + (u32)__popc(valid & below);
          if (each.counts && k < STAGE)
            m.arcs[k] = make_uint2(each.next, ((each.from << LINK_BITS | each.link) << PLACE_BITS |
                                               rank) << NUMBER_BITS |
                                                  each.number);
          count += (u32)__popc(valid);
        });
  } else {
    for_candidates<ONLY_COUNTS>(c, pair, arrays, t, table, num_links, shift,
                                [&](const candidate &each, auto) {
                                  if (each.counts) atomicAdd(&m.cursor[each.from], 1u);
                                });
  }
  __syncwarp();
  place.arc += put_states(c, pair, info, t, first, num_words, place, m.cursor);
  if (num_links <= 1) return;
  if (listed && count <= STAGE) {
    const u32 numbers = (1u << NUMBER_BITS) - 1, ranks = (1u << PLACE_BITS) - 1,
              links = (1u << LINK_BITS) - 1;
    for (u32 k = lane; k < count; k += 32) {
      const u32 arc = m.arcs[k].y;
      m.order[m.cursor[arc >> (NUMBER_BITS + PLACE_BITS + LINK_BITS)] +
              (arc >> NUMBER_BITS & ranks)] = (uint16_t)k;
    }
    __syncwarp();
    for (u32 k = lane; k < count; k += 32) {
      const uint2 arc = m.arcs[m.order[k]];
      put_candidate(c, arrays, table[arc.y >> (NUMBER_BITS + PLACE_BITS) & links], arc.y & numbers,
                    arc.x, at + k);
    }
    return;
  }
  for_candidates<WITH_NEXT>(
      c, pair, arrays, t, table, num_links, shift, [&](const candidate &each, auto same) {
        const u32 rank = next_place(m.cursor, each, __ballot_sync(~0u, each.counts), same, lane);
        if (each.counts)
          put_candidate(c, arrays, table[each.link], each.number, each.next, at + rank);
      });
}

/* Writes a tile of a short row, as many words at a time as the stage has room for. */
__device__ static void fill_tile(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                 const wf__gpu_row &info, const tile &t, tile_place place,
                                 tile_memory &m) {
  const u64 num_arcs = c.slots[c.first_slot[t.word] + 1] - place.arc;
  u32 size = t.num_words;
  while (size > 1 && num_arcs * size > STAGE * 7 / 8 * t.num_words && t.num_links > 1)
    size = (size + 1) / 2;
  for (u32 first = 0; first < t.num_words; first += size)
    fill_words(c, pair, info, t, first, size < t.num_words - first ? size : t.num_words - first,
               place, m);
}

/* Writes a word of states with one segment of a long row. */
__device__ static void fill_segment(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                    const wf__gpu_row &info, const tile &t,
                                    const tile_place &place) {
  const u64 kept = c.kept[t.word], slot = c.first_slot[t.word];
  for (u32 bit = threadIdx.x & 31; bit < 64; bit += 32) {
    if (!(kept >> bit & 1)) continue;
    const u32 rank = (u32)__popcll(kept & (((u64)1 << bit) - 1)), state = t.first_state + bit;
    const u64 at = c.slots[slot + (u64)rank * t.num_segments + t.segment];
    if (t.segment == 0) put_state(c, pair, info, place, place.state + rank, state, at);
    arcs_of<true>(c, pair, t, state, at);
  }
}

__global__ static void __launch_bounds__(FILL_THREADS, 8)
    fill_kernel(const __grid_constant__ wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots || c.totals[2] > c.room_arcs)
    return;
  WF__SHARED(fill_memory, memory);
  for_tiles(c, ((u64)blockIdx.x * FILL_THREADS + threadIdx.x) / 32,
            (u64)gridDim.x * FILL_THREADS / 32,
            [&](const wf__gpu_row &info, const wf__gpu_pair &pair, const tile &t) {
              const tile_place place = {c.slots[c.first_slot[t.word]], c.first[pair.word_base],
                                        c.slots[c.first_slot[pair.word_base]],
                                        c.halves[2 * t.word].first};
              if (t.num_segments == 1)
                fill_tile(c, pair, info, t, place, memory.of[threadIdx.x / 32]);
              else
                fill_segment(c, pair, info, t, place);
            });
}

#endif
