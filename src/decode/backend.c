/* backend.c - what backends share: errors of utterances, their order, determinized lattices. */
#include "decode/backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void wf__result_bad_score(wf_result *result, int64_t frame, int32_t column, float value) {
  wf_error err;
  wf__result_fail(result, wf__fail_bad_score(frame, column, value, &err), &err);
}

void wf__result_fail(wf_result *result, wf_status status, const wf_error *err) {
  result->status = status;
  snprintf(result->message, sizeof result->message, "%s", err->message);
}

struct by_length {
  int64_t num_frames;
  uint32_t i;
};

static int compare_lengths(const void *a, const void *b) {
  const struct by_length *x = a, *y = b;
  if (x->num_frames != y->num_frames) return x->num_frames < y->num_frames ? 1 : -1;
  return x->i < y->i ? -1 : x->i > y->i;
}

wf_status wf__longest_first(const wf__batch *batch, uint32_t *which, uint32_t *count,
                            wf_error *err) {
  *count = 0;
  if (batch->count >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a batch of 2^32 utterances or more");
  struct by_length *lengths = wf__alloc(batch->count, sizeof *lengths);
  if (lengths == NULL) return wf__fail_memory(err, batch->count * sizeof *lengths, "a batch");
  for (size_t i = 0; i < batch->count; i++)
    if (!batch->skip[i])
      lengths[(*count)++] = (struct by_length){batch->scores[i].num_frames, (uint32_t)i};
  qsort(lengths, *count, sizeof *lengths, compare_lengths);
  for (uint32_t i = 0; i < *count; i++) which[i] = lengths[i].i;
  free(lengths);
  return WF_OK;
}

wf_status wf__result_determinize(const wf__batch *batch, const wf_graph *graph, wf_result *result,
                                 wf_error *err) {
  const wf_lattice_results_options *o = batch->lattice_results;
  if (result->lattice == NULL) return WF_OK;
  wf__lattice_limit(result->lattice, batch->complete_beam);
  if (batch->determinizing == NULL) return WF_OK;
  result->determinized = wf__calloc(1, sizeof *result->determinized);
  if (result->determinized == NULL)
    return wf__fail_memory(err, sizeof *result->determinized, "a lattice");
  wf__lattice_determinize(batch->determinizers, result->lattice, NULL, batch->determinizing,
                          result->determinized);
  if (o == NULL || result->determinized->status != WF_OK) return WF_OK;
  if (!o->keep_raw) {
    wf__recycle_lattice(batch->determinizers, result->lattice);
    result->lattice = NULL;
  }
  if (!o->confidences && !o->mbr && o->nbest == 0) return WF_OK;
  wf__result_tables *tables;
  WF__TRY(wf__result_tables_take(batch->determinizers, &tables, err));
  wf_status status =
      wf__lattice_results_make(tables, result->determinized, graph->aligner, result->words,
                               result->num_words, o, &result->lattice_results, err);
  wf__result_tables_put_back(batch->determinizers, tables);
  return status;
}
