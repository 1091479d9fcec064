/* warpfst_lattice.h - lattices: pruning, determinization, n-best lists, rescoring, confidences,
 * alignment, files. The rules at the top of warpfst.h apply here too. */
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

/* Arc of a raw lattice (acoustic label : word). The parts of its cost are in separate fields, in
 * nats. */
typedef struct wf_lattice_arc {
  int32_t ilabel; /* input label of the decoding graph (transition-id, token + 1, ...), which
                     consumes one frame; 0: epsilon */
  int32_t olabel; /* word; 0: none */
  float graph_cost;
  float acoustic_cost;
  int32_t nextstate;
  float scorer_cost; /* cost that a scorer added during decoding; 0 without a scorer */
} wf_lattice_arc;

/* A raw lattice: acyclic, with states in topological order and start state 0. Words are labels of
 * the graph's output table. Immutable, reference counted. */
typedef struct wf_lattice wf_lattice;
typedef struct wf_lattice_view {
  uint64_t num_states, num_arcs; /* no states: the empty lattice */
  const uint64_t
      *arc_off; /* [num_states + 1]; the arcs of state s are [arc_off[s], arc_off[s + 1]) */
  const wf_lattice_arc *arcs;
  const float *final_graph_cost;    /* [num_states]; +infinity: not final */
  const float *final_acoustic_cost; /* [num_states] */
  const int32_t *frames;            /* [num_states]; number of frames before the state */
  const float *final_scorer_cost;   /* [num_states]; 0 without a scorer and for non-final states */
} wf_lattice_view;
WF_API wf_lattice_view wf_lattice_get_view(const wf_lattice *lattice);
WF_API wf_lattice *wf_lattice_ref(const wf_lattice *lattice);
WF_API void wf_lattice_free(wf_lattice *lattice);

/* Weight of an arc or final state of a compact lattice. Costs are in nats; graph_cost includes the
 * cost of a scorer. The alignment is the sequence of input labels that consume a frame:
 * labels[first_label] .. labels[first_label + num_labels - 1] of the lattice. The alignment of a
 * path has one label per frame. */
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
 * acyclic acceptor of words, with states in topological order and start state 0. It is
 * deterministic if determinization made it; a lattice from a file need not be. Immutable, reference
 * counted. */
typedef struct wf_compact_lattice wf_compact_lattice;
typedef struct wf_compact_lattice_view {
  uint64_t num_states, num_arcs, num_labels; /* no states: the empty lattice */
  const uint64_t *arc_off;                   /* [num_states + 1] */
  const wf_compact_arc *arcs;
  const wf_compact_weight *finals; /* [num_states]; graph_cost +infinity: not final */
  const int32_t *labels;           /* [num_labels]; alignments, which may overlap */
  const int32_t *frames; /* [num_states]; number of frames before the state; -1: it differs between
                            the paths to the state */
} wf_compact_lattice_view;
WF_API wf_compact_lattice_view wf_compact_lattice_get_view(const wf_compact_lattice *lattice);
WF_API wf_compact_lattice *wf_compact_lattice_ref(const wf_compact_lattice *lattice);
WF_API void wf_compact_lattice_free(wf_compact_lattice *lattice);

/* --- pruning, scaling, determinization, n-best, rescoring (docs/how-to/lattices.md) ------- */

/* Makes a lattice of the arcs and final states on paths within `beam` nats of the best path. States
 * and arcs keep their order. Sums are exact (integers; docs/engineering/lattices.md), so a path
 * exactly at the beam is kept. Errors: `beam` is negative or NaN. */
WF_API wf_status wf_lattice_prune(const wf_lattice *lattice, float beam, wf_lattice **out,
                                  wf_error *err);
WF_API wf_status wf_compact_lattice_prune(const wf_compact_lattice *lattice, float beam,
                                          wf_compact_lattice **out, wf_error *err);

/* Makes a lattice with scaled costs: graph_cost * lm_scale (minus word_score on arcs with a word),
 * scorer_cost * lm_scale, acoustic_cost * acoustic_scale. Final costs are scaled too. */
#define WF_LATTICE_SCALE_OPTIONS(X)                                                            \
  X(F32, lm_scale, 1, -1e6, 1e6, "", "factor on graph costs: LM, pronunciations, transitions") \
  X(F32, acoustic_scale, 1, -1e6, 1e6, "",                                                     \
    "factor on acoustic costs, in addition to the decoder's acoustic_scale")                   \
  X(F32, word_score, 0, -1e6, 1e6, "nats", "added per word; a positive score gives more words")
WF_DECLARE_OPTIONS(lattice_scale, WF_LATTICE_SCALE_OPTIONS)
WF_API wf_status wf_lattice_scale(const wf_lattice *lattice,
                                  const wf_lattice_scale_options *options, wf_lattice **out,
                                  wf_error *err);
