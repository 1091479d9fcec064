/* jsgf_parse.c - reads the rules of a grammar in JSGF.
 *
 *     file      header `grammar` NAME ; { [`public`] <RULE> = choice ; }
 *     choice    [/WEIGHT/] sequence { | [/WEIGHT/] sequence }
 *     sequence  item { item }
 *     item      ( WORD | "WORDS" | <RULE> | ( choice ) | [ choice ] ) { * | + } */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fst/symbols.h"
#include "graph/jsgf.h"

enum { MAX_DEPTH = 200 }; /* of parentheses and brackets: the parser calls itself for each */
#define MAX_WEIGHT 1e30

struct parser {
  wf__jsgf_scanner scanner;
  wf__jsgf *jsgf;
  wf__span grammar_name;
};

/* Children of a node that is not made yet. */
struct list {
  uint32_t first, last, count;
};

static wf_status parse_choice(struct parser *parser, uint32_t depth, uint32_t *out, wf_error *err);

/* --- tokens ------------------------------------------------------------------------------ */

static wf_status next(struct parser *parser, wf_error *err) {
  return wf__jsgf_scan(&parser->scanner, err);
}

static bool is_word(const struct parser *parser, const char *text) {
  const wf__jsgf_token *token = &parser->scanner.token;
  return token->kind == WF__JSGF_WORD && token->text.size == strlen(text) &&
         memcmp(token->text.data, text, token->text.size) == 0;
}

static wf_status fail_found(const struct parser *parser, const char *expected, wf_error *err) {
  const wf__jsgf_token *token = &parser->scanner.token;
  const char *open = token->kind == WF__JSGF_NAME     ? "<"
                     : token->kind == WF__JSGF_WEIGHT ? "/"
                                                      : "",
             *close = token->kind == WF__JSGF_NAME ? ">" : open;
  if (token->kind == WF__JSGF_END)
    return wf__jsgf_fail(parser->scanner.path, token->line, err, WF_ERR_FORMAT,
                         "found the end of the file, expected %s", expected);
  return wf__jsgf_fail(parser->scanner.path, token->line, err, WF_ERR_FORMAT,
                       "found '%s%.*s%s', expected %s", open, WF__SPAN_ARG(token->text), close,
                       expected);
}

static wf_status expect(struct parser *parser, char what, const char *expected, wf_error *err) {
  if (parser->scanner.token.kind != what) return fail_found(parser, expected, err);
  return next(parser, err);
}

/* --- nodes ------------------------------------------------------------------------------- */

