/* cmd_rnnlm.c - `warpfst rnnlm`: its list of subcommands, and `rnnlm info`. */
#include <inttypes.h>

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
