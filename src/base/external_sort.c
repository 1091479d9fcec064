/* external_sort.c - radix-sorted runs, merged by a heap. */
#include "base/external_sort.h"

#include <string.h>

#include "base/memory.h"
#include "base/temp_file.h"

enum {
  DIGIT_BITS = 11,
  NUM_DIGITS = 3,
  LEAST_READ_BYTES = 1 << 12,
  MOST_READ_BYTES = 1 << 18,
  SMALL_SHARE = 32,
  READ_SHARE = 16
};

struct run {
  uint64_t first, count; /* range of records in the file; the run in memory uses count alone */
  uint64_t at;           /* index of the next record to read */
  uint32_t *buffer;      /* records read ahead; for the run in memory, all of its records */
  uint64_t begin, end;   /* range of the run's records in the buffer */
  bool in_memory;
};

struct wf__sort {
  uint32_t record_words, key_words;
  uint64_t most;               /* maximum number of records in memory while adding */
  uint64_t memory, read_bytes; /* read_bytes: size of the read buffer of each run in the file */
  const char *folder;
  int fd; /* -1: no file yet */
  uint64_t in_file, count;
  WF__VEC(uint32_t) records; /* being added, or the run in memory */
  WF__VEC(struct run) runs;
  WF__VEC(uint32_t) heap; /* unfinished runs, smallest record first */
  bool adds_up;
  bool given; /* the caller holds the record of heap[0]; its run advances at the next call */
};

wf_status wf__sort_create(uint32_t record_words, uint32_t key_words, uint64_t memory,
                          const char *folder, wf__sort **out, wf_error *err) {
  wf__sort *sort = *out = wf__calloc(1, sizeof *sort);
  if (sort == NULL) return wf__fail_memory(err, sizeof *sort, "sorting");
  sort->record_words = record_words;
  sort->key_words = key_words;
  sort->memory = memory;
  sort->most = memory / (2 * 4 * (uint64_t)record_words); /* the radix sort needs a copy */
  if (sort->most < 1024) sort->most = 1024;
  sort->folder = folder;
  sort->fd = -1;
  return WF_OK;
}

static void free_buffers(wf__sort *sort) {
  for (uint64_t i = 0; i < sort->runs.size; i++)
    if (!sort->runs.data[i].in_memory) free(sort->runs.data[i].buffer);
}

void wf__sort_free(wf__sort *sort) {
  if (sort == NULL) return;
  free_buffers(sort);
  if (sort->fd >= 0) wf__temp_close(sort->fd);
  wf__vec_free(&sort->records);
  wf__vec_free(&sort->runs);
  wf__vec_free(&sort->heap);
  free(sort);
}

void wf__sort_add_up(wf__sort *sort) { sort->adds_up = true; }

uint64_t wf__sort_count(const wf__sort *sort) { return sort->count; }

static int compare(const wf__sort *sort, const uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < sort->key_words; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

/* --- runs -------------------------------------------------------------------------------- */

static bool is_sorted(const wf__sort *sort, uint64_t count) {
  const uint32_t *record = sort->records.data;
  for (uint64_t i = 1; i < count; i++, record += sort->record_words)
    if (compare(sort, record, record + sort->record_words) > 0) return false;
  return true;
}

/* One stable pass of the radix sort, by one digit of word `word`. Returns false, without moving
 * records, if all records have the same digit. */
static bool scatter(const wf__sort *sort, const uint32_t *from, uint32_t *to, uint64_t count,
                    uint32_t word, int shift) {
  uint64_t slots[1 << DIGIT_BITS] = {0}, sum = 0;
  uint32_t words = sort->record_words, mask = (1u << DIGIT_BITS) - 1;
  for (uint64_t i = 0; i < count; i++) slots[from[i * words + word] >> shift & mask]++;
  if (slots[from[word] >> shift & mask] == count) return false;
  for (uint32_t digit = 0; digit <= mask; digit++) {
    uint64_t size = slots[digit];
    slots[digit] = sum;
    sum += size;
  }
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t *record = from + i * words;
    memcpy(to + slots[record[word] >> shift & mask]++ * words, record, words * sizeof *record);
  }
  return true;
}

