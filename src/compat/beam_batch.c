/* beam_batch.c - beam searches for many utterances, in parallel. */
#include <string.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "compat/beam.h"
#include "decode/host_scores.h"

typedef struct batch {
  const wf_beam_searcher *searcher;
  const wf_beam_input *inputs;
  const wf_beam_options *options;
  wf_beam_result **results;
} batch;

static wf_status search(const batch *b, uint64_t item, wf_error *err) {
  wf_beam_search *search;
  WF__TRY(wf_beam_search_create(b->searcher, &b->inputs[item], b->options, &search, err));
  wf_status status = wf_beam_search_advance(search, &b->inputs[item].scores, err);
  if (status == WF_OK) status = wf_beam_search_finish(search, err);
  if (status == WF_OK) status = wf__beam_write_result(search, -1, b->results[item], err);
  wf_beam_search_free(search);
  return status;
}

static void search_item(void *user, uint64_t item, int worker) {
  (void)worker;
  const batch *b = user;
  wf_beam_result *out = b->results[item];
  wf_error err = {0};
  out->status = search(b, item, &err);
  if (out->status == WF_OK) return;
  wf__beam_free_paths(out);
  wf__utterance_message(out->message, sizeof out->message, NULL, item, err.message);
}

wf_status wf_beam_decode(const wf_beam_searcher *searcher, const wf_beam_input *inputs,
                         size_t count, const wf_beam_options *options, wf_beam_result **results,
                         wf_error *err) {
  wf__error_clear(err);
  if (count > 0) memset(results, 0, count * sizeof *results);
  wf_beam_options o;
  WF__TRY(wf__options_take(wf__beam_table(), options, &o, err));
  batch b = {searcher, inputs, &o, results};
  wf_status status = wf__beam_check_options(searcher, &o, err);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) status = wf__fail_memory(err, sizeof **results, "a result");
  }
  const int threads = searcher->lm_fn != NULL ? 1 : o.num_threads;
  if (status == WF_OK) status = wf__pool_once(threads, count, search_item, &b, err);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_beam_result_free(results[i]);
    results[i] = NULL;
  }
  return status;
}
