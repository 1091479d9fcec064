/* determinize.c - weighted determinization of functional transducers by input label (Mohri 1997,
 * "Finite-state transducers in language and speech processing", sections 3.3 and 4).
 *
 * A pipeline (pipeline.h) expands subsets (determinize_expand.c) and interns the subsets that their
 * arcs lead to. Subsets are numbered in order of discovery. The string pool must not be written
 * while several threads run, so the few expansions that would write to it are postponed. */
#include "fstops/determinize.h"

#include <string.h>

#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/determinize_limit.h"
#include "fstops/parallel.h"
#include "fstops/pipeline.h"
#include "fstops/prune.h"

enum { AHEAD = 16 };

/* --- chunks: the callbacks of wf__pipeline ----------------------------------------------- */

static uint64_t num_known(void *user) { return ((wf__determinizer *)user)->subsets.where.size; }

static wf_status take(void *user, void *to, uint64_t first, uint64_t end, wf_error *err) {
  const wf__determinizer *det = user;
  wf__det_chunk *chunk = to;
  chunk->input.size = chunk->input_size.size = chunk->states.size = chunk->postponed.size =
      chunk->arcs.size = chunk->targets.size = chunk->elements.size = 0;
  WF__TRY(wf__vec_grow(&chunk->input_size, end - first, "subsets", err));
  WF__TRY(wf__vec_grow(&chunk->states, end - first, "states", err));
  /* Reserved now, so that postponing a subset cannot fail. */
  WF__TRY(wf__vec_grow(&chunk->postponed, end - first, "subsets", err));
  for (uint64_t id = first; id < end; id++) {
    wf__det_element single;
    uint32_t size;
    const wf__det_element *elements =
        wf__det_subsets_get(&det->subsets, (uint32_t)id, &single, &size);
    WF__TRY(wf__vec_grow(&chunk->input, size, "subsets", err));
    memcpy(chunk->input.data + chunk->input.size, elements, size * sizeof *elements);
    chunk->input.size += size;
    chunk->input_size.data[chunk->input_size.size++] = size;
  }
  chunk->states.size = end - first;
  return WF_OK;
}

/* Fetches what expanding later elements of a chunk will read: first the offsets of their arcs, then
 * the arcs. */
static inline void fetch_states(const wf_fst_view *view, const wf__det_chunk *chunk,
                                const wf__det_element *at) {
  const wf__det_element *end = chunk->input.data + chunk->input.size;
  if (end - at <= AHEAD) return;
  __builtin_prefetch(&view->arc_off[at[AHEAD].state]);
  __builtin_prefetch(&view->final_cost[at[AHEAD].state]);
  __builtin_prefetch(&view->arcs[view->arc_off[at[AHEAD / 2].state]]);
}

static wf_status expand(void *user, void *to, uint64_t first, int w, bool shared, wf_error *err) {
  wf__determinizer *det = user;
  wf__det_chunk *chunk = to;
  wf__det_worker *worker = &det->workers[w];
  const wf__det_element *elements = chunk->input.data;
  worker->out = chunk;
  worker->shared = shared;
  for (uint32_t k = 0; k < chunk->states.size; elements += chunk->input_size.data[k++]) {
    uint64_t num_arcs = chunk->arcs.size;
    fetch_states(&det->view, chunk, elements);
    if (!shared) det->current_id = (uint32_t)first + k;
    wf_status status =
        wf__det_expand(worker, elements, chunk->input_size.data[k], &chunk->states.data[k], err);
    if (status == WF_OK) continue;
    chunk->arcs.size = num_arcs;
    if (!shared) {
      chunk->states.size = k;
      return status;
    }
    chunk->postponed.data[chunk->postponed.size++] = k;
  }
  return WF_OK;
}

