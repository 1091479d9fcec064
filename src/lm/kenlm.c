/* kenlm.c - KenLM's binary tries (`build_binary trie`, with or without -q, -b and -a) to words and
 * n-grams for the collector.
 *
 * Layout, little-endian, a word's bits W = bits(counts[1]):
 *
 *   magic        "mmap lm http://kheafield.com/code format version 5\n", NUL up to byte 56
 *   machine      f32 0, 1, -0.5; u32 1, 0xffffffff, 0; u64 1: the sizes and byte order of types
 *   parameters   u8 order, 3 unused bytes; f32 unused; u32 type; u8 has words, 3 unused bytes;
 *                u32 version of the type; u64 counts[order]; 4 unused bytes
 *   vocabulary   u64 counts[1] - 1, u64 hashes[counts[1]]; not used here
 *   tables       types 3 and 5 (quantised): u8 version, prob_bits, backoff_bits, 5 unused bytes;
 *                for each order from 2: f32 probabilities[2^prob_bits] and, except for the highest
 *                order, f32 back-offs[2^backoff_bits]
 *   unigrams     {f32 probability, f32 back-off, u64 first child}[counts[1] + 2]: <unk> first, the
 *                others in the order of their hashes
 *   order k >= 2, each:
 *     steps      types 4 and 5 (array compression), except for the highest order: u8 version,
 *                chop_bits; padding to a multiple of 8 bytes; u64 unused, u64 steps[]; padding
 *     entries    packed[counts[k] + 1], lowest bit first, padded to whole bytes and 8 more bytes.
 *                Fields and their widths in bits:
 *                  types 2 and 4  word W, probability 31, back-off 32, first child
 *                  types 3 and 5  word W, back-off backoff_bits, probability prob_bits, first child
 *                  The highest order has neither back-off nor first child. `first child` is
 *                  bits(counts[k + 1]) wide, in types 4 and 5 less the bits that the steps encode.
 *   text         the words in the order of the unigrams, each ended by NUL
 *
 * The trie is reversed (reversed_trie.h). Values are log10. A probability of 31 bits is stored
 * without its sign, which is always minus. Quantised values are indices into the tables. Types 4
 * and 5 do not store the highest bits of `first child`: these are the number of steps[1 ..] that
 * are at most the index of the entry.
 *
 * A trie needs every suffix `b c` of an n-gram `a b c`. KenLM adds suffixes that the ARPA file
 * lacks, with their backed-off probability and back-off weight 1. The file does not mark them. They
 * are read like any other n-gram and change no probability. An <unk> that KenLM added is not marked
 * either. */
#include "lm/kenlm.h"

#include "lm/reversed_trie.h"
#include "math/cost.h"

#define MAGIC "mmap lm http://kheafield.com/code"
#define BUILD "'build_binary trie ARPA FILE'"
static const char magic[] = MAGIC, unfinished[] = MAGIC " incomplete\n",
                  version_5[] = MAGIC " format version 5\n";
enum { MAGIC_BYTES = 56, UNIGRAM_BYTES = 16, MAX_TABLE_BITS = 25 };
enum {
  TRIE = 2,
  QUANTISED_TRIE = 3,
  ARRAY_TRIE = 4,
  QUANTISED_ARRAY_TRIE = 5
}; /* lower types are probing hash tables */

/* Entries of one order above 1. */
typedef struct packed {
  const uint8_t *bits;
  const uint8_t *probabilities, *backoffs; /* tables of quantised values, or NULL */
  const uint8_t *steps;                    /* u64; NULL: none */
  uint64_t num_steps;
  uint32_t next_bits; /* width of `first child` in an entry; 0 at the highest order */
  uint32_t entry_bits;
} packed;

typedef struct kenlm {
  wf__reversed_trie trie;
  uint32_t type, word_bits, probability_bits, backoff_bits;
  const uint8_t *unigrams;
  packed level[WF_LM_MAX_ORDER + 1]; /* by order, from 2 */
} kenlm;

