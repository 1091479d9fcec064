/* test_hmm.c - context, H, self-loops and epsilon folding, each compared with its definition. The
 * models are made up and follow no toolkit. */
#include "testing.h"

#include "graph/emitting_only.h"
#include "graph/hmm.h"

/* --- context: C o LG --------------------------------------------------------------------- */

/* A made-up model. The key of a window of phones is the phones' numbers as decimal digits. A
 * context-free phone has a key that ignores its neighbours. A window gets a new type when it is
 * first looked up. */
enum { MAX_PHONES = 6, MAX_KEYS = 4096 };
struct made_up {
  int64_t keys[MAX_KEYS];
  int num_keys, lookups;
  int64_t missing_modulus; /* windows whose key is a multiple of it are missing; 0: none are */
};

static int64_t key_of(const wf_hmm *hmm, const int32_t *window) {
  int64_t key = 0;
  if (hmm->context_free[window[hmm->central]]) return 1000000000 + window[hmm->central];
  for (int32_t i = 0; i < hmm->width; i++) key = key * 10 + window[i];
  return key;
}

static int32_t type_of_key(struct made_up *model, int64_t key) {
  for (int i = 0; i < model->num_keys; i++)
    if (model->keys[i] == key) return i + 1;
  return 0;
}

static wf_status find_made_up(wf_hmm *hmm, const int32_t *window, int32_t *out_type,
                              wf_error *err) {
  struct made_up *model = hmm->model;
  int64_t key = key_of(hmm, window);
  model->lookups++;
  *out_type = 0;
  if (model->missing_modulus != 0 && key % model->missing_modulus == 0) return WF_OK;
  *out_type = type_of_key(model, key);
  if (*out_type != 0) return WF_OK;
  assert_true(model->num_keys < MAX_KEYS);
  model->keys[model->num_keys++] = key;
  wf__csr type = {0};
  assert_int_equal(wf__csr_add_state(&type, INFINITY, err), WF_OK);
  assert_int_equal(wf__csr_push(&type, (wf_arc){1, 0, 1, 0}, err), WF_OK);
  assert_int_equal(wf__csr_add_state(&type, 0, err), WF_OK);
  wf_status status = wf__hmm_add_type(hmm, &type, out_type, err);
  wf__csr_free(&type);
  return status;
}

static void free_made_up(void *model) { free(model); }
static const wf__hmm_class g_made_up = {find_made_up, free_made_up};

static wf_hmm *make_model(int32_t width, int32_t central, int32_t num_phones, test_rng *rng,
                          bool with_classes) {
  wf_error err = {0};
  wf_hmm *hmm;
  wf_symbols *phones;
  struct made_up *model = calloc(1, sizeof *model);
  assert_ok(wf__hmm_create("made up", &g_made_up, model, &hmm, &err));
  assert_ok(wf_symbols_create("phones", &phones, &err));
  assert_ok(wf_symbols_add(phones, "<eps>", 0, NULL, &err));
  for (int32_t p = 1; p <= num_phones; p++) {
    char text[8];
    snprintf(text, sizeof text, "p%d", p);
    assert_ok(wf_symbols_add(phones, text, p, NULL, &err));
  }
  assert_ok(wf__hmm_set_phones(hmm, phones, num_phones, &err));
  hmm->lexicon_phones = phones;
  hmm->width = width;
  hmm->central = central;
  hmm->num_columns = 1;
  wf__hmm_label label = {.column = 0};
  assert_ok(wf__vec_push(&hmm->labels, label, "labels", &err));
  assert_ok(wf__hmm_close(hmm, &err));
  for (int32_t p = 1; p <= num_phones && with_classes; p++) {
    hmm->context_free[p] = test_unit(rng) < 0.3f;
    hmm->context_of[p] = 1 + (int32_t)test_below(rng, (uint32_t)p);
  }
  return hmm;
}

/* The definition: the type of the i-th of `count` phones. Context-free phones ignore their
 * neighbours. Phones to the left of the centre are mapped to their context class. */