WF_API wf_status wf_compact_lattice_scale(const wf_compact_lattice *lattice,
                                          const wf_lattice_scale_options *options,
                                          wf_compact_lattice **out, wf_error *err);

/* A list of paths of a lattice, best first. Immutable. The arrays are valid for the lifetime of the
 * list. */
typedef struct wf_nbest wf_nbest;
typedef struct wf_lattice_path {
  const int32_t *words;  /* [num_words] */
  const int32_t *frames; /* [num_words]; number of alignment labels before the arc of the word. In a
                            raw lattice this is the frame of the word's arc */
  const int32_t *alignment; /* [num_labels] */
  size_t num_words, num_labels;
  double graph_cost,
      acoustic_cost; /* nats; graph_cost includes the cost of a scorer, as in compact lattices */
} wf_lattice_path;
WF_API size_t wf_nbest_count(const wf_nbest *nbest);
WF_API wf_lattice_path wf_nbest_at(const wf_nbest *nbest, size_t i);
WF_API void wf_nbest_free(wf_nbest *nbest);

/* Returns the best path as a list of one path. The list is empty if the lattice has no path. Ties:
 * of two best paths, the one with the lower arc index where they diverge. */
WF_API wf_status wf_lattice_best_path(const wf_lattice *lattice, wf_nbest **out, wf_error *err);
WF_API wf_status wf_compact_lattice_best_path(const wf_compact_lattice *lattice, wf_nbest **out,
                                              wf_error *err);
/* Returns the n best word sequences, or fewer if the lattice has fewer. Each has the costs and the
 * alignment of its best path. They are sorted by cost, and for equal costs by their labels (a
 * prefix comes first). The time depends on the paths found, not on the size of the lattice. Errors:
 * two arcs of a state have the same word, or an arc has no word (WF_ERR_ARGUMENT). Apply
 * wf_compact_lattice_determinize to such a lattice first. */
WF_API wf_status wf_compact_lattice_nbest(const wf_compact_lattice *lattice, size_t n,
                                          wf_nbest **out, wf_error *err);

/* Pruned determinization over words (Povey et al. 2012, "Generating exact lattices in the WFST
 * framework"): makes an acceptor that has at most one path for each word sequence.
 *
 * The result has every word sequence whose best path is within `beam` of the lattice's best path,
 * with the costs and the alignment of the sequence's best path. Every arc is on such a path. A
 * sequence beyond the beam may be in the result if all its arcs are on paths of other sequences. It
 * then has the cost and the alignment of one of its paths, which need not be its best. Sums are
 * exact. With delta > 0, residual costs that differ by less than delta may be treated as equal, at
 * every arc of a path. This only helps if equal costs were rounded differently, as in lattices of
 * other tools. With `phones` (wf_lattice_phones), lattices of HMM models are determinized over
 * phones and words first, and then over words. The result has the same sequences.
 *
 * max_bytes limits the memory of the tables. When they are full, the subsets of highest cost are
 * dropped. The result is then that of a narrower beam, which wf_determinized reports. */
#define WF_LATTICE_DETERMINIZE_OPTIONS(X)                                                          \
  X(F32, beam, 8, 0, 1e30, "nats", "keep word sequences within this cost of the best")             \
  X(I64, max_bytes, 268435456, 65536, 1e15, "bytes",                                               \
    "memory for the tables of one lattice; beyond it the beam narrows")                            \
  X(F32, delta, 0, 0, 1, "nats", "residual costs closer than this are equal; 0: exact comparison") \
  X(BOOL, minimize, 1, 0, 1, "", "merge states with the same continuations")                       \
  X(I32, num_threads, 0, 0, 4096, "threads",                                                       \
    "lattices determinized in parallel; 0: one per processor")
WF_DECLARE_OPTIONS(lattice_determinize, WF_LATTICE_DETERMINIZE_OPTIONS)
/* Table of phone starts: phone_of[l] is the phone (any number > 0) if input label l begins a phone,
 * else 0. Borrowed for the call. */
typedef struct wf_lattice_phones {
  const int32_t *phone_of; /* [count] */
  size_t count;            /* labels from `count` on begin no phone */
} wf_lattice_phones;
/* The result for one lattice. */
typedef struct wf_determinized {
  wf_status
      status; /* WF_OK, or the error of this lattice. After an error only `message` is valid */
  char message[256];
  wf_compact_lattice *lattice; /* owned by the caller */
  bool narrowed;               /* max_bytes narrowed the beam */
  float beam; /* the lattice is complete within this beam: options.beam, or less if narrowed or if
                 the raw lattice is known to be complete within less (its decoder's lattice_beam,
                 wf_lattice_prune). 0: it has only paths of the best cost, at least one */
  uint64_t num_subsets; /* states before minimization */
  uint64_t num_bytes;   /* memory of the tables */
} wf_determinized;
/* Determinizes one lattice. `phones` may be NULL. `*out` is filled in even on failure. Free
 * out->lattice with wf_compact_lattice_free. Thread-safe. Errors: NaN or -infinity in the lattice.
 * Arcs of cost +infinity are ignored. */
