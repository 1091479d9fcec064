/* openfst_read.c - reads OpenFst's binary files: the header, and the types vector and const.
 * openfst_types.h names the readers of the other types.
 *
 *   header   i32 magic | string fst type | string arc type | i32 version | u32 flags (1 isymbols, 2
 *            osymbols, 4 aligned) | u64 properties | i64 start (-1: none) | i64 number of states |
 *            i64 number of arcs (string: i32 size, bytes)
 *   tables   the flagged symbol tables (symbols.h)
 *   vector   per state: final weight, i64 number of arcs, then for each arc {i32 ilabel,
 *            i32 olabel, weight, i32 nextstate}. If the number of states is -1, the states run to
 *            the end of the file.
 *   const    per state: {final weight, u32 first arc, u32 number of arcs, u32 input epsilons,
 *            u32 output epsilons}; then all arcs, as above. In version 1 or with flag 4, both
 *            blocks begin at multiples of 16 bytes. log64 arcs are padded to 24 bytes. const8,
 *            const16 and const64 have numbers of so many bits in place of u32, padded as in C.
 *
 * A weight is f32 (arc types standard and log) or f64 (log64), which is rounded to f32; those of
 * vector and const files are kept, too, for files written of the fst. Counts are
 * checked against the remaining bytes before memory is allocated for them. */
#include <string.h>

#include "fst/openfst_types.h"
#include "fst/symbols.h"

enum { FLAG_ISYMBOLS = 1, FLAG_OSYMBOLS = 2, FLAG_ALIGNED = 4, ALIGNMENT = 16 };

typedef wf__openfst_header header;

/* --- header ------------------------------------------------------------------------------ */

static wf_status read_type(wf__cursor *cursor, wf__span *out, const char *what, wf_error *err) {
  int32_t size;
  const uint8_t *bytes;
  WF__TRY(wf__read_i32(cursor, &size, what, err));
  if (size < 0 || size > 256)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%s of %d bytes", what, size);
  WF__TRY(wf__read_view(cursor, &bytes, (uint64_t)size, what, err));
  *out = (wf__span){(const char *)bytes, (size_t)size};
  return WF_OK;
}

static bool contains(wf__span text, const char *part) {
  size_t size = strlen(part);
  for (size_t at = 0; at + size <= text.size; at++)
    if (memcmp(text.data + at, part, size) == 0) return true;
  return false;
}