static int64_t expected_key(const wf_hmm *hmm, const int32_t *phones, int count, int i) {
  int32_t window[WF__HMM_MAX_WIDTH];
  for (int32_t k = 0; k < hmm->width; k++) {
    int at = i + k - hmm->central;
    window[k] = at < 0 || at >= count ? 0
                : k < hmm->central    ? hmm->context_of[phones[at]]
                                      : phones[at];
  }
  return key_of(hmm, window);
}

static void append(char *text, size_t size, int64_t number) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%lld", used != 0 ? " " : "", (long long)number);
}

/* Splits the single path of an fst into strings: types without disambiguation symbols,
 * disambiguation symbols, words, cost. */
static void check_string(wf_hmm *hmm, test_rng *rng, int32_t num_disambig) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst, *made;
  wf_tally dropped = {0};
  int32_t phones[12];
  int count = 0, length = (int)test_below(rng, 9);
  char want_types[256] = "", want_disambig[256] = "", want_words[256] = "", types[256] = "",
       disambig[256] = "", words[256] = "";
  double want_cost = 0, cost = 0;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, (uint64_t)length + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (int i = 0; i < length; i++) {
    float weight = (float)test_below(rng, 8) / 8;
    int32_t label = (int32_t)test_below(rng, (uint32_t)(hmm->num_phones + num_disambig + 1)),
            word = (int32_t)test_below(rng, 4);
    assert_ok(wf_builder_add_arc(builder, (uint32_t)i,
                                 (wf_arc){(uint32_t)i + 1, weight, label, word}, &err));
    if (label > hmm->num_phones)
      append(want_disambig, sizeof want_disambig, label - hmm->num_phones);
    else if (label != 0)
      phones[count++] = label;
    if (word != 0) append(want_words, sizeof want_words, word);
    want_cost += (double)weight;
  }
  assert_ok(wf_builder_set_final(builder, (uint32_t)length, 0.25f, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  assert_ok(
      wf__hmm_expand(hmm, fst, num_disambig, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &made, &err));
  for (int i = 0; i < count; i++)
    append(want_types, sizeof want_types,
           type_of_key(hmm->model, expected_key(hmm, phones, count, i)));
  wf_fst_view view = wf_fst_get_view(made);
  uint64_t state = (uint64_t)view.start;
  for (; view.final_cost[state] == INFINITY; state = view.arcs[view.arc_off[state]].nextstate) {
    assert_int_equal(view.arc_off[state + 1] - view.arc_off[state], 1);
    const wf_arc *arc = &view.arcs[view.arc_off[state]];
    if (arc->ilabel > wf__hmm_num_types(hmm))
      append(disambig, sizeof disambig, arc->ilabel - wf__hmm_num_types(hmm));
    else if (arc->ilabel != 0)
      append(types, sizeof types, arc->ilabel);
    if (arc->olabel != 0) append(words, sizeof words, arc->olabel);
    cost += (double)arc->weight;
  }
  assert_string_equal(types, want_types);
  assert_string_equal(disambig, want_disambig);
  assert_string_equal(words, want_words);
  assert_true(fabs(cost + (double)view.final_cost[state] - want_cost - 0.25) < 1e-5);
  wf_builder_free(builder);
  wf_fst_free(fst);
  wf_fst_free(made);
}

static void test_context_of_strings(void **state) {
  static const int32_t shapes[][2] = {{1, 0}, {2, 1}, {2, 0}, {3, 1}, {3, 0},
                                      {3, 2}, {4, 1}, {5, 2}, {4, 3}};
  test_rng rng = {11};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int round = 0; round < 40; round++) {
      wf_hmm *hmm = make_model(shapes[s][0], shapes[s][1],
                               1 + (int32_t)test_below(&rng, MAX_PHONES - 1), &rng, round % 2 == 1);
      for (int string = 0; string < 5; string++) check_string(hmm, &rng, 2);
      wf_hmm_free(hmm);
    }
}

