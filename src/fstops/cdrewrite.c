/* cdrewrite.c - context-dependent rewrite rules as transducers, made as Mohri & Sproat describe
 * (1996, "An efficient compiler for weighted rewrite rules").
 *
 * Three labels that no string has mark places in a string:
 *
 *   right   a right context begins here
 *   left    what is rewritten begins here
 *   skip    what could be rewritten begins here, but it is not
 *
 * From left to right: mark right contexts, mark what may be rewritten, rewrite it, check the left
 * contexts of both kinds of marks and remove these. From right to left: the same for the reversed
 * strings. Simultaneously: left contexts are checked before rewriting. The rule is the composition
 * of these steps. */
#include "base/option_tables.h"
#include "fstops/csr_copy.h"

enum { MOST_FSTS = 128 }; /* made for one rule; the longest way makes about 90 */

typedef WF__VEC(int32_t) label_list;

/* A rule being made. Steps take and give fsts that belong to it. After an error they give NULL. */
typedef struct rule_maker {
  wf_fst *fsts[MOST_FSTS];
  size_t num_fsts;
  wf_status status;
  wf_error *err;
  label_list letters; /* of strings, and the labels of their ends if contexts have these; sorted */
  /* Letters of sigma_star that the rule does not name: it copies them all alike. If there are
   * several, only the first one is in `letters` until the rule is made. */
  label_list others;
  int32_t right, left, skip;
} rule_maker;

static const wf_fst *keep(rule_maker *m, wf_status status, wf_fst *fst) {
  m->status = status;
  if (status != WF_OK) return NULL;
  m->fsts[m->num_fsts++] = fst;
  return fst;
}

/* --- operations ------------------------------------------------------------------------ */

typedef wf_status unary_call(const wf_fst *fst, wf_fst **out, wf_error *err);

static const wf_fst *unary(rule_maker *m, unary_call *call, const wf_fst *fst) {
  if (m->status != WF_OK) return NULL;
  wf_fst *made = NULL;
  wf_status status = call(fst, &made, m->err);
  return keep(m, status, made);
}

static wf_status rmepsilon(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf_rmepsilon(fst, NULL, out, err);
}

static wf_status determinize(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf_determinize(fst, NULL, out, err);
}

static wf_status minimize(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf_minimize(fst, NULL, out, err);
}

static wf_status remove_weights(const wf_fst *fst, wf_fst **out, wf_error *err) {
  wf_map_options options;
  wf_map_options_init(&options);
  options.map_type = WF_MAP_RMWEIGHT;
  return wf_map(fst, &options, out, err);
}

static wf_status project_output(const wf_fst *fst, wf_fst **out, wf_error *err) {
  wf_project_options options;
  wf_project_options_init(&options);
  options.project_type = WF_PROJECT_OUTPUT;
  return wf_project(fst, &options, out, err);
}

static wf_status project_input(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf_project(fst, NULL, out, err);
}

static wf_status arcsort(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf_arcsort(fst, NULL, out, err);
}

static wf_status without_symbols(const wf_fst *fst, wf_fst **out, wf_error *err) {
  return wf_fst_with_symbols(fst, NULL, NULL, out, err);
}

static const wf_fst *compose(rule_maker *m, const wf_fst *a, const wf_fst *b) {
  if (m->status != WF_OK) return NULL;
  wf_fst *made = NULL;
  wf_status status = wf_compose(a, b, NULL, &made, m->err);
  return keep(m, status, made);
}

static const wf_fst *concat(rule_maker *m, const wf_fst *a, const wf_fst *b) {
  if (m->status != WF_OK) return NULL;
  wf_fst *made = NULL;
  wf_status status = wf_concat((const wf_fst *[]){a, b}, 2, &made, m->err);
  return keep(m, status, made);
}

