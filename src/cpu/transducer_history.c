/* transducer_history.c - the records of a transducer's search as a tree: what is still needed, and
 * the prefix that all tokens share. */
#include <stdlib.h>

#include "cpu/transducer_search.h"
#include "decode/trace.h"

#define NONE UINT32_MAX /* also WF__TRACE_ROOT: before the first record */

/* Of each record: how many others and tokens lead back to it directly, and the last of these others
 * (NONE: a token). The last node is the root. */
struct tree {
  uint64_t size;
  uint32_t *counts, *children;
  uint32_t *numbers; /* new numbers of the records; NONE: dropped or committed */
};

wf_status wf__transducer_add_arc(const wf_graph *graph, const wf__transducer_record *record,
                                 wf__path *path, wf_error *err) {
  if (record->arc == WF__NO_ARC) return WF_OK;
  WF__TRY(wf__vec_push(&path->arcs, record->arc, "a path", err));
  if (wf__graph_arc(graph, record->arc).ilabel == 0) return WF_OK;
  WF__TRY(wf__vec_push(&path->loglikes, record->loglike, "a path", err));
  return wf__vec_push(&path->steps, record->frame, "a path", err);
}

/* Adds a token that comes from record `prev`. */
static void add_leaf(const wf__transducer_search *search, struct tree *tree, uint32_t prev) {
  uint32_t child = NONE;
  for (uint32_t at = prev;; at = search->records.data[at].prev) {
    uint64_t node = at == WF__TRACE_ROOT ? tree->size : at;
    tree->children[node] = child;
    if (tree->counts[node]++ > 0 || at == WF__TRACE_ROOT) return;
    child = at;
  }
}

static void add_leaves(const wf__transducer_search *search, struct tree *tree) {
  bool any = false;
  for (uint32_t w = 0; w < search->num_waiting; w++)
    for (uint64_t i = 0; i < search->waiting[w].tokens.size; i++, any = true)
      add_leaf(search, tree, search->waiting[w].tokens.data[i].prev);
  if (!any) add_leaf(search, tree, search->best_record);
}

/* Moves the chain of records from the root to the first that more than one path goes on from. */
static wf_status commit(wf__transducer_search *search, struct tree *tree, wf_error *err) {
  uint64_t node = tree->size, first = search->committed.arcs.size;
  while (tree->counts[node] == 1 && tree->children[node] != NONE) {
    node = tree->children[node];
    WF__TRY(wf__transducer_add_arc(search->graph, &search->records.data[node], &search->committed,
                                   err));
    tree->numbers[node] = NONE - 1; /* committed */
  }
  return wf__path_score(&search->committed, first, search->graph, &search->scoring, false,
                        &search->committed_sum, err);
}

static uint32_t number_of(const struct tree *tree, uint32_t record) {
  return record == WF__TRACE_ROOT ? WF__TRACE_ROOT : tree->numbers[record];
}

/* Keeps the records that are needed and not committed, in their order. */
static void compact(wf__transducer_search *search, struct tree *tree) {
  wf__transducer_record *records = search->records.data;
  uint32_t kept = 0;
  for (uint64_t i = 0; i < tree->size; i++) {
    bool committed = tree->numbers[i] == NONE - 1;
    tree->numbers[i] = tree->counts[i] > 0 && !committed ? kept++ : NONE;
  }
  for (uint64_t i = 0; i < tree->size; i++) {
    if (tree->numbers[i] == NONE) continue;
    wf__transducer_record record = records[i];
    record.prev = number_of(tree, record.prev);
    records[tree->numbers[i]] = record;
  }
  search->records.size = search->num_live = kept;
  for (uint32_t w = 0; w < search->num_waiting; w++)
    for (uint64_t i = 0; i < search->waiting[w].tokens.size; i++) {
      wf__transducer_token *token = &search->waiting[w].tokens.data[i];
      token->prev = number_of(tree, token->prev);
    }
  search->best_record = number_of(tree, search->best_record);
}

wf_status wf__transducer_collect(wf__transducer_search *search, wf_error *err) {
  uint64_t size = search->records.size;
  if (size == 0) return WF_OK;
  struct tree tree = {size, wf__calloc(size + 1, sizeof(uint32_t)),
                      wf__alloc(size + 1, sizeof(uint32_t)), wf__calloc(size, sizeof(uint32_t))};
  wf_status status = tree.counts != NULL && tree.children != NULL && tree.numbers != NULL
                         ? WF_OK
                         : wf__fail_memory(err, size * 12, "the token history");
  if (status == WF_OK) {
    add_leaves(search, &tree);
    status = commit(search, &tree, err);
  }
  if (status == WF_OK) compact(search, &tree);
  free(tree.counts);
  free(tree.children);
  free(tree.numbers);
  return status;
}
