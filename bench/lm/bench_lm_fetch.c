/* bench_lm_fetch.c - compares ways to fetch the n-grams of a batch from host memory to a GPU: each
 * lane separately, or all lanes together with each n-gram once.
 *
 *     bench_lm_fetch [--gigabytes=8] [--record=3|4|8] [--lanes=400] [--rounds=1] [--frames=N]
 *     [--threads=0] [--seconds=0.2] REQUESTS...
 *
 * REQUESTS are the requests of a batch in a frame:
 *     trace=FILE    n-grams that a search requested (bench_lm_traffic --trace), from its first
 *                   --lanes lanes
 *     missed=FILE   those of them that the cache did not have
 *     random=N/D    N requests for D different records, evenly over the lanes
 * A record has `record` 32-bit words. Records are at random places of a table of `gigabytes` in
 * page-locked memory. The ways to fetch them:
 *     direct   each lane's block reads its records, as the search does
 *     hashed   one kernel enters all requests in a hash table, where the first request for a record
 *              reads it; another kernel looks the records up for the lanes
 *     sorted   requests are sorted and deduplicated; a kernel reads the records; lanes find
 *              them by binary search
 *     host     the deduplicated list goes to the host, whose threads gather the records for one
 * copy to the GPU
 * --rounds: the requests of a frame come in this many dependent rounds, as in a search; each round
 * is a separate fetch. --frames: largest number of frames to take from a trace.
 *
 * Prints one JSON object per line. The first describes the table and the cycles of a single read
 * without other traffic. The others have microseconds per frame of the batch, summed over rounds. A
 * round's records are at different places of the table each time, so that caches only help with
 * repetitions within the requests. Every way must give each block of a lane the correct sum of its
 * records' words; otherwise the program ends with an error. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "common.h"
#include "lm_trace.h"
#include "math/hash.h"

#ifdef WARPFST_BENCH_CUDA
#include <pthread.h>

#include "cuda/bench/lm_fetch.h"

enum {
  MAX_ITEMS = 64,
  MAX_THREADS = 128,
  AHEAD = 16,
  PIECE = 256,
  CHECKED = 3,
  PROCESSORS = 132,
  LEAST_DISTINCT = 4 << 20,
  MOST_PLACINGS = 1024
};

struct arguments {
  double gigabytes, seconds;
  int record, lanes, rounds, frames, threads, num_items;
  const char *items[MAX_ITEMS];
};

/* The requests of each lane in a round: numbers of n-grams. */
struct round {
  uint32_t *numbers, *first; /* first: [lanes + 1] */
  uint32_t num, num_distinct;
};

struct rounds {
  struct round *data;
  uint32_t count, lanes, frames;
  uint32_t most, most_blocks; /* largest number of requests; of blocks */
};

/* Threads that spin until the next list arrives, because a search would need its n-grams at once.
 */
struct gatherers {
  pthread_t threads[MAX_THREADS];
  int count;
  atomic_uint turn, next, working;
  atomic_bool ends;
  const uint32_t *table, *list;
  uint32_t *to;
  uint32_t num, words;
};

struct bench {
  struct arguments a;
  lm_fetch_table table;
  uint32_t *h_table;
  lm_fetch_room room;
  struct gatherers gatherers;
  uint32_t *h_gathered; /* page-locked */
  unsigned long long *h_sums;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  uint32_t turn;
};

/* A round with its records at one of several sets of places in the table; in device memory. */
struct placed {
  lm_fetch_frame frame;
  unsigned long long *sums; /* host memory: the sums that every way must give; NULL: not checked */
};

static void try(int code, const char *what) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "bench_lm_fetch: %s: %s\n", what, cudaGetErrorString((cudaError_t)code));
  exit(2);
}

static void *on_device(size_t bytes) {
  void *memory;
  try(cudaMalloc(&memory, bytes > 0 ? bytes : 1), "device memory");
  return memory;
}

static void *page_locked(size_t bytes) {
  void *memory;
  try(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "page-locked memory");
  return memory;
}

/* --- the table --------------------------------------------------------------------------- */

static uint32_t word_at(uint64_t place, int word) {
  return (uint32_t)wf__mix64(place << 3 | (uint64_t)word);
}

static void fill_piece(void *user, uint64_t item, int worker) {
  const struct bench *b = user;
  (void)worker;
  for (uint64_t place = item << 16; place < (item + 1) << 16; place++)
    for (int k = 0; k < b->table.record_words; k++)
      b->h_table[place * (uint64_t)b->table.record_words + (uint64_t)k] = word_at(place, k);
}

