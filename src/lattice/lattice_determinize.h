/* lattice_determinize.h - determinization of one lattice after the other with the same memory, by
 * any number of threads. */
#ifndef WF_LATTICE_LATTICE_DETERMINIZE_H
#define WF_LATTICE_LATTICE_DETERMINIZE_H

#include "base/error.h"

/* A pool of determinizers, one for each concurrent call. */
typedef struct wf__determinizers wf__determinizers;

wf_status wf__determinizers_create(wf__determinizers **out, wf_error *err);
void wf__determinizers_free(wf__determinizers *determinizers);
/* wf_lattice_determinize with validated options. Errors are reported in `out`. May be called from
 * any thread. */
void wf__lattice_determinize(wf__determinizers *determinizers, const wf_lattice *lattice,
                             const wf_lattice_phones *phones,
                             const wf_lattice_determinize_options *o, wf_determinized *out);

#endif
