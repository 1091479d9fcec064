/* scorer.c - sharing, freeing and flattening scorers. */
#include "scorer/scorer.h"

#include <stdint.h>

wf_scorer *wf_scorer_ref(const wf_scorer *scorer) {
  wf_scorer *shared = (wf_scorer *)(uintptr_t)scorer;
  if (shared != NULL && atomic_fetch_add(&shared->refs, 1) == 0) wf_scorer_ref(shared->owner);
  return shared;
}

void wf_scorer_free(wf_scorer *scorer) {
  if (scorer == NULL || atomic_fetch_sub(&scorer->refs, 1) != 1) return;
  if (scorer->owner != NULL)
    wf_scorer_free(scorer->owner);
  else
    scorer->ops->free(scorer);
}

/* No word costs less. Words outside of a table are impossible. */
static float least_of(const wf_scorer *self) {
  return self->num_least > 0 ? self->least_of_table : self->least_of_others;
}

const char *wf__flatten_part(const wf_scorer *self, wf__flat_scorer *out) {
  const int own = out->num_parts;
  const char *why_not =
      self->ops->flatten != NULL ? self->ops->flatten(self, out) : self->ops->name;
  if (why_not != NULL || self->ops->least != NULL) return why_not; /* its parts have theirs */
  out->least += least_of(self);
  out->parts[own].least = self->least;
  out->parts[own].num_least = self->num_least;
  out->parts[own].least_of_others = self->least_of_others;
  return NULL;
}

wf__flat_part *wf__flat_push(wf__flat_scorer *out, int kind, uint64_t num_contexts,
                             const void *owner) {
  if (out->num_parts == WF__FLAT_PARTS) return NULL;
  wf__flat_part *part = &out->parts[out->num_parts++];
  part->kind = kind;
  part->owner = owner;
  while ((uint64_t)1 << part->bits < num_contexts) part->bits++;
  return part;
}

const char *wf__scorer_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  *out = (wf__flat_scorer){0};
  const char *why_not = wf__flatten_part(self, out);
  if (why_not != NULL) return why_not;
  int num_recurrent = 0;
  for (int i = 0; i < out->num_parts; i++)
    num_recurrent += out->parts[i].kind == WF__FLAT_RECURRENT;
  if (num_recurrent > 1) return "chain of more than one recurrent scorer";
  for (int i = out->num_parts - 1; i >= 0; i--) {
    out->parts[i].shift = out->bits;
    out->start |= (uint64_t)out->parts[i].start << out->bits;
    out->bits += out->parts[i].bits;
    if (out->bits > 62) return "chained contexts of more than 62 bits";
  }
  return NULL;
}
