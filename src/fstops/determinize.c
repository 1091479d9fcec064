/* determinize.c - weighted determinization of functional transducers on the input side (Mohri 1997, "Finite-state transducers in language and
 * speech processing", sections 3.3 and 4).
 *
 * Subsets are numbered in order of discovery and expanded in that order, a batch at a time:
 *
 *     copy the elements of the next subsets -> expand them, in threads -> intern, in order: next states become subset ids
 *
 * While a batch is expanded, one thread interns the batch before. Numbers do not depend on where batches end, nor on threads. Expansions that would
 * write to the string pool, which are few, are postponed until no other thread runs. */
#include "fstops/determinize.h"

#include <string.h>

#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/parallel.h"

enum { CHUNK_STATES = 256, CHUNKS_PER_THREAD = 16, SMALL_BATCH = 2 * CHUNK_STATES, AHEAD = 16 };

struct batch {
  wf__det_chunk *chunks; /* [max_chunks] */
  uint64_t num_chunks;   /* in use */
  uint32_t first_id;     /* of the first subset */
  uint64_t num_states;
};

struct run {
  wf__determinizer *det;
  wf__pool *pool;
  wf__det_worker *workers;
  uint64_t max_chunks;
  struct batch batches[2], *expanding, *interning;
  wf_status status; /* of interning */
  wf_error *err;
};

/* --- batches ------------------------------------------------------------------------------------------------------ */

static wf_status copy_input(const wf__determinizer *det, wf__det_chunk *chunk, uint64_t first, uint64_t end, wf_error *err) {
  chunk->input.size = chunk->input_size.size = chunk->states.size = chunk->postponed.size = chunk->arcs.size = chunk->targets.size = chunk->elements.size = 0;
  WF__TRY(wf__vec_grow(&chunk->input_size, end - first, "subsets", err));
  WF__TRY(wf__vec_grow(&chunk->states, end - first, "states", err));
  WF__TRY(wf__vec_grow(&chunk->postponed, end - first, "subsets", err)); /* now, so that no thread can fail to postpone */
  for (uint64_t id = first; id < end; id++) {
    wf__det_element single;
    uint32_t size;
    const wf__det_element *elements = wf__det_subsets_get(&det->subsets, (uint32_t)id, &single, &size);
    WF__TRY(wf__vec_grow(&chunk->input, size, "subsets", err));
    memcpy(chunk->input.data + chunk->input.size, elements, size * sizeof *elements);
    chunk->input.size += size;
    chunk->input_size.data[chunk->input_size.size++] = size;
  }
  chunk->states.size = end - first;
  return WF_OK;
}

/* The next batch: as many subsets as there are from `first` on, up to a limit. */
static wf_status take_batch(struct run *run, struct batch *batch, uint64_t first, wf_error *err) {
  uint64_t end = run->det->subsets.where.size, limit = first + run->max_chunks * CHUNK_STATES;
  if (end > limit) end = limit;
  batch->first_id = (uint32_t)first;
  batch->num_states = end - first;
  batch->num_chunks = 0;
  for (uint64_t at = first; at < end; at += CHUNK_STATES)
    WF__TRY(copy_input(run->det, &batch->chunks[batch->num_chunks++], at, at + CHUNK_STATES < end ? at + CHUNK_STATES : end, err));
  return WF_OK;
}

static wf_status expand_chunk(wf__det_worker *worker, wf__det_chunk *chunk, uint32_t first_id, wf_error *err) {
  const wf__det_element *elements = chunk->input.data;
  worker->out = chunk;
  for (uint32_t k = 0; k < chunk->states.size; elements += chunk->input_size.data[k++]) {
    uint64_t num_arcs = chunk->arcs.size;
    if (!worker->shared) worker->det->current_id = first_id + k;
    wf_status status = wf__det_expand(worker, elements, chunk->input_size.data[k], &chunk->states.data[k], err);
    if (status == WF_OK) continue;
    chunk->arcs.size = num_arcs;
    if (!worker->shared) {
      chunk->states.size = k;
      return status;
    }
    chunk->postponed.data[chunk->postponed.size++] = k;
  }
  return WF_OK;
}

static wf_status expand_postponed(wf__det_worker *worker, wf__det_chunk *chunk, uint32_t first_id, wf_error *err) {
  const wf__det_element *elements = chunk->input.data;
  uint32_t k = 0;
  worker->out = chunk;
  for (uint64_t i = 0; i < chunk->postponed.size; i++) {
    while (k < chunk->postponed.data[i]) elements += chunk->input_size.data[k++];
    worker->det->current_id = first_id + k;
    wf_status status = wf__det_expand(worker, elements, chunk->input_size.data[k], &chunk->states.data[k], err);
    if (status == WF_OK) continue;
    chunk->states.size = k;
    return status;
  }
  return WF_OK;
}

/* --- interning: expanded states join the result, what their arcs lead to becomes subset ids ----------------------- */

