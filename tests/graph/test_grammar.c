/* test_grammar.c - grammars in JSGF, and of sentences, compared with a direct computation.
 *
 * Random grammars are written as JSGF in random layout. The cost of each sentence of up to MAX_WORDS
 * words is computed from the rules by dynamic programming over parts of the sentence, without any
 * transducer, and must be that of the fst. */
#include "testing.h"

enum { MAX_WORDS = 4, NUM_WORDS = 3, MAX_RULES = 4, MAX_NODES = 200, MAX_KIDS = 3 };

/* As in the grammar, and as in the table of words. */
static const char *const names[NUM_WORDS] = {"a", "b/c", "\xC3\xA9"};
static const char *const escaped[NUM_WORDS] = {"a", "b\\/c", "\\\xC3\xA9"};

enum kind { WORD, PAIR, NOTHING, NEVER, RULE, SEQUENCE, CHOICE, OPTIONAL, STAR, PLUS };

struct node {
  enum kind kind;
  int value[2]; /* words, or the rule */
  struct node *kids[MAX_KIDS];
  int num_kids, weights[MAX_KIDS]; /* all 0: without weights */
  bool weighted;
  double cost[MAX_WORDS + 1][MAX_WORDS + 1]; /* of the words from .. to */
  bool productive;
};

struct world {
  struct node nodes[MAX_NODES], *rules[MAX_RULES];
  int num_nodes, num_rules;
  bool is_public[MAX_RULES];
  char text[65536];
  size_t used;
};

/* --- random grammars --------------------------------------------------------------------- */

static struct node *add_node(struct world *world, enum kind kind) {
  assert_true(world->num_nodes < MAX_NODES);
  struct node *node = &world->nodes[world->num_nodes++];
  node->kind = kind;
  return node;
}

/* Mostly rules that come later, so that most grammars are regular; at the end of a rule any. */
static int random_rule(test_rng *rng, const struct world *world, int rule, bool at_end) {
  const uint32_t count = (uint32_t)world->num_rules;
  if (at_end || test_below(rng, 40) == 0) return (int)test_below(rng, count);
  return rule + 1 < world->num_rules ? rule + 1 + (int)test_below(rng, count - (uint32_t)rule - 1)
                                     : -1;
}

static struct node *random_leaf(test_rng *rng, struct world *world, int rule, bool at_end) {
  const uint32_t dice = test_below(rng, 20);
  const int used = dice < 8 ? random_rule(rng, world, rule, at_end) : -1;
  struct node *node = add_node(world, used >= 0    ? RULE
                                      : dice == 8  ? NOTHING
                                      : dice == 9  ? NEVER
                                      : dice == 10 ? PAIR
                                                   : WORD);
  for (int i = 0; i < 2; i++) node->value[i] = (int)test_below(rng, NUM_WORDS);
  if (used >= 0) node->value[0] = used;
  return node;
}

static struct node *random_node(test_rng *rng, struct world *world, int rule, int depth,
                                bool at_end) {
  static const enum kind kinds[] = {SEQUENCE, SEQUENCE, SEQUENCE, CHOICE, CHOICE,
                                    CHOICE,   OPTIONAL, STAR,     PLUS};
  if (depth == 0 || test_below(rng, 4) == 0) return random_leaf(rng, world, rule, at_end);
  struct node *node = add_node(world, kinds[test_below(rng, 9)]);
  const bool many = node->kind == SEQUENCE || node->kind == CHOICE;
  node->num_kids = many ? 2 + (int)test_below(rng, MAX_KIDS - 1) : 1;
  node->weighted = node->kind == CHOICE && test_below(rng, 2) == 0;
  for (int i = 0; i < node->num_kids; i++) {
    const bool last = node->kind != SEQUENCE || i + 1 == node->num_kids;
    node->kids[i] = random_node(rng, world, rule, depth - 1,
                                at_end && last && node->kind != STAR && node->kind != PLUS);
    node->weights[i] = (int)test_below(rng, 5);
  }
  return node;
}

static void random_world(test_rng *rng, struct world *world) {
  memset(world, 0, sizeof *world);
  world->num_rules = 1 + (int)test_below(rng, MAX_RULES);
  for (int r = 0; r < world->num_rules; r++) {
    world->rules[r] = random_node(rng, world, r, 3, true);
    world->is_public[r] = r == 0 || test_below(rng, 4) == 0;
  }
}

