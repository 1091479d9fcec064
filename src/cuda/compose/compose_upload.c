/* compose_upload.c - concatenates the plans of pairs. Arcs keep their indices in the caller's
 * inputs, so origins need no translation. */
#include "cuda/compose/compose_upload.h"

#include <string.h>

#include "fstops/arcsort.h"
#include "fstops/compose_rows.h"

_Static_assert((int)WF__GPU_STEP_LABEL == (int)WF__STEP_LABEL &&
                   (int)WF__GPU_NUM_MASKS == 2 + (int)WF__NUM_EPSILONS,
               "kinds of steps");

#define MAX_ROW_BYTES ((uint64_t)1 << 35)
#define MAX_CELLS ((uint64_t)1 << 24) /* over both directions */

/* Appends `count` elements to a vector. */
#define APPEND(vec, from, count, what)                                                  \
  do {                                                                                  \
    WF__TRY(wf__vec_grow(vec, (count) + 1, what, err));                                 \
    if ((count) != 0)                                                                   \
      memcpy((vec)->data + (vec)->size, from, (uint64_t)(count) * sizeof *(vec)->data); \
    (vec)->size += (count);                                                             \
  } while (0)

/* The index in the given input of each sorted arc; NULL if the input was sorted already. */
struct places {
  uint32_t *a, *b;
};

static wf_status add_links(wf__gpu_problem *to, const wf__row_plan *plan, const uint32_t *a_place,
                           wf_error *err) {
  uint64_t count = plan->link_off[plan->num_rows], base = to->links.size;
  WF__TRY(wf__vec_grow(&to->links, count + 1, "links of rows", err));
  WF__TRY(wf__vec_grow(&to->link_off, plan->num_rows + 1, "links of rows", err));
  for (uint64_t row = 0; row < plan->num_rows; row++)
    to->link_off.data[to->link_off.size++] = base + plan->link_off[row];
  for (uint64_t i = 0; i < count; i++) {
    wf__row_link link = plan->links[i];
    uint32_t arc = link.arc != WF_NO_ARC && a_place != NULL ? a_place[link.arc] : link.arc;
    to->links.data[to->links.size++] =
        (wf__gpu_link){to->num_words + link.row * plan->num_words, link.kind, arc};
  }
  return WF_OK;
}

static wf_status add_steps(wf__gpu_problem *to, const wf__row_plan *plan, int back,
                           uint64_t row_base, wf_error *err) {
  const wf__row_steps *steps = back ? &plan->backward : &plan->forward;
  uint64_t base = to->steps[back].size, count = steps->off != NULL ? steps->off[plan->num_rows] : 0;
  WF__TRY(wf__vec_grow(&to->steps[back], count + 1, "steps of rows", err));
  WF__TRY(wf__vec_grow(&to->step_off[back], plan->num_rows + 1, "steps of rows", err));
  WF__TRY(wf__vec_grow(&to->run_off[back], plan->num_rows + 1, "steps of rows", err));
  for (uint64_t row = 0; row < plan->num_rows; row++) {
    uint64_t begin = steps->off != NULL ? steps->off[row] : 0,
             end = steps->off != NULL ? steps->off[row + 1] : 0, first_run = to->runs[back].size;
    to->step_off[back].data[to->step_off[back].size++] = base + begin;
    to->run_off[back].data[to->run_off[back].size++] = first_run;
    for (uint64_t i = begin; i < end; i++) {
      wf__row_step step = steps->data[i];
      if (i == begin || step.kind != steps->data[i - 1].kind) {
        WF__TRY(wf__vec_grow(&to->runs[back], 1, "steps of rows", err));
        to->runs[back].data[to->runs[back].size++] = (wf__gpu_run){base + i, step.kind};
      }
      if (to->runs[back].size - first_run > to->max_row_runs)
        to->max_row_runs = (uint32_t)(to->runs[back].size - first_run);
      uint64_t next = base + steps->off[step.row];
      bool only = steps->off[step.row + 1] - steps->off[step.row] == 1 && next < UINT32_MAX;
      to->steps[back].data[to->steps[back].size++] = (wf__gpu_step){
          (uint32_t)(row_base + step.row), step.kind,
          (uint32_t)(to->runs[back].size - 1 - first_run), only ? (uint32_t)next : UINT32_MAX};
    }
  }
  return WF_OK;
}

