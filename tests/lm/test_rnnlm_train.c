/* test_rnnlm_train.c - training of recurrent language models. Update steps are compared with finite
 * differences of the definition (rnnlm_oracle.h). Texts that can be learnt are learnt. One thread
 * gives the same model each time. Written files read back unchanged. */
#include "lm/rnnlm_update.h"
#include "rnnlm_oracle.h"

static wf_rnnlm *open_model(const char *path) {
  wf_error err = {0};
  wf_rnnlm *rnnlm;
  assert_ok(wf_rnnlm_open(path, NULL, &rnnlm, &err));
  return rnnlm;
}

/* A model of the trainer's kind whose weights may be changed and are not zero. */
static wf_rnnlm *learning_model(test_rnn *r, test_rng *rng) {
  test_rnn_fill(r, rng);
  for (uint64_t i = 0; i < r->num_cells; i++) r->cells[i] = test_unit(rng) + 0.01f;
  wf_rnnlm *rnnlm = open_model(test_rnn_write(r));
  rnnlm->own_cells = malloc((r->num_cells + 1) * sizeof(float));
  memcpy(rnnlm->own_cells, r->cells, r->num_cells * sizeof(float));
  rnnlm->cells = (const uint8_t *)rnnlm->own_cells;
  return rnnlm;
}

static double log_probability(const test_rnn *r, const int32_t *words, size_t size) {
  double costs[100], sum = 0;
  test_rnn_costs(r, words, size, costs);
  for (size_t i = 0; i <= size; i++) sum -= costs[i];
  return sum;
}

/* The file's floats after a step. */
static float *written_floats(const wf_rnnlm *rnnlm, const test_rnn *r) {
  wf_error err = {0};
  char net[600];
  size_t size;
  const char *path = test_temp_path("moved");
  assert_ok(wf_rnnlm_write(rnnlm, path, &err));
  snprintf(net, sizeof net, "%s.nnet", path);
  char *bytes = test_read_file(net, &size);
  size_t floats = (r->num_floats + r->num_cells) * sizeof(float);
  memmove(bytes, bytes + (size - floats), floats);
  return (float *)(void *)bytes;
}

static void check_gradient(test_rng *rng, const char *type, int order) {
  test_rnn r = {.type = type,
                .version = 6,
                .num_layers = 1,
                .arity = 2,
                .hidden = 6,
                .num_words = 12,
                .order = order,
                .num_cells = order > 0 ? 60 : 0};
  wf_rnnlm *rnnlm = learning_model(&r, rng);
  const float rate = 1.0f / 1024, nudge = 1.0f / 64;
  int32_t words[] = {0, 3, 1, 3, 7, 2, 0};
  wf__rnn_tape tape;
  wf_error err = {0};
  assert_ok(wf__rnn_tape_init(rnnlm, &tape, &err));
  double cost =
      wf__rnn_update_estimates(rnnlm, &(wf__rnn_rates){rate, rate, 0, 0, 1e9f}, &tape, words, 7);
  test_assert_close(cost, -log_probability(&r, words + 1, 5),
                    0.05); /* the updates of the first words affect the later ones */
  float *moved = written_floats(rnnlm, &r);
  size_t large = 0, num = r.num_floats + r.num_cells;
  for (size_t i = 0; i < num; i++) {
    float *weight = i < r.num_floats ? &r.floats[i] : &r.cells[i - r.num_floats], kept = *weight;
    *weight = kept + nudge;
    double up = log_probability(&r, words + 1, 5);
    *weight = kept - nudge;
    double down = log_probability(&r, words + 1, 5), slope = (up - down) / (2 * (double)nudge);
    *weight = kept;
    double step = ((double)moved[i] - (double)kept) / (double)rate;
    if (i < r.num_floats && strcmp(type, "gru") == 0 && moved[i] == 0 && slope == 0)
      continue; /* the unused input matrices are written as zeros */
    if (fabs(step - slope) > 0.01 + 0.02 * fabs(slope))
      fail_msg("%s: weight %zu of %zu moved by %g, slope %g", type, i, num, step, slope);
    large += fabs(slope) > 0.05;
  }
  assert_true(large > 60);
  free(moved);
  wf__rnn_tape_free(&tape);
  wf_rnnlm_free(rnnlm);
  test_rnn_free(&r);
}

