/* sphinx_sen.c - see sphinx_sen.h. The file does not have the number of frames, so a first pass
 * counts them and a second pass reads them. */
#include "io/sphinx_sen.h"

#include <math.h>
#include <stdlib.h>

#include "graph/sphinx_s3.h"
#include "io/kaldi_archive.h"

enum { NOT_SCORED = 32767, SCORE_SHIFT = 10 };

static int16_t read_i16(const uint8_t *at) { return (int16_t)(at[0] | at[1] << 8); }

/* Reads one frame into `row` (NULL: skips it). */
static wf_status read_frame(wf__cursor *cursor, int32_t num_senones, float unit, float *row,
                            wf_error *err) {
  const uint8_t *head, *steps = NULL, *scores;
  WF__TRY(wf__read_view(cursor, &head, 2, "number of active senones", err));
  int32_t active = read_i16(head);
  if (active < 0 || active > num_senones)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%d active senones, expected 0 to %d",
                           (int)active, (int)num_senones);
  if (active < num_senones)
    WF__TRY(wf__read_view(cursor, &steps, (uint64_t)active, "active senones", err));
  WF__TRY(wf__read_view(cursor, &scores, (uint64_t)active * 2, "senone scores", err));
  if (row == NULL) return WF_OK;
  if (steps != NULL)
    for (int32_t s = 0; s < num_senones; s++) row[s] = unit * NOT_SCORED;
  for (int32_t i = 0, senone = 0; i < active; i++) {
    senone = steps != NULL ? senone + steps[i] : i;
    if (senone >= num_senones)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "senone %d, expected less than %d",
                             (int)senone, (int)num_senones);
    row[senone] = unit * (float)read_i16(scores + 2 * (size_t)i);
  }
  return WF_OK;
}

static wf_status read_header(const wf__s3 *s3, const char *path, int64_t *num_senones,
                             double *logbase, wf_error *err) {
  wf__span text;
  if (s3->swap)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s: senone scores are big-endian, which is not supported", path);
  if (!wf__s3_value(s3, "n_sen", &text) || !wf__parse_i64(text, num_senones) || *num_senones < 1 ||
      *num_senones > INT16_MAX)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: no 'n_sen' from 1 to 32767 in the header of senone scores", path);
  if (!wf__s3_value(s3, "logbase", &text) || !wf__parse_f64(text, logbase) ||
      !(*logbase > 1 && *logbase < 10))
    return wf__fail(err, WF_ERR_FORMAT, "%s: no 'logbase' above 1 in the header of senone scores",
                    path);
  return WF_OK;
}

wf_status wf__sen_read(const wf__input *input, float scale, wf_matrix *out, wf_error *err) {
  wf__s3 s3;
  int64_t num_senones, num_frames = 0;
  double logbase;
  uint64_t elements;
  WF__TRY(wf__s3_open(input, &s3, err));
  WF__TRY(read_header(&s3, input->path, &num_senones, &logbase, err));
  wf__cursor cursor = s3.cursor;
  for (; wf__cursor_left(&cursor) != 0; num_frames++)
    WF__TRY(read_frame(&cursor, (int32_t)num_senones, 0, NULL, err));
  WF__TRY(wf__matrix_shape(out, num_frames, num_senones, &elements, input->path, err));
  /* A frame without active senones takes two bytes in the file, but a whole row in memory. Limits
   * the number of scores to 128 per byte of the file. */
  if (elements / 128 > input->size)
    return wf__fail(err, WF_ERR_FORMAT, "%s: nearly all of %lld frames are empty", input->path,
                    (long long)num_frames);
  WF__TRY(wf__matrix_allocate(out, num_frames, (int32_t)num_senones, input->path, err));
  float unit = (float)(-log(logbase) * (1 << SCORE_SHIFT)) * scale;
  for (int64_t t = 0; t < num_frames; t++)
    WF__TRY(read_frame(&s3.cursor, (int32_t)num_senones, unit, out->data + t * num_senones, err));
  return WF_OK;
}
