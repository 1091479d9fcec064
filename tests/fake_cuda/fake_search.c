/* fake_search.c - the search kernels (search_params.h) of the imitated GPU. They run the CPU search
 * on the data that the host code has uploaded. Graph, options and scores are read from where a real
 * kernel would read them, not from the decoder. */
#include <string.h>

#include "cuda/rnn/rnn_score_tables.h"
#include "cuda/search/graph_layout.h"
#include "cuda/search/search_params.h"
#include "cuda_runtime_api.h"
#include "math/score.h"
#include "plan/lane_memory.h"
#include "search/frame/search.h"
#include "testing.h"

/* Rebuilds the graph from the uploaded one. Its input labels are columns of the scores + 1. */
static wf_graph *graph_on_device(const wf__lane_params *p) {
  wf_error err = {0};
  const wf__lane_state *states = p->graph.states;
  wf_builder *builder;
  wf_fst *fst;
  wf_graph *graph;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, p->graph.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, p->graph.start, &err));
  for (uint32_t s = 0; s < p->graph.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, states[s].final_cost, &err));
    for (uint32_t a = states[s].first_arc; a < states[s].end; a++) {
      wf_arc arc = ((const wf_arc *)p->graph.arcs)[a];
      assert_int_equal(arc.ilabel < 0, a >= states[s].first_epsilon);
      arc.ilabel++;
      const bool marked = arc.nextstate >> 31;
      arc.nextstate &= 0x7fffffffu;
      assert_int_equal(marked, states[arc.nextstate].first_epsilon < states[arc.nextstate].end);
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_fst_free(fst);
  assert_int_equal(wf_graph_min_columns(graph), p->graph.num_columns);
  return graph;
}

/* A scorer that reads the uploaded tables. */
struct uploaded {
  wf_scorer scorer;
  const wf__flat_scorer *flat;
};

static void uploaded_free(wf_scorer *self) { free(self); }
static wf_status uploaded_begin(const wf_scorer *self, void *memory, uint64_t *start,
                                wf_error *err) {
  *start = ((const struct uploaded *)self)->flat->start;
  return WF_OK;
}
static wf_status uploaded_step(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                               float *cost, uint64_t *next, wf_error *err) {
  *cost = wf__flat_step(((const struct uploaded *)self)->flat, context, (uint32_t)word, next);
  return WF_OK;
}
static wf_status uploaded_final(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                                wf_error *err) {
  *cost = wf__flat_final(((const struct uploaded *)self)->flat, context);
  return WF_OK;
}
static const wf__scorer_ops uploaded_ops = {.name = "uploaded",
                                            .free = uploaded_free,
                                            .begin = uploaded_begin,
                                            .step = uploaded_step,
                                            .final = uploaded_final};

static wf_scorer *scorer_on_device(const wf__flat_scorer *flat) {
  struct uploaded *scorer = calloc(1, sizeof *scorer);
  wf__scorer_init(&scorer->scorer, &uploaded_ops, flat->bits);
  scorer->flat = flat;
  return &scorer->scorer;
}

static void scribble(void *array, uint64_t bytes) {
  uint64_t edge = bytes < 64 ? bytes : 64;
  memset(array, 0x5a, edge);
  memset((char *)array + bytes - edge, 0x5a, edge);
}

static void scribble_lattices(const wf__lane_params *p, uint64_t parts) {
  scribble(p->lattices.past, parts * p->memory.trace_cap * 8);
  scribble(p->lattices.records, (uint64_t)p->memory.num_lanes * (p->memory.frames_cap + 1) *
                                    sizeof *p->lattices.records);
  scribble(p->lattices.pages,
           (uint64_t)p->lattices.pages_cap * WF__LANE_PAGE * sizeof *p->lattices.pages);
}

