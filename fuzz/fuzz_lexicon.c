/* fuzz_lexicon.c - reads arbitrary bytes as a lexicon, or as a list of BPE merges to spell words
 * with. If it is accepted, L must be a valid fst. The first byte holds the options: bits 0-1 the
 * lexicon's format, bit 2 skip unknown tokens, bit 3 read word(2) as a variant of word, bit 4 the
 * token table has no blank, bit 7 the input is a list of merges. */
#include <stdlib.h>

#include "fst/fst.h"
#include "graph/lexicon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static wf_symbols *table_of(const char *const *texts, size_t count) {
  wf_symbols *table;
  if (wf_symbols_create("table", &table, NULL) != WF_OK) abort();
  for (size_t i = 0; i < count; i++)
    if (wf_symbols_add(table, texts[i], (int64_t)i, NULL, NULL) != WF_OK) abort();
  return table;
}

static void check(wf_lexicon *lexicon) {
  wf_fst *fst;
  wf_error err;
  if (wf_lexicon_to_fst(lexicon, NULL, NULL, &fst, NULL, &err) != WF_OK) abort();
  wf_fst_view view = wf_fst_get_view(fst);
  if (wf__fst_check(&view, "L", &err) != WF_OK) abort();
  if (view.num_states == 0 || (wf_fst_properties(fst) & WF_PROP_COACCESSIBLE) == 0) abort();
  wf_fst_free(fst);
  wf_lexicon_free(lexicon);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const token_texts[] = {"<blk>",
                                            "\xE2\x96\x81",
                                            "a",
                                            "b",
                                            "ab",
                                            "aba",
                                            "0.5",
                                            "\xE2\x96\x81"
                                            "a"};
  static const char *const word_texts[] = {
      "<eps>", "a", "abab", "aabbaba", "bbbbbbbbbbbbbbbb", "<unk>", "b\xC3\xA9"};
  if (size == 0) return 0;
  wf_symbols *tokens = table_of(token_texts, 8), *words = table_of(word_texts, 7);
  wf_lexicon_options options;
  wf_lexicon *lexicon;
  wf__input input;
  wf_lexicon_options_init(&options);
  options.lexicon_format = data[0] & 3;
  options.unknown = data[0] >> 2 & 1;
  options.variants = data[0] >> 3 & 1;
  if (data[0] >> 4 & 1) options.blank = "";
  if (wf__input_from_memory(data + 1, size - 1, "input", &input, NULL) == WF_OK) {
    wf_status status =
        data[0] & 0x80 ? wf__lexicon_spell_input(words, tokens, &options, &input, &lexicon, NULL)
                       : wf__lexicon_read_input(&input, tokens, &options, &lexicon, NULL);
    if (status == WF_OK) check(lexicon);
    wf__input_close(&input);
  }
  wf_symbols_free(tokens);
  wf_symbols_free(words);
  return 0;
}
