/* context.c - maps phones to HMM types by their neighbours: composes C o LG without building C.
 *
 * A state of C is a window that is being filled: the phones to the left, which have already become
 * HMMs, and the phones that wait for their right context.
 *
 *     history   left[0] .. left[central - 1]  |  pending[0] .. pending[width - central - 2]
 *               0: no phone (yet)
 *
 * When a phone c arrives and `pending` is full, the window left + pending + c is complete. Its type
 * is emitted, and all phones move one place to the left. A state of the result is a pair (state of
 * LG, history). Only pairs that are reachable are made. Special cases:
 *   - A context-free phone (silence) at the front of `pending` is emitted at once, on an arc that
 *     reads nothing from LG. Its leftmost phone can influence no later type and is set to 0.
 *   - Disambiguation symbols and epsilons of LG pass through. They leave the history as it is.
 *   - At a final state of LG the pending phones are emitted with 0 (the edge of the utterance) as
 *     right context, on arcs that lead to one state END. */
#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "fstops/connect.h"
#include "graph/hmm.h"

enum { DISAMBIG = 1 << 30 }; /* #k is DISAMBIG + k until the number of types is known */

struct history {
  int32_t phones[WF__HMM_MAX_WIDTH];
  uint32_t num_pending;
};

struct expanding {
  wf_hmm *hmm;
  wf_fst_view lg;
  uint32_t end; /* the state END, in place of a state of LG */
  int missing;
  wf_tally *dropped;
  uint64_t max_states;
  uint32_t num_left, num_pending; /* number of places in a history */
  int bits;                       /* of a phone in a packed window */
  wf__map64 windows;              /* packed window -> type */
  wf__map64 histories;            /* packed history -> index in history_list */
  WF__VEC(struct history) history_list;
  wf__map64 states;        /* state of LG << 32 | history -> state of the result */
  WF__VEC(uint64_t) queue; /* the same keys, by state of the result */
  wf__csr csr;
};

/* --- windows and histories --------------------------------------------------------------- */

/* Bits of a phone in a packed window. */
static int bits_of(const wf_hmm *hmm) {
  int bits = 1;
  while (hmm->num_phones >> bits != 0) bits++;
  return bits;
}

static uint64_t pack(const struct expanding *e, const int32_t *phones, uint32_t count) {
  uint64_t key = 0;
  for (uint32_t i = 0; i < count; i++) key = key << e->bits | (uint64_t)phones[i];
  return key;
}

/* Finds the type of a window that has not been seen before. 0: arcs with this window are dropped.
 */
static wf_status find_type(const struct expanding *e, const int32_t *window, int32_t *out_type,
                           wf_error *err) {
  char text[512];
  uint64_t before = e->hmm->substituted.count;
  WF__TRY(e->hmm->methods->find_type(e->hmm, window, out_type, err));
  bool own = *out_type != 0 && e->hmm->substituted.count == before;
  if (own) return WF_OK;
  wf__hmm_window_text(e->hmm, window, text, sizeof text);
  if (e->missing == WF_MISSING_HMM_DROP) {
    wf__tally_free(&e->hmm->substituted); /* nothing was substituted: windows without an HMM of
                                             their own are dropped */
    *out_type = 0;
    return wf__tally_add(e->dropped, text, err);
  }
  if (*out_type != 0 && e->missing != WF_MISSING_HMM_ERROR) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT, "%s: no HMM for '%s'", e->hmm->name, text);
}

static wf_status look_up(struct expanding *e, const int32_t *window, int32_t *out_type,
                         wf_error *err) {
  uint64_t key = pack(e, window, (uint32_t)e->hmm->width);
  uint32_t type = wf__map64_find(&e->windows, key);
  if (type == WF__MAP64_NONE) {
    WF__TRY(find_type(e, window, out_type, err));
    return wf__map64_insert(&e->windows, key, (uint32_t)*out_type, &type, NULL, "windows", err);
  }
  *out_type = (int32_t)type;
  return WF_OK;
}

static wf_status intern(struct expanding *e, const struct history *history, uint32_t *out_index,
                        wf_error *err) {
  bool fresh;
  uint64_t key = pack(e, history->phones, e->num_left + e->num_pending);
  WF__TRY(wf__map64_insert(&e->histories, key, (uint32_t)e->history_list.size, out_index, &fresh,
                           "histories", err));
  return fresh ? wf__vec_push(&e->history_list, *history, "histories", err) : WF_OK;
}

static bool front_is_free(const struct expanding *e, const struct history *history) {
  return history->num_pending != 0 && e->hmm->context_free[history->phones[e->num_left]];
}

/* Emits the phone at the front of `pending`, with `phone` as the next phone to the right. `phone`
 * is 0 at the edge of the utterance, or if the front phone is context-free. */
