/* decoder.c - the public decoder: checks each utterance, hands the batch to a backend. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/device.h"
#include "base/option_tables.h"
#include "decode/decoder.h"
#include "decode/stream.h"

/* The blank is the option's, else the graph's. Both must agree, unless the graph's is a guess. */
static wf_status take_blank(wf_decoder *decoder, wf_error *err) {
  wf_decoder_options *options = &decoder->options;
  const int32_t known = decoder->graph->blank_column;
  if (options->blank < 0) options->blank = known;
  const bool is_read = options->blank_penalty != 0 || options->blank_skip_threshold != 1;
  if (options->blank >= decoder->graph->min_columns && (is_read || decoder->graph->min_columns > 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "blank is column %d, but the graph reads columns 0 to %d",
                    options->blank, decoder->graph->min_columns - 1);
  if (known >= 0 && options->blank != known) {
    static const char format[] =
        "blank is column %d, but the blank of the graph is column %d; leave the option out to take "
        "the graph's";
    if (decoder->graph->blank_is_stored)
      return wf__fail(err, WF_ERR_ARGUMENT, format, options->blank, known);
    wf__log(WF_LOG_WARNING, format, options->blank, known);
  }
  if (is_read && options->blank < 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "blank_penalty and blank_skip_threshold need a blank, and the graph does not "
                    "tell it: set the option blank (the column of the blank)");
  return WF_OK;
}

/* The start of tokens alone in blocks (graph/tokens_graph.c) leads to a state of each block without
 * cost, and so does every token. They take their places before any other state. */
static void check_max_active(const wf_decoder *decoder) {
  enum { OFF = 2 /* of check_scores */, MANY = 256 };
  const wf_fst_view *view = &decoder->graph->view;
  const int32_t max_active = decoder->options.max_active;
  uint64_t count = 0;
  if (view->start < 0 || decoder->transducer != NULL || decoder->options.check_scores == OFF)
    return;
  for (uint64_t i = view->arc_off[view->start]; i < view->arc_off[view->start + 1]; i++)
    count += view->arcs[i].ilabel == 0 && view->arcs[i].weight == 0;
  if (count < MANY || (uint64_t)max_active > count) return;
  wf__log(WF_LOG_WARNING,
          "max_active=%d is too small for this graph: its start leads to %llu states without cost, "
          "which take these places first. Set it to what another graph needs and %llu more "
          "(check_scores=off: no such warnings)",
          (int)max_active, (unsigned long long)count, (unsigned long long)count + 1);
}

/* The options of the search, on any device: its beams are on the scale of the sum of costs. A
 * transducer's are given in nats of its model (docs/reference/transducers.md). */
static wf_decoder_options searched_with(const wf_decoder *decoder) {
  wf_decoder_options options = decoder->options;
  if (decoder->transducer == NULL || options.acoustic_scale == 0) return options;
  options.beam *= options.acoustic_scale;
  if (options.lattice_beam > 0) /* 0 would mean no lattices */
    options.lattice_beam = fmaxf(options.lattice_beam * options.acoustic_scale, FLT_MIN);
  return options;
}

static wf_status open_search(wf_decoder *decoder, wf_error *err) {
  const wf_decoder_options *options = &decoder->options;
  wf__devices devices = {0};
  WF__TRY(wf__devices_parse(options->device, &devices, err));
  if (decoder->transducer != NULL)
    WF__TRY(wf__check_transducer(decoder->transducer, decoder->graph, &decoder->options, &devices,
                                 err));
  WF__TRY(take_blank(decoder, err));
  wf__decoder_limits(&decoder->options, decoder->graph);
  check_max_active(decoder);
  if (options->recombine == WF_RECOMBINE_STATE && options->lattice_beam > 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "lattices need recombine=pair: recombine=state merges paths that the lattice "
                    "must keep apart");
  decoder->backend = &wf__host_backend;
  if (devices.cuda && decoder->transducer == NULL) { /* a transducer's search is on the CPU */
    const wf__device *gpu = wf__device_find(options->device, err);
    if (gpu == NULL) return WF_ERR_DEVICE;
    decoder->backend = gpu->search;
  }
  const wf_decoder_options searched = searched_with(decoder);
  return decoder->backend->open(decoder->graph, decoder->transducer, &searched, &decoder->search,
                                err);
}

static wf_status create(const wf_graph *graph, const wf_transducer *transducer,
                        const wf_decoder_options *options, wf_decoder **out, wf_error *err) {
  *out = NULL;
  wf_decoder *decoder = wf__calloc(1, sizeof *decoder);
  if (decoder == NULL) return wf__fail_memory(err, sizeof *decoder, "a decoder");
  atomic_init(&decoder->refs, 1);
  atomic_init(&decoder->abandoned, NULL);
  decoder->graph = wf_graph_ref(graph);
  decoder->transducer = wf_transducer_ref(transducer);
  wf_status status = wf__options_take(wf__decoder_table(), options, &decoder->options, err);
  if (status == WF_OK) status = open_search(decoder, err);
  if (status != WF_OK) {
    wf_decoder_free(decoder);
    return status;
  }
  *out = decoder;
  return WF_OK;
}

wf_status wf_decoder_create(const wf_graph *graph, const wf_decoder_options *options,
                            wf_decoder **out, wf_error *err) {
  return create(graph, NULL, options, out, err);
}

wf_status wf_decoder_create_transducer(const wf_graph *graph, const wf_transducer *model,
                                       const wf_decoder_options *options, wf_decoder **out,
                                       wf_error *err) {
  if (model != NULL) return create(graph, model, options, out, err);
  *out = NULL;
  return wf__fail(err, WF_ERR_ARGUMENT, "no transducer given");
}

wf_decoder *wf__decoder_ref(wf_decoder *decoder) {
  atomic_fetch_add(&decoder->refs, 1);
  return decoder;
}

void wf_decoder_free(wf_decoder *decoder) {
  if (decoder == NULL || atomic_fetch_sub(&decoder->refs, 1) != 1) return;
  wf__streams_sweep(decoder);
  if (decoder->search != NULL) decoder->backend->close(decoder->search);
  wf__determinizers_free(decoder->determinizers);
  wf__score_check_free(&decoder->check);
  wf_scorer_free(decoder->scorer);
  wf_transducer_free(decoder->transducer);
  wf_graph_free(decoder->graph);
  free(decoder);
}

wf_status wf_decoder_set_stream(wf_decoder *decoder, void *stream, wf_error *err) {
  return decoder->backend->set_stream(decoder->search, stream, err);
}

void wf_decoder_get_plan(const wf_decoder *decoder, wf_plan *out) {
  *out = (wf_plan){0};
  if (decoder->backend->planned != NULL) decoder->backend->planned(decoder->search, out);
}

void wf_decoder_get_lm_stats(const wf_decoder *decoder, wf_lm_stats *out) {
  *out = (wf_lm_stats){0};
  if (decoder->backend->lm_stats != NULL) decoder->backend->lm_stats(decoder->search, out);
}

void wf_decoder_get_transducer_stats(const wf_decoder *decoder, wf_transducer_stats *out) {
  *out = (wf_transducer_stats){0};
  if (decoder->backend->transducer_stats != NULL)
    decoder->backend->transducer_stats(decoder->search, out);
}

wf_status wf__check_graph(const wf_decoder *decoder, const wf_graph *graph, wf_error *err) {
  if (graph == NULL || graph == decoder->graph) return WF_OK;
  if (graph->base != decoder->graph)
    return wf__fail(
        err, WF_ERR_ARGUMENT,
        "the graph of an utterance must be its decoder's graph, or that graph with added words");
  if (decoder->transducer != NULL && !graph->classes->once)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "added words: the classes of the graph are those of CTC; a transducer needs a "
                    "graph of topology transducer");
  return decoder->backend->check_graph != NULL ? decoder->backend->check_graph(graph, err) : WF_OK;
}

