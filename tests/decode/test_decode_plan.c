/* test_decode_plan.c - the memory plan of the GPU decoder, names of devices, padded tensors. None
 * of it needs a GPU. gpu/test_gpu_host.c checks that decoding follows the plan. */
#include "ctc_tasks.h"
#include "plan/gpu_plan.h"

static wf_error err;

static wf_graph *small_graph(int32_t num_columns) {
  test_rng rng = {1};
  test_fst_shape shape = {.num_states = 1000,
                          .num_arcs = 5000,
                          .num_ilabels = num_columns,
                          .num_olabels = 9,
                          .final_share = 0.1f,
                          .max_weight = 2};
  wf_fst *fst = test_random_fst(&rng, &shape);
  wf_graph *graph;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_fst_free(fst);
  return graph;
}

static wf_plan plan_of(const wf_graph *graph, const wf_decoder_options *options,
                       wf_batch_shape shape) {
  wf_plan plan;
  assert_ok(wf_plan_batch(graph, options, &shape, &plan, &err));
  assert_true(plan.total_bytes == plan.graph_bytes + plan.lane_bytes + plan.trace_bytes +
                                      plan.score_bytes + plan.result_bytes);
  return plan;
}

/* The plan of a CTC graph that keeps its token graph is that of the graph with all arcs, which is
 * what the GPU gets. */
static void test_plan_of_token_graph(void **state) {
  (void)state;
  static const char text[] = "<blk> 0\na 1\nb 2\nc 3\nd 4\n";
  wf_symbols *tokens;
  wf_fst *fst;
  wf_graph *graph;
  wf_graph *whole;
  wf_decoder_options options;
  const wf_batch_shape batch = {.num_utterances = 400, .max_frames = 1000, .num_processors = 132};
  const wf_stream_shape streams = {.num_processors = 132};
  assert_ok(wf_symbols_read(test_write_file("tokens", text, sizeof text - 1), &tokens, &err));
  assert_ok(test_tokens_graph(tokens, NULL, WF_TOPOLOGY_AUTO, &fst, &err));
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  whole = ctc_explicit(graph);
  wf_decoder_options_init(&options);
  options.device = "cuda";
  for (int lattices = 0; lattices < 2; lattices++) {
    wf_stream_plan plans[2];
    options.lattice_beam = 8 * (float)lattices;
    const wf_plan one = plan_of(graph, &options, batch), other = plan_of(whole, &options, batch);
    assert_memory_equal(&one, &other, sizeof one);
    assert_ok(wf_plan_streams(graph, &options, &streams, &plans[0], &err));
    assert_ok(wf_plan_streams(whole, &options, &streams, &plans[1], &err));
    assert_memory_equal(&plans[0], &plans[1], sizeof plans[0]);
  }
  wf_graph_free(whole);
  wf_graph_free(graph);
  wf_fst_free(fst);
  wf_symbols_free(tokens);
}

