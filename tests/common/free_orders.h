/* free_orders.h - frees the objects that a user of a decoder holds, in every order, and uses the
 * remaining ones in between. */
#ifndef TESTS_FREE_ORDERS_H
#define TESTS_FREE_ORDERS_H

#include "random_scorers.h"
#include "random_words.h"

enum {
  FREED_GRAPH,
  FREED_WORDS,
  FREED_DECODER,
  FREED_STREAM,
  FREED_OTHER_STREAM,
  FREED_SCORER,
  FREED_LATTICE,
  NUM_FREED,
  NUM_FREE_ORDERS = 5040
};

/* The objects; NULL when freed. */
struct freed_objects {
  struct added_task task; /* its graphs are two of the objects */
  wf_decoder *decoder;
  wf_stream *stream, *other; /* `other` uses the graph with added words and the scorer */
  wf_scorer *scorer;
  wf_lattice *lattice;
};

static inline struct freed_objects freed_objects_make(const char *device, const wf_symbols *words) {
  wf_error err = {0};
  struct freed_objects o = {0};
  uint64_t seed = 1;
  while (!is_fitting(seed, &o.task) || o.task.task.scores.num_frames < 4)
    free_added(&o.task), seed++;
  test_rng rng = {seed};
  wf_decoder_options options = o.task.task.options;
  wf_result *result;
  options.device = device;
  options.lattice_beam = 4;
  o.scorer = random_scorer(&rng, words);
  assert_ok(wf_decoder_create(o.task.task.graph, &options, &o.decoder, &err));
  assert_ok(wf_decoder_set_scorer(o.decoder, o.scorer, &err));
  assert_ok(test_decode(o.decoder, &o.task.task.scores, 1, NULL, &result, &err));
  o.lattice = result->lattice != NULL ? wf_lattice_ref(result->lattice) : NULL;
  wf_result_free(result);
  assert_ok(wf_stream_create(o.decoder, NULL, &o.stream, &err));
  assert_ok(wf_stream_create(o.decoder, NULL, &o.other, &err));
  assert_ok(wf_stream_set_graph(o.other, o.task.with, &err));
  assert_ok(wf_stream_set_scorer(o.other, o.scorer, &err));
  return o;
}

static inline void freed_objects_free(struct freed_objects *o, int which) {
  switch (which) {
    case FREED_GRAPH: wf_graph_free(o->task.task.graph), o->task.task.graph = NULL; break;
    case FREED_WORDS: wf_graph_free(o->task.with), o->task.with = NULL; break;
    case FREED_DECODER: wf_decoder_free(o->decoder), o->decoder = NULL; break;
    case FREED_STREAM: wf_stream_free(o->stream), o->stream = NULL; break;
    case FREED_OTHER_STREAM: wf_stream_free(o->other), o->other = NULL; break;
    case FREED_SCORER: wf_scorer_free(o->scorer), o->scorer = NULL; break;
    default: wf_lattice_free(o->lattice), o->lattice = NULL; break;
  }
}

/* The remaining streams still work, whatever has been freed. */
static inline void freed_objects_use(struct freed_objects *o) {
  wf_error err = {0};
  wf_stream *streams[] = {o->stream, o->other};
  wf_scores chunk = o->task.task.scores;
  chunk.num_frames = 1;
  for (int i = 0; i < 2; i++)
    if (streams[i] != NULL) assert_ok(wf_stream_advance(streams[i], &chunk, NULL, &err));
}

/* Frees everything that remains. */
static inline void freed_objects_end(struct freed_objects *o) {
  for (int i = 0; i < NUM_FREED; i++) freed_objects_free(o, i);
  wf_fst_free(o->task.fst);
  free(o->task.task.data);
}

/* Computes the order with this number, 0 to NUM_FREE_ORDERS - 1. */
static inline void free_order(uint64_t number, int *order) {
  for (int i = 0; i < NUM_FREED; i++) {
    const int at = (int)(number % (uint64_t)(i + 1));
    number /= (uint64_t)(i + 1);
    order[i] = order[at];
    order[at] = i;
  }
}

/* Tests every `step`-th order. */
static inline void test_free_orders(const char *device, uint64_t step) {
  wf_symbols *words = random_scorer_words();
  for (uint64_t number = 0; number < NUM_FREE_ORDERS; number += step) {
    int order[NUM_FREED];
    struct freed_objects o = freed_objects_make(device, words);
    free_order(number, order);
    for (int i = 0; i < NUM_FREED; i++) {
      freed_objects_free(&o, order[i]);
      if (i == 0 || order[i] == FREED_DECODER) freed_objects_use(&o);
    }
    freed_objects_end(&o);
  }
  wf_symbols_free(words);
}

#endif
