/* bench_compose.c - measures composition in process, on the inputs of a published comparison
 * (Sengupta, Pratap, Hannun 2021).
 *
 *     bench_compose random [--FLAG=VALUE...]      two random graphs
 *     bench_compose words [--FLAG=VALUE...]       closure of a pronunciation lexicon with a line of
 *                                                 251 states and 69 phones. If the dictionary has
 *                                                 too few words, new ones are made of the beginning
 *                                                 of one word and the end of another
 *
 * --help lists the flags. With --device there are two measurements: inputs and results that stay on
 * the device, and runs that include uploads and copies back.
 *
 * Prints a JSON line per measurement: states and arcs of all pairs, processor and wall seconds of
 * the best run, the median wall time, and the bytes of inputs and results (a lower bound on memory
 * traffic). Runs whose results stay on the device are repeated for at least half a second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "fstops/composer.h"
#include "random.h"
#include "warpfst_all.h"

enum { MAX_PHONES = 128, MAX_LINE = 4096, MAX_LENGTH = 64, NUM_EMISSIONS = 251, MAX_RUNS = 200 };

static wf_error g_err;

static void stop(const char *what) {
  fprintf(stderr, "bench_compose: %s %s\n", what, g_err.message);
  exit(1);
}
static void *need(void *memory) {
  if (memory == NULL) stop("out of memory");
  return memory;
}

/* --- generators ------------------------------------------------------------------------- */

static wf_builder *start_fst(uint32_t num_states, uint32_t final) {
  wf_builder *builder;
  check(wf_builder_create(WF_TROPICAL, &builder, &g_err), &g_err);
  check(wf_builder_add_states(builder, num_states, NULL, &g_err), &g_err);
  check(wf_builder_set_start(builder, 0, &g_err), &g_err);
  check(wf_builder_set_final(builder, final, 0, &g_err), &g_err);
  return builder;
}

static wf_fst *in_log_semiring(wf_fst *fst) {
  wf_fst *made;
  check(wf_fst_with_semiring(fst, WF_LOG, &made, &g_err), &g_err);
  wf_fst_free(fst);
  return made;
}

/* Sorts on the side that will be matched, because the other programs of the comparison need it. */
static wf_fst *finish_fst(wf_builder *builder, bool by_olabel) {
  wf_fst *fst, *sorted;
  wf_arcsort_options by;
  wf_arcsort_options_init(&by);
  by.sort_type = by_olabel;
  check(wf_builder_finish(builder, NULL, NULL, &fst, &g_err), &g_err);
  check(wf_arcsort(fst, &by, &sorted, &g_err), &g_err);
  wf_builder_free(builder);
  wf_fst_free(fst);
  return sorted;
}

static wf_fst *random_graph(uint32_t num_states, uint32_t degree, uint32_t num_labels,
                            uint64_t seed, bool by_olabel) {
  wf_builder *builder = start_fst(num_states, num_states - 1);
  for (uint32_t s = 0; s < num_states; s++) {
    for (uint32_t k = 0; k < degree; k++) {
      wf_arc arc = {.nextstate = below(&seed, num_states)};
      arc.ilabel = arc.olabel = 1 + (int32_t)below(&seed, num_labels);
      arc.weight = unit(&seed);
      check(wf_builder_add_arc(builder, s, arc, &g_err), &g_err);
    }
  }
  return finish_fst(builder, by_olabel);
}

static wf_fst *emissions(int num_phones) {
  uint64_t seed = 2002;
  wf_builder *builder = start_fst(NUM_EMISSIONS, NUM_EMISSIONS - 1);
  for (uint32_t t = 0; t + 1 < NUM_EMISSIONS; t++) {
    for (int32_t p = 1; p <= num_phones; p++) {
      wf_arc arc = {.nextstate = t + 1, .weight = unit(&seed), .ilabel = p, .olabel = p};
      check(wf_builder_add_arc(builder, t, arc, &g_err), &g_err);
    }
  }
  return finish_fst(builder, false);
}

/* --- the dictionary ------------------------------------------------------------------------
 * Lines are "word phone phone ..."; '#' begins a comment; variants, "word(2)", are skipped. */

