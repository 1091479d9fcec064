/* aligner_source.c - makes the word aligner of a command from a graph, a token table, a lexicon or
 * an acoustic model. */
#include "aligner_source.h"

static void common_flags(cli_parser *parser, aligner_source *source) {
  cli_flag_str(
      parser, "tokens", 0, &source->tokens_path, "FILE",
      "word times of CTC models: token table in which tokens tell the start of words (U+2581, "
      "Ġ, ##); with --lexicon, any token table");
  cli_flag_str(
      parser, "lexicon", 0, &source->lexicon_path, "FILE",
      "word times from this lexicon, whose units are the tokens of --tokens or the phones of --am");
}

static const cli_rule lattice_rules[] = {
    {"graph", CLI_EXCLUDES, "tokens"},
    {"graph", CLI_EXCLUDES, "am"},
    {"am", CLI_EXCLUDES, "tokens"},
    {"lexicon", CLI_NEEDS, "tokens|am"},
    {"lexicon", CLI_NEEDS, "words"},
    {"lang", CLI_NEEDS, "am"},
    {NULL, 0, NULL},
};
static const cli_rule decode_rules[] = {
    {"am", CLI_EXCLUDES, "tokens"},
    {"lexicon", CLI_NEEDS, "tokens|am"},
    {"lang", CLI_NEEDS, "am"},
    {NULL, 0, NULL},
};

void aligner_flags(cli_parser *parser, aligner_source *source) {
  cli_flag_str(parser, "graph", 0, &source->graph_path, "FILE",
               "word times from the tables in a graph built by 'warpfst mkgraph'");
  common_flags(parser, source);
  cli_flag_str(parser, "am", 0, &source->am.path, "MODEL",
               "word times of hybrid models: Kaldi's final.mdl or the folder that contains it; "
               "with --lexicon also a model folder of CMU Sphinx");
  cli_flag_str(parser, "lang", 0, &source->am.lang, "FOLDER",
               "with --am: Kaldi's lang folder, with phones.txt and phones/word_boundary.txt");
  cli_rules(parser, lattice_rules);
}

void aligner_decode_flags(cli_parser *parser, aligner_source *source) {
  common_flags(parser, source);
  cli_flag_str(parser, "lang", 0, &source->am.lang, "FOLDER",
               "word times from the phones of --am: Kaldi's lang folder, with phones.txt and "
               "phones/word_boundary.txt");
  cli_rules(parser, decode_rules);
}

static wf_status read_lexicon(const aligner_source *source, const wf_symbols *units,
                              const char *blank, wf_lexicon **out, wf_error *err) {
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  options.unknown = WF_UNKNOWN_SKIP; /* no path contains a word with an unknown token */
  options.blank = blank;
  options.variants = blank != NULL; /* dictionaries of hybrid models write them as word(2) */
  return wf_lexicon_read(source->lexicon_path, units, &options, out, err);
}

static wf_status from_tokens(const aligner_source *source, const wf_symbols *words,
                             wf_word_aligner **out, wf_error *err) {
  wf_symbols *tokens;
  wf_lexicon *lexicon = NULL;
  wf_status status = wf_symbols_read(source->tokens_path, &tokens, err);
  if (status != WF_OK) return status;
  if (source->lexicon_path == NULL) {
    status = wf_word_aligner_from_tokens(tokens, NULL, out, err);
  } else {
    status = read_lexicon(source, tokens, NULL, &lexicon, err);
    if (status == WF_OK) status = wf_word_aligner_from_lexicon(lexicon, words, out, err);
  }
  wf_lexicon_free(lexicon);
  wf_symbols_free(tokens);
  return status;
}

static wf_status from_model(const aligner_source *source, const wf_symbols *words,
                            wf_word_aligner **out, wf_error *err) {
  wf_hmm *hmm;
  wf_lexicon *lexicon = NULL;
  wf_status status = am_read(&source->am, false, &hmm, err);
  if (status != WF_OK) return status;
  if (source->lexicon_path == NULL) {
    status = wf_word_aligner_from_hmm(hmm, out, err);
  } else {
    status = read_lexicon(source, wf_hmm_phones(hmm), "", &lexicon, err);
    if (status == WF_OK) status = wf_word_aligner_from_hmm_lexicon(hmm, lexicon, words, out, err);
  }
  wf_lexicon_free(lexicon);
  wf_hmm_free(hmm);
  return status;
}

static wf_status from_graph(const aligner_source *source, wf_word_aligner **out, wf_error *err) {
  wf_fst *fst;
  wf_error why;
  wf_status status = wf_fst_read(source->graph_path, &fst, err);
  if (status != WF_OK) return status;
  status = wf_word_aligner_from_fst(fst, out, &why);
  wf_fst_free(fst);
  if (status == WF_OK) return status;
  err->code = status;
  snprintf(err->message, sizeof err->message, "%.300s: %.600s", source->graph_path, why.message);
  return status;
}

wf_status aligner_open(aligner_source *source, const wf_symbols *words, wf_error *err) {
  if (source->lexicon_path != NULL && words == NULL) {
    err->code = WF_ERR_ARGUMENT;
    snprintf(
        err->message, sizeof err->message,
        "--lexicon needs a symbol table of the words; the graph has none, give it with --words");
    return err->code;
  }
  if (source->graph_path != NULL) return from_graph(source, &source->aligner, err);
  if (source->tokens_path != NULL) return from_tokens(source, words, &source->aligner, err);
  return source->am.path != NULL ? from_model(source, words, &source->aligner, err) : WF_OK;
}

wf_status aligner_attach(aligner_source *source, const wf_symbols *words, wf_fst **fst,
                         wf_error *err) {
  wf_fst *with;
  if (source->tokens_path == NULL && source->lexicon_path == NULL && source->am.lang == NULL)
    return WF_OK; /* --am alone only gives the score columns */
  wf_status status = aligner_open(source, words, err);
  if (status != WF_OK || source->aligner == NULL) return status;
  status = wf_fst_with_word_aligner(*fst, source->aligner, &with, err);
  wf_word_aligner_free(source->aligner);
  source->aligner = NULL;
  if (status != WF_OK) return status;
  wf_fst_free(*fst);
  *fst = with;
  return WF_OK;
}

wf_status aligner_apply(const aligner_source *source, wf_lattice_entry *entry, wf_error *err) {
  wf_compact_lattice *aligned;
  uint64_t forced;
  if (source->aligner == NULL) return WF_OK;
  wf_status status =
      wf_compact_lattice_align(entry->compact, source->aligner, NULL, &aligned, &forced, err);
  if (status != WF_OK) return status;
  if (forced > 0)
    cli_note(
        "utterance '%s': the labels of %llu arcs are not a pronunciation of their word; their "
        "times are estimates",
        entry->key, (unsigned long long)forced);
  wf_compact_lattice_free(entry->compact);
  entry->compact = aligned;
  return WF_OK;
}
