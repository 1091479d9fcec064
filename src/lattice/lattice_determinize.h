/* lattice_determinize.h - determinization of lattices one after the other, with the same memory. */
#ifndef WF_LATTICE_LATTICE_DETERMINIZE_H
#define WF_LATTICE_LATTICE_DETERMINIZE_H

#include "lattice/word_determinizer.h"

/* wf_lattice_determinize with options that were taken; what went wrong is in `out`. */
void wf__lattice_determinize(wf__word_determinizer *det, const wf_lattice *lattice, const wf_lattice_phones *phones, const wf_lattice_determinize_options *o, wf_determinized *out,
                             wf_error *err);

#endif
