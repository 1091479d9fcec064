/* cuda_lattice.c - the raw lattice of an utterance from the arcs that the GPU found to be in it (lane_back.cuh).
 *
 * They come as a chain of pages in no order. Every token of the lattice has an arc that leaves it or is an end, so the sources of a frame's arcs (with a scorer pairs of state
 * and context, whose numbers are the scorer's own, flat_scorer.h) are its tokens. A graph's arcs are numbered state after state, so arcs sorted by frame and number are
 * sorted by source, too, and lie as the lattice wants them, but for frames in which states are also ordered by level (decode/raw_lattice.c makes the CPU's lattices):
 *
 *   pages -> arcs by frame, source and number -> tokens, frame after frame -> states and arcs of the lattice
 *
 * Every step is linear in the arcs, as one thread has to keep up with what a GPU finds in the time of a few dozen frames. */
#ifdef WARPFST_CUDA
#include <math.h>
#include <string.h>

#include "cuda/cuda_worker.h"
#include "lattice/lattice.h"
#include "math/hash.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, MOST_DIGITS = 3, AHEAD = 16 };

/* A link; of the last frame also an end, whose number is WF__LANE_ENDING. */
struct arc {
  uint64_t context; /* of the source; 0 without a scorer */
  uint32_t frame; /* of the source; then, of an epsilon arc, the token that it leads to */
  uint32_t source, arc;
  float loglike;
};
struct arc_vec {
  struct arc *data;
  uint64_t size, cap;
};

/* Of the lattice, in the order of the arcs. */
struct token {
  uint64_t context, first; /* of its arcs */
  uint32_t state;
};

/* A token of the frame whose epsilon arcs are put in order. */
struct node {
  uint32_t level, degree; /* arcs on the longest epsilon path that leads there; arcs that do, from tokens not done yet */
};

/* One for each thread, used again and again. */
struct wf__gpu_drafts {
  const wf_graph *graph;
  const wf_decoder_options *options;
  wf__scoring *scoring; /* of the utterance; `none` if it has no scorer */
  wf__scoring none;
  WF__VEC(int64_t) rows;       /* by frame: of its scores; those of skipped frames are missing */
  WF__VEC(uint64_t) ends;      /* by frame: where its arcs begin, and of the last where they end */
  struct arc_vec arcs, scratch;
  WF__VEC(struct token) tokens;
  WF__VEC(uint32_t) numbers;   /* of tokens: states of the lattice */
  WF__VEC(uint32_t) order;     /* of states: tokens */
  WF__VEC(uint32_t) slots[2];  /* by frame's parity: (state, context) -> token + 1; what is not of the frame counts as empty */
  uint64_t first_token[2];     /* of the frames that these are of */
  WF__VEC(struct node) nodes;
  WF__VEC(uint32_t) queue;
  wf__lattice_arrays arrays;
};

wf_status wf__gpu_drafts_create(int count, struct wf__gpu_drafts **out, wf_error *err) {
  *out = wf__calloc((uint64_t)count, sizeof **out);
  return *out != NULL ? WF_OK : wf__fail_memory(err, (uint64_t)count * sizeof **out, "a decoder");
}

void wf__gpu_drafts_free(struct wf__gpu_drafts *drafts, int count) {
  for (int i = 0; i < count; i++) {
    wf__vec_free(&drafts[i].rows);
    wf__vec_free(&drafts[i].ends);
    wf__vec_free(&drafts[i].arcs);
    wf__vec_free(&drafts[i].scratch);
    wf__vec_free(&drafts[i].tokens);
    wf__vec_free(&drafts[i].numbers);
    wf__vec_free(&drafts[i].order);
    wf__vec_free(&drafts[i].slots[0]);
    wf__vec_free(&drafts[i].slots[1]);
    wf__vec_free(&drafts[i].nodes);
    wf__vec_free(&drafts[i].queue);
  }
  free(drafts);
}

/* --- arcs in order ----------------------------------------------------------------------------------------------------- */

static bool is_same_source(const struct arc *a, const struct arc *b) { return a->source == b->source && a->context == b->context; }

static int compare_arcs(const void *a, const void *b) {
  const struct arc *x = a, *y = b;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  if (x->context != y->context) return x->context < y->context ? -1 : 1;
  return (x->arc > y->arc) - (x->arc < y->arc);
}

