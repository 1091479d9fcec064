/* backward_emit.cuh - the output of the backward pass (backward.cuh): the arcs of a frame in the
 * order of the lattice (docs/reference/semantics.md), so that the host need not sort.
 *
 *   staged   {slot of the source | its earlier arcs << 16; number or slot of the target; arc; bits
 *            of its score, or the state of a final token} in the lane's frontier, which the search
 *            no longer needs. One warp at a time stages the arcs of a token, in the graph's order
 *   levels   of the frame's tokens: the number of epsilon arcs on the longest path to the token
 *   ranks    numbers of the tokens: by level, then by key
 *   pages    the arcs by rank, in descending order, from the last frame to the first: the chain of
 *            pages is read from its end */
#ifndef WF_CUDA_LATTICE_BACKWARD_EMIT_CUH
#define WF_CUDA_LATTICE_BACKWARD_EMIT_CUH

#include "cuda/lattice/backward_table.cuh"

namespace wf_search {

constexpr u32 IN_FRAME =
    0x80000000u; /* of a staged target: a slot of the same table, else a number in the next frame */

#ifndef WF__BACKWARD_FEW
#define WF__BACKWARD_FEW 128
#endif
constexpr u32 FEW_RANKED =
    WF__BACKWARD_FEW; /* tokens of a frame that are compared each with each */
constexpr u32 BINS = 256;
static_assert(BACK_WARPS * 2 <= MAX_WARPS &&
                  sizeof(lane_shared<plain>::hist_all) >= BINS * sizeof(u32),
              "the bins must fit");

/* Bin of (level, key); bins are in their order. With levels there are four parts, the last of
 * which is one bin. (Rounding keeps the order of states.) */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::bin_of(const backward_table &table,
                                                               const u32 *levels, u32 slot) const {
  const u32 level = levels != NULL ? min(levels[slot], 3u) : 0,
            num_steps = levels != NULL ? BINS / 4 : BINS;
  const float step =
      __fmul_rn((float)state_of(table.keys[slot]), (float)num_steps / (float)p->graph.num_states);
  return level * num_steps + (level < 3 ? min((u32)step, num_steps - 1) : 0);
}

/* Stages arcs of the live threads of a warp; `slot`: of the source token, in the table whose
 * frame is written next. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::stage_links(bool live, u32 slot, u32 to, u32 arc,
                                                     u32 value) {
  backward_work &work = memory::work();
  const u32 votes = __ballot_sync(ALL, live), below = (1u << in_warp()) - 1;
  if (votes == 0) return;
  uint16_t *counts = memory::counts_at(p->lattices.backward_bits);
  const u32 peers = __match_any_sync(ALL, live ? slot : ALL),
            which = live ? counts[slot] + __popc(peers & below) : 0;
  __syncwarp();
  if (live && (peers & ~below) == 1u << in_warp()) counts[slot] = (uint16_t)(which + 1);
  u32 at = 0;
  if (in_warp() == 0) at = atomicAdd(&work.num_staged, (u32)__popc(votes));
  at = __shfl_sync(ALL, at, 0) + __popc(votes & below);
  if (live && at < MOST_STAGED)
    staged()[at] = make_uint4(slot | which << 16, to, arc, value);
  else if (live)
    work.no_room = 1;
  __syncwarp();
}

/* Computes the levels of the tokens from the frame's epsilon arcs, which make no cycle. Called
 * by the whole block, with a barrier before and after. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::find_levels(u32 count) {
  u32 *levels = memory::levels_at(p->lattices.backward_bits);
  bool changed = true;
  while (__syncthreads_or(changed) != 0) {
    changed = false;
    for (u32 i = tid(); i < count; i += BACK_THREADS) {
      const uint4 link = staged()[i];
      if ((link.y & IN_FRAME) == 0) continue;
      const u32 level = *(volatile u32 *)&levels[link.x & 0xffff] + 1, to = link.y & ~IN_FRAME;
      if (*(volatile u32 *)&levels[to] < level)
        changed = atomicMax(&levels[to], level) < level || changed;
    }
  }
}

/* Does the token in one slot come before the token in the other? */
template <class TABLE>
__device__ __forceinline__ bool comes_before(const TABLE &table, const u32 *levels, u32 slot,
                                             u32 level, typename TABLE::token_key key) {
  const u32 other = levels != NULL ? levels[slot] : 0;
  return other < level || (other == level && table.keys[slot] < key);
}

/* Ranks few tokens: each is compared with all others, by several threads a token. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::rank_few(const backward_table &table, const u32 *levels) {
  const u32 bits = p->lattices.backward_bits, size = *table.size;
  const uint16_t *counts = memory::counts_at(bits);
  u32 parts = 1;
  while (parts < 32 && 2 * parts * size <= BACK_THREADS) parts *= 2;
  const u32 part = in_warp() & (parts - 1);
  for (u32 base = warp() * 32; base < size * parts; base += BACK_THREADS) {
    const u32 i = (base + in_warp()) / parts;
    const u32 mine = table.places[min(i, size - 1)], level = levels != NULL ? levels[mine] : 0;
    const token_key key = table.keys[mine];
    u32 before = 0; /* tokens << 16 | their arcs */
    for (u32 k = part; k < size; k += parts) {
      const u32 slot = table.places[k];
      if (comes_before(table, levels, slot, level, key)) before += 0x10000u | counts[slot];
    }
    __syncwarp();
    for (u32 d = 1; d < parts; d <<= 1) before += __shfl_xor_sync(ALL, before, d);
    if (i < size && part == 0) {
      memory::ranks_at(bits)[mine] = (uint16_t)(before >> 16);
      memory::firsts_at(bits)[mine] = (uint16_t)before;
    }
  }
}

