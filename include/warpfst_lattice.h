/* warpfst_lattice.h - lattices: pruning, determinization, n-best lists, rescoring, confidences,
 * alignment, files. The rules at the top of warpfst.h hold here, too. */
#ifndef WARPFST_LATTICE_H
#define WARPFST_LATTICE_H

#include "warpfst_graph.h"
#include "warpfst_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  Lattices
 * ========================================================================================= */

/* Arc of a raw lattice: acoustic label : word, with the parts of its cost apart (nats). */
typedef struct wf_lattice_arc {
  int32_t ilabel; /* label of the decoding graph (transition-id, token + 1, ...), which consumes one
                     frame; 0: none */
  int32_t olabel; /* word, 0: none */
  float graph_cost;
  float acoustic_cost;
  int32_t nextstate;
  float scorer_cost; /* what a scorer added on the fly; 0 without one */
} wf_lattice_arc;

/* A raw lattice: acyclic, states in topological order, start state 0. Immutable, reference counted;
 * its words are labels of the graph's output table. */
typedef struct wf_lattice wf_lattice;
typedef struct wf_lattice_view {
  uint64_t num_states, num_arcs; /* no states: the empty lattice */
  const uint64_t *arc_off; /* [num_states + 1]: arcs of state s are [arc_off[s], arc_off[s + 1]) */
  const wf_lattice_arc *arcs;
  const float *final_graph_cost; /* [num_states] +infinity: not final */
  const float *final_acoustic_cost;
  const int32_t *frames;          /* [num_states] frames consumed before the state */
  const float *final_scorer_cost; /* [num_states] 0 without a scorer, and where not final */
} wf_lattice_view;
WF_API wf_lattice_view wf_lattice_get(const wf_lattice *lattice);
WF_API wf_lattice *wf_lattice_ref(const wf_lattice *lattice);
WF_API void wf_lattice_free(wf_lattice *lattice);

/* Weight of a compact lattice: costs apart (nats; a scorer's are part of graph_cost) and the
 * alignment, the labels that consumed a frame on the way: `num_labels` of them from `first_label`
 * in the lattice's array of labels. A path's alignment has one label a frame. */
typedef struct wf_compact_weight {
  float graph_cost, acoustic_cost;
  uint32_t num_labels;
  uint64_t first_label;
} wf_compact_weight;
typedef struct wf_compact_arc {
  int32_t word; /* 0: none */
  int32_t nextstate;
  wf_compact_weight weight;
} wf_compact_arc;

/* A compact lattice (Povey et al. 2012, "Generating exact lattices in the WFST framework"): an
 * acyclic acceptor of words, states in topological order, start state 0. Determinized if it was
 * made by determinization, else as its file said. Immutable, reference counted. */
typedef struct wf_compact_lattice wf_compact_lattice;
typedef struct wf_compact_lattice_view {
  uint64_t num_states, num_arcs, num_labels; /* no states: the empty lattice */
  const uint64_t *arc_off;                   /* [num_states + 1] */
  const wf_compact_arc *arcs;
  const wf_compact_weight *finals; /* [num_states] graph_cost +infinity: not final */
  const int32_t *labels;           /* [num_labels] alignments, which may share places */
  const int32_t *frames; /* [num_states] frames consumed before the state: the same on every path to
                            it, or -1 where paths differ */
} wf_compact_lattice_view;
WF_API wf_compact_lattice_view wf_compact_lattice_get(const wf_compact_lattice *lattice);
WF_API wf_compact_lattice *wf_compact_lattice_ref(const wf_compact_lattice *lattice);
WF_API void wf_compact_lattice_free(wf_compact_lattice *lattice);

/* --- pruning, scaling, determinization, n-best, rescoring (docs/how-to/lattices.md) ------- */

/* A new lattice of the arcs and final states on paths within `beam` nats of the best. The order of
 * states and arcs is kept. Sums are exact (integers; docs/engineering/lattices.md), so a path of
 * exactly the beam is kept. Errors: beam negative or NaN. */
