/* auto_topology.c - topology=auto: `correct`, which is what CTC means, unless the graph would be
 * too large; then `compact`, with a warning.
 *
 * The states of T o LG with T `correct` are pairs: a state of LG, and the token that led there, as
 * long as no blank has come since. Each has its own copy of the state's arcs, so that they can be
 * counted without composing:
 *
 *   arcs  =  sum over states d of LG:  (tokens that lead to d, and none)  *  (arcs of d, and a
 * loop)
 *
 * Arcs of LG without a token (back-off, ends of words) pass on the tokens that led to their source.
 * With `compact` a state has its arcs once, and two arcs for each token that leads to it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/callbacks.h"
#include "base/map64.h"
#include "fst/fst.h"
#include "graph/topology.h"

/* Too large: more arcs than this, and more than RATIO times those of `compact`. With a language
 * model there are 1.4 to 1.7 times as many. What grows is a list of words without one, since every
 * last token of a word meets every first one there: 20,000 words of 2,048 tokens have 2 million
 * arcs, build in 3.4 s instead of 1.2 with 0.3 GB, and decode in 174 us a frame instead of 30 (one
 * core); 50,000 words of 4,096 tokens 8 million, 13 s instead of 3 with 1 GB, and 262 us instead of
 * 68. */
enum { MOST_ARCS = 4000000, RATIO = 2 };

struct pair {
  uint32_t state;
  int32_t token;
};

struct count {
  wf_fst_view lg;
  int32_t num_tokens;
  uint8_t *num_entries;         /* arcs that lead to a state: 0, 1, or 2 for more */
  wf__map64 seen;               /* pairs of states with several */
  WF__VEC(struct pair) pending; /* pairs whose arcs without a token have not been followed */
  uint64_t correct, compact;    /* arcs so far */
};

static bool is_token(const struct count *count, const wf_arc *arc) {
  return arc->ilabel >= 1 && arc->ilabel <= count->num_tokens;
}

static wf_status add_pair(struct count *count, uint32_t state, int32_t token, wf_error *err) {
  uint32_t stands;
  bool fresh = true;
  if (count->num_entries[state] > 1)
    WF__TRY(wf__map64_insert(&count->seen, (uint64_t)state << 32 | (uint32_t)token, 1, &stands,
                             &fresh, "the size of a graph", err));
  if (!fresh) return WF_OK;
  count->correct += count->lg.arc_off[state + 1] - count->lg.arc_off[state] + 1;
  count->compact += 2;
  return wf__vec_push(&count->pending, ((struct pair){state, token}), "the size of a graph", err);
}

static wf_status pass_on(struct count *count, wf_error *err) {
  while (count->pending.size > 0) {
    const struct pair pair = count->pending.data[--count->pending.size];
    const uint64_t end = count->lg.arc_off[pair.state + 1];
    for (uint64_t a = count->lg.arc_off[pair.state]; a < end; a++)
      if (!is_token(count, &count->lg.arcs[a]))
        WF__TRY(add_pair(count, count->lg.arcs[a].nextstate, pair.token, err));
  }
  return WF_OK;
}

static wf_status count_arcs(struct count *count, wf_error *err) {
  for (uint64_t a = 0; a < count->lg.num_arcs; a++)
    if (count->num_entries[count->lg.arcs[a].nextstate] < 2)
      count->num_entries[count->lg.arcs[a].nextstate]++;
  count->correct = count->compact = count->lg.num_arcs + count->lg.num_states;
  for (uint64_t a = 0; a < count->lg.num_arcs; a++) {
    const wf_arc *arc = &count->lg.arcs[a];
    if (!is_token(count, arc)) continue;
    WF__TRY(add_pair(count, arc->nextstate, arc->ilabel, err));
    WF__TRY(pass_on(count, err));
  }
  return WF_OK;
}

static int32_t take_compact(const char *why) {
  wf__log(WF_LOG_WARNING,
          "topology 'compact', not 'correct', because %s: a token that is held for several frames "
          "can be read as the token twice, above all if a language model costs nothing or a boost "
          "pays for it (say which topology to have it without this warning)",
          why);
  return WF__TOPOLOGY_COMPACT;
}

static int32_t choose(uint64_t correct, uint64_t compact) {
  char why[96];
  if (correct <= MOST_ARCS || correct <= RATIO * compact) return WF__TOPOLOGY_CORRECT;
  snprintf(why, sizeof why, "that would have %.0f million arcs", (double)correct / 1e6);
  return take_compact(why);
}

int32_t wf__topology_of_tokens(int32_t num_tokens) {
  const uint64_t count = (uint64_t)num_tokens;
  return choose(count * count, 3 * count);
}

wf_status wf__topology_of_graph(const wf_fst *lg, int32_t num_tokens, bool has_classes,
                                int32_t *out, wf_error *err) {
  struct count count = {.lg = wf_fst_get_view(lg), .num_tokens = num_tokens};
  if (has_classes) {
    *out = take_compact("classes of words need it");
    return WF_OK;
  }
  count.num_entries = wf__calloc(count.lg.num_states, 1);
  if (count.num_entries == NULL)
    return wf__fail_memory(err, count.lg.num_states, "the size of a graph");
  wf_status status = count_arcs(&count, err);
  if (status == WF_OK) *out = choose(count.correct, count.compact);
  free(count.num_entries);
  wf__map64_free(&count.seen);
  wf__vec_free(&count.pending);
  return status;
}
