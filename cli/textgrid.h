/* textgrid.h - Praat's TextGrid files: tiers of intervals, one file per utterance. */
#ifndef WARPFST_CLI_TEXTGRID_H
#define WARPFST_CLI_TEXTGRID_H

#include "cli.h"

typedef struct textgrid_tier {
  const char *name;
  const wf_timed_word *items; /* [count], in order of time */
  size_t count;
} textgrid_tier;

/* Writes FOLDER/KEY.TextGrid, in Praat's long text format and UTF-8. The folder is made if it is
 * missing. Time between items is an interval without text. Errors: a key with '/'. */
wf_status textgrid_write(const char *folder, const char *key, const textgrid_tier *tiers,
                         int num_tiers, int64_t num_frames, double frame_shift, wf_error *err);

#endif
