/* align_lattice.c - word alignment of paths and lattices: an arc for every word, over the frames
 * of the word.
 *
 * After determinization an arc's labels may belong to the previous or the next word. All paths
 * are followed with queues of words and labels that are not aligned yet. When the front of the
 * queues is known to be a word (word_aligner.h), it becomes an arc of the result. (The idea of
 * Kaldi's lattice-align-words.) States of the result are:
 *
 *     place = (state of the lattice, words waiting, labels waiting)       state num_states: after
 *     the end
 *
 * From a place, a depth-first search over the lattice's arcs fills the queues until a part is
 * known. Costs of its arcs are added to the new arc. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/map64.h"
#include "base/option_tables.h"
#include "graph/word_aligner.h"
#include "lattice/compact_lattice.h"

struct place {
  uint32_t state;
  uint32_t num_words, num_labels;
  uint64_t first;     /* in `pool`: words, then labels */
  uint64_t first_arc; /* in `arcs`, which has the arcs of one place after the other */
  uint32_t next;      /* with the same hash; UINT32_MAX: none */
};

struct new_arc {
  uint32_t to; /* place */
  wf_compact_arc arc;
};

/* A state of the depth-first search. The queues are cut back to their sizes when the search
 * leaves it. */
struct step {
  uint32_t state;
  uint64_t next_arc;
  uint64_t num_words, num_labels; /* in the queues after the arc that led here */
  double graph_cost, acoustic_cost;
};

struct alignment {
  const wf_word_aligner *aligner;
  wf_compact_lattice_view in;
  uint64_t max_arcs, num_forced;
  WF__VEC(struct place) places;
  WF__VEC(int32_t) pool;
  wf__map64 index; /* hash -> last place with this hash */
  WF__VEC(struct new_arc) arcs;
  WF__VEC(wf_compact_weight) finals; /* by place */
  wf__label_vec labels;              /* of the result */
  WF__VEC(struct step) steps;
  WF__VEC(int32_t) words_waiting, labels_waiting;
  wf__unit_list units;
};

/* --- places ------------------------------------------------------------------------------ */

static uint64_t hash_of(uint32_t state, const int32_t *words, uint64_t num_words,
                        const int32_t *labels, uint64_t num_labels) {
  uint64_t hash = wf__hash_combine(state, num_words);
  for (uint64_t i = 0; i < num_words; i++) hash = wf__hash_combine(hash, (uint32_t)words[i]);
  for (uint64_t i = 0; i < num_labels; i++) hash = wf__hash_combine(hash, (uint32_t)labels[i]);
  return hash >> 1; /* never the map's mark of an empty slot */
}

/* Finds or makes the place of a state whose queues are the present ones without their first `words`
 * words and `labels` labels. */
static wf_status find_place(struct alignment *a, uint32_t state, uint64_t words, uint64_t labels,
                            uint32_t *out, wf_error *err) {
  const int32_t *w = a->words_waiting.data + words, *l = a->labels_waiting.data + labels;
  uint64_t num_words = a->words_waiting.size - words, num_labels = a->labels_waiting.size - labels;
  uint64_t hash = hash_of(state, w, num_words, l, num_labels);
  uint32_t first, added = (uint32_t)a->places.size;
  bool fresh;
  WF__TRY(wf__map64_insert(&a->index, hash, added, &first, &fresh, "aligning a lattice", err));
  for (uint32_t at = fresh ? UINT32_MAX : first; at != UINT32_MAX; at = a->places.data[at].next) {
    const struct place *place = &a->places.data[at];
    if (place->state != state || place->num_words != num_words || place->num_labels != num_labels)
      continue;
    if (num_words > 0 && memcmp(a->pool.data + place->first, w, num_words * sizeof *w) != 0)
      continue;
    if (num_labels > 0 &&
        memcmp(a->pool.data + place->first + num_words, l, num_labels * sizeof *l) != 0)
      continue;
    *out = at;
    return WF_OK;
  }
  if (a->places.size >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "the aligned lattice would have more than 2^31-1 states");
  struct place place = {.state = state,
                        .num_words = (uint32_t)num_words,
                        .num_labels = (uint32_t)num_labels,
                        .first = a->pool.size,
                        .next = UINT32_MAX};
  if (!fresh) { /* insert after the first place with the same hash */
    place.next = a->places.data[first].next;
    a->places.data[first].next = added;
  }
  WF__TRY(wf__vec_grow(&a->pool, num_words + num_labels, "aligning a lattice", err));
  if (num_words > 0) memcpy(a->pool.data + a->pool.size, w, num_words * sizeof *w);
  if (num_labels > 0) memcpy(a->pool.data + a->pool.size + num_words, l, num_labels * sizeof *l);
  a->pool.size += num_words + num_labels;
  WF__TRY(wf__vec_push(&a->places, place, "aligning a lattice", err));
  *out = added;
  return wf__vec_push(&a->finals, ((wf_compact_weight){.graph_cost = INFINITY}),
                      "aligning a lattice", err);
}