/* What to do with an fst of another arc type. The names of pairs have _X_ or _LT_. */
static const char *advice(wf__span arc_type) {
  static const struct {
    const char *part, *text;
  } rows[] = {
      {"lattice",
       "a lattice of Kaldi, which `warpfst lattice` and wf.LatticeReader read in archives"},
      {"gallic", "make output labels of the strings in its weights (FactorWeightFst)"},
      {"string", "make output labels of the strings that are its weights"},
      {"_X_", "print it with fstprint, keep one cost of each pair, and compile the text"},
      {"_LT_", "print it with fstprint, keep one cost of each pair, and compile the text"},
      {"expectation", "print it with fstprint, keep the first cost, and compile the text"},
      {"real", "print it with fstprint, write -ln of each weight, and compile the text"},
      {"minmax", "the cost of its paths is no sum; if that does not matter, compile its text"},
      {"signed_log", "weights below 0 are no costs; there is no conversion"},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    if (contains(arc_type, rows[k].part)) return rows[k].text;
  return "print it with fstprint, write weights as costs, and compile the text";
}

/* Sets the semiring and sizes that follow from the type names. */
static wf_status resolve_types(const wf__cursor *cursor, header *h, wf_error *err) {
  static const struct {
    const char *name;
    wf_fst_format format;
  } types[] = {{"vector", WF_FORMAT_OPENFST_VECTOR},
               {"const", WF_FORMAT_OPENFST_CONST},
               {"const8", WF_FORMAT_OPENFST_CONST},
               {"const16", WF_FORMAT_OPENFST_CONST},
               {"const64", WF_FORMAT_OPENFST_CONST},
               {"arc_lookahead", WF_FORMAT_OPENFST_LOOKAHEAD},
               {"ilabel_lookahead", WF_FORMAT_OPENFST_LOOKAHEAD},
               {"olabel_lookahead", WF_FORMAT_OPENFST_LOOKAHEAD},
               {"edit", WF_FORMAT_OPENFST_EDIT},
               {"ngram", WF_FORMAT_OPENFST_NGRAM}};
  h->format = WF_FORMAT_NATIVE;
  if (wf__openfst_is_compact(h->fst_type)) h->format = WF_FORMAT_OPENFST_COMPACT;
  for (size_t k = 0; k < sizeof types / sizeof *types; k++)
    if (wf__span_is(h->fst_type, types[k].name)) h->format = types[k].format;
  if (h->format == WF_FORMAT_NATIVE)
    return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED,
                           "fst type '%.*s'; can read vector, const, compact_*, edit, ngram and "
                           "*_lookahead (fstconvert makes them)",
                           WF__SPAN_ARG(h->fst_type));
  h->index_bytes = wf__span_is(h->fst_type, "const8")    ? 1
                   : wf__span_is(h->fst_type, "const16") ? 2
                   : wf__span_is(h->fst_type, "const64") ? 8
                                                         : 4;
  bool wide = wf__span_is(h->arc_type, "log64");
  if (!wide && !wf__span_is(h->arc_type, "standard") && !wf__span_is(h->arc_type, "log"))
    return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED,
                           "arc type '%.*s'; can read standard, log and log64: %s",
                           WF__SPAN_ARG(h->arc_type), advice(h->arc_type));
  h->semiring = wf__span_is(h->arc_type, "standard") ? WF_TROPICAL : WF_LOG;
  h->weight_bytes = wide ? 8 : 4;
  if (!wide || (h->format != WF_FORMAT_OPENFST_VECTOR && h->format != WF_FORMAT_OPENFST_CONST))
    h->wide = NULL;
  h->arc_bytes = wide ? (h->format == WF_FORMAT_OPENFST_CONST ? 24 : 20) : 16;
  return WF_OK;
}

/* Files of the versions [least, most] can be read. Version 1 is aligned without a flag. */
static wf_status check_version(const wf__cursor *cursor, header *h, wf_error *err) {
  int32_t least = 1, most = 2;
  if (h->format == WF_FORMAT_OPENFST_VECTOR || h->format == WF_FORMAT_OPENFST_EDIT) least = 2;
  if (h->format == WF_FORMAT_OPENFST_NGRAM) least = most = 4;
  if (h->format == WF_FORMAT_OPENFST_LOOKAHEAD) most = 1;
  if (h->version < least || h->version > most)
    return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED, "version %d of a %.*s fst; can read %s",
                           h->version, WF__SPAN_ARG(h->fst_type),
                           most == 1    ? "1"
                           : least == 1 ? "1 and 2"
                           : least == 2 ? "2"
                                        : "4");
  if (h->version == 1) h->flags |= FLAG_ALIGNED;
  return WF_OK;
}

static wf_status read_header(wf__cursor *cursor, header *h, wf_error *err) {
  int32_t magic;
  uint64_t properties;
  WF__TRY(wf__read_i32(cursor, &magic, "the magic number", err));
  WF__TRY(read_type(cursor, &h->fst_type, "the fst type", err));
  WF__TRY(read_type(cursor, &h->arc_type, "the arc type", err));
  WF__TRY(resolve_types(cursor, h, err));
  WF__TRY(wf__read_i32(cursor, &h->version, "the version", err));
  WF__TRY(wf__read_u32(cursor, &h->flags, "the flags", err));
  /* The properties are ignored: they are computed when needed. */
  WF__TRY(wf__read_u64(cursor, &properties, "the properties", err));
  WF__TRY(wf__read_i64(cursor, &h->start, "the start state", err));
  WF__TRY(wf__read_i64(cursor, &h->num_states, "the number of states", err));
  WF__TRY(wf__read_i64(cursor, &h->num_arcs, "the number of arcs", err));
  WF__TRY(check_version(cursor, h, err));
  if (h->flags & ~(uint32_t)(FLAG_ISYMBOLS | FLAG_OSYMBOLS | FLAG_ALIGNED))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "unknown flags 0x%x in the header",
                           h->flags);
  if (h->num_states < (h->format == WF_FORMAT_OPENFST_VECTOR ? -1 : 0))
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%lld states in the header",
                           (long long)h->num_states);
  if (h->num_states > (int64_t)WF__MAX_STATES)
    return wf__cursor_fail(cursor, err, WF_ERR_LIMIT, "%lld states, expected at most 2^31-1",
                           (long long)h->num_states);
  if (h->format == WF_FORMAT_OPENFST_CONST && h->num_arcs < 0)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%lld arcs in the header",
                           (long long)h->num_arcs);
  return WF_OK;
}

