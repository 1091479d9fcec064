/* kaldi_lattice.c - binary lattices of Kaldi archives; layout: kaldi_lattice.h. Counts in a file
 * are not trusted: memory grows with the bytes that are really read. */
#include "io/kaldi_lattice.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "fst/fst_formats.h"
#include "lattice/lattice.h"

enum {
  MAX_TYPE_BYTES = 32,
  HEADER_VERSION = 2,
  HEADER_REST_BYTES = 40,
  COUNT_BYTES = 8,
  FLAG_TABLES = 3
};

/* --- reading ----------------------------------------------------------------------------- */

struct binary {
  wf__source *source;
  wf__unsorted_lattice *out;
  bool wide; /* costs are f64 */
  int64_t num_states;
};

static int32_t i32_at(const uint8_t *bytes) {
  int32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}
static int64_t i64_at(const uint8_t *bytes) {
  int64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

/* Reads a string: i32 size, bytes. */
static wf_status read_type(wf__source *source, const char *what, char out[MAX_TYPE_BYTES + 1],
                           wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__source_take(source, 4, what, &bytes, err));
  int32_t size = i32_at(bytes);
  if (size < 0 || size > MAX_TYPE_BYTES)
    return wf__source_fail(source, err, WF_ERR_FORMAT, "%s has %d bytes, expected 0 to %d", what,
                           size, MAX_TYPE_BYTES);
  WF__TRY(wf__source_take(source, (uint64_t)size, what, &bytes, err));
  for (int32_t i = 0; i < size; i++)
    out[i] = bytes[i] > ' ' && bytes[i] < 0x7f ? (char)bytes[i] : '?';
  out[size] = '\0';
  return WF_OK;
}

static wf_status read_header(struct binary *b, wf_error *err) {
  static const struct {
    const char *name;
    bool compact, wide;
  } types[] = {{"lattice4", false, false},
               {"lattice8", false, true},
               {"compactlattice44", true, false},
               {"compactlattice84", true, true}};
  enum { NUM_TYPES = sizeof types / sizeof *types };
  wf__source *source = b->source;
  char fst_type[MAX_TYPE_BYTES + 1], arc_type[MAX_TYPE_BYTES + 1];
  const uint8_t *bytes;
  WF__TRY(wf__source_take(source, 4, "the magic number", &bytes, err));
  if (i32_at(bytes) != WF__OPENFST_MAGIC)
    return wf__source_fail(source, err, WF_ERR_FORMAT, "neither a binary lattice nor one in text");
  WF__TRY(read_type(source, "the fst type", fst_type, err));
  WF__TRY(read_type(source, "the arc type", arc_type, err));
  int type = 0;
  while (type < NUM_TYPES && strcmp(types[type].name, arc_type) != 0) type++;
  if (strcmp(fst_type, "vector") != 0 || type == NUM_TYPES)
    return wf__source_fail(source, err, WF_ERR_UNSUPPORTED,
                           "found an fst of type '%s' with arcs '%s', expected a vector fst with "
                           "arcs lattice4 or compactlattice44",
                           fst_type, arc_type);
  b->out->compact = types[type].compact;
  b->wide = types[type].wide;
  WF__TRY(wf__source_take(source, HEADER_REST_BYTES, "the header", &bytes,
                          err)); /* version, flags, properties, start, states, arcs */
  if (i32_at(bytes) != HEADER_VERSION)
    return wf__source_fail(source, err, WF_ERR_UNSUPPORTED,
                           "vector fst of version %d, expected version %d", i32_at(bytes),
                           HEADER_VERSION);
  if (i32_at(bytes + 4) & FLAG_TABLES)
    return wf__source_fail(source, err, WF_ERR_UNSUPPORTED,
                           "the lattice has embedded symbol tables, which are not supported");
  b->out->start = i64_at(bytes + 16);
  b->num_states = i64_at(bytes + 24);
  if (b->num_states < 0)
    return wf__source_fail(source, err, WF_ERR_FORMAT,
                           "the number of states in the header is %" PRId64, b->num_states);
  return WF_OK;
}

