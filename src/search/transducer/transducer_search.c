/* transducer_search.c - a transducer's search over one utterance: frames, and the path at the end.
 */
#include "search/transducer/transducer_search.h"

#include <float.h>
#include <math.h>

#include "base/interrupt.h"
#include "search/trace.h"
#include "search/transducer/transducer_shared.h"

#define NONE UINT32_MAX
enum { LANE_FLOATS = 1 << 19 }; /* of the contexts that one of many searches keeps */

/* The label of each column: the smallest, if there are several. */
static wf_status find_labels(wf__transducer_search *search, wf_error *err) {
  const wf_graph *graph = search->base.graph;
  int32_t num_tokens = search->model->num_tokens;
  WF__TRY(wf__vec_grow(&search->labels, (uint64_t)num_tokens, "a search", err));
  for (int32_t c = 0; c < num_tokens; c++) search->labels.data[c] = 0;
  for (int32_t label = graph->num_labels - 1; label > 0; label--)
    search->labels.data[graph->columns[label]] = label;
  search->labels.size = (uint64_t)num_tokens;
  return WF_OK;
}

wf_status wf__transducer_search_create(const wf__search_setup *setup, bool many, wf__searcher **out,
                                       wf_error *err) {
  const struct wf__transducer_shared *shared = setup->shared;
  const wf_transducer *model = shared->model;
  const uint64_t most = setup->options.greedy ? 1 : (uint64_t)setup->options.max_hypotheses;
  *out = NULL;
  wf__transducer_search *search = wf__calloc(1, sizeof *search);
  if (search == NULL) return wf__fail_memory(err, sizeof *search, "a search");
  wf__searcher_init(&search->base, setup);
  search->model = model;
  search->arcs = &shared->arcs;
  search->defers = true;
  search->num_waiting = model->num_durations > 0 ? (uint32_t)model->num_durations : 2;
  wf__predictions_init(&search->predictions, model, setup->on_device);
  if (many) search->predictions.most_floats = LANE_FLOATS;
  search->waiting = wf__calloc(search->num_waiting, sizeof *search->waiting);
  wf_status status = search->waiting != NULL ? WF_OK : wf__fail_memory(err, 64, "a search");
  if (status == WF_OK) status = wf__transducer_set_init(&search->now, most, err);
  if (status == WF_OK) status = wf__transducer_set_init(&search->next, most, err);
  for (uint32_t w = 0; w < search->num_waiting && status == WF_OK; w++)
    status = wf__transducer_set_init(&search->waiting[w], most, err);
  if (status == WF_OK)
    status = wf__transducer_lattice_init(&search->lattice, search->num_waiting, err);
  if (status == WF_OK) status = find_labels(search, err);
  if (status == WF_OK)
    *out = &search->base;
  else
    wf__transducer_search_free(&search->base);
  return status;
}

void wf__transducer_search_free(wf__searcher *searcher) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  if (search == NULL) return;
  wf__searcher_release(searcher);
  wf__transducer_set_free(&search->now);
  wf__transducer_set_free(&search->next);
  for (uint32_t w = 0; w < search->num_waiting && search->waiting != NULL; w++)
    wf__transducer_set_free(&search->waiting[w]);
  free(search->waiting);
  wf__predictions_free(&search->predictions);
  wf__prediction_work_free(&search->work);
  wf__vec_free(&search->records);
  wf__vec_free(&search->sources);
  wf__vec_free(&search->row_of);
  wf__vec_free(&search->numbers);
  wf__vec_free(&search->needs);
  wf__vec_free(&search->loglikes);
  wf__vec_free(&search->frontier);
  wf__vec_free(&search->used);
  wf__vec_free(&search->labels);
  wf__vec_free(&search->ends);
  wf__vec_free(&search->sorted);
  wf__transducer_lattice_free(&search->lattice, search->num_waiting);
  wf__path_free(&search->committed);
  free(search);
}

static uint64_t set_bytes(const wf__transducer_set *set) {
  return set->tokens.cap * sizeof *set->tokens.data + set->best.cap * sizeof *set->best.data +
         ((uint64_t)sizeof *set->slots << set->bits);
}

