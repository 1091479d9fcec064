/* kaldi_topology.c - reads Kaldi's HmmTopology: the HMM of each phone.
 *
 *   text     <Topology> { ENTRY } </Topology>
 *            ENTRY:  <TopologyEntry> <ForPhones> 1 2 3 </ForPhones> { STATE } </TopologyEntry>
 *            STATE:  <State> 0 [<PdfClass> 0 | <ForwardPdfClass> 0 <SelfLoopPdfClass> 1]
 *                    { <Transition> TO PROB } </State>
 *   binary   <Topology> phones, entry by phone (integers), [-1] number of entries, { ENTRY }
 * </Topology> ENTRY:  number of states, { STATE } STATE:  forward class, [self-loop class], number
 * of transitions, { int32 to, float probability } The -1 tells that states have self-loop classes.
 */
#include <math.h>

#include "graph/kaldi_files.h"

/* --- states, in both formats ------------------------------------------------------------- */

static wf_status add_transition(const wf__kaldi_stream *stream, wf__topology *topology,
                                wf__topology_transition transition, wf_error *err) {
  if (!(transition.prob > 0) || !isfinite(transition.prob))
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "a transition has the probability %g; it must be above 0",
                          (double)transition.prob);
  WF__TRY(wf__vec_push(&topology->transitions, transition, "a topology", err));
  topology->states.data[topology->states.size - 1].num_transitions++;
  return WF_OK;
}

static wf_status read_transition(wf__kaldi_stream *stream, wf__topology *topology, wf_error *err) {
  wf__topology_transition transition;
  WF__TRY(wf__kaldi_i32(stream, &transition.to, "the state that a transition leads to", err));
  WF__TRY(wf__kaldi_f32(stream, &transition.prob, "the probability of a transition", err));
  return add_transition(stream, topology, transition, err);
}

static wf_status add_state(const wf__kaldi_stream *stream, wf__topology *topology,
                           int32_t forward_class, int32_t loop_class, wf_error *err) {
  wf__topology_entry *entry = &topology->entries.data[topology->entries.size - 1];
  if (entry->num_states >= WF__KALDI_MAX_STATES)
    return wf__kaldi_fail(stream, err, WF_ERR_LIMIT, "an HMM has more than %d states",
                          (int)WF__KALDI_MAX_STATES);
  bool none = forward_class == WF__KALDI_NO_PDF && loop_class == WF__KALDI_NO_PDF;
  bool fine = forward_class >= 0 && loop_class >= 0 && forward_class < 2 * WF__KALDI_MAX_STATES &&
              loop_class < 2 * WF__KALDI_MAX_STATES;
  if (!none && !fine)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "a state has the invalid pdf classes %d and %d", (int)forward_class,
                          (int)loop_class);
  if (forward_class >= entry->num_classes) entry->num_classes = forward_class + 1;
  if (loop_class >= entry->num_classes) entry->num_classes = loop_class + 1;
  topology->split = topology->split || forward_class != loop_class;
  entry->num_states++;
  return wf__vec_push(
      &topology->states,
      ((wf__topology_state){forward_class, loop_class, (uint32_t)topology->transitions.size, 0}),
      "a topology", err);
}

static wf_status add_entry(const wf__kaldi_stream *stream, wf__topology *topology, wf_error *err) {
  if (topology->states.size >= UINT32_MAX / 2 || topology->transitions.size >= UINT32_MAX / 2)
    return wf__kaldi_fail(stream, err, WF_ERR_LIMIT,
                          "a topology of more than 2^31 states or transitions");
  return wf__vec_push(&topology->entries,
                      ((wf__topology_entry){(uint32_t)topology->states.size, 0, 0}), "a topology",
                      err);
}

/* --- checks ------------------------------------------------------------------------------ */

static wf_status check_state(const wf__kaldi_stream *stream, const wf__topology *topology,
                             const wf__topology_entry *entry, int32_t index, wf_error *err) {
  const wf__topology_state *state = wf__topology_state_at(topology, entry, index);
  bool seen[WF__KALDI_MAX_STATES] = {false}, last = (uint32_t)index + 1 == entry->num_states;
  if (last != (state->num_transitions == 0))
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          last ? "state %d, the last, has transitions"
                               : "state %d has no transitions; only the last state may have none",
                          (int)index);
  for (uint32_t i = 0; i < state->num_transitions; i++) {
    int32_t to = topology->transitions.data[state->first_transition + i].to;
    if (to < 0 || (uint32_t)to >= entry->num_states)
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "a transition leads to state %d of %u",
                            (int)to, entry->num_states);
    if (seen[to])
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "two transitions from state %d to %d",
                            (int)index, (int)to);
    if (to == index && state->forward_class == WF__KALDI_NO_PDF)
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "state %d has a self-loop but no pdf class",
                            (int)index);
    seen[to] = true;
  }
  return WF_OK;
}

