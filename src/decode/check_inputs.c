/* check_inputs.c - do scores fit the graph, and graph, options and encoder outputs a transducer? */
#include <stdio.h>

#include "decode/decoder.h"

static bool check_matrix(const wf_scores *scores, wf_result *result) {
  result->num_frames = scores->num_frames;
  if (scores->num_frames >= 0 && scores->dtype >= WF_FLOAT32 && scores->dtype <= WF_BFLOAT16 &&
      scores->num_frames <= INT32_MAX && scores->num_columns >= 0 &&
      scores->stride >= scores->num_columns && (scores->data != NULL || scores->num_frames == 0))
    return true;
  result->status = WF_ERR_ARGUMENT;
  snprintf(result->message, sizeof result->message,
           "invalid scores: %lld frames, %d columns, stride %lld", (long long)scores->num_frames,
           scores->num_columns, (long long)scores->stride);
  return false;
}

/* May a model with `num_tokens` tokens have so many columns? Up to SPECIALS tokens that the table
 * leaves out, such as <s>, and padding to a multiple of 8, 16, 32, 64 or 128, as for tensor cores.
 */
static bool is_padded(int32_t num_columns, int32_t num_tokens) {
  enum { SPECIALS = 4 };
  if (num_columns <= num_tokens + SPECIALS) return true;
  for (int32_t multiple = 8; multiple <= 128; multiple *= 2)
    if (num_columns % multiple == 0 && num_columns - multiple < num_tokens + SPECIALS) return true;
  return false;
}

bool wf__check_scores(const wf_decoder *decoder, const wf_scores *scores, wf_result *result) {
  enum { OFF = 2 }; /* of check_scores */
  const wf_graph *graph = decoder->graph;
  int32_t needed = graph->min_columns;
  if (!check_matrix(scores, result)) return false;
  if (scores->num_frames > 0 && scores->num_columns < needed) {
    result->status = WF_ERR_ARGUMENT;
    snprintf(result->message, sizeof result->message,
             "scores have %d columns, the graph reads column %d (input labels up to %d)%s",
             scores->num_columns, needed - 1, graph->num_labels - 1,
             scores->num_frames == graph->num_tokens
                 ? "; are they transposed? [frames, columns] is expected"
                 : "");
    return false;
  }
  bool transposed = scores->num_frames == graph->num_tokens; /* wf__scores_look_right looks */
  if (scores->num_frames > 0 && graph->num_tokens > 0 && !transposed &&
      decoder->options.check_scores != OFF && !is_padded(scores->num_columns, graph->num_tokens)) {
    result->status = WF_ERR_ARGUMENT;
    snprintf(result->message, sizeof result->message,
             "scores have %d columns, the graph has %d tokens: are they scores of another model? "
             "4 more are allowed, and padding to a multiple of 8, 16, 32, 64 or 128; "
             "check_scores=off allows any",
             scores->num_columns, graph->num_tokens);
    return false;
  }
  return true;
}

static wf_status check_tokens(const wf_transducer *model, const wf_graph *graph, wf_error *err) {
  if (graph->num_tokens > 0 && graph->num_tokens != model->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the graph has %d tokens, the transducer %d",
                    graph->num_tokens, model->num_tokens);
  if (graph->min_columns > model->num_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the graph reads column %d, the transducer has %d tokens",
                    graph->min_columns - 1, model->num_tokens);
  if (graph->blank_column >= 0 && graph->blank_column != model->blank)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the blank is column %d of the graph and column %d of the transducer",
                    graph->blank_column, model->blank);
  for (uint64_t a = 0; a < graph->view.num_arcs; a++) {
    int32_t label = graph->view.arcs[a].ilabel;
    if (label > 0 && graph->columns[label] == model->blank) return WF_OK;
  }
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the graph has no arc of the blank (column %d), which ends a frame; topology "
                  "transducer makes them",
                  model->blank);
}

/* The name of an option that transducers do not have; NULL: none is set. */
static const char *unsupported(const wf_decoder_options *options) {
  if (options->blank_skip_threshold < 1) return "blank_skip_threshold";
  return options->recombine == WF_RECOMBINE_STATE ? "recombine=state" : NULL;
}

wf_status wf__check_transducer(const wf_transducer *model, const wf_graph *graph,
                               wf_decoder_options *options, const wf__devices *devices,
                               wf_error *err) {
  const char *name = unsupported(options);
  if (name != NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "%s is not available with a transducer", name);
  if (devices->cuda && model->network == NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "device %s: a transducer behind functions needs device cpu", options->device);
  if (options->blank >= 0 && options->blank != model->blank)
    return wf__fail(err, WF_ERR_ARGUMENT, "blank is %d, the transducer's is column %d",
                    options->blank, model->blank);
  options->blank = model->blank;
  return check_tokens(model, graph, err);
}

bool wf__check_encoder_outputs(const wf_transducer *model, const wf_scores *scores,
                               wf_result *result) {
  if (!check_matrix(scores, result)) return false;
  if (scores->num_frames == 0 || scores->num_columns == model->encoder_size) return true;
  result->status = WF_ERR_ARGUMENT;
  snprintf(result->message, sizeof result->message,
           "the encoder outputs have %d columns, the transducer expects %d%s", scores->num_columns,
           model->encoder_size,
           scores->num_frames == model->encoder_size
               ? "; are they transposed? [frames, encoder size] is expected"
               : "");
  return false;
}
