/* textgrid.c - writes Praat's TextGrid files. */
#include "textgrid.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void write_interval(FILE *file, size_t number, double start, double end, const char *text) {
  fprintf(file, "        intervals [%zu]:\n            xmin = %.4f\n            xmax = %.4f\n",
          number, start, end);
  fprintf(file, "            text = \"");
  for (; *text != '\0'; text++) fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
  fprintf(file, "\"\n");
}

/* Writes the intervals of a tier, or only counts them if `file` is NULL. */
static size_t write_intervals(FILE *file, const textgrid_tier *tier, int64_t num_frames,
                              double frame_shift) {
  size_t number = 0;
  int64_t at = 0;
  for (size_t i = 0; i <= tier->count; i++) {
    int64_t start = i < tier->count ? tier->items[i].start_frame : num_frames;
    if (start > at && ++number > 0 && file != NULL)
      write_interval(file, number, (double)at * frame_shift, (double)start * frame_shift, "");
    if (i == tier->count) break;
    at = tier->items[i].end_frame;
    if (++number > 0 && file != NULL)
      write_interval(file, number, (double)start * frame_shift, (double)at * frame_shift,
                     tier->items[i].text);
  }
  return number;
}

wf_status textgrid_write(const char *folder, const char *key, const textgrid_tier *tiers,
                         int num_tiers, int64_t num_frames, double frame_shift, wf_error *err) {
  char path[4096];
  int size = snprintf(path, sizeof path, "%s/%s.TextGrid", folder, key);
  double end = (double)num_frames * frame_shift;
  FILE *file = NULL;
  if (strchr(key, '/') == NULL && size < (int)sizeof path &&
      (mkdir(folder, 0777) == 0 || errno == EEXIST))
    file = fopen(path, "w");
  bool good = file != NULL;
  if (good) {
    fprintf(file, "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n");
    fprintf(file, "xmin = 0.0000\nxmax = %.4f\ntiers? <exists>\nsize = %d\nitem []:\n", end,
            num_tiers);
    for (int i = 0; i < num_tiers; i++) {
      fprintf(file, "    item [%d]:\n        class = \"IntervalTier\"\n        name = \"%s\"\n",
              i + 1, tiers[i].name);
      fprintf(file, "        xmin = 0.0000\n        xmax = %.4f\n        intervals: size = %zu\n",
              end, write_intervals(NULL, &tiers[i], num_frames, frame_shift));
      (void)write_intervals(file, &tiers[i], num_frames, frame_shift);
    }
    good = ferror(file) == 0;
    good = fclose(file) == 0 && good;
  }
  if (good) return WF_OK;
  err->code = WF_ERR_IO;
  snprintf(err->message, sizeof err->message, "%.900s: %s", path,
           strchr(key, '/') != NULL ? "the key of the utterance contains '/'" : strerror(errno));
  return WF_ERR_IO;
}
