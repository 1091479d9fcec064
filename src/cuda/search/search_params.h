/* search_params.h - the parameters of the search kernels. Plain C, shared by the host and the
 * kernels.
 *
 * A lane is a cluster of 1, 2, 4 or 8 thread blocks. It searches one utterance at a time, frame
 * by frame, and then takes the next one from a queue. All memory of a lane is planned before the
 * launch:
 *
 *   per block of a lane (rank)
 *     shared    table of the frame: keys [SLOTS] states, values [SLOTS] (ordered cost << 32 | arc);
 *               the scores of the frame. SLOTS is what the GPU has room for (WF__PLAIN_SLOT_BITS)
 *     costs     [SLOTS]  of the tokens to expand next, in table order; their states are the trace's
 *               last
 *     frontier  [2][SLOTS] {table slot, cost} improved in this epsilon round and the next (the
 *               first 1,024 slots in shared memory)
 *     trace     {state, arc} of every token of every frame, with the offsets of frames and of
 *               groups of table slots in them, so that a token is found again by its state: the
 *               backtrace needs no links
 *     past      {cost, extra cost} of the same tokens, with lattices (backward.cuh)
 *   per lane
 *     records   of the frames: the limits that decide which arcs are in the lattice
 *   for all lanes
 *     pages     of arcs of lattices; those of an utterance are a chain. With scorers, contexts
 *               beside them
 *
 * instances/ compiles the search for each wf__search_kind. With scorers
 * (docs/reference/semantics.md, "With a scorer") tokens are pairs (state, context), and each block
 * of a lane also has
 *
 *     shared    fingerprints, of 16 bits, of keys of 64 bits, state above context, in a table of
 *               2^15 slots (WF__SCORED_SLOT_BITS)
 *     entries   [2^15] {key, value} by slot
 *     listed    the frame's candidates: listed while arcs are gone over, offered to the table when
 *               the best of them is known
 *     contexts  {context, context of the token it came from} beside the trace
 *     word_log  {value, context, slot} of the frame's candidates that brought a word and were the
 *               best of their slot when they came: several contexts may offer the same (cost, arc),
 *               and the table's value has no room for which. At the end of the frame the least
 *               context of those that stand is the one a token came from (a token that an arc
 *               without a word led to has the same context as before)
 *     sources   [2^15] by slot: where that minimum is found
 *     word_candidates
 *               candidates over arcs with words: gathered first, so that whole warps call the
 *               scorer. The scores of emitting arcs are kept for the other passes over them
 *     memo      [2^15] cache of the scorer's results by context and word, since the launch began or
 *               the lane took another scorer
 *
 * With boosts of few contexts numbers of pairs take the places of states and arcs in what a search
 * without scorers has (boost_pairs.cuh).
 *
 * With recombine=state the key is the state alone. The log has every candidate that was the best
 * of its slot when it came, with the context that it leads to. The candidates that remain the
 * best write their contexts to `sources`, where the next epsilon round and the next frame read
 * them. Utterances with words added at run time (search_graph.cuh) use the kernels with scorers.
 *
 * For streams (stream_ends.cuh has what differs) an "utterance" is a chunk of a stream, whose
 * tokens the lane reads from the stream's memory and writes back after the chunk:
 *
 *   per stream
 *     tokens    [max_tokens] {cost, state} of the newest frame; contexts beside them
 *   per block of a lane
 *     links     {where the token came from, its number among those emitted} beside the trace
 *     past      {cost, extra cost} as above, with lattices (stream_links.cuh)
 *   for all lanes, in host memory
 *     back_pointers
 *               of the chunk: the tokens that the newest frame's tokens came from, frame after
 *               frame, and these tokens themselves; with lattices, all tokens that may be in one,
 *               and links between them. The host keeps the history of a stream
 *
 * Searches with a recurrent scorer end where scores are missing and go on in the next launch
 * (deferred_scores.cuh). */
#ifndef WF_CUDA_SEARCH_SEARCH_PARAMS_H
#define WF_CUDA_SEARCH_SEARCH_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/device/gpu_profile.h"
#include "cuda/search/deferred_scores.h"
#include "scorer/flat_scorer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WF__LANE_THREADS = 1024,
  WF__LANE_MIN_BITS = 10, /* a frame uses at least 2^10 slots of a rank's table */
  WF__LANE_FEW = 512, /* a frame with at most this many tokens a rank lists its candidates first */
  WF__LANE_GROUP_BITS = 7, /* groups of slots in the trace's index of a frame: 2^7 */
  WF__LANE_GROUPS = 1 << WF__LANE_GROUP_BITS,
  WF__LANE_INDEX =
      WF__LANE_GROUPS + 2,     /* first token of each group, and the size of the table (bits) */
  WF__LANE_WORD_LOG = 1 << 17, /* entries of a rank's log of words */
  WF__LANE_WORD_CANDIDATES = 1 << 17, /* entries of a rank's word candidates */
