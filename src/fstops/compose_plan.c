/* compose_plan.c - prepares a dense composition: numbers the labels that both inputs have, makes
 * links and steps between rows, and sorts the arcs of b by label. */
#include <string.h>

#include "base/map64.h"
#include "fstops/compose_rows.h"

enum { INSERTION_MAX = 24 };
/* The table of arcs by label has at most MAX_CELLS cells, and CELLS_PER_ARC more for each arc. */
#define MAX_CELLS ((uint64_t)1 << 22)
#define CELLS_PER_ARC 16

/* The numbering of labels, used while the plan is made. */
struct labels {
  wf__map64 of_a;   /* output label of a -> index in `number` */
  uint32_t *number; /* 0 if b does not have the label */
  uint32_t *like;   /* [num_labels] the first label that moves the states of b in the same way */
  uint32_t count;   /* number of labels, with epsilon */
  bool raw;         /* labels are used as numbers; the other fields are empty */
};

/* --- labels ------------------------------------------------------------------------------ */

/* Returns the number of a label other than epsilon, or 0 if one side does not have it. */
static uint32_t number_of(const struct labels *labels, int32_t label) {
  if (labels->raw) return (uint32_t)label;
  uint32_t place = wf__map64_find(&labels->of_a, (uint64_t)label);
  return place == WF__MAP64_NONE ? 0 : labels->number[place];
}

static wf_status number_labels(const wf__compose_job *job, struct labels *labels, wf_error *err) {
  uint32_t place;
  int32_t previous = 0;
  for (uint64_t i = 0; i < job->a->view.num_arcs; i++) {
    int32_t label = job->a->labels[i];
    if (label != 0 && label != previous)
      WF__TRY(wf__map64_insert(&labels->of_a, (uint64_t)label, (uint32_t)labels->of_a.size, &place,
                               NULL, "labels", err));
    previous = label;
  }
  labels->number = wf__calloc(labels->of_a.size, sizeof *labels->number);
  if (labels->number == NULL)
    return wf__fail_memory(err, labels->of_a.size * sizeof *labels->number, "labels");
  labels->count = 1;
  for (uint64_t i = 0; i < job->b->view.num_arcs; i++) {
    if (job->b->labels[i] == 0) continue;
    place = wf__map64_find(&labels->of_a, (uint64_t)job->b->labels[i]);
    if (place != WF__MAP64_NONE && labels->number[place] == 0)
      labels->number[place] = labels->count++;
  }
  return WF_OK;
}

/* --- arcs of b by label ------------------------------------------------------------------ */

static void add_up(uint32_t *off, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) off[i + 1] += off[i];
}

static wf_status alloc_moves(wf__label_moves *moves, uint64_t num_cells, uint64_t num_arcs,
                             bool with_arcs, wf_error *err) {
  moves->off = wf__calloc(num_cells + 1, sizeof *moves->off);
  moves->from = wf__alloc(num_arcs, sizeof *moves->from);
  moves->to = wf__alloc(num_arcs, sizeof *moves->to);
  moves->arc = with_arcs ? wf__alloc(num_arcs, sizeof *moves->arc) : NULL;
  if (moves->off == NULL || moves->from == NULL || moves->to == NULL ||
      (with_arcs && moves->arc == NULL))
    return wf__fail_memory(err, num_cells * 4 + num_arcs * 12, "arcs by label");
  return WF_OK;
}

/* Counting sort by cell (label, state). Pass 0 counts in off[cell + 2]. After the prefix sum,
 * off[cell + 1] is the first index of a cell. Pass 1 increments it for each arc, so it ends as the
 * first index of the next cell. */
