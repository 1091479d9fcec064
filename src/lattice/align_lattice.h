/* align_lattice.h - word alignment of one lattice after the other with the same memory. */
#ifndef WF_LATTICE_ALIGN_LATTICE_H
#define WF_LATTICE_ALIGN_LATTICE_H

#include "base/map64.h"
#include "graph/word_aligner.h"
#include "lattice/compact_lattice.h"

typedef struct wf__align_place {
  uint32_t state;
  uint32_t num_words, num_runs, num_labels;
  uint32_t next;      /* with the same hash; UINT32_MAX: none */
  uint64_t first;     /* in `pool`: words, then runs of labels: label << 32 | length */
  uint64_t first_arc; /* in `arcs`, which has the arcs of one place after the other */
} wf__align_place;

/* A state of the depth-first search. The queues are cut back to their sizes when the search
 * leaves it. */
typedef struct wf__align_step {
  uint32_t state;
  bool unit_ended;
  uint64_t next_arc;
  uint64_t num_words, num_runs, num_units; /* in the queues after the arc that led here */
  uint32_t last_end;      /* end of the last run then: later labels may extend it */
  wf__unit last_units[2]; /* the last units then: later labels may change them */
  double graph_cost, acoustic_cost;
} wf__align_step;

typedef struct wf__alignment {
  const wf_word_aligner *aligner;
  wf_compact_lattice_view in;
  uint64_t max_arcs, num_forced;
  bool with_labels;
  WF__VEC(wf__align_place) places;
  WF__VEC(uint64_t) pool;
  wf__map64 index;                   /* hash -> last place with this hash */
  WF__VEC(wf_compact_arc) arcs;      /* to places */
  WF__VEC(wf_compact_weight) finals; /* by place */
  WF__VEC(wf__align_step) steps;
  wf__unit_list arc_runs;         /* labels of arcs, then of final states, in runs of equal ones */
  WF__VEC(uint64_t) arc_runs_off; /* [num_arcs + num_states + 1] */
  bool units_are_runs;            /* the runs of labels are the units */
  WF__VEC(int32_t) words_waiting;
  wf__unit_list runs_waiting; /* labels, in runs of equal ones */
  wf__unit_list units;        /* of the labels waiting, unless the runs are these */
  bool unit_ended;
  WF__VEC(uint32_t) order;  /* places in the order of the result; then what sorting needs */
  uint32_t *number;         /* of each place in that order; a part of `order` */
  WF__VEC(uint64_t) bounds; /* for sorting */
  wf__compact_arrays out;
  WF__VEC(int32_t) frames;
} wf__alignment;

/* Aligns a lattice as wf_compact_lattice_align does. `out` of the alignment receives the result;
 * labels only with `with_labels`, else the arcs only have numbers of labels. Memory is reused;
 * zero-initialise it at first. */
wf_status wf__align_lattice(wf__alignment *a, const wf_compact_lattice_view *lattice,
                            const wf_word_aligner *aligner, uint64_t max_arcs, bool with_labels,
                            wf_error *err);
/* The result without labels, valid until the next call. */
wf_status wf__alignment_view(wf__alignment *a, wf_compact_lattice_view *out, wf_error *err);
void wf__alignment_free(wf__alignment *a);
/* Approximate memory in use. */
uint64_t wf__alignment_bytes(const wf__alignment *a);

#endif