/* --- from one place ---------------------------------------------------------------------- */

static wf_status front(struct alignment *a, bool ended, wf__part *part, wf_error *err) {
  a->units.size = 0;
  WF__TRY(wf__aligner_units(a->aligner, a->labels_waiting.data, a->labels_waiting.size, &a->units,
                            err));
  *part = wf__aligner_part(a->aligner, a->units.data, a->units.size, a->words_waiting.data,
                           a->words_waiting.size, ended, true);
  if (ended && a->units.size == 0 && a->words_waiting.size > 0)
    *part = (wf__part){WF__PART_WORD, 0, true}; /* a word without a frame */
  return WF_OK;
}

/* Makes an arc of the part at the front; the rest of the queues belongs to the place that the arc
 * leads to. */
static wf_status add_arc(struct alignment *a, uint32_t state, const wf__part *part,
                         double graph_cost, double acoustic_cost, wf_error *err) {
  bool word = part->kind == WF__PART_WORD;
  struct new_arc arc = {.arc.word = word ? a->words_waiting.data[0] : 0};
  arc.arc.weight =
      (wf_compact_weight){(float)graph_cost, (float)acoustic_cost, part->count, a->labels.size};
  if (a->arcs.size == a->max_arcs)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the aligned lattice would have more than %" PRIu64
                    " arcs (max_arcs); is the lattice determinized?",
                    a->max_arcs);
  WF__TRY(wf__vec_grow(&a->labels, part->count, "alignments", err));
  if (part->count > 0)
    memcpy(a->labels.data + a->labels.size, a->labels_waiting.data,
           part->count * sizeof *a->labels.data);
  a->labels.size += part->count;
  a->num_forced += part->forced;
  WF__TRY(find_place(a, state, word, part->count, &arc.to, err));
  return wf__vec_push(&a->arcs, arc, "lattice arcs", err);
}

/* Ends the path; the queues are empty. */
static wf_status add_end(struct alignment *a, uint32_t from, double graph_cost,
                         double acoustic_cost, wf_error *err) {
  const wf__part nothing = {WF__PART_NO_WORD, 0, false};
  if (a->finals.data[from].graph_cost <
      INFINITY) { /* a second end here needs an arc to a new state */
    WF__TRY(add_arc(a, (uint32_t)a->in.num_states, &nothing, graph_cost, acoustic_cost, err));
    a->finals.data[a->arcs.data[a->arcs.size - 1].to] = (wf_compact_weight){0};
    return WF_OK;
  }
  a->finals.data[from] = (wf_compact_weight){(float)graph_cost, (float)acoustic_cost, 0, 0};
  return WF_OK;
}