static void make_table(struct bench *b) {
  wf_error err = {0};
  wf__pool *pool;
  b->table.record_words = b->a.record;
  b->table.place_bits = 16;
  while ((double)((uint64_t)8 * (uint64_t)b->a.record << b->table.place_bits) <=
         b->a.gigabytes * 1e9)
    b->table.place_bits++;
  b->h_table = page_locked((uint64_t)4 * (uint64_t)b->a.record << b->table.place_bits);
  b->table.records = b->h_table;
  check(wf__pool_create(b->a.threads, &pool, &err), &err);
  wf__pool_run(pool, (uint64_t)1 << (b->table.place_bits - 16), fill_piece, b);
  wf__pool_free(pool);
}

/* --- requests ---------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b) {
  return (*(const uint32_t *)a > *(const uint32_t *)b) -
         (*(const uint32_t *)a < *(const uint32_t *)b);
}

static uint32_t count_distinct(const uint32_t *numbers, uint32_t num) {
  uint32_t *sorted = allocate(num, sizeof *sorted), distinct = 0;
  memcpy(sorted, numbers, num * sizeof *sorted);
  qsort(sorted, num, sizeof *sorted, compare_numbers);
  for (uint32_t i = 0; i < num; i++) distinct += i == 0 || sorted[i] != sorted[i - 1];
  free(sorted);
  return distinct;
}

/* Splits the requests of each lane into `num_rounds` equal parts, in order, and returns part
 * `which`. */
static struct round part_of(const uint32_t *numbers, const uint32_t *counts, uint32_t lanes,
                            uint32_t which, uint32_t num_rounds) {
  struct round round = {.first = allocate(lanes + 1, sizeof *round.first)};
  uint64_t all = 0;
  for (uint32_t lane = 0; lane < lanes; lane++) all += counts[lane];
  round.numbers = allocate(all, sizeof *round.numbers);
  for (uint32_t lane = 0; lane < lanes; numbers += counts[lane++]) {
    const uint32_t begin = (uint32_t)((uint64_t)counts[lane] * which / num_rounds),
                   end = (uint32_t)((uint64_t)counts[lane] * (which + 1) / num_rounds);
    memcpy(round.numbers + round.num, numbers + begin, (end - begin) * sizeof *numbers);
    round.num += end - begin;
    round.first[lane + 1] = round.num;
  }
  round.num_distinct = count_distinct(round.numbers, round.num);
  return round;
}

static void add_frame(struct rounds *rounds, const uint32_t *numbers, const uint32_t *counts,
                      uint32_t num_rounds) {
  rounds->data = realloc(rounds->data, (rounds->count + num_rounds) * sizeof *rounds->data);
  if (rounds->data == NULL) fail("out of memory");
  for (uint32_t r = 0; r < num_rounds; r++) {
    struct round *round = &rounds->data[rounds->count++];
    *round = part_of(numbers, counts, rounds->lanes, r, num_rounds);
    if (round->num > rounds->most) rounds->most = round->num;
  }
  rounds->frames++;
}

static void read_trace(const struct arguments *a, const char *path, bool missed,
                       struct rounds *out) {
  struct lm_trace_header header;
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(&header, sizeof header, 1, file) != 1 || header.magic != LM_TRACE_MAGIC)
    fail("not a trace file of bench_lm_traffic");
  out->lanes = header.lanes < (uint32_t)a->lanes ? header.lanes : (uint32_t)a->lanes;
  uint32_t *counts = allocate(header.lanes, sizeof *counts);
  for (uint32_t frame = 0; frame < header.frames && frame < (uint32_t)a->frames; frame++) {
    if (fread(counts, sizeof *counts, header.lanes, file) != header.lanes)
      fail("the trace ends too early");
    uint64_t all = 0, kept = 0, at = 0;
    for (uint32_t lane = 0; lane < header.lanes; lane++) all += counts[lane];
    uint32_t *entries = allocate(all, sizeof *entries);
    if (fread(entries, sizeof *entries, all, file) != all) fail("the trace ends too early");
    for (uint32_t lane = 0; lane < header.lanes; lane++) {
      const uint64_t end = at + counts[lane], begin = kept;
      for (; at < end; at++)
        if (!missed || (entries[at] & 1)) entries[kept++] = entries[at] >> 1;
      counts[lane] = (uint32_t)(kept - begin);
    }
    add_frame(out, entries, counts, (uint32_t)a->rounds);
    free(entries);
  }
  free(counts);
  fclose(file);
}