/* Branching fsts: the paths of C o fst are those of its strings, taken one by one. Types are
 * compared as window keys, which are the same in both. */
static void test_context_of_fsts(void **state) {
  wf_error err = {0};
  test_rng rng = {12};
  for (int round = 0; round < 60; round++) {
    test_fst_shape shape = {.num_states = 5,
                            .num_arcs = 9,
                            .num_ilabels = 4,
                            .num_olabels = 2,
                            .epsilon_share = 0.2f,
                            .final_share = 0.4f,
                            .max_weight = 3,
                            .acyclic = true};
    int32_t width = 1 + (int32_t)test_below(&rng, 4),
            central = (int32_t)test_below(&rng, (uint32_t)width);
    wf_hmm *hmm = make_model(width, central, 3, &rng, round % 2 == 1); /* label 4 is #0 */
    wf_tally dropped = {0};
    wf_fst *fst = test_random_fst(&rng, &shape), *c, *phones, *direct, *composed;
    wf_builder *builder;
    assert_ok(wf__hmm_expand(hmm, fst, 1, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &direct, &err));
    /* C itself is the expansion of all phone strings. Its composition with the fst must equal the
     * direct expansion. */
    assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
    assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
    assert_ok(wf_builder_set_start(builder, 0, &err));
    assert_ok(wf_builder_set_final(builder, 0, 0, &err));
    for (int32_t label = 1; label <= 4; label++)
      assert_ok(wf_builder_add_arc(builder, 0, (wf_arc){0, 0, label, label}, &err));
    assert_ok(wf_builder_finish(builder, NULL, NULL, &phones, &err));
    assert_ok(wf__hmm_expand(hmm, phones, 1, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &c, &err));
    int32_t num_types = wf__hmm_num_types(hmm);
    wf_fst_free(direct); /* expand again: now #0 has the same label in both */
    assert_ok(wf__hmm_expand(hmm, fst, 1, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &direct, &err));
    assert_int_equal(wf__hmm_num_types(hmm), num_types);
    assert_ok(wf_compose(c, fst, NULL, &composed, &err));
    test_relation a = test_enumerate(direct, 60, 2000000),
                  b = test_enumerate(composed, 60, 2000000);
    test_assert_same_relation(&a, &b, 1e-5);
    test_relation_free(&a);
    test_relation_free(&b);
    wf_builder_free(builder);
    wf_fst_free(fst);
    wf_fst_free(phones);
    wf_fst_free(c);
    wf_fst_free(direct);
    wf_fst_free(composed);
    wf_hmm_free(hmm);
  }
}

static void test_missing_windows(void **state) {
  wf_error err = {0};
  test_rng rng = {1};
  wf_hmm *hmm = make_model(3, 1, 2, &rng, false);
  ((struct made_up *)hmm->model)->missing_modulus = 121; /* 1 2 1 */
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1\n1 2 2 0\n2 3 1 0\n0 3 2 2\n3\n"), *made;
  wf_tally dropped = {0};
  assert_int_equal(wf__hmm_expand(hmm, fst, 0, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &made, &err),
                   WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "p1 p2 p1"));
  assert_int_equal(wf__hmm_expand(hmm, fst, 0, WF_MISSING_HMM_ERROR, 0, &dropped, &made, &err),
                   WF_ERR_ARGUMENT);
  assert_ok(wf__hmm_expand(hmm, fst, 0, WF_MISSING_HMM_DROP, 0, &dropped, &made, &err));
  assert_int_equal(dropped.count, 1);
  assert_string_equal(dropped.names[0], "p1 p2 p1");
  assert_int_equal(wf_fst_get_view(made).num_arcs, 2); /* eps:2 and the type of "2" alone */
  wf_fst_free(made);
  assert_int_equal(wf__hmm_expand(hmm, fst, 0, WF_MISSING_HMM_DROP, 2, &dropped, &made, &err),
                   WF_ERR_LIMIT);
  assert_null(made);
  hmm->width = 9;
  assert_int_equal(wf__hmm_expand(hmm, fst, 0, WF_MISSING_HMM_DROP, 0, &dropped, &made, &err),
                   WF_ERR_UNSUPPORTED);
  hmm->width = 3;
  wf_fst_free(fst);
  fst = test_fst_of(WF_TROPICAL, "0 1 3 1\n1\n");
  assert_int_equal(wf__hmm_expand(hmm, fst, 0, WF_MISSING_HMM_DROP, 0, &dropped, &made, &err),
                   WF_ERR_ARGUMENT); /* a label beyond the phones */
  wf_fst_free(fst);
  wf__tally_free(&dropped);
  wf_hmm_free(hmm);
}

