/* sphinx_files.c - reads transition matrices and noise dictionaries of CMU Sphinx models.
 *
 * transition_matrices is an s3 file (sphinx_s3.h):
 *   int32    number of matrices, from, to, number of values
 *   float32  [matrices][from][to]
 *   uint32   checksum, if the header has "chksum0 yes" */
#include "graph/sphinx_files.h"

#include <string.h>

#include "graph/sphinx_s3.h"

enum { MAX_STATES = 64 };

static bool is_text(wf__span span, const char *text) {
  return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

/* Reads the 32-bit words of an s3 file and computes their checksum. */
struct s3_reader {
  wf__s3 s3;
  uint32_t sum;
};

static uint32_t swapped(uint32_t x) {
  return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24;
}

static wf_status read_word(struct s3_reader *reader, uint32_t *out, const char *what,
                           wf_error *err) {
  WF__TRY(wf__read_u32(&reader->s3.cursor, out, what, err));
  if (reader->s3.swap) *out = swapped(*out);
  reader->sum = (reader->sum << 20 | reader->sum >> 12) + *out;
  return WF_OK;
}

static wf_status read_row(struct s3_reader *reader, const wf__tmats *tmats, int32_t from,
                          double *row, wf_error *err) {
  double sum = 0;
  for (int32_t to = 0; to <= tmats->num_states; to++) {
    uint32_t bits;
    float count;
    WF__TRY(read_word(reader, &bits, "transition counts", err));
    memcpy(&count, &bits, sizeof count);
    if (!(count >= 0 && count <= 1e30f))
      return wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_FORMAT, "invalid transition count %g",
                             (double)count);
    if (count != 0 && to < from)
      return wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_UNSUPPORTED,
                             "transitions that go back are not supported: state %d to %d",
                             (int)from, (int)to);
    row[to] = count;
    sum += count;
  }
  if (!(sum > 0))
    return wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_FORMAT, "state %d has no transitions",
                           (int)from);
  for (int32_t to = 0; to <= tmats->num_states; to++) row[to] /= sum;
  if (row[from] >= 1)
    return wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_FORMAT,
                           "state %d has only its self-loop", (int)from);
  return WF_OK;
}

static wf_status read_tmats(struct s3_reader *reader, wf__tmats *tmats, wf_error *err) {
  uint32_t matrices, from, to, total, sum, stored;
  WF__TRY(read_word(reader, &matrices, "number of matrices", err));
  WF__TRY(read_word(reader, &from, "number of states", err));
  WF__TRY(read_word(reader, &to, "number of states", err));
  WF__TRY(read_word(reader, &total, "number of values", err));
  if (from < 1 || from > MAX_STATES || to != from + 1 || matrices > INT32_MAX ||
      (uint64_t)matrices * from * to != total)
    return wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_FORMAT,
                           "inconsistent header: %u matrices of %u x %u, %u values", matrices, from,
                           to, total);
  if (wf__cursor_left(&reader->s3.cursor) / 4 < total)
    return wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_FORMAT,
                           "truncated: fewer than %u values follow", total);
  tmats->num_tmats = (int32_t)matrices;
  tmats->num_states = (int32_t)from;
  tmats->p = wf__alloc(total, sizeof *tmats->p);
  if (tmats->p == NULL)
    return wf__fail_memory(err, total * sizeof *tmats->p, "transition matrices");
  for (uint64_t row = 0; row < (uint64_t)matrices * from; row++)
    WF__TRY(read_row(reader, tmats, (int32_t)(row % from), tmats->p + row * to, err));
  wf__span checked;
  if (!wf__s3_value(&reader->s3, "chksum0", &checked) || !is_text(checked, "yes")) return WF_OK;
  sum = reader->sum;
  WF__TRY(read_word(reader, &stored, "checksum", err));
  return stored == sum
             ? WF_OK
             : wf__cursor_fail(&reader->s3.cursor, err, WF_ERR_FORMAT,
                               "the stored checksum is 0x%08x; that of the data is 0x%08x", stored,
                               sum);
}

wf_status wf__tmats_read(const wf__input *input, wf__tmats *out, wf_error *err) {
  *out = (wf__tmats){0};
  struct s3_reader reader = {0};
  WF__TRY(wf__s3_open(input, &reader.s3, err));
  wf_status status = read_tmats(&reader, out, err);
  if (status != WF_OK) wf__tmats_free(out);
  return status;
}

void wf__tmats_free(wf__tmats *tmats) {
  free(tmats->p);
  *tmats = (wf__tmats){0};
}

/* --- noisedict --------------------------------------------------------------------------- */

static wf_status read_noises(wf__lines *lines, const wf__mdef *mdef, wf__noisedict *out,
                             wf_error *err) {
  for (wf__span line, word, phone, more; wf__next_line(lines, &line);) {
    if (!wf__next_field(&line, &word) ||
        (word.size >= 2 && (memcmp(word.data, "##", 2) == 0 || memcmp(word.data, ";;", 2) == 0)))
      continue;
    if (!wf__next_field(&line, &phone))
      return wf__lines_fail(lines, err, WF_ERR_FORMAT, "'%.*s' has no phone", WF__SPAN_ARG(word));
    int32_t index = wf__mdef_find(mdef, phone);
    if (index < 0)
      return wf__lines_fail(lines, err, WF_ERR_FORMAT, "'%.*s': the model has no phone '%.*s'",
                            WF__SPAN_ARG(word), WF__SPAN_ARG(phone));
    if (wf__next_field(&line, &more))
      return wf__lines_fail(lines, err, WF_ERR_UNSUPPORTED,
                            "'%.*s' has several phones; a noise has one", WF__SPAN_ARG(word));
    if (is_text(word, "<s>") || is_text(word, "</s>")) continue;
    if (is_text(word, "<sil>"))
      out->silence = index;
    else
      WF__TRY(wf__vec_push(&out->fillers, index, "noises", err));
  }
  return WF_OK;
}

wf_status wf__noisedict_read(const wf__input *input, const wf__mdef *mdef, wf__noisedict *out,
                             wf_error *err) {
  *out = (wf__noisedict){.silence = -1};
  wf__lines lines = wf__lines_of(input);
  wf_status status = read_noises(&lines, mdef, out, err);
  if (status != WF_OK) wf__vec_free(&out->fillers);
  return status;
}
