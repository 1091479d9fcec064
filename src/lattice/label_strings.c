/* label_strings.c - the tree of alignments that determinization works with. */
#include "lattice/label_strings.h"

#include <string.h>

wf_status wf__labels_begin(wf__labels *labels, wf_error *err) {
  labels->nodes.size = labels->roots.size = 0;
  labels->round = 0;
  wf__map64_clear(&labels->others);
  return wf__vec_push(&labels->nodes, (wf__label_node){0}, "alignments", err);
}

void wf__labels_free(wf__labels *labels) {
  wf__vec_free(&labels->nodes);
  wf__vec_free(&labels->roots);
  wf__vec_free(&labels->path);
  wf__map64_free(&labels->others);
}

/* Makes room for a child of node 0. */
static wf_status grow_roots(wf__labels *labels, int32_t label, wf_error *err) {
  const uint64_t old = labels->roots.size, size = (uint64_t)label + 1;
  if (size <= old) return WF_OK;
  WF__TRY(wf__vec_grow(&labels->roots, size - old, "alignments", err));
  memset(labels->roots.data + old, 0, (size - old) * sizeof *labels->roots.data);
  labels->roots.size = size;
  return WF_OK;
}

wf_status wf__labels_add(wf__labels *labels, uint32_t string, int32_t label, bool chained,
                         uint32_t *out, wf_error *err) {
  const bool root = string == 0 && (uint32_t)label < WF__MOST_ROOTS;
  uint32_t fresh = *out = (uint32_t)labels->nodes.size;
  if (root)
    WF__TRY(grow_roots(labels, label, err));
  else if (!chained)
    WF__TRY(wf__map64_insert(&labels->others, (uint64_t)string << 32 | (uint32_t)label, fresh, out,
                             NULL, "alignments", err));
  if (*out != fresh) return WF_OK;
  if (fresh >= UINT32_MAX - 2)
    return wf__fail(err, WF_ERR_LIMIT, "alignments of more than 2^32 labels");
  wf__label_node node = {
      .parent = string, .size = labels->nodes.data[string].size + 1, .label = label};
  if (root) {
    labels->roots.data[label] = fresh;
  } else if (chained) {
    node.sibling = labels->nodes.data[string].child;
    labels->nodes.data[string].child = fresh;
  }
  return wf__vec_push(&labels->nodes, node, "alignments", err);
}

void wf__labels_begin_round(wf__labels *labels) {
  if (++labels->round != 0) return;
  for (uint64_t i = 0; i < labels->nodes.size; i++)
    labels->nodes.data[i].stripped_in = labels->nodes.data[i].met_in =
        0; /* the round counter has wrapped */
  labels->round = 1;
}

uint32_t wf__labels_meet(wf__labels *labels, uint32_t common, uint32_t string) {
  wf__label_node *nodes = labels->nodes.data;
  const uint32_t round = labels->round;
  nodes[common].met_in = round;
  for (; nodes[string].size > nodes[common].size; string = nodes[string].parent) {
    if (nodes[string].met_in == round) return common;
    nodes[string].met_in = round;
  }
  for (; nodes[common].size > nodes[string].size; common = nodes[common].parent)
    nodes[common].met_in = round;
  for (; common != string; common = nodes[common].parent, string = nodes[string].parent)
    nodes[common].met_in = nodes[string].met_in = round;
  return common;
}

wf_status wf__labels_strip_slowly(wf__labels *labels, uint32_t string, uint32_t length,
                                  uint32_t *out, wf_error *err) {
  uint32_t at = string, stripped = 0;
  labels->path.size = 0;
  for (; labels->nodes.data[at].size > length; at = labels->nodes.data[at].parent) {
    if (labels->nodes.data[at].stripped_in == labels->round) {
      stripped = labels->nodes.data[at].stripped;
      break;
    }
    WF__TRY(wf__vec_push(&labels->path, at, "alignments", err));
  }
  for (uint64_t i = labels->path.size; i-- > 0;) {
    uint32_t node = labels->path.data[i];
    WF__TRY(wf__labels_append(labels, stripped, labels->nodes.data[node].label, &stripped, err));
    labels->nodes.data[node].stripped_in = labels->round;
    labels->nodes.data[node].stripped = stripped;
  }
  *out = stripped;
  return WF_OK;
}

void wf__labels_write(const wf__labels *labels, uint32_t string, int32_t *out) {
  for (; string != 0; string = labels->nodes.data[string].parent)
    out[labels->nodes.data[string].size - 1] = labels->nodes.data[string].label;
}