/* Where a page's arcs begin, counted over all pages; *count of them. Moves on to the page before it in the chain. */
static uint64_t next_page(const wf__gpu_pages *pages, uint32_t *at, uint32_t *count) {
  const uint64_t first = (uint64_t)(*at - 1) * WF__LANE_PAGE;
  *at = pages->links[first].frame;
  *count = pages->links[first].source - 1;
  return first + 1;
}

/* The chain's arcs, and how many have each value of each digit of their numbers. */
static wf_status collect_arcs(struct wf__gpu_drafts *draft, uint32_t last_page, const wf__gpu_pages *pages, uint32_t digits[MOST_DIGITS][DIGITS], wf_error *err) {
  uint32_t count;
  draft->arcs.size = 0;
  for (uint32_t at = last_page; at != 0;) {
    const uint64_t first = next_page(pages, &at, &count);
    WF__TRY(wf__vec_grow(&draft->arcs, count, "the lattice", err));
    struct arc *out = draft->arcs.data + draft->arcs.size;
    for (uint32_t i = 0; i < count; i++) {
      const wf__lane_link *link = &pages->links[first + i];
      out[i] = (struct arc){pages->contexts != NULL ? pages->contexts[first + i] : 0, link->frame, link->source, link->arc, link->loglike};
      for (int d = 0; d < MOST_DIGITS; d++) digits[d][link->arc >> d * DIGIT_BITS & (DIGITS - 1)]++;
    }
    draft->arcs.size += count;
  }
  return WF_OK;
}

/* By one digit of their numbers, those that are equal as they were. */
static void sort_by_digit(struct wf__gpu_drafts *draft, uint32_t counts[DIGITS], int shift) {
  uint32_t sum = 0;
  for (int v = 0; v < DIGITS; v++) {
    const uint32_t count = counts[v];
    counts[v] = sum;
    sum += count;
  }
  const struct arc *from = draft->arcs.data;
  for (uint64_t i = 0; i < draft->arcs.size; i++) draft->scratch.data[counts[from[i].arc >> shift & (DIGITS - 1)]++] = from[i];
  draft->scratch.size = draft->arcs.size;
  wf__vec_swap(&draft->arcs, &draft->scratch);
}

static wf_status sort_by_frame(struct wf__gpu_drafts *draft, wf_error *err) {
  const uint64_t num_frames = draft->rows.size;
  draft->ends.size = 0;
  WF__TRY(wf__vec_grow(&draft->ends, num_frames + 2, "the lattice", err));
  uint64_t *next = draft->ends.data + 1; /* next[f]: place of the frame's next arc */
  memset(draft->ends.data, 0, (num_frames + 2) * sizeof *next);
  const struct arc *from = draft->arcs.data;
  for (uint64_t i = 0; i < draft->arcs.size; i++) next[from[i].frame + 1]++;
  for (uint64_t f = 0; f < num_frames; f++) next[f + 1] += next[f];
  for (uint64_t i = 0; i < draft->arcs.size; i++) draft->scratch.data[next[from[i].frame]++] = from[i];
  draft->scratch.size = draft->arcs.size;
  wf__vec_swap(&draft->arcs, &draft->scratch);
  return WF_OK;
}

/* By source and number, where numbers alone have not done it: several contexts of a state, or ends, which have none. */
static void sort_frame(struct arc *arcs, uint64_t count) {
  for (uint64_t i = 1; i < count; i++) {
    if (compare_arcs(&arcs[i - 1], &arcs[i]) <= 0) continue;
    qsort(arcs, count, sizeof *arcs, compare_arcs);
    return;
  }
}

/* The chain's arcs by frame, source and number; ends[f] .. ends[f + 1] are those of frame f. */
static wf_status sort_arcs(struct wf__gpu_drafts *draft, uint32_t last_page, const wf__gpu_pages *pages, wf_error *err) {
  uint32_t digits[MOST_DIGITS][DIGITS] = {{0}};
  WF__TRY(collect_arcs(draft, last_page, pages, digits, err));
  draft->scratch.size = 0;
  WF__TRY(wf__vec_grow(&draft->scratch, draft->arcs.size, "the lattice", err));
  for (int d = 0; d < MOST_DIGITS && draft->graph->num_arcs >> d * DIGIT_BITS > 0; d++) sort_by_digit(draft, digits[d], d * DIGIT_BITS);
  WF__TRY(sort_by_frame(draft, err));
  const uint64_t *ends = draft->ends.data;
  for (uint64_t f = 0; f < draft->rows.size; f++) sort_frame(draft->arcs.data + ends[f], ends[f + 1] - ends[f]);
  return WF_OK;
}