WF_API wf_status wf_lattice_prune(const wf_lattice *lattice, float beam, wf_lattice **out,
                                  wf_error *err);
WF_API wf_status wf_compact_lattice_prune(const wf_compact_lattice *lattice, float beam,
                                          wf_compact_lattice **out, wf_error *err);

/* A new lattice with costs of other scales: graph_cost * lm_scale - word_score for a word,
 * scorer_cost * lm_scale, acoustic_cost * acoustic_scale. Final costs are scaled, too. */
#define WF_LATTICE_SCALE_OPTIONS(X)                                                            \
  X(F32, lm_scale, 1, -1e6, 1e6, "", "factor on graph costs: LM, pronunciations, transitions") \
  X(F32, acoustic_scale, 1, -1e6, 1e6, "",                                                     \
    "factor on acoustic costs, on top of the one they were decoded with")                      \
  X(F32, word_score, 0, -1e6, 1e6, "nats", "added per word; positive favours more words")
WF_DECLARE_OPTIONS(lattice_scale, WF_LATTICE_SCALE_OPTIONS)
WF_API wf_status wf_lattice_scale(const wf_lattice *lattice,
                                  const wf_lattice_scale_options *options, wf_lattice **out,
                                  wf_error *err);
WF_API wf_status wf_compact_lattice_scale(const wf_compact_lattice *lattice,
                                          const wf_lattice_scale_options *options,
                                          wf_compact_lattice **out, wf_error *err);

/* Paths of a lattice, best first. Immutable; the arrays live as long as the object. */
typedef struct wf_nbest wf_nbest;
typedef struct wf_lattice_path {
  const int32_t *words;     /* [num_words] */
  const int32_t *frames;    /* [num_words] labels of the alignment before the arc that carries the
                               word; in a raw lattice the word's first frame */
  const int32_t *alignment; /* [num_labels] */
  size_t num_words, num_labels;
  double graph_cost,
      acoustic_cost; /* nats; a scorer's costs are the graph's here and in compact lattices */
  double old_lm_cost,
      new_lm_cost; /* of these words, scaled; 0 unless rescored (wf_nbest_rescore) */
} wf_lattice_path;
WF_API size_t wf_nbest_count(const wf_nbest *nbest);
WF_API wf_lattice_path wf_nbest_at(const wf_nbest *nbest, size_t i);
WF_API void wf_nbest_free(wf_nbest *nbest);

/* The best path, as a list of one path, or of none for a lattice without paths. Ties: where two
 * paths part, the one that takes the earlier arc. */
WF_API wf_status wf_lattice_best_path(const wf_lattice *lattice, wf_nbest **out, wf_error *err);
WF_API wf_status wf_compact_lattice_best_path(const wf_compact_lattice *lattice, wf_nbest **out,
                                              wf_error *err);
/* The n best word sequences, each once, with the costs and the alignment of its best path; fewer if
 * the lattice has fewer. Order: by cost, then by words, label by label, a sequence before those
 * that continue it. The time depends on what is found, not on the size of the lattice. Errors:
 * WF_ERR_ARGUMENT if two arcs of a state have the same word, or an arc has none
 * (wf_compact_lattice_determinize makes a lattice without either). */
WF_API wf_status wf_compact_lattice_nbest(const wf_compact_lattice *lattice, size_t n,
                                          wf_nbest **out, wf_error *err);

/* Pruned determinization over words (Povey et al. 2012, "Generating exact lattices in the WFST
 * framework"): an acceptor in which a word sequence has at most one path.
 *
 * It has every word sequence whose best path is within `beam` of the best path of all, with the
 * costs and the alignment of the sequence's best path. Every arc is on such a path. A sequence
 * beyond the beam may be in the result if others use all of its arcs; it then has the cost and
 * alignment of one of its paths. Sums are exact. With delta > 0, costs that differ by less may
 * count as equal, once an arc. That helps only if equal costs were rounded differently, as in
 * lattices of other tools. With `phones` (wf_lattice_phones), lattices of HMMs are determinized
 * over phones and words first, then over words: the result has the same sequences.
 *
 * max_bytes bounds the tables. If they are full, the most costly subsets are dropped. The result is
 * then that of a narrower beam, which is reported. */