/* --- as text ----------------------------------------------------------------------------- */

static void put(struct world *world, const char *text) {
  assert_true(world->used + strlen(text) < sizeof world->text);
  strcpy(world->text + world->used, text);
  world->used += strlen(text);
}

/* What may stand between tokens. */
static void put_space(test_rng *rng, struct world *world) {
  static const char *const spaces[] = {" ", " ",   "\t",           "\n",         "\r\n",
                                       "",  "\f ", "/* ; * \" */", "// ; |\r\n", " "};
  put(world, spaces[test_below(rng, 10)]);
}

static void put_tag(test_rng *rng, struct world *world) {
  static const char *const tags[] = {"{x}", "{a {b ; \"} | \\} \\{ }", "{}"};
  if (test_below(rng, 6) == 0) put(world, tags[test_below(rng, 3)]);
}

static void put_word(test_rng *rng, struct world *world, int word) {
  const bool quoted = test_below(rng, 3) == 0;
  put(world, quoted ? "\"" : "");
  put(world, quoted ? names[word] : escaped[word]);
  put(world, quoted ? "\"" : " ");
}

static void put_node(test_rng *rng, struct world *world, const struct node *node);

static void put_leaf(test_rng *rng, struct world *world, const struct node *node) {
  char text[64];
  switch (node->kind) {
    case WORD: put_word(rng, world, node->value[0]); return;
    case PAIR:
      snprintf(text, sizeof text, "\" %s \t%s\"", names[node->value[0]], names[node->value[1]]);
      break;
    case NOTHING: snprintf(text, sizeof text, "<NULL>"); break;
    case NEVER: snprintf(text, sizeof text, "<VOID>"); break;
    default:
      snprintf(text, sizeof text, "<%sr%d>",
               ((const char *[]){"", "", "my.", "com.my."})[test_below(rng, 4)], node->value[0]);
  }
  put(world, text);
}

/* In parentheses, if it has parts. */
static void put_item(test_rng *rng, struct world *world, const struct node *node) {
  const bool group = node->num_kids > 0 && node->kind != OPTIONAL;
  put_space(rng, world);
  if (group) put(world, "(");
  put_node(rng, world, node);
  if (group) put(world, ")");
  put_tag(rng, world);
  put_space(rng, world);
}

static void put_node(test_rng *rng, struct world *world, const struct node *node) {
  char text[64];
  if (node->num_kids == 0) put_leaf(rng, world, node);
  for (int i = 0; i < node->num_kids; i++) {
    if (node->kind == CHOICE && i > 0) put(world, "|");
    if (node->kind == OPTIONAL) put(world, "[");
    if (node->weighted) {
      put_space(rng, world);
      snprintf(text, sizeof text, "/%g/", node->weights[i] * 0.25);
      put(world, text);
    }
    put_item(rng, world, node->kids[i]);
    if (node->kind == OPTIONAL) put(world, "]");
  }
  if (node->kind == STAR) put(world, "*");
  if (node->kind == PLUS) put(world, "+");
}

static void write_world(test_rng *rng, struct world *world) {
  char text[64];
  if (test_below(rng, 4) == 0) put(world, "\xEF\xBB\xBF");
  put(world, ((const char *[]){"#JSGF V1.0;\n", "#JSGF V1.0 UTF-8 en;", "#JSGF\tV1.0 utf8 ; \r\n",
                               "#JSGF V1.0 UTF-8 fr-CA;\r\n"})[test_below(rng, 4)]);
  put_space(rng, world);
  put(world, "grammar com.my;");
  for (int r = world->num_rules; r-- > 0;) { /* used before they are defined */
    put_space(rng, world);
    snprintf(text, sizeof text, "%s<r%d>", world->is_public[r] ? "public " : "", r);
    put(world, text);
    put_space(rng, world);
    put(world, "=");
    put_node(rng, world, world->rules[r]);
    put(world, ";");
  }
  put_space(rng, world);
}

/* --- the direct computation -------------------------------------------------------------- */

/* The rules that a node uses, through others, too. */
static bool reaches(const struct world *world, int from, int to, bool *seen) {
  if (seen[from]) return false;
  seen[from] = true;
  const struct node *begin = world->rules[from], *end = from + 1 < world->num_rules
                                                            ? world->rules[from + 1]
                                                            : world->nodes + world->num_nodes;
  for (const struct node *node = begin; node < end; node++)
    if (node->kind == RULE && (node->value[0] == to || reaches(world, node->value[0], to, seen)))
      return true;
  return false;
}

