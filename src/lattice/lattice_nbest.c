/* lattice_nbest.c - the n best word sequences of a deterministic lattice: partial paths, best first
 * by the exact cost of their best completion (A*).
 *
 * Among partial paths of equal cost, the one whose word sequence is lexicographically first is
 * expanded first, and a sequence before its continuations. So among word sequences of equal cost,
 * the lexicographically first is found first, because its prefixes have the same cost and precede
 * all others. */
#include <inttypes.h>

#include "lattice/nbest.h"

#define NONE UINT32_MAX

static int32_t word_of(const wf__nbest_search *search, uint32_t path) {
  return search->lattice.arcs.data[search->paths.data[path].arc].word;
}

/* Order of the word sequences of two partial paths. */
static int compare_words(const wf__nbest_search *search, uint32_t x, uint32_t y) {
  const wf__partial_path *paths = search->paths.data;
  if (paths[x].arc == NONE && paths[x].before != NONE) x = paths[x].before;
  if (paths[y].arc == NONE && paths[y].before != NONE) y = paths[y].before;
  uint32_t size_x = paths[x].num_words, size_y = paths[y].num_words;
  while (paths[x].num_words > size_y) x = paths[x].before;
  while (paths[y].num_words > size_x) y = paths[y].before;
  if (x == y) return (size_x > size_y) - (size_x < size_y);
  while (paths[x].before != paths[y].before) {
    x = paths[x].before;
    y = paths[y].before;
  }
  return word_of(search, x) < word_of(search, y) ? -1 : 1;
}

static bool goes_first(const void *user, wf__queued a, wf__queued b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  int order = compare_words(user, a.id, b.id);
  return order != 0 ? order < 0 : a.id < b.id;
}

static wf_status put(wf__nbest_search *search, wf__partial_path path, int64_t onward,
                     wf_error *err) {
  if (search->paths.size >= NONE)
    return wf__fail(err, WF_ERR_LIMIT, "n-best: more than 2^32 partial paths; request fewer paths");
  WF__TRY(wf__vec_push(&search->paths, path, "partial paths", err));
  return wf__queue_put(
      &search->queue,
      (wf__queued){wf__exact_total(path.cost) + onward, (uint32_t)search->paths.size - 1},
      goes_first, search, err);
}

static wf_status extend(wf__nbest_search *search, uint32_t id, wf_error *err) {
  const wf__exact_lattice *lattice = &search->lattice;
  wf__partial_path path = search->paths.data[id];
  if (wf__exact_is_final(lattice, path.state)) {
    wf__partial_path ended = {path.cost, id, NONE, path.state, path.num_words};
    WF__TRY(put(search, ended, wf__exact_total(lattice->ends.data[path.state].cost), err));
  }
  for (uint64_t i = lattice->arc_off.data[path.state]; i < lattice->arc_off.data[path.state + 1];
       i++) {
    const wf__exact_arc *arc = &lattice->arcs.data[i];
    if (search->backward[arc->nextstate] == WF__NEVER) continue;
    WF__TRY(put(search,
                (wf__partial_path){wf__exact_sum(path.cost, arc->cost), id, (uint32_t)i,
                                   arc->nextstate, path.num_words + 1},
                search->backward[arc->nextstate], err));
  }
  return WF_OK;
}

static wf_status write_path(wf__nbest_search *search, uint32_t id, wf_nbest *nbest, wf_error *err) {
  const wf__partial_path *paths = search->paths.data;
  search->arcs.size = 0;
  for (uint32_t at = paths[id].before; paths[at].arc != NONE; at = paths[at].before)
    WF__TRY(wf__vec_push(&search->arcs, paths[at].arc, "a path", err));
  WF__TRY(wf__nbest_begin(nbest, err));
  for (uint64_t i = search->arcs.size; i-- > 0;)
    WF__TRY(wf__nbest_extend(nbest, &search->lattice,
                             &search->lattice.arcs.data[search->arcs.data[i]], err));
  return wf__nbest_end(nbest, &search->lattice, paths[id].state, paths[id].cost, err);
}

