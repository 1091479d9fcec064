/* scorer.h - what a scorer is: a deterministic automaton over words, made on demand, that the
 * search composes with its graph as it goes.
 *
 *   context --word--> cost, next context        final(context) -> cost
 *
 * A wf_scorer is immutable and shared between threads. The state of one utterance (an LM's
 * hidden states, interned pairs of contexts) is in a separate memory, one for each search. The
 * search opens it, begins it anew for every utterance, and closes it.
 *
 * A context is a 64-bit number determined by the words before it alone, not by the order of
 * requests or by other utterances. Contexts distinguish tokens and break ties, so equal contexts
 * on two backends are equal numbers. Two contexts with the same number are the same context. An
 * automaton with states gives its state's number; one without takes a 64-bit hash of the
 * history.
 *
 * Costs are finite, at most 1e20 in magnitude, or +infinity (the word is impossible); they may
 * be negative. step and final are functions of their arguments alone, so callers may keep
 * results and call them in any order. */
#ifndef WF_SCORER_SCORER_H
#define WF_SCORER_SCORER_H

#include <math.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/threads.h"
#include "scorer/flat_scorer.h"

/* A request for the cost of `word` after `context`, or of ending there if `word` is
 * WF__END_OF_WORDS. */
typedef struct wf__score_request {
  uint64_t context;
  int32_t word;
} wf__score_request;
enum { WF__END_OF_WORDS = -1 };
typedef WF__VEC(wf__score_request) wf__score_request_vec;
typedef WF__VEC(uint64_t) wf__context_vec;

/* A scorer that computes many requests at a time faster than one by one has all of these
 * operations. Searches with joined memories run independently until they need scores. When all
 * have submitted their requests, one call of `score` serves them together; then they continue. */
typedef struct wf__scorer_batch_ops {
  /* Opens a memory that shares its tables with `first`. Memories may be closed in any order. */
  wf_status (*join)(const wf_scorer *self, void *first, void **memory, wf_error *err);
  /* Keeps those of the requests that need `score`; *num_noted: their number. `num_requests`: for
   * the statistics, the number of requests before the caller left out repeated ones. May run at
   * the same time as other calls, except `score` and `keep`. */
  wf_status (*request)(const wf_scorer *self, void *memory, const wf__score_request *requests,
                       uint64_t count, uint64_t num_requests, uint64_t *num_noted, wf_error *err);
  /* Computes the requests kept by these memories, which must be all that are joined. Until the
   * next `request`, `step` and `final` return these scores at once. They also work without, one
   * by one. pool NULL: on this thread. */
  wf_status (*score)(const wf_scorer *self, void *const *memories, size_t count, wf__pool *pool,
                     wf_error *err);
  /* Have the contexts outgrown their memory limit? */
  bool (*is_full)(const wf_scorer *self, const void *memory);
  /* Before `score`: live[i] are the contexts that the search of memories[i] may still use (and
   * perhaps unused ones). All others may be evicted. */
  wf_status (*keep)(const wf_scorer *self, void *const *memories, const wf__context_vec *live,
                    size_t count, wf_error *err);
} wf__scorer_batch_ops;

/* No word after a context costs less than `least` or more than `most`; infinite: not known. */
typedef struct wf__cost_bounds {
  float least, most;
} wf__cost_bounds;

typedef struct wf__scorer_ops {
  const char *name;
  void (*free)(wf_scorer *self); /* also frees the structure */
  /* The memory for one utterance at a time; both NULL where none is needed (`memory` is then NULL
   * everywhere). close(NULL) is fine. */
  wf_status (*open)(const wf_scorer *self, void **memory, wf_error *err);
  void (*close)(const wf_scorer *self, void *memory);
  /* Begins a new utterance; contexts of the last one become invalid. */
  wf_status (*begin)(const wf_scorer *self, void *memory, uint64_t *start, wf_error *err);
  /* `context` is the start or was `next` before, in this utterance; word > 0. */
  wf_status (*step)(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                    float *cost, uint64_t *next, wf_error *err);
  wf_status (*final)(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                     wf_error *err);
  /* Pending part of partial phrases' boosts, refunded if the scorer is replaced; NULL: none. */
  float (*pending)(const wf_scorer *self, const void *memory, uint64_t context);
  /* As wf__scorer_least; NULL: the scorer's members have it. */
  float (*least)(const wf_scorer *self, int32_t word);
  /* As wf__scorer_bounds; NULL: as the scorer's members say. */
  wf__cost_bounds (*bounds)(const wf_scorer *self, const void *memory, uint64_t context);
  /* Appends the scorer's parts. Returns NULL, or for an error message the name of what cannot be
   * flattened. If the operation is NULL, the scorer itself cannot. */
  const char *(*flatten)(const wf_scorer *self, wf__flat_scorer *out);
  const wf__scorer_batch_ops *batch; /* NULL: words are scored one by one */
} wf__scorer_ops;