/* Adds the rows with many steps and their chunks. */
static wf_status add_heavy(wf__gpu_problem *to, const wf__row_plan *plan, int back,
                           uint64_t row_base, wf_error *err) {
  const wf__row_steps *steps = back ? &plan->backward : &plan->forward;
  for (uint64_t row = 0; steps->off != NULL && row < plan->num_rows; row++) {
    uint64_t count = steps->off[row + 1] - steps->off[row];
    if (count <= WF__GPU_HEAVY_STEPS) continue;
    uint32_t heavy = (uint32_t)to->heavy[back].size;
    WF__TRY(wf__vec_push(&to->heavy[back], (uint32_t)(row_base + row), "rows of many steps", err));
    for (uint64_t first = 0; first < count; first += WF__GPU_CHUNK) {
      WF__TRY(wf__vec_grow(&to->chunks[back], 1, "rows of many steps", err));
      to->chunks[back].data[to->chunks[back].size++] = (wf__gpu_chunk){heavy, (uint32_t)first};
    }
  }
  return WF_OK;
}

/* Finds the distance by which all arcs of a label move, and the states that have the label. Arcs
 * are indexed from `moves->to`, like those of the label's cells. */
static wf__gpu_shift shift_of(const wf__row_plan *plan, const wf__label_moves *moves,
                              uint64_t label) {
  wf__gpu_shift shift = {.by = 0};
  const uint32_t *off = moves->off + label * plan->b.num_states;
  bool first = true;
  for (uint64_t s = 0; s < plan->b.num_states; s++) {
    for (uint32_t k = off[s]; k < off[s + 1]; k++) {
      int64_t by = (int64_t)moves->to[k] - (int64_t)s;
      if (by <= -WF__GPU_NO_SHIFT || by >= WF__GPU_NO_SHIFT || (!first && by != shift.by))
        return (wf__gpu_shift){.by = WF__GPU_NO_SHIFT};
      first = false;
      shift.by = (int32_t)by;
      wf__bit_set(shift.from, s);
    }
  }
  return shift;
}

static wf_status add_shifts(wf__gpu_problem *to, const wf__row_plan *plan, int back,
                            wf__gpu_pair *pair, wf_error *err) {
  pair->shift_base[back] = to->shifts.size;
  if (plan->num_words > WF__GPU_NARROW_WORDS) return WF_OK;
  WF__TRY(wf__vec_grow(&to->shifts, plan->num_labels, "labels", err));
  for (uint64_t label = 0; label < plan->num_labels; label++)
    to->shifts.data[to->shifts.size++] =
        shift_of(plan, back ? &plan->back_moves : &plan->moves, label);
  return WF_OK;
}

/* Packs the targets of each (label, state) into one word, so that a search reads once instead of
 * twice. If one pair has too many, no pair gets cells. */
static wf_status add_cells(wf__gpu_problem *to, const wf__label_moves *moves, uint64_t num_cells,
                           uint64_t *out_base, wf_error *err) {
  *out_base = to->cells.size;
  to->no_cells = to->no_cells || to->cells.size + num_cells > MAX_CELLS;
  if (to->no_cells) return WF_OK;
  WF__TRY(wf__vec_grow(&to->cells, num_cells, "arcs by label", err));
  for (uint64_t i = 0; i < num_cells; i++) {
    uint32_t count = moves->off[i + 1] - moves->off[i];
    uint64_t cell = count;
    if (count > WF__GPU_MOST_TARGETS)
      cell = WF__GPU_MANY_TARGETS;
    else
      for (uint32_t k = 0; k < count; k++)
        cell |= (uint64_t)moves->to[moves->off[i] + k] << (4 + k * WF__GPU_TARGET_BITS);
    to->cells.data[to->cells.size++] = cell;
  }
  return WF_OK;
}

/* Adds the arcs by label for both searches; forward also with the fields that the result takes from
 * them. */
static wf_status add_moves(wf__gpu_problem *to, const wf__row_plan *plan, const uint32_t *b_place,
                           wf__gpu_pair *pair, wf_error *err) {
  uint64_t num_cells = plan->num_labels * plan->b.num_states, count = plan->moves.off[num_cells];
  for (int back = 0; back < 2; back++) {
    const wf__label_moves *moves = back ? &plan->back_moves : &plan->moves;
    pair->off_base[back] = to->off.size;
    pair->to_base[back] = to->to.size;
    APPEND(&to->off, moves->off, num_cells + 1, "arcs by label");
    APPEND(&to->to, moves->to, count, "arcs by label");
    WF__TRY(add_shifts(to, plan, back, pair, err));
    WF__TRY(add_cells(to, moves, num_cells, &pair->cell_base[back], err));
  }
  pair->move_base = to->moves.size;
  WF__TRY(wf__vec_grow(&to->moves, count + 1, "arcs by label", err));
  for (uint64_t k = 0; k < count; k++) {
    uint32_t arc = plan->moves.arc[k];
    wf_arc b = plan->b.arcs[arc];
    to->moves.data[to->moves.size++] =
        (wf__gpu_move){plan->moves.to[k], b_place != NULL ? b_place[arc] : arc, b.weight, b.olabel};
  }
  WF__TRY(wf__vec_grow(&to->ends, count + 1, "arcs by label", err));
  for (uint64_t cell = 0; cell < num_cells; cell++)
    for (uint32_t k = plan->moves.off[cell]; k < plan->moves.off[cell + 1]; k++)
      to->ends.data[to->ends.size++] =
          (wf__gpu_ends){(uint32_t)(cell % plan->b.num_states), plan->moves.to[k]};
  return WF_OK;
}

