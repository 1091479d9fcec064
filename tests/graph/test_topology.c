/* test_topology.c - CTC topologies compared with a direct definition of what each one accepts.
 *
 * The definition cuts a frame string x into blocks, in every possible way (a bit for each gap
 * between frames):
 *   correct  one way: cut where the frame changes; a block of blanks writes nothing, another block
 *            its token; tokens of neighbouring blocks differ
 *   compact  a block is one blank (nothing) or a run of one token (the token)
 *   minimal  one way: every frame is a block
 *   eesen    a block is blank* a+ blank* (a); no frames, no blocks
 * Each valid way is one path of cost 0, so the number of ways to one output is the path's
 * multiplicity in the log semiring. */
#include "fst/ctc_states.h"
#include "testing.h"

enum { MAX_FRAMES = 6, MAX_TOKENS = 4, MAX_OUTPUTS = 64 };
enum { CORRECT, COMPACT, MINIMAL, EESEN, TRANSDUCER, NUM_TYPES, AUTO = NUM_TYPES };
static const char *const type_names[] = {"correct", "compact", "minimal", "eesen", "transducer"};

/* Output strings as decimal digits, and the number of paths to each. */
struct outputs {
  struct {
    uint64_t digits;
    int ways;
  } items[MAX_OUTPUTS];
  int count;
};

static void add_output(struct outputs *outputs, uint64_t digits) {
  for (int i = 0; i < outputs->count; i++) {
    if (outputs->items[i].digits != digits) continue;
    outputs->items[i].ways++;
    return;
  }
  assert_true(outputs->count < MAX_OUTPUTS);
  outputs->items[outputs->count].digits = digits;
  outputs->items[outputs->count++].ways = 1;
}

static int ways_to(const struct outputs *outputs, uint64_t digits) {
  for (int i = 0; i < outputs->count; i++)
    if (outputs->items[i].digits == digits) return outputs->items[i].ways;
  return 0;
}

/* --- the definition ---------------------------------------------------------------------- */

static bool uniform(const int *x, int begin, int end) {
  for (int i = begin + 1; i < end; i++)
    if (x[i] != x[begin]) return false;
  return true;
}

/* Does the block fit the topology? *token receives what it writes, 0 for nothing. */
static bool block_fits(int type, const int *x, int frames, int begin, int end, int blank,
                       int *token) {
  *token = x[begin] == blank ? 0 : x[begin];
  if (type == MINIMAL || type == TRANSDUCER) return end - begin == 1;
  if (type == COMPACT) return uniform(x, begin, end) && (x[begin] != blank || end - begin == 1);
  if (type == CORRECT) return uniform(x, begin, end) && (end == frames || x[end] != x[begin]);
  while (begin < end && x[begin] == blank) begin++;
  while (end > begin && x[end - 1] == blank) end--;
  *token = begin < end ? x[begin] : 0;
  return begin < end && uniform(x, begin, end);
}

static void define(int type, const int *x, int frames, int blank, struct outputs *out) {
  out->count = 0;
  if (frames == 0) add_output(out, 0);
  for (int cuts = 0; frames > 0 && cuts < 1 << (frames - 1); cuts++) {
    uint64_t digits = 0;
    bool fits = true;
    for (int begin = 0, end; begin < frames && fits; begin = end) {
      int token;
      for (end = begin + 1; end < frames && (cuts >> (end - 1) & 1) == 0;) end++;
      fits = block_fits(type, x, frames, begin, end, blank, &token);
      if (token != 0) digits = digits * 10 + (uint64_t)token;
    }
    if (fits) add_output(out, digits);
  }
}

/* --- what the transducer accepts --------------------------------------------------------- */

struct walk {
  wf_fst_view view;
  const int *x;
  int frames;
  struct outputs *out;
};

