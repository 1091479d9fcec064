/* trie_search.h - the beam search over a trie of words: its parts, and its state.
 *
 * A hypothesis is a node of the trie, a history of words (trie_history.c) and its last token. It
 * takes the tokens of a frame that can survive (trie_columns.c). The kept hypotheses of all frames
 * are one array, linked by back-pointers (trie_paths.c). */
#ifndef WF_DECODE_TRIE_SEARCH_H
#define WF_DECODE_TRIE_SEARCH_H

#include "base/map64.h"
#include "decode/score_row.h"

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
  int32_t min_columns;  /* that scores must have */
  double most_gain;     /* a token adds no more than its score and this; infinity: not known */
  int64_t most_repeats; /* a word ends with a token at most so often after a node; for sums */
  uint32_t *by_token;   /* [num_nodes] the children of large nodes, by token */
};

/* Nodes with more children than this look up the tokens of a list. */
enum { WF__TRIE_LARGE = 64 };

/* --- histories (trie_history.c) ------------------------------------------------------------- */

/* Without a function as the language model, histories are sequences of words; with one, they are
 * what it says, and each word after a history is asked for once. A history of the frame in work has
 * a number for this frame only, from `first_new` on, until a hypothesis with it is kept. */
typedef struct wf__trie_histories {
  const wf_trie_searcher *searcher;
  WF__VEC(int64_t) states;  /* of the language model, by history */
  WF__VEC(uint32_t) before; /* by history: the one without the last word, or UINT32_MAX */
  WF__VEC(struct wf__trie_move {
    uint32_t to;
    double score;
  })
  moves;
  WF__VEC(struct wf__trie_new {
    uint32_t before;
    int32_t word;
  })
  fresh;                /* of the frame in work */
  uint32_t first_new;   /* number of histories before the frame */
  wf__map64 fresh_of;   /* history << 32 | word -> place in `fresh` */
  wf__map64 move_of;    /* history << 32 | word -> move */
  wf__map64 history_of; /* state of the function -> history */
} wf__trie_histories;

/* History 0 is the start. Free with wf__trie_histories_free, also after an error. */
wf_status wf__trie_histories_init(wf__trie_histories *h, const wf_trie_searcher *searcher,
                                  wf_error *err);
void wf__trie_histories_free(wf__trie_histories *h);
/* A frame begins: forgets the histories that were not kept. */
void wf__trie_begin_frame(wf__trie_histories *h);
/* The score of a word after a history, which is not of this frame. */
wf_status wf__trie_score(wf__trie_histories *h, uint32_t history, int32_t word, double *score,
                         wf_error *err);
/* The history after the word, once the score is known. */
wf_status wf__trie_append(wf__trie_histories *h, uint32_t history, int32_t word, uint32_t *to,
                          wf_error *err);
/* A hypothesis is kept: its history gets a number that lasts. */
wf_status wf__trie_number(wf__trie_histories *h, uint32_t *history, wf_error *err);
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

/* --- columns of a frame (trie_columns.c) ----------------------------------------------------- */

/* What a hypothesis gives with a token is at most this and the token's score. `together`: the sum
 * of what all hypotheses with the same history give. */
typedef struct wf__trie_bound {
  double alone, together;
} wf__trie_bound;

typedef struct wf__trie_columns {
  wf__score_row row;
  /* The beam_size_token best: below this key, or with it and up to this column. */
  uint64_t last_key;
  int32_t last_column;
  float least_chosen;             /* its score */
  float low;                      /* a score that does not reach least.together */
  WF__VEC(wf__trie_bound) bounds; /* by place in the frame before */
  wf__trie_bound bound, least; /* of the hypothesis in work, and what a column's score must reach:
                                     least.together, or of a meeting least.alone */
  /* Of sums: a column that leads to a hypothesis which is there already may be needed even if it is
   * low. */
  wf__map64 sums; /* history -> place in `together` */
  WF__VEC(double) together;
  wf__map64 meetings;       /* history << 32 | column */
  WF__VEC(int32_t) meeting; /* columns of meetings */
  bool *meets;              /* [num_columns] is it the column of a meeting, or silence? */
  bool *block_meets;        /* [num_blocks] */
  /* The first hypothesis that looks at many columns looks at all, the others at a list. */
  enum { WF__COLUMNS_ALL, WF__COLUMNS_SEEN, WF__COLUMNS_LISTED } listed;
  int32_t *list; /* [num_columns] */
  int32_t list_size;
  double list_least;          /* what scores of the list reach, but for `meets` */
  wf__trie_bound highest;     /* of the hypotheses that the list is for */
  WF__VEC(uint32_t) children; /* of the node `children_of`, with columns of the list */
  uint32_t children_of;
  bool by_list; /* does the hypothesis in work look at the list, or at `children`? */
} wf__trie_columns;

struct wf_trie_search {
  const wf_trie_searcher *searcher;
  wf__trie_histories histories;
  wf__trie_hypotheses kept; /* of all frames */
  WF__VEC(uint64_t) begins; /* by frame: its first place in `kept` */
  wf__trie_hypotheses next; /* of the frame in work */
  wf__map64 merged;         /* key of a hypothesis -> place in `next` */
  WF__VEC(uint64_t) keys;   /* scores, for selection */
  wf__trie_columns columns; /* of the frame in work */
  double best, floor;       /* of the frame in work: its best score, and what is too low */
  double bar;               /* of sums: what is lower at the end of the frame is dropped */
  uint64_t next_check;      /* size of `next` at which `floor` or `bar` is raised */
  uint64_t num_frames;      /* decoded so far, with those that were freed */
  bool ended;
  bool failed;      /* within a frame: histories and the frame in work are incomplete */
  bool all_columns; /* for tests: looks also at columns that cannot survive */
};

/* For rows of `num_columns`, as wf__score_row_resize. */
wf_status wf__trie_columns_resize(wf__trie_columns *c, int32_t num_columns, wf_error *err);
void wf__trie_columns_free(wf__trie_columns *c);
/* Chooses the columns of the frame that was read, for the newest hypotheses of `kept`. */
wf_status wf__trie_columns_begin(wf_trie_search *s, wf_error *err);
/* Before hypothesis `place` takes tokens: is there a list, and what must scores reach? */
wf_status wf__trie_columns_turn(wf_trie_search *s, const wf__trie_hypothesis *from, uint32_t place,
                                wf_error *err);
/* After `floor`, `best` or `bar` was raised. */
void wf__trie_columns_raise(wf_trie_search *s);
/* The next column that the hypothesis looks at, in their order; -1: no more. *at: initially 0. */
int32_t wf__trie_next_column(const wf_trie_search *s, const wf__trie_hypothesis *from, int32_t *at);
/* The next child of its node, likewise; 0: no more. */
uint32_t wf__trie_next_child(const wf_trie_search *s, const wf__trie_hypothesis *from,
                             uint32_t *at);
/* Is it one of the beam_size_token best? */
bool wf__trie_is_chosen(const wf_trie_search *s, int32_t column);

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
