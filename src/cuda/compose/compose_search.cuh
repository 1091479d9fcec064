/* compose_search.cuh - the search of dense composition by all blocks of a grid, level by level.
 * Included by compose_kernels.cu.
 *
 * A visit of a row takes its fresh bits, moves them along each kind of step, and adds the result to
 * the rows that the steps lead to. The final set of bits does not depend on which thread finds a
 * bit first. Bits found in a level are visited in the next, after a grid barrier. A visit may or
 * may not see bits of its own level, but no fence is needed, since no bit is ever lost.
 *
 * Even an almost empty level costs a barrier and a chain of dependent reads. So if the tables are
 * small, the search from the start and the search from the final states run in the same levels,
 * each with half of the blocks. Kept are the bits that both find. */
#ifndef WF_CUDA_COMPOSE_COMPOSE_SEARCH_CUH
#define WF_CUDA_COMPOSE_COMPOSE_SEARCH_CUH

/* One direction of the search, and the blocks that work on it. */
struct direction {
  int back;
  const u64 *step_off;
  const wf__gpu_step *steps;
  const u64 *limit; /* bits that may be found; NULL: any */
  u64 *bits, *fresh;
  u32 *dirty, *list, *counts;
  u32 level;
  u32 block, num_blocks; /* this block's index among the direction's blocks */
};

__device__ static u64 or_word(u64 *word, u64 value) { return atomicOr((ull *)word, (ull)value); }

/* The count of a level: the length of its list, or a flag (1) if there is no list and every row is
 * looked at. */
__device__ static u32 *count_of(const direction &d, u32 level) { return &d.counts[level % 3]; }
__device__ static u32 *list_of(const wf__gpu_compose &c, const direction &d, u32 level) {
  return d.list + (level & 1) * c.num_rows;
}
/* Marks of a level for rows visited by one thread: 1 for each row with fresh bits. They replace the
 * list. */
__device__ static u32 *dirty_of(const wf__gpu_compose &c, const direction &d, u32 level) {
  return d.dirty + (level & 1) * c.num_rows;
}

/* Notes that a row has fresh bits for the next level. */
template <int GROUP>
__device__ static void mark_dirty(const wf__gpu_compose &c, const direction &d, u32 row,
                                  u32 level) {
  if (GROUP == 1) {
    dirty_of(c, d, level)[row] = 1;
    if (__ldcg(count_of(d, level)) == 0) *count_of(d, level) = 1;
  } else if (__ldcg(&d.dirty[row]) != level + 1 &&
             atomicExch(&d.dirty[row], level + 1) != level + 1) { /* a row is listed once */
    list_of(c, d, level)[atomicAdd(count_of(d, level), 1u)] = row;
  }
}

/* Sets bits in a word that held `bits` a moment ago. Returns the bits of `add` that are new. */
__device__ static u64 find_bits(const direction &d, u64 at, u64 add, u64 bits) {
  add &= ~bits;
  if (d.limit != nullptr && add != 0) add &= d.limit[at];
  return add == 0 ? 0 : add & ~or_word(&d.bits[at], add);
}

/* Same as find_bits; the new bits also become fresh. */
__device__ static u64 add_word(const direction &d, u64 at, u64 add, u64 bits) {
  add = find_bits(d, at, add, bits);
  if (add != 0) or_word(&d.fresh[at], add);
  return add;
}

__device__ static const u64 *mask_of(const wf__gpu_compose &c, const wf__gpu_pair &pair, u32 kind) {
  return c.masks + pair.mask_base + (u64)kind * pair.num_words;
}
__device__ static u64 word_off_of(const wf__gpu_pair &pair, u32 row) {
  return pair.word_base + (u64)(row - pair.first_row) * pair.num_words;
}

/* B's arcs by label, in one direction. */
struct label_moves {
  const u64 *cells;
  const u32 *off, *to;
  u32 num_b;
};

__device__ static label_moves moves_of(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                       u32 back) {
  return {c.cells != nullptr ? c.cells + pair.cell_base[back] : nullptr,
          c.off + pair.off_base[back], c.to + pair.to_base[back], pair.num_b};
}

