/* jsgf_rules.c - which rules of a grammar use themselves, and how many nodes they expand to.
 *
 * Rules are copied wherever they are used, except in themselves. A rule that uses itself at its end
 * goes back to its beginning; one that does so elsewhere is not regular and has no fst. */
#include "fstops/scc.h"
#include "graph/jsgf.h"

static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

/* --- which rules use each other ---------------------------------------------------------- */

static wf_status add_uses(const wf__jsgf *jsgf, wf_builder *builder, wf_error *err) {
  WF__TRY(wf_builder_add_states(builder, jsgf->rules.size, NULL, err));
  WF__TRY(wf_builder_set_start(builder, 0, err));
  for (uint32_t r = 0; r < jsgf->rules.size; r++)
    for (uint32_t i = jsgf->rules.data[r].first_node; i < jsgf->rules.data[r].end_node; i++) {
      const wf__jsgf_node *node = &jsgf->nodes.data[i];
      if (node->kind == WF__JSGF_RULE)
        WF__TRY(wf_builder_add_arc(builder, r, (wf_arc){.nextstate = node->value}, err));
    }
  return WF_OK;
}

/* Finds the components of the rules: a state for each, and an arc for each use. */
static wf_status find_components(const wf__jsgf *jsgf, wf__scc *out, wf_error *err) {
  wf_builder *builder;
  wf_fst *uses = NULL;
  WF__TRY(wf_builder_create(WF_TROPICAL, &builder, err));
  wf_status status = add_uses(jsgf, builder, err);
  if (status == WF_OK) status = wf_builder_finish(builder, NULL, NULL, &uses, err);
  if (status == WF_OK) {
    const wf_fst_view view = wf_fst_get_view(uses);
    status = wf__scc_find(&view, WF__ARCS_ALL, out, err);
  }
  wf_fst_free(uses);
  wf_builder_free(builder);
  return status;
}

/* --- uses at the end --------------------------------------------------------------------- */

/* Sets at_end. Parents are read before their children. */
static void mark_ends(wf__jsgf *jsgf, const wf__jsgf_rule *rule) {
  wf__jsgf_node *nodes = jsgf->nodes.data;
  nodes[rule->body].at_end = true;
  for (uint32_t i = rule->end_node; i-- > rule->first_node;) {
    const bool loops = nodes[i].kind == WF__JSGF_STAR || nodes[i].kind == WF__JSGF_PLUS;
    const bool in_order = nodes[i].kind == WF__JSGF_SEQUENCE;
    for (uint32_t k = nodes[i].first; k != WF__JSGF_NONE; k = nodes[k].next)
      nodes[k].at_end = nodes[i].at_end && !loops && (!in_order || nodes[k].next == WF__JSGF_NONE);
  }
}

static wf_status check_rule(wf__jsgf *jsgf, uint32_t number, wf_error *err) {
  wf__jsgf_rule *rule = &jsgf->rules.data[number];
  mark_ends(jsgf, rule);
  for (uint32_t i = rule->first_node; i < rule->end_node; i++) {
    const wf__jsgf_node *node = &jsgf->nodes.data[i];
    if (node->kind != WF__JSGF_RULE || jsgf->rules.data[node->value].component != rule->component)
      continue;
    rule->is_recursive = true;
    if (node->at_end) continue;
    return wf__jsgf_fail(
        jsgf->path, node->line, err, WF_ERR_UNSUPPORTED,
        "the rule <%.80s> uses itself%s%.80s%s before its end; a rule may use itself only as the "
        "last part of an alternative (otherwise use * or +)",
        wf_symbols_text(jsgf->names, number), node->value != number ? " through <" : "",
        node->value != number ? wf_symbols_text(jsgf->names, node->value) : "",
        node->value != number ? ">" : "");
  }
  return WF_OK;
}

/* --- sizes ------------------------------------------------------------------------------- */

/* The size of each rule of a component: all its nodes, and the rules of other components that they
 * use. These have their sizes. */
static void set_sizes(wf__jsgf *jsgf, const uint32_t *rules, uint32_t count) {
  uint64_t size = 0;
  for (uint32_t k = 0; k < count; k++) {
    const wf__jsgf_rule *rule = &jsgf->rules.data[rules[k]];
    for (uint32_t i = rule->first_node; i < rule->end_node; i++) {
      const wf__jsgf_node *node = &jsgf->nodes.data[i];
      const wf__jsgf_rule *used =
          node->kind == WF__JSGF_RULE ? &jsgf->rules.data[node->value] : NULL;
      size = plus(size, 1);
      if (used != NULL && used->component != rule->component) size = plus(size, used->size);
    }
  }
  for (uint32_t k = 0; k < count; k++) jsgf->rules.data[rules[k]].size = size;
}

static wf_status check_sizes(const wf__jsgf *jsgf, uint64_t max_arcs, wf_error *err) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < jsgf->rules.size; i++) {
    const wf__jsgf_rule *rule = &jsgf->rules.data[i];
    if (!rule->is_public) continue;
    size = plus(size, rule->size);
    if (size > max_arcs)
      return wf__jsgf_fail(jsgf->path, rule->line, err, WF_ERR_LIMIT,
                           "with the rule <%.80s> the grammar has more than %llu parts, because a "
                           "rule is copied wherever it is used",
                           wf_symbols_text(jsgf->names, i), (unsigned long long)max_arcs);
  }
  return WF_OK;
}

wf_status wf__jsgf_check_rules(wf__jsgf *jsgf, uint64_t max_arcs, wf_error *err) {
  wf__scc scc;
  WF__TRY(find_components(jsgf, &scc, err));
  for (uint32_t i = 0; i < jsgf->rules.size; i++) jsgf->rules.data[i].component = scc.component[i];
  wf_status status = WF_OK;
  for (uint32_t i = 0; i < jsgf->rules.size && status == WF_OK; i++)
    status = check_rule(jsgf, i, err);
  /* Rules use only those of later components. */
  for (uint32_t c = scc.num_components; c-- > 0;)
    set_sizes(jsgf, scc.order + scc.off[c], scc.off[c + 1] - scc.off[c]);
  wf__scc_free(&scc);
  return status == WF_OK ? check_sizes(jsgf, max_arcs, err) : status;
}
