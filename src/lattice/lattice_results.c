/* lattice_results.c - what wf_decode makes of a determinized lattice: confidences, minimum Bayes
 * risk words, an n-best list. */
#include <stdio.h>

#include "lattice/lattice_determinize.h"
#include "lattice/mbr.h"

void wf__lattice_results_free(wf_lattice_results *results) {
  if (results == NULL) return;
  free(results->confidences);
  wf_mbr_result_free(results->mbr);
  wf_nbest_free(results->nbest);
  free(results);
}

static wf_status make_aligned_mbr(const wf_compact_lattice *lattice, const wf_word_aligner *aligner,
                                  wf_mbr_result **out, wf_error *err) {
  wf_compact_lattice *aligned;
  WF__TRY(wf_compact_lattice_align(lattice, aligner, NULL, &aligned, NULL, err));
  wf_status status = wf__lattice_mbr(aligned, NULL, 0, NULL, out, err);
  wf_compact_lattice_free(aligned);
  return status;
}

static wf_status make_mbr(const wf_compact_lattice *lattice, const wf_word *words, size_t num_words,
                          bool with_confidences, bool with_mbr, wf_lattice_results *out,
                          wf_error *err) {
  if (!with_confidences && !with_mbr) return WF_OK;
  int32_t *labels = wf__alloc(num_words, sizeof *labels);
  float *confidences = wf__alloc(num_words, sizeof *confidences);
  wf_status status = labels != NULL && confidences != NULL
                         ? WF_OK
                         : wf__fail_memory(err, num_words * 8, "confidences");
  for (size_t i = 0; i < num_words && status == WF_OK; i++) labels[i] = words[i].label;
  if (status == WF_OK)
    status = wf__lattice_mbr(lattice, labels, num_words, with_confidences ? confidences : NULL,
                             with_mbr ? &out->mbr : NULL, err);
  if (status == WF_OK && with_confidences) {
    out->confidences = confidences;
    confidences = NULL;
  }
  free(labels);
  free(confidences);
  return status;
}

wf_status wf__lattice_results_make(const wf_compact_lattice *lattice,
                                   const wf_word_aligner *aligner, const wf_word *words,
                                   size_t num_words, const wf_lattice_results_options *options,
                                   wf_lattice_results **out, wf_error *err) {
  wf_error why = {0};
  wf_lattice_results *results = *out = wf__calloc(1, sizeof *results);
  if (results == NULL) return wf__fail_memory(err, sizeof *results, "a result");
  const bool aligned = options->mbr && aligner != NULL;
  results->status = make_mbr(lattice, words, num_words, options->confidences,
                             options->mbr && !aligned, results, &why);
  wf_status status = aligned ? make_aligned_mbr(lattice, aligner, &results->mbr, &why) : WF_OK;
  if (status != WF_OK) results->status = status;
  status = options->nbest > 0
               ? wf_compact_lattice_nbest(lattice, (size_t)options->nbest, &results->nbest, &why)
               : WF_OK;
  if (status != WF_OK) results->status = status;
  if (results->status != WF_OK)
    snprintf(results->message, sizeof results->message, "%.255s", why.message);
  return WF_OK;
}
