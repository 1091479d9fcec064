/* call_sequences.h - for targets whose input is a sequence of calls: bytes as numbers, random
 * graphs and scores, and comparisons that abort. */
#ifndef FUZZ_CALL_SEQUENCES_H
#define FUZZ_CALL_SEQUENCES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/hash.h"
#include "warpfst_all.h"

#define CHECK(holds)                                                       \
  do {                                                                     \
    if (!(holds)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #holds); \
      abort();                                                             \
    }                                                                      \
  } while (0)

enum { NUM_TOKENS = 3, NUM_COLUMNS = NUM_TOKENS, NUM_WORDS = 3 }; /* token 1 is the blank */

#define CHECK_OK(call) CHECK((call) == WF_OK || (fprintf(stderr, "%s\n", err.message), false))

typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

/* The next byte, 0 after the last one, as a number below `count`. */
static inline uint32_t take(bytes *in, uint32_t count) {
  const uint32_t byte = in->at < in->end ? *in->at++ : 0;
  return byte % count;
}

static inline uint32_t below(uint64_t *seed, uint32_t count) {
  *seed = wf__mix64(*seed + 0x9e3779b97f4a7c15ULL);
  return (uint32_t)(*seed >> 33) % count;
}

/* States with a loop of the blank, arcs with tokens, epsilons to later states, and places for the
 * words of a class. */
static inline wf_graph *random_graph(uint64_t seed, bool transducer) {
  const uint32_t num_states = 1 + below(&seed, 5);
  wf_error err;
  wf_builder *builder;
  wf_symbols *labels;
  wf_fst *fst;
  wf_graph *graph;
  CHECK_OK(wf_symbols_create("labels", &labels, &err));
  const char *const names[] = {"<eps>", "t1", "t2", "t3", transducer ? "#1<c>" : "#<c>"};
  for (int32_t i = 0; i < 5; i++) CHECK_OK(wf_symbols_add(labels, names[i], i, NULL, &err));
  CHECK_OK(wf_builder_create(WF_TROPICAL, &builder, &err));
  CHECK_OK(wf_builder_add_states(builder, num_states, NULL, &err));
  CHECK_OK(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < num_states; s++) {
    CHECK_OK(wf_builder_add_arc(builder, s, (wf_arc){s, 0, 1, 0}, &err));
    for (uint32_t k = 1 + below(&seed, 4); k > 0; k--) {
      const bool epsilon = s + 1 < num_states && below(&seed, 4) == 0;
      const int32_t label = epsilon ? 0 : 2 + (int32_t)below(&seed, NUM_TOKENS);
      wf_arc arc = {epsilon ? s + 1 : below(&seed, num_states), (float)below(&seed, 9) / 8, label,
                    (int32_t)below(&seed, NUM_WORDS + 1)};
      if (label == NUM_TOKENS + 1) arc.olabel = 0; /* a place of the class */
      CHECK_OK(wf_builder_add_arc(builder, s, arc, &err));
    }
    if (s + 1 == num_states || below(&seed, 2) == 0)
      CHECK_OK(wf_builder_set_final(builder, s, (float)below(&seed, 4) / 4, &err));
  }
  CHECK_OK(wf_builder_finish(builder, labels, NULL, &fst, &err));
  CHECK_OK(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_builder_free(builder);
  wf_symbols_free(labels);
  wf_fst_free(fst);
  return graph;
}

/* The graph with phrases added to its class; NULL: it has no place for them. */
static inline wf_graph *with_words(const wf_graph *graph, uint64_t seed) {
  int32_t labels[4][2];
  wf_spoken_word words[4];
  wf_added_phrase phrases[2];
  wf_error err;
  wf_graph *out = NULL;
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 2; k++) labels[i][k] = 2 + (int32_t)below(&seed, NUM_TOKENS - 1);
    words[i] =
        (wf_spoken_word){1 + (int32_t)below(&seed, NUM_WORDS), labels[i], 1 + below(&seed, 2)};
  }
  for (int i = 0; i < 2; i++)
    phrases[i] = (wf_added_phrase){&words[2 * i], 1 + below(&seed, 2), (float)below(&seed, 8) / 8};
  if (wf_graph_num_classes(graph) > 0)
    (void)wf_graph_add_phrases(graph, "<c>", phrases, 2, &out, &err);
  return out;
}

/* Boosts of the phrase "a b" and of the word c. */
static inline wf_scorer *random_boosts(uint64_t seed) {
  int32_t words[3];
  const float boosts[2] = {(float)below(&seed, 16) / 8, (float)below(&seed, 16) / 8 - 0.5f};
  wf_error err;
  wf_scorer *scorer;
  for (int i = 0; i < 3; i++) words[i] = 1 + (int32_t)below(&seed, NUM_WORDS);
  CHECK_OK(wf_scorer_boost_phrases(words, (const uint64_t[]){0, 2, 3}, boosts, 2, &scorer, &err));
  return scorer;
}

static inline wf_scores rows_of(const float *data, int64_t first, int64_t count, int32_t columns) {
  return (wf_scores){.data = count > 0 ? data + first * columns : NULL,
                     .num_frames = count,
                     .num_columns = columns,
                     .stride = columns};
}

/* Checks that states and arcs of `whole` from `first` on are those of the part. Returns the state
 * that the next part begins with, or the number of states after the last part. */
static inline uint64_t check_part(const wf_lattice *whole, const wf_lattice *part, uint64_t first,
                                  bool last) {
  const wf_lattice_view x = wf_lattice_get_view(whole), y = wf_lattice_get_view(part);
  const uint64_t count = last ? y.num_states : y.num_states - 1;
  CHECK(y.num_states > 0 && first + y.num_states <= x.num_states);
  for (uint64_t s = 0; s < count; s++) {
    CHECK(x.arc_off[first + s + 1] - x.arc_off[first + s] == y.arc_off[s + 1] - y.arc_off[s]);
    CHECK(x.frames[first + s] == y.frames[s] &&
          x.final_graph_cost[first + s] == y.final_graph_cost[s] &&
          x.final_scorer_cost[first + s] == y.final_scorer_cost[s]);
    for (uint64_t i = y.arc_off[s]; i < y.arc_off[s + 1]; i++) {
      wf_lattice_arc arc = y.arcs[i];
      arc.nextstate += (int32_t)first;
      CHECK(memcmp(&x.arcs[x.arc_off[first + s] + i - y.arc_off[s]], &arc, sizeof arc) == 0);
    }
  }
  return first + count;
}

/* Checks that two results have the same words, costs and statistics. */
static inline void check_same(const wf_result *a, const wf_result *b) {
  CHECK(a->status == b->status);
  if (a->status != WF_OK) return;
  CHECK(a->flags == b->flags && a->num_frames == b->num_frames && a->num_decoded == b->num_decoded);
  CHECK(a->cost == b->cost && a->graph_cost == b->graph_cost &&
        a->acoustic_cost == b->acoustic_cost && a->scorer_cost == b->scorer_cost);
  CHECK(a->num_words == b->num_words && a->num_tokens == b->num_tokens &&
        a->num_arcs == b->num_arcs && a->num_expanded == b->num_expanded);
  if (a->num_words > 0) CHECK(memcmp(a->words, b->words, a->num_words * sizeof *a->words) == 0);
  if (a->num_decoded > 0)
    CHECK(memcmp(a->alignment, b->alignment, (size_t)a->num_decoded * sizeof *a->alignment) == 0);
}

#endif
