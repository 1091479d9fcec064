/* warpfst_lm.h - n-gram and recurrent language models, and scorers made from them. The rules at the
 * top of warpfst.h apply here too. */
#ifndef WARPFST_LM_H
#define WARPFST_LM_H

#include "warpfst_fst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  n-gram language models
 * ========================================================================================= */

/* A back-off n-gram model: a deterministic automaton. A state is a history: the last words. It
 * exists if it is the context of an n-gram or has a back-off weight. State 0 is the empty history.
 * p(w | h) is the probability of the explicit n-gram if there is one. Otherwise it is the back-off
 * weight of h times p(w | h without its oldest word). Back-off is a failure transition: it is taken
 * only if there is no explicit n-gram. Words are labels of a symbol table. docs/how-to/lm.md has
 * the rules for irregular files.
 *
 * A model is in memory, or in a memory-mapped .wlm file, which is not read until it is queried.
 * Queries use the form that the model was opened in. Calls that need the other form make it once,
 * from any thread, and the model keeps it: a scorer needs the mapped form (a temporary file in
 * $TMPDIR, by default /tmp); pruning, mixing, graphs, acceptors, ARPA files and scorers from
 * recurrent models need the form in memory. Errors of making it name the file: WF_ERR_LIMIT if a
 * mapped model is too large for memory (2^31 - 1 states), WF_ERR_ARGUMENT for a difference of two
 * models, which serves only for queries, scorers and acceptors with failure arcs. */
typedef struct wf_lm wf_lm; /* reference counted, immutable, any thread */

#define WF_LM_MAX_ORDER 16

enum { WF_OOV_UNK, WF_OOV_SKIP, WF_OOV_ERROR };
#define WF_ARPA_OPTIONS(X)                                                                        \
  X(STR, bos_symbol, 0, 0, 0, "SYMBOL", "word that starts a sentence (default: <s>)")             \
  X(STR, eos_symbol, 0, 0, 0, "SYMBOL", "word that ends a sentence (default: </s>)")              \
  X(STR, unk_symbol, 0, 0, 0, "SYMBOL", "word for unknown words (default: <unk>, or else <UNK>)") \
  X(ENUM, oov, 0, 0, 0, "unk|skip|error",                                                         \
    "words of the LM that the given table lacks: map them to the unknown word (skip them if the " \
    "table lacks it), skip them, or fail")
WF_DECLARE_OPTIONS(arpa, WF_ARPA_OPTIONS)

/* Counts of an ARPA reader. Set up with wf_arpa_stats_init. */
typedef struct wf_arpa_stats {
  size_t struct_size;
  int32_t order;
  uint64_t num_lines[WF_LM_MAX_ORDER + 1]; /* n-grams in the file, by order from 1 */
  uint64_t num_refused;     /* n-grams left out: <s> is not first, or </s> is not last */
  uint64_t num_positive;    /* probabilities just above 1 (up to 10^0.001): set to 1 */
  uint64_t num_oov_words;   /* words that the given table lacks */
  uint64_t num_oov_skipped; /* n-grams left out because of such a word */
  uint64_t num_oov_merged;  /* n-grams added to the probability of the unknown word */
  uint64_t num_created; /* n-grams added as contexts of others, at their backed-off probability */
} wf_arpa_stats;
WF_DECLARE_INIT(arpa_stats)

/* Opens a model and detects its format from the content: ARPA, plain or gzipped; KenLM's binary
 * trie (`build_binary trie`); CMU Sphinx's trie language model (`en-us.lm.bin`); a .wlm file, made
 * by wf_lm_convert, which is mapped. Other files are read into memory. "-" is standard input.
 * Labels come from `words`. NULL makes a table of the LM's words in the order of the file, with
 * <eps> = 0. A given table need not have <s>, </s> and <unk>. `stats` may be NULL. Irregular but
 * usable lines are counted there and logged as warnings. `options` have no effect on a .wlm file,
 * except oov: with words to be added to the unknown word it is read into memory.
 * Errors name the path, and the line, the byte or the n-gram: WF_ERR_FORMAT for a malformed file
 * (wrong number of fields, NaN, counts that differ from the header's, a word without a unigram, a
 * duplicate n-gram, no <s>, no \end\; a truncated .wlm file or a damaged header), WF_ERR_LIMIT above
 * WF_LM_MAX_ORDER. The checksums of all sections are checked in .wlm files of up to 256 MB;
 * wf_lm_verify checks larger ones. Queries are memory-safe for any content of the file. */
WF_API wf_status wf_lm_open(const char *path, const wf_symbols *words,
                            const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                            const wf_progress *progress, wf_error *err);
/* The same in mapped form: a file of another format is converted first, into a file in $TMPDIR (by
 * default /tmp) that goes with the model. For scorers, and for models larger than memory. */
WF_API wf_status wf_lm_open_mapped(const char *path, wf_lm **out, wf_error *err);
WF_API wf_lm *wf_lm_ref(const wf_lm *lm);
WF_API void wf_lm_free(wf_lm *lm);

