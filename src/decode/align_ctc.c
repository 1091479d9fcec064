/* align_ctc.c - forced alignment: the best CTC path of given tokens.
 *
 * With L tokens there are L + 1 places. Place i has two states: the blank before token i, and token
 * i itself (place L only has the blank). In a frame, token i follows itself, its blank, or token i
 * - 1 if that is another token; blank i follows itself or token i - 1 (Graves et al. 2006).
 *
 * The frames are cut into segments. A first pass over all but the last stores the sums of all
 * states at the start of each segment. Then, from the last segment to the first, the sums are
 * computed again with back-pointers and the path is traced through the segment. A path moves on by
 * at most one place per frame, so the segment's frames bound how many places are computed again. */
#include <stdio.h>

#include "base/config.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "math/score.h"

enum { SEGMENT = 1024 }; /* frames */

/* Sums of the states of all places. token[-1] is -infinity. token[L] is computed but never used. */
typedef struct sums {
  float *token, *blank;
} sums;

typedef struct aligner {
  const wf_align_input *input;
  int32_t blank;
  size_t num_places; /* L + 1 */
  int32_t *columns;  /* the distinct columns; columns[0] is the blank */
  int32_t *numbers;  /* [columns of the scores]; place in `columns`, or -1 */
  size_t num_columns;
  float *row;     /* scores of one frame in these columns */
  uint32_t *kind; /* [places] token i's place in `columns` and `row`; 0 for place L */
  float *skip;    /* [places] 0: token i may follow token i - 1; -infinity: they are equal */
  float *memory;  /* of `now`, `next` and `starts` */
  sums now, next;
  float *starts; /* [segments][2][places] sums before the first frame of each segment */
  uint8_t *back; /* [frames of a segment][window] BACK_* of each place */
  wf_alignment *out;
} aligner;

enum { TOKEN_STAYS = 0, TOKEN_FROM_BLANK = 1, TOKEN_FROM_TOKEN = 2, BLANK_FROM_TOKEN = 4 };

/* --- the sums of a frame ----------------------------------------------------------------- */

static wf_status read_row(aligner *a, int64_t frame, wf_error *err) {
  for (size_t c = 0; c < a->num_columns; c++) {
    a->row[c] = wf__score_at(&a->input->scores, frame, a->columns[c]);
    if (!wf__score_usable(a->row[c]))
      return wf__fail(err, WF_ERR_FORMAT, "score %g in frame %lld, column %d", (double)a->row[c],
                      (long long)frame, a->columns[c]);
  }
  return WF_OK;
}

/* Computes places [0, end). */
static void advance(const float *restrict row, const uint32_t *restrict kind,
                    const float *restrict skip, const float *restrict token,
                    const float *restrict blank, float *restrict next_token,
                    float *restrict next_blank, size_t end) {
  for (size_t i = 0; i < end; i++) {
    float before = token[(ptrdiff_t)i - 1], stay = token[i], wait = blank[i],
          jump = before + skip[i], best = wait > stay ? wait : stay;
    best = jump > best ? jump : best;
    next_token[i] = best + row[kind[i]];
    next_blank[i] = (before > wait ? before : wait) + row[0];
  }
}

/* The same, with back-pointers. */
static void advance_traced(const float *restrict row, const uint32_t *restrict kind,
                           const float *restrict skip, const float *restrict token,
                           const float *restrict blank, float *restrict next_token,
                           float *restrict next_blank, uint8_t *restrict back, size_t end) {
  for (size_t i = 0; i < end; i++) {
    float before = token[(ptrdiff_t)i - 1], stay = token[i], wait = blank[i],
          jump = before + skip[i], best = wait > stay ? wait : stay;
    int from = wait > stay ? TOKEN_FROM_BLANK : TOKEN_STAYS;
    from = jump > best ? TOKEN_FROM_TOKEN : from;
    best = jump > best ? jump : best;
    next_token[i] = best + row[kind[i]];
    next_blank[i] = (before > wait ? before : wait) + row[0];
    back[i] = (uint8_t)(from | (before > wait ? BLANK_FROM_TOKEN : 0));
  }
}

