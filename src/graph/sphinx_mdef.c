/* sphinx_mdef.c - reads Sphinx model definitions, text and binary.
 *
 * text     0.3
 *          42 n_base            and so on, `count name`, up to n_tied_tmat
 *          base left right position attribute tmat senone ... N        one line a phone,
 *          context-independent phones ("-") first
 *
 * binary   "BMDF" version, size and text of a description, then little-endian
 *          int32  n_ciphone n_phone n_emit_state n_ci_sen n_sen n_tmat n_sseq n_ctx n_cd_tree sil
 *          names, each NUL-terminated, padded to 4 bytes in all
 *          n_cd_tree x 8 bytes (a search tree over the phones, not needed here)
 *          n_phone x {int32 sequence, int32 tmat, uint8 attribute[4]}
 *                 attribute: {filler, -, -, -} or {position, base, left, right}
 *          int32 size, size x uint16 senones */
#include <string.h>

#include "base/map64.h"
#include "graph/sphinx_files.h"

enum { MAX_STATES = 64, MAX_CI = 32767, MAX_SENONES = 1 << 20 };

void wf__mdef_free(wf__mdef *mdef) {
  wf__vec_free(&mdef->names);
  wf__vec_free(&mdef->phones);
  wf__vec_free(&mdef->senones);
  wf__arena_free(&mdef->texts);
}

int32_t wf__mdef_find(const wf__mdef *mdef, wf__span name) {
  for (uint64_t i = 0; i < mdef->names.size; i++)
    if (strlen(mdef->names.data[i]) == name.size &&
        memcmp(mdef->names.data[i], name.data, name.size) == 0)
      return (int32_t)i;
  return -1;
}

static wf_status add_name(wf__mdef *mdef, wf__span name, wf_error *err) {
  char *text = wf__arena_alloc(&mdef->texts, name.size + 1);
  if (text == NULL) return wf__fail_memory(err, name.size + 1, "a phone");
  memcpy(text, name.data, name.size);
  text[name.size] = '\0';
  return wf__vec_push(&mdef->names, text, "phones", err);
}

/* --- text -------------------------------------------------------------------------------- */

enum { N_BASE, N_TRI, N_STATE_MAP, N_TIED_STATE, N_TIED_CI_STATE, N_TIED_TMAT, NUM_COUNTS };

struct reader {
  wf__mdef *mdef;
  wf__lines lines;
  int64_t counts[NUM_COUNTS];
  wf__map64 nodes; /* trie over senone sequences: node << 32 | senone -> node */
  uint32_t num_nodes;
  wf__map64 sequences; /* last node of a sequence -> its index */
};

/* Reads the next line that is neither empty nor a comment. */
static bool next_line(struct reader *reader, wf__span *line) {
  while (wf__next_line(&reader->lines, line)) {
    wf__span rest = *line, field;
    if (wf__next_field(&rest, &field) && field.data[0] != '#') return true;
  }
  return false;
}

static bool is_text(wf__span span, const char *text) {
  return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

static wf_status read_counts(struct reader *reader, wf_error *err) {
  static const char *const names[NUM_COUNTS] = {"n_base",       "n_tri",           "n_state_map",
                                                "n_tied_state", "n_tied_ci_state", "n_tied_tmat"};
  wf__span line, number, name;
  if (!next_line(reader, &line) || !wf__next_field(&line, &number) || !is_text(number, "0.3"))
    return wf__lines_fail(
        &reader->lines, err, WF_ERR_FORMAT,
        "not a Sphinx model definition: it begins neither with 'BMDF' nor with 0.3");
  for (int i = 0; i < NUM_COUNTS; i++) {
    bool good =
        next_line(reader, &line) && wf__next_field(&line, &number) && wf__next_field(&line, &name);
    if (!good || !is_text(name, names[i]) || !wf__parse_i64(number, &reader->counts[i]) ||
        reader->counts[i] < 0 || reader->counts[i] > INT32_MAX)
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "expected `count %s`", names[i]);
  }
  if (reader->counts[N_BASE] < 1 || reader->counts[N_BASE] > MAX_CI)
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "%lld context-independent phones",
                          (long long)reader->counts[N_BASE]);
  reader->mdef->num_ci = (int32_t)reader->counts[N_BASE];
  reader->mdef->num_senones = (int32_t)reader->counts[N_TIED_STATE];
  reader->mdef->num_tmats = (int32_t)reader->counts[N_TIED_TMAT];
  return WF_OK;
}

