/* chain.c - two scorers as one: the sum of their costs, and the pair of their contexts.
 *
 * The pair is one 64-bit number: first's context above second's where both fit, else a hash of the two, with a table in the memory that leads back. */
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

struct memory {
  void *parts[2];
  wf__map64 pair_of;        /* hash -> place in pairs */
  WF__VEC(struct pair) pairs;
};

static void chain_free(wf_scorer *self) {
  struct chain *chain = (struct chain *)self;
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
  free(memory);
}

static wf_status chain_open(const wf_scorer *self, void **out, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = wf__calloc(1, sizeof *memory);
  if (memory == NULL) return wf__fail_memory(err, sizeof *memory, "a scorer's memory");
  wf_status status = WF_OK;
  for (int i = 0; i < 2 && status == WF_OK; i++)
    if (chain->parts[i]->ops->open != NULL) status = chain->parts[i]->ops->open(chain->parts[i], &memory->parts[i], err);
  if (status != WF_OK) {
    chain_close(self, memory);
    return status;
  }
  *out = memory;
  return WF_OK;
}

static wf_status join(const struct chain *chain, struct memory *memory, uint64_t first, uint64_t second, uint64_t *out, wf_error *err) {
  int bits = chain->parts[1]->context_bits;
  *out = bits == 64 ? second : first << bits | second; /* bits == 64 without hashing: first has one context, 0 */
  if (!chain->hashed) return WF_OK;
  uint64_t hash = wf__hash_combine(wf__mix64(first), second);
  hash -= hash == WF__MAP64_EMPTY;
  uint32_t place;
  bool fresh;
  if (memory->pairs.size >= UINT32_MAX - 1) return wf__fail(err, WF_ERR_LIMIT, "2^32 contexts in an utterance");
  WF__TRY(wf__map64_insert(&memory->pair_of, hash, (uint32_t)memory->pairs.size, &place, &fresh, "contexts", err));
  struct pair pair = {{first, second}};
  if (fresh) WF__TRY(wf__vec_push(&memory->pairs, pair, "contexts", err));
  const struct pair *there = &memory->pairs.data[place];
  if (there->contexts[0] != first || there->contexts[1] != second) return wf__fail(err, WF_ERR_LIMIT, "two contexts of chained scorers have the same 64-bit hash");
  *out = hash;
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
  for (int i = 0; i < 2; i++) WF__TRY(chain->parts[i]->ops->begin(chain->parts[i], memory->parts[i], &starts[i], err));
  return join(chain, memory, starts[0], starts[1], start, err);
}

static wf_status chain_step(const wf_scorer *self, void *opaque, uint64_t context, int32_t word, float *cost, uint64_t *next, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  struct pair from = split(chain, memory, context), to;
  float costs[2];
  for (int i = 0; i < 2; i++)
    WF__TRY(chain->parts[i]->ops->step(chain->parts[i], memory->parts[i], from.contexts[i], word, &costs[i], &to.contexts[i], err));
  *cost = costs[0] + costs[1];
  return join(chain, memory, to.contexts[0], to.contexts[1], next, err);
}

static wf_status chain_final(const wf_scorer *self, void *opaque, uint64_t context, float *cost, wf_error *err) {
  const struct chain *chain = (const struct chain *)self;
  struct memory *memory = opaque;
  struct pair at = split(chain, memory, context);
  float costs[2];
  for (int i = 0; i < 2; i++) WF__TRY(chain->parts[i]->ops->final(chain->parts[i], memory->parts[i], at.contexts[i], &costs[i], err));
  *cost = costs[0] + costs[1];
  return WF_OK;
}

static float chain_pending(const wf_scorer *self, const void *opaque, uint64_t context) {
  const struct chain *chain = (const struct chain *)self;
  const struct memory *memory = opaque;
  struct pair at = split(chain, memory, context);
  return wf__scorer_pending(chain->parts[0], memory->parts[0], at.contexts[0]) + wf__scorer_pending(chain->parts[1], memory->parts[1], at.contexts[1]);
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
  out->right = counts[1] > 1; /* then there is one before */
  return NULL;
}

static const wf__scorer_ops chain_ops = {.name = "chain",
                                         .free = chain_free,
                                         .open = chain_open,
                                         .close = chain_close,
                                         .begin = chain_begin,
                                         .step = chain_step,
                                         .final = chain_final,
                                         .pending = chain_pending,
                                         .flatten = chain_flatten};

wf_status wf_scorer_chain(const wf_scorer *first, const wf_scorer *second, wf_scorer **out, wf_error *err) {
  *out = NULL;
  struct chain *chain = wf__calloc(1, sizeof *chain);
  if (chain == NULL) return wf__fail_memory(err, sizeof *chain, "a scorer");
  int bits = first->context_bits + second->context_bits;
  chain->hashed = bits > 64;
  wf__scorer_init(&chain->scorer, &chain_ops, chain->hashed ? 64 : bits);
  chain->parts[0] = wf_scorer_ref(first);
  chain->parts[1] = wf_scorer_ref(second);
  *out = &chain->scorer;
  return WF_OK;
}
