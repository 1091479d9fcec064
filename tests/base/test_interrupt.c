/* test_interrupt.c - calls that their caller cancels at different moments. They fail with
 * WF_ERR_CANCELLED, return no result, leave no file and leak no memory (checked under sanitizers).
 * Afterwards the same call works. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/interrupt.h"
#include "decode_tasks.h"
#include "random_scorers.h"

#define CTC WARPFST_SOURCE_DIR "/examples/ctc/"

/* --- the caller -------------------------------------------------------------------------- */

struct caller {
  uint64_t polls, most; /* the first `most` polls return true (continue) */
};

/* Forces a poll at every check point, not only every few hundredths of a second. */
static bool continue_until_limit(void *user) {
  struct caller *caller = user;
  wf__interrupt_poll();
  return caller->polls++ < caller->most;
}

/* --- what it calls ----------------------------------------------------------------------- */

static struct inputs {
  wf_fst *fst, *other, *acceptor, *acyclic, *symbols;
  struct decode_task task;
  wf_scores batch[12];
  float *data[12];
  wf_decoder *decoder, *threads, *scored;
  wf_stream *stream;
  wf_symbols *words;
  wf_scorer *scorer;
  wf_lattice *lattice;
  wf_compact_lattice *compact;
  const char *text, *out;
} in;

/* Returns the status. A result must exist if and only if the call succeeded; it is freed. */
#define ONE(type, free, call)                       \
  do {                                              \
    type *out = NULL;                               \
    const wf_status status = (call);                \
    assert_int_equal(out != NULL, status == WF_OK); \
    free(out);                                      \
    return status;                                  \
  } while (0)
#define WORK(name) static wf_status name(wf_error *err)

WORK(compose) { ONE(wf_fst, wf_fst_free, wf_compose(in.fst, in.other, NULL, &out, err)); }
WORK(compose_threads) {
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.num_threads = 3;
  ONE(wf_fst, wf_fst_free, wf_compose(in.fst, in.other, &o, &out, err));
}
WORK(compose_batch) {
  wf_fst *out[9];
  wf_compose_options o;
  const wf_fst *many[9];
  wf_compose_options_init(&o);
  o.num_threads = 3;
  for (int i = 0; i < 9; i++) many[i] = in.other;
  const wf_status status =
      test_compose_batch((const wf_fst *const *)&in.fst, 1, many, 9, 9, &o, out, err);
  for (int i = 0; i < 9; i++) {
    assert_int_equal(out[i] != NULL, status == WF_OK);
    wf_fst_free(out[i]);
  }
  return status;
}
WORK(determinize) { ONE(wf_fst, wf_fst_free, wf_determinize(in.acyclic, NULL, &out, err)); }
WORK(minimize) {
  wf_minimize_options o;
  wf_minimize_options_init(&o);
  o.allow_nondet = true;
  ONE(wf_fst, wf_fst_free, wf_minimize(in.acceptor, &o, &out, err));
}
WORK(rmepsilon) { ONE(wf_fst, wf_fst_free, wf_rmepsilon(in.fst, NULL, &out, err)); }
WORK(push) { ONE(wf_fst, wf_fst_free, wf_push(in.fst, NULL, &out, err)); }
WORK(arcsort) { ONE(wf_fst, wf_fst_free, wf_arcsort(in.fst, NULL, &out, err)); }
WORK(shortest_distance) { ONE(float, wf_free, wf_shortest_distance(in.fst, NULL, &out, err)); }
WORK(shortest_path) {
  wf_shortest_path_options o;
  wf_shortest_path_options_init(&o);
  o.nshortest = 5;
  ONE(wf_fst, wf_fst_free, wf_shortest_path(in.fst, &o, &out, err));
}
WORK(reverse) { ONE(wf_fst, wf_fst_free, wf_reverse(in.fst, &out, err)); }
WORK(randgen) {
  wf_randgen_options o;
  wf_randgen_options_init(&o);
  o.npath = 20;
  ONE(wf_fst, wf_fst_free, wf_randgen(in.fst, &o, &out, err));
}
WORK(equivalent) {
  bool equal;
  return wf_equivalent(in.symbols, in.symbols, 0, &equal, err);
}
WORK(graph) { ONE(wf_graph, wf_graph_free, wf_graph_create(in.fst, NULL, 0, &out, err)); }
WORK(write_fst) { return wf_fst_write(in.fst, in.out, WF_FORMAT_NATIVE, err); }

