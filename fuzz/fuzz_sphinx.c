/* fuzz_sphinx.c - reads arbitrary bytes as one file of a Sphinx acoustic model, or as logged senone
 * scores. The first byte chooses: 0 mdef, 1 transition_matrices, 2 noisedict, 3 scores. If a model
 * is accepted, the fsts built from it must be valid. */
#include <stdlib.h>

#include "graph/hmm.h"
#include "graph/sphinx_hmm.h"
#include "io/sphinx_sen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char g_mdef[] =
    "0.3\n2 n_base\n1 n_tri\n6 n_state_map\n3 n_tied_state\n2 n_tied_ci_state\n2 n_tied_tmat\nSIL "
    "- - - filler 0 0 N\nA - - - n/a 1 1 N\nA A SIL e n/a 1 2 N\n";
static const uint8_t g_tmats[] =
    "s3\nendhdr\n\x44\x33\x22\x11\2\0\0\0\1\0\0\0\2\0\0\0\4\0\0\0\0\0\x80\x3f\0\0\x80\x3f\0\0\x80"
    "\x3f\0\0\x80\x3f";
static const char g_noisedict[] = "<sil> SIL\n";

static void check_fst(wf_fst *fst) {
  wf_error err;
  wf_fst_view view = wf_fst_get_view(fst);
  if (wf__fst_check(&view, "made", &err) != WF_OK) abort();
  wf_fst_free(fst);
}

/* C over up to 16 phones, H, and H with self-loops must be built without an error. */
static void check_model(wf_hmm *hmm) {
  wf_tally dropped = {0};
  wf_builder *builder;
  wf_fst *phones, *c, *h, *looped;
  if (wf_builder_create(WF_TROPICAL, &builder, NULL) != WF_OK ||
      wf_builder_add_states(builder, 1, NULL, NULL) != WF_OK)
    abort();
  if (wf_builder_set_start(builder, 0, NULL) != WF_OK ||
      wf_builder_set_final(builder, 0, 0, NULL) != WF_OK)
    abort();
  for (int32_t p = 1; p <= hmm->num_phones && p <= 16; p++)
    if (wf_builder_add_arc(builder, 0, (wf_arc){0, 0, p, p}, NULL) != WF_OK) abort();
  if (wf_builder_finish(builder, NULL, NULL, &phones, NULL) != WF_OK) abort();
  if (wf__hmm_expand(hmm, phones, 0, WF_MISSING_HMM_SUBSTITUTE, 0, &dropped, &c, NULL) != WF_OK)
    abort();
  if (wf__hmm_to_fst(hmm, 1, 0, &h, NULL) != WF_OK ||
      wf__hmm_add_loops(hmm, h, 1, &looped, NULL) != WF_OK)
    abort();
  check_fst(phones);
  check_fst(c);
  check_fst(h);
  check_fst(looped);
  wf_builder_free(builder);
  wf_hmm_free(hmm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__input inputs[3], given;
  wf_hmm *hmm;
  if (size == 0 || wf__input_from_memory(data + 1, size - 1, "input", &given, NULL) != WF_OK)
    return 0;
  if (data[0] == 3) {
    wf_matrix matrix = {0};
    (void)wf__sen_read(&given, 1, &matrix, NULL);
    wf_matrix_clear(&matrix);
  } else {
    if (wf__input_from_memory(g_mdef, sizeof g_mdef - 1, "mdef", &inputs[0], NULL) != WF_OK)
      abort();
    if (wf__input_from_memory(g_tmats, sizeof g_tmats - 1, "tmats", &inputs[1], NULL) != WF_OK)
      abort();
    if (wf__input_from_memory(g_noisedict, sizeof g_noisedict - 1, "noisedict", &inputs[2], NULL) !=
        WF_OK)
      abort();
    const wf__input *files[3] = {&inputs[0], &inputs[1], &inputs[2]};
    if (data[0] < 3) files[data[0]] = &given;
    if (wf__hmm_read_sphinx_inputs("model", files[0], files[1], files[2], &hmm, NULL) == WF_OK)
      check_model(hmm);
    for (int i = 0; i < 3; i++) wf__input_close(&inputs[i]);
  }
  wf__input_close(&given);
  return 0;
}
