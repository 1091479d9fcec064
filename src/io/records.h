/* records.h - iterates over the records of Kaldi archives and script files. The readers of scores
 * and of lattices use it.
 *
 *     specs[0] specs[1] ... specs[current] ...
 *     each spec is an archive (read through `source`) or a list of entries (`entry` is the next)
 *
 * Consecutive entries in the same file share its mapping (`file`). */
#ifndef WF_IO_RECORDS_H
#define WF_IO_RECORDS_H

#include "base/source.h"
#include "io/score_spec.h"

typedef struct wf__records {
  wf__score_spec *specs;
  size_t num_specs, current;
  uint64_t entry;    /* index of the next entry of the current spec */
  wf__source source; /* the current archive */
  bool source_open;
  wf__input file; /* the file of the last entry */
  char *file_path;
  bool lines;     /* a key may be followed by the end of its line, if the value is text */
  bool lost_rest; /* after the last error, the rest of its archive cannot be read */
} wf__records;

/* Reads the value at the current position of the source. `entry` is the entry of the script file or
 * folder; NULL in an archive. On failure `*lost` is true if the end of the value is unknown. */
typedef wf_status wf__record_fn(void *user, wf__source *source, const wf__score_entry *entry,
                                bool *lost, wf_error *err);

/* Errors: those of wf_score_reader_open. */
wf_status wf__records_open(const char *const *sources, size_t num_sources, wf__records *out,
                           wf_error *err);
/* Gets the next key (malloc'ed) and calls `read` for its value, or sets `*done`. An error concerns
 * one record. `*key` is then NULL if the key could not be read. */
wf_status wf__records_next(wf__records *records, wf__record_fn *read, void *user, char **key,
                           bool *done, wf_error *err);
/* Fraction of the input read so far; negative if unknown. */
double wf__records_fraction(const wf__records *records);
void wf__records_close(wf__records *records);

#endif