/* The minimal deterministic acceptor of the same strings, without weights. */
static const wf_fst *small_acceptor(rule_maker *m, const wf_fst *fst) {
  fst = unary(m, rmepsilon, unary(m, remove_weights, fst));
  return unary(m, minimize, unary(m, determinize, fst));
}

static wf_status encode_and_minimize(wf_encoder *encoder, const wf_fst *fst, wf_fst **out,
                                     wf_error *err) {
  wf_fst *encoded = NULL, *deterministic = NULL, *minimal = NULL;
  wf_status status = wf_encoder_encode(encoder, fst, &encoded, err);
  if (status == WF_OK) status = determinize(encoded, &deterministic, err);
  if (status == WF_OK) status = minimize(deterministic, &minimal, err);
  if (status == WF_OK) status = wf_encoder_decode(encoder, minimal, out, err);
  wf_fst_free(encoded);
  wf_fst_free(deterministic);
  wf_fst_free(minimal);
  return status;
}

/* An equivalent fst, deterministic and minimal over pairs of labels. */
static wf_status optimize(const wf_fst *fst, wf_fst **out, wf_error *err) {
  uint32_t properties;
  WF__TRY(wf_fst_get_properties(fst, &properties, err));
  wf_encoder *encoder;
  bool weights = !(properties & WF_PROP_ACYCLIC);
  WF__TRY(wf_encoder_create(wf_fst_get_view(fst).semiring, true, weights, &encoder, err));
  wf_status status = encode_and_minimize(encoder, fst, out, err);
  wf_encoder_free(encoder);
  return status;
}

/* --- fsts made of arcs ----------------------------------------------------------------- */

static const wf_fst *finish(rule_maker *m, wf_status status, wf__csr *csr, int64_t start) {
  wf_fst *made = NULL;
  if (status == WF_OK)
    status = wf__fst_from_csr(csr, start, WF_TROPICAL, NULL, NULL, &made, m->err);
  wf__csr_free(csr);
  return keep(m, status, made);
}

static wf_status push(wf__csr *csr, uint64_t to, int32_t ilabel, int32_t olabel, wf_error *err) {
  return wf__csr_push(csr, (wf_arc){.nextstate = (uint32_t)to, .ilabel = ilabel, .olabel = olabel},
                      err);
}

static wf_status push_letters(wf__csr *csr, const rule_maker *m, uint64_t to) {
  for (uint64_t i = 0; i < m->letters.size; i++)
    WF__TRY(push(csr, to, m->letters.data[i], m->letters.data[i], m->err));
  return WF_OK;
}

static wf_status push_arcs_of(wf__csr *csr, const wf_fst_view *view, uint64_t state,
                              wf_error *err) {
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++)
    WF__TRY(wf__csr_push(csr, view->arcs[i], err));
  return WF_OK;
}

/* A label pair that marks a place. */
typedef struct mark_pair {
  int32_t ilabel, olabel;
} mark_pair;

static wf_status push_loops(wf__csr *csr, const mark_pair *loops, size_t count, uint64_t state,
                            wf_error *err) {
  for (size_t i = 0; i < count; i++)
    WF__TRY(push(csr, state, loops[i].ilabel, loops[i].olabel, err));
  return WF_OK;
}

static wf_status fill_star(wf__csr *csr, const rule_maker *m, const mark_pair *more,
                           size_t num_more) {
  WF__TRY(wf__csr_add_state(csr, 0, m->err));
  WF__TRY(push_letters(csr, m, 0));
  return push_loops(csr, more, num_more, 0, m->err);
}

/* Copies all strings of letters, with `more` pairs anywhere. */
static const wf_fst *star(rule_maker *m, const mark_pair *more, size_t num_more) {
  if (m->status != WF_OK) return NULL;
  wf__csr csr = {0};
  return finish(m, fill_star(&csr, m, more, num_more), &csr, 0);
}

