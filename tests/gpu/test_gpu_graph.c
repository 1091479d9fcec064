/* test_gpu_graph.c - graphs built on the GPU against those of the CPU: the same bytes, for random
 * lexicons, grammars, models and options. Exits with 77 (skipped) if there is no GPU. Also compiled
 * for the imitated GPU of tests/simt/, where CUDA calls can be made to fail. */
#include "graph_tasks.h"

#include "cuda/fstops/device_ops.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

/* --- steps that the CPU has done --------------------------------------------------------- */

struct log {
  uint64_t lines;      /* steps done on the CPU */
  uint64_t unexpected; /* those that the GPU should have done */
  bool is_ambiguous;   /* determinization may have to choose between words */
};

static void listen(void *user, wf_log_level level, const char *message) {
  struct log *log = user;
  if (level < WF_LOG_INFO || strstr(message, "on the CPU") == NULL) return;
  log->lines++;
  bool expected =
      strstr(message, "no GPU does that") != NULL || strstr(message, "failure arcs") != NULL ||
      (log->is_ambiguous &&
       (strstr(message, "only the CPU") != NULL || strstr(message, "not functional") != NULL));
  log->unexpected += !expected;
  if (!expected) print_message("%s\n", message);
}

static void test_small_ctc(void **state) {
  (void)state;
  struct log log = {.lines = 0};
  uint64_t built = 0;
  wf_set_log(listen, &log);
  for (uint64_t seed = 1; seed <= test_seeds(60); seed++) {
    test_rng rng = {seed};
    char what[64];
    wf_error err[2] = {{0}, {0}};
    wf_fst *graph[2];
    struct ctc_task task;
    random_ctc_task(&rng, seed, &task);
    snprintf(what, sizeof what, "CTC, seed %llu", (unsigned long long)seed);
    const bool keep = seed % 3 == 0;
    wf_status want = build_ctc(&task, "cpu", keep, &graph[0], &err[0]),
              got = build_ctc(&task, "cuda", keep, &graph[1], &err[1]);
    if (want != got || strcmp(err[0].message, err[1].message) != 0)
      fail_msg("%s: '%s'; on the CPU: '%s'", what, err[1].message, err[0].message);
    if (want == WF_OK) assert_same_bytes(graph[1], graph[0], what);
    if (want == WF_OK) check_kept(&rng, graph, keep, what);
    built += want == WF_OK;
    for (int k = 0; k < 2; k++) wf_fst_free(graph[k]);
    free_ctc_task(&task);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(log.unexpected, 0);
  assert_true(built >= test_seeds(60) / 2);
}

/* Builds the task on both devices. Returns whether there is a graph. */
static bool check_hmm(test_rng *rng, const struct hmm_task *task, struct log *log, bool copy_steps,
                      const char *what) {
  wf_error err[2] = {{0}, {0}};
  wf_fst *graph[2];
  uint64_t steps[2][2] = {{0}};
  const bool keep = test_below(rng, 2) != 0;
  wf_status want = build_hmm(task, NULL, steps[0], false, keep, &graph[0], &err[0]);
  log->is_ambiguous = task->world.options.ambiguous != 0 || want == WF_ERR_NOT_DETERMINIZABLE;
  wf_status got = build_hmm(task, "cuda:0", steps[1], copy_steps, keep, &graph[1], &err[1]);
  if (want != got || strcmp(err[0].message, err[1].message) != 0)
    fail_msg("%s: '%s'; on the CPU: '%s'", what, err[1].message, err[0].message);
  if (want == WF_OK) assert_same_bytes(graph[1], graph[0], what);
  if (want == WF_OK) check_kept(rng, graph, keep, what);
  assert_int_equal(steps[0][0], steps[1][0]);
  assert_true(steps[0][1] == 0 && (steps[1][1] != 0) == (!copy_steps && steps[0][0] > 2));
  for (int k = 0; k < 2; k++) wf_fst_free(graph[k]);
  return want == WF_OK;
}

static void check_tasks(void (*random_task)(test_rng *, uint64_t, struct hmm_task *),
                        const char *name) {
  struct log log = {.lines = 0};
  uint64_t built = 0;
  wf_set_log(listen, &log);
  for (uint64_t seed = 1; seed <= test_seeds(60); seed++) {
    test_rng rng = {seed};
    char what[64];
    struct hmm_task task;
    random_task(&rng, seed, &task);
    snprintf(what, sizeof what, "%s, seed %llu", name, (unsigned long long)seed);
    built += check_hmm(&rng, &task, &log, seed % 2 == 0, what);
    free_hmm_task(&task);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(log.unexpected, 0);
  assert_true(built >= test_seeds(60) / 4);
}

static void test_small_sphinx(void **state) {
  (void)state;
  check_tasks(random_sphinx_task, "Sphinx");
}

static void test_small_kaldi(void **state) {
  (void)state;
  check_tasks(random_kaldi_task, "Kaldi");
}

#ifdef SIMT
/* Without unified memory the graph is in host memory. */
static void test_small_no_unified_memory(void **state) {
  (void)state;
  test_rng rng = {5};
  wf_error err = {0};
  struct ctc_task task;
  wf_fst *graphs[2] = {NULL, NULL};
  for (;;) {
    random_ctc_task(&rng, 2, &task);
    if (build_ctc(&task, "cpu", false, &graphs[0], &err) == WF_OK) break;
    free_ctc_task(&task);
  }
  fake_gpus.no_unified_memory = true;
  assert_ok(build_ctc(&task, "cuda", true, &graphs[1], &err));
  fake_gpus.no_unified_memory = false;
  assert_same_bytes(graphs[1], graphs[0], "no unified memory");
  check_kept(&rng, graphs, false, "no unified memory");
  for (int k = 0; k < 2; k++) wf_fst_free(graphs[k]);
  free_ctc_task(&task);
}
static void keep_last(void *user, wf_log_level level, const char *message) {
  if (level >= WF_LOG_WARNING) snprintf(user, 256, "%s", message);
}

/* A decoding graph of an fst on a GPU that has no room left is made by the CPU, and the log says
 * so. */
static void test_small_no_room(void **state) {
  (void)state;
  test_rng rng = {6};
  wf_error err = {0};
  struct ctc_task task;
  wf_fst *fst;
  wf_graph *graph;
  char last[256] = "";
  for (;;) {
    random_ctc_task(&rng, 2, &task);
    if (build_ctc(&task, "cuda", true, &fst, &err) == WF_OK) break;
    free_ctc_task(&task);
  }
  const size_t memory_bytes = fake_gpus.memory_bytes;
  wf_set_log(keep_last, last);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_string_equal(last, "");
  wf_graph_free(graph);
  fake_gpus.memory_bytes = fake_gpus.device_bytes + 1;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  fake_gpus.memory_bytes = memory_bytes;
  wf_set_log(NULL, NULL);
  assert_non_null(strstr(last,
                         "decoding graph: on the CPU: GPU cuda:0: no room for a decoding "
                         "graph: "));
  assert_non_null(strstr(last, " bytes are needed, 1 are left"));
  wf_graph_free(graph);
  wf_fst_free(fst);
  free_ctc_task(&task);
}
#endif

static void test_small_refusals(void **state) {
  (void)state;
  static const char *const devices[] = {"cuda:x", "cuda:0,0", "gpu", "cuda:99"};
  test_rng rng = {3};
  struct ctc_task task;
  wf_fst *graph;
  random_ctc_task(&rng, 1, &task);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    wf_error err = {0};
    wf_status status = build_ctc(&task, devices[i], false, &graph, &err);
    assert_true(status == WF_ERR_ARGUMENT || status == WF_ERR_DEVICE);
    assert_non_null(strstr(err.message, i == 3 ? "99" : devices[i]));
    assert_null(graph);
  }
  free_ctc_task(&task);
}

#ifdef SIMT
/* The inputs of test_small_failures and the results of the CPU. */
struct failing {
  struct ctc_task ctc;
  wf_hmm *hmm;
  wf__loop_table table;
  wf_fst *grammar; /* its labels are taken as phones, and as labels of HMM states */
  wf_fst *want, *expanded, *looped; /* the CTC graph; the grammar in context, and with self-loops */
};

static wf_status build_failing_ctc(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_fst *got;
  wf_status status = build_ctc(&f->ctc, "cuda", true, &got, err);
  wf_graph *graph = NULL;
  if (status == WF_OK) status = wf_graph_create(got, NULL, 0, &graph, err);
  if (status == WF_OK) assert_same_bytes(got, f->want, "CTC");
  wf_graph_free(graph);
  wf_fst_free(got);
  return status;
}

static wf_status compare(const wf__gpu_batch *batch, const wf_fst *want, wf_error *err) {
  wf__csr csr = {0};
  int64_t start;
  wf_fst *got = NULL;
  wf_status status = wf__gpu_batch_get(batch, 0, &csr, &start, err);
  if (status == WF_OK) status = wf__fst_from_csr(&csr, start, WF_TROPICAL, NULL, NULL, &got, err);
  if (status == WF_OK) assert_same_bytes(got, want, "a step");
  wf__csr_free(&csr);
  wf_fst_free(got);
  return status;
}

/* Replaces the batch by the result of a step. */
static void replace(wf__gpu_batch **batch, wf__gpu_batch *made) {
  wf__gpu_batch_free(*batch);
  *batch = made;
}

static wf_status do_failing_steps(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_tally dropped = {0};
  wf__gpu_batch *batch = NULL, *made;
  wf_status status =
      wf__gpu_batch_create((const wf_fst *const *)&f->grammar, 1, WF_TROPICAL, "cuda", &batch, err);
  if (status == WF_OK)
    status =
        wf__hmm_expand_on_gpu(f->hmm, batch, 0, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &made, err);
  if (status == WF_OK) {
    status = compare(made, f->expanded, err);
    wf__gpu_batch_free(made);
  }
  if (status == WF_OK) status = wf__gpu_batch_by_discovery(batch, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = wf__gpu_batch_clear_labels(batch, 3, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = wf__gpu_batch_add_loops(batch, &f->table, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = wf__gpu_batch_epsilons_last(batch, &made, err);
  if (status == WF_OK) replace(&batch, made);
  if (status == WF_OK) status = compare(batch, f->looped, err);
  wf__gpu_batch_free(batch);
  wf__tally_free(&dropped);
  wf__tally_free(&f->hmm->substituted);
  return status;
}

/* The steps of do_failing_steps on the CPU, from a grammar whose states are in order of discovery.
 */
static void do_steps(struct failing *f) {
  static const int32_t last_word = 3;
  wf_error err = {0};
  wf_tally dropped = {0};
  wf_fst *cleared, *looped;
  assert_ok(wf__hmm_expand(f->hmm, f->grammar, 0, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped,
                           &f->expanded, &err));
  assert_ok(wf__hmm_loop_table(f->hmm, 0.5f, &f->table, &err));
  assert_ok(wf_remove_disambig(f->grammar, &last_word, 1, &cleared, &err));
  assert_ok(wf__hmm_add_loops(f->hmm, cleared, 0.5f, &looped, &err));
  assert_ok(wf_epsilons_last(looped, &f->looped, &err));
  wf_fst_free(cleared);
  wf_fst_free(looped);
  wf__tally_free(&dropped);
}

/* In a pipeline, a call that fails for lack of memory leaves the step to the CPU; the graph is the
 * same. */
static void test_small_failures(void **state) {
  (void)state;
  wf_error err = {0};
  struct world world;
  struct failing f;
  test_rng rng = {7};
  random_world(&rng, &world, 0);
  f.hmm = model_of(&world, false, false);
  f.grammar = test_fst_of(
      WF_TROPICAL,
      "0 1 1 4 1;0 2 2 5 0.5;1 2 1 4 1;1 3 2 4 2;1 0 2 0 1;2 3 3 5 0.25;2 2 1 1 1;3 1 1 1 "
      "2;3 0.5");
  do_steps(&f);
  fail_each_call("steps", do_failing_steps, &f, 200);
  for (uint64_t seed = 1, done = 0; !done; seed += 2) {
    rng = (test_rng){seed};
    random_ctc_task(&rng, seed, &f.ctc);
    done = build_ctc(&f.ctc, "cpu", false, &f.want, &err) == WF_OK;
    if (!done) free_ctc_task(&f.ctc);
  }
  fail_each_call("CTC graph", build_failing_ctc, &f, 200);
  wf_fst_free(f.want);
  wf_fst_free(f.expanded);
  wf_fst_free(f.looped);
  wf_fst_free(f.grammar);
  wf__hmm_loop_table_free(&f.table);
  wf_hmm_free(f.hmm);
  free_ctc_task(&f.ctc);
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_ctc),      cmocka_unit_test(test_small_sphinx),
      cmocka_unit_test(test_small_kaldi),
#ifdef SIMT
      cmocka_unit_test(test_small_failures), cmocka_unit_test(test_small_no_unified_memory),
      cmocka_unit_test(test_small_no_room),
#endif
      cmocka_unit_test(test_small_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
