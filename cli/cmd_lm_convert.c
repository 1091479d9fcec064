/* cmd_lm_convert.c - `warpfst lm convert`: makes a grammar acceptor from a model.
 *
 * The back-off symbol has its label in the word table. If it is not there, it gets the next free
 * label in a copy of the table. */
#include <inttypes.h>

#include "fst_output.h"
#include "lm_common.h"

typedef struct request {
  const char *output, *format, *write_words, *backoff_symbol;
  lm_source source;
  wf_lm_fst_options fst;
} request;

/* Copies `words` and adds one symbol, whose key is stored in `*label`. */
static wf_status add_symbol(const wf_symbols *words, const char *symbol, wf_symbols **out,
                            int64_t *label, wf_error *err) {
  wf_status status = wf_symbols_create(wf_symbols_name(words), out, err);
  for (size_t i = 0; status == WF_OK && i < wf_symbols_count(words); i++) {
    int64_t key;
    const char *text = wf_symbols_at(words, i, &key);
    status = wf_symbols_add(*out, text, key, NULL, err);
  }
  return status == WF_OK ? wf_symbols_add(*out, symbol, -1, label, err) : status;
}

/* Makes the acceptor of `lm` or of `large`; the other is NULL. `table`: the words of the model. */
static wf_status make(request *r, const wf_lm *lm, const wf_wlm *large, const wf_symbols *table,
                      wf_fst **out, wf_error *err) {
  wf_symbols *words = wf_symbols_ref(table);
  wf_status status = WF_OK;
  if (r->backoff_symbol != NULL) {
    int64_t label = wf_symbols_find(words, r->backoff_symbol);
    if (label < 0) {
      wf_symbols_free(words);
      words = NULL;
      status = add_symbol(table, r->backoff_symbol, &words, &label, err);
    }
    r->fst.backoff_label = (int32_t)label;
  }
  wf_fst *plain = NULL;
  if (status == WF_OK)
    status = lm != NULL ? wf_lm_to_fst(lm, &r->fst, &plain, err)
                        : wf_wlm_to_fst(large, table, r->fst.backoff_label, &plain, err);
  if (status == WF_OK) status = wf_fst_with_symbols(plain, words, words, out, err);
  if (status == WF_OK && r->write_words != NULL)
    status = wf_symbols_write(words, r->write_words, err);
  wf_fst_free(plain);
  wf_symbols_free(words);
  return status;
}

static int convert_large(request *r, const char *path) {
  if (r->fst.backoff != 1)
    return cli_usage("a model made by lm build can only be converted with --backoff=failure");
  wf_wlm *lm = NULL;
  wf_symbols *words = NULL;
  wf_fst *fst = NULL;
  wf_error err;
  wf_status status = wf_wlm_open(path, &lm, &err);
  if (status == WF_OK && r->source.words_path != NULL)
    status = wf_symbols_read(r->source.words_path, &words, &err);
  if (status == WF_OK)
    status = make(r, NULL, lm, words != NULL ? words : wf_wlm_words(lm), &fst, &err);
  int code = status == WF_OK ? cli_write_fst(fst, r->output, r->format) : cli_fail(&err);
  wf_fst_free(fst);
  wf_symbols_free(words);
  wf_wlm_free(lm);
  return code;
}

static const cli_rule rules[] = {
    {"backoff-symbol", CLI_EXCLUDES, "backoff-label"},
    {NULL, 0, NULL},
};

int cmd_lm_convert(int argc, char **argv) {
  request r = {0};
  cli_parser parser = {
      .usage = "LM [-o FST]",
      .about =
          "Makes the grammar acceptor of a model, to be composed with a lexicon. "
          "For a graph in which back-off arcs are ordinary arcs:\n"
          "    warpfst lm convert lm.arpa.gz --backoff-symbol='#0' "
          "--write-words=words.txt -o G.fst\n"
          "For composition that follows the model exactly (warpfst compose "
          "--phi-label=LABEL): add --backoff=failure.\n"
          "Models made by lm build can only be converted with --backoff=failure. A graph "
          "composed with the result gives the same costs as decode --lm.",
      .min_args = 1,
      .max_args = 2};
  cli_flag_output(&parser, &r.output, &r.format);
  cli_flag_str(
      &parser, "backoff-symbol", 0, &r.backoff_symbol, "SYMBOL",
      "symbol of the back-off label, such as '#0'; added to the word table if it is not there");
  cli_flag_str(&parser, "write-words", 0, &r.write_words, "FILE",
               "write the word table of the acceptor to this file");
  lm_flags(&parser, &r.source);
  cli_table(&parser, "lm_fst", &r.fst);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (r.output == NULL && parser.num_args > 1) r.output = parser.args[1];
  wf_fst_format format; /* report a wrong format before the model is read */
  code = cli_fst_format(r.output, r.format, &format);
  if (code != CLI_OK) return code;
  if (lm_is_wlm(parser.args[0])) return convert_large(&r, parser.args[0]);
  wf_lm *lm;
  code = lm_load(parser.args[0], &r.source, &lm, NULL);
  if (code != CLI_OK) return code;
  wf_error err;
  wf_fst *fst = NULL;
  code = make(&r, lm, NULL, wf_lm_words(lm), &fst, &err) == WF_OK
             ? cli_write_fst(fst, r.output, r.format)
             : cli_fail(&err);
  wf_fst_free(fst);
  wf_lm_free(lm);
  return code;
}
