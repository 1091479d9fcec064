/* decode_lattices.h - lattice outputs of `warpfst decode`: determinized archives, confidences,
 * n-best lists, further result files. */
#ifndef WARPFST_CLI_DECODE_LATTICES_H
#define WARPFST_CLI_DECODE_LATTICES_H

#include "cli.h"
#include "join_tokens.h"

typedef struct decode_lattices {
  const char *path, *ctm_path, *json_path; /* NULL: not requested */
  bool raw, unaligned, confidence;
  int64_t num_best;
  float acoustic_scale;    /* of the search */
  double confidence_scale; /* 0 before decode_lattices_finish: wf_confidence_scale */
  wf_lattice_determinize_options determinizing;
  bool determinizes;
  wf_lattice_writer *writer;
  wf_result_writer *more[2]; /* --ctm and --json-lines; NULL: not requested */
  wf_determinized *made;     /* [max_batch] determinized lattices of the batch */
  size_t size;               /* number of lattices in `made` */
  uint64_t num_narrowed, num_failed;
  bool no_memory; /* that is why one failed */
  double seconds; /* of determinization after decoding */
} decode_lattices;

void decode_lattices_flags(cli_parser *parser, decode_lattices *lattices);
/* Call after parsing. Sets lattice_beam to 8 if lattices are needed and it is not given.
 * `transducer`: is the model one? */
void decode_lattices_finish(decode_lattices *lattices, bool transducer,
                            wf_decoder_options *options);
wf_status decode_lattices_open(decode_lattices *lattices, const wf_result_writer_options *writing,
                               size_t max_batch, wf_error *err);
/* Sets the decoder to determinize lattices while it decodes, and to make confidences and n-best
 * lists, if they are requested. */
wf_status decode_lattices_prepare(const decode_lattices *lattices, wf_decoder *decoder,
                                  wf_error *err);
/* Moves the determinized lattices of a batch out of its results. Determinizes those that the
 * decoder did not (streams), on all threads. */
wf_status decode_lattices_batch(decode_lattices *lattices, wf_result *const *results, size_t size,
                                wf_error *err);
/* Reports and counts result i, an utterance's, if its lattice could not be determinized: the
 * archive will lack it, and its words will have no confidences or alternatives. */
void decode_lattices_check(decode_lattices *lattices, size_t i, const char *key);
/* Sets the confidences of the words of result i. Without lattices they are not changed. */
wf_status decode_lattices_confidences(decode_lattices *lattices, size_t i, const wf_result *result,
                                      wf_timed_word *words, wf_error *err);
/* The n best word sequences of a result. `paths` point into `list`. */
typedef struct decode_nbest {
  wf_nbest *list; /* NULL: not requested */
  wf_lattice_path *paths;
  size_t count;
} decode_nbest;
/* Those of result i, which are taken out of it. If the joiner joins, of the paths that make the
 * same text the best one; `table` has the texts of their labels. */
wf_status decode_lattices_nbest(decode_lattices *lattices, size_t i, const wf_result *result,
                                const token_joiner *joiner, const wf_symbols *table,
                                decode_nbest *out, wf_error *err);
void decode_nbest_free(decode_nbest *nbest);
/* Writes a hypothesis to the files of --ctm and --json-lines. */
wf_status decode_lattices_put_hypothesis(decode_lattices *lattices, const wf_hypothesis *hypothesis,
                                         wf_error *err);
wf_status decode_lattices_put_lattice(decode_lattices *lattices, size_t i, char *key,
                                      const wf_result *result, const wf_word_aligner *aligner,
                                      wf_error *err);
/* Frees the lattices of the batch. */
void decode_lattices_clear(decode_lattices *lattices);
/* Closes the files, which are then complete. */
wf_status decode_lattices_close(decode_lattices *lattices, wf_error *err);
void decode_lattices_free(decode_lattices *lattices);

#endif
