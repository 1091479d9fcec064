/* tokens_recipe.c - the decoding graph for CTC without words: its words are the tokens.
 *
 * It has no lexicon and no language model; a model over tokens is scored during the search.
 *
 * correct, auto: one state with an arc for each token; the search knows CTC (fst/ctc_states.h).
 *
 *     hub -a:a-> hub
 *
 * If that has more than 2^32 arcs in all, auto is what `correct` accepts, with epsilons. The tokens
 * are cut into blocks of 256 tokens; a token leads to the others of its block, and through epsilons
 * to all other blocks.
 *
 *     hub -blank:eps-> hub    hub -eps-> block    block -a:a-> s(a)    s(a) -a:eps-> s(a)
 *     s(a) -blank:eps-> hub   s(a) -b:b-> s(b), b in the block of a    s(a) -eps-> other block
 *
 * compact: four arcs a token. The price: a held token and the same token twice can have the same
 * scores. CHANGE_COST decides for the held one.
 *
 *     hub -blank:eps-> hub    hub -a:a-> s(a) -a:eps-> s(a)    s(a) -blank:eps-> hub
 *                                                              s(a) -eps:eps/CHANGE_COST-> hub */
#include <string.h>

#include "base/callbacks.h"
#include "fst/symbols.h"
#include "graph/recipe.h"
#include "graph/topology.h"
#include "graph/word_aligner.h"

/* A block more is a search token more for each context of a language model; a larger block is more
 * arcs for each token. */
enum { IN_BLOCK = 256, MOST_AS_ONE = 65535 /* tokens */, MANY_ARCS = 10000000 };

static const float CHANGE_COST = 0x1p-10f; /* nats: too little to matter otherwise */

static wf_status push(wf__csr *csr, uint32_t target, int32_t ilabel, int32_t olabel, float weight,
                      wf_error *err) {
  return wf__csr_push(csr, (wf_arc){target, weight, ilabel, olabel}, err);
}

static wf_status fill_hub(wf__csr *csr, int32_t num_tokens, int32_t blank, wf_error *err) {
  uint32_t state = 0;
  WF__TRY(wf__csr_add_state(csr, 0, err));
  WF__TRY(push(csr, 0, blank, 0, 0, err));
  for (int32_t label = 1; label <= num_tokens; label++)
    if (label != blank) WF__TRY(push(csr, ++state, label, label, 0, err));
  state = 0;
  for (int32_t label = 1; label <= num_tokens; label++) {
    if (label == blank) continue;
    WF__TRY(wf__csr_add_state(csr, 0, err));
    WF__TRY(push(csr, ++state, label, 0, 0, err));
    WF__TRY(push(csr, 0, blank, 0, 0, err));
    WF__TRY(push(csr, 0, 0, 0, CHANGE_COST, err));
  }
  return WF_OK;
}

/* The token of state i, from 1 on: tokens have states in the order of their labels. */
static int32_t label_of(int32_t i, int32_t blank) { return i < blank ? i : i + 1; }

/* Arcs of tokens of a block: those of the states [first, end). Entering the state `from` again is
 * holding its token. */
static wf_status push_block(wf__csr *csr, int32_t first, int32_t end, int32_t from, int32_t blank,
                            wf_error *err) {
  for (int32_t i = first; i < end; i++) {
    const int32_t label = label_of(i, blank);
    WF__TRY(push(csr, (uint32_t)i, label, i == from ? 0 : label, 0, err));
  }
  return WF_OK;
}

static wf_status push_entries(wf__csr *csr, int32_t count, int32_t num_blocks, int32_t except,
                              wf_error *err) {
  for (int32_t b = 0; b < num_blocks; b++)
    if (b != except) WF__TRY(push(csr, (uint32_t)(count + 1 + b), 0, 0, 0, err));
  return WF_OK;
}

static wf_status fill_blocks(wf__csr *csr, int32_t num_tokens, int32_t blank, wf_error *err) {
  const int32_t count = num_tokens - 1;
  const int32_t size = IN_BLOCK, num_blocks = (count + size - 1) / size;
  for (int32_t i = 0; i <= count; i++) { /* the hub, and the tokens' states */
    const int32_t own = i > 0 ? (i - 1) / size : -1, first = own * size + 1;
    WF__TRY(wf__csr_add_state(csr, 0, err));
    if (i > 0)
      WF__TRY(
          push_block(csr, first, first + size <= count ? first + size : count + 1, i, blank, err));
    WF__TRY(push(csr, 0, blank, 0, 0, err));
    WF__TRY(push_entries(csr, count, num_blocks, own, err));
  }
  for (int32_t first = 1; first <= count; first += size) {
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    WF__TRY(
        push_block(csr, first, first + size <= count ? first + size : count + 1, 0, blank, err));
  }
  return WF_OK;
}

static wf_status fill_one(wf__csr *csr, int32_t num_tokens, int32_t blank, wf_error *err) {
  WF__TRY(wf__csr_add_state(csr, 0, err));
  for (int32_t label = 1; label <= num_tokens; label++)
    if (label != blank) WF__TRY(push(csr, 0, label, label, 0, err));
  return WF_OK;
}

