/* lattice_determinize.h - determinization of one lattice after the other with the same memory, by
 * any number of threads. */
#ifndef WF_LATTICE_LATTICE_DETERMINIZE_H
#define WF_LATTICE_LATTICE_DETERMINIZE_H

#include "lattice/lattice.h"

/* A pool of determinizers, one for each concurrent call. */
typedef struct wf__determinizers wf__determinizers;

wf_status wf__determinizers_create(wf__determinizers **out, wf_error *err);
void wf__determinizers_free(wf__determinizers *determinizers);
/* wf_lattice_determinize with validated options. Errors are reported in `out`. May be called from
 * any thread. */
void wf__lattice_determinize(wf__determinizers *determinizers, const wf_lattice *lattice,
                             const wf_lattice_phones *phones,
                             const wf_lattice_determinize_options *o, wf_determinized *out);
/* Memory of raw lattices that are not kept, for the next ones. Empty arrays if there is none, or if
 * `determinizers` is NULL. */
wf__lattice_arrays wf__spare_arrays(wf__determinizers *determinizers);
/* Frees the lattice, or keeps its memory for wf__spare_arrays. Nobody else may have a reference. */
void wf__recycle_lattice(wf__determinizers *determinizers, wf_lattice *lattice);

/* Tables for results of lattices, reused from lattice to lattice by one thread. */
typedef struct wf__result_tables wf__result_tables;
wf_status wf__result_tables_create(wf__result_tables **out, wf_error *err);
void wf__result_tables_free(wf__result_tables *tables);
/* Approximate memory in use. */
uint64_t wf__result_tables_bytes(const wf__result_tables *tables);
/* Takes tables out of the pool, and puts them back or frees them. */
wf_status wf__result_tables_take(wf__determinizers *determinizers, wf__result_tables **out,
                                 wf_error *err);
void wf__result_tables_put_back(wf__determinizers *determinizers, wf__result_tables *tables);

/* Makes the results of a determinized lattice (wf_decoder_set_lattice_results). `aligner`: the
 * graph's, or NULL. `words` are those of the best path. options->confidence_scale is not 0. Fails
 * only if memory runs out for `*out`; other errors are reported in it. */
wf_status wf__lattice_results_make(wf__result_tables *tables, const wf_determinized *determinized,
                                   const wf_word_aligner *aligner, const wf_word *words,
                                   size_t num_words, const wf_lattice_results_options *options,
                                   wf_lattice_results **out, wf_error *err);
void wf__lattice_results_free(wf_lattice_results *results);

#endif
