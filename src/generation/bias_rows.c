/* bias_rows.c - costs of all tokens of a row at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "generation/bias.h"

/* --- phrases ----------------------------------------------------------------------------- */

/* What children of nodes cost after the node `from`. */
struct leaving {
  const wf_bias *bias;
  int part;
  uint32_t from;
  float refund;
};

static float cost_of(const struct leaving *leaving, wf__phrase_child child) {
  const bool continues = leaving->bias->tokens->kinds[child.token] & WF_TOKEN_CONTINUES;
  return wf__phrase_cost(&leaving->bias->view, leaving->part, leaving->from, child.node,
                         continues ? leaving->refund : 0);
}

/* Notes the children of a node and of those that it fails to, shallow ones first; those of node 0
 * if `all`. */
static wf_status note_children(const struct leaving *leaving, uint32_t node, bool all,
                               const float *row, wf__row_work *work, wf_error *err) {
  const wf__phrase_rows *rows = &leaving->bias->phrases[leaving->part];
  const wf__phrase_node *nodes = leaving->bias->view.flat.parts[leaving->part].nodes;
  if (node == 0 && !all) return WF_OK;
  if (node != 0) WF__TRY(note_children(leaving, nodes[node].failure, all, row, work, err));
  for (uint64_t c = rows->first[node]; c < rows->first[node + 1]; c++)
    WF__TRY(wf__note_column(work, row, rows->children[c].token, cost_of(leaving, rows->children[c]),
                            err));
  return WF_OK;
}

static wf_status add_phrases(const wf_bias *bias, int i, uint32_t from, float *row, float sign,
                             wf__row_work *work, wf_error *err) {
  const wf__phrase_rows *rows = &bias->phrases[i];
  const float refund = wf__phrase_refund(&bias->view, i, from),
              leave = wf__phrase_pending(&bias->view, i, from);
  const struct leaving leaving = {bias, i, from, refund};
  const bool pass = leave != 0 || refund != 0; /* else only children cost something */
  WF__TRY(note_children(&leaving, from, pass, row, work, err));
  const uint32_t count = bias->tokens->num_tokens;
  const uint8_t *kinds = bias->tokens->kinds;
  const float paid_back = leave + refund;
  if (refund != 0) {
    for (uint32_t t = 0; t < count; t++) {
      const uint32_t mark = 0 - (uint32_t)((kinds[t] & WF_TOKEN_CONTINUES) != 0);
      row[t] += sign * wf__either(mark, paid_back, leave);
    }
  } else if (leave != 0) {
    for (uint32_t t = 0; t < count; t++) row[t] += sign * leave;
  }
  for (uint64_t c = 0; c < rows->first[1] && !pass; c++)
    row[rows->children[c].token] += sign * cost_of(&leaving, rows->children[c]);
  wf__write_columns(work, row, sign);
  return WF_OK;
}

/* --- n-grams of tokens ------------------------------------------------------------------- */

struct ngram_row {
  const wf__flat_part *part;
  const wf__ngram_rows *rows;
  const float *row;
  wf__row_work *work;
};

static wf_status note_arcs(const struct ngram_row *to, const uint8_t *arcs, uint64_t first,
                           uint64_t count, float backed_off, wf_error *err) {
  const wf__wlm_view *view = &to->part->lm;
  const uint64_t size = arcs == view->small ? view->num_small : view->num_large;
  for (uint64_t i = first; i < first + count && i < size; i++) {
    const wf__wlm_arc arc = wf__wlm_arc_at(view, arcs, i);
    if (arc.word >= view->num_words) continue;
    const float cost = wf__flat_sound(to->part->lm_scale * (backed_off + arc.cost));
    for (uint64_t k = to->rows->first[arc.word]; k < to->rows->first[arc.word + 1]; k++)
      WF__TRY(wf__note_column(to->work, to->row, to->rows->tokens[k], cost, err));
  }
  return WF_OK;
}

