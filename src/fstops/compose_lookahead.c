/* compose_lookahead.c - the labels that can come next, by state.
 *
 * Labels that both sides have are numbered in the order in which a depth-first search over a's
 * output epsilons completes them. What a state can write next is then a set of few intervals, and a
 * single one if the search is a tree. States that reach each other by output epsilons share a set.
 * The numbers of the labels that a state of b reads are sorted, so one look-up per interval tells
 * whether the sets meet. */
#include "fstops/compose_lookahead.h"

#include "base/interrupt.h"
#include "base/map64.h"
#include "fstops/scc.h"

/* Sets that need this many times as many intervals as there are states and arcs are not worth it.
 */
enum { MAX_SHARE = 4 };

struct interval {
  uint32_t low, high; /* [low, high) */
};

struct wf__lookahead {
  const wf__compose_side *b;
  wf__scc scc;   /* of a, over output epsilons */
  uint64_t *off; /* [components + 1] */
  WF__VEC(struct interval)
  sets;                      /* of component k: off[k + 1] .. off[k], as they are made from the
                                last to the first */
  uint8_t *ends;             /* [components] a final state can be reached */
  uint64_t *b_off;           /* [states of b + 1] */
  uint32_t *b_numbers;       /* of the labels of each state, sorted */
  const wf__pushed *pushed;  /* NULL: labels are not pushed */
  WF__VEC(int32_t) label_of; /* label of each number, if labels are pushed */
};

/* --- numbers of labels ------------------------------------------------------------------- */

struct labels {
  wf__map64 of_b;           /* label -> index in `number` */
  WF__VEC(uint32_t) number; /* UINT32_MAX: a does not have the label, so far */
  uint32_t count;
};

static wf_status list_labels(const wf__compose_side *b, struct labels *labels, wf_error *err) {
  int32_t previous = 0;
  for (uint64_t i = 0; i < b->view.num_arcs; i++) {
    int32_t label = wf__compose_label(b, i);
    uint32_t place;
    bool fresh;
    if (label == 0 || label == previous) continue;
    previous = label;
    WF__TRY(wf__map64_insert(&labels->of_b, (uint64_t)label, (uint32_t)labels->number.size, &place,
                             &fresh, "labels", err));
    if (fresh) WF__TRY(wf__vec_push(&labels->number, UINT32_MAX, "labels", err));
  }
  return WF_OK;
}

/* The number of a label, or UINT32_MAX if b does not have it. */
static uint32_t number_of(struct labels *labels, int32_t label) {
  uint32_t place = wf__map64_find(&labels->of_b, (uint64_t)label);
  if (place == WF__MAP64_NONE) return UINT32_MAX;
  uint32_t *number = &labels->number.data[place];
  if (*number == UINT32_MAX) *number = labels->count++;
  return *number;
}

/* --- sets of a --------------------------------------------------------------------------- */

static int compare_intervals(const void *x, const void *y) {
  const struct interval *a = x, *b = y;
  return (a->low > b->low) - (a->low < b->low);
}

/* Sorts the intervals from `first` on, and joins those that overlap or touch. */
static void join_intervals(wf__lookahead *self, uint64_t first) {
  struct interval *sets = self->sets.data;
  uint64_t kept = first;
  if (self->sets.size == first) return;
  qsort(sets + first, self->sets.size - first, sizeof *sets, compare_intervals);
  for (uint64_t i = first + 1; i < self->sets.size; i++) {
    if (sets[i].low > sets[kept].high)
      sets[++kept] = sets[i];
    else if (sets[i].high > sets[kept].high)
      sets[kept].high = sets[i].high;
  }
  self->sets.size = kept + 1;
}

/* Adds what an arc contributes to the set of its component. */
static wf_status add_arc(wf__lookahead *self, struct labels *labels, uint32_t component,
                         const wf_arc *arc, wf_error *err) {
  uint32_t to = self->scc.component[arc->nextstate];
  if (arc->olabel != 0) {
    uint32_t number = number_of(labels, arc->olabel);
    struct interval single = {number, number + 1};
    return number == UINT32_MAX ? WF_OK : wf__vec_push(&self->sets, single, "label sets", err);
  }
  if (to == component) return WF_OK;
  uint64_t first = self->off[to + 1], count = self->off[to] - first;
  self->ends[component] |= self->ends[to];
  WF__TRY(wf__vec_grow(&self->sets, count, "label sets", err));
  for (uint64_t i = 0; i < count; i++)
    self->sets.data[self->sets.size++] = self->sets.data[first + i];
  return WF_OK;
}

