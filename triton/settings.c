/* settings.c - reads the model configuration: max_batch_size, the idle time of sequences and the
 * parameters. Everything else is skipped. */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Takes a string. Returns a copy to be freed with free(). NULL: not a string, or out of memory. */
static char *take_string(wf__json *json) {
  wf__span text;
  wf__json_chars copy = {0};
  if (!wf__json_text(json, &text)) return NULL;
  if (wf__json_unescape(text, &copy, NULL) != WF_OK) wf__json_fail(json, "out of memory");
  return copy.data;
}

/* Takes ownership of name and value. */
static void add_setting(wf__json *json, char *name, char *value, tw_settings *out) {
  tw_setting *items = realloc(out->items, (out->size + 1) * sizeof *items);
  if (items == NULL) {
    free(name);
    free(value);
    wf__json_fail(json, "out of memory");
    return;
  }
  out->items = items;
  out->items[out->size++] = (tw_setting){name, value};
}

/* Takes {"string_value": "VALUE"} of a parameter, and ownership of `name`. */
static void take_parameter(wf__json *json, char *name, tw_settings *out) {
  wf__span key, skipped;
  char *value = NULL;
  wf__json_open(json, '{');
  while (wf__json_key(json, &key)) {
    if (value == NULL && wf__json_is(key, "string_value"))
      value = take_string(json);
    else
      wf__json_value(json, &skipped);
  }
  if (json->problem == NULL && name != NULL && value != NULL) {
    add_setting(json, name, value, out);
  } else {
    free(name);
    free(value);
  }
}

static void take_parameters(wf__json *json, tw_settings *out) {
  wf__span key;
  wf__json_open(json, '{');
  while (wf__json_key(json, &key)) {
    wf__json_chars name = {0};
    if (wf__json_unescape(key, &name, NULL) != WF_OK) wf__json_fail(json, "out of memory");
    take_parameter(json, name.data, out);
  }
}

/* Takes a number, which may be a string. Any other value becomes 0. */
static void take_number(wf__json *json, int64_t *out) {
  wf__span value;
  char digits[20] = {0};
  if (!wf__json_value(json, &value)) return;
  const size_t quote = value.data[0] == '"';
  if (value.size - quote < sizeof digits) memcpy(digits, value.data + quote, value.size - quote);
  *out = strtoll(digits, NULL, 10);
}

/* Takes an object, and the number `name` in it. */
static void take_number_of(wf__json *json, const char *name, int64_t *out) {
  wf__span key, skipped;
  wf__json_open(json, '{');
  while (wf__json_key(json, &key)) {
    if (wf__json_is(key, name))
      take_number(json, out);
    else
      wf__json_value(json, &skipped);
  }
}

bool settings_read(const char *text, size_t size, tw_settings *out) {
  wf__json json = wf__json_of(text, size);
  wf__span key, skipped;
  *out = (tw_settings){0};
  wf__json_open(&json, '{');
  while (wf__json_key(&json, &key)) {
    if (wf__json_is(key, "parameters"))
      take_parameters(&json, out);
    else if (wf__json_is(key, "max_batch_size"))
      take_number(&json, &out->max_batch_size);
    else if (wf__json_is(key, "sequence_batching"))
      take_number_of(&json, "max_sequence_idle_microseconds", &out->max_idle_us);
    else
      wf__json_value(&json, &skipped);
  }
  if (json.problem != NULL) settings_free(out);
  return json.problem == NULL;
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
