/* fuzz_kaldi_am.c - reads arbitrary bytes as one file of a Kaldi acoustic model; the other files
 * are valid. The first byte chooses the file: 't' the tree, 'p' phones.txt, 'b' word_boundary.txt,
 * else the model. If the reader accepts them, looking up random context windows must not crash, and
 * H must be a valid fst. */
#include <stdlib.h>
#include <string.h>

#include "graph/kaldi_files.h"
#include "graph/kaldi_hmm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char g_model[] =
    "<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 2 3 4 5 </ForPhones> <State> 0 "
    "<PdfClass> 0 <Transition> 0 0.5 <Transition> 1 0.5 </State> "
    "<State> 1 </State> </TopologyEntry> </Topology> <Triples> 6 1 0 0 1 0 1 2 0 1 3 0 0 4 0 0 5 0 "
    "1 </Triples> "
    "<LogProbs> [ 0 -1 -0.5 -1 -0.5 -1 -0.5 -1 -0.5 -1 -0.5 -1 -0.5 ] </LogProbs> "
    "</TransitionModel> ";
static const char g_tree[] =
    "ContextDependency 3 1 ToPdf SE 0 [ 1 2 ] { CE 0 CE 1 } EndContextDependency ";
static const char g_phones[] = "<eps> 0\nA_B 1\nA_I 2\nA_E 3\nA_S 4\nSIL 5\n#0 6\n#1 7\n";
static const char g_boundary[] = "A_B begin\nA_I internal\nA_E end\nA_S singleton\nSIL nonword\n";

/* Looks up the HMM types of some context windows, then builds H from them. */
static void check(wf_hmm *hmm) {
  wf_error err;
  wf_fst *h;
  int32_t window[WF__HMM_MAX_WIDTH], type;
  for (uint32_t i = 0; i < 50 && hmm->width > 0; i++) {
    for (int32_t k = 0; k < hmm->width; k++)
      window[k] = (int32_t)(i * 7919u * (uint32_t)(k + 3) >> 2) % (hmm->num_phones + 1);
    if (window[hmm->central] == 0) window[hmm->central] = 1;
    (void)hmm->methods->find_type(hmm, window, &type, &err);
  }
  if (wf__hmm_to_fst(hmm, 1, 2, &h, &err) != WF_OK) abort();
  wf_fst_view view = wf_fst_get_view(h);
  if (wf__fst_check(&view, "H", &err) != WF_OK) abort();
  wf_fst_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  enum { MODEL, TREE, PHONES, BOUNDARY, COUNT };
  static const char *const texts[COUNT] = {g_model, g_tree, g_phones, g_boundary};
  wf__input inputs[COUNT];
  wf_error err;
  wf_hmm *hmm;
  if (size == 0) return 0;
  int fuzzed = data[0] == 't' ? TREE : data[0] == 'p' ? PHONES : data[0] == 'b' ? BOUNDARY : MODEL;
  for (int i = 0; i < COUNT; i++) {
    const void *bytes = i == fuzzed ? (const void *)(data + 1) : texts[i];
    if (wf__input_from_memory(bytes, i == fuzzed ? size - 1 : strlen(texts[i]), "fuzz", &inputs[i],
                              &err) != WF_OK)
      abort();
  }
  wf__lang_inputs lang = {&inputs[PHONES], &inputs[BOUNDARY], NULL};
  if (fuzzed == MODEL) lang = (wf__lang_inputs){0};
  if (wf__hmm_read_kaldi_inputs("fuzz", &inputs[MODEL], &inputs[TREE], &lang, &hmm, &err) ==
      WF_OK) {
    check(hmm);
    wf_hmm_free(hmm);
  }
  for (int i = 0; i < COUNT; i++) wf__input_close(&inputs[i]);
  return 0;
}
