/* cmd_lattice_mbr.c - `warpfst lattice mbr`: writes minimum Bayes risk words with confidences, in
 * any result format, and sausages as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lattice_common.h"
#include "output_file.h"
#include "time_note.h"

typedef struct mbr_run {
  const char *output, *sausage_path, *reference;
  lattice_input input;
  aligner_source aligner;
  wf_mbr_options options;
  wf_lattice_determinize_options determinizing; /* of raw lattices */
  wf_result_writer_options writing;
  wf_result_writer *writer;
  cli_output sausages; /* not open: not requested */
  wf_transcripts *references;
  wf_wer *wer;
  double risk;
  uint64_t num_words;
} mbr_run;

static void print_sausage(FILE *out, const mbr_run *run, const char *key,
                          const wf_mbr_result *result) {
  char scratch[12];
  fprintf(out, "{\"key\": ");
  cli_json_string(out, key);
  fprintf(out, ", \"risk\": %.6g, \"bins\": [", result->risk);
  for (size_t b = 0; b < result->num_bins; b++) {
    fprintf(out, b > 0 ? ", [" : "[");
    for (uint64_t i = result->bin_off[b]; i < result->bin_off[b + 1]; i++) {
      const wf_sausage_word *word = &result->bin_words[i];
      fprintf(out, i > result->bin_off[b] ? ", {\"word\": " : "{\"word\": ");
      if (word->label == 0)
        fprintf(out, "null");
      else
        cli_json_string(out, lattice_word_text(run->input.words, word->label, scratch));
      fprintf(out, ", \"posterior\": %.6g", word->posterior);
      if (word->start_frame >= 0)
        fprintf(out, ", \"start\": %.3f, \"end\": %.3f",
                word->start_frame * (double)run->writing.frame_shift,
                word->end_frame * (double)run->writing.frame_shift);
      fprintf(out, "}");
    }
    fprintf(out, "]");
  }
  fprintf(out, "]}\n");
}

static wf_status put_result(mbr_run *run, const char *key, const wf_mbr_result *result,
                            const wf_lattice_stats *stats, wf_error *err) {
  size_t count = result->num_words;
  wf_timed_word *words = malloc((count + 1) * sizeof *words);
  const char **texts = malloc((count + 1) * sizeof *texts);
  char(*scratch)[12] = malloc((count + 1) * sizeof *scratch);
  wf_status status =
      words != NULL && texts != NULL && scratch != NULL ? WF_OK : lattice_no_memory(err);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    const wf_word *word = &result->words[i];
    texts[i] = lattice_word_text(run->input.words, word->label, scratch[i]);
    words[i] = (wf_timed_word){texts[i], word->start_frame < 0 ? 0 : word->start_frame,
                               word->end_frame < 0 ? 0 : word->end_frame, result->confidences[i]};
  }
  wf_hypothesis hypothesis = {.key = key,
                              .words = words,
                              .num_words = count,
                              .num_frames = stats->num_frames,
                              .cost = stats->best_cost,
                              .graph_cost = NAN,
                              .acoustic_cost = NAN};
  if (status == WF_OK) status = wf_result_writer_put(run->writer, &hypothesis, err);
  int64_t at = run->references != NULL ? wf_transcripts_find(run->references, key) : -1;
  if (status == WF_OK && at >= 0) {
    wf_transcript reference = wf_transcripts_at(run->references, (size_t)at),
                  said = {key, texts, count};
    status = wf_wer_add(run->wer, &reference, &said, NULL, err);
  }
  free(words);
  free(texts);
  free(scratch);
  return status;
}

static wf_status one(void *user, wf_lattice_entry *entry, wf_error *err) {
  mbr_run *run = user;
  wf_mbr_result *result;
  wf_lattice_stats stats;
  wf_mbr_options options = run->options;
  wf_lattice_stats_init(&stats);
  wf_status status = lattice_make_compact(entry, &run->determinizing, &options.complete_beam, err);
  if (status == WF_OK) status = aligner_apply(&run->aligner, entry, err);
  if (status == WF_OK) status = wf_compact_lattice_get_stats(entry->compact, &stats, err);
  if (status == WF_OK)
    status = wf_compact_lattice_mbr(entry->compact, NULL, 0, &options, &result, err);
  if (status != WF_OK) return status;
  run->risk += result->risk;
  run->num_words += result->num_words;
  if (run->sausages.file != NULL) print_sausage(run->sausages.file, run, entry->key, result);
  status = put_result(run, entry->key, result, &stats, err);
  wf_mbr_result_free(result);
  return status;
}

static wf_status run_all(mbr_run *run, wf_error *err) {
  wf_status status = wf_result_writer_open(run->output, &run->writing, &run->writer, err);
  if (status == WF_OK && run->sausage_path != NULL)
    status = cli_output_open(&run->sausages, run->sausage_path, err);
  if (status == WF_OK) status = lattice_each(&run->input, one, run, err);
  status = cli_output_close(&run->sausages, status, err);
  if (status == WF_OK) return wf_result_writer_close(run->writer, err);
  wf_result_writer_abort(run->writer);
  return status;
}

