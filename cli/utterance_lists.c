/* utterance_lists.c - reads tables with lines `utterance FILE`. */
#include "utterance_lists.h"

#include <stdlib.h>
#include <string.h>

#include "text_input.h"

wf_status list_error(wf_error *err, wf_status code, const char *path, int line,
                     const char *message) {
  err->code = code;
  if (line > 0)
    snprintf(err->message, sizeof err->message, "%s:%d: %s", path, line, message);
  else
    snprintf(err->message, sizeof err->message, "%s: %s", path, message);
  return code;
}

bool list_reserve(void **data, size_t size, size_t *cap, size_t element) {
  if (size < *cap) return true;
  size_t more = *cap * 2 + 64;
  void *grown = realloc(*data, more * element);
  if (grown == NULL) return false;
  *data = grown;
  *cap = more;
  return true;
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const utterance_list *)a)->key, ((const utterance_list *)b)->key);
}
static int by_path(const void *a, const void *b) {
  return strcmp(((const utterance_list *)a)->path, ((const utterance_list *)b)->path);
}

static wf_status read_lines(const char *path, utterance_lists *lists, wf_error *err) {
  cli_lines lines;
  wf_status status = cli_lines_open(&lines, path, err);
  while (status == WF_OK && cli_lines_next(&lines)) {
    const int number = (int)lines.number;
    char *key = strtok(lines.text, " \t\r\n"), *list = key != NULL ? strtok(NULL, "\r\n") : NULL;
    if (key == NULL) continue;
    if (list != NULL) list += strspn(list, " \t");
    if (list == NULL || list[0] == '\0')
      status = list_error(err, WF_ERR_FORMAT, path, number, "expected `utterance FILE`");
    else if (!list_reserve((void **)&lists->items, lists->size, &lists->cap, sizeof *lists->items))
      status = list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
    if (status != WF_OK) break;
    utterance_list *item = &lists->items[lists->size++];
    *item = (utterance_list){strdup(key), strdup(list), 0};
    if (item->key == NULL || item->path == NULL)
      status = list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
  }
  return cli_lines_close(&lines, status, err);
}

wf_status utterance_lists_read(const char *path, utterance_lists *lists, wf_error *err) {
  wf_status status = read_lines(path, lists, err);
  if (status != WF_OK || lists->size == 0) return status;
  lists->paths = calloc(lists->size, sizeof *lists->paths);
  if (lists->paths == NULL) return list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
  qsort(lists->items, lists->size, sizeof *lists->items, by_path);
  for (size_t i = 0; i < lists->size; i++) {
    utterance_list *item = &lists->items[i];
    if (i == 0 || strcmp(item[-1].path, item->path) != 0)
      lists->paths[lists->num_lists++] = item->path;
    item->list = lists->num_lists - 1;
  }
  qsort(lists->items, lists->size, sizeof *lists->items, by_key);
  for (size_t i = 1; i < lists->size; i++) {
    if (strcmp(lists->items[i - 1].key, lists->items[i].key) != 0) continue;
    err->code = WF_ERR_FORMAT;
    snprintf(err->message, sizeof err->message, "%s: utterance '%.80s' occurs twice", path,
             lists->items[i].key);
    return WF_ERR_FORMAT;
  }
  return WF_OK;
}

int64_t utterance_lists_find(const utterance_lists *lists, const char *key) {
  if (key == NULL || lists->size == 0) return -1;
  utterance_list wanted = {.key = (char *)(uintptr_t)key};
  const utterance_list *found =
      bsearch(&wanted, lists->items, lists->size, sizeof *lists->items, by_key);
  return found != NULL ? (int64_t)found->list : -1;
}

void utterance_lists_free(utterance_lists *lists) {
  for (size_t i = 0; i < lists->size; i++) {
    free(lists->items[i].key);
    free(lists->items[i].path);
  }
  free(lists->items);
  free(lists->paths);
}

bool list_is_comment(const char *text, const char *path, int line, bool *noted) {
  if (text[0] != '#') return false;
  if (!*noted && strcspn(text + 1, "# \t\r\n") > 0) {
    cli_note("warning: %s:%d: '%.80s' begins with # and is a comment, no word", path, line, text);
    *noted = true;
  }
  return true;
}
