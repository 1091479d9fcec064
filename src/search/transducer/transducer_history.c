/* transducer_history.c - the records of a transducer's search as a tree: what is still needed, the
 * prefix that all tokens share, and the contexts of another scorer. */
#include <stdlib.h>

#include "search/trace.h"
#include "search/transducer/transducer_search.h"

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
    WF__TRY(wf__transducer_add_arc(search->base.graph, &search->records.data[node],
                                   &search->committed, err));
    tree->numbers[node] = NONE - 1; /* committed */
  }
  return wf__path_score(&search->committed, first, search->base.graph, &search->base.scoring, false,
                        &search->base.committed_sum, err);
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

/* --- another scorer ---------------------------------------------------------------------- */

static wf_status add_word(wf__transducer_search *search, uint32_t arc, uint64_t *context,
                          wf_error *err) {
  const int32_t word = arc == WF__NO_ARC ? 0 : wf__graph_arc(search->base.graph, arc).olabel;
  float cost;
  return word == 0 ? WF_OK
                   : wf__scoring_step(&search->base.scoring, *context, word, &cost, context, err);
}

/* Computes the context after each record. A record comes after the one that it leads back to,
 * unless an epsilon made it: then `way` has those on the way to one that is known. */
static wf_status follow_records(wf__transducer_search *search, uint64_t *contexts, bool *known,
                                uint32_t *way, wf_error *err) {
  const wf__transducer_record *records = search->records.data;
  for (uint64_t i = 0; i < search->records.size; i++) {
    uint64_t length = 0, context = search->base.committed_sum.context;
    uint32_t at = (uint32_t)i;
    for (; at != WF__TRACE_ROOT && !known[at]; at = records[at].prev) {
      if (length == search->records.size) return wf__fail_cycle(err);
      way[length++] = at;
    }
    if (at != WF__TRACE_ROOT) context = contexts[at];
    while (length > 0) {
      at = way[--length];
      WF__TRY(add_word(search, records[at].arc, &context, err));
      contexts[at] = context;
      known[at] = true;
    }
  }
  return WF_OK;
}

static wf_status add_pending(wf__transducer_search *search, float sign, wf_error *err) {
  const wf__scoring *scoring = &search->base.scoring;
  for (uint32_t w = 0; w < search->num_waiting && scoring->scorer != NULL; w++) {
    wf__transducer_set *set = &search->waiting[w];
    for (uint64_t i = 0; i < set->tokens.size; i++) {
      wf__transducer_token *token = &set->tokens.data[i];
      token->cost += sign * wf__scorer_pending(scoring->scorer, scoring->memory, token->context);
    }
    WF__TRY(wf__transducer_set_recount(set, err));
  }
  return WF_OK;
}

static int by_cost(const void *a, const void *b) {
  const wf__transducer_token *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return (x->context > y->context) - (x->context < y->context);
}

/* Gives the tokens of a set their new contexts. Of those with the same triple the cheapest stays,
 * and of equally cheap ones that with the smallest old context. */
static wf_status renew(wf__transducer_search *search, wf__transducer_set *set,
                       const uint64_t *contexts, wf_error *err) {
  wf__transducer_set fresh = {0};
  wf_status status = wf__transducer_set_init(&fresh, set->most, err);
  if (set->tokens.size > 1)
    qsort(set->tokens.data, set->tokens.size, sizeof *set->tokens.data, by_cost);
  for (uint64_t i = 0; i < set->tokens.size && status == WF_OK; i++) {
    wf__transducer_token token = set->tokens.data[i];
    token.context =
        token.prev != WF__TRACE_ROOT ? contexts[token.prev] : search->base.committed_sum.context;
    if (search->base.scoring.scorer != NULL)
      status = add_word(search, token.arc, &token.context, err);
    if (status == WF_OK) status = wf__transducer_set_offer(&fresh, &token, err);
  }
  wf__transducer_set unused = fresh;
  if (status == WF_OK) {
    unused = *set;
    *set = fresh;
  }
  wf__transducer_set_free(&unused);
  return status;
}

static wf_status renew_all(wf__transducer_search *search, wf_error *err) {
  const uint64_t size = search->records.size;
  uint64_t *contexts = wf__calloc(size, sizeof *contexts);
  bool *known = wf__calloc(size, sizeof *known);
  uint32_t *way = wf__alloc(size, sizeof *way);
  wf_status status = contexts != NULL && known != NULL && way != NULL
                         ? WF_OK
                         : wf__fail_memory(err, size * 13, "a scorer's contexts");
  if (status == WF_OK && search->base.scoring.scorer != NULL)
    status = follow_records(search, contexts, known, way, err);
  for (uint32_t w = 0; w < search->num_waiting && status == WF_OK; w++)
    status = renew(search, &search->waiting[w], contexts, err);
  free(contexts);
  free(known);
  free(way);
  return status;
}

wf_status wf__transducer_replace_scorer(wf__searcher *searcher, const wf_scorer *given,
                                        const wf_word *words, size_t num_words, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  const wf_scorer *scorer = wf__scorer_for_transducer(given);
  uint64_t *context = &searcher->committed_sum.context;
  if (scorer == searcher->scoring.scorer) return WF_OK;
  WF__TRY(add_pending(search, 1, err));
  WF__TRY(wf__searcher_set_scorer(searcher, scorer, err));
  WF__TRY(wf__scoring_begin(&searcher->scoring, err));
  *context = scorer != NULL ? searcher->scoring.start : 0;
  const size_t needed = scorer != NULL ? scorer->context_words : 0;
  for (size_t i = num_words > needed ? num_words - needed : 0; i < num_words; i++) {
    float cost;
    WF__TRY(wf__scoring_step(&searcher->scoring, *context, words[i].label, &cost, context, err));
  }
  WF__TRY(renew_all(search, err));
  return add_pending(search, -1, err);
}