static bool is_regular(const struct world *world, const struct node *node, int rule, bool at_end) {
  bool seen[MAX_RULES] = {false};
  if (node->kind == RULE && !at_end &&
      (node->value[0] == rule || reaches(world, node->value[0], rule, seen)))
    return false;
  for (int i = 0; i < node->num_kids; i++) {
    const bool last = node->kind != SEQUENCE || i + 1 == node->num_kids;
    if (!is_regular(world, node->kids[i], rule,
                    at_end && last && node->kind != STAR && node->kind != PLUS))
      return false;
  }
  return true;
}

static bool can_say(const struct node *node, int i) {
  return node->kids[i]->productive && !(node->weighted && node->weights[i] == 0);
}

static bool is_productive(const struct world *world, const struct node *node) {
  bool all = true, any = false;
  for (int i = 0; i < node->num_kids; i++) {
    all = all && can_say(node, i);
    any = any || can_say(node, i);
  }
  switch (node->kind) {
    case NEVER: return false;
    case RULE: return world->rules[node->value[0]]->productive;
    case SEQUENCE:
    case PLUS: return all;
    case CHOICE: return any;
    default: return true;
  }
}

static double choice_cost(const struct node *node, int kid) {
  int sum = 0;
  for (int i = 0; i < node->num_kids; i++) sum += node->weights[i];
  if (!node->weighted) return 0;
  return node->weights[kid] == 0 ? INFINITY : -log((double)node->weights[kid] / sum);
}

/* The cost of kids[k], kids[k + 1], ... for the words from .. to. */
static double sequence_cost(const struct node *node, int k, int from, int to) {
  double best = INFINITY;
  if (k == node->num_kids) return from == to ? 0 : INFINITY;
  for (int middle = from; middle <= to; middle++)
    best = fmin(best, node->kids[k]->cost[from][middle] + sequence_cost(node, k + 1, middle, to));
  return best;
}

static double node_cost(const struct world *world, const struct node *node, const int *words,
                        int from, int to) {
  const int size = to - from;
  double best = INFINITY;
  switch (node->kind) {
    case WORD: return size == 1 && words[from] == node->value[0] ? 0 : INFINITY;
    case PAIR:
      return size == 2 && words[from] == node->value[0] && words[from + 1] == node->value[1]
                 ? 0
                 : INFINITY;
    case NOTHING: return size == 0 ? 0 : INFINITY;
    case NEVER: return INFINITY;
    case RULE: return world->rules[node->value[0]]->cost[from][to];
    case SEQUENCE: return sequence_cost(node, 0, from, to);
    case CHOICE:
      for (int i = 0; i < node->num_kids; i++)
        best = fmin(best, choice_cost(node, i) + node->kids[i]->cost[from][to]);
      return best;
    default: break;
  }
  best = node->kids[0]->cost[from][to];
  if (node->kind != PLUS && size == 0) best = 0;
  for (int middle = from; middle <= to && node->kind != OPTIONAL; middle++)
    best = fmin(best, node->kids[0]->cost[from][middle] + node->cost[middle][to]);
  return best;
}

/* Repeats until nothing changes, because rules may use themselves. */
static double sentence_cost(struct world *world, const int *words, int size) {
  for (int i = 0; i < world->num_nodes; i++)
    for (int from = 0; from <= size; from++)
      for (int to = from; to <= size; to++) world->nodes[i].cost[from][to] = INFINITY;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = world->num_nodes; i-- > 0;)
      for (int from = size; from >= 0; from--)
        for (int to = from; to <= size; to++) {
          const double cost = node_cost(world, &world->nodes[i], words, from, to);
          if (!(cost < world->nodes[i].cost[from][to] - 1e-12)) continue;
          world->nodes[i].cost[from][to] = cost;
          changed = true;
        }
  }
  double best = INFINITY;
  for (int r = 0; r < world->num_rules; r++)
    if (world->is_public[r]) best = fmin(best, world->rules[r]->cost[0][size]);
  return best;
}

static bool has_sentence(struct world *world) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < world->num_nodes; i++) {
      const bool productive = is_productive(world, &world->nodes[i]);
      changed = changed || productive != world->nodes[i].productive;
      world->nodes[i].productive = productive;
    }
  }
  for (int r = 0; r < world->num_rules; r++)
    if (world->is_public[r] && world->rules[r]->productive) return true;
  return false;
}

