/* rnnlm_oracle.c - see rnnlm_oracle.h. */
#include "rnnlm_oracle.h"

static bool is(const test_rnn *r, const char *prefix) {
  return strncmp(r->type, prefix, strlen(prefix)) == 0;
}

static int scrn_context(const test_rnn *r) {
  int c = atoi(r->type + (is(r, "scrnfast") ? 8 : 4));
  return c < r->hidden ? c : r->hidden;
}

static size_t layer_matrices(const test_rnn *r, int layer) {
  size_t h = (size_t)r->hidden;
  if (is(r, "gru")) return 6 * h * h;
  if (is(r, "scrn")) {
    size_t c = (size_t)scrn_context(r);
    return c * h + (h - c) * c + (h - c) * h + (h - c) * (h - c);
  }
  return (layer > 0 ? 2 : 1) * h * h;
}

static size_t layer_vectors(const test_rnn *r) {
  return is(r, "gru") ? 2 * (size_t)r->hidden : is(r, "scrn") ? (size_t)scrn_context(r) : 0;
}

static float random_weight(test_rng *rng) { return test_unit(rng) - 0.5f; }

test_rnn test_random_rnn(test_rng *rng, const char *type, int variant) {
  test_rnn r = {.type = type,
                .version = 6,
                .num_layers = 1 + (int)test_below(rng, 3),
                .arity = 2 + variant % 3,
                .lnz = 9};
  r.num_words = (r.arity - 1) * (20 + (int)test_below(rng, 30)) + 1;
  r.hidden = 5 + (int)test_below(rng, 15);
  r.nce = variant == 1;
  r.reverse = variant == 3;
  r.order = (int)test_below(rng, 6);
  r.num_cells = test_below(rng, 3) == 0 ? 0 : 2000;
  if (r.num_cells == 0) r.order = 0;
  return r;
}

void test_rnn_fill(test_rnn *r, test_rng *rng) {
  size_t v = (size_t)r->num_words, h = (size_t)r->hidden;
  r->num_floats = 2 * v * h;
  for (int l = 0; l < r->num_layers; l++) r->num_floats += layer_matrices(r, l) + layer_vectors(r);
  r->floats = malloc(r->num_floats * sizeof(float));
  r->cells = malloc((r->num_cells + 1) * sizeof(float));
  r->counts = malloc(v * sizeof(int64_t));
  assert_true(r->floats != NULL && r->cells != NULL && r->counts != NULL);
  for (size_t i = 0; i < r->num_floats; i++) r->floats[i] = random_weight(rng);
  for (size_t i = 0; i < r->num_cells; i++)
    r->cells[i] = test_below(rng, 3) == 0 ? 0 : random_weight(rng);
  int64_t count = 20 + test_below(rng, 1000);
  r->counts[0] = test_below(rng, 300);
  for (size_t w = 1; w < v; w++) {
    r->counts[w] = count;
    count -= test_below(rng, (uint32_t)count / 4 + 1);
  }
}

void test_rnn_free(test_rnn *r) {
  free(r->floats);
  free(r->cells);
  free(r->counts);
}

const char *test_rnn_write(const test_rnn *r) {
  static _Thread_local char path[512];
  static _Thread_local int number;
  char name[32];
  snprintf(name, sizeof name, "rnn%d", number++); /* the model before may still be mapped */
  snprintf(path, sizeof path, "%s", test_temp_path(name));
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int w = 0; w < r->num_words; w++) {
    if (w == 0)
      fprintf(file, "</s> %lld\n", (long long)r->counts[0]);
    else
      fprintf(file, "w%d %lld\n", w, (long long)r->counts[w]);
  }
  fclose(file);
  char net[600], type[64] = {0};
  snprintf(net, sizeof net, "%s.nnet", path);
  snprintf(type, sizeof type, "%s", r->type);
  file = fopen(net, "wb");
  assert_non_null(file);
  uint64_t first = (uint64_t)r->version * 10000 + (uint64_t)r->hidden;
  int32_t order = r->order, layers = r->num_layers, arity = r->arity;
  uint8_t nce = r->nce, reverse = r->reverse;
  fwrite(&first, 8, 1, file);
  fwrite(&r->num_cells, 8, 1, file);
  fwrite(&order, 4, 1, file);
  if (r->version >= 2) fwrite(&nce, 1, 1, file), fwrite(&r->lnz, 4, 1, file);
  if (r->version >= 3) fwrite(&reverse, 1, 1, file);
  if (r->version >= 4) fwrite(type, 64, 1, file);
  if (r->version >= 5) fwrite(&layers, 4, 1, file);
  if (r->version >= 6) fwrite(&arity, 4, 1, file);
  fwrite(r->floats, 4, r->num_floats, file);
  fwrite(r->cells, 4, r->num_cells, file);
  assert_int_equal(fclose(file), 0);
  return path;
}