WF_API wf_status wf_lattice_determinize(const wf_lattice *lattice, const wf_lattice_phones *phones,
                                        const wf_lattice_determinize_options *options,
                                        wf_determinized *out, wf_error *err);
/* As wf_lattice_determinize, for a compact lattice. */
WF_API wf_status wf_compact_lattice_determinize(const wf_compact_lattice *lattice,
                                                const wf_lattice_determinize_options *options,
                                                wf_determinized *out, wf_error *err);
/* Determinizes `count` lattices with num_threads threads. NULL entries are skipped. out[i] has the
 * error of lattice i. If the call itself fails, there are no lattices. */
WF_API wf_status wf_lattices_determinize(const wf_lattice *const *lattices, size_t count,
                                         const wf_lattice_phones *phones,
                                         const wf_lattice_determinize_options *options,
                                         wf_determinized *out, wf_error *err);

/* Makes wf_decode determinize each lattice in the thread that made it, while other threads or the
 * GPU continue the search. `determinized` of a result is then as wf_lattice_determinize fills it in
 * without phones. num_threads has no effect. `options` NULL, the default: no determinization.
 * options->beam is in nats of the sum of costs; the whole lattice of a transducer is within
 * lattice_beam * acoustic_scale of the decoder's options.
 * Lattices of streams are not determinized. Errors: the decoder makes no lattices
 * (WF_ERR_ARGUMENT). */
WF_API wf_status wf_decoder_set_determinization(wf_decoder *decoder,
                                                const wf_lattice_determinize_options *options,
                                                wf_error *err);

/* What wf_decode makes of each determinized lattice, in the thread that determinized it. `options`
 * NULL, the default: nothing, and raw lattices are kept. Errors: determinization is not enabled
 * (WF_ERR_ARGUMENT); wf_decoder_set_determinization resets these options, so call it first. */
#define WF_LATTICE_RESULTS_OPTIONS(X)                                                              \
  X(BOOL, keep_raw, 1, 0, 1, "",                                                                   \
    "keep the raw lattice in the result; without it, its memory is used for the next utterance")   \
  X(BOOL, confidences, 0, 0, 1, "", "confidences of the words of the best path")                   \
  X(BOOL, mbr, 0, 0, 1, "", "minimum Bayes risk words, with their sausage")                        \
  X(I32, nbest, 0, 0, 2147483647, "", "length of the list of the best word sequences; 0: no list") \
  X(F32, confidence_scale, 0, 0, 1e6, "",                                                          \
    "factor on the costs of paths in confidences and minimum Bayes risk; 0: wf_confidence_scale")
WF_DECLARE_OPTIONS(lattice_results, WF_LATTICE_RESULTS_OPTIONS)
WF_API wf_status wf_decoder_set_lattice_results(wf_decoder *decoder,
                                                const wf_lattice_results_options *options,
                                                wf_error *err);
/* The default of confidence_scale for a decoder with this acoustic_scale. It is calibrated: of the
 * words with confidences about c, a share of about c is right (docs/how-to/word-times.md). */
WF_API float wf_confidence_scale(float acoustic_scale);
/* What was made of a result's determinized lattice (`lattice_results` of wf_result). Parts that
 * were not requested or failed are NULL. Freed with the result. The caller may take a part and set
 * it to NULL. */
typedef struct wf_lattice_results {
  wf_status status;   /* WF_OK, or the error of a part that failed */
  char message[256];  /* of the error */
  float *confidences; /* [num_words of the result]; as wf_compact_lattice_mbr computes them for
                         the words of the result without `decode`, with confidence_scale as its
                         scale and the beam of wf_determinized as its complete_beam. Freed with
                         free() */
  struct wf_mbr_result *mbr; /* as wf_compact_lattice_mbr with these options, for the lattice after
               wf_compact_lattice_align with the graph's word aligner. Without one, times are those
               of the lattice's arcs */
  struct wf_nbest *nbest;    /* as wf_compact_lattice_nbest */
} wf_lattice_results;