/* --- the fst ----------------------------------------------------------------------------- */

static void check_shape(const wf_fst *fst) {
  const wf_fst_view view = wf_fst_get_view(fst);
  assert_true(test_is_trimmed(fst) && view.semiring == WF_TROPICAL);
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    assert_true(view.arcs[i].ilabel > 0);
    assert_int_equal(view.arcs[i].ilabel, view.arcs[i].olabel);
    assert_non_null(wf_symbols_text(wf_fst_osymbols(fst), view.arcs[i].olabel));
  }
}

/* Cost of a sentence. */
static double fst_cost(const wf_fst *fst, const char *const *words, int size) {
  const wf_fst_view view = wf_fst_get_view(fst);
  double *at = malloc(view.num_states * sizeof *at), *next = malloc(view.num_states * sizeof *at),
         best = INFINITY;
  for (uint64_t s = 0; s < view.num_states; s++) at[s] = (int64_t)s == view.start ? 0 : INFINITY;
  for (int k = 0; k < size; k++) {
    const int64_t label = wf_symbols_find(wf_fst_isymbols(fst), words[k]);
    for (uint64_t s = 0; s < view.num_states; s++) next[s] = INFINITY;
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
        if (view.arcs[i].ilabel == label)
          next[view.arcs[i].nextstate] =
              fmin(next[view.arcs[i].nextstate], at[s] + (double)view.arcs[i].weight);
    double *last = at;
    at = next;
    next = last;
  }
  for (uint64_t s = 0; s < view.num_states; s++)
    best = fmin(best, at[s] + (double)view.final_cost[s]);
  free(at);
  free(next);
  return best;
}

/* Returns the number of sentences with a finite cost. */
static int compare_sentences(struct world *world, const wf_fst *fst, int *words, int size) {
  const char *texts[MAX_WORDS];
  for (int i = 0; i < size; i++) texts[i] = names[words[i]];
  const double want = sentence_cost(world, words, size), got = fst_cost(fst, texts, size);
  int count = want < INFINITY;
  if (!(fabs(want - got) < 1e-5) && !(want == INFINITY && got == INFINITY))
    fail_msg("a sentence of %d words (%s ...) costs %g, not %g, in\n%s", size,
             size > 0 ? texts[0] : "", got, want, world->text);
  for (int word = 0; word < NUM_WORDS && size < MAX_WORDS; word++) {
    words[size] = word;
    count += compare_sentences(world, fst, words, size + 1);
  }
  return count;
}

static wf_symbols *random_table(test_rng *rng) {
  wf_error err = {0};
  wf_symbols *table;
  if (test_below(rng, 2) == 0) return NULL;
  assert_ok(wf_symbols_create("given", &table, &err));
  assert_ok(wf_symbols_add(table, "<eps>", 0, NULL, &err));
  for (int i = 0; i < NUM_WORDS; i++)
    assert_ok(wf_symbols_add(table, names[i], 7 - 2 * i, NULL, &err));
  return table;
}

static void test_random_grammars(void **state) {
  (void)state;
  enum { USUAL = 3000 };
  uint64_t num_read = 0, num_sentences = 0, num_irregular = 0, num_empty = 0;
  struct world *world = malloc(sizeof *world);
  for (uint64_t seed = 1; seed <= test_seeds(USUAL); seed++) {
    test_rng rng = {seed};
    wf_error err = {0};
    wf_fst *fst = NULL;
    int words[MAX_WORDS + 1];
    bool regular = true;
    random_world(&rng, world);
    write_world(&rng, world);
    for (int r = 0; r < world->num_rules; r++)
      regular = regular && is_regular(world, world->rules[r], r, true);
    wf_symbols *table = random_table(&rng);
    const wf_status status =
        wf_grammar_read_memory(world->text, world->used, "random", table, &fst, &err);
    const wf_status want = !regular              ? WF_ERR_UNSUPPORTED
                           : has_sentence(world) ? WF_OK
                                                 : WF_ERR_FORMAT;
    if (status != want)
      fail_msg("seed %llu: status %d, not %d: %s\n%s", (unsigned long long)seed, status, want,
               err.message, world->text);
    num_irregular += !regular;
    num_empty += want == WF_ERR_FORMAT;
    if (status == WF_OK) {
      check_shape(fst);
      if (table != NULL) assert_ptr_equal(wf_fst_osymbols(fst), table);
      num_sentences += (uint64_t)compare_sentences(world, fst, words, 0);
      num_read++;
    }
    wf_fst_free(fst);
    wf_symbols_free(table);
  }
  free(world);
  assert_true(test_many(num_read, 1500, USUAL) && test_many(num_sentences, 14000, USUAL));
  assert_true(test_many(num_irregular, 300, USUAL) && test_many(num_empty, 150, USUAL));
}

