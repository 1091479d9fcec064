/* boost_lists.h - random lists of boosts. */
#ifndef BENCH_BOOST_LISTS_H
#define BENCH_BOOST_LISTS_H

#include "common.h"
#include "random.h"

enum { LONGEST_PHRASE = 4 };

/* A list as the calls take it; single words if off is NULL. */
struct list {
  int32_t *words;
  uint64_t *off;
  float *boosts;
  size_t count;
};

/* `count` phrases of two to four words, or different single words, at most num_words of them. */
static inline struct list random_list(size_t count, bool phrases, int32_t num_words,
                                      uint64_t random) {
  if (!phrases && count > (size_t)num_words) count = (size_t)num_words;
  struct list list = {.words = allocate(count * LONGEST_PHRASE, sizeof *list.words),
                      .off = phrases ? allocate(count + 1, sizeof *list.off) : NULL,
                      .boosts = allocate(count, sizeof *list.boosts),
                      .count = count};
  for (size_t i = 0; i < count; i++) {
    list.boosts[i] = 3;
    if (!phrases) {
      list.words[i] = 1 + (int32_t)(i * (size_t)num_words / count);
      continue;
    }
    list.off[i + 1] = list.off[i] + 2 + below(&random, LONGEST_PHRASE - 1);
    for (uint64_t k = list.off[i]; k < list.off[i + 1]; k++)
      list.words[k] = 1 + (int32_t)below(&random, (uint32_t)num_words);
  }
  return list;
}

static inline void free_list(struct list *list) {
  free(list->words);
  free(list->off);
  free(list->boosts);
}

static inline wf_scorer *list_scorer(const struct list *list) {
  wf_scorer *scorer;
  wf_error err = {0};
  check(list->off != NULL
            ? wf_scorer_boost_phrases(list->words, list->off, list->boosts, list->count, &scorer,
                                      &err)
            : wf_scorer_boost_words(list->words, list->boosts, list->count, &scorer, &err),
        &err);
  return scorer;
}

static inline wf_scorer *random_boosts(size_t count, bool phrases, int32_t num_words,
                                       uint64_t random) {
  struct list list = random_list(count, phrases, num_words, random);
  wf_scorer *scorer = list_scorer(&list);
  free_list(&list);
  return scorer;
}

/* Largest output label of a graph. */
static inline int32_t most_olabel(const wf_fst *fst) {
  const wf_fst_view view = wf_fst_get_view(fst);
  int32_t most = 1;
  for (uint64_t a = 0; a < view.num_arcs; a++)
    if (view.arcs[a].olabel > most) most = view.arcs[a].olabel;
  return most;
}

#endif
