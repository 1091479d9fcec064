/* bench_generation.c - times steps of batches of hypotheses on a GPU (wf_bias_batch_step).
 *
 *     bench_generation [--vocabularies=32000,128000,256000] [--batches=1,64,512] [--steps=200]
 *     [--rounds=5]
 *
 * Tokens are random texts of letters, half of which begin words. Each step follows a token of each
 * hypothesis and changes its logits, which are in the GPU's memory:
 *     launch   nothing: the launch of the step alone
 *     copy     a copy of the logits on the GPU, for comparison
 *     100, 1k, 10k   phrases of three tokens. No hypothesis is in one; or all are, after its first
 *              token (within); or every tenth is (tenth)
 *     3-gram   a model of tokens, with texts of which it was estimated
 *     1k and 3-gram  both
 *     grammar  1,000 sentences of four words, at their beginning
 *     words    a 2-gram model of words, within a word
 *
 * Prints a JSON object per line: microseconds of a step on the GPU, the median of `rounds` times
 * `steps` steps, and of the host's call. The first step of each is compared with the CPU, and the
 * program ends with an error if a bit of the logits differs. */
#include <math.h>

#include "common.h"
#include "random.h"

#ifdef WARPFST_BENCH_CUDA
#include <cuda_runtime_api.h>

enum { MOST = 16, LETTERS = 26, PERIOD = 32, SENTENCES = 10000, WORDS = 2000 };

struct arguments {
  const char *vocabularies, *batches;
  int64_t steps, rounds;
};

static wf_error err;
static uint64_t seed;

static void check_cuda(cudaError_t code) {
  if (code != cudaSuccess) fail(cudaGetErrorString(code));
}
static void *on_gpu(size_t bytes) {
  void *at;
  check_cuda(cudaMalloc(&at, bytes));
  return at;
}

/* --- tokens ------------------------------------------------------------------------------ */

/* Token 0 ends the text, 1 is a space, 2 .. 27 are letters; the others are random. */
struct vocabulary {
  uint32_t count, num_starts; /* num_starts: that begin words, in `starts` */
  char (*texts)[8];
  uint32_t *starts, *rest;
  wf_token_texts *table;
};

static void make_vocabulary(uint32_t count, struct vocabulary *out) {
  memset(out, 0, sizeof *out);
  out->count = count;
  out->texts = allocate(count, sizeof *out->texts);
  out->starts = allocate(count, sizeof *out->starts);
  out->rest = allocate(count, sizeof *out->rest);
  char *bytes = allocate(count, 8);
  uint64_t *offsets = allocate((size_t)count + 1, sizeof *offsets);
  uint8_t *kinds = allocate(count, 1);
  uint32_t num_rest = 0;
  for (uint32_t t = 0; t < count; t++) {
    char *text = out->texts[t];
    if (t == 1) {
      text[0] = ' ';
    } else if (t >= 2 && t < 2 + LETTERS) {
      text[0] = (char)('a' + t - 2);
    } else if (t > 0) {
      const uint32_t space = below(&seed, 2), size = 2 + below(&seed, 5);
      if (space) text[0] = ' ';
      for (uint32_t i = 0; i < size; i++)
        text[space + i] = "aaabcdeeefghiiklmnooprstuvz"[below(&seed, 27)];
    }
    const size_t size = strlen(text);
    kinds[t] = t == 0           ? WF_TOKEN_ENDS
               : text[0] == ' ' ? (size == 1 ? WF_TOKEN_BREAKS : 0)
                                : WF_TOKEN_CONTINUES;
    memcpy(bytes + offsets[t], text, size);
    offsets[t + 1] = offsets[t] + size;
    if (t >= 2 + LETTERS && text[0] == ' ') out->starts[out->num_starts++] = t;
    if (t >= 2 + LETTERS && text[0] != ' ') out->rest[num_rest++] = t;
  }
  check(wf_token_texts_create(bytes, offsets, kinds, count, &out->table, &err), &err);
  free(bytes);
  free(offsets);
  free(kinds);
}

