/* test_faults.c - fault injection on the imitated GPU. In each job, every CUDA call fails once, and
 * the device is lost from every call on. The library must then return the right error code with a
 * message that names what failed, return no partial result, and leak nothing. Later work with the
 * same objects must be right, or must return an error. */
#include <unistd.h>

#include "compose_oracle.h"
#include "failing_calls.h"
#include "random_fsts.h"
#include "random_words.h"
#include "rnn_chains.h"
#include "sparse_pair.h"

enum {
  BATCH = 3,
  FRAMES = 4,
  FSTS = 2,
  SECONDS = 60
}; /* a job that takes longer is taken to hang */

/* A job: `open` creates objects, `work` may be called repeatedly with them. Both assert that a
 * failed call returned no object, and that results are right. */
struct job {
  const char *name;
  wf_status (*open)(const struct job *job, wf_error *err);
  wf_status (*work)(const struct job *job, wf_error *err);
  void (*close)(void);
  int which;
};

/* The objects of the open job. */
static struct {
  wf_decoder *decoder;
  wf_stream *streams[2];
  wf_fst_batch *batch;
  wf_composer *composer;
  wf_rnnlm *rnnlm;
} now;

static wf_error setup_err;

/* --- decoding ---------------------------------------------------------------------------- */

enum { PLAIN, SCORED, LATTICES, WORDS, NUM_DECODINGS };

static struct {
  struct added_task task;
  wf_symbols *words;
  wf_scorer *scorers[2];
  wf_scores batch[BATCH];
  float *data[BATCH];
  wf_result *want[NUM_DECODINGS][BATCH],
      *whole[2]; /* want: the CPU's results for each kind of batch */
} d;

static const wf_scorer *scorer_of(int which, size_t i) {
  return which == SCORED && i > 0 ? d.scorers[i - 1] : NULL;
}
static const wf_graph *graph_of(int which, size_t i) {
  return which == WORDS && i > 0 ? d.task.with : NULL;
}

static wf_decoder_options options_of(int which, const char *device) {
  wf_decoder_options o = d.task.task.options;
  o.device = device;
  o.num_threads = 1;
  o.beam = 6;
  o.max_active = o.max_tokens = 200; /* little memory, since every attempt allocates it */
  o.blank = -1;
  o.blank_skip_threshold = 1;
  o.lattice_beam = which == LATTICES ? 3 : 0;
  return o;
}

static wf_status decode(wf_decoder *decoder, int which, wf_result **out, wf_error *err) {
  const wf_scorer *scorers[BATCH];
  const wf_graph *graphs[BATCH];
  for (size_t i = 0; i < BATCH; i++) {
    scorers[i] = scorer_of(which, i);
    graphs[i] = graph_of(which, i);
  }
  return test_decode_each(decoder, d.batch, scorers, graphs, BATCH, NULL, out, err);
}

static void make_decoding(void) {
  test_rng rng = {5};
  uint64_t seed = 1;
  while (!is_fitting(seed, &d.task)) free_added(&d.task), seed++;
  d.words = random_scorer_words();
  d.scorers[0] = random_ngram(&rng, d.words, true);
  d.scorers[1] = random_phrase_boost(&rng);
  test_random_batch(&d.task.task, d.batch, d.data, BATCH, 3, FRAMES + 1);
  for (int i = 0; i < BATCH; i++) {
    free(d.data[i]);
    d.data[i] = malloc(FRAMES * (size_t)d.batch[i].stride * sizeof *d.data[i]);
    for (int64_t k = 0; k < FRAMES * d.batch[i].stride; k++) d.data[i][k] = -4 * test_unit(&rng);
    d.batch[i].data = d.data[i];
    d.batch[i].num_frames = FRAMES;
  }
  for (int which = 0; which < NUM_DECODINGS; which++) {
    wf_decoder_options o = options_of(which, "cpu");
    wf_decoder *decoder;
    assert_int_equal(wf_decoder_create(d.task.task.graph, &o, &decoder, &setup_err), WF_OK);
    assert_int_equal(decode(decoder, which, d.want[which], &setup_err), WF_OK);
    wf_decoder_free(decoder);
  }
  d.whole[0] = d.want[PLAIN][0];
  d.whole[1] = d.want[SCORED][1];
}

