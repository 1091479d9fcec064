/* device_ops.h - the functions of wf__device_fstops and wf__device_graph, which say what they do, and
 * batches of compositions. */
#ifndef WF_CUDA_FSTOPS_DEVICE_OPS_H
#define WF_CUDA_FSTOPS_DEVICE_OPS_H

#include "fstops/device_batch.h"
#include "search/graph_device.h"

/* A composer's results in the memory of its device. The arrays of all pairs are concatenated; in
 * arc_off, each pair has its own end offset. */
typedef struct wf__composed {
  int device;
  size_t count;
  const uint64_t *state_base, *arc_base; /* [count + 1] in host memory */
  /* [count] in host memory: the start state of each pair, or -1 */
  const int64_t *start;
  const uint64_t *arc_off;
  const wf_arc *arcs;
  const float *final_cost;
  const wf_arc_origin *origins; /* NULL if not requested */
  bool trimmed;                 /* are the results known to be trimmed? */
  /* [count + 1] in host memory: where the arcs of each pair's input begin, among the arcs of the
   * inputs of all pairs */
  const uint64_t *input_base[2];
} wf__composed;

wf_status wf__gpu_batch_create(const wf_fst *const *fsts, size_t count, wf_semiring semiring,
                               const char *device, wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_create_beside(const wf__gpu_batch *beside, const wf_fst *const *fsts,
                                      wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_of_composed(const wf__composed *from, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err);
void wf__gpu_batch_free(wf__gpu_batch *batch);
wf_status wf__gpu_batch_labels(const wf__gpu_batch *batch, enum wf__label_change change,
                               wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_arcsort(const wf__gpu_batch *batch, bool by_olabel, wf__gpu_batch **out,
                                wf_error *err);
wf_status wf__gpu_batch_connect(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_rmepsilon(const wf__gpu_batch *batch, bool connect, wf__gpu_batch **out,
                                  wf_error *err);
wf_status wf__gpu_batch_determinize(const wf__gpu_batch *batch,
                                    const wf_determinize_options *options, wf__gpu_batch **out,
                                    wf_error *err);
wf_status wf__gpu_batch_minimize(const wf__gpu_batch *batch, const wf_minimize_options *options,
                                 wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_reverse(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_shortest_path(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err);
wf_status wf__gpu_batch_distances(const wf__gpu_batch *batch, bool reverse, double delta,
                                  float **out, wf_error *err);
wf_status wf__gpu_batch_forward_score(wf__gpu_batch *batch, double delta, bool with_gradients,
                                      double *out_costs, wf_error *err);
wf_status wf__gpu_batch_gradients(const wf__gpu_batch *batch, size_t i, wf_gradients_of of,
                                  double **out, uint64_t *out_count, wf_error *err);
wf_status wf__gpu_batch_by_discovery(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                     wf_error *err);
wf_status wf__gpu_batch_epsilons_last(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err);
wf_status wf__gpu_batch_expand(const wf__gpu_batch *lg, const wf__window_rule *rule,
                               wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_clear_labels(const wf__gpu_batch *batch, int32_t first, wf__gpu_batch **out,
                                     wf_error *err);
wf_status wf__gpu_batch_add_loops(const wf__gpu_batch *batch, const wf__loop_table *table,
                                  wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_get(const wf__gpu_batch *batch, size_t i, wf__csr *csr, int64_t *out_start,
                            wf_error *err);
wf_status wf__gpu_batch_share(const wf__gpu_batch *batch, wf_fst **out, wf_error *err);
void wf__gpu_batch_view(const wf__gpu_batch *batch, wf_fst_batch_view *view);

wf_status wf__gpu_look_at_graph(const wf_fst_view *view, int device, wf__graph_facts *out,
                                wf__state_index **out_index, wf_error *err);
void wf__gpu_index_free(wf__state_index *index);

#endif
