/* cmd_lexicon.c - `warpfst lexicon`: makes L from a lexicon file, or from words spelled with the
 * tokens of a model. */
#include "fst_output.h"

struct request {
  const char *tokens, *lexicon, *spell, *words, *words_out, *lexicon_out, *output, *format;
  wf_lexicon_options lexicon_options;
  wf_lexicon_fst_options fst_options;
};

struct parts {
  wf_symbols *tokens, *words, *spell;
  wf_lexicon *lexicon;
  wf_fst *fst;
};

static wf_status make_lexicon(const struct request *request, struct parts *parts, wf_error *err) {
  wf_status status = wf_symbols_read(request->tokens, &parts->tokens, err);
  if (status == WF_OK && request->words != NULL)
    status = wf_symbols_read(request->words, &parts->words, err);
  if (status != WF_OK) return status;
  if (request->lexicon != NULL)
    return wf_lexicon_read(request->lexicon, parts->tokens, &request->lexicon_options,
                           &parts->lexicon, err);
  status = wf_symbols_read(request->spell, &parts->spell, err);
  return status == WF_OK ? wf_lexicon_spell(parts->spell, parts->tokens, &request->lexicon_options,
                                            &parts->lexicon, err)
                         : status;
}

static wf_status make(const struct request *request, struct parts *parts, wf_error *err) {
  wf_status status = make_lexicon(request, parts, err);
  if (status != WF_OK) return status;
  if (parts->words == NULL) {
    if (parts->spell != NULL && wf_symbols_find(parts->spell, "#0") > 0)
      parts->words = wf_symbols_ref(parts->spell);
    else
      status = wf_lexicon_words(parts->lexicon, &parts->words, err);
  }
  if (status == WF_OK && request->lexicon_out != NULL)
    status = wf_lexicon_write(parts->lexicon, request->lexicon_out, err);
  if (status == WF_OK && request->words_out != NULL)
    status = wf_symbols_write(parts->words, request->words_out, err);
  size_t missing = 0;
  if (status == WF_OK)
    status = wf_lexicon_to_fst(parts->lexicon, parts->words, &request->fst_options, &parts->fst,
                               &missing, err);
  if (status == WF_OK && missing != 0)
    cli_note("%zu pronunciations skipped: their words are not in %s", missing,
             wf_symbols_name(parts->words));
  return status;
}

static const cli_rule rules[] = {
    {"spelling", CLI_USELESS_WITHOUT, "spell"},       {"word-start", CLI_USELESS_WITHOUT, "spell"},
    {"merges", CLI_USELESS_WITHOUT, "spell"},         {"lexicon-format", CLI_USELESS_WITH, "spell"},
    {"silence-prob", CLI_USELESS_WITHOUT, "silence"}, {NULL, 0, NULL},
};

static void add_flags(cli_parser *parser, struct request *request) {
  cli_flag_str(parser, "tokens", 0, &request->tokens, "FILE",
               "token table, lines `token column` (required)");
  cli_flag_str(parser, "spell", 0, &request->spell, "FILE",
               "instead of LEXICON: word table whose words are spelled with the tokens");
  cli_flag_str(parser, "words", 0, &request->words, "FILE",
               "word table for the output labels (default: made from the lexicon)");
  cli_flag_str(parser, "words-out", 0, &request->words_out, "FILE", "write the word table");
  cli_flag_str(parser, "lexicon-out", 0, &request->lexicon_out, "FILE",
               "write the lexicon as it was read or spelled");
  cli_flag_output(parser, &request->output, &request->format);
  cli_table(parser, "lexicon", &request->lexicon_options);
  cli_table(parser, "lexicon_fst", &request->fst_options);
  cli_rules(parser, rules);
}

int cmd_lexicon(int argc, char **argv) {
  struct request request = {0};
  struct parts parts = {0};
  cli_parser parser = {
      .usage =
          "LEXICON --tokens=tokens.txt [-o L.fst]\n       warpfst lexicon "
          "--spell=words.txt --tokens=tokens.txt [-o L.fst]",
      .about =
          "Makes L, a transducer from token labels (column + 1) to words. LEXICON is Kaldi's "
          "lexicon.txt, lexiconp.txt or lexiconp_silprob.txt.",
      .max_args = 1};
  add_flags(&parser, &request);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (parser.num_args > 0) request.lexicon = parser.args[0];
  if (request.tokens == NULL) return cli_usage("--tokens is required");
  if ((request.lexicon == NULL) == (request.spell == NULL))
    return cli_usage("either LEXICON or --spell is required");
  wf_error err;
  code = make(&request, &parts, &err) == WF_OK
             ? cli_write_fst(parts.fst, request.output, request.format)
             : cli_fail(&err);
  wf_fst_free(parts.fst);
  wf_lexicon_free(parts.lexicon);
  wf_symbols_free(parts.tokens);
  wf_symbols_free(parts.words);
  wf_symbols_free(parts.spell);
  return code;
}