/* Phrases of three tokens. */
static wf_scorer *phrases_of(uint32_t count, const int32_t *labels) {
  uint64_t *off = allocate((size_t)count + 1, sizeof *off);
  float *boosts = allocate(count, sizeof *boosts);
  wf_scorer *out;
  for (uint32_t i = 0; i < count; i++) {
    off[i + 1] = off[i] + 3;
    boosts[i] = 3;
  }
  check(wf_scorer_boost_phrases(labels, off, boosts, count, &out, &err), &err);
  free(off);
  free(boosts);
  return out;
}

/* --- models ------------------------------------------------------------------------------ */

static wf_lm *estimate(const char *path, int32_t order) {
  wf_lm_estimate_options options;
  wf_lm *out;
  wf_lm_estimate_options_init(&options);
  options.order = order;
  check(wf_lm_estimate(&path, 1, NULL, &options, &out, NULL, NULL, &err), &err);
  return out;
}

/* 200,000 tokens in texts of 20, frequent ones more often. */
static wf_lm *token_lm(const struct vocabulary *v, uint32_t *texts) {
  const char *path = "bench_generation.txt";
  FILE *file = fopen(path, "w");
  if (file == NULL) fail("cannot write bench_generation.txt");
  for (uint32_t i = 0; i < SENTENCES * 20; i++) {
    texts[i] = (uint32_t)powf((float)(v->count - 2), unit(&seed));
    fprintf(file, "t%u%c", texts[i], i % 20 == 19 ? '\n' : ' ');
  }
  fclose(file);
  wf_lm *lm = estimate(path, 3);
  remove(path);
  return lm;
}

static void random_word(char *out) {
  const uint32_t size = 3 + below(&seed, 6);
  for (uint32_t i = 0; i < size; i++) out[i] = "abcdefghiklmnoprstuvz"[below(&seed, 21)];
  out[size] = '\0';
}

static wf_lm *word_lm(char (*words)[16]) {
  const char *path = "bench_generation.txt";
  FILE *file = fopen(path, "w");
  if (file == NULL) fail("cannot write bench_generation.txt");
  for (uint32_t i = 0; i < 30000; i++)
    fprintf(file, "%s%c", words[below(&seed, WORDS)], i % 10 == 9 ? '\n' : ' ');
  fclose(file);
  wf_lm *lm = estimate(path, 2);
  remove(path);
  return lm;
}

static wf_scorer *ngrams_of(const struct vocabulary *v, const wf_lm *lm) {
  wf_symbols *names;
  wf_scorer *out;
  char name[32];
  check(wf_symbols_create("tokens", &names, &err), &err);
  check(wf_symbols_add(names, "<eps>", 0, NULL, &err), &err);
  for (uint32_t t = 0; t < v->count; t++) {
    snprintf(name, sizeof name, "t%u", t);
    check(wf_symbols_add(names, name, (int64_t)t + 1, NULL, &err), &err);
  }
  wf_ngram_scorer_options options;
  wf_ngram_scorer_options_init(&options);
  options.lm_scale = 0.3f;
  check(wf_scorer_from_lm(lm, names, &options, &out, &err), &err);
  wf_symbols_free(names);
  return out;
}

/* Sentences of four words, as an acceptor of tokens: those of their bytes. */
static wf_fst *grammar_of(const struct vocabulary *v, char (*words)[16]) {
  wf_builder *builder;
  wf_fst *bytes, *plain, *tokens;
  check(wf_builder_create(WF_TROPICAL, &builder, &err), &err);
  uint32_t next = 1;
  check(wf_builder_add_states(builder, 1 + 1000 * 4 * 16, NULL, &err), &err);
  check(wf_builder_set_start(builder, 0, &err), &err);
  for (int i = 0; i < 1000; i++) {
    uint32_t at = 0;
    for (int k = 0; k < 4; k++) {
      char text[20];
      snprintf(text, sizeof text, " %s", words[below(&seed, WORDS)]);
      for (const char *c = text; *c != '\0'; c++, at = next++) {
        const int32_t label = (unsigned char)*c + 1;
        const wf_arc arc = {.ilabel = label, .olabel = label, .nextstate = next};
        check(wf_builder_add_arc(builder, at, arc, &err), &err);
      }
    }
    check(wf_builder_set_final(builder, at, 0, &err), &err);
  }
  check(wf_builder_finish(builder, NULL, NULL, &bytes, &err), &err);
  wf_builder_free(builder);
  check(wf_determinize(bytes, NULL, &plain, &err), &err);
  check(wf_token_texts_to_fst(v->table, plain, &tokens, &err), &err);
  wf_fst_free(bytes);
  wf_fst_free(plain);
  return tokens;
}

