/* cmd_topology.c - `warpfst topology`: makes a CTC topology for the tokens of a table. */
#include "fst_output.h"

static wf_status make(const wf_symbols *tokens, const char *blank_name,
                      const wf_topology_options *options, wf_fst **out, wf_error *err) {
  wf_symbols *labels, *ilabels = NULL;
  int32_t num_tokens, blank;
  wf_status status = wf_token_blank(tokens, blank_name, &blank, err);
  if (status == WF_OK)
    status = wf_token_labels(tokens, options->num_disambig, &labels, &num_tokens, err);
  if (status != WF_OK) return status;
  wf_fst *fst;
  status = wf_ctc_topology(num_tokens, blank, options, &fst, err);
  if (status == WF_OK) {
    status = wf_token_labels(tokens, options->keep_disambig ? options->num_disambig : 0, &ilabels,
                             NULL, err);
    if (status == WF_OK) status = wf_fst_with_symbols(fst, ilabels, labels, out, err);
    wf_fst_free(fst);
  }
  wf_symbols_free(ilabels);
  wf_symbols_free(labels);
  return status;
}

int cmd_topology(int argc, char **argv) {
  const char *tokens_path = NULL, *output = NULL, *format = NULL, *blank = NULL;
  wf_topology_options options;
  cli_parser parser = {
      .usage = "--tokens=tokens.txt [--type=TYPE] [-o T.fst]",
      .about =
          "Makes T, a CTC topology: a transducer from frame labels (column + 1) to token labels. "
          "docs/how-to/topologies.md defines the types."};
  cli_flag_str(&parser, "tokens", 0, &tokens_path, "FILE",
               "token table, lines `token column` (required)");
  cli_flag_str(&parser, "blank", 0, &blank, "TOKEN",
               "name of the blank (default: <blk>, <blank>, <b>, <pad>, [PAD] or <ctc>, whichever "
               "is in the table)");
  cli_flag_output(&parser, &output, &format);
  cli_table(&parser, "topology", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (tokens_path == NULL) return cli_usage("--tokens is required");
  wf_error err;
  wf_symbols *tokens = NULL;
  wf_fst *fst = NULL;
  if (wf_symbols_read(tokens_path, &tokens, &err) != WF_OK ||
      make(tokens, blank, &options, &fst, &err) != WF_OK)
    code = cli_fail(&err);
  else
    code = cli_write_fst(fst, output, format);
  wf_fst_free(fst);
  wf_symbols_free(tokens);
  return code;
}