/* --- H ----------------------------------------------------------------------------------- */

enum { NUM_LABELS = 5 };

/* HMM types of any topology: cycles, several final states, final states with arcs, starts with
 * incoming arcs. Each is a random connected acceptor. */
static wf_fst *random_type(test_rng *rng) {
  wf_error err = {0};
  for (;;) {
    test_fst_shape shape = {.num_states = 2 + test_below(rng, 3),
                            .num_arcs = 2 + test_below(rng, 4),
                            .num_ilabels = NUM_LABELS,
                            .num_olabels = NUM_LABELS,
                            .final_share = 0.4f,
                            .max_weight = 2,
                            .acceptor = true};
    wf_fst *random = test_random_fst(rng, &shape), *fst;
    assert_ok(wf_connect(random, &fst, &err));
    wf_fst_free(random);
    wf_fst_view view = wf_fst_get_view(fst);
    if (view.num_states > 1 && view.start == 0 && view.final_cost[0] == INFINITY) return fst;
    wf_fst_free(fst);
  }
}

static void fill_csr(const wf_fst *fst, wf__csr *csr) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  for (uint64_t s = 0; s < view.num_states; s++) {
    assert_ok(wf__csr_add_state(csr, view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
      assert_ok(wf__csr_push(csr, view.arcs[i], &err));
  }
}

/* H o (a string of types) equals the concatenation of the types' acceptors. */
static void test_h_against_concatenation(void **state) {
  wf_error err = {0};
  test_rng rng = {21};
  for (uint64_t round = 0; round < test_seeds(60); round++) {
    wf_hmm *hmm = make_model(1, 0, 1, &rng, false);
    for (int32_t l = 2; l <= NUM_LABELS; l++)
      assert_ok(wf__vec_push(&hmm->labels, ((wf__hmm_label){.column = 0}), "labels", &err));
    wf_fst *types[3], *h, *string, *composed, *projected, *parts[2], *wanted;
    for (int t = 0; t < 3; t++) {
      int32_t id;
      wf__csr csr = {0};
      types[t] = random_type(&rng);
      fill_csr(types[t], &csr);
      assert_ok(wf__hmm_add_type(hmm, &csr, &id, &err));
      assert_int_equal(id, t + 1);
      wf__csr_free(&csr);
    }
    int first = (int)test_below(&rng, 3), second = (int)test_below(&rng, 3);
    char text[64];
    snprintf(text, sizeof text, "0 1 %d %d\n1 2 5 5\n2 3 %d %d\n3\n", first + 1, first + 1,
             second + 1, second + 1); /* two types with #1 between */
    string = test_fst_of(WF_TROPICAL, text);
    assert_ok(wf__hmm_to_fst(hmm, 1, 2, &h, &err));
    assert_ok(wf_compose(h, string, NULL, &composed, &err));
    int32_t disambig = NUM_LABELS + 2; /* #1 */
    wf_fst *without;
    assert_ok(wf_remove_disambig(composed, &disambig, 1, &without, &err));
    wf_project_options input;
    wf_project_options_init(&input);
    assert_ok(wf_project(without, &input, &projected, &err));
    parts[0] = types[first];
    parts[1] = types[second];
    assert_ok(wf_concat((const wf_fst *const *)parts, 2, &wanted, &err));
    /* Strings of up to 6 labels. A path in H has one entry arc and at most one exit epsilon for
     * each type, and the arc of #1. */
    test_relation a = test_enumerate(projected, 11, 4000000),
                  b = test_enumerate(wanted, 7, 4000000);
    for (size_t i = 0, k = 0; i < b.size; i++) { /* each pair of b must be in a at the same cost;
                                                    pairs of a beyond those of b are longer */
      while (k < a.size && strcmp(a.pairs[k].key, b.pairs[i].key) < 0) k++;
      if (k == a.size || strcmp(a.pairs[k].key, b.pairs[i].key) != 0)
        fail_msg("round %d: H lacks '%s'", (int)round, b.pairs[i].key);
      /* Longer paths of the same string have more arcs, not more labels, because all arcs but one
       * have labels. */
      assert_true(fabs(a.pairs[k].cost - b.pairs[i].cost) < 1e-5);
    }
    test_relation all = test_enumerate(wanted, 13, 4000000);
    for (size_t i = 0, k = 0; i < a.size; i++) { /* each pair of a must be in the concatenation */
      while (k < all.size && strcmp(all.pairs[k].key, a.pairs[i].key) < 0) k++;
      if (k == all.size || strcmp(all.pairs[k].key, a.pairs[i].key) != 0)
        fail_msg("round %d: H has '%s'", round, a.pairs[i].key);
    }
    test_relation_free(&all);
    test_relation_free(&a);
    test_relation_free(&b);
    for (int t = 0; t < 3; t++) wf_fst_free(types[t]);
    wf_fst_free(h);
    wf_fst_free(string);
    wf_fst_free(composed);
    wf_fst_free(without);
    wf_fst_free(projected);
    wf_fst_free(wanted);
    wf_hmm_free(hmm);
  }
}

static void test_bad_types(void **state) {
  wf_error err = {0};
  test_rng rng = {1};
  static const struct {
    const char *text;
    wf_status status;
  } rows[] = {{"0 1 1 1\n1\n", WF_OK},
              {"0 1 1 1\n1\n0\n", WF_ERR_UNSUPPORTED},  /* accepts without consuming a frame */
              {"0 1 2 2\n1\n", WF_ERR_FORMAT},          /* no such label */
              {"0 1 0 0\n1\n", WF_ERR_FORMAT},          /* epsilon */
              {"0 1 1 1\n1\n2 1 1 1\n", WF_ERR_FORMAT}, /* not reached */
              {"0 1 1 1\n1\n0 2 1 1\n2 2 1 1\n", WF_ERR_FORMAT}}; /* no path to a final state */
  wf_hmm *hmm = make_model(1, 0, 1, &rng, false);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int32_t id;
    wf__csr csr = {0};
    wf_fst *fst = test_fst_of(WF_TROPICAL, rows[i].text);
    fill_csr(fst, &csr);
    wf_status status = wf__hmm_add_type(hmm, &csr, &id, &err);
    if (status != rows[i].status) fail_msg("row %zu: %d, %s", i, (int)status, err.message);
    wf__csr_free(&csr);
    wf_fst_free(fst);
  }
  assert_int_equal(wf__hmm_num_types(hmm), 1);
  wf_hmm_free(hmm);
}

