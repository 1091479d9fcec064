/* expand_source.h - the emitting arcs of one source; part of search.c, so that the compiler can
 * inline it. */
#ifndef WF_SEARCH_FRAME_EXPAND_SOURCE_H
#define WF_SEARCH_FRAME_EXPAND_SOURCE_H

#include "search/frame/frame_columns.h"
#include "search/frame/hub.h"
#include "search/frame/limits.h"
#include "search/frame/token_table.h"

/* Which arcs over tokens are looked at, beside those of blank and held token. */
enum arcs { ARCS_EACH, ARCS_ON_HUB, ARCS_BY_LABEL, ARCS_NONE };

/* A source that is being expanded. */
struct source {
  uint32_t prev, number; /* its record, and its number among the tokens of its frame */
  float cost;
  uint64_t context;
  wf__link *noted; /* where the lattice's next candidate is written; NULL: nowhere */
};

/* Offers a candidate over arc number `a`, which leads to the state `next`. */
TWICE wf_status expand_arc(wf__search *search, bool scored, enum expand_mode mode, wf__limit last,
                           struct source *source, const wf_arc *arc, uint32_t a, uint32_t next,
                           float *cutoff, float *best, wf_error *err) {
  const wf_scorer *scorer = search->base.scoring.scorer;
  float cost = source->cost + arc->weight;
  uint64_t context = source->context;
  if (arc->olabel != 0) {
    cost -= search->base.options.word_score;
    if (scored) {
      if (cost + wf__scorer_least(scorer, arc->olabel) + wf__label_cost(search, arc->ilabel) >
          *cutoff)
        return WF_OK;
      WF__TRY(wf__scoring_add(&search->base.scoring, arc->olabel, &cost, &context, err));
    }
  }
  cost += wf__label_cost(search, arc->ilabel);
  if (cost > *cutoff) return WF_OK;
  if (mode == EXPAND_RUNNING && cost < *best) {
    *best = cost;
    *cutoff = add_finite(cost, search->base.options.beam);
  }
  if (mode == EXPAND_RUNNING && search->step.num_noted < WF__NOTED)
    search->step.noted[search->step.num_noted++] = cost;
  if (mode != EXPAND_RUNNING && !is_within(last, scored, candidate_key(cost, a), source->context))
    return WF_OK;
  if (mode == EXPAND_COLLECT)
    return wf__vec_push(&search->step.keys, candidate_key(cost, a), "candidates", err);
  if (mode == EXPAND_LEAST) return keep_least(search, candidate_key(cost, a), cutoff, err);
  if (mode == EXPAND_TIES)
    return candidate_key(cost, a) == last.key
               ? wf__vec_push(&search->step.keys, source->context, "candidates", err)
               : WF_OK;
  wf__token *token = token_of(search, scored, next, context, err);
  if (token == NULL) return search->full ? WF_ERR_LIMIT : WF_ERR_MEMORY;
  if (cost < token->cost ||
      (cost == token->cost &&
       (a < token->arc ||
        (scored && a == token->arc &&
         source->context < search->past_contexts.data[token->prev - search->trace_base])))) {
    token->cost = cost;
    token->arc = a;
    token->prev = source->prev;
    if (scored) search->contexts.data[token - search->tokens.data] = context;
  }
  if (source->noted != NULL)
    *source->noted++ = (wf__link){source->number, (uint32_t)(token - search->tokens.data), a, cost};
  return WF_OK;
}

/* Expands the arcs of `run`, or with `on_hub` those of search->step.hub. */
TWICE wf_status expand_run(wf__search *search, bool scored, bool ctc, bool on_hub,
                           enum expand_mode mode, wf__limit last, struct source *source,
                           wf__arc_run run, float *cutoff, float *best, wf_error *err) {
  const float base_cost = wf__hub_base(source->cost);
  const wf__hub_arc *sorted = search->step.hub.arcs.data;
  const uint32_t num_arcs = on_hub ? (uint32_t)search->step.hub.arcs.size : run.end - run.first;
  for (uint32_t k = 0; k < num_arcs; k++) {
    if (on_hub && base_cost + sorted[k].rest > *cutoff) break;
    if (on_hub && base_cost + sorted[k].bound > *cutoff) continue;
    const uint32_t place = on_hub ? sorted[k].place : k;
    const wf_arc *arc = run.arcs + place;
    if (ctc && arc->ilabel == run.held) continue;
    const uint32_t next = (ctc ? run.targets[place] : arc->nextstate) + run.shift;
    WF__TRY(expand_arc(search, scored, mode, last, source, arc, run.first + place, next, cutoff,
                       best, err));
  }
  return WF_OK;
}

