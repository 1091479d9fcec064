/* compose_calls.c - see calls.h: composition. It is separate from calls.c because it needs the GPU
 * composition at link time, which the decoder tests on a simulated GPU do not link. */
#include "calls.h"

/* --- composition ------------------------------------------------------------------------- */

wf_status test_compose_batch(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                             size_t num_b, size_t count, const wf_compose_options *options,
                             wf_fst **out, wf_error *err) {
  wf_composer *composer;
  for (size_t i = 0; i < count; i++) out[i] = NULL;
  wf_status status = wf_composer_create(a, num_a, b, num_b, count, options, false, &composer, err);
  if (status != WF_OK) return status;
  status = wf_composer_run(composer, err);
  for (size_t i = 0; i < count && status == WF_OK; i++)
    status = wf_composer_to_fst(composer, i, &out[i], NULL, err);
  wf_composer_free(composer);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_fst_free(out[i]);
    out[i] = NULL;
  }
  return status;
}

wf_status test_compose_with_origins(const wf_fst *a, const wf_fst *b,
                                    const wf_compose_options *options, wf_fst **out,
                                    wf_arc_origin **out_origins, wf_error *err) {
  wf_composer *composer;
  *out = NULL;
  *out_origins = NULL;
  wf_status status = wf_composer_create(&a, 1, &b, 1, 1, options, true, &composer, err);
  if (status != WF_OK) return status;
  status = wf_composer_run(composer, err);
  if (status == WF_OK) status = wf_composer_to_fst(composer, 0, out, out_origins, err);
  wf_composer_free(composer);
  return status;
}

wf_status test_fst_batch_compose(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                                 size_t num_b, size_t count, const wf_compose_options *options,
                                 wf_fst_batch **out, wf_error *err) {
  wf_composer *composer;
  *out = NULL;
  wf_status status = wf_composer_create(a, num_a, b, num_b, count, options, true, &composer, err);
  if (status != WF_OK) return status;
  status = wf_composer_run(composer, err);
  if (status == WF_OK) status = wf_composer_to_batch(composer, out, err);
  wf_composer_free(composer);
  return status;
}
