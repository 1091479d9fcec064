/* cmd_rnnlm_lattice.c - `warpfst rnnlm lattice`: rescores lattices with a recurrent model. */
#include "lattice_common.h"
#include "rnnlm_common.h"
#include "rnnlm_scorer.h"

typedef struct request {
  lattice_input input;
  rnnlm_source source;
  wf_lattice_determinize_options determinize;
  wf_lattice_writer *writer;
  int64_t max_states;
} request;

static wf_status score_entry(void *user, wf_lattice_entry *entry, wf_error *err) {
  request *r = user;
  wf_status status = lattice_make_compact(entry, &r->determinize, NULL, err);
  wf_compact_lattice *scored = NULL;
  if (status == WF_OK)
    status =
        wf_compact_lattice_score(entry->compact, r->source.scorer, r->max_states, &scored, err);
  if (status != WF_OK) return status;
  wf_compact_lattice_free(entry->compact);
  entry->compact = scored;
  return wf_lattice_writer_put(r->writer, entry, err);
}

int cmd_rnnlm_lattice(int argc, char **argv) {
  const char *output = NULL;
  request r = {.max_states = 10000000};
  wf_lattice_writer_options options;
  cli_parser parser = {
      .usage = "LATTICES... --rnnlm=MODEL --words=words.txt -o OUT",
      .about =
          "Adds the costs of a recurrent model to the graph costs of lattices, and subtracts those "
          "of "
          "--rnnlm-small, the model that is in the graph costs.\n"
          "'warpfst decode --rnnlm' does the same in the first pass. --history-merge-order=4 "
          "merges histories "
          "that share the last three words, which keeps\n"
          "the lattices small. Raw lattices are determinized first. --rnnlm and --words are "
          "required. Example:\n"
          "    warpfst rnnlm lattice lat.ark --rnnlm=lm --rnnlm-small=bigram.arpa "
          "--rnnlm-ngram=bigram.arpa --rnnlm-weight=0.5 --history-merge-order=4 "
          "--words=words.txt -o - | warpfst lattice nbest - --n=1 --words=words.txt "
          "--acoustic-scale=0.1",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &output, "OUT", "archive to write ('-': standard output)");
  cli_flag_i64(&parser, "max-states", 0, &r.max_states, "N",
               "fail on a lattice whose result has more states than this (default: 10000000)");
  lattice_flags(&parser, &r.input);
  rnnlm_scorer_flags(&parser, &r.source);
  cli_table(&parser, "lattice_determinize", &r.determinize);
  cli_table(&parser, "lattice_writer", &options);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (output == NULL) return cli_usage("no output given: -o OUT");
  if (r.source.path == NULL) return cli_usage("no model given: --rnnlm=MODEL");
  wf_error err = {0};
  wf_status status = lattice_open(&r.input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = rnnlm_scorer_open(&r.source, r.input.words, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_open(output, r.input.words, &options, &r.writer, &err);
  if (status == WF_OK) status = lattice_each(&r.input, score_entry, &r, &err);
  if (status == WF_OK)
    status = wf_lattice_writer_close(r.writer, &err);
  else
    wf_lattice_writer_abort(r.writer);
  rnnlm_scorer_free(&r.source);
  lattice_close(&r.input);
  return status == WF_OK ? lattice_exit_code(&r.input) : cli_fail(&err);
}