static wf_status decode_with(wf_decoder *decoder, wf_error *err) {
  wf_result *results[12];
  const wf_status status = test_decode(decoder, in.batch, 12, NULL, results, err);
  for (int i = 0; i < 12; i++) {
    assert_int_equal(results[i] != NULL, status == WF_OK);
    wf_result_free(results[i]);
  }
  return status;
}
WORK(decode) { return decode_with(in.decoder, err); }
WORK(decode_threads) { return decode_with(in.threads, err); }
WORK(decode_scored) { return decode_with(in.scored, err); }

/* After a cancelled chunk, a stream returns the error until it is reset. */
WORK(stream) {
  wf_partial partial;
  assert_int_equal(wf_stream_reset(in.stream, err), WF_OK);
  const wf_status status = wf_stream_advance(in.stream, &in.task.scores, NULL, err);
  if (status != WF_OK) assert_int_equal(wf_stream_partial(in.stream, &partial, NULL), status);
  return status;
}
WORK(lattice) {
  wf_determinized out;
  const wf_status status = wf_lattice_determinize(in.lattice, NULL, NULL, &out, err);
  wf_compact_lattice_free(out.lattice);
  return status;
}
WORK(lattices) {
  const wf_lattice *many[9];
  wf_determinized out[9];
  wf_lattice_determinize_options o;
  wf_lattice_determinize_options_init(&o);
  o.num_threads = 3;
  for (int i = 0; i < 9; i++) many[i] = in.lattice;
  const wf_status status = wf_lattices_determinize(many, 9, NULL, &o, out, err);
  for (int i = 0; i < 9; i++) {
    if (status == WF_OK) assert_int_equal(out[i].status, WF_OK);
    wf_compact_lattice_free(out[i].lattice);
  }
  return status;
}
WORK(mbr) {
  ONE(wf_mbr_result, wf_mbr_result_free,
      wf_compact_lattice_mbr(in.compact, NULL, 0, NULL, &out, err));
}
WORK(score_words) {
  ONE(wf_compact_lattice, wf_compact_lattice_free,
      wf_compact_lattice_score(in.compact, in.scorer, 1000, &out, err));
}

WORK(models) {
  wf_lm *lm = NULL, *pruned = NULL;
  wf_lm_prune_options o;
  wf_lm_prune_options_init(&o);
  o.threshold = 1e-6f;
  wf_status status = wf_lm_open(CTC "lm3.arpa.gz", NULL, NULL, &lm, NULL, NULL, err);
  if (status == WF_OK) status = wf_lm_prune(lm, NULL, &o, &pruned, NULL, NULL, err);
  if (status == WF_OK) status = wf_lm_write_arpa(pruned, in.out, err);
  wf_lm_free(lm);
  wf_lm_free(pruned);
  return status;
}
WORK(estimate_and_mix) {
  static const char *const text = CTC "text";
  wf_lm *lm = NULL, *mixed = NULL;
  double weights[2];
  wf_lm_estimate_options o;
  wf_lm_estimate_options_init(&o);
  o.ids = true;
  wf_status status = wf_lm_estimate(&text, 1, NULL, &o, &lm, NULL, NULL, err);
  const wf_lm *const lms[] = {lm, lm};
  if (status == WF_OK) status = wf_lm_mix_weights(lms, 2, text, NULL, weights, NULL, NULL, err);
  if (status == WF_OK) status = wf_lm_mix(lms, 2, weights, NULL, &mixed, NULL, NULL, err);
  assert_int_equal(mixed != NULL, status == WF_OK);
  wf_lm_free(lm);
  wf_lm_free(mixed);
  return status;
}
WORK(large_model) {
  return wf_lm_convert(CTC "lm3.arpa.gz", in.out, NULL, NULL, NULL, NULL, NULL, err);
}
WORK(train) {
  wf_rnnlm_train_options o;
  wf_rnnlm_train_options_init(&o);
  o.hidden = 4;
  o.max_epochs = 2;
  o.num_threads = 2;
  ONE(wf_rnnlm, wf_rnnlm_free, wf_rnnlm_train(in.text, in.text, &o, NULL, NULL, &out, NULL, err));
}
WORK(ctc_graph) {
  wf_symbols *tokens = NULL, *words = NULL;
  wf_lexicon *lexicon = NULL;
  wf_lm *lm = NULL;
  wf_graph_inputs parts;
  wf_graph_result result = {0};
  wf_graph_inputs_init(&parts);
  wf_status status = wf_symbols_read(CTC "tokens_phone.txt", &tokens, err);
  if (status == WF_OK)
    status = wf_lexicon_read(CTC "lexicon_phone.txt", tokens, NULL, &lexicon, err);
  if (status == WF_OK) status = wf_lexicon_words(lexicon, &words, err);
  if (status == WF_OK) status = wf_lm_open(CTC "lm3.arpa.gz", words, NULL, &lm, NULL, NULL, err);
  parts.lexicon = lexicon;
  parts.lm = lm;
  if (status == WF_OK) status = wf_graph_build(&parts, NULL, &result, err);
  wf_graph_result_clear(&result);
  wf_lm_free(lm);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
  wf_symbols_free(tokens);
  return status;
}

