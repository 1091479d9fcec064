/* time_note.c - says on what the times in the results rest, if the command line does not. */
#include "time_note.h"

void cli_note_times(const cli_parser *parser, const wf_result_writer_options *writing,
                    bool are_estimates) {
  if (writing->format != WF_RESULTS_CTM && writing->format != WF_RESULTS_JSON) return;
  if (!cli_is_given(parser, "frame_shift"))
    cli_note("times: %g ms a frame (--frame-shift=SECONDS sets it)",
             1000 * (double)writing->frame_shift);
  if (are_estimates)
    cli_note("word times are estimates; exact with --am, --tokens [--lexicon] or a native graph");
}