#define WF_LATTICE_DETERMINIZE_OPTIONS(X)                                              \
  X(F32, beam, 8, 0, 1e30, "nats", "keep word sequences within this cost of the best") \
  X(I64, max_bytes, 268435456, 65536, 1e15, "bytes",                                   \
    "room for the tables of one lattice; beyond it the beam gets narrower")            \
  X(F32, delta, 0, 0, 1, "nats",                                                       \
    "residual costs closer than this are the same; 0: only equal ones are")            \
  X(BOOL, minimize, 1, 0, 1, "", "merge states with the same continuations")           \
  X(I32, num_threads, 0, 0, 4096, "threads",                                           \
    "lattices worked on at once, of several; 0: one per processor")
WF_DECLARE_OPTIONS(lattice_determinize, WF_LATTICE_DETERMINIZE_OPTIONS)
/* Where phones begin: phone_of[l] > 0 for an input label l that begins a phone (any numbers will
 * do), else 0. Borrowed for the call. */
typedef struct wf_lattice_phones {
  const int32_t *phone_of; /* [count] */
  size_t count;            /* labels from there on begin none */
} wf_lattice_phones;
/* What became of one lattice. */
typedef struct wf_determinized {
  wf_status status; /* WF_OK, or why there is no lattice; then only `message` means anything */
  char message[256];
  wf_compact_lattice *lattice; /* the caller's */
  bool narrowed;               /* max_bytes did not suffice for the beam */
  float beam; /* that the lattice is complete for: options.beam, or less if narrowed. 0: paths of
                 the best cost, at least one */
  uint64_t num_subsets; /* states before minimization */
  uint64_t num_bytes;   /* of the tables */
} wf_determinized;
/* `phones` may be NULL; `out` is filled in any case, and freed by
 * wf_compact_lattice_free(out->lattice). Any number of threads may call this at once. Errors: NaN
 * or -infinity in the lattice (arcs of +infinity count as absent). */
WF_API wf_status wf_lattice_determinize(const wf_lattice *lattice, const wf_lattice_phones *phones,
                                        const wf_lattice_determinize_options *options,
                                        wf_determinized *out, wf_error *err);
/* The same of a compact lattice, from a file or made in any other way. */
WF_API wf_status wf_compact_lattice_determinize(const wf_compact_lattice *lattice,
                                                const wf_lattice_determinize_options *options,
                                                wf_determinized *out, wf_error *err);
/* `count` lattices over num_threads threads; NULL entries are skipped. The error of a
 * lattice is in out[i]. A failing return leaves no lattices. */
WF_API wf_status wf_lattices_determinize(const wf_lattice *const *lattices, size_t count,
                                         const wf_lattice_phones *phones,
                                         const wf_lattice_determinize_options *options,
                                         wf_determinized *out, wf_error *err);

/* Makes wf_decode determinize each lattice, in the thread that made it, while other threads or the
 * GPU go on with the search. Results then have `determinized`, as wf_lattice_determinize fills it
 * without phones. num_threads has no effect. `options` NULL, the default: no determinization.
 * Results of streams have none. Errors: WF_ERR_ARGUMENT for a decoder that makes no lattices. */
WF_API wf_status wf_decoder_set_determinization(wf_decoder *decoder,
                                                const wf_lattice_determinize_options *options,
                                                wf_error *err);

/* Replaces the language model. The graph cost of every path gains new_lm_scale times the cost of
 * its words, and of the sentence end, in `new_lm`. It loses old_lm_scale times their cost in
 * `old_lm` (NULL: it loses nothing). Back-off is exact (wf_lm_step). A graph made with
 * backoff=epsilon may have taken a cheaper back-off; such paths keep the difference. The labels of
 * both models are those of the lattice's words. A word that a model does not know has its cost of
 * <unk>. A word without a cost in the old model keeps its cost; a path with a word without a cost
 * in the new model is removed. States are split by the models' histories, so a deterministic
 * lattice stays deterministic. WF_ERR_LIMIT beyond max_states. */
