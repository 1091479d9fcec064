/* rnnlm_train.c - training: texts to ids, initial weights, epochs.
 *
 *   text --> words by decreasing count --> wf_rnnlm with random weights --epochs--> wf_rnnlm
 *   epoch: wf__rnn_update_estimates on all sentences, then validation by wf_rnnlm_score
 *
 * Threads take blocks of sentences in order. One thread processes them in the order of the text. */
#include <stdio.h>
#include <stdlib.h>

#include "base/callbacks.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "fst/symbols.h"
#include "lm/rnnlm_update.h"
#include "math/hash.h"

enum { BLOCK = 64 }; /* number of sentences that a thread takes at a time */

/* Sentences as word ids. Each training sentence has <s> before it and </s> after it. */
typedef struct corpus {
  WF__VEC(int32_t) words;
  WF__VEC(uint64_t) first; /* [num_sentences + 1] */
  uint64_t num_oov;        /* sentences left out because of unknown words */
} corpus;

static void corpus_free(corpus *text) {
  wf__vec_free(&text->words);
  wf__vec_free(&text->first);
}

static uint64_t num_sentences(const corpus *text) { return text->first.size - 1; }

/* --- texts ------------------------------------------------------------------------------- */

static wf_status word_key(wf_symbols *words, wf__span text, bool grow, int64_t *key,
                          wf_error *err) {
  if (text.size > WF__RNN_MAX_WORD_BYTES) text.size = WF__RNN_MAX_WORD_BYTES;
  *key = wf__symbols_find_bytes(words, text.data, text.size);
  if (*key >= 0 || !grow) return WF_OK;
  char *copy = wf__strndup(text.data, text.size);
  if (copy == NULL) return wf__fail_memory(err, text.size, "a word");
  wf_status status = wf_symbols_add(words, copy, -1, key, err);
  free(copy);
  return status;
}

static wf_status read_line(wf_symbols *words, wf__span line, bool training, wf__lines *lines,
                           corpus *text, wf_error *err) {
  uint64_t begin = text->words.size;
  bool any = false, oov = false;
  wf__span word;
  int64_t key = 0;
  if (training) WF__TRY(wf__vec_push(&text->words, 0, "a text", err));
  for (; wf__next_field(&line, &word); any = true) {
    if (memchr(word.data, '\0', word.size) != NULL)
      return wf__lines_fail(lines, err, WF_ERR_FORMAT, "zero byte in a word");
    WF__TRY(word_key(words, word, training, &key, err));
    if (key == 0)
      return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                            "'</s>' within a sentence: it is added at the end of each line");
    oov |= key < 0;
    WF__TRY(wf__vec_push(&text->words, (int32_t)key, "a text", err));
  }
  text->num_oov += oov;
  if (!any || oov) {
    text->words.size = begin;
    return WF_OK;
  }
  if (training) WF__TRY(wf__vec_push(&text->words, 0, "a text", err));
  return wf__vec_push(&text->first, text->words.size, "a text", err);
}

/* Reads a text. With `training` new words get keys in the order of their first occurrence; else
 * sentences with unknown words are left out. */
static wf_status read_text(const char *path, wf_symbols *words, bool training, corpus *text,
                           wf_error *err) {
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf__lines lines = wf__lines_of(&input);
  wf__span line;
  wf_status status = wf__vec_push(&text->first, 0, "a text", err);
  while (status == WF_OK && wf__next_line(&lines, &line))
    status = read_line(words, line, training, &lines, text, err);
  if (status == WF_OK && num_sentences(text) == 0)
    status = wf__fail(err, WF_ERR_FORMAT,
                      training ? "%s: no words" : "%s: no sentence of known words", input.path);
  wf__input_close(&input);
  return status;
}

/* --- vocabulary -------------------------------------------------------------------------- */

typedef struct ranked {
  int64_t count;
  int32_t key;
} ranked;

static int by_count(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return x->key < y->key ? -1 : x->key > y->key;
}

