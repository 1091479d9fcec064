/* warpfst_generation.h - phrases, language models and grammars for models that write tokens one
 * after another: attention decoders of speech recognisers, and large language models. */
#ifndef WARPFST_GENERATION_H
#define WARPFST_GENERATION_H

#include "warpfst_lm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* =========================================================================================
 * Biasing a generator of tokens
 *
 * The generator has a batch of hypotheses, and for each a row of logits, one for every next token.
 * A bias says what each token costs after a hypothesis. The costs are subtracted from the row.
 *
 *   row of logits --wf_bias_add--> row, biased --the generator picks tokens--> wf_bias_advance
 *
 * A hypothesis is a wf_bias_state, which the caller copies when its beams are reordered. The cost
 * of a text is the sum of the costs of its tokens and of its end. Tokens are numbers from 0 on.
 * ========================================================================================= */

/* What a token is, as bits. */
enum {
  WF_TOKEN_ENDS = 1,      /* ends the text */
  WF_TOKEN_SILENT = 2,    /* is no part of the text: it costs nothing and changes no state */
  WF_TOKEN_CONTINUES = 4, /* begins with a letter or digit, and goes on with the word before */
  WF_TOKEN_BREAKS = 8     /* does not end with a letter or digit: after it a word may begin */
};

/* The texts and kinds of a generator's tokens. Immutable, any thread. */
typedef struct wf_token_texts wf_token_texts;
/* Text i is bytes[offsets[i]] .. bytes[offsets[i + 1] - 1], a part of UTF-8, in which a space
 * stands between words; offsets [num_tokens + 1]. kinds [num_tokens]. The arrays are copied.
 * Errors: offsets that decrease, more than 2^30 tokens. */
WF_API wf_status wf_token_texts_create(const char *bytes, const uint64_t *offsets,
                                       const uint8_t *kinds, size_t num_tokens,
                                       wf_token_texts **out, wf_error *err);
WF_API void wf_token_texts_free(wf_token_texts *texts);
/* Makes a grammar of tokens of one of bytes: an acceptor that accepts each sequence of tokens whose
 * texts together are accepted, at the same cost. Labels of `bytes` are a byte + 1, labels of the
 * result a token + 1. `bytes` must be deterministic and without epsilons. Tokens that are silent,
 * end the text, or have no text are in no such sequence. The work is that of all tokens that each
 * state of `bytes` accepts. Errors: another label; epsilons, or two arcs of a state with the same
 * label. */
WF_API wf_status wf_token_texts_to_fst(const wf_token_texts *texts, const wf_fst *bytes,
                                       wf_fst **out, wf_error *err);

/* What a bias is made of. Set up with wf_bias_parts_init. */
typedef struct wf_bias_parts {
  size_t struct_size;
  const wf_token_texts *tokens;
  /* Of phrases, n-gram models of tokens, or a chain of these; NULL: none. Its labels are a token +
   * 1. A phrase counts if no continuing token follows it. A phrase whose first label is
   * num_tokens + 1 counts, with its other labels, at the start and after tokens that break and are
   * in no phrase. */
  const wf_scorer *scorer;
  /* An n-gram model of words; NULL: none. Each word costs lm_scale times its cost when the token
   * after it ends it. In advance, its tokens cost the least that words with this beginning cost
   * after no history. Words are what is between spaces in `lm_texts`. */
  const wf_lm *lm;
  const wf_token_texts *lm_texts; /* as the model writes words; NULL: `tokens` */
  float lm_scale;                 /* above 0 */
  /* Allowed texts, an acceptor of labels token + 1; NULL: all. It must be deterministic, without
   * epsilons. Only where it ends may the text end, and the cost of an arc is that of the token. */
  const wf_fst *grammar;
  /* A bias whose model of words and grammar are used where this one has none, and whose tables of
   * the same n-gram models are shared; NULL: none. For lists that differ between requests. */
  const struct wf_bias *base;
} wf_bias_parts;
WF_DECLARE_INIT(bias_parts)

typedef struct wf_bias wf_bias; /* immutable, any thread */
/* Errors: WF_ERR_UNSUPPORTED for a scorer that is not of phrases or of n-grams, or a chain of more
 * than three; WF_ERR_ARGUMENT for a grammar that is not as said, a token outside of the table,
 * lm_scale that is not above 0. */
WF_API wf_status wf_bias_create(const wf_bias_parts *parts, wf_bias **out, wf_error *err);
WF_API void wf_bias_free(wf_bias *bias);

/* A hypothesis. Plain numbers, which belong to one bias; equal ones have the same costs from here
 * on. */
