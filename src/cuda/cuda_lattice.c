/* cuda_lattice.c - the raw lattice of an utterance from the arcs that the GPU found to be in it (lane_lattice.cuh).
 *
 * They come as a chain of pages in no order. Every token of the lattice has an arc that leaves it or is an end, so the sources of a frame's arcs (with a scorer
 * pairs of state and context, whose numbers are the scorer's own, flat_scorer.h) are its tokens: arcs are sorted by frame, source and number, and become the history that the CPU search leaves behind, of which one piece of code makes lattices
 * (decode/raw_lattice.c). So the two cannot differ in more than the arcs. */
#ifdef WARPFST_CUDA
#include <math.h>
#include <string.h>

#include "cuda/cuda_worker.h"
#include "decode/lattice_history.h"

/* A link, and a token of a frame. */
struct arc {
  uint32_t source, arc;
  float loglike;
  uint64_t context; /* of the source; 0 without a scorer */
};
struct token {
  uint32_t state;
  uint64_t context;
};

/* One for each thread, used again and again. */
struct wf__gpu_drafts {
  const wf_graph *graph;
  wf__scoring *scoring; /* of the utterance; `none` if it has no scorer */
  wf__scoring none;
  wf__history history;
  WF__VEC(int64_t) rows;       /* by frame: of its scores; those of skipped frames are missing */
  WF__VEC(uint64_t) ends;      /* by frame: where its arcs end, then where they begin */
  WF__VEC(struct arc) arcs;    /* of all frames, in order */
  WF__VEC(struct token) tokens[2]; /* of the frame, and of the one before */
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
    wf__vec_free(&drafts[i].tokens[0]);
    wf__vec_free(&drafts[i].tokens[1]);
    wf__vec_free(&drafts[i].epsilons);
  }
  free(drafts);
}

static int compare_sources(uint32_t state, uint64_t context, uint32_t other_state, uint64_t other_context) {
  if (state != other_state) return state < other_state ? -1 : 1;
  return (context > other_context) - (context < other_context);
}

static int compare_arcs(const void *a, const void *b) {
  const struct arc *x = a, *y = b;
  const int sources = compare_sources(x->source, x->context, y->source, y->context);
  return sources != 0 ? sources : (x->arc > y->arc) - (x->arc < y->arc);
}

static int compare_tokens(const void *a, const void *b) {
  const struct token *x = a, *y = b;
  return compare_sources(x->state, x->context, y->state, y->context);
}

static bool is_same_source(const struct arc *a, const struct arc *b) { return a->source == b->source && a->context == b->context; }

/* Where a page's arcs begin, counted over all pages; *count of them. Moves on to the page before it in the chain. */
static uint64_t next_page(const wf__gpu_pages *pages, uint32_t *at, uint32_t *count) {
  const uint64_t first = (uint64_t)(*at - 1) * WF__LANE_PAGE;
  *at = pages->links[first].frame;
  *count = pages->links[first].source - 1;
  return first + 1;
}

/* The chain's arcs by frame, source and number; ends[f] .. ends[f + 1] are those of frame f. */
static wf_status sort_links(struct wf__gpu_drafts *draft, uint32_t last_page, const wf__gpu_pages *pages, wf_error *err) {
  const uint64_t num_frames = draft->rows.size;
  uint32_t count;
  uint64_t size = 0;
  draft->ends.size = draft->arcs.size = 0;
  WF__TRY(wf__vec_grow(&draft->ends, num_frames + 1, "the lattice", err));
  uint64_t *ends = draft->ends.data;
  memset(ends, 0, (num_frames + 1) * sizeof *ends);
  for (uint32_t at = last_page; at != 0;) {
    const wf__lane_link *links = pages->links + next_page(pages, &at, &count);
    for (uint32_t i = 0; i < count; i++) ends[links[i].frame]++;
  }
  for (uint64_t f = 0; f < num_frames; f++) ends[f] = size += ends[f];
  ends[num_frames] = size;
  WF__TRY(wf__vec_grow(&draft->arcs, size, "the lattice", err));
  for (uint32_t at = last_page; at != 0;) {
    const uint64_t first = next_page(pages, &at, &count);
    for (uint64_t i = first; i < first + count; i++) {
      const wf__lane_link *link = &pages->links[i];
      draft->arcs.data[--ends[link->frame]] = (struct arc){link->source, link->arc, link->loglike, pages->contexts != NULL ? pages->contexts[i] : 0};
    }
  }
  for (uint64_t f = 0; f < num_frames; f++)
    if (ends[f + 1] - ends[f] > 1) qsort(draft->arcs.data + ends[f], ends[f + 1] - ends[f], sizeof *draft->arcs.data, compare_arcs);
  return WF_OK;
}

/* Number, among the tokens of frame f, of that which an arc leads to. */
static wf_status find_target(struct wf__gpu_drafts *draft, const struct arc *from, uint64_t f, uint32_t *out, wf_error *err) {
  const wf_arc arc = wf__graph_arc(draft->graph, from->arc);
  struct token target = {arc.nextstate, from->context};
  float cost;
  if (arc.olabel != 0 && draft->scoring->scorer != NULL) WF__TRY(wf__scoring_step(draft->scoring, from->context, arc.olabel, &cost, &target.context, err));
  const struct token *tokens = draft->tokens[f & 1].data, *found = bsearch(&target, tokens, draft->tokens[f & 1].size, sizeof *tokens, compare_tokens);
  *out = found != NULL ? (uint32_t)(found - tokens) : 0; /* it is always there */
  return WF_OK;
}

