/* cmd_lattice_spot.c - `warpfst lattice spot`: listed words in lattices, with times and
 * probabilities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lattice_common.h"
#include "text_input.h"
#include "utterance_lists.h"

typedef struct spot_run {
  const char *output, *list_path;
  lattice_input input;
  aligner_source aligner;
  wf_spot_options options;
  wf_lattice_determinize_options determinizing; /* of raw lattices */
  wf_result_writer_options writing;
  wf_result_writer *writer;
  int32_t *words;
  size_t num_words, cap;
  uint64_t num_hits;
} spot_run;

static wf_status add_word(spot_run *run, char *line, int number, wf_error *err) {
  char *rest, *text = strtok_r(line, " \t\r\n", &rest);
  if (text == NULL) return WF_OK;
  if (strtok_r(NULL, " \t\r\n", &rest) != NULL)
    return list_error(err, WF_ERR_FORMAT, run->list_path, number, "expected one word in a line");
  const int64_t label = wf_symbols_find(run->input.words, text);
  if (label <= 0 || label > INT32_MAX) {
    char message[200];
    snprintf(message, sizeof message, "the word '%.100s' is not in the word table", text);
    return list_error(err, WF_ERR_FORMAT, run->list_path, number, message);
  }
  if (!list_reserve((void **)&run->words, run->num_words, &run->cap, sizeof *run->words))
    return lattice_no_memory(err);
  run->words[run->num_words++] = (int32_t)label;
  return WF_OK;
}

static wf_status read_words(spot_run *run, wf_error *err) {
  cli_lines lines;
  wf_status status = cli_lines_open(&lines, run->list_path, err);
  while (status == WF_OK && cli_lines_next(&lines))
    status = add_word(run, lines.text, (int)lines.number, err);
  return cli_lines_close(&lines, status, err);
}

static wf_status put_hits(spot_run *run, const char *key, const wf_spot_hit *hits, size_t count,
                          wf_error *err) {
  wf_timed_word *words = malloc((count + 1) * sizeof *words);
  if (words == NULL) return lattice_no_memory(err);
  for (size_t i = 0; i < count; i++)
    words[i] = (wf_timed_word){wf_symbols_text(run->input.words, hits[i].label),
                               hits[i].start_frame, hits[i].end_frame, (float)hits[i].probability};
  const wf_hypothesis hypothesis = {.key = key,
                                    .words = words,
                                    .num_words = count,
                                    .cost = NAN,
                                    .graph_cost = NAN,
                                    .acoustic_cost = NAN};
  wf_status status = wf_result_writer_put(run->writer, &hypothesis, err);
  free(words);
  run->num_hits += count;
  return status;
}

static wf_status one(void *user, wf_lattice_entry *entry, wf_error *err) {
  spot_run *run = user;
  wf_spot_hit *hits;
  size_t count;
  wf_status status = lattice_make_compact(entry, &run->determinizing, NULL, err);
  if (status == WF_OK) status = aligner_apply(&run->aligner, entry, err);
  if (status == WF_OK)
    status = wf_compact_lattice_spot(entry->compact, run->words, run->num_words, &run->options,
                                     &hits, &count, err);
  if (status != WF_OK) return status;
  status = put_hits(run, entry->key, hits, count, err);
  wf_free(hits);
  return status;
}

static wf_status run_all(spot_run *run, wf_error *err) {
  wf_status status = wf_result_writer_open(run->output, &run->writing, &run->writer, err);
  if (status == WF_OK) status = lattice_each(&run->input, one, run, err);
  if (status == WF_OK) return wf_result_writer_close(run->writer, err);
  wf_result_writer_abort(run->writer);
  return status;
}

static void print_summary(const spot_run *run) {
  const lattice_input *input = &run->input;
  cli_progress_end();
  const cli_figure figures[] = {{"lattices", (double)input->num_lattices},
                                {"failed", (double)input->num_failed},
                                {"words", (double)run->num_words},
                                {"hits", (double)run->num_hits}};
  if (input->summary.json)
    cli_figures_json(stderr, figures, sizeof figures / sizeof *figures);
  else if (!input->summary.quiet)
    fprintf(stderr, "%llu lattice%s, %zu word%s, %llu hit%s\n",
            (unsigned long long)input->num_lattices, cli_s(input->num_lattices), run->num_words,
            cli_s(run->num_words), (unsigned long long)run->num_hits, cli_s(run->num_hits));
}

static const cli_rule rules[] = {CLI_SUMMARY_RULE, {NULL, 0, NULL}};

int cmd_lattice_spot(int argc, char **argv) {
  spot_run run = {.output = "-"};
  cli_parser parser = {
      .usage = "LATTICES... --words FILE --list FILE [-o OUT]",
      .about =
          "Finds listed words in lattices and writes their times and probabilities, as CTM unless "
          "--format says otherwise. Raw lattices are determinized first. Scale the costs as for "
          "decoding\n(--acoustic-scale). With --graph, --tokens or --am, times are those of the "
          "word's frames, else those of its arc. Example:\n"
          "  warpfst lattice spot lat.ark --acoustic-scale=0.7 --words=words.txt --list=names.txt "
          "--graph=TLG.wfst --threshold=0.3",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "list", 0, &run.list_path, "FILE", "the words, one a line (required)");
  cli_flag_str(&parser, "output", 'o', &run.output, "FILE",
               "where to write hits ('-': standard output, the default)");
  cli_summary_flags(&parser, &run.input.summary);
  lattice_flags(&parser, &run.input);
  cli_rules(&parser, rules);
  aligner_flags(&parser, &run.aligner);
  cli_table(&parser, "spot", &run.options);
  cli_table(&parser, "lattice_determinize", &run.determinizing);
  cli_table(&parser, "result_writer", &run.writing);
  run.writing.format = WF_RESULTS_CTM;
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  if (run.list_path == NULL) return cli_usage("no word list given: --list FILE");
  if (run.input.words_path == NULL) return cli_usage("no word table given: --words FILE");
  wf_error err = {0};
  wf_status status = lattice_open(&run.input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = read_words(&run, &err);
  if (status == WF_OK) status = aligner_open(&run.aligner, run.input.words, &err);
  if (status == WF_OK) status = run_all(&run, &err);
  if (status == WF_OK) print_summary(&run);
  code = status == WF_OK ? lattice_exit_code(&run.input) : cli_fail(&err);
  lattice_close(&run.input);
  wf_word_aligner_free(run.aligner.aligner);
  free(run.words);
  return code;
}
