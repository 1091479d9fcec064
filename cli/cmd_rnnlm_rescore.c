/* cmd_rnnlm_rescore.c - `warpfst rnnlm rescore`: rescores and sorts n-best lists with a recurrent
 * model, alone or interpolated with an n-gram model.
 *
 *   KEY RANK GRAPH_COST ACOUSTIC_COST WORD...      costs in nats
 *
 * Lines with the same key are adjacent. The new graph cost is the old one + rnnlm_scale * (cost by
 * the new models) - small_scale * (cost by the small model), as in decoding with
 * wf_scorer_from_rnnlm. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm_common.h"
#include "rnnlm_common.h"
#include "text_input.h"

typedef struct hypothesis {
  char *text; /* the line, which `words` points into; owned */
  double graph_cost, acoustic_cost, total;
  size_t first_word, num_words; /* in rescoring.words */
  size_t line; /* position in the input; hypotheses of equal cost keep their order */
} hypothesis;

typedef struct rescoring {
  wf_rnnlm *rnnlm;
  wf_rnnlm_info info;
  wf_lm *ngram, *small;
  wf_rnn_scorer_options options; /* the options of cache and memory are ignored */
  double acoustic_scale;
  bool best;
  int64_t threads;
  char *key;
  hypothesis *list;
  size_t size, room;
  char **words; /* of all hypotheses of the key; they point into the lines */
  size_t num_words, word_room;
  uint64_t line_number;
} rescoring;

static double log_add(double a, double b) {
  double low = a < b ? a : b, gap = fabs(a - b);
  return isinf(low) ? low : low - log1p(exp(-gap));
}

static double mix(const wf_rnn_scorer_options *o, double recurrent, double ngram) {
  double w = (double)o->rnnlm_weight;
  if (w == 1) return recurrent;
  if (w == 0) return ngram;
  return o->interpolation == WF_INTERPOLATION_LOG_LINEAR
             ? w * recurrent + (1 - w) * ngram
             : log_add(recurrent - log(w), ngram - log(1 - w));
}

/* Cost of word i of a hypothesis, or of the sentence end (i == num_words), by an n-gram model; 0 if
 * `lm` is NULL. */
static double ngram_cost(const wf_lm *lm, uint32_t *state, const rescoring *r, const hypothesis *h,
                         size_t i) {
  if (lm == NULL) return 0;
  if (i == h->num_words) return (double)wf_lm_final(lm, *state, NULL);
  return (double)wf_lm_step(lm, *state,
                            (int32_t)wf_symbols_find(wf_lm_words(lm), r->words[h->first_word + i]),
                            state, NULL);
}

/* Sets the costs of a hypothesis. `costs`: the recurrent model's costs of the words it knows and of
 * the sentence end. */
static void rescore_one(rescoring *r, hypothesis *h, const int32_t *ids, size_t num_known,
                        const float *costs) {
  const wf_rnn_scorer_options *o = &r->options;
  uint32_t ngram_state = r->ngram != NULL ? wf_lm_start(r->ngram) : 0,
           small_state = r->small != NULL ? wf_lm_start(r->small) : 0;
  double graph = h->graph_cost;
  size_t known = 0;
  for (size_t i = 0; i <= h->num_words; i++) {
    double recurrent = (double)o->unknown_cost;
    if (i == h->num_words)
      recurrent = (double)costs[num_known];
    else if (ids[i] >= 0)
      recurrent = (double)costs[r->info.reverse ? num_known - 1 - known : known], known++;
    double ngram = ngram_cost(r->ngram, &ngram_state, r, h, i),
           small = ngram_cost(r->small, &small_state, r, h, i);
    graph += (double)o->rnnlm_scale * mix(o, recurrent, ngram) - (double)o->small_scale * small;
  }
  h->graph_cost = isnan(graph) || graph == -INFINITY ? INFINITY : graph;
  h->total = h->graph_cost + r->acoustic_scale * h->acoustic_cost;
}

static int compare(const void *a, const void *b) {
  const hypothesis *x = a, *y = b;
  if (x->total != y->total) return x->total < y->total ? -1 : 1;
  return x->line < y->line ? -1 : 1;
}

static void print_list(const rescoring *r) {
  for (size_t i = 0; i < r->size && (i == 0 || !r->best); i++) {
    const hypothesis *h = &r->list[i];
    printf("%s", r->key);
    if (!r->best) printf(" %zu %.6f %.6f", i + 1, h->graph_cost, h->acoustic_cost);
    for (size_t w = 0; w < h->num_words; w++) printf(" %s", r->words[h->first_word + w]);
    printf("\n");
  }
}

