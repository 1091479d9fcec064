/* compose_pairs.cuh - the search of small pairs. In each direction one block, or a cluster of
 * blocks if pairs are few, searches a pair with all its bits in shared memory. So a level costs two
 * barriers of a block or cluster instead of one of the grid. Included by compose_kernels.cu.
 *
 * The rows are distributed over the blocks of a cluster in turn. A level has two parts. First each
 * block looks at the bits that were found for its rows; new ones are fresh. Then the fresh states
 * are moved along the steps of their rows. Each target bit is set, new or not, in the memory of the
 * block that owns the row, without reading it there. A cluster has two buffers for found bits, for
 * this level and the next, and one cluster barrier a level.
 *
 * Bits are processed in half words (32 states). A warp looks at up to 32 half words at a time,
 * fewer if that keeps all warps busy, and lists their fresh states. When the list is full, and at
 * the end, each thread takes a listed state with all steps of its row; if there are few states,
 * several threads share the steps of one. A row of many steps is processed by the whole warp. The
 * targets of a state under a label are in one word (`cells`). */
#ifndef WF_CUDA_COMPOSE_COMPOSE_PAIRS_CUH
#define WF_CUDA_COMPOSE_COMPOSE_PAIRS_CUH

enum {
  PAIR_LIST = 128,
  PAIR_STEP_BITS = 6,
  PAIR_MANY_STEPS = 32
}; /* a row with at most MANY_STEPS steps has less than 2^STEP_BITS */
/* A block alone on an SM uses all of its threads: a level is a chain of dependent reads, which gets
 * shorter the more warps share it. */
#ifdef WF__PAIR_THREADS
__host__ __device__ constexpr u32 pair_threads(int) { return WF__PAIR_THREADS; }
#else
__host__ __device__ constexpr u32 pair_threads(int ranks) { return ranks > 1 ? 1024 : 512; }
#endif

/* Half words [size] of the block's rows. */
struct pair_bits {
  u32 *fresh; /* found in the last level */
  u32 *done;  /* all bits found so far, including the fresh ones */
  u32 *found; /* found in this level; in a cluster, levels alternate between two buffers of
                 [room] */
  u32 size, room;
};
__host__ __device__ constexpr u32 num_found(int ranks) { return ranks > 1 ? 2 : 1; }

template <int RANKS>
struct pair_search {
  label_moves moves;
  const u64 *masks, *step_off; /* step_off: for the pair's rows */
  const wf__gpu_step *own;     /* the pair's steps */
  u64 base;                    /* global index of the pair's first step */
  u32 first_row, num_words;
  u32 back, rank, row_halves, per_row; /* per_row: 2^32 / row_halves, rounded up */

  __device__ void find(u32 row_address, u32 state) const {
    set_shared_bits<(RANKS > 1)>(row_address + (state >> 5) * 4, 1u << (state & 31));
  }

  /* Moves a state of a row along one step. */
  __device__ void take(u32 address, u32 state, const wf__gpu_step *at) const {
    const wf__gpu_step step = load_step(at);
    const u32 row = step.row - first_row;
    address += row / RANKS * row_halves * 4;
    if (RANKS > 1) address = address_of_rank(address, row % RANKS);
    if (step.kind < STEP_LABEL) {
      if ((masks[step.kind * num_words + state / 64] >> (state & 63) & 1) != 0)
        find(address, state);
      return;
    }
    for_targets(moves, step.kind - STEP_LABEL, state, [&](u32 to) { find(address, to); });
  }

  /* Moves the listed states along all steps of their rows. If there are few, several threads share
   * the steps of one. */
  __device__ void take_list(u32 address, const uint2 *list, u32 count, u32 lane) const {
    u32 sharing = 1;
    while (sharing < 8 && count * sharing <= 16) sharing *= 2;
    __syncwarp();
    for (u32 i = lane / sharing; i < count; i += 32) {
      const uint2 item = list[i];
      const wf__gpu_step *first = own + (item.y >> PAIR_STEP_BITS);
      for (u32 k = lane % sharing; k < (item.y & ((1u << PAIR_STEP_BITS) - 1)); k += sharing)
        take(address, item.x, first + k);
    }
    __syncwarp();
  }