/* Writes to both ends of every buffer of the lanes, which finds buffers that are too small. */
static void use_lanes(const wf__lane_params *p, bool scored) {
  uint64_t parts = (uint64_t)p->memory.num_lanes * p->memory.ranks,
           slots = parts * wf__lane_slots(p->shared_kb, scored);
  scribble(p->memory.costs, slots * 4);
  scribble(p->memory.frontier, slots * 16);
  scribble(p->memory.trace, parts * p->memory.trace_cap * 8);
  scribble(p->memory.path_scratch,
           (uint64_t)p->memory.num_lanes * p->memory.path_cap * sizeof *p->memory.path_scratch);
  scribble(p->memory.frame_off, parts * (p->memory.frames_cap + 2) * 4);
  scribble(p->memory.index, parts * (p->memory.frames_cap + 1) * WF__LANE_INDEX * 2);
  if (p->rules.lattice_beam > 0) scribble_lattices(p, parts);
  if (!scored) return;
  scribble(p->memory.contexts, parts * p->memory.trace_cap * 16);
  scribble(p->memory.word_log, parts * WF__LANE_WORD_LOG * sizeof *p->memory.word_log);
  scribble(p->memory.sources, slots * 8);
  scribble(p->memory.memo, parts << WF__LANE_MEMO_BITS << 4);
}

static void store_path(const wf__lane_params *p, bool scored, const wf__search *search,
                       const wf_graph *graph, wf__lane_outcome *outcome) {
  const wf__path *path = &search->base.path;
  *outcome = (wf__lane_outcome){.flags = path->flags,
                                .num_decoded = path->num_decoded,
                                .final_cost = path->final_cost,
                                .num_tokens = path->num_tokens,
                                .num_expanded = path->num_expanded,
                                .num_arcs = path->num_arcs,
                                .num_narrowed = path->num_narrowed};
  uint64_t from = *p->work.steps_used, frame = 0;
  *p->work.steps_used += path->arcs.size;
  outcome->path_off = from;
  outcome->path_size = (uint32_t)path->arcs.size;
  outcome->status = WF__LANE_OK;
  if (path->arcs.size > p->memory.path_cap ||
      path->num_tokens > (uint64_t)p->memory.trace_cap * p->memory.ranks ||
      from + path->arcs.size > p->work.steps_cap) {
    outcome->status = WF__LANE_NO_ROOM;
    return;
  }
  if (path->num_tokens >
      (uint64_t)path->num_decoded * p->memory.ranks * wf__lane_tokens(p->shared_kb, scored)) {
    outcome->status = WF__LANE_TABLE_FULL;
    return;
  }
  for (uint64_t i = 0; i < path->arcs.size; i++) {
    uint32_t arc = path->arcs.data[i];
    bool consumes = wf_fst_get_view(wf_graph_fst(graph)).arcs[arc].ilabel != 0;
    p->work.steps[from + i] = (wf__lane_step){arc, consumes ? path->loglikes.data[frame] : 0,
                                              consumes ? (uint32_t)wf__path_frame(path, frame) : 0};
    frame += consumes;
  }
}

/* --- lattices ---------------------------------------------------------------------------- */

struct placed {
  uint64_t key, context; /* level, state */
  uint32_t token;
};

static int compare_placed(const void *a, const void *b) {
  const struct placed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->context > y->context) - (x->context < y->context);
}

static uint64_t end_of_tokens(const wf__history *history, uint64_t f) {
  return f + 1 == history->frames.size ? history->tokens.size
                                       : history->frames.data[f + 1].first_token;
}

/* Numbers the tokens of frame f in the order of the lattice's states: by epsilon level, state, then
 * context. Writes numbers[token of the history]. */
static void number_tokens(const wf__history *history, uint64_t f, uint32_t *numbers) {
  const uint64_t first = history->frames.data[f].first_token,
                 count = end_of_tokens(history, f) - first;
  const uint64_t end =
      f + 1 == history->frames.size ? history->links.size : history->frames.data[f + 1].first_link;
  struct placed *placed = calloc(count, sizeof *placed);
  for (uint64_t i = history->frames.data[f].first_epsilon; i < end; i++) {
    const wf__link *link = &history->links.data[i];
    if (placed[link->to].key <= placed[link->from].key)
      placed[link->to].key = placed[link->from].key + 1;
  }
  for (uint64_t i = 0; i < count; i++)
    placed[i] = (struct placed){placed[i].key << 32 | history->tokens.data[first + i].state,
                                history->contexts.size > 0 ? history->contexts.data[first + i] : 0,
                                (uint32_t)i};
  qsort(placed, count, sizeof *placed, compare_placed);
  for (uint64_t i = 0; i < count; i++) numbers[first + placed[i].token] = (uint32_t)i;
  free(placed);
}

