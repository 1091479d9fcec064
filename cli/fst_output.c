/* fst_output.c - reads and writes fst files; the format follows from the flag or the file name. */
#include "fst_output.h"

#include <string.h>

void cli_flag_output(cli_parser *parser, const char **output, const char **format) {
  cli_flag_str(parser, "output", 'o', output, "FILE", CLI_OUTPUT_HELP);
  cli_flag_str(parser, "format", 0, format, CLI_FORMAT_VALUE, CLI_FORMAT_HELP);
}

void cli_flag_check_symbols(cli_parser *parser, bool *check) {
  *check = true;
  cli_flag_bool(
      parser, "check-symbols", 0, check,
      "fail if symbol tables that have to agree differ (default: on; --no-check-symbols)");
}

int cli_drop_symbols(wf_fst **fst) {
  wf_fst *bare;
  wf_error err;
  if (wf_fst_with_symbols(*fst, NULL, NULL, &bare, &err) != WF_OK) return cli_fail(&err);
  wf_fst_free(*fst);
  *fst = bare;
  return CLI_OK;
}

int cli_read_fst(const char *path, wf_fst **out) {
  wf_error err;
  return wf_fst_read(path, out, &err) == WF_OK ? CLI_OK : cli_fail(&err);
}

int cli_fst_format(const char *path, const char *format, wf_fst_format *out) {
  if (format == NULL) {
    size_t size = path != NULL ? strlen(path) : 0;
    if (size > 3 && strcmp(path + size - 3, ".gz") == 0) size -= 3;
    bool native = size >= 5 && strncmp(path + size - 5, ".wfst", 5) == 0;
    *out = native ? WF_FORMAT_NATIVE : WF_FORMAT_OPENFST_VECTOR;
  } else if (strcmp(format, "native") == 0) {
    *out = WF_FORMAT_NATIVE;
  } else if (strcmp(format, "vector") == 0) {
    *out = WF_FORMAT_OPENFST_VECTOR;
  } else if (strcmp(format, "const") == 0) {
    *out = WF_FORMAT_OPENFST_CONST;
  } else {
    return cli_usage("unknown format '%s', expected native, vector or const", format);
  }
  return CLI_OK;
}

int cli_write_fst(const wf_fst *fst, const char *path, const char *format) {
  wf_error err;
  wf_fst_format chosen;
  int code = cli_fst_format(path, format, &chosen);
  if (code != CLI_OK) return code;
  return wf_fst_write(fst, path != NULL ? path : "-", chosen, &err) == WF_OK ? CLI_OK
                                                                             : cli_fail(&err);
}