uint64_t wf__transducer_search_bytes(const wf__transducer_search *search) {
  const wf__predictions *p = &search->predictions;
  const wf__history *history = &search->base.history;
  uint64_t bytes = sizeof *search + set_bytes(&search->now) + set_bytes(&search->next);
  for (uint32_t w = 0; w < search->num_waiting; w++)
    bytes += set_bytes(&search->waiting[w]) +
             search->lattice.waiting[w].cap * sizeof *search->lattice.waiting[w].data;
  bytes += (p->rows.cap + p->states.cap + p->encoder.cap + search->work.logits.cap) * sizeof(float);
  bytes += search->records.cap * sizeof *search->records.data +
           search->sources.cap * sizeof *search->sources.data;
  bytes += history->frames.cap * sizeof *history->frames.data +
           history->contexts.cap * sizeof *history->contexts.data +
           history->labels.cap * sizeof *history->labels.data;
  return bytes + history->tokens.cap * sizeof *history->tokens.data +
         history->links.cap * (sizeof *history->links.data + sizeof(float));
}

/* --- frames ------------------------------------------------------------------------------ */

wf_status wf__transducer_search_begin(wf__searcher *searcher, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  wf__path_clear(&search->base.path);
  search->base.path.flags = 0;
  search->base.path.num_tokens = search->base.path.num_expanded = search->base.path.num_arcs =
      search->base.path.num_narrowed = 0;
  search->records.size = search->row_of.size = search->sources.size = 0;
  search->num_frames = search->next_frame = search->last_frame = 0;
  search->stage = WF__TRANSDUCER_BETWEEN;
  searcher->waits = 0;
  search->ends.size = 0;
  search->base.ended = false;
  if (search->base.keeps_lattice) wf__transducer_lattice_clear(search);
  for (uint32_t w = 0; w < search->num_waiting; w++) wf__transducer_set_clear(&search->waiting[w]);
  wf__path_clear(&search->committed);
  search->num_live = 0;
  WF__TRY(wf__scoring_begin(&search->base.scoring, err));
  search->base.committed_sum = (wf__score_sum){search->base.scoring.start, 0};
  wf__transducer_token start = {
      .state = search->base.graph->start,
      .arc = WF__NO_ARC,
      .prev = WF__TRACE_ROOT,
      .predictor = wf__context_start(search->model),
      .context = search->base.scoring.scorer != NULL ? search->base.scoring.start : 0};
  WF__TRY(wf__predictions_start(&search->predictions, &start.number, err));
  return wf__transducer_set_offer(&search->waiting[0], &start, err);
}

wf_status wf__transducer_drop_contexts(wf__transducer_search *search, wf_error *err) {
  search->used.size = 0;
  for (uint32_t w = 0; w < search->num_waiting; w++)
    for (uint64_t i = 0; i < search->waiting[w].tokens.size; i++)
      WF__TRY(wf__vec_push(&search->used, &search->waiting[w].tokens.data[i].number,
                           "predictor contexts", err));
  search->row_of.size = 0;
  return wf__predictions_keep(&search->predictions, search->used.data, search->used.size, err);
}

/* Makes the costs of all waiting tokens relative to the best that waits for this frame. */
static void normalise(wf__transducer_search *search, const wf__transducer_set *set) {
  float best = INFINITY;
  for (uint64_t i = 0; i < set->tokens.size; i++)
    if (set->tokens.data[i].cost < best) best = set->tokens.data[i].cost;
  for (uint32_t w = 0; w < search->num_waiting; w++) {
    wf__transducer_set_lower(&search->waiting[w], best);
    for (uint64_t i = 0; i < search->lattice.waiting[w].size; i++)
      search->lattice.waiting[w].data[i].cost -= best;
  }
}

/* The lattice of an utterance that ends here, or dies in this frame, ends in these tokens. */
static wf_status keep_ends(wf__transducer_search *search, wf_error *err) {
  bool last = search->base.ended;
  uint64_t size = last ? search->now.tokens.size : search->sources.size,
           first = search->records.size - search->now.tokens.size;
  search->ends.size = 0;
  WF__TRY(wf__vec_grow(&search->ends, size, "the lattice", err));
  for (uint64_t i = 0; i < size; i++) {
    uint64_t number = last ? i : search->sources.data[i].number - first;
    search->ends.data[i] = (wf__transducer_source){search->now.tokens.data[number],
                                                   search->lattice.base + (uint32_t)number};
  }
  search->ends.size = size;
  return WF_OK;
}

/* Takes the tokens that wait for a frame into `now`, as A(0). */
static wf_status begin_frame(wf__transducer_search *search, int64_t frame, wf_error *err) {
  wf__transducer_set *set = &search->waiting[frame % search->num_waiting];
  float beam = search->base.options.greedy ? FLT_MAX : search->base.options.beam;
  search->frame = frame;
  normalise(search, set);
  wf__transducer_set was = search->now;
  search->now = *set;
  *set = was;
  wf__transducer_set_clear(set);
  wf__transducer_set_cut(&search->now, beam);
  if (search->base.keeps_lattice) WF__TRY(wf__transducer_lattice_frame(search, err));
  return wf__transducer_begin_closure(search, true, beam, err);
}

