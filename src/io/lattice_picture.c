/* lattice_picture.c - computes the positions of states in a picture of a lattice. */
#include "io/lattice_picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lattice/in_arcs.h"

void wf__picture_free(wf__picture *picture) {
  free(picture->places);
  free(picture->lanes);
  free(picture->state_is_best);
  free(picture->arc_is_best);
  free(picture->posteriors);
}

const char *wf__picture_word(const wf__picture *picture, int32_t word, char scratch[16]) {
  if (word == 0) return NULL;
  const char *text = picture->words != NULL ? wf_symbols_text(picture->words, word) : NULL;
  if (text != NULL) return text;
  snprintf(scratch, 16, "%d", word);
  return scratch;
}

static void place_states(wf__picture *p) {
  const wf_compact_lattice_view *view = &p->view;
  p->timed = true;
  for (uint64_t s = 0; s < view->num_states; s++) {
    p->timed = p->timed && view->frames[s] >= 0;
    p->places[s] = 0;
  }
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (p->timed) p->places[s] = view->frames[s];
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1] && !p->timed; a++) {
      int64_t *next = &p->places[view->arcs[a].nextstate];
      if (p->places[s] + 1 > *next) *next = p->places[s] + 1;
    }
    if (p->places[s] > p->last) p->last = p->places[s];
  }
}

static wf_status mark_best(wf__picture *p, const wf__in_arcs *in, wf_error *err) {
  uint64_t *path = wf__alloc(in->num_states, sizeof *path);
  if (path == NULL) return wf__fail_memory(err, in->num_states * sizeof *path, "a picture");
  uint64_t count = wf__in_arcs_best_path(in, path);
  p->best_cost = in->num_states > 0 ? in->best[in->num_states - 1] : INFINITY;
  for (uint64_t i = 0; i < count; i++) {
    const wf__in_arc *arc = &in->arcs[path[i]];
    p->state_is_best[arc->source] = true;
    if (arc->arc != UINT64_MAX) p->arc_is_best[arc->arc] = true;
  }
  free(path);
  return WF_OK;
}

/* Maps lanes 0, 1, -1, 2, -2, ... to 0, 1, 2, 3, 4, ... */
static uint64_t index_of_lane(int32_t lane) {
  return lane > 0 ? (uint64_t)lane * 2 - 1 : (uint64_t)(-(int64_t)lane) * 2;
}

/* The free lane nearest to `wanted`, except lane 0, which is for the best path. `taken`
 * [num_states * 2 + 3] has the last occupied place of each lane, by index_of_lane; -1: none. */
static int32_t free_lane(const int64_t *taken, int32_t wanted, int64_t place) {
  for (int32_t distance = 0;; distance++)
    for (int sign = 1; sign >= -1; sign -= 2) {
      int32_t lane = wanted + sign * distance;
      if (lane != 0 && taken[index_of_lane(lane)] < place) return lane;
    }
}

static wf_status choose_lanes(wf__picture *p, const wf__in_arcs *in, wf_error *err) {
  uint64_t num_states = p->view.num_states, num_lanes = num_states * 2 + 3;
  int64_t *taken = wf__alloc(num_lanes, sizeof *taken);
  if (taken == NULL) return wf__fail_memory(err, num_lanes * sizeof *taken, "a picture");
  for (uint64_t i = 0; i < num_lanes; i++) taken[i] = -1;
  for (uint64_t s = 0; s < num_states; s++) {
    int32_t wanted = 0;
    double most = -1;
    p->lanes[s] = 0;
    if (p->state_is_best[s]) continue;
    for (uint64_t a = in->in_off[s]; a < in->in_off[s + 1]; a++) {
      const wf__in_arc *arc = &in->arcs[a];
      if (p->posteriors[arc->arc] <= most) continue;
      most = p->posteriors[arc->arc];
      wanted = p->lanes[arc->source];
    }
    p->lanes[s] = free_lane(taken, wanted, p->places[s]);
    taken[index_of_lane(p->lanes[s])] = p->places[s];
    if (p->lanes[s] < p->lowest) p->lowest = p->lanes[s];
    if (p->lanes[s] > p->highest) p->highest = p->lanes[s];
  }
  free(taken);
  return WF_OK;
}

wf_status wf__picture_make(const wf_compact_lattice *lattice, wf__picture *out, wf_error *err) {
  *out = (wf__picture){.view = wf_compact_lattice_get_view(lattice)};
  uint64_t num_states = out->view.num_states, num_arcs = out->view.num_arcs;
  wf__in_arcs in = {0};
  WF__TRY(wf__in_arcs_make(&out->view, 1, &in, err));
  out->places = wf__alloc(num_states, sizeof *out->places);
  out->lanes = wf__alloc(num_states, sizeof *out->lanes);
  out->state_is_best = wf__calloc(num_states, sizeof *out->state_is_best);
  out->arc_is_best = wf__calloc(num_arcs, sizeof *out->arc_is_best);
  out->posteriors = wf__calloc(num_arcs, sizeof *out->posteriors);
  wf_status status = WF_OK;
  if (out->places == NULL || out->lanes == NULL || out->state_is_best == NULL ||
      out->arc_is_best == NULL || out->posteriors == NULL)
    status = wf__fail_memory(err, num_arcs * sizeof *out->posteriors, "a picture");
  if (status == WF_OK)
    status = wf_compact_lattice_posteriors(lattice, out->posteriors, NULL, NULL, err);
  if (status == WF_OK) {
    place_states(out);
    status = mark_best(out, &in, err);
  }
  if (status == WF_OK && num_states > 0) status = choose_lanes(out, &in, err);
  wf__in_arcs_free(&in);
  if (status != WF_OK) wf__picture_free(out);
  return status;
}
