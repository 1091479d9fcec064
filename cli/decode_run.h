/* decode_run.h - one run of `warpfst decode`: its flags, objects, batch and sums (cmd_decode.c);
 * its summary (decode_summary.c). */
#ifndef CLI_DECODE_RUN_H
#define CLI_DECODE_RUN_H

#include "aligner_source.h"
#include "boosts.h"
#include "decode_lattices.h"
#include "rnnlm_scorer.h"
#include "word_lists.h"

struct decode_run {
  const char *output, *words_path, *columns_path, *reference, *summary_path, *boost_path,
      *boosts_path, *lm_path;
  bool json, lm_table;
  double chunk_s; /* 0: whole utterances */
  int64_t max_batch;
  wf_decoder_options decoder_options;
  wf_ngram_scorer_options scorer_options;
  rnnlm_source rnnlm;
  wf_scorer *lm; /* of every utterance: large n-gram model, recurrent model, or both */
  wf_score_reader_options reader_options;
  wf_result_writer_options writer_options;
  aligner_source aligner; /* of a graph that does not know how its words are made of tokens; --am
                             also gives columns */
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder *decoder;
  wf_symbols *words;
  wf_score_reader *reader;
  wf_result_writer *writer;
  decode_lattices lattices;
  wf_transcripts *references;
  wf_wer *wer;
  boost_set *boosts; /* NULL: none */
  added_request added_request;
  added_set *added; /* NULL: none */
  wf_progress progress;
  double fraction[2];     /* of the input: before and behind the batch; negative if not known */
  bool results_on_screen; /* the progress bar makes room for them */
  /* the batch */
  wf_matrix *matrices;      /* [max_batch] */
  wf_error *errors;         /* [max_batch] message non-empty: could not be read */
  wf_utterance *utterances; /* [max_batch] */
  wf_result **results;      /* [max_batch] */
  size_t size;
  uint64_t most_bytes; /* of scores */
  /* the sums */
  uint64_t num_utterances, num_failed, num_not_final, num_narrowed, num_overflowed, num_died,
      num_missing;
  bool lost_rest; /* of an archive that could not be followed to its end */
  bool no_memory; /* for some utterance */
  int64_t num_frames;
  uint64_t num_tokens, num_arcs;
  uint64_t lattice_states, lattice_arcs, lattice_emitting; /* emitting: arcs that consume a frame */
  double decode_s;
};

/* Writes the summary: a line or, with --json, JSON on standard error; JSON to --summary's file. */
wf_status decode_report_summary(const struct decode_run *run, wf_error *err);

#endif