/* A(0) is closed. */
static wf_status end_closure_of_frame(wf__transducer_search *search, wf_error *err) {
  if (search->base.keeps_lattice)
    WF__TRY(wf__transducer_lattice_set(search, search->cutoff, true, err));
  WF__TRY(wf__transducer_choose(search, err));
  if (search->base.keeps_lattice) WF__TRY(keep_ends(search, err));
  if (search->base.ended) return WF_OK;
  search->step = 0;
  search->last_frame = search->frame;
  search->best_record = search->sources.data[0].number;
  return WF_OK;
}

static bool is_anyone_waiting(const wf__transducer_search *search) {
  for (uint32_t w = 0; w < search->num_waiting; w++)
    if (search->waiting[w].tokens.size > 0) return true;
  return false;
}

/* Begins the next frame. Without sources, no token waits for it. */
static wf_status next_frame(wf__transducer_search *search, wf_error *err) {
  int64_t frame = search->next_frame++;
  WF__TRY(wf__interrupted(err));
  if (search->waiting[frame % search->num_waiting].tokens.size == 0) {
    search->frame = frame;
    wf__transducer_set_clear(&search->now);
    return search->base.keeps_lattice ? wf__transducer_lattice_frame(search, err) : WF_OK;
  }
  if (wf__predictions_full(&search->predictions))
    WF__TRY(wf__transducer_drop_contexts(search, err));
  return begin_frame(search, frame, err);
}

/* A(n + 1) is closed. */
static wf_status end_step(wf__transducer_search *search, wf_error *err) {
  wf__transducer_set was = search->now;
  search->now = search->next;
  search->next = was;
  if (search->base.keeps_lattice)
    WF__TRY(wf__transducer_lattice_set(search, search->cutoff, false, err));
  WF__TRY(wf__transducer_choose(search, err));
  search->step++;
  return WF_OK;
}

wf_status wf__transducer_search_feed(wf__searcher *searcher, const wf_scores *scores,
                                     wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  wf__predictions *predictions = &search->predictions;
  if (predictions->on_device)
    predictions->first_frame = search->num_frames;
  else
    WF__TRY(wf__predictions_encode(predictions, scores, search->num_frames, &search->work, err));
  search->num_frames += scores->num_frames;
  return WF_OK;
}

static wf_status close_set(wf__transducer_search *search, wf_error *err) {
  WF__TRY(wf__transducer_close(search, err));
  if (search->base.waits) return WF_OK;
  search->stage = WF__TRANSDUCER_BETWEEN;
  return search->closes_first ? end_closure_of_frame(search, err) : end_step(search, err);
}

wf_status wf__transducer_search_go_on(wf__searcher *searcher, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  searcher->waits = 0;
  while (!searcher->waits) {
    if (search->stage == WF__TRANSDUCER_STEP) {
      WF__TRY(wf__transducer_expand(search, err));
    } else if (search->stage == WF__TRANSDUCER_CLOSURE) {
      WF__TRY(close_set(search, err));
    } else if (search->sources.size > 0) {
      if (search->offers == NULL) {
        WF__TRY(wf__transducer_request(search, err));
        WF__TRY(wf__transducer_request_words(search, err));
        searcher->waits |= WF__WAITS_MODEL;
      }
      search->stage = WF__TRANSDUCER_STEP;
    } else if (search->next_frame == search->num_frames || !is_anyone_waiting(search)) {
      return WF_OK;
    } else {
      WF__TRY(next_frame(search, err));
    }
  }
  return WF_OK;
}

/* --- the end ----------------------------------------------------------------------------- */

/* At the end, tokens that wait for later frames wait for the end. */
static wf_status merge_waiting(wf__transducer_search *search, wf_error *err) {
  uint32_t end = (uint32_t)(search->num_frames % search->num_waiting);
  for (uint32_t k = 1; k < search->num_waiting; k++) {
    uint32_t later = (end + k) % search->num_waiting;
    wf__transducer_set *set = &search->waiting[later];
    for (uint64_t i = 0; i < set->tokens.size; i++)
      WF__TRY(wf__transducer_set_offer(&search->waiting[end], &set->tokens.data[i], err));
    wf__transducer_set_clear(set);
    if (search->base.keeps_lattice) WF__TRY(wf__transducer_lattice_merge(search, later, end, err));
  }
  return WF_OK;
}

