/* label_strings.h - alignments as numbers: a tree of labels in which every string that occurs is one node.
 *
 *   node 0          the empty string
 *   node k          the string of `parent`, and `label` behind it; `size` labels in all
 *
 * Equal strings have equal numbers, so that comparing is free, and the longest common prefix of two is where their ways to the root meet. */
#ifndef WF_LATTICE_LABEL_STRINGS_H
#define WF_LATTICE_LABEL_STRINGS_H

#include "base/map64.h"

typedef struct wf__label_node {
  uint32_t parent, size;
  int32_t label;
  uint32_t stripped; /* memory of wf__labels_strip: what became of this node in round `round` */
  uint32_t round;
} wf__label_node;

typedef struct wf__labels {
  WF__VEC(wf__label_node) nodes;
  wf__map64 map; /* parent << 32 | label -> node */
  uint32_t round;
  WF__VEC(uint32_t) path;
} wf__labels;

wf_status wf__labels_init(wf__labels *labels, wf_error *err);
void wf__labels_free(wf__labels *labels);
static inline uint64_t wf__labels_bytes(const wf__labels *labels) { return labels->nodes.size * (sizeof(wf__label_node) + 2 * 12); }

static inline wf_status wf__labels_append(wf__labels *labels, uint32_t string, int32_t label, uint32_t *out, wf_error *err) {
  bool fresh;
  WF__TRY(wf__vec_grow(&labels->nodes, 1, "alignments", err));
  WF__TRY(wf__map64_insert(&labels->map, (uint64_t)string << 32 | (uint32_t)label, (uint32_t)labels->nodes.size, out, &fresh, "alignments", err));
  if (fresh) labels->nodes.data[labels->nodes.size++] = (wf__label_node){.parent = string, .size = labels->nodes.data[string].size + 1, .label = label};
  return labels->nodes.size < UINT32_MAX - 1 ? WF_OK : wf__fail(err, WF_ERR_LIMIT, "alignments of more than 2^32 labels");
}
/* The longest common prefix. */
uint32_t wf__labels_common(const wf__labels *labels, uint32_t a, uint32_t b);
/* Starts a round of wf__labels_strip with one length. */
void wf__labels_begin_strip(wf__labels *labels);
/* The string without its first `length` labels, at most its size. Within a round work is done once for each node. */
wf_status wf__labels_strip(wf__labels *labels, uint32_t string, uint32_t length, uint32_t *out, wf_error *err);
/* Writes the labels of a string to out[0 .. size). */
void wf__labels_write(const wf__labels *labels, uint32_t string, int32_t *out);

#endif
