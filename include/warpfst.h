/* warpfst.h - weighted finite-state transducers and speech decoding, on CPUs and NVIDIA GPUs.
 *
 * This header is the whole public C ABI and is meant to be read from top to bottom:
 *
 *    1 status, errors, log, progress      6 n-gram language models
 *    2 option tables                      7 lexicons, topologies, decoding graphs
 *    3 symbol tables                      8 the decoder
 *    4 transducers, builder, files        9 acoustic scores, results, word error rate
 *    5 operations on transducers         10 lattices
 *                                        11 streams, 12 callbacks into Python
 *
 * Rules that hold everywhere
 *  - Costs are negative natural logarithms of probabilities, float32. Zero of a semiring is
 *    +infinity, One is 0.
 *  - Label 0 is epsilon. Labels and states are below 2^31.
 *  - Functions that can fail return a wf_status: WF_OK (0) or a negative error. The optional last
 *    argument `wf_error *err` (may be NULL) then holds the code and a message that names the file
 *    and place. On failure the `out` arguments are left NULL/zero and own nothing.
 *  - What a function hands out through `T **out` belongs to the caller and goes back through the
 *    matching free, which accepts NULL. `const T *` results belong to the object they were asked
 *    of.
 *  - Objects keep what they are made of alive (a stream its decoder, a decoder its graph and
 *    scorer): free them in any order.
 *  - Immutable objects (wf_fst, wf_lm, wf_wlm, wf_graph, wf_scorer) may be used by any number of
 *    threads at once. Mutable ones (wf_builder, wf_symbols while being filled, wf_decoder) by one
 *    thread at a time; different objects never interfere.
 *  - Paths: "-" is standard input or output. Anything gzipped is inflated on reading. Output is
 *    written under a temporary name and renamed when complete.
 *  - Structures whose first field is `struct_size` are set up by their _init function, which is
 *    compiled into the caller. Fields may be added at their end: a program and a library of
 *    different versions then agree on the fields that both know. Structures that end in `reserved`
 *    keep their size; set it to zero. Other structures that the caller makes never change.
 */
#ifndef WARPFST_H
#define WARPFST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WF_VERSION_MAJOR 0
#define WF_VERSION_MINOR 1
#define WF_VERSION_PATCH 0

#if defined(_WIN32)
#define WF_API __declspec(dllexport)
#else
#define WF_API __attribute__((visibility("default")))
#endif

/* =========================================================================================
 * 1  Status, errors, log, progress
 * ========================================================================================= */

/* Name, value, text. Values never change once released. */
#define WF_STATUS_LIST(X)                             \
  X(OK, 0, "ok")                                      \
  X(ERR_ARGUMENT, -1, "invalid argument")             \
  X(ERR_MEMORY, -2, "out of memory")                  \
  X(ERR_IO, -3, "input/output error")                 \
  X(ERR_FORMAT, -4, "malformed input")                \
  X(ERR_LIMIT, -5, "limit exceeded")                  \
  X(ERR_UNSUPPORTED, -6, "not supported")             \
  X(ERR_NOT_DETERMINIZABLE, -7, "not determinizable") \
  X(ERR_NEGATIVE_CYCLE, -8, "cycle of negative cost") \
  X(ERR_STATE, -9, "called in the wrong state")       \
  X(ERR_DEVICE, -10, "device error")                  \
  X(ERR_CANCELLED, -11, "cancelled")

typedef enum wf_status {
#define WF_X(name, value, text) WF_##name = value,
  WF_STATUS_LIST(WF_X)
#undef WF_X
} wf_status;

/* Filled on failure. `message` is UTF-8, NUL-terminated, without a newline. Owned by the caller;
 * nothing to free. */
typedef struct wf_error {
  wf_status code;
  char message[1020];
} wf_error;

/* "1.2.3". Static storage. */
WF_API const char *wf_version(void);
/* Text of a status ("malformed input"); "unknown status" for a number outside the list. Static
 * storage. */
WF_API const char *wf_status_text(wf_status status);

typedef enum wf_log_level { WF_LOG_DEBUG = 0, WF_LOG_INFO = 1, WF_LOG_WARNING = 2 } wf_log_level;
typedef void (*wf_log_fn)(void *user, wf_log_level level, const char *message);
/* Sets the one log callback of the process (NULL: silence, the default). Call it before other
 * threads use the library. `fn` may be called by several of the library's threads at once. */
WF_API void wf_set_log(wf_log_fn fn, void *user);

/* Called now and then during long work, from the thread that called the library. `fraction` is in
 * [0, 1], or negative when unknown; `stage` is a short phrase. Return false to cancel: the call
 * then fails with WF_ERR_CANCELLED. */
typedef bool (*wf_progress_fn)(void *user, const char *stage, double fraction);
typedef struct wf_progress {
  wf_progress_fn fn; /* NULL: none */
  void *user;
} wf_progress;

/* Called every few hundredths of a second during every long call that this thread makes, from this
 * thread. Return false to cancel, and go on returning it until the call has failed with
 * WF_ERR_CANCELLED: within 0.1 s but for single launches on a GPU. Nothing is left half-written,
 * and all objects stay usable; a stream whose chunk was not finished has failed, until it is reset.
 * Each thread has its own function; NULL, the default: none. */
typedef bool (*wf_interrupt_fn)(void *user);
WF_API void wf_set_interrupt(wf_interrupt_fn fn, void *user);

/* Frees memory that the library handed out as a plain array or string. NULL is fine. */
WF_API void wf_free(void *memory);

/* Declares wf_NAME_init for a structure whose first field is its size: everything zero, and the
 * size that the caller was compiled with. */
#define WF_DECLARE_INIT(name)                                 \
  static inline void wf_##name##_init(wf_##name *structure) { \
    memset(structure, 0, sizeof *structure);                  \
    structure->struct_size = sizeof *structure;               \
  }

/* =========================================================================================
 * 2  Option tables
 *
 * Every options structure is described by one X-macro row per field:
 *     X(type, field, default, min, max, unit, help)
 * with type one of F32, I32, I64, BOOL, ENUM, STR. For ENUM `unit` lists the names in the order of
 * their values, separated by '|', and min/max are ignored. For STR the value is borrowed (not
 * copied) and the default is NULL. The same rows give the structure, the defaults, the checks, the
 * flags of the command line and the option reference.
 * ========================================================================================= */

typedef enum wf_option_type {
  WF_OPTION_F32,
  WF_OPTION_I32,
  WF_OPTION_I64,
  WF_OPTION_BOOL,
  WF_OPTION_ENUM,
  WF_OPTION_STR
} wf_option_type;

typedef struct wf_option {
  const char *name;
  wf_option_type type;
  size_t offset; /* of the field in the structure */
  double def, min, max;
  const char *unit; /* "nats", "states"; choices for ENUM; "" if none */
  const char *help;
} wf_option;

typedef struct wf_option_table {
  const char *name; /* "decoder", "compose" */
  size_t struct_size;
  const wf_option *rows;
  size_t num_rows;
} wf_option_table;

/* i-th table of the library; NULL past the last. */
WF_API const wf_option_table *wf_option_table_at(size_t i);
/* Table by name; NULL if there is none. */
WF_API const wf_option_table *wf_option_table_find(const char *name);
/* Fills `config`, a structure of `size` bytes, with the defaults: the fields that lie within it and
 * that this library knows. The rest is zero. `size` is what the caller was compiled with, or
 * table->struct_size. */
WF_API void wf_config_init(const wf_option_table *table, void *config, size_t size);
/* Parses `value` into the field `name` ('-' and '_' are the same in names). BOOL takes
 * true/false/1/0/yes/no. A STR field keeps the pointer. Errors: unknown name, malformed value,
 * value out of range, a field beyond the end of `config`. */
WF_API wf_status wf_config_set(const wf_option_table *table, void *config, const char *name,
                               const char *value, wf_error *err);
/* Checks struct_size and every range, as each call that takes options does first. A field of a
 * newer program that this library does not know must be zero (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_config_check(const wf_option_table *table, const void *config, wf_error *err);

#define WF_FIELD_F32 float
#define WF_FIELD_I32 int32_t
#define WF_FIELD_I64 int64_t
#define WF_FIELD_BOOL bool
#define WF_FIELD_ENUM int32_t
#define WF_FIELD_STR const char *
#define WF_FIELD(type, name, def, min, max, unit, help) WF_FIELD_##type name;
/* Declares `wf_NAME_options` and `wf_NAME_options_init`. NULL options mean the defaults in every
 * call. */
#define WF_DECLARE_OPTIONS(name, LIST)                                        \
  typedef struct wf_##name##_options {                                        \
    size_t struct_size;                                                       \
    LIST(WF_FIELD)                                                            \
  } wf_##name##_options;                                                      \
  static inline void wf_##name##_options_init(wf_##name##_options *options) { \
    wf_config_init(wf_option_table_find(#name), options, sizeof *options);    \
  }

/* =========================================================================================
 * 3  Symbol tables: words or tokens <-> integer labels
 * ========================================================================================= */

typedef struct wf_symbols wf_symbols; /* reference counted */

WF_API wf_status wf_symbols_create(const char *name, wf_symbols **out, wf_error *err);
/* Reads `symbol id` lines (any blanks between; UTF-8). Errors: line without an id, id negative or
 * above 2^31-1, symbol or id given twice with different partners. `name` of the table is the path.
 */
WF_API wf_status wf_symbols_read(const char *path, wf_symbols **out, wf_error *err);
/* Errors: an empty symbol, which tables inside OpenFst's files may hold (WF_ERR_ARGUMENT). */
WF_API wf_status wf_symbols_write(const wf_symbols *symbols, const char *path, wf_error *err);
/* Adds `text` with the given key, or with the next free key if key < 0. Adding the same pair again
 * is fine. `*out_key` (may be NULL) receives the key. Errors: an empty `text`. */
WF_API wf_status wf_symbols_add(wf_symbols *symbols, const char *text, int64_t key,
                                int64_t *out_key, wf_error *err);
/* Key of a symbol, or -1. */
WF_API int64_t wf_symbols_find(const wf_symbols *symbols, const char *text);
/* As wf_symbols_find for `size` bytes that need no NUL behind them. */
WF_API int64_t wf_symbols_find_bytes(const wf_symbols *symbols, const char *text, size_t size);
/* Symbol of a key, or NULL. Lives as long as the table. */
WF_API const char *wf_symbols_text(const wf_symbols *symbols, int64_t key);
WF_API size_t wf_symbols_count(const wf_symbols *symbols);
/* i-th pair in order of adding, 0 <= i < count. */
WF_API const char *wf_symbols_at(const wf_symbols *symbols, size_t i, int64_t *key);
/* One more than the largest key; 0 for an empty table. */
WF_API int64_t wf_symbols_next_key(const wf_symbols *symbols);
WF_API const char *wf_symbols_name(const wf_symbols *symbols);
/* Shares the table: each ref needs its own free. Thread-safe. */
WF_API wf_symbols *wf_symbols_ref(const wf_symbols *symbols);
WF_API void wf_symbols_free(wf_symbols *symbols);

/* =========================================================================================
 * 4  Transducers, builder, files
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

typedef struct wf_fst wf_fst; /* reference counted, immutable */

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
/* Symbol tables of the input and output labels, or NULL. */
WF_API const wf_symbols *wf_fst_isymbols(const wf_fst *fst);
WF_API const wf_symbols *wf_fst_osymbols(const wf_fst *fst);
/* A new fst over the same arrays with other symbol tables (NULL: none). Cheap. */
WF_API wf_status wf_fst_with_symbols(const wf_fst *fst, const wf_symbols *isymbols,
                                     const wf_symbols *osymbols, wf_fst **out, wf_error *err);
/* A new fst over the same arrays in another semiring (the numbers stay as they are). Cheap. */
WF_API wf_status wf_fst_with_semiring(const wf_fst *fst, wf_semiring semiring, wf_fst **out,
                                      wf_error *err);
WF_API wf_fst *wf_fst_ref(const wf_fst *fst);
WF_API void wf_fst_free(wf_fst *fst);

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
WF_API wf_status wf_fst_read(const char *path, wf_fst **out, wf_error *err);
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
  X(BOOL, acceptor, 0, 0, 1, "", "lines hold one label, used on both sides")     \
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
 * 5  Operations on transducers
 *
 * Each takes immutable inputs and makes a new fst. Symbol tables are carried over where they still
 * apply. Results hold only states reachable from the start where the operation says "trimmed".
 * Semirings of two inputs must be the same.
 * ========================================================================================= */

/* The operations with this option work in threads, on fsts large enough for that to pay. */
#define WF_OPTION_NUM_THREADS(X)             \
  X(I32, num_threads, 0, 0, 4096, "threads", \
    "threads to work with; 0: one per processor, 16 at most. The result is the same")

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
    "refuse to grow beyond this, before trimming; 0: 2^31 - 1")                                 \
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
/* wf_compose, and the origin of each arc of the result (an array of num_arcs for wf_free): what
 * carries gradients back to the inputs. Not with phi_label (WF_ERR_UNSUPPORTED), where an arc may
 * come from several. Inputs of at most 2^32 - 2 arcs. */
WF_API wf_status wf_compose_with_origins(const wf_fst *a, const wf_fst *b,
                                         const wf_compose_options *options, wf_fst **out,
                                         wf_arc_origin **out_origins, wf_error *err);
/* `count` compositions in one call: out[i] of a[i] and b[i]. num_a is `count`, or 1 for the same
 * first fst everywhere; num_b likewise. Threads share the pairs. On failure every out[i] is NULL;
 * the message names the first pair that failed. */
WF_API wf_status wf_compose_batch(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                  size_t num_b, size_t count, const wf_compose_options *options,
                                  wf_fst **out, wf_error *err);

/* Compositions that stay on a GPU: the inputs are uploaded and made ready once, then composed any
 * number of times; results stay in device memory until they are asked for. One thread at a time.
 * `options` as for wf_compose, with a GPU as device and order=canonical; phi_label is not
 * supported. */
typedef struct wf_composer wf_composer;
/* Pairs as in wf_compose_batch. `with_origins`: those of the arcs are made too. Pairs whose table
 * of all states would be large and nearly empty are composed one by one, with a hash table. */
WF_API wf_status wf_composer_create(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                    size_t num_b, size_t count, const wf_compose_options *options,
                                    bool with_origins, wf_composer **out, wf_error *err);
/* Composes all pairs, on the device, in a few launches for all of them together. Errors:
 * wf_compose's, and WF_ERR_DEVICE. */
WF_API wf_status wf_composer_run(wf_composer *composer, wf_error *err);
/* Result of pair i after a run: pointers into device memory, valid until the next run. `*origins`
 * (the argument may be NULL): of its arcs, in device memory, or NULL if they were not asked for. */
WF_API wf_status wf_composer_view(const wf_composer *composer, size_t i, wf_fst_view *view,
                                  const wf_arc_origin **origins, wf_error *err);
