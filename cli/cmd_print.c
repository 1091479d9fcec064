/* cmd_print.c - `warpfst print`: prints an fst as AT&T text, with the flags of OpenFst's fstprint.
 */
#include "fst_output.h"
#include "print_strings.h"

/* Options of --strings. */
struct strings {
  bool wanted;
  const char *type_name;
  int64_t limit;
};

static int print_strings(const wf_fst *fst, const struct strings *how, const char *output,
                         const char *const paths[2], bool numeric) {
  cli_token_type type;
  wf_symbols *read[2] = {NULL, NULL};
  const wf_symbols *tables[2] = {wf_fst_isymbols(fst), wf_fst_osymbols(fst)};
  wf_error err = {0};
  int code = cli_token_type_of(how->type_name, &type);
  for (int side = 0; side < 2 && code == CLI_OK; side++) {
    if (paths[side] != NULL && wf_symbols_read(paths[side], &read[side], &err) != WF_OK)
      code = cli_fail(&err);
    if (read[side] != NULL) tables[side] = read[side];
    if (numeric) tables[side] = NULL;
  }
  if (code == CLI_OK) code = cli_print_strings(fst, tables, type, how->limit, NULL, output);
  wf_symbols_free(read[0]);
  wf_symbols_free(read[1]);
  return code;
}

static wf_status print(const wf_fst *fst, const char *output, const char *isymbols_path,
                       const char *osymbols_path, const wf_text_options *options, wf_error *err) {
  wf_symbols *isymbols = NULL, *osymbols = NULL;
  wf_status status = WF_OK;
  if (isymbols_path != NULL && !options->numeric)
    status = wf_symbols_read(isymbols_path, &isymbols, err);
  if (status == WF_OK && osymbols_path != NULL && !options->numeric)
    status = wf_symbols_read(osymbols_path, &osymbols, err);
  if (status == WF_OK) status = wf_fst_print(fst, output, isymbols, osymbols, options, err);
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  return status;
}

static const cli_rule rules[] = {
    {"token-type", CLI_USELESS_WITHOUT, "strings"},
    {"max-strings", CLI_USELESS_WITHOUT, "strings"},
    {NULL, 0, NULL},
};

int cmd_print(int argc, char **argv) {
  const char *output = "-", *isymbols = NULL, *osymbols = NULL, *save_isymbols = NULL,
             *save_osymbols = NULL;
  wf_text_options text;
  wf_error err;
  struct strings strings = {.type_name = "symbol", .limit = 1000};
  cli_parser parser = {.usage = "[FST [TEXT]]",
                       .about =
                           "Prints an fst as AT&T text, which compile reads, or the strings of "
                           "its paths.",
                       .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &output, "FILE", CLI_OUTPUT_HELP);
  cli_flag_str(&parser, "isymbols", 0, &isymbols, "FILE",
               "symbol table of the input labels (default: the fst's own)");
  cli_flag_str(&parser, "osymbols", 0, &osymbols, "FILE",
               "symbol table of the output labels (default: the fst's own)");
  cli_flag_str(&parser, "save_isymbols", 0, &save_isymbols, "FILE",
               "also write the fst's own input symbol table to this file");
  cli_flag_str(&parser, "save_osymbols", 0, &save_osymbols, "FILE",
               "also write the fst's own output symbol table to this file");
  cli_flag_bool(&parser, "strings", 0, &strings.wanted,
                "print a line for each path: input, output if it differs, cost");
  cli_flag_str(&parser, "token-type", 0, &strings.type_name, "symbol|byte|utf8",
               "what labels are, for --strings (default: symbol)");
  cli_flag_i64(&parser, "max-strings", 0, &strings.limit, "N",
               "fail after this number of strings (default: 1000)");
  cli_flag_range(&parser, "max-strings", 1, 9e15);
  cli_table(&parser, "text", &text);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code != CLI_OK) return code;
  const wf_symbols *own[2] = {wf_fst_isymbols(fst), wf_fst_osymbols(fst)};
  const char *save[2] = {save_isymbols, save_osymbols};
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && code == CLI_OK && status == WF_OK; i++) {
    if (save[i] == NULL) continue;
    if (own[i] == NULL)
      code = cli_usage("the fst has no %s symbol table to save", i == 0 ? "input" : "output");
    else
      status = wf_symbols_write(own[i], save[i], &err);
  }
  if (code == CLI_OK && status == WF_OK && strings.wanted)
    code = print_strings(fst, &strings, output, (const char *const[]){isymbols, osymbols},
                         text.numeric);
  else if (code == CLI_OK && status == WF_OK)
    status = print(fst, output, isymbols, osymbols, &text, &err);
  if (status != WF_OK) code = cli_fail(&err);
  wf_fst_free(fst);
  return code;
}
