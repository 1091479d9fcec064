/* kaldi_lattice.h - lattices as values of Kaldi archives: an fst of Kaldi's arc types, without the
 * "\0B" that marks other binary values.
 *
 *   binary   header of an OpenFst VectorFst (openfst_read.c draws it), arc type "lattice4",
 *            "lattice8", "compactlattice44" or "compactlattice84", then per state: weight, i64
 *            arcs, arcs x {i32 ilabel, i32 olabel, weight, i32 nextstate} weight: graph cost,
 *            acoustic cost (f32, or f64 in the types with an 8); compact: and i32 n, n x i32 label
 *   text     the rest of the key's line is blank; a line an arc or final state; an empty line ends
 *            the lattice raw      source target ilabel olabel [graph,acoustic]       state
 *            [graph,acoustic] compact  source target word [graph,acoustic,l_l_l]          state
 *            [graph,acoustic,l_l_l] a weight left out is 0,0 without labels; the start is the first
 *            line's source */
#ifndef WF_IO_KALDI_LATTICE_H
#define WF_IO_KALDI_LATTICE_H

#include "base/output.h"
#include "io/unsorted_lattice.h"
#include "lattice/lattice.h"
#include "io/source.h"

/* The value at the source's place, behind its key. `words`: table of the words in text, NULL:
 * numbers. On failure `*lost` tells whether the place behind the value is unknown; `out` is to be
 * freed in any case. */
wf_status wf__kaldi_read_lattice(wf__source *source, const wf_symbols *words,
                                 wf__unsorted_lattice *out, bool *lost, wf_error *err);
/* The text form, from behind the key's line; kaldi_lattice_text.c. */
wf_status wf__kaldi_read_lattice_text(wf__source *source, const wf_symbols *words,
                                      wf__unsorted_lattice *out, bool *lost, wf_error *err);

/* Write one value, behind "key ". Acoustic costs are divided by `divisor`. */
void wf__kaldi_write_raw(wf__output *output, const wf_lattice_view *lattice, float divisor);
void wf__kaldi_write_compact(wf__output *output, const wf_compact_lattice_view *lattice,
                             float divisor);
/* Words that are not in the table must have been ruled out. */
void wf__kaldi_write_raw_text(wf__output *output, const wf_lattice_view *lattice, float divisor,
                              const wf_symbols *words);
void wf__kaldi_write_compact_text(wf__output *output, const wf_compact_lattice_view *lattice,
                                  float divisor, const wf_symbols *words);

#endif
