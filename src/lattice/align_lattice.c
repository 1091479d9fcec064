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
#include "lattice/align_lattice.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/option_tables.h"

static const char what[] = "aligning a lattice";

/* --- places ------------------------------------------------------------------------------ */

/* Labels in the queue. */
static uint32_t num_waiting(const wf__alignment *a) {
  const wf__unit_list *runs = &a->runs_waiting;
  return runs->size > 0 ? runs->data[runs->size - 1].end : 0;
}

/* A run without the labels before `from`, as the pool has it. */
static uint64_t rest_of(const wf__unit *run, uint32_t from) {
  return (uint64_t)(uint32_t)run->unit << 32 | (run->end - (run->first > from ? run->first : from));
}

static uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}

static uint64_t hash_of(uint32_t state, const int32_t *words, uint64_t num_words,
                        const wf__unit *runs, uint64_t num_runs, uint32_t from) {
  uint64_t hash = mixed(num_words, state);
  for (uint64_t i = 0; i < num_words; i++) hash = mixed(hash, (uint32_t)words[i]);
  for (uint64_t i = 0; i < num_runs; i++) hash = mixed(hash, rest_of(&runs[i], from));
  return hash >> 1; /* never the map's mark of an empty slot */
}

static bool same_queues(const wf__alignment *a, const wf__align_place *place, const int32_t *words,
                        const wf__unit *runs, uint32_t from) {
  const uint64_t *have = a->pool.data + place->first;
  for (uint32_t i = 0; i < place->num_words; i++)
    if (have[i] != (uint32_t)words[i]) return false;
  have += place->num_words;
  for (uint32_t i = 0; i < place->num_runs; i++)
    if (have[i] != rest_of(&runs[i], from)) return false;
  return true;
}

/* Finds or makes the place of a state whose queues are the present ones without their first `words`
 * words and `labels` labels. */
static wf_status find_place(wf__alignment *a, uint32_t state, uint64_t words, uint32_t labels,
                            uint32_t *out, wf_error *err) {
  const int32_t *w = a->words_waiting.data + words;
  const wf__unit *runs = a->runs_waiting.data, *end = runs + a->runs_waiting.size;
  while (runs < end && runs->end <= labels) runs++;
  const uint64_t num_words = a->words_waiting.size - words, num_runs = (uint64_t)(end - runs);
  const uint64_t hash = hash_of(state, w, num_words, runs, num_runs, labels);
  uint32_t first, added = (uint32_t)a->places.size;
  bool fresh;
  WF__TRY(wf__map64_insert(&a->index, hash, added, &first, &fresh, what, err));
  for (uint32_t at = fresh ? UINT32_MAX : first; at != UINT32_MAX; at = a->places.data[at].next) {
    const wf__align_place *place = &a->places.data[at];
    if (place->state != state || place->num_words != num_words || place->num_runs != num_runs ||
        !same_queues(a, place, w, runs, labels))
      continue;
    *out = at;
    return WF_OK;
  }
  if (a->places.size >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "the aligned lattice would have more than 2^31-1 states");
  wf__align_place place = {.state = state,
                           .num_words = (uint32_t)num_words,
                           .num_runs = (uint32_t)num_runs,
                           .num_labels = num_waiting(a) - labels,
                           .first = a->pool.size,
                           .next = UINT32_MAX};
  if (!fresh) { /* insert after the first place with the same hash */
    place.next = a->places.data[first].next;
    a->places.data[first].next = added;
  }
  WF__TRY(wf__vec_grow(&a->pool, num_words + num_runs, what, err));
  uint64_t *pool = a->pool.data + a->pool.size;
  for (uint64_t i = 0; i < num_words; i++) *pool++ = (uint32_t)w[i];
  for (; runs < end; runs++) *pool++ = rest_of(runs, labels);
  a->pool.size += num_words + num_runs;
  WF__TRY(wf__vec_push(&a->places, place, what, err));
  *out = added;
  return wf__vec_push(&a->finals, ((wf_compact_weight){.graph_cost = INFINITY}), what, err);
}

/* --- from one place ---------------------------------------------------------------------- */

/* The part at the front of the queues. */
static wf__part front(const wf__alignment *a, bool ended) {
  const wf__unit_list *units = a->units_are_runs ? &a->runs_waiting : &a->units;
  const wf__part part = wf__aligner_part(a->aligner, units->data, units->size,
                                         a->words_waiting.data, a->words_waiting.size, ended, true);
  return ended && units->size == 0 && a->words_waiting.size > 0 ? (wf__part){WF__PART_WORD, 0, true}
                                                                /* a word without a frame */
                                                                : part;
}

