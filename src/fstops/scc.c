/* scc.c - Tarjan's algorithm for strongly connected components, with an explicit stack. */
#include "fstops/scc.h"

#include <string.h>

#include "base/memory.h"

struct frame {
  uint32_t state;
  uint64_t next_arc;
};

struct search {
  const wf_fst_view *view;
  wf__arc_kind kind;
  wf__scc *out;
  uint32_t *index; /* order of discovery from 1; 0: not seen */
  uint32_t *low;   /* smallest index known to be reachable inside the component; UINT32_MAX when the
                      component is closed */
  uint32_t *open;  /* stack of the states whose components are not closed */
  struct frame *frames;
  uint32_t num_seen, num_open;
  uint32_t num_left; /* out->order is filled from its end; this many entries are still free */
};

static void discover(struct search *search, uint32_t state, uint64_t *depth) {
  search->index[state] = search->low[state] = ++search->num_seen;
  search->open[search->num_open++] = state;
  search->frames[(*depth)++] = (struct frame){state, search->view->arc_off[state]};
}

/* Pops the component whose first state is `root`. Components are closed in reverse topological
 * order, so they fill `order` from its end. */
static void close_component(struct search *search, uint32_t root) {
  wf__scc *out = search->out;
  uint32_t state;
  do {
    state = search->open[--search->num_open];
    search->low[state] = UINT32_MAX;
    out->component[state] = out->num_components;
    out->order[--search->num_left] = state;
  } while (state != root);
  out->num_components++;
}

static void search_from(struct search *search, uint32_t root) {
  const wf_fst_view *view = search->view;
  uint64_t depth = 0;
  discover(search, root, &depth);
  while (depth > 0) {
    struct frame *top = &search->frames[depth - 1];
    uint32_t state = top->state;
    if (top->next_arc < view->arc_off[state + 1]) {
      const wf_arc *arc = &view->arcs[top->next_arc++];
      if (!wf__arc_is(arc, search->kind)) continue;
      if (arc->nextstate == state) search->out->acyclic = false;
      if (search->index[arc->nextstate] == 0)
        discover(search, arc->nextstate, &depth);
      else if (search->low[arc->nextstate] != UINT32_MAX &&
               search->index[arc->nextstate] < search->low[state])
        search->low[state] = search->index[arc->nextstate];
      continue;
    }
    depth--;
    uint32_t low = search->low[state];
    if (low == search->index[state])
      close_component(search, state);
    else if (low < search->low[search->frames[depth - 1].state])
      search->low[search->frames[depth - 1].state] = low;
  }
}

static bool top_sorted(const wf_fst_view *view, wf__arc_kind kind) {
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      if (view->arcs[i].nextstate <= s && wf__arc_is(&view->arcs[i], kind)) return false;
  return true;
}

static wf_status run(struct search *search, wf_error *err) {
  uint64_t n = search->view->num_states;
  wf__scc *out = search->out;
  search->index = wf__calloc(n, sizeof *search->index);
  search->low = wf__alloc(n, sizeof *search->low);
  search->open = wf__alloc(n, sizeof *search->open);
  search->frames = wf__alloc(n, sizeof *search->frames);
  if (search->index == NULL || search->low == NULL || search->open == NULL ||
      search->frames == NULL)
    return wf__fail_memory(err, n * 28, "components");
  search->num_left = (uint32_t)n;
  if (search->view->start >= 0) search_from(search, (uint32_t)search->view->start);
  for (uint64_t s = 0; s < n; s++)
    if (search->index[s] == 0) search_from(search, (uint32_t)s);
  for (uint64_t s = 0; s < n; s++) out->component[s] = out->num_components - 1 - out->component[s];
  for (uint64_t i = 0, c = 0; i < n; i++)
    if (i == 0 || out->component[out->order[i]] != out->component[out->order[i - 1]])
      out->off[c++] = (uint32_t)i;
  out->off[out->num_components] = (uint32_t)n;
  if (out->num_components != n) out->acyclic = false;
  return WF_OK;
}

wf_status wf__scc_find(const wf_fst_view *view, wf__arc_kind kind, wf__scc *out, wf_error *err) {
  uint64_t n = view->num_states;
  *out = (wf__scc){.acyclic = true};
  out->component = wf__alloc(n, sizeof *out->component);
  out->order = wf__alloc(n, sizeof *out->order);
  out->off = wf__alloc(n + 1, sizeof *out->off);
  if (out->component == NULL || out->order == NULL || out->off == NULL) {
    wf__scc_free(out);
    return wf__fail_memory(err, n * 12, "components");
  }
  if (top_sorted(view, kind)) {
    for (uint32_t s = 0; s < n; s++) out->component[s] = out->order[s] = out->off[s] = s;
    out->off[n] = out->num_components = (uint32_t)n;
    return WF_OK;
  }
  struct search search = {.view = view, .kind = kind, .out = out};
  wf_status status = run(&search, err);
  free(search.index);
  free(search.low);
  free(search.open);
  free(search.frames);
  if (status != WF_OK) wf__scc_free(out);
  return status;
}

void wf__scc_free(wf__scc *scc) {
  free(scc->component);
  free(scc->order);
  free(scc->off);
  *scc = (wf__scc){0};
}
