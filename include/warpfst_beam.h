/* warpfst_beam.h - beam searches without a graph: over prefixes of texts, and over a trie of words.
 */
#ifndef WARPFST_BEAM_H
#define WARPFST_BEAM_H

#include "warpfst_lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * CTC prefix beam search
 *
 * A search without a graph: prefixes of texts that tokens spell, with a language model of words on
 * complete words, and any word allowed. It sums over the alignments of a prefix, and over all ways
 * to spell its words with tokens. It is slower than a graph (wf_decode) but has an open vocabulary.
 * The scores are those of pyctcdecode, which warpfst.compat replaces.
 *
 *   score = ln P(alignments of the text) + sum over words: lm_weight ln P(word | history)
 *           + lm_weight ln 10 unknown_score (unknown words only) + word_score
 *           + hotword_weight (hotwords only)
 *           + lm_weight ln P(</s>)
 *
 * Terms of the language model are 0 without one. A prefix that ends within a word has one more
 * term, for pruning only. If a hotword begins like this part of a word: hotword_weight times the
 * share of the letters that the part has of the shortest such hotword. Else, if no known word
 * begins like it: unknown_score, and in proportion more beyond 6 letters. Letters are Unicode code
 * points.
 * ========================================================================================= */

typedef struct wf_prefix_token {
  const char *text; /* UTF-8; "": none, as of the blank */
  bool starts_word; /* ends the word before it and begins one */
  bool ends_word;   /* ends its word; without text, that before it: a space */
} wf_prefix_token;

/* What a search is made of. Everything but `lm` is copied. */
typedef struct wf_prefix_parts {
  const wf_prefix_token *tokens; /* [num_tokens] of the columns of the scores */
  size_t num_tokens;
  int32_t blank;            /* column of the CTC blank */
  const wf_lm *lm;          /* NULL: none; else its reference is shared */
  const char *const *words; /* [num_words] the known words; without `lm` they have no effect */
  size_t num_words;
  uint64_t reserved[4];
} wf_prefix_parts;

/* Immutable. */
typedef struct wf_prefix_searcher wf_prefix_searcher;
/* Errors: no tokens, a blank that is not a column, an empty word. */
WF_API wf_status wf_prefix_searcher_create(const wf_prefix_parts *parts, wf_prefix_searcher **out,
                                           wf_error *err);
WF_API void wf_prefix_searcher_free(wf_prefix_searcher *searcher);

#define WF_PREFIX_OPTIONS(X)                                                                      \
  X(I32, beam_width, 100, 1, 10000000, "prefixes", "keep this many prefixes per frame")           \
  X(F32, beam, 10, 0, 1e30, "nats", "drop prefixes that are this much worse than the best")       \
  X(F32, min_token_log_prob, -5, -1e30, 1e30, "nats",                                             \
    "tokens below this log-probability are ignored, except the best of a frame")                  \
  X(F32, lm_weight, 0.5, -1e6, 1e6, "", "weight of the language model")                           \
  X(F32, word_score, 1.5, -1e6, 1e6, "nats", "added for each word, if there is a language model") \
  X(F32, unknown_score, -10, -1e6, 1e6, "log10",                                                  \
    "added to the log10 probability of unknown words")                                            \
  X(F32, hotword_weight, 10, -1e6, 1e6, "nats", "added for each hotword")                         \
  X(BOOL, sentence_ends, 1, 0, 1, "",                                                             \
    "texts begin with <s> and end with </s> for the language model")                              \
  X(BOOL, merge_histories, 0, 0, 1, "",                                                           \
    "keep only the best of prefixes that the language model cannot distinguish")                  \
  X(I32, nbest, 0, 0, 10000000, "texts", "texts to return; 0: all that the search kept")          \
  X(I32, num_threads, 0, 0, 4096, "threads",                                                      \
    "utterances searched in parallel; 0: one per processor")
WF_DECLARE_OPTIONS(prefix, WF_PREFIX_OPTIONS)

/* One utterance. Everything is borrowed for the call. */
typedef struct wf_prefix_input {
  wf_scores scores;            /* log-posteriors, natural logarithm */
  const char *const *hotwords; /* [num_hotwords] single words, known or not */
  size_t num_hotwords;
  int64_t lm_state; /* the lm_state of a result, to continue after its text; -1: the start */
  uint64_t reserved[4];
} wf_prefix_input;

typedef struct wf_prefix_word {
  const char *text;
  int32_t start_frame, end_frame; /* half-open: the frames of its tokens on the best alignment */
} wf_prefix_word;