/* Numbers the words by decreasing count, with </s> first, in `lm` and in the text. */
static wf_status rank_words(wf_rnnlm *lm, const wf_symbols *found, corpus *text, wf_error *err) {
  size_t n = lm->num_words = wf_symbols_count(found);
  ranked *rank = wf__calloc(n, sizeof *rank);
  int32_t *id = wf__alloc(n, sizeof *id);
  lm->counts = wf__calloc(n, sizeof *lm->counts);
  wf_status status = rank != NULL && id != NULL && lm->counts != NULL
                         ? WF_OK
                         : wf__fail_memory(err, n * 28, "word counts");
  for (size_t i = 0; status == WF_OK && i < n; i++) rank[i].key = (int32_t)i;
  for (uint64_t i = 0; status == WF_OK && i < text->words.size; i++)
    rank[text->words.data[i]].count++;
  if (status == WF_OK) {
    rank[0].count /= 2; /* both ends of each sentence were counted */
    qsort(rank + 1, n - 1, sizeof *rank, by_count);
  }
  for (size_t i = 0; status == WF_OK && i < n; i++) {
    id[rank[i].key] = (int32_t)i;
    lm->counts[i] = rank[i].count;
    status = wf_symbols_add(lm->words, wf_symbols_text(found, rank[i].key), (int64_t)i, NULL, err);
  }
  for (uint64_t i = 0; status == WF_OK && i < text->words.size; i++)
    text->words.data[i] = id[text->words.data[i]];
  free(rank);
  free(id);
  return status;
}

static wf_status read_training_text(const char *path, wf_rnnlm *lm, corpus *text, wf_error *err) {
  wf_symbols *found = NULL;
  wf_status status = wf_symbols_create("words", &found, err);
  if (status == WF_OK) status = wf_symbols_add(found, "</s>", 0, NULL, err);
  if (status == WF_OK) status = read_text(path, found, true, text, err);
  if (status == WF_OK) status = wf_symbols_create(path, &lm->words, err);
  if (status == WF_OK) status = rank_words(lm, found, text, err);
  wf_symbols_free(found);
  return status;
}

/* --- initial weights --------------------------------------------------------------------- */

static float random_unit(uint64_t *state) { /* [-1, 1) */
  *state += 0x9e3779b97f4a7c15ULL;
  return (float)(wf__mix64(*state) >> 40) * (2.0f / (1 << 24)) - 1;
}

struct init {
  wf_rnnlm *lm;
  uint64_t random;
};

static wf_status init_floats(void *user, float **data, size_t rows, size_t cols, bool used,
                             wf_error *err) {
  struct init *init = user;
  if (!used) return WF_OK;
  *data = wf__rnn_take(init->lm, rows, cols);
  /* The output is zero at first, so each node gives both branches probability 1/2. */
  float size = data == &init->lm->output.data      ? 0
               : data == &init->lm->embedding.data ? 0.1f
                                                   : 1 / sqrtf((float)cols);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < cols; c++)
      (*data)[r * wf__padded(cols) + c] = size * random_unit(&init->random);
  return WF_OK;
}

