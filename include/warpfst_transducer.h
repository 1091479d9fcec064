/* warpfst_transducer.h - decoding with transducers (RNN-T, TDT): models whose scores depend on the
 * tokens so far. */
#ifndef WARPFST_TRANSDUCER_H
#define WARPFST_TRANSDUCER_H

#include "warpfst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A predictor and a joiner. docs/reference/transducers.md defines what they compute, and what the
 * decoder makes of it. Immutable, reference counted, any thread. */
typedef struct wf_transducer wf_transducer;

enum { WF_ACTIVATION_FILE, WF_ACTIVATION_TANH, WF_ACTIVATION_RELU };
#define WF_TRANSDUCER_OPTIONS(X)                                                                   \
  X(I32, blank, -1, -1, 2147483647, "column", "column of the blank; -1: as the file says, else 0") \
  X(ENUM, activation, 0, 0, 0, "file|tanh|relu",                                                   \
    "what the joiner does to the sum of encoder and predictor; file: as the file says, else tanh")
WF_DECLARE_OPTIONS(transducer, WF_TRANSDUCER_OPTIONS)

/* Reads a model from a .safetensors file: a stateless or an LSTM predictor, RNN-T or TDT, as the
 * names and shapes of its tensors say. Errors: a missing or malformed file; a tensor that is
 * missing, unknown, of another shape or type than expected, or not finite. */
WF_API wf_status wf_transducer_open(const char *path, const wf_transducer_options *options,
                                    wf_transducer **out, wf_error *err);

/* Rows for a predictor to compute, one for each context. All arrays are packed. */
typedef struct wf_predictor_rows {
  size_t count;
  const int32_t
      *tokens; /* stateless: [count, context_size], oldest first; else [count], the newest */
  const float *states; /* [count, state_size] states before these tokens; NULL: stateless */
  float *outputs;      /* [count, predictor_size], to be filled */
  float *next_states;  /* [count, state_size], to be filled; NULL: stateless */
} wf_predictor_rows;
/* Rows for a joiner to compute. */
typedef struct wf_joiner_rows {
  size_t count;
  const float *encoder;   /* [count, encoder_size] */
  const float *predictor; /* [count, predictor_size] */
  float *logits; /* [count, num_tokens + num_durations], to be filled; not normalised; -infinity:
                    impossible */
} wf_joiner_rows;
/* Functions of the caller. A row must not depend on the others. False: decoding fails with
 * WF_ERR_CANCELLED. */
typedef bool (*wf_predictor_fn)(void *user, const wf_predictor_rows *rows);
typedef bool (*wf_joiner_fn)(void *user, const wf_joiner_rows *rows);

/* A model behind two functions. Set up with wf_transducer_parts_init. */
typedef struct wf_transducer_parts {
  size_t struct_size;
  int32_t num_tokens;    /* with the blank */
  int32_t num_durations; /* of 0, 1, ... frames (TDT); 0: RNN-T */
  int32_t blank;
  int32_t encoder_size, predictor_size;
  int32_t context_size; /* a stateless predictor sees so many tokens, at the start blanks; 0: it has
                           states, zeros before the start, and its first token is the blank */
  int32_t state_size;   /* 0 if stateless */
  wf_predictor_fn predict;
  wf_joiner_fn join;
  void *user; /* borrowed until the model is freed */
} wf_transducer_parts;
WF_DECLARE_INIT(transducer_parts)
/* A decoder calls the functions on the thread that called it, with the rows of all utterances that
 * it searches at that time. Errors: sizes that are not positive
 * or do not fit together, a missing function, a blank that is not a token. */
WF_API wf_status wf_transducer_create(const wf_transducer_parts *parts, wf_transducer **out,
                                      wf_error *err);

typedef struct wf_transducer_info {
  size_t struct_size;
  int32_t num_tokens, num_durations, blank, encoder_size, context_size; /* as above */
  uint64_t num_bytes;
} wf_transducer_info;
WF_DECLARE_INIT(transducer_info)
WF_API wf_status wf_transducer_get_info(const wf_transducer *model, wf_transducer_info *out,
                                        wf_error *err);
WF_API wf_transducer *wf_transducer_ref(const wf_transducer *model);
WF_API void wf_transducer_free(wf_transducer *model);

/* A decoder whose scores are encoder outputs, [frames, encoder_size], of any dtype. The graph's
 * input labels are tokens; arcs of the blank end a frame (topology `transducer` of
 * wf_graph_build). Options: `max_hypotheses`, `max_symbols` and
 * `greedy` are for such decoders; max_active, min_active and max_tokens have no effect. `blank` is
 * the model's. Device `cuda`, `cuda:N` or several: these GPUs compute predictor and joiner, and
 * search batches over tokens alone; else num_threads threads of the CPU search
 * (docs/reference/transducers.md). Outputs may lie in a GPU's memory. Errors: a graph whose tokens
 * are not the model's, or without an arc of the blank; options of CTC, a GPU for a model
 * behind functions (WF_ERR_UNSUPPORTED). */
WF_API wf_status wf_decoder_create_transducer(const wf_graph *graph, const wf_transducer *model,
                                              const wf_decoder_options *options, wf_decoder **out,
                                              wf_error *err);

/* Where the time of a decoder's batches went, over all of them, of models behind functions and on
 * GPUs; on the CPU all are 0. A round searches until all utterances of a group wait for scores, and
 * requests these at once. */
typedef struct wf_transducer_stats {
  uint64_t num_rounds, num_rows, num_contexts; /* rows of the joiner, and of the predictor */
  double search_s; /* threads searched; of batches that GPUs search: made results */
  double submit_s; /* requests were gathered, or encoder outputs sent; models behind functions: and
                      computed */
  double wait_s;   /* nobody searched, because the GPU was not done; or the GPU searched */
  uint64_t reserved[8];
} wf_transducer_stats;
WF_API void wf_decoder_get_transducer_stats(const wf_decoder *decoder, wf_transducer_stats *out);

/* =========================================================================================
 * Old names, which go in 0.4 (docs/migrating/0.3.md)
 * ========================================================================================= */

static inline WF__OLD(wf_decoder_get_transducer_stats) void wf_decoder_transducer_stats(
    const wf_decoder *decoder, wf_transducer_stats *out) {
  wf_decoder_get_transducer_stats(decoder, out);
}

#ifdef __cplusplus
}
#endif
#endif /* WARPFST_TRANSDUCER_H */