/* Set up with wf_lm_info_init. */
typedef struct wf_lm_info {
  size_t struct_size;
  int32_t order;
  uint64_t num_ngrams[WF_LM_MAX_ORDER + 1]; /* explicit n-grams, by order from 1 */
  uint64_t num_words;                       /* words with a unigram, except <s>, </s>, <unk> */
  uint64_t num_states;
  uint64_t num_arcs;     /* in memory: n-grams not ending in </s>; mapped: n-grams above order 1 */
  uint64_t num_bytes;    /* of the model in memory, without the word table, or of the .wlm file */
  int32_t bos, eos, unk; /* labels in the word table; -1: none */
  bool has_unk;          /* the model has a probability for unknown words */
  bool mapped;           /* queries read a .wlm file, which the rest is about */
  bool difference;       /* of two models */
  bool packed;
  int32_t cost_bits;    /* 32: exact */
  float scale;          /* of the large model's costs */
  uint64_t index_bytes; /* everything but arcs and words. A GPU keeps it when the arcs are in host
                           memory */
  uint64_t table_bytes; /* of the table of wf_lm_make_table; 0: none */
} wf_lm_info;
WF_DECLARE_INIT(lm_info)
WF_API wf_status wf_lm_get_info(const wf_lm *lm, wf_lm_info *info, wf_error *err);
/* The word table: the one given to wf_lm_open, or the model's own. Owned by the model. */
WF_API const wf_symbols *wf_lm_words(const wf_lm *lm);
/* True if the model has a unigram for this word. False for <s>, </s>, <unk>, and labels outside the
 * table, which are unknown words. */
WF_API bool wf_lm_knows(const wf_lm *lm, int32_t word);

/* Queries: exact (failure) semantics. Costs are in nats, summed in float32 in the order of the
 * back-off steps; in a difference, they may be negative. Thread-safe. wf_lm_start returns the state
 * after <s>. */
WF_API uint32_t wf_lm_start(const wf_lm *lm);
/* Returns the cost of `word` after the history `state`, and sets `*next` to the state after the
 * word. An unknown word has the cost of <unk>. Without <unk> in the model its cost is +infinity and
 * the next state is the empty history. `*order` (may be NULL): words in the n-gram that gave the
 * probability; 0 if there is none. */
WF_API float wf_lm_step(const wf_lm *lm, uint32_t state, int32_t word, uint32_t *next,
                        int32_t *order);
/* Cost of </s> after the history `state`; +infinity if the model has no </s>. */
WF_API float wf_lm_final(const wf_lm *lm, uint32_t state, int32_t *order);

/* Writes an ARPA file: n-grams in the order of their labels, log10 values to 7 decimals.
 * Probability 0 and the probability of <s> are written as -99. */
WF_API wf_status wf_lm_write_arpa(const wf_lm *lm, const char *path, wf_error *err);

/* Prunes a model in three steps.
 *
 * 1. Words. Words that are not in `vocabulary` are removed (NULL: keep all), then all but the
 *    max_words most likely. Every n-gram with a removed word is removed. <s>, </s> and <unk> stay.
 * 2. n-grams. Each has a worth, which is what the model loses without it. criterion=entropy: the
 *    relative increase of the model's perplexity, with the model's own probabilities of histories
 *    (Stolcke, "Entropy-based pruning of backoff language models", 1998; `ngram -prune` of SRILM).
 *    criterion=difference: p(h w) times (ln p(w|h) - ln of the backed-off probability) (Seymore and
 *    Rosenfeld, "Scalable backoff language models", 1996). n-grams below `threshold` are removed,
 *    then the n-grams of least worth until the limits are met. The contexts of kept n-grams are
 *    kept.
 * 3. Probabilities. The unigrams are scaled and the back-off weights recomputed, so that the
 *    probabilities after each history sum to 1.
 *
 * Every n-gram of the result is also in `lm`, with the same labels. Above order 1 it has the same
 * probability, except in the histories that num_scaled counts. The default options remove nothing.
 * The result does not depend on num_threads. */
enum { WF_CRITERION_ENTROPY, WF_CRITERION_DIFFERENCE };
#define WF_LM_PRUNE_OPTIONS(X)                                                                  \
  X(F32, threshold, 0, 0, 1e30, "",                                                             \
    "remove n-grams of less worth than this, such as 1e-8; 0: none")                            \
  X(ENUM, criterion, 0, 0, 0, "entropy|difference",                                             \
    "worth of an n-gram: relative increase of the perplexity without it, or weighted "          \
    "log-probability difference")                                                               \
  X(STR, max_ngrams, 0, 0, 0, "N2,N3,..",                                                       \
    "keep at most N2 bigrams, N3 trigrams and so on (empty or missing: no limit)")              \
  X(I64, max_total, 0, 0, 9e15, "n-grams",                                                      \
    "maximum number of n-grams to keep, over all orders, unigrams included; 0: no limit")       \
  X(I64, max_words, 0, 0, 9e15, "words", "keep this many words, the most likely first; 0: all") \
  X(I32, min_order, 2, 2, 16, "words", "keep all n-grams of fewer words")                       \
  X(I32, num_threads, 0, 0, 1024, "threads", "threads to use; 0: one per processor")
WF_DECLARE_OPTIONS(lm_prune, WF_LM_PRUNE_OPTIONS)

