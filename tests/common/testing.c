/* testing.c - see testing.h. */
#include "testing.h"

#include <pthread.h>

#include "base/platform.h"
#include "fst/ctc_states.h"

uint64_t test_next(test_rng *rng) {
  uint64_t z = rng->state += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}
uint32_t test_below(test_rng *rng, uint32_t n) {
  return (uint32_t)(((test_next(rng) >> 32) * n) >> 32);
}
float test_unit(test_rng *rng) { return (float)(test_next(rng) >> 40) * 0x1p-24f; }

static int32_t random_label(test_rng *rng, int32_t count, float epsilon_share) {
  if (test_unit(rng) < epsilon_share) return 0;
  return 1 + (int32_t)test_below(rng, (uint32_t)count);
}

static float random_cost(test_rng *rng, float max_weight) {
  return (float)test_below(rng, (uint32_t)(max_weight * 8) + 1) / 8;
}

wf_fst *test_random_fst(test_rng *rng, const test_fst_shape *shape) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(shape->semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, shape->num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t i = 0; i < shape->num_arcs; i++) {
    uint32_t from = test_below(rng, shape->num_states), to = test_below(rng, shape->num_states);
    if (shape->acyclic && from == to) continue;
    if (shape->acyclic && from > to) {
      uint32_t swap = from;
      from = to;
      to = swap;
    }
    wf_arc arc = {.nextstate = to,
                  .weight = random_cost(rng, shape->max_weight),
                  .ilabel = random_label(rng, shape->num_ilabels, shape->epsilon_share)};
    arc.olabel =
        shape->acceptor ? arc.ilabel : random_label(rng, shape->num_olabels, shape->epsilon_share);
    assert_ok(wf_builder_add_arc(builder, from, arc, &err));
  }
  for (uint32_t s = 0; s < shape->num_states; s++)
    if (test_unit(rng) < shape->final_share || s + 1 == shape->num_states)
      assert_ok(wf_builder_set_final(builder, s, random_cost(rng, shape->max_weight), &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

wf_fst *test_reweighted_fst(test_rng *rng, const wf_fst *fst, float floor, bool shift,
                            double *moved) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  float potential[64] = {0};
  assert_true(view.num_states <= 64);
  for (uint64_t s = 0; shift && s < view.num_states; s++)
    potential[s] = (float)test_below(rng, 80) / 8;
  *moved = view.start >= 0 ? -(double)potential[view.start] : 0;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  if (view.start >= 0) assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s] - potential[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      wf_arc arc = view.arcs[i];
      arc.weight += floor + potential[arc.nextstate] - potential[s];
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

bool test_is_trimmed(const wf_fst *fst) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint8_t *marks = calloc(view.num_states + 1, 1);
  enum { REACHED = 1, USEFUL = 2 };
  if (view.start >= 0) marks[view.start] = REACHED;
  for (bool more = true; more;) {
    more = false;
    for (uint64_t s = 0; s < view.num_states; s++) {
      uint8_t before = marks[s];
      if (view.final_cost[s] != INFINITY) marks[s] |= USEFUL;
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
        uint8_t *next = &marks[view.arcs[i].nextstate];
        if (marks[s] & REACHED && !(*next & REACHED)) *next |= REACHED, more = true;
        marks[s] |= *next & USEFUL;
      }
      more = more || marks[s] != before;
    }
  }
  bool trimmed = true;
  for (uint64_t s = 0; s < view.num_states; s++)
    trimmed = trimmed && marks[s] == (REACHED | USEFUL);
  free(marks);
  return trimmed;
}