/* --- steps ------------------------------------------------------------------------------- */

struct way {
  const char *name;
  wf_bias *bias;
  const uint32_t *tokens; /* [num_tokens] that hypotheses follow, each from another place on */
  uint32_t num_tokens, others_each; /* only one hypothesis of so many; the others take spaces */
};

/* Tokens of PERIOD steps. */
static int32_t *tokens_of(const struct way *way, uint32_t batch) {
  int32_t *tokens = allocate((size_t)PERIOD * batch, sizeof *tokens);
  for (uint32_t s = 0; s < PERIOD; s++)
    for (uint32_t i = 0; i < batch; i++)
      tokens[s * batch + i] =
          i % way->others_each != 0 ? 1 : (int32_t)way->tokens[(i * 37 + s) % way->num_tokens];
  return tokens;
}

static void check_step(const struct way *way, uint32_t batch, uint32_t width, const int32_t *tokens,
                       const float *rows) {
  const uint32_t count = batch < 16 ? batch : 16;
  const wf_bias *biases[16];
  wf_bias_state states[16];
  float *want = allocate((size_t)count * width, sizeof *want),
        *got = allocate((size_t)count * width, sizeof *got);
  for (uint32_t i = 0; i < count; i++) {
    biases[i] = way->bias;
    states[i] = wf_bias_start(way->bias);
  }
  check(wf_bias_advance(biases, states, tokens, count, NULL, &err), &err);
  check(wf_bias_add(biases, states, count, want, width, width, 0, &err), &err);
  check_cuda(cudaMemcpy(got, rows, (size_t)count * width * sizeof *got, cudaMemcpyDeviceToHost));
  if (memcmp(got, want, (size_t)count * width * sizeof *got) != 0)
    fail("logits differ from the CPU's");
  free(want);
  free(got);
}

static int by_size(const void *a, const void *b) {
  const double first = *(const double *)a, second = *(const double *)b;
  return first < second ? -1 : first > second;
}

/* What is timed. */
struct run {
  wf_bias_batch *batch;
  wf_bias_step step;
  const int32_t *tokens; /* on the GPU */
  float *copy;           /* set: the logits are copied there instead */
  cudaStream_t stream;
};

static void run_steps(struct run *run, int64_t count) {
  const size_t bytes = run->step.count * run->step.stride * sizeof(float);
  for (int64_t s = 0; s < count; s++) {
    if (run->copy != NULL) {
      check_cuda(cudaMemcpyAsync(run->copy, run->step.logits, bytes, cudaMemcpyDeviceToDevice,
                                 run->stream));
      continue;
    }
    if (run->tokens != NULL) run->step.tokens = run->tokens + s % PERIOD * run->step.count;
    check(wf_bias_batch_step(run->batch, &run->step, &err), &err);
  }
}

static void time_steps(struct run *run, const struct arguments *a, uint32_t width,
                       const char *name) {
  double times[64], host = 0;
  cudaEvent_t begin, end;
  check_cuda(cudaEventCreate(&begin));
  check_cuda(cudaEventCreate(&end));
  run_steps(run, 2 * PERIOD);
  check_cuda(cudaStreamSynchronize(run->stream));
  for (int64_t r = 0; r < a->rounds; r++) {
    float ms;
    check_cuda(cudaEventRecord(begin, run->stream));
    const double from = now_s();
    run_steps(run, a->steps);
    host = now_s() - from;
    check_cuda(cudaEventRecord(end, run->stream));
    check_cuda(cudaEventSynchronize(end));
    check_cuda(cudaEventElapsedTime(&ms, begin, end));
    times[r] = (double)ms * 1e3 / (double)a->steps;
  }
  qsort(times, (size_t)a->rounds, sizeof *times, by_size);
  printf(
      "{\"vocabulary\": %u, \"batch\": %zu, \"what\": \"%s\", \"step_us\": %.2f, "
      "\"least_us\": %.2f, \"most_us\": %.2f, \"call_us\": %.2f}\n",
      width, run->step.count, name, times[a->rounds / 2], times[0], times[a->rounds - 1],
      host * 1e6 / (double)a->steps);
  fflush(stdout);
  check_cuda(cudaEventDestroy(begin));
  check_cuda(cudaEventDestroy(end));
}

