/* cmd_lattice_oracle.c - `warpfst lattice oracle`: finds the path of each lattice with the lowest
 * word error rate. */
#include <stdlib.h>

#include "lattice_common.h"

typedef struct oracle_run {
  const char *output;
  lattice_input input;
  wf_transcripts *references;
  wf_wer *wer;
  wf_result_writer_options writing;
  wf_result_writer *writer;
  uint64_t num_missing;
} oracle_run;

enum { UNKNOWN_WORD = INT32_MAX }; /* a label that no lattice contains */

/* The label of a reference word. Without a word table, words are numbers. */
static int32_t label_of(const oracle_run *run, const char *text) {
  char *end;
  int64_t key =
      run->input.words != NULL ? wf_symbols_find(run->input.words, text) : strtoll(text, &end, 10);
  return key > 0 && key < UNKNOWN_WORD ? (int32_t)key : UNKNOWN_WORD;
}

static wf_status put(oracle_run *run, const wf_transcript *reference, const int32_t *words,
                     size_t count, wf_error *err) {
  wf_timed_word *timed = calloc(count + 1, sizeof *timed);
  const char **texts = malloc((count + 1) * sizeof *texts);
  char(*scratch)[12] = malloc((count + 1) * sizeof *scratch);
  wf_status status =
      timed != NULL && texts != NULL && scratch != NULL ? WF_OK : lattice_no_memory(err);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    texts[i] = lattice_word_text(run->input.words, words[i], scratch[i]);
    timed[i] = (wf_timed_word){.text = texts[i], .confidence = -1};
  }
  wf_hypothesis hypothesis = {.key = reference->key, .words = timed, .num_words = count};
  wf_transcript said = {reference->key, texts, count};
  if (status == WF_OK) status = wf_wer_add(run->wer, reference, &said, NULL, err);
  if (status == WF_OK && run->writer != NULL)
    status = wf_result_writer_put(run->writer, &hypothesis, err);
  free(timed);
  free(texts);
  free(scratch);
  return status;
}

static wf_status one(void *user, wf_lattice_entry *entry, wf_error *err) {
  oracle_run *run = user;
  int64_t at = wf_transcripts_find(run->references, entry->key);
  if (at < 0) {
    run->num_missing++;
    return WF_OK;
  }
  wf_transcript reference = wf_transcripts_at(run->references, (size_t)at);
  int32_t *labels = malloc((reference.num_words + 1) * sizeof *labels), *words;
  size_t count;
  if (labels == NULL) return lattice_no_memory(err);
  for (size_t i = 0; i < reference.num_words; i++) labels[i] = label_of(run, reference.words[i]);
  wf_status status = wf_compact_lattice_oracle(entry->compact, labels, reference.num_words, &words,
                                               &count, NULL, err);
  free(labels);
  if (status != WF_OK) return status;
  status = put(run, &reference, words, count, err);
  wf_free(words);
  return status;
}

static wf_status run_all(oracle_run *run, wf_error *err) {
  wf_status status = run->output != NULL
                         ? wf_result_writer_open(run->output, &run->writing, &run->writer, err)
                         : WF_OK;
  if (status == WF_OK) status = lattice_each(&run->input, one, run, err);
  if (status == WF_OK) return wf_result_writer_close(run->writer, err);
  wf_result_writer_abort(run->writer);
  return status;
}

static void print_summary(const oracle_run *run) {
  const wf_wer_counts totals = wf_wer_totals(run->wer);
  cli_progress_end();
  if (run->input.summary.json) {
    const cli_figure figures[] = {{"lattices", (double)run->input.num_lattices},
                                  {"failed", (double)run->input.num_failed},
                                  {"without_reference", (double)run->num_missing},
                                  {"wer_percent", wf_wer_percent(&totals)},
                                  {"substitutions", (double)totals.num_substitutions},
                                  {"deletions", (double)totals.num_deletions},
                                  {"insertions", (double)totals.num_insertions},
                                  {"reference_words", (double)totals.num_words}};
    cli_figures_json(stdout, figures, sizeof figures / sizeof *figures);
  }
  if (run->input.summary.json || run->input.summary.quiet) return;
  printf(
      "oracle WER %.2f%% (%llu substitution%s, %llu deletion%s, %llu insertion%s; %llu word%s)\n",
      wf_wer_percent(&totals), (unsigned long long)totals.num_substitutions,
      cli_s(totals.num_substitutions), (unsigned long long)totals.num_deletions,
      cli_s(totals.num_deletions), (unsigned long long)totals.num_insertions,
      cli_s(totals.num_insertions), (unsigned long long)totals.num_words, cli_s(totals.num_words));
  if (run->num_missing > 0)
    cli_note("%llu lattice%s without a reference", (unsigned long long)run->num_missing,
             cli_s(run->num_missing));
}

static const cli_rule rules[] = {CLI_SUMMARY_RULE, {NULL, 0, NULL}};

int cmd_lattice_oracle(int argc, char **argv) {
  oracle_run run = {0};
  const char *reference_path = NULL;
  wf_result_writer_options_init(&run.writing);
  cli_parser parser = {
      .usage = "LATTICES... --ref FILE [-o OUT]",
      .about =
          "Finds in each lattice the words closest to its reference and reports "
          "their word error rate: the lowest that any choice of paths can reach.\nExample:\n"
          "  warpfst lattice oracle lat.ark --ref=text --words=words.txt",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "ref", 0, &reference_path, "FILE",
               "reference words, lines `id word word ...` (required)");
  cli_flag_str(&parser, "output", 'o', &run.output, "FILE",
               "write the closest words to this file, lines `id word word ...`");
  cli_summary_flags(&parser, &run.input.summary);
  lattice_flags(&parser, &run.input);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (reference_path == NULL) return cli_usage("no references given: --ref FILE");
  wf_error err = {0};
  run.input.options.kind = WF_LATTICE_COMPACT;
  wf_status status = lattice_open(&run.input, parser.args, parser.num_args, &err);
  if (status == WF_OK)
    status = wf_transcripts_read(reference_path, WF_TRANSCRIPT_AUTO, &run.references, &err);
  if (status == WF_OK) status = wf_wer_create(NULL, &run.wer, &err);
  if (status == WF_OK) status = run_all(&run, &err);
  if (status == WF_OK) print_summary(&run);
  code = status == WF_OK ? lattice_exit_code(&run.input) : cli_fail(&err);
  lattice_close(&run.input);
  wf_transcripts_free(run.references);
  wf_wer_free(run.wer);
  return code;
}