/* --- entries ----------------------------------------------------------------------------- */

static float read_value(const packed *level, const uint8_t *table, uint64_t offset, uint32_t width,
                        uint32_t sign) {
  uint64_t value = wf__read_bits(level->bits, offset, width);
  return wf__cost_of_log10(table != NULL ? wf__load_f32(table + 4 * value)
                                         : wf__float_of_bits((uint32_t)value | sign));
}

/* First child of entry i; i may be one past the last entry. */
static uint64_t first_child(const kenlm *lm, const packed *level, uint64_t i) {
  uint64_t offset = i * level->entry_bits + lm->word_bits + lm->backoff_bits + lm->probability_bits;
  uint64_t first = 0, last = level->num_steps;
  while (first < last) { /* binary search for the number of steps that are at most i */
    uint64_t middle = first + (last - first) / 2;
    if (wf__load_u64(level->steps + 8 * middle) <= i)
      first = middle + 1;
    else
      last = middle;
  }
  return first << level->next_bits | wf__read_bits(level->bits, offset, level->next_bits);
}

static wf__trie_entry read_entry(const void *format, uint32_t k, uint64_t i) {
  const kenlm *lm = format;
  if (k == 1) {
    const uint8_t *at = lm->unigrams + i * UNIGRAM_BYTES;
    return (wf__trie_entry){i, wf__cost_of_log10(wf__load_f32(at)),
                            wf__cost_of_log10(wf__load_f32(at + 4)),
                            wf__load_u64(at + UNIGRAM_BYTES + 8)};
  }
  const packed *level = &lm->level[k];
  const bool quantised = level->probabilities != NULL, highest = k == lm->trie.order;
  uint64_t offset = i * level->entry_bits;
  wf__trie_entry entry = {.word = wf__read_bits(level->bits, offset, lm->word_bits)};
  offset += lm->word_bits;
  entry.cost = read_value(level, level->probabilities,
                          quantised && !highest ? offset + lm->backoff_bits : offset,
                          lm->probability_bits, 0x80000000u);
  if (highest) return entry;
  entry.backoff =
      read_value(level, level->backoffs, quantised ? offset : offset + lm->probability_bits,
                 lm->backoff_bits, 0);
  entry.children_end = first_child(lm, level, i + 1);
  return entry;
}

/* --- layout ------------------------------------------------------------------------------ */

static wf_status check_machine(wf__reversed_trie *t, wf_error *err) {
  const char *path = t->input->path;
  const uint8_t *at;
  if (t->input->size >= sizeof unfinished - 1 &&
      memcmp(t->input->data, unfinished, sizeof unfinished - 1) == 0)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: KenLM's build_binary did not finish this file: run it again", path);
  WF__TRY(wf__read_view(&t->cursor, &at, MAGIC_BYTES, "the head of a KenLM language model", err));
  if (memcmp(at, version_5, sizeof version_5) != 0)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: a KenLM file of another version than 5: give the ARPA file, or build the "
                    "file again, with " BUILD,
                    path);
  WF__TRY(wf__read_view(&t->cursor, &at, 32, "the head of a KenLM language model", err));
  if (wf__load_f32(at) != 0 || wf__load_f32(at + 4) != 1 || wf__load_f32(at + 8) != -0.5f ||
      wf__load_u32(at + 12) != 1 || wf__load_u32(at + 16) != UINT32_MAX ||
      wf__load_u64(at + 24) != 1)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: a KenLM file made on another kind of machine: give the ARPA file, or "
                    "build the file again, with " BUILD,
                    path);
  return WF_OK;
}

