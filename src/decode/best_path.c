/* best_path.c - from a path of arcs to words with times, and its cost split into graph and
 * acoustics.
 *
 * Costs are summed anew along the path, in double, in path order: the search's own float sums only
 * ranked the paths. */
#include <math.h>
#include <string.h>

#include "decode/backend.h"

/* --- estimated times, for graphs without a word aligner ----------- */

/* A word starts at the first frame consumed at or after the arc that carries it. It ends where the
 * next one starts, without the frames at its end that are blank or were skipped. */
static void close_word(wf__account *account, const wf_graph *graph, int32_t blank, int64_t end) {
  if (account->words.size == 0) return;
  wf_word *word = &account->words.data[account->words.size - 1];
  for (; blank >= 0 && end > word->start_frame + 1; end--) {
    int32_t label = account->alignment.data[end - 1 - account->num_forgotten];
    if (label != 0 && graph->columns[label] != blank) break;
  }
  word->end_frame = (int32_t)end;
}

/* --- times by the aligner ---------------------------------------------------------------- */

/* Places the words that are not timed yet. If `ended`, places all of them as if nothing followed;
 * the timed words stay as they are. */
static wf_status place_words(wf__account *account, const wf_graph *graph, bool ended,
                             wf_error *err) {
  uint64_t num_words = account->words.size - account->num_timed,
           first = (uint64_t)(account->timed_end - account->num_forgotten);
  wf__placed placed;
  account->labels.size = account->placed.size = 0;
  WF__TRY(wf__vec_grow(&account->labels, num_words + 1, "a result", err));
  WF__TRY(wf__vec_grow(&account->placed, num_words + 1, "a result", err));
  for (uint64_t i = 0; i < num_words; i++)
    account->labels.data[i] = account->words.data[account->num_timed + i].label;
  WF__TRY(wf__aligner_place(
      graph->aligner, account->labels.data, num_words,
      account->alignment.size > first ? account->alignment.data + first : NULL,
      account->alignment.size - first, ended, &account->units, account->placed.data, &placed, err));
  for (uint64_t i = 0; i < placed.num_words; i++) {
    wf_word word = account->placed.data[i];
    word.start_frame += (int32_t)account->timed_end;
    word.end_frame += (int32_t)account->timed_end;
    account->words.data[account->num_timed + i] = word;
  }
  account->num_guessed = ended ? placed.num_forced : 0;
  if (ended) return WF_OK;
  account->num_timed += placed.num_words;
  account->timed_end += placed.num_labels;
  account->num_estimated += placed.num_forced;
  return WF_OK;
}

wf_status wf__account_decide(wf__account *account, const wf_graph *graph, wf_error *err) {
  return graph->aligner != NULL ? place_words(account, graph, false, err) : WF_OK;
}

uint64_t wf__account_num_stable(const wf__account *account, const wf_graph *graph) {
  return graph->aligner != NULL && account->num_timed < account->words.size ? account->num_timed + 1
                                                                            : account->words.size;
}

/* --- a path in parts --------------------------------------------------------------------- */

/* Frames before `frame` that no arc has read yet were skipped. */
static wf_status align_up_to(wf__account *account, int64_t frame, wf_error *err) {
  uint64_t missing = (uint64_t)(frame - account->num_forgotten) - account->alignment.size;
  WF__TRY(wf__vec_grow(&account->alignment, missing, "a result", err));
  for (; missing > 0; missing--) account->alignment.data[account->alignment.size++] = 0;
  return WF_OK;
}

wf_status wf__account_add(wf__account *account, const wf_graph *graph,
                          const wf_decoder_options *options, const wf__path *part, wf_error *err) {
  uint64_t num_read = 0; /* scores of the part that are used so far */
  uint32_t state = 0;
  for (uint64_t i = 0; i < part->arcs.size; i++) {
    wf_arc arc = wf__graph_arc_along(graph, &state, part->arcs.data[i]);
    account->graph_cost += (double)arc.weight;
    if (num_read < part->frames.size)
      WF__TRY(align_up_to(account, part->frames.data[num_read], err));
    if (arc.olabel != 0) {
      int32_t frame = (int32_t)(account->num_forgotten + (int64_t)account->alignment.size);
      if (graph->aligner == NULL) close_word(account, graph, options->blank, frame);
      account->graph_cost -= (double)options->word_score;
      WF__TRY(
          wf__vec_push(&account->words,
                       ((wf_word){.label = arc.olabel, .start_frame = frame, .end_frame = frame}),
                       "a result", err));
    }
    if (arc.ilabel == 0) continue;
    if (num_read < part->steps.size) {
      account->by_steps = true;
      WF__TRY(wf__vec_push(&account->steps, part->steps.data[num_read], "a result", err));
    }
    account->loglike += (double)part->loglikes.data[num_read++];
    WF__TRY(wf__vec_push(&account->alignment, arc.ilabel, "a result", err));
  }
  return WF_OK;
}

wf_status wf__account_close(wf__account *account, const wf_graph *graph,
                            const wf_decoder_options *options, int64_t end, wf_error *err) {
  WF__TRY(align_up_to(account, end, err));
  if (graph->aligner != NULL) return place_words(account, graph, true, err);
  close_word(account, graph, options->blank, end);
  account->num_guessed = account->words.size;
  return WF_OK;
}

