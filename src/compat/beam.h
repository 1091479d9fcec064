/* beam.h - the beam search without a graph: its parts, its hypotheses, its state.
 *
 *   beam_search.c     a frame: the newest hypotheses of `kept` take tokens, the best of `next` stay
 *     beam_words.c      ... along a lexicon, or any tokens (beam_columns.c: which ones)
 *     beam_spelled.c    ... that spell words (prefixes.c: words and their scores)
 *   beam_table.c      recombination, and which hypotheses are kept
 *   beam_histories.c  histories of words, and what the language model says of them
 *   beam_result.c     follows back-pointers: results, and frames that can be freed
 *
 * The kept hypotheses of all frames are one array, linked by back-pointers. */
#ifndef WF_COMPAT_BEAM_H
#define WF_COMPAT_BEAM_H

#include <math.h>

#include "compat/prefixes.h"
#include "compat/score_row.h"
#include "lm/automaton.h"

/* How often the same word may end with a token after a node. */
typedef struct wf__beam_repeats {
  int64_t words, tokens; /* of words that are told apart, or not (token_lm) */
} wf__beam_repeats;

/* What an n-gram model says of columns that are words, without a lexicon (lm_columns.c). */
typedef struct wf__lm_columns {
  const wf__automaton *lm;
  float *costs;     /* [num_lm_labels] of the unigram; NULL: the model is asked for each column */
  float other;      /* of columns without a label */
  uint32_t *first;  /* [labels of the model + 1] by label: its first place in `columns` */
  int32_t *columns; /* [num_lm_labels] */
} wf__lm_columns;

struct wf_beam_searcher {
  wf_beam_node *nodes; /* [num_nodes] */
  int32_t *words, *lm_labels;
  float *transitions; /* [num_transition_tokens squared] or NULL */
  uint32_t num_nodes;
  size_t num_lm_labels;
  wf_lm *lm;       /* or NULL */
  double lm_least; /* no word costs less */
  wf_beam_lm_fn lm_fn;
  void *user;
  int32_t silence, blank, unknown_word;
  int32_t num_transition_tokens;
  int32_t min_columns;           /* that scores must have, but for the blank */
  float least_score, most_score; /* of the nodes but the root */
  float most_transition;         /* or 0 */
  wf__beam_repeats most_repeats;
  uint32_t *by_token; /* [num_nodes] the children of large nodes, by token */
  wf__lm_columns lm_columns;
  wf_beam_text *texts; /* [num_texts] */
  int32_t num_texts;   /* 0: tokens do not spell words */
  bool texts_end;      /* a token with text may end its word */
  wf__word_trie known_words;
};

/* Nodes with more children than this look up the tokens of a list. */
enum { WF__BEAM_LARGE = 64 };

/* --- hypotheses ----------------------------------------------------------------------------- */

typedef struct wf__hypothesis {
  double score, token_score, lm_score;
  double highest;   /* of the scores that were merged into it: that one's alignment is kept */
  uint32_t parent;  /* place in the frame before */
  uint32_t history; /* with texts a prefix */
  uint32_t node;    /* 0: between words, or no lexicon */
  int32_t token;    /* of this frame */
  int32_t word;     /* that ended in this frame; -1: none */
  bool after_blank; /* this frame's token is a blank that was searched as one */
} wf__hypothesis;
typedef WF__VEC(wf__hypothesis) wf__hypotheses;

/* A hypothesis to be sorted: by score, best first, then by `order`. */
typedef struct wf__rank {
  double score;
  uint64_t order;
  uint64_t place;
} wf__rank;

/* --- columns of a frame (beam_columns.c) ----------------------------------------------------- */

/* What a hypothesis gives with a token is at most this and the token's score. `together`: the sum
 * of what all hypotheses with the same history give. */
typedef struct wf__beam_bound {
  double alone, together;
} wf__beam_bound;

/* A column of lm_row that was raised to infinity, and what was there: itself and its block. */
typedef struct wf__lm_mark {
  int32_t column;
  float value, most;
} wf__lm_mark;

