/* boosts.c - reads lists of phrases, with lines `word word ... [boost]`, and tables that assign
 * lists to utterances. */
#include "boosts.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text_input.h"
#include "utterance_lists.h"

struct boost_set {
  wf_scorer *all;
  utterance_lists utterances;
  wf_scorer **scorers; /* [utterances.num_lists] each includes `all` */
};

/* A list under construction. */
struct phrases {
  char **texts;
  float *boosts;
  size_t count, text_cap, boost_cap;
  float per_letter; /* of phrases without a boost */
  bool noted;       /* as in list_is_comment */
};

/* --- a list of phrases ------------------------------------------------------------------- */

/* The boost that a line ends with, which is cut off, or else one by the phrase's length. Only a
 * field that looks like a number is one, so "nan" and "infinity" are words. */
static wf_status take_boost(char *text, float per_letter, float *boost) {
  char *last = text + strlen(text), *stop = text;
  while (last > text && last[-1] != ' ' && last[-1] != '\t') last--;
  if (last > text && last[strcspn(last, "0123456789")] != '\0') *boost = strtof(last, &stop);
  if (stop <= last || *stop != '\0') {
    *boost = wf_boost_by_length(text, per_letter);
    return WF_OK;
  }
  *last = '\0';
  return isfinite(*boost) ? WF_OK : WF_ERR_FORMAT;
}

/* Modifies `text`. */
static wf_status add_line(struct phrases *list, char *text, const char *path, int line,
                          wf_error *err) {
  size_t size = strlen(text);
  while (size > 0 && isspace((unsigned char)text[size - 1])) text[--size] = '\0';
  text += strspn(text, " \t");
  if (text[0] == '\0' || list_is_comment(text, path, line, &list->noted)) return WF_OK;
  float boost;
  if (take_boost(text, list->per_letter, &boost) != WF_OK)
    return list_error(err, WF_ERR_FORMAT, path, line, "the boost is too large");
  if (!list_reserve((void **)&list->boosts, list->count, &list->boost_cap, sizeof *list->boosts) ||
      !list_reserve((void **)&list->texts, list->count, &list->text_cap, sizeof *list->texts) ||
      (list->texts[list->count] = strdup(text)) == NULL)
    return list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
  list->boosts[list->count++] = boost;
  return WF_OK;
}

static wf_status make_scorer(const struct phrases *list, const char *path,
                             const boost_target *target, wf_scorer **out, wf_error *err) {
  wf_error why = {0};
  wf_phrase_list given;
  wf_phrase_list_init(&given);
  given.name = path;
  given.phrases = (const char *const *)list->texts;
  given.boosts = list->boosts;
  given.count = list->count;
  given.words = target->words;
  given.tokens = target->tokens;
  given.joiner = target->joiner;
  wf_status status = wf_scorer_boost_texts(&given, out, &why);
  if (status == WF_OK) return WF_OK;
  return list_error(err, status == WF_ERR_ARGUMENT ? WF_ERR_FORMAT : status, path, 0, why.message);
}

static wf_status read_list(const char *path, const boost_target *target, wf_scorer **out,
                           wf_error *err) {
  struct phrases list = {.per_letter = target->per_letter};
  cli_lines lines;
  wf_status status = cli_lines_open(&lines, path, err);
  while (status == WF_OK && cli_lines_next(&lines))
    status = add_line(&list, lines.text, path, (int)lines.number, err);
  status = cli_lines_close(&lines, status, err);
  if (status == WF_OK) status = make_scorer(&list, path, target, out, err);
  for (size_t i = 0; i < list.count; i++) free(list.texts[i]);
  free(list.texts);
  free(list.boosts);
  return status;
}

/* --- lists by utterance ------------------------------------------------------------------ */

/* Chains `first` (may be NULL) before `*scorer`. */
static wf_status put_before(const wf_scorer *first, wf_scorer **scorer, wf_error *err) {
  if (first == NULL) return WF_OK;
  wf_scorer *own = *scorer;
  wf_status status = wf_scorer_chain(first, own, scorer, err);
  if (status != WF_OK) *scorer = NULL;
  wf_scorer_free(own);
  return status;
}

/* Reads each distinct list once. */
static wf_status read_lists(boost_set *set, const char *path, const boost_target *target,
                            wf_error *err) {
  wf_status status = utterance_lists_read(path, &set->utterances, err);
  size_t count = set->utterances.num_lists;
  set->scorers = calloc(count + 1, sizeof *set->scorers);
  if (status == WF_OK && set->scorers == NULL)
    return list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    status = read_list(set->utterances.paths[i], target, &set->scorers[i], err);
    if (status == WF_OK) status = put_before(set->all, &set->scorers[i], err);
  }
  return status;
}

wf_status boosts_read(const char *all_path, const char *each_path, const boost_target *target,
                      const wf_scorer *base, boost_set **out, wf_error *err) {
  *out = NULL;
  boost_set *set = calloc(1, sizeof *set);
  if (set == NULL) return list_error(err, WF_ERR_MEMORY, "boosts", 0, "out of memory");
  const char *first = all_path != NULL ? all_path : each_path;
  wf_status status = target->words != NULL
                         ? WF_OK
                         : list_error(err, WF_ERR_ARGUMENT, first, 0,
                                      "boosts need a symbol table of the words: --words");
  if (status == WF_OK && all_path != NULL) status = read_list(all_path, target, &set->all, err);
  if (status == WF_OK && set->all != NULL) status = put_before(base, &set->all, err);
  if (status == WF_OK && set->all == NULL && base != NULL) set->all = wf_scorer_ref(base);
  if (status == WF_OK && each_path != NULL) status = read_lists(set, each_path, target, err);
  if (status == WF_OK)
    *out = set;
  else
    boosts_free(set);
  return status;
}

const wf_scorer *boosts_for(const boost_set *set, const char *key) {
  int64_t list = utterance_lists_find(&set->utterances, key);
  return list >= 0 ? set->scorers[list] : set->all;
}

void boosts_free(boost_set *set) {
  if (set == NULL) return;
  for (size_t i = 0; i < set->utterances.num_lists && set->scorers != NULL; i++)
    wf_scorer_free(set->scorers[i]);
  free(set->scorers);
  utterance_lists_free(&set->utterances);
  wf_scorer_free(set->all);
  free(set);
}
