/* raw_lattice.c - makes a lattice from a pruned history. The order of states and arcs depends on
 * the lattice alone.
 *
 * States are sorted by frame, then by level (number of arcs on the longest epsilon path to them
 * within the frame), then by state of the graph, then by context. The arcs of a state are sorted by
 * their number in the graph. */
#include <math.h>

#include "base/interrupt.h"
#include "lattice/lattice.h"
#include "math/score.h"
#include "search/lattice_history.h"
#include "search/path.h"

struct order_key {
  uint64_t key; /* level, state */
  uint64_t context;
  uint32_t token;
};

struct drawn_arc {
  uint32_t source, target; /* states of the lattice */
  uint32_t arc;
  uint32_t token; /* the source's token, by number in the history */
  uint64_t link;  /* of the history */
};

struct assembly {
  const wf__history *history;
  const wf_graph *graph;
  const wf_decoder_options *options;
  const wf_scores *scores;
  wf__scoring *scoring;
  uint32_t *numbers; /* [tokens] states of the lattice */
  WF__VEC(uint32_t) levels;
  WF__VEC(struct order_key) keys;
  WF__VEC(struct drawn_arc) arcs; /* of one frame's states */
  WF__VEC(uint32_t) tokens;       /* of one frame, in order */
  wf__lattice_arrays arrays;
};

static uint64_t end_token(const wf__history *history, uint64_t f) {
  return f + 1 == history->frames.size ? history->tokens.size
                                       : history->frames.data[f + 1].first_token;
}

static uint64_t end_link(const wf__history *history, uint64_t f) {
  return f + 1 == history->frames.size ? history->links.size
                                       : history->frames.data[f + 1].first_link;
}

static int compare_keys(const void *a, const void *b) {
  const struct order_key *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->context != y->context) return x->context < y->context ? -1 : 1;
  return (x->token > y->token) - (x->token < y->token); /* a transducer's; others differ above */
}

static int compare_arcs(const void *a, const void *b) {
  const struct drawn_arc *x = a, *y = b;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  if (x->arc != y->arc) return x->arc < y->arc ? -1 : 1;
  return (x->link > y->link) - (x->link < y->link); /* a transducer's durations */
}

static uint64_t context_of(const wf__history *history, uint64_t token) {
  return history->contexts.size > 0 ? history->contexts.data[token] : 0;
}

/* Numbers the states of frame f. */
static wf_status number_frame(struct assembly *a, uint64_t f, wf_error *err) {
  const wf__history *history = a->history;
  uint64_t first = history->frames.data[f].first_token, count = end_token(history, f) - first;
  a->levels.size = a->keys.size = 0;
  WF__TRY(wf__vec_grow(&a->levels, count, "the lattice", err));
  WF__TRY(wf__vec_grow(&a->keys, count, "the lattice", err));
  uint32_t *levels = a->levels.data;
  for (uint64_t i = 0; i < count; i++) levels[i] = 0;
  for (uint64_t i = history->frames.data[f].first_epsilon; i < end_link(history, f); i++) {
    const wf__link *link = &history->links.data[i];
    if (levels[link->to] <= levels[link->from]) levels[link->to] = levels[link->from] + 1;
  }
  for (uint64_t i = 0; i < count; i++)
    a->keys.data[i] =
        (struct order_key){(uint64_t)levels[i] << 32 | history->tokens.data[first + i].state,
                           context_of(history, first + i), (uint32_t)i};
  qsort(a->keys.data, count, sizeof *a->keys.data, compare_keys);
  for (uint64_t i = 0; i < count; i++)
    a->numbers[first + a->keys.data[i].token] = (uint32_t)(first + i);
  return WF_OK;
}

/* Collects the links [first, end) from the frame whose first token is `from` to the frame whose
 * first token is `to`. */
static wf_status collect_arcs(struct assembly *a, uint64_t first, uint64_t end, uint64_t from,
                              uint64_t to, wf_error *err) {
  WF__TRY(wf__vec_grow(&a->arcs, end - first, "the lattice", err));
  for (uint64_t i = first; i < end; i++) {
    const wf__link *link = &a->history->links.data[i];
    a->arcs.data[a->arcs.size++] =
        (struct drawn_arc){a->numbers[from + link->from], a->numbers[to + link->to], link->arc,
                           (uint32_t)from + link->from, i};
  }
  return WF_OK;
}

/* The label that a transducer's arc consumes. A frame has one: that of its last token, or the
 * blank. `in_frame`: the arc leads to a token of the same frame. */
static int32_t frame_label(const struct assembly *a, const struct drawn_arc *drawn, wf_arc arc,
                           bool in_frame) {
  if (in_frame) return 0;
  bool blank = a->graph->columns[arc.ilabel] == a->options->blank;
  return blank ? a->history->labels.data[drawn->token] : arc.ilabel;
}

