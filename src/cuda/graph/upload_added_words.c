/* upload_added_words.c - words added to graphs, on a GPU: the phrase trees of search_graph.cuh.
 *
 *   memory of a graph   wf__lane_words | wf__lane_class of each class | tree: states, arcs, wide
 *                       states | tree ...    at multiples of 256 bytes
 *
 * A graph's words are sent once and stay while streams or the last batch use the graph. So a
 * list for all utterances is not sent with every batch. */
#include "cuda/graph/upload_added_words.h"

#include <math.h>
#include <string.h>

#include "cuda/device/device_memory.h"
#include "cuda/graph/upload_graph.h"

/* What a tree takes, in entries. States from first_wide on are wide; their arcs are in memory once
 * for those that share them. */
struct sizes {
  uint64_t first_wide, num_explicit, num_arcs;
};

static struct sizes sizes_of(const wf_graph *graph, const wf__phrase_tree *tree) {
  const wf__ctc_states *ctc = tree->ctc;
  struct sizes sizes = {tree->num_states, tree->num_arcs, tree->num_arcs};
  if (ctc == NULL || !graph->columns_follow || ctc->first_wide == ctc->num_states) return sizes;
  sizes = (struct sizes){ctc->first_wide, ctc->first_wide_arc, ctc->first_wide_arc};
  for (uint64_t v = ctc->first_wide; v < ctc->num_states; v++) {
    const wf__ctc_state *state = &ctc->states[v];
    const bool first = v == ctc->first_wide || state[-1].owner != state->owner;
    sizes.num_arcs += wf__ctc_num_stays(*state) + (first ? state->count : 0);
  }
  return sizes;
}

static uint64_t states_bytes(const wf__phrase_tree *tree) {
  return wf__round_up_256(tree->num_states * sizeof(wf__lane_state));
}
static uint64_t tree_bytes(const wf_graph *graph, const wf__phrase_tree *tree) {
  if (tree == NULL) return 0;
  const struct sizes sizes = sizes_of(graph, tree);
  return states_bytes(tree) + wf__round_up_256(sizes.num_arcs * sizeof(wf_arc)) +
         wf__round_up_256((tree->num_states - sizes.first_wide) * sizeof(wf__lane_wide));
}

static bool has_epsilons(const wf__phrase_tree *tree, uint32_t state) {
  if (tree->ctc != NULL) return tree->ctc->states[state].num_epsilons > 0;
  return tree->first_epsilon[state] < tree->view.arc_off[state + 1];
}

/* The next state of an arc, in the layout of the search. */
static uint32_t next_of(const wf__phrase_tree *tree, wf_arc arc) {
  if (tree->ctc == NULL && arc.nextstate == 0) return WF__LANE_LEAVES;
  if (tree->ctc != NULL && wf__leaves_tree(tree, arc))
    return WF__LANE_LEAVES + (arc.nextstate - tree->ctc->first[0] - 1);
  return arc.nextstate | (has_epsilons(tree, arc.nextstate) ? 0x80000000u : 0);
}

static void write_states(const wf__phrase_tree *tree, wf__lane_state *states) {
  for (uint64_t s = 0; s < tree->num_states && tree->ctc == NULL; s++)
    states[s] = (wf__lane_state){(uint32_t)tree->view.arc_off[s], tree->first_epsilon[s],
                                 (uint32_t)tree->view.arc_off[s + 1], INFINITY};
  for (uint64_t s = 0; s < tree->num_states && tree->ctc != NULL; s++) {
    const wf__ctc_state state = tree->ctc->states[s];
    const uint32_t first_epsilon = wf__ctc_first_epsilon(state);
    states[s] = (wf__lane_state){state.first_arc, first_epsilon, first_epsilon + state.num_epsilons,
                                 INFINITY};
  }
}

