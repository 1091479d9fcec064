/* warpfst.h - weighted finite-state transducers and speech decoding, on CPUs and NVIDIA GPUs.
 *
 * This header has the decoding API, in this order:
 *
 *    1 status, errors, log, progress      4 graphs
 *    2 option tables                      5 the decoder, scorers
 *    3 symbol tables                      6 streams
 *
 * The other headers include it:
 *
 *    warpfst_io.h        outputs, score files, result files, word error rate
 *    warpfst_lm.h        n-gram and recurrent language models, and scorers made from them
 *    warpfst_lattice.h   lattices: files, n-best lists, rescoring, confidences
 *    warpfst_fst.h       transducers: building, files, operations, composition
 *    warpfst_ops.h       further operations on transducers, archives of fsts
 *    warpfst_graph.h     lexicons, HMMs, decoding graphs
 *    warpfst_compat.h    beam searches without a graph
 *    warpfst_transducer.h  decoding with transducers (RNN-T, TDT)
 *    warpfst_generation.h  phrases, language models and grammars for generators of tokens
 *    warpfst_python.h    for the Python package
 *    warpfst_all.h       all of them
 *
 * What this header has is stable: from 0.3 on, later versions only add to it. The other headers are
 * experimental until 1.0: names and structures may still change, and docs/migrating says how.
 *
 * Rules that hold everywhere
 *  - Costs are negative natural logarithms of probabilities, float32. Zero of a semiring is
 *    +infinity, One is 0.
 *  - Label 0 is epsilon. Labels and states are below 2^31.
 *  - Functions that can fail return a wf_status: WF_OK (0) or a negative error. The optional last
 *    argument `wf_error *err` (may be NULL) then holds the code and a message that names the file
 *    and place. On failure the `out` arguments are left NULL/zero and own nothing.
 *  - What a function returns through `T **out` belongs to the caller, who frees it with the
 *    matching free function, which accepts NULL. `const T *` results belong to the object that the
 *    function was called on.
 *  - Objects keep a reference to the objects they are made from (a stream to its decoder, a decoder
 *    to its graph and scorer). Free them in any order.
 *  - Immutable objects (wf_fst, wf_lm, wf_graph, wf_scorer) may be used by any number of
 *    threads at once. Mutable ones (wf_builder, wf_symbols while being filled, wf_decoder) by one
 *    thread at a time; different objects never interfere.
 *  - Paths: "-" is standard input or output. Anything gzipped is inflated on reading. Output is
 *    written under a temporary name and renamed when complete.
 *  - Names are wf_NOUN_VERB, and one verb stands for one act: `create` makes an object of others,
 *    `read` of a whole file, `open` takes a model or a file that is read or written in parts;
 *    `free` frees an object, `clear` what a structure of the caller holds; `close` completes an
 *    output, `abort` drops it. `get_view`, `get_info` and `get_stats` read a structure, other
 *    values have no verb. All verbs: docs/reference/c-calls.md.
 *  - Structures whose first field is `struct_size` are set up by their _init function, which is
 *    compiled into the caller. Fields may be added at their end: a program and a library of
 *    different versions then agree on the fields that both know. Structures that end in `reserved`
 *    keep their size; set `reserved` to zero. Other structures that the caller makes never change.
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
#define WF_VERSION_MINOR 3
#define WF_VERSION_PATCH 0

#if defined(_WIN32)
#define WF_API __declspec(dllexport)
#else
#define WF_API __attribute__((visibility("default")))
#endif

/* Marks an old name, which goes with the next version. */
#if defined(__GNUC__)
#define WF__OLD(name) __attribute__((deprecated("it is now " #name)))
#else
#define WF__OLD(name)
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
/* Sets the log callback of the process. NULL, the default: no log. Call it before other threads use
 * the library. Several threads of the library may call `fn` at once. */
WF_API void wf_set_log(wf_log_fn fn, void *user);

/* Called from time to time during a long call, on the thread that made the call. `fraction` is in
 * [0, 1], or negative when unknown; `stage` is a short phrase. Return false to cancel: the call
 * then fails with WF_ERR_CANCELLED. */
typedef bool (*wf_progress_fn)(void *user, const char *stage, double fraction);
typedef struct wf_progress {
  wf_progress_fn fn; /* NULL: none */
  void *user;
} wf_progress;

/* Sets a function for the calling thread. It is called on this thread every few hundredths of a
 * second during every long call that the thread makes. Return false to cancel, and keep returning
 * false until the call fails with WF_ERR_CANCELLED. That takes at most 0.1 s, or as long as the
 * current launch on a GPU. No file is left half-written, and all objects stay usable. A stream
 * whose chunk was not finished has failed until it is reset. NULL, the default: none. */
typedef bool (*wf_interrupt_fn)(void *user);
WF_API void wf_set_interrupt(wf_interrupt_fn fn, void *user);

/* Frees a plain array or string that the library returned. NULL is allowed. */
WF_API void wf_free(void *memory);

/* Declares wf_NAME_init for a structure whose first field is struct_size. It zeroes the structure
 * and sets struct_size to the size that the caller was compiled with. */
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
/* Sets the fields of `options`, a structure of `size` bytes, to their defaults. Fields that this
 * library does not know are set to zero. Fields beyond `size` are not written. `size` is the size
 * that the caller was compiled with, or table->struct_size. */
