/* minimize_partition.c - partition refinement for minimization.
 *
 * A refinable partition stores the members of each set contiguously:
 *
 *   items  | a c | b | d e f |    place[x] is the index of x in items, set_of[x] its set
 *   set    0     1   2            a set is items[first, past); its first `marked` items are marked
 *
 * Splitting a set makes the smaller of its marked and unmarked parts a new set. There are two such
 * partitions, which refine each other: blocks of states, and cords of arcs (Valmari's terms). A
 * cord is a set of arcs with one symbol into one block. A cord splits blocks by the number of arcs
 * that each state has in the cord. A new block splits cords by whether their arcs enter it. */
#include "fstops/minimize_partition.h"

#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "base/memory.h"

/* --- acyclic graphs ---------------------------------------------------------------------- */

struct signatures {
  /* signatures of all classes: the initial class, then sorted (symbol << 32 | class) */
  WF__VEC(uint64_t) pool;
  WF__VEC(uint64_t) off; /* [class] */
  WF__VEC(uint64_t) scratch;
  uint64_t *slots; /* hash << 32 | class; UINT64_MAX: free */
  int bits;
};

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

void wf__sort_u64(uint64_t *data, uint64_t n) {
  if (n > 24) {
    bool sorted = true;
    for (uint64_t i = 1; i < n && sorted; i++) sorted = data[i - 1] <= data[i];
    if (!sorted) qsort(data, n, sizeof *data, compare_u64);
    return;
  }
  for (uint64_t i = 1; i < n; i++) {
    uint64_t moved = data[i], j = i;
    for (; j > 0 && moved < data[j - 1]; j--) data[j] = data[j - 1];
    data[j] = moved;
  }
}

static wf_status grow_slots(struct signatures *signatures, wf_error *err) {
  int bits = signatures->bits == 0 ? 10 : signatures->bits + 1;
  uint64_t count = (uint64_t)1 << bits, *slots = wf__alloc(count, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, count * sizeof *slots, "classes");
  memset(slots, 0xff, count * sizeof *slots);
  for (uint64_t i = 0; signatures->bits != 0 && i < (uint64_t)1 << signatures->bits; i++) {
    if (signatures->slots[i] == UINT64_MAX) continue;
    uint64_t slot = (signatures->slots[i] >> 32) & (count - 1);
    while (slots[slot] != UINT64_MAX) slot = (slot + 1) & (count - 1);
    slots[slot] = signatures->slots[i];
  }
  free(signatures->slots);
  signatures->slots = slots;
  signatures->bits = bits;
  return WF_OK;
}

/* Sets `*out` to the class of the signature in scratch. A new signature gets a new class. */
static wf_status class_of_signature(struct signatures *signatures, uint32_t *out, wf_error *err) {
  uint64_t num_classes = signatures->off.size, size = signatures->scratch.size, hash = size;
  if (signatures->bits == 0 || num_classes * 2 >= (uint64_t)1 << signatures->bits)
    WF__TRY(grow_slots(signatures, err));
  for (uint64_t i = 0; i < size; i++)
    hash = (hash ^ hash >> 31 ^ signatures->scratch.data[i]) * 0x9e3779b97f4a7c15ULL;
  hash = wf__mix64(hash) >> 32;
  uint64_t mask = ((uint64_t)1 << signatures->bits) - 1, slot = hash & mask;
  for (; signatures->slots[slot] != UINT64_MAX; slot = (slot + 1) & mask) {
    if (signatures->slots[slot] >> 32 != hash) continue;
    uint32_t have = (uint32_t)signatures->slots[slot];
    uint64_t first = signatures->off.data[have],
             end = have + 1 < num_classes ? signatures->off.data[have + 1] : signatures->pool.size;
    if (end - first != size || memcmp(signatures->pool.data + first, signatures->scratch.data,
                                      size * sizeof(uint64_t)) != 0)
      continue;
    *out = have;
    return WF_OK;
  }
  *out = (uint32_t)num_classes;
  WF__TRY(wf__vec_push(&signatures->off, signatures->pool.size, "classes", err));
  WF__TRY(wf__vec_grow(&signatures->pool, size, "classes", err));
  memcpy(signatures->pool.data + signatures->pool.size, signatures->scratch.data,
         size * sizeof(uint64_t));
  signatures->pool.size += size;
  signatures->slots[slot] = hash << 32 | *out;
  return WF_OK;
}

