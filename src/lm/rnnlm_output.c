/* rnnlm_output.c - costs of words: hierarchical softmax and NCE with MaxEnt features, full softmax.
 *
 * A MaxEnt feature of order o is a hash of the last o - 1 words. It selects a block of cells, one
 * for each output row. The cells of a row, summed over all orders, are added to the score of that
 * row: a node on the path of the word (hierarchical softmax), or the word (NCE). */
#include "lm/rnnlm.h"

/* The constants of the toolkit's hash function, which determine the positions of a model's cells.
 */
static const uint64_t primes[] = {108641969, 116049371, 125925907, 133333309, 145678979, 175308587,
                                  197530793, 234567803, 251851741, 264197411, 330864029, 399999781,
                                  407407183, 459258997, 479012069, 545678687, 560493491, 607407037,
                                  629629243, 656789717, 716048933, 718518067, 725925469, 733332871,
                                  753085943, 755555077, 782715551, 790122953, 812345159, 814814293,
                                  893826581, 923456189, 940740127, 953085797, 985184539, 990122807};
enum { NUM_PRIMES = sizeof primes / sizeof *primes };
_Static_assert(WF_RNNLM_MAX_ORDER <= NUM_PRIMES, "a prime for each order");

static uint64_t factor(int order, int word) {
  return primes[((uint64_t)order * primes[word + 1] + (uint64_t)word + 1) % NUM_PRIMES];
}

void wf__rnn_hash_factors(const wf_rnnlm *lm, uint64_t *factors, uint64_t *first,
                          uint64_t *modulus) {
  *first = primes[0] * primes[1];
  *modulus = lm->maxent_order > 0 ? lm->num_cells - lm->num_words : 1;
  for (int o = 0; o < lm->maxent_order; o++)
    for (int i = 0; i < lm->maxent_order; i++)
      factors[o * lm->maxent_order + i] = i < o ? factor(o, i) : 0;
}

int wf__rnn_hashes(const wf_rnnlm *lm, const int32_t *previous, int num_previous, uint64_t *hash) {
  if (lm->maxent_order == 0) return 0;
  int count = num_previous + 1 < lm->maxent_order ? num_previous + 1 : lm->maxent_order;
  uint64_t modulus = lm->num_cells - lm->num_words;
  for (int o = 0; o < count; o++) {
    uint64_t sum = primes[0] * primes[1];
    for (int i = 0; i < o; i++) sum += factor(o, i) * ((uint64_t)previous[i] + 1);
    hash[o] = sum % modulus;
  }
  return count;
}

/* The sum of ln(1 + e^x) over a word's nodes is computed as the logarithm of a product. If the
 * product exceeds this value, its logarithm is added to the sum and the product restarts at 1. */
static const double big_product = 1e250;

/* Number of orders to use at the cells [at, at + num). An order with a cell that is (nearly) zero
 * was never trained there; it and all higher orders are ignored. */
static int live_orders(const wf_rnnlm *lm, const uint64_t *hash, int orders, uint64_t at, int num) {
  for (int o = 0; o < orders; o++)
    for (int j = 0; j < num; j++)
      if (fabsf(wf__rnn_cell(lm, hash[o] + at + (uint64_t)j)) < 1e-6f) return o;
  return orders;
}

static float row_score(const wf_rnnlm *lm, const float *top, const uint64_t *hash, int orders,
                       uint64_t row) {
  float score = wf__dot(lm->output.data + row * lm->output.stride, top, lm->output.stride), sum = 0;
  for (int o = 0; o < orders; o++) sum += wf__rnn_cell(lm, hash[o] + row);
  return score + sum;
}

static double binary_path(const wf_rnnlm *lm, const float *top, const uint64_t *hash, int orders,
                          int32_t word) {
  double product = 1, cost = 0;
  for (uint64_t i = lm->path_off[word]; i < lm->path_off[word + 1]; i++) {
    uint32_t node = lm->path[i] >> 1;
    orders = live_orders(lm, hash, orders, node, 1);
    double score = (double)row_score(lm, top, hash, orders, node);
    if (lm->path[i] & 1) score = -score; /* branch 0 has probability sigmoid(score) */
    if (score < -500)
      cost -= score; /* ln(1 + e^-score) */
    else
      product *= 1 + exp(-score);
    if (product > big_product) {
      cost += log(product);
      product = 1;
    }
  }
  return cost + log(product);
}

/* Arity above 2: a node has arity - 1 scores; the last branch has score 0. */
static double wide_path(const wf_rnnlm *lm, const float *top, const uint64_t *hash, int orders,
                        int32_t word) {
  double cost = 0;
  int own = lm->arity - 1;
  for (uint64_t i = lm->path_off[word]; i < lm->path_off[word + 1]; i++) {
    uint64_t row = (uint64_t)(lm->path[i] / (uint32_t)lm->arity) * (uint64_t)own;
    int branch = (int)(lm->path[i] % (uint32_t)lm->arity);
    orders = live_orders(lm, hash, orders, row, own);
    double score[256], high = 0, sum = 0;
    score[own] = 0;
    for (int j = 0; j < own; j++) {
      score[j] = (double)row_score(lm, top, hash, orders, row + (uint64_t)j);
      if (score[j] > high) high = score[j];
    }
    for (int j = 0; j <= own; j++) sum += exp(score[j] - high);
    cost += high + log(sum) - score[branch];
  }
  return cost;
}