#define WORKS(X)       \
  X(compose)           \
  X(compose_threads)   \
  X(compose_batch)     \
  X(determinize)       \
  X(minimize)          \
  X(rmepsilon)         \
  X(push)              \
  X(arcsort)           \
  X(shortest_distance) \
  X(shortest_path)     \
  X(reverse)           \
  X(randgen)           \
  X(equivalent)        \
  X(graph)             \
  X(write_fst)         \
  X(decode)            \
  X(decode_threads)    \
  X(decode_scored)     \
  X(stream)            \
  X(lattice)           \
  X(lattices)          \
  X(mbr)               \
  X(score_words)       \
  X(models)            \
  X(estimate_and_mix)  \
  X(large_model)       \
  X(train)             \
  X(ctc_graph)
static const struct {
  const char *name;
  wf_status (*run)(wf_error *err);
} works[] = {
#define ROW(name) {#name, name},
    WORKS(ROW)
#undef ROW
};

/* --- tests ------------------------------------------------------------------------------- */

static wf_decoder *decoder_of(int num_threads, const wf_scorer *scorer) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_decoder_options options = in.task.options;
  options.num_threads = num_threads;
  options.lattice_beam = scorer == NULL ? 3 : 0;
  assert_ok(wf_decoder_create(in.task.graph, &options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  return decoder;
}

static void make_lattices(void) {
  wf_error err = {0};
  wf_result *result;
  wf_determinized made;
  assert_ok(test_decode(in.decoder, &in.task.scores, 1, NULL, &result, &err));
  assert_ok((wf_status)result->status);
  in.lattice = wf_lattice_ref(result->lattice);
  wf_result_free(result);
  assert_ok(wf_lattice_determinize(in.lattice, NULL, NULL, &made, &err));
  in.compact = made.lattice;
}

static int set_up(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {3};
  test_fst_shape shape = {.num_states = 40,
                          .num_arcs = 200,
                          .num_ilabels = 4,
                          .num_olabels = 4,
                          .epsilon_share = 0.3f,
                          .final_share = 0.3f,
                          .max_weight = 2};
  in.fst = test_random_fst(&rng, &shape);
  in.other = test_random_fst(&rng, &shape);
  shape.epsilon_share = 0;
  shape.acceptor = true;
  in.acceptor = test_random_fst(&rng, &shape);
  shape.acyclic = true;
  in.acyclic = test_random_fst(&rng, &shape);
  assert_ok(wf_determinize(in.acyclic, NULL, &in.symbols, &err));
  in.words = random_scorer_words();
  in.scorer = random_scorer(&rng, in.words);
  uint64_t seed = 1;
  for (in.task = test_random_task(seed);
       in.task.scores.num_frames < 8 || in.task.options.max_tokens < 28000 ||
       in.task.options.beam < 2;
       in.task = test_random_task(++seed))
    test_free_task(&in.task);
  test_random_batch(&in.task, in.batch, in.data, 12, 5, 30);
  in.decoder = decoder_of(1, NULL);
  in.threads = decoder_of(3, NULL);
  in.scored = decoder_of(2, in.scorer);
  assert_ok(wf_stream_create(in.decoder, NULL, &in.stream, &err));
  make_lattices();
  const char text[] = "a b c d\nb c\n a d\n";
  in.text = strdup(test_write_file("text", text, sizeof text - 1));
  in.out = strdup(test_temp_path("interrupted"));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  wf_fst *fsts[] = {in.fst, in.other, in.acceptor, in.acyclic, in.symbols};
  wf_decoder *decoders[] = {in.decoder, in.threads, in.scored};
  for (int i = 0; i < 5; i++) wf_fst_free(fsts[i]);
  for (int i = 0; i < 3; i++) wf_decoder_free(decoders[i]);
  for (int i = 0; i < 12; i++) free(in.data[i]);
  wf_stream_free(in.stream);
  test_free_task(&in.task);
  wf_symbols_free(in.words);
  wf_scorer_free(in.scorer);
  wf_lattice_free(in.lattice);
  wf_compact_lattice_free(in.compact);
  free((void *)(uintptr_t)in.text);
  free((void *)(uintptr_t)in.out);
  return 0;
}

/* Counts the files in the folder of the output whose names begin with its name. */
static int count_files(void) {
  char folder[512];
  snprintf(folder, sizeof folder, "%s", in.out);
  char *slash = strrchr(folder, '/');
  *slash = '\0';
  DIR *dir = opendir(folder);
  int count = 0;
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
    count += strncmp(entry->d_name, slash + 1, strlen(slash + 1)) == 0;
  closedir(dir);
  return count;
}

/* Cancels at each of the first polls, then at polls further and further apart. */
static void test_cancel_at_many_polls(void **state) {
  (void)state;
  for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
    wf_error err = {0};
    assert_ok(works[w].run(&err));
    remove(in.out);
    wf_status status = WF_ERR_CANCELLED;
    int times = 0;
    for (uint64_t most = 0; status != WF_OK; most += 1 + most / 3) {
      struct caller caller = {0, most};
      wf_set_interrupt(continue_until_limit, &caller);
      status = works[w].run(&err);
      wf_set_interrupt(NULL, NULL);
      if (status == WF_OK) break;
      times++;
      if (status != WF_ERR_CANCELLED || err.code != WF_ERR_CANCELLED ||
          strstr(err.message, "cancelled") == NULL)
        fail_msg("%s: %s", works[w].name, err.message);
      assert_true(caller.polls > most);
      assert_int_equal(count_files(), 0);
    }
    if (times == 0) fail_msg("%s never polls", works[w].name);
    remove(in.out);
    assert_ok(works[w].run(&err));
    remove(in.out);
  }
}