static wf_status write_arcs(const wf_graph *graph, const wf__phrase_tree *tree, struct sizes sizes,
                            wf_arc *arcs, wf__lane_wide *wide, wf_error *err) {
  wf_arc *to = arcs;
  if (tree->ctc == NULL) memcpy(arcs, tree->view.arcs, tree->num_arcs * sizeof *arcs);
  for (uint64_t v = 0; v < sizes.first_wide && tree->ctc != NULL; v++)
    to = wf__ctc_write_arcs(tree->ctc, (uint32_t)v, to);
  if (sizes.first_wide < tree->num_states)
    WF__TRY(wf__write_wide(tree->ctc, graph->columns, arcs, sizes.num_explicit, wide, err));
  for (uint64_t a = 0; a < sizes.num_arcs; a++) {
    arcs[a].nextstate = next_of(tree, arcs[a]);
    arcs[a].ilabel = graph->columns[arcs[a].ilabel];
  }
  return WF_OK;
}

/* Writes a tree's image, and where it will be. */
static wf_status write_tree(const wf_graph *graph, const wf__phrase_tree *tree, char *image,
                            const char *there, wf__lane_class *out, wf_error *err) {
  const struct sizes sizes = sizes_of(graph, tree);
  const uint64_t arcs_at = states_bytes(tree),
                 wide_at = arcs_at + wf__round_up_256(sizes.num_arcs * sizeof(wf_arc));
  out->states = there;
  out->arcs = there + arcs_at;
  out->wide_states = there + wide_at;
  out->num_states = (uint32_t)tree->num_states;
  out->num_arcs = (uint32_t)tree->num_arcs;
  out->first_wide = (uint32_t)sizes.first_wide;
  out->num_explicit = (uint32_t)sizes.num_explicit;
  out->root = tree->ctc != NULL ? tree->ctc->first[0] : has_epsilons(tree, 0) ? 0x80000000u : 0;
  write_states(tree, (wf__lane_state *)(void *)image);
  return write_arcs(graph, tree, sizes, (wf_arc *)(void *)(image + arcs_at),
                    (wf__lane_wide *)(void *)(image + wide_at), err);
}

/* Builds the image of the GPU memory, which begins at address `there`. */
static wf_status write_words(const wf_graph *graph, const wf_decoder_options *options, char *all,
                             const char *there, wf_error *err) {
  const uint64_t count = (uint64_t)graph->classes->count,
                 first_class = wf__round_up_256(sizeof(wf__lane_words));
  wf__lane_words *words = (wf__lane_words *)(void *)all;
  wf__lane_class *classes = (wf__lane_class *)(void *)(all + first_class);
  uint64_t at = first_class + wf__round_up_256(count * sizeof *classes);
  *words = (wf__lane_words){.num_states = (uint32_t)graph->num_states,
                            .classes = (const wf__lane_class *)(const void *)(there + first_class),
                            .num_classes = (uint32_t)count,
                            .context_bits = wf__gpu_context_bits(graph),
                            .epsilon_slack = wf__epsilon_slack(graph, options, false),
                            .scored_slack = wf__epsilon_slack(graph, options, true)};
  for (uint64_t c = 0; c < count; c++) {
    const wf__added *added = &graph->added[c];
    const wf__phrase_tree *tree = added->tree;
    classes[c] = (wf__lane_class){.first_place = graph->classes->first_ranked[c]};
    if (tree == NULL) continue;
    classes[c].first_state = added->first_state;
    classes[c].first_arc = added->first_arc;
    WF__TRY(write_tree(graph, tree, all + at, there + at, &classes[c], err));
    at += tree_bytes(graph, tree);
  }
  return WF_OK;
}

static wf_status send_words(const wf__words_upload *upload, wf__shared_words *shared,
                            wf_error *err) {
  const wf_graph *graph = shared->graph;
  shared->bytes = wf__round_up_256(sizeof(wf__lane_words)) +
                  wf__round_up_256((uint64_t)graph->classes->count * sizeof(wf__lane_class));
  for (int32_t c = 0; c < graph->classes->count; c++)
    shared->bytes += tree_bytes(graph, graph->added[c].tree);
  WF__TRY(wf__device_alloc((void **)&shared->memory, shared->bytes, "added words", err));
  char *all = wf__calloc(shared->bytes, 1);
  if (all == NULL) return wf__fail_memory(err, shared->bytes, "added words for the GPU");
  wf_status status = write_words(graph, upload->options, all, shared->memory, err);
  if (status == WF_OK)
    status = wf__device_send(shared->memory, all, shared->bytes, upload->stream,
                             "added words to the GPU", err);
  free(all);
  return status;
}

