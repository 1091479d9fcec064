/* minimize_rounds.c - partition refinement in rounds over all states at once (Moore 1956), by hashing.
 *
 * In a round, the states of a class that differ in their arcs (symbols, and classes they lead to) part. Arcs count through the sum of their
 * hashes: no sorting, and no state is parted from an equal one. A state alone in its class is done, so rounds soon become cheap: real graphs have few
 * equal states. Many rounds are needed only where states differ far away; then, or if the exact check at the end finds that two hashes
 * collided, wf__partition_refine goes on from the classes found so far. */
#include <string.h>

#include "base/memory.h"
#include "fstops/minimize_partition.h"
#include "math/hash.h"

enum { FULL_ROUNDS = 16 }; /* effort, in passes over the whole graph, before giving up */

struct slot {
  uint64_t key; /* 0: free */
  uint32_t class;
};

struct rounds {
  const wf__labelled_graph *graph;
  uint32_t *class_of; /* [num_states] */
  uint32_t *fresh;    /* class in the next round of each active state */
  uint32_t *active;   /* states that share their class, ascending */
  uint32_t *size;     /* [class] states in it */
  uint32_t *kept_in;  /* [class] last round in which a part of it was found: the first part keeps the number */
  struct slot *slots;
  uint64_t num_slots, num_active, effort;
  uint32_t num_classes, round;
  WF__VEC(uint64_t) arcs[2];
};

static uint64_t signature(const struct rounds *rounds, uint32_t s) {
  const wf__labelled_graph *graph = rounds->graph;
  uint64_t sum = 0;
  for (uint64_t i = graph->view->arc_off[s]; i < graph->view->arc_off[s + 1]; i++)
    sum += wf__mix64((uint64_t)graph->symbol[i] << 32 | rounds->class_of[graph->view->arcs[i].nextstate]);
  sum = wf__mix64(sum ^ (uint64_t)rounds->class_of[s] * 0x9e3779b97f4a7c15ULL);
  return sum != 0 ? sum : 1;
}

/* Drops the active states that are alone in their class. */
static void keep_sharers(struct rounds *rounds) {
  uint64_t kept = 0;
  for (uint64_t k = 0; k < rounds->num_active; k++)
    if (rounds->size[rounds->class_of[rounds->active[k]]] > 1) rounds->active[kept++] = rounds->active[k];
  rounds->num_active = kept;
}

/* Splits every class once; the parts beyond the first get new numbers. */
static void split_all(struct rounds *rounds) {
  const uint64_t *arc_off = rounds->graph->view->arc_off;
  uint64_t mask = rounds->num_slots - 1;
  while (mask >= rounds->num_active * 4 + 16) mask >>= 1;
  memset(rounds->slots, 0, (mask + 1) * sizeof *rounds->slots);
  rounds->round++;
  for (uint64_t k = 0; k < rounds->num_active; k++) {
    uint32_t s = rounds->active[k], class = rounds->class_of[s];
    uint64_t key = signature(rounds, s), at = key & mask;
    rounds->effort += 1 + arc_off[s + 1] - arc_off[s];
    while (rounds->slots[at].key != 0 && rounds->slots[at].key != key) at = (at + 1) & mask;
    if (rounds->slots[at].key == 0) {
      bool first = rounds->kept_in[class] != rounds->round;
      rounds->kept_in[class] = rounds->round;
      rounds->slots[at] = (struct slot){key, first ? class : rounds->num_classes++};
    }
    rounds->fresh[k] = rounds->slots[at].class;
  }
  for (uint64_t k = 0; k < rounds->num_active; k++) {
    uint32_t s = rounds->active[k];
    rounds->size[rounds->class_of[s]]--;
    rounds->size[rounds->fresh[k]]++;
    rounds->class_of[s] = rounds->fresh[k];
  }
  keep_sharers(rounds);
}

/* --- the exact check ---------------------------------------------------------------------------------------------- */