/* Calls found(state) for the targets of a state under a label. Up to three targets are read from
 * one cell. */
template <class Found>
__device__ static void for_targets(const label_moves &moves, u32 label, u32 state,
                                   const Found &found) {
  const u64 cell =
      moves.cells != nullptr ? moves.cells[label * moves.num_b + state] : (u64)WF__GPU_MANY_TARGETS;
  const u32 count = (u32)cell & 15, target_mask = (1u << WF__GPU_TARGET_BITS) - 1;
  if (count <= WF__GPU_MOST_TARGETS) {
    if (count > 0) found((u32)(cell >> 4) & target_mask);
    if (count > 1) found((u32)(cell >> (4 + WF__GPU_TARGET_BITS)) & target_mask);
    if (count > 2) found((u32)(cell >> (4 + 2 * WF__GPU_TARGET_BITS)));
    return;
  }
  const u32 *off = moves.off + (u64)label * moves.num_b + state;
  for (u32 k = off[0], end = off[1]; k < end; k++) found(moves.to[k]);
}

__device__ static wf__gpu_step load_step(const wf__gpu_step *at) {
  const uint4 words = __ldg((const uint4 *)at);
  return {words.x, words.y, words.z, words.w};
}

/* --- many narrow rows: one thread visits a row ------------------------------------------- */

enum { MAX_HOPS = 32 };

/* W: at least the words of the widest row; a thread's registers grow with it. */
template <int W>
struct narrow {
  u64 in[W], out[W];
};

/* Takes the fresh bits of a row. All words are loaded before the first is used, so the thread waits
 * once instead of W times. */
template <int W>
__device__ static void take_narrow(const direction &d, u64 word_off, u32 num_words, u64 *in) {
  for (u32 w = 0; w < W; w++) in[w] = w < num_words ? __ldcg(&d.fresh[word_off + w]) : 0;
  for (u32 w = 0; w < W; w++)
    if (in[w] != 0) in[w] = atomicExch((ull *)&d.fresh[word_off + w], 0ull);
}

/* Shifts the states in `from` by `by` positions: a label that moves all states by the same
 * distance. */
template <int W>
__device__ static void shift_narrow(const u64 *from, u32 num_words, int by, narrow<W> &n) {
  u64 x[W];
  for (u32 w = 0; w < W; w++) x[w] = w < num_words ? n.in[w] & from[w] : 0;
  for (u32 w = 0; w < W; w++) {
    if (by == 0)
      n.out[w] = x[w];
    else if (by > 0)
      n.out[w] = x[w] << by | (w > 0 ? x[w - 1] >> (64 - by) : 0);
    else
      n.out[w] = x[w] >> -by | (w + 1 < W ? x[w + 1] << (64 + by) : 0);
  }
}

template <int W>
__device__ static void move_narrow(const wf__gpu_compose &c, const direction &d,
                                   const wf__gpu_pair &pair, u32 kind, narrow<W> &n) {
  if (kind < STEP_LABEL) {
    shift_narrow(mask_of(c, pair, kind), pair.num_words, 0, n);
    return;
  }
  u32 label = kind - STEP_LABEL;
  const wf__gpu_shift &shift = c.shifts[pair.shift_base[d.back] + label];
  if (shift.by != WF__GPU_NO_SHIFT) {
    shift_narrow(shift.from, pair.num_words, shift.by, n);
    return;
  }
  const u32 *off = c.off + pair.off_base[d.back] + (u64)label * pair.num_b,
            *to = c.to + pair.to_base[d.back];
  for (u32 w = 0; w < W; w++) n.out[w] = 0;
  for (u32 w = 0; w < pair.num_words; w++) {
    for (u64 bits = n.in[w]; bits != 0; bits &= bits - 1) {
      u32 state = w * 64 + (u32)__ffsll((long long)bits) - 1, end = off[state + 1];
      for (u32 k = off[state]; k < end; k++) n.out[to[k] >> 6] |= (u64)1 << (to[k] & 63);
    }
  }
}

/* Steps that a thread follows immediately, all of one row, and the bits it has found in that row.
 * No other thread processes these bits. */
