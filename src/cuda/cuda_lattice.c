/* cuda_lattice.c - the raw lattice of an utterance from the arcs that the GPU found to be in it (lane_lattice.cuh).
 *
 * They come as a chain of pages in no order. Every token of the lattice has an arc that leaves it or is an end, so the sources of a frame's arcs are its
 * tokens: arcs are sorted by frame, source and number, and become the history that the CPU search leaves behind, of which one piece of code makes lattices
 * (decode/raw_lattice.c). So the two cannot differ in more than the arcs. */
#ifdef WARPFST_CUDA
#include <math.h>
#include <string.h>

#include "cuda/cuda_worker.h"
#include "decode/lattice_history.h"

/* One for each thread, used again and again. */
struct wf__gpu_drafts {
  wf__history history;
  WF__VEC(int64_t) rows;       /* by frame: of its scores; those of skipped frames are missing */
  WF__VEC(uint64_t) ends;      /* by frame: where its arcs end, then where they begin */
  WF__VEC(wf__lane_link) arcs; /* of all frames, in order */
  WF__VEC(uint32_t) states[2]; /* tokens of the frame, and of the one before */
  wf__link_vec epsilons;
};

wf_status wf__gpu_drafts_create(int count, struct wf__gpu_drafts **out, wf_error *err) {
  *out = wf__calloc((uint64_t)count, sizeof **out);
  return *out != NULL ? WF_OK : wf__fail_memory(err, (uint64_t)count * sizeof **out, "a decoder");
}

void wf__gpu_drafts_free(struct wf__gpu_drafts *drafts, int count) {
  for (int i = 0; i < count; i++) {
    wf__history_free(&drafts[i].history);
    wf__vec_free(&drafts[i].rows);
    wf__vec_free(&drafts[i].ends);
    wf__vec_free(&drafts[i].arcs);
    wf__vec_free(&drafts[i].states[0]);
    wf__vec_free(&drafts[i].states[1]);
    wf__vec_free(&drafts[i].epsilons);
  }
  free(drafts);
}

static int compare_links(const void *a, const void *b) {
  const wf__lane_link *x = a, *y = b;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  return (x->arc > y->arc) - (x->arc < y->arc);
}