/* A copy of it in host memory. `out_origins` may be NULL, else receives an array for wf_free. */
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
#define WF_DETERMINIZE_OPTIONS(X)                                                               \
  X(F32, delta, 0.0009765625, 0, 1, "nats", "residual weights closer than this are the same")   \
  X(BOOL, rmepsilon, 0, 0, 1, "",                                                               \
    "treat arcs with epsilon input as no input (epsilon closure) instead of as a label")        \
  X(BOOL, allow_nonfunctional, 0, 0, 1, "", "keep the best output where one input has several") \
  X(I32, subsequential_label, 0, 0, 2147483647, "label",                                        \
    "input label of arcs that emit final output strings; 0: epsilon")                           \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                \
    "give up beyond this, with a witness; 0: 64 times the input's, at least 1000000")           \
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
#define WF_SHORTEST_PATH_OPTIONS(X)                        \
  X(I32, nshortest, 1, 1, 2147483647, "paths", "how many") \
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
/* wf_compose_batch on options->device (on a GPU: order=canonical), with the origins of arcs, which
 * carry gradients back to the inputs. */
WF_API wf_status wf_fst_batch_compose(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                      size_t num_b, size_t count, const wf_compose_options *options,
                                      wf_fst_batch **out, wf_error *err);
/* What a composer has made in its last run, copied within the device. Errors: one of several pairs
 * was composed with a hash table (WF_ERR_UNSUPPORTED). */
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
  X(I64, seed, 1, 0, 9007199254740992.0, "", "of the random paths")
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
  X(I32, npath, 1, 1, 2147483647, "paths", "how many to draw")                                  \
  X(I32, max_length, 100000, 0, 2147483647, "arcs", "longest path to draw")                     \
  X(ENUM, select, 0, 0, 0, "uniform|log_prob", "every arc alike, or by probability exp(-cost)") \
  X(BOOL, keep_weights, 0, 0, 1, "", "give the paths their costs")                              \
  X(I64, seed, 1, 0, 9007199254740992.0, "", "of the random choices")
WF_DECLARE_OPTIONS(randgen, WF_RANDGEN_OPTIONS)
WF_API wf_status wf_randgen(const wf_fst *fst, const wf_randgen_options *options, wf_fst **out,
                            wf_error *err);

/* =========================================================================================
 * 6  n-gram language models
 * ========================================================================================= */

/* A back-off n-gram model as a deterministic automaton. A state is a history (the last words) that
 * is the context of some n-gram or carries a back-off weight; state 0 is the empty history. p(w |
 * h) is the explicit n-gram's if there is one, else the back-off weight of h times p(w | h without
 * its oldest word): back-off as failure, taken only when it must be. Words are labels of a symbol
 * table. Rules for odd files: docs/how-to/lm.md. */
typedef struct wf_lm wf_lm; /* reference counted, immutable */

#define WF_LM_MAX_ORDER 16

#define WF_ARPA_OPTIONS(X)                                                                        \
  X(STR, bos_symbol, 0, 0, 0, "SYMBOL", "word that starts a sentence (default: <s>)")             \
  X(STR, eos_symbol, 0, 0, 0, "SYMBOL", "word that ends a sentence (default: </s>)")              \
  X(STR, unk_symbol, 0, 0, 0, "SYMBOL", "word for unknown words (default: <unk>, or else <UNK>)") \
  X(ENUM, oov, 0, 0, 0, "unk|skip|error",                                                         \
    "words of the LM that the given table lacks: unk, count them as the unknown word if the "     \
    "table has it, else skip")
WF_DECLARE_OPTIONS(arpa, WF_ARPA_OPTIONS)

/* What the reader met. Set up with wf_arpa_stats_init. */
typedef struct wf_arpa_stats {
  size_t struct_size;
  int32_t order;
  uint64_t num_lines[WF_LM_MAX_ORDER + 1]; /* n-grams in the file, by order from 1 */
  uint64_t
      num_refused; /* n-grams with <s> after the first place or </s> before the last: left out */
  uint64_t num_positive;    /* probabilities just above 1 (up to 10^0.001): set to 1 */
  uint64_t num_oov_words;   /* words that the given table lacks */
  uint64_t num_oov_skipped; /* n-grams left out for such a word */
  uint64_t num_oov_merged;  /* n-grams added to the probability of the unknown word */
  uint64_t
      num_created; /* n-grams created, at their backed-off probability, as contexts of others */
} wf_arpa_stats;
WF_DECLARE_INIT(arpa_stats)

/* Reads an ARPA file. Labels come from `words`; NULL makes a table of the LM's words in the order
 * of the file, <eps> = 0. <s>, </s> and <unk> need not be in a given table. `stats` may be NULL.
 * What is odd but usable is counted there and logged as a warning. Errors name path and line:
 * WF_ERR_FORMAT for a malformed file (wrong number of fields, NaN, counts that differ from the
 * header's, a word without a unigram, an n-gram given twice, no <s>, no \end\), WF_ERR_LIMIT above
 * WF_LM_MAX_ORDER. */
WF_API wf_status wf_lm_read_arpa(const char *path, const wf_symbols *words,
                                 const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                                 const wf_progress *progress, wf_error *err);
/* Reads a model of any format, recognised by its content: an ARPA file as above, CMU Sphinx's trie
 * language model (`en-us.lm.bin`), or KenLM's binary trie (`build_binary trie`), by the same rules.
 * Errors: as above; in a binary file they name the byte or the n-gram. */
WF_API wf_status wf_lm_read(const char *path, const wf_symbols *words,
                            const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                            const wf_progress *progress, wf_error *err);
WF_API wf_lm *wf_lm_ref(const wf_lm *lm);
WF_API void wf_lm_free(wf_lm *lm);

/* Set up with wf_lm_info_init. */
typedef struct wf_lm_info {
  size_t struct_size;
  int32_t order;
  uint64_t num_ngrams[WF_LM_MAX_ORDER + 1]; /* that the model holds, by order from 1 */
  uint64_t num_words;                       /* words with a probability; not <s>, </s>, <unk> */
  uint64_t num_states, num_arcs; /* arcs: explicit n-grams, those that end in </s> left out */
  uint64_t num_bytes;            /* memory of the automaton, without the word table */
  int32_t bos, eos, unk;         /* labels in the word table; -1: not there */
  bool has_unk;                  /* does the model give unknown words a probability? */
} wf_lm_info;
WF_DECLARE_INIT(lm_info)
WF_API wf_status wf_lm_get_info(const wf_lm *lm, wf_lm_info *info, wf_error *err);
/* The table given to the reader, or made by it. */
WF_API const wf_symbols *wf_lm_words(const wf_lm *lm);
/* Has the model an n-gram of its own for this word? False for <s>, </s>, <unk> and labels outside
 * the table: unknown words. */
WF_API bool wf_lm_knows(const wf_lm *lm, int32_t word);

/* Queries: exact (failure) semantics, costs in nats, summed in float32 in the order of the back-off
 * hops. Any thread. State after <s>. */
WF_API uint32_t wf_lm_start(const wf_lm *lm);
/* Cost of `word` after the history `state`, and the state behind it. An unknown word has the cost
 * of <unk>, or +infinity (and the empty history behind it) if the model has none. `*order` (may be
 * NULL): words in the n-gram that gave the probability; 0 if there is none. */
WF_API float wf_lm_step(const wf_lm *lm, uint32_t state, int32_t word, uint32_t *next,
                        int32_t *order);
/* Cost of </s> after the history `state`; +infinity if the model has no </s>. */
WF_API float wf_lm_final(const wf_lm *lm, uint32_t state, int32_t *order);

/* Writes an ARPA file: n-grams in the order of their labels, log10 values to 7 decimals.
 * Probability 0 is -99, as is that of <s>. */
WF_API wf_status wf_lm_write_arpa(const wf_lm *lm, const char *path, wf_error *err);

/* A smaller model. First the words: those that `vocabulary` lacks (NULL: none) and all but the
 * max_words most likely go, with every n-gram that holds them; <s>, </s> and <unk> stay. Then
 * n-grams, by what the model loses without each: with criterion=entropy the relative rise of its
 * perplexity, as in Stolcke, "Entropy-based pruning of backoff language models" (1998), and SRILM's
 * `ngram -prune`, the probability of a history being the model's own; with criterion=difference p(h
 * w) (ln p(w|h) - ln of what back-off gives), as in Seymore and Rosenfeld, "Scalable backoff
 * language models" (1996). n-grams below `threshold` go, and of the others the least valuable until
 * the limits hold; contexts of n-grams that stay do stay, and n-grams without their context go. At
 * last the unigrams are scaled and the back-off weights computed anew, so that the probabilities
 * after each history sum to
 * 1. So every n-gram of the result is one of `lm`, under the same labels of the same word table,
 *    and, above order 1, has the probability it has
 * there (but see num_scaled). The options' defaults remove nothing. The result does not depend on
 * num_threads. */
#define WF_LM_PRUNE_OPTIONS(X)                                                                 \
  X(F32, threshold, 0, 0, 1e30, "", "leave out n-grams worth less than this, such as 1e-8")    \
  X(ENUM, criterion, 0, 0, 0, "entropy|difference",                                            \
    "worth of an n-gram: rise of the perplexity without it, or weighted difference")           \
  X(STR, max_ngrams, 0, 0, 0, "N2,N3,..",                                                      \
    "keep at most N2 bigrams, N3 trigrams and so on (empty or left out: no limit)")            \
  X(I64, max_total, 0, 0, 9e15, "n-grams",                                                     \
    "keep at most so many n-grams of all orders together, unigrams included; 0: no limit")     \
  X(I64, max_words, 0, 0, 9e15, "words", "keep only the most likely words; 0: all")            \
  X(I32, min_order, 2, 2, 16, "words", "n-grams of fewer words stay, whatever they are worth") \
  X(I32, num_threads, 0, 0, 1024, "threads", "0: one per processor")
WF_DECLARE_OPTIONS(lm_prune, WF_LM_PRUNE_OPTIONS)

/* What pruning did. Set up with wf_lm_prune_stats_init. */
typedef struct wf_lm_prune_stats {
  size_t struct_size;
  double word_mass; /* probability of the words that stayed, by the unigrams of the large model */
  float
      least_worth[WF_LM_MAX_ORDER + 1]; /* of the n-grams kept, by order from 2, each counted at the
                                           worth of its best continuation; +infinity: none kept */
  uint64_t num_scaled; /* histories whose explicit probabilities were scaled: back-off weights could
                          not make them sum to 1 */
} wf_lm_prune_stats;
WF_DECLARE_INIT(lm_prune_stats)
/* `stats` may be NULL. Errors: malformed max_ngrams, no word left (WF_ERR_ARGUMENT). */
WF_API wf_status wf_lm_prune(const wf_lm *lm, const wf_symbols *vocabulary,
                             const wf_lm_prune_options *options, wf_lm **out,
                             wf_lm_prune_stats *stats, const wf_progress *progress, wf_error *err);

/* The model as an acceptor over its word table, arcs sorted by label. The start is the history <s>,
 * </s> is a final cost. backoff=epsilon is what Kaldi's arpa2fst makes: a back-off arc is an arc
 * like any other (input backoff_label, output epsilon), so a path may back off although the word
 * has an explicit n-gram, and cost less than wf_lm_step says. Few sentences are affected (about 1
 * in 20 in a large interpolated 4-gram, by hundredths of a nat on average), but figures from the
 * two kinds differ. backoff=failure gives the exact model when composed with wf_compose's phi_label
 * = backoff_label; every final cost is then resolved through back-off. Arcs of <unk> exist if the
 * table has it. States that cannot be reached are left out; so are arcs of cost +infinity, unless
 * they are there to keep a word from backing off (failure). Errors: backoff_label is the label of a
 * word, or 0 with failure. */
#define WF_LM_FST_OPTIONS(X)                                                                  \
  X(I32, backoff_label, 0, 0, 2147483647, "label",                                            \
    "input label of the back-off arcs, such as #0; 0: epsilon")                               \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                \
    "how the graph will be used: back-off as a free choice, or only where a word is missing") \
  X(BOOL, remove_useless, 1, 0, 1, "",                                                        \
    "put the back-off cost of states that can only back off on the arcs that enter them")     \
  X(BOOL, drop_unk, 0, 0, 1, "", "leave out the arcs of <unk>")
WF_DECLARE_OPTIONS(lm_fst, WF_LM_FST_OPTIONS)
WF_API wf_status wf_lm_to_fst(const wf_lm *lm, const wf_lm_fst_options *options, wf_fst **out,
                              wf_error *err);

/* A large n-gram model for scoring on the fly: a mapped file, made once by wf_wlm_build from ARPA
 * of any size, open at once. With `subtract` it holds the difference scale * large - small, exactly
 * and again as a back-off model (every n-gram of the small model is in it): a graph built with the
 * small model and scored with the difference costs what a graph built with the large model would.
 * States, costs, unknown words: as for wf_lm. docs/how-to/lm.md. */
typedef struct wf_wlm wf_wlm; /* reference counted, immutable */
#define WF_WLM_OPTIONS(X)                                                                        \
  X(STR, subtract, 0, 0, 0, "FILE",                                                              \
    "small model that the graph was built with (as in wf_lm_read): store large - small")         \
  X(F32, lm_scale, 1, 1e-6, 1e6, "", "factor on the large model's costs")                        \
  X(ENUM, pack, 0, 0, 0, "none|exact|codebook",                                                  \
    "arcs of 12 bytes; of as many bits as they need; the same with costs rounded to a codebook") \
  X(I32, cost_bits, 8, 2, 16, "bits", "pack=codebook: of each cost")                             \
  X(I64, memory, 1073741824, 1048576, 9e15, "bytes",                                             \
    "memory to sort in, besides the words and the small model; beyond it, temporary files")      \
  X(STR, temporary, 0, 0, 0, "FOLDER", "of temporary files (default: that of the output)")
WF_DECLARE_OPTIONS(wlm, WF_WLM_OPTIONS)
/* What building met and made. Set up with wf_wlm_stats_init. */
typedef struct wf_wlm_stats {
  size_t struct_size;
  uint64_t
      num_created;    /* n-grams created, at their backed-off probability, as contexts of others */
  uint64_t num_added; /* n-grams of the small model that the large one lacked: added likewise */
  uint64_t num_words_added; /* words of the small model that the large one lacked: cost its unknown
                               word's */
  uint64_t num_outside; /* n-grams left out for a word that the small model, so the graph, lacks */
  double loss_mean, loss_worst; /* pack=codebook: |cost as stored - cost| over all n-grams, nats */
} wf_wlm_stats;
WF_DECLARE_INIT(wlm_stats)
/* `arpa`: ARPA, plain or gzipped, read as a stream, or a binary model as in wf_lm_read. `stats` and
 * `reading` (what the reader met) may be NULL. Errors as for wf_lm_read; WF_ERR_LIMIT beyond 2^32 -
 * 2 histories. */
WF_API wf_status wf_wlm_build(const char *arpa, const char *out, const wf_arpa_options *reader,
                              const wf_wlm_options *options, wf_wlm_stats *stats,
                              wf_arpa_stats *reading, const wf_progress *progress, wf_error *err);
/* Maps the file. A file that is truncated or damaged in its header is refused; the sums of all
 * sections are checked up to 256 MB, of larger files by wf_wlm_verify. Whatever is in the file,
 * asking it is safe. */
