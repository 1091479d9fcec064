/* mkgraph_hmm.c - `warpfst mkgraph hmm`: builds a decoding graph from a hybrid acoustic model,
 * lexicon and language model, and reports each step when it ends. */
#include "mkgraph_hmm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "am_model.h"
#include "fst_output.h"
#include "step_report.h"

struct request {
  am_source am;
  const char *lexicon, *lexicon_fst, *lm, *grammar, *phrases, *words, *words_out, *columns_out,
      *keep_steps, *output, *format;
  bool json, quiet;
  wf_lexicon_options lexicon_options;
  wf_arpa_options arpa_options;
  wf_hmm_graph_options graph_options;
};

struct parts {
  wf_hmm *hmm;
  wf_symbols *words;
  wf_lexicon *lexicon;
  wf_lm *lm;
  wf_fst *grammar, *lexicon_fst;
  wf_arpa_stats arpa_stats;
  wf_hmm_graph_result result;
};

/* --- reports ----------------------------------------------------------------------------- */

/* Something unusual that is counted and reported: its JSON key, its text, and the names that
 * occurred. */
struct notice {
  const char *name, *text;
  const wf_tally *tally;
};
enum { NUM_NOTICES = 5 };

static void list_notices(const struct parts *parts, struct notice notices[NUM_NOTICES]) {
  static const wf_tally none;
  const wf_tally *skipped = parts->lexicon != NULL ? wf_lexicon_skipped(parts->lexicon) : &none;
  notices[0] = (struct notice){"lexicon_skipped",
                               "lexicon entries skipped because the model lacks a phone", skipped};
  notices[1] = (struct notice){"lm_words_missing", "words of the LM that the lexicon lacks",
                               &parts->result.lm_words_missing};
  notices[2] = (struct notice){"lexicon_words_missing", "words of the lexicon that the LM lacks",
                               &parts->result.lexicon_words_missing};
  notices[3] = (struct notice){
      "hmm_substituted",
      "phones in a context that the model lacks, replaced by the HMM of another context",
      &parts->result.hmm_substituted};
  notices[4] = (struct notice){"hmm_dropped", "phones in a context that the model lacks, dropped",
                               &parts->result.hmm_dropped};
}

static void print_notice_line(const struct notice *notice) {
  if (notice->tally->count == 0) return;
  fprintf(stderr, "%s: %llu (", notice->text, (unsigned long long)notice->tally->count);
  for (uint64_t i = 0; i < WF_TALLY_NAMES && i < notice->tally->count; i++)
    fprintf(stderr, "%s%s", i != 0 ? ", " : "", notice->tally->names[i]);
  fprintf(stderr, "%s)\n", notice->tally->count > WF_TALLY_NAMES ? ", ..." : "");
}

static void print_notice_json(const struct notice *notice) {
  printf("\"%s\": {\"count\": %llu, \"first\": [", notice->name,
         (unsigned long long)notice->tally->count);
  for (uint64_t i = 0; i < WF_TALLY_NAMES && i < notice->tally->count; i++) {
    if (i != 0) printf(", ");
    cli_json_string(stdout, notice->tally->names[i]);
  }
  printf("]}, ");
}

