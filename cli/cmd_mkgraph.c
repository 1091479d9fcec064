/* cmd_mkgraph.c - `warpfst mkgraph`: builds a decoding graph from tokens or an acoustic model,
 * lexicon and language model, and reports each step when it ends. */
#include <stdlib.h>
#include <string.h>

#include "am_model.h"
#include "fst_output.h"
#include "parts.h"
#include "step_report.h"

#define UNKNOWN "<unk>" /* the word for which --unknown-lm spells others */

struct request {
  wf_graph_kind kind;
  am_source am;
  const char *tokens, *lexicon, *lexicon_fst, *lm, *grammar, *phrases, *words, *words_out,
      *columns_out, *keep_steps, *output, *format;
  const char *unknown_lm;
  double unknown_lm_scale, unknown_cost;
  bool json, quiet;
  wf_lexicon_options lexicon_options;
  wf_arpa_options arpa_options;
  wf_graph_options graph_options;
};

struct parts {
  wf_hmm *hmm;
  wf_symbols *tokens, *words;
  wf_lexicon *lexicon;
  wf_lm *lm;
  wf_fst *grammar, *lexicon_fst;
  wf_arpa_stats arpa_stats;
  wf_graph_result result;
};

/* --- reports ----------------------------------------------------------------------------- */

/* Something unusual that is counted and reported: its JSON key, its text, and the names that
 * occurred. */
struct notice {
  const char *name;
  char text[96];
  const wf_tally *tally;
};
enum { NUM_NOTICES = 5 };

static void list_notices(struct parts *parts, struct notice notices[NUM_NOTICES]) {
  wf_graph_result *result = &parts->result;
  const char *g = parts->lm != NULL ? "LM" : parts->grammar != NULL ? "grammar" : "word list";
  result->lm_words_missing.count += parts->arpa_stats.num_oov_words; /* the reader named them */
  parts->arpa_stats.num_oov_words = 0;
  notices[0] = (struct notice){
      "lexicon_skipped", "words skipped because of unknown tokens",
      parts->lexicon != NULL ? wf_lexicon_skipped(parts->lexicon) : &result->words_not_spelled};
  notices[1] = (struct notice){"lm_words_missing", "", &result->lm_words_missing};
  snprintf(notices[1].text, sizeof notices[1].text, "words of the %s that the lexicon lacks", g);
  notices[2] = (struct notice){"lexicon_words_missing", "", &result->lexicon_words_missing};
  snprintf(notices[2].text, sizeof notices[2].text, "words of the lexicon that the %s lacks", g);
  notices[3] = (struct notice){
      "hmm_substituted",
      "phones in a context that the model lacks, replaced by the HMM of another context",
      &result->hmm_substituted};
  notices[4] = (struct notice){"hmm_dropped", "phones in a context that the model lacks, dropped",
                               &result->hmm_dropped};
}

static size_t num_names(const wf_tally *tally) {
  size_t count = 0;
  while (count < WF_TALLY_NAMES && tally->names[count] != NULL) count++;
  return count;
}

/* The count, and as many names as fit on a line of 100 columns. */
static void print_notice_line(const struct notice *notice) {
  enum { COLUMNS = 100 };
  const size_t count = num_names(notice->tally);
  size_t shown = 0;
  if (notice->tally->count == 0) return;
  int used = fprintf(stderr, "%s: %llu", notice->text, (unsigned long long)notice->tally->count);
  for (; shown < count; shown++) {
    const char *name = notice->tally->names[shown];
    if (shown > 0 && used + (int)strlen(name) + (int)sizeof ", , ...)" > COLUMNS) break;
    used += fprintf(stderr, "%s%s", shown > 0 ? ", " : " (", name);
  }
  if (shown > 0) fprintf(stderr, "%s)", notice->tally->count > shown ? ", ..." : "");
  fprintf(stderr, "\n");
}

static void print_notice_json(const struct notice *notice) {
  const size_t count = num_names(notice->tally);
  printf("\"%s\": {\"count\": %llu, \"first\": [", notice->name,
         (unsigned long long)notice->tally->count);
  for (size_t i = 0; i < count; i++) {
    if (i != 0) printf(", ");
    cli_json_string(stdout, notice->tally->names[i]);
  }
  printf("]}, ");
}

