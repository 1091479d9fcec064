/* sphinx_lm.c - CMU Sphinx's trie language models (`en-us.lm.bin`) to words and n-grams for the intake.
 *
 *   "Trie Language Model"  u8 order  u32 counts[order]                    all little-endian
 *   if order > 1:   i32 unused, then tables of float32: for each order 2 .. order - 1 probabilities[65536], back-offs[65536]; for the
 *                   highest order probabilities[65536]
 *   unigrams        {float32 probability, float32 back-off, u32 first child} [counts[1] + 1]
 *   orders 2 ..     packed entries [counts[k] + 1], the lowest bit first, each order padded to whole bytes and 8 more:
 *                       word, bits(counts[1]) | back-off 16 | probability 16 | first child, bits(counts[k + 1])       below the highest
 *                       word, bits(counts[1]) | probability 16                                                        the highest
 *   words           i32 size, then the words in the order of the unigrams, each ended by NUL
 *
 * The trie is reversed: a unigram is the LAST word of an n-gram, a child is the word before its parent. Children of entry i are the entries
 * [first child of i, first child of i + 1) of the order above. 16-bit values are places in the tables; all values are logarithms to base 1.0001.
 *
 * Contexts are found from the first word on, so orders are handed in one after the other, each by a walk from the unigrams down to it. */
#include "lm/sphinx_lm.h"

#include <string.h>

#include "lm/intake.h"

static const char magic[] = "Trie Language Model"; /* without its NUL in the file */
static const double ln_base = 9.9995000333308335e-05; /* ln 1.0001, what sphinxbase writes its models in */
enum { TABLE_SIZE = 65536, UNIGRAM_BYTES = 12, QUANT_BITS = 16 };

/* Entries of one order above 1. */
typedef struct packed {
  const uint8_t *bits;
  const uint8_t *probabilities, *backoffs; /* tables; no back-offs at the highest order */
  uint32_t next_bits;                      /* width of `first child`; 0 at the highest order */
  uint32_t entry_bits;
} packed;

typedef struct trie {
  const wf__input *input;
  wf__cursor cursor;
  wf__intake *intake;
  uint32_t order, word_bits;
  uint32_t counts[WF_LM_MAX_ORDER + 1];
  const uint8_t *unigrams;
  packed level[WF_LM_MAX_ORDER + 1];      /* from 2 */
  uint64_t position[WF_LM_MAX_ORDER + 1]; /* entries of the order that the walk has passed */
  WF__VEC(uint32_t) label_of;             /* by number of the word */
  uint64_t num_done, num_all;             /* n-grams, for progress */
} trie;

typedef struct ngram_entry {
  uint32_t word;
  float cost, backoff;
  uint64_t first_child;
} ngram_entry;

/* --- bytes and bits ----------------------------------------------------------------------------------------------- */

static uint32_t load_u32(const uint8_t *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

static uint64_t load_u64(const uint8_t *at) { return (uint64_t)load_u32(at) | (uint64_t)load_u32(at + 4) << 32; }

static float load_f32(const uint8_t *at) {
  uint32_t bits = load_u32(at);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Cost in nats of a logarithm to base 1.0001; +0: never -0. */
static float cost_of(const uint8_t *at) { return (float)(-ln_base * (double)load_f32(at)) + 0.0f; }

static uint32_t width_of(uint32_t largest) {
  uint32_t width = 0;
  for (; largest != 0; largest >>= 1) width++;
  return width;
}

/* Up to 32 bits; the 8 bytes of padding keep the load inside. */
static uint32_t read_bits(const uint8_t *bits, uint64_t offset, uint32_t width) {
  return (uint32_t)(load_u64(bits + offset / 8) >> (offset % 8) & (((uint64_t)1 << width) - 1));
}

static ngram_entry read_entry(const trie *t, uint32_t k, uint64_t i) {
  if (k == 1) {
    const uint8_t *at = t->unigrams + i * UNIGRAM_BYTES;
    return (ngram_entry){(uint32_t)i, cost_of(at), cost_of(at + 4), load_u32(at + 8)};
  }
  const packed *level = &t->level[k];
  uint64_t offset = i * level->entry_bits;
  ngram_entry entry = {.word = read_bits(level->bits, offset, t->word_bits)};
  offset += t->word_bits;
  if (level->backoffs != NULL) {
    entry.backoff = cost_of(level->backoffs + 4 * (uint64_t)read_bits(level->bits, offset, QUANT_BITS));
    offset += QUANT_BITS;
  }
  entry.cost = cost_of(level->probabilities + 4 * (uint64_t)read_bits(level->bits, offset, QUANT_BITS));
  if (level->next_bits > 0) entry.first_child = read_bits(level->bits, offset + QUANT_BITS, level->next_bits);
  return entry;
}

/* --- layout ------------------------------------------------------------------------------------------------------- */

static wf_status read_header(trie *t, wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__read_view(&t->cursor, &bytes, sizeof magic - 1, "the head of a Sphinx language model", err));
  WF__TRY(wf__read_view(&t->cursor, &bytes, 1, "the order", err));
  t->order = bytes[0];
  if (t->order == 0) return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "order 0");
  if (t->order > WF_LM_MAX_ORDER) return wf__cursor_fail(&t->cursor, err, WF_ERR_LIMIT, "order %u: orders above %d are not supported", t->order, WF_LM_MAX_ORDER);
  t->num_all = 0;
  for (uint32_t k = 1; k <= t->order; k++) {
    WF__TRY(wf__read_u32(&t->cursor, &t->counts[k], "a count of n-grams", err));
    t->num_all += t->counts[k];
  }
  return WF_OK;
}

