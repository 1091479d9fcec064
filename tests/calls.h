/* calls.h - library calls in forms that suit tests: inputs are arrays, objects come and go within.
 */
#ifndef WARPFST_TESTS_CALLS_H
#define WARPFST_TESTS_CALLS_H

#include "warpfst_all.h"

/* --- decoding ---------------------------------------------------------------------------- */

/* wf_decode of utterances whose parts are arrays: scorers[i] and graphs[i] of scores[i]; either
 * array may be NULL, as may its entries. */
wf_status test_decode_each(wf_decoder *decoder, const wf_scores *scores,
                           const wf_scorer *const *scorers, const wf_graph *const *graphs,
                           size_t count, const wf_progress *progress, wf_result **results,
                           wf_error *err);
/* The same without graphs, and without scorers. */
wf_status test_decode_scored(wf_decoder *decoder, const wf_scores *scores,
                             const wf_scorer *const *scorers, size_t count,
                             const wf_progress *progress, wf_result **results, wf_error *err);
wf_status test_decode(wf_decoder *decoder, const wf_scores *scores, size_t count,
                      const wf_progress *progress, wf_result **results, wf_error *err);

/* --- composition ------------------------------------------------------------------------- */

/* One run of a composer: out[i] of a[i or 0] and b[i or 0]. On failure every out[i] is NULL. */
wf_status test_compose_batch(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                             size_t num_b, size_t count, const wf_compose_options *options,
                             wf_fst **out, wf_error *err);
/* One pair, with the origins of its arcs. */
wf_status test_compose_with_origins(const wf_fst *a, const wf_fst *b,
                                    const wf_compose_options *options, wf_fst **out,
                                    wf_arc_origin **out_origins, wf_error *err);
/* The results of one run as a batch, with origins. */
wf_status test_fst_batch_compose(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                 size_t num_b, size_t count, const wf_compose_options *options,
                                 wf_fst_batch **out, wf_error *err);

#endif
