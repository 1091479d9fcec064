/* kaldi_prefix.h - the prefixes of Kaldi's table names: "ark,t:PATH", "scp,p:PATH",
 * "ark,scp:ARCHIVE,SCRIPT". Other text before a colon is part of a file name, and "./ark:x" is a
 * file named "ark:x". */
#ifndef WF_BASE_KALDI_PREFIX_H
#define WF_BASE_KALDI_PREFIX_H

#include "base/error.h"

typedef struct wf__kaldi_prefix {
  bool archive, script; /* "ark", "scp" */
  bool text, binary;    /* options "t", "b" */
  const char *rest;     /* the text after the prefix, or all of it */
} wf__kaldi_prefix;

/* Error: a prefix with an unknown option. */
wf_status wf__kaldi_prefix_take(const char *text, wf__kaldi_prefix *out, wf_error *err);
/* True if the text, without blanks around it, begins or ends with '|': a command for Kaldi. */
bool wf__kaldi_is_pipe(const char *text);
/* Error: an output path with a prefix, or a pipe. For outputs that are no tables. */
wf_status wf__kaldi_refuse(const char *path, wf_error *err);
/* For writers of tables: takes the prefix off the path. `*script`: set from "ark,scp:" (malloc'ed,
 * as is *archive). Errors: pipes, "scp:" alone. */
typedef struct wf__kaldi_table {
  char *archive, *script; /* script: NULL if there is none */
  bool text, binary;      /* asked for by the prefix */
} wf__kaldi_table;
wf_status wf__kaldi_table_parse(const char *path, wf__kaldi_table *out, wf_error *err);
void wf__kaldi_table_free(wf__kaldi_table *table);

#endif
