/* warpfst_ops.h - further operations on transducers: maps, difference, replacement, encoding,
 * disambiguation, normal forms, archives of fsts. The rules at the top of warpfst.h and of section
 * 3 of warpfst_fst.h apply here too. */
#ifndef WARPFST_OPS_H
#define WARPFST_OPS_H

#include "warpfst_fst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  Arcs and states
 * ========================================================================================= */

/* Changes each arc and final cost. The types have the names of OpenFst's fstmap:
 *
 *   identity                      nothing
 *   arc_sum, arc_unique           sorts arcs by (ilabel, olabel, nextstate) and sums the costs of
 *                                 arcs that are equal in these, or removes arcs equal in cost, too
 *   input_epsilon, output_epsilon labels of that side become epsilon; its symbol table goes
 *   invert                        costs change their sign
 *   plus, times                   the semiring's sum or product with `weight`
 *   power                         costs are multiplied by `power`
 *   quantize                      costs become multiples of `delta`
 *   rmweight                      costs become 0
 *   superfinal                    the only final state is a new one, numbered last, without cost;
 *                                 epsilon arcs lead to it from the old ones
 *   to_log, to_std                the semiring changes, costs stay
 *
 * Costs of +infinity (arcs, states that are not final) stay. */
enum {
  WF_MAP_IDENTITY,
  WF_MAP_ARC_SUM,
  WF_MAP_ARC_UNIQUE,
  WF_MAP_INPUT_EPSILON,
  WF_MAP_INVERT,
  WF_MAP_OUTPUT_EPSILON,
  WF_MAP_PLUS,
  WF_MAP_POWER,
  WF_MAP_QUANTIZE,
  WF_MAP_RMWEIGHT,
  WF_MAP_SUPERFINAL,
  WF_MAP_TIMES,
  WF_MAP_TO_LOG,
  WF_MAP_TO_STD
};
#define WF_MAP_OPTIONS(X)                                                                  \
  X(ENUM, map_type, 0, 0, 0,                                                               \
    "identity|arc_sum|arc_unique|input_epsilon|invert|output_epsilon|plus|power|quantize|" \
    "rmweight|superfinal|times|to_log|to_std",                                             \
    "what to do with each arc")                                                            \
  X(F32, weight, 0, -1e30, 1e30, "nats", "operand of plus and times")                      \
  X(F32, power, 1, -1e30, 1e30, "", "factor of power")                                     \
  X(F32, delta, 0.0009765625, 1e-9, 1e9, "nats", "step of quantize")
WF_DECLARE_OPTIONS(map, WF_MAP_OPTIONS)
WF_API wf_status wf_map(const wf_fst *fst, const wf_map_options *options, wf_fst **out,
                        wf_error *err);

/* Moves costs along paths by a potential V per state; the cost of each path stays. To the start,
 * an arc s -> t costs w + V(t) - V(s) and a final cost is f - V(s). With `to_final`, an arc costs
 * V(s) + w - V(t) and a final cost is V(s) + f. The start's potential is put back before all arcs
 * as wf_push does. `count` must be the number of states. States of potential +infinity, and arcs to
 * them, do not change. Errors: NaN or -infinity (WF_ERR_ARGUMENT). */
#define WF_REWEIGHT_OPTIONS(X) \
  X(BOOL, to_final, 0, 0, 1, "", "towards the final states instead of the start")
WF_DECLARE_OPTIONS(reweight, WF_REWEIGHT_OPTIONS)
WF_API wf_status wf_reweight(const wf_fst *fst, const float *potentials, uint64_t count,
                             const wf_reweight_options *options, wf_fst **out, wf_error *err);

/* Strings of labels: string k is labels[offsets[k]] .. labels[offsets[k + 1] - 1]. The caller owns
 * the arrays. */
typedef struct wf_label_strings {
  const uint64_t *offsets;
  const int32_t *labels;
} wf_label_strings;

/* Makes arcs with one output label each of weights that are strings of output labels and costs, as
 * OpenFst's FactorWeightFst does for Gallic weights, or of arcs with several output labels, such as
 * k2's ragged aux_labels. `arcs` has a string for each arc, in the order of wf_fst_view, which the
 * arc writes after its own output label; `finals` has one for each state, which its final weight
 * writes. Either may be NULL. The first arc of a string has the input label and the cost; the
 * others have input epsilon and no cost, and go through new states, which are numbered last. Arcs
 * to the same state share the states of equal ends. A final weight with a string becomes arcs with
 * the input label `final_ilabel` to a new final state. Strings of states that are not final are
 * ignored. The result is finite for every fst; OpenFst's carries labels over to later arcs, so that
 * it does not end on cycles that write more labels than they have arcs. Errors: labels below 1,
 * offsets in descending order (WF_ERR_ARGUMENT). */