static wf_status check_type(const kenlm *lm, bool has_words, uint32_t version, wf_error *err) {
  const char *path = lm->trie.input->path;
  if (lm->type < TRIE)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: a KenLM file of type 'probing', which holds hashes in place of the "
                    "n-grams' words: give the ARPA file, or build a trie, with " BUILD,
                    path);
  if (lm->type > QUANTISED_ARRAY_TRIE || version != 1)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: a KenLM file of the unknown type %u, version %u: give the ARPA file, or "
                    "build a trie, with " BUILD,
                    path, lm->type, version);
  if (!has_words)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: a KenLM file without the words (build_binary -v): give the ARPA file, or "
                    "build the file again, with " BUILD,
                    path);
  return WF_OK;
}

static wf_status read_header(kenlm *lm, wf_error *err) {
  wf__reversed_trie *t = &lm->trie;
  const uint8_t *at;
  WF__TRY(check_machine(t, err));
  WF__TRY(wf__read_view(&t->cursor, &at, 20, "the parameters", err));
  t->order = at[0];
  lm->type = wf__load_u32(at + 8);
  WF__TRY(check_type(lm, at[12] != 0, wf__load_u32(at + 16), err));
  WF__TRY(wf__reversed_trie_check_order(t, err));
  for (uint32_t k = 1; k <= t->order; k++) {
    WF__TRY(wf__read_u64(&t->cursor, &t->counts[k], "a count of n-grams", err));
    if (t->counts[k] / 8 >
        t->input->size) /* each takes at least a bit, so the sizes below cannot overflow */
      return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "%llu %u-grams in %llu bytes",
                             (unsigned long long)t->counts[k], k,
                             (unsigned long long)t->input->size);
  }
  uint64_t num_hashes;
  WF__TRY(wf__read_view(&t->cursor, &at, 4, "the parameters", err));
  WF__TRY(wf__read_u64(&t->cursor, &num_hashes, "the number of words", err));
  if (num_hashes + 1 != t->counts[1])
    return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT,
                           "expected %llu words and <unk>, found %llu unigrams",
                           (unsigned long long)num_hashes, (unsigned long long)t->counts[1]);
  return wf__read_view(&t->cursor, &at, t->counts[1] * 8, "the hashes of the words", err);
}

/* Reads the tables of quantised values, if any, and the number of bits of a value in an entry. */
static wf_status read_tables(kenlm *lm, wf_error *err) {
  wf__reversed_trie *t = &lm->trie;
  lm->probability_bits = 31;
  lm->backoff_bits = 32;
  if (lm->type != QUANTISED_TRIE && lm->type != QUANTISED_ARRAY_TRIE) return WF_OK;
  const uint8_t *at;
  WF__TRY(wf__read_view(&t->cursor, &at, 8, "the head of the tables", err));
  lm->probability_bits = at[1];
  lm->backoff_bits = at[2];
  if (at[0] != 2)
    return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT,
                           "expected version 2 of quantised values, found %u", at[0]);
  if (at[1] == 0 || at[1] > MAX_TABLE_BITS || at[2] == 0 || at[2] > MAX_TABLE_BITS)
    return wf__cursor_fail(
        &t->cursor, err, WF_ERR_FORMAT,
        "expected 1 to %d bits for a probability and a back-off weight, found %u and %u",
        MAX_TABLE_BITS, at[1], at[2]);
  for (uint32_t k = 2; k <= t->order; k++) {
    WF__TRY(wf__read_view(&t->cursor, &lm->level[k].probabilities,
                          (uint64_t)4 << lm->probability_bits, "a table of probabilities", err));
    if (k < t->order)
      WF__TRY(wf__read_view(&t->cursor, &lm->level[k].backoffs, (uint64_t)4 << lm->backoff_bits,
                            "a table of back-off weights", err));
  }
  return WF_OK;
}

/* Reads the steps, which encode the highest bits of `first child`. KenLM chooses the number of
 * removed bits that makes the file smallest: a stored bit takes one bit per entry, a removed bit
 * doubles the number of 64-bit steps. The file does not say how many, so it is computed again. */
