/* kaldi_archive.h - records of a Kaldi archive: key, blank, matrix; key, blank, matrix; ...
 *
 *   binary  "\0B", then
 *     "FM ", "DM "    '\4' int32 rows, '\4' int32 columns, row-major values: float32, float64
 *     "CM "           float32 min, float32 range, int32 rows, int32 columns, 4 uint16 percentiles
 *                     (0, 25, 75, 100) per column, then column-major bytes. A byte is a position on
 *                     the piecewise linear curve through the percentiles of its column
 *     "CM2 ", "CM3 "  the same header without percentiles, then row-major uint16, uint8 over
 *                     [min, min + range]
 *   text    " [" values "]" newline; a newline or ';' ends a row */
#ifndef WF_IO_KALDI_ARCHIVE_H
#define WF_IO_KALDI_ARCHIVE_H

#include "base/source.h"

/* Reads the next key into `*key` (malloc'ed; NULL at the end) and the blank after it. With `lines`
 * the line may end after the key; then the newline is not consumed. After a failure the archive
 * cannot be read further. */
wf_status wf__kaldi_read_key(wf__source *source, bool lines, char **key, wf_error *err);
/* Reads the matrix at the current position and multiplies it by `scale`. On failure the matrix has
 * no data, and `*lost` is true if the end of the record is unknown, so that the archive cannot be
 * read further. */
wf_status wf__kaldi_read_value(wf__source *source, float scale, wf_matrix *out, bool *lost,
                               wf_error *err);
/* The same for the text form; kaldi_text.c. */
wf_status wf__kaldi_read_text(wf__source *source, float scale, wf_matrix *out, bool *lost,
                              wf_error *err);

/* Checks and sets the shape. Sets `*elements` to frames * columns; 8 times that fits size_t. */
wf_status wf__matrix_shape(wf_matrix *matrix, int64_t num_frames, int64_t num_columns,
                           uint64_t *elements, const char *name, wf_error *err);
/* The same; also allocates the array, uninitialised. */
wf_status wf__matrix_allocate(wf_matrix *matrix, int64_t num_frames, int64_t num_columns,
                              const char *name, wf_error *err);
/* Multiplies every score by `scale`. */
void wf__matrix_scale(wf_matrix *matrix, float scale);

#endif
