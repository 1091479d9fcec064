/* self_loops.c - adds the self-loops of HMM states. This comes last, so that no earlier step has to
 * carry them.
 *
 * If all arcs into a state s have labels with the same self-loop (the same "class"), s gets the
 * loop, and all arcs that leave s get its forward cost. Otherwise each class gets a separate state
 * in front of s:
 *
 *     --a--> s --x-->          becomes     --a--> s' (loop a) --eps--> s --x-->
 *     --b--> s                             --b--> s" (loop b) --eps--> s
 *
 * If s has only one arc and is not final, s' and s" get a copy of that arc instead of the epsilon.
 * Class 0: epsilons, labels without a self-loop, and the start. */
#include "base/map64.h"
#include "graph/hmm.h"

enum { CLASS_NONE = -1, CLASS_MIXED = -2 };

struct looping {
  const wf_hmm *hmm;
  wf_fst_view view;
  float scale;
  int32_t *class_of; /* [num_states] */
  wf__map64 copies;  /* state << 32 | class -> copy */
  WF__VEC(uint64_t) copy_keys;
  wf__csr csr;
};

static int32_t class_of_label(const struct looping *l, int32_t label) {
  return label == 0 ? 0 : l->hmm->labels.data[label].loop;
}
static float forward_cost(const struct looping *l, int32_t loop) {
  return loop > 0 ? l->scale * l->hmm->labels.data[loop].forward_cost : 0;
}

static wf_status find_classes(struct looping *l, wf_error *err) {
  for (uint64_t s = 0; s < l->view.num_states; s++) l->class_of[s] = CLASS_NONE;
  if (l->view.start >= 0) l->class_of[l->view.start] = 0;
  for (uint64_t i = 0; i < l->view.num_arcs; i++) {
    const wf_arc *arc = &l->view.arcs[i];
    if (arc->ilabel > wf__hmm_num_labels(l->hmm))
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "input label %d is out of range; the model has labels 1 to %d",
                      (int)arc->ilabel, (int)wf__hmm_num_labels(l->hmm));
    int32_t *have = &l->class_of[arc->nextstate], loop = class_of_label(l, arc->ilabel);
    if (*have == CLASS_NONE)
      *have = loop;
    else if (*have != loop)
      *have = CLASS_MIXED;
  }
  return WF_OK;
}

/* The new target of an arc. */
static wf_status target(struct looping *l, const wf_arc *arc, uint32_t *out, wf_error *err) {
  int32_t loop = class_of_label(l, arc->ilabel);
  bool fresh;
  *out = arc->nextstate;
  if (l->class_of[arc->nextstate] != CLASS_MIXED || loop == 0) return WF_OK;
  uint64_t key = (uint64_t)arc->nextstate << 32 | (uint32_t)loop,
           copy = l->view.num_states + l->copy_keys.size;
  if (copy >= WF__MAX_STATES) return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 states");
  WF__TRY(wf__map64_insert(&l->copies, key, (uint32_t)copy, out, &fresh, "states", err));
  return fresh ? wf__vec_push(&l->copy_keys, key, "states", err) : WF_OK;
}

/* Adds the arcs of state s with the forward cost of `loop`, and the self-loop `loop` of state
 * `self`. */
static wf_status push_arcs(struct looping *l, uint64_t s, int32_t loop, uint64_t self,
                           wf_error *err) {
  for (uint64_t i = l->view.arc_off[s]; i < l->view.arc_off[s + 1]; i++) {
    wf_arc arc = l->view.arcs[i];
    WF__TRY(target(l, &l->view.arcs[i], &arc.nextstate, err));
    arc.weight += forward_cost(l, loop);
    WF__TRY(wf__csr_push(&l->csr, arc, err));
  }
  if (loop <= 0) return WF_OK;
  return wf__csr_push(
      &l->csr, (wf_arc){(uint32_t)self, l->scale * l->hmm->labels.data[loop].loop_cost, loop, 0},
      err);
}

static wf_status make_copy(struct looping *l, uint64_t key, wf_error *err) {
  uint64_t s = key >> 32, self = l->csr.arc_off.size;
  int32_t loop = (int32_t)(uint32_t)key;
  bool one_arc = l->view.arc_off[s + 1] - l->view.arc_off[s] == 1 && !wf__is_final(&l->view, s);
  WF__TRY(wf__csr_add_state(&l->csr, INFINITY, err));
  if (one_arc) return push_arcs(l, s, loop, self, err);
  WF__TRY(wf__csr_push(
      &l->csr, (wf_arc){(uint32_t)self, l->scale * l->hmm->labels.data[loop].loop_cost, loop, 0},
      err));
  return wf__csr_push(&l->csr, (wf_arc){(uint32_t)s, forward_cost(l, loop), 0, 0}, err);
}

static wf_status make_states(struct looping *l, wf_error *err) {
  WF__TRY(find_classes(l, err));
  for (uint64_t s = 0; s < l->view.num_states; s++) {
    float final_cost = l->view.final_cost[s];
    if (final_cost != INFINITY) final_cost += forward_cost(l, l->class_of[s]);
    WF__TRY(wf__csr_add_state(&l->csr, final_cost, err));
    WF__TRY(push_arcs(l, s, l->class_of[s], s, err));
  }
  for (uint64_t i = 0; i < l->copy_keys.size; i++) WF__TRY(make_copy(l, l->copy_keys.data[i], err));
  return WF_OK;
}

wf_status wf__hmm_add_loops(const wf_hmm *hmm, const wf_fst *fst, float self_loop_scale,
                            wf_fst **out, wf_error *err) {
  *out = NULL;
  struct looping l = {.hmm = hmm, .view = wf_fst_get_view(fst), .scale = self_loop_scale};
  wf_fst *made = NULL;
  l.class_of = wf__alloc(l.view.num_states, sizeof *l.class_of);
  wf_status status =
      l.class_of != NULL
          ? WF_OK
          : wf__fail_memory(err, l.view.num_states * sizeof *l.class_of, "self-loops");
  if (status == WF_OK) status = make_states(&l, err);
  free(l.class_of);
  wf__map64_free(&l.copies);
  wf__vec_free(&l.copy_keys);
  if (status == WF_OK)
    status = wf__fst_from_csr(&l.csr, l.view.start, l.view.semiring, NULL, wf_fst_osymbols(fst),
                              &made, err);
  else
    wf__csr_free(&l.csr);
  if (status == WF_OK)
    status = wf_connect(made, out, err); /* removes states that were replaced by
                                            their copies */
  wf_fst_free(made);
  return status;
}

wf_status wf__hmm_loop_table(const wf_hmm *hmm, float self_loop_scale, wf__loop_table *out,
                             wf_error *err) {
  const uint64_t count = hmm->labels.size;
  int32_t *loop = wf__alloc(count, sizeof *loop);
  float *costs = wf__alloc(2 * count, sizeof *costs);
  *out = (wf__loop_table){count - 1, loop, costs, costs + count};
  if (loop == NULL || costs == NULL) return wf__fail_memory(err, count * 12, "self-loops");
  for (uint64_t label = 0; label < count; label++) {
    const wf__hmm_label *from = &hmm->labels.data[label];
    loop[label] = from->loop;
    costs[label] = self_loop_scale * from->loop_cost;
    costs[count + label] = self_loop_scale * from->forward_cost;
  }
  return WF_OK;
}

void wf__hmm_loop_table_free(wf__loop_table *table) {
  free(table->loop);
  free(table->loop_cost);
}
