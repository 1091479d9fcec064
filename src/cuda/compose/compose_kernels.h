/* compose_kernels.h - the data that the host passes to the kernels of composition. Plain C, shared
 * by compose_gpu.c and compose_kernels.cu.
 *
 * A batch of pairs is one problem. The rows, words, links, steps and tables of all pairs are
 * concatenated, and row numbers are global. The tables are those of fstops/compose_rows.h, and so
 * is the layout of bits: row r has its pair's num_words words at word_off.
 *
 *  search   finds bits level by level in one cooperative launch, forward and backward, with the
 *           rows that have fresh bits. Small pairs: a block or cluster for each direction
 *  place    first [num_words] and first_slot [num_words]: prefix sums of the kept bits and of their
 *           slots; halves
 *  count    slots: the number of arcs of each tile, which is up to TILE_WORDS words of states of a
 *           row. If a row has more than SEGMENT links, each of its states has a slot for each PART
 *           links. Prefix sums turn the counts into positions. Also the positions of pairs
 *  fill     the arrays of the result */
#ifndef WF_CUDA_COMPOSE_COMPOSE_KERNELS_H
#define WF_CUDA_COMPOSE_COMPOSE_KERNELS_H

#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WF__GPU_STEP_LABEL = 5, /* WF__STEP_LABEL: kinds below it select states that may stay (masks) */
  WF__GPU_NUM_MASKS = 6,  /* these masks and the mask of final states */
  WF__GPU_SEGMENT = 64,   /* most links of a row that a warp processes for a tile of states; a row
                             with more is long, */
  WF__GPU_PART = 16,      /* ... and a warp processes this many of its links for a word of states */
  WF__GPU_TILE_WORDS = 4, /* words of a tile; 1 if there are fewer than MANY_WORDS words, so that
                             all SMs have work */
  WF__GPU_MANY_WORDS = 1 << 15,
  WF__GPU_NARROW_WORDS = 8, /* width up to which one thread visits a row if there are many rows;
                               with fewer rows, a warp does */
  WF__GPU_WARP_ROWS = 8192, /* if there are at least this many rows of up to WARP_WORDS words, a
                               warp visits a row; otherwise a block */
  WF__GPU_WARP_WORDS = 64,
  WF__GPU_MAX_WORDS = 8192,  /* widest row; twice this is in shared memory */
  WF__GPU_PAIR_WORDS = 6144, /* if no pair has more words, a block may search a pair: three times
                                this plus lists in shared memory */
  WF__GPU_PAIR_RANKS = 8,    /* blocks of a cluster that search a pair together if pairs are few;
                                the pair may have this many times the words */
  WF__GPU_MANY_PAIRS = 32,   /* with at least this many pairs, a block searches a pair. With fewer,
                                a cluster does if a pair has at most (measured to be faster than the
                                whole grid): */
  WF__GPU_PAIR_WORK = 1 << 19,    /* ... this many forward steps times states of B, or */
  WF__GPU_PAIR_EFFORT = 12 << 20, /* ... this many, times the steps of a row, unless there are so
                                     many rows that a thread visits each */
  WF__GPU_TARGET_BITS = 20,
  WF__GPU_MOST_TARGETS = 3,
  WF__GPU_MANY_TARGETS = 15,
  WF__GPU_THREAD_ROWS = 2048, /* at least this many narrow rows: a thread visits each; */
  WF__GPU_LINE_ROWS =
      512, /* ... or this many, if rows have little more than one step, as in words of a lexicon */
  WF__GPU_BOTH_WORDS = 1 << 16, /* words of tables that are searched in both directions at once */
  WF__GPU_BOTH_NARROW =
      1 << 20, /* the same if a thread visits a narrow row: a level then has little work */
};

/* Same as wf__row_link. word_off: the first word of the target row. */
typedef struct wf__gpu_link {
  uint64_t word_off;
  uint32_t kind, arc;
} wf__gpu_link;

