/* slf.h - writes HTK's Standard Lattice Format (SLF). */
#ifndef WF_IO_SLF_H
#define WF_IO_SLF_H

#include "base/output.h"

/* Writes one lattice. `frame_shift` is in seconds. Acoustic costs are divided by `divisor`. If
 * `words` is NULL, words are written as numbers. */
void wf__slf_write(wf__output *output, const char *key, const wf_compact_lattice_view *lattice,
                   double frame_shift, float divisor, const wf_symbols *words);

#endif
