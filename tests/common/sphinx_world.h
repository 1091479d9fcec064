/* sphinx_world.h - random acoustic models of CMU Sphinx in memory, with lexicons, grammars and
 * options for graphs. Few phones, senones and words, so that triphones are missing, words sound
 * alike, and senones are shared. */
#ifndef TESTS_SPHINX_WORLD_H
#define TESTS_SPHINX_WORLD_H

#include "testing.h"

#include <pthread.h>

#include "base/input.h"
#include "graph/sphinx_hmm.h"

enum { A, B, SIL, NOISE, NUM_BASES };
enum { INTERNAL, BEGIN, END, SINGLE, NUM_POSITIONS, NO_POSITION };
enum { NUM_SENONES = 7, MAX_ROWS = 80, MAX_STATES = 2, NUM_WORDS = 3, MAX_PRONS = 5 };
static const char *const g_bases[] = {"A", "B", "SIL", "+N+"};
static const char g_letters[] = "ibes";

struct row {
  int base, left, right, position, tmat, senones[MAX_STATES];
};

struct world {
  int num_states, num_rows;
  struct row rows[MAX_ROWS]; /* the first NUM_BASES rows have no context */
  float counts[NUM_BASES][MAX_STATES][MAX_STATES + 1];
  struct {
    int word, phones[2], size;
    float prob;
  } prons[MAX_PRONS];
  int num_prons;
  wf_graph_options options;
  int style; /* 0: no silence, 1: optional, 2: edges */
};

/* --- random models, lexicons and options ------------------------------------------------- */

static inline void random_model(test_rng *rng, struct world *world, bool triphones) {
  world->num_states = 1 + (int)test_below(rng, MAX_STATES);
  world->num_rows = 0;
  for (int base = 0; base < NUM_BASES; base++)
    world->rows[world->num_rows++] = (struct row){base, -1, -1, NO_POSITION, base, {0}};
  for (int key = 0; key < 2 * 3 * 3 * NUM_POSITIONS && triphones;
       key++) /* A and B between A, B, SIL */
    if (test_unit(rng) < 0.4f)
      world->rows[world->num_rows++] =
          (struct row){key % 2, key / 2 % 3, key / 6 % 3, key / 18, (int)test_below(rng, 2), {0}};
  for (int i = 0; i < world->num_rows; i++)
    for (int s = 0; s < MAX_STATES; s++)
      world->rows[i].senones[s] = (int)test_below(rng, NUM_SENONES);
  memset(world->counts, 0, sizeof world->counts);
  for (int t = 0; t < NUM_BASES; t++)
    for (int from = 0; from < world->num_states; from++) {
      float *counts = world->counts[t][from];
      counts[from] = test_unit(rng) < 0.2f ? 0 : (float)(1 + test_below(rng, 4));
      for (int to = from + 1; to <= world->num_states; to++)
        counts[to] = to > from + 1 && test_unit(rng) < 0.5f ? 0 : (float)(1 + test_below(rng, 4));
    }
}

static inline void random_world(test_rng *rng, struct world *world, int round) {
  random_model(rng, world, round % 5 != 4);
  world->num_prons = 2 + (int)test_below(rng, MAX_PRONS - 1);
  for (int i = 0; i < world->num_prons; i++) {
    world->prons[i].word = i < NUM_WORDS ? i : (int)test_below(rng, NUM_WORDS);
    world->prons[i].size = 1 + (int)test_below(rng, 2);
    for (int k = 0; k < 2; k++) world->prons[i].phones[k] = (int)test_below(rng, 2);
    world->prons[i].prob = (float)(1 + test_below(rng, 4)) / 4;
  }
  wf_graph_options *o = &world->options;
  wf_graph_options_init(o);
  o->kind = WF_GRAPH_HMM;
  world->style = round % 3;
  o->silence = world->style == 0 ? "" : NULL;
  o->silence_style = world->style;
  o->fillers = round % 2 == 1;
  o->lm_weight = (float)(1 + test_below(rng, 2));
  o->word_prob = 0.5f;
  o->silence_prob = 0.25f;
  o->filler_prob = 0.125f;
  o->transition_scale = (float)(1 + test_below(rng, 2)) / 2;
  o->self_loop_scale = (float)test_below(rng, 3) / 2;
  o->push = WF_PUSH_NONE + (int32_t)test_below(rng, 3);
  o->ambiguous = 1; /* there are few senones, so different phones may have the same ones */
  o->epsilon = test_unit(rng) < 0.7f;
}

/* --- writing them to files --------------------------------------------------------------- */