/* Replaces the language model. The graph cost of every path gains new_lm_scale times the cost of
 * its words, and of the sentence end, in `new_lm`. It loses old_lm_scale times their cost in
 * `old_lm` (NULL: it loses nothing). Back-off is exact (wf_lm_step). A graph made with
 * backoff=epsilon may have taken a cheaper back-off; such paths keep the difference. The labels of
 * both models are those of the lattice's words. A word that a model lacks has that model's cost of
 * <unk>. If the cost in the old model is infinite, nothing is subtracted for the word. If the cost
 * in the new model is infinite, the path is removed. States are split by the models' histories, so
 * a deterministic lattice stays deterministic. Errors: more than max_states states (WF_ERR_LIMIT).
 */
#define WF_LATTICE_RESCORE_OPTIONS(X)                                         \
  X(F32, new_lm_scale, 1, 0, 1e6, "", "factor on the costs of the new model") \
  X(F32, old_lm_scale, 1, 0, 1e6, "",                                         \
    "factor on the costs of the old model, as it is in the lattice")          \
  X(I64, max_states, 10000000, 1, 2147483647, "states", "fail beyond this number of states")
WF_DECLARE_OPTIONS(lattice_rescore, WF_LATTICE_RESCORE_OPTIONS)
WF_API wf_status wf_compact_lattice_rescore(const wf_compact_lattice *lattice, const wf_lm *old_lm,
                                            const wf_lm *new_lm,
                                            const wf_lattice_rescore_options *options,
                                            wf_compact_lattice **out, wf_error *err);
/* Adds the costs of a scorer, including the cost of the end, to the graph costs. Each path of the
 * lattice then has the cost that decoding with the scorer gives it. States are split by the
 * scorer's contexts. The context of a recurrent model is all words before, or the last
 * history_merge_order - 1 if that is set. Paths with a word of infinite cost are removed. Errors:
 * more than max_states states (WF_ERR_LIMIT); those of the scorer. */
WF_API wf_status wf_compact_lattice_score(const wf_compact_lattice *lattice,
                                          const wf_scorer *scorer, int64_t max_states,
                                          wf_compact_lattice **out, wf_error *err);
/* Costs of a scorer for each arc and final state of a compact lattice. The caller frees them with
 * wf_scorer_costs_clear. */
typedef struct wf_scorer_costs {
  float *arcs;   /* [num_arcs] */
  float *finals; /* [num_states]; 0: not final */
} wf_scorer_costs;
WF_API void wf_scorer_costs_clear(wf_scorer_costs *costs);
/* Separates the costs of a scorer from those of the graph. In a compact lattice that was decoded
 * with a scorer they are part of graph_cost; a raw lattice has a separate field for them. The
 * result has the same paths with the same costs, with states split by the scorer's contexts.
 * `*out_costs` receives the scorer's part of each graph_cost; the rest is the graph's part. Both
 * parts are exact up to rounding when summed along a path. On a single arc they may not be, because
 * determinization moves costs along a path. Errors: those of wf_compact_lattice_score. */
WF_API wf_status wf_compact_lattice_scorer_costs(const wf_compact_lattice *lattice,
                                                 const wf_scorer *scorer, int64_t max_states,
                                                 wf_compact_lattice **out,
                                                 wf_scorer_costs *out_costs, wf_error *err);

/* Converts between the two forms, path by path, without determinization.
 * wf_compact_lattice_from_raw makes one arc of each arc. wf_lattice_from_compact makes one arc of
 * each alignment label; the first one of a compact arc has the costs and the word. */
WF_API wf_status wf_compact_lattice_from_raw(const wf_lattice *lattice, wf_compact_lattice **out,
                                             wf_error *err);
WF_API wf_status wf_lattice_from_compact(const wf_compact_lattice *lattice, wf_lattice **out,
                                         wf_error *err);

/* An entry of a lattice archive. Archives are those of Kaldi's tools: "Lattice" (raw lattices) or
 * "CompactLattice", binary or text (docs/reference/lattice-formats.md). */
typedef struct wf_lattice_entry {
  char *key;       /* utterance id, NUL-terminated UTF-8 */
  wf_lattice *raw; /* one of raw and compact; the other is NULL */
  wf_compact_lattice *compact;
} wf_lattice_entry;
/* Frees the key and the lattice and zeroes the structure. The caller owns the structure itself. */
WF_API void wf_lattice_entry_clear(wf_lattice_entry *entry);

/* A stream of lattices from one or more sources, in order. A source is an archive, a script file
 * (lines `key path:byte_offset`) or "-" (standard input), plain or gzipped, with or without Kaldi's
 * prefixes, as for wf_score_reader. An archive may have both kinds of lattices. The states of a
 * lattice are sorted topologically from its start. Unreachable states and arcs of infinite cost are
 * dropped. In a raw lattice frames[s] is -1 if the paths to state s differ in their number of
 * labels. A reader is used by one thread at a time. */