/* Notes the arcs of a state and of those that it backs off to, these first. Sets *backed_off to the
 * cost of all back-offs. */
static wf_status note_state(const struct ngram_row *to, uint32_t state, float *backed_off,
                            wf_error *err) {
  if (state == 0) return WF_OK;
  const wf__wlm_view *view = &to->part->lm;
  const wf__wlm_state *record = &view->states[state];
  const float before = *backed_off;
  const uint64_t first = record->where & (WF__WLM_LARGE - 1),
                 count = record->where >> (WF__WLM_FIRST_BITS + 1);
  *backed_off = before + record->backoff_cost;
  WF__TRY(note_state(to, record->backoff < state ? record->backoff : 0, backed_off, err));
  if (!(record->where & WF__WLM_LARGE))
    return count <= WF__WLM_SMALL ? note_arcs(to, view->small, first, count, before, err) : WF_OK;
  for (uint64_t b = first; b < first + count && b < view->num_buckets; b++) {
    const uint64_t head = wf__wlm_head(&view->buckets[b]);
    WF__TRY(note_arcs(to, view->large, head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1),
                      head >> WF__WLM_BASE_BITS & 15, before, err));
  }
  return WF_OK;
}

static wf_status add_ngrams(const wf_bias *bias, int i, uint32_t state, float *row, float sign,
                            wf__row_work *work, wf_error *err) {
  const wf__flat_part *part = &bias->view.flat.parts[i];
  const struct ngram_row to = {part, bias->ngrams[i], row, work};
  const float *unigrams = bias->ngrams[i]->unigrams, scale = part->lm_scale;
  float backed_off = 0;
  WF__TRY(note_state(&to, state, &backed_off, err));
  const uint32_t count = bias->tokens->num_tokens;
  if (bias->ngrams[i]->plain && fabsf(scale * backed_off) < 1e18f) {
    for (uint32_t t = 0; t < count; t++) row[t] += sign * (scale * (backed_off + unigrams[t]));
  } else { /* a damaged model */
    for (uint32_t t = 0; t < count; t++)
      row[t] += sign * wf__flat_sound(scale * (backed_off + unigrams[t]));
  }
  wf__write_columns(work, row, sign);
  return WF_OK;
}

/* --- rows -------------------------------------------------------------------------------- */

static wf_status add_part(const wf_bias *bias, const wf_bias_state *state, int i, float *row,
                          float sign, wf__row_work *work, wf_error *err) {
  if (i == bias->view.flat.num_parts)
    return wf__bias_words_add(bias->words, state, row, sign, work, err);
  const wf__flat_part *part = &bias->view.flat.parts[i];
  const uint32_t at = wf__flat_context(part, state->context);
  return part->kind == WF__FLAT_PHRASES ? add_phrases(bias, i, at, row, sign, work, err)
                                        : add_ngrams(bias, i, at, row, sign, work, err);
}

/* Costs of several parts are added to each other before they are subtracted, so that a row has the
 * costs of wf_bias_advance. */
static wf_status add_parts(const wf_bias *bias, const wf_bias_state *state, float *row,
                           wf__row_work *work, wf_error *err) {
  const int count = bias->view.flat.num_parts + (bias->words != NULL);
  const uint32_t num_tokens = bias->tokens->num_tokens;
  if (count == 1) return add_part(bias, state, 0, row, -1, work, err);
  if (count == 0) return WF_OK;
  if (work->num_sums < num_tokens) {
    free(work->sums);
    work->sums = wf__alloc(num_tokens, sizeof *work->sums);
    work->num_sums = work->sums != NULL ? num_tokens : 0;
    if (work->sums == NULL)
      return wf__fail_memory(err, (uint64_t)num_tokens * 4, "a row of tokens");
  }
  memset(work->sums, 0, num_tokens * sizeof *work->sums);
  for (int i = 0; i < count; i++) WF__TRY(add_part(bias, state, i, work->sums, 1, work, err));
  for (uint32_t t = 0; t < num_tokens; t++) row[t] -= work->sums[t];
  return WF_OK;
}

