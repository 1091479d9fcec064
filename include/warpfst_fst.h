/* warpfst_fst.h - transducers: building, files, operations, composition, batches on a GPU. The
 * rules at the top of warpfst.h apply here too. */
#ifndef WARPFST_FST_H
#define WARPFST_FST_H

#include "warpfst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  Symbol tables: building and writing
 * ========================================================================================= */

WF_API wf_status wf_symbols_create(const char *name, wf_symbols **out, wf_error *err);
/* Adds `text` with `key`, or with the next free key if key is -1. The same pair may be added twice.
 * `*out_key` (may be NULL) receives the key. Errors: an empty `text`, a key outside -1 .. 2^31 - 1,
 * a text or key that is in the table with another. */
WF_API wf_status wf_symbols_add(wf_symbols *symbols, const char *text, int64_t key,
                                int64_t *out_key, wf_error *err);
/* Writes lines `symbol<TAB>id` of all entries. Errors (WF_ERR_ARGUMENT): a symbol that is empty or
 * holds a blank, a tab, a line end or a NUL byte. */
WF_API wf_status wf_symbols_write(const wf_symbols *symbols, const char *path, wf_error *err);
/* The bytes of a binary table, as OpenFst writes it. They hold every entry. Free `*out` with
 * wf_free. */
WF_API wf_status wf_symbols_write_memory(const wf_symbols *symbols, void **out, size_t *size,
                                         wf_error *err);
/* As wf_symbols_read, from data[size]: the contents of a file. Messages show `name` in place of the
 * path, and a table read from text has it. */
WF_API wf_status wf_symbols_read_memory(const void *data, size_t size, const char *name,
                                        wf_symbols **out, wf_error *err);
/* One more than the largest key up to 2^31 - 1; 0 for an empty table. */
WF_API int64_t wf_symbols_next_key(const wf_symbols *symbols);
WF_API const char *wf_symbols_name(const wf_symbols *symbols);
/* The i-th pair in insertion order, 0 <= i < count. Keys and symbols are unique. */
WF_API const char *wf_symbols_at(const wf_symbols *symbols, size_t i, int64_t *key);
/* All entries in the order of the file. Tables that OpenFst wrote may have entries that are not in
 * the count: with a negative key or one above 2^31 - 1, or with a symbol or key that came before.
 * They are written with the table. Symbols may be any bytes; one with a NUL byte is not in the
 * count either, and is shown up to the NUL. */
WF_API size_t wf_symbols_num_entries(const wf_symbols *symbols);
WF_API const char *wf_symbols_entry(const wf_symbols *symbols, size_t i, int64_t *key);

/* =========================================================================================
 * 2  Transducers, builder, files
 *
 * An fst is immutable. It is stored in compressed sparse rows: the arcs of state s are
 * arcs[arc_off[s]] .. arcs[arc_off[s + 1] - 1].
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
  int64_t start; /* -1: the fst has no states */
  uint64_t num_states;
  uint64_t num_arcs;
  const uint64_t *arc_off; /* [num_states + 1] */
  const wf_arc *arcs;      /* [num_arcs] */
  const float *final_cost; /* [num_states]; +infinity: not final */
  wf_semiring semiring;
} wf_fst_view;

/* Returns the arrays of an fst. They are valid for the lifetime of the fst. */
WF_API wf_fst_view wf_fst_get_view(const wf_fst *fst);
/* Makes an fst with other symbol tables (NULL: none). It shares the arrays of `fst`. */
WF_API wf_status wf_fst_with_symbols(const wf_fst *fst, const wf_symbols *isymbols,
                                     const wf_symbols *osymbols, wf_fst **out, wf_error *err);
/* Makes an fst in another semiring. It shares the arrays of `fst`; weights keep their values. */
WF_API wf_status wf_fst_with_semiring(const wf_fst *fst, wf_semiring semiring, wf_fst **out,
                                      wf_error *err);
/* Copies an fst with other arc weights: weights [count], one for each arc, in order. What else the
 * fst carries stays: symbols, word boundaries, the blank of a token graph. Errors
 * (WF_ERR_ARGUMENT): `count` is not the number of arcs; a weight is NaN or -infinity. */
WF_API wf_status wf_fst_with_weights(const wf_fst *fst, const float *weights, uint64_t count,
                                     wf_fst **out, wf_error *err);

/* Properties of an fst. They are computed on the first call and cached. */
typedef enum wf_property {
  WF_PROP_ACCEPTOR = 1 << 0,      /* ilabel == olabel on every arc */
  WF_PROP_ILABEL_SORTED = 1 << 1, /* per state, ilabels are in non-decreasing order */
  WF_PROP_OLABEL_SORTED = 1 << 2,
  WF_PROP_NO_IEPSILONS = 1 << 3,
  WF_PROP_NO_OEPSILONS = 1 << 4,
  WF_PROP_NO_EPSILONS = 1 << 5,    /* no arc has both labels 0 */
  WF_PROP_IDETERMINISTIC = 1 << 6, /* per state, ilabels are distinct (epsilon counts as a label) */
  WF_PROP_ODETERMINISTIC = 1 << 7,
  WF_PROP_ACYCLIC = 1 << 8,
  WF_PROP_TOP_SORTED = 1 << 9, /* every arc leads to a state with a larger number */
  WF_PROP_ACCESSIBLE = 1 << 10,
  WF_PROP_COACCESSIBLE = 1 << 11,
  WF_PROP_UNWEIGHTED = 1 << 12, /* every arc weight 0, every final cost 0 or +infinity */
  WF_PROP_EPSILONS_LAST =
      1 << 13, /* per state, arcs with ilabel != 0 come first, as the decoder requires */
} wf_property;
/* Sets *out to the set of properties that hold. They are computed once. Thread-safe. Fails only
 * with WF_ERR_MEMORY. */
WF_API wf_status wf_fst_get_properties(const wf_fst *fst, uint32_t *out, wf_error *err);
/* The same; without memory, properties that hold can be missing. */
WF_API uint32_t wf_fst_properties(const wf_fst *fst);

/* Builder. States and arcs may be added in any order. The arcs of a state keep their insertion
 * order. */
