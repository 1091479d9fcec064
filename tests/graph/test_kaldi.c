/* test_kaldi.c - Kaldi's model files: errors and their messages, malicious sizes, HMMs with
 * non-emitting states, names and positions of phones. tests/cli/test_kaldi.sh compares graphs and
 * decodings with Kaldi's. */
#include "testing.h"

#include "graph/kaldi_files.h"
#include "graph/kaldi_hmm.h"

#define TOPOLOGY                                                                                   \
  "<Topology> <TopologyEntry> <ForPhones> 1 2 </ForPhones> <State> 0 <PdfClass> 0 <Transition> 0 " \
  "0.5 <Transition> 1 0.5 </State> <State> 1 </State> "                                            \
  "</TopologyEntry> </Topology> "
#define TRIPLES "<Triples> 2 1 0 0 2 0 1 </Triples> "
#define PROBS "<LogProbs> [ 0 -1 -0.5 -2 -0.25 ] </LogProbs> "
#define MODEL(topology, triples, probs) \
  "<TransitionModel> " topology triples probs "</TransitionModel> "
#define TREE(map) "ContextDependency 3 1 ToPdf " map " EndContextDependency "

static wf__input input_of(const void *data, size_t size) {
  wf__input input;
  wf_error err = {0};
  assert_ok(wf__input_from_memory(data, size, "x", &input, &err));
  return input;
}

static wf_status read_hmm(const char *model, const char *tree, const char *phones,
                          const char *boundary, const char *silence, wf_hmm **out, wf_error *err) {
  const char *texts[] = {model, tree, phones, boundary, silence};
  wf__input inputs[5];
  const wf__input *given[5] = {NULL};
  for (int i = 0; i < 5; i++) {
    if (texts[i] == NULL) continue;
    inputs[i] = input_of(texts[i], strlen(texts[i]));
    given[i] = &inputs[i];
  }
  wf__lang_inputs lang = {given[2], given[3], given[4]};
  wf_status status = wf__hmm_read_kaldi_inputs("model", given[0], given[1], &lang, out, err);
  for (int i = 0; i < 5; i++)
    if (given[i] != NULL) wf__input_close(&inputs[i]);
  return status;
}

/* --- rejected files ---------------------------------------------------------------------- */