/* Writes the first `count` labels of the queue. */
static wf_status write_labels(wf__alignment *a, uint32_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&a->out.labels, count, "alignments", err));
  int32_t *out = a->out.labels.data + a->out.labels.size;
  const wf__unit *run = a->runs_waiting.data;
  for (uint32_t i = 0; i < count; i++) {
    if (i == run->end) run++;
    out[i] = run->unit;
  }
  a->out.labels.size += count;
  return WF_OK;
}

/* Makes an arc of the part at the front; the rest of the queues belongs to the place that the arc
 * leads to. */
static wf_status add_arc(wf__alignment *a, uint32_t state, const wf__part *part, double graph_cost,
                         double acoustic_cost, wf_error *err) {
  bool word = part->kind == WF__PART_WORD;
  uint32_t to;
  if (a->arcs.size == a->max_arcs)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the aligned lattice would have more than %" PRIu64
                    " arcs (max_arcs); is the lattice determinized?",
                    a->max_arcs);
  wf_compact_arc arc = {
      .word = word ? a->words_waiting.data[0] : 0,
      .weight = {(float)graph_cost, (float)acoustic_cost, part->count, a->out.labels.size}};
  if (a->with_labels) WF__TRY(write_labels(a, part->count, err));
  a->num_forced += part->forced;
  WF__TRY(find_place(a, state, word, part->count, &to, err));
  arc.nextstate = (int32_t)to;
  return wf__vec_push(&a->arcs, arc, "lattice arcs", err);
}

/* Ends the path; the queues are empty. */
static wf_status add_end(wf__alignment *a, uint32_t from, double graph_cost, double acoustic_cost,
                         wf_error *err) {
  const wf__part nothing = {WF__PART_NO_WORD, 0, false};
  if (a->finals.data[from].graph_cost <
      INFINITY) { /* a second end here needs an arc to a new state */
    WF__TRY(add_arc(a, (uint32_t)a->in.num_states, &nothing, graph_cost, acoustic_cost, err));
    a->finals.data[a->arcs.data[a->arcs.size - 1].nextstate] = (wf_compact_weight){0};
    return WF_OK;
  }
  a->finals.data[from] = (wf_compact_weight){(float)graph_cost, (float)acoustic_cost, 0, 0};
  return WF_OK;
}

static wf_status end_here(wf__alignment *a, uint32_t from, double graph_cost, double acoustic_cost,
                          wf_error *err) {
  const wf__part part = front(a, true);
  if (part.kind == WF__PART_WAIT) return add_end(a, from, graph_cost, acoustic_cost, err);
  return add_arc(a, (uint32_t)a->in.num_states, &part, graph_cost, acoustic_cost, err);
}

/* The labels from `first` on have joined the queue. */
static wf_status update_units(wf__alignment *a, uint32_t first, wf_error *err) {
  if (a->units_are_runs) return WF_OK;
  return wf__aligner_more_units(a->aligner, &a->runs_waiting, first, &a->units, &a->unit_ended,
                                err);
}

/* A word (0: none) and the labels of arc i, or of the final state i - num_arcs, join the queues. */
static wf_status wait_for(wf__alignment *a, int32_t word, uint64_t i, wf_error *err) {
  const wf__unit *run = a->arc_runs.data + a->arc_runs_off.data[i],
                 *end = a->arc_runs.data + a->arc_runs_off.data[i + 1];
  const uint32_t first = num_waiting(a);
  wf__unit_list *runs = &a->runs_waiting;
  if (word != 0) WF__TRY(wf__vec_push(&a->words_waiting, word, "words", err));
  WF__TRY(wf__vec_grow(runs, (uint64_t)(end - run), "alignments", err));
  if (run < end && runs->size > 0 && runs->data[runs->size - 1].unit == run->unit)
    runs->data[runs->size - 1].end += run++->end;
  for (; run < end; run++)
    runs->data[runs->size++] = (wf__unit){run->unit, first + run->first, first + run->end};
  return update_units(a, first, err);
}

/* At a state just entered: makes an arc of the result or an end, or continues the search, as the
 * queues allow. */
