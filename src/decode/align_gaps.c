/* align_gaps.c - the third state of boundaries, and words that are left out. */
#include "decode/align_gaps.h"

#include <math.h>

/* Back-pointers of a boundary. */
enum {
  GARBAGE_FROM_BLANK = 1,
  GARBAGE_FROM_TOKEN = 2,
  GARBAGE_FROM_SKIP = 3,
  GARBAGE_FROM = 3, /* mask; 0: garbage */
  BLANK_FROM_GARBAGE = 4,
  BLANK_FROM_SKIP = 8,
  TOKEN_FROM_GARBAGE = 16,
  LEAVE_BLANK = 32, /* the next word is left out from the blank, the garbage, or the token */
  LEAVE_GARBAGE = 64,
  LEAVE_SKIPPED = 128 /* the word before was left out, too */
};

typedef struct choice {
  float sum;
  int from;
} choice;

/* The first of equal ones stays. */
static inline void consider(choice *best, float sum, int from) {
  if (sum > best->sum) *best = (choice){sum, from};
}

void wf__align_gaps_advance(const wf__align_gaps *gaps, const wf__align_frame *frame,
                            float garbage_score, uint8_t *back) {
  float skipped = -INFINITY; /* the best way here that leaves out the word before */
  for (size_t w = 0; w < gaps->count; w++) {
    size_t p = gaps->place[w];
    float token = frame->now.token[(ptrdiff_t)p - 1], blank = frame->now.blank[p],
          garbage = gaps->now[w], blank_score = frame->scores[frame->blank],
          token_score = frame->scores[frame->column[p]];
    choice to_blank = {frame->next.blank[p], 0}, to_token = {frame->next.token[p], 0},
           to_garbage = {garbage, 0}, leave = {token, 0};
    consider(&to_blank, garbage + blank_score, BLANK_FROM_GARBAGE);
    consider(&to_blank, skipped + blank_score, BLANK_FROM_SKIP);
    consider(&to_token, garbage + token_score, TOKEN_FROM_GARBAGE);
    consider(&to_garbage, blank, GARBAGE_FROM_BLANK);
    consider(&to_garbage, token, GARBAGE_FROM_TOKEN);
    consider(&to_garbage, skipped, GARBAGE_FROM_SKIP);
    consider(&leave, blank, LEAVE_BLANK);
    consider(&leave, garbage, LEAVE_GARBAGE);
    consider(&leave, skipped, LEAVE_SKIPPED);
    frame->next.blank[p] = to_blank.sum;
    frame->next.token[p] = to_token.sum;
    gaps->next[w] = to_garbage.sum + garbage_score;
    skipped = leave.sum - gaps->skip_cost;
    if (back != NULL)
      back[w] = (uint8_t)(to_blank.from | to_token.from | to_garbage.from | leave.from);
  }
}

bool wf__align_gaps_trace(const wf__align_gaps *gaps, const uint8_t *back, int64_t frame,
                          wf__align_state *at, wf_aligned_token *tokens) {
  int32_t w = gaps->boundary[at->place];
  if (w < 0) return false;
  int garbage_from = at->kind == WF__AT_GARBAGE ? back[w] & GARBAGE_FROM : 0;
  if (garbage_from == GARBAGE_FROM_SKIP ||
      (at->kind == WF__AT_BLANK && (back[w] & BLANK_FROM_SKIP) != 0)) {
    do {
      w--;
      for (size_t i = gaps->place[w]; i < gaps->place[w + 1]; i++)
        tokens[i].start_frame = tokens[i].end_frame = (int32_t)frame;
    } while ((back[w] & LEAVE_SKIPPED) != 0);
    *at = (back[w] & LEAVE_BLANK) != 0     ? (wf__align_state){gaps->place[w], WF__AT_BLANK}
          : (back[w] & LEAVE_GARBAGE) != 0 ? (wf__align_state){gaps->place[w], WF__AT_GARBAGE}
                                           : (wf__align_state){gaps->place[w] - 1, WF__AT_TOKEN};
    return true;
  }
  if (garbage_from == GARBAGE_FROM_BLANK) at->kind = WF__AT_BLANK;
  if (garbage_from == GARBAGE_FROM_TOKEN) *at = (wf__align_state){at->place - 1, WF__AT_TOKEN};
  if (at->kind == WF__AT_GARBAGE || garbage_from != 0) return true;
  if ((at->kind == WF__AT_BLANK && (back[w] & BLANK_FROM_GARBAGE) != 0) ||
      (at->kind == WF__AT_TOKEN && (back[w] & TOKEN_FROM_GARBAGE) != 0)) {
    at->kind = WF__AT_GARBAGE;
    return true;
  }
  return false;
}
