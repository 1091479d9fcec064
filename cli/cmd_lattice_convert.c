/* cmd_lattice_convert.c - `warpfst lattice convert`: writes archives in another format, kind or
 * scale. */
#include "lattice_common.h"

static wf_status convert_all(lattice_input *input, const aligner_source *aligner,
                             wf_lattice_writer *writer, wf_error *err) {
  wf_lattice_entry entry;
  wf_status status = WF_OK;
  while (status == WF_OK && lattice_next(input, &entry)) {
    status = aligner_apply(aligner, &entry, err);
    if (status == WF_OK) status = wf_lattice_writer_put(writer, &entry, err);
    if (status != WF_OK && lattice_failed(input, &entry, err)) status = WF_OK;
    wf_lattice_entry_clear(&entry);
  }
  return status;
}

static const cli_rule rules[] = {
    {"frame-shift", CLI_USELESS_WITHOUT, "format=slf"},
    {NULL, 0, NULL},
};

int cmd_lattice_convert(int argc, char **argv) {
  const char *output = NULL;
  lattice_input input = {0};
  aligner_source aligner = {0};
  wf_lattice_writer_options options;
  cli_parser parser = {
      .usage = "LATTICES... -o OUT",
      .about =
          "Writes lattices in another format (--format) or kind (--kind), or with scaled costs.\n"
          "With --graph, --tokens or --am, determinized lattices are aligned: each word gets one "
          "arc over its frames.\n"
          "Lattices that cannot be read or written are reported and skipped (exit code 1, or 3 if "
          "the rest of an archive could not be read). Examples:\n"
          "  warpfst lattice convert lat.ark.gz -o - --format=text --words=words.txt\n"
          "  warpfst lattice convert lat.scp -o part.ark --scp=part.scp --acoustic-scale=0.1",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "archive to write ('-': standard output)");
  lattice_flags(&parser, &input);
  aligner_flags(&parser, &aligner);
  cli_table(&parser, "lattice_writer", &options);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) return cli_usage("no output given: -o OUT");
  wf_error err = {0};
  wf_lattice_writer *writer = NULL;
  if (aligner.graph_path != NULL || aligner.tokens_path != NULL || aligner.am.path != NULL)
    input.options.kind = WF_LATTICE_COMPACT;
  wf_status status = lattice_open(&input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = aligner_open(&aligner, input.words, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_open(output, input.words, &options, &writer, &err);
  if (status == WF_OK) status = convert_all(&input, &aligner, writer, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_close(writer, &err);
  else
    wf_lattice_writer_abort(writer);
  wf_word_aligner_free(aligner.aligner);
  lattice_close(&input);
  return status == WF_OK ? lattice_exit_code(&input) : cli_fail(&err);
}
