/* table_scorer.c - random automata over words. */
#include "table_scorer.h"

#include "scorer/scorer.h"

static oracle_scorer allocate(int num_contexts, int num_words) {
  size_t size = (size_t)num_contexts * (size_t)num_words;
  return (oracle_scorer){num_contexts, num_words, malloc(size * sizeof(int)),
                         malloc(size * sizeof(float)),
                         malloc((size_t)num_contexts * sizeof(float))};
}

oracle_scorer test_random_tables(test_rng *rng, const table_scorer_shape *shape) {
  oracle_scorer tables =
      allocate(1 + (int)test_below(rng, (uint32_t)shape->max_contexts), shape->num_words);
  int size = tables.num_contexts * tables.num_words;
  float *potential = malloc((size_t)tables.num_contexts * sizeof *potential);
  for (int c = 0; c < tables.num_contexts; c++)
    potential[c] = shape->negative ? (float)test_below(rng, 17) / 8 - 1 : 0;
  for (int i = 0; i < size; i++) {
    uint32_t kind =
        test_below(rng, 20); /* coarse values make ties common; some words are impossible */
    tables.next[i] = shape->last_word && i >= tables.num_words
                         ? tables.next[i - tables.num_words]
                         : (int)test_below(rng, (uint32_t)tables.num_contexts);
    tables.cost[i] = kind == 0   ? INFINITY
                     : kind < 12 ? (float)test_below(rng, 9) / 4
                                 : test_unit(rng) * 3;
    if (shape->coarse) tables.cost[i] = kind < 18 ? 0 : 0.25f;
    tables.cost[i] += potential[tables.next[i]] - potential[i / tables.num_words];
  }
  for (int c = 0; c < tables.num_contexts; c++)
    tables.final[c] =
        test_below(rng, 8) == 0 ? INFINITY : (float)test_below(rng, 9) / 4 - potential[c];
  free(potential);
  return tables;
}

void test_free_tables(oracle_scorer *tables) {
  free(tables->next);
  free(tables->cost);
  free(tables->final);
}

oracle_scorer test_chained_tables(const oracle_scorer *first, const oracle_scorer *second) {
  oracle_scorer tables = allocate(first->num_contexts * second->num_contexts, first->num_words);
  for (int c = 0; c < tables.num_contexts; c++) {
    int a = c / second->num_contexts, b = c % second->num_contexts;
    tables.final[c] = first->final[a] + second->final[b];
    for (int w = 0; w < first->num_words; w++) {
      int i = a * first->num_words + w, k = b * second->num_words + w,
          at = c * first->num_words + w;
      tables.cost[at] = first->cost[i] + second->cost[k];
      tables.next[at] = first->next[i] * second->num_contexts + second->next[k];
    }
  }
  return tables;
}

/* --- the tables as a scorer of the library ----------------------------------------------- */

struct table_scorer {
  wf_scorer scorer;
  const oracle_scorer *tables;
  bool wide;
};

struct table_memory {
  bool begun;
  bool *seen; /* [num_contexts] the search has received this context */
};

/* The library's number of context c. It keeps the order of the tables, because the oracle breaks
 * ties by that order. */
static uint64_t context_of(const struct table_scorer *self, int c) {
  return self->wide ? ((uint64_t)c + 1) * 0x1234567890abcdULL : (uint64_t)c;
}

static int number_of(const struct table_scorer *self, const struct table_memory *memory,
                     uint64_t context) {
  for (int c = 0; c < self->tables->num_contexts; c++)
    if (context_of(self, c) == context && memory->begun && memory->seen[c]) return c;
  fail_msg("the library requests a context that it has not received");
  return 0;
}

static void table_free(wf_scorer *self) { free(self); }

static wf_status table_open(const wf_scorer *self, void **out, wf_error *err) {
  struct table_memory *memory = calloc(1, sizeof *memory);
  memory->seen = calloc((size_t)((const struct table_scorer *)self)->tables->num_contexts,
                        sizeof *memory->seen);
  *out = memory;
  return WF_OK;
}

static void table_close(const wf_scorer *self, void *opaque) {
  struct table_memory *memory = opaque;
  if (memory != NULL) free(memory->seen);
  free(memory);
}

static wf_status table_begin(const wf_scorer *opaque, void *opaque_memory, uint64_t *start,
                             wf_error *err) {
  const struct table_scorer *self = (const struct table_scorer *)opaque;
  struct table_memory *memory = opaque_memory;
  memset(memory->seen, 0, (size_t)self->tables->num_contexts * sizeof *memory->seen);
  memory->begun = memory->seen[0] = true;
  *start = context_of(self, 0);
  return WF_OK;
}