template <int W>
struct follow {
  u64 begin, end; /* equal: nothing to follow */
  wf__gpu_step only;
  bool known; /* the one step is known: `only` */
  u64 bits[W];
};

/* Sets the bits of n.out in a row that had the bits `have` a moment ago. All atomics are issued
 * before the first result is needed. */
template <int W>
__device__ static void set_narrow(const direction &d, u64 word_off, u32 num_words, const u64 *have,
                                  const narrow<W> &n, u64 *added, u64 *was) {
  for (u32 w = 0; w < W; w++) {
    added[w] = w < num_words ? n.out[w] & ~have[w] : 0;
    if (d.limit != nullptr && added[w] != 0) added[w] &= d.limit[word_off + w];
  }
  for (u32 w = 0; w < W; w++) was[w] = added[w] != 0 ? or_word(&d.bits[word_off + w], added[w]) : 0;
}

/* Reduces `added` to the bits that were new. Returns whether there are any. */
template <int W>
__device__ static bool keep_new(u64 *added, const u64 *was) {
  u64 any = 0;
  for (u32 w = 0; w < W; w++) any |= added[w] &= ~was[w];
  return any != 0;
}

template <int W>
__device__ static void load_narrow(const direction &d, u64 word_off, u32 num_words, u64 *have) {
  for (u32 w = 0; w < W; w++) have[w] = w < num_words ? __ldcg(&d.bits[word_off + w]) : 0;
}

/* Hands on the new bits of a step's target row. The thread follows them itself if it follows no
 * other row yet; otherwise the next level visits them. `after`: the target row's only step, if it
 * has one. */
template <int W>
__device__ static void pass_on(const wf__gpu_compose &c, const direction &d,
                               const wf__gpu_step &step, const wf__gpu_step &after, u64 word_off,
                               const u64 *added, bool may_follow, follow<W> &next) {
  const u64 begin = step.next != NO_ARC ? step.next : d.step_off[step.row],
            end = step.next != NO_ARC ? begin + 1 : d.step_off[step.row + 1];
  if (may_follow && next.begin == next.end && end - begin <= MAX_LIGHT) {
    next.begin = begin;
    next.end = end;
    next.only = after;
    next.known = step.next != NO_ARC;
    for (u32 w = 0; w < W; w++) next.bits[w] = added[w];
    return;
  }
  for (u32 w = 0; w < W; w++)
    if (added[w] != 0) or_word(&d.fresh[word_off + w], added[w]);
  mark_dirty<1>(c, d, step.row, d.level + 1);
}

/* Takes the steps begin, begin + stride, ... of a row whose fresh bits are in n.in. `only`: the one
 * step, if known. One of the target rows with new bits is returned in `next` to be followed. All
 * lanes of a warp call this together, each with its own steps or none. Without that, lanes would
 * diverge at the first difference and wait for every read separately. */
template <int W>
__device__ static void take_steps(const wf__gpu_compose &c, const direction &d,
                                  const wf__gpu_pair &pair, narrow<W> &n, u64 begin, u64 end,
                                  u32 stride, bool known, wf__gpu_step only, bool may_follow,
                                  follow<W> &next) {
  u32 kind = NO_ARC;
  next.begin = next.end = 0;
  next.known = false;
  for (u64 i = begin; __any_sync(~0u, i < end); i += stride) {
    if (i < end) {
      const wf__gpu_step step = known ? only : load_step(&d.steps[i]);
      const u64 word_off = word_off_of(pair, step.row);
      wf__gpu_step after = step; /* loaded early, while bits are moved and set */
      u64 have[W], added[W], was[W];
      if (step.next != NO_ARC) after = load_step(&d.steps[step.next]);
      load_narrow<W>(d, word_off, pair.num_words, have);
      if (step.kind != kind) move_narrow(c, d, pair, kind = step.kind, n);
      set_narrow<W>(d, word_off, pair.num_words, have, n, added, was);
      if (keep_new<W>(added, was)) pass_on(c, d, step, after, word_off, added, may_follow, next);
    }
    __syncwarp();
  }
}

/* Takes steps, then follows the rows after them, such as a word of a lexicon to its end in one
 * level. */