/* --- self-loops -------------------------------------------------------------------------- */

/* Labels 1 and 2 share the loop 1, 3 and 4 have their own, 5 has none. */
static wf_hmm *make_looping_model(test_rng *rng) {
  wf_error err = {0};
  wf_hmm *hmm = make_model(1, 0, 1, rng, false);
  for (int32_t l = 2; l <= NUM_LABELS; l++)
    assert_ok(wf__vec_push(&hmm->labels, ((wf__hmm_label){.column = 0}), "labels", &err));
  for (int32_t l = 1; l <= 4; l++)
    hmm->labels.data[l] = (wf__hmm_label){0, l == 2 ? 1 : l, (float)(l == 2 ? 1 : l) / 2,
                                          (float)(l == 2 ? 1 : l) / 16};
  assert_ok(wf__hmm_close(hmm, &err));
  return hmm;
}

/* Cost of aligning frames x with the labels of `key` ("1 2 : ..."): each label once, then its loop
 * any number of times. */
static double align(const wf_hmm *hmm, const char *key, const int *x, int frames, double scale) {
  double cost[16], best = INFINITY;
  int labels[16], count = 0;
  for (const char *at = key; *at != ':' && *at != '\0'; at++)
    if (*at >= '0' && *at <= '9') labels[count++] = *at - '0';
  if (count == 0) return frames == 0 ? 0 : INFINITY;
  for (int i = 0; i < count; i++) cost[i] = INFINITY; /* cost[i]: of being in the i-th label */
  for (int t = 0; t < frames; t++)
    for (int i = count - 1; i >= 0; i--) {
      const wf__hmm_label *own = &hmm->labels.data[labels[i]];
      double stay = own->loop != 0 && x[t] == own->loop ? cost[i] + scale * (double)own->loop_cost
                                                        : INFINITY,
             enter = INFINITY;
      if (x[t] == labels[i])
        enter = i > 0 ? cost[i - 1] + scale * (double)hmm->labels.data[labels[i - 1]].forward_cost
                : t == 0 ? 0
                         : INFINITY;
      cost[i] = fmin(stay, enter);
    }
  best = cost[count - 1] + scale * (double)hmm->labels.data[labels[count - 1]].forward_cost;
  return frames > 0 ? best : INFINITY;
}

