/* cmd_lm_prune.c - `warpfst lm prune` and `lm arpa`: write models as ARPA files, pruned or
 * unchanged. */
#include <inttypes.h>
#include <math.h>

#include "lm_common.h"

static void print_stats(const wf_lm *before, const wf_lm *after, const wf_lm_prune_stats *stats,
                        double read_s, double prune_s) {
  wf_error err;
  wf_lm_info a, b;
  wf_lm_info_init(&a);
  wf_lm_info_init(&b);
  if (wf_lm_get_info(before, &a, &err) != WF_OK || wf_lm_get_info(after, &b, &err) != WF_OK) return;
  for (int k = 1; k <= a.order; k++) {
    fprintf(stderr, "%d-grams  %" PRIu64 " of %" PRIu64, k, b.num_ngrams[k], a.num_ngrams[k]);
    if (k > 1 && isfinite(stats->least_worth[k]))
      fprintf(stderr, ", smallest worth %.3g", (double)stats->least_worth[k]);
    fprintf(stderr, "\n");
  }
  if (stats->word_mass < 1)
    fprintf(stderr, "the words kept have %.3f %% of the probability\n", 100 * stats->word_mass);
  if (stats->num_scaled > 0)
    fprintf(stderr,
            "%" PRIu64
            " histories had no probability left for back-off; their probabilities were scaled to "
            "sum to 1\n",
            stats->num_scaled);
  fprintf(stderr, "read in %.2f s, pruned in %.2f s, at most %.1f MB of memory\n", read_s, prune_s,
          (double)cli_peak_bytes() / 1e6);
}

int cmd_lm_prune(int argc, char **argv) {
  const char *output = NULL, *vocabulary_path = NULL;
  bool quiet = false;
  lm_source source = {0};
  wf_lm_prune_options options;
  cli_parser parser = {
      .usage = "LM [-o ARPA]",
      .about =
          "Makes a small model from a large one. Every n-gram of the small model is "
          "in the large model, and probabilities sum to 1 after each history.\n"
          "    warpfst lm prune large.arpa.gz --threshold=1e-8 -o small.arpa\n"
          "    warpfst lm prune en-us.lm.bin --max-words=20000 "
          "--max-ngrams=184000,97000 -o small.arpa\n"
          "Reports on standard error how many n-grams were kept.",
      .min_args = 1,
      .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &output, "FILE", "where to write ('-': standard output)");
  cli_flag_str(&parser, "vocabulary", 0, &vocabulary_path, "FILE",
               "words to keep: the first field of each line");
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "report nothing");
  lm_flags(&parser, &source);
  cli_table(&parser, "lm_prune", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) output = parser.num_args > 1 ? parser.args[1] : "-";
  wf_symbols *vocabulary = NULL;
  wf_lm *lm = NULL, *small = NULL;
  wf_error err;
  if (vocabulary_path != NULL)
    code = lm_read_vocabulary(vocabulary_path, &vocabulary);
  else
    code = CLI_OK;
  double start = cli_now_s();
  source.quiet = quiet;
  if (code == CLI_OK) code = lm_load(parser.args[0], &source, &lm, NULL);
  double read_s = cli_now_s() - start;
  wf_lm_prune_stats stats;
  wf_lm_prune_stats_init(&stats);
  wf_progress progress = cli_progress(quiet);
  if (code == CLI_OK &&
      wf_lm_prune(lm, vocabulary, &options, &small, &stats, &progress, &err) != WF_OK)
    code = cli_fail(&err);
  cli_progress_end();
  double prune_s = cli_now_s() - start - read_s;
  if (code == CLI_OK && wf_lm_write_arpa(small, output, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK && !quiet) print_stats(lm, small, &stats, read_s, prune_s);
  wf_lm_free(small);
  wf_lm_free(lm);
  wf_symbols_free(vocabulary);
  return code;
}

int cmd_lm_arpa(int argc, char **argv) {
  const char *output = NULL;
  lm_source source = {0};
  cli_parser parser = {.usage = "LM [-o ARPA]",
                       .about =
                           "Writes a model as an ARPA file: converts it from another format, or, "
                           "with --words, keeps "
                           "only the words of a table.",
                       .min_args = 1,
                       .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &output, "FILE", "where to write ('-': standard output)");
  lm_flags(&parser, &source);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) output = parser.num_args > 1 ? parser.args[1] : "-";
  wf_lm *lm;
  code = lm_load(parser.args[0], &source, &lm, NULL);
  if (code != CLI_OK) return code;
  wf_error err;
  if (wf_lm_write_arpa(lm, output, &err) != WF_OK) code = cli_fail(&err);
  wf_lm_free(lm);
  return code;
}
