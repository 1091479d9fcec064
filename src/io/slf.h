/* slf.h - HTK's Standard Lattice Format, out. */
#ifndef WF_IO_SLF_H
#define WF_IO_SLF_H

#include "base/output.h"

/* One lattice. `frame_shift` in seconds; acoustic costs are divided by `divisor`; words NULL:
 * numbers. */
void wf__slf_write(wf__output *output, const char *key, const wf_compact_lattice_view *lattice,
                   double frame_shift, float divisor, const wf_symbols *words);

#endif