template <int W>
__device__ static void walk_steps(const wf__gpu_compose &c, const direction &d,
                                  const wf__gpu_pair &pair, narrow<W> &n, u64 begin, u64 end,
                                  u32 stride) {
  follow<W> next;
  take_steps<W>(c, d, pair, n, begin, end, stride, false, {}, true, next);
  for (u32 hop = 1; __any_sync(~0u, next.begin != next.end); hop++) {
    for (u32 w = 0; w < W; w++) n.in[w] = next.bits[w];
    take_steps<W>(c, d, pair, n, next.begin, next.end, 1, next.known, next.only, hop < MAX_HOPS,
                  next);
  }
}

/* Heavy rows: one level saves their fresh bits, the next level processes them with all blocks, so
 * that every block sees the same bits. */
__device__ static u64 heavy_at(const wf__gpu_compose &c, const direction &d, u32 level, u64 heavy) {
  return (d.back ? 2 * c.num_heavy[0] : 0) + (level & 1) * c.num_heavy[d.back] + heavy;
}

template <int W>
__device__ static void defer_heavy(const wf__gpu_compose &c, const direction &d) {
  for (u64 h = (u64)d.block * THREADS + threadIdx.x; h < c.num_heavy[d.back];
       h += (u64)d.num_blocks * THREADS) {
    u32 row = c.heavy[d.back][h], *dirty = &dirty_of(c, d, d.level)[row];
    if (__ldcg(dirty) == 0) continue;
    *dirty = 0;
    u64 in[W], at = heavy_at(c, d, d.level + 1, h), *bits = c.heavy_bits + at * W;
    take_narrow<W>(d, c.rows[row].word_off, c.pairs[c.rows[row].pair].num_words, in);
    for (u32 w = 0; w < W; w++) bits[w] = in[w];
    c.heavy_level[at] = d.level + 2;
    if (__ldcg(count_of(d, d.level + 1)) == 0) *count_of(d, d.level + 1) = 1;
  }
}

template <int W>
__device__ static void visit_chunks(const wf__gpu_compose &c, const direction &d) {
  for (u64 i = d.block; i < c.num_chunks[d.back]; i += d.num_blocks) {
    wf__gpu_chunk chunk = c.chunks[d.back][i];
    const u64 at = heavy_at(c, d, d.level, chunk.heavy);
    if (__ldcg(&c.heavy_level[at]) != d.level + 1) continue;
    u32 row = c.heavy[d.back][chunk.heavy];
    u64 begin = d.step_off[row] + chunk.first, end = d.step_off[row + 1];
    if (begin + WF__GPU_CHUNK < end) end = begin + WF__GPU_CHUNK;
    narrow<W> n;
    for (u32 w = 0; w < W; w++) n.in[w] = __ldcg(&c.heavy_bits[at * W + w]);
    walk_steps(c, d, c.pairs[c.rows[row].pair], n, begin + threadIdx.x, end, THREADS);
  }
}

/* Looks at every row, 32 rows a warp. A row with many steps is processed by the whole warp. The
 * heaviest rows are not visited here. */
