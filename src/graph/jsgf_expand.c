/* jsgf_expand.c - makes an fst of the rules of a grammar in JSGF.
 *
 * A node is expanded between two states (Thompson 1968). No node adds arcs that enter its first
 * state or leave its last one, so parts can share them. What is to be expanded waits in a list, since
 * rules may be nested to any depth.
 *
 * A rule that uses itself is expanded once for each use from outside, with an entry state of its own.
 * A use at its end is an arc back to the entry; both end in the same state. */
#include <math.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "graph/jsgf.h"

enum { START, END };

struct item {
  uint32_t node, from, to;
  uint32_t instance; /* of the rules around it that use themselves; WF__JSGF_NONE: none */
  double cost;       /* of its first arc */
};

/* One use, from outside, of rules that use each other. */
struct instance {
  uint32_t component, to;
};

struct expansion {
  const wf__jsgf *jsgf;
  wf_builder *builder;
  WF__VEC(struct item) waiting;
  WF__VEC(struct instance) instances;
  wf__map64 entries; /* (instance, rule) -> entry state */
};

static wf_status add_item(struct expansion *ex, uint32_t node, uint32_t from, uint32_t to,
                          uint32_t instance, double cost, wf_error *err) {
  WF__TRY(wf__vec_grow(&ex->waiting, 1, "expanding a grammar", err));
  ex->waiting.data[ex->waiting.size++] = (struct item){node, from, to, instance, cost};
  return WF_OK;
}

static wf_status add_arc(struct expansion *ex, uint32_t from, uint32_t to, int32_t label,
                         double cost, wf_error *err) {
  if (label == 0 && from == to) return WF_OK;
  return wf_builder_add_arc(ex->builder, from, (wf_arc){to, (float)cost, label, label}, err);
}

static wf_status add_state(struct expansion *ex, uint32_t *out, wf_error *err) {
  return wf_builder_add_states(ex->builder, 1, out, err);
}

/* --- nodes ------------------------------------------------------------------------------- */

/* Finds or makes the entry of a rule that uses itself. */
static wf_status enter(struct expansion *ex, uint32_t rule, uint32_t instance, uint32_t *out,
                       wf_error *err) {
  const uint64_t key = (uint64_t)instance << 32 | rule;
  *out = wf__map64_find(&ex->entries, key);
  if (*out != WF__MAP64_NONE) return WF_OK;
  WF__TRY(add_state(ex, out, err));
  WF__TRY(wf__map64_insert(&ex->entries, key, *out, out, NULL, "rules of a grammar", err));
  return add_item(ex, ex->jsgf->rules.data[rule].body, *out, ex->instances.data[instance].to,
                  instance, 0, err);
}

static wf_status use_rule(struct expansion *ex, uint32_t number, const struct item *at,
                          wf_error *err) {
  const wf__jsgf_rule *rule = &ex->jsgf->rules.data[number];
  uint32_t instance = at->instance, entry;
  if (!rule->is_recursive)
    return add_item(ex, rule->body, at->from, at->to, WF__JSGF_NONE, at->cost, err);
  if (instance == WF__JSGF_NONE || ex->instances.data[instance].component != rule->component) {
    instance = (uint32_t)ex->instances.size;
    WF__TRY(wf__vec_push(&ex->instances, ((struct instance){rule->component, at->to}),
                         "rules of a grammar", err));
  }
  WF__TRY(enter(ex, number, instance, &entry, err));
  return add_arc(ex, at->from, entry, 0, at->cost, err);
}

static wf_status expand_sequence(struct expansion *ex, const struct item *at, wf_error *err) {
  const wf__jsgf_node *nodes = ex->jsgf->nodes.data;
  uint32_t from = at->from, to;
  for (uint32_t i = nodes[at->node].first; i != WF__JSGF_NONE; i = nodes[i].next, from = to) {
    to = at->to;
    if (nodes[i].next != WF__JSGF_NONE) WF__TRY(add_state(ex, &to, err));
    WF__TRY(add_item(ex, i, from, to, at->instance, from == at->from ? at->cost : 0, err));
  }
  return WF_OK;
}

