/* lattice_history.c - adding to the history, and backward pruning of it. */
#include "search/lattice_history.h"

#include <math.h>
#include <string.h>

void wf__history_clear(wf__history *history, float beam) {
  history->beam = beam;
  history->frames.size = history->tokens.size = history->contexts.size = history->links.size =
      history->loglikes.size = history->endings.size = history->labels.size = 0;
  history->num_pruned_frames = 0;
}

void wf__history_free(wf__history *history) {
  wf__vec_free(&history->frames);
  wf__vec_free(&history->tokens);
  wf__vec_free(&history->contexts);
  wf__vec_free(&history->labels);
  wf__vec_free(&history->links);
  wf__vec_free(&history->loglikes);
  wf__vec_free(&history->endings);
  wf__vec_free(&history->before);
  wf__vec_free(&history->renumber[0]);
  wf__vec_free(&history->renumber[1]);
  wf__vec_free(&history->nodes);
  wf__vec_free(&history->queue);
}

#define COPY(field)                                                                          \
  do {                                                                                       \
    WF__TRY(wf__vec_grow(&to->field, from->field.size, "the lattice", err));                 \
    if (from->field.size > 0)                                                                \
      memcpy(to->field.data, from->field.data, from->field.size * sizeof *from->field.data); \
    to->field.size = from->field.size;                                                       \
  } while (0)

wf_status wf__history_copy(const wf__history *from, wf__history *to, wf_error *err) {
  wf__history_clear(to, from->beam);
  to->keeps_loglikes = from->keeps_loglikes;
  to->num_pruned_frames = from->num_pruned_frames;
  COPY(frames);
  COPY(tokens);
  COPY(contexts);
  COPY(labels);
  COPY(links);
  COPY(loglikes);
  return WF_OK;
}

wf_status wf__history_begin_frame(wf__history *history, int64_t number, wf_error *err) {
  wf__past_frame frame = {history->tokens.size, history->links.size, history->links.size, number};
  return wf__vec_push(&history->frames, frame, "the lattice", err);
}

void wf__history_begin_epsilons(wf__history *history) {
  history->frames.data[history->frames.size - 1].first_epsilon = history->links.size;
}

/* Sorts in topological order (Kahn 1962): links of a token come after all links into it. */
wf_status wf__history_add_epsilons(wf__history *history, const wf__link *epsilons, uint64_t size,
                                   uint64_t num_tokens, wf_error *err) {
  uint64_t tail = 0;
  if (size == 0) return WF_OK;
  history->nodes.size = history->queue.size = 0;
  WF__TRY(wf__vec_grow(&history->nodes, num_tokens, "the lattice", err));
  WF__TRY(wf__vec_grow(&history->queue, size, "the lattice", err));
  WF__TRY(wf__vec_grow(&history->links, size, "the lattice", err));
  wf__epsilon_node *nodes = history->nodes.data;
  uint32_t *queue = history->queue.data;
  wf__link *out = history->links.data + history->links.size;
  memset(nodes, 0, num_tokens * sizeof *nodes);
  for (uint64_t i = 0; i < size; i++) {
    if (nodes[epsilons[i].from].count++ == 0) nodes[epsilons[i].from].first = (uint32_t)i;
    nodes[epsilons[i].to].degree++;
  }
  for (uint64_t i = 0; i < size; i += nodes[epsilons[i].from].count)
    if (nodes[epsilons[i].from].degree == 0) queue[tail++] = epsilons[i].from;
  for (uint64_t head = 0; head < tail; head++) {
    const wf__epsilon_node *source = &nodes[queue[head]];
    for (uint64_t i = source->first; i < source->first + source->count; i++) {
      wf__link link = epsilons[i];
      *out++ = link;
      if (--nodes[link.to].degree == 0 && nodes[link.to].count > 0) queue[tail++] = link.to;
    }
  }
  history->links.size = (uint64_t)(out - history->links.data);
  return WF_OK;
}

/* The ranges of one frame's tokens and links. */
struct span {
  uint64_t first_token, end_token, first_link, first_epsilon, end_link;
};

static struct span span_of(const wf__history *history, uint64_t f) {
  const wf__past_frame *frame = &history->frames.data[f];
  bool newest = f + 1 == history->frames.size;
  return (struct span){frame->first_token, newest ? history->tokens.size : frame[1].first_token,
                       frame->first_link, frame->first_epsilon,
                       newest ? history->links.size : frame[1].first_link};
}

/* Lowers the extra costs of the sources of the links [first, end), backward. */
static void relax(const wf__history *history, uint64_t first, uint64_t end, wf__past_token *from,
                  const wf__past_token *to) {
  for (uint64_t i = end; i > first; i--) {
    wf__link link = history->links.data[i - 1];
    float extra_cost = link.excess + to[link.to].extra_cost;
    float best = from[link.from].extra_cost;
    from[link.from].extra_cost = extra_cost < best ? extra_cost : best;
  }
}

static bool as_before(const wf__history *history, const wf__past_token *tokens, uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    if (tokens[i].extra_cost != history->before.data[i]) return false;
  return true;
}

/* Computes extra costs from the newest frame back to the first, or to a frame of an earlier
 * pruning in which nothing changed. Returns the first frame that something may be dropped from. */
