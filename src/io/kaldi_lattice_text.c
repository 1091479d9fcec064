/* kaldi_lattice_text.c - lattices of text archives; format: kaldi_lattice.h. A lattice ends at an
 * empty line, so reading continues after a malformed lattice.
 *
 * The first line that only one kind can have decides the kind. Raw: five fields, or a weight with
 * one comma. Compact: three fields, or a weight with two commas. A lattice that has only final
 * states without weights counts as compact. States keep the order of their numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fst/symbols.h"
#include "io/kaldi_lattice.h"

enum { MAX_FIELDS = 5, KIND_UNKNOWN = 0, KIND_RAW, KIND_COMPACT };

struct text_arc {
  uint32_t source;
  wf__unsorted_arc arc;
};

struct text_final {
  uint32_t state;
  wf_compact_weight weight;
};

struct text_lattice {
  const wf__source *source; /* for messages */
  const wf_symbols *words;
  wf__unsorted_lattice *out;
  int kind;
  uint64_t line; /* within the lattice, from 1 */
  uint32_t start;
  WF__VEC(struct text_arc) arcs;
  WF__VEC(struct text_final) finals;
  WF__VEC(uint32_t) states; /* every state number found; later sorted and without duplicates */
};

/* --- lines and fields -------------------------------------------------------------------- */

/* Gets the next line without its end; `*found` is false at the end of the input. The span is valid
 * until the next use of the source. */
static wf_status next_line(wf__source *source, wf__span *line, bool *found, wf_error *err) {
  uint64_t left = wf__source_left(source), looked = 0;
  const uint8_t *end = NULL;
  for (;;) {
    if (left > looked) end = memchr(source->at + looked, '\n', left - looked);
    if (end != NULL) break;
    looked = left;
    WF__TRY(wf__source_need(source, left * 2 + 4096, err));
    left = wf__source_left(source);
    if (left == looked) break; /* the input has ended */
  }
  uint64_t size = end != NULL ? (uint64_t)(end - source->at) : left;
  *found = left > 0;
  *line = (wf__span){(const char *)source->at, (size_t)size};
  if (left > 0) source->at += size + (end != NULL);
  return WF_OK;
}

static wf_status bad_line(const struct text_lattice *t, wf_error *err, const char *what,
                          wf__span field) {
  return wf__source_fail(t->source, err, WF_ERR_FORMAT,
                         "line %" PRIu64 " of the lattice: %s '%.*s'", t->line, what,
                         WF__SPAN_ARG(field));
}

static wf_status parse_number(const struct text_lattice *t, wf__span field, int64_t least,
                              const char *what, int32_t *out, wf_error *err) {
  int64_t value;
  if (!wf__parse_i64(field, &value) || value < least || value > INT32_MAX)
    return bad_line(t, err, what, field);
  *out = (int32_t)value;
  return WF_OK;
}

static wf_status parse_state(struct text_lattice *t, wf__span field, uint32_t *out, wf_error *err) {
  int32_t state;
  WF__TRY(parse_number(t, field, 0, "expected a state, found", &state, err));
  *out = (uint32_t)state;
  return wf__vec_push(&t->states, (uint32_t)state, "lattice states", err);
}

static wf_status parse_word(const struct text_lattice *t, wf__span field, int32_t *out,
                            wf_error *err) {
  if (t->words == NULL)
    return parse_number(t, field, 0, "expected the number of a word (or give a word table), found",
                        out, err);
  int64_t key = wf__symbols_find_bytes(t->words, field.data, field.size);
  if (key < 0 && field.size == 5 && memcmp(field.data, "<eps>", 5) == 0) key = 0;
  if (key < 0 || key > INT32_MAX) return bad_line(t, err, "not in the word table:", field);
  *out = (int32_t)key;
  return WF_OK;
}

/* Removes the part up to the next `separator` from the front of `rest` and returns it. */
static wf__span take_part(wf__span *rest, char separator) {
  const char *end = memchr(rest->data, separator, rest->size);
  wf__span part = {rest->data, end != NULL ? (size_t)(end - rest->data) : rest->size};
  size_t used = part.size + (end != NULL);
  rest->data += used;
  rest->size -= used;
  return part;
}