/* Counts of a pruning. Set up with wf_lm_prune_stats_init. */
typedef struct wf_lm_prune_stats {
  size_t struct_size;
  double word_mass; /* sum of the unigram probabilities of the kept words in `lm` */
  float least_worth[WF_LM_MAX_ORDER +
                    1]; /* smallest worth of a kept n-gram, by order from 2. The worth of an n-gram
                           is here at least that of its best continuation. +infinity: none kept */
  uint64_t num_scaled;  /* histories whose explicit probabilities were scaled, because no back-off
                           weight makes them sum to 1 */
} wf_lm_prune_stats;
WF_DECLARE_INIT(lm_prune_stats)
/* `stats` may be NULL. Errors: max_ngrams is malformed, or no word is left (WF_ERR_ARGUMENT). */
WF_API wf_status wf_lm_prune(const wf_lm *lm, const wf_symbols *vocabulary,
                             const wf_lm_prune_options *options, wf_lm **out,
                             wf_lm_prune_stats *stats, const wf_progress *progress, wf_error *err);

/* Estimates a model from texts: interpolated modified Kneser-Ney smoothing (Chen & Goodman 1998;
 * `lmplz` of KenLM). A text has a sentence per line, words between blanks, in UTF-8; it may be
 * gzipped, and "-" is standard input. An empty line is a sentence without words. `vocabulary`: the
 * words of the model, and other words count as <unk> (NULL: all words of the texts). Words of the
 * vocabulary that the texts lack, and <unk> if nothing counts as it, have the probability of an
 * unseen word. The model has the labels <eps> 0, <s> 1, </s> 2, <unk> 3, then the words in the
 * order of the vocabulary or of the texts. Its order is lower than `order` if no n-gram of that
 * length is left.
 *
 * An order for whose discounts the texts are too small gets those of discount_fallback, with a
 * warning. Results do not depend on `memory`. Errors name the text and the line: WF_ERR_FORMAT if
 * <s>, </s>, <unk> or <eps> is a word of a text (unless skip_symbols), a word is not UTF-8 or holds
 * a NUL byte, or the texts have no line; WF_ERR_LIMIT for a word above 64 KiB. */
#define WF_LM_ESTIMATE_OPTIONS(X)                                                                 \
  X(I32, order, 3, 1, 16, "words", "length of the longest n-grams")                               \
  X(STR, prune, 0, 0, 0, "C1,C2,..",                                                              \
    "leave out the n-grams of each order that occur this often or less, such as 0,0,1; the last " \
    "number holds for all higher orders (default: 0)")                                            \
  X(STR, discount_fallback, 0, 0, 0, "D1,D2,D3",                                                  \
    "discounts for counts of 1, 2, and 3 or more, for orders for which the text is too small "    \
    "(default: 0.5,1,1.5)")                                                                       \
  X(BOOL, ids, 0, 0, 1, "", "each line starts with an utterance id, as in Kaldi's text files")    \
  X(BOOL, skip_symbols, 0, 0, 1, "",                                                              \
    "leave out <s>, </s>, <unk> and <eps> where they are words of the text, instead of failing")  \
  X(I64, memory, 1073741824, 1048576, 9e15, "bytes",                                              \
    "memory for sorting, besides the words; larger texts use temporary files")                    \
  X(STR, temporary, 0, 0, 0, "FOLDER",                                                            \
    "folder of temporary files (default: that of the output, or $TMPDIR or /tmp)")
WF_DECLARE_OPTIONS(lm_estimate, WF_LM_ESTIMATE_OPTIONS)

/* Counts of an estimation. Set up with wf_lm_estimate_stats_init. Arrays are by order, from 1. */
typedef struct wf_lm_estimate_stats {
  size_t struct_size;
  uint64_t num_sentences;
  uint64_t num_empty;                      /* sentences without words */
  uint64_t num_words;                      /* words of the texts, without sentence ends */
  uint64_t num_unknown;                    /* of these, those that count as <unk> */
  uint64_t num_found[WF_LM_MAX_ORDER + 1]; /* different n-grams */
  uint64_t num_kept[WF_LM_MAX_ORDER + 1];  /* of these, those that are in the model */
  double discount_1[WF_LM_MAX_ORDER + 1], discount_2[WF_LM_MAX_ORDER + 1],
      discount_3[WF_LM_MAX_ORDER + 1];   /* for counts of 1, 2, and 3 or more */
  uint8_t fallback[WF_LM_MAX_ORDER + 1]; /* 1: these are those of discount_fallback */
} wf_lm_estimate_stats;
WF_DECLARE_INIT(lm_estimate_stats)
/* `stats` may be NULL. */
WF_API wf_status wf_lm_estimate(const char *const *texts, size_t num_texts,
                                const wf_symbols *vocabulary, const wf_lm_estimate_options *options,
                                wf_lm **out, wf_lm_estimate_stats *stats,
                                const wf_progress *progress, wf_error *err);
/* The same with the model written to an ARPA file, in memory that does not depend on the size of
 * the model. */
