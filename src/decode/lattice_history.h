/* lattice_history.h - what a search remembers for the lattice: its tokens, and the links between
 * them that may still be in it.
 *
 *   frames  [num_frames + 1]  {first_token, first_link, first_epsilon, number}   frame 0 is the
 *           start's closure
 *   tokens                    {state, extra}                             frame after frame
 *   contexts                  of the tokens, if there is a scorer
 *   links                     {from, to, arc, excess}                    of frame f: [first_link,
 *                             first_epsilon) from tokens of f - 1 to tokens of f,
 *                                                                        then epsilons within f, in
 *                                                                        topological order
 *   loglikes                  float                                      that each link read, 0 for
 *                             epsilons; only for streams, which do not see their
 *                                                                        scores again
 *
 * The search adds frames at the end. wf__history_prune works out backward from the newest frame
 * what every token and link costs above the best way (docs/reference/semantics.md, "Lattice"), and
 * slides what is within the beam together. While the utterance goes on, every token of the newest
 * frame may turn out best, so the extra costs are lower bounds: what goes would have gone at the
 * end too, and what stays is what may still be in the lattice. So memory follows the lattice, not
 * the search. */
#ifndef WF_DECODE_LATTICE_HISTORY_H
#define WF_DECODE_LATTICE_HISTORY_H

#include "base/memory.h"
#include "decode/decode_graph.h"
#include "scorer/scoring.h"

typedef struct wf__link {
  uint32_t from, to; /* tokens, counted within their frames */
  uint32_t arc;      /* of the graph */
  float excess;      /* cost above that of the token it leads to */
} wf__link;

typedef struct wf__link_vec {
  wf__link *data;
  uint64_t size, cap;
} wf__link_vec;

typedef struct wf__past_token {
  uint32_t state;
  float extra_cost; /* cost of the best way through it above the best way of all */
} wf__past_token;

typedef struct wf__past_frame {
  uint64_t first_token, first_link, first_epsilon;
  int64_t number; /* of its scores: those of skipped frames are missing here */
} wf__past_frame;

typedef struct wf__epsilon_node {
  uint32_t first, count; /* epsilon links out of a token */
  uint32_t degree;       /* into it, from tokens not in order yet */
} wf__epsilon_node;

typedef struct wf__history {
  float beam;
  WF__VEC(wf__past_frame) frames;
  WF__VEC(wf__past_token) tokens;
  WF__VEC(uint64_t) contexts; /* of the tokens; empty without a scorer */
  wf__link_vec links;
  WF__VEC(float) loglikes;
  bool keeps_loglikes;
  WF__VEC(float)
  endings; /* of the newest frame's tokens, at the end of the utterance: cost of ending there above
              the best ending */
  uint64_t num_pruned_frames;    /* frames there were at the last pruning: their extra costs stand
                              until    those of later frames change */
  WF__VEC(float) before;         /* scratch: extra costs of a frame at the last pruning */
  WF__VEC(uint32_t) renumber[2]; /* scratch: new numbers of a frame's tokens, and of those before */
  WF__VEC(wf__epsilon_node) nodes; /* scratch of wf__history_add_epsilons, by token */
  WF__VEC(uint32_t) queue;
} wf__history;

void wf__history_clear(wf__history *history, float beam);
void wf__history_free(wf__history *history);
/* Begins the next frame. Its links, its epsilon links (wf__history_begin_epsilons between) and its
 * tokens, with extra 0, are then pushed by the caller, and with a scorer their contexts. */
wf_status wf__history_begin_frame(wf__history *history, int64_t number, wf_error *err);
void wf__history_begin_epsilons(wf__history *history);
/* The newest frame's epsilon links, fewer than 2^32, in runs by source; they make no cycle. */
wf_status wf__history_add_epsilons(wf__history *history, const wf__link *epsilons, uint64_t size,
                                   uint64_t num_tokens, wf_error *err);
/* `to` becomes a copy of all but the endings; it keeps its memory. */
wf_status wf__history_copy(const wf__history *from, wf__history *to, wf_error *err);
/* Drops what cannot be within the beam any more. Numbers of tokens in the newest frame stay. */
wf_status wf__history_prune(wf__history *history, wf_error *err);
/* The last pruning: `endings`, filled by the caller for every token of the newest frame, take the
 * place of 0. What is left then is the lattice. */
wf_status wf__history_end(wf__history *history, wf_error *err);
/* Takes what is before the latest token that every path goes through out of the history, into
 * `part` (empty: there is none), a history of `*num_frames` that is pruned and has its endings.
 * lattice_parts.c. */
wf_status wf__history_take_part(wf__history *history, wf__history *part, int64_t *num_frames,
                                wf_error *err);
/* The lattice in its canonical order, of `num_frames` frames, skipped ones included. `scores` holds
 * them all, or is NULL if loglikes are kept; `final`: endings are on final states and cost what the
 * graph and the scorer say, else nothing. */
wf_status wf__history_lattice(const wf__history *history, const wf_graph *graph,
                              const wf_decoder_options *options, const wf_scores *scores,
                              wf__scoring *scoring, int64_t num_frames, bool final,
                              wf_lattice **out, wf_error *err);

#endif
