/* kaldi_tree.c - reads Kaldi's ContextDependency: the decision tree ("event map") from a phone in
 * context to its pdfs.
 *
 *     ContextDependency WIDTH CENTRAL [ToLength MAP] ToPdf MAP EndContextDependency
 *                                                         (only older files have ToLength)
 *     MAP:  CE PDF                              a leaf
 *           TE KEY SIZE ( MAP MAP ... )         a child for each value below SIZE
 *           SE KEY [ VALUES ] { MAP MAP }       the first child for these values, else the second
 *           NULL                                a value that does not occur */
#include "graph/hmm.h"
#include "graph/kaldi_files.h"

/* A node whose children are being read. */
struct open_node {
  uint32_t node;
  uint32_t next; /* index of the next child */
};

struct tree_reader {
  wf__kaldi_stream stream;
  wf__kaldi_tree *tree;
  WF__VEC(struct open_node) open;
  uint64_t num_owed; /* children of tables that are not read yet; the rest of the file must have
                        room for them */
};

static wf_status read_key(struct tree_reader *reader, int32_t *out, wf_error *err) {
  WF__TRY(wf__kaldi_i32(&reader->stream, out, "a key of the tree", err));
  if (*out >= -1 && *out < reader->tree->width) return WF_OK;
  return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT,
                        "the tree has a key %d in a window of %d phones", (int)*out,
                        (int)reader->tree->width);
}

static wf_status read_table(struct tree_reader *reader, wf__tree_node *node, wf_error *err) {
  enum { LEAST_BYTES = 5 }; /* of a child, which is at least "NULL " */
  wf__kaldi_tree *tree = reader->tree;
  uint32_t size;
  WF__TRY(read_key(reader, &node->key, err));
  WF__TRY(wf__kaldi_u32(&reader->stream, &size, "the size of a table", err));
  WF__TRY(wf__kaldi_expect(&reader->stream, "(", err));
  reader->num_owed += size;
  if (reader->num_owed > wf__cursor_left(&reader->stream.cursor) / LEAST_BYTES + 1)
    return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT,
                          "a table has %u children, with %zu bytes left in the file", size,
                          wf__cursor_left(&reader->stream.cursor));
  node->first = tree->children.size;
  node->count = size;
  WF__TRY(wf__vec_grow(&tree->children, size, "a tree", err));
  for (uint32_t i = 0; i < size; i++) tree->children.data[tree->children.size++] = 0;
  return WF_OK;
}

static wf_status read_split(struct tree_reader *reader, wf__tree_node *node, wf_error *err) {
  wf__ints *values = &reader->tree->values;
  WF__TRY(read_key(reader, &node->key, err));
  node->first = values->size;
  WF__TRY(wf__kaldi_i32s(&reader->stream, values, "the values of a split", err));
  node->count = values->size - node->first;
  for (uint64_t i = node->first + 1; i < values->size; i++)
    if (values->data[i] <= values->data[i - 1])
      return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT,
                            "the values of a split are not in ascending order");
  return wf__kaldi_expect(&reader->stream, "{", err);
}

/* Reads a node without its children. */
static wf_status read_node(struct tree_reader *reader, wf__tree_node *node, wf_error *err) {
  wf__span token;
  *node = (wf__tree_node){.kind = WF__TREE_NONE};
  WF__TRY(wf__kaldi_token(&reader->stream, &token, err));
  if (wf__kaldi_is(token, "NULL")) return WF_OK;
  if (wf__kaldi_is(token, "CE")) {
    node->kind = WF__TREE_CONSTANT;
    WF__TRY(wf__kaldi_i32(&reader->stream, &node->pdf, "a leaf of the tree", err));
    if (node->pdf >= 0 && node->pdf < WF__KALDI_MAX_PDF) return WF_OK;
    return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT, "a leaf has the invalid pdf %d",
                          (int)node->pdf);
  }
  bool table = wf__kaldi_is(token, "TE");
  if (!table && !wf__kaldi_is(token, "SE"))
    return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT,
                          "expected a node of the tree: CE, TE, SE or NULL");
  node->kind = table ? WF__TREE_TABLE : WF__TREE_SPLIT;
  return table ? read_table(reader, node, err) : read_split(reader, node, err);
}

/* Makes the node read last the next child of the innermost open node. */
static wf_status attach_child(struct tree_reader *reader, uint32_t child, wf_error *err) {
  wf__kaldi_tree *tree = reader->tree;
  if (reader->open.size == 0) return WF_OK;
  struct open_node *parent = &reader->open.data[reader->open.size - 1];
  wf__tree_node *node = &tree->nodes.data[parent->node];
  uint32_t place = parent->next++;
  if (node->kind == WF__TREE_TABLE) {
    tree->children.data[node->first + place] = child;
    reader->num_owed--;
    return WF_OK;
  }
  if (tree->nodes.data[child].kind == WF__TREE_NONE)
    return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT, "a child of a split (SE) is NULL");
  if (place == 0)
    node->yes = child;
  else
    node->no = child;
  return WF_OK;
}