WF_API wf_status wf_lm_estimate_arpa(const char *const *texts, size_t num_texts,
                                     const wf_symbols *vocabulary,
                                     const wf_lm_estimate_options *options, const char *path,
                                     wf_lm_estimate_stats *stats, const wf_progress *progress,
                                     wf_error *err);

/* Mixes models: static linear interpolation (`ngram -mix-lm` of SRILM). The result has the n-grams
 * of all models. The probability of each is the sum of weight times the model's probability, which
 * may back off. Back-off weights are recomputed, so that the probabilities after each history sum
 * to 1. A word that a model lacks has probability 0 in it, and is <unk> in the histories of that
 * model. The words are those of the first model, then the new ones of the next, and so on; labels
 * are <eps> 0, <s> 1, </s> 2, <unk> 3, then the words. `weights`: [num_lms], 0 or more; they are
 * scaled to sum to 1 (NULL: equal). The result does not depend on num_threads. `num_scaled`
 * (may be NULL): as in wf_lm_prune_stats. Errors: no model, or weights that are negative or not
 * finite, or all 0 (WF_ERR_ARGUMENT). */
#define WF_LM_MIX_OPTIONS(X)                                                                       \
  X(BOOL, ids, 0, 0, 1, "",                                                                        \
    "each line of the text for the weights starts with an utterance id, as in Kaldi's text files") \
  X(I32, num_threads, 0, 0, 1024, "threads", "threads to use; 0: one per processor")
WF_DECLARE_OPTIONS(lm_mix, WF_LM_MIX_OPTIONS)
WF_API wf_status wf_lm_mix(const wf_lm *const *lms, size_t num_lms, const double *weights,
                           const wf_lm_mix_options *options, wf_lm **out, uint64_t *num_scaled,
                           const wf_progress *progress, wf_error *err);
/* Finds the weights for wf_lm_mix that give a held-out text the highest probability, by the EM
 * algorithm (`compute-best-mix` of SRILM). Words that no model has are left out; they are <unk> in
 * histories. Sets weights[num_lms] and *perplexity (may be NULL): that of the weighted sum of the
 * models' probabilities. Errors: those of texts in wf_lm_estimate, and a text to whose words and
 * sentence ends all models give probability 0 (WF_ERR_FORMAT). */
WF_API wf_status wf_lm_mix_weights(const wf_lm *const *lms, size_t num_lms, const char *text,
                                   const wf_lm_mix_options *options, double *weights,
                                   double *perplexity, const wf_progress *progress, wf_error *err);

/* Makes an acceptor over the model's word table, with arcs sorted by label. The start is the
 * history <s>, and </s> is a final cost. backoff=epsilon makes the graph of Kaldi's arpa2fst: a
 * back-off arc is an ordinary arc (input backoff_label, output epsilon). A path may then back off
 * although the word has an explicit n-gram, and cost less than wf_lm_step returns. This affects few
 * sentences: about 1 in 20 with a large interpolated 4-gram, by hundredths of a nat on average.
 * backoff=failure gives the exact model when composed with wf_compose's phi_label = backoff_label.
 * Every final cost is then resolved through back-off. Arcs of <unk> exist if the table has it.
 * Unreachable states are left out. So are arcs of cost +infinity, except with failure where they
 * keep a word from backing off. A graph composed with a difference, and decoded without a scorer,
 * gives the results of the graph decoded with wf_scorer_from_lm. The composition can be far larger
 * than its operands: it has a copy of a graph state for every history that reaches it. Errors:
 * backoff_label is the label of a word, or is 0 with backoff=failure; a difference with
 * backoff=epsilon. */
enum { WF_BACKOFF_EPSILON, WF_BACKOFF_FAILURE };
#define WF_LM_FST_OPTIONS(X)                                                                       \
  X(I32, backoff_label, 0, 0, 2147483647, "label",                                                 \
    "input label of the back-off arcs, such as #0; 0: epsilon")                                    \
  X(ENUM, backoff, 0, 0, 0, "epsilon|failure",                                                     \
    "back-off arcs are ordinary arcs, or failure arcs that are taken only if the word is missing") \
  X(BOOL, remove_useless, 1, 0, 1, "",                                                             \
    "remove states that can only back off; their cost moves to the arcs that enter them")          \
  X(BOOL, drop_unk, 0, 0, 1, "", "leave out the arcs of <unk>")
WF_DECLARE_OPTIONS(lm_fst, WF_LM_FST_OPTIONS)
WF_API wf_status wf_lm_to_fst(const wf_lm *lm, const wf_lm_fst_options *options, wf_fst **out,
                              wf_error *err);

/* Makes a .wlm file, the mapped form of a model: `out` from `path`, a model of any format. An ARPA
 * file is read as a stream and may be larger than memory. With `subtract` the model is the exact
 * difference lm_scale * large - small, which is again a back-off model and has every n-gram of the
 * small model. A graph built with the small model and scored with the difference has the costs of a
 * graph built with the large model. States, costs and unknown words are those of the model in
 * memory. docs/how-to/lm.md. */