#define WF_LATTICE_RESCORE_OPTIONS(X)                                         \
  X(F32, new_lm_scale, 1, 0, 1e6, "", "factor on the costs of the new model") \
  X(F32, old_lm_scale, 1, 0, 1e6, "",                                         \
    "factor on the costs of the old model, as it is in the lattice")          \
  X(I64, max_states, 10000000, 1, 2147483647, "states", "refuse to grow beyond this")
WF_DECLARE_OPTIONS(lattice_rescore, WF_LATTICE_RESCORE_OPTIONS)
/* Scaled LM costs of the arcs and final states of a rescored lattice, old and new apart. Owned by
 * the caller: wf_rescored_costs_free. */
typedef struct wf_rescored_costs {
  float *old_arcs, *new_arcs;     /* [num_arcs] */
  float *old_finals, *new_finals; /* [num_states] 0 where not final */
} wf_rescored_costs;
WF_API void wf_rescored_costs_free(wf_rescored_costs *costs);
/* `out_costs` may be NULL: not wanted. */
WF_API wf_status wf_compact_lattice_rescore(const wf_compact_lattice *lattice, const wf_lm *old_lm,
                                            const wf_lm *new_lm,
                                            const wf_lattice_rescore_options *options,
                                            wf_compact_lattice **out, wf_rescored_costs *out_costs,
                                            wf_error *err);
/* Adds the costs of a scorer, that of the end included, to the graph costs: what decoding with the
 * scorer gives for the paths of the lattice. States are split by the scorer's contexts. With a
 * recurrent model these are all words before, or the last ones if history_merge_order is set. Paths
 * with a word of infinite cost are removed.
 * Errors: WF_ERR_LIMIT beyond max_states; those of the scorer. */
WF_API wf_status wf_compact_lattice_score(const wf_compact_lattice *lattice,
                                          const wf_scorer *scorer, int64_t max_states,
                                          wf_compact_lattice **out, wf_error *err);
/* The costs of a scorer for each arc and final state of a compact lattice. Owned by the caller:
 * wf_scorer_costs_free. */
typedef struct wf_scorer_costs {
  float *arcs;   /* [num_arcs] */
  float *finals; /* [num_states] 0 where not final */
} wf_scorer_costs;
WF_API void wf_scorer_costs_free(wf_scorer_costs *costs);
/* Separates the costs of a scorer from those of the graph. In a compact lattice that was decoded
 * with a scorer they are part of graph_cost; a raw lattice has a field of its own for them. The
 * result has the same paths at the same costs, with states split by the scorer's contexts.
 * `out_costs` has the scorer's part of each arc; graph_cost less it is the graph's own part. Sums
 * along paths are exact up to rounding. Single arcs may differ, as determinization moves costs
 * along a path. Errors: those of wf_compact_lattice_score. */
WF_API wf_status wf_compact_lattice_scorer_costs(const wf_compact_lattice *lattice,
                                                 const wf_scorer *scorer, int64_t max_states,
                                                 wf_compact_lattice **out,
                                                 wf_scorer_costs *out_costs, wf_error *err);
/* wf_compact_lattice_rescore for a list, sorted anew. Paths that the new model makes impossible are
 * removed. */
WF_API wf_status wf_nbest_rescore(const wf_nbest *nbest, const wf_lm *old_lm, const wf_lm *new_lm,
                                  const wf_lattice_rescore_options *options, wf_nbest **out,
                                  wf_error *err);

/* Converts between the two forms, path by path, without determinization. To compact: an arc for
 * each arc. From compact: an arc for each label of an alignment, with the costs and the word on the
 * first. */
WF_API wf_status wf_compact_lattice_from_raw(const wf_lattice *lattice, wf_compact_lattice **out,
                                             wf_error *err);