  /* Processes the fresh bits of `num_halves` <= 32 half words from `first` on, then of as many
   * after each `stride`. Their states are listed; the list is processed whenever it is full. */
  __device__ void visit(const pair_bits &b, u32 address, u32 first, u32 num_halves, u32 stride,
                        u32 lane, uint2 *list) const {
    u32 pending = 0;
    for (; first < b.size; first += stride) {
      const u32 at = first + lane, fresh = lane < num_halves && at < b.size ? b.fresh[at] : 0;
      if (!__any_sync(~0u, fresh != 0)) continue;
      const u32 row = (u32)((u64)at * per_row >> 32), state = (at - row * row_halves) * 32;
      u32 begin = 0, length = 0;
      if (fresh != 0) {
        const u64 *off = step_off + (u64)row * RANKS + rank;
        begin = (u32)(off[0] - base);
        length = (u32)(off[1] - off[0]);
      }
      const bool many = length > PAIR_MANY_STEPS;
      u32 bits = many ? 0 : fresh, sum = (u32)__popc(bits);
      for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 other = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += other;
      }
      u32 place = pending + sum - (u32)__popc(bits);
      pending += __shfl_sync(~0u, sum, 31);
      for (;;) {
        for (; bits != 0 && place < PAIR_LIST; bits &= bits - 1)
          list[place++] =
              make_uint2(state + (u32)__ffs((int)bits) - 1, begin << PAIR_STEP_BITS | length);
        if (pending < PAIR_LIST) break;
        take_list(address, list, PAIR_LIST, lane);
        pending -= PAIR_LIST;
        place -= PAIR_LIST;
      }
      for (u32 rows = __ballot_sync(~0u, many); rows != 0; rows &= rows - 1) {
        const u32 from = (u32)__ffs((int)rows) - 1, first_state = __shfl_sync(~0u, state, from),
                  last = __shfl_sync(~0u, begin + length, from),
                  all = __shfl_sync(~0u, fresh, from);
        for (u32 k = __shfl_sync(~0u, begin, from) + lane; k < last; k += 32)
          for (u32 left = all; left != 0; left &= left - 1)
            take(address, first_state + (u32)__ffs((int)left) - 1, own + k);
      }
      __syncwarp();
    }
    take_list(address, list, pending, lane);
  }
};

template <int RANKS>
__device__ static void sync_ranks() {
  if constexpr (RANKS == 1)
    __syncthreads();
  else
    sync_cluster();
}

/* Searches level by level, starting from the bits in the first buffer of `found`, until a level
 * finds nothing. `votes` [2][RANKS]: which blocks have fresh bits, for this level and the next.
 * Returns the number of levels. */
template <int RANKS>
__device__ static u32 search_pair(const pair_search<RANKS> &search, const pair_bits &b,
                                  uint2 *lists, u32 *votes) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x & 31, num_warps = pair_threads(RANKS) / 32,
            wanted = (b.size + num_warps - 1) / num_warps, halves = wanted < 32 ? wanted : 32;
  for (u32 levels = 0;; levels++) {
    u32 *found = b.found + levels % num_found(RANKS) * b.room,
        *next = b.found + (levels + 1) % num_found(RANKS) * b.room,
        *vote = votes + (levels & 1) * RANKS;
    bool mine = false;
    for (u32 at = threadIdx.x; at < b.size; at += pair_threads(RANKS)) {
      u32 fresh = found[at] & ~b.done[at];
      b.fresh[at] = fresh;
      b.done[at] |= fresh;
      found[at] = 0;
      mine |= fresh != 0;
    }
    u32 any = (u32)__syncthreads_or(mine);
    if (RANKS > 1 && threadIdx.x < RANKS)
      store_of_rank(address_of_rank((u32)__cvta_generic_to_shared(&vote[search.rank]), threadIdx.x),
                    any != 0);
    const u32 address = (u32)__cvta_generic_to_shared(next);
    if (any != 0)
      search.visit(b, address, warp * halves, halves, num_warps * halves, lane,
                   lists + warp * PAIR_LIST);
    sync_ranks<RANKS>();
    for (int i = 0; RANKS > 1 && i < RANKS; i++) any |= ((volatile u32 *)vote)[i];
    if (any == 0) return levels;
  }
}

/* Sets the first bits: the start state, or the final states. */
template <int RANKS>
__device__ static void seed_pair(const wf__gpu_compose &c, const wf__gpu_pair &pair,
                                 const pair_search<RANKS> &search, const pair_bits &b) {
  for (u32 at = threadIdx.x; at < b.size; at += pair_threads(RANKS)) b.done[at] = 0;
  for (u32 at = threadIdx.x; at < b.room * num_found(RANKS); at += pair_threads(RANKS))
    b.found[at] = 0;
  __syncthreads();
  if (!search.back) {
    const u32 row = pair.start_row - pair.first_row;
    if (threadIdx.x == 0 && row % RANKS == search.rank)
      b.found[row / RANKS * search.row_halves + pair.start_b / 32] = 1u << (pair.start_b & 31);
  } else {
    const u32 *final_bits = (const u32 *)mask_of(c, pair, WF__GPU_NUM_MASKS - 1);
    for (u32 at = threadIdx.x; at < b.size; at += pair_threads(RANKS)) {
      u32 row = pair.first_row + at / search.row_halves * RANKS + search.rank;
      b.found[at] = c.rows[row].a_final != INFINITY ? final_bits[at % search.row_halves] : 0;
    }
  }
  sync_ranks<RANKS>(); /* no block may set bits before all are ready */
}

