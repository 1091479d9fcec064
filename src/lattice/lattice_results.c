/* lattice_results.c - what wf_decode makes of a determinized lattice: confidences, minimum Bayes
 * risk words, an n-best list. */
#include <math.h>
#include <stdio.h>

#include "lattice/align_lattice.h"
#include "lattice/lattice_determinize.h"
#include "lattice/mbr.h"
#include "lattice/nbest.h"

enum { MAX_ARCS = 10000000 }; /* default of wf_compact_lattice_align */
#define CALIBRATED 0.24f      /* docs/engineering/lattices.md, "Reliability of confidences" */

struct wf__result_tables {
  wf__mbr *mbr;
  wf__alignment alignment;
  wf__nbest_search nbest;
  WF__VEC(int32_t) labels; /* words of the best path */
};

wf_status wf__result_tables_create(wf__result_tables **out, wf_error *err) {
  wf__result_tables *tables = wf__calloc(1, sizeof *tables);
  *out = NULL;
  if (tables == NULL) return wf__fail_memory(err, sizeof *tables, "results of lattices");
  wf_status status = wf__mbr_create(&tables->mbr, err);
  if (status == WF_OK)
    *out = tables;
  else
    wf__result_tables_free(tables);
  return status;
}

void wf__result_tables_free(wf__result_tables *tables) {
  if (tables == NULL) return;
  wf__mbr_free(tables->mbr);
  wf__alignment_free(&tables->alignment);
  wf__nbest_search_free(&tables->nbest);
  wf__vec_free(&tables->labels);
  free(tables);
}

uint64_t wf__result_tables_bytes(const wf__result_tables *tables) {
  return wf__mbr_bytes(tables->mbr) + wf__alignment_bytes(&tables->alignment) +
         wf__nbest_search_bytes(&tables->nbest);
}

float wf_confidence_scale(float acoustic_scale) {
  const float factor = acoustic_scale > 0 ? CALIBRATED / sqrtf(acoustic_scale) : 1;
  return factor < 1 ? factor : 1;
}

void wf__lattice_results_free(wf_lattice_results *results) {
  if (results == NULL) return;
  free(results->confidences);
  wf_mbr_result_free(results->mbr);
  wf_nbest_free(results->nbest);
  free(results);
}

static wf_status make_aligned_mbr(wf__result_tables *tables, const wf_compact_lattice_view *lattice,
                                  float scale, float beam, const wf_word_aligner *aligner,
                                  wf_mbr_result **out, wf_error *err) {
  wf_compact_lattice_view aligned;
  WF__TRY(wf__align_lattice(&tables->alignment, lattice, aligner, MAX_ARCS, false, err));
  WF__TRY(wf__alignment_view(&tables->alignment, &aligned, err));
  return wf__lattice_mbr(tables->mbr, &aligned, scale, beam, NULL, 0, NULL, out, err);
}

static wf_status make_mbr(wf__result_tables *tables, const wf_compact_lattice_view *lattice,
                          float scale, float beam, const wf_word *words, size_t num_words,
                          bool with_confidences, bool with_mbr, wf_lattice_results *out,
                          wf_error *err) {
  if (!with_confidences && !with_mbr) return WF_OK;
  float *confidences = with_confidences ? wf__alloc(num_words, sizeof *confidences) : NULL;
  wf_status status = with_confidences && confidences == NULL
                         ? wf__fail_memory(err, num_words * sizeof *confidences, "confidences")
                         : wf__vec_grow(&tables->labels, num_words, "confidences", err);
  for (size_t i = 0; i < num_words && status == WF_OK; i++) tables->labels.data[i] = words[i].label;
  if (status == WF_OK)
    status = wf__lattice_mbr(tables->mbr, lattice, scale, beam, tables->labels.data, num_words,
                             confidences, with_mbr ? &out->mbr : NULL, err);
  if (status == WF_OK)
    out->confidences = confidences;
  else
    free(confidences);
  return status;
}

wf_status wf__lattice_results_make(wf__result_tables *tables, const wf_determinized *determinized,
                                   const wf_word_aligner *aligner, const wf_word *words,
                                   size_t num_words, const wf_lattice_results_options *options,
                                   wf_lattice_results **out, wf_error *err) {
  wf_error why = {0};
  wf_lattice_results *results = *out = wf__calloc(1, sizeof *results);
  if (results == NULL) return wf__fail_memory(err, sizeof *results, "a result");
  const wf_compact_lattice_view view = wf_compact_lattice_get_view(determinized->lattice);
  const float scale = options->confidence_scale, beam = determinized->beam;
  const bool aligned = options->mbr && aligner != NULL;
  results->status = make_mbr(tables, &view, scale, beam, words, num_words, options->confidences,
                             options->mbr && !aligned, results, &why);
  wf_status status =
      aligned ? make_aligned_mbr(tables, &view, scale, beam, aligner, &results->mbr, &why) : WF_OK;
  if (status != WF_OK) results->status = status;
  status = options->nbest > 0 ? wf__lattice_nbest(&tables->nbest, &view, (size_t)options->nbest,
                                                  &results->nbest, &why)
                              : WF_OK;
  if (status != WF_OK) results->status = status;
  if (results->status != WF_OK)
    snprintf(results->message, sizeof results->message, "%.255s", why.message);
  return WF_OK;
}
