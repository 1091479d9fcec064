/* graph.c - makes the graph of a CTC model step by step, T o min(det(L o G)), which wf_graph_build
 * does in one call: graph TOKENS LEXICON LM OUT */
#include <stdio.h>
#include <warpfst_graph.h>

static wf_status make(const wf_symbols *tokens, const wf_lexicon *lexicon, const wf_symbols *words,
                      const wf_lm *lm, wf_fst **fsts, wf_error *err) {
  int32_t num_disambig = wf_lexicon_num_disambig(lexicon), num_tokens, blank;
  wf_symbols *labels = NULL;
  wf_lm_fst_options grammar;
  wf_topology_options topology;
  wf_lm_fst_options_init(&grammar);
  grammar.backoff_label = (int32_t)wf_symbols_find(words, "#0");
  wf_topology_options_init(&topology);
  topology.type = WF_TOPOLOGY_CORRECT;
  topology.num_disambig = num_disambig;

  wf_status status = wf_token_labels(tokens, num_disambig, &labels, &num_tokens, err);
  wf_symbols_free(labels);
  if (status == WF_OK) status = wf_token_blank(tokens, NULL, &blank, err);
  if (status == WF_OK) status = wf_lexicon_to_fst(lexicon, words, NULL, &fsts[0], NULL, err);
  if (status == WF_OK) status = wf_lm_to_fst(lm, &grammar, &fsts[1], err);
  if (status == WF_OK) status = wf_compose(fsts[0], fsts[1], NULL, &fsts[2], err);
  if (status == WF_OK) status = wf_determinize(fsts[2], NULL, &fsts[3], err);
  if (status == WF_OK) status = wf_minimize(fsts[3], NULL, &fsts[4], err);
  if (status == WF_OK) status = wf_ctc_topology(num_tokens, blank, &topology, &fsts[5], err);
  if (status == WF_OK) status = wf_compose(fsts[5], fsts[4], NULL, &fsts[6], err);
  return status == WF_OK ? wf_epsilons_last(fsts[6], &fsts[7], err) : status;
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: graph TOKENS LEXICON LM OUT\n"), 2;
  wf_error err = {0};
  wf_symbols *tokens = NULL, *words = NULL;
  wf_lexicon *lexicon = NULL;
  wf_lm *lm = NULL;
  wf_fst *fsts[8] = {NULL};
  wf_arpa_options arpa;
  wf_arpa_options_init(&arpa);
  arpa.oov = WF_OOV_SKIP; /* words of the LM that the lexicon lacks */

  wf_status status = wf_symbols_read(argv[1], &tokens, &err);
  if (status == WF_OK) status = wf_lexicon_read(argv[2], tokens, NULL, &lexicon, &err);
  if (status == WF_OK) status = wf_lexicon_words(lexicon, &words, &err);
  if (status == WF_OK) status = wf_lm_open(argv[3], words, &arpa, &lm, NULL, NULL, &err);
  if (status == WF_OK) status = make(tokens, lexicon, words, lm, fsts, &err);
  if (status == WF_OK) status = wf_fst_write(fsts[7], argv[4], WF_FORMAT_NATIVE, &err);
  if (status != WF_OK) fprintf(stderr, "graph: %s\n", err.message);

  for (int i = 0; i < 8; i++) wf_fst_free(fsts[i]);
  wf_lm_free(lm);
  wf_lexicon_free(lexicon);
  wf_symbols_free(words);
  wf_symbols_free(tokens);
  return status == WF_OK ? 0 : 1;
}
