/* join_tokens.c - words from tokens: copies hypotheses with the words that wf_token_joiner_join
 * finds. */
#include "join_tokens.h"

#include <stdlib.h>
#include <string.h>

void token_joiner_flags(cli_parser *parser, token_joiner *joiner) {
  cli_flag_bool(parser, "join", 0, &joiner->joins,
                "the graph's words are tokens: join them to words, which begin at U+2581 or after "
                "the token of --separator");
  cli_flag_str(
      parser, "separator", 0, &joiner->separator, "TOKEN",
      "with --join: the token between words (default: <space>, a space or |, if the table has it)");
}

wf_status token_joiner_prepare(token_joiner *joiner, const wf_symbols *table, wf_error *err) {
  if (table == NULL) {
    err->code = WF_ERR_ARGUMENT;
    snprintf(err->message, sizeof err->message, "--join needs a symbol table: give --words");
    return WF_ERR_ARGUMENT;
  }
  return wf_token_joiner_create(table, joiner->separator, &joiner->joiner, err);
}

/* Memory of the joined hypothesis, and work space: the place of the next words and texts. */
struct joining {
  wf_timed_word *words;
  wf_joined_word *joined; /* of one hypothesis */
  const char **names;     /* of one hypothesis */
  char *text;
};

static size_t join_words(const token_joiner *joiner, const wf_timed_word *tokens, size_t count,
                         struct joining *joining) {
  for (size_t i = 0; i < count; i++) joining->names[i] = tokens[i].text;
  size_t num_words =
      wf_token_joiner_join(joiner->joiner, joining->names, count, joining->joined, joining->text);
  for (size_t w = 0; w < num_words; w++) {
    const wf_joined_word *joined = &joining->joined[w];
    wf_timed_word *word = &joining->words[w];
    *word = tokens[joined->first];
    word->text = joined->text;
    word->end_frame = tokens[joined->last].end_frame;
    for (size_t i = joined->first; i <= joined->last; i++)
      if (tokens[i].confidence < word->confidence) word->confidence = tokens[i].confidence;
  }
  joining->words += num_words;
  if (num_words > 0) {
    const char *last = joining->joined[num_words - 1].text;
    joining->text += (size_t)(last - joining->text) + strlen(last) + 1;
  }
  return num_words;
}

/* Bytes of the texts of tokens, with room for an end after each. */
static size_t bytes_of(const wf_timed_word *tokens, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += strlen(tokens[i].text) + 1;
  return bytes;
}

static wf_status no_memory(wf_error *err) {
  err->code = WF_ERR_MEMORY;
  snprintf(err->message, sizeof err->message, "out of memory for the words of a result");
  return WF_ERR_MEMORY;
}

wf_status token_join(const token_joiner *joiner, const wf_hypothesis *in, wf_hypothesis *out,
                     void **memory, wf_error *err) {
  size_t num_tokens = in->num_words, most = in->num_words;
  size_t bytes = bytes_of(in->words, in->num_words);
  for (size_t k = 0; k < in->num_alternatives; k++) {
    size_t count = in->alternatives[k].num_words;
    num_tokens += count;
    most = count > most ? count : most;
    bytes += bytes_of(in->alternatives[k].words, count);
  }
  size_t each = sizeof(wf_joined_word) + sizeof(char *);
  size_t lists = in->num_alternatives * sizeof(wf_alternative);
  *memory = malloc(lists + num_tokens * sizeof(wf_timed_word) + most * each + bytes + 1);
  if (*memory == NULL) return no_memory(err);
  wf_alternative *alternatives = *memory;
  struct joining joining = {.words = (wf_timed_word *)(alternatives + in->num_alternatives)};
  joining.joined = (wf_joined_word *)(joining.words + num_tokens);
  joining.names = (const char **)(joining.joined + most);
  joining.text = (char *)(joining.names + most);
  *out = *in;
  out->words = joining.words;
  out->num_words = join_words(joiner, in->words, in->num_words, &joining);
  if (in->num_alternatives > 0) out->alternatives = alternatives;
  for (size_t k = 0; k < in->num_alternatives; k++) {
    alternatives[k] = in->alternatives[k];
    alternatives[k].words = joining.words;
    alternatives[k].num_words =
        join_words(joiner, in->alternatives[k].words, in->alternatives[k].num_words, &joining);
  }
  return WF_OK;
}

/* --- texts that differ ------------------------------------------------------------------- */

/* The joined text of a path, its words separated by spaces; NULL: no memory. The caller's to free.
 */
static char *text_of(const token_joiner *joiner, const wf_symbols *table,
                     const wf_lattice_path *path) {
  size_t bytes = 0;
  const char **names = malloc((path->num_words + 1) * sizeof *names);
  char(*numbers)[12] = malloc((path->num_words + 1) * sizeof *numbers); /* of unknown tokens */
  wf_joined_word *words = malloc((path->num_words + 1) * sizeof *words);
  for (size_t i = 0; i < path->num_words && names != NULL && numbers != NULL; i++) {
    names[i] = wf_symbols_text(table, path->words[i]);
    if (names[i] == NULL) {
      snprintf(numbers[i], sizeof numbers[i], "%d", (int)path->words[i]);
      names[i] = numbers[i];
    }
    bytes += strlen(names[i]) + 1;
  }
  char *text = malloc(bytes + 1);
  if (names != NULL && numbers != NULL && words != NULL && text != NULL) {
    const size_t count = wf_token_joiner_join(joiner->joiner, names, path->num_words, words, text);
    text[count == 0 ? 0 : bytes] = '\0';
    for (size_t i = 1; i < count; i++) text[words[i].text - text - 1] = ' ';
  } else {
    free(text);
    text = NULL;
  }
  free(names);
  free(numbers);
  free(words);
  return text;
}

static wf_status keep_distinct(const token_joiner *joiner, const wf_symbols *table, size_t most,
                               char **texts, wf_lattice_path *paths, size_t *count, wf_error *err) {
  size_t num_paths = *count;
  *count = 0;
  for (size_t k = 0; k < num_paths && *count < most; k++) {
    char *text = text_of(joiner, table, &paths[k]);
    bool fresh = text != NULL;
    if (text == NULL) return no_memory(err);
    for (size_t i = 0; i < *count && fresh; i++) fresh = strcmp(texts[i], text) != 0;
    if (!fresh) {
      free(text);
      continue;
    }
    paths[*count] = paths[k];
    texts[(*count)++] = text;
  }
  return WF_OK;
}

wf_status token_join_distinct(const token_joiner *joiner, const wf_symbols *table, size_t most,
                              wf_lattice_path *paths, size_t *count, wf_error *err) {
  char **texts = calloc(*count + 1, sizeof *texts);
  if (texts == NULL) return no_memory(err);
  wf_status status = keep_distinct(joiner, table, most, texts, paths, count, err);
  for (size_t i = 0; i < *count; i++) free(texts[i]);
  free(texts);
  return status;
}