static wf_status read_index(struct reader *reader, wf__span *line, int32_t limit, const char *what,
                            int32_t *out, wf_error *err) {
  wf__span field;
  int64_t value;
  if (!wf__next_field(line, &field))
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "the line ends before its %s", what);
  if (!wf__parse_i64(field, &value) || value < 0 || value >= limit)
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                          "'%.*s' is not a valid %s; there are %d", WF__SPAN_ARG(field), what,
                          (int)limit);
  *out = (int32_t)value;
  return WF_OK;
}

/* Reads `base left right position attribute`. */
static wf_status read_name(struct reader *reader, wf__span *line, wf__mdef_phone *phone,
                           wf_error *err) {
  static const char positions[] = "ibes";
  wf__mdef *mdef = reader->mdef;
  wf__span base, left, right, position, attribute;
  if (!wf__next_field(line, &base) || !wf__next_field(line, &left) ||
      !wf__next_field(line, &right) || !wf__next_field(line, &position) ||
      !wf__next_field(line, &attribute))
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                          "expected `base left right position attribute tmat senones N`");
  phone->filler = is_text(attribute, "filler");
  if (mdef->phones.size < (uint64_t)mdef->num_ci) {
    if (!is_text(left, "-") || !is_text(right, "-"))
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                            "'%.*s' has a context; the first %d phones have none",
                            WF__SPAN_ARG(base), (int)mdef->num_ci);
    if (!wf__is_utf8(base) || memchr(base.data, '\0', base.size) != NULL)
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "the phone is not UTF-8 text");
    if (wf__mdef_find(mdef, base) >= 0)
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "phone '%.*s' is given twice",
                            WF__SPAN_ARG(base));
    *phone = (wf__mdef_phone){(int32_t)mdef->phones.size, -1, -1, WF__MDEF_CI, 0, 0, phone->filler};
    return add_name(mdef, base, err);
  }
  phone->base = wf__mdef_find(mdef, base);
  phone->left = wf__mdef_find(mdef, left);
  phone->right = wf__mdef_find(mdef, right);
  const char *at = position.size == 1 ? memchr(positions, position.data[0], 4) : NULL;
  if (phone->base < 0 || phone->left < 0 || phone->right < 0 || at == NULL)
    return wf__lines_fail(
        &reader->lines, err, WF_ERR_FORMAT,
        "'%.*s %.*s %.*s %.*s' is not a triphone of known phones with a position b, e, i or s",
        WF__SPAN_ARG(base), WF__SPAN_ARG(left), WF__SPAN_ARG(right), WF__SPAN_ARG(position));
  phone->position = (int32_t)(at - positions);
  return WF_OK;
}

/* Reads the senones of a line. Equal sequences are stored once. */
static wf_status read_senones(struct reader *reader, wf__span *line, int32_t *out_sequence,
                              wf_error *err) {
  wf__mdef *mdef = reader->mdef;
  int32_t senones[MAX_STATES], count = 0;
  uint32_t node = 0, sequence;
  bool fresh;
  for (wf__span rest = *line, field; wf__next_field(&rest, &field) && !is_text(field, "N");
       count++) {
    if (count == MAX_STATES)
      return wf__lines_fail(&reader->lines, err, WF_ERR_LIMIT, "more than %d states",
                            (int)MAX_STATES);
    WF__TRY(read_index(reader, line, mdef->num_senones, "senone", &senones[count], err));
    WF__TRY(wf__map64_insert(&reader->nodes, (uint64_t)node << 32 | (uint32_t)senones[count],
                             reader->num_nodes, &node, &fresh, "senones", err));
    reader->num_nodes += fresh;
  }
  if (mdef->num_states == 0) mdef->num_states = count;
  if (count == 0 || count != mdef->num_states)
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "%d states; the first phone has %d",
                          (int)count, (int)mdef->num_states);
  WF__TRY(wf__map64_insert(&reader->sequences, node,
                           (uint32_t)(mdef->senones.size / (uint64_t)count), &sequence, &fresh,
                           "senones", err));
  *out_sequence = (int32_t)sequence;
  if (!fresh) return WF_OK;
  WF__TRY(wf__vec_grow(&mdef->senones, count, "senones", err));
  memcpy(mdef->senones.data + mdef->senones.size, senones, (size_t)count * sizeof *senones);
  mdef->senones.size += (uint64_t)count;
  return WF_OK;
}

