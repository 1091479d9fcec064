/* cmd_mkgraph.c - `warpfst mkgraph`, and `mkgraph ctc`: builds a decoding graph from tokens,
 * lexicon and language model, and reports each step when it ends. */
#include <stdlib.h>
#include <string.h>

#include "fst_output.h"
#include "mkgraph_hmm.h"
#include "parts.h"
#include "step_report.h"

#define UNKNOWN "<unk>" /* the word for which --unknown-lm spells others */

struct request {
  const char *tokens, *lexicon, *lm, *grammar, *phrases, *words, *words_out, *keep_steps, *output,
      *format;
  const char *unknown_lm;
  double unknown_lm_scale, unknown_cost;
  bool json, quiet;
  wf_lexicon_options lexicon_options;
  wf_arpa_options arpa_options;
  wf_ctc_graph_options graph_options;
};

struct parts {
  wf_symbols *tokens, *words;
  wf_lexicon *lexicon;
  wf_lm *lm;
  wf_fst *grammar;
  wf_arpa_stats arpa_stats;
  wf_ctc_graph_result result;
};

static const char *topology_name(int32_t asked, const cli_steps *steps) {
  static const char *const names[] = {"correct", "compact",    "minimal",
                                      "eesen",   "transducer", "auto"};
  for (size_t i = 0; i < steps->num_rows; i++)
    if (steps->rows[i].step.topology >= 0) asked = steps->rows[i].step.topology;
  return names[asked];
}

static void print_lexicon_json(const struct parts *parts) {
  printf(
      ", \"lexicon\": {\"entries\": %zu, \"skipped\": %zu, \"repeated\": %zu, \"words_not_in_lm\": "
      "%llu}",
      wf_lexicon_count(parts->lexicon), wf_lexicon_num_skipped(parts->lexicon),
      wf_lexicon_num_repeated(parts->lexicon),
      (unsigned long long)parts->result.lexicon_words_missing);
  printf(", \"lm\": {\"words_not_in_lexicon\": %llu, \"ngrams_skipped\": %llu}",
         (unsigned long long)(parts->result.lm_words_missing + parts->arpa_stats.num_oov_words),
         (unsigned long long)parts->arpa_stats.num_oov_skipped);
}

static void print_json(const struct request *request, const cli_steps *steps,
                       const struct parts *parts) {
  printf("{\"output\": ");
  cli_json_string(stdout, request->output);
  printf(", \"topology\": \"%s\", \"seconds\": %.6f, \"peak_bytes\": %llu",
         topology_name(request->graph_options.topology, steps), cli_now_s() - steps->begin_s,
         (unsigned long long)cli_peak_bytes());
  if (parts->lexicon != NULL) print_lexicon_json(parts);
  printf(", ");
  cli_steps_json(steps);
  printf("}\n");
}

static void print_missing(const struct parts *parts) {
  const wf_ctc_graph_result *result = &parts->result;
  uint64_t not_spoken = result->lm_words_missing + parts->arpa_stats.num_oov_words;
  const char *g = parts->lm != NULL ? "LM" : parts->grammar != NULL ? "grammar" : "word list";
  if (wf_lexicon_num_skipped(parts->lexicon) != 0)
    fprintf(stderr, "words skipped because of unknown tokens: %zu\n",
            wf_lexicon_num_skipped(parts->lexicon));
  if (not_spoken != 0)
    fprintf(stderr, "words of the %s that the lexicon lacks: %llu\n", g,
            (unsigned long long)not_spoken);
  if (result->lexicon_words_missing != 0)
    fprintf(stderr, "words of the lexicon that the %s lacks: %llu\n", g,
            (unsigned long long)result->lexicon_words_missing);
}

static void print_end(const struct request *request, const cli_steps *steps,
                      const struct parts *parts) {
  if (request->json) print_json(request, steps, parts);
  if (request->quiet) return;
  cli_progress_end();
  if (parts->lexicon != NULL) print_missing(parts);
  cli_steps_end(steps, request->output, parts->result.graph);
}

/* --- building ---------------------------------------------------------------------------- */