WF_API wf_status wf_wlm_open(const char *path, wf_wlm **out, wf_error *err);
WF_API wf_wlm *wf_wlm_ref(const wf_wlm *lm);
WF_API void wf_wlm_free(wf_wlm *lm);
/* Checks every sum, number and look-up table. */
WF_API wf_status wf_wlm_verify(const wf_wlm *lm, const wf_progress *progress, wf_error *err);
/* Set up with wf_wlm_info_init. */
typedef struct wf_wlm_info {
  size_t struct_size;
  int32_t order;
  uint64_t num_ngrams[WF_LM_MAX_ORDER + 1]; /* by order from 1 */
  uint64_t num_words, num_states, num_arcs; /* arcs: n-grams above order 1, </s> included */
  uint64_t file_bytes, index_bytes; /* index: all but the arcs and the words' texts, what a GPU
                                       keeps when the arcs are elsewhere */
  float scale;                      /* on the large model */
  bool difference, packed, has_unk;
  int32_t cost_bits;    /* 32: exact */
  uint64_t table_bytes; /* of wf_wlm_make_table; 0: there is none */
} wf_wlm_info;
WF_DECLARE_INIT(wlm_info)
WF_API wf_status wf_wlm_get_info(const wf_wlm *lm, wf_wlm_info *info, wf_error *err);
/* The model's own words; label = key. */
WF_API const wf_symbols *wf_wlm_words(const wf_wlm *lm);
WF_API bool wf_wlm_knows(const wf_wlm *lm, int32_t word);
WF_API uint32_t wf_wlm_start(const wf_wlm *lm);
/* As wf_lm_step and wf_lm_final; in a difference, costs may be negative. */
WF_API float wf_wlm_step(const wf_wlm *lm, uint32_t state, int32_t word, uint32_t *next,
                         int32_t *order);
WF_API float wf_wlm_final(const wf_wlm *lm, uint32_t state, int32_t *order);
/* Puts the arcs into memory once more, as a table that look-ups on the CPU are several times as
 * fast with: about 21 bytes an n-gram above order 1 and 8 a state; reads the whole file. Answers
 * stay what they are, bit for bit. Before any other thread has the model; a scorer made of it uses
 * the table, too. Errors: a file whose states share arcs (WF_ERR_FORMAT), memory. */
WF_API wf_status wf_wlm_make_table(wf_wlm *lm, const wf_progress *progress, wf_error *err);
/* `count` look-ups at once, to the bit what wf_wlm_step gives for each (states[i], words[i]): in a
 * model larger than the processor's caches several times as fast, since they wait for memory
 * together. */
WF_API void wf_wlm_step_many(const wf_wlm *lm, const uint32_t *states, const int32_t *words,
                             size_t count, float *costs, uint32_t *next);
/* The model as an acceptor over `words` (NULL: its own), found by their texts, for wf_compose with
 * phi_label = backoff_label: a graph composed with it, decoded without a scorer, gives what the
 * graph gives with wf_scorer_from_lm, but for words that the model lacks, which have no arcs here.
 * Every final cost is resolved through back-off. The composition can be far larger than both: each
 * state of the graph once for every history it is reached with. Errors: backoff_label not positive,
 * or a word's. */
WF_API wf_status wf_wlm_to_fst(const wf_wlm *lm, const wf_symbols *words, int32_t backoff_label,
                               wf_fst **out, wf_error *err);

/* =========================================================================================
 * 6b Recurrent language models
 *
 * What a model predicts: P(word | all words before it in the sentence), </s> last. Words are ids of
 * the model, from 0. docs/how-to/rnnlm.md tells the file formats and the rules in full.
 * ========================================================================================= */

typedef struct wf_rnnlm wf_rnnlm; /* reference counted, immutable, any thread */

#define WF_RNNLM_MAX_ORDER 32

/* Opens a model of one of two kinds.
 *   NAME + NAME.nnet   of the faster-rnnlm toolkit, versions 0 to 6: the vocabulary with counts
 *                      (`word count` lines, </s> first), and the network (mapped; if it is not
 *                      there, NAME.nnet.gz). All its layer types, hierarchical softmax and NCE,
 *                      maximum-entropy (MaxEnt) features, any arity.
 *   NAME.safetensors   LSTM or GRU language models of PyTorch with full softmax, with their words
 *                      in NAME.words (symbol table)
 * `unk_symbol` (NULL: "<unk>" in safetensors models, none in the others): the word that unknown
 * words count as. Errors: missing files, WF_ERR_FORMAT with file and place for anything malformed:
 * sizes that differ from the file's, NaN or infinite weights, a word given twice. */
WF_API wf_status wf_rnnlm_open(const char *path, const char *unk_symbol, wf_rnnlm **out,
                               wf_error *err);
WF_API wf_rnnlm *wf_rnnlm_ref(const wf_rnnlm *rnnlm);
WF_API void wf_rnnlm_free(wf_rnnlm *rnnlm);

typedef enum wf_rnnlm_output {
  WF_RNNLM_HIERARCHICAL = 0,
  WF_RNNLM_NCE = 1,
  WF_RNNLM_SOFTMAX = 2
} wf_rnnlm_output;

/* Set up with wf_rnnlm_info_init. */
typedef struct wf_rnnlm_info {
  size_t struct_size;
  char layer_type[64]; /* "sigmoid", "gru-full", "scrn40", "lstm" ... */
  wf_rnnlm_output output;
  int32_t hidden_size, embedding_size, num_layers;
  int32_t arity;        /* of the hierarchical softmax; 0: none */
  int32_t max_path;     /* longest path of its tree, in nodes */
  int32_t maxent_order; /* 0: no MaxEnt features */
  uint64_t maxent_cells;
  float nce_lnz;         /* with NCE, scores are unnormalised: log p = score - nce_lnz */
  bool reverse;          /* sentences are read from their end: wf_rnnlm_score only */
  uint64_t num_words;    /* </s> included */
  uint64_t num_weights;  /* MaxEnt cells left out */
  uint64_t num_bytes;    /* memory, mapped cells included */
  int32_t bos, eos, unk; /* word ids; unk -1: none */
  size_t state_bytes;    /* of one state */
} wf_rnnlm_info;
WF_DECLARE_INIT(rnnlm_info)
WF_API wf_status wf_rnnlm_get_info(const wf_rnnlm *rnnlm, wf_rnnlm_info *info, wf_error *err);
/* The words; keys are ids. */
WF_API const wf_symbols *wf_rnnlm_words(const wf_rnnlm *rnnlm);
/* Id of a word of a text: its own, else that of the unknown word, else -1. Toolkit models know
 * words by their first 99 bytes. */
WF_API int32_t wf_rnnlm_find(const wf_rnnlm *rnnlm, const char *word);

/* The same model with its weights in a GPU's memory, too: wf_rnnlm_score of it and scorers made of
 * it compute there, all else on the CPU. Costs are the CPU's but for the order of sums: within
 * 1e-4, and the same bits whatever else is computed with them. `device`: cuda or cuda:N; NULL or
 * cpu: the model as it was. Errors: no such GPU, too little memory there, a library without CUDA
 * (WF_ERR_DEVICE). */
WF_API wf_status wf_rnnlm_on_device(const wf_rnnlm *rnnlm, const char *device, wf_rnnlm **out,
                                    wf_error *err);

/* Scores whole sentences. Sentence s is words[first[s]] .. words[first[s + 1] - 1], without <s> and
 * </s>; costs[first[s] + s] .. receive -ln p of each word and then of </s>, in the order of reading
 * (reverse models: from the last word). `num_threads` 0: one per processor; a model on a GPU uses
 * the calling thread alone. The costs do not depend on it, nor on what else is in the call. Errors:
 * a word outside the vocabulary. */
WF_API wf_status wf_rnnlm_score(const wf_rnnlm *rnnlm, const int32_t *words, const uint64_t *first,
                                size_t num_sentences, int num_threads, float *costs, wf_error *err);

/* One word at a time. A state is info.state_bytes plain bytes, aligned to 4: the hidden vectors
 * behind the words so far and the last words. Copy it as you like. */
WF_API void wf_rnnlm_start(const wf_rnnlm *rnnlm, void *state);
/* For i < count: costs[i] (NULL: not wanted) = -ln p(words[i] | states[i]), and the i-th state of
 * `next` (NULL: not wanted; not `states` itself) is that behind the word. Results do not depend on
 * `count` or on what else is in the call. Errors: a word outside the vocabulary, a reverse model
 * (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_rnnlm_step(const wf_rnnlm *rnnlm, size_t count, const void *states,
                               const int32_t *words, float *costs, void *next, wf_error *err);

/* Training of the model of Mikolov et al., "RNNME" (2011), as the faster-rnnlm toolkit has it: one
 * recurrent layer, hierarchical softmax of arity 2, hashed MaxEnt features. Stochastic gradient
 * descent sentence by sentence in the order of the text, gradients carried back to the beginning of
 * the sentence (128 words at most). After an epoch that lowers the entropy of the validation text
 * by less than `min_gain` of it, the learning rates are halved before each further one; the second
 * such epoch is the last. */
#define WF_RNNLM_TRAIN_OPTIONS(X)                                                                 \
  X(ENUM, layer, 0, 0, 0, "sigmoid|gru", "type of the recurrent layer")                           \
  X(I32, hidden, 100, 1, 9999, "units", "size of the recurrent layer")                            \
  X(I64, maxent_cells, 0, 0, 1e12, "cells",                                                       \
    "hashed MaxEnt weights, 4 bytes each (rounded to a multiple of the words); 0: none")          \
  X(I32, maxent_order, 3, 1, 32, "words",                                                         \
    "longest MaxEnt features; 3: the last two words and the next")                                \
  X(F32, learning_rate, 0.1, 0, 100, "", "of the network")                                        \
  X(F32, maxent_learning_rate, 0.1, 0, 100, "", "of the MaxEnt weights")                          \
  X(F32, l2, 1e-6, 0, 0.1, "", "share of a weight of the network that goes at each of its steps") \
  X(F32, maxent_l2, 1e-6, 0, 0.1, "", "the same of the MaxEnt weights")                           \
  X(F32, clip, 1, 0, 1e9, "", "bound of each gradient")                                           \
  X(F32, min_gain, 0.001, 0, 1, "",                                                               \
    "epochs that gain less halve the learning rates, then end the training")                      \
  X(I32, max_epochs, 50, 1, 10000, "epochs", "end after so many in any case")                     \
  X(I64, seed, 1, 0, 9e15, "", "of the first weights")                                            \
  X(I32, num_threads, 1, 0, 1024, "threads",                                                      \
    "0: one per processor. With 1 the model is the same each time; with more it depends on "      \
    "timing")
WF_DECLARE_OPTIONS(rnnlm_train, WF_RNNLM_TRAIN_OPTIONS)

typedef struct wf_rnnlm_epoch {
  int32_t epoch; /* from 1 */
  float learning_rate;
  double train_perplexity; /* under the weights as they were met */
  double valid_perplexity;
  double seconds;      /* of training, validation left out */
  uint64_t num_tokens; /* trained on, </s> included */
  uint64_t num_oov;    /* validation sentences left out for unknown words */
} wf_rnnlm_epoch;
/* Called after each epoch from the calling thread. */
typedef void (*wf_rnnlm_epoch_fn)(void *user, const wf_rnnlm_epoch *epoch);

/* The words are those of the training text (a sentence a line, cut at blanks, words at 99 bytes).
 * `on_epoch` may be NULL. Errors: a text without words, `</s>` within a line, no validation
 * sentence without unknown words, maxent_cells not above the number of words. */
WF_API wf_status wf_rnnlm_train(const char *train_path, const char *valid_path,
                                const wf_rnnlm_train_options *options, wf_rnnlm_epoch_fn on_epoch,
                                void *user, wf_rnnlm **out, const wf_progress *progress,
                                wf_error *err);
/* Writes PATH and PATH.nnet in the toolkit's format, version 0 where it suffices, else 6. Errors: a
 * model of safetensors (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_rnnlm_write(const wf_rnnlm *rnnlm, const char *path, wf_error *err);

/* =========================================================================================
 * 7  Lexicons, topologies, decoding graphs
 *
 * Labels. A token with id i (column i of the acoustic scores) has label i + 1 on the input side of
 * L and on both sides of T, since label 0 is epsilon. A token table that has "<eps>" with id 0
 * (Kaldi's, k2's habit) holds labels already: id and label are the same there, and its "#0", "#1",
 * ... are passed over. With N tokens (ids without gaps), labels N + 1, N + 2, ... are the
 * disambiguation symbols #0, #1, ... : #0 marks back-off in the grammar, #1 and so on end
 * homophones and words that begin other words.
 * ========================================================================================= */

/* How often something odd was met, and the first names of it, in the order they were met. Owned by
 * the structure it stands in. */
#define WF_TALLY_NAMES 10
typedef struct wf_tally {
  uint64_t count;
  char *names[WF_TALLY_NAMES]; /* the first ten; NULL beyond them */
} wf_tally;

/* The label table of the tokens: <eps> 0, the tokens, then #0 .. #(num_disambig - 1).
 * `*out_num_tokens` (may be NULL) is N. Errors: ids with gaps. */
WF_API wf_status wf_token_labels(const wf_symbols *tokens, int32_t num_disambig, wf_symbols **out,
                                 int32_t *out_num_tokens, wf_error *err);
/* Id of the blank: of `name`, or, if NULL, of the first of <blk>, <blank>, <b>, <pad>, [PAD], <ctc>
 * that the table has. As column number (from 0), whichever habit the table follows. Errors: no such
 * token. */
WF_API wf_status wf_token_blank(const wf_symbols *tokens, const char *name, int32_t *out_column,
                                wf_error *err);

/* A lexicon: words and how they are made of tokens. Immutable. A word may have several
 * pronunciations. */
typedef struct wf_lexicon wf_lexicon; /* reference counted */

#define WF_LEXICON_OPTIONS(X)                                                                      \
  X(ENUM, lexicon_format, 0, 0, 0, "auto|plain|prob",                                              \
    "lines are `word token ...`, or `word probability token ...`; auto looks at the second "       \
    "column")                                                                                      \
  X(ENUM, unknown, 0, 0, 0, "error|skip",                                                          \
    "a word with tokens that are not in the table: an error, or left out and counted")             \
  X(STR, blank, 0, 0, 0, "TOKEN",                                                                  \
    "the blank, which no word may hold; empty: none (default: <blk>, <blank>, <b>, <pad>, [PAD] "  \
    "or <ctc>)")                                                                                   \
  X(ENUM, spelling, 0, 0, 0, "auto|chars|longest|bpe",                                             \
    "one character a token; longest token first; merges of pairs. auto: bpe if there are merges, " \
    "else longest")                                                                                \
  X(STR, word_start, 0, 0, 0, "TEXT",                                                              \
    "spelling: put before each word (default: U+2581 if a token begins with it, else nothing)")    \
  X(STR, merges, 0, 0, 0, "FILE", "spelling: byte-pair merges, best first, two pieces a line")     \
  X(BOOL, variants, 0, 0, 1, "",                                                                   \
    "word(2) is another pronunciation of word, and lines that begin with ;;; are comments, as in " \
    "CMU's dictionaries (mkgraph hmm: on)")
WF_DECLARE_OPTIONS(lexicon, WF_LEXICON_OPTIONS)
/* Reads Kaldi's lexicon.txt or lexiconp.txt. Blanks or tabs between columns; empty lines are passed
 * over. A line given twice counts once (with the larger probability). Errors, with path and line:
 * no tokens after the word, probability outside (0, 1], unknown token, blank, not UTF-8, a reserved
 * word (<eps>, <s>, </s>, #0, #1 ...). An empty lexicon is an error. */
