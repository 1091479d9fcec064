/* config.c - option tables: defaults, parsing, range checks. */
#include "base/config.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/input.h"

/* Bytes. A larger size means that the structure was not initialised. */
enum { MAX_STRUCT = 1 << 16 };

static char *field_of(void *config, const wf_option *row) { return (char *)config + row->offset; }

static void store(void *config, const wf_option *row, double value) {
  char *field = field_of(config, row);
  switch (row->type) {
    case WF_OPTION_F32: *(float *)(void *)field = (float)value; break;
    case WF_OPTION_I32:
    case WF_OPTION_ENUM: *(int32_t *)(void *)field = (int32_t)value; break;
    case WF_OPTION_I64: *(int64_t *)(void *)field = (int64_t)value; break;
    case WF_OPTION_BOOL: *(bool *)(void *)field = value != 0; break;
    case WF_OPTION_STR: *(const char **)(void *)field = NULL; break;
  }
}

static size_t field_size(const wf_option *row) {
  switch (row->type) {
    case WF_OPTION_I64: return sizeof(int64_t);
    case WF_OPTION_BOOL: return sizeof(bool);
    case WF_OPTION_STR: return sizeof(char *);
    case WF_OPTION_F32:
    case WF_OPTION_I32:
    case WF_OPTION_ENUM: break;
  }
  return 4;
}

/* True if a structure of `size` bytes contains the field. */
static bool has_field(size_t size, const wf_option *row) {
  return row->offset + field_size(row) <= size;
}

void wf_options_init(const wf_option_table *table, void *config, size_t size) {
  memset(config, 0, size);
  *(size_t *)config = size;
  for (size_t i = 0; i < table->num_rows; i++)
    if (has_field(size, &table->rows[i])) store(config, &table->rows[i], table->rows[i].def);
}

static bool same_name(const char *option, const char *name) {
  for (; *option != '\0' && *name != '\0'; option++, name++)
    if (*option != (*name == '-' ? '_' : *name)) return false;
  return *option == *name;
}

/* Index of `value` in "a|b|c", or -1; with value NULL, the number of choices. */
static int choice_index(const char *choices, const char *value) {
  int index = 0;
  for (const char *at = choices;; index++) {
    size_t size = strcspn(at, "|");
    if (value != NULL && strlen(value) == size && memcmp(at, value, size) == 0) return index;
    if (at[size] == '\0') return value != NULL ? -1 : index + 1;
    at += size + 1;
  }
}

static bool parse_bool(const char *value, bool *out) {
  static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(value, words[i]) == 0) {
      *out = i % 2 == 1;
      return true;
    }
  }
  return false;
}

/* Takes the suffix off a number of bytes such as 2G; returns its factor, a power of 1024. */
static double byte_factor(wf__span *text) {
  static const char suffixes[] = "KMGT";
  double factor = 1;
  if (text->size == 0) return 1;
  const char *at = memchr(suffixes, toupper((unsigned char)text->data[text->size - 1]), 4);
  for (const char *each = suffixes; at != NULL && each <= at; each++) factor *= 1024;
  text->size -= at != NULL;
  return factor;
}

static wf_status parse_number(const wf_option *row, const char *value, double *out, wf_error *err) {
  wf__span text = {value, strlen(value)};
  int64_t whole = 0;
  bool integer = row->type == WF_OPTION_I32 || row->type == WF_OPTION_I64,
       bytes = strcmp(row->unit, "bytes") == 0;
  double factor = bytes ? byte_factor(&text) : 1;
  bool fraction = !integer || factor > 1; /* 1.5G is a whole number of bytes */
  bool valid = fraction ? wf__parse_f64(text, out) && !isnan(*out) : wf__parse_i64(text, &whole);
  if (!valid)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: '%.80s' is not a%s number%s", row->name, value,
                    integer ? " whole" : "", bytes ? " of bytes, such as 500000000 or 2G" : "");
  *out = fraction ? *out * factor : (double)whole;
  if (integer) *out = floor(*out);
  if (*out < row->min || *out > row->max)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s is %.80s, outside [%g, %g]%s%s", row->name, value,
                    row->min, row->max, row->unit[0] != '\0' ? " " : "", row->unit);
  return WF_OK;
}

static const wf_option *find_row(const wf_option_table *table, const char *name) {
  for (size_t i = 0; i < table->num_rows; i++)
    if (same_name(table->rows[i].name, name)) return &table->rows[i];
  return NULL;
}

