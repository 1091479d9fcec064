/* bench_generate_lm.c - generates a language model of any size for benchmarks, directly in the
 * format of `warpfst lm convert`.
 *
 *     bench_generate_lm OUT [--words-log2=18] [--ngrams=1000000000] [--seed=1] [--memory=BYTES]
 *     [--threads=0] [--small=small.arpa] [--small-share=64]
 *
 *                       [--text=FILE] [--sentences=100000]
 *
 * If the name of OUT ends in .arpa, the same model is written as text, as input for benchmarks of
 * `warpfst lm convert`.
 *
 * Only a few tables by word are stored; n-grams are functions of their numbers. Words are
 * ranks 0 .. V - 1, V = 2^words_log2 - 1, of a Zipf-Mandelbrot law, p(r) ~ 1 / (r + 3). The model
 * has order 3:
 *
 *   Word w has n2(w) ~ p(w)^(5/8) explicit successors. The rank of the j-th grows like the law's
 *   quantiles, and is then permuted within its octave of ranks; the permutation depends on w.
 *   `w s(w, j)` is history number off2(w) + j of level 2.
 *   History (w, j) has n3 ~ (p(w) p(s(w, j)))^(5/8) arcs, to some of the explicit successors of its
 *   last word, with more of the likelier ones. Their `next` is the history of the last two words.
 *
 * So contexts are closed under suffixes, as in a model estimated from text, and most arcs are in
 * histories with many arcs. Costs are unigram costs minus a random amount; probabilities do not sum
 * to 1. All arithmetic uses integers, and products and square roots of doubles, which every
 * platform rounds in the same way: the same arguments give the same file everywhere. --text writes
 * sentences from a random walk over the model: 11 of 20 words end a trigram, 5 a bigram, 4 are
 * arbitrary.
 * --small writes an ARPA file of order 2 with the first bigrams of each word, to build a graph. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "common.h"
#include "lm/wlm_file.h"
#include "math/hash.h"

enum { STATES_IN_BLOCK = 4096, BLOCKS = 64, QUANTILES = 4096 };

struct task {
  const char *out, *small, *text;
  int words_log2, threads;
  uint64_t num_ngrams, seed, memory, small_share, num_sentences;
  uint32_t num_words;
  double scale2, scale3;
  uint64_t *off2; /* [num_words + 1] first history of each word */
  uint64_t *
      quantiles; /* [QUANTILES + 1] rank at which the law's cumulative mass reaches each quantile */
  uint32_t *costs; /* [num_words] -ln p(r), in 2^-12 nats */
};

struct block {
  uint64_t first, count; /* histories of level 2, counted from 0 */
  wf__wlm_arc *arcs;
  uint64_t size, cap;
  uint32_t num_arcs[STATES_IN_BLOCK], backoff[STATES_IN_BLOCK], first_word[STATES_IN_BLOCK];
  float backoff_cost[STATES_IN_BLOCK];
  char *text; /* ARPA lines of its n-grams */
  uint64_t text_size, text_cap;
};

static void *room(void *old, uint64_t count, size_t size) {
  void *memory = realloc(old, (count > 0 ? count : 1) * size);
  if (memory == NULL) fail("out of memory");
  return memory;
}

/* x^(-5/8), computed only with correctly rounded operations. */
static double share(uint32_t rank) {
  double x = (double)rank + 3;
  return 1 / (sqrt(x) * sqrt(sqrt(sqrt(x))));
}

static uint64_t hash(const struct task *t, uint64_t a, uint64_t b) {
  return wf__mix64(t->seed * 0x9e3779b97f4a7c15ULL + wf__mix64(a * 0x100000001b3ULL + b + 1));
}

static uint64_t n2(const struct task *t, uint32_t w) {
  double n = t->scale2 * share(w);
  uint64_t most = t->num_words / 3;
  return n < 1 ? 1 : n > (double)most ? most : (uint64_t)n;
}