static void measure_way(const struct way *way, const wf_bias_gpu *gpu, uint32_t batch,
                        uint32_t width, const struct arguments *a) {
  wf_bias_gpu **gpus = allocate(batch, sizeof *gpus);
  for (uint32_t i = 0; i < batch; i++) gpus[i] = (wf_bias_gpu *)(uintptr_t)gpu;
  struct run run = {.batch = NULL};
  const size_t bytes = (size_t)batch * width * sizeof(float);
  int32_t *tokens = tokens_of(way, batch), *there = on_gpu((size_t)PERIOD * batch * 4);
  check(wf_bias_batch_create(gpus, batch, &run.batch, &err), &err);
  check_cuda(cudaStreamCreate(&run.stream));
  wf_bias_step_init(&run.step);
  run.step.index_bytes = 4;
  run.step.count = batch;
  run.step.stream = run.stream;
  run.step.width = run.step.stride = width;
  float *rows = on_gpu(bytes);
  check_cuda(cudaMemset(rows, 0, bytes));
  check_cuda(cudaMemcpy(there, tokens, (size_t)PERIOD * batch * 4, cudaMemcpyHostToDevice));
  check_cuda(cudaStreamSynchronize(NULL));
  if (strcmp(way->name, "launch") != 0) {
    run.tokens = there;
    run.step.logits = rows;
  }
  if (strcmp(way->name, "copy") == 0) {
    run.copy = on_gpu(bytes);
  } else if (run.tokens != NULL) {
    run_steps(&run, 1);
    check_cuda(cudaStreamSynchronize(run.stream));
    check_step(way, batch, width, tokens, rows);
  }
  time_steps(&run, a, width, way->name);
  check_cuda(cudaStreamSynchronize(run.stream));
  cudaFree(run.copy);
  cudaFree(rows);
  cudaFree(there);
  cudaStreamDestroy(run.stream);
  wf_bias_batch_free(run.batch);
  free(gpus);
  free(tokens);
}

static wf_bias *bias_of(const struct vocabulary *v, const wf_scorer *scorer, const wf_lm *lm,
                        const wf_fst *grammar) {
  wf_bias_parts parts;
  wf_bias *out;
  wf_bias_parts_init(&parts);
  parts.tokens = v->table;
  parts.scorer = scorer;
  parts.lm = lm;
  parts.lm_scale = 0.3f;
  parts.grammar = grammar;
  check(wf_bias_create(&parts, &out, &err), &err);
  return out;
}

