/* gpu_threads.c - opens and closes a worker's host threads. */
#include "cuda/decoder/gpu_threads.h"

#include "cuda/decoder/read_lattice.h"

wf_status wf__gpu_threads_open(int count, bool lattices, wf__gpu_threads *out, wf_error *err) {
  WF__TRY(wf__pool_create(count, &out->pool, err));
  out->searches = wf__calloc((uint64_t)count, sizeof *out->searches);
  out->errors = wf__calloc((uint64_t)count, sizeof *out->errors);
  out->scorings = wf__calloc((uint64_t)count, sizeof *out->scorings);
  if (out->searches == NULL || out->errors == NULL || out->scorings == NULL)
    return wf__fail_memory(err, (uint64_t)count * sizeof *out->errors, "a decoder");
  return lattices ? wf__gpu_drafts_create(count, &out->drafts, err) : WF_OK;
}

void wf__gpu_threads_close(wf__gpu_threads *threads) {
  const int count = threads->pool != NULL ? wf__pool_size(threads->pool) : 0;
  for (int i = 0; threads->searches != NULL && i < count; i++)
    wf__frame_searcher.free(threads->searches[i]);
  for (int i = 0; threads->scorings != NULL && i < count; i++)
    wf__scoring_free(&threads->scorings[i]);
  free(threads->searches);
  free(threads->scorings);
  free(threads->errors);
  if (threads->drafts != NULL) wf__gpu_drafts_free(threads->drafts, count);
  wf__pool_free(threads->pool);
}