static wf_status enter(wf__alignment *a, uint32_t from, uint32_t state, double graph_cost,
                       double acoustic_cost, wf_error *err) {
  const wf__part part = front(a, false);
  if (part.kind != WF__PART_WAIT) return add_arc(a, state, &part, graph_cost, acoustic_cost, err);
  wf__align_step step = {.state = state,
                         .unit_ended = a->unit_ended,
                         .next_arc = a->in.arc_off[state],
                         .num_words = a->words_waiting.size,
                         .num_runs = a->runs_waiting.size,
                         .last_end = num_waiting(a),
                         .num_units = a->units.size,
                         .graph_cost = graph_cost,
                         .acoustic_cost = acoustic_cost};
  for (uint64_t k = 0; k < 2 && k < a->units.size; k++)
    step.last_units[k] = a->units.data[a->units.size - 1 - k];
  WF__TRY(wf__vec_push(&a->steps, step, what, err));
  const wf_compact_weight *final = &a->in.finals[state];
  if (final->graph_cost == INFINITY) return WF_OK;
  WF__TRY(wait_for(a, 0, a->in.num_arcs + state, err));
  return end_here(a, from, graph_cost + (double) final->graph_cost,
                  acoustic_cost + (double) final->acoustic_cost, err);
}

/* Cuts the queues back to what they were at the step. */
static void go_back_to(wf__alignment *a, const wf__align_step *step) {
  a->words_waiting.size = step->num_words;
  a->runs_waiting.size = step->num_runs;
  if (step->num_runs > 0) a->runs_waiting.data[step->num_runs - 1].end = step->last_end;
  a->units.size = step->num_units;
  a->unit_ended = step->unit_ended;
  for (uint64_t k = 0; k < 2 && k < a->units.size; k++)
    a->units.data[a->units.size - 1 - k] = step->last_units[k];
}

/* Fills the queues of a place. */
static wf_status load_place(wf__alignment *a, const wf__align_place *place, wf_error *err) {
  const uint64_t *pool = a->pool.data + place->first;
  a->steps.size = a->units.size = 0;
  a->unit_ended = false;
  a->words_waiting.size = a->runs_waiting.size = 0;
  WF__TRY(wf__vec_grow(&a->words_waiting, place->num_words, "words", err));
  WF__TRY(wf__vec_grow(&a->runs_waiting, place->num_runs, "alignments", err));
  for (uint32_t i = 0; i < place->num_words; i++)
    a->words_waiting.data[a->words_waiting.size++] = (int32_t)*pool++;
  for (uint32_t i = 0, end = 0; i < place->num_runs; i++, pool++) {
    const uint32_t first = end;
    end += (uint32_t)*pool;
    a->runs_waiting.data[a->runs_waiting.size++] = (wf__unit){(int32_t)(*pool >> 32), first, end};
  }
  return update_units(a, 0, err);
}

static wf_status expand_place(wf__alignment *a, uint32_t from, wf_error *err) {
  const wf__align_place place = a->places.data[from];
  WF__TRY(load_place(a, &place, err));
  if (place.state == a->in.num_states)
    return a->finals.data[from].graph_cost < INFINITY ? WF_OK : end_here(a, from, 0, 0, err);
  WF__TRY(enter(a, from, place.state, 0, 0, err));
  while (a->steps.size > 0) {
    wf__align_step *step = &a->steps.data[a->steps.size - 1];
    go_back_to(a, step);
    if (step->next_arc == a->in.arc_off[step->state + 1]) {
      a->steps.size--;
      continue;
    }
    const uint64_t number = step->next_arc++;
    const wf_compact_arc *arc = &a->in.arcs[number];
    double graph_cost = step->graph_cost + (double)arc->weight.graph_cost,
           acoustic_cost = step->acoustic_cost + (double)arc->weight.acoustic_cost;
    WF__TRY(wait_for(a, arc->word, number, err));
    WF__TRY(enter(a, from, (uint32_t)arc->nextstate, graph_cost, acoustic_cost, err));
  }
  return WF_OK;
}

/* --- to a lattice ------------------------------------------------------------------------ */

