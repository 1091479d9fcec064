/* calls.h - library calls in a form that suits tests. Inputs are arrays, and temporary objects are
 * created and freed within the call. */
#ifndef WARPFST_TESTS_CALLS_H
#define WARPFST_TESTS_CALLS_H

#include "warpfst_all.h"

/* --- decoding ---------------------------------------------------------------------------- */

/* Calls wf_decode for utterances given as arrays: scores[i] with scorers[i] and graphs[i]. Either
 * array may be NULL, and so may its entries. */
wf_status test_decode_each(wf_decoder *decoder, const wf_scores *scores,
                           const wf_scorer *const *scorers, const wf_graph *const *graphs,
                           size_t count, const wf_progress *progress, wf_result **results,
                           wf_error *err);
/* The same without graphs; test_decode also without scorers. */
wf_status test_decode_scored(wf_decoder *decoder, const wf_scores *scores,
                             const wf_scorer *const *scorers, size_t count,
                             const wf_progress *progress, wf_result **results, wf_error *err);
wf_status test_decode(wf_decoder *decoder, const wf_scores *scores, size_t count,
                      const wf_progress *progress, wf_result **results, wf_error *err);

/* --- composition ------------------------------------------------------------------------- */

/* Runs a composer once: out[i] is a[i] o b[i], where an array of one fst is used for every i. On
 * failure every out[i] is NULL. */
wf_status test_compose_batch(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                             size_t num_b, size_t count, const wf_compose_options *options,
                             wf_fst **out, wf_error *err);
/* Composes one pair, and returns the origins of the arcs. */
wf_status test_compose_with_origins(const wf_fst *a, const wf_fst *b,
                                    const wf_compose_options *options, wf_fst **out,
                                    wf_arc_origin **out_origins, wf_error *err);
/* Returns the results of one run as a batch, with origins. */
wf_status test_fst_batch_compose(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                 size_t num_b, size_t count, const wf_compose_options *options,
                                 wf_fst_batch **out, wf_error *err);

#endif
