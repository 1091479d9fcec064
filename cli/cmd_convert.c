/* cmd_convert.c - `warpfst convert`: changes the file format, arc type or symbol tables of an fst.
 */
#include <string.h>

#include "fst_output.h"

struct request {
  const char *output, *format, *arc_type, *isymbols, *osymbols;
  bool drop_symbols;
};

/* Reads the table at `path`; without a path, takes the fst's own table, or NULL if `drop`. The
 * caller frees *out. */
static wf_status pick_symbols(const char *path, const wf_symbols *own, bool drop, wf_symbols **out,
                              wf_error *err) {
  *out = NULL;
  if (path != NULL) return wf_symbols_read(path, out, err);
  if (own != NULL && !drop) *out = wf_symbols_ref(own);
  return WF_OK;
}

static wf_status apply_symbols(const struct request *request, wf_fst **fst, wf_error *err) {
  wf_symbols *isymbols = NULL, *osymbols = NULL;
  wf_fst *changed = NULL;
  wf_status status =
      pick_symbols(request->isymbols, wf_fst_isymbols(*fst), request->drop_symbols, &isymbols, err);
  if (status == WF_OK)
    status = pick_symbols(request->osymbols, wf_fst_osymbols(*fst), request->drop_symbols,
                          &osymbols, err);
  if (status == WF_OK) status = wf_fst_with_symbols(*fst, isymbols, osymbols, &changed, err);
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  if (status != WF_OK) return status;
  wf_fst_free(*fst);
  *fst = changed;
  return WF_OK;
}

static wf_status apply_semiring(wf_semiring semiring, wf_fst **fst, wf_error *err) {
  wf_fst *changed;
  wf_status status = wf_fst_with_semiring(*fst, semiring, &changed, err);
  if (status != WF_OK) return status;
  wf_fst_free(*fst);
  *fst = changed;
  return WF_OK;
}

static int convert(const struct request *request, wf_fst **fst) {
  wf_error err;
  wf_fst_format format;
  int code = cli_fst_format(request->output, request->format, &format);
  if (code != CLI_OK) return code;
  if (apply_symbols(request, fst, &err) != WF_OK) return cli_fail(&err);
  if (request->arc_type != NULL) {
    bool standard = strcmp(request->arc_type, "standard") == 0,
         log64 = strcmp(request->arc_type, "log64") == 0;
    if (!standard && !log64 && strcmp(request->arc_type, "log") != 0)
      return cli_usage("unknown arc type '%s', expected standard, log or log64", request->arc_type);
    if (log64 && format == WF_FORMAT_NATIVE)
      return cli_usage("native files hold float32 weights; log64 needs --format=vector or const");
    if (log64)
      format = format == WF_FORMAT_OPENFST_CONST ? WF_FORMAT_OPENFST_CONST_LOG64
                                                 : WF_FORMAT_OPENFST_VECTOR_LOG64;
    if (apply_semiring(standard ? WF_TROPICAL : WF_LOG, fst, &err) != WF_OK) return cli_fail(&err);
  }
  return wf_fst_write(*fst, request->output != NULL ? request->output : "-", format, &err) == WF_OK
             ? CLI_OK
             : cli_fail(&err);
}

static const cli_rule rules[] = {
    {"format", CLI_EXCLUDES, "to|fst_type"},
    {"to", CLI_EXCLUDES, "fst_type"},
    {NULL, 0, NULL},
};

int cmd_convert(int argc, char **argv) {
  struct request request = {0};
  cli_parser parser = {.usage = "[IN [OUT]]",
                       .about =
                           "Writes an fst in another file format, with another arc type (weights "
                           "are not changed) or with other symbol tables.",
                       .max_args = 2};
  cli_flag_output(&parser, &request.output, &request.format);
  cli_flag_str(&parser, "to", 0, &request.format, CLI_FORMAT_VALUE, "the same as --format");
  cli_flag_str(&parser, "fst_type", 0, &request.format, CLI_FORMAT_VALUE, "the same as --format");
  cli_flag_str(&parser, "arc_type", 0, &request.arc_type, "standard|log|log64",
               "arc type of the result (default: that of the input)");
  cli_flag_str(&parser, "isymbols", 0, &request.isymbols, "FILE",
               "symbol table of the input labels to attach");
  cli_flag_str(&parser, "osymbols", 0, &request.osymbols, "FILE",
               "symbol table of the output labels to attach");
  cli_flag_bool(&parser, "drop_symbols", 0, &request.drop_symbols,
                "drop the symbol tables of the input");
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) request.output = parser.args[1];
  wf_fst *fst = NULL;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code == CLI_OK) code = convert(&request, &fst);
  wf_fst_free(fst);
  return code;
}
