/* compose_oracle.c - see compose_oracle.h. The filters follow OpenFst's definition, one pair of
 * arcs at a time. An implicit self-loop stands for the side that does not move. No code is shared
 * with the library. */
#include "compose_oracle.h"

enum {
  LOOP = -1,
  BLOCKED = -1,
  AUTO = 0,
  SEQUENCE,
  ALT_SEQUENCE,
  MATCH,
  NO_MATCH,
  TRIVIAL,
  NULL_FILTER,
  MAX_FILTERS = 3
};

struct oracle {
  wf_fst_view a, b;
  int filter;
  uint64_t num_cells;
  uint8_t *seen, *good; /* by cell: (a * 3 + filter state) * num_b + b */
  uint32_t *number;
  wf_builder *builder;
  wf_arc_origin *origins;
  size_t num_origins, cap_origins;
};

struct context {
  bool a_all, a_none, b_all, b_none;
};

static struct context context_of(const struct oracle *o, uint64_t a, uint64_t b) {
  uint64_t a_eps = 0, b_eps = 0, a_arcs = o->a.arc_off[a + 1] - o->a.arc_off[a],
           b_arcs = o->b.arc_off[b + 1] - o->b.arc_off[b];
  for (uint64_t i = o->a.arc_off[a]; i < o->a.arc_off[a + 1]; i++)
    a_eps += o->a.arcs[i].olabel == 0;
  for (uint64_t i = o->b.arc_off[b]; i < o->b.arc_off[b + 1]; i++)
    b_eps += o->b.arcs[i].ilabel == 0;
  return (struct context){a_arcs == a_eps && o->a.final_cost[a] == INFINITY, a_eps == 0,
                          b_arcs == b_eps && o->b.final_cost[b] == INFINITY, b_eps == 0};
}

/* The filter state after output label x of a meets input label y of b. Either may be LOOP. */
static int filter_of(int filter, int state, int32_t x, int32_t y, struct context c) {
  switch (filter) {
    case NULL_FILTER: return x == LOOP || y == LOOP ? BLOCKED : 0;
    case TRIVIAL: return 0;
    case NO_MATCH: return x == 0 && y == 0 ? BLOCKED : 0;
    case ALT_SEQUENCE:
      if (y == LOOP) return c.b_all ? BLOCKED : c.b_none ? 0 : 1;
      if (x == LOOP) return state == 1 ? BLOCKED : 0;
      return x == 0 ? BLOCKED : 0;
    case MATCH:
      if (y == LOOP)
        return state == 0 ? (c.b_none ? 0 : c.b_all ? BLOCKED : 1) : state == 1 ? 1 : BLOCKED;
      if (x == LOOP)
        return state == 0 ? (c.a_none ? 0 : c.a_all ? BLOCKED : 2) : state == 2 ? 2 : BLOCKED;
      return x == 0 && state != 0 ? BLOCKED : 0;
    default:
      if (x == LOOP) return c.a_all ? BLOCKED : c.a_none ? 0 : 1;
      if (y == LOOP) return state != 0 ? BLOCKED : 0;
      return x == 0 ? BLOCKED : 0;
  }
}

typedef void (*arc_fn)(struct oracle *o, uint64_t from, uint64_t to, wf_arc arc,
                       wf_arc_origin origin);

static uint64_t cell_of(const struct oracle *o, uint64_t a, int filter_state, uint64_t b) {
  return (a * MAX_FILTERS + (uint64_t)filter_state) * o->b.num_states + b;
}

/* Finds the next arc of state a in order of output labels. Arcs of equal labels keep their order.
 */
static bool next_arc(const struct oracle *o, uint64_t a, int64_t *place) {
  int64_t best = -1, begin = (int64_t)o->a.arc_off[a], end = (int64_t)o->a.arc_off[a + 1];
  for (int64_t i = begin; i < end; i++) {
    bool after = *place < 0 || o->a.arcs[i].olabel > o->a.arcs[*place].olabel ||
                 (o->a.arcs[i].olabel == o->a.arcs[*place].olabel && i > *place);
    if (after && (best < 0 || o->a.arcs[i].olabel < o->a.arcs[best].olabel)) best = i;
  }
  *place = best;
  return best >= 0;
}

