/* fst_draw.c - draws an fst as an SVG picture, or writes it as text for Graphviz.
 *
 *     level  0      1      2          distance from the start in arcs
 *            o------o------o          a column of states at each level, centred
 *             \-----o-----/
 *
 * Arcs to a later level are curves, loops stand above their state, and other arcs go back below the
 * states. Arcs between the same two states are bent differently. States that the start does not
 * reach are in a last column. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "io/svg.h"

enum { MOST = 1000, RADIUS = 14, LETTER_WIDTH = 8, NARROWEST = 90, WIDEST = 260, PARALLEL = 22 };

struct drawing {
  wf_fst_view view;
  const wf_symbols *isymbols, *osymbols;
  uint64_t *level;           /* [num_states] */
  uint64_t *place;           /* [num_states] number within the level */
  uint64_t *count;           /* [num_states + 1] states of each level */
  uint64_t num_levels, most; /* most: states in one level */
  double per_level;          /* pixels */
  double left, top;          /* added to all coordinates, so that everything is in the picture */
  wf__output *output;
};

static void drawing_free(struct drawing *d) {
  free(d->level);
  free(d->place);
  free(d->count);
}

static wf_status drawing_alloc(struct drawing *d, wf_error *err) {
  uint64_t size = d->view.num_states + 1;
  d->level = wf__alloc(size, sizeof *d->level);
  d->place = wf__alloc(size, sizeof *d->place);
  d->count = wf__calloc(size, sizeof *d->count);
  if (d->level != NULL && d->place != NULL && d->count != NULL) return WF_OK;
  return wf__fail_memory(err, size * sizeof *d->level, "a picture");
}

/* Sets the levels by a search in breadth. `place` is its queue. */
static void find_levels(struct drawing *d) {
  uint64_t num_states = d->view.num_states, first = 0, last = 0;
  for (uint64_t s = 0; s < num_states; s++) d->level[s] = UINT64_MAX;
  d->level[d->view.start] = 0;
  d->place[last++] = (uint64_t)d->view.start;
  while (first < last) {
    uint64_t s = d->place[first++];
    for (uint64_t a = d->view.arc_off[s]; a < d->view.arc_off[s + 1]; a++) {
      uint64_t next = (uint64_t)d->view.arcs[a].nextstate;
      if (d->level[next] != UINT64_MAX) continue;
      d->level[next] = d->level[s] + 1;
      d->place[last++] = next;
    }
  }
  d->num_levels = d->level[d->place[last - 1]] + 1;
  if (last < num_states) d->num_levels++;
  for (uint64_t s = 0; s < num_states; s++) {
    if (d->level[s] == UINT64_MAX) d->level[s] = d->num_levels - 1;
    d->place[s] = d->count[d->level[s]]++;
    if (d->count[d->level[s]] > d->most) d->most = d->count[d->level[s]];
  }
}

static double x_of(const struct drawing *d, uint64_t s) {
  return d->left + (double)d->level[s] * d->per_level;
}

static double y_of(const struct drawing *d, uint64_t s) {
  double above = (double)(d->most - d->count[d->level[s]]) / 2;
  return d->top + WF__SVG_LANE * 1.5 * ((double)d->place[s] + above);
}

/* The text of a label, or its number in `scratch`. Without a table, epsilon is a Greek letter. */
static const char *label_text(const wf_symbols *symbols, int32_t label, char scratch[16]) {
  const char *text = symbols != NULL ? wf_symbols_text(symbols, label) : NULL;
  if (text != NULL) return text;
  if (label == 0) return "\xCE\xB5";
  snprintf(scratch, 16, "%d", label);
  return scratch;
}

/* Writes `in:out/cost`, or `in/cost` if both texts are equal. */
static void put_label(const struct drawing *d, const wf_arc *arc,
                      void (*put)(wf__output *output, const char *text)) {
  char scratch[2][16];
  const char *in = label_text(d->isymbols, arc->ilabel, scratch[0]),
             *out = label_text(d->osymbols, arc->olabel, scratch[1]);
  put(d->output, in);
  if (strcmp(in, out) != 0) {
    wf__write_text(d->output, ":");
    put(d->output, out);
  }
  if (arc->weight != 0) wf__printf(d->output, "/%g", (double)arc->weight);
}

