/* cmd_lm_query.c - `warpfst lm query` and `lm perplexity`: score a text, line by line, with a
 * model.
 *
 * A line is a sentence: its words, then </s>. Both commands score it with score_line; they differ
 * in what they print. Words without a unigram are out of vocabulary (OOV). As in KenLM's query
 * program, </s> counts as a token, and "perplexity excluding OOVs" leaves out the probabilities and
 * tokens of the OOVs themselves. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm_common.h"
#include "text_input.h"

typedef struct totals {
  double known_log10p,
      oov_log10p; /* kept apart because the second is -infinity if the model has no <unk> */
  uint64_t tokens, oovs, sentences;
} totals;

typedef struct query {
  const wf_lm *lm;
  int32_t eos;
  const char *eos_text;
  bool ids, json;
  bool words, sentences; /* print each word; print each sentence */
} query;

static double log10_of(float cost) { return 0.0 - (double)cost / M_LN10; }

/* Perplexity of `tokens` tokens; NaN for none. */
static double perplexity(double log10p, uint64_t tokens) {
  return tokens > 0 ? pow(10, -log10p / (double)tokens) : NAN;
}
static double total_log10p(const totals *sum) { return sum->known_log10p + sum->oov_log10p; }

static void add_totals(totals *sum, const totals *line) {
  sum->known_log10p += line->known_log10p;
  sum->oov_log10p += line->oov_log10p;
  sum->tokens += line->tokens;
  sum->oovs += line->oovs;
  sum->sentences += line->sentences;
}

/* --- printing ---------------------------------------------------------------------------- */

/* Prints `, "name": value`. */
static void json_number(const char *name, double value) {
  printf(", \"%s\": ", name);
  cli_json_number(stdout, "%.9g", value);
}

static void print_word(const query *q, const char *word, int32_t label, int32_t order,
                       double log10p, bool oov, bool first) {
  if (!q->json) {
    printf("%s=%d %d %.7g\t", word, label, order, log10p);
    return;
  }
  printf("%s{\"word\": ", first ? "" : ", ");
  cli_json_string(stdout, word);
  printf(", \"order\": %d", order);
  json_number("log10p", log10p);
  printf(", \"oov\": %s}", oov ? "true" : "false");
}

static void open_sentence(const query *q, const char *id) {
  if (q->json) {
    printf("{\"id\": ");
    if (id != NULL)
      cli_json_string(stdout, id);
    else
      printf("null");
    if (q->words) printf(", \"words\": [");
  } else if (id != NULL) {
    printf("%s\t", id);
  }
}

static void close_sentence(const query *q, const totals *line) {
  double log10p = total_log10p(line);
  if (q->json) {
    if (q->words) printf("]");
    json_number("log10p", log10p);
    printf(", \"tokens\": %" PRIu64 ", \"oovs\": %" PRIu64, line->tokens, line->oovs);
    json_number("perplexity", perplexity(log10p, line->tokens));
    printf("}\n");
  } else if (q->words) {
    printf("Total: %.7g OOV: %" PRIu64 "\n", log10p, line->oovs);
  } else {
    printf("log10p %.7g tokens %" PRIu64 " OOVs %" PRIu64 " perplexity %.6g\n", log10p,
           line->tokens, line->oovs, perplexity(log10p, line->tokens));
  }
}

static void print_totals(const query *q, const totals *sum) {
  double with = perplexity(total_log10p(sum), sum->tokens),
         without = perplexity(sum->known_log10p, sum->tokens - sum->oovs);
  if (!q->json) {
    printf("Perplexity including OOVs:\t%.9g\nPerplexity excluding OOVs:\t%.9g\nOOVs:\t%" PRIu64
           "\nTokens:\t%" PRIu64 "\nSentences:\t%" PRIu64 "\n",
           with, without, sum->oovs, sum->tokens, sum->sentences);
    return;
  }
  printf("{\"sentences\": %" PRIu64 ", \"tokens\": %" PRIu64 ", \"oovs\": %" PRIu64, sum->sentences,
         sum->tokens, sum->oovs);
  json_number("log10p", total_log10p(sum));
  json_number("log10p_without_oovs", sum->known_log10p);
  json_number("perplexity", with);
  json_number("perplexity_without_oovs", without);
  printf("}\n");
}

/* --- scoring ----------------------------------------------------------------------------- */

