/* compose_pushed.h - the second fst of a composition with label pushing. */
#ifndef WF_FSTOPS_COMPOSE_PUSHED_H
#define WF_FSTOPS_COMPOSE_PUSHED_H

#include "base/map64.h"
#include "fstops/csr_copy.h"

typedef struct wf__pushed {
  wf_fst *fst;         /* the states of b, then those that wait */
  uint64_t num_states; /* of b */
  wf__map64 waiting;   /* wf__pushed_key of an arc of b -> the state that waits for its label */
} wf__pushed;

static inline uint64_t wf__pushed_key(const wf_arc *arc) {
  return (uint64_t)(uint32_t)arc->ilabel << 32 | arc->nextstate;
}
/* `b` must have a start. */
wf_status wf__pushed_init(wf__pushed *pushed, const wf_fst *b, wf_error *err);
void wf__pushed_free(wf__pushed *pushed);

#endif
