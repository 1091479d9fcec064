/* lexicon_fst.c - L: accepts any sequence of words, spelled in token labels.
 *
 *            +----- t1:word / -ln p --- t2:eps -- ... -- #k:eps -----+
 *            v                                                        |
 *   state 0 (start, final) ------------------------------------------+    loop #0:#0 at state 0
 *
 * With optional silence, the last arc of a word goes to LOOP with cost -ln(1 - p_sil) and to SIL
 * with cost -ln p_sil:
 *
 *   START --eps--> LOOP (final), START --eps--> SIL --silence--> AFTER --#last--> LOOP
 *
 * If the lexicon has silence probabilities (lexiconp_silprob.txt), silence leads to SILENT, another
 * state between words. Words begin at LOOP and at SILENT, at the costs of their factors, and have
 * their own p_sil:
 *
 *   LOOP, SILENT --words--> LOOP, SIL          SIL --silence--> AFTER --#last--> SILENT
 *
 * With required silence (a token such as |, which a model writes between words), words begin at
 * START and BETWEEN and lead to END. All three are final:
 *
 *   START, END --silence--> AFTER --#last--> BETWEEN --silence--> AFTER       no cost
 *
 * Loops #0:#0 are at START and END, so a back-off has one place between two words.
 *
 * With silence at the edges of utterances, as in Sphinx, words and further silences (at a cost) are
 * loops of LOOP:
 *
 *   START --silence--> LOOP --silence--> END (final)
 *
 * The garbage word, any sequence of the tokens a, begins and ends with a symbol #g of its own, so
 * that determinization does not mix it with words. With positions in the word, the tokens between
 * the first and the last are at INSIDE (B, I and E stand for BEGIN, INTERNAL and END; a single one
 * leads to OUT):
 *
 *   state 0 --#g:word--> IN --a_B--> INSIDE --a_E--> OUT --#g--> state 0      INSIDE --a_I--> INSIDE
 *   without positions:   IN --a--> OUT --a--> OUT
 *
 * Each pronunciation has a separate chain of states. Determinization turns the chains into a
 * tree. */
#include "graph/lexicon_fst.h"

#include <math.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/option_tables.h"
#include "fst/fst.h"
#include "fst/symbols.h"

struct making {
  const wf_lexicon *lexicon;
  const wf_symbols *words;
  wf__lexicon_shape shape;
  wf__csr csr;
  uint32_t loop;        /* the state after words */
  uint32_t first_chain; /* first state of the first chain */
  uint32_t garbage;     /* first of the states after the chains */
  uint32_t silent;      /* the state after silence; LOOP if words do not tell them apart */
};

enum { GARBAGE_IN, GARBAGE_OUT, GARBAGE_INSIDE };
enum { SIL_START, SIL_LOOP, SIL_SIL, SIL_AFTER, SIL_STATES };
enum { EDGE_START, EDGE_LOOP, EDGE_END, EDGE_STATES };
enum { REQ_START, REQ_BETWEEN, REQ_END, REQ_AFTER, REQ_STATES };

static int32_t disambig_label(const struct making *making, int32_t k) {
  return making->shape.num_labels + 1 + k;
}

/* The number of arcs of an entry: its tokens, and #k if it has one. */
static uint32_t num_steps(const struct making *making, const wf__lexicon_entry *entry) {
  return entry->num_labels + (making->shape.disambig && entry->disambig != 0);
}

static int32_t label_at(const struct making *making, const wf__lexicon_entry *entry, uint32_t i) {
  if (i == entry->num_labels) return disambig_label(making, entry->disambig);
  int32_t label = making->lexicon->labels.data[entry->label_off + i];
  if (making->shape.position_of == NULL) return label;
  bool first = i == 0, last = i + 1 == entry->num_labels;
  return making->shape.position_of[label][first && last ? WF__SINGLE
                                          : first       ? WF__BEGIN
                                          : last        ? WF__END
                                                        : WF__INTERNAL];
}

static float first_cost(const struct making *making, const wf__lexicon_entry *entry) {
  float cost = making->shape.pron_scale * -logf(entry->prob) + making->shape.word_cost;
  return cost != 0 ? cost : 0; /* no -0 */
}