/* Components are in topological order, so those that an arc leads to are complete. */
static wf_status make_sets(wf__lookahead *self, const wf_fst_view *a, struct labels *labels,
                           bool *fits, wf_error *err) {
  const wf__scc *scc = &self->scc;
  const uint64_t most = MAX_SHARE * (a->num_states + a->num_arcs + self->b->view.num_arcs);
  self->off[scc->num_components] = 0;
  *fits = true;
  for (uint32_t c = scc->num_components; c-- > 0 && *fits;) {
    uint64_t first = self->sets.size;
    WF__TRY(wf__interrupted_at(c, err));
    for (uint32_t k = scc->off[c]; k < scc->off[c + 1]; k++) {
      uint32_t s = scc->order[k];
      self->ends[c] |= wf__is_final(a, s);
      for (uint64_t i = a->arc_off[s]; i < a->arc_off[s + 1]; i++)
        WF__TRY(add_arc(self, labels, c, &a->arcs[i], err));
    }
    join_intervals(self, first);
    self->off[c] = self->sets.size;
    *fits = self->sets.size <= most;
  }
  return WF_OK;
}

/* --- labels of b ------------------------------------------------------------------------- */

static int compare_numbers(const void *x, const void *y) {
  uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return (a > b) - (a < b);
}

static void number_b(wf__lookahead *self, const struct labels *labels) {
  const wf__compose_side *b = self->b;
  uint64_t at = 0;
  for (uint64_t s = 0; s < b->view.num_states; s++) {
    self->b_off[s] = at;
    for (uint64_t i = b->view.arc_off[s]; i < b->view.arc_off[s + 1]; i++) {
      int32_t label = wf__compose_label(b, i);
      if (label == 0) continue;
      uint32_t number = labels->number.data[wf__map64_find(&labels->of_b, (uint64_t)label)];
      if (number != UINT32_MAX) self->b_numbers[at++] = number;
    }
    if (at > self->b_off[s] + 1)
      qsort(self->b_numbers + self->b_off[s], at - self->b_off[s], sizeof(uint32_t),
            compare_numbers);
  }
  self->b_off[b->view.num_states] = at;
}

/* --- the calls --------------------------------------------------------------------------- */

static wf_status prepare(wf__lookahead *self, const wf_fst_view *a, struct labels *labels,
                         bool *fits, wf_error *err) {
  WF__TRY(list_labels(self->b, labels, err));
  WF__TRY(wf__scc_find(a, WF__ARCS_OUTPUT_EPSILON, &self->scc, err));
  uint64_t num_sets = self->scc.num_components, num_b = self->b->view.num_states,
           num_arcs = self->b->view.num_arcs;
  self->off = wf__alloc(num_sets + 1, sizeof *self->off);
  self->ends = wf__calloc(num_sets, 1);
  self->b_off = wf__alloc(num_b + 1, sizeof *self->b_off);
  self->b_numbers = wf__alloc(num_arcs, sizeof *self->b_numbers);
  if (self->off == NULL || self->ends == NULL || self->b_off == NULL || self->b_numbers == NULL)
    return wf__fail_memory(err, (num_sets + num_b) * 9 + num_arcs * 4, "label sets");
  WF__TRY(make_sets(self, a, labels, fits, err));
  number_b(self, labels);
  return WF_OK;
}

/* Lists the labels by their numbers. */
static wf_status invert_numbers(wf__lookahead *self, const struct labels *labels, wf_error *err) {
  const wf__compose_side *b = self->b;
  WF__TRY(wf__vec_grow(&self->label_of, labels->count, "labels", err));
  self->label_of.size = labels->count;
  for (uint64_t i = 0; i < b->view.num_arcs; i++) {
    int32_t label = wf__compose_label(b, i);
    if (label == 0) continue;
    uint32_t number = labels->number.data[wf__map64_find(&labels->of_b, (uint64_t)label)];
    if (number != UINT32_MAX) self->label_of.data[number] = label;
  }
  return WF_OK;
}

