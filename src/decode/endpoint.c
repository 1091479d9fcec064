/* endpoint.c - the rules, and the list of columns that are silence. */
#include "decode/endpoint.h"

#include <string.h>

#include "base/input.h"

/* A number or a range, `7-9`. */
static bool parse_range(const char *at, size_t size, int64_t *first, int64_t *last) {
  const char *dash = memchr(at, '-', size);
  size_t left = dash != NULL ? (size_t)(dash - at) : size;
  if (!wf__parse_i64((wf__span){at, left}, first) || *first < 0) return false;
  *last = *first;
  if (dash != NULL && !wf__parse_i64((wf__span){dash + 1, size - left - 1}, last)) return false;
  return *last >= *first && *last < INT32_MAX;
}

static wf_status mark_silence(wf__endpointer *endpointer, const wf_graph *graph, const char *list,
                              wf_error *err) {
  for (const char *at = list; at != NULL && at[0] != '\0';) {
    size_t size = strcspn(at, ",");
    int64_t first, last;
    if (!parse_range(at, size, &first, &last))
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "silence '%.80s': expected columns and ranges of columns, such as 0,7-9",
                      list);
    for (int32_t label = 1; label < graph->num_labels; label++)
      if (graph->columns[label] >= first && graph->columns[label] <= last)
        endpointer->silent[label] = true;
    at += size;
    if (at[0] == ',' && (++at)[0] == '\0')
      return wf__fail(err, WF_ERR_ARGUMENT, "silence '%.80s' ends with a comma", list);
  }
  return WF_OK;
}

wf_status wf__endpointer_open(wf__endpointer *endpointer, const wf_graph *graph, int32_t blank,
                              const wf_stream_options *options, wf_error *err) {
#define RULE(n)                                                                         \
  {options->rule##n##_must_contain_nonsilence, options->rule##n##_min_trailing_silence, \
   options->rule##n##_max_relative_cost, options->rule##n##_min_utterance_length}
  *endpointer = (wf__endpointer){.frame_shift = (double)options->frame_shift,
                                 .rules = {RULE(1), RULE(2), RULE(3), RULE(4), RULE(5)}};
#undef RULE
  endpointer->silent = wf__calloc((uint64_t)graph->num_labels, sizeof *endpointer->silent);
  if (endpointer->silent == NULL)
    return wf__fail_memory(err, (uint64_t)graph->num_labels, "a stream");
  endpointer->silent[0] = true;
  for (int32_t label = 1; label < graph->num_labels; label++)
    endpointer->silent[label] = blank >= 0 && graph->columns[label] == blank;
  WF__TRY(mark_silence(endpointer, graph, options->silence, err));
  for (int32_t label = 1; label < graph->num_labels; label++)
    endpointer->hears_silence = endpointer->hears_silence || endpointer->silent[label];
  return WF_OK;
}

void wf__endpointer_close(wf__endpointer *endpointer) {
  free(endpointer->silent);
  endpointer->silent = NULL;
}

int64_t wf__trailing_silence(const wf__endpointer *endpointer, const int32_t *alignment,
                             int64_t num_frames) {
  int64_t count = 0;
  while (count < num_frames && endpointer->silent[alignment[num_frames - 1 - count]]) count++;
  return count;
}

bool wf__endpoint_waits(const wf__endpointer *endpointer, int64_t num_frames) {
  const double length = (double)num_frames * endpointer->frame_shift;
  for (int32_t i = 0; i < 5; i++) {
    const float wait = endpointer->rules[i].min_trailing_silence;
    if (wait > 0 && length >= (double)wait) return true;
  }
  return false;
}

int32_t wf__endpoint(const wf__endpointer *endpointer, int64_t num_frames, int64_t num_silent,
                     double relative_cost) {
  double length = (double)num_frames * endpointer->frame_shift,
         silence = (double)num_silent * endpointer->frame_shift;
  for (int32_t i = 0; i < 5; i++) {
    const wf__endpoint_rule *rule = &endpointer->rules[i];
    bool cheap =
        relative_cost <= (double)rule->max_relative_cost || rule->max_relative_cost >= 1e30f;
    /* A tolerance of a hundredth of a frame for rounding in products such as 3 x 0.04. */
    double tolerance = endpointer->frame_shift * 0.01;
    if ((num_frames > num_silent || !rule->must_contain_nonsilence) &&
        silence + tolerance >= (double)rule->min_trailing_silence && cheap &&
        length + tolerance >= (double)rule->min_utterance_length)
      return i + 1;
  }
  return 0;
}