static wf_status read_lm(const struct request *request, struct parts *parts,
                         const wf_progress *progress, wf_error *err) {
  if (request->phrases != NULL)
    return wf_grammar_read_phrases(request->phrases, parts->words, &parts->grammar, err);
  if (request->grammar != NULL)
    return wf_grammar_read(request->grammar, parts->words, &parts->grammar, err);
  if (request->lm == NULL) return WF_OK;
  return wf_lm_open(request->lm, parts->words, &request->arpa_options, &parts->lm,
                    &parts->arpa_stats, progress, err);
}

/* Adds the classes (separated by commas) to the words. A class is a word of the LM that is not in
 * the lexicon. */
static wf_status add_classes(const char *classes, wf_symbols *words, wf_error *err) {
  wf_status status = WF_OK;
  char name[1024];
  for (const char *at = classes; at != NULL && *at != '\0' && status == WF_OK;) {
    size_t size = strcspn(at, ",");
    snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name - 1), at);
    status = wf_symbols_add(words, name, wf_symbols_find(words, name), NULL, err);
    at += size + (at[size] == ',');
  }
  return status;
}

/* With a lexicon and without --words, the LM is read with the words of the lexicon as its word
 * table. Without a lexicon, the words of the LM, or those of --words, are spelled with the tokens. */
static wf_status read_parts(const struct request *request, struct parts *parts,
                            const wf_progress *progress, wf_error *err) {
  wf_status status = wf_symbols_read(request->tokens, &parts->tokens, err);
  if (status == WF_OK && request->words != NULL)
    status = wf_symbols_read(request->words, &parts->words, err);
  if (status != WF_OK) return status;
  if (request->lexicon != NULL) {
    status = wf_lexicon_read(request->lexicon, parts->tokens, &request->lexicon_options,
                             &parts->lexicon, err);
    if (status == WF_OK && parts->words == NULL && request->lm != NULL)
      status = wf_lexicon_words(parts->lexicon, &parts->words, err);
    if (status == WF_OK && request->words == NULL && parts->words != NULL)
      status = add_classes(request->graph_options.classes, parts->words, err);
    return status == WF_OK ? read_lm(request, parts, progress, err) : status;
  }
  status = read_lm(request, parts, progress, err);
  if (status != WF_OK) return status;
  const wf_symbols *words = parts->words;
  if (words == NULL)
    words = parts->lm != NULL ? wf_lm_words(parts->lm) : wf_fst_osymbols(parts->grammar);
  return wf_lexicon_spell(words, parts->tokens, &request->lexicon_options, &parts->lexicon, err);
}

/* Without words: a graph whose words are the tokens. */
static wf_status build_of_tokens(const struct request *request, struct parts *parts,
                                 wf_error *err) {
  wf_topology_options o;
  wf_topology_options_init(&o);
  o.type = request->graph_options.topology;
  wf_status status = wf_symbols_read(request->tokens, &parts->tokens, err);
  if (status == WF_OK)
    status = wf_ctc_tokens_graph(parts->tokens, request->lexicon_options.blank, &o,
                                 &parts->result.graph, err);
  if (status == WF_OK && request->words_out != NULL)
    status = wf_symbols_write(wf_fst_osymbols(parts->result.graph), request->words_out, err);
  return status;
}

/* Lets <unk> stand for every word that the tokens can spell. The graph's word table gets their
 * names. */
static wf_status spell_unknown(const struct request *request, struct parts *parts, wf_error *err) {
  wf_graph *graph, *spelled = NULL;
  wf_lm *lm = NULL;
  wf_fst *fst = NULL;
  wf_status status = wf_graph_create(parts->result.graph, NULL, 0, &graph, err);
  if (status != WF_OK) return status;
  status = wf_lm_open(request->unknown_lm, NULL, &request->arpa_options, &lm, NULL, NULL, err);
  if (status == WF_OK)
    status =
        wf_graph_add_spelling(graph, UNKNOWN, lm, (float)request->unknown_lm_scale,
                              (float)request->unknown_cost, parts->result.words, &spelled, err);
  if (status == WF_OK) status = wf_graph_to_fst(spelled, &fst, err);
  if (status == WF_OK) {
    wf_fst_free(parts->result.graph);
    parts->result.graph = fst;
  }
  wf_graph_free(spelled);
  wf_graph_free(graph);
  wf_lm_free(lm);
  return status;
}