static void print_json(const struct request *request, const cli_steps *steps,
                       const struct parts *parts, const struct notice notices[NUM_NOTICES]) {
  static const char *const kinds[] = {"ctc", "hmm", "tokens"}, *const topologies[] = {
                                                                   "correct",    "compact",
                                                                   "minimal",    "eesen",
                                                                   "transducer", "auto"};
  printf("{\"output\": ");
  cli_json_string(stdout, request->output);
  printf(", \"kind\": \"%s\"", kinds[request->graph_options.kind]);
  if (request->kind == WF_GRAPH_CTC)
    printf(", \"topology\": \"%s\"", topologies[parts->result.topology]);
  printf(", \"seconds\": %.6f, \"peak_bytes\": %llu, \"lm_ngrams_skipped\": %llu, ",
         cli_now_s() - steps->begin_s, (unsigned long long)cli_peak_bytes(),
         (unsigned long long)parts->arpa_stats.num_oov_skipped);
  for (int i = 0; i < NUM_NOTICES; i++) print_notice_json(&notices[i]);
  cli_steps_json(steps);
  printf("}\n");
}

static void print_end(const struct request *request, const cli_steps *steps, struct parts *parts) {
  struct notice notices[NUM_NOTICES];
  list_notices(parts, notices);
  if (request->json) print_json(request, steps, parts, notices);
  if (request->quiet) return;
  cli_progress_end();
  for (int i = 0; i < NUM_NOTICES; i++) print_notice_line(&notices[i]);
  cli_steps_end(steps, request->output, parts->result.graph);
}

/* --- building ---------------------------------------------------------------------------- */

/* Words written as text get the labels of --words or of --lexicon-fst. With an L without a table and
 * without --words they have none: an empty table says so. */
