/* fuzz_transcripts.c - reads arbitrary bytes as transcripts in each format, then aligns the first
 * transcript with the last. */
#include <stdlib.h>

#include "io/transcripts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void align_some(const wf_transcripts *transcripts, bool cer) {
  wf_error err;
  wf_wer_options options;
  wf_wer *wer;
  wf_wer_counts counts;
  size_t count = wf_transcripts_count(transcripts);
  wf_wer_options_init(&options);
  options.cer = options.ignore_case = cer;
  if (count == 0 || wf_wer_create(&options, &wer, &err) != WF_OK) return;
  wf_transcript first = wf_transcripts_at(transcripts, 0),
                last = wf_transcripts_at(transcripts, count - 1);
  if (wf_wer_add(wer, &first, &last, &counts, &err) == WF_OK &&
      counts.num_correct + counts.num_substitutions + counts.num_deletions != counts.num_words)
    abort();
  wf_wer_free(wer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  wf__lines lines = {(const char *)data, (const char *)data + size, "fuzz.txt", 0};
  for (int format = WF_TRANSCRIPT_AUTO; format <= WF_TRANSCRIPT_JSON; format++) {
    wf_error err;
    wf_transcripts *transcripts;
    if (wf__transcripts_parse(lines, (wf_transcript_format)format, &transcripts, &err) != WF_OK)
      continue;
    if (size < 5000) align_some(transcripts, format == WF_TRANSCRIPT_AUTO);
    wf_transcripts_free(transcripts);
  }
  return 0;
}
