/* cmd_lm_build.c - `warpfst lm build` and `lm verify`: make and check .wlm files, the models for
 * scoring during the search; also `lm info` of such a file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/first_bytes.h"
#include "lm_common.h"

bool lm_is_wlm(const char *path) {
  char magic[4];
  return wf__first_bytes(path, magic, sizeof magic) == sizeof magic &&
         memcmp(magic, "\x89WLM", 4) == 0;
}

static void print_info(const char *path, const wf_wlm_info *info, double seconds, bool json) {
  double per_ngram = 0;
  for (int k = 1; k <= info->order; k++) per_ngram += (double)info->num_ngrams[k];
  per_ngram = (double)info->file_bytes / per_ngram;
  if (json) {
    printf("{\"lm\": ");
    cli_json_string(stdout, path);
    printf(", \"order\": %d, \"ngrams\": [", info->order);
    for (int k = 1; k <= info->order; k++)
      printf("%s%" PRIu64, k > 1 ? ", " : "", info->num_ngrams[k]);
    printf("], \"words\": %" PRIu64 ", \"states\": %" PRIu64 ", \"arcs\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"index_bytes\": %" PRIu64,
           info->num_words, info->num_states, info->num_arcs, info->file_bytes, info->index_bytes);
    printf(
        ", \"scale\": %g, \"difference\": %s, \"packed\": %s, \"cost_bits\": %d, \"has_unk\": %s, "
        "\"seconds\": %.3f}\n",
        (double)info->scale, info->difference ? "true" : "false", info->packed ? "true" : "false",
        info->cost_bits, info->has_unk ? "true" : "false", seconds);
    return;
  }
  printf("%-22s%d\n", "order", info->order);
  for (int k = 1; k <= info->order; k++)
    printf("%d-grams%*s%" PRIu64 "\n", k, k < 10 ? 15 : 14, "", info->num_ngrams[k]);
  printf("%-22s%" PRIu64 "%s\n", "words", info->num_words,
         info->has_unk ? " and <unk>" : ", no <unk>");
  printf("%-22s%" PRIu64 "\n%-22s%" PRIu64 "\n", "states", info->num_states, "arcs",
         info->num_arcs);
  printf("%-22s%s, scale %g\n", "costs", info->difference ? "large - small" : "of the model",
         (double)info->scale);
  printf("%-22s%s, %d bits per cost\n", "arcs", info->packed ? "packed" : "12 bytes",
         info->cost_bits);
  printf("%-22s%.1f MB, %.2f bytes per n-gram; index %.1f MB, %.0f %%\n", "file",
         (double)info->file_bytes / 1e6, per_ngram, (double)info->index_bytes / 1e6,
         100 * (double)info->index_bytes / (double)info->file_bytes);
  printf("%-22s%.3f s\n", "opened in", seconds);
}

int lm_report_wlm(const char *path, bool json) {
  wf_error err = {0};
  wf_wlm *lm;
  wf_wlm_info info;
  wf_wlm_info_init(&info);
  double start = cli_now_s();
  if (wf_wlm_open(path, &lm, &err) != WF_OK) return cli_fail(&err);
  double seconds = cli_now_s() - start;
  int code = wf_wlm_get_info(lm, &info, &err) == WF_OK ? CLI_OK : cli_fail(&err);
  if (code == CLI_OK) print_info(path, &info, seconds, json);
  wf_wlm_free(lm);
  return code;
}

static void print_stats(const wf_wlm_stats *stats, const wf_wlm_options *options, double seconds) {
  const struct {
    const char *what;
    uint64_t count;
  } counts[] = {
      {"n-grams of the small model were not in the large model and have been added",
       stats->num_added},
      {"words of the small model were not in the large model; they have the cost of its <unk>",
       stats->num_words_added},
      {"n-grams skipped: they contain words that are not in the small model", stats->num_outside},
      {"contexts of n-grams were missing and have been created", stats->num_created}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (counts[i].count > 0) fprintf(stderr, "%" PRIu64 " %s\n", counts[i].count, counts[i].what);
  if (options->pack == 2)
    fprintf(stderr, "costs rounded to %d bits: off by %.5f nats on average, by %.5f at most\n",
            options->cost_bits, stats->loss_mean, stats->loss_worst);
  fprintf(stderr, "built in %.2f s, at most %.1f MB of memory\n", seconds,
          (double)cli_peak_bytes() / 1e6);
}

static const cli_rule rules[] = {
    {"cost-bits", CLI_USELESS_WITHOUT, "pack=codebook"},
    {NULL, 0, NULL},
};

int cmd_lm_build(int argc, char **argv) {
  const char *output = NULL, *arpa = NULL;
  bool quiet = false;
  wf_arpa_options reader;
  wf_wlm_options options;
  cli_parser parser = {
      .usage = "LM [-o OUT.wlm]",
      .about =
          "Makes the file of a large model for 'warpfst decode --lm'. The file is memory-mapped, "
          "so it opens at once.\n"
          "    warpfst lm build large.arpa.gz -o large.wlm\n"
          "    warpfst lm build --arpa large.arpa.gz --subtract small.arpa -o difference.wlm\n"
          "With --subtract, costs are those of the large model minus those of the small one, for "
          "graphs built with the small model.\nThe ARPA file may be larger than memory.",
      .min_args = 0,
      .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &output, "FILE",
               "file to write, instead of the last argument");
  cli_flag_str(&parser, "arpa", 0, &arpa, "FILE",
               "the large model, instead of the first argument: ARPA, plain or gzipped, '-' for "
               "standard input, or a binary file of CMU Sphinx or KenLM (trie)");
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "report nothing");
  cli_table(&parser, "arpa", &reader);
  cli_table(&parser, "wlm", &options);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  int next = 0;
  if (arpa == NULL && parser.num_args > 0) arpa = parser.args[next++];
  if (output == NULL && parser.num_args > next) output = parser.args[next++];
  if (arpa == NULL || output == NULL || next < parser.num_args)
    return cli_usage("expected one model and one output");
  wf_error err = {0};
  wf_wlm_stats stats;
  wf_wlm_stats_init(&stats);
  wf_progress progress = cli_progress(quiet);
  double start = cli_now_s();
  wf_status status = wf_wlm_build(arpa, output, &reader, &options, &stats, NULL, &progress, &err);
  cli_progress_end();
  if (status != WF_OK) return cli_fail(&err);
  if (!quiet) print_stats(&stats, &options, cli_now_s() - start);
  return CLI_OK;
}

int cmd_lm_verify(int argc, char **argv) {
  cli_parser parser = {
      .usage = "LM.wlm",
      .about =
          "Checks the checksums, the numbers and the look-up tables of a model made by 'warpfst "
          "lm build', or reads a model of another format. Prints nothing if the file is valid.",
      .min_args = 1,
      .max_args = 1};
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  wf_wlm *lm;
  wf_progress progress = cli_progress(false);
  wf_status status = wf_wlm_open(parser.args[0], &lm, &err);
  if (status == WF_OK) status = wf_wlm_verify(lm, &progress, &err);
  cli_progress_end();
  wf_wlm_free(lm);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