struct fake_link {
  uint64_t frame, context;
  wf__lane_link link;
};

static int compare_links(const void *a, const void *b) { /* in descending order */
  const struct fake_link *x = a, *y = b;
  if (x->frame != y->frame) return x->frame > y->frame ? -1 : 1;
  if (x->link.from != y->link.from) return x->link.from > y->link.from ? -1 : 1;
  return (x->link.arc < y->link.arc) - (x->link.arc > y->link.arc);
}

/* Lists the lattice's arcs and final states, in the order in which the kernel emits them. */
static uint64_t list_links(const wf__history *history, const wf_scores *scores,
                           const wf_graph *graph, struct fake_link *out) {
  const wf_arc *arcs = wf_fst_get_view(wf_graph_fst(graph)).arcs;
  const uint64_t num_frames = history->frames.size,
                 last_token = history->frames.data[num_frames - 1].first_token;
  uint32_t *numbers = malloc(history->tokens.size * sizeof *numbers);
  uint64_t count = 0;
  for (uint64_t f = 0; f < num_frames; f++) number_tokens(history, f, numbers);
  for (uint64_t i = 0, f = 0; i < history->links.size; i++) {
    const wf__link *from = &history->links.data[i];
    while (f + 1 < num_frames && i >= history->frames.data[f + 1].first_link) f++;
    const bool consumes = arcs[from->arc].ilabel != 0;
    const uint64_t frame = f - consumes,
                   source = history->frames.data[frame].first_token + from->from,
                   size = end_of_tokens(history, frame) - history->frames.data[frame].first_token;
    const float score =
        consumes ? wf__score_at(scores, (int64_t)frame, arcs[from->arc].ilabel - 1) : 0;
    struct fake_link *link = &out[count++];
    *link = (struct fake_link){
        frame,
        history->contexts.size > 0 ? history->contexts.data[source] : 0,
        {(uint32_t)frame << 16 | numbers[source],
         (uint32_t)size << 16 | numbers[history->frames.data[f].first_token + from->to], from->arc,
         0}};
    memcpy(&link->link.value, &score, sizeof score);
  }
  for (uint64_t source = last_token; source < history->tokens.size; source++) {
    if (!(history->endings.data[source - last_token] <= history->beam)) continue;
    out[count++] =
        (struct fake_link){num_frames - 1,
                           history->contexts.size > 0 ? history->contexts.data[source] : 0,
                           {(uint32_t)(num_frames - 1) << 16 | numbers[source],
                            (uint32_t)(history->tokens.size - last_token) << 16, WF__LANE_ENDING,
                            history->tokens.data[source].state}};
  }
  qsort(out, count, sizeof *out, compare_links);
  free(numbers);
  return count;
}

/* Stores the lattice's arcs in a linked list of pages, with few arcs a page. Returns false if there
 * are not enough pages. */
static bool store_lattice(const wf__lane_params *p, wf__search *search, const wf_scores *scores,
                          const wf_graph *graph, wf__lane_outcome *outcome) {
  enum { FEW = 5 };
  wf_error err = {0};
  const wf__history *history = &search->base.history;
  wf__lane_link *page = NULL;
  assert_ok(wf__search_endings(search, (outcome->flags & WF_RESULT_NOT_FINAL) == 0, &err));
  assert_ok(wf__history_end(&search->base.history, &err));
  struct fake_link *links = malloc((history->links.size + history->endings.size) * sizeof *links);
  const uint64_t count = list_links(history, scores, graph, links);
  bool fits = true;
  for (uint64_t i = 0; i < count && fits; i++) {
    if (page == NULL || page->to == FEW) {
      fits = *p->lattices.pages_used < p->lattices.pages_cap;
      if (!fits) break;
      page = p->lattices.pages + (uint64_t)(*p->lattices.pages_used)++ * WF__LANE_PAGE;
      *page = (wf__lane_link){outcome->last_page, 1, 0, 0};
      outcome->last_page = *p->lattices.pages_used;
    }
    if (history->contexts.size > 0)
      p->lattices.page_contexts[(page - p->lattices.pages) + page->to] = links[i].context;
    page[page->to++] = links[i].link;
  }
  outcome->num_states = (uint32_t)history->tokens.size;
  outcome->num_links = (uint32_t)count;
  free(links);
  return fits;
}

