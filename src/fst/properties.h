/* properties.h - facts about an fst that algorithms ask for. */
#ifndef WF_FST_PROPERTIES_H
#define WF_FST_PROPERTIES_H

#include "warpfst.h"

/* The properties fall in three groups by what they cost to find out. */
#define WF__LOCAL_PROPERTIES                                                                                                       \
  ((uint32_t)(WF_PROP_ACCEPTOR | WF_PROP_ILABEL_SORTED | WF_PROP_OLABEL_SORTED | WF_PROP_NO_IEPSILONS | WF_PROP_NO_OEPSILONS |      \
              WF_PROP_NO_EPSILONS | WF_PROP_TOP_SORTED | WF_PROP_UNWEIGHTED | WF_PROP_EPSILONS_LAST))
#define WF__DETERMINISM_PROPERTIES ((uint32_t)(WF_PROP_IDETERMINISTIC | WF_PROP_ODETERMINISTIC))
#define WF__PATH_PROPERTIES ((uint32_t)(WF_PROP_ACYCLIC | WF_PROP_ACCESSIBLE | WF_PROP_COACCESSIBLE))

uint32_t wf__local_properties(const wf_fst_view *view);        /* one pass over the arcs */
uint32_t wf__determinism_properties(const wf_fst_view *view);  /* sorts the labels of unsorted states */
uint32_t wf__path_properties(const wf_fst_view *view);         /* depth-first search, and back from the final states */

/* Those of the local group that hold, without working out the others (wf_fst_properties gives all). */
uint32_t wf__fst_local_properties(const wf_fst *fst);

#endif