/* Views of the tables and entries; all sizes are checked against the bytes that are there. */
static wf_status read_layout(trie *t, wf_error *err) {
  const uint8_t *unused;
  if (t->order > 1) WF__TRY(wf__read_view(&t->cursor, &unused, 4, "the kind of tables", err));
  for (uint32_t k = 2; k <= t->order; k++) {
    WF__TRY(wf__read_view(&t->cursor, &t->level[k].probabilities, 4 * TABLE_SIZE, "a table of probabilities", err));
    if (k < t->order) WF__TRY(wf__read_view(&t->cursor, &t->level[k].backoffs, 4 * TABLE_SIZE, "a table of back-off weights", err));
  }
  WF__TRY(wf__read_view(&t->cursor, &t->unigrams, ((uint64_t)t->counts[1] + 1) * UNIGRAM_BYTES, "the unigrams", err));
  t->word_bits = width_of(t->counts[1]);
  for (uint32_t k = 2; k <= t->order; k++) {
    packed *level = &t->level[k];
    level->next_bits = k < t->order ? width_of(t->counts[k + 1]) : 0;
    level->entry_bits = t->word_bits + (k < t->order ? 2 * QUANT_BITS : QUANT_BITS) + level->next_bits;
    uint64_t size = (((uint64_t)t->counts[k] + 1) * level->entry_bits + 7) / 8 + 8;
    WF__TRY(wf__read_view(&t->cursor, &level->bits, size, "n-grams", err));
  }
  return WF_OK;
}

static wf_status read_words(trie *t, wf_error *err) {
  uint32_t size;
  const uint8_t *bytes;
  WF__TRY(wf__read_u32(&t->cursor, &size, "the size of the words", err));
  WF__TRY(wf__read_view(&t->cursor, &bytes, size, "the words", err));
  if (wf__cursor_left(&t->cursor) > 0) return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "expected the end of the file, found more bytes");
  if (t->counts[1] > size) return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "%u unigrams but %u bytes of words", t->counts[1], size);
  const char *at = (const char *)bytes, *end = at + size;
  t->label_of.size = 0;
  WF__TRY(wf__vec_grow(&t->label_of, t->counts[1], "words of a language model", err));
  for (uint32_t i = 0; i < t->counts[1]; i++) {
    const char *stop = memchr(at, '\0', (size_t)(end - at));
    if (stop == NULL || stop == at)
      return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "word %u of %u is %s", i + 1, t->counts[1], stop == NULL ? "missing" : "empty");
    wf_status status = wf__intake_word(t->intake, (wf__span){at, (size_t)(stop - at)}, &t->label_of.data[t->label_of.size++], err);
    if (status != WF_OK) return wf__fail_prefix(err, status, "%s: word %u", t->input->path, i + 1);
    at = stop + 1;
  }
  return WF_OK;
}

/* --- n-grams ------------------------------------------------------------------------------------------------------ */

