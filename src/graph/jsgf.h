/* jsgf.h - grammars in JSGF (JSpeech Grammar Format 1.0, W3C note of 2000).
 *
 *   jsgf_scan.c     text -> tokens
 *   jsgf_parse.c    tokens -> rules, each a tree of nodes
 *   jsgf_rules.c    which rules use themselves, and what they expand to
 *   jsgf_expand.c   rules -> fst
 *
 *   nodes  []  those of a rule are [first_node, end_node); children come before their parents, and
 *              are a list: first child, next sibling */
#ifndef WF_GRAPH_JSGF_H
#define WF_GRAPH_JSGF_H

#include "base/input.h"
#include "base/memory.h"
#include "graph/grammar_words.h"

/* --- tokens ------------------------------------------------------------------------------ */

/* Other tokens are characters: ; = | * + ( ) [ ], and those that are out of place. */
enum { WF__JSGF_END, WF__JSGF_WORD = 256, WF__JSGF_QUOTED, WF__JSGF_NAME, WF__JSGF_WEIGHT };

typedef struct wf__jsgf_token {
  int kind;
  wf__span text; /* without quotes, escapes, < > and / /; valid until the next token */
  uint64_t line;
} wf__jsgf_token;

typedef struct wf__jsgf_scanner {
  const char *at, *end, *path;
  uint64_t line;
  wf__jsgf_token token; /* the current one */
  WF__VEC(char) text;   /* of a token with escapes */
} wf__jsgf_scanner;

/* Checks the text and its first line, `#JSGF V1.0 [character set] [locale];`. */
wf_status wf__jsgf_scan_header(const wf__input *input, wf__jsgf_scanner *out, wf_error *err);
/* Reads the next token to scanner->token. Comments and {tags} are left out. */
wf_status wf__jsgf_scan(wf__jsgf_scanner *scanner, wf_error *err);
/* As wf__fail, with "path:line: " before the message. */
wf_status wf__jsgf_fail(const char *path, uint64_t line, wf_error *err, wf_status code,
                        const char *format, ...) WF__PRINTF(5, 6);

/* --- rules ------------------------------------------------------------------------------- */

#define WF__JSGF_NONE UINT32_MAX

typedef enum wf__jsgf_kind {
  WF__JSGF_LABEL,    /* the word `value` */
  WF__JSGF_NULL,     /* nothing is said */
  WF__JSGF_VOID,     /* cannot be said */
  WF__JSGF_RULE,     /* the rule `value` */
  WF__JSGF_SEQUENCE, /* its children, one after the other */
  WF__JSGF_CHOICE,   /* one of its children, which have costs */
  WF__JSGF_OPTIONAL, /* its child or nothing */
  WF__JSGF_STAR,     /* its child, any number of times */
  WF__JSGF_PLUS,     /* the same, at least once */
} wf__jsgf_kind;

typedef struct wf__jsgf_node {
  uint8_t kind;
  bool at_end; /* nothing of the rule is said after it */
  uint32_t value;
  uint32_t first, next; /* WF__JSGF_NONE: none */
  uint32_t line;
  float cost; /* as a child of a choice; infinity: weight 0 */
} wf__jsgf_node;

typedef struct wf__jsgf_rule {
  uint32_t body; /* WF__JSGF_NONE: not defined (yet) */
  uint32_t line; /* of the definition, or of the first use */
  bool is_public;
  uint32_t first_node, end_node;
  uint32_t component; /* rules that use each other are one component */
  bool is_recursive;
  uint64_t size; /* number of nodes that the rule expands to, at least 1 */
} wf__jsgf_rule;

typedef struct wf__jsgf {
  const char *path;  /* for messages, borrowed */
  wf_symbols *names; /* of the rules, numbered from 0; without the name of the grammar */
  WF__VEC(wf__jsgf_rule) rules;
  WF__VEC(wf__jsgf_node) nodes;
  wf__grammar_words words;
} wf__jsgf;

/* Fills a structure that is zero but for words.given. */
wf_status wf__jsgf_parse(const wf__input *input, wf__jsgf *jsgf, wf_error *err);
/* Sets component, is_recursive and size of the rules. Errors: a rule that uses itself elsewhere
 * than at its end; public rules that expand to more than `max_arcs` nodes. */
wf_status wf__jsgf_check_rules(wf__jsgf *jsgf, uint64_t max_arcs, wf_error *err);
/* Makes the acceptor of the public rules, with epsilons. */
wf_status wf__jsgf_expand(const wf__jsgf *jsgf, wf_fst **out, wf_error *err);
void wf__jsgf_free(wf__jsgf *jsgf);

/* Does the file begin with #JSGF? */
bool wf__jsgf_is(const wf__input *input);
/* Reads a grammar. The result has no epsilons. Errors also: more than `max_arcs` parts before, or
 * arcs after the removal of epsilons. */
wf_status wf__jsgf_read(const wf__input *input, const wf_symbols *words, uint64_t max_arcs,
                        wf_fst **out, wf_error *err);

#endif
