/* nbest.h - a list of paths under construction, and its finished form.
 *
 *   words, frames, alignment   of all paths, one after the other
 *   entries                    where each path's parts begin, its costs */
#ifndef WF_LATTICE_NBEST_H
#define WF_LATTICE_NBEST_H

#include "lattice/best_first.h"
#include "lattice/exact_lattice.h"

typedef struct wf__nbest_entry {
  uint64_t first_word, first_label;
  size_t num_words, num_labels;
  double graph_cost, acoustic_cost;
} wf__nbest_entry;

struct wf_nbest {
  WF__VEC(wf__nbest_entry) entries;
  WF__VEC(int32_t) words;
  WF__VEC(int32_t) frames;
  WF__VEC(int32_t) alignment;
};

typedef struct wf__partial_path {
  wf__exact_cost cost;
  uint32_t before, arc; /* `before`: the path without its last arc; UINT32_MAX: this is the empty
                           path. `arc` UINT32_MAX: `before` with its final cost */
  uint32_t state, num_words;
} wf__partial_path;

/* The search of one lattice after the other with the same memory. */
typedef struct wf__nbest_search {
  wf__exact_lattice lattice;
  int64_t *backward;
  WF__VEC(wf__partial_path) paths;
  wf__queue queue;
  WF__VEC(uint32_t) arcs; /* arcs of the path being written */
  WF__VEC(int32_t) words; /* of the arcs of one state */
} wf__nbest_search;

/* wf_compact_lattice_nbest. Zero-initialise the search at first. */
wf_status wf__lattice_nbest(wf__nbest_search *search, const wf_compact_lattice_view *lattice,
                            size_t n, wf_nbest **out, wf_error *err);
void wf__nbest_search_free(wf__nbest_search *search);
/* Approximate memory in use. */
uint64_t wf__nbest_search_bytes(const wf__nbest_search *search);

wf_status wf__nbest_create(wf_nbest **out, wf_error *err);
/* Begins a path; then wf__nbest_extend for each of its arcs, then wf__nbest_end. */
wf_status wf__nbest_begin(wf_nbest *nbest, wf_error *err);
wf_status wf__nbest_extend(wf_nbest *nbest, const wf__exact_lattice *lattice,
                           const wf__exact_arc *arc, wf_error *err);
wf_status wf__nbest_end(wf_nbest *nbest, const wf__exact_lattice *lattice, uint64_t state,
                        wf__exact_cost cost, wf_error *err);

#endif