static inline void prefetch(const wf__determinizer *det, const wf__det_chunk *chunk, uint32_t nextstate) {
  if (nextstate == WF__DET_SINK) return;
  if (nextstate & WF__DET_SEVERAL) wf__det_subsets_prefetch(&det->subsets, chunk->targets.data[nextstate & ~WF__DET_SEVERAL].hash);
  else __builtin_prefetch(&det->subsets.single[nextstate], 1);
}

static wf_status resolve(wf__determinizer *det, const wf__det_chunk *chunk, wf_arc *arc, wf_error *err) {
  wf_status status;
  if (arc->nextstate == WF__DET_SINK) {
    det->uses_sink = true;
    return WF_OK;
  }
  if (arc->nextstate & WF__DET_SEVERAL) {
    const wf__det_target *target = &chunk->targets.data[arc->nextstate & ~WF__DET_SEVERAL];
    status = wf__det_subsets_add(&det->subsets, chunk->elements.data + target->off, target->size, target->hash, &arc->nextstate, err);
  } else {
    status = wf__det_subsets_add_single(&det->subsets, arc->nextstate, &arc->nextstate, err);
  }
  if (status == WF_ERR_NOT_DETERMINIZABLE) return wf__fail_growth(det, arc->ilabel, "gave up", err);
  return status;
}

static wf_status intern_chunk(wf__determinizer *det, const wf__det_chunk *chunk, uint32_t first_id, wf_error *err) {
  uint64_t num_arcs = chunk->arcs.size;
  WF__TRY(wf__vec_grow(&det->csr.arcs, num_arcs, "arcs", err));
  for (uint64_t k = 0; k < chunk->states.size; k++) {
    const wf__det_expanded *state = &chunk->states.data[k];
    det->current_id = first_id + (uint32_t)k;
    WF__TRY(wf__csr_add_state(&det->csr, state->final_cost, err));
    for (uint64_t i = state->arc_off; i < state->arc_off + state->num_arcs; i++) {
      wf_arc arc = chunk->arcs.data[i];
      if (i + AHEAD < num_arcs) prefetch(det, chunk, chunk->arcs.data[i + AHEAD].nextstate);
      WF__TRY(resolve(det, chunk, &arc, err));
      det->csr.arcs.data[det->csr.arcs.size++] = arc;
    }
  }
  return WF_OK;
}

static wf_status intern_batch(struct run *run, struct batch *batch, wf_error *err) {
  for (uint64_t c = 0; c < batch->num_chunks; c++) WF__TRY(intern_chunk(run->det, &batch->chunks[c], batch->first_id + (uint32_t)c * CHUNK_STATES, err));
  batch->num_chunks = batch->num_states = 0;
  return WF_OK;
}

/* --- both at once ------------------------------------------------------------------------------------------------- */

static void run_item(void *user, uint64_t item, int w) {
  struct run *run = user;
  if (item == 0) run->status = intern_batch(run, run->interning, run->err);
  else expand_chunk(&run->workers[w], &run->expanding->chunks[item - 1], 0, NULL);
}

/* Expansion failed at what is now the end of chunk `c`: what came before it has its say first. */
static wf_status stop_at(struct run *run, uint64_t c, wf_status status, wf_error *err) {
  run->expanding->num_chunks = c + 1;
  WF__TRY(intern_batch(run, run->interning, err));
  WF__TRY(intern_batch(run, run->expanding, err));
  return status;
}

/* Expands a batch and interns the one before. */
static wf_status step(struct run *run, wf_error *err) {
  struct batch *batch = run->expanding;
  bool together = wf__pool_size(run->pool) > 1 && batch->num_states >= SMALL_BATCH;
  wf_status status = WF_OK;
  run->workers[0].shared = together;
  if (!together) {
    WF__TRY(intern_batch(run, run->interning, err));
    for (uint64_t c = 0; c < batch->num_chunks; c++) {
      status = expand_chunk(&run->workers[0], &batch->chunks[c], batch->first_id + (uint32_t)c * CHUNK_STATES, err);
      if (status != WF_OK) return stop_at(run, c, status, err);
    }
    return WF_OK;
  }
  run->err = err;
  wf__pool_run(run->pool, batch->num_chunks + 1, run_item, run);
  WF__TRY(run->status);
  run->workers[0].shared = false;
  for (uint64_t c = 0; c < batch->num_chunks; c++) {
    status = expand_postponed(&run->workers[0], &batch->chunks[c], batch->first_id + (uint32_t)c * CHUNK_STATES, err);
    if (status != WF_OK) return stop_at(run, c, status, err);
  }
  return WF_OK;
}

