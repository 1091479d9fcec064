/* compose_lookahead.h - label look-ahead of composition (Allauzen, Riley & Schalkwyk 2009, "A
 * generalized composition algorithm for weighted finite-state transducers").
 *
 * A pair of states is dead if the first state cannot write, after any number of output epsilons, a
 * label that the second reads, and they cannot end together either. Dead pairs are not made. */
#ifndef WF_FSTOPS_COMPOSE_LOOKAHEAD_H
#define WF_FSTOPS_COMPOSE_LOOKAHEAD_H

#include "fstops/compose_pushed.h"
#include "fstops/compose_side.h"

typedef struct wf__lookahead wf__lookahead;
/* Prepares it for two sides that are not lazy, `b` without failure arcs. `*out` is NULL if it would
 * take far more memory than the inputs. `pushed` is what `b` was made of, or NULL: labels are not
 * pushed. It must outlive the result. */
wf_status wf__lookahead_create(const wf__compose_side *a, const wf__compose_side *b,
                               const wf__pushed *pushed, wf__lookahead **out, wf_error *err);
void wf__lookahead_free(wf__lookahead *lookahead);
/* False if the pair is dead. Thread-safe. */
bool wf__lookahead_alive(const wf__lookahead *lookahead, uint32_t a, uint32_t b);
bool wf__lookahead_pushes(const wf__lookahead *lookahead);
/* False if the pair (a, *b) is dead. If only one arc of `*b` can be taken next, and the arc that
 * leads to the pair has no output, that arc gets the output and the cost of it, and `*b` becomes
 * the state that waits for its label. Thread-safe. */
bool wf__lookahead_push(const wf__lookahead *lookahead, uint32_t a, uint32_t *b, wf_arc *arc);

#endif