WF_API void wf_options_init(const wf_option_table *table, void *options, size_t size);
/* Parses `value` into the field `name` ('-' and '_' are the same in names). BOOL accepts
 * true/false/1/0/yes/no. A number of bytes may end in K, M, G or T: 2G is 2 times 2^30. A STR field
 * keeps the pointer. Errors: unknown name, malformed value, value out of range, a field beyond the
 * end of `options`. */
WF_API wf_status wf_options_set(const wf_option_table *table, void *options, const char *name,
                                const char *value, wf_error *err);
/* Checks struct_size and every range. Every call that takes options does this first. A field that
 * this library does not know, because the program is newer, must be zero (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_options_check(const wf_option_table *table, const void *options, wf_error *err);

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
    wf_options_init(wf_option_table_find(#name), options, sizeof *options);   \
  }
/* Declares a table of some of the options of another table `of`, which fills the other's structure.
 * Its _init is that of the other. */
#define WF_DECLARE_SHARED_OPTIONS(name, LIST, of)                             \
  typedef wf_##of##_options wf_##name##_options;                              \
  static inline void wf_##name##_options_init(wf_##name##_options *options) { \
    wf_##of##_options_init(options);                                          \
  }

/* =========================================================================================
 * 3  Symbol tables: words or tokens <-> integer labels
 * ========================================================================================= */

typedef struct wf_symbols wf_symbols; /* reference counted */

/* Reads lines `symbol id`, in UTF-8, separated by blanks, and names the table after the path; or a
 * binary table that OpenFst wrote, which has a name. Errors in text: a line without an id, an id
 * that is negative or above 2^31 - 1, a symbol with two ids, an id with two symbols. */
WF_API wf_status wf_symbols_read(const char *path, wf_symbols **out, wf_error *err);
/* Key (id) of a symbol, from 0 to 2^31 - 1; -1: the table does not have it, or with another key. */
WF_API int64_t wf_symbols_find(const wf_symbols *symbols, const char *text);
/* Symbol of a key, or NULL. Owned by the table. */
WF_API const char *wf_symbols_text(const wf_symbols *symbols, int64_t key);
/* Number of keys from 0 to 2^31 - 1 with a symbol. */
WF_API size_t wf_symbols_count(const wf_symbols *symbols);
/* Shares the table: each ref needs its own free. Thread-safe. */
WF_API wf_symbols *wf_symbols_ref(const wf_symbols *symbols);
WF_API void wf_symbols_free(wf_symbols *symbols);

/* =========================================================================================
 * 4  Graphs
 * ========================================================================================= */

/* A weighted finite-state transducer, such as a decoding graph or a grammar. Operations:
 * warpfst_fst.h. */
typedef struct wf_fst wf_fst; /* reference counted, immutable */

/* Reads an fst in warpfst's format or OpenFst's. For formats and errors see warpfst_fst.h. */
WF_API wf_status wf_fst_read(const char *path, wf_fst **out, wf_error *err);
/* Symbol tables of the input and output labels, or NULL. */
WF_API const wf_symbols *wf_fst_isymbols(const wf_fst *fst);
WF_API const wf_symbols *wf_fst_osymbols(const wf_fst *fst);
WF_API wf_fst *wf_fst_ref(const wf_fst *fst);
WF_API void wf_fst_free(wf_fst *fst);

/* A decoding graph: an fst over (acoustic label : word), checked and stored in the layout that the
 * decoder needs. Immutable, reference counted. */
typedef struct wf_graph wf_graph;

/* `columns`: the column of the score matrix for each input label (Kaldi's transition-id to pdf
 * table). Label l reads columns[l], 0 < l < num_columns_entries. NULL: column = label - 1. An fst
 * whose states have their epsilon-input arcs last (WF_PROP_EPSILONS_LAST) is used without a copy.
 * Any other fst is copied with its arcs in that order. Errors: empty fst, a label outside the
 * table, 2^32 - 1 arcs or more, a finite weight beyond 1e20, a cycle of epsilon-input arcs with
 * negative cost (WF_ERR_NEGATIVE_CYCLE, naming a state on it). The semiring has no effect: the
 * search is for the best path. */
WF_API wf_status wf_graph_create(const wf_fst *fst, const int32_t *columns,
                                 size_t num_columns_entries, wf_graph **out, wf_error *err);
/* The fst of the search. State and arc numbers in results refer to it. Of a token graph
 * (wf_graph_build) it is the token graph, and numbers are those of wf_graph_to_fst. */
WF_API const wf_fst *wf_graph_fst(const wf_graph *graph);
/* Number of columns that score matrices need at least. */
WF_API int32_t wf_graph_min_columns(const wf_graph *graph);
WF_API wf_graph *wf_graph_ref(const wf_graph *graph);
WF_API void wf_graph_free(wf_graph *graph);