/* --- tokens and their numbers -------------------------------------------------------------------------------------------- */

/* Where the frame's table has the token, or would have it. */
static uint32_t *slot_of(struct wf__gpu_drafts *draft, uint64_t f, uint32_t state, uint64_t context) {
  uint32_t *slots = draft->slots[f & 1].data;
  const uint64_t mask = draft->slots[f & 1].size - 1, first = draft->first_token[f & 1];
  for (uint64_t at = (wf__spread64(context + state, 32) & mask);; at = (at + 1) & mask) {
    if (slots[at] <= first) return &slots[at];
    const struct token *token = &draft->tokens.data[slots[at] - 1];
    if (token->state == state && token->context == context) return &slots[at];
  }
}

/* What a link's arc costs in the scorer, and the context that it leads to. */
static wf_status ask_scorer(struct wf__gpu_drafts *draft, const struct arc *link, const wf_arc *arc, float *cost, uint64_t *context, wf_error *err) {
  *cost = 0;
  *context = link->context;
  if (arc->olabel == 0 || draft->scoring->scorer == NULL) return WF_OK;
  return wf__scoring_step(draft->scoring, link->context, arc->olabel, cost, context, err);
}

/* Token of frame f that a link's arc leads to: it is always there. */
static uint32_t target_of(struct wf__gpu_drafts *draft, const wf_arc *arc, uint64_t context, uint64_t f) {
  return *slot_of(draft, f, (uint32_t)arc->nextstate, context) - 1;
}

static bool is_epsilon(const struct wf__gpu_drafts *draft, const struct arc *link) {
  return link->arc != WF__LANE_ENDING && wf__graph_arc(draft->graph, link->arc).ilabel == 0;
}

/* Levels of the tokens of frame f, from `first` on: in topological order (Kahn 1962), each when all arcs into it have been seen. Epsilon arcs get their
 * targets. */
static wf_status find_levels(struct wf__gpu_drafts *draft, uint64_t f, uint64_t first, wf_error *err) {
  const uint64_t count = draft->tokens.size - first, end = draft->ends.data[f + 1];
  uint64_t tail = 0;
  draft->nodes.size = draft->queue.size = 0;
  WF__TRY(wf__vec_grow(&draft->nodes, count, "the lattice", err));
  WF__TRY(wf__vec_grow(&draft->queue, count, "the lattice", err));
  struct node *nodes = draft->nodes.data;
  memset(nodes, 0, count * sizeof *nodes);
  for (uint64_t i = draft->ends.data[f]; i < end; i++) {
    struct arc *link = &draft->arcs.data[i];
    if (!is_epsilon(draft, link)) continue;
    const wf_arc arc = wf__graph_arc(draft->graph, link->arc);
    uint64_t context;
    float cost;
    WF__TRY(ask_scorer(draft, link, &arc, &cost, &context, err));
    link->frame = target_of(draft, &arc, context, f);
    nodes[link->frame - first].degree++;
  }
  for (uint64_t k = 0; k < count; k++)
    if (nodes[k].degree == 0) draft->queue.data[tail++] = (uint32_t)k;
  for (uint64_t head = 0; head < tail; head++) {
    const uint64_t k = draft->queue.data[head], last = k + 1 < count ? draft->tokens.data[first + k + 1].first : end;
    for (uint64_t i = draft->tokens.data[first + k].first; i < last; i++) {
      if (!is_epsilon(draft, &draft->arcs.data[i])) continue;
      const uint64_t target = draft->arcs.data[i].frame - first;
      if (nodes[target].level <= nodes[k].level) nodes[target].level = nodes[k].level + 1;
      if (--nodes[target].degree == 0) draft->queue.data[tail++] = (uint32_t)target;
    }
  }
  return WF_OK;
}