static void test_self_loops(void **state) {
  wf_error err = {0};
  test_rng rng = {31};
  wf_hmm *hmm = make_looping_model(&rng);
  int num_finite = 0;
  for (int round = 0; round < 150; round++) {
    test_fst_shape shape = {.num_states = 6,
                            .num_arcs = 12,
                            .num_ilabels = NUM_LABELS,
                            .num_olabels = 2,
                            .epsilon_share = round % 2 == 0 ? 0.2f : 0,
                            .final_share = 0.4f,
                            .max_weight = 3,
                            .acyclic = round % 2 == 0};
    float scale = (float)(1 + test_below(&rng, 3)) / 2;
    wf_fst *fst = test_random_fst(&rng, &shape), *looped;
    assert_ok(wf__hmm_add_loops(hmm, fst, scale, &looped, &err));
    test_relation relation = test_enumerate(
        fst, 7, 4000000); /* every path that 6 frames can take: cyclic fsts have no epsilons here */
    for (int string = 0; string < 30; string++) {
      int x[7], frames = (int)test_below(&rng, 7);
      for (int t = 0; t < frames; t++)
        x[t] = t > 0 && test_unit(&rng) < 0.5f ? (x[t - 1] == 2 ? 1 : x[t - 1])
                                               : 1 + (int)test_below(&rng, NUM_LABELS);
      double wanted = INFINITY, found = test_best_cost(looped, NULL, x, frames);
      for (size_t i = 0; i < relation.size; i++)
        wanted = fmin(wanted, relation.pairs[i].cost +
                                  align(hmm, relation.pairs[i].key, x, frames, (double)scale));
      if (wanted == INFINITY ? found != INFINITY : !(fabs(found - wanted) < 1e-5))
        fail_msg("round %d: %g, wanted %g", round, found, wanted);
      num_finite += wanted != INFINITY;
    }
    test_relation_free(&relation);
    wf_fst_free(fst);
    wf_fst_free(looped);
  }
  assert_true(num_finite > 200);
  wf_fst *bad = test_fst_of(WF_TROPICAL, "0 1 9 1\n1\n"), *looped;
  assert_int_equal(wf__hmm_add_loops(hmm, bad, 1, &looped, &err), WF_ERR_ARGUMENT);
  wf_fst_free(bad);
  wf_hmm_free(hmm);
}

