/* test_token_marks.c - which operations make a token graph of a token graph: those whose result
 * reads the same labels. The label of the blank says that an fst is one (wf_fst_info). */
#include "fst/fst.h"
#include "more_ops.h"

enum { BLANK = 7, OTHER = 9, INPUT_EPSILON = 3, RMWEIGHT = 9, TO_STD = 13 /* map types */ };

static wf_error err;

/* An acceptor of tokens 1 and 2; `blank` 0: without the mark. */
static wf_fst *tokens_fst(int32_t blank) {
  static const char text[] = "0 1 1 1 0.5\n0 2 2 2 1\n1 2 2 2 0.25\n2 0.5\n";
  wf_fst *fst;
  assert_ok(wf_fst_compile_memory(text, sizeof text - 1, "tokens", NULL, NULL, NULL, &fst, &err));
  wf__fst_set_ctc_blank(fst, blank);
  return fst;
}

static int32_t take_blank(wf_fst *fst) {
  wf_fst_info info;
  wf_fst_info_init(&info);
  assert_ok(wf_fst_get_info(fst, &info, &err));
  assert_int_equal(info.ctc_blank, wf__fst_ctc_blank(fst));
  wf_fst_free(fst);
  return info.ctc_blank;
}

/* --- one input --------------------------------------------------------------------------- */

#define PLAIN(name) \
  static wf_status do_##name(const wf_fst *fst, wf_fst **out) { return wf_##name(fst, out, &err); }
#define WITH_OPTIONS(name)                                      \
  static wf_status do_##name(const wf_fst *fst, wf_fst **out) { \
    return wf_##name(fst, NULL, out, &err);                     \
  }
#define WITH_TYPE(function, name, field, value)                     \
  static wf_status do_##function(const wf_fst *fst, wf_fst **out) { \
    INIT(name, o);                                                  \
    o.field = value;                                                \
    return wf_##name(fst, &o, out, &err);                           \
  }

PLAIN(connect)
PLAIN(topsort)
PLAIN(reverse)
PLAIN(invert)
PLAIN(condense)
PLAIN(synchronize)
WITH_OPTIONS(determinize)
WITH_OPTIONS(minimize)
WITH_OPTIONS(rmepsilon)
WITH_OPTIONS(push)
WITH_OPTIONS(disambiguate)
WITH_OPTIONS(shortest_path)
WITH_OPTIONS(randgen)
WITH_TYPE(prune, prune, weight, 10)
WITH_TYPE(arcsort_input, arcsort, sort_type, 0)
WITH_TYPE(arcsort_output, arcsort, sort_type, 1)
WITH_TYPE(star, closure, closure_type, 0)
WITH_TYPE(plus, closure, closure_type, 1)
WITH_TYPE(project_input, project, project_type, 0)
WITH_TYPE(project_output, project, project_type, 1)
WITH_TYPE(epsnormalize_input, epsnormalize, eps_norm_type, 0)
WITH_TYPE(epsnormalize_output, epsnormalize, eps_norm_type, 1)
WITH_TYPE(two_paths, shortest_path, nshortest, 2)

static wf_status do_with_symbols(const wf_fst *fst, wf_fst **out) {
  return wf_fst_with_symbols(fst, NULL, NULL, out, &err);
}
static wf_status do_with_semiring(const wf_fst *fst, wf_fst **out) {
  return wf_fst_with_semiring(fst, WF_LOG, out, &err);
}
static wf_status do_with_weights(const wf_fst *fst, wf_fst **out) {
  static const float weights[3] = {1, 2, 3};
  return wf_fst_with_weights(fst, weights, 3, out, &err);
}
static wf_status do_reweight(const wf_fst *fst, wf_fst **out) {
  static const float potentials[3] = {0, 1, 2};
  return wf_reweight(fst, potentials, 3, NULL, out, &err);
}
static wf_status do_factor_weight(const wf_fst *fst, wf_fst **out) {
  return wf_factor_weight(fst, NULL, NULL, NULL, out, &err);
}
static wf_status do_add_self_loops(const wf_fst *fst, wf_fst **out) {
  static const int32_t label = 20;
  return wf_add_self_loops(fst, &label, &label, 1, out, &err);
}
static wf_status do_remove_disambig(const wf_fst *fst, wf_fst **out) {
  static const int32_t label = 20;
  return wf_remove_disambig(fst, &label, 1, out, &err);
}
static wf_status do_relabel_output(const wf_fst *fst, wf_fst **out) {
  static const int32_t pair[1][2] = {{1, BLANK}};
  return wf_relabel(fst, NULL, 0, pair, 1, out, &err);
}
static wf_status do_relabel_input(const wf_fst *fst, wf_fst **out) {
  static const int32_t pairs[2][2] = {{0, 3}, {BLANK, OTHER}};
  return wf_relabel(fst, pairs, 2, NULL, 0, out, &err);
}