typedef struct wf__beam_columns {
  wf__score_row row;
  /* The beam_size_token best: below this key, or with it and up to this column. */
  uint64_t last_key;
  int32_t last_column;
  float least_chosen;             /* its score */
  float low;                      /* a score that does not reach least.together */
  WF__VEC(wf__beam_bound) bounds; /* by place in the frame before */
  wf__beam_bound bound, least;    /* of the hypothesis in work, and what a column's score must
                                     reach: least.together, or of a meeting least.alone */
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
  wf__beam_bound highest;     /* of the hypotheses that the list is for */
  WF__VEC(uint32_t) children; /* of the node `children_of`, with columns of the list */
  uint32_t children_of;
  bool by_list; /* does the hypothesis in work look at the list, or at `children`? */
  /* With searcher->lm_columns: the row with the model's unigrams. Infinity: must be looked at. */
  wf__score_row lm_row;
  WF__VEC(wf__lm_mark) marks; /* what the model's state has n-grams for */
  wf__beam_bound lm_bound;    /* as `bound`, with the state's back-off costs, without the unigram */
  float lm_low;               /* as `low`, for lm_row */
  bool by_lm;                 /* does the hypothesis in work look at lm_row? */
} wf__beam_columns;

/* --- a search ------------------------------------------------------------------------------- */

struct wf_beam_search {
  const wf_beam_searcher *searcher;
  wf_beam_options options;
  int32_t silence, blank; /* columns; -1: none */
  double most_gain;       /* a token adds no more than its score and this; infinity: not known */
  int64_t most_repeats;   /* a word ends with a token at most so often after a node; for sums */
  wf__histories histories;
  wf__prefixes prefixes;    /* of texts */
  wf__hypotheses kept;      /* of all frames */
  WF__VEC(uint64_t) begins; /* by frame: its first place in `kept` */
  wf__hypotheses next;      /* of the frame in work */
  wf__map64 merged;         /* key of a hypothesis -> place in `next` */
  WF__VEC(uint64_t) keys;   /* scores, for selection */
  WF__VEC(wf__rank) ranks;
  wf__beam_columns columns; /* of the frame in work */
  double best, floor;       /* of the frame in work: its best score, and what is too low */
  double bar;               /* of sums: what is lower at the end of the frame is dropped */
  uint64_t next_check;      /* size of `next` at which `floor` or `bar` is raised */
  uint64_t num_frames;      /* decoded so far, with those that were freed */
  bool ended;
  bool failed;      /* within a frame: histories and the frame in work are incomplete */
  bool all_columns; /* for tests: looks also at columns that cannot survive */
};

static inline uint64_t wf__beam_frame_size(const wf_beam_search *s, uint64_t frame) {
  return (frame + 1 < s->begins.size ? s->begins.data[frame + 1] : s->kept.size) -
         s->begins.data[frame];
}
static inline wf__hypothesis *wf__beam_frame(const wf_beam_search *s, uint64_t frame) {
  return s->kept.data + s->begins.data[frame];
}
static inline uint64_t wf__beam_newest(const wf_beam_search *s) { return s->begins.size - 1; }

/* What a frame with this token adds to the score of the tokens, and to the score beside that. */
static inline double wf__beam_emission(const wf_beam_search *s, const wf__hypothesis *from,
                                       int32_t token) {
  const wf_beam_searcher *parts = s->searcher;
  double score = (double)s->columns.row.values[token];
  if (parts->transitions != NULL && s->num_frames > 0)
    score += (double)parts->transitions[token * parts->num_transition_tokens + from->token];
  return score;
}
static inline double wf__beam_silence_bonus(const wf_beam_search *s, int32_t token) {
  return token == s->silence ? (double)s->options.silence_score : 0;
}
/* The hypothesis after one more frame with this token, before words change. */
static inline wf__hypothesis wf__beam_step(const wf_beam_search *s, const wf__hypothesis *from,
                                           uint32_t parent, int32_t token) {
  wf__hypothesis h = *from;
  double score = wf__beam_emission(s, from, token);
  h.parent = parent;
  h.token = token;
  h.word = -1;
  h.after_blank = false;
  h.token_score += score;
  h.score += score + wf__beam_silence_bonus(s, token);
  return h;
}

/* --- recombination and selection (beam_table.c) ---------------------------------------------- */

