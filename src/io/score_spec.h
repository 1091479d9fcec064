/* score_spec.h - what a score source named on the command line is, and the script files that name
 * many.
 *
 *     "ark,t:foo"  -> archive foo          folder       -> its .npy and .sen files, sorted
 *     "scp:foo"    -> entries of foo       foo          -> by content: .npy, .sen, archive, script
 *                  file */
#ifndef WF_IO_SCORE_SPEC_H
#define WF_IO_SCORE_SPEC_H

#include "base/input.h"
#include "base/memory.h"

/* One matrix in a file, from a script file or a folder. */
typedef struct wf__score_entry {
  char *key, *path;
  uint64_t offset;
  bool has_offset;
  bool has_rows, has_columns; /* ranges, inclusive */
  int64_t rows[2], columns[2];
} wf__score_entry;

typedef struct wf__score_spec {
  char *path;
  bool is_archive; /* else the entries say it all */
  WF__VEC(wf__score_entry) entries;
} wf__score_spec;

/* Reads script files and folders whole; archives only have to exist. The error names the source. */
wf_status wf__score_spec_parse(const char *source, wf__score_spec *out, wf_error *err);
/* Script lines from memory, for tests and fuzzing. */
wf_status wf__score_script_parse(wf__lines lines, wf__score_spec *out, wf_error *err);
void wf__score_spec_free(wf__score_spec *spec);

#endif
