/* lattice_picture.h - a compact lattice laid out to be looked at, for dot (lattice_dot.c) and SVG
 * (lattice_svg.c).
 *
 *     lane  1          o---o
 *     lane  0     o---o-----o---o     the best path
 *     lane -1      \---o---/
 *               x: time
 *
 * States lie at their time, or, in a lattice whose paths differ in frames, at their distance from
 * the start in arcs. States of the best path are on lane 0; every other one goes, in topological
 * order, to the free lane nearest to that of the state from which its most probable arc comes. */
#ifndef WF_IO_LATTICE_PICTURE_H
#define WF_IO_LATTICE_PICTURE_H

#include "base/memory.h"
#include "base/output.h"

typedef struct wf__picture {
  wf_compact_lattice_view view;
  const char *key;
  const wf_symbols *words;
  double frame_shift;
  bool timed;          /* places are frames, else arcs from the start */
  int64_t *places;     /* [num_states] */
  int32_t *lanes;      /* [num_states] */
  bool *state_is_best; /* [num_states], [num_arcs]: on the best path */
  bool *arc_is_best;
  double *posteriors;      /* [num_arcs] */
  int32_t lowest, highest; /* lanes */
  int64_t last;            /* largest place */
  double best_cost;
} wf__picture;

wf_status wf__picture_make(const wf_compact_lattice *lattice, wf__picture *out, wf_error *err);
void wf__picture_free(wf__picture *picture);
/* Text of a word, or its number in `scratch`; NULL for none. */
const char *wf__picture_word(const wf__picture *picture, int32_t word, char scratch[16]);

/* lattice_dot.c */
void wf__picture_write_dot(const wf__picture *picture, wf__output *output);
/* lattice_svg.c */
void wf__picture_write_html(const wf__picture *picture, wf__output *output);

#endif
