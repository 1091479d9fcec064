/* minimize_rounds.c - partition refinement in rounds over all states (Moore 1956), with hashing and
 * several threads.
 *
 * A round splits each class by the arcs of its states (labels and target classes). A state's
 * signature is the sum of the hashes of its arcs, so the arcs need no sorting, and equal states
 * always have equal signatures. Only "moved" states are hashed: those with an arc to a state that
 * changed class in the last round. The other states of a class still agree with each other, and
 * differ from all moved states. A state that is alone in its class is finished, and so are arcs to
 * it. Real graphs have few equal states, so rounds soon become cheap.
 *
 *   pieces of states   hash the moved states, sort them by shard            | several threads
 *   shards of hashes   group equal hashes, in a table that fits a cache     | several threads
 *   groups             become classes; the largest may keep the old class   | one thread
 *   pieces of states   get their new class, mark those that changed         | several threads
 *
 * Many rounds are needed only if states differ in long paths alone. In that case, or if the exact
 * check at the end finds a hash collision, wf__partition_refine continues from the classes found so
 * far. */
#include <stdatomic.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "fstops/minimize_partition.h"
#include "fstops/parallel.h"
#include "math/cost.h"

enum { FULL_ROUNDS = 16 }; /* gives up after the work of this many passes over the graph */
enum { FETCH_AHEAD = 16 };
enum { MAX_SHARDS = 256, SHARD_STATES = 1 << 15, SERIAL_STATES = 1 << 12 };
/* A class of one state that a round has made is ALONE | state. Other classes are indices in
 * `classes`. */
#define ALONE 0x80000000u

struct class {
  uint32_t size;
  uint32_t moved; /* number of states that moved in `round` */
  uint32_t most;  /* size of their largest group; UINT32_MAX: a group has kept the class */
  uint32_t round; /* the round that the two counts are of */
};

struct group {
  uint64_t key;
  uint32_t first, count; /* first state, and number of states */
};

struct watched_arc {
  uint32_t from, to;
};

struct piece {
  uint32_t num_active, num_moved;
  uint64_t effort;
  /* with rounds.watching: arcs of active states whose targets may still change class */
  WF__VEC(struct watched_arc) watched;
  wf_status status;
};

struct shard {
  WF__VEC(struct group) groups; /* `key` is replaced by the new class */
  wf_status status;
};

struct worker {
  WF__VEC(uint32_t) slots; /* group + 1; 0: free */
  /* [WF__PIECE_STATES] signatures and moved states of a piece, before they are sorted by shard */
  uint64_t *keys;
  uint32_t *states;
  WF__VEC(wf__arc_key) arcs[2];
};

struct rounds {
  const wf__labelled_graph *graph;
  wf__pool *pool;
  uint64_t num_states, num_pieces;
  uint32_t num_shards, round;
  int shard_shift;
  bool watching;
  uint32_t *class_of; /* [num_states] */
  /* The next three are [num_states]; a piece's entries begin at the index of its first state. */
  uint32_t *active;    /* states of the piece that may share their class with others, ascending */
  uint64_t *keys;      /* of the moved states, sorted by shard: their signature, then their group */
  uint32_t *states;    /* the moved states, in the order of `keys` */
  uint32_t *shard_off; /* [piece][num_shards + 1] where the shards begin in a piece's keys */
  uint64_t *changed;   /* bitmap: states that changed class in the last round */
  struct piece *pieces;
  struct shard *shards;
  struct worker *workers;
  WF__VEC(struct class) classes;
  uint32_t *first_of; /* [classes.size] for the exact check: first state of each class */
  atomic_bool differs;
};

static inline bool bit(const uint64_t *set, uint64_t s) { return set[s / 64] >> (s % 64) & 1; }

static void run(struct rounds *rounds, uint64_t num_items, bool small, wf__task_fn fn) {
  if (!small)
    wf__pool_run(rounds->pool, num_items, fn, rounds);
  else
    for (uint64_t i = 0; i < num_items; i++) fn(rounds, i, 0);
}

/* --- pieces: which states moved, and their hashes ---------------------------------------- */

