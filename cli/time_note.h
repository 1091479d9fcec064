/* time_note.h - says on what the times in the results rest, if the command line does not. */
#ifndef WARPFST_CLI_TIME_NOTE_H
#define WARPFST_CLI_TIME_NOTE_H

#include "cli.h"

/* Notes, if the format has times, how long a frame is taken to be, unless --frame-shift says it,
 * and whether the times of words are estimates. */
void cli_note_times(const cli_parser *parser, const wf_result_writer_options *writing,
                    bool are_estimates);

#endif