struct word {
  int length;
  char *phones[MAX_LENGTH];
};

struct dictionary {
  struct word *words;
  uint32_t size, cap;
  char *phones[MAX_PHONES]; /* sorted */
  int num_phones;
};

static int find_phone(struct dictionary *d, const char *phone, bool add) {
  int low = 0;
  while (low < d->num_phones && strcmp(d->phones[low], phone) < 0) low++;
  if (low < d->num_phones && strcmp(d->phones[low], phone) == 0) return low;
  if (!add || d->num_phones == MAX_PHONES) stop("too many phones");
  memmove(&d->phones[low + 1], &d->phones[low], (size_t)(d->num_phones - low) * sizeof *d->phones);
  d->phones[low] = need(strdup(phone));
  d->num_phones++;
  return low;
}

static void add_word(struct dictionary *d, struct word word) {
  if (d->size == d->cap)
    d->words = need(realloc(d->words, (d->cap = 2 * d->cap + 1024) * sizeof *d->words));
  d->words[d->size++] = word;
}

static struct dictionary read_dictionary(const char *path) {
  struct dictionary d = {0};
  char line[MAX_LINE];
  FILE *file = fopen(path, "r");
  if (file == NULL) stop(path);
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "#\n")] = '\0';
    char *rest = line, *text = strtok_r(line, " \t", &rest);
    if (text == NULL || strchr(text, '(') != NULL) continue;
    struct word word = {0};
    for (char *phone; (phone = strtok_r(NULL, " \t", &rest)) != NULL && word.length < MAX_LENGTH;) {
      find_phone(&d, phone, true);
      word.phones[word.length++] = need(strdup(phone));
    }
    if (word.length == 0) continue;
    add_word(&d, word);
  }
  fclose(file);
  if (d.size == 0) stop("no words in the dictionary");
  return d;
}

/* More words: the first half of one from the dictionary, the second half of another. */
static void extend(struct dictionary *d, uint32_t num_words) {
  uint64_t seed = 2003;
  uint32_t size = d->size;
  while (d->size < num_words) {
    struct word head = d->words[below(&seed, size)], tail = d->words[below(&seed, size)],
                word = {0};
    for (int k = 0; k < (head.length + 1) / 2; k++)
      word.phones[word.length++] = need(strdup(head.phones[k]));
    for (int k = tail.length / 2; k < tail.length; k++)
      word.phones[word.length++] = need(strdup(tail.phones[k]));
    add_word(d, word);
  }
}

/* Closure of the union of a sample of words. State 0 is start and final; words begin at state 1. */
static wf_fst *lexicon(struct dictionary *d, uint32_t num_words) {
  uint64_t seed = 2001;
  extend(d, num_words);
  for (uint32_t i = 0; i < num_words; i++) {
    uint32_t j = i + below(&seed, d->size - i);
    struct word word = d->words[i];
    d->words[i] = d->words[j];
    d->words[j] = word;
  }
  wf_builder *builder = start_fst(2, 0);
  check(wf_builder_add_arc(builder, 0, (wf_arc){.nextstate = 1}, &g_err), &g_err);
  for (uint32_t i = 0; i < num_words; i++) {
    uint32_t from = 1, to;
    for (int k = 0; k < d->words[i].length; k++, from = to) {
      check(wf_builder_add_states(builder, 1, &to, &g_err), &g_err);
      wf_arc arc = {.nextstate = to,
                    .ilabel = k == 0 ? (int32_t)i + 1 : 0,
                    .olabel = 1 + find_phone(d, d->words[i].phones[k], false)};
      check(wf_builder_add_arc(builder, from, arc, &g_err), &g_err);
    }
    check(wf_builder_add_arc(builder, from, (wf_arc){.nextstate = 0}, &g_err), &g_err);
  }
  return finish_fst(builder, true);
}

static void free_dictionary(struct dictionary *d) {
  for (uint32_t i = 0; i < d->size; i++)
    for (int k = 0; k < d->words[i].length; k++) free(d->words[i].phones[k]);
  for (int i = 0; i < d->num_phones; i++) free(d->phones[i]);
  free(d->words);
}