static wf_status fill_single(wf__csr *csr, int32_t label, wf_error *err) {
  WF__TRY(wf__csr_add_state(csr, INFINITY, err));
  WF__TRY(push(csr, 1, label, label, err));
  return wf__csr_add_state(csr, 0, err);
}

static const wf_fst *single(rule_maker *m, int32_t label) {
  if (m->status != WF_OK) return NULL;
  wf__csr csr = {0};
  return finish(m, fill_single(&csr, label, m->err), &csr, 0);
}

/* The complete deterministic acceptor of the strings of letters, and of the label `more` if it is
 * not 0, that end with one of `tail`. */
static const wf_fst *ends_with(rule_maker *m, int32_t more, const wf_fst *tail) {
  const wf_fst *all = star(m, &(mark_pair){more, more}, more != 0);
  return small_acceptor(m, concat(m, all, tail));
}

static wf_status fill_insert_after(wf__csr *csr, const wf_fst_view *view, const int32_t *marks,
                                   size_t num_marks, wf_error *err) {
  uint64_t half = view->num_states;
  for (uint64_t s = 0; s < view->num_states; s++) {
    bool final = wf__is_final(view, s);
    WF__TRY(wf__csr_add_state(csr, final ? INFINITY : 0, err));
    if (!final) WF__TRY(push_arcs_of(csr, view, s, err));
    for (size_t i = 0; final && i < num_marks; i++) WF__TRY(push(csr, half, 0, marks[i], err));
    half += final;
  }
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (!wf__is_final(view, s)) continue;
    WF__TRY(wf__csr_add_state(csr, 0, err));
    WF__TRY(push_arcs_of(csr, view, s, err));
  }
  return WF_OK;
}

/* Writes one of the marks wherever the acceptor is in a final state (the paper's marker of type
 * 1). Each final state gets a second half, behind the mark. */
static const wf_fst *insert_after(rule_maker *m, const wf_fst *acceptor, const int32_t *marks,
                                  size_t num_marks) {
  if (m->status != WF_OK) return NULL;
  wf_fst_view view = wf_fst_get_view(acceptor);
  wf__csr csr = {0};
  return finish(m, fill_insert_after(&csr, &view, marks, num_marks, m->err), &csr, view.start);
}

static wf_status fill_allow_at(wf__csr *csr, const wf_fst_view *view, mark_pair mark, bool at_final,
                               const mark_pair *everywhere, size_t num_everywhere, wf_error *err) {
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, 0, err));
    WF__TRY(push_arcs_of(csr, view, s, err));
    WF__TRY(push_loops(csr, &mark, wf__is_final(view, s) == at_final, s, err));
    WF__TRY(push_loops(csr, everywhere, num_everywhere, s, err));
  }
  return WF_OK;
}

/* Accepts all strings with the mark only where the acceptor is in a final state, or only where it
 * is not (types 2 and 3). Other marks may be `everywhere`. */
static const wf_fst *allow_at(rule_maker *m, const wf_fst *acceptor, mark_pair mark, bool at_final,
                              const mark_pair *everywhere, size_t num_everywhere) {
  if (m->status != WF_OK) return NULL;
  wf_fst_view view = wf_fst_get_view(acceptor);
  wf__csr csr = {0};
  wf_status status = fill_allow_at(&csr, &view, mark, at_final, everywhere, num_everywhere, m->err);
  return finish(m, status, &csr, view.start);
}

static wf_status fill_between_letters(wf__csr *csr, const rule_maker *m) {
  WF__TRY(wf__csr_add_state(csr, 0, m->err));
  WF__TRY(push_letters(csr, m, 1));
  WF__TRY(wf__csr_add_state(csr, 0, m->err));
  WF__TRY(push_letters(csr, m, 1));
  WF__TRY(push(csr, 2, 0, m->right, m->err));
  WF__TRY(wf__csr_add_state(csr, INFINITY, m->err));
  return push_letters(csr, m, 1);
}

