/* lg.c - prepares the two inputs of a decoding graph: finds the words that lexicon and grammar
 * share, and makes G. */
#include "graph/lg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/map64.h"
#include "base/tally.h"
#include "fst/symbols.h"
#include "fst/word_case.h"
#include "fstops/csr_copy.h"
#include "graph/tokens.h"
#include "lm/lm.h"

/* --- a lexicon or a word table alone ----------------------------------------------------- */

/* What G is made of, for messages. */
static const char *name_of_g(const wf__lg *lg) {
  return lg->lm != NULL ? "language model" : lg->any_words != NULL ? "word list" : "grammar";
}

static wf_status add_loops(const wf_symbols *words, wf_builder *builder, wf_error *err) {
  const char *text;
  int64_t label;
  uint32_t state;
  WF__TRY(wf_builder_add_states(builder, 1, &state, err));
  for (size_t i = 0; (text = wf_symbols_at(words, i, &label)) != NULL; i++) {
    if (label <= 0 || label > INT32_MAX || wf__is_reserved_word(text, strlen(text))) continue;
    WF__TRY(wf_builder_add_arc(builder, 0, (wf_arc){0, 0, (int32_t)label, (int32_t)label}, err));
  }
  WF__TRY(wf_builder_set_start(builder, 0, err));
  return wf_builder_set_final(builder, 0, 0, err);
}

/* The words of the lexicon, and the classes. */
static wf_status list_words(wf__lg *lg, wf_error *err) {
  WF__TRY(wf_lexicon_words(lg->given_lexicon, &lg->lexicon_words, err));
  for (const char *at = lg->given_classes; at != NULL && *at != '\0';) {
    const size_t size = strcspn(at, ",");
    if (wf__symbols_find_bytes(lg->lexicon_words, at, size) < 0)
      WF__TRY(wf__symbols_add_bytes(lg->lexicon_words, at, size, -1, NULL, err));
    at += size + (at[size] == ',');
  }
  lg->given_words = lg->lexicon_words;
  return WF_OK;
}

bool wf__lg_has_class(const char *classes, const char *text) {
  const size_t wanted = strlen(text);
  for (const char *at = classes; at != NULL && *at != '\0';) {
    const size_t size = strcspn(at, ",");
    if (size == wanted && memcmp(at, text, size) == 0) return true;
    at += size + (at[size] == ',');
  }
  return false;
}

/* Without a language model or grammar: a grammar of every sequence of the words. */
static wf_status take_any_words(wf__lg *lg, wf_error *err) {
  wf_builder *builder;
  if (lg->given_words == NULL) WF__TRY(list_words(lg, err));
  WF__TRY(wf_builder_create(WF_TROPICAL, &builder, err));
  wf_status status = add_loops(lg->given_words, builder, err);
  if (status == WF_OK) status = wf_builder_finish(builder, NULL, NULL, &lg->any_words, err);
  wf_builder_free(builder);
  lg->grammar = lg->any_words;
  return status;
}

/* --- word table, words in common --------------------------------------------------------- */

static wf_status add_backoff_word(const wf_symbols *from, wf_symbols *to, wf_error *err) {
  const char *text;
  int64_t key;
  for (size_t i = 0; (text = wf_symbols_at(from, i, &key)) != NULL; i++)
    WF__TRY(wf_symbols_add(to, text, key, NULL, err));
  return wf_symbols_add(to, "#0", -1, NULL, err);
}

static wf_status take_words(wf__lg *lg, wf_error *err) {
  const wf_symbols *words = lg->given_words;
  if (lg->lm != NULL)
    words = wf_lm_words(lg->lm);
  else if (words == NULL)
    words = wf_fst_osymbols(lg->grammar) != NULL ? wf_fst_osymbols(lg->grammar)
                                                 : wf_fst_isymbols(lg->grammar);
  if (words == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the grammar has no symbol table and no word table is given");
  if (wf_symbols_text(words, 0) != NULL && strcmp(wf_symbols_text(words, 0), "<eps>") != 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "word table %s: label 0 is '%.80s'; it must be <eps>",
                    wf__symbols_shown(words), wf_symbols_text(words, 0));
  if (wf_symbols_find(words, "#0") > 0) {
    lg->words = wf_symbols_ref(words);
  } else {
    WF__TRY(wf_symbols_create(wf_symbols_name(words), &lg->words, err));
    WF__TRY(add_backoff_word(words, lg->words, err));
  }
  lg->backoff_word = (int32_t)wf_symbols_find(lg->words, "#0");
  lg->unk = -1;
  if (lg->lm == NULL) {
    if (lg->garbage) lg->unk = (int32_t)wf_symbols_find(lg->words, "<unk>");
  } else {
    WF__TRY(wf__lm_automaton(lg->lm, &lg->automaton, err));
    if (lg->automaton->unk < lg->automaton->num_public) lg->unk = (int32_t)lg->automaton->unk;
  }
  if (!lg->garbage || lg->unk > 0) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "garbage: the %s has no <unk>, the word that stands for any sequence of tokens",
                  name_of_g(lg));
}