static void test_batch_plan(void **state) {
  (void)state;
  wf_graph *graph = small_graph(100);
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.device = "cuda";
  options.max_tokens = options.max_active = 10000; /* one block for each lane */
  const wf_batch_shape shape = {.num_utterances = 400,
                                .max_frames = 1000,
                                .sum_frames = 300000,
                                .num_processors = 132,
                                .on_device = true};
  wf_plan plan = plan_of(graph, &options, shape);
  /* 16 bytes for each state and each arc, 4 for each input label, rounded up to multiples of 256 */
  assert_int_equal(plan.graph_bytes, 16128 + 80128 + 512);
  assert_int_equal(plan.lane_blocks, 1);
  assert_int_equal(plan.num_lanes, 132);
  assert_int_equal(plan.num_gpus, 1);
  assert_int_equal(plan.score_bytes, 0);
  assert_true(plan.available_bytes == UINT64_MAX);
  /* A token takes 8 bytes of history. A frame has at most 10,000 tokens, with one eighth to spare.
   */
  assert_true(plan.trace_bytes > 132ull * 1000 * 11250 * 8 &&
              plan.trace_bytes < 132ull * 1000 * 11700 * 8);
  /* With lattices a token takes 16 bytes, and arcs take 16 KB for each frame. Four chunks fill the
   * GPU, and eight more are in flight. */
  options.lattice_beam = 8;
  wf_plan with = plan_of(graph, &options, shape);
  assert_int_equal(with.num_lanes, 12 * 33);
  assert_true(with.trace_bytes > 396ull * 1000 * 11250 * 16 &&
              with.trace_bytes < 396ull * 1000 * 11750 * 16);
  assert_true(with.result_bytes > 396ull * 1000 * 16384 &&
              with.result_bytes < 396ull * 1000 * 20000);
  options.lattice_beam = 0;
  /* a small batch gets more blocks for each utterance, at most 8 */
  wf_batch_shape one = shape;
  one.num_utterances = 1;
  one.sum_frames = 1000;
  assert_int_equal(plan_of(graph, &options, one).lane_blocks, 8);
  assert_int_equal(plan_of(graph, &options, one).num_lanes, 1);
  one.num_utterances = 30;
  assert_int_equal(plan_of(graph, &options, one).lane_blocks, 4);
  /* scores in host memory: at most six chunks of 33 utterances */
  wf_batch_shape host = shape;
  host.on_device = false;
  plan = plan_of(graph, &options, host);
  assert_int_equal(plan.num_lanes, 6 * 33);
  assert_true(plan.score_bytes >= 6ull * 33 * 1000 * 100 * 4 &&
              plan.score_bytes < 6ull * (33 * 1000 * 100 * 4 + 33 * 256 + 256));
  assert_true(plan.pinned_bytes >= 2ull * 13200000 && plan.pinned_bytes < 2ull * 13200000 + 100000);
  host.dtype = WF_FLOAT16;
  assert_true(plan_of(graph, &options, host).score_bytes < plan.score_bytes * 51 / 100);
  /* with two GPUs, each holds half of a small batch */
  host.num_utterances = 40;
  host.sum_frames = 0;
  options.device = "cuda:0,1";
  assert_int_equal(plan_of(graph, &options, host).num_gpus, 2);
  assert_int_equal(plan_of(graph, &options, host).lane_blocks, 4);
  options.device = "cuda";
  assert_int_equal(plan_of(graph, &options, host).lane_blocks, 2);
  /* the CPU has no plan */
  options.device = "cpu";
  assert_int_equal(plan_of(graph, &options, host).total_bytes, 0);
  wf_graph_free(graph);
}

/* Lanes of several sizes against all ways to give each utterance a size: they run at once, and the
 * last search ends as early as in any other way. */