/* --- hidden layers ----------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* y += M x. */
static void multiply(const float *m, size_t rows, size_t cols, const double *x, double *y) {
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < cols; k++) y[i] += (double)m[i * cols + k] * x[k];
}

enum { MAX_HIDDEN = 64 };

static void step_gru(const test_rnn *r, const float *m, const float *bias, const double *x,
                     double *h) {
  size_t n = (size_t)r->hidden;
  bool input = strcmp(r->type, "gru-insyn") == 0 || strcmp(r->type, "gru-full") == 0,
       biased = strcmp(r->type, "gru-bias") == 0 || strcmp(r->type, "gru-full") == 0;
  double gate[3][MAX_HIDDEN] = {{0}}, reset[MAX_HIDDEN];
  for (int g = 0; g < 3; g++) {
    if (input)
      multiply(m + (size_t)(2 * g) * n * n, n, n, x, gate[g]);
    else
      memcpy(gate[g], x, n * sizeof(double));
    if (biased && g < 2)
      for (size_t i = 0; i < n; i++) gate[g][i] += (double)bias[(size_t)g * n + i];
  }
  multiply(m + n * n, n, n, h, gate[0]);
  multiply(m + 3 * n * n, n, n, h, gate[1]);
  for (size_t i = 0; i < n; i++) reset[i] = h[i] * sigmoid(gate[0][i]);
  multiply(m + 5 * n * n, n, n, reset, gate[2]);
  for (size_t i = 0; i < n; i++) h[i] = (tanh(gate[2][i]) - h[i]) * sigmoid(gate[1][i]) + h[i];
}

static void step_scrn(const test_rnn *r, int layer, const float *m, const float *decay,
                      const double *x, double *h) {
  size_t n = (size_t)r->hidden, c = (size_t)scrn_context(r), f = n - c;
  const float *B = m, *P = B + c * n, *A = P + f * c, *R = A + f * n;
  bool direct = is(r, "scrnfast") && layer == 0;
  double in[MAX_HIDDEN] = {0}, z[MAX_HIDDEN] = {0};
  if (direct) {
    memcpy(in, x, c * sizeof(double));
    memcpy(z, x + c, f * sizeof(double));
  } else {
    multiply(B, c, n, x, in);
    multiply(A, f, n, x, z);
  }
  for (size_t i = 0; i < c; i++) h[i] = (1 - (double)decay[i]) * in[i] + (double)decay[i] * h[i];
  multiply(R, f, f, h + c, z);
  multiply(P, f, c, h, z);
  for (size_t i = 0; i < f; i++) h[c + i] = sigmoid(z[i]);
}

static void step_simple(const test_rnn *r, int layer, const float *m, const double *x, double *h) {
  size_t n = (size_t)r->hidden;
  double z[MAX_HIDDEN] = {0};
  if (layer > 0)
    multiply(m + n * n, n, n, x, z);
  else
    memcpy(z, x, n * sizeof(double));
  multiply(m, n, n, h, z);
  for (size_t i = 0; i < n; i++) {
    double relu = z[i] > 0 ? z[i] : 0;
    h[i] = is(r, "sigmoid")                                  ? sigmoid(z[i])
           : is(r, "tanh")                                   ? tanh(z[i])
           : strcmp(r->type, "relu-trunc") == 0 && relu > 20 ? 20
                                                             : relu;
  }
}

static void step_hidden(const test_rnn *r, int word, double h[][MAX_HIDDEN]) {
  size_t n = (size_t)r->hidden, v = (size_t)r->num_words;
  const float *m = r->floats + 2 * v * n, *vector = m;
  for (int l = 0; l < r->num_layers; l++) vector += layer_matrices(r, l);
  double x[MAX_HIDDEN];
  for (size_t i = 0; i < n; i++) x[i] = (double)r->floats[(size_t)word * n + i];
  for (int l = 0; l < r->num_layers; l++) {
    if (is(r, "gru"))
      step_gru(r, m, vector, x, h[l]);
    else if (is(r, "scrn"))
      step_scrn(r, l, m, vector, x, h[l]);
    else
      step_simple(r, l, m, x, h[l]);
    m += layer_matrices(r, l);
    vector += layer_vectors(r);
    memcpy(x, h[l], n * sizeof(double));
  }
}