/* Closes the open nodes that have all their children. */
static wf_status close_complete(struct tree_reader *reader, wf_error *err) {
  while (reader->open.size != 0) {
    const struct open_node *last = &reader->open.data[reader->open.size - 1];
    const wf__tree_node *node = &reader->tree->nodes.data[last->node];
    bool table = node->kind == WF__TREE_TABLE;
    if (last->next < (table ? node->count : 2)) break;
    WF__TRY(wf__kaldi_expect(&reader->stream, table ? ")" : "}", err));
    reader->open.size--;
  }
  return WF_OK;
}

/* Nodes are in depth-first order. Nodes with children still to be read are on a stack. */
static wf_status read_map(struct tree_reader *reader, wf_error *err) {
  wf__kaldi_tree *tree = reader->tree;
  do {
    wf__tree_node node;
    uint32_t index = (uint32_t)tree->nodes.size;
    if (tree->nodes.size >= UINT32_MAX)
      return wf__kaldi_fail(&reader->stream, err, WF_ERR_LIMIT, "a tree of more than 2^32 nodes");
    WF__TRY(read_node(reader, &node, err));
    WF__TRY(wf__vec_push(&tree->nodes, node, "a tree", err));
    WF__TRY(attach_child(reader, index, err));
    if (node.kind == WF__TREE_TABLE || node.kind == WF__TREE_SPLIT)
      WF__TRY(wf__vec_push(&reader->open, ((struct open_node){index, 0}), "a tree", err));
    WF__TRY(close_complete(reader, err));
  } while (reader->open.size != 0);
  return WF_OK;
}

static wf_status read_tree(struct tree_reader *reader, wf_error *err) {
  wf__kaldi_tree *tree = reader->tree;
  wf__span token;
  WF__TRY(wf__kaldi_expect(&reader->stream, "ContextDependency", err));
  WF__TRY(wf__kaldi_i32(&reader->stream, &tree->width, "the context's width", err));
  WF__TRY(wf__kaldi_i32(&reader->stream, &tree->central, "the context's central position", err));
  if (tree->width < 1 || tree->width > WF__HMM_MAX_WIDTH || tree->central < 0 ||
      tree->central >= tree->width)
    return wf__kaldi_fail(
        &reader->stream, err, WF_ERR_UNSUPPORTED,
        "the context has %d phones, the central one at %d; at most %d are supported",
        (int)tree->width, (int)tree->central, (int)WF__HMM_MAX_WIDTH);
  WF__TRY(wf__kaldi_token(&reader->stream, &token, err));
  if (wf__kaldi_is(token, "ToLength")) { /* read and discarded: no longer used */
    WF__TRY(read_map(reader, err));
    tree->nodes.size = tree->children.size = tree->values.size = 0;
    WF__TRY(wf__kaldi_token(&reader->stream, &token, err));
  }
  if (!wf__kaldi_is(token, "ToPdf"))
    return wf__kaldi_fail(&reader->stream, err, WF_ERR_FORMAT, "expected 'ToPdf'");
  WF__TRY(read_map(reader, err));
  return wf__kaldi_expect(&reader->stream, "EndContextDependency", err);
}

wf_status wf__kaldi_tree_read(const wf__input *input, wf__kaldi_tree *out, wf_error *err) {
  *out = (wf__kaldi_tree){0};
  struct tree_reader reader = {.stream = wf__kaldi_open(input), .tree = out};
  wf_status status = read_tree(&reader, err);
  wf__vec_free(&reader.open);
  if (status != WF_OK) wf__kaldi_tree_free(out);
  return status;
}

void wf__kaldi_tree_free(wf__kaldi_tree *tree) {
  wf__vec_free(&tree->nodes);
  wf__vec_free(&tree->children);
  wf__vec_free(&tree->values);
  *tree = (wf__kaldi_tree){0};
}

static bool holds(const int32_t *values, uint64_t count, int32_t value) {
  uint64_t low = 0, high = count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (values[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && values[low] == value;
}

int32_t wf__kaldi_tree_pdf(const wf__kaldi_tree *tree, const int32_t *window, int32_t pdf_class) {
  const wf__tree_node *node = &tree->nodes.data[0];
  while (node->kind != WF__TREE_CONSTANT) {
    if (node->kind == WF__TREE_NONE) return -1;
    int32_t value = node->key < 0 ? pdf_class : window[node->key];
    if (node->kind == WF__TREE_SPLIT) {
      node =
          &tree->nodes.data[holds(tree->values.data + node->first, node->count, value) ? node->yes
                                                                                       : node->no];
    } else {
      if (value < 0 || (uint64_t)value >= node->count) return -1;
      node = &tree->nodes.data[tree->children.data[node->first + (uint64_t)value]];
    }
  }
  return node->pdf;
}