/* Adds the rows, and the segments of rows with many links. */
static wf_status add_rows(wf__gpu_problem *to, const wf__row_plan *plan, uint32_t pair,
                          uint64_t row_base, wf_error *err) {
  WF__TRY(wf__vec_grow(&to->rows, plan->num_rows + 1, "rows", err));
  for (uint64_t row = 0; row < plan->num_rows; row++) {
    uint64_t num_links = plan->link_off[row + 1] - plan->link_off[row];
    to->rows.data[to->rows.size++] = (wf__gpu_row){to->num_words + row * plan->num_words, pair,
                                                   plan->a.final_cost[row / plan->num_filters]};
    for (uint64_t segment = 0; num_links > WF__GPU_SEGMENT && segment * WF__GPU_PART < num_links;
         segment++) {
      uint64_t words = to->part_word.size != 0 ? to->part_word.data[to->part_word.size - 1] : 0;
      if (to->part_word.size == 0) WF__TRY(wf__vec_push(&to->part_word, 0, "parts of rows", err));
      WF__TRY(wf__vec_push(&to->part_word, words + plan->num_words, "parts of rows", err));
      WF__TRY(wf__vec_grow(&to->parts, 1, "parts of rows", err));
      to->parts.data[to->parts.size++] =
          (wf__gpu_part){(uint32_t)(row_base + row), (uint32_t)segment};
    }
  }
  to->num_words += plan->num_rows * plan->num_words;
  return WF_OK;
}

/* Adds the arcs of A as given and the final costs of B, once for an input that consecutive pairs
 * share. */
static wf_status add_inputs(wf__gpu_problem *to, const wf_fst *a, const wf_fst *b,
                            wf__gpu_pair *pair, wf_error *err) {
  wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  if (to->last_a != a) {
    to->last_a_base = to->a_arcs.size;
    APPEND(&to->a_arcs, x.arcs, x.num_arcs, "arcs");
  }
  if (to->last_b != b) {
    to->last_b_final_base = to->b_final.size;
    APPEND(&to->b_final, y.final_cost, y.num_states, "final costs");
  }
  to->last_a = a;
  to->last_b = b;
  pair->a_base = to->last_a_base;
  pair->b_final_base = to->last_b_final_base;
  return WF_OK;
}

static wf_status add_plan(wf__gpu_problem *to, const wf__row_plan *plan, const wf_fst *a,
                          const wf_fst *b, const struct places *places, wf_error *err) {
  uint64_t row_base = to->rows.size;
  wf__gpu_pair pair = {.word_base = to->num_words,
                       .mask_base = to->masks.size,
                       .num_b = (uint32_t)plan->b.num_states,
                       .num_words = (uint32_t)plan->num_words,
                       .first_row = (uint32_t)row_base,
                       .start_row = (uint32_t)(row_base + plan->start_row),
                       .start_b = (uint32_t)plan->b.start};
  APPEND(&to->masks, plan->stay[0], plan->num_words * WF__GPU_NUM_MASKS, "masks of states");
  WF__TRY(add_links(to, plan, places->a, err));
  for (int back = 0; back < 2; back++) WF__TRY(add_steps(to, plan, back, row_base, err));
  for (int back = 0; back < 2; back++) WF__TRY(add_heavy(to, plan, back, row_base, err));
  WF__TRY(add_moves(to, plan, places->b, &pair, err));
  WF__TRY(add_rows(to, plan, (uint32_t)to->pairs.size, row_base, err));
  WF__TRY(add_inputs(to, a, b, &pair, err));
  if (pair.num_words > to->max_words) to->max_words = pair.num_words;
  if (to->num_words - pair.word_base > to->max_pair_words)
    to->max_pair_words = to->num_words - pair.word_base;
  uint64_t num_steps = plan->forward.off[plan->num_rows], work = num_steps * plan->b.num_states,
           effort = work * ((num_steps + plan->num_rows - 1) / plan->num_rows);
  if (work > to->max_pair_work) to->max_pair_work = work;
  if (effort > to->max_pair_effort) to->max_pair_effort = effort;
  if (plan->num_rows > to->max_pair_rows) to->max_pair_rows = plan->num_rows;
  APPEND(&to->pairs, &pair, 1, "pairs");
  return WF_OK;
}

