/* compose_rows.h - what the dense composition reads: the two inputs taken apart into moves between
 * rows and moves within them.
 *
 *   row    (state of a, filter state): row = state * num_filters + filter. A row has a bit for each
 *          state of b, in num_words words.
 *   step   how the bits of one row become bits of another: they stay (a moves alone), or each moves
 *          along b's arcs of one label
 *
 * An arc of the result is a link (row to row, by an arc of a or none) together with an arc of b or
 * none. For the searches, links are reduced to distinct steps, and labels that move b's states
 * alike are one step.
 *
 * The canonical order: states by row, then by state of b. Arcs of a state: b's epsilons alone, then
 * a's arcs in the order of their output labels (ties as in a): an epsilon alone, then with each
 * epsilon of b; a label with each arc of b that has it, in b's order. */
#ifndef WF_FSTOPS_COMPOSE_ROWS_H
#define WF_FSTOPS_COMPOSE_ROWS_H

#include "fstops/compose_filter.h"
#include "fstops/compose_job.h"

/* Kinds of steps. The bits stay: of all states of b, or of those with no, some, only epsilons, of
 * dead ends (enum wf__epsilons). Or they move along label k - WF__STEP_LABEL, where label 0 is
 * epsilon and the others count those that both sides have. */
enum { WF__STEP_STAY, WF__STEP_STAY_IF, WF__STEP_LABEL = WF__STEP_STAY_IF + WF__NUM_EPSILONS };

typedef struct wf__row_link {
  uint32_t row, kind;
  uint32_t arc; /* of a; WF_NO_ARC: a waits */
} wf__row_link;

typedef struct wf__row_step {
  uint32_t row, kind;
} wf__row_step;

/* Steps by row, sorted by kind, distinct. Forward: from that row to step.row; backward: the other
 * way. */
typedef struct wf__row_steps {
  uint64_t *off; /* [num_rows + 1] */
  wf__row_step *data;
} wf__row_steps;

/* Arcs of b by (label, state): those at off[label * num_b + state] .. off[that + 1] - 1. */
typedef struct wf__label_moves {
  uint32_t *off; /* [num_labels * num_b + 1] */
  uint32_t *from, *to;
  uint32_t *arc; /* of b; NULL in the backward table */
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
  uint64_t *stay[1 + WF__NUM_EPSILONS]; /* [num_words]: the bits that may stay, by kind */
  uint64_t *final_bits;                 /* [num_words]: final states of b */
} wf__row_plan;

/* `*out_fits` is false, and the plan empty, where labels times states of b are too many for a
 * table. */
wf_status wf__compose_plan(const wf__compose_job *job, wf__row_plan *plan, bool *out_fits,
                           wf_error *err);
/* Only the links, for a search that goes without tables: their kinds are WF__STEP_LABEL + label,
 * labels as in the inputs, whether b has them or not. */
wf_status wf__compose_plan_links(const wf__compose_job *job, wf__row_plan *plan, wf_error *err);
void wf__compose_plan_free(wf__row_plan *plan);

/* Bits [num_rows * num_words] of the pairs reached from the start; then of those among them that
 * reach a final pair. */
wf_status wf__compose_reach(const wf__row_plan *plan, wf__pool *pool, uint64_t *reached,
                            wf_error *err);
wf_status wf__compose_coreach(const wf__row_plan *plan, wf__pool *pool, const uint64_t *reached,
                              uint64_t *kept, wf_error *err);

/* The arrays of the result whose states are the bits of `kept`. */
wf_status wf__compose_fill(const wf__row_plan *plan, const wf__compose_job *job,
                           const uint64_t *kept, wf__compose_output *out, wf_error *err);

/* Whether to go through all arcs of a label rather than from state to state: where enough states
 * are at hand, the branches not taken pay. */
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
