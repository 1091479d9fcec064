/* chain.c - two scorers as one: the sum of their costs, and the pair of their contexts.
 *
 * The pair is one 64-bit number: first's context above second's where both fit, else a hash of the
 * two, with a table in the memory that leads back. */
#include <stdlib.h>

#include "base/map64.h"
#include "scorer/scorer.h"

struct chain {
  wf_scorer scorer;
  wf_scorer *parts[2];
  bool hashed;
};

struct pair {
  uint64_t contexts[2];
};

typedef WF__VEC(struct pair) pair_vec;

struct memory {
  void *parts[2];
  wf__map64 pair_of; /* hash -> place in pairs */
  pair_vec pairs;
  uint64_t most_pairs;            /* with more pairs, evicting unused ones is worthwhile */
  wf__score_request_vec requests; /* scratch: requests to a part */
};

enum { FEW_PAIRS = 100000 };

static void chain_free(wf_scorer *self) {
  struct chain *chain = (struct chain *)self;
  if (self->once != NULL) chain_free(self->once);
  wf_scorer_free(chain->parts[0]);
  wf_scorer_free(chain->parts[1]);
  free(chain);
}

static void chain_close(const wf_scorer *self, void *opaque) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  if (memory == NULL) return;
  for (int i = 0; i < 2; i++)
    if (memory->parts[i] != NULL) chain->parts[i]->ops->close(chain->parts[i], memory->parts[i]);
  wf__map64_free(&memory->pair_of);
  wf__vec_free(&memory->pairs);
  wf__vec_free(&memory->requests);
  free(memory);
}

/* Opens the parts' memories. If `first` is not NULL, joins them to its memories where the parts
 * support it. */
static wf_status open_parts(const struct chain *chain, const struct memory *first,
                            struct memory *memory, wf_error *err) {
  for (int i = 0; i < 2; i++) {
    const wf_scorer *part = chain->parts[i];
    if (first != NULL && part->ops->batch != NULL)
      WF__TRY(part->ops->batch->join(part, first->parts[i], &memory->parts[i], err));
    else if (part->ops->open != NULL)
      WF__TRY(part->ops->open(part, &memory->parts[i], err));
  }
  return WF_OK;
}

static wf_status chain_join(const wf_scorer *self, void *first, void **out, wf_error *err) {
  struct memory *memory = wf__calloc(1, sizeof *memory);
  if (memory == NULL) return wf__fail_memory(err, sizeof *memory, "a scorer's memory");
  wf_status status = open_parts((const struct chain *)self, first, memory, err);
  if (status != WF_OK) {
    chain_close(self, memory);
    return status;
  }
  *out = memory;
  return WF_OK;
}

static wf_status chain_open(const wf_scorer *self, void **out, wf_error *err) {
  return chain_join(self, NULL, out, err);
}

static wf_status pair_up(const struct chain *chain, struct memory *memory, uint64_t first,
                         uint64_t second, uint64_t *out, wf_error *err) {
  *out = wf__chain_context(first, chain->parts[0]->context_bits, second,
                           chain->parts[1]->context_bits);
  if (!chain->hashed) return WF_OK;
  const uint64_t hash = *out;
  uint32_t place;
  bool fresh;
  if (memory->pairs.size >= UINT32_MAX - 1)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^32 contexts in an utterance");
  WF__TRY(wf__vec_grow(&memory->pairs, 1, "contexts", err));
  WF__TRY(wf__map64_insert(&memory->pair_of, hash, (uint32_t)memory->pairs.size, &place, &fresh,
                           "contexts", err));
  struct pair pair = {{first, second}};
  if (fresh) WF__TRY(wf__vec_push(&memory->pairs, pair, "contexts", err));
  const struct pair *there = &memory->pairs.data[place];
  if (there->contexts[0] != first || there->contexts[1] != second)
    return wf__fail(err, WF_ERR_LIMIT, "two contexts of chained scorers have the same 64-bit hash");
  return WF_OK;
}

