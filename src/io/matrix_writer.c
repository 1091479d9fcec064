/* matrix_writer.c - writes score matrices to a Kaldi archive (with a script file on request) or to
 * a folder of .npy files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_tables.h"
#include "base/output.h"
#include "io/archive_writer.h"
#include "io/float_text.h"
#include "io/kaldi_cm.h"
#include "io/key_files.h"
#include "io/npy.h"

struct wf_matrix_writer {
  int32_t format;
  wf__key_folder folder;    /* for .npy */
  wf__archive_writer files; /* for the other formats */
};

wf_status wf_matrix_writer_open(const char *path, const wf_matrix_writer_options *options,
                                wf_matrix_writer **out, wf_error *err) {
  if (out == NULL || path == NULL || path[0] == '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "no output path given");
  *out = NULL;
  wf_matrix_writer_options taken;
  WF__TRY(wf__options_take(wf__matrix_writer_table(), options, &taken, err));
  if (taken.scp != NULL && taken.format == WF_MATRIX_NPY)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "a script file needs an archive, but the output is a folder of .npy files");
  wf_matrix_writer *writer = wf__calloc(1, sizeof *writer);
  if (writer == NULL) return wf__fail_memory(err, sizeof *writer, "a matrix writer");
  writer->format = taken.format;
  bool npy = writer->format == WF_MATRIX_NPY;
  wf_status status = npy ? wf__key_folder_open(path, &writer->folder, err)
                         : wf__archive_open(&writer->files, path, taken.scp, err);
  if (status == WF_OK && !npy)
    status = wf__archive_choose_format(&writer->files, WF_MATRIX_ARK, WF_MATRIX_TEXT,
                                       &writer->format, err);
  if (status != WF_OK) {
    wf_matrix_writer_abort(writer);
    return status;
  }
  *out = writer;
  return WF_OK;
}

static void put_text(wf__output *output, const wf_matrix *matrix) {
  wf__write_text(output, " [");
  for (int64_t t = 0; t < matrix->num_frames; t++) {
    wf__write_text(output, "\n ");
    for (int32_t c = 0; c < matrix->num_columns; c++) {
      char text[WF__FLOAT_TEXT_BYTES];
      wf__write_text(output, " ");
      float value = matrix->data[t * matrix->num_columns + c];
      wf__float_text(value, text);
      wf__write_text(output, !isinf(value) ? text
                             : value > 0   ? "inf"
                                           : "-inf"); /* as Kaldi writes it */
    }
  }
  wf__write_text(output, " ]\n");
}

static wf_status check_dimensions(const wf_matrix *matrix, wf_error *err) {
  if (matrix->num_frames > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%s: %lld frames, a Kaldi matrix has fewer than 2^31",
                    matrix->key, (long long)matrix->num_frames);
  return WF_OK;
}

static void put_binary(wf__output *output, const wf_matrix *matrix) {
  int32_t rows = (int32_t)matrix->num_frames, columns = matrix->num_columns;
  wf__write(output, "\0BFM \4", 6);
  wf__write(output, &rows, 4);
  wf__write(output, "\4", 1);
  wf__write(output, &columns, 4);
  wf__write(output, matrix->data,
            (size_t)matrix->num_frames * (size_t)matrix->num_columns * sizeof(float));
}

static wf_status put_npy(wf_matrix_writer *writer, const wf_matrix *matrix, wf_error *err) {
  char header[192];
  wf__output *output;
  WF__TRY(wf__key_folder_file(&writer->folder, matrix->key, ".npy", &output, err));
  wf__write(output, header, wf__npy_header(matrix, header));
  wf__write(output, matrix->data,
            (size_t)matrix->num_frames * (size_t)matrix->num_columns * sizeof(float));
  return wf__output_close(output, err);
}

wf_status wf_matrix_writer_put(wf_matrix_writer *writer, const wf_matrix *matrix, wf_error *err) {
  if (matrix->key == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "a matrix without a key cannot be written");
  if (writer->format == WF_MATRIX_NPY) return put_npy(writer, matrix, err);
  WF__TRY(check_dimensions(matrix, err));
  uint8_t *compressed = NULL;
  size_t compressed_bytes = 0;
  if (writer->format == WF_MATRIX_COMPRESSED)
    WF__TRY(wf__kaldi_compress(matrix, &compressed, &compressed_bytes, err));
  wf_status status = wf__archive_put_key(&writer->files, matrix->key, err);
  wf__output *output = writer->files.archive;
  if (status != WF_OK) {
    free(compressed);
    return status;
  }
  if (writer->format == WF_MATRIX_TEXT)
    put_text(output, matrix);
  else if (writer->format == WF_MATRIX_ARK)
    put_binary(output, matrix);
  else
    wf__write(output, compressed, compressed_bytes);
  free(compressed);
  return WF_OK;
}

wf_status wf_matrix_writer_close(wf_matrix_writer *writer, wf_error *err) {
  wf_status status = WF_OK;
  if (writer == NULL) return WF_OK;
  if (writer->format != WF_MATRIX_NPY) status = wf__archive_close(&writer->files, err);
  wf_matrix_writer_abort(writer);
  return status;
}

void wf_matrix_writer_abort(wf_matrix_writer *writer) {
  if (writer == NULL) return;
  wf__archive_abort(&writer->files);
  wf__key_folder_close(&writer->folder);
  free(writer);
}