typedef struct wf_prefix_text {
  double log_prob; /* ln P of the alignments found */
  double score;
  int64_t lm_state; /* after the last word, before </s>; -1: no language model */
  wf_prefix_word *words;
  size_t num_words;
} wf_prefix_text;

/* Owned by the caller: wf_prefix_result_free. */
typedef struct wf_prefix_result {
  wf_status status; /* WF_OK, or the error of this utterance. Then there are no texts */
  char message[256];
  wf_prefix_text *texts; /* [num_texts] all different, best first */
  size_t num_texts;
  void *memory; /* of the words and their texts */
  uint64_t reserved[4];
} wf_prefix_result;
WF_API void wf_prefix_result_free(wf_prefix_result *result);
/* Searches `count` utterances. results[i], an array of the caller, receives the result of utterance
 * i, also if that utterance failed: another number of columns than tokens,
 * NaN or +infinity, an unknown lm_state. If the call itself fails (bad options, out of memory,
 * cancelled), all results are NULL. Thread-safe. */
WF_API wf_status wf_prefix_search(const wf_prefix_searcher *searcher, const wf_prefix_input *inputs,
                                  size_t count, const wf_prefix_options *options,
                                  wf_prefix_result **results, wf_error *err);

/* =========================================================================================
 * Trie beam search
 *
 * A beam search over the tokens of a lexicon, or over any tokens, with a language model that may be
 * a function. There is no graph, so nothing is built in advance, but it is slower than wf_decode.
 * The scores are those of flashlight-text, which warpfst.compat replaces.
 *
 *   score = sum over frames: score of the token + silence_score (frames of silence only)
 *           + sum over words: lm_weight LM(word | history) + word_score
 *           + lm_weight LM(end)
 *
 * LM is log10 P of an n-gram model, or what the function says. Within a word, the score of its node
 * stands in for LM(word | history). Hypotheses with the same words, node and last token are one:
 * its score is the best of them, or their sum (sum_alignments). Between words there may be silence.
 * ========================================================================================= */

/* A node of a trie of spellings. The children of a node are consecutive, and come after it. */
typedef struct wf_trie_node {
  int32_t token; /* column of the token that leads here */
  float score;   /* what the language model is expected to say of the words from here on */
  uint32_t first_child, num_children;
  uint32_t first_word, num_words; /* places in wf_trie_parts.words: the words that end here */
} wf_trie_node;

/* A language model: sets `*score` of a word after a history, and `*next` to the history after it;
 * for word -1: of the end of the utterance. Histories are numbers of the caller, from 0. Equal ones
 * are not told apart. False: the search fails with WF_ERR_CANCELLED. */
typedef bool (*wf_trie_lm_fn)(void *user, int64_t history, int32_t word, int64_t *next,
                              double *score);

/* What a search is made of. Everything but `lm` and `user` is copied. */
typedef struct wf_trie_parts {
  const wf_trie_node *nodes; /* [num_nodes], the root first; 0: no lexicon, each token is a word */
  size_t num_nodes;
  const int32_t *words; /* [num_words] numbers from 0, of any order */
  size_t num_words;
  const wf_lm *lm;          /* NULL: none; else its reference is shared */
  const int32_t *lm_labels; /* [num_lm_labels] the labels of words in `lm`; others are unknown */
  size_t num_lm_labels;
  wf_trie_lm_fn lm_fn; /* in place of `lm`; NULL: none. One thread at a time calls it */
  void *user;
  int64_t first_history;    /* of lm_fn */
  const float *transitions; /* [num_transitions] of ASG: token * number of tokens + token before */
  size_t num_transitions;
  int32_t silence, blank; /* columns. Without a blank (ASG), it has no effect */
  int32_t unknown_word;   /* the word that stands for unknown ones */
  uint64_t reserved[4];
} wf_trie_parts;

#define WF_TRIE_OPTIONS(X)                                                                         \
  X(I32, beam_size, 50, 1, 10000000, "hypotheses", "keep this many hypotheses per frame")          \
  X(I32, beam_size_token, 0, 0, 10000000, "tokens",                                                \
    "words go on with this many tokens, the best ones of a frame; 0: all")                         \
  X(F32, beam, 50, 0, 1e30, "", "drop hypotheses that are this much worse than the best")          \
  X(F32, lm_weight, 2, -1e6, 1e6, "", "weight of the language model")                              \
  X(F32, word_score, 0, -1e6, 1e6, "", "added for each word of the lexicon")                       \
  X(BOOL, unknown_words, 0, 0, 1, "",                                                              \
    "a part of a word's spelling that is no word itself may be an unknown word")                   \
  X(F32, unknown_score, 0, -1e6, 1e6, "", "added for each unknown word")                           \
  X(F32, silence_score, 0, -1e6, 1e6, "", "added for each frame of silence")                       \
  X(BOOL, sum_alignments, 0, 0, 1, "", "sum over alignments; else the best alignment counts")      \
  X(F32, blank_skip, 0, 0, 1, "probability",                                                       \
    "frames whose blank has at least this probability take no other token; 0: none")               \
  X(BOOL, asg, 0, 0, 1, "", "scores without a blank, with transitions; tokens may be repeated")    \
  X(BOOL, token_lm, 0, 0, 1, "", "the language model is one of tokens, though there is a lexicon") \
  X(BOOL, hold_word_ends, 1, 0, 1, "",                                                             \
    "a word's last token may take several frames, and needs a blank after the same token; "        \
    "0: neither, as in flashlight-text")