static wf_status run_init(struct run *run, wf_error *err) {
  int num_workers = wf__pool_size(run->pool);
  run->max_chunks = num_workers > 1 ? (uint64_t)num_workers * CHUNKS_PER_THREAD : 1;
  run->workers = wf__calloc((uint64_t)num_workers, sizeof *run->workers);
  for (int b = 0; b < 2; b++) run->batches[b].chunks = wf__calloc(run->max_chunks, sizeof *run->batches[b].chunks);
  if (run->workers == NULL || run->batches[0].chunks == NULL || run->batches[1].chunks == NULL)
    return wf__fail_memory(err, run->max_chunks * 2 * sizeof(wf__det_chunk), "determinization");
  for (int w = 0; w < num_workers; w++) run->workers[w] = (wf__det_worker){.det = run->det, .shared = w > 0};
  run->expanding = &run->batches[0];
  run->interning = &run->batches[1];
  return WF_OK;
}

static void run_free(struct run *run) {
  for (int b = 0; b < 2; b++) {
    for (uint64_t c = 0; run->batches[b].chunks != NULL && c < run->max_chunks; c++) wf__det_chunk_free(&run->batches[b].chunks[c]);
    free(run->batches[b].chunks);
  }
  for (int w = 0; run->workers != NULL && w < wf__pool_size(run->pool); w++) wf__det_worker_free(&run->workers[w]);
  free(run->workers);
}

static wf_status expand_all(struct run *run, wf_error *err) {
  WF__TRY(run_init(run, err));
  for (uint64_t next = 0;;) {
    WF__TRY(take_batch(run, run->expanding, next, err));
    if (run->expanding->num_states == 0 && run->interning->num_states == 0) return WF_OK;
    next += run->expanding->num_states;
    WF__TRY(step(run, err));
    struct batch *expanded = run->expanding;
    run->expanding = run->interning;
    run->interning = expanded;
  }
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static wf_status determinize(wf__determinizer *det, bool *trimmed, wf_error *err) {
  uint64_t max_states = det->o.max_states > 0 ? (uint64_t)det->o.max_states : WF__MAX_STATES;
  uint32_t start;
  struct run run = {.det = det};
  WF__TRY(wf__strings_init(&det->strings, err));
  WF__TRY(wf__det_subsets_init(&det->subsets, det->view.num_states, (double)det->o.delta, max_states, err));
  if (det->o.rmepsilon && !(wf__fst_local_properties(det->fst) & WF_PROP_NO_IEPSILONS)) WF__TRY(wf__det_closure_create(&det->view, &det->closure, err));
  WF__TRY(wf__det_subsets_add_single(&det->subsets, (uint32_t)det->view.start, &start, err));
  WF__TRY(wf__pool_for_fst(det->closure != NULL ? 1 : det->o.num_threads, &det->view, &run.pool, err)); /* the closure's marks serve one thread */
  wf_status status = expand_all(&run, err);
  *trimmed = true;
  for (int w = 0; status == WF_OK && w < wf__pool_size(run.pool); w++) *trimmed = *trimmed && !run.workers[w].dropped;
  run_free(&run);
  wf__pool_free(run.pool);
  WF__TRY(status);
  uint32_t sink = (uint32_t)det->csr.final_cost.size;
  if (det->uses_sink) {
    WF__TRY(wf__csr_add_state(&det->csr, 0, err));
    for (uint64_t i = 0; i < det->csr.arcs.size; i++)
      if (det->csr.arcs.data[i].nextstate == WF__DET_SINK) det->csr.arcs.data[i].nextstate = sink;
  }
  wf__det_subsets_free(&det->subsets); /* the memory serves the strings */
  return wf__strings_expand(&det->strings, true, det->uses_sink ? sink : UINT32_MAX, &det->csr, err);
}

/* Runs on a trimmed fst: a state from which nothing is accepted could seem to have two outputs, and would only cost time. */
static wf_status determinize_trimmed(const wf_fst *fst, const wf_determinize_options *o, wf_fst **out, wf_error *err) {
  wf__determinizer det = {.fst = fst, .view = wf_fst_get_view(fst), .o = *o};
  bool trimmed = true;
  wf_status status = det.view.start < 0 ? WF_OK : determinize(&det, &trimmed, err);
  wf__det_subsets_free(&det.subsets);
  wf__strings_free(&det.strings);
  wf__det_closure_free(det.closure);
  if (status == WF_OK) {
    int64_t start = det.view.start < 0 ? -1 : 0;
    status = wf__fst_from_csr(&det.csr, start, det.view.semiring, wf_fst_isymbols(fst), wf_fst_osymbols(fst), out, err);
    if (status == WF_OK && trimmed) wf__fst_set_trimmed(*out);
    return status;
  }
  wf__csr_free(&det.csr);
  return status;
}

wf_status wf_determinize(const wf_fst *fst, const wf_determinize_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_determinize_options o;
  WF__TRY(wf__options_take(wf__determinize_table(), options, &o, err));
  wf_fst *trimmed;
  WF__TRY(wf_connect(fst, &trimmed, err));
  wf_status status = determinize_trimmed(trimmed, &o, out, err);
  wf_fst_free(trimmed);
  return status;
}