/* May a word end with or without a silence? */
static bool has_optional_silence(const wf__lexicon_shape *shape) {
  return shape->silence != 0 && !shape->edge_silence && !shape->required_silence;
}

/* Do words have silence probabilities of their own? */
static bool has_own_silence(const struct making *making) {
  return making->lexicon->has_silence && has_optional_silence(&making->shape);
}

static wf_status push_possible(struct making *making, wf_arc arc, wf_error *err) {
  return arc.weight < INFINITY ? wf__csr_push(&making->csr, arc, err) : WF_OK;
}

/* Adds the i-th arc of an entry, whose inner states start at `chain`. It leads to the next inner
 * state; the last arc leads to the state after words. `before` is a cost of the first arc. */
static wf_status push_step(struct making *making, const wf__lexicon_entry *entry, int32_t word,
                           uint32_t i, uint32_t chain, float before, wf_error *err) {
  const wf__lexicon_shape *shape = &making->shape;
  wf_arc arc = {chain + i, i == 0 ? first_cost(making, entry) + before : 0,
                label_at(making, entry, i), i == 0 ? word : 0};
  if (i + 1 < num_steps(making, entry)) return push_possible(making, arc, err);
  const float first = arc.weight, after = entry->silence.after;
  const bool own = has_own_silence(making);
  arc.nextstate = making->loop;
  arc.weight = first + (own ? shape->pron_scale * -logf(1 - after) : shape->other_cost);
  WF__TRY(push_possible(making, arc, err));
  if (!has_optional_silence(shape)) return WF_OK;
  arc.nextstate = SIL_SIL;
  arc.weight = first + (own ? shape->pron_scale * -logf(after) : shape->silence_cost);
  return push_possible(making, arc, err);
}

static wf_status make_silence_start(struct making *making, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  WF__TRY(wf__csr_push(&making->csr, (wf_arc){SIL_LOOP, making->shape.other_cost, 0, 0}, err));
  return wf__csr_push(&making->csr, (wf_arc){SIL_SIL, making->shape.silence_cost, 0, 0}, err);
}

static wf_status make_silence_states(struct making *making, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  WF__TRY(wf__csr_push(
      &making->csr,
      (wf_arc){making->shape.disambig ? SIL_AFTER : making->silent, 0, making->shape.silence, 0},
      err));
  if (!making->shape.disambig) return WF_OK;
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  return wf__csr_push(
      &making->csr,
      (wf_arc){making->silent, 0, disambig_label(making, making->lexicon->max_disambig + 1), 0},
      err);
}

static wf_status make_edge_start(struct making *making, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  return wf__csr_push(&making->csr, (wf_arc){EDGE_LOOP, 0, making->shape.silence, 0}, err);
}

/* Adds the silence and noise loops of the state between words. */
static wf_status push_edge_loops(struct making *making, wf_error *err) {
  const wf__lexicon_shape *shape = &making->shape;
  WF__TRY(
      wf__csr_push(&making->csr, (wf_arc){EDGE_LOOP, shape->silence_cost, shape->silence, 0}, err));
  WF__TRY(wf__csr_push(&making->csr, (wf_arc){EDGE_END, 0, shape->silence, 0}, err));
  for (size_t i = 0; i < shape->num_fillers; i++)
    WF__TRY(wf__csr_push(&making->csr,
                         (wf_arc){EDGE_LOOP, shape->filler_cost, shape->fillers[i], 0}, err));
  return WF_OK;
}

/* Adds an arc of one label for each word class. */
static wf_status push_classes(struct making *making, wf_error *err) {
  const wf__lexicon_shape *shape = &making->shape;
  for (size_t i = 0; i < shape->num_classes; i++) {
    wf_arc arc = {making->loop, shape->other_cost, shape->first_class + (int32_t)i,
                  shape->classes[i]};
    WF__TRY(wf__csr_push(&making->csr, arc, err));
    if (!has_optional_silence(shape)) continue;
    arc.nextstate = SIL_SIL;
    arc.weight = shape->silence_cost;
    WF__TRY(wf__csr_push(&making->csr, arc, err));
  }
  return WF_OK;
}