static wf_status expand_postponed(void *user, void *to, uint64_t first, wf_error *err) {
  wf__determinizer *det = user;
  wf__det_chunk *chunk = to;
  wf__det_worker *worker = &det->workers[0];
  const wf__det_element *elements = chunk->input.data;
  uint32_t k = 0;
  worker->out = chunk;
  worker->shared = false;
  for (uint64_t i = 0; i < chunk->postponed.size; i++) {
    while (k < chunk->postponed.data[i]) elements += chunk->input_size.data[k++];
    det->current_id = (uint32_t)first + k;
    wf_status status =
        wf__det_expand(worker, elements, chunk->input_size.data[k], &chunk->states.data[k], err);
    if (status == WF_OK) continue;
    chunk->states.size = k;
    return status;
  }
  return WF_OK;
}

/* --- interning: adds expanded states to the result, replaces target subsets by their ids ------ */

static inline void prefetch(const wf__determinizer *det, const wf__det_chunk *chunk,
                            uint32_t nextstate) {
  if (nextstate == WF__DET_SINK) return;
  if (nextstate & WF__DET_SEVERAL)
    wf__det_subsets_prefetch(&det->subsets, chunk->targets.data[nextstate & ~WF__DET_SEVERAL].hash);
  else
    __builtin_prefetch(&det->subsets.single[nextstate], 1);
}

/* Then outputs of one input can grow in number without new subsets of states. */
static bool keeps_all_outputs(const wf__determinizer *det) {
  return det->o.det_type == WF__DET_ALL_OUTPUTS;
}

static wf_status resolve(wf__determinizer *det, const wf__det_chunk *chunk, wf_arc *arc,
                         wf_error *err) {
  wf_status status;
  if (arc->nextstate == WF__DET_SINK) {
    det->uses_sink = true;
    return WF_OK;
  }
  if (arc->nextstate & WF__DET_SEVERAL) {
    const wf__det_target *target = &chunk->targets.data[arc->nextstate & ~WF__DET_SEVERAL];
    if (keeps_all_outputs(det) && target->size > det->subsets.max_states)
      return wf__fail_growth(det, arc->ilabel, "too many outputs of one input (max_states)", err);
    status = wf__det_subsets_add(&det->subsets, chunk->elements.data + target->off, target->size,
                                 target->hash, &arc->nextstate, err);
  } else {
    status = wf__det_subsets_add_single(&det->subsets, arc->nextstate, &arc->nextstate, err);
  }
  const char *why = det->o.max_states == 0 ? "gave up (the result may be infinite; if it is only "
                                             "large, set max_states to allow more)"
                                           : "gave up (max_states)";
  if (status == WF_ERR_NOT_DETERMINIZABLE) return wf__fail_growth(det, arc->ilabel, why, err);
  return status;
}

