/* lattice_determinize.c - the public determinization of lattices: over words, or over phones and
 * then words; one lattice, or many on a pool.
 *
 *   wf_lattice -> graph of words -> determinized over words -> minimized -> wf_compact_lattice
 *   wf_lattice, wf_compact_lattice -> exact -> (labels word.phone -> determinized ->) graph of
 *   words -> ... */
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "lattice/exact_minimize.h"
#include "lattice/lattice_determinize.h"
#include "lattice/word_determinizer.h"

/* --- phones ------------------------------------------------------------------------------ */

typedef WF__VEC(int32_t) word_vec;

/* Replaces words by numbers of distinct pairs (word, phone that begins on the arc); `words`: the
 * word of each number. Pair 0 is (none, none). Arcs have one label at most. */
static wf_status put_pairs(wf__exact_lattice *lattice, const wf_lattice_phones *phones,
                           word_vec *words, wf_error *err) {
  wf__map64 pairs = {0};
  wf_status status = wf__vec_push(words, 0, "phones", err);
  for (uint64_t i = 0; i < lattice->arcs.size && status == WF_OK; i++) {
    wf__exact_arc *arc = &lattice->arcs.data[i];
    int32_t label = arc->num_labels > 0 ? lattice->labels.data[arc->first_label] : 0, phone = 0;
    if (label > 0 && (size_t)label < phones->count) phone = phones->phone_of[label];
    if (arc->word == 0 && phone <= 0) continue;
    uint32_t number;
    bool fresh;
    status = wf__map64_insert(
        &pairs, (uint64_t)(uint32_t)arc->word << 32 | (uint32_t)(phone > 0 ? phone : 0),
        (uint32_t)words->size, &number, &fresh, "phones", err);
    if (status == WF_OK && fresh) status = wf__vec_push(words, arc->word, "phones", err);
    arc->word = (int32_t)number;
  }
  wf__map64_free(&pairs);
  return status;
}

static wf_status determinize_phones(wf__exact_lattice *lattice, const wf_lattice_phones *phones,
                                    int64_t width, int64_t delta, uint64_t max_bytes,
                                    wf__word_outcome *outcome, wf_error *err) {
  word_vec words = {0};
  wf__exact_lattice fine;
  wf_status status = put_pairs(lattice, phones, &words, err);
  if (status == WF_OK)
    status = wf__determinize_words(lattice, width, delta, max_bytes, &fine, outcome, err);
  if (status == WF_OK) {
    wf__exact_free(lattice);
    *lattice = fine;
  }
  for (uint64_t i = 0; i < lattice->arcs.size && status == WF_OK; i++)
    lattice->arcs.data[i].word = words.data[lattice->arcs.data[i].word];
  wf__vec_free(&words);
  return status;
}

/* --- one lattice ------------------------------------------------------------------------- */

static wf_compact_weight weight_of(const wf__exact_lattice *lattice, wf__exact_cost cost,
                                   uint32_t first, uint32_t count) {
  return (wf_compact_weight){(float)wf__exact_nats(lattice, cost.graph),
                             (float)wf__exact_nats(lattice, cost.acoustic), count, first};
}

/* Takes ownership of the labels. */
static wf_status to_compact(wf__exact_lattice *lattice, wf_compact_lattice **out, wf_error *err) {
  wf__compact_arrays arrays = {0};
  wf_status status = wf__vec_grow(&arrays.arcs, lattice->arcs.size, "lattice arcs", err);
  for (uint64_t s = 0; s < wf__exact_num_states(lattice) && status == WF_OK; s++) {
    const wf__exact_end *end = &lattice->ends.data[s];
    bool final = wf__exact_is_final(lattice, s);
    status = wf__compact_add_state(
        &arrays,
        final ? weight_of(lattice, end->cost, end->first_label, end->num_labels)
              : (wf_compact_weight){.graph_cost = INFINITY},
        err);
    for (uint64_t i = lattice->arc_off.data[s]; i < lattice->arc_off.data[s + 1] && status == WF_OK;
         i++) {
      const wf__exact_arc *arc = &lattice->arcs.data[i];
      wf_compact_weight weight = weight_of(lattice, arc->cost, arc->first_label, arc->num_labels);
      status = wf__compact_push(
          &arrays,
          (wf_compact_arc){
              .word = arc->word, .nextstate = (int32_t)arc->nextstate, .weight = weight},
          err);
    }
  }
  return wf__compact_finish_with(status, &arrays, &lattice->labels, out, err);
}

