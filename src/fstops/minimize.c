/* minimize.c - weighted minimization (Mohri 2000, "Minimization algorithms for sequential
 * transducers").
 *
 *   1. trim
 *   2. push output labels (unless encode_labels), push costs
 *   3. number the symbols (labels and cost bin of an arc) and the final costs
 *   4. partition the states into equivalence classes
 *   5. make one state for each class
 *   6. put the common output prefix and the total cost back
 *
 * Costs are compared in bins of width delta but are not rounded: a class has the costs of its first
 * state. */
#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/minimize_partition.h"
#include "fstops/parallel.h"
#include "fstops/push.h"
#include "fstops/shortest_distance.h"

struct minimizer {
  const wf_fst *fst; /* trimmed */
  wf_fst_view view;
  wf_minimize_options o;
  wf__pool *pool;
  double inverse_delta; /* for wf__cost_bin */
  /* the arcs and final costs after pushing; olabels are strings unless encode_labels */
  wf__csr pushed;
  wf__strings strings;
  uint32_t prefix; /* the output string common to all paths */
  double total;    /* the total cost, which pushing removed */
  uint32_t *symbol;
  uint32_t num_symbols, num_initial;
  bool *unsorted; /* [number of pieces] has states whose input labels do not increase */
  bool nondeterministic;
  bool lost_final;    /* a final cost has become infinite, so the result may not be trimmed */
  uint32_t *class_of; /* [num_states] at first, the class by final cost */
  uint32_t num_classes;
  uint32_t *firsts; /* [num_classes] the first state of each class */
};

static const double distance_delta = 1e-6; /* delta of the distances used for pushing */

static void copy_arrays(const wf_fst_view *view, wf__csr *csr) {
  if (view->num_arcs != 0) memcpy(csr->arcs.data, view->arcs, view->num_arcs * sizeof *view->arcs);
  memcpy(csr->final_cost.data, view->final_cost, view->num_states * sizeof *view->final_cost);
}

static wf_status push(struct minimizer *min, wf_error *err) {
  WF__TRY(wf__strings_init(&min->strings, err));
  const wf_fst_view *view = &min->view; /* pushing does not change the offsets */
  bool copied = !min->o.encode_labels || !min->o.push_weights;
  WF__TRY(wf__vec_grow(&min->pushed.arcs, view->num_arcs + 1, "arcs", err));
  WF__TRY(wf__vec_grow(&min->pushed.final_cost, view->num_states + 1, "states", err));
  min->pushed.arcs.size = view->num_arcs;
  min->pushed.final_cost.size = view->num_states;
  if (copied) copy_arrays(view, &min->pushed);
  if (!min->o.encode_labels) {
    uint32_t *potential;
    WF__TRY(wf__push_labels(&min->view, false, &min->strings, &min->pushed, &potential, err));
    min->prefix = potential[min->view.start];
    free(potential);
  }
  if (!min->o.push_weights) return WF_OK;
  return wf__push_costs(&min->view, false, false, distance_delta, !copied, min->pool, &min->pushed,
                        &min->total, err);
}

static wf_status two_arcs(const struct minimizer *min, uint64_t state, const wf_arc *arc,
                          wf_error *err) {
  const wf_symbols *isymbols = wf_fst_isymbols(min->fst);
  const char *name = isymbols != NULL ? wf_symbols_text(isymbols, arc->ilabel) : NULL;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "not deterministic: state %llu has two arcs with %s label %d (%s); determinize "
                  "first, or set allow_nondet",
                  (unsigned long long)state,
                  min->o.encode_labels ? "the same input and output label; input" : "input",
                  arc->ilabel, name != NULL ? name : "no symbol");
}

/* --- determinism: no two arcs of a state may have the same key --------------------------- */

struct key {
  uint64_t labels;
  uint32_t bin, arc;
};

static int compare_keys(const void *a, const void *b) {
  const struct key *x = a, *y = b;
  if (x->labels != y->labels) return x->labels < y->labels ? -1 : 1;
  if (x->bin != y->bin) return x->bin < y->bin ? -1 : 1;
  return (x->arc > y->arc) - (x->arc < y->arc);
}