static void test_gradients(void **unused) {
  (void)unused;
  test_rng rng = {11};
  for (int i = 0; i < 3; i++) {
    check_gradient(&rng, "sigmoid", i == 0 ? 0 : 3);
    check_gradient(&rng, "gru", i == 0 ? 0 : 4);
  }
}

/* With learning rates of zero, training equals scoring, also for sentences longer than the
 * truncation of backpropagation. */
static void test_training_cost_equals_score(void **unused) {
  (void)unused;
  test_rng rng = {12};
  for (int i = 0; i < 4; i++) {
    test_rnn r = {.type = i < 2 ? "sigmoid" : "gru",
                  .version = 6,
                  .num_layers = 1,
                  .arity = 2,
                  .hidden = 13,
                  .num_words = 40,
                  .order = 3,
                  .num_cells = 500};
    wf_rnnlm *rnnlm = learning_model(&r, &rng);
    enum { SIZE = 3 * WF__RNN_SEGMENT + 5 };
    int32_t words[SIZE];
    float costs[SIZE];
    for (int k = 0; k < SIZE; k++) words[k] = (int32_t)test_below(&rng, 40);
    words[0] = words[SIZE - 1] = 0;
    wf_error err = {0};
    wf__rnn_tape tape;
    assert_ok(wf__rnn_tape_init(rnnlm, &tape, &err));
    double cost =
               wf__rnn_update_estimates(rnnlm, &(wf__rnn_rates){0, 0, 0, 0, 1}, &tape, words, SIZE),
           sum = 0;
    assert_ok(wf_rnnlm_score(rnnlm, words + 1, (uint64_t[]){0, SIZE - 2}, 1, 1, costs, &err));
    for (int k = 0; k < SIZE - 1; k++) sum += (double)costs[k];
    test_assert_close(cost / sum, 1, 1e-5);
    wf__rnn_tape_free(&tape);
    wf_rnnlm_free(rnnlm);
    test_rnn_free(&r);
  }
}

/* --- whole trainings --------------------------------------------------------------------- */

/* Sentences `x y ... y x`: the last word depends only on the first word, which no n-gram covers. */
static const char *write_memory_text(test_rng *rng, int lines, const char *name) {
  static char text[200000];
  size_t size = 0;
  for (int i = 0; i < lines; i++) {
    const char *first = test_below(rng, 2) == 0 ? "left" : "right";
    size += (size_t)sprintf(text + size, "%s a b c d %s\n", first, first);
  }
  return test_write_file(name, text, size);
}

static wf_rnnlm *train(const char *text, const char *valid, wf_rnnlm_train_options *options) {
  wf_error err = {0};
  wf_rnnlm *rnnlm;
  assert_ok(wf_rnnlm_train(text, valid, options, NULL, NULL, &rnnlm, NULL, &err));
  return rnnlm;
}

static double perplexity(const wf_rnnlm *rnnlm, const char *sentence) {
  int32_t words[20];
  float costs[21];
  char copy[200], *rest = NULL;
  size_t size = 0;
  snprintf(copy, sizeof copy, "%s", sentence);
  for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
    words[size++] = wf_rnnlm_find(rnnlm, word);
  wf_error err = {0};
  double sum = 0;
  assert_ok(wf_rnnlm_score(rnnlm, words, (uint64_t[]){0, size}, 1, 1, costs, &err));
  for (size_t i = 0; i <= size; i++) sum += (double)costs[i];
  return exp(sum / (double)(size + 1));
}

static void test_learns_from_the_first_word(void **unused) {
  (void)unused;
  test_rng rng = {13};
  char text[512], valid[512];
  snprintf(text, sizeof text, "%s", write_memory_text(&rng, 2000, "train"));
  snprintf(valid, sizeof valid, "%s", write_memory_text(&rng, 100, "valid"));
  for (int layer = 0; layer < 2; layer++) {
    wf_rnnlm_train_options options;
    wf_rnnlm_train_options_init(&options);
    options.layer = layer;
    options.hidden = 20;
    options.learning_rate = 0.3f;
    options.num_threads = layer == 0 ? 1 : 3;
    wf_rnnlm *rnnlm = train(text, valid, &options);
    /* One bit for a sentence of seven tokens: 2^(1/7) = 1.104. Without memory, the mean over both
     * first words is at least 2^(2/7) = 1.219, and a wrong end costs no more than a right one.
     * Threads race, so the exact value varies. */
    double right =
        sqrt(perplexity(rnnlm, "left a b c d left") * perplexity(rnnlm, "right a b c d right"));
    double wrong =
        sqrt(perplexity(rnnlm, "left a b c d right") * perplexity(rnnlm, "right a b c d left"));
    if (right > 1.2 || wrong < 1.25)
      fail_msg("layer %d: perplexity %g, of wrong sentences %g", layer, right, wrong);
    wf_rnnlm_free(rnnlm);
  }
}

