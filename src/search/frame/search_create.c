/* search_create.c - the search with scores of frames: its objects, and the table of its operations.
 */
#include "search/frame/channel.h"
#include "search/frame/dominance.h"
#include "search/frame/frame_columns.h"
#include "search/frame/token_table.h"

static wf_status open_setup(const wf_transducer *model, wf__search_setup *setup, wf_error *err) {
  setup->num_columns = setup->graph->min_columns;
  return WF_OK;
}

static void free_search(wf__searcher *searcher) {
  wf__search *search = (wf__search *)searcher;
  if (search == NULL) return;
  wf__searcher_release(searcher);
  wf__vec_free(&search->tokens);
  wf__vec_free(&search->sources);
  wf__vec_free(&search->contexts);
  wf__vec_free(&search->past_contexts);
  free(search->slots);
  wf__vec_free(&search->used_slots);
  wf__columns_free(search);
  wf__dominance_free(search);
  wf__vec_free(&search->step.keys);
  wf__vec_free(&search->step.hub.arcs);
  wf__vec_free(&search->step.hub.bounds);
  wf__vec_free(&search->closure.frontier[0]);
  wf__vec_free(&search->closure.frontier[1]);
  wf__vec_free(&search->closure.costs);
  wf__vec_free(&search->closure.contexts);
  wf__vec_free(&search->links.candidates);
  wf__vec_free(&search->links.moved);
  wf__vec_free(&search->links.epsilons);
  wf__vec_free(&search->links.rounds);
  wf__vec_free(&search->links.depths);
  wf__trace_free(&search->trace);
  free(search);
}

static wf_status create(const wf__search_setup *setup, bool many, wf__searcher **out,
                        wf_error *err) {
  const wf_graph *graph = setup->graph;
  *out = NULL;
  wf__search *search = wf__calloc(1, sizeof *search);
  if (search == NULL) return wf__fail_memory(err, sizeof *search, "a search");
  wf__searcher_init(&search->base, setup);
  wf__decoder_limits(&search->base.options, graph);
  search->step.skip_above = wf__skip_above(&setup->options);
  wf_status status = wf__columns_create(search, graph, err);
  if (status == WF_OK) status = grow_slots(search, err);
  if (status == WF_OK)
    *out = &search->base;
  else
    free_search(&search->base);
  return status;
}

const wf__searcher_ops wf__frame_searcher = {.checks_scores = true,
                                             .open = open_setup,
                                             .create = create,
                                             .free = free_search,
                                             .begin = wf__search_begin,
                                             .feed = wf__search_feed,
                                             .go_on = wf__search_go_on,
                                             .go_to_end = wf__search_go_to_end,
                                             .finish = wf__search_finish,
                                             .lattice = wf__search_lattice,
                                             .find_live = wf__search_find_live,
                                             .open_stream = wf__channel_open,
                                             .close_stream = wf__channel_close,
                                             .reset = wf__channel_reset,
                                             .bytes = wf__channel_bytes,
                                             .set_scorer = wf__channel_set_scorer,
                                             .enter = wf__channel_enter,
                                             .leave = wf__channel_leave,
                                             .collect = wf__channel_collect,
                                             .take_committed = wf__channel_take_committed,
                                             .partial = wf__search_partial,
                                             .partial_lattice = wf__channel_partial_lattice,
                                             .replace_scorer = wf__channel_replace_scorer};
