/* cmd_replace.c - the subcommands replace, difference and encode. */
#include <errno.h>
#include <stdlib.h>

#include "fst_output.h"

/* --- replace ----------------------------------------------------------------------------- */

static int parse_label(const char *text, int32_t *out) {
  char *stop;
  errno = 0;
  long value = strtol(text, &stop, 10);
  if (stop == text || *stop != '\0' || errno != 0 || value < 1 || value > INT32_MAX)
    return cli_usage("'%s' is not a label, expected a number from 1 to 2147483647", text);
  *out = (int32_t)value;
  return CLI_OK;
}

static int replace(const cli_parser *parser, size_t count, const wf_replace_options *options,
                   wf_fst **out) {
  wf_error err = {0};
  int code = CLI_OK;
  wf_fst **fsts = calloc(count, sizeof *fsts);
  int32_t *labels = calloc(count, sizeof *labels);
  if (fsts == NULL || labels == NULL) {
    code = cli_out_of_memory();
  }
  for (size_t k = 0; k < count && code == CLI_OK; k++) {
    code = parse_label(parser->args[2 * k + 1], &labels[k]);
    if (code == CLI_OK) code = cli_read_fst(parser->args[2 * k], &fsts[k]);
  }
  if (code == CLI_OK &&
      wf_replace((const wf_fst *const *)fsts, labels, count, options, out, &err) != WF_OK)
    code = cli_fail(&err);
  for (size_t k = 0; k < count && fsts != NULL; k++) wf_fst_free(fsts[k]);
  free(fsts);
  free(labels);
  return code;
}

int cmd_replace(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_replace_options options;
  cli_parser parser = {
      .usage = "ROOT LABEL [FST LABEL]... [OUT]",
      .about =
          "Replaces the arcs of ROOT whose output label is one of the LABELs by copies of the "
          "FST before it, also in the copies.\n"
          "Example:\n"
          "  warpfst replace sentence.fst 1001 number.fst 1002 date.fst 1003 out.fst",
      .min_args = 2,
      .max_args = -1};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "replace", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args % 2 != 0) output = parser.args[parser.num_args - 1];
  wf_fst *out = NULL;
  code = replace(&parser, (size_t)parser.num_args / 2, &options, &out);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(out);
  return code;
}

/* --- difference -------------------------------------------------------------------------- */

int cmd_difference(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  wf_difference_options options;
  wf_error err = {0};
  cli_parser parser = {
      .usage = "IN1 IN2 [OUT]",
      .about =
          "Keeps the paths of IN1 whose output string IN2 does not accept. IN2 is an acceptor "
          "without weights.",
      .min_args = 2,
      .max_args = 3};
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "difference", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 3) output = parser.args[2];
  wf_fst *a = NULL, *b = NULL, *out = NULL;
  code = cli_read_fst(parser.args[0], &a);
  if (code == CLI_OK) code = cli_read_fst(parser.args[1], &b);
  if (code == CLI_OK && wf_difference(a, b, &options, &out, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(a);
  wf_fst_free(b);
  wf_fst_free(out);
  return code;
}

/* --- encode ------------------------------------------------------------------------------ */

struct encoding {
  bool labels, weights, reuse, decode;
};

static wf_status encode(const struct encoding *how, const wf_fst *in, const char *table,
                        wf_fst **out, wf_error *err) {
  wf_encoder *encoder = NULL;
  wf_status status = how->reuse || how->decode
                         ? wf_encoder_read(table, &encoder, err)
                         : wf_encoder_create(wf_fst_get_view(in).semiring, how->labels,
                                             how->weights, &encoder, err);
  if (status == WF_OK)
    status = how->decode ? wf_encoder_decode(encoder, in, out, err)
                         : wf_encoder_encode(encoder, in, out, err);
  if (status == WF_OK && !how->decode) status = wf_encoder_write(encoder, table, err);
  wf_encoder_free(encoder);
  return status;
}

int cmd_encode(int argc, char **argv) {
  const char *output = NULL, *format = NULL;
  struct encoding how = {0};
  wf_error err = {0};
  cli_parser parser = {
      .usage = "IN TABLE [OUT]",
      .about =
          "Encodes labels, weights or both of the arcs as one label each, and writes the table "
          "of the labels; or decodes them by the table. Tables are those of OpenFst's "
          "fstencode.\n"
          "Example:\n"
          "  warpfst encode --encode_labels a.fst table b.fst\n"
          "  warpfst encode --decode b.fst table c.fst",
      .min_args = 2,
      .max_args = 3};
  cli_flag_bool(&parser, "encode_labels", 0, &how.labels, "encode input and output labels");
  cli_flag_bool(&parser, "encode_weights", 0, &how.weights, "encode weights");
  cli_flag_bool(&parser, "encode_reuse", 0, &how.reuse,
                "read TABLE, and add the labels that it does not have");
  cli_flag_bool(&parser, "decode", 0, &how.decode, "decode IN by TABLE");
  cli_flag_output(&parser, &output, &format);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 3) output = parser.args[2];
  wf_fst *in = NULL, *out = NULL;
  code = cli_read_fst(parser.args[0], &in);
  if (code == CLI_OK && encode(&how, in, parser.args[1], &out, &err) != WF_OK)
    code = cli_fail(&err);
  if (code == CLI_OK) code = cli_write_fst(out, output, format);
  wf_fst_free(in);
  wf_fst_free(out);
  return code;
}