WF_API wf_status wf_lexicon_read(const char *path, const wf_symbols *tokens,
                                 const wf_lexicon_options *options, wf_lexicon **out,
                                 wf_error *err);
/* A lexicon without a file: spells every word of a table, but for the reserved ones and those in
 * angle brackets (<unk>), with the tokens of a character or subword model. */
WF_API wf_status wf_lexicon_spell(const wf_symbols *words, const wf_symbols *tokens,
                                  const wf_lexicon_options *options, wf_lexicon **out,
                                  wf_error *err);

typedef struct wf_pronunciation {
  const char *word;
  float prob;            /* 1 if the lexicon has none */
  const int32_t *labels; /* label of each token */
  size_t num_labels;
} wf_pronunciation;
WF_API size_t wf_lexicon_count(const wf_lexicon *lexicon);
/* i-th pronunciation in the order of the file, 0 <= i < count. Its pointers live as long as the
 * lexicon. */
WF_API wf_pronunciation wf_lexicon_at(const wf_lexicon *lexicon, size_t i);
/* Lines or words left out for unknown tokens, and lines given more than once. */
WF_API size_t wf_lexicon_num_skipped(const wf_lexicon *lexicon);
WF_API size_t wf_lexicon_num_repeated(const wf_lexicon *lexicon);
/* The first of those left out: "word (unknown token)". Spelling names words alone. */
WF_API const wf_tally *wf_lexicon_skipped(const wf_lexicon *lexicon);
/* How many disambiguation symbols its transducer needs: #0, one for silence, and #1 .. #k as the
 * words demand. */
WF_API int32_t wf_lexicon_num_disambig(const wf_lexicon *lexicon);
/* Kaldi's words.txt: <eps> 0, the words in byte order, #0, <s>, </s>. */
WF_API wf_status wf_lexicon_words(const wf_lexicon *lexicon, wf_symbols **out, wf_error *err);
/* Writes `word [probability] token ...` lines; probabilities only if one differs from 1. */
WF_API wf_status wf_lexicon_write(const wf_lexicon *lexicon, const char *path, wf_error *err);
WF_API wf_lexicon *wf_lexicon_ref(const wf_lexicon *lexicon);
WF_API void wf_lexicon_free(wf_lexicon *lexicon);

/* L: any sequence of words from its tokens. Arc weights are -ln(probability), on a word's first arc
 * with the word's label. With `disambig`, a pronunciation shared by words or that begins another
 * one ends in #1, #2, ..., the state between words has a loop #0:#0, and L o G can be determinized.
 * With `silence`, an optional silence token at the start and after every word: -ln(silence_prob)
 * with, -ln(1 - silence_prob) without (Mohri, Pereira, Riley 2002; the construction is Kaldi's). */
#define WF_LEXICON_FST_OPTIONS(X)                                                              \
  X(STR, silence, 0, 0, 0, "TOKEN", "token of optional silence between words (default: none)") \
  X(F32, silence_prob, 0.5, 0.000001, 0.999999, "", "probability of silence where it may be")  \
  X(BOOL, disambig, 1, 0, 1, "", "add disambiguation symbols")
WF_DECLARE_OPTIONS(lexicon_fst, WF_LEXICON_FST_OPTIONS)
/* `words` gives the output labels; NULL: wf_lexicon_words. Words that the table does not have are
 * left out; `*out_missing` (may be NULL) counts their pronunciations. Errors: none of the words is
 * in the table; no "#0" in the table when disambig is on. */
WF_API wf_status wf_lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                                   const wf_lexicon_fst_options *options, wf_fst **out,
                                   size_t *out_missing, wf_error *err);

/* CTC topologies T: labels per frame (input) to token labels (output). What each accepts is defined
 * in docs/how-to/topologies.md:
 *   correct  a state per token: repeats collapse, a token again only after a blank; V states, V^2
 *            arcs
 *   compact  token to token by an epsilon arc through the blank state; a repeat may also be the
 *            token again; V states, 3V - 2 arcs
 *   minimal  one state: every frame is blank or a token of its own; V arcs
 *   eesen    blanks before and after each token, entered and left by epsilon arcs (Miao, Gowayyed,
 *            Metze 2015)
 * (Galvez & Kaldewey 2023, figures 2 and 3; Laptev et al. 2022). All weights are 0.
 * Disambiguation labels num_tokens + 1 .. num_tokens + num_disambig pass as loops eps:#k (#k:#k if
 * keep_disambig). */
#define WF_TOPOLOGY_OPTIONS(X)                                                        \
  X(ENUM, type, 1, 0, 0, "correct|compact|minimal|eesen", "CTC topology")             \
  X(I32, num_disambig, 0, 0, 1000000, "labels", "disambiguation symbols to let pass") \
  X(BOOL, keep_disambig, 0, 0, 1, "", "leave disambiguation symbols on the input side, too")
WF_DECLARE_OPTIONS(topology, WF_TOPOLOGY_OPTIONS)
/* `blank` is a column, 0 <= blank < num_tokens. Errors: num_tokens < 1; correct with more than
 * 16,384 tokens (V^2 arcs). */
WF_API wf_status wf_ctc_topology(int32_t num_tokens, int32_t blank,
                                 const wf_topology_options *options, wf_fst **out, wf_error *err);

/* Arcs of each state in the order that the decoder wants: input labels first, epsilons last;
 * stable. */
WF_API wf_status wf_epsilons_last(const wf_fst *fst, wf_fst **out, wf_error *err);

/* Decoding graph for CTC: T o min(det(L o G)), ready for the decoder: input label = column + 1,
 * output label = word. Words of the lexicon that the grammar never uses are left out before
 * disambiguation. push=log makes the arcs of each state of LG sum to the same constant (Kaldi's
 * fstpushspecial), for which distances in the log semiring need not exist. */
#define WF_CTC_GRAPH_OPTIONS(X)                                                                    \
  X(ENUM, topology, 1, 0, 0, "correct|compact|minimal|eesen", "CTC topology")                      \
  X(STR, silence, 0, 0, 0, "TOKEN", "token of optional silence between words (default: none)")     \
  X(F32, silence_prob, 0.5, 0.000001, 0.999999, "", "probability of silence where it may be")      \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                     \
    "back-off of the LM: free epsilon arcs (small graph), or only for words without an arc "       \
    "(exact costs, large graph)")                                                                  \
  X(ENUM, push, 0, 0, 0, "none|tropical|log",                                                      \
    "weights of LG paid early: as determinization leaves them; best continuation; sum of all "     \
    "continuations")                                                                               \
  X(BOOL, keep_disambig, 0, 0, 1, "", "leave disambiguation symbols on the input side (to debug)") \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                   \
    "give up when a step grows beyond this; 0: 2^31 - 1")                                          \
  X(STR, classes, 0, 0, 0, "<A>,<B>,..",                                                           \
    "words of the grammar that stand for words added at run time, such as <contact> or <unk>: "    \
    "decode --add-words (topology compact)")                                                       \
  X(ENUM, check_words, 0, 0, 0, "warn|error|off",                                                  \
    "a tenth of the LM's words or more are in the lexicon only in another case (upper or lower): " \
    "a warning to the log, an error, or nothing")
WF_DECLARE_OPTIONS(ctc_graph, WF_CTC_GRAPH_OPTIONS)

/* What a step made. */
typedef struct wf_graph_step {
  const char *name; /* "L", "G", "L o G", "det", "push", "min", "T", "T o LG", "graph"; for HMMs "C
                       o LG", "H", "H o CLG", "loops", "rmeps" */
  const char *file; /* short name for files: "L", "G", "LG", "LG.det", "LG.push", "LG.min", "T",
                       "TLG", "CLG", "CLG.det", ..., "graph" */
  uint64_t num_states, num_arcs;
  double seconds;      /* wall time of this step */
  uint64_t peak_bytes; /* largest memory of the process up to its end */
} wf_graph_step;
/* Called after each step with its result. Return false to cancel. */
typedef bool (*wf_graph_step_fn)(void *user, const wf_graph_step *step, const wf_fst *fst);

/* What a graph is made of. All pointers are borrowed for the call. */
typedef struct wf_ctc_graph_parts {
  size_t struct_size;
  const wf_lexicon *lexicon; /* required; its token table and blank are the graph's */
  const wf_lm *lm;           /* either an n-gram LM ... */
  const wf_fst *grammar;   /* ... or a grammar over word labels, back-off arcs (if any) marked #0 on
                              the input side as by wf_lm_to_fst */
  const wf_symbols *words; /* table of the grammar's labels; NULL: its output symbols. Not used with
                              an LM, which has its own */
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  wf_progress progress;
} wf_ctc_graph_parts;
WF_DECLARE_INIT(ctc_graph_parts)

typedef struct wf_ctc_graph_result {
  wf_fst *graph;             /* symbols: token labels, words */
  wf_symbols *words;         /* the LM's or the grammar's table, with #0 added if it was missing */
  uint64_t lm_words_missing; /* words of the LM or the grammar that the lexicon cannot pronounce */
  uint64_t lexicon_words_missing; /* words of the lexicon that the LM or grammar never uses */
} wf_ctc_graph_result;
/* Errors: besides those of the steps, no word in common between lexicon and grammar, a class that
 * is not in the grammar, an empty result; the message says in which step. Classes are no words of
 * the graph's output: what is said there is (wf_graph_add_phrases). Entries of the lexicon for them
 * are left out. */
WF_API wf_status wf_ctc_graph_build(const wf_ctc_graph_parts *parts,
                                    const wf_ctc_graph_options *options, wf_ctc_graph_result *out,
                                    wf_error *err);
WF_API void wf_ctc_graph_result_free(wf_ctc_graph_result *result);

/* An acoustic model's HMMs, read from its own files: which HMM a phone has among which neighbours,
 * what each HMM state's column of the scores is, and the transition probabilities. Reference
 * counted; graph building adds HMM types to it, so one thread at a time. */
typedef struct wf_hmm wf_hmm;
/* CMU Sphinx: a folder with mdef (text or binary), transition_matrices and, if there is one,
 * noisedict. Column = senone. */
WF_API wf_status wf_hmm_read_sphinx(const char *folder, wf_hmm **out, wf_error *err);
/* Kaldi: `model` is final.mdl of a GMM, nnet3 or chain model (its TransitionModel is read, what
 * follows is not), `tree` its tree, `lang` the folder with phones.txt, phones/word_boundary.txt and
 * phones/optional_silence.txt (or .int; the last two may be missing). Files are text or binary.
 * Column = pdf, label = transition-id. Without `tree` (NULL) only wf_hmm_columns and
 * wf_hmm_get_info are of use; without `lang` phones are called by their numbers. Lexicons are
 * written in the phones of phones.txt or, where it has positions (AH_B, AH_I, AH_E, AH_S), without
 * them (AH). Context of any width up to 8, the central phone anywhere. A phone in context for which
 * the tree has no answer counts as missing. */
WF_API wf_status wf_hmm_read_kaldi(const char *model, const char *tree, const char *lang,
                                   wf_hmm **out, wf_error *err);
WF_API wf_hmm *wf_hmm_ref(const wf_hmm *hmm);
WF_API void wf_hmm_free(wf_hmm *hmm);
/* What lexicons are written in: the table for wf_lexicon_read, with the option blank = "" (none).
 */
WF_API const wf_symbols *wf_hmm_phones(const wf_hmm *hmm);
/* Set up with wf_hmm_info_init. */
typedef struct wf_hmm_info {
  size_t struct_size;
  int32_t num_phones;     /* that lexicons are written in */
  int32_t width, central; /* of the window of phones that choose an HMM, and the place of the
                             central one from 0; width 0: Kaldi's, read without a tree */
  int32_t num_labels;     /* input labels of graphs: 1 .. num_labels */
  int32_t num_columns;    /* of the score matrix */
  int32_t num_types;      /* distinct HMMs known so far */
  bool identity;          /* label = column + 1 for every label: the decoder needs no table */
} wf_hmm_info;
WF_DECLARE_INIT(hmm_info)
WF_API wf_status wf_hmm_get_info(const wf_hmm *hmm, wf_hmm_info *info, wf_error *err);
/* The table `columns` for wf_graph_create: entry l is the column of label l, entry 0 is -1.
 * `*out_columns` is for wf_free. */
WF_API wf_status wf_hmm_columns(const wf_hmm *hmm, int32_t **out_columns, size_t *out_count,
                                wf_error *err);
/* For determinization (wf_lattice_phones): entry l is the phone that label l begins, 0 if it is
 * within one. `*out_phones` is for wf_free. Kaldi's models only; others: WF_ERR_UNSUPPORTED. */
WF_API wf_status wf_hmm_phone_starts(const wf_hmm *hmm, int32_t **out_phones, size_t *out_count,
                                     wf_error *err);

/* Decoding graph for hybrid HMM models: H o C o L o G, each composition followed by determinization
 * and minimization, disambiguation symbols replaced by epsilons, self-loops added last, ready for
 * the decoder. Input labels are the model's (columns: wf_hmm_columns), output labels words. Costs:
 * -ln P of the LM, and 1 / lm_weight times all others (words, silences, transitions,
 * pronunciations), to be decoded with acoustic_scale = 1 / lm_weight. What 0 (or -1) stands for in
 * the scales: lm_weight 6.5, word_prob 0.65, silence_prob 0.005, self_loop_scale 1, silence at
 * edges for Sphinx (PocketSphinx's defaults); 1, 1, 0.5, 0.1, optional for Kaldi (its recipes';
 * take self_loop_scale 1 for chain models). filler_prob: 1e-8. */
#define WF_HMM_GRAPH_OPTIONS(X)                                                                    \
  X(F32, lm_weight, 0, 0, 1e6, "",                                                                 \
    "divides every cost but the LM's; decode with acoustic_scale = 1 / this. 0: the toolkit's "    \
    "(Sphinx 6.5, Kaldi 1)")                                                                       \
  X(F32, word_prob, 0, 0, 1e6, "",                                                                 \
    "factor on each word (Sphinx's wip). 0: the toolkit's (Sphinx 0.65, Kaldi 1)")                 \
  X(STR, silence, 0, 0, 0, "PHONE",                                                                \
    "phone of silence between words; empty: none (default: the model's)")                          \
  X(ENUM, silence_style, 0, 0, 0, "toolkit|optional|edges",                                        \
    "optional: once at the start and after each word, or not. edges: always at both ends, any "    \
    "number of times between words")                                                               \
  X(F32, silence_prob, 0, 0, 1, "",                                                                \
    "probability of silence where it may be. 0: the toolkit's (Sphinx 0.005, Kaldi 0.5)")          \
  X(BOOL, fillers, 0, 0, 1, "",                                                                    \
    "let the model's noises stand between words (silence_style=edges)")                            \
  X(F32, filler_prob, 0, 0, 1, "", "probability of each. 0: the toolkit's (1e-8)")                 \
  X(F32, transition_scale, 1, 0, 1e6, "", "factor on costs of transitions other than self-loops")  \
  X(F32, self_loop_scale, -1, -1, 1e6, "",                                                         \
    "factor on costs of self-loops and of leaving them. -1: the toolkit's (Sphinx 1, Kaldi 0.1)")  \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                     \
    "back-off of the LM: free epsilon arcs (small graph), or only for words without an arc "       \
    "(exact costs, large graph)")                                                                  \
  X(ENUM, push, 1, 0, 0, "none|tropical|log",                                                      \
    "weights paid early: as determinization leaves them; best continuation; sum of all "           \
    "continuations of LG")                                                                         \
  X(ENUM, missing_words, 0, 0, 0, "skip|error",                                                    \
    "words of the LM or grammar that the lexicon lacks: never recognised, or an error")            \
  X(ENUM, missing_hmm, 0, 0, 0, "substitute|drop|error",                                           \
    "phones in a context for which the model has no HMM: the toolkit's rule, paths left out, or "  \
    "an error")                                                                                    \
  X(ENUM, ambiguous, 0, 0, 0, "error|best",                                                        \
    "words that the HMMs cannot tell apart though their phones differ (phones with the same "      \
    "states): an error, or the best of them")                                                      \
  X(BOOL, epsilon, 1, 0, 1, "",                                                                    \
    "arcs without input; --no-epsilon folds them into the arcs before them: nearly twice the "     \
    "arcs, for decoders that want a frame on every arc")                                           \
  X(I64, max_states, 0, 0, 2147483647, "states",                                                   \
    "give up when a step grows beyond this; 0: 2^31 - 1")                                          \
  X(ENUM, check_words, 0, 0, 0, "warn|error|off",                                                  \
    "a tenth of the LM's words or more are in the lexicon only in another case (upper or lower): " \
    "a warning to the log, an error, or nothing")