struct key_list {
  WF__VEC(struct key) keys;
};

/* Finds two arcs with the same key by sorting. `*arc` is the second of them, or NULL if there are
 * none. */
static wf_status find_repeated(const struct minimizer *min, struct key_list *list,
                               const wf_arc *arcs, uint64_t count, const wf_arc **arc,
                               wf_error *err) {
  *arc = NULL;
  list->keys.size = 0;
  WF__TRY(wf__vec_grow(&list->keys, count, "keys of arcs", err));
  struct key *keys = list->keys.data;
  for (uint64_t i = 0; i < count; i++) {
    keys[i] = (struct key){.labels = (uint64_t)(uint32_t)arcs[i].ilabel << 32, .arc = (uint32_t)i};
    if (min->o.encode_labels || !min->o.push_weights) keys[i].labels |= (uint32_t)arcs[i].olabel;
    if (!min->o.push_weights) keys[i].bin = wf__cost_bin(min->inverse_delta, arcs[i].weight);
  }
  qsort(keys, count, sizeof *keys, compare_keys);
  for (uint64_t i = 1; i < count && *arc == NULL; i++)
    if (keys[i].labels == keys[i - 1].labels && keys[i].bin == keys[i - 1].bin)
      *arc = &arcs[keys[i].arc];
  return WF_OK;
}

/* Input labels that increase are distinct. This is usual after determinization. */
static bool labels_increase(const wf_arc *arcs, uint64_t count) {
  uint64_t i = 1;
  while (i < count && arcs[i - 1].ilabel < arcs[i].ilabel) i++;
  return i >= count;
}

/* Marks the pieces with states whose labels do not increase. */
static void mark_unsorted(void *user, uint64_t piece, int worker) {
  const struct minimizer *min = user;
  const uint64_t *arc_off = min->view.arc_off;
  uint64_t s = piece * WF__PIECE_STATES, end = wf__piece_end(piece, min->view.num_states);
  (void)worker;
  while (s < end &&
         labels_increase(min->pushed.arcs.data + arc_off[s], arc_off[s + 1] - arc_off[s]))
    s++;
  min->unsorted[piece] = s < end;
}

static wf_status check_piece(struct minimizer *min, struct key_list *list, uint64_t piece,
                             wf_error *err) {
  const wf_fst_view *view = &min->view;
  for (uint64_t s = piece * WF__PIECE_STATES; s < wf__piece_end(piece, view->num_states); s++) {
    const wf_arc *arcs = min->pushed.arcs.data + view->arc_off[s], *repeated;
    uint64_t count = view->arc_off[s + 1] - view->arc_off[s];
    if (labels_increase(arcs, count)) continue;
    WF__TRY(find_repeated(min, list, arcs, count, &repeated, err));
    if (repeated == NULL) continue;
    min->nondeterministic = true;
    if (min->o.allow_nondet) return WF_OK;
    return two_arcs(min, s, view->arcs + (repeated - min->pushed.arcs.data), err);
  }
  return WF_OK;
}

static wf_status check_determinism(struct minimizer *min, wf_error *err) {
  struct key_list list = {0};
  uint64_t num_pieces = wf__num_pieces(min->view.num_states);
  min->unsorted = wf__alloc(num_pieces, sizeof *min->unsorted);
  if (min->unsorted == NULL) return wf__fail_memory(err, num_pieces, "minimization");
  wf_status status = wf__pool_try(min->pool, num_pieces, mark_unsorted, min, err);
  for (uint64_t p = 0; p < num_pieces && status == WF_OK && !min->nondeterministic; p++)
    if (min->unsorted[p]) status = check_piece(min, &list, p, err);
  wf__vec_free(&list.keys);
  return status;
}

/* --- partition --------------------------------------------------------------------------- */

