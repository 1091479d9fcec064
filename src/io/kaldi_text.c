/* kaldi_text.c - matrices of text archives: "[ 1 2 3\n 4 5 6 ]". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/kaldi_archive.h"

/* A matrix being read. After an error the text is still read up to the "]", so that reading can
 * continue with the next record. The error is kept in `status`. */
struct text_matrix {
  WF__VEC(float) values;
  int64_t rows, columns; /* of the complete rows; columns is -1 before the first */
  int64_t in_row;        /* values in the current row */
  wf_status status;
  wf_error *err;
  wf__source *source;
};

static bool is_blank(int byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }

static void end_row(struct text_matrix *m) {
  if (m->in_row == 0 || m->status != WF_OK) return;
  if (m->columns >= 0 && m->in_row != m->columns)
    m->status = wf__source_fail(m->source, m->err, WF_ERR_FORMAT,
                                "row %lld has %lld values, expected %lld as in the rows before",
                                (long long)m->rows, (long long)m->in_row, (long long)m->columns);
  m->columns = m->in_row;
  m->in_row = 0;
  m->rows++;
}

static void add_value(struct text_matrix *m, const char *text, size_t size) {
  double value = 0;
  if (m->status != WF_OK) return;
  if (!wf__parse_f64((wf__span){text, size}, &value)) {
    m->status = wf__source_fail(m->source, m->err, WF_ERR_FORMAT, "'%.*s' is not a number",
                                WF__SPAN_ARG(((wf__span){text, size})));
    return;
  }
  m->status = wf__vec_push(&m->values, (float)value, "scores", m->err);
  m->in_row++;
}

/* Reads characters up to a blank, the end of the row or "]". Drops characters beyond `cap`. */
static wf_status read_word(wf__source *source, char *text, size_t cap, size_t *size,
                           wf_error *err) {
  *size = 0;
  for (;;) {
    int byte;
    WF__TRY(wf__source_peek(source, &byte, err));
    if (byte < 0 || is_blank(byte) || byte == '\n' || byte == ';' || byte == ']') return WF_OK;
    if (*size < cap) text[(*size)++] = byte > ' ' && byte < 0x7f ? (char)byte : '?';
    source->at++;
  }
}

static wf_status read_rows(struct text_matrix *m, wf_error *err) {
  wf__source *source = m->source;
  for (;;) {
    int byte;
    WF__TRY(wf__source_peek(source, &byte, err));
    if (byte < 0)
      return wf__source_fail(source, err, WF_ERR_FORMAT, "file ends inside a matrix, expected ']'");
    if (byte == '\n' || byte == ';' || byte == ']') {
      end_row(m);
      source->at++;
      if (byte == ']') return WF_OK;
    } else if (is_blank(byte)) {
      source->at++;
    } else {
      char text[128];
      size_t size;
      WF__TRY(read_word(source, text, sizeof text, &size, err));
      add_value(m, text, size);
    }
  }
}

static wf_status skip_blanks(wf__source *source, int *byte, wf_error *err) {
  for (;; source->at++) {
    WF__TRY(wf__source_peek(source, byte, err));
    if (!is_blank(*byte)) return WF_OK;
  }
}

wf_status wf__kaldi_read_text(wf__source *source, float scale, wf_matrix *out, bool *lost,
                              wf_error *err) {
  struct text_matrix m = {.columns = -1, .err = err, .source = source};
  int byte;
  *lost = true;
  WF__TRY(skip_blanks(source, &byte, err));
  if (byte != '[')
    return wf__source_fail(source, err, WF_ERR_FORMAT, "neither a binary matrix nor '['");
  source->at++;
  wf_status status = read_rows(&m, err);
  if (status == WF_OK) status = skip_blanks(source, &byte, err);
  if (status == WF_OK && byte != '\n' && byte >= 0)
    status =
        wf__source_fail(source, err, WF_ERR_FORMAT, "text after ']', expected the end of the line");
  if (status == WF_OK) {
    if (byte == '\n') source->at++;
    *lost = false;
    status = m.status;
  }
  uint64_t elements;
  if (status == WF_OK)
    status =
        wf__matrix_shape(out, m.rows, m.columns > 0 ? m.columns : 0, &elements, source->path, err);
  if (status == WF_OK) {
    if (m.values.data == NULL) m.values.data = wf__alloc(0, sizeof(float));
    if (m.values.data == NULL) return wf__fail_memory(err, 1, "scores");
    out->data = m.values.data;
    wf__matrix_scale(out, scale);
  } else {
    wf__vec_free(&m.values);
  }
  return status;
}