static void make_random(const struct arguments *a, unsigned num, unsigned distinct,
                        struct rounds *out) {
  if (distinct == 0 || distinct > num || num > 1u << 24)
    fail("random=N/D: 1 <= D <= N <= 16777216");
  out->lanes = (uint32_t)a->lanes;
  uint32_t *numbers = allocate(num, sizeof *numbers),
           *counts = allocate(out->lanes, sizeof *counts);
  for (uint32_t i = 0; i < num; i++)
    numbers[i] = i < distinct ? i : (uint32_t)(wf__mix64(i) % distinct);
  for (uint32_t i = num - 1; i > 0;
       i--) { /* shuffles, so that repetitions are spread over the batch */
    const uint32_t k = (uint32_t)(wf__mix64((uint64_t)i << 32) % (i + 1)), number = numbers[i];
    numbers[i] = numbers[k];
    numbers[k] = number;
  }
  for (uint32_t lane = 0; lane < out->lanes; lane++)
    counts[lane] =
        (uint32_t)((uint64_t)num * (lane + 1) / out->lanes - (uint64_t)num * lane / out->lanes);
  add_frame(out, numbers, counts, (uint32_t)a->rounds);
  free(numbers);
  free(counts);
}

static struct rounds rounds_of(const struct arguments *a, const char *item) {
  struct rounds rounds = {0};
  unsigned num, distinct;
  if (sscanf(item, "random=%u/%u", &num, &distinct) == 2)
    make_random(a, num, distinct, &rounds);
  else
    read_trace(a, strchr(item, '=') + 1, item[0] == 'm', &rounds);
  return rounds;
}

static void free_rounds(struct rounds *rounds) {
  for (uint32_t i = 0; i < rounds->count; i++) {
    free(rounds->data[i].numbers);
    free(rounds->data[i].first);
  }
  free(rounds->data);
}

/* --- requests with places in the table --------------------------------------------------- */

/* The correct sum for each block of each lane. */
static unsigned long long *sums_of(const struct bench *b, const struct round *round,
                                   const uint32_t *places, const lm_fetch_frame *frame) {
  unsigned long long *sums = allocate((size_t)frame->lanes * frame->blocks_per_lane, sizeof *sums);
  for (uint32_t lane = 0; lane < frame->lanes; lane++)
    for (uint32_t i = round->first[lane]; i < round->first[lane + 1]; i++)
      for (int k = 0; k < b->table.record_words; k++)
        sums[lane * frame->blocks_per_lane +
             (i - round->first[lane]) / 1024 % frame->blocks_per_lane] += word_at(places[i], k);
  return sums;
}

static struct placed place_round(const struct bench *b, const struct round *round, uint32_t lanes,
                                 uint64_t placing) {
  struct placed placed = {
      .frame = {.num = round->num,
                .lanes = lanes,
                .blocks_per_lane = lanes * 2 <= PROCESSORS ? PROCESSORS / lanes : 1}};
  uint32_t *places = allocate(round->num, sizeof *places);
  for (uint32_t i = 0; i < round->num; i++)
    places[i] =
        (uint32_t)(wf__mix64(placing << 32 | round->numbers[i]) >> (64 - b->table.place_bits));
  uint32_t *d_places = on_device(round->num * sizeof *places),
           *d_first = on_device((lanes + 1) * sizeof *d_first);
  try(cudaMemcpy(d_places, places, round->num * sizeof *places, cudaMemcpyHostToDevice),
      "requests");
  try(cudaMemcpy(d_first, round->first, (lanes + 1) * sizeof *d_first, cudaMemcpyHostToDevice),
      "requests");
  placed.frame.places = d_places;
  placed.frame.first = d_first;
  if (placing < CHECKED) placed.sums = sums_of(b, round, places, &placed.frame);
  free(places);
  return placed;
}

static void free_placed(struct placed *placed) {
  cudaFree((void *)(uintptr_t)placed->frame.places);
  cudaFree((void *)(uintptr_t)placed->frame.first);
  free(placed->sums);
}

/* --- the host gathers -------------------------------------------------------------------- */

static void gather_pieces(struct gatherers *g) {
  for (;;) {
    const uint32_t begin = atomic_fetch_add(&g->next, PIECE),
                   end = begin + PIECE < g->num ? begin + PIECE : g->num;
    if (begin >= g->num) return;
    for (uint32_t i = begin; i < end; i++) {
      if (i + AHEAD < end) __builtin_prefetch(g->table + (uint64_t)g->list[i + AHEAD] * g->words);
      memcpy(g->to + (uint64_t)i * g->words, g->table + (uint64_t)g->list[i] * g->words,
             g->words * sizeof *g->to);
    }
  }
}