/* A frame begins: empties `next`. */
void wf__beam_begin(wf_beam_search *s);
static inline bool wf__beam_too_low(const wf_beam_search *s, double score) {
  return !(score > -INFINITY) || score < s->floor;
}
/* Adds a hypothesis to `next`, or to the one that is the same, unless its score is too low. Raises
 * `best`, `floor` and `bar`. Sets `highest`. */
wf_status wf__beam_add(wf_beam_search *s, wf__hypothesis *h, wf_error *err);
/* With texts: the score of the words depends on the history alone, so scores of tokens are merged,
 * and all of them. `highest` is set. */
wf_status wf__beam_add_spelled(wf_beam_search *s, const wf__hypothesis *h, wf_error *err);
/* The score of the `count`-th best of `next`, 0 < count <= size. */
wf_status wf__beam_nth_best(wf_beam_search *s, uint64_t count, double *out, wf_error *err);
/* Moves the frame's best hypotheses to `kept`, the best one first, the others in any fixed order.
 */
wf_status wf__beam_keep(wf_beam_search *s, wf_error *err);
/* The same, sorted; orders are the caller's: `ranks` has all of `next`. */
wf_status wf__beam_keep_sorted(wf_beam_search *s, wf_error *err);
void wf__beam_sort(wf__rank *ranks, uint64_t num);

/* For rows of `num_columns`, as wf__score_row_resize. */
wf_status wf__beam_columns_resize(wf__beam_columns *c, int32_t num_columns, wf_error *err);
void wf__beam_columns_free(wf__beam_columns *c);
/* Chooses the columns of the frame that was read, for the newest hypotheses of `kept`. */
wf_status wf__beam_columns_begin(wf_beam_search *s, wf_error *err);
/* Before hypothesis `place` takes tokens: is there a list, and what must scores reach? */
wf_status wf__beam_columns_turn(wf_beam_search *s, const wf__hypothesis *from, uint32_t place,
                                wf_error *err);
/* After `floor`, `best` or `bar` was raised. */
void wf__beam_columns_raise(wf_beam_search *s);
/* The next column that the hypothesis looks at, in their order; -1: no more. *at: initially 0. */
int32_t wf__beam_next_column(const wf_beam_search *s, const wf__hypothesis *from, int32_t *at);
/* The next child of its node, likewise; 0: no more. */
uint32_t wf__beam_next_child(const wf_beam_search *s, const wf__hypothesis *from, uint32_t *at);
/* Is it one of the beam_size_token best? */
bool wf__beam_is_chosen(const wf_beam_search *s, int32_t column);

/* Makes searcher->lm_columns (lm_columns.c). */
wf_status wf__lm_columns_init(wf_beam_searcher *s, wf_error *err);
void wf__lm_columns_free(wf__lm_columns *c);
/* Fills lm_row for the frame that was read. */
wf_status wf__lm_columns_begin(wf_beam_search *s, wf_error *err);
/* Sets by_lm, marks and lm_bound for a hypothesis. */
wf_status wf__lm_columns_turn(wf_beam_search *s, const wf__hypothesis *from, uint32_t place,
                              wf_error *err);

/* --- what hypotheses take -------------------------------------------------------------------- */

/* The newest hypotheses take the tokens of the frame that was read (beam_words.c). */
wf_status wf__beam_take_words(wf_beam_search *s, wf_error *err);
wf_status wf__beam_end_words(wf_beam_search *s, wf_error *err);
/* The same of tokens that spell words (beam_spelled.c). */
wf_status wf__beam_take_texts(wf_beam_search *s, wf_error *err);
wf_status wf__beam_end_texts(wf_beam_search *s, wf_error *err);

/* --- searches and results --------------------------------------------------------------------- */

/* Do they fit the parts? */
wf_status wf__beam_check_options(const wf_beam_searcher *parts, const wf_beam_options *o,
                                 wf_error *err);
/* An error if the search failed within a frame. Frames that were complete can still be read. */
wf_status wf__beam_check_whole(const wf_beam_search *s, wf_error *err);
/* Fills a result, initially zero. After an error, too, its memory is the caller's to free. */
wf_status wf__beam_write_result(const wf_beam_search *s, int32_t look_back, wf_beam_result *out,
                                wf_error *err);
/* Frees the paths; they are none then. */
void wf__beam_free_paths(wf_beam_result *result);

#endif