wf_status wf__lookahead_create(const wf__compose_side *a, const wf__compose_side *b,
                               const wf__pushed *pushed, wf__lookahead **out, wf_error *err) {
  bool fits = false;
  struct labels labels = {0};
  *out = NULL;
  wf__lookahead *self = wf__calloc(1, sizeof *self);
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "label sets");
  self->b = b;
  self->pushed = pushed;
  wf_status status = prepare(self, &a->view, &labels, &fits, err);
  if (status == WF_OK && fits && pushed != NULL) status = invert_numbers(self, &labels, err);
  wf__map64_free(&labels.of_b);
  wf__vec_free(&labels.number);
  if (status == WF_OK && fits)
    *out = self;
  else
    wf__lookahead_free(self);
  return status;
}

void wf__lookahead_free(wf__lookahead *lookahead) {
  if (lookahead == NULL) return;
  wf__scc_free(&lookahead->scc);
  free(lookahead->off);
  free(lookahead->ends);
  free(lookahead->b_off);
  free(lookahead->b_numbers);
  wf__vec_free(&lookahead->sets);
  wf__vec_free(&lookahead->label_of);
  free(lookahead);
}

/* The first of the sorted numbers that is at least `least`. */
static uint64_t lower_bound(const uint32_t *numbers, uint64_t count, uint32_t least) {
  uint64_t low = 0, high = count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (numbers[middle] < least)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Is one of the sorted numbers in the interval? */
static bool meets(const uint32_t *numbers, uint64_t count, struct interval interval) {
  uint64_t at = lower_bound(numbers, count, interval.low);
  return at < count && numbers[at] < interval.high;
}

bool wf__lookahead_alive(const wf__lookahead *self, uint32_t a, uint32_t b) {
  const wf__compose_side *side = self->b;
  uint32_t set = self->scc.component[a];
  uint64_t first = side->view.arc_off[b], count = self->b_off[b + 1] - self->b_off[b];
  if (first < side->view.arc_off[b + 1] && wf__compose_label(side, first) == 0)
    return true; /* b can move alone */
  if (self->ends[set] && wf__is_final(&side->view, b)) return true;
  const uint32_t *numbers = self->b_numbers + self->b_off[b];
  for (uint64_t i = self->off[set + 1]; i < self->off[set]; i++)
    if (meets(numbers, count, self->sets.data[i])) return true;
  return false;
}

bool wf__lookahead_pushes(const wf__lookahead *self) { return self->pushed != NULL; }

/* The number of labels that both can take next: 0, 1, or 2 for more. `*out_number`: the last one.
 */
static int count_common(const wf__lookahead *self, uint32_t a, uint32_t b, uint32_t *out_number) {
  const uint32_t *numbers = self->b_numbers + self->b_off[b];
  const uint32_t set = self->scc.component[a];
  const uint64_t count = self->b_off[b + 1] - self->b_off[b];
  int common = 0;
  for (uint64_t i = self->off[set + 1]; i < self->off[set]; i++) {
    const struct interval interval = self->sets.data[i];
    for (uint64_t at = lower_bound(numbers, count, interval.low);
         at < count && numbers[at] < interval.high; at++) {
      if (++common == 2) return 2;
      *out_number = numbers[at];
    }
  }
  return common;
}

bool wf__lookahead_push(const wf__lookahead *self, uint32_t a, uint32_t *b, wf_arc *arc) {
  const wf__compose_side *side = self->b;
  const uint64_t first = side->view.arc_off[*b];
  uint32_t number;
  uint64_t begin, end;
  if (first < side->view.arc_off[*b + 1] && wf__compose_label(side, first) == 0) return true;
  const bool can_end = self->ends[self->scc.component[a]] && wf__is_final(&side->view, *b);
  const int common = count_common(self, a, *b, &number);
  if (common != 1 || can_end || arc->olabel != 0 || *b >= self->pushed->num_states)
    return common > 0 || can_end;
  wf__compose_find(side, *b, self->label_of.data[number], &begin, &end);
  if (end - begin != 1) return true;
  const wf_arc *only = &side->view.arcs[begin];
  arc->olabel = only->olabel;
  arc->weight += only->weight;
  *b = wf__map64_find(&self->pushed->waiting, wf__pushed_key(only));
  return true;
}
