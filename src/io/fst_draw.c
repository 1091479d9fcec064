/* fst_draw.c - draws an fst as an SVG picture.
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
  uint64_t num_levels, most; /* most: states in a level */
  double per_level;          /* pixels */
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
  return WF__SVG_MARGIN + (double)d->level[s] * d->per_level;
}

/* The first lane is left free for loops. */
static double y_of(const struct drawing *d, uint64_t s) {
  double above = (double)(d->most - d->count[d->level[s]]) / 2;
  return WF__SVG_MARGIN + WF__SVG_LANE * 1.5 * ((double)d->place[s] + above + 1);
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
static void put_label(const struct drawing *d, const wf_arc *arc) {
  char scratch[2][16];
  const char *in = label_text(d->isymbols, arc->ilabel, scratch[0]),
             *out = label_text(d->osymbols, arc->olabel, scratch[1]);
  wf__svg_escaped(d->output, in);
  if (strcmp(in, out) != 0) {
    wf__write_text(d->output, ":");
    wf__svg_escaped(d->output, out);
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

static void put_arc(const struct drawing *d, uint64_t s, uint64_t a) {
  const wf_arc *arc = &d->view.arcs[a];
  uint64_t t = (uint64_t)arc->nextstate, parallel = 0;
  for (uint64_t b = d->view.arc_off[s]; b < a; b++) parallel += d->view.arcs[b].nextstate == t;
  double x1 = x_of(d, s), y1 = y_of(d, s), x2 = x_of(d, t), y2 = y_of(d, t), x = (x1 + x2) / 2, y;
  wf__write_text(d->output, "<g class=\"arc\">");
  if (s == t) {
    double height = 46 + 18 * (double)parallel;
    wf__printf(d->output,
               "<path marker-end=\"url(#warpfst-arrow)\" d=\"M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f "
               "%.1f\"/>",
               x1 - 8, y1 - RADIUS + 2, x1 - 26, y1 - height, x1 + 26, y1 - height, x1 + 8,
               y1 - RADIUS + 2);
    y = y1 - height * 0.75 - 10;
  } else {
    bool forward = d->level[t] > d->level[s];
    double bend = PARALLEL * (double)parallel;
    if (!forward) bend = -bend - (d->level[t] == d->level[s] ? 20 : 46);
    double distance = hypot(x2 - x1, y2 - y1), in = RADIUS / distance;
    wf__svg_curve(d->output, x1 + (x2 - x1) * in, y1 + (y2 - y1) * in, x2 - (x2 - x1) * in,
                  y2 - (y2 - y1) * in, bend, " marker-end=\"url(#warpfst-arrow)\"");
    y = (y1 + y2) / 2 - bend * 0.75 + (forward ? -4 : 12);
  }
  wf__printf(d->output, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
  put_label(d, arc);
  wf__write_text(d->output, "</text></g>\n");
}

static void put_state(const struct drawing *d, uint64_t s) {
  double x = x_of(d, s), y = y_of(d, s);
  float final = d->view.final_cost[s];
  wf__printf(d->output, "<g class=\"state%s\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>",
             (int64_t)s == d->view.start ? " start" : "", x, y, RADIUS);
  if (final < INFINITY)
    wf__printf(d->output, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", x, y, RADIUS - 3);
  wf__printf(d->output, "<text x=\"%.1f\" y=\"%.1f\">%llu</text>", x, y + 4, (unsigned long long)s);
  if (final < INFINITY && final != 0)
    wf__printf(d->output, "<text x=\"%.1f\" y=\"%.1f\">/%g</text>", x, y + RADIUS + 12,
               (double) final);
  wf__write_text(d->output, "</g>\n");
}

static void put_svg(const struct drawing *d) {
  double columns = d->num_levels > 0 ? (double)d->num_levels - 1 : 0;
  wf__svg_begin(d->output, 2 * WF__SVG_MARGIN + columns * d->per_level,
                2 * WF__SVG_MARGIN + WF__SVG_LANE * 1.5 * ((double)d->most + 1));
  wf__write_text(d->output,
                 "<defs><marker id=\"warpfst-arrow\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" "
                 "markerUnits=\"userSpaceOnUse\" markerWidth=\"9\" markerHeight=\"9\" "
                 "orient=\"auto\"><polygon points=\"0,1 10,5 0,9\"/></marker></defs>\n");
  for (uint64_t s = 0; s < d->view.num_states; s++)
    for (uint64_t a = d->view.arc_off[s]; a < d->view.arc_off[s + 1]; a++) put_arc(d, s, a);
  for (uint64_t s = 0; s < d->view.num_states; s++) put_state(d, s);
  wf__svg_end(d->output);
}

wf_status wf_fst_draw(const wf_fst *fst, const char *path, wf_error *err) {
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
