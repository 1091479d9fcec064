/* kaldi_transitions.c - reads Kaldi's TransitionModel, the first part of every model file.
 *
 *   <TransitionModel> TOPOLOGY
 *   <Triples> n  n x (phone, HMM state, pdf) </Triples>
 *   or  <Tuples> n  n x (phone, HMM state, forward pdf, self-loop pdf) </Tuples>
 *   <LogProbs> vector by transition-id, from 1 </LogProbs> </TransitionModel> */
#include <math.h>

#include "graph/kaldi_files.h"

/* The order of transition-states. */
static int compare(const wf__transition_state *a, const wf__transition_state *b) {
  if (a->phone != b->phone) return a->phone < b->phone ? -1 : 1;
  if (a->state != b->state) return a->state < b->state ? -1 : 1;
  if (a->forward_pdf != b->forward_pdf) return a->forward_pdf < b->forward_pdf ? -1 : 1;
  return a->loop_pdf < b->loop_pdf ? -1 : a->loop_pdf > b->loop_pdf;
}

static wf_status check_state(const wf__kaldi_stream *stream,
                             const wf__kaldi_transitions *transitions,
                             const wf__transition_state *state, wf_error *err) {
  const wf__topology_entry *entry = wf__topology_of(&transitions->topology, state->phone);
  if (entry == NULL)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "a transition-state belongs to phone %d, which has no HMM",
                          (int)state->phone);
  if (state->state < 0 || (uint32_t)state->state >= entry->num_states ||
      wf__topology_state_at(&transitions->topology, entry, state->state)->forward_class ==
          WF__KALDI_NO_PDF)
    return wf__kaldi_fail(
        stream, err, WF_ERR_FORMAT,
        "a transition-state belongs to phone %d, state %d, which is not an emitting state",
        (int)state->phone, (int)state->state);
  if (state->forward_pdf < 0 || state->loop_pdf < 0 || state->forward_pdf >= WF__KALDI_MAX_PDF ||
      state->loop_pdf >= WF__KALDI_MAX_PDF)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                          "a transition-state has the invalid pdfs %d and %d",
                          (int)state->forward_pdf, (int)state->loop_pdf);
  if (transitions->states.size != 0 &&
      compare(&transitions->states.data[transitions->states.size - 1], state) >= 0)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "transition-state %llu is not in order",
                          (unsigned long long)transitions->states.size + 1);
  return WF_OK;
}

/* Adds a transition-state and assigns its transition-ids. */
static wf_status add_state(const wf__kaldi_stream *stream, wf__kaldi_transitions *transitions,
                           wf__transition_state state, wf_error *err) {
  WF__TRY(check_state(stream, transitions, &state, err));
  const wf__topology *topology = &transitions->topology;
  const wf__topology_state *shape =
      wf__topology_state_at(topology, wf__topology_of(topology, state.phone), state.state);
  state.first_id = transitions->num_ids + 1;
  state.loop_id = 0;
  for (uint32_t i = 0; i < shape->num_transitions; i++)
    if (topology->transitions.data[shape->first_transition + i].to == state.state)
      state.loop_id = state.first_id + (int32_t)i;
  transitions->num_ids += (int32_t)shape->num_transitions;
  if (transitions->num_ids > INT32_MAX / 4)
    return wf__kaldi_fail(stream, err, WF_ERR_LIMIT, "more than 2^29 transition-ids");
  if (state.forward_pdf >= transitions->num_pdfs) transitions->num_pdfs = state.forward_pdf + 1;
  if (state.loop_pdf >= transitions->num_pdfs) transitions->num_pdfs = state.loop_pdf + 1;
  return wf__vec_push(&transitions->states, state, "transition-states", err);
}

