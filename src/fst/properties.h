/* properties.h - facts about an fst that algorithms ask for. */
#ifndef WF_FST_PROPERTIES_H
#define WF_FST_PROPERTIES_H

#include "warpfst_all.h"

/* The properties fall in four groups by what they cost to find out. */
#define WF__LOCAL_PROPERTIES                                                      \
  ((uint32_t)(WF_PROP_ACCEPTOR | WF_PROP_ILABEL_SORTED | WF_PROP_OLABEL_SORTED |  \
              WF_PROP_NO_IEPSILONS | WF_PROP_NO_OEPSILONS | WF_PROP_NO_EPSILONS | \
              WF_PROP_TOP_SORTED | WF_PROP_UNWEIGHTED | WF_PROP_EPSILONS_LAST))
#define WF__DETERMINISM_PROPERTIES ((uint32_t)(WF_PROP_IDETERMINISTIC | WF_PROP_ODETERMINISTIC))
#define WF__CYCLE_PROPERTIES ((uint32_t)WF_PROP_ACYCLIC)
#define WF__PATH_PROPERTIES ((uint32_t)(WF_PROP_ACCESSIBLE | WF_PROP_COACCESSIBLE))

uint32_t wf__local_properties(const wf_fst_view *view); /* one pass over the arcs */
uint32_t wf__determinism_properties(
    const wf_fst_view *view);                           /* sorts the labels of unsorted states */
uint32_t wf__cycle_properties(const wf_fst_view *view); /* counts the arcs into each state */
uint32_t wf__path_properties(
    const wf_fst_view *view); /* searches from the start, and back from the final states */

/* Those of the local group that hold, without working out the others (wf_fst_properties gives all).
 */
uint32_t wf__fst_local_properties(const wf_fst *fst);
bool wf__fst_is_acyclic(const wf_fst *fst);
/* Notes that an fst just made is trimmed: every state is on a path from the start to a final one.
 */
void wf__fst_set_trimmed(wf_fst *fst);
/* Is that known? (If not, it may be so all the same.) */
bool wf__fst_known_trimmed(const wf_fst *fst);

#endif
