/* nshortest.h - the n best paths or distinct strings. wf_shortest_path calls it for n > 1. */
#ifndef WF_FSTOPS_NSHORTEST_H
#define WF_FSTOPS_NSHORTEST_H

#include "fstops/best_paths.h"

wf_status wf__nshortest(const wf_fst *fst, uint32_t nshortest, bool unique, wf_fst **out,
                        wf_error *err);

#endif
