/* cmd_am.c - `warpfst am`: describes a hybrid acoustic model and lists the score column of each
 * label. */

#include "am_model.h"
#include "parts.h"

static int am_info(int argc, char **argv);
static int am_columns(int argc, char **argv);

int cmd_am(int argc, char **argv) {
  static const cli_part parts[] = {
      {"am info", "phones, context, labels, columns of the scores", am_info},
      {"am columns", "the column of each label (Kaldi: the pdf of each transition-id)", am_columns},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART MODEL [FLAGS]",
                      "Hybrid HMM acoustic models: Kaldi's final.mdl (GMM, nnet3, chain), the "
                      "folder that contains it, or a model folder of CMU Sphinx.",
                      argc, argv);
}

static void print_info(const am_source *source, const wf_hmm_info *info, bool json) {
  bool sphinx = am_is_sphinx(source);
  const char *kind = sphinx ? "sphinx" : "kaldi", *labels = sphinx ? "labels" : "transition-ids",
             *columns = sphinx ? "senones" : "pdfs";
  if (json) {
    printf("{\"model\": ");
    cli_json_string(stdout, source->path);
    printf(
        ", \"kind\": \"%s\", \"phones\": %d, \"width\": %d, \"central\": %d, \"labels\": %d, "
        "\"columns\": %d, \"identity\": %s}\n",
        kind, info->num_phones, info->width, info->central, info->num_labels, info->num_columns,
        info->identity ? "true" : "false");
    return;
  }
  printf("%-22s%s\n%-22s%d\n", "kind", kind, "phones", info->num_phones);
  if (info->width > 0)
    printf("%-22s%d phones, the central one at %d\n", "context", info->width, info->central);
  else
    printf("%-22snot known without the tree\n", "context");
  printf("%-22s%d\n%-22s%d\n", labels, info->num_labels, columns, info->num_columns);
  if (info->identity) printf("%-22s%s\n", "column", "label - 1");
}

static int am_info(int argc, char **argv) {
  bool json = false;
  am_source source = {0};
  cli_parser parser = {.usage = "MODEL [--tree=FILE] [--lang=FOLDER]",
                       .about = "Describes an acoustic model.",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_bool(&parser, "json", 0, &json, "one line of JSON instead of a table");
  am_flags(&parser, &source);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  source.path = parser.args[0];
  wf_hmm *hmm;
  wf_hmm_info info;
  wf_error err = {0};
  wf_hmm_info_init(&info);
  if (am_read(&source, false, &hmm, &err) != WF_OK) return cli_fail(&err);
  if (wf_hmm_get_info(hmm, &info, &err) != WF_OK)
    code = cli_fail(&err);
  else
    print_info(&source, &info, json);
  wf_hmm_free(hmm);
  return code >= 0 ? code : CLI_OK;
}

static int am_columns(int argc, char **argv) {
  const char *output = "-";
  am_source source = {0};
  cli_parser parser = {.usage = "MODEL [-o FILE]",
                       .about =
                           "Writes a line `label column` for each input label of the model's "
                           "graphs, for `warpfst decode --columns`.\n"
                           "(`warpfst decode --am=MODEL` does not need this file.)",
                       .min_args = 1,
                       .max_args = 1};
  cli_flag_str(&parser, "output", 'o', &output, "FILE",
               "where to write ('-': standard output, the default)");
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  source.path = parser.args[0];
  wf_hmm *hmm;
  wf_error err = {0};
  if (am_read(&source, false, &hmm, &err) != WF_OK) return cli_fail(&err);
  code = am_write_columns(hmm, output);
  wf_hmm_free(hmm);
  return code;
}