static double query_cost(const wf_rnnlm *lm, const wf__rnn_query *query, const uint64_t *hash,
                         int orders) {
  const float *top = wf__rnn_top(lm, query->state);
  if (lm->output_kind == WF_RNNLM_HIERARCHICAL)
    return (lm->arity == 2 ? binary_path : wide_path)(lm, top, hash, orders, query->word);
  double score = (double)row_score(lm, top, hash, orders, (uint64_t)query->word);
  if (lm->output_bias != NULL) score += (double)lm->output_bias[query->word];
  return (double)(lm->output_kind == WF_RNNLM_NCE ? lm->nce_lnz : query->log_norm) - score;
}

/* The cells of a query are scattered over a large table, so those of the next queries are
 * prefetched. */
struct looked_up {
  uint64_t hash[WF_RNNLM_MAX_ORDER];
  int orders;
};

static void look_up(const wf_rnnlm *lm, const wf__rnn_query *query, struct looked_up *out) {
  out->orders = wf__rnn_hashes(lm, query->previous, query->num_previous, out->hash);
  if (lm->output_kind != WF_RNNLM_HIERARCHICAL || lm->arity != 2) return;
  for (uint64_t i = lm->path_off[query->word]; i < lm->path_off[query->word + 1]; i++) {
    __builtin_prefetch(lm->output.data +
                       (lm->path[i] >> 1) *
                           lm->output.stride); /* the hardware prefetches the rest of a row */
    for (int o = 0; o < out->orders; o++)
      __builtin_prefetch(lm->cells + (out->hash[o] + (lm->path[i] >> 1)) * sizeof(float));
  }
}

void wf__rnn_costs(const wf_rnnlm *lm, size_t count, const wf__rnn_query *queries, float *costs) {
  enum { AHEAD = 4 };
  struct looked_up ring[AHEAD];
  for (size_t i = 0; i < count && i < AHEAD; i++) look_up(lm, &queries[i], &ring[i]);
  for (size_t i = 0; i < count; i++) {
    struct looked_up *at = &ring[i % AHEAD];
    float cost = (float)query_cost(lm, &queries[i], at->hash, at->orders);
    costs[i] = isnan(cost) ? INFINITY : cost; /* cells are not checked on reading */
    if (i + AHEAD < count) look_up(lm, &queries[i + AHEAD], at);
  }
}

/* --- full softmax ------------------------------------------------------------------------ */

/* Adds a block of scores to a running log-sum-exp, kept as high + ln(sum). */
static void add_block(float *scores, size_t num, float *high, double *sum) {
  float top = *high;
  for (size_t i = 0; i < num; i++) top = scores[i] > top ? scores[i] : top;
  for (size_t i = 0; i < num; i++) scores[i] -= top;
  for (size_t i = num; i < wf__padded(num); i++) scores[i] = 0; /* the block includes the padding */
  wf__vec_exp(scores, wf__padded(num));
  double block = 0;
  for (size_t i = 0; i < num; i++) block += (double)scores[i];
  *sum = *sum * exp((double)(*high - top)) + block;
  *high = top;
}

void wf__rnn_log_norms(const wf_rnnlm *lm, size_t count, const float *const *states, float *out,
                       wf__rnn_work *work) {
  size_t stride = lm->output.stride, block = WF__RNN_SOFTMAX_BLOCK;
  for (size_t i = 0; i < count; i++)
    memcpy(work->input + i * stride, wf__rnn_top(lm, states[i]), stride * sizeof(float));
  float *high = work->previous;
  double *sums = (double *)(void *)
                     work->gates; /* [count]: two floats each; a hidden vector has at least eight */
  for (size_t i = 0; i < count; i++) high[i] = -1e30f, sums[i] = 0;
  for (size_t begin = 0; begin < lm->num_words; begin += block) {
    size_t num = lm->num_words - begin < block ? lm->num_words - begin : block;
    wf__rows_dot(lm->output.data + begin * stride, num, stride, work->input, stride, count,
                 work->scores, block);
    for (size_t i = 0; i < count; i++) {
      float *scores = work->scores + i * block;
      for (size_t k = 0; lm->output_bias != NULL && k < num; k++)
        scores[k] += lm->output_bias[begin + k];
      add_block(scores, num, &high[i], &sums[i]);
    }
  }
  for (size_t i = 0; i < count; i++) out[i] = (float)((double)high[i] + log(sums[i]));
}