static void walk(struct walk *w, uint64_t state, int at, uint64_t digits) {
  const wf_fst_view *view = &w->view;
  if (at == w->frames && view->final_cost[state] != INFINITY) {
    assert_true(view->final_cost[state] == 0);
    add_output(w->out, digits);
  }
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    if (arc->ilabel != 0 && (at == w->frames || arc->ilabel != w->x[at])) continue;
    assert_true(arc->weight == 0);
    walk(w, arc->nextstate, at + (arc->ilabel != 0),
         arc->olabel != 0 ? digits * 10 + (uint64_t)arc->olabel : digits);
  }
}

static void assert_same_outputs(int type, const int *x, int frames, const struct outputs *want,
                                const struct outputs *got) {
  bool same = want->count == got->count;
  for (int i = 0; i < want->count && same; i++)
    same = ways_to(got, want->items[i].digits) == want->items[i].ways;
  if (same) return;
  char text[MAX_FRAMES + 1] = "";
  for (int i = 0; i < frames; i++) text[i] = (char)('0' + x[i]);
  fail_msg("%s, frames '%s': %d outputs wanted, %d found, or in other numbers of ways",
           type_names[type], text, want->count, got->count);
}

static wf_fst *make(int32_t num_tokens, int32_t blank, int type, int32_t num_disambig, bool keep) {
  wf_error err = {0};
  wf_topology_options options;
  wf_fst *fst;
  wf_topology_options_init(&options);
  options.type = type;
  options.num_disambig = num_disambig;
  options.keep_disambig = keep;
  assert_ok(wf_ctc_topology(num_tokens, blank, &options, &fst, &err));
  return fst;
}

static void test_all_frame_strings(void **state) {
  for (int type = 0; type < NUM_TYPES; type++) {
    for (int num_tokens = 1; num_tokens <= MAX_TOKENS; num_tokens++) {
      for (int blank = 0; blank < num_tokens; blank++) {
        wf_fst *fst = make(num_tokens, blank, type, 0, false);
        int strings = 0;
        for (int frames = 0; frames <= MAX_FRAMES; frames++) {
          int total = 1, x[MAX_FRAMES] = {0};
          for (int i = 0; i < frames; i++) total *= num_tokens;
          for (int n = 0; n < total; n++, strings++) {
            struct outputs want, got = {.count = 0};
            for (int i = 0, rest = n; i < frames; i++, rest /= num_tokens)
              x[i] = 1 + rest % num_tokens;
            define(type, x, frames, blank + 1, &want);
            struct walk w = {wf_fst_get_view(fst), x, frames, &got};
            walk(&w, (uint64_t)w.view.start, 0, 0);
            assert_same_outputs(type, x, frames, &want, &got);
          }
        }
        if (num_tokens == 4) assert_int_equal(strings, 1 + 4 + 16 + 64 + 256 + 1024 + 4096);
        wf_fst_free(fst);
      }
    }
  }
}