static wf_status add_empty(wf__gpu_problem *to, wf_error *err) {
  wf__gpu_pair pair = {.word_base = to->num_words};
  APPEND(&to->pairs, &pair, 1, "pairs");
  return WF_OK;
}

static wf_status add_pair(wf__gpu_problem *to, const wf__compose_job *job, const wf_fst *a,
                          const wf_fst *b, uint64_t max_cells, uint64_t *out_cells, bool *out_fits,
                          wf_error *err) {
  wf__row_plan plan;
  struct places places = {0};
  uint64_t row_bytes, cells = *out_cells = wf__compose_rows_cells(job, &row_bytes);
  *out_fits = cells <= max_cells && row_bytes <= MAX_ROW_BYTES &&
              (job->b->view.num_states + 63) / 64 <= to->most_words &&
              to->rows.size + cells / job->b->view.num_states < UINT32_MAX;
  if (*out_fits) WF__TRY(wf__compose_plan(job, &plan, out_fits, err));
  if (!*out_fits) return add_empty(to, err);
  wf_status status = job->a->fst != a ? wf__arcsort_places(a, true, &places.a, err) : WF_OK;
  if (status == WF_OK && job->b->fst != b) status = wf__arcsort_places(b, false, &places.b, err);
  if (status == WF_OK) status = add_plan(to, &plan, a, b, &places, err);
  free(places.a);
  free(places.b);
  wf__compose_plan_free(&plan);
  return status;
}

wf_status wf__gpu_problem_add(wf__gpu_problem *problem, const wf_fst *a, const wf_fst *b,
                              const wf_compose_options *options, uint64_t max_cells,
                              uint64_t *out_cells, bool *out_fits, wf_error *err) {
  wf__compose_side a_side = {0}, b_side = {0};
  wf__compose_job job = {.a = &a_side,
                         .b = &b_side,
                         .filter = options->filter,
                         .connect = options->connect,
                         .canonical = true};
  *out_fits = true;
  *out_cells = 0;
  WF__TRY(wf__same_semiring(a, b, err));
  if (wf_fst_get_view(a).start < 0 || wf_fst_get_view(b).start < 0) return add_empty(problem, err);
  wf_status status = wf__compose_side_init(&a_side, a, true, err);
  if (status == WF_OK) status = wf__compose_side_init(&b_side, b, false, err);
  if (status == WF_OK) status = add_pair(problem, &job, a, b, max_cells, out_cells, out_fits, err);
  wf__compose_side_free(&a_side);
  wf__compose_side_free(&b_side);
  return status;
}

void wf__gpu_problem_drop(wf__gpu_problem *problem) { problem->pairs.size--; }

wf_status wf__gpu_problem_close(wf__gpu_problem *problem, wf_error *err) {
  WF__TRY(wf__vec_push(&problem->link_off, problem->links.size, "links of rows", err));
  for (int back = 0; back < 2; back++) {
    WF__TRY(
        wf__vec_push(&problem->step_off[back], problem->steps[back].size, "steps of rows", err));
    WF__TRY(wf__vec_push(&problem->run_off[back], problem->runs[back].size, "steps of rows", err));
  }
  if (problem->part_word.size == 0)
    WF__TRY(wf__vec_push(&problem->part_word, 0, "parts of rows", err));
  return WF_OK;
}

void wf__gpu_problem_free(wf__gpu_problem *problem) {
  wf__vec_free(&problem->pairs);
  wf__vec_free(&problem->rows);
  wf__vec_free(&problem->link_off);
  wf__vec_free(&problem->masks);
  wf__vec_free(&problem->part_word);
  wf__vec_free(&problem->links);
  wf__vec_free(&problem->off);
  wf__vec_free(&problem->to);
  wf__vec_free(&problem->moves);
  wf__vec_free(&problem->ends);
  wf__vec_free(&problem->cells);
  wf__vec_free(&problem->shifts);
  wf__vec_free(&problem->a_arcs);
  wf__vec_free(&problem->b_final);
  wf__vec_free(&problem->parts);
  for (int back = 0; back < 2; back++) {
    wf__vec_free(&problem->step_off[back]);
    wf__vec_free(&problem->steps[back]);
    wf__vec_free(&problem->run_off[back]);
    wf__vec_free(&problem->runs[back]);
    wf__vec_free(&problem->heavy[back]);
    wf__vec_free(&problem->chunks[back]);
  }
}