static wf_status read_labels(struct binary *b, wf_compact_weight *weight, wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__source_take(b->source, 4, "the length of an alignment", &bytes, err));
  int32_t count = i32_at(bytes);
  if (count < 0)
    return wf__source_fail(b->source, err, WF_ERR_FORMAT,
                           "the number of labels of an alignment is %d", count);
  WF__TRY(wf__source_take(b->source, (uint64_t)count * 4, "an alignment", &bytes, err));
  weight->num_labels = (uint32_t)count;
  weight->first_label = b->out->labels.size;
  WF__TRY(wf__vec_grow(&b->out->labels, (uint64_t)count, "alignments", err));
  for (int32_t i = 0; i < count; i++) {
    int32_t label = i32_at(bytes + 4 * (size_t)i);
    if (label <= 0)
      return wf__source_fail(b->source, err, WF_ERR_FORMAT,
                             "label %d in an alignment, expected 1 or more", label);
    b->out->labels.data[b->out->labels.size++] = label;
  }
  return WF_OK;
}

static wf_status read_weight(struct binary *b, wf_compact_weight *weight, wf_error *err) {
  const uint8_t *bytes;
  double costs[2];
  float narrow[2];
  WF__TRY(
      wf__source_take(b->source, b->wide ? sizeof costs : sizeof narrow, "a weight", &bytes, err));
  if (b->wide) {
    memcpy(costs, bytes, sizeof costs);
  } else {
    memcpy(narrow, bytes, sizeof narrow);
    costs[0] = (double)narrow[0];
    costs[1] = (double)narrow[1];
  }
  if (!wf__unsorted_weight_is_good(costs[0], costs[1]))
    return wf__source_fail(b->source, err, WF_ERR_FORMAT, "invalid weight %g,%g", costs[0],
                           costs[1]);
  *weight = (wf_compact_weight){.graph_cost = (float)costs[0], .acoustic_cost = (float)costs[1]};
  return b->out->compact ? read_labels(b, weight, err) : WF_OK;
}

static wf_status read_arc(struct binary *b, wf_error *err) {
  wf__unsorted_arc arc;
  const uint8_t *bytes;
  WF__TRY(wf__source_take(b->source, 8, "an arc", &bytes, err));
  arc.ilabel = i32_at(bytes);
  arc.olabel = i32_at(bytes + 4);
  if (arc.ilabel < 0 || arc.olabel < 0)
    return wf__source_fail(b->source, err, WF_ERR_FORMAT,
                           "an arc has labels %d:%d, expected 0 or more", arc.ilabel, arc.olabel);
  if (b->out->compact && arc.ilabel != arc.olabel)
    return wf__source_fail(b->source, err, WF_ERR_FORMAT,
                           "an arc has labels %d:%d, expected equal labels in a compact lattice",
                           arc.ilabel, arc.olabel);
  WF__TRY(read_weight(b, &arc.weight, err));
  WF__TRY(wf__source_take(b->source, 4, "an arc", &bytes, err));
  if (i32_at(bytes) < 0 || i32_at(bytes) >= b->num_states)
    return wf__source_fail(b->source, err, WF_ERR_FORMAT,
                           "an arc leads to state %d, but there are %" PRId64 " states",
                           i32_at(bytes), b->num_states);
  arc.target = (uint32_t)i32_at(bytes);
  WF__TRY(wf__vec_grow(&b->out->arcs, 1, "lattice arcs", err));
  b->out->arcs.data[b->out->arcs.size++] = arc;
  return WF_OK;
}

static wf_status read_state(struct binary *b, wf_error *err) {
  wf_compact_weight final;
  const uint8_t *bytes;
  WF__TRY(wf__vec_push(&b->out->arc_off, b->out->arcs.size, "lattice states", err));
  WF__TRY(read_weight(b, &final, err));
  WF__TRY(wf__vec_push(&b->out->finals, final, "lattice states", err));
  WF__TRY(wf__source_take(b->source, COUNT_BYTES, "the number of arcs", &bytes, err));
  int64_t count = i64_at(bytes);
  if (count < 0)
    return wf__source_fail(b->source, err, WF_ERR_FORMAT,
                           "the number of arcs of a state is %" PRId64, count);
  for (int64_t i = 0; i < count; i++) WF__TRY(read_arc(b, err));
  return WF_OK;
}

static wf_status read_binary(wf__source *source, wf__unsorted_lattice *out, wf_error *err) {
  struct binary b = {.source = source, .out = out};
  WF__TRY(read_header(&b, err));
  for (int64_t s = 0; s < b.num_states; s++) WF__TRY(read_state(&b, err));
  return WF_OK;
}