WF_DECLARE_OPTIONS(hmm_graph, WF_HMM_GRAPH_OPTIONS)

/* What a graph is made of. All pointers are borrowed for the call. */
typedef struct wf_hmm_graph_parts {
  size_t struct_size;
  wf_hmm *hmm;               /* required */
  const wf_lexicon *lexicon; /* either a lexicon, read with wf_hmm_phones, ... */
  const wf_fst *lexicon_fst; /* ... or Kaldi's L_disambig.fst, phones to words in the numbers of
                              * phones.txt and of the word table; its costs stand, and options about
                              * words, silence and fillers do not matter */
  const wf_lm *lm;           /* either an n-gram LM ... */
  const wf_fst *grammar;     /* ... or a grammar over word labels, as in wf_ctc_graph_parts */
  const wf_symbols *words; /* table of the grammar's labels; NULL: its output symbols. Not used with
                              an LM, which has its own */
  wf_graph_step_fn step_fn; /* may be NULL */
  void *step_user;
  wf_progress progress;
} wf_hmm_graph_parts;
WF_DECLARE_INIT(hmm_graph_parts)

typedef struct wf_hmm_graph_result {
  wf_fst *graph;             /* output symbols: words */
  wf_symbols *words;         /* the LM's or the grammar's table, with #0 added if it was missing */
  wf_tally lm_words_missing; /* words of the LM or the grammar that the lexicon cannot pronounce */
  wf_tally lexicon_words_missing; /* words of the lexicon that the LM or grammar never uses */
  wf_tally hmm_substituted;       /* phones in context with the HMM of another context */
  wf_tally hmm_dropped;           /* phones in context left out */
} wf_hmm_graph_result;
/* Errors: besides those of the steps, no word in common between lexicon and grammar, an empty
 * result; the message says in which step. */
WF_API wf_status wf_hmm_graph_build(const wf_hmm_graph_parts *parts,
                                    const wf_hmm_graph_options *options, wf_hmm_graph_result *out,
                                    wf_error *err);
WF_API void wf_hmm_graph_result_free(wf_hmm_graph_result *result);

/* =========================================================================================
 * 8  The decoder
 * ========================================================================================= */

/* A decoding graph: an fst over (acoustic label : word), checked and laid out for the decoder.
 * Immutable, reference counted. */
typedef struct wf_graph wf_graph;

/* `columns`: column of the score matrix for each input label: label l reads columns[l], 0 < l <
 * num_columns_entries (Kaldi's transition-id to pdf table); NULL: column = label - 1. An fst whose
 * states have their epsilon arcs last (WF_PROP_EPSILONS_LAST) is used in place, any other is copied
 * in that order.
 * Errors: empty fst, a label outside the table, 2^32 - 1 arcs or more, a finite weight beyond 1e20,
 * a cycle of epsilon-input arcs with negative cost (WF_ERR_NEGATIVE_CYCLE, naming a state on it).
 * The semiring does not matter: the search is for the best path. */
WF_API wf_status wf_graph_create(const wf_fst *fst, const int32_t *columns,
                                 size_t num_columns_entries, wf_graph **out, wf_error *err);
/* The fst the graph searches; state and arc numbers in results refer to it. */
WF_API const wf_fst *wf_graph_fst(const wf_graph *graph);
/* Score matrices need at least this many columns. */
WF_API int32_t wf_graph_min_columns(const wf_graph *graph);
WF_API wf_graph *wf_graph_ref(const wf_graph *graph);
WF_API void wf_graph_free(wf_graph *graph);

/* Words added at run time. A graph built with classes (wf_ctc_graph_options.classes, such as
 * <contact> or <unk>) has places for them: arcs whose input label is called #<contact> in its
 * symbol table, at which nothing is recognised until there are words. Adding them takes no copy:
 * the new graph shares its base's arrays and costs what the phrases cost, so each utterance and
 * each stream may have its own (wf_decode_each, wf_stream_set_graph). Searching it gives, bit for
 * bit, what the fst of wf_graph_to_fst would. [after Allauzen & Riley 2015, dynamic classes;
 * docs/how-to/added-words.md]
 *
 * A word is the output label that results will have, which the graph's word table need not know,
 * and the input labels of its tokens (label = column + 1), without blanks. Words are written as
 * early as the phrases of the class allow. `cost` (nats) of the phrase comes on top of what the
 * grammar says of the class: -ln P(phrase | class). Of a phrase given twice with the same labels
 * and words the cheaper counts. `word_class` NULL: the only one. Another class: add to the result.
 * Everything is copied. Errors: no such class, or it has words already; a label that is no token; a
 * word without labels; a finite cost is needed; a graph that is not of topology compact
 * (WF_ERR_UNSUPPORTED); 2^31 states or more in numbers, those of the phrases counting once for each
 * place of the class (WF_ERR_LIMIT). */
typedef struct wf_spoken_word {
  int32_t word;
  const int32_t *labels; /* [num_labels] */
  size_t num_labels;
} wf_spoken_word;
typedef struct wf_added_phrase {
  const wf_spoken_word *words; /* [num_words] */
  size_t num_words;
  float cost;
} wf_added_phrase;
WF_API wf_status wf_graph_add_phrases(const wf_graph *graph, const char *word_class,
                                      const wf_added_phrase *phrases, size_t count, wf_graph **out,
                                      wf_error *err);
/* Its classes, 0 <= i < num_classes: "<contact>"; NULL beyond them. */
WF_API int32_t wf_graph_num_classes(const wf_graph *graph);
WF_API const char *wf_graph_class(const wf_graph *graph, int32_t i);
/* What is searched, all written out; state and arc numbers are those of results. Without added
 * words it is wf_graph_fst, which is the base's otherwise. */
WF_API wf_status wf_graph_to_fst(const wf_graph *graph, wf_fst **out, wf_error *err);

/* The search (docs/reference/semantics.md says exactly what is computed, so that every backend
 * gives the same bits). */
#define WF_DECODER_OPTIONS(X)                                                                     \
  X(F32, beam, 15, 0, 1e30, "nats", "keep tokens within this cost of the frame's best")           \
  X(I32, max_active, 10000, 1, 2147483647, "states",                                              \
    "expand at most this many tokens a frame, best first")                                        \
  X(I32, min_active, -1, -1, 2147483647, "arcs",                                                  \
    "widen the beam to let at least this many candidates in (at most max_active); -1: 20 with a " \
    "CTC graph, 200 with any other")                                                              \
  X(I32, max_tokens, 28000, 1, 1073741823, "states",                                              \
    "room for the tokens of a frame (at least max_active); beyond it the beam narrows by rank")   \
  X(F32, acoustic_scale, 1, 0, 1e6, "", "factor on the log-likelihoods")                          \
  X(F32, word_score, 0, -1e6, 1e6, "nats", "added per word; positive favours more words")         \
  X(I32, blank, -1, -1, 2147483647, "column",                                                     \
    "column of the CTC blank or of silence, which ends words; -1: none")                          \
  X(F32, blank_penalty, 0, -1e6, 1e6, "nats",                                                     \
    "subtracted from the blank's log-likelihood (needs blank); positive makes fewer deletions")   \
  X(F32, blank_skip_threshold, 1, 0, 1, "probability",                                            \
    "pass over frames whose blank is likelier than this, but for the first of each run (needs "   \
    "blank); 1: none")                                                                            \
  X(F32, lattice_beam, 0, 0, 1e30, "nats",                                                        \
    "make a lattice of every path within this cost of the best (8 is usual); 0: none")            \
  X(I32, lattice_prune_interval, 25, 1, 2147483647, "frames",                                     \
    "prune the lattice backward this often; changes memory and time, not the lattice")            \
  X(I32, num_threads, 0, 0, 4096, "threads",                                                      \
    "utterances decoded at once on the CPU, or threads that feed the GPUs; 0: one per processor") \
  X(STR, device, 0, 0, 0, "cpu|cuda[:N,...]",                                                     \
    "where to search; the results are the same: cpu, cuda, cuda:1, cuda:0,1, cuda:all (default: " \
    "cpu)")                                                                                       \
  X(I64, gpu_memory, 0, 0, 1e15, "bytes",                                                         \
    "memory to use on each GPU, the graph included; 0: what is free")                             \
  X(ENUM, recombine, 0, 0, 0, "pair|state",                                                       \
    "with a scorer: tokens of a state with different contexts are apart (exact), or only the "    \
    "best of them stays (fewer tokens, no lattices)")                                             \
  X(ENUM, check_scores, 0, 0, 0, "warn|error|off",                                                \
    "scores that look wrong, or max_active reached in most frames: a warning to the log, once "   \
    "for each cause; the utterance fails; nothing")
WF_DECLARE_OPTIONS(decoder, WF_DECODER_OPTIONS)

/* What check_scores looks for. A CTC graph, one whose input symbols name tokens and a blank,
 * expects log-posteriors of these tokens. So with one, some frames of an utterance are looked at,
 * and what can be told from the numbers is named: probabilities, base-10 logarithms, negated or
 * transposed scores, another number of columns than tokens, logits or likelihoods (frames that sum
 * to far less or more than 1), the blank in another column. With any graph: max_active cut the beam
 * in most frames. Results stay the same, except that `error` fails the utterance. Which utterances
 * are looked at: docs/reference/semantics.md. */

typedef struct wf_decoder wf_decoder;
/* `device` is "cpu", "cuda" (GPU 0), "cuda:2", "cuda:0,1" or "cuda:all": several GPUs share each
 * batch. A GPU named twice gets two workers. Errors: WF_ERR_DEVICE if a GPU is not there or the
 * library was built without CUDA, WF_ERR_MEMORY if one has no room for the graph. */
WF_API wf_status wf_decoder_create(const wf_graph *graph, const wf_decoder_options *options,
                                   wf_decoder **out, wf_error *err);
/* Streams that are still open keep what they need of the decoder, and stay usable. */
WF_API void wf_decoder_free(wf_decoder *decoder);
/* From now on wf_decode on a GPU starts after the work that `stream` (a cudaStream_t) holds at the
 * call; so scores may still be on their way. The stream is borrowed and must outlive its use. NULL,
 * the default: the legacy default stream. Errors: a decoder on the CPU (WF_ERR_UNSUPPORTED) or on
 * several GPUs (WF_ERR_ARGUMENT: a stream belongs to one). */
WF_API wf_status wf_decoder_set_stream(wf_decoder *decoder, void *stream, wf_error *err);

typedef enum wf_dtype { WF_FLOAT32 = 0, WF_FLOAT16 = 1, WF_BFLOAT16 = 2 } wf_dtype;

/* Log-likelihoods or log-posteriors of one utterance, natural logarithm: frame t, column c at
 * data[t * stride + c]. -infinity: impossible. NaN, +infinity and finite values beyond 1e20 fail
 * the utterance. Columns from wf_graph_min_columns on are not looked at. Borrowed for the duration
 * of the call. */
typedef struct wf_scores {
  const void *data;
  int64_t num_frames;
  int32_t num_columns;
  int64_t stride; /* elements from one frame to the next, >= num_columns */
  wf_dtype dtype;
  bool on_device; /* data is memory of one of the decoder's GPUs, complete in the order of
                     wf_decoder_set_stream; else host memory */
  uint64_t reserved[2];
} wf_scores;

/* A batch as one tensor [utterance, frame, column], padded to the longest. */
typedef struct wf_padded_scores {
  const void *data;
  size_t num_utterances;
  int64_t max_frames;
  int32_t num_columns;
  int64_t utterance_stride, frame_stride; /* elements; 0: packed (frame_stride = num_columns,
                                             utterance_stride = max_frames * frame_stride) */
  const int64_t
      *lengths; /* [num_utterances] frames of each, at most max_frames; NULL: all have max_frames */
  wf_dtype dtype;
  bool on_device;
  uint64_t reserved[2];
} wf_padded_scores;
/* Describes each utterance of the tensor in `scores` [num_utterances], the caller's, for wf_decode;
 * nothing is copied. Errors: a length outside [0, max_frames], strides in which frames overlap. */
WF_API wf_status wf_scores_from_padded(const wf_padded_scores *padded, wf_scores *scores,
                                       wf_error *err);

/* One word of the best path. Frames are half-open: [start_frame, end_frame), from the first frame
 * of the word's first token (or phone) to the last of its last. In a graph without a word aligner
 * they are estimates: a word goes from the frame at which the graph says it to that of the next
 * word, which can be late. */
typedef struct wf_word {
  int32_t label; /* olabel */
  int32_t start_frame, end_frame;
} wf_word;

enum {
  WF_RESULT_NOT_FINAL = 1 << 0, /* no token was in a final state at the end: the best token's path,
                                   without final cost */
  WF_RESULT_NARROWED = 1 << 1,  /* max_active cut the beam in at least one frame */
  WF_RESULT_DIED = 1 << 2, /* every token became impossible at frame `num_decoded`; the words are
                              those up to there */
  WF_RESULT_OVERFLOW = 1 << 3, /* max_tokens cut the beam in at least one frame */
};

