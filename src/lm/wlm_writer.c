/* wlm_writer.c - writes states and arcs to the sections of the file. The sections grow in parallel,
 * each in a spill buffer, and are concatenated at the end. */
#include <math.h>
#include <zlib.h>

#include "base/callbacks.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/spill_buffer.h"
#include "fst/symbols.h"
#include "lm/wlm_file.h"

_Static_assert(sizeof(wf__wlm_state) == 16 && sizeof(wf__wlm_bucket) == 32 &&
                   sizeof(wf__wlm_arc) == 12 && sizeof(wf__wlm_header) <= 1024,
               "no padding");

const uint8_t wf__wlm_magic[8] = {0x89, 'W', 'L', 'M', '\r', '\n', 0x1a, '\n'};

enum { SAMPLE = 1 << 20, COPY_BYTES = 1 << 20 };

struct wf__wlm_writer {
  wf__wlm_plan plan;
  wf__wlm_unigram *unigrams;
  wf__spill_buffer spills[WF__WLM_SECTIONS]; /* STATES to LARGE_ARCS */
  uint64_t num_states, num_small, num_buckets, num_large;
  WF__VEC(wf__wlm_arc) sorted;
  WF__VEC(uint64_t) slots;
  uint64_t num_seen; /* number of finite costs so far, for the sample */
  float *sample;     /* [SAMPLE] random sample of the costs */
  float *codebook;   /* [2^pack] ascending */
  double loss_sum, loss_worst;
};

uint32_t wf__wlm_crc(uint32_t crc, const void *data, uint64_t size) {
  return (uint32_t)crc32_z(crc, data, (z_size_t)size);
}

void wf__wlm_writer_free(wf__wlm_writer *writer) {
  if (writer == NULL) return;
  for (int i = 0; i < WF__WLM_SECTIONS; i++) wf__spill_buffer_free(&writer->spills[i]);
  wf__vec_free(&writer->sorted);
  wf__vec_free(&writer->slots);
  free(writer->unigrams);
  free(writer->sample);
  free(writer->codebook);
  free(writer);
}

wf_status wf__wlm_writer_create(const wf__wlm_plan *plan, wf__wlm_writer **out, wf_error *err) {
  *out = NULL;
  wf__wlm_writer *writer = wf__calloc(1, sizeof *writer);
  if (writer == NULL) return wf__fail_memory(err, sizeof *writer, "a language model");
  writer->plan = *plan;
  for (int i = 0; i < WF__WLM_SECTIONS; i++)
    writer->spills[i] = wf__spill_buffer_of(plan->memory / 6, plan->folder);
  writer->unigrams = wf__alloc(plan->num_words, sizeof *writer->unigrams);
  writer->sample = wf__alloc(SAMPLE, sizeof *writer->sample);
  if (writer->unigrams == NULL || writer->sample == NULL) {
    wf__wlm_writer_free(writer);
    return wf__fail_memory(err, (uint64_t)plan->num_words * sizeof *writer->unigrams,
                           "a language model");
  }
  for (uint32_t w = 0; w < plan->num_words; w++)
    writer->unigrams[w] = (wf__wlm_unigram){INFINITY, WF__WLM_NONE};
  *out = writer;
  return WF_OK;
}

void wf__wlm_writer_unigram(wf__wlm_writer *writer, uint32_t word, float cost, uint32_t next) {
  writer->unigrams[word] = (wf__wlm_unigram){cost, next};
}

/* --- states ------------------------------------------------------------------------------ */

static int by_word(const void *a, const void *b) {
  const wf__wlm_arc *x = a, *y = b;
  return (x->word > y->word) - (x->word < y->word);
}

/* Sorts the arcs, which are in the order of words, by their home among `count` buckets.
 * writer->slots[b] becomes the end of the arcs with home b. Returns the number of buckets that the
 * arcs need, which is more than `count` if the overflow of the last buckets does not fit. */