static struct pair split(const struct chain *chain, const struct memory *memory, uint64_t context) {
  if (chain->hashed) return memory->pairs.data[wf__map64_find(&memory->pair_of, context)];
  int bits = chain->parts[1]->context_bits;
  if (bits == 64) return (struct pair){{0, context}};
  return (struct pair){{context >> bits, context & (((uint64_t)1 << bits) - 1)}};
}

static wf_status chain_begin(const wf_scorer *self, void *opaque, uint64_t *start, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  uint64_t starts[2];
  wf__map64_clear(&memory->pair_of);
  memory->pairs.size = 0;
  for (int i = 0; i < 2; i++)
    WF__TRY(chain->parts[i]->ops->begin(chain->parts[i], memory->parts[i], &starts[i], err));
  return pair_up(chain, memory, starts[0], starts[1], start, err);
}

static wf_status chain_step(const wf_scorer *self, void *opaque, uint64_t context, int32_t word,
                            float *cost, uint64_t *next, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  struct pair from = split(chain, memory, context), to;
  float costs[2];
  for (int i = 0; i < 2; i++)
    WF__TRY(chain->parts[i]->ops->step(chain->parts[i], memory->parts[i], from.contexts[i], word,
                                       &costs[i], &to.contexts[i], err));
  *cost = costs[0] + costs[1];
  return pair_up(chain, memory, to.contexts[0], to.contexts[1], next, err);
}

static wf_status chain_final(const wf_scorer *self, void *opaque, uint64_t context, float *cost,
                             wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  struct pair at = split(chain, memory, context);
  float costs[2];
  for (int i = 0; i < 2; i++)
    WF__TRY(chain->parts[i]->ops->final(chain->parts[i], memory->parts[i], at.contexts[i],
                                        &costs[i], err));
  *cost = costs[0] + costs[1];
  return WF_OK;
}

static float chain_pending(const wf_scorer *self, const void *opaque, uint64_t context) {
  const struct chain *chain = (const struct chain *)self;
  const struct memory *memory = opaque;
  struct pair at = split(chain, memory, context);
  return wf__scorer_pending(chain->parts[0], memory->parts[0], at.contexts[0]) +
         wf__scorer_pending(chain->parts[1], memory->parts[1], at.contexts[1]);
}

static float chain_least(const wf_scorer *self, int32_t word) {
  const struct chain *chain = (const struct chain *)self;
  const float first = wf__scorer_least(chain->parts[0], word),
              second = wf__scorer_least(chain->parts[1], word);
  /* A word that is impossible for one is so for both, also if the other has no bound. */
  return first == INFINITY || second == INFINITY ? INFINITY : first + second;
}

static wf__cost_bounds chain_bounds(const wf_scorer *self, const void *opaque, uint64_t context) {
  const struct chain *chain = (const struct chain *)self;
  const struct memory *memory = opaque;
  const struct pair at = split(chain, memory, context);
  wf__cost_bounds of[2];
  for (int i = 0; i < 2; i++)
    of[i] = wf__scorer_bounds(chain->parts[i], memory->parts[i], at.contexts[i]);
  return (wf__cost_bounds){of[0].least + of[1].least, of[0].most + of[1].most};
}

static const char *chain_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  const struct chain *chain = (const struct chain *)self;
  int counts[2];
  for (int i = 0; i < 2; i++) {
    int before = out->num_parts;
    const char *why_not = wf__flatten_part(chain->parts[i], out);
    if (why_not != NULL) return why_not;
    counts[i] = out->num_parts - before;
  }
  out->right = counts[1] > 1; /* then there is a part before */
  return NULL;
}

/* --- batches of requests, for the parts that support them ------------------------------- */

static const wf__scorer_batch_ops *batch_of(const struct chain *chain, int part) {
  return chain->parts[part]->ops->batch;
}