static int compare_states(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

/* A page's arcs; *count of them. Moves on to the page before it in the chain. */
static const wf__lane_link *next_page(const wf__lane_link *pages, uint32_t *at, uint32_t *count) {
  const wf__lane_link *page = pages + (uint64_t)(*at - 1) * WF__LANE_PAGE;
  *at = page->frame;
  *count = page->source - 1;
  return page + 1;
}

/* The chain's arcs by frame, source and number; ends[f] .. ends[f + 1] are those of frame f. */
static wf_status sort_links(struct wf__gpu_drafts *draft, uint32_t last_page, const wf__lane_link *pages, uint64_t num_frames, wf_error *err) {
  uint32_t count;
  uint64_t size = 0;
  draft->ends.size = draft->arcs.size = 0;
  WF__TRY(wf__vec_grow(&draft->ends, num_frames + 1, "the lattice", err));
  uint64_t *ends = draft->ends.data;
  memset(ends, 0, (num_frames + 1) * sizeof *ends);
  for (uint32_t at = last_page; at != 0;) {
    const wf__lane_link *links = next_page(pages, &at, &count);
    for (uint32_t i = 0; i < count; i++) ends[links[i].frame]++;
  }
  for (uint64_t f = 0; f < num_frames; f++) ends[f] = size += ends[f];
  ends[num_frames] = size;
  WF__TRY(wf__vec_grow(&draft->arcs, size, "the lattice", err));
  for (uint32_t at = last_page; at != 0;) {
    const wf__lane_link *links = next_page(pages, &at, &count);
    for (uint32_t i = 0; i < count; i++) draft->arcs.data[--ends[links[i].frame]] = links[i];
  }
  for (uint64_t f = 0; f < num_frames; f++)
    if (ends[f + 1] - ends[f] > 1) qsort(draft->arcs.data + ends[f], ends[f + 1] - ends[f], sizeof *draft->arcs.data, compare_links);
  return WF_OK;
}

/* Number of a state's token in a frame with these. */
static uint32_t number_of(const uint32_t *states, uint64_t count, uint32_t state) {
  const uint32_t *found = bsearch(&state, states, count, sizeof *states, compare_states);
  return found != NULL ? (uint32_t)(found - states) : 0; /* it is always there */
}

/* The consuming arcs of frame f - 1 and the epsilon arcs of frame f, between the tokens states[f & 1] and those before. */
static wf_status add_links(struct wf__gpu_drafts *draft, const wf_graph *graph, uint64_t f, wf_error *err) {
  const uint64_t *ends = draft->ends.data;
  wf__history *history = &draft->history;
  const uint32_t *states = draft->states[f & 1].data;
  const uint64_t num_states = draft->states[f & 1].size;
  draft->epsilons.size = 0;
  for (int epsilons = f == 0; epsilons < 2; epsilons++) {
    const uint64_t from_frame = epsilons ? f : f - 1;
    uint32_t from = 0;
    for (uint64_t i = ends[from_frame]; i < ends[from_frame + 1]; i++) {
      const wf__lane_link *link = &draft->arcs.data[i];
      if (i > ends[from_frame] && link->source != link[-1].source) from++;
      if (link->arc == WF__LANE_ENDING || (graph->view.arcs[link->arc].ilabel == 0) != epsilons) continue;
      const wf__link made = {from, number_of(states, num_states, graph->view.arcs[link->arc].nextstate), link->arc, 0};
      if (epsilons) {
        WF__TRY(wf__vec_push(&draft->epsilons, made, "the lattice", err));
      } else {
        WF__TRY(wf__vec_push(&history->links, made, "the lattice", err));
        WF__TRY(wf__vec_push(&history->loglikes, link->loglike, "the lattice", err));
      }
    }
    if (!epsilons) wf__history_begin_epsilons(history);
  }
  WF__TRY(wf__history_add_epsilons(history, draft->epsilons.data, draft->epsilons.size, num_states, err));
  WF__TRY(wf__vec_grow(&history->loglikes, history->links.size - history->loglikes.size, "the lattice", err));
  while (history->loglikes.size < history->links.size) history->loglikes.data[history->loglikes.size++] = 0;
  return WF_OK;
}

static wf_status add_frame(struct wf__gpu_drafts *draft, const wf_graph *graph, uint64_t f, wf_error *err) {
  const uint64_t first = draft->ends.data[f], end = draft->ends.data[f + 1];
  WF__TRY(wf__history_begin_frame(&draft->history, draft->rows.data[f], err));
  draft->states[f & 1].size = 0;
  for (uint64_t i = first; i < end; i++) {
    const uint32_t state = draft->arcs.data[i].source;
    if (i > first && state == draft->arcs.data[i - 1].source) continue;
    WF__TRY(wf__vec_push(&draft->states[f & 1], state, "the lattice", err));
    WF__TRY(wf__vec_push(&draft->history.tokens, ((wf__past_token){state, 0}), "the lattice", err));
  }
  return add_links(draft, graph, f, err);
}

/* Of the last frame's tokens: 0 for those that may be the end. */
static wf_status add_endings(struct wf__gpu_drafts *draft, uint64_t num_frames, wf_error *err) {
  const uint64_t first = draft->ends.data[num_frames - 1], end = draft->ends.data[num_frames];
  wf__history *history = &draft->history;
  WF__TRY(wf__vec_grow(&history->endings, end - first, "the lattice", err));
  for (uint64_t i = first; i < end; i++) {
    if (i == first || draft->arcs.data[i].source != draft->arcs.data[i - 1].source) history->endings.data[history->endings.size++] = INFINITY;
    if (draft->arcs.data[i].arc == WF__LANE_ENDING) history->endings.data[history->endings.size - 1] = 0;
  }
  return WF_OK;
}

/* The frames that were searched, the start's before them: every path goes through all of them. */
static wf_status list_rows(struct wf__gpu_drafts *draft, const wf_graph *graph, const wf__lane_step *path, uint32_t path_size, wf_error *err) {
  draft->rows.size = 0;
  WF__TRY(wf__vec_push(&draft->rows, 0, "the lattice", err));
  for (uint32_t k = 0; k < path_size; k++)
    if (graph->view.arcs[path[k].arc].ilabel != 0) WF__TRY(wf__vec_push(&draft->rows, path[k].frame, "the lattice", err));
  return WF_OK;
}

wf_status wf__gpu_lattice(wf__gpu_worker *worker, const wf__lane_outcome *outcome, const wf__lane_step *path, const wf__lane_link *pages, int thread, wf_lattice **out,
                          wf_error *err) {
  struct wf__gpu_drafts *draft = &worker->drafts[thread];
  WF__TRY(list_rows(draft, worker->graph, path, outcome->path_size, err));
  const uint64_t num_frames = draft->rows.size;
  wf__scoring none = {0};
  wf__history_clear(&draft->history, worker->options.lattice_beam);
  draft->history.keeps_loglikes = true;
  WF__TRY(sort_links(draft, outcome->last_page, pages, num_frames, err));
  for (uint64_t f = 0; f < num_frames; f++) WF__TRY(add_frame(draft, worker->graph, f, err));
  WF__TRY(add_endings(draft, num_frames, err));
  const bool final = (outcome->flags & WF_RESULT_NOT_FINAL) == 0;
  return wf__history_lattice(&draft->history, worker->graph, &worker->options, NULL, &none, outcome->num_decoded, final, out, err);
}

#endif
