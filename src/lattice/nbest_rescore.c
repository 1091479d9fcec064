/* nbest_rescore.c - rescores a list of paths with another language model and sorts it again. */
#include <string.h>

#include "base/option_tables.h"
#include "lattice/lm_exchange.h"
#include "lattice/nbest.h"

struct ranked {
  double cost, old_lm_cost, new_lm_cost;
  const wf_lattice_path *path;
};

static int compare(const void *a, const void *b) {
  const struct ranked *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  size_t common = x->path->num_words < y->path->num_words ? x->path->num_words : y->path->num_words;
  for (size_t i = 0; i < common; i++)
    if (x->path->words[i] != y->path->words[i])
      return x->path->words[i] < y->path->words[i] ? -1 : 1;
  if (x->path->num_words != y->path->num_words)
    return x->path->num_words < y->path->num_words ? -1 : 1;
  return (x->path > y->path) - (x->path < y->path);
}

/* Returns false if the path is impossible. */
static bool rank(const wf__lm_exchange *exchange, const wf_lattice_path *path, struct ranked *out) {
  wf__lm_histories histories = wf__lm_exchange_start(exchange);
  *out = (struct ranked){.path = path};
  for (size_t i = 0; i <= path->num_words; i++) {
    wf__lm_costs costs = i < path->num_words
                             ? wf__lm_exchange_step(exchange, &histories, path->words[i])
                             : wf__lm_exchange_final(exchange, histories);
    out->old_lm_cost += (double)costs.old_cost;
    out->new_lm_cost += (double)costs.new_cost;
  }
  out->cost = path->graph_cost - out->old_lm_cost + out->new_lm_cost + path->acoustic_cost;
  return out->new_lm_cost != INFINITY;
}

static wf_status copy(wf_nbest *nbest, const struct ranked *ranked, wf_error *err) {
  const wf_lattice_path *path = ranked->path;
  WF__TRY(wf__nbest_begin(nbest, err));
  WF__TRY(wf__vec_grow(&nbest->words, path->num_words, "a path", err));
  WF__TRY(wf__vec_grow(&nbest->frames, path->num_words, "a path", err));
  WF__TRY(wf__vec_grow(&nbest->alignment, path->num_labels, "a path", err));
  memcpy(nbest->words.data + nbest->words.size, path->words, path->num_words * sizeof *path->words);
  memcpy(nbest->frames.data + nbest->frames.size, path->frames,
         path->num_words * sizeof *path->frames);
  memcpy(nbest->alignment.data + nbest->alignment.size, path->alignment,
         path->num_labels * sizeof *path->alignment);
  nbest->words.size += path->num_words;
  nbest->frames.size += path->num_words;
  nbest->alignment.size += path->num_labels;
  wf__nbest_entry *entry = &nbest->entries.data[nbest->entries.size - 1];
  entry->num_words = path->num_words;
  entry->num_labels = path->num_labels;
  entry->graph_cost = path->graph_cost - ranked->old_lm_cost + ranked->new_lm_cost;
  entry->acoustic_cost = path->acoustic_cost;
  entry->old_lm_cost = ranked->old_lm_cost;
  entry->new_lm_cost = ranked->new_lm_cost;
  return WF_OK;
}

wf_status wf_nbest_rescore(const wf_nbest *nbest, const wf_lm *old_lm, const wf_lm *new_lm,
                           const wf_lattice_rescore_options *options, wf_nbest **out,
                           wf_error *err) {
  wf_lattice_rescore_options o;
  size_t count = wf_nbest_count(nbest), num_ranked = 0;
  *out = NULL;
  WF__TRY(wf__options_take(wf__lattice_rescore_table(), options, &o, err));
  wf__lm_exchange exchange = {old_lm, new_lm, o.old_lm_scale, o.new_lm_scale};
  wf_lattice_path *paths = wf__alloc(count, sizeof *paths);
  struct ranked *ranked = wf__alloc(count, sizeof *ranked);
  wf_status status =
      paths != NULL && ranked != NULL
          ? wf__nbest_create(out, err)
          : wf__fail_memory(err, count * (sizeof *paths + sizeof *ranked), "a list of paths");
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    paths[i] = wf_nbest_at(nbest, i);
    num_ranked += rank(&exchange, &paths[i], &ranked[num_ranked]);
  }
  if (status == WF_OK && num_ranked > 0) qsort(ranked, num_ranked, sizeof *ranked, compare);
  for (size_t i = 0; i < num_ranked && status == WF_OK; i++) status = copy(*out, &ranked[i], err);
  free(paths);
  free(ranked);
  if (status != WF_OK) {
    wf_nbest_free(*out);
    *out = NULL;
  }
  return status;
}
