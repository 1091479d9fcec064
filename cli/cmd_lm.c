/* cmd_lm.c - `warpfst lm`: its list of subcommands, `lm info` and `lm verify`. */
#include <inttypes.h>

#include "lm_common.h"
#include "parts.h"

int cmd_lm(int argc, char **argv) {
  static const cli_part parts[] = {
      {"lm info", "orders, words, states and memory of a model", cmd_lm_info},
      {"lm query", "log10 probability of each word of a text, and the order of the n-gram used",
       cmd_lm_query},
      {"lm perplexity", "perplexity of a text", cmd_lm_perplexity},
      {"lm convert",
       "make a memory-mapped file (.wlm) from a model, from the difference of two, or "
       "a grammar acceptor (G)",
       cmd_lm_convert},
      {"lm estimate", "estimate a model from texts, with modified Kneser-Ney smoothing",
       cmd_lm_estimate},
      {"lm mix", "mix models by linear interpolation", cmd_lm_mix},
      {"lm prune", "make a small model from a large one, by relative entropy, counts, or words",
       cmd_lm_prune},
      {"lm arpa", "write the model as an ARPA file", cmd_lm_arpa},
      {"lm build", "the old name of lm convert -o OUT.wlm", cmd_lm_build},
      {"lm verify", "check a .wlm file", cmd_lm_verify},
  };
  return cli_run_part(
      parts, sizeof parts / sizeof *parts, "PART LM [ARGUMENTS] [FLAGS]",
      "n-gram language models in ARPA files, plain or gzipped, in binary files of "
      "KenLM (build_binary trie) and CMU Sphinx (en-us.lm.bin), or in memory-mapped "
      ".wlm files.\nEvery command reads every format.",
      argc, argv);
}

static const char *truth(bool value) { return value ? "true" : "false"; }

static void print_json(const char *path, const wf_lm_info *info, const wf_arpa_stats *stats,
                       double seconds) {
  printf("{\"lm\": ");
  cli_json_string(stdout, path);
  printf(", \"order\": %d, \"ngrams\": [", info->order);
  for (int k = 1; k <= info->order; k++)
    printf("%s%" PRIu64, k > 1 ? ", " : "", info->num_ngrams[k]);
  printf("], \"words\": %" PRIu64 ", \"states\": %" PRIu64 ", \"arcs\": %" PRIu64
         ", \"bytes\": %" PRIu64 ", \"bos\": %d, \"eos\": %d, \"unk\": %d, \"has_unk\": %s",
         info->num_words, info->num_states, info->num_arcs, info->num_bytes, info->bos, info->eos,
         info->unk, truth(info->has_unk));
  if (info->mapped)
    printf(", \"index_bytes\": %" PRIu64
           ", \"scale\": %g, \"difference\": %s, \"packed\": %s, \"cost_bits\": %d",
           info->index_bytes, (double)info->scale, truth(info->difference), truth(info->packed),
           info->cost_bits);
  else
    printf(", \"refused\": %" PRIu64 ", \"positive\": %" PRIu64 ", \"oov_words\": %" PRIu64
           ", \"oov_skipped\": %" PRIu64 ", \"oov_merged\": %" PRIu64 ", \"created\": %" PRIu64,
           stats->num_refused, stats->num_positive, stats->num_oov_words, stats->num_oov_skipped,
           stats->num_oov_merged, stats->num_created);
  printf(", \"seconds\": %.3f, \"peak_bytes\": %" PRIu64 "}\n", seconds, cli_peak_bytes());
}

static void print_mapped(const wf_lm_info *info, double seconds) {
  double num = 0, bytes = (double)info->num_bytes, index = (double)info->index_bytes;
  for (int k = 1; k <= info->order; k++) num += (double)info->num_ngrams[k];
  printf("%-22s%s, scale %g\n", "costs", info->difference ? "large - small" : "of the model",
         (double)info->scale);
  printf("%-22s%s, %d bits per cost\n", "arcs", info->packed ? "packed" : "12 bytes",
         info->cost_bits);
  printf("%-22s%.1f MB, %.2f bytes per n-gram; index %.1f MB, %.0f %%\n", "file", bytes / 1e6,
         bytes / num, index / 1e6, 100 * index / bytes);
  printf("%-22s%.3f s\n", "opened in", seconds);
}

static void print_read(const wf_lm_info *info, const wf_arpa_stats *stats, double seconds) {
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

static void print_table(const wf_lm_info *info, const wf_arpa_stats *stats, double seconds) {
  printf("%-22s%d\n", "order", info->order);
  for (int k = 1; k <= info->order; k++)
    printf("%d-grams%*s%" PRIu64 "\n", k, k < 10 ? 15 : 14, "", info->num_ngrams[k]);
  printf("%-22s%" PRIu64 "%s\n", "words", info->num_words,
         info->has_unk ? " and <unk>" : ", no <unk>");
  printf("%-22s%" PRIu64 "\n%-22s%" PRIu64 "\n", "states", info->num_states, "arcs",
         info->num_arcs);
  if (info->mapped)
    print_mapped(info, seconds);
  else
    print_read(info, stats, seconds);
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

int cmd_lm_verify(int argc, char **argv) {
  cli_parser parser = {.usage = "LM.wlm",
                       .about =
                           "Checks the checksums, the numbers and the look-up tables of a .wlm "
                           "file, or reads a model of another format. Prints nothing if the "
                           "file is valid.",
                       .min_args = 1,
                       .max_args = 1};
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  wf_lm *lm;
  wf_progress progress = cli_progress(false);
  wf_status status = wf_lm_open_mapped(parser.args[0], &lm, &err);
  if (status == WF_OK) status = wf_lm_verify(lm, &progress, &err);
  cli_progress_end();
  wf_lm_free(lm);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
