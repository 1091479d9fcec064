/* cmd_draw.c - `warpfst draw`: draws an fst. */
#include <string.h>

#include "fst_output.h"

/* The fst with the tables of the files, where they are given. */
static wf_status with_tables(wf_fst **fst, const char *const paths[2], wf_error *err) {
  wf_symbols *tables[2] = {NULL, NULL};
  const wf_symbols *own[2] = {wf_fst_isymbols(*fst), wf_fst_osymbols(*fst)};
  wf_fst *out = NULL;
  wf_status status = WF_OK;
  for (int side = 0; side < 2 && status == WF_OK; side++)
    if (paths[side] != NULL) status = wf_symbols_read(paths[side], &tables[side], err);
  if (status == WF_OK)
    status = wf_fst_with_symbols(*fst, tables[0] != NULL ? tables[0] : own[0],
                                 tables[1] != NULL ? tables[1] : own[1], &out, err);
  wf_symbols_free(tables[0]);
  wf_symbols_free(tables[1]);
  if (status != WF_OK) return status;
  wf_fst_free(*fst);
  *fst = out;
  return WF_OK;
}

int cmd_draw(int argc, char **argv) {
  const char *output = "-", *tables[2] = {NULL, NULL};
  cli_parser parser = {
      .usage = "[FST [OUT]]",
      .about =
          "Draws an fst. OUT.svg is a picture, for any browser, of at most 1000 states and arcs; "
          "OUT.dot, OUT.gv and standard output get text for Graphviz. Examples:\n"
          "  warpfst draw L.fst L.svg\n"
          "  warpfst draw L.fst --osymbols=words.txt | dot -Tpdf > L.pdf",
      .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "file to write ('-': standard output)");
  cli_flag_str(&parser, "isymbols", 0, &tables[0], "FILE",
               "symbol table of the input labels (default: the fst's own)");
  cli_flag_str(&parser, "osymbols", 0, &tables[1], "FILE",
               "symbol table of the output labels (default: the fst's own)");
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args == 2) output = parser.args[1];
  wf_fst *fst = NULL;
  wf_error err;
  code = cli_read_fst(parser.num_args > 0 ? parser.args[0] : "-", &fst);
  if (code != CLI_OK) return code;
  wf_status status = with_tables(&fst, tables, &err);
  if (status == WF_OK)
    status = strcmp(output, "-") == 0 ? wf_fst_print_dot(fst, output, &err)
                                      : wf_fst_draw(fst, output, &err);
  wf_fst_free(fst);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
