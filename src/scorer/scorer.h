/* scorer.h - what a scorer is: a deterministic automaton over words, made on demand, that the
 * search composes with its graph as it goes.
 *
 *   context --word--> cost, next context        final(context) -> cost
 *
 * A wf_scorer is immutable and shared between threads. What it learns about one utterance (an LM's
 * hidden states, interned pairs of contexts) goes into a memory of its own, one for each search,
 * which the search opens, begins anew for every utterance, and closes.
 *
 * A context is a 64-bit number that the words before it determine, and nothing else: not the order
 * in which contexts were first asked for, nor what other utterances said. Tokens are told apart and
 * ties are broken by it, so equal contexts on two backends are equal numbers. Two contexts with the
 * same number are the same context. An automaton with states gives its state's number; one without
 * takes a 64-bit hash of the history.
 *
 * Costs are finite, at most 1e20 in magnitude, or +infinity (the word is impossible); they may be
 * negative. step and final are functions of their arguments alone, so callers may keep results and
 * ask in any order. */
#ifndef WF_SCORER_SCORER_H
#define WF_SCORER_SCORER_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/threads.h"
#include "scorer/flat_scorer.h"

/* What does `word` cost behind `context`? With WF__END_OF_WORDS: what does ending there cost? */
typedef struct wf__score_request {
  uint64_t context;
  int32_t word;
} wf__score_request;
enum { WF__END_OF_WORDS = -1 };
typedef WF__VEC(wf__score_request) wf__score_request_vec;
typedef WF__VEC(uint64_t) wf__context_vec;

/* A scorer that answers many requests at one time faster than one by one offers these, all of
 * them. Searches whose memories are joined go on, each by itself, until they need answers; when all
 * have asked, one `answer` serves them together; then they go on. */
typedef struct wf__scorer_batch_ops {
  /* A memory that shares what it learns with `first`. Closed as any other, in any order. */
  wf_status (*join)(const wf_scorer *self, void *first, void **memory, wf_error *err);
  /* Notes those of the requests that need `answer`; *num_noted: how many. `num_requests`: how many
   * there were before the caller left out repeated ones, for the statistics. At the same time as
   * others' calls, but `answer` and `keep`. */
  wf_status (*request)(const wf_scorer *self, void *memory, const wf__score_request *requests,
                       uint64_t count, uint64_t num_requests, uint64_t *num_noted, wf_error *err);
  /* Answers what these memories, all that are joined, have noted: until they ask again, `step` and
   * `final` have these answers at once. Everything works without, too, one by one. pool NULL: on
   * this thread. */
  wf_status (*score)(const wf_scorer *self, void *const *memories, size_t count, wf__pool *pool,
                     wf_error *err);
  /* Have the contexts of past words grown beyond what they may take? */
  bool (*is_full)(const wf_scorer *self, const void *memory);
  /* Before `answer`: live[i] are the contexts that the search of memories[i] may still use (and
   * others, perhaps long gone). Any others may be forgotten. */
  wf_status (*keep)(const wf_scorer *self, void *const *memories, const wf__context_vec *live,
                    size_t count, wf_error *err);
} wf__scorer_batch_ops;

typedef struct wf__scorer_ops {
  const char *name;
  void (*free)(wf_scorer *self); /* with the structure itself */
  /* The memory for one utterance at a time; both NULL where none is needed (`memory` is then NULL
   * everywhere). close(NULL) is fine. */
  wf_status (*open)(const wf_scorer *self, void **memory, wf_error *err);
  void (*close)(const wf_scorer *self, void *memory);
  /* A new utterance: contexts of the last one mean nothing any more. */
  wf_status (*begin)(const wf_scorer *self, void *memory, uint64_t *start, wf_error *err);
  /* `context` is the start or was `next` before, in this utterance; word > 0. */
  wf_status (*step)(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                    float *cost, uint64_t *next, wf_error *err);
  wf_status (*final)(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                     wf_error *err);
  /* What the scorer has given in advance for words that are not said yet, to be taken back if
   * another scorer takes its place; NULL: nothing. */
  float (*pending)(const wf_scorer *self, const void *memory, uint64_t context);
  /* Appends its parts; NULL, or what cannot be flat, for a message. The operation is NULL: this
   * scorer. */
  const char *(*flatten)(const wf_scorer *self, wf__flat_scorer *out);
  const wf__scorer_batch_ops *batch; /* NULL: requests are asked one by one */
} wf__scorer_ops;

/* First member of every scorer's structure. */
struct wf_scorer {
  const wf__scorer_ops *ops;
  atomic_uint_fast32_t refs;
  int context_bits; /* contexts are below 2^context_bits: 0 (one context) to 64 */
  bool forgets; /* answers are not to be kept, so that it can be measured what keeping them is worth
                 */
};

static inline void wf__scorer_init(wf_scorer *self, const wf__scorer_ops *ops, int context_bits) {
  self->ops = ops;
  self->context_bits = context_bits;
  self->forgets = false;
  atomic_init(&self->refs, 1);
}

/* The scorer as plain arrays, which are the scorer's own, and at most one part WF__FLAT_RECURRENT,
 * its owner. NULL, or what cannot be flat. */
const char *wf__scorer_flatten(const wf_scorer *self, wf__flat_scorer *out);
#define WF__FLAT_TOO_LONG "chain of more than three scorers"
/* The next part of a flat scorer in the making; NULL if there are too many. */
wf__flat_part *wf__flat_push(wf__flat_scorer *out, int kind, uint64_t num_contexts,
                             const void *owner);
/* The same chain with another scorer in place of one of its parts; `scorer` may be that part. */
wf_status wf__scorer_exchange(const wf_scorer *scorer, const wf_scorer *part, const wf_scorer *with,
                              wf_scorer **out, wf_error *err);
/* The part of an operation `flatten` itself: as it says. */
const char *wf__flatten_part(const wf_scorer *self, wf__flat_scorer *out);

static inline float wf__scorer_pending(const wf_scorer *self, const void *memory,
                                       uint64_t context) {
  return self == NULL || self->ops->pending == NULL ? 0 : self->ops->pending(self, memory, context);
}

#endif