static wf_status read_grammar(const struct request *request, struct parts *parts, wf_error *err) {
  const wf_symbols *words = parts->words;
  wf_symbols *none = NULL;
  wf_status status = WF_OK;
  if (words == NULL && parts->lexicon_fst != NULL) words = wf_fst_osymbols(parts->lexicon_fst);
  if (words == NULL && parts->lexicon_fst != NULL)
    status = wf_symbols_create("of --words, which is not given", &none, err);
  if (none != NULL) words = none;
  if (status == WF_OK)
    status = request->phrases != NULL
                 ? wf_grammar_read_phrases(request->phrases, words, &parts->grammar, err)
                 : wf_grammar_read(request->grammar, words, &parts->grammar, err);
  wf_symbols_free(none);
  return status;
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

/* In CTC, an LM is read with the words of the lexicon as its word table, unless --words is given.
 * With --garbage, the LM's <unk> is one of them. */
static wf_status take_words(const struct request *request, struct parts *parts, wf_error *err) {
  if (request->kind != WF_GRAPH_CTC || parts->lexicon == NULL || request->lm == NULL ||
      parts->words != NULL)
    return WF_OK;
  wf_status status = wf_lexicon_words(parts->lexicon, &parts->words, err);
  if (status == WF_OK && request->graph_options.garbage >= 0)
    status =
        wf_symbols_add(parts->words, "<unk>", wf_symbols_find(parts->words, "<unk>"), NULL, err);
  return status == WF_OK ? add_classes(request->graph_options.classes, parts->words, err) : status;
}

static wf_status read_parts(const struct request *request, struct parts *parts,
                            const wf_progress *progress, wf_error *err) {
  const bool hmm = request->kind == WF_GRAPH_HMM;
  wf_status status = hmm ? am_read(&request->am, true, &parts->hmm, err)
                         : wf_symbols_read(request->tokens, &parts->tokens, err);
  if (status == WF_OK && request->words != NULL)
    status = wf_symbols_read(request->words, &parts->words, err);
  if (status == WF_OK && request->lexicon_fst != NULL)
    status = wf_fst_read(request->lexicon_fst, &parts->lexicon_fst, err);
  if (status == WF_OK && request->lexicon != NULL)
    status = wf_lexicon_read(request->lexicon, hmm ? wf_hmm_phones(parts->hmm) : parts->tokens,
                             &request->lexicon_options, &parts->lexicon, err);
  if (status == WF_OK) status = take_words(request, parts, err);
  if (status == WF_OK && (request->grammar != NULL || request->phrases != NULL))
    status = read_grammar(request, parts, err);
  if (status == WF_OK && request->lm != NULL)
    status = wf_lm_open(request->lm, parts->words, &request->arpa_options, &parts->lm,
                        &parts->arpa_stats, progress, err);
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
  wf_graph_inputs in;
  wf_graph_inputs_init(&in);
  in.progress = cli_progress(request->quiet);
  wf_status status = read_parts(request, parts, &in.progress, err);
  if (status != WF_OK) return status;
  in.tokens = parts->tokens;
  in.hmm = parts->hmm;
  in.lexicon = parts->lexicon;
  in.lexicon_options = &request->lexicon_options;
  in.lexicon_fst = parts->lexicon_fst;
  in.lm = parts->lm;
  in.grammar = parts->grammar;
  in.words = parts->words;
  in.step_fn = cli_on_step;
  in.step_user = steps;
  in.copy_steps = request->keep_steps != NULL;
  status = wf_graph_build(&in, &request->graph_options, &parts->result, err);
  if (status == WF_OK && request->unknown_lm != NULL) status = spell_unknown(request, parts, err);
  if (status != WF_OK) return status;
  if (request->keep_steps != NULL)
    status = wf_symbols_write(parts->result.words, cli_step_path(steps, "words.txt"), err);
  if (status == WF_OK && request->words_out != NULL)
    status = wf_symbols_write(parts->result.words, request->words_out, err);
  return status;
}

/* Writes the column table if --columns-out is given or if the decoder needs one, which then is
 * GRAPH.columns. */
static int write_table(const struct request *request, const struct parts *parts) {
  char beside[4096];
  wf_hmm_info info;
  wf_error err;
  if (parts->hmm == NULL) return CLI_OK;
  wf_hmm_info_init(&info);
  if (wf_hmm_get_info(parts->hmm, &info, &err) != WF_OK) return cli_fail(&err);
  if (request->columns_out != NULL) return am_write_columns(parts->hmm, request->columns_out);
  if (info.identity) return CLI_OK;
  if (strcmp(request->output, "-") == 0)
    return cli_usage(
        "--columns-out is required when the graph goes to standard output, because the model's "
        "labels are not column + 1");
  snprintf(beside, sizeof beside, "%s.columns", request->output);
  if (!request->quiet)
    cli_note("%s holds the columns of the labels; `warpfst decode` reads it with the graph",
             beside);
  return am_write_columns(parts->hmm, beside);
}

static void free_parts(struct parts *parts) {
  wf_graph_result_clear(&parts->result);
  wf_fst_free(parts->grammar);
  wf_fst_free(parts->lexicon_fst);
  wf_lm_free(parts->lm);
  wf_lexicon_free(parts->lexicon);
  wf_symbols_free(parts->words);
  wf_symbols_free(parts->tokens);
  wf_hmm_free(parts->hmm);
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
    code = write_table(request, &parts);
  if (code == CLI_OK) code = cli_write_fst(parts.result.graph, request->output, request->format);
  if (code == CLI_OK) print_end(request, &steps, &parts);
  free_parts(&parts);
  return code;
}

/* --- the command line -------------------------------------------------------------------- */

static const cli_rule rules[] = {
    {"lm", CLI_EXCLUDES, "grammar"},
    {"phrases", CLI_EXCLUDES, "lm|grammar"},
    {"arpa", CLI_USELESS_WITHOUT, "lm"},
    {NULL, 0, NULL},
};

static const cli_rule ctc_rules[] = {
    {"lexicon-format", CLI_USELESS_WITHOUT, "lexicon"},
    {"spelling", CLI_USELESS_WITH, "lexicon"},
    {"word-start", CLI_USELESS_WITH, "lexicon"},
    {"merges", CLI_USELESS_WITH, "lexicon"},
    {"silence-prob", CLI_USELESS_WITHOUT, "silence"},
    {"unknown-lm-scale", CLI_USELESS_WITHOUT, "unknown-lm"},
    {"unknown-cost", CLI_USELESS_WITHOUT, "unknown-lm"},
    {"unknown-lm", CLI_NEEDS, "lexicon|lm|grammar|phrases|words"},
    {"classes", CLI_NEEDS, "lexicon|lm|grammar|phrases|words"},
    {"garbage", CLI_NEEDS, "lm|grammar|phrases"},
    {"silence", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"spelling", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"merges", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {"word-start", CLI_USELESS_WITHOUT, "lexicon|lm|grammar|phrases|words"},
    {NULL, 0, NULL},
};

static const cli_rule hmm_rules[] = {
    {"lexicon", CLI_EXCLUDES, "lexicon-fst"},        {"spelling", CLI_USELESS_WITH, "am"},
    {"word-start", CLI_USELESS_WITH, "am"},          {"merges", CLI_USELESS_WITH, "am"},
    {"filler-prob", CLI_USELESS_WITHOUT, "fillers"}, {NULL, 0, NULL},
};

static void add_unknown_flags(cli_parser *parser, struct request *request) {
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
  cli_flag_range(parser, "unknown-lm-scale", 1e-6, 1e6);
  cli_flag_range(parser, "unknown-cost", -1e6, 1e6);
}

/* The flags that say what the graph is made of. */
static void add_input_flags(cli_parser *parser, struct request *request) {
  const bool hmm = request->kind == WF_GRAPH_HMM;
  if (hmm) {
    cli_flag_str(parser, "am", 0, &request->am.path, "MODEL",
                 "acoustic model: a model folder of CMU Sphinx (mdef, transition_matrices, "
                 "noisedict), Kaldi's final.mdl, or the folder that contains it (required)");
    am_flags(parser, &request->am);
  } else {
    cli_flag_str(parser, "tokens", 0, &request->tokens, "FILE",
                 "token table, lines `token column` (required)");
  }
  cli_flag_str(
      parser, "lexicon", 0, &request->lexicon, "FILE",
      hmm ? "pronunciation dictionary in the model's phones: Kaldi's lexicon.txt, lexiconp.txt or "
            "lexiconp_silprob.txt, or one of CMU or of the Montreal Forced Aligner"
          : "Kaldi's lexicon.txt, lexiconp.txt or lexiconp_silprob.txt, or a dictionary of the "
            "Montreal Forced Aligner (default: spell the words of the LM, or of --words, with the "
            "tokens)");
  if (hmm)
    cli_flag_str(parser, "lexicon-fst", 0, &request->lexicon_fst, "FILE",
                 "Kaldi: instead of --lexicon, an L made by Kaldi (default: LANG/L_disambig.fst)");
  cli_flag_str(
      parser, "lm", 0, &request->lm, "FILE",
      "n-gram model: ARPA, plain or gzipped, a binary file of CMU Sphinx (en-us.lm.bin) or KenLM "
      "(trie), or a .wlm file (default, without --grammar and --phrases: every sequence of words "
      "of "
      "--lexicon or --words at the same cost)");
  cli_flag_str(parser, "grammar", 0, &request->grammar, "FILE",
               hmm ? "instead of --lm: a grammar in JSGF, or an fst over words (Kaldi's default: "
                     "LANG/G.fst)"
                   : "instead of --lm: a grammar in JSGF, or an fst over words");
  cli_flag_str(parser, "phrases", 0, &request->phrases, "FILE",
               "instead of --lm: sentences, one in each line; one of them is said");
  cli_flag_str(
      parser, "words", 0, &request->words, "FILE",
      hmm ? "word table (default: LANG/words.txt if lexicon or grammar come from LANG or "
            "--lexicon-fst is given; else that of the LM or of the grammar)"
          : "word table, lines `word id` (default: made from the lexicon; without one, that of the "
            "LM or of the grammar)");
}

static void add_flags(cli_parser *parser, struct request *request) {
  const bool hmm = request->kind == WF_GRAPH_HMM;
  add_input_flags(parser, request);
  cli_flag_str(parser, "words-out", 0, &request->words_out, "FILE",
               "write the graph's word table (also stored in the graph)");
  if (hmm)
    cli_flag_str(parser, "columns-out", 0, &request->columns_out, "FILE",
                 "write `label column` lines to this file (default: OUTPUT.columns, unless all "
                 "columns are label - 1)");
  else
    add_unknown_flags(parser, request);
  cli_flag_str(parser, "keep-steps", 0, &request->keep_steps, "FOLDER",
               "write the result of each step to this folder: L.fst, G.fst, LG.fst, ..., and "
               "words.txt");
  cli_flag_bool(parser, "json", 0, &request->json,
                "print sizes and times as JSON on standard output");
  cli_flag_bool(parser, "quiet", 'q', &request->quiet,
                "do not print the table of steps or the progress bar");
  cli_flag_output(parser, &request->output, &request->format);
  cli_table(parser, hmm ? "hmm_graph" : "ctc_graph", &request->graph_options);
  cli_table(parser, "lexicon", &request->lexicon_options);
  cli_table(parser, "arpa", &request->arpa_options);
  cli_rules(parser, rules);
  cli_rules(parser, hmm ? hmm_rules : ctc_rules);
  request->graph_options.kind = (int32_t)request->kind;
  if (!hmm) return;
  request->lexicon_options.blank = "";
  request->lexicon_options.variants = true;
}

/* What both kinds check when their own checks are done. */
static int check_and_run(const struct request *request) {
  if (request->output == NULL) return cli_usage("-o is required");
  if (request->json && strcmp(request->output, "-") == 0)
    return cli_usage("the graph and --json cannot both go to standard output");
  return run(request);
}

static bool has_g(const struct request *request) {
  return request->lm != NULL || request->grammar != NULL || request->phrases != NULL;
}

static int mkgraph_ctc(int argc, char **argv) {
  struct request request = {.kind = WF_GRAPH_CTC, .unknown_lm_scale = 1};
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
  if (request.lexicon == NULL && request.words == NULL && !has_g(&request))
    request.graph_options.kind = WF_GRAPH_TOKENS; /* its words are the tokens */
  return check_and_run(&request);
}

/* Paths in the lang folder, for what is not given on the command line. */
struct lang_paths {
  char lexicon_fst[4096], grammar[4096], words[4096];
};

static void use_lang_folder(struct request *request, struct lang_paths *paths) {
  const char *lang = request->am.lang;
  snprintf(paths->lexicon_fst, sizeof paths->lexicon_fst, "%s/L_disambig.fst", lang);
  snprintf(paths->grammar, sizeof paths->grammar, "%s/G.fst", lang);
  snprintf(paths->words, sizeof paths->words, "%s/words.txt", lang);
  bool uses_lang_labels = request->lexicon_fst != NULL; /* word labels are those of words.txt */
  if (request->lexicon == NULL && request->lexicon_fst == NULL) {
    request->lexicon_fst = paths->lexicon_fst;
    uses_lang_labels = true;
  }
  if (!has_g(request)) {
    request->grammar = paths->grammar;
    uses_lang_labels = true;
  }
  if (uses_lang_labels && request->words == NULL) request->words = paths->words;
}

static int mkgraph_hmm(int argc, char **argv) {
  struct request request = {.kind = WF_GRAPH_HMM};
  struct lang_paths paths;
  cli_parser parser = {
      .usage =
          "--am=MODEL [--tree=FILE --lang=FOLDER] [--lexicon=FILE] [--lm=lm.arpa.gz] -o HCLG.wfst",
      .about =
          "Builds a decoding graph for hybrid HMM models: H o C o L o G. Input labels are "
          "senones + 1 (Sphinx) or transition-ids (Kaldi); output labels are words.\n"
          "All costs except the LM's are divided by --lm-weight: decode with --acoustic-scale=A, "
          "where A = 1 / lm-weight (0.1538 for Sphinx).\nIn dictionaries, word(2) is "
          "another pronunciation of word (with --no-variants: a separate word). Examples:\n"
          "  warpfst mkgraph hmm --am=exp/tri3b/final.mdl --tree=exp/tri3b/tree "
          "--lang=data/lang_test -o HCLG.wfst\n"
          "  warpfst mkgraph hmm --am=/usr/share/pocketsphinx/model/en-us/en-us "
          "--lexicon=cmudict-en-us.dict --lm=lm.arpa.gz -o HCLG.wfst"};
  add_flags(&parser, &request);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (request.am.path == NULL) return cli_usage("--am is required");
  if (request.am.lang != NULL) use_lang_folder(&request, &paths);
  if (request.lexicon == NULL && request.lexicon_fst == NULL)
    return cli_usage(
        "--lexicon is required, or --lexicon-fst, or --lang with a folder that contains "
        "L_disambig.fst");
  if (!has_g(&request) && request.lexicon == NULL)
    return cli_usage("--lexicon-fst needs --lm, --grammar or --phrases");
  return check_and_run(&request);
}

int cmd_mkgraph(int argc, char **argv) {
  static const cli_part parts[] = {
      {"mkgraph ctc", "for CTC models", mkgraph_ctc},
      {"mkgraph hmm", "for hybrid HMM models of Kaldi and CMU Sphinx", mkgraph_hmm},
  };
  return cli_run_part(parts, sizeof parts / sizeof *parts, "PART [FLAGS] -o GRAPH",
                      "Builds decoding graphs.", argc, argv);
}