/* Determinizes the graph in `det`. `fine`: the outcome of determinization over phones. */
static wf_status determinize(wf__word_determinizer *det, const wf_lattice_determinize_options *o,
                             const wf__word_outcome *fine, wf_determinized *out, wf_error *err) {
  wf__exact_lattice words = {.unit = det->graph.unit};
  wf__word_outcome outcome;
  wf_status status = wf__word_determinizer_run(det, wf__exact_width(&words, (double)o->delta),
                                               (uint64_t)o->max_bytes, &words, &outcome, err);
  if (status == WF_OK && o->minimize) status = wf__exact_minimize(&words, err);
  if (status == WF_OK) {
    out->narrowed = fine->narrowed || outcome.narrowed;
    out->beam =
        out->narrowed ? nextafterf((float)wf__exact_nats(&words, outcome.width), 0) : o->beam;
    out->num_subsets = outcome.num_subsets;
    out->num_bytes = outcome.num_bytes > fine->num_bytes ? outcome.num_bytes : fine->num_bytes;
    status = to_compact(&words, &out->lattice, err);
  }
  wf__exact_free(&words);
  return status;
}

/* Consumes the lattice. */
static wf_status determinize_exact(wf__word_determinizer *det, wf__exact_lattice *lattice,
                                   const wf_lattice_phones *phones,
                                   const wf_lattice_determinize_options *o, wf_determinized *out,
                                   wf_error *err) {
  wf__word_outcome fine = {.width = wf__exact_width(lattice, (double)o->beam)};
  wf_status status = WF_OK;
  if (phones != NULL)
    status =
        determinize_phones(lattice, phones, fine.width, wf__exact_width(lattice, (double)o->delta),
                           (uint64_t)o->max_bytes, &fine, err);
  if (status == WF_OK) status = wf__word_graph_from_exact(&det->graph, lattice, fine.width, err);
  if (status == WF_OK) status = determinize(det, o, &fine, out, err);
  wf__exact_free(lattice);
  return status;
}

static wf_status finish(wf_determinized *out, wf_status status, const wf_error *why,
                        wf_error *err) {
  if (status != WF_OK) {
    *out = (wf_determinized){.status = status};
    snprintf(out->message, sizeof out->message, "%.255s", why->message);
    if (err != NULL) *err = *why;
  }
  return status;
}

static wf_status determinize_raw(wf__word_determinizer *det, const wf_lattice *lattice,
                                 const wf_lattice_phones *phones,
                                 const wf_lattice_determinize_options *o, wf_determinized *out,
                                 wf_error *err) {
  wf__exact_lattice exact;
  bool fits = false;
  if (phones == NULL)
    WF__TRY(wf__word_graph_from_lattice(&det->graph, lattice, (double)o->beam, &fits, err));
  if (fits) {
    WF__TRY(determinize(det, o, &(wf__word_outcome){0}, out, err));
  } else {
    WF__TRY(wf__exact_from_lattice(lattice, &exact, err));
    WF__TRY(determinize_exact(det, &exact, phones, o, out, err));
  }
  out->beam = fminf(out->beam, wf__lattice_beam(lattice));
  return WF_OK;
}