/* Rescores, sorts and prints the hypotheses collected so far, which all have the same key. */
static int finish_key(rescoring *r) {
  if (r->size == 0) return CLI_OK;
  int32_t *ids = malloc((r->num_words + 1) * sizeof *ids),
          *known = malloc((r->num_words + 1) * sizeof *known);
  uint64_t *first = malloc((r->size + 1) * sizeof *first);
  float *costs = malloc((r->num_words + r->size) * sizeof *costs);
  int code = CLI_LIMIT;
  if (ids == NULL || known == NULL || first == NULL || costs == NULL) {
    cli_note("out of memory");
  } else {
    first[0] = 0;
    for (size_t i = 0; i < r->size; i++) {
      first[i + 1] = first[i];
      for (size_t w = r->list[i].first_word, end = w + r->list[i].num_words; w < end; w++)
        if ((ids[w] = wf_rnnlm_find(r->rnnlm, r->words[w])) >= 0) known[first[i + 1]++] = ids[w];
    }
    wf_error err;
    code = wf_rnnlm_score(r->rnnlm, known, first, r->size, (int)r->threads, costs, &err) == WF_OK
               ? CLI_OK
               : cli_fail(&err);
    for (size_t i = 0; i < r->size && code == CLI_OK; i++)
      rescore_one(r, &r->list[i], ids + r->list[i].first_word, first[i + 1] - first[i],
                  costs + first[i] + i);
  }
  if (code == CLI_OK) {
    qsort(r->list, r->size, sizeof *r->list, compare);
    print_list(r);
  }
  for (size_t i = 0; i < r->size; i++) free(r->list[i].text);
  r->size = r->num_words = 0;
  free(ids);
  free(known);
  free(first);
  free(costs);
  return code;
}

static bool number(char **rest, double *out) {
  char *field = strtok_r(NULL, " \t\r\n", rest), *end;
  if (field == NULL) return false;
  *out = strtod(field, &end);
  return *end == '\0' && isfinite(*out);
}

static bool add_word(rescoring *r, char *word) {
  if (r->num_words == r->word_room) {
    size_t room = r->word_room * 2 + 4096;
    char **words = realloc(r->words, room * sizeof *words);
    if (words == NULL) return false;
    r->words = words;
    r->word_room = room;
  }
  r->words[r->num_words++] = word;
  return true;
}

static bool add_hypothesis(rescoring *r, hypothesis h, char *rest) {
  if (r->size == r->room) {
    size_t room = r->room * 2 + 64;
    hypothesis *list = realloc(r->list, room * sizeof *list);
    if (list == NULL) return false;
    r->list = list;
    r->room = room;
  }
  h.line = r->size;
  h.first_word = r->num_words;
  for (char *word = strtok_r(NULL, " \t\r\n", &rest); word != NULL;
       word = strtok_r(NULL, " \t\r\n", &rest))
    if (!add_word(r, word)) return false;
  h.num_words = r->num_words - h.first_word;
  r->list[r->size++] = h;
  return true;
}

/* Adds the hypothesis in `line`, and owns `line` from then on. If its key is new, finishes the
 * previous key first. */
static int take_line(rescoring *r, const char *path, char *line) {
  char *rest = NULL, *key = strtok_r(line, " \t\r\n", &rest);
  hypothesis h = {.text = line};
  double rank;
  if (key == NULL) {
    free(line);
    return CLI_OK;
  }
  if (!number(&rest, &rank) || !number(&rest, &h.graph_cost) || !number(&rest, &h.acoustic_cost)) {
    cli_note("%s:%" PRIu64 ": expected 'KEY RANK GRAPH_COST ACOUSTIC_COST WORD...'", path,
             r->line_number);
    free(line);
    return CLI_INPUT;
  }
  int code = CLI_OK;
  if (r->key == NULL || strcmp(key, r->key) != 0) {
    code = finish_key(r);
    free(r->key);
    r->key = strdup(key);
  }
  if (code == CLI_OK && r->key != NULL && add_hypothesis(r, h, rest)) return CLI_OK;
  if (code == CLI_OK) cli_note("out of memory");
  free(line);
  return code == CLI_OK ? CLI_LIMIT : code;
}

static int rescore_file(rescoring *r, const char *path) {
  wf_error err = {0};
  cli_lines lines;
  int code = CLI_OK;
  wf_status status = cli_lines_open(&lines, path, &err);
  while (status == WF_OK && code == CLI_OK && cli_lines_next(&lines)) {
    r->line_number = lines.number;
    code = take_line(r, path, cli_lines_take(&lines));
  }
  status = cli_lines_close(&lines, status, &err);
  if (code == CLI_OK) code = status == WF_OK ? finish_key(r) : cli_fail(&err);
  for (size_t i = 0; i < r->size; i++) free(r->list[i].text);
  return code;
}

