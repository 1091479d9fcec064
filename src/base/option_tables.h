/* option_tables.h - all option tables of the library. One row here declares a table, defines it and
 * adds it to the list. */
#ifndef WF_BASE_OPTION_TABLES_H
#define WF_BASE_OPTION_TABLES_H

#include "base/config.h"

#define WF__OPTION_TABLES(X)                             \
  X(text, WF_TEXT_OPTIONS)                               \
  X(arcsort, WF_ARCSORT_OPTIONS)                         \
  X(compose, WF_COMPOSE_OPTIONS)                         \
  X(determinize, WF_DETERMINIZE_OPTIONS)                 \
  X(minimize, WF_MINIMIZE_OPTIONS)                       \
  X(rmepsilon, WF_RMEPSILON_OPTIONS)                     \
  X(push, WF_PUSH_OPTIONS)                               \
  X(shortest_distance, WF_SHORTEST_DISTANCE_OPTIONS)     \
  X(forward_score, WF_FORWARD_SCORE_OPTIONS)             \
  X(shortest_path, WF_SHORTEST_PATH_OPTIONS)             \
  X(prune, WF_PRUNE_OPTIONS)                             \
  X(randgen, WF_RANDGEN_OPTIONS)                         \
  X(closure, WF_CLOSURE_OPTIONS)                         \
  X(project, WF_PROJECT_OPTIONS)                         \
  X(randequivalent, WF_RANDEQUIVALENT_OPTIONS)           \
  X(map, WF_MAP_OPTIONS)                                 \
  X(reweight, WF_REWEIGHT_OPTIONS)                       \
  X(factor_weight, WF_FACTOR_WEIGHT_OPTIONS)             \
  X(difference, WF_DIFFERENCE_OPTIONS)                   \
  X(cdrewrite, WF_CDREWRITE_OPTIONS)                     \
  X(replace, WF_REPLACE_OPTIONS)                         \
  X(disambiguate, WF_DISAMBIGUATE_OPTIONS)               \
  X(epsnormalize, WF_EPSNORMALIZE_OPTIONS)               \
  X(lexicon, WF_LEXICON_OPTIONS)                         \
  X(lexicon_fst, WF_LEXICON_FST_OPTIONS)                 \
  X(topology, WF_TOPOLOGY_OPTIONS)                       \
  X(graph, WF_GRAPH_OPTIONS)                             \
  X(ctc_graph, WF_CTC_GRAPH_OPTIONS)                     \
  X(hmm_graph, WF_HMM_GRAPH_OPTIONS)                     \
  X(tokens_graph, WF_TOKENS_GRAPH_OPTIONS)               \
  X(align, WF_ALIGN_OPTIONS)                             \
  X(hmm_align, WF_HMM_ALIGN_OPTIONS)                     \
  X(beam, WF_BEAM_OPTIONS)                               \
  X(decoder, WF_DECODER_OPTIONS)                         \
  X(stream, WF_STREAM_OPTIONS)                           \
  X(score_reader, WF_SCORE_READER_OPTIONS)               \
  X(matrix_writer, WF_MATRIX_WRITER_OPTIONS)             \
  X(result_writer, WF_RESULT_WRITER_OPTIONS)             \
  X(wer, WF_WER_OPTIONS)                                 \
  X(arpa, WF_ARPA_OPTIONS)                               \
  X(lm_fst, WF_LM_FST_OPTIONS)                           \
  X(lm_prune, WF_LM_PRUNE_OPTIONS)                       \
  X(lm_estimate, WF_LM_ESTIMATE_OPTIONS)                 \
  X(lm_mix, WF_LM_MIX_OPTIONS)                           \
  X(lm_convert, WF_LM_CONVERT_OPTIONS)                   \
  X(ngram_scorer, WF_NGRAM_SCORER_OPTIONS)               \
  X(rnnlm_train, WF_RNNLM_TRAIN_OPTIONS)                 \
  X(rnn_scorer, WF_RNN_SCORER_OPTIONS)                   \
  X(lattice_scale, WF_LATTICE_SCALE_OPTIONS)             \
  X(lattice_determinize, WF_LATTICE_DETERMINIZE_OPTIONS) \
  X(lattice_results, WF_LATTICE_RESULTS_OPTIONS)         \
  X(lattice_rescore, WF_LATTICE_RESCORE_OPTIONS)         \
  X(lattice_reader, WF_LATTICE_READER_OPTIONS)           \
  X(lattice_writer, WF_LATTICE_WRITER_OPTIONS)           \
  X(mbr, WF_MBR_OPTIONS)                                 \
  X(spot, WF_SPOT_OPTIONS)                               \
  X(lattice_align, WF_LATTICE_ALIGN_OPTIONS)             \
  X(lattice_draw, WF_LATTICE_DRAW_OPTIONS)               \
  X(transducer, WF_TRANSDUCER_OPTIONS)                   \
  /* end of the list */

/* wf__compose_table() and so on. */
#define WF__DECLARE_TABLE(name, LIST) const wf_option_table *wf__##name##_table(void);
WF__OPTION_TABLES(WF__DECLARE_TABLE)

#endif
