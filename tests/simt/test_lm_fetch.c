/* test_lm_fetch.c - tests the methods of src/cuda/bench/lm_fetch.h to fetch records from host
 * memory. Each method must give every lane the sum of the records that it requested. */
#include "cuda_runtime_api.h"

#include "cuda/bench/lm_fetch.h"
#include "simt.h"
#include "testing.h"

enum { PLACE_BITS = 9, SLOT_BITS = 11, MOST_LANES = 3, MOST = 700, TURNS = 3 };

static void *memory_of(size_t bytes) {
  void *memory;
  assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
  memset(memory, 0, bytes);
  return memory;
}

struct fetching {
  lm_fetch_table table;
  lm_fetch_frame frame;
  lm_fetch_room room;
  uint32_t *records, *places, *first;
  unsigned long long want[MOST_LANES * 2];
};

static void make(struct fetching *f, test_rng *rng) {
  static const int words[] = {3, 4, 8};
  const int record_words = words[test_below(rng, 3)];
  f->records = memory_of(((size_t)record_words * 4) << PLACE_BITS);
  f->places = memory_of(MOST * 4);
  f->first = memory_of((MOST_LANES + 1) * 4);
  f->table = (lm_fetch_table){f->records, record_words, PLACE_BITS};
  f->room = (lm_fetch_room){.sorted = memory_of(MOST * 4),
                            .distinct = memory_of(MOST * 4),
                            .num_distinct = memory_of(4),
                            .staged = memory_of((size_t)MOST * 32),
                            .keys = memory_of((size_t)8 << SLOT_BITS),
                            .records = memory_of((size_t)32 << SLOT_BITS),
                            .slots = memory_of(MOST * 4),
                            .slot_bits = SLOT_BITS,
                            .ticket = memory_of(4),
                            .list = memory_of(MOST * 4),
                            .list_ready = memory_of(8),
                            .sums = memory_of(MOST_LANES * 2 * 8)};
  for (uint32_t i = 0; i < (uint32_t)record_words << PLACE_BITS; i++)
    f->records[i] = test_below(rng, 1u << 31);
  assert_int_equal(lm_fetch_scratch(MOST, PLACE_BITS, &f->room.scratch_bytes), cudaSuccess);
  f->room.scratch = memory_of(f->room.scratch_bytes);
}

/* Makes lanes with any number of requests, including none, and many repeated records. */
static void make_requests(struct fetching *f, test_rng *rng) {
  const uint32_t lanes = 1 + test_below(rng, MOST_LANES), blocks = 1 + test_below(rng, 2),
                 range = 1 + test_below(rng, 1u << PLACE_BITS);
  uint32_t num = 0;
  memset(f->want, 0, sizeof f->want);
  for (uint32_t lane = 0; lane < lanes; lane++) {
    const uint32_t count = test_below(rng, 4) == 0 ? 0 : test_below(rng, (MOST - num) / 2 + 1);
    for (uint32_t i = 0; i < count; i++) {
      f->places[num] = test_below(rng, range);
      for (int k = 0; k < f->table.record_words; k++)
        f->want[lane * blocks + i / 1024 % blocks] +=
            f->records[f->places[num] * (uint32_t)f->table.record_words + (uint32_t)k];
      num++;
    }
    f->first[lane + 1] = num;
  }
  f->frame = (lm_fetch_frame){f->places, f->first, num, lanes, blocks};
}

static void check_sums(struct fetching *f) {
  assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
  for (uint32_t i = 0; i < f->frame.lanes * f->frame.blocks_per_lane; i++)
    assert_true(f->room.sums[i] == f->want[i]);
  memset(f->room.sums, 0xff, MOST_LANES * 2 * 8);
}

/* Does what the benchmark's host thread does: copies the listed records to where lm_fetch_gather
 * would put them. */
static void gather_on_host(struct fetching *f, uint32_t turn) {
  assert_int_equal(lm_fetch_publish(&f->frame, &f->room, turn, NULL), cudaSuccess);
  assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
  assert_true(*f->room.list_ready == ((uint64_t)turn << 32 | *f->room.num_distinct) &&
              *f->room.ticket == 0);
  memset(f->room.staged, 0xff, (size_t)MOST * 32);
  const size_t bytes = (size_t)f->table.record_words * 4;
  for (uint32_t i = 0; i < *f->room.num_distinct; i++)
    memcpy((char *)f->room.staged + i * bytes, (char *)f->records + f->room.list[i] * bytes, bytes);
}

static void test_every_method_gives_the_sums(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    test_rng rng = {seed};
    struct fetching f;
    simt.seed = seed;
    make(&f, &rng);
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
      make_requests(&f, &rng);
      assert_int_equal(lm_fetch_direct(&f.table, &f.frame, &f.room, NULL), cudaSuccess);
      check_sums(&f);
      assert_int_equal(lm_fetch_hashed(&f.table, &f.frame, &f.room, turn, NULL), cudaSuccess);
      check_sums(&f);
      if (f.frame.num == 0) continue;
      assert_int_equal(lm_fetch_distinct(&f.table, &f.frame, &f.room, NULL), cudaSuccess);
      assert_int_equal(lm_fetch_gather(&f.table, &f.frame, &f.room, NULL), cudaSuccess);
      assert_int_equal(lm_fetch_staged(&f.table, &f.frame, &f.room, NULL), cudaSuccess);
      check_sums(&f);
      gather_on_host(&f, turn);
      assert_int_equal(lm_fetch_staged(&f.table, &f.frame, &f.room, NULL), cudaSuccess);
      check_sums(&f);
    }
    void *memory[] = {f.records,
                      f.places,
                      f.first,
                      f.room.sorted,
                      f.room.distinct,
                      f.room.num_distinct,
                      f.room.staged,
                      f.room.keys,
                      f.room.records,
                      f.room.slots,
                      f.room.ticket,
                      f.room.list,
                      (void *)(uintptr_t)f.room.list_ready,
                      f.room.sums,
                      f.room.scratch};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
      assert_int_equal(cudaFree(memory[i]), cudaSuccess);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_method_gives_the_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
