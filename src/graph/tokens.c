/* tokens.c - token tables: which symbols are tokens, their labels, the blank, the label table with
 * disambiguation symbols. */
#include "graph/tokens.h"

#include <stdio.h>
#include <string.h>

#include "fst/symbols.h"
#include "graph/token_bytes.h"
#include "graph/token_marks.h"

bool wf__is_disambig(const char *text, size_t size) {
  if (size < 2 || text[0] != '#') return false;
  for (size_t i = 1; i < size; i++)
    if (text[i] < '0' || text[i] > '9') return false;
  return true;
}

wf__span wf__class_of_label(const char *text, bool *once) {
  *once = text[1] == '1';
  text += *once ? 2 : 1;
  const size_t size = strlen(text);
  return text[0] == '<' ? (wf__span){text, size} : (wf__span){text + 1, size - 2};
}

void wf__class_label(const char *name, bool once, char *out, size_t size) {
  const size_t end = strlen(name);
  const bool bare = end < 3 || name[0] != '<' || name[end - 1] != '>';
  snprintf(out, size, "#%s%s%.1000s%s", once ? "1" : "", bare ? "{" : "", name, bare ? "}" : "");
}

static bool is_text(const char *text, size_t size, const char *literal) {
  return strlen(literal) == size && memcmp(text, literal, size) == 0;
}

bool wf__is_reserved_word(const char *text, size_t size) {
  return wf__is_disambig(text, size) || is_text(text, size, "<eps>") ||
         is_text(text, size, "<s>") || is_text(text, size, "</s>");
}

/* If the table has <eps> at 0, then "<eps>", "#k" and labels of classes are not tokens. Otherwise every
 * symbol is a token (a column). */
static bool is_token(const wf__tokens *tokens, const char *text, size_t size) {
  return tokens->shift == 1 || (!wf__is_disambig(text, size) && !wf__is_class_label(text, size) &&
                                !is_text(text, size, "<eps>"));
}

wf_status wf__tokens_take(const wf_symbols *table, wf__tokens *out, wf_error *err) {
  if (table == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "no token table given");
  *out = (wf__tokens){.table = table, .shift = wf_symbols_find(table, "<eps>") == 0 ? 0 : 1};
  int64_t count = 0, largest = 0, key;
  const char *text;
  for (size_t i = 0; (text = wf_symbols_at(table, i, &key)) != NULL; i++) {
    if (!is_token(out, text, strlen(text))) continue;
    count++;
    if (key + out->shift > largest) largest = key + out->shift;
  }
  if (count == 0)
    return wf__fail(err, WF_ERR_FORMAT, "token table %s: no tokens", wf__symbols_shown(table));
  if (count != largest) {
    int64_t gap = 1 - out->shift;
    while ((text = wf_symbols_text(table, gap)) != NULL && is_token(out, text, strlen(text))) gap++;
    return wf__fail(
        err, WF_ERR_FORMAT,
        "token table %s: no token has id %lld, but ids go up to %lld; every column needs a name",
        wf__symbols_shown(table), (long long)gap, (long long)(largest - out->shift));
  }
  if (largest > INT32_MAX / 2)
    return wf__fail(err, WF_ERR_LIMIT, "token table %s: more than 2^30 tokens",
                    wf__symbols_shown(table));
  out->num_tokens = (int32_t)largest;
  return WF_OK;
}

int32_t wf__tokens_label(const wf__tokens *tokens, const char *text, size_t size) {
  if (!is_token(tokens, text, size)) return 0;
  int64_t id = wf__symbols_find_bytes(tokens->table, text, size);
  return id < 0 ? 0 : (int32_t)id + tokens->shift;
}

int32_t wf__tokens_separator(const wf__tokens *tokens) {
  wf__byte_alphabet alphabet;
  const char *text, *rest;
  wf__byte_alphabet_of(tokens->table, &alphabet);
  const char *name = wf__token_separator(tokens->table, &alphabet);
  for (size_t i = 0; name == NULL && (text = wf_symbols_at(tokens->table, i, NULL)) != NULL; i++)
    if (wf__token_mark_of(text, &rest) == WF__TOKEN_STARTS && rest[0] != '\0') return 0;
  if (name == NULL) name = wf__token_start;
  return wf__tokens_label(tokens, name, strlen(name));
}

wf_status wf__tokens_blank(const wf__tokens *tokens, const char *name, int32_t *out_label,
                           wf_error *err) {
  static const char *const usual[] = {"<blk>", "<blank>", "<b>", "<pad>", "[PAD]", "<ctc>"};
  *out_label = 0;
  if (name != NULL && name[0] == '\0') return WF_OK;
  if (name != NULL) {
    *out_label = wf__tokens_label(tokens, name, strlen(name));
    if (*out_label == 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "token table %s: no token '%.80s' (given as the blank)",
                      wf__symbols_shown(tokens->table), name);
    return WF_OK;
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual && *out_label == 0; i++)
    *out_label = wf__tokens_label(tokens, usual[i], strlen(usual[i]));
  if (*out_label == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "token table %s: none of <blk> <blank> <b> <pad> [PAD] <ctc>; name the blank "
                    "with the option 'blank'",
                    wf__symbols_shown(tokens->table));
  return WF_OK;
}

wf_status wf_token_blank(const wf_symbols *table, const char *name, int32_t *out_column,
                         wf_error *err) {
  wf__tokens tokens;
  *out_column = 0;
  WF__TRY(wf__tokens_take(table, &tokens, err));
  int32_t label;
  WF__TRY(wf__tokens_blank(&tokens, name, &label, err));
  *out_column = label - 1;
  return WF_OK;
}

static wf_status fill_labels(const wf__tokens *tokens, int32_t num_disambig, wf_symbols *labels,
                             wf_error *err) {
  WF__TRY(wf_symbols_add(labels, "<eps>", 0, NULL, err));
  for (int32_t label = 1; label <= tokens->num_tokens; label++)
    WF__TRY(wf_symbols_add(labels, wf_symbols_text(tokens->table, label - tokens->shift), label,
                           NULL, err));
  for (int32_t k = 0; k < num_disambig; k++) {
    char text[32];
    snprintf(text, sizeof text, "#%d", (int)k);
    if (wf_symbols_find(labels, text) >= 0)
      snprintf(text, sizeof text, "<#%d>", (int)k); /* a subword model may have a token "#1" */
    WF__TRY(wf_symbols_add(labels, text, (int64_t)tokens->num_tokens + 1 + k, NULL, err));
  }
  return WF_OK;
}

wf_status wf_token_labels(const wf_symbols *table, int32_t num_disambig, wf_symbols **out,
                          int32_t *out_num_tokens, wf_error *err) {
  *out = NULL;
  if (out_num_tokens != NULL) *out_num_tokens = 0;
  if (num_disambig < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the number of disambiguation symbols is %d",
                    (int)num_disambig);
  wf__tokens tokens;
  WF__TRY(wf__tokens_take(table, &tokens, err));
  wf_symbols *labels;
  WF__TRY(wf_symbols_create(wf_symbols_name(table), &labels, err));
  wf_status status = fill_labels(&tokens, num_disambig, labels, err);
  if (status != WF_OK) {
    wf_symbols_free(labels);
    return status;
  }
  *out = labels;
  if (out_num_tokens != NULL) *out_num_tokens = tokens.num_tokens;
  return WF_OK;
}
