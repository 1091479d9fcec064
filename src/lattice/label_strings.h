/* label_strings.h - alignments as numbers: a tree of labels in which every string that occurs is
 * one node.
 *
 *   node 0          the empty string
 *   node k          the string of `parent`, and `label` behind it; `size` labels in all
 *
 * The first few children of a node are a chain, newest first, mostly next to it in memory;
 * further ones, and those of node 0, are found by a hash table. Equal strings have equal
 * numbers, so comparing is free, and the longest common prefix of two is where their paths to
 * the root meet. */
#ifndef WF_LATTICE_LABEL_STRINGS_H
#define WF_LATTICE_LABEL_STRINGS_H

#include "base/map64.h"

typedef struct wf__label_node {
  uint32_t parent, size;
  int32_t label;
  uint32_t stripped; /* memory of wf__labels_strip: this node's result in round `round` */
  uint32_t round;
  uint32_t child, sibling; /* first child, next child of the same parent; 0: none */
} wf__label_node;

typedef struct wf__labels {
  WF__VEC(wf__label_node) nodes;
  wf__map64 others; /* parent << 32 | label -> node, for children that are in no chain */
  uint32_t round;
  WF__VEC(uint32_t) path;
} wf__labels;

enum {
  WF__MOST_IN_CHAIN = 4,
  WF__BYTES_OF_STRING = 44
}; /* a node and its share of the tables, at most */

/* Empties the tree, except for the empty string; memory is kept. The tree may be
 * zero-initialised. */
wf_status wf__labels_begin(wf__labels *labels, wf_error *err);
void wf__labels_free(wf__labels *labels);
static inline uint64_t wf__labels_bytes(const wf__labels *labels) {
  return labels->nodes.size * WF__BYTES_OF_STRING;
}
/* The string with one more label that is not a child in the chain of `string`. */
wf_status wf__labels_add(wf__labels *labels, uint32_t string, int32_t label, bool chained,
                         uint32_t *out, wf_error *err);

static inline wf_status wf__labels_append(wf__labels *labels, uint32_t string, int32_t label,
                                          uint32_t *out, wf_error *err) {
  const wf__label_node *nodes = labels->nodes.data;
  int length = string == 0 ? WF__MOST_IN_CHAIN : 0;
  for (uint32_t child = nodes[string].child; child != 0; child = nodes[child].sibling, length++) {
    if (nodes[child].label != label) continue;
    *out = child;
    return WF_OK;
  }
  return wf__labels_add(labels, string, label, length < WF__MOST_IN_CHAIN, out, err);
}
/* The longest common prefix. */
uint32_t wf__labels_common(const wf__labels *labels, uint32_t a, uint32_t b);
/* Starts a round of wf__labels_strip with one length. */
void wf__labels_begin_strip(wf__labels *labels);
/* The string without its first `length` labels (at most its size). Within a round each node is
 * processed once. */
wf_status wf__labels_strip(wf__labels *labels, uint32_t string, uint32_t length, uint32_t *out,
                           wf_error *err);
/* Writes the labels of a string to out[0 .. size). */
void wf__labels_write(const wf__labels *labels, uint32_t string, int32_t *out);

#endif