/* The same by the definition in self_loops.c, state by state, trimmed at the end. */
static wf_fst *loops_by_definition(const wf_hmm *hmm, const wf_fst *fst) {
  enum { NONE = 8, MIXED = 9 };
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t n = view.num_states, num_copies = 0;
  uint8_t *class = malloc(n);
  uint32_t(*copy)[8] = calloc(n, sizeof *copy), *state_of = malloc(view.num_arcs * 4);
  int *loop_of = malloc(view.num_arcs * sizeof *loop_of);
  wf__csr csr = {0};
  wf_fst *made, *trimmed;
  memset(class, NONE, n);
  class[view.start] = 0;
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    uint8_t *have = &class[view.arcs[i].nextstate],
            loop = (uint8_t)hmm->labels.data[view.arcs[i].ilabel].loop;
    *have = *have == NONE || *have == loop ? loop : MIXED;
  }
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    uint32_t next = view.arcs[i].nextstate;
    int loop = hmm->labels.data[view.arcs[i].ilabel].loop;
    if (class[next] != MIXED || loop == 0 || copy[next][loop] != 0) continue;
    state_of[num_copies] = next;
    loop_of[num_copies++] = loop;
    copy[next][loop] = (uint32_t)(n + num_copies - 1);
  }
  for (uint64_t k = 0; k < n + num_copies; k++) {
    uint64_t s = k < n ? k : state_of[k - n], count = view.arc_off[s + 1] - view.arc_off[s];
    int loop = k >= n ? loop_of[k - n] : class[s] < NONE ? class[s] : 0;
    float forward = loop != 0 ? hmm->labels.data[loop].forward_cost : 0;
    bool arcs = k < n || (count == 1 && view.final_cost[s] == INFINITY);
    assert_ok(wf__csr_add_state(&csr, k < n ? view.final_cost[s] + forward : INFINITY, &err));
    for (int epsilons = 0; epsilons < 2; epsilons++) {
      for (uint64_t i = 0; arcs && i < count; i++) {
        wf_arc arc = view.arcs[view.arc_off[s] + i];
        int own = hmm->labels.data[arc.ilabel].loop;
        if ((arc.ilabel == 0) != epsilons) continue;
        if (class[arc.nextstate] == MIXED && own != 0) arc.nextstate = copy[arc.nextstate][own];
        arc.weight += forward;
        assert_ok(wf__csr_push(&csr, arc, &err));
      }
      wf_arc stay = {(uint32_t)k, hmm->labels.data[loop].loop_cost, loop, 0},
             leave = {(uint32_t)s, forward, 0, 0};
      if (!epsilons && loop != 0) assert_ok(wf__csr_push(&csr, stay, &err));
      if (epsilons && !arcs) assert_ok(wf__csr_push(&csr, leave, &err));
    }
  }
  assert_ok(wf__fst_from_csr(&csr, view.start, WF_TROPICAL, NULL, NULL, &made, &err));
  assert_ok(wf_connect(made, &trimmed, &err));
  wf_fst_free(made);
  free(class), free(copy), free(state_of), free(loop_of);
  return trimmed;
}

/* Large enough for several threads. Some states are on no path. */
static void test_self_loops_of_large_fsts(void **state) {
  wf_error err = {0};
  test_rng rng = {37};
  wf_hmm *hmm = make_looping_model(&rng);
  for (int round = 0; round < 4; round++) {
    test_fst_shape shape = {.num_states = 100000,
                            .num_arcs = round % 2 == 0 ? 160000 : 400000,
                            .num_ilabels = NUM_LABELS,
                            .num_olabels = 2,
                            .epsilon_share = round < 2 ? 0.05f : 0.3f,
                            .final_share = 0.1f,
                            .max_weight = 3};
    bool equal;
    wf_fst *fst = test_random_fst(&rng, &shape), *looped, *wanted = loops_by_definition(hmm, fst);
    assert_ok(wf__hmm_add_loops(hmm, fst, 1, &looped, &err));
    assert_true(wf_fst_get_view(looped).num_states > 10000);
    assert_ok(wf_equal(looped, wanted, 0, &equal, &err));
    assert_true(equal);
    wf_fst_free(fst);
    wf_fst_free(looped);
    wf_fst_free(wanted);
  }
  wf_hmm_free(hmm);
}

