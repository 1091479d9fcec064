/* search_graph.c - a topological order of a graph, or the order of a depth-first search. */
#include "fstops/search_graph.h"

#include <stdlib.h>

#include "base/memory.h"

struct frame {
  uint32_t state;
  uint64_t next_arc;
};

/* Writes the states reached from `root`, as far as they are new, into order[.. *begin), from its
 * end. Clears `*acyclic` if it finds a cycle, and then stops unless `all`. mark[]: 0 new, 1 on the
 * stack, 2 finished. */
static void search_from(const wf__search_graph *graph, uint32_t root, bool all, uint8_t *mark,
                        struct frame *stack, uint32_t *order, uint64_t *begin, bool *acyclic) {
  uint64_t depth = 0;
  mark[root] = 1;
  stack[depth++] = (struct frame){root, graph->arc_off[root]};
  while (depth > 0) {
    struct frame *top = &stack[depth - 1];
    if (top->next_arc == graph->arc_off[top->state + 1]) {
      mark[top->state] = 2;
      order[--*begin] = top->state;
      depth--;
      continue;
    }
    const wf_arc *arc = &graph->arcs[top->next_arc++];
    if (!wf__enters(graph, arc)) continue;
    if (mark[arc->nextstate] == 1) *acyclic = false;
    if (!*acyclic && !all) return;
    if (mark[arc->nextstate] != 0) continue;
    mark[arc->nextstate] = 1;
    stack[depth++] = (struct frame){arc->nextstate, graph->arc_off[arc->nextstate]};
  }
}

wf_status wf__order_states(const wf__search_graph *graph, bool all, uint32_t *order,
                           uint64_t *begin, bool *acyclic, wf_error *err) {
  uint64_t n = graph->num_states;
  uint8_t *mark = wf__calloc(n, 1);
  struct frame *stack = wf__alloc(n, sizeof *stack);
  *begin = n;
  *acyclic = true;
  bool fine = mark != NULL && stack != NULL;
  for (uint64_t s = 0; fine && (*acyclic || all) && s < n; s++)
    if (mark[s] == 0 && (all || wf__source_cost(graph, s) != INFINITY))
      search_from(graph, (uint32_t)s, all, mark, stack, order, begin, acyclic);
  free(mark);
  free(stack);
  return fine ? WF_OK : wf__fail_memory(err, n * (1 + sizeof *stack), "a topological order");
}