wf_status wf__check_scorer(const wf_decoder *decoder, const wf_graph *graph,
                           const wf_scorer *scorer, wf_error *err) {
  if (scorer == NULL || decoder->backend->check_scorer == NULL) return WF_OK;
  return decoder->backend->check_scorer(graph != NULL ? graph : decoder->graph, &decoder->options,
                                        scorer, err);
}

wf_status wf_decoder_set_scorer(wf_decoder *decoder, const wf_scorer *scorer, wf_error *err) {
  WF__TRY(wf__check_scorer(decoder, NULL, scorer, err));
  wf_scorer *old = decoder->scorer;
  decoder->scorer = wf_scorer_ref(scorer);
  wf_scorer_free(old);
  return WF_OK;
}

wf_status wf_decoder_set_determinization(wf_decoder *decoder,
                                         const wf_lattice_determinize_options *options,
                                         wf_error *err) {
  decoder->determinizing.struct_size = decoder->lattice_results.struct_size = 0;
  if (options == NULL) return WF_OK;
  if (decoder->options.lattice_beam <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the decoder makes no lattices: lattice_beam is 0");
  wf_lattice_determinize_options taken;
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &taken, err));
  if (decoder->determinizers == NULL)
    WF__TRY(wf__determinizers_create(&decoder->determinizers, err));
  decoder->determinizing = taken;
  return WF_OK;
}