static void search_all(const wf__lane_params *p, wf__search_kind kind) {
  const bool scored = kind == WF__SEARCH_SCORED; /* boosts need no more memory than no scorer */
  wf_error err = {0};
  wf_decoder_options options;
  wf_graph *graph = graph_on_device(p);
  wf__searcher *searcher;
  wf_decoder_options_init(&options);
  options.beam = p->rules.beam;
  options.acoustic_scale = p->rules.acoustic_scale;
  options.word_score = p->rules.word_score;
  options.blank = p->rules.blank;
  options.blank_penalty = p->rules.blank_penalty;
  options.max_active = (int32_t)p->rules.max_active;
  options.min_active = (int32_t)p->rules.min_active;
  options.max_tokens = (int32_t)p->rules.max_tokens;
  options.recombine = (int32_t)p->rules.by_state;
  options.lattice_beam = p->rules.lattice_beam;
  options.lattice_prune_interval = 3;
  const wf__search_setup setup = {.ops = &wf__frame_searcher, .graph = graph, .options = options};
  assert_ok(setup.ops->create(&setup, false, &searcher, &err));
  wf__search *search = (wf__search *)searcher;
  assert_true(searcher->epsilon_slack == p->graph.epsilon_slack);
  search->step.skip_above = p->rules.skip_above;
  use_lanes(p, scored);
  const wf__transfer_counters *counters = (const wf__transfer_counters *)p->work.steps_used;
  if (p->work.queue == counters->queues) /* others may follow searches beside them */
    assert_int_equal(counters->steps_used, 0);
  assert_int_equal(*p->work.queue, 0);
  for (; *p->work.queue < p->work.num_utterances; (*p->work.queue)++) {
    const uint32_t u = p->work.order[*p->work.queue];
    const wf__lane_utterance *utterance = &p->work.utterances[u];
    assert_true(utterance->num_frames <= (int32_t)p->memory.frames_cap);
    wf_scores scores = {.data = utterance->scores,
                        .num_frames = utterance->num_frames,
                        .num_columns = utterance->num_columns,
                        .stride = utterance->stride,
                        .dtype = (wf_dtype)utterance->dtype};
    assert_true(kind != WF__SEARCH_PLAIN || utterance->scorer == NULL);
    wf_scorer *scorer = utterance->scorer != NULL ? scorer_on_device(utterance->scorer) : NULL;
    assert_ok(wf__searcher_set_scorer(searcher, scorer, &err));
    wf_scorer_free(scorer);
    assert_true(searcher->epsilon_slack ==
                (scorer != NULL ? p->graph.scored_slack : p->graph.epsilon_slack));
    assert_true(scorer == NULL || p->rules.by_state != 0 ||
                scorer->context_bits <= p->graph.context_bits);
    wf_status status = wf__search_begin(searcher, &err);
    if (status == WF_OK) status = wf__searcher_advance(searcher, &scores, &err);
    if (status == WF_OK) status = wf__searcher_finish(searcher, &scores, &err);
    if (status == WF_OK) store_path(p, scored, search, graph, &p->work.outcomes[u]);
    if (status == WF_OK && p->rules.lattice_beam > 0 && p->work.outcomes[u].status == WF__LANE_OK &&
        !store_lattice(p, search, &scores, graph, &p->work.outcomes[u]))
      p->work.outcomes[u].status = WF__LANE_NO_ROOM;
    if (status != WF_OK)
      p->work.outcomes[u].status =
          status == WF_ERR_NEGATIVE_CYCLE ? WF__LANE_CYCLE : WF__LANE_CLOSURE;
  }
  setup.ops->free(searcher);
  wf_graph_free(graph);
}

