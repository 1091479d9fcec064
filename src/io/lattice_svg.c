/* lattice_svg.c - writes a lattice as an SVG picture, or as an HTML page with it, without scripts
 * or other files.
 *
 * Time goes to the right; the vertical position has no meaning. More probable arcs are darker. The
 * tooltip of an arc shows its costs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/lattice_picture.h"
#include "io/svg.h"

enum {
  MARGIN = WF__SVG_MARGIN,
  LANE_HEIGHT = WF__SVG_LANE,
  RADIUS = 5,
  LETTER_WIDTH = 8,
  AXIS_HEIGHT = 36,
  NARROWEST = 1200,
  WIDEST = 1 << 20
};

struct canvas {
  const wf__picture *p;
  wf__output *output;
  double per_place; /* pixels */
  double width, height;
};

static double x_of(const struct canvas *c, uint64_t state) {
  return MARGIN + (double)c->p->places[state] * c->per_place;
}
static double y_of(const struct canvas *c, uint64_t state) {
  return MARGIN + LANE_HEIGHT * ((double)(c->p->highest - c->p->lanes[state]) + 1);
}

/* Wide enough that the words of the best path fit on their arcs, and that a short lattice fills the
 * screen. */
static double pixels_per_place(const wf__picture *p) {
  double most = p->timed ? 2 : 60;
  char scratch[16];
  for (uint64_t s = 0; s < p->view.num_states; s++)
    for (uint64_t a = p->view.arc_off[s]; a < p->view.arc_off[s + 1]; a++) {
      const char *word = wf__picture_word(p, p->view.arcs[a].word, scratch);
      double places = (double)(p->places[p->view.arcs[a].nextstate] - p->places[s]);
      if (!p->arc_is_best[a] || word == NULL || places < 1) continue;
      most = fmax(most, fmin(((double)strlen(word) * LETTER_WIDTH + 30) / places, 60));
    }
  if (p->last > 0) most = fmax(most, (double)(NARROWEST - 2 * MARGIN) / (double)p->last);
  return fmin(most, (double)WIDEST / (double)(p->last + 1));
}

