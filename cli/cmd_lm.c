/* cmd_lm.c - `warpfst lm`: its list of subcommands, and `lm info`. */
#include <inttypes.h>

#include "lm_common.h"
#include "parts.h"

int cmd_lm(int argc, char **argv) {
  static const cli_part parts[] = {
      {"lm info", "orders, words, states and memory of a model", cmd_lm_info},
      {"lm query", "log10 probability of each word of a text, and the order of the n-gram used",
       cmd_lm_query},
      {"lm perplexity", "perplexity of a text", cmd_lm_perplexity},
      {"lm convert", "make a grammar acceptor (G) from a model", cmd_lm_convert},
      {"lm estimate", "estimate a model from texts, with modified Kneser-Ney smoothing",
       cmd_lm_estimate},
      {"lm mix", "mix models by linear interpolation", cmd_lm_mix},
      {"lm prune", "make a small model from a large one, by relative entropy, counts, or words",
       cmd_lm_prune},
      {"lm arpa", "write the model as an ARPA file", cmd_lm_arpa},
      {"lm build", "make a file for decode --lm from a model, or from the difference of two",
       cmd_lm_build},
      {"lm verify", "check a file made by lm build", cmd_lm_verify},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART LM [ARGUMENTS] [FLAGS]",
                      "n-gram language models in ARPA files, plain or gzipped, or in binary files "
                      "of CMU Sphinx (en-us.lm.bin) and KenLM (build_binary trie).\n"
                      "info, query, perplexity and convert also read files made by lm build.",
                      argc, argv);
}

static void print_json(const char *path, const wf_lm_info *info, const wf_arpa_stats *stats,
                       double seconds) {
  printf("{\"lm\": ");
  cli_json_string(stdout, path);
  printf(", \"order\": %d, \"ngrams\": [", info->order);
  for (int k = 1; k <= info->order; k++)
    printf("%s%" PRIu64, k > 1 ? ", " : "", info->num_ngrams[k]);
  printf("], \"words\": %" PRIu64 ", \"states\": %" PRIu64 ", \"arcs\": %" PRIu64
         ", \"bytes\": %" PRIu64,
         info->num_words, info->num_states, info->num_arcs, info->num_bytes);
  printf(", \"bos\": %d, \"eos\": %d, \"unk\": %d, \"has_unk\": %s", info->bos, info->eos,
         info->unk, info->has_unk ? "true" : "false");
  printf(", \"refused\": %" PRIu64 ", \"positive\": %" PRIu64 ", \"oov_words\": %" PRIu64
         ", \"oov_skipped\": %" PRIu64 ", \"oov_merged\": %" PRIu64 ", \"created\": %" PRIu64
         ", \"seconds\": %.3f, \"peak_bytes\": %" PRIu64 "}\n",
         stats->num_refused, stats->num_positive, stats->num_oov_words, stats->num_oov_skipped,
         stats->num_oov_merged, stats->num_created, seconds, cli_peak_bytes());
}

static void print_table(const wf_lm_info *info, const wf_arpa_stats *stats, double seconds) {
  printf("%-22s%d\n", "order", info->order);
  for (int k = 1; k <= info->order; k++)
    printf("%d-grams%*s%" PRIu64 "\n", k, k < 10 ? 15 : 14, "", info->num_ngrams[k]);
  printf("%-22s%" PRIu64 "%s\n", "words", info->num_words,
         info->has_unk ? " and <unk>" : ", no <unk>");
  printf("%-22s%" PRIu64 "\n%-22s%" PRIu64 "\n", "states", info->num_states, "arcs",
         info->num_arcs);
  printf("%-22s%.1f MB\n", "memory", (double)info->num_bytes / 1e6);
  const struct {
    const char *name;
    uint64_t count;
  } odd[] = {{"refused", stats->num_refused},
             {"probabilities above 1", stats->num_positive},
             {"words not in table", stats->num_oov_words},
             {"  n-grams skipped", stats->num_oov_skipped},
             {"  n-grams to <unk>", stats->num_oov_merged},
             {"contexts created", stats->num_created}};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
    if (odd[i].count > 0) printf("%-22s%" PRIu64 "\n", odd[i].name, odd[i].count);
  printf("%-22s%.2f s, at most %.1f MB of memory\n", "read in", seconds,
         (double)cli_peak_bytes() / 1e6);
}

int cmd_lm_info(int argc, char **argv) {
  bool json = false;
  lm_source source = {0};
  cli_parser parser = {.usage = "LM",
                       .about = "Describes a language model, and what is unusual in its file.",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_bool(&parser, "json", 0, &json, "one line of JSON instead of a table");
  lm_flags(&parser, &source);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (lm_is_wlm(parser.args[0])) return lm_report_wlm(parser.args[0], json);
  wf_lm *lm;
  wf_arpa_stats stats;
  wf_arpa_stats_init(&stats);
  double start = cli_now_s();
  code = lm_load(parser.args[0], &source, &lm, &stats);
  if (code != CLI_OK) return code;
  double seconds = cli_now_s() - start;
  wf_lm_info info;
  wf_error err;
  wf_lm_info_init(&info);
  if (wf_lm_get_info(lm, &info, &err) != WF_OK)
    code = cli_fail(&err);
  else if (json)
    print_json(parser.args[0], &info, &stats, seconds);
  else
    print_table(&info, &stats, seconds);
  wf_lm_free(lm);
  return code;
}