static wf_status end_here(struct alignment *a, uint32_t from, double graph_cost,
                          double acoustic_cost, wf_error *err) {
  wf__part part;
  WF__TRY(front(a, true, &part, err));
  if (part.kind == WF__PART_WAIT) return add_end(a, from, graph_cost, acoustic_cost, err);
  return add_arc(a, (uint32_t)a->in.num_states, &part, graph_cost, acoustic_cost, err);
}

static wf_status wait_for(struct alignment *a, int32_t word, const wf_compact_weight *weight,
                          wf_error *err) {
  if (word != 0) WF__TRY(wf__vec_push(&a->words_waiting, word, "words", err));
  WF__TRY(wf__vec_grow(&a->labels_waiting, weight->num_labels, "alignments", err));
  if (weight->num_labels > 0)
    memcpy(a->labels_waiting.data + a->labels_waiting.size, a->in.labels + weight->first_label,
           weight->num_labels * sizeof(int32_t));
  a->labels_waiting.size += weight->num_labels;
  return WF_OK;
}

/* At a state just entered: makes an arc of the result or an end, or continues the search, as the
 * queues allow. */
static wf_status enter(struct alignment *a, uint32_t from, uint32_t state, double graph_cost,
                       double acoustic_cost, wf_error *err) {
  wf__part part;
  WF__TRY(front(a, false, &part, err));
  if (part.kind != WF__PART_WAIT) return add_arc(a, state, &part, graph_cost, acoustic_cost, err);
  struct step step = {
      state,      a->in.arc_off[state], a->words_waiting.size, a->labels_waiting.size,
      graph_cost, acoustic_cost};
  WF__TRY(wf__vec_push(&a->steps, step, "aligning a lattice", err));
  const wf_compact_weight *final = &a->in.finals[state];
  if (final->graph_cost == INFINITY) return WF_OK;
  WF__TRY(wait_for(a, 0, final, err));
  return end_here(a, from, graph_cost + (double) final->graph_cost,
                  acoustic_cost + (double) final->acoustic_cost, err);
}

static wf_status expand_place(struct alignment *a, uint32_t from, wf_error *err) {
  struct place place = a->places.data[from];
  a->steps.size = a->words_waiting.size = a->labels_waiting.size = 0;
  WF__TRY(wf__vec_grow(&a->words_waiting, place.num_words, "words", err));
  WF__TRY(wf__vec_grow(&a->labels_waiting, place.num_labels, "alignments", err));
  for (uint32_t i = 0; i < place.num_words; i++)
    a->words_waiting.data[a->words_waiting.size++] = a->pool.data[place.first + i];
  for (uint32_t i = 0; i < place.num_labels; i++)
    a->labels_waiting.data[a->labels_waiting.size++] =
        a->pool.data[place.first + place.num_words + i];
  if (place.state == a->in.num_states)
    return a->finals.data[from].graph_cost < INFINITY ? WF_OK : end_here(a, from, 0, 0, err);
  WF__TRY(enter(a, from, place.state, 0, 0, err));
  while (a->steps.size > 0) {
    struct step *step = &a->steps.data[a->steps.size - 1];
    a->words_waiting.size = step->num_words;
    a->labels_waiting.size = step->num_labels;
    if (step->next_arc == a->in.arc_off[step->state + 1]) {
      a->steps.size--;
      continue;
    }
    const wf_compact_arc *arc = &a->in.arcs[step->next_arc++];
    double graph_cost = step->graph_cost + (double)arc->weight.graph_cost,
           acoustic_cost = step->acoustic_cost + (double)arc->weight.acoustic_cost;
    WF__TRY(wait_for(a, arc->word, &arc->weight, err));
    WF__TRY(enter(a, from, (uint32_t)arc->nextstate, graph_cost, acoustic_cost, err));
  }
  return WF_OK;
}

/* --- to a lattice ------------------------------------------------------------------------ */

struct order_key {
  uint32_t state, place;
  uint64_t waiting;
};