static wf_status encode(const wf_fst *fst, bool decodes, wf_fst **out) {
  wf_encoder *encoder;
  wf_fst *encoded;
  assert_ok(wf_encoder_create(WF_TROPICAL, true, true, &encoder, &err));
  assert_ok(wf_encoder_encode(encoder, fst, &encoded, &err));
  const wf_status status = decodes ? wf_encoder_decode(encoder, encoded, out, &err)
                                   : (*out = wf_fst_ref(encoded), WF_OK);
  wf_fst_free(encoded);
  wf_encoder_free(encoder);
  return status;
}
static wf_status do_encode(const wf_fst *fst, wf_fst **out) { return encode(fst, false, out); }
static wf_status do_decode(const wf_fst *fst, wf_fst **out) { return encode(fst, true, out); }

static wf_status do_native_file(const wf_fst *fst, wf_fst **out) {
  const char *path = test_temp_path("marked.wfst");
  assert_ok(wf_fst_write(fst, path, WF_FORMAT_NATIVE, &err));
  return wf_fst_read(path, out, &err);
}
static wf_status do_batch(const wf_fst *fst, wf_fst **out) {
  wf_fst_batch *batch, *reversed;
  assert_ok(wf_fst_batch_create(&fst, 1, "cpu", &batch, &err));
  assert_ok(wf_fst_batch_reverse(batch, &reversed, &err));
  const wf_status status = wf_fst_batch_to_fst(reversed, 0, out, &err);
  wf_fst_batch_free(batch);
  wf_fst_batch_free(reversed);
  return status;
}

/* The empty result of a composition, in every format. */
static wf_status do_files_of_nothing(const wf_fst *fst, wf_fst **out) {
  const wf_fst_format formats[2] = {WF_FORMAT_OPENFST_VECTOR, WF_FORMAT_NATIVE};
  const char *path = test_temp_path("nothing");
  wf_fst *nothing, *empty;
  assert_ok(wf_fst_compile_memory("", 0, "nothing", NULL, NULL, NULL, &nothing, &err));
  assert_ok(wf_compose(fst, nothing, NULL, &empty, &err));
  assert_int_equal(wf_fst_get_view(empty).num_states, 0);
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_fst_write(empty, path, formats[i], &err));
    assert_ok(wf_fst_read(path, out, &err));
    assert_int_equal(wf_fst_get_view(*out).num_states, 0);
    if (i == 0) wf_fst_free(*out);
  }
  wf_fst_free(nothing);
  wf_fst_free(empty);
  return WF_OK;
}

static const struct {
  const char *name;
  wf_status (*run)(const wf_fst *fst, wf_fst **out);
  int32_t blank; /* of the result */
} unary[] = {
#define ROW(name, blank) \
  { #name, do_##name, blank }
    ROW(connect, BLANK),
    ROW(topsort, BLANK),
    ROW(reverse, BLANK),
    ROW(condense, BLANK),
    ROW(synchronize, BLANK),
    ROW(determinize, BLANK),
    ROW(minimize, BLANK),
    ROW(rmepsilon, BLANK),
    ROW(push, BLANK),
    ROW(disambiguate, BLANK),
    ROW(shortest_path, BLANK),
    ROW(two_paths, BLANK),
    ROW(randgen, BLANK),
    ROW(prune, BLANK),
    ROW(arcsort_input, BLANK),
    ROW(arcsort_output, BLANK),
    ROW(star, BLANK),
    ROW(plus, BLANK),
    ROW(project_input, BLANK),
    ROW(project_output, 0),
    ROW(invert, 0),
    ROW(epsnormalize_input, BLANK),
    ROW(epsnormalize_output, BLANK),
    ROW(with_symbols, BLANK),
    ROW(with_semiring, BLANK),
    ROW(with_weights, BLANK),
    ROW(reweight, BLANK),
    ROW(factor_weight, BLANK),
    ROW(add_self_loops, BLANK),
    ROW(remove_disambig, BLANK),
    ROW(relabel_output, BLANK),
    ROW(relabel_input, OTHER),
    ROW(encode, 0),
    ROW(decode, BLANK),
    ROW(native_file, BLANK),
    ROW(files_of_nothing, BLANK),
    ROW(batch, BLANK),
#undef ROW
};

static void test_one_input(void **state) {
  (void)state;
  for (int marked = 0; marked < 2; marked++) {
    wf_fst *fst = tokens_fst(marked ? BLANK : 0), *out;
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
      assert_ok(unary[i].run(fst, &out));
      const int32_t blank = take_blank(out);
      if (blank != (marked ? unary[i].blank : 0))
        fail_msg("%s, marked %d: the blank of the result is %d", unary[i].name, marked, blank);
    }
    wf_fst_free(fst);
  }
}