/* Ranks many tokens: puts them into ordered bins and compares them within a bin. Called by the
 * whole block, with a barrier before and after. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::rank_many(const backward_table &table, const u32 *levels) {
  const u32 bits = p->lattices.backward_bits, size = *table.size;
  const uint16_t *counts = memory::counts_at(bits);
  u32 *sums = memory::bin_sums(), *heads = memory::bin_heads();
  uint16_t *next = memory::followers_at(bits); /* in the bin: slot + 1; 0: none */
  for (u32 i = tid(); i < size; i += BACK_THREADS) {
    const u32 slot = table.places[i], bin = bin_of(table, levels, slot);
    next[slot] = (uint16_t)atomicExch(&heads[bin], slot + 1);
    atomicAdd(&sums[bin], 0x10000u | counts[slot]);
  }
  __syncthreads();
  if (warp() == 0) { /* what comes before each bin */
    u32 mine[BINS / 32], sum = 0;
#pragma unroll
    for (u32 k = 0; k < BINS / 32; k++) sum += mine[k] = sums[in_warp() * (BINS / 32) + k];
    u32 upto = sum;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      const u32 x = __shfl_up_sync(ALL, upto, d);
      if (in_warp() >= d) upto += x;
    }
    upto -= sum;
#pragma unroll
    for (u32 k = 0; k < BINS / 32; k++) {
      sums[in_warp() * (BINS / 32) + k] = upto;
      upto += mine[k];
    }
  }
  __syncthreads();
  for (u32 i = tid(); i < size; i += BACK_THREADS) {
    const u32 mine = table.places[i], level = levels != NULL ? levels[mine] : 0,
              bin = bin_of(table, levels, mine);
    u32 before = sums[bin];
    for (u32 slot = heads[bin]; slot != 0; slot = next[slot - 1])
      if (comes_before(table, levels, slot - 1, level, table.keys[mine]))
        before += 0x10000u | counts[slot - 1];
    memory::ranks_at(bits)[mine] = (uint16_t)(before >> 16);
    memory::firsts_at(bits)[mine] = (uint16_t)before;
  }
}