/* Adds the loop that lets the grammar back off between words. */
static wf_status push_backoff_loop(struct making *making, uint32_t state, wf_error *err) {
  if (!making->shape.disambig || !making->shape.backoff_loop) return WF_OK;
  int64_t word = wf_symbols_find(making->words, "#0");
  if (word <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "word table %s: no '#0', the label of the grammar's back-off arcs",
                    wf__symbols_shown(making->words));
  return wf__csr_push(&making->csr, (wf_arc){state, 0, disambig_label(making, 0), (int32_t)word},
                      err);
}

static int32_t garbage_label(const struct making *making) {
  return disambig_label(making, making->lexicon->max_disambig + 2);
}

/* What an entry costs besides its pronunciation in the state after words, or after silence. */
static float cost_before(const struct making *making, const wf__lexicon_entry *entry, bool silent) {
  if (!has_own_silence(making)) return 0;
  const float factor = silent ? entry->silence.before : entry->silence.before_none;
  return factor != 1 ? making->shape.pron_scale * -logf(factor) : 0;
}

/* Adds the classes, the first arc of every entry, and that of the garbage word. `silent`: to the
 * state after silence. */
static wf_status push_words(struct making *making, const int32_t *word_of, bool silent,
                            wf_error *err) {
  const wf__lexicon_shape *shape = &making->shape;
  WF__TRY(push_classes(making, err));
  uint64_t chain = making->first_chain;
  for (uint64_t i = 0; i < making->lexicon->entries.size; i++) {
    const wf__lexicon_entry *entry = &making->lexicon->entries.data[i];
    if (word_of[i] == 0) continue;
    if (chain + entry->num_labels > WF__MAX_STATES)
      return wf__fail(err, WF_ERR_LIMIT, "%s: more than 2^31 states", making->lexicon->name);
    WF__TRY(push_step(making, entry, word_of[i], 0, (uint32_t)chain,
                      cost_before(making, entry, silent), err));
    chain += num_steps(making, entry) - 1;
  }
  if (shape->num_garbage == 0) return WF_OK;
  return wf__csr_push(&making->csr,
                      (wf_arc){making->garbage + GARBAGE_IN, shape->word_cost,
                               garbage_label(making), shape->garbage_word},
                      err);
}

/* Adds an arc for each token of the garbage word, in its form at a position. */
static wf_status push_garbage(struct making *making, int position, uint32_t target, wf_error *err) {
  const wf__lexicon_shape *shape = &making->shape;
  for (size_t i = 0; i < shape->num_garbage; i++) {
    const int32_t label = shape->garbage[i];
    const wf_arc arc = {making->garbage + target, shape->garbage_cost,
                        shape->position_of != NULL ? shape->position_of[label][position] : label,
                        0};
    WF__TRY(wf__csr_push(&making->csr, arc, err));
  }
  return WF_OK;
}

static wf_status make_garbage(struct making *making, wf_error *err) {
  const wf__lexicon_shape *shape = &making->shape;
  const bool positions = shape->position_of != NULL;
  wf_arc end = {making->loop, shape->other_cost, garbage_label(making), 0};
  if (shape->num_garbage == 0) return WF_OK;
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  if (positions) WF__TRY(push_garbage(making, WF__BEGIN, GARBAGE_INSIDE, err));
  WF__TRY(push_garbage(making, WF__SINGLE, GARBAGE_OUT, err));
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  if (!positions) WF__TRY(push_garbage(making, WF__SINGLE, GARBAGE_OUT, err));
  WF__TRY(wf__csr_push(&making->csr, end, err));
  if (has_optional_silence(shape)) {
    end.nextstate = SIL_SIL;
    end.weight = shape->silence_cost;
    WF__TRY(wf__csr_push(&making->csr, end, err));
  }
  if (!positions) return WF_OK;
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  WF__TRY(push_garbage(making, WF__INTERNAL, GARBAGE_INSIDE, err));
  return push_garbage(making, WF__END, GARBAGE_OUT, err);
}

static wf_status make_loop_state(struct making *making, const int32_t *word_of, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, making->shape.edge_silence ? INFINITY : 0, err));
  WF__TRY(push_backoff_loop(making, making->loop, err));
  if (making->shape.edge_silence) WF__TRY(push_edge_loops(making, err));
  return push_words(making, word_of, false, err);
}

/* Makes the state after silence, if words tell it from that after words. */
static wf_status make_silent_state(struct making *making, const int32_t *word_of, wf_error *err) {
  WF__TRY(wf__csr_add_state(&making->csr, 0, err));
  WF__TRY(push_backoff_loop(making, making->silent, err));
  return push_words(making, word_of, true, err);
}

