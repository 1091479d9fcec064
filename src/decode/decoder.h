/* decoder.h - a decoder from the inside: a graph, options, and the backend that searches. */
#ifndef WF_DECODE_DECODER_H
#define WF_DECODE_DECODER_H

#include <stdatomic.h>

#include "decode/backend.h"
#include "decode/check_scores.h"
#include "search/transducer/transducer.h"

struct wf_decoder {
  atomic_int refs; /* one of the caller, until wf_decoder_free, and one of each open stream */
  _Atomic(wf_stream *) abandoned; /* list of abandoned streams, to be closed */
  wf_graph *graph;
  wf_decoder_options options;
  wf_transducer *transducer; /* NULL: none; else scores are its encoder outputs */
  const wf__backend *backend;
  void *search;
  wf_scorer *scorer; /* of utterances without their own scorer; may be NULL */
  wf_lattice_determinize_options determinizing; /* struct_size 0: lattices are not determinized */
  wf_lattice_results_options lattice_results;   /* struct_size 0: none are made */
  wf__determinizers *determinizers;             /* created when options are first set */
  wf__score_check check;
  atomic_bool has_said_no_silence;
};

/* Adds a reference, which wf_decoder_free releases. */
wf_decoder *wf__decoder_ref(wf_decoder *decoder);

/* Returns false, with the error in the utterance's result, if its scores are not a valid matrix or
 * have too few columns. The backend checks the values. */
bool wf__check_scores(const wf_decoder *decoder, const wf_scores *scores, wf_result *result);
/* May an utterance of the decoder search this graph (NULL: its own)? */
wf_status wf__check_graph(const wf_decoder *decoder, const wf_graph *graph, wf_error *err);

/* Does the decoder's device support this scorer (NULL: none) with the graph (NULL: the decoder's
 * own)? */
wf_status wf__check_scorer(const wf_decoder *decoder, const wf_graph *graph,
                           const wf_scorer *scorer, wf_error *err);

/* The same for encoder outputs. */
bool wf__check_encoder_outputs(const wf_transducer *model, const wf_scores *scores,
                               wf_result *result);
/* Do graph and options fit the model? Sets the blank. */
wf_status wf__check_transducer(const wf_transducer *model, const wf_graph *graph,
                               wf_decoder_options *options, const wf__devices *devices,
                               wf_error *err);

#endif