/* Rank of the j-th of n successors before the permutation. Strictly increasing in j. */
static uint64_t spread(const struct task *t, uint64_t j, uint64_t n) {
  uint64_t at = j * QUANTILES, i = at / n, rest = at % n;
  uint64_t rank = t->quantiles[i] + (t->quantiles[i + 1] - t->quantiles[i]) * rest / n;
  return rank > j ? rank : j;
}

/* The j-th successor of w. */
static uint32_t successor(const struct task *t, uint32_t w, uint64_t j, uint64_t n) {
  uint64_t number = spread(t, j, n) + 1, octave = 63 - (uint64_t)__builtin_clzll(number),
           mask = ((uint64_t)1 << octave) - 1, h = hash(t, w, octave);
  uint64_t moved = ((number & mask) * (h | 1) + (h >> 20)) & mask;
  return (uint32_t)((((uint64_t)1 << octave) | moved) - 1);
}

/* Number of arcs of the history (w, j), whose last word v has n successors. */
static uint64_t n3(const struct task *t, uint32_t w, uint32_t v, uint64_t n) {
  double arcs = t->scale3 * share(w) * share(v);
  if (arcs < 1) return hash(t, w, v) % 1024 < (uint64_t)(arcs * 1024) ? 1 : 0;
  return arcs > (double)n ? n : (uint64_t)arcs;
}

/* log2(x) in units of 2^-16, computed bit by bit. */
static uint64_t log2_fixed(uint64_t x) {
  uint64_t whole = 63 - (uint64_t)__builtin_clzll(x), bits = whole << 16,
           m = whole > 31 ? x >> (whole - 31) : x << (31 - whole);
  for (int bit = 15; bit >= 0; bit--) {
    m = (m * m) >> 31;
    if (m >> 32) {
      m >>= 1;
      bits |= (uint64_t)1 << bit;
    }
  }
  return bits;
}

static void make_tables(struct task *t) {
  uint32_t V = t->num_words = (uint32_t)(((uint64_t)1 << t->words_log2) - 1);
  t->costs = room(NULL, V, sizeof *t->costs);
  t->quantiles = room(NULL, QUANTILES + 1, sizeof *t->quantiles);
  t->off2 = room(NULL, (uint64_t)V + 1, sizeof *t->off2);
  uint64_t total = 0, sum = 0, q = 0;
  for (uint32_t r = 0; r < V; r++) total += ((uint64_t)1 << 40) / (r + 3);
  for (uint32_t r = 0; r < V; r++) {
    uint64_t mass = ((uint64_t)1 << 40) / (r + 3);
    t->costs[r] =
        (uint32_t)((log2_fixed(total) - log2_fixed(mass)) * 2839 >> 16); /* ln 2 in 2^-12 */
    for (; q <= QUANTILES && sum * QUANTILES >= q * total; q++) t->quantiles[q] = r;
    sum += mass;
  }
  for (; q <= QUANTILES; q++) t->quantiles[q] = V;
  /* One seventh of the n-grams are bigrams. */
  double shares = 0;
  for (uint32_t w = 0; w < V; w++) shares += share(w);
  t->scale2 = (double)t->num_ngrams / 7 / shares;
  t->off2[0] = 0;
  for (uint32_t w = 0; w < V; w++) t->off2[w + 1] = t->off2[w] + n2(t, w);
}

