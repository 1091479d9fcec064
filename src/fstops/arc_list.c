/* arc_list.c - see arc_list.h. */
#include "fstops/arc_list.h"

#include <stdlib.h>
#include <string.h>

/* The weights are apart from the arcs, so that a cost is added to several at a time. */
struct end {
  WF__VEC(wf_arc) arcs;   /* nextstate HOLE: dropped */
  WF__VEC(float) weights; /* without `pending` */
};

/* A sum that is rounded at each state of a chain cannot be made of a sum of the chain's costs,
 * unless nothing is rounded: all weights and costs are multiples of 2^grain, and all sums have less
 * than 24 bits. As long as that is so, costs are summed in `pending`, once for all arcs. */

struct wf__arc_list {
  struct end ends[2];
  uint64_t *slots; /* place + 1; 0: free */
  int bits;
  uint64_t used, count; /* arcs and holes; arcs */
  bool rounds;          /* `pending` is not used any more */
  int grain;
  double pending, most; /* no sum of a weight and costs is larger than `most` */
};

static const uint32_t HOLE = UINT32_MAX;

/* A place is an index into one of the ends. */
static wf_arc *arc_at(const wf__arc_list *list, uint64_t place) {
  return &list->ends[place & 1].arcs.data[place >> 1];
}

/* --- weights ----------------------------------------------------------------------------- */

/* The exponent of the lowest bit of a number that is not 0. */
static int lowest_bit(double number) {
  int exponent;
  uint64_t bits = (uint64_t)ldexp(frexp(fabs(number), &exponent), 53);
  for (exponent -= 53; (bits & 1) == 0; bits >>= 1) exponent++;
  return exponent;
}

static void add_to_all(wf__arc_list *list, double cost) {
  const float narrow = (float)cost;
  for (int side = 0; side < 2; side++) {
    float *weights = list->ends[side].weights.data;
    const uint64_t count = list->ends[side].weights.size;
    if ((double)narrow == cost) /* the sum of two floats, rounded by way of double, is the same */
      for (uint64_t i = 0; i < count; i++) weights[i] += narrow;
    else
      for (uint64_t i = 0; i < count; i++) weights[i] = (float)(cost + (double)weights[i]);
  }
}

/* Notes a weight, or a cost that is added to all. */
static void note_number(wf__arc_list *list, double number, bool is_cost) {
  if (list->rounds || number == 0) return;
  int grain = lowest_bit(number);
  if (grain < list->grain) list->grain = grain;
  double most = fabs(number) + fabs(list->pending);
  list->most = is_cost ? list->most + fabs(number) : most > list->most ? most : list->most;
  if (list->most < ldexp(1, list->grain + 23)) return;
  add_to_all(list, list->pending);
  list->pending = 0;
  list->rounds = true;
}

float wf__arc_list_weight(const wf__arc_list *list, uint64_t place) {
  return (float)((double)list->ends[place & 1].weights.data[place >> 1] + list->pending);
}

void wf__arc_list_set_weight(wf__arc_list *list, uint64_t place, float weight) {
  note_number(list, (double)weight, false);
  list->ends[place & 1].weights.data[place >> 1] = (float)((double)weight - list->pending);
}

void wf__arc_list_add_cost(wf__arc_list *list, double cost) {
  if (cost == 0) return;
  note_number(list, cost, true);
  if (list->rounds)
    add_to_all(list, cost);
  else
    list->pending += cost;
}

/* --- arcs -------------------------------------------------------------------------------- */

static uint64_t *find_slot(const wf__arc_list *list, const wf_arc *arc) {
  uint64_t mask = ((uint64_t)1 << list->bits) - 1, slot = wf__arc_hash(arc) & mask;
  for (;; slot = (slot + 1) & mask)
    if (list->slots[slot] == 0 || wf__same_arc(arc_at(list, list->slots[slot] - 1), arc))
      return &list->slots[slot];
}

uint64_t wf__arc_list_find(const wf__arc_list *list, const wf_arc *arc) {
  uint64_t found = *find_slot(list, arc);
  return found != 0 ? found - 1 : WF__NO_PLACE;
}