/* Numbers of the tokens of a frame, from `first` on, which have levels: by level, and as they stand. */
static wf_status number_by_level(struct wf__gpu_drafts *draft, uint64_t first, wf_error *err) {
  const uint64_t count = draft->tokens.size - first;
  const struct node *nodes = draft->nodes.data;
  draft->queue.size = 0;
  WF__TRY(wf__vec_grow(&draft->queue, count + 1, "the lattice", err)); /* no level is beyond the tokens */
  uint32_t *next = draft->queue.data;
  memset(next, 0, (count + 1) * sizeof *next);
  for (uint64_t k = 0; k < count; k++) next[nodes[k].level + 1]++;
  for (uint64_t v = 0; v < count; v++) next[v + 1] += next[v];
  for (uint64_t k = 0; k < count; k++) {
    const uint64_t number = first + next[nodes[k].level]++;
    draft->numbers.data[first + k] = (uint32_t)number;
    draft->order.data[number] = (uint32_t)(first + k);
  }
  return WF_OK;
}

/* The tokens of frame f: its arcs' sources. */
static wf_status take_tokens(struct wf__gpu_drafts *draft, uint64_t f, wf_error *err) {
  const uint64_t begin = draft->ends.data[f], end = draft->ends.data[f + 1], first = draft->tokens.size;
  const struct arc *arcs = draft->arcs.data;
  bool epsilons = false;
  draft->first_token[f & 1] = first;
  for (uint64_t i = begin; i < end; i++) {
    if (i + AHEAD < draft->arcs.size && arcs[i + AHEAD].arc < draft->graph->view.num_arcs) __builtin_prefetch(&draft->graph->view.arcs[arcs[i + AHEAD].arc]);
    epsilons = epsilons || is_epsilon(draft, &arcs[i]);
    if (i > begin && is_same_source(&arcs[i], &arcs[i - 1])) continue;
    const uint32_t number = (uint32_t)draft->tokens.size;
    draft->numbers.data[number] = draft->order.data[number] = number;
    draft->tokens.data[draft->tokens.size++] = (struct token){arcs[i].context, i, arcs[i].source};
    *slot_of(draft, f, arcs[i].source, arcs[i].context) = number + 1;
  }
  if (!epsilons) return WF_OK;
  WF__TRY(find_levels(draft, f, first, err));
  return number_by_level(draft, first, err);
}

/* --- states and arcs ------------------------------------------------------------------------------------------------------ */

static wf_status put_arc(struct wf__gpu_drafts *draft, const struct arc *link, uint64_t f, wf_error *err) {
  const wf_arc arc = wf__graph_arc(draft->graph, link->arc);
  wf_lattice_arc out = {.ilabel = arc.ilabel, .olabel = arc.olabel, .graph_cost = arc.weight};
  uint64_t context;
  if (arc.olabel != 0) out.graph_cost -= draft->options->word_score;
  if (arc.ilabel != 0) out.acoustic_cost = 0 - draft->options->acoustic_scale * link->loglike;
  WF__TRY(ask_scorer(draft, link, &arc, &out.scorer_cost, &context, err));
  out.nextstate = (int32_t)draft->numbers.data[arc.ilabel != 0 ? target_of(draft, &arc, context, f + 1) : link->frame];
  return wf__lattice_push(&draft->arrays, out, err);
}

/* The last state added may be the end, at what the graph and the scorer say if it is `final`. */
static wf_status put_ending(struct wf__gpu_drafts *draft, const struct token *token, bool final, wf_error *err) {
  float cost = 0;
  draft->arrays.final_graph_cost.data[draft->arrays.final_graph_cost.size - 1] = final ? wf__graph_final(draft->graph, token->state) : 0;
  if (final && draft->scoring->scorer != NULL) WF__TRY(wf__scoring_final(draft->scoring, token->context, &cost, err));
  wf__lattice_set_final_scorer_cost(&draft->arrays, cost);
  return WF_OK;
}

/* States of frame f, whose tokens are [first, end), with their arcs. `row`: the scores that are consumed next. */
static wf_status put_frame(struct wf__gpu_drafts *draft, uint64_t f, uint64_t first, uint64_t end, int64_t row, bool final, wf_error *err) {
  for (uint64_t s = first; s < end; s++) {
    const uint64_t number = draft->order.data[s];
    const struct token *token = &draft->tokens.data[number];
    const uint64_t last = number + 1 < end ? token[1].first : draft->ends.data[f + 1];
    WF__TRY(wf__lattice_add_state(&draft->arrays, INFINITY, 0, (int32_t)row, err));
    for (uint64_t i = token->first; i < last; i++) {
      if (draft->arcs.data[i].arc != WF__LANE_ENDING) WF__TRY(put_arc(draft, &draft->arcs.data[i], f, err));
      else WF__TRY(put_ending(draft, token, final, err));
    }
  }
  return WF_OK;
}