wf_status wf__gpu_acquire_words(wf__gpu_words *words, const wf__words_upload *upload,
                                const wf_graph *graph, wf__shared_words **out, wf_error *err) {
  *out = NULL;
  if (graph->added == NULL) return WF_OK;
  *out = words->shared;
  while (*out != NULL && (*out)->graph != graph) *out = (*out)->next;
  if (*out != NULL) {
    (*out)->users++;
    return WF_OK;
  }
  wf__shared_words *shared = wf__calloc(1, sizeof *shared);
  if (shared == NULL) return wf__fail_memory(err, sizeof *shared, "added words");
  shared->graph = wf_graph_ref(graph);
  shared->users = 1;
  const wf_status status = send_words(upload, shared, err);
  shared->next = words->shared;
  words->shared = shared;
  *out = shared;
  if (status != WF_OK) wf__gpu_release_words(words, out);
  return status;
}

void wf__gpu_release_words(wf__gpu_words *words, wf__shared_words **place) {
  wf__shared_words *shared = *place, **at = &words->shared;
  *place = NULL;
  if (shared == NULL || --shared->users > 0) return;
  while (*at != shared) at = &(*at)->next;
  *at = shared->next;
  cudaFree(shared->memory);
  wf_graph_free(shared->graph);
  free(shared);
}

/* --- of a batch -------------------------------------------------------------------------- */

/* Releases the first `count` of the batch's words. */
static void release_first(wf__gpu_words *words, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) wf__gpu_release_words(words, &words->batch.data[i]);
  words->batch.size -= count;
  if (words->batch.size > 0)
    memmove(words->batch.data, words->batch.data + count,
            words->batch.size * sizeof *words->batch.data);
}

static wf_status acquire_for_batch(wf__gpu_words *words, const wf__words_upload *upload,
                                   const wf_graph *graph, uint64_t before, wf_error *err) {
  uint32_t number;
  bool fresh;
  if (graph->added == NULL) return WF_OK;
  WF__TRY(wf__map64_insert(&words->of_graph, (uint64_t)(uintptr_t)graph,
                           (uint32_t)(words->batch.size - before), &number, &fresh, "added words",
                           err));
  if (!fresh) return WF_OK;
  WF__TRY(wf__vec_grow(&words->batch, 1, "added words", err));
  wf__shared_words **place = &words->batch.data[words->batch.size];
  WF__TRY(wf__gpu_acquire_words(words, upload, graph, place, err));
  words->batch.size++;
  return WF_OK;
}

wf_status wf__gpu_take_words(wf__gpu_words *words, const wf__words_upload *upload,
                             const wf__batch *batch, uint64_t *out_bytes, wf_error *err) {
  const uint64_t before =
      words->batch.size; /* released after the new ones are acquired, as they may be the same */
  wf_status status = WF_OK;
  *out_bytes = 0;
  wf__map64_clear(&words->of_graph);
  for (size_t i = 0; i < batch->count && status == WF_OK; i++)
    if (!batch->skip[i])
      status =
          acquire_for_batch(words, upload, wf__batch_graph(batch, i, upload->graph), before, err);
  release_first(words, before);
  for (uint64_t i = 0; i < words->batch.size; i++) *out_bytes += words->batch.data[i]->bytes;
  return status;
}

const wf__lane_words *wf__gpu_words_of(const wf__gpu_words *words, const wf_graph *graph) {
  const uint32_t number = graph->added != NULL
                              ? wf__map64_find(&words->of_graph, (uint64_t)(uintptr_t)graph)
                              : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? wf__shared_words_there(words->batch.data[number]) : NULL;
}

void wf__gpu_close_words(wf__gpu_words *words) {
  release_first(words, words->batch.size);
  wf__vec_free(&words->batch);
  wf__map64_free(&words->of_graph);
}