template <int W>
__device__ static void visit_narrow(const wf__gpu_compose &c, const direction &d) {
  enum { WARPS = THREADS / 32 };
  const u32 lane = threadIdx.x & 31;
  const u64 stride = (u64)d.num_blocks * THREADS;
  u32 *const dirty = dirty_of(c, d, d.level);
  u64 row = (u64)d.block * THREADS + threadIdx.x;
  u32 next_mark = row < c.num_rows ? __ldcg(&dirty[row]) : 0;
  for (u64 base = (u64)d.block * WARPS * 32 + (threadIdx.x & ~31u); base < c.num_rows;
       base += stride, row += stride) {
    const u32 mark = next_mark;
    next_mark = row + stride < c.num_rows ? __ldcg(&dirty[row + stride]) : 0;
    if (!__any_sync(~0u, mark != 0)) continue;
    u64 begin = 0, end = 0;
    if (mark != 0) {
      begin = d.step_off[row];
      end = d.step_off[row + 1];
    }
    const bool mine = mark != 0 && end - begin <= WF__GPU_HEAVY_STEPS,
               light = end - begin <= MAX_LIGHT;
    if (mine) dirty[row] = 0;
    narrow<W> n;
    for (u32 rows = __ballot_sync(~0u, mine && !light);;
         rows &= rows - 1) { /* first the rows with many steps, then all light ones at once */
      const bool together = rows != 0, takes = together || (mine && light);
      const u64 from = base + (together ? (u32)__ffs((int)rows) - 1 : lane);
      wf__gpu_row info = {0, 0, 0};
      if (takes) info = c.rows[from];
      const wf__gpu_pair &pair = c.pairs[info.pair];
      u64 first = 0, last = 0;
      if (takes) {
        first = d.step_off[from] + (together ? lane : 0);
        last = d.step_off[from + 1];
      }
      if (together) {
        u64 bits =
            lane < pair.num_words ? atomicExch((ull *)&d.fresh[info.word_off + lane], 0ull) : 0;
        for (u32 w = 0; w < W; w++) n.in[w] = __shfl_sync(~0u, bits, (int)w);
      } else if (takes) {
        take_narrow<W>(d, info.word_off, pair.num_words, n.in);
      }
      __syncwarp();
      walk_steps(c, d, pair, n, first, last, together ? 32 : 1);
      if (!together) break;
    }
    __syncwarp();
  }
}

/* --- other rows: a warp or block visits a row -------------------------------------------- */

template <int GROUP>
__device__ static void sync_group() {
  if (GROUP == 32)
    __syncwarp();
  else
    __syncthreads();
}

/* A group's shared memory: the row's fresh bits; a list of the states among LIST of these bits; the
 * bits moved along as many kinds of steps as fit. */
template <int GROUP>
struct group_memory {
  enum { BITS = 32, LIST = BITS * GROUP, LIST_WORDS = LIST / 64 };
  u64 *in, *out;
  uint16_t *list;
  u32 *count;
  u32 num_out; /* words of `out` */

  __host__ __device__ static size_t bytes(u32 max_words, u32 num_out) {
    return ((size_t)max_words + num_out + 1) * sizeof(u64) + LIST * sizeof(uint16_t);
  }
  __device__ void place(u64 *memory, u32 max_words, u32 out_words) {
    in = memory;
    out = in + max_words;
    count = (u32 *)(out + out_words);
    list = (uint16_t *)(out + out_words + 1);
    num_out = out_words;
  }
};

/* Lists the states of `num_words` words of `in`, in no particular order. */
template <int GROUP>
__device__ static void list_states(const group_memory<GROUP> &m, const u64 *in, u32 num_words,
                                   u32 rank) {
  typedef group_memory<GROUP> memory;
  if (rank == 0) *m.count = 0;
  sync_group<GROUP>();
  u32 first = rank * memory::BITS, bits = 0;
  if (first < num_words * 64) bits = (u32)(in[first / 64] >> (first & 63));
  u32 count = (u32)__popc(bits), lane = rank & 31, sum = count, base = 0;
  for (u32 distance = 1; distance < 32; distance *= 2) {
    u32 other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31 && sum != 0) base = atomicAdd(m.count, sum);
  base = __shfl_sync(~0u, base, 31) + sum - count;
  for (; bits != 0; bits &= bits - 1)
    m.list[base++] = (uint16_t)(first + (u32)__ffs((int)bits) - 1);
  sync_group<GROUP>();
}

/* Moves the listed states along the runs [0, num_kinds). A work item is a (state, kind), so that
 * threads are busy even if there are few states or few kinds. */
template <int GROUP>
__device__ static void move_states(const wf__gpu_compose &c, const direction &d,
                                   const wf__gpu_pair &pair, const group_memory<GROUP> &m,
                                   const wf__gpu_run *runs, u32 num_kinds, u32 first_state,
                                   u32 rank) {
  u32 *out = (u32 *)m.out, row_halves = pair.num_words * 2;
  const u32 count = *m.count, more_states = GROUP / num_kinds, more_kinds = GROUP % num_kinds;
  for (u32 i = rank / num_kinds, q = rank % num_kinds; i < count;
       i += more_states, q += more_kinds) {
    if (q >= num_kinds) {
      q -= num_kinds;
      if (++i >= count) break;
    }
    const u32 state = first_state + m.list[i], kind = runs[q].kind;
    u32 *const row = out + q * row_halves;
    if (kind < STEP_LABEL) {
      if (mask_of(c, pair, kind)[state / 64] >> (state & 63) & 1)
        atomicOr(&row[state / 32], 1u << (state & 31));
      continue;
    }
    for_targets(moves_of(c, pair, (u32)d.back), kind - STEP_LABEL, state,
                [&](u32 to) { atomicOr(&row[to >> 5], 1u << (to & 31)); });
  }
}