template <int RANKS>
__global__ static void __launch_bounds__(pair_threads(RANKS), RANKS > 1 ? 1 : 3)
    search_pairs_kernel(const __grid_constant__ wf__gpu_compose c) {
  if (RANKS > 1 && !WF__HAS_CLUSTERS) return;
  WF__DYNAMIC_SHARED(u64, pair_memory);
  const u32 rank = blockIdx.x % RANKS, cluster = blockIdx.x / RANKS,
            back = c.connect ? cluster & 1 : 0;
  const u64 p = c.connect ? cluster / 2 : cluster;
  const wf__gpu_pair &pair = c.pairs[p];
  if (pair.num_b == 0) return;
  const u64 words_end = p + 1 < c.num_pairs ? c.pairs[p + 1].word_base : c.num_words;
  const u32 row_halves = pair.num_words * 2,
            num_rows = (u32)(words_end - pair.word_base) / pair.num_words,
            size = (num_rows + RANKS - 1 - rank) / RANKS * row_halves;
  const u32 room = (num_rows + RANKS - 1) / RANKS *
                   row_halves; /* the same in all blocks, so that corresponding addresses match */
  u32 *votes = (u32 *)pair_memory, *halves = votes + 2 * WF__GPU_PAIR_RANKS;
  const u64 base = c.step_off[back][pair.first_row];
  const pair_search<RANKS> search = {moves_of(c, pair, back),
                                     mask_of(c, pair, 0),
                                     c.step_off[back] + pair.first_row,
                                     c.steps[back] + base,
                                     base,
                                     pair.first_row,
                                     pair.num_words,
                                     back,
                                     rank,
                                     row_halves,
                                     ~0u / row_halves + 1};
  const pair_bits b = {halves, halves + room, halves + 2 * room, size, room};
  seed_pair(c, pair, search, b);
  u32 levels =
      search_pair<RANKS>(search, b, (uint2 *)(halves + (2 + num_found(RANKS)) * room), votes);
  u32 *to = (u32 *)((back ? c.kept : c.reached) + pair.word_base);
  for (u32 at = threadIdx.x; at < size; at += pair_threads(RANKS))
    to[(at / row_halves * RANKS + rank) * row_halves + at % row_halves] = b.done[at];
  if (threadIdx.x == 0 && rank == 0) atomicMax(&c.stats[back], levels);
}

/* Kept are the states that both searches have found. */
__global__ static void both_kernel(const wf__gpu_compose c) {
  for (u64 at = (u64)blockIdx.x * THREADS + threadIdx.x; at < c.num_words;
       at += (u64)gridDim.x * THREADS)
    c.kept[at] &= c.reached[at];
}

/* The bytes of shared memory for the largest pair: votes, bits of a block's rows, lists. */
static size_t pair_shared_bytes(const wf__gpu_compose *c, int ranks) {
  size_t words_of_block =
      (size_t)(c->max_pair_words + (u64)(c->ranks - 1) * c->max_words) / (size_t)c->ranks;
  return 2 * WF__GPU_PAIR_RANKS * sizeof(u32) +
         words_of_block * (2 + num_found(ranks)) * sizeof(u64) +
         pair_threads(ranks) / 32 * PAIR_LIST * sizeof(uint2);
}

template <int RANKS>
static cudaError_t launch_pairs(const wf__gpu_compose *c, cudaStream_t stream) {
  size_t shared = pair_shared_bytes(c, RANKS);
  cudaError_t code =
      cudaFuncSetAttribute(search_pairs_kernel<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           (int)c->shared_bytes); /* always the same value: it applies to all host
                                                     threads */
  if (code != cudaSuccess) return code;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = RANKS;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(c->num_pairs * (c->connect ? 2 : 1) * RANKS));
  config.blockDim = dim3(pair_threads(RANKS));
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = RANKS > 1 ? 1 : 0;
  code = cudaLaunchKernelEx(&config, search_pairs_kernel<RANKS>, *c);
  return code == cudaSuccess && c->connect && !is_small(c)
             ? WF__LAUNCH(both_kernel, blocks_of(c->num_words), THREADS, 0, stream, *c)
             : code;
}

#endif