static wf_status chain_request(const wf_scorer *self, void *opaque,
                               const wf__score_request *requests, uint64_t count,
                               uint64_t num_requests, uint64_t *num_noted, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  *num_noted = 0;
  for (int i = 0; i < 2; i++) {
    if (batch_of(chain, i) == NULL) continue;
    uint64_t noted;
    memory->requests.size = 0;
    for (uint64_t q = 0; q < count; q++) {
      wf__score_request request = {split(chain, memory, requests[q].context).contexts[i],
                                   requests[q].word};
      WF__TRY(wf__vec_push(&memory->requests, request, "requests to a scorer", err));
    }
    WF__TRY(batch_of(chain, i)->request(chain->parts[i], memory->parts[i], memory->requests.data,
                                        count, num_requests, &noted, err));
    *num_noted += noted;
  }
  return WF_OK;
}

static void **memories_of(void *const *memories, size_t count, int part) {
  void **parts = wf__alloc(count, sizeof *parts);
  for (size_t i = 0; i < count && parts != NULL; i++)
    parts[i] = ((struct memory *)memories[i])->parts[part];
  return parts;
}

static wf_status chain_score_requests(const wf_scorer *self, void *const *memories, size_t count,
                                      wf__pool *pool, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && status == WF_OK; i++) {
    if (batch_of(chain, i) == NULL) continue;
    void **parts = memories_of(memories, count, i);
    status = parts != NULL ? batch_of(chain, i)->score(chain->parts[i], parts, count, pool, err)
                           : wf__fail_memory(err, count * sizeof *parts, "a batch");
    free(parts);
  }
  return status;
}

static bool chain_is_full(const wf_scorer *self, const void *opaque) {
  const struct chain *chain = (const struct chain *)self;
  const struct memory *memory = opaque;
  bool full = memory->pairs.size > FEW_PAIRS && memory->pairs.size > memory->most_pairs;
  for (int i = 0; i < 2; i++)
    full = full || (batch_of(chain, i) != NULL &&
                    batch_of(chain, i)->is_full(chain->parts[i], memory->parts[i]));
  return full;
}

/* Evicts all pairs except those of live contexts. */
static wf_status keep_pairs(const struct chain *chain, struct memory *memory,
                            const wf__context_vec *live, wf_error *err) {
  pair_vec old = memory->pairs;
  wf__map64 place_of = memory->pair_of;
  wf_status status = WF_OK;
  memory->pairs = (pair_vec){0};
  memory->pair_of = (wf__map64){0};
  for (uint64_t i = 0; i < live->size && status == WF_OK; i++) {
    uint32_t place = wf__map64_find(&place_of, live->data[i]);
    uint64_t same;
    if (place != WF__MAP64_NONE)
      status = pair_up(chain, memory, old.data[place].contexts[0], old.data[place].contexts[1],
                       &same, err);
  }
  memory->most_pairs = 2 * memory->pairs.size;
  wf__map64_free(&place_of);
  wf__vec_free(&old);
  return status;
}

/* Fills live_of[i] with the contexts of one part in live[i]. */
static wf_status split_live(const struct chain *chain, void *const *memories,
                            const wf__context_vec *live, size_t count, int part,
                            wf__context_vec *live_of, wf_error *err) {
  for (size_t i = 0; i < count; i++) {
    const struct memory *memory = memories[i];
    WF__TRY(wf__vec_grow(&live_of[i], live[i].size, "a scorer's contexts", err));
    for (uint64_t k = 0; k < live[i].size; k++) {
      if (chain->hashed && wf__map64_find(&memory->pair_of, live[i].data[k]) == WF__MAP64_NONE)
        continue; /* evicted before */
      live_of[i].data[live_of[i].size++] = split(chain, memory, live[i].data[k]).contexts[part];
    }
  }
  return WF_OK;
}

static wf_status keep_part(const struct chain *chain, void *const *memories,
                           const wf__context_vec *live, size_t count, int part, wf_error *err) {
  void **parts = memories_of(memories, count, part);
  wf__context_vec *live_of = wf__calloc(count, sizeof *live_of);
  wf_status status = parts != NULL && live_of != NULL
                         ? split_live(chain, memories, live, count, part, live_of, err)
                         : wf__fail_memory(err, count * 32, "a batch");
  if (status == WF_OK)
    status = batch_of(chain, part)->keep(chain->parts[part], parts, live_of, count, err);
  for (size_t i = 0; i < count && live_of != NULL; i++) wf__vec_free(&live_of[i]);
  free(live_of);
  free(parts);
  return status;
}

