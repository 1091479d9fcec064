/* lattice_oracle_wer.c - the path of a compact lattice that is closest to a reference.
 *
 *     errors(n, q)   fewest insertions, deletions and substitutions of a path to state n against
 *                    the first q words of the reference
 *
 * Each cell keeps its best step, so that the path can be traced back. */
#include <math.h>

#include "lattice/in_arcs.h"

#define MAX_CELLS ((uint64_t)1 << 30)

enum { NO_ARC = UINT32_MAX };

struct cell {
  int32_t errors;
  uint32_t arc; /* into the state, counted from its in_off; NO_ARC: a word of the reference is left
                   out */
  bool pair; /* the arc is aligned with the reference word; otherwise it is an insertion or has no
                word */
};

struct oracle {
  wf__in_arcs in;
  const int32_t *reference;
  uint64_t width; /* length of the reference + 1 */
  struct cell *cells;
};

static void improve(struct cell *cell, int32_t errors, uint32_t arc, bool pair) {
  if (errors < cell->errors) *cell = (struct cell){errors, arc, pair};
}

static void fill_state(struct oracle *o, uint64_t n) {
  struct cell *row = o->cells + n * o->width;
  for (uint64_t q = 0; q < o->width; q++)
    row[q] = (struct cell){n == 0 && q == 0 ? 0 : INT32_MAX, NO_ARC, false};
  for (uint64_t a = o->in.in_off[n]; a < o->in.in_off[n + 1]; a++) {
    const wf__in_arc *arc = &o->in.arcs[a];
    const struct cell *source = o->cells + (uint64_t)arc->source * o->width;
    uint32_t number = (uint32_t)(a - o->in.in_off[n]);
    if (source[0].errors == INT32_MAX || o->in.backward[n] == INFINITY) continue;
    for (uint64_t q = 0; q < o->width; q++) {
      if (q > 0 && arc->word != 0)
        improve(&row[q], source[q - 1].errors + (arc->word != o->reference[q - 1]), number, true);
      improve(&row[q], source[q].errors + (arc->word != 0), number, false);
    }
  }
  for (uint64_t q = 1; q < o->width && row[0].errors != INT32_MAX; q++)
    improve(&row[q], row[q - 1].errors + 1, NO_ARC, false);
}

/* Collects the words of the best path, last first, then reverses them. */
static void trace(const struct oracle *o, int32_t *words, size_t *num_words) {
  uint64_t n = o->in.num_states - 1, q = o->width - 1;
  *num_words = 0;
  while (n != 0 || q != 0) {
    const struct cell *cell = &o->cells[n * o->width + q];
    if (cell->arc == NO_ARC) {
      q--;
      continue;
    }
    const wf__in_arc *arc = &o->in.arcs[o->in.in_off[n] + cell->arc];
    if (arc->word != 0) words[(*num_words)++] = arc->word;
    q -= cell->pair;
    n = arc->source;
  }
  for (size_t i = 0; i < *num_words / 2; i++) {
    int32_t swap = words[i];
    words[i] = words[*num_words - 1 - i];
    words[*num_words - 1 - i] = swap;
  }
}

wf_status wf_compact_lattice_oracle(const wf_compact_lattice *lattice, const int32_t *reference,
                                    size_t num_reference, int32_t **out_words, size_t *out_count,
                                    uint64_t *out_errors, wf_error *err) {
  *out_words = NULL;
  *out_count = 0;
  if (out_errors != NULL) *out_errors = 0;
  wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  struct oracle o = {.reference = reference, .width = (uint64_t)num_reference + 1};
  if (num_reference > INT32_MAX / 2 || (view.num_states + 1) * o.width > MAX_CELLS)
    return wf__fail(err, WF_ERR_LIMIT,
                    "a lattice of %llu states against %zu words is too large; prune it",
                    (unsigned long long)view.num_states, num_reference);
  WF__TRY(wf__in_arcs_make(&view, 1, &o.in, err));
  wf__in_arcs_sum_backward(&o.in);
  wf_status status = WF_OK;
  if (o.in.total == INFINITY)
    WF__TRY_GOTO(
        status,
        wf__fail(err, WF_ERR_ARGUMENT, "the lattice has no path from its start to a final state"),
        done);
  o.cells = wf__alloc(o.in.num_states * o.width, sizeof *o.cells);
  int32_t *words = wf__alloc(o.in.num_states, sizeof *words);
  if (o.cells == NULL || words == NULL) {
    free(words);
    WF__TRY_GOTO(
        status,
        wf__fail_memory(err, o.in.num_states * o.width * sizeof *o.cells, "the closest path"),
        done);
  }
  for (uint64_t n = 0; n < o.in.num_states; n++) fill_state(&o, n);
  trace(&o, words, out_count);
  *out_words = words;
  if (out_errors != NULL) *out_errors = (uint64_t)o.cells[o.in.num_states * o.width - 1].errors;
done:
  free(o.cells);
  wf__in_arcs_free(&o.in);
  return status;
}
