/* transducer_arcs.c - what is known of a graph's emitting arcs before an utterance: whether they
 * are in order, and the least weights of each state. */
#include <math.h>

#include "search/transducer/transducer_search.h"

#define NONE UINT32_MAX

enum { FEW = 4 }; /* of so many tokens, a state with many arcs has one */

void wf__transducer_arcs_free(wf__transducer_arcs *arcs) {
  free(arcs->least);
  wf__vec_free(&arcs->by_column);
}

static void lower(float *least, float weight) {
  *least = fminf(*least, fabsf(weight) <= WF__MOST_BOUND ? weight : -INFINITY);
}

static float weight_of(const wf_arc *arc, float word_score) {
  return arc->olabel != 0 ? arc->weight - word_score : arc->weight;
}

/* Adds the arcs of a state to what is known. Returns the number of their tokens. */
static int32_t look_at_state(const wf_graph *graph, const wf_transducer *model, uint64_t state,
                             float word_score, wf__transducer_arcs *arcs) {
  const wf__state_index *index = &graph->index[state];
  wf__least_weights *least = &arcs->least[state];
  int32_t label = 0, num_tokens = 0, num_runs = 0; /* runs of arcs with tokens */
  bool was_token = false;
  *least = (wf__least_weights){INFINITY, INFINITY, INFINITY, NONE};
  for (uint32_t a = index->first_arc; a < index->first_epsilon; a++) {
    const wf_arc *arc = &graph->view.arcs[a];
    const bool is_token = graph->columns[arc->ilabel] != model->blank;
    if (is_token) {
      if (arc->ilabel < label) arcs->by_label = false;
      num_runs += !was_token;
      num_tokens += arc->ilabel != label;
      label = arc->ilabel;
      lower(arc->olabel != 0 ? &least->word : &least->token, weight_of(arc, word_score));
    } else if (arc->olabel == 0) {
      lower(&least->blank, arc->weight);
    }
    was_token = is_token;
  }
  if (num_runs > 1) arcs->by_label = false;
  return num_tokens;
}

/* Adds a row of weights by column for a state with many arcs. */
static wf_status add_row(const wf_graph *graph, const wf_transducer *model, uint64_t state,
                         float word_score, wf__transducer_arcs *arcs, wf_error *err) {
  const wf__state_index *index = &graph->index[state];
  const uint64_t size = (uint64_t)model->num_tokens, first = arcs->by_column.size;
  WF__TRY(wf__vec_grow(&arcs->by_column, size, "a decoder", err));
  float *row = arcs->by_column.data + first;
  for (uint64_t c = 0; c < size; c++) row[c] = INFINITY;
  for (uint32_t a = index->first_arc; a < index->first_epsilon; a++) {
    const wf_arc *arc = &graph->view.arcs[a];
    const int32_t column = graph->columns[arc->ilabel];
    if (column != model->blank) lower(&row[column], weight_of(arc, word_score));
  }
  arcs->by_column.size += size;
  arcs->least[state].row = (uint32_t)(first / size);
  return WF_OK;
}

/* Do all arcs of the first state with a token cost the same? */
static bool have_one_weight(const wf_graph *graph, const wf_transducer *model, float word_score) {
  float first = NAN;
  for (uint32_t a = graph->index[0].first_arc; a < graph->index[0].first_epsilon; a++) {
    const wf_arc *arc = &graph->view.arcs[a];
    const float weight = weight_of(arc, word_score);
    if (graph->columns[arc->ilabel] == model->blank) continue;
    if (isnan(first)) first = weight;
    if (weight != first) return false;
  }
  return fabsf(first) <= WF__MOST_BOUND;
}

wf_status wf__transducer_look_at_arcs(const wf_graph *graph, const wf_transducer *model,
                                      float word_score, wf__transducer_arcs *arcs, wf_error *err) {
  const uint64_t num_states = graph->view.num_states;
  int32_t num_tokens = 0;
  *arcs =
      (wf__transducer_arcs){.by_label = true, .least = wf__alloc(num_states, sizeof *arcs->least)};
  if (arcs->least == NULL)
    return wf__fail_memory(err, num_states * sizeof *arcs->least, "a decoder");
  for (int32_t label = 2; label < graph->num_labels; label++)
    if (graph->columns[label] <= graph->columns[label - 1]) arcs->by_label = false;
  for (uint64_t s = 0; s < num_states; s++) {
    num_tokens = look_at_state(graph, model, s, word_score, arcs);
    if (num_tokens >= model->num_tokens / FEW)
      WF__TRY(add_row(graph, model, s, word_score, arcs, err));
  }
  arcs->all_alike = arcs->by_label && num_states == 1 && !graph->has_epsilons &&
                    num_tokens + 1 == model->num_tokens &&
                    have_one_weight(graph, model, word_score);
  return WF_OK;
}
