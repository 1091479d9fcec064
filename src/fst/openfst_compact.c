/* openfst_compact.c - reads OpenFst's CompactFst files, which leave out what all arcs share.
 *
 *   states   unless strings: (number of states + 1) unsigned numbers of the type's width: the
 *            elements of state s are states[s] .. states[s + 1]
 *   elements in the order of states; a label of -1 stands for the final cost
 *            string               i32 label                               one per state
 *            weighted_string      i32 label, weight                       one per state
 *            unweighted_acceptor  i32 label, i32 next state
 *            acceptor             i32 label, weight, i32 next state
 *            unweighted           i32 ilabel, i32 olabel, i32 next state
 *
 * Both blocks begin at multiples of 16 bytes if the header says so. A weight of 8 bytes lies at a
 * multiple of 8 within its element. The name of a type has the width if it is not 32:
 * compact8_acceptor. */
#include <string.h>

#include "fst/openfst_types.h"

/* Offsets within an element; 0: the field does not exist (no field but the label is at 0). */
struct layout {
  const char *name;
  bool one_per_state;
  size_t olabel, weight[2], nextstate[2], size[2]; /* [0]: weights of 4 bytes, [1]: of 8 */
};
static const struct layout layouts[] = {
    {"string", true, 0, {0, 0}, {0, 0}, {4, 4}},
    {"weighted_string", true, 0, {4, 8}, {0, 0}, {8, 16}},
    {"unweighted_acceptor", false, 0, {0, 0}, {4, 4}, {8, 8}},
    {"acceptor", false, 0, {4, 8}, {8, 16}, {12, 24}},
    {"unweighted", false, 4, {0, 0}, {8, 8}, {12, 12}},
};

/* Splits "compact16_acceptor" into the width 2 and the layout; NULL: not a compact type. */
static const struct layout *layout_of(wf__span type, size_t *width) {
  static const struct {
    const char *prefix;
    size_t width;
  } prefixes[] = {{"compact_", 4}, {"compact8_", 1}, {"compact16_", 2}, {"compact64_", 8}};
  for (size_t p = 0; p < 4; p++) {
    size_t size = strlen(prefixes[p].prefix);
    if (type.size < size || memcmp(type.data, prefixes[p].prefix, size) != 0) continue;
    *width = prefixes[p].width;
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
      if (wf__span_is((wf__span){type.data + size, type.size - size}, layouts[k].name))
        return &layouts[k];
  }
  return NULL;
}

bool wf__openfst_is_compact(wf__span fst_type) {
  size_t width;
  return layout_of(fst_type, &width) != NULL;
}

struct elements {
  const struct layout *layout;
  int wide; /* index in the layout's arrays */
  size_t weight_bytes;
  const uint8_t *offsets; /* NULL: one element per state */
  size_t width;
  const uint8_t *data;
  uint64_t count;
};

static uint64_t offset_of(const struct elements *e, uint64_t state) {
  uint64_t value = 0;
  if (e->offsets == NULL) return state;
  memcpy(&value, e->offsets + state * e->width, e->width);
  return value;
}

static int32_t load_i32(const uint8_t *at) {
  int32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static wf_status find_elements(wf__cursor *cursor, const wf__openfst_header *h, struct elements *e,
                               wf_error *err) {
  uint64_t num_states = (uint64_t)h->num_states, size;
  e->layout = layout_of(h->fst_type, &e->width);
  e->wide = h->weight_bytes == 8;
  e->weight_bytes = h->weight_bytes;
  size = e->layout->size[e->wide];
  e->count = num_states;
  if (!e->layout->one_per_state) {
    WF__TRY(wf__openfst_align(cursor, h, err));
    WF__TRY(wf__read_view(cursor, &e->offsets, (num_states + 1) * e->width, "states", err));
    e->count = offset_of(e, num_states);
  }
  WF__TRY(wf__openfst_align(cursor, h, err));
  if (e->count > wf__cursor_left(cursor) / size)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "%llu arcs, but the file has room for %llu: truncated or damaged",
                           (unsigned long long)e->count,
                           (unsigned long long)(wf__cursor_left(cursor) / size));
  return wf__read_view(cursor, &e->data, e->count * size, "arcs", err);
}

/* Adds the arc of an element, or sets the final cost. */
static wf_status add_element(const wf__cursor *cursor, const struct elements *e, uint64_t index,
                             uint64_t state, uint64_t num_states, wf__csr *csr, wf_error *err) {
  const struct layout *layout = e->layout;
  const uint8_t *at = e->data + index * layout->size[e->wide];
  wf_arc arc = {.ilabel = load_i32(at)};
  arc.olabel = layout->olabel != 0 ? load_i32(at + layout->olabel) : arc.ilabel;
  uint64_t next = layout->one_per_state
                      ? state + 1
                      : (uint64_t)(uint32_t)load_i32(at + layout->nextstate[e->wide]);
  if (layout->weight[e->wide] != 0 &&
      !wf__load_weight(at + layout->weight[e->wide], e->weight_bytes, &arc.weight))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "a weight of state %llu is NaN, -infinity or beyond float32",
                           (unsigned long long)state);
  if (arc.ilabel == -1) {
    csr->final_cost.data[state] = arc.weight;
    return WF_OK;
  }
  if (arc.ilabel < 0 || arc.olabel < 0 || next >= num_states)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "an arc %d:%d of state %llu leads to state %llu of %llu", arc.ilabel,
                           arc.olabel, (unsigned long long)state, (unsigned long long)next,
                           (unsigned long long)num_states);
  arc.nextstate = (uint32_t)next;
  return wf__csr_push(csr, arc, err);
}

wf_status wf__openfst_read_compact(wf__cursor *cursor, const wf__openfst_header *h, wf__csr *csr,
                                   wf_error *err) {
  struct elements e = {0};
  uint64_t num_states = (uint64_t)h->num_states;
  WF__TRY(find_elements(cursor, h, &e, err));
  WF__TRY(wf__openfst_reserve(csr, num_states, e.count, err));
  for (uint64_t s = 0; s < num_states; s++) {
    uint64_t first = offset_of(&e, s), end = offset_of(&e, s + 1);
    if (first > end || end > e.count)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                             "state %llu has the arcs %llu to %llu of %llu", (unsigned long long)s,
                             (unsigned long long)first, (unsigned long long)end,
                             (unsigned long long)e.count);
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    for (uint64_t i = first; i < end; i++)
      WF__TRY(add_element(cursor, &e, i, s, num_states, csr, err));
  }
  return WF_OK;
}
