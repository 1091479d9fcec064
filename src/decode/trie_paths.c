/* trie_paths.c - follows back-pointers: results, and frames that can be freed. */
#include <math.h>
#include <string.h>

#include "decode/trie_search.h"

enum { MOST_FURTHER = 100 }; /* frames to look for the end of a word */

int32_t wf_trie_search_num_frames(const wf_trie_search *search) {
  return (int32_t)(search->begins.size - 1);
}

/* The place of the best hypothesis in the newest frame. The frame is not empty. */
static uint32_t best_place(const wf_trie_search *s) {
  uint64_t frame = s->begins.size - 1, size = wf__trie_frame_size(s, frame);
  const wf__trie_hypothesis *all = wf__trie_frame(s, frame);
  uint32_t best = 0;
  for (uint32_t k = 1; k < size; k++)
    if (all[k].score > all[best].score) best = k;
  return best;
}

/* Goes back from the best hypothesis: by `look_back` frames, and on to the end of a word. False:
 * that is before frame 1, or there is no hypothesis. */
static bool go_back(const wf_trie_search *s, int32_t look_back, uint64_t *frame, uint32_t *place) {
  uint64_t newest = s->begins.size - 1;
  if (look_back < 0 || (uint64_t)look_back >= newest || wf__trie_frame_size(s, newest) == 0)
    return false;
  *frame = newest;
  *place = best_place(s);
  for (int32_t n = 0; *frame > 0 && n < look_back + MOST_FURTHER; n++) {
    const wf__trie_hypothesis *at = wf__trie_frame(s, *frame) + *place;
    bool word_ended =
        s->searcher->num_nodes == 0 || wf__trie_frame(s, *frame - 1)[at->parent].word >= 0;
    if (n >= look_back && word_ended) break;
    *place = at->parent;
    --*frame;
  }
  return true;
}

static void write_path(const wf_trie_search *s, uint64_t frame, uint32_t place,
                       wf_trie_path *path) {
  const wf__trie_hypothesis *at = wf__trie_frame(s, frame) + place;
  path->score = at->score;
  path->token_score = at->token_score;
  path->lm_score = at->lm_score;
  for (;; frame--) {
    path->words[frame] = at->word;
    path->tokens[frame] = at->token;
    if (frame == 0) break;
    at = wf__trie_frame(s, frame - 1) + at->parent;
  }
}

static wf_status allocate(size_t count, uint64_t length, wf_trie_paths **out, wf_error *err) {
  *out = NULL;
  wf_trie_paths *made = wf__calloc(1, sizeof *made);
  if (made == NULL) return wf__fail_memory(err, sizeof *made, "paths");
  made->paths = wf__calloc(count, sizeof *made->paths);
  made->memory = wf__alloc(2 * count * length, sizeof *made->memory);
  if (made->paths == NULL || made->memory == NULL) {
    wf_trie_paths_free(made);
    return wf__fail_memory(err, 2 * count * length * sizeof *made->memory, "paths");
  }
  made->num_paths = count;
  made->length = (int32_t)length;
  for (size_t i = 0; i < count; i++) {
    made->paths[i].words = made->memory + 2 * i * length;
    made->paths[i].tokens = made->memory + (2 * i + 1) * length;
  }
  *out = made;
  return WF_OK;
}

/* A hypothesis of the newest frame, for sorting. */
typedef struct ranked {
  double score;
  uint32_t place;
} ranked;

static int compare(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->place < y->place ? -1 : x->place > y->place;
}

wf_status wf_trie_search_paths(const wf_trie_search *search, size_t count, wf_trie_paths **out,
                               wf_error *err) {
  wf__error_clear(err);
  *out = NULL;
  uint64_t frame = search->begins.size - 1, size = wf__trie_frame_size(search, frame);
  ranked *all = wf__alloc(size, sizeof *all);
  if (all == NULL) return wf__fail_memory(err, size * sizeof *all, "paths");
  for (uint32_t k = 0; k < size; k++) all[k] = (ranked){wf__trie_frame(search, frame)[k].score, k};
  if (size > 1) qsort(all, size, sizeof *all, compare);
  if (count == 0 || count > size) count = size;
  wf_status status = allocate(count, frame + 1, out, err);
  for (size_t i = 0; i < count && status == WF_OK; i++)
    write_path(search, frame, all[i].place, &(*out)->paths[i]);
  free(all);
  return status;
}

wf_status wf_trie_search_best(const wf_trie_search *search, int32_t look_back, wf_trie_paths **out,
                              wf_error *err) {
  wf__error_clear(err);
  uint64_t frame = 0;
  uint32_t place = 0;
  bool found = go_back(search, look_back, &frame, &place);
  WF__TRY(allocate(found, frame + 1, out, err));
  if (found) write_path(search, frame, place, (*out)->paths);
  return WF_OK;
}

void wf_trie_paths_free(wf_trie_paths *paths) {
  if (paths == NULL) return;
  free(paths->paths);
  free(paths->memory);
  free(paths);
}

/* --- freeing frames ------------------------------------------------------------------------- */

/* Keeps only histories that hypotheses have. */
static wf_status keep_histories(wf_trie_search *s, wf_error *err) {
  uint64_t num = s->histories.states.size;
  uint32_t *new_of = wf__alloc(num, sizeof *new_of);
  if (new_of == NULL) return wf__fail_memory(err, num * sizeof *new_of, "histories");
  memset(new_of, 0xff, num * sizeof *new_of);
  for (uint64_t k = 0; k < s->kept.size; k++) new_of[s->kept.data[k].history] = 0;
  wf_status status = wf__trie_histories_keep(&s->histories, new_of, err);
  for (uint64_t k = 0; k < s->kept.size; k++)
    s->kept.data[k].history = new_of[s->kept.data[k].history];
  free(new_of);
  return status;
}

wf_status wf_trie_search_prune(wf_trie_search *s, int32_t look_back, wf_error *err) {
  wf__error_clear(err);
  uint64_t first = 0;
  uint32_t place = 0;
  WF__TRY(wf__trie_check_whole(s, err));
  if (!go_back(s, look_back, &first, &place) || first == 0) return WF_OK;
  uint64_t cut = s->begins.data[first], num_frames = s->begins.size - first;
  s->kept.size -= cut;
  memmove(s->kept.data, s->kept.data + cut, s->kept.size * sizeof *s->kept.data);
  for (uint64_t i = 0; i < num_frames; i++) s->begins.data[i] = s->begins.data[i + first] - cut;
  s->begins.size = num_frames;
  uint64_t newest = num_frames - 1, size = wf__trie_frame_size(s, newest);
  wf__trie_hypothesis *last = s->kept.data + s->begins.data[newest];
  double best = last[best_place(s)].score;
  for (uint64_t k = 0; k < size; k++) last[k].score -= best;
  const wf_status status = keep_histories(s, err);
  s->failed = status != WF_OK;
  return status;
}