/* The strings of phi with marks of right contexts between their letters, and one after the last. */
static const wf_fst *with_marks_inside(rule_maker *m, const wf_fst *phi) {
  if (m->status != WF_OK) return NULL;
  wf__csr csr = {0};
  const wf_fst *inside = finish(m, fill_between_letters(&csr, m), &csr, 0);
  const wf_fst *marked = unary(m, project_output, compose(m, phi, inside));
  return concat(m, marked, single(m, m->right));
}

static wf_status fill_replacer(wf__csr *csr, const wf_fst_view *tau, const rule_maker *m,
                               bool keep_marks) {
  wf_error *err = m->err;
  uint64_t base = tau->num_states;
  const mark_pair dropped[] = {{m->right, 0}, {m->left, 0}, {m->skip, 0}};
  for (uint64_t s = 0; s < base; s++) {
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    WF__TRY(push_arcs_of(csr, tau, s, err));
    WF__TRY(push_loops(csr, dropped, 3, s, err));
    if (wf__is_final(tau, s))
      WF__TRY(wf__csr_push(
          csr,
          (wf_arc){.nextstate = (uint32_t)base, .ilabel = m->right, .weight = tau->final_cost[s]},
          err));
  }
  WF__TRY(wf__csr_add_state(csr, 0, err));
  WF__TRY(push(csr, (uint64_t)tau->start, m->left, keep_marks ? m->left : 0, err));
  WF__TRY(push_letters(csr, m, base));
  WF__TRY(push_loops(csr, &(mark_pair){m->skip, m->skip}, keep_marks, base, err));
  return push(csr, base, m->right, 0, err);
}

/* Applies tau behind a left mark, up to a mark of the right context. Copies the rest. With
 * `keep_marks`, the marks of left contexts stay. */
static const wf_fst *replacer(rule_maker *m, const wf_fst *tau, bool keep_marks) {
  tau = unary(m, rmepsilon, tau);
  if (m->status != WF_OK) return NULL;
  wf_fst_view view = wf_fst_get_view(tau);
  wf__csr csr = {0};
  return finish(m, fill_replacer(&csr, &view, m, keep_marks), &csr, (int64_t)view.num_states);
}

/* --- the rule -------------------------------------------------------------------------- */

/* Left contexts are those of what is already rewritten: checked after rewriting. */
static const wf_fst *rewrite_then_check(rule_maker *m, const wf_fst *rule, const wf_fst *tau,
                                        const wf_fst *context, bool mandatory) {
  const mark_pair skips = {m->skip, m->skip}, drop = {m->skip, 0};
  rule = compose(m, rule, replacer(m, tau, true));
  rule = compose(m, rule, allow_at(m, context, (mark_pair){m->left, 0}, true, &skips, 1));
  return compose(m, rule,
                 mandatory ? allow_at(m, context, drop, false, NULL, 0) : star(m, &drop, 1));
}

/* Left contexts are those of the input: checked before rewriting. */
static const wf_fst *check_then_rewrite(rule_maker *m, const wf_fst *rule, const wf_fst *tau,
                                        const wf_fst *context, bool mandatory) {
  const mark_pair drop = {m->skip, 0}, rights = {m->right, m->right}, lefts = {m->left, m->left};
  const mark_pair others[] = {rights, {m->skip, m->skip}}, kept[] = {rights, lefts, drop};
  rule = compose(m, rule, allow_at(m, context, lefts, true, others, 2));
  rule =
      compose(m, rule, mandatory ? allow_at(m, context, drop, false, kept, 2) : star(m, kept, 3));
  return compose(m, rule, replacer(m, tau, false));
}

