/* lattice_oracle.h - two slow ways to compute the lattice that docs/reference/semantics.md defines,
 * and a third check of the result.
 *
 * Neither shares code with the library. Both decide which arcs stay, and use the same builder for
 * the order of states and arcs. */
#ifndef TESTS_LATTICE_ORACLE_H
#define TESTS_LATTICE_ORACLE_H

#include "decode_oracle.h"

/* Computes the lattice from the tokens and candidates of the slow decoder, by relaxing all arcs of
 * all frames in float32 until nothing changes. It must be equal bit for bit. Returns false if the
 * task does not fit max_tokens. */
bool oracle_lattice(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores,
                    wf_lattice_view *out);
bool oracle_lattice_in(const oracle_space *space, const wf_decoder_options *options,
                       const wf_scores *scores, wf_lattice_view *out);
/* Computes the lattice from every path of the graph over the first `num_frames` frames, listed one
 * by one with costs in double, without beam or search. If epsilon arcs form cycles, only paths that
 * visit no state twice within a frame are listed. `final`: paths end in final states. Returns false
 * if there are more than `limit` paths. */
bool enumerated_lattice(const wf_fst *fst, const wf_decoder_options *options,
                        const wf_scores *scores, int64_t num_frames, bool final, size_t limit,
                        wf_lattice_view *out);
void oracle_free_view(wf_lattice_view *view);

/* Returns true if both are equal in every field. Otherwise prints the difference, with `seed`. */
bool oracle_same_lattice(const wf_lattice_view *lattice, const wf_lattice_view *expected,
                         uint64_t seed);
/* Fails the test unless the lattice is valid: states sorted by frame, arcs forward by one frame or
 * none, every state on a path from state 0 to a final state. */
void oracle_check_shape(const wf_lattice_view *lattice, int64_t num_frames);
/* Cost of the best path, in double. */
double oracle_lattice_best(const wf_lattice_view *lattice);

#endif