/* Chooses the record that the path ends in. */
static wf_status choose_end(wf__transducer_search *search, uint32_t *out, wf_error *err) {
  uint64_t size = search->now.tokens.size, first = search->records.size - size;
  wf__transducer_token best = {0};
  *out = NONE;
  for (uint64_t i = 0; i < size; i++) {
    wf__transducer_token token = search->now.tokens.data[i];
    WF__TRY(wf__transducer_ending_cost(search, &token, &token.cost, err));
    if (token.cost == INFINITY || (*out != NONE && !wf__transducer_before(&token, &best))) continue;
    best = token;
    *out = (uint32_t)(first + i);
  }
  search->base.path.final_cost = *out != NONE ? wf__graph_final(search->base.graph, best.state) : 0;
  if (*out != NONE) return WF_OK;
  *out = search->sources.data[0].number;
  search->base.path.flags |= WF_RESULT_NOT_FINAL;
  return WF_OK;
}

static void reverse32(void *data, uint64_t size) {
  uint32_t *x = data;
  for (uint64_t i = 0; i < size / 2; i++) {
    uint32_t was = x[i];
    x[i] = x[size - 1 - i];
    x[size - 1 - i] = was;
  }
}

/* Follows the records back from the end. */
static wf_status make_path(wf__transducer_search *search, const wf__transducer_record *end,
                           wf_error *err) {
  wf__path *path = &search->base.path;
  wf__transducer_record record = *end;
  wf__path_clear(path);
  WF__TRY(wf__transducer_add_arc(search->base.graph, &record, path, err));
  for (uint64_t count = 0; record.prev != WF__TRACE_ROOT; count++) {
    if (count > search->records.size) return wf__fail_cycle(err);
    record = search->records.data[record.prev];
    WF__TRY(wf__transducer_add_arc(search->base.graph, &record, path, err));
  }
  reverse32(path->arcs.data, path->arcs.size);
  reverse32(path->loglikes.data, path->loglikes.size);
  reverse32(path->steps.data, path->steps.size);
  wf__score_sum sum = search->base.committed_sum;
  WF__TRY(wf__path_score(path, 0, search->base.graph, &search->base.scoring,
                         (path->flags & WF_RESULT_NOT_FINAL) == 0, &sum, err));
  path->scorer_cost = sum.cost;
  return WF_OK;
}

/* The path of an utterance that died. */
static wf_status make_dead_path(wf__transducer_search *search, wf_error *err) {
  search->base.path.flags = WF_RESULT_DIED | WF_RESULT_NOT_FINAL;
  search->base.path.final_cost = 0;
  search->base.path.relative_cost = INFINITY;
  search->base.path.num_decoded = search->last_frame;
  wf__transducer_record none = {WF__TRACE_ROOT, WF__NO_ARC, 0, 0}; /* all is committed */
  return make_path(search,
                   search->best_record != NONE ? &search->records.data[search->best_record] : &none,
                   err);
}

wf_status wf__transducer_search_go_to_end(wf__searcher *searcher, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  searcher->waits = 0;
  if (!searcher->ended) {
    if (!is_anyone_waiting(search)) return WF_OK;
    searcher->ended = true;
    WF__TRY(merge_waiting(search, err));
    WF__TRY(begin_frame(search, search->num_frames, err));
  }
  if (search->stage != WF__TRANSDUCER_CLOSURE) return WF_OK;
  WF__TRY(close_set(search, err));
  return searcher->waits ? WF_OK : wf__transducer_request_endings(search, err);
}

wf_status wf__transducer_search_finish(wf__searcher *searcher, const wf_scores *scores,
                                       wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  uint32_t end;
  if (!searcher->ended) return make_dead_path(search, err);
  searcher->path.flags = 0;
  searcher->path.num_decoded = search->num_frames;
  WF__TRY(choose_end(search, &end, err));
  return make_path(search, &search->records.data[end], err);
}

wf_status wf__transducer_search_partial(wf__searcher *searcher, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  const wf__transducer_token *best = NULL;
  float least = INFINITY, cost;
  if (!is_anyone_waiting(search)) return make_dead_path(search, err);
  for (uint32_t w = 0; w < search->num_waiting; w++)
    for (uint64_t i = 0; i < search->waiting[w].tokens.size; i++) {
      const wf__transducer_token *token = &search->waiting[w].tokens.data[i];
      if (best == NULL || wf__transducer_before(token, best)) best = token;
      WF__TRY(wf__transducer_ending_cost(search, token, &cost, err));
      if (cost < least) least = cost;
    }
  search->base.path.flags = WF_RESULT_NOT_FINAL;
  search->base.path.final_cost = 0;
  search->base.path.relative_cost = least - best->cost;
  search->base.path.num_decoded = search->num_frames;
  wf__transducer_record end = {best->prev, best->arc, best->loglike, best->frame};
  return make_path(search, &end, err);
}
