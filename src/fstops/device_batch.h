/* device_batch.h - operations on batches of fsts in a GPU's memory. src/cuda/fstops/ops_gpu.c
 * implements them; fst_batch.c calls them for batches on a GPU. */
#ifndef WF_FSTOPS_DEVICE_BATCH_H
#define WF_FSTOPS_DEVICE_BATCH_H

#include "fstops/composer.h"

typedef struct wf__gpu_batch wf__gpu_batch;

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

enum wf__label_change { WF__INVERT, WF__PROJECT_INPUT, WF__PROJECT_OUTPUT };

/* `semiring` is that of all fsts. The result of an operation is on the device of its input. */
wf_status wf__gpu_batch_create(const wf_fst *const *fsts, size_t count, wf_semiring semiring,
                               const char *device, wf__gpu_batch **out, wf_error *err);
/* Makes a batch with as many fsts as `beside`, with its semiring and on its device. */
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
/* Returns WF_ERR_UNSUPPORTED if there is a cycle of arcs with both labels epsilon. */
wf_status wf__gpu_batch_rmepsilon(const wf__gpu_batch *batch, bool connect, wf__gpu_batch **out,
                                  wf_error *err);
/* Returns WF_ERR_UNSUPPORTED for the log semiring, for rmepsilon if there are arcs with input
 * epsilon, and if outputs are more than 255 labels behind. WF_ERR_NOT_DETERMINIZABLE comes without
 * an input string as evidence. */
wf_status wf__gpu_batch_determinize(const wf__gpu_batch *batch,
                                    const wf_determinize_options *options, wf__gpu_batch **out,
                                    wf_error *err);
/* Returns WF_ERR_UNSUPPORTED if the CPU must minimize the batch, or report what is wrong with it.
 */
wf_status wf__gpu_batch_minimize(const wf__gpu_batch *batch, const wf_minimize_options *options,
                                 wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_reverse(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
wf_status wf__gpu_batch_shortest_path(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err);
/* The caller frees `*out` with free(). */
wf_status wf__gpu_batch_distances(const wf__gpu_batch *batch, bool reverse, double delta,
                                  double **out, uint64_t *out_count, wf_error *err);
wf_status wf__gpu_batch_forward_score(wf__gpu_batch *batch, double delta, bool with_gradients,
                                      double *out_costs, wf_error *err);
/* The caller frees `*out` with free(). */
wf_status wf__gpu_batch_gradients(const wf__gpu_batch *batch, size_t i, wf_gradients_of of,
                                  double **out, uint64_t *out_count, wf_error *err);
/* --- steps of graph building, for batches of one fst. Results are those of the CPU's functions,
 * with the same numbers of states ---------------------------------------------------------- */

/* Composes a, in host memory, with the only fst of b, in canonical order. The options must have
 * been checked. */
wf_status wf__gpu_batch_compose(const wf_fst *a, const wf__gpu_batch *b,
                                const wf_compose_options *o, wf__gpu_batch **out, wf_error *err);
/* Numbers the states of a trimmed fst in the order in which a search from the start finds them,
 * which is OpenFst's order for a composition. */
wf_status wf__gpu_batch_by_discovery(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                     wf_error *err);
/* Like wf_epsilons_last. */
wf_status wf__gpu_batch_epsilons_last(const wf__gpu_batch *batch, wf__gpu_batch **out,
                                      wf_error *err);
/* How phones become HMM types, for wf__gpu_batch_expand. A window is packed: each phone takes
 * `bits`, the last one the lowest. */
typedef struct wf__window_rule {
  int32_t width, central, bits, num_phones, num_disambig;
  const int32_t *context_of; /* [num_phones + 1], like the next as in wf_hmm */
  const bool *context_free;
  uint64_t max_states;
  bool connect;
  /* Sets the types of new windows; 0: arcs with the window are dropped. Windows come in the order
   * in which the CPU finds them. */
  wf_status (*find_types)(void *user, const uint64_t *windows, uint64_t count, int32_t *types,
                          wf_error *err);
  int32_t (*num_types)(void *user); /* once all windows have types */
  void *user;
} wf__window_rule;
/* Like wf__hmm_expand. Returns WF_ERR_UNSUPPORTED also if a label is out of range. */
wf_status wf__gpu_batch_expand(const wf__gpu_batch *lg, const wf__window_rule *rule,
                               wf__gpu_batch **out, wf_error *err);
/* Replaces all input labels from `first` on by epsilon. */
wf_status wf__gpu_batch_clear_labels(const wf__gpu_batch *batch, int32_t first, wf__gpu_batch **out,
                                     wf_error *err);
/* The self-loops of input labels 0 .. num_labels, as wf__hmm_add_loops adds them. */
typedef struct wf__loop_table {
  uint64_t num_labels;
  int32_t *loop;                   /* [num_labels + 1] the label of the self-loop; 0: none */
  float *loop_cost, *forward_cost; /* [num_labels + 1], one array; by the label of the self-loop */
} wf__loop_table;
/* Returns WF_ERR_UNSUPPORTED if a label is out of range. The result is trimmed. */
wf_status wf__gpu_batch_add_loops(const wf__gpu_batch *batch, const wf__loop_table *table,
                                  wf__gpu_batch **out, wf_error *err);

/* Copies the arrays of the i-th fst, for wf__fst_from_csr. */
wf_status wf__gpu_batch_get(const wf__gpu_batch *batch, size_t i, wf__csr *csr, int64_t *out_start,
                            wf_error *err);
/* Makes an fst of the only one of the batch, without symbols, whose arrays stay in the GPU's memory
 * (wf__fst_device). Returns WF_ERR_UNSUPPORTED if the host could not read them there. */
wf_status wf__gpu_batch_share(const wf__gpu_batch *batch, wf_fst **out, wf_error *err);
void wf__gpu_batch_view(const wf__gpu_batch *batch, wf_fst_batch_view *view);

#endif