wf_fst *test_fst_of(wf_semiring semiring, const char *text) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  uint32_t num_states = 0;
  bool first = true;
  assert_ok(wf_builder_create(semiring, &builder, &err));
  for (const char *line = text; *line != '\0';) {
    unsigned from, to;
    int il, ol, used = 0;
    float weight = 0;
    size_t size = strcspn(line, "\n;");
    char copy[256];
    assert_true(size < sizeof copy);
    memcpy(copy, line, size);
    copy[size] = '\0';
    line += size + (line[size] != '\0');
    int fields = sscanf(copy, "%u %u %d %d %f%n", &from, &to, &il, &ol, &weight, &used);
    if (fields <= 0) continue;
    uint32_t largest = from;
    if (fields >= 4 && to > from) largest = to;
    if (largest >= num_states) {
      assert_ok(wf_builder_add_states(builder, largest + 1 - num_states, NULL, &err));
      num_states = largest + 1;
    }
    if (first) assert_ok(wf_builder_set_start(builder, from, &err));
    first = false;
    if (fields >= 4) {
      assert_ok(wf_builder_add_arc(
          builder, from,
          (wf_arc){.nextstate = to, .weight = fields == 5 ? weight : 0, .ilabel = il, .olabel = ol},
          &err));
    } else {
      float cost = 0;
      sscanf(copy, "%u %f", &from, &cost);
      assert_ok(wf_builder_set_final(builder, from, cost, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

wf_fst *test_changed_fst(wf_fst *fst, test_rng *rng, test_change_fn *change) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint32_t s = 0; s < view.num_states; s++) {
    assert_ok(wf_builder_set_final(builder, s, view.final_cost[s], &err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
      wf_arc arc = view.arcs[i];
      if (change(rng, s, &arc)) assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  wf_fst_free(fst);
  return out;
}

/* --- enumeration ------------------------------------------------------------------------- */

struct walk {
  wf_fst_view view;
  int32_t labels[2][128];
  int sizes[2];
  int max_arcs;
  size_t limit, cap;
  test_relation out;
};

static void record(struct walk *walk, double cost) {
  char key[2048];
  size_t used = 0;
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < walk->sizes[side]; i++)
      used += (size_t)snprintf(key + used, sizeof key - used, "%d ", walk->labels[side][i]);
    if (side == 0) used += (size_t)snprintf(key + used, sizeof key - used, ": ");
  }
  assert_true(used < sizeof key);
  assert_true(walk->out.size < walk->limit);
  if (walk->out.size == walk->cap) {
    walk->cap = walk->cap != 0 ? walk->cap * 2 : 256;
    walk->out.pairs = realloc(walk->out.pairs, walk->cap * sizeof *walk->out.pairs);
    assert_non_null(walk->out.pairs);
  }
  walk->out.pairs[walk->out.size++] = (test_pair){strdup(key), cost};
}

static void step(struct walk *walk, uint64_t state, int depth, double cost) {
  const wf_fst_view *view = &walk->view;
  if (view->final_cost[state] != INFINITY) record(walk, cost + (double)view->final_cost[state]);
  if (depth == walk->max_arcs) return;
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    int sizes[2] = {walk->sizes[0], walk->sizes[1]};
    if (arc->ilabel != 0) walk->labels[0][walk->sizes[0]++] = arc->ilabel;
    if (arc->olabel != 0) walk->labels[1][walk->sizes[1]++] = arc->olabel;
    step(walk, arc->nextstate, depth + 1, cost + (double)arc->weight);
    walk->sizes[0] = sizes[0];
    walk->sizes[1] = sizes[1];
  }
}

static int compare_pairs(const void *a, const void *b) {
  const test_pair *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order != 0 ? order : (x->cost > y->cost) - (x->cost < y->cost);
}

double test_plus(wf_semiring semiring, double a, double b) {
  double low = a < b ? a : b, high = a < b ? b : a;
  if (semiring == WF_TROPICAL || high == INFINITY) return low;
  return low - log1p(exp(low - high));
}

test_relation test_enumerate(const wf_fst *fst, int max_arcs, size_t limit) {
  struct walk *walk = calloc(1, sizeof *walk);
  assert_non_null(walk);
  assert_true(max_arcs < 128);
  walk->view = wf_fst_get_view(fst);
  walk->max_arcs = max_arcs;
  walk->limit = limit;
  if (walk->view.start >= 0) step(walk, (uint64_t)walk->view.start, 0, 0);
  test_relation out = walk->out;
  free(walk);
  if (out.size != 0) qsort(out.pairs, out.size, sizeof *out.pairs, compare_pairs);
  size_t kept = 0;
  for (size_t i = 0; i < out.size; i++) {
    if (kept > 0 && strcmp(out.pairs[kept - 1].key, out.pairs[i].key) == 0) {
      out.pairs[kept - 1].cost =
          test_plus(wf_fst_get_view(fst).semiring, out.pairs[kept - 1].cost, out.pairs[i].cost);
      free(out.pairs[i].key);
    } else {
      out.pairs[kept++] = out.pairs[i];
    }
  }
  out.size = kept;
  return out;
}

void test_relation_free(test_relation *relation) {
  for (size_t i = 0; i < relation->size; i++) free(relation->pairs[i].key);
  free(relation->pairs);
  *relation = (test_relation){0};
}

void test_assert_same_relation(const test_relation *a, const test_relation *b, double delta) {
  for (size_t i = 0; i < a->size && i < b->size; i++) {
    if (strcmp(a->pairs[i].key, b->pairs[i].key) != 0)
      fail_msg("pair %zu: '%s' against '%s'", i, a->pairs[i].key, b->pairs[i].key);
    if (fabs(a->pairs[i].cost - b->pairs[i].cost) > delta)
      fail_msg("'%s': cost %.9g against %.9g", a->pairs[i].key, a->pairs[i].cost, b->pairs[i].cost);
  }
  if (a->size != b->size)
    fail_msg("%zu pairs against %zu; first beyond: '%s'", a->size, b->size,
             a->size > b->size ? a->pairs[b->size].key : b->pairs[a->size].key);
}

/* --- sums over paths --------------------------------------------------------------------- */

void test_assert_close(double a, double b, double delta) {
  if (a == b) return;
  if (!(fabs(a - b) <= delta)) fail_msg("%.9g is not %.9g", a, b);
}

double *test_sum_by_length(const wf_fst_view *view, bool reverse, int rounds) {
  uint64_t n = view->num_states;
  double *sum = malloc(n * sizeof *sum), *now = malloc(n * sizeof *now),
         *next = malloc(n * sizeof *next);
  for (uint64_t s = 0; s < n; s++)
    sum[s] = now[s] = reverse                     ? (double)view->final_cost[s]
                      : (int64_t)s == view->start ? 0
                                                  : INFINITY;
  for (int round = 0; round < rounds; round++) {
    for (uint64_t s = 0; s < n; s++) next[s] = INFINITY;
    for (uint64_t s = 0; s < n; s++) {
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        uint64_t from = reverse ? view->arcs[i].nextstate : s,
                 to = reverse ? s : view->arcs[i].nextstate;
        next[to] = test_plus(view->semiring, next[to], now[from] + (double)view->arcs[i].weight);
      }
    }
    for (uint64_t s = 0; s < n; s++) {
      sum[s] = test_plus(view->semiring, sum[s], next[s]);
      now[s] = next[s];
    }
  }
  free(now);
  free(next);
  return sum;
}

void test_assert_relation(const wf_fst *fst, const test_relation *want, int max_arcs,
                          double delta) {
  test_relation got = test_enumerate(fst, max_arcs, 2000000);
  test_assert_same_relation(&got, want, delta);
  test_relation_free(&got);
}

/* Cost of one string of label pairs (or of input labels), summed over all its paths. Between
 * labels, a path has up to `rounds` epsilon arcs in a row. */
static double string_cost(const wf_fst_view *view, const int32_t *ilabels, const int32_t *olabels,
                          int size, bool input_only, int rounds) {
  uint64_t n = view->num_states;
  double *at = malloc((size_t)(size + 1) * n * sizeof *at), total = INFINITY;
  double *sum = malloc(n * sizeof *sum), *now = malloc(n * sizeof *now),
         *next = malloc(n * sizeof *next);
  for (uint64_t s = 0; s < n; s++) at[s] = (int64_t)s == view->start ? 0 : INFINITY;
  for (int k = 0; k <= size; k++) {
    for (uint64_t s = 0; s < n; s++) sum[s] = now[s] = at[(uint64_t)k * n + s];
    for (int round = 0; round < rounds; round++) {
      for (uint64_t s = 0; s < n; s++) next[s] = INFINITY;
      for (uint64_t s = 0; s < n; s++)
        for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
          if (view->arcs[i].ilabel == 0 && (input_only || view->arcs[i].olabel == 0))
            next[view->arcs[i].nextstate] = test_plus(view->semiring, next[view->arcs[i].nextstate],
                                                      now[s] + (double)view->arcs[i].weight);
      for (uint64_t s = 0; s < n; s++)
        sum[s] = test_plus(view->semiring, sum[s], next[s]), now[s] = next[s];
    }
    if (k == size) break;
    for (uint64_t s = 0; s < n; s++) at[(uint64_t)(k + 1) * n + s] = INFINITY;
    for (uint64_t s = 0; s < n; s++) {
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        const wf_arc *arc = &view->arcs[i];
        double *to = &at[(uint64_t)(k + 1) * n + arc->nextstate];
        if (arc->ilabel == ilabels[k] && (input_only || arc->olabel == olabels[k]))
          *to = test_plus(view->semiring, *to, sum[s] + (double)arc->weight);
      }
    }
  }
  for (uint64_t s = 0; s < n; s++)
    total = test_plus(view->semiring, total, sum[s] + (double)view->final_cost[s]);
  free(at);
  free(sum);
  free(now);
  free(next);
  return total;
}