/* Adds up the counts of records with the same key, which follow each other. */
static void add_up(wf__sort *sort) {
  const uint32_t words = sort->record_words;
  uint32_t *kept = sort->records.data, *record = kept + words, *end = kept + sort->records.size;
  for (; record < end; record += words) {
    const uint64_t sum = (uint64_t)kept[words - 1] + record[words - 1];
    if (compare(sort, kept, record) == 0 && sum <= UINT32_MAX) {
      kept[words - 1] = (uint32_t)sum;
      sort->count--;
    } else {
      kept += words;
      if (kept != record) memcpy(kept, record, words * sizeof *record);
    }
  }
  sort->records.size = (uint64_t)(kept + words - sort->records.data);
}

static wf_status sort_by_radix(wf__sort *sort, wf_error *err) {
  uint64_t count = sort->records.size / sort->record_words;
  uint32_t *spare = wf__alloc(sort->records.size, sizeof *spare);
  if (spare == NULL) return wf__fail_memory(err, sort->records.size * sizeof *spare, "sorting");
  uint64_t cap = sort->records.size;
  for (uint32_t word = sort->key_words; word-- > 0;)
    for (int digit = 0; digit < NUM_DIGITS; digit++) {
      if (!scatter(sort, sort->records.data, spare, count, word, digit * DIGIT_BITS)) continue;
      uint32_t *swap = sort->records.data;
      uint64_t swap_cap = sort->records.cap;
      sort->records.data = spare;
      sort->records.cap = cap;
      spare = swap;
      cap = swap_cap;
    }
  free(spare);
  return WF_OK;
}

static wf_status sort_records(wf__sort *sort, wf_error *err) {
  if (!is_sorted(sort, sort->records.size / sort->record_words)) WF__TRY(sort_by_radix(sort, err));
  if (sort->adds_up && sort->records.size > 0) add_up(sort);
  return WF_OK;
}

static wf_status spill(wf__sort *sort, wf_error *err) {
  if (sort->records.size == 0) return WF_OK;
  WF__TRY(sort_records(sort, err));
  uint64_t count = sort->records.size / sort->record_words;
  if (sort->fd < 0) WF__TRY(wf__temp_open(sort->folder, &sort->fd, err));
  uint64_t bytes = 4 * (uint64_t)sort->record_words;
  WF__TRY(wf__temp_write(sort->fd, sort->folder, sort->in_file * bytes, sort->records.data,
                         count * bytes, err));
  struct run run = {.first = sort->in_file, .count = count};
  sort->in_file += count;
  sort->records.size = 0;
  return wf__vec_push(&sort->runs, run, "sorting", err);
}

/* Makes room in the memory: adds up counts, or, if that does not free half of it, writes a run. */
static wf_status make_room(wf__sort *sort, wf_error *err) {
  if (sort->adds_up) WF__TRY(sort_records(sort, err));
  return sort->records.size > sort->most / 2 * sort->record_words ? spill(sort, err) : WF_OK;
}

wf_status wf__sort_add(wf__sort *sort, const uint32_t *record, wf_error *err) {
  if (wf__unlikely(sort->records.size >= sort->most * sort->record_words))
    WF__TRY(make_room(sort, err));
  WF__TRY(wf__vec_grow(&sort->records, sort->record_words, "sorting", err));
  memcpy(sort->records.data + sort->records.size, record, sort->record_words * sizeof *record);
  sort->records.size += sort->record_words;
  sort->count++;
  return WF_OK;
}

