/* token_text.h - writes the text of joined tokens: characters that arrive byte by byte, white space
 * that ends words, and U+FFFD for bytes that are no UTF-8. */
#ifndef WF_GRAPH_TOKEN_TEXT_H
#define WF_GRAPH_TOKEN_TEXT_H

#include "warpfst_graph.h"

/*   text   [word 0 NUL][word 1 NUL][word 2 so far   ]      words[n - 1] begins where a NUL ended
 *                                  at               limit  a NUL fits behind `at` */
typedef struct wf__token_text {
  wf_joined_word *words;
  size_t num_words;
  char *at;
  const char *limit;  /* behind the room that the names so far give */
  size_t rest;        /* bytes of the present token that are still to be added */
  uint8_t pending[4]; /* the first bytes of a character */
  int num_pending;
  bool open;         /* the next character continues the last word */
  bool space;        /* white space came after the last character */
  bool each_invalid; /* U+FFFD for each byte, as SentencePiece does; else for each beginning of a
                        character, as Unicode recommends and tokenizers of GPT-2's kind do */
} wf__token_text;

/* The name of token i, which may add its size and a NUL to the text. */
void wf__token_text_begin_token(wf__token_text *text, const char *name);
/* Ends the last word before the next character. */
void wf__token_text_close(wf__token_text *text);
/* Adds a name as it is. */
void wf__token_text_add_name(wf__token_text *text, size_t token, const char *name);
/* Adds bytes of a token: those of one token, in one call, are in one word. */
void wf__token_text_add_bytes(wf__token_text *text, size_t token, const char *bytes, size_t size);
/* Ends the text and returns the number of words. */
size_t wf__token_text_finish(wf__token_text *text);

#endif