/* Gives every arc the number of its symbol: (ilabel, olabel, cost bin). */
static wf_status number_arcs(struct minimizer *min, wf_error *err) {
  wf__map64 pairs = {0}, symbols = {0};
  wf_status status = WF_OK;
  min->symbol = wf__alloc(min->view.num_arcs, sizeof *min->symbol);
  if (min->symbol == NULL)
    return wf__fail_memory(err, min->view.num_arcs * sizeof *min->symbol, "minimization");
  for (uint64_t i = 0; i < min->view.num_arcs && status == WF_OK; i++) {
    const wf_arc *arc = &min->pushed.arcs.data[i];
    uint32_t pair = 0;
    status = wf__interrupted_at(i, err);
    if (status == WF_OK)
      status =
          wf__map64_insert(&pairs, (uint64_t)(uint32_t)arc->ilabel << 32 | (uint32_t)arc->olabel,
                           (uint32_t)pairs.size, &pair, NULL, "symbols", err);
    uint64_t symbol = (uint64_t)pair << 32 | wf__cost_bin(min->inverse_delta, arc->weight);
    if (status == WF_OK)
      status = wf__map64_insert(&symbols, symbol, (uint32_t)symbols.size, &min->symbol[i], NULL,
                                "symbols", err);
  }
  min->num_symbols = (uint32_t)symbols.size;
  wf__map64_free(&pairs);
  wf__map64_free(&symbols);
  return status;
}

static wf_status number_finals(struct minimizer *min, wf_error *err) {
  wf__map64 costs = {0};
  wf_status status = WF_OK;
  for (uint64_t s = 0; s < min->view.num_states && status == WF_OK; s++) {
    float cost = min->pushed.final_cost.data[s];
    min->class_of[s] = 0; /* not final */
    if (cost == INFINITY) continue;
    status =
        wf__map64_insert(&costs, wf__cost_bin(min->inverse_delta, cost), (uint32_t)costs.size + 1,
                         &min->class_of[s], NULL, "final costs", err);
  }
  min->num_initial = (uint32_t)costs.size + 1;
  wf__map64_free(&costs);
  return status;
}

static wf_status partition_cyclic(wf__labelled_graph *graph, struct minimizer *min, wf_error *err) {
  bool stable;
  WF__TRY(wf__partition_rounds(graph, min->pool, min->class_of, &min->num_classes, &stable, err));
  if (stable) return WF_OK;
  WF__TRY(number_arcs(min, err));
  graph->symbol = min->symbol;
  graph->num_symbols = min->num_symbols;
  graph->num_initial = min->num_classes;
  return wf__partition_refine(graph, min->class_of, &min->num_classes, err);
}

static wf_status partition(struct minimizer *min, wf_error *err) {
  wf_fst_view view = min->view;
  if (view.num_arcs >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "minimization supports fewer than 2^32 - 1 arcs");
  min->class_of = wf__alloc(view.num_states, sizeof *min->class_of);
  if (min->class_of == NULL) return wf__fail_memory(err, view.num_states * 4, "minimization");
  WF__TRY(check_determinism(min, err));
  WF__TRY(number_finals(min, err));
  view.arcs = min->pushed.arcs.data;
  wf__labelled_graph graph = {.view = &view,
                              .inverse_delta = min->inverse_delta,
                              .initial = min->class_of,
                              .num_initial = min->num_initial};
  bool acyclic;
  WF__TRY(wf__fst_is_acyclic(min->fst, &acyclic, err));
  if (!acyclic) return partition_cyclic(&graph, min, err);
  wf__scc scc;
  WF__TRY(number_arcs(min, err));
  graph.symbol = min->symbol;
  graph.num_symbols = min->num_symbols;
  WF__TRY(wf__scc_find(&view, WF__ARCS_ALL, &scc, err));
  wf_status status =
      wf__partition_acyclic(&graph, scc.order, min->class_of, &min->num_classes, err);
  wf__scc_free(&scc);
  return status;
}

