/* phrase_tree.c - makes the tree of phrases. The phrases are sorted by their labels, so those with
 * a common prefix are neighbours, and each node of the tree is a range of them. */
#include "search/phrase_tree.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "fst/fst.h"

/* A phrase as one string of labels and one of words. starts[i] is the position of the first label
 * of word i. */
struct line {
  const int32_t *labels, *words;
  const uint32_t *starts;
  uint32_t num_labels, num_words;
  float cost;
};

/* The lines [first, end) share their first `depth` labels. The first `num_written` of their words
 * are already on arcs. If `paid`, their costs are, too. */
struct node {
  uint64_t first, end;
  uint32_t depth, num_written;
  uint32_t state; /* the root, or the state n of these labels */
  bool paid;
};

struct making {
  WF__VEC(int32_t) labels;
  WF__VEC(int32_t) words;
  WF__VEC(uint32_t) starts;
  struct line *lines;
  uint64_t num_lines;
  wf__phrase_task task;
  WF__VEC(struct node) queue;
  wf_builder *builder;
};

/* --- lines ------------------------------------------------------------------------------- */

static wf_status check_word(const wf_spoken_word *word, size_t number, const wf__phrase_task *task,
                            wf_error *err) {
  if (word->word <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "added phrase %zu: %d is not a word label", number,
                    (int)word->word);
  if (word->num_labels == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "added phrase %zu: a word without a pronunciation",
                    number);
  for (size_t i = 0; i < word->num_labels; i++) {
    if (word->labels[i] == task->blank)
      return wf__fail(err, WF_ERR_ARGUMENT, "added phrase %zu: the blank in a pronunciation",
                      number);
    if (word->labels[i] <= 0 || word->labels[i] >= task->num_labels)
      return wf__fail(
          err, WF_ERR_ARGUMENT,
          "added phrase %zu: label %d is not a token of the model, whose largest label is %d",
          number, (int)word->labels[i], (int)task->num_labels - 1);
  }
  return WF_OK;
}

static wf_status add_separator(struct making *making, struct line *line, wf_error *err) {
  line->num_labels++;
  return wf__vec_push(&making->labels, making->task.separator, "added phrases", err);
}

static wf_status add_word(struct making *making, struct line *line, const wf_spoken_word *word,
                          wf_error *err) {
  WF__TRY(wf__vec_push(&making->words, word->word, "added phrases", err));
  WF__TRY(wf__vec_push(&making->starts, line->num_labels, "added phrases", err));
  WF__TRY(wf__vec_grow(&making->labels, word->num_labels, "added phrases", err));
  memcpy(making->labels.data + making->labels.size, word->labels,
         word->num_labels * sizeof *word->labels);
  making->labels.size += word->num_labels;
  if (making->labels.size > INT32_MAX / 4)
    return wf__fail(err, WF_ERR_LIMIT, "added phrases: more than 2^29 labels");
  line->num_labels += (uint32_t)word->num_labels;
  line->num_words++;
  return WF_OK;
}

static wf_status take_lines(struct making *making, const wf_added_phrase *phrases, size_t count,
                            wf_error *err) {
  making->lines = wf__calloc(count, sizeof *making->lines);
  if (making->lines == NULL)
    return wf__fail_memory(err, count * sizeof *making->lines, "added phrases");
  making->num_lines = count;
  for (size_t i = 0; i < count; i++) {
    struct line *line = &making->lines[i];
    line->cost = phrases[i].cost;
    if (phrases[i].num_words == 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "added phrase %zu: no words", i);
    if (!(fabsf(line->cost) <= 1e20f))
      return wf__fail(err, WF_ERR_ARGUMENT, "added phrase %zu: cost %g, beyond 1e20", i,
                      (double)line->cost);
    for (size_t k = 0; k < phrases[i].num_words; k++) {
      WF__TRY(check_word(&phrases[i].words[k], i, &making->task, err));
      if (making->task.separator != 0 && k > 0) WF__TRY(add_separator(making, line, err));
      WF__TRY(add_word(making, line, &phrases[i].words[k], err));
    }
  }
  const int32_t *labels = making->labels.data,
                *words = making->words.data; /* the arrays do not move from now on */
  const uint32_t *starts = making->starts.data;
  for (size_t i = 0; i < count; i++) {
    struct line *line = &making->lines[i];
    line->labels = labels;
    line->words = words;
    line->starts = starts;
    labels += line->num_labels;
    words += line->num_words;
    starts += line->num_words;
  }
  return WF_OK;
}