static wf_status sort_moves(wf__row_plan *plan, const wf__compose_job *job,
                            const struct labels *labels, wf_error *err) {
  uint64_t num_b = plan->b.num_states, num_cells = labels->count * num_b,
           num_arcs = plan->b.num_arcs;
  wf__label_moves *moves = &plan->moves;
  WF__TRY(alloc_moves(moves, num_cells + 1, num_arcs, true, err));
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t s = 0; s < num_b; s++) {
      for (uint64_t i = plan->b.arc_off[s]; i < plan->b.arc_off[s + 1]; i++) {
        uint32_t number = job->b->labels[i] == 0 ? 0 : number_of(labels, job->b->labels[i]);
        if (number == 0 && job->b->labels[i] != 0) continue;
        uint64_t cell = number * num_b + s;
        if (pass == 0) {
          moves->off[cell + 2]++;
        } else {
          uint32_t at = moves->off[cell + 1]++;
          moves->from[at] = (uint32_t)s;
          moves->to[at] = plan->b.arcs[i].nextstate;
          moves->arc[at] = (uint32_t)i;
        }
      }
    }
    if (pass == 0) add_up(moves->off + 1, num_cells);
  }
  return WF_OK;
}

/* Sorts the same arcs by (label, target state). */
static wf_status reverse_moves(wf__row_plan *plan, wf_error *err) {
  uint64_t num_b = plan->b.num_states, num_cells = plan->num_labels * num_b;
  const wf__label_moves *moves = &plan->moves;
  wf__label_moves *back = &plan->back_moves;
  WF__TRY(alloc_moves(back, num_cells + 1, moves->off[num_cells], false, err));
  for (uint64_t cell = 0; cell < num_cells; cell++)
    for (uint32_t i = moves->off[cell]; i < moves->off[cell + 1]; i++)
      back->off[cell - cell % num_b + moves->to[i] + 2]++;
  add_up(back->off + 1, num_cells);
  for (uint64_t cell = 0; cell < num_cells; cell++) {
    for (uint32_t i = moves->off[cell]; i < moves->off[cell + 1]; i++) {
      uint32_t at = back->off[cell - cell % num_b + moves->to[i] + 1]++;
      back->from[at] = moves->to[i];
      back->to[at] = moves->from[i];
    }
  }
  return WF_OK;
}

/* Hash of the moves of a label. same_moves compares them exactly. */
static uint64_t hash_moves(const wf__row_plan *plan, uint64_t label) {
  uint64_t num_b = plan->b.num_states, hash = 0;
  for (uint64_t s = 0; s < num_b; s++)
    for (uint32_t i = plan->moves.off[label * num_b + s];
         i < plan->moves.off[label * num_b + s + 1]; i++)
      hash = wf__hash_combine(hash, s << 32 | plan->moves.to[i]);
  return hash == WF__MAP64_EMPTY ? 0 : hash;
}

static bool same_moves(const wf__row_plan *plan, uint64_t x, uint64_t y) {
  uint64_t num_b = plan->b.num_states;
  const uint32_t *p = plan->moves.off + x * num_b, *q = plan->moves.off + y * num_b;
  if (p[num_b] - p[0] != q[num_b] - q[0]) return false;
  for (uint64_t s = 0; s < num_b; s++)
    if (p[s + 1] - p[s] != q[s + 1] - q[s]) return false;
  return memcmp(plan->moves.to + p[0], plan->moves.to + q[0],
                (p[num_b] - p[0]) * sizeof *plan->moves.to) == 0;
}

static wf_status find_alike(const wf__row_plan *plan, struct labels *labels, wf_error *err) {
  wf__map64 seen = {0};
  wf_status status = WF_OK;
  labels->like = wf__alloc(labels->count, sizeof *labels->like);
  if (labels->like == NULL)
    return wf__fail_memory(err, labels->count * sizeof *labels->like, "labels");
  for (uint32_t label = 0; label < labels->count && status == WF_OK; label++) {
    uint32_t first = label;
    status = wf__map64_insert(&seen, hash_moves(plan, label), label, &first, NULL, "labels", err);
    labels->like[label] = status == WF_OK && same_moves(plan, first, label) ? first : label;
  }
  wf__map64_free(&seen);
  return status;
}

