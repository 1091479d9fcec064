/* test_sphinx.c - graphs from Sphinx models compared with a direct computation that builds no
 * transducer.
 *
 * For random models, lexicons and grammars, and a string x of one senone for each frame: the cost
 * of the graph's best path for x is the minimum, over the grammar's sentences, pronunciations, and
 * optional silences and noises, of
 *     the sentence's cost  +  1/lm_weight (words, pronunciations, silences, noises  +  Viterbi
 *                          alignment of x to the chain of HMMs).
 * Each phone's HMM is looked up by the rule that docs/reference/hmm.md states. */
#include "testing.h"

#include "base/input.h"
#include "graph/sphinx_hmm.h"

enum { A, B, SIL, NOISE, NUM_BASES };
enum { INTERNAL, BEGIN, END, SINGLE, NUM_POSITIONS, NO_POSITION };
enum {
  NUM_SENONES = 7,
  MAX_ROWS = 80,
  MAX_STATES = 2,
  MAX_FRAMES = 7,
  NUM_WORDS = 3,
  MAX_PRONS = 5
};
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
  wf_hmm_graph_options options;
  int style; /* 0: no silence, 1: optional, 2: edges */
};

/* --- random models, lexicons and options ------------------------------------------------- */

static void random_model(test_rng *rng, struct world *world, bool triphones) {
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

static void random_world(test_rng *rng, struct world *world, int round) {
  random_model(rng, world, round % 5 != 4);
  world->num_prons = 2 + (int)test_below(rng, MAX_PRONS - 1);
  for (int i = 0; i < world->num_prons; i++) {
    world->prons[i].word = i < NUM_WORDS ? i : (int)test_below(rng, NUM_WORDS);
    world->prons[i].size = 1 + (int)test_below(rng, 2);
    for (int k = 0; k < 2; k++) world->prons[i].phones[k] = (int)test_below(rng, 2);
    world->prons[i].prob = (float)(1 + test_below(rng, 4)) / 4;
  }
  wf_hmm_graph_options *o = &world->options;
  wf_hmm_graph_options_init(o);
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
  o->push = (int32_t)test_below(rng, 3);
  o->ambiguous = 1; /* there are few senones, so different phones may have the same ones */
  o->epsilon = test_unit(rng) < 0.7f;
}

/* --- writing them to files --------------------------------------------------------------- */

struct bytes {
  uint8_t data[16384];
  size_t size;
};
static void put(struct bytes *out, const void *data, size_t size) {
  assert_true(out->size + size <= sizeof out->data);
  memcpy(out->data + out->size, data, size);
  out->size += size;
}
static void put_i32(struct bytes *out, int32_t value) { put(out, &value, 4); }
static void put_text(struct bytes *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put_text(struct bytes *out, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put(out, text, strlen(text));
}

static void mdef_text(const struct world *world, struct bytes *out) {
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
static int number_sequences(const struct world *world, int *sequence, int *first) {
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

static void mdef_binary(const struct world *world, struct bytes *out) {
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
static void tmat_file(const struct world *world, bool swap, uint32_t spoil, struct bytes *out) {
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

static wf_status read_model(const struct bytes *mdef, const struct bytes *tmats, wf_hmm **out,
                            wf_error *err) {
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

static wf_hmm *model_of(const struct world *world, bool binary, bool swap) {
  wf_error err = {0};
  wf_hmm *hmm;
  static struct bytes mdef, tmats;
  if (binary)
    mdef_binary(world, &mdef);
  else
    mdef_text(world, &mdef);
  tmat_file(world, swap, 0, &tmats);
  assert_ok(read_model(&mdef, &tmats, &hmm, &err));
  return hmm;
}

static wf_lexicon *lexicon_of(const struct world *world, const wf_hmm *hmm) {
  static const char *const names[] = {"X", "Y(2)", "Z"}; /* Y(2) is Y */
  wf_error err = {0};
  wf_lexicon_options options;
  wf_lexicon *lexicon;
  static struct bytes text;
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

static wf_symbols *words(void) {
  static const char text[] = "<eps> 0\nX 1\nY 2\nZ 3\n";
  static wf_symbols *table;
  wf_error err = {0};
  if (table == NULL)
    assert_ok(wf_symbols_read(test_write_file("words.txt", text, sizeof text - 1), &table, &err));
  return table;
}

static wf_fst *random_grammar(test_rng *rng) {
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

static wf_status build(const struct world *world, wf_hmm *hmm, const wf_lexicon *lexicon,
                       const wf_fst *grammar, wf_hmm_graph_result *out, wf_error *err) {
  wf_hmm_graph_parts parts;
  wf_hmm_graph_parts_init(&parts);
  parts.hmm = hmm;
  parts.lexicon = lexicon;
  parts.grammar = grammar;
  parts.words = words();
  return wf_hmm_graph_build(&parts, &world->options, out, err);
}

/* --- the direct computation -------------------------------------------------------------- */

struct spoken {
  int base, position;
};

static const struct row *row_in(const struct world *world, int base, int left, int right,
                                int position) {
  for (int i = NUM_BASES; i < world->num_rows; i++) {
    const struct row *row = &world->rows[i];
    if (row->base == base && row->left == left && row->right == right && row->position == position)
      return row;
  }
  return NULL;
}

static const struct row *look_up(const struct world *world, const struct spoken *spoken, int count,
                                 int i) {
  const struct row *row = NULL;
  int base = spoken[i].base, position = spoken[i].position;
  int left = i == 0 || spoken[i - 1].base >= SIL ? SIL : spoken[i - 1].base,
      right = i + 1 == count || spoken[i + 1].base >= SIL ? SIL : spoken[i + 1].base;
  if (base >= SIL) return &world->rows[base];
  for (int outside = 0; outside < 2; outside++) {
    if (outside && (position == BEGIN || position == SINGLE)) left = SIL;
    if (outside && (position == END || position == SINGLE)) right = SIL;
    if (row == NULL) row = row_in(world, base, left, right, position);
    for (int other = 0; other < NUM_POSITIONS && row == NULL; other++)
      row = row_in(world, base, left, right, other);
  }
  return row != NULL ? row : &world->rows[base];
}

/* Cost of staying in a state, and of going from it to another (to == num_states: leaving the HMM).
 */
static double stay_cost(const struct world *world, int tmat, int state) {
  const float *counts = world->counts[tmat][state];
  double sum = 0;
  for (int to = 0; to <= world->num_states; to++) sum += (double)counts[to];
  return -log((double)counts[state] / sum) * (double)world->options.self_loop_scale;
}
static double go_cost(const struct world *world, int tmat, int state, int to) {
  const float *counts = world->counts[tmat][state];
  double sum = 0;
  for (int k = 0; k <= world->num_states; k++) sum += (double)counts[k];
  double leaves = (sum - (double)counts[state]) / sum;
  return -log(leaves) * (double)world->options.self_loop_scale -
         log((double)counts[to] / sum / leaves) * (double)world->options.transition_scale;
}

static double align(const struct world *world, const struct spoken *spoken, int count, const int *x,
                    int frames) {
  double now[MAX_FRAMES][MAX_STATES],
      out[MAX_FRAMES + 1]; /* out[i]: cost of having left the first i phones */
  const struct row *rows[MAX_FRAMES];
  for (int i = 0; i < count; i++) rows[i] = look_up(world, spoken, count, i);
  for (int i = 0; i < count; i++) now[i][0] = now[i][1] = INFINITY;
  for (int i = 0; i <= count; i++) out[i] = i == 0 ? 0 : INFINITY;
  for (int t = 0; t < frames; t++) {
    for (int i = 0; i < count; i++)
      for (int s = world->num_states - 1; s >= 0;
           s--) { /* descending, so that it reads costs of the previous frame */
        double best = s == 0 ? out[i] : INFINITY;
        if (world->counts[rows[i]->tmat][s][s] > 0)
          best = fmin(best, now[i][s] + stay_cost(world, rows[i]->tmat, s));
        for (int from = 0; from < s; from++)
          if (world->counts[rows[i]->tmat][from][s] > 0)
            best = fmin(best, now[i][from] + go_cost(world, rows[i]->tmat, from, s));
        now[i][s] = x[t] == rows[i]->senones[s] ? best : INFINITY;
      }
    out[0] = INFINITY;
    for (int i = 0; i < count; i++) {
      out[i + 1] = INFINITY;
      for (int s = 0; s < world->num_states; s++)
        if (world->counts[rows[i]->tmat][s][world->num_states] > 0)
          out[i + 1] =
              fmin(out[i + 1], now[i][s] + go_cost(world, rows[i]->tmat, s, world->num_states));
    }
  }
  return out[count];
}

struct search {
  const struct world *world;
  const int *x;
  int frames, sentence[8], num_words, count;
  struct spoken spoken[MAX_FRAMES];
  double best, sentence_cost;
};

static void say(struct search *search, int at, double cost, bool may_pause);

static void add_phone_and_go(struct search *search, int base, int at, double cost, bool may_pause) {
  if (search->count == search->frames) return;
  search->spoken[search->count++] = (struct spoken){base, NO_POSITION};
  say(search, at, cost, may_pause);
  search->count--;
}

static void finish(struct search *search, double cost) {
  search->best = fmin(search->best, search->sentence_cost +
                                        (cost + align(search->world, search->spoken, search->count,
                                                      search->x, search->frames)) /
                                            (double)search->world->options.lm_weight);
}

/* Enumerates pronunciations and fillers from the gap between the words `at` - 1 and `at`. */
static void say(struct search *search, int at, double cost, bool may_pause) {
  const struct world *world = search->world;
  if (world->style == 1 && may_pause) {
    add_phone_and_go(search, SIL, at, cost - log(0.25), false);
    cost -= log(0.75);
  }
  if (world->style == 2) {
    add_phone_and_go(search, SIL, at, cost - log(0.25), true);
    if (world->options.fillers) add_phone_and_go(search, NOISE, at, cost - log(0.125), true);
    if (at == search->num_words && search->count < search->frames) {
      search->spoken[search->count++] = (struct spoken){SIL, NO_POSITION};
      finish(search, cost);
      search->count--;
    }
  } else if (at == search->num_words) {
    finish(search, cost);
  }
  for (int i = 0; i < world->num_prons && at < search->num_words; i++) {
    int size = world->prons[i].size;
    if (world->prons[i].word != search->sentence[at] || search->count + size > search->frames)
      continue;
    for (int k = 0; k < size; k++)
      search->spoken[search->count++] =
          (struct spoken){world->prons[i].phones[k], size == 1 ? SINGLE
                                                     : k == 0  ? BEGIN
                                                               : END};
    say(search, at + 1, cost - log((double)world->prons[i].prob) - log(0.5), true);
    search->count -= size;
  }
}

static double direct_cost(const struct world *world, const test_relation *sentences, const int *x,
                          int frames) {
  double best = INFINITY;
  for (size_t i = 0; i < sentences->size; i++) {
    struct search search = {.world = world,
                            .x = x,
                            .frames = frames,
                            .best = INFINITY,
                            .sentence_cost = sentences->pairs[i].cost};
    for (const char *at = sentences->pairs[i].key; *at != ':'; at++)
      if (*at >= '1' && *at <= '3') search.sentence[search.num_words++] = *at - '1';
    if (world->style == 2 && frames > 0)
      add_phone_and_go(&search, SIL, 0, 0, true);
    else if (world->style != 2)
      say(&search, 0, 0, true);
    best = fmin(best, search.best);
  }
  return best;
}

/* --- comparing --------------------------------------------------------------------------- */

/* Draws frames that some sentence can give: its words, sometimes silences; states are passed
 * through. */
static int random_frames(test_rng *rng, const struct world *world, const test_relation *sentences,
                         int *x) {
  struct spoken spoken[MAX_FRAMES];
  int count = 0, frames = 0;
  const char *key = sentences->pairs[test_below(rng, (uint32_t)sentences->size)].key;
  if (world->style == 2) spoken[count++] = (struct spoken){SIL, NO_POSITION};
  for (; *key != ':'; key++) {
    int i = (int)test_below(rng, (uint32_t)world->num_prons);
    if (*key < '1' || *key > '3') continue;
    while (world->prons[i].word != *key - '1') {
      if (++i == world->num_prons) i = 0;
      if (test_unit(rng) < 0.01f) return 0; /* a word without pronunciation */
    }
    if (count + world->prons[i].size + 2 > MAX_FRAMES) return 0;
    for (int k = 0; k < world->prons[i].size; k++)
      spoken[count++] =
          (struct spoken){world->prons[i].phones[k], world->prons[i].size == 1 ? SINGLE
                                                     : k == 0                  ? BEGIN
                                                                               : END};
    if (world->style != 0 && test_unit(rng) < 0.3f)
      spoken[count++] = (struct spoken){test_unit(rng) < 0.5f ? SIL : NOISE, NO_POSITION};
  }
  if (world->style == 2) spoken[count++] = (struct spoken){SIL, NO_POSITION};
  for (int i = 0; i < count; i++)
    for (int s = 0; s < world->num_states; s++) do {
        if (frames == MAX_FRAMES) return frames;
        x[frames++] = look_up(world, spoken, count, i)->senones[s];
      } while (test_unit(rng) < 0.25f);
  if (frames > 0 && test_unit(rng) < 0.2f)
    x[test_below(rng, (uint32_t)frames)] = (int)test_below(rng, NUM_SENONES);
  return frames;
}

static void check_world(test_rng *rng, struct world *world, int round, int *num_finite,
                        int *num_refused) {
  wf_error err = {0};
  wf_hmm *hmm = model_of(world, round % 2 == 0, round % 4 == 1);
  wf_lexicon *lexicon = lexicon_of(world, hmm);
  wf_fst *grammar = random_grammar(rng);
  wf_hmm_graph_result result;
  test_relation sentences = test_enumerate(grammar, 4, 100000);
  wf_status status = build(world, hmm, lexicon, grammar, &result, &err);
  bool refused = status == WF_ERR_UNSUPPORTED && !world->options.epsilon && world->style != 2;
  bool none = status == WF_ERR_ARGUMENT &&
              (strstr(err.message, "empty") != NULL ||
               strstr(err.message, "in common") != NULL); /* words without pronunciation */
  if (status != WF_OK && !refused && !none) fail_msg("round %d: %s", round, err.message);
  *num_refused += refused || none;
  if (status == WF_OK) {
    int32_t *columns;
    size_t num_columns;
    assert_ok(wf_hmm_columns(hmm, &columns, &num_columns, &err));
    uint32_t properties = wf_fst_properties(result.graph);
    assert_true(properties & WF_PROP_EPSILONS_LAST);
    if (!world->options.epsilon) assert_true(properties & WF_PROP_NO_IEPSILONS);
    for (int k = 0; k < 25; k++) {
      int x[MAX_FRAMES], frames = random_frames(rng, world, &sentences, x);
      double wanted = direct_cost(world, &sentences, x, frames),
             found = test_best_cost(result.graph, columns, x, frames);
      if (frames == 0 && !world->options.epsilon)
        continue; /* the empty utterance would need an arc, which it does not have */
      if (wanted == INFINITY ? found != INFINITY : !(fabs(found - wanted) < 0.02))
        fail_msg("round %d, %d frames: %.6f, wanted %.6f", round, frames, found, wanted);
      *num_finite += frames > 0 && wanted != INFINITY;
    }
    wf_free(columns);
  }
  wf_hmm_graph_result_free(&result);
  test_relation_free(&sentences);
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_hmm_free(hmm);
}

static void test_against_direct_computation(void **state) {
  test_rng rng = {2025};
  int num_finite = 0, num_refused = 0;
  for (int round = 0; round < 300; round++) {
    struct world world;
    random_world(&rng, &world, round);
    check_world(&rng, &world, round, &num_finite, &num_refused);
  }
  assert_true(num_finite > 300 * 25 / 4);
  assert_true(num_refused < 60);
}

/* Text and binary files, in either byte order, give the same graph bit for bit, and the same
 * labels. */
static void test_text_and_binary(void **state) {
  wf_error err = {0};
  test_rng rng = {7};
  for (int round = 0; round < 20; round++) {
    struct world world;
    random_world(&rng, &world, round);
    world.options.epsilon = true;
    wf_fst *grammar = random_grammar(&rng), *graphs[2];
    wf_hmm_info info[2];
    wf_status statuses[2];
    for (int binary = 0; binary < 2; binary++) {
      wf_hmm *hmm = model_of(&world, binary != 0, binary != 0);
      wf_lexicon *lexicon = lexicon_of(&world, hmm);
      wf_hmm_graph_result result;
      statuses[binary] = build(&world, hmm, lexicon, grammar, &result, &err);
      graphs[binary] = result.graph != NULL ? wf_fst_ref(result.graph) : NULL;
      wf_hmm_info_init(&info[binary]);
      assert_ok(wf_hmm_get_info(hmm, &info[binary], &err));
      wf_hmm_graph_result_free(&result);
      wf_lexicon_free(lexicon);
      wf_hmm_free(hmm);
    }
    assert_int_equal(statuses[0], statuses[1]);
    assert_memory_equal(&info[0], &info[1], sizeof info[0]);
    assert_int_equal(info[0].num_columns, NUM_SENONES);
    bool equal = true;
    if (statuses[0] == WF_OK) assert_ok(wf_equal(graphs[0], graphs[1], 0, &equal, &err));
    assert_true(equal);
    wf_fst_free(graphs[0]);
    wf_fst_free(graphs[1]);
    wf_fst_free(grammar);
  }
}

/* --- damaged files and missing data ------------------------------------------------------ */

static void test_broken_files(void **state) {
  wf_error err = {0};
  test_rng rng = {5};
  struct world world;
  wf_hmm *hmm = NULL;
  static struct bytes mdef[2], tmats, cut;
  random_world(&rng, &world, 0);
  mdef_text(&world, &mdef[0]);
  mdef_binary(&world, &mdef[1]);
  tmat_file(&world, false, 0, &tmats);
  for (int kind = 0; kind < 3; kind++) {
    const struct bytes *whole = kind < 2 ? &mdef[kind] : &tmats;
    for (size_t size = 0; size + 2 < whole->size;
         size++) { /* all bytes but the last newline are needed */
      memcpy(cut.data, whole->data, size);
      cut.size = size;
      err.message[0] = '\0';
      if (read_model(kind < 2 ? &cut : &mdef[0], kind < 2 ? &tmats : &cut, &hmm, &err) == WF_OK)
        fail_msg("kind %d is accepted with %zu of %zu bytes", kind, size, whole->size);
      assert_true(hmm == NULL && err.message[0] != '\0');
    }
    for (int flip = 0; flip < 2000;
         flip++) { /* any changed byte gives an error or another model, and does no harm */
      cut = *whole;
      cut.data[test_below(&rng, (uint32_t)cut.size)] = (uint8_t)test_below(&rng, 256);
      if (read_model(kind < 2 ? &cut : &mdef[0], kind < 2 ? &tmats : &cut, &hmm, &err) == WF_OK)
        wf_hmm_free(hmm);
    }
  }
  tmat_file(&world, false, 1, &tmats);
  assert_int_equal(read_model(&mdef[0], &tmats, &hmm, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "checksum"));
  assert_int_equal(wf_hmm_read_sphinx("/nowhere", &hmm, &err), WF_ERR_IO);
}

/* Words without pronunciation and windows without a triphone are counted and named. An option makes
 * them errors. */
static void test_missing_words_and_triphones(void **state) {
  wf_error err = {0};
  test_rng rng = {9};
  struct world world;
  random_world(&rng, &world, 0);
  world.num_rows = NUM_BASES + 1; /* one triphone, so nearly every window is missing */
  world.rows[NUM_BASES] = (struct row){A, B, B, INTERNAL, A, {0, 0}};
  world.num_prons = 2; /* Z has no pronunciation */
  world.options.epsilon = true;
  world.options.missing_words = 0;
  wf_hmm *hmm = model_of(&world, false, false);
  wf_lexicon *lexicon = lexicon_of(&world, hmm);
  wf_fst *grammar = test_fst_of(WF_TROPICAL, "0 1 1 1\n0 1 2 2\n0 1 3 3\n1\n");
  wf_hmm_graph_result result;
  assert_ok(build(&world, hmm, lexicon, grammar, &result, &err));
  assert_int_equal(result.lm_words_missing.count, 1);
  assert_string_equal(result.lm_words_missing.names[0], "Z");
  assert_true(result.hmm_substituted.count > 0 && result.hmm_substituted.names[0] != NULL);
  assert_non_null(strchr(result.hmm_substituted.names[0], '_'));
  wf_hmm_graph_result_free(&result);
  world.options.missing_words = 1;
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "'Z'"));
  world.options.missing_words = 0;
  world.options.missing_hmm = 2;
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "no HMM for"));
  world.options.missing_hmm = 1; /* nothing is left */
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "empty"));
  world.options.missing_hmm = 0;
  world.options.silence = "nope";
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  world.options.silence = "";
  world.options.silence_style = 2;
  assert_int_equal(build(&world, hmm, lexicon, grammar, &result, &err), WF_ERR_ARGUMENT);
  wf_fst_free(grammar);
  wf_lexicon_free(lexicon);
  wf_hmm_free(hmm);
}

static void test_invalid_arguments(void **state) {
  wf_error err = {0};
  wf_hmm_graph_parts parts;
  wf_hmm_graph_result result;
  wf_hmm_graph_parts_init(&parts);
  assert_int_equal(wf_hmm_graph_build(&parts, NULL, &result, &err), WF_ERR_ARGUMENT);
  parts.struct_size = 1;
  assert_int_equal(wf_hmm_graph_build(&parts, NULL, &result, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_hmm_graph_build(NULL, NULL, &result, &err), WF_ERR_ARGUMENT);
  wf_hmm_graph_result_free(NULL);
  wf_hmm_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_direct_computation),
      cmocka_unit_test(test_text_and_binary),
      cmocka_unit_test(test_broken_files),
      cmocka_unit_test(test_missing_words_and_triphones),
      cmocka_unit_test(test_invalid_arguments),
  };
  int code = cmocka_run_group_tests(tests, NULL, NULL);
  wf_symbols_free(words());
  return code;
}
