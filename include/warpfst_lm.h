/* warpfst_lm.h - n-gram and recurrent language models, and the scorers that a decoder makes of
 * them. The rules at the top of warpfst.h hold here, too. */
#ifndef WARPFST_LM_H
#define WARPFST_LM_H

#include "warpfst_fst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * 1  n-gram language models
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
 * Errors: as above; for a binary file the message names the byte or the n-gram. */
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
/* True if the model has a unigram for this word. False for <s>, </s>, <unk>, and labels outside the
 * table, which are unknown words. */
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

/* A smaller model, in three steps.
 *
 * 1. Words. Those that `vocabulary` lacks (NULL: none) and all but the max_words most likely are
 *    removed, with every n-gram that holds them. <s>, </s> and <unk> stay.
 * 2. n-grams. Each has a worth, which is what the model loses without it. criterion=entropy: the
 *    relative rise of the model's perplexity, with the model's own probabilities of histories
 *    (Stolcke, "Entropy-based pruning of backoff language models", 1998; `ngram -prune` of SRILM).
 *    criterion=difference: p(h w) times (ln p(w|h) - ln of the backed-off probability) (Seymore and
 *    Rosenfeld, "Scalable backoff language models", 1996). n-grams below `threshold` are removed,
 *    then the least valuable until the limits hold. The contexts of kept n-grams are kept.
 * 3. Probabilities. The unigrams are scaled, and the back-off weights computed anew, so that the
 *    probabilities after each history sum to 1.
 *
 * Every n-gram of the result is one of `lm`, with the same labels and, above order 1, the same
 * probability (but see num_scaled). The defaults of the options remove nothing. The result does not
 * depend on num_threads. */
#define WF_LM_PRUNE_OPTIONS(X)                                                                    \
  X(F32, threshold, 0, 0, 1e30, "", "remove n-grams whose worth is less than this, such as 1e-8") \
  X(ENUM, criterion, 0, 0, 0, "entropy|difference",                                               \
    "worth of an n-gram: rise of the perplexity without it, or weighted difference")              \
  X(STR, max_ngrams, 0, 0, 0, "N2,N3,..",                                                         \
    "keep at most N2 bigrams, N3 trigrams and so on (empty or left out: no limit)")               \
  X(I64, max_total, 0, 0, 9e15, "n-grams",                                                        \
    "keep at most this many n-grams of all orders, unigrams included; 0: no limit")               \
  X(I64, max_words, 0, 0, 9e15, "words", "keep only the most likely words; 0: all")               \
  X(I32, min_order, 2, 2, 16, "words", "n-grams of a lower order are never removed")              \
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
  X(I32, cost_bits, 8, 2, 16, "bits", "pack=codebook: bits per cost")                            \
  X(I64, memory, 1073741824, 1048576, 9e15, "bytes",                                             \
    "memory for sorting, without the words and the small model; more data goes to temporary "    \
    "files")                                                                                     \
  X(STR, temporary, 0, 0, 0, "FOLDER", "directory of temporary files (default: that of the output)")
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
 * sections are checked up to 256 MB, of larger files by wf_wlm_verify. Queries are memory-safe
 * whatever the file holds. */
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
/* Builds an in-memory table that makes look-ups on the CPU several times faster. It takes about 21
 * bytes per n-gram above order 1 and 8 per state, and reads the whole file. Costs are the same
 * bits. Not thread-safe: call it before sharing the model. Scorers made from the model use the
 * table. Errors: a file whose states share arcs (WF_ERR_FORMAT), memory. */
WF_API wf_status wf_wlm_make_table(wf_wlm *lm, const wf_progress *progress, wf_error *err);
/* `count` look-ups at once. Each (states[i], words[i]) gets the same bits as from wf_wlm_step. In a
 * model larger than the processor's caches this is several times faster, because the look-ups wait
 * for memory together. */
WF_API void wf_wlm_step_many(const wf_wlm *lm, const uint32_t *states, const int32_t *words,
                             size_t count, float *costs, uint32_t *next);
/* The model as an acceptor over `words` (NULL: its own; words are matched by text). It is meant for
 * wf_compose with phi_label = backoff_label. A graph composed with it and decoded without a scorer
 * gives the same as the graph decoded with wf_scorer_from_lm, except that words that the model
 * lacks have no arcs. Every final cost is resolved through back-off. The composition can be far
 * larger than both: it has each state of the graph once for every history that reaches it. Errors:
 * backoff_label is not positive, or is a word's. */
WF_API wf_status wf_wlm_to_fst(const wf_wlm *lm, const wf_symbols *words, int32_t backoff_label,
                               wf_fst **out, wf_error *err);

/* =========================================================================================
 * 2  Recurrent language models
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

/* The same model with a copy of its weights in a GPU's memory. wf_rnnlm_score and scorers made from
 * it compute there; everything else runs on the CPU. Costs differ from the CPU's by the order of
 * sums only (within 1e-4). They do not depend on what else is computed at the same time. `device`:
 * cuda or cuda:N; NULL or cpu: the model unchanged. Errors: no such GPU, too little memory there, a
 * library without CUDA (WF_ERR_DEVICE). */
