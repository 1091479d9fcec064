/* soak_streams.c - advances several streams together, on the GPU and on the CPU. Chunks have any
 * size. In between come partial results and lattices, changes of scorers and added words, and
 * resets in mid-utterance. */
#include <cuda_runtime_api.h>

#include "lattice_paths.h"
#include "soak.h"

enum { MOST = SOAK_SMALL ? 3 : 24, UTTERANCES = SOAK_SMALL ? 5 : 240 };

/* The same stream on the CPU and on the GPU. */
struct both {
  wf_stream *stream[2];
  wf_scores scores; /* of the utterance, in host memory */
  char *data, *on_device;
  int64_t fed;
  bool busy, committed; /* in an utterance; a part of its lattice was committed */
};

struct crowd {
  const struct soak_task *task;
  test_rng *rng;
  wf_decoder *decoder[2];
  struct both streams[MOST];
  size_t count;
  uint32_t num_said, longest;
  int64_t max_frames;
  bool makes_lattices, on_device;
};

static void open_crowd(struct crowd *c, const struct soak_task *task, test_rng *rng) {
  wf_error err = {0};
  wf_stream_options options;
  wf_stream_options_init(&options);
  options.forget = test_below(rng, 6) == 0 && task->task.options.lattice_beam == 0;
  options.rule1_min_trailing_silence = 0.05f;
  options.rule5_min_utterance_length = 0.3f;
  *c = (struct crowd){.task = task,
                      .rng = rng,
                      .count = 1 + test_below(rng, MOST),
                      .longest = test_below(rng, 4) == 0 ? 60 : 8,
                      .max_frames = soak_max_frames(task, rng)};
  c->makes_lattices = task->task.options.lattice_beam > 0;
  c->on_device = test_below(rng, 4) == 0;
  if (task->is_large) c->count = 1 + c->count / 4;
  for (int k = 0; k < 2; k++) c->decoder[k] = soak_decoder(task, k == 0 ? "cpu" : "cuda", true);
  const size_t bytes = soak_score_bytes(task, c->max_frames);
  for (size_t i = 0; i < c->count; i++) {
    struct both *b = &c->streams[i];
    b->data = malloc(bytes);
    assert_non_null(b->data);
    if (c->on_device) assert_int_equal(cudaMalloc((void **)&b->on_device, bytes), cudaSuccess);
    for (int k = 0; k < 2; k++)
      assert_ok(wf_stream_create(c->decoder[k], &options, &b->stream[k], &err));
  }
}

static void close_crowd(struct crowd *c) {
  for (size_t i = 0; i < c->count; i++) {
    struct both *b = &c->streams[i];
    for (int k = 0; k < 2; k++) wf_stream_free(b->stream[k]);
    if (c->on_device) assert_int_equal(cudaFree(b->on_device), cudaSuccess);
    free(b->data);
  }
  for (int k = 0; k < 2; k++) wf_decoder_free(c->decoder[k]);
}

/* Begins an utterance of a stream that is new or was reset. */
static void begin(struct crowd *c, struct both *b) {
  wf_error err = {0};
  const wf_scorer *scorer = soak_any_scorer(c->task, c->rng);
  const wf_graph *graph = soak_any_graph(c->task, c->rng);
  b->scores = soak_scores(c->task, c->rng, c->max_frames,
                          (wf_dtype)(test_below(c->rng, 2) ? 0 : test_below(c->rng, 3)), b->data);
  if (c->on_device)
    assert_int_equal(cudaMemcpy(b->on_device, b->data, soak_score_bytes(c->task, c->max_frames),
                                cudaMemcpyHostToDevice),
                     cudaSuccess);
  for (int k = 0; k < 2; k++) {
    assert_ok(wf_stream_set_graph(b->stream[k], graph, &err));
    assert_ok(wf_stream_set_scorer(b->stream[k], scorer, &err));
  }
  b->fed = 0;
  b->busy = true;
  b->committed = false;
  c->num_said++;
}

static void compare_lattices(wf_lattice *const *lattices) {
  assert_int_equal(lattices[0] != NULL, lattices[1] != NULL);
  if (lattices[0] != NULL && !test_same_raw(lattices[0], lattices[1]))
    fail_msg("the lattices differ");
}