static wf_status list_arcs(struct rounds *rounds, uint32_t s, int which, wf_error *err) {
  const wf__labelled_graph *graph = rounds->graph;
  uint64_t first = graph->view->arc_off[s], size = graph->view->arc_off[s + 1] - first;
  WF__TRY(wf__vec_grow(&rounds->arcs[which], size + 1, "classes", err));
  uint64_t *to = rounds->arcs[which].data;
  for (uint64_t i = 0; i < size; i++) to[i] = (uint64_t)graph->symbol[first + i] << 32 | rounds->class_of[graph->view->arcs[first + i].nextstate];
  return WF_OK;
}

/* Has every active state the arcs of the first state of its class? */
static wf_status check(struct rounds *rounds, bool *stable, wf_error *err) {
  const uint64_t *arc_off = rounds->graph->view->arc_off;
  uint32_t *first_of = rounds->fresh;
  *stable = true;
  for (uint64_t k = rounds->num_active; k-- > 0;) first_of[rounds->class_of[rounds->active[k]]] = rounds->active[k];
  for (uint64_t k = 0; k < rounds->num_active && *stable; k++) {
    uint32_t s = rounds->active[k], first = first_of[rounds->class_of[s]];
    uint64_t size = arc_off[s + 1] - arc_off[s];
    if (s == first) continue;
    *stable = arc_off[first + 1] - arc_off[first] == size;
    if (!*stable || size == 0) continue;
    WF__TRY(list_arcs(rounds, first, 0, err));
    WF__TRY(list_arcs(rounds, s, 1, err));
    if (memcmp(rounds->arcs[0].data, rounds->arcs[1].data, size * sizeof(uint64_t)) == 0) continue;
    wf__sort_u64(rounds->arcs[0].data, size);
    wf__sort_u64(rounds->arcs[1].data, size);
    *stable = memcmp(rounds->arcs[0].data, rounds->arcs[1].data, size * sizeof(uint64_t)) == 0;
  }
  return WF_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static wf_status rounds_init(struct rounds *rounds, wf_error *err) {
  uint64_t n = rounds->graph->view->num_states;
  for (rounds->num_slots = 16; rounds->num_slots < 2 * n; rounds->num_slots *= 2) continue;
  rounds->fresh = wf__alloc(n, sizeof *rounds->fresh);
  rounds->active = wf__alloc(n, sizeof *rounds->active);
  rounds->size = wf__calloc(n, sizeof *rounds->size);
  rounds->kept_in = wf__calloc(n, sizeof *rounds->kept_in);
  rounds->slots = wf__alloc(rounds->num_slots, sizeof *rounds->slots);
  if (rounds->fresh == NULL || rounds->active == NULL || rounds->size == NULL || rounds->kept_in == NULL || rounds->slots == NULL)
    return wf__fail_memory(err, n * 16 + rounds->num_slots * sizeof *rounds->slots, "partition refinement");
  rounds->num_classes = rounds->graph->num_initial;
  rounds->num_active = n;
  for (uint64_t s = 0; s < n; s++) {
    rounds->active[s] = (uint32_t)s;
    rounds->class_of[s] = rounds->graph->initial[s];
    rounds->size[rounds->class_of[s]]++;
  }
  keep_sharers(rounds);
  return WF_OK;
}

wf_status wf__partition_rounds(const wf__labelled_graph *graph, uint32_t *class_of, uint32_t *num_classes, bool *stable, wf_error *err) {
  struct rounds rounds = {.graph = graph, .class_of = class_of};
  uint64_t limit = FULL_ROUNDS * (graph->view->num_states + graph->view->num_arcs);
  uint32_t before = 0;
  wf_status status = rounds_init(&rounds, err);
  *stable = false;
  while (status == WF_OK && rounds.num_classes != before && rounds.effort < limit) {
    before = rounds.num_classes;
    split_all(&rounds);
  }
  if (status == WF_OK && rounds.num_classes == before) status = check(&rounds, stable, err);
  *num_classes = rounds.num_classes;
  free(rounds.fresh);
  free(rounds.active);
  free(rounds.size);
  free(rounds.kept_in);
  free(rounds.slots);
  wf__vec_free(&rounds.arcs[0]);
  wf__vec_free(&rounds.arcs[1]);
  return status;
}
