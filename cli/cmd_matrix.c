/* cmd_matrix.c - `warpfst matrix info` and `matrix copy`: describe and convert files of acoustic
 * scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "parts.h"

/* Sums over all sources. */
struct totals {
  uint64_t utterances, frames, failed;
  bool lost_rest, no_memory;
};

/* Reads the next readable matrix. Reports and counts unreadable ones. Returns false at the end. */
static bool next_matrix(wf_score_reader *reader, struct totals *totals, const wf_progress *progress,
                        wf_matrix *matrix) {
  for (;;) {
    wf_error err = {0};
    bool done;
    if (progress->fn != NULL)
      progress->fn(progress->user, "reading scores", wf_score_reader_fraction(reader));
    if (wf_score_reader_next(reader, matrix, &done, &err) == WF_OK) {
      if (done) return false;
      totals->utterances++;
      totals->frames += (uint64_t)matrix->num_frames;
      return true;
    }
    totals->failed++;
    totals->no_memory |= err.code == WF_ERR_MEMORY;
    bool lost = wf_score_reader_lost_rest(reader);
    totals->lost_rest |= lost;
    cli_note("%s%s", err.message, lost ? "; the rest of that archive is lost" : "");
    wf_matrix_clear(matrix);
  }
}

static int exit_code(const struct totals *totals) {
  return cli_failure_code(totals->failed, totals->lost_rest, totals->no_memory);
}

/* --- info -------------------------------------------------------------------------------- */

static void print_info(const wf_matrix *matrix, bool json) {
  double min = INFINITY, max = -INFINITY, sum = 0;
  uint64_t count = (uint64_t)matrix->num_frames * (uint64_t)matrix->num_columns;
  for (uint64_t i = 0; i < count; i++) {
    double value = (double)matrix->data[i];
    if (value < min) min = value;
    if (value > max) max = value;
    sum += value;
  }
  double numbers[3] = {count != 0 ? min : NAN, count != 0 ? max : NAN,
                       count != 0 ? sum / (double)count : NAN};
  static const char *const names[3] = {"min", "max", "mean"};
  if (json) {
    printf("{\"key\": ");
    cli_json_string(stdout, matrix->key);
    printf(", \"frames\": %lld, \"columns\": %d", (long long)matrix->num_frames,
           matrix->num_columns);
  } else {
    printf("%s %lld %d", matrix->key, (long long)matrix->num_frames, matrix->num_columns);
  }
  for (int i = 0; i < 3; i++) {
    if (json) {
      printf(", \"%s\": ", names[i]);
      cli_json_number(stdout, "%.6g", numbers[i]);
    } else {
      printf(" %.6g", numbers[i]);
    }
  }
  printf(json ? "}\n" : "\n");
}

static int info(int argc, char **argv) {
  bool json = false;
  wf_score_reader_options options;
  cli_parser parser = {
      .usage = "SCORES...",
      .about =
          "Prints a line for each utterance: key, frames, columns, smallest, largest and "
          "mean score. Prints totals on standard error.\n"
          "SCORES: Kaldi archives or script files, .npy and .sen "
          "files, folders of these, or '-' for standard input.\nScores that a decoder "
          "would refuse (NaN, +infinity) are reported; the exit code is then 1.",
      .min_args = 1,
      .max_args = -1};
  cli_flag_bool(&parser, "json", 0, &json, "print one JSON object per line");
  cli_table(&parser, "score_reader", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  wf_score_reader *reader;
  if (wf_score_reader_open((const char *const *)parser.args, (size_t)parser.num_args, &options,
                           &reader, &err) != WF_OK)
    return cli_fail(&err);
  struct totals totals = {0};
  wf_matrix matrix;
  const wf_progress none = {0};
  while (next_matrix(reader, &totals, &none, &matrix)) {
    print_info(&matrix, json);
    if (wf_matrix_check(&matrix, &err) != WF_OK) {
      cli_note("%s", err.message);
      totals.failed++;
    }
    wf_matrix_clear(&matrix);
  }
  wf_score_reader_free(reader);
  cli_note("%llu utterance%s, %llu frame%s, %llu error%s", (unsigned long long)totals.utterances,
           cli_s(totals.utterances), (unsigned long long)totals.frames, cli_s(totals.frames),
           (unsigned long long)totals.failed, cli_s(totals.failed));
  return exit_code(&totals);
}

/* --- copy -------------------------------------------------------------------------------- */

static bool is_folder_name(const char *path) {
  return wf__path_name(path)[0] == '\0' || wf__path_kind(path) == WF__FILE_FOLDER;
}

static int copy_all(wf_score_reader *reader, wf_matrix_writer *writer) {
  struct totals totals = {0};
  wf_matrix matrix;
  wf_error err = {0};
  wf_progress progress = cli_progress(false);
  while (next_matrix(reader, &totals, &progress, &matrix)) {
    if (wf_matrix_writer_put(writer, &matrix, &err) != WF_OK) {
      if (err.code == WF_ERR_IO || err.code == WF_ERR_MEMORY) {
        wf_matrix_clear(&matrix);
        wf_matrix_writer_abort(writer);
        return cli_fail(&err);
      }
      cli_note("%s", err.message);
      totals.failed++;
    }
    wf_matrix_clear(&matrix);
  }
  cli_progress_end();
  if (wf_matrix_writer_close(writer, &err) != WF_OK) return cli_fail(&err);
  return exit_code(&totals);
}

static int copy(int argc, char **argv) {
  const char *output = NULL;
  wf_score_reader_options options;
  wf_matrix_writer_options writing;
  cli_parser parser = {.usage = "SCORES... -o OUT",
                       .about =
                           "Converts acoustic scores. OUT is a Kaldi archive ('-': standard "
                           "output), or a folder that gets a file KEY.npy for each utterance.\n"
                           "OUT is a folder if its name ends in '/' or if that folder exists. "
                           "Utterances that cannot be read "
                           "or written are reported and skipped\n"
                           "(exit code 1, or 3 if the rest of an archive could not be read).",
                       .min_args = 1,
                       .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "archive or folder to write");
  cli_table(&parser, "score_reader", &options);
  cli_table(&parser, "matrix_writer", &writing);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) return cli_usage("no output given: -o OUT");
  if (writing.format == WF_MATRIX_ARK && is_folder_name(output)) writing.format = WF_MATRIX_NPY;
  wf_error err = {0};
  wf_score_reader *reader;
  wf_matrix_writer *writer;
  if (wf_score_reader_open((const char *const *)parser.args, (size_t)parser.num_args, &options,
                           &reader, &err) != WF_OK)
    return cli_fail(&err);
  code = wf_matrix_writer_open(output, &writing, &writer, &err) == WF_OK ? copy_all(reader, writer)
                                                                         : cli_fail(&err);
  wf_score_reader_free(reader);
  return code;
}

int cmd_matrix(int argc, char **argv) {
  static const cli_part parts[] = {
      {"matrix info", "list acoustic scores", info},
      {"matrix copy", "convert acoustic scores", copy},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART SCORES... [FLAGS]",
                      "Files of acoustic scores: Kaldi archives or script files, .npy and .sen "
                      "files, folders of these, or '-' for standard input.",
                      argc, argv);
}