wf_status wf_decoder_set_lattice_results(wf_decoder *decoder,
                                         const wf_lattice_results_options *options, wf_error *err) {
  decoder->lattice_results.struct_size = 0;
  if (options == NULL) return WF_OK;
  if (decoder->determinizing.struct_size == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "results of lattices need determinization: call "
                    "wf_decoder_set_determinization first");
  WF__TRY(wf__options_take(wf__lattice_results_table(), options, &decoder->lattice_results, err));
  if (decoder->lattice_results.confidence_scale == 0)
    decoder->lattice_results.confidence_scale =
        wf_confidence_scale(decoder->options.acoustic_scale);
  return WF_OK;
}

/* --- one batch --------------------------------------------------------------------------- */

/* The parts of the utterances as the backends need them: one array for each part. */
struct parts {
  wf_scores *scores;
  bool *skip;
  const wf_scorer **scorers; /* NULL: no utterance has a scorer */
  const wf_graph **graphs;   /* NULL: no utterance has its own graph */
};

static void free_parts(struct parts *parts) {
  free(parts->scores);
  free(parts->skip);
  free(parts->scorers);
  free(parts->graphs);
}

static wf_status take_parts(const wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                            struct parts *parts, wf_error *err) {
  bool any_scorer = decoder->scorer != NULL, any_graph = false;
  for (size_t i = 0; i < count; i++) {
    any_scorer = any_scorer || utterances[i].scorer != NULL;
    any_graph = any_graph || utterances[i].graph != NULL;
    WF__TRY(wf__check_graph(decoder, utterances[i].graph, err));
  }
  parts->scores = wf__alloc(count, sizeof *parts->scores);
  parts->skip = wf__calloc(count, sizeof *parts->skip);
  if (any_scorer) parts->scorers = wf__alloc(count, sizeof *parts->scorers);
  if (any_graph) parts->graphs = wf__alloc(count, sizeof *parts->graphs);
  if (parts->scores == NULL || parts->skip == NULL || (any_scorer && parts->scorers == NULL) ||
      (any_graph && parts->graphs == NULL))
    return wf__fail_memory(err, count * sizeof *parts->scores, "a batch");
  for (size_t i = 0; i < count; i++) {
    const wf_utterance *u = &utterances[i];
    parts->scores[i] = u->scores;
    if (any_graph) parts->graphs[i] = u->graph;
    if (!any_scorer) continue;
    parts->scorers[i] = u->scorer != NULL ? u->scorer : decoder->scorer;
    WF__TRY(wf__check_scorer(decoder, u->graph, parts->scorers[i], err));
  }
  return WF_OK;
}

/* Makes a result for each utterance. Utterances whose scores cannot be decoded fail and are
 * skipped. */
static wf_status make_results(wf_decoder *decoder, struct parts *parts, size_t count,
                              wf_result **results, wf_error *err) {
  for (size_t i = 0; i < count; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) return wf__fail_memory(err, sizeof **results, "a result");
    parts->skip[i] =
        decoder->transducer != NULL
            ? !wf__check_encoder_outputs(decoder->transducer, &parts->scores[i], results[i])
            : !wf__check_scores(decoder, &parts->scores[i], results[i]) ||
                  !wf__scores_look_right(decoder, &parts->scores[i], results[i]);
  }
  return WF_OK;
}

wf_status wf_decode(wf_decoder *decoder, const wf_utterance *utterances, size_t count,
                    const wf_progress *progress, wf_result **results, wf_error *err) {
  struct parts parts = {0};
  wf__streams_sweep(decoder);
  memset(results, 0, count * sizeof *results);
  wf_status status = take_parts(decoder, utterances, count, &parts, err);
  if (status == WF_OK) status = make_results(decoder, &parts, count, results, err);
  wf__batch batch = {.scores = parts.scores,
                     .skip = parts.skip,
                     .scorers = parts.scorers,
                     .graphs = parts.graphs,
                     .count = count,
                     .results = results,
                     .progress = progress,
                     .complete_beam = decoder->options.lattice_beam};
  if (decoder->determinizing.struct_size > 0) {
    batch.determinizing = &decoder->determinizing;
    batch.determinizers = decoder->determinizers;
    if (decoder->lattice_results.struct_size > 0) batch.lattice_results = &decoder->lattice_results;
  }
  if (status == WF_OK) status = decoder->backend->decode(decoder->search, &batch, err);
  for (size_t i = 0; i < count && status == WF_OK; i++) wf__check_search(decoder, results[i]);
  if (status != WF_OK) {
    for (size_t i = 0; i < count; i++) {
      wf_result_free(results[i]);
      results[i] = NULL;
    }
  }
  free_parts(&parts);
  return status;
}
