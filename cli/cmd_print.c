/* cmd_print.c - `warpfst print`: prints an fst as AT&T text, with the flags of OpenFst's fstprint.
 */
#include "fst_output.h"

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

int cmd_print(int argc, char **argv) {
  const char *output = "-", *isymbols = NULL, *osymbols = NULL, *save_isymbols = NULL,
             *save_osymbols = NULL;
  wf_text_options text;
  wf_error err;
  cli_parser parser = {.usage = "[FST [TEXT]]",
                       .about = "Prints an fst as AT&T text, which compile reads.",
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
  cli_table(&parser, "text", &text);
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
  if (code == CLI_OK && status == WF_OK)
    status = print(fst, output, isymbols, osymbols, &text, &err);
  if (status != WF_OK) code = cli_fail(&err);
  wf_fst_free(fst);
  return code;
}
