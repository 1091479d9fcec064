/* word_lists.c - reads lists of added words, spells words without a pronunciation, and makes a
 * graph for each list.
 *
 *   phrases  [num_phrases]  {words [first_word, first_word + num_words), cost} of all
 *            lists, concatenated
 *   words    [num_words]    {label, tokens [first_token, first_token + num_tokens)}    if
 * num_tokens is 0, the word is to be spelled
 */
#include "word_lists.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text_input.h"
#include "utterance_lists.h"

struct word {
  int32_t label;
  size_t first_token, num_tokens;
};

struct phrase {
  size_t first_word, num_words;
  float cost;
};

struct added_set {
  wf_graph *all;
  utterance_lists utterances;
  wf_graph **graphs; /* [utterances.num_lists] */
};

/* The lists read so far. */
struct reading {
  const wf_symbols *tokens; /* input labels of the graph */
  wf_symbols *words;        /* words of the graph and added words */
  float cost_per_letter;    /* of phrases without a cost */
  struct word *word;
  struct phrase *phrase;
  int32_t *token;
  size_t num_words, word_cap, num_phrases, phrase_cap, num_tokens, token_cap;
  bool noted; /* as in list_is_comment */
};

/* --- a list ------------------------------------------------------------------------------ */

/* Splits off the column at `*at` and trims it; NULL: no more columns. */
static char *next_column(char **at) {
  char *column = *at;
  if (column == NULL) return NULL;
  *at = strchr(column, '\t');
  if (*at != NULL) *(*at)++ = '\0';
  column += strspn(column, " ");
  for (size_t size = strlen(column); size > 0 && isspace((unsigned char)column[size - 1]);)
    column[--size] = '\0';
  return column;
}

static wf_status add_pronunciation(struct reading *reading, struct word *word, char *column,
                                   const char *path, int line, wf_error *err) {
  char message[256];
  word->first_token = reading->num_tokens;
  for (char *text = strtok(column, " "); text != NULL; text = strtok(NULL, " ")) {
    int64_t label = wf_symbols_find(reading->tokens, text);
    snprintf(message, sizeof message, "unknown token '%.80s'", text);
    if (label <= 0 || label > INT32_MAX) return list_error(err, WF_ERR_FORMAT, path, line, message);
    if (!list_reserve((void **)&reading->token, reading->num_tokens, &reading->token_cap,
                      sizeof *reading->token))
      return list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
    reading->token[reading->num_tokens++] = (int32_t)label;
  }
  word->num_tokens = reading->num_tokens - word->first_token;
  return WF_OK;
}

/* Adds the words of a phrase, without pronunciations. */
static wf_status add_words(struct reading *reading, struct phrase *phrase, char *column,
                           wf_error *err) {
  phrase->first_word = reading->num_words;
  for (char *text = strtok(column, " "); text != NULL; text = strtok(NULL, " ")) {
    int64_t label;
    if (!list_reserve((void **)&reading->word, reading->num_words, &reading->word_cap,
                      sizeof *reading->word))
      return list_error(err, WF_ERR_MEMORY, "added words", 0, "out of memory");
    wf_status status =
        wf_symbols_add(reading->words, text, wf_symbols_find(reading->words, text), &label, err);
    if (status != WF_OK) return status;
    reading->word[reading->num_words++] = (struct word){.label = (int32_t)label};
  }
  phrase->num_words = reading->num_words - phrase->first_word;
  return WF_OK;
}

/* Names that stand for no text are not spelled, and some can be no words at all. */
static bool is_no_word(const char *text, bool spelled) {
  const size_t size = strlen(text);
  if (text[0] == '#' && size > 1 && strspn(text + 1, "0123456789") == size - 1) return true;
  if (spelled) return text[0] == '<' && text[size - 1] == '>';
  return strcmp(text, "<eps>") == 0 || strcmp(text, "<s>") == 0 || strcmp(text, "</s>") == 0;
}

