/* cmd_rnnlm_train.c - `warpfst rnnlm train`: trains a recurrent model on a text. */
#include <inttypes.h>

#include "rnnlm_common.h"

static void print_epoch(void *user, const wf_rnnlm_epoch *epoch) {
  double rate = epoch->seconds > 0 ? (double)epoch->num_tokens / epoch->seconds : 0;
  cli_progress_end();
  if (*(const bool *)user)
    printf(
        "{\"epoch\": %d, \"learning_rate\": %.9g, \"train_perplexity\": %.9g, "
        "\"valid_perplexity\": %.9g, \"tokens\": %" PRIu64
        ", \"tokens_per_s\": %.0f, \"valid_oov_sentences\": %" PRIu64 "}\n",
        epoch->epoch, (double)epoch->learning_rate, epoch->train_perplexity,
        epoch->valid_perplexity, epoch->num_tokens, rate, epoch->num_oov);
  else
    printf(
        "epoch %2d  rate %-10.4g training perplexity %10.3f  validation perplexity %10.3f  %9.0f "
        "tokens/s\n",
        epoch->epoch, (double)epoch->learning_rate, epoch->train_perplexity,
        epoch->valid_perplexity, rate);
  fflush(stdout);
}

int cmd_rnnlm_train(int argc, char **argv) {
  wf_rnnlm_train_options options;
  const char *output = NULL;
  bool json = false;
  cli_parser parser = {
      .usage = "TRAIN VALID -o MODEL",
      .about =
          "Trains a recurrent model with hierarchical softmax and, with --maxent-cells, hashed "
          "n-gram features, on the text TRAIN, one sentence per line.\nThe perplexity of the text "
          "VALID "
          "decides when the learning rate is halved and when to stop. Writes MODEL and MODEL.nnet, "
          "which\nthe faster-rnnlm toolkit can also read. Example:\n"
          "    warpfst rnnlm train train.txt valid.txt -o lm --hidden=100 --maxent-cells=100000000 "
          "--num-threads=0",
      .min_args = 2,
      .max_args = 3};
  cli_flag_str(&parser, "output", 'o', &output, "MODEL",
               "name of the model to write, instead of the third argument");
  cli_flag_bool(&parser, "json", 0, &json, "print a line of JSON for each epoch instead of text");
  cli_table(&parser, "rnnlm_train", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL && parser.num_args > 2) output = parser.args[2];
  if (output == NULL) return cli_usage("no model to write: -o MODEL");
  wf_error err;
  wf_rnnlm *rnnlm = NULL;
  wf_progress progress = cli_progress(false);
  wf_status status = wf_rnnlm_train(parser.args[0], parser.args[1], &options, print_epoch, &json,
                                    &rnnlm, &progress, &err);
  cli_progress_end();
  if (status == WF_OK) status = wf_rnnlm_write(rnnlm, output, &err);
  wf_rnnlm_free(rnnlm);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