static uint64_t fill_buckets(wf__wlm_writer *writer, const wf__wlm_arc *arcs, uint64_t num,
                             uint64_t count) {
  uint64_t *slots = writer->slots.data, placed = 0;
  for (uint64_t b = 0; b <= count; b++) slots[b] = 0;
  for (uint64_t i = 0; i < num; i++) slots[wf__wlm_home(wf__wlm_hash(arcs[i].word), count) + 1]++;
  for (uint64_t b = 0; b < count; b++) slots[b + 1] += slots[b];
  for (uint64_t i = 0; i < num; i++)
    writer->sorted.data[slots[wf__wlm_home(wf__wlm_hash(arcs[i].word), count)]++] = arcs[i];
  for (uint64_t b = 0; b < count; b++)
    placed += slots[b] - placed < WF__WLM_BUCKET ? slots[b] - placed : WF__WLM_BUCKET;
  return count + (num - placed + WF__WLM_BUCKET - 1) / WF__WLM_BUCKET;
}

static wf_status add_buckets(wf__wlm_writer *writer, uint64_t num, uint64_t count, wf_error *err) {
  uint64_t placed = 0;
  for (uint64_t b = 0; b < count; b++) {
    uint64_t waiting = writer->slots.data[b] - placed,
             size = waiting < WF__WLM_BUCKET ? waiting : WF__WLM_BUCKET;
    uint64_t head = (writer->num_large + placed) | size << WF__WLM_BASE_BITS |
                    (waiting > size ? WF__WLM_MORE : 0);
    wf__wlm_bucket bucket = {
        .head = {(uint16_t)head, (uint16_t)(head >> 16), (uint16_t)(head >> 32)}};
    for (uint64_t i = 0; i < size; i++)
      bucket.tags[i] = wf__wlm_tag(wf__wlm_hash(writer->sorted.data[placed + i].word));
    WF__TRY(wf__spill_buffer_write(&writer->spills[WF__WLM_BUCKETS], &bucket, sizeof bucket, err));
    placed += size;
  }
  WF__TRY(wf__spill_buffer_write(&writer->spills[WF__WLM_LARGE_ARCS], writer->sorted.data,
                                 num * sizeof(wf__wlm_arc), err));
  writer->num_buckets += count;
  writer->num_large += num;
  return WF_OK;
}

static wf_status add_large(wf__wlm_writer *writer, const wf__wlm_arc *arcs, uint64_t num,
                           uint64_t *where, wf_error *err) {
  uint64_t count = num <= WF__WLM_BUCKET ? 1
                                         : (num * 5 + WF__WLM_BUCKET * 4 - 1) /
                                               (WF__WLM_BUCKET * 4); /* at most 80 % full */
  writer->sorted.size = writer->slots.size = 0;
  WF__TRY(wf__vec_grow(&writer->sorted, num, "a language model", err));
  for (;; count++) { /* until all arcs fit */
    WF__TRY(wf__vec_grow(&writer->slots, count + 2, "a language model", err));
    if (fill_buckets(writer, arcs, num, count) == count) break;
  }
  if (count >= (uint64_t)1 << 24 || writer->num_buckets + count >= WF__WLM_LARGE)
    return wf__fail(err, WF_ERR_LIMIT, "a history has %llu successors, which is too many",
                    (unsigned long long)num);
  *where = writer->num_buckets | WF__WLM_LARGE | count << (WF__WLM_FIRST_BITS + 1);
  return add_buckets(writer, num, count, err);
}

static wf_status add_small(wf__wlm_writer *writer, const wf__wlm_arc *arcs, uint64_t num,
                           uint64_t *where, wf_error *err) {
  *where = writer->num_small | num << (WF__WLM_FIRST_BITS + 1);
  uint16_t tags[WF__WLM_SMALL];
  for (uint64_t i = 0; i < num; i++) tags[i] = wf__wlm_tag(wf__wlm_hash(arcs[i].word));
  writer->num_small += num;
  WF__TRY(wf__spill_buffer_write(&writer->spills[WF__WLM_TAGS], tags, num * sizeof *tags, err));
  return wf__spill_buffer_write(&writer->spills[WF__WLM_SMALL_ARCS], arcs, num * sizeof *arcs, err);
}