/* Counting sort of places: to[..] receives those of from[..] (NULL: all in order) by their keys. */
static wf_status sort_by(wf__alignment *a, const uint32_t *keys, uint64_t num_keys,
                         const uint32_t *from, uint32_t *to, wf_error *err) {
  const uint64_t count = a->places.size;
  WF__TRY(wf__vec_grow(&a->bounds, num_keys + 1, what, err));
  uint64_t *bounds = a->bounds.data;
  memset(bounds, 0, (num_keys + 1) * sizeof *bounds);
  for (uint64_t i = 0; i < count; i++) bounds[keys[i] + 1]++;
  for (uint64_t k = 0; k < num_keys; k++) bounds[k + 1] += bounds[k];
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t place = from != NULL ? from[i] : (uint32_t)i;
    to[bounds[keys[place]]++] = place;
  }
  return WF_OK;
}

/* Sorts places by state; those of one state by their queues, the longest first. So arcs lead to
 * later places: to a later state, or to the same state with shorter queues. */
static wf_status sort_places(wf__alignment *a, wf_error *err) {
  const uint64_t count = a->places.size;
  uint32_t most = 0;
  WF__TRY(wf__vec_grow(&a->order, 3 * count, what, err));
  uint32_t *order = a->order.data, *keys = order + count, *other = keys + count;
  for (uint64_t i = 0; i < count; i++) {
    const wf__align_place *place = &a->places.data[i];
    keys[i] = place->num_words + place->num_labels;
    if (keys[i] > most) most = keys[i];
  }
  for (uint64_t i = 0; i < count; i++) keys[i] = most - keys[i];
  WF__TRY(sort_by(a, keys, (uint64_t)most + 1, NULL, other, err));
  for (uint64_t i = 0; i < count; i++) keys[i] = a->places.data[i].state;
  WF__TRY(sort_by(a, keys, a->in.num_states + 1, other, order, err));
  for (uint64_t i = 0; i < count; i++) other[order[i]] = (uint32_t)i;
  a->number = other;
  return WF_OK;
}

static wf_status write_arrays(wf__alignment *a, wf_error *err) {
  WF__TRY(sort_places(a, err));
  WF__TRY(wf__vec_grow(&a->out.arcs, a->arcs.size, "lattice arcs", err));
  for (uint64_t i = 0; i < a->places.size; i++) {
    const uint64_t place = a->order.data[i], end = place + 1 < a->places.size
                                                       ? a->places.data[place + 1].first_arc
                                                       : a->arcs.size;
    WF__TRY(wf__compact_add_state(&a->out, a->finals.data[place], err));
    for (uint64_t k = a->places.data[place].first_arc; k < end; k++) {
      wf_compact_arc *arc = &a->out.arcs.data[a->out.arcs.size++];
      *arc = a->arcs.data[k];
      arc->nextstate = (int32_t)a->number[arc->nextstate];
    }
  }
  return WF_OK;
}

/* --- all --------------------------------------------------------------------------------- */

/* Adds the labels of an arc or of a final state to `arc_runs`; of other states nothing. */
static wf_status add_runs(wf__alignment *a, const wf_compact_weight *weight, wf_error *err) {
  const int32_t *labels = a->in.labels + weight->first_label;
  const uint32_t count = weight->graph_cost < INFINITY ? weight->num_labels : 0;
  wf__unit_list *runs = &a->arc_runs;
  WF__TRY(wf__vec_grow(runs, count, "alignments", err));
  wf__unit *first = runs->data + runs->size, *run = first;
  int32_t last = 0;
  for (uint32_t i = 0; i < count; i++) { /* where runs end is unpredictable: no branch on it */
    run += i > 0 && labels[i] != last;
    run->unit = last = labels[i];
    run->end = i + 1;
  }
  for (uint32_t i = 0; count > 0 && first + i <= run; i++) {
    first[i].first = i > 0 ? first[i - 1].end : 0;
    a->units_are_runs = a->units_are_runs && first[i].unit != 0;
  }
  if (count > 0) runs->size = (uint64_t)(run - runs->data) + 1;
  a->arc_runs_off.data[a->arc_runs_off.size++] = runs->size;
  return WF_OK;
}

/* Units are runs of labels if no frames were skipped, which do not interrupt a unit. */
static wf_status find_runs(wf__alignment *a, wf_error *err) {
  a->units_are_runs = a->aligner->root->runs;
  a->arc_runs.size = a->arc_runs_off.size = 0;
  WF__TRY(wf__vec_grow(&a->arc_runs_off, a->in.num_arcs + a->in.num_states + 1, what, err));
  a->arc_runs_off.data[a->arc_runs_off.size++] = 0;
  for (uint64_t i = 0; i < a->in.num_arcs; i++) WF__TRY(add_runs(a, &a->in.arcs[i].weight, err));
  for (uint64_t s = 0; s < a->in.num_states; s++) WF__TRY(add_runs(a, &a->in.finals[s], err));
  return WF_OK;
}

