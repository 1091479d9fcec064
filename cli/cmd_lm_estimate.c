/* cmd_lm_estimate.c - `warpfst lm estimate`: a model from texts. */
#include <inttypes.h>

#include "lm_common.h"

static void print_stats(const wf_lm_estimate_stats *stats, int order, bool closed, double seconds) {
  fprintf(stderr, "%" PRIu64 " words in %" PRIu64 " sentences", stats->num_words,
          stats->num_sentences);
  if (stats->num_empty > 0)
    fprintf(stderr, ", of which %" PRIu64 " are empty lines", stats->num_empty);
  if (closed) fprintf(stderr, "; %" PRIu64 " words are not in the vocabulary", stats->num_unknown);
  fprintf(stderr, "\n");
  for (int k = 1; k <= order; k++) {
    fprintf(stderr, "%d-grams  %" PRIu64, k, stats->num_kept[k]);
    if (stats->num_kept[k] < stats->num_found[k])
      fprintf(stderr, " of %" PRIu64, stats->num_found[k]);
    if (stats->discount_1[k] > 0)
      fprintf(stderr, ", discounts %.4f, %.4f, %.4f%s", stats->discount_1[k], stats->discount_2[k],
              stats->discount_3[k], stats->fallback[k] != 0 ? " (fallback)" : "");
    fprintf(stderr, "\n");
  }
  fprintf(stderr, "estimated in %.2f s, at most %.1f MB of memory\n", seconds,
          (double)cli_peak_bytes() / 1e6);
}

static int estimate(const cli_parser *parser, const wf_lm_estimate_options *options,
                    const char *vocabulary_path, const char *output, bool quiet) {
  static const char *const standard_input = "-";
  const char *const *texts =
      parser->num_args > 0 ? (const char *const *)parser->args : &standard_input;
  wf_error err = {0};
  wf_symbols *vocabulary = NULL;
  wf_lm_estimate_stats stats;
  wf_lm_estimate_stats_init(&stats);
  int code = vocabulary_path != NULL ? lm_read_vocabulary(vocabulary_path, &vocabulary) : CLI_OK;
  const double start = cli_now_s();
  const wf_progress progress = cli_progress(quiet);
  if (code == CLI_OK &&
      wf_lm_estimate_arpa(texts, parser->num_args > 0 ? (size_t)parser->num_args : 1, vocabulary,
                          options, output, &stats, &progress, &err) != WF_OK)
    code = cli_fail(&err);
  cli_progress_end();
  if (code == CLI_OK && !quiet)
    print_stats(&stats, options->order, vocabulary != NULL, cli_now_s() - start);
  wf_symbols_free(vocabulary);
  return code;
}

int cmd_lm_estimate(int argc, char **argv) {
  const char *output = "-", *vocabulary = NULL;
  bool quiet = false;
  wf_lm_estimate_options options;
  cli_parser parser = {
      .usage = "[TEXT...] [-o ARPA]",
      .about =
          "Estimates a language model from texts with one sentence per line (plain or gzipped; "
          "default: standard input), with interpolated modified Kneser-Ney smoothing as KenLM's "
          "lmplz does.\n"
          "    warpfst lm estimate text.gz --order=4 --prune=0,0,1 -o lm.arpa.gz\n"
          "An empty line counts as a sentence without words. The texts may be larger than memory. "
          "Reports counts and discounts on standard error.",
      .min_args = 0,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "FILE", "where to write ('-': standard output)");
  cli_flag_str(&parser, "vocabulary", 0, &vocabulary, "FILE",
               "words of the model, the first field of each line; other words of the texts count "
               "as <unk> (default: all words of the texts)");
  cli_flag_bool(&parser, "quiet", 'q', &quiet, "report nothing");
  cli_table(&parser, "lm_estimate", &options);
  const int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  return estimate(&parser, &options, vocabulary, output, quiet);
}