static wf_status intern(void *user, void *from, uint64_t first, wf_error *err) {
  wf__determinizer *det = user;
  const wf__det_chunk *chunk = from;
  uint64_t num_arcs = chunk->arcs.size;
  WF__TRY(wf__vec_grow(&det->csr.arcs, num_arcs, "arcs", err));
  for (uint64_t k = 0; k < chunk->states.size; k++) {
    const wf__det_expanded *state = &chunk->states.data[k];
    det->current_id = (uint32_t)(first + k);
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

static void free_chunk(void *chunk) { wf__det_chunk_free(chunk); }

/* --- the operation ----------------------------------------------------------------------- */

static wf_status run(wf__determinizer *det, wf__pool *pool, bool *trimmed, wf_error *err) {
  int num_workers = wf__pool_size(pool);
  const wf__pipeline pipeline = {.user = det,
                                 .chunk_bytes = sizeof(wf__det_chunk),
                                 .num_known = num_known,
                                 .take = take,
                                 .expand = expand,
                                 .expand_postponed = expand_postponed,
                                 .intern = intern,
                                 .free_chunk = free_chunk};
  det->workers = wf__calloc((uint64_t)num_workers, sizeof *det->workers);
  if (det->workers == NULL)
    return wf__fail_memory(err, (uint64_t)num_workers * sizeof *det->workers, "determinization");
  for (int w = 0; w < num_workers; w++) det->workers[w].det = det;
  wf_status status = wf__pipeline_run(&pipeline, pool, err);
  *trimmed = true;
  for (int w = 0; w < num_workers; w++) {
    *trimmed = *trimmed && !det->workers[w].dropped;
    wf__det_worker_free(&det->workers[w]);
  }
  free(det->workers);
  return status;
}

static wf_status determinize(wf__determinizer *det, bool *trimmed, wf_error *err) {
  uint64_t max_states = wf__determinize_limit((uint64_t)det->o.max_states, det->view.num_states);
  uint32_t start;
  wf__pool *pool;
  WF__TRY(wf__strings_init(&det->strings, err));
  WF__TRY(wf__det_subsets_init(&det->subsets, det->view.num_states, (double)det->o.delta,
                               max_states, err));
  if (det->o.rmepsilon && !(wf__fst_local_properties(det->fst) & WF_PROP_NO_IEPSILONS))
    WF__TRY(wf__det_closure_create(&det->view, &det->closure, err));
  WF__TRY(wf__det_subsets_add_single(&det->subsets, (uint32_t)det->view.start, &start, err));
  WF__TRY(wf__pool_for_fst(det->o.num_threads, &det->view, &pool, err));
  wf_status status = run(det, pool, trimmed, err);
  wf__pool_free(pool);
  WF__TRY(status);
  uint32_t sink = (uint32_t)det->csr.final_cost.size;
  if (det->uses_sink) {
    WF__TRY(wf__csr_add_state(&det->csr, 0, err));
    for (uint64_t i = 0; i < det->csr.arcs.size; i++)
      if (det->csr.arcs.data[i].nextstate == WF__DET_SINK) det->csr.arcs.data[i].nextstate = sink;
  }
  wf__det_subsets_free(&det->subsets); /* makes room for the strings */
  return wf__strings_expand(&det->strings, true, det->uses_sink ? sink : UINT32_MAX,
                            keeps_all_outputs(det) ? max_states : UINT64_MAX, &det->csr, err);
}

/* The fst must be trimmed. A state that reaches no final state would cost time, and could be
 * reported as having two outputs for one input. */
static wf_status determinize_trimmed(const wf_fst *fst, const wf_determinize_options *o,
                                     wf_fst **out, wf_error *err) {
  wf__determinizer det = {.fst = fst, .view = wf_fst_get_view(fst), .o = *o};
  bool trimmed = true;
  wf_status status = det.view.start < 0 ? WF_OK : determinize(&det, &trimmed, err);
  wf__det_subsets_free(&det.subsets);
  wf__strings_free(&det.strings);
  wf__det_closure_free(det.closure);
  if (status == WF_OK) {
    int64_t start = det.view.start < 0 ? -1 : 0;
    status = wf__fst_like(&det.csr, start, fst, out, err);
    if (status == WF_OK && trimmed) wf__fst_set_trimmed(*out);
    return status;
  }
  wf__csr_free(&det.csr);
  return status;
}

wf_status wf_determinize(const wf_fst *fst, const wf_determinize_options *options, wf_fst **out,
                         wf_error *err) {
  *out = NULL;
  wf_determinize_options o;
  WF__TRY(wf__options_take(wf__determinize_table(), options, &o, err));
  o.allow_nonfunctional = o.allow_nonfunctional || o.det_type == WF_DETERMINIZE_DISAMBIGUATE;
  if (o.det_type == WF__DET_ALL_OUTPUTS && o.rmepsilon &&
      !(wf__fst_local_properties(fst) & WF_PROP_NO_IEPSILONS))
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "cannot keep all outputs and remove epsilons in one call; use epsnormalize or "
                    "rmepsilon first");
  wf_fst *trimmed;
  WF__TRY(wf_connect(fst, &trimmed, err));
  WF__TRY(wf__prune_result(&trimmed, o.weight, 0, err));
  wf_status status = determinize_trimmed(trimmed, &o, out, err);
  wf_fst_free(trimmed);
  return status == WF_OK ? wf__prune_result(out, o.weight, o.nstate, err) : status;
}