/* --- weights and arcs -------------------------------------------------------------------- */

struct file_arc { /* 16 bytes, f32 weights */
  int32_t ilabel, olabel;
  float weight;
  uint32_t nextstate;
};

static bool copy_narrow_arcs(const uint8_t *from, uint64_t count, uint64_t num_states, wf_arc *to) {
  bool fine = true;
  for (uint64_t i = 0; i < count; i++) {
    struct file_arc arc;
    memcpy(&arc, from + i * sizeof arc, sizeof arc);
    fine &= (arc.ilabel | arc.olabel) >= 0 && arc.nextstate < num_states && arc.weight > -INFINITY;
    to[i] = (wf_arc){arc.nextstate, arc.weight, arc.ilabel, arc.olabel};
  }
  return fine;
}

static bool copy_wide_arcs(const uint8_t *from, uint64_t count, size_t arc_bytes,
                           uint64_t num_states, wf_arc *to, double *wide) {
  bool fine = true;
  for (uint64_t i = 0; i < count; i++, from += arc_bytes) {
    if (wide != NULL) memcpy(&wide[i], from + 8, 8);
    memcpy(&to[i].ilabel, from, 4);
    memcpy(&to[i].olabel, from + 4, 4);
    memcpy(&to[i].nextstate, from + 16, 4);
    fine &= wf__load_weight(from + 8, 8, &to[i].weight);
    fine &= (to[i].ilabel | to[i].olabel) >= 0 && to[i].nextstate < num_states;
  }
  return fine;
}

/* Reports which of the arcs from `from` to the cursor is invalid, and why. */
static wf_status explain_arcs(wf__cursor cursor, const uint8_t *from, const header *h,
                              uint64_t num_states, const wf_arc *arcs, wf_error *err) {
  const uint8_t *end = cursor.at;
  for (cursor.at = from; cursor.at < end; cursor.at += h->arc_bytes, arcs++) {
    float weight;
    if (arcs->ilabel < 0 || arcs->olabel < 0)
      return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT, "arc with a negative label %d:%d",
                             arcs->ilabel, arcs->olabel);
    if (arcs->nextstate >= num_states)
      return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT,
                             "arc leads to state %d, but there are only %llu states",
                             (int32_t)arcs->nextstate, (unsigned long long)num_states);
    if (!wf__load_weight(cursor.at + 8, h->weight_bytes, &weight))
      return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT,
                             "arc weight is NaN, -infinity or beyond float32");
  }
  return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT, "bad arcs");
}

/* `first`: the number of the first arc. */
static wf_status copy_arcs(wf__cursor *cursor, const header *h, uint64_t first, uint64_t count,
                           uint64_t num_states, wf_arc *to, wf_error *err) {
  const uint8_t *from;
  double *wide = h->wide != NULL ? h->wide->arcs + first : NULL;
  WF__TRY(wf__read_view(cursor, &from, count * h->arc_bytes, "arcs", err));
  bool fine = h->weight_bytes == 4
                  ? copy_narrow_arcs(from, count, num_states, to)
                  : copy_wide_arcs(from, count, h->arc_bytes, num_states, to, wide);
  return fine ? WF_OK : explain_arcs(*cursor, from, h, num_states, to, err);
}