typedef struct wf_bias_state {
  uint64_t context; /* of the scorer */
  uint32_t history; /* of the model of words: its state */
  uint32_t word;    /* and the beginning of a word */
  uint32_t grammar; /* state; UINT32_MAX: the text is not in the grammar */
  uint32_t ended;   /* 1: a token has ended the text; further tokens cost nothing */
} wf_bias_state;

/* The state of no tokens. */
WF_API wf_bias_state wf_bias_start(const wf_bias *bias);
/* Follows tokens[i] from states[i] in place, for each of `count` hypotheses. costs (may be NULL)
 * [count] receives the costs of the tokens; +infinity: not allowed. Tokens that the table lacks are
 * silent. Errors: a negative token. */
WF_API wf_status wf_bias_advance(const wf_bias *const *biases, wf_bias_state *states,
                                 const int32_t *tokens, size_t count, float *costs, wf_error *err);
/* Subtracts from logits[i * stride] .. logits[i * stride + width - 1] the costs of the tokens after
 * states[i], for each of `count` hypotheses: minus infinity stands where a token is not allowed.
 * Columns that the token table lacks are silent tokens; a grammar allows none of these. A token
 * that costs 0 keeps the bits of its logit. num_threads 0: one per processor. Errors: fewer columns
 * than tokens. */
WF_API wf_status wf_bias_add(const wf_bias *const *biases, const wf_bias_state *states,
                             size_t count, float *logits, size_t width, size_t stride,
                             int32_t num_threads, wf_error *err);

/* =========================================================================================
 * On a GPU
 *
 * Logits that are in a GPU's memory stay there, and so do the states. One launch is a step of the
 * whole batch:
 *
 *   logits --wf_bias_batch_step--> logits, biased --the generator picks tokens--> the next step
 *
 * Costs and logits are those of wf_bias_advance and wf_bias_add, bit for bit.
 * ========================================================================================= */

/* A bias in the memory of a GPU. Immutable, any thread; it needs the bias no longer. */
typedef struct wf_bias_gpu wf_bias_gpu;
/* device: "cuda" or "cuda:N". base: NULL, or the same of the bias's base, with which the models,
 * the grammar and the table of tokens are shared. Errors: WF_ERR_DEVICE without a GPU,
 * WF_ERR_MEMORY, WF_ERR_ARGUMENT for a base on another GPU. */
WF_API wf_status wf_bias_gpu_create(const wf_bias *bias, const char *device,
                                    const wf_bias_gpu *base, wf_bias_gpu **out, wf_error *err);
WF_API void wf_bias_gpu_free(wf_bias_gpu *bias);

/* The states of a batch of hypotheses in the memory of a GPU. Not for several threads at once, and
 * its steps must follow each other: in one stream, or in streams that wait for each other. */
typedef struct wf_bias_batch wf_bias_batch;
/* Hypothesis i has no tokens and follows biases[i], for each of `count`, all on one GPU. The batch
 * keeps the biases. Errors: none, or on several GPUs; WF_ERR_MEMORY. */
WF_API wf_status wf_bias_batch_create(wf_bias_gpu *const *biases, size_t count, wf_bias_batch **out,
                                      wf_error *err);
WF_API void wf_bias_batch_free(wf_bias_batch *batch);

/* What a step does, in this order. Pointers are to the GPU's memory. Set up with
 * wf_bias_step_init. */
typedef struct wf_bias_step {
  size_t struct_size;
  /* [count] hypothesis i goes on from what was hypothesis places[i]; NULL: from i. Where there was
   * none, it has no tokens again, if the batch began with a hypothesis i; else it has ended. */
  const void *places;
  /* [count] the token that hypothesis i is continued with; NULL: none. A number that the table
   * lacks, or below 0, is silent. */
  const void *tokens;
  int32_t index_bytes; /* of each place and token: 4 or 8 */
  size_t count;        /* number of hypotheses; without places as many as before */
  float *costs;        /* [count] receives the costs of the tokens; NULL: not wanted */
  float *logits;       /* [count * stride] as in wf_bias_add; NULL: none */
  size_t width, stride;
  void *stream; /* a cudaStream_t */
} wf_bias_step;
WF_DECLARE_INIT(bias_step)
/* Launches a step. Waits only if there are more hypotheses than ever before. Errors: fewer columns
 * than tokens, index_bytes, another number of hypotheses without places; WF_ERR_MEMORY. */
WF_API wf_status wf_bias_batch_step(wf_bias_batch *batch, const wf_bias_step *step, wf_error *err);
/* Copies the states to states [number of hypotheses], after the work in the stream. Waits. */
WF_API wf_status wf_bias_batch_copy_states(const wf_bias_batch *batch, void *stream,
                                           wf_bias_state *states, wf_error *err);

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_GENERATION_H */
