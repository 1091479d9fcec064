/* register.c - the tables of what a GPU does for the rest of the library, and their registration
 * (base/device.h) when the program starts or this code is loaded. */
#include "base/device.h"

#include <build_id.h>
#include "cuda/compose/gpu_composer.h"
#include "cuda/compose/sparse_gpu.h"
#include "cuda/decoder/cuda_backend.h"
#include "cuda/generation/bias_gpu.h"
#include "cuda/rnn/rnn_gpu.h"
#include "cuda/transducer/transducer_group.h"

static const struct wf__device_graph graph = {.look = wf__gpu_look_at_graph,
                                              .index_free = wf__gpu_index_free};

static const struct wf__device_fstops fstops = {.create = wf__gpu_batch_create,
                                                .create_beside = wf__gpu_batch_create_beside,
                                                .of_composer = wf__gpu_batch_of_composer,
                                                .free = wf__gpu_batch_free,
                                                .labels = wf__gpu_batch_labels,
                                                .arcsort = wf__gpu_batch_arcsort,
                                                .connect = wf__gpu_batch_connect,
                                                .rmepsilon = wf__gpu_batch_rmepsilon,
                                                .determinize = wf__gpu_batch_determinize,
                                                .minimize = wf__gpu_batch_minimize,
                                                .reverse = wf__gpu_batch_reverse,
                                                .shortest_path = wf__gpu_batch_shortest_path,
                                                .distances = wf__gpu_batch_distances,
                                                .forward_score = wf__gpu_batch_forward_score,
                                                .gradients = wf__gpu_batch_gradients,
                                                .compose = wf__gpu_batch_compose,
                                                .by_discovery = wf__gpu_batch_by_discovery,
                                                .epsilons_last = wf__gpu_batch_epsilons_last,
                                                .expand = wf__gpu_batch_expand,
                                                .clear_labels = wf__gpu_batch_clear_labels,
                                                .add_loops = wf__gpu_batch_add_loops,
                                                .get = wf__gpu_batch_get,
                                                .share = wf__gpu_batch_share,
                                                .view = wf__gpu_batch_view};

static const struct wf__device_compose compose = {.create = wf__gpu_composer_create,
                                                  .run = wf__gpu_composer_run,
                                                  .sides = wf__gpu_compose_sides,
                                                  .view = wf__gpu_composer_view,
                                                  .get = wf__gpu_composer_get,
                                                  .free = wf__gpu_composer_free,
                                                  .levels = wf__gpu_composer_levels};

static const wf__device device = {.build = WF__BUILD,
                                  .search = &wf__cuda_backend,
                                  .graph = &graph,
                                  .fstops = &fstops,
                                  .compose = &compose,
                                  .rnn = &wf__cuda_rnn,
                                  .bias = &wf__cuda_bias,
                                  .transducer = &wf__cuda_transducer};

void wf__cuda_register(void); /* the linker is told to take it from a static library */
__attribute__((constructor)) void wf__cuda_register(void) { wf__device_register(&device); }