static void test_rejected_models(void **state) {
  static const struct {
    const char *model, *says;
  } cases[] = {
      {"", "line 1: the file ends too early"},
      {"<Nnet3>", "expected '<TransitionModel>', found '<Nnet3>'"},
      {MODEL("<Topology> </Topology> ", TRIPLES, PROBS), "has no phones"},
      {"<TransitionModel>\n<Topology>\n<TopologyEntry> <ForPhones> 1 x",
       "line 3: expected the number of a phone"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 1 </ForPhones>", "two HMMs"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 2000000000 </ForPhones>",
       "phone 2000000000"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 0 </ForPhones>", "phone 0"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 1",
       "not in order"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 "
       "<PdfClass> 0 <Transition> 0 nan",
       "probability nan"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 "
       "<PdfClass> 70000 </State>",
       "pdf classes 70000"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 "
       "<PdfClass> 0 <Transition> 5 1 </State> <State> 1 </State> </TopologyEntry>",
       "to state 5 of 2"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 "
       "<PdfClass> 0 </State> <State> 1 </State> </TopologyEntry>",
       "has no transitions"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 "
       "<Transition> 0 1 </State> <State> 1 </State> </TopologyEntry>",
       "no pdf class"},
      {"<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 </State> "
       "</TopologyEntry>",
       "has 1 states"},
      {MODEL(TOPOLOGY, "<Triples> 1 3 0 0 </Triples> ", PROBS), "phone 3, which has no HMM"},
      {MODEL(TOPOLOGY, "<Triples> 1 1 1 0 </Triples> ", PROBS), "not an emitting state"},
      {MODEL(TOPOLOGY, "<Triples> 1 1 0 -1 </Triples> ", PROBS), "pdfs -1 and -1"},
      {MODEL(TOPOLOGY, "<Triples> 2 2 0 0 1 0 0 </Triples> ", PROBS),
       "transition-state 2 is not in order"},
      {MODEL(TOPOLOGY, "<Triples> -5 </Triples> ", PROBS), "number of transition-states is -5"},
      {MODEL(TOPOLOGY, TRIPLES, "<LogProbs> [ 0 -1 -0.5 ] </LogProbs> "),
       "3 log probabilities for 4 transition-ids"},
      {MODEL(TOPOLOGY, TRIPLES, "<LogProbs> [ 0 -1 -0.5 0.5 -0.25 ] </LogProbs> "),
       "transition-id 3 has the log probability 0.5"},
      {MODEL(TOPOLOGY, TRIPLES, "<LogProbs> [ 0 -1 -inf -2 -0.25 ] </LogProbs> "),
       "log probability -inf"},
      {"<TransitionModel> " TOPOLOGY TRIPLES PROBS "<Tuples>", "expected '</TransitionModel>'"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf_hmm *hmm;
    wf_error err = {0};
    assert_true(read_hmm(cases[i].model, NULL, NULL, NULL, NULL, &hmm, &err) != WF_OK);
    assert_null(hmm);
    if (strstr(err.message, cases[i].says) == NULL)
      fail_msg("case %zu: '%s' lacks '%s'", i, err.message, cases[i].says);
  }
}

static void test_rejected_trees(void **state) {
  static const struct {
    const char *tree, *says;
  } cases[] = {
      {"ContextDependency 9 1 ToPdf", "9 phones"},
      {"ContextDependency 3 3 ToPdf", "central one at 3"},
      {"ContextDependency 3 1 CE", "expected 'ToPdf'"},
      {TREE("XE 1"), "expected a node"},
      {TREE("CE -1"), "pdf -1"},
      {TREE("SE 3 [ 1 ] { CE 0 CE 1 }"), "key 3 in a window of 3"},
      {TREE("SE -2 [ 1 ] { CE 0 CE 1 }"), "key -2 in a window of 3"},
      {TREE("SE 0 [ 2 1 ] { CE 0 CE 1 }"), "not in ascending order"},
      {TREE("SE 0 [ 1 ] { CE 0 NULL }"), "a split (SE) is NULL"},
      {TREE("SE 0 [ 1 ] { CE 0 CE 1 CE 2 }"), "expected '}', found 'CE'"},
      {TREE("TE 0 2 ( CE 0 )"), "expected a node"},
      {TREE("TE 0 4000000000 ( CE 0 )"), "a table has 4000000000 children"},
      {"ContextDependency 3 1 ToPdf CE 0", "ends too early"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wf__kaldi_tree tree;
    wf_error err = {0};
    wf__input input = input_of(cases[i].tree, strlen(cases[i].tree));
    assert_true(wf__kaldi_tree_read(&input, &tree, &err) != WF_OK);
    if (strstr(err.message, cases[i].says) == NULL)
      fail_msg("case %zu: '%s' lacks '%s'", i, err.message, cases[i].says);
    wf__input_close(&input);
  }
}

/* Nodes nested a million deep: the reader must not recurse. Nested tables that each announce as
 * many children as bytes are left: the reader must not allocate memory for them. */
static void test_malicious_trees(void **state) {
  enum { DEPTH = 1000000 };
  (void)state;
  wf_error err = {0};
  wf__kaldi_tree tree;
  char *text = malloc(64 + DEPTH * 24), *at = text;
  assert_non_null(text);
  at += sprintf(at, "ContextDependency 1 0 ToPdf ");
  for (int i = 0; i < DEPTH; i++) at += sprintf(at, "SE 0 [1]{ CE 1 ");
  at += sprintf(at, "CE 0 ");
  for (int i = 0; i < DEPTH; i++) at += sprintf(at, "} ");
  at += sprintf(at, "EndContextDependency");
  wf__input input = input_of(text, (size_t)(at - text));
  assert_ok(wf__kaldi_tree_read(&input, &tree, &err));
  int32_t one = 1, two = 2;
  assert_int_equal(wf__kaldi_tree_pdf(&tree, &one, 0), 1);
  assert_int_equal(wf__kaldi_tree_pdf(&tree, &two, 0), 0);
  wf__kaldi_tree_free(&tree);
  wf__input_close(&input);
  at = text + sprintf(text, "ContextDependency 1 0 ToPdf ");
  for (int i = 0; i < DEPTH; i++) at += sprintf(at, "TE 0 1000000 ( ");
  input = input_of(text, (size_t)(at - text));
  assert_int_equal(wf__kaldi_tree_read(&input, &tree, &err), WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "a table has 1000000 children"));
  wf__input_close(&input);
  free(text);
}

/* --- what is read ------------------------------------------------------------------------ */

/* Columns, self-loops and costs of the labels. */
static void test_labels_and_costs(void **state) {
  wf_hmm *hmm;
  wf_error err = {0};
  int32_t *columns;
  size_t count;
  (void)state;
  assert_ok(read_hmm(MODEL(TOPOLOGY, "<Tuples> 2 1 0 0 3 2 0 1 2 </Tuples> ", PROBS), NULL, NULL,
                     NULL, NULL, &hmm, &err));
  assert_ok(wf_hmm_columns(hmm, &columns, &count, &err));
  assert_int_equal(count, 5);
  const int32_t expected[] = {-1, 3, 0, 2, 1}; /* the self-loop comes first in this topology */
  assert_memory_equal(columns, expected, sizeof expected);
  assert_int_equal(hmm->num_columns, 4);
  for (int id = 1; id <= 4; id++) assert_int_equal(hmm->labels.data[id].loop, id <= 2 ? 1 : 3);
  assert_true(fabsf(hmm->labels.data[2].loop_cost - 1) < 1e-6f);
  assert_true(fabs(hmm->labels.data[2].forward_cost + log(1 - exp(-1.0))) < 1e-6);
  wf_free(columns);
  wf_hmm_free(hmm);
}

/* 0 -> 1 (non-emitting) -> 2 or the end; 0 -> 2 -> the end. Paths through the HMM and their costs
 * by hand. */
static void test_non_emitting(void **state) {
  static const char model[] =
      "<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 </ForPhones> <State> 0 "
      "<PdfClass> 0 <Transition> 1 0.5 <Transition> 2 0.5 </State> "
      "<State> 1 <Transition> 2 0.25 <Transition> 3 0.75 </State> <State> 2 <PdfClass> 1 "
      "<Transition> 3 1 </State> <State> 3 </State> "
      "</TopologyEntry> </Topology> <Triples> 2 1 0 0 1 2 1 </Triples> <LogProbs> [ 0 -1 -2 -3 ] "
      "</LogProbs> </TransitionModel>";
  wf_hmm *hmm;
  wf_error err = {0};
  wf_fst *h;
  int32_t window[1] = {1}, type;
  (void)state;
  assert_ok(read_hmm(model,
                     "ContextDependency 1 0 ToPdf TE -1 2 ( CE 0 CE 1 ) EndContextDependency", NULL,
                     NULL, NULL, &hmm, &err));
  assert_ok(hmm->methods->find_type(hmm, window, &type, &err));
  assert_int_equal(type, 1);
  assert_ok(wf__hmm_to_fst(hmm, 1, 0, &h, &err));
  double end = 1 - log(0.75), on = 1 - log(0.25);
  char keys[4][16] = {"1 3 : 1 ", "1 : 1 ", "2 3 : 1 ", ": "};
  test_pair pairs[] = {{keys[0], on + 3}, {keys[1], end}, {keys[2], 5}, {keys[3], 0}};
  test_relation expected = {pairs, 4}, paths = test_enumerate(h, 2, 1000);
  test_assert_same_relation(&paths, &expected, 1e-5);
  test_relation_free(&paths);
  wf_fst_free(h);
  wf_hmm_free(hmm);
}

/* --- phones ------------------------------------------------------------------------------ */

static void test_phone_positions(void **state) {
  static const char phones[] =
      "<eps> 0\nSIL 1\nSIL_B 2\nSIL_E 3\nSIL_I 4\nSIL_S 5\nA_B 6\nA_E 7\nA_I 8\nA_S 9\nB_S 10\n#0 "
      "11\n#nonterm:x 12\n#1 13\n";
  static const char boundary[] =
      "SIL nonword\nSIL_B begin\nSIL_E end\nSIL_I internal\nSIL_S singleton\nA_B begin\nA_E "
      "end\nA_I internal\nA_S singleton\nB_S singleton\n";
  wf_hmm *hmm;
  wf_error err = {0};
  (void)state;
  assert_ok(read_hmm(MODEL(TOPOLOGY, TRIPLES, PROBS), NULL, phones, boundary, "SIL\n", &hmm, &err));
  assert_int_equal(hmm->num_phones, 10);
  assert_int_equal(hmm->silence, 1);
  assert_int_equal(hmm->ready_disambig.size, 2);
  assert_int_equal(hmm->ready_disambig.data[0], 11);
  assert_int_equal(hmm->ready_disambig.data[1], 13);
  int64_t a = wf_symbols_find(wf_hmm_phones(hmm), "A");
  assert_int_equal(a, 11);
  const int32_t forms_of_a[WF__NUM_POSITIONS] = {
      [WF__BEGIN] = 6, [WF__INTERNAL] = 8, [WF__END] = 7, [WF__SINGLE] = 9};
  const int32_t forms_of_sil[WF__NUM_POSITIONS] = {
      [WF__BEGIN] = 2, [WF__INTERNAL] = 4, [WF__END] = 3, [WF__SINGLE] = 5};
  assert_memory_equal(hmm->position_of[a], forms_of_a, sizeof forms_of_a);
  assert_memory_equal(hmm->position_of[1], forms_of_sil, sizeof forms_of_sil);
  for (int p = 0; p < WF__NUM_POSITIONS; p++) assert_int_equal(hmm->position_of[6][p], 6);
  assert_int_equal(wf_symbols_find(wf_hmm_phones(hmm), "B"),
                   -1); /* three of its position forms are missing */
  wf_hmm_free(hmm);
  assert_int_equal(
      read_hmm(MODEL(TOPOLOGY, TRIPLES, PROBS), NULL, phones, "A_B start\n", NULL, &hmm, &err),
      WF_ERR_FORMAT);
  assert_non_null(strstr(err.message, "'A_B' is 'start'"));
  assert_int_equal(
      read_hmm(MODEL(TOPOLOGY, TRIPLES, PROBS), NULL, phones, "C_B begin\n", NULL, &hmm, &err),
      WF_ERR_FORMAT);
  assert_int_equal(read_hmm(MODEL(TOPOLOGY, TRIPLES, PROBS), NULL, phones, NULL, "X\n", &hmm, &err),
                   WF_ERR_FORMAT);
  /* without names */
  assert_ok(read_hmm(MODEL(TOPOLOGY, TRIPLES, PROBS), NULL, NULL, NULL, NULL, &hmm, &err));
  assert_int_equal(wf_symbols_find(wf_hmm_phones(hmm), "2"), 2);
  assert_int_equal(hmm->silence, 0);
  wf_hmm_free(hmm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rejected_models), cmocka_unit_test(test_rejected_trees),
      cmocka_unit_test(test_malicious_trees), cmocka_unit_test(test_labels_and_costs),
      cmocka_unit_test(test_non_emitting),    cmocka_unit_test(test_phone_positions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
