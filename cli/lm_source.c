/* lm_source.c - loads the model and the word list of a subcommand of `warpfst lm`. */
#include <string.h>

#include "lm_common.h"
#include "text_input.h"

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
    status = wf_lm_open(path, words, &source->options, out, stats, &progress, &err);
  wf_symbols_free(words);
  cli_progress_end();
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}

int lm_read_vocabulary(const char *path, wf_symbols **out) {
  wf_error err;
  cli_lines lines;
  wf_status status = cli_lines_open(&lines, path, &err);
  if (status == WF_OK) status = wf_symbols_create(path, out, &err);
  while (status == WF_OK && cli_lines_next(&lines)) {
    char *rest = NULL, *word = strtok_r(lines.text, " \t\r\n", &rest);
    if (word != NULL && wf_symbols_find(*out, word) < 0)
      status = wf_symbols_add(*out, word, -1, NULL, &err);
  }
  status = cli_lines_close(&lines, status, &err);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
