/* textgrid.c - writes Praat's TextGrid files. */
#include <string.h>

#include "base/output.h"

static void write_interval(wf__output *output, size_t number, double start, double end,
                           const char *text) {
  wf__printf(output,
             "        intervals [%zu]:\n            xmin = %.4f\n            xmax = %.4f\n"
             "            text = \"",
             number, start, end);
  for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1) {
    wf__write(output, text, (size_t)(quote - text));
    wf__write_text(output, "\"\"");
  }
  wf__write_text(output, text);
  wf__write_text(output, "\"\n");
}

/* Writes the intervals of a tier, or only counts them if `output` is NULL. */
static size_t write_intervals(wf__output *output, const wf_textgrid_tier *tier, int64_t num_frames,
                              double frame_shift) {
  size_t number = 0;
  int64_t at = 0;
  for (size_t i = 0; i <= tier->num_words; i++) {
    int64_t start = i < tier->num_words ? tier->words[i].start_frame : num_frames;
    if (start > at && ++number > 0 && output != NULL)
      write_interval(output, number, (double)at * frame_shift, (double)start * frame_shift, "");
    if (i == tier->num_words) break;
    at = tier->words[i].end_frame;
    if (++number > 0 && output != NULL)
      write_interval(output, number, (double)start * frame_shift, (double)at * frame_shift,
                     tier->words[i].text);
  }
  return number;
}

wf_status wf_textgrid_write(const char *path, const wf_textgrid_tier *tiers, size_t num_tiers,
                            int64_t num_frames, float frame_shift, wf_error *err) {
  wf__error_clear(err);
  wf__output *output;
  double shift = (double)frame_shift, end = (double)num_frames * shift;
  WF__TRY(wf__output_open(path, &output, err));
  wf__write_text(output, "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n");
  wf__printf(output, "xmin = 0.0000\nxmax = %.4f\ntiers? <exists>\nsize = %zu\nitem []:\n", end,
             num_tiers);
  for (size_t i = 0; i < num_tiers; i++) {
    wf__printf(output,
               "    item [%zu]:\n        class = \"IntervalTier\"\n        name = \"%s\"\n"
               "        xmin = 0.0000\n        xmax = %.4f\n        intervals: size = %zu\n",
               i + 1, tiers[i].name, end, write_intervals(NULL, &tiers[i], num_frames, shift));
    (void)write_intervals(output, &tiers[i], num_frames, shift);
  }
  return wf__output_close(output, err);
}