static wf_status check_entry(const wf__kaldi_stream *stream, const wf__topology *topology,
                             const wf__topology_entry *entry, wf_error *err) {
  if (entry->num_states < 2)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "an HMM needs an emitting and a last state; this one has %u states",
                          entry->num_states);
  for (uint32_t s = 0; s < entry->num_states; s++)
    WF__TRY(check_state(stream, topology, entry, (int32_t)s, err));
  return WF_OK;
}

static wf_status set_entry(const wf__kaldi_stream *stream, wf__topology *topology, int32_t phone,
                           int32_t entry, wf_error *err) {
  if (phone < 1 || phone > WF__KALDI_MAX_PHONE)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "phone %d; phones are numbered from 1 to at most %d", (int)phone,
                          (int)WF__KALDI_MAX_PHONE);
  while (topology->entry_of.size <= (uint64_t)phone)
    WF__TRY(wf__vec_push(&topology->entry_of, -1, "phones", err));
  if (topology->entry_of.data[phone] >= 0)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "phone %d has two HMMs", (int)phone);
  topology->entry_of.data[phone] = entry;
  topology->num_phones++;
  return WF_OK;
}

/* --- text -------------------------------------------------------------------------------- */

static wf_status read_phones_text(wf__kaldi_stream *stream, wf__topology *topology, wf_error *err) {
  wf__span token;
  int64_t phone;
  WF__TRY(wf__kaldi_expect(stream, "<ForPhones>", err));
  for (;;) {
    WF__TRY(wf__kaldi_token(stream, &token, err));
    if (wf__kaldi_is(token, "</ForPhones>")) return WF_OK;
    if (!wf__parse_i64(token, &phone) || phone < INT32_MIN || phone > INT32_MAX)
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                            "expected the number of a phone or '</ForPhones>', found '%.*s'",
                            WF__SPAN_ARG(token));
    WF__TRY(set_entry(stream, topology, (int32_t)phone, (int32_t)topology->entries.size - 1, err));
  }
}

/* Reads a state from after <State> to </State>. */
static wf_status read_state_text(wf__kaldi_stream *stream, wf__topology *topology, wf_error *err) {
  int32_t index, forward_class = WF__KALDI_NO_PDF, loop_class = WF__KALDI_NO_PDF;
  wf__span token;
  WF__TRY(wf__kaldi_i32(stream, &index, "the number of a state", err));
  if ((uint32_t)index != topology->entries.data[topology->entries.size - 1].num_states)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "state %d is not in order", (int)index);
  WF__TRY(wf__kaldi_token(stream, &token, err));
  if (wf__kaldi_is(token, "<PdfClass>")) {
    WF__TRY(wf__kaldi_i32(stream, &forward_class, "a pdf class", err));
    loop_class = forward_class;
    WF__TRY(wf__kaldi_token(stream, &token, err));
  } else if (wf__kaldi_is(token, "<ForwardPdfClass>")) {
    WF__TRY(wf__kaldi_i32(stream, &forward_class, "a pdf class", err));
    WF__TRY(wf__kaldi_expect(stream, "<SelfLoopPdfClass>", err));
    WF__TRY(wf__kaldi_i32(stream, &loop_class, "a pdf class", err));
    WF__TRY(wf__kaldi_token(stream, &token, err));
  }
  WF__TRY(add_state(stream, topology, forward_class, loop_class, err));
  while (wf__kaldi_is(token, "<Transition>")) {
    WF__TRY(read_transition(stream, topology, err));
    WF__TRY(wf__kaldi_token(stream, &token, err));
  }
  if (wf__kaldi_is(token, "</State>")) return WF_OK;
  return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                        "expected '<Transition>' or '</State>', found '%.*s'", WF__SPAN_ARG(token));
}

static wf_status read_entry_text(wf__kaldi_stream *stream, wf__topology *topology, wf_error *err) {
  wf__span token;
  WF__TRY(add_entry(stream, topology, err));
  WF__TRY(read_phones_text(stream, topology, err));
  for (;;) {
    WF__TRY(wf__kaldi_token(stream, &token, err));
    if (wf__kaldi_is(token, "</TopologyEntry>"))
      return check_entry(stream, topology, &topology->entries.data[topology->entries.size - 1],
                         err);
    if (!wf__kaldi_is(token, "<State>"))
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                            "expected '<State>' or '</TopologyEntry>', found '%.*s'",
                            WF__SPAN_ARG(token));
    WF__TRY(read_state_text(stream, topology, err));
  }
}

