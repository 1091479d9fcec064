/* warpfst_fst.h - transducers: building, files, operations, composition, batches on a GPU. The
 * rules at the top of warpfst.h hold here, too. */
#ifndef WARPFST_FST_H
#define WARPFST_FST_H

#include "warpfst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  Symbol tables: making them
 * ========================================================================================= */

WF_API wf_status wf_symbols_create(const char *name, wf_symbols **out, wf_error *err);
/* Adds `text` with the given key, or with the next free key if key < 0. Adding the same pair again
 * is fine. `*out_key` (may be NULL) receives the key. Errors: an empty `text`. */
WF_API wf_status wf_symbols_add(wf_symbols *symbols, const char *text, int64_t key,
                                int64_t *out_key, wf_error *err);
/* Errors: an empty symbol, which tables inside OpenFst's files may hold (WF_ERR_ARGUMENT). */
WF_API wf_status wf_symbols_write(const wf_symbols *symbols, const char *path, wf_error *err);
/* One more than the largest key; 0 for an empty table. */
WF_API int64_t wf_symbols_next_key(const wf_symbols *symbols);
WF_API const char *wf_symbols_name(const wf_symbols *symbols);
/* As wf_symbols_find for `size` bytes that need no NUL behind them. */
WF_API int64_t wf_symbols_find_bytes(const wf_symbols *symbols, const char *text, size_t size);
/* i-th pair in order of adding, 0 <= i < count. */
WF_API const char *wf_symbols_at(const wf_symbols *symbols, size_t i, int64_t *key);

/* =========================================================================================
 * 2  Transducers, builder, files
 *
 * An fst is immutable, in compressed sparse rows: the arcs of state s are arcs[arc_off[s]] ..
 * arcs[arc_off[s + 1] - 1].
 * ========================================================================================= */

typedef struct wf_arc {
  uint32_t nextstate;
  float weight;
  int32_t ilabel;
  int32_t olabel;
} wf_arc;

typedef enum wf_semiring {
  WF_TROPICAL = 0, /* (min, +): OpenFst's "standard" arcs */
  WF_LOG = 1,      /* (-log(e^-x + e^-y), +): OpenFst's "log" arcs */
} wf_semiring;

typedef struct wf_fst_view {
  int64_t start; /* -1: no state, the empty fst */
  uint64_t num_states;
  uint64_t num_arcs;
  const uint64_t *arc_off; /* [num_states + 1] */
  const wf_arc *arcs;      /* [num_arcs] */
  const float *final_cost; /* [num_states]; +infinity where not final */
  wf_semiring semiring;
} wf_fst_view;

/* The arrays of an fst; valid while the fst lives. */
WF_API wf_fst_view wf_fst_get_view(const wf_fst *fst);
/* A new fst over the same arrays with other symbol tables (NULL: none). Cheap. */
WF_API wf_status wf_fst_with_symbols(const wf_fst *fst, const wf_symbols *isymbols,
                                     const wf_symbols *osymbols, wf_fst **out, wf_error *err);
/* A new fst over the same arrays in another semiring (the numbers stay as they are). Cheap. */
WF_API wf_status wf_fst_with_semiring(const wf_fst *fst, wf_semiring semiring, wf_fst **out,
                                      wf_error *err);

/* Facts about an fst, worked out on the first call and kept. */
typedef enum wf_property {
  WF_PROP_ACCEPTOR = 1 << 0,      /* ilabel == olabel on every arc */
  WF_PROP_ILABEL_SORTED = 1 << 1, /* per state, ilabels do not fall */
  WF_PROP_OLABEL_SORTED = 1 << 2,
  WF_PROP_NO_IEPSILONS = 1 << 3,
  WF_PROP_NO_OEPSILONS = 1 << 4,
  WF_PROP_NO_EPSILONS = 1 << 5,    /* no arc with both labels 0 */
  WF_PROP_IDETERMINISTIC = 1 << 6, /* per state, ilabels distinct (epsilon counts as a label) */
  WF_PROP_ODETERMINISTIC = 1 << 7,
  WF_PROP_ACYCLIC = 1 << 8,
  WF_PROP_TOP_SORTED = 1 << 9, /* every arc leads to a larger state */
  WF_PROP_ACCESSIBLE = 1 << 10,
  WF_PROP_COACCESSIBLE = 1 << 11,
  WF_PROP_UNWEIGHTED = 1 << 12, /* every arc weight 0, every final cost 0 or +infinity */
  WF_PROP_EPSILONS_LAST =
      1 << 13, /* per state, arcs with ilabel != 0 come first: what the decoder wants */
} wf_property;
/* The set of properties that hold. Thread-safe. */
WF_API uint32_t wf_fst_properties(const wf_fst *fst);

