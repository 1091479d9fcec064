/* kaldi_archive.h - records of a Kaldi archive: key, blank, matrix; key, blank, matrix; ...
 *
 *   binary  "\0B" then "FM " | "DM "     '\4' int32 rows, '\4' int32 columns, row-major float32 |
 *           float64
 *                      "CM "             float32 min, float32 range, int32 rows, int32 columns,
 *                                        columns x 4 uint16 percentiles (0, 25, 75, 100), then
 *                                        column-major bytes, each on the piecewise line through its
 *                                        column's percentiles
 *                      "CM2 " | "CM3 "   the same header without percentiles, row-major uint16 |
 *                                        uint8 over [min, min + range]
 *   text    " [" values "]" newline; a newline or ';' ends a row */
#ifndef WF_IO_KALDI_ARCHIVE_H
#define WF_IO_KALDI_ARCHIVE_H

#include "io/source.h"

/* Next key into `*key` (malloc'ed), NULL at the end, and the blank behind it. With `lines` the
 * key's line may end behind the key; its end is then not taken. A failure leaves no place to go on
 * from. */
wf_status wf__kaldi_read_key(wf__source *source, bool lines, char **key, wf_error *err);
/* The matrix at the source's place, times scale. On failure `*lost` tells whether the place behind
 * the record is unknown; the matrix has no data then. */
wf_status wf__kaldi_read_value(wf__source *source, float scale, wf_matrix *out, bool *lost,
                               wf_error *err);
/* The text form; kaldi_text.c. */
wf_status wf__kaldi_read_text(wf__source *source, float scale, wf_matrix *out, bool *lost,
                              wf_error *err);

/* Sets the shape after checking it; `elements` = frames * columns fits size_t with room for 8 bytes
 * each. */
wf_status wf__matrix_shape(wf_matrix *matrix, int64_t num_frames, int64_t num_columns,
                           uint64_t *elements, const char *name, wf_error *err);
/* Same, and makes the array, uninitialised. */
wf_status wf__matrix_allocate(wf_matrix *matrix, int64_t num_frames, int64_t num_columns,
                              const char *name, wf_error *err);
/* Multiplies every score; 1 does nothing. */
void wf__matrix_scale(wf_matrix *matrix, float scale);

#endif