/* What came out of one utterance. Owned by the caller: wf_result_free. */
typedef struct wf_result {
  wf_status status; /* WF_OK, or why this utterance failed; then only `message` and `num_frames`
                       mean anything */
  char message[256];
  uint32_t flags; /* WF_RESULT_* */
  int64_t num_frames;
  int64_t num_decoded;  /* frames consumed: num_frames unless WF_RESULT_DIED */
  double cost;          /* graph_cost + acoustic_cost + scorer_cost, of the best path, nats */
  double graph_cost;    /* arc weights (less word_score a word) and the final cost */
  double acoustic_cost; /* -acoustic_scale * log-likelihoods */
  wf_word *words;       /* [num_words] */
  size_t num_words;
  int32_t
      *alignment; /* [num_decoded] input label of each frame; 0: skipped (blank_skip_threshold) */
  uint64_t num_tokens; /* summed over frames: tokens kept; expanded; arcs looked at; frames in which
                          max_active cut */
  uint64_t num_expanded;
  uint64_t num_arcs;
  uint64_t num_narrowed;
  struct wf_lattice *lattice; /* every path within lattice_beam of the best (section 10); NULL if
                                 lattice_beam is 0. Freed with the result: wf_lattice_ref keeps it.
                                 2^31 states or more fail the utterance */
  double scorer_cost;   /* of the words and, unless not final, of ending after them; 0 without a
                           scorer. Part of `cost` */
  size_t num_estimated; /* words whose times are estimates: all of them in a graph without a word
                           aligner (wf_graph_word_aligner); else those whose labels are not one of
                           their pronunciations, as at the end of an utterance that is cut off
                           within a word */
  struct wf_determinized
      *determinized; /* what became of `lattice`; NULL unless wf_decoder_set_determinization asked
                        for it. Freed with the result; its lattice may be taken out of it */
} wf_result;
WF_API void wf_result_free(wf_result *result);

/* Decodes `count` utterances; results[i] (array of the caller) receives one result each, also for
 * utterances that failed by themselves. The result of an utterance does not depend on the others,
 * on their order, or on num_threads. A failing return (bad arguments, out of memory, cancelled)
 * leaves all results NULL. */
WF_API wf_status wf_decode(wf_decoder *decoder, const wf_scores *scores, size_t count,
                           const wf_progress *progress, wf_result **results, wf_error *err);

/* Scorers: costs for words that are not in the graph, added as each word is hypothesised, before
 * pruning. A scorer is a deterministic automaton over words, made on demand: step(context, word) ->
 * (cost, next context), final(context) -> cost. The decoder searches `graph o scorer` and never
 * builds it; so the result is that of decoding the composed graph, up to the beam. Words are output
 * labels of the graph. Immutable, reference counted, for any number of decoders and threads at
 * once. On a GPU: boosts, n-gram models, and chains of up to three of these (else
 * WF_ERR_UNSUPPORTED, which names what). */
typedef struct wf_scorer wf_scorer;
WF_API wf_scorer *wf_scorer_ref(const wf_scorer *scorer);
WF_API void wf_scorer_free(wf_scorer *scorer);
/* Favours words[i] by boosts[i] nats wherever it is hypothesised (negative: disfavours it); at most
 * beam / 2 is advised. The arrays are copied. Errors: a label that is not positive, a boost beyond
 * 1e20, a word given twice with different boosts. */
WF_API wf_status wf_scorer_boost_words(const int32_t *words, const float *boosts, size_t count,
                                       wf_scorer **out, wf_error *err);
/* An n-gram model, or the difference of two. `words`: table of the graph's output labels, by whose
 * texts words are found; NULL: the labels are the model's own. Words that the model lacks are its
 * unknown word, or impossible if it has none. The cost of a word is lm_scale times that of
 * wf_wlm_step. Errors: no word known. `placement` says where a decoder on a GPU keeps the model;
 * the result is the same everywhere, on the CPU too, where it means nothing:
 *     device  in the GPU's memory
 *     hybrid  the index (unigrams, states, tags, buckets: see `lm info`) there, the arcs in
 *             page-locked host memory, which the GPU reads over the bus where a tag agrees; arcs
 *             that were read stay in a 4-way cache, which takes what the index leaves of
 *             lm_gpu_bytes
 *     host    all of it in page-locked host memory */
#define WF_NGRAM_SCORER_OPTIONS(X)                                                                \
  X(F32, lm_scale, 1, 0, 1e6, "", "factor on the costs of the on-the-fly language model")         \
  X(ENUM, placement, 0, 0, 0, "device|hybrid|host",                                               \
    "where a decoder on a GPU keeps the on-the-fly language model")                               \
  X(I64, lm_gpu_bytes, 0, 0, 9007199254740992, "bytes",                                           \
    "placement=hybrid: GPU memory for its index and a cache of arcs; 0: the index and an eighth " \
    "of the arcs")
WF_DECLARE_OPTIONS(ngram_scorer, WF_NGRAM_SCORER_OPTIONS)
WF_API wf_status wf_scorer_from_lm(const wf_wlm *lm, const wf_symbols *words,
                                   const wf_ngram_scorer_options *options, wf_scorer **out,
                                   wf_error *err);
/* Favours phrases, boosts[i] nats for each occurrence of phrase i, which is words[phrase_off[i]] ..
 * words[phrase_off[i + 1] - 1] (phrase_off has count + 1 entries). Each word of a phrase brings its
 * share at once, so that the phrase survives the beam; it is taken back when another word follows,
 * or the end. So a result's words have in the end what the phrases in them add up to, overlapping
 * ones included. Of phrases with a common beginning the greatest share is given in advance. Tens of
 * thousands are fine: a step is a few hash look-ups. At most beam / 2 a phrase is advised. The
 * arrays are copied. Errors: an empty phrase, a label that is not positive, a boost beyond 1e6, a
 * phrase given twice with different boosts. [Aho & Corasick 1975] */
WF_API wf_status wf_scorer_boost_phrases(const int32_t *words, const uint64_t *phrase_off,
                                         const float *boosts, size_t count, wf_scorer **out,
                                         wf_error *err);
/* The sum of two scorers. */
WF_API wf_status wf_scorer_chain(const wf_scorer *first, const wf_scorer *second, wf_scorer **out,
                                 wf_error *err);
/* A recurrent LM in the first pass, in the manner of Lee et al. 2015 (on-the-fly rescoring with
 * hierarchical softmax, MaxEnt features, a table of contexts and a cache of results). The cost of a
 * word is
 *     rnnlm_scale * (cost by `rnnlm`, interpolated with that by `ngram`) - small_scale * (cost by
 *     `small`)
 * `ngram` may be NULL: the recurrent model alone. `small`: the model that the graph was built with,
 * so that its costs are exchanged for the new ones; NULL: nothing is subtracted. `words`: table of
 * the graph's output labels, by whose texts words are found in the models; NULL: labels are the
 * recurrent model's ids. A word that the recurrent model lacks, and for which it has no unknown
 * word, costs unknown_cost and leaves the history as it is. A context is what all models need to
 * know: the words so far (their last history_merge_order - 1 if that is set) and the states of the
 * n-gram models. Utterances of a batch on the CPU go forward together where all have the same
 * scorer (or chain): what they ask in a frame is deduplicated and answered by a few matrix
 * products. What rnnlm_memory has no room for is forgotten, the oldest first, and worked out again
 * if need be; contexts that a search still holds stay, and the words that lead to them, even beyond
 * it. Results do not depend on the batch, rnnlm_cache and rnnlm_memory, bit for bit; only the time
 * does. With device=cuda the search and everything that it asks for are on the GPU, in batches
 * whose utterances all have this scorer (alone or in a chain of up to three) and in streams,
 * without lattices and recombine=state: the same words, costs within rounding
 * (docs/engineering/rnnlm.md).
 * Errors: reverse model (WF_ERR_UNSUPPORTED), no word of `words` known. */
#define WF_RNN_SCORER_OPTIONS(X)                                                              \
  X(F32, rnnlm_scale, 1, 0, 1e6, "", "factor on the costs of the new model")                  \
  X(F32, small_scale, 1, 0, 1e6, "",                                                          \
    "factor on the costs of the small model, which are subtracted")                           \
  X(F32, rnnlm_weight, 1, 0, 1, "",                                                           \
    "share of the recurrent model; the rest is the n-gram model's")                           \
  X(ENUM, interpolation, 0, 0, 0, "log_linear|linear",                                        \
    "weighted sum of costs, or cost of the weighted sum of probabilities")                    \
  X(F32, unknown_cost, 12, 0, 1e6, "nats",                                                    \
    "cost of words that the recurrent model lacks, if it has no unknown word")                \
  X(I32, history_merge_order, 0, 0, 1000000, "words",                                         \
    "n: contexts with the same last n - 1 words are one, read as if the sentence began with " \
    "them; 0: never")                                                                         \
  X(I64, rnnlm_memory, 536870912, 65536, 9e15, "bytes",                                       \
    "of hidden states, contexts and cached results, for the utterances of a batch, or for a " \
    "stream")                                                                                 \
  X(ENUM, rnnlm_cache, 1, 0, 0, "none|utterance|shared",                                      \
    "results kept: none (for comparison), of the utterance, or of all utterances")
WF_DECLARE_OPTIONS(rnn_scorer, WF_RNN_SCORER_OPTIONS)
WF_API wf_status wf_scorer_from_rnnlm(const wf_rnnlm *rnnlm, const wf_lm *ngram, const wf_lm *small,
                                      const wf_symbols *words, const wf_rnn_scorer_options *options,
                                      wf_scorer **out, wf_error *err);

/* What all searches with this scorer did so far. Set up with wf_rnn_scorer_stats_init. */
typedef struct wf_rnn_scorer_stats {
  size_t struct_size;
  uint64_t num_utterances;
  uint64_t num_requests;  /* costs asked for: one a word of an arc that the search looks at */
  uint64_t num_hits;      /* of these, answered before, in this frame or an earlier one */
  uint64_t num_histories; /* distinct histories made */
  uint64_t
      num_hidden; /* hidden states computed, as a cost was first asked for behind that history */
  uint64_t num_recomputed; /* steps repeated on the way to states that had been evicted */
  uint64_t num_evicted;    /* hidden states */
  uint64_t num_costs; /* worked out: what is left of requests - hits when utterances of a batch that
                         ask the same at the same time get one answer */
  uint64_t num_answers; /* times that questions of a batch were answered together: about one a
                           frame, if no more */
  uint64_t num_evicted_results, num_evicted_contexts;
} wf_rnn_scorer_stats;
WF_DECLARE_INIT(rnn_scorer_stats)
/* Errors: not a scorer of wf_scorer_from_rnnlm. */
WF_API wf_status wf_scorer_rnn_stats(const wf_scorer *scorer, wf_rnn_scorer_stats *stats,
                                     wf_error *err);

/* The scorer of utterances that are given none of their own, from now on; NULL, as at first: none.
 */
WF_API wf_status wf_decoder_set_scorer(wf_decoder *decoder, const wf_scorer *scorer, wf_error *err);
/* As wf_decode. scorers[i], borrowed for the call, takes the place of the decoder's scorer for
 * utterance i, unless it is NULL; `scorers` itself may be NULL. */
WF_API wf_status wf_decode_scored(wf_decoder *decoder, const wf_scores *scores,
                                  const wf_scorer *const *scorers, size_t count,
                                  const wf_progress *progress, wf_result **results, wf_error *err);

/* As wf_decode_scored. graphs[i], borrowed for the call, is searched for utterance i instead of the
 * decoder's graph, unless it is NULL: that graph with words added (wf_graph_add_phrases). `graphs`
 * may be NULL. On GPUs, too, where graph and words may have 2^31 - 2 arcs in all (WF_ERR_LIMIT). */
WF_API wf_status wf_decode_each(wf_decoder *decoder, const wf_scores *scores,
                                const wf_scorer *const *scorers, const wf_graph *const *graphs,
                                size_t count, const wf_progress *progress, wf_result **results,
                                wf_error *err);

/* What a batch is like, for the plan of its memory. */
typedef struct wf_batch_shape {
  size_t num_utterances;
  int64_t max_frames; /* of the longest utterance */
  int64_t sum_frames; /* of all; 0: num_utterances * max_frames */
  wf_dtype dtype;
  bool on_device;         /* all scores are already on the GPU */
  int32_t num_processors; /* 0: ask the GPU. Else plan for one of so many multiprocessors (132:
                           * H200) that need not be here; its memory is then options.gpu_memory (0:
                           * without limit) */
  uint64_t reserved[4];
} wf_batch_shape;

/* Bytes that decoding takes on each GPU, everything allocated included. */
typedef struct wf_plan {
  uint64_t graph_bytes; /* the graph, language models and boosts */
  uint64_t lane_bytes;  /* what utterances that are searched at one time work with; grows with
                           max_tokens */
  uint64_t trace_bytes; /* their token history. It gets room for full frames if that fits, else what
                         * is left; what needs more at the end is decoded on the CPU, with the same
                         * result */
  uint64_t score_bytes; /* scores from host memory that are on the GPU at one time */
  uint64_t result_bytes;    /* utterances and paths */
  uint64_t total_bytes;     /* the sum */
  uint64_t available_bytes; /* the limit: gpu_memory or what is free; UINT64_MAX: none is known */
  uint64_t pinned_bytes;    /* page-locked host memory, for each GPU */
  int32_t num_gpus;         /* workers of the decoder: 0 on the CPU, which has no plan */
  int32_t lane_blocks;      /* thread blocks that search one utterance */
  int32_t num_lanes;        /* utterances with room on a GPU at one time */
  uint64_t reserved[8];
} wf_plan;
/* The plan that wf_decode follows for such a batch, on the options' device. Allocates nothing on
 * the GPU. Errors: WF_ERR_MEMORY if even the smallest plan does not fit: needed and available bytes
 * and the option to lower are in the message (wf_decode fails so, too); WF_ERR_LIMIT if max_tokens
 * is beyond what the search on any GPU holds; WF_ERR_DEVICE as for wf_decoder_create. */
WF_API wf_status wf_plan_bytes(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_batch_shape *shape, wf_plan *out, wf_error *err);
/* The largest plan that the decoder has followed so far; all 0 on the CPU and, but for the graph,
 * before the first batch. */
WF_API void wf_decoder_plan(const wf_decoder *decoder, wf_plan *out);
/* The on-the-fly language models of a decoder on GPUs, over all GPUs and batches so far; all 0 on
 * the CPU. What is counted is counted from the decoder's first batch on, and models that are gone
 * stay in it. It is of n-grams in host memory: 0 with placement=device. */
typedef struct wf_lm_stats {
  uint64_t gpu_bytes, host_bytes;  /* held now, caches included; page-locked host memory */
  uint64_t cache_hits, host_reads; /* n-grams (the model's arcs) found in the cache; read from host
                                    * memory. With placement=host what look-ups read of the index
                                    * goes over the bus, too, and is in none of these figures */
  uint64_t bus_bytes;    /* that these reads moved: host_reads times the sectors of 32 bytes that an
                          * n-gram's record lies in, on average over its places (40 bytes a read
                          * where the model is not packed). Fewer move where threads of a warp read
                          * one sector together, or the GPU's own caches still have it */
  uint64_t stall_cycles; /* of the GPU's clock that warps waited for these reads, summed over warps:
                          * a wait of a warp counts once, however many of its threads read. Other
                          * warps may have worked meanwhile */
  double stall_s; /* the same in seconds at the GPU's highest clock, on average over the warps that
                   * it searches with at one time (32 a multiprocessor): divided by the time of
                   * decoding, the share of it that the GPU's warps waited for the bus. Small where
                   * a small batch leaves most of them idle */
  uint64_t reserved[8];
} wf_lm_stats;
WF_API void wf_decoder_lm_stats(const wf_decoder *decoder, wf_lm_stats *out);

/* =========================================================================================
 * 9  Acoustic scores, results, word error rate
 * ========================================================================================= */

/* Scores of one utterance: log-likelihoods or log-posteriors, frame t, column c at data[t *
 * num_columns + c]. 0 frames are possible (then num_columns may be 0 too). Owns key and data:
 * wf_matrix_clear. */
