/* soak_recurrent.c - decodes utterances with recurrent scorers. The GPU must give the CPU's words,
 * with equal costs up to rounding, and the same bits for every batch size. */
#include "rnn_chains.h"
#include "soak.h"

enum { ROUNDS = SOAK_SMALL ? 1 : 8 };

static void decode_all(wf_decoder *decoder, const chain_task *t, size_t at_once,
                       wf_result **results) {
  wf_error err = {0};
  for (size_t i = 0; i < UTTERANCES; i += at_once)
    assert_ok(test_decode_scored(decoder, t->scores + i, t->scorers + i,
                                 UTTERANCES - i < at_once ? UTTERANCES - i : at_once, NULL,
                                 results + i, &err));
}

void soak_recurrent(test_rng *rng, struct soak_counts *counts) {
  wf_error err = {0};
  chain_task *t = malloc(sizeof *t);
  wf_decoder *decoders[2];
  wf_result *want[UTTERANCES], *got[UTTERANCES], *first[UTTERANCES];
  assert_non_null(t);
  make_chain_task(test_next(rng), rng, t);
  t->options.num_threads = 1;
  for (int k = 0; k < 2; k++) {
    t->options.device = k == 0 ? "cpu" : "cuda";
    t->options.gpu_memory = (int64_t)1 << (SOAK_SMALL ? 28 : 30);
    assert_ok(wf_decoder_create(t->graph, &t->options, &decoders[k], &err));
  }
  decode_all(decoders[0], t, UTTERANCES, want);
  for (int round = 0; round <= ROUNDS; round++) {
    const size_t at_once = round == 0 ? UTTERANCES : 1 + test_below(rng, UTTERANCES);
    soak_note("round %d, %zu utterances at once", round, at_once);
    decode_all(decoders[1], t, at_once, round == 0 ? first : got);
    if (round == 1 && soak_plant()) got[UTTERANCES - 1]->cost += 1;
    for (int u = 0; u < UTTERANCES; u++)
      round == 0 ? check_alike(0, u, first[u], want[u]) : test_assert_same_result(got[u], first[u]);
    if (round > 0) test_free_results(got, UTTERANCES);
    counts->utterances += UTTERANCES;
  }
  test_free_results(want, UTTERANCES);
  test_free_results(first, UTTERANCES);
  for (int k = 0; k < 2; k++) wf_decoder_free(decoders[k]);
  free_chain_task(t);
  free(t);
}