/* Room for all tokens, of which there are no more than arcs; empty tables, at most half full. */
static wf_status make_room(struct wf__gpu_drafts *draft, wf_error *err) {
  const uint64_t *ends = draft->ends.data, size = draft->arcs.size;
  uint64_t most = 1, slots = 64;
  for (uint64_t f = 0; f < draft->rows.size; f++) most = ends[f + 1] - ends[f] > most ? ends[f + 1] - ends[f] : most;
  while (slots < 2 * most) slots *= 2;
  draft->tokens.size = draft->numbers.size = draft->order.size = 0;
  WF__TRY(wf__vec_grow(&draft->tokens, size, "the lattice", err));
  WF__TRY(wf__vec_grow(&draft->numbers, size, "the lattice", err));
  WF__TRY(wf__vec_grow(&draft->order, size, "the lattice", err));
  for (int parity = 0; parity < 2; parity++) {
    draft->slots[parity].size = 0;
    WF__TRY(wf__vec_grow(&draft->slots[parity], slots, "the lattice", err));
    draft->slots[parity].size = slots;
    memset(draft->slots[parity].data, 0, slots * sizeof *draft->slots[parity].data);
  }
  return WF_OK;
}

static uint64_t count_tokens(const struct wf__gpu_drafts *draft) {
  uint64_t count = 0;
  for (uint64_t f = 0; f < draft->rows.size; f++)
    for (uint64_t i = draft->ends.data[f]; i < draft->ends.data[f + 1]; i++) count += i == draft->ends.data[f] || !is_same_source(&draft->arcs.data[i], &draft->arcs.data[i - 1]);
  return count;
}

static wf_status put_frames(struct wf__gpu_drafts *draft, int64_t num_decoded, bool final, wf_error *err) {
  const uint64_t num_frames = draft->rows.size, num_states = count_tokens(draft);
  if (num_states > INT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "a lattice of %llu states; lower lattice_beam", (unsigned long long)num_states);
  WF__TRY(wf__lattice_reserve(&draft->arrays, num_states, draft->arcs.size, err));
  WF__TRY(take_tokens(draft, 0, err));
  for (uint64_t f = 0, first = 0; f < num_frames; f++) {
    const uint64_t end = draft->tokens.size;
    const bool last = f + 1 == num_frames;
    if (!last) WF__TRY(take_tokens(draft, f + 1, err));
    WF__TRY(put_frame(draft, f, first, end, last ? num_decoded : draft->rows.data[f + 1], final, err));
    first = end;
  }
  return WF_OK;
}

/* The frames that were searched, the start's before them: every path goes through all of them. */
static wf_status list_rows(struct wf__gpu_drafts *draft, const wf__lane_step *path, uint32_t path_size, wf_error *err) {
  draft->rows.size = 0;
  WF__TRY(wf__vec_push(&draft->rows, 0, "the lattice", err));
  for (uint32_t k = 0; k < path_size; k++)
    if (wf__graph_arc(draft->graph, path[k].arc).ilabel != 0) WF__TRY(wf__vec_push(&draft->rows, path[k].frame, "the lattice", err));
  return WF_OK;
}

wf_status wf__gpu_lattice(wf__gpu_worker *worker, const wf_graph *graph, const wf__lane_outcome *outcome, const wf__lane_step *path, const wf__gpu_pages *pages, bool scored, int thread,
                          wf_lattice **out, wf_error *err) {
  struct wf__gpu_drafts *draft = &worker->drafts[thread];
  draft->graph = graph;
  draft->options = &worker->options;
  draft->scoring = scored ? &worker->scorings[thread] : &draft->none;
  WF__TRY(list_rows(draft, path, outcome->path_size, err));
  WF__TRY(sort_arcs(draft, outcome->last_page, pages, err));
  WF__TRY(make_room(draft, err));
  const wf_status status = put_frames(draft, outcome->num_decoded, (outcome->flags & WF_RESULT_NOT_FINAL) == 0, err);
  if (status == WF_OK) return wf__lattice_from_arrays(&draft->arrays, out, err);
  wf__lattice_arrays_free(&draft->arrays);
  return status;
}

#endif