static void put_head(const struct canvas *c) {
  wf__output *output = c->output;
  wf__write_text(
      output,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Lattice of ");
  wf__svg_escaped(output, c->p->key);
  wf__write_text(output,
                 "</title>\n<style>\n"
                 "body { font-family: sans-serif; margin: 1em; }\n"
                 "div { overflow: auto; border: 1px solid #ccc; }\n"
                 "</style>\n</head>\n<body>\n<h1>");
  wf__svg_escaped(output, c->p->key);
  wf__printf(output, "</h1>\n<p>%llu states, %llu arcs, best path (red) of cost ",
             (unsigned long long)c->p->view.num_states, (unsigned long long)c->p->view.num_arcs);
  if (c->p->best_cost < INFINITY)
    wf__printf(output, "%.3f", c->p->best_cost);
  else
    wf__write_text(output, "none");
  wf__write_text(output, ". Darker arcs are more probable; point at one for its costs.</p>\n");
}

/* Writes the time axis: labels in seconds at a round step of at least about 80 pixels. */
static void put_axis(const struct canvas *c) {
  static const double steps[] = {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  wf__output *output = c->output;
  double pixels_per_second = c->per_place / c->p->frame_shift, step = steps[0],
         seconds = (double)c->p->last * c->p->frame_shift;
  for (size_t i = 0; i < sizeof steps / sizeof *steps && step * pixels_per_second < 80; i++)
    step = steps[i];
  if (!c->p->timed || seconds / step > 10000) return;
  wf__write_text(output, "<g class=\"axis\">\n");
  for (int i = 0; (double)i * step <= seconds + 1e-9; i++) {
    double x = MARGIN + (double)i * step * pixels_per_second;
    wf__printf(output,
               "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" "
               "y=\"%.1f\">%g s</text>\n",
               x, MARGIN / 2, x, c->height - AXIS_HEIGHT + 8, x, c->height - AXIS_HEIGHT + 24,
               (double)i * step);
  }
  wf__write_text(output, "</g>\n");
}

static void put_arc(const struct canvas *c, uint64_t s, uint64_t a, uint64_t number_of_pair) {
  const wf__picture *p = c->p;
  const wf_compact_arc *arc = &p->view.arcs[a];
  wf__output *output = c->output;
  char scratch[16];
  const char *word = wf__picture_word(p, arc->word, scratch);
  uint64_t t = (uint64_t)arc->nextstate;
  double x1 = x_of(c, s), y1 = y_of(c, s), x2 = x_of(c, t), y2 = y_of(c, t),
         bend = 22 * (double)number_of_pair, opacity = 0.15 + 0.85 * sqrt(p->posteriors[a]);
  wf__printf(output, "<g class=\"arc%s\"><title>", p->arc_is_best[a] ? " best" : "");
  wf__svg_escaped(output, word != NULL ? word : "(no word)");
  if (p->timed)
    wf__printf(output, "\n%.2f to %.2f s", p->view.frames[s] * p->frame_shift,
               p->view.frames[t] * p->frame_shift);
  wf__printf(output,
             "\ngraph cost %.3f, acoustic cost %.3f\nposterior %.4f, state %llu to %llu</title>",
             (double)arc->weight.graph_cost, (double)arc->weight.acoustic_cost, p->posteriors[a],
             (unsigned long long)s, (unsigned long long)t);
  char attributes[40];
  snprintf(attributes, sizeof attributes, " stroke-opacity=\"%.2f\"", opacity);
  wf__svg_curve(output, x1, y1, x2, y2, bend, attributes);
  if (word != NULL) {
    wf__printf(output, "<text fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\">", fmax(opacity, 0.4),
               (x1 + x2) / 2, (y1 + y2) / 2 - bend * 0.75 - 4);
    wf__svg_escaped(output, word);
    wf__write_text(output, "</text>");
  }
  wf__write_text(output, "</g>\n");
}

/* Number of earlier arcs between the same two states. Parallel arcs are bent differently. */
static uint64_t earlier_parallel_arcs(const wf_compact_lattice_view *view, uint64_t s, uint64_t a) {
  uint64_t count = 0, first = a - view->arc_off[s] > 64 ? a - 64 : view->arc_off[s];
  for (uint64_t b = first; b < a; b++) count += view->arcs[b].nextstate == view->arcs[a].nextstate;
  return count;
}

static void put_states(const struct canvas *c) {
  for (uint64_t s = 0; s < c->p->view.num_states; s++) {
    const wf_compact_weight *final = &c->p->view.finals[s];
    wf__printf(c->output, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"%s><title>state %llu",
               x_of(c, s), y_of(c, s), RADIUS,
               final->graph_cost < INFINITY ? " class=\"final\"" : "", (unsigned long long)s);
    if (c->p->timed) wf__printf(c->output, ", %.2f s", c->p->view.frames[s] * c->p->frame_shift);
    if (final->graph_cost < INFINITY)
      wf__printf(c->output, "\nfinal, graph cost %.3f, acoustic cost %.3f",
                 (double) final->graph_cost, (double) final->acoustic_cost);
    wf__write_text(c->output, "</title></circle>\n");
  }
}

static void put_svg(const struct canvas *c) {
  const wf__picture *p = c->p;
  wf__svg_begin(c->output, c->width, c->height);
  put_axis(c);
  for (int best = 0; best <= 1; best++) /* the best path last, so that it is on top */
    for (uint64_t s = 0; s < p->view.num_states; s++)
      for (uint64_t a = p->view.arc_off[s]; a < p->view.arc_off[s + 1]; a++)
        if (p->arc_is_best[a] == (best == 1))
          put_arc(c, s, a, earlier_parallel_arcs(&p->view, s, a));
  put_states(c);
  wf__svg_end(c->output);
}

static struct canvas canvas_of(const wf__picture *p, wf__output *output) {
  struct canvas c = {.p = p, .output = output, .per_place = pixels_per_place(p)};
  c.width = 2 * MARGIN + (double)p->last * c.per_place;
  c.height = 2 * MARGIN + LANE_HEIGHT * ((double)p->highest - (double)p->lowest + 2) + AXIS_HEIGHT;
  return c;
}

void wf__picture_write_svg(const wf__picture *p, wf__output *output) {
  const struct canvas c = canvas_of(p, output);
  put_svg(&c);
}

void wf__picture_write_html(const wf__picture *p, wf__output *output) {
  const struct canvas c = canvas_of(p, output);
  put_head(&c);
  wf__write_text(output, "<div>\n");
  put_svg(&c);
  wf__write_text(output, "</div>\n</body>\n</html>\n");
}