typedef struct wf_builder wf_builder;
WF_API wf_status wf_builder_create(wf_semiring semiring, wf_builder **out, wf_error *err);
/* Reserves memory. Optional. */
WF_API wf_status wf_builder_reserve(wf_builder *builder, uint64_t num_states, uint64_t num_arcs,
                                    wf_error *err);
/* Adds `count` states. `*out_first` (may be NULL) receives the id of the first. */
WF_API wf_status wf_builder_add_states(wf_builder *builder, uint64_t count, uint32_t *out_first,
                                       wf_error *err);
WF_API wf_status wf_builder_set_start(wf_builder *builder, uint32_t state, wf_error *err);
/* A cost of +infinity means not final. Errors: NaN and -infinity, here and for arc weights. */
WF_API wf_status wf_builder_set_final(wf_builder *builder, uint32_t state, float cost,
                                      wf_error *err);
WF_API wf_status wf_builder_add_arc(wf_builder *builder, uint32_t state, wf_arc arc, wf_error *err);
/* Adds `count` arcs: arcs[i] leaves states[i]. On failure no arc is added, and the message names
 * the first bad one. */
WF_API wf_status wf_builder_add_arcs(wf_builder *builder, const uint32_t *states,
                                     const wf_arc *arcs, uint64_t count, wf_error *err);
/* Makes the fst and empties the builder. The builder may then be reused or freed. */
WF_API wf_status wf_builder_finish(wf_builder *builder, const wf_symbols *isymbols,
                                   const wf_symbols *osymbols, wf_fst **out, wf_error *err);
WF_API void wf_builder_free(wf_builder *builder);

/* Files. The format is detected from the content: warpfst's memory-mapped format, or OpenFst
 * vector, const, compact (acceptor, string, unweighted, unweighted_acceptor, weighted_string; const
 * and compact with indices of 8 to 64 bits), edit, ngram and look-ahead (arc_lookahead,
 * ilabel_lookahead, olabel_lookahead; standard, log, log64). Operations round log64 weights to float32;
 * vector and const files of log64 arcs that are written of what was read have them as they were.
 * Text is read by wf_fst_compile. Errors: a truncated or corrupt file, a reference outside the
 * file, a negative label, NaN, -infinity. Native files are also verified by checksums. An OpenFst
 * file with states but no start state gives the empty fst. The native layout is in
 * docs/reference/file-formats.md. */
typedef enum wf_fst_format {
  WF_FORMAT_NATIVE =
      0, /* magic, version, checksum, then the arrays of wf_fst_view, ready to be mapped */
  WF_FORMAT_OPENFST_VECTOR = 1,       /* OpenFst VectorFst, arc type by semiring */
  WF_FORMAT_OPENFST_CONST = 2,        /* OpenFst ConstFst, not aligned */
  WF_FORMAT_OPENFST_VECTOR_LOG64 = 3, /* float64 weights; log semiring only */
  WF_FORMAT_OPENFST_CONST_LOG64 = 4,
  WF_FORMAT_OPENFST_COMPACT = 5, /* the last four are read, not written */
  WF_FORMAT_OPENFST_EDIT = 6,
  WF_FORMAT_OPENFST_NGRAM = 7,
  WF_FORMAT_OPENFST_LOOKAHEAD = 8, /* the fst in it; what is stored for look-ahead is dropped */
} wf_fst_format;
/* As wf_fst_read. `*out_format` receives the detected format. */
WF_API wf_status wf_fst_read_format(const char *path, wf_fst **out, wf_fst_format *out_format,
                                    wf_error *err);
WF_API wf_status wf_fst_write(const wf_fst *fst, const char *path, wf_fst_format format,
                              wf_error *err);
/* As wf_fst_read, from data[size], which is copied: the contents of a file of any format that can
 * be read, also of gzip. Messages show `name` in place of the path. */
WF_API wf_status wf_fst_read_memory(const void *data, size_t size, const char *name, wf_fst **out,
                                    wf_error *err);
/* The bytes that wf_fst_write would write to a file. Free `*out` with wf_free. */
WF_API wf_status wf_fst_write_memory(const wf_fst *fst, wf_fst_format format, void **out,
                                     size_t *size, wf_error *err);

/* Counts over an fst, in linear time. Initialize `info` with wf_fst_info_init. */
typedef struct wf_fst_info {
  size_t struct_size;
  uint64_t num_final;
  uint64_t num_epsilons, num_iepsilons,
      num_oepsilons; /* arcs with both labels 0; with input label 0; with output label 0 */
  uint64_t num_accessible, num_coaccessible,
      num_connected; /* states: accessible from the start; coaccessible from a final state; both */
  uint64_t max_arcs; /* largest number of arcs of a state */
  int32_t max_ilabel, max_olabel;
  uint64_t num_components, num_sccs; /* connected components, strongly connected components */
  /* Arcs of a state that share the label of an arc, averaged over all arcs; 0 without arcs. */
  double ilabel_multiplicity, olabel_multiplicity;
  bool cyclic_at_start; /* the start state is on a cycle */
  bool is_string;       /* at most one path, and no other states or arcs */
  bool weighted_cycles; /* an arc on a cycle has a cost other than 0 */
  /* A token graph (wf_graph_build): the input label of its blank; 0: it is none. And the states
   * and arcs of the graph that reads frames, which texts and OpenFst's formats hold; 0: they cannot
   * hold it. */
  int32_t ctc_blank;
  bool has_word_aligner; /* results of a graph that is made of it have exact word times */
  uint64_t num_frame_states, num_frame_arcs;
  /* The lowest and the highest cost that is the sum, in the log semiring, of the arcs and the final
   * cost of a state: -ln of a sum of probabilities. 0 and 0: the fst is stochastic. */
  double min_sum, max_sum;
} wf_fst_info;
WF_DECLARE_INIT(fst_info)
WF_API wf_status wf_fst_get_info(const wf_fst *fst, wf_fst_info *info, wf_error *err);

/* AT&T text, as read and written by OpenFst's fstcompile and fstprint. A line holds an arc, `source
 * nextstate ilabel olabel [weight]` (acceptors: one label), or a final state, `state [weight]`.
 * Blanks or tabs separate fields. The start state is the source of the first line. A missing weight
 * is One (0). Zero is written "Infinity". */
