/* records.h - the records of Kaldi archives and script files, one after the other, whatever they
 * hold: scores and lattices are read through this.
 *
 *     specs[0] specs[1] ... specs[current] ...        each an archive (source, while it is read) or
 *     a list of entries (entry)
 *
 * Entries that follow each other in one file share its mapping (`file`). */
#ifndef WF_IO_RECORDS_H
#define WF_IO_RECORDS_H

#include "io/score_spec.h"
#include "io/source.h"

typedef struct wf__records {
  wf__score_spec *specs;
  size_t num_specs, current;
  uint64_t entry;    /* next of the current spec */
  wf__source source; /* of the current archive */
  bool source_open;
  wf__input file; /* of the last entry */
  char *file_path;
  bool lines;     /* a key may be followed by the end of its line: text that starts on the next */
  bool lost_rest; /* the last error lost the rest of an archive */
} wf__records;

/* Reads the value at the source's place. `entry` is what the script file says about it; NULL in an
 * archive. On failure `*lost` tells whether the place behind the value is unknown. */
typedef wf_status wf__record_fn(void *user, wf__source *source, const wf__score_entry *entry,
                                bool *lost, wf_error *err);

/* Errors as of wf_score_reader_open. */
wf_status wf__records_open(const char *const *sources, size_t num_sources, wf__records *out,
                           wf_error *err);
/* Next key (malloc'ed) with its value given to `read`, or `*done`. An error concerns one record;
 * the key is there if it was readable, else NULL. */
wf_status wf__records_next(wf__records *records, wf__record_fn *read, void *user, char **key,
                           bool *done, wf_error *err);
/* Share of the input read so far; negative if not known. */
double wf__records_fraction(const wf__records *records);
void wf__records_close(wf__records *records);

#endif