static void arcs_of(struct oracle *o, uint64_t cell, arc_fn fn) {
  uint64_t b = cell % o->b.num_states, a = cell / o->b.num_states / MAX_FILTERS;
  int state = (int)(cell / o->b.num_states % MAX_FILTERS), next;
  struct context c = context_of(o, a, b);
  for (uint64_t j = o->b.arc_off[b]; j < o->b.arc_off[b + 1]; j++) {
    const wf_arc *y = &o->b.arcs[j];
    if (y->ilabel != 0 || (next = filter_of(o->filter, state, LOOP, 0, c)) == BLOCKED) continue;
    fn(o, cell, cell_of(o, a, next, y->nextstate),
       (wf_arc){.weight = y->weight, .olabel = y->olabel}, (wf_arc_origin){WF_NO_ARC, (uint32_t)j});
  }
  for (int64_t i = -1; next_arc(o, a, &i);) {
    const wf_arc *x = &o->a.arcs[i];
    if (x->olabel == 0 && (next = filter_of(o->filter, state, 0, LOOP, c)) != BLOCKED)
      fn(o, cell, cell_of(o, x->nextstate, next, b),
         (wf_arc){.weight = x->weight, .ilabel = x->ilabel},
         (wf_arc_origin){(uint32_t)i, WF_NO_ARC});
    for (uint64_t j = o->b.arc_off[b]; j < o->b.arc_off[b + 1]; j++) {
      const wf_arc *y = &o->b.arcs[j];
      if (y->ilabel != x->olabel ||
          (next = filter_of(o->filter, state, x->olabel, y->ilabel, c)) == BLOCKED)
        continue;
      wf_arc arc = {.weight = x->weight + y->weight, .ilabel = x->ilabel, .olabel = y->olabel};
      fn(o, cell, cell_of(o, x->nextstate, next, y->nextstate), arc,
         (wf_arc_origin){(uint32_t)i, (uint32_t)j});
    }
  }
}

static bool is_final(const struct oracle *o, uint64_t cell) {
  return o->a.final_cost[cell / o->b.num_states / MAX_FILTERS] != INFINITY &&
         o->b.final_cost[cell % o->b.num_states] != INFINITY;
}

static bool g_changed;

static void mark_seen(struct oracle *o, uint64_t from, uint64_t to, wf_arc arc,
                      wf_arc_origin origin) {
  (void)from, (void)arc, (void)origin;
  if (!o->seen[to]) g_changed = true;
  o->seen[to] = 1;
}

static void mark_good(struct oracle *o, uint64_t from, uint64_t to, wf_arc arc,
                      wf_arc_origin origin) {
  (void)arc, (void)origin;
  if (!o->good[to] || o->good[from]) return;
  g_changed = true;
  o->good[from] = 1;
}

static void add_arc(struct oracle *o, uint64_t from, uint64_t to, wf_arc arc,
                    wf_arc_origin origin) {
  wf_error err = {0};
  if (!o->seen[to] || !o->good[to]) return;
  arc.nextstate = o->number[to];
  assert_ok(wf_builder_add_arc(o->builder, o->number[from], arc, &err));
  if (o->num_origins == o->cap_origins)
    o->origins =
        realloc(o->origins, (o->cap_origins = 2 * o->cap_origins + 16) * sizeof *o->origins);
  o->origins[o->num_origins++] = origin;
}

static void mark_all(struct oracle *o, bool connect) {
  o->seen[cell_of(o, (uint64_t)o->a.start, 0, (uint64_t)o->b.start)] = 1;
  for (g_changed = true; g_changed;) {
    g_changed = false;
    for (uint64_t cell = 0; cell < o->num_cells; cell++)
      if (o->seen[cell]) arcs_of(o, cell, mark_seen);
  }
  for (uint64_t cell = 0; cell < o->num_cells; cell++)
    o->good[cell] = !connect || is_final(o, cell);
  for (g_changed = connect; g_changed;) {
    g_changed = false;
    for (uint64_t cell = 0; cell < o->num_cells; cell++)
      if (o->seen[cell]) arcs_of(o, cell, mark_good);
  }
}

static void build(struct oracle *o) {
  wf_error err = {0};
  uint32_t count = 0;
  uint64_t start = cell_of(o, (uint64_t)o->a.start, 0, (uint64_t)o->b.start);
  for (uint64_t cell = 0; cell < o->num_cells; cell++)
    if (o->seen[cell] && o->good[cell]) o->number[cell] = count++;
  if (!o->good[start]) return;
  assert_ok(wf_builder_add_states(o->builder, count, NULL, &err));
  assert_ok(wf_builder_set_start(o->builder, o->number[start], &err));
  for (uint64_t cell = 0; cell < o->num_cells; cell++) {
    if (!o->seen[cell] || !o->good[cell]) continue;
    float cost = o->a.final_cost[cell / o->b.num_states / MAX_FILTERS] +
                 o->b.final_cost[cell % o->b.num_states];
    if (is_final(o, cell)) assert_ok(wf_builder_set_final(o->builder, o->number[cell], cost, &err));
    arcs_of(o, cell, add_arc);
  }
}