static const wf_fst *rule_left_to_right(rule_maker *m, const wf_fst *tau, const wf_fst *left,
                                        const wf_fst *right, bool simultaneous, bool mandatory) {
  const wf_fst *phi = small_acceptor(m, unary(m, project_input, tau));
  const wf_fst *before_right = ends_with(m, 0, unary(m, wf_reverse, right));
  const wf_fst *mark_right =
      unary(m, wf_reverse, insert_after(m, before_right, (int32_t[]){m->right}, 1));
  const wf_fst *before_phi =
      ends_with(m, m->right, unary(m, wf_reverse, with_marks_inside(m, phi)));
  const wf_fst *mark_phi =
      unary(m, wf_reverse, insert_after(m, before_phi, (int32_t[]){m->left, m->skip}, 2));
  const wf_fst *context = ends_with(m, 0, left);
  const wf_fst *rule = compose(m, unary(m, rmepsilon, mark_right), unary(m, rmepsilon, mark_phi));
  return simultaneous ? check_then_rewrite(m, rule, tau, context, mandatory)
                      : rewrite_then_check(m, rule, tau, context, mandatory);
}

/* --- the alphabet ---------------------------------------------------------------------- */

static int compare_labels(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static void sort_labels(label_list *list) {
  if (list->size == 0) return;
  qsort(list->data, list->size, sizeof *list->data, compare_labels);
  uint64_t kept = 0;
  for (uint64_t i = 0; i < list->size; i++)
    if (kept == 0 || list->data[kept - 1] != list->data[i]) list->data[kept++] = list->data[i];
  list->size = kept;
}

static wf_status add_labels_of(label_list *list, const wf_fst *fst, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  WF__TRY(wf__vec_grow(list, 2 * view.num_arcs, "labels", err));
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    if (view.arcs[i].ilabel != 0) list->data[list->size++] = view.arcs[i].ilabel;
    if (view.arcs[i].olabel != 0) list->data[list->size++] = view.arcs[i].olabel;
  }
  sort_labels(list);
  return WF_OK;
}

/* Removes the labels of the ends of strings; true if one was there. */
static bool drop_ends(label_list *list, const wf_cdrewrite_options *o) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < list->size; i++)
    if (list->data[i] != o->begin_label && list->data[i] != o->end_label)
      list->data[kept++] = list->data[i];
  bool found = kept < list->size;
  list->size = kept;
  return found;
}

static wf_status add_label(label_list *list, int32_t label, wf_error *err) {
  WF__TRY(wf__vec_grow(list, 1, "labels", err));
  if (label != 0) list->data[list->size++] = label;
  return WF_OK;
}

/* Moves the letters that the rule names, or that stand for ends, from the others to the letters. */
static wf_status split_letters(rule_maker *m, const wf_cdrewrite_options *o) {
  uint64_t kept = 0, num_named = m->letters.size;
  for (uint64_t i = 0; i < m->others.size; i++) {
    int32_t label = m->others.data[i];
    bool is_end = label == o->begin_label || label == o->end_label;
    if (is_end) WF__TRY(add_label(&m->letters, label, m->err));
    if (!is_end && (num_named == 0 || bsearch(&label, m->letters.data, num_named, sizeof label,
                                              compare_labels) == NULL))
      m->others.data[kept++] = label;
  }
  m->others.size = kept;
  if (kept > 0) WF__TRY(add_label(&m->letters, m->others.data[0], m->err));
  sort_labels(&m->letters);
  return WF_OK;
}

/* The letters of all strings, and whether a context has an end of the string. */
static wf_status find_letters(rule_maker *m, const wf_fst *const parts[4],
                              const wf_cdrewrite_options *o, bool *bounded) {
  WF__TRY(add_labels_of(&m->letters, parts[2], m->err));
  WF__TRY(add_labels_of(&m->letters, parts[3], m->err));
  *bounded = drop_ends(&m->letters, o);
  WF__TRY(add_labels_of(&m->letters, parts[1], m->err));
  WF__TRY(add_labels_of(&m->others, parts[0], m->err));
  return split_letters(m, o);
}