/* --- links ------------------------------------------------------------------------------- */

struct link_sink {
  wf__row_link *at; /* NULL: links are only counted */
  uint64_t count;
};

static void add_link(struct link_sink *sink, uint64_t row, uint32_t kind, uint32_t arc) {
  if (sink->at != NULL) *sink->at++ = (wf__row_link){(uint32_t)row, kind, arc};
  sink->count++;
}

/* Adds the links of an arc of a with output epsilon while b waits. The next filter state may depend
 * on the kind of b's state (enum wf__epsilons). If it does not, one link is enough; otherwise there
 * is one for each kind. */
static void add_alone(struct link_sink *sink, const wf__row_plan *plan, int filter_state,
                      int a_kind, uint32_t arc) {
  uint64_t next = (uint64_t)plan->a.arcs[arc].nextstate * plan->num_filters;
  int to[WF__NUM_EPSILONS];
  bool same = true;
  for (int kind = 0; kind < WF__NUM_EPSILONS; kind++) {
    to[kind] = wf__moves_of(plan->filter, filter_state, a_kind, kind).a_alone;
    same = same && to[kind] == to[0];
  }
  if (same && to[0] != WF__BLOCKED) add_link(sink, next + (uint64_t)to[0], WF__STEP_STAY, arc);
  for (int kind = 0; kind < WF__NUM_EPSILONS && !same; kind++)
    if (to[kind] != WF__BLOCKED && (uint32_t)to[kind] < plan->num_filters)
      add_link(sink, next + (uint64_t)to[kind], WF__STEP_STAY_IF + (uint32_t)kind, arc);
}

/* Adds the links of a row in canonical order. */
static void links_of(const wf__row_plan *plan, const wf__compose_side *a,
                     const struct labels *labels, bool b_has_epsilons, uint64_t row,
                     struct link_sink *sink) {
  uint64_t state = row / plan->num_filters, begin = a->view.arc_off[state],
           end = a->view.arc_off[state + 1], i = begin;
  int filter_state = (int)(row % plan->num_filters);
  while (i < end && a->labels[i] == 0) i++;
  int a_kind = wf__epsilons_of(end - begin, i - begin, wf__is_final(&a->view, state));
  struct wf__moves moves = wf__moves_of(plan->filter, filter_state, a_kind, WF__SOME_EPSILONS);
  if (b_has_epsilons && moves.b_alone != WF__BLOCKED && (uint32_t)moves.b_alone < plan->num_filters)
    add_link(sink, state * plan->num_filters + (uint64_t)moves.b_alone, WF__STEP_LABEL, WF_NO_ARC);
  for (uint64_t k = begin; k < i; k++) {
    add_alone(sink, plan, filter_state, a_kind, (uint32_t)k);
    if (b_has_epsilons && moves.both != WF__BLOCKED)
      add_link(sink, (uint64_t)a->view.arcs[k].nextstate * plan->num_filters, WF__STEP_LABEL,
               (uint32_t)k);
  }
  uint32_t number = 0;
  for (int32_t previous = 0; i < end; i++) {
    if (a->labels[i] != previous) number = number_of(labels, a->labels[i]);
    previous = a->labels[i];
    if (number != 0)
      add_link(sink,
               (uint64_t)a->view.arcs[i].nextstate * plan->num_filters + (uint64_t)moves.label,
               WF__STEP_LABEL + number, (uint32_t)i);
  }
}