static void swap_sums(aligner *a) {
  sums now = a->now;
  a->now = a->next;
  a->next = now;
}

/* --- first pass -------------------------------------------------------------------------- */

static void store_start(aligner *a, int64_t frame) {
  float *start = a->starts + (size_t)(frame / SEGMENT) * 2 * a->num_places;
  memcpy(start, a->now.token, a->num_places * sizeof *start);
  memcpy(start + a->num_places, a->now.blank, a->num_places * sizeof *start);
}

static wf_status pass_forward(aligner *a, wf_error *err) {
  int64_t last = (a->out->num_frames - 1) / SEGMENT * SEGMENT;
  a->now.blank[0] = 0; /* the state before the first frame */
  for (int64_t t = 0; t < last; t++) {
    size_t reached = (uint64_t)t + 1 < a->num_places ? (size_t)t + 1 : a->num_places;
    if (t % SEGMENT == 0) store_start(a, t);
    WF__TRY(wf__interrupted_at((uint64_t)t, err));
    WF__TRY(read_row(a, t, err));
    advance(a->row, a->kind, a->skip, a->now.token, a->now.blank, a->next.token, a->next.blank,
            reached);
    swap_sums(a);
  }
  store_start(a, last);
  return WF_OK;
}

/* --- the path ---------------------------------------------------------------------------- */

/* A state of the path. */
typedef struct state {
  size_t place;
  bool is_token;
} state;

/* Computes the sums of places [first, first + size) from the start of a segment to its end. */
static wf_status compute_segment(aligner *a, int64_t start, int64_t end, size_t first, size_t size,
                                 wf_error *err) {
  const float *stored = a->starts + (size_t)(start / SEGMENT) * 2 * a->num_places + first;
  memcpy(a->now.token, stored, size * sizeof *stored);
  memcpy(a->now.blank, stored + a->num_places, size * sizeof *stored);
  for (int64_t t = start; t < end; t++) {
    WF__TRY(wf__interrupted_at((uint64_t)(t - start), err));
    WF__TRY(read_row(a, t, err));
    advance_traced(a->row, a->kind + first, a->skip + first, a->now.token, a->now.blank,
                   a->next.token, a->next.blank, a->back + (size_t)(t - start) * size, size);
    swap_sums(a);
  }
  return WF_OK;
}

/* Follows the back-pointers of a segment from the state in its last frame. Leaves in `*at` the
 * state in the frame before the segment. */
static void trace_segment(aligner *a, int64_t start, int64_t end, size_t first, size_t size,
                          state *at) {
  for (int64_t t = end; t-- > start;) {
    uint8_t back = a->back[(size_t)(t - start) * size + at->place - first];
    if (!at->is_token) {
      if ((back & BLANK_FROM_TOKEN) != 0) *at = (state){at->place - 1, true};
      continue;
    }
    wf_aligned_token *token = &a->out->tokens[at->place];
    if (token->end_frame == 0) token->end_frame = (int32_t)t + 1;
    token->start_frame = (int32_t)t;
    if ((back & 3) == TOKEN_FROM_BLANK) at->is_token = false;
    if ((back & 3) == TOKEN_FROM_TOKEN) at->place--;
  }
}

/* Chooses the last state, and sets the path's log-probability. The sums are those of places from
 * `first` on. */
static wf_status choose_end(aligner *a, size_t first, state *at, wf_error *err) {
  float token = a->now.token[(ptrdiff_t)(a->num_places - 1 - first) - 1],
        blank = a->now.blank[a->num_places - 1 - first];
  if (token == -INFINITY && blank == -INFINITY)
    return wf__fail(err, WF_ERR_FORMAT,
                    "no alignment: each has a score of -infinity (probability 0) in some frame");
  if (token >= blank) *at = (state){a->num_places - 2, true};
  a->out->log_prob = token >= blank ? token : blank;
  return WF_OK;
}