/* Same as wf__row_step. run: index among the row's runs. next: the only step of the target row;
 * 2^32 - 1 if that row has none or several. Read as 16 bytes at once. */
typedef struct wf__gpu_step {
  uint32_t row, kind, run, next;
} wf__gpu_step;

/* Steps of a row with the same kind. */
typedef struct wf__gpu_run {
  uint64_t first;
  uint32_t kind;
} wf__gpu_run;

/* An arc of B by (label, state), with the fields that the result's arc takes from it. */
typedef struct wf__gpu_move {
  uint32_t to, b_arc;
  float weight;
  int32_t olabel;
} wf__gpu_move;

/* Source and target of a move, for loops that need nothing else. */
typedef struct wf__gpu_ends {
  uint32_t from, to;
} wf__gpu_ends;

/* Half a word of kept states, and the number in the pair of the first of them. */
typedef struct wf__gpu_half {
  uint32_t bits, first;
} wf__gpu_half;

/* A label that moves all states of a narrow row by the same distance. */
#define WF__GPU_NO_SHIFT 64
typedef struct wf__gpu_shift {
  uint64_t from[WF__GPU_NARROW_WORDS]; /* states with an arc of the label */
  int32_t by;                          /* -63 .. 63, or NO_SHIFT */
} wf__gpu_shift;

typedef struct wf__gpu_row {
  uint64_t word_off;
  uint32_t pair;
  float a_final;
} wf__gpu_row;

typedef struct wf__gpu_pair {
  uint64_t word_base;     /* first word of its first row */
  uint64_t off_base[2];   /* forward, backward: index into off */
  uint64_t to_base[2];    /* index into to */
  uint64_t move_base;     /* index into moves */
  uint64_t cell_base[2];  /* index into cells */
  uint64_t shift_base[2]; /* index into shifts; narrow rows only */
  uint64_t mask_base;     /* index into masks: stay [5][num_words], final [num_words] */
  uint64_t a_base;        /* first arc of A in a_arcs */
  uint64_t b_final_base;
  uint32_t num_b, num_words, first_row, start_row, start_b;
} wf__gpu_pair;

/* Position of a pair's result. */
typedef struct wf__gpu_place {
  uint64_t state_base, arc_base;
  int64_t start;
} wf__gpu_place;

/* One segment of a long row's links. */
typedef struct wf__gpu_part {
  uint32_t row, segment;
} wf__gpu_part;

/* Rows of more than HEAVY_STEPS steps in a direction, such as the row where all words begin, are
 * shared by all blocks. A block takes CHUNK steps at a time. */
enum { WF__GPU_HEAVY_STEPS = 256, WF__GPU_CHUNK = 256 };
typedef struct wf__gpu_chunk {
  uint32_t heavy; /* index among the direction's heavy rows */
  uint32_t first; /* index of the first step */
} wf__gpu_chunk;