static double label_width(const struct drawing *d, const wf_arc *arc) {
  char scratch[2][16];
  const char *in = label_text(d->isymbols, arc->ilabel, scratch[0]),
             *out = label_text(d->osymbols, arc->olabel, scratch[1]);
  size_t letters = strlen(in) + (strcmp(in, out) != 0 ? strlen(out) + 1 : 0);
  return LETTER_WIDTH * ((double)letters + (arc->weight != 0 ? 6 : 0)) + 4 * RADIUS;
}

static void choose_width(struct drawing *d) {
  d->per_level = NARROWEST;
  for (uint64_t a = 0; a < d->view.num_arcs; a++)
    d->per_level = fmax(d->per_level, fmin(label_width(d, &d->view.arcs[a]), WIDEST));
}

/* Where an arc runs. The text is centred at (x, y). */
struct course {
  bool loop;
  double bend; /* height of a loop, or how far the curve is bent upwards */
  double x, y;
};

static struct course course_of(const struct drawing *d, uint64_t s, uint64_t a) {
  uint64_t t = (uint64_t)d->view.arcs[a].nextstate, parallel = 0;
  for (uint64_t b = d->view.arc_off[s]; b < a; b++)
    parallel += (uint64_t)d->view.arcs[b].nextstate == t;
  const double x = (x_of(d, s) + x_of(d, t)) / 2, y = (y_of(d, s) + y_of(d, t)) / 2;
  if (s == t) {
    const double height = 46 + 18 * (double)parallel;
    return (struct course){true, height, x, y - height * 0.75 - 10};
  }
  const bool forward = d->level[t] > d->level[s];
  double bend = PARALLEL * (double)parallel;
  if (!forward) bend = -bend - (d->level[t] == d->level[s] ? 20 : 46);
  return (struct course){false, bend, x, y - bend * 0.75 + (forward ? -4 : 12)};
}

static void put_arc(const struct drawing *d, uint64_t s, uint64_t a) {
  static const char arrow[] = " marker-end=\"url(#warpfst-arrow)\"";
  const wf_arc *arc = &d->view.arcs[a];
  const struct course c = course_of(d, s, a);
  const uint64_t t = (uint64_t)arc->nextstate;
  const double x1 = x_of(d, s), y1 = y_of(d, s), x2 = x_of(d, t), y2 = y_of(d, t);
  wf__write_text(d->output, "<g class=\"arc\">");
  if (c.loop) {
    wf__printf(d->output, "<path%s d=\"M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f\"/>", arrow,
               x1 - 8, y1 - RADIUS + 2, x1 - 26, y1 - c.bend, x1 + 26, y1 - c.bend, x1 + 8,
               y1 - RADIUS + 2);
  } else {
    const double rim = RADIUS / hypot(x2 - x1, y2 - y1), dx = (x2 - x1) * rim, dy = (y2 - y1) * rim;
    wf__svg_curve(d->output, x1 + dx, y1 + dy, x2 - dx, y2 - dy, c.bend, arrow);
  }
  wf__printf(d->output, "<text x=\"%.1f\" y=\"%.1f\">", c.x, c.y);
  put_label(d, arc, wf__svg_escaped);
  wf__write_text(d->output, "</text></g>\n");
}

/* The edges of all that is drawn. */
struct box {
  double left, right, top, bottom;
};

static void extend(struct box *box, double x, double y, double half_width, double half_height) {
  box->left = fmin(box->left, x - half_width);
  box->right = fmax(box->right, x + half_width);
  box->top = fmin(box->top, y - half_height);
  box->bottom = fmax(box->bottom, y + half_height);
}

static struct box box_of(const struct drawing *d) {
  struct box box = {0, 0, 0, 0};
  for (uint64_t s = 0; s < d->view.num_states; s++) {
    extend(&box, x_of(d, s), y_of(d, s), 2 * RADIUS, 2 * RADIUS);
    for (uint64_t a = d->view.arc_off[s]; a < d->view.arc_off[s + 1]; a++) {
      const struct course c = course_of(d, s, a);
      extend(&box, c.x, c.y, label_width(d, &d->view.arcs[a]) / 2, RADIUS);
    }
  }
  return box;
}