enum { WF_LATTICE_ANY, WF_LATTICE_RAW, WF_LATTICE_COMPACT };
#define WF_LATTICE_READER_OPTIONS(X)                                                \
  X(ENUM, kind, 0, 0, 0, "any|raw|compact",                                         \
    "kind of lattice to return: as the archive has it, or converted path by path")  \
  X(F32, lm_scale, 1, -1e6, 1e6, "", "factor on graph costs, applied when reading") \
  X(F32, acoustic_scale, 1, -1e6, 1e6, "", "factor on acoustic costs, applied when reading")
WF_DECLARE_OPTIONS(lattice_reader, WF_LATTICE_READER_OPTIONS)
typedef struct wf_lattice_reader wf_lattice_reader;
/* `words` (may be NULL; the reader keeps a reference) is the table of the words in text archives.
 * Without it, words in text archives are numbers. In binary archives they always are. Errors: those
 * of wf_score_reader_open. */
WF_API wf_status wf_lattice_reader_open(const char *const *sources, size_t num_sources,
                                        const wf_symbols *words,
                                        const wf_lattice_reader_options *options,
                                        wf_lattice_reader **out, wf_error *err);
/* Reads the next lattice into `*out`, or sets `*done` at the end. The caller clears `*out`; its
 * previous content is not freed. Errors: as for wf_score_reader_next. After a malformed lattice in
 * a text archive, reading always continues with the next lattice. */
WF_API wf_status wf_lattice_reader_next(wf_lattice_reader *reader, wf_lattice_entry *out,
                                        bool *done, wf_error *err);
WF_API bool wf_lattice_reader_lost_rest(const wf_lattice_reader *reader);
WF_API double wf_lattice_reader_fraction(const wf_lattice_reader *reader);
WF_API void wf_lattice_reader_free(wf_lattice_reader *reader);

/* Writes a Kaldi lattice archive, or a folder of KEY.slf files in HTK's Standard Lattice Format,
 * with words on links. The folder is created if missing. Costs in text have enough digits to
 * restore the same float32. */
enum { WF_LATTICE_FORMAT_ARK, WF_LATTICE_FORMAT_TEXT, WF_LATTICE_FORMAT_SLF };
#define WF_LATTICE_WRITER_OPTIONS(X)                                                             \
  X(ENUM, format, 0, 0, 0, "ark|text|slf", "Kaldi binary, Kaldi text, folder of HTK SLF files")  \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame, for times in SLF")       \
  X(F32, acoustic_divisor, 1, 1e-6, 1e6, "",                                                     \
    "divide acoustic costs by this; with the decoder's acoustic_scale they become unscaled, as " \
    "Kaldi's tools expect them")                                                                 \
  X(STR, scp, 0, 0, 0, "FILE", "also write a Kaldi script file that refers to the archive")
WF_DECLARE_OPTIONS(lattice_writer, WF_LATTICE_WRITER_OPTIONS)
typedef struct wf_lattice_writer wf_lattice_writer;
/* `words` (may be NULL; the writer keeps a reference): words in text archives and SLF files are
 * written as symbols of this table instead of numbers. */
WF_API wf_status wf_lattice_writer_open(const char *path, const wf_symbols *words,
                                        const wf_lattice_writer_options *options,
                                        wf_lattice_writer **out, wf_error *err);
/* Errors: a key with blanks; a word that is not in the table. On an error nothing is written. */
WF_API wf_status wf_lattice_writer_put(wf_lattice_writer *writer, const wf_lattice_entry *entry,
                                       wf_error *err);
/* Completes the output and frees the writer, even on failure. */
WF_API wf_status wf_lattice_writer_close(wf_lattice_writer *writer, wf_error *err);
/* Frees the writer (NULL is allowed) and removes its output. Complete .slf files stay. */
WF_API void wf_lattice_writer_abort(wf_lattice_writer *writer);

/* --- posteriors, minimum Bayes risk, oracle, statistics (docs/reference/lattice-formats.md) */

/* Computes the posterior of each arc, and of ending in each state: the probability of the paths
 * through it, divided by the probability of all paths. Sums are in double. `arc_posteriors`
 * [num_arcs], `final_posteriors` [num_states] and `out_total` may be NULL. `*out_total` receives
 * -ln of the sum over all paths; +infinity if there are none. Costs are used as they are. Unscaled
 * acoustic costs give posteriors near 0 and 1: scale them first (options of the reader,
 * wf_compact_lattice_scale). */
WF_API wf_status wf_compact_lattice_posteriors(const wf_compact_lattice *lattice,
                                               double *arc_posteriors, double *final_posteriors,
                                               double *out_total, wf_error *err);

