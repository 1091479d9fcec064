/* fst_compile.c - AT&T text to an fst, as OpenFst's fstcompile reads it.
 *
 *   source nextstate ilabel olabel [weight]      an arc; acceptors: source nextstate label [weight]
 *   state [weight]                               a final state
 *
 * Fields are separated by blanks and tabs. Empty lines are skipped. A missing weight is One. The
 * source of the first line is the start state. States are numbered in order of appearance, unless
 * the numbers in the text are kept; then the numbers that it skips become states, too. */
#include "base/config.h"
#include "base/map64.h"
#include "base/option_tables.h"
#include "fst/fst_formats.h"
#include "fst/symbols.h"

enum { MAX_FIELDS = 5 };

struct compiler {
  const wf_symbols *isymbols, *osymbols;
  wf_text_options options;
  wf__lines lines;
  wf_builder *builder;
  wf__map64 numbers; /* state number in the text -> state */
  uint64_t num_states;
  /* with kept numbers: the largest count that is plausible for a text of this size */
  uint64_t state_limit;
};

static wf_status add_states_up_to(struct compiler *c, uint64_t count, wf_error *err) {
  if (count <= c->num_states) return WF_OK;
  WF__TRY(wf_builder_add_states(c->builder, count - c->num_states, NULL, err));
  c->num_states = count;
  return WF_OK;
}

static wf_status parse_state(struct compiler *c, wf__span text, uint32_t *out, wf_error *err) {
  int64_t number;
  if (!wf__parse_i64(text, &number) || number < 0 || number > INT32_MAX)
    return wf__lines_fail(&c->lines, err, WF_ERR_FORMAT,
                          "'%.*s' is not a state number (0 .. 2^31-1)", WF__SPAN_ARG(text));
  if (c->options.keep_state_numbering) {
    if ((uint64_t)number >= c->state_limit)
      return wf__lines_fail(&c->lines, err, WF_ERR_LIMIT,
                            "state number %lld is too large for a text of this size; "
                            "compile without keep_state_numbering",
                            (long long)number);
    *out = (uint32_t)number;
  } else {
    WF__TRY(wf__map64_insert(&c->numbers, (uint64_t)number, (uint32_t)c->num_states, out, NULL,
                             "state numbers", err));
  }
  return add_states_up_to(c, (uint64_t)*out + 1, err);
}

static wf_status parse_label(struct compiler *c, wf__span text, const wf_symbols *symbols,
                             const char *side, int32_t *out, wf_error *err) {
  int64_t label;
  if (symbols != NULL) {
    label = wf__symbols_find_bytes(symbols, text.data, text.size);
    if (label < 0)
      return wf__lines_fail(&c->lines, err, WF_ERR_FORMAT,
                            "%s '%.*s' is not in the symbol table %s", side, WF__SPAN_ARG(text),
                            wf__symbols_shown(symbols));
  } else if (!wf__parse_i64(text, &label) || label < 0 || label > WF__MAX_LABEL) {
    return wf__lines_fail(
        &c->lines, err, WF_ERR_FORMAT,
        "%s '%.*s' is not a label number (0 .. 2^31-1), and there is no symbol table for it", side,
        WF__SPAN_ARG(text));
  }
  *out = (int32_t)label;
  return WF_OK;
}

static wf_status parse_weight(struct compiler *c, wf__span text, float *out, wf_error *err) {
  double weight;
  if (!wf__parse_f64(text, &weight))
    return wf__lines_fail(&c->lines, err, WF_ERR_FORMAT, "'%.*s' is not a weight",
                          WF__SPAN_ARG(text));
  *out = (float)weight;
  if (!(*out > -INFINITY))
    return wf__lines_fail(&c->lines, err, WF_ERR_FORMAT, "the weight '%.*s' is NaN or -infinity",
                          WF__SPAN_ARG(text));
  return WF_OK;
}

static wf_status compile_arc(struct compiler *c, uint32_t source, const wf__span *fields,
                             int num_fields, wf_error *err) {
  const int labels_end = c->options.acceptor ? 3 : 4;
  wf_arc arc = {0};
  WF__TRY(parse_state(c, fields[1], &arc.nextstate, err));
  WF__TRY(parse_label(c, fields[2], c->isymbols, "input label", &arc.ilabel, err));
  arc.olabel = arc.ilabel;
  if (!c->options.acceptor)
    WF__TRY(parse_label(c, fields[3], c->osymbols, "output label", &arc.olabel, err));
  if (num_fields > labels_end) WF__TRY(parse_weight(c, fields[labels_end], &arc.weight, err));
  return wf_builder_add_arc(c->builder, source, arc, err);
}

static wf_status compile_line(struct compiler *c, wf__span line, bool *started, wf_error *err) {
  wf__span fields[MAX_FIELDS], extra;
  int num_fields = 0, most = c->options.acceptor ? 4 : 5;
  while (num_fields < most && wf__next_field(&line, &fields[num_fields])) num_fields++;
  if (num_fields == 0) return WF_OK;
  bool arc = num_fields >= (c->options.acceptor ? 3 : 4);
  if (wf__next_field(&line, &extra) || (!arc && num_fields > 2))
    return wf__lines_fail(
        &c->lines, err, WF_ERR_FORMAT,
        "expected 'source nextstate %s [weight]' or 'state [weight]', found %s%d fields",
        c->options.acceptor ? "label" : "ilabel olabel", num_fields == most ? "more than " : "",
        num_fields);
  uint32_t state;
  WF__TRY(parse_state(c, fields[0], &state, err));
  if (!*started) WF__TRY(wf_builder_set_start(c->builder, state, err));
  *started = true;
  if (arc) return compile_arc(c, state, fields, num_fields, err);
  float weight = 0;
  if (num_fields == 2) WF__TRY(parse_weight(c, fields[1], &weight, err));
  return wf_builder_set_final(c->builder, state, weight, err);
}

wf_status wf__fst_compile_input(const wf__input *input, const wf_symbols *isymbols,
                                const wf_symbols *osymbols, const wf_text_options *options,
                                wf_fst **out, wf_error *err) {
  *out = NULL;
  struct compiler c = {.isymbols = isymbols, .osymbols = osymbols, .lines = wf__lines_of(input)};
  WF__TRY(wf__options_take(wf__text_table(), options, &c.options, err));
  c.state_limit = ((uint64_t)1 << 20) + 16 * (uint64_t)input->size;
  bool started = false;
  wf_status status = wf_builder_create(
      c.options.arc_type == WF_ARC_TYPE_STANDARD ? WF_TROPICAL : WF_LOG, &c.builder, err);
  for (wf__span line; status == WF_OK && wf__next_line(&c.lines, &line);)
    status = compile_line(&c, line, &started, err);
  if (status == WF_OK) status = wf_builder_finish(c.builder, isymbols, osymbols, out, err);
  wf_builder_free(c.builder);
  wf__map64_free(&c.numbers);
  return status;
}

wf_status wf_fst_compile(const char *path, const wf_symbols *isymbols, const wf_symbols *osymbols,
                         const wf_text_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__fst_compile_input(&input, isymbols, osymbols, options, out, err);
  wf__input_close(&input);
  return status;
}

wf_status wf_fst_compile_memory(const char *text, size_t size, const char *name,
                                const wf_symbols *isymbols, const wf_symbols *osymbols,
                                const wf_text_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_from_memory(text, size, name, &input, err));
  wf_status status = wf__fst_compile_input(&input, isymbols, osymbols, options, out, err);
  wf__input_close(&input);
  return status;
}