wf_fst *oracle_compose(const wf_fst *a, const wf_fst *b, int filter, bool connect,
                       wf_arc_origin **origins) {
  wf_error err = {0};
  wf_fst *out;
  struct oracle o = {.a = wf_fst_get_view(a), .b = wf_fst_get_view(b), .filter = filter};
  o.num_cells = o.a.num_states * MAX_FILTERS * o.b.num_states;
  o.seen = calloc(o.num_cells + 1, 1);
  o.good = calloc(o.num_cells + 1, 1);
  o.number = calloc(o.num_cells + 1, sizeof *o.number);
  assert_true(o.seen != NULL && o.good != NULL && o.number != NULL);
  assert_ok(wf_builder_create(o.a.semiring, &o.builder, &err));
  if (o.a.start >= 0 && o.b.start >= 0) {
    mark_all(&o, connect);
    build(&o);
  }
  assert_ok(wf_builder_finish(o.builder, wf_fst_isymbols(a), wf_fst_osymbols(b), &out, &err));
  wf_builder_free(o.builder);
  free(o.seen);
  free(o.good);
  free(o.number);
  if (origins != NULL)
    *origins = o.origins;
  else
    free(o.origins);
  return out;
}

void assert_same_bytes(const wf_fst *got, const wf_fst *want, const char *what) {
  wf_fst_view x = wf_fst_get_view(got), y = wf_fst_get_view(want);
  if (x.num_states != y.num_states || x.num_arcs != y.num_arcs || x.start != y.start ||
      x.semiring != y.semiring)
    fail_msg("%s: %llu states, %llu arcs, start %lld; wanted %llu, %llu, %lld", what,
             (unsigned long long)x.num_states, (unsigned long long)x.num_arcs, (long long)x.start,
             (unsigned long long)y.num_states, (unsigned long long)y.num_arcs, (long long)y.start);
  if (memcmp(x.arc_off, y.arc_off, (x.num_states + 1) * sizeof *x.arc_off) != 0)
    fail_msg("%s: other numbers of arcs", what);
  if (x.num_states != 0 &&
      memcmp(x.final_cost, y.final_cost, x.num_states * sizeof *x.final_cost) != 0)
    fail_msg("%s: other final costs", what);
  for (uint64_t i = 0; i < x.num_arcs; i++)
    if (memcmp(&x.arcs[i], &y.arcs[i], sizeof *x.arcs) != 0)
      fail_msg("%s: arc %llu: %d:%d/%g -> %u, wanted %d:%d/%g -> %u", what, (unsigned long long)i,
               x.arcs[i].ilabel, x.arcs[i].olabel, x.arcs[i].weight, x.arcs[i].nextstate,
               y.arcs[i].ilabel, y.arcs[i].olabel, y.arcs[i].weight, y.arcs[i].nextstate);
}

/* --- generators -------------------------------------------------------------------------- */

static wf_builder *start_fst(uint32_t num_states, uint32_t last) {
  wf_error err = {0};
  wf_builder *builder;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, last, 0, &err));
  return builder;
}

static wf_fst *finish_fst(wf_builder *builder) {
  wf_error err = {0};
  wf_fst *out;
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

wf_fst *oracle_random_graph(uint32_t num_states, uint32_t degree, uint32_t num_labels,
                            uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  wf_builder *builder = start_fst(num_states, num_states - 1);
  for (uint32_t s = 0; s < num_states; s++) {
    for (uint32_t k = 0; k < degree; k++) {
      wf_arc arc = {.nextstate = test_below(&rng, num_states)};
      arc.ilabel = arc.olabel = 1 + (int32_t)test_below(&rng, num_labels);
      arc.weight = test_unit(&rng);
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  return finish_fst(builder);
}

wf_fst *oracle_emissions(uint32_t num_states, uint32_t num_labels, uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  wf_builder *builder = start_fst(num_states, num_states - 1);
  for (uint32_t s = 0; s + 1 < num_states; s++)
    for (int32_t label = 1; label <= (int32_t)num_labels; label++)
      assert_ok(wf_builder_add_arc(
          builder, s,
          (wf_arc){.nextstate = s + 1, .weight = test_unit(&rng), .ilabel = label, .olabel = label},
          &err));
  return finish_fst(builder);
}

wf_fst *oracle_words(uint32_t num_words, uint32_t num_labels, uint64_t seed) {
  wf_error err = {0};
  test_rng rng = {seed};
  wf_builder *builder = start_fst(2, 0);
  uint32_t state;
  assert_ok(wf_builder_add_arc(builder, 0, (wf_arc){.nextstate = 1}, &err));
  for (uint32_t word = 1; word <= num_words; word++) {
    uint32_t length = 1 + test_below(&rng, 12), from = 1;
    for (uint32_t k = 0; k < length; k++, from = state) {
      assert_ok(wf_builder_add_states(builder, 1, &state, &err));
      wf_arc arc = {.nextstate = state,
                    .ilabel = k == 0 ? (int32_t)word : 0,
                    .olabel = 1 + (int32_t)test_below(&rng, num_labels)};
      assert_ok(wf_builder_add_arc(builder, from, arc, &err));
    }
    assert_ok(wf_builder_add_arc(builder, from, (wf_arc){.nextstate = 0}, &err));
  }
  return finish_fst(builder);
}
