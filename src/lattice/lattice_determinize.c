/* lattice_determinize.c - determinization of lattices as the caller sees it: over words, or over phones and then words; one lattice, or many on a pool.
 *
 *   wf_lattice -> exact -> reduced -> (labels word.phone -> determinized -> reduced ->) determinized over words -> minimized -> wf_compact_lattice */
#include <math.h>
#include <stdio.h>

#include "base/option_tables.h"
#include "base/map64.h"
#include "base/threads.h"
#include "lattice/exact_minimize.h"
#include "lattice/word_determinizer.h"

/* --- phones --------------------------------------------------------------------------------------------------------- */

typedef WF__VEC(int32_t) word_vec;

/* Replaces words by numbers of distinct pairs (word, phone that begins on the arc); `words`: the word of each number. Pair 0 is (none, none). Arcs have one label at most. */
static wf_status put_pairs(wf__exact_lattice *lattice, const wf_lattice_phones *phones, word_vec *words, wf_error *err) {
  wf__map64 pairs = {0};
  wf_status status = wf__vec_push(words, 0, "phones", err);
  for (uint64_t i = 0; i < lattice->arcs.size && status == WF_OK; i++) {
    wf__exact_arc *arc = &lattice->arcs.data[i];
    int32_t label = arc->num_labels > 0 ? lattice->labels.data[arc->first_label] : 0, phone = 0;
    if (label > 0 && (size_t)label < phones->count) phone = phones->phone_of[label];
    if (arc->word == 0 && phone <= 0) continue;
    uint32_t number;
    bool fresh;
    status = wf__map64_insert(&pairs, (uint64_t)(uint32_t)arc->word << 32 | (uint32_t)(phone > 0 ? phone : 0), (uint32_t)words->size, &number, &fresh, "phones", err);
    if (status == WF_OK && fresh) status = wf__vec_push(words, arc->word, "phones", err);
    arc->word = (int32_t)number;
  }
  wf__map64_free(&pairs);
  return status;
}

static wf_status determinize_phones(wf__exact_lattice *lattice, const wf_lattice_phones *phones, int64_t width, int64_t delta, uint64_t max_bytes, wf__word_outcome *outcome,
                                    wf_error *err) {
  word_vec words = {0};
  wf__exact_lattice fine;
  wf_status status = put_pairs(lattice, phones, &words, err);
  if (status == WF_OK) status = wf__exact_reduce(lattice, width, err);
  if (status == WF_OK && wf__exact_num_states(lattice) > 0) {
    status = wf__determinize_words(lattice, width, delta, max_bytes, &fine, outcome, err);
    if (status == WF_OK) {
      wf__exact_free(lattice);
      *lattice = fine;
    }
  }
  for (uint64_t i = 0; i < lattice->arcs.size && status == WF_OK; i++) lattice->arcs.data[i].word = words.data[lattice->arcs.data[i].word];
  wf__vec_free(&words);
  return status;
}

/* --- one lattice ---------------------------------------------------------------------------------------------------- */

static wf_compact_weight weight_of(const wf__exact_lattice *lattice, wf__exact_cost cost, uint32_t first, uint32_t count) {
  return (wf_compact_weight){(float)wf__exact_nats(lattice, cost.graph), (float)wf__exact_nats(lattice, cost.acoustic), count, first};
}

/* Takes the labels over. */
static wf_status to_compact(wf__exact_lattice *lattice, wf_compact_lattice **out, wf_error *err) {
  wf__compact_arrays arrays = {0};
  wf_status status = wf__vec_grow(&arrays.arcs, lattice->arcs.size, "lattice arcs", err);
  for (uint64_t s = 0; s < wf__exact_num_states(lattice) && status == WF_OK; s++) {
    const wf__exact_end *end = &lattice->ends.data[s];
    bool final = wf__exact_is_final(lattice, s);
    status = wf__compact_add_state(&arrays, final ? weight_of(lattice, end->cost, end->first_label, end->num_labels) : (wf_compact_weight){.graph_cost = INFINITY}, err);
    for (uint64_t i = lattice->arc_off.data[s]; i < lattice->arc_off.data[s + 1] && status == WF_OK; i++) {
      const wf__exact_arc *arc = &lattice->arcs.data[i];
      wf_compact_weight weight = weight_of(lattice, arc->cost, arc->first_label, arc->num_labels);
      status = wf__compact_push(&arrays, (wf_compact_arc){.word = arc->word, .nextstate = (int32_t)arc->nextstate, .weight = weight}, err);
    }
  }
  return wf__compact_finish_with(status, &arrays, &lattice->labels, out, err);
}