static wf_status expand_choice(struct expansion *ex, const struct item *at, wf_error *err) {
  const wf__jsgf_node *nodes = ex->jsgf->nodes.data;
  for (uint32_t i = nodes[at->node].first; i != WF__JSGF_NONE; i = nodes[i].next)
    if (nodes[i].cost < INFINITY)
      WF__TRY(
          add_item(ex, i, at->from, at->to, at->instance, at->cost + (double)nodes[i].cost, err));
  return WF_OK;
}

/* from -> first (-child-> last) -> to, with last -> first. For * both are one state. */
static wf_status expand_loop(struct expansion *ex, const struct item *at, wf_error *err) {
  const wf__jsgf_node *node = &ex->jsgf->nodes.data[at->node];
  uint32_t first, last;
  WF__TRY(add_state(ex, &first, err));
  last = first;
  if (node->kind == WF__JSGF_PLUS) WF__TRY(add_state(ex, &last, err));
  WF__TRY(add_arc(ex, at->from, first, 0, at->cost, err));
  WF__TRY(add_arc(ex, last, first, 0, 0, err));
  WF__TRY(add_arc(ex, last, at->to, 0, 0, err));
  return add_item(ex, node->first, first, last, at->instance, 0, err);
}

static wf_status expand(struct expansion *ex, const struct item *at, wf_error *err) {
  const wf__jsgf_node *node = &ex->jsgf->nodes.data[at->node];
  switch ((wf__jsgf_kind)node->kind) {
    case WF__JSGF_LABEL:
      return add_arc(ex, at->from, at->to, wf__grammar_words_label(&ex->jsgf->words, node->value),
                     at->cost, err);
    case WF__JSGF_NULL: return add_arc(ex, at->from, at->to, 0, at->cost, err);
    case WF__JSGF_VOID: return WF_OK;
    case WF__JSGF_RULE: return use_rule(ex, node->value, at, err);
    case WF__JSGF_SEQUENCE: return expand_sequence(ex, at, err);
    case WF__JSGF_CHOICE: return expand_choice(ex, at, err);
    case WF__JSGF_OPTIONAL:
      WF__TRY(add_arc(ex, at->from, at->to, 0, at->cost, err));
      return add_item(ex, node->first, at->from, at->to, at->instance, at->cost, err);
    case WF__JSGF_STAR:
    case WF__JSGF_PLUS: break;
  }
  return expand_loop(ex, at, err);
}

/* --- the grammar ------------------------------------------------------------------------- */

static wf_status expand_all(struct expansion *ex, wf_error *err) {
  const struct item whole = {.from = START, .to = END, .instance = WF__JSGF_NONE};
  WF__TRY(wf_builder_add_states(ex->builder, 2, NULL, err));
  WF__TRY(wf_builder_set_start(ex->builder, START, err));
  WF__TRY(wf_builder_set_final(ex->builder, END, 0, err));
  for (uint32_t i = 0; i < ex->jsgf->rules.size; i++)
    if (ex->jsgf->rules.data[i].is_public) WF__TRY(use_rule(ex, i, &whole, err));
  for (uint64_t count = 0; ex->waiting.size > 0; count++) {
    const struct item item = ex->waiting.data[--ex->waiting.size];
    WF__TRY(wf__interrupted_at(count, err));
    WF__TRY(expand(ex, &item, err));
  }
  return WF_OK;
}

wf_status wf__jsgf_expand(const wf__jsgf *jsgf, wf_fst **out, wf_error *err) {
  struct expansion ex = {.jsgf = jsgf};
  WF__TRY(wf_builder_create(WF_TROPICAL, &ex.builder, err));
  wf_status status = expand_all(&ex, err);
  if (status == WF_OK)
    status = wf_builder_finish(ex.builder, jsgf->words.table, jsgf->words.table, out, err);
  wf_builder_free(ex.builder);
  wf__vec_free(&ex.waiting);
  wf__vec_free(&ex.instances);
  wf__map64_free(&ex.entries);
  return status;
}