static void test_lane_groups(void **state) {
  (void)state;
  enum { MOST = 6 };
  const double frame_time[] = {1, 0.94, 0.70, 0.52};
  test_rng rng = {3};
  int num_mixed = 0;
  for (int round = 0; round < 300; round++) {
    const uint32_t count = 2 + test_below(&rng, MOST - 1), blocks = count + test_below(&rng, 30);
    const wf__gpu_plan plan = {.ranks = 1, .least_ranks = 1, .most_ranks = 8, .parts = blocks};
    wf__device_limits limits = {.lanes = {(int)blocks}};
    for (int bits = 1; bits <= WF__MAX_RANK_BITS; bits++) /* some blocks are in no cluster */
      limits.lanes[bits] = limits.lanes[bits - 1] / 2 - (int)test_below(&rng, 2);
    for (int bits = 1; bits <= WF__MAX_RANK_BITS; bits++)
      if (limits.lanes[bits] < 0) limits.lanes[bits] = 0;
    wf__lane_utterance utterances[MOST] = {0};
    int32_t frames = 1;
    for (uint32_t i = count; i-- > 0; frames += (int32_t)test_below(&rng, 200))
      utterances[i].num_frames = frames;
    double best = INFINITY;
    for (uint32_t way = 0; way < 1u << 2 * count; way++) {
      double last = 0;
      int lanes[WF__MAX_RANK_BITS + 1] = {0}, used = 0;
      bool fits = true;
      for (uint32_t i = 0; i < count; i++) {
        const int bits = (int)(way >> 2 * i & 3);
        lanes[bits]++;
        last = fmax(last, utterances[i].num_frames * frame_time[bits]);
      }
      for (int bits = WF__MAX_RANK_BITS; bits >= 0; bits--) {
        used += lanes[bits] << bits;
        fits = fits && (lanes[bits] == 0 || used <= limits.lanes[bits] << bits);
      }
      if (fits && used <= (int)blocks) best = fmin(best, last);
    }
    wf__lane_group groups[WF__MAX_RANK_BITS + 1];
    const int num_groups = wf__gpu_group_lanes(&plan, &limits, utterances, count, groups);
    double last = 0;
    uint32_t first = 0, used = 0;
    for (int g = 0; g < num_groups; first += groups[g++].count) {
      const int bits = groups[g].ranks == 8 ? 3 : (int)groups[g].ranks / 2;
      assert_true(groups[g].count > 0 && (g == 0 || groups[g].ranks < groups[g - 1].ranks));
      used += groups[g].count * groups[g].ranks;
      assert_true(used <= (uint32_t)limits.lanes[bits] << bits);
      last = fmax(last, utterances[first].num_frames * frame_time[bits]);
    }
    assert_int_equal(first, count);
    assert_true(used <= blocks && fabs(last - best) < 1e-6);
    num_mixed += num_groups > 1;
  }
  assert_true(num_mixed > 100);
}

/* With less and less memory the plan never exceeds the limit. It reduces the history first, then
 * the lanes. In the end it returns an error that says which option to lower. */
static void test_memory_limits(void **state) {
  (void)state;
  wf_graph *graph = small_graph(100);
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.device = "cuda";
  for (int form = 0; form < 4; form++) {
    const bool on_device = form % 2;
    options.lattice_beam = form < 2 ? 0 : 8;
    wf_batch_shape shape = {.num_utterances = 400,
                            .max_frames = 3500,
                            .sum_frames = 400 * 1500,
                            .num_processors = 132,
                            .on_device = on_device};
    wf_plan full = plan_of(graph, &options, shape), plan = full;
    int32_t lanes = full.num_lanes;
    options.gpu_memory = (int64_t)full.total_bytes;
    assert_int_equal(plan_of(graph, &options, shape).total_bytes, full.total_bytes);
    wf_status status = WF_OK;
    while (status == WF_OK) {
      options.gpu_memory = options.gpu_memory * 9 / 10;
      status = wf_plan_batch(graph, &options, &shape, &plan, &err);
      if (status != WF_OK) break;
      assert_true(plan.total_bytes <= (uint64_t)options.gpu_memory && plan.num_lanes <= lanes &&
                  plan.num_lanes > 0);
      lanes = plan.num_lanes;
      if ((uint64_t)options.gpu_memory > full.total_bytes * 3 / 4)
        assert_int_equal(lanes, full.num_lanes);
    }
    assert_int_equal(status, WF_ERR_MEMORY);
    assert_int_equal(plan.total_bytes, 0);
    assert_true(lanes <= 2);
    assert_non_null(strstr(err.message, "lower max_tokens (28000)"));
    options.gpu_memory = 0;
  }
  options.lattice_beam = 0;
  /* the message names the largest consumer */
  wf_batch_shape shape = {
      .num_utterances = 1000000, .max_frames = 10, .num_processors = 132, .on_device = true};
  options.gpu_memory = 100000000;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_MEMORY);
  assert_non_null(strstr(err.message, "lower the batch (1000000 utterances)"));
  options.max_active = options.max_tokens = 30000;
  shape = (wf_batch_shape){
      .num_utterances = 1, .max_frames = 1000, .num_processors = 132, .on_device = true};
  options.gpu_memory = 3000000;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_MEMORY);
  assert_non_null(strstr(err.message, "lower max_active (30000)"));
  options.gpu_memory = 50000;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_MEMORY);
  assert_non_null(strstr(err.message, "the graph takes most of it"));
  options.gpu_memory = 0;
  options.max_active = 230000;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "max_active of 230000"));
  options.max_active = options.max_tokens = 10000;
  shape =
      (wf_batch_shape){.num_utterances = 100000, .max_frames = INT32_MAX, .num_processors = 132};
  options.gpu_memory = 1000000000000;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_MEMORY);
  shape.num_utterances = 4000000000u;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_LIMIT);
  shape.max_frames = -1;
  assert_int_equal(wf_plan_batch(graph, &options, &shape, &(wf_plan){0}, &err), WF_ERR_ARGUMENT);
  wf_graph_free(graph);
}