static wf_status init_model(const wf_rnnlm_train_options *options, wf_rnnlm *lm, wf_error *err) {
  lm->hidden = lm->embed = (size_t)options->hidden;
  lm->num_layers = 1;
  lm->arity = 2;
  lm->nce_lnz = 9;
  lm->unk = -1;
  WF__TRY(wf__rnn_set_type(lm, options->layer == WF_LAYER_SIGMOID ? "sigmoid" : "gru", err));
  wf__rnn_shape_layers(lm);
  WF__TRY(wf__rnn_alloc_dense(lm, err));
  struct init init = {lm, (uint64_t)options->seed};
  WF__TRY(wf__rnn_visit(lm, init_floats, &init, err));
  lm->num_cells = (uint64_t)options->maxent_cells / lm->num_words * lm->num_words;
  if (options->maxent_cells > 0 && lm->num_cells <= lm->num_words)
    return wf__fail(
        err, WF_ERR_ARGUMENT,
        "maxent_cells is %lld, expected at least twice the number of words, which is %zu",
        (long long)options->maxent_cells, lm->num_words);
  lm->maxent_order = lm->num_cells > 0 ? options->maxent_order : 0;
  lm->own_cells = wf__calloc(lm->num_cells, sizeof(float));
  if (lm->own_cells == NULL)
    return wf__fail_memory(err, lm->num_cells * sizeof(float), "MaxEnt cells");
  lm->cells = (const uint8_t *)lm->own_cells;
  WF__TRY(wf__rnn_build_tree(lm, wf_symbols_name(lm->words), err));
  return wf__rnn_finish(lm, err);
}

/* --- epochs ------------------------------------------------------------------------------ */

struct training {
  wf_rnnlm *lm;
  corpus text, valid;
  wf__rnn_rates rates;
  int num_threads;
  wf__rnn_tape *tapes; /* [num_threads] */
  double *costs;       /* [num_threads] */
  const wf_progress *progress;
  int32_t epoch;
  wf_status status; /* result of the progress callback, which worker 0 calls */
  atomic_bool stop;
  wf_error *err;
};

static void update_block(void *user, uint64_t item, int worker) {
  struct training *t = user;
  if (atomic_load_explicit(&t->stop, memory_order_relaxed) || wf__stopped()) return;
  uint64_t end =
      (item + 1) * BLOCK < num_sentences(&t->text) ? (item + 1) * BLOCK : num_sentences(&t->text);
  for (uint64_t s = item * BLOCK; s < end; s++) {
    uint64_t first = t->text.first.data[s];
    t->costs[worker] +=
        wf__rnn_update_estimates(t->lm, &t->rates, &t->tapes[worker], t->text.words.data + first,
                                 t->text.first.data[s + 1] - first);
  }
  if (worker != 0) return; /* worker 0 is the calling thread */
  char stage[40];
  snprintf(stage, sizeof stage, "training, epoch %d", t->epoch);
  t->status =
      wf__progress(t->progress, stage, (double)end / (double)num_sentences(&t->text), t->err);
  if (t->status != WF_OK) atomic_store(&t->stop, true);
}

/* Computes the mean cost of the validation tokens, in nats. */
static wf_status validate(struct training *t, double *entropy, wf_error *err) {
  wf_rnnlm *lm = t->lm;
  free(lm->start); /* computed with the old weights */
  lm->start = NULL;
  WF__TRY(wf__rnn_finish(lm, err));
  uint64_t tokens = t->valid.words.size + num_sentences(&t->valid);
  float *costs = wf__alloc(tokens, sizeof *costs);
  if (costs == NULL) return wf__fail_memory(err, tokens * sizeof *costs, "validation");
  wf_status status = wf_rnnlm_score(lm, t->valid.words.data, t->valid.first.data,
                                    num_sentences(&t->valid), t->num_threads, costs, err);
  double sum = 0;
  for (uint64_t i = 0; status == WF_OK && i < tokens; i++) sum += (double)costs[i];
  *entropy = sum / (double)tokens;
  free(costs);
  if (status == WF_OK && !isfinite(*entropy))
    return wf__fail(err, WF_ERR_LIMIT,
                    "training diverged in epoch %d: lower learning_rate or maxent_learning_rate",
                    t->epoch);
  return status;
}

