/* lattice_parts.c - cuts the history where every path goes through one token: the part before it
 * is final.
 *
 *   frame f:  a --eps--> B, and all links of frame f + 1 come from B     =>     frames 0 .. f,
 *   which end in B     and     B, frames f + 1 on
 *
 * The best path goes through B in any case. So the extra cost of a token before B is that of its
 * path to B, which is final. */
#include <math.h>
#include <string.h>

#include "search/lattice_history.h"

/* Finds the token that all links of frame f come from. Returns false if there are several, or no
 * links. */
static bool only_source(const wf__history *history, uint64_t f, uint32_t *out) {
  const wf__past_frame *frame = &history->frames.data[f];
  if (frame->first_link == frame->first_epsilon) return false;
  *out = history->links.data[frame->first_link].from;
  for (uint64_t i = frame->first_link + 1; i < frame->first_epsilon; i++)
    if (history->links.data[i].from != *out) return false;
  return true;
}

/* Returns the latest frame with such a token that the last pruning has covered; 0 if there is none
 * after the first frame. */
static uint64_t find_cut(const wf__history *history, uint32_t *token) {
  for (uint64_t f = history->num_pruned_frames; f-- > 2;)
    if (only_source(history, f, token)) return f - 1;
  return 0;
}

#define COPY_FIRST(field, count)                                                                   \
  do {                                                                                             \
    WF__TRY(wf__vec_grow(&to->field, count, "the lattice", err));                                  \
    if ((count) > 0) memcpy(to->field.data, from->field.data, (count) * sizeof *from->field.data); \
    to->field.size = count;                                                                        \
  } while (0)
#define DROP_FIRST(field, count)                                  \
  do {                                                            \
    history->field.size -= count;                                 \
    if (history->field.size > 0)                                  \
      memmove(history->field.data, history->field.data + (count), \
              history->field.size * sizeof *history->field.data); \
  } while (0)

/* Copies frames 0 .. f, which end in the token. */
static wf_status copy_part(const wf__history *from, uint64_t f, uint32_t token, wf__history *to,
                           wf_error *err) {
  const wf__past_frame *next = &from->frames.data[f + 1];
  uint64_t num_endings = next->first_token - from->frames.data[f].first_token;
  wf__history_clear(to, from->beam);
  to->keeps_loglikes = from->keeps_loglikes;
  COPY_FIRST(frames, f + 1);
  COPY_FIRST(tokens, next->first_token);
  if (from->contexts.size > 0) COPY_FIRST(contexts, next->first_token);
  if (from->labels.size > 0) COPY_FIRST(labels, next->first_token);
  COPY_FIRST(links, next->first_link);
  if (from->keeps_loglikes) COPY_FIRST(loglikes, next->first_link);
  WF__TRY(wf__vec_grow(&to->endings, num_endings, "the lattice", err));
  for (uint64_t i = 0; i < num_endings; i++) to->endings.data[i] = i == token ? 0 : INFINITY;
  to->endings.size = num_endings;
  return WF_OK;
}

/* Drops that part. The rest begins with the token, alone in frame f. */
static void drop_part(wf__history *history, uint64_t f, uint32_t token) {
  const wf__past_frame *next = &history->frames.data[f + 1];
  uint64_t first = history->frames.data[f].first_token, dropped_tokens = next->first_token - 1,
           dropped_links = next->first_link;
  for (uint64_t i = next->first_link; i < next->first_epsilon; i++) history->links.data[i].from = 0;
  history->tokens.data[dropped_tokens] = history->tokens.data[first + token];
  if (history->contexts.size > 0)
    history->contexts.data[dropped_tokens] = history->contexts.data[first + token];
  if (history->labels.size > 0)
    history->labels.data[dropped_tokens] = history->labels.data[first + token];
  DROP_FIRST(tokens, dropped_tokens);
  if (history->contexts.size > 0) DROP_FIRST(contexts, dropped_tokens);
  if (history->labels.size > 0) DROP_FIRST(labels, dropped_tokens);
  DROP_FIRST(links, dropped_links);
  if (history->keeps_loglikes) DROP_FIRST(loglikes, dropped_links);
  DROP_FIRST(frames, f);
  history->frames.data[0] = (wf__past_frame){.number = history->frames.data[0].number};
  for (uint64_t i = 1; i < history->frames.size; i++) {
    wf__past_frame *frame = &history->frames.data[i];
    frame->first_token -= dropped_tokens;
    frame->first_link -= dropped_links;
    frame->first_epsilon -= dropped_links;
  }
  history->num_pruned_frames -= f;
}

/* Moves the part of the history before the latest token that every path goes through into `part`
 * (empty if there is no such token). `part` is a history of *num_frames frames that is pruned and
 * has its endings. */
static wf_status take_part(wf__history *history, wf__history *part, int64_t *num_frames,
                           wf_error *err) {
  uint32_t token = 0;
  wf__history_clear(part, history->beam);
  if (history->frames.size < 2) return WF_OK;
  WF__TRY(wf__history_prune(history, err));
  uint64_t f = find_cut(history, &token);
  if (f == 0) return WF_OK;
  *num_frames = history->frames.data[f + 1].number;
  WF__TRY(copy_part(history, f, token, part, err));
  drop_part(history, f, token);
  return WF_OK;
}

wf_status wf__history_commit(wf__history *history, const wf_graph *graph,
                             const wf_decoder_options *options, wf__scoring *scoring,
                             wf_lattice **out, wf_error *err) {
  wf__history part = {0};
  int64_t num_frames = 0;
  *out = NULL;
  wf_status status = take_part(history, &part, &num_frames, err);
  if (status == WF_OK && part.frames.size > 0)
    status = wf__history_lattice(&part, graph, options, NULL, scoring, num_frames, false, out, err);
  wf__history_free(&part);
  return status;
}
