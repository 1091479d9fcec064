/* random_transducers.h - random built-in transducers of every kind, and encoder outputs. */
#ifndef TESTS_RANDOM_TRANSDUCERS_H
#define TESTS_RANDOM_TRANSDUCERS_H

#include "decode_tasks.h"
#include "random_tensors.h"
#include "search/transducer/transducer.h"
#include "transducer_graphs.h"

typedef struct transducer_shape {
  int num_tokens, num_durations, context_size, num_layers; /* no layers: stateless */
  size_t embed, predictor, joiner, encoder;
  bool padded; /* an embedding for places before the start */
  int twins;   /* costs tie: 2: of each token and the next one, num_tokens: of all */
} transducer_shape;

static inline transducer_shape random_transducer_shape(test_rng *rng, uint64_t seed) {
  transducer_shape s = {.num_tokens = 3 + (int)test_below(rng, 40),
                        .num_layers = (int)(seed % 3),
                        .embed = 3 + test_below(rng, 20),
                        .predictor = 4 + test_below(rng, 30),
                        .joiner = 4 + test_below(rng, 40),
                        .encoder = 3 + test_below(rng, 30)};
  if (s.num_layers == 0) s.context_size = 1 + (int)test_below(rng, 3);
  if (seed / 3 % 2 == 1) s.num_durations = 2 + (int)test_below(rng, 4);
  s.padded = s.num_durations == 0 && test_below(rng, 2) == 0;
  return s;
}

static inline void scale_last(tensors *all, size_t count, float factor) {
  for (size_t i = all->num_floats - count; i < all->num_floats; i++) all->floats[i] *= factor;
}

/* Of each `twins` rows of the last tensor, [rows][cols], all become the first. Row 0 is left alone. */
static inline void copy_twins(tensors *all, size_t rows, size_t cols, size_t twins) {
  float *last = all->floats + all->num_floats - rows * cols;
  for (size_t r = 1; r < rows; r++)
    if ((r - 1) % twins > 0) memcpy(last + r * cols, last + (r - 1) * cols, cols * sizeof *last);
}

static inline wf_transducer *random_transducer(test_rng *rng, const transducer_shape *s) {
  char path[512];
  char name[64];
  wf_error err = {0};
  wf_transducer *model;
  wf_transducer_options options;
  tensors all = {.header = "{", .header_size = 1};
  const size_t outputs = (size_t)(s->num_tokens + s->num_durations);
  add_tensor(&all, rng, "pred.emb.weight", (size_t)s->num_tokens + s->padded, s->embed);
  if (s->twins > 0) copy_twins(&all, (size_t)s->num_tokens, s->embed, (size_t)s->twins);
  if (s->num_layers == 0) {
    add_tensor(&all, rng, "pred.conv.weight", s->predictor, (size_t)s->context_size * s->embed);
    scale_last(&all, s->predictor * (size_t)s->context_size * s->embed, 4);
    if (test_below(rng, 2)) add_tensor(&all, rng, "pred.conv.bias", s->predictor, 0);
  }
  for (int l = 0; l < s->num_layers; l++) {
    static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (int i = 0; i < 4; i++) {
      snprintf(name, sizeof name, "pred.lstm.%s_l%d", kinds[i], l);
      add_tensor(&all, rng, name, 4 * s->predictor,
                 i > 1              ? 0
                 : i == 0 && l == 0 ? s->embed
                                    : s->predictor);
    }
  }
  add_tensor(&all, rng, "joiner.enc.weight", s->joiner, s->encoder);
  scale_last(&all, s->joiner * s->encoder, 3);
  if (test_below(rng, 2)) add_tensor(&all, rng, "joiner.enc.bias", s->joiner, 0);
  add_tensor(&all, rng, "joiner.pred.weight", s->joiner, s->predictor);
  scale_last(&all, s->joiner * s->predictor, 4);
  if (test_below(rng, 2)) add_tensor(&all, rng, "joiner.pred.bias", s->joiner, 0);
  add_tensor(&all, rng, "joiner.out.weight", outputs, s->joiner);
  scale_last(&all, outputs * s->joiner, 6);
  if (s->twins > 0) copy_twins(&all, outputs, s->joiner, (size_t)s->twins);
  if (test_below(rng, 2) && s->twins == 0) add_tensor(&all, rng, "joiner.out.bias", outputs, 0);
  snprintf(path, sizeof path, "%s.safetensors", test_temp_path("transducer"));
  write_tensors(&all, path);
  wf_transducer_options_init(&options);
  options.activation = 1 + (int)test_below(rng, 2);
  assert_ok(wf_transducer_open(path, &options, &model, &err));
  return model;
}

/* Encoder outputs of any dtype, with a stride. The caller frees `data`. */
static inline wf_scores random_encoder_outputs(test_rng *rng, const wf_transducer *model,
                                               int64_t num_frames) {
  static const wf_dtype dtypes[] = {WF_FLOAT32, WF_FLOAT16, WF_BFLOAT16};
  const int32_t columns = model->encoder_size, stride = columns + (int32_t)test_below(rng, 3);
  const wf_dtype dtype = dtypes[test_below(rng, 3)];
  char *data = malloc((size_t)(num_frames * stride + 1) * test_score_size(dtype));
  assert_non_null(data);
  for (int64_t i = 0; i < num_frames * stride; i++)
    test_put_score(data, i, 4 * test_unit(rng) - 2, dtype);
  return (wf_scores){.data = data,
                     .num_frames = num_frames,
                     .num_columns = columns,
                     .stride = stride,
                     .dtype = dtype};
}

#endif