/* Scores the sentence in `text`, which it splits into words in place. */
static totals score_line(const query *q, char *text) {
  static const char blanks[] = " \t\r\n";
  totals line = {.sentences = 1};
  char *rest = NULL, *word = strtok_r(text, blanks, &rest);
  const char *id = q->ids ? word : NULL;
  if (q->ids && word != NULL) word = strtok_r(NULL, blanks, &rest);
  if (q->sentences) open_sentence(q, id);
  const wf_symbols *words = wf_lm_words(q->lm);
  uint32_t state = wf_lm_start(q->lm);
  int32_t order;
  for (; word != NULL; word = strtok_r(NULL, blanks, &rest)) {
    int32_t label = (int32_t)wf_symbols_find(words, word);
    double log10p = log10_of(wf_lm_step(q->lm, state, label, &state, &order));
    bool oov = !wf_lm_knows(q->lm, label);
    if (q->words) print_word(q, word, label, order, log10p, oov, line.tokens == 0);
    *(oov ? &line.oov_log10p : &line.known_log10p) += log10p;
    line.oovs += oov;
    line.tokens++;
  }
  double log10p = log10_of(wf_lm_final(q->lm, state, &order));
  if (q->words) print_word(q, q->eos_text, q->eos, order, log10p, false, line.tokens == 0);
  line.known_log10p += log10p;
  line.tokens++;
  if (q->sentences) close_sentence(q, &line);
  return line;
}

static int score_text(const query *q, const char *path) {
  wf_error err = {0};
  cli_lines lines;
  totals sum = {0};
  int code = CLI_OK;
  wf_status status = cli_lines_open(&lines, path, &err);
  while (status == WF_OK && code == CLI_OK && cli_lines_next(&lines)) {
    char *line = lines.text;
    if (memchr(line, '\0', lines.size) != NULL ||
        (sum.sentences == 0 && lines.size > 1 && memcmp(line, "\x1f\x8b", 2) == 0)) {
      cli_note("%s:%zu: not plain text%s", path, lines.number,
               line[0] == '\x1f' ? " (for gzipped text: zcat FILE | warpfst lm ...)" : "");
      code = CLI_INPUT;
      break;
    }
    totals scored = score_line(q, line);
    add_totals(&sum, &scored);
  }
  status = cli_lines_close(&lines, status, &err);
  if (code == CLI_OK && status != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK) print_totals(q, &sum);
  return code;
}

static int run(int argc, char **argv, cli_parser *parser, query *q) {
  lm_source source = {0};
  cli_flag_bool(parser, "ids", 0, &q->ids,
                "each line starts with an utterance id, as in Kaldi's text files");
  cli_flag_bool(parser, "json", 0, &q->json, "print JSON lines instead of text");
  lm_flags(parser, &source);
  int code = cli_parse(parser, argc, argv);
  if (code >= 0) return code;
  wf_lm *lm;
  code = lm_load(parser->args[0], &source, &lm, NULL);
  if (code != CLI_OK) return code;
  wf_lm_info info;
  wf_error err;
  wf_lm_info_init(&info);
  if (wf_lm_get_info(lm, &info, &err) != WF_OK) {
    code = cli_fail(&err);
  } else if (info.difference && !q->words) {
    code = cli_usage("%s: the difference of two models has no perplexity", parser->args[0]);
  } else {
    q->lm = lm;
    q->eos = info.eos;
    q->eos_text = source.options.eos_symbol != NULL ? source.options.eos_symbol : "</s>";
    code = score_text(q, parser->num_args > 1 ? parser->args[1] : "-");
  }
  wf_lm_free(lm);
  return code;
}

int cmd_lm_query(int argc, char **argv) {
  cli_parser parser = {.usage = "LM [TEXT]",
                       .about =
                           "Scores every word of a text with one sentence per line (TEXT: default "
                           "standard input). Like KenLM's "
                           "query, prints WORD=LABEL ORDER LOG10P for each word and </s>:\nthe "
                           "label (-1: not in the table), the order of the n-gram that gave the "
                           "probability, and the log10 probability. Then prints totals.",
                       .min_args = 1,
                       .max_args = 2};
  query q = {.words = true, .sentences = true};
  return run(argc, argv, &parser, &q);
}

int cmd_lm_perplexity(int argc, char **argv) {
  cli_parser parser = {.usage = "LM [TEXT]",
                       .about =
                           "Computes the perplexity of a text with one sentence per line (TEXT: "
                           "default standard input). Tokens are the words and one </s> per line.",
                       .min_args = 1,
                       .max_args = 2};
  query q = {0};
  cli_flag_bool(&parser, "per-sentence", 0, &q.sentences,
                "also print a line for each sentence, before the totals");
  return run(argc, argv, &parser, &q);
}
