/* svg.h - the parts of pictures that lattices (lattice_svg.c) and fsts (fst_draw.c) share. The
 * style is inside the picture and names only its class, so that a picture can stand in a page. */
#ifndef WF_IO_SVG_H
#define WF_IO_SVG_H

#include "base/output.h"

enum { WF__SVG_MARGIN = 40, WF__SVG_LANE = 54 /* height */ };

/* Escapes text for elements and attributes. Bytes that are not UTF-8 become U+FFFD, control
 * characters become blanks. */
void wf__svg_escaped(wf__output *output, const char *text);
/* Escapes text for strings of Graphviz. Control characters become blanks. */
void wf__dot_escaped(wf__output *output, const char *text);
/* True if the name ends so and has more than the end. NULL does not. */
bool wf__name_ends(const char *path, const char *end);
/* True if a file of this name is for Graphviz: .dot or .gv. */
bool wf__draws_dot(const char *path);
/* Begins a picture, with its style. */
void wf__svg_begin(wf__output *output, double width, double height);
void wf__svg_end(wf__output *output);
/* A curve from left to right, bent upwards by `bend` pixels. `attributes` of the path, or "". */
void wf__svg_curve(wf__output *output, double x1, double y1, double x2, double y2, double bend,
                   const char *attributes);

#endif