/* Makes the hash table anew. */
static wf_status fill_slots(wf__arc_list *list, int bits, wf_error *err) {
  uint64_t *slots = wf__calloc((uint64_t)1 << bits, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, sizeof *slots << bits, "a list of arcs");
  free(list->slots);
  list->slots = slots;
  list->bits = bits;
  for (uint64_t side = 0; side < 2; side++)
    for (uint64_t i = 0; i < list->ends[side].arcs.size; i++)
      if (list->ends[side].arcs.data[i].nextstate != HOLE)
        *find_slot(list, &list->ends[side].arcs.data[i]) = (i << 1 | side) + 1;
  return WF_OK;
}

static void close_holes(wf__arc_list *list) {
  for (int side = 0; side < 2; side++) {
    struct end *end = &list->ends[side];
    uint64_t kept = 0;
    for (uint64_t i = 0; i < end->arcs.size; i++) {
      if (end->arcs.data[i].nextstate == HOLE) continue;
      end->arcs.data[kept] = end->arcs.data[i];
      end->weights.data[kept++] = end->weights.data[i];
    }
    end->arcs.size = end->weights.size = kept;
  }
  list->used = list->count;
}

wf_status wf__arc_list_push(wf__arc_list *list, bool in_front, wf_arc arc, wf_error *err) {
  struct end *end = &list->ends[in_front ? 0 : 1];
  if (list->used >= 2 * list->count + 64) {
    close_holes(list);
    WF__TRY(fill_slots(list, list->bits, err));
  }
  if ((list->used + 1) * 2 > (uint64_t)1 << list->bits)
    WF__TRY(fill_slots(list, list->bits + 1, err));
  WF__TRY(wf__vec_push(&end->arcs, arc, "arcs", err));
  if (wf__vec_push(&end->weights, 0, "arcs", err) != WF_OK) {
    end->arcs.size--;
    return WF_ERR_MEMORY;
  }
  uint64_t place = (end->arcs.size - 1) << 1 | (in_front ? 0 : 1);
  wf__arc_list_set_weight(list, place, arc.weight);
  *find_slot(list, &arc) = place + 1;
  list->used++;
  list->count++;
  return WF_OK;
}

void wf__arc_list_drop(wf__arc_list *list, uint64_t place) {
  arc_at(list, place)->nextstate = HOLE;
  list->count--;
}

wf_status wf__arc_list_create(const wf_arc *arcs, uint64_t count, wf__arc_list **out,
                              wf_error *err) {
  wf__arc_list *list = *out = wf__calloc(1, sizeof *list);
  if (list == NULL) return wf__fail_memory(err, sizeof *list, "a list of arcs");
  list->grain = 1000; /* above all exponents */
  int bits = 8;
  while ((uint64_t)1 << bits < count * 4) bits++;
  wf_status status = fill_slots(list, bits, err);
  for (uint64_t i = 0; i < count && status == WF_OK; i++)
    status = wf__arc_list_push(list, false, arcs[i], err);
  if (status == WF_OK) return WF_OK;
  wf__arc_list_free(list);
  *out = NULL;
  return status;
}

void wf__arc_list_free(wf__arc_list *list) {
  if (list == NULL) return;
  for (int side = 0; side < 2; side++) {
    wf__vec_free(&list->ends[side].arcs);
    wf__vec_free(&list->ends[side].weights);
  }
  free(list->slots);
  free(list);
}

uint64_t wf__arc_list_count(const wf__arc_list *list) { return list->count; }

void wf__arc_list_copy(const wf__arc_list *list, wf_arc *to) {
  for (int side = 0; side < 2; side++) {
    const struct end *end = &list->ends[side];
    for (uint64_t k = 0; k < end->arcs.size; k++) {
      uint64_t i = side == 0 ? end->arcs.size - 1 - k : k;
      if (end->arcs.data[i].nextstate == HOLE) continue;
      *to = end->arcs.data[i];
      to++->weight = wf__arc_list_weight(list, i << 1 | (uint64_t)side);
    }
  }
}
