/* hmm.c - the object that readers of acoustic models fill, its HMM types, and the transducer H. See
 * hmm.h.
 *
 * In H every type is a chain that leaves state 0, writes the type's number on its first arc, and
 * returns to state 0. For a type start --a--> 1 --b--> 2 (final):
 *     0 --a:type--> n --b:eps--> 0 */
#include "graph/hmm.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"

enum { MAX_TYPE_STATES = 256 };

/* --- the object -------------------------------------------------------------------------- */

static wf_status fill(wf_hmm *hmm, const char *name, wf_error *err) {
  hmm->name = wf__strndup(name, strlen(name));
  if (hmm->name == NULL) return wf__fail_memory(err, strlen(name) + 1, "a name");
  WF__TRY(wf__vec_push(&hmm->labels, (wf__hmm_label){0}, "labels", err));
  return wf__vec_push(&hmm->type_first, 0, "HMM types", err);
}

wf_status wf__hmm_create(const char *name, const wf__hmm_class *methods, void *model, wf_hmm **out,
                         wf_error *err) {
  *out = NULL;
  wf_hmm *hmm = wf__calloc(1, sizeof *hmm);
  if (hmm == NULL) return wf__fail_memory(err, sizeof *hmm, "an acoustic model");
  atomic_init(&hmm->refs, 1);
  hmm->methods = methods;
  hmm->width = 1;
  hmm->lm_weight = hmm->word_prob = 1;
  hmm->silence_prob = 0.5f;
  hmm->filler_prob = 1e-8f;
  hmm->self_loop_scale = 0.1f;
  wf_status status = fill(hmm, name, err);
  if (status != WF_OK) {
    wf_hmm_free(hmm);
    return status;
  }
  hmm->model = model;
  *out = hmm;
  return WF_OK;
}

wf_hmm *wf_hmm_ref(const wf_hmm *hmm) {
  wf_hmm *shared = (wf_hmm *)(uintptr_t)hmm;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_hmm_free(wf_hmm *hmm) {
  if (hmm == NULL || atomic_fetch_sub(&hmm->refs, 1) != 1) return;
  if (hmm->model != NULL) hmm->methods->free_model(hmm->model);
  free(hmm->name);
  wf_symbols_free(hmm->phones);
  wf_symbols_free(hmm->lexicon_phones);
  free(hmm->context_of);
  free(hmm->context_free);
  free(hmm->position_of);
  free(hmm->word_position);
  wf__vec_free(&hmm->places);
  wf__vec_free(&hmm->fillers);
  wf__vec_free(&hmm->ready_disambig);
  wf__vec_free(&hmm->labels);
  wf__csr_free(&hmm->types);
  wf__vec_free(&hmm->type_first);
  wf__tally_free(&hmm->substituted);
  free(hmm);
}

wf_status wf__hmm_set_phones(wf_hmm *hmm, wf_symbols *phones, int32_t num_phones, wf_error *err) {
  hmm->phones = wf_symbols_ref(phones);
  hmm->num_phones = num_phones;
  hmm->context_of = wf__alloc((uint64_t)num_phones + 1, sizeof *hmm->context_of);
  hmm->context_free = wf__calloc((uint64_t)num_phones + 1, sizeof *hmm->context_free);
  if (hmm->context_of == NULL || hmm->context_free == NULL)
    return wf__fail_memory(err, ((uint64_t)num_phones + 1) * 5, "phones");
  for (int32_t p = 0; p <= num_phones; p++) hmm->context_of[p] = p;
  return WF_OK;
}

wf_status wf__hmm_close(const wf_hmm *hmm, wf_error *err) {
  for (uint64_t l = 1; l < hmm->labels.size; l++) {
    const wf__hmm_label *label = &hmm->labels.data[l];
    if (label->column < 0 || label->column >= hmm->num_columns)
      return wf__fail(err, WF_ERR_FORMAT, "%s: label %llu has column %d, but there are %d columns",
                      hmm->name, (unsigned long long)l, (int)label->column, (int)hmm->num_columns);
    if (label->loop < 0 || (uint64_t)label->loop >= hmm->labels.size ||
        (label->loop != 0 && hmm->labels.data[label->loop].loop != label->loop))
      return wf__fail(err, WF_ERR_FORMAT,
                      "%s: label %llu has the self-loop label %d, which is not a self-loop",
                      hmm->name, (unsigned long long)l, (int)label->loop);
    if (!isfinite(label->loop_cost) || !isfinite(label->forward_cost))
      return wf__fail(err, WF_ERR_FORMAT, "%s: label %llu has costs that are not finite: %g and %g",
                      hmm->name, (unsigned long long)l, (double)label->loop_cost,
                      (double)label->forward_cost);
  }
  return WF_OK;
}

void wf__hmm_window_text(const wf_hmm *hmm, const int32_t *window, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t i = 0; i < hmm->width && used < size; i++) {
    const char *phone = window[i] != 0 ? wf_symbols_text(hmm->phones, window[i]) : "(edge)";
    used += (size_t)snprintf(text + used, size - used, "%s%.40s", i == 0 ? "" : " ", phone);
  }
}