/* Words added at run time [after Allauzen & Riley 2015, dynamic classes;
 * docs/how-to/added-words.md].
 *
 * A graph built with classes (wf_graph_options.classes, such as <contact> or <unk>) has arcs
 * whose input label is called #<contact> in its symbol table, or #{$NAME} for a class $NAME that is
 * not in angle brackets; #1<contact>, #1{$NAME} if its topology is
 * transducer. They match nothing until words are added. The new graph shares the arrays of its base
 * and only needs memory for the phrases. So each utterance and each stream may have its own graph
 * (wf_utterance, wf_stream_set_graph). Results are those of the fst that wf_graph_to_fst makes.
 *
 * A word has an output label, which appears in results, and the input labels of its tokens (label =
 * column + 1), without blanks. The graph's word table need not have the output label. The label
 * is emitted as early as the phrases of the class allow. `cost` is -ln P(phrase | class), in nats,
 * and is added to the grammar's cost of the class. Models give <unk> too low a probability for
 * words that are likely to be said; there -wf_boost_by_length(phrase, WF_BOOST_PER_LETTER) fits. If
 * a phrase is given twice, with the same labels and words, the lower cost is used. `word_class` may
 * be NULL if the graph has one class. To fill a second class, call this again with the result.
 * Everything is copied. If the graph has a token between words, such as |, it also stands between
 * the words of a phrase; labels of it at the ends of a word are left out.
 *
 * Errors: there is no such class, or it already has words; a label that is not a token; a word
 * without labels; a cost that is not finite; a topology other than correct, compact and transducer
 * (WF_ERR_UNSUPPORTED); 2^31 states or more, where the states of the phrases count once for each arc of the class
 * (WF_ERR_LIMIT). */
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
/* Number of classes of the graph, and the name of class i, such as "<contact>" (NULL unless 0 <= i
 * < num_classes). */
WF_API int32_t wf_graph_num_classes(const wf_graph *graph);
WF_API const char *wf_graph_class(const wf_graph *graph, int32_t i);

/* =========================================================================================
 * 5  The decoder, scorers
 * ========================================================================================= */

/* Options of the search. docs/reference/semantics.md defines the computation exactly. Every backend
 * gives the same bits. */
enum { WF_RECOMBINE_PAIR, WF_RECOMBINE_STATE };
enum { WF_CHECK_SCORES_WARN, WF_CHECK_SCORES_ERROR, WF_CHECK_SCORES_OFF };
#define WF_DECODER_OPTIONS(X)                                                                     \
  X(F32, beam, 15, 0, 1e30, "nats", "keep tokens within this cost of the frame's best token")     \
  X(I32, max_active, 10000, 1, 2147483647, "states",                                              \
    "expand at most this many tokens per frame, best first")                                      \
  X(I32, min_active, -1, -1, 2147483647, "arcs",                                                  \
    "widen the beam to keep at least this many candidates (at most max_active); -1: 20 for CTC "  \
    "graphs, 200 for others")                                                                     \
  X(I32, max_tokens, 28000, 1, 1073741823, "states",                                              \
    "maximum number of tokens per frame; beyond it the beam narrows. Raised to max_active if "    \
    "lower")                                                                                      \
  X(F32, acoustic_scale, 1, 0, 1e6, "",                                                           \
    "factor on the log-likelihoods; with a transducer, on beam and lattice_beam, too (unless 0)") \
  X(F32, word_score, 0, -1e6, 1e6, "nats", "added per word; a positive score gives more words")   \
  X(I32, blank, -1, -1, 2147483647, "column",                                                     \
    "column of the CTC blank or of silence, which ends words; -1: that of a CTC graph, or none "  \
    "with others")                                                                                \
  X(F32, blank_penalty, 0, -1e6, 1e6, "nats",                                                     \
    "subtracted from the blank's log-likelihood; positive makes fewer deletions")                 \
  X(F32, blank_skip_threshold, 1, 0, 1, "probability",                                            \
    "skip frames whose blank probability exceeds this, except the first of each run; 1: none")    \
  X(F32, lattice_beam, 0, 0, 1e30, "nats",                                                        \
    "make lattices of the paths within this cost of the best path (8 is usual); 0: no lattices")  \
  X(I32, lattice_prune_interval, 25, 1, 2147483647, "frames",                                     \
    "frames between two backward prunings of the lattice; affects memory and time, not the "      \
    "lattice")                                                                                    \
  X(I32, num_threads, 0, 0, 4096, "threads",                                                      \
    "utterances decoded in parallel on the CPU, or threads that feed the GPUs; 0: one per "       \
    "processor")                                                                                  \
  X(STR, device, 0, 0, 0, "cpu|cuda[:N,...]",                                                     \
    "where to search; the results are the same: cpu, cuda, cuda:1, cuda:0,1, cuda:all (default: " \
    "cpu)")                                                                                       \
  X(I64, gpu_memory, 0, 0, 1e15, "bytes",                                                         \
    "memory limit of each GPU, graph included; 0: the free memory")                               \
  X(ENUM, recombine, 0, 0, 0, "pair|state",                                                       \
    "with a scorer: recombine tokens with the same state and context (exact), or with the same "  \
    "state (fewer tokens, no lattices)")                                                          \
  X(ENUM, check_scores, 0, 0, 0, "warn|error|off",                                                \
    "if scores look wrong, or max_active is reached in most frames: log a warning (once per "     \
    "cause), fail the utterance, or do nothing. Probabilities and costs fail unless off")         \
  X(I32, max_hypotheses, 16, 1, 1000000, "tokens",                                                \
    "with a transducer: expand at most this many tokens in each step of a frame, best first")     \
  X(I32, max_symbols, 3, 1, 1000000, "symbols", "with a transducer: at most so many in a frame")  \
  X(BOOL, greedy, 0, 0, 1, "",                                                                    \
    "with a transducer: take the best symbol of each step, without alternatives")
WF_DECLARE_OPTIONS(decoder, WF_DECODER_OPTIONS)

