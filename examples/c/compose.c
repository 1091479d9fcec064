/* compose.c - builds two transducers, composes them and prints the best path. */
#include <stdio.h>
#include <warpfst_fst.h>

/* States 0, 1, ... `count` in a line. Arc i leaves state arcs[i].nextstate - 1. */
static wf_status build(const wf_arc *arcs, uint64_t count, uint32_t num_states, wf_fst **out,
                       wf_error *err) {
  wf_builder *builder = NULL;
  wf_status status = wf_builder_create(WF_TROPICAL, &builder, err);
  if (status == WF_OK) status = wf_builder_reserve(builder, num_states, count, err);
  if (status == WF_OK) status = wf_builder_add_states(builder, num_states, NULL, err);
  if (status == WF_OK) status = wf_builder_set_start(builder, 0, err);
  for (uint64_t i = 0; i < count && status == WF_OK; i++)
    status = wf_builder_add_arc(builder, arcs[i].nextstate - 1, arcs[i], err);
  if (status == WF_OK) status = wf_builder_set_final(builder, num_states - 1, 0, err);
  if (status == WF_OK) status = wf_builder_finish(builder, NULL, NULL, out, err);
  wf_builder_free(builder);
  return status;
}

int main(void) {
  /* Arcs: next state, cost, input label, output label. */
  const wf_arc first[] = {{1, 1.5f, 1, 11}, {1, 0.5f, 1, 12}, {2, 0, 2, 13}};
  const wf_arc second[] = {{1, 0, 11, 21}, {1, 2, 12, 22}, {2, 0.25f, 13, 23}};
  wf_error err = {0};
  wf_fst *a = NULL, *b = NULL, *both = NULL, *best = NULL;
  wf_status status = build(first, 3, 3, &a, &err);
  if (status == WF_OK) status = build(second, 3, 3, &b, &err);
  if (status == WF_OK) status = wf_compose(a, b, NULL, &both, &err);
  if (status == WF_OK) status = wf_shortest_path(both, NULL, &best, &err);
  if (status == WF_OK) {
    wf_fst_view view = wf_fst_get_view(both), path = wf_fst_get_view(best);
    printf("%d states, %d arcs, %s\n", (int)view.num_states, (int)view.num_arcs,
           wf_fst_properties(both) & WF_PROP_ACYCLIC ? "acyclic" : "cyclic");
    float cost = 0;
    for (uint64_t i = 0; i < path.num_arcs; i++) { /* a path's arcs are in order */
      printf("%d:%d ", (int)path.arcs[i].ilabel, (int)path.arcs[i].olabel);
      cost += path.arcs[i].weight;
    }
    printf("costs %g\n", (double)cost);
  }
  if (status != WF_OK) fprintf(stderr, "compose: %s\n", err.message);
  wf_fst *all[] = {a, b, both, best};
  for (int i = 0; i < 4; i++) wf_fst_free(all[i]);
  return status == WF_OK ? 0 : 1;
}
