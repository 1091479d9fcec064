/* bias_kernels.h - a step of a batch of hypotheses. Plain C, shared by bias_gpu.c and
 * bias_kernels.cu.
 *
 *   lists   tokens that cost something else than the others, of a node of phrases or a state of an
 *           n-gram model. The long ones are sorted, with the place of the first entry of each chunk
 *           of columns
 *   chunk   WF__BIAS_COLUMNS columns, which a block works on at a time */
#ifndef WF_CUDA_GENERATION_BIAS_KERNELS_H
#define WF_CUDA_GENERATION_BIAS_KERNELS_H

#include "generation/bias_view.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WF__BIAS_THREADS /* tests set less */
#define WF__BIAS_THREADS 256
#define WF__BIAS_LISTED 256 /* entries of a list that has no places of chunks */
#define WF__BIAS_LEVELS 8   /* lists of a hypothesis that are kept in shared memory */
#endif
enum { WF__BIAS_COLUMNS = 8 * WF__BIAS_THREADS };

typedef struct wf__bias_entry {
  uint32_t token, value; /* phrases: the node that it leads to; n-grams: bits of the arc's cost */
} wf__bias_entry;
typedef struct wf__bias_list {
  uint64_t first; /* entry */
  uint32_t count, index;
} wf__bias_list;

/* Arrays for the tokens are readable up to a multiple of 4; kinds there are silent. */
typedef struct wf__bias_part {
  const wf__bias_list *lists; /* [nodes or states] without special tokens */
  const wf__bias_entry *entries;
  const uint32_t *index; /* of a long list: [chunks of the tokens + 1] entries before each chunk */
  const float *unigrams; /* n-grams: [num_tokens] */
} wf__bias_part;

/* Constant while a batch has it. All pointers are to the GPU's memory. */
typedef struct wf__gpu_bias {
  wf__bias_view view;
  wf__bias_part parts[WF__FLAT_PARTS];
  const uint8_t *classes, *heads; /* words: [num_tokens] WF__TOKEN_BEGINS ..., the first byte */
  const float *begins;            /* as in wf__bias_words */
} wf__gpu_bias;

typedef struct wf__gpu_hypothesis {
  wf_bias_state state;
  const wf__gpu_bias *bias;
} wf__gpu_hypothesis;

/* Of a row: costs of ending the text, and the word that has begun. */
typedef struct wf__bias_ends {
  float text, word;
} wf__bias_ends;

typedef struct wf__bias_work {
  const wf__gpu_hypothesis *from;  /* [num_before] */
  const wf__gpu_hypothesis *first; /* [num_first] without tokens */
  wf__gpu_hypothesis *to;          /* [count]; `from` if there are neither places nor tokens */
  wf__bias_ends *ends;             /* [count] */
  uint32_t *passes;                /* [count] rows of which all columns change */
  uint32_t *num_passes;            /* 0 before */
  uint32_t *next_num_passes;       /* becomes 0 */
  const void *places, *tokens;
  float *costs, *logits;
  uint64_t width, stride;
  uint32_t num_before, num_first, count, index_bytes;
} wf__bias_work;

/* Both return a cudaError_t. Blocks that the current GPU runs at a time. */
int wf__bias_most_blocks(uint32_t *out);
int wf__bias_step_launch(const wf__bias_work *work, uint32_t most_blocks, void *stream);

#ifdef __cplusplus
}
#endif
#endif