/* --- the inputs -------------------------------------------------------------------------- */

static const char *blank_name(const wf__build *b) {
  return b->inputs->lexicon_options != NULL ? b->inputs->lexicon_options->blank : NULL;
}

static wf_status take(wf__build *b, wf_error *err) {
  const wf_graph_inputs *in = b->inputs;
  int32_t column;
  if (in->tokens == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "graph: no tokens");
  if (in->lexicon != NULL || in->lexicon_fst != NULL || in->lm != NULL || in->grammar != NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "graph: one of tokens has neither a lexicon nor a language model or grammar");
  WF__TRY(wf_token_blank(in->tokens, blank_name(b), &column, err));
  WF__TRY(wf__need_blank(column + 1, err));
  b->blank = column + 1;
  WF__TRY(wf_token_labels(in->tokens, 0, &b->lg.words, &b->num_tokens, err));
  if (b->num_tokens == 1)
    return wf__fail(err, WF_ERR_FORMAT, "%s: no token besides the blank",
                    wf__symbols_shown(in->tokens));
  b->topology.type = b->options.topology;
  if (b->topology.type == WF_TOPOLOGY_AUTO && b->num_tokens <= MOST_AS_ONE)
    b->topology.type = WF_TOPOLOGY_CORRECT;
  return WF_OK;
}

/* --- the steps --------------------------------------------------------------------------- */

static bool is_one(const wf__build *b) {
  return b->topology.type == WF_TOPOLOGY_CORRECT && b->num_tokens <= MOST_AS_ONE;
}

static wf_status make_t(wf__build *b, wf_error *err) {
  const bool one = is_one(b), blocks = b->topology.type == WF_TOPOLOGY_AUTO;
  wf__csr csr = {0};
  wf_fst *t = NULL;
  wf_status status;
  if (!one && !blocks && b->topology.type != WF_TOPOLOGY_COMPACT) {
    status = wf_ctc_topology(b->num_tokens, b->blank - 1, &b->topology, &t, err);
  } else {
    status = one      ? fill_one(&csr, b->num_tokens, b->blank, err)
             : blocks ? fill_blocks(&csr, b->num_tokens, b->blank, err)
                      : fill_hub(&csr, b->num_tokens, b->blank, err);
    if (status == WF_OK && blocks && csr.arcs.size >= MANY_ARCS)
      wf__log(
          WF_LOG_WARNING,
          "a graph of %d tokens alone has %.0f million arcs, %.0f MB: above %d tokens it is cut "
          "into blocks; topology 'compact' has 4 arcs a token",
          (int)b->num_tokens, (double)csr.arcs.size / 1e6,
          (double)csr.arcs.size * sizeof(wf_arc) / 1e6, (int)MOST_AS_ONE);
    if (status == WF_OK) status = wf__fst_from_csr(&csr, 0, WF_TROPICAL, NULL, NULL, &t, err);
    wf__csr_free(&csr);
  }
  WF__TRY(status);
  wf__slot_set(&b->runner, &b->graph, t);
  return WF_OK;
}

static wf_status make_graph(wf__build *b, wf_error *err) {
  WF__TRY(wf__make_graph(b, err));
  if (is_one(b)) wf__fst_set_ctc_blank(b->graph.fst, b->blank);
  return WF_OK;
}

static wf_status labels_of_graph(const wf__build *b, wf_symbols **out, wf_error *err) {
  (void)err;
  *out = wf_symbols_ref(b->lg.words);
  return WF_OK;
}

/* For the aligner every token is a word of one token. */
static wf_status aligner_of_graph(const wf__build *b, wf_word_aligner **out, wf_error *err) {
  const wf_symbols *tokens = b->inputs->tokens;
  wf_lexicon *lexicon;
  WF__TRY(wf__lexicon_create(wf_symbols_name(tokens), tokens, blank_name(b), &lexicon, err));
  wf_status status = WF_OK;
  for (int32_t label = 1; label <= b->num_tokens && status == WF_OK; label++) {
    const char *text = wf_symbols_text(b->lg.words, label);
    if (label == b->blank || text == NULL) continue;
    const uint64_t at = lexicon->labels.size;
    status = wf__vec_push(&lexicon->labels, label, "lexicon tokens", err);
    if (status == WF_OK) status = wf__lexicon_add(lexicon, text, strlen(text), 1, at, err);
  }
  if (status == WF_OK) status = wf__lexicon_close(lexicon, false, err);
  if (status == WF_OK) status = wf__word_aligner_from_lexicon(lexicon, b->lg.words, 0, out, err);
  wf_lexicon_free(lexicon);
  return status;
}

static const wf__step steps[] = {
    {"T", "T", "topology T", make_t, NULL},
    {"graph", "graph", "order arcs", make_graph, NULL},
};

const wf__recipe wf__tokens_recipe = {
    .take = take,
    .labels = labels_of_graph,
    .aligner = aligner_of_graph,
    .steps = steps,
    .num_steps = sizeof steps / sizeof *steps,
};