#ifndef WF__LANE_MEMO_BITS
  WF__LANE_MEMO_BITS = 15, /* of a rank's memo: 2^15 results of the scorer */
#endif
#ifndef WF__LANE_LISTED
  WF__LANE_LISTED =
      1 << 16, /* entries of a rank's list of candidates; frames with more do not use the list */
#endif
  WF__LANE_MAX_ROW =
      5200, /* columns whose costs fit in shared memory; wider rows are read from device memory */
  WF__BACKWARD_THREADS = 512, /* threads of a block that makes a lattice */
  WF__LANE_PAGE = 256,        /* entries of 16 bytes in a page, wf__lane_link */
};

/* Bits of the number of slots of a block's table, for a block with shared_kb of shared memory. The
 * table of the search with scorers keeps only 16 bits of a slot in shared memory and the rest in
 * device memory, so it has more slots. Utterances without scorers whose frames have too many tokens
 * for the other table are searched with it, too. */
#define WF__PLAIN_SLOT_BITS(shared_kb) \
  ((shared_kb) >= 227 ? 14 : (shared_kb) >= 163 ? 13 : (shared_kb) >= 99 ? 12 : 11)
#define WF__SCORED_SLOT_BITS(shared_kb) ((shared_kb) >= 99 ? 15 : 14)
static inline uint32_t wf__lane_slots(int32_t shared_kb, bool scored) {
  return 1u << (scored ? WF__SCORED_SLOT_BITS(shared_kb) : WF__PLAIN_SLOT_BITS(shared_kb));
}
/* Words of a block's list of columns, and of the bitmap of those that are in it. */
#define WF__LANE_COLUMNS(num_columns) ((uint64_t)(num_columns) + (num_columns) / 32 + 1)
/* Tokens planned for a block: 7/8 of its slots, which keeps probing short. */
static inline uint32_t wf__lane_tokens(int32_t shared_kb, bool scored) {
  return wf__lane_slots(shared_kb, scored) / 8 * 7;
}

/* Outcome of one utterance. */
enum {
  WF__LANE_OK = 0,
  WF__LANE_CLOSURE = 1, /* max_tokens is less than the closure of one candidate */
  WF__LANE_NO_ROOM =
      2, /* the trace or path on the device is too small: the host decodes this utterance */
  WF__LANE_CYCLE = 3, /* the epsilon closure does not end */
  WF__LANE_TABLE_FULL =
      4, /* the table of one block is too small: the host tries again with more blocks a lane */
  WF__LANE_LARGE_LATTICE = 6,    /* frames of the lattice too large for WF__BACKWARD_SMALL */
  WF__LANE_GLOBAL_LATTICE = 7,   /* and for WF__BACKWARD_LARGE */
  WF__LANE_STOPPED = 8,          /* the host cancelled the search */
  WF__LANE_NO_BACK_POINTERS = 5, /* of a chunk: no room for its back-pointers or links. Nothing has
                                    changed, the host tries again */
};

/* A state of the graph, or of a phrase tree. */
typedef struct wf__lane_state {
  uint32_t first_arc, first_epsilon, end;
  float final_cost;
} wf__lane_state;

/* A wide state (wide_states.cuh): its arcs over tokens begin at number `run` in memory, `count` of
 * them; those of its held column, ALL: none, are void. Its other arcs begin at `others`. */
typedef struct wf__lane_wide {
  uint32_t run, count, held, others;
} wf__lane_wide;

/* A place where words of a class may occur, or one of its arcs. First come the places, those of a
 * class together; then the arcs, of which a place has one, or in a CTC graph one for each token that
 * the state before it may hold. */
typedef struct wf__lane_place {
  uint32_t target; /* of a place: state | 2^31 if that has epsilon arcs, in a CTC graph that holding
                      the first token; of an arc: number of its root in the tree, after the first */
  float weight;
  uint32_t word_class, rank; /* among the places of the class */
} wf__lane_place;
#define WF__LANE_NO_PLACE 0xffffffffu

