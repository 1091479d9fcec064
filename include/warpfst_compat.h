/* warpfst_compat.h - the beam searches of pyctcdecode, flashlight-text and torchaudio.
 *
 * There is no graph, so nothing is built in advance, but they are slower than wf_decode. The scores
 * are those of the programs that warpfst.compat replaces. */
#ifndef WARPFST_COMPAT_H
#define WARPFST_COMPAT_H

#include "warpfst_lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * Beam search without a graph
 *
 * A hypothesis is a history (the words so far), a node (a part of the next word) and the token of
 * the last frame. In each frame it takes tokens. Those with the same history, node and token become
 * one: its score is the best of them, or the sum over alignments (sum_alignments). The best
 * beam_size are kept. There are three vocabularies:
 *
 *   nodes    words of a lexicon, as a trie of their spellings. Between words there may be silence
 *   texts    any word: tokens have texts, which spell words
 *   neither  each token is a word, unless it is the same as in the frame before
 *
 *   score = sum over frames: score of the token + silence_score (frames of silence only)
 *           + sum over words: lm_weight LM(word | history) + word_score
 *           + lm_weight LM(end)
 *
 * LM is log10 P of an n-gram model, or what a function says. Within a word of a lexicon, the score
 * of its node stands in for LM(word | history).
 *
 * With texts, LM is ln P, and further terms are unknown_score lm_weight ln 10 (words that are not
 * known) and hotword_weight (hotwords). Without a language model, only hotwords score. A hypothesis
 * that ends within a word has one more term, for pruning only. If a hotword begins like this part
 * of a word: hotword_weight times the share of the letters that the part has of the shortest such
 * hotword. Else, if there is a language model and no known word begins like it: unknown_score, and
 * in proportion more beyond 6 letters. Letters are Unicode code points.
 * ========================================================================================= */

/* A node of a trie of spellings. The children of a node are consecutive, and come after it. */
typedef struct wf_beam_node {
  int32_t token; /* column of the token that leads here */
  float score;   /* what the language model is expected to say of the words from here on */
  uint32_t first_child, num_children;
  uint32_t first_word, num_words; /* places in wf_beam_parts.words: the words that end here */
} wf_beam_node;

typedef struct wf_beam_text {
  const char *text; /* UTF-8; "": none, as of the blank */
  bool starts_word; /* ends the word before it and begins one */
  bool ends_word;   /* ends its word; without text, that before it: a space */
} wf_beam_text;

/* A language model: sets `*score` of a word after a history, and `*next` to the history after it;
 * for word -1: of the end of the utterance. Histories are numbers of the caller; 0 is the start.
 * Equal ones are not told apart. False: the search fails with WF_ERR_CANCELLED. */
typedef bool (*wf_beam_lm_fn)(void *user, int64_t history, int32_t word, int64_t *next,
                              double *score);

/* What a search is made of. Everything but `lm` and `user` is copied. */
typedef struct wf_beam_parts {
  const wf_beam_node *nodes; /* [num_nodes] a lexicon, the root first */
  size_t num_nodes;
  const int32_t *words; /* [num_words] numbers from 0, of any order */
  size_t num_words;
  const wf_beam_text *texts; /* [num_texts] of the columns of the scores; not with nodes */
  size_t num_texts;
  const char *const *known_words; /* [num_known_words] of the texts; need `lm` */
  size_t num_known_words;
  const wf_lm *lm;          /* NULL: none; else its reference is shared */
  const int32_t *lm_labels; /* [num_lm_labels] the labels of words in `lm`; others are unknown. Not
                               used with texts */
  size_t num_lm_labels;
  wf_beam_lm_fn lm_fn; /* in place of `lm`, not with texts. One thread at a time calls it */
  void *user;
  const float *transitions; /* [num_transitions] of ASG: token * number of tokens + token before */
  size_t num_transitions;
  int32_t silence, blank; /* columns. silence has no effect with texts, blank none with asg */
  int32_t unknown_word;   /* of a lexicon: the word that stands for unknown ones */
  uint64_t reserved[4];
} wf_beam_parts;