static void free_decoding(void) {
  for (int which = 0; which < NUM_DECODINGS; which++) test_free_results(d.want[which], BATCH);
  for (int i = 0; i < BATCH; i++) free(d.data[i]);
  for (int i = 0; i < 2; i++) wf_scorer_free(d.scorers[i]);
  wf_symbols_free(d.words);
  free_added(&d.task);
}

static wf_status open_decoder(const struct job *job, wf_error *err) {
  wf_decoder_options o = options_of(job->which, "cuda");
  const wf_status status = wf_decoder_create(d.task.task.graph, &o, &now.decoder, err);
  assert_int_equal(status != WF_OK, now.decoder == NULL);
  return status;
}

/* The failure may concern one utterance only. Returns its status, with its message in err. */
static wf_status own_status(const wf_result *result, wf_error *err) {
  if (result->status == WF_ERR_DEVICE || result->status == WF_ERR_MEMORY)
    snprintf(err->message, sizeof err->message, "%s", result->message);
  return result->status;
}

static wf_status work_batch(const struct job *job, wf_error *err) {
  wf_result *got[BATCH];
  wf_status status = decode(now.decoder, job->which, got, err);
  for (size_t i = 0; i < BATCH && status != WF_OK; i++) assert_null(got[i]);
  if (status != WF_OK) return status;
  for (size_t i = 0; i < BATCH && status == WF_OK; i++) status = own_status(got[i], err);
  if (status == WF_OK) test_assert_same_batch((uint64_t)job->which, d.want[job->which], got, BATCH);
  test_free_results(got, BATCH);
  return status;
}

static void close_all(void) {
  for (int i = 0; i < 2; i++) wf_stream_free(now.streams[i]);
  wf_decoder_free(now.decoder);
  wf_fst_batch_free(now.batch);
  wf_composer_free(now.composer);
  wf_rnnlm_free(now.rnnlm);
  memset(&now, 0, sizeof now);
}

static wf_status open_streams(const struct job *job, wf_error *err) {
  wf_status status = open_decoder(job, err);
  for (int i = 0; i < 2 && status == WF_OK; i++) {
    status = wf_stream_create(now.decoder, NULL, &now.streams[i], err);
    assert_int_equal(status != WF_OK, now.streams[i] == NULL);
  }
  return status;
}

/* Decodes an utterance in each stream: reset, chunks of both streams together, a partial result,
 * then the final results. */
static wf_status work_streams(const struct job *job, wf_error *err) {
  wf_result *results[2] = {NULL, NULL};
  wf_partial partial;
  wf_lattice *lattice = NULL;
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && status == WF_OK; i++) status = wf_stream_reset(now.streams[i], err);
  if (status == WF_OK)
    status = wf_stream_set_scorer(now.streams[1], job->which == SCORED ? d.scorers[0] : NULL, err);
  for (int64_t fed = 0; fed < FRAMES && status == WF_OK; fed += 2) {
    const wf_scores chunks[2] = {test_rows(&d.batch[0], fed, 2), test_rows(&d.batch[1], fed, 2)};
    wf_stream_event events[2];
    status = wf_streams_advance(now.decoder, now.streams, chunks, 2, events, err);
  }
  if (status == WF_OK) status = wf_stream_partial(now.streams[0], &partial, err);
  if (status == WF_OK && job->which == LATTICES)
    status = wf_stream_partial_lattice(now.streams[0], &lattice, err);
  wf_lattice_free(lattice);
  for (int i = 0; i < 2 && status == WF_OK; i++) {
    status = wf_stream_finish(now.streams[i], &results[i], err);
    assert_int_equal(status != WF_OK, results[i] == NULL);
    if (status == WF_OK) status = own_status(results[i], err);
  }
  for (int i = 0; i < 2; i++) {
    if (status == WF_OK)
      test_assert_same_batch((uint64_t)i, &d.want[job->which][i], &results[i], 1);
    wf_result_free(results[i]);
  }
  return status;
}