static wf_status emit_front(struct expanding *e, struct history *history, int32_t phone,
                            int32_t *out_type, wf_error *err) {
  int32_t window[WF__HMM_MAX_WIDTH] = {0}, *pending = history->phones + e->num_left;
  memcpy(window, history->phones, (e->num_left + history->num_pending) * sizeof *window);
  window[e->num_left + history->num_pending] = phone;
  int32_t front = window[e->num_left];
  WF__TRY(look_up(e, window, out_type, err));
  for (uint32_t i = 0; i + 1 < e->num_left; i++) history->phones[i] = history->phones[i + 1];
  if (e->num_left != 0) history->phones[e->num_left - 1] = e->hmm->context_of[front];
  if (e->num_pending == 0) return WF_OK;
  memmove(pending, pending + 1, (e->num_pending - 1) * sizeof *pending);
  pending[e->num_pending - 1] = 0;
  history->num_pending--;
  if (phone != 0) pending[history->num_pending++] = phone;
  return WF_OK;
}

/* Appends a phone to the history. *out_type is the type that this emits, 0 if none. *out_keep is
 * false if the arc must be dropped. */
static wf_status shift(struct expanding *e, struct history *history, int32_t phone,
                       int32_t *out_type, bool *out_keep, wf_error *err) {
  *out_type = 0;
  *out_keep = true;
  if (history->num_pending < e->num_pending) {
    history->phones[e->num_left + history->num_pending++] = phone;
    return WF_OK;
  }
  WF__TRY(emit_front(e, history, phone, out_type, err));
  *out_keep = *out_type != 0;
  return WF_OK;
}

/* --- states ------------------------------------------------------------------------------ */

static wf_status push(struct expanding *e, int32_t ilabel, int32_t olabel, float weight, uint32_t q,
                      struct history *to, wf_error *err) {
  uint32_t index, state;
  bool fresh;
  if (e->num_left != 0 && front_is_free(e, to)) to->phones[0] = 0;
  if (q == e->end && to->num_pending == 0) memset(to->phones, 0, sizeof to->phones);
  WF__TRY(intern(e, to, &index, err));
  uint64_t key = (uint64_t)q << 32 | index;
  WF__TRY(
      wf__map64_insert(&e->states, key, (uint32_t)e->queue.size, &state, &fresh, "states", err));
  if (fresh) {
    if (e->queue.size >= e->max_states)
      return wf__fail(err, WF_ERR_LIMIT, "more than %llu states",
                      (unsigned long long)e->max_states);
    WF__TRY(wf__vec_push(&e->queue, key, "states", err));
  }
  return wf__csr_push(&e->csr, (wf_arc){state, weight, ilabel, olabel}, err);
}

static wf_status push_emitted(struct expanding *e, struct history history, uint32_t q, float weight,
                              wf_error *err) {
  int32_t type;
  WF__TRY(emit_front(e, &history, 0, &type, err));
  return type != 0 ? push(e, type, 0, weight, q, &history, err) : WF_OK;
}

static wf_status push_arcs(struct expanding *e, uint32_t q, const struct history *history,
                           wf_error *err) {
  for (uint64_t i = e->lg.arc_off[q]; i < e->lg.arc_off[q + 1]; i++) {
    wf_arc arc = e->lg.arcs[i];
    struct history to = *history;
    int32_t type = 0;
    bool keep = true;
    if (arc.ilabel > e->hmm->num_phones)
      type = DISAMBIG + (arc.ilabel - e->hmm->num_phones - 1);
    else if (arc.ilabel != 0)
      WF__TRY(shift(e, &to, arc.ilabel, &type, &keep, err));
    if (keep) WF__TRY(push(e, type, arc.olabel, arc.weight, arc.nextstate, &to, err));
  }
  return WF_OK;
}

static wf_status make_state(struct expanding *e, uint64_t key, wf_error *err) {
  uint32_t q = (uint32_t)(key >> 32);
  struct history history = e->history_list.data[(uint32_t)key];
  bool waits = history.num_pending != 0;
  if (front_is_free(e, &history)) {
    WF__TRY(wf__csr_add_state(&e->csr, INFINITY, err));
    return push_emitted(e, history, q, 0, err);
  }
  float final_cost = q == e->end ? 0 : e->lg.final_cost[q];
  WF__TRY(wf__csr_add_state(&e->csr, waits ? INFINITY : final_cost, err));
  if (q != e->end) WF__TRY(push_arcs(e, q, &history, err));
  return waits && final_cost != INFINITY ? push_emitted(e, history, e->end, final_cost, err)
                                         : WF_OK;
}

static wf_status make_all(struct expanding *e, wf_error *err) {
  struct history none = {{0}, 0};
  uint32_t index, state;
  if (e->lg.start < 0) return WF_OK;
  WF__TRY(intern(e, &none, &index, err));
  WF__TRY(wf__map64_insert(&e->states, (uint64_t)e->lg.start << 32 | index, 0, &state, NULL,
                           "states", err));
  WF__TRY(wf__vec_push(&e->queue, ((uint64_t)e->lg.start << 32 | index), "states", err));
  for (uint64_t s = 0; s < e->queue.size; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    WF__TRY(make_state(e, e->queue.data[s], err));
  }
  int32_t num_types = wf__hmm_num_types(e->hmm);
  for (uint64_t i = 0; i < e->csr.arcs.size; i++)
    if (e->csr.arcs.data[i].ilabel >= DISAMBIG)
      e->csr.arcs.data[i].ilabel += num_types + 1 - DISAMBIG;
  return WF_OK;
}

