/* nbest.c - lists of paths: construction, access, the list of the single best path. */
#include "lattice/nbest.h"

#include <string.h>

wf_status wf__nbest_create(wf_nbest **out, wf_error *err) {
  *out = wf__calloc(1, sizeof **out);
  return *out != NULL ? WF_OK : wf__fail_memory(err, sizeof **out, "a list of paths");
}

void wf_nbest_free(wf_nbest *nbest) {
  if (nbest == NULL) return;
  wf__vec_free(&nbest->entries);
  wf__vec_free(&nbest->words);
  wf__vec_free(&nbest->frames);
  wf__vec_free(&nbest->alignment);
  free(nbest);
}

size_t wf_nbest_count(const wf_nbest *nbest) { return nbest->entries.size; }

wf_lattice_path wf_nbest_at(const wf_nbest *nbest, size_t i) {
  const wf__nbest_entry *entry = &nbest->entries.data[i];
  return (wf_lattice_path){.words = nbest->words.data + entry->first_word,
                           .frames = nbest->frames.data + entry->first_word,
                           .alignment = nbest->alignment.data + entry->first_label,
                           .num_words = entry->num_words,
                           .num_labels = entry->num_labels,
                           .graph_cost = entry->graph_cost,
                           .acoustic_cost = entry->acoustic_cost};
}

wf_status wf__nbest_begin(wf_nbest *nbest, wf_error *err) {
  WF__TRY(wf__vec_grow(&nbest->words, 1, "a path", err)); /* so that no array of a path is NULL */
  WF__TRY(wf__vec_grow(&nbest->frames, 1, "a path", err));
  WF__TRY(wf__vec_grow(&nbest->alignment, 1, "a path", err));
  wf__nbest_entry entry = {.first_word = nbest->words.size, .first_label = nbest->alignment.size};
  return wf__vec_push(&nbest->entries, entry, "a path", err);
}

static wf_status add_labels(wf_nbest *nbest, const wf__exact_lattice *lattice, uint32_t first,
                            uint32_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&nbest->alignment, count, "a path", err));
  if (count > 0)
    memcpy(nbest->alignment.data + nbest->alignment.size, lattice->labels.data + first,
           count * sizeof(int32_t));
  nbest->alignment.size += count;
  nbest->entries.data[nbest->entries.size - 1].num_labels += count;
  return WF_OK;
}

wf_status wf__nbest_extend(wf_nbest *nbest, const wf__exact_lattice *lattice,
                           const wf__exact_arc *arc, wf_error *err) {
  wf__nbest_entry *entry = &nbest->entries.data[nbest->entries.size - 1];
  if (arc->word != 0) {
    WF__TRY(wf__vec_push(&nbest->words, arc->word, "a path", err));
    WF__TRY(wf__vec_push(&nbest->frames, (int32_t)entry->num_labels, "a path", err));
    entry->num_words++;
  }
  return add_labels(nbest, lattice, arc->first_label, arc->num_labels, err);
}

wf_status wf__nbest_end(wf_nbest *nbest, const wf__exact_lattice *lattice, uint64_t state,
                        wf__exact_cost cost, wf_error *err) {
  wf__nbest_entry *entry = &nbest->entries.data[nbest->entries.size - 1];
  const wf__exact_end *end = &lattice->ends.data[state];
  cost = wf__exact_sum(cost, end->cost);
  entry->graph_cost = wf__exact_nats(lattice, cost.graph);
  entry->acoustic_cost = wf__exact_nats(lattice, cost.acoustic);
  return add_labels(nbest, lattice, end->first_label, end->num_labels, err);
}

/* --- the best path ----------------------------------------------------------------------- */

/* Follows the best path from the start. Sums are exact, so there is always a matching arc or end.
 */
static wf_status walk(wf_nbest *nbest, const wf__exact_lattice *lattice, const int64_t *backward,
                      wf_error *err) {
  wf__exact_cost cost = {0, 0};
  WF__TRY(wf__nbest_begin(nbest, err));
  for (uint64_t s = 0;;) {
    if (wf__exact_is_final(lattice, s) &&
        wf__exact_total(lattice->ends.data[s].cost) == backward[s])
      return wf__nbest_end(nbest, lattice, s, cost, err);
    const wf__exact_arc *arc = &lattice->arcs.data[lattice->arc_off.data[s]];
    while (backward[arc->nextstate] == WF__NEVER ||
           wf__exact_total(arc->cost) + backward[arc->nextstate] != backward[s])
      arc++;
    WF__TRY(wf__nbest_extend(nbest, lattice, arc, err));
    cost = wf__exact_sum(cost, arc->cost);
    s = arc->nextstate;
  }
}

/* Consumes the lattice. */
static wf_status best_path(wf__exact_lattice *lattice, wf_nbest **out, wf_error *err) {
  int64_t *backward = NULL;
  wf_status status = wf__exact_backward(lattice, &backward, err);
  if (status == WF_OK) status = wf__nbest_create(out, err);
  if (status == WF_OK && wf__exact_num_states(lattice) > 0 && backward[0] != WF__NEVER)
    status = walk(*out, lattice, backward, err);
  free(backward);
  wf__exact_free(lattice);
  if (status != WF_OK) {
    wf_nbest_free(*out);
    *out = NULL;
  }
  return status;
}

wf_status wf_lattice_best_path(const wf_lattice *lattice, wf_nbest **out, wf_error *err) {
  wf__exact_lattice exact;
  *out = NULL;
  WF__TRY(wf__exact_from_lattice(lattice, &exact, err));
  return best_path(&exact, out, err);
}

wf_status wf_compact_lattice_best_path(const wf_compact_lattice *lattice, wf_nbest **out,
                                       wf_error *err) {
  wf__exact_lattice exact;
  *out = NULL;
  WF__TRY(wf__exact_from_compact(lattice, &exact, err));
  return best_path(&exact, out, err);
}
