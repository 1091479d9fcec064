/* bias_gpu.h - what bias_gpu.c and bias_batch.c do for the rest of the library. */
#ifndef WF_CUDA_GENERATION_BIAS_GPU_H
#define WF_CUDA_GENERATION_BIAS_GPU_H

#include <stdatomic.h>

#include "cuda/device/device_memory.h"
#include "cuda/generation/bias_kernels.h"
#include "cuda/scorer/upload_models.h"
#include "generation/bias.h"
#include "generation/bias_device.h"

extern const struct wf__device_bias wf__cuda_bias;

/* Arrays in a GPU's memory that several biases share. */
typedef struct wf__bias_table {
  atomic_uint_fast32_t refs;
  /* What it was made of, which it keeps: one of these, or none for phrases. */
  wf_token_texts *tokens;
  wf__ngram_rows *ngrams;
  wf__bias_words *words;
  wf_fst *grammar;
  char *memory;
  wf__gpu_models models; /* a language model, or none */
  /* Views of them with pointers to the GPU's memory. */
  wf__gpu_bias there; /* only what it is made of */
} wf__bias_table;

enum { WF__TABLE_TOKENS, WF__TABLE_WORDS, WF__TABLE_GRAMMAR, WF__TABLE_PARTS };
struct wf_bias_gpu {
  atomic_uint_fast32_t refs;
  int device;
  uint32_t num_tokens;
  wf_bias_state start;
  wf__bias_table *tables[WF__TABLE_PARTS + WF__FLAT_PARTS]; /* NULL: none */
  wf__gpu_bias *there;
};

/* bias_upload.c: makes a table of a part of a bias on the current GPU, `device`. */
wf_status wf__bias_table_create(const wf_bias *bias, int which, int device, wf__bias_table **out,
                                wf_error *err);
/* Was it made of this part of `bias`? */
bool wf__bias_table_is_of(const wf__bias_table *table, const wf_bias *bias, int which);
void wf__bias_table_free(wf__bias_table *table);

/* bias_gpu.c */
wf_status wf__bias_gpu_create(const wf_bias *bias, const char *device, const wf_bias_gpu *base,
                              wf_bias_gpu **out, wf_error *err);
wf_bias_gpu *wf__bias_gpu_ref(wf_bias_gpu *bias);
void wf__bias_gpu_free(wf_bias_gpu *bias);

/* bias_batch.c */
wf_status wf__bias_batch_create(wf_bias_gpu *const *biases, size_t count, wf_bias_batch **out,
                                wf_error *err);
void wf__bias_batch_free(wf_bias_batch *batch);
wf_status wf__bias_batch_step(wf_bias_batch *batch, const wf_bias_step *step, wf_error *err);
wf_status wf__bias_batch_copy_states(const wf_bias_batch *batch, void *stream,
                                     wf_bias_state *states, wf_error *err);

#endif
