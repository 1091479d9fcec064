/* compose_kernels.h - what the host hands to the kernels of composition. Plain C, shared by
 * compose_gpu.c and compose_kernels.cu.
 *
 * A batch of pairs is one problem: rows, words, links, steps, and tables of all pairs lie one
 * behind the other, and numbers of rows count through. The tables are those of
 * fstops/compose_rows.h. Words of bits are as there: row r of a pair has its num_words words at
 * word_off.
 *
 *   search   bits, fresh, rows with fresh bits: level by level in one cooperative launch, forward
 *            and backward; small pairs: two blocks each
 *   place    first [num_words] and first_slot [num_words]: prefix sums of the kept bits, and of
 *            their slots; halves
 *   count    slots: arcs of each tile, up to TILE_WORDS words of states of a row; where a row has
 *            more than SEGMENT links, of each of its states, a slot for each PART of them. Prefix
 *            sums make places of them; places of pairs
 *   fill     the arrays of the result */
#ifndef WF_CUDA_COMPOSE_COMPOSE_KERNELS_H
#define WF_CUDA_COMPOSE_COMPOSE_KERNELS_H

#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WF__GPU_STEP_LABEL = 5, /* WF__STEP_LABEL: kinds below it are masks of states that may stay */
  WF__GPU_NUM_MASKS = 6,  /* those masks, and the final states */
  WF__GPU_SEGMENT = 64,   /* links of a row that one warp goes through for a tile of states; rows of
                             more are long, */
  WF__GPU_PART = 16,      /* ... and a warp goes through so many of them for a word of states */
  WF__GPU_TILE_WORDS = 4, /* most words of a tile; one, where there are fewer than MANY_WORDS, so
                             that all processors have some */
  WF__GPU_MANY_WORDS = 1 << 15,
  WF__GPU_NARROW_WORDS =
      8, /* many rows up to this width: a thread visits a row; a warp, where they are not so many */
  WF__GPU_WARP_ROWS =
      8192, /* rows from this number on and up to WARP_WORDS: a warp; else a block */
  WF__GPU_WARP_WORDS = 64,
  WF__GPU_MAX_WORDS = 8192,  /* widest row: twice this in shared memory */
  WF__GPU_PAIR_WORDS = 6144, /* where no pair has more, blocks may search a pair each: three times
                                this in shared memory, besides lists */
  WF__GPU_PAIR_RANKS = 8,    /* blocks of a cluster, that search a pair with as many times the words
                                together, if pairs are few */
  WF__GPU_MANY_PAIRS = 32,   /* from so many on a block takes a pair; of fewer a cluster does, where
                                it is measured to be faster than all blocks: up to */
  WF__GPU_PAIR_WORK = 1 << 19,    /* ... so many forward steps times states of B, or */
  WF__GPU_PAIR_EFFORT = 12 << 20, /* ... so many times the steps of a row, unless rows are so many
                                     that threads visit them */
  WF__GPU_TARGET_BITS = 20,
  WF__GPU_MOST_TARGETS = 3,
  WF__GPU_MANY_TARGETS = 15,
  WF__GPU_THREAD_ROWS = 2048, /* narrow rows from this number on are visited by a thread each; */
  WF__GPU_LINE_ROWS =
      512, /* ... from this one on, where rows have little more than one step, as words do */
  WF__GPU_BOTH_WORDS = 1 << 16, /* tables up to this size are searched in both directions at once */
  WF__GPU_BOTH_NARROW =
      1 << 20, /* those of narrow rows visited by a thread each: a level has little to do in them */
};

/* As wf__row_link; word_off: the first word of the row that they lead to. */
typedef struct wf__gpu_link {
  uint64_t word_off;
  uint32_t kind, arc;
} wf__gpu_link;

/* As wf__row_step; run: which of its row's; next: the only step of the row that it leads to, or
 * 2^32 - 1 where that has none or several. Read as 16 bytes at once. */
typedef struct wf__gpu_step {
  uint32_t row, kind, run, next;
} wf__gpu_step;

/* Steps of a row with the same kind. */
typedef struct wf__gpu_run {
  uint64_t first;
  uint32_t kind;
} wf__gpu_run;

/* B's arc by (label, state), with what the result's arc takes from it. */
typedef struct wf__gpu_move {
  uint32_t to, b_arc;
  float weight;
  int32_t olabel;
} wf__gpu_move;

/* The states it leads from and to, for those who want no more. */
typedef struct wf__gpu_ends {
  uint32_t from, to;
} wf__gpu_ends;

/* Half a word of kept states, and the number that the first of them has in its pair. */
typedef struct wf__gpu_half {
  uint32_t bits, first;
} wf__gpu_half;

/* A label that moves all states of a narrow row alike. */
#define WF__GPU_NO_SHIFT 64
typedef struct wf__gpu_shift {
  uint64_t from[WF__GPU_NARROW_WORDS]; /* states that have the label */
  int32_t by;                          /* -63 .. 63, or NO_SHIFT */
} wf__gpu_shift;

typedef struct wf__gpu_row {
  uint64_t word_off;
  uint32_t pair;
  float a_final;
} wf__gpu_row;

typedef struct wf__gpu_pair {
  uint64_t word_base;     /* first word of its first row */
  uint64_t off_base[2];   /* forward, backward: into off */
  uint64_t to_base[2];    /* into to */
  uint64_t move_base;     /* into moves */
  uint64_t cell_base[2];  /* into cells */
  uint64_t shift_base[2]; /* into shifts, of narrow rows */
  uint64_t mask_base;     /* into masks: stay [5][num_words], final [num_words] */
  uint64_t a_base;        /* first arc of A in a_arcs */
  uint64_t b_final_base;
  uint32_t num_b, num_words, first_row, start_row, start_b;
} wf__gpu_pair;