static wf_status find(wf__nbest_search *search, size_t n, wf_nbest *nbest, wf_error *err) {
  if (wf__exact_num_states(&search->lattice) == 0 || search->backward[0] == WF__NEVER) return WF_OK;
  WF__TRY(put(search, (wf__partial_path){.before = NONE, .arc = NONE}, search->backward[0], err));
  while (search->queue.heap.size > 0 && nbest->entries.size < n) {
    uint32_t id = wf__queue_take(&search->queue, goes_first, search).id;
    const wf__partial_path *path = &search->paths.data[id];
    if (path->arc == NONE && path->before != NONE)
      WF__TRY(write_path(search, id, nbest, err));
    else
      WF__TRY(extend(search, id, err));
  }
  return WF_OK;
}

static int compare_i32(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Do the words ascend from 1 on, as they do after determinization? */
static bool ascending(const wf__exact_arc *arcs, uint64_t count) {
  int32_t before = 0;
  for (uint64_t i = 0; i < count; before = arcs[i++].word)
    if (arcs[i].word <= before) return false;
  return true;
}

static wf_status check_state(wf__nbest_search *search, uint64_t s, wf_error *err) {
  const uint64_t first = search->lattice.arc_off.data[s],
                 count = search->lattice.arc_off.data[s + 1] - first;
  const wf__exact_arc *arcs = search->lattice.arcs.data + first;
  if (ascending(arcs, count)) return WF_OK;
  search->words.size = 0;
  WF__TRY(wf__vec_grow(&search->words, count + 1, "words", err));
  int32_t *words = search->words.data;
  words[0] = 0;
  for (uint64_t i = 0; i < count; i++) words[i + 1] = arcs[i].word;
  qsort(words, count + 1, sizeof *words, compare_i32);
  for (uint64_t i = 1; i <= count; i++)
    if (words[i] == words[i - 1])
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "n-best: the lattice is not deterministic: state %" PRIu64
                      " has %s; determinize it first",
                      s, words[i] == 0 ? "an arc without a word" : "several arcs with one word");
  return WF_OK;
}

wf_status wf__lattice_nbest(wf__nbest_search *search, const wf_compact_lattice_view *lattice,
                            size_t n, wf_nbest **out, wf_error *err) {
  *out = NULL;
  search->paths.size = search->queue.heap.size = 0;
  WF__TRY(wf__exact_take_compact(lattice, &search->lattice, err));
  for (uint64_t s = 0; s < lattice->num_states; s++) WF__TRY(check_state(search, s, err));
  wf_status status = wf__exact_backward(&search->lattice, &search->backward, err);
  if (status == WF_OK) status = wf__nbest_create(out, err);
  if (status == WF_OK) status = find(search, n, *out, err);
  free(search->backward);
  search->backward = NULL;
  if (status != WF_OK) {
    wf_nbest_free(*out);
    *out = NULL;
  }
  return status;
}

void wf__nbest_search_free(wf__nbest_search *search) {
  wf__exact_free(&search->lattice);
  wf__vec_free(&search->paths);
  wf__vec_free(&search->queue.heap);
  wf__vec_free(&search->arcs);
  wf__vec_free(&search->words);
}

uint64_t wf__nbest_search_bytes(const wf__nbest_search *search) {
  return search->lattice.arcs.cap * sizeof *search->lattice.arcs.data +
         search->lattice.labels.cap * sizeof *search->lattice.labels.data +
         search->paths.cap * (sizeof *search->paths.data + sizeof *search->queue.heap.data);
}

wf_status wf_compact_lattice_nbest(const wf_compact_lattice *lattice, size_t n, wf_nbest **out,
                                   wf_error *err) {
  const wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  wf__nbest_search search = {0};
  wf_status status = wf__lattice_nbest(&search, &view, n, out, err);
  wf__nbest_search_free(&search);
  return status;
}