static size_t count_commas(wf__span field) {
  size_t count = 0;
  for (size_t i = 0; i < field.size; i++) count += field.data[i] == ',';
  return count;
}

static wf_status parse_weight(struct text_lattice *t, wf__span field, wf_compact_weight *out,
                              wf_error *err) {
  wf__span rest = field, graph = take_part(&rest, ','), acoustic = take_part(&rest, ',');
  double costs[2];
  if (count_commas(field) != (t->kind == KIND_COMPACT ? 2 : 1) ||
      !wf__parse_f64(graph, &costs[0]) || !wf__parse_f64(acoustic, &costs[1]) ||
      !wf__unsorted_weight_is_good(costs[0], costs[1]))
    return bad_line(t, err,
                    t->kind == KIND_COMPACT ? "expected graph cost, acoustic cost and labels, found"
                                            : "expected graph and acoustic cost, found",
                    field);
  *out = (wf_compact_weight){.graph_cost = (float)costs[0],
                             .acoustic_cost = (float)costs[1],
                             .first_label = t->out->labels.size};
  while (rest.size > 0) {
    wf__span part = take_part(&rest, '_');
    int32_t label;
    WF__TRY(parse_number(t, part, 1, "expected a label in an alignment, found", &label, err));
    WF__TRY(wf__vec_push(&t->out->labels, label, "alignments", err));
    out->num_labels++;
  }
  return WF_OK;
}

/* --- lines to arcs ----------------------------------------------------------------------- */

/* Kind of lattice that has such a line; KIND_UNKNOWN if both kinds have. */
static int kind_of_line(const wf__span *fields, size_t count) {
  if (count == 5) return KIND_RAW;
  if (count == 3) return KIND_COMPACT;
  if (count == 4) { /* a compact weight, or a word */
    double cost;
    wf__span rest = fields[3], graph = take_part(&rest, ',');
    return count_commas(fields[3]) == 2 && wf__parse_f64(graph, &cost) ? KIND_COMPACT : KIND_RAW;
  }
  return count == 1 ? KIND_UNKNOWN : count_commas(fields[1]) == 1 ? KIND_RAW : KIND_COMPACT;
}

static wf_status parse_arc(struct text_lattice *t, const wf__span *fields, size_t count,
                           uint32_t source, wf_error *err) {
  struct text_arc arc = {.source = source};
  bool compact = t->kind == KIND_COMPACT;
  size_t at = 2;
  WF__TRY(parse_state(t, fields[1], &arc.arc.target, err));
  if (!compact)
    WF__TRY(parse_number(t, fields[at++], 0, "expected a label, found", &arc.arc.ilabel, err));
  WF__TRY(parse_word(t, fields[at++], &arc.arc.olabel, err));
  if (compact) arc.arc.ilabel = arc.arc.olabel;
  if (at < count) WF__TRY(parse_weight(t, fields[at], &arc.arc.weight, err));
  return wf__vec_push(&t->arcs, arc, "lattice arcs", err);
}

static wf_status parse_line(struct text_lattice *t, wf__span line, const wf__span *fields,
                            size_t count, wf_error *err) {
  uint32_t source;
  if (count > MAX_FIELDS) return bad_line(t, err, "more than five fields in", line);
  WF__TRY(parse_state(t, fields[0], &source, err));
  if (t->line == 1) t->start = source;
  int kind = kind_of_line(fields, count);
  if (t->kind == KIND_UNKNOWN) t->kind = kind;
  if (kind != KIND_UNKNOWN && kind != t->kind)
    return bad_line(t, err,
                    t->kind == KIND_RAW
                        ? "expected an arc or final state of a raw lattice, found"
                        : "expected an arc or final state of a compact lattice, found",
                    line);
  if (count > 2) return parse_arc(t, fields, count, source, err);
  struct text_final final = {.state = source};
  if (count == 2) WF__TRY(parse_weight(t, fields[1], &final.weight, err));
  return wf__vec_push(&t->finals, final, "lattice states", err);
}

/* Reads up to the empty line that ends the lattice, even after an error in a line, which is kept in
 * `*status`. */