enum { WF_ARC_TYPE_STANDARD, WF_ARC_TYPE_LOG, WF_ARC_TYPE_LOG64 };
#define WF_TEXT_OPTIONS(X)                                                         \
  X(BOOL, acceptor, 0, 0, 1, "", "lines hold one label, used as input and output") \
  X(BOOL, keep_state_numbering, 0, 0, 1, "",                                       \
    "keep the state numbers of the text; else number states by first appearance")  \
  X(BOOL, show_weight_one, 0, 0, 1, "", "also print weights of One (0)")           \
  X(BOOL, numeric, 0, 0, 1, "", "print numbers even if there are symbol tables")   \
  X(STR, missing_symbol, 0, 0, 0, "TEXT",                                          \
    "print this for labels that are not in the table (default: an error)")         \
  X(ENUM, arc_type, 0, 0, 0, "standard|log|log64", "semiring of the compiled fst")
WF_DECLARE_OPTIONS(text, WF_TEXT_OPTIONS)
/* If a symbol table is given, labels of that side are symbols of it; if it is NULL, they are
 * numbers. The fst gets the tables. Errors name path and line. With keep_state_numbering, a state
 * number far above the size of the text is an error. */
WF_API wf_status wf_fst_compile(const char *path, const wf_symbols *isymbols,
                                const wf_symbols *osymbols, const wf_text_options *options,
                                wf_fst **out, wf_error *err);
/* As wf_fst_compile, from text[size] in memory. Messages show `name` in place of the path. */
WF_API wf_status wf_fst_compile_memory(const char *text, size_t size, const char *name,
                                       const wf_symbols *isymbols, const wf_symbols *osymbols,
                                       const wf_text_options *options, wf_fst **out, wf_error *err);
/* Prints the start state first, then the other states in order. If a table is NULL, that of the fst
 * is used, or numbers if the fst has none. Errors: a label that is not in its table, or whose
 * symbol is empty or holds a blank, a tab or a line end, so that the text could not be read. */
WF_API wf_status wf_fst_print(const wf_fst *fst, const char *path, const wf_symbols *isymbols,
                              const wf_symbols *osymbols, const wf_text_options *options,
                              wf_error *err);
/* The bytes that wf_fst_print would write to a file; no NUL follows them. Free `*out`, which is
 * NULL if there are none, with wf_free. */
WF_API wf_status wf_fst_print_memory(const wf_fst *fst, const wf_symbols *isymbols,
                                     const wf_symbols *osymbols, const wf_text_options *options,
                                     char **out, size_t *size, wf_error *err);
/* Draws an fst as an SVG picture, without scripts or other files: states by their distance from the
 * start in arcs, labels as texts of the fst's symbol tables or as numbers, costs other than 0 after
 * a slash, final states with two circles. The same fst always gives the same bytes. If the name ends
 * in .dot or .gv, it is text for Graphviz (wf_fst_print_dot). Errors: more than 1000 states or arcs
 * in a picture (WF_ERR_LIMIT). */
WF_API wf_status wf_fst_draw(const wf_fst *fst, const char *path, wf_error *err);
/* Writes an fst of any size as text for Graphviz, with the labels and costs of wf_fst_draw. */
WF_API wf_status wf_fst_print_dot(const wf_fst *fst, const char *path, wf_error *err);

/* =========================================================================================
 * 3  Operations on transducers
 *
 * Each operation reads immutable inputs and makes a new fst. Symbol tables are copied where they
 * still apply. "Trimmed" means that every state of the result is on a path from the start to a
 * final state. Two inputs must be in the same semiring.
 *
 * The symbol tables of two inputs must agree: those of the same side, or, for compositions and
 * differences, the output symbols of an fst and the input symbols of the next one. Tables agree if
 * they have the same keys and symbols, and if one is missing. Else the call fails
 * (WF_ERR_ARGUMENT), and the message has the first difference. The option check_symbols switches
 * this off; for functions without options, remove the tables of one input (wf_fst_with_symbols).
 * ========================================================================================= */

/* Option of the operations that use several threads. They start threads only for large fsts. */
#define WF_OPTION_NUM_THREADS(X)             \
  X(I32, num_threads, 0, 0, 4096, "threads", \
    "worker threads; 0: one per processor, at most 16. The result does not depend on it")

/* Option of the operations on two or more fsts. */
#define WF_OPTION_CHECK_SYMBOLS(X) \
  X(BOOL, check_symbols, 1, 0, 1, "", "fail if symbol tables that have to agree differ")

/* Options of the operations whose result may be pruned as by wf_prune (tropical). */
#define WF_OPTIONS_THRESHOLD(X)                                                            \
  X(F32, weight, 1e30, 0, 1e30, "nats", "drop what is on no path within this of the best") \
  X(I64, nstate, 0, 0, 2147483647, "states", "keep this many states, best first; 0: no limit")

/* Sorts the arcs of each state. The sort is stable. */
enum { WF_SORT_ILABEL, WF_SORT_OLABEL };
#define WF_ARCSORT_OPTIONS(X) X(ENUM, sort_type, 0, 0, 0, "ilabel|olabel", "label to sort by")
WF_DECLARE_OPTIONS(arcsort, WF_ARCSORT_OPTIONS)
WF_API wf_status wf_arcsort(const wf_fst *fst, const wf_arcsort_options *options, wf_fst **out,
                            wf_error *err);

/* Keeps the states that are on a path from the start to a final state. States and arcs keep their
 * order. */
WF_API wf_status wf_connect(const wf_fst *fst, wf_fst **out, wf_error *err);
/* Renumbers the states so that every arc leads to a state with a larger number. Errors: a cycle
 * (WF_ERR_ARGUMENT). */