WF_API wf_status wf_rnnlm_on_device(const wf_rnnlm *rnnlm, const char *device, wf_rnnlm **out,
                                    wf_error *err);

/* Scores whole sentences. Sentence s is words[first[s]] .. words[first[s + 1] - 1], without <s> and
 * </s>; costs[first[s] + s] .. receive -ln p of each word and then of </s>, in the order of reading
 * (reverse models: from the last word). `num_threads` 0: one per processor; a model on a GPU uses
 * the calling thread alone. The costs do not depend on it, nor on what else is in the call. Errors:
 * a word outside the vocabulary. */
WF_API wf_status wf_rnnlm_score(const wf_rnnlm *rnnlm, const int32_t *words, const uint64_t *first,
                                size_t num_sentences, int num_threads, float *costs, wf_error *err);

/* One word at a time. A state is info.state_bytes plain bytes, aligned to 4. It holds the hidden
 * vectors after the words so far, and the last words. It may be copied with memcpy. */
WF_API void wf_rnnlm_start(const wf_rnnlm *rnnlm, void *state);
/* For i < count: costs[i] = -ln p(words[i] | states[i]), and the i-th state of `next` is the state
 * after the word. Either may be NULL; `next` must not be `states`. Results do not depend on `count`
 * or on what else is in the call. Errors: a word outside the vocabulary, a reverse model
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
    "an epoch that gains less halves the learning rates; the next one ends the training")         \
  X(I32, max_epochs, 50, 1, 10000, "epochs", "stop after this many epochs")                       \
  X(I64, seed, 1, 0, 9e15, "", "seed of the initial weights")                                     \
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
 * 3  Language models as scorers
 * ========================================================================================= */

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
 * n-gram models. On the CPU, utterances of a batch that all have the same scorer (or chain) advance
 * together: their requests of a frame are deduplicated and scored by a few matrix products. When
 * rnnlm_memory is full, the oldest entries are evicted and recomputed on demand. Contexts that a
 * search references are never evicted, nor are the words that lead to them, even beyond the limit.
 * The batch, rnnlm_cache and rnnlm_memory change the time but not one bit of the results.
 * With device=cuda the search and its scoring run on the GPU. This holds for streams, and for
 * batches whose utterances all have this scorer (alone or in a chain of up to three), without
 * lattices and without recombine=state. Words are the same, costs equal within rounding
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
  uint64_t num_requests;   /* costs requested: one for each word on an arc that the search visits */
  uint64_t num_hits;       /* requests found in the cache, from this frame or an earlier one */
  uint64_t num_histories;  /* distinct histories made */
  uint64_t num_hidden;     /* hidden states computed: at the first request after that history */
  uint64_t num_recomputed; /* steps repeated to restore evicted states */
  uint64_t num_evicted;    /* hidden states */
  uint64_t num_costs;  /* costs computed: requests - hits, less equal requests that utterances of a
                          batch made at the same time */
  uint64_t num_rounds; /* times that the requests of a batch were scored together: about one a
                          frame */
  uint64_t num_evicted_results, num_evicted_contexts;
} wf_rnn_scorer_stats;
WF_DECLARE_INIT(rnn_scorer_stats)
/* Errors: not a scorer of wf_scorer_from_rnnlm. */
WF_API wf_status wf_scorer_rnn_stats(const wf_scorer *scorer, wf_rnn_scorer_stats *stats,
                                     wf_error *err);

/* Counters of the on-the-fly language models of a decoder on GPUs, over all GPUs and batches so
 * far; all 0 on the CPU. They start at the decoder's first batch and include models that were freed
 * since. Reads are of n-grams in host memory: 0 with placement=device. */
typedef struct wf_lm_stats {
  uint64_t gpu_bytes, host_bytes;  /* held now, caches included; page-locked host memory */
  uint64_t cache_hits, host_reads; /* n-grams (the model's arcs) found in the cache; read from host
                                    * memory. With placement=host what look-ups read of the index
                                    * goes over the bus, too, and is in none of these figures */
  uint64_t bus_bytes;    /* that these reads moved: host_reads times the sectors of 32 bytes that an
                          * n-gram's record lies in, on average over its places (40 bytes a read
                          * where the model is not packed). Fewer move where threads of a warp read
                          * one sector together, or the GPU's own caches still have it */
  uint64_t stall_cycles; /* GPU clock cycles that warps waited for these reads, summed over warps.
                          * A wait of a warp counts once, however many of its threads read. Other
                          * warps may run meanwhile */
  double stall_s; /* the same in seconds at the GPU's highest clock, on average over the warps that
                   * it searches with at one time (32 a multiprocessor): divided by the time of
                   * decoding, the share of it that the GPU's warps waited for the bus. Small where
                   * a small batch leaves most of them idle */
  uint64_t reserved[8];
} wf_lm_stats;
WF_API void wf_decoder_lm_stats(const wf_decoder *decoder, wf_lm_stats *out);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_LM_H */
