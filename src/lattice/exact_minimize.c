/* exact_minimize.c - merges equivalent states of an acyclic lattice, last ones first, so that their
 * next states are already merged. */
#include "lattice/exact_minimize.h"

#include <string.h>

#include "math/hash.h"

struct merging {
  const wf__exact_lattice *lattice;
  uint32_t *into;  /* [states] the state that replaces it: a later one, or itself */
  uint32_t *slots; /* states that are kept, by hash; UINT32_MAX: free */
  uint64_t mask;
};

static uint64_t hash_part(uint64_t hash, const wf__exact_lattice *lattice, wf__exact_cost cost,
                          uint32_t first, uint32_t count) {
  hash = wf__mix64(hash ^ (uint64_t)cost.graph);
  hash = wf__mix64(hash ^ (uint64_t)cost.acoustic);
  for (uint32_t k = 0; k < count; k++)
    hash = (hash ^ (uint32_t)lattice->labels.data[first + k]) * 0x9e3779b97f4a7c15ULL;
  return hash;
}

static uint64_t hash_of(const struct merging *m, uint64_t s) {
  const wf__exact_lattice *lattice = m->lattice;
  const wf__exact_end *end = &lattice->ends.data[s];
  uint64_t hash = hash_part(1, lattice, end->cost, end->first_label, end->num_labels);
  for (uint64_t i = lattice->arc_off.data[s]; i < lattice->arc_off.data[s + 1]; i++) {
    const wf__exact_arc *arc = &lattice->arcs.data[i];
    hash = hash_part(hash ^ ((uint64_t)(uint32_t)arc->word << 32 | m->into[arc->nextstate]),
                     lattice, arc->cost, arc->first_label, arc->num_labels);
  }
  return wf__mix64(hash);
}

static bool same_part(const wf__exact_lattice *lattice, wf__exact_cost a, wf__exact_cost b,
                      uint32_t first_a, uint32_t num_a, uint32_t first_b, uint32_t num_b) {
  return a.graph == b.graph && a.acoustic == b.acoustic && num_a == num_b &&
         (num_a == 0 || memcmp(lattice->labels.data + first_a, lattice->labels.data + first_b,
                               num_a * sizeof(int32_t)) == 0);
}

static bool same(const struct merging *m, uint64_t s, uint64_t t) {
  const wf__exact_lattice *lattice = m->lattice;
  const wf__exact_end *x = &lattice->ends.data[s], *y = &lattice->ends.data[t];
  uint64_t i = lattice->arc_off.data[s], k = lattice->arc_off.data[t],
           count = lattice->arc_off.data[s + 1] - i;
  if (count != lattice->arc_off.data[t + 1] - k ||
      !same_part(lattice, x->cost, y->cost, x->first_label, x->num_labels, y->first_label,
                 y->num_labels))
    return false;
  for (; count > 0; count--, i++, k++) {
    const wf__exact_arc *a = &lattice->arcs.data[i], *b = &lattice->arcs.data[k];
    if (a->word != b->word || m->into[a->nextstate] != m->into[b->nextstate] ||
        !same_part(lattice, a->cost, b->cost, a->first_label, a->num_labels, b->first_label,
                   b->num_labels))
      return false;
  }
  return true;
}

/* Drops merged states. Numbers keep their order, so arcs still lead to later states. */
static wf_status compact(wf__exact_lattice *lattice, uint32_t *into, wf_error *err) {
  uint64_t n = wf__exact_num_states(lattice), num_states = 0, num_arcs = 0;
  uint32_t *number = wf__alloc(n, sizeof *number);
  if (number == NULL) return wf__fail_memory(err, n * sizeof *number, "a lattice");
  for (uint64_t s = 0; s < n; s++) {
    if (into[s] != s) continue;
    uint64_t first = lattice->arc_off.data[s],
             end = lattice->arc_off.data[s + 1]; /* read before it may be written */
    number[s] = (uint32_t)num_states;
    lattice->ends.data[num_states] = lattice->ends.data[s];
    lattice->arc_off.data[num_states++] = num_arcs;
    for (uint64_t i = first; i < end; i++) lattice->arcs.data[num_arcs++] = lattice->arcs.data[i];
  }
  for (uint64_t i = 0; i < num_arcs; i++)
    lattice->arcs.data[i].nextstate = number[into[lattice->arcs.data[i].nextstate]];
  lattice->arc_off.size = lattice->ends.size = num_states;
  lattice->arcs.size = num_arcs;
  free(number);
  return wf__exact_finish(lattice, err);
}

wf_status wf__exact_minimize(wf__exact_lattice *lattice, wf_error *err) {
  uint64_t n = wf__exact_num_states(lattice), size = 16;
  while (size < 2 * n) size *= 2;
  struct merging m = {.lattice = lattice,
                      .into = wf__alloc(n, sizeof *m.into),
                      .slots = wf__alloc(size, sizeof *m.slots),
                      .mask = size - 1};
  wf_status status =
      m.into != NULL && m.slots != NULL ? WF_OK : wf__fail_memory(err, (n + size) * 4, "a lattice");
  if (status == WF_OK) memset(m.slots, 0xff, size * sizeof *m.slots);
  for (uint64_t s = n; s-- > 0 && status == WF_OK;) {
    uint64_t slot = hash_of(&m, s) & m.mask;
    while (m.slots[slot] != UINT32_MAX && !same(&m, s, m.slots[slot])) slot = (slot + 1) & m.mask;
    if (m.slots[slot] == UINT32_MAX) m.slots[slot] = (uint32_t)s;
    m.into[s] = m.slots[slot];
  }
  if (status == WF_OK) status = compact(lattice, m.into, err);
  free(m.into);
  free(m.slots);
  return status;
}