/* The first frame that the remaining words need. */
static int64_t first_needed(const wf__account *account, const wf_graph *graph) {
  const wf_word *words = account->words.data;
  if (graph->aligner != NULL)
    return account->num_timed > 0 ? words[0].start_frame : account->timed_end;
  return account->words.size > 0 ? words[0].start_frame
                                 : account->num_forgotten + (int64_t)account->alignment.size;
}

void wf__account_forget(wf__account *account, const wf_graph *graph, uint64_t num_words) {
  wf_word *words = account->words.data;
  if (num_words > 0)
    memmove(words, words + num_words, (account->words.size - num_words) * sizeof *words);
  account->words.size -= num_words;
  account->num_timed -= num_words < account->num_timed ? num_words : account->num_timed;
  int64_t num_frames = first_needed(account, graph) - account->num_forgotten;
  if (num_frames <= 0) return;
  memmove(account->alignment.data, account->alignment.data + num_frames,
          (account->alignment.size - (uint64_t)num_frames) * sizeof(int32_t));
  account->alignment.size -= (uint64_t)num_frames;
  if (account->by_steps) {
    memmove(account->steps.data, account->steps.data + num_frames,
            (account->steps.size - (uint64_t)num_frames) * sizeof(int32_t));
    account->steps.size -= (uint64_t)num_frames;
  }
  account->num_forgotten += num_frames;
}

wf_status wf__account_finish(wf__account *account, wf_result *result, const wf_graph *graph,
                             const wf_decoder_options *options, const wf__path *path,
                             wf_error *err) {
  WF__TRY(
      wf__account_close(account, graph, options, wf__account_end(account, path->num_decoded), err));
  if (account->by_steps) {
    int32_t *labels;
    WF__TRY(wf__account_label_frames(account, graph, options, path->num_decoded, &labels, err));
    wf__account_time_words(account, path->num_decoded, account->words.data, account->words.size);
    free(account->alignment.data);
    account->alignment.data = labels;
  }
  result->flags = path->flags;
  result->num_decoded = path->num_decoded;
  result->num_tokens = path->num_tokens;
  result->num_expanded = path->num_expanded;
  result->num_arcs = path->num_arcs;
  result->num_narrowed = path->num_narrowed;
  result->graph_cost = account->graph_cost + (double)path->final_cost;
  result->acoustic_cost = 0 - (double)options->acoustic_scale * account->loglike;
  if (options->acoustic_scale == 0) result->acoustic_cost = 0;
  result->scorer_cost = path->scorer_cost;
  result->cost = result->graph_cost + result->acoustic_cost + result->scorer_cost;
  result->words = account->words.data;
  result->num_words = account->words.size;
  result->num_estimated = account->num_estimated + account->num_guessed;
  result->alignment = account->alignment.data;
  account->words.data = NULL;
  account->alignment.data = NULL;
  wf__account_free(account);
  return WF_OK;
}

void wf__account_time_words(const wf__account *account, int64_t num_frames, wf_word *words,
                            size_t count) {
  if (!account->by_steps) return;
  const int32_t *frames = account->steps.data, last = (int32_t)num_frames;
  int64_t size = (int64_t)account->steps.size;
  for (size_t w = 0; w < count; w++) {
    int64_t begin = words[w].start_frame - account->num_forgotten,
            end = words[w].end_frame - account->num_forgotten;
    words[w].start_frame = begin < size ? frames[begin] : last;
    words[w].end_frame = end < size ? frames[end] : last;
    if (end > begin && words[w].end_frame <= frames[end - 1])
      words[w].end_frame = frames[end - 1] + 1;
  }
}

wf_status wf__account_label_frames(const wf__account *account, const wf_graph *graph,
                                   const wf_decoder_options *options, int64_t num_frames,
                                   int32_t **out, wf_error *err) {
  int32_t *frames = *out = wf__calloc((uint64_t)num_frames, sizeof *frames);
  if (frames == NULL) return wf__fail_memory(err, (uint64_t)num_frames * 4, "a result");
  for (size_t i = 0; i < account->steps.size; i++) {
    int32_t label = account->alignment.data[i], *at = &frames[account->steps.data[i]];
    if (graph->columns[label] != options->blank || *at == 0) *at = label;
  }
  return WF_OK;
}

void wf__account_free(wf__account *account) {
  wf__vec_free(&account->words);
  wf__vec_free(&account->alignment);
  wf__vec_free(&account->steps);
  wf__vec_free(&account->units);
  wf__vec_free(&account->labels);
  wf__vec_free(&account->placed);
  *account = (wf__account){0};
}

wf_status wf__result_fill(wf_result *result, const wf_graph *graph,
                          const wf_decoder_options *options, const wf__path *path, wf_error *err) {
  wf__account account = {0};
  wf_status status = wf__account_add(&account, graph, options, path, err);
  if (status == WF_OK) status = wf__account_finish(&account, result, graph, options, path, err);
  wf__account_free(&account);
  return status;
}

void wf_result_free(wf_result *result) {
  if (result == NULL) return;
  free(result->words);
  free(result->alignment);
  wf_lattice_free(result->lattice);
  if (result->determinized != NULL) wf_compact_lattice_free(result->determinized->lattice);
  free(result->determinized);
  wf__lattice_results_free(result->lattice_results);
  free(result);
}