static int compare_arcs(const void *a, const void *b) {
  const wf_arc *x = a, *y = b;
  if (x->ilabel != y->ilabel) return x->ilabel < y->ilabel ? -1 : 1;
  if (x->olabel != y->olabel) return x->olabel < y->olabel ? -1 : 1;
  if (x->nextstate != y->nextstate) return x->nextstate < y->nextstate ? -1 : 1;
  return (x->weight > y->weight) - (x->weight < y->weight);
}

/* Merges arcs of the last state of csr that have the same labels and target, and sums their costs.
 */
static void merge_arcs(wf__csr *csr, wf_semiring semiring) {
  uint64_t first = csr->arc_off.data[csr->arc_off.size - 1], kept = first;
  wf_arc *arcs = csr->arcs.data;
  if (csr->arcs.size - first < 2) return;
  qsort(arcs + first, csr->arcs.size - first, sizeof *arcs, compare_arcs);
  for (uint64_t i = first + 1; i < csr->arcs.size; i++) {
    wf_arc *last = &arcs[kept];
    if (last->ilabel == arcs[i].ilabel && last->olabel == arcs[i].olabel &&
        last->nextstate == arcs[i].nextstate)
      last->weight =
          wf__cost_to_float(wf__cost_plus(semiring, (double)last->weight, (double)arcs[i].weight));
    else
      arcs[++kept] = arcs[i];
  }
  csr->arcs.size = kept + 1;
}

/* --- one state for each class ------------------------------------------------------------- */

/* Numbers the classes in the order of their first states, which it lists. */
static wf_status number_classes(struct minimizer *min, wf_error *err) {
  uint32_t *number = wf__alloc(min->num_classes, sizeof *number), count = 0;
  min->firsts = wf__alloc(min->num_classes, sizeof *min->firsts);
  if (number == NULL || min->firsts == NULL) {
    free(number);
    return wf__fail_memory(err, (uint64_t)min->num_classes * 8, "minimization");
  }
  memset(number, 0xff, min->num_classes * sizeof *number);
  for (uint64_t s = 0; s < min->view.num_states; s++) {
    uint32_t *class = &number[min->class_of[s]];
    if (*class == UINT32_MAX) {
      min->firsts[count] = (uint32_t)s;
      *class = count++;
    }
    min->class_of[s] = *class;
  }
  min->num_classes = count;
  free(number);
  return WF_OK;
}

/* Makes the targets of the first states' arcs classes. */
static void renumber_piece(void *user, uint64_t piece, int worker) {
  const struct minimizer *min = user;
  const uint64_t *arc_off = min->view.arc_off;
  (void)worker;
  for (uint64_t k = piece * WF__PIECE_STATES; k < wf__piece_end(piece, min->num_classes); k++)
    for (uint64_t i = arc_off[min->firsts[k]]; i < arc_off[min->firsts[k] + 1]; i++)
      min->pushed.arcs.data[i].nextstate = min->class_of[min->pushed.arcs.data[i].nextstate];
}

/* Makes one state for each class, in the order of the classes' first states. It gets the arcs of
 * the first state. The arrays are those of the pushed arcs: a state moves to the front, if at all.
 */
static wf_status quotient(struct minimizer *min, wf__csr *csr, int64_t *start, wf_error *err) {
  const wf_fst_view *view = &min->view;
  WF__TRY(number_classes(min, err));
  WF__TRY(wf__pool_try(min->pool, wf__num_pieces(min->num_classes), renumber_piece, min, err));
  WF__TRY(wf__vec_grow(&min->pushed.arc_off, (uint64_t)min->num_classes + 1, "states", err));
  *csr = min->pushed;
  min->pushed = (wf__csr){0};
  csr->arcs.size = 0;
  for (uint64_t k = 0; k < min->num_classes; k++) {
    uint32_t s = min->firsts[k];
    uint64_t first = view->arc_off[s], count = view->arc_off[s + 1] - first;
    float final_cost = csr->final_cost.data[s];
    if (final_cost == INFINITY && wf__is_final(view, s)) min->lost_final = true;
    csr->arc_off.data[k] = csr->arcs.size;
    csr->final_cost.data[k] = final_cost;
    if (first != csr->arcs.size)
      memmove(csr->arcs.data + csr->arcs.size, csr->arcs.data + first, count * sizeof(wf_arc));
    csr->arcs.size += count;
    csr->arc_off.size = csr->final_cost.size = k + 1;
    if (min->nondeterministic) merge_arcs(csr, view->semiring);
  }
  *start = min->class_of[view->start];
  return WF_OK;
}