/* Builder: states and arcs in any order; arcs of a state keep the order of adding. */
typedef struct wf_builder wf_builder;
WF_API wf_status wf_builder_create(wf_semiring semiring, wf_builder **out, wf_error *err);
/* Makes room ahead of time; optional. */
WF_API wf_status wf_builder_reserve(wf_builder *builder, uint64_t num_states, uint64_t num_arcs,
                                    wf_error *err);
/* Adds `count` states; `*out_first` (may be NULL) is the id of the first of them. */
WF_API wf_status wf_builder_add_states(wf_builder *builder, uint64_t count, uint32_t *out_first,
                                       wf_error *err);
WF_API wf_status wf_builder_set_start(wf_builder *builder, uint32_t state, wf_error *err);
/* cost +infinity: not final. NaN and -infinity are errors, here and for arc weights. */
WF_API wf_status wf_builder_set_final(wf_builder *builder, uint32_t state, float cost,
                                      wf_error *err);
WF_API wf_status wf_builder_add_arc(wf_builder *builder, uint32_t state, wf_arc arc, wf_error *err);
/* The same for many: arcs[i] leaves states[i], both [count]. On failure none was added; the message
 * names the first bad one. */
WF_API wf_status wf_builder_add_arcs(wf_builder *builder, const uint32_t *states,
                                     const wf_arc *arcs, uint64_t count, wf_error *err);
/* Makes the fst and empties the builder, which may be used again or freed. */
WF_API wf_status wf_builder_finish(wf_builder *builder, const wf_symbols *isymbols,
                                   const wf_symbols *osymbols, wf_fst **out, wf_error *err);
WF_API void wf_builder_free(wf_builder *builder);

/* Files. Reading recognises by content: warpfst's own mapped format, OpenFst vector and const
 * (standard, log, log64; log64 weights are rounded to float32). Text needs wf_fst_compile. A file
 * that is truncated, corrupt or refers outside its own bounds is refused, as are negative labels,
 * NaN and -infinity; the native file is also checked in full by its checksums. An OpenFst file with
 * states but no start state gives the empty fst. The native layout: docs/reference/file-formats.md.
 */
typedef enum wf_fst_format {
  WF_FORMAT_NATIVE =
      0, /* magic, version, checksum; arrays as in wf_fst_view, mapped and usable at once */
  WF_FORMAT_OPENFST_VECTOR = 1,       /* OpenFst VectorFst, arc type by semiring */
  WF_FORMAT_OPENFST_CONST = 2,        /* OpenFst ConstFst, unaligned */
  WF_FORMAT_OPENFST_VECTOR_LOG64 = 3, /* the same with float64 weights; log semiring only */
  WF_FORMAT_OPENFST_CONST_LOG64 = 4,
} wf_fst_format;
/* As wf_fst_read; tells also which format was found. */
WF_API wf_status wf_fst_read_format(const char *path, wf_fst **out, wf_fst_format *out_format,
                                    wf_error *err);
WF_API wf_status wf_fst_write(const wf_fst *fst, const char *path, wf_fst_format format,
                              wf_error *err);

/* What there is to count in an fst; linear time. Set `info` up with wf_fst_info_init. */
typedef struct wf_fst_info {
  size_t struct_size;
  uint64_t num_final;
  uint64_t num_epsilons, num_iepsilons,
      num_oepsilons; /* arcs with both labels 0; input label 0; output label 0 */
  uint64_t num_accessible, num_coaccessible,
      num_connected; /* states: from the start; to a final state; both */
  uint64_t max_arcs; /* of one state */
  int32_t max_ilabel, max_olabel;
} wf_fst_info;
WF_DECLARE_INIT(fst_info)
WF_API wf_status wf_fst_get_info(const wf_fst *fst, wf_fst_info *info, wf_error *err);

/* AT&T text, as OpenFst's fstcompile and fstprint read and write it: a line an arc, `source
 * nextstate ilabel olabel [weight]` (acceptors: one label), or a final state, `state [weight]`;
 * fields apart by blanks or tabs; the start is the first line's source; a weight left out is One
 * (0), Zero is "Infinity". */
#define WF_TEXT_OPTIONS(X)                                                       \
  X(BOOL, acceptor, 0, 0, 1, "", "text lines have one label, for both sides")    \
  X(BOOL, keep_state_numbering, 0, 0, 1, "",                                     \
    "keep the state numbers of the text; else number by first appearance")       \
  X(BOOL, show_weight_one, 0, 0, 1, "", "print weights of One (0) too")          \
  X(BOOL, numeric, 0, 0, 1, "", "print numbers even if there are symbol tables") \
  X(STR, missing_symbol, 0, 0, 0, "TEXT",                                        \
    "print this for labels that are not in the table (default: an error)")       \
  X(ENUM, arc_type, 0, 0, 0, "standard|log|log64", "semiring of the compiled fst")