static wf_status make_links(wf__row_plan *plan, const wf__compose_job *job,
                            const struct labels *labels, wf_error *err) {
  struct link_sink sink = {0};
  plan->link_off = wf__alloc(plan->num_rows + 1, sizeof *plan->link_off);
  if (plan->link_off == NULL)
    return wf__fail_memory(err, plan->num_rows * sizeof *plan->link_off, "links of rows");
  for (uint64_t row = 0; row < plan->num_rows; row++) {
    plan->link_off[row] = sink.count;
    links_of(plan, job->a, labels, job->b->has_epsilons, row, &sink);
  }
  plan->link_off[plan->num_rows] = sink.count;
  plan->links = wf__alloc(sink.count, sizeof *plan->links);
  if (plan->links == NULL)
    return wf__fail_memory(err, sink.count * sizeof *plan->links, "links of rows");
  sink.at = plan->links;
  for (uint64_t row = 0; row < plan->num_rows; row++)
    links_of(plan, job->a, labels, job->b->has_epsilons, row, &sink);
  return WF_OK;
}

/* --- steps ------------------------------------------------------------------------------- */

static int compare_steps(const void *x, const void *y) {
  const wf__row_step *p = x, *q = y;
  if (p->kind != q->kind) return p->kind < q->kind ? -1 : 1;
  return p->row < q->row ? -1 : p->row > q->row;
}

static void sort_steps(wf__row_step *steps, uint64_t count) {
  if (count > INSERTION_MAX) {
    qsort(steps, count, sizeof *steps, compare_steps);
    return;
  }
  for (uint64_t i = 1; i < count; i++) {
    wf__row_step step = steps[i];
    uint64_t at = i;
    for (; at > 0 && compare_steps(&steps[at - 1], &step) > 0; at--) steps[at] = steps[at - 1];
    steps[at] = step;
  }
}

/* Sorts each row's steps and removes duplicates. */
static void tidy_steps(wf__row_steps *steps, uint64_t num_rows) {
  uint64_t at = 0, begin = 0;
  for (uint64_t row = 0; row < num_rows; row++) {
    uint64_t end = steps->off[row + 1], first = at;
    sort_steps(steps->data + begin, end - begin);
    for (uint64_t i = begin; i < end; i++)
      if (at == first || compare_steps(&steps->data[at - 1], &steps->data[i]) != 0)
        steps->data[at++] = steps->data[i];
    begin = end;
    steps->off[row + 1] = at;
  }
}

static wf_status make_steps(wf__row_plan *plan, const struct labels *labels, bool backward,
                            wf__row_steps *steps, wf_error *err) {
  uint64_t count = plan->link_off[plan->num_rows];
  steps->off = wf__calloc(plan->num_rows + 2, sizeof *steps->off);
  steps->data = wf__alloc(count, sizeof *steps->data);
  if (steps->off == NULL || steps->data == NULL)
    return wf__fail_memory(err, (plan->num_rows + count) * 8, "steps of rows");
  for (int pass = 0; pass < 2; pass++) { /* pass 0 counts, pass 1 fills (see sort_moves) */
    for (uint64_t row = 0; row < plan->num_rows; row++) {
      for (uint64_t i = plan->link_off[row]; i < plan->link_off[row + 1]; i++) {
        const wf__row_link *link = &plan->links[i];
        uint32_t kind = link->kind < WF__STEP_LABEL
                            ? link->kind
                            : WF__STEP_LABEL + labels->like[link->kind - WF__STEP_LABEL];
        uint64_t at = backward ? link->row : row;
        if (pass == 0)
          steps->off[at + 2]++;
        else
          steps->data[steps->off[at + 1]++] =
              (wf__row_step){backward ? (uint32_t)row : link->row, kind};
      }
    }
    for (uint64_t row = 0; pass == 0 && row < plan->num_rows; row++)
      steps->off[row + 2] += steps->off[row + 1];
  }
  tidy_steps(steps, plan->num_rows);
  return WF_OK;
}

/* --- the plan ---------------------------------------------------------------------------- */