/* The consuming arcs of frame f - 1 and the epsilon arcs of frame f, between the tokens of f and those before. */
static wf_status add_links(struct wf__gpu_drafts *draft, uint64_t f, wf_error *err) {
  const uint64_t *ends = draft->ends.data;
  wf__history *history = &draft->history;
  draft->epsilons.size = 0;
  for (int epsilons = f == 0; epsilons < 2; epsilons++) {
    const uint64_t from_frame = epsilons ? f : f - 1;
    uint32_t from = 0;
    for (uint64_t i = ends[from_frame]; i < ends[from_frame + 1]; i++) {
      const struct arc *arc = &draft->arcs.data[i];
      if (i > ends[from_frame] && !is_same_source(arc, arc - 1)) from++;
      if (arc->arc == WF__LANE_ENDING || (wf__graph_arc(draft->graph, arc->arc).ilabel == 0) != epsilons) continue;
      wf__link made = {.from = from, .arc = arc->arc};
      WF__TRY(find_target(draft, arc, f, &made.to, err));
      if (epsilons) {
        WF__TRY(wf__vec_push(&draft->epsilons, made, "the lattice", err));
      } else {
        WF__TRY(wf__vec_push(&history->links, made, "the lattice", err));
        WF__TRY(wf__vec_push(&history->loglikes, arc->loglike, "the lattice", err));
      }
    }
    if (!epsilons) wf__history_begin_epsilons(history);
  }
  WF__TRY(wf__history_add_epsilons(history, draft->epsilons.data, draft->epsilons.size, draft->tokens[f & 1].size, err));
  WF__TRY(wf__vec_grow(&history->loglikes, history->links.size - history->loglikes.size, "the lattice", err));
  while (history->loglikes.size < history->links.size) history->loglikes.data[history->loglikes.size++] = 0;
  return WF_OK;
}

static wf_status add_frame(struct wf__gpu_drafts *draft, uint64_t f, wf_error *err) {
  const uint64_t first = draft->ends.data[f], end = draft->ends.data[f + 1];
  wf__history *history = &draft->history;
  WF__TRY(wf__history_begin_frame(history, draft->rows.data[f], err));
  draft->tokens[f & 1].size = 0;
  for (uint64_t i = first; i < end; i++) {
    const struct arc *arc = &draft->arcs.data[i];
    if (i > first && is_same_source(arc, arc - 1)) continue;
    WF__TRY(wf__vec_push(&draft->tokens[f & 1], ((struct token){arc->source, arc->context}), "the lattice", err));
    WF__TRY(wf__vec_push(&history->tokens, ((wf__past_token){arc->source, 0}), "the lattice", err));
    if (draft->scoring->scorer != NULL) WF__TRY(wf__vec_push(&history->contexts, arc->context, "the lattice", err));
  }
  return add_links(draft, f, err);
}

/* Of the last frame's tokens: 0 for those that may be the end. */
static wf_status add_endings(struct wf__gpu_drafts *draft, wf_error *err) {
  const uint64_t first = draft->ends.data[draft->rows.size - 1], end = draft->ends.data[draft->rows.size];
  wf__history *history = &draft->history;
  WF__TRY(wf__vec_grow(&history->endings, end - first, "the lattice", err));
  for (uint64_t i = first; i < end; i++) {
    const struct arc *arc = &draft->arcs.data[i];
    if (i == first || !is_same_source(arc, arc - 1)) history->endings.data[history->endings.size++] = INFINITY;
    if (arc->arc == WF__LANE_ENDING) history->endings.data[history->endings.size - 1] = 0;
  }
  return WF_OK;
}

/* The frames that were searched, the start's before them: every path goes through all of them. */
static wf_status list_rows(struct wf__gpu_drafts *draft, const wf__lane_step *path, uint32_t path_size, wf_error *err) {
  draft->rows.size = 0;
  WF__TRY(wf__vec_push(&draft->rows, 0, "the lattice", err));
  for (uint32_t k = 0; k < path_size; k++)
    if (wf__graph_arc(draft->graph, path[k].arc).ilabel != 0) WF__TRY(wf__vec_push(&draft->rows, path[k].frame, "the lattice", err));
  return WF_OK;
}

wf_status wf__gpu_lattice(wf__gpu_worker *worker, const wf_graph *graph, const wf__lane_outcome *outcome, const wf__lane_step *path, const wf__gpu_pages *pages, bool scored, int thread,
                          wf_lattice **out, wf_error *err) {
  struct wf__gpu_drafts *draft = &worker->drafts[thread];
  draft->graph = graph;
  draft->scoring = scored ? &worker->scorings[thread] : &draft->none;
  wf__history_clear(&draft->history, worker->options.lattice_beam);
  draft->history.keeps_loglikes = true;
  WF__TRY(list_rows(draft, path, outcome->path_size, err));
  WF__TRY(sort_links(draft, outcome->last_page, pages, err));
  for (uint64_t f = 0; f < draft->rows.size; f++) WF__TRY(add_frame(draft, f, err));
  WF__TRY(add_endings(draft, err));
  const bool final = (outcome->flags & WF_RESULT_NOT_FINAL) == 0;
  return wf__history_lattice(&draft->history, graph, &worker->options, NULL, draft->scoring, outcome->num_decoded, final, out, err);
}

#endif