WF_DECLARE_OPTIONS(trie, WF_TRIE_OPTIONS)

/* Immutable. */
typedef struct wf_trie_searcher wf_trie_searcher;
/* Errors: a trie that is none, words below 0, tokens, silence or a blank outside [0, 2^30), a
 * language model twice, transitions that are not the square of a number of tokens. */
WF_API wf_status wf_trie_searcher_create(const wf_trie_parts *parts, const wf_trie_options *options,
                                         wf_trie_searcher **out, wf_error *err);
WF_API void wf_trie_searcher_free(wf_trie_searcher *searcher);

/* One utterance in progress. Frame 0 is before the first scores. Not thread-safe. */
typedef struct wf_trie_search wf_trie_search;
/* The searcher is borrowed until wf_trie_search_free. */
WF_API wf_status wf_trie_search_create(const wf_trie_searcher *searcher, wf_trie_search **out,
                                       wf_error *err);
WF_API void wf_trie_search_free(wf_trie_search *search);
/* Goes on with more frames. Errors: too few columns for the tokens, NaN or +infinity, an ended
 * utterance (WF_ERR_STATE). After an error within a frame (scores, lm_fn, memory) the search cannot
 * go on: step, end and prune fail with WF_ERR_STATE. The frames before can still be read. */
WF_API wf_status wf_trie_search_step(wf_trie_search *search, const wf_scores *scores,
                                     wf_error *err);
/* Ends the utterance, which adds a frame. Hypotheses within a word are dropped if there are others.
 */
WF_API wf_status wf_trie_search_end(wf_trie_search *search, wf_error *err);
/* Frees the frames of the path of wf_trie_search_best, except the last one, which becomes frame 0.
 * The best score becomes 0. */
WF_API wf_status wf_trie_search_prune(wf_trie_search *search, int32_t look_back, wf_error *err);
/* Frames after frame 0 that were not freed. */
WF_API int32_t wf_trie_search_num_frames(const wf_trie_search *search);

typedef struct wf_trie_path {
  double score;
  double token_score, lm_score; /* parts of `score`, without weight */
  int32_t *words;               /* [length] in the frame in which a word ends: the word; else -1 */
  int32_t *tokens;              /* [length]; silence before the first frame, and at the end */
} wf_trie_path;
/* Owned by the caller: wf_trie_paths_free. */
typedef struct wf_trie_paths {
  wf_trie_path *paths; /* [num_paths] best first */
  size_t num_paths;
  int32_t length; /* frames, with frame 0 */
  int32_t *memory;
  uint64_t reserved[4];
} wf_trie_paths;
WF_API void wf_trie_paths_free(wf_trie_paths *paths);
/* The best `count` hypotheses; 0: all. */
WF_API wf_status wf_trie_search_paths(const wf_trie_search *search, size_t count,
                                      wf_trie_paths **out, wf_error *err);
/* Searches `count` utterances, each in one piece. results[i], an array of the caller, receives the
 * best `nbest` hypotheses of utterance i; 0: all. num_threads: utterances searched in parallel; 0:
 * one per processor. A language model that is a function is called by one thread. If an utterance
 * fails, so does the call, all results are NULL, and the message names the utterance. Thread-safe
 * if there is no such function. */
WF_API wf_status wf_trie_decode(const wf_trie_searcher *searcher, const wf_scores *scores,
                                size_t count, size_t nbest, int32_t num_threads,
                                wf_trie_paths **results, wf_error *err);
/* The best hypothesis without its newest `look_back` frames, and back to the frame after the end of
 * a word (by at most 100 frames). No path: there are not so many frames, or no hypothesis. */
WF_API wf_status wf_trie_search_best(const wf_trie_search *search, int32_t look_back,
                                     wf_trie_paths **out, wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_BEAM_H */