static wf_status check_words(const struct reading *reading, const struct phrase *phrase,
                             const char *path, int line, wf_error *err) {
  char message[256];
  for (size_t i = 0; i < phrase->num_words; i++) {
    const struct word *word = &reading->word[phrase->first_word + i];
    const char *text = wf_symbols_text(reading->words, word->label);
    if (!is_no_word(text, word->num_tokens == 0)) continue;
    snprintf(message, sizeof message, "'%.80s' stands for no text and cannot be a word%s", text,
             word->num_tokens == 0 ? " that is spelled" : "");
    return list_error(err, WF_ERR_FORMAT, path, line, message);
  }
  return WF_OK;
}

static wf_status add_line(struct reading *reading, char *text, const char *path, int line,
                          wf_error *err) {
  char *words = next_column(&text), *cost = next_column(&text), *stop;
  if (words[0] == '\0' || list_is_comment(words, path, line, &reading->noted)) return WF_OK;
  if (!list_reserve((void **)&reading->phrase, reading->num_phrases, &reading->phrase_cap,
                    sizeof *reading->phrase))
    return list_error(err, WF_ERR_MEMORY, path, 0, "out of memory");
  struct phrase *phrase = &reading->phrase[reading->num_phrases];
  *phrase = (struct phrase){.cost = wf_boost_by_length(words, reading->cost_per_letter)};
  if (cost != NULL && cost[0] != '\0') {
    phrase->cost = strtof(cost, &stop);
    if (*stop != '\0' || !isfinite(phrase->cost))
      return list_error(
          err, WF_ERR_FORMAT, path, line,
          "expected a phrase, its cost in nats and the tokens of each word, separated by tabs");
  }
  wf_status status = add_words(reading, phrase, words, err);
  size_t num_columns = 0;
  for (char *column; status == WF_OK && (column = next_column(&text)) != NULL; num_columns++) {
    if (num_columns == phrase->num_words)
      return list_error(
          err, WF_ERR_FORMAT, path, line,
          "more pronunciations than words; expected one tab-separated column for each word");
    status = add_pronunciation(reading, &reading->word[phrase->first_word + num_columns], column,
                               path, line, err);
  }
  if (status == WF_OK) status = check_words(reading, phrase, path, line, err);
  if (status == WF_OK) reading->num_phrases++;
  return status;
}

static wf_status read_list(struct reading *reading, const char *path, wf_error *err) {
  cli_lines lines;
  reading->noted = false;
  wf_status status = cli_lines_open(&lines, path, err);
  while (status == WF_OK && cli_lines_next(&lines))
    status = add_line(reading, lines.text, path, (int)lines.number, err);
  return cli_lines_close(&lines, status, err);
}

/* --- spelling ---------------------------------------------------------------------------- */

/* Lists the words without a pronunciation, each once. Words with one are left out, because they may
 * have letters that are not tokens. */
static wf_status list_unspelled(const struct reading *reading, wf_symbols **out, wf_error *err) {
  wf_status status = wf_symbols_create("the added words", out, err);
  for (size_t i = 0; i < reading->num_words && status == WF_OK; i++)
    if (reading->word[i].num_tokens == 0)
      status = wf_symbols_add(*out, wf_symbols_text(reading->words, reading->word[i].label),
                              reading->word[i].label, NULL, err);
  return status;
}

static wf_status add_spelling(struct reading *reading, const wf_pronunciation *pron,
                              struct word *out, wf_error *err) {
  *out = (struct word){.first_token = reading->num_tokens, .num_tokens = pron->num_labels};
  for (size_t i = 0; i < pron->num_labels; i++) {
    if (!list_reserve((void **)&reading->token, reading->num_tokens, &reading->token_cap,
                      sizeof *reading->token))
      return list_error(err, WF_ERR_MEMORY, "added words", 0, "out of memory");
    reading->token[reading->num_tokens++] = pron->labels[i];
  }
  return WF_OK;
}

static wf_status spell_all(struct reading *reading, const wf_lexicon *lexicon, wf_error *err) {
  size_t num_labels = (size_t)wf_symbols_next_key(reading->words);
  struct word *spelled = calloc(num_labels, sizeof *spelled); /* by label */
  wf_status status =
      spelled != NULL ? WF_OK : list_error(err, WF_ERR_MEMORY, "added words", 0, "out of memory");
  for (size_t i = 0; i < wf_lexicon_count(lexicon) && status == WF_OK; i++) {
    wf_pronunciation pron = wf_lexicon_at(lexicon, i);
    status =
        add_spelling(reading, &pron, &spelled[wf_symbols_find(reading->words, pron.word)], err);
  }
  for (size_t i = 0; i < reading->num_words && status == WF_OK; i++) {
    struct word *word = &reading->word[i];
    if (word->num_tokens > 0) continue;
    word->first_token = spelled[word->label].first_token;
    word->num_tokens = spelled[word->label].num_tokens;
  }
  free(spelled);
  return status;
}

