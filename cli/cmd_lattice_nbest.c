/* cmd_lattice_nbest.c - `warpfst lattice nbest`: lists the n best word sequences of each lattice.
 */
#include "lattice_common.h"
#include "nbest_output.h"
#include "time_note.h"

/* Raw lattices, and compact ones that are not deterministic, are determinized first. */
static wf_status find_nbest(const wf_lattice_entry *entry, size_t n,
                            const wf_lattice_determinize_options *options, wf_nbest **out,
                            wf_error *err) {
  wf_determinized words;
  wf_status status = entry->compact != NULL ? wf_compact_lattice_nbest(entry->compact, n, out, err)
                                            : WF_ERR_ARGUMENT;
  if (status != WF_ERR_ARGUMENT) return status;
  *err = (wf_error){0};
  status = entry->raw != NULL
               ? wf_lattice_determinize(entry->raw, NULL, options, &words, err)
               : wf_compact_lattice_determinize(entry->compact, options, &words, err);
  if (status == WF_OK && words.narrowed)
    cli_note("utterance '%s': beam narrowed to %g because --max-bytes was reached", entry->key,
             (double)words.beam);
  if (status == WF_OK) status = wf_compact_lattice_nbest(words.lattice, n, out, err);
  wf_compact_lattice_free(words.lattice);
  return status;
}

static wf_status list_all(lattice_input *input, const wf_word_aligner *aligner, size_t n,
                          const wf_lattice_determinize_options *options, wf_result_writer *writer,
                          wf_error *err) {
  wf_lattice_entry entry;
  wf_status status = WF_OK;
  while (status == WF_OK && lattice_next(input, &entry)) {
    wf_nbest *nbest = NULL;
    status = find_nbest(&entry, n, options, &nbest, err);
    if (status == WF_OK && wf_nbest_count(nbest) == 0) {
      status = err->code = WF_ERR_FORMAT;
      snprintf(err->message, sizeof err->message, "the lattice has no path");
    }
    if (status == WF_OK) status = nbest_put(writer, entry.key, nbest, aligner, input->words, err);
    if (status != WF_OK && lattice_failed(input, &entry, err)) status = WF_OK;
    wf_nbest_free(nbest);
    wf_lattice_entry_clear(&entry);
  }
  return status;
}

static const cli_rule rules[] = {
    {"channel", CLI_USELESS_WITHOUT, "format=ctm"},
    CLI_SUMMARY_RULE,
    {NULL, 0, NULL},
};

int cmd_lattice_nbest(int argc, char **argv) {
  const char *output = "-";
  int64_t n = 10;
  lattice_input input = {0};
  aligner_source aligner = {0};
  wf_lattice_determinize_options options;
  wf_result_writer_options writer_options;
  cli_parser parser = {
      .usage = "LATTICES... [-o OUT] [--n=N]",
      .about =
          "Writes the n best word sequences of each lattice, without duplicates, as results with "
          "the keys "
          "KEY-1, KEY-2, ... --format=json includes the costs.\n"
          "Kaldi's archives hold unscaled acoustic costs: give the acoustic scale of the search as "
          "--acoustic-scale. Raw lattices are determinized first. Example:\n"
          "  warpfst lattice nbest lat.ark --n=10 --words=words.txt --acoustic-scale=0.1",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT",
               "where to write ('-': standard output, the default)");
  cli_flag_i64(&parser, "n", 'n', &n, "N",
               "number of word sequences for each lattice (default: 10)");
  cli_summary_flags(&parser, &input.summary);
  lattice_flags(&parser, &input);
  aligner_flags(&parser, &aligner);
  cli_table(&parser, "lattice_determinize", &options);
  cli_table(&parser, "result_writer", &writer_options);
  cli_flag_range(&parser, "n", 1, 1e15);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  wf_result_writer *writer = NULL;
  wf_status status = lattice_open(&input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = aligner_open(&aligner, input.words, &err);
  if (status == WF_OK) cli_note_times(&parser, &writer_options, aligner.aligner == NULL);
  if (status == WF_OK) status = wf_result_writer_open(output, &writer_options, &writer, &err);
  if (status == WF_OK)
    status = list_all(&input, aligner.aligner, (size_t)n, &options, writer, &err);
  if (status == WF_OK)
    status = wf_result_writer_close(writer, &err);
  else
    wf_result_writer_abort(writer);
  wf_word_aligner_free(aligner.aligner);
  lattice_close(&input);
  const cli_figure figures[] = {{"lattices", (double)input.num_lattices},
                                {"failed", (double)input.num_failed}};
  if (status == WF_OK && input.summary.json)
    cli_figures_json(stderr, figures, sizeof figures / sizeof *figures);
  return status == WF_OK ? lattice_exit_code(&input) : cli_fail(&err);
}