WF_API wf_status wf_topsort(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Composition. For a path x:y of `a` with cost u and a path y:z of `b` with cost v, the result has
 * a path x:z of cost u + v (Mohri, Pereira, Riley 1996). Inputs need not be sorted. The result is
 * trimmed if `connect`.
 *
 * Filters are OpenFst's (Allauzen & Mohri 2009). sequence, alt_sequence and match keep one of the
 * equivalent orders of epsilons, so that each path counts once in the log semiring. no_match and
 * trivial keep several. null treats epsilon as an ordinary symbol.
 *
 * order=openfst numbers states breadth first, in order of discovery. States, arcs and their order
 * equal those of OpenFst's fstcompose on inputs sorted by fstarcsort.
 *
 * order=canonical numbers states by (state of a, filter state, state of b). The start need not be
 * state 0. Every device and every number of threads gives the same bytes. Dense results are
 * computed on bit rows by num_threads threads, which is much faster (parallel composition:
 * Sengupta, Pratap, Hannun 2021). docs/how-to/composition.md defines the order;
 * docs/engineering/composition.md describes the implementation.
 *
 * Failure arcs: with phi_label > 0, an arc of `b` with that input label is the failure arc of its
 * state. It is followed only for a label without an arc at the state. Following it reads no input
 * and adds its cost. Epsilons never follow failure arcs. Final costs follow them only with
 * `phi_final`.
 *
 * `lookahead` finds, for each state of `a`, the labels that can come next after its output
 * epsilons, and does not make pairs of states without a common one (Allauzen, Riley & Schalkwyk
 * 2009). A trimmed result is the same; one that is not trimmed has fewer dead states. On the CPU,
 * for two fsts without failure arcs; elsewhere it has no effect.
 *
 * `lookahead_push` looks ahead, too. An arc to a pair of states that only one label can follow
 * writes the output of that label and has its cost, so paths with the same rest meet earlier. The
 * result is equivalent, and has fewer states as a rule. On the CPU, in OpenFst's order, for two
 * fsts without failure arcs and without origins; elsewhere it has no effect.
 *
 * Errors: two failure arcs at a state, a failure arc with an output other than 0 or phi_label, a
 * cycle of failure arcs, phi_label on the output side of `a`, a sum of costs below the lowest float
 * (all WF_ERR_ARGUMENT); more than
 * max_states or max_bytes (WF_ERR_LIMIT). */
enum {
  WF_FILTER_AUTO,
  WF_FILTER_SEQUENCE,
  WF_FILTER_ALT_SEQUENCE,
  WF_FILTER_MATCH,
  WF_FILTER_NO_MATCH,
  WF_FILTER_TRIVIAL,
  WF_FILTER_NULL
};
enum { WF_ORDER_OPENFST, WF_ORDER_CANONICAL };
#define WF_COMPOSE_OPTIONS(X)                                                                    \
  X(ENUM, filter, 0, 0, 0, "auto|sequence|alt_sequence|match|no_match|trivial|null",             \
    "epsilon filter; auto is sequence")                                                          \
  X(BOOL, connect, 1, 0, 1, "", "trim the result")                                               \
  X(I32, phi_label, 0, 0, 2147483647, "label",                                                   \
    "failure label on the input side of the second fst; 0: none")                                \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                 \
    "fail beyond this number of states before trimming; 0: 2^31 - 1")                            \
  X(BOOL, phi_final, 0, 0, 1, "",                                                                \
    "non-final states of the second fst take the final cost reached by their failure arcs")      \
  WF_OPTION_NUM_THREADS(X)                                                                       \
  X(ENUM, order, 0, 0, 0, "openfst|canonical",                                                   \
    "numbering of states and order of arcs: OpenFst's, or one that is the same on every device") \
  X(STR, device, 0, 0, 0, "DEVICE",                                                              \
    "cpu, cuda, or cuda:N (default: cpu); a GPU supports the canonical order only")              \
  X(I64, max_bytes, 0, 0, 9007199254740992, "bytes",                                             \
    "fail if tables and result need more memory than this; 0: no limit")                         \
  X(BOOL, lookahead, 0, 0, 1, "",                                                                \
    "skip pairs of states whose next labels cannot match (faster if many do not)")               \
  X(BOOL, lookahead_push, 0, 0, 1, "",                                                           \
    "look ahead, and write a label as soon as it is the only one that can come")                 \
  WF_OPTION_CHECK_SYMBOLS(X)
WF_DECLARE_OPTIONS(compose, WF_COMPOSE_OPTIONS)
WF_API wf_status wf_compose(const wf_fst *a, const wf_fst *b, const wf_compose_options *options,
                            wf_fst **out, wf_error *err);

/* Composes 2 to 256 fsts from left to right in one call: ((fsts[0] o fsts[1]) o fsts[2]) o ... Only
 * the last composition is written. A state of another one is made when the next composition first
 * visits it, and kept until the end, so memory is needed for the visited states only (N-way
 * composition: Allauzen & Mohri 2009).
 *
 * The result has the same bytes as with wf_compose from left to right, with `connect` off for all
 * compositions but the last. Compositions in between that are trimmed give the same paths and
 * costs, but may give other states if there are epsilons. max_states limits each composition,
 * max_bytes all together. phi_label is the failure label of each fst but the first. The last
 * composition uses threads if the last fst is large; the others use one thread. On a GPU, the host
 * waits for the GPU several times for each level of the breadth-first search.
 *
 * Errors: those of wf_compose. A failure label on the output side of a composition in between is an
 * error if it is visited. */
WF_API wf_status wf_compose_n(const wf_fst *const *fsts, size_t count,
                              const wf_compose_options *options, wf_fst **out, wf_error *err);

/* Origin of a composition's arc: the index of an arc of each input. Indices count all arcs of the
 * input. WF_NO_ARC: the input takes no arc. */
#define WF_NO_ARC UINT32_MAX
typedef struct wf_arc_origin {
  uint32_t a, b;
} wf_arc_origin;

/* Composes many pairs, or one pair with the origins of its arcs. The inputs are prepared once, on
 * the CPU or on a GPU (options->device), and can be composed any number of times. On the CPU,
 * threads share the pairs. On a GPU, a run takes a few launches for all pairs, and results stay in
 * device memory until requested. A composer is used by one thread at a time. */
typedef struct wf_composer wf_composer;
/* Pair i is a[i] and b[i]. num_a is `count`, or 1 if all pairs share the first fst; num_b likewise.
 * `with_origins` keeps the origins of arcs, which are needed to propagate gradients to the inputs.
 * Errors: origins with phi_label, since an arc may then have several origins (WF_ERR_UNSUPPORTED);
 * on a GPU, phi_label and an order other than canonical (WF_ERR_UNSUPPORTED); inputs of more than
 * 2^32 - 2 arcs (WF_ERR_LIMIT). On a GPU, pairs with a large sparse state table are composed one by
 * one with a hash table. */
