/* score_spec.h - parses score sources, as given on the command line, and script files.
 *
 *     "ark,t:foo"  archive foo
 *     "scp:foo"    the entries of script file foo
 *     folder       its .npy and .sen files, sorted by key
 *     foo          .npy or .sen file, archive or script file, by content */
#ifndef WF_IO_SCORE_SPEC_H
#define WF_IO_SCORE_SPEC_H

#include "base/input.h"
#include "base/memory.h"

/* One matrix in a file, from a script file or a folder. */
typedef struct wf__score_entry {
  char *key, *path;
  char *error; /* of a malformed line, which fails only its utterance; NULL: none */
  uint64_t offset;
  bool has_offset;
  bool has_rows, has_columns;  /* ranges, inclusive */
  int64_t rows[2], columns[2]; /* last: INT64_MAX if open, as in "[5:]" */
} wf__score_entry;

typedef struct wf__score_spec {
  char *path;
  bool is_archive; /* else `entries` are the records */
  WF__VEC(wf__score_entry) entries;
} wf__score_spec;

/* Reads script files and folders completely. Archives only have to exist. Error messages name the
 * source. */
wf_status wf__score_spec_parse(const char *source, wf__score_spec *out, wf_error *err);
/* Parses a script file in memory; for tests and fuzzing too. A line with a wrong range, offset or
 * path becomes an entry with an error. Errors: bytes that are not text; commands. */
wf_status wf__score_script_parse(wf__lines lines, wf__score_spec *out, wf_error *err);
void wf__score_spec_free(wf__score_spec *spec);

#endif