wf_status wf__kaldi_read_lattice(wf__source *source, const wf_symbols *words,
                                 wf__unsorted_lattice *out, bool *lost, wf_error *err) {
  int byte;
  *out = (wf__unsorted_lattice){.start = -1};
  *lost = true;
  WF__TRY(wf__source_peek(source, &byte, err));
  while (byte == ' ' || byte == '\t' || byte == '\r') {
    source->at++;
    WF__TRY(wf__source_peek(source, &byte, err));
  }
  if (byte == '\n') {
    source->at++;
    return wf__kaldi_read_lattice_text(source, words, out, lost, err);
  }
  WF__TRY(read_binary(source, out, err));
  *lost = false;
  return WF_OK;
}

/* --- writing ----------------------------------------------------------------------------- */

static void write_header(wf__output *output, const char *arc_type, uint64_t num_states) {
  const int32_t magic = WF__OPENFST_MAGIC, sizes[2] = {6, (int32_t)strlen(arc_type)},
                version_and_flags[2] = {HEADER_VERSION, 0};
  const uint64_t expanded_and_mutable = 3; /* Kaldi's tools compute other properties */
  const int64_t counts[3] = {num_states > 0 ? 0 : -1, (int64_t)num_states, 0};
  wf__write(output, &magic, sizeof magic);
  wf__write(output, &sizes[0], 4);
  wf__write(output, "vector", 6);
  wf__write(output, &sizes[1], 4);
  wf__write(output, arc_type, (size_t)sizes[1]);
  wf__write(output, version_and_flags, sizeof version_and_flags);
  wf__write(output, &expanded_and_mutable, sizeof expanded_and_mutable);
  wf__write(output, counts, sizeof counts);
}

static void write_costs(wf__output *output, float graph_cost, float acoustic_cost, float divisor) {
  float costs[2] = {graph_cost, graph_cost < INFINITY ? acoustic_cost / divisor : INFINITY};
  wf__write(output, costs, sizeof costs);
}

void wf__kaldi_write_raw(wf__output *output, const wf_lattice_view *lattice, float divisor) {
  write_header(output, "lattice4", lattice->num_states);
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    int64_t count = (int64_t)(lattice->arc_off[s + 1] - lattice->arc_off[s]);
    write_costs(output, wf__lattice_final_cost(lattice, s), lattice->final_acoustic_cost[s],
                divisor);
    wf__write(output, &count, sizeof count);
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_lattice_arc *arc = &lattice->arcs[a];
      const int32_t labels[2] = {arc->ilabel, arc->olabel};
      wf__write(output, labels, sizeof labels);
      write_costs(output, wf__lattice_arc_cost(arc), arc->acoustic_cost, divisor);
      wf__write(output, &arc->nextstate, 4);
    }
  }
}

static void write_weight(wf__output *output, const wf_compact_lattice_view *lattice,
                         const wf_compact_weight *weight, float divisor) {
  bool zero = weight->graph_cost == INFINITY;
  int32_t count = zero ? 0 : (int32_t)weight->num_labels;
  write_costs(output, weight->graph_cost, weight->acoustic_cost, divisor);
  wf__write(output, &count, sizeof count);
  if (count > 0)
    wf__write(output, lattice->labels + weight->first_label,
              (size_t)count * sizeof *lattice->labels);
}

void wf__kaldi_write_compact(wf__output *output, const wf_compact_lattice_view *lattice,
                             float divisor) {
  write_header(output, "compactlattice44", lattice->num_states);
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    int64_t count = (int64_t)(lattice->arc_off[s + 1] - lattice->arc_off[s]);
    write_weight(output, lattice, &lattice->finals[s], divisor);
    wf__write(output, &count, sizeof count);
    for (uint64_t a = lattice->arc_off[s]; a < lattice->arc_off[s + 1]; a++) {
      const wf_compact_arc *arc = &lattice->arcs[a];
      int32_t labels[2] = {arc->word, arc->word};
      wf__write(output, labels, sizeof labels);
      write_weight(output, lattice, &arc->weight, divisor);
      wf__write(output, &arc->nextstate, 4);
    }
  }
}