enum { WF_PACK_NONE, WF_PACK_EXACT, WF_PACK_CODEBOOK };
#define WF_LM_CONVERT_OPTIONS(X)                                                              \
  X(STR, subtract, 0, 0, 0, "FILE",                                                           \
    "small model that the graph was built with (any format): store large - small; default: "  \
    "none")                                                                                   \
  X(F32, lm_scale, 1, 1e-6, 1e6, "", "factor on the large model's costs")                     \
  X(ENUM, pack, 0, 0, 0, "none|exact|codebook",                                               \
    "12 bytes per arc; packed into as few bits as needed; packed, with costs rounded to a "   \
    "codebook")                                                                               \
  X(I32, cost_bits, 8, 2, 16, "bits", "pack=codebook: bits of each cost")                     \
  X(I64, memory, 1073741824, 1048576, 9e15, "bytes",                                          \
    "memory for sorting, besides the words and the small model; larger models use temporary " \
    "files")                                                                                  \
  X(STR, temporary, 0, 0, 0, "FOLDER", "folder of temporary files (default: that of the output)")
WF_DECLARE_OPTIONS(lm_convert, WF_LM_CONVERT_OPTIONS)
/* Counts of a conversion. Set up with wf_lm_convert_stats_init. */
typedef struct wf_lm_convert_stats {
  size_t struct_size;
  uint64_t num_created; /* n-grams added as contexts of others, at their backed-off probability */
  uint64_t num_added;   /* n-grams of the small model that the large one lacks, added at their
                           backed-off probability */
  uint64_t num_words_added; /* words of the small model that the large one lacks, added at the cost
                               of its unknown word */
  uint64_t num_outside;     /* n-grams left out because of a word that the small model (and so the
                               graph) lacks */
  double loss_mean, loss_worst; /* pack=codebook: |stored cost - cost| over all n-grams, nats */
} wf_lm_convert_stats;
WF_DECLARE_INIT(lm_convert_stats)
/* `stats` and `reading` (counts of the reader) may be NULL. Errors: those of wf_lm_open; `path` is a
 * difference (WF_ERR_ARGUMENT); WF_ERR_LIMIT beyond 2^32 - 2 histories. */
WF_API wf_status wf_lm_convert(const char *path, const char *out, const wf_arpa_options *reader,
                               const wf_lm_convert_options *options, wf_lm_convert_stats *stats,
                               wf_arpa_stats *reading, const wf_progress *progress, wf_error *err);
/* Checks every checksum, index and look-up table of a mapped model. Models in memory have been
 * checked when they were read. */
WF_API wf_status wf_lm_verify(const wf_lm *lm, const wf_progress *progress, wf_error *err);
/* Builds a table beside the mapped form that makes look-ups on the CPU several times faster. It
 * takes about 21 bytes per n-gram above order 1 and 8 per state, and reads the whole file. Costs
 * stay bit-identical. Queries of a mapped model, and scorers made before and after, use it.
 * Errors: a file whose states share arcs (WF_ERR_FORMAT), WF_ERR_MEMORY. */
WF_API wf_status wf_lm_make_table(const wf_lm *lm, const wf_progress *progress, wf_error *err);

/* =========================================================================================
 * 2  Recurrent language models
 *
 * A model gives P(word | all words before it in the sentence); </s> is the last word. Words are ids
 * of the model, from 0. docs/how-to/rnnlm.md has the file formats and the rules in full.
 * ========================================================================================= */

typedef struct wf_rnnlm wf_rnnlm; /* reference counted, immutable, any thread */

#define WF_RNNLM_MAX_ORDER 32

/* Opens a model of one of two formats.
 *   NAME + NAME.nnet   of the faster-rnnlm toolkit, versions 0 to 6: the vocabulary with counts
 *                      (`word count` lines, </s> first), and the network (memory-mapped; or
 *                      NAME.nnet.gz if there is no NAME.nnet). All its layer types, hierarchical
 *                      softmax and NCE, maximum-entropy (MaxEnt) features, any arity.
 *   NAME.safetensors   LSTM or GRU language models of PyTorch with full softmax, and their words
 *                      in NAME.words (symbol table)
 * `unk_symbol` (NULL: "<unk>" in safetensors models, none in the others): the word that replaces
 * unknown words. Errors: a missing file; WF_ERR_FORMAT, with file and place, for malformed content:
 * sizes that differ from the file's, NaN or infinite weights, a duplicate word. */
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
  uint64_t num_weights;  /* without MaxEnt cells */
  uint64_t num_bytes;    /* memory, mapped cells included */
  int32_t bos, eos, unk; /* word ids; unk -1: none */
  size_t state_bytes;    /* of one state */
} wf_rnnlm_info;
WF_DECLARE_INIT(rnnlm_info)
WF_API wf_status wf_rnnlm_get_info(const wf_rnnlm *rnnlm, wf_rnnlm_info *info, wf_error *err);
/* The words; keys are ids. Owned by the model. */
WF_API const wf_symbols *wf_rnnlm_words(const wf_rnnlm *rnnlm);
/* Id of a word, or else of the unknown word, or else -1. Models of the toolkit compare only the
 * first 99 bytes. */
WF_API int32_t wf_rnnlm_find(const wf_rnnlm *rnnlm, const char *word);

