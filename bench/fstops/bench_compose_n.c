/* bench_compose_n.c - composes three generated fsts in one call, or in two with --pairwise.
 *
 *     bench_compose_n [--FLAG=VALUE...]
 *
 * The first is a lexicon of random words of 3 to 9 of 40 phones, the second a random grammar over
 * the words, the third a line of slots with alternative words, or all words in one state if
 * --slots=0. A o B is large; with slots, few of its states are visited.
 *
 * Prints a JSON line: states and arcs of the result, processor and wall seconds of the best run,
 * and the peak memory of the process. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common.h"
#include "random.h"
#include "warpfst_all.h"

static wf_error g_err;

static wf_builder *start_fst(uint32_t num_states) {
  wf_builder *builder;
  check(wf_builder_create(WF_TROPICAL, &builder, &g_err), &g_err);
  check(wf_builder_add_states(builder, num_states, NULL, &g_err), &g_err);
  check(wf_builder_set_start(builder, 0, &g_err), &g_err);
  return builder;
}

static void add_arc(wf_builder *builder, uint32_t from, uint32_t to, int32_t ilabel, int32_t olabel,
                    float weight) {
  wf_arc arc = {.nextstate = to, .weight = weight, .ilabel = ilabel, .olabel = olabel};
  check(wf_builder_add_arc(builder, from, arc, &g_err), &g_err);
}

static wf_fst *finish_fst(wf_builder *builder) {
  wf_fst *fst;
  check(wf_builder_finish(builder, NULL, NULL, &fst, &g_err), &g_err);
  wf_builder_free(builder);
  return fst;
}

static wf_fst *lexicon(uint32_t num_words) {
  enum { NUM_PHONES = 40, SHORTEST = 3, LENGTHS = 7 };
  uint64_t seed = 1;
  wf_builder *builder = start_fst(1);
  check(wf_builder_set_final(builder, 0, 0, &g_err), &g_err);
  for (uint32_t word = 1; word <= num_words; word++) {
    const uint32_t length = SHORTEST + below(&seed, LENGTHS);
    for (uint32_t k = 0, from = 0, to = 0; k < length; k++, from = to) {
      to = 0;
      if (k + 1 < length) check(wf_builder_add_states(builder, 1, &to, &g_err), &g_err);
      add_arc(builder, from, to, 1 + (int32_t)below(&seed, NUM_PHONES), k == 0 ? (int32_t)word : 0,
              unit(&seed));
    }
  }
  return finish_fst(builder);
}

/* A random word from every state, `degree` times, or all words if degree is 0. */
static wf_fst *grammar(uint32_t num_states, uint32_t degree, uint32_t num_words) {
  uint64_t seed = 2;
  wf_builder *builder = start_fst(num_states);
  for (uint32_t s = 0; s < num_states; s++) {
    for (uint32_t k = 0; k < (degree == 0 ? num_words : degree); k++) {
      const int32_t word = 1 + (int32_t)(degree == 0 ? k : below(&seed, num_words));
      add_arc(builder, s, below(&seed, num_states), word, word, unit(&seed));
    }
    check(wf_builder_set_final(builder, s, unit(&seed), &g_err), &g_err);
  }
  return finish_fst(builder);
}

static wf_fst *slots(uint32_t num_slots, uint32_t alternatives, uint32_t num_words) {
  uint64_t seed = 3;
  wf_builder *builder = start_fst(num_slots + 1);
  for (uint32_t s = 0; s < num_slots; s++)
    for (uint32_t k = 0; k < alternatives; k++) {
      const int32_t word = 1 + (int32_t)below(&seed, num_words);
      add_arc(builder, s, s + 1, word, word, unit(&seed));
    }
  check(wf_builder_set_final(builder, num_slots, 0, &g_err), &g_err);
  return finish_fst(builder);
}

static wf_fst *compose(wf_fst *const fsts[3], const wf_compose_options *options, bool pairwise) {
  wf_fst *out, *left;
  if (!pairwise) {
    check(wf_compose_n((const wf_fst *const *)fsts, 3, options, &out, &g_err), &g_err);
    return out;
  }
  check(wf_compose(fsts[0], fsts[1], options, &left, &g_err), &g_err);
  check(wf_compose(left, fsts[2], options, &out, &g_err), &g_err);
  wf_fst_free(left);
  return out;
}

int main(int argc, char **argv) {
  int64_t words = 2000, states = 3000, degree = 100, num_slots = 12, alternatives = 40, repeat = 3,
          threads = 1;
  bool pairwise = false, canonical = false;
  const char *device = NULL;
  const struct flag flags[] = {
      {"words", "words of the lexicon", .integer = &words},
      {"states", "states of the grammar", .integer = &states},
      {"degree", "arcs per state of the grammar", .integer = &degree},
      {"slots", "slots of the third fst; 0: all words in one state", .integer = &num_slots},
      {"alternatives", "words per slot", .integer = &alternatives},
      {"repeat", "number of runs", .integer = &repeat},
      {"threads", "number of threads; 0: all", .integer = &threads},
      {"pairwise", "two calls", .yes = &pairwise},
      {"canonical", "order=canonical", .yes = &canonical},
      {"device", "cpu or cuda (order=canonical)", .text = &device}};
  const struct command command = {.arguments = "[FLAGS]",
                                  .purpose = "Measures composition of three generated fsts.",
                                  .flags = flags,
                                  .num_flags = sizeof flags / sizeof *flags};
  read_flags(&command, argc, argv, 0, 0, NULL);
  if (words < 1 || states < 1 || degree < 1 || num_slots < 0 || alternatives < 1 || repeat < 1)
    usage_error("a size is out of range");
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = canonical || device != NULL;
  options.device = device;
  options.num_threads = (int32_t)threads;
  wf_fst *fsts[3] = {
      lexicon((uint32_t)words), grammar((uint32_t)states, (uint32_t)degree, (uint32_t)words),
      num_slots == 0 ? grammar(1, 0, (uint32_t)words)
                     : slots((uint32_t)num_slots, (uint32_t)alternatives, (uint32_t)words)};
  double best_cpu_s = INFINITY, best_wall_s = INFINITY;
  wf_fst_view view = {0};
  for (int64_t i = 0; i < repeat; i++) {
    const double cpu = cpu_s(), wall = now_s();
    wf_fst *out = compose(fsts, &options, pairwise);
    best_cpu_s = fmin(best_cpu_s, cpu_s() - cpu);
    best_wall_s = fmin(best_wall_s, now_s() - wall);
    view = wf_fst_get_view(out);
    wf_fst_free(out);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf(
      "{\"calls\": %d, \"states\": %llu, \"arcs\": %llu, \"cpu_s\": %.6f, \"wall_s\": %.6f, "
      "\"peak_mib\": %.1f}\n",
      pairwise ? 2 : 1, (unsigned long long)view.num_states, (unsigned long long)view.num_arcs,
      best_cpu_s, best_wall_s, (double)usage.ru_maxrss / 1024);
  for (int i = 0; i < 3; i++) wf_fst_free(fsts[i]);
  return 0;
}