/* All pointers are to device memory. */
typedef struct wf__gpu_compose {
  const wf__gpu_pair *pairs;
  const wf__gpu_row *rows;
  const uint64_t *link_off, *step_off[2]; /* [num_rows + 1] */
  const wf__gpu_link *links;
  const wf__gpu_step *steps[2];
  const uint64_t *run_off[2]; /* [num_rows + 1] */
  const wf__gpu_run *runs[2];
  const uint32_t *off, *to;
  const uint64_t *cells; /* by (label, state): bits 0 .. 3 are the number of targets, then three
                            targets of 20 bits each; MANY_TARGETS: see off. NULL: there would be too
                            many cells */
  const wf__gpu_move *moves;
  const wf__gpu_ends *ends; /* source and target of each move */
  const wf__gpu_shift *shifts;
  const uint64_t *masks;
  const wf_arc *a_arcs;
  const float *b_final;
  const wf__gpu_part
      *parts; /* [num_parts], by row; part_word [num_parts + 1]: prefix sums of their rows' words */
  const uint64_t *part_word;
  const uint32_t *word_row;       /* [num_words] */
  const uint32_t *heavy[2];       /* [num_heavy[d]] rows */
  const wf__gpu_chunk *chunks[2]; /* [num_chunks[d]] */
  uint64_t num_heavy[2], num_chunks[2];
  uint64_t num_pairs, num_rows, num_words, num_parts, num_part_words;
  uint32_t max_words;    /* widest row */
  uint32_t max_row_runs; /* most kinds of steps of a row */
  uint64_t num_steps;    /* forward steps */
  uint64_t max_pair_words, max_pair_rows,
      max_pair_work;        /* largest pair: words; rows; forward steps times states of B */
  uint64_t max_pair_effort; /* max_pair_work times the steps of a row: the more steps a row has, the
                               fewer levels share the work */
  uint32_t shared_bytes;    /* shared memory that a block may use */
  bool has_clusters;
  uint32_t out_words; /* words of a group's shared memory for moved bits; set by
                         wf__gpu_compose_shape */
  int32_t group;      /* threads that visit a row; 0: a block or cluster searches each pair. Set by
                         wf__gpu_compose_shape, like `both`, `ranks` and `tile_words` */
  int32_t both;       /* both directions run at once */
  int32_t ranks;      /* blocks that search a pair in one direction */
  uint32_t tile_words;
  int32_t connect;
  /* The search. `zeroed` contains totals, stats, places, reached, kept, fresh, heavy_bits,
   * heavy_level and dirty, which start as 0. Of arrays for two directions, the second pointer may
   * equal the first. */
  void *zeroed;
  uint64_t zeroed_bytes;
  uint64_t *reached, *kept, *fresh[2];
  uint64_t *heavy_bits;  /* [2][num_heavy[0]][NARROW_WORDS], then [2][num_heavy[1]][NARROW_WORDS] */
  uint32_t *heavy_level; /* the same without words: 1 + the level in which heavy_bits are to be
                            processed */
  uint32_t *dirty[2];    /* [2][num_rows] */
  uint32_t *list[2];     /* [2][num_rows] */
  uint32_t *counts;      /* [2][3] */
  uint32_t *stats; /* [2] number of levels of the search from the start, and from the final states;
                      if both ran together, the first has the levels of both */
  uint64_t *reached_count; /* [num_pairs], or NULL */
  /* The result. */
  uint32_t *first;
  wf__gpu_half *halves;         /* [2 * num_words] */
  uint64_t *first_slot, *slots; /* slots [num_slots + 1] */
  uint64_t *totals;             /* [3] states, slots, arcs */
  uint64_t room_states, room_slots,
      room_arcs;     /* capacities of the arrays below; nothing is written beyond them */
  uint64_t *arc_off; /* [num_states + num_pairs] */
  float *final_cost;
  wf_arc *arcs;
  wf_arc_origin *origins; /* or NULL */
  wf__gpu_place *places;  /* [num_pairs + 1] */
} wf__gpu_compose;

/* The widest row, in words, that a block with this much shared memory can search. */
uint32_t wf__gpu_compose_most_words(uint32_t shared_bytes);
/* All return a cudaError_t. `stream` is a cudaStream_t. `scratch` [*scratch_bytes] is for prefix
 * sums; with scratch NULL the call sets its size. */
/* Chooses how the search runs: group, both, ranks, tile_words, out_words. */
void wf__gpu_compose_shape(wf__gpu_compose *c);
int wf__gpu_compose_word_rows(const wf__gpu_compose *c, uint32_t *word_row, void *stream);
int wf__gpu_compose_search(const wf__gpu_compose *c, void *stream);
int wf__gpu_compose_place(const wf__gpu_compose *c, void *scratch, size_t *scratch_bytes,
                          void *stream);
/* num_slots may be larger than the number of slots. */
int wf__gpu_compose_count(const wf__gpu_compose *c, uint64_t num_slots, void *scratch,
                          size_t *scratch_bytes, void *stream);
int wf__gpu_compose_fill(const wf__gpu_compose *c, void *stream);

#ifdef __cplusplus
}
#endif
#endif
