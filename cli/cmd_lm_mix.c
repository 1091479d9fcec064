/* cmd_lm_mix.c - `warpfst lm mix`: linear interpolation of models. */
#include <inttypes.h>
#include <stdlib.h>

#include "lm_common.h"

typedef struct request {
  const char *output, *weights, *tune;
  lm_source source;
  wf_lm_mix_options options;
  size_t num; /* of models */
  wf_lm **lms;
  double *weight;
} request;

/* `0.7,0.3` */
static int parse_weights(request *r) {
  const char *at = r->weights;
  for (size_t i = 0; i < r->num; i++) {
    char *end;
    r->weight[i] = strtod(at, &end);
    if (end == at || *end != (i + 1 < r->num ? ',' : '\0'))
      return cli_usage("--weights: expected %zu number%s such as 0.7,0.3, found '%s'", r->num,
                       cli_s(r->num), r->weights);
    at = end + 1;
  }
  return CLI_OK;
}

static int load(request *r, char *const *paths) {
  int code = CLI_OK;
  r->lms = calloc(r->num, sizeof *r->lms);
  r->weight = calloc(r->num, sizeof *r->weight);
  if (r->lms == NULL || r->weight == NULL) return cli_out_of_memory();
  for (size_t i = 0; i < r->num; i++) r->weight[i] = 1 / (double)r->num;
  if (r->weights != NULL) code = parse_weights(r);
  for (size_t i = 0; i < r->num && code == CLI_OK; i++)
    code = lm_load(paths[i], &r->source, &r->lms[i], NULL);
  return code;
}

static int tune(request *r, char *const *paths, wf_error *err) {
  double perplexity;
  const wf_progress progress = cli_progress(r->source.quiet);
  const wf_status status = wf_lm_mix_weights((const wf_lm *const *)r->lms, r->num, r->tune,
                                             &r->options, r->weight, &perplexity, &progress, err);
  cli_progress_end();
  if (status != WF_OK) return cli_fail(err);
  if (r->source.quiet) return CLI_OK;
  for (size_t i = 0; i < r->num; i++) fprintf(stderr, "%.6f  %s\n", r->weight[i], paths[i]);
  fprintf(stderr, "perplexity of %s with these weights: %.6g\n", r->tune, perplexity);
  return CLI_OK;
}

static void print_stats(const wf_lm *lm, uint64_t num_scaled, double seconds) {
  wf_error err;
  wf_lm_info info;
  wf_lm_info_init(&info);
  if (wf_lm_get_info(lm, &info, &err) != WF_OK) return;
  for (int k = 1; k <= info.order; k++)
    fprintf(stderr, "%d-grams  %" PRIu64 "\n", k, info.num_ngrams[k]);
  if (num_scaled > 0)
    fprintf(stderr,
            "%" PRIu64
            " histories had no probability left for back-off; their probabilities were scaled to "
            "sum to 1\n",
            num_scaled);
  fprintf(stderr, "mixed in %.2f s, at most %.1f MB of memory\n", seconds,
          (double)cli_peak_bytes() / 1e6);
}

static int mix(request *r, char *const *paths) {
  wf_error err = {0};
  wf_lm *mixture = NULL;
  uint64_t num_scaled = 0;
  const double start = cli_now_s();
  int code = load(r, paths);
  if (code == CLI_OK && r->tune != NULL) code = tune(r, paths, &err);
  if (code != CLI_OK) return code;
  const wf_progress progress = cli_progress(r->source.quiet);
  wf_status status = wf_lm_mix((const wf_lm *const *)r->lms, r->num, r->weight, &r->options,
                               &mixture, &num_scaled, &progress, &err);
  cli_progress_end();
  if (status == WF_OK) status = wf_lm_write_arpa(mixture, r->output, &err);
  if (status != WF_OK)
    code = cli_fail(&err);
  else if (!r->source.quiet)
    print_stats(mixture, num_scaled, cli_now_s() - start);
  wf_lm_free(mixture);
  return code;
}

static const cli_rule rules[] = {
    {"weights", CLI_EXCLUDES, "tune"},
    {"ids", CLI_USELESS_WITHOUT, "tune"},
    {NULL, 0, NULL},
};

int cmd_lm_mix(int argc, char **argv) {
  request r = {.output = "-"};
  cli_parser parser = {
      .usage = "LM... [-o ARPA]",
      .about =
          "Mixes language models: the probability of a word is the weighted sum of its "
          "probabilities in the models (static linear interpolation, as SRILM's ngram -mix-lm).\n"
          "    warpfst lm mix domain.arpa general.arpa --tune=held-out.txt -o lm.arpa\n"
          "    warpfst lm mix domain.arpa general.arpa --weights=0.7,0.3 -o lm.arpa\n"
          "Without --weights and --tune all models have the same weight.",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &r.output, "FILE", "where to write ('-': standard output)");
  cli_flag_str(&parser, "weights", 0, &r.weights, "W1,W2,..",
               "weight of each model; they are scaled to sum to 1");
  cli_flag_str(&parser, "tune", 0, &r.tune, "TEXT",
               "find the weights that give this held-out text the highest probability, by EM");
  cli_flag_bool(&parser, "quiet", 'q', &r.source.quiet, "report nothing");
  cli_table(&parser, "arpa", &r.source.options);
  cli_table(&parser, "lm_mix", &r.options);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  r.num = (size_t)parser.num_args;
  code = mix(&r, parser.args);
  for (size_t i = 0; i < r.num && r.lms != NULL; i++) wf_lm_free(r.lms[i]);
  free(r.lms);
  free(r.weight);
  return code;
}