static wf_status read_lines(struct text_lattice *t, wf__source *source, wf_status *status,
                            wf_error *err) {
  for (;;) {
    wf__span line, rest, fields[MAX_FIELDS], field;
    bool found;
    size_t count = 0;
    WF__TRY(next_line(source, &line, &found, err));
    if (found && line.size > 0 && line.data[line.size - 1] == '\r') line.size--;
    for (rest = line; found && wf__next_field(&rest, &field); count++)
      if (count < MAX_FIELDS) fields[count] = field;
    if (count == 0) return WF_OK;
    t->line++;
    if (*status == WF_OK) *status = parse_line(t, line, fields, count, err);
  }
}

/* --- states in order --------------------------------------------------------------------- */

static int compare_states(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Index of a state in the sorted numbers. */
static uint32_t place_of(const struct text_lattice *t, uint32_t state) {
  const uint32_t *first = t->states.data;
  if (state < t->states.size && first[state] == state)
    return state; /* usual case: numbered without gaps */
  return (uint32_t)((const uint32_t *)bsearch(&state, first, t->states.size, sizeof *first,
                                              compare_states) -
                    first);
}

static void sort_numbers(struct text_lattice *t) {
  uint64_t kept = 0;
  qsort(t->states.data, t->states.size, sizeof *t->states.data, compare_states);
  for (uint64_t i = 0; i < t->states.size; i++)
    if (i == 0 || t->states.data[i] != t->states.data[i - 1])
      t->states.data[kept++] = t->states.data[i];
  t->states.size = kept;
}

/* Sorts arcs by source state with a counting sort, which keeps the order of the lines. */
static wf_status arrange(struct text_lattice *t, wf_error *err) {
  wf__unsorted_lattice *out = t->out;
  uint64_t num_states = t->states.size;
  out->compact = t->kind != KIND_RAW;
  out->start = num_states > 0 ? (int64_t)place_of(t, t->start) : -1;
  WF__TRY(wf__vec_grow(&out->arc_off, num_states + 1, "lattice states", err));
  WF__TRY(wf__vec_grow(&out->finals, num_states, "lattice states", err));
  WF__TRY(wf__vec_grow(&out->arcs, t->arcs.size, "lattice arcs", err));
  for (uint64_t s = 0; s <= num_states; s++) out->arc_off.data[s] = 0;
  for (uint64_t s = 0; s < num_states; s++)
    out->finals.data[s] = (wf_compact_weight){.graph_cost = INFINITY};
  for (uint64_t i = 0; i < t->finals.size; i++)
    out->finals.data[place_of(t, t->finals.data[i].state)] = t->finals.data[i].weight;
  for (uint64_t i = 0; i < t->arcs.size; i++)
    out->arc_off.data[place_of(t, t->arcs.data[i].source) + 1]++;
  for (uint64_t s = 0; s < num_states; s++) out->arc_off.data[s + 1] += out->arc_off.data[s];
  for (uint64_t i = 0; i < t->arcs.size; i++) {
    wf__unsorted_arc arc = t->arcs.data[i].arc;
    arc.target = place_of(t, arc.target);
    out->arcs.data[out->arc_off.data[place_of(t, t->arcs.data[i].source)]++] = arc;
  }
  for (uint64_t s = num_states; s > 0; s--)
    out->arc_off.data[s] = out->arc_off.data[s - 1]; /* the scatter advanced each to its end */
  if (num_states > 0) out->arc_off.data[0] = 0;
  out->arc_off.size = out->finals.size = num_states;
  out->arcs.size = t->arcs.size;
  return WF_OK;
}

wf_status wf__kaldi_read_lattice_text(wf__source *source, const wf_symbols *words,
                                      wf__unsorted_lattice *out, bool *lost, wf_error *err) {
  struct text_lattice t = {.source = source, .words = words, .out = out};
  wf_status content = WF_OK, status = read_lines(&t, source, &content, err);
  *lost = status != WF_OK;
  if (status == WF_OK) status = content;
  if (status == WF_OK && t.states.size > 0 && t.finals.size == 0)
    status = wf__source_fail(source, err, WF_ERR_FORMAT,
                             "the lattice has no final state; is the file cut off?");
  if (status == WF_OK && t.states.size > 0) sort_numbers(&t);
  if (status == WF_OK) status = arrange(&t, err);
  wf__vec_free(&t.arcs);
  wf__vec_free(&t.finals);
  wf__vec_free(&t.states);
  return status;
}