/* Makes a model with a copy of the weights in a GPU's memory. wf_rnnlm_score and scorers made from
 * it compute on the GPU; everything else runs on the CPU. Costs differ from the CPU's only by the
 * order of sums (within 1e-4), and do not depend on other computations at the same time. `device`:
 * cuda or cuda:N; NULL or cpu: the model itself. Errors: no such GPU, too little GPU memory, a
 * library without a GPU backend (WF_ERR_DEVICE). */
WF_API wf_status wf_rnnlm_on_device(const wf_rnnlm *rnnlm, const char *device, wf_rnnlm **out,
                                    wf_error *err);

/* Scores whole sentences. Sentence s is words[first[s]] .. words[first[s + 1] - 1], without <s> and
 * </s>; costs[first[s] + s] .. receive -ln p of each word and then of </s>, in the order of reading
 * (reverse models: from the last word). `num_threads` 0: one per processor; a model on a GPU uses
 * only the calling thread. The costs of a sentence do not depend on num_threads or on the other
 * sentences. Errors: a word outside the vocabulary. */
WF_API wf_status wf_rnnlm_score(const wf_rnnlm *rnnlm, const int32_t *words, const uint64_t *first,
                                size_t num_sentences, int num_threads, float *costs, wf_error *err);

/* Scoring one word at a time. A state is info.state_bytes plain bytes, aligned to 4: the hidden
 * vectors after the words so far, and the last words. It may be copied with memcpy. */
WF_API void wf_rnnlm_start(const wf_rnnlm *rnnlm, void *state);
/* For i < count: costs[i] = -ln p(words[i] | states[i]), and the i-th state of `next` is the state
 * after the word. `costs` or `next` may be NULL; `next` must not be `states`. The result for i does
 * not depend on the other entries. Errors: a word outside the vocabulary, a reverse model
 * (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_rnnlm_step(const wf_rnnlm *rnnlm, size_t count, const void *states,
                               const int32_t *words, float *costs, void *next, wf_error *err);

/* Trains the model of Mikolov et al., "RNNME" (2011), as implemented in the faster-rnnlm toolkit:
 * one recurrent layer, hierarchical softmax of arity 2, hashed MaxEnt features. Training is
 * stochastic gradient descent, sentence by sentence in the order of the text. Gradients are
 * propagated back to the beginning of the sentence, over 128 words at most. An epoch is poor if it
 * lowers the entropy of the validation text by less than the share `min_gain`. After the first poor
 * epoch the learning rates are halved before each further epoch. The second poor epoch is the last.
 */
enum { WF_LAYER_SIGMOID, WF_LAYER_GRU };
#define WF_RNNLM_TRAIN_OPTIONS(X)                                                                  \
  X(ENUM, layer, 0, 0, 0, "sigmoid|gru", "type of the recurrent layer")                            \
  X(I32, hidden, 100, 1, 9999, "units", "size of the recurrent layer")                             \
  X(I64, maxent_cells, 0, 0, 1e12, "cells",                                                        \
    "number of hashed MaxEnt weights, 4 bytes each (rounded to a multiple of the vocabulary); 0: " \
    "none")                                                                                        \
  X(I32, maxent_order, 3, 1, 32, "words",                                                          \
    "order of the longest MaxEnt features; 3: the last two words and the next one")                \
  X(F32, learning_rate, 0.1, 0, 100, "", "learning rate of the network")                           \
  X(F32, maxent_learning_rate, 0.1, 0, 100, "", "learning rate of the MaxEnt weights")             \
  X(F32, l2, 1e-6, 0, 0.1, "",                                                                     \
    "weight decay of the network: share of a weight removed at each update")                       \
  X(F32, maxent_l2, 1e-6, 0, 0.1, "", "weight decay of the MaxEnt weights")                        \
  X(F32, clip, 1, 0, 1e9, "", "clip each gradient to this absolute value")                         \
  X(F32, min_gain, 0.001, 0, 1, "",                                                                \
    "an epoch with less relative gain halves the learning rates; a second one ends the training")  \
  X(I32, max_epochs, 50, 1, 10000, "epochs", "maximum number of epochs")                           \
  X(I64, seed, 1, 0, 9e15, "", "seed of the initial weights")                                      \
  X(I32, num_threads, 1, 0, 1024, "threads",                                                       \
    "training threads; 0: one per processor. With 1 training is reproducible; with more it "       \
    "depends on timing")
WF_DECLARE_OPTIONS(rnnlm_train, WF_RNNLM_TRAIN_OPTIONS)

typedef struct wf_rnnlm_epoch {
  int32_t epoch; /* from 1 */
  float learning_rate;
  double train_perplexity; /* each sentence is measured with the weights at that time */
  double valid_perplexity;
  double seconds;      /* of training, without validation */
  uint64_t num_tokens; /* of the training text, </s> included */
  uint64_t num_oov;    /* validation sentences ignored because of unknown words */
} wf_rnnlm_epoch;
/* Called after each epoch from the calling thread. */
typedef void (*wf_rnnlm_epoch_fn)(void *user, const wf_rnnlm_epoch *epoch);

/* Trains on a text with one sentence per line and words separated by blanks. The vocabulary is the
 * words of the text, each cut to 99 bytes. `on_epoch` may be NULL. Errors: a text without words,
 * `</s>` within a line, unknown words in every validation sentence, maxent_cells not above the
 * number of words. */