static wf_status add_ngram(trie *t, uint32_t k, const ngram_entry *entry, const uint32_t *label, wf_error *err) {
  float backoff = k < t->order ? entry->backoff : 0;
  if (!wf__intake_is_cost(entry->cost) || !wf__intake_is_cost(backoff))
    return wf__fail(err, WF_ERR_FORMAT, "%s: a %u-gram has the log probability %g and log back-off weight %g", t->input->path, k, -(double)entry->cost, -(double)backoff);
  if (t->num_done++ % 65536 == 0) {
    double fraction = (double)t->num_done / (double)(t->num_all + 1);
    WF__TRY(wf__progress(t->intake->progress, "reading n-grams", fraction < 1 ? fraction : 1, err));
  }
  wf_status status = wf__intake_ngram(t->intake, (int)k, label, entry->cost, backoff, err);
  return status == WF_ERR_FORMAT ? wf__fail_prefix(err, status, "%s: %u-gram %llu", t->input->path, k, (unsigned long long)t->position[k]) : status;
}

/* Entries [begin, end) of order k, and what is below them down to order `wanted`, whose n-grams go to the intake. The words of entry and ancestors
 * are label[wanted - k] .. label[wanted - 1]. Each order is passed once from its beginning, so that no file makes the walk long. Depth: the order. */
static wf_status walk(trie *t, uint32_t k, uint32_t wanted, uint64_t begin, uint64_t end, uint32_t *label, wf_error *err) {
  if (begin != t->position[k] || end < begin || end > t->counts[k])
    return wf__fail(err, WF_ERR_FORMAT, "%s: expected %u-grams from %llu on, at most %u, found [%llu, %llu)", t->input->path, k,
                    (unsigned long long)t->position[k], t->counts[k], (unsigned long long)begin, (unsigned long long)end);
  for (uint64_t i = begin; i < end; i++) {
    ngram_entry entry = read_entry(t, k, i);
    t->position[k] = i + 1;
    if (entry.word >= t->counts[1])
      return wf__fail(err, WF_ERR_FORMAT, "%s: a %u-gram has word %u of %u", t->input->path, k, entry.word + 1, t->counts[1]);
    label[wanted - k] = t->label_of.data[entry.word];
    if (k == wanted)
      WF__TRY(add_ngram(t, k, &entry, label, err));
    else
      WF__TRY(walk(t, k + 1, wanted, entry.first_child, read_entry(t, k, i + 1).first_child, label, err));
  }
  return WF_OK;
}

static wf_status read_trie(void *user, wf__intake *intake, wf_error *err) {
  trie *t = user;
  t->intake = intake;
  t->cursor = wf__cursor_of(t->input);
  t->num_done = 0;
  WF__TRY(read_header(t, err));
  WF__TRY(read_layout(t, err));
  intake->levels.order = (int)t->order;
  WF__TRY(read_words(t, err));
  for (uint32_t k = 1; k <= t->order; k++) {
    uint32_t label[WF_LM_MAX_ORDER];
    memset(t->position, 0, sizeof t->position);
    if (intake->sink == NULL) WF__TRY(wf__vec_grow(&intake->levels.level[k].ngrams, t->counts[k], "n-grams", err));
    WF__TRY(walk(t, 1, k, 0, t->counts[1], label, err));
    wf_status status = wf__intake_end_level(intake, (int)k, err);
    if (status != WF_OK) return status == WF_ERR_FORMAT ? wf__fail_prefix(err, status, "%s", t->input->path) : status;
  }
  return WF_OK;
}

bool wf__lm_is_sphinx(const wf__input *input) { return input->size >= sizeof magic - 1 && memcmp(input->data, magic, sizeof magic - 1) == 0; }

wf_status wf__lm_read_sphinx_input(const wf__input *input, const wf_symbols *words, const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                                   const wf_progress *progress, wf_error *err) {
  trie t = {.input = input};
  wf_status status = wf__intake_run(input->path, words, options, read_trie, &t, out, stats, progress, err);
  wf__vec_free(&t.label_of);
  return status;
}

wf_status wf__lm_stream_sphinx(const wf__input *input, const wf_arpa_options *options, const wf__intake_sink *sink, wf__intake_facts *facts,
                               wf_arpa_stats *stats, const wf_progress *progress, wf_error *err) {
  trie t = {.input = input};
  wf_status status = wf__intake_stream(input->path, options, read_trie, &t, sink, facts, stats, progress, err);
  wf__vec_free(&t.label_of);
  return status;
}
