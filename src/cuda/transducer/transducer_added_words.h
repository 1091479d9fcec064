/* transducer_added_words.h - words added to graphs, in the memory of a GPU that searches: sent once, they
 * stay while somebody else has the graph, so that streams and batches find them again. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_ADDED_WORDS_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_ADDED_WORDS_H

#include "cuda/graph/upload_added_words.h"
#include "cuda/search/search_params.h"

typedef struct wf__added_store {
  wf__gpu_words words; /* what the list has */
  WF__VEC(wf__shared_words *) list;
  wf__map64 numbers; /* address of a graph -> its number in the list */
} wf__added_store;

/* Sends those of a batch that are not there, and frees those that nobody else has. The GPU must be the
 * current device, and none of its kernels at work with them. */
wf_status wf__added_store_begin(wf__added_store *store, const wf__words_upload *upload,
                                const wf_graph *const *graphs, size_t count, wf_error *err);
/* Where the words of a graph of the batch are; NULL: it has none. */
const wf__lane_words *wf__added_store_find(const wf__added_store *store, const wf_graph *graph);
void wf__added_store_close(wf__added_store *store);

#endif