/* The classic examples, by hand: blank is 1, tokens are 2 and 3. */
static void test_by_hand(void **state) {
  static const struct {
    int type, frames, x[MAX_FRAMES];
    uint64_t output;
    int ways;
  } cases[] = {
      {CORRECT, 3, {2, 2, 3}, 23, 1},     {CORRECT, 3, {2, 2, 3}, 223, 0},
      {CORRECT, 3, {2, 1, 2}, 22, 1},     {CORRECT, 2, {1, 1}, 0, 1},
      {COMPACT, 3, {2, 2, 2}, 2, 1},      {COMPACT, 3, {2, 2, 2}, 22, 2},
      {COMPACT, 3, {2, 2, 2}, 222, 1},    {COMPACT, 3, {2, 1, 2}, 2, 0},
      {MINIMAL, 4, {2, 2, 1, 3}, 223, 1}, {MINIMAL, 4, {2, 2, 1, 3}, 23, 0},
      {EESEN, 3, {2, 1, 3}, 23, 2},       {EESEN, 4, {2, 1, 1, 3}, 23, 3},
      {EESEN, 2, {1, 1}, 0, 0},           {EESEN, 0, {0}, 0, 1},
      {EESEN, 2, {2, 2}, 22, 1},          {EESEN, 3, {1, 2, 1}, 2, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct outputs got = {.count = 0};
    wf_fst *fst = make(3, 0, cases[i].type, 0, false);
    struct walk w = {wf_fst_get_view(fst), cases[i].x, cases[i].frames, &got};
    walk(&w, (uint64_t)w.view.start, 0, 0);
    if (ways_to(&got, cases[i].output) != cases[i].ways)
      fail_msg("case %zu: %d ways, not %d", i, ways_to(&got, cases[i].output), cases[i].ways);
    wf_fst_free(fst);
  }
}

static void test_numbers_of_states_and_arcs(void **state) {
  for (uint64_t v = 2; v <= 40; v += 19) {
    static const struct {
      int type;
      uint64_t states[2], arcs[3]; /* a + b v (+ c v^2), where v is num_tokens */
    } sizes[] = {{CORRECT, {0, 1}, {0, 0, 1}},
                 {COMPACT, {0, 1}, {0, 3, 0}},
                 {MINIMAL, {1, 0}, {0, 1, 0}},
                 {EESEN, {2, 1}, {1, 3, 0}}};
    for (size_t i = 0; i < 4; i++) {
      wf_fst *fst = make((int32_t)v, 0, sizes[i].type, 0, false);
      wf_fst_view view = wf_fst_get_view(fst);
      uint64_t arcs = sizes[i].arcs[0] + sizes[i].arcs[1] * v + sizes[i].arcs[2] * v * v -
                      (sizes[i].type == COMPACT ? 2 : 0);
      assert_int_equal(view.num_states, sizes[i].states[0] + sizes[i].states[1] * v);
      assert_int_equal(view.num_arcs, arcs);
      wf_fst_free(fst);
    }
  }
}

/* The graph of tokens alone: by default what `correct` accepts, whatever the blocks. */
static void test_graph_of_tokens(void **state) {
  enum { MOST = 7, FRAMES = 4 };
  for (int num_tokens = 2; num_tokens <= MOST; num_tokens++) {
    for (int blank = 0; blank < num_tokens; blank++) {
      static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
      wf_error err = {0};
      wf_symbols *tokens;
      wf_fst *fst;
      assert_ok(wf_symbols_create("tokens", &tokens, &err));
      for (int i = 0; i < num_tokens; i++)
        assert_ok(wf_symbols_add(tokens, i == blank ? "_" : names[i], i, NULL, &err));
      wf_fst *graph;
      assert_ok(test_tokens_graph(tokens, "_", WF_TOPOLOGY_AUTO, &graph, &err));
      assert_ok(wf__ctc_spell_out(graph, &fst, &err));
      wf_fst_free(graph);
      for (int frames = 0; frames <= FRAMES; frames++)
        for (int n = 0, total = (int)pow(num_tokens, frames); n < total; n++) {
          struct outputs want, got = {.count = 0};
          int x[MAX_FRAMES] = {0};
          for (int i = 0, rest = n; i < frames; i++, rest /= num_tokens)
            x[i] = 1 + rest % num_tokens;
          define(CORRECT, x, frames, blank + 1, &want);
          struct walk w = {wf_fst_get_view(fst), x, frames, &got};
          walk(&w, (uint64_t)w.view.start, 0, 0);
          assert_same_outputs(CORRECT, x, frames, &want, &got);
        }
      wf_fst_free(fst);
      wf_symbols_free(tokens);
    }
  }
}

/* --- disambiguation symbols -------------------------------------------------------------- */

/* Does the transducer accept frames x with output z? Few states are reached, and epsilon arcs
 * without output form no cycle. */
static bool accepts(const wf_fst_view *view, uint64_t state, const int *x, int frames, const int *z,
                    int size) {
  if (frames == 0 && size == 0 && view->final_cost[state] != INFINITY) return true;
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    int in = arc->ilabel != 0, out = arc->olabel != 0;
    if ((in && (frames == 0 || arc->ilabel != *x)) || (out && (size == 0 || arc->olabel != *z)))
      continue;
    if (accepts(view, arc->nextstate, x + in, frames - in, z + out, size - out)) return true;
  }
  return false;
}