/* What check_scores detects. A CTC graph (its input symbols are tokens and a blank) expects
 * log-posteriors of these tokens. With a CTC graph some frames of an utterance are examined, and
 * the message names the problem: probabilities, base-10 logarithms, negated or transposed scores, a
 * number of columns other than that of tokens, logits or likelihoods (the probabilities of a frame
 * sum to far less or more than 1), a blank in another column. With any graph, it is detected that
 * max_active cut the beam in most frames. Results stay the same, except that `error` fails the
 * utterance. Probabilities and negated scores, of which none is below 0, fail it with `warn`, too.
 * docs/reference/semantics.md states which utterances are examined. */

typedef struct wf_decoder wf_decoder;
/* The option `device` is "cpu", "cuda" (GPU 0), "cuda:2", "cuda:0,1" or "cuda:all". Several GPUs
 * share each batch. A GPU named twice gets two workers. Errors: a GPU does not exist or the library
 * has no GPU backend (WF_ERR_DEVICE); the graph does not fit into a GPU's memory
 * (WF_ERR_MEMORY). */
WF_API wf_status wf_decoder_create(const wf_graph *graph, const wf_decoder_options *options,
                                   wf_decoder **out, wf_error *err);
/* Open streams stay usable: the decoder's memory is freed with the last of them. */
WF_API void wf_decoder_free(wf_decoder *decoder);
/* Sets the CUDA stream that the decoder waits for. wf_decode on a GPU then waits for the work that
 * is in `stream` (a cudaStream_t) when it is called, such as the kernels that compute the scores.
 * The stream is borrowed and must outlive its use. NULL, the default: the legacy default stream.
 * Errors: a decoder on the CPU (WF_ERR_UNSUPPORTED) or on several GPUs (WF_ERR_ARGUMENT, since a
 * stream belongs to one GPU). */
WF_API wf_status wf_decoder_set_stream(wf_decoder *decoder, void *stream, wf_error *err);

typedef enum wf_dtype { WF_FLOAT32 = 0, WF_FLOAT16 = 1, WF_BFLOAT16 = 2 } wf_dtype;

/* Log-likelihoods or log-posteriors of one utterance (natural logarithms). Frame t, column c is
 * data[t * stride + c]. -infinity: impossible. NaN, +infinity and finite values beyond 1e20 fail
 * the utterance. Columns from wf_graph_min_columns on are ignored. Borrowed for the duration of the
 * call. */
typedef struct wf_scores {
  const void *data;
  int64_t num_frames;
  int32_t num_columns;
  int64_t stride; /* elements from one frame to the next, >= num_columns */
  wf_dtype dtype;
  /* true: data is in a GPU's memory, and complete once the work in the stream of
   * wf_decoder_set_stream is done (or in the legacy default stream of that GPU). A decoder with
   * several GPUs copies scores from those that have more to others that have less; a GPU that is
   * none of the decoder's works, too, with a warning (WF_LOG_WARNING) since the scores are copied.
   * false: in host memory */
  bool on_device;
  uint64_t reserved[2];
} wf_scores;

/* A batch as one tensor [utterance, frame, column], padded to the longest utterance. Utterances may
 * share memory and lie between each other: a tensor [frame, utterance, column] has frame_stride =
 * num_utterances * num_columns and utterance_stride = num_columns. */
typedef struct wf_padded_scores {
  const void *data;
  size_t num_utterances;
  int64_t max_frames;
  int32_t num_columns;
  int64_t utterance_stride, frame_stride; /* elements; 0: packed (frame_stride = num_columns,
                                             utterance_stride = max_frames * frame_stride) */
  const int64_t *lengths; /* [num_utterances]; number of frames of each, at most max_frames; NULL:
                             all have max_frames */
  wf_dtype dtype;
  bool on_device;
  uint64_t reserved[2];
} wf_padded_scores;
/* Fills `scores` [num_utterances], an array of the caller, with one view for each utterance of the
 * tensor, for wf_decode. No data is copied. Errors: a length outside [0, max_frames], a negative
 * stride, frames of an utterance that overlap. */
WF_API wf_status wf_scores_from_padded(const wf_padded_scores *padded, wf_scores *scores,
                                       wf_error *err);

/* One word of the best path. It spans the frames [start_frame, end_frame), from the first frame of
 * its first token (or phone) to the last frame of its last token. Without a word aligner in the
 * graph, times are estimates: a word lasts from the frame of its output label to that of the next
 * output label, which can be late. */
typedef struct wf_word {
  int32_t label; /* olabel */
  int32_t start_frame, end_frame;
} wf_word;

enum {
  WF_RESULT_NOT_FINAL = 1 << 0, /* at the end no token was in a final state; the path is that of the
                                   best token, without a final cost */
  WF_RESULT_NARROWED = 1 << 1,  /* max_active cut the beam in at least one frame */
  WF_RESULT_DIED =
      1 << 2, /* no token survived frame `num_decoded`; the words are those before it */
  WF_RESULT_OVERFLOW = 1 << 3, /* max_tokens cut the beam in at least one frame */
};