static wf_status find_path(aligner *a, wf_error *err) {
  int64_t end = a->out->num_frames;
  state at = {a->num_places - 1, false};
  for (int64_t start = (end - 1) / SEGMENT * SEGMENT; start >= 0; start -= SEGMENT) {
    size_t frames = (size_t)(end - start),
           first = at.place > frames + 1 ? at.place - frames - 1 : 0, size = at.place + 1 - first;
    WF__TRY(compute_segment(a, start, end, first, size, err));
    if (end == a->out->num_frames) WF__TRY(choose_end(a, first, &at, err));
    trace_segment(a, start, end, first, size, &at);
    end = start;
  }
  return WF_OK;
}

static void sum_tokens(const aligner *a) {
  for (size_t i = 0; i < a->out->num_tokens; i++) {
    wf_aligned_token *token = &a->out->tokens[i];
    for (int64_t t = token->start_frame; t < token->end_frame; t++)
      token->log_prob += wf__score_at(&a->input->scores, t, token->column);
  }
}

/* --- one utterance ----------------------------------------------------------------------- */

static wf_status check_input(const wf_align_input *input, int32_t blank, wf_error *err) {
  const wf_scores *s = &input->scores;
  if (s->num_frames < 0 || s->num_frames > INT32_MAX || s->dtype < WF_FLOAT32 ||
      s->dtype > WF_BFLOAT16 || s->num_columns < 0 || s->stride < s->num_columns ||
      (s->data == NULL && s->num_frames > 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "invalid scores: %lld frames, %d columns, stride %lld",
                    (long long)s->num_frames, s->num_columns, (long long)s->stride);
  if (s->on_device)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the scores are in GPU memory, alignment needs them "
                    "in host memory");
  if (s->num_frames > 0 && blank >= s->num_columns)
    return wf__fail(err, WF_ERR_ARGUMENT, "the blank is column %d, the scores have %d columns",
                    blank, s->num_columns);
  uint64_t needed = input->num_tokens;
  for (size_t i = 0; i < input->num_tokens; i++) {
    int32_t column = input->tokens[i];
    if (column == blank)
      return wf__fail(err, WF_ERR_ARGUMENT, "token %zu is column %d, the blank", i, column);
    if (column < 0 || (s->num_frames > 0 && column >= s->num_columns))
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "token %zu is column %d, which the scores do not have (%d columns)", i,
                      column, s->num_columns);
    if (i > 0 && column == input->tokens[i - 1]) needed++;
  }
  if (needed > (uint64_t)s->num_frames)
    return wf__fail(err, WF_ERR_ARGUMENT, "%lld frames, but %zu tokens%s need at least %llu",
                    (long long)s->num_frames, input->num_tokens,
                    needed > input->num_tokens ? " with blanks between equal ones" : "",
                    (unsigned long long)needed);
  return WF_OK;
}

/* Numbers the distinct columns. */
static void number_columns(aligner *a) {
  const wf_align_input *input = a->input;
  memset(a->numbers, -1, (size_t)input->scores.num_columns * sizeof *a->numbers);
  a->columns[0] = a->blank;
  a->num_columns = 1;
  for (size_t i = 0; i < input->num_tokens; i++) {
    int32_t column = input->tokens[i];
    if (a->numbers[column] < 0) {
      a->numbers[column] = (int32_t)a->num_columns;
      a->columns[a->num_columns++] = column;
    }
    a->kind[i] = (uint32_t)a->numbers[column];
    a->skip[i] = i == 0 || column == input->tokens[i - 1] ? -INFINITY : 0;
    a->out->tokens[i].column = column;
  }
  a->kind[input->num_tokens] = 0;
  a->skip[input->num_tokens] = -INFINITY;
}