static wf_status reserve_wide(const header *h, uint64_t num_states, uint64_t num_arcs,
                              wf_error *err) {
  if (h->wide == NULL) return WF_OK;
  h->wide->arcs = wf__alloc(num_arcs, sizeof(double));
  h->wide->finals = wf__alloc(num_states, sizeof(double));
  if (h->wide->arcs != NULL && h->wide->finals != NULL) return WF_OK;
  return wf__fail_memory(err, (num_states + num_arcs) * sizeof(double), "weights of log64 arcs");
}

static bool take_final(const header *h, const uint8_t *weight, uint64_t state, wf__csr *csr) {
  if (h->wide != NULL) memcpy(&h->wide->finals[state], weight, 8);
  return wf__load_weight(weight, h->weight_bytes, &csr->final_cost.data[state]);
}

/* --- vector ------------------------------------------------------------------------------ */

/* Reads the final weight and the number of arcs of the next state. */
static wf_status read_state(wf__cursor *cursor, const header *h, uint64_t state,
                            const uint8_t **weight, uint64_t *num_arcs, wf_error *err) {
  int64_t count;
  WF__TRY(wf__read_view(cursor, weight, h->weight_bytes, "the final weight of a state", err));
  WF__TRY(wf__read_i64(cursor, &count, "the number of arcs of a state", err));
  if (count < 0 || (uint64_t)count > wf__cursor_left(cursor) / h->arc_bytes)
    return wf__cursor_fail(
        cursor, err, WF_ERR_FORMAT,
        "state %llu has %lld arcs, but the file has room for %llu: truncated or damaged",
        (unsigned long long)state, (long long)count,
        (unsigned long long)(wf__cursor_left(cursor) / h->arc_bytes));
  *num_arcs = (uint64_t)count;
  return WF_OK;
}

/* First pass: counts states and arcs. */
static wf_status count_vector(wf__cursor cursor, const header *h, uint64_t *num_states,
                              uint64_t *num_arcs, wf_error *err) {
  uint64_t states = 0, arcs = 0;
  while (h->num_states < 0 ? wf__cursor_left(&cursor) > 0 : states < (uint64_t)h->num_states) {
    const uint8_t *weight;
    uint64_t count;
    WF__TRY(read_state(&cursor, h, states, &weight, &count, err));
    cursor.at += count * h->arc_bytes;
    arcs += count;
    if (++states > WF__MAX_STATES)
      return wf__cursor_fail(&cursor, err, WF_ERR_LIMIT, "more than 2^31-1 states");
  }
  *num_states = states;
  *num_arcs = arcs;
  return WF_OK;
}

static wf_status read_vector(wf__cursor *cursor, const header *h, wf__csr *csr, wf_error *err) {
  uint64_t num_states, num_arcs;
  WF__TRY(count_vector(*cursor, h, &num_states, &num_arcs, err));
  WF__TRY(wf__openfst_reserve(csr, num_states, num_arcs, err));
  WF__TRY(reserve_wide(h, num_states, num_arcs, err));
  for (uint64_t s = 0; s < num_states; s++) {
    const uint8_t *weight;
    uint64_t count;
    WF__TRY(read_state(cursor, h, s, &weight, &count, err));
    csr->arc_off.data[s] = csr->arcs.size;
    if (!take_final(h, weight, s, csr))
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                             "final weight of state %llu is NaN, -infinity or beyond float32",
                             (unsigned long long)s);
    WF__TRY(copy_arcs(cursor, h, csr->arcs.size, count,
                      h->target_limit != 0 ? h->target_limit : num_states,
                      csr->arcs.data + csr->arcs.size, err));
    csr->arcs.size += count;
  }
  csr->arc_off.size = csr->final_cost.size = num_states;
  return WF_OK;
}

/* --- const ------------------------------------------------------------------------------- */

static size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

static uint64_t load_index(const uint8_t *at, size_t bytes) {
  uint64_t value = 0;
  memcpy(&value, at, bytes);
  return value;
}