/* Compares a partial lattice, or the part that a commit emits. */
static void look_at_lattice(struct both *b, bool commit) {
  wf_error err = {0};
  wf_lattice *lattices[2];
  wf_status status[2];
  for (int k = 0; k < 2; k++)
    status[k] = (commit ? wf_stream_commit_lattice : wf_stream_partial_lattice)(b->stream[k],
                                                                                &lattices[k], &err);
  assert_int_equal(status[0], status[1]);
  compare_lattices(lattices);
  b->committed = b->committed || commit;
  for (int k = 0; k < 2; k++) wf_lattice_free(lattices[k]);
}

/* At random: takes a partial result or a lattice, changes the scorer, or resets the stream in
 * mid-utterance. */
static void disturb(struct crowd *c, struct both *b) {
  wf_error err = {0};
  if (test_below(c->rng, 3) == 0) test_assert_same_partials(b->stream);
  if (c->makes_lattices && test_below(c->rng, 4) == 0)
    look_at_lattice(b, test_below(c->rng, 3) == 0);
  if (c->task->has_scorers && !c->makes_lattices && test_below(c->rng, 8) == 0) {
    const wf_scorer *scorer = soak_any_scorer(c->task, c->rng);
    for (int k = 0; k < 2; k++) assert_ok(wf_stream_set_scorer(b->stream[k], scorer, &err));
  }
  if (test_below(c->rng, 60) > 0) return;
  for (int k = 0; k < 2; k++) assert_ok(wf_stream_reset(b->stream[k], &err));
  b->busy = false;
}

static void finish(struct both *b, struct soak_counts *counts) {
  wf_error err = {0};
  wf_result *results[2];
  for (int k = 0; k < 2; k++) assert_ok(wf_stream_finish(b->stream[k], &results[k], &err));
  if (soak_plant()) results[1]->num_tokens++;
  test_assert_same_batch(0, &results[0], &results[1], 1);
  if (results[0]->status != WF_OK) assert_string_equal(results[0]->message, results[1]->message);
  test_free_results(results, 2);
  for (int k = 0; k < 2; k++) assert_ok(wf_stream_reset(b->stream[k], &err));
  b->busy = false;
  counts->utterances++;
}

/* Advances some streams, chosen at random, by one call on each device. Compares the events, if it
 * asked for them. */
static void advance(struct crowd *c) {
  wf_error err = {0};
  wf_stream *ready[2][MOST];
  wf_scores chunks[2][MOST];
  wf_stream_event events[2][MOST];
  size_t num_ready = 0;
  const bool looks = test_below(c->rng, 2);
  for (size_t i = 0; i < c->count; i++) {
    struct both *b = &c->streams[i];
    if (!b->busy || test_below(c->rng, 4) == 0) continue;
    int64_t count = test_below(c->rng, c->longest), left = b->scores.num_frames - b->fed;
    if (count > left) count = left;
    wf_scores there = b->scores;
    if (c->on_device) there.data = b->on_device, there.on_device = true;
    for (int k = 0; k < 2; k++) {
      ready[k][num_ready] = b->stream[k];
      chunks[k][num_ready] = test_rows(k == 0 ? &b->scores : &there, b->fed, count);
    }
    b->fed += count;
    num_ready++;
  }
  memset(events, 0, sizeof events);
  for (int k = 0; k < 2; k++)
    assert_ok(wf_streams_advance(c->decoder[k], ready[k], chunks[k], num_ready,
                                 looks ? events[k] : NULL, &err));
  for (size_t i = 0; i < num_ready && looks; i++)
    test_assert_same_event(&events[0][i], &events[1][i]);
}

void soak_streams(test_rng *rng, struct soak_counts *counts) {
  struct soak_task task;
  static _Thread_local struct crowd c;
  soak_make_task(rng, &task);
  open_crowd(&c, &task, rng);
  for (uint64_t calls = 0, num_busy = 1; num_busy > 0; calls++) {
    soak_note("%zu streams, call %llu", c.count, (unsigned long long)calls);
    num_busy = 0;
    for (size_t i = 0; i < c.count; i++) {
      if (!c.streams[i].busy && c.num_said < UTTERANCES) begin(&c, &c.streams[i]);
      num_busy += c.streams[i].busy;
    }
    advance(&c);
    for (size_t i = 0; i < c.count; i++) {
      struct both *b = &c.streams[i];
      if (!b->busy) continue;
      if (b->fed == b->scores.num_frames && test_below(rng, 2))
        finish(b, counts);
      else
        disturb(&c, b);
    }
  }
  close_crowd(&c);
  soak_free_task(&task);
}
