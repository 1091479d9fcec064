/* nbest.h - a list of paths under construction, and its finished form.
 *
 *   words, frames, alignment   of all paths, one after the other
 *   entries                    where each path's parts begin, its costs */
#ifndef WF_LATTICE_NBEST_H
#define WF_LATTICE_NBEST_H

#include "lattice/exact_lattice.h"

typedef struct wf__nbest_entry {
  uint64_t first_word, first_label;
  size_t num_words, num_labels;
  double graph_cost, acoustic_cost, old_lm_cost, new_lm_cost;
} wf__nbest_entry;

struct wf_nbest {
  WF__VEC(wf__nbest_entry) entries;
  WF__VEC(int32_t) words;
  WF__VEC(int32_t) frames;
  WF__VEC(int32_t) alignment;
};

wf_status wf__nbest_create(wf_nbest **out, wf_error *err);
/* Begins a path; then wf__nbest_extend for each of its arcs, then wf__nbest_end. */
wf_status wf__nbest_begin(wf_nbest *nbest, wf_error *err);
wf_status wf__nbest_extend(wf_nbest *nbest, const wf__exact_lattice *lattice,
                           const wf__exact_arc *arc, wf_error *err);
wf_status wf__nbest_end(wf_nbest *nbest, const wf__exact_lattice *lattice, uint64_t state,
                        wf__exact_cost cost, wf_error *err);

#endif
