/* rnnlm_common.h - the subcommands of `warpfst rnnlm`, and what they share. */
#ifndef WARPFST_CLI_RNNLM_COMMON_H
#define WARPFST_CLI_RNNLM_COMMON_H

#include "cli.h"
#include "text_input.h"

int cmd_rnnlm_info(int argc, char **argv);
int cmd_rnnlm_score(int argc, char **argv);
int cmd_rnnlm_perplexity(int argc, char **argv);
int cmd_rnnlm_train(int argc, char **argv);
int cmd_rnnlm_rescore(int argc, char **argv);
int cmd_rnnlm_lattice(int argc, char **argv);

/* Opens a model, on a GPU if `device` names one. Returns CLI_OK, or the exit code of an error,
 * which it prints. */
int rnnlm_load(const char *path, const char *unk_symbol, const char *device, wf_rnnlm **out);

/* Sentences of a text as word ids of a model, in the form that wf_rnnlm_score takes. Initialise
 * with zeros. */
typedef struct rnnlm_text {
  int32_t *words;
  uint64_t *first; /* [num_sentences + 1] first word of each sentence without unknown words */
  char
      *is_oov; /* [num_lines] whether the line has unknown words; lines without words are skipped */
  size_t num_words, num_sentences, num_lines;
  size_t word_room, line_room;
} rnnlm_text;
/* Clears `text` and reads up to max_lines lines into it. Returns false at the end of the file, or
 * after an error; *code is then the exit code of an error that it printed. */
bool rnnlm_read_text(cli_lines *lines, const wf_rnnlm *rnnlm, size_t max_lines, rnnlm_text *text,
                     int *code);
void rnnlm_text_free(rnnlm_text *text);

#endif