static int load_models(rescoring *r, const char *model, const char *unk, const char *device,
                       const char *ngram, const char *small) {
  lm_source source = {0};
  wf_error err;
  wf_arpa_options_init(&source.options);
  int code = rnnlm_load(model, unk, device, &r->rnnlm);
  wf_rnnlm_info_init(&r->info);
  if (code == CLI_OK && wf_rnnlm_get_info(r->rnnlm, &r->info, &err) != WF_OK) code = cli_fail(&err);
  if (code == CLI_OK && small != NULL) code = lm_load(small, &source, &r->small, NULL);
  if (code == CLI_OK && ngram != NULL) code = lm_load(ngram, &source, &r->ngram, NULL);
  if (code == CLI_OK && ngram == NULL && r->small != NULL) r->ngram = wf_lm_ref(r->small);
  return code;
}

static const cli_rule rules[] = {
    {"interpolation", CLI_USELESS_WITHOUT, "rnnlm-weight"},
    {"small-scale", CLI_USELESS_WITHOUT, "small"},
    {NULL, 0, NULL},
};

int cmd_rnnlm_rescore(int argc, char **argv) {
  const char *unk = NULL, *device = NULL, *ngram = NULL, *small = NULL;
  rescoring r = {.acoustic_scale = 1, .threads = 1};
  cli_parser parser = {
      .usage = "MODEL [NBEST]",
      .about =
          "Rescores n-best lists and sorts them. NBEST (default: standard input) has lines 'KEY "
          "RANK GRAPH_COST ACOUSTIC_COST "
          "WORD...', in which lines of a key are adjacent.\nThe output has the same format, with "
          "new "
          "ranks and graph costs. For each word, rnnlm-scale times its cost by the new model is "
          "added, "
          "and\nsmall-scale times its cost by --small, the model that is in the graph costs, is "
          "subtracted.\n"
          "With --rnnlm-weight=W below 1 the recurrent model is "
          "interpolated with --ngram (default: --small), word by word:\n"
          "    log_linear   cost = W * (recurrent cost) + (1 - W) * (n-gram cost)\n"
          "    linear       probability = W * (recurrent probability) + (1 - W) * (n-gram "
          "probability)\n"
          "Example:\n"
          "    warpfst rnnlm rescore lm nbest.txt --small=bigram.arpa --rnnlm-weight=0.5 --best > "
          "hyp.txt",
      .min_args = 1,
      .max_args = 2};
  cli_flag_str(&parser, "ngram", 0, &ngram, "FILE", "n-gram model to interpolate with");
  cli_flag_str(&parser, "small", 0, &small, "FILE",
               "n-gram model that is in the graph costs; its costs are subtracted");
  cli_flag_str(&parser, "unk", 0, &unk, "WORD",
               "word of the recurrent model that replaces unknown words (default: <unk> in "
               "safetensors models, else none)");
  cli_flag_bool(&parser, "best", 0, &r.best,
                "print only the best hypothesis of each key, as 'KEY WORD...'");
  cli_flag_f64(&parser, "acoustic-scale", 0, &r.acoustic_scale, "X",
               "factor on acoustic costs (default: 1)");
  cli_flag_i64(&parser, "threads", 't', &r.threads, "N",
               "number of threads; 0: one per processor (default: 1)");
  cli_flag_range(&parser, "threads", 0, 1024);
  cli_flag_str(&parser, "device", 0, &device, "DEVICE",
               "device of the recurrent model: cpu, cuda or cuda:N (default: cpu)");
  cli_table(&parser, "rnn_scorer", &r.options);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (r.options.rnnlm_weight < 1 && ngram == NULL && small == NULL)
    return cli_usage("--rnnlm-weight below 1 needs --ngram or --small");
  if (r.options.history_merge_order != 0)
    return cli_usage("--history-merge-order cannot be used here: whole sentences are scored");
  code = load_models(&r, parser.args[0], unk, device, ngram, small);
  if (code == CLI_OK) code = rescore_file(&r, parser.num_args > 1 ? parser.args[1] : "-");
  wf_rnnlm_free(r.rnnlm);
  wf_lm_free(r.ngram);
  wf_lm_free(r.small);
  free(r.key);
  free(r.list);
  free(r.words);
  return code;
}