WF_API wf_status wf_lattice_from_compact(const wf_compact_lattice *lattice, wf_lattice **out,
                                         wf_error *err);

/* Lattice archives, as Kaldi's tools read and write them: "Lattice" (here: raw) and
 * "CompactLattice", binary or text (docs/reference/lattice-formats.md). */
typedef struct wf_lattice_entry {
  char *key;       /* utterance id, NUL-ended UTF-8 */
  wf_lattice *raw; /* one of these two, the other is NULL */
  wf_compact_lattice *compact;
} wf_lattice_entry;
/* Frees what the entry owns and zeroes it. The structure itself is the caller's. */
WF_API void wf_lattice_entry_clear(wf_lattice_entry *entry);

/* A stream of lattices from one or more sources, each an archive, a script file (`key
 * path:byte_offset` lines) or '-', gzipped or not, with or without Kaldi's prefixes, as for
 * wf_score_reader. Archives may hold both kinds. Lattices are put in topological order from their
 * start; what that does not reach, and arcs of infinite cost, are dropped. A raw lattice whose
 * paths to a state differ in their number of labels has frames[state] = -1. A reader is used by one
 * thread at a time. */
#define WF_LATTICE_READER_OPTIONS(X)                                                  \
  X(ENUM, kind, 0, 0, 0, "any|raw|compact",                                           \
    "kind of lattice to return: as the archive has it, or converted path by path")    \
  X(F32, lm_scale, 1, -1e6, 1e6, "", "factor on the graph costs of lattices as read") \
  X(F32, acoustic_scale, 1, -1e6, 1e6, "", "factor on the acoustic costs of lattices as read")
WF_DECLARE_OPTIONS(lattice_reader, WF_LATTICE_READER_OPTIONS)
typedef struct wf_lattice_reader wf_lattice_reader;
/* `words` (may be NULL, shared): the table of the words in text archives; without it their words
 * are numbers. Binary archives always hold numbers. Errors at once: as wf_score_reader_open. */
WF_API wf_status wf_lattice_reader_open(const char *const *sources, size_t num_sources,
                                        const wf_symbols *words,
                                        const wf_lattice_reader_options *options,
                                        wf_lattice_reader **out, wf_error *err);
/* Next lattice into `*out` (the caller's, to be cleared; what it held before is not freed), or
 * `*done` at the end. Errors as with wf_score_reader_next; a malformed text lattice never costs
 * more than itself. */
WF_API wf_status wf_lattice_reader_next(wf_lattice_reader *reader, wf_lattice_entry *out,
                                        bool *done, wf_error *err);
WF_API bool wf_lattice_reader_lost_rest(const wf_lattice_reader *reader);
WF_API double wf_lattice_reader_fraction(const wf_lattice_reader *reader);
WF_API void wf_lattice_reader_free(wf_lattice_reader *reader);

/* Writes a lattice archive, or a folder (made if it is not there) of KEY.slf, HTK's Standard
 * Lattice Format, words on links. Costs in text have as many digits as give the same float32 back.
 */
#define WF_LATTICE_WRITER_OPTIONS(X)                                                            \
  X(ENUM, format, 0, 0, 0, "ark|text|slf", "Kaldi binary, Kaldi text, folder of HTK SLF files") \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame, for times in SLF")      \
  X(F32, acoustic_divisor, 1, 1e-6, 1e6, "",                                                    \
    "acoustic costs are divided by this; the decoder's acoustic_scale makes them unscaled, as " \
    "Kaldi's tools write and expect them")                                                      \
  X(STR, scp, 0, 0, 0, "FILE", "also write a Kaldi script file that points into the archive")
WF_DECLARE_OPTIONS(lattice_writer, WF_LATTICE_WRITER_OPTIONS)
typedef struct wf_lattice_writer wf_lattice_writer;
/* `words` (may be NULL, shared): text archives and SLF get words of this table instead of numbers.
 */