/* A grammar or L of the caller may bring a table: a label must not be another word in it. Words
 * that are in one table only are fine, as both often lack some of the other's. */
static wf_status check_words(const wf__lg *lg, const wf_fst *fst, const char *what, wf_error *err) {
  const wf_symbols *own = fst != NULL ? wf_fst_osymbols(fst) : NULL;
  const char *text;
  int64_t key;
  for (size_t i = 0; own != NULL && (text = wf_symbols_at(own, i, &key)) != NULL; i++) {
    const char *word = wf_symbols_text(lg->words, key);
    if (word != NULL && strcmp(word, text) != 0)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "label %lld is '%.80s' in the symbol table of %s and '%.80s' in the word "
                      "table %s: bring both to one table, or drop that of %s",
                      (long long)key, text, what, word, wf__symbols_shown(lg->words), what);
  }
  return WF_OK;
}

static bool is_class(const wf__lg *lg, int64_t label) {
  for (uint64_t i = 0; i < lg->classes.size; i++)
    if (lg->classes.data[i] == label) return true;
  return false;
}

static wf_status take_class(wf__lg *lg, const char *name, size_t size, wf_error *err) {
  if (size == 0 || size > 1000 || wf__is_reserved_word(name, size))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "class '%.*s': the name is empty, has more than 1,000 bytes or is reserved "
                    "(<eps>, <s>, </s>, #0, #1, ...)",
                    (int)(size > 80 ? 80 : size), name);
  int64_t label = wf__symbols_find_bytes(lg->words, name, size);
  if (label <= 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "class '%.*s' is not in the word table %s",
                    (int)(size > 80 ? 80 : size), name, wf__symbols_shown(lg->words));
  if (lg->garbage && label == lg->unk)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "class '%.*s': with garbage, it stands for any sequence of tokens",
                    (int)(size > 80 ? 80 : size), name);
  if (is_class(lg, label))
    return wf__fail(err, WF_ERR_ARGUMENT, "class '%.*s' is given twice",
                    (int)(size > 80 ? 80 : size), name);
  return wf__vec_push(&lg->classes, (int32_t)label, "word classes", err);
}

static wf_status take_classes(wf__lg *lg, wf_error *err) {
  for (const char *at = lg->given_classes; at != NULL && *at != '\0';) {
    size_t size = strcspn(at, ",");
    WF__TRY(take_class(lg, at, size, err));
    at += size + (at[size] == ',');
  }
  return WF_OK;
}

wf_status wf__lg_add_class_labels(const wf__lg *lg, bool once, int32_t first, wf_symbols *labels,
                                  wf_error *err) {
  for (uint64_t i = 0; i < lg->classes.size; i++) {
    char name[1024];
    wf__class_label(wf_symbols_text(lg->words, lg->classes.data[i]), once, name, sizeof name);
    WF__TRY(wf_symbols_add(labels, name, (int64_t)first + (int64_t)i, NULL, err));
  }
  return WF_OK;
}

static wf_status collect_grammar_words(const wf_fst *grammar, wf__map64 *used, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(grammar);
  uint32_t stands;
  for (uint64_t i = 0; i < view.num_arcs; i++)
    WF__TRY(wf__map64_insert(used, (uint64_t)view.arcs[i].ilabel, 1, &stands, NULL,
                             "words of a grammar", err));
  return WF_OK;
}