#define WF_FACTOR_WEIGHT_OPTIONS(X) \
  X(I32, final_ilabel, 0, 0, 2147483647, "label", "input label of the arcs made of final weights")
WF_DECLARE_OPTIONS(factor_weight, WF_FACTOR_WEIGHT_OPTIONS)
WF_API wf_status wf_factor_weight(const wf_fst *fst, const wf_label_strings *arcs,
                                  const wf_label_strings *finals,
                                  const wf_factor_weight_options *options, wf_fst **out,
                                  wf_error *err);

/* Makes one state of each strongly connected component, numbered in topological order. Arcs inside
 * a component go; the final cost is the sum of those of its states. */
WF_API wf_status wf_condense(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Encodes the labels, the weights or both of arcs as one label each, so that operations on
 * unweighted acceptors apply, and decodes their results. Labels are numbered from 1 in order of
 * appearance. One encoder can encode several fsts with common labels. Encoded weights leave final
 * costs on arcs to a new final state, numbered last. wf_encoder_encode changes the encoder: one
 * thread at a time. */
typedef struct wf_encoder wf_encoder;
/* Errors: neither labels nor weights. */
WF_API wf_status wf_encoder_create(wf_semiring semiring, bool labels, bool weights,
                                   wf_encoder **out, wf_error *err);
WF_API void wf_encoder_free(wf_encoder *encoder);
/* The number of labels made so far. */
WF_API uint64_t wf_encoder_num_labels(const wf_encoder *encoder);
/* Errors: another semiring. The result has no symbol tables and is no token graph; the encoder
 * keeps the tables and the blank of the last fst. Its files hold the tables alone. */
WF_API wf_status wf_encoder_encode(wf_encoder *encoder, const wf_fst *fst, wf_fst **out,
                                   wf_error *err);
/* Final arcs become final costs again, and the result is trimmed if the encoder encodes weights.
 * Errors: a label that the encoder did not make, different labels on an arc of encoded labels, a
 * cost on an arc of encoded weights (WF_ERR_ARGUMENT). */
WF_API wf_status wf_encoder_decode(const wf_encoder *encoder, const wf_fst *fst, wf_fst **out,
                                   wf_error *err);
/* Files of OpenFst's fstencode. */
WF_API wf_status wf_encoder_read(const char *path, wf_encoder **out, wf_error *err);
WF_API wf_status wf_encoder_write(const wf_encoder *encoder, const char *path, wf_error *err);

/* =========================================================================================
 * 2  Languages
 * ========================================================================================= */

/* The paths of `a` whose output string `b` does not accept. `b` is an unweighted acceptor. It is
 * determinized, and its epsilons are removed, if needed. States are numbered breadth first, as by
 * OpenFst's fstdifference. Errors: `b` has weights or different input and output labels
 * (WF_ERR_ARGUMENT). */
#define WF_DIFFERENCE_OPTIONS(X)                   \
  X(BOOL, connect, 1, 0, 1, "", "trim the result") \
  WF_OPTION_CHECK_SYMBOLS(X)
WF_DECLARE_OPTIONS(difference, WF_DIFFERENCE_OPTIONS)
WF_API wf_status wf_difference(const wf_fst *a, const wf_fst *b,
                               const wf_difference_options *options, wf_fst **out, wf_error *err);

/* A context-dependent rewrite rule: a transducer that applies `tau` wherever `left` comes before and
 * `right` after (Mohri & Sproat 1996). An fst of the empty string is any context. `sigma_star`
 * accepts all strings that may come, and has all their labels. `begin_label` and `end_label` stand
 * for the ends of a string in contexts (0: they have no label). The result is deterministic and
 * minimal over pairs of labels, has arcs sorted by input label, and the input symbols of
 * `sigma_star` on both sides. A `tau` or a context without strings never applies.
 *
 * direction=ltr rewrites from left to right: the left context is looked for in what is already
 * rewritten, the right one in the input. rtl is the reverse. With sim, both are looked for in the
 * input. Without `mandatory`, each place may also be left as it is.
 *
 * Errors: sigma_star or a context is no acceptor, sigma_star has weights (those of contexts are
 * ignored), equal labels of both ends (WF_ERR_ARGUMENT); the log semiring (WF_ERR_UNSUPPORTED); a
 * label above 2^31 - 4 (WF_ERR_LIMIT). */
enum { WF_CDREWRITE_LTR, WF_CDREWRITE_RTL, WF_CDREWRITE_SIM };
#define WF_CDREWRITE_OPTIONS(X)                                                                  \
  X(ENUM, direction, 0, 0, 0, "ltr|rtl|sim",                                                     \
    "from left to right, from right to left, or everywhere at once")                             \
  X(BOOL, mandatory, 1, 0, 1, "", "off: each place may also be left as it is")                   \
  X(I32, begin_label, 1114112, 0, 2147483647, "label", "the beginning of a string, in contexts") \
  X(I32, end_label, 1114113, 0, 2147483647, "label", "the end of a string, in contexts")         \
  WF_OPTION_CHECK_SYMBOLS(X)
WF_DECLARE_OPTIONS(cdrewrite, WF_CDREWRITE_OPTIONS)
WF_API wf_status wf_cdrewrite(const wf_fst *tau, const wf_fst *left, const wf_fst *right,
                              const wf_fst *sigma_star, const wf_cdrewrite_options *options,
                              wf_fst **out, wf_error *err);

/* Replaces each arc whose output is labels[k] by a copy of fsts[k], in the fst of the label `root`
 * and in the copies, too: a call arc leads into the copy, return arcs lead from its final states
 * back. Each call gets its own copy. States are numbered breadth first, as by OpenFst's fstreplace.
 * The result is not trimmed. Its symbol tables are those of the root. If one of the fsts is a token
 * graph, the result is, as for wf_union.
 *
 * Errors: a label listed twice or not positive, no fst for `root`, different semirings, an fst that
 * calls itself (WF_ERR_ARGUMENT); more than max_states (WF_ERR_LIMIT). */
enum { WF_CALL_LABEL_INPUT, WF_CALL_LABEL_OUTPUT, WF_CALL_LABEL_BOTH, WF_CALL_LABEL_NEITHER };
enum {
  WF_RETURN_LABEL_NEITHER,
  WF_RETURN_LABEL_INPUT,
  WF_RETURN_LABEL_OUTPUT,
  WF_RETURN_LABEL_BOTH
};
#define WF_REPLACE_OPTIONS(X)                                                             \
  X(I32, root, 0, 0, 2147483647, "label", "label of the fst to begin with; 0: the first") \
  X(ENUM, call_arc_labeling, 0, 0, 0, "input|output|both|neither",                        \
    "labels that call arcs keep; the others become epsilon")                              \
  X(ENUM, return_arc_labeling, 0, 0, 0, "neither|input|output|both",                      \
    "sides of return arcs that get return_label")                                         \
  X(I32, return_label, 0, 0, 2147483647, "label", "label of return arcs; 0: epsilon")     \
  X(BOOL, epsilon_on_replace, 0, 0, 1, "", "call and return arcs have no labels")         \
  X(I64, max_states, 0, 0, 2147483647, "states", "fail beyond this number; 0: 2^31 - 1")  \
  WF_OPTION_CHECK_SYMBOLS(X)
WF_DECLARE_OPTIONS(replace, WF_REPLACE_OPTIONS)
WF_API wf_status wf_replace(const wf_fst *const *fsts, const int32_t *labels, size_t count,
                            const wf_replace_options *options, wf_fst **out, wf_error *err);

/* Makes an equivalent fst in which each input string has at most one successful path (Mohri & Riley
 * 2015). Also works for many fsts that cannot be determinized. A transducer must be functional: of
 * an input with several outputs, one is kept, at the sum of their costs. Epsilon is an ordinary
 * label. The result is trimmed. Errors: more than max_states states, which are endless if no
 * unambiguous fst exists (WF_ERR_LIMIT). */
#define WF_DISAMBIGUATE_OPTIONS(X)                                                         \
  X(F32, delta, 0.0009765625, 0, 1, "nats", "residual weights closer than this are equal") \
  X(I64, max_states, 0, 0, 2147483647, "states",                                           \
    "fail beyond this number of states; 0: 64 times the input's, at least 1000000")
WF_DECLARE_OPTIONS(disambiguate, WF_DISAMBIGUATE_OPTIONS)
WF_API wf_status wf_disambiguate(const wf_fst *fst, const wf_disambiguate_options *options,
                                 wf_fst **out, wf_error *err);

/* =========================================================================================
 * 3  Normal forms
 * ========================================================================================= */

/* Makes an equivalent fst whose paths read all their input before the first epsilon input (or, for
 * `output`, write all output before the first epsilon output). The other side's labels move to
 * later arcs where needed. The result is trimmed. Errors: a cycle that writes more labels than it
 * reads (WF_ERR_ARGUMENT), where endlessly many would have to wait; the sum over an epsilon cycle
 * is not finite (WF_ERR_NEGATIVE_CYCLE). */
enum { WF_EPS_NORM_INPUT, WF_EPS_NORM_OUTPUT };
#define WF_EPSNORMALIZE_OPTIONS(X) \
  X(ENUM, eps_norm_type, 0, 0, 0, "input|output", "side whose epsilons come last")
WF_DECLARE_OPTIONS(epsnormalize, WF_EPSNORMALIZE_OPTIONS)
WF_API wf_status wf_epsnormalize(const wf_fst *fst, const wf_epsnormalize_options *options,
                                 wf_fst **out, wf_error *err);

/* Makes an equivalent fst whose arcs read and write one label each, or none, until a path has no
 * label left on one side (Mohri 2003). The result is trimmed. States are numbered breadth first.
 * Errors: a cycle of different numbers of input and output labels (WF_ERR_ARGUMENT). */
WF_API wf_status wf_synchronize(const wf_fst *fst, wf_fst **out, wf_error *err);

/* =========================================================================================
 * 4  Comparison
 * ========================================================================================= */

/* Tests whether two fsts are equal up to the numbers of states and the order of arcs, with weights
 * within delta. Only states that the start reaches count. `err` is as in wf_equal. Errors: a state
 * with two arcs of equal labels and weights to different states (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_isomorphic(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                               wf_error *err);

/* =========================================================================================
 * 5  Archives of fsts (OpenFst's FAR files)
 *
 * An archive holds fsts under keys, sorted by key. There are two layouts: a table, with an index at
 * its end (OpenFst's sttable), and a list, which is read from front to back (stlist).
 * ========================================================================================= */

typedef enum wf_far_type { WF_FAR_STTABLE = 0, WF_FAR_STLIST = 1 } wf_far_type;
typedef struct wf_far wf_far; /* a file open for reading; used by one thread at a time */
/* A file that holds a single fst is an archive of one, with the empty key. Errors: not an archive,
 * a damaged file (WF_ERR_FORMAT). */
WF_API wf_status wf_far_open(const char *path, wf_far **out, wf_error *err);
WF_API void wf_far_free(wf_far *far);
WF_API wf_far_type wf_far_get_type(const wf_far *far);
/* Reads the next fst. `*out_key` is valid until the next call. At the end, `*out` and `*out_key`
 * are NULL. */
WF_API wf_status wf_far_next(wf_far *far, const char **out_key, wf_fst **out, wf_error *err);
/* Reads the fst of a key. wf_far_next goes on behind it. Errors: no such key (WF_ERR_ARGUMENT). */
WF_API wf_status wf_far_find(wf_far *far, const char *key, wf_fst **out, wf_error *err);

typedef struct wf_far_writer wf_far_writer;
/* `path` "-" is standard output (stlist only). The file appears under its name when it is finished.
 */
WF_API wf_status wf_far_writer_open(const char *path, wf_far_type type, wf_far_writer **out,
                                    wf_error *err);
/* Adds an fst in OpenFst's vector format. Errors: an empty key, a key smaller than the last. */
WF_API wf_status wf_far_writer_put(wf_far_writer *writer, const char *key, const wf_fst *fst,
                                   wf_error *err);
/* Writes the end of the file and frees the writer, also on failure. */
WF_API wf_status wf_far_writer_close(wf_far_writer *writer, wf_error *err);
/* Frees the writer without a file. NULL is allowed. */
WF_API void wf_far_writer_abort(wf_far_writer *writer);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_encoder_num_labels) uint64_t wf_encoder_size(const wf_encoder *encoder) {
  return wf_encoder_num_labels(encoder);
}
static inline WF__OLD(wf_far_free) void wf_far_close(wf_far *far) { wf_far_free(far); }
static inline WF__OLD(wf_far_writer_open) wf_status
    wf_far_writer_create(const char *path, wf_far_type type, wf_far_writer **out, wf_error *err) {
  return wf_far_writer_open(path, type, out, err);
}
static inline WF__OLD(wf_far_writer_put) wf_status
    wf_far_writer_add(wf_far_writer *writer, const char *key, const wf_fst *fst, wf_error *err) {
  return wf_far_writer_put(writer, key, fst, err);
}
static inline WF__OLD(wf_far_writer_close) wf_status
    wf_far_writer_finish(wf_far_writer *writer, wf_error *err) {
  return wf_far_writer_close(writer, err);
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_OPS_H */