struct bytes {
  uint8_t data[16384];
  size_t size;
};
static inline void put(struct bytes *out, const void *data, size_t size) {
  assert_true(out->size + size <= sizeof out->data);
  memcpy(out->data + out->size, data, size);
  out->size += size;
}
static inline void put_i32(struct bytes *out, int32_t value) { put(out, &value, 4); }
static inline void put_text(struct bytes *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void put_text(struct bytes *out, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put(out, text, strlen(text));
}

static inline void mdef_text(const struct world *world, struct bytes *out) {
  out->size = 0;
  put_text(out,
           "# made up\n0.3\n%d n_base\n%d n_tri\n%d n_state_map\n%d n_tied_state\n%d "
           "n_tied_ci_state\n%d n_tied_tmat\n#\n",
           NUM_BASES, world->num_rows - NUM_BASES, world->num_rows * (world->num_states + 1),
           NUM_SENONES, NUM_BASES, NUM_BASES);
  for (int i = 0; i < world->num_rows; i++) {
    const struct row *row = &world->rows[i];
    if (row->left < 0)
      put_text(out, "%s - - - %s %d", g_bases[row->base], row->base >= SIL ? "filler" : "n/a",
               row->tmat);
    else
      put_text(out, "%s %s %s %c n/a %d", g_bases[row->base], g_bases[row->left],
               g_bases[row->right], g_letters[row->position], row->tmat);
    for (int s = 0; s < world->num_states; s++) put_text(out, " %d", row->senones[s]);
    put_text(out, " N\n");
  }
}

/* Numbers the senone sequences of the rows: equal ones get the same number, in order of first use.
 * Returns how many there are. */
static inline int number_sequences(const struct world *world, int *sequence, int *first) {
  int count = 0;
  for (int i = 0; i < world->num_rows; i++) {
    sequence[i] = -1;
    for (int k = 0; k < count && sequence[i] < 0; k++)
      if (memcmp(world->rows[first[k]].senones, world->rows[i].senones,
                 (size_t)world->num_states * sizeof(int)) == 0)
        sequence[i] = k;
    if (sequence[i] >= 0) continue;
    first[count] = i;
    sequence[i] = count++;
  }
  return count;
}

static inline void mdef_binary(const struct world *world, struct bytes *out) {
  int sequence[MAX_ROWS], first[MAX_ROWS], num_sequences = number_sequences(world, sequence, first);
  static const char description[] = "made up";
  out->size = 0;
  put_text(out, "BMDF");
  put_i32(out, 1);
  put_i32(out, sizeof description);
  put(out, description, sizeof description);
  const int32_t head[] = {NUM_BASES,
                          world->num_rows,
                          world->num_states,
                          NUM_BASES,
                          NUM_SENONES,
                          NUM_BASES,
                          num_sequences,
                          3,
                          1,
                          SIL};
  for (size_t i = 0; i < sizeof head / sizeof *head; i++) put_i32(out, head[i]);
  size_t names = out->size;
  for (int i = 0; i < NUM_BASES; i++) put(out, g_bases[i], strlen(g_bases[i]) + 1);
  while ((out->size - names) % 4 != 0) put(out, "", 1);
  put(out, "treetree", 8);
  for (int i = 0; i < world->num_rows; i++) {
    const struct row *row = &world->rows[i];
    uint8_t plain[4] = {row->base >= SIL, 0, 0, 0},
            attribute[4] = {(uint8_t)row->position, (uint8_t)row->base, (uint8_t)row->left,
                            (uint8_t)row->right};
    put_i32(out, sequence[i]);
    put_i32(out, row->tmat);
    put(out, row->left < 0 ? plain : attribute, 4);
  }
  put_i32(out, num_sequences * world->num_states);
  for (int k = 0; k < num_sequences; k++)
    for (int s = 0; s < world->num_states; s++)
      put(out, (uint16_t[]){(uint16_t)world->rows[first[k]].senones[s]}, 2);
}

/* `swap`: write in the other byte order. `spoil`: write a wrong checksum. */
static inline void tmat_file(const struct world *world, bool swap, uint32_t spoil,
                             struct bytes *out) {
  uint32_t words[256], sum = 0;
  size_t count = 0;
  words[count++] = 0x11223344;
  words[count++] = NUM_BASES;
  words[count++] = (uint32_t)world->num_states;
  words[count++] = (uint32_t)world->num_states + 1;
  words[count++] = (uint32_t)(NUM_BASES * world->num_states * (world->num_states + 1));
  for (int t = 0; t < NUM_BASES; t++)
    for (int from = 0; from < world->num_states; from++)
      for (int to = 0; to <= world->num_states; to++)
        memcpy(&words[count++], &world->counts[t][from][to], 4);
  for (size_t i = 1; i < count; i++) sum = (sum << 20 | sum >> 12) + words[i];
  words[count++] = sum ^ spoil;
  out->size = 0;
  put_text(out, "s3\nversion 1.0\nchksum0 yes\n  endhdr\n");
  for (size_t i = 0; i < count; i++)
    put_i32(out, (int32_t)(swap ? __builtin_bswap32(words[i]) : words[i]));
}

static const char g_noisedict[] = "<s> SIL\n</s> SIL\n<sil> SIL\n## more\n[NOISE] +N+\n";

static inline wf_status read_model(const struct bytes *mdef, const struct bytes *tmats,
                                   wf_hmm **out, wf_error *err) {
  wf__input a, b, c;
  wf_error opened = {0};
  if (wf__input_from_memory(mdef->data, mdef->size, "mdef", &a, &opened) != WF_OK ||
      wf__input_from_memory(tmats->data, tmats->size, "tmat", &b, &opened) != WF_OK ||
      wf__input_from_memory(g_noisedict, sizeof g_noisedict - 1, "noisedict", &c, &opened) != WF_OK)
    fail_msg("%s", opened.message);
  wf_status status = wf__hmm_read_sphinx_inputs("model", &a, &b, &c, out, err);
  wf__input_close(&a);
  wf__input_close(&b);
  wf__input_close(&c);
  return status;
}

static inline wf_hmm *model_of(const struct world *world, bool binary, bool swap) {
  wf_error err = {0};
  wf_hmm *hmm;
  static _Thread_local struct bytes mdef, tmats;
  if (binary)
    mdef_binary(world, &mdef);
  else
    mdef_text(world, &mdef);
  tmat_file(world, swap, 0, &tmats);
  assert_ok(read_model(&mdef, &tmats, &hmm, &err));
  return hmm;
}

static inline wf_lexicon *lexicon_of(const struct world *world, const wf_hmm *hmm) {
  static const char *const names[] = {"X", "Y(2)", "Z"}; /* Y(2) is Y */
  wf_error err = {0};
  wf_lexicon_options options;
  wf_lexicon *lexicon;
  static _Thread_local struct bytes text;
  text.size = 0;
  for (int i = 0; i < world->num_prons; i++) {
    put_text(&text, "%s %g", names[world->prons[i].word], (double)world->prons[i].prob);
    for (int k = 0; k < world->prons[i].size; k++)
      put_text(&text, " %s", g_bases[world->prons[i].phones[k]]);
    put_text(&text, "\n");
  }
  wf_lexicon_options_init(&options);
  options.blank = "";
  options.variants = true;
  options.lexicon_format = 2;
  assert_ok(wf_lexicon_read(test_write_file("lexicon.txt", text.data, text.size),
                            wf_hmm_phones(hmm), &options, &lexicon, &err));
  return lexicon;
}

static inline wf_symbols *words(void) {
  static const char text[] = "<eps> 0\nX 1\nY 2\nZ 3\n";
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static wf_symbols *table;
  wf_error err = {0};
  pthread_mutex_lock(&mutex);
  if (table == NULL)
    assert_ok(wf_symbols_read(test_write_file("words.txt", text, sizeof text - 1), &table, &err));
  pthread_mutex_unlock(&mutex);
  return table;
}

static inline wf_fst *random_grammar(test_rng *rng) {
  for (;;) {
    test_fst_shape shape = {.num_states = 4,
                            .num_arcs = 7,
                            .num_ilabels = NUM_WORDS,
                            .num_olabels = NUM_WORDS,
                            .final_share = 0.4f,
                            .max_weight = 3,
                            .acyclic = true,
                            .acceptor = true};
    wf_error err = {0};
    wf_fst *random = test_random_fst(rng, &shape), *fst;
    assert_ok(wf_connect(random, &fst, &err));
    wf_fst_free(random);
    if (wf_fst_get_view(fst).num_arcs > 2) return fst;
    wf_fst_free(fst);
  }
}

static inline wf_status build(const struct world *world, wf_hmm *hmm, const wf_lexicon *lexicon,
                              const wf_fst *grammar, wf_graph_result *out, wf_error *err) {
  wf_graph_inputs parts;
  wf_graph_inputs_init(&parts);
  parts.hmm = hmm;
  parts.lexicon = lexicon;
  parts.grammar = grammar;
  parts.words = words();
  return wf_graph_build(&parts, &world->options, out, err);
}

#endif