/* Makes the states of required silence. */
static wf_status make_required_states(struct making *making, const int32_t *word_of,
                                      wf_error *err) {
  const bool disambig = making->shape.disambig;
  const wf_arc silence = {disambig ? REQ_AFTER : REQ_BETWEEN, 0, making->shape.silence, 0};
  for (uint32_t state = REQ_START; state <= REQ_END; state++) {
    WF__TRY(wf__csr_add_state(&making->csr, 0, err));
    if (state != REQ_BETWEEN) WF__TRY(push_backoff_loop(making, state, err));
    WF__TRY(wf__csr_push(&making->csr, silence, err));
    if (state != REQ_END) WF__TRY(push_words(making, word_of, false, err));
  }
  if (!disambig) return WF_OK;
  WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
  return wf__csr_push(
      &making->csr,
      (wf_arc){REQ_BETWEEN, 0, disambig_label(making, making->lexicon->max_disambig + 1), 0}, err);
}

static wf_status make_chains(struct making *making, const int32_t *word_of, wf_error *err) {
  uint32_t chain = making->first_chain;
  for (uint64_t i = 0; i < making->lexicon->entries.size; i++) {
    const wf__lexicon_entry *entry = &making->lexicon->entries.data[i];
    if (word_of[i] == 0) continue;
    uint32_t steps = num_steps(making, entry);
    for (uint32_t k = 1; k < steps; k++) {
      WF__TRY(wf__csr_add_state(&making->csr, INFINITY, err));
      WF__TRY(push_step(making, entry, 0, k, chain, 0, err));
    }
    chain += steps - 1;
  }
  return WF_OK;
}

static wf_status make_states(struct making *making, const int32_t *word_of, wf_error *err) {
  const bool edges = making->shape.edge_silence, required = making->shape.required_silence,
             optional = has_optional_silence(&making->shape), disambig = making->shape.disambig;
  making->loop = edges ? EDGE_LOOP : required ? REQ_END : optional ? SIL_LOOP : 0;
  making->first_chain = edges      ? EDGE_STATES
                        : required ? (disambig ? REQ_STATES : REQ_AFTER)
                        : optional ? (disambig ? SIL_STATES : SIL_AFTER)
                                   : 1;
  making->silent = SIL_LOOP;
  if (has_own_silence(making)) making->silent = making->first_chain++;
  making->garbage = making->first_chain;
  for (uint64_t i = 0; i < making->lexicon->entries.size; i++)
    if (word_of[i] != 0)
      making->garbage += num_steps(making, &making->lexicon->entries.data[i]) - 1;
  if (edges) WF__TRY(make_edge_start(making, err));
  if (optional) WF__TRY(make_silence_start(making, err));
  WF__TRY(required ? make_required_states(making, word_of, err)
                   : make_loop_state(making, word_of, err));
  if (edges) WF__TRY(wf__csr_add_state(&making->csr, 0, err));
  if (optional) WF__TRY(make_silence_states(making, err));
  if (has_own_silence(making)) WF__TRY(make_silent_state(making, word_of, err));
  WF__TRY(make_chains(making, word_of, err));
  return make_garbage(making, err);
}

/* Finds the word label of every entry; 0 for words that the table lacks. */
static wf_status find_words(const struct making *making, int32_t *word_of, size_t *out_missing,
                            wf_error *err) {
  const wf_lexicon *lexicon = making->lexicon;
  for (uint64_t i = 0; i < lexicon->entries.size; i++) {
    int64_t key = wf_symbols_find(making->words, lexicon->entries.data[i].word);
    word_of[i] = key > 0 ? (int32_t)key : 0;
    *out_missing += word_of[i] == 0;
  }
  if (*out_missing == lexicon->entries.size)
    return wf__fail(err, WF_ERR_ARGUMENT, "none of the %llu words of %s is in the word table %s",
                    (unsigned long long)lexicon->entries.size, lexicon->name,
                    wf__symbols_shown(making->words));
  return WF_OK;
}

