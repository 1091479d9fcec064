/* svg.h - the parts of SVG pictures that lattices (lattice_svg.c) and fsts (fst_draw.c) share. The
 * style is inside the picture and names only its class, so that a picture can stand in a page. */
#ifndef WF_IO_SVG_H
#define WF_IO_SVG_H

#include "base/output.h"

enum { WF__SVG_MARGIN = 40, WF__SVG_LANE = 54 /* height */ };

/* Escapes text for elements and attributes. Bytes that are not UTF-8 become U+FFFD, control
 * characters become blanks. */
void wf__svg_escaped(wf__output *output, const char *text);
/* Begins a picture, with its style. */
void wf__svg_begin(wf__output *output, double width, double height);
void wf__svg_end(wf__output *output);
/* A curve from left to right, bent upwards by `bend` pixels. `attributes` of the path, or "". */
void wf__svg_curve(wf__output *output, double x1, double y1, double x2, double y2, double bend,
                   const char *attributes);

#endif