const wf_symbols *wf_hmm_phones(const wf_hmm *hmm) { return hmm->lexicon_phones; }

wf_status wf_hmm_get_info(const wf_hmm *hmm, wf_hmm_info *out, wf_error *err) {
  WF__TRY(wf__struct_check("wf_hmm_info", out, sizeof *out, err));
  wf_hmm_info info = {.num_phones = (int32_t)wf_symbols_count(hmm->lexicon_phones) - 1,
                      .width = hmm->width,
                      .central = hmm->central,
                      .num_labels = wf__hmm_num_labels(hmm),
                      .num_columns = hmm->num_columns,
                      .num_types = wf__hmm_num_types(hmm),
                      .identity = true};
  for (uint64_t l = 1; l < hmm->labels.size; l++)
    info.identity = info.identity && hmm->labels.data[l].column == (int32_t)l - 1;
  wf__struct_give(&info, sizeof info, out);
  return WF_OK;
}

wf_status wf_hmm_columns(const wf_hmm *hmm, int32_t **out_columns, size_t *out_count,
                         wf_error *err) {
  *out_count = 0;
  *out_columns = wf__alloc(hmm->labels.size, sizeof **out_columns);
  if (*out_columns == NULL)
    return wf__fail_memory(err, hmm->labels.size * sizeof **out_columns, "the columns of labels");
  *out_count = (size_t)hmm->labels.size;
  (*out_columns)[0] = -1;
  for (uint64_t l = 1; l < hmm->labels.size; l++) (*out_columns)[l] = hmm->labels.data[l].column;
  return WF_OK;
}

/* --- HMM types --------------------------------------------------------------------------- */

static uint64_t end_of_arcs(const wf__csr *csr, uint64_t state) {
  return state + 1 < csr->arc_off.size ? csr->arc_off.data[state + 1] : csr->arcs.size;
}

/* Marks the states that one more arc reaches, forwards or backwards. Returns true if any state is
 * new. */
static bool spread(const wf__csr *type, bool backwards, bool *reached) {
  bool fresh = false;
  for (uint64_t s = 0; s < type->arc_off.size; s++)
    for (uint64_t i = type->arc_off.data[s]; i < end_of_arcs(type, s); i++) {
      uint64_t next = type->arcs.data[i].nextstate, from = backwards ? next : s,
               to = backwards ? s : next;
      if (!reached[from] || reached[to]) continue;
      reached[to] = fresh = true;
    }
  return fresh;
}

