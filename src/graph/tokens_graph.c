/* tokens_graph.c - the decoding graph for CTC without words: its words are the tokens.
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
#include "base/option_tables.h"
#include "fst/fst.h"
#include "fst/symbols.h"
#include "graph/lexicon.h"
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

static bool is_one(int32_t type, int32_t num_tokens) {
  return (type == WF__TOPOLOGY_CORRECT || type == WF__TOPOLOGY_AUTO) && num_tokens <= MOST_AS_ONE;
}

static wf_status make_hub(int32_t type, int32_t num_tokens, int32_t blank, wf_fst **out,
                          wf_error *err) {
  wf__csr csr = {0};
  wf_status status = is_one(type, num_tokens)    ? fill_one(&csr, num_tokens, blank, err)
                     : type == WF__TOPOLOGY_AUTO ? fill_blocks(&csr, num_tokens, blank, err)
                                                 : fill_hub(&csr, num_tokens, blank, err);
  if (status == WF_OK && type == WF__TOPOLOGY_AUTO && csr.arcs.size >= MANY_ARCS)
    wf__log(WF_LOG_WARNING,
            "a graph of %d tokens alone has %.0f million arcs, %.0f MB: above %d tokens it is cut "
            "into blocks; topology 'compact' has 4 arcs a token",
            (int)num_tokens, (double)csr.arcs.size / 1e6,
            (double)csr.arcs.size * sizeof(wf_arc) / 1e6, (int)MOST_AS_ONE);
  if (status == WF_OK) return wf__fst_from_csr(&csr, 0, WF_TROPICAL, NULL, NULL, out, err);
  wf__csr_free(&csr);
  return status;
}

static wf_status make_topology(const wf_topology_options *options, int32_t num_tokens,
                               int32_t blank, wf_fst **out, wf_error *err) {
  wf_fst *fst;
  WF__TRY(wf_ctc_topology(num_tokens, blank - 1, options, &fst, err));
  wf_status status = wf_epsilons_last(fst, out, err);
  wf_fst_free(fst);
  return status;
}

/* An aligner for which every token is a word of one token. */
static wf_status add_aligner(const wf_symbols *tokens, const char *blank, const wf_symbols *labels,
                             wf_fst *graph, wf_error *err) {
  wf_lexicon *lexicon;
  wf_word_aligner *aligner = NULL;
  WF__TRY(wf__lexicon_create(wf_symbols_name(tokens), tokens, blank, &lexicon, err));
  wf_status status = WF_OK;
  for (int32_t label = 1; label <= lexicon->tokens.num_tokens && status == WF_OK; label++) {
    const char *text = wf_symbols_text(labels, label);
    if (label == lexicon->blank || text == NULL) continue;
    uint64_t at = lexicon->labels.size;
    status = wf__vec_push(&lexicon->labels, label, "lexicon tokens", err);
    if (status == WF_OK) status = wf__lexicon_add(lexicon, text, strlen(text), 1, at, err);
  }
  if (status == WF_OK) status = wf__lexicon_close(lexicon, false, err);
  if (status == WF_OK) status = wf__word_aligner_from_lexicon(lexicon, labels, 0, &aligner, err);
  if (status == WF_OK) status = wf__word_aligner_attach(aligner, graph, err);
  wf_word_aligner_free(aligner);
  wf_lexicon_free(lexicon);
  return status;
}

static wf_status make(const wf_symbols *tokens, const char *blank_name, int32_t blank,
                      const wf_topology_options *options, wf_fst **out, wf_error *err) {
  wf_symbols *labels;
  int32_t num_tokens;
  wf_fst *fst = NULL;
  WF__TRY(wf_token_labels(tokens, 0, &labels, &num_tokens, err));
  const bool one = is_one(options->type, num_tokens), hub = one ||
                                                            options->type == WF__TOPOLOGY_AUTO ||
                                                            options->type == WF__TOPOLOGY_COMPACT;
  wf_status status = num_tokens > 1 ? WF_OK
                                    : wf__fail(err, WF_ERR_FORMAT, "%s: no token besides the blank",
                                               wf__symbols_shown(tokens));
  if (status == WF_OK)
    status = hub ? make_hub(options->type, num_tokens, blank, &fst, err)
                 : make_topology(options, num_tokens, blank, &fst, err);
  if (status == WF_OK) status = wf_fst_with_symbols(fst, labels, labels, out, err);
  wf_fst_free(fst);
  if (status == WF_OK) status = add_aligner(tokens, blank_name, labels, *out, err);
  if (status == WF_OK && one) wf__fst_set_ctc_blank(*out, blank);
  wf_symbols_free(labels);
  return status;
}

wf_status wf_ctc_tokens_graph(const wf_symbols *tokens, const char *blank,
                              const wf_topology_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  int32_t column;
  wf_topology_options o;
  WF__TRY(wf__options_take(wf__topology_table(), options, &o, err));
  WF__TRY(wf_token_blank(tokens, blank, &column, err));
  WF__TRY(wf__need_blank(column + 1, err));
  wf_status status = make(tokens, blank, column + 1, &o, out, err);
  if (status == WF_OK) return WF_OK;
  wf_fst_free(*out);
  *out = NULL;
  return status;
}