/* --- output ------------------------------------------------------------------------------ */

int test_rnn_path(const test_rnn *r, int word, int *node, int *branch) {
  int v = r->num_words, a = r->arity, inner = (v - 1) / (a - 1), total = v + inner;
  int64_t weight[4096];
  int parent[4096], from[4096], leaf = v - 1, head = v, up[4096], way[4096], depth = 0;
  assert_true(total <= 4096);
  for (int i = 0; i < v; i++) weight[i] = r->counts[i];
  for (int i = v; i < total; i++) weight[i] = INT64_MAX / 2;
  for (int i = v; i < total; i++) {
    int64_t sum = 0;
    for (int b = 0; b < a; b++) {
      int child = leaf >= 0 && weight[leaf] < weight[head] ? leaf-- : head++;
      sum += weight[child];
      parent[child] = i;
      from[child] = b;
    }
    weight[i] = sum;
  }
  for (int i = word; i != total - 1; i = parent[i]) {
    up[depth] = parent[i] - v;
    way[depth++] = from[i];
  }
  for (int i = 0; i < depth; i++) {
    node[i] = up[depth - 1 - i];
    branch[i] = way[depth - 1 - i];
  }
  return depth;
}

static const uint64_t table[36] = {
    108641969, 116049371, 125925907, 133333309, 145678979, 175308587, 197530793, 234567803,
    251851741, 264197411, 330864029, 399999781, 407407183, 459258997, 479012069, 545678687,
    560493491, 607407037, 629629243, 656789717, 716048933, 718518067, 725925469, 733332871,
    753085943, 755555077, 782715551, 790122953, 812345159, 814814293, 893826581, 923456189,
    940740127, 953085797, 985184539, 990122807};

/* The first cell of the feature of order o + 1 for the prediction after past[0 .. size). */
static uint64_t feature(const test_rnn *r, const int32_t *past, size_t size, int o) {
  uint64_t hash = table[0] * table[1];
  for (uint64_t i = 1; i <= (uint64_t)o; i++)
    hash += table[((uint64_t)o * table[i] + i) % 36] * ((uint64_t)past[size - i] + 1);
  return hash % (r->num_cells - (uint64_t)r->num_words);
}

static double row_dot(const test_rnn *r, int row, const double *h) {
  const float *out = r->floats + ((size_t)r->num_words + (size_t)row) * (size_t)r->hidden;
  double sum = 0;
  for (int i = 0; i < r->hidden; i++) sum += (double)out[i] * h[i];
  return sum;
}

static double cost_of(const test_rnn *r, const int32_t *past, size_t size, int word,
                      const double *h) {
  int orders = r->num_cells == 0          ? 0
               : r->order < (int)size + 1 ? r->order
                                          : (int)size + 1,
      node[4096], branch[4096];
  if (r->nce) {
    double score = row_dot(r, word, h) - (double)r->lnz;
    for (int o = 0; o < orders; o++)
      score += (double)r->cells[feature(r, past, size, o) + (uint64_t)word];
    return -score;
  }
  double cost = 0;
  int depth = test_rnn_path(r, word, node, branch);
  for (int i = 0; i < depth; i++) {
    int first = node[i] * (r->arity - 1);
    for (int o = 0; o < orders; o++)
      for (int j = 0; j < r->arity - 1; j++)
        if (o < orders &&
            fabs((double)r->cells[feature(r, past, size, o) + (uint64_t)(first + j)]) < 1e-6)
          orders = o;
    double total = 1, mine = 1; /* the last branch has score 0 */
    for (int j = 0; j < r->arity - 1; j++) {
      double score = row_dot(r, first + j, h);
      for (int o = 0; o < orders; o++)
        score += (double)r->cells[feature(r, past, size, o) + (uint64_t)(first + j)];
      total += exp(score);
      if (j == branch[i]) mine = exp(score);
    }
    cost -= log(mine / total);
  }
  return cost;
}

void test_rnn_costs(const test_rnn *r, const int32_t *words, size_t size, double *costs) {
  double h[TEST_RNN_MAX_LAYERS][MAX_HIDDEN] = {{0}};
  int32_t *past = malloc((size + 2) * sizeof *past);
  past[0] = 0;
  for (size_t i = 0; i < size; i++) past[i + 1] = words[r->reverse ? size - 1 - i : i];
  past[size + 1] = 0;
  for (size_t i = 1; i <= size + 1; i++) {
    step_hidden(r, past[i - 1], h);
    costs[i - 1] = cost_of(r, past, i, past[i], h[r->num_layers - 1]);
  }
  free(past);
}