/* The result of one utterance. Owned by the caller: wf_result_free. */
typedef struct wf_result {
  wf_status status; /* WF_OK, or the error of this utterance. After an error only `message` and
                       `num_frames` are valid */
  char message[256];
  uint32_t flags; /* WF_RESULT_* */
  int64_t num_frames;
  int64_t num_decoded;  /* frames consumed: num_frames unless WF_RESULT_DIED */
  double cost;          /* of the best path, nats: graph_cost + acoustic_cost + scorer_cost */
  double graph_cost;    /* arc weights (minus word_score per word) and the final cost */
  double acoustic_cost; /* -acoustic_scale * log-likelihoods */
  wf_word *words;       /* [num_words] */
  size_t num_words;
  int32_t
      *alignment; /* [num_decoded]; input label of each frame; 0: skipped (blank_skip_threshold) */
  uint64_t num_tokens; /* sums over frames: tokens kept, tokens expanded, arcs visited, frames
                          narrowed by max_active */
  uint64_t num_expanded;
  uint64_t num_arcs;
  uint64_t num_narrowed;
  struct wf_lattice *lattice; /* every path within lattice_beam of the best path; NULL if
                         lattice_beam is 0, or if it was determinized and is not kept
                         (wf_decoder_set_lattice_results). Freed with the result; use
                         wf_lattice_ref to keep it. 2^31 states or more fail the utterance */
  double scorer_cost; /* part of `cost`: the scorer's costs of the words and, if the path is final,
                         of the end; 0 without a scorer */
  size_t num_estimated; /* words with estimated times. Without a word aligner
                           (wf_graph_word_aligner): all. With one: words with labels that match none
                           of their pronunciations, such as a last word that is cut off */
  struct wf_determinized
      *determinized; /* `lattice` determinized; NULL unless wf_decoder_set_determinization enabled
                        it. Freed with the result. The caller may take determinized->lattice and set
                        it to NULL */
  struct wf_lattice_results *lattice_results; /* what was made of `determinized`; NULL unless
                                                 wf_decoder_set_lattice_results requested
                                                 something, and if determinization failed. Freed
                                                 with the result */
} wf_result;
WF_API void wf_result_free(wf_result *result);

/* A scorer adds costs that are not in the graph to each word when it is hypothesised, before
 * pruning. A scorer is a deterministic automaton over words, made on demand: step(context, word) ->
 * (cost, next context), final(context) -> cost. The decoder searches `graph o scorer` without
 * building it. The result equals that of decoding the composed graph, up to the beam. Words are
 * output labels of the graph. Immutable, reference counted, usable by any number of decoders and
 * threads at once. GPUs support boosts, n-gram models, recurrent models without lattices, and
 * chains of up to three of these (others: WF_ERR_UNSUPPORTED; the message names the scorer). */
typedef struct wf_scorer wf_scorer;
WF_API wf_scorer *wf_scorer_ref(const wf_scorer *scorer);
WF_API void wf_scorer_free(wf_scorer *scorer);
/* Subtracts boosts[i] nats from the cost of words[i] wherever it is hypothesised. A boost may be
 * negative; at most beam / 2 is advised. The arrays are copied. Errors: a label that is not
 * positive, a boost beyond 1e20, a word with two different boosts. */
WF_API wf_status wf_scorer_boost_words(const int32_t *words, const float *boosts, size_t count,
                                       wf_scorer **out, wf_error *err);
/* Subtracts boosts[i] nats for each occurrence of phrase i, which is words[phrase_off[i]] ..
 * words[phrase_off[i + 1] - 1] (phrase_off has count + 1 entries). At most beam / 2 per phrase is
 * advised. Each word of a phrase gets its share of the boost at once, so that the phrase survives
 * the beam. If the phrase is not completed, the shares are refunded. The total of a result is the
 * sum of the boosts of all its phrases, overlapping ones included. If phrases share a prefix, the
 * largest share is given in advance. A step takes a few hash look-ups, so tens of thousands of
 * phrases are possible (Aho & Corasick 1975). The arrays are copied. Errors: an empty phrase, a
 * label that is not positive, a boost beyond 1e6, a phrase with two different boosts. */
WF_API wf_status wf_scorer_boost_phrases(const int32_t *words, const uint64_t *phrase_off,
                                         const float *boosts, size_t count, wf_scorer **out,
                                         wf_error *err);
/* A boost for a phrase whose user gives none: per_letter nats for each letter of the text (UTF-8;
 * words are separated by spaces or tabs; at most 12 letters of a word count, so that a word stays
 * within half of the default beam). Short words are mistaken for others more often than long ones,
 * so weak boosts by length cause fewer false alarms than equal ones. per_letter NaN stands for the
 * default, which depends on the number of words: phrases are mistaken less often than single words
 * (docs/how-to/hotwords.md). In names of tokens, U+2581 or ## tell where words begin. */
#define WF_BOOST_PER_LETTER 0.6f
#define WF_BOOST_PER_LETTER_OF_PHRASES 1.0f /* of two words or more */
WF_API float wf_boost_by_length(const char *phrase, float per_letter);
/* Makes a scorer whose costs are the sums of those of two scorers. */
WF_API wf_status wf_scorer_chain(const wf_scorer *first, const wf_scorer *second, wf_scorer **out,
                                 wf_error *err);
