/* rnnlm_source.c - reads the model and the text of a subcommand of `warpfst rnnlm`. */
#include <stdlib.h>
#include <string.h>

#include "rnnlm_common.h"

int rnnlm_load(const char *path, const char *unk_symbol, const char *device, wf_rnnlm **out) {
  wf_error err;
  wf_rnnlm *rnnlm = NULL;
  wf_status status = wf_rnnlm_open(path, unk_symbol, &rnnlm, &err);
  if (status == WF_OK) status = wf_rnnlm_on_device(rnnlm, device, out, &err);
  wf_rnnlm_free(rnnlm);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}

/* --- texts ------------------------------------------------------------------------------- */

static bool make_room(rnnlm_text *text) {
  if (text->num_words == text->word_room) {
    text->word_room = text->word_room * 2 + 4096;
    int32_t *words = realloc(text->words, text->word_room * sizeof *words);
    if (words == NULL) return false;
    text->words = words;
  }
  if (text->num_lines + 1 >= text->line_room) {
    text->line_room = text->line_room * 2 + 1024;
    uint64_t *first = realloc(text->first, text->line_room * sizeof *first);
    if (first == NULL) return false;
    text->first = first;
    char *is_oov = realloc(text->is_oov, text->line_room);
    if (is_oov == NULL) return false;
    text->is_oov = is_oov;
  }
  return true;
}

/* Splits `line` into words and adds them as a sentence. A line with an unknown word only adds its
 * is_oov flag; a line without words adds nothing. */
static bool add_line(const wf_rnnlm *rnnlm, char *line, rnnlm_text *text) {
  static const char blanks[] = " \t\r\n";
  size_t before = text->num_words;
  bool oov = false, any = false;
  char *rest = NULL;
  if (!make_room(text)) return false;
  for (char *word = strtok_r(line, blanks, &rest); word != NULL;
       word = strtok_r(NULL, blanks, &rest)) {
    if (!make_room(text)) return false;
    any = true;
    text->words[text->num_words] = wf_rnnlm_find(rnnlm, word);
    oov |= text->words[text->num_words++] < 0;
  }
  if (!any) return true;
  if (oov) text->num_words = before;
  text->is_oov[text->num_lines++] = oov;
  if (!oov) text->first[++text->num_sentences] = text->num_words;
  return true;
}

bool rnnlm_read_text(cli_lines *lines, const wf_rnnlm *rnnlm, size_t max_lines, rnnlm_text *text,
                     int *code) {
  *code = CLI_OK;
  text->num_words = text->num_sentences = text->num_lines = 0;
  bool fine = make_room(text);
  if (fine) text->first[0] = 0;
  while (fine && text->num_lines < max_lines && cli_lines_next(lines)) {
    if (memchr(lines->text, '\0', lines->size) != NULL || memcmp(lines->text, "\x1f\x8b", 2) == 0) {
      cli_note("%s: not plain text", lines->path);
      *code = CLI_INPUT;
      break;
    }
    fine = add_line(rnnlm, lines->text, text);
  }
  if (!fine) *code = cli_out_of_memory();
  return *code == CLI_OK && text->num_lines > 0;
}

void rnnlm_text_free(rnnlm_text *text) {
  free(text->words);
  free(text->first);
  free(text->is_oov);
}