/* --- runs -------------------------------------------------------------------------------- */

struct request {
  const wf_fst **a, **b; /* [pairs], all the same pair */
  size_t pairs;
  int repeat;
  wf_compose_options options;
  const char *save;
  bool ops, log, verbose;
};

struct times {
  double cpu_s[MAX_RUNS], wall_s[MAX_RUNS], begin_cpu_s, begin_wall_s, sum_s;
  int count;
};

static void begin_run(struct times *t) {
  t->begin_cpu_s = cpu_s();
  t->begin_wall_s = now_s();
}

static void end_run(struct times *t) {
  t->wall_s[t->count] = now_s() - t->begin_wall_s;
  t->cpu_s[t->count] = cpu_s() - t->begin_cpu_s;
  t->sum_s += t->wall_s[t->count++];
}

static int compare_times(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static uint64_t bytes_of(uint64_t states, uint64_t arcs) {
  return states * (sizeof(uint64_t) + sizeof(float)) + arcs * sizeof(wf_arc);
}

static void print(const struct request *r, const char *way, uint64_t states, uint64_t arcs,
                  struct times *t) {
  wf_fst_view a = wf_fst_get_view(r->a[0]), b = wf_fst_get_view(r->b[0]);
  uint64_t in =
      r->pairs * (bytes_of(a.num_states, a.num_arcs) + bytes_of(b.num_states, b.num_arcs));
  qsort(t->wall_s, (size_t)t->count, sizeof *t->wall_s, compare_times);
  qsort(t->cpu_s, (size_t)t->count, sizeof *t->cpu_s, compare_times);
  printf(
      "{\"way\": \"%s\", \"pairs\": %zu, \"threads\": %d, \"states\": %llu, \"arcs\": %llu, "
      "\"cpu_s\": %.6f, \"wall_s\": %.6f, \"median_s\": %.6f, \"runs\": %d, "
      "\"bytes_read\": %llu, \"bytes_written\": %llu}\n",
      way, r->pairs, r->options.num_threads, (unsigned long long)states, (unsigned long long)arcs,
      t->cpu_s[0], t->wall_s[0], t->wall_s[t->count / 2], t->count, (unsigned long long)in,
      (unsigned long long)bytes_of(states, arcs));
  fflush(stdout);
}

static void compose_pairs(const struct request *r, wf_fst **out) {
  wf_composer *composer;
  check(wf_composer_create(r->a, r->pairs, r->b, r->pairs, r->pairs, &r->options, false, &composer,
                           &g_err),
        &g_err);
  check(wf_composer_run(composer, &g_err), &g_err);
  for (size_t p = 0; p < r->pairs; p++)
    check(wf_composer_to_fst(composer, p, &out[p], NULL, &g_err), &g_err);
  wf_composer_free(composer);
}

/* Measures composition from host memory to host memory. */
static void run_host(const struct request *r, const char *way) {
  wf_fst **out = need(calloc(r->pairs, sizeof *out));
  struct times times = {.count = 0};
  uint64_t states = 0, arcs = 0;
  for (int i = 0; i < r->repeat; i++) {
    begin_run(&times);
    if (r->pairs == 1)
      check(wf_compose(r->a[0], r->b[0], &r->options, &out[0], &g_err), &g_err);
    else
      compose_pairs(r, out);
    end_run(&times);
    states = arcs = 0;
    for (size_t p = 0; p < r->pairs; p++) {
      states += wf_fst_get_view(out[p]).num_states;
      arcs += wf_fst_get_view(out[p]).num_arcs;
      wf_fst_free(out[p]);
    }
  }
  free(out);
  print(r, way, states, arcs, &times);
}

/* Measures composition with inputs and results in device memory. */
static void run_device(const struct request *r) {
  wf_composer *composer;
  struct times times = {.count = 0};
  uint64_t states = 0, arcs = 0;
  check(wf_composer_create(r->a, r->pairs, r->b, r->pairs, r->pairs, &r->options, false, &composer,
                           &g_err),
        &g_err);
  check(wf_composer_run(composer, &g_err), &g_err); /* allocates memory */
  while (times.count < r->repeat || (times.sum_s < 0.5 && times.count < MAX_RUNS)) {
    begin_run(&times);
    check(wf_composer_run(composer, &g_err), &g_err);
    end_run(&times);
  }
  for (size_t p = 0; p < r->pairs; p++) {
    wf_fst_view view;
    check(wf_composer_get_view(composer, p, &view, NULL, &g_err), &g_err);
    states += view.num_states;
    arcs += view.num_arcs;
  }
  uint32_t levels[2] = {0, 0};
  if (composer->gpu != NULL) wf__device_found()->compose->levels(composer->gpu, levels);
  wf_composer_free(composer);
  if (r->verbose)
    fprintf(
        stderr,
        "levels of the search: %u from the start, %u from the final states (0: both together)\n",
        levels[0], levels[1]);
  print(r, "device", states, arcs, &times);
}

/* --- operations on the result ------------------------------------------------------------ */

enum { ARCSORT, CONNECT, INVERT, REVERSE, DISTANCE, SCORE, GRADIENTS, NUM_OPS };
static const char *const op_names[NUM_OPS] = {"arcsort",
                                              "connect",
                                              "invert",
                                              "reverse",
                                              "shortest distance",
                                              "forward score",
                                              "forward score and gradients"};

static void operate(wf_fst_batch *batch, int op, double *costs) {
  wf_fst_batch *out = NULL;
  float *distances = NULL;
  switch (op) {
    case ARCSORT: check(wf_fst_batch_arcsort(batch, NULL, &out, &g_err), &g_err); break;
    case CONNECT: check(wf_fst_batch_connect(batch, &out, &g_err), &g_err); break;
    case INVERT: check(wf_fst_batch_invert(batch, &out, &g_err), &g_err); break;
    case REVERSE: check(wf_fst_batch_reverse(batch, &out, &g_err), &g_err); break;
    case DISTANCE:
      check(wf_fst_batch_shortest_distance(batch, NULL, &distances, &g_err), &g_err);
      break;
    default:
      check(wf_fst_batch_forward_score(batch, NULL, op == GRADIENTS, costs, &g_err), &g_err);
      break;
  }
  wf_fst_batch_free(out);
  wf_free(distances);
}

/* Measures operations on `pairs` copies of the composition, which is not trimmed so that connect
 * has work to do. */
static void run_ops(const struct request *r, const char *device) {
  wf_fst *composed, *in_log;
  const wf_fst **copies = need(calloc(r->pairs, sizeof *copies));
  double *costs = need(calloc(r->pairs, sizeof *costs));
  wf_fst_batch *batch;
  wf_compose_options options = r->options;
  options.connect = false;
  options.device = NULL;
  check(wf_compose(r->a[0], r->b[0], &options, &composed, &g_err), &g_err);
  check(wf_fst_with_semiring(composed, WF_LOG, &in_log, &g_err), &g_err);
  wf_fst_view view = wf_fst_get_view(in_log);
  for (size_t i = 0; i < r->pairs; i++) copies[i] = in_log;
  check(wf_fst_batch_create(copies, r->pairs, device, &batch, &g_err), &g_err);
  for (int op = 0; op < NUM_OPS; op++) {
    struct times times = {.count = 0};
    char way[64];
    operate(batch, op, costs);
    for (int i = 0; i < r->repeat; i++) {
      begin_run(&times);
      operate(batch, op, costs);
      end_run(&times);
    }
    snprintf(way, sizeof way, "%s, %s", op_names[op], device);
    print(r, way, r->pairs * view.num_states, r->pairs * view.num_arcs, &times);
  }
  wf_fst_batch_free(batch);
  wf_fst_free(composed);
  wf_fst_free(in_log);
  free(copies);
  free(costs);
}

static void run(struct request *r, wf_fst *a, wf_fst *b) {
  if (r->save != NULL) {
    char path[4096];
    for (int side = 0; side < 2; side++) {
      snprintf(path, sizeof path, "%s.%d", r->save, side + 1);
      check(wf_fst_write(side == 0 ? a : b, path, WF_FORMAT_OPENFST_VECTOR, &g_err), &g_err);
    }
    return;
  }
  r->a = need(calloc(r->pairs, sizeof *r->a));
  r->b = need(calloc(r->pairs, sizeof *r->b));
  for (size_t i = 0; i < r->pairs; i++) {
    r->a[i] = a;
    r->b[i] = b;
  }
  if (r->ops) run_ops(r, "cpu");
  if (r->ops && r->options.device != NULL) run_ops(r, r->options.device);
  if (!r->ops && r->options.device != NULL) run_device(r);
  if (!r->ops) run_host(r, r->options.device != NULL ? "device with transfers" : "cpu");
  free(r->a);
  free(r->b);
}

/* Sizes of the generated inputs. */
struct shape {
  int64_t states, degree, labels, trial, words;
  const char *dictionary;
};

static bool read_arguments(int argc, char **argv, struct request *r, struct shape *shape) {
  int64_t threads = 1, pairs = 1, repeat = 3;
  const struct flag flags[] = {
      {"states", "random: states of each graph", .integer = &shape->states},
      {"degree", "random: arcs per state", .integer = &shape->degree},
      {"labels", "random: number of labels", .integer = &shape->labels},
      {"trial", "random: number of the pair, seed of the graphs", .integer = &shape->trial},
      {"dictionary", "words: file of pronunciations, as CMUdict", .text = &shape->dictionary},
      {"words", "words: number of words of the lexicon", .integer = &shape->words},
      {"threads", "number of threads; 0: all", .integer = &threads},
      {"device", "cuda: also measures on the GPU", .text = &r->options.device},
      {"pairs", "the same pair N times in one batched call", .integer = &pairs},
      {"repeat", "number of runs", .integer = &repeat},
      {"ops",
       "instead: operations on the composition in the log semiring, on the CPU and the device",
       .yes = &r->ops},
      {"log", "inputs in the log semiring instead of the tropical one", .yes = &r->log},
      {"verbose", "prints the levels of the GPU's search on standard error", .yes = &r->verbose},
      {"save", "writes the sorted inputs to TEXT.1 and TEXT.2 and stops", .text = &r->save}};
  const struct command command = {.arguments = "random|words [FLAGS]",
                                  .purpose = "Measures composition of generated inputs.",
                                  .flags = flags,
                                  .num_flags = sizeof flags / sizeof *flags};
  const char *kind = NULL;
  read_flags(&command, argc, argv, 1, 1, &kind);
  bool random = strcmp(kind, "random") == 0;
  if (!random && strcmp(kind, "words") != 0) usage_error("%s: expected random or words", kind);
  if (!random && shape->dictionary == NULL) usage_error("words needs --dictionary");
  if (pairs < 1 || repeat < 1 || repeat > MAX_RUNS)
    usage_error("--pairs or --repeat is out of range");
  if (shape->states < 1 || shape->labels < 1 || shape->words < 1)
    usage_error("--states, --labels or --words is below 1");
  r->options.num_threads = (int32_t)threads;
  r->pairs = (size_t)pairs;
  r->repeat = (int)repeat;
  return random;
}

int main(int argc, char **argv) {
  struct request r = {0};
  struct shape shape = {.states = 256, .degree = 5, .labels = 10, .words = 1000};
  wf_compose_options_init(&r.options);
  r.options.order = 1;
  wf_fst *a, *b;
  if (read_arguments(argc, argv, &r, &shape)) {
    uint32_t states = (uint32_t)shape.states, degree = (uint32_t)shape.degree,
             labels = (uint32_t)shape.labels;
    uint64_t trial = 10 * (uint64_t)shape.trial;
    a = random_graph(states, degree, labels, 1001 + trial, true);
    b = random_graph(states, degree, labels, 1002 + trial, false);
  } else {
    struct dictionary d = read_dictionary(shape.dictionary);
    a = lexicon(&d, (uint32_t)shape.words);
    b = emissions(d.num_phones);
    free_dictionary(&d);
  }
  if (r.log) {
    a = in_log_semiring(a);
    b = in_log_semiring(b);
  }
  run(&r, a, b);
  wf_fst_free(a);
  wf_fst_free(b);
  return 0;
}
