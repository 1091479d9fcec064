/* token_text.c - the text of joined tokens, written into the caller's memory. */
#include "graph/token_text.h"

#include <string.h>

void wf__token_text_begin_token(wf__token_text *text, const char *name) {
  text->rest = strlen(name);
  text->limit += text->rest + 1;
}

static void put(wf__token_text *text, const char *name) {
  const size_t size = strlen(name);
  memcpy(text->at, name, size + 1);
  text->at += size;
}

/* Writes U+FFFD; or ? where that leaves no room for the bytes to come and a NUL, since a name may
 * have only two bytes for a byte of the token. */
static void put_replacement(wf__token_text *text) {
  if ((size_t)(text->limit - text->at) >= 4 + text->rest + (size_t)text->num_pending)
    put(text, "\xEF\xBF\xBD");
  else
    *text->at++ = '?';
}

static void end_pending(wf__token_text *text) {
  while (text->num_pending > 0) {
    text->num_pending = text->each_invalid ? text->num_pending - 1 : 0;
    put_replacement(text);
  }
}

void wf__token_text_close(wf__token_text *text) {
  end_pending(text);
  text->open = text->space = false;
}

/* Ends the last word, whose text ends at `at`; a word without text, such as a lone U+2581, is
 * dropped. */
static void end_word(wf__token_text *text) {
  if (text->num_words == 0) return;
  if (text->words[text->num_words - 1].text < text->at)
    *text->at++ = '\0';
  else
    text->num_words--;
}

static void continue_word(wf__token_text *text, size_t token) {
  if (!text->open) {
    end_word(text);
    text->words[text->num_words++] = (wf_joined_word){.text = text->at, .first = token};
    text->open = true;
  }
  text->words[text->num_words - 1].last = token;
}

void wf__token_text_add_name(wf__token_text *text, size_t token, const char *name) {
  end_pending(text);
  continue_word(text, token);
  put(text, name);
  text->rest = 0;
}

/* --- bytes ------------------------------------------------------------------------------- */

/* How many bytes does a character have that begins with `lead`? 0: none begins so. */
static int size_of(uint8_t lead) {
  return lead < 0x80 ? 1 : lead < 0xC2 || lead > 0xF4 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* May the byte follow the pending ones? The second byte excludes surrogates, and what is beyond
 * U+10FFFF or has a shorter form. */
static bool may_follow(const wf__token_text *text, uint8_t byte) {
  uint8_t lead = text->pending[0], least = 0x80, most = 0xBF;
  if (text->num_pending == 1) {
    if (lead == 0xE0) least = 0xA0;
    if (lead == 0xF0) least = 0x90;
    if (lead == 0xED) most = 0x9F;
    if (lead == 0xF4) most = 0x8F;
  }
  return byte >= least && byte <= most;
}

static bool is_space(const uint8_t *c, int size) {
  if (size == 1) return c[0] == ' ' || (c[0] >= '\t' && c[0] <= '\r') || (c[0] >= 28 && c[0] <= 31);
  if (size == 2) return c[0] == 0xC2 && (c[1] == 0x85 || c[1] == 0xA0);
  if (size != 3) return false;
  const uint32_t code = (c[0] & 0xFu) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu);
  return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Makes room for a character that is no space. `inside`: the token has had another. */
static void begin_character(wf__token_text *text, size_t token, bool inside) {
  if (text->space && inside) *text->at++ = ' ';
  if (text->space && !inside) wf__token_text_close(text);
  text->space = false;
  continue_word(text, token);
}

/* Adds a byte; *inside: the token has had bytes of a character that is no space. */
static void add_byte(wf__token_text *text, size_t token, uint8_t byte, bool *inside) {
  if (text->num_pending > 0 && !may_follow(text, byte)) end_pending(text);
  text->rest--;
  const int size = size_of(text->num_pending > 0 ? text->pending[0] : byte);
  if (size == 1 && is_space(&byte, 1)) {
    text->space = true;
    return;
  }
  if (text->num_pending == 0) begin_character(text, token, *inside);
  *inside = true;
  text->words[text->num_words - 1].last = token;
  if (size == 0 || byte == 0) { /* a NUL would end the text */
    put_replacement(text);
    return;
  }
  text->pending[text->num_pending++] = byte;
  if (text->num_pending < size) return;
  if (is_space(text->pending, size)) {
    text->space = true;
  } else {
    memcpy(text->at, text->pending, (size_t)size);
    text->at += size;
  }
  text->num_pending = 0;
}

void wf__token_text_add_bytes(wf__token_text *text, size_t token, const char *bytes, size_t size) {
  bool inside = false;
  text->rest = size;
  for (size_t i = 0; i < size; i++) add_byte(text, token, (uint8_t)bytes[i], &inside);
  if (text->space) wf__token_text_close(text);
}

size_t wf__token_text_finish(wf__token_text *text) {
  text->rest = 0;
  end_pending(text);
  end_word(text);
  return text->num_words;
}