static bool is_used(const wf__lg *lg, const wf__map64 *used, int64_t label) {
  if (label <= 0 || label == lg->backoff_word) return false;
  if (lg->lm == NULL) return wf__map64_find(used, (uint64_t)label) != WF__MAP64_NONE;
  return label == lg->unk || wf_lm_knows(lg->lm, (int32_t)label);
}

/* Adds all words that have a pronunciation, whether or not the grammar has them. */
static wf_status add_spoken(const wf__lg *lg, const wf__map64 *spoken, wf__word_case *cases,
                            wf_error *err) {
  const char *text;
  int64_t label;
  for (size_t i = 0; lg->given_l != NULL && (text = wf_symbols_at(lg->words, i, &label)) != NULL;
       i++)
    if (wf__map64_find(spoken, (uint64_t)label) != WF__MAP64_NONE)
      WF__TRY(wf__word_case_add(cases, (wf__span){text, strlen(text)}, err));
  for (size_t i = 0; lg->given_l == NULL && i < wf_lexicon_count(lg->given_lexicon); i++) {
    text = wf_lexicon_at(lg->given_lexicon, i).word;
    WF__TRY(wf__word_case_add(cases, (wf__span){text, strlen(text)}, err));
  }
  return WF_OK;
}

/* Warns or fails if at least a tenth of the grammar's words are in the lexicon only in another
 * case: that is probably a mistake. */
static wf_status warn_of_case(const wf__lg *lg, const wf__word_case *cases, uint64_t num_used,
                              wf_error *err) {
  uint64_t found = cases->num_found, all = num_used;
  const char *first = cases->first;
  if (lg->lm != NULL) { /* words that were left out when the model was read */
    if (found == 0) first = lg->automaton->other_case;
    found += lg->automaton->num_other_case;
    all += lg->automaton->num_outside;
  }
  if (lg->check_words == WF_CHECK_WORDS_OFF || found == 0 || found * 10 < all) return WF_OK;
  char message[256];
  snprintf(message, sizeof message,
           "%llu of the %llu words of the %s are in the lexicon only in another case (upper or "
           "lower), '%s' is the first; use the same case in both",
           (unsigned long long)found, (unsigned long long)all, name_of_g(lg), first);
  if (lg->check_words == WF_CHECK_WORDS_ERROR) return wf__fail(err, WF_ERR_ARGUMENT, "%s", message);
  wf__log(WF_LOG_WARNING, "%s (check_words=off turns this warning off)", message);
  return WF_OK;
}

/* Counts the words that the grammar uses (*num_used), and those that have no pronunciation. */
static wf_status count_missing(wf__lg *lg, const wf__map64 *used, const wf__map64 *spoken,
                               wf__word_case *cases, uint64_t *num_used, wf_error *err) {
  const char *text;
  int64_t label;
  for (size_t i = 0; (text = wf_symbols_at(lg->words, i, &label)) != NULL; i++) {
    if (label == lg->unk || is_class(lg, label) || !is_used(lg, used, label)) continue;
    (*num_used)++;
    if (wf__map64_find(spoken, (uint64_t)label) != WF__MAP64_NONE) continue;
    if (cases->lower == NULL) WF__TRY(add_spoken(lg, spoken, cases, err));
    WF__TRY(wf__tally_add(&lg->lm_words_missing, text, err));
    WF__TRY(wf__word_case_missing(cases, (wf__span){text, strlen(text)}, err));
  }
  return warn_of_case(lg, cases, *num_used, err);
}

static wf_status tally_lm_words(wf__lg *lg, const wf__map64 *used, const wf__map64 *spoken,
                                wf_error *err) {
  const wf_tally *missing = &lg->lm_words_missing;
  wf__word_case cases = {0};
  uint64_t num_used = 0;
  char names[300];
  wf_status status = count_missing(lg, used, spoken, &cases, &num_used, err);
  wf__word_case_free(&cases);
  if (status != WF_OK || missing->count == 0) return status;
  wf__tally_list(missing, names, sizeof names);
  wf__log(WF_LOG_WARNING,
          "words of the %s that the lexicon lacks, which cannot be found (%llu of %llu, %.1f%%): "
          "%s",
          name_of_g(lg), (unsigned long long)missing->count, (unsigned long long)num_used,
          100.0 * (double)missing->count / (double)num_used, names);
  return WF_OK;
}

