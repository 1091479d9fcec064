/* rnnlm_scorer.c - see rnnlm_scorer.h. */
#include "rnnlm_scorer.h"

#include <inttypes.h>

static const cli_rule rules[] = {
    {"rnnlm-ngram", CLI_USELESS_WITHOUT, "rnnlm"},
    {"rnnlm-small", CLI_USELESS_WITHOUT, "rnnlm"},
    {"rnnlm-unk", CLI_USELESS_WITHOUT, "rnnlm"},
    {"rnnlm-device", CLI_USELESS_WITHOUT, "rnnlm"},
    {"rnn_scorer", CLI_USELESS_WITHOUT, "rnnlm"},
    {"small-scale", CLI_USELESS_WITHOUT, "rnnlm-small"},
    {"interpolation", CLI_USELESS_WITHOUT, "rnnlm-weight"},
    {NULL, 0, NULL},
};

void rnnlm_scorer_flags(cli_parser *parser, rnnlm_source *source) {
  cli_flag_str(
      parser, "rnnlm", 0, &source->path, "MODEL",
      "recurrent model: its cost is added to each word during the search (docs/how-to/rnnlm.md)");
  cli_flag_str(
      parser, "rnnlm-ngram", 0, &source->ngram_path, "FILE",
      "n-gram model to interpolate the recurrent model with (needs --rnnlm-weight below 1)");
  cli_flag_str(parser, "rnnlm-small", 0, &source->small_path, "FILE",
               "n-gram model that the graph was built with: its costs are subtracted");
  cli_flag_str(parser, "rnnlm-unk", 0, &source->unk, "WORD",
               "word of the recurrent model that replaces unknown words (default: <unk> in "
               "safetensors models, else none)");
  cli_flag_str(parser, "rnnlm-device", 0, &source->device, "DEVICE",
               "device of the recurrent model when the search is on the CPU: cpu, cuda or cuda:N "
               "(default: cpu)");
  cli_table(parser, "rnn_scorer", &source->options);
  cli_rules(parser, rules);
}

wf_status rnnlm_scorer_open(rnnlm_source *source, const wf_symbols *words, wf_error *err) {
  wf_rnnlm *loaded = NULL, *rnnlm = NULL;
  wf_lm *ngram = NULL, *small = NULL;
  wf_status status = wf_rnnlm_open(source->path, source->unk, &loaded, err);
  if (status == WF_OK) status = wf_rnnlm_on_device(loaded, source->device, &rnnlm, err);
  if (status == WF_OK && source->ngram_path != NULL)
    status = wf_lm_open(source->ngram_path, NULL, NULL, &ngram, NULL, NULL, err);
  if (status == WF_OK && source->small_path != NULL)
    status = wf_lm_open(source->small_path, NULL, NULL, &small, NULL, NULL, err);
  if (status == WF_OK)
    status =
        wf_scorer_from_rnnlm(rnnlm, ngram, small, words, &source->options, &source->scorer, err);
  wf_rnnlm_free(loaded);
  wf_rnnlm_free(rnnlm);
  wf_lm_free(ngram);
  wf_lm_free(small);
  return status;
}

void rnnlm_scorer_print(FILE *out, const rnnlm_source *source, bool json) {
  wf_error err;
  wf_rnn_scorer_stats stats;
  wf_rnn_scorer_stats_init(&stats);
  if (source->scorer == NULL || wf_scorer_get_rnn_stats(source->scorer, &stats, &err) != WF_OK)
    return;
  double hits = stats.num_requests > 0 ? (double)stats.num_hits / (double)stats.num_requests : 0;
  if (json)
    fprintf(out,
            ", \"rnnlm\": {\"requests\": %" PRIu64 ", \"hits\": %" PRIu64
            ", \"hit_ratio\": %.6f, \"costs\": %" PRIu64 ", \"rounds\": %" PRIu64
            ", \"histories\": %" PRIu64 ", \"hidden_states\": %" PRIu64 ", \"recomputed\": %" PRIu64
            ", \"evicted\": %" PRIu64 ", \"evicted_results\": %" PRIu64
            ", \"evicted_contexts\": %" PRIu64 "}",
            stats.num_requests, stats.num_hits, hits, stats.num_costs, stats.num_rounds,
            stats.num_histories, stats.num_hidden, stats.num_recomputed, stats.num_evicted,
            stats.num_evicted_results, stats.num_evicted_contexts);
  else
    fprintf(out,
            "recurrent model: %" PRIu64 " requests, %.1f%% of them cached; %" PRIu64
            " costs and %" PRIu64 " hidden states computed; evicted: %" PRIu64 " states, %" PRIu64
            " results, %" PRIu64 " contexts\n",
            stats.num_requests, 100 * hits, stats.num_costs, stats.num_hidden, stats.num_evicted,
            stats.num_evicted_results, stats.num_evicted_contexts);
}

void rnnlm_scorer_free(rnnlm_source *source) {
  wf_scorer_free(source->scorer);
  source->scorer = NULL;
}