/* Sorts places: arcs lead to a later state, or to the same state with shorter queues. */
static int compare_keys(const void *left, const void *right) {
  const struct order_key *a = left, *b = right;
  if (a->state != b->state) return a->state < b->state ? -1 : 1;
  if (a->waiting != b->waiting) return a->waiting > b->waiting ? -1 : 1;
  return a->place < b->place ? -1 : a->place > b->place;
}

static wf_status build(struct alignment *a, const struct order_key *keys, uint32_t *number,
                       wf_compact_lattice **out, wf_error *err) {
  wf__compact_arrays arrays = {0};
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < a->places.size; i++) number[keys[i].place] = (uint32_t)i;
  for (uint64_t i = 0; i < a->places.size && status == WF_OK; i++) {
    const uint64_t place = keys[i].place, end = place + 1 < a->places.size
                                                    ? a->places.data[place + 1].first_arc
                                                    : a->arcs.size;
    status = wf__compact_add_state(&arrays, a->finals.data[place], err);
    for (uint64_t k = a->places.data[place].first_arc; k < end && status == WF_OK; k++) {
      a->arcs.data[k].arc.nextstate = (int32_t)number[a->arcs.data[k].to];
      status = wf__compact_push(&arrays, a->arcs.data[k].arc, err);
    }
  }
  return wf__compact_finish_with(status, &arrays, &a->labels, out, err);
}

static wf_status make_lattice(struct alignment *a, wf_compact_lattice **out, wf_error *err) {
  struct order_key *keys = wf__alloc(a->places.size, sizeof *keys);
  uint32_t *number = wf__alloc(a->places.size, sizeof *number);
  wf_status status =
      keys != NULL && number != NULL
          ? WF_OK
          : wf__fail_memory(err, a->places.size * sizeof *keys, "aligning a lattice");
  for (uint64_t i = 0; i < a->places.size && status == WF_OK; i++) {
    const struct place *place = &a->places.data[i];
    keys[i] = (struct order_key){place->state, (uint32_t)i,
                                 (uint64_t)place->num_words + place->num_labels};
  }
  if (status == WF_OK && a->places.size > 0)
    qsort(keys, a->places.size, sizeof *keys, compare_keys);
  if (status == WF_OK) status = build(a, keys, number, out, err);
  free(keys);
  free(number);
  return status;
}

wf_status wf_compact_lattice_align(const wf_compact_lattice *lattice,
                                   const wf_word_aligner *aligner,
                                   const wf_lattice_align_options *options,
                                   wf_compact_lattice **out, uint64_t *out_forced, wf_error *err) {
  *out = NULL;
  wf_lattice_align_options taken;
  WF__TRY(wf__options_take(wf__lattice_align_table(), options, &taken, err));
  struct alignment a = {.aligner = aligner,
                        .in = wf_compact_lattice_get(lattice),
                        .max_arcs = (uint64_t)taken.max_arcs};
  uint32_t start;
  wf_status status = WF_OK;
  if (a.in.num_states > 0) status = wf__vec_grow(&a.words_waiting, 1, "words", err);
  if (a.in.num_states > 0 && status == WF_OK)
    status = wf__vec_grow(&a.labels_waiting, 1, "alignments", err);
  if (a.in.num_states > 0 && status == WF_OK) status = find_place(&a, 0, 0, 0, &start, err);
  for (uint64_t i = 0; i < a.places.size && status == WF_OK; i++) {
    a.places.data[i].first_arc = a.arcs.size;
    status = expand_place(&a, (uint32_t)i, err);
  }
  if (status == WF_OK) status = make_lattice(&a, out, err);
  if (out_forced != NULL) *out_forced = a.num_forced;
  wf__vec_free(&a.places);
  wf__vec_free(&a.pool);
  wf__map64_free(&a.index);
  wf__vec_free(&a.arcs);
  wf__vec_free(&a.finals);
  wf__vec_free(&a.labels);
  wf__vec_free(&a.steps);
  wf__vec_free(&a.words_waiting);
  wf__vec_free(&a.labels_waiting);
  wf__vec_free(&a.units);
  return status;
}