static int compare_strings(const int32_t *a, uint32_t num_a, const int32_t *b, uint32_t num_b) {
  for (uint32_t i = 0; i < num_a && i < num_b; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return (num_a > num_b) - (num_a < num_b);
}

static int compare_speech(const struct line *a, const struct line *b) {
  int order = compare_strings(a->labels, a->num_labels, b->labels, b->num_labels);
  return order != 0 ? order : compare_strings(a->words, a->num_words, b->words, b->num_words);
}

/* Lines that sound and read the same are sorted by cost, cheapest first, then by the starts of
 * their words. So the order does not depend on the order of the input. */
static int compare_lines(const void *x, const void *y) {
  const struct line *a = x, *b = y;
  int order = compare_speech(a, b);
  if (order != 0) return order;
  if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
  return compare_strings((const int32_t *)a->starts, a->num_words, (const int32_t *)b->starts,
                         b->num_words);
}

static void sort_lines(struct making *making) {
  if (making->num_lines == 0) return;
  qsort(making->lines, making->num_lines, sizeof *making->lines, compare_lines);
  uint64_t kept = 1;
  for (uint64_t i = 1; i < making->num_lines; i++)
    if (compare_speech(&making->lines[kept - 1], &making->lines[i]) != 0)
      making->lines[kept++] = making->lines[i];
  making->num_lines = kept;
}

/* --- the tree ---------------------------------------------------------------------------- */

/* The word that all lines of the node write next, if its first label is among the first `depth`;
 * else 0. */
static int32_t common_word(const struct making *making, const struct node *node) {
  const struct line *lines = making->lines;
  uint32_t i = node->num_written;
  for (uint64_t k = node->first; k < node->end; k++)
    if (lines[k].num_words <= i || lines[k].words[i] != lines[node->first].words[i] ||
        lines[k].starts[i] >= node->depth)
      return 0;
  return lines[node->first].words[i];
}

static bool have_common_cost(const struct making *making, const struct node *node) {
  for (uint64_t k = node->first + 1; k < node->end; k++)
    if (making->lines[k].cost != making->lines[node->first].cost) return false;
  return true;
}

/* Adds the path from `from`, where the line ends, to the root. It writes the words that are not
 * written yet. */
static wf_status leave(struct making *making, const struct line *line, const struct node *node,
                       uint32_t from, wf_error *err) {
  float cost = node->paid ? 0 : line->cost;
  for (uint32_t i = node->num_written; i + 1 < line->num_words; i++) {
    uint32_t next;
    WF__TRY(wf_builder_add_states(making->builder, 1, &next, err));
    WF__TRY(
        wf_builder_add_arc(making->builder, from, (wf_arc){next, cost, 0, line->words[i]}, err));
    from = next;
    cost = 0;
  }
  int32_t last = node->num_written < line->num_words ? line->words[line->num_words - 1] : 0;
  return wf_builder_add_arc(making->builder, from, (wf_arc){0, cost, 0, last}, err);
}

/* Adds the states m and n of a child, or the one that is both, and the arcs from `from` to them. */
static wf_status add_child(struct making *making, uint32_t from, struct node child, wf_error *err) {
  wf_builder *builder = making->builder;
  int32_t label = making->lines[child.first].labels[child.depth - 1],
          word = common_word(making, &child);
  float cost = 0;
  if (word != 0) child.num_written++;
  if (!child.paid && have_common_cost(making, &child)) {
    child.paid = true;
    cost = making->lines[child.first].cost;
  }
  uint32_t m;
  uint64_t first_longer = child.first;
  while (first_longer < child.end && making->lines[first_longer].num_labels == child.depth)
    first_longer++;
  const wf__phrase_kind kind = making->task.kind;
  const bool goes_on = first_longer<child.end, ends = first_longer> child.first,
             split = goes_on && (kind == WF__PHRASE_FRAMES || (kind == WF__PHRASE_ONCE && ends));
  WF__TRY(wf_builder_add_states(builder, split ? 2 : 1, &m, err));
  WF__TRY(wf_builder_add_arc(builder, from, (wf_arc){m, cost, label, word}, err));
  if (kind == WF__PHRASE_FRAMES)
    WF__TRY(wf_builder_add_arc(builder, m, (wf_arc){m, 0, label, 0}, err));
  for (uint64_t k = child.first; k < first_longer; k++)
    WF__TRY(leave(making, &making->lines[k], &child, m, err));
  if (!goes_on) return WF_OK;
  child.first = first_longer;
  child.state = split ? m + 1 : m;
  if (split) WF__TRY(wf_builder_add_arc(builder, m, (wf_arc){child.state, 0, 0, 0}, err));
  if (kind != WF__PHRASE_TOKENS)
    WF__TRY(wf_builder_add_arc(builder, child.state,
                               (wf_arc){child.state, 0, making->task.blank, 0}, err));
  return wf__vec_push(&making->queue, child, "added phrases", err);
}

static wf_status grow_tree(struct making *making, wf_error *err) {
  uint32_t root;
  WF__TRY(wf_builder_add_states(making->builder, 1, &root, err));
  WF__TRY(wf_builder_set_start(making->builder, root, err));
  if (making->task.kind != WF__PHRASE_TOKENS) /* there it could be waited in */
    WF__TRY(wf_builder_set_final(making->builder, root, 0, err));
  WF__TRY(wf__vec_push(&making->queue, ((struct node){.end = making->num_lines, .state = root}),
                       "added phrases", err));
  for (uint64_t head = 0; head < making->queue.size; head++) {
    struct node node = making->queue.data[head];
    for (uint64_t k = node.first, end; k < node.end; k = end) {
      int32_t label = making->lines[k].labels[node.depth];
      for (end = k + 1; end < node.end && making->lines[end].labels[node.depth] == label; end++) {
      }
      WF__TRY(add_child(making, node.state,
                        (struct node){k, end, node.depth + 1, node.num_written, 0, node.paid},
                        err));
    }
  }
  return WF_OK;
}

static wf_status index_states(wf__phrase_tree *tree, wf_error *err) {
  tree->num_states = tree->view.num_states;
  tree->num_arcs = tree->view.num_arcs;
  tree->first_epsilon = wf__alloc(tree->view.num_states, sizeof *tree->first_epsilon);
  if (tree->first_epsilon == NULL)
    return wf__fail_memory(err, tree->view.num_states * 4, "added phrases");
  for (uint64_t s = 0; s < tree->view.num_states; s++) {
    uint64_t i = tree->view.arc_off[s];
    while (i < tree->view.arc_off[s + 1] && tree->view.arcs[i].ilabel != 0) i++;
    tree->first_epsilon[s] = (uint32_t)i;
  }
  return WF_OK;
}

static wf_status find_ctc_states(wf__phrase_tree *tree, const wf__phrase_task *task,
                                 wf_error *err) {
  const uint32_t root = 0;
  const wf__ctc_entries entries = {&root, 1, task->num_labels};
  WF__TRY(wf__ctc_states_create(tree->fst, task->blank, &entries, &tree->ctc, err));
  tree->num_states = tree->ctc->num_states;
  tree->num_arcs = tree->ctc->num_arcs;
  return WF_OK;
}

static wf_status index_tree(wf__phrase_tree *tree, const wf__phrase_task *task, wf_error *err) {
  const wf_fst_view *view = &tree->view;
  tree->view = wf_fst_get_view(tree->fst);
  for (uint64_t a = 0; a < view->num_arcs; a++) {
    if (view->arcs[a].ilabel != 0) continue;
    tree->has_negative_epsilons = tree->has_negative_epsilons || view->arcs[a].weight < 0;
    tree->has_epsilon_words = tree->has_epsilon_words || view->arcs[a].olabel != 0;
  }
  return task->kind == WF__PHRASE_TOKENS ? find_ctc_states(tree, task, err)
                                         : index_states(tree, err);
}

wf_status wf__phrase_tree_of_fst(const wf_fst *fst, const wf__phrase_task *task,
                                 wf__phrase_tree **out, wf_error *err) {
  *out = NULL;
  wf__phrase_tree *tree = wf__calloc(1, sizeof *tree);
  if (tree == NULL) return wf__fail_memory(err, sizeof *tree, "added phrases");
  atomic_init(&tree->refs, 1);
  wf_status status = task->kind == WF__PHRASE_TOKENS ? wf__ctc_order_arcs(fst, &tree->fst, err)
                                                     : wf_epsilons_last(fst, &tree->fst, err);
  if (status == WF_OK) status = index_tree(tree, task, err);
  if (status == WF_OK)
    *out = tree;
  else
    wf__phrase_tree_free(tree);
  return status;
}

static wf_status make(struct making *making, wf__phrase_tree **out, wf_error *err) {
  wf_fst *fst;
  sort_lines(making);
  WF__TRY(wf_builder_create(WF_TROPICAL, &making->builder, err));
  WF__TRY(grow_tree(making, err));
  WF__TRY(wf_builder_finish(making->builder, NULL, NULL, &fst, err));
  wf_status status = wf__phrase_tree_of_fst(fst, &making->task, out, err);
  wf_fst_free(fst);
  return status;
}

wf_status wf__phrase_tree_create(const wf_added_phrase *phrases, size_t count,
                                 const wf__phrase_task *task, wf__phrase_tree **out,
                                 wf_error *err) {
  *out = NULL;
  struct making making = {.task = *task};
  wf_status status = take_lines(&making, phrases, count, err);
  if (status == WF_OK) status = make(&making, out, err);
  wf__vec_free(&making.labels);
  wf__vec_free(&making.words);
  wf__vec_free(&making.starts);
  free(making.lines);
  wf__vec_free(&making.queue);
  wf_builder_free(making.builder);
  return status;
}

wf__phrase_tree *wf__phrase_tree_ref(wf__phrase_tree *tree) {
  if (tree != NULL) atomic_fetch_add(&tree->refs, 1);
  return tree;
}

void wf__phrase_tree_free(wf__phrase_tree *tree) {
  if (tree == NULL || atomic_fetch_sub(&tree->refs, 1) != 1) return;
  wf__ctc_states_free(tree->ctc);
  wf_fst_free(tree->fst);
  free(tree->first_epsilon);
  free(tree);
}