wf_status wf__partition_acyclic(const wf__labelled_graph *graph, const uint32_t *topological_order,
                                uint32_t *class_of, uint32_t *num_classes, wf_error *err) {
  const wf_fst_view *view = graph->view;
  struct signatures signatures = {0};
  wf_status status = WF_OK;
  for (uint64_t k = view->num_states; k-- > 0 && status == WF_OK;) {
    WF__TRY_GOTO(status, wf__interrupted_at(k, err), done);
    uint32_t s = topological_order[k];
    uint64_t first = view->arc_off[s], end = view->arc_off[s + 1];
    signatures.scratch.size = 0;
    status = wf__vec_grow(&signatures.scratch, end - first + 1, "classes", err);
    if (status != WF_OK) break;
    signatures.scratch.data[0] = graph->initial[s];
    for (uint64_t i = first; i < end; i++)
      signatures.scratch.data[i - first + 1] =
          (uint64_t)graph->symbol[i] << 32 | class_of[view->arcs[i].nextstate];
    signatures.scratch.size = end - first + 1;
    wf__sort_u64(signatures.scratch.data + 1, end - first);
    status = class_of_signature(&signatures, &class_of[s], err);
  }
  *num_classes = (uint32_t)signatures.off.size;
done:
  wf__vec_free(&signatures.pool);
  wf__vec_free(&signatures.off);
  wf__vec_free(&signatures.scratch);
  free(signatures.slots);
  return status;
}

/* --- refinable partitions ---------------------------------------------------------------- */

struct partition {
  uint32_t *items, *place, *set_of, *first, *past, *marked, *touched;
  uint32_t num_sets, num_touched;
};

static void partition_free(struct partition *p) {
  free(p->items);
  free(p->place);
  free(p->set_of);
  free(p->first);
  free(p->past);
  free(p->marked);
  free(p->touched);
}

/* Makes one set for each key of the items 0 .. n - 1. Keys are dense from 0; those without items
 * get no set. */
static wf_status partition_init(struct partition *p, uint64_t n, const uint32_t *key,
                                uint32_t num_keys, wf_error *err) {
  p->items = wf__alloc(n, 4), p->place = wf__alloc(n, 4), p->set_of = wf__alloc(n, 4);
  p->first = wf__alloc(n + 1, 4), p->past = wf__alloc(n + 1, 4), p->marked = wf__calloc(n + 1, 4),
  p->touched = wf__alloc(n + 1, 4);
  uint32_t *off = wf__calloc((uint64_t)num_keys + 1, sizeof *off);
  if (p->items == NULL || p->place == NULL || p->set_of == NULL || p->first == NULL ||
      p->past == NULL || p->marked == NULL || p->touched == NULL || off == NULL) {
    free(off);
    return wf__fail_memory(err, n * 28, "partition refinement");
  }
  for (uint64_t i = 0; i < n; i++) off[key[i] + 1]++;
  for (uint32_t k = 0; k < num_keys; k++) {
    if (off[k + 1] != 0) {
      p->first[p->num_sets] = off[k];
      p->past[p->num_sets++] = off[k] + off[k + 1];
    }
    off[k + 1] += off[k];
  }
  for (uint64_t i = 0; i < n; i++) {
    uint32_t at = off[key[i]]++;
    p->items[at] = (uint32_t)i;
    p->place[i] = at;
  }
  for (uint32_t set = 0; set < p->num_sets; set++)
    for (uint32_t i = p->first[set]; i < p->past[set]; i++) p->set_of[p->items[i]] = set;
  free(off);
  return WF_OK;
}

static inline void mark(struct partition *p, uint32_t item) {
  uint32_t set = p->set_of[item], from = p->place[item], to = p->first[set] + p->marked[set];
  if (from < to) return; /* marked already */
  uint32_t other = p->items[to];
  p->items[from] = other;
  p->place[other] = from;
  p->items[to] = item;
  p->place[item] = to;
  if (p->marked[set]++ == 0) p->touched[p->num_touched++] = set;
}

static void split_touched(struct partition *p) {
  while (p->num_touched > 0) {
    uint32_t set = p->touched[--p->num_touched], middle = p->first[set] + p->marked[set],
             fresh = p->num_sets;
    bool small = p->marked[set] <= p->past[set] - middle;
    p->marked[set] = 0;
    if (middle == p->past[set]) continue;
    p->first[fresh] = small ? p->first[set] : middle;
    p->past[fresh] = small ? middle : p->past[set];
    if (small)
      p->first[set] = middle;
    else
      p->past[set] = middle;
    for (uint32_t i = p->first[fresh]; i < p->past[fresh]; i++) p->set_of[p->items[i]] = fresh;
    p->num_sets++;
  }
}

/* --- refinement -------------------------------------------------------------------------- */

struct refiner {
  const wf__labelled_graph *graph;
  struct partition blocks, cords;
  uint32_t *tail;            /* [num_arcs] source of each arc */
  uint32_t *incoming_off;    /* [num_states + 1] */
  uint32_t *incoming;        /* [num_arcs] arcs by target */
  uint32_t *count;           /* [num_states] number of arcs in the current cord */
  WF__VEC(uint64_t) counted; /* count << 32 | state */
};