/* Minimum Bayes risk decoding: finds the words with the least expected number of errors, a
 * confidence for each word, and the sausage from which the words are taken (Xu, Povey, Mangu, Zhu
 * 2011, "Minimum Bayes Risk decoding and system combination based on a recursion for edit
 * distance"). */
#define WF_MBR_OPTIONS(X)                                                                       \
  X(BOOL, decode, 1, 0, 1, "",                                                                  \
    "search for the words with the fewest expected errors; --no-decode keeps the words of the " \
    "best path and only computes confidences")                                                  \
  X(F32, scale, 1, 1e-6, 1e6, "",                                                               \
    "factor on the costs of paths; below 1, posteriors are less sharp")                         \
  X(F32, complete_beam, 1e30, 0, 1e30, "nats",                                                  \
    "the lattice lacks paths beyond this cost above the best one; confidences leave room for "  \
    "them")
WF_DECLARE_OPTIONS(mbr, WF_MBR_OPTIONS)
typedef struct wf_sausage_word {
  int32_t label;                  /* 0: no word */
  int32_t start_frame, end_frame; /* mean over the paths, rounded; -1 if paths of the lattice differ
                                     in their frames */
  double posterior;
} wf_sausage_word;
typedef struct wf_mbr_result {
  wf_word *words;     /* [num_words]; times from the sausage; words do not overlap */
  float *confidences; /* [num_words]; in [0, 1]: posterior p of the word in its bin, or, with
                         complete_beam, p / (1 + e) with e = exp(-scale * complete_beam) * 3 *
                         (1 + sum of 1 - p over the words) / (3 + num_words) */
  size_t num_words;
  double risk; /* expected number of word errors, or the upper bound that the recursion gives */
  int32_t num_rounds;
  size_t num_bins; /* 2 * num_words + 1. Bin 2 * i + 1 is that of word i; the other bins are before,
                      between and after the words */
  uint64_t *bin_off;          /* [num_bins + 1] */
  wf_sausage_word *bin_words; /* bin b has the words [bin_off[b], bin_off[b + 1]), most probable
                                 first. Their posteriors sum to 1 */
} wf_mbr_result;
/* Starts from `words` [num_words]; NULL: from the words of the best path. Word times are those of
 * arcs, so align the lattice first (wf_compact_lattice_align). Errors: a lattice without paths; a
 * product of states and bins above 2^28 (WF_ERR_LIMIT). */
WF_API wf_status wf_compact_lattice_mbr(const wf_compact_lattice *lattice, const int32_t *words,
                                        size_t num_words, const wf_mbr_options *options,
                                        wf_mbr_result **out, wf_error *err);
WF_API void wf_mbr_result_free(wf_mbr_result *result);

/* Finds listed words in a lattice (keyword spotting). The probability that a word is being said at
 * a frame is the sum of the posteriors of its arcs that span the frame. The frame with the highest
 * probability, the earliest of several, makes a hit of these arcs. They are left out, and the
 * search goes on with the other arcs until no frame reaches the threshold. So a word that is said
 * twice is found twice. (The probability is C_max of Wessel, Schlueter, Macherey, Ney 2001,
 * "Confidence measures for large vocabulary continuous speech recognition".) */
#define WF_SPOT_OPTIONS(X) \
  X(F32, threshold, 0.5, 0, 1, "", "leave out hits whose probability is below this; 0: none")
WF_DECLARE_OPTIONS(spot, WF_SPOT_OPTIONS)
typedef struct wf_spot_hit {
  int32_t label;
  int32_t start_frame, end_frame; /* mean over the paths of the hit, rounded */
  double probability;             /* in [0, 1] */
} wf_spot_hit;
/* `*out_hits` receives the hits of the words [num_words], sorted by start frame, then label, then
 * most probable first; free it with wf_free. A word that is listed twice counts once. Costs are
 * used as they are. Times are those of arcs, so align the lattice first (wf_compact_lattice_align).
 * An arc of a word without labels spans one frame. A lattice without paths has no hits. Errors: a
 * label below 1; paths to a listed word differ in their number of frames (WF_ERR_ARGUMENT). */
WF_API wf_status wf_compact_lattice_spot(const wf_compact_lattice *lattice, const int32_t *words,
                                         size_t num_words, const wf_spot_options *options,
                                         wf_spot_hit **out_hits, size_t *out_count, wf_error *err);

/* Finds the path with the fewest errors against a reference, where insertions, deletions and
 * substitutions count 1 each. `*out_words` receives its words; free it with wf_free. `*out_errors`
 * (may be NULL) receives the number of errors. Errors: a lattice without paths; a product of states
 * and reference words above 2^30 (WF_ERR_LIMIT). */
