/* gradients.c - the total cost of all paths of a composition, and its derivatives with respect to
 * the weights of the first transducer: gradients [DEVICE] */
#include <stdio.h>
#include <warpfst_fst.h>

/* One state with an arc l:l for each of `count` labels, at the given costs. */
static wf_status build(const float *costs, uint64_t count, wf_fst **out, wf_error *err) {
  wf_builder *builder = NULL;
  wf_status status = wf_builder_create(WF_LOG, &builder, err);
  if (status == WF_OK) status = wf_builder_add_states(builder, 2, NULL, err);
  if (status == WF_OK) status = wf_builder_set_start(builder, 0, err);
  if (status == WF_OK) status = wf_builder_set_final(builder, 1, 0, err);
  for (uint64_t i = 0; i < count && status == WF_OK; i++)
    status =
        wf_builder_add_arc(builder, 0, (wf_arc){1, costs[i], (int32_t)i + 1, (int32_t)i + 1}, err);
  if (status == WF_OK) status = wf_builder_finish(builder, NULL, NULL, out, err);
  wf_builder_free(builder);
  return status;
}

int main(int argc, char **argv) {
  wf_error err = {0};
  wf_fst *a = NULL, *b = NULL;
  wf_composer *composer = NULL;
  wf_fst_batch *batch = NULL;
  double cost = 0, *gradients = NULL;
  uint64_t count = 0;
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = WF_ORDER_CANONICAL;
  options.device = argc > 1 ? argv[1] : "cpu";

  wf_status status = build((float[]){1, 2, 3}, 3, &a, &err);
  if (status == WF_OK) status = build((float[]){0, 0.5f}, 2, &b, &err);
  if (status == WF_OK)
    status = wf_composer_create((const wf_fst *const *)&a, 1, (const wf_fst *const *)&b, 1, 1,
                                &options, true, &composer, &err);
  if (status == WF_OK) status = wf_composer_run(composer, &err);
  if (status == WF_OK) status = wf_composer_to_batch(composer, &batch, &err);
  if (status == WF_OK) status = wf_fst_batch_forward_score(batch, NULL, true, &cost, &err);
  if (status == WF_OK)
    status = wf_fst_batch_gradients(batch, 0, WF_GRADIENTS_OF_FIRST, &gradients, &count, &err);
  if (status == WF_OK) {
    printf("cost %.4f, gradients", cost);
    for (uint64_t i = 0; i < count; i++) printf(" %.4f", gradients[i]);
    printf("\n");
  }
  wf_fst_batch_view view; /* a kernel can read them where they are */
  if (status == WF_OK && wf_fst_batch_get_view(batch, &view, &err) == WF_OK)
    printf("in the GPU's memory at %p\n", (const void *)view.input_gradients[0]);
  if (status != WF_OK) fprintf(stderr, "gradients: %s\n", err.message);

  wf_free(gradients);
  wf_fst_batch_free(batch);
  wf_composer_free(composer);
  wf_fst_free(b);
  wf_fst_free(a);
  return status == WF_OK ? 0 : 1;
}
