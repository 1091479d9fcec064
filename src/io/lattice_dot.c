/* lattice_dot.c - writes a lattice for Graphviz (`dot -Tsvg`). */
#include <math.h>

#include "io/lattice_picture.h"
#include "io/svg.h"

void wf__picture_write_dot(const wf__picture *p, wf__output *output) {
  const wf_compact_lattice_view *view = &p->view;
  char scratch[16];
  wf__write_text(output, "digraph \"");
  wf__dot_escaped(output, p->key);
  wf__write_text(
      output,
      "\" {\n  rankdir = LR;\n  node [shape = circle, fontsize = 10];\n  edge [fontsize = 11];\n");
  for (uint64_t s = 0; s < view->num_states; s++) {
    const wf_compact_weight *final = &view->finals[s];
    wf__printf(output, "  %llu [label = \"", (unsigned long long)s);
    if (p->timed)
      wf__printf(output, "%.2f", view->frames[s] * p->frame_shift);
    else
      wf__printf(output, "%llu", (unsigned long long)s);
    if (final->graph_cost < INFINITY)
      wf__printf(output, "\\n%.2f, %.2f", (double) final->graph_cost,
                 (double) final->acoustic_cost);
    wf__printf(output, "\"%s%s];\n", final->graph_cost < INFINITY ? ", shape = doublecircle" : "",
               p->state_is_best[s] ? ", color = red" : "");
  }
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
      const wf_compact_arc *arc = &view->arcs[a];
      const char *word = wf__picture_word(p, arc->word, scratch);
      wf__printf(output, "  %llu -> %d [label = \"", (unsigned long long)s, arc->nextstate);
      wf__dot_escaped(output, word != NULL ? word : "-");
      wf__printf(output, "\\n%.2f, %.2f\"%s];\n", (double)arc->weight.graph_cost,
                 (double)arc->weight.acoustic_cost,
                 p->arc_is_best[a] ? ", color = red, penwidth = 2" : "");
    }
  wf__write_text(output, "}\n");
}
