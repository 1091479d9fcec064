/* determinize_witness.c - error messages of determinization, with an input string as evidence.
 *
 * Nothing is recorded for it in advance. The first arc into each state of the unfinished result is
 * the one that discovered the state. Following those arcs back gives a string that leads to it. */
#include <stdio.h>
#include <string.h>

#include "fstops/determinize.h"

struct text {
  char data[360];
  size_t size;
  uint64_t num_labels;
  const wf_symbols *symbols;
};

static void add_label(struct text *text, uint32_t label) {
  if (label == 0) return;
  const char *name = text->symbols != NULL ? wf_symbols_text(text->symbols, label) : NULL;
  char number[16];
  snprintf(number, sizeof number, "%u", label);
  if (name == NULL) name = number;
  size_t need = strlen(name) + 1;
  text->num_labels++;
  if (text->size + need + 5 < sizeof text->data) {
    text->size += (size_t)snprintf(text->data + text->size, sizeof text->data - text->size, "%s%s",
                                   text->num_labels > 1 ? " " : "", name);
  } else if (text->data[text->size] == '\0') { /* the first label that does not fit */
    memcpy(text->data + text->size, " ...", 5);
  }
}

/* Adds the labels of a residual, which lists them from the last to the first. */
static void add_string(const wf__determinizer *det, struct text *text, uint32_t string) {
  uint32_t size = wf__string_size(&det->strings, string);
  for (uint32_t i = 0; i < size && i < 400; i++) {
    uint32_t at = string;
    for (uint32_t k = i + 1; k < size; k++) at = wf__string_rest(&det->strings, at);
    add_label(text, wf__string_label(&det->strings, at));
  }
}

/* Adds the labels on the path by which subset `id` was discovered: input labels to texts[0], output
 * labels to the other texts. */
static bool add_way_to(const wf__determinizer *det, uint32_t id, struct text *texts,
                       int num_texts) {
  const wf__csr *csr = &det->csr;
  uint64_t num_states = csr->arc_off.size, num_ids = det->subsets.where.size, size = 0;
  uint64_t *first = wf__alloc(num_ids, sizeof *first);
  uint32_t *from = wf__alloc(num_ids, sizeof *from), *way = wf__alloc(num_ids, sizeof *way);
  bool fine = first != NULL && from != NULL && way != NULL;
  if (fine) {
    memset(from, 0xff, num_ids * sizeof *from);
    for (uint64_t s = 0; s < num_states; s++) {
      uint64_t end = s + 1 < num_states ? csr->arc_off.data[s + 1] : csr->arcs.size;
      for (uint64_t i = csr->arc_off.data[s]; i < end; i++) {
        uint32_t next = csr->arcs.data[i].nextstate;
        if (next >= num_ids || next == 0 || from[next] != UINT32_MAX) continue;
        from[next] = (uint32_t)s;
        first[next] = i;
      }
    }
    for (uint32_t at = id; at != 0 && at < num_ids && from[at] != UINT32_MAX; at = from[at])
      way[size++] = at;
    while (size-- > 0) {
      const wf_arc *arc = &csr->arcs.data[first[way[size]]];
      add_label(&texts[0], (uint32_t)arc->ilabel);
      for (int k = 1; k < num_texts; k++) add_string(det, &texts[k], (uint32_t)arc->olabel);
    }
  }
  free(first);
  free(from);
  free(way);
  return fine;
}

/* Adds the labels of a shortest path from a state of the input to a final state. */
static void add_way_out(const wf__determinizer *det, uint32_t state, struct text *texts) {
  const wf_fst_view *view = &det->view;
  uint64_t head = 0, tail = 0, *via = wf__alloc(view->num_states, sizeof *via);
  uint32_t *queue = wf__alloc(view->num_states, sizeof *queue),
           *from = wf__alloc(view->num_states, sizeof *from);
  if (via != NULL && queue != NULL && from != NULL) {
    memset(from, 0xff, view->num_states * sizeof *from);
    queue[tail++] = state;
    from[state] = state;
    while (head < tail && !wf__is_final(view, queue[head])) {
      uint32_t s = queue[head++];
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        uint32_t next = view->arcs[i].nextstate;
        if (from[next] != UINT32_MAX) continue;
        from[next] = s;
        via[next] = i;
        queue[tail++] = next;
      }
    }
    tail = 0;
    for (uint32_t at = head < view->num_states ? queue[head] : state; at != state; at = from[at])
      queue[tail++] = at; /* reuses the array of the queue */
    while (tail > 0) {
      const wf_arc *arc = &view->arcs[via[queue[--tail]]];
      add_label(&texts[0], (uint32_t)arc->ilabel);
      add_label(&texts[1], (uint32_t)arc->olabel);
      add_label(&texts[2], (uint32_t)arc->olabel);
    }
  }
  free(via);
  free(queue);
  free(from);
}

wf_status wf__fail_nonfunctional(const wf__determinizer *det, const wf__det_conflict *conflict,
                                 wf_error *err) {
  struct text texts[3] = {{.symbols = wf_fst_isymbols(det->fst)},
                          {.symbols = wf_fst_osymbols(det->fst)},
                          {.symbols = wf_fst_osymbols(det->fst)}};
  add_way_to(det, det->current_id, texts, 3);
  add_label(&texts[0], (uint32_t)conflict->ilabel);
  add_string(det, &texts[1], conflict->strings[0]);
  add_string(det, &texts[2], conflict->strings[1]);
  if (conflict->state != WF__MAP64_NONE) add_way_out(det, conflict->state, texts);
  return wf__fail(err, WF_ERR_NOT_DETERMINIZABLE,
                  "not functional: input \"%s\" has outputs \"%s\" and \"%s\"", texts[0].data,
                  texts[1].data, texts[2].data);
}

wf_status wf__fail_growth(const wf__determinizer *det, int32_t ilabel, const char *what,
                          wf_error *err) {
  struct text text = {.symbols = wf_fst_isymbols(det->fst)};
  add_way_to(det, det->current_id, &text, 1);
  add_label(&text, (uint32_t)ilabel);
  return wf__fail(err, WF_ERR_NOT_DETERMINIZABLE,
                  "%s after %llu states; reached by the %llu input labels \"%s\"", what,
                  (unsigned long long)det->subsets.where.size, (unsigned long long)text.num_labels,
                  text.data);
}
