/* properties.h - computing and caching the properties of an fst (WF_PROP_...). */
#ifndef WF_FST_PROPERTIES_H
#define WF_FST_PROPERTIES_H

#include "warpfst_all.h"

/* Four groups of properties, by the cost of computing them. */
#define WF__LOCAL_PROPERTIES                                                      \
  ((uint32_t)(WF_PROP_ACCEPTOR | WF_PROP_ILABEL_SORTED | WF_PROP_OLABEL_SORTED |  \
              WF_PROP_NO_IEPSILONS | WF_PROP_NO_OEPSILONS | WF_PROP_NO_EPSILONS | \
              WF_PROP_TOP_SORTED | WF_PROP_UNWEIGHTED | WF_PROP_EPSILONS_LAST))
#define WF__DETERMINISM_PROPERTIES ((uint32_t)(WF_PROP_IDETERMINISTIC | WF_PROP_ODETERMINISTIC))
#define WF__CYCLE_PROPERTIES ((uint32_t)WF_PROP_ACYCLIC)
#define WF__PATH_PROPERTIES ((uint32_t)(WF_PROP_ACCESSIBLE | WF_PROP_COACCESSIBLE))

/* The properties of one group. The last three return WF_ERR_MEMORY if there is no memory. */
/* One pass over the arcs. */
uint32_t wf__local_properties(const wf_fst_view *view);
/* Sorts the labels of states whose arcs are not sorted. */
wf_status wf__determinism_properties(const wf_fst_view *view, uint32_t *out);
/* A topological sort. */
wf_status wf__cycle_properties(const wf_fst_view *view, uint32_t *out);
/* Searches from the start, and backwards from the final states. */
wf_status wf__path_properties(const wf_fst_view *view, uint32_t *out);

/* One group only (wf_fst_get_properties finds all groups). The results are cached in the fst. */
uint32_t wf__fst_local_properties(const wf_fst *fst);
wf_status wf__fst_is_acyclic(const wf_fst *fst, bool *out, wf_error *err);
/* Is the fst known to be sorted by input or output label? False means not known. */
bool wf__fst_known_sorted(const wf_fst *fst, bool by_output);
/* Records that a new fst is trimmed: every state is on a path from the start to a final state. */
void wf__fst_set_trimmed(wf_fst *fst);
/* Is the fst known to be trimmed? False means not known. */
bool wf__fst_known_trimmed(const wf_fst *fst);

#endif
