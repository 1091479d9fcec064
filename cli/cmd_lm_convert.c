/* cmd_lm_convert.c - `warpfst lm convert`: makes a .wlm file or a grammar acceptor from a model; and
 * `lm build`, its old name for .wlm files.
 *
 * The back-off symbol of an acceptor has its label in the word table. If it is not there, it gets
 * the next free label in a copy of the table. */
#include <inttypes.h>
#include <string.h>

#include "fst_output.h"
#include "lm_common.h"

typedef struct request {
  const char *input, *output, *format, *write_words, *backoff_symbol;
  lm_source source;
  wf_lm_fst_options fst;
  wf_lm_convert_options wlm;
} request;

/* --- an acceptor ------------------------------------------------------------------------- */

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

static wf_status make_fst(request *r, const wf_lm *lm, wf_fst **out, wf_error *err) {
  const wf_symbols *table = wf_lm_words(lm);
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
  if (status == WF_OK) status = wf_lm_to_fst(lm, &r->fst, &plain, err);
  if (status == WF_OK) status = wf_fst_with_symbols(plain, words, words, out, err);
  if (status == WF_OK && r->write_words != NULL)
    status = wf_symbols_write(words, r->write_words, err);
  wf_fst_free(plain);
  wf_symbols_free(words);
  return status;
}

static int write_fst(request *r) {
  wf_fst_format format; /* report a wrong format before the model is read */
  int code = cli_fst_format(r->output, r->format, &format);
  if (code != CLI_OK) return code;
  wf_lm *lm;
  code = lm_load(r->input, &r->source, &lm, NULL);
  if (code != CLI_OK) return code;
  wf_error err;
  wf_fst *fst = NULL;
  code = make_fst(r, lm, &fst, &err) == WF_OK ? cli_write_fst(fst, r->output, r->format)
                                              : cli_fail(&err);
  wf_fst_free(fst);
  wf_lm_free(lm);
  return code;
}

/* --- a .wlm file ------------------------------------------------------------------------- */