/* The interrupt callback is a setting of the calling thread. Threads of a pool use the callback of
 * the thread that called. */
static bool never_cancel(void *user) {
  atomic_fetch_add((atomic_int *)user, 1);
  return true;
}

static void *call_from_thread(void *status) {
  wf_error err = {0};
  *(wf_status *)status = compose(&err);
  return NULL;
}

static void test_callback_belongs_to_a_thread(void **state) {
  (void)state;
  wf_error err = {0};
  atomic_int asked = 0;
  pthread_t thread;
  wf_status status = WF_ERR_STATE;
  struct caller caller = {0, 0};
  wf_set_interrupt(continue_until_limit, &caller);
  assert_int_equal(pthread_create(&thread, NULL, call_from_thread, &status), 0);
  pthread_join(thread, NULL);
  assert_int_equal(status, WF_OK);
  assert_int_equal(caller.polls, 0);
  wf_set_interrupt(never_cancel, &asked);
  assert_ok(decode_threads(&err));
  assert_true(asked > 0);
  wf_set_interrupt(NULL, NULL);
  asked = 0;
  assert_ok(decode_threads(&err));
  assert_int_equal(asked, 0);
}

/* A cancelled call does not cancel the next ones, whose workers may start before the caller's
 * function is asked again. */
static bool unless_told(void *user) {
  const struct timespec pause = {0, 5000000}; /* time for the workers to see the old answer */
  nanosleep(&pause, NULL);
  return !*(const bool *)user;
}

static void test_later_calls_run(void **state) {
  (void)state;
  wf_error err = {0};
  for (int round = 0; round < 20; round++) {
    bool told = true;
    wf_set_interrupt(unless_told, &told);
    assert_int_equal(decode_threads(&err), WF_ERR_CANCELLED);
    told = false;
    for (int call = 0; call < 3; call++) assert_ok(decode_threads(&err));
    wf_set_interrupt(NULL, NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cancel_at_many_polls),
                                     cmocka_unit_test(test_callback_belongs_to_a_thread),
                                     cmocka_unit_test(test_later_calls_run)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
