/* captions.h - words with times as captions: SRT or WebVTT. */
#ifndef WF_IO_CAPTIONS_H
#define WF_IO_CAPTIONS_H

#include "base/output.h"

typedef enum wf__caption_format { WF__CAPTIONS_SRT, WF__CAPTIONS_VTT } wf__caption_format;

/* Writes the captions of one recording; start_frame and end_frame are multiplied by frame_shift,
 * in seconds. Without words, an SRT file is empty and a VTT file has only its first line. */
void wf__captions_write(wf__output *output, wf__caption_format format, double frame_shift,
                        const wf_timed_word *words, size_t num_words);

#endif
