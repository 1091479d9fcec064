/* test_gpu_rnn_interrupt.c - interrupts searches with a recurrent scorer at many polls of the
 * interrupt function. They must fail with WF_ERR_CANCELLED, and the same decoder must then give the
 * CPU's results. Exits with 77 if there is no GPU. */
#include <time.h>

#include "base/interrupt.h"
#include "rnn_chains.h"

static wf_error err;

enum { TO_THE_END = 0, MOST_SECONDS = 60 }; /* a call that takes longer is taken to hang */
/* Of the polls that are tried: the next is 1 / DENSITY later. */
#ifdef SIMT_MORE
enum { DENSITY = 2 };
#elif defined SIMT
enum { DENSITY = 1 };
#else
enum { DENSITY = 4 };
#endif

struct caller {
  int looks; /* polls until the interrupt, or TO_THE_END */
  time_t end;
};

/* The interrupt function. Returns false to interrupt. */
static bool look(void *user) {
  struct caller *caller = user;
  wf__interrupt_poll();
  return caller->looks == TO_THE_END ? time(NULL) < caller->end : --caller->looks > 0;
}

/* Decodes a batch, interrupted after `looks` polls. */
static wf_status decode(wf_decoder *decoder, const chain_task *t, int looks, wf_result **results) {
  struct caller caller = {looks, time(NULL) + MOST_SECONDS};
  wf_set_interrupt(look, &caller);
  const wf_status status =
      test_decode_scored(decoder, t->scores, t->scorers, UTTERANCES, NULL, results, &err);
  wf_set_interrupt(NULL, NULL);
  return status;
}

/* Decodes a stream's chunk, interrupted after `looks` polls. */
static wf_status accept(wf_stream *stream, const wf_scores *scores, int looks) {
  struct caller caller = {looks, time(NULL) + MOST_SECONDS};
  wf_set_interrupt(look, &caller);
  const wf_status status = wf_stream_advance(stream, scores, NULL, &err);
  wf_set_interrupt(NULL, NULL);
  return status;
}

static wf_decoder *open_decoder(const chain_task *t, const char *device) {
  wf_decoder_options options = t->options;
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(t->graph, &options, &decoder, &err));
  return decoder;
}

/* Each attempt has a new decoder, because a used one has all scores in its cache. */
static void test_small_interrupted_batches(void **unused) {
  (void)unused;
  int cancelled = 0;
  for (uint64_t seed = 1; seed <= (test_seeds(12) + 3) / 4; seed++) {
    test_rng rng = {seed * 911};
    static chain_task t;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    make_chain_task(seed, &rng, &t);
    wf_decoder *cpu = open_decoder(&t, "cpu");
    assert_ok(decode(cpu, &t, TO_THE_END, want));
    wf_status status = WF_ERR_CANCELLED;
    for (int looks = 1; status != WF_OK; looks += 1 + looks / DENSITY) {
      wf_decoder *decoder = open_decoder(&t, "cuda");
      status = decode(decoder, &t, looks, got);
      cancelled += status != WF_OK;
      if (status != WF_OK) assert_int_equal(status, WF_ERR_CANCELLED);
      if (status != WF_OK) assert_ok(decode(decoder, &t, TO_THE_END, got));
      for (int u = 0; u < UTTERANCES; u++) check_alike(seed, u, got[u], want[u]);
      test_free_results(got, UTTERANCES);
      wf_decoder_free(decoder);
    }
    test_free_results(want, UTTERANCES);
    wf_decoder_free(cpu);
    free_chain_task(&t);
  }
  assert_true(cancelled > 3);
}

static void test_small_interrupted_streams(void **unused) {
  (void)unused;
  int cancelled = 0;
  for (uint64_t seed = 1; seed <= (test_seeds(12) + 3) / 4; seed++) {
    test_rng rng = {seed * 917};
    static chain_task t;
    wf_result *want, *got;
    make_chain_task(seed, &rng, &t);
    wf_decoder *cpu = open_decoder(&t, "cpu");
    assert_ok(test_decode_scored(cpu, t.scores, t.scorers, 1, NULL, &want, &err));
    wf_status status = WF_ERR_CANCELLED;
    for (int looks = 1; status != WF_OK; looks += 1 + looks / DENSITY) {
      wf_decoder *decoder = open_decoder(&t, "cuda");
      wf_stream *stream;
      assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
      assert_ok(wf_stream_set_scorer(stream, t.scorers[0], &err));
      status = accept(stream, &t.scores[0], looks);
      cancelled += status != WF_OK;
      if (status != WF_OK) {
        assert_int_equal(status, WF_ERR_CANCELLED);
        assert_ok(wf_stream_reset(stream, &err));
        assert_ok(accept(stream, &t.scores[0], TO_THE_END));
      }
      assert_ok(wf_stream_finish(stream, &got, &err));
      check_alike(seed, 0, got, want);
      wf_result_free(got);
      wf_stream_free(stream);
      wf_decoder_free(decoder);
    }
    wf_result_free(want);
    wf_decoder_free(cpu);
    free_chain_task(&t);
  }
  assert_true(cancelled > 3);
}

int main(int argc, char **argv) {
  test_rng rng = {1};
  static chain_task t;
  wf_decoder *decoder;
  make_chain_task(1, &rng, &t);
  t.options.device = "cuda";
  const wf_status status = wf_decoder_create(t.graph, &t.options, &decoder, &err);
  if (status == WF_ERR_DEVICE) fprintf(stderr, "%s\n", err.message);
  if (status == WF_OK) wf_decoder_free(decoder);
  free_chain_task(&t);
  if (status == WF_ERR_DEVICE) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_interrupted_batches),
                                     cmocka_unit_test(test_small_interrupted_streams)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