static wf_status check_type(const wf_hmm *hmm, const wf__csr *type, wf_error *err) {
  uint64_t num_states = type->arc_off.size;
  bool forwards[MAX_TYPE_STATES] = {true}, backwards[MAX_TYPE_STATES] = {false};
  if (num_states == 0) return wf__fail(err, WF_ERR_FORMAT, "%s: an HMM without states", hmm->name);
  if (num_states > MAX_TYPE_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "%s: an HMM of %llu states; at most %d are supported",
                    hmm->name, (unsigned long long)num_states, (int)MAX_TYPE_STATES);
  if (type->final_cost.data[0] != INFINITY)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: an HMM whose first state is final can be passed without a frame",
                    hmm->name);
  for (uint64_t i = 0; i < type->arcs.size; i++) {
    const wf_arc *arc = &type->arcs.data[i];
    if (arc->nextstate >= num_states || arc->ilabel < 1 || arc->ilabel > wf__hmm_num_labels(hmm) ||
        !isfinite(arc->weight))
      return wf__fail(err, WF_ERR_FORMAT,
                      "%s: HMM arc to state %u with label %d, cost %g; it has %llu states and "
                      "there are labels 1 to %d",
                      hmm->name, arc->nextstate, (int)arc->ilabel, (double)arc->weight,
                      (unsigned long long)num_states, (int)wf__hmm_num_labels(hmm));
  }
  for (uint64_t s = 0; s < num_states; s++) backwards[s] = type->final_cost.data[s] != INFINITY;
  while (spread(type, false, forwards)) {
  }
  while (spread(type, true, backwards)) {
  }
  for (uint64_t s = 0; s < num_states; s++)
    if (!forwards[s] || !backwards[s])
      return wf__fail(err, WF_ERR_FORMAT, "%s: state %llu of an HMM is on no path through it",
                      hmm->name, (unsigned long long)s);
  return WF_OK;
}

wf_status wf__hmm_add_type(wf_hmm *hmm, const wf__csr *type, int32_t *out_type, wf_error *err) {
  *out_type = 0;
  WF__TRY(check_type(hmm, type, err));
  if (wf__hmm_num_types(hmm) >= INT32_MAX / 4)
    return wf__fail(err, WF_ERR_LIMIT, "%s: more than 2^29 HMMs", hmm->name);
  for (uint64_t s = 0; s < type->arc_off.size; s++) {
    WF__TRY(wf__csr_add_state(&hmm->types, type->final_cost.data[s], err));
    for (uint64_t i = type->arc_off.data[s]; i < end_of_arcs(type, s); i++)
      WF__TRY(wf__csr_push(&hmm->types, type->arcs.data[i], err));
  }
  WF__TRY(wf__vec_push(&hmm->type_first, hmm->types.arc_off.size, "HMM types", err));
  *out_type = wf__hmm_num_types(hmm);
  return WF_OK;
}

/* --- H ----------------------------------------------------------------------------------- */

struct making {
  const wf_hmm *hmm;
  float scale;
  int32_t num_disambig;
  wf__csr csr;
  uint32_t *state_of; /* [states of all types] their states in H; 0: the state between types */
  uint32_t num_states;
};

static bool is_end(const wf__csr *types, uint64_t s) {
  return types->final_cost.data[s] == 0 && types->arc_off.data[s] == end_of_arcs(types, s);
}

/* Assigns states of H. A start state without incoming arcs, and a final state without outgoing arcs
 * and cost, become state 0 of H. */
static wf_status number_states(struct making *making, wf_error *err) {
  const wf__csr *types = &making->hmm->types;
  making->num_states = 1;
  for (uint64_t t = 0; t + 1 < making->hmm->type_first.size; t++) {
    uint64_t first = making->hmm->type_first.data[t], end = making->hmm->type_first.data[t + 1];
    bool comes_back = false;
    for (uint64_t i = types->arc_off.data[first]; i < end_of_arcs(types, end - 1); i++)
      comes_back = comes_back || types->arcs.data[i].nextstate == 0;
    for (uint64_t s = first; s < end; s++)
      making->state_of[s] =
          (s == first && !comes_back) || is_end(types, s) ? 0 : making->num_states++;
  }
  return making->num_states <= WF__MAX_STATES
             ? WF_OK
             : wf__fail(err, WF_ERR_LIMIT, "H: more than 2^31 states");
}