WF_DECLARE_OPTIONS(text, WF_TEXT_OPTIONS)
/* Symbol tables may be NULL: labels are then numbers. They become the tables of the fst. Errors
 * name path and line. With keep_state_numbering, state numbers may not lie far beyond the size of
 * the text. */
WF_API wf_status wf_fst_compile(const char *path, const wf_symbols *isymbols,
                                const wf_symbols *osymbols, const wf_text_options *options,
                                wf_fst **out, wf_error *err);
/* The start's block first, then the other states in order. NULL tables: the fst's own, else
 * numbers. Errors: label not in its table. */
WF_API wf_status wf_fst_print(const wf_fst *fst, const char *path, const wf_symbols *isymbols,
                              const wf_symbols *osymbols, const wf_text_options *options,
                              wf_error *err);

/* =========================================================================================
 * 3  Operations on transducers
 *
 * Each takes immutable inputs and makes a new fst. Symbol tables are carried over where they still
 * apply. Results hold only states reachable from the start where the operation says "trimmed".
 * Semirings of two inputs must be the same.
 * ========================================================================================= */

/* The operations with this option work in threads, on fsts large enough for that to pay. */
#define WF_OPTION_NUM_THREADS(X)             \
  X(I32, num_threads, 0, 0, 4096, "threads", \
    "number of threads; 0: one per processor, at most 16. Does not change the result")

/* Arcs of each state sorted, stable. */
#define WF_ARCSORT_OPTIONS(X) X(ENUM, sort_type, 0, 0, 0, "ilabel|olabel", "label to sort by")
WF_DECLARE_OPTIONS(arcsort, WF_ARCSORT_OPTIONS)
WF_API wf_status wf_arcsort(const wf_fst *fst, const wf_arcsort_options *options, wf_fst **out,
                            wf_error *err);

/* Keeps the states on some path from the start to a final state; order of states and arcs kept. */
WF_API wf_status wf_connect(const wf_fst *fst, wf_fst **out, wf_error *err);
/* Numbers states so that every arc leads upwards. Error WF_ERR_ARGUMENT if cyclic. */
WF_API wf_status wf_topsort(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Composition: paths x:z of cost u+v for paths x:y of `a` and y:z of `b` (Mohri, Pereira, Riley
 * 1996; filters as in OpenFst: Allauzen & Mohri 2009). Inputs need not be sorted. The epsilon
 * filter keeps one of the equivalent orders of epsilons, so that path multiplicity is right in the
 * log semiring (sequence, alt_sequence, match); no_match and trivial let more of them through, null
 * takes epsilon for a symbol. Trimmed if `connect`.
 * order=openfst numbers states breadth first by discovery; states, arcs, and their order are those
 * of OpenFst's fstcompose on inputs sorted by fstarcsort. order=canonical numbers states by (state
 * of a, filter state, state of b), and every device and number of threads gives the same bytes; the
 * start need not be state 0. Dense results are then found by rows of bits, far faster, on
 * num_threads threads (Sengupta, Pratap, Hannun 2021 compose in parallel;
 * docs/how-to/composition.md has the order in full, docs/engineering/composition.md how it works).
 * With phi_label > 0, the arc of a state of `b` with that input label is its failure arc: for a
 * label that no arc of the state has, and only then, the search goes on, without input and at the
 * failure arc's cost, in the state it leads to. Epsilons never fail over, nor do final costs unless
 * `phi_final`. Errors (WF_ERR_ARGUMENT): two failure arcs at a state, one with an output other than
 * 0 or phi_label, a cycle of them, phi_label on the output side of `a`. Beyond max_states or
 * max_bytes: WF_ERR_LIMIT. */
#define WF_COMPOSE_OPTIONS(X)                                                                   \
  X(ENUM, filter, 0, 0, 0, "auto|sequence|alt_sequence|match|no_match|trivial|null",            \
    "epsilon filter; auto is sequence")                                                         \
  X(BOOL, connect, 1, 0, 1, "", "trim the result")                                              \
  X(I32, phi_label, 0, 0, 2147483647, "label",                                                  \
    "failure label on the input side of the second fst; 0: none")                               \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                \
    "fail if the result has more states before trimming; 0: 2^31 - 1")                          \
  X(BOOL, phi_final, 0, 0, 1, "",                                                               \
    "states of the second fst that are not final take the final cost behind their failure arc") \
  WF_OPTION_NUM_THREADS(X)                                                                      \
  X(ENUM, order, 0, 0, 0, "openfst|canonical",                                                  \
    "numbers of the states and order of the arcs: OpenFst's, or the same on every device")      \
  X(STR, device, 0, 0, 0, "DEVICE",                                                             \
    "cpu, cuda, or cuda:N (default: cpu); a GPU gives the canonical order only")                \
  X(I64, max_bytes, 0, 0, 9007199254740992, "bytes",                                            \
    "refuse when tables and result need more memory than this; 0: no limit")