static wf_status run_epoch(struct training *t, wf__pool *pool, wf_rnnlm_epoch *report,
                           double *entropy, wf_error *err) {
  double begin = wf__now_s(), cost = 0;
  for (int i = 0; i < t->num_threads; i++) t->costs[i] = 0;
  wf__pool_run(pool, (num_sentences(&t->text) + BLOCK - 1) / BLOCK, update_block, t);
  WF__TRY(t->status);
  WF__TRY(wf__interrupted(err));
  for (int i = 0; i < t->num_threads; i++) cost += t->costs[i];
  report->seconds = wf__now_s() - begin;
  report->num_tokens = t->text.words.size - num_sentences(&t->text);
  WF__TRY(validate(t, entropy, err));
  report->epoch = t->epoch;
  report->learning_rate = t->rates.weights;
  report->train_perplexity = exp(cost / (double)report->num_tokens);
  report->valid_perplexity = exp(*entropy);
  report->num_oov = t->valid.num_oov;
  return WF_OK;
}

static wf_status run_epochs(struct training *t, const wf_rnnlm_train_options *options,
                            wf_rnnlm_epoch_fn on_epoch, void *user, wf__pool *pool, wf_error *err) {
  double before = 0, entropy;
  bool halving = false;
  WF__TRY(validate(t, &before, err));
  for (t->epoch = 1; t->epoch <= options->max_epochs; t->epoch++) {
    wf_rnnlm_epoch report = {0};
    WF__TRY(run_epoch(t, pool, &report, &entropy, err));
    if (on_epoch != NULL) on_epoch(user, &report);
    WF__TRY(wf__interrupted(err));
    bool gained = entropy < before * (1 - (double)options->min_gain);
    before = entropy;
    if (!gained && halving) break;
    halving |= !gained;
    if (!halving) continue;
    t->rates.weights /= 2;
    t->rates.cells /= 2;
  }
  return WF_OK;
}

static wf_status train(struct training *t, const wf_rnnlm_train_options *options,
                       wf_rnnlm_epoch_fn on_epoch, void *user, wf_error *err) {
  t->num_threads = options->num_threads > 0 ? options->num_threads : wf__num_cpus();
  t->tapes = wf__calloc((uint64_t)t->num_threads, sizeof *t->tapes);
  t->costs = wf__calloc((uint64_t)t->num_threads, sizeof *t->costs);
  if (t->tapes == NULL || t->costs == NULL)
    return wf__fail_memory(err, (uint64_t)t->num_threads * sizeof *t->tapes, "training");
  for (int i = 0; i < t->num_threads; i++) WF__TRY(wf__rnn_tape_init(t->lm, &t->tapes[i], err));
  wf__pool *pool;
  WF__TRY(wf__pool_create(t->num_threads, &pool, err));
  wf_status status = run_epochs(t, options, on_epoch, user, pool, err);
  wf__pool_free(pool);
  return status;
}

wf_status wf_rnnlm_train(const char *train_path, const char *valid_path,
                         const wf_rnnlm_train_options *options, wf_rnnlm_epoch_fn on_epoch,
                         void *user, wf_rnnlm **out, const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf_rnnlm_train_options o;
  WF__TRY(wf__options_take(wf__rnnlm_train_table(), options, &o, err));
  struct training t = {
      .progress = progress,
      .err = err,
      .rates = {o.learning_rate, o.maxent_learning_rate, o.l2, o.maxent_l2, o.clip}};
  wf_rnnlm *lm = t.lm = wf__calloc(1, sizeof *lm);
  if (lm == NULL) return wf__fail_memory(err, sizeof *lm, "a recurrent language model");
  atomic_init(&lm->refs, 1);
  wf_status status = read_training_text(train_path, lm, &t.text, err);
  if (status == WF_OK) status = read_text(valid_path, lm->words, false, &t.valid, err);
  if (status == WF_OK) status = init_model(&o, lm, err);
  if (status == WF_OK) status = train(&t, &o, on_epoch, user, err);
  for (int i = 0; t.tapes != NULL && i < t.num_threads; i++) wf__rnn_tape_free(&t.tapes[i]);
  free(t.tapes);
  free(t.costs);
  corpus_free(&t.text);
  corpus_free(&t.valid);
  if (status != WF_OK) {
    wf_rnnlm_free(lm);
    return status;
  }
  *out = lm;
  return WF_OK;
}