static wf_status table_step(const wf_scorer *opaque, void *memory, uint64_t context, int32_t word,
                            float *cost, uint64_t *next, wf_error *err) {
  const struct table_scorer *self = (const struct table_scorer *)opaque;
  assert_true(word > 0 && word <= self->tables->num_words);
  int at = number_of(self, memory, context) * self->tables->num_words + word - 1;
  *cost = self->tables->cost[at];
  *next = context_of(self, self->tables->next[at]);
  ((struct table_memory *)memory)->seen[self->tables->next[at]] = true;
  return WF_OK;
}

static wf_status table_final(const wf_scorer *opaque, void *memory, uint64_t context, float *cost,
                             wf_error *err) {
  const struct table_scorer *self = (const struct table_scorer *)opaque;
  *cost = self->tables->final[number_of(self, memory, context)];
  return WF_OK;
}

/* Those of the context, not of all. Only the scorer without batches has bounds. */
static wf__cost_bounds table_bounds(const wf_scorer *opaque, const void *memory, uint64_t context) {
  const struct table_scorer *self = (const struct table_scorer *)opaque;
  const int num_words = self->tables->num_words;
  const float *costs = self->tables->cost + number_of(self, memory, context) * num_words;
  wf__cost_bounds bounds = {INFINITY, -INFINITY};
  for (int w = 0; w < num_words; w++) {
    bounds.least = fminf(bounds.least, costs[w]);
    bounds.most = fmaxf(bounds.most, costs[w]);
  }
  return bounds;
}

/* The callbacks of a scorer that scores requests in batches. It evicts every context that is not
 * live as often as it can. So a context that the library uses without reporting it as live fails
 * the test. */
static wf_status table_join(const wf_scorer *self, void *first, void **memory, wf_error *err) {
  return table_open(self, memory, err);
}

static wf_status table_request(const wf_scorer *self, void *memory,
                               const wf__score_request *requests, uint64_t count,
                               uint64_t num_requests, uint64_t *num_noted, wf_error *err) {
  assert_true(num_requests >= count);
  for (uint64_t i = 0; i < count; i++)
    number_of((const struct table_scorer *)self, memory, requests[i].context);
  *num_noted = count;
  return WF_OK;
}

static wf_status table_score_requests(const wf_scorer *self, void *const *memories, size_t count,
                                      wf__pool *pool, wf_error *err) {
  return WF_OK;
}

static bool table_is_full(const wf_scorer *self, const void *memory) { return true; }

static wf_status table_keep(const wf_scorer *opaque, void *const *memories,
                            const wf__context_vec *live, size_t count, wf_error *err) {
  const struct table_scorer *self = (const struct table_scorer *)opaque;
  for (size_t m = 0; m < count; m++) {
    struct table_memory *memory = memories[m];
    for (int c = 0; c < self->tables->num_contexts; c++) {
      bool live_now = false;
      for (uint64_t i = 0; i < live[m].size; i++)
        live_now = live_now || live[m].data[i] == context_of(self, c);
      memory->seen[c] = memory->seen[c] && live_now;
    }
  }
  return WF_OK;
}

static const wf__scorer_batch_ops table_batch_ops = {.join = table_join,
                                                     .request = table_request,
                                                     .score = table_score_requests,
                                                     .is_full = table_is_full,
                                                     .keep = table_keep};
static const wf__scorer_ops table_ops = {.name = "tables",
                                         .free = table_free,
                                         .open = table_open,
                                         .close = table_close,
                                         .begin = table_begin,
                                         .step = table_step,
                                         .final = table_final,
                                         .bounds = table_bounds};
static const wf__scorer_ops wide_table_ops = {.name = "tables",
                                              .free = table_free,
                                              .open = table_open,
                                              .close = table_close,
                                              .begin = table_begin,
                                              .step = table_step,
                                              .final = table_final,
                                              .batch = &table_batch_ops};

wf_scorer *test_table_scorer(const oracle_scorer *tables, bool wide) {
  struct table_scorer *self = calloc(1, sizeof *self);
  int bits = 0;
  while (tables->num_contexts > 1 << bits) bits++;
  wf__scorer_init(&self->scorer, wide ? &wide_table_ops : &table_ops, wide ? 64 : bits);
  self->tables = tables;
  self->wide = wide;
  bool last_word = true;
  for (int i = tables->num_words; i < tables->num_contexts * tables->num_words; i++)
    last_word = last_word && tables->next[i] == tables->next[i - tables->num_words];
  if (last_word) self->scorer.context_words = 1;
  return &self->scorer;
}