/* --- operations on fsts ------------------------------------------------------------------ */

enum {
  ARCSORT,
  PROJECT,
  CONNECT,
  REVERSE,
  INVERT,
  RMEPSILON,
  DETERMINIZE,
  MINIMIZE,
  PATH,
  NUM_MADE,
  DISTANCES = NUM_MADE,
  SCORES
};

static wf_fst *f[3][FSTS]; /* tropical without epsilons; tropical with epsilons; log */

static void make_fsts(void) {
  for (int i = 0; i < FSTS; i++) {
    static const char *const plain[] = {"0 1 1 2 1;0 2 2 2 1;1 1 1 1 3;1 2 3 1 1;2",
                                        "0 1 1 2 1;0 2 2 2 1;0 1 3 3 2;1 2 3 1 1;1 2 1 1 2;2"};
    f[0][i] = test_fst_of(WF_TROPICAL, plain[i]);
    f[1][i] =
        test_fst_of(WF_TROPICAL, i == 0 ? "0 1 0 0 1;0 2 2 2 1;1 1 1 1 3;1 2 0 0 1;2 3 1 1 1;3"
                                        : "0 1 0 0 1;1 2 1 1 1;2");
    f[2][i] = test_fst_of(WF_LOG, plain[1]);
  }
}

static void free_fsts(void) {
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < FSTS; i++) wf_fst_free(f[k][i]);
}

static wf_fst *const *inputs_of(const struct job *job) {
  return f[job->which == RMEPSILON ? 1 : job->which == SCORES ? 2 : 0];
}

static wf_status open_batch(const struct job *job, wf_error *err) {
  const wf_status status =
      wf_fst_batch_create((const wf_fst *const *)inputs_of(job), FSTS, "cuda", &now.batch, err);
  assert_int_equal(status != WF_OK, now.batch == NULL);
  return status;
}

static wf_status make(int which, const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err) {
  switch (which) {
    case ARCSORT: return wf_fst_batch_arcsort(batch, NULL, out, err);
    case PROJECT: return wf_fst_batch_project(batch, NULL, out, err);
    case CONNECT: return wf_fst_batch_connect(batch, out, err);
    case REVERSE: return wf_fst_batch_reverse(batch, out, err);
    case INVERT: return wf_fst_batch_invert(batch, out, err);
    case RMEPSILON: return wf_fst_batch_rmepsilon(batch, NULL, out, err);
    case DETERMINIZE: return wf_fst_batch_determinize(batch, NULL, out, err);
    case MINIMIZE: return wf_fst_batch_minimize(batch, NULL, out, err);
    default: return wf_fst_batch_shortest_path(batch, out, err);
  }
}

/* Reads all fsts of a batch. They must equal those of `want`, a batch on the CPU. */
static wf_status get_all(const wf_fst_batch *batch, const wf_fst_batch *want, wf_error *err) {
  wf_status status = WF_OK;
  for (size_t i = 0; i < wf_fst_batch_count(want) && status == WF_OK; i++) {
    wf_fst *got, *wanted;
    status = wf_fst_batch_to_fst(batch, i, &got, err);
    if (status != WF_OK) assert_null(got);
    if (status != WF_OK) break;
    assert_int_equal(wf_fst_batch_to_fst(want, i, &wanted, &setup_err), WF_OK);
    assert_same_bytes(got, wanted, "after a fault");
    wf_fst_free(got);
    wf_fst_free(wanted);
  }
  return status;
}

static wf_status work_made(const struct job *job, wf_error *err) {
  wf_fst_batch *there, *want, *made;
  assert_int_equal(
      wf_fst_batch_create((const wf_fst *const *)inputs_of(job), FSTS, "cpu", &there, &setup_err),
      WF_OK);
  assert_int_equal(make(job->which, there, &want, &setup_err), WF_OK);
  wf_status status = make(job->which, now.batch, &made, err);
  assert_int_equal(status != WF_OK, made == NULL);
  if (status == WF_OK) status = get_all(made, want, err);
  wf_fst_batch_free(made);
  wf_fst_batch_free(want);
  wf_fst_batch_free(there);
  return status;
}

