/* compare_fsts.c - see compare_fsts.h. */
#include "compare_fsts.h"

#include "fst_output.h"

int cli_compare_fsts(const char *first, const char *second, cli_compare_fn compare,
                     const void *user, bool check_symbols, bool quiet) {
  wf_fst *a = NULL, *b = NULL;
  wf_error err = {0};
  bool same = false;
  int code = cli_read_fst(first, &a);
  if (code == CLI_OK) code = cli_read_fst(second, &b);
  if (code == CLI_OK && !check_symbols) code = cli_drop_symbols(&b);
  if (code == CLI_OK && compare(a, b, user, &same, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK && !same) {
    code = CLI_NO;
    if (!quiet) cli_note("%s", err.message);
  }
  wf_fst_free(a);
  wf_fst_free(b);
  return code;
}