wf_status wf__align_lattice(wf__alignment *a, const wf_compact_lattice_view *lattice,
                            const wf_word_aligner *aligner, uint64_t max_arcs, bool with_labels,
                            wf_error *err) {
  uint32_t start;
  a->aligner = aligner;
  a->in = *lattice;
  a->max_arcs = max_arcs;
  a->with_labels = with_labels;
  a->num_forced = 0;
  a->places.size = a->pool.size = a->arcs.size = a->finals.size = 0;
  a->words_waiting.size = a->runs_waiting.size = 0;
  a->out.arc_off.size = a->out.arcs.size = a->out.finals.size = a->out.labels.size = 0;
  wf__map64_clear(&a->index);
  if (a->in.num_states == 0) return WF_OK;
  WF__TRY(find_runs(a, err));
  WF__TRY(wf__vec_grow(&a->words_waiting, 1, "words", err));
  WF__TRY(wf__vec_grow(&a->runs_waiting, 1, "alignments", err));
  WF__TRY(find_place(a, 0, 0, 0, &start, err));
  for (uint64_t i = 0; i < a->places.size; i++) {
    a->places.data[i].first_arc = a->arcs.size;
    WF__TRY(expand_place(a, (uint32_t)i, err));
  }
  return write_arrays(a, err);
}

wf_status wf__alignment_view(wf__alignment *a, wf_compact_lattice_view *out, wf_error *err) {
  wf__compact_arrays *arrays = &a->out;
  const uint64_t num_states = arrays->arc_off.size;
  WF__TRY(wf__vec_grow(&arrays->arc_off, 1, "lattice states", err));
  WF__TRY(wf__vec_grow(&a->frames, num_states, "lattice states", err));
  arrays->arc_off.data[num_states] = arrays->arcs.size;
  WF__TRY(wf__compact_find_frames(arrays, a->frames.data, err));
  *out = (wf_compact_lattice_view){.num_states = num_states,
                                   .num_arcs = arrays->arcs.size,
                                   .arc_off = arrays->arc_off.data,
                                   .arcs = arrays->arcs.data,
                                   .finals = arrays->finals.data,
                                   .frames = a->frames.data};
  return WF_OK;
}

void wf__alignment_free(wf__alignment *a) {
  wf__vec_free(&a->places);
  wf__vec_free(&a->pool);
  wf__map64_free(&a->index);
  wf__vec_free(&a->arcs);
  wf__vec_free(&a->finals);
  wf__vec_free(&a->steps);
  wf__vec_free(&a->words_waiting);
  wf__vec_free(&a->arc_runs);
  wf__vec_free(&a->arc_runs_off);
  wf__vec_free(&a->runs_waiting);
  wf__vec_free(&a->units);
  wf__vec_free(&a->bounds);
  wf__vec_free(&a->order);
  wf__compact_arrays_free(&a->out);
  wf__vec_free(&a->frames);
}

uint64_t wf__alignment_bytes(const wf__alignment *a) {
  return a->places.cap *
             (sizeof *a->places.data + sizeof *a->finals.data + 3 * sizeof *a->order.data) +
         a->pool.cap * sizeof *a->pool.data +
         (a->arcs.cap + a->out.arcs.cap) * sizeof *a->arcs.data +
         (a->index.bits > 0 ? (uint64_t)12 << a->index.bits : 0);
}

wf_status wf_compact_lattice_align(const wf_compact_lattice *lattice,
                                   const wf_word_aligner *aligner,
                                   const wf_lattice_align_options *options,
                                   wf_compact_lattice **out, uint64_t *out_forced, wf_error *err) {
  *out = NULL;
  wf_lattice_align_options taken;
  WF__TRY(wf__options_take(wf__lattice_align_table(), options, &taken, err));
  wf__alignment a = {0};
  const wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  wf_status status = wf__align_lattice(&a, &view, aligner, (uint64_t)taken.max_arcs, true, err);
  status = wf__compact_finish(status, &a.out, out, err);
  if (out_forced != NULL) *out_forced = a.num_forced;
  wf__alignment_free(&a);
  return status;
}