typedef struct wf_matrix {
  char *key; /* utterance id, NUL-ended UTF-8 */
  float *data;
  int64_t num_frames;
  int32_t num_columns;
} wf_matrix;
/* Frees what the matrix owns and zeroes it. The structure itself is the caller's. */
WF_API void wf_matrix_clear(wf_matrix *matrix);
/* Are all scores usable: no NaN, no +infinity (-infinity is: impossible)? WF_ERR_FORMAT names the
 * first bad frame and column. */
WF_API wf_status wf_matrix_check(const wf_matrix *matrix, wf_error *err);

/* A stream of score matrices from one or more sources, one after the other. A source is
 *     scores.ark              Kaldi archive, text or binary: float (FM), double (DM), compressed
 *                             (CM, CM2, CM3); plain or gzipped
 *     scores.scp              Kaldi script file: lines `key path`, `key path:byte_offset`, either
 *                             with rows `[first:last]` or rows and columns
 *                             `[first:last,first:last]` behind it, counted from 0 and inclusive;
 *                             `path` may be a .npy or .sen file
 *     scores.npy              [frames, columns] or [1, frames, columns] of float16/32/64,
 *                             int8/16/32, uint8/16/32; the key is the file's name without folder
 *                             and .npy
 *     scores.sen              senone scores as pocketsphinx_batch -senlogdir writes them (costs in
 *                             units of 1024 ln(logbase)), as log-likelihoods
 *     folder                  every .npy and .sen in it, sorted by name
 *     -                       archive from standard input, read as it arrives
 * recognised by content, or told by Kaldi's prefixes (`ark:`, `scp:`, `ark,t:`, `scp,p:` and so
 * on). Paths are relative to the current folder. Pipes ("cmd |") are refused: nothing is executed.
 * A reader is used by one thread at a time. */
typedef struct wf_score_reader wf_score_reader;
#define WF_SCORE_READER_OPTIONS(X)                                                                 \
  X(F32, scale, 1, -1e30, 1e30, "",                                                                \
    "factor on every score as read; for integer .npy, the size of one unit (negative if they are " \
    "costs)")
WF_DECLARE_OPTIONS(score_reader, WF_SCORE_READER_OPTIONS)

/* Errors at once: a source that does not exist, a folder without such files, a malformed script
 * file, a pipe. Archives are opened when their turn comes. */
WF_API wf_status wf_score_reader_open(const char *const *sources, size_t num_sources,
                                      const wf_score_reader_options *options, wf_score_reader **out,
                                      wf_error *err);
/* Next utterance into `*out` (the caller's, to be cleared; what it held before is not freed), or
 * `*done` at the end. An error concerns one utterance, and the next call goes on behind it;
 * out->key then names it if its key was readable, else it is NULL. Where an archive cannot be
 * followed beyond its bad place, the rest of that archive is lost (wf_score_reader_lost_rest tells
 * so until the next call) and the next call goes on with the next source. */
WF_API wf_status wf_score_reader_next(wf_score_reader *reader, wf_matrix *out, bool *done,
                                      wf_error *err);
WF_API bool wf_score_reader_lost_rest(const wf_score_reader *reader);
/* Share of the input read so far, [0, 1], for progress; negative if not known (a pipe). */
WF_API double wf_score_reader_fraction(const wf_score_reader *reader);
WF_API void wf_score_reader_free(wf_score_reader *reader);

/* Writes matrices as a Kaldi archive, or as a folder of KEY.npy (float32; made if it is not there).
 */
#define WF_MATRIX_WRITER_OPTIONS(X)                                                     \
  X(ENUM, format, 0, 0, 0, "ark|text|compressed|npy",                                   \
    "Kaldi binary float, Kaldi text, Kaldi compressed (8 bits, lossy), folder of .npy") \
  X(STR, scp, 0, 0, 0, "FILE", "also write a Kaldi script file that points into the archive")
WF_DECLARE_OPTIONS(matrix_writer, WF_MATRIX_WRITER_OPTIONS)
typedef struct wf_matrix_writer wf_matrix_writer;
WF_API wf_status wf_matrix_writer_open(const char *path, const wf_matrix_writer_options *options,
                                       wf_matrix_writer **out, wf_error *err);
/* Errors: a key that the format cannot hold (blanks; '/' for .npy), infinities or NaN in compressed
 * form. Nothing is written then. */
WF_API wf_status wf_matrix_writer_put(wf_matrix_writer *writer, const wf_matrix *matrix,
                                      wf_error *err);
/* Completes and frees, also when it fails. */
WF_API wf_status wf_matrix_writer_close(wf_matrix_writer *writer, wf_error *err);
/* Frees and drops what was written (NULL is fine); .npy files already complete stay. */
WF_API void wf_matrix_writer_abort(wf_matrix_writer *writer);

/* One recognised utterance, as the result writer takes it. Everything is borrowed. */
typedef struct wf_timed_word {
  const char *text;
  int32_t start_frame, end_frame; /* half-open */
  float confidence;               /* in [0, 1]; NaN or negative: none */
} wf_timed_word;
typedef struct wf_alternative {
  const wf_timed_word *words; /* [num_words] start_frame -1: without times */
  size_t num_words;
  double cost, graph_cost, acoustic_cost; /* nats */
} wf_alternative;
typedef struct wf_hypothesis {
  const char *key;
  const wf_timed_word *words; /* [num_words] */
  size_t num_words;
  int64_t num_frames;
  double cost, graph_cost, acoustic_cost; /* nats */
  const char *const *flags;               /* [num_flags] names such as "not_final" */
  size_t num_flags;
  const char *error;  /* NULL, or why there is no result */
  double scorer_cost; /* part of cost; 0: no scorer */
  const wf_alternative
      *alternatives; /* [num_alternatives] best first: "nbest" in JSON; no other format has them */
  size_t num_alternatives;
  uint64_t reserved[4];
} wf_hypothesis;

/* Writes hypotheses in one of
 *     text   `key word word ...`, as Kaldi                             plain  `word word ...`
 *     ctm    `key channel start duration word [confidence]`, seconds   json   one object a line:
 *            key, text, words with times in seconds, costs, flags, nbest
 *     trn    `word word ... (key)`, as sclite
 * A failed utterance is an empty line in text, plain and trn, nothing in CTM, and an object with
 * "error" in JSON. JSON is valid whatever the bytes of words are: what is not UTF-8 becomes U+FFFD.
 * On standard output each utterance appears at once. */
#define WF_RESULT_WRITER_OPTIONS(X)                                                            \
  X(ENUM, format, 0, 0, 0, "text|plain|ctm|json|trn", "form of the results")                   \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds", "duration of a frame of the score matrices") \
  X(STR, channel, 0, 0, 0, "NAME", "channel in CTM; 1 if not given")
WF_DECLARE_OPTIONS(result_writer, WF_RESULT_WRITER_OPTIONS)
typedef struct wf_result_writer wf_result_writer;
WF_API wf_status wf_result_writer_open(const char *path, const wf_result_writer_options *options,
                                       wf_result_writer **out, wf_error *err);
WF_API wf_status wf_result_writer_put(wf_result_writer *writer, const wf_hypothesis *hypothesis,
                                      wf_error *err);
/* Completes and frees, also when it fails. */
WF_API wf_status wf_result_writer_close(wf_result_writer *writer, wf_error *err);
WF_API void wf_result_writer_abort(wf_result_writer *writer);

/* Word strings by utterance, read from any of the forms above: Kaldi text, sclite trn, CTM (words
 * of a key in the order of the lines), JSON lines ("key" and "text"; objects with "error" and no
 * text are left out). AUTO looks at the content: the special form that every line fits, else Kaldi
 * text. Immutable. Errors: key given twice (not in CTM), line without a key, not UTF-8,
 * alternatives `{ a / b }` in trn (not supported). */
typedef enum wf_transcript_format {
  WF_TRANSCRIPT_AUTO = 0,
  WF_TRANSCRIPT_TEXT = 1,
  WF_TRANSCRIPT_TRN = 2,
  WF_TRANSCRIPT_CTM = 3,
  WF_TRANSCRIPT_JSON = 4,
} wf_transcript_format;
typedef struct wf_transcript {
  const char *key;
  const char *const *words; /* [num_words] */
  size_t num_words;
} wf_transcript;
typedef struct wf_transcripts wf_transcripts;
WF_API wf_status wf_transcripts_read(const char *path, wf_transcript_format format,
                                     wf_transcripts **out, wf_error *err);
/* The form that was read, never AUTO. */
WF_API wf_transcript_format wf_transcripts_format(const wf_transcripts *transcripts);
WF_API size_t wf_transcripts_count(const wf_transcripts *transcripts);
/* i-th utterance in the order of the file; its arrays live as long as the table. */
WF_API wf_transcript wf_transcripts_at(const wf_transcripts *transcripts, size_t i);
/* Index of a key, or -1. */
WF_API int64_t wf_transcripts_find(const wf_transcripts *transcripts, const char *key);
WF_API void wf_transcripts_free(wf_transcripts *transcripts);

/* Word error rate. Alignment by Levenshtein distance with the costs of NIST's sclite (insertion 3,
 * deletion 3, substitution 4) and its choice among equals (traced back from the end: pair, then
 * insertion, then deletion), so that counts and alignments are sclite's. */
#define WF_WER_OPTIONS(X)                                                    \
  X(BOOL, ignore_case, 0, 0, 1, "",                                          \
    "A-Z and a-z are the same (sclite's default; without it, as sclite -s)") \
  X(BOOL, cer, 0, 0, 1, "",                                                  \
    "count characters (Unicode code points, blanks left out) instead of words, as sclite -c")
WF_DECLARE_OPTIONS(wer, WF_WER_OPTIONS)
typedef struct wf_wer wf_wer; /* totals and the last alignment; one thread at a time */
typedef struct wf_wer_counts {
  uint64_t num_words; /* of the reference: correct + substitutions + deletions */
  uint64_t num_correct, num_substitutions, num_deletions, num_insertions;
  uint64_t num_utterances, num_wrong_utterances; /* wrong: at least one error */
} wf_wer_counts;
/* One step of an alignment: '=' correct, 'S' substitution, 'D' deletion (hypothesis NULL), 'I'
 * insertion (reference NULL). */
typedef struct wf_wer_pair {
  char step;
  const char *reference, *hypothesis;
} wf_wer_pair;
WF_API wf_status wf_wer_create(const wf_wer_options *options, wf_wer **out, wf_error *err);
/* Words equal to `word` are dropped from both sides before the alignment ("<unk>", "[noise]");
 * compared as words are. */
WF_API wf_status wf_wer_ignore(wf_wer *wer, const char *word, wf_error *err);
/* Aligns one utterance and adds it to the totals. `hypothesis` NULL: no words. `*out_counts` (may
 * be NULL): of this utterance. Time and memory (2 bits) go with the product of the lengths; beyond
 * 2^33 WF_ERR_LIMIT. */
WF_API wf_status wf_wer_add(wf_wer *wer, const wf_transcript *reference,
                            const wf_transcript *hypothesis, wf_wer_counts *out_counts,
                            wf_error *err);
/* Alignment of the utterance added last; valid until the next call. */
WF_API const wf_wer_pair *wf_wer_alignment(const wf_wer *wer, size_t *num_pairs);
WF_API wf_wer_counts wf_wer_totals(const wf_wer *wer);
/* (substitutions + deletions + insertions) / words in percent; 0 if there are no words and no
 * errors, +infinity if there are errors only. */
WF_API double wf_wer_percent(const wf_wer_counts *counts);
WF_API void wf_wer_free(wf_wer *wer);

/* =========================================================================================
 * 10  Lattices
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

/* --- lattices: pruning, scaling, determinization, n-best, rescoring (docs/how-to/lattices.md) ---
 */

/* A new lattice of the arcs on paths within `beam` nats of the best, and of the ends of such paths;
 * the order of states and arcs is kept. Sums are exact (integers; docs/engineering/lattices.md), so
 * an arc just within the beam is in. Errors: beam negative or NaN. */
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

/* The best path, as a list of one; of none for a lattice without paths. Ties: the path that leaves
 * the other by an earlier arc. */
WF_API wf_status wf_lattice_best_path(const wf_lattice *lattice, wf_nbest **out, wf_error *err);
WF_API wf_status wf_compact_lattice_best_path(const wf_compact_lattice *lattice, wf_nbest **out,
                                              wf_error *err);
/* The n best word sequences, each once, with the costs and the alignment of their path. Order: by
 * cost, then by words (labels compared one by one; a sequence before those that continue it). Fewer
 * come where there are fewer. Time goes with what is found, not with the lattice. Errors: two arcs
 * of a state with one word, or an arc without a word: WF_ERR_ARGUMENT
 * (wf_compact_lattice_determinize makes such a lattice fit). */
WF_API wf_status wf_compact_lattice_nbest(const wf_compact_lattice *lattice, size_t n,
                                          wf_nbest **out, wf_error *err);

/* Pruned determinization over words (Povey et al. 2012, "Generating exact lattices in the WFST
 * framework"): an acceptor in which a word sequence has one path at most. Every sequence whose best
 * path is within `beam` of the best of all is there, at the costs and with the alignment of its
 * best path; every arc is on such a path. Sequences beyond the beam may come along where they share
 * all their arcs with others: at the cost and with the alignment of one of their paths. Sums are
 * exact. With delta > 0, costs that differ by less may be taken for the same, once an arc: that
 * helps only where equal costs come rounded differently, as in lattices of other tools.
 * With `phones` (wf_lattice_phones) lattices of HMMs are determinized over phones and words first,
 * then over words: the same sequences, another order of work. The tables are bounded by max_bytes:
 * what does not fit is left out by cost, worst first. Then the result is that of a narrower beam,
 * which is reported. */
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
/* `count` lattices over num_threads threads; NULL entries are passed over. A lattice that fails
 * says so in out[i]. A failing return leaves no lattices. */
WF_API wf_status wf_lattices_determinize(const wf_lattice *const *lattices, size_t count,
                                         const wf_lattice_phones *phones,
                                         const wf_lattice_determinize_options *options,
                                         wf_determinized *out, wf_error *err);

/* From now on the decoder determinizes lattices as they come, each by the thread of its pool that
 * has made it, while others search (or the GPU does): results of wf_decode have `determinized`, as
 * wf_lattice_determinize fills it without phones. num_threads is not looked at. NULL, as at first:
 * it does not. Streams' results have none. Errors: WF_ERR_ARGUMENT for a decoder that makes no
 * lattices. */
WF_API wf_status wf_decoder_set_determinization(wf_decoder *decoder,
                                                const wf_lattice_determinize_options *options,
                                                wf_error *err);

/* Another language model in place of the first: to the graph costs of every path comes new_lm_scale
 * times the cost of its words by `new_lm`, with the end of the sentence, less old_lm_scale times
 * that by `old_lm` (NULL: nothing is taken away). Exact back-off (wf_lm_step), so a graph made with
 * backoff=epsilon, which may have found a cheaper way to back off, is off by that. Labels of both
 * models are those of the lattice's words. Words that a model does not know cost what it gives
 * <unk>; a word that has no cost in the old model keeps what it has, one that has none in the new
 * model goes, with its paths. States are split by the models' histories, no more: a deterministic
 * lattice stays so. WF_ERR_LIMIT beyond max_states. */
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
/* The lattice with the costs of a scorer (section 8) added to its graph costs, that of the end
 * included: what decoding with the scorer gives, of the paths that are in the lattice. States are
 * split by the scorer's contexts: with a recurrent model, by the words before them, unless
 * history_merge_order says how many count. Words that the scorer forbids go, with their paths.
 * Errors: WF_ERR_LIMIT beyond max_states; those of the scorer. */