/* Chooses the scale at which histories have the requested number of arcs, counted on a sample. */
static void choose_scale3(struct task *t) {
  double wanted = (double)t->num_ngrams - (double)t->num_words - (double)t->off2[t->num_words],
         low = 0, high = 1e15;
  enum { SAMPLES = 200000 };
  for (int round = 0; round < 60; round++) {
    t->scale3 = (low + high) / 2;
    uint64_t arcs = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
      uint64_t state = t->off2[t->num_words] / SAMPLES * i +
                       hash(t, i, 77) % (t->off2[t->num_words] / SAMPLES + 1);
      uint32_t w = 0, end = t->num_words;
      if (state >= t->off2[t->num_words]) continue;
      while (end - w > 1) {
        uint32_t middle = w + (end - w) / 2;
        if (t->off2[middle] <= state)
          w = middle;
        else
          end = middle;
      }
      uint32_t v = successor(t, w, state - t->off2[w], n2(t, w));
      arcs += n3(t, w, v, n2(t, v));
    }
    if ((double)arcs / SAMPLES * (double)t->off2[t->num_words] > wanted)
      high = t->scale3;
    else
      low = t->scale3;
  }
}

static float nats(uint64_t fixed) { return (float)fixed / 4096; }
/* Word r has the number r + 3; 1 is <s>, 2 is </s>, 0 is unused. */
enum { BOS = 1, EOS = 2, FIRST_WORD = 3 };
static uint32_t level1(uint32_t r) { return 1 + 1 + r; } /* state 1: <s> */
static uint64_t level2(const struct task *t, uint64_t history) {
  return 2 + (uint64_t)t->num_words + history;
}

/* Cost of a bigram or trigram: the unigram's cost minus up to 3 nats. */
static float cost_of(const struct task *t, uint32_t word, uint64_t h) {
  uint32_t cost = t->costs[word], less = 1024 + (uint32_t)(h >> 40 & 8191);
  return nats(cost > less + 128 ? cost - less : 128);
}

static void push(struct block *b, uint32_t word, float cost, uint64_t next) {
  if (b->size == b->cap) b->arcs = room(b->arcs, b->cap = 2 * b->cap + 65536, sizeof *b->arcs);
  b->arcs[b->size++] = (wf__wlm_arc){word + FIRST_WORD, cost, (uint32_t)next};
}

/* Fills in histories [first, first + count) of level 2. */
static void fill_block(const struct task *t, struct block *b) {
  uint32_t w = 0, end = t->num_words;
  while (end - w > 1) {
    uint32_t middle = w + (end - w) / 2;
    if (t->off2[middle] <= b->first)
      w = middle;
    else
      end = middle;
  }
  b->size = 0;
  for (uint64_t k = 0; k < b->count; k++) {
    uint64_t history = b->first + k, before = b->size;
    while (t->off2[w + 1] <= history) w++;
    uint32_t v = successor(t, w, history - t->off2[w], n2(t, w));
    uint64_t n = n2(t, v), arcs = n3(t, w, v, n);
    for (uint64_t a = 0; a < arcs; a++) {
      uint64_t i = (uint64_t)((double)n * ((double)a / (double)arcs) * ((double)a / (double)arcs));
      if (i < a) i = a;
      uint32_t word = successor(t, v, i, n);
      push(b, word, cost_of(t, word, hash(t, history, i)), level2(t, t->off2[v] + i));
    }
    b->num_arcs[k] = (uint32_t)(b->size - before);
    b->first_word[k] = w;
    b->backoff[k] = level1(v);
    b->backoff_cost[k] = arcs == 0 ? 0 : nats(256 + (hash(t, history, 3) & 4095));
  }
}

struct batch {
  const struct task *task;
  struct block *blocks;
  void (*use)(const struct task *t,
              struct block *b); /* called by the thread that filled the block; may be NULL */
};

static void fill_item(void *user, uint64_t item, int worker) {
  const struct batch *batch = user;
  fill_block(batch->task, &batch->blocks[item]);
  if (batch->use != NULL) batch->use(batch->task, &batch->blocks[item]);
}

