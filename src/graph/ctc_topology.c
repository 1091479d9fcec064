/* ctc_topology.c - the CTC topologies, and that of transducers, as transducers from frame labels to
 * token labels.
 *
 *  correct   One state per token; the blank's is the start. Every state has an arc for every token,
 *            to the state of that token. The arc writes the token, except for the blank and for the
 *            token of the state itself (a repeat).
 *  compact   0 --a:a--> a --a:eps--> a --eps--> 0, 0 --blank--> 0. A token may be followed directly
 *            by any token, also by itself.
 *  minimal   One state with a:a for every token and blank:eps.
 *  eesen     0 --eps--> 1 --blank--> 1 --a:a--> a --a:eps--> a --eps--> 2 --blank--> 2 --eps--> 0.
 *
 *  transducer  As minimal: a token is one arc, and the blank ends a frame.
 *
 * Loops for disambiguation symbols are at the states where the next token is chosen: every state of
 * `correct`, state 0 of the others, since every path passes state 0 between tokens. */
#include "base/callbacks.h"
#include "base/option_tables.h"
#include "fst/fst.h"
#include "graph/topology.h"

enum { MAX_CORRECT = 16384, MOST_ARCS = 4000000 /* of `correct`, for `auto` */ };

struct making {
  wf__csr csr;
  int32_t num_tokens, blank; /* the blank's label */
  int32_t num_disambig;
  bool keep_disambig;
  int32_t num_classes;
};

static wf_status push(struct making *making, uint32_t nextstate, int32_t ilabel, int32_t olabel,
                      wf_error *err) {
  return wf__csr_push(&making->csr, (wf_arc){nextstate, 0, ilabel, olabel}, err);
}

static wf_status push_disambig(struct making *making, uint32_t state, wf_error *err) {
  for (int32_t k = 0; k < making->num_disambig; k++) {
    int32_t label = making->num_tokens + 1 + k;
    WF__TRY(push(making, state, making->keep_disambig ? label : 0, label, err));
  }
  return WF_OK;
}

/* Words of a class begin and end between tokens. There `compact` is in state 0, as `transducer`
 * always is. */
static wf_status push_classes(struct making *making, wf_error *err) {
  int32_t kept = making->num_tokens + (making->keep_disambig ? making->num_disambig : 0);
  for (int32_t c = 0; c < making->num_classes; c++)
    WF__TRY(push(making, 0, kept + 1 + c, making->num_tokens + making->num_disambig + 1 + c, err));
  return WF_OK;
}

/* The state of a token in `correct` and `compact`: 0 for the blank, then the others in the order of
 * their labels. */
static uint32_t state_of(const struct making *making, int32_t label) {
  if (label == making->blank) return 0;
  return (uint32_t)(label < making->blank ? label : label - 1);
}
static int32_t label_of(const struct making *making, uint32_t state) {
  if (state == 0) return making->blank;
  return (int32_t)state < making->blank ? (int32_t)state : (int32_t)state + 1;
}

static wf_status make_correct(struct making *making, wf_error *err) {
  for (uint32_t state = 0; state < (uint32_t)making->num_tokens; state++) {
    WF__TRY(wf__csr_add_state(&making->csr, 0, err));
    int32_t own = label_of(making, state);
    for (int32_t label = 1; label <= making->num_tokens; label++)
      WF__TRY(push(making, state_of(making, label), label,
                   label == own || label == making->blank ? 0 : label, err));
    WF__TRY(push_disambig(making, state, err));
  }
  return WF_OK;
}

static wf_status make_compact(struct making *making, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, 0, err));
  for (int32_t label = 1; label <= making->num_tokens; label++)
    WF__TRY(push(making, state_of(making, label), label, label == making->blank ? 0 : label, err));
  WF__TRY(push_disambig(making, 0, err));
  WF__TRY(push_classes(making, err));
  for (uint32_t state = 1; state < (uint32_t)making->num_tokens; state++) {
    WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
    WF__TRY(push(making, state, label_of(making, state), 0, err));
    WF__TRY(push(making, 0, 0, 0, err));
  }
  return WF_OK;
}

static wf_status make_minimal(struct making *making, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, 0, err));
  for (int32_t label = 1; label <= making->num_tokens; label++)
    WF__TRY(push(making, 0, label, label == making->blank ? 0 : label, err));
  WF__TRY(push_disambig(making, 0, err));
  return push_classes(making, err);
}

static wf_status make_eesen(struct making *making, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, 0, err));
  WF__TRY(push(making, 1, 0, 0, err));
  WF__TRY(push_disambig(making, 0, err));
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  for (int32_t label = 1; label <= making->num_tokens; label++) {
    bool blank = label == making->blank;
    WF__TRY(push(making, blank ? 1 : state_of(making, label) + 2, label, blank ? 0 : label, err));
  }
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  WF__TRY(push(making, 2, making->blank, 0, err));
  WF__TRY(push(making, 0, 0, 0, err));
  for (uint32_t state = 1; state < (uint32_t)making->num_tokens; state++) {
    WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
    WF__TRY(push(making, state + 2, label_of(making, state), 0, err));
    WF__TRY(push(making, 2, 0, 0, err));
  }
  return WF_OK;
}