static wf_status chain_keep(const wf_scorer *self, void *const *memories,
                            const wf__context_vec *live, size_t count, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  for (size_t i = 0; i < count && chain->hashed; i++)
    WF__TRY(keep_pairs(chain, memories[i], &live[i], err));
  for (int i = 0; i < 2; i++)
    if (batch_of(chain, i) != NULL) WF__TRY(keep_part(chain, memories, live, count, i, err));
  return WF_OK;
}

#define CHAIN_OPS                                                                           \
  .name = "chain", .free = chain_free, .open = chain_open, .close = chain_close,            \
  .begin = chain_begin, .step = chain_step, .final = chain_final, .pending = chain_pending, \
  .least = chain_least, .bounds = chain_bounds, .flatten = chain_flatten
static const wf__scorer_batch_ops chain_batch_ops = {.join = chain_join,
                                                     .request = chain_request,
                                                     .score = chain_score_requests,
                                                     .is_full = chain_is_full,
                                                     .keep = chain_keep};
static const wf__scorer_ops chain_ops = {CHAIN_OPS},
                            chain_batching_ops = {CHAIN_OPS, .batch = &chain_batch_ops};

/* `owner`: of which it is `once`; NULL: none. */
static wf_status make_chain(wf_scorer *owner, const wf_scorer *first, const wf_scorer *second,
                            wf_scorer **out, wf_error *err) {
  struct chain *chain = wf__calloc(1, sizeof *chain);
  if (chain == NULL) return wf__fail_memory(err, sizeof *chain, "a scorer");
  int bits = first->context_bits + second->context_bits;
  chain->hashed = bits > 64;
  bool batches = first->ops->batch != NULL || second->ops->batch != NULL;
  const wf__scorer_ops *ops = batches ? &chain_batching_ops : &chain_ops;
  if (owner != NULL)
    wf__scorer_init_once(owner, &chain->scorer, ops, chain->hashed ? 64 : bits);
  else
    wf__scorer_init(&chain->scorer, ops, chain->hashed ? 64 : bits);
  chain->scorer.context_words =
      first->context_words > second->context_words ? first->context_words : second->context_words;
  chain->scorer.forgets = first->forgets || second->forgets;
  chain->parts[0] = wf_scorer_ref(first);
  chain->parts[1] = wf_scorer_ref(second);
  *out = &chain->scorer;
  return WF_OK;
}

wf_status wf_scorer_chain(const wf_scorer *first, const wf_scorer *second, wf_scorer **out,
                          wf_error *err) {
  const wf_scorer *first_once = wf__scorer_for_transducer(first),
                  *second_once = wf__scorer_for_transducer(second);
  wf_scorer *once;
  *out = NULL;
  WF__TRY(make_chain(NULL, first, second, out, err));
  if (first_once == first && second_once == second) return WF_OK;
  wf_status status = make_chain(*out, first_once, second_once, &once, err);
  if (status == WF_OK) return WF_OK;
  wf_scorer_free(*out);
  *out = NULL;
  return status;
}

wf_status wf__scorer_exchange(const wf_scorer *scorer, const wf_scorer *part, const wf_scorer *with,
                              wf_scorer **out, wf_error *err) {
  wf_scorer *parts[2] = {NULL, NULL};
  *out = NULL;
  if (scorer->ops != &chain_ops && scorer->ops != &chain_batching_ops) {
    *out = wf_scorer_ref(scorer == part ? with : scorer);
    return WF_OK;
  }
  const struct chain *chain = (const struct chain *)scorer;
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && status == WF_OK; i++)
    status = wf__scorer_exchange(chain->parts[i], part, with, &parts[i], err);
  if (status == WF_OK) status = wf_scorer_chain(parts[0], parts[1], out, err);
  for (int i = 0; i < 2; i++) wf_scorer_free(parts[i]);
  return status;
}