/* Puts the total cost back. `*in_front` is the cost to add to the arcs of the start state. If an
 * arc leads back to the start, the total is added to all final costs instead: every path has
 * exactly one final cost, so no state needs to be added. */
static void put_total_back(struct minimizer *min, wf__csr *csr, int64_t start, double *in_front) {
  bool entered = false;
  for (uint64_t i = 0; i < csr->arcs.size && !entered; i++)
    entered = csr->arcs.data[i].nextstate == (uint32_t)start;
  *in_front = entered ? 0 : min->total;
  if (!entered || min->total == 0) return;
  for (uint64_t s = 0; s < csr->final_cost.size; s++) {
    float *cost = &csr->final_cost.data[s];
    if (*cost == INFINITY) continue;
    *cost = wf__cost_to_float((double)*cost + min->total);
    if (*cost == INFINITY) min->lost_final = true;
  }
}

static wf_status delay_labels(struct minimizer *min, wf__csr *csr, int64_t *start, wf_error *err) {
  wf__csr delayed = {0};
  wf__pushed pushed = {.csr = csr};
  bool fits;
  wf_status status =
      wf__delay_labels(&min->strings, &pushed, UINT64_MAX, start, &delayed, &fits, err);
  wf__csr_free(csr);
  *csr = delayed;
  return status;
}

static wf_status minimize(struct minimizer *min, wf__csr *csr, int64_t *start, wf_error *err) {
  double in_front;
  WF__TRY(push(min, err));
  WF__TRY(partition(min, err));
  WF__TRY(quotient(min, csr, start, err));
  put_total_back(min, csr, *start, &in_front);
  WF__TRY(wf__prepend(&min->strings, min->prefix, in_front, csr, start, err));
  return min->o.encode_labels ? WF_OK : delay_labels(min, csr, start, err);
}

static wf_status minimize_trimmed(const wf_fst *fst, const wf_minimize_options *o, wf_fst **out,
                                  wf_error *err) {
  struct minimizer min = {.fst = fst,
                          .view = wf_fst_get_view(fst),
                          .o = *o,
                          .inverse_delta = o->delta > 0 ? 1 / (double)o->delta : 0};
  wf__csr csr = {0};
  int64_t start = -1;
  WF__TRY(wf__pool_for_fst(o->num_threads, &min.view, &min.pool, err));
  wf_status status = min.view.start < 0 ? WF_OK : minimize(&min, &csr, &start, err);
  wf__pool_free(min.pool);
  wf__csr_free(&min.pushed);
  wf__strings_free(&min.strings);
  free(min.symbol);
  free(min.class_of);
  free(min.firsts);
  free(min.unsorted);
  if (status == WF_OK) {
    status = wf__fst_like(&csr, start, fst, out, err);
    /* Delaying labels makes states of its own. */
    if (status == WF_OK && o->encode_labels && !min.lost_final) wf__fst_set_trimmed(*out);
    return status;
  }
  wf__csr_free(&csr);
  return status;
}

wf_status wf_minimize(const wf_fst *fst, const wf_minimize_options *options, wf_fst **out,
                      wf_error *err) {
  *out = NULL;
  wf_minimize_options o;
  WF__TRY(wf__options_take(wf__minimize_table(), options, &o, err));
  wf_fst *trimmed;
  WF__TRY(wf_connect(fst, &trimmed, err));
  /* pushing the output labels of an acceptor would make it a transducer */
  if (!o.encode_labels && wf__fst_local_properties(fst) & WF_PROP_ACCEPTOR) o.encode_labels = true;
  wf_status status = minimize_trimmed(trimmed, &o, out, err);
  wf_fst_free(trimmed);
  return status;
}