void test_assert_same_strings(const wf_fst *a, const wf_fst *b, bool input_only, int rounds,
                              double delta) {
  static const int32_t pairs[5][2] = {{1, 0}, {2, 1}, {1, 1}, {2, 0}, {0, 1}};
  wf_fst_view x = wf_fst_get_view(a), y = wf_fst_get_view(b);
  int base = input_only ? 2 : 5;
  for (int size = 0; size <= 3; size++) {
    int count = 1;
    for (int k = 0; k < size; k++) count *= base;
    for (int code = 0; code < count; code++) {
      int32_t il[3], ol[3];
      for (int k = 0, rest = code; k < size; k++, rest /= base)
        il[k] = pairs[rest % base][0], ol[k] = pairs[rest % base][1];
      test_assert_close(string_cost(&x, il, ol, size, input_only, rounds),
                        string_cost(&y, il, ol, size, input_only, rounds), delta);
    }
  }
}

/* --- best path --------------------------------------------------------------------------- */

static void close_epsilons(const wf_fst_view *view, double *cost) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t s = 0; s < view->num_states; s++)
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        const wf_arc *arc = &view->arcs[i];
        if (arc->ilabel != 0 || cost[s] + (double)arc->weight >= cost[arc->nextstate] - 1e-9)
          continue;
        cost[arc->nextstate] = cost[s] + (double)arc->weight;
        changed = true;
      }
  }
}