/* Where a pair's result lies. */
typedef struct wf__gpu_place {
  uint64_t state_base, arc_base;
  int64_t start;
} wf__gpu_place;

/* A part of a long row's links. */
typedef struct wf__gpu_part {
  uint32_t row, segment;
} wf__gpu_part;

/* Rows of more than HEAVY_STEPS steps in a direction, such as the one where all words begin, are
 * taken by all blocks: each takes CHUNK of the steps. */
enum { WF__GPU_HEAVY_STEPS = 256, WF__GPU_CHUNK = 256 };
typedef struct wf__gpu_chunk {
  uint32_t heavy; /* which of the direction's heavy rows */
  uint32_t first; /* of its steps */
} wf__gpu_chunk;

/* Everything is device memory. */
typedef struct wf__gpu_compose {
  const wf__gpu_pair *pairs;
  const wf__gpu_row *rows;
  const uint64_t *link_off, *step_off[2]; /* [num_rows + 1] */
  const wf__gpu_link *links;
  const wf__gpu_step *steps[2];
  const uint64_t *run_off[2]; /* [num_rows + 1] */
  const wf__gpu_run *runs[2];
  const uint32_t *off, *to;
  const uint64_t *cells; /* by (label, state): bits 0 .. 3 how many states it leads to, then three
                            of 20 bits; MANY_TARGETS: see off. NULL: too many of them */
  const wf__gpu_move *moves;
  const wf__gpu_ends *ends; /* of each move */
  const wf__gpu_shift *shifts;
  const uint64_t *masks;
  const wf_arc *a_arcs;
  const float *b_final;
  const wf__gpu_part
      *parts; /* [num_parts], by row; part_word [num_parts + 1]: sums of their rows' words */
  const uint64_t *part_word;
  const uint32_t *word_row;       /* [num_words] */
  const uint32_t *heavy[2];       /* [num_heavy[d]] rows */
  const wf__gpu_chunk *chunks[2]; /* [num_chunks[d]] */
  uint64_t num_heavy[2], num_chunks[2];
  uint64_t num_pairs, num_rows, num_words, num_parts, num_part_words;
  uint32_t max_words;    /* of a row */
  uint32_t max_row_runs; /* kinds of steps of a row */
  uint64_t num_steps;    /* forward */
  uint64_t max_pair_words, max_pair_rows,
      max_pair_work;        /* of a pair: words; rows; forward steps times states of B */
  uint64_t max_pair_effort; /* and that times the steps of a row: the more of those, the fewer
                               levels share the work */
  uint32_t shared_bytes;    /* that a block may have */
  bool has_clusters;
  uint32_t out_words; /* of a group's shared memory, for bits that were moved; set by
                         wf__gpu_compose_shape */
  int32_t group; /* threads that visit a row; 0: blocks search pairs. Set there, too, as are `both`,
                    `ranks`, `tile_words` */
  int32_t both;  /* both directions at once */
  int32_t ranks; /* blocks that search a pair in a direction */
  uint32_t tile_words;
  int32_t connect;
  /* the search; `zeroed` holds totals, stats, places, reached, kept, fresh, heavy_bits,
   * heavy_level, dirty, which begin as 0. Of those by direction the second may be the first */
  void *zeroed;
  uint64_t zeroed_bytes;
  uint64_t *reached, *kept, *fresh[2];
  uint64_t *heavy_bits;  /* [2][num_heavy[0]][NARROW_WORDS], then [2][num_heavy[1]][NARROW_WORDS] */
  uint32_t *heavy_level; /* the same without words: 1 more than the level in which heavy_bits are to
                            be taken */
  uint32_t *dirty[2];    /* [2][num_rows] */
  uint32_t *list[2];     /* [2][num_rows] */
  uint32_t *counts;      /* [2][3] */
  uint32_t *stats; /* [2] levels of the search from the start, and from the final states; both in
                      the first if they ran together */
  uint64_t *reached_count; /* [num_pairs], or NULL */
  /* the result */
  uint32_t *first;
  wf__gpu_half *halves;         /* [2 * num_words] */
  uint64_t *first_slot, *slots; /* slots [num_slots + 1] */
  uint64_t *totals;             /* [3] states, slots, arcs */
  uint64_t room_states, room_slots,
      room_arcs;     /* what the arrays below hold: nothing is written beyond */
  uint64_t *arc_off; /* [num_states + num_pairs] */
  float *final_cost;
  wf_arc *arcs;
  wf_arc_origin *origins; /* or NULL */
  wf__gpu_place *places;  /* [num_pairs + 1] */
} wf__gpu_compose;

/* The widest row, in words, that a block with so much shared memory searches. */
uint32_t wf__gpu_compose_most_words(uint32_t shared_bytes);
/* All return a cudaError_t. `stream` is a cudaStream_t. `scratch` [*scratch_bytes] is for prefix
 * sums; with scratch NULL the call sets its size. */
/* How the search goes about it: group, both, out_words. */
void wf__gpu_compose_shape(wf__gpu_compose *c);
int wf__gpu_compose_word_rows(const wf__gpu_compose *c, uint32_t *word_row, void *stream);
int wf__gpu_compose_search(const wf__gpu_compose *c, void *stream);
int wf__gpu_compose_place(const wf__gpu_compose *c, void *scratch, size_t *scratch_bytes,
                          void *stream);
/* Up to num_slots of them: more than there are do no harm. */
int wf__gpu_compose_count(const wf__gpu_compose *c, uint64_t num_slots, void *scratch,
                          size_t *scratch_bytes, void *stream);
int wf__gpu_compose_fill(const wf__gpu_compose *c, void *stream);

#ifdef __cplusplus
}
#endif
#endif