/* Goes over level 2: threads fill blocks and call `use`; then `take` is called in order. */
static void for_blocks(const struct task *t, void (*use)(const struct task *t, struct block *b),
                       void (*take)(void *user, struct block *b), void *user) {
  wf_error err = {0};
  wf__pool *pool;
  struct block *blocks = calloc(BLOCKS, sizeof *blocks);
  if (blocks == NULL || wf__pool_create(t->threads, &pool, &err) != WF_OK) fail("out of memory");
  uint64_t total = t->off2[t->num_words];
  for (uint64_t at = 0; at < total;) {
    uint64_t count = 0;
    for (; count < BLOCKS && at < total; at += blocks[count++].count) {
      blocks[count].first = at;
      blocks[count].count = total - at < STATES_IN_BLOCK ? total - at : STATES_IN_BLOCK;
    }
    struct batch batch = {t, blocks, use};
    wf__pool_run(pool, count, fill_item, &batch);
    for (uint64_t i = 0; i < count; i++) take(user, &blocks[i]);
  }
  for (int i = 0; i < BLOCKS; i++) {
    free(blocks[i].arcs);
    free(blocks[i].text);
  }
  free(blocks);
  wf__pool_free(pool);
}

static float backoff1(const struct task *t, uint64_t state) {
  return nats(1024 + (hash(t, state, 5) & 4095));
}

/* Writes level 1: <s>, with the successors of the likeliest word, then the words. */
static void write_level1(const struct task *t, wf__wlm_writer *writer, uint64_t *num_arcs) {
  wf_error err = {0};
  struct block b = {0};
  for (uint64_t s = 0; s <= t->num_words; s++) {
    uint32_t w = s == 0 ? 0 : (uint32_t)s - 1;
    uint64_t n = n2(t, w);
    b.size = 0;
    for (uint64_t j = 0; j < n; j++) {
      uint32_t word = successor(t, w, j, n);
      push(&b, word, cost_of(t, word, hash(t, s, j)),
           s == 0 ? level1(word) : level2(t, t->off2[w] + j));
    }
    *num_arcs += n;
    check(wf__wlm_writer_state(writer, 0, backoff1(t, s), b.arcs, n, &err), &err);
  }
  free(b.arcs);
}

struct level2_writer {
  wf__wlm_writer *writer;
  uint64_t num_arcs;
};

static void take_states(void *user, struct block *b) {
  struct level2_writer *to = user;
  wf_error err = {0};
  wf__wlm_arc *arcs = b->arcs;
  for (uint64_t k = 0; k < b->count; arcs += b->num_arcs[k++])
    check(wf__wlm_writer_state(to->writer, b->backoff[k], b->backoff_cost[k], arcs, b->num_arcs[k],
                               &err),
          &err);
  to->num_arcs += b->size;
}

static wf_symbols *make_words(const struct task *t) {
  wf_error err = {0};
  wf_symbols *words;
  char text[32];
  static const char *const first[] = {"<eps>", "<s>", "</s>"};
  check(wf_symbols_create("words", &words, &err), &err);
  for (int i = 0; i < FIRST_WORD; i++) check(wf_symbols_add(words, first[i], i, NULL, &err), &err);
  for (uint32_t w = 0; w < t->num_words; w++) {
    snprintf(text, sizeof text, "w%u", w);
    check(wf_symbols_add(words, text, w + FIRST_WORD, NULL, &err), &err);
  }
  return words;
}