static void measure_vocabulary(uint32_t width, const struct arguments *a) {
  enum { PHRASES = 10000 };
  static int32_t labels[3 * PHRASES];
  static uint32_t texts[SENTENCES * 20], firsts[PHRASES], within[WORDS];
  static char words[WORDS][16];
  static const uint32_t space[1] = {1};
  struct vocabulary v;
  seed = width;
  make_vocabulary(width, &v);
  const uint32_t num_rest = width - 2 - LETTERS - v.num_starts;
  for (uint32_t i = 0; i < 3 * PHRASES; i++)
    labels[i] = 1 + (int32_t)(i % 3 == 0 ? v.starts[below(&seed, v.num_starts)]
                                         : v.rest[below(&seed, num_rest)]);
  for (uint32_t i = 0; i < PHRASES; i++) firsts[i] = (uint32_t)labels[3 * i] - 1;
  for (uint32_t i = 0; i < WORDS; i++) {
    random_word(words[i]);
    within[i] = i % 4 == 0 ? 1 : 2 + below(&seed, LETTERS); /* a space, then three letters */
  }
  wf_lm *tokens_lm = token_lm(&v, texts), *words_lm = word_lm(words);
  wf_scorer *few = phrases_of(100, labels), *some = phrases_of(1000, labels),
            *many = phrases_of(PHRASES, labels), *ngrams = ngrams_of(&v, tokens_lm), *both;
  wf_fst *grammar = grammar_of(&v, words);
  check(wf_scorer_chain(some, ngrams, &both, &err), &err);
  wf_bias *biases[] = {bias_of(&v, few, NULL, NULL),     bias_of(&v, some, NULL, NULL),
                       bias_of(&v, many, NULL, NULL),    bias_of(&v, ngrams, NULL, NULL),
                       bias_of(&v, both, NULL, NULL),    bias_of(&v, NULL, NULL, grammar),
                       bias_of(&v, NULL, words_lm, NULL)};
  enum { BIASES = sizeof biases / sizeof *biases };
  const struct way ways[] = {{"launch", biases[0], space, 1, 1},
                             {"copy", biases[0], space, 1, 1},
                             {"100 phrases", biases[0], space, 1, 1},
                             {"1k phrases", biases[1], space, 1, 1},
                             {"10k phrases", biases[2], space, 1, 1},
                             {"100 phrases, within", biases[0], firsts, 100, 1},
                             {"100 phrases, a tenth within", biases[0], firsts, 100, 10},
                             {"10k phrases, within", biases[2], firsts, PHRASES, 1},
                             {"10k phrases, a tenth within", biases[2], firsts, PHRASES, 10},
                             {"3-gram", biases[3], texts, SENTENCES * 20, 1},
                             {"1k phrases and 3-gram", biases[4], texts, SENTENCES * 20, 1},
                             {"grammar", biases[5], space, 1, 1},
                             {"2-gram of words", biases[6], within, WORDS, 1}};
  wf_bias_gpu *gpus[BIASES];
  for (int i = 0; i < BIASES; i++)
    check(wf_bias_gpu_create(biases[i], "cuda", NULL, &gpus[i], &err), &err);
  for (const char *batch = a->batches; *batch != '\0';) {
    char *end;
    const uint32_t count = (uint32_t)strtoul(batch, &end, 10);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
      int k = 0;
      while (biases[k] != ways[i].bias) k++;
      measure_way(&ways[i], gpus[k], count, width, a);
    }
    batch = *end == ',' ? end + 1 : end;
  }
  for (int i = 0; i < BIASES; i++) {
    wf_bias_gpu_free(gpus[i]);
    wf_bias_free(biases[i]);
  }
  wf_scorer_free(few);
  wf_scorer_free(some);
  wf_scorer_free(many);
  wf_scorer_free(ngrams);
  wf_scorer_free(both);
  wf_fst_free(grammar);
  wf_lm_free(tokens_lm);
  wf_lm_free(words_lm);
  wf_token_texts_free(v.table);
  free(v.texts);
  free(v.starts);
  free(v.rest);
}

int main(int argc, char **argv) {
  struct arguments a = {"32000,128000,256000", "1,64,512", 200, 5};
  const struct flag flags[] = {
      {.name = "vocabularies", .help = "numbers of tokens", .text = &a.vocabularies},
      {.name = "batches", .help = "numbers of hypotheses", .text = &a.batches},
      {.name = "steps", .help = "steps of a round", .integer = &a.steps},
      {.name = "rounds", .help = "rounds, at most 64", .integer = &a.rounds}};
  const struct command command = {.arguments = "[FLAGS]",
                                  .purpose = "times steps of hypotheses on a GPU",
                                  .flags = flags,
                                  .num_flags = sizeof flags / sizeof *flags};
  (void)read_flags(&command, argc, argv, 0, 0, NULL);
  if (a.rounds < 1 || a.rounds > 64) usage_error("--rounds=%lld", (long long)a.rounds);
  for (const char *size = a.vocabularies; *size != '\0';) {
    char *end;
    const uint32_t width = (uint32_t)strtoul(size, &end, 10);
    if (width < 1000) usage_error("--vocabularies=%s: numbers of 1,000 or more", a.vocabularies);
    measure_vocabulary(width, &a);
    size = *end == ',' ? end + 1 : end;
  }
  return 0;
}
#else
int main(void) { fail("this program was built without CUDA"); }
#endif