static wf_status check_context(const struct expanding *e, wf_error *err) {
  const wf_hmm *hmm = e->hmm;
  if (hmm->width < 1 || hmm->width > WF__HMM_MAX_WIDTH || hmm->central < 0 ||
      hmm->central >= hmm->width || hmm->width * e->bits > 63)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: unsupported context: width %d, central phone at %d, %d phones", hmm->name,
                    (int)hmm->width, (int)hmm->num_phones, (int)hmm->central);
  return WF_OK;
}

static wf_status check_labels(const struct expanding *e, int32_t num_disambig, wf_error *err) {
  const wf_hmm *hmm = e->hmm;
  for (uint64_t i = 0; i < e->lg.num_arcs; i++)
    if (e->lg.arcs[i].ilabel > hmm->num_phones + num_disambig)
      return wf__fail(
          err, WF_ERR_ARGUMENT,
          "input label %d is out of range; there are %d phones and %d disambiguation symbols",
          (int)e->lg.arcs[i].ilabel, (int)hmm->num_phones, (int)num_disambig);
  return WF_OK;
}

wf_status wf__hmm_expand(wf_hmm *hmm, const wf_fst *fst, int32_t num_disambig, int missing,
                         uint64_t max_states, wf_tally *dropped, wf_fst **out, wf_error *err) {
  *out = NULL;
  struct expanding e = {
      .hmm = hmm, .lg = wf_fst_get_view(fst), .missing = missing, .dropped = dropped};
  wf_fst *made = NULL;
  e.max_states = max_states != 0 ? max_states : WF__MAX_STATES;
  e.end = (uint32_t)e.lg.num_states;
  e.num_left = (uint32_t)hmm->central;
  e.num_pending = (uint32_t)(hmm->width - hmm->central - 1);
  e.bits = bits_of(hmm);
  wf_status status = check_context(&e, err);
  if (status == WF_OK) status = check_labels(&e, num_disambig, err);
  if (status == WF_OK) status = make_all(&e, err);
  wf__map64_free(&e.windows);
  wf__map64_free(&e.histories);
  wf__map64_free(&e.states);
  wf__vec_free(&e.history_list);
  wf__vec_free(&e.queue);
  if (status == WF_OK)
    status = wf__fst_from_csr(&e.csr, e.csr.arc_off.size != 0 ? 0 : -1, e.lg.semiring, NULL,
                              wf_fst_osymbols(fst), &made, err);
  else
    wf__csr_free(&e.csr);
  if (status == WF_OK && missing == WF_MISSING_HMM_DROP)
    status = wf__connect(made, 0, out, err);
  else if (status == WF_OK)
    *out = wf_fst_ref(made);
  wf_fst_free(made);
  return status;
}

/* --- on a GPU ---------------------------------------------------------------------------- */

static wf_status find_types(void *user, const uint64_t *windows, uint64_t count, int32_t *types,
                            wf_error *err) {
  const struct expanding *e = user;
  for (uint64_t k = 0; k < count; k++) {
    int32_t window[WF__HMM_MAX_WIDTH] = {0};
    uint64_t key = windows[k];
    for (int32_t i = e->hmm->width; i-- > 0; key >>= e->bits)
      window[i] = (int32_t)(key & (((uint64_t)1 << e->bits) - 1));
    WF__TRY(find_type(e, window, &types[k], err));
  }
  return WF_OK;
}

static int32_t num_types(void *user) {
  return wf__hmm_num_types(((const struct expanding *)user)->hmm);
}

wf_status wf__hmm_expand_on_gpu(wf_hmm *hmm, const wf__gpu_batch *lg, int32_t num_disambig,
                                int missing, uint64_t max_states, wf_tally *dropped,
                                wf__gpu_batch **out, wf_error *err) {
  struct expanding e = {.hmm = hmm, .missing = missing, .dropped = dropped, .bits = bits_of(hmm)};
  const wf__window_rule rule = {.width = hmm->width,
                                .central = hmm->central,
                                .bits = e.bits,
                                .num_phones = hmm->num_phones,
                                .num_disambig = num_disambig,
                                .context_of = hmm->context_of,
                                .context_free = hmm->context_free,
                                .max_states = max_states != 0 ? max_states : WF__MAX_STATES,
                                .connect = missing == WF_MISSING_HMM_DROP,
                                .find_types = find_types,
                                .num_types = num_types,
                                .user = &e};
  *out = NULL;
  WF__TRY(check_context(&e, err));
  wf_status status = wf__gpu_fstops()->expand(lg, &rule, out, err);
  if (status == WF_OK) return WF_OK;
  wf__tally_free(dropped); /* the CPU may try */
  wf__tally_free(&hmm->substituted);
  return status;
}