static wf_status read_text(wf__kaldi_stream *stream, wf__topology *topology, wf_error *err) {
  wf__span token;
  for (;;) {
    WF__TRY(wf__kaldi_token(stream, &token, err));
    if (wf__kaldi_is(token, "</Topology>")) return WF_OK;
    if (!wf__kaldi_is(token, "<TopologyEntry>"))
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                            "expected '<TopologyEntry>' or '</Topology>', found '%.*s'",
                            WF__SPAN_ARG(token));
    WF__TRY(read_entry_text(stream, topology, err));
  }
}

/* --- binary ------------------------------------------------------------------------------ */

static wf_status read_count(wf__kaldi_stream *stream, int32_t *out, const char *what,
                            wf_error *err) {
  WF__TRY(wf__kaldi_i32(stream, out, what, err));
  return *out >= 0 ? WF_OK
                   : wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "%s is %d", what, (int)*out);
}

static wf_status read_state_binary(wf__kaldi_stream *stream, wf__topology *topology, bool split,
                                   wf_error *err) {
  int32_t forward_class, loop_class, count;
  WF__TRY(wf__kaldi_i32(stream, &forward_class, "a pdf class", err));
  loop_class = forward_class;
  if (split) WF__TRY(wf__kaldi_i32(stream, &loop_class, "a pdf class", err));
  WF__TRY(add_state(stream, topology, forward_class, loop_class, err));
  WF__TRY(read_count(stream, &count, "the number of transitions", err));
  for (int32_t i = 0; i < count; i++) WF__TRY(read_transition(stream, topology, err));
  return WF_OK;
}

static wf_status read_entries_binary(wf__kaldi_stream *stream, wf__topology *topology,
                                     wf_error *err) {
  int32_t num_entries, num_states;
  WF__TRY(wf__kaldi_i32(stream, &num_entries, "the number of HMMs", err));
  bool split = num_entries == -1;
  if (split) WF__TRY(wf__kaldi_i32(stream, &num_entries, "the number of HMMs", err));
  if (num_entries < 0)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "the number of HMMs is %d", (int)num_entries);
  for (int32_t e = 0; e < num_entries; e++) {
    WF__TRY(add_entry(stream, topology, err));
    WF__TRY(read_count(stream, &num_states, "the number of states", err));
    for (int32_t s = 0; s < num_states; s++)
      WF__TRY(read_state_binary(stream, topology, split, err));
    WF__TRY(check_entry(stream, topology, &topology->entries.data[e], err));
  }
  return WF_OK;
}

static wf_status read_binary(wf__kaldi_stream *stream, wf__topology *topology, wf__ints *phones,
                             wf__ints *entry_of, wf_error *err) {
  WF__TRY(wf__kaldi_i32s(stream, phones, "phones", err));
  WF__TRY(wf__kaldi_i32s(stream, entry_of, "HMMs of phones", err));
  WF__TRY(read_entries_binary(stream, topology, err));
  for (uint64_t i = 0; i < phones->size; i++) {
    int32_t phone = phones->data[i],
            entry = phone >= 0 && (uint64_t)phone < entry_of->size ? entry_of->data[phone] : -1;
    if (entry < 0 || (uint64_t)entry >= topology->entries.size)
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "phone %d has no HMM", (int)phone);
    WF__TRY(set_entry(stream, topology, phone, entry, err));
  }
  return wf__kaldi_expect(stream, "</Topology>", err);
}

static wf_status read_binary_and_free(wf__kaldi_stream *stream, wf__topology *topology,
                                      wf_error *err) {
  wf__ints phones = {0}, entry_of = {0};
  wf_status status = read_binary(stream, topology, &phones, &entry_of, err);
  wf__vec_free(&phones);
  wf__vec_free(&entry_of);
  return status;
}

wf_status wf__topology_read(wf__kaldi_stream *stream, wf__topology *out, wf_error *err) {
  WF__TRY(wf__kaldi_expect(stream, "<Topology>", err));
  WF__TRY(stream->binary ? read_binary_and_free(stream, out, err) : read_text(stream, out, err));
  return out->num_phones != 0
             ? WF_OK
             : wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "the topology has no phones");
}

void wf__topology_free(wf__topology *topology) {
  wf__vec_free(&topology->entry_of);
  wf__vec_free(&topology->entries);
  wf__vec_free(&topology->states);
  wf__vec_free(&topology->transitions);
  *topology = (wf__topology){0};
}
