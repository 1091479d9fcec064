/* symbols_file.c - symbol tables as files: lines of text, and OpenFst's binary form. */
#include <string.h>

#include "base/input.h"
#include "base/output.h"
#include "fst/symbols.h"

static wf_status read_line(wf_symbols *symbols, const wf__lines *lines, wf__span line,
                           wf_error *err) {
  wf__span text, number, extra;
  int64_t key;
  if (!wf__next_field(&line, &text)) return WF_OK;
  if (!wf__next_field(&line, &number)) {
    const bool is_space = wf__parse_i64(text, &key) && wf_symbols_count(symbols) > 0;
    return wf__lines_fail(
        lines, err, WF_ERR_FORMAT, "expected 'symbol id', found only '%.*s': %s",
        WF__SPAN_ARG(text),
        is_space ? "a space is written <space>"
                 : "number the lines, from 0 for tokens and from 1 for words, with 0 for <eps>");
  }
  if (!wf__parse_i64(number, &key) || key < 0)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                          "the symbol id '%.*s' is not a number of at least 0",
                          WF__SPAN_ARG(number));
  if (wf__next_field(&line, &extra))
    return wf__lines_fail(lines, err, WF_ERR_FORMAT,
                          "expected 'symbol id', found a third field '%.*s'", WF__SPAN_ARG(extra));
  if (!wf__is_utf8(text)) return wf__lines_fail(lines, err, WF_ERR_FORMAT, "symbol is not UTF-8");
  if (memchr(text.data, '\0', text.size) != NULL)
    return wf__lines_fail(lines, err, WF_ERR_FORMAT, "symbol holds a NUL byte");
  wf_status status = wf__symbols_add_bytes(symbols, text.data, text.size, key, NULL, err);
  return status == WF_OK ? WF_OK
                         : wf__fail_prefix(err, status, "%s:%llu", lines->path,
                                           (unsigned long long)lines->line_number);
}

wf_status wf__symbols_read_input(const wf__input *input, wf_symbols **out, wf_error *err) {
  *out = NULL;
  if (wf__symbols_is_binary(input)) return wf__symbols_read_whole(input, out, err);
  wf_symbols *symbols = NULL;
  wf_status status = wf_symbols_create(input->path, &symbols, err);
  wf__lines lines = wf__lines_of(input);
  for (wf__span line; status == WF_OK && wf__next_line(&lines, &line);)
    status = read_line(symbols, &lines, line, err);
  if (status != WF_OK) {
    wf_symbols_free(symbols);
    return status;
  }
  *out = symbols;
  return WF_OK;
}

wf_status wf_symbols_read(const char *path, wf_symbols **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__symbols_read_input(&input, out, err);
  wf__input_close(&input);
  return status;
}

wf_status wf_symbols_read_memory(const void *data, size_t size, const char *name, wf_symbols **out,
                                 wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_from_memory(data, size, name, &input, err));
  wf_status status = wf__symbols_read_input(&input, out, err);
  wf__input_close(&input);
  return status;
}

wf_status wf_symbols_write_memory(const wf_symbols *symbols, void **out, size_t *size,
                                  wf_error *err) {
  uint8_t *bytes = NULL;
  uint64_t num_bytes = 0;
  wf_status status = wf__symbols_encode(symbols, &bytes, &num_bytes, err);
  *out = bytes;
  *size = (size_t)num_bytes;
  return status;
}

/* What the reader of text would not give back. */
static wf_status check_fields(const wf_symbols *symbols, wf_error *err) {
  const size_t mark = strlen(WF__BYTE_ORDER_MARK);
  const char *text;
  int64_t key;
  for (size_t i = 0; (text = wf_symbols_entry(symbols, i, &key)) != NULL; i++) {
    const char *fault = wf__symbols_field_fault(symbols, wf__symbols_bytes(symbols, i));
    if (i == 0 && strncmp(text, WF__BYTE_ORDER_MARK, mark) == 0)
      fault = "begins with a byte order mark";
    if (fault != NULL)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "symbol table %s: the symbol '%s' with key %lld %s; a text file cannot hold "
                      "it",
                      wf__symbols_shown(symbols), text, (long long)key, fault);
  }
  return WF_OK;
}

wf_status wf_symbols_write(const wf_symbols *symbols, const char *path, wf_error *err) {
  wf__output *output;
  WF__TRY(check_fields(symbols, err));
  WF__TRY(wf__output_open(path, &output, err));
  const char *text;
  int64_t key;
  for (size_t i = 0; (text = wf_symbols_entry(symbols, i, &key)) != NULL; i++)
    wf__printf(output, "%s\t%lld\n", text, (long long)key);
  return wf__output_close(output, err);
}