static void generate(const struct task *t) {
  wf_error err = {0};
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", t->out);
  char *slash = strrchr(folder, '/');
  if (slash == NULL)
    snprintf(folder, sizeof folder, ".");
  else
    *slash = '\0';
  wf_symbols *words = make_words(t);
  wf__wlm_writer *writer;
  wf__wlm_plan plan = {.order = 3,
                       .words = words,
                       .num_words = t->num_words + FIRST_WORD,
                       .bos = BOS,
                       .eos = EOS,
                       .unk = WF__WLM_NONE,
                       .start = 1,
                       .scale = 1,
                       .memory = t->memory,
                       .folder = folder};
  plan.num_states = level2(t, t->off2[t->num_words]);
  if (plan.num_states >= UINT32_MAX) fail("too many histories for 32 bits; choose fewer n-grams");
  plan.level_begin[1] = 1;
  plan.level_begin[2] = level2(t, 0);
  check(wf__wlm_writer_create(&plan, &writer, &err), &err);
  uint64_t num_ngrams[WF_LM_MAX_ORDER] = {(uint64_t)t->num_words + 2};
  wf__wlm_writer_unigram(writer, BOS, INFINITY, 1);
  wf__wlm_writer_unigram(writer, EOS, nats(3 * 4096), 0);
  for (uint32_t w = 0; w < t->num_words; w++)
    wf__wlm_writer_unigram(writer, w + FIRST_WORD, nats(t->costs[w]), level1(w));
  check(wf__wlm_writer_state(writer, 0, 0, NULL, 0, &err), &err);
  write_level1(t, writer, &num_ngrams[1]);
  struct level2_writer to = {writer, 0};
  for_blocks(t, NULL, take_states, &to);
  num_ngrams[2] = to.num_arcs;
  check(wf__wlm_writer_close(writer, num_ngrams, t->out, NULL, NULL, &err), &err);
  wf__wlm_writer_free(writer);
  wf_symbols_free(words);
  printf("{\"words\": %u, \"states\": %llu, \"bigrams\": %llu, \"trigrams\": %llu}\n", t->num_words,
         (unsigned long long)plan.num_states, (unsigned long long)num_ngrams[1],
         (unsigned long long)num_ngrams[2]);
}

/* --- ARPA -------------------------------------------------------------------------------- */

enum { LINE_BYTES = 96 }; /* upper bound of a line */