/* A disambiguation symbol may stand anywhere: z is accepted if z without disambiguation symbols is.
 */
static void test_disambig_passes_anywhere(void **state) {
  enum { V = 3, K = 2, LABELS = V - 1 + K, BLANK = 1, MAX_X = 4, MAX_Z = 4 };
  static const int labels[LABELS] = {1, 3, 4, 5}; /* tokens 1 and 3, blank 2, #0 = 4, #1 = 5 */
  int num_accepted = 0;
  for (int type = 0; type < NUM_TYPES; type++) {
    wf_fst *fst = make(V, BLANK, type, K, false);
    wf_fst_view view = wf_fst_get_view(fst);
    for (int frames = 0; frames <= MAX_X; frames++) {
      for (int n = 0, total = (int)pow(V, frames); n < total; n++) {
        int x[MAX_X] = {0};
        struct outputs want;
        for (int i = 0, rest = n; i < frames; i++, rest /= V) x[i] = 1 + rest % V;
        define(type, x, frames, BLANK + 1, &want);
        for (int size = 0; size <= MAX_Z; size++) {
          for (int m = 0, all = (int)pow(LABELS, size); m < all; m++) {
            int z[MAX_Z] = {0};
            uint64_t digits = 0;
            for (int i = 0, rest = m; i < size; i++, rest /= LABELS) z[i] = labels[rest % LABELS];
            for (int i = 0; i < size; i++)
              if (z[i] <= V) digits = digits * 10 + (uint64_t)z[i];
            bool expected = ways_to(&want, digits) > 0,
                 found = accepts(&view, (uint64_t)view.start, x, frames, z, size);
            num_accepted += found;
            if (expected != found)
              fail_msg("%s: x number %d of %d frames, z number %d of %d: %s", type_names[type], n,
                       frames, m, size, found ? "accepted" : "refused");
          }
        }
      }
    }
    wf_fst_free(fst);
  }
  assert_true(num_accepted > 1000);
}

static void test_keep_disambig(void **state) {
  for (int type = 0; type < NUM_TYPES; type++) {
    wf_fst *dropped = make(5, 0, type, 3, false), *kept = make(5, 0, type, 3, true);
    wf_fst_view a = wf_fst_get_view(dropped), b = wf_fst_get_view(kept);
    uint64_t num_kept = 0;
    assert_int_equal(a.num_arcs, b.num_arcs);
    for (uint64_t i = 0; i < a.num_arcs; i++) {
      bool disambig = b.arcs[i].ilabel > 5;
      num_kept += disambig;
      if (disambig) assert_int_equal(b.arcs[i].ilabel, b.arcs[i].olabel);
      assert_int_equal(a.arcs[i].ilabel, disambig ? 0 : b.arcs[i].ilabel);
      assert_int_equal(a.arcs[i].olabel, b.arcs[i].olabel);
      assert_int_equal(a.arcs[i].nextstate, b.arcs[i].nextstate);
    }
    assert_int_equal(num_kept, type == CORRECT ? 15 : 3);
    wf_fst_free(dropped);
    wf_fst_free(kept);
  }
}

static void test_errors(void **state) {
  wf_error err;
  wf_fst *fst;
  wf_topology_options options;
  wf_topology_options_init(&options);
  assert_int_equal(wf_ctc_topology(0, 0, &options, &fst, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_ctc_topology(3, 3, &options, &fst, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_ctc_topology(3, -1, &options, &fst, &err), WF_ERR_ARGUMENT);
  options.type = CORRECT;
  assert_int_equal(wf_ctc_topology(100000, 0, &options, &fst, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "compact"));
  options.type = AUTO + 1;
  assert_int_equal(wf_ctc_topology(3, 0, &options, &fst, &err), WF_ERR_ARGUMENT);
  assert_null(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_frame_strings),
      cmocka_unit_test(test_by_hand),
      cmocka_unit_test(test_numbers_of_states_and_arcs),
      cmocka_unit_test(test_graph_of_tokens),
      cmocka_unit_test(test_disambig_passes_anywhere),
      cmocka_unit_test(test_keep_disambig),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