/* Spells the words without a pronunciation. */
static wf_status spell(struct reading *reading, const added_request *request, wf_error *err) {
  wf_symbols *wanted = NULL;
  wf_lexicon *lexicon = NULL;
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  options.blank = "";
  options.word_start = request->word_start;
  options.merges = request->merges;
  wf_status status = list_unspelled(reading, &wanted, err);
  if (status == WF_OK && wf_symbols_count(wanted) > 0) {
    status = wf_lexicon_spell(wanted, reading->tokens, &options, &lexicon, err);
    if (status == WF_OK) status = spell_all(reading, lexicon, err);
  }
  wf_symbols_free(wanted);
  wf_lexicon_free(lexicon);
  return status;
}

/* --- graphs ------------------------------------------------------------------------------ */

/* Makes the graph with the phrases [0, num_common), which all utterances have, and the phrases
 * [first, end). */
static wf_status add_phrases(const struct reading *reading, const wf_graph *graph,
                             const char *word_class, size_t num_common, size_t first, size_t end,
                             wf_graph **out, wf_error *err) {
  size_t count = num_common + end - first;
  wf_spoken_word *spoken = malloc((reading->num_words + 1) * sizeof *spoken);
  wf_added_phrase *phrases = malloc((count + 1) * sizeof *phrases);
  wf_status status = spoken != NULL && phrases != NULL
                         ? WF_OK
                         : list_error(err, WF_ERR_MEMORY, "added words", 0, "out of memory");
  for (size_t i = 0; i < reading->num_words && status == WF_OK; i++)
    spoken[i] =
        (wf_spoken_word){reading->word[i].label, reading->token + reading->word[i].first_token,
                         reading->word[i].num_tokens};
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    const struct phrase *phrase = &reading->phrase[i < num_common ? i : first + i - num_common];
    phrases[i] = (wf_added_phrase){spoken + phrase->first_word, phrase->num_words, phrase->cost};
  }
  if (status == WF_OK) status = wf_graph_add_phrases(graph, word_class, phrases, count, out, err);
  free(spoken);
  free(phrases);
  return status;
}

static wf_status read_all(const added_request *request, const wf_graph *graph,
                          struct reading *reading, added_set *set, wf_error *err) {
  wf_status status = request->all_path != NULL ? read_list(reading, request->all_path, err) : WF_OK;
  if (status == WF_OK && request->each_path != NULL)
    status = utterance_lists_read(request->each_path, &set->utterances, err);
  size_t num_lists = set->utterances.num_lists, num_common = reading->num_phrases;
  size_t *ends = calloc(num_lists + 1, sizeof *ends);
  set->graphs = calloc(num_lists + 1, sizeof *set->graphs);
  if (status == WF_OK && (ends == NULL || set->graphs == NULL))
    status = list_error(err, WF_ERR_MEMORY, "added words", 0, "out of memory");
  for (size_t i = 0; i < num_lists && status == WF_OK; i++) {
    status = read_list(reading, set->utterances.paths[i], err);
    ends[i] = reading->num_phrases;
  }
  if (status == WF_OK) status = spell(reading, request, err);
  if (status == WF_OK && request->all_path != NULL)
    status = add_phrases(reading, graph, request->word_class, num_common, 0, 0, &set->all, err);
  for (size_t i = 0; i < num_lists && status == WF_OK; i++)
    status = add_phrases(reading, graph, request->word_class, num_common,
                         i > 0 ? ends[i - 1] : num_common, ends[i], &set->graphs[i], err);
  free(ends);
  return status;
}

static wf_status copy_table(const wf_symbols *from, wf_symbols **out, wf_error *err) {
  const char *text;
  int64_t key;
  wf_status status = wf_symbols_create(wf_symbols_name(from), out, err);
  for (size_t i = 0; status == WF_OK && (text = wf_symbols_at(from, i, &key)) != NULL; i++)
    status = wf_symbols_add(*out, text, key, NULL, err);
  return status;
}

