/* randequivalent.c - wf_randequivalent: draws random paths of both fsts, and compares the costs
 * that both give to the paths' string pairs (pair_cost.c). */
#include <stdio.h>

#include "base/option_tables.h"
#include "fstops/pair_cost.h"
#include "fstops/path_sampler.h"

typedef struct comparer {
  wf__path_sampler sampler[2];
  wf__sampled_path path;
  wf__labels input, output;
  wf__pair_work work;
} comparer;

/* Reads the labels of the drawn path, without epsilons. */
static wf_status read_labels(comparer *c, const wf_fst_view *view, wf_error *err) {
  c->input.size = c->output.size = 0;
  for (uint64_t i = 0; i < c->path.arcs.size; i++) {
    const wf_arc *arc = &view->arcs[c->path.arcs.data[i]];
    if (arc->ilabel != 0) WF__TRY(wf__vec_push(&c->input, arc->ilabel, "labels", err));
    if (arc->olabel != 0) WF__TRY(wf__vec_push(&c->output, arc->olabel, "labels", err));
  }
  return WF_OK;
}

static size_t put_labels(char *text, size_t size, const wf__labels *labels) {
  size_t used = 0;
  text[0] = '\0';
  for (uint64_t i = 0; i < labels->size && used + 20 < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%d", i != 0 ? " " : "", labels->data[i]);
  if (labels->size != 0 && used + 20 >= size)
    used += (size_t)snprintf(text + used, size - used, " ...");
  return used;
}

static wf_status compare_drawn(comparer *c, double delta, bool *same, wf_error *err) {
  double cost[2];
  for (int side = 0; side < 2; side++)
    WF__TRY(
        wf__pair_cost(&c->sampler[side].view, &c->input, &c->output, &c->work, &cost[side], err));
  *same = cost[0] == cost[1] || fabs(cost[0] - cost[1]) <= delta;
  if (*same) return WF_OK;
  char input[300], output[300];
  put_labels(input, sizeof input, &c->input);
  put_labels(output, sizeof output, &c->output);
  return wf__fail(err, WF_OK, "'%s' : '%s' costs %.9g in the first and %.9g in the second", input,
                  output, cost[0], cost[1]);
}

static wf_status run(comparer *c, const wf_fst *a, const wf_fst *b,
                     const wf_randequivalent_options *o, bool *out_equal, wf_error *err) {
  const wf_fst *fst[2] = {a, b};
  for (int side = 0; side < 2; side++)
    WF__TRY(wf__path_sampler_init(&c->sampler[side], fst[side], (uint64_t)o->seed + (uint64_t)side,
                                  (uint32_t)o->max_length, false, err));
  for (int32_t k = 0; k < o->npath; k++) {
    for (int side = 0; side < 2; side++) {
      bool same = true;
      if (!wf__path_sampler_any(&c->sampler[side])) continue;
      WF__TRY(wf__path_sampler_draw(&c->sampler[side], &c->path, err));
      WF__TRY(read_labels(c, &c->sampler[side].view, err));
      WF__TRY(compare_drawn(c, (double)o->delta, &same, err));
      if (!same) return WF_OK;
    }
  }
  *out_equal = true;
  return WF_OK;
}

wf_status wf_randequivalent(const wf_fst *a, const wf_fst *b,
                            const wf_randequivalent_options *options, bool *out_equal,
                            wf_error *err) {
  *out_equal = false;
  wf_randequivalent_options o;
  WF__TRY(wf__options_take(wf__randequivalent_table(), options, &o, err));
  WF__TRY(wf__same_semiring(a, b, err));
  if (o.check_symbols) WF__TRY(wf__same_symbols((const wf_fst *[]){a, b}, 2, err));
  comparer c = {0};
  wf_status status = run(&c, a, b, &o, out_equal, err);
  for (int side = 0; side < 2; side++) wf__path_sampler_free(&c.sampler[side]);
  wf__vec_free(&c.path.arcs);
  wf__vec_free(&c.input);
  wf__vec_free(&c.output);
  wf__pair_work_free(&c.work);
  return status;
}
