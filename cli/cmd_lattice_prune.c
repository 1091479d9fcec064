/* cmd_lattice_prune.c - `warpfst lattice prune`: keeps the arcs on paths within a beam of the best.
 */
#include "lattice_common.h"

static wf_status prune_all(lattice_input *input, double beam, wf_lattice_writer *writer,
                           wf_error *err) {
  wf_lattice_entry entry;
  wf_status status = WF_OK;
  while (status == WF_OK && lattice_next(input, &entry)) {
    wf_lattice_entry pruned = {.key = entry.key};
    status = entry.raw != NULL
                 ? wf_lattice_prune(entry.raw, (float)beam, &pruned.raw, err)
                 : wf_compact_lattice_prune(entry.compact, (float)beam, &pruned.compact, err);
    if (status == WF_OK) lattice_check_made(input, &entry, &pruned);
    if (status == WF_OK) status = wf_lattice_writer_put(writer, &pruned, err);
    if (status != WF_OK && lattice_failed(input, &entry, err)) status = WF_OK;
    pruned.key = NULL;
    wf_lattice_entry_clear(&pruned);
    wf_lattice_entry_clear(&entry);
  }
  return status;
}

int cmd_lattice_prune(int argc, char **argv) {
  const char *output = NULL;
  double beam = 8;
  lattice_input input = {0};
  wf_lattice_writer_options options;
  cli_parser parser = {
      .usage = "LATTICES... -o OUT --beam=NATS",
      .about =
          "Removes the arcs that are on no path within --beam of the best. The order of states and "
          "arcs is kept. Kaldi's archives hold unscaled acoustic costs:\n"
          "give the acoustic scale of the search as --acoustic-scale, and as --acoustic-divisor "
          "so that the output is unscaled, too. Example:\n"
          "  warpfst lattice prune lat.ark -o small.ark --beam=4 --acoustic-scale=0.1 "
          "--acoustic-divisor=0.1",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "archive to write ('-': standard output)");
  cli_flag_f64(&parser, "beam", 0, &beam, "NATS",
               "keep paths that cost at most this much more than the best (default: 8 nats)");
  cli_flag_range(&parser, "beam", 0, 1e30);
  lattice_flags(&parser, &input);
  cli_table(&parser, "lattice_writer", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) return cli_usage("no output given: -o OUT");
  wf_error err = {0};
  wf_lattice_writer *writer = NULL;
  wf_status status = lattice_open(&input, parser.args, parser.num_args, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_open(output, input.words, &options, &writer, &err);
  if (status == WF_OK) status = prune_all(&input, beam, writer, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_close(writer, &err);
  else
    wf_lattice_writer_abort(writer);
  lattice_close(&input);
  return status == WF_OK ? lattice_exit_code(&input) : cli_fail(&err);
}