wf_status wf__lg_need_words(const wf__lg *lg, wf_error *err) {
  const wf_tally *missing = &lg->lm_words_missing;
  char names[300];
  if (missing->count == 0) return WF_OK;
  wf__tally_list(missing, names, sizeof names);
  return wf__fail(err, WF_ERR_ARGUMENT, "%llu words of the %s have no pronunciation: %s",
                  (unsigned long long)missing->count, name_of_g(lg), names);
}

/* Lists the first words of the grammar. */
static wf_status list_used(const wf__lg *lg, const wf__map64 *used, char *names, size_t size,
                           wf_error *err) {
  wf_tally tally = {0};
  wf_status status = WF_OK;
  const char *text;
  int64_t label;
  for (size_t i = 0; status == WF_OK && (text = wf_symbols_at(lg->words, i, &label)) != NULL; i++)
    if (label != lg->unk && !is_class(lg, label) && is_used(lg, used, label))
      status = wf__tally_add(&tally, text, err);
  wf__tally_list(&tally, names, size);
  wf__tally_free(&tally);
  return status;
}

static wf_status fail_disjoint(const wf__lg *lg, const wf__map64 *used, const char *lexicon,
                               wf_error *err) {
  char theirs[120], own[120];
  if (lg->given_lexicon != NULL && wf_lexicon_count(lg->given_lexicon) == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the lexicon has no words: %s (%llu left out)", lexicon,
                    (unsigned long long)lg->given_lexicon->skipped.count);
  WF__TRY(list_used(lg, used, theirs, sizeof theirs, err));
  wf__tally_list(&lg->lexicon_words_missing, own, sizeof own);
  return wf__fail(err, WF_ERR_ARGUMENT,
                  "the lexicon %s and the %s have no word in common; do they agree in upper and "
                  "lower case? The lexicon has %s, the %s %s",
                  lexicon, name_of_g(lg), own, name_of_g(lg),
                  theirs[0] != '\0' ? theirs : "others");
}

/* Counts a word of the lexicon that the grammar does not use. `reported` holds the words counted so
 * far, since a word may have several entries. */
static wf_status tally_unused(wf__lg *lg, wf_symbols *reported, const char *word, wf_error *err) {
  int64_t next = wf_symbols_next_key(reported), key;
  WF__TRY(wf_symbols_add(reported, word, -1, &key, err));
  return key == next ? wf__tally_add(&lg->lexicon_words_missing, word, err) : WF_OK;
}

/* Sets keep[i] if the grammar uses the word of the i-th pronunciation. Counts the words that either
 * side lacks. */
static wf_status match_words(wf__lg *lg, const wf__map64 *used, wf__map64 *spoken,
                             wf_symbols *reported, bool *keep, wf_error *err) {
  const wf_lexicon *lexicon = lg->given_lexicon;
  uint64_t num_kept = 0;
  for (size_t i = 0; i < wf_lexicon_count(lexicon); i++) {
    const char *word = wf_lexicon_at(lexicon, i).word;
    uint32_t stands;
    int64_t label = wf_symbols_find(lg->words, word);
    if (label > 0)
      WF__TRY(
          wf__map64_insert(spoken, (uint64_t)label, 1, &stands, NULL, "words of a lexicon", err));
    keep[i] = is_used(lg, used, label) && !is_class(lg, label);
    if (keep[i])
      num_kept++;
    else
      WF__TRY(tally_unused(lg, reported, word, err));
  }
  return num_kept != 0 ? WF_OK : fail_disjoint(lg, used, lexicon->name, err);
}

static wf_status select_entries(wf__lg *lg, const wf__map64 *used, wf__map64 *spoken,
                                wf_error *err) {
  size_t count = wf_lexicon_count(lg->given_lexicon);
  bool *keep = wf__alloc(count, sizeof *keep);
  wf_symbols *reported = NULL;
  wf_status status = keep != NULL ? wf_symbols_create("words", &reported, err)
                                  : wf__fail_memory(err, count, "words of a lexicon");
  if (status == WF_OK) status = match_words(lg, used, spoken, reported, keep, err);
  if (status == WF_OK)
    status = wf__lexicon_select(lg->given_lexicon, keep, lg->words, lg->always_marked, &lg->lexicon,
                                err);
  if (status == WF_OK) lg->num_disambig = wf_lexicon_num_disambig(lg->lexicon) + lg->garbage;
  free(keep);
  wf_symbols_free(reported);
  return status;
}

