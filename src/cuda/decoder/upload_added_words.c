/* upload_added_words.c - words added to graphs, on a GPU: the phrase trees of search_graph.cuh.
 *
 *   memory of a graph   wf__lane_words | wf__lane_class of each class | tree: states, arcs |
 *                       tree ...    at multiples of 256 bytes
 *
 * A graph's words are sent once and stay while streams or the last batch use the graph. So a
 * list for all utterances is not sent with every batch. */
#include "cuda/decoder/upload_added_words.h"

#include <math.h>
#include <string.h>

#include "cuda/device/device_memory.h"

static uint64_t tree_bytes(const wf__phrase_tree *tree) {
  return tree != NULL ? wf__round_up_256(tree->view.num_states * sizeof(wf__lane_state)) +
                            wf__round_up_256(tree->view.num_arcs * sizeof(wf_arc))
                      : 0;
}

static bool has_epsilons(const wf__phrase_tree *tree, uint32_t state) {
  return tree->first_epsilon[state] < tree->view.arc_off[state + 1];
}

static void write_tree(const wf_graph *graph, const wf__phrase_tree *tree, wf__lane_state *states,
                       wf_arc *arcs) {
  for (uint64_t s = 0; s < tree->view.num_states; s++)
    states[s] = (wf__lane_state){(uint32_t)tree->view.arc_off[s], tree->first_epsilon[s],
                                 (uint32_t)tree->view.arc_off[s + 1], INFINITY};
  for (uint64_t a = 0; a < tree->view.num_arcs; a++) {
    wf_arc arc = tree->view.arcs[a];
    if (has_epsilons(tree, arc.nextstate)) arc.nextstate |= 0x80000000u;
    arc.ilabel = graph->columns[arc.ilabel];
    arcs[a] = arc;
  }
}

/* Builds the image of the GPU memory, which begins at address `there`. */
static void write_words(const wf_graph *graph, const wf_decoder_options *options, char *all,
                        const char *there) {
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
    const uint64_t arcs_at = at + wf__round_up_256(tree->view.num_states * sizeof(wf__lane_state));
    classes[c].states = there + at;
    classes[c].arcs = there + arcs_at;
    classes[c].first_state = added->first_state;
    classes[c].first_arc = added->first_arc;
    classes[c].num_states = (uint32_t)tree->view.num_states;
    classes[c].num_arcs = (uint32_t)tree->view.num_arcs;
    classes[c].root_mark = has_epsilons(tree, 0) ? 0x80000000u : 0;
    write_tree(graph, tree, (wf__lane_state *)(void *)(all + at),
               (wf_arc *)(void *)(all + arcs_at));
    at += tree_bytes(tree);
  }
}

static wf_status send_words(const wf__words_upload *upload, wf__shared_words *shared,
                            wf_error *err) {
  const wf_graph *graph = shared->graph;
  shared->bytes = wf__round_up_256(sizeof(wf__lane_words)) +
                  wf__round_up_256((uint64_t)graph->classes->count * sizeof(wf__lane_class));
  for (int32_t c = 0; c < graph->classes->count; c++)
    shared->bytes += tree_bytes(graph->added[c].tree);
  WF__TRY(wf__device_alloc((void **)&shared->memory, shared->bytes, "added words", err));
  char *all = wf__calloc(shared->bytes, 1);
  if (all == NULL) return wf__fail_memory(err, shared->bytes, "added words for the GPU");
  write_words(graph, upload->options, all, shared->memory);
  const wf_status status = wf__device_send(shared->memory, all, shared->bytes, upload->stream,
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
