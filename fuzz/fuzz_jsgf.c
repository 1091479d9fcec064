/* fuzz_jsgf.c - reads arbitrary bytes as a grammar in JSGF, or, if bit 0 of the first byte is set, as
 * sentences; with bit 1 the labels of the words are given. If it is accepted, the result must be a
 * valid acceptor without epsilons. */
#include <stdlib.h>

#include "fst/fst.h"
#include "graph/jsgf.h"

enum { MAX_ARCS = 20000 }; /* so that each input takes little time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static wf_symbols *make_table(void) {
  static const char *const texts[] = {"<eps>", "a", "b", "go", "<c>"};
  wf_symbols *table;
  if (wf_symbols_create("table", &table, NULL) != WF_OK) abort();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (wf_symbols_add(table, texts[i], (int64_t)i, NULL, NULL) != WF_OK) abort();
  return table;
}

static void check(wf_fst *fst) {
  wf_error err;
  const wf_fst_view view = wf_fst_get_view(fst);
  if (wf__fst_check(&view, "G", &err) != WF_OK || view.num_states == 0) abort();
  if ((wf_fst_properties(fst) & WF_PROP_COACCESSIBLE) == 0) abort();
  for (uint64_t i = 0; i < view.num_arcs; i++)
    if (view.arcs[i].ilabel <= 0 || view.arcs[i].ilabel != view.arcs[i].olabel ||
        !(view.arcs[i].weight >= 0) ||
        wf_symbols_text(wf_fst_osymbols(fst), view.arcs[i].olabel) == NULL)
      abort();
  wf_fst_free(fst);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  wf_symbols *table = data[0] & 2 ? make_table() : NULL;
  wf_fst *fst;
  wf_error err;
  wf__input input;
  if (data[0] & 1) {
    if (wf_grammar_read_phrases_memory(data + 1, size - 1, "input", table, &fst, &err) == WF_OK)
      check(fst);
  } else if (wf__input_from_memory(data + 1, size - 1, "input", &input, NULL) == WF_OK) {
    if (wf__jsgf_is(&input) && wf__jsgf_read(&input, table, MAX_ARCS, &fst, &err) == WF_OK)
      check(fst);
    wf__input_close(&input);
  }
  wf_symbols_free(table);
  return 0;
}
