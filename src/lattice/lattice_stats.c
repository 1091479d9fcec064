/* lattice_stats.c - sizes of a compact lattice. */
#include <math.h>
#include <string.h>

#include "base/config.h"
#include "lattice/in_arcs.h"

/* ln of the number of paths: the sum over paths of cost 0. */
static double count_paths(const wf__in_arcs *in, double *log_counts) {
  for (uint64_t n = 0; n < in->num_states; n++) {
    double most = n == 0 ? 0 : -INFINITY, sum = n == 0;
    for (uint64_t a = in->in_off[n]; a < in->in_off[n + 1]; a++)
      most = fmax(most, log_counts[in->arcs[a].source]);
    for (uint64_t a = in->in_off[n]; a < in->in_off[n + 1]; a++)
      sum += exp(log_counts[in->arcs[a].source] - most);
    log_counts[n] = most > -INFINITY ? most + log(sum) : -INFINITY;
  }
  return log_counts[in->num_states - 1];
}

/* Counts the frames of the longest path, and sums the frames that arcs span. */
static void count_frames(const wf_compact_lattice_view *view, wf_lattice_stats *stats) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    const wf_compact_weight *final = &view->finals[s];
    if (final->graph_cost < INFINITY) {
      stats->num_final++;
      stats->num_labels += final->num_labels;
      int64_t frames = (int64_t)view->frames[s] + final->num_labels;
      if (view->frames[s] >= 0 && frames > stats->num_frames) stats->num_frames = frames;
    }
    for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
      stats->num_word_arcs += view->arcs[a].word != 0;
      stats->num_labels += view->arcs[a].weight.num_labels;
    }
  }
}

wf_status wf_compact_lattice_get_stats(const wf_compact_lattice *lattice, wf_lattice_stats *out,
                                       wf_error *err) {
  wf_lattice_stats stats = {.best_cost = INFINITY, .total_cost = INFINITY, .log_paths = -INFINITY};
  WF__TRY(wf__struct_check("wf_lattice_stats", out, sizeof *out, err));
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  wf__in_arcs in = {0};
  WF__TRY(wf__in_arcs_make(&view, 1, &in, err));
  stats.num_states = view.num_states;
  stats.num_arcs = view.num_arcs;
  count_frames(&view, &stats);
  stats.depth = stats.num_frames > 0 ? (double)stats.num_labels / (double)stats.num_frames : 0;
  wf_status status = WF_OK;
  if (in.num_states > 0) {
    stats.best_cost = in.best[in.num_states - 1];
    stats.total_cost = in.total;
    double *log_counts = wf__alloc(in.num_states, sizeof *log_counts);
    if (log_counts != NULL)
      stats.log_paths = count_paths(&in, log_counts);
    else
      status = wf__fail_memory(err, in.num_states * sizeof *log_counts, "counting paths");
    free(log_counts);
  }
  wf__in_arcs_free(&in);
  if (status == WF_OK) wf__struct_give(&stats, sizeof stats, out);
  return status;
}