/* Same as match_words, for a ready-made L, which is used unchanged. */
static wf_status match_ready_l(wf__lg *lg, const wf__map64 *used, wf__map64 *spoken,
                               wf_error *err) {
  wf_fst_view view = wf_fst_get_view(lg->given_l);
  uint64_t num_common = 0;
  uint32_t stands;
  bool fresh;
  for (uint64_t i = 0; i < view.num_arcs; i++) {
    int32_t label = view.arcs[i].olabel;
    if (label == 0 || label == lg->backoff_word) continue;
    WF__TRY(
        wf__map64_insert(spoken, (uint64_t)label, 1, &stands, &fresh, "words of a lexicon", err));
    if (!fresh) continue;
    const char *text = wf_symbols_text(lg->words, label);
    if (text == NULL)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "L has the output label %d, which is not in the word table %s", (int)label,
                      wf__symbols_shown(lg->words));
    if (is_used(lg, used, label))
      num_common++;
    else
      WF__TRY(wf__tally_add(&lg->lexicon_words_missing, text, err));
  }
  return num_common != 0 ? WF_OK : fail_disjoint(lg, used, "L", err);
}

static wf_status take_lexicon(wf__lg *lg, wf_error *err) {
  wf__map64 used = {0}, spoken = {0};
  wf_status status = lg->lm == NULL ? collect_grammar_words(lg->grammar, &used, err) : WF_OK;
  if (status == WF_OK)
    status = lg->given_l != NULL ? match_ready_l(lg, &used, &spoken, err)
                                 : select_entries(lg, &used, &spoken, err);
  if (status == WF_OK) status = tally_lm_words(lg, &used, &spoken, err);
  wf__map64_free(&used);
  wf__map64_free(&spoken);
  if (lg->lexicon_words_missing.count != 0)
    wf__log(WF_LOG_INFO, "%llu words of the lexicon are not in the language model",
            (unsigned long long)lg->lexicon_words_missing.count);
  return status;
}

wf_status wf__lg_take(wf__lg *lg, wf_error *err) {
  if (lg->lm == NULL && lg->grammar == NULL) WF__TRY(take_any_words(lg, err));
  WF__TRY(take_words(lg, err));
  WF__TRY(check_words(lg, lg->grammar, "the grammar", err));
  WF__TRY(check_words(lg, lg->given_l, "L", err));
  WF__TRY(take_classes(lg, err));
  return take_lexicon(lg, err);
}

void wf__lg_free(wf__lg *lg) {
  wf_lexicon_free(lg->lexicon);
  wf_symbols_free(lg->words);
  wf_symbols_free(lg->lexicon_words);
  wf_fst_free(lg->any_words);
  wf__vec_free(&lg->classes);
  wf__tally_free(&lg->lm_words_missing);
  wf__tally_free(&lg->lexicon_words_missing);
}

/* --- G ----------------------------------------------------------------------------------- */

/* What a word costs if the grammar has no costs: of equal paths the one with fewer words wins. A
 * power of two, so that the sums of a search stay exact. */
static const double tie_cost = 1.0 / 1024;

/* Removes the output labels of classes: the words added at run time write their own labels. Fails
 * if a class has no arc. */
static wf_status remove_class_outputs(const wf__lg *lg, wf_fst **g, wf_error *err) {
  uint64_t count = lg->classes.size;
  int32_t(*pairs)[2] = wf__calloc(count, sizeof *pairs);
  if (pairs == NULL) return wf__fail_memory(err, count * sizeof *pairs, "word classes");
  wf__map64 used = {0};
  wf_fst *silent = NULL, *named = NULL;
  wf_status status = collect_grammar_words(*g, &used, err);
  for (uint64_t i = 0; i < count && status == WF_OK; i++) {
    pairs[i][0] = lg->classes.data[i];
    if (wf__map64_find(&used, (uint64_t)pairs[i][0]) == WF__MAP64_NONE)
      status = wf__fail(err, WF_ERR_ARGUMENT, "class '%.80s' is nowhere in the %s",
                        wf_symbols_text(lg->words, pairs[i][0]), name_of_g(lg));
  }
  if (status == WF_OK)
    status = wf_relabel(*g, NULL, 0, (const int32_t(*)[2])pairs, count, &silent, err);
  if (status == WF_OK) status = wf_fst_with_symbols(silent, lg->words, lg->words, &named, err);
  wf__map64_free(&used);
  free(pairs);
  wf_fst_free(silent);
  if (status != WF_OK) return status;
  wf_fst_free(*g);
  *g = named;
  return WF_OK;
}