WF_DECLARE_OPTIONS(compose, WF_COMPOSE_OPTIONS)
WF_API wf_status wf_compose(const wf_fst *a, const wf_fst *b, const wf_compose_options *options,
                            wf_fst **out, wf_error *err);

/* Where an arc of a composition comes from: an arc of each input, counted over the whole input;
 * WF_NO_ARC where that side waits. */
#define WF_NO_ARC UINT32_MAX
typedef struct wf_arc_origin {
  uint32_t a, b;
} wf_arc_origin;

/* Compositions of many pairs, and of one where the origins of its arcs are wanted. The inputs are
 * made ready once, on the CPU or on a GPU (options->device), and composed any number of times. On
 * the CPU threads share the pairs. On a GPU a run is a few launches for all pairs together, and the
 * results stay in its memory until they are requested. One thread at a time. */
typedef struct wf_composer wf_composer;
/* Pair i is a[i] and b[i]. num_a is `count`, or 1 for the same first fst everywhere; num_b
 * likewise. `with_origins`: the origins of arcs are kept. They carry gradients back to the inputs.
 * Errors: origins with phi_label, where an arc may come from several (WF_ERR_UNSUPPORTED); on a GPU
 * phi_label and an order other than canonical (WF_ERR_UNSUPPORTED); inputs of more than 2^32 - 2
 * arcs (WF_ERR_LIMIT). On a GPU, pairs whose table of all states would be large and nearly empty
 * are composed one by one, with a hash table. */
WF_API wf_status wf_composer_create(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                    size_t num_b, size_t count, const wf_compose_options *options,
                                    bool with_origins, wf_composer **out, wf_error *err);
/* Composes all pairs. Errors: those of wf_compose, and WF_ERR_DEVICE. The message names the first
 * pair that failed; there are no results then. */
WF_API wf_status wf_composer_run(wf_composer *composer, wf_error *err);
/* Result of pair i after a run: pointers into the memory of the device, valid until the next run.
 * `*origins` (the argument may be NULL): of its arcs, in the same memory, or NULL if they were not
 * requested. */
WF_API wf_status wf_composer_view(const wf_composer *composer, size_t i, wf_fst_view *view,
                                  const wf_arc_origin **origins, wf_error *err);
/* The result in host memory. `out_origins` may be NULL, else receives an array for wf_free. */
WF_API wf_status wf_composer_get(const wf_composer *composer, size_t i, wf_fst **out,
                                 wf_arc_origin **out_origins, wf_error *err);
WF_API void wf_composer_free(wf_composer *composer);

/* Weighted determinization of transducers on the input side (Mohri 1997; epsilon input labels are
 * removed on the fly when `rmepsilon`, else are a label like any other; output strings are
 * residuals). Functional input only: two outputs for one input is WF_ERR_NOT_DETERMINIZABLE and the
 * message holds a witness. Growth beyond max_states, or of an output more than 10000 labels behind
 * the input, likewise: where paths of one input drift apart in cost for ever (no twins property),
 * there is no end. The limit is by default 64 times the trimmed input's states, and at least
 * 1,000,000. The result is trimmed; states are numbered breadth first, then those of the chains
 * that spell outputs of several labels (with input epsilon); arcs are sorted by input label. */
#define WF_DETERMINIZE_OPTIONS(X)                                                                \
  X(F32, delta, 0.0009765625, 0, 1, "nats", "residual weights closer than this are the same")    \
  X(BOOL, rmepsilon, 0, 0, 1, "",                                                                \
    "treat arcs with epsilon input as no input (epsilon closure) instead of as a label")         \
  X(BOOL, allow_nonfunctional, 0, 0, 1, "", "keep the best output where one input has several")  \
  X(I32, subsequential_label, 0, 0, 2147483647, "label",                                         \
    "input label of arcs that emit final output strings; 0: epsilon")                            \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                 \
    "fail if the result has more states, and show an input string as evidence; 0: 64 times the " \
    "input's states, at least 1000000")                                                          \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(determinize, WF_DETERMINIZE_OPTIONS)