static wf_status make_masks(wf__row_plan *plan, const wf__compose_side *b, wf_error *err) {
  uint64_t *words = wf__calloc(plan->num_words * (2 + WF__NUM_EPSILONS), sizeof *words);
  if (words == NULL) return wf__fail_memory(err, plan->num_words * 48, "masks of states");
  for (int kind = 0; kind <= WF__NUM_EPSILONS; kind++)
    plan->stay[kind] = words + (uint64_t)kind * plan->num_words;
  plan->final_bits = words + (1 + WF__NUM_EPSILONS) * plan->num_words;
  for (uint64_t s = 0; s < plan->b.num_states; s++) {
    uint64_t begin = b->view.arc_off[s], end = b->view.arc_off[s + 1], i = begin;
    while (i < end && b->labels[i] == 0) i++;
    int kind = wf__epsilons_of(end - begin, i - begin, wf__is_final(&b->view, s));
    wf__bit_set(plan->stay[0], s);
    wf__bit_set(plan->stay[1 + kind], s);
    if (wf__is_final(&b->view, s)) wf__bit_set(plan->final_bits, s);
  }
  return WF_OK;
}

static wf_status make_plan(wf__row_plan *plan, const wf__compose_job *job, struct labels *labels,
                           bool *out_fits, wf_error *err) {
  WF__TRY(number_labels(job, labels, err));
  plan->num_labels = labels->count;
  uint64_t max_cells = MAX_CELLS + CELLS_PER_ARC * plan->b.num_arcs;
  *out_fits = labels->count <=
              (max_cells < UINT32_MAX / 2 ? max_cells : UINT32_MAX / 2) / plan->b.num_states;
  if (!*out_fits) return WF_OK;
  WF__TRY(sort_moves(plan, job, labels, err));
  WF__TRY(reverse_moves(plan, err));
  WF__TRY(find_alike(plan, labels, err));
  WF__TRY(make_masks(plan, job->b, err));
  WF__TRY(make_links(plan, job, labels, err));
  WF__TRY(make_steps(plan, labels, false, &plan->forward, err));
  return job->connect ? make_steps(plan, labels, true, &plan->backward, err) : WF_OK;
}

static wf__row_plan empty_plan(const wf__compose_job *job) {
  uint32_t num_filters =
      (uint32_t)wf__num_filter_states(job->filter, job->a->has_epsilons, job->b->has_epsilons);
  return (wf__row_plan){.a = job->a->view,
                        .b = job->b->view,
                        .filter = job->filter,
                        .num_filters = num_filters,
                        .num_rows = job->a->view.num_states * num_filters,
                        .num_words = (job->b->view.num_states + 63) / 64,
                        .start_row = (uint64_t)job->a->view.start * num_filters};
}

wf_status wf__compose_plan_links(const wf__compose_job *job, wf__row_plan *plan, wf_error *err) {
  const struct labels labels = {.raw = true};
  *plan = empty_plan(job);
  wf_status status = make_links(plan, job, &labels, err);
  if (status != WF_OK) wf__compose_plan_free(plan);
  return status;
}

wf_status wf__compose_plan(const wf__compose_job *job, wf__row_plan *plan, bool *out_fits,
                           wf_error *err) {
  struct labels labels = {0};
  *plan = empty_plan(job);
  wf_status status = make_plan(plan, job, &labels, out_fits, err);
  wf__map64_free(&labels.of_a);
  free(labels.number);
  free(labels.like);
  if (status != WF_OK || !*out_fits) wf__compose_plan_free(plan);
  return status;
}

void wf__compose_plan_free(wf__row_plan *plan) {
  wf__label_moves *moves[] = {&plan->moves, &plan->back_moves};
  wf__row_steps *steps[] = {&plan->forward, &plan->backward};
  for (int i = 0; i < 2; i++) {
    free(moves[i]->off);
    free(moves[i]->from);
    free(moves[i]->to);
    free(moves[i]->arc);
    free(steps[i]->off);
    free(steps[i]->data);
  }
  free(plan->link_off);
  free(plan->links);
  free(plan->stay[0]); /* one allocation for all masks */
  *plan = (wf__row_plan){0};
}
