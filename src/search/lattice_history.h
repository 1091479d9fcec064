/* lattice_history.h - a search's history for the lattice: tokens, and links between them that
 * may still be in it.
 *
 *   frames  [num_frames + 1]  {first_token, first_link, first_epsilon, number}   frame 0 is the
 *           start's closure
 *   tokens                    {state, extra_cost}                        frame after frame
 *   contexts                  of the tokens, if there is a scorer
 *   labels                    of the tokens, with a transducer
 *   links                     {from, to, arc, excess}                    of frame f: [first_link,
 *                             first_epsilon) from tokens of f - 1 to tokens of f,
 *                                                                        then epsilons within f, in
 *                                                                        topological order
 *   loglikes                  float                                      that each link read, 0 for
 *                             epsilons; only for streams, which do not see their
 *                                                                        scores again
 *
 * The search adds frames at the end. wf__history_prune computes, backward from the newest frame,
 * the extra cost of every token and link above the best path (docs/reference/semantics.md,
 * "Lattice"), and compacts those within the beam. During the utterance every token of the newest
 * frame may turn out best, so extra costs are lower bounds: what is dropped would be dropped at
 * the end, too. So memory grows with the lattice, not with the search. */
#ifndef WF_SEARCH_LATTICE_HISTORY_H
#define WF_SEARCH_LATTICE_HISTORY_H

#include "base/memory.h"
#include "scorer/scoring.h"
#include "search/decode_graph.h"

/* With a transducer: the arc of a link from a token that waits in a frame to itself in the next. */
#define WF__WAITS (UINT32_MAX - 1)

typedef struct wf__link {
  uint32_t from, to; /* tokens, counted within their frames */
  uint32_t arc;      /* of the graph */
  float excess;      /* cost above the cost of the token that it leads to */
} wf__link;

typedef struct wf__link_vec {
  wf__link *data;
  uint64_t size, cap;
} wf__link_vec;

typedef struct wf__past_token {
  uint32_t state;
  float extra_cost; /* cost of the best path through it above the best path of all */
} wf__past_token;

typedef struct wf__past_frame {
  uint64_t first_token, first_link, first_epsilon;
  int64_t number; /* number of its scores; skipped frames have no entry here */
} wf__past_frame;

typedef struct wf__epsilon_node {
  uint32_t first, count; /* epsilon links that leave the token */
  uint32_t degree;       /* links into it from tokens that are not in order yet */
} wf__epsilon_node;

typedef struct wf__history {
  float beam;
  WF__VEC(wf__past_frame) frames;
  WF__VEC(wf__past_token) tokens;
  WF__VEC(uint64_t) contexts; /* of the tokens; empty without a scorer */
  WF__VEC(int32_t)
  labels; /* with a transducer: of the tokens, the label of a frame that ends after them; else
             empty. Links within a frame then consume no frame in the lattice, although they read
             scores */
  wf__link_vec links;
  WF__VEC(float) loglikes;
  bool keeps_loglikes;
  WF__VEC(float)
  endings; /* of the newest frame's tokens, at the end of the utterance: cost of ending there above
              the best ending */
  uint64_t num_pruned_frames; /* number of frames at the last pruning: their extra costs are valid
                                 until those of later frames change */
  WF__VEC(float) before;      /* scratch: extra costs of a frame at the last pruning */
  WF__VEC(uint32_t)
  renumber[2]; /* scratch: new numbers of a frame's tokens, and of the previous frame's */
  WF__VEC(wf__epsilon_node) nodes; /* scratch of wf__history_add_epsilons, by token */
  WF__VEC(uint32_t) queue;
} wf__history;

void wf__history_clear(wf__history *history, float beam);
void wf__history_free(wf__history *history);
/* Begins the next frame. The caller then pushes its links, its epsilon links (after
 * wf__history_begin_epsilons), its tokens with extra cost 0 and, with a scorer, their contexts. */
wf_status wf__history_begin_frame(wf__history *history, int64_t number, wf_error *err);
void wf__history_begin_epsilons(wf__history *history);
/* The newest frame's epsilon links, fewer than 2^32, in runs by source; they make no cycle. */
wf_status wf__history_add_epsilons(wf__history *history, const wf__link *epsilons, uint64_t size,
                                   uint64_t num_tokens, wf_error *err);
/* Copies everything except the endings to `to`, which keeps its memory. */
wf_status wf__history_copy(const wf__history *from, wf__history *to, wf_error *err);
/* Drops tokens and links that cannot be within the beam any more. Numbers of tokens in the
 * newest frame stay. */
wf_status wf__history_prune(wf__history *history, wf_error *err);
/* The last pruning: `endings`, filled by the caller for every token of the newest frame, replace
 * the extra costs of 0. The rest is the lattice. */
wf_status wf__history_end(wf__history *history, wf_error *err);
/* Makes the lattice in its canonical order, of `num_frames` frames, skipped ones included.
 * `scores` holds them all, or is NULL if loglikes are kept. `final`: endings are on final states
 * and have the final costs of graph and scorer; else they cost nothing. */
wf_status wf__history_lattice(const wf__history *history, const wf_graph *graph,
                              const wf_decoder_options *options, const wf_scores *scores,
                              wf__scoring *scoring, int64_t num_frames, bool final,
                              wf_lattice **out, wf_error *err);
/* lattice_parts.c: takes the part of the history before the latest token that every path goes
 * through out of it, and makes its lattice; NULL: there is no such token. Loglikes must be kept. */
wf_status wf__history_commit(wf__history *history, const wf_graph *graph,
                             const wf_decoder_options *options, wf__scoring *scoring,
                             wf_lattice **out, wf_error *err);

#endif