/* The words of a class: a phrase tree (search/phrase_tree.h). Each place of the class has a copy
 * of its state numbers only. num_states is 0 if the class has no words. Arcs that leave the tree have
 * WF__LANE_LEAVES + the rank of the held token for a next state. */
typedef struct wf__lane_class {
  const void *states, *arcs;       /* of the tree, as those of the graph */
  const void *wide_states;         /* as those of the graph */
  uint32_t first_state, first_arc; /* of the first copy */
  uint32_t num_states, num_arcs;   /* of the tree */
  uint32_t first_wide, num_explicit;
  uint32_t first_place, root; /* root: | 2^31 if it has epsilon arcs */
} wf__lane_class;
#define WF__LANE_LEAVES 0x40000000u

/* A graph with words added at run time. */
typedef struct wf__lane_words {
  const wf__lane_class *classes;
  uint32_t num_classes;
  int32_t context_bits; /* bits that a key has left for contexts */
  float epsilon_slack, scored_slack;
  uint32_t num_states, zero; /* states, including those of the added words */
} wf__lane_words;

typedef struct wf__lane_utterance {
  const void *scores;
  int64_t stride; /* elements from frame to frame */
  int32_t num_frames, num_columns;
  int32_t dtype; /* wf_dtype */
  uint32_t
      root; /* with a recurrent scorer: number of the root where it starts (deferred_scores.h) */
  const wf__flat_scorer *scorer; /* NULL: none */
  const wf__lane_words *words;   /* added to the graph; NULL: none */
} wf__lane_utterance;

typedef struct wf__lane_logged {
  uint64_t value, source;
  uint32_t where, zero; /* rank << 16 | slot */
} wf__lane_logged;

/* A candidate over an arc with a word: those of the frame's emitting arcs, then those of its
 * epsilons. */
typedef struct wf__word_candidate {
  uint64_t from; /* context before the word */
  uint32_t arc;
  float cost;  /* without the costs of scorer and label; for emitting arcs these are added later */
  uint64_t to; /* the arc's column; for emitting arcs later the context after the word */
  uint32_t word, next; /* of the arc */
} wf__word_candidate;

/* One step of a path. */
typedef struct wf__lane_step {
  uint32_t arc;
  float loglike;  /* that it read; 0 for epsilon arcs */
  uint32_t frame; /* that it read */
} wf__lane_step;

typedef struct wf__lane_outcome {
  int32_t status;
  uint32_t flags; /* WF_RESULT_* */
  int64_t num_decoded;
  float final_cost;
  uint32_t path_size;
  uint64_t path_off; /* into steps */
  uint64_t num_tokens, num_expanded, num_arcs, num_narrowed;
  uint32_t last_page;             /* of the lattice's chain, + 1; 0: there is none */
  uint32_t num_states, num_links; /* of the lattice; final tokens count as links */
} wf__lane_outcome;

/* An arc of a lattice, or a final token. The rest comes from the graph. Tokens of a frame are
 * numbered in the order of the lattice (docs/reference/semantics.md). Arcs are in the reverse of
 * that order, because the chain of pages is read from its end. The first entry of a page is
 * {previous page of the chain + 1, entries used}. */
typedef struct wf__lane_link {
  uint32_t from;  /* low 16 bits of the frame << 16 | number of the token that it leaves */
  uint32_t to;    /* tokens of that frame << 16 | number of the token that it leads to, in the next
                     frame, in the same frame for an epsilon arc */
  uint32_t arc;   /* WF__LANE_ENDING: no arc; the token is final */
  uint32_t value; /* bits of the score that the arc read; 0 for epsilon arcs; for a final token, its
                     state */
} wf__lane_link;
#define WF__LANE_ENDING 0xffffffffu

/* The limits of a frame that decide, together with its tokens, which arcs it has. */
typedef struct wf__lane_frame {
  uint64_t last;   /* last accepted candidate: ordered cost << 32 | arc; the cost is the cutoff of
                      the closure */
  uint64_t select; /* token that was expanded: ordered cost << 32 | state */
  uint64_t last_context, select_context; /* with scorers: of those with these keys */
  float best;                            /* cost of a token, subtracted from all of them */
  uint32_t pruned_frames; /* in frame 0: the number of frames when the trace was last pruned; after
                             the search, of all frames */
} wf__lane_frame;

/* --- streams ----------------------------------------------------------------------------- */

typedef struct wf__lane_token {
  float cost;
  uint32_t state;
} wf__lane_token;

