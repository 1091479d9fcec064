/* jsgf.c - reads a grammar in JSGF as an acceptor without epsilons. */
#include "graph/jsgf.h"

#include "base/interrupt.h"

/* Marks the states that begin a sentence or follow a word. Epsilon removal keeps these. */
static void mark_kept(const wf_fst_view *view, bool *kept) {
  kept[view->start] = true;
  for (uint64_t i = 0; i < view->num_arcs; i++)
    if (view->arcs[i].ilabel != 0) kept[view->arcs[i].nextstate] = true;
}

struct closure {
  const wf_fst_view *view;
  uint32_t *seen_from; /* [num_states] one more than the last state from which it was reached */
  WF__VEC(uint32_t) waiting;
  uint64_t num_arcs; /* read so far; so many at most has the result */
};

static wf_status count_from(struct closure *closure, uint32_t from, wf_error *err) {
  const wf_fst_view *view = closure->view;
  WF__TRY(wf__vec_push(&closure->waiting, from, "epsilons of a grammar", err));
  closure->seen_from[from] = from + 1;
  while (closure->waiting.size > 0) {
    const uint32_t state = closure->waiting.data[--closure->waiting.size];
    for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
      const wf_arc *arc = &view->arcs[i];
      WF__TRY(wf__interrupted_at(closure->num_arcs++, err));
      if (arc->ilabel != 0 || closure->seen_from[arc->nextstate] == from + 1) continue;
      closure->seen_from[arc->nextstate] = from + 1;
      WF__TRY(wf__vec_push(&closure->waiting, arc->nextstate, "epsilons of a grammar", err));
    }
  }
  return WF_OK;
}

/* Many optional parts after each other have arcs from each to each: fails before there is no memory
 * for them. */
static wf_status check_arcs(const char *path, const wf_fst *fst, uint64_t max_arcs, wf_error *err) {
  const wf_fst_view view = wf_fst_get_view(fst);
  struct closure closure = {.view = &view};
  bool *kept = wf__calloc(view.num_states, sizeof *kept);
  closure.seen_from = wf__calloc(view.num_states, sizeof *closure.seen_from);
  wf_status status =
      kept != NULL && closure.seen_from != NULL
          ? WF_OK
          : wf__fail_memory(err, view.num_states * sizeof(uint32_t), "epsilons of a grammar");
  if (status == WF_OK) mark_kept(&view, kept);
  for (uint32_t s = 0; s < view.num_states && status == WF_OK; s++) {
    if (kept[s]) status = count_from(&closure, s, err);
    if (status == WF_OK && closure.num_arcs > max_arcs)
      status = wf__fail(err, WF_ERR_LIMIT,
                        "%s: the grammar has more than %llu arcs, because too many optional parts "
                        "follow each other",
                        path, (unsigned long long)max_arcs);
  }
  wf__vec_free(&closure.waiting);
  free(closure.seen_from);
  free(kept);
  return status;
}

/* Without states that no sentence passes, epsilons are removed faster. */
static wf_status finish(const char *path, const wf_fst *fst, uint64_t max_arcs, wf_fst **out,
                        wf_error *err) {
  wf_fst *trimmed = NULL;
  WF__TRY(wf_connect(fst, &trimmed, err));
  wf_status status = WF_OK;
  if (wf_fst_get_view(trimmed).num_states == 0)
    status = wf__fail(err, WF_ERR_FORMAT,
                      "%s: no sentence can be said: each passes <VOID>, a weight of 0, or a rule "
                      "without end",
                      path);
  if (status == WF_OK) status = check_arcs(path, trimmed, max_arcs, err);
  if (status == WF_OK) status = wf_rmepsilon(trimmed, NULL, out, err);
  wf_fst_free(trimmed);
  return status;
}

wf_status wf__jsgf_read(const wf__input *input, const wf_symbols *words, uint64_t max_arcs,
                        wf_fst **out, wf_error *err) {
  wf__jsgf jsgf = {.words.given = words};
  wf_fst *expanded = NULL;
  wf_status status = wf__jsgf_parse(input, &jsgf, err);
  if (status == WF_OK) status = wf__jsgf_check_rules(&jsgf, max_arcs, err);
  if (status == WF_OK) status = wf__grammar_words_close(&jsgf.words, err);
  if (status == WF_OK) status = wf__jsgf_expand(&jsgf, &expanded, err);
  wf__jsgf_free(&jsgf);
  if (status == WF_OK) status = finish(input->path, expanded, max_arcs, out, err);
  wf_fst_free(expanded);
  return status;
}

void wf__jsgf_free(wf__jsgf *jsgf) {
  wf_symbols_free(jsgf->names);
  wf__vec_free(&jsgf->rules);
  wf__vec_free(&jsgf->nodes);
  wf__grammar_words_free(&jsgf->words);
}