/* `frame`: number of the scores that consuming arcs read. */
static wf_status push_arc(struct assembly *a, const struct drawn_arc *drawn, int64_t frame,
                          bool in_frame, wf_error *err) {
  if (drawn->arc == WF__WAITS) {
    wf_lattice_arc out = {.ilabel = a->history->labels.data[drawn->token],
                          .nextstate = (int32_t)drawn->target};
    return wf__lattice_push(&a->arrays, out, err);
  }
  wf_arc arc =
      wf__graph_arc_from(a->graph, a->history->tokens.data[drawn->token].state, drawn->arc);
  wf_lattice_arc out = {.ilabel = arc.ilabel,
                        .olabel = arc.olabel,
                        .graph_cost = arc.weight,
                        .nextstate = (int32_t)drawn->target};
  uint64_t next;
  if (arc.olabel != 0) out.graph_cost -= a->options->word_score;
  if (arc.olabel != 0 && a->scoring->scorer != NULL)
    WF__TRY(wf__scoring_step(a->scoring, context_of(a->history, drawn->token), arc.olabel,
                             &out.scorer_cost, &next, err));
  if (arc.ilabel != 0) {
    float loglike = a->scores != NULL
                        ? wf__loglike(a->options, a->scores, frame, a->graph->columns[arc.ilabel])
                        : a->history->loglikes.data[drawn->link];
    out.acoustic_cost = 0 - a->options->acoustic_scale * loglike;
  }
  if (a->history->labels.size > 0) out.ilabel = frame_label(a, drawn, arc, in_frame);
  return wf__lattice_push(&a->arrays, out, err);
}

/* Cost of ending in a token of the last frame. */
struct ending {
  float graph_cost, scorer_cost; /* graph_cost +infinity: no path may end there */
};

/* Makes the states of frame f with their arcs. `ends`: by token, for the last frame; else NULL.
 * `number`: number of the scores that are consumed next. */
static wf_status draw_frame(struct assembly *a, uint64_t f, const struct ending *ends,
                            int64_t number, wf_error *err) {
  const wf__history *history = a->history;
  const wf__past_frame *frame = &history->frames.data[f];
  uint64_t first = frame->first_token, end = end_token(history, f), at = 0;
  a->arcs.size = a->tokens.size = 0;
  WF__TRY(collect_arcs(a, frame->first_epsilon, end_link(history, f), first, first, err));
  if (f + 1 < history->frames.size)
    WF__TRY(collect_arcs(a, frame[1].first_link, frame[1].first_epsilon, first, end, err));
  if (a->arcs.size > 0) qsort(a->arcs.data, a->arcs.size, sizeof *a->arcs.data, compare_arcs);
  WF__TRY(wf__vec_grow(&a->tokens, end - first, "the lattice", err));
  for (uint64_t i = first; i < end; i++)
    a->tokens.data[a->numbers[i] - first] = (uint32_t)(i - first);
  for (uint64_t s = first; s < end; s++) {
    struct ending ending =
        ends != NULL ? ends[a->tokens.data[s - first]] : (struct ending){INFINITY, 0};
    WF__TRY(wf__lattice_add_state(&a->arrays, ending.graph_cost, 0, (int32_t)number, err));
    wf__lattice_set_final_scorer_cost(&a->arrays, ending.scorer_cost);
    for (; at < a->arcs.size && a->arcs.data[at].source == s; at++)
      WF__TRY(push_arc(a, &a->arcs.data[at], number, a->arcs.data[at].link < end_link(history, f),
                       err));
  }
  return WF_OK;
}

/* Computes the final costs of the last frame's tokens. */
static wf_status final_costs(const struct assembly *a, bool final, struct ending **out,
                             wf_error *err) {
  const wf__history *history = a->history;
  uint64_t first = history->frames.data[history->frames.size - 1].first_token,
           count = history->tokens.size - first;
  *out = wf__alloc(count, sizeof **out);
  if (*out == NULL) return wf__fail_memory(err, count * sizeof **out, "the lattice");
  for (uint64_t i = 0; i < count; i++) {
    bool ends = history->endings.data[i] <= history->beam;
    (*out)[i] =
        (struct ending){!ends   ? INFINITY
                        : final ? wf__graph_final(a->graph, history->tokens.data[first + i].state)
                                : 0,
                        0};
    if (ends && final && a->scoring->scorer != NULL)
      WF__TRY(wf__scoring_final(a->scoring, context_of(history, first + i), &(*out)[i].scorer_cost,
                                err));
  }
  return WF_OK;
}

wf_status wf__history_lattice(const wf__history *history, const wf_graph *graph,
                              const wf_decoder_options *options, const wf_scores *scores,
                              wf__scoring *scoring, int64_t num_frames, bool final,
                              wf_lattice **out, wf_error *err) {
  *out = NULL;
  if (history->tokens.size > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a lattice of %llu states; lower lattice_beam",
                    (unsigned long long)history->tokens.size);
  struct assembly a = {.history = history,
                       .graph = graph,
                       .options = options,
                       .scores = scores,
                       .scoring = scoring,
                       .numbers = wf__alloc(history->tokens.size, sizeof(uint32_t))};
  struct ending *ends = NULL;
  wf_status status = a.numbers != NULL
                         ? final_costs(&a, final, &ends, err)
                         : wf__fail_memory(err, history->tokens.size * 4, "the lattice");
  uint64_t count = history->frames.size;
  if (status == WF_OK)
    status = wf__lattice_reserve(&a.arrays, history->tokens.size, history->links.size, err);
  for (uint64_t f = 0; f < count && status == WF_OK; f++) {
    status = wf__interrupted(err);
    if (status == WF_OK) status = number_frame(&a, f, err);
  }
  for (uint64_t f = 0; f < count && status == WF_OK; f++) {
    bool last = f + 1 == count;
    status = wf__interrupted(err);
    if (status == WF_OK)
      status = draw_frame(&a, f, last ? ends : NULL,
                          last ? num_frames : history->frames.data[f + 1].number, err);
  }
  if (status == WF_OK)
    status = wf__lattice_from_arrays(&a.arrays, out, err);
  else
    wf__lattice_arrays_free(&a.arrays);
  free(a.numbers);
  free(ends);
  wf__vec_free(&a.levels);
  wf__vec_free(&a.keys);
  wf__vec_free(&a.arcs);
  wf__vec_free(&a.tokens);
  return status;
}