static wf_status allocate(aligner *a, wf_error *err) {
  uint64_t places = a->num_places, frames = (uint64_t)a->out->num_frames,
           segments = (frames + SEGMENT - 1) / SEGMENT,
           traced = frames < SEGMENT ? frames : SEGMENT,
           window = places < traced + 2 ? places : traced + 2,
           floats = 2 + 4 * places + 2 * places * segments;
  a->columns = wf__alloc(places, sizeof *a->columns);
  a->numbers = wf__alloc((uint64_t)a->input->scores.num_columns, sizeof *a->numbers);
  a->row = wf__alloc(places, sizeof *a->row);
  a->kind = wf__alloc(places, sizeof *a->kind);
  a->skip = wf__alloc(places, sizeof *a->skip);
  a->memory = wf__alloc(floats, sizeof *a->memory);
  a->back = wf__alloc(traced * window, 1);
  if (a->columns == NULL || a->numbers == NULL || a->row == NULL || a->kind == NULL ||
      a->skip == NULL || a->memory == NULL || a->back == NULL)
    return wf__fail_memory(err, floats * sizeof *a->memory + traced * window, "an alignment");
  for (uint64_t i = 0; i < 2 + 4 * places; i++) a->memory[i] = -INFINITY;
  a->now = (sums){a->memory + 1, a->memory + 1 + places};
  a->next = (sums){a->memory + 2 + 2 * places, a->memory + 2 + 3 * places};
  a->starts = a->memory + 2 + 4 * places;
  return WF_OK;
}

static wf_status align(aligner *a, wf_error *err) {
  WF__TRY(check_input(a->input, a->blank, err));
  a->out->num_tokens = a->input->num_tokens;
  a->out->num_frames = a->input->scores.num_frames;
  a->num_places = a->input->num_tokens + 1;
  a->out->tokens = wf__calloc(a->out->num_tokens, sizeof *a->out->tokens);
  if (a->out->tokens == NULL)
    return wf__fail_memory(err, a->out->num_tokens * sizeof *a->out->tokens, "an alignment");
  if (a->out->num_frames == 0) return WF_OK;
  WF__TRY(allocate(a, err));
  number_columns(a);
  WF__TRY(pass_forward(a, err));
  WF__TRY(find_path(a, err));
  sum_tokens(a);
  return WF_OK;
}

/* --- a batch ----------------------------------------------------------------------------- */

struct batch {
  const wf_align_input *inputs;
  int32_t blank;
  wf_alignment **results;
};

static void align_item(void *user, uint64_t item, int worker) {
  (void)worker;
  const struct batch *batch = user;
  wf_error err = {0};
  aligner a = {.input = &batch->inputs[item], .blank = batch->blank, .out = batch->results[item]};
  a.out->status = align(&a, &err);
  if (a.out->status != WF_OK) {
    char place[32];
    snprintf(place, sizeof place, "%llu", (unsigned long long)item);
    snprintf(a.out->message, sizeof a.out->message, "utterance %.80s: %.160s",
             a.input->key != NULL ? a.input->key : place, err.message);
  }
  free(a.columns);
  free(a.numbers);
  free(a.row);
  free(a.kind);
  free(a.skip);
  free(a.memory);
  free(a.back);
}

wf_status wf_align(const wf_align_input *inputs, size_t count, const wf_align_options *options,
                   wf_alignment **results, wf_error *err) {
  wf__error_clear(err);
  if (count > 0) memset(results, 0, count * sizeof *results);
  wf_align_options o;
  WF__TRY(wf__options_take(wf__align_table(), options, &o, err));
  struct batch batch = {inputs, o.blank, results};
  wf__pool *pool = NULL;
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    results[i] = wf__calloc(1, sizeof **results);
    if (results[i] == NULL) status = wf__fail_memory(err, sizeof **results, "an alignment");
  }
  if (status == WF_OK) status = wf__pool_create(count == 1 ? 1 : o.num_threads, &pool, err);
  if (status == WF_OK) status = wf__pool_try(pool, count, align_item, &batch, err);
  wf__pool_free(pool);
  for (size_t i = 0; i < count && status != WF_OK; i++) {
    wf_alignment_free(results[i]);
    results[i] = NULL;
  }
  return status;
}

void wf_alignment_free(wf_alignment *alignment) {
  if (alignment != NULL) free(alignment->tokens);
  free(alignment);
}