WF_API wf_status wf_rnnlm_train(const char *train_path, const char *valid_path,
                                const wf_rnnlm_train_options *options, wf_rnnlm_epoch_fn on_epoch,
                                void *user, wf_rnnlm **out, const wf_progress *progress,
                                wf_error *err);
/* Writes PATH and PATH.nnet in the toolkit's format: version 0 if possible, else 6. Errors: a model
 * from safetensors (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_rnnlm_write(const wf_rnnlm *rnnlm, const char *path, wf_error *err);

/* =========================================================================================
 * 3  Language models as scorers
 * ========================================================================================= */

/* Makes a scorer from an n-gram model or the difference of two. `words`: table of the graph's
 * output labels, matched by text; NULL: the labels are the model's own. Words that the model lacks
 * have the cost of its unknown word, or +infinity if it has none. The cost of a word is lm_scale
 * times that of wf_lm_step; a word that the model finds impossible is so with any factor. With a
 * negative factor, in a chain with another model, costs of an internal language model are
 * subtracted (docs/how-to/transducers.md). Errors: the model has none of the words.
 *
 * `placement` is where a decoder on a GPU keeps the model. It does not change results, and has no
 * effect on the CPU:
 *   device   everything in GPU memory
 *   hybrid   the index (unigrams, states, tags, buckets: see `lm info`) in GPU memory, the arcs in
 *            page-locked host memory. The GPU reads an arc over the bus if its tag matches. Arcs
 *            that were read stay in a 4-way cache of lm_gpu_bytes less the index
 *   host     everything in page-locked host memory */
enum { WF_PLACEMENT_DEVICE, WF_PLACEMENT_HYBRID, WF_PLACEMENT_HOST };
#define WF_NGRAM_SCORER_OPTIONS(X)                                                                \
  X(F32, lm_scale, 1, -1e6, 1e6, "",                                                              \
    "factor on the costs of the on-the-fly language model; negative: they are subtracted")        \
  X(ENUM, placement, 0, 0, 0, "device|hybrid|host",                                               \
    "where a decoder on a GPU keeps the on-the-fly language model")                               \
  X(I64, lm_gpu_bytes, 0, 0, 9007199254740992, "bytes",                                           \
    "placement=hybrid: GPU memory for the index and the cache of arcs; 0: the size of the index " \
    "and an eighth of the arcs")
WF_DECLARE_OPTIONS(ngram_scorer, WF_NGRAM_SCORER_OPTIONS)
WF_API wf_status wf_scorer_from_lm(const wf_lm *lm, const wf_symbols *words,
                                   const wf_ngram_scorer_options *options, wf_scorer **out,
                                   wf_error *err);
/* Makes a scorer from a recurrent LM for the first pass, after Lee et al. 2015 (on-the-fly
 * rescoring with hierarchical softmax, MaxEnt features, a table of contexts and a cache of
 * results). The cost of a word is
 *     rnnlm_scale * (cost by `rnnlm`, interpolated with that by `ngram`) - small_scale * (cost by
 *     `small`)
 * `ngram` may be NULL: the recurrent model alone. `small`: the model that the graph was built with;
 * its costs are subtracted. NULL: nothing is subtracted. `words`: table of the graph's output
 * labels, matched by text; NULL: labels are the recurrent model's ids. If the recurrent model has
 * neither a word nor an unknown word, the word costs unknown_cost and leaves the history unchanged.
 * A context consists of the words so far (the last history_merge_order - 1 if that is set) and the
 * states of the n-gram models. If all utterances of a batch on the CPU have the same scorer (or
 * chain), they advance together: their requests of a frame are deduplicated and scored by a few
 * matrix products. When rnnlm_memory is full, the oldest entries are evicted and recomputed on
 * demand. Contexts that a search references, and the words that lead to them, are never evicted,
 * even beyond the limit. The batch, rnnlm_cache and rnnlm_memory affect the time, but no bit of the
 * results. With device=cuda the search and its scoring run on the GPU for streams, and for batches
 * in which all utterances have this scorer (alone or in a chain of up to three). This requires no
 * lattices and no recombine=state. Words are the same as on the CPU, and costs are equal within
 * rounding (docs/engineering/rnnlm.md). Errors: a reverse model (WF_ERR_UNSUPPORTED); the model has
 * no word of `words`. */
