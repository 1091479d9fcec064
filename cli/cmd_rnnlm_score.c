/* cmd_rnnlm_score.c - `warpfst rnnlm score` and `rnnlm perplexity`: score a text with a recurrent
 * model, 65,536 lines at a time. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rnnlm_common.h"
#include "text_input.h"

enum { BLOCK_LINES = 65536 };

typedef struct scoring {
  wf_rnnlm *rnnlm;
  wf_rnnlm_info info;
  bool sentences, words, json;
  int64_t threads;
  double log10p, seconds;
  uint64_t tokens, num_sentences, num_oov;
} scoring;

static void print_word(const scoring *s, int32_t word, double log10p, bool first) {
  const char *text = wf_symbols_text(wf_rnnlm_words(s->rnnlm), word);
  if (!s->json) {
    printf("w %s %.9g\n", text, log10p);
    return;
  }
  printf("%s{\"word\": ", first ? "" : ", ");
  cli_json_string(stdout, text);
  printf(", \"log10p\": ");
  cli_json_number(stdout, "%.9g", log10p);
  printf("}");
}

/* Prints the words in the order in which the model reads them, with </s> last. */
static void print_sentence(const scoring *s, const int32_t *words, size_t size,
                           const float *costs) {
  double total = 0;
  if (s->json && s->words) printf("{\"words\": [");
  for (size_t i = 0; i <= size; i++) {
    double log10p = 0 - (double)costs[i] / M_LN10;
    total += log10p;
    if (s->words)
      print_word(s, i == size ? s->info.eos : words[s->info.reverse ? size - 1 - i : i], log10p,
                 i == 0);
  }
  if (!s->json) {
    printf("%f\n", total);
    return;
  }
  printf(s->words ? "], \"log10p\": " : "{\"log10p\": ");
  cli_json_number(stdout, "%.9g", total);
  printf(", \"tokens\": %zu}\n", size + 1);
}

static int score_block(scoring *s, const rnnlm_text *text) {
  size_t tokens = text->num_words + text->num_sentences;
  float *costs = malloc((tokens + 1) * sizeof *costs);
  wf_error err;
  if (costs == NULL) {
    return cli_out_of_memory();
  }
  double begin = cli_now_s();
  int code = wf_rnnlm_score(s->rnnlm, text->words, text->first, text->num_sentences,
                            (int)s->threads, costs, &err) == WF_OK
                 ? CLI_OK
                 : cli_fail(&err);
  s->seconds += cli_now_s() - begin;
  for (size_t i = 0; code == CLI_OK && i < tokens; i++) s->log10p -= (double)costs[i] / M_LN10;
  s->tokens += tokens;
  s->num_sentences += text->num_sentences;
  s->num_oov += text->num_lines - text->num_sentences;
  size_t sentence = 0;
  for (size_t line = 0; code == CLI_OK && s->sentences && line < text->num_lines; line++) {
    if (text->is_oov[line]) {
      printf(s->json ? "{\"log10p\": null, \"oov\": true}\n" : "OOV\n");
      continue;
    }
    uint64_t first = text->first[sentence];
    print_sentence(s, text->words + first, text->first[sentence + 1] - first,
                   costs + first + sentence);
    sentence++;
  }
  free(costs);
  return code;
}

static int score_text(scoring *s, const char *path) {
  wf_error err = {0};
  cli_lines lines;
  rnnlm_text text = {0};
  int code = CLI_OK, scored = CLI_OK;
  wf_status status = cli_lines_open(&lines, path, &err);
  while (status == WF_OK && scored == CLI_OK &&
         rnnlm_read_text(&lines, s->rnnlm, BLOCK_LINES, &text, &code))
    scored = score_block(s, &text);
  rnnlm_text_free(&text);
  if (scored == CLI_OK) scored = code;
  status = cli_lines_close(&lines, status, &err);
  return scored == CLI_OK && status != WF_OK ? cli_fail(&err) : scored;
}

static void print_totals(const scoring *s) {
  double perplexity = s->tokens > 0 ? pow(10, -s->log10p / (double)s->tokens) : NAN;
  if (!s->json) {
    printf("Perplexity:\t%.9g\nTokens:\t%" PRIu64 "\nSentences:\t%" PRIu64
           "\nSentences with unknown words, left out:\t%" PRIu64 "\n",
           perplexity, s->tokens, s->num_sentences, s->num_oov);
    return;
  }
  printf("{\"perplexity\": ");
  cli_json_number(stdout, "%.9g", perplexity);
  printf(", \"log10p\": ");
  cli_json_number(stdout, "%.9g", s->log10p);
  printf(", \"tokens\": %" PRIu64 ", \"sentences\": %" PRIu64 ", \"oov_sentences\": %" PRIu64
         ", \"tokens_per_s\": ",
         s->tokens, s->num_sentences, s->num_oov);
  cli_json_number(stdout, "%.9g", s->seconds > 0 ? (double)s->tokens / s->seconds : NAN);
  printf("}\n");
}

static int run(int argc, char **argv, cli_parser *parser, scoring *s) {
  const char *unk = NULL, *device = NULL;
  cli_flag_bool(parser, "json", 0, &s->json, "print JSON lines instead of text");
  cli_flag_str(parser, "unk", 0, &unk, "WORD",
               "word of the model that replaces unknown words (default: <unk> in safetensors "
               "models, else none)");
  cli_flag_i64(parser, "threads", 't', &s->threads, "N",
               "number of threads; 0: one per processor (default: 1); same results");
  cli_flag_range(parser, "threads", 0, 1024);
  cli_flag_str(parser, "device", 0, &device, "DEVICE",
               "device of the model: cpu, cuda or cuda:N (default: cpu)");
  int code = cli_parse(parser, argc, argv);
  if (code >= 0) return code;
  code = rnnlm_load(parser->args[0], unk, device, &s->rnnlm);
  if (code != CLI_OK) return code;
  wf_error err;
  wf_rnnlm_info_init(&s->info);
  code = wf_rnnlm_get_info(s->rnnlm, &s->info, &err) == WF_OK ? CLI_OK : cli_fail(&err);
  if (code == CLI_OK) code = score_text(s, parser->num_args > 1 ? parser->args[1] : "-");
  if (code == CLI_OK && !s->sentences) print_totals(s);
  wf_rnnlm_free(s->rnnlm);
  return code;
}

int cmd_rnnlm_score(int argc, char **argv) {
  cli_parser parser = {
      .usage = "MODEL [TEXT]",
      .about =
          "Prints the log10 probability of each sentence of a text, including </s>. The text has "
          "one sentence per line; lines "
          "without words are skipped.\nWith --per-word, first prints "
          "a line 'w WORD LOG10P' for each word. A sentence with an unknown word gives "
          "'OOV', as in the faster-rnnlm toolkit.\nFor models that read from "
          "the last word to the first, words are listed in that order.",
      .min_args = 1,
      .max_args = 2};
  scoring s = {.sentences = true, .threads = 1};
  cli_flag_bool(&parser, "per-word", 0, &s.words, "also print each word");
  return run(argc, argv, &parser, &s);
}

int cmd_rnnlm_perplexity(int argc, char **argv) {
  cli_parser parser = {.usage = "MODEL [TEXT]",
                       .about =
                           "Computes the perplexity of a text with one sentence per line (TEXT: "
                           "default standard input). Tokens are the words and one </s> per line. "
                           "Sentences with unknown words are left out.",
                       .min_args = 1,
                       .max_args = 2};
  scoring s = {.threads = 1};
  return run(argc, argv, &parser, &s);
}
