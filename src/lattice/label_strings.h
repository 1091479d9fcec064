/* label_strings.h - alignments as numbers: a tree of labels in which every string that occurs is
 * one node.
 *
 *   node 0          the empty string
 *   node k          the string of `parent`, and `label` behind it; `size` labels in all
 *
 * The first few children of a node are a chain, newest first, mostly next to it in memory;
 * further ones are found by a hash table, and those of node 0 by their label. Equal strings have
 * equal numbers, so comparing is free, and the longest common prefix of two is where their paths
 * to the root meet. */
#ifndef WF_LATTICE_LABEL_STRINGS_H
#define WF_LATTICE_LABEL_STRINGS_H

#include "base/map64.h"

typedef struct wf__label_node {
  uint32_t parent, size;
  int32_t label;
  uint32_t stripped; /* result of wf__labels_strip in round `stripped_in` */
  uint32_t stripped_in;
  uint32_t met_in;         /* round in which it was found to be a prefix (wf__labels_meet) */
  uint32_t child, sibling; /* first child, next child of the same parent; 0: none */
} wf__label_node;

typedef struct wf__labels {
  WF__VEC(wf__label_node) nodes;
  WF__VEC(uint32_t) roots; /* children of node 0, by label; 0: none */
  wf__map64 others; /* parent << 32 | label -> node, for children that are found in no other way */
  uint32_t round;
  WF__VEC(uint32_t) path;
} wf__labels;

enum {
  WF__MOST_IN_CHAIN = 4,
  WF__MOST_ROOTS = 1 << 16, /* larger labels are in the hash table */
  WF__BYTES_OF_STRING = 44
}; /* a node and its share of the tables, at most */

/* Empties the tree, except for the empty string; memory is kept. The tree may be
 * zero-initialised. */
wf_status wf__labels_begin(wf__labels *labels, wf_error *err);
void wf__labels_free(wf__labels *labels);
static inline uint64_t wf__labels_bytes(const wf__labels *labels) {
  return labels->nodes.size * WF__BYTES_OF_STRING;
}
/* The string with one more label, if that is not a child that wf__labels_append finds. */
wf_status wf__labels_add(wf__labels *labels, uint32_t string, int32_t label, bool chained,
                         uint32_t *out, wf_error *err);

static inline wf_status wf__labels_append(wf__labels *labels, uint32_t string, int32_t label,
                                          uint32_t *out, wf_error *err) {
  const wf__label_node *nodes = labels->nodes.data;
  if (string == 0) {
    if ((uint32_t)label < labels->roots.size && labels->roots.data[label] != 0) {
      *out = labels->roots.data[label];
      return WF_OK;
    }
    return wf__labels_add(labels, string, label, false, out, err);
  }
  int length = 0;
  for (uint32_t child = nodes[string].child; child != 0; child = nodes[child].sibling, length++) {
    if (nodes[child].label != label) continue;
    *out = child;
    return WF_OK;
  }
  return wf__labels_add(labels, string, label, length < WF__MOST_IN_CHAIN, out, err);
}
/* Begins a round: the strings of one set. Within it each node is visited once by wf__labels_meet,
 * and once by wf__labels_strip, which is called with one length. */
void wf__labels_begin_round(wf__labels *labels);
/* The longest common prefix of a set of strings with one more string. `common` is that of the set:
 * the result of the last call in this round, or the first string. */
uint32_t wf__labels_meet(wf__labels *labels, uint32_t common, uint32_t string);
/* The string without its first `length` labels (at most its size). */
wf_status wf__labels_strip_slowly(wf__labels *labels, uint32_t string, uint32_t length,
                                  uint32_t *out, wf_error *err);
/* The same, at once if the string before the last label was stripped in this round. */
static inline wf_status wf__labels_strip(wf__labels *labels, uint32_t string, uint32_t length,
                                         uint32_t *out, wf_error *err) {
  const wf__label_node *node = &labels->nodes.data[string],
                       *parent = &labels->nodes.data[node->parent];
  const uint32_t round = labels->round;
  *out = length == 0 ? string : node->stripped_in == round ? node->stripped : 0;
  if (length == 0 || node->stripped_in == round || node->size <= length) return WF_OK;
  if (parent->size > length && parent->stripped_in != round)
    return wf__labels_strip_slowly(labels, string, length, out, err);
  WF__TRY(wf__labels_append(labels, parent->size > length ? parent->stripped : 0, node->label, out,
                            err));
  labels->nodes.data[string].stripped_in = round;
  labels->nodes.data[string].stripped = *out;
  return WF_OK;
}
/* Writes the labels of a string to out[0 .. size). */
void wf__labels_write(const wf__labels *labels, uint32_t string, int32_t *out);

#endif
