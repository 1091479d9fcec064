/* in_arcs.c - sorts arcs by target, and computes forward and backward sums. */
#include "lattice/in_arcs.h"

#include "math/cost.h"

void wf__in_arcs_free(wf__in_arcs *in) {
  wf__vec_free(&in->memory);
  *in = (wf__in_arcs){0};
}

static bool is_final(const wf_compact_lattice_view *lattice, uint64_t s) {
  return lattice->finals[s].graph_cost < INFINITY;
}

static double cost_of(const wf_compact_weight *weight) {
  return (double)weight->graph_cost + (double)weight->acoustic_cost;
}

/* Counting sort by target; arcs of one target stay in order. */
static void sort_arcs(const wf_compact_lattice_view *lattice, wf__in_arcs *in) {
  uint64_t n = lattice->num_states;
  for (uint64_t s = 0; s <= in->num_states; s++) in->in_off[s] = 0;
  for (uint64_t a = 0; a < lattice->num_arcs; a++) in->in_off[lattice->arcs[a].nextstate + 1]++;
  for (uint64_t s = 0; s < n; s++) in->in_off[n + 1] += is_final(lattice, s);
  for (uint64_t s = 0; s < in->num_states; s++) in->in_off[s + 1] += in->in_off[s];
  for (uint64_t s = 0; s < n; s++) {
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_compact_arc *arc = &lattice->arcs[a];
      in->arcs[in->in_off[arc->nextstate]++] =
          (wf__in_arc){(uint32_t)s, arc->word, a, cost_of(&arc->weight)};
    }
    if (is_final(lattice, s))
      in->arcs[in->in_off[n]++] =
          (wf__in_arc){(uint32_t)s, 0, UINT64_MAX, cost_of(&lattice->finals[s])};
  }
  for (uint64_t s = in->num_states; s > 0; s--)
    in->in_off[s] = in->in_off[s - 1]; /* each offset had advanced to its end */
  in->in_off[0] = 0;
}

static void sum_paths(wf__in_arcs *in) {
  for (uint64_t n = 0; n < in->num_states; n++) {
    double forward = n == 0 ? 0 : INFINITY, best = forward;
    for (uint64_t a = in->in_off[n]; a < in->in_off[n + 1]; a++) {
      const wf__in_arc *arc = &in->arcs[a];
      forward = wf__log_add(forward, in->forward[arc->source] + in->scale * arc->cost);
      if (in->best[arc->source] + arc->cost < best) best = in->best[arc->source] + arc->cost;
    }
    in->forward[n] = forward;
    in->best[n] = best;
  }
}

void wf__in_arcs_sum_backward(wf__in_arcs *in) {
  for (uint64_t n = 0; n < in->num_states; n++)
    in->backward[n] = n + 1 == in->num_states ? 0 : INFINITY;
  for (uint64_t n = in->num_states; n-- > 0;)
    for (uint64_t a = in->in_off[n]; a < in->in_off[n + 1]; a++) {
      const wf__in_arc *arc = &in->arcs[a];
      in->backward[arc->source] =
          wf__log_add(in->backward[arc->source], in->backward[n] + in->scale * arc->cost);
    }
}

wf_status wf__in_arcs_make(const wf_compact_lattice_view *lattice, double scale, wf__in_arcs *out,
                           wf_error *err) {
  uint64_t num_finals = 0, n = lattice->num_states;
  for (uint64_t s = 0; s < n; s++) num_finals += is_final(lattice, s);
  const uint64_t arc_words =
      ((lattice->num_arcs + num_finals) * sizeof *out->arcs + 7) / sizeof *out->memory.data;
  out->num_states = 0;
  out->scale = scale;
  out->total = INFINITY;
  out->memory.size = 0;
  WF__TRY(wf__vec_grow(&out->memory, arc_words + 4 * (n + 2), "sums over a lattice", err));
  out->arcs = (wf__in_arc *)out->memory.data;
  out->in_off = out->memory.data + arc_words;
  out->forward = (double *)(out->in_off + n + 2);
  out->backward = out->forward + n + 2;
  out->best = out->backward + n + 2;
  out->in_off[0] = 0;
  if (n == 0) return WF_OK; /* the end, which no arc leads to */
  out->num_states = n + 1;
  sort_arcs(lattice, out);
  sum_paths(out);
  out->total = out->forward[n];
  return WF_OK;
}

uint64_t wf__in_arcs_best_path(const wf__in_arcs *in, uint64_t *arcs) {
  uint64_t count = 0;
  if (in->total == INFINITY) return 0;
  for (uint64_t n = in->num_states - 1; n != 0;) {
    uint64_t a = in->in_off[n];
    while (in->best[in->arcs[a].source] + in->arcs[a].cost != in->best[n]) a++;
    arcs[count++] = a;
    n = in->arcs[a].source;
  }
  for (uint64_t i = 0; i < count / 2; i++) {
    uint64_t swap = arcs[i];
    arcs[i] = arcs[count - 1 - i];
    arcs[count - 1 - i] = swap;
  }
  return count;
}

double wf__in_arcs_posterior(const wf__in_arcs *in, const wf__in_arc *arc, uint64_t target) {
  double cost = in->forward[arc->source] + in->scale * arc->cost + in->backward[target];
  return cost < INFINITY ? exp(in->total - cost) : 0;
}