template <int GROUP>
__device__ static void visit_row(const wf__gpu_compose &c, const direction &d, u32 row,
                                 const group_memory<GROUP> &m, u32 rank) {
  const wf__gpu_pair &pair = c.pairs[c.rows[row].pair];
  const u32 num_words = pair.num_words, most_kinds = m.num_out / num_words;
  const u64 word_off = word_off_of(pair, row), runs_end = c.run_off[d.back][row + 1];
  for (u32 w = rank; w < num_words; w += GROUP) {
    u64 *fresh = &d.fresh[word_off + w];
    m.in[w] = __ldcg(fresh) != 0 ? atomicExch((ull *)fresh, 0ull) : 0;
  }
  for (u64 first_run = c.run_off[d.back][row]; first_run < runs_end; first_run += most_kinds) {
    const wf__gpu_run *runs = c.runs[d.back] + first_run;
    u32 num_kinds = (u32)(runs_end - first_run < most_kinds ? runs_end - first_run : most_kinds);
    for (u32 w = rank; w < num_kinds * num_words; w += GROUP) m.out[w] = 0;
    for (u32 w = 0; w < num_words; w += group_memory<GROUP>::LIST_WORDS) {
      u32 some = num_words - w < group_memory<GROUP>::LIST_WORDS ? num_words - w
                                                                 : group_memory<GROUP>::LIST_WORDS;
      sync_group<GROUP>();
      list_states<GROUP>(m, m.in + w, some, rank);
      move_states<GROUP>(c, d, pair, m, runs, num_kinds, w * 64, rank);
    }
    sync_group<GROUP>();
    u64 begin = runs[0].first,
        end = first_run + num_kinds < runs_end ? runs[num_kinds].first : d.step_off[row + 1];
    const u32 more_steps = GROUP / num_words, more_words = GROUP % num_words,
              runs_before = (u32)(first_run - c.run_off[d.back][row]);
    u32 w = rank % num_words;
    for (u64 i = begin + rank / num_words; i < end;
         i += more_steps, w += more_words) { /* a work item is a (step, word) */
      if (w >= num_words) {
        w -= num_words;
        if (++i >= end) break;
      }
      const wf__gpu_step step = d.steps[i];
      const u64 add = m.out[(step.run - runs_before) * num_words + w],
                at = word_off_of(pair, step.row) + w;
      if (add != 0 && add_word(d, at, add, __ldcg(&d.bits[at])) != 0)
        mark_dirty<GROUP>(c, d, step.row, d.level + 1);
    }
    sync_group<GROUP>();
  }
  sync_group<GROUP>();
}

/* --- levels ------------------------------------------------------------------------------ */

/* Sets the first bits of a direction, for the visits of its first level. */
template <int GROUP>
__device__ static void seed(const wf__gpu_compose &c, const direction &d) {
  u64 thread = (u64)blockIdx.x * THREADS + threadIdx.x, num_threads = (u64)gridDim.x * THREADS;
  if (!d.back) {
    for (u64 p = thread; p < c.num_pairs; p += num_threads) {
      const wf__gpu_pair &pair = c.pairs[p];
      if (pair.num_b == 0) continue;
      add_word(d, c.rows[pair.start_row].word_off + pair.start_b / 64,
               (u64)1 << (pair.start_b & 63), 0);
      mark_dirty<GROUP>(c, d, pair.start_row, d.level);
    }
    return;
  }
  for (u64 at = thread; at < c.num_words; at += num_threads) {
    u32 row = c.word_row[at];
    const wf__gpu_row info = c.rows[row];
    if (info.a_final == INFINITY) continue;
    u64 add = mask_of(c, c.pairs[info.pair], WF__GPU_NUM_MASKS - 1)[at - info.word_off];
    if (add != 0 && add_word(d, at, add, 0) != 0) mark_dirty<GROUP>(c, d, row, d.level);
  }
}