/* Streams: the bytes that each takes, and how many fit, exactly. If they do not fit, the error says
 * which option to lower. */
static void test_stream_plan(void **state) {
  (void)state;
  wf_graph *graph = small_graph(100);
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.device = "cuda";
  for (int form = 0; form < 4; form++) {
    wf_stream_shape shape = {.num_streams = 1000, .scored = form % 2 == 1, .num_processors = 132};
    wf_stream_plan plan, least;
    options.lattice_beam = form < 2 ? 0 : 8;
    options.gpu_memory = 0;
    options.max_tokens = options.max_active = 4000;
    assert_ok(wf_plan_streams(graph, &options, &shape, &plan, &err));
    assert_int_equal(plan.stream_bytes, (shape.scored ? 2 : 1) * 32000);
    assert_int_equal(plan.num_gpus, 1);
    assert_int_equal(plan.num_lanes, 132);
    assert_true(plan.total_bytes == plan.graph_bytes + plan.lane_bytes + 1000 * plan.stream_bytes &&
                plan.available_bytes == UINT64_MAX && plan.max_streams > 1000000000);
    options.gpu_memory = (int64_t)plan.total_bytes; /* exactly enough */
    assert_ok(wf_plan_streams(graph, &options, &shape, &least, &err));
    assert_int_equal(least.max_streams, 1000);
    assert_int_equal(least.total_bytes, plan.total_bytes);
    assert_int_equal(least.available_bytes, plan.total_bytes);
    options.gpu_memory--;
    assert_int_equal(wf_plan_streams(graph, &options, &shape, &least, &err), WF_ERR_MEMORY);
    assert_non_null(strstr(err.message, "999 streams fit: lower max_tokens (4000)"));
    assert_int_equal(least.max_streams, 0);
    shape.num_streams = 0;
    assert_ok(wf_plan_streams(graph, &options, &shape, &least, &err));
    assert_int_equal(least.max_streams, 999);
    options.device = "cuda:0,1,1"; /* two workers share GPU 1 */
    options.gpu_memory = 2 * (int64_t)plan.total_bytes;
    assert_ok(wf_plan_streams(graph, &options, &shape, &least, &err));
    assert_int_equal(least.max_streams, 3000);
    options.device = "cuda";
    options.max_tokens = options.max_active = 28000;
    options.gpu_memory = 1000000;
    assert_int_equal(wf_plan_streams(graph, &options, &shape, &least, &err), WF_ERR_MEMORY);
    assert_non_null(strstr(err.message, "lower max_tokens (28000)"));
    shape.num_processors = -1;
    assert_int_equal(wf_plan_streams(graph, &options, &shape, &least, &err), WF_ERR_ARGUMENT);
  }
  options.device = "cpu";
  wf_stream_plan none;
  assert_ok(wf_plan_streams(graph, &options, &(wf_stream_shape){.num_streams = 5}, &none, &err));
  assert_int_equal(none.num_gpus, 0);
  wf_graph_free(graph);
}

