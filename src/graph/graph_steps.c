/* graph_steps.c - see graph_steps.h. */
#include "graph/graph_steps.h"

#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include "base/callbacks.h"
#include "graph/push_even.h"

/* --- running ----------------------------------------------------------------------------- */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t peak_bytes(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

wf_status wf__step_run(wf__step_runner *runner, const wf__step *step, size_t i, size_t count,
                       void *build, wf_error *err) {
  WF__TRY(wf__progress(runner->progress, step->stage, (double)i / (double)count, err));
  double begin = now_s();
  wf_status status = step->run(build, err);
  if (status != WF_OK) return wf__fail_prefix(err, status, "%s", step->stage);
  if (runner->step_fn == NULL) return WF_OK;
  wf_fst_view view = wf_fst_get_view(runner->made);
  wf_graph_step report = {step->name,    step->file,      view.num_states,
                          view.num_arcs, now_s() - begin, peak_bytes()};
  if (runner->step_fn(runner->step_user, &report, runner->made)) return WF_OK;
  return wf__fail(err, WF_ERR_CANCELLED, "cancelled after %s", step->stage);
}

void wf__slot_set(wf__step_runner *runner, wf_fst **slot, wf_fst *fst) {
  wf_fst_free(*slot);
  *slot = fst;
  runner->made = fst;
}

void wf__slot_clear(wf_fst **slot) {
  wf_fst_free(*slot);
  *slot = NULL;
}

/* --- operations -------------------------------------------------------------------------- */

wf_status wf__slot_sort_olabels(wf__step_runner *runner, wf_fst **slot, wf_error *err) {
  wf_arcsort_options o;
  wf_fst *sorted;
  wf_arcsort_options_init(&o);
  o.sort_type = 1;
  WF__TRY(wf_arcsort(*slot, &o, &sorted, err));
  wf__slot_set(runner, slot, sorted);
  return WF_OK;
}

wf_status wf__slot_determinize(wf__step_runner *runner, wf_fst **slot, bool allow_nonfunctional,
                               int64_t max_states, wf_error *err) {
  wf_determinize_options o;
  wf_fst *det;
  wf_determinize_options_init(&o);
  o.rmepsilon = true;
  o.allow_nonfunctional = allow_nonfunctional;
  o.max_states = max_states;
  WF__TRY(wf_determinize(*slot, &o, &det, err));
  wf__slot_set(runner, slot, det);
  return WF_OK;
}

wf_status wf__slot_minimize(wf__step_runner *runner, wf_fst **slot, bool push_weights,
                            wf_error *err) {
  wf_minimize_options o;
  wf_fst *min;
  wf_minimize_options_init(&o);
  o.push_weights = push_weights;
  o.allow_nondet = true; /* determinization may leave several epsilon arcs in a state, which write
                            delayed outputs */
  WF__TRY(wf_minimize(*slot, &o, &min, err));
  wf__slot_set(runner, slot, min);
  return WF_OK;
}

wf_status wf__slot_push(wf__step_runner *runner, wf_fst **slot, wf_error *err) {
  wf_fst *pushed;
  WF__TRY(wf__push_even(*slot, &pushed, err));
  wf__slot_set(runner, slot, pushed);
  return WF_OK;
}

wf_status wf__step_compose(const wf_fst *a, const wf_fst *b, int32_t phi_label, int64_t max_states,
                           wf_fst **out, wf_error *err) {
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.phi_label = phi_label;
  o.max_states = max_states;
  WF__TRY(wf_compose(a, b, &o, out, err));
  if (wf_fst_get_view(*out).num_states != 0) return WF_OK;
  wf__slot_clear(out);
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the result is empty: the lexicon covers no sentence of the grammar");
}
