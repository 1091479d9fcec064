/* exact_minimize.h - merges states of an exact lattice that have the same continuations. */
#ifndef WF_LATTICE_EXACT_MINIMIZE_H
#define WF_LATTICE_EXACT_MINIMIZE_H

#include "lattice/exact_lattice.h"

/* Merges states that have the same final cost and alignment and the same arcs (word, costs, labels,
 * next state) in the same order. Works from the end of the lattice to its start (Revuz 1992). */
wf_status wf__exact_minimize(wf__exact_lattice *lattice, wf_error *err);

#endif