static void run_search(void *params) { search_all(params, WF__SEARCH_PLAIN); }
static void run_boosted(void *params) { search_all(params, WF__SEARCH_BOOSTED); }
static void run_scored(void *params) { search_all(params, WF__SEARCH_SCORED); }

static int launch(const wf__lane_params *params, void (*run)(void *params), void *stream,
                  void *begun) {
  wf__lane_params *copy = malloc(sizeof *copy);
  *copy = *params;
  if (begun != NULL && cudaEventRecord(begun, stream) != cudaSuccess) {
    free(copy);
    return cudaErrorUnknown;
  }
  return fake_enqueue(stream, run, copy);
}

static int launch_search(const wf__lane_params *params, void *stream, void *begun) {
  fake_gpus.num_searches[params->memory.ranks]++;
  return launch(params, run_search, stream, begun);
}
static int launch_boosted(const wf__lane_params *params, void *stream, void *begun) {
  return launch(params, run_boosted, stream, begun);
}
static int launch_scored(const wf__lane_params *params, void *stream, void *begun) {
  return launch(params, run_scored, stream, begun);
}
/* The search kernel has already written the lattices. */
static int backward(const wf__lane_params *params, wf__backward_tables tables, void *stream) {
  return cudaSuccess;
}
static uint64_t global_bytes(uint32_t num_lattices) { return num_lattices; }

struct check {
  const wf__lane_utterance *utterances;
  uint32_t count;
  uint64_t *bad;
};

static void run_check(void *data) {
  const struct check *check = data;
  for (uint32_t u = 0; u < check->count; u++) {
    const wf__lane_utterance *utterance = &check->utterances[u];
    wf_scores scores = {.data = utterance->scores,
                        .stride = utterance->stride,
                        .dtype = (wf_dtype)utterance->dtype};
    assert_true(check->bad[u] == UINT64_MAX);
    for (int64_t i = (int64_t)utterance->num_frames * utterance->num_columns - 1; i >= 0; i--) {
      int64_t t = i / utterance->num_columns, c = i % utterance->num_columns;
      if (!wf__score_usable(wf__score_at(&scores, t, (int32_t)c)))
        check->bad[u] = (uint64_t)t << 32 | (uint64_t)c;
    }
  }
}

int wf__check_scores_launch(const wf__lane_utterance *utterances, uint32_t count, uint64_t *bad,
                            void *stream) {
  struct check *check = malloc(sizeof *check);
  *check = (struct check){utterances, count, bad};
  return fake_enqueue(stream, run_check, check);
}

struct copies {
  const wf__score_copy *list;
  uint32_t count;
};

static void run_copies(void *data) {
  const struct copies *copies = data;
  for (uint32_t i = 0; i < copies->count; i++) {
    const wf__score_copy *c = &copies->list[i];
    const size_t row = (size_t)(c->num_columns * c->element_bytes);
    for (int64_t t = 0; t < c->num_frames; t++)
      memcpy((char *)c->to + (size_t)t * row,
             (const char *)c->from + t * c->stride * c->element_bytes, row);
  }
}

int wf__copy_scores_launch(const wf__score_copy *list, uint32_t count, void *stream) {
  struct copies *copies = malloc(sizeof *copies);
  *copies = (struct copies){list, count};
  return fake_enqueue(stream, run_copies, copies);
}

/* States or arcs of a graph to be laid out. */
struct layout {
  const uint32_t *index;
  const float *final_cost;
  const wf_arc *from;
  const int32_t *columns;
  const wf__lane_state *of;
  wf__lane_state *states;
  wf_arc *arcs;
  uint64_t count;
};

static void lay_out_states(void *data) {
  const struct layout *l = data;
  for (uint64_t s = 0; s < l->count; s++)
    l->states[s] = (wf__lane_state){l->index[2 * s], l->index[2 * s + 1], l->index[2 * s + 2],
                                    l->final_cost[s]};
}

