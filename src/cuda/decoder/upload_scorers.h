/* upload_scorers.h - scorers on a GPU: those of a batch, and those that streams share. */
#ifndef WF_CUDA_DECODER_UPLOAD_SCORERS_H
#define WF_CUDA_DECODER_UPLOAD_SCORERS_H

#include "cuda/scorer/scorer_store.h"
#include "decode/backend.h"

struct wf__gpu_worker;
struct wf__rnn_scoring;

/* A scorer shared by streams. It has its own memory and is sent once, not with every chunk. */
typedef struct wf__shared_scorer {
  wf_scorer *scorer;
  uint64_t users;
  wf__scorer_store store;
  bool holds_lists;                    /* it is among the users of its long lists */
  bool boosts;                         /* of few contexts (search/boost_pairs.cuh) */
  struct wf__rnn_scoring *rnn_scoring; /* of a recurrent scorer or a chain with one, which starts in
                                          `root`; else NULL */
  uint32_t root;
  wf_scorer *on_cpu; /* for scores on the CPU: the scorer, with its recurrent part replaced by the
                        one on the CPU */
  struct wf__shared_scorer *next;
} wf__shared_scorer;

/* Sends the batch's scorers to the worker's GPU. Sets limits.scored, limits.boosted and
 * limits.scorer_bytes. */
wf_status wf__gpu_take_scorers(struct wf__gpu_worker *worker, const wf__batch *batch,
                               wf_error *err);
/* Address of an utterance's scorer on the GPU; NULL: it has none. */
static inline const wf__flat_scorer *wf__gpu_scorer_of(const wf__gpu_scorers *scorers,
                                                       const wf__batch *batch, uint32_t utterance) {
  return wf__gpu_find_scorer(scorers, batch->scorers != NULL ? batch->scorers[utterance] : NULL);
}
/* Acquires the scorer. It is sent to the current device if no stream has it yet. */
wf_status wf__gpu_acquire_scorer(struct wf__gpu_worker *worker, const wf_scorer *scorer,
                                 wf__shared_scorer **out, wf_error *err);
/* Ends the sharing; *place may be NULL and becomes NULL. */
void wf__gpu_release_scorer(struct wf__gpu_worker *worker, wf__shared_scorer **place);
/* Where it is on the GPU; NULL for NULL. */
const wf__flat_scorer *wf__shared_scorer_there(const wf__shared_scorer *scorer);

#endif