static void test_device_names(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int32_t num_gpus;
  } good[] = {{"cpu", 0},    {"", 0},         {NULL, 0},         {"cuda", 1},
              {"cuda:3", 1}, {"cuda:0,1", 2}, {"cuda:7,7,7", 3}, {"cuda:all", 1}};
  static const char *const bad[] = {"gpu",     "cuda:",      "cuda:x",   "cuda:-1",
                                    "cuda:0,", "cuda:,0",    "cuda:0;1", "cuda:1024",
                                    "CUDA",    "cuda:0,all", "cpu:0",    "cuda:1.5"};
  wf_graph *graph = small_graph(3);
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_decoder_options_init(&options);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    options.device = good[i].text;
    assert_int_equal(
        plan_of(graph, &options,
                (wf_batch_shape){.num_utterances = 4, .max_frames = 9, .num_processors = 132})
            .num_gpus,
        good[i].num_gpus);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    options.device = bad[i];
    assert_int_equal(wf_decoder_create(graph, &options, &decoder, &err), WF_ERR_ARGUMENT);
    assert_null(decoder);
    assert_non_null(strstr(err.message, bad[i]));
  }
  wf_graph_free(graph);
}

static void test_padded_tensors(void **state) {
  (void)state;
  static const float data[60];
  const int64_t lengths[] = {4, 0, 5, 1};
  wf_scores list[4];
  wf_padded_scores padded = {
      .data = data, .num_utterances = 4, .max_frames = 5, .num_columns = 3, .lengths = lengths};
  assert_ok(wf_scores_from_padded(&padded, list, &err));
  for (int i = 0; i < 4; i++) {
    assert_ptr_equal(list[i].data, data + i * 15);
    assert_true(list[i].num_frames == lengths[i] && list[i].num_columns == 3 &&
                list[i].stride == 3 && list[i].dtype == WF_FLOAT32 && !list[i].on_device);
  }
  padded.dtype = WF_BFLOAT16;
  padded.frame_stride = 4;
  padded.utterance_stride = 19; /* the last frame need not be padded */
  padded.on_device = true;
  padded.lengths = NULL;
  assert_ok(wf_scores_from_padded(&padded, list, &err));
  assert_ptr_equal(list[2].data, (const char *)data + 2 * 19 * 2);
  assert_true(list[2].num_frames == 5 && list[2].stride == 4 && list[2].dtype == WF_BFLOAT16 &&
              list[2].on_device);
  padded.frame_stride = 12; /* [frame, utterance, column] */
  padded.utterance_stride = 3;
  assert_ok(wf_scores_from_padded(&padded, list, &err));
  assert_ptr_equal(list[3].data, (const char *)data + 3 * 3 * 2);
  assert_true(list[3].num_frames == 5 && list[3].stride == 12);
  padded.utterance_stride = -3;
  assert_int_equal(wf_scores_from_padded(&padded, list, &err), WF_ERR_ARGUMENT);
  padded.utterance_stride = 0;
  padded.frame_stride = 2;
  assert_int_equal(wf_scores_from_padded(&padded, list, &err), WF_ERR_ARGUMENT);
  padded.frame_stride = 0;
  const int64_t wrong[2][4] = {{5, 5, 6, 5}, {5, 5, -1, 5}};
  for (int k = 0; k < 2; k++) {
    padded.lengths = wrong[k];
    assert_int_equal(wf_scores_from_padded(&padded, list, &err), WF_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "utterance 2"));
  }
  padded.lengths = lengths;
  padded.frame_stride = INT64_MAX;
  assert_int_equal(wf_scores_from_padded(&padded, list, &err), WF_ERR_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batch_plan),    cmocka_unit_test(test_plan_of_token_graph),
      cmocka_unit_test(test_lane_groups),   cmocka_unit_test(test_memory_limits),
      cmocka_unit_test(test_stream_plan),   cmocka_unit_test(test_device_names),
      cmocka_unit_test(test_padded_tensors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
