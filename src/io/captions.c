/* captions.c - splits words into captions of at most two lines and a few seconds, without a long
 * pause inside, and writes them as SRT or WebVTT. */
#include "io/captions.h"

#include <math.h>
#include <string.h>

/* At most two lines of 42 letters and 6 seconds, as is usual for subtitles. */
enum { MAX_LETTERS = 84 };
static const double MAX_SECONDS = 6 + 1e-6, MAX_PAUSE = 1 + 1e-6; /* for sums of frames */

/* Letters of UTF-8 text: bytes that do not continue a letter. */
static size_t num_letters(const char *text) {
  size_t count = 0;
  for (; *text != '\0'; text++) count += ((unsigned char)*text & 0xC0) != 0x80;
  return count;
}

/* The number of the first words that make a caption, and their letters with blanks between. */
static size_t take(const wf_timed_word *words, size_t num_words, double frame_shift,
                   size_t *letters) {
  *letters = num_letters(words[0].text);
  size_t taken = 1;
  for (; taken < num_words; taken++) {
    const wf_timed_word *word = &words[taken];
    const size_t longer = *letters + 1 + num_letters(word->text);
    const double seconds = ((double)word->end_frame - words[0].start_frame) * frame_shift,
                 pause = ((double)word->start_frame - words[taken - 1].end_frame) * frame_shift;
    if (longer > MAX_LETTERS || seconds > MAX_SECONDS || pause > MAX_PAUSE) break;
    *letters = longer;
  }
  return taken;
}

static void put_time(wf__output *output, double seconds, char point) {
  const long long ms = (long long)floor(seconds * 1000 + 0.5);
  wf__printf(output, "%02lld:%02lld:%02lld%c%03lld", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60,
             point, ms % 1000);
}

/* In WebVTT, '&' and '<' begin markup. */
static void put_word(wf__output *output, const char *text, bool escape) {
  for (; *text != '\0'; text++) {
    if (escape && *text == '&')
      wf__write_text(output, "&amp;");
    else if (escape && *text == '<')
      wf__write_text(output, "&lt;");
    else
      wf__write(output, text, 1);
  }
}

/* Writes the words in one line, or in two if they are too long for one. */
static void put_lines(wf__output *output, const wf_timed_word *words, size_t num_words,
                      size_t letters, bool escape) {
  bool broken = letters <= MAX_LETTERS / 2;
  size_t at = 0;
  for (size_t i = 0; i < num_words; i++) {
    const bool breaks = !broken && at >= letters / 2;
    if (i > 0) wf__write(output, breaks ? "\n" : " ", 1);
    broken = broken || (i > 0 && breaks);
    put_word(output, words[i].text, escape);
    at += num_letters(words[i].text) + (i > 0);
  }
}

void wf__captions_write(wf__output *output, wf__caption_format format, double frame_shift,
                        const wf_timed_word *words, size_t num_words) {
  const bool vtt = format == WF__CAPTIONS_VTT;
  const char point = vtt ? '.' : ',';
  size_t number = 0, letters;
  if (vtt) wf__write_text(output, "WEBVTT\n");
  for (size_t i = 0, taken; i < num_words; i += taken) {
    taken = take(words + i, num_words - i, frame_shift, &letters);
    if (vtt || number > 0) wf__write_text(output, "\n");
    if (!vtt) wf__printf(output, "%zu\n", number + 1);
    number++;
    put_time(output, words[i].start_frame * frame_shift, point);
    wf__write_text(output, " --> ");
    put_time(output, words[i + taken - 1].end_frame * frame_shift, point);
    wf__write_text(output, "\n");
    put_lines(output, words + i, taken, letters, vtt);
    wf__write_text(output, "\n");
  }
}