/* Immutable. */
typedef struct wf_beam_searcher wf_beam_searcher;
/* Errors: a trie that is none, words below 0, tokens or columns outside [0, 2^30), a blank that has
 * no text, an empty known word, parts that exclude each other, transitions that are not the square
 * of a number of tokens. */
WF_API wf_status wf_beam_searcher_create(const wf_beam_parts *parts, wf_beam_searcher **out,
                                         wf_error *err);
WF_API void wf_beam_searcher_free(wf_beam_searcher *searcher);

/* The last three are for texts, the seven before them for the other vocabularies; elsewhere they
 * have no effect. */
#define WF_BEAM_OPTIONS(X)                                                                         \
  X(I32, beam_size, 50, 1, 10000000, "hypotheses", "keep this many hypotheses per frame")          \
  X(F32, beam, 50, 0, 1e30, "", "drop hypotheses that are this much worse than the best")          \
  X(F32, lm_weight, 2, -1e6, 1e6, "", "weight of the language model")                              \
  X(F32, word_score, 0, -1e6, 1e6, "",                                                             \
    "added for each word of a lexicon; with texts: for each word, if there is a language model")   \
  X(F32, unknown_score, 0, -1e6, 1e6, "",                                                          \
    "added for each unknown word; with texts: to its log10 probability")                           \
  X(BOOL, sum_alignments, 0, 0, 1, "", "sum over alignments; else the best alignment counts")      \
  X(BOOL, sentence_ends, 1, 0, 1, "",                                                              \
    "utterances begin with <s> and end with </s> for the language model")                          \
  X(I32, nbest, 0, 0, 10000000, "hypotheses", "hypotheses to return; 0: all that were kept")       \
  X(I32, num_threads, 0, 0, 4096, "threads",                                                       \
    "utterances searched in parallel; 0: one per processor")                                       \
  X(I32, beam_size_token, 0, 0, 10000000, "tokens",                                                \
    "words go on with this many tokens, the best ones of a frame; 0: all")                         \
  X(BOOL, unknown_words, 0, 0, 1, "",                                                              \
    "a part of a word's spelling that is no word itself may be an unknown word")                   \
  X(F32, silence_score, 0, -1e6, 1e6, "", "added for each frame of silence")                       \
  X(F32, blank_skip, 0, 0, 1, "probability",                                                       \
    "frames whose blank has at least this probability take no other token; 0: none")               \
  X(BOOL, asg, 0, 0, 1, "", "scores without a blank, with transitions; tokens may be repeated")    \
  X(BOOL, token_lm, 0, 0, 1, "", "the language model is one of tokens, though there is a lexicon") \
  X(BOOL, hold_word_ends, 1, 0, 1, "",                                                             \
    "a word's last token may take several frames, and needs a blank after the same token; "        \
    "0: neither, as in flashlight-text")                                                           \
  X(F32, min_token_log_prob, -5, -1e30, 1e30, "nats",                                              \
    "tokens below this log-probability are ignored, except the best of a frame")                   \
  X(F32, hotword_weight, 10, -1e6, 1e6, "nats", "added for each hotword")                          \
  X(BOOL, merge_histories, 0, 0, 1, "",                                                            \
    "keep only the best of hypotheses that the language model cannot distinguish")
WF_DECLARE_OPTIONS(beam, WF_BEAM_OPTIONS)

/* One utterance. Everything is borrowed for the call. */
typedef struct wf_beam_input {
  wf_scores scores;            /* with texts: log-posteriors, natural logarithm */
  const char *const *hotwords; /* [num_hotwords] of texts: single words, known or not */
  size_t num_hotwords;
  int64_t lm_state; /* the lm_state of a path, to continue after its words; -1: the start */
  uint64_t reserved[4];
} wf_beam_input;