wf_status wf_lattice_determinize(const wf_lattice *lattice, const wf_lattice_phones *phones,
                                 const wf_lattice_determinize_options *options,
                                 wf_determinized *out, wf_error *err) {
  wf_lattice_determinize_options o;
  wf__word_determinizer det = {0};
  wf_error why = {0};
  *out = (wf_determinized){.status = WF_ERR_ARGUMENT};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &o, err));
  *out = (wf_determinized){0};
  wf_status status = determinize_raw(&det, lattice, phones, &o, out, &why);
  wf__word_determinizer_free(&det);
  return finish(out, status, &why, err);
}

wf_status wf_compact_lattice_determinize(const wf_compact_lattice *lattice,
                                         const wf_lattice_determinize_options *options,
                                         wf_determinized *out, wf_error *err) {
  wf_lattice_determinize_options o;
  wf__exact_lattice exact;
  wf__word_determinizer det = {0};
  wf_error why = {0};
  *out = (wf_determinized){.status = WF_ERR_ARGUMENT};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &o, err));
  *out = (wf_determinized){0};
  wf_status status = wf__exact_from_compact(lattice, &exact, &why);
  if (status == WF_OK) status = determinize_exact(&det, &exact, NULL, &o, out, &why);
  wf__word_determinizer_free(&det);
  return finish(out, status, &why, err);
}

/* --- many lattices ----------------------------------------------------------------------- */

enum { MOST_KEPT_BYTES = 1 << 26 }; /* larger determinizers are not kept for reuse */

struct wf__determinizers {
  pthread_mutex_t mutex;
  WF__VEC(wf__word_determinizer *) idle;
  WF__VEC(wf__lattice_arrays) spare;
  WF__VEC(wf__result_tables *) idle_results;
};

wf_status wf__determinizers_create(wf__determinizers **out, wf_error *err) {
  wf__determinizers *determinizers = *out = wf__calloc(1, sizeof *determinizers);
  if (determinizers == NULL) return wf__fail_memory(err, sizeof *determinizers, "determinization");
  pthread_mutex_init(&determinizers->mutex, NULL);
  return WF_OK;
}

static void free_one(wf__word_determinizer *det) {
  if (det != NULL) wf__word_determinizer_free(det);
  free(det);
}

void wf__determinizers_free(wf__determinizers *determinizers) {
  if (determinizers == NULL) return;
  for (uint64_t i = 0; i < determinizers->idle.size; i++) free_one(determinizers->idle.data[i]);
  for (uint64_t i = 0; i < determinizers->spare.size; i++)
    wf__lattice_arrays_free(&determinizers->spare.data[i]);
  for (uint64_t i = 0; i < determinizers->idle_results.size; i++)
    wf__result_tables_free(determinizers->idle_results.data[i]);
  wf__vec_free(&determinizers->idle);
  wf__vec_free(&determinizers->idle_results);
  wf__vec_free(&determinizers->spare);
  pthread_mutex_destroy(&determinizers->mutex);
  free(determinizers);
}

static wf__word_determinizer *take_one(wf__determinizers *determinizers) {
  wf__word_determinizer *det = NULL;
  pthread_mutex_lock(&determinizers->mutex);
  if (determinizers->idle.size > 0) det = determinizers->idle.data[--determinizers->idle.size];
  pthread_mutex_unlock(&determinizers->mutex);
  return det != NULL ? det : wf__calloc(1, sizeof *det);
}

static void put_back(wf__determinizers *determinizers, wf__word_determinizer *det) {
  bool kept = wf__word_determinizer_bytes(det) <= MOST_KEPT_BYTES;
  pthread_mutex_lock(&determinizers->mutex);
  kept = kept && wf__vec_push(&determinizers->idle, det, "determinization", NULL) == WF_OK;
  pthread_mutex_unlock(&determinizers->mutex);
  if (!kept) free_one(det);
}