static char *put_number(char *at, uint64_t number) {
  char digits[20];
  int size = 0;
  do digits[size++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (size > 0) *at++ = digits[--size];
  return at;
}

/* Writes log10(e^-cost) with 6 decimals, in integer arithmetic. The cost is a multiple of 2^-12. */
static char *put_log10(char *at, float cost) {
  uint64_t millionths = ((uint64_t)(cost * 4096) * 1060289 + 5000) / 10000,
           part = millionths % 1000000; /* 10^6 / (4096 ln 10) = 106.0289 */
  *at++ = '-';
  at = put_number(at, millionths / 1000000);
  *at++ = '.';
  for (uint64_t unit = 100000; unit > 0; unit /= 10) *at++ = (char)('0' + part / unit % 10);
  return at;
}

static char *put_word(char *at, char before, uint32_t rank) {
  *at++ = before;
  *at++ = 'w';
  return put_number(at, rank);
}

static void spell_trigrams(const struct task *t, struct block *b) {
  if (b->text_cap < b->size * LINE_BYTES)
    b->text = room(b->text, b->text_cap = 2 * b->size * LINE_BYTES, 1);
  char *at = b->text;
  const wf__wlm_arc *arc = b->arcs;
  for (uint64_t k = 0; k < b->count; k++) {
    for (uint32_t i = 0; i < b->num_arcs[k]; i++, arc++) {
      at = put_log10(at, arc->cost);
      at = put_word(at, '\t', b->first_word[k]);
      at = put_word(at, ' ', b->backoff[k] - level1(0));
      at = put_word(at, ' ', arc->word - FIRST_WORD);
      *at++ = '\n';
    }
  }
  b->text_size = (uint64_t)(at - b->text);
}

static void spell_bigrams(const struct task *t, struct block *b) {
  if (b->text_cap < b->count * LINE_BYTES)
    b->text = room(b->text, b->text_cap = 2 * b->count * LINE_BYTES, 1);
  char *at = b->text;
  for (uint64_t k = 0; k < b->count; k++) {
    uint32_t w = b->first_word[k], v = b->backoff[k] - level1(0);
    at = put_log10(at, cost_of(t, v, hash(t, (uint64_t)w + 1, b->first + k - t->off2[w])));
    at = put_word(at, '\t', w);
    at = put_word(at, ' ', v);
    *at++ = '\t';
    at = put_log10(at, b->backoff_cost[k]);
    *at++ = '\n';
  }
  b->text_size = (uint64_t)(at - b->text);
}

static void take_count(void *user, struct block *b) { *(uint64_t *)user += b->size; }
static void take_text(void *user, struct block *b) {
  if (fwrite(b->text, 1, b->text_size, user) != b->text_size) fail("cannot write");
}

static void spell_unigrams(const struct task *t, FILE *file) {
  char line[LINE_BYTES];
  for (uint32_t w = 0; w < t->num_words; w++) {
    char *at = put_word(put_log10(line, nats(t->costs[w])), '\t', w);
    *at++ = '\t';
    at = put_log10(at, backoff1(t, (uint64_t)w + 1));
    *at++ = '\n';
    take_text(file, &(struct block){.text = line, .text_size = (uint64_t)(at - line)});
  }
}

static void write_arpa(const struct task *t) {
  FILE *file = fopen(t->out, "w");
  if (file == NULL) fail("cannot write the output");
  static char buffer[1 << 20], number[32];
  setvbuf(file, buffer, _IOFBF, sizeof buffer);
  uint64_t trigrams = 0, starts = n2(t, 0), bigrams = t->off2[t->num_words] + starts;
  for_blocks(t, NULL, take_count, &trigrams);
  fprintf(file, "\\data\\\nngram 1=%u\nngram 2=%llu\nngram 3=%llu\n\n\\1-grams:\n",
          t->num_words + 2, (unsigned long long)bigrams, (unsigned long long)trigrams);
  *put_log10(number, nats(3 * 4096)) = '\0';
  fprintf(file, "%s\t</s>\n", number);
  *put_log10(number, backoff1(t, 0)) = '\0';
  fprintf(file, "-99\t<s>\t%s\n", number);
  spell_unigrams(t, file);
  fprintf(file, "\n\\2-grams:\n");
  for (uint64_t j = 0; j < starts; j++) {
    uint32_t word = successor(t, 0, j, starts);
    *put_log10(number, cost_of(t, word, hash(t, 0, j))) = '\0';
    fprintf(file, "%s\t<s> w%u\n", number, word);
  }
  for_blocks(t, spell_bigrams, take_text, file);
  fprintf(file, "\n\\3-grams:\n");
  for_blocks(t, spell_trigrams, take_text, file);
  fprintf(file, "\n\\end\\\n");
  if (fclose(file) != 0) fail("cannot write the output");
  printf("{\"words\": %u, \"bigrams\": %llu, \"trigrams\": %llu}\n", t->num_words,
         (unsigned long long)bigrams, (unsigned long long)trigrams);
}

/* Writes some of the bigrams as ARPA. */
static void write_small(const struct task *t) {
  FILE *file = fopen(t->small, "w");
  if (file == NULL) fail("cannot write the small model");
  uint64_t bigrams = 0;
  for (uint32_t w = 0; w < t->num_words; w++) bigrams += n2(t, w) / t->small_share;
  fprintf(file, "\\data\\\nngram 1=%u\nngram 2=%llu\n\n\\1-grams:\n-99\t<s>\n%.5f\t</s>\n",
          t->num_words + 2, (unsigned long long)bigrams, -3 / M_LN10);
  for (uint32_t w = 0; w < t->num_words; w++)
    fprintf(file, "%.5f\tw%u\t-0.3\n", -(double)nats(t->costs[w]) / M_LN10, w);
  fprintf(file, "\n\\2-grams:\n");
  for (uint32_t w = 0; w < t->num_words; w++)
    for (uint64_t j = 0, n = n2(t, w); j < n / t->small_share; j++) {
      uint32_t word = successor(t, w, j, n);
      fprintf(file, "%.5f\tw%u w%u\n", -(double)cost_of(t, word, hash(t, w + 1, j)) / M_LN10, w,
              word);
    }
  fprintf(file, "\n\\end\\\n");
  if (fclose(file) != 0) fail("cannot write the small model");
}

/* A word drawn from the law. */
static uint32_t any_word(const struct task *t, uint64_t h) {
  uint64_t q = h % QUANTILES, low = t->quantiles[q], high = t->quantiles[q + 1];
  return (uint32_t)(low + (high > low ? (h >> 32) % (high - low) : 0)) % t->num_words;
}

static void write_text(const struct task *t) {
  FILE *file = fopen(t->text, "w");
  if (file == NULL) fail("cannot write the text");
  for (uint64_t i = 0; i < t->num_sentences; i++) {
    uint64_t length = 5 + hash(t, i, 1) % 30;
    uint32_t before = 0, word = any_word(t, hash(t, i, 2));
    bool known = false; /* whether `before word` is the history */
    for (uint64_t k = 0; k < length; k++) {
      fprintf(file, k > 0 ? " w%u" : "w%u", word);
      uint64_t h = hash(t, i * 64 + k, 3), kind = h % 20, draw = h >> 16, n = n2(t, word);
      uint64_t arcs = known ? n3(t, before, word, n) : 0, choice = draw % n;
      if (kind < 11 && arcs > 0) { /* spreads arcs as fill_block does */
        uint64_t a = draw % arcs;
        choice = (uint64_t)((double)n * ((double)a / (double)arcs) * ((double)a / (double)arcs));
        if (choice < a) choice = a;
      }
      known = kind < 16;
      before = word;
      word = known ? successor(t, word, choice, n) : any_word(t, draw);
    }
    fputc('\n', file);
  }
  if (fclose(file) != 0) fail("cannot write the text");
}

int main(int argc, char **argv) {
  static struct task t = {.num_sentences = 100000,
                          .words_log2 = 18,
                          .num_ngrams = 1000000000,
                          .seed = 1,
                          .memory = (uint64_t)4 << 30,
                          .small_share = 64};
  for (int i = 1; i < argc; i++) {
    const char *value = strchr(argv[i], '=');
    unsigned long long number = value != NULL ? strtoull(value + 1, NULL, 10) : 0;
    if (argv[i][0] != '-')
      t.out = argv[i];
    else if (strncmp(argv[i], "--words-log2=", 13) == 0)
      t.words_log2 = (int)number;
    else if (strncmp(argv[i], "--ngrams=", 9) == 0)
      t.num_ngrams = number;
    else if (strncmp(argv[i], "--seed=", 7) == 0)
      t.seed = number;
    else if (strncmp(argv[i], "--memory=", 9) == 0)
      t.memory = number;
    else if (strncmp(argv[i], "--threads=", 10) == 0)
      t.threads = (int)number;
    else if (strncmp(argv[i], "--small-share=", 14) == 0)
      t.small_share = number;
    else if (strncmp(argv[i], "--text=", 7) == 0)
      t.text = value + 1;
    else if (strncmp(argv[i], "--sentences=", 12) == 0)
      t.num_sentences = number;
    else if (strncmp(argv[i], "--small=", 8) == 0)
      t.small = value + 1;
    else
      fail("unknown argument; see the head of bench/lm/bench_generate_lm.c");
  }
  if (t.out == NULL || t.words_log2 < 4 || t.words_log2 > 26 || t.small_share == 0)
    fail("usage: bench_generate_lm OUT.wlm|OUT.arpa [--words-log2=4..26] [--ngrams=N] ...");
  make_tables(&t);
  choose_scale3(&t);
  const char *dot = strrchr(t.out, '.');
  if (dot != NULL && strcmp(dot, ".arpa") == 0)
    write_arpa(&t);
  else
    generate(&t);
  if (t.small != NULL) write_small(&t);
  if (t.text != NULL) write_text(&t);
  return 0;
}
