/* lattice_common.h - what the subcommands of `warpfst lattice` share: reading lattices one by one,
 * and the word table. */
#ifndef WARPFST_CLI_LATTICE_COMMON_H
#define WARPFST_CLI_LATTICE_COMMON_H

#include "aligner_source.h"
#include "summary.h"

/* The subcommands of `warpfst lattice`; argv[0] is "lattice NAME". */
int cmd_lattice_convert(int argc, char **argv);
int cmd_lattice_mbr(int argc, char **argv);
int cmd_lattice_spot(int argc, char **argv);
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
  cli_summary summary; /* of --json and --quiet, which the command adds */
  uint64_t num_lattices, num_failed;
  bool lost_rest; /* the rest of an archive could not be read */
  bool no_memory; /* memory ran out for a lattice */
} lattice_input;

/* Adds --words, --input-words and the options of the reader. */
void lattice_flags(cli_parser *parser, lattice_input *input);
wf_status lattice_open(lattice_input *input, char **sources, int num_sources, wf_error *err);
/* Reads the next readable lattice, which the caller clears. Reports unreadable and empty lattices
 * on standard error, and counts unreadable ones. Returns false at the end. */
bool lattice_next(lattice_input *input, wf_lattice_entry *entry);
/* Reports and counts a lattice that could not be processed, clears the error and returns true.
 * Returns false if the command must stop: memory ran out, or the output cannot be written. */
bool lattice_failed(lattice_input *input, const wf_lattice_entry *entry, wf_error *err);
/* Reports and counts a lattice `made` of `from`, with the same key, that has lost all of its paths.
 */
void lattice_check_made(lattice_input *input, const wf_lattice_entry *from,
                        const wf_lattice_entry *made);
/* Calls one(run, lattice) for each readable lattice. Lattices that fail are handled as
 * lattice_failed says. */
wf_status lattice_each(lattice_input *input,
                       wf_status (*one)(void *run, wf_lattice_entry *entry, wf_error *err),
                       void *run, wf_error *err);
/* See cli_failure_code. */
int lattice_exit_code(const lattice_input *input);
void lattice_close(lattice_input *input);

/* Replaces a raw lattice by its determinized, compact form. Reports if the beam was narrowed
 * because max_bytes was reached. `complete_beam` (may be NULL) becomes the beam within which the
 * result is complete, if that is less. */
wf_status lattice_make_compact(wf_lattice_entry *entry,
                               const wf_lattice_determinize_options *options, float *complete_beam,
                               wf_error *err);

/* Text of a word, or its number in `scratch`. */
const char *lattice_word_text(const wf_symbols *words, int32_t label, char scratch[12]);
/* Sets `err` to an out-of-memory error. */
wf_status lattice_no_memory(wf_error *err);

#endif
