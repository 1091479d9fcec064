/* frame_columns.h - the scores of a frame's labels, and those labels that may survive.
 *
 * A state may have an arc for each of thousands of tokens, of which a frame lets a few dozen
 * survive. Only labels whose cost is within the cutoff, less the cost of the source and the least
 * weight of the state's arcs, can. So these are found once a frame, and the arcs of a wide state
 * are looked up by label. That is exact: labels are added until none is missing below the cutoff.
 *
 * A row is read once: that pass checks its values, and leaves the highest score of each cell of 8
 * columns. A block is 8 cells. Their columns do not follow one another: a group of 64 numbers is 8
 * rows of 8, and each of its 8 cells is a column of that. So the highest of all 8 cells are found by
 * plain loops that the compiler makes vectors of.
 *
 *   cells[8 g + j]    the highest score of columns 64 g + j, + 8, .. + 56
 *   blocks[8 g + j]   the highest of cells 64 g + j, + 8, .. + 56 */
#ifndef WF_SEARCH_FRAME_FRAME_COLUMNS_H
#define WF_SEARCH_FRAME_FRAME_COLUMNS_H

#include "search/frame/search.h"

wf_status wf__columns_create(wf__search *search, const wf_graph *graph, wf_error *err);
void wf__columns_free(wf__search *search);
/* Reads frame t. Error: a score that is NaN, +infinity or beyond 1e20. `scores` must live until the
 * frame ends. */
wf_status wf__columns_read(wf__search *search, const wf_scores *scores, int64_t t, wf_error *err);
/* Checks frame t only, as wf__columns_read does. */
wf_status wf__columns_check(const wf__search *search, const wf_scores *scores, int64_t t,
                            wf_error *err);
/* Completes search->step.columns.labels: all labels of cost up to `bound` are in it, and perhaps
 * more. Those that are added come last. */
wf_status wf__columns_cover(wf__search *search, float bound, wf_error *err);
/* About the least cost that `count` labels do not exceed; +infinity if it is not known. It grows to
 * that with `count`. */
float wf__columns_bound(wf__search *search, uint64_t count);

#endif