/* Adds the arcs of state s of a type. `first` is the type's first state. */
static wf_status push_arcs(struct making *making, uint64_t first, uint64_t s, int32_t type,
                           wf_error *err) {
  const wf__csr *types = &making->hmm->types;
  for (uint64_t i = types->arc_off.data[s]; i < end_of_arcs(types, s); i++) {
    wf_arc arc = types->arcs.data[i];
    WF__TRY(wf__csr_push(&making->csr,
                         (wf_arc){making->state_of[first + arc.nextstate],
                                  making->scale * arc.weight, arc.ilabel, type},
                         err));
  }
  return WF_OK;
}

static wf_status make_states(struct making *making, wf_error *err) {
  const wf__csr *types = &making->hmm->types;
  const uint64_t *type_first = making->hmm->type_first.data;
  int32_t num_types = wf__hmm_num_types(making->hmm);
  WF__TRY(wf__csr_add_state(&making->csr, 0, err));
  for (int32_t t = 1; t <= num_types; t++) {
    uint32_t start = making->state_of[type_first[t - 1]];
    if (start == 0)
      WF__TRY(push_arcs(making, type_first[t - 1], type_first[t - 1], t, err));
    else
      WF__TRY(wf__csr_push(&making->csr, (wf_arc){start, 0, 0, t}, err));
  }
  for (int32_t k = 0; k < making->num_disambig; k++)
    WF__TRY(wf__csr_push(&making->csr,
                         (wf_arc){0, 0, wf__hmm_num_labels(making->hmm) + 1 + k, num_types + 1 + k},
                         err));
  for (int32_t t = 1; t <= num_types; t++)
    for (uint64_t s = type_first[t - 1]; s < type_first[t]; s++) {
      if (making->state_of[s] == 0) continue;
      WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
      WF__TRY(push_arcs(making, type_first[t - 1], s, 0, err));
      if (types->final_cost.data[s] != INFINITY)
        WF__TRY(wf__csr_push(&making->csr,
                             (wf_arc){0, making->scale * types->final_cost.data[s], 0, 0}, err));
    }
  return WF_OK;
}

wf_status wf__hmm_to_fst(const wf_hmm *hmm, float transition_scale, int32_t num_disambig,
                         wf_fst **out, wf_error *err) {
  *out = NULL;
  struct making making = {.hmm = hmm, .scale = transition_scale, .num_disambig = num_disambig};
  making.state_of = wf__alloc(hmm->types.arc_off.size, sizeof *making.state_of);
  if (making.state_of == NULL)
    return wf__fail_memory(err, hmm->types.arc_off.size * sizeof *making.state_of, "H");
  wf_status status = number_states(&making, err);
  if (status == WF_OK) status = make_states(&making, err);
  free(making.state_of);
  if (status == WF_OK) return wf__fst_from_csr(&making.csr, 0, WF_TROPICAL, NULL, NULL, out, err);
  wf__csr_free(&making.csr);
  return status;
}

wf_status wf_hmm_phone_starts(const wf_hmm *hmm, int32_t **out_phones, size_t *out_count,
                              wf_error *err) {
  uint64_t count = hmm->places.size;
  *out_phones = NULL;
  *out_count = 0;
  if (count == 0 || hmm->loops_repeat)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: only the labels of Kaldi models tell where phones begin", hmm->name);
  *out_phones = wf__alloc(count, sizeof **out_phones);
  if (*out_phones == NULL)
    return wf__fail_memory(err, count * sizeof **out_phones, "the phones of labels");
  for (uint64_t l = 0; l < count; l++)
    (*out_phones)[l] = hmm->places.data[l].first ? hmm->places.data[l].phone : 0;
  *out_count = count;
  return WF_OK;
}
