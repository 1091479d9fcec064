/* compose_rows.h - the plan of a dense composition: the two inputs as rows of bits, and the moves
 * between rows.
 *
 *   row    a pair (state of a, filter state): row = state * num_filters + filter. A row has one bit
 *          for each state of b, in num_words words.
 *   link   a move from one row to another, by an arc of a or while a waits. A link and an arc of b
 *          (or none, if b waits) make an arc of the result.
 *   step   how the bits of one row become bits of another: they stay (b waits), or each moves along
 *          b's arcs of one label. For the searches, the links are reduced to distinct steps; labels
 *          that move the states of b in the same way share a step.
 *
 * The canonical order: states are ordered by row, then by state of b. The arcs of a state begin
 * with b's input epsilons while a waits. Then come a's arcs in the order of their output labels
 * (ties as in a): an output epsilon first while b waits, then with each input epsilon of b; any
 * other label with each arc of b that has it, in b's order. */
#ifndef WF_FSTOPS_COMPOSE_ROWS_H
#define WF_FSTOPS_COMPOSE_ROWS_H

#include "fstops/compose_filter.h"
#include "fstops/compose_job.h"

/* Kinds of steps. WF__STEP_STAY: all bits stay. WF__STEP_STAY_IF + k: only the bits of states of b
 * of kind k stay (enum wf__epsilons). WF__STEP_LABEL + k: the bits move along label number k.
 * Number 0 is epsilon; the others are the labels that both sides have. */
enum { WF__STEP_STAY, WF__STEP_STAY_IF, WF__STEP_LABEL = WF__STEP_STAY_IF + WF__NUM_EPSILONS };

typedef struct wf__row_link {
  uint32_t row, kind;
  uint32_t arc; /* arc of a; WF_NO_ARC: a waits */
} wf__row_link;

typedef struct wf__row_step {
  uint32_t row, kind;
} wf__row_step;

/* The distinct steps of each row, sorted by kind. Forward steps lead from the row to step.row,
 * backward steps lead from step.row to the row. */
typedef struct wf__row_steps {
  uint64_t *off; /* [num_rows + 1] */
  wf__row_step *data;
} wf__row_steps;

/* Arcs of b by (label, state): with cell = label * num_b + state, they are at off[cell] .. off[cell
 * + 1] - 1. */
typedef struct wf__label_moves {
  uint32_t *off; /* [num_labels * num_b + 1] */
  uint32_t *from, *to;
  uint32_t *arc; /* arc of b; NULL in the backward table */
} wf__label_moves;

typedef struct wf__row_plan {
  wf_fst_view a, b;
  int filter;
  uint32_t num_filters, num_labels;
  uint64_t num_rows, num_words, start_row;
  uint64_t *link_off; /* [num_rows + 1] */
  wf__row_link *links;
  wf__row_steps forward, backward;
  wf__label_moves moves, back_moves;
  uint64_t *stay[1 + WF__NUM_EPSILONS]; /* [num_words] by kind of step: bits that stay */
  uint64_t *final_bits;                 /* [num_words] final states of b */
} wf__row_plan;

/* Sets `*out_fits` to false and leaves the plan empty if the number of labels times states of b is
 * too large for a table. */
wf_status wf__compose_plan(const wf__compose_job *job, wf__row_plan *plan, bool *out_fits,
                           wf_error *err);
/* Makes only the links, for a search without tables. Their kinds are WF__STEP_LABEL + label, with
 * labels as in the inputs, even if b does not have them. */
wf_status wf__compose_plan_links(const wf__compose_job *job, wf__row_plan *plan, wf_error *err);
void wf__compose_plan_free(wf__row_plan *plan);

/* wf__compose_reach sets the bits [num_rows * num_words] of the pairs reached from the start.
 * wf__compose_coreach sets those of them that reach a final pair. */
wf_status wf__compose_reach(const wf__row_plan *plan, wf__pool *pool, uint64_t *reached,
                            wf_error *err);
wf_status wf__compose_coreach(const wf__row_plan *plan, wf__pool *pool, const uint64_t *reached,
                              uint64_t *kept, wf_error *err);

/* Writes the arrays of the result. Its states are the bits of `kept`. */
wf_status wf__compose_fill(const wf__row_plan *plan, const wf__compose_job *job,
                           const uint64_t *kept, wf__compose_output *out, wf_error *err);

/* Is it faster to go through the list of all arcs of a label than through the arcs of each state?
 * The list is faster if there are enough states, because its loop has no branches. */
static inline bool wf__by_lists(const wf__label_moves *moves, uint32_t num_labels, uint64_t num_b,
                                uint64_t num_states) {
  return num_states * num_labels * 2 >= moves->off[num_labels * num_b];
}

static inline bool wf__bit(const uint64_t *bits, uint64_t i) {
  return bits[i >> 6] >> (i & 63) & 1;
}
static inline void wf__bit_set(uint64_t *bits, uint64_t i) {
  bits[i >> 6] |= (uint64_t)1 << (i & 63);
}

#endif