static wf_status fill_others(wf__csr *csr, const wf_fst_view *view, const rule_maker *m) {
  int32_t first = m->others.data[0];
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, view->final_cost[s], m->err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = view->arcs[i];
      bool copies = arc.ilabel == first && arc.olabel == first;
      for (uint64_t k = 0; k < (copies ? m->others.size : 1); k++) {
        if (copies) arc.ilabel = arc.olabel = m->others.data[k];
        WF__TRY(wf__csr_push(csr, arc, m->err));
      }
    }
  }
  return WF_OK;
}

/* Gives each arc that copies the first of the other letters to all of them. */
static const wf_fst *with_others(rule_maker *m, const wf_fst *rule) {
  if (m->status != WF_OK || m->others.size < 2) return rule;
  rule = unary(m, optimize, unary(m, rmepsilon, rule));
  if (m->status != WF_OK) return NULL;
  wf_fst_view view = wf_fst_get_view(rule);
  wf__csr csr = {0};
  return finish(m, fill_others(&csr, &view, m), &csr, view.start);
}

static wf_status choose_marks(rule_maker *m, const wf_cdrewrite_options *o) {
  int64_t largest = o->begin_label > o->end_label ? o->begin_label : o->end_label;
  const label_list *lists[] = {&m->letters, &m->others};
  for (int i = 0; i < 2; i++)
    if (lists[i]->size != 0 && lists[i]->data[lists[i]->size - 1] > largest)
      largest = lists[i]->data[lists[i]->size - 1];
  if (largest > WF__MAX_LABEL - 3)
    return wf__fail(m->err, WF_ERR_LIMIT,
                    "label %lld: rules need three labels above the largest one",
                    (long long)largest);
  m->right = (int32_t)largest + 1;
  m->left = (int32_t)largest + 2;
  m->skip = (int32_t)largest + 3;
  return WF_OK;
}

static wf_status fill_ends(wf__csr *csr, const rule_maker *m, const wf_cdrewrite_options *o,
                           bool adds) {
  WF__TRY(wf__csr_add_state(csr, INFINITY, m->err));
  WF__TRY(push(csr, 1, adds ? 0 : o->begin_label, adds ? o->begin_label : 0, m->err));
  WF__TRY(wf__csr_add_state(csr, INFINITY, m->err));
  WF__TRY(push_letters(csr, m, 1));
  WF__TRY(push(csr, 2, adds ? 0 : o->end_label, adds ? o->end_label : 0, m->err));
  return wf__csr_add_state(csr, 0, m->err);
}

/* Adds the labels of both ends to strings, or removes them. */
static const wf_fst *ends(rule_maker *m, const wf_cdrewrite_options *o, bool adds) {
  if (m->status != WF_OK) return NULL;
  wf__csr csr = {0};
  return finish(m, fill_ends(&csr, m, o, adds), &csr, 0);
}

/* --- the call -------------------------------------------------------------------------- */

static const char *const part_names[] = {"sigma_star", "tau", "left", "right"};

static wf_status check_parts(const wf_fst *const parts[4], const wf_cdrewrite_options *o,
                             wf_error *err) {
  for (int i = 0; i < 4; i++)
    if (wf_fst_get_view(parts[i]).semiring != WF_TROPICAL)
      return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: rules need the tropical semiring",
                      part_names[i]);
  if (o->begin_label != 0 && o->begin_label == o->end_label)
    return wf__fail(err, WF_ERR_ARGUMENT, "begin_label and end_label are both %d", o->end_label);
  return o->check_symbols ? wf__same_symbols(parts, 4, err) : WF_OK;
}

/* sigma_star and the contexts, which are trimmed. */
static wf_status check_acceptor(const wf_fst *fst, int part, wf_error *err) {
  uint32_t properties;
  WF__TRY(wf_fst_get_properties(fst, &properties, err));
  if (!(properties & WF_PROP_ACCEPTOR))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%s must be an acceptor: its input and output labels differ", part_names[part]);
  if (part == 0 && !(properties & WF_PROP_UNWEIGHTED))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "sigma_star must be an acceptor without weights: its arcs have costs");
  return WF_OK;
}