WF_API wf_status wf_composer_create(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                    size_t num_b, size_t count, const wf_compose_options *options,
                                    bool with_origins, wf_composer **out, wf_error *err);
/* Composes all pairs. Errors: those of wf_compose, and WF_ERR_DEVICE. The message names the first
 * pair that failed. After an error there are no results. */
WF_API wf_status wf_composer_run(wf_composer *composer, wf_error *err);
/* Returns the result of pair i of the last run as pointers into device memory. They are valid until
 * the next run. `*origins` (the argument may be NULL) receives the origins of its arcs, in the same
 * memory, or NULL if they were not requested. */
WF_API wf_status wf_composer_get_view(const wf_composer *composer, size_t i, wf_fst_view *view,
                                      const wf_arc_origin **origins, wf_error *err);
/* Copies the result of pair i to host memory. `*out_origins` (the argument may be NULL) receives an
 * array; free it with wf_free. */
WF_API wf_status wf_composer_to_fst(const wf_composer *composer, size_t i, wf_fst **out,
                                    wf_arc_origin **out_origins, wf_error *err);
WF_API void wf_composer_free(wf_composer *composer);

/* Determinizes a weighted transducer on its input side (Mohri 1997). With `rmepsilon`, epsilon
 * input labels are removed on the fly; without, epsilon is an ordinary label. Subsets have residual
 * output strings and costs. The result is trimmed. States are numbered breadth first. An output of
 * several labels is a chain of arcs with epsilon input after the first arc; the states of such
 * chains come last. Arcs are sorted by input label. With det_type=nonfunctional, the outputs of one
 * input leave its last state on several arcs of the subsequential label.
 *
 * Errors: det_type=nonfunctional with `rmepsilon` and epsilon inputs, or on a GPU
 * (WF_ERR_UNSUPPORTED). The others are WF_ERR_NOT_DETERMINIZABLE, with a witness in the message:
 * two outputs for one input; more than max_states states; an output delayed by more than 10000
 * labels. Without the twins property, costs of paths with the same input diverge and the algorithm
 * does not terminate; max_states then ends it. With det_type=nonfunctional, the states of output
 * strings count, too, and so do the outputs of one input. The default of max_states is 64 times the
 * number of states of the trimmed input, at least 1,000,000. */
enum { WF_DETERMINIZE_FUNCTIONAL, WF_DETERMINIZE_NONFUNCTIONAL, WF_DETERMINIZE_DISAMBIGUATE };
#define WF_DETERMINIZE_OPTIONS(X)                                                             \
  X(F32, delta, 0.0009765625, 0, 1, "nats", "residual weights closer than this are equal")    \
  X(BOOL, rmepsilon, 0, 0, 1, "",                                                             \
    "remove epsilon inputs on the fly (epsilon closure) instead of treating them as a label") \
  X(BOOL, allow_nonfunctional, 0, 0, 1, "", "keep the best output if an input has several")   \
  X(I32, subsequential_label, 0, 0, 2147483647, "label",                                      \
    "input label of arcs that emit final output strings; 0: epsilon")                         \
  X(I64, max_states, 0, 0, 2147483647, "states",                                              \
    "fail beyond this number of states, with a witness; 0: 64 times the input's, at least "   \
    "1000000")                                                                                \
  WF_OPTION_NUM_THREADS(X)                                                                    \
  X(ENUM, det_type, 0, 0, 0, "functional|nonfunctional|disambiguate",                         \
    "if an input has several outputs: fail, keep all, or keep the best")                      \
  WF_OPTIONS_THRESHOLD(X)
WF_DECLARE_OPTIONS(determinize, WF_DETERMINIZE_OPTIONS)
WF_API wf_status wf_determinize(const wf_fst *fst, const wf_determinize_options *options,
                                wf_fst **out, wf_error *err);

/* Minimizes a weighted transducer (Mohri 2000; acyclic: Revuz 1992, cyclic: Hopcroft 1971). Weights
 * are pushed first. Then (ilabel, olabel[, weight]) is one label. The input must be deterministic
 * under this encoding (else WF_ERR_ARGUMENT). With allow_nondet it need not be; the result is then
 * smaller but not minimal. The total cost is added to the arcs of the start state, or, if an arc
 * enters the start state, to all final costs. States keep their order. Errors: weights cannot be
 * pushed, because a distance does not exist (WF_ERR_NEGATIVE_CYCLE). */
#define WF_MINIMIZE_OPTIONS(X)                                                              \
  X(F32, delta, 0.0009765625, 0, 1, "nats", "weights closer than this are equal")           \
  X(BOOL, encode_labels, 1, 0, 1, "",                                                       \
    "treat (ilabel, olabel) as one label; off: push output labels towards the start first") \
  X(BOOL, push_weights, 1, 0, 1, "",                                                        \
    "push weights towards the start first; off: weights are part of the label")             \
  X(BOOL, allow_nondet, 0, 0, 1, "", "accept nondeterministic input")                       \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(minimize, WF_MINIMIZE_OPTIONS)
WF_API wf_status wf_minimize(const wf_fst *fst, const wf_minimize_options *options, wf_fst **out,
                             wf_error *err);

/* Removes arcs with epsilon on both sides (Mohri 2002) and merges arcs that become equal. With
 * `connect` the result is trimmed. Without it, states keep their numbers, and states reached only
 * by epsilons lose their arcs. Errors: the sum over an epsilon cycle is not finite
 * (WF_ERR_NEGATIVE_CYCLE). */
#define WF_RMEPSILON_OPTIONS(X)                                                         \
  X(BOOL, connect, 1, 0, 1, "", "trim the result")                                      \
  X(F32, delta, 0.000001, 0, 1, "nats", "convergence of distances in the log semiring") \
  WF_OPTIONS_THRESHOLD(X)
WF_DECLARE_OPTIONS(rmepsilon, WF_RMEPSILON_OPTIONS)
WF_API wf_status wf_rmepsilon(const wf_fst *fst, const wf_rmepsilon_options *options, wf_fst **out,
                              wf_error *err);

