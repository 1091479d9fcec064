/* transducer_shared.c - opening and closing what the searches share, and the table of operations. */
#include "search/transducer/transducer_shared.h"

#include <stdlib.h>

static void close_setup(wf__search_setup *setup) {
  wf__transducer_shared *shared = setup->shared;
  if (shared == NULL) return;
  wf__gpu_answers_close(shared);
  wf__transducer_arcs_free(&shared->arcs);
  wf__prediction_work_free(&shared->work);
  wf__vec_free(&shared->asked);
  wf_transducer_free(shared->model);
  free(shared);
  setup->shared = NULL;
}

static wf_status open_setup(const wf_transducer *model, wf__search_setup *setup, wf_error *err) {
  wf__transducer_shared *shared = wf__calloc(1, sizeof *shared);
  setup->num_columns = model->encoder_size;
  if (shared == NULL) return wf__fail_memory(err, sizeof *shared, "a decoder");
  setup->shared = shared;
  shared->model = wf_transducer_ref(model);
  shared->options = setup->options;
  wf_status status = wf__gpu_answers_open(shared, err);
  if (status == WF_OK)
    status = wf__transducer_look_at_arcs(setup->graph, model, setup->options.word_score,
                                         &shared->arcs, err);
  if (status == WF_OK) status = wf__device_search_open(shared, setup->graph, err);
  if (status != WF_OK) {
    close_setup(setup);
    return status;
  }
  setup->on_device = shared->num_gpus > 0;
  setup->on_one_thread = model->network == NULL;
  if (setup->on_device)
    setup->answers = &wf__gpu_answers;
  else if (setup->on_one_thread)
    setup->answers = &wf__function_answers;
  return WF_OK;
}

static wf_status set_stream(void *opaque, void *stream, wf_error *err) {
  wf__transducer_shared *shared = opaque;
  if (shared->num_gpus > 1)
    return wf__fail(err, WF_ERR_ARGUMENT, "a stream belongs to one GPU, this decoder has several");
  shared->stream = stream;
  return WF_OK;
}

static void stats(const void *shared, wf_transducer_stats *out) {
  *out = ((const wf__transducer_shared *)shared)->stats;
}

const wf__searcher_ops wf__transducer_searcher = {
    .open = open_setup,
    .close = close_setup,
    .create = wf__transducer_search_create,
    .free = wf__transducer_search_free,
    .begin = wf__transducer_search_begin,
    .feed = wf__transducer_search_feed,
    .go_on = wf__transducer_search_go_on,
    .go_to_end = wf__transducer_search_go_to_end,
    .answer_model = wf__transducer_answer_model,
    .finish = wf__transducer_search_finish,
    .lattice = wf__transducer_lattice_make,
    .find_live = wf__transducer_find_live,
    .owns_search = true,
    .open_stream = wf__transducer_stream_open,
    .close_stream = wf__transducer_stream_close,
    .reset = wf__transducer_stream_reset,
    .bytes = wf__transducer_stream_bytes,
    .set_scorer = wf__transducer_stream_set_scorer,
    .enter = wf__transducer_stream_enter,
    .leave = wf__transducer_stream_leave,
    .collect = wf__transducer_stream_collect,
    .take_committed = wf__transducer_stream_take_committed,
    .partial = wf__transducer_search_partial,
    .partial_lattice = wf__transducer_partial_lattice,
    .replace_scorer = wf__transducer_replace_scorer,
    .scorer_for = wf__scorer_for_transducer,
    .set_stream = set_stream,
    .stats = stats};
