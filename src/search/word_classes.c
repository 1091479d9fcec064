/* word_classes.c - finds the places of a graph where words may be added at run time: arcs whose
 * input label is called #<NAME> or #{NAME}, or #1<NAME>, #1{NAME} in graphs of transducers. */
#include <math.h>
#include <string.h>

#include "fst/fst.h"
#include "fst/symbols.h"
#include "graph/tokens.h"
#include "search/decode_graph.h"

void wf__classes_free(wf__classes *classes) {
  if (classes == NULL) return;
  for (int32_t c = 0; c < classes->count && classes->names != NULL; c++) free(classes->names[c]);
  free(classes->names);
  wf__vec_free(&classes->sites);
  free(classes->first_ranked);
  free(classes->ranked);
  free(classes);
}

/* Finds the input labels that are classes. They are consecutive from first_label on, as
 * wf_graph_build numbers them. */
static wf_status find_names(const wf_symbols *table, wf__classes *classes, wf_error *err) {
  const char *text;
  int64_t key, first = INT64_MAX, last = -1;
  for (size_t i = 0; table != NULL && (text = wf_symbols_at(table, i, &key)) != NULL; i++) {
    if (!wf__is_class_label(text, strlen(text))) continue;
    if (key < first) first = key;
    if (key > last) last = key;
    classes->count++;
  }
  if (classes->count == 0) return WF_OK;
  if (first < 1 || last - first + 1 != classes->count)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "decoding graph: the input labels of its word classes (#<...>, #{...}) must be "
                    "consecutive and at least 1");
  classes->names = wf__calloc((uint64_t)classes->count, sizeof *classes->names);
  if (classes->names == NULL)
    return wf__fail_memory(err, (uint64_t)classes->count * sizeof *classes->names, "word classes");
  for (int32_t c = 0; c < classes->count; c++) {
    const wf__span name = wf__class_of_label(wf_symbols_text(table, first + c), &classes->once);
    classes->names[c] = wf__strndup(name.data, name.size);
    if (classes->names[c] == NULL) return wf__fail_memory(err, name.size, "word classes");
  }
  classes->first_label = (int32_t)first;
  return WF_OK;
}

/* Copies the fst. Arcs of classes become epsilons of weight +infinity to a dead end. */
static wf_status close_sites(wf__classes *classes, const wf_fst_view *view, wf__csr *csr,
                             wf_error *err) {
  uint32_t dead = (uint32_t)view->num_states;
  int32_t first = classes->first_label;
  if (view->num_states >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "decoding graph: more than 2^31 states");
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs, "a decoding graph", err));
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = view->arcs[i];
      if (arc.ilabel >= first && arc.ilabel - first < classes->count) {
        if (arc.weight != INFINITY && !(fabsf(arc.weight) <= 1e20f))
          return wf__fail(err, WF_ERR_ARGUMENT,
                          "decoding graph: arc %llu has weight %g, beyond 1e20",
                          (unsigned long long)i, (double)arc.weight);
        wf__class_site site = {
            .target = arc.nextstate, .weight = arc.weight, .word_class = arc.ilabel - first};
        WF__TRY(wf__vec_push(&classes->sites, site, "word classes", err));
        arc = (wf_arc){dead, INFINITY, 0, arc.olabel};
      }
      WF__TRY(wf__csr_push(csr, arc, err));
    }
  }
  return wf__csr_add_state(csr, INFINITY, err);
}

wf_status wf__classes_find(const wf_fst *fst, wf__classes **out, wf_fst **out_fst, wf_error *err) {
  *out = NULL;
  *out_fst = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  wf__classes *classes = wf__calloc(1, sizeof *classes);
  if (classes == NULL) return wf__fail_memory(err, sizeof *classes, "word classes");
  wf__csr csr = {0};
  wf_status status = find_names(wf_fst_isymbols(fst), classes, err);
  if (status == WF_OK && classes->count == 0) {
    wf__classes_free(classes);
    return WF_OK;
  }
  if (status == WF_OK) status = close_sites(classes, &view, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(fst),
                              wf_fst_osymbols(fst), out_fst, err);
  wf__csr_free(&csr);
  if (status == WF_OK) wf__fst_set_ctc_blank(*out_fst, wf__fst_ctc_blank(fst));
  if (status == WF_OK)
    *out = classes;
  else
    wf__classes_free(classes);
  return status;
}

int32_t wf__loop_label(const wf_fst_view *view, uint64_t state) {
  int32_t label = 0;
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    if (arc->nextstate != state || arc->ilabel == 0 || arc->olabel != 0) continue;
    if (label != 0) return 0;
    label = arc->ilabel;
  }
  return label;
}

/* Sorts the sites by class (counting sort). */
static wf_status rank_sites(wf__classes *classes, wf_error *err) {
  uint64_t count = (uint64_t)classes->count, num_sites = classes->sites.size;
  classes->first_ranked = wf__calloc(count + 1, sizeof *classes->first_ranked);
  classes->ranked = wf__alloc(num_sites, sizeof *classes->ranked);
  if (classes->first_ranked == NULL || classes->ranked == NULL)
    return wf__fail_memory(err, num_sites * 4, "word classes");
  for (uint64_t i = 0; i < num_sites; i++) {
    wf__class_site *site = &classes->sites.data[i];
    site->rank = classes->first_ranked[site->word_class + 1]++;
  }
  for (uint64_t c = 0; c < count; c++) classes->first_ranked[c + 1] += classes->first_ranked[c];
  for (uint64_t i = 0; i < num_sites; i++) {
    const wf__class_site *site = &classes->sites.data[i];
    classes->ranked[classes->first_ranked[site->word_class] + site->rank] = (uint32_t)i;
  }
  return WF_OK;
}

wf_status wf__classes_number(wf__classes *classes, const wf_fst_view *view, int32_t blank,
                             wf_error *err) {
  uint64_t dead = view->num_states - 1, at = 0;
  for (uint64_t s = 0; s < dead; s++) {
    uint64_t before = at;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      if (view->arcs[i].nextstate == dead) {
        classes->sites.data[at].source = (uint32_t)s;
        classes->sites.data[at++].arc = (uint32_t)i;
      }
    if (at == before) continue;
    const int32_t label = blank != 0 ? blank : wf__loop_label(view, s);
    classes->blank = before == 0 || classes->blank == label ? label : 0;
  }
  classes->num_arcs = classes->sites.size;
  return rank_sites(classes, err);
}

static bool spells_with(const wf_word_aligner *aligner, int32_t label) {
  const wf__spellings *spellings = &aligner->spellings;
  const int32_t *spelled = spellings->spelled.data;
  for (uint64_t p = 0; p + 1 < spellings->spell_off.size; p++) {
    const uint32_t first = spellings->spell_off.data[p];
    if (wf__brings_separator(spelled + first, spellings->spell_off.data[p + 1] - first, label))
      return true;
  }
  return false;
}

/* The graph has the token that stands between words, and words do not bring it themselves. */
void wf__classes_separate(wf__classes *classes, const wf_fst_view *view, const wf_symbols *tokens,
                          const wf_word_aligner *aligner) {
  wf__tokens taken;
  if (wf__tokens_take(tokens, &taken, NULL) != WF_OK) return;
  const int32_t label = wf__tokens_separator(&taken);
  if (label == 0 || (aligner != NULL && spells_with(aligner, label))) return;
  for (uint64_t i = 0; i < view->num_arcs && classes->separator == 0; i++)
    if (view->arcs[i].ilabel == label) classes->separator = label;
}