/* Numbers the table's tokens and places their arcs. Called by the whole block, with a barrier
 * before and after. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::rank_tokens(const backward_table &table, u32 num_staged) {
  const bool leveled = memory::work().any_epsilons != 0;
  const u32 *levels = leveled ? memory::levels_at(p->lattices.backward_bits) : NULL;
  if (leveled) find_levels(num_staged);
  if (*table.size <= FEW_RANKED)
    rank_few(table, levels);
  else
    rank_many(table, levels);
}

/* Reserves `count` entries after the last ones; links new pages to the previous ones. Called by
 * one thread. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::reserve_links(u32 count) {
  backward_work &work = memory::work();
  work.page_before = work.page;
  work.fill_before = work.fill;
  const u32 left = work.page == NO_PAGE ? 0 : WF__LANE_PAGE - work.fill;
  if (count <= left) {
    work.fill += count;
    return;
  }
  const u32 rest = count - left, num_pages = (rest + WF__LANE_PAGE - 2) / (WF__LANE_PAGE - 1);
  const u32 first = atomicAdd(p->lattices.pages_used, num_pages);
  work.no_pages = first >= p->lattices.pages_cap || num_pages > p->lattices.pages_cap - first;
  if (work.no_pages != 0) return;
  for (u32 page = first; page < first + num_pages; page++) {
    p->lattices.pages[(u64)page * WF__LANE_PAGE] =
        wf__lane_link{work.page + 1, WF__LANE_PAGE, 0, 0}; /* NO_PAGE + 1 is 0 */
    if (SCORED) p->lattices.page_contexts[(u64)page * WF__LANE_PAGE] = 0;
    work.page = page;
  }
  work.page_after = first;
  work.fill = 1 + rest - (num_pages - 1) * (WF__LANE_PAGE - 1);
}

/* Writes the staged arcs of frame `number` to pages. Called by the whole block, after
 * reserve_links and a barrier. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::write_links(u32 number, const backward_table &table,
                                                     u32 count) {
  const backward_work &work = memory::work();
  const u32 bits = p->lattices.backward_bits, size = *table.size,
            left = work.page_before == NO_PAGE ? 0 : WF__LANE_PAGE - work.fill_before;
  const uint16_t *ranks = memory::ranks_at(bits), *firsts = memory::firsts_at(bits);
  for (u32 i = tid(); i < count; i += BACK_THREADS) {
    const uint4 link = staged()[i];
    const u32 slot = link.x & 0xffff, place = count - 1 - (firsts[slot] + (link.x >> 16)),
              to = link.y & IN_FRAME ? ranks[link.y & ~IN_FRAME] : link.y;
    const u32 page =
        place < left ? work.page_before : work.page_after + (place - left) / (WF__LANE_PAGE - 1);
    const u64 at =
        (u64)page * WF__LANE_PAGE +
        (place < left ? work.fill_before + place : 1 + (place - left) % (WF__LANE_PAGE - 1));
    p->lattices.pages[at] =
        wf__lane_link{number << 16 | ranks[slot], size << 16 | to, link.z, link.w};
    if (SCORED) p->lattices.page_contexts[at] = context_of(table.keys[slot]);
  }
}

/* Sorts the staged arcs of frame `number` and writes them to pages; the table has all tokens of
 * the frame. Returns false if pages ran out or a table was too small. Called by the whole block
 * after a barrier. `next` is a step done while the arcs are written; a barrier follows it. */
template <class POLICY, int RANKS>
template <typename F>
__device__ bool searcher<POLICY, RANKS>::put_frame(u32 number, const backward_table &table,
                                                   F next) {
  backward_work &work = memory::work();
  const u32 count = work.num_staged, size = *table.size;
  if (work.full != 0 || work.no_room != 0) return false;
  rank_tokens(table, count);
  if (tid() == BACK_THREADS - 1) {
    reserve_links(count);
    work.num_states += size;
    work.num_links += count;
  }
  __syncthreads();
  if (work.no_pages != 0) return false;
  write_links(number, table, count);
  next();
  __syncthreads();
  return true;
}

/* Writes to the last page how much of it is used, and clears the rest, as whole pages are
 * copied. Called by the whole block. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::close_page() {
  const u32 page = memory::work().page, fill = memory::work().fill;
  if (page == NO_PAGE) return;
  wf__lane_link *const links = p->lattices.pages + (u64)page * WF__LANE_PAGE;
  for (u32 i = fill + tid(); i < WF__LANE_PAGE; i += BACK_THREADS) {
    links[i] = wf__lane_link{0, 0, 0, 0};
    if (SCORED) p->lattices.page_contexts[(u64)page * WF__LANE_PAGE + i] = 0;
  }
  if (tid() == 0) links[0].to = fill;
}

}  // namespace wf_search

#endif