static wf_status read_text(struct reader *reader, wf_error *err) {
  wf__mdef *mdef = reader->mdef;
  WF__TRY(read_counts(reader, err));
  for (wf__span line, field; next_line(reader, &line);) {
    wf__mdef_phone phone = {0};
    WF__TRY(read_name(reader, &line, &phone, err));
    WF__TRY(read_index(reader, &line, mdef->num_tmats, "transition matrix", &phone.tmat, err));
    WF__TRY(read_senones(reader, &line, &phone.sequence, err));
    if (!wf__next_field(&line, &field) || wf__next_field(&line, &field))
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "expected one N after the senones");
    WF__TRY(wf__vec_push(&mdef->phones, phone, "phones", err));
  }
  if (mdef->phones.size == (uint64_t)(reader->counts[N_BASE] + reader->counts[N_TRI])) return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT, "%s: %llu phones; n_base + n_tri is %lld", reader->lines.path,
                  (unsigned long long)mdef->phones.size,
                  (long long)(reader->counts[N_BASE] + reader->counts[N_TRI]));
}

/* --- binary ------------------------------------------------------------------------------ */

enum { CIPHONE, PHONE, EMIT_STATE, CI_SEN, SEN, TMAT, SSEQ, CTX, CD_TREE, SIL, NUM_FIELDS };

static wf_status read_header(wf__cursor *cursor, wf__mdef *mdef, int32_t *head, wf_error *err) {
  int32_t magic, version, size;
  const uint8_t *text;
  WF__TRY(wf__read_i32(cursor, &magic, "magic", err));
  WF__TRY(wf__read_i32(cursor, &version, "version", err));
  if (version != 1)
    return wf__cursor_fail(cursor, err, WF_ERR_UNSUPPORTED,
                           "version %d of binary model definitions is not supported; expected 1",
                           (int)version);
  WF__TRY(wf__read_i32(cursor, &size, "size of the description", err));
  if (size < 0)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "the size of the description is %d",
                           (int)size);
  WF__TRY(wf__read_view(cursor, &text, (uint64_t)size, "description", err));
  for (int i = 0; i < NUM_FIELDS; i++) WF__TRY(wf__read_i32(cursor, &head[i], "counts", err));
  for (int i = 0; i < SIL; i++)
    if (head[i] < 0)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "header field %d is %d", i, (int)head[i]);
  if (head[CIPHONE] < 1 || head[CIPHONE] > MAX_CI || head[PHONE] < head[CIPHONE])
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%d phones, %d of them context-independent",
                           (int)head[PHONE], (int)head[CIPHONE]);
  if (head[EMIT_STATE] < 1 || head[EMIT_STATE] > MAX_STATES)
    return wf__cursor_fail(
        cursor, err, WF_ERR_UNSUPPORTED,
        "%d states for each phone; 1 to %d, the same for all phones, are supported",
        (int)head[EMIT_STATE], (int)MAX_STATES);
  mdef->num_ci = head[CIPHONE];
  mdef->num_states = head[EMIT_STATE];
  mdef->num_senones = head[SEN];
  mdef->num_tmats = head[TMAT];
  return WF_OK;
}

static wf_status read_names(wf__cursor *cursor, wf__mdef *mdef, wf_error *err) {
  const uint8_t *begin = cursor->at, *skipped;
  for (int32_t i = 0; i < mdef->num_ci; i++) {
    const uint8_t *end =
        wf__cursor_left(cursor) != 0 ? memchr(cursor->at, '\0', wf__cursor_left(cursor)) : NULL;
    if (end == NULL)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "the list of phone names has no end");
    wf__span name = {(const char *)cursor->at, (size_t)(end - cursor->at)};
    if (name.size == 0 || !wf__is_utf8(name) || wf__mdef_find(mdef, name) >= 0)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                             "the name of phone %d is empty, repeated or not UTF-8 text", (int)i);
    WF__TRY(add_name(mdef, name, err));
    cursor->at = end + 1;
  }
  return wf__read_view(cursor, &skipped, (uint64_t)(-(cursor->at - begin) & 3), "padding", err);
}

