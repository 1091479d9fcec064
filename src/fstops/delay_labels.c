/* delay_labels.c - splits output strings on arcs into single labels. An arc emits the first label
 * of its string; the rest is delayed to the next arcs.
 *
 * A state of the result is a pair of a state and a pending string, which comes before the output of
 * the state's arcs. If a string is pending at a final state, a chain of arcs with input epsilon
 * emits it on the way to an added final state. No other arcs get an input epsilon, so a
 * deterministic input gives a deterministic result. OpenFst factors pushed weights in the same way
 * (FactorWeightFst), with the same states.
 *
 * After pushing towards the start, the string pending at a state is a suffix of the string that was
 * pushed past it (no label is emitted later than before), so there are few of them. After pushing
 * towards the final states there can be exponentially many, so the caller sets a limit. */
#include "fstops/pair_table.h"
#include "fstops/push.h"

struct delay {
  wf__strings *strings;
  const wf__pushed *pushed;
  uint64_t num_states;
  wf__pairs states; /* (state, string); state num_states is the added final state */
  wf__csr made;
};

/* Adds an arc that emits the first label of `string`. The rest is pending in its target state. */
static wf_status put_arc(struct delay *d, wf_arc arc, uint32_t string, wf_error *err) {
  uint32_t rest = string == 0 ? 0 : wf__string_rest(d->strings, string);
  arc.olabel = string == 0 ? 0 : (int32_t)wf__string_label(d->strings, string);
  WF__TRY(wf__pairs_find(&d->states, arc.nextstate, rest, &arc.nextstate, err));
  return wf__csr_push(&d->made, arc, err);
}

static wf_status make_last(struct delay *d, uint32_t string, wf_error *err) {
  WF__TRY(wf__csr_add_state(&d->made, string == 0 ? 0 : INFINITY, err));
  return string == 0 ? WF_OK
                     : put_arc(d, (wf_arc){.nextstate = (uint32_t)d->num_states}, string, err);
}

static wf_status make_state(struct delay *d, wf__pair at, wf_error *err) {
  const wf__csr *csr = d->pushed->csr;
  const uint32_t *potential = d->pushed->potential, *final_string = d->pushed->final_string;
  if (at.first == d->num_states) return make_last(d, at.second, err);
  float final_cost = csr->final_cost.data[at.first];
  uint32_t at_end = at.second;
  if (final_cost != INFINITY && final_string != NULL)
    WF__TRY(wf__string_concat(d->strings, at.second, final_string[at.first], &at_end, err));
  bool pending = final_cost != INFINITY && at_end != 0;
  WF__TRY(wf__csr_add_state(&d->made, pending ? INFINITY : final_cost, err));
  uint64_t end = at.first + 1 < d->num_states ? csr->arc_off.data[at.first + 1] : csr->arcs.size;
  for (uint64_t i = csr->arc_off.data[at.first]; i < end; i++) {
    wf_arc arc = csr->arcs.data[i];
    uint32_t string = (uint32_t)arc.olabel;
    bool dead = potential != NULL && potential[arc.nextstate] == WF__STRING_NONE;
    if (dead)
      string = string == 0 ? 0 : wf__string_of((int32_t)wf__string_label(d->strings, string));
    else
      WF__TRY(wf__string_concat(d->strings, at.second, string, &string, err));
    WF__TRY(put_arc(d, arc, string, err));
  }
  return pending ? put_arc(d, (wf_arc){.nextstate = (uint32_t)d->num_states, .weight = final_cost},
                           at_end, err)
                 : WF_OK;
}

/* Sets number[k], the final number of state k of the result. The first pair found for each input
 * state comes first, in the order of input states; the other pairs follow. `order` is the inverse.
 */
static void number_states(const struct delay *d, uint32_t *first, uint32_t *number,
                          uint32_t *order) {
  uint32_t next = 0;
  for (uint64_t s = 0; s <= d->num_states; s++) first[s] = UINT32_MAX;
  for (uint64_t k = 0; k < d->states.list.size; k++)
    if (first[d->states.list.data[k].first] == UINT32_MAX)
      first[d->states.list.data[k].first] = (uint32_t)k;
  for (uint64_t s = 0; s < d->num_states; s++)
    if (first[s] != UINT32_MAX) order[next++] = first[s];
  for (uint64_t k = 0; k < d->states.list.size; k++) {
    uint32_t state = d->states.list.data[k].first;
    if (state == d->num_states || first[state] != k) order[next++] = (uint32_t)k;
  }
  for (uint32_t k = 0; k < next; k++) number[order[k]] = k;
}

static wf_status write_result(struct delay *d, int64_t *start, wf__csr *out, wf_error *err) {
  uint64_t count = d->states.list.size;
  uint32_t *number = wf__alloc(count, sizeof *number), *order = wf__alloc(count, sizeof *order),
           *first = wf__alloc(d->num_states + 1, sizeof *first);
  bool fine = number != NULL && order != NULL && first != NULL;
  wf_status status = fine ? WF_OK : wf__fail_memory(err, count * 8 + d->num_states * 4, "states");
  if (fine) number_states(d, first, number, order);
  if (fine && count > 0) *start = number[0];
  for (uint64_t k = 0; k < count && status == WF_OK; k++) {
    uint32_t s = order[k];
    uint64_t end = s + 1 < count ? d->made.arc_off.data[s + 1] : d->made.arcs.size;
    status = wf__csr_add_state(out, d->made.final_cost.data[s], err);
    for (uint64_t i = d->made.arc_off.data[s]; i < end && status == WF_OK; i++) {
      wf_arc arc = d->made.arcs.data[i];
      arc.nextstate = number[arc.nextstate];
      status = wf__csr_push(out, arc, err);
    }
  }
  free(number);
  free(order);
  free(first);
  return status;
}

wf_status wf__delay_labels(wf__strings *strings, const wf__pushed *pushed, uint64_t most_states,
                           int64_t *start, wf__csr *out, bool *fits, wf_error *err) {
  struct delay d = {
      .strings = strings, .pushed = pushed, .num_states = pushed->csr->final_cost.size};
  uint32_t first;
  wf_status status =
      *start >= 0 ? wf__pairs_find(&d.states, (uint32_t)*start, 0, &first, err) : WF_OK;
  for (uint64_t k = 0;
       status == WF_OK && k < d.states.list.size && d.states.list.size <= most_states; k++)
    status = make_state(&d, d.states.list.data[k], err);
  *fits = d.states.list.size <= most_states;
  if (status == WF_OK && *fits) status = write_result(&d, start, out, err);
  wf__pairs_free(&d.states);
  wf__csr_free(&d.made);
  return status;
}