static void print_stats(const wf_lm_convert_stats *stats, const wf_lm_convert_options *options,
                        double seconds) {
  const struct {
    const char *what;
    uint64_t count;
  } counts[] = {
      {"n-grams of the small model were not in the large model and have been added",
       stats->num_added},
      {"words of the small model were not in the large model; they have the cost of its <unk>",
       stats->num_words_added},
      {"n-grams skipped: they contain words that are not in the small model", stats->num_outside},
      {"contexts of n-grams were missing and have been created", stats->num_created}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (counts[i].count > 0) fprintf(stderr, "%" PRIu64 " %s\n", counts[i].count, counts[i].what);
  if (options->pack == WF_PACK_CODEBOOK)
    fprintf(stderr, "costs rounded to %d bits: off by %.5f nats on average, by %.5f at most\n",
            options->cost_bits, stats->loss_mean, stats->loss_worst);
  fprintf(stderr, "built in %.2f s, at most %.1f MB of memory\n", seconds,
          (double)cli_peak_bytes() / 1e6);
}

static int write_wlm(const request *r) {
  wf_error err = {0};
  wf_lm_convert_stats stats;
  wf_lm_convert_stats_init(&stats);
  wf_progress progress = cli_progress(r->source.quiet);
  double start = cli_now_s();
  wf_status status = wf_lm_convert(r->input, r->output, &r->source.options, &r->wlm, &stats, NULL,
                                   &progress, &err);
  cli_progress_end();
  if (status != WF_OK) return cli_fail(&err);
  if (!r->source.quiet) print_stats(&stats, &r->wlm, cli_now_s() - start);
  return CLI_OK;
}

/* --- commands ---------------------------------------------------------------------------- */

static bool is_wlm(const request *r) {
  size_t size = r->output != NULL ? strlen(r->output) : 0;
  if (r->format != NULL) return strcmp(r->format, "wlm") == 0;
  if (size > 3 && strcmp(r->output + size - 3, ".gz") == 0) size -= 3;
  return size > 4 && strncmp(r->output + size - 4, ".wlm", 4) == 0;
}

/* Options of the other kind of output. */
static int check_flags(const cli_parser *parser, bool wlm) {
  static const char *const of_fst[] = {"lm_fst", "words", "backoff-symbol", "write-words", NULL},
                           *const of_wlm[] = {"lm_convert", "quiet", NULL};
  for (const char *const *name = wlm ? of_fst : of_wlm; *name != NULL; name++)
    if (cli_is_given(parser, *name))
      return cli_usage(
          "%s is not for this output: a name in .wlm makes the file for decode --lm, "
          "any other an acceptor",
          strcmp(*name, "lm_fst") == 0       ? "an option of acceptors"
          : strcmp(*name, "lm_convert") == 0 ? "an option of .wlm files"
                                             : *name);
  return -1;
}

static const cli_rule rules[] = {
    {"backoff-symbol", CLI_EXCLUDES, "backoff-label"},
    {"cost-bits", CLI_USELESS_WITHOUT, "pack=codebook"},
    {NULL, 0, NULL},
};
static const cli_rule build_rules[] = {
    {"cost-bits", CLI_USELESS_WITHOUT, "pack=codebook"},
    {NULL, 0, NULL},
};

int cmd_lm_convert(int argc, char **argv) {
  request r = {0};
  cli_parser parser = {
      .usage = "LM [-o OUT.wlm|FST]",
      .about =
          "Converts a model of any format.\n"
          "To a .wlm file, which is memory-mapped and so opens at once. The ARPA file may be "
          "larger "
          "than memory:\n"
          "    warpfst lm convert large.arpa.gz -o large.wlm\n"
          "With --subtract, costs are those of the large model minus those of the small one, for "
          "graphs built with the small model:\n"
          "    warpfst lm convert large.arpa.gz --subtract small.arpa -o difference.wlm\n"
          "To a grammar acceptor, to be composed with a lexicon. For a graph in which back-off "
          "arcs "
          "are ordinary arcs:\n"
          "    warpfst lm convert lm.arpa.gz --backoff-symbol='#0' "
          "--write-words=words.txt -o G.fst\n"
          "For composition that follows the model exactly (warpfst compose --phi-label=LABEL): add "
          "--backoff=failure. A graph composed with the result gives the same costs as decode "
          "--lm.",
      .min_args = 1,
      .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &r.output, "FILE", CLI_OUTPUT_HELP);
  cli_flag_str(&parser, "format", 0, &r.format, "wlm|" CLI_FORMAT_VALUE,
               "file format (default: by the name: .wlm, native for .wfst, else OpenFst vector)");
  cli_flag_str(
      &parser, "backoff-symbol", 0, &r.backoff_symbol, "SYMBOL",
      "symbol of the back-off label, such as '#0'; added to the word table if it is not there");
  cli_flag_str(&parser, "write-words", 0, &r.write_words, "FILE",
               "write the word table of the acceptor to this file");
  cli_flag_bool(&parser, "quiet", 'q', &r.source.quiet, "report nothing");
  lm_flags(&parser, &r.source);
  cli_table(&parser, "lm_fst", &r.fst);
  cli_table(&parser, "lm_convert", &r.wlm);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  r.input = parser.args[0];
  if (r.output == NULL && parser.num_args > 1) r.output = parser.args[1];
  code = check_flags(&parser, is_wlm(&r));
  if (code >= 0) return code;
  return is_wlm(&r) ? write_wlm(&r) : write_fst(&r);
}

int cmd_lm_build(int argc, char **argv) {
  request r = {0};
  cli_parser parser = {.usage = "LM [-o OUT.wlm]",
                       .about = "The old name of 'warpfst lm convert' to a .wlm file.",
                       .min_args = 0,
                       .max_args = 2};
  cli_flag_str(&parser, "output", 'o', &r.output, "FILE",
               "file to write, instead of the last argument");
  cli_flag_str(&parser, "arpa", 0, &r.input, "FILE",
               "the large model, instead of the first argument");
  cli_flag_bool(&parser, "quiet", 'q', &r.source.quiet, "report nothing");
  cli_table(&parser, "arpa", &r.source.options);
  cli_table(&parser, "lm_convert", &r.wlm);
  cli_rules(&parser, build_rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  int next = 0;
  if (r.input == NULL && parser.num_args > 0) r.input = parser.args[next++];
  if (r.output == NULL && parser.num_args > next) r.output = parser.args[next++];
  if (r.input == NULL || r.output == NULL || next < parser.num_args)
    return cli_usage("expected one model and one output");
  cli_note("'lm build' is now 'lm convert'; the old name goes in version 0.4");
  return write_wlm(&r);
}