/* Consumes the lattice. */
static wf_status determinize(wf__exact_lattice *lattice, const wf_lattice_phones *phones, const wf_lattice_determinize_options *o, wf_determinized *out, wf_error *err) {
  wf__exact_lattice words = {.unit = lattice->unit};
  int64_t width = wf__exact_width(lattice, (double)o->beam), delta = wf__exact_width(lattice, (double)o->delta);
  wf__word_outcome fine = {.width = width}, outcome = {.width = width};
  wf_status status = WF_OK;
  if (phones != NULL) status = determinize_phones(lattice, phones, width, delta, (uint64_t)o->max_bytes, &fine, err);
  width = fine.width;
  if (status == WF_OK) status = wf__exact_reduce(lattice, width, err);
  if (status == WF_OK && wf__exact_num_states(lattice) > 0) status = wf__determinize_words(lattice, width, delta, (uint64_t)o->max_bytes, &words, &outcome, err);
  if (status == WF_OK && o->minimize) status = wf__exact_minimize(&words, err);
  if (status == WF_OK) {
    out->narrowed = fine.narrowed || outcome.narrowed;
    out->beam = out->narrowed ? nextafterf((float)wf__exact_nats(lattice, outcome.width), 0) : o->beam;
    out->num_subsets = outcome.num_subsets;
    out->num_bytes = outcome.num_bytes > fine.num_bytes ? outcome.num_bytes : fine.num_bytes;
    status = to_compact(&words, &out->lattice, err);
  }
  wf__exact_free(&words);
  wf__exact_free(lattice);
  return status;
}

static wf_status settle(wf_determinized *out, wf_status status, const wf_error *why, wf_error *err) {
  if (status != WF_OK) {
    *out = (wf_determinized){.status = status};
    snprintf(out->message, sizeof out->message, "%.255s", why->message);
    if (err != NULL) *err = *why;
  }
  return status;
}

static wf_status determinize_raw(const wf_lattice *lattice, const wf_lattice_phones *phones, const wf_lattice_determinize_options *o, wf_determinized *out, wf_error *err) {
  wf__exact_lattice exact;
  wf_error why = {0};
  wf_status status = wf__exact_from_lattice(lattice, &exact, &why);
  if (status == WF_OK) status = determinize(&exact, phones, o, out, &why);
  return settle(out, status, &why, err);
}

wf_status wf_lattice_determinize(const wf_lattice *lattice, const wf_lattice_phones *phones, const wf_lattice_determinize_options *options, wf_determinized *out,
                                 wf_error *err) {
  wf_lattice_determinize_options o;
  *out = (wf_determinized){.status = WF_ERR_ARGUMENT};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &o, err));
  *out = (wf_determinized){0};
  return determinize_raw(lattice, phones, &o, out, err);
}

wf_status wf_compact_lattice_determinize(const wf_compact_lattice *lattice, const wf_lattice_determinize_options *options, wf_determinized *out, wf_error *err) {
  wf_lattice_determinize_options o;
  wf__exact_lattice exact;
  wf_error why = {0};
  *out = (wf_determinized){.status = WF_ERR_ARGUMENT};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &o, err));
  *out = (wf_determinized){0};
  wf_status status = wf__exact_from_compact(lattice, &exact, &why);
  if (status == WF_OK) status = determinize(&exact, NULL, &o, out, &why);
  return settle(out, status, &why, err);
}

/* --- many lattices -------------------------------------------------------------------------------------------------- */

struct many {
  const wf_lattice *const *lattices;
  const wf_lattice_phones *phones;
  const wf_lattice_determinize_options *options;
  wf_determinized *out;
};

static void determinize_item(void *user, uint64_t i, int worker) {
  (void)worker;
  const struct many *many = user;
  if (many->lattices[i] != NULL) determinize_raw(many->lattices[i], many->phones, many->options, &many->out[i], NULL);
}

wf_status wf_lattices_determinize(const wf_lattice *const *lattices, size_t count, const wf_lattice_phones *phones, const wf_lattice_determinize_options *options,
                                  wf_determinized *out, wf_error *err) {
  wf_lattice_determinize_options o;
  wf__pool *pool;
  for (size_t i = 0; i < count; i++) out[i] = (wf_determinized){0};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &o, err));
  int num_threads = o.num_threads > 0 ? o.num_threads : wf__num_cpus();
  WF__TRY(wf__pool_create((size_t)num_threads > count ? (int)count + (count == 0) : num_threads, &pool, err));
  wf__pool_run(pool, count, determinize_item, &(struct many){lattices, phones, &o, out});
  wf__pool_free(pool);
  return WF_OK;
}