WF_API wf_status wf_compact_lattice_oracle(const wf_compact_lattice *lattice,
                                           const int32_t *reference, size_t num_reference,
                                           int32_t **out_words, size_t *out_count,
                                           uint64_t *out_errors, wf_error *err);

typedef struct wf_lattice_stats {
  size_t struct_size;
  uint64_t num_states, num_arcs, num_final;
  uint64_t num_word_arcs; /* arcs with a word */
  uint64_t num_labels;    /* in all alignments */
  int64_t num_frames; /* of the longest path; 0 if the number is unknown (frames[s] = -1 in every
                         final state s) */
  double depth;       /* mean number of arcs that span a frame: num_labels / num_frames */
  double log_paths;   /* ln of the number of paths */
  double best_cost, total_cost; /* of the best path; -ln of the sum over all paths */
} wf_lattice_stats;
WF_DECLARE_INIT(lattice_stats)
WF_API wf_status wf_compact_lattice_get_stats(const wf_compact_lattice *lattice,
                                              wf_lattice_stats *out, wf_error *err);

/* --- word times (docs/reference/lattice-formats.md) -------------------------------------- */

/* Finds where words begin and end in an alignment of one label per frame. Immutable, reference
 * counted, thread-safe. Graphs of wf_graph_build contain an aligner,
 * which the decoder uses for word times. For other graphs, make one and attach it with
 * wf_fst_with_word_aligner. */
typedef struct wf_word_aligner wf_word_aligner;
/* For Kaldi models read with a lang folder that has phones/word_boundary.txt. A word lasts from a
 * "begin" phone to an "end" phone, or is one "singleton" phone. Silence and other nonword phones
 * are between words. A phone ends with its last transition and the self-loops after it (Kaldi's
 * reorder=true, and graphs made by this library). Errors: other models (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_word_aligner_from_hmm(const wf_hmm *hmm, wf_word_aligner **out, wf_error *err);
/* For models whose labels determine the phone (CMU Sphinx, Kaldi), with a lexicon over
 * wf_hmm_phones. Works like wf_word_aligner_from_lexicon, with phones instead of tokens. */
WF_API wf_status wf_word_aligner_from_hmm_lexicon(const wf_hmm *hmm, const wf_lexicon *lexicon,
                                                  const wf_symbols *words, wf_word_aligner **out,
                                                  wf_error *err);
/* For CTC models with tokens that say whether they begin a word: by U+2581, by the space of
 * byte-level BPE (Ġ) or of icefall's bbpe, or, if the table has tokens ##..., by the lack of it. A
 * token lasts while its
 * label is repeated. A word lasts from the first frame of its first token to the last frame of its
 * last token. Blanks after it are between words. `blank`: as in wf_lexicon_options. */
WF_API wf_status wf_word_aligner_from_tokens(const wf_symbols *tokens, const char *blank,
                                             wf_word_aligner **out, wf_error *err);
/* For CTC models with a lexicon over their tokens. A word is one of its pronunciations. If several
 * fit because one is a prefix of another, the longest one that lets the next words fit is chosen.
 * `words`: the table of the lattice's words. Tokens that no pronunciation uses (silence) are
 * between words. */
WF_API wf_status wf_word_aligner_from_lexicon(const wf_lexicon *lexicon, const wf_symbols *words,
                                              wf_word_aligner **out, wf_error *err);
/* Returns the aligner of an fst. Errors: it has none (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_word_aligner_from_fst(const wf_fst *fst, wf_word_aligner **out, wf_error *err);
/* Makes a new fst with an aligner (NULL: none). It shares the arrays of `fst`. Native files store
 * the aligner; OpenFst files do not. Operations drop it, except arcsort and wf_epsilons_last. */
WF_API wf_status wf_fst_with_word_aligner(const wf_fst *fst, const wf_word_aligner *aligner,
                                          wf_fst **out, wf_error *err);
/* Returns the aligner of a graph, including the pronunciations of its added words. NULL: the graph
 * has none, so word times are estimates. Owned by the graph. */
WF_API const wf_word_aligner *wf_graph_word_aligner(const wf_graph *graph);
/* Shares the aligner: each ref needs its own free. */
WF_API wf_word_aligner *wf_word_aligner_ref(const wf_word_aligner *aligner);
WF_API void wf_word_aligner_free(wf_word_aligner *aligner);
/* Name of a phone or token; NULL if it has none. Owned by the aligner. */
WF_API const char *wf_word_aligner_unit_text(const wf_word_aligner *aligner, int32_t unit);

/* Finds the frames of the words of a path and writes them to `out_words` [num_words]. `*out_forced`
 * (may be NULL) receives the number of words whose labels do not form a word. Their times are
 * guesses. This happens if the utterance is cut off within a word, or if the path is from another
 * model. */