WF_API wf_status wf_determinize(const wf_fst *fst, const wf_determinize_options *options,
                                wf_fst **out, wf_error *err);

/* Weighted minimization (Mohri 2000; acyclic: Revuz 1992, cyclic: Hopcroft 1971). Weights are
 * pushed first, then (ilabel, olabel[, weight]) is one label. Input must be deterministic under
 * that encoding (WF_ERR_ARGUMENT) unless allow_nondet; the result then is smaller, not smallest.
 * The total cost ends up on the arcs of the start state, or on all final costs if something leads
 * back to the start. States keep their order. WF_ERR_NEGATIVE_CYCLE when weights cannot be pushed
 * because distances do not exist. */
#define WF_MINIMIZE_OPTIONS(X)                                                               \
  X(F32, delta, 0.0009765625, 0, 1, "nats", "weights closer than this are the same")         \
  X(BOOL, encode_labels, 1, 0, 1, "",                                                        \
    "take (ilabel, olabel) as one label; off: push output labels towards the start first")   \
  X(BOOL, push_weights, 1, 0, 1, "",                                                         \
    "push weights towards the start first; off: minimize with weights as part of the label") \
  X(BOOL, allow_nondet, 0, 0, 1, "", "accept non-deterministic input")                       \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(minimize, WF_MINIMIZE_OPTIONS)
WF_API wf_status wf_minimize(const wf_fst *fst, const wf_minimize_options *options, wf_fst **out,
                             wf_error *err);

/* Removes arcs with both labels epsilon (Mohri 2002); arcs that become equal are merged. Trimmed if
 * `connect`, else states keep their numbers and those reached by epsilons alone lose their arcs.
 * WF_ERR_NEGATIVE_CYCLE when a cycle of epsilons has no finite sum. */
#define WF_RMEPSILON_OPTIONS(X)                    \
  X(BOOL, connect, 1, 0, 1, "", "trim the result") \
  X(F32, delta, 0.000001, 0, 1, "nats", "convergence of distances in the log semiring")
WF_DECLARE_OPTIONS(rmepsilon, WF_RMEPSILON_OPTIONS)
WF_API wf_status wf_rmepsilon(const wf_fst *fst, const wf_rmepsilon_options *options, wf_fst **out,
                              wf_error *err);

/* Pushes weights (and output labels, on request) towards the start or the final states. What
 * belongs in front of everything goes onto the arcs of the start state, or, if something leads back
 * there, onto an epsilon arc from a new start state numbered last. In the log semiring the result
 * is stochastic. States on no successful path are left as they are. remove_total_weight without
 * push_weights is WF_ERR_ARGUMENT. */
#define WF_PUSH_OPTIONS(X)                                                        \
  X(BOOL, push_weights, 1, 0, 1, "", "push weights")                              \
  X(BOOL, push_labels, 0, 0, 1, "", "push output labels")                         \
  X(BOOL, to_final, 0, 0, 1, "", "towards the final states instead of the start") \
  X(BOOL, remove_total_weight, 0, 0, 1, "", "divide by the total weight")         \
  X(F32, delta, 0.000001, 0, 1, "nats", "convergence of distances")               \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(push, WF_PUSH_OPTIONS)
WF_API wf_status wf_push(const wf_fst *fst, const wf_push_options *options, wf_fst **out,
                         wf_error *err);

/* Sum over all paths from the start to each state, or from each state to the final states if
 * `reverse`, in the fst's semiring (Mohri 2002). `*out_distance` is an array of num_states costs
 * for wf_free. WF_ERR_NEGATIVE_CYCLE when a sum does not exist: a cycle of negative cost that is
 * reached, or in the log semiring one whose sum diverges. */
#define WF_SHORTEST_DISTANCE_OPTIONS(X)                                              \
  X(BOOL, reverse, 0, 0, 1, "", "distances to the final states")                     \
  X(F32, delta, 0.000001, 0, 1, "nats",                                              \
    "convergence where there are cycles with negative costs or in the log semiring") \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(shortest_distance, WF_SHORTEST_DISTANCE_OPTIONS)
WF_API wf_status wf_shortest_distance(const wf_fst *fst,
                                      const wf_shortest_distance_options *options,
                                      float **out_distance, wf_error *err);

/* Total cost of all successful paths: -ln of the sum of e^-cost in the log semiring ("forward
 * score"), the least in the tropical; +infinity if there is no path. `*out_gradients` (the argument
 * may be NULL), an array of num_arcs for wf_free, is its derivative by each arc's weight: how
 * often, on average over the paths by their probabilities, the arc is taken; 0 where there is no
 * path. Log semiring only (tropical with gradients: WF_ERR_UNSUPPORTED). Cycles are fine as for
 * wf_shortest_distance, errors likewise. Sums are made in double. */