int wf__graph_states(const uint32_t *index, const float *final_cost, uint64_t count,
                     wf__lane_state *to, void *stream) {
  struct layout *l = malloc(sizeof *l);
  *l = (struct layout){.index = index, .final_cost = final_cost, .states = to, .count = count};
  return fake_enqueue(stream, lay_out_states, l);
}

static void lay_out_arcs(void *data) {
  const struct layout *l = data;
  for (uint64_t i = 0; i < l->count; i++) {
    wf_arc arc = l->from[i];
    const wf__lane_state *next = &l->of[arc.nextstate];
    if (next->first_epsilon < next->end) arc.nextstate |= 1u << 31;
    arc.ilabel = l->columns[arc.ilabel];
    l->arcs[i] = arc;
  }
}

int wf__graph_arcs(const wf_arc *from, uint64_t count, const int32_t *columns,
                   const wf__lane_state *states, bool has_places, wf_arc *to, void *stream) {
  struct layout *l = malloc(sizeof *l);
  assert_false(has_places);
  *l = (struct layout){.from = from, .columns = columns, .of = states, .arcs = to, .count = count};
  return fake_enqueue(stream, lay_out_arcs, l);
}

static int capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                    int *out_lanes) {
  *out_lanes = ranks <= 1 << profile->max_rank_bits ? fake_gpus.num_processors / ranks : 0;
  return cudaSuccess;
}

/* Recurrent scorers and streams need the real kernels, which tests/simt runs. Here their capacity
 * is 0, so the decoder reports that they do not fit. */
int wf__word_scores_evict(const wf__rnn_state_tables *tables, const wf__lane_holders *holders,
                          void *stream) {
  return cudaErrorUnknown;
}
int wf__graph_places(wf__lane_place *places, uint64_t count, const uint32_t *arc_of,
                     uint64_t num_arcs, const wf__lane_state *states, wf_arc *arcs, void *stream) {
  return cudaErrorUnknown;
}
int wf__graph_sources(const wf__lane_state *states, uint64_t num_states, uint32_t *sources,
                      void *stream) {
  return cudaErrorUnknown;
}
int wf__word_scores_start(const wf__rnn_state_tables *tables, uint32_t root, void *stream) {
  return cudaErrorUnknown;
}
int wf__word_scores_claim(const wf__rnn_state_tables *tables, uint32_t num_claims, void *stream) {
  return cudaErrorUnknown;
}
int wf__word_scores_move(const wf__rnn_state_tables *tables, uint32_t num_claims, uint32_t step,
                         void *stream) {
  return cudaErrorUnknown;
}
int wf__word_scores_request(const wf__rnn_state_tables *tables, uint32_t num_missing,
                            void *stream) {
  return cudaErrorUnknown;
}
int wf__word_scores_make(const wf__rnn_state_tables *tables, uint32_t num_missing, void *stream) {
  return cudaErrorUnknown;
}
int wf__word_scores_copy(void *to, const void *from, uint64_t bytes, void *stream) {
  return cudaErrorUnknown;
}
static int unknown_launch(const wf__lane_params *params, void *stream, void *begun) {
  return cudaErrorUnknown;
}
static int no_capacity(const wf__gpu_profile *profile, int ranks, int32_t num_columns,
                       int *out_lanes) {
  *out_lanes = 0;
  return cudaSuccess;
}

const wf__search_kernels wf__search_kernels_of[WF__SEARCH_KINDS] = {
    [WF__SEARCH_PLAIN] = {launch_search, backward, global_bytes, capacity},
    [WF__SEARCH_BOOSTED] = {launch_boosted, NULL, NULL, capacity},
    [WF__SEARCH_SCORED] = {launch_scored, backward, global_bytes, capacity},
    [WF__SEARCH_DEFERRED] = {unknown_launch, NULL, NULL, no_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_PLAIN] = {unknown_launch, NULL, NULL, no_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_BOOSTED] = {unknown_launch, NULL, NULL, no_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_SCORED] = {unknown_launch, NULL, NULL, no_capacity},
    [WF__SEARCH_STREAMS + WF__SEARCH_DEFERRED] = {unknown_launch, NULL, NULL, no_capacity},
};
