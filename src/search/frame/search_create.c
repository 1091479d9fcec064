/* search_create.c - search objects: making them, freeing them, giving them a scorer. */
#include "search/frame/token_table.h"

wf_status wf__search_create(const wf_graph *graph, const wf_decoder_options *options,
                            wf__search **out, wf_error *err) {
  *out = NULL;
  wf__search *search = wf__calloc(1, sizeof *search);
  if (search == NULL) return wf__fail_memory(err, sizeof *search, "a search");
  search->graph = graph;
  search->options = *options;
  wf__decoder_limits(&search->options, graph);
  search->epsilon_slack = wf__epsilon_slack(graph, options, false);
  search->keeps_lattice = options->lattice_beam > 0;
  search->skip_above = wf__skip_above(options);
  search->label_costs = wf__alloc((uint64_t)graph->num_labels, sizeof *search->label_costs);
  wf_status status = search->label_costs != NULL
                         ? grow_slots(search, err)
                         : wf__fail_memory(err, (uint64_t)graph->num_labels * 4, "a search");
  if (status != WF_OK) {
    wf__search_free(search);
    return status;
  }
  *out = search;
  return WF_OK;
}

void wf__search_free(wf__search *search) {
  if (search == NULL) return;
  wf__vec_free(&search->tokens);
  wf__vec_free(&search->sources);
  wf__scoring_free(&search->scoring);
  wf__vec_free(&search->contexts);
  wf__vec_free(&search->past_contexts);
  wf__vec_free(&search->frontier_contexts);
  free(search->slots);
  wf__vec_free(&search->used_slots);
  free(search->label_costs);
  wf__vec_free(&search->hub.arcs);
  wf__vec_free(&search->hub.bounds);
  wf__vec_free(&search->keys);
  wf__vec_free(&search->live);
  wf__vec_free(&search->frontier[0]);
  wf__vec_free(&search->frontier[1]);
  wf__vec_free(&search->frontier_costs);
  wf__history_free(&search->history);
  wf__vec_free(&search->candidates);
  wf__vec_free(&search->epsilons);
  wf__vec_free(&search->moved);
  wf__vec_free(&search->depths);
  wf__vec_free(&search->rounds);
  wf__trace_free(&search->trace);
  wf__path_free(&search->path);
  free(search);
}

void wf__search_set_graph(wf__search *search, const wf_graph *graph) { search->graph = graph; }

wf_status wf__search_set_scorer(wf__search *search, const wf_scorer *scorer, wf_error *err) {
  search->epsilon_slack = wf__epsilon_slack(search->graph, &search->options, scorer != NULL);
  return wf__scoring_set(&search->scoring, scorer, err);
}

wf_status wf__search_join_scorer(wf__search *search, const wf__search *first, wf_error *err) {
  search->epsilon_slack = first->epsilon_slack;
  return wf__scoring_join(&search->scoring, &first->scoring, err);
}