/* The input of a chunk besides its scores. */
typedef struct wf__lane_chunk {
  wf__lane_token *tokens;           /* the stream's memory */
  uint64_t *contexts;               /* NULL without scorers */
  uint32_t num_tokens;              /* 0: the utterance begins */
  uint32_t usual_size, after_blank; /* as the last chunk left them */
  uint32_t num_unchecked; /* frames, from the chunk's first on, whose values are not checked yet */
  uint32_t only_check, zero;
} wf__lane_chunk;

/* The outcome of a chunk. */
typedef struct wf__lane_advance {
  int32_t status;
  uint32_t flags;
  uint64_t bad; /* least frame << 32 | column of an unusable score; all ones: none */
  uint64_t num_decoded, num_tokens, num_expanded, num_arcs, num_narrowed; /* of this chunk */
  uint64_t back_pointers_off, links_off;
  uint32_t num_links;         /* of the lattice */
  uint32_t num_back_pointers; /* 0: no frame was searched and the tokens are unchanged; else the
                                 last num_newest are the newest frame's tokens */
  uint32_t num_newest;
  uint32_t best, ending; /* of the newest tokens: the cheapest one; the cheapest final one, or all
                            ones if none is final */
  float best_cost, ending_cost; /* cost of `best`; cost of ending in `ending` */
  float final_cost;             /* final cost of the state of `ending` */
  uint32_t usual_size, after_blank;
  uint64_t select_key, select_context; /* after dying: tokens up to this (ordered cost, state) and
                                          context were expanded */
} wf__lane_advance;

/* A token that the newest frame's tokens can be traced back to. */
typedef struct wf__back_pointer {
  uint32_t prev; /* number among the chunk's back-pointers, or among the tokens before the chunk |
                    WF__LANE_OLD; WF__LANE_NO_PREV: the utterance's start */
  uint32_t arc;
  float loglike; /* that it read; 0 for epsilon arcs */
  uint32_t row;  /* of the chunk, that its frame read */
} wf__back_pointer;
/* A link of the lattice between two tokens that a chunk emits; `from` may be a token from before
 * the chunk, as prev above. */
typedef struct wf__lane_chunk_link {
  uint32_t from, to, arc;
  float loglike, excess; /* excess: the arc's cost above that of the token it leads to */
  uint32_t zero;
} wf__lane_chunk_link;
#define WF__LANE_NO_ROW 0xffffffffu /* of the start's tokens */
#define WF__LANE_OLD 0x80000000u
#define WF__LANE_NO_PREV 0xffffffffu
#define WF__LANE_EPSILON 0x80000000u /* of arc_sources */

/* --- lanes that wait for scores (deferred_scores.cuh) ------------------------------------ */

enum { WF__LANE_IDLE, WF__LANE_BEGINS, WF__LANE_SEARCHES, WF__LANE_ENDS };

/* State of a block whose lane waits, at the beginning of its frame or of the end. */
typedef struct wf__lane_saved {
  uint32_t stage, utterance, row, died;
  uint32_t frame, trace_used, bits, num_sources, usual_size, flags;
  uint64_t total_sources, select_key, select_context;
  uint64_t num_tokens, num_expanded, num_narrowed, num_arcs, num_requests;
} wf__lane_saved;

/* With scorers, the listed candidates of a frame: first {ordered cost << 32 | arc, |
 * WF__LANE_LISTED_WORD if the arc has a word; key} of each, then the context of the source token
 * of those that will be logged. With recombine=state it is the context of the target token. */
#define WF__LANE_LISTED_BYTES (WF__LANE_LISTED * (uint64_t)24)
#define WF__LANE_LISTED_WORD 0x80000000u

/* --- parameters of a launch -------------------------------------------------------------- */

