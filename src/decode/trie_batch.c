/* trie_batch.c - beam searches over a trie for many utterances, in parallel. */
#include <pthread.h>
#include <string.h>

#include "base/threads.h"
#include "decode/host_scores.h"
#include "decode/trie_search.h"

struct batch {
  const wf_trie_searcher *searcher;
  const wf_scores *scores;
  size_t nbest;
  wf_trie_paths **results;
  pthread_mutex_t lock;
  uint64_t failed; /* the first utterance that failed, or UINT64_MAX */
  wf_status status;
  char message[sizeof((wf_error *)NULL)->message]; /* of that utterance */
};

static wf_status search(const struct batch *b, uint64_t item, wf_error *err) {
  wf_trie_search *search;
  WF__TRY(wf_trie_search_create(b->searcher, &search, err));
  wf_status status = wf_trie_search_step(search, &b->scores[item], err);
  if (status == WF_OK) status = wf_trie_search_end(search, err);
  if (status == WF_OK) status = wf_trie_search_paths(search, b->nbest, &b->results[item], err);
  wf_trie_search_free(search);
  return status;
}

static void search_item(void *user, uint64_t item, int worker) {
  (void)worker;
  struct batch *b = user;
  wf_error err = {0};
  wf_status status = search(b, item, &err);
  if (status == WF_OK) return;
  pthread_mutex_lock(&b->lock);
  if (item < b->failed) {
    b->failed = item;
    b->status = status;
    wf__utterance_message(b->message, sizeof b->message, NULL, item, err.message);
  }
  pthread_mutex_unlock(&b->lock);
}

wf_status wf_trie_decode(const wf_trie_searcher *searcher, const wf_scores *scores, size_t count,
                         size_t nbest, int32_t num_threads, wf_trie_paths **results,
                         wf_error *err) {
  wf__error_clear(err);
  if (count > 0) memset(results, 0, count * sizeof *results);
  if (num_threads < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "num_threads is %d, expected at least 0", num_threads);
  struct batch b = {.searcher = searcher,
                    .scores = scores,
                    .nbest = nbest,
                    .results = results,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .failed = UINT64_MAX};
  const int threads = searcher->lm_fn != NULL ? 1 : num_threads;
  wf_status status = wf__pool_once(threads, count, search_item, &b, err);
  pthread_mutex_destroy(&b.lock);
  if (status == WF_OK && b.failed != UINT64_MAX) status = wf__fail(err, b.status, "%s", b.message);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_trie_paths_free(results[i]);
    results[i] = NULL;
  }
  return status;
}
