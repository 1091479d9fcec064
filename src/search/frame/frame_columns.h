/* frame_columns.h - the acoustic costs of a frame's labels, and those of them that may survive.
 *
 * A state may have an arc for each of thousands of tokens, of which a frame lets a few dozen
 * survive. Only labels whose cost is within the cutoff, less the cost of the source and the least
 * weight of the state's arcs, can. So these are found once a frame, and the arcs of a wide state
 * are looked up by label. That is exact: labels are added until none is missing below the cutoff. */
#ifndef WF_SEARCH_FRAME_FRAME_COLUMNS_H
#define WF_SEARCH_FRAME_FRAME_COLUMNS_H

#include "search/frame/search.h"

/* Computes the costs of frame t. */
void wf__columns_read(wf__search *search, const wf_scores *scores, int64_t t);
/* Completes search->step.columns.labels: all labels of cost up to `bound` are in it, and perhaps
 * more. Those that are added come last. */
wf_status wf__columns_cover(wf__search *search, float bound, wf_error *err);
/* A cost that `count` labels or more do not exceed, and not many more; +infinity if so many are not
 * possible. */
wf_status wf__columns_bound(wf__search *search, uint64_t count, float *out, wf_error *err);

#endif