static wf_status build(const struct request *request, cli_steps *steps, struct parts *parts,
                       wf_error *err) {
  if (request->lexicon == NULL && request->lm == NULL && request->grammar == NULL &&
      request->phrases == NULL && request->words == NULL)
    return build_of_tokens(request, parts, err);
  wf_ctc_graph_parts of;
  wf_ctc_graph_parts_init(&of);
  of.progress = cli_progress(request->quiet);
  wf_status status = read_parts(request, parts, &of.progress, err);
  if (status != WF_OK) return status;
  of.lexicon = parts->lexicon;
  of.lm = parts->lm;
  of.grammar = parts->grammar;
  of.words = parts->words;
  of.step_fn = cli_on_step;
  of.step_user = steps;
  of.copy_steps = request->keep_steps != NULL;
  status = wf_ctc_graph_build(&of, &request->graph_options, &parts->result, err);
  if (status == WF_OK && request->unknown_lm != NULL) status = spell_unknown(request, parts, err);
  if (status != WF_OK) return status;
  if (request->keep_steps != NULL)
    status = wf_symbols_write(parts->result.words, cli_step_path(steps, "words.txt"), err);
  if (status == WF_OK && request->words_out != NULL)
    status = wf_symbols_write(parts->result.words, request->words_out, err);
  return status;
}

static void free_parts(struct parts *parts) {
  wf_ctc_graph_result_free(&parts->result);
  wf_fst_free(parts->grammar);
  wf_lm_free(parts->lm);
  wf_lexicon_free(parts->lexicon);
  wf_symbols_free(parts->words);
  wf_symbols_free(parts->tokens);
}

static int run(const struct request *request) {
  cli_steps steps = {.quiet = request->quiet, .keep_steps = request->keep_steps};
  struct parts parts = {0};
  wf_error err;
  wf_arpa_stats_init(&parts.arpa_stats);
  cli_steps_begin(&steps);
  int code = CLI_OK;
  if (build(request, &steps, &parts, &err) != WF_OK)
    code = steps.code != CLI_OK ? steps.code : cli_fail(&err);
  else
    code = cli_write_fst(parts.result.graph, request->output, request->format);
  if (code == CLI_OK) print_end(request, &steps, &parts);
  free_parts(&parts);
  return code;
}

/* --- the command line -------------------------------------------------------------------- */

