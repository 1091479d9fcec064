/* cmd_plan.c - `warpfst plan`: computes the GPU memory of a batch of utterances or of open streams.
 * The GPU need not be present. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "commands.h"

struct request {
  int64_t utterances, frames, streams, processors;
  bool scored, on_device, json;
};

static void put(const struct request *request, bool first, const char *name, uint64_t value) {
  if (request->json)
    printf("%s\"%s\": %" PRIu64, first ? "{" : ", ", name, value);
  else if (value == UINT64_MAX)
    printf("%-18s not known\n", name);
  else
    printf("%-18s %" PRIu64 "\n", name, value);
}

static wf_status plan_streams(const struct request *request, const wf_graph *graph,
                              const wf_decoder_options *options, wf_error *err) {
  const wf_stream_shape shape = {.num_streams = (size_t)request->streams,
                                 .scored = request->scored,
                                 .num_processors = (int32_t)request->processors};
  wf_stream_plan plan;
  const wf_status status = wf_plan_streams(graph, options, &shape, &plan, err);
  if (status != WF_OK) return status;
  put(request, true, "graph_bytes", plan.graph_bytes);
  put(request, false, "lane_bytes", plan.lane_bytes);
  put(request, false, "stream_bytes", plan.stream_bytes);
  put(request, false, "total_bytes", plan.total_bytes);
  put(request, false, "available_bytes", plan.available_bytes);
  put(request, false, "pinned_bytes", plan.pinned_bytes);
  put(request, false, "max_streams", plan.max_streams);
  put(request, false, "gpus", (uint64_t)plan.num_gpus);
  put(request, false, "lanes", (uint64_t)plan.num_lanes);
  put(request, false, "max_chunks", (uint64_t)plan.max_chunks);
  return WF_OK;
}

static wf_status plan_batch(const struct request *request, const wf_graph *graph,
                            const wf_decoder_options *options, wf_error *err) {
  const wf_batch_shape shape = {.num_utterances = (size_t)request->utterances,
                                .max_frames = request->frames,
                                .on_device = request->on_device,
                                .num_processors = (int32_t)request->processors};
  wf_plan plan;
  const wf_status status = wf_plan_batch(graph, options, &shape, &plan, err);
  if (status != WF_OK) return status;
  put(request, true, "graph_bytes", plan.graph_bytes);
  put(request, false, "lane_bytes", plan.lane_bytes);
  put(request, false, "trace_bytes", plan.trace_bytes);
  put(request, false, "score_bytes", plan.score_bytes);
  put(request, false, "result_bytes", plan.result_bytes);
  put(request, false, "total_bytes", plan.total_bytes);
  put(request, false, "available_bytes", plan.available_bytes);
  put(request, false, "pinned_bytes", plan.pinned_bytes);
  put(request, false, "gpus", (uint64_t)plan.num_gpus);
  put(request, false, "lanes", (uint64_t)plan.num_lanes);
  put(request, false, "lane_blocks", (uint64_t)plan.lane_blocks);
  return WF_OK;
}

static const cli_rule rules[] = {
    {"utterances", CLI_EXCLUDES, "streams"},
    {"frames", CLI_USELESS_WITHOUT, "utterances"},
    {"on-device", CLI_USELESS_WITHOUT, "utterances"},
    {"scored", CLI_USELESS_WITHOUT, "streams"},
    {NULL, 0, NULL},
};

int cmd_plan(int argc, char **argv) {
  struct request request = {.utterances = -1, .frames = 1000, .streams = -1};
  wf_decoder_options options;
  wf_fst *fst = NULL;
  wf_graph *graph = NULL;
  wf_error err = {0};
  cli_parser parser = {
      .usage = "GRAPH --device=cuda (--utterances N --frames N | --streams N)",
      .about =
          "Computes, without allocating anything on a GPU, the bytes that decoding takes on each "
          "GPU: for a batch, "
          "or for open streams (and how many of these fit).\n"
          "Exit code 4: it does not fit; the message names the option to lower. Examples:\n"
          "  warpfst plan TLG.wfst --device=cuda --streams=5000 --max-tokens=4000\n"
          "  warpfst plan TLG.wfst --device=cuda --utterances=400 --frames=3500 --processors=132 "
          "--gpu-memory=80000000000",
      .min_args = 1,
      .max_args = 1};
  cli_flag_i64(&parser, "utterances", 0, &request.utterances, "N",
               "plan for a batch of this many utterances");
  cli_flag_i64(&parser, "frames", 0, &request.frames, "N",
               "frames of the longest utterance (default: 1000)");
  cli_flag_bool(&parser, "on-device", 0, &request.on_device,
                "the scores of the batch are already on the GPU");
  cli_flag_i64(&parser, "streams", 0, &request.streams, "N",
               "plan for this many open streams (0: as many as fit)");
  cli_flag_bool(&parser, "scored", 0, &request.scored,
                "the streams have scorers (boosts, language models) or added words");
  cli_flag_i64(&parser, "processors", 0, &request.processors, "N",
               "plan for a GPU that is not present: its number of multiprocessors (H200: 132); "
               "also give --gpu-memory");
  cli_flag_bool(&parser, "json", 0, &request.json, "print JSON");
  cli_table(&parser, "decoder", &options);
  cli_flag_range(&parser, "utterances", 0, 1e15);
  cli_flag_range(&parser, "frames", 0, 1e15);
  cli_flag_range(&parser, "streams", 0, 1e15);
  cli_flag_range(&parser, "processors", 0, 100000);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (request.utterances < 0 && request.streams < 0)
    return cli_usage("give --utterances or --streams");
  wf_status status = wf_fst_read(parser.args[0], &fst, &err);
  if (status == WF_OK) status = wf_graph_create(fst, NULL, 0, &graph, &err);
  if (status == WF_OK)
    status = (request.streams >= 0 ? plan_streams : plan_batch)(&request, graph, &options, &err);
  if (status == WF_OK && request.json) printf("}\n");
  if (status != WF_OK) err.code = status;
  wf_graph_free(graph);
  wf_fst_free(fst);
  return status == WF_OK ? CLI_OK : cli_fail(&err);
}
