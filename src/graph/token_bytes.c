/* token_bytes.c - alphabets of bytes: each byte is a character, each token a string of them. */
#include "graph/token_bytes.h"

#include <string.h>

#include "graph/token_marks.h"

/* --- characters and bytes ----------------------------------------------------------------- */

/* GPT-2 writes the printable characters of Latin-1 as themselves, and other bytes as the characters
 * from U+0100 on, in order. */
static bool gpt2_keeps(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

/* icefall writes printable ASCII as itself, and other bytes as the characters from U+0100 on, in
 * order, except for those that NFKC changes. */
static bool icefall_keeps(int byte) { return byte >= 0x20 && byte <= 0x7E; }
static bool icefall_skips(int character) {
  return character == 0x132 || character == 0x133 || character == 0x13F || character == 0x140 ||
         character == 0x149 || character == 0x17F;
}

static void fill(wf__byte_alphabet *alphabet, int kind) {
  const bool gpt2 = kind == WF__GPT2_BYTES;
  uint16_t next = 0x100;
  alphabet->kind = kind;
  memset(alphabet->bytes, -1, sizeof alphabet->bytes);
  for (int byte = 0; byte < 256; byte++) {
    const bool keeps = gpt2 ? gpt2_keeps(byte) : icefall_keeps(byte);
    while (!gpt2 && icefall_skips(next)) next++;
    alphabet->characters[byte] = keeps ? (uint16_t)byte : next++;
    alphabet->bytes[alphabet->characters[byte]] = (int16_t)byte;
  }
}

static int byte_of(const wf__byte_alphabet *alphabet, uint32_t character) {
  if (character == 0x2581 && alphabet->kind == WF__ICEFALL_BYTES) return ' ';
  return character > 0 && character < 0x200 ? alphabet->bytes[character] : -1;
}

/* Takes a character below U+10000 from UTF-8; 0: there is none. */
static uint32_t next_character(const uint8_t **at) {
  const uint8_t *c = *at;
  if (c[0] < 0x80) {
    *at += 1;
    return c[0];
  }
  if ((c[0] & 0xE0) == 0xC0 && (c[1] & 0xC0) == 0x80) {
    *at += 2;
    return (c[0] & 0x1Fu) << 6 | (c[1] & 0x3Fu);
  }
  if ((c[0] & 0xF0) == 0xE0 && (c[1] & 0xC0) == 0x80 && (c[2] & 0xC0) == 0x80) {
    *at += 3;
    return (c[0] & 0xFu) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu);
  }
  return 0;
}

bool wf__name_to_bytes(const wf__byte_alphabet *alphabet, const char *name, char *bytes,
                       size_t *out_size) {
  const uint8_t *at = (const uint8_t *)name;
  *out_size = 0;
  while (*at != '\0') {
    int byte = byte_of(alphabet, next_character(&at));
    if (byte < 0) return false;
    bytes[(*out_size)++] = (char)byte;
  }
  return true;
}

bool wf__begins_with_space(const wf__byte_alphabet *alphabet, const char *name) {
  const uint8_t *at = (const uint8_t *)name;
  return alphabet->kind != WF__NO_BYTES && name[0] != '\0' &&
         byte_of(alphabet, next_character(&at)) == ' ';
}

size_t wf__bytes_to_name(const wf__byte_alphabet *alphabet, const char *bytes, size_t size,
                         char *name) {
  size_t used = 0;
  for (size_t i = 0; i < size; i++) {
    uint16_t character = alphabet->characters[(uint8_t)bytes[i]];
    if (bytes[i] == ' ' && alphabet->kind == WF__ICEFALL_BYTES) {
      memcpy(name + used, wf__token_start, 3);
      used += 3;
    } else if (character < 0x80) {
      name[used++] = (char)character;
    } else {
      name[used++] = (char)(0xC0 | character >> 6);
      name[used++] = (char)(0x80 | (character & 0x3F));
    }
  }
  return used;
}

/* --- which alphabet ----------------------------------------------------------------------- */

static int num_following(uint8_t lead) {
  return lead >= 0xF0 && lead <= 0xF4 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : 0;
}

/* Are the bytes a part of UTF-8 text? *shown: with two bytes of one character. */
static bool may_be_text(const uint8_t *bytes, size_t size, bool *shown) {
  size_t at = 0;
  while (at < size && at < 3 && (bytes[at] & 0xC0) == 0x80) at++; /* the end of a character */
  *shown = *shown || at > 1;
  while (at < size) {
    uint8_t lead = bytes[at++];
    if (lead < 0x80) {
      if (lead < 0x20 && strchr("\t\n\r", lead) == NULL) return false;
      continue;
    }
    if (lead < 0xC2 || lead > 0xF4) return false;
    for (int k = num_following(lead); k > 0 && at < size; k--, at++) {
      if ((bytes[at] & 0xC0) != 0x80) return false;
      *shown = true;
    }
  }
  return true;
}

static bool are_names(const wf__byte_alphabet *alphabet, const wf_symbols *tokens) {
  char bytes[1024];
  const char *name;
  bool shown = false;
  for (size_t i = 0; (name = wf_symbols_at(tokens, i, NULL)) != NULL; i++) {
    size_t size = strlen(name);
    if (wf__token_mark_of(name, NULL) == WF__TOKEN_SPECIAL) continue;
    if (size > sizeof bytes || !wf__name_to_bytes(alphabet, name, bytes, &size)) return false;
    if (size < 2) continue; /* any byte may be a token */
    if (!may_be_text((const uint8_t *)bytes, size, &shown)) return false;
    shown = shown || (alphabet->kind == WF__GPT2_BYTES && bytes[0] == ' ');
  }
  return shown;
}

void wf__byte_alphabet_of(const wf_symbols *tokens, wf__byte_alphabet *out) {
  for (int kind = WF__GPT2_BYTES; kind <= WF__ICEFALL_BYTES; kind++) {
    fill(out, kind);
    if (are_names(out, tokens)) return;
  }
  out->kind = WF__NO_BYTES;
}

const char *wf__token_separator(const wf_symbols *tokens, const wf__byte_alphabet *alphabet) {
  /* | comes last: beside a space or U+2581 it is a character like others. */
  static const char *const usual[] = {"<space>", " ", "<0x20>", wf__token_start, "|"};
  const char *name, *rest;
  size_t bytes, num_bytes = 0;
  if (alphabet->kind != WF__NO_BYTES) return NULL;
  for (size_t i = 0; (name = wf_symbols_at(tokens, i, NULL)) != NULL; i++) {
    if (wf__token_mark_of(name, &rest) != WF__TOKEN_SPECIAL && rest != name && rest[0] != '\0')
      return NULL;
    num_bytes += wf__escapes_to_bytes(name, NULL, &bytes);
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (wf_symbols_find(tokens, usual[i]) >= 0 && (i != 2 || num_bytes == 1))
      return usual[i] != wf__token_start ? usual[i] : NULL;
  return NULL;
}

bool wf__start_is_mark(const wf_symbols *tokens, const char *separator) {
  const char *name, *rest;
  if (separator == NULL || separator[0] == '\0' || strcmp(separator, wf__token_start) == 0)
    return true;
  for (size_t i = 0; (name = wf_symbols_at(tokens, i, NULL)) != NULL; i++)
    if (wf__token_mark_of(name, &rest) == WF__TOKEN_STARTS && rest[0] != '\0') return true;
  return false;
}
