/* task_words.c - generates words, their spellings, and text.
 *
 * It imitates these properties of English with 127 byte-pair pieces (measured figures are in
 * bench/figures/history.md): frequent words have one or two pieces, rare words six and more;
 * words share beginnings; most occurrences of a word or of a pair of words are followed by one of a
 * few words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctc_task.h"

/* --- Zipf -------------------------------------------------------------------------------- */

enum { GUIDE = 4096 };

static bool zipf_make(uint32_t n, double exponent, struct zipf *out) {
  *out = (struct zipf){.n = n,
                       .sums = malloc(n * sizeof *out->sums),
                       .guide = malloc((GUIDE + 1) * sizeof *out->guide)};
  if (out->sums == NULL || out->guide == NULL) return false;
  double sum = 0;
  for (uint32_t rank = 0; rank < n; rank++) out->sums[rank] = sum += pow(rank + 2.7, -exponent);
  uint32_t rank = 0;
  for (int i = 0; i <= GUIDE; i++) {
    while (rank + 1 < n && out->sums[rank] < sum * i / GUIDE) rank++;
    out->guide[i] = rank;
  }
  return true;
}

static void zipf_free(struct zipf *zipf) {
  free(zipf->sums);
  free(zipf->guide);
}

static uint32_t zipf_draw(const struct zipf *zipf, uint64_t *random) {
  double u = random_unit(random), target = u * zipf->sums[zipf->n - 1];
  uint32_t low = zipf->guide[(int)(u * GUIDE)], high = zipf->guide[(int)(u * GUIDE) + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (zipf->sums[middle] < target)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* --- spelling ---------------------------------------------------------------------------- */

enum { LONGEST_WORD = 14 };

struct spelling {
  uint16_t pieces[LONGEST_WORD];
  uint32_t size;
};

/* The spellings in use: open addressing; entries are word number + 1. */
struct spelling_table {
  uint32_t *slots;
  uint64_t mask;
};

static bool spelling_is_new(const struct lexicon *lexicon, struct spelling_table *table,
                            const struct spelling *spelling, uint32_t word) {
  uint64_t hash = spelling->size;
  for (uint32_t i = 0; i < spelling->size; i++)
    hash = (hash ^ spelling->pieces[i]) * 0x9E3779B97F4A7C15u;
  for (uint64_t at = (hash ^ (hash >> 29)) & table->mask;; at = (at + 1) & table->mask) {
    if (table->slots[at] == 0) {
      table->slots[at] = word + 1;
      return true;
    }
    uint32_t other = table->slots[at] - 1;
    uint32_t size = lexicon->off[other + 1] - lexicon->off[other];
    if (size == spelling->size && memcmp(&lexicon->pieces[lexicon->off[other]], spelling->pieces,
                                         size * sizeof *spelling->pieces) == 0)
      return false;
  }
}

/* Distributions of pieces: first pieces, other pieces, and the rank of the follower of a piece. */
struct pieces {
  uint64_t seed;
  struct zipf starts, others, follower;
};

static uint32_t next_piece(const struct pieces *pieces, const struct lexicon *lexicon,
                           uint32_t last, uint64_t *random) {
  uint64_t choice =
      random_seed(pieces->seed, ((uint64_t)last << 32) + zipf_draw(&pieces->follower, random));
  return 1 + lexicon->num_starts + zipf_draw(&pieces->others, &choice);
}

/* Draws a new word, sometimes as the beginning of an earlier word and new pieces. */
static struct spelling draw_spelling(const struct lexicon *lexicon, uint32_t word,
                                     const struct pieces *pieces, uint64_t *random) {
  struct spelling out = {.size = 0};
  double decades = log10(word + 1.0), mean = fmin(0.8 + 0.29 * decades * decades, 6.3);
  int wish = (int)lround(
      mean + 1.4 * (random_unit(random) + random_unit(random) + random_unit(random) - 1.5));
  uint32_t size = wish < 1 ? 1 : wish > LONGEST_WORD ? LONGEST_WORD : (uint32_t)wish;
  if (word > 50 && random_unit(random) < 0.5) {
    uint32_t other = below(random, word), keep = lexicon->off[other + 1] - lexicon->off[other];
    if (keep >= size) keep = size > 1 ? size - 1 : 1;
    memcpy(out.pieces, &lexicon->pieces[lexicon->off[other]], keep * sizeof *out.pieces);
    out.size = keep;
  }
  if (out.size == 0) out.pieces[out.size++] = (uint16_t)(1 + zipf_draw(&pieces->starts, random));
  for (; out.size < size; out.size++)
    out.pieces[out.size] = (uint16_t)next_piece(pieces, lexicon, out.pieces[out.size - 1], random);
  return out;
}

bool lexicon_make(uint32_t num_words, uint32_t num_tokens, uint64_t seed, struct lexicon *out) {
  struct pieces pieces = {.seed = random_seed(seed, 4)};
  struct spelling_table table = {.mask = 1023};
  uint64_t random = random_seed(seed, 1);
  while (table.mask < (uint64_t)num_words * 2) table.mask = table.mask * 2 + 1;
  *out = (struct lexicon){
      .num_words = num_words, .num_tokens = num_tokens, .num_starts = (num_tokens - 1) * 45 / 100};
  out->off = calloc((size_t)num_words + 1, sizeof *out->off);
  out->pieces = malloc((size_t)num_words * LONGEST_WORD * sizeof *out->pieces);
  table.slots = calloc(table.mask + 1, sizeof *table.slots);
  bool good = out->off != NULL && out->pieces != NULL && table.slots != NULL &&
              zipf_make(out->num_starts, 1, &pieces.starts) &&
              zipf_make(num_tokens - 1 - out->num_starts, 1, &pieces.others) &&
              zipf_make(1000, 2, &pieces.follower);
  for (uint32_t word = 0; word < num_words && good; word++) {
    struct spelling spelling;
    do spelling = draw_spelling(out, word, &pieces, &random);
    while (!spelling_is_new(out, &table, &spelling, word));
    memcpy(&out->pieces[out->off[word]], spelling.pieces, spelling.size * sizeof *spelling.pieces);
    out->off[word + 1] = out->off[word] + spelling.size;
  }
  zipf_free(&pieces.starts);
  zipf_free(&pieces.others);
  zipf_free(&pieces.follower);
  free(table.slots);
  return good;
}

void lexicon_free(struct lexicon *lexicon) {
  free(lexicon->off);
  free(lexicon->pieces);
}

static bool write_token(FILE *file, const struct lexicon *lexicon, uint32_t token) {
  return fprintf(file,
                 token == 0                     ? "<blk>"
                 : token <= lexicon->num_starts ? "_p%u"
                                                : "p%u",
                 token) > 0;
}

bool lexicon_write(const struct lexicon *lexicon, const char *folder) {
  void *opened;
  if (!file_open(folder, "tokens.txt", &opened)) return false;
  FILE *file = opened;
  for (uint32_t token = 0; token < lexicon->num_tokens; token++) {
    write_token(file, lexicon, token);
    fprintf(file, " %u\n", token);
  }
  if (!file_close(file, "tokens.txt") || !file_open(folder, "lexicon.txt", &opened)) return false;
  file = opened;
  for (uint32_t word = 0; word < lexicon->num_words; word++) {
    fprintf(file, "w%u", word);
    for (uint32_t i = lexicon->off[word]; i < lexicon->off[word + 1]; i++) {
      fputc(' ', file);
      write_token(file, lexicon, lexicon->pieces[i]);
    }
    fputc('\n', file);
  }
  return file_close(file, "lexicon.txt");
}

/* --- text -------------------------------------------------------------------------------- */

bool text_process_make(uint32_t num_words, uint64_t seed, struct text_process *out) {
  *out = (struct text_process){.seed = random_seed(seed, 2)};
  return zipf_make(num_words, 1.2, &out->words) && zipf_make(12, 1, &out->after_two) &&
         zipf_make(80, 1, &out->after_one);
}

void text_process_free(struct text_process *process) {
  zipf_free(&process->words);
  zipf_free(&process->after_two);
  zipf_free(&process->after_one);
}

/* The k-th most likely follower of a context: a word drawn from the vocabulary by a fixed function
 * of the context and k. */
static uint32_t favourite(const struct text_process *process, uint64_t context, uint32_t k) {
  uint64_t random = random_seed(process->seed, context * 1000003 + k);
  return zipf_draw(&process->words, &random);
}

static uint32_t next_word(const struct text_process *process, uint32_t before, uint32_t last,
                          uint64_t *random) {
  double kind = random_unit(random);
  if (kind < 0.42)
    return favourite(process, ((uint64_t)before << 32) + last,
                     zipf_draw(&process->after_two, random));
  if (kind < 0.78) return favourite(process, last, zipf_draw(&process->after_one, random));
  return zipf_draw(&process->words, random);
}

static bool text_push(struct text *text, uint32_t id) {
  if (text->size == text->cap) {
    size_t cap = text->cap * 2 + 1024;
    uint32_t *ids = realloc(text->ids, cap * sizeof *ids);
    if (ids == NULL) return false;
    text->ids = ids;
    text->cap = cap;
  }
  text->ids[text->size++] = id;
  return true;
}

/* Log-normal lengths: median 28 words, mean 33, which are 10 and 12 seconds of speech. */
bool text_add_sentence(const struct text_process *process, uint64_t *random, struct text *text) {
  double normal =
      sqrt(-2 * log(1 - random_unit(random))) * cos(2 * 3.14159265358979 * random_unit(random));
  long size = lround(28 * exp(0.6 * normal));
  if (size < 5) size = 5;
  if (size > 90) size = 90;
  uint32_t before = UINT32_MAX, last = UINT32_MAX;
  for (long i = 0; i < size; i++) {
    uint32_t word = next_word(process, before, last, random);
    if (!text_push(text, word + FIRST_WORD)) return false;
    before = last;
    last = word;
  }
  return text_push(text, SENTENCE_END);
}
