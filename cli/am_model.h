/* am_model.h - hybrid acoustic models given on the command line. */
#ifndef WARPFST_CLI_AM_MODEL_H
#define WARPFST_CLI_AM_MODEL_H

#include "cli.h"

/* `path` is a model folder of CMU Sphinx (with mdef), Kaldi's final.mdl, or the folder that
 * contains it. */
typedef struct am_source {
  const char *path, *tree, *lang;
} am_source;

/* --tree and --lang. */
void am_flags(cli_parser *parser, am_source *source);
/* Reads the model. The default tree is the file `tree` beside final.mdl. A missing tree is an error
 * if `needs_tree`. Without a tree, graphs cannot be built. */
wf_status am_read(const am_source *source, bool needs_tree, wf_hmm **out, wf_error *err);
bool am_is_sphinx(const am_source *source);
/* Writes `label column` lines; the file appears complete or not at all. '-' is standard output.
 * Returns the exit code. */
int am_write_columns(const wf_hmm *hmm, const char *path);

#endif