void wf__lattice_determinize(wf__determinizers *determinizers, const wf_lattice *lattice,
                             const wf_lattice_phones *phones,
                             const wf_lattice_determinize_options *o, wf_determinized *out) {
  wf_error why = {0};
  wf__word_determinizer *det = take_one(determinizers);
  *out = (wf_determinized){0};
  wf_status status = det != NULL ? determinize_raw(det, lattice, phones, o, out, &why)
                                 : wf__fail_memory(&why, sizeof *det, "determinization");
  if (det != NULL) put_back(determinizers, det);
  finish(out, status, &why, NULL);
}

wf__lattice_arrays wf__spare_arrays(wf__determinizers *determinizers) {
  wf__lattice_arrays arrays = {0};
  if (determinizers == NULL) return arrays;
  pthread_mutex_lock(&determinizers->mutex);
  if (determinizers->spare.size > 0)
    arrays = determinizers->spare.data[--determinizers->spare.size];
  pthread_mutex_unlock(&determinizers->mutex);
  return arrays;
}

void wf__recycle_lattice(wf__determinizers *determinizers, wf_lattice *lattice) {
  wf__lattice_arrays arrays = wf__lattice_take_arrays(lattice);
  bool kept = arrays.arcs.cap * sizeof *arrays.arcs.data <= MOST_KEPT_BYTES;
  pthread_mutex_lock(&determinizers->mutex);
  kept = kept && wf__vec_push(&determinizers->spare, arrays, "determinization", NULL) == WF_OK;
  pthread_mutex_unlock(&determinizers->mutex);
  if (!kept) wf__lattice_arrays_free(&arrays);
}

wf_status wf__result_tables_take(wf__determinizers *determinizers, wf__result_tables **out,
                                 wf_error *err) {
  *out = NULL;
  pthread_mutex_lock(&determinizers->mutex);
  if (determinizers->idle_results.size > 0)
    *out = determinizers->idle_results.data[--determinizers->idle_results.size];
  pthread_mutex_unlock(&determinizers->mutex);
  return *out != NULL ? WF_OK : wf__result_tables_create(out, err);
}

void wf__result_tables_put_back(wf__determinizers *determinizers, wf__result_tables *tables) {
  bool kept = wf__result_tables_bytes(tables) <= MOST_KEPT_BYTES;
  pthread_mutex_lock(&determinizers->mutex);
  kept = kept &&
         wf__vec_push(&determinizers->idle_results, tables, "results of lattices", NULL) == WF_OK;
  pthread_mutex_unlock(&determinizers->mutex);
  if (!kept) wf__result_tables_free(tables);
}

struct many {
  const wf_lattice *const *lattices;
  const wf_lattice_phones *phones;
  const wf_lattice_determinize_options *options;
  wf__determinizers *determinizers;
  wf_determinized *out;
};

static void determinize_item(void *user, uint64_t i, int worker) {
  (void)worker;
  const struct many *many = user;
  if (many->lattices[i] != NULL)
    wf__lattice_determinize(many->determinizers, many->lattices[i], many->phones, many->options,
                            &many->out[i]);
}

wf_status wf_lattices_determinize(const wf_lattice *const *lattices, size_t count,
                                  const wf_lattice_phones *phones,
                                  const wf_lattice_determinize_options *options,
                                  wf_determinized *out, wf_error *err) {
  wf_lattice_determinize_options o;
  wf__determinizers *determinizers;
  wf__pool *pool;
  for (size_t i = 0; i < count; i++) out[i] = (wf_determinized){0};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), options, &o, err));
  int num_threads = o.num_threads > 0 ? o.num_threads : wf__num_cpus();
  WF__TRY(wf__determinizers_create(&determinizers, err));
  wf_status status = wf__pool_create(
      (size_t)num_threads > count ? (int)count + (count == 0) : num_threads, &pool, err);
  if (status == WF_OK) {
    status = wf__pool_try(pool, count, determinize_item,
                          &(struct many){lattices, phones, &o, determinizers, out}, err);
    wf__pool_free(pool);
  }
  wf__determinizers_free(determinizers);
  return status;
}
