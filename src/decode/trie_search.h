/* trie_search.h - the beam search over a trie of words: its parts, and its state.
 *
 * A hypothesis is a node of the trie, a history of words (trie_history.c) and its last token. The
 * kept hypotheses of all frames are one array, linked by back-pointers (trie_paths.c). */
#ifndef WF_DECODE_TRIE_SEARCH_H
#define WF_DECODE_TRIE_SEARCH_H

#include "base/map64.h"

struct wf_trie_searcher {
  wf_trie_options options;
  wf_trie_node *nodes; /* [num_nodes] */
  int32_t *words, *lm_labels;
  float *transitions; /* [num_transition_tokens squared] or NULL */
  uint32_t num_nodes;
  size_t num_lm_labels;
  wf_lm *lm; /* or NULL */
  wf_trie_lm_fn lm_fn;
  void *user;
  int64_t first_history;
  int32_t silence, blank, unknown_word;
  int32_t num_transition_tokens;
  int32_t min_columns; /* that scores must have */
};

/* --- histories (trie_history.c) ------------------------------------------------------------- */

/* A history and what one more word adds to it, each worked out once. Without a function as the
 * language model, histories are sequences of words; with one, they are what it says. */
typedef struct wf__trie_histories {
  const wf_trie_searcher *searcher;
  WF__VEC(int64_t) states; /* of the language model, by history */
  WF__VEC(struct wf__trie_move {
    uint32_t to;
    double score;
  })
  moves;
  wf__map64 move_of;    /* history << 32 | word -> move */
  wf__map64 history_of; /* state of the function -> history */
} wf__trie_histories;

/* History 0 is the start. Free with wf__trie_histories_free, also after an error. */
wf_status wf__trie_histories_init(wf__trie_histories *h, const wf_trie_searcher *searcher,
                                  wf_error *err);
void wf__trie_histories_free(wf__trie_histories *h);
/* The history after a word, and the word's score. */
wf_status wf__trie_move(wf__trie_histories *h, uint32_t history, int32_t word, uint32_t *to,
                        double *score, wf_error *err);
/* Score of the end of the utterance. */
wf_status wf__trie_finish(wf__trie_histories *h, uint32_t history, double *score, wf_error *err);
/* Keeps the histories of which new_of[history] is not UINT32_MAX, and sets their new numbers
 * there. */
wf_status wf__trie_histories_keep(wf__trie_histories *h, uint32_t *new_of, wf_error *err);

/* --- hypotheses ----------------------------------------------------------------------------- */

typedef struct wf__trie_hypothesis {
  double score, token_score, lm_score;
  double highest;  /* of the scores that were merged into it: that one's alignment is kept */
  uint32_t parent; /* place in the frame before */
  uint32_t history, node;
  int32_t token, word; /* of this frame; word: -1 none */
  bool after_blank;    /* this frame's token is a blank that was searched as one */
} wf__trie_hypothesis;
typedef WF__VEC(wf__trie_hypothesis) wf__trie_hypotheses;

struct wf_trie_search {
  const wf_trie_searcher *searcher;
  wf__trie_histories histories;
  wf__trie_hypotheses kept; /* of all frames */
  WF__VEC(uint64_t) begins; /* by frame: its first place in `kept` */
  wf__trie_hypotheses next; /* of the frame in work */
  wf__map64 merged;         /* key of a hypothesis -> place in `next` */
  WF__VEC(uint64_t) keys;   /* scores, for selection */
  WF__VEC(float) row;       /* scores of the frame's tokens */
  WF__VEC(bool) chosen;     /* tokens that words go on with */
  double best, floor;       /* of the frame in work: its best score, and what is too low */
  uint64_t next_check;      /* size of `next` at which `floor` is raised */
  uint64_t num_frames;      /* decoded so far, with those that were freed */
  bool ended;
  bool failed; /* within a frame: histories and the frame in work are incomplete */
};

/* An error if the search failed within a frame. Frames that were complete can still be read. */
wf_status wf__trie_check_whole(const wf_trie_search *s, wf_error *err);

static inline uint64_t wf__trie_frame_size(const wf_trie_search *s, uint64_t frame) {
  return (frame + 1 < s->begins.size ? s->begins.data[frame + 1] : s->kept.size) -
         s->begins.data[frame];
}
static inline const wf__trie_hypothesis *wf__trie_frame(const wf_trie_search *s, uint64_t frame) {
  return s->kept.data + s->begins.data[frame];
}

#endif