/* Keeps only what the grammar allows, special tokens left to add_row. */
static wf_status restrict_row(const wf_bias *bias, const wf_bias_state *state, float *row,
                              size_t width, wf__row_work *work, wf_error *err) {
  const wf_fst_view *view = &bias->view.grammar;
  if (state->grammar != WF__NO_TEXT)
    for (uint64_t a = view->arc_off[state->grammar]; a < view->arc_off[state->grammar + 1]; a++)
      WF__TRY(wf__note_column(work, row, (uint32_t)view->arcs[a].ilabel - 1, view->arcs[a].weight,
                              err));
  for (size_t t = 0; t < width; t++) row[t] = -INFINITY;
  wf__write_columns(work, row, -1);
  return WF_OK;
}

static wf_status add_row(const wf_bias *bias, const wf_bias_state *state, float *row, size_t width,
                         wf__row_work *work, wf_error *err) {
  const wf_token_texts *tokens = bias->tokens;
  if (state->ended) return WF_OK;
  work->special.size = 0;
  for (uint32_t i = 0; i < tokens->num_special; i++)
    WF__TRY(wf__vec_push(&work->special, row[tokens->special[i]], "a row of tokens", err));
  WF__TRY(add_parts(bias, state, row, work, err));
  if (bias->grammar != NULL) WF__TRY(restrict_row(bias, state, row, width, work, err));
  const float final = wf__bias_final(&bias->view, state);
  for (uint32_t i = 0; i < tokens->num_special; i++) {
    const uint32_t token = tokens->special[i];
    if (tokens->kinds[token] & WF_TOKEN_ENDS)
      row[token] = work->special.data[i] - final;
    else
      row[token] = bias->grammar != NULL ? -INFINITY : work->special.data[i];
  }
  return WF_OK;
}

/* --- batches ----------------------------------------------------------------------------- */

struct rows {
  const wf_bias *const *biases;
  const wf_bias_state *states;
  float *logits;
  size_t width, stride;
  wf__row_work *work; /* [num_workers] */
};

static void add_item(void *user, uint64_t item, int worker) {
  const struct rows *rows = user;
  wf__row_work *work = &rows->work[worker];
  if (work->status == WF_OK)
    work->status = add_row(rows->biases[item], &rows->states[item],
                           rows->logits + item * rows->stride, rows->width, work, &work->err);
}

static void free_work(wf__row_work *work, int count) {
  for (int i = 0; i < count && work != NULL; i++) {
    wf__vec_free(&work[i].columns);
    wf__vec_free(&work[i].special);
    free(work[i].sums);
  }
  free(work);
}

wf_status wf_bias_add(const wf_bias *const *biases, const wf_bias_state *states, size_t count,
                      float *logits, size_t width, size_t stride, int32_t num_threads,
                      wf_error *err) {
  for (size_t i = 0; i < count; i++)
    if (biases[i]->tokens->num_tokens > width || width > stride)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "bias: hypothesis %zu: rows of %zu columns, each %zu after the last, for %u "
                      "tokens",
                      i, width, stride, biases[i]->tokens->num_tokens);
  if (count == 0) return WF_OK;
  const int num_workers = num_threads > 0 ? num_threads : wf__num_cpus();
  wf__row_work *work = wf__calloc((uint64_t)num_workers, sizeof *work);
  if (work == NULL) return wf__fail_memory(err, (uint64_t)num_workers * sizeof *work, "a batch");
  struct rows rows = {biases, states, logits, width, stride, work};
  wf_status status = wf__pool_once(num_workers, count, add_item, &rows, err);
  for (int i = 0; i < num_workers && status == WF_OK; i++)
    if (work[i].status != WF_OK) status = wf__fail(err, work[i].status, "%s", work[i].err.message);
  free_work(work, num_workers);
  return status;
}
