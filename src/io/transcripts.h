/* transcripts.h - parses transcripts in memory. */
#ifndef WF_IO_TRANSCRIPTS_H
#define WF_IO_TRANSCRIPTS_H

#include "base/input.h"

wf_status wf__transcripts_parse(wf__lines lines, wf_transcript_format format, wf_transcripts **out,
                                wf_error *err);

#endif