/* First member of every scorer's structure. */
struct wf_scorer {
  const wf__scorer_ops *ops;
  atomic_uint_fast32_t refs;
  int context_bits; /* contexts are below 2^context_bits: 0 (one context) to 64 */
  /* A context depends on at most this many last words: after so many, all walks from any context
   * that words lead to are in the same one. UINT32_MAX: on all words. */
  uint32_t context_words;
  /* For wf__scorer_least: least[word] <= cost of the word after any context; other words cost at
   * least least_of_others. The array belongs to the scorer. */
  const float *least; /* [num_least] */
  uint32_t num_least;
  float least_of_others;
  float least_of_table; /* the least of least[]; +infinity without */
  bool forgets;         /* scores are not cached, to measure what caching is worth */
  /* The same scorer for a search with a transducer: a phrase that follows itself at once gets no
   * second boost. NULL: this one. */
  wf_scorer *once;
  wf_scorer *owner; /* whose `once` this is, and in whose memory it lies; NULL: none */
};

static inline void wf__scorer_init(wf_scorer *self, const wf__scorer_ops *ops, int context_bits) {
  self->ops = ops;
  self->context_bits = context_bits;
  self->context_words = UINT32_MAX;
  self->least = NULL;
  self->num_least = 0;
  self->least_of_others = -INFINITY;
  self->least_of_table = INFINITY;
  self->forgets = false;
  self->once = self->owner = NULL;
  atomic_init(&self->refs, 1);
}
/* Makes `once` that of `owner`. While it has references, it holds one to the owner. */
static inline void wf__scorer_init_once(wf_scorer *owner, wf_scorer *once,
                                        const wf__scorer_ops *ops, int context_bits) {
  wf__scorer_init(once, ops, context_bits);
  atomic_init(&once->refs, 0);
  once->owner = owner;
  owner->once = once;
}
static inline const wf_scorer *wf__scorer_for_transducer(const wf_scorer *scorer) {
  return scorer != NULL && scorer->once != NULL ? scorer->once : scorer;
}

/* A lower bound of the costs of a word after any context; -infinity: none is known. The search does
 * not request words that are too expensive with it. */
static inline float wf__scorer_least(const wf_scorer *self, int32_t word) {
  if (self->ops->least != NULL) return self->ops->least(self, word);
  return (uint32_t)word < self->num_least ? self->least[word] : self->least_of_others;
}

/* Bounds of the costs of all words after one context, which is the start or was `next` before. */
static inline wf__cost_bounds wf__scorer_bounds(const wf_scorer *self, const void *memory,
                                                uint64_t context) {
  if (self->ops->bounds != NULL) return self->ops->bounds(self, memory, context);
  return (wf__cost_bounds){self->num_least == 0 ? self->least_of_others : -INFINITY, INFINITY};
}

/* Flattens the scorer to plain arrays, which it still owns, and at most one part WF__FLAT_RECURRENT
 * with its owner. Returns NULL, or the name of what cannot be flattened. */
const char *wf__scorer_flatten(const wf_scorer *self, wf__flat_scorer *out);
#define WF__FLAT_TOO_LONG "chain of more than three scorers"
/* Appends a part to a flat scorer under construction; NULL if there are too many. */
wf__flat_part *wf__flat_push(wf__flat_scorer *out, int kind, uint64_t num_contexts,
                             const void *owner);
/* The same chain with another scorer in place of one of its parts; `scorer` may be that part. */
wf_status wf__scorer_exchange(const wf_scorer *scorer, const wf_scorer *part, const wf_scorer *with,
                              wf_scorer **out, wf_error *err);
/* Flattens one part; same result as the operation `flatten`. */
const char *wf__flatten_part(const wf_scorer *self, wf__flat_scorer *out);

static inline float wf__scorer_pending(const wf_scorer *self, const void *memory,
                                       uint64_t context) {
  return self == NULL || self->ops->pending == NULL ? 0 : self->ops->pending(self, memory, context);
}

#endif
