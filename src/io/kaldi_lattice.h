/* kaldi_lattice.h - lattices as values of Kaldi archives: an fst with Kaldi's arc types, without
 * the "\0B" that marks other binary values.
 *
 *   binary   header of an OpenFst VectorFst (see openfst_read.c) with arc type "lattice4",
 *            "lattice8", "compactlattice44" or "compactlattice84", then for each state:
 *              weight, i64 number of arcs, arcs {i32 ilabel, i32 olabel, weight, i32 nextstate}
 *            weight: graph cost, acoustic cost (f32; f64 in the types with an 8); in compact
 *            lattices followed by i32 n, n i32 labels
 *   text     the rest of the key's line is blank. Each line is an arc or a final state:
 *              raw      source target ilabel olabel [graph,acoustic]
 *                       state [graph,acoustic]
 *              compact  source target word [graph,acoustic,l_l_l]
 *                       state [graph,acoustic,l_l_l]
 *            An empty line ends the lattice. A missing weight is 0,0 without labels. The start
 *            state is the source of the first line */
#ifndef WF_IO_KALDI_LATTICE_H
#define WF_IO_KALDI_LATTICE_H

#include "base/output.h"
#include "base/source.h"
#include "io/unsorted_lattice.h"
#include "lattice/lattice.h"

/* Reads the value at the current position, after its key. `words` is the table of the words in text
 * lattices; NULL: they are numbers. On failure `*lost` is true if the end of the value is unknown.
 * The caller frees `out` in any case. */
wf_status wf__kaldi_read_lattice(wf__source *source, const wf_symbols *words,
                                 wf__unsorted_lattice *out, bool *lost, wf_error *err);
/* Reads the text form, from the line after the key; kaldi_lattice_text.c. */
wf_status wf__kaldi_read_lattice_text(wf__source *source, const wf_symbols *words,
                                      wf__unsorted_lattice *out, bool *lost, wf_error *err);

/* Write one value, after "key ". Acoustic costs are divided by `divisor`. */
void wf__kaldi_write_raw(wf__output *output, const wf_lattice_view *lattice, float divisor);
void wf__kaldi_write_compact(wf__output *output, const wf_compact_lattice_view *lattice,
                             float divisor);
/* The same as text. All words must be in the table. */
void wf__kaldi_write_raw_text(wf__output *output, const wf_lattice_view *lattice, float divisor,
                              const wf_symbols *words);
void wf__kaldi_write_compact_text(wf__output *output, const wf_compact_lattice_view *lattice,
                                  float divisor, const wf_symbols *words);

#endif