WF_API wf_status wf_compact_lattice_score(const wf_compact_lattice *lattice,
                                          const wf_scorer *scorer, int64_t max_states,
                                          wf_compact_lattice **out, wf_error *err);
/* What a scorer says of each arc and end of a compact lattice. Owned by the caller:
 * wf_scorer_costs_free. */
typedef struct wf_scorer_costs {
  float *arcs;   /* [num_arcs] */
  float *finals; /* [num_states] 0 where not final */
} wf_scorer_costs;
WF_API void wf_scorer_costs_free(wf_scorer_costs *costs);
/* Old and new costs apart in a compact lattice that was decoded with a scorer, whose costs are part
 * of its graph costs (a raw lattice has them by themselves): the same paths at the same costs,
 * states split by the scorer's contexts, and `out_costs`, the scorer's part of each arc. graph_cost
 * less that is what the graph, with the model that it was built with, says. Sums along paths are
 * exact up to rounding; determinization may have moved the rest of a cost along the path. Errors:
 * as of wf_compact_lattice_score. */
WF_API wf_status wf_compact_lattice_scorer_costs(const wf_compact_lattice *lattice,
                                                 const wf_scorer *scorer, int64_t max_states,
                                                 wf_compact_lattice **out,
                                                 wf_scorer_costs *out_costs, wf_error *err);
/* The same of a list, put in the new order; paths that the new model makes impossible are left out.
 */
WF_API wf_status wf_nbest_rescore(const wf_nbest *nbest, const wf_lm *old_lm, const wf_lm *new_lm,
                                  const wf_lattice_rescore_options *options, wf_nbest **out,
                                  wf_error *err);

/* A compact lattice with an arc for every arc of a raw one, and the way back: an arc for every
 * label of an alignment, costs and word on the first. The paths stay what they are; nothing is
 * determinized. */
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
    "kind of lattice to hand out: as the archive has it, or converted path by path")  \
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

/* --- lattices: posteriors, minimum Bayes risk, oracle, statistics
 * (docs/reference/lattice-formats.md) --- */

/* Share of the probability of all paths that goes over each arc, and that ends in each state; sums
 * in double. `arc_posteriors` [num_arcs], `final_posteriors` [num_states] and `out_total` (-ln of
 * the sum over all paths; +infinity if there are none) may be NULL. Costs count as they are: scale
 * them first (the reader's options, wf_compact_lattice_scale), or probabilities come out far too
 * sharp. */
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
/* Starts from `words` [num_words], or from those of the best path if NULL. Costs count as they are.
 * Times are those of arcs: take a lattice that wf_compact_lattice_align has made. Errors: a lattice
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

/* --- lattices: words in time (docs/reference/lattice-formats.md) ------------------------- */

/* How alignments, one label a frame, tell where words begin and end. Immutable, reference counted:
 * any number of threads may use one. Graphs made by wf_ctc_graph_build and wf_hmm_graph_build carry
 * one, and the decoder takes word times from it; for a graph from elsewhere make one and
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

/* The same paths with an arc for every word that has just the frames of the word as its alignment,
 * and arcs without a word for what is between words. Deterministic input
 * (wf_compact_lattice_determinize) keeps the result small; one that is not may take more than
 * max_arcs: WF_ERR_LIMIT. `*out_forced` (may be NULL): arcs whose labels are not those of a word.
 */
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
 * 11  Streams
 *
 * A stream is an utterance whose scores come in chunks: wf_stream_open, chunks, wf_stream_finish,
 * then wf_stream_reset for the next utterance, or wf_stream_close. Whatever the chunks and whatever
 * else was decoded meanwhile, the result is that of wf_decode for all scores in one matrix, bit for
 * bit, lattice included. What all tokens share is decided and leaves the search, so memory follows
 * what is still open and not the length of the audio (docs/engineering/streaming.md has figures).
 * Streams belong to their decoder and are used by its thread. A stream keeps its decoder alive:
 * either may be freed first. On GPUs, too.
 * ========================================================================================= */

/* Endpointing: five rules as Kaldi's, after each chunk. A rule holds if, in seconds (frame_seconds
 * a frame),
 *     silence at the end of the best path >= min_trailing_silence, and ending in a final state
 *     costs at most max_relative_cost more than the best token, and the utterance is at least
 *     min_utterance_length long, and (if must_contain_nonsilence) not all silence.
 * The best path is that of wf_stream_partial; skipped frames are silence. */
#define WF__ENDPOINT_RULE(X, n, contain, trailing, cost, length)                  \
  X(BOOL, rule##n##_must_contain_nonsilence, contain, 0, 1, "",                   \
    "endpoint rule " #n ": only after something was said")                        \
  X(F32, rule##n##_min_trailing_silence, trailing, 0, 1e30, "seconds",            \
    "endpoint rule " #n ": at least so much silence at the end")                  \
  X(F32, rule##n##_max_relative_cost, cost, 0, 1e30, "nats",                      \
    "endpoint rule " #n ": a final state within this of the best; 1e30: or none") \
  X(F32, rule##n##_min_utterance_length, length, 0, 1e30, "seconds",              \
    "endpoint rule " #n ": at least so long an utterance")
#define WF_STREAM_OPTIONS(X)                                                                       \
  X(F32, frame_seconds, 0.01, 1e-6, 1e6, "seconds",                                                \
    "duration of a frame of the scores, for endpoint rules")                                       \
  X(STR, silence, 0, 0, 0, "COLUMNS",                                                              \
    "columns that are silence, such as 0,7-9, for endpoint rules; the decoder's blank always is")  \
  X(BOOL, forget, 0, 0, 1, "",                                                                     \
    "what a partial has shown as stable is dropped, but for the last word: memory does not grow, " \
    "the result has what is left and no alignment")                                                \
  WF__ENDPOINT_RULE(X, 1, 0, 5, 1e30, 0)                                                           \
  WF__ENDPOINT_RULE(X, 2, 1, 0.5, 2, 0)                                                            \
  WF__ENDPOINT_RULE(X, 3, 1, 1, 8, 0)                                                              \
  WF__ENDPOINT_RULE(X, 4, 1, 2, 1e30, 0)                                                           \
  WF__ENDPOINT_RULE(X, 5, 0, 0, 1e30, 20)
WF_DECLARE_OPTIONS(stream, WF_STREAM_OPTIONS)

typedef struct wf_stream wf_stream;
/* Thousands may be open: one that has no scores yet takes two kilobytes; on a GPU 8 bytes of its
 * memory for each of max_tokens, twice that with a scorer. There it belongs to one of the decoder's
 * GPUs. Errors: WF_ERR_UNSUPPORTED on a GPU if lattices are made; WF_ERR_MEMORY if the GPU holds no
 * more; a malformed list of silence columns. */
WF_API wf_status wf_stream_open(wf_decoder *decoder, const wf_stream_options *options,
                                wf_stream **out, wf_error *err);
/* Drops what is unfinished. NULL is fine. */
WF_API void wf_stream_close(wf_stream *stream);
/* The same from any thread, also while another one uses the decoder: it is done when that is used
 * next, or freed. */
WF_API void wf_stream_abandon(wf_stream *stream);

/* The scorer (section 8) of this stream from now on, resets included; NULL: none. At first it is
 * the decoder's at wf_stream_open. In the middle of an utterance the new scorer takes the words so
 * far as context, of every token its own, but has no say on them: what the old one added to costs
 * stays, but for what it gave in advance for the rest of a phrase. `scorer_cost` of the result then
 * is what each said of the words that were certain when it was set aside, and the last of all the
 * rest. Tokens that have the same state and context from then on recombine at once. Errors:
 * WF_ERR_STATE in the middle of an utterance if lattices are made. */
WF_API wf_status wf_stream_set_scorer(wf_stream *stream, const wf_scorer *scorer, wf_error *err);

/* The graph of this stream's utterances from now on: the decoder's (or NULL), or that with words
 * added (wf_graph_add_phrases). It is kept for as long as it is needed. Errors: WF_ERR_STATE in the
 * middle of an utterance; WF_ERR_ARGUMENT for another graph. */
WF_API wf_status wf_stream_set_graph(wf_stream *stream, const wf_graph *graph, wf_error *err);

/* What there is to know after a chunk. */
typedef struct wf_stream_event {
  int32_t endpoint;        /* 0: none; 1 to 5: the first rule that holds. Nothing follows from it by
                              itself: finish and reset, or go on */
  int64_t num_frames;      /* accepted since the last reset */
  double trailing_silence; /* seconds */
  double relative_cost;    /* of the best ending in a final state, above the best token, nats;
                              +infinity: there is none */
  uint64_t reserved[4];
} wf_stream_event;

/* Decodes the next chunk of each of `count` different streams of the decoder, over all its threads.
 * A chunk has any number of frames, also none (data may then be NULL); chunks are borrowed for the
 * call. events[i] (`events` may be NULL, which saves their work) tells of stream i. A stream whose
 * scores are bad or whose search fails has failed by itself, as an utterance of wf_decode:
 * wf_stream_finish says so, further chunks are passed over, and the others go on. Errors:
 * WF_ERR_STATE for a finished stream, WF_ERR_ARGUMENT for one given twice or of another decoder,
 * both before anything is done; WF_ERR_MEMORY: streams for which there was none have failed. */
WF_API wf_status wf_streams_advance(wf_decoder *decoder, wf_stream *const *streams,
                                    const wf_scores *chunks, size_t count, wf_stream_event *events,
                                    wf_error *err);
/* The same for one. */
WF_API wf_status wf_stream_accept(wf_stream *stream, const wf_scores *chunk, wf_stream_event *event,
                                  wf_error *err);

/* The best hypothesis so far: the best token's, in a final state or not. */
typedef struct wf_partial {
  const wf_word *words; /* [num_words]; frames count from the last reset. The stream's, until the
                           next call with it */
  size_t num_words;
  size_t num_stable; /* of the words, the first so many will not change any more, but for the times
                        of the last of them */
  size_t num_estimated;  /* words whose times are estimates, as in wf_result */
  int64_t num_frames;    /* accepted */
  int64_t stable_frames; /* of these, the first so many are decided */
  int64_t start_frame;   /* accepted before the last reset */
  uint32_t flags;        /* WF_RESULT_NARROWED, _DIED, _OVERFLOW so far */
  uint64_t reserved[4];
} wf_partial;
/* Errors: WF_ERR_STATE for a stream that is finished; the stream's own error if it has failed. */
WF_API wf_status wf_stream_partial(wf_stream *stream, wf_partial *out, wf_error *err);
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
/* Ends the utterance: its result, as wf_decode gives it. After that only reset and close are
 * possible. */
WF_API wf_status wf_stream_finish(wf_stream *stream, wf_result **out, wf_error *err);
/* Makes the stream, finished or not, ready for a new utterance; frames count from 0 again. */
WF_API wf_status wf_stream_reset(wf_stream *stream, wf_error *err);
/* Bytes that the stream holds between chunks, results and lattice history included. */
WF_API uint64_t wf_stream_bytes(const wf_stream *stream);

/* Streams as they are to be open on GPUs. */
typedef struct wf_stream_shape {
  size_t num_streams;     /* open at one time; 0: how many there can be is the question */
  bool scored;            /* some have a scorer or added words: counted as if all had */
  int32_t num_processors; /* as in wf_batch_shape */
  uint64_t reserved[4];
} wf_stream_shape;

/* Bytes that streams take on each GPU, everything allocated included but for scorers and added
 * words. */
typedef struct wf_stream_plan {
  uint64_t graph_bytes;
  uint64_t lane_bytes;   /* what chunks that are searched at one time work with, whatever the number
                            of streams */
  uint64_t stream_bytes; /* of each open stream: its newest tokens; grows with max_tokens. All else
                            of a stream is in host memory (wf_stream_bytes) */
  uint64_t total_bytes;  /* graph, lanes, and this GPU's share of num_streams */
  uint64_t available_bytes; /* the limit: gpu_memory or what is free; UINT64_MAX: none is known */
  uint64_t pinned_bytes;    /* page-locked host memory, for each GPU */
  uint64_t max_streams;     /* that can be open at one time, on all GPUs together */
  int32_t num_gpus;         /* workers of the decoder: 0 on the CPU, which has no plan */
  int32_t num_lanes;  /* thread blocks on each GPU: chunks searched at one time while one block does
                         for each */
  int32_t max_chunks; /* on each GPU, of one launch; a call of wf_streams_advance makes as many as
                         it needs */
  uint64_t reserved[8];
} wf_stream_plan;
/* The plan that wf_stream_open follows on the options' device. Allocates nothing on the GPU.
 * Lane_bytes shrink, to 8 lanes at least, where not even one stream would fit beside them. Errors:
 * WF_ERR_MEMORY if so many streams, or the smallest plan, do not fit, with needed and available
 * bytes and the option to lower in the message; else as wf_plan_bytes. */
WF_API wf_status wf_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                                 const wf_stream_shape *shape, wf_stream_plan *out, wf_error *err);

/* =========================================================================================
 * 12  Callbacks into Python
 *
 * For the Python package. A callback made by ctypes loses an exception that is raised before its
 * first statement, as KeyboardInterrupt is. These keep it, and whoever made the call hands `raised`
 * to PyErr_Restore.
 * ========================================================================================= */

/* The interpreter's functions of these names. */
typedef struct wf_python {
  int (*PyGILState_Ensure)(void);
  void (*PyGILState_Release)(int);
  int (*PyErr_CheckSignals)(void);
  void (*PyErr_Fetch)(void **type, void **value, void **traceback);
  void *(*PyObject_CallFunction)(void *callable, const char *format, ...);
  int (*PyObject_IsTrue)(void *object);
  void (*Py_DecRef)(void *object);
  void *(*PyCapsule_GetPointer)(void *capsule, const char *name);
  void *(*PyCapsule_GetContext)(void *capsule);
} wf_python;
/* Copies them, for all of the following. Call it before other threads use the library. */
WF_API void wf_python_use(const wf_python *python);

/* All pointers are borrowed. */
typedef struct wf_python_call {
  void *callable;  /* of wf_python_progress: (stage, fraction) -> bool; of wf_python_epoch: (address
                      of the wf_rnnlm_epoch). Not called again once it has raised */
  void *raised[3]; /* the exception, as PyErr_Fetch gives it; all NULL: none */
} wf_python_call;

/* A wf_interrupt_fn, a wf_progress_fn and a wf_rnnlm_epoch_fn whose `user` is a wf_python_call. The
 * first runs handlers of signals and calls nothing else. */
WF_API bool wf_python_check(void *user);
WF_API bool wf_python_progress(void *user, const char *stage, double fraction);
WF_API void wf_python_epoch(void *user, const wf_rnnlm_epoch *epoch);
/* The destructor of a capsule whose context is the function that frees its pointer: objects go
 * without a line of Python, in which an exception would be lost. */
WF_API void wf_python_destroy(void *capsule);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_H */