static wf_status read_states(wf__kaldi_stream *stream, wf__kaldi_transitions *transitions,
                             wf_error *err) {
  wf__span token;
  int32_t count;
  WF__TRY(wf__kaldi_token(stream, &token, err));
  bool tuples = wf__kaldi_is(token, "<Tuples>");
  if (!tuples && !wf__kaldi_is(token, "<Triples>"))
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "expected '<Triples>' or '<Tuples>'");
  WF__TRY(wf__kaldi_i32(stream, &count, "the number of transition-states", err));
  if (count < 0)
    return wf__kaldi_fail(stream, err, WF_ERR_FORMAT, "the number of transition-states is %d",
                          (int)count);
  for (int32_t i = 0; i < count; i++) {
    wf__transition_state state;
    WF__TRY(wf__kaldi_i32(stream, &state.phone, "the phone of a transition-state", err));
    WF__TRY(wf__kaldi_i32(stream, &state.state, "the HMM state of a transition-state", err));
    WF__TRY(wf__kaldi_i32(stream, &state.forward_pdf, "the pdf of a transition-state", err));
    state.loop_pdf = state.forward_pdf;
    if (tuples) WF__TRY(wf__kaldi_i32(stream, &state.loop_pdf, "the pdf of a self-loop", err));
    WF__TRY(add_state(stream, transitions, state, err));
  }
  return wf__kaldi_expect(stream, tuples ? "</Tuples>" : "</Triples>", err);
}

static wf_status read_log_probs(wf__kaldi_stream *stream, wf__kaldi_transitions *transitions,
                                wf_error *err) {
  wf__floats *log_probs = &transitions->log_probs;
  WF__TRY(wf__kaldi_expect(stream, "<LogProbs>", err));
  WF__TRY(wf__kaldi_vector(stream, log_probs, "log probabilities", err));
  if (log_probs->size != (uint64_t)transitions->num_ids + 1)
    return wf__kaldi_fail(
        stream, err, WF_ERR_FORMAT,
        "%llu log probabilities for %d transition-ids; expected one more than there are ids",
        (unsigned long long)log_probs->size, (int)transitions->num_ids);
  for (int32_t i = 1; i <= transitions->num_ids; i++)
    if (!(log_probs->data[i] <= 0) || !isfinite(log_probs->data[i]))
      return wf__kaldi_fail(stream, err, WF_ERR_FORMAT,
                            "transition-id %d has the log probability %g; it must be at most 0",
                            (int)i, (double)log_probs->data[i]);
  return wf__kaldi_expect(stream, "</LogProbs>", err);
}

static wf_status read_transitions(wf__kaldi_stream *stream, wf__kaldi_transitions *transitions,
                                  wf_error *err) {
  WF__TRY(wf__kaldi_expect(stream, "<TransitionModel>", err));
  WF__TRY(wf__topology_read(stream, &transitions->topology, err));
  WF__TRY(read_states(stream, transitions, err));
  WF__TRY(read_log_probs(stream, transitions, err));
  return wf__kaldi_expect(stream, "</TransitionModel>", err);
}

wf_status wf__kaldi_transitions_read(const wf__input *input, wf__kaldi_transitions *out,
                                     wf_error *err) {
  *out = (wf__kaldi_transitions){0};
  wf__kaldi_stream stream = wf__kaldi_open(input);
  wf_status status = read_transitions(&stream, out, err);
  if (status != WF_OK) wf__kaldi_transitions_free(out);
  return status;
}

void wf__kaldi_transitions_free(wf__kaldi_transitions *transitions) {
  wf__topology_free(&transitions->topology);
  wf__vec_free(&transitions->states);
  wf__vec_free(&transitions->log_probs);
  *transitions = (wf__kaldi_transitions){0};
}

const wf__transition_state *wf__kaldi_find_state(const wf__kaldi_transitions *transitions,
                                                 int32_t phone, int32_t state, int32_t forward_pdf,
                                                 int32_t loop_pdf) {
  wf__transition_state wanted = {phone, state, forward_pdf, loop_pdf, 0, 0};
  uint64_t low = 0, high = transitions->states.size;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    int order = compare(&transitions->states.data[middle], &wanted);
    if (order == 0) return &transitions->states.data[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}