static void print_json(const mbr_run *run) {
  wf_wer_counts totals = {0};
  if (run->wer != NULL) totals = wf_wer_totals(run->wer);
  const bool wer = run->wer != NULL;
  const cli_figure figures[] = {
      {"lattices", (double)run->input.num_lattices},
      {"failed", (double)run->input.num_failed},
      {"words", (double)run->num_words},
      {"expected_errors", run->risk},
      {wer ? "wer_percent" : NULL, wer ? wf_wer_percent(&totals) : 0},
      {wer ? "word_errors" : NULL,
       (double)(totals.num_substitutions + totals.num_deletions + totals.num_insertions)},
      {wer ? "reference_words" : NULL, (double)totals.num_words}};
  cli_figures_json(stderr, figures, sizeof figures / sizeof *figures);
}

static void print_summary(const mbr_run *run) {
  cli_progress_end();
  if (run->input.summary.json) print_json(run);
  if (run->input.summary.json || run->input.summary.quiet) return;
  fprintf(stderr, "%llu lattice%s, %llu word%s, %.1f expected errors",
          (unsigned long long)run->input.num_lattices, cli_s(run->input.num_lattices),
          (unsigned long long)run->num_words, cli_s(run->num_words), run->risk);
  if (run->wer != NULL) {
    wf_wer_counts totals = wf_wer_totals(run->wer);
    fprintf(stderr, "; WER %.2f%% (%llu of %llu word%s)", wf_wer_percent(&totals),
            (unsigned long long)(totals.num_substitutions + totals.num_deletions +
                                 totals.num_insertions),
            (unsigned long long)totals.num_words, cli_s(totals.num_words));
  }
  fprintf(stderr, "\n");
}

static const cli_rule rules[] = {
    {"channel", CLI_USELESS_WITHOUT, "format=ctm"},
    CLI_SUMMARY_RULE,
    {NULL, 0, NULL},
};

int cmd_lattice_mbr(int argc, char **argv) {
  mbr_run run = {.output = "-"};
  cli_parser parser = {
      .usage = "LATTICES... [-o OUT]",
      .about =
          "Finds the words with the least expected number of errors, and a confidence for each. "
          "Raw "
          "lattices are determinized first. Scale the costs so that posteriors are not too\n"
          "sharp: with --acoustic-scale, as for decoding, and with --scale. With --graph, "
          "--tokens or --am, word times "
          "are those of the word's frames,\nelse those of its arc. Examples:\n"
          "  warpfst lattice mbr lat.ark --acoustic-scale=0.1 --words=words.txt --ref=text\n"
          "  warpfst lattice mbr lat.ark --acoustic-scale=0.1 --words=words.txt --am=final.mdl "
          "--lang=lang --format=ctm -o out.ctm\n"
          "  warpfst lattice mbr lat.ark --no-decode --format=json        best path, with "
          "confidences",
      .min_args = 1,
      .max_args = -1};
  cli_flag_str(&parser, "output", 'o', &run.output, "FILE",
               "where to write results ('-': standard output, the default)");
  cli_flag_str(&parser, "sausages", 0, &run.sausage_path, "FILE",
               "also write the sausages, one JSON object for each utterance");
  cli_flag_str(
      &parser, "ref", 0, &run.reference, "FILE",
      "reference words, lines `id word word ...`; adds the word error rate to the summary");
  cli_summary_flags(&parser, &run.input.summary);
  lattice_flags(&parser, &run.input);
  aligner_flags(&parser, &run.aligner);
  cli_table(&parser, "mbr", &run.options);
  cli_table(&parser, "lattice_determinize", &run.determinizing);
  cli_table(&parser, "result_writer", &run.writing);
  cli_rules(&parser, rules);
  int code = cli_parse(&parser, argc, argv);
  if (code >= 0) return code;
  wf_error err = {0};
  wf_status status = lattice_open(&run.input, parser.args, parser.num_args, &err);
  if (status == WF_OK) status = aligner_open(&run.aligner, run.input.words, &err);
  if (status == WF_OK) cli_note_times(&parser, &run.writing, run.aligner.aligner == NULL);
  if (status == WF_OK && run.reference != NULL)
    status = wf_transcripts_read(run.reference, WF_TRANSCRIPT_AUTO, &run.references, &err);
  if (status == WF_OK && run.reference != NULL) status = wf_wer_create(NULL, &run.wer, &err);
  if (status == WF_OK) status = run_all(&run, &err);
  if (status == WF_OK) print_summary(&run);
  code = status == WF_OK ? lattice_exit_code(&run.input) : cli_fail(&err);
  lattice_close(&run.input);
  wf_word_aligner_free(run.aligner.aligner);
  wf_transcripts_free(run.references);
  wf_wer_free(run.wer);
  return code;
}
