/* cmd_lattice_rescore.c - `warpfst lattice rescore`: replaces the costs of one language model by
 * those of another. */
#include "lattice_common.h"
#include "lm_common.h"

struct rescore_run {
  lattice_input input;
  wf_lm *old_lm, *new_lm;
  wf_lattice_rescore_options options;
  wf_lattice_determinize_options determinize_options;
  wf_lattice_writer *writer;
};

/* Raw lattices are determinized first, so that each word sequence is scored once, not once per
 * alignment. */
static wf_status rescore(const struct rescore_run *run, const wf_lattice_entry *entry,
                         wf_compact_lattice **out, wf_error *err) {
  wf_determinized words = {0};
  wf_status status =
      entry->raw != NULL
          ? wf_lattice_determinize(entry->raw, NULL, &run->determinize_options, &words, err)
          : WF_OK;
  if (status == WF_OK && words.narrowed)
    cli_note("utterance '%s': beam narrowed to %g because --max-bytes was reached", entry->key,
             (double)words.beam);
  const wf_compact_lattice *lattice = entry->raw != NULL ? words.lattice : entry->compact;
  if (status == WF_OK)
    status = wf_compact_lattice_rescore(lattice, run->old_lm, run->new_lm, &run->options, out, err);
  wf_compact_lattice_free(words.lattice);
  return status;
}

static wf_status rescore_all(struct rescore_run *run, wf_error *err) {
  wf_lattice_entry entry;
  wf_status status = WF_OK;
  while (status == WF_OK && lattice_next(&run->input, &entry)) {
    wf_lattice_entry out = {.key = entry.key};
    status = rescore(run, &entry, &out.compact, err);
    if (status == WF_OK) lattice_check_made(&run->input, &entry, &out);
    if (status == WF_OK) status = wf_lattice_writer_put(run->writer, &out, err);
    if (status != WF_OK && lattice_failed(&run->input, &entry, err)) status = WF_OK;
    wf_compact_lattice_free(out.compact);
    wf_lattice_entry_clear(&entry);
  }
  return status;
}

int cmd_lattice_rescore(int argc, char **argv) {
  static struct rescore_run run;
  const char *output = NULL, *old_path = NULL, *new_path = NULL;
  wf_lattice_writer_options writer_options;
  lm_source source = {0};
  cli_parser parser = {
      .usage = "LATTICES... -o OUT --lm=NEW [--old-lm=OLD] --words=words.txt",
      .about =
          "Subtracts the costs of --old-lm, the model that the lattices were decoded with, and "
          "adds those of --lm, with exact "
          "back-off and sentence ends.\nWithout --old-lm, nothing is subtracted. Writes compact "
          "lattices; raw "
          "ones are determinized first. Example:\n"
          "  warpfst lattice rescore lat.ark -o new.ark --old-lm=small.arpa --lm=large.arpa.gz "
          "--words=words.txt",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "archive to write ('-': standard output)");
  cli_flag_str(
      &parser, "lm", 0, &new_path, "FILE",
      "the new model: ARPA, a binary file of CMU Sphinx or KenLM (trie), or a .wlm file, which "
      "is not read into memory (required)");
  cli_flag_str(&parser, "old-lm", 0, &old_path, "FILE", "the model whose costs the lattices hold");
  lattice_flags(&parser, &run.input);
  cli_table(&parser, "lattice_rescore", &run.options);
  cli_table(&parser, "lattice_determinize", &run.determinize_options);
  cli_table(&parser, "arpa", &source.options);
  cli_table(&parser, "lattice_writer", &writer_options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL || new_path == NULL || run.input.words_path == NULL)
    return cli_usage(
        "required: -o OUT, --lm=FILE and --words=FILE (the word table that the graph was built "
        "with)");
  source.words_path = run.input.words_path;
  code = lm_load(new_path, &source, &run.new_lm, NULL);
  if (code == CLI_OK && old_path != NULL) code = lm_load(old_path, &source, &run.old_lm, NULL);
  if (code == CLI_OK) {
    wf_error err = {0};
    wf_status status = lattice_open(&run.input, parser.args, parser.num_args, &err);
    if (status == WF_OK)
      status = wf_lattice_writer_open(output, run.input.words, &writer_options, &run.writer, &err);
    if (status == WF_OK) status = rescore_all(&run, &err);
    if (status == WF_OK)
      status = wf_lattice_writer_close(run.writer, &err);
    else
      wf_lattice_writer_abort(run.writer);
    lattice_close(&run.input);
    code = status == WF_OK ? lattice_exit_code(&run.input) : cli_fail(&err);
  }
  wf_lm_free(run.old_lm);
  wf_lm_free(run.new_lm);
  return code;
}