/* The first arc of a wide state whose label is not below this one. */
static inline uint32_t first_of_label(const wf_graph *graph, const wf__wide_state *wide,
                                      wf__arc_run run, int32_t label) {
  const uint32_t count = run.end - run.first;
  if (label <= run.arcs[0].ilabel) return 0;
  if (label > run.arcs[count - 1].ilabel) return count;
  const uint32_t range = ((uint32_t)label >> wide->shift) -
                         ((uint32_t)run.arcs[0].ilabel >> wide->shift),
                 *places = graph->wide_places + wide->places + range;
  uint32_t low = places[0], high = places[1];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (run.arcs[middle].ilabel < label)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* No arc of a wide state adds less than this, beside the label's cost. */
static inline float least_added(const wf__search *search, bool scored, const wf__wide_state *wide,
                                uint64_t context) {
  const float own = scored ? wf__scoring_bounds(&search->base.scoring, context).least : 0,
              word = own - search->base.options.word_score;
  return wide->least + (word < 0 ? word : 0);
}

/* Labels above the returned cost cannot survive, with any arc of the state. */
static inline float reach_of(const struct source *source, float least, float cutoff) {
  return cutoff - source->cost - least +
         1e-5f * (1 + fabsf(cutoff) + fabsf(source->cost) + fabsf(least)); /* any rounding */
}

/* Labels up to the returned cost are listed next. That is less than the cutoff allows while the
 * cutoff may fall: EXPAND_RUNNING assumes first that the cheapest label has an arc; EXPAND_LEAST looks
 * at the labels that there are, then at twice as many in each round. */
static inline float next_bound(wf__search *search, const wf__wide_state *wide,
                               enum expand_mode mode, bool first, const struct source *source,
                               float least, float cutoff) {
  const wf__columns *columns = &search->step.columns;
  const float all = reach_of(source, least, cutoff);
  if (mode == EXPAND_RUNNING && first) {
    const float assumed = source->cost + wide->most + fabsf(search->base.options.word_score) +
                          columns->least + search->base.options.beam;
    return assumed < cutoff ? reach_of(source, least, assumed) : all;
  }
  if (mode != EXPAND_LEAST || all <= columns->covered) return all;
  const uint64_t listed = columns->labels.size, enough = search->step.most_keys;
  if (first && listed >= enough) return columns->covered;
  const float bound = wf__columns_bound(search, 2 * listed > enough ? 2 * listed : enough);
  return bound > columns->covered && bound < all ? bound : all;
}

/* Looks up the arcs of listed labels, unless the source before had the same state. */
TWICE wf_status look_up(wf__search *search, bool scored, const wf__wide_state *wide,
                        wf__arc_run run, wf_error *err) {
  wf__columns *columns = &search->step.columns;
  if (columns->owner != run.owner) columns->arcs.size = 0;
  columns->owner = run.owner;
  WF__TRY(wf__vec_grow(&columns->arcs, columns->labels.size - columns->arcs.size, "a search", err));
  for (uint64_t i = columns->arcs.size; i < columns->labels.size; i++) {
    const int32_t label = columns->labels.data[i];
    const uint32_t first = first_of_label(search->base.graph, wide, run, label);
    float bound = INFINITY;
    for (uint32_t k = first; k < run.end - run.first && run.arcs[k].ilabel == label; k++) {
      const float own = wf__arc_bound(search, scored, &run.arcs[k]);
      if (own < bound) bound = own;
    }
    columns->arcs.data[i] = (wf__column_arcs){bound, first};
  }
  columns->arcs.size = columns->labels.size;
  return WF_OK;
}

/* Expands the arcs whose labels cost more than `done`. */
TWICE wf_status expand_rest(wf__search *search, bool scored, enum expand_mode mode, wf__limit last,
                            struct source *source, wf__arc_run run, float done, float *cutoff,
                            float *best, wf_error *err) {
  for (uint32_t k = 0; k < run.end - run.first; k++) {
    const int32_t label = run.arcs[k].ilabel;
    if (label == run.held || !(wf__label_cost(search, label) > done)) continue;
    WF__TRY(expand_arc(search, scored, mode, last, source, &run.arcs[k], run.first + k,
                       run.targets[k], cutoff, best, err));
  }
  return WF_OK;
}

/* The least part of the list that has all labels of cost up to `bound`, or what is listed. */
static inline wf__column_layer layer_up_to(const wf__columns *columns, float bound) {
  uint32_t at = 0;
  if (columns->num_layers == 0) return (wf__column_layer){-INFINITY, 0};
  while (at + 1 < columns->num_layers && columns->layers[at].covered < bound) at++;
  return columns->layers[at];
}

/* Labels are added until none is missing below the cutoff. If they are more than the state's arcs,
 * all of these are looked at. */
TWICE wf_status expand_by_label(wf__search *search, bool scored, enum expand_mode mode,
                                wf__limit last, struct source *source, wf__arc_run run,
                                float *cutoff, float *best, wf_error *err) {
  const wf__wide_state *wide = wf__wide_state_of(search->base.graph, run.owner);
  const wf__columns *columns = &search->step.columns;
  const uint64_t num_arcs = run.end - run.first;
  const float base_cost = wf__hub_base(source->cost),
              least = least_added(search, scored, wide, source->context);
  float done = -INFINITY; /* labels up to this cost are */
  uint64_t i = 0;
  for (bool first = true;; first = false) {
    const float bound = next_bound(search, wide, mode, first, source, least, *cutoff);
    const bool grows = mode == EXPAND_LEAST && bound > columns->covered;
    if (!(grows && 2 * columns->labels.size > num_arcs))
      WF__TRY(wf__columns_cover(search, bound, err));
    const wf__column_layer layer = layer_up_to(columns, bound);
    if (bound > columns->covered || layer.end - i > num_arcs)
      return expand_rest(search, scored, mode, last, source, run, done, cutoff, best, err);
    WF__TRY(look_up(search, scored, wide, run, err));
    for (; i < layer.end; i++) {
      const wf__column_arcs at = columns->arcs.data[i];
      const int32_t label = columns->labels.data[i];
      if (!(base_cost + at.bound <= *cutoff) || label == run.held) continue;
      for (uint32_t k = at.first; k < num_arcs && run.arcs[k].ilabel == label; k++)
        WF__TRY(expand_arc(search, scored, mode, last, source, &run.arcs[k], run.first + k,
                           run.targets[k], cutoff, best, err));
    }
    done = layer.covered;
    if (mode == EXPAND_LEAST) take_least(search, search->step.most_keys, cutoff);
    if (reach_of(source, least, *cutoff) <= done || done >= FLT_MAX) return WF_OK;
  }
}

/* Expands one source over its emitting arcs. */
TWICE wf_status expand_source(wf__search *search, bool scored, bool ctc, enum arcs arcs,
                              enum expand_mode mode, wf__limit last, wf__token token,
                              wf__arc_run run, float *cutoff, float *best, wf_error *err) {
  struct source source = {
      .prev = token.prev, .number = token.prev - (uint32_t)search->trace_base, .cost = token.cost};
  if (scored) source.context = search->past_contexts.data[source.number];
  if (search->base.keeps_lattice && mode <= EXPAND_FIXED) {
    const uint64_t most = run.end - run.first + 2;
    WF__TRY(wf__vec_grow(&search->links.candidates, most, "the lattice", err));
    source.noted = search->links.candidates.data + search->links.candidates.size;
  }
  /* First: one of these is often the best candidate, and makes the cutoff. */
  if (ctc && run.none != WF__CTC_NONE) {
    const wf_arc blank = {.ilabel = search->base.graph->ctc->blank}, held = {.ilabel = run.held};
    WF__TRY(expand_arc(search, scored, mode, last, &source, &blank, run.end, run.none, cutoff, best,
                       err));
    if (run.held != 0)
      WF__TRY(expand_arc(search, scored, mode, last, &source, &held, run.end + 1, run.stay, cutoff,
                         best, err));
  }
  if (arcs == ARCS_BY_LABEL)
    WF__TRY(expand_by_label(search, scored, mode, last, &source, run, cutoff, best, err));
  else if (arcs != ARCS_NONE)
    WF__TRY(expand_run(search, scored, ctc, arcs == ARCS_ON_HUB, mode, last, &source, run, cutoff,
                       best, err));
  if (source.noted != NULL)
    search->links.candidates.size = (uint64_t)(source.noted - search->links.candidates.data);
  return WF_OK;
}

#endif
