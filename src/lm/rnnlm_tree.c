/* rnnlm_tree.c - the Huffman tree of a hierarchical softmax. The faster-rnnlm toolkit does not
 * store the tree in its file, so it is built from the word counts exactly as the toolkit builds it.
 *
 * Nodes 0 .. V - 1 are the words, the most frequent first. Inner nodes follow in the order of their
 * creation. There are two queues in ascending order of weight: the words from last to first, and
 * the inner nodes. A new node takes `arity` children one by one, each the lighter head of the two
 * queues; if both weigh the same, the inner node. */
#include <stdlib.h>

#include "lm/rnnlm.h"

struct tree {
  int64_t *weight; /* [num_nodes] */
  uint32_t *parent;
  uint8_t *branch;
  uint16_t *depth;
  uint64_t num_nodes;
};

static void merge(const wf_rnnlm *lm, struct tree *tree) {
  uint64_t words = lm->num_words, inner = words;
  int64_t leaf = (int64_t)words - 1;
  for (uint64_t node = words; node < tree->num_nodes; node++) {
    tree->weight[node] = 0;
    for (int b = 0; b < lm->arity; b++) {
      bool take_leaf = leaf >= 0 && (inner >= node || tree->weight[leaf] < tree->weight[inner]);
      uint64_t child = take_leaf ? (uint64_t)leaf-- : inner++;
      tree->weight[node] += tree->weight[child];
      tree->parent[child] = (uint32_t)node;
      tree->branch[child] = (uint8_t)b;
    }
  }
}

/* Computes the depths, from the root down. A parent has a larger number than its children. */
static wf_status measure(wf_rnnlm *lm, struct tree *tree, const char *path, wf_error *err) {
  uint64_t total = 0;
  for (uint64_t i = tree->num_nodes - 1; i-- > 0;) {
    tree->depth[i] = (uint16_t)(tree->depth[tree->parent[i]] + 1);
    if (tree->depth[i] > WF__RNN_MAX_PATH)
      return wf__fail(
          err, WF_ERR_LIMIT,
          "%s: the Huffman tree of the word counts is deeper than %d; are they counts of a text?",
          path, WF__RNN_MAX_PATH);
    if (i >= lm->num_words) continue;
    total += tree->depth[i];
    if (tree->depth[i] > lm->max_path) lm->max_path = tree->depth[i];
  }
  lm->path_off = wf__alloc(lm->num_words + 1, sizeof *lm->path_off);
  lm->path = wf__alloc(total, sizeof *lm->path);
  if (lm->path_off == NULL || lm->path == NULL)
    return wf__fail_memory(err, total * sizeof *lm->path, "the paths of a Huffman tree");
  return WF_OK;
}

static void write_paths(wf_rnnlm *lm, const struct tree *tree) {
  uint64_t at = 0;
  for (uint64_t w = 0; w < lm->num_words; w++) {
    lm->path_off[w] = at;
    at += tree->depth[w];
    uint32_t *entry = lm->path + at;
    for (uint64_t i = w; i != tree->num_nodes - 1; i = tree->parent[i])
      *--entry =
          (uint32_t)(tree->parent[i] - lm->num_words) * (uint32_t)lm->arity + tree->branch[i];
  }
  lm->path_off[lm->num_words] = at;
}

wf_status wf__rnn_build_tree(wf_rnnlm *lm, const char *path, wf_error *err) {
  uint64_t words = lm->num_words, arity = (uint64_t)lm->arity;
  if (words < 2)
    return wf__fail(err, WF_ERR_FORMAT, "%s: a hierarchical softmax needs at least two words",
                    path);
  if (arity < 2 || arity > 255 || (words - 1) % (arity - 1) != 0)
    return wf__fail(
        err, WF_ERR_FORMAT,
        "%s: %llu words do not make a tree of arity %d: words - 1 must be a multiple of arity - 1",
        path, (unsigned long long)words, lm->arity);
  struct tree tree = {.num_nodes = words + (words - 1) / (arity - 1)};
  tree.weight = wf__alloc(tree.num_nodes, sizeof *tree.weight);
  tree.parent = wf__alloc(tree.num_nodes, sizeof *tree.parent);
  tree.branch = wf__alloc(tree.num_nodes, sizeof *tree.branch);
  tree.depth = wf__calloc(tree.num_nodes, sizeof *tree.depth);
  wf_status status = WF_OK;
  if (tree.weight == NULL || tree.parent == NULL || tree.branch == NULL || tree.depth == NULL) {
    status = wf__fail_memory(err, tree.num_nodes * 15, "a Huffman tree");
  } else {
    memcpy(tree.weight, lm->counts, words * sizeof *tree.weight);
    merge(lm, &tree);
    status = measure(lm, &tree, path, err);
  }
  if (status == WF_OK) write_paths(lm, &tree);
  free(tree.weight);
  free(tree.parent);
  free(tree.branch);
  free(tree.depth);
  return status;
}
