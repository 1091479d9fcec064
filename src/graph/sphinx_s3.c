/* sphinx_s3.c - see sphinx_s3.h. */
#include "graph/sphinx_s3.h"

#include <string.h>

static bool is_text(wf__span span, const char *text) {
  return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

bool wf__is_s3(const uint8_t *data, size_t size) {
  return size >= 3 && memcmp(data, "s3\n", 3) == 0;
}

wf_status wf__s3_open(const wf__input *input, wf__s3 *out, wf_error *err) {
  *out = (wf__s3){.cursor = wf__cursor_of(input)};
  wf__lines lines = wf__lines_of(input);
  wf__span line, name;
  bool first = true;
  for (const char *begin = lines.at; wf__next_line(&lines, &line); begin = lines.at) {
    bool some = wf__next_field(&line, &name);
    if (first && !(some && is_text(name, "s3"))) break;
    if (first) out->header.data = lines.at;
    first = false;
    if (!some || !is_text(name, "endhdr")) continue;
    uint32_t magic;
    out->header.size = (size_t)(begin - out->header.data);
    out->cursor.at += lines.at - (const char *)input->data;
    WF__TRY(wf__read_u32(&out->cursor, &magic, "byte order", err));
    out->swap = magic == 0x44332211;
    if (magic == 0x11223344 || out->swap) return WF_OK;
    return wf__cursor_fail(&out->cursor, err, WF_ERR_FORMAT,
                           "the byte order mark is 0x%08x; expected 0x11223344", magic);
  }
  return wf__fail(err, WF_ERR_FORMAT, "%s: not a Sphinx file: no header from 's3' to 'endhdr'",
                  input->path);
}

bool wf__s3_value(const wf__s3 *s3, const char *name, wf__span *out) {
  wf__lines lines = {.at = s3->header.data, .end = s3->header.data + s3->header.size};
  for (wf__span line, field; wf__next_line(&lines, &line);)
    if (wf__next_field(&line, &field) && is_text(field, name)) return wf__next_field(&line, out);
  return false;
}