static int32_t topology_of_tokens(int32_t num_tokens) {
  const double num_arcs = (double)num_tokens * num_tokens;
  if (num_arcs <= MOST_ARCS) return WF_TOPOLOGY_CORRECT;
  wf__log(WF_LOG_WARNING,
          "topology 'compact', not 'correct', because that would have %.0f million arcs: a token "
          "that is held for several frames can be read as the token twice, above all if a language "
          "model costs nothing or a boost pays for it (say which topology to have it without this "
          "warning)",
          num_arcs / 1e6);
  return WF_TOPOLOGY_COMPACT;
}

/* Numbers the states breadth-first, so that those of a frame are near to each other in memory.
 * Returns how many can be reached: order[i] becomes number i. */
static uint64_t number_states(const wf_fst_view *view, uint32_t *order, uint32_t *numbers) {
  uint64_t count = 0;
  for (uint64_t s = 0; s < view->num_states; s++) numbers[s] = UINT32_MAX;
  if (view->start < 0) return 0;
  order[count++] = (uint32_t)view->start;
  numbers[view->start] = 0;
  for (uint64_t i = 0; i < count; i++)
    for (uint64_t a = view->arc_off[order[i]]; a < view->arc_off[order[i] + 1]; a++) {
      const uint32_t next = view->arcs[a].nextstate;
      if (numbers[next] != UINT32_MAX) continue;
      numbers[next] = (uint32_t)count;
      order[count++] = next;
    }
  return count;
}

static wf_status copy_state(const wf_fst_view *view, uint64_t s, const uint32_t *numbers,
                            int32_t num_tokens, int32_t num_disambig, wf__csr *csr, wf_error *err) {
  WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    wf_arc arc = view->arcs[a];
    if (arc.ilabel > num_tokens + num_disambig)
      arc.ilabel -= num_disambig;
    else if (arc.ilabel > num_tokens)
      arc.ilabel = 0;
    arc.nextstate = numbers[arc.nextstate];
    WF__TRY(wf__csr_push(csr, arc, err));
  }
  return WF_OK;
}

wf_status wf__ctc_token_graph(const wf_fst *lg, int32_t num_tokens, int32_t num_disambig,
                              wf_fst **out, wf_error *err) {
  const wf_fst_view view = wf_fst_get_view(lg);
  wf__csr csr = {0};
  uint32_t *order = wf__alloc(view.num_states, sizeof *order),
           *numbers = wf__alloc(view.num_states, sizeof *numbers);
  *out = NULL;
  wf_status status = order != NULL && numbers != NULL
                         ? wf__vec_grow(&csr.arcs, view.num_arcs, "arcs", err)
                         : wf__fail_memory(err, view.num_states * 8, "a CTC graph");
  const uint64_t count = status == WF_OK ? number_states(&view, order, numbers) : 0;
  for (uint64_t i = 0; i < count && status == WF_OK; i++)
    status = copy_state(&view, order[i], numbers, num_tokens, num_disambig, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, count > 0 ? 0 : -1, view.semiring, NULL, NULL, out, err);
  wf__csr_free(&csr);
  free(order);
  free(numbers);
  return status;
}

wf_status wf_ctc_topology(int32_t num_tokens, int32_t blank, const wf_topology_options *options,
                          wf_fst **out, wf_error *err) {
  return wf__ctc_topology(num_tokens, blank, options, 0, out, err);
}

wf_status wf__ctc_topology(int32_t num_tokens, int32_t blank, const wf_topology_options *options,
                           int32_t num_classes, wf_fst **out, wf_error *err) {
  static wf_status (*const builders[])(struct making *, wf_error *) = {
      make_correct, make_compact, make_minimal, make_eesen, make_minimal};
  *out = NULL;
  wf_topology_options o;
  WF__TRY(wf__options_take(wf__topology_table(), options, &o, err));
  if (num_tokens < 1 || num_tokens > INT32_MAX / 2)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "topology: %d tokens; at least 1 and at most 2^30 are needed", (int)num_tokens);
  if (blank < 0 || blank >= num_tokens)
    return wf__fail(
        err, WF_ERR_ARGUMENT,
        "topology: blank is column %d of %d; CTC needs a blank, which is one of the tokens",
        (int)blank, (int)num_tokens);
  if (o.type == WF_TOPOLOGY_AUTO) o.type = topology_of_tokens(num_tokens);
  if (o.type == WF_TOPOLOGY_CORRECT && num_tokens > MAX_CORRECT)
    return wf__fail(err, WF_ERR_LIMIT,
                    "topology: 'correct' has an arc for each pair of tokens, and %d tokens are "
                    "above its limit of %d; use 'compact'",
                    (int)num_tokens, (int)MAX_CORRECT);
  if (num_classes > 0 && o.type != WF_TOPOLOGY_COMPACT && o.type != WF_TOPOLOGY_TRANSDUCER)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "topology: classes of words need 'compact' or 'transducer', or 'correct' "
                    "without keep_disambig");
  struct making making = {.num_classes = num_classes,
                          .num_tokens = num_tokens,
                          .blank = blank + 1,
                          .num_disambig = o.num_disambig,
                          .keep_disambig = o.keep_disambig};
  wf_status status = builders[o.type](&making, err);
  if (status == WF_OK) return wf__fst_from_csr(&making.csr, 0, WF_TROPICAL, NULL, NULL, out, err);
  wf__csr_free(&making.csr);
  return status;
}