WF_API wf_status wf_lattice_writer_open(const char *path, const wf_symbols *words,
                                        const wf_lattice_writer_options *options,
                                        wf_lattice_writer **out, wf_error *err);
/* Errors: a key with blanks; a word that is not in the table. Nothing is written then. */
WF_API wf_status wf_lattice_writer_put(wf_lattice_writer *writer, const wf_lattice_entry *entry,
                                       wf_error *err);
/* Completes and frees, also when it fails. */
WF_API wf_status wf_lattice_writer_close(wf_lattice_writer *writer, wf_error *err);
/* Frees and drops what was written (NULL is fine). */
WF_API void wf_lattice_writer_abort(wf_lattice_writer *writer);

/* --- posteriors, minimum Bayes risk, oracle, statistics (docs/reference/lattice-formats.md) */

/* The posterior of each arc, and of ending in each state: its share of the probability of all
 * paths. Sums are in double. `arc_posteriors` [num_arcs], `final_posteriors` [num_states] and
 * `out_total`
 * (-ln of the sum over all paths; +infinity if there are none) may be NULL. Costs are taken as they
 * are. Unscaled acoustic costs give posteriors near 0 and 1: scale them first (the reader's
 * options, wf_compact_lattice_scale). */
WF_API wf_status wf_compact_lattice_posteriors(const wf_compact_lattice *lattice,
                                               double *arc_posteriors, double *final_posteriors,
                                               double *out_total, wf_error *err);

/* Minimum Bayes risk: the words with the least expected number of errors, with a confidence for
 * each, and the sausage they are taken from (Xu, Povey, Mangu, Zhu 2011, "Minimum Bayes Risk
 * decoding and system combination based on a recursion for edit distance"). */
#define WF_MBR_OPTIONS(X)                                                                       \
  X(BOOL, decode, 1, 0, 1, "",                                                                  \
    "look for words of less expected errors; --no-decode keeps the best path's and only gives " \
    "confidences")
WF_DECLARE_OPTIONS(mbr, WF_MBR_OPTIONS)
typedef struct wf_sausage_word {
  int32_t label;                  /* 0: no word */
  int32_t start_frame, end_frame; /* mean over the paths, rounded; -1 in a lattice whose paths
                                     differ in their frames */
  double posterior;
} wf_sausage_word;
typedef struct wf_mbr_result {
  wf_word *words;     /* [num_words] times: as of the sausage; words do not overlap */
  float *confidences; /* [num_words] in [0, 1]: posterior of the word in its bin */
  size_t num_words;
  double risk; /* expected number of word errors, or a little more (the recursion's bound) */
  int32_t num_rounds;
  size_t num_bins;   /* 2 * num_words + 1: word i is that of bin 2 * i + 1, the others stand before,
                        between and behind the words */
  uint64_t *bin_off; /* [num_bins + 1] */
  wf_sausage_word *bin_words; /* words of bin b: [bin_off[b], bin_off[b + 1]), most probable first;
                                 their posteriors sum up to 1 */
} wf_mbr_result;
/* Starts from `words` [num_words], or from those of the best path if NULL. Costs are taken as they
 * are. Times are those of arcs, so give it a lattice of wf_compact_lattice_align. Errors: a lattice
 * without paths; WF_ERR_LIMIT beyond 2^28 states x places. */
WF_API wf_status wf_compact_lattice_mbr(const wf_compact_lattice *lattice, const int32_t *words,
                                        size_t num_words, const wf_mbr_options *options,
                                        wf_mbr_result **out, wf_error *err);
WF_API void wf_mbr_result_free(wf_mbr_result *result);

/* The words of the path with the fewest errors (insertions, deletions, substitutions: 1 each)
 * against a reference; `*out_words` is for wf_free. Errors: as of wf_compact_lattice_mbr, 2^30
 * states x words. */
WF_API wf_status wf_compact_lattice_oracle(const wf_compact_lattice *lattice,
                                           const int32_t *reference, size_t num_reference,
                                           int32_t **out_words, size_t *out_count,
                                           uint64_t *out_errors, wf_error *err);