/* --- without epsilons -------------------------------------------------------------------- */

static void test_epsilon_folding(void **state) {
  wf_error err = {0};
  test_rng rng = {41};
  int num_refused = 0;
  for (int round = 0; round < 400; round++) {
    test_fst_shape shape = {.num_states = 6,
                            .num_arcs = 11,
                            .num_ilabels = 3,
                            .num_olabels = 2,
                            .epsilon_share = 0.35f,
                            .final_share = 0.3f,
                            .max_weight = 3,
                            .acyclic = true};
    wf_fst *fst = test_random_fst(&rng, &shape), *made;
    wf_status status = wf__emitting_only(fst, 0, 0, &made, &err);
    test_relation before = test_enumerate(fst, 12, 2000000);
    if (status != WF_OK) { /* refused only if some path has more words than frames */
      bool crowded = false;
      for (size_t i = 0; i < before.size; i++) {
        int labels = 0, words = 0;
        const char *colon = strchr(before.pairs[i].key, ':');
        for (const char *at = before.pairs[i].key; *at != '\0'; at++)
          *(at < colon ? &labels : &words) += *at >= '0' && *at <= '9';
        crowded = crowded || words > (labels > 0);
      }
      assert_int_equal(status, WF_ERR_UNSUPPORTED);
      assert_true(crowded);
      num_refused++;
    } else {
      wf_fst_view view = wf_fst_get_view(made);
      for (uint64_t i = 0; i < view.num_arcs; i++) assert_true(view.arcs[i].ilabel != 0);
      test_relation after = test_enumerate(made, 12, 2000000);
      test_assert_same_relation(&before, &after, 1e-5);
      test_relation_free(&after);
      wf_fst_free(made);
    }
    test_relation_free(&before);
    wf_fst_free(fst);
  }
  assert_true(num_refused < 300);
  wf_fst *cycle = test_fst_of(WF_TROPICAL, "0 1 1 1\n1 2 0 2\n2 1 0 0\n1\n"),
         *made; /* epsilons that write words without end */
  assert_int_equal(wf__emitting_only(cycle, 0, 0, &made, &err), WF_ERR_LIMIT);
  wf_fst_free(cycle);
  cycle = test_fst_of(WF_TROPICAL, "0 1 1 1\n1 2 0 0 -1\n2 1 0 0\n1\n");
  assert_int_equal(wf__emitting_only(cycle, 0, 0, &made, &err), WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(cycle);
  cycle =
      test_fst_of(WF_TROPICAL, "0 1 1 1\n1 2 0 0 1\n2 1 0 0\n2 2 2 2\n1\n"); /* a harmless cycle */
  assert_ok(wf__emitting_only(cycle, 0, 0, &made, &err));
  wf_fst_free(made);
  assert_int_equal(wf__emitting_only(cycle, 1, 0, &made, &err), WF_ERR_LIMIT);
  assert_int_equal(wf__emitting_only(cycle, 0, 2, &made, &err), WF_ERR_LIMIT);
  wf_fst_free(cycle);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_context_of_strings),
      cmocka_unit_test(test_context_of_fsts),
      cmocka_unit_test(test_missing_windows),
      cmocka_unit_test(test_h_against_concatenation),
      cmocka_unit_test(test_bad_types),
      cmocka_unit_test(test_self_loops),
      cmocka_unit_test(test_self_loops_of_large_fsts),
      cmocka_unit_test(test_epsilon_folding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