/* Models give unknown words too low a probability for words that are likely to be said. Other
 * classes need no correction. */
static float cost_per_letter(const added_request *request, const wf_graph *graph) {
  const char *name = request->word_class != NULL ? request->word_class : wf_graph_class(graph, 0);
  bool unknown = name != NULL && (strcmp(name, "<unk>") == 0 || strcmp(name, "<UNK>") == 0);
  return unknown ? -WF_BOOST_PER_LETTER : 0;
}

wf_status added_read(const added_request *request, const wf_graph *graph, wf_symbols **words,
                     added_set **out, wf_error *err) {
  *out = NULL;
  const char *first = request->all_path != NULL ? request->all_path : request->each_path;
  struct reading reading = {.tokens = wf_fst_isymbols(wf_graph_fst(graph)),
                            .cost_per_letter = cost_per_letter(request, graph)};
  if (*words == NULL)
    return list_error(err, WF_ERR_ARGUMENT, first, 0,
                      "added words need a symbol table of the words: --words");
  if (wf_graph_num_classes(graph) == 0)
    return list_error(
        err, WF_ERR_ARGUMENT, first, 0,
        "the graph has no class for added words; build it with `mkgraph ctc --classes=...`");
  added_set *set = calloc(1, sizeof *set);
  if (set == NULL) return list_error(err, WF_ERR_MEMORY, first, 0, "out of memory");
  wf_status status = copy_table(*words, &reading.words, err);
  if (status == WF_OK) status = read_all(request, graph, &reading, set, err);
  if (status == WF_OK && request->words_out != NULL)
    status = wf_symbols_write(reading.words, request->words_out, err);
  if (status == WF_OK) {
    wf_symbols_free(*words);
    *words = reading.words;
    *out = set;
  } else {
    wf_symbols_free(reading.words);
    added_free(set);
  }
  free(reading.word);
  free(reading.phrase);
  free(reading.token);
  return status;
}

const wf_graph *added_for(const added_set *set, const char *key) {
  int64_t list = utterance_lists_find(&set->utterances, key);
  return list >= 0 ? set->graphs[list] : set->all;
}

void added_free(added_set *set) {
  if (set == NULL) return;
  for (size_t i = 0; i < set->utterances.num_lists && set->graphs != NULL; i++)
    wf_graph_free(set->graphs[i]);
  free(set->graphs);
  utterance_lists_free(&set->utterances);
  wf_graph_free(set->all);
  free(set);
}

static const cli_rule rules[] = {
    {"add-to", CLI_USELESS_WITHOUT, "add-words|utterance-words"},
    {"word-start", CLI_USELESS_WITHOUT, "add-words|utterance-words"},
    {"merges", CLI_USELESS_WITHOUT, "add-words|utterance-words"},
    {"words-out", CLI_USELESS_WITHOUT, "add-words|utterance-words"},
    {NULL, 0, NULL},
};

void added_flags(cli_parser *parser, added_request *request) {
  cli_flag_str(
      parser, "add-words", 0, &request->all_path, "FILE",
      "words added at run time, one phrase per line, optionally followed by its cost in nats "
      "(default: 0, or for the class <unk> -0.6 for each letter) and the tokens of each word, all "
      "separated by tabs. The graph must have classes (mkgraph ctc --classes)");
  cli_flag_str(parser, "utterance-words", 0, &request->each_path, "FILE",
               "lines `utterance FILE`: a list of added words for each utterance, in addition to "
               "--add-words");
  cli_flag_str(parser, "add-to", 0, &request->word_class, "<CLASS>",
               "class that the words are added to (default: the graph's only class)");
  cli_flag_str(parser, "word-start", 0, &request->word_start, "TEXT",
               "prefix of each added word when it is spelled with tokens (default: U+2581 if a "
               "token begins with it, else none)");
  cli_flag_str(
      parser, "merges", 0, &request->merges, "FILE",
      "spell added words with these byte-pair merges, best first (default: longest token first)");
  cli_flag_str(parser, "words-out", 0, &request->words_out, "FILE",
               "write the word table including the added words, for reading the lattices");
  cli_rules(parser, rules);
}
