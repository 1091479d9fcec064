/* cmd_rnnlm.c - `warpfst rnnlm`: its list of subcommands, `rnnlm info`, and the reading of models
 * and texts for the other subcommands. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "rnnlm_common.h"

int cmd_rnnlm(int argc, char **argv) {
  static const cli_part parts[] = {
      {"rnnlm info", "layers, output and sizes of a model", cmd_rnnlm_info},
      {"rnnlm score", "log10 probability of sentences, and of their words", cmd_rnnlm_score},
      {"rnnlm perplexity", "perplexity of a text", cmd_rnnlm_perplexity},
      {"rnnlm train", "train a model on a text", cmd_rnnlm_train},
      {"rnnlm rescore", "rescore n-best lists", cmd_rnnlm_rescore},
      {"rnnlm lattice", "rescore lattices", cmd_rnnlm_lattice},
  };
  return cli_run_part(
      parts, sizeof parts / sizeof *parts, "PART MODEL [ARGUMENTS] [FLAGS]",
      "Recurrent language models. MODEL is NAME, with NAME.nnet in the same folder "
      "(faster-rnnlm), or NAME.safetensors, with NAME.words in the same folder (PyTorch).",
      argc, argv);
}

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

/* --- info -------------------------------------------------------------------------------- */

static const char *const output_names[] = {"hierarchical softmax", "NCE", "softmax"};

static void print_json(const char *path, const wf_rnnlm_info *info) {
  printf("{\"rnnlm\": ");
  cli_json_string(stdout, path);
  printf(", \"layer_type\": ");
  cli_json_string(stdout, info->layer_type);
  printf(", \"layers\": %d, \"hidden_size\": %d, \"embedding_size\": %d, \"words\": %" PRIu64
         ", \"output\": \"%s\"",
         info->num_layers, info->hidden_size, info->embedding_size, info->num_words,
         output_names[info->output]);
  if (info->output == WF_RNNLM_HIERARCHICAL)
    printf(", \"arity\": %d, \"max_path\": %d", info->arity, info->max_path);
  if (info->output == WF_RNNLM_NCE) printf(", \"nce_lnz\": %.9g", (double)info->nce_lnz);
  printf(", \"maxent_order\": %d, \"maxent_cells\": %" PRIu64
         ", \"reverse\": %s, \"weights\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"unk\": %d}\n",
         info->maxent_order, info->maxent_cells, info->reverse ? "true" : "false",
         info->num_weights, info->num_bytes, info->unk);
}

static void print_text(const wf_rnnlm_info *info) {
  printf("%-16s%d x %s\n%-16s%d\n%-16s%d\n%-16s%" PRIu64 "\n%-16s%s\n", "layers", info->num_layers,
         info->layer_type, "hidden size", info->hidden_size, "embedding size", info->embedding_size,
         "words", info->num_words, "output", output_names[info->output]);
  if (info->output == WF_RNNLM_HIERARCHICAL)
    printf("%-16s%d\n%-16s%d\n", "arity", info->arity, "longest path", info->max_path);
  if (info->output == WF_RNNLM_NCE) printf("%-16s%g\n", "ln Z", (double)info->nce_lnz);
  printf("%-16s%d\n%-16s%" PRIu64 "\n%-16s%s\n%-16s%" PRIu64 "\n%-16s%.1f MiB\n", "MaxEnt order",
         info->maxent_order, "MaxEnt cells", info->maxent_cells, "direction",
         info->reverse ? "from the last word" : "from the first word", "weights", info->num_weights,
         "memory", (double)info->num_bytes / 1048576);
}

int cmd_rnnlm_info(int argc, char **argv) {
  bool json = false;
  const char *unk = NULL;
  cli_parser parser = {.usage = "MODEL",
                       .about = "Describes a recurrent language model.",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_bool(&parser, "json", 0, &json, "one line of JSON instead of a table");
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_rnnlm *rnnlm;
  code = rnnlm_load(parser.args[0], unk, NULL, &rnnlm);
  if (code != CLI_OK) return code;
  wf_error err;
  wf_rnnlm_info info;
  wf_rnnlm_info_init(&info);
  code = wf_rnnlm_get_info(rnnlm, &info, &err) == WF_OK ? CLI_OK : cli_fail(&err);
  if (code == CLI_OK && json) print_json(parser.args[0], &info);
  if (code == CLI_OK && !json) print_text(&info);
  wf_rnnlm_free(rnnlm);
  return code;
}