static wf_status refiner_init(struct refiner *refiner, wf_error *err) {
  const wf_fst_view *view = refiner->graph->view;
  uint64_t n = view->num_states, m = view->num_arcs;
  if (m >= UINT32_MAX - 1)
    return wf__fail(err, WF_ERR_LIMIT,
                    "minimization of a cyclic fst supports fewer than 2^32 - 2 arcs");
  refiner->tail = wf__alloc(m, sizeof *refiner->tail);
  refiner->incoming_off = wf__calloc(n + 2, sizeof *refiner->incoming_off);
  refiner->incoming = wf__alloc(m, sizeof *refiner->incoming);
  refiner->count = wf__calloc(n, sizeof *refiner->count);
  if (refiner->tail == NULL || refiner->incoming_off == NULL || refiner->incoming == NULL ||
      refiner->count == NULL)
    return wf__fail_memory(err, m * 8 + n * 8, "partition refinement");
  uint32_t *off = refiner->incoming_off;
  for (uint64_t i = 0; i < m; i++) off[view->arcs[i].nextstate + 2]++;
  for (uint64_t s = 0; s < n; s++) off[s + 2] += off[s + 1];
  for (uint64_t s = 0; s < n; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      refiner->tail[i] = (uint32_t)s;
      refiner->incoming[off[view->arcs[i].nextstate + 1]++] = (uint32_t)i;
    }
  }
  WF__TRY(partition_init(&refiner->blocks, n, refiner->graph->initial, refiner->graph->num_initial,
                         err));
  return partition_init(&refiner->cords, m, refiner->graph->symbol, refiner->graph->num_symbols,
                        err);
}

/* Splits blocks by the number of arcs that each state has in the cord. */
static wf_status split_blocks(struct refiner *refiner, uint32_t cord, wf_error *err) {
  const struct partition *cords = &refiner->cords;
  uint32_t most = 0;
  refiner->counted.size = 0;
  for (uint32_t i = cords->first[cord]; i < cords->past[cord]; i++) {
    uint32_t s = refiner->tail[cords->items[i]];
    if (refiner->count[s]++ == 0)
      WF__TRY(wf__vec_push(&refiner->counted, (uint64_t)s, "partition refinement", err));
    if (refiner->count[s] > most) most = refiner->count[s];
  }
  uint64_t size = refiner->counted.size, *counted = refiner->counted.data;
  for (uint64_t i = 0; i < size; i++) {
    uint32_t s = (uint32_t)counted[i];
    counted[i] |= (uint64_t)refiner->count[s] << 32;
    refiner->count[s] = 0;
  }
  if (most > 1) wf__sort_u64(counted, size);
  for (uint64_t i = 0; i < size; i++) {
    mark(&refiner->blocks, (uint32_t)counted[i]);
    if (i + 1 == size || counted[i + 1] >> 32 != counted[i] >> 32) split_touched(&refiner->blocks);
  }
  return WF_OK;
}

/* Splits cords by whether their arcs enter the block. */
static void split_cords(struct refiner *refiner, uint32_t block) {
  const struct partition *blocks = &refiner->blocks;
  for (uint32_t i = blocks->first[block]; i < blocks->past[block]; i++) {
    uint32_t s = blocks->items[i];
    for (uint32_t j = refiner->incoming_off[s]; j < refiner->incoming_off[s + 1]; j++)
      mark(&refiner->cords, refiner->incoming[j]);
  }
  split_touched(&refiner->cords);
}

wf_status wf__partition_refine(const wf__labelled_graph *graph, uint32_t *class_of,
                               uint32_t *num_classes, wf_error *err) {
  struct refiner refiner = {.graph = graph};
  wf_status status = refiner_init(&refiner, err);
  /* One block need not be used for splitting: the arcs that enter it are those that enter no other.
   */
  uint32_t block = 1;
  for (uint32_t cord = 0; status == WF_OK; cord++) {
    for (; block < refiner.blocks.num_sets; block++) split_cords(&refiner, block);
    if (cord >= refiner.cords.num_sets) break;
    status = wf__interrupted_at(cord, err);
    if (status == WF_OK) status = split_blocks(&refiner, cord, err);
  }
  if (status == WF_OK) {
    memcpy(class_of, refiner.blocks.set_of, graph->view->num_states * sizeof *class_of);
    *num_classes = refiner.blocks.num_sets;
  }
  partition_free(&refiner.blocks);
  partition_free(&refiner.cords);
  free(refiner.tail);
  free(refiner.incoming_off);
  free(refiner.incoming);
  free(refiner.count);
  wf__vec_free(&refiner.counted);
  return status;
}