static void test_map(void **state) {
  (void)state;
  wf_fst *fst = tokens_fst(BLANK);
  for (int32_t type = 0; type <= TO_STD; type++) {
    const int32_t blank = take_blank(map(fst, type, 1));
    if (blank != (type == INPUT_EPSILON ? 0 : BLANK))
      fail_msg("map_type %d: the blank of the result is %d", type, blank);
  }
  wf_fst_free(fst);
}

/* --- several inputs ---------------------------------------------------------------------- */

static wf_status join(int op, const wf_fst *a, const wf_fst *b, wf_fst **out) {
  static const int32_t labels[2] = {30, 31};
  const wf_fst *const both[2] = {a, b};
  if (op == 0) return wf_union(both, 2, out, &err);
  if (op == 1) return wf_concat(both, 2, out, &err);
  return wf_replace(both, labels, 2, NULL, out, &err);
}

static void test_joins(void **state) {
  (void)state;
  static const struct {
    int32_t a, b, result; /* blanks; 0: no mark */
  } rows[] = {{0, 0, 0},          {BLANK, BLANK, BLANK},
              {BLANK, 0, BLANK},  {0, BLANK, BLANK},
              {BLANK, OTHER, -1},              /* two blanks */
              {1, 0, -1},         {0, 1, -1}}; /* the other fst reads it */
  for (int op = 0; op < 3; op++)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      wf_fst *a = tokens_fst(rows[i].a), *b = tokens_fst(rows[i].b), *out;
      const wf_status status = join(op, a, b, &out);
      if (rows[i].result < 0) {
        assert_int_equal(status, WF_ERR_ARGUMENT);
        assert_null(out);
        assert_non_null(strstr(err.message, "token graph"));
      } else {
        assert_ok(status);
        assert_int_equal(take_blank(out), rows[i].result);
      }
      wf_fst_free(a);
      wf_fst_free(b);
    }
}

/* A composition, and a difference, read what the first fst reads. */
static void test_first_of_two(void **state) {
  (void)state;
  wf_fst *marked = tokens_fst(BLANK), *plain = tokens_fst(0), *out;
  for (int first = 0; first < 2; first++) {
    const wf_fst *a = first ? marked : plain, *b = first ? plain : marked;
    const wf_fst *const three[3] = {a, b, b};
    wf_composer *composer;
    const int32_t want = first ? BLANK : 0;
    assert_ok(wf_compose(a, b, NULL, &out, &err));
    assert_int_equal(take_blank(out), want);
    assert_ok(wf_compose_n(three, 3, NULL, &out, &err));
    assert_int_equal(take_blank(out), want);
    assert_ok(wf_composer_create(&a, 1, &b, 1, 1, NULL, false, &composer, &err));
    assert_ok(wf_composer_run(composer, &err));
    assert_ok(wf_composer_to_fst(composer, 0, &out, NULL, &err));
    wf_composer_free(composer);
    assert_int_equal(take_blank(out), want);
    wf_fst *minus = map(b, RMWEIGHT, 0);
    assert_ok(wf_difference(a, minus, NULL, &out, &err));
    wf_fst_free(minus);
    assert_int_equal(take_blank(out), want);
  }
  wf_fst_free(marked);
  wf_fst_free(plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_input),
      cmocka_unit_test(test_map),
      cmocka_unit_test(test_joins),
      cmocka_unit_test(test_first_of_two),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