/* Sets the scorer of utterances that have none themselves. NULL, the initial value: none. */
WF_API wf_status wf_decoder_set_scorer(wf_decoder *decoder, const wf_scorer *scorer, wf_error *err);
/* One utterance of a batch. Everything is borrowed for the call. */
typedef struct wf_utterance {
  wf_scores scores;
  const wf_scorer *scorer; /* NULL: the decoder's scorer */
  const wf_graph *graph;   /* NULL: the decoder's graph. Else the decoder's graph with added words
                              (wf_graph_add_phrases) */
  uint64_t reserved[4];
} wf_utterance;
/* Decodes `count` utterances. results[i] receives the result of utterance i, also if that utterance
 * failed. The array is the caller's. The result of an utterance does not depend on the others, on
 * their order, or on num_threads. If the call itself fails (bad arguments, out of memory,
 * cancelled, a graph other than the decoder's), all results are NULL. On GPUs a graph and its added
 * words may have 2^31 - 2 arcs in total (WF_ERR_LIMIT). */
WF_API wf_status wf_decode(wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                           const wf_progress *progress, wf_result **results, wf_error *err);

/* The size of a batch, for planning its memory. */
typedef struct wf_batch_shape {
  size_t num_utterances;
  int64_t max_frames; /* of the longest utterance */
  int64_t sum_frames; /* of all utterances; 0: num_utterances * max_frames */
  wf_dtype dtype;
  bool on_device;         /* all scores are already on the GPU that searches them */
  int32_t num_processors; /* 0: plan for the GPU of options.device. Else plan for a GPU with this
                             many multiprocessors (H200: 132), which need not be present. Its memory
                             is options.gpu_memory (0: no limit) */
  uint64_t reserved[4];
} wf_batch_shape;

/* Memory of decoding on each GPU, in bytes. Includes all allocations. */
typedef struct wf_plan {
  uint64_t graph_bytes; /* the graph, language models and boosts */
  uint64_t lane_bytes;  /* work space of the utterances searched at the same time; grows with
                           max_tokens */
  uint64_t trace_bytes; /* token history of these utterances, sized for max_tokens in every frame if
                           that fits, else the remaining memory. An utterance that needs more is
                           decoded on the CPU, with the same result */
  uint64_t score_bytes; /* buffers for scores copied from host memory. Not included: scores that are
                           copied from one GPU to another need their size on both */
  uint64_t result_bytes;    /* utterances and paths */
  uint64_t total_bytes;     /* sum of the above */
  uint64_t available_bytes; /* the limit: gpu_memory or the free memory; UINT64_MAX: unknown */
  uint64_t pinned_bytes;    /* page-locked host memory, for each GPU */
  int32_t num_gpus;         /* workers of the decoder; 0 on the CPU, which has no plan */
  int32_t lane_blocks;      /* thread blocks that search one utterance; long ones may get more */
  int32_t num_lanes;        /* utterances searched on a GPU at the same time */
  uint64_t reserved[8];
} wf_plan;
/* Returns the memory plan of wf_decode for a batch of this shape, on the options' device. Allocates
 * nothing on the GPU. Errors: WF_ERR_MEMORY, as from wf_decode, if the smallest plan does not fit
 * (the message has the needed and available bytes and the option to lower); WF_ERR_LIMIT if
 * max_tokens is above the limit of the GPU search; WF_ERR_DEVICE as for wf_decoder_create. */
WF_API wf_status wf_plan_batch(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_batch_shape *shape, wf_plan *out, wf_error *err);
/* Returns the largest plan that the decoder has used so far. On the CPU all fields are 0. Before
 * the first batch only the fields of the graph are set. */
WF_API void wf_decoder_get_plan(const wf_decoder *decoder, wf_plan *out);
/* =========================================================================================
 * 6  Streams
 *
 * A stream is an utterance whose scores come in chunks: wf_stream_create, chunks, wf_stream_finish,
 * then wf_stream_reset for the next utterance, or wf_stream_free. The result, lattice included, is
 * bit for bit that of wf_decode for all scores in one matrix. It does not depend on the chunks or
 * on other work of the decoder. The committed prefix, which all tokens share, is removed from the
 * search. So memory grows with the rest, not with the audio (docs/engineering/streaming.md has
 * figures). Streams work on CPUs and GPUs. They belong to their decoder: one thread at a time uses
 * the decoder and its streams. A stream keeps its decoder alive, so either may be freed first.
 * ========================================================================================= */

/* Endpointing: five rules, as in Kaldi, applied after each chunk. Times are in seconds
 * (frame_shift per frame). A rule holds if all of these do:
 *  - The silence at the end of the best path lasts at least min_trailing_silence.
 *  - The best token in a final state costs at most max_relative_cost more than the best token.
 *  - The utterance is at least min_utterance_length long.
 *  - If must_contain_nonsilence: the utterance is not all silence.
 * The best path is that of wf_stream_partial. Skipped frames count as silence. If no column of the
 * graph does, a warning (WF_LOG_WARNING) says once that rules that wait for silence never fire. */
