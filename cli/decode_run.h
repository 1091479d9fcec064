/* decode_run.h - the state of one run of `warpfst decode`: flags, objects, the current batch, and
 * sums over all batches. cmd_decode.c fills it; decode_summary.c prints the summary. */
#ifndef CLI_DECODE_RUN_H
#define CLI_DECODE_RUN_H

#include "aligner_source.h"
#include "boosts.h"
#include "decode_lattices.h"
#include "join_tokens.h"
#include "rnnlm_scorer.h"
#include "word_lists.h"

struct decode_run {
  const char *output, *words_path, *columns_path, *reference, *summary_path, *boost_path,
      *boosts_path, *lm_path, *lm_subtract_path, *transducer_path;
  bool json, quiet, lm_table;
  double lm_subtract_scale;
  double chunk_s; /* 0: whole utterances */
  int64_t max_batch;
  wf_decoder_options decoder_options;
  wf_ngram_scorer_options scorer_options;
  rnnlm_source rnnlm;
  wf_scorer *lm; /* the scorer of every utterance: n-gram models, recurrent model, or a chain */
  wf_score_reader_options reader_options;
  wf_result_writer_options writer_options;
  aligner_source
      aligner; /* attached to a graph that has no word aligner; its --am also gives columns */
  token_joiner joiner;
  wf_fst *fst;
  wf_graph *graph;
  wf_decoder *decoder;
  wf_symbols *words;
  wf_score_reader *reader;
  wf_result_writer *writer;
  decode_lattices lattices;
  wf_transcripts *references;
  wf_wer *wer;
  double boost_per_letter;
  boost_set *boosts; /* NULL: none */
  added_request added_request;
  added_set *added; /* NULL: none */
  wf_progress progress;
  double fraction[2]; /* fraction of the input read before and after the batch; negative: unknown */
  bool results_on_screen; /* the progress bar is cleared before results are written */
  /* the current batch */
  wf_matrix *matrices;      /* [max_batch] */
  wf_error *errors;         /* [max_batch] code != WF_OK: the utterance could not be read */
  wf_utterance *utterances; /* [max_batch] */
  wf_result **results;      /* [max_batch] */
  size_t size;
  uint64_t most_bytes; /* limit of the scores of a batch */
  /* sums over all batches */
  uint64_t num_utterances, num_failed, num_not_final, num_narrowed, num_overflowed, num_died,
      num_missing;
  bool lost_rest; /* the rest of an archive could not be read */
  bool no_memory; /* memory ran out for an utterance */
  int64_t num_frames;
  uint64_t num_tokens, num_arcs;
  uint64_t lattice_states, lattice_arcs, lattice_emitting; /* emitting: arcs that consume a frame */
  double decode_s;
};

/* Prints the summary on standard error, as text or, with --json, as JSON. Also writes it as JSON to
 * the file of --summary. */
wf_status decode_report_summary(const struct decode_run *run, wf_error *err);

#endif