/* Pushes weights, and output labels if requested, towards the start or the final states. The total
 * weight and the common output prefix are added to the arcs of the start state. If an arc enters
 * the start state, they are put on an epsilon arc from a new start state, which is numbered last.
 * In the log semiring the result is stochastic. States that are on no successful path do not
 * change. Errors: remove_total_weight without push_weights, or remove_common_affix without
 * push_labels (WF_ERR_ARGUMENT). */
#define WF_PUSH_OPTIONS(X)                                                             \
  X(BOOL, push_weights, 1, 0, 1, "", "push weights")                                   \
  X(BOOL, push_labels, 0, 0, 1, "", "push output labels")                              \
  X(BOOL, to_final, 0, 0, 1, "", "push towards the final states instead of the start") \
  X(BOOL, remove_total_weight, 0, 0, 1, "", "drop the total weight (divide by it)")    \
  X(F32, delta, 0.000001, 0, 1, "nats", "convergence of distances")                    \
  WF_OPTION_NUM_THREADS(X)                                                             \
  X(BOOL, remove_common_affix, 0, 0, 1, "",                                            \
    "drop the output prefix (or suffix) common to all paths")
WF_DECLARE_OPTIONS(push, WF_PUSH_OPTIONS)
WF_API wf_status wf_push(const wf_fst *fst, const wf_push_options *options, wf_fst **out,
                         wf_error *err);

/* Computes the semiring sum over all paths from the start to each state (Mohri 2002), or with
 * `reverse` from each state to the final states. `*out_distance` receives num_states costs; free it
 * with wf_free. Errors: a sum does not exist (WF_ERR_NEGATIVE_CYCLE), because of a reachable cycle
 * of negative cost or, in the log semiring, a cycle whose sum diverges. */
#define WF_SHORTEST_DISTANCE_OPTIONS(X)                                              \
  X(BOOL, reverse, 0, 0, 1, "", "distances to the final states")                     \
  X(F32, delta, 0.000001, 0, 1, "nats",                                              \
    "convergence for cycles with negative costs and for cycles in the log semiring") \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(shortest_distance, WF_SHORTEST_DISTANCE_OPTIONS)
WF_API wf_status wf_shortest_distance(const wf_fst *fst,
                                      const wf_shortest_distance_options *options,
                                      float **out_distance, wf_error *err);

/* Computes the total cost of all successful paths: -ln of the sum of e^-cost in the log semiring
 * ("forward score"), the minimum in the tropical semiring, +infinity without a path.
 * `*out_gradients` (the argument may be NULL) receives num_arcs derivatives with respect to the arc
 * weights; free it with wf_free. A derivative is the expected number of times that a path takes the
 * arc, or 0 if there is no path. Gradients need the log semiring (tropical: WF_ERR_UNSUPPORTED).
 * Cycles and errors: as wf_shortest_distance. Sums are in double. */
#define WF_FORWARD_SCORE_OPTIONS(X)                                                   \
  X(F32, delta, 0.000001, 0, 1, "nats", "convergence for cycles in the log semiring") \
  WF_OPTION_NUM_THREADS(X)
WF_DECLARE_OPTIONS(forward_score, WF_FORWARD_SCORE_OPTIONS)
WF_API wf_status wf_forward_score(const wf_fst *fst, const wf_forward_score_options *options,
                                  double *out_cost, double **out_gradients, wf_error *err);

/* Finds the nshortest best paths. In the log semiring these are the paths of the lowest cost, too:
 * costs of equal strings are not summed. One path is a chain from state 0. For several (Mohri & Riley 2002), state 0 has an epsilon arc to each path, best
 * first, and paths share their tails. The result has fewer paths if the fst has fewer. Without a
 * path it is the empty fst.
 *
 * With `unique`, the paths have distinct strings (epsilons are ignored). Weights may move along a
 * path. For more than one path the fst must be an acceptor.
 *
 * Ties: of paths of equal cost (summed in double), the one with fewer arcs comes first. Next, paths
 * are compared from the end: the lower final state comes first, then the lower arc index (over the
 * whole fst) at the first difference. Distinct strings are compared by labels in place of arcs.
 *
 * Cycles and negative weights are supported. Errors: a negative cycle on a path to a final state
 * (WF_ERR_NEGATIVE_CYCLE). */
#define WF_SHORTEST_PATH_OPTIONS(X)                                                          \
  X(I32, nshortest, 1, 1, 2147483647, "paths", "number of paths")                            \
  X(BOOL, unique, 0, 0, 1, "", "distinct strings only (more than one path: acceptors only)") \
  WF_OPTIONS_THRESHOLD(X)
WF_DECLARE_OPTIONS(shortest_path, WF_SHORTEST_PATH_OPTIONS)
WF_API wf_status wf_shortest_path(const wf_fst *fst, const wf_shortest_path_options *options,
                                  wf_fst **out, wf_error *err);

/* Removes arcs, states and final costs that are on no path within `weight` of the best path
 * (tropical; errors as wf_shortest_path). States and arcs keep their order. The result is trimmed.
 * With `nstate`, states are added in the order of the cost of the best path through them, each with
 * all states of that path, while at most nstate states result. */
#define WF_PRUNE_OPTIONS(X)                                          \
  X(F32, weight, 1e30, 0, 1e30, "nats", "beam around the best path") \
  X(I64, nstate, 0, 0, 2147483647, "states", "maximum number of states, best first; 0: no limit")
WF_DECLARE_OPTIONS(prune, WF_PRUNE_OPTIONS)
WF_API wf_status wf_prune(const wf_fst *fst, const wf_prune_options *options, wf_fst **out,
                          wf_error *err);

/* Rational and structural operations. */
enum { WF_CLOSURE_STAR, WF_CLOSURE_PLUS };
#define WF_CLOSURE_OPTIONS(X) \
  X(ENUM, closure_type, 0, 0, 0, "star|plus", "zero or more repetitions, or one or more")
WF_DECLARE_OPTIONS(closure, WF_CLOSURE_OPTIONS)
/* Star: a new state, numbered last, becomes start and final. An epsilon arc leads from each final
 * state to the old start. */
WF_API wf_status wf_closure(const wf_fst *fst, const wf_closure_options *options, wf_fst **out,
                            wf_error *err);
/* Union and concatenation of `count` fsts, at least one. The states of the first fst come first,
 * then those of the second, and so on. Symbol tables are those of the first. If one is a token
 * graph (wf_graph_build), the result is; the others must have its blank, or be fsts that do not
 * read it (else WF_ERR_ARGUMENT). Union: epsilon arcs leave the start of the first fst, or a new
 * start if that start is on a cycle. A concatenation with an empty fst is empty. */