static const wf_fst *make_rule(rule_maker *m, const wf_fst *const parts[4],
                               const wf_cdrewrite_options *o) {
  const wf_fst *sigma_star = parts[0], *tau = parts[1], *left = parts[2], *right = parts[3];
  bool bounded, simultaneous = o->direction == WF_CDREWRITE_SIM;
  m->status = find_letters(m, parts, o, &bounded);
  if (m->status == WF_OK) m->status = choose_marks(m, o);
  if (m->status != WF_OK) return NULL;
  const wf_fst *add = NULL, *drop = NULL, *rule;
  if (bounded) {
    add = ends(m, o, true);
    drop = ends(m, o, false);
    if (m->status == WF_OK) m->status = add_label(&m->letters, o->begin_label, m->err);
    if (m->status == WF_OK) m->status = add_label(&m->letters, o->end_label, m->err);
    sort_labels(&m->letters);
  }
  if (o->direction == WF_CDREWRITE_RTL) {
    rule = rule_left_to_right(m, unary(m, wf_reverse, tau), unary(m, wf_reverse, right),
                              unary(m, wf_reverse, left), false, o->mandatory);
    rule = unary(m, wf_reverse, rule);
  } else {
    rule = rule_left_to_right(m, tau, left, right, simultaneous, o->mandatory);
  }
  if (bounded) rule = compose(m, compose(m, add, rule), drop);
  rule = with_others(m, rule);
  /* Sorted, so that strings are composed with the rule without preparing it. */
  return unary(m, arcsort, unary(m, optimize, unary(m, rmepsilon, compose(m, sigma_star, rule))));
}

/* Takes the parts without symbols and trims the rule and its contexts. `*applies`: all of them have
 * strings. */
static wf_status take_parts(rule_maker *m, const wf_fst *parts[4], bool *applies) {
  *applies = true;
  for (int i = 0; i < 4; i++) {
    parts[i] = unary(m, without_symbols, parts[i]);
    if (i > 0) parts[i] = unary(m, wf_connect, parts[i]);
    if (m->status != WF_OK) return m->status;
    if (i != 1) WF__TRY(check_acceptor(parts[i], i, m->err));
    if (i > 0 && wf_fst_get_view(parts[i]).start < 0) *applies = false;
  }
  return WF_OK;
}

wf_status wf_cdrewrite(const wf_fst *tau, const wf_fst *left, const wf_fst *right,
                       const wf_fst *sigma_star, const wf_cdrewrite_options *options, wf_fst **out,
                       wf_error *err) {
  *out = NULL;
  wf_cdrewrite_options o;
  WF__TRY(wf__options_take(wf__cdrewrite_table(), options, &o, err));
  const wf_fst *parts[4] = {sigma_star, tau, left, right};
  WF__TRY(check_parts(parts, &o, err));
  rule_maker m = {.err = err};
  bool applies;
  m.status = take_parts(&m, parts, &applies);
  /* First with epsilon as a label: over many labels, the state behind each of them would else get
   * an arc for each label. */
  parts[0] = small_acceptor(&m, unary(&m, minimize, unary(&m, determinize, parts[0])));
  const wf_fst *rule = m.status == WF_OK && applies ? make_rule(&m, parts, &o) : parts[0];
  wf_status status = m.status;
  const wf_symbols *symbols = wf_fst_isymbols(sigma_star);
  if (status == WF_OK) status = wf_fst_with_symbols(rule, symbols, symbols, out, err);
  for (size_t i = 0; i < m.num_fsts; i++) wf_fst_free(m.fsts[i]);
  wf__vec_free(&m.letters);
  wf__vec_free(&m.others);
  return status;
}
