/* hotwords.c - the hotwords of an utterance, as a sorted list. */
#include <string.h>

#include "compat/prefixes.h"

static int compare(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

wf_status wf__hotwords_init(const wf_beam_input *input, wf__hotwords *out, wf_error *err) {
  *out = (wf__hotwords){wf__alloc(input->num_hotwords, sizeof *out->words), input->num_hotwords};
  if (out->words == NULL)
    return wf__fail_memory(err, input->num_hotwords * sizeof *out->words, "hotwords");
  for (size_t i = 0; i < out->count; i++) out->words[i] = input->hotwords[i];
  if (out->count > 0) qsort(out->words, out->count, sizeof *out->words, compare);
  return WF_OK;
}

bool wf__hotwords_have(const wf__hotwords *hotwords, const char *text) {
  for (size_t i = 0; i < hotwords->count; i++)
    if (strstr(hotwords->words[i], text) != NULL) return true;
  return false;
}

uint32_t wf__hotwords_find(const wf__hotwords *hotwords, const char *part, bool *is_word) {
  size_t first = 0, num = hotwords->count, size = strlen(part);
  while (num > 0) { /* the first that is not before `part` */
    size_t half = num / 2;
    bool right = strcmp(hotwords->words[first + half], part) < 0;
    first = right ? first + half + 1 : first;
    num = right ? num - half - 1 : half;
  }
  *is_word = first < hotwords->count && strcmp(hotwords->words[first], part) == 0;
  uint32_t shortest = 0;
  for (; first < hotwords->count && strncmp(hotwords->words[first], part, size) == 0; first++) {
    uint32_t letters = wf__count_letters(hotwords->words[first]);
    if (shortest == 0 || letters < shortest) shortest = letters;
  }
  return shortest;
}
