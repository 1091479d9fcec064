/* exact_minimize.h - states of an exact lattice with the same continuations, made one. */
#ifndef WF_LATTICE_EXACT_MINIMIZE_H
#define WF_LATTICE_EXACT_MINIMIZE_H

#include "lattice/exact_lattice.h"

/* Merges states that end alike and have the same arcs (word, costs, labels, next state) in the same
 * order, from the end of the lattice to its start (Revuz 1992). */
wf_status wf__exact_minimize(wf__exact_lattice *lattice, wf_error *err);

#endif