static void *gatherer(void *user) {
  struct gatherers *g = user;
  for (unsigned seen = 0;;) {
    while (atomic_load_explicit(&g->turn, memory_order_acquire) == seen)
      if (atomic_load_explicit(&g->ends, memory_order_relaxed)) return NULL;
    seen++;
    gather_pieces(g);
    atomic_fetch_sub(&g->working, 1);
  }
}

static void gather(struct gatherers *g, uint32_t num) {
  g->num = num;
  atomic_store(&g->next, 0);
  atomic_store(&g->working, (unsigned)g->count);
  atomic_fetch_add_explicit(&g->turn, 1, memory_order_release);
  gather_pieces(g);
  while (atomic_load(&g->working) > 0) {
  }
}

static void start_gatherers(struct bench *b) {
  struct gatherers *g = &b->gatherers;
  const int threads = b->a.threads > 0 ? b->a.threads : wf__num_cpus();
  atomic_store(&g->turn, 0); /* the turn that new threads start with */
  for (; g->count + 1 < threads && g->count < MAX_THREADS; g->count++)
    if (pthread_create(&g->threads[g->count], NULL, gatherer, g) != 0)
      fail("cannot start a thread");
}

static void stop_gatherers(struct gatherers *g) {
  atomic_store(&g->ends, true);
  for (int i = 0; i < g->count; i++) pthread_join(g->threads[i], NULL);
  g->count = 0;
  atomic_store(&g->ends, false);
}

/* --- the ways ---------------------------------------------------------------------------- */

static void direct(struct bench *b, const lm_fetch_frame *frame) {
  try(lm_fetch_direct(&b->table, frame, &b->room, b->stream), "direct");
}

static void hashed(struct bench *b, const lm_fetch_frame *frame) {
  try(lm_fetch_hashed(&b->table, frame, &b->room, ++b->turn, b->stream), "hashed");
}

static void sorted(struct bench *b, const lm_fetch_frame *frame) {
  try(lm_fetch_distinct(&b->table, frame, &b->room, b->stream), "sorting");
  try(lm_fetch_gather(&b->table, frame, &b->room, b->stream), "gathering");
  try(lm_fetch_staged(&b->table, frame, &b->room, b->stream), "look-ups");
}

static void host(struct bench *b, const lm_fetch_frame *frame) {
  const uint32_t turn = ++b->turn;
  try(lm_fetch_distinct(&b->table, frame, &b->room, b->stream), "sorting");
  try(lm_fetch_publish(frame, &b->room, turn, b->stream), "the list");
  while (*b->room.list_ready >> 32 != turn) {
  }
  atomic_thread_fence(memory_order_acquire);
  const uint32_t num = (uint32_t)*b->room.list_ready;
  gather(&b->gatherers, num);
  try(cudaMemcpyAsync(b->room.staged, b->h_gathered,
                      (uint64_t)num * (uint64_t)b->table.record_words * 4, cudaMemcpyHostToDevice,
                      b->stream),
      "what the host gathered");
  try(lm_fetch_staged(&b->table, frame, &b->room, b->stream), "look-ups");
  try(cudaStreamSynchronize(b->stream),
      "host"); /* the gathered records may be overwritten after this */
}

static const struct way {
  const char *name;
  void (*fetch)(struct bench *b, const lm_fetch_frame *frame);
  bool on_host;
} ways[] = {{"direct", direct, false},
            {"hashed", hashed, false},
            {"sorted", sorted, false},
            {"host", host, true}};
enum { WAYS = sizeof ways / sizeof *ways };

static void check_way(struct bench *b, const struct way *way, const struct placed *placed) {
  const size_t bytes =
      (size_t)placed->frame.lanes * placed->frame.blocks_per_lane * sizeof *b->h_sums;
  if (placed->sums == NULL) return;
  try(cudaMemsetAsync(b->room.sums, 0xff, bytes, b->stream), "sums");
  way->fetch(b, &placed->frame);
  try(cudaStreamSynchronize(b->stream), way->name);
  try(cudaMemcpy(b->h_sums, b->room.sums, bytes, cudaMemcpyDeviceToHost), "sums");
  if (memcmp(b->h_sums, placed->sums, bytes) == 0) return;
  fprintf(stderr, "bench_lm_fetch: %s: wrong sums\n", way->name);
  exit(1);
}