typedef struct wf_beam_word {
  const char *text;
  int32_t start_frame, end_frame; /* half-open: the frames of its tokens, from 0 */
} wf_beam_word;

typedef struct wf_beam_path {
  double score;
  double token_score, lm_score; /* parts of `score`, without weight; with texts, lm_score is all
                                   that is not token_score */
  int64_t lm_state;             /* after the last word: of `lm`, or the history of lm_fn; else -1 */
  int32_t *words;               /* [length] in the frame in which a word ends: the word; else -1.
                                   With texts -1 */
  int32_t *tokens; /* [length]; silence before the first frame, and at the end; with texts -1 */
  wf_beam_word *spelled; /* [num_spelled] the words of texts, on this alignment */
  size_t num_spelled;
} wf_beam_path;

/* Owned by the caller: wf_beam_result_free. */
typedef struct wf_beam_result {
  wf_status status; /* WF_OK, or the error of this utterance. Then there are no paths */
  char message[256];
  wf_beam_path *paths; /* [num_paths] best first. With texts all different, once they have ended */
  size_t num_paths;
  int32_t num_frames; /* after frame 0, which is before the first scores */
  int32_t length;     /* of the paths: frames, with frame 0 and the end */
  void *memory;       /* of the paths */
  uint64_t reserved[4];
} wf_beam_result;
WF_API void wf_beam_result_free(wf_beam_result *result);

/* Searches `count` utterances. results[i], an array of the caller, receives the paths of utterance
 * i, also if that utterance failed: its scores have other columns than the tokens need, NaN or
 * +infinity; an unknown lm_state; lm_fn. If the call itself fails (bad options, out of memory,
 * cancelled), all results are NULL. A language model that is a function is called by this thread
 * alone; without one, thread-safe. */
WF_API wf_status wf_beam_decode(const wf_beam_searcher *searcher, const wf_beam_input *inputs,
                                size_t count, const wf_beam_options *options,
                                wf_beam_result **results, wf_error *err);

/* One utterance in progress. Not thread-safe. */
typedef struct wf_beam_search wf_beam_search;
/* The searcher is borrowed until wf_beam_search_free, and so are the hotwords of `start`, whose
 * scores are not read. start NULL: no hotwords, the start. */
WF_API wf_status wf_beam_search_create(const wf_beam_searcher *searcher, const wf_beam_input *start,
                                       const wf_beam_options *options, wf_beam_search **out,
                                       wf_error *err);
WF_API void wf_beam_search_free(wf_beam_search *search);
/* Goes on with more frames. Errors: columns, NaN or +infinity, an ended utterance (WF_ERR_STATE).
 * After an error within a frame (scores, lm_fn, memory) the search cannot go on: step, end and
 * prune fail with WF_ERR_STATE. The frames before can still be read. */
WF_API wf_status wf_beam_search_advance(wf_beam_search *search, const wf_scores *scores,
                                        wf_error *err);
/* Ends the utterance, which adds a frame. Hypotheses within a word of a lexicon are dropped if
 * there are others. Words that texts spell end. */
WF_API wf_status wf_beam_search_finish(wf_beam_search *search, wf_error *err);
/* look_back -1: the best `nbest` hypotheses of the newest frame. Else the best hypothesis without
 * its newest `look_back` frames, and back to the frame after the end of a word of a lexicon (by at
 * most 100 frames). No path: there are not so many frames, or no hypothesis. */
WF_API wf_status wf_beam_search_result(const wf_beam_search *search, int32_t look_back,
                                       wf_beam_result **out, wf_error *err);
/* Frees the frames of the path of wf_beam_search_result, except the last one, which becomes frame
 * 0. The best score becomes 0. Not with texts (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_beam_search_prune(wf_beam_search *search, int32_t look_back, wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_COMPAT_H */
