/* cmd_compile.c - `warpfst compile`: compiles AT&T text to an fst file, with the flags of OpenFst's
 * fstcompile. */
#include "fst_output.h"

struct request {
  const char *input, *output, *format, *isymbols, *osymbols;
  bool keep_isymbols, keep_osymbols;
  wf_text_options text;
};

/* Like fstcompile, stores symbol tables only on request. */
static wf_status keep_symbols(const struct request *request, wf_fst **fst, wf_error *err) {
  wf_fst *changed;
  wf_status status =
      wf_fst_with_symbols(*fst, request->keep_isymbols ? wf_fst_isymbols(*fst) : NULL,
                          request->keep_osymbols ? wf_fst_osymbols(*fst) : NULL, &changed, err);
  if (status != WF_OK) return status;
  wf_fst_free(*fst);
  *fst = changed;
  return WF_OK;
}

static int compile(const struct request *request) {
  wf_error err;
  wf_symbols *isymbols = NULL, *osymbols = NULL;
  wf_fst *fst = NULL;
  wf_status status = WF_OK;
  if (request->isymbols != NULL) status = wf_symbols_read(request->isymbols, &isymbols, &err);
  if (status == WF_OK && request->osymbols != NULL)
    status = wf_symbols_read(request->osymbols, &osymbols, &err);
  if (status == WF_OK)
    status = wf_fst_compile(request->input, isymbols, osymbols, &request->text, &fst, &err);
  if (status == WF_OK) status = keep_symbols(request, &fst, &err);
  int code = status == WF_OK ? CLI_OK : cli_fail(&err);
  if (code == CLI_OK && request->text.arc_type == WF_ARC_TYPE_LOG64 &&
      request->format == NULL) { /* log64: write the file with this arc type */
    wf_fst_format format;
    code = cli_fst_format(request->output, NULL, &format);
    if (format == WF_FORMAT_OPENFST_VECTOR) format = WF_FORMAT_OPENFST_VECTOR_LOG64;
    if (code == CLI_OK && wf_fst_write(fst, request->output, format, &err) != WF_OK)
      code = cli_fail(&err);
  } else if (code == CLI_OK) {
    code = cli_write_fst(fst, request->output, request->format);
  }
  wf_fst_free(fst);
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  return code;
}

static const cli_rule rules[] = {
    {"keep_isymbols", CLI_USELESS_WITHOUT, "isymbols"},
    {"keep_osymbols", CLI_USELESS_WITHOUT, "osymbols"},
    {NULL, 0, NULL},
};

int cmd_compile(int argc, char **argv) {
  struct request request = {.input = "-", .output = "-"};
  cli_parser parser = {.usage = "[TEXT [OUT]]",
                       .about =
                           "Compiles AT&T text, 'source nextstate ilabel olabel [weight]' for an "
                           "arc and 'state [weight]' for a final state, to an fst file.",
                       .max_args = 2};
  cli_flag_output(&parser, &request.output, &request.format);
  cli_flag_str(&parser, "isymbols", 0, &request.isymbols, "FILE",
               "symbol table of the input labels");
  cli_flag_str(&parser, "osymbols", 0, &request.osymbols, "FILE",
               "symbol table of the output labels");
  cli_flag_bool(&parser, "keep_isymbols", 0, &request.keep_isymbols,
                "store the input symbol table in the file");
  cli_flag_bool(&parser, "keep_osymbols", 0, &request.keep_osymbols,
                "store the output symbol table in the file");
  cli_rules(&parser, rules);
  cli_table(&parser, "text", &request.text);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args > 0) request.input = parser.args[0];
  if (parser.num_args == 2) request.output = parser.args[1];
  return compile(&request);
}