static wf_status read_const_states(wf__cursor *cursor, const header *h, wf__csr *csr,
                                   wf_error *err) {
  uint64_t num_states = (uint64_t)h->num_states, num_arcs = (uint64_t)h->num_arcs;
  const size_t weight = h->weight_bytes, index = h->index_bytes;
  const size_t at_pos = round_up(weight, index),
               state_bytes = round_up(at_pos + 4 * index, weight > index ? weight : index);
  const uint8_t *states;
  WF__TRY(wf__read_view(cursor, &states, num_states * state_bytes, "states", err));
  if (num_arcs > wf__cursor_left(cursor) / h->arc_bytes)
    return wf__cursor_fail(
        cursor, err, WF_ERR_FORMAT,
        "the header says %llu arcs, but the file has room for %llu: truncated or damaged",
        (unsigned long long)num_arcs, (unsigned long long)(wf__cursor_left(cursor) / h->arc_bytes));
  WF__TRY(wf__openfst_reserve(csr, num_states, num_arcs, err));
  WF__TRY(reserve_wide(h, num_states, num_arcs, err));
  uint64_t arcs = 0;
  for (uint64_t s = 0; s < num_states; s++, states += state_bytes) {
    uint64_t pos = load_index(states + at_pos, index),
             count = load_index(states + at_pos + index, index);
    if (!take_final(h, states, s, csr))
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                             "final weight of state %llu is NaN, -infinity or beyond float32",
                             (unsigned long long)s);
    if (pos != arcs || count > num_arcs - arcs)
      return wf__cursor_fail(
          cursor, err, WF_ERR_FORMAT,
          "state %llu has %llu arcs from arc %llu on, expected them from %llu on and at most %llu "
          "arcs in all",
          (unsigned long long)s, (unsigned long long)count, (unsigned long long)pos,
          (unsigned long long)arcs, (unsigned long long)num_arcs);
    csr->arc_off.data[s] = arcs;
    arcs += count;
  }
  if (arcs != num_arcs)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "the states hold %llu arcs, the header says %llu",
                           (unsigned long long)arcs, (unsigned long long)num_arcs);
  csr->arc_off.size = csr->final_cost.size = num_states;
  return WF_OK;
}

static wf_status read_const(wf__cursor *cursor, const header *h, wf__csr *csr, wf_error *err) {
  WF__TRY(wf__openfst_align(cursor, h, err));
  WF__TRY(read_const_states(cursor, h, csr, err));
  WF__TRY(wf__openfst_align(cursor, h, err));
  WF__TRY(
      copy_arcs(cursor, h, 0, (uint64_t)h->num_arcs, (uint64_t)h->num_states, csr->arcs.data, err));
  csr->arcs.size = (uint64_t)h->num_arcs;
  return WF_OK;
}

/* --- reading a file ---------------------------------------------------------------------- */

static wf__openfst_reader read_inner;

static wf_status read_body(wf__cursor *cursor, const header *h, wf__csr *csr, wf_error *err) {
  switch (h->format) {
    case WF_FORMAT_OPENFST_CONST: WF__TRY(read_const(cursor, h, csr, err)); break;
    case WF_FORMAT_OPENFST_COMPACT: WF__TRY(wf__openfst_read_compact(cursor, h, csr, err)); break;
    case WF_FORMAT_OPENFST_EDIT:
      WF__TRY(wf__openfst_read_edit(cursor, h, read_inner, csr, err));
      break;
    case WF_FORMAT_OPENFST_NGRAM: WF__TRY(wf__openfst_read_ngram(cursor, h, csr, err)); break;
    default: WF__TRY(read_vector(cursor, h, csr, err));
  }
  int64_t num_states = (int64_t)(h->target_limit != 0 ? h->target_limit : csr->final_cost.size);
  if (h->start < -1 || h->start >= num_states)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "start state %lld of %lld states",
                           (long long)h->start, (long long)num_states);
  return WF_OK;
}

