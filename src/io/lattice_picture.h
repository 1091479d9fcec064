/* lattice_picture.h - the layout of a picture of a compact lattice, for dot (lattice_dot.c) and SVG
 * (lattice_svg.c).
 *
 *     lane  1          o---o
 *     lane  0     o---o-----o---o     the best path
 *     lane -1      \---o---/
 *               x: time
 *
 * The x position of a state is its frame. If the paths to some state differ in length, all states
 * use their distance from the start in arcs instead. States of the best path are on lane 0. Every
 * other state, in topological order, goes to the free lane that is nearest to the lane of its most
 * probable predecessor. */
#ifndef WF_IO_LATTICE_PICTURE_H
#define WF_IO_LATTICE_PICTURE_H

#include "base/memory.h"
#include "base/output.h"

typedef struct wf__picture {
  wf_compact_lattice_view view;
  const char *key;
  const wf_symbols *words;
  double frame_shift;
  bool timed;              /* places are frames; else distances from the start in arcs */
  int64_t *places;         /* [num_states] */
  int32_t *lanes;          /* [num_states] */
  bool *state_is_best;     /* [num_states] on the best path */
  bool *arc_is_best;       /* [num_arcs] on the best path */
  double *posteriors;      /* [num_arcs] */
  int32_t lowest, highest; /* lanes */
  int64_t last;            /* largest place */
  double best_cost;
} wf__picture;

wf_status wf__picture_make(const wf_compact_lattice *lattice, wf__picture *out, wf_error *err);
void wf__picture_free(wf__picture *picture);
/* Text of a word, or its number, written to `scratch`; NULL for word 0. */
const char *wf__picture_word(const wf__picture *picture, int32_t word, char scratch[16]);

/* lattice_dot.c */
void wf__picture_write_dot(const wf__picture *picture, wf__output *output);
/* lattice_svg.c */
void wf__picture_write_svg(const wf__picture *picture, wf__output *output);
void wf__picture_write_html(const wf__picture *picture, wf__output *output);

#endif
