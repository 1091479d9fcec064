/* device_batch.h - operations on batches of fsts in a GPU's memory: what fst_batch.c and the steps
 * of graph building ask of a device. */
#ifndef WF_FSTOPS_DEVICE_BATCH_H
#define WF_FSTOPS_DEVICE_BATCH_H

#include "base/device.h"
#include "fstops/composer.h"

typedef struct wf__gpu_batch wf__gpu_batch;

enum wf__label_change { WF__INVERT, WF__PROJECT_INPUT, WF__PROJECT_OUTPUT };

/* How phones become HMM types, for `expand`. A window is packed: each phone takes
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

/* The self-loops of input labels 0 .. num_labels, as wf__hmm_add_loops adds them. */
typedef struct wf__loop_table {
  uint64_t num_labels;
  int32_t *loop;                   /* [num_labels + 1] the label of the self-loop; 0: none */
  float *loop_cost, *forward_cost; /* [num_labels + 1], one array; by the label of the self-loop */
} wf__loop_table;

struct wf__device_fstops {
  /* `semiring` is that of all fsts. The result of an operation is on the device of its input. */
  wf_status (*create)(const wf_fst *const *fsts, size_t count, wf_semiring semiring,
                      const char *device, wf__gpu_batch **out, wf_error *err);
  /* Makes a batch with as many fsts as `beside`, with its semiring and on its device. */
  wf_status (*create_beside)(const wf__gpu_batch *beside, const wf_fst *const *fsts,
                             wf__gpu_batch **out, wf_error *err);
  wf_status (*of_composer)(const wf__gpu_composer *composer, wf_semiring semiring,
                           wf__gpu_batch **out, wf_error *err);
  void (*free)(wf__gpu_batch *batch);

  wf_status (*labels)(const wf__gpu_batch *batch, enum wf__label_change change, wf__gpu_batch **out,
                      wf_error *err);
  wf_status (*arcsort)(const wf__gpu_batch *batch, bool by_olabel, wf__gpu_batch **out,
                       wf_error *err);
  wf_status (*connect)(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
  /* Returns WF_ERR_UNSUPPORTED if there is a cycle of arcs with both labels epsilon. */
  wf_status (*rmepsilon)(const wf__gpu_batch *batch, bool connect, wf__gpu_batch **out,
                         wf_error *err);
  /* Returns WF_ERR_UNSUPPORTED for the log semiring, for rmepsilon if there are arcs with input
   * epsilon, and if outputs are more than 255 labels behind. WF_ERR_NOT_DETERMINIZABLE comes without
   * an input string as evidence. */
  wf_status (*determinize)(const wf__gpu_batch *batch, const wf_determinize_options *options,
                           wf__gpu_batch **out, wf_error *err);
  /* Returns WF_ERR_UNSUPPORTED if the CPU must minimize the batch, or report what is wrong with it.
   */
  wf_status (*minimize)(const wf__gpu_batch *batch, const wf_minimize_options *options,
                        wf__gpu_batch **out, wf_error *err);
  wf_status (*reverse)(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
  wf_status (*shortest_path)(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
  /* The caller frees `*out` with free(). */
  wf_status (*distances)(const wf__gpu_batch *batch, bool reverse, double delta, float **out,
                         wf_error *err);
  wf_status (*forward_score)(wf__gpu_batch *batch, double delta, bool with_gradients,
                             double *out_costs, wf_error *err);
  /* The caller frees `*out` with free(). */
  wf_status (*gradients)(const wf__gpu_batch *batch, size_t i, wf_gradients_of of, double **out,
                         uint64_t *out_count, wf_error *err);
  /* --- steps of graph building, for batches of one fst. Results are those of the CPU's functions,
   * with the same numbers of states ---------------------------------------------------------- */

  /* Composes a, in host memory, with the only fst of b, in canonical order. The options must have
   * been checked. */
  wf_status (*compose)(const wf_fst *a, const wf__gpu_batch *b, const wf_compose_options *o,
                       wf__gpu_batch **out, wf_error *err);
  /* Numbers the states of a trimmed fst in the order in which a search from the start finds them,
   * which is OpenFst's order for a composition. */
  wf_status (*by_discovery)(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
  /* Like wf_epsilons_last. */
  wf_status (*epsilons_last)(const wf__gpu_batch *batch, wf__gpu_batch **out, wf_error *err);
  /* Like wf__hmm_expand. Returns WF_ERR_UNSUPPORTED also if a label is out of range. */
  wf_status (*expand)(const wf__gpu_batch *lg, const wf__window_rule *rule, wf__gpu_batch **out,
                      wf_error *err);
  /* Replaces all input labels from `first` on by epsilon. */
  wf_status (*clear_labels)(const wf__gpu_batch *batch, int32_t first, wf__gpu_batch **out,
                            wf_error *err);
  /* Returns WF_ERR_UNSUPPORTED if a label is out of range. The result is trimmed. */
  wf_status (*add_loops)(const wf__gpu_batch *batch, const wf__loop_table *table,
                         wf__gpu_batch **out, wf_error *err);

  /* Copies the arrays of the i-th fst, for wf__fst_from_csr. */
  wf_status (*get)(const wf__gpu_batch *batch, size_t i, wf__csr *csr, int64_t *out_start,
                   wf_error *err);
  /* Makes an fst of the only one of the batch, without symbols, whose arrays stay in the GPU's memory
   * (wf__fst_device). Returns WF_ERR_UNSUPPORTED if the host could not read them there. */
  wf_status (*share)(const wf__gpu_batch *batch, wf_fst **out, wf_error *err);
  void (*view)(const wf__gpu_batch *batch, wf_fst_batch_view *view);
};

/* The operations of the device that batches are on. */
static inline const struct wf__device_fstops *wf__gpu_fstops(void) {
  return wf__device_found()->fstops;
}

#endif