/* The header of the const fst that a look-ahead fst holds. */
static wf_status read_const_header(wf__cursor *cursor, header *h, wf_error *err) {
  int32_t magic;
  WF__TRY(wf__read_i32(cursor, &magic, "the magic number of an add-on", err));
  if (magic != WF__OPENFST_ADDON_MAGIC)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%d in place of an add-on's magic number",
                           magic);
  WF__TRY(read_header(cursor, h, err));
  if (h->format == WF_FORMAT_OPENFST_CONST) return WF_OK;
  return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED, "fst type '%.*s' in a look-ahead fst",
                         WF__SPAN_ARG(h->fst_type));
}

/* The header, symbol tables and arrays. The caller frees all, also on failure. */
static wf_status read_all(wf__cursor *cursor, header *h, wf__csr *csr, wf_symbols **isymbols,
                          wf_symbols **osymbols, wf_error *err) {
  WF__TRY(read_header(cursor, h, err));
  const wf__span outer_type = h->fst_type;
  const bool lookahead = h->format == WF_FORMAT_OPENFST_LOOKAHEAD;
  if (lookahead) WF__TRY(read_const_header(cursor, h, err));
  if (h->flags & FLAG_ISYMBOLS) WF__TRY(wf__symbols_read_binary(cursor, isymbols, err));
  if (h->flags & FLAG_OSYMBOLS) WF__TRY(wf__symbols_read_binary(cursor, osymbols, err));
  WF__TRY(read_body(cursor, h, csr, err));
  if (!lookahead) return WF_OK;
  h->format = WF_FORMAT_OPENFST_LOOKAHEAD;
  return wf__openfst_skip_lookahead(cursor, outer_type, err);
}

static wf_status read_inner(wf__cursor *cursor, const wf__openfst_header *outer, uint64_t limit,
                            wf__csr *csr, wf_error *err) {
  header h = {.target_limit = limit, .depth = outer->depth + 1};
  wf_symbols *isymbols = NULL, *osymbols = NULL;
  if (h.depth > 1)
    return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED, "an edit fst in an edit fst");
  wf_status status = read_all(cursor, &h, csr, &isymbols, &osymbols, err);
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  if (status == WF_OK && h.semiring != outer->semiring)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "an fst of another arc type within an fst");
  return status;
}

wf_status wf__openfst_read_next(wf__cursor *cursor, wf_fst **out, wf_fst_format *format,
                                wf_error *err) {
  *out = NULL;
  wf__wide_weights wide = {NULL, NULL};
  header h = {.wide = &wide};
  wf__csr csr = {0};
  wf_symbols *isymbols = NULL, *osymbols = NULL;
  wf_status status = read_all(cursor, &h, &csr, &isymbols, &osymbols, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, h.start, h.semiring, isymbols, osymbols, out, err);
  if (status == WF_OK && wide.arcs != NULL) wf__fst_set_wide(*out, wide.arcs, wide.finals);
  if (status != WF_OK) {
    free(wide.arcs);
    free(wide.finals);
  }
  *format = h.format;
  if (h.weight_bytes == 8 && h.format == WF_FORMAT_OPENFST_VECTOR)
    *format = WF_FORMAT_OPENFST_VECTOR_LOG64;
  if (h.weight_bytes == 8 && h.format == WF_FORMAT_OPENFST_CONST)
    *format = WF_FORMAT_OPENFST_CONST_LOG64;
  wf__csr_free(&csr);
  wf_symbols_free(isymbols);
  wf_symbols_free(osymbols);
  return status;
}

wf_status wf__openfst_read(const wf__input *input, wf_fst **out, wf_fst_format *format,
                           wf_error *err) {
  wf__cursor cursor = wf__cursor_of(input);
  WF__TRY(wf__openfst_read_next(&cursor, out, format, err));
  if (wf__cursor_left(&cursor) == 0) return WF_OK;
  wf_fst_free(*out);
  *out = NULL;
  return wf__cursor_fail(&cursor, err, WF_ERR_FORMAT, "%llu bytes follow the last arc",
                         (unsigned long long)wf__cursor_left(&cursor));
}