static wf_status work_distances(const struct job *job, wf_error *err) {
  float *want, *got;
  wf_fst_batch *there;
  assert_int_equal(
      wf_fst_batch_create((const wf_fst *const *)inputs_of(job), FSTS, "cpu", &there, &setup_err),
      WF_OK);
  assert_int_equal(wf_fst_batch_shortest_distance(there, NULL, &want, &setup_err), WF_OK);
  const wf_status status = wf_fst_batch_shortest_distance(now.batch, NULL, &got, err);
  if (status == WF_OK)
    assert_memory_equal(got, want, 6 * sizeof *got);
  else
    assert_null(got);
  wf_free(got);
  wf_free(want);
  wf_fst_batch_free(there);
  return status;
}

static wf_status work_scores(const struct job *job, wf_error *err) {
  double costs[FSTS], want, *gradients = NULL;
  uint64_t count;
  (void)job;
  wf_status status = wf_fst_batch_forward_score(now.batch, NULL, true, costs, err);
  if (status == WF_OK)
    status = wf_fst_batch_gradients(now.batch, 0, WF_GRADIENTS_OF_ARCS, &gradients, &count, err);
  if (status != WF_OK) assert_null(gradients);
  for (int i = 0; i < FSTS && status == WF_OK; i++) {
    assert_int_equal(wf_forward_score(f[2][i], NULL, &want, NULL, &setup_err), WF_OK);
    assert_true(fabs(costs[i] - want) < 1e-9);
  }
  wf_free(gradients);
  return status;
}

/* --- compositions ------------------------------------------------------------------------ */

static wf_status open_nothing(const struct job *job, wf_error *err) {
  return (void)job, (void)err, WF_OK;
}

static wf_compose_options composing(const char *device) {
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.order = 1;
  o.device = device;
  return o;
}

static wf_status work_compose(const struct job *job, wf_error *err) {
  wf_compose_options here = composing("cpu"), there = composing("cuda");
  wf_fst *want, *got;
  (void)job;
  assert_int_equal(wf_compose(f[0][0], f[1][0], &here, &want, &setup_err), WF_OK);
  const wf_status status = wf_compose(f[0][0], f[1][0], &there, &got, err);
  assert_int_equal(status != WF_OK, got == NULL);
  if (status == WF_OK) assert_same_bytes(got, want, "composition");
  wf_fst_free(got);
  wf_fst_free(want);
  return status;
}

static wf_status work_compose_batch(const struct job *job, wf_error *err) {
  wf_compose_options here = composing("cpu"), there = composing("cuda");
  wf_fst_batch *want, *got;
  (void)job;
  assert_int_equal(
      test_fst_batch_compose((const wf_fst *const *)f[0], FSTS, (const wf_fst *const *)f[1], FSTS,
                             FSTS, &here, &want, &setup_err),
      WF_OK);
  wf_status status =
      test_fst_batch_compose((const wf_fst *const *)f[0], FSTS, (const wf_fst *const *)f[1], FSTS,
                             FSTS, &there, &got, err);
  assert_int_equal(status != WF_OK, got == NULL);
  if (status == WF_OK) status = get_all(got, want, err);
  wf_fst_batch_free(got);
  wf_fst_batch_free(want);
  return status;
}

static wf_status open_composer(const struct job *job, wf_error *err) {
  wf_compose_options there = composing("cuda");
  (void)job;
  const wf_status status =
      wf_composer_create((const wf_fst *const *)f[0], FSTS, (const wf_fst *const *)f[1], FSTS, FSTS,
                         &there, true, &now.composer, err);
  assert_int_equal(status != WF_OK, now.composer == NULL);
  return status;
}

