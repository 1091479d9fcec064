/* estimate_costs.c - interpolated probabilities of the n-grams of one order. With the adjusted
 * counts c and the discounts D of the order,
 *     p(w | h) = u + g p(w | h'),  u = (c(h w) - D(c(h w))) / sum_v c(h v)
 * where h' is h without its first word, and g, the back-off weight of h, is what the discounts and
 * the pruned n-grams leave. The probabilities below the unigrams are 1 / (number of words, with
 * </s> and <unk>). */
#include "base/callbacks.h"
#include "lm/estimate/lm_estimate.h"
#include "math/score.h"

enum { REPORT_EVERY = 1 << 20 };

typedef struct member {
  uint32_t suffix, count;
} member;

/* The n-grams after one history. */
typedef struct history {
  uint32_t words[WF_LM_MAX_ORDER];
  WF__VEC(member) members;
} history;

typedef struct costing {
  wf__estimate *e;
  wf__estimate_order *order, *lower; /* lower: of k - 1; NULL for unigrams */
  int k;
  uint32_t num_places;
  history now;
} costing;

static wf_status add_cost(costing *c, uint32_t place, double p, wf_error *err) {
  const uint32_t bits = wf__bits_of_float((float)p), record[2] = {place, bits};
  if (c->k < c->e->order) WF__TRY(wf__sort_add(c->order->suffixes, &bits, err));
  return wf__sort_add(c->order->costs, record, err);
}

/* Sets the back-off weight of the history. Returns the sum of its counts. */
static double sum_history(const costing *c, double *backoff, bool *any) {
  double sum = 0, left = 0;
  *any = false;
  for (uint64_t i = 0; i < c->now.members.size; i++) {
    const member *m = &c->now.members.data[i];
    const bool pruned = m->suffix == WF__ESTIMATE_PRUNED;
    sum += m->count;
    left += pruned ? m->count : c->order->discount[m->count < 3 ? m->count : 3];
    *any |= !pruned;
  }
  *backoff = left / sum;
  return sum;
}

static wf_status end_history(costing *c, wf_error *err) {
  double backoff;
  bool any;
  const double sum = sum_history(c, &backoff, &any),
               uniform = 1 / (double)(c->e->num_labels - 2); /* without <eps> and <s> */
  if (c->k > 1 && any) {
    c->now.words[c->k - 1] = wf__bits_of_float((float)backoff);
    WF__TRY(wf__sort_add(c->lower->backoffs, c->now.words, err));
  }
  for (uint64_t i = 0; i < c->now.members.size; i++) {
    const member *m = &c->now.members.data[i];
    if (m->suffix == WF__ESTIMATE_PRUNED) continue;
    const double u = (m->count - c->order->discount[m->count < 3 ? m->count : 3]) / sum;
    const uint32_t place = c->num_places++, record[4] = {m->suffix, wf__bits_of_float((float)u),
                                                         wf__bits_of_float((float)backoff), place};
    if (c->k == 1)
      WF__TRY(add_cost(c, place, u + backoff * uniform, err));
    else
      WF__TRY(wf__sort_add(c->order->shares, record, err));
  }
  c->now.members.size = 0;
  return WF_OK;
}

/* Reads grams[k], history by history. */
static wf_status find_shares(costing *c, wf_error *err) {
  const uint32_t *record;
  const double total = (double)wf__sort_count(c->order->grams) + 1;
  const size_t bytes = (size_t)(c->k - 1) * sizeof *record;
  for (uint64_t done = 0;; done++) {
    WF__TRY(wf__sort_next(c->order->grams, &record, err));
    if (record == NULL) break;
    if (done % REPORT_EVERY == 0)
      WF__TRY(wf__progress(c->e->progress, "discounting", (double)done / total, err));
    if (c->now.members.size > 0 && memcmp(record, c->now.words, bytes) != 0)
      WF__TRY(end_history(c, err));
    memcpy(c->now.words, record, bytes);
    const member m = {record[c->k], record[c->k + 1]};
    WF__TRY(wf__vec_push(&c->now.members, m, "words after a history", err));
  }
  return end_history(c, err);
}

/* Adds the probabilities of the order below, in suffix order. */
static wf_status interpolate(costing *c, wf_error *err) {
  const uint32_t *record, *below = NULL;
  const double total = (double)wf__sort_count(c->order->shares) + 1;
  uint64_t num_below = 0; /* read from the order below */
  WF__TRY(wf__sort_finish(c->order->shares, err));
  for (uint64_t done = 0;; done++) {
    WF__TRY(wf__sort_next(c->order->shares, &record, err));
    if (record == NULL) return WF_OK;
    if (done % REPORT_EVERY == 0)
      WF__TRY(wf__progress(c->e->progress, "interpolating", (double)done / total, err));
    for (; num_below <= record[0]; num_below++)
      WF__TRY(wf__sort_next(c->lower->suffixes, &below, err));
    const double u = (double)wf__float_of_bits(record[1]), g = (double)wf__float_of_bits(record[2]);
    WF__TRY(add_cost(c, record[3], u + g * (double)wf__float_of_bits(*below), err));
  }
}

static wf_status run(costing *c, wf_error *err) {
  wf__estimate *e = c->e;
  const uint32_t k = (uint32_t)c->k;
  WF__TRY(wf__estimate_sort(e, 2, 1, 4, &c->order->costs, err));
  WF__TRY(wf__estimate_sort(e, 1, 0, 16, &c->order->suffixes, err));
  if (k > 1) {
    WF__TRY(wf__estimate_sort(e, 4, 1, 4, &c->order->shares, err));
    WF__TRY(wf__estimate_sort(e, k, k - 1, 16, &c->lower->backoffs, err));
  }
  WF__TRY(find_shares(c, err));
  if (k > 1) {
    WF__TRY(interpolate(c, err));
    WF__TRY(wf__sort_finish(c->lower->backoffs, err));
    wf__sort_free(c->lower->suffixes);
    wf__sort_free(c->order->shares);
    c->lower->suffixes = c->order->shares = NULL;
  }
  WF__TRY(wf__sort_finish(c->order->suffixes, err));
  return wf__sort_finish(c->order->costs, err);
}

wf_status wf__estimate_costs(wf__estimate *e, int k, wf_error *err) {
  costing c = {.e = e, .order = &e->by_order[k], .k = k};
  if (k > 1) c.lower = &e->by_order[k - 1];
  wf_status status = run(&c, err);
  wf__vec_free(&c.now.members);
  return status;
}
