/* svg.c - writes text, style and curves of SVG pictures, and text of Graphviz. */
#include "io/svg.h"

#include <string.h>

#include "base/utf8.h"

void wf__svg_escaped(wf__output *output, const char *text) {
  const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
  while (at < end) {
    size_t size = wf__utf8_length(at, end);
    if (size == 0)
      wf__write_text(output, "\xEF\xBF\xBD");
    else if (*at == '&')
      wf__write_text(output, "&amp;");
    else if (*at == '<')
      wf__write_text(output, "&lt;");
    else if (*at == '>')
      wf__write_text(output, "&gt;");
    else if (*at == '"')
      wf__write_text(output, "&quot;");
    else if (*at == '\'')
      wf__write_text(output, "&#39;");
    else if (*at < ' ')
      wf__write_text(output, " ");
    else
      wf__write(output, at, size);
    at += size != 0 ? size : 1;
  }
}

void wf__dot_escaped(wf__output *output, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') wf__write(output, "\\", 1);
    wf__write(output, (unsigned char)*text < ' ' ? " " : text, 1);
  }
}

bool wf__name_ends(const char *path, const char *end) {
  size_t size = path != NULL ? strlen(path) : 0, end_size = strlen(end);
  return size > end_size && strcmp(path + size - end_size, end) == 0;
}

bool wf__draws_dot(const char *path) {
  return wf__name_ends(path, ".dot") || wf__name_ends(path, ".gv");
}

void wf__svg_begin(wf__output *output, double width, double height) {
  wf__printf(output,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"warpfst\" width=\"%.0f\" "
             "height=\"%.0f\">\n",
             width, height);
  wf__write_text(output,
                 "<style>\n"
                 "svg.warpfst { font-family: sans-serif; }\n"
                 "svg.warpfst path { fill: none; stroke: #000; stroke-width: 1.5; }\n"
                 "svg.warpfst g.best path { stroke: #c00; stroke-width: 3; }\n"
                 "svg.warpfst g.best text { fill: #c00; font-weight: bold; }\n"
                 "svg.warpfst g.arc text { font-size: 13px; text-anchor: middle; paint-order: "
                 "stroke; stroke: #fff; stroke-width: 3px; }\n"
                 "svg.warpfst g.arc:hover path { stroke: #06c; stroke-width: 4; stroke-opacity: 1; "
                 "}\n"
                 "svg.warpfst g.arc:hover text { fill: #06c; fill-opacity: 1; }\n"
                 "svg.warpfst circle { fill: #fff; stroke: #000; }\n"
                 "svg.warpfst circle.final { fill: #000; }\n"
                 "svg.warpfst g.state text { font-size: 11px; text-anchor: middle; }\n"
                 "svg.warpfst circle.start { stroke-width: 3; }\n"
                 "svg.warpfst g.axis line { stroke: #bbb; }\n"
                 "svg.warpfst g.axis text { font-size: 11px; fill: #666; text-anchor: middle; }\n"
                 "</style>\n");
}

void wf__svg_end(wf__output *output) { wf__write_text(output, "</svg>\n"); }

void wf__svg_curve(wf__output *output, double x1, double y1, double x2, double y2, double bend,
                   const char *attributes) {
  wf__printf(output, "<path%s d=\"M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f\"/>", attributes, x1,
             y1, x1 + (x2 - x1) * 0.4, y1 - bend, x1 + (x2 - x1) * 0.6, y2 - bend, x2, y2);
}