static wf_status work_composer(const struct job *job, wf_error *err) {
  wf_compose_options here = composing("cpu");
  (void)job;
  wf_status status = wf_composer_run(now.composer, err);
  for (size_t i = 0; i < FSTS && status == WF_OK; i++) {
    wf_fst *want, *got;
    wf_arc_origin *wanted, *origins;
    status = wf_composer_to_fst(now.composer, i, &got, &origins, err);
    if (status != WF_OK) assert_true(got == NULL && origins == NULL);
    if (status != WF_OK) break;
    assert_int_equal(test_compose_with_origins(f[0][i], f[1][i], &here, &want, &wanted, &setup_err),
                     WF_OK);
    assert_same_bytes(got, want, "composer");
    assert_memory_equal(origins, wanted, wf_fst_get_view(want).num_arcs * sizeof *origins);
    wf_free(origins);
    wf_free(wanted);
    wf_fst_free(got);
    wf_fst_free(want);
  }
  return status;
}

static wf_status work_sparse(const struct job *job, wf_error *err) {
  wf_compose_options o = composing(NULL);
  wf__gpu_batch *made;
  wf__csr csr = {0};
  wf_fst *want, *got;
  int64_t start;
  (void)job;
  wf_status status = compose_sparsely(f[0][0], f[1][0], &o, &made, err);
  assert_int_equal(status != WF_OK, made == NULL);
  if (status == WF_OK) status = wf__gpu_batch_get(made, 0, &csr, &start, err);
  if (status == WF_OK) {
    assert_int_equal(wf_compose(f[0][0], f[1][0], &o, &want, &setup_err), WF_OK);
    assert_int_equal(wf__fst_from_csr(&csr, start, WF_TROPICAL, NULL, NULL, &got, &setup_err),
                     WF_OK);
    assert_same_bytes(got, want, "sparse composition");
    wf_fst_free(got);
    wf_fst_free(want);
  }
  wf__csr_free(&csr);
  wf__gpu_batch_free(made);
  return status;
}

/* --- recurrent models -------------------------------------------------------------------- */

static chain_task chains;
static wf_result *recurrent[UTTERANCES];
static float word_costs[4];
static const int32_t text[3] = {1, 2, 3};
static const uint64_t sentence[2] = {0, 3};

static wf_status open_chains(const struct job *job, wf_error *err) {
  chains.options.device = "cuda";
  (void)job;
  const wf_status status = wf_decoder_create(chains.graph, &chains.options, &now.decoder, err);
  assert_int_equal(status != WF_OK, now.decoder == NULL);
  return status;
}

static wf_status work_chains(const struct job *job, wf_error *err) {
  wf_result *got[2];
  (void)job;
  wf_status status =
      test_decode_scored(now.decoder, chains.scores, chains.scorers, 2, NULL, got, err);
  for (int i = 0; i < 2 && status != WF_OK; i++) assert_null(got[i]);
  if (status != WF_OK) return status;
  for (int i = 0; i < 2 && status == WF_OK; i++) status = own_status(got[i], err);
  for (int i = 0; i < 2 && status == WF_OK; i++) check_alike(1, i, got[i], recurrent[i]);
  test_free_results(got, 2);
  return status;
}

static wf_status open_rnnlm(const struct job *job, wf_error *err) {
  (void)job;
  const wf_status status = wf_rnnlm_on_device(chains.m.rnnlm, "cuda", &now.rnnlm, err);
  assert_int_equal(status != WF_OK, now.rnnlm == NULL);
  return status;
}

static wf_status work_rnnlm(const struct job *job, wf_error *err) {
  float costs[4];
  (void)job;
  const wf_status status = wf_rnnlm_score(now.rnnlm, text, sentence, 1, 1, costs, err);
  for (int i = 0; i < 4 && status == WF_OK; i++)
    assert_true(fabsf(costs[i] - word_costs[i]) < 1e-4f);
  return status;
}