static uint64_t signature(const struct rounds *rounds, const wf_arc *arcs, uint64_t count,
                          uint32_t class) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t labels = (uint64_t)(uint32_t)arcs[i].ilabel << 32 | (uint32_t)arcs[i].olabel;
    uint64_t rest = (uint64_t)wf__cost_bin(rounds->graph->inverse_delta, arcs[i].weight) << 32 |
                    rounds->class_of[arcs[i].nextstate];
    sum += wf__mix64(labels * 0xbf58476d1ce4e5b9ULL + rest * 0x94d049bb133111ebULL);
  }
  return wf__mix64(sum ^ (uint64_t) class * 0x9e3779b97f4a7c15ULL);
}

/* Fetches the classes of the states that the arcs of `s` lead to. */
static inline void fetch_classes(const struct rounds *rounds, uint32_t s) {
  const wf_fst_view *view = rounds->graph->view;
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    __builtin_prefetch(&rounds->class_of[view->arcs[i].nextstate]);
}

static inline bool is_alone(const struct rounds *rounds, uint32_t s) {
  uint32_t class = rounds->class_of[s];
  return class & ALONE || rounds->classes.data[class].size == 1;
}

/* Removes the states that are alone in their class, and lists those arcs of the others whose
 * targets may still change class, or have just changed it. */