static void put_state(const struct drawing *d, uint64_t s) {
  double x = x_of(d, s), y = y_of(d, s);
  float final = d->view.final_cost[s];
  wf__printf(d->output, "<g class=\"state\"><circle%s cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>",
             (int64_t)s == d->view.start ? " class=\"start\"" : "", x, y, RADIUS);
  if (final < INFINITY)
    wf__printf(d->output, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", x, y, RADIUS - 3);
  wf__printf(d->output, "<text x=\"%.1f\" y=\"%.1f\">%llu</text>", x, y + 4, (unsigned long long)s);
  if (final < INFINITY && final != 0)
    wf__printf(d->output, "<text x=\"%.1f\" y=\"%.1f\">/%g</text>", x, y + RADIUS + 12,
               (double) final);
  wf__write_text(d->output, "</g>\n");
}

static void put_svg(struct drawing *d) {
  const struct box box = box_of(d);
  d->left = WF__SVG_MARGIN / 2 - box.left;
  d->top = WF__SVG_MARGIN / 2 - box.top;
  wf__svg_begin(d->output, box.right - box.left + WF__SVG_MARGIN,
                box.bottom - box.top + WF__SVG_MARGIN);
  wf__write_text(d->output,
                 "<defs><marker id=\"warpfst-arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
                 "markerUnits=\"userSpaceOnUse\" markerWidth=\"9\" markerHeight=\"9\" "
                 "orient=\"auto\"><polygon points=\"0,1 10,5 0,9\"/></marker></defs>\n");
  for (uint64_t s = 0; s < d->view.num_states; s++)
    for (uint64_t a = d->view.arc_off[s]; a < d->view.arc_off[s + 1]; a++) put_arc(d, s, a);
  for (uint64_t s = 0; s < d->view.num_states; s++) put_state(d, s);
  wf__svg_end(d->output);
}

/* --- Graphviz ---------------------------------------------------------------------------- */

static void put_dot(const struct drawing *d) {
  wf__write_text(d->output,
                 "digraph FST {\n  rankdir = LR;\n  node [shape = circle, fontsize = 14];\n"
                 "  edge [fontsize = 14];\n");
  for (uint64_t s = 0; s < d->view.num_states; s++) {
    float final = d->view.final_cost[s];
    unsigned long long number = s;
    wf__printf(d->output, "  %llu [label = \"%llu", number, number);
    if (final < INFINITY && final != 0) wf__printf(d->output, "/%g", (double) final);
    wf__printf(d->output, "\"%s%s];\n", final < INFINITY ? ", shape = doublecircle" : "",
               (int64_t)s == d->view.start ? ", style = bold" : "");
    for (uint64_t a = d->view.arc_off[s]; a < d->view.arc_off[s + 1]; a++) {
      wf__printf(d->output, "  %llu -> %u [label = \"", number, d->view.arcs[a].nextstate);
      put_label(d, &d->view.arcs[a], wf__dot_escaped);
      wf__write_text(d->output, "\"];\n");
    }
  }
  wf__write_text(d->output, "}\n");
}

wf_status wf_fst_print_dot(const wf_fst *fst, const char *path, wf_error *err) {
  struct drawing d = {.view = wf_fst_get_view(fst),
                      .isymbols = wf_fst_isymbols(fst),
                      .osymbols = wf_fst_osymbols(fst)};
  WF__TRY(wf__output_open(path, &d.output, err));
  put_dot(&d);
  return wf__output_close(d.output, err);
}

wf_status wf_fst_draw(const wf_fst *fst, const char *path, wf_error *err) {
  if (wf__draws_dot(path)) return wf_fst_print_dot(fst, path, err);
  struct drawing d = {.view = wf_fst_get_view(fst),
                      .isymbols = wf_fst_isymbols(fst),
                      .osymbols = wf_fst_osymbols(fst)};
  if (d.view.num_arcs > MOST || d.view.num_states > MOST)
    return wf__fail(
        err, WF_ERR_LIMIT, "the fst has %llu states and %llu arcs, too many to draw (at most %d)",
        (unsigned long long)d.view.num_states, (unsigned long long)d.view.num_arcs, MOST);
  wf_status status = drawing_alloc(&d, err);
  if (status == WF_OK) {
    if (d.view.num_states > 0) find_levels(&d);
    choose_width(&d);
    status = wf__output_open(path, &d.output, err);
  }
  if (status == WF_OK) {
    put_svg(&d);
    status = wf__output_close(d.output, err);
  }
  drawing_free(&d);
  return status;
}