static void make_chains(void) {
  test_rng rng = {21};
  wf_decoder *decoder;
  make_chain_task(1, &rng, &chains);
  for (int u = 0; u < 2; u++) chains.scores[u].num_frames = 2;
  assert_int_equal(wf_decoder_create(chains.graph, &chains.options, &decoder, &setup_err), WF_OK);
  assert_int_equal(
      test_decode_scored(decoder, chains.scores, chains.scorers, 2, NULL, recurrent, &setup_err),
      WF_OK);
  assert_int_equal(wf_rnnlm_score(chains.m.rnnlm, text, sentence, 1, 1, word_costs, &setup_err),
                   WF_OK);
  wf_decoder_free(decoder);
}

static void free_chains(void) {
  test_free_results(recurrent, 2);
  free_chain_task(&chains);
}

/* --- faults ------------------------------------------------------------------------------ */

struct tally {
  long reported, refused, right; /* failures that were reported; later work with the same
                                    objects that returned an error; that was right */
};

static void clear_faults(void) {
  fake_gpus.fail_at = fake_gpus.lost_at = 0;
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
}

/* Runs `open`, then `work`. Sets *opened if `open` succeeded. */
static wf_status attempt(const struct job *job, bool *opened, wf_error *err) {
  *err = (wf_error){0};
  wf_status status = job->open(job, err);
  *opened = status == WF_OK;
  return status == WF_OK ? job->work(job, err) : status;
}

/* Makes call n fail. Afterwards `work` runs again with the same objects. After WF_ERR_MEMORY it
 * must succeed; after WF_ERR_DEVICE it may also return WF_ERR_DEVICE. Returns false if the job
 * makes fewer than n calls. */
static bool fail_once(const struct job *job, long n, long objects, struct tally *tally) {
  wf_error err;
  bool opened;
  fake_gpus.num_calls = 0;
  fake_gpus.failed_to_allocate = false;
  fake_gpus.fail_at = n;
  const wf_status status = attempt(job, &opened, &err);
  const bool reached = fake_gpus.num_calls >= n;
  clear_faults();
  if (status != WF_OK) {
    check_cuda_error(job->name, n, false, status, &err);
    tally->reported++;
  }
  if (opened) {
    const wf_status later = job->work(job, &err);
    if (later != WF_OK && (status != WF_ERR_DEVICE || later != WF_ERR_DEVICE))
      fail_msg("%s, after call %ld failed with %d: %d, %s", job->name, n, status, later,
               err.message);
    *(later == WF_OK ? &tally->right : &tally->refused) += status != WF_OK;
  }
  close_all();
  check_num_objects(job->name, n, objects);
  return reached;
}

/* Loses the device from call n on; everything is closed while it is lost. With `anew`, the device
 * then comes back, and new objects must work. */
static void lose_device(const struct job *job, long n, long objects, bool anew,
                        struct tally *tally) {
  wf_error err;
  bool opened;
  fake_gpus.num_calls = 0;
  fake_gpus.lost_at = n;
  wf_status status = attempt(job, &opened, &err);
  if (status != WF_OK) {
    check_cuda_error(job->name, n, true, status, &err);
    tally->reported++;
  }
  if (opened && status != WF_OK) { /* again */
    status = job->work(job, &err);
    check_cuda_error(job->name, n, true, status, &err);
  }
  close_all();
  clear_faults();
  check_num_objects(job->name, n, objects);
  if (!anew) return;
  status = attempt(job, &opened, &err);
  if (status != WF_OK)
    fail_msg("%s, device lost at call %ld: made anew, %s", job->name, n, err.message);
  close_all();
}

static void check_job(const struct job *job, long step) {
  struct tally once = {0}, lost = {0};
  wf_error err;
  bool opened;
  assert_int_equal(attempt(job, &opened, &err),
                   WF_OK); /* creates the objects that exist once in a process */
  close_all();
  const long objects = fake_gpus.num_objects;
  bool reached = true;
  for (long n = 1; reached; n += step) {
    alarm(SECONDS);
    reached = fail_once(job, n, objects, &once);
    if (reached) lose_device(job, n, objects, n % (5 * step) == 1, &lost);
  }
  alarm(0);
  print_message(
      "%-22s %ld faults reported, then %ld refused, %ld right; %ld losses of the device\n",
      job->name, once.reported, once.refused, once.right, lost.reported);
  assert_true(once.reported > 4 && lost.reported >= once.reported);
}