/* The mean unigram cost of the model's words, less that of <unk>; 0 if there is none. */
static double excess_of_words(const wf__automaton *lm) {
  double sum = 0;
  uint64_t count = 0;
  for (uint32_t word = 0; word < lm->num_public; word++) {
    if (!wf__automaton_has_word(lm, (int32_t)word) || !isfinite(lm->unigrams[word].cost)) continue;
    sum += (double)lm->unigrams[word].cost;
    count++;
  }
  double excess = sum / (double)count - (double)lm->unigrams[lm->unk].cost;
  return isfinite(excess) ? excess : 0;
}

/* Adds a cost to each arc of an input label, or of any output label with `label` -1. */
static wf_status add_cost(wf_fst **g, int32_t label, double cost, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(*g);
  wf__csr csr = {0};
  wf_fst *changed = NULL;
  wf_status status = wf__csr_append(&csr, &view, err);
  for (uint64_t i = 0; i < csr.arcs.size; i++) {
    wf_arc *arc = &csr.arcs.data[i];
    if (label == -1 ? arc->olabel != 0 : arc->ilabel == label)
      arc->weight = (float)((double)arc->weight + cost);
  }
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(*g),
                              wf_fst_osymbols(*g), &changed, err);
  wf__csr_free(&csr);
  if (status != WF_OK) return status;
  wf_fst_free(*g);
  *g = changed;
  return WF_OK;
}

/* Models differ in what <unk> stands for: one unknown word, or all words outside the vocabulary
 * together. As a class it stands for single words that are as likely as the model's words are on
 * average, so the difference is added to its costs. */
static wf_status level_unknown(const wf__lg *lg, wf_fst **g, wf_error *err) {
  return add_cost(g, lg->unk, excess_of_words(lg->automaton), err);
}

static bool has_costs(const wf_fst *g) {
  wf_fst_view view = wf_fst_get_view(g);
  for (uint64_t i = 0; i < view.num_arcs; i++)
    if (view.arcs[i].weight != 0) return true;
  for (uint64_t s = 0; s < view.num_states; s++)
    if (view.final_cost[s] != 0 && view.final_cost[s] < INFINITY) return true;
  return false;
}

/* Does any sentence of G end? Without, every later step is empty, and nobody knows why. */
static wf_status check_ends(const wf__lg *lg, const wf_fst *g, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(g);
  for (uint64_t s = 0; s < view.num_states; s++)
    if (view.final_cost[s] < INFINITY) return WF_OK;
  return lg->lm != NULL
             ? wf__fail(err, WF_ERR_ARGUMENT,
                        "the language model has no '</s>' among its unigrams, so no sentence ends: "
                        "estimate it with sentence ends, or add a line such as '-1 </s>'")
             : wf__fail(err, WF_ERR_ARGUMENT,
                        "the grammar has no final state, so no sentence ends");
}

wf_status wf__lg_make_g(const wf__lg *lg, int32_t backoff, wf_fst **out, wf_error *err) {
  wf_fst *g = NULL;
  if (lg->lm != NULL) {
    wf_lm_fst_options o;
    wf_lm_fst_options_init(&o);
    o.backoff_label = lg->backoff_word;
    o.backoff = backoff;
    WF__TRY(wf_lm_to_fst(lg->lm, &o, &g, err));
  } else {
    WF__TRY(wf_fst_with_symbols(lg->grammar, lg->words, lg->words, &g, err));
  }
  wf_status status = check_ends(lg, g, err);
  if (status == WF_OK && !has_costs(g)) status = add_cost(&g, -1, tie_cost, err);
  if (status == WF_OK && lg->lm != NULL && is_class(lg, lg->unk))
    status = level_unknown(lg, &g, err);
  if (status == WF_OK && lg->classes.size > 0) status = remove_class_outputs(lg, &g, err);
  if (status == WF_OK) status = wf_arcsort(g, NULL, out, err);
  wf_fst_free(g);
  return status;
}
