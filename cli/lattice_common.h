/* lattice_common.h - what the parts of `warpfst lattice` share: lattices in, one after the other,
 * and a table of words. */
#ifndef WARPFST_CLI_LATTICE_COMMON_H
#define WARPFST_CLI_LATTICE_COMMON_H

#include "aligner_source.h"

/* The subcommands of `warpfst lattice`; argv[0] is "lattice NAME". */
int cmd_lattice_convert(int argc, char **argv);
int cmd_lattice_mbr(int argc, char **argv);
int cmd_lattice_oracle(int argc, char **argv);
int cmd_lattice_stats(int argc, char **argv);
int cmd_lattice_draw(int argc, char **argv);
int cmd_lattice_prune(int argc, char **argv);
int cmd_lattice_determinize(int argc, char **argv);
int cmd_lattice_nbest(int argc, char **argv);
int cmd_lattice_rescore(int argc, char **argv);

/* The lattices that a command reads. */
typedef struct lattice_input {
  const char *words_path, *input_words_path; /* --words, --input-words */
  wf_lattice_reader_options options;
  wf_symbols *words; /* of --words; NULL: none */
  wf_lattice_reader *reader;
  wf_progress progress;
  uint64_t num_lattices, num_failed;
  bool lost_rest; /* of an archive that could not be followed to its end */
  bool no_memory; /* for some lattice */
} lattice_input;

/* Adds --words, --input-words and the options of the reader. */
void lattice_flags(cli_parser *parser, lattice_input *input);
wf_status lattice_open(lattice_input *input, char **sources, int num_sources, wf_error *err);
/* The next readable lattice; the caller clears it. Unreadable lattices are reported on standard
 * error and counted. False at the end. */
bool lattice_next(lattice_input *input, wf_lattice_entry *entry);
/* Reports and counts a lattice with which the command failed, and clears the error. Returns false
 * if no others are worth trying: no memory, no output. */
bool lattice_failed(lattice_input *input, const wf_lattice_entry *entry, wf_error *err);
/* CLI_OK, CLI_NO (some failed), CLI_INPUT (part of the input is lost). */
int lattice_exit_code(const lattice_input *input);
void lattice_close(lattice_input *input);

/* Makes the lattice of the entry compact: a raw one is determinized. Reports if the beam had to be
 * narrowed because max_bytes was reached. */
wf_status lattice_make_compact(wf_lattice_entry *entry,
                               const wf_lattice_determinize_options *options, wf_error *err);

/* Text of a word, or its number in `scratch`. */
const char *lattice_word_text(const wf_symbols *words, int32_t label, char scratch[12]);
/* Sets `err` to an out-of-memory error. */
wf_status lattice_no_memory(wf_error *err);

#endif