/* The graph in GPU memory. */
typedef struct wf__lane_graph {
  const void *arcs;   /* [num_arcs] {nextstate | 2^31 if it has epsilon arcs, weight, column
                         (emitting) or -1, olabel} */
  const void *states; /* [num_states] wf__lane_state */
  const void *places; /* wf__lane_place, whose arcs have the weight +infinity and the place's number
                         (or WF__LANE_NO_PLACE) for a next state; NULL if there are none */
  uint32_t num_states, num_arcs, start;
  /* States from first_wide on are wide. Their arcs are not at their numbers, which begin at
   * num_explicit. */
  uint32_t first_wide, num_wide, num_explicit;
  const void *wide_states;     /* [num_wide] wf__lane_wide */
  float wide_least, wide_most; /* weights of their arcs over tokens */
  int32_t num_columns;         /* that it reads */
  int32_t has_epsilons;
  int32_t context_bits;              /* of a key, with scorers */
  float epsilon_slack, scored_slack; /* scored_slack: of utterances that have a scorer */
  /* for lattices */
  float least_weights[2]; /* least weight of the emitting arcs and of the epsilon arcs: a candidate
                             costs at least its token's cost plus this */
  const uint32_t
      *components; /* [num_states] which epsilon cycles a state is in; NULL if there are none */
  const uint32_t *held_columns; /* [num_states] column of the token that led there, or ~0; with wide
                                   states */
  const uint32_t *in_offsets[2],
      *in_sources[2]; /* [num_states + 1], [arcs] states that emitting arcs, and that epsilon arcs
                         lead from, by the state that they lead to; without wide ones */
  /* for streams */
  const uint32_t *arc_sources; /* [num_arcs] the arc's state | WF__LANE_EPSILON */
} wf__lane_graph;

/* The decoder's options. */
typedef struct wf__lane_rules {
  float beam, acoustic_scale, word_score;
  float blank_penalty, skip_above; /* in a run of frames whose blank scores above skip_above, all
                                      but the first are skipped */
  int32_t blank;                   /* column, or -1 */
  uint32_t max_active, min_active, max_tokens;
  float lattice_beam; /* 0: no lattices, and none of their memory */
  uint32_t by_state;  /* recombine=state: keys have the context 0 */
} wf__lane_rules;

/* The utterances to search, and the outcomes. */
typedef struct wf__lane_work {
  const wf__lane_utterance *utterances;
  const uint32_t *order; /* [num_utterances] numbers of the utterances, longest first */
  uint32_t num_utterances;
  uint32_t *queue;      /* next place in order */
  const uint32_t *stop; /* in host memory: not 0 cancels the search; may be NULL */
  wf__lane_outcome *outcomes;
  wf__lane_step *steps; /* paths of the utterances, one after the other, in no order */
  uint64_t *steps_used; /* of streams: the back-pointers used */
  uint64_t steps_cap;
} wf__lane_work;

/* Memory of the lanes. Rank r of lane l owns part l * ranks + r of each array. */
typedef struct wf__lane_arrays {
  uint32_t num_lanes, ranks;
  uint32_t
      *columns; /* with wide states: [parts] of [num_columns] columns that are listed for a frame,
                   their bitmap, then [slots] sources */
  uint32_t trace_cap, frames_cap, path_cap;
  uint32_t trace_room; /* the trace is collected beyond this, at most trace_cap; with lattices
                          another frame must fit after it */
  float *costs;        /* [parts][slots] of the newest tokens */
  void *frontier;      /* [parts][2][slots] {slot, cost} */
  void *trace;         /* [parts][trace_cap] {state, arc} */
  wf__lane_step *path_scratch; /* [lanes][path_cap], reversed */
  uint32_t *frame_off;         /* [parts][frames_cap + 2] */
  uint16_t *index;             /* [parts][frames_cap + 1][WF__LANE_INDEX] */
  /* with scorers */
  uint64_t *contexts;                  /* [parts][trace_cap][2] */
  uint64_t *sources;                   /* [parts][slots] */
  wf__lane_logged *word_log;           /* [parts][WF__LANE_WORD_LOG] */
  wf__word_candidate *word_candidates; /* [parts][WF__LANE_WORD_CANDIDATES] */
  void *memo;    /* [parts][2^WF__LANE_MEMO_BITS] {tag << 32 | cost, tag << 32 | next context};
                    word_scores.cuh */
  void *entries; /* [parts][slots] {key, value} */
  void *listed;  /* [parts][WF__LANE_LISTED_BYTES] */
} wf__lane_arrays;

/* For lattices: what the search keeps, and where the backward pass writes. */
typedef struct wf__lane_lattices {
  void *past;              /* [parts][trace_cap] {cost, extra cost} */
  wf__lane_frame *records; /* [lanes][frames_cap + 1] */
  wf__lane_link *pages;    /* [pages_cap][WF__LANE_PAGE] */
  uint64_t *page_contexts; /* [pages_cap][WF__LANE_PAGE] with scorers: of the links' sources */
  uint32_t *pages_used, pages_cap;
  uint32_t backward_bits; /* slots of a table of the backward pass: 2^this */
  void *global_tables;    /* WF__BACKWARD_GLOBAL: {lattices begun, 0, then of each its tables} */
} wf__lane_lattices;