double test_best_cost(const wf_fst *graph, const int32_t *columns, const int *x, int frames) {
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(wf__ctc_spell_out(graph, &fst, &err));
  wf_fst_view view = wf_fst_get_view(fst);
  double *cost = malloc((view.num_states + 1) * sizeof *cost),
         *next = malloc((view.num_states + 1) * sizeof *next), best = INFINITY;
  for (uint64_t s = 0; s < view.num_states; s++) cost[s] = (int64_t)s == view.start ? 0 : INFINITY;
  close_epsilons(&view, cost);
  for (int t = 0; t < frames; t++) {
    for (uint64_t s = 0; s < view.num_states; s++) next[s] = INFINITY;
    for (uint64_t s = 0; s < view.num_states; s++)
      for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++) {
        const wf_arc *arc = &view.arcs[i];
        if (arc->ilabel == 0 || (columns != NULL ? columns[arc->ilabel] : arc->ilabel) != x[t])
          continue;
        next[arc->nextstate] = fmin(next[arc->nextstate], cost[s] + (double)arc->weight);
      }
    close_epsilons(&view, next);
    double *swap = cost;
    cost = next;
    next = swap;
  }
  for (uint64_t s = 0; s < view.num_states; s++)
    best = fmin(best, cost[s] + (double)view.final_cost[s]);
  free(cost);
  free(next);
  wf_fst_free(fst);
  return best;
}

/* --- files ------------------------------------------------------------------------------- */

static char g_folder[256];
static pthread_mutex_t g_folder_mutex = PTHREAD_MUTEX_INITIALIZER;
static int g_num_threads;               /* threads that have requested paths */
static _Thread_local int g_thread = -1; /* the number of this thread */

/* On Windows the folder is left where it is, among temporary files: in a run with Wine, files of
 * the current folder were deleted too. */
static void remove_folder(void) {
#if !defined(_WIN32)
  char command[320];
  snprintf(command, sizeof command, "rm -rf '%s'", g_folder);
  if (system(command) != 0) fprintf(stderr, "could not remove %s\n", g_folder);
#endif
}