typedef struct wf_lattice_stats {
  size_t struct_size;
  uint64_t num_states, num_arcs, num_final;
  uint64_t num_word_arcs;       /* arcs with a word */
  uint64_t num_labels;          /* of all alignments */
  int64_t num_frames;           /* of the longest path; 0 if paths to the final states differ */
  double depth;                 /* arcs that cross a frame, on average: num_labels / num_frames */
  double log_paths;             /* ln of the number of paths */
  double best_cost, total_cost; /* of the best path; -ln of the sum over all */
} wf_lattice_stats;
WF_DECLARE_INIT(lattice_stats)
WF_API wf_status wf_compact_lattice_get_stats(const wf_compact_lattice *lattice,
                                              wf_lattice_stats *out, wf_error *err);

/* --- word times (docs/reference/lattice-formats.md) -------------------------------------- */

/* Finds where words begin and end in an alignment, which has one label a frame. Immutable,
 * reference counted, for any number of threads. Graphs of wf_ctc_graph_build and wf_hmm_graph_build
 * carry one, which the decoder uses for word times. For other graphs, make one and attach it with
 * wf_fst_with_word_aligner. */
typedef struct wf_word_aligner wf_word_aligner;
/* Kaldi models read with a lang folder that has phones/word_boundary.txt: a word goes from a phone
 * that begins words to one that ends them, or is one phone alone; silence and other nonwords are
 * between words. A phone ends with its last transition and the self-loops behind that (Kaldi's
 * reorder=true, and the graphs made here). WF_ERR_UNSUPPORTED for other models. */
WF_API wf_status wf_word_aligner_from_hmm(const wf_hmm *hmm, wf_word_aligner **out, wf_error *err);
/* Models whose labels tell which phone they belong to (CMU Sphinx, Kaldi), with a lexicon over
 * wf_hmm_phones: as wf_word_aligner_from_lexicon, but over phones. */
WF_API wf_status wf_word_aligner_from_hmm_lexicon(const wf_hmm *hmm, const wf_lexicon *lexicon,
                                                  const wf_symbols *words, wf_word_aligner **out,
                                                  wf_error *err);
/* CTC tokens of which those that begin words start with U+2581. A token lasts while its label is
 * repeated; a word goes from the first frame of its first token to the last frame of its last;
 * blanks behind it are between words. `blank`: as in wf_lexicon_options. */
WF_API wf_status wf_word_aligner_from_tokens(const wf_symbols *tokens, const char *blank,
                                             wf_word_aligner **out, wf_error *err);
/* CTC tokens with a lexicon over them: a word is one of its pronunciations; where one continues
 * another, the longest behind which the next words can stand. `words`: the table of the lattice's
 * words. Tokens that no pronunciation uses (silence) stand between words. */
WF_API wf_status wf_word_aligner_from_lexicon(const wf_lexicon *lexicon, const wf_symbols *words,
                                              wf_word_aligner **out, wf_error *err);
/* The aligner that an fst carries. WF_ERR_UNSUPPORTED: it has none. */
WF_API wf_status wf_word_aligner_from_fst(const wf_fst *fst, wf_word_aligner **out, wf_error *err);
/* A new fst over the same arrays that carries the aligner (NULL: none). Native files keep it,
 * OpenFst's do not; operations other than convert, arcsort and wf_epsilons_last drop it. */
WF_API wf_status wf_fst_with_word_aligner(const wf_fst *fst, const wf_word_aligner *aligner,
                                          wf_fst **out, wf_error *err);
/* The aligner of a graph, with the pronunciations of its added words; NULL: none, so word times are
 * estimates. Lives as long as the graph. */
WF_API const wf_word_aligner *wf_graph_word_aligner(const wf_graph *graph);
/* Shares the aligner: each ref needs its own free. */
WF_API wf_word_aligner *wf_word_aligner_ref(const wf_word_aligner *aligner);
WF_API void wf_word_aligner_free(wf_word_aligner *aligner);
/* Name of a phone or token, NULL if it has none. Lives as long as the aligner. */
WF_API const char *wf_word_aligner_unit_text(const wf_word_aligner *aligner, int32_t unit);

