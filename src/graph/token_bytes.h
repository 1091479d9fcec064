/* token_bytes.h - tokens that are bytes of UTF-8 text, or strings of them.
 *
 * Three ways to name them are in use. Byte tokens stand beside others: <0xE7> is the byte E7, as in
 * SentencePiece's byte fallback; names of several bytes are ours, for tokens of white space. In the
 * other two every token is a string of bytes, each written as one character: GPT-2's alphabet,
 * where "Ġthe" is " the" and "Ã©" is the character é, and icefall's (bbpe), which keeps U+2581 for
 * the space. Names in brackets are special tokens in all three. */
#ifndef WF_GRAPH_TOKEN_BYTES_H
#define WF_GRAPH_TOKEN_BYTES_H

#include <stdint.h>

#include "base/error.h"

typedef struct wf__byte_alphabet {
  enum { WF__NO_BYTES /* names are texts, or <0xE7> */, WF__GPT2_BYTES, WF__ICEFALL_BYTES } kind;
  uint16_t characters[256]; /* of each byte */
  int16_t bytes[0x200];     /* of each character; -1: none */
} wf__byte_alphabet;

/* Finds the alphabet of a table's names. It is one of bytes if all names can be written in it, the
 * bytes of each are a part of UTF-8 text without control characters, and some name shows it: it
 * begins with a space, or has two bytes of one character. */
void wf__byte_alphabet_of(const wf_symbols *tokens, wf__byte_alphabet *out);
/* Writes the bytes of a name, at most strlen(name), and their number. U+2581 is a space. False: it
 * is not written in the alphabet. */
bool wf__name_to_bytes(const wf__byte_alphabet *alphabet, const char *name, char *bytes,
                       size_t *out_size);
/* Does a name begin with a space of the alphabet? */
bool wf__begins_with_space(const wf__byte_alphabet *alphabet, const char *name);
/* Writes the name of a string of bytes, at most 3 for each, without NUL at the end. Returns the
 * size. */
size_t wf__bytes_to_name(const wf__byte_alphabet *alphabet, const char *bytes, size_t size,
                         char *name);
/* The token that stands between words if none is named: <space>, a space, <0x20> without other
 * bytes, or |; NULL: the table has none, or marks words in another way. */
const char *wf__token_separator(const wf_symbols *tokens, const wf__byte_alphabet *alphabet);
/* Does U+2581 mark the beginnings of words? Beside a token between words (NULL or "": none) it is a
 * character like others, unless it begins a longer name. */
bool wf__start_is_mark(const wf_symbols *tokens, const char *separator);

#endif