/* Do the words bring the separator themselves? */
static bool brings(const wf_lexicon *lexicon, int32_t separator) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < lexicon->entries.size && separator != 0; i++) {
    const wf__lexicon_entry *entry = &lexicon->entries.data[i];
    const int32_t *labels = lexicon->labels.data + entry->label_off;
    count += wf__brings_separator(labels, entry->num_labels, separator);
  }
  if (count > 0 && count < lexicon->entries.size)
    wf__log(WF_LOG_WARNING,
            "%s: %llu of %llu pronunciations begin or end with the word separator '%s', so none is "
            "put between words; give it to all, or to none",
            lexicon->name, (unsigned long long)count, (unsigned long long)lexicon->entries.size,
            wf_symbols_text(lexicon->table, separator - 1));
  return count > 0;
}

wf_status wf__lexicon_plain_shape(const wf_lexicon *lexicon, const wf_lexicon_fst_options *options,
                                  wf__lexicon_shape *out, wf_error *err) {
  const char *name = options->silence;
  *out = (wf__lexicon_shape){.num_labels = lexicon->tokens.num_tokens,
                             .disambig = options->disambig,
                             .backoff_loop = true,
                             .pron_scale = 1};
  int32_t separator = wf__tokens_separator(&lexicon->tokens);
  if (separator == lexicon->blank || brings(lexicon, separator)) separator = 0;
  out->silence = name == NULL      ? separator
                 : name[0] == '\0' ? 0
                                   : wf__tokens_label(&lexicon->tokens, name, strlen(name));
  if (out->silence == 0 && name != NULL && name[0] != '\0')
    return wf__fail(err, WF_ERR_ARGUMENT, "token table %s: no token '%.80s' (given as silence)",
                    wf__symbols_shown(lexicon->table), name);
  if (out->silence == 0) return WF_OK;
  float prob = options->silence_prob > 0   ? options->silence_prob
               : out->silence == separator ? 1
                                           : 0.5f;
  out->required_silence = prob == 1;
  if (out->required_silence) return WF_OK;
  out->silence_cost = -logf(prob);
  out->other_cost = -logf(1 - prob);
  return WF_OK;
}

wf_status wf__lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                             const wf__lexicon_shape *shape, const wf_symbols *labels, wf_fst **out,
                             size_t *out_missing, wf_error *err) {
  struct making making = {.lexicon = lexicon, .words = words, .shape = *shape};
  size_t missing = 0;
  int32_t *word_of = wf__alloc(lexicon->entries.size, sizeof *word_of);
  wf_status status =
      word_of != NULL ? WF_OK : wf__fail_memory(err, lexicon->entries.size * sizeof *word_of, "L");
  if (lexicon->has_silence && !has_optional_silence(shape))
    wf__log(WF_LOG_WARNING,
            "%s: silence probabilities (columns 3 to 5) are not used, as silence is not optional",
            lexicon->name);
  if (status == WF_OK) status = find_words(&making, word_of, &missing, err);
  if (status == WF_OK) status = make_states(&making, word_of, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&making.csr, 0, WF_TROPICAL, labels, words, out, err);
  else
    wf__csr_free(&making.csr);
  free(word_of);
  if (status == WF_OK && out_missing != NULL) *out_missing = missing;
  return status;
}

wf_status wf_lexicon_to_fst(const wf_lexicon *lexicon, const wf_symbols *words,
                            const wf_lexicon_fst_options *options, wf_fst **out,
                            size_t *out_missing, wf_error *err) {
  *out = NULL;
  if (out_missing != NULL) *out_missing = 0;
  wf_lexicon_fst_options o;
  wf__lexicon_shape shape;
  WF__TRY(wf__options_take(wf__lexicon_fst_table(), options, &o, err));
  WF__TRY(wf__lexicon_plain_shape(lexicon, &o, &shape, err));
  wf_symbols *table = NULL, *labels = NULL;
  if (words != NULL)
    table = wf_symbols_ref(words);
  else
    WF__TRY(wf_lexicon_words(lexicon, &table, err));
  wf_status status = wf_token_labels(
      lexicon->table, o.disambig ? wf_lexicon_num_disambig(lexicon) : 0, &labels, NULL, err);
  if (status == WF_OK)
    status = wf__lexicon_to_fst(lexicon, table, &shape, labels, out, out_missing, err);
  wf_symbols_free(labels);
  wf_symbols_free(table);
  return status;
}