#define WF_FORWARD_SCORE_OPTIONS(X)                                                               \
  X(F32, delta, 0.000001, 0, 1, "nats", "convergence where there are cycles in the log semiring") \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(forward_score, WF_FORWARD_SCORE_OPTIONS)
WF_API wf_status wf_forward_score(const wf_fst *fst, const wf_forward_score_options *options,
                                  double *out_cost, double **out_gradients, wf_error *err);
/* Adds the gradients of a composition's `num_arcs` arcs to those of the arcs they come from. Either
 * array may be NULL: not wanted. */
WF_API void wf_add_origin_gradients(const wf_arc_origin *origins, const double *gradients,
                                    uint64_t num_arcs, double *a_gradients, double *b_gradients);

/* The nshortest best paths as an fst (tropical only; the log semiring is WF_ERR_UNSUPPORTED). One
 * path: a chain from state 0. Several (Mohri & Riley 2002): state 0 has an epsilon arc to each
 * path, best first; paths share tails. With `unique`, distinct strings instead: epsilons do not
 * count, weights lie where the search puts them, and for more than one the fst must be an acceptor.
 * Fewer paths come where there are fewer; none: the empty fst. Ties: of paths of equal cost (summed
 * in double) those with fewer arcs go first; of these, read from the end, the one with the lower
 * final state, or else the lower arc number (counted over the whole fst) where they first differ.
 * Distinct strings likewise, with labels for arcs. Cycles and negative weights are fine; a negative
 * cycle on the way to a final state is WF_ERR_NEGATIVE_CYCLE. */
#define WF_SHORTEST_PATH_OPTIONS(X)                               \
  X(I32, nshortest, 1, 1, 2147483647, "paths", "number of paths") \
  X(BOOL, unique, 0, 0, 1, "", "distinct strings only (more than one: acceptors)")
WF_DECLARE_OPTIONS(shortest_path, WF_SHORTEST_PATH_OPTIONS)
WF_API wf_status wf_shortest_path(const wf_fst *fst, const wf_shortest_path_options *options,
                                  wf_fst **out, wf_error *err);

/* Drops arcs, states and final costs on no path within `weight` of the best (tropical; errors as
 * wf_shortest_path). Order of states and arcs is kept; trimmed. With `nstate`, best paths through
 * states are kept whole, cheapest first, until the next would not fit. */
#define WF_PRUNE_OPTIONS(X)                                           \
  X(F32, weight, 1e30, 0, 1e30, "nats", "width around the best path") \
  X(I64, nstate, 0, 0, 2147483647, "states", "keep at most this many states, best first; 0: all")
WF_DECLARE_OPTIONS(prune, WF_PRUNE_OPTIONS)
WF_API wf_status wf_prune(const wf_fst *fst, const wf_prune_options *options, wf_fst **out,
                          wf_error *err);

/* Rational and structural operations. */
#define WF_CLOSURE_OPTIONS(X) \
  X(ENUM, closure_type, 0, 0, 0, "star|plus", "zero or more, or one or more")
WF_DECLARE_OPTIONS(closure, WF_CLOSURE_OPTIONS)
/* Star: a new last state becomes start and final. An epsilon arc leads from each final state back
 * to the old start. */
WF_API wf_status wf_closure(const wf_fst *fst, const wf_closure_options *options, wf_fst **out,
                            wf_error *err);
/* `count` fsts, at least one; states part by part. Union: epsilon arcs lead from the first start,
 * or from a new one if that lies on a cycle. The symbol tables are those of the first. A
 * concatenation with an empty part is empty. */
WF_API wf_status wf_union(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err);
WF_API wf_status wf_concat(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err);
#define WF_PROJECT_OPTIONS(X) X(ENUM, project_type, 0, 0, 0, "input|output", "side to keep")
WF_DECLARE_OPTIONS(project, WF_PROJECT_OPTIONS)
WF_API wf_status wf_project(const wf_fst *fst, const wf_project_options *options, wf_fst **out,
                            wf_error *err);
WF_API wf_status wf_invert(const wf_fst *fst, wf_fst **out, wf_error *err);
/* Mirror image: accepts the reversed strings. State 0 of the result is a new start, as in OpenFst.
 */