/* Updates the sample by reservoir sampling (Algorithm R). */
static void sample_costs(wf__wlm_writer *writer, const wf__wlm_arc *arcs, uint64_t num) {
  for (uint64_t i = 0; i < num; i++) {
    if (!isfinite(arcs[i].cost)) continue;
    uint64_t n = writer->num_seen++, place = n < SAMPLE ? n : wf__mix64(n) % (n + 1);
    if (place < SAMPLE) writer->sample[place] = arcs[i].cost;
  }
}

wf_status wf__wlm_writer_state(wf__wlm_writer *writer, uint32_t backoff, float backoff_cost,
                               wf__wlm_arc *arcs, uint64_t num, wf_error *err) {
  wf__wlm_state state = {.backoff = backoff, .backoff_cost = backoff_cost};
  bool sorted = true;
  for (uint64_t i = 1; i < num && sorted; i++) sorted = arcs[i - 1].word < arcs[i].word;
  if (!sorted) qsort(arcs, num, sizeof *arcs, by_word);
  if (writer->plan.pack > 0 && writer->plan.pack < 32) sample_costs(writer, arcs, num);
  if (num <= WF__WLM_SMALL)
    WF__TRY(add_small(writer, arcs, num, &state.where, err));
  else
    WF__TRY(add_large(writer, arcs, num, &state.where, err));
  writer->num_states++;
  return wf__spill_buffer_write(&writer->spills[WF__WLM_STATES], &state, sizeof state, err);
}

/* --- packing ----------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Makes the codebook: quantiles of the sample, refined by two rounds of Lloyd's algorithm. The last
 * value is +infinity. */
static wf_status make_codebook(wf__wlm_writer *writer, wf_error *err) {
  uint64_t count = (uint64_t)1 << writer->plan.pack,
           size = writer->num_seen < SAMPLE ? writer->num_seen : SAMPLE, used = count - 1;
  writer->codebook = wf__alloc(count, sizeof *writer->codebook);
  if (writer->codebook == NULL) return wf__fail_memory(err, count * 4, "a codebook");
  qsort(writer->sample, size, sizeof *writer->sample, by_value);
  for (uint64_t c = 0; c < used; c++)
    writer->codebook[c] = size > 0 ? writer->sample[(2 * c + 1) * size / (2 * used)] : 0;
  if (size > 0)
    writer->codebook[0] = writer->sample[0], writer->codebook[used - 1] = writer->sample[size - 1];
  for (int round = 0; round < 2; round++) {
    uint64_t at = 0;
    for (uint64_t c = 0; c < used; c++) {
      double sum = 0,
             middle = c + 1 < used
                          ? ((double)writer->codebook[c] + (double)writer->codebook[c + 1]) / 2
                          : INFINITY;
      uint64_t first = at;
      for (; at < size && (double)writer->sample[at] <= middle; at++)
        sum += (double)writer->sample[at];
      if (at > first) writer->codebook[c] = (float)(sum / (double)(at - first));
    }
  }
  writer->codebook[used] = INFINITY;
  return WF_OK;
}

static uint32_t code_of(wf__wlm_writer *writer, float cost) {
  uint32_t low = 0, high = (1u << writer->plan.pack) - 1; /* high: the code of +infinity */
  if (cost == INFINITY) return high;
  for (high--; low < high;) { /* binary search for the last value that is at most `cost` */
    uint32_t middle = low + (high - low + 1) / 2;
    if (writer->codebook[middle] <= cost)
      low = middle;
    else
      high = middle - 1;
  }
  uint32_t last = (1u << writer->plan.pack) - 2;
  if (low < last && fabsf(writer->codebook[low + 1] - cost) < fabsf(writer->codebook[low] - cost))
    low++;
  double loss = fabs((double)writer->codebook[low] - (double)cost);
  writer->loss_sum += loss;
  if (loss > writer->loss_worst) writer->loss_worst = loss;
  return low;
}