#define WF__ENDPOINT_RULE(X, n, contain, trailing, cost, length)                         \
  X(BOOL, rule##n##_must_contain_nonsilence, contain, 0, 1, "",                          \
    "endpoint rule " #n ": only after speech")                                           \
  X(F32, rule##n##_min_trailing_silence, trailing, 0, 1e30, "seconds",                   \
    "endpoint rule " #n ": minimum silence at the end")                                  \
  X(F32, rule##n##_max_relative_cost, cost, 0, 1e30, "nats",                             \
    "endpoint rule " #n                                                                  \
    ": maximum cost of a final state above the best token; 1e30: no final state needed") \
  X(F32, rule##n##_min_utterance_length, length, 0, 1e30, "seconds",                     \
    "endpoint rule " #n ": minimum length of the utterance")
#define WF_STREAM_OPTIONS(X)                                                                       \
  X(F32, frame_shift, 0.01, 1e-6, 1e6, "seconds",                                                  \
    "duration of a frame of the scores, for endpoint rules")                                       \
  X(STR, silence, 0, 0, 0, "COLUMNS",                                                              \
    "columns that are silence, such as 0,7-9, for endpoint rules; the decoder's blank is always "  \
    "one of them")                                                                                 \
  X(BOOL, forget, 0, 0, 1, "",                                                                     \
    "drop words, except the last, once a partial result has returned them as stable; this bounds " \
    "memory. The final result has only the remaining words and no alignment")                      \
  WF__ENDPOINT_RULE(X, 1, 0, 5, 1e30, 0)                                                           \
  WF__ENDPOINT_RULE(X, 2, 1, 0.5, 2, 0)                                                            \
  WF__ENDPOINT_RULE(X, 3, 1, 1, 8, 0)                                                              \
  WF__ENDPOINT_RULE(X, 4, 1, 2, 1e30, 0)                                                           \
  WF__ENDPOINT_RULE(X, 5, 0, 0, 1e30, 20)
WF_DECLARE_OPTIONS(stream, WF_STREAM_OPTIONS)

typedef struct wf_stream wf_stream;
/* Makes a stream. There may be thousands: one without scores takes two kilobytes. On a GPU it
 * also takes 8 * max_tokens bytes of GPU memory, or twice that with a scorer. A stream belongs to
 * one of the decoder's GPUs, the one with the fewest streams. Errors: WF_ERR_UNSUPPORTED if the
 * decoder's scorer works on the CPU only; WF_ERR_MEMORY if the GPU has no memory left; a malformed
 * list of silence columns. */
WF_API wf_status wf_stream_create(wf_decoder *decoder, const wf_stream_options *options,
                                  wf_stream **out, wf_error *err);
/* Frees the stream; an unfinished utterance is dropped. NULL is allowed. */
WF_API void wf_stream_free(wf_stream *stream);
/* As wf_stream_free, but any thread may call it, even while another thread uses the decoder. The
 * stream is freed when the decoder is next used or freed. */
WF_API void wf_stream_abandon(wf_stream *stream);

/* Sets the scorer of this stream, which resets keep; NULL: none. Initially it is the scorer that
 * the decoder had at wf_stream_create. In mid-utterance the new scorer starts from each token's own
 * word history. It does not rescore it: costs already added stay, except partial-phrase boosts,
 * which are refunded. `scorer_cost` of the result is then a sum: words that were committed while a
 * scorer was set count with its cost, the remaining words with that of the last scorer. Tokens with
 * the same state and context under the new scorer recombine at once. In mid-utterance, setting the
 * scorer that the stream has does nothing. Errors: WF_ERR_STATE in mid-utterance if lattices are
 * made. */
WF_API wf_status wf_stream_set_scorer(wf_stream *stream, const wf_scorer *scorer, wf_error *err);

/* Sets the graph of this stream, which resets keep: the decoder's graph (or NULL), or the decoder's
 * graph with added words (wf_graph_add_phrases). The stream keeps a reference while it needs the
 * graph. Errors: WF_ERR_STATE in the middle of an utterance; WF_ERR_ARGUMENT for another graph. */
WF_API wf_status wf_stream_set_graph(wf_stream *stream, const wf_graph *graph, wf_error *err);

/* The state of a stream after a chunk. */
typedef struct wf_stream_event {
  int32_t endpoint;        /* 0: none; 1 to 5: the first rule that holds. The stream does not end
                              automatically: finish and reset it, or continue */
  int64_t num_frames;      /* frames accepted since the last reset */
  double trailing_silence; /* seconds */
  double relative_cost;    /* of the best token in a final state, above the best token, nats;
                              +infinity: none is final */
  uint64_t reserved[4];
} wf_stream_event;

/* Decodes the next chunk of each of `count` different streams of the decoder, with all its threads.
 * A chunk may have any number of frames. It may be empty; `data` may then be NULL. Chunks are
 * borrowed for the call. events[i] receives the state of stream i. If `events` is NULL, endpoint
 * rules are not computed. Bad scores or a failed search fail only their own stream, as in
 * wf_decode: further chunks of it are ignored, and wf_stream_finish returns the error. Errors:
 * WF_ERR_STATE for a finished stream and WF_ERR_ARGUMENT for a duplicate stream or one of another
 * decoder, both before any work; WF_ERR_MEMORY, after which the streams that got no memory have
 * failed. */
WF_API wf_status wf_streams_advance(wf_decoder *decoder, wf_stream *const *streams,
                                    const wf_scores *chunks, size_t count, wf_stream_event *events,
                                    wf_error *err);
/* wf_streams_advance for one stream. */
WF_API wf_status wf_stream_advance(wf_stream *stream, const wf_scores *chunk,
                                   wf_stream_event *event, wf_error *err);

/* The best hypothesis so far: the path of the best token, whether or not its state is final. */
typedef struct wf_partial {
  const wf_word *words; /* [num_words]; frames count from the last reset. Owned by the stream, valid
                           until the next call with it */
  size_t num_words;
  size_t num_stable; /* the first num_stable words will not change, except for the times of the last
                        of them */
  size_t num_estimated;  /* words with estimated times, as in wf_result */
  int64_t num_frames;    /* accepted */
  int64_t stable_frames; /* the path of the first stable_frames frames will not change */
  int64_t start_frame;   /* frames accepted before the last reset */
  uint32_t flags;        /* WF_RESULT_NARROWED, _DIED, _OVERFLOW so far */
  uint64_t reserved[4];
} wf_partial;
/* Returns the partial result. Errors: WF_ERR_STATE for a finished stream; the stream's own error if
 * it has failed. */
WF_API wf_status wf_stream_partial(wf_stream *stream, wf_partial *out, wf_error *err);
/* Returns the partial results of several streams, out[count], made by the decoder's threads. A
 * stream that has failed gets an empty one. Errors: WF_ERR_STATE if a stream is finished,
 * WF_ERR_ARGUMENT if it belongs to another decoder or occurs twice, WF_ERR_MEMORY. */
WF_API wf_status wf_streams_partial(wf_decoder *decoder, wf_stream *const *streams, size_t count,
                                    wf_partial *out, wf_error *err);
/* Ends the utterance and returns its result, as from wf_decode. After that only reset and close are
 * possible. */
WF_API wf_status wf_stream_finish(wf_stream *stream, wf_result **out, wf_error *err);
/* Makes the stream, finished or not, ready for a new utterance; frames count from 0 again. */
WF_API wf_status wf_stream_reset(wf_stream *stream, wf_error *err);
/* Returns the memory of the stream between chunks in bytes, results and lattice history included.
 */
WF_API uint64_t wf_stream_bytes(const wf_stream *stream);

/* The number of streams on GPUs, for planning their memory. */
typedef struct wf_stream_shape {
  size_t num_streams; /* open at the same time; 0: as many as fit */
  bool scored; /* some streams have a scorer or added words. The plan then assumes that all have */
  int32_t num_processors; /* as in wf_batch_shape */
  uint64_t reserved[4];
} wf_stream_shape;

/* Memory of streams on each GPU, in bytes. Includes all allocations except scorers and added words.
 */
typedef struct wf_stream_plan {
  uint64_t graph_bytes;
  uint64_t lane_bytes; /* work space of the chunks searched at the same time; does not depend on the
                          number of streams */
  uint64_t stream_bytes; /* per open stream: its newest tokens; grows with max_tokens. The rest of a
                            stream is in host memory (wf_stream_bytes) */
  uint64_t total_bytes;  /* the graph, the lanes, and this GPU's share of the streams */
  uint64_t available_bytes; /* the limit: gpu_memory or the free memory; UINT64_MAX: unknown */
  uint64_t pinned_bytes;    /* page-locked host memory, for each GPU */
  uint64_t max_streams;     /* maximum number of open streams, over all GPUs */
  int32_t num_gpus;         /* workers of the decoder; 0 on the CPU, which has no plan */
  int32_t num_lanes;  /* thread blocks on each GPU, which is the number of chunks searched at the
                         same time with one block each */
  int32_t max_chunks; /* maximum number of chunks per launch on each GPU; wf_streams_advance
                         launches as often as needed */
  uint64_t reserved[8];
} wf_stream_plan;
/* Returns the memory plan of wf_stream_create on the options' device. Allocates nothing on the GPU.
 * If otherwise not even one stream fits, the plan has fewer lanes, but at least 8. Errors:
 * WF_ERR_MEMORY if the streams or the smallest plan do not fit (the message has the needed and
 * available bytes and the option to lower); others as for wf_plan_batch. */
WF_API wf_status wf_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                                 const wf_stream_shape *shape, wf_stream_plan *out, wf_error *err);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_options_init) void wf_config_init(const wf_option_table *table,
                                                           void *options, size_t size) {
  wf_options_init(table, options, size);
}
static inline WF__OLD(wf_options_set) wf_status
    wf_config_set(const wf_option_table *table, void *options, const char *name, const char *value,
                  wf_error *err) {
  return wf_options_set(table, options, name, value, err);
}
static inline WF__OLD(wf_options_check) wf_status
    wf_config_check(const wf_option_table *table, const void *options, wf_error *err) {
  return wf_options_check(table, options, err);
}
static inline WF__OLD(wf_plan_batch) wf_status
    wf_plan_bytes(const wf_graph *graph, const wf_decoder_options *options,
                  const wf_batch_shape *shape, wf_plan *out, wf_error *err) {
  return wf_plan_batch(graph, options, shape, out, err);
}
static inline WF__OLD(wf_decoder_get_plan) void wf_decoder_plan(const wf_decoder *decoder,
                                                                wf_plan *out) {
  wf_decoder_get_plan(decoder, out);
}
static inline WF__OLD(wf_stream_create) wf_status
    wf_stream_open(wf_decoder *decoder, const wf_stream_options *options, wf_stream **out,
                   wf_error *err) {
  return wf_stream_create(decoder, options, out, err);
}
static inline WF__OLD(wf_stream_free) void wf_stream_close(wf_stream *stream) {
  wf_stream_free(stream);
}
static inline WF__OLD(wf_stream_advance) wf_status
    wf_stream_accept(wf_stream *stream, const wf_scores *chunk, wf_stream_event *event,
                     wf_error *err) {
  return wf_stream_advance(stream, chunk, event, err);
}
static inline WF__OLD(wf_streams_partial) wf_status
    wf_streams_partials(wf_decoder *decoder, wf_stream *const *streams, size_t count,
                        wf_partial *out, wf_error *err) {
  return wf_streams_partial(decoder, streams, count, out, err);
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_H */