static void check_jobs(const struct job *jobs, size_t count, long step) {
  for (size_t i = 0; i < count; i++) check_job(&jobs[i], step);
}
#define CHECK_JOBS(jobs, step) check_jobs(jobs, sizeof jobs / sizeof *jobs, step)

/* With few seeds, only every n-th call fails: each third one, or fewer in slow jobs, whose attempts
 * take about 0.1 s. */
static long quick_step(void) { return test_seeds(4) >= 4 ? 1 : 3; }
static long slow_step(void) { return test_seeds(4) >= 4 ? 1 : 13; }

static void test_small_faults_in_batches(void **state) {
  (void)state;
  static const struct job jobs[] = {
      {"batch", open_decoder, work_batch, close_all, PLAIN},
      {"batch with scorers", open_decoder, work_batch, close_all, SCORED},
      {"batch with lattices", open_decoder, work_batch, close_all, LATTICES},
      {"batch with added words", open_decoder, work_batch, close_all, WORDS}};
  make_decoding();
  CHECK_JOBS(jobs, slow_step());
  free_decoding();
}

static void test_small_faults_in_streams(void **state) {
  (void)state;
  static const struct job jobs[] = {
      {"streams", open_streams, work_streams, close_all, PLAIN},
      {"streams with scorers", open_streams, work_streams, close_all, SCORED},
      {"streams with lattices", open_streams, work_streams, close_all, LATTICES}};
  make_decoding();
  CHECK_JOBS(jobs, slow_step());
  free_decoding();
}

static void test_small_faults_in_fst_operations(void **state) {
  (void)state;
  static const char *const operations[] = {"arcsort",     "project",  "connect",
                                           "reverse",     "invert",   "rmepsilon",
                                           "determinize", "minimize", "shortest path"};
  make_fsts();
  for (int which = 0; which < NUM_MADE; which++)
    check_job(&(struct job){operations[which], open_batch, work_made, close_all, which},
              quick_step());
  check_job(&(struct job){"distances", open_batch, work_distances, close_all, DISTANCES},
            quick_step());
  check_job(&(struct job){"forward scores", open_batch, work_scores, close_all, SCORES},
            quick_step());
  free_fsts();
}

static void test_small_faults_in_compositions(void **state) {
  (void)state;
  static const struct job jobs[] = {
      {"composition", open_nothing, work_compose, close_all, 0},
      {"batch of compositions", open_nothing, work_compose_batch, close_all, 0},
      {"composer", open_composer, work_composer, close_all, 0},
      {"sparse composition", open_nothing, work_sparse, close_all, 0}};
  make_fsts();
  CHECK_JOBS(jobs, quick_step());
  free_fsts();
}

static void test_small_faults_in_recurrent_models(void **state) {
  (void)state;
  static const struct job scoring[] = {{"recurrent model", open_rnnlm, work_rnnlm, close_all, 0}};
  static const struct job decoding[] = {
      {"recurrent scorer", open_chains, work_chains, close_all, 0}};
  make_chains();
  CHECK_JOBS(scoring, quick_step());
  CHECK_JOBS(decoding, 3 * slow_step());
  free_chains();
}

int main(int argc, char **argv) {
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_faults_in_fst_operations),
                                     cmocka_unit_test(test_small_faults_in_compositions),
                                     cmocka_unit_test(test_small_faults_in_batches),
                                     cmocka_unit_test(test_small_faults_in_streams),
                                     cmocka_unit_test(test_small_faults_in_recurrent_models)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (fake_gpus.num_objects != 0)
    printf("%ld allocations, streams or events are left\n", fake_gpus.num_objects);
  return failed != 0 || fake_gpus.num_objects != 0;
}