/* Returns the microseconds of one round, over all placings in turn, repeated until the time is up.
 * Uses the GPU's clock, or the host's if the host takes part. */
static double time_way(struct bench *b, const struct way *way, const struct placed *placed,
                       uint32_t count) {
  uint64_t times = 0;
  float ms = 0;
  const double began = now_s();
  try(cudaEventRecord(b->begin, b->stream), "a clock");
  do {
    for (uint32_t i = 0; i < count; i++, times++) {
      way->fetch(b, &placed[i].frame);
      if (times % 64 == 63) try(cudaStreamSynchronize(b->stream), way->name);
    }
  } while (now_s() - began < b->a.seconds);
  try(cudaEventRecord(b->end, b->stream), "a clock");
  try(cudaEventSynchronize(b->end), way->name);
  try(cudaEventElapsedTime(&ms, b->begin, b->end), "a clock");
  return (way->on_host ? 1e6 * (now_s() - began) : 1e3 * (double)ms) / (double)times;
}

static void measure_round(struct bench *b, const struct round *round, uint32_t lanes, uint64_t salt,
                          double us[WAYS]) {
  uint32_t count = LEAST_DISTINCT / (round->num_distinct + 1) + 2;
  if (count > MOST_PLACINGS) count = MOST_PLACINGS;
  struct placed *placed = allocate(count, sizeof *placed);
  for (uint32_t i = 0; i < count; i++)
    placed[i] = place_round(b, round, lanes, salt * MOST_PLACINGS + i);
  for (size_t w = 0; w < WAYS; w++) {
    if (ways[w].on_host) start_gatherers(b);
    for (uint32_t i = 0; i < count; i++) check_way(b, &ways[w], &placed[i]);
    us[w] += time_way(b, &ways[w], placed, count);
    if (ways[w].on_host) stop_gatherers(&b->gatherers);
  }
  for (uint32_t i = 0; i < count; i++) free_placed(&placed[i]);
  free(placed);
}

/* --- running ----------------------------------------------------------------------------- */

static void make_room(struct bench *b, uint32_t num, uint32_t blocks) {
  lm_fetch_room *room = &b->room;
  const uint64_t record_bytes = 4 * (uint64_t)b->table.record_words;
  room->slot_bits = 10;
  while ((uint64_t)1 << room->slot_bits < (uint64_t)num * 2) room->slot_bits++;
  room->sorted = on_device(num * sizeof(uint32_t));
  room->distinct = on_device(num * sizeof(uint32_t));
  room->num_distinct = on_device(sizeof(uint32_t));
  room->staged = on_device(num * record_bytes);
  room->keys = on_device(sizeof(uint64_t) << room->slot_bits);
  room->records = on_device(record_bytes << room->slot_bits);
  room->slots = on_device(num * sizeof(uint32_t));
  room->ticket = on_device(sizeof(uint32_t));
  room->sums = on_device(blocks * sizeof *room->sums);
  room->list = page_locked(num * sizeof(uint32_t));
  room->list_ready = page_locked(sizeof(uint64_t));
  *room->list_ready = 0;
  try(lm_fetch_scratch(num, b->table.place_bits, &room->scratch_bytes), "scratch");
  room->scratch = on_device(room->scratch_bytes);
  try(cudaMemset(room->keys, 0, sizeof(uint64_t) << room->slot_bits), "slots");
  try(cudaMemset(room->ticket, 0, sizeof(uint32_t)), "a ticket");
  b->h_gathered = page_locked(num * record_bytes);
  b->h_sums = allocate(blocks, sizeof *b->h_sums);
  b->gatherers = (struct gatherers){.table = b->h_table,
                                    .words = (uint32_t)b->table.record_words,
                                    .list = room->list,
                                    .to = b->h_gathered};
  b->turn = 0;
}

static void free_room(struct bench *b) {
  lm_fetch_room *room = &b->room;
  void *memory[] = {room->sorted,  room->distinct, room->num_distinct, room->staged, room->keys,
                    room->records, room->slots,    room->ticket,       room->sums,   room->scratch};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cudaFree(memory[i]);
  cudaFreeHost(room->list);
  cudaFreeHost((void *)(uintptr_t)room->list_ready);
  cudaFreeHost(b->h_gathered);
  free(b->h_sums);
}