static wf_status read_phone(wf__cursor *cursor, wf__mdef *mdef, int32_t num_sequences,
                            wf_error *err) {
  wf__mdef_phone phone = {
      .base = (int32_t)mdef->phones.size, .left = -1, .right = -1, .position = WF__MDEF_CI};
  uint8_t attribute[4];
  WF__TRY(wf__read_i32(cursor, &phone.sequence, "a phone's senones", err));
  WF__TRY(wf__read_i32(cursor, &phone.tmat, "a phone's transition matrix", err));
  WF__TRY(wf__read_bytes(cursor, attribute, 4, "a phone's attributes", err));
  if (phone.base < mdef->num_ci) {
    phone.filler = attribute[0] != 0;
  } else {
    phone.position = attribute[0];
    phone.base = attribute[1];
    phone.left = attribute[2];
    phone.right = attribute[3];
  }
  bool good = phone.sequence >= 0 && phone.sequence < num_sequences && phone.tmat >= 0 &&
              phone.tmat < mdef->num_tmats && phone.position <= WF__MDEF_CI;
  if (mdef->phones.size >= (uint64_t)mdef->num_ci)
    good = good && phone.position < WF__MDEF_CI && phone.base < mdef->num_ci &&
           phone.left < mdef->num_ci && phone.right < mdef->num_ci;
  if (!good)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "phone %llu has an index out of range",
                           (unsigned long long)mdef->phones.size);
  return wf__vec_push(&mdef->phones, phone, "phones", err);
}

static wf_status read_binary(wf__cursor *cursor, wf__mdef *mdef, wf_error *err) {
  int32_t head[NUM_FIELDS], size;
  const uint8_t *skipped;
  WF__TRY(read_header(cursor, mdef, head, err));
  WF__TRY(read_names(cursor, mdef, err));
  WF__TRY(wf__read_view(cursor, &skipped, (uint64_t)head[CD_TREE] * 8, "search tree", err));
  for (int32_t i = 0; i < head[PHONE]; i++) WF__TRY(read_phone(cursor, mdef, head[SSEQ], err));
  WF__TRY(wf__read_i32(cursor, &size, "number of senones", err));
  if (size < 0 || (int64_t)size != (int64_t)head[SSEQ] * head[EMIT_STATE])
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%d senones in %d sequences of %d",
                           (int)size, (int)head[SSEQ], (int)head[EMIT_STATE]);
  const uint8_t *data;
  WF__TRY(wf__read_view(cursor, &data, (uint64_t)size * 2, "senones", err));
  WF__TRY(wf__vec_grow(&mdef->senones, size, "senones", err));
  for (int32_t i = 0; i < size; i++) {
    int32_t senone = data[2 * (size_t)i] | data[2 * (size_t)i + 1] << 8;
    if (senone >= mdef->num_senones)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "senone %d is out of range; there are %d",
                             (int)senone, (int)mdef->num_senones);
    mdef->senones.data[mdef->senones.size++] = senone;
  }
  return WF_OK;
}

wf_status wf__mdef_read(const wf__input *input, wf__mdef *out, wf_error *err) {
  *out = (wf__mdef){0};
  wf_status status;
  if (input->size >= 4 && memcmp(input->data, "BMDF", 4) == 0) {
    wf__cursor cursor = wf__cursor_of(input);
    status = read_binary(&cursor, out, err);
  } else if (input->size >= 4 && memcmp(input->data, "FDMB", 4) == 0) {
    status = wf__fail(err, WF_ERR_UNSUPPORTED,
                      "%s: binary model definition in big-endian order; convert it with "
                      "pocketsphinx_mdef_convert",
                      input->path);
  } else {
    struct reader reader = {.mdef = out, .lines = wf__lines_of(input), .num_nodes = 1};
    status = read_text(&reader, err);
    wf__map64_free(&reader.nodes);
    wf__map64_free(&reader.sequences);
  }
  if (status == WF_OK && out->num_senones > MAX_SENONES)
    status = wf__fail(err, WF_ERR_LIMIT, "%s: %d senones; at most %d are supported", input->path,
                      (int)out->num_senones, (int)MAX_SENONES);
  if (status != WF_OK) {
    wf__mdef_free(out);
    *out = (wf__mdef){0};
  }
  return status;
}
