/* cmd_lattice_draw.c - `warpfst lattice draw`: draws one lattice. */
#include <string.h>

#include "lattice_common.h"

/* Reads up to the lattice with the key (NULL: the first). Reports unreadable lattices. Returns
 * false if there is no such lattice. */
static bool find(lattice_input *input, const char *key, wf_lattice_entry *entry) {
  while (lattice_next(input, entry)) {
    if (key == NULL || strcmp(entry->key, key) == 0) return true;
    wf_lattice_entry_clear(entry);
  }
  return false;
}

int cmd_lattice_draw(int argc, char **argv) {
  const char *output = NULL, *key = NULL;
  lattice_input input = {0};
  aligner_source aligner = {0};
  wf_lattice_draw_options options;
  wf_lattice_determinize_options determinizing;
  cli_parser parser = {
      .usage = "LATTICES... [--key KEY] -o OUT",
      .about =
          "Draws the lattice KEY, or the first one. OUT.html is a page with an SVG, for any "
          "browser; OUT.svg is the SVG alone; OUT.dot or OUT.gv is for Graphviz. Time goes\n"
          "from left to right. With --graph, --tokens or --am, words are drawn over the frames in "
          "which they are spoken. Raw lattices are "
          "determinized.\n--beam prunes large ones. Examples:\n"
          "  warpfst lattice draw lat.ark --key=utt1 --words=words.txt -o utt1.html\n"
          "  warpfst lattice draw lat.ark --words=words.txt -o - --format=dot | dot -Tpdf > "
          "lat.pdf",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "file to write ('-': standard output)");
  cli_flag_str(&parser, "key", 'k', &key, "KEY", "which lattice (default: the first)");
  lattice_flags(&parser, &input);
  aligner_flags(&parser, &aligner);
  cli_table(&parser, "lattice_draw", &options);
  cli_table(&parser, "lattice_determinize", &determinizing);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) return cli_usage("no output given: -o OUT");
  wf_error err = {0};
  wf_lattice_entry entry = {0};
  wf_status status = lattice_open(&input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = aligner_open(&aligner, input.words, &err);
  if (status == WF_OK && !find(&input, key, &entry)) {
    err.code = status = input.no_memory ? WF_ERR_MEMORY : WF_ERR_FORMAT;
    snprintf(err.message, sizeof err.message, "there is no lattice%s%.200s",
             key != NULL ? " of " : "", key != NULL ? key : "");
  }
  if (status == WF_OK) status = lattice_make_compact(&entry, &determinizing, NULL, &err);
  if (status == WF_OK) status = aligner_apply(&aligner, &entry, &err);
  if (status == WF_OK)
    status = wf_compact_lattice_draw(entry.compact, entry.key, input.words, &options, output, &err);
  wf_lattice_entry_clear(&entry);
  wf_word_aligner_free(aligner.aligner);
  lattice_close(&input);
  return status == WF_OK ? lattice_exit_code(&input) : cli_fail(&err);
}
