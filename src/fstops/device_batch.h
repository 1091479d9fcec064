/* device_batch.h - batches of fsts in a GPU's memory: defined in src/cuda/fstops/ops_gpu.c, used by
 * fst_batch.c, which is the same for both devices. */
#ifndef WF_FSTOPS_DEVICE_BATCH_H
#define WF_FSTOPS_DEVICE_BATCH_H

#include "fstops/composer.h"

typedef struct wf__gpu_batch wf__gpu_batch;

/* A composer's results as they lie on its device: arrays of all pairs one behind the other, arc_off
 * of each pair with an end of its own. */
typedef struct wf__composed {
  int device;
  size_t count;
  const uint64_t *state_base, *arc_base; /* [count + 1] in host memory */
  const int64_t *start;                  /* [count] in host memory, of the pair's states; -1 */
  const uint64_t *arc_off;
  const wf_arc *arcs;
  const float *final_cost;
  const wf_arc_origin *origins;  /* or NULL */
  bool trimmed;                  /* known to be */
  const uint64_t *input_base[2]; /* [count + 1] in host memory: where the arcs of each pair's inputs
                                    begin among those of all pairs */
} wf__composed;

enum wf__label_change { WF__INVERT, WF__PROJECT_INPUT, WF__PROJECT_OUTPUT };

/* `semiring`: WF_LOG or WF_TROPICAL of all fsts. Results are on the device of their input. */
wf_status wf__gpu_batch_create(const wf_fst *const *fsts, size_t count, wf_semiring semiring,
                               const char *device, wf__gpu_batch **out, wf_error *err);
/* As many fsts, of the semiring of `beside` and to its device. */
wf_status wf__gpu_batch_create_beside(const wf__gpu_batch *beside, const wf_fst *const *fsts,
                                      wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_of_composed(const wf__composed *from, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_of_composer(const wf__gpu_composer *composer, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err);
void wf__gpu_batch_free(wf__gpu_batch *batch);

wf_status wf__gpu_batch_labels(const wf__gpu_batch *batch, enum wf__label_change change,
                               wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_arcsort(const wf__gpu_batch *batch, bool by_olabel, wf__gpu_batch **out,
                                wf_error *err);
wf_status wf__gpu_batch_connect(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
/* WF_ERR_UNSUPPORTED if there is a cycle of epsilons. */
wf_status wf__gpu_batch_rmepsilon(const wf__gpu_batch *batch, bool connect, wf__gpu_batch **out,
                                  wf_error *err);
/* WF_ERR_UNSUPPORTED: the log semiring, rmepsilon of arcs with epsilon input, outputs more than 255
 * labels behind. WF_ERR_NOT_DETERMINIZABLE without a witness. */
wf_status wf__gpu_batch_determinize(const wf__gpu_batch *batch,
                                    const wf_determinize_options *options, wf__gpu_batch **out,
                                    wf_error *err);
/* WF_ERR_UNSUPPORTED: the CPU must do it, be it to say what is wrong. */
wf_status wf__gpu_batch_minimize(const wf__gpu_batch *batch, const wf_minimize_options *options,
                                 wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_reverse(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_shortest_path(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err);
/* `*out` is for free. */
wf_status wf__gpu_batch_distances(const wf__gpu_batch *batch, bool reverse, double delta,
                                  double **out, uint64_t *out_count, wf_error *err);
wf_status wf__gpu_batch_forward_score(wf__gpu_batch *batch, double delta, bool with_gradients,
                                      double *out_costs, wf_error *err);
/* `*out` is for free. */
wf_status wf__gpu_batch_gradients(const wf__gpu_batch *batch, size_t i, wf_gradients_of of,
                                  double **out, uint64_t *out_count, wf_error *err);
/* The arrays of the i-th, for wf__fst_from_csr. */
wf_status wf__gpu_batch_get(const wf__gpu_batch *batch, size_t i, wf__csr *csr, int64_t *out_start,
                            wf_error *err);
void wf__gpu_batch_view(const wf__gpu_batch *batch, wf_fst_batch_view *view);

#endif