static const cli_rule rules[] = {
    {"lm", CLI_EXCLUDES, "grammar"},
    {"phrases", CLI_EXCLUDES, "lm|grammar"},
    {"arpa", CLI_USELESS_WITHOUT, "lm"},
    {"lexicon-format", CLI_USELESS_WITHOUT, "lexicon"},
    {"spelling", CLI_USELESS_WITH, "lexicon"},
    {"word-start", CLI_USELESS_WITH, "lexicon"},
    {"merges", CLI_USELESS_WITH, "lexicon"},
    {"silence-prob", CLI_USELESS_WITHOUT, "silence"},
    {"unknown-lm-scale", CLI_USELESS_WITHOUT, "unknown-lm"},
    {"unknown-cost", CLI_USELESS_WITHOUT, "unknown-lm"},
    {"unknown-lm", CLI_NEEDS, "lexicon|lm|grammar|phrases|words"},
    {"classes", CLI_NEEDS, "lexicon|lm|grammar|phrases|words"},
    {"silence", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"spelling", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"merges", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"word-start", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"keep-steps", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {NULL, 0, NULL},
};

static void add_flags(cli_parser *parser, struct request *request) {
  cli_flag_str(parser, "tokens", 0, &request->tokens, "FILE",
               "token table, lines `token column` (required)");
  cli_flag_str(parser, "lexicon", 0, &request->lexicon, "FILE",
               "Kaldi's lexicon.txt or lexiconp.txt (default: spell the words of the LM, or of "
               "--words, with "
               "the tokens)");
  cli_flag_str(
      parser, "lm", 0, &request->lm, "FILE",
      "n-gram model: ARPA, plain or gzipped, a binary file of CMU Sphinx or KenLM (trie), or .wlm "
      "(default, without --grammar and --phrases: every sequence of words at the same cost)");
  cli_flag_str(parser, "grammar", 0, &request->grammar, "FILE",
               "instead of --lm: a grammar in JSGF, or an fst over words");
  cli_flag_str(parser, "phrases", 0, &request->phrases, "FILE",
               "instead of --lm: sentences, one in each line; one of them is said");
  cli_flag_str(
      parser, "words", 0, &request->words, "FILE",
      "word table, lines `word id` (default: made from the lexicon; without one, that of the LM or "
      "of the grammar)");
  cli_flag_str(parser, "words-out", 0, &request->words_out, "FILE",
               "write the graph's word table (also stored in the graph)");
  cli_flag_str(
      parser, "unknown-lm", 0, &request->unknown_lm, "FILE",
      "n-gram model over tokens whose sentences are words: where --lm allows <unk>, any "
      "word is recognized that the tokens can spell (decode --join; topology correct, compact or "
      "transducer)");
  cli_flag_f64(parser, "unknown-lm-scale", 0, &request->unknown_lm_scale, "FACTOR",
               "factor on the costs of --unknown-lm (default: 1)");
  cli_flag_f64(parser, "unknown-cost", 0, &request->unknown_cost, "NATS",
               "for each word that --unknown-lm spells, besides its cost there and that of <unk>; "
               "less than 0 for more such words (default: 0)");
  cli_flag_str(
      parser, "keep-steps", 0, &request->keep_steps, "FOLDER",
      "write the result of each step to this folder: L.fst, G.fst, LG.fst, ..., and words.txt");
  cli_flag_bool(parser, "json", 0, &request->json,
                "print sizes and times as JSON on standard output");
  cli_flag_bool(parser, "quiet", 'q', &request->quiet,
                "do not print the table of steps or the progress bar");
  cli_flag_output(parser, &request->output, &request->format);
  cli_table(parser, "ctc_graph", &request->graph_options);
  cli_table(parser, "lexicon", &request->lexicon_options);
  cli_table(parser, "arpa", &request->arpa_options);
  cli_flag_range(parser, "unknown-lm-scale", 1e-6, 1e6);
  cli_flag_range(parser, "unknown-cost", -1e6, 1e6);
  cli_rules(parser, rules);
}

static int mkgraph_ctc(int argc, char **argv) {
  struct request request = {.unknown_lm_scale = 1};
  cli_parser parser = {
      .usage = "--tokens=tokens.txt [--lexicon=lexicon.txt] [--lm=lm.arpa.gz] -o graph.wfst",
      .about =
          "Builds a decoding graph for CTC: min(det(L o G)), and with a --topology other than "
          "correct T o min(det(L o G)). Input labels are columns of the scores + 1; output labels "
          "are words. Without --lm, --grammar and --phrases, every sequence of words is allowed. "
          "With --tokens "
          "alone, the tokens are the words, for a language model over tokens (decode --lm).\n"
          "Examples:\n"
          "  warpfst mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt -o graph.wfst\n"
          "  warpfst mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --lm=lm.arpa.gz "
          "-o graph.wfst"};
  add_flags(&parser, &request);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (request.tokens == NULL) return cli_usage("--tokens is required");
  if (request.unknown_lm != NULL && request.graph_options.classes == NULL)
    request.graph_options.classes = UNKNOWN;
  if (request.output == NULL) return cli_usage("-o is required");
  if (request.json && strcmp(request.output, "-") == 0)
    return cli_usage("the graph and --json cannot both go to standard output");
  return run(&request);
}

int cmd_mkgraph(int argc, char **argv) {
  static const cli_part parts[] = {
      {"mkgraph ctc", "for CTC models", mkgraph_ctc},
      {"mkgraph hmm", "for hybrid HMM models of Kaldi and CMU Sphinx", mkgraph_hmm},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART [FLAGS] -o GRAPH",
                      "Builds decoding graphs.", argc, argv);
}