static wf_status add_node(struct parser *parser, wf__jsgf_kind kind, uint32_t value, uint32_t first,
                          uint32_t *out, wf_error *err) {
  wf__jsgf *jsgf = parser->jsgf;
  if (jsgf->nodes.size >= WF__JSGF_NONE || parser->scanner.token.line > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%s: more than 2^32 words or lines", jsgf->path);
  WF__TRY(wf__vec_grow(&jsgf->nodes, 1, "a grammar", err));
  *out = (uint32_t)jsgf->nodes.size;
  jsgf->nodes.data[jsgf->nodes.size++] =
      (wf__jsgf_node){.kind = (uint8_t)kind,
                      .value = value,
                      .first = first,
                      .next = WF__JSGF_NONE,
                      .line = (uint32_t)parser->scanner.token.line};
  return WF_OK;
}

static void append(struct parser *parser, struct list *list, uint32_t node) {
  if (list->count++ == 0)
    list->first = node;
  else
    parser->jsgf->nodes.data[list->last].next = node;
  list->last = node;
}

/* A list of one node is that node. */
static wf_status close_sequence(struct parser *parser, const struct list *list, uint32_t *out,
                                wf_error *err) {
  *out = list->first;
  if (list->count == 1) return WF_OK;
  return add_node(parser, WF__JSGF_SEQUENCE, 0, list->first, out, err);
}

/* --- items ------------------------------------------------------------------------------- */

static bool next_word(wf__span *rest, wf__span *word) {
  while (rest->size > 0 && (unsigned char)*rest->data <= ' ') rest->data++, rest->size--;
  word->data = rest->data;
  while (rest->size > 0 && (unsigned char)*rest->data > ' ') rest->data++, rest->size--;
  word->size = (size_t)(rest->data - word->data);
  return word->size > 0;
}

/* The words of a token: several if it is quoted. */
static wf_status parse_words(struct parser *parser, uint32_t *out, wf_error *err) {
  wf__span rest = parser->scanner.token.text, word;
  struct list list = {0};
  while (next_word(&rest, &word)) {
    uint32_t number, node;
    wf_status status = wf__grammar_words_add(&parser->jsgf->words, word, &number, err);
    if (status != WF_OK)
      return wf__fail_prefix(err, status, "%s:%llu", parser->scanner.path,
                             (unsigned long long)parser->scanner.token.line);
    WF__TRY(add_node(parser, WF__JSGF_LABEL, number, WF__JSGF_NONE, &node, err));
    append(parser, &list, node);
  }
  if (list.count == 0) return fail_found(parser, "words between the quotes", err);
  WF__TRY(close_sequence(parser, &list, out, err));
  return next(parser, err);
}

/* <grammar.rule> is <rule> of this grammar. The grammar's name may be given without its packages. */
static wf__span local_name(const struct parser *parser, wf__span name) {
  const wf__span own = parser->grammar_name;
  size_t simple = own.size;
  while (simple > 0 && own.data[simple - 1] != '.') simple--;
  for (size_t from = 0;; from = simple) {
    const size_t size = own.size - from;
    if (name.size > size + 1 && name.data[size] == '.' &&
        memcmp(name.data, own.data + from, size) == 0)
      return (wf__span){name.data + size + 1, name.size - size - 1};
    if (from == simple) return name;
  }
}

static wf_status find_rule(struct parser *parser, uint32_t *out, wf_error *err) {
  wf__jsgf *jsgf = parser->jsgf;
  const wf__jsgf_token *token = &parser->scanner.token;
  const wf__span name = local_name(parser, token->text);
  int64_t key;
  WF__TRY(wf__vec_grow(&jsgf->rules, 1, "rules of a grammar", err));
  WF__TRY(wf__symbols_add_bytes(jsgf->names, name.data, name.size, -1, &key, err));
  if ((uint64_t)key == jsgf->rules.size)
    jsgf->rules.data[jsgf->rules.size++] =
        (wf__jsgf_rule){.body = WF__JSGF_NONE, .line = (uint32_t)token->line};
  *out = (uint32_t)key;
  return WF_OK;
}

static bool is_name(const struct parser *parser, const char *text) {
  const wf__span name = parser->scanner.token.text;
  return name.size == strlen(text) && memcmp(name.data, text, name.size) == 0;
}

static wf_status parse_reference(struct parser *parser, uint32_t *out, wf_error *err) {
  const bool null = is_name(parser, "NULL"), none = is_name(parser, "VOID");
  uint32_t rule = 0;
  if (!null && !none) WF__TRY(find_rule(parser, &rule, err));
  WF__TRY(add_node(parser,
                   null   ? WF__JSGF_NULL
                   : none ? WF__JSGF_VOID
                          : WF__JSGF_RULE,
                   rule, WF__JSGF_NONE, out, err));
  return next(parser, err);
}

static wf_status parse_group(struct parser *parser, uint32_t depth, uint32_t *out, wf_error *err) {
  const bool optional = parser->scanner.token.kind == '[';
  if (depth == MAX_DEPTH)
    return wf__jsgf_fail(parser->scanner.path, parser->scanner.token.line, err, WF_ERR_LIMIT,
                         "more than %d parentheses within each other; make rules of them",
                         MAX_DEPTH);
  WF__TRY(next(parser, err));
  WF__TRY(parse_choice(parser, depth + 1, out, err));
  WF__TRY(expect(parser, optional ? ']' : ')', optional ? "'|' or ']'" : "'|' or ')'", err));
  return optional ? add_node(parser, WF__JSGF_OPTIONAL, 0, *out, out, err) : WF_OK;
}

/* Operators after each other are one. */
static wf_status parse_operators(struct parser *parser, uint32_t *node, wf_error *err) {
  bool some = false, star = false;
  for (int kind; (kind = parser->scanner.token.kind) == '*' || kind == '+'; some = true) {
    star = star || kind == '*';
    WF__TRY(next(parser, err));
  }
  if (!some) return WF_OK;
  return add_node(parser, star ? WF__JSGF_STAR : WF__JSGF_PLUS, 0, *node, node, err);
}

static bool begins_item(const struct parser *parser) {
  const int kind = parser->scanner.token.kind;
  return kind == WF__JSGF_WORD || kind == WF__JSGF_QUOTED || kind == WF__JSGF_NAME || kind == '(' ||
         kind == '[';
}

static wf_status parse_item(struct parser *parser, uint32_t depth, uint32_t *out, wf_error *err) {
  switch (parser->scanner.token.kind) {
    case WF__JSGF_WORD:
    case WF__JSGF_QUOTED: WF__TRY(parse_words(parser, out, err)); break;
    case WF__JSGF_NAME: WF__TRY(parse_reference(parser, out, err)); break;
    default: WF__TRY(parse_group(parser, depth, out, err));
  }
  return parse_operators(parser, out, err);
}

static wf_status parse_sequence(struct parser *parser, uint32_t depth, uint32_t *out,
                                wf_error *err) {
  struct list list = {0};
  uint32_t item = 0;
  if (!begins_item(parser)) return fail_found(parser, "a word, <rule>, '(' or '['", err);
  while (begins_item(parser)) {
    WF__TRY(parse_item(parser, depth, &item, err));
    append(parser, &list, item);
  }
  return close_sequence(parser, &list, out, err);
}

/* --- alternatives ------------------------------------------------------------------------ */

static wf_status parse_weight(struct parser *parser, double *out, wf_error *err) {
  wf__span rest = parser->scanner.token.text, number;
  if (!wf__next_field(&rest, &number) || wf__next_field(&rest, &rest) ||
      !wf__parse_f64(number, out) || !(*out >= 0 && *out <= MAX_WEIGHT))
    return fail_found(parser, "a weight from 0 to 1e30 (in a word, write \\/)", err);
  return next(parser, err);
}

/* Weights, which the costs hold so far, become costs. */
static void set_costs(wf__jsgf *jsgf, uint32_t first, double sum) {
  for (uint32_t i = first; i != WF__JSGF_NONE; i = jsgf->nodes.data[i].next) {
    const double weight = (double)jsgf->nodes.data[i].cost;
    jsgf->nodes.data[i].cost = weight > 0 ? (float)fmax(0, log(sum) - log(weight)) : INFINITY;
  }
}

static wf_status parse_choice(struct parser *parser, uint32_t depth, uint32_t *out, wf_error *err) {
  const bool weighted = parser->scanner.token.kind == WF__JSGF_WEIGHT;
  struct list list = {0};
  double sum = 0, weight = 0;
  for (;;) {
    if (weighted != (parser->scanner.token.kind == WF__JSGF_WEIGHT) && list.count > 0)
      return fail_found(
          parser, weighted ? "a weight, as the other alternatives have" : "no weight, as before",
          err);
    if (weighted) WF__TRY(parse_weight(parser, &weight, err));
    WF__TRY(parse_sequence(parser, depth, out, err));
    parser->jsgf->nodes.data[*out].cost = (float)weight;
    sum += (double)(float)weight;
    append(parser, &list, *out);
    if (parser->scanner.token.kind != '|') break;
    WF__TRY(next(parser, err));
  }
  if (weighted) set_costs(parser->jsgf, list.first, sum);
  if (list.count == 1 && !weighted) return WF_OK;
  return add_node(parser, WF__JSGF_CHOICE, 0, list.first, out, err);
}

/* --- declarations ------------------------------------------------------------------------ */

static wf_status parse_grammar_name(struct parser *parser, wf_error *err) {
  if (!is_word(parser, "grammar")) return fail_found(parser, "'grammar NAME;'", err);
  WF__TRY(next(parser, err));
  if (parser->scanner.token.kind != WF__JSGF_WORD)
    return fail_found(parser, "the name of the grammar", err);
  const wf__span name = parser->scanner.token.text;
  char *copy = wf__strndup(name.data, name.size);
  if (copy == NULL) return wf__fail_memory(err, name.size, "the name of a grammar");
  parser->grammar_name = (wf__span){copy, name.size};
  WF__TRY(next(parser, err));
  return expect(parser, ';', "';'", err);
}

static wf_status begin_rule(struct parser *parser, uint32_t *out, wf_error *err) {
  if (parser->scanner.token.kind != WF__JSGF_NAME)
    return fail_found(parser, "a rule, '<name> = ...;'", err);
  if (is_name(parser, "NULL") || is_name(parser, "VOID"))
    return fail_found(parser, "another name: this one has a meaning of its own", err);
  WF__TRY(find_rule(parser, out, err));
  wf__jsgf_rule *rule = &parser->jsgf->rules.data[*out];
  if (rule->body != WF__JSGF_NONE)
    return wf__jsgf_fail(parser->scanner.path, parser->scanner.token.line, err, WF_ERR_FORMAT,
                         "the rule <%.*s> is defined a second time, first in line %u",
                         WF__SPAN_ARG(parser->scanner.token.text), (unsigned)rule->line);
  rule->line = (uint32_t)parser->scanner.token.line;
  WF__TRY(next(parser, err));
  return expect(parser, '=', "'='", err);
}

static wf_status parse_rule(struct parser *parser, wf_error *err) {
  const bool is_public = is_word(parser, "public");
  uint32_t number = 0, body = 0;
  if (is_word(parser, "import"))
    return wf__jsgf_fail(parser->scanner.path, parser->scanner.token.line, err, WF_ERR_UNSUPPORTED,
                         "found 'import': rules of other grammars are not read; write them into "
                         "this file");
  if (is_public) WF__TRY(next(parser, err));
  WF__TRY(begin_rule(parser, &number, err));
  const uint32_t first = (uint32_t)parser->jsgf->nodes.size;
  WF__TRY(parse_choice(parser, 0, &body, err));
  WF__TRY(expect(parser, ';', "a word, <rule>, '|' or ';'", err));
  wf__jsgf_rule *rule = &parser->jsgf->rules.data[number];
  rule->body = body;
  rule->is_public = is_public;
  rule->first_node = first;
  rule->end_node = (uint32_t)parser->jsgf->nodes.size;
  return WF_OK;
}

static wf_status check_defined(const wf__jsgf *jsgf, wf_error *err) {
  bool some_public = false;
  for (uint64_t i = 0; i < jsgf->rules.size; i++) {
    const wf__jsgf_rule *rule = &jsgf->rules.data[i];
    some_public = some_public || rule->is_public;
    if (rule->body == WF__JSGF_NONE)
      return wf__jsgf_fail(jsgf->path, rule->line, err, WF_ERR_FORMAT,
                           "the rule <%.80s> is not defined",
                           wf_symbols_text(jsgf->names, (int64_t)i));
  }
  if (some_public) return WF_OK;
  return wf__fail(err, WF_ERR_FORMAT, "%s: no rule is public, expected 'public <name> = ...;'",
                  jsgf->path);
}

static wf_status parse_file(struct parser *parser, const wf__input *input, wf_error *err) {
  WF__TRY(wf__jsgf_scan_header(input, &parser->scanner, err));
  WF__TRY(wf_symbols_create("rules", &parser->jsgf->names, err));
  WF__TRY(next(parser, err));
  WF__TRY(parse_grammar_name(parser, err));
  while (parser->scanner.token.kind != WF__JSGF_END) WF__TRY(parse_rule(parser, err));
  return check_defined(parser->jsgf, err);
}

wf_status wf__jsgf_parse(const wf__input *input, wf__jsgf *jsgf, wf_error *err) {
  struct parser parser = {.jsgf = jsgf};
  jsgf->path = input->path;
  wf_status status = parse_file(&parser, input, err);
  wf__vec_free(&parser.scanner.text);
  free((char *)(uintptr_t)parser.grammar_name.data);
  return status;
}
