/* openfst_edit.c - reads OpenFst's EditFst files: an fst and changes to it.
 *
 *   the fst | the edits: a vector fst with the changed and new states, whose arcs lead to states of
 *   the whole | map of states to edits: i64 count, count x {i32 state, i32 state of the edits} |
 *   map of final weights: i64 count, count x {i32 state, weight} | i32 number of new states */
#include <string.h>

#include "fst/openfst_types.h"

struct edit {
  wf__csr base, edits;
  uint32_t *edited; /* [number of states] state of the edits; UINT32_MAX: not edited */
  float *final;     /* [number of states] */
  bool *taken;      /* [number of states of the edits] a state is edited as this one */
};

static wf_status read_states(wf__cursor *cursor, uint64_t num_states, struct edit *e,
                             wf_error *err) {
  uint64_t count;
  WF__TRY(wf__openfst_read_count(cursor, 8, &count, "edited states", err));
  for (uint64_t k = 0; k < count; k++) {
    uint32_t state, to;
    WF__TRY(wf__read_u32(cursor, &state, "an edited state", err));
    WF__TRY(wf__read_u32(cursor, &to, "an edited state", err));
    if (state >= num_states || to >= e->edits.final_cost.size)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "state %u is edited as state %u", state,
                             to);
    if (e->taken[to]) /* OpenFst never shares them, and a small file could become a huge fst */
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                             "state %u is edited as state %u, as another state is", state, to);
    e->taken[to] = true;
    e->edited[state] = to;
    e->final[state] = e->edits.final_cost.data[to];
  }
  return WF_OK;
}

static wf_status read_finals(wf__cursor *cursor, const wf__openfst_header *h, struct edit *e,
                             wf_error *err) {
  uint64_t count;
  WF__TRY(wf__openfst_read_count(cursor, 4 + h->weight_bytes, &count, "edited final weights", err));
  for (uint64_t k = 0; k < count; k++) {
    uint32_t state;
    const uint8_t *weight;
    WF__TRY(wf__read_u32(cursor, &state, "an edited final weight", err));
    WF__TRY(wf__read_view(cursor, &weight, h->weight_bytes, "an edited final weight", err));
    if (state >= (uint64_t)h->num_states ||
        !wf__load_weight(weight, h->weight_bytes, &e->final[state]))
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "bad final weight of state %u", state);
  }
  return WF_OK;
}

static wf_status merge(const struct edit *e, uint64_t num_states, wf__csr *csr, wf_error *err) {
  for (uint64_t s = 0; s < num_states; s++) {
    const wf__csr *from = e->edited[s] != UINT32_MAX ? &e->edits : &e->base;
    uint64_t state = e->edited[s] != UINT32_MAX ? e->edited[s] : s;
    WF__TRY(wf__csr_add_state(csr, e->final[s], err));
    if (state >= from->final_cost.size) continue; /* a new state without edits */
    uint64_t end = state + 1 < from->arc_off.size ? from->arc_off.data[state + 1] : from->arcs.size;
    for (uint64_t i = from->arc_off.data[state]; i < end; i++)
      WF__TRY(wf__csr_push(csr, from->arcs.data[i], err));
  }
  return WF_OK;
}

static wf_status read_parts(wf__cursor *cursor, const wf__openfst_header *h,
                            wf__openfst_reader *read_inner, struct edit *e, wf__csr *csr,
                            wf_error *err) {
  uint64_t num_states = (uint64_t)h->num_states;
  int32_t num_new;
  WF__TRY(read_inner(cursor, h, 0, &e->base, err));
  WF__TRY(read_inner(cursor, h, num_states, &e->edits, err));
  if (e->base.final_cost.size > num_states ||
      num_states > e->base.final_cost.size + e->edits.final_cost.size)
    return wf__cursor_fail(
        cursor, err, WF_ERR_FORMAT, "%llu states, but %llu of the fst and %llu of its edits",
        (unsigned long long)num_states, (unsigned long long)e->base.final_cost.size,
        (unsigned long long)e->edits.final_cost.size);
  e->edited = wf__alloc(num_states, sizeof *e->edited);
  e->final = wf__alloc(num_states, sizeof *e->final);
  e->taken = wf__calloc(e->edits.final_cost.size + 1, sizeof *e->taken);
  if (e->edited == NULL || e->final == NULL || e->taken == NULL)
    return wf__fail_memory(err, num_states * 8, "edited states");
  for (uint64_t s = 0; s < num_states; s++) {
    e->edited[s] = UINT32_MAX;
    e->final[s] = s < e->base.final_cost.size ? e->base.final_cost.data[s] : INFINITY;
  }
  WF__TRY(read_states(cursor, num_states, e, err));
  WF__TRY(read_finals(cursor, h, e, err));
  WF__TRY(wf__read_i32(cursor, &num_new, "the number of new states", err));
  return merge(e, num_states, csr, err);
}

wf_status wf__openfst_read_edit(wf__cursor *cursor, const wf__openfst_header *h,
                                wf__openfst_reader *read_inner, wf__csr *csr, wf_error *err) {
  struct edit e = {0};
  wf_status status = read_parts(cursor, h, read_inner, &e, csr, err);
  wf__csr_free(&e.base);
  wf__csr_free(&e.edits);
  free(e.edited);
  free(e.final);
  free(e.taken);
  return status;
}