WF_API wf_status wf_union(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err);
WF_API wf_status wf_concat(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err);
enum { WF_PROJECT_INPUT, WF_PROJECT_OUTPUT };
#define WF_PROJECT_OPTIONS(X) X(ENUM, project_type, 0, 0, 0, "input|output", "side to keep")
WF_DECLARE_OPTIONS(project, WF_PROJECT_OPTIONS)
WF_API wf_status wf_project(const wf_fst *fst, const wf_project_options *options, wf_fst **out,
                            wf_error *err);
WF_API wf_status wf_invert(const wf_fst *fst, wf_fst **out, wf_error *err);
/* Reverses the fst: it accepts the reversed strings. State 0 of the result is a new start, as in
 * OpenFst. */
WF_API wf_status wf_reverse(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Many fsts on one device: "cpu" (the default) or a GPU ("cuda", "cuda:2"). Inputs and results stay
 * there until requested. On a GPU an operation takes a few launches for the whole batch. A batch is
 * immutable except for its gradients. All fsts are in one semiring. A batch and the batches made
 * from it are used by one thread at a time. A batch on a GPU holds at most 2^32 - 2 states and arcs
 * (WF_ERR_LIMIT). Results on a GPU equal the CPU's byte for byte unless noted. */
typedef struct wf_fst_batch wf_fst_batch;
WF_API wf_status wf_fst_batch_create(const wf_fst *const *fsts, size_t count, const char *device,
                                     wf_fst_batch **out, wf_error *err);
/* Makes a batch of the results of the last run, with their origins, on the composer's device.
 * Errors: there are several pairs, and one was composed with a hash table (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_composer_to_batch(const wf_composer *composer, wf_fst_batch **out,
                                      wf_error *err);
WF_API size_t wf_fst_batch_count(const wf_fst_batch *batch);
/* Returns the i-th fst in host memory. A batch on the CPU makes no copy. */
WF_API wf_status wf_fst_batch_to_fst(const wf_fst_batch *batch, size_t i, wf_fst **out,
                                     wf_error *err);
WF_API void wf_fst_batch_free(wf_fst_batch *batch);

/* The operations of the same names, applied to each fst of the batch. Options, results and errors
 * are the same. arcsort, invert and project keep the origins of arcs. */
WF_API wf_status wf_fst_batch_arcsort(const wf_fst_batch *batch, const wf_arcsort_options *options,
                                      wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_connect(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_invert(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_project(const wf_fst_batch *batch, const wf_project_options *options,
                                      wf_fst_batch **out, wf_error *err);
WF_API wf_status wf_fst_batch_reverse(const wf_fst_batch *batch, wf_fst_batch **out, wf_error *err);
/* On a GPU, epsilon cycles are an error (WF_ERR_UNSUPPORTED), and in the log semiring costs equal
 * the CPU's up to rounding. */
WF_API wf_status wf_fst_batch_rmepsilon(const wf_fst_batch *batch,
                                        const wf_rmepsilon_options *options, wf_fst_batch **out,
                                        wf_error *err);
/* Errors on a GPU (WF_ERR_UNSUPPORTED): the log semiring; outputs delayed by more than 255 labels;
 * with `rmepsilon`, cycles of epsilon input labels, paths of more than 300 of them, and with
 * det_type=disambiguate equal costs of different outputs. Witnesses come from a second run on the
 * CPU. max_states applies to each fst. */
WF_API wf_status wf_fst_batch_determinize(const wf_fst_batch *batch,
                                          const wf_determinize_options *options, wf_fst_batch **out,
                                          wf_error *err);
/* A batch on a GPU is minimized on the CPU in these cases: output labels are pushed (encode_labels
 * off), costs are pushed in the log semiring, two arcs of a state have the same labels
 * (allow_nondet), inputs need thousands of rounds (docs/engineering/composition.md), or there is an
 * error. */
WF_API wf_status wf_fst_batch_minimize(const wf_fst_batch *batch,
                                       const wf_minimize_options *options, wf_fst_batch **out,
                                       wf_error *err);
/* `*out_distances` receives the distances of all fsts, concatenated, in host memory; free it with
 * wf_free. On a GPU, tropical distances equal the CPU's, except that they are within delta if there
 * are cycles with negative costs. Log distances are equal up to rounding, or within delta if there
 * are cycles. */
WF_API wf_status wf_fst_batch_shortest_distance(const wf_fst_batch *batch,
                                                const wf_shortest_distance_options *options,
                                                float **out_distances, wf_error *err);
/* wf_shortest_path with one path for each fst (tropical). Ties are resolved the same way on every
 * device. */
WF_API wf_status wf_fst_batch_shortest_path(const wf_fst_batch *batch, wf_fst_batch **out,
                                            wf_error *err);
/* `out_costs` [count] is in host memory. `with_gradients` keeps the derivatives in the batch for
 * the two calls below. On a GPU the relative difference to the CPU is about 1e-12. */
WF_API wf_status wf_fst_batch_forward_score(wf_fst_batch *batch,
                                            const wf_forward_score_options *options,
                                            bool with_gradients, double *out_costs, wf_error *err);
/* Returns the derivatives of the i-th cost with respect to its arc weights, or to those of the
 * first or second input that it was composed from. The array has *out_count entries; free it with
 * wf_free. */
typedef enum wf_gradients_of {
  WF_GRADIENTS_OF_ARCS = 0,
  WF_GRADIENTS_OF_FIRST = 1,
  WF_GRADIENTS_OF_SECOND = 2
} wf_gradients_of;
WF_API wf_status wf_fst_batch_gradients(const wf_fst_batch *batch, size_t i, wf_gradients_of of,
                                        double **out, uint64_t *out_count, wf_error *err);
/* The arrays of a batch on a GPU, in device memory. The fsts are concatenated; offsets and next
 * states count through all of them. Valid for the lifetime of the batch. */
typedef struct wf_fst_batch_view {
  uint64_t num_fsts, num_states, num_arcs;
  const uint64_t *state_base, *arc_base; /* [num_fsts + 1], in host memory */
  const uint64_t *arc_off;               /* [num_states + 1] */
  const wf_arc *arcs;
  const float *final_cost;
  const wf_arc_origin *origins;     /* NULL: none */
  const double *gradients;          /* [num_arcs] per arc; NULL: none */
  const double *input_gradients[2]; /* per arc of the inputs, pair by pair; NULL: none */
} wf_fst_batch_view;
/* Errors: a batch on the CPU (WF_ERR_UNSUPPORTED); use wf_fst_batch_to_fst. */
WF_API wf_status wf_fst_batch_get_view(const wf_fst_batch *batch, wf_fst_batch_view *view,
                                       wf_error *err);

/* Replaces labels as given by pairs {old, new}. Other labels stay. `inum` and `onum` are the
 * numbers of pairs. A side with pairs loses its symbol table; the blank of a token graph is an input
 * label, and gets its new number. Errors: an old label listed twice, a negative label. */
WF_API wf_status wf_relabel(const wf_fst *fst, const int32_t (*ipairs)[2], size_t inum,
                            const int32_t (*opairs)[2], size_t onum, wf_fst **out, wf_error *err);
/* Disambiguation symbols. wf_add_self_loops adds a self-loop ilabels[i]:olabels[i] of cost 0 after
 * the arcs of each state that is final or has an arc with a non-epsilon output, as Kaldi's
 * fstaddselfloops does. wf_remove_disambig replaces the listed input labels by epsilon. */
WF_API wf_status wf_add_self_loops(const wf_fst *fst, const int32_t *ilabels,
                                   const int32_t *olabels, size_t count, wf_fst **out,
                                   wf_error *err);
WF_API wf_status wf_remove_disambig(const wf_fst *fst, const int32_t *ilabels, size_t count,
                                    wf_fst **out, wf_error *err);

/* Compares two fsts state by state and arc by arc, with weights within delta. On a difference
 * *out_equal is false and the call succeeds; `err` then has code WF_OK and a message about the
 * first difference. Symbol tables that do not agree are a difference. */
WF_API wf_status wf_equal(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                          wf_error *err);
/* Tests whether two deterministic epsilon-free acceptors accept the same strings with the same
 * costs, within delta (Hopcroft & Karp 1971, with costs). Weights need not be pushed. `err` is as
 * in wf_equal, with a string that leads to the difference. Errors: an input that is not a
 * deterministic epsilon-free acceptor (WF_ERR_ARGUMENT). */
WF_API wf_status wf_equivalent(const wf_fst *a, const wf_fst *b, float delta, bool *out_equal,
                               wf_error *err);
/* Tests equivalence on random paths, as OpenFst's fstrandequivalent. Draws npath random paths from
 * each fst. For the input and output string of each path, compares the semiring sums over all paths
 * with these strings in both fsts. Equal sums do not prove equivalence. A difference (in `err`, as
 * in wf_equal) disproves it. Errors: the sum over an epsilon cycle does not converge (log:
 * WF_ERR_LIMIT; tropical: WF_ERR_NEGATIVE_CYCLE). */
#define WF_RANDEQUIVALENT_OPTIONS(X)                                              \
  X(F32, delta, 0.0009765625, 0, 1e9, "nats", "allowed difference of costs")      \
  X(I32, npath, 10, 1, 2147483647, "paths", "random paths to draw from each fst") \
  X(I32, max_length, 1000, 1, 2147483647, "arcs", "longest path to draw")         \
  X(I64, seed, 1, 0, 9007199254740992.0, "", "seed of the random paths")          \
  WF_OPTION_CHECK_SYMBOLS(X)
WF_DECLARE_OPTIONS(randequivalent, WF_RANDEQUIVALENT_OPTIONS)
WF_API wf_status wf_randequivalent(const wf_fst *a, const wf_fst *b,
                                   const wf_randequivalent_options *options, bool *out_equal,
                                   wf_error *err);

/* Draws npath random successful paths. They start in state 0, without weights unless
 * `keep_weights`. Each step is drawn from the arcs of the state, and from stopping if the state is
 * final: uniformly, or by exp(-cost). A step is never drawn if no final state can be reached within
 * max_length arcs after it, so every path is complete. An fst without paths gives the empty fst. If
 * every path is longer than max_length, the call fails (WF_ERR_ARGUMENT). The same seed gives the
 * same paths on every machine. */
enum { WF_SELECT_UNIFORM, WF_SELECT_LOG_PROB };
#define WF_RANDGEN_OPTIONS(X)                                                                     \
  X(I32, npath, 1, 1, 2147483647, "paths", "number of paths")                                     \
  X(I32, max_length, 100000, 0, 2147483647, "arcs", "longest path to draw")                       \
  X(ENUM, select, 0, 0, 0, "uniform|log_prob", "uniform over arcs, or by probability exp(-cost)") \
  X(BOOL, keep_weights, 0, 0, 1, "", "keep the costs of the paths")                               \
  X(I64, seed, 1, 0, 9007199254740992.0, "", "seed of the random choices")
WF_DECLARE_OPTIONS(randgen, WF_RANDGEN_OPTIONS)
WF_API wf_status wf_randgen(const wf_fst *fst, const wf_randgen_options *options, wf_fst **out,
                            wf_error *err);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_composer_get_view) wf_status
    wf_composer_view(const wf_composer *composer, size_t i, wf_fst_view *view,
                     const wf_arc_origin **origins, wf_error *err) {
  return wf_composer_get_view(composer, i, view, origins, err);
}
static inline WF__OLD(wf_composer_to_fst) wf_status
    wf_composer_get(const wf_composer *composer, size_t i, wf_fst **out,
                    wf_arc_origin **out_origins, wf_error *err) {
  return wf_composer_to_fst(composer, i, out, out_origins, err);
}
static inline WF__OLD(wf_composer_to_batch) wf_status
    wf_composer_batch(const wf_composer *composer, wf_fst_batch **out, wf_error *err) {
  return wf_composer_to_batch(composer, out, err);
}
static inline WF__OLD(wf_fst_batch_to_fst) wf_status
    wf_fst_batch_get(const wf_fst_batch *batch, size_t i, wf_fst **out, wf_error *err) {
  return wf_fst_batch_to_fst(batch, i, out, err);
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_FST_H */
