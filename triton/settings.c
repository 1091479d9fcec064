/* settings.c - reads the model configuration: a JSON parser that stores max_batch_size, the idle
 * time of sequences and the parameters, and skips everything else. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

struct cursor {
  const char *at, *end;
};

static void skip_blanks(struct cursor *cursor) {
  while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) != NULL) cursor->at++;
}

static bool take(struct cursor *cursor, char c) {
  skip_blanks(cursor);
  if (cursor->at == cursor->end || *cursor->at != c) return false;
  cursor->at++;
  return true;
}

/* Writes the character \uXXXX as UTF-8, up to 3 bytes. Returns their number, or -1 if it is
 * malformed. Surrogate pairs are not combined: the server does not escape characters beyond 16
 * bits. */
static int put_code(const char *hex, char *out) {
  char digits[5] = {hex[0], hex[1], hex[2], hex[3], '\0'}, *stop;
  unsigned long code = strtoul(digits, &stop, 16);
  if (*stop != '\0') return -1;
  if (code < 0x80) return out[0] = (char)code, 1;
  if (code < 0x800)
    return out[0] = (char)(0xC0 | code >> 6), out[1] = (char)(0x80 | (code & 0x3F)), 2;
  return out[0] = (char)(0xE0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 0x3F)),
         out[2] = (char)(0x80 | (code & 0x3F)), 3;
}

/* Reads a string. Returns a copy to be freed with free(). NULL: not a string, or out of memory. */
static char *take_string(struct cursor *cursor) {
  static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
  if (!take(cursor, '"')) return NULL;
  char *text = malloc((size_t)(cursor->end - cursor->at) + 1), *out = text;
  while (text != NULL && cursor->at < cursor->end && *cursor->at != '"') {
    if (*cursor->at != '\\') {
      *out++ = *cursor->at++;
      continue;
    }
    if (++cursor->at == cursor->end) break;
    char c = *cursor->at++;
    int size = -1;
    for (const char *escape = escapes; *escape != '\0'; escape += 2)
      if (*escape == c) *out = escape[1], size = 1;
    if (c == 'u' && cursor->end - cursor->at >= 4) {
      size = put_code(cursor->at, out);
      cursor->at += 4;
    }
    if (size < 0) break;
    out += size;
  }
  if (text == NULL || cursor->at == cursor->end || *cursor->at != '"') return free(text), NULL;
  cursor->at++;
  *out = '\0';
  return text;
}

/* Skips a value of any type. */
static bool skip_value(struct cursor *cursor, int depth) {
  skip_blanks(cursor);
  if (depth > MAX_DEPTH || cursor->at == cursor->end) return false;
  char open = *cursor->at;
  if (open == '"') {
    char *text = take_string(cursor);
    free(text);
    return text != NULL;
  }
  if (open != '{' && open != '[') {
    while (cursor->at < cursor->end && strchr(",]} \t\r\n", *cursor->at) == NULL) cursor->at++;
    return true;
  }
  char close = open == '{' ? '}' : ']';
  cursor->at++;
  if (take(cursor, close)) return true;
  do {
    if (open == '{' && (!skip_value(cursor, depth + 1) || !take(cursor, ':'))) return false;
    if (!skip_value(cursor, depth + 1)) return false;
  } while (take(cursor, ','));
  return take(cursor, close);
}

static bool add_setting(tw_settings *out, char *name, char *value) {
  tw_setting *items = realloc(out->items, (out->size + 1) * sizeof *items);
  if (items == NULL) return false;
  out->items = items;
  out->items[out->size++] = (tw_setting){name, value};
  return true;
}

/* Reads {"string_value": "VALUE"} of a parameter. Takes ownership of `name`. */
static bool take_parameter(struct cursor *cursor, char *name, tw_settings *out) {
  char *value = NULL;
  bool good = take(cursor, '{');
  if (good && !take(cursor, '}')) {
    do {
      char *key = take_string(cursor);
      good = key != NULL && take(cursor, ':');
      if (good && strcmp(key, "string_value") == 0 && value == NULL)
        good = (value = take_string(cursor)) != NULL;
      else if (good)
        good = skip_value(cursor, 0);
      free(key);
    } while (good && take(cursor, ','));
    good = good && take(cursor, '}');
  }
  if (good && value != NULL && add_setting(out, name, value)) return true;
  free(name);
  free(value);
  return good && value == NULL;
}

static bool take_parameters(struct cursor *cursor, tw_settings *out) {
  if (!take(cursor, '{')) return false;
  if (take(cursor, '}')) return true;
  do {
    char *name = take_string(cursor);
    bool good = name != NULL && take(cursor, ':');
    if (!good) return free(name), false;
    if (!take_parameter(cursor, name, out)) return false;
  } while (take(cursor, ','));
  return take(cursor, '}');
}

/* Reads a number, which may be a string. Any other value becomes 0. */
static bool take_number(struct cursor *cursor, int64_t *out) {
  skip_blanks(cursor);
  const char *value = cursor->at;
  if (!skip_value(cursor, 0)) return false;
  char digits[20] = {0};
  size_t size = (size_t)(cursor->at - value), quote = *value == '"';
  if (size - quote < sizeof digits) memcpy(digits, value + quote, size - quote);
  *out = strtoll(digits, NULL, 10);
  return true;
}

/* Reads the number `name` of an object. Skips everything else. */
static bool take_number_of(struct cursor *cursor, const char *name, int64_t *out) {
  if (!take(cursor, '{')) return false;
  if (take(cursor, '}')) return true;
  do {
    char *key = take_string(cursor);
    bool good = key != NULL && take(cursor, ':') &&
                (strcmp(key, name) == 0 ? take_number(cursor, out) : skip_value(cursor, 0));
    free(key);
    if (!good) return false;
  } while (take(cursor, ','));
  return take(cursor, '}');
}

static bool take_member(struct cursor *cursor, const char *key, tw_settings *out) {
  if (strcmp(key, "parameters") == 0) return take_parameters(cursor, out);
  if (strcmp(key, "max_batch_size") == 0) return take_number(cursor, &out->max_batch_size);
  if (strcmp(key, "sequence_batching") == 0)
    return take_number_of(cursor, "max_sequence_idle_microseconds", &out->max_idle_us);
  return skip_value(cursor, 0);
}

bool settings_read(const char *json, size_t size, tw_settings *out) {
  struct cursor cursor = {json, json + size};
  *out = (tw_settings){0};
  bool good = take(&cursor, '{');
  if (good && take(&cursor, '}')) return true;
  while (good) {
    char *key = take_string(&cursor);
    good = key != NULL && take(&cursor, ':') && take_member(&cursor, key, out);
    free(key);
    if (!good || !take(&cursor, ',')) break;
  }
  good = good && take(&cursor, '}');
  if (!good) settings_free(out);
  return good;
}

const char *settings_find(const tw_settings *settings, const char *name) {
  for (size_t i = 0; i < settings->size; i++)
    if (strcmp(settings->items[i].name, name) == 0) return settings->items[i].value;
  return NULL;
}

void settings_free(tw_settings *of) {
  for (size_t i = 0; i < of->size; i++) {
    free(of->items[i].name);
    free(of->items[i].value);
  }
  free(of->items);
  *of = (tw_settings){0};
}
