/* lm_source.c - loads the model of a subcommand of `warpfst lm`. */
#include "lm_common.h"

void lm_flags(cli_parser *parser, lm_source *source) {
  cli_flag_str(
      parser, "words", 'w', &source->words_path, "FILE",
      "word table that gives the labels (default: the model's words, in the order of the model)");
  cli_table(parser, "arpa", &source->options);
}

int lm_load(const char *path, const lm_source *source, wf_lm **out, wf_arpa_stats *stats) {
  *out = NULL;
  wf_error err = {0};
  wf_symbols *words = NULL;
  wf_progress progress = cli_progress(source->quiet);
  wf_status status =
      source->words_path != NULL ? wf_symbols_read(source->words_path, &words, &err) : WF_OK;
  if (status == WF_OK)
    status = wf_lm_read(path, words, &source->options, out, stats, &progress, &err);
  wf_symbols_free(words);
  cli_progress_end();
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