/* --- by hand ----------------------------------------------------------------------------- */

#define HEAD "#JSGF V1.0;\ngrammar g;\n"

static wf_fst *read_text(const char *text) {
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(wf_grammar_read_memory(text, strlen(text), "text", NULL, &fst, &err));
  check_shape(fst);
  return fst;
}

/* The cost of a sentence, whose words are separated by single blanks. */
static double cost_of(const wf_fst *fst, const char *sentence) {
  char copy[256];
  const char *words[64];
  int size = 0;
  snprintf(copy, sizeof copy, "%s", sentence);
  for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) words[size++] = word;
  return fst_cost(fst, words, size);
}

static void test_commands(void **state) {
  (void)state;
  wf_fst *fst = read_text(
      "#JSGF V1.0 UTF-8 en;\n"
      "grammar robot; /* what it does */\n"
      "public <move> = [please] go (/3/ forward {F} | /1/ back) <steps> [meter | meters];\n"
      "<steps> = <digit>+ | \"a few\";\n"
      "<digit> = one | two | \\<three\\> | caf\xC3\xA9;\n"
      "public <stop> = stop | \"<name>\" <stop>;\n");
  test_assert_close(cost_of(fst, "go forward one two meters"), log(4.0 / 3), 1e-6);
  test_assert_close(cost_of(fst, "please go back a few"), log(4), 1e-6);
  test_assert_close(cost_of(fst, "go back <three> caf\xC3\xA9"), log(4), 1e-6);
  test_assert_close(cost_of(fst, "<name> <name> stop"), 0, 0);
  static const char *const others[] = {"",           "go",     "go forward", "go forward a",
                                       "go one few", "<name>", "stop stop",  "go back meter"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_true(isinf(cost_of(fst, others[i])));
  /* The words are in byte order. */
  const wf_symbols *words = wf_fst_osymbols(fst);
  int64_t key;
  assert_string_equal(wf_symbols_text(words, 0), "<eps>");
  for (size_t i = 1; i + 1 < wf_symbols_count(words); i++)
    assert_true(strcmp(wf_symbols_at(words, i, &key), wf_symbols_at(words, i + 1, &key)) < 0);
  wf_fst_free(fst);
}

static void expect_error(const char *text, size_t size, wf_status want, const char *message) {
  wf_error err = {0};
  wf_fst *fst = NULL;
  const wf_status status = wf_grammar_read_memory(text, size, "g.gram", NULL, &fst, &err);
  if (status != want || fst != NULL || strstr(err.message, message) == NULL)
    fail_msg("status %d, not %d, '%s', not '%s', for\n%.200s", status, want, err.message, message,
             text);
}

static const struct {
  const char *text;
  wf_status status;
  const char *message;
} errors[] = {
    {"#JSGF V2.0;\n", WF_ERR_UNSUPPORTED, "g.gram:1: found '#JSGF V2.0', expected '#JSGF V1.0;'"},
    {"#JSGF V1.0\ngrammar g;", WF_ERR_FORMAT, "g.gram:1: expected ';'"},
    {"#JSGF V1.0 Shift_JIS ja;\n", WF_ERR_UNSUPPORTED, "g.gram:1: character set 'Shift_JIS': only"},
    {"#JSGF V1.0 ISO8859-1;\ngrammar \xE9;", WF_ERR_UNSUPPORTED, "character set 'ISO8859-1'"},
    {"#JSGF V1.0 ASCII;\ngrammar \xC3\xA9;", WF_ERR_FORMAT, "g.gram:2: the byte 0xc3 is not ASCII"},
    {"#JSGF V1.0;\n\ngrammar \xE9;", WF_ERR_FORMAT, "g.gram:3: the byte 0xe9 is not UTF-8"},
    {"#JSGF V1.0;\n<a> = b;", WF_ERR_FORMAT, "g.gram:2: found '<a>', expected 'grammar NAME;'"},
    {"#JSGF V1.0;\ngrammar ;", WF_ERR_FORMAT,
     "g.gram:2: found ';', expected the name of the grammar"},
    {HEAD "import <com.x.*>;", WF_ERR_UNSUPPORTED, "g.gram:3: found 'import'"},
    {HEAD "<a> = b;", WF_ERR_FORMAT, "g.gram: no rule is public"},
    {HEAD, WF_ERR_FORMAT, "g.gram: no rule is public"},
    {HEAD "public a = b;", WF_ERR_FORMAT, "g.gram:3: found 'a', expected a rule"},
    {HEAD "public <a> b;", WF_ERR_FORMAT, "g.gram:3: found 'b', expected '='"},
    {HEAD "public <a> = b", WF_ERR_FORMAT, "g.gram:3: found the end of the file, expected"},
    {HEAD "public <a> = b |\n| c;", WF_ERR_FORMAT, "g.gram:4: found '|', expected a word, <rule>"},
    {HEAD "public <a> = ;", WF_ERR_FORMAT, "g.gram:3: found ';', expected a word"},
    {HEAD "public <a> = b ();", WF_ERR_FORMAT, "g.gram:3: found ')', expected a word"},
    {HEAD "public <a> = (b;", WF_ERR_FORMAT, "g.gram:3: found ';', expected '|' or ')'"},
    {HEAD "public <a> = [b);", WF_ERR_FORMAT, "g.gram:3: found ')', expected '|' or ']'"},
    {HEAD "public <a> = b);", WF_ERR_FORMAT, "g.gram:3: found ')', expected"},
    {HEAD "public <a> = * b;", WF_ERR_FORMAT, "g.gram:3: found '*', expected a word"},
    {HEAD "public <a> = b }", WF_ERR_FORMAT, "g.gram:3: found '}', expected"},
    {HEAD "public <a> = b >", WF_ERR_FORMAT, "g.gram:3: found '>', expected"},
    {HEAD "public <a> = <b c>;", WF_ERR_FORMAT,
     "g.gram:3: found '<b', expected the name of a rule"},
    {HEAD "public <a> = <>;", WF_ERR_FORMAT, "g.gram:3: found '<', expected the name of a rule"},
    {HEAD "public <a> = b\n\n<c>;", WF_ERR_FORMAT, "g.gram:5: the rule <c> is not defined"},
    {HEAD "public <a> = b;\n<a> = c;", WF_ERR_FORMAT,
     "g.gram:4: the rule <a> is defined a second time, first in line 3"},
    {HEAD "<NULL> = c;", WF_ERR_FORMAT, "g.gram:3: found '<NULL>', expected another name"},
    {HEAD "public <a> = b {x {y}", WF_ERR_FORMAT, "g.gram:3: the tag that begins here has no end"},
    {HEAD "public <a> = b {\\", WF_ERR_FORMAT, "g.gram:3: the tag that begins here has no end"},
    {HEAD "/* x *\npublic <a> = b;", WF_ERR_FORMAT, "g.gram:3: the comment that begins here"},
    {HEAD "public <a> =\n\"b\n\\\";", WF_ERR_FORMAT, "g.gram:4: the quoted words that begin here"},
    {HEAD "public <a> = \" \";", WF_ERR_FORMAT, "g.gram:3: found ' ', expected words between"},
    {HEAD "public <a> = b\\ c;", WF_ERR_FORMAT, "g.gram:3: found white space after '\\'"},
    {HEAD "public <a> = b\\", WF_ERR_FORMAT, "g.gram:3: found white space after '\\'"},
    {HEAD "public <a> = and/or;", WF_ERR_FORMAT, "g.gram:3: found '/or;', expected a weight"},
    {HEAD "public <a> = b /1/;", WF_ERR_FORMAT, "g.gram:3: found '/1/', expected"},
    {HEAD "public <a> = /1/ b | c;", WF_ERR_FORMAT, "g.gram:3: found 'c', expected a weight"},
    {HEAD "public <a> = b | /1/ c;", WF_ERR_FORMAT, "g.gram:3: found '/1/', expected no weight"},
    {HEAD "public <a> = /-1/ b | /1/ c;", WF_ERR_FORMAT, "found '/-1/', expected a weight from 0"},
    {HEAD "public <a> = /nan/ b;", WF_ERR_FORMAT, "found '/nan/', expected a weight from 0"},
    {HEAD "public <a> = /inf/ b;", WF_ERR_FORMAT, "found '/inf/', expected a weight from 0"},
    {HEAD "public <a> = /1 2/ b;", WF_ERR_FORMAT, "found '/1 2/', expected a weight from 0"},
    {HEAD "public <a> = b\n<s>;\n<s> = \"<s>\";", WF_ERR_FORMAT, "g.gram:5: '<s>' is reserved"},
    {HEAD "public <a> = #0;", WF_ERR_FORMAT, "g.gram:3: '#0' is reserved"},
    {HEAD "public <a> = b | <a> c;", WF_ERR_UNSUPPORTED,
     "g.gram:3: the rule <a> uses itself before its end"},
    {HEAD "public <a> = b <a>*;", WF_ERR_UNSUPPORTED, "g.gram:3: the rule <a> uses itself before"},
    {HEAD "public <a> = <b>;\n<b> = c |\n<d> e; <d> = f <b>;", WF_ERR_UNSUPPORTED,
     "g.gram:5: the rule <b> uses itself through <d> before its end"},
    {HEAD "public <a> = b <a>;", WF_ERR_FORMAT, "g.gram: no sentence can be said"},
    {HEAD "public <a> = /0/ b | /0/ c;", WF_ERR_FORMAT, "g.gram: no sentence can be said"},
    {"#JSG", WF_ERR_FORMAT, "looks like text"},
};

static void test_errors(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    expect_error(errors[i].text, strlen(errors[i].text), errors[i].status, errors[i].message);
  static const char nul[] = HEAD "public <a> = b\0c;";
  expect_error(nul, sizeof nul - 1, WF_ERR_FORMAT, "g.gram:3: the byte 0x00 is not UTF-8");
}

static void test_words_given(void **state) {
  (void)state;
  wf_error err = {0};
  wf_symbols *table;
  wf_fst *fst;
  assert_ok(wf_symbols_create("words.txt", &table, &err));
  assert_ok(wf_symbols_add(table, "<eps>", 0, NULL, &err));
  assert_ok(wf_symbols_add(table, "yes", 5, NULL, &err));
  const char *text = HEAD "public <a> = yes |\n no;", *lines = "yes\n\nyes no\n";
  assert_int_equal(wf_grammar_read_memory(text, strlen(text), "g", table, &fst, &err),
                   WF_ERR_FORMAT);
  assert_string_equal(err.message, "g:4: the word 'no' is not in the word table words.txt");
  assert_int_equal(wf_grammar_read_phrases_memory(lines, strlen(lines), "p", table, &fst, &err),
                   WF_ERR_FORMAT);
  assert_string_equal(err.message, "p:3: the word 'no' is not in the word table words.txt");
  wf_symbols_free(table);
}

/* --- size -------------------------------------------------------------------------------- */

/* `count` rules, each of which is `uses` of the next, and the last of which is `leaf`. */
static char *chain(int count, const char *format, const char *leaf) {
  char *text = malloc((size_t)count * 64 + 256), line[128];
  size_t used = (size_t)sprintf(text, HEAD "public <r0> = <r1>;\n");
  for (int i = 1; i < count; i++) {
    snprintf(line, sizeof line, format, i, i + 1, i + 1);
    used += (size_t)sprintf(text + used, "%s\n", line);
  }
  sprintf(text + used, "<r%d> = %s;", count, leaf);
  return text;
}

static char *nested(int depth) {
  char *text = malloc((size_t)depth * 2 + 256);
  strcpy(text, HEAD "public <a> = ");
  for (int i = 0; i < depth; i++) strcat(text, i % 2 == 0 ? "(" : "[");
  strcat(text, "b");
  for (int i = depth; i-- > 0;) strcat(text, i % 2 == 0 ? ")" : "]");
  strcat(text, ";");
  return text;
}

static void test_sizes(void **state) {
  (void)state;
  char *text = chain(64, "<r%d> = <r%d> <r%d>;", "a");
  expect_error(text, strlen(text), WF_ERR_LIMIT,
               "g.gram:3: with the rule <r0> the grammar has more than 10000000 parts");
  free(text);
  text = chain(40, "<r%d> = <r%d> <r%d>;", "<VOID>");
  expect_error(text, strlen(text), WF_ERR_LIMIT, "has more than 10000000 parts");
  free(text);
  text = chain(14, "<r%d> = <r%d> <r%d>;", "[a]");
  expect_error(text, strlen(text), WF_ERR_LIMIT, "g.gram: the grammar has more than 10000000 arcs");
  free(text);
  text = nested(201);
  expect_error(text, strlen(text), WF_ERR_LIMIT, "g.gram:3: more than 200 parentheses");
  free(text);
  text = nested(200);
  wf_fst *fst = read_text(text);
  test_assert_close(cost_of(fst, "b"), 0, 0);
  assert_true(isinf(cost_of(fst, "b b")));
  free(text);
  wf_fst_free(fst);
  text = chain(10, "<r%d> = <r%d> <r%d>;", "a"); /* 512 words */
  fst = read_text(text);
  assert_int_equal(wf_fst_get_view(fst).num_arcs, 512);
  free(text);
  wf_fst_free(fst);
  text = chain(100000, "<r%d> = <r%d>;", "a"); /* rules may be nested to any depth */
  fst = read_text(text);
  test_assert_close(cost_of(fst, "a"), 0, 0);
  free(text);
  wf_fst_free(fst);
}

/* --- sentences --------------------------------------------------------------------------- */

static void test_phrases(void **state) {
  (void)state;
  static const char text[] =
      "\xEF\xBB\xBFturn on\r\n\nturn \t off \nturn on\n  # one\nturn\nturn on the light\n\t\n#one";
  wf_error err = {0};
  wf_fst *fst, *again;
  assert_ok(
      wf_grammar_read_phrases(test_write_file("phrases", text, sizeof text - 1), NULL, &fst, &err));
  assert_ok(wf_grammar_read_phrases_memory(text, sizeof text - 1, "phrases", NULL, &again, &err));
  check_shape(fst);
  assert_true((wf_fst_properties(fst) & WF_PROP_IDETERMINISTIC) != 0);
  test_relation paths = test_enumerate(fst, 10, 100), same = test_enumerate(again, 10, 100);
  test_assert_same_relation(&paths, &same, 0);
  assert_int_equal(paths.size, 6);
  static const char *const sentences[] = {"turn",  "turn on", "turn off",
                                          "# one", "#one",    "turn on the light"};
  for (size_t i = 0; i < 6; i++) test_assert_close(cost_of(fst, sentences[i]), 0, 0);
  assert_true(isinf(cost_of(fst, "turn on the")) && isinf(cost_of(fst, "")));
  test_relation_free(&paths);
  test_relation_free(&same);
  wf_fst_free(fst);
  wf_fst_free(again);
  static const struct {
    const char *text, *message;
  } cases[] = {{"", "p: no sentence, expected one in each line"},
               {"\n \n", "p: no sentence, expected one in each line"},
               {"a\nb <eps>\n", "p:2: '<eps>' is reserved and cannot be a word"},
               {"a\n\xFF\n", "p:2: the sentence is not UTF-8 text"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(
        wf_grammar_read_phrases_memory(cases[i].text, strlen(cases[i].text), "p", NULL, &fst, &err),
        WF_ERR_FORMAT);
    assert_string_equal(err.message, cases[i].message);
  }
}

/* --- files ------------------------------------------------------------------------------- */

static void test_files(void **state) {
  (void)state;
  static const char text[] = HEAD "public <a> = yes;";
  wf_error err = {0};
  wf_fst *fst, *again, *wrong = NULL;
  const char *path = test_write_file("any.name", text, sizeof text - 1);
  assert_ok(wf_grammar_read(path, NULL, &fst, &err));
  assert_int_equal(wf_fst_read(path, &wrong, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "a grammar in JSGF, not an fst"));
  assert_ok(wf_grammar_read(test_save_fst(fst, "g.fst"), NULL, &again, &err));
  assert_int_equal(wf_fst_get_view(again).num_arcs, 1);
  assert_int_equal(wf_grammar_read("/nowhere/g", NULL, &wrong, &err), WF_ERR_IO);
  wf_fst_free(fst);
  wf_fst_free(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_grammars), cmocka_unit_test(test_commands),
      cmocka_unit_test(test_errors),          cmocka_unit_test(test_words_given),
      cmocka_unit_test(test_sizes),           cmocka_unit_test(test_phrases),
      cmocka_unit_test(test_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