/* Creates the folder once, and numbers the thread. */
static void enter_folder(void) {
  pthread_mutex_lock(&g_folder_mutex);
  if (g_thread < 0) g_thread = g_num_threads++;
  if (g_folder[0] == '\0') {
    char *base = wf__path_temporary_folder();
    for (int i = 0; i < 100; i++) {
      snprintf(g_folder, sizeof g_folder, "%s/warpfst-test-%lld-%d", base,
               (long long)wf__process_id(), i);
      if (wf__path_make_folder(g_folder) == 0) break;
    }
    free(base);
    assert_int_equal(wf__path_kind(g_folder), WF__FILE_FOLDER);
    atexit(remove_folder);
  }
  pthread_mutex_unlock(&g_folder_mutex);
}

const char *test_temp_path(const char *name) {
  static _Thread_local char paths[8][512];
  static _Thread_local unsigned turn;
  enter_folder();
  char *path = paths[turn++ % 8];
  if (g_thread == 0)
    snprintf(path, sizeof paths[0], "%s/%s", g_folder, name);
  else
    snprintf(path, sizeof paths[0], "%s/%d-%s", g_folder, g_thread, name);
  return path;
}

const char *test_write_file(const char *name, const void *data, size_t size) {
  const char *path = test_temp_path(name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return path;
}

char *test_read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("cannot open %s", path);
  char *data = NULL;
  size_t used = 0, cap = 0, got;
  do {
    if (cap - used < 4096) {
      cap = cap * 2 + 8192;
      data = realloc(data, cap);
      assert_non_null(data);
    }
    got = fread(data + used, 1, cap - used - 1, file);
    used += got;
  } while (got > 0);
  fclose(file);
  data[used] = '\0';
  if (size != NULL) *size = used;
  return data;
}

void test_shell(const char *format, ...) {
#if defined(_WIN32)
  print_message("no POSIX shell for: %s\n", format);
  skip();
#endif
  char command[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  int code = system(command);
  if (code != 0) fail_msg("exit %d: %s", code, command);
}

const char *test_save_fst(const wf_fst *fst, const char *name) {
  wf_error err = {0};
  const char *path = test_temp_path(name);
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_OPENFST_VECTOR, &err));
  return path;
}

void test_assert_equivalent_to_file(const wf_fst *fst, const char *path) {
  wf_error err = {0};
  wf_fst *other;
  wf_randequivalent_options o;
  bool equal;
  wf_randequivalent_options_init(&o);
  o.npath = 100;
  o.delta = 0.01f;
  assert_ok(wf_fst_read(path, &other, &err));
  assert_ok(wf_randequivalent(fst, other, &o, &equal, &err));
  if (!equal) fail_msg("%s: %s", path, err.message);
  wf_fst_free(other);
}

uint64_t test_states_of(const char *path) {
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(wf_fst_read(path, &fst, &err));
  uint64_t n = wf_fst_get_view(fst).num_states;
  wf_fst_free(fst);
  return n;
}

uint64_t test_seeds(uint64_t usual) {
  const char *few = getenv("WARPFST_TEST_SEEDS");
#ifdef __SANITIZE_ADDRESS__ /* slow, and it looks for other errors than wrong results */
  usual = (usual + 7) / 8;
#endif
  return few != NULL ? strtoull(few, NULL, 10) : usual;
}

bool test_many(uint64_t count, uint64_t least, uint64_t usual) {
  return getenv("WARPFST_TEST_SEEDS") != NULL || count * usual > least * test_seeds(usual);
}

void test_filter(int argc, char **argv) {
  if (argc > 1)
    cmocka_set_test_filter(
        strcmp(argv[1], "test_small") == 0 || strcmp(argv[1], "test_kernels") == 0 ? "test_small*"
                                                                                   : argv[1]);
}

wf_status test_tokens_graph(const wf_symbols *tokens, const char *blank, int32_t topology,
                            wf_fst **out, wf_error *err) {
  wf_graph_inputs inputs;
  wf_graph_options options;
  wf_lexicon_options names;
  wf_graph_result made;
  wf_graph_inputs_init(&inputs);
  wf_graph_options_init(&options);
  wf_lexicon_options_init(&names);
  names.blank = blank;
  inputs.tokens = tokens;
  inputs.lexicon_options = &names;
  options.kind = WF_GRAPH_TOKENS;
  options.topology = topology;
  const wf_status status = wf_graph_build(&inputs, &options, &made, err);
  *out = status == WF_OK ? wf_fst_ref(made.graph) : NULL;
  wf_graph_result_clear(&made);
  return status;
}