enum { WF_INTERPOLATION_LOG_LINEAR, WF_INTERPOLATION_LINEAR };
enum { WF_RNNLM_CACHE_NONE, WF_RNNLM_CACHE_UTTERANCE, WF_RNNLM_CACHE_SHARED };
#define WF_RNN_SCORER_OPTIONS(X)                                                                  \
  X(F32, rnnlm_scale, 1, 0, 1e6, "", "factor on the costs of the new model")                      \
  X(F32, small_scale, 1, 0, 1e6, "",                                                              \
    "factor on the costs of the small model, which are subtracted")                               \
  X(F32, rnnlm_weight, 1, 0, 1, "",                                                               \
    "interpolation weight of the recurrent model; the n-gram model's is 1 minus this")            \
  X(ENUM, interpolation, 0, 0, 0, "log_linear|linear",                                            \
    "interpolate costs (weighted sum), or probabilities (cost of their weighted sum)")            \
  X(F32, unknown_cost, 12, 0, 1e6, "nats",                                                        \
    "cost of words that the recurrent model lacks, if it has no unknown word")                    \
  X(I32, history_merge_order, 0, 0, 1000000, "words",                                             \
    "n: merge contexts with the same last n - 1 words, and score as if the sentence began with "  \
    "these words; 0: never merge")                                                                \
  X(I64, rnnlm_memory, 536870912, 65536, 9e15, "bytes",                                           \
    "memory for hidden states, contexts and cached results, of all utterances of a batch, or of " \
    "a stream")                                                                                   \
  X(ENUM, rnnlm_cache, 1, 0, 0, "none|utterance|shared",                                          \
    "cache of results: none (for comparison), one per utterance, or one shared by all utterances")
WF_DECLARE_OPTIONS(rnn_scorer, WF_RNN_SCORER_OPTIONS)
WF_API wf_status wf_scorer_from_rnnlm(const wf_rnnlm *rnnlm, const wf_lm *ngram, const wf_lm *small,
                                      const wf_symbols *words, const wf_rnn_scorer_options *options,
                                      wf_scorer **out, wf_error *err);

/* Counts over all searches with this scorer so far. Set up with wf_rnn_scorer_stats_init. */
typedef struct wf_rnn_scorer_stats {
  size_t struct_size;
  uint64_t num_utterances;
  uint64_t num_requests;  /* requested costs, one for each word on an arc that the search visits */
  uint64_t num_hits;      /* requests found in the cache */
  uint64_t num_histories; /* distinct histories */
  uint64_t num_hidden;    /* computed hidden states; each is computed at the first request after its
                             history */
  uint64_t num_recomputed; /* steps repeated to restore evicted states */
  uint64_t num_evicted;    /* evicted hidden states */
  uint64_t num_costs;  /* computed costs: requests - hits, without duplicate requests of a batch in
                          the same round */
  uint64_t num_rounds; /* rounds in which the requests of a batch were scored together: about one
                          per frame */
  uint64_t num_evicted_results, num_evicted_contexts;
} wf_rnn_scorer_stats;
WF_DECLARE_INIT(rnn_scorer_stats)
/* Errors: the scorer is not from wf_scorer_from_rnnlm. */
WF_API wf_status wf_scorer_get_rnn_stats(const wf_scorer *scorer, wf_rnn_scorer_stats *stats,
                                         wf_error *err);

/* Counters of the on-the-fly language models of a decoder on GPUs, over all GPUs and all batches
 * since the first, freed models included. On the CPU all are 0. Reads are reads of n-grams from
 * host memory; with placement=device there are none. */
typedef struct wf_lm_stats {
  uint64_t gpu_bytes,
      host_bytes; /* currently allocated: GPU memory with caches; page-locked host memory */
  uint64_t cache_hits,
      host_reads;     /* n-grams (arcs) found in the cache; n-grams read from host memory. With
                         placement=host the index is also read over the bus, but not counted here */
  uint64_t bus_bytes; /* bytes moved by these reads: host_reads times the mean size of the 32-byte
                         sectors that an n-gram's record touches (40 bytes per read if the model is
                         not packed). This is an upper bound, because threads of a warp share
                         sectors and the GPU's own caches may have them */
  uint64_t stall_cycles; /* GPU clock cycles that warps waited for these reads, summed over warps. A
                            wait counts once per warp, for any number of its threads. Other warps
                            may run meanwhile */
  double stall_s; /* stall_cycles in seconds at the GPU's highest clock, divided by the number of
                     warps that search at one time (32 per multiprocessor). stall_s over the time of
                     decoding is the share of time that warps waited for the bus. It is small if a
                     small batch leaves most warps idle */
  uint64_t reserved[8];
} wf_lm_stats;
WF_API void wf_decoder_get_lm_stats(const wf_decoder *decoder, wf_lm_stats *out);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_lm_open) wf_status
    wf_lm_read(const char *path, const wf_symbols *words, const wf_arpa_options *options,
               wf_lm **out, wf_arpa_stats *stats, const wf_progress *progress, wf_error *err) {
  return wf_lm_open(path, words, options, out, stats, progress, err);
}
static inline WF__OLD(wf_lm_open) wf_status
    wf_lm_read_arpa(const char *path, const wf_symbols *words, const wf_arpa_options *options,
                    wf_lm **out, wf_arpa_stats *stats, const wf_progress *progress, wf_error *err) {
  return wf_lm_open(path, words, options, out, stats, progress, err);
}
static inline WF__OLD(wf_scorer_get_rnn_stats) wf_status
    wf_scorer_rnn_stats(const wf_scorer *scorer, wf_rnn_scorer_stats *stats, wf_error *err) {
  return wf_scorer_get_rnn_stats(scorer, stats, err);
}
static inline WF__OLD(wf_decoder_get_lm_stats) void wf_decoder_lm_stats(const wf_decoder *decoder,
                                                                        wf_lm_stats *out) {
  wf_decoder_get_lm_stats(decoder, out);
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_LM_H */
