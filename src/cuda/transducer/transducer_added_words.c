/* transducer_added_words.c - see transducer_added_words.h. */
#include "cuda/transducer/transducer_added_words.h"

#include "search/decode_graph.h"

static const char what[] = "added words";

static wf_status number(wf__added_store *store, uint64_t i, wf_error *err) {
  uint32_t unused;
  return wf__map64_insert(&store->numbers, (uint64_t)(uintptr_t)store->list.data[i]->graph,
                          (uint32_t)i, &unused, NULL, what, err);
}

static wf_status free_unused(wf__added_store *store, wf_error *err) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < store->list.size; i++) {
    wf__shared_words *own = store->list.data[i];
    if (atomic_load(&own->graph->refs) > 1)
      store->list.data[kept++] = own;
    else
      wf__gpu_release_words(&store->words, &own);
  }
  if (kept == store->list.size) return WF_OK;
  store->list.size = kept;
  wf__map64_clear(&store->numbers);
  for (uint64_t i = 0; i < kept; i++) WF__TRY(number(store, i, err));
  return WF_OK;
}

static uint32_t find(const wf__added_store *store, const wf_graph *graph) {
  return wf__map64_find(&store->numbers, (uint64_t)(uintptr_t)graph);
}

static wf_status add(wf__added_store *store, const wf__words_upload *upload, const wf_graph *graph,
                     wf_error *err) {
  const uint64_t i = store->list.size;
  if (graph->added == NULL || find(store, graph) != WF__MAP64_NONE) return WF_OK;
  WF__TRY(wf__vec_grow(&store->list, 1, what, err));
  WF__TRY(wf__gpu_acquire_words(&store->words, upload, graph, &store->list.data[i], err));
  store->list.size++;
  return number(store, i, err);
}

wf_status wf__added_store_begin(wf__added_store *store, const wf__words_upload *upload,
                                const wf_graph *const *graphs, size_t count, wf_error *err) {
  WF__TRY(free_unused(store, err));
  for (size_t i = 0; i < count; i++) WF__TRY(add(store, upload, graphs[i], err));
  return WF_OK;
}

const wf__lane_words *wf__added_store_find(const wf__added_store *store, const wf_graph *graph) {
  return graph->added != NULL ? wf__shared_words_there(store->list.data[find(store, graph)]) : NULL;
}

void wf__added_store_close(wf__added_store *store) {
  for (uint64_t i = 0; i < store->list.size; i++)
    wf__gpu_release_words(&store->words, &store->list.data[i]);
  wf__vec_free(&store->list);
  wf__map64_free(&store->numbers);
  wf__gpu_close_words(&store->words);
}