static int bits_for(uint64_t count) {
  int bits = 1;
  while (count > (uint64_t)1 << bits) bits++;
  return bits;
}

static void put_bits(uint8_t *bytes, uint64_t at, int size, uint32_t value) {
  uint64_t word;
  memcpy(&word, bytes + at / 8, sizeof word);
  word |= (uint64_t)value << at % 8;
  memcpy(bytes + at / 8, &word, sizeof word);
}

/* --- the file ---------------------------------------------------------------------------- */

struct file {
  wf__output *output;
  wf__wlm_header header;
};

static void put(struct file *file, int section, const void *data, uint64_t size) {
  wf__write(file->output, data, size);
  file->header.sections[section].size += size;
  file->header.sections[section].crc = wf__wlm_crc(file->header.sections[section].crc, data, size);
}

/* Writes zeros, at least `least` bytes, up to a multiple of WF__WLM_ALIGNMENT. */
static void align(struct file *file, uint64_t least) {
  static const char zeros[WF__WLM_ALIGNMENT];
  uint64_t at = wf__output_offset(file->output),
           end = (at + least + WF__WLM_ALIGNMENT - 1) / WF__WLM_ALIGNMENT * WF__WLM_ALIGNMENT;
  for (; at < end; at += end - at < sizeof zeros ? end - at : sizeof zeros)
    wf__write(file->output, zeros, end - at < sizeof zeros ? end - at : sizeof zeros);
}

static void begin(struct file *file, int section) {
  align(file, section == WF__WLM_WORDS ? 0 : 8);
  file->header.sections[section].offset = wf__output_offset(file->output);
}

static wf_status put_spill(struct file *file, wf__wlm_writer *writer, int section, wf_error *err) {
  wf__spill_buffer *spill = &writer->spills[section];
  uint8_t *buffer = wf__alloc(COPY_BYTES, 1);
  wf_status status =
      buffer != NULL ? WF_OK : wf__fail_memory(err, COPY_BYTES, "writing a language model");
  uint64_t size = wf__spill_buffer_size(spill);
  begin(file, section);
  for (uint64_t at = 0; at < size && status == WF_OK; at += COPY_BYTES) {
    uint64_t part = size - at < COPY_BYTES ? size - at : COPY_BYTES;
    status = wf__spill_buffer_read(spill, at, buffer, part, err);
    if (status == WF_OK) put(file, section, buffer, part);
  }
  free(buffer);
  wf__spill_buffer_free(spill);
  return status;
}

/* Writes packed arcs in blocks of 4096. The number of bits of a block is a multiple of 8. */
static wf_status put_packed(struct file *file, wf__wlm_writer *writer, int section, uint64_t num,
                            wf_error *err) {
  enum { BLOCK = 4096, MOST_BYTES = BLOCK * 12 };
  const wf__wlm_header *h = &file->header;
  uint64_t record = (uint64_t)h->word_bits + h->next_bits + h->cost_bits;
  wf__wlm_arc *arcs = wf__alloc(BLOCK, sizeof *arcs);
  uint8_t *packed = wf__alloc(MOST_BYTES + 8, 1);
  wf_status status = arcs != NULL && packed != NULL
                         ? WF_OK
                         : wf__fail_memory(err, MOST_BYTES, "writing a language model");
  begin(file, section);
  for (uint64_t at = 0; at < num && status == WF_OK; at += BLOCK) {
    uint64_t count = num - at < BLOCK ? num - at : BLOCK;
    status = wf__spill_buffer_read(&writer->spills[section], at * sizeof *arcs, arcs,
                                   count * sizeof *arcs, err);
    memset(packed, 0, MOST_BYTES + 8);
    for (uint64_t i = 0; i < count && status == WF_OK; i++) {
      uint32_t code;
      if (h->cost_bits == 32)
        memcpy(&code, &arcs[i].cost, sizeof code);
      else
        code = code_of(writer, arcs[i].cost);
      put_bits(packed, i * record, h->word_bits, arcs[i].word);
      put_bits(packed, i * record + h->word_bits, h->next_bits, arcs[i].next);
      put_bits(packed, i * record + h->word_bits + h->next_bits, h->cost_bits, code);
    }
    if (status == WF_OK) put(file, section, packed, (count * record + 7) / 8);
  }
  free(arcs);
  free(packed);
  wf__spill_buffer_free(&writer->spills[section]);
  return status;
}