/* Options that were renamed, until 0.4. */
static const wf_option *find_old_row(const wf_option_table *table, const char *name) {
  if (strcmp(table->name, "stream") != 0 || !same_name("frame_seconds", name)) return NULL;
  wf__log(WF_LOG_WARNING, "the option %s is now frame_shift; the old name goes in version 0.4",
          name);
  return find_row(table, "frame_shift");
}

wf_status wf_options_set(const wf_option_table *table, void *config, const char *name,
                         const char *value, wf_error *err) {
  const wf_option *row = find_row(table, name);
  if (row == NULL) row = find_old_row(table, name);
  if (row == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: no option named '%.80s'", table->name, name);
  if (!has_field(*(const size_t *)config, row))
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: %s is beyond the %zu bytes of the options",
                    table->name, row->name, *(const size_t *)config);
  if (row->type == WF_OPTION_STR) {
    *(const char **)(void *)field_of(config, row) = value;
    return WF_OK;
  }
  double number = 0;
  if (row->type == WF_OPTION_BOOL) {
    bool flag = false;
    if (!parse_bool(value, &flag))
      return wf__fail(err, WF_ERR_ARGUMENT, "%s: '%.80s' is neither true nor false", row->name,
                      value);
    number = flag;
  } else if (row->type == WF_OPTION_ENUM) {
    int index = choice_index(row->unit, value);
    if (index < 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "%s: '%.80s' is none of %s", row->name, value,
                      row->unit);
    number = index;
  } else {
    WF__TRY(parse_number(row, value, &number, err));
  }
  store(config, row, number);
  return WF_OK;
}

static wf_status check_rows(const wf_option_table *table, const void *config, size_t known,
                            wf_error *err) {
  for (size_t i = 0; i < table->num_rows; i++) {
    const wf_option *row = &table->rows[i];
    const char *field = (const char *)config + row->offset;
    if (!has_field(known, row)) continue;
    double value = 0, min = row->min, max = row->max;
    switch (row->type) {
      case WF_OPTION_F32:
        value = *(const float *)(const void *)field;
        min = (double)(float)min; /* round the limits as the value was rounded */
        max = (double)(float)max;
        break;
      case WF_OPTION_I32: value = *(const int32_t *)(const void *)field; break;
      case WF_OPTION_I64: value = (double)*(const int64_t *)(const void *)field; break;
      case WF_OPTION_ENUM:
        value = *(const int32_t *)(const void *)field;
        min = 0;
        max = choice_index(row->unit, NULL) - 1;
        break;
      case WF_OPTION_BOOL:
      case WF_OPTION_STR: continue;
    }
    if (!(value >= min && value <= max))
      return wf__fail(err, WF_ERR_ARGUMENT, "%s is %g, outside [%g, %g]", row->name, value, min,
                      max);
  }
  return WF_OK;
}

wf_status wf_options_check(const wf_option_table *table, const void *config, wf_error *err) {
  const size_t size = *(const size_t *)config;
  WF__TRY(wf__struct_check(table->name, config, table->struct_size, err));
  return check_rows(table, config, size, err);
}

wf_status wf__options_take(const wf_option_table *table, const void *options, void *copy,
                           wf_error *err) {
  wf_options_init(table, copy, table->struct_size);
  if (options == NULL) return WF_OK;
  WF__TRY(wf_options_check(table, options, err));
  wf__struct_take(options, copy, table->struct_size);
  return WF_OK;
}

/* --- structures that may grow ------------------------------------------------------------ */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

wf_status wf__struct_check(const char *name, const void *theirs, size_t size, wf_error *err) {
  const size_t given = theirs == NULL ? 0 : *(const size_t *)theirs;
  if (given < sizeof(size_t) || given > MAX_STRUCT)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%s: struct_size is %zu; call the structure's _init function first", name,
                    given);
  for (size_t at = size; at < given; at++)
    if (((const unsigned char *)theirs)[at] != 0)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "%s: byte %zu is set, but its field is unknown to this library (%s)", name,
                      at, wf_version());
  return WF_OK;
}

void wf__struct_take(const void *theirs, void *own, size_t size) {
  memcpy(own, theirs, smaller(*(const size_t *)theirs, size));
  *(size_t *)own = size;
}

void wf__struct_give(const void *own, size_t size, void *theirs) {
  const size_t given = *(const size_t *)theirs, both = smaller(given, size);
  memcpy(theirs, own, both);
  memset((char *)theirs + both, 0, given - both);
  *(size_t *)theirs = given;
}