/* Words of one path with their frames, into `out_words` [num_words]. `*out_forced` (may be NULL):
 * words whose labels are not those of a word, so that their times are guesses: of an utterance cut
 * off within a word, or of another model. */
WF_API wf_status wf_word_aligner_words(const wf_word_aligner *aligner, const int32_t *words,
                                       size_t num_words, const int32_t *alignment,
                                       size_t num_labels, wf_word *out_words, uint64_t *out_forced,
                                       wf_error *err);
/* Phones or tokens of one path with their frames; blanks are left out. `*out_units` is for wf_free.
 */
WF_API wf_status wf_word_aligner_units(const wf_word_aligner *aligner, const int32_t *alignment,
                                       size_t num_labels, wf_word **out_units, size_t *out_count,
                                       wf_error *err);

/* The same paths, with alignments cut at word boundaries: an arc for every word, with the word's
 * frames, and arcs without a word for what is between words. Deterministic input
 * (wf_compact_lattice_determinize) keeps the result small. Beyond max_arcs: WF_ERR_LIMIT.
 * `*out_forced` (may be NULL): arcs whose labels are not those of a word. */
#define WF_LATTICE_ALIGN_OPTIONS(X) \
  X(I64, max_arcs, 10000000, 1, 2147483647, "arcs", "refuse to make an aligned lattice of more")
WF_DECLARE_OPTIONS(lattice_align, WF_LATTICE_ALIGN_OPTIONS)
WF_API wf_status wf_compact_lattice_align(const wf_compact_lattice *lattice,
                                          const wf_word_aligner *aligner,
                                          const wf_lattice_align_options *options,
                                          wf_compact_lattice **out, uint64_t *out_forced,
                                          wf_error *err);

/* A picture of a lattice: a page of HTML with an SVG in it (time on the x axis, best path marked,
 * costs shown where one points, nothing loaded from elsewhere), or input for Graphviz. The same
 * lattice always gives the same bytes. `words` NULL: numbers. WF_ERR_LIMIT beyond max_arcs. */
#define WF_LATTICE_DRAW_OPTIONS(X)                                                \
  X(ENUM, format, 0, 0, 0, "html|dot", "page with an SVG, or input for Graphviz") \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame")          \
  X(I64, max_arcs, 5000, 1, 1000000, "arcs", "refuse to draw more")
WF_DECLARE_OPTIONS(lattice_draw, WF_LATTICE_DRAW_OPTIONS)
WF_API wf_status wf_compact_lattice_draw(const wf_compact_lattice *lattice, const char *key,
                                         const wf_symbols *words,
                                         const wf_lattice_draw_options *options, const char *path,
                                         wf_error *err);

/* =========================================================================================
 * 2  Lattices of streams
 * ========================================================================================= */

/* The lattice of what has come so far, any token being an end (needs lattice_beam): that of
 * wf_decode for these frames if no state of the graph were final. A copy is made, so its cost goes
 * with the utterance's length. Errors as for wf_stream_partial; WF_ERR_ARGUMENT without
 * lattice_beam. */
WF_API wf_status wf_stream_partial_lattice(wf_stream *stream, wf_lattice **out, wf_error *err);
/* Hands out the part of the lattice that nothing can change any more, and drops it: from the start,
 * or where the last part ended, to the latest token that every path goes through. `*out` is NULL
 * where there is no such token yet. So memory stays bounded while lattices are made of hours of
 * audio. The parts, one behind the other, and behind them the result's lattice are the whole
 * lattice, bit for bit: the last state of each, the only final one (at no cost), is the first of
 * the next. Frames count from the last reset. */
WF_API wf_status wf_stream_commit_lattice(wf_stream *stream, wf_lattice **out, wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_LATTICE_H */