/* For streams: chunks, and what they emit. */
typedef struct wf__lane_streams {
  const wf__lane_chunk *chunks;    /* [num_utterances] */
  wf__lane_advance *advances;      /* [num_utterances] */
  wf__back_pointer *back_pointers; /* [back_pointers_cap], *steps_used of them used */
  uint64_t back_pointers_cap;
  uint64_t *back_pointer_contexts;  /* beside the back-pointers, with lattices and scorers */
  wf__lane_chunk_link *chunk_links; /* [chunk_links_cap], *chunk_links_used of them used */
  uint64_t *chunk_links_used, chunk_links_cap;
  void *links;       /* [parts][trace_cap] {rank << 28 | place, number} */
  uint32_t *rows;    /* [lanes][frames_cap + 2] row of the chunk that each frame read */
  uint32_t *emitted; /* [parts][frames_cap + 2] back-pointers of the rank in earlier frames */
} wf__lane_streams;

typedef struct wf__lane_params {
  wf__lane_graph graph;
  wf__lane_rules rules;
  wf__lane_work work;
  wf__lane_arrays memory;
  wf__lane_lattices lattices;
  wf__lane_streams streams;
  wf__word_scores word_scores; /* of a recurrent scorer */
  int32_t shared_kb;           /* of the GPU's profile */
} wf__lane_params;

/* Largest number of arcs of a graph: an arc number shares a 32-bit word of the table with one
 * bit. */
#define WF__LANE_MAX_ARCS 0x7ffffffeu

/* --- kernels ----------------------------------------------------------------------------- */

/* Where the backward pass keeps its tables: in shared memory (two blocks a multiprocessor, or
 * one), or in device memory. Each level takes the lattices that did not fit the one before. */
typedef enum wf__backward_tables {
  WF__BACKWARD_SMALL,
  WF__BACKWARD_LARGE,
  WF__BACKWARD_GLOBAL,
  WF__BACKWARD_LEVELS
} wf__backward_tables;

/* Kinds of search: without a scorer, with boosts of few contexts, with any scorer, with a recurrent
 * scorer (scores are computed between launches); then the same for chunks of streams. */
typedef enum wf__search_kind {
  WF__SEARCH_PLAIN,
  WF__SEARCH_BOOSTED,
  WF__SEARCH_SCORED,
  WF__SEARCH_DEFERRED,
  WF__SEARCH_STREAMS, /* added to one of these */
  WF__SEARCH_KINDS = 2 * WF__SEARCH_STREAMS
} wf__search_kind;

/* The kernels of a kind. All calls return a cudaError_t; `stream` is a cudaStream_t. */
typedef struct wf__search_kernels {
  /* With lattices there is one lane for each utterance. With deferred scores, the lanes counted
   * by counters.num_waiting continue in the next launch. `begun` (may be NULL): a cudaEvent_t, done
   * when all lanes run or, if the driver is older than CUDA 12.3, when the first may begin. */
  int (*launch)(const wf__lane_params *params, void *stream, void *begun);
  /* After launch, with the same params: makes the lattices whose outcome requires these tables.
   * NULL: this kind makes no lattices. */
  int (*backward)(const wf__lane_params *params, wf__backward_tables tables, void *stream);
  /* Bytes of params.global_tables for so many lattices. */
  uint64_t (*global_bytes)(uint32_t num_lattices);
  /* Largest number of lanes of `ranks` blocks that run at once on the current device, which has
   * this profile; 0 if none does. */
  int (*capacity)(const wf__gpu_profile *profile, int ranks, int32_t num_columns, int *out_lanes);
} wf__search_kernels;

extern const wf__search_kernels wf__search_kernels_of[WF__SEARCH_KINDS]; /* search_kernels.c */

/* bad[u] becomes the least (frame << 32 | column) whose score is NaN, +infinity or beyond 1e20, or
 * stays all ones. */
int wf__check_scores_launch(const wf__lane_utterance *utterances, uint32_t count, uint64_t *bad,
                            void *stream);

/* Scores of an utterance that are packed, row after row. Both addresses are of the current device,
 * as is the list of copies. */
typedef struct wf__score_copy {
  const void *from;
  void *to;
  int64_t stride, num_frames, num_columns; /* stride: elements from row to row of `from` */
  int32_t element_bytes;                   /* 2 or 4 */
} wf__score_copy;
int wf__copy_scores_launch(const wf__score_copy *copies, uint32_t count, void *stream);

#ifdef __cplusplus
}
#endif
#endif