static void test_one_thread_is_deterministic(void **unused) {
  (void)unused;
  char text[512];
  snprintf(text, sizeof text, "%s/rnnlm/test", TEST_DATA_DIR);
  wf_rnnlm_train_options options;
  wf_rnnlm_train_options_init(&options);
  options.hidden = 12;
  options.maxent_cells = 10000;
  options.max_epochs = 3;
  wf_rnnlm *one = train(text, text, &options), *two = train(text, text, &options);
  char path_one[512], path_two[512];
  wf_error err = {0};
  snprintf(path_one, sizeof path_one, "%s", test_temp_path("one"));
  snprintf(path_two, sizeof path_two, "%s", test_temp_path("two"));
  assert_ok(wf_rnnlm_write(one, path_one, &err));
  assert_ok(wf_rnnlm_write(two, path_two, &err));
  test_shell("cmp '%s' '%s' && cmp '%s.nnet' '%s.nnet'", path_one, path_two, path_one, path_two);
  wf_rnnlm *read = open_model(path_one);
  const char *sentence = "w16 w0 w3 w11 w11 w57 w1";
  assert_true(perplexity(read, sentence) == perplexity(one, sentence));
  wf_rnnlm_info info;
  wf_rnnlm_info_init(&info);
  assert_ok(wf_rnnlm_get_info(read, &info, &err));
  assert_int_equal(info.maxent_order, 3);
  assert_int_equal(info.hidden_size, 12);
  assert_true(info.maxent_cells > 9500 && info.maxent_cells % info.num_words == 0);
  options.seed = 2;
  wf_rnnlm *other = train(text, text, &options);
  assert_true(perplexity(other, sentence) != perplexity(one, sentence));
  wf_rnnlm_free(other);
  wf_rnnlm_free(read);
  wf_rnnlm_free(one);
  wf_rnnlm_free(two);
}

static bool refuse_progress(void *user, const char *stage, double fraction) { return false; }

static void test_rejected_input(void **unused) {
  (void)unused;
  struct {
    const char *text, *valid;
    int64_t cells;
    wf_status code;
    const char *part;
  } cases[] = {
      {"", "a", 0, WF_ERR_FORMAT, "no words"},
      {"a b\n\n", "c\n", 0, WF_ERR_FORMAT, "no sentence of known words"},
      {"a </s> b", "a", 0, WF_ERR_FORMAT, ":1: '</s>'"},
      {"a b", "a", 3, WF_ERR_ARGUMENT, "maxent_cells"},
      {"a\n", "a\n", 0, WF_ERR_CANCELLED, ""},
      {"a\n", "a\n", -5, WF_ERR_ARGUMENT, "maxent_cells"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    wf_error err = {0};
    wf_rnnlm *rnnlm = (wf_rnnlm *)&err;
    wf_rnnlm_train_options options;
    wf_rnnlm_train_options_init(&options);
    options.maxent_cells = cases[i].cells;
    snprintf(text, sizeof text, "%s",
             test_write_file("text", cases[i].text, strlen(cases[i].text)));
    wf_progress progress = {cases[i].code == WF_ERR_CANCELLED ? refuse_progress : NULL, NULL};
    wf_status status =
        wf_rnnlm_train(text, test_write_file("valid", cases[i].valid, strlen(cases[i].valid)),
                       &options, NULL, NULL, &rnnlm, &progress, &err);
    if (status != cases[i].code || strstr(err.message, cases[i].part) == NULL)
      fail_msg("case %zu: %d, %s", i, status, err.message);
    assert_null(rnnlm);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gradients), cmocka_unit_test(test_training_cost_equals_score),
      cmocka_unit_test(test_learns_from_the_first_word),
      cmocka_unit_test(test_one_thread_is_deterministic), cmocka_unit_test(test_rejected_input)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
