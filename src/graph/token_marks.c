/* token_marks.c - reads the marks in names of tokens. */
#include "graph/token_marks.h"

#include <string.h>

const char wf__token_start[] = "\xE2\x96\x81";
const char wf__token_rest[] = "##";
enum { START_SIZE = sizeof wf__token_start - 1, REST_SIZE = sizeof wf__token_rest - 1 };

wf__token_mark wf__token_mark_of(const char *name, const char **out_text) {
  size_t size = strlen(name), mark = 0;
  wf__token_mark found = WF__TOKEN_PLAIN;
  if (size > 2 && !wf__escapes_to_bytes(name, NULL, NULL) &&
      ((name[0] == '<' && name[size - 1] == '>') || (name[0] == '[' && name[size - 1] == ']'))) {
    found = WF__TOKEN_SPECIAL;
  } else if (strncmp(name, wf__token_start, START_SIZE) == 0) {
    found = WF__TOKEN_STARTS;
    mark = START_SIZE;
  } else if (strncmp(name, wf__token_rest, REST_SIZE) == 0) {
    found = WF__TOKEN_RESTS;
    mark = REST_SIZE;
  }
  if (out_text != NULL) *out_text = name + mark;
  return found;
}

bool wf__escapes_to_bytes(const char *name, char *bytes, size_t *out_size) {
  static const char digits[] = "0123456789ABCDEF0123456789abcdef";
  const size_t groups = strlen(name) / 6;
  if (groups == 0 || strlen(name) % 6 != 0) return false;
  for (size_t i = 0; i < groups; i++) {
    const char *group = name + 6 * i;
    if (strncmp(group, "<0x", 3) != 0 || group[5] != '>') return false;
    const char *high = strchr(digits, group[3]), *low = strchr(digits, group[4]);
    if (high == NULL || low == NULL) return false;
    if (bytes != NULL) bytes[i] = (char)((high - digits) % 16 * 16 + (low - digits) % 16);
  }
  if (out_size != NULL) *out_size = groups;
  return true;
}