static void measure(struct bench *b, const char *item) {
  struct rounds rounds = rounds_of(&b->a, item);
  double us[WAYS] = {0}, num = 0, distinct = 0, distinct_lane = 0;
  make_room(b, rounds.most > 0 ? rounds.most : 1, rounds.lanes * PROCESSORS);
  for (uint32_t i = 0; i < rounds.count; i++) {
    const struct round *round = &rounds.data[i];
    num += round->num;
    distinct += round->num_distinct;
    for (uint32_t lane = 0; lane < rounds.lanes; lane++)
      distinct_lane += count_distinct(round->numbers + round->first[lane],
                                      round->first[lane + 1] - round->first[lane]);
    if (round->num > 0) measure_round(b, round, rounds.lanes, i, us);
  }
  const double frames = rounds.frames;
  printf(
      "{\"requests\": \"%s\", \"record_bytes\": %d, \"lanes\": %u, \"rounds\": %d, \"asked\": "
      "%.0f, \"distinct_lane\": %.0f, \"distinct\": %.0f",
      item, 4 * b->table.record_words, rounds.lanes, b->a.rounds, num / frames,
      distinct_lane / frames, distinct / frames);
  for (size_t w = 0; w < WAYS; w++) printf(", \"%s_us\": %.2f", ways[w].name, us[w] / frames);
  printf("}\n");
  fflush(stdout);
  free_room(b);
  free_rounds(&rounds);
}

static void measure_table(struct bench *b) {
  unsigned long long *d_cycles = on_device(sizeof *d_cycles), cycles[2];
  int khz = 0, device = 0;
  for (uint32_t i = 0; i < 2; i++) { /* the first run has cold TLBs */
    try(lm_fetch_latency(&b->table, i * 77777, d_cycles, b->stream), "latency");
    try(cudaStreamSynchronize(b->stream), "latency");
    try(cudaMemcpy(&cycles[i], d_cycles, sizeof *cycles, cudaMemcpyDeviceToHost), "latency");
  }
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device);
  printf(
      "{\"table_bytes\": %llu, \"record_bytes\": %d, \"latency\": %llu, \"clock_mhz\": %d, "
      "\"threads\": %d}\n",
      (unsigned long long)4 * (unsigned)b->table.record_words << b->table.place_bits,
      4 * b->table.record_words, cycles[1], khz / 1000,
      b->a.threads > 0 ? b->a.threads : wf__num_cpus());
  fflush(stdout);
  cudaFree(d_cycles);
}

static void parse(int argc, char **argv, struct arguments *a) {
  *a = (struct arguments){
      .gigabytes = 8, .seconds = 0.2, .record = 4, .lanes = 400, .rounds = 1, .frames = INT_MAX};
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (strncmp(arg, "trace=", 6) == 0 || strncmp(arg, "missed=", 7) == 0 ||
        strncmp(arg, "random=", 7) == 0) {
      if (a->num_items == MAX_ITEMS) fail("too many requests");
      a->items[a->num_items++] = arg;
    } else if (sscanf(arg, "--gigabytes=%lf", &a->gigabytes) != 1 &&
               sscanf(arg, "--seconds=%lf", &a->seconds) != 1 &&
               sscanf(arg, "--record=%d", &a->record) != 1 &&
               sscanf(arg, "--lanes=%d", &a->lanes) != 1 &&
               sscanf(arg, "--rounds=%d", &a->rounds) != 1 &&
               sscanf(arg, "--frames=%d", &a->frames) != 1 &&
               sscanf(arg, "--threads=%d", &a->threads) != 1)
      fail("unknown argument; see the head of bench/lm/bench_lm_fetch.c");
  }
  if ((a->record != 3 && a->record != 4 && a->record != 8) || a->lanes < 1 || a->rounds < 1 ||
      a->num_items == 0 || a->threads > MAX_THREADS)
    fail(
        "usage: bench_lm_fetch [--record=3|4|8] [--lanes=400] [--rounds=1] ... "
        "trace=FILE|missed=FILE|random=N/D ...");
}

int main(int argc, char **argv) {
  static struct bench b;
  parse(argc, argv, &b.a);
  try(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "a stream");
  try(cudaEventCreate(&b.begin), "an event");
  try(cudaEventCreate(&b.end), "an event");
  make_table(&b);
  measure_table(&b);
  for (int i = 0; i < b.a.num_items; i++) measure(&b, b.a.items[i]);
  cudaFreeHost(b.h_table);
  return 0;
}
#else
int main(void) { fail("built without CUDA"); }
#endif
