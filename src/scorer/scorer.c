/* scorer.c - sharing and freeing scorers. */
#include "scorer/scorer.h"

#include <stdint.h>

wf_scorer *wf_scorer_ref(const wf_scorer *scorer) {
  wf_scorer *shared = (wf_scorer *)(uintptr_t)scorer;
  if (shared != NULL) atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_scorer_free(wf_scorer *scorer) {
  if (scorer == NULL || atomic_fetch_sub(&scorer->refs, 1) != 1) return;
  scorer->ops->free(scorer);
}