static void fill_header(struct file *file, const wf__wlm_writer *writer) {
  const wf__wlm_plan *plan = &writer->plan;
  wf__wlm_header *h = &file->header;
  *h = (wf__wlm_header){.version = WF__WLM_VERSION,
                        .order = (uint32_t)plan->order,
                        .num_states = writer->num_states,
                        .num_small = writer->num_small,
                        .num_buckets = writer->num_buckets,
                        .num_large = writer->num_large,
                        .num_words = plan->num_words,
                        .bos = plan->bos,
                        .eos = plan->eos,
                        .unk = plan->unk,
                        .start = plan->start,
                        .difference = plan->difference,
                        .scale = plan->scale};
  memcpy(h->magic, wf__wlm_magic, sizeof h->magic);
  memcpy(h->level_begin, plan->level_begin, sizeof h->level_begin);
  if (plan->pack == 0) return;
  h->word_bits = (uint8_t)bits_for(plan->num_words);
  h->next_bits = (uint8_t)bits_for(writer->num_states);
  h->cost_bits = (uint8_t)plan->pack;
}

static wf_status put_sections(struct file *file, wf__wlm_writer *writer,
                              const wf_progress *progress, wf_error *err) {
  uint8_t *words;
  uint64_t size;
  align(file, 1024);
  WF__TRY(wf__symbols_encode(writer->plan.words, &words, &size, err));
  begin(file, WF__WLM_WORDS);
  put(file, WF__WLM_WORDS, words, size);
  free(words);
  begin(file, WF__WLM_UNIGRAMS);
  put(file, WF__WLM_UNIGRAMS, writer->unigrams, writer->plan.num_words * sizeof *writer->unigrams);
  for (int section = WF__WLM_STATES; section <= WF__WLM_LARGE_ARCS; section++) {
    WF__TRY(
        wf__progress(progress, "writing the model", (double)(section - WF__WLM_STATES) / 5, err));
    bool arcs = section >= WF__WLM_SMALL_ARCS;
    if (arcs && writer->plan.pack > 0)
      WF__TRY(put_packed(file, writer, section,
                         section == WF__WLM_SMALL_ARCS ? writer->num_small : writer->num_large,
                         err));
    else
      WF__TRY(put_spill(file, writer, section, err));
  }
  begin(file, WF__WLM_CODEBOOK);
  if (writer->codebook != NULL)
    put(file, WF__WLM_CODEBOOK, writer->codebook, sizeof *writer->codebook << writer->plan.pack);
  align(file, 8);
  return WF_OK;
}

wf_status wf__wlm_writer_close(wf__wlm_writer *writer, const uint64_t *num_ngrams, const char *path,
                               wf__wlm_loss *loss, const wf_progress *progress, wf_error *err) {
  struct file file = {0};
  if (writer->plan.pack > 0 && writer->plan.pack < 32) WF__TRY(make_codebook(writer, err));
  WF__TRY(wf__output_open(path, &file.output, err));
  fill_header(&file, writer);
  memcpy(file.header.num_ngrams, num_ngrams, sizeof file.header.num_ngrams);
  wf_status status = put_sections(&file, writer, progress, err);
  if (status != WF_OK) {
    wf__output_abort(file.output);
    return status;
  }
  file.header.file_size = wf__output_offset(file.output);
  file.header.crc = wf__wlm_crc(0, &file.header, offsetof(wf__wlm_header, crc));
  wf__output_patch(file.output, 0, &file.header, sizeof file.header);
  uint64_t arcs = writer->num_small + writer->num_large;
  if (loss != NULL)
    *loss = (wf__wlm_loss){arcs > 0 ? writer->loss_sum / (double)arcs : 0, writer->loss_worst};
  return wf__output_close(file.output, err);
}