static wf_status compute_extra_costs(wf__history *history, uint64_t *first, wf_error *err) {
  uint64_t newest = history->frames.size - 1;
  for (uint64_t f = newest;; f--) {
    struct span now = span_of(history, f);
    wf__past_token *tokens = history->tokens.data + now.first_token;
    relax(history, now.first_epsilon, now.end_link, tokens, tokens);
    if (f < newest && f < history->num_pruned_frames &&
        as_before(history, tokens, now.end_token - now.first_token)) {
      *first = f + 1;
      return WF_OK;
    }
    if (f == 0) break;
    wf__past_token *sources = history->tokens.data + history->frames.data[f - 1].first_token;
    uint64_t num_sources = (uint64_t)(tokens - sources);
    history->before.size = 0;
    WF__TRY(wf__vec_grow(&history->before, num_sources, "the lattice", err));
    for (uint64_t i = 0; i < num_sources; i++) {
      history->before.data[i] = sources[i].extra_cost;
      sources[i].extra_cost = INFINITY;
    }
    relax(history, now.first_link, now.first_epsilon, sources, tokens);
  }
  *first = 0;
  return WF_OK;
}

/* Moves the links [first, end) that are within the beam to `kept`, renumbered (from: NULL if its
 * numbers stay). Returns the new end. */
static uint64_t keep_links(wf__history *history, uint64_t first, uint64_t end, uint64_t kept,
                           const uint32_t *from, const uint32_t *to,
                           const wf__past_token *targets) {
  wf__link *links = history->links.data;
  float beam = history->beam, *loglikes = history->keeps_loglikes ? history->loglikes.data : NULL;
  for (uint64_t i = first; i < end; i++) {
    wf__link link = links[i];
    if (loglikes != NULL) loglikes[kept] = loglikes[i];
    bool keep = link.excess + targets[link.to].extra_cost <= beam;
    if (from != NULL) link.from = from[link.from];
    link.to = to[link.to];
    links[kept] = link; /* without a branch, which would be unpredictable */
    kept += keep;
  }
  return kept;
}

/* New numbers of the tokens after those beyond the beam are dropped. */
static void renumber(const wf__past_token *tokens, uint64_t count, float beam, uint32_t *numbers) {
  uint32_t next = 0;
  for (uint64_t i = 0; i < count; i++) {
    numbers[i] = next;
    next += tokens[i].extra_cost <= beam;
  }
}

static uint64_t keep_tokens(wf__history *history, uint64_t first, uint64_t end, uint64_t kept) {
  wf__past_token *tokens = history->tokens.data;
  uint64_t *contexts = history->contexts.size > 0 ? history->contexts.data : NULL;
  int32_t *labels = history->labels.size > 0 ? history->labels.data : NULL;
  float beam = history->beam;
  for (uint64_t i = first; i < end; i++) {
    wf__past_token token = tokens[i];
    tokens[kept] = token;
    if (contexts != NULL) contexts[kept] = contexts[i];
    if (labels != NULL) labels[kept] = labels[i];
    kept += token.extra_cost <= beam;
  }
  return kept;
}

/* Compacts the tokens and links within the beam, from frame `first` on. Both tokens of a link
 * within the beam are within it. */
static wf_status slide(wf__history *history, uint64_t first, wf_error *err) {
  uint64_t num_tokens = history->frames.data[first].first_token,
           num_links = history->frames.data[first].first_link;
  for (uint64_t f = first; f < history->frames.size; f++) {
    struct span span = span_of(history, f);
    uint64_t count = span.end_token - span.first_token;
    wf__past_token *tokens = history->tokens.data + span.first_token;
    history->renumber[f & 1].size = 0;
    WF__TRY(wf__vec_grow(&history->renumber[f & 1], count, "the lattice", err));
    uint32_t *now = history->renumber[f & 1].data,
             *before = f == first ? NULL : history->renumber[(f - 1) & 1].data;
    renumber(tokens, count, history->beam, now);
    history->frames.data[f].first_token = num_tokens;
    history->frames.data[f].first_link = num_links;
    num_links =
        keep_links(history, span.first_link, span.first_epsilon, num_links, before, now, tokens);
    history->frames.data[f].first_epsilon = num_links;
    num_links = keep_links(history, span.first_epsilon, span.end_link, num_links, now, now, tokens);
    if (f + 1 == history->frames.size) /* endings belong to this frame, if they are set */
      for (uint64_t i = 0; i < history->endings.size; i++)
        history->endings.data[now[i]] = history->endings.data[i];
    num_tokens = keep_tokens(history, span.first_token, span.end_token, num_tokens);
  }
  history->tokens.size = num_tokens;
  if (history->contexts.size > 0) history->contexts.size = num_tokens;
  if (history->labels.size > 0) history->labels.size = num_tokens;
  history->links.size = num_links;
  if (history->keeps_loglikes) history->loglikes.size = num_links;
  return WF_OK;
}

wf_status wf__history_prune(wf__history *history, wf_error *err) {
  uint64_t first;
  WF__TRY(compute_extra_costs(history, &first, err));
  WF__TRY(slide(history, first, err));
  history->num_pruned_frames = history->frames.size;
  return WF_OK;
}

wf_status wf__history_end(wf__history *history, wf_error *err) {
  wf__past_token *tokens =
      history->tokens.data + history->frames.data[history->frames.size - 1].first_token;
  for (uint64_t i = 0; i < history->endings.size; i++)
    tokens[i].extra_cost = history->endings.data[i];
  return wf__history_prune(history, err);
}