/* Visits the rows of a level. */
template <int GROUP, int W>
__device__ static void visit_level(const wf__gpu_compose &c, const direction &d, u32 count,
                                   const group_memory<GROUP> &m) {
  if constexpr (GROUP == 1) {
    if (count == 0) return;
    const direction own = d; /* copied into registers */
    defer_heavy<W>(c, own);
    visit_chunks<W>(c, own);
    visit_narrow<W>(c, own);
  } else {
    u32 group = threadIdx.x / GROUP, per_block = THREADS / GROUP;
    for (u32 i = d.block * per_block + group; i < count; i += d.num_blocks * per_block)
      visit_row<GROUP>(c, d, list_of(c, d, d.level)[i], m, threadIdx.x % GROUP);
  }
}

/* Runs levels until no direction finds anything new. `mine` is the direction of this block. */
template <int GROUP, int W>
__device__ static void run_levels(const wf__gpu_compose &c, direction *directions,
                                  int num_directions, int mine, const group_memory<GROUP> &m) {
  cg::grid_group grid = cg::this_grid();
  u32 begin = directions[0].level;
  if (blockIdx.x == 0 && threadIdx.x < 6) c.counts[threadIdx.x] = 0;
  grid.sync();
  for (int k = 0; k < num_directions; k++) seed<GROUP>(c, directions[k]);
  grid.sync();
  for (;;) {
    u32 counts[2] = {0, 0};
    for (int k = 0; k < num_directions; k++)
      counts[k] = __ldcg(count_of(directions[k], directions[k].level));
    if (counts[0] + counts[1] == 0) break;
    if (blockIdx.x == 0 && threadIdx.x < (u32)num_directions)
      *count_of(directions[threadIdx.x], directions[threadIdx.x].level + 2) = 0;
    visit_level<GROUP, W>(c, directions[mine], counts[mine], m);
    for (int k = 0; k < num_directions; k++) directions[k].level++;
    grid.sync();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0)
    c.stats[directions[0].back] += directions[0].level - begin;
}

__device__ static direction direction_of(const wf__gpu_compose &c, int back, u32 level, u32 share) {
  direction d = {back,
                 c.step_off[back],
                 c.steps[back],
                 nullptr,
                 back ? c.kept : c.reached,
                 c.fresh[back],
                 c.dirty[back],
                 c.list[back],
                 c.counts + back * 3,
                 level,
                 blockIdx.x / share,
                 gridDim.x / share};
  return d;
}

template <int GROUP, int W>
__global__ static void __launch_bounds__(THREADS, GROUP == 1 ? 2 : 6)
    search_kernel(const __grid_constant__ wf__gpu_compose c) {
  WF__DYNAMIC_SHARED(u64, words_of_groups);
  group_memory<GROUP> m;
  m.place(
      words_of_groups + (size_t)(threadIdx.x / GROUP) *
                            (group_memory<GROUP>::bytes(c.max_words, c.out_words) / sizeof(u64)),
      c.max_words, c.out_words);
  if (c.both) {
    direction directions[2] = {direction_of(c, 0, 0, 2), direction_of(c, 1, 0, 2)};
    run_levels<GROUP, W>(c, directions, 2, (int)(blockIdx.x & 1), m);
    cg::this_grid().sync();
    for (u64 at = (u64)blockIdx.x * THREADS + threadIdx.x; at < c.num_words;
         at += (u64)gridDim.x * THREADS)
      c.kept[at] &= c.reached[at];
    return;
  }
  direction d = direction_of(c, 0, 0, 1);
  run_levels<GROUP, W>(c, &d, 1, 0, m);
  if (!c.connect) return;
  d = direction_of(c, 1, d.level, 1);
  d.limit = c.reached;
  cg::this_grid().sync();
  run_levels<GROUP, W>(c, &d, 1, 0, m);
}

#endif