static wf_status read_steps(kenlm *lm, uint32_t k, wf_error *err) {
  wf__reversed_trie *t = &lm->trie;
  packed *level = &lm->level[k];
  const uint8_t *at;
  WF__TRY(wf__read_view(&t->cursor, &at, 2, "the head of the steps", err));
  if (at[0] != 0)
    return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT,
                           "expected version 0 of compressed pointers, found %u", at[0]);
  const uint32_t most = at[1] < level->next_bits ? at[1] : level->next_bits,
                 width = level->next_bits;
  int64_t least = INT64_MAX;
  for (uint32_t chop = 0; chop <= most; chop++) {
    uint64_t num_steps = t->counts[k + 1] >> (width - chop);
    int64_t change = (int64_t)(num_steps * 64) - (int64_t)((t->counts[k] + 1) * chop);
    if (change >= least) continue;
    least = change;
    level->next_bits = width - chop;
    level->num_steps = num_steps;
  }
  /* After the head at `at`: padding to a multiple of 8 bytes, 8 unused bytes, then steps[0], which
   * is 0 and is skipped. */
  const uint64_t pad = (8 - (wf__cursor_offset(&t->cursor) - 2) % 8) % 8;
  WF__TRY(wf__read_view(&t->cursor, &level->steps, 8 * (2 + level->num_steps) + 7 - 2,
                        "the steps of pointers", err));
  level->steps += pad + 16 - 2;
  return WF_OK;
}

/* Sets the views of the entries. All sizes are checked against the size of the file. */
static wf_status read_levels(kenlm *lm, wf_error *err) {
  wf__reversed_trie *t = &lm->trie;
  WF__TRY(wf__read_view(&t->cursor, &lm->unigrams, (t->counts[1] + 2) * UNIGRAM_BYTES,
                        "the unigrams", err));
  lm->word_bits = wf__bit_width(t->counts[1]);
  for (uint32_t k = 2; k <= t->order; k++) {
    packed *level = &lm->level[k];
    level->entry_bits = lm->word_bits + lm->probability_bits;
    if (k < t->order) {
      level->next_bits = wf__bit_width(t->counts[k + 1]);
      if (lm->type >= ARRAY_TRIE) WF__TRY(read_steps(lm, k, err));
      level->entry_bits += lm->backoff_bits + level->next_bits;
    }
    WF__TRY(wf__read_view(&t->cursor, &level->bits,
                          wf__packed_bytes(t->counts[k], level->entry_bits), "n-grams", err));
  }
  return WF_OK;
}

static wf_status read_all(kenlm *lm, wf_error *err) {
  wf__reversed_trie *t = &lm->trie;
  WF__TRY(read_header(lm, err));
  WF__TRY(read_tables(lm, err));
  WF__TRY(read_levels(lm, err));
  t->collector->levels.order = (int)t->order;
  uint64_t size = wf__cursor_left(&t->cursor);
  if (size < sizeof "<unk>" || memcmp(t->cursor.at, "<unk>", sizeof "<unk>") != 0)
    return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT,
                           "expected the words, '<unk>' before the others");
  WF__TRY(wf__reversed_trie_words(t, size, err));
  return wf__reversed_trie_ngrams(t, err);
}

/* --- calls ------------------------------------------------------------------------------- */

bool wf__lm_is_kenlm(const wf__input *input) {
  return input->size >= sizeof magic - 1 && memcmp(input->data, magic, sizeof magic - 1) == 0;
}

wf_status wf__lm_read_kenlm(void *user, wf__ngram_collector *collector, wf_error *err) {
  const wf__input *input = user;
  kenlm lm = {.trie = {.input = input,
                       .collector = collector,
                       .cursor = wf__cursor_of(input),
                       .read_entry = read_entry,
                       .format = &lm}};
  wf_status status = read_all(&lm, err);
  wf__vec_free(&lm.trie.label_of);
  return status;
}