static wf_status prune_piece(struct rounds *rounds, uint64_t p, wf_error *err) {
  const wf_fst_view *view = rounds->graph->view;
  struct piece *piece = &rounds->pieces[p];
  uint32_t *active = rounds->active + p * WF__PIECE_STATES, kept = 0;
  piece->watched.size = 0;
  for (uint32_t k = 0; k < piece->num_active; k++) {
    uint32_t s = active[k];
    if (k + FETCH_AHEAD < piece->num_active) fetch_classes(rounds, active[k + FETCH_AHEAD]);
    if (is_alone(rounds, s)) continue;
    active[kept++] = s;
    WF__TRY(wf__vec_grow(&piece->watched, view->arc_off[s + 1] - view->arc_off[s],
                         "partition refinement", err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t next = view->arcs[i].nextstate;
      if (bit(rounds->changed, next) || !is_alone(rounds, next))
        piece->watched.data[piece->watched.size++] = (struct watched_arc){s, next};
    }
  }
  piece->num_active = kept;
  return WF_OK;
}

/* Lists the moved states of a piece in `states`, and returns their number. */
static uint32_t find_moved(struct rounds *rounds, uint64_t p, uint32_t *states) {
  const wf_fst_view *view = rounds->graph->view;
  struct piece *piece = &rounds->pieces[p];
  const uint32_t *active = rounds->active + p * WF__PIECE_STATES;
  uint32_t moved = 0;
  if (rounds->watching) {
    const struct watched_arc *watched = piece->watched.data;
    for (uint64_t i = 0; i < piece->watched.size; i++) {
      uint32_t s = watched[i].from;
      if (!bit(rounds->changed, watched[i].to) || (moved != 0 && states[moved - 1] == s) ||
          rounds->class_of[s] & ALONE)
        continue;
      states[moved++] = s;
    }
    piece->effort = piece->watched.size;
    return moved;
  }
  piece->effort = piece->num_active;
  for (uint32_t k = 0; k < piece->num_active; k++) {
    uint32_t s = active[k];
    uint64_t i = view->arc_off[s], end = view->arc_off[s + 1];
    if (rounds->class_of[s] & ALONE) continue;
    piece->effort += end - i;
    while (rounds->round > 1 && i < end && !bit(rounds->changed, view->arcs[i].nextstate)) i++;
    if (rounds->round == 1 || i < end) states[moved++] = s;
  }
  return moved;
}

/* Hashes the states of a piece that moved, and sorts them by shard. */
static void hash_piece(void *user, uint64_t p, int w) {
  struct rounds *rounds = user;
  struct piece *piece = &rounds->pieces[p];
  struct worker *worker = &rounds->workers[w];
  const wf_fst_view *view = rounds->graph->view;
  uint64_t base = p * WF__PIECE_STATES;
  uint32_t *off = rounds->shard_off + p * (rounds->num_shards + 1),
           moved = find_moved(rounds, p, worker->states);
  memset(off, 0, (rounds->num_shards + 1) * sizeof *off);
  for (uint32_t k = 0; k < moved; k++) {
    uint32_t s = worker->states[k];
    if (k + FETCH_AHEAD < moved) fetch_classes(rounds, worker->states[k + FETCH_AHEAD]);
    worker->keys[k] = signature(rounds, view->arcs + view->arc_off[s],
                                view->arc_off[s + 1] - view->arc_off[s], rounds->class_of[s]);
    off[(worker->keys[k] >> rounds->shard_shift) + 1]++;
  }
  piece->effort += moved;
  piece->num_moved = moved;
  for (uint32_t h = 0; h < rounds->num_shards; h++) off[h + 1] += off[h];
  for (uint32_t k = 0; k < moved; k++) {
    uint64_t at = base + off[worker->keys[k] >> rounds->shard_shift]++;
    rounds->keys[at] = worker->keys[k];
    rounds->states[at] = worker->states[k];
  }
  /* Filling has advanced each offset to the end of its shard. */
  memmove(off + 1, off, rounds->num_shards * sizeof *off);
  off[0] = 0;
}

static void prune_task(void *user, uint64_t p, int w) {
  struct rounds *rounds = user;
  (void)w;
  rounds->pieces[p].status = prune_piece(rounds, p, NULL);
}

static wf_status prune(struct rounds *rounds, bool small, wf_error *err) {
  run(rounds, rounds->num_pieces, small, prune_task);
  rounds->watching = true;
  for (uint64_t p = 0; p < rounds->num_pieces; p++)
    if (rounds->pieces[p].status != WF_OK)
      return wf__fail_memory(err, rounds->num_states * sizeof(struct watched_arc),
                             "partition refinement");
  return WF_OK;
}

/* --- shards: states with equal signatures make a group ----------------------------------- */

static wf_status group(struct rounds *rounds, struct worker *worker, uint32_t h, wf_error *err) {
  struct shard *shard = &rounds->shards[h];
  uint64_t total = 0, num_slots = 16;
  shard->groups.size = 0;
  for (uint64_t p = 0; p < rounds->num_pieces; p++)
    total += rounds->shard_off[p * (rounds->num_shards + 1) + h + 1] -
             rounds->shard_off[p * (rounds->num_shards + 1) + h];
  if (total == 0) return WF_OK;
  while (num_slots < 2 * total) num_slots *= 2;
  worker->slots.size = 0;
  WF__TRY(wf__vec_grow(&worker->slots, num_slots, "partition refinement", err));
  memset(worker->slots.data, 0, num_slots * sizeof *worker->slots.data);
  for (uint64_t p = 0; p < rounds->num_pieces; p++) {
    const uint32_t *off = rounds->shard_off + p * (rounds->num_shards + 1) + h;
    for (uint64_t i = p * WF__PIECE_STATES + off[0]; i < p * WF__PIECE_STATES + off[1]; i++) {
      uint64_t key = rounds->keys[i], at = key & (num_slots - 1);
      uint32_t slot;
      while ((slot = worker->slots.data[at]) != 0 && shard->groups.data[slot - 1].key != key)
        at = (at + 1) & (num_slots - 1);
      if (slot == 0) {
        WF__TRY(wf__vec_push(&shard->groups,
                             ((struct group){.key = key, .first = rounds->states[i]}),
                             "partition refinement", err));
        slot = worker->slots.data[at] = (uint32_t)shard->groups.size;
      }
      shard->groups.data[slot - 1].count++;
      rounds->keys[i] = slot - 1;
    }
  }
  return WF_OK;
}

static void group_shard(void *user, uint64_t h, int w) {
  struct rounds *rounds = user;
  rounds->shards[h].status = group(rounds, &rounds->workers[w], (uint32_t)h, NULL);
}

/* --- groups become classes --------------------------------------------------------------- */

/* Fetches the class of the first state of a later group. */
static inline void fetch_group(const struct rounds *rounds, const struct shard *shard, uint64_t g) {
  if (g + FETCH_AHEAD < shard->groups.size)
    __builtin_prefetch(&rounds->class_of[shard->groups.data[g + FETCH_AHEAD].first]);
}

static void count_moved(struct rounds *rounds) {
  for (uint32_t h = 0; h < rounds->num_shards; h++) {
    for (uint64_t g = 0; g < rounds->shards[h].groups.size; g++) {
      fetch_group(rounds, &rounds->shards[h], g);
      const struct group *group = &rounds->shards[h].groups.data[g];
      struct class *class = &rounds->classes.data[rounds->class_of[group->first]];
      if (class->round != rounds->round)
        *class = (struct class){.size = class->size, .round = rounds->round};
      class->moved += group->count;
      if (group->count > class->most) class->most = group->count;
    }
  }
}

/* Gives each group its class. If all states of a class moved, the largest group keeps the class;
 * otherwise, the states that did not move keep it. */
static wf_status name_groups(struct rounds *rounds, bool *any_new, wf_error *err) {
  for (uint32_t h = 0; h < rounds->num_shards; h++) {
    for (uint64_t g = 0; g < rounds->shards[h].groups.size; g++) {
      struct group *group = &rounds->shards[h].groups.data[g];
      fetch_group(rounds, &rounds->shards[h], g);
      uint32_t old = rounds->class_of[group->first];
      struct class *class = &rounds->classes.data[old];
      if (class->moved == class->size && class->most == group->count) {
        class->most = UINT32_MAX;
        group->key = old;
        continue;
      }
      class->size -= group->count; /* keeps moved == size true if all moved */
      class->moved -= group->count;
      *any_new = true;
      group->key = group->count > 1 ? (uint32_t)rounds->classes.size : ALONE | group->first;
      if (group->count > 1)
        WF__TRY(wf__vec_push(&rounds->classes, ((struct class){.size = group->count}),
                             "partition refinement", err));
    }
  }
  return WF_OK;
}

static void rename_piece(void *user, uint64_t p, int w) {
  struct rounds *rounds = user;
  (void)w;
  uint64_t base = p * WF__PIECE_STATES;
  const uint32_t *off = rounds->shard_off + p * (rounds->num_shards + 1);
  memset(rounds->changed + base / 64, 0, WF__PIECE_STATES / 8);
  for (uint32_t h = 0; h < rounds->num_shards && rounds->pieces[p].num_moved != 0; h++) {
    const struct group *groups = rounds->shards[h].groups.data;
    for (uint64_t i = base + off[h]; i < base + off[h + 1]; i++) {
      uint32_t s = rounds->states[i], class = (uint32_t)groups[rounds->keys[i]].key;
      if (rounds->class_of[s] == class) continue;
      rounds->class_of[s] = class;
      rounds->changed[s / 64] |= (uint64_t)1 << (s % 64);
    }
  }
}

/* Performs one round. `*any_new`: a class was split. `*effort`: number of arcs visited. */
static wf_status split_all(struct rounds *rounds, bool *any_new, uint64_t *effort, wf_error *err) {
  uint64_t num_active = 0;
  for (uint64_t p = 0; p < rounds->num_pieces; p++) num_active += rounds->pieces[p].num_active;
  bool small = num_active < SERIAL_STATES;
  *any_new = false;
  rounds->round++;
  if (rounds->round >= 4 && (rounds->round & (rounds->round - 1)) == 0)
    WF__TRY(prune(rounds, small, err));
  run(rounds, rounds->num_pieces, small, hash_piece);
  run(rounds, rounds->num_shards, small, group_shard);
  for (uint32_t h = 0; h < rounds->num_shards; h++)
    if (rounds->shards[h].status != WF_OK)
      return wf__fail_memory(err, rounds->num_states * sizeof(struct group),
                             "partition refinement");
  count_moved(rounds);
  WF__TRY(name_groups(rounds, any_new, err));
  run(rounds, rounds->num_pieces, small, rename_piece);
  *effort = rounds->num_pieces * rounds->num_shards;
  for (uint64_t p = 0; p < rounds->num_pieces; p++) *effort += rounds->pieces[p].effort;
  return WF_OK;
}

/* --- the exact check --------------------------------------------------------------------- */

static int compare_arc_keys(const void *a, const void *b) {
  const wf__arc_key *x = a, *y = b;
  if (x->labels != y->labels) return x->labels < y->labels ? -1 : 1;
  return (x->rest > y->rest) - (x->rest < y->rest);
}

static wf_status list_arcs(const struct rounds *rounds, struct worker *worker, uint32_t s,
                           int which, wf_error *err) {
  const wf_fst_view *view = rounds->graph->view;
  uint64_t first = view->arc_off[s], size = view->arc_off[s + 1] - first;
  worker->arcs[which].size = 0;
  WF__TRY(wf__vec_grow(&worker->arcs[which], size + 1, "classes", err));
  for (uint64_t i = 0; i < size; i++) {
    const wf_arc *arc = &view->arcs[first + i];
    worker->arcs[which].data[i] = (wf__arc_key){
        .labels = (uint64_t)(uint32_t)arc->ilabel << 32 | (uint32_t)arc->olabel,
        .rest = (uint64_t)wf__cost_bin(rounds->graph->inverse_delta, arc->weight) << 32 |
                rounds->class_of[arc->nextstate]};
  }
  return WF_OK;
}

/* Do the two states have the same arcs? */
static wf_status same_arcs(const struct rounds *rounds, struct worker *worker, uint32_t a,
                           uint32_t b, bool *same, wf_error *err) {
  const uint64_t *arc_off = rounds->graph->view->arc_off;
  uint64_t size = arc_off[a + 1] - arc_off[a], bytes = size * sizeof(wf__arc_key);
  *same = arc_off[b + 1] - arc_off[b] == size;
  if (!*same || size == 0) return WF_OK;
  WF__TRY(list_arcs(rounds, worker, a, 0, err));
  WF__TRY(list_arcs(rounds, worker, b, 1, err));
  if (memcmp(worker->arcs[0].data, worker->arcs[1].data, bytes) == 0) return WF_OK;
  qsort(worker->arcs[0].data, size, sizeof(wf__arc_key), compare_arc_keys);
  qsort(worker->arcs[1].data, size, sizeof(wf__arc_key), compare_arc_keys);
  *same = memcmp(worker->arcs[0].data, worker->arcs[1].data, bytes) == 0;
  return WF_OK;
}

static void check_piece(void *user, uint64_t p, int w) {
  struct rounds *rounds = user;
  const uint32_t *active = rounds->active + p * WF__PIECE_STATES;
  for (uint32_t k = 0; k < rounds->pieces[p].num_active &&
                       !atomic_load_explicit(&rounds->differs, memory_order_relaxed);
       k++) {
    if (rounds->class_of[active[k]] & ALONE) continue;
    uint32_t first = rounds->first_of[rounds->class_of[active[k]]];
    bool same = true;
    if (first != active[k] &&
        same_arcs(rounds, &rounds->workers[w], first, active[k], &same, NULL) != WF_OK)
      same = false; /* leaves it to wf__partition_refine */
    if (!same) atomic_store_explicit(&rounds->differs, true, memory_order_relaxed);
  }
}

/* Exact check: does every active state have the same arcs as the first state of its class? */
static wf_status check(struct rounds *rounds, bool *stable, wf_error *err) {
  rounds->first_of = wf__alloc(rounds->classes.size, sizeof *rounds->first_of);
  if (rounds->first_of == NULL)
    return wf__fail_memory(err, rounds->classes.size * sizeof *rounds->first_of,
                           "partition refinement");
  for (uint64_t p = rounds->num_pieces; p-- > 0;) {
    const uint32_t *active = rounds->active + p * WF__PIECE_STATES;
    for (uint32_t k = rounds->pieces[p].num_active; k-- > 0;)
      if (!(rounds->class_of[active[k]] & ALONE))
        rounds->first_of[rounds->class_of[active[k]]] = active[k];
  }
  wf__pool_run(rounds->pool, rounds->num_pieces, check_piece, rounds);
  *stable = !atomic_load(&rounds->differs);
  return WF_OK;
}

/* --- the algorithm ----------------------------------------------------------------------- */

static wf_status allocate(struct rounds *rounds, wf_error *err) {
  uint64_t n = rounds->num_states, size = rounds->num_pieces * WF__PIECE_STATES,
           num_workers = (uint64_t)wf__pool_size(rounds->pool);
  rounds->active = wf__alloc(n, sizeof *rounds->active);
  rounds->keys = wf__alloc(n, sizeof *rounds->keys);
  rounds->states = wf__alloc(n, sizeof *rounds->states);
  rounds->shard_off =
      wf__alloc(rounds->num_pieces * (rounds->num_shards + 1), sizeof *rounds->shard_off);
  rounds->changed = wf__calloc(size / 64, sizeof *rounds->changed);
  rounds->pieces = wf__calloc(rounds->num_pieces, sizeof *rounds->pieces);
  rounds->shards = wf__calloc(rounds->num_shards, sizeof *rounds->shards);
  rounds->workers = wf__calloc(num_workers, sizeof *rounds->workers);
  bool good = rounds->active != NULL && rounds->keys != NULL && rounds->states != NULL &&
              rounds->shard_off != NULL && rounds->changed != NULL && rounds->pieces != NULL &&
              rounds->shards != NULL && rounds->workers != NULL;
  for (uint64_t w = 0; good && w < num_workers; w++) {
    rounds->workers[w].keys = wf__alloc(WF__PIECE_STATES, sizeof(uint64_t));
    rounds->workers[w].states = wf__alloc(WF__PIECE_STATES, sizeof(uint32_t));
    good = rounds->workers[w].keys != NULL && rounds->workers[w].states != NULL;
  }
  return good ? WF_OK
              : wf__fail_memory(err, n * 16 + num_workers * WF__PIECE_STATES * 12,
                                "partition refinement");
}

static wf_status rounds_init(struct rounds *rounds, wf_error *err) {
  uint64_t n = rounds->num_states;
  rounds->num_pieces = wf__num_pieces(n);
  rounds->num_shards = 2; /* one shard would need a shift by 64, which is undefined */
  rounds->shard_shift = 63;
  for (; rounds->num_shards < MAX_SHARDS && n / rounds->num_shards > SHARD_STATES;
       rounds->shard_shift--)
    rounds->num_shards *= 2;
  WF__TRY(allocate(rounds, err));
  WF__TRY(wf__vec_grow(&rounds->classes, rounds->graph->num_initial, "partition refinement", err));
  memset(rounds->classes.data, 0, rounds->graph->num_initial * sizeof *rounds->classes.data);
  rounds->classes.size = rounds->graph->num_initial;
  for (uint64_t s = 0; s < n; s++) {
    rounds->active[s] = (uint32_t)s;
    rounds->class_of[s] = rounds->graph->initial[s];
    rounds->classes.data[rounds->class_of[s]].size++;
  }
  for (uint64_t p = 0; p < rounds->num_pieces; p++)
    rounds->pieces[p].num_active = (uint32_t)(wf__piece_end(p, n) - p * WF__PIECE_STATES);
  return WF_OK;
}

static void rounds_free(struct rounds *rounds) {
  for (uint32_t h = 0; rounds->shards != NULL && h < rounds->num_shards; h++)
    wf__vec_free(&rounds->shards[h].groups);
  for (uint64_t p = 0; rounds->pieces != NULL && p < rounds->num_pieces; p++)
    wf__vec_free(&rounds->pieces[p].watched);
  for (int w = 0; rounds->workers != NULL && w < wf__pool_size(rounds->pool); w++) {
    free(rounds->workers[w].keys);
    free(rounds->workers[w].states);
    wf__vec_free(&rounds->workers[w].slots);
    wf__vec_free(&rounds->workers[w].arcs[0]);
    wf__vec_free(&rounds->workers[w].arcs[1]);
  }
  free(rounds->active);
  free(rounds->keys);
  free(rounds->states);
  free(rounds->shard_off);
  free(rounds->changed);
  free(rounds->pieces);
  free(rounds->shards);
  free(rounds->workers);
  free(rounds->first_of);
  wf__vec_free(&rounds->classes);
}

/* Numbers the classes densely, in the order of their first states. */
static uint32_t make_dense(struct rounds *rounds) {
  uint32_t count = 0;
  for (uint64_t c = 0; c < rounds->classes.size; c++) rounds->classes.data[c].most = UINT32_MAX;
  for (uint64_t s = 0; s < rounds->num_states; s++) {
    uint32_t class = rounds->class_of[s];
    uint32_t *number = class & ALONE ? &class : &rounds->classes.data[class].most;
    if (class & ALONE || *number == UINT32_MAX) *number = count++;
    rounds->class_of[s] = *number;
  }
  return count;
}

wf_status wf__partition_rounds(const wf__labelled_graph *graph, wf__pool *pool, uint32_t *class_of,
                               uint32_t *num_classes, bool *stable, wf_error *err) {
  struct rounds rounds = {
      .graph = graph, .pool = pool, .class_of = class_of, .num_states = graph->view->num_states};
  uint64_t limit = FULL_ROUNDS * (graph->view->num_states + graph->view->num_arcs), spent = 0;
  bool any_new = true;
  atomic_init(&rounds.differs, false);
  wf_status status = rounds_init(&rounds, err);
  *stable = false;
  while (status == WF_OK && any_new && spent < limit) {
    uint64_t effort = 0;
    status = wf__interrupted(err);
    if (status == WF_OK) status = split_all(&rounds, &any_new, &effort, err);
    spent += effort;
  }
  if (status == WF_OK && !any_new) status = check(&rounds, stable, err);
  if (status == WF_OK) *num_classes = make_dense(&rounds);
  rounds_free(&rounds);
  return status;
}
