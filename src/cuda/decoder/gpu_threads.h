/* gpu_threads.h - a worker's host threads, with what each of them has of its own. */
#ifndef WF_CUDA_DECODER_GPU_THREADS_H
#define WF_CUDA_DECODER_GPU_THREADS_H

#include "base/threads.h"
#include "decode/backend.h"
#include "search/frame/search.h"

typedef struct wf__gpu_threads {
  wf__pool *pool;
  wf_error *errors;              /* [pool size], as are the others: scratch */
  wf__scoring *scorings;         /* for costs of scorers along paths */
  wf__searcher **searches;       /* for utterances that do not fit the plan, made on first use */
  struct wf__gpu_drafts *drafts; /* of lattices; NULL unless there are any */
} wf__gpu_threads;

/* lattices: whether there are any. After a failure it must be closed, too. */
wf_status wf__gpu_threads_open(int count, bool lattices, wf__gpu_threads *out, wf_error *err);
void wf__gpu_threads_close(wf__gpu_threads *threads);

#endif
