/* join_tokens.c - words from tokens: marks at the start of words, marks of continuations, or a
 * token between words. */
#include "join_tokens.h"

#include <stdlib.h>
#include <string.h>

static const char START[] = "\xE2\x96\x81"; /* U+2581 */
static const char REST[] = "##";
enum { START_SIZE = sizeof START - 1, REST_SIZE = sizeof REST - 1 };

void token_joiner_flags(cli_parser *parser, token_joiner *joiner) {
  cli_flag_bool(parser, "join", 0, &joiner->joins,
                "the graph's words are tokens: join them to words, which begin at U+2581 or after "
                "the token of --separator");
  cli_flag_str(parser, "separator", 0, &joiner->separator, "TOKEN",
               "with --join: the token between words (default: | or <space>, if the table has it)");
}

static bool begins_with(const char *text, const char *mark, size_t size) {
  return strncmp(text, mark, size) == 0;
}

wf_status token_joiner_prepare(token_joiner *joiner, const wf_symbols *table, wf_error *err) {
  static const char *const usual[] = {"|", "<space>"};
  const char *text;
  if (table == NULL) {
    err->code = WF_ERR_ARGUMENT;
    snprintf(err->message, sizeof err->message, "--join needs a symbol table: give --words");
    return WF_ERR_ARGUMENT;
  }
  if (joiner->separator != NULL && wf_symbols_find(table, joiner->separator) < 0) {
    err->code = WF_ERR_ARGUMENT;
    snprintf(err->message, sizeof err->message, "--separator: %s has no token '%.80s'",
             wf_symbols_name(table), joiner->separator);
    return WF_ERR_ARGUMENT;
  }
  for (size_t i = 0; (text = wf_symbols_at(table, i, NULL)) != NULL; i++)
    joiner->marks_rest = joiner->marks_rest || begins_with(text, REST, REST_SIZE);
  for (size_t i = 0; i < 2 && joiner->separator == NULL; i++)
    if (wf_symbols_find(table, usual[i]) >= 0) joiner->separator = usual[i];
  return WF_OK;
}

/* Is the token no part of a text, such as <unk> and [UNK]? */
static bool is_special(const char *text) {
  size_t size = strlen(text);
  return size > 2 &&
         ((text[0] == '<' && text[size - 1] == '>') || (text[0] == '[' && text[size - 1] == ']'));
}

struct joining {
  wf_timed_word *words;
  size_t num_words;
  char *text; /* end of the text so far */
};

/* Ends the last word. A word without text, such as a lone U+2581, is dropped. */
static void end_word(struct joining *joining) {
  if (joining->num_words == 0) return;
  const char *begin = joining->words[joining->num_words - 1].text;
  if (begin == joining->text) joining->num_words--;
  *joining->text++ = '\0';
}

static size_t join_words(const token_joiner *joiner, const wf_timed_word *tokens, size_t count,
                         struct joining *joining) {
  bool open = false;
  joining->num_words = 0;
  for (size_t i = 0; i < count; i++) {
    const char *text = tokens[i].text;
    bool separates = joiner->separator != NULL && strcmp(text, joiner->separator) == 0;
    bool starts = begins_with(text, START, START_SIZE), rest = begins_with(text, REST, REST_SIZE);
    if (!separates && is_special(text)) continue;
    if (open && (separates || starts || (joiner->marks_rest && !rest))) {
      end_word(joining);
      open = false;
    }
    if (separates) continue;
    wf_timed_word *word = &joining->words[open ? joining->num_words - 1 : joining->num_words++];
    if (!open)
      *word = (wf_timed_word){joining->text, tokens[i].start_frame, 0, tokens[i].confidence};
    open = true;
    text += starts ? START_SIZE : joiner->marks_rest && rest ? REST_SIZE : 0;
    joining->text = stpcpy(joining->text, text);
    word->end_frame = tokens[i].end_frame;
    if (tokens[i].confidence < word->confidence) word->confidence = tokens[i].confidence;
  }
  if (open) end_word(joining);
  return joining->num_words;
}

/* Bytes of the texts of tokens, with room for an end after each. */
static size_t bytes_of(const wf_timed_word *tokens, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += strlen(tokens[i].text) + 1;
  return bytes;
}

wf_status token_join(const token_joiner *joiner, const wf_hypothesis *in, wf_hypothesis *out,
                     void **memory, wf_error *err) {
  size_t num_tokens = in->num_words, bytes = bytes_of(in->words, in->num_words);
  for (size_t k = 0; k < in->num_alternatives; k++) {
    num_tokens += in->alternatives[k].num_words;
    bytes += bytes_of(in->alternatives[k].words, in->alternatives[k].num_words);
  }
  size_t lists = in->num_alternatives * sizeof(wf_alternative);
  *memory = malloc(lists + num_tokens * sizeof(wf_timed_word) + bytes + 1);
  if (*memory == NULL) {
    err->code = WF_ERR_MEMORY;
    snprintf(err->message, sizeof err->message, "out of memory for the words of a result");
    return WF_ERR_MEMORY;
  }
  wf_alternative *alternatives = *memory;
  wf_timed_word *words = (wf_timed_word *)(alternatives + in->num_alternatives);
  struct joining joining = {.words = words, .text = (char *)(words + num_tokens)};
  *out = *in;
  out->words = joining.words;
  out->num_words = join_words(joiner, in->words, in->num_words, &joining);
  if (in->num_alternatives > 0) out->alternatives = alternatives;
  joining.words += in->num_words;
  for (size_t k = 0; k < in->num_alternatives; k++) {
    alternatives[k] = in->alternatives[k];
    alternatives[k].words = joining.words;
    alternatives[k].num_words =
        join_words(joiner, in->alternatives[k].words, in->alternatives[k].num_words, &joining);
    joining.words += in->alternatives[k].num_words;
  }
  return WF_OK;
}
