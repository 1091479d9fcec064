/* sphinx_lm.c - CMU Sphinx's trie language models (`en-us.lm.bin`) to words and n-grams for the
 * collector.
 *
 * Layout, little-endian:
 *
 *   "Trie Language Model", u8 order, u32 counts[order]
 *   tables      if order > 1: i32 unused, then for each order from 2: f32 probabilities[65536] and,
 *               except for the highest order, f32 back-offs[65536]
 *   unigrams    {f32 probability, f32 back-off, u32 first child}[counts[1] + 1]
 *   order k >= 2, each: packed entries[counts[k] + 1], lowest bit first, padded to whole bytes and
 *               8 more bytes. Fields and their widths in bits:
 *                 below the highest order  word bits(counts[1]), back-off 16, probability 16,
 *                                          first child bits(counts[k + 1])
 *                 highest order            word bits(counts[1]), probability 16
 *   words       i32 size, then the words in the order of the unigrams, each ended by NUL
 *
 * The trie is reversed (reversed_trie.h). Children of entry i are the entries [first child of i,
 * first child of i + 1) of the next higher order. 16-bit values are indices into the tables. All
 * values are logarithms to base 1.0001. */
#include "lm/sphinx_lm.h"

#include "lm/reversed_trie.h"

static const char magic[] = "Trie Language Model";    /* without its NUL in the file */
static const double ln_base = 9.9995000333308335e-05; /* ln 1.0001, the base of the logarithms */
enum { TABLE_SIZE = 65536, UNIGRAM_BYTES = 12, QUANT_BITS = 16 };

/* Entries of one order above 1. */
typedef struct packed {
  const uint8_t *bits;
  const uint8_t *probabilities, *backoffs; /* tables; no back-offs at the highest order */
  uint32_t next_bits;                      /* width of `first child`; 0 at the highest order */
  uint32_t entry_bits;
} packed;

typedef struct sphinx_lm {
  wf__reversed_trie trie;
  uint32_t word_bits;
  const uint8_t *unigrams;
  packed level[WF_LM_MAX_ORDER + 1]; /* by order, from 2 */
} sphinx_lm;

/* Converts a logarithm to base 1.0001 to a cost in nats. + 0 turns -0 into 0. */
static float cost_of(const uint8_t *at) {
  return (float)(-ln_base * (double)wf__load_f32(at)) + 0.0f;
}

static wf__trie_entry read_entry(const void *format, uint32_t k, uint64_t i) {
  const sphinx_lm *lm = format;
  if (k == 1) {
    const uint8_t *at = lm->unigrams + i * UNIGRAM_BYTES;
    return (wf__trie_entry){i, cost_of(at), cost_of(at + 4), wf__load_u32(at + UNIGRAM_BYTES + 8)};
  }
  const packed *level = &lm->level[k];
  uint64_t offset = i * level->entry_bits;
  wf__trie_entry entry = {.word = wf__read_bits(level->bits, offset, lm->word_bits)};
  offset += lm->word_bits;
  if (level->backoffs != NULL) {
    entry.backoff = cost_of(level->backoffs + 4 * wf__read_bits(level->bits, offset, QUANT_BITS));
    offset += QUANT_BITS;
  }
  entry.cost = cost_of(level->probabilities + 4 * wf__read_bits(level->bits, offset, QUANT_BITS));
  entry.children_end =
      wf__read_bits(level->bits, offset + QUANT_BITS + level->entry_bits, level->next_bits);
  return entry;
}

static wf_status read_header(wf__reversed_trie *t, wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__read_view(&t->cursor, &bytes, sizeof magic - 1, "the head of a Sphinx language model",
                        err));
  WF__TRY(wf__read_view(&t->cursor, &bytes, 1, "the order", err));
  t->order = bytes[0];
  WF__TRY(wf__reversed_trie_check_order(t, err));
  for (uint32_t k = 1; k <= t->order; k++) {
    uint32_t count;
    WF__TRY(wf__read_u32(&t->cursor, &count, "a count of n-grams", err));
    t->counts[k] = count;
  }
  return WF_OK;
}

/* Sets the views of the tables and entries. All sizes are checked against the size of the file. */
static wf_status read_layout(sphinx_lm *lm, wf_error *err) {
  wf__reversed_trie *t = &lm->trie;
  const uint8_t *unused;
  if (t->order > 1) WF__TRY(wf__read_view(&t->cursor, &unused, 4, "the kind of tables", err));
  for (uint32_t k = 2; k <= t->order; k++) {
    WF__TRY(wf__read_view(&t->cursor, &lm->level[k].probabilities, 4 * TABLE_SIZE,
                          "a table of probabilities", err));
    if (k < t->order)
      WF__TRY(wf__read_view(&t->cursor, &lm->level[k].backoffs, 4 * TABLE_SIZE,
                            "a table of back-off weights", err));
  }
  WF__TRY(wf__read_view(&t->cursor, &lm->unigrams, (t->counts[1] + 1) * UNIGRAM_BYTES,
                        "the unigrams", err));
  lm->word_bits = wf__bit_width(t->counts[1]);
  for (uint32_t k = 2; k <= t->order; k++) {
    packed *level = &lm->level[k];
    level->next_bits = k < t->order ? wf__bit_width(t->counts[k + 1]) : 0;
    level->entry_bits =
        lm->word_bits + (k < t->order ? 2 * QUANT_BITS : QUANT_BITS) + level->next_bits;
    WF__TRY(wf__read_view(&t->cursor, &level->bits,
                          wf__packed_bytes(t->counts[k], level->entry_bits), "n-grams", err));
  }
  return WF_OK;
}

static wf_status read_all(sphinx_lm *lm, wf_error *err) {
  uint32_t size;
  WF__TRY(read_header(&lm->trie, err));
  WF__TRY(read_layout(lm, err));
  lm->trie.collector->levels.order = (int)lm->trie.order;
  WF__TRY(wf__read_u32(&lm->trie.cursor, &size, "the size of the words", err));
  WF__TRY(wf__reversed_trie_words(&lm->trie, size, err));
  return wf__reversed_trie_ngrams(&lm->trie, err);
}

bool wf__lm_is_sphinx(const wf__input *input) {
  return input->size >= sizeof magic - 1 && memcmp(input->data, magic, sizeof magic - 1) == 0;
}

wf_status wf__lm_read_sphinx(void *user, wf__ngram_collector *collector, wf_error *err) {
  const wf__input *input = user;
  sphinx_lm lm = {.trie = {.input = input,
                           .collector = collector,
                           .cursor = wf__cursor_of(input),
                           .read_entry = read_entry,
                           .format = &lm}};
  wf_status status = read_all(&lm, err);
  wf__vec_free(&lm.trie.label_of);
  return status;
}