WF_API wf_status wf_reverse(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Many fsts at once on one device, "cpu" (the default) or one GPU ("cuda", "cuda:2"): inputs and
 * results of operations stay there until they are asked for, and on a GPU an operation is a few
 * launches for all of them together. Immutable but for gradients; all fsts are in one semiring. A
 * batch and those made of it are used by one thread at a time. Batches on a GPU hold at most 2^32 -
 * 2 states and arcs (WF_ERR_LIMIT). Results on a GPU equal the CPU's byte for byte unless said
 * otherwise. */
typedef struct wf_fst_batch wf_fst_batch;
WF_API wf_status wf_fst_batch_create(const wf_fst *const *fsts, size_t count, const char *device,
                                     wf_fst_batch **out, wf_error *err);
/* The results of a composer's last run, with their origins, on its device. Errors: one of several
 * pairs was composed with a hash table (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_composer_batch(const wf_composer *composer, wf_fst_batch **out, wf_error *err);
WF_API size_t wf_fst_batch_count(const wf_fst_batch *batch);
/* A copy of the i-th in host memory. */
WF_API wf_status wf_fst_batch_get(const wf_fst_batch *batch, size_t i, wf_fst **out, wf_error *err);
WF_API void wf_fst_batch_free(wf_fst_batch *batch);

/* The operations of the same names on each fst of the batch; options, results, and errors as there.
 * Origins of arcs are kept by arcsort, invert, and project. */
WF_API wf_status wf_fst_batch_arcsort(const wf_fst_batch *batch, const wf_arcsort_options *options,
                                      wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_connect(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_invert(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_project(const wf_fst_batch *batch, const wf_project_options *options,
                                      wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_reverse(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err);
/* A GPU refuses cycles of epsilons (WF_ERR_UNSUPPORTED). In the log semiring costs agree with the
 * CPU's up to rounding. */
WF_API wf_status wf_fst_batch_rmepsilon(const wf_fst_batch *batch,
                                        const wf_rmepsilon_options *options, wf_fst_batch **out,
                                        wf_error *err);
/* A GPU refuses (WF_ERR_UNSUPPORTED) the log semiring, `rmepsilon` where arcs have epsilon input,
 * and outputs more than 255 labels behind the input. Witnesses are the CPU's, which then does it
 * again. max_states counts for each fst. */
WF_API wf_status wf_fst_batch_determinize(const wf_fst_batch *batch,
                                          const wf_determinize_options *options, wf_fst_batch **out,
                                          wf_error *err);
/* On a GPU, too, the CPU does what kernels do not: pushed output labels (encode_labels off), costs
 * pushed in the log semiring, two arcs of a state with the same labels (allow_nondet), and what
 * thousands of rounds do not settle (docs/engineering/composition.md); and it says what is wrong.
 */
WF_API wf_status wf_fst_batch_minimize(const wf_fst_batch *batch,
                                       const wf_minimize_options *options, wf_fst_batch **out,
                                       wf_error *err);
/* `*out_distances`: those of all fsts, one behind the other, in host memory, for wf_free. Tropical:
 * the CPU's but where cycles with negative costs are within delta; log: within rounding, with
 * cycles within delta. */
WF_API wf_status wf_fst_batch_shortest_distance(const wf_fst_batch *batch,
                                                const wf_shortest_distance_options *options,
                                                float **out_distances, wf_error *err);
/* wf_shortest_path of each (tropical), one path; ties go the same way on every device. */
WF_API wf_status wf_fst_batch_shortest_path(const wf_fst_batch *batch, wf_fst_batch **out,
                                            wf_error *err);
/* `out_costs` [count], in host memory. `with_gradients`: the batch keeps the derivatives for the
 * two calls below. To about 1e-12 the CPU's, relative. */
WF_API wf_status wf_fst_batch_forward_score(wf_fst_batch *batch,
                                            const wf_forward_score_options *options,
                                            bool with_gradients, double *out_costs, wf_error *err);
/* Derivatives of the i-th cost by the weights of its arcs, or of the arcs of the first or second
 * input it was composed of; an array of *out_count for wf_free. */
typedef enum wf_gradients_of {
  WF_GRADIENTS_OF_ARCS = 0,
  WF_GRADIENTS_OF_FIRST = 1,
  WF_GRADIENTS_OF_SECOND = 2
} wf_gradients_of;
WF_API wf_status wf_fst_batch_gradients(const wf_fst_batch *batch, size_t i, wf_gradients_of of,
                                        double **out, uint64_t *out_count, wf_error *err);
/* The arrays of a batch on a GPU, in device memory; all fsts one behind the other, offsets and next
 * states counting through. Valid while the batch lives. */
typedef struct wf_fst_batch_view {
  uint64_t num_fsts, num_states, num_arcs;
  const uint64_t *state_base, *arc_base; /* [num_fsts + 1], in host memory */
  const uint64_t *arc_off;               /* [num_states + 1] */
  const wf_arc *arcs;
  const float *final_cost;
  const wf_arc_origin *origins;     /* or NULL */
  const double *gradients;          /* of the arcs [num_arcs], or NULL */
  const double *input_gradients[2]; /* of the arcs of the inputs, pair by pair, or NULL */
} wf_fst_batch_view;
/* WF_ERR_UNSUPPORTED for a batch on the CPU: wf_fst_batch_get costs nothing there. */
WF_API wf_status wf_fst_batch_get_view(const wf_fst_batch *batch, wf_fst_batch_view *view,
                                       wf_error *err);

/* Replaces labels by pairs {old, new}; labels not listed stay. `inum` and `onum` count pairs; a
 * side with pairs loses its symbol table. Errors: an old label listed twice, a negative label. */
WF_API wf_status wf_relabel(const wf_fst *fst, const int32_t (*ipairs)[2], size_t inum,
                            const int32_t (*opairs)[2], size_t onum, wf_fst **out, wf_error *err);
/* Disambiguation symbols: adds a self-loop ilabels[i]:olabels[i], cost 0, behind the arcs of every
 * state that is final or has an arc with a non-epsilon output (as Kaldi's fstaddselfloops does),
 * or, reversed, replaces the listed input labels by epsilon. */
WF_API wf_status wf_add_self_loops(const wf_fst *fst, const int32_t *ilabels,
                                   const int32_t *olabels, size_t count, wf_fst **out,
                                   wf_error *err);
WF_API wf_status wf_remove_disambig(const wf_fst *fst, const int32_t *ilabels, size_t count,
                                    wf_fst **out, wf_error *err);

/* Are two fsts the same, state by state and arc by arc, with weights within delta? `*out_equal`.
 * `err` gets the first difference even when the call succeeds with *out_equal false (code WF_OK,
 * message). Symbol tables are not compared. */
WF_API wf_status wf_equal(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                          wf_error *err);
/* Do two deterministic epsilon-free acceptors accept the same strings with the same costs (within
 * delta)? (Hopcroft & Karp 1971, with costs.) Weights need not be pushed. `err` as in wf_equal,
 * with a string that leads to the difference. Other input: WF_ERR_ARGUMENT. */
WF_API wf_status wf_equivalent(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                               wf_error *err);
/* As OpenFst's fstrandequivalent: draws npath random paths from each fst and compares, in both, the
 * cost of the path's pair of strings: the semiring's sum over all paths with that pair. Equal
 * answers are evidence, not proof; a difference (in `err`, as in wf_equal) is proof. WF_ERR_LIMIT
 * if the sum round an epsilon cycle does not converge (log), WF_ERR_NEGATIVE_CYCLE (tropical). */
#define WF_RANDEQUIVALENT_OPTIONS(X)                                              \
  X(F32, delta, 0.0009765625, 0, 1e9, "nats", "allowed difference of costs")      \
  X(I32, npath, 10, 1, 2147483647, "paths", "random paths to draw from each fst") \
  X(I32, max_length, 1000, 1, 2147483647, "arcs", "longest path to draw")         \
  X(I64, seed, 1, 0, 9007199254740992.0, "", "seed of the random paths")
WF_DECLARE_OPTIONS(randequivalent, WF_RANDEQUIVALENT_OPTIONS)
WF_API wf_status wf_randequivalent(const wf_fst *a, const wf_fst *b,
                                   const wf_randequivalent_options *options, bool *out_equal,
                                   wf_error *err);

/* npath random successful paths, side by side from state 0, without weights unless `keep_weights`.
 * A step is drawn from the arcs of a state and, if it is final, stopping: all alike, or by
 * exp(-cost). Steps after which no end can be reached within max_length arcs are not drawn, so that
 * every drawn path is whole. The fst without paths gives the empty fst; one whose every path is
 * longer than max_length is WF_ERR_ARGUMENT. The same seed gives the same paths on every machine.
 */
#define WF_RANDGEN_OPTIONS(X)                                                                   \
  X(I32, npath, 1, 1, 2147483647, "paths", "number of paths to draw")                           \
  X(I32, max_length, 100000, 0, 2147483647, "arcs", "longest path to draw")                     \
  X(ENUM, select, 0, 0, 0, "uniform|log_prob", "every arc alike, or by probability exp(-cost)") \
  X(BOOL, keep_weights, 0, 0, 1, "", "give the paths their costs")                              \
  X(I64, seed, 1, 0, 9007199254740992.0, "", "seed of the random choices")
WF_DECLARE_OPTIONS(randgen, WF_RANDGEN_OPTIONS)
WF_API wf_status wf_randgen(const wf_fst *fst, const wf_randgen_options *options, wf_fst **out,
                            wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_FST_H */