wf_status wf__sort_finish(wf__sort *sort, wf_error *err) {
  free_buffers(sort);
  for (uint64_t i = 0; i < sort->runs.size; i++) sort->runs.data[i].buffer = NULL;
  if (sort->runs.size > 0 && sort->runs.data[sort->runs.size - 1].in_memory)
    sort->runs.size--; /* more records were added to it */
  if (sort->records.size > sort->most / SMALL_SHARE * sort->record_words) {
    WF__TRY(spill(sort, err));
    wf__vec_free(&sort->records);
  }
  WF__TRY(sort_records(sort, err));
  struct run rest = {.count = sort->records.size / sort->record_words,
                     .buffer = sort->records.data,
                     .in_memory = true};
  if (rest.count > 0) WF__TRY(wf__vec_push(&sort->runs, rest, "sorting", err));
  sort->read_bytes = sort->memory / READ_SHARE / (sort->runs.size + 1);
  if (sort->read_bytes < LEAST_READ_BYTES) sort->read_bytes = LEAST_READ_BYTES;
  if (sort->read_bytes > MOST_READ_BYTES) sort->read_bytes = MOST_READ_BYTES;
  return wf__sort_rewind(sort, err);
}

/* --- merging ----------------------------------------------------------------------------- */

static const uint32_t *record_of(const wf__sort *sort, uint32_t r) {
  const struct run *run = &sort->runs.data[r];
  return run->buffer + (run->at - run->begin) * sort->record_words;
}

static bool is_before(const wf__sort *sort, uint32_t a, uint32_t b) {
  int order = compare(sort, record_of(sort, a), record_of(sort, b));
  return order != 0 ? order < 0 : a < b;
}

static void sift(wf__sort *sort, uint64_t i) {
  uint32_t *heap = sort->heap.data, moving = heap[i];
  for (uint64_t child; (child = 2 * i + 1) < sort->heap.size; i = child) {
    if (child + 1 < sort->heap.size && is_before(sort, heap[child + 1], heap[child])) child++;
    if (!is_before(sort, heap[child], moving)) break;
    heap[i] = heap[child];
  }
  heap[i] = moving;
}

/* Makes sure that the run's next record is in its buffer. */
static wf_status fill(wf__sort *sort, struct run *run, wf_error *err) {
  if (run->at < run->end || run->at == run->count) return WF_OK;
  uint64_t bytes = 4 * (uint64_t)sort->record_words, room = sort->read_bytes / bytes,
           left = run->count - run->at;
  if (run->buffer == NULL) run->buffer = wf__alloc(room, bytes);
  if (run->buffer == NULL) return wf__fail_memory(err, sort->read_bytes, "sorting");
  run->begin = run->at;
  run->end = run->at + (left < room ? left : room);
  return wf__temp_read(sort->fd, sort->folder, (run->first + run->begin) * bytes, run->buffer,
                       (run->end - run->begin) * bytes, err);
}

wf_status wf__sort_rewind(wf__sort *sort, wf_error *err) {
  sort->heap.size = 0;
  sort->given = false;
  WF__TRY(wf__vec_grow(&sort->heap, sort->runs.size, "sorting", err));
  for (uint64_t i = 0; i < sort->runs.size; i++) {
    struct run *run = &sort->runs.data[i];
    run->at = run->begin = 0;
    run->end = run->in_memory ? run->count : 0;
    WF__TRY(fill(sort, run, err));
    sort->heap.data[sort->heap.size++] = (uint32_t)i;
  }
  for (uint64_t i = sort->heap.size; i-- > 0;) sift(sort, i);
  return WF_OK;
}

wf_status wf__sort_next(wf__sort *sort, const uint32_t **record, wf_error *err) {
  if (sort->given) {
    struct run *run = &sort->runs.data[sort->heap.data[0]];
    run->at++;
    WF__TRY(fill(sort, run, err));
    if (run->at == run->count) sort->heap.data[0] = sort->heap.data[--sort->heap.size];
    if (sort->heap.size > 1) sift(sort, 0);
  }
  sort->given = sort->heap.size > 0;
  *record = sort->given ? record_of(sort, sort->heap.data[0]) : NULL;
  return WF_OK;
}