WF_API wf_status wf_word_aligner_words(const wf_word_aligner *aligner, const int32_t *words,
                                       size_t num_words, const int32_t *alignment,
                                       size_t num_labels, wf_word *out_words, uint64_t *out_forced,
                                       wf_error *err);
/* Finds the phones or tokens of a path and their frames. Blanks are left out. Free `*out_units`
 * with wf_free. */
WF_API wf_status wf_word_aligner_units(const wf_word_aligner *aligner, const int32_t *alignment,
                                       size_t num_labels, wf_word **out_units, size_t *out_count,
                                       wf_error *err);

/* Makes a lattice with the same paths, cut at word boundaries: each word is one arc, with the
 * labels of the word's frames. Frames between words are on arcs without a word. Determinize the
 * lattice first (wf_compact_lattice_determinize) to keep the result small. `*out_forced` (may be
 * NULL) receives the number of arcs whose labels do not form a word. Errors: more than max_arcs
 * arcs (WF_ERR_LIMIT). */
#define WF_LATTICE_ALIGN_OPTIONS(X) \
  X(I64, max_arcs, 10000000, 1, 2147483647, "arcs", "fail beyond this number of arcs in the result")
WF_DECLARE_OPTIONS(lattice_align, WF_LATTICE_ALIGN_OPTIONS)
WF_API wf_status wf_compact_lattice_align(const wf_compact_lattice *lattice,
                                          const wf_word_aligner *aligner,
                                          const wf_lattice_align_options *options,
                                          wf_compact_lattice **out, uint64_t *out_forced,
                                          wf_error *err);

/* Draws a lattice as an HTML page with an SVG, as an SVG, or as input for Graphviz. The picture has
 * time on the x axis, the best path highlighted and costs in tooltips. It loads nothing from
 * elsewhere. The same lattice always gives the same bytes. `words` NULL: words are numbers. Errors:
 * more than max_arcs arcs (WF_ERR_LIMIT). */
enum { WF_DRAW_HTML, WF_DRAW_DOT, WF_DRAW_SVG, WF_DRAW_AUTO };
#define WF_LATTICE_DRAW_OPTIONS(X)                                                                 \
  X(ENUM, format, 3, 0, 0, "html|dot|svg|auto",                                                    \
    "page with an SVG, input for Graphviz, or an SVG; auto: by the end of the name, .dot, .gv or " \
    ".svg, else html")                                                                             \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame")                           \
  X(I64, max_arcs, 5000, 1, 1000000, "arcs", "fail for larger lattices")
WF_DECLARE_OPTIONS(lattice_draw, WF_LATTICE_DRAW_OPTIONS)
WF_API wf_status wf_compact_lattice_draw(const wf_compact_lattice *lattice, const char *key,
                                         const wf_symbols *words,
                                         const wf_lattice_draw_options *options, const char *path,
                                         wf_error *err);

/* =========================================================================================
 * 2  Lattices of streams
 * ========================================================================================= */

/* Returns the lattice of the frames so far. All tokens count as final: it is the lattice that
 * wf_decode returns for these frames if the graph has no final state. The token history is copied,
 * so the time grows with the length of the utterance. Errors: the decoder's lattice_beam is 0
 * (WF_ERR_ARGUMENT); those of wf_stream_partial. */
WF_API wf_status wf_stream_partial_lattice(wf_stream *stream, wf_lattice **out, wf_error *err);
/* Returns the part of the lattice that later frames cannot change, and removes it from the stream.
 * The part begins at the start of the utterance, or at the end of the previous part. It ends at the
 * latest token that all paths go through. `*out` is NULL if there is no new such token. This bounds
 * the memory for lattices of hours of audio. The parts and the lattice of the result, concatenated,
 * are the whole lattice, bit for bit: the only final state of a part (its last state, with cost 0)
 * is the first state of the next part. Frames count from the last reset. Errors: those of
 * wf_stream_partial_lattice. */
WF_API wf_status wf_stream_commit_lattice(wf_stream *stream, wf_lattice **out, wf_error *err);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_lattice_get_view) wf_lattice_view
    wf_lattice_get(const wf_lattice *lattice) {
  return wf_lattice_get_view(lattice);
}
static inline WF__OLD(wf_compact_lattice_get_view) wf_compact_lattice_view
    wf_compact_lattice_get(const wf_compact_lattice *lattice) {
  return wf_compact_lattice_get_view(lattice);
}
static inline WF__OLD(wf_scorer_costs_clear) void wf_scorer_costs_free(wf_scorer_costs *costs) {
  wf_scorer_costs_clear(costs);
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_LATTICE_H */