static void print_end(const struct request *request, const cli_steps *steps,
                      const struct parts *parts) {
  struct notice notices[NUM_NOTICES];
  list_notices(parts, notices);
  if (request->json) {
    printf("{\"output\": ");
    cli_json_string(stdout, request->output);
    printf(", \"seconds\": %.6f, \"peak_bytes\": %llu, ", cli_now_s() - steps->begin_s,
           (unsigned long long)cli_peak_bytes());
    for (int i = 0; i < NUM_NOTICES; i++) print_notice_json(&notices[i]);
    cli_steps_json(steps);
    printf("}\n");
  }
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

static wf_status read_lm(const struct request *request, struct parts *parts,
                         const wf_progress *progress, wf_error *err) {
  if (request->grammar != NULL || request->phrases != NULL)
    return read_grammar(request, parts, err);
  if (request->lm == NULL) return WF_OK;
  return wf_lm_open(request->lm, parts->words, &request->arpa_options, &parts->lm,
                    &parts->arpa_stats, progress, err);
}

static wf_status read_parts(const struct request *request, struct parts *parts,
                            const wf_progress *progress, wf_error *err) {
  wf_status status = am_read(&request->am, true, &parts->hmm, err);
  if (status == WF_OK && request->words != NULL)
    status = wf_symbols_read(request->words, &parts->words, err);
  if (status == WF_OK && request->lexicon_fst != NULL)
    status = wf_fst_read(request->lexicon_fst, &parts->lexicon_fst, err);
  if (status == WF_OK && request->lexicon != NULL)
    status = wf_lexicon_read(request->lexicon, wf_hmm_phones(parts->hmm), &request->lexicon_options,
                             &parts->lexicon, err);
  return status == WF_OK ? read_lm(request, parts, progress, err) : status;
}

static wf_status build(const struct request *request, cli_steps *steps, struct parts *parts,
                       wf_error *err) {
  wf_hmm_graph_parts of;
  wf_hmm_graph_parts_init(&of);
  of.progress = cli_progress(request->quiet);
  wf_status status = read_parts(request, parts, &of.progress, err);
  if (status != WF_OK) return status;
  of.hmm = parts->hmm;
  of.lexicon = parts->lexicon;
  of.lexicon_fst = parts->lexicon_fst;
  of.lm = parts->lm;
  of.grammar = parts->grammar;
  of.words = parts->words;
  of.step_fn = cli_on_step;
  of.step_user = steps;
  of.copy_steps = request->keep_steps != NULL;
  status = wf_hmm_graph_build(&of, &request->graph_options, &parts->result, err);
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
  wf_hmm_graph_result_free(&parts->result);
  wf_fst_free(parts->grammar);
  wf_fst_free(parts->lexicon_fst);
  wf_lm_free(parts->lm);
  wf_lexicon_free(parts->lexicon);
  wf_symbols_free(parts->words);
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
    {"lexicon", CLI_EXCLUDES, "lexicon-fst"},
    {"lm", CLI_EXCLUDES, "grammar"},
    {"phrases", CLI_EXCLUDES, "lm|grammar"},
    {"arpa", CLI_USELESS_WITHOUT, "lm"},
    {"spelling", CLI_USELESS_WITH, "am"},
    {"word-start", CLI_USELESS_WITH, "am"},
    {"merges", CLI_USELESS_WITH, "am"},
    {"filler-prob", CLI_USELESS_WITHOUT, "fillers"},
    {NULL, 0, NULL},
};

static void add_flags(cli_parser *parser, struct request *request) {
  cli_flag_str(parser, "am", 0, &request->am.path, "MODEL",
               "acoustic model: a model folder of CMU Sphinx (mdef, transition_matrices, "
               "noisedict), Kaldi's final.mdl, or the folder that contains it (required)");
  am_flags(parser, &request->am);
  cli_flag_str(parser, "lexicon", 0, &request->lexicon, "FILE",
               "pronunciation dictionary in the model's phones, lexicon.txt or lexiconp.txt");
  cli_flag_str(parser, "lexicon-fst", 0, &request->lexicon_fst, "FILE",
               "Kaldi: instead of --lexicon, an L made by Kaldi (default: LANG/L_disambig.fst)");
  cli_flag_str(parser, "lm", 0, &request->lm, "FILE",
               "n-gram model: ARPA, plain or gzipped, a binary file of CMU Sphinx "
               "(en-us.lm.bin) or KenLM (trie), or a .wlm file (default, without --grammar and "
               "--phrases: every "
               "sequence of words of --lexicon or --words at the same cost)");
  cli_flag_str(parser, "grammar", 0, &request->grammar, "FILE",
               "instead of --lm: a grammar in JSGF, or an fst over words (Kaldi's default: "
               "LANG/G.fst)");
  cli_flag_str(parser, "phrases", 0, &request->phrases, "FILE",
               "instead of --lm: sentences, one in each line; one of them is said");
  cli_flag_str(parser, "words", 0, &request->words, "FILE",
               "word table (default: LANG/words.txt if lexicon or grammar come from LANG or "
               "--lexicon-fst is given; else that of the LM or of the grammar)");
  cli_flag_str(parser, "words-out", 0, &request->words_out, "FILE",
               "write the graph's word table (also stored in the graph)");
  cli_flag_str(parser, "columns-out", 0, &request->columns_out, "FILE",
               "write `label column` lines to this file (default: OUTPUT.columns, unless all "
               "columns are label - 1)");
  cli_flag_str(parser, "keep-steps", 0, &request->keep_steps, "FOLDER",
               "write the result of each step to this folder: L.fst, G.fst, LG.fst, CLG.fst, ..., "
               "and words.txt");
  cli_flag_bool(parser, "json", 0, &request->json,
                "print sizes and times as JSON on standard output");
  cli_flag_bool(parser, "quiet", 'q', &request->quiet,
                "do not print the table of steps or the progress bar");
  cli_flag_output(parser, &request->output, &request->format);
  cli_table(parser, "hmm_graph", &request->graph_options);
  cli_table(parser, "lexicon", &request->lexicon_options);
  cli_table(parser, "arpa", &request->arpa_options);
  cli_rules(parser, rules);
  request->lexicon_options.blank = "";
  request->lexicon_options.variants = true;
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
  if (request->lm == NULL && request->grammar == NULL && request->phrases == NULL) {
    request->grammar = paths->grammar;
    uses_lang_labels = true;
  }
  if (uses_lang_labels && request->words == NULL) request->words = paths->words;
}

int mkgraph_hmm(int argc, char **argv) {
  struct request request = {0};
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
  if (request.lm == NULL && request.grammar == NULL && request.phrases == NULL &&
      request.lexicon == NULL)
    return cli_usage("--lexicon-fst needs --lm, --grammar or --phrases");
  if (request.output == NULL) return cli_usage("-o is required");
  if (request.json && strcmp(request.output, "-") == 0)
    return cli_usage("the graph and --json cannot both go to standard output");
  return run(&request);
}
