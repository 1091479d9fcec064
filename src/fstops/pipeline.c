/* pipeline.c - all threads expand the chunks of a batch, while one thread interns the batch before
 * it. */
#include "fstops/pipeline.h"

#include "base/interrupt.h"
#include "base/memory.h"

enum { CHUNKS_PER_THREAD = 16, SMALL_BATCH = 2 * WF__CHUNK_STATES };

struct batch {
  char *chunks;        /* [max_chunks] */
  wf_status *statuses; /* [max_chunks] results of `expand` with `shared` */
  uint64_t num_chunks; /* number of chunks in use */
  uint64_t first, num_states;
};

struct run {
  const wf__pipeline *pipeline;
  wf__pool *pool;
  uint64_t max_chunks;
  struct batch batches[2], *expanding, *interning;
  wf_status status; /* result of interning */
  wf_error *err;
};

static void *chunk_at(const struct run *run, const struct batch *batch, uint64_t c) {
  return batch->chunks + c * run->pipeline->chunk_bytes;
}
static uint64_t first_of(const struct batch *batch, uint64_t c) {
  return batch->first + c * WF__CHUNK_STATES;
}

/* Fills the next batch with the states known from `first` on, up to max_chunks chunks. */
static wf_status take_batch(struct run *run, struct batch *batch, uint64_t first, wf_error *err) {
  const wf__pipeline *pipeline = run->pipeline;
  uint64_t end = pipeline->num_known(pipeline->user),
           limit = first + run->max_chunks * WF__CHUNK_STATES;
  if (end > limit) end = limit;
  *batch = (struct batch){.chunks = batch->chunks,
                          .statuses = batch->statuses,
                          .first = first,
                          .num_states = end - first};
  for (uint64_t at = first; at < end; at += WF__CHUNK_STATES) {
    uint64_t stop = at + WF__CHUNK_STATES < end ? at + WF__CHUNK_STATES : end;
    WF__TRY(
        pipeline->take(pipeline->user, chunk_at(run, batch, batch->num_chunks++), at, stop, err));
  }
  return WF_OK;
}

static wf_status intern_batch(struct run *run, struct batch *batch, wf_error *err) {
  for (uint64_t c = 0; c < batch->num_chunks; c++)
    WF__TRY(run->pipeline->intern(run->pipeline->user, chunk_at(run, batch, c), first_of(batch, c),
                                  err));
  batch->num_chunks = batch->num_states = 0;
  return WF_OK;
}

static void run_item(void *user, uint64_t item, int worker) {
  struct run *run = user;
  struct batch *batch = run->expanding;
  if (item == 0)
    run->status = intern_batch(run, run->interning, run->err);
  else
    batch->statuses[item - 1] =
        run->pipeline->expand(run->pipeline->user, chunk_at(run, batch, item - 1),
                              first_of(batch, item - 1), worker, true, NULL);
}

/* Handles a failure to expand chunk `c`: interns the states before it first, because interning may
 * fail with an earlier error. */
static wf_status stop_at(struct run *run, uint64_t c, wf_status status, wf_error *err) {
  run->expanding->num_chunks = c + 1;
  WF__TRY(intern_batch(run, run->expanding, err));
  return status;
}

static wf_status step_alone(struct run *run, wf_error *err) {
  struct batch *batch = run->expanding;
  WF__TRY(intern_batch(run, run->interning, err));
  for (uint64_t c = 0; c < batch->num_chunks; c++) {
    wf_status status = run->pipeline->expand(run->pipeline->user, chunk_at(run, batch, c),
                                             first_of(batch, c), 0, false, err);
    if (status != WF_OK) return stop_at(run, c, status, err);
  }
  return WF_OK;
}

/* Expands a batch and interns the batch before it. */
static wf_status step(struct run *run, wf_error *err) {
  struct batch *batch = run->expanding;
  if (wf__pool_size(run->pool) == 1 || batch->num_states < SMALL_BATCH) return step_alone(run, err);
  run->err = err;
  wf__pool_run(run->pool, batch->num_chunks + 1, run_item, run);
  WF__TRY(run->status);
  for (uint64_t c = 0; c < batch->num_chunks; c++) {
    if (batch->statuses[c] != WF_OK)
      return wf__fail(err, batch->statuses[c], "out of memory in a thread");
    if (run->pipeline->expand_postponed == NULL) continue;
    wf_status status = run->pipeline->expand_postponed(run->pipeline->user, chunk_at(run, batch, c),
                                                       first_of(batch, c), err);
    if (status != WF_OK) return stop_at(run, c, status, err);
  }
  return WF_OK;
}

static wf_status run_all(struct run *run, wf_error *err) {
  for (uint64_t next = 0;;) {
    WF__TRY(wf__interrupted(err));
    WF__TRY(take_batch(run, run->expanding, next, err));
    if (run->expanding->num_states == 0 && run->interning->num_states == 0) return WF_OK;
    next += run->expanding->num_states;
    WF__TRY(step(run, err));
    struct batch *expanded = run->expanding;
    run->expanding = run->interning;
    run->interning = expanded;
  }
}

wf_status wf__pipeline_run(const wf__pipeline *pipeline, wf__pool *pool, wf_error *err) {
  int num_threads = wf__pool_size(pool);
  struct run run = {.pipeline = pipeline,
                    .pool = pool,
                    .max_chunks = num_threads > 1 ? (uint64_t)num_threads * CHUNKS_PER_THREAD : 1};
  wf_status status = WF_OK;
  run.expanding = &run.batches[0];
  run.interning = &run.batches[1];
  for (int b = 0; b < 2; b++) {
    run.batches[b].chunks = wf__calloc(run.max_chunks, pipeline->chunk_bytes);
    run.batches[b].statuses = wf__calloc(run.max_chunks, sizeof *run.batches[b].statuses);
    if (run.batches[b].chunks == NULL || run.batches[b].statuses == NULL)
      status = wf__fail_memory(err, run.max_chunks * pipeline->chunk_bytes, "batches of states");
  }
  if (status == WF_OK) status = run_all(&run, err);
  for (int b = 0; b < 2; b++) {
    for (uint64_t c = 0; run.batches[b].chunks != NULL && c < run.max_chunks; c++)
      pipeline->free_chunk(chunk_at(&run, &run.batches[b], c));
    free(run.batches[b].chunks);
    free(run.batches[b].statuses);
  }
  return status;
}
